/* zip.h - reads the directory of a zip archive, and writes the records of an archive.
 *
 * The central directory must agree with the local header and the data descriptor of each member, so
 * that no two readers of the archive can see different members.  Members are stored or deflated;
 * the reader decodes no data and computes no checksums.  As in every parser, reading may end with
 * HEFT_AGAIN and be repeated from the start.  Section numbers refer to PKWARE's APPNOTE.TXT 6.3.10.
 */
#ifndef HEFT_ZIP_H
#define HEFT_ZIP_H
#include "base/arena.h"
#include "base/cursor.h"
#include "base/out.h"

typedef enum heft_zip_method { HEFT_ZIP_STORED = 0, HEFT_ZIP_DEFLATED = 8 } heft_zip_method;

typedef struct heft_zip_entry {
    heft_str name;     /* UTF-8 without NUL; borrowed from the file, at offset name_at */
    uint64_t name_at;  /* in the central directory */
    uint64_t head;     /* offset of the local header */
    uint64_t data;     /* offset of the stored bytes */
    uint64_t stored;   /* number of stored bytes */
    uint64_t end;      /* offset after the data and any data descriptor */
    uint64_t content;  /* size after inflating; stored members: same as `stored` */
    uint32_t crc;      /* CRC-32 of the content */
    uint16_t method;   /* heft_zip_method, or any number if is_opaque */
    uint16_t flags;    /* general purpose flags */
    bool is_described; /* a data descriptor follows the data */
    bool is_opaque;    /* encrypted, or compressed by an unsupported method */
    bool is_cut;       /* recovered: `stored` bytes are left in the file, perhaps not all */
} heft_zip_entry;

typedef struct heft_zip {
    heft_zip_entry *entries; /* in the order of the central directory */
    uint32_t *by_offset;     /* numbers of the entries, sorted by the offset of the local header */
    uint32_t count;
    heft_range directory; /* the central directory; followed by the end records only */
    heft_range trailing;  /* bytes after the archive's comment, up to the end of the file */
    bool is_recovered;    /* by heft_zip_recover(): members may be missing */
} heft_zip;

/* Read the directory of an archive that begins with the file.  Allocates about 85 bytes per
 * member from `arena`, at most twice the size of the directory. HEFT_E_FORMAT: broken or truncated,
 * or members overlap or share a name.  HEFT_E_UNSUPPORTED: encrypted, several volumes, an
 * unsupported method, or names that are not UTF-8. With takes_opaque, encrypted members and members
 * with unsupported methods become opaque entries instead. */
heft_status heft_zip_open(heft_zip *out, heft_window *in, heft_arena *arena, bool takes_opaque);
/* Find the members of an archive without its end by their local headers; the window has zeros after
 * the `present` bytes of the file.  The last member may have is_cut set, and the directory is
 * empty.  HEFT_E_FORMAT: there is no member, or two share a name. */
heft_status heft_zip_recover(heft_zip *out, heft_window *in, heft_arena *arena, uint64_t present);
/* Return HEFT_E_UNSUPPORTED, with the reason, if the entry is opaque. */
heft_status heft_zip_refuse_opaque(const heft_zip_entry *e, heft_error *err);
/* Return the name of the first member, as far as present in `head`; empty for an empty archive.
 * Set *bits to the number of identifying bits, 0 if not a zip archive.  For probes. */
heft_str heft_zip_first_name(int *bits, const uint8_t *head, size_t len);

/* Return the part of the central directory that lies in `tail`, the end of a file.  For probes. */
heft_str heft_zip_directory_in(const uint8_t *tail, size_t len);

/* ---- writing: checksums and sizes follow each member in a data descriptor ---- */

typedef struct heft_zip_member {
    heft_str name;  /* UTF-8, at most 65535 bytes */
    uint64_t head;  /* offset of the local header */
    uint64_t size;  /* size of the content */
    uint32_t crc;   /* CRC-32 of the content; not needed for the local header */
    uint32_t extra; /* padding in the local header: 0, or HEFT_ZIP_EXTRA and more bytes */
    bool is_deflated;
    uint64_t deflated; /* stored size of a deflated member */
} heft_zip_member;

enum { HEFT_ZIP_EXTRA = 6, HEFT_ZIP_MAX_EXTRA = 65535 - 32 };

/* Return what adds the bytes that are emitted to *crc; call heft_out_flush() at the end. */
heft_out heft_zip_crc_out(uint8_t *buf, size_t cap, uint32_t *crc);
/* Emit the local header of a member, the data descriptor after the data, and the directory
 * entry. */
void heft_zip_put_header(heft_out *o, const heft_zip_member *m);
void heft_zip_put_descriptor(heft_out *o, const heft_zip_member *m);
void heft_zip_put_entry(heft_out *o, const heft_zip_member *m);
/* Emit the end records, after the directory of `members` entries. */
void heft_zip_put_end(heft_out *o, uint64_t members, heft_range directory);

/* ---- signatures of zip records, and the search for the central directory ---- */

/* Signatures, the first four bytes of each record. */
enum {
    SIGN_MEMBER = 0x04034B50,
    SIGN_DESCRIPTOR = 0x08074B50,
    SIGN_ENTRY = 0x02014B50,
    SIGN_END64 = 0x06064B50,
    SIGN_LOCATOR = 0x07064B50,
    SIGN_END = 0x06054B50
};

enum { ENTRY = 46 }; /* minimum size of a directory entry */

/* Fill z->by_offset.  HEFT_E_FORMAT if two members have the same name. */
heft_status heft_zip_sort(const heft_zip *z, heft_error *err);
/* Read the local header at the start of a range; e->end is not set.  HEFT_E_FORMAT if there is
 * none. */
heft_status heft_zip_read_local(heft_zip_entry *e, heft_window *in, heft_range where);
/* Find the central directory and the number of entries; set z->directory and z->trailing. */
heft_status heft_zip_find_directory(heft_zip *z, heft_window *in, uint64_t *entries);

/* ---- finds every member of a zip archive that any reader could see ---- */

typedef struct heft_zip_found {
    heft_str name;         /* any bytes; borrowed from the archive */
    uint64_t head, data;   /* offsets of the local header and the stored bytes */
    uint64_t stored;       /* number of stored bytes, all within the archive */
    uint32_t directory;    /* number of the directory that lists the member; 0: none */
    uint16_t method;       /* heft_zip_method, or any number */
    bool has_no_size;      /* the member reaches as far as it may */
    bool claims_encrypted; /* a flag says that the bytes are encrypted */
} heft_zip_found;

typedef struct heft_zip_members {
    heft_vec members;          /* heft_zip_found; sorted by data, stored and method, no doubles */
    bool has_more_end_records; /* more than are followed: members may be missing */
    bool has_overlaps;         /* a directory lists bytes as parts of several members */
} heft_zip_members;

/* Return true if the bytes begin like an archive, or have an end record where readers look for it:
 * the search goes through the last 64 KiB. */
bool heft_zip_begins(const uint8_t *bytes, uint64_t size);
bool heft_zip_has_end(const uint8_t *bytes, uint64_t size);
/* Find the members; return false if out of memory.  Call heft_vec_free() for out->members in either
 * case. */
bool heft_zip_find_members(heft_zip_members *out, heft_memory *m, const uint8_t *bytes,
                           uint64_t size);

#endif
