/* zip.h - the directory of a zip archive: where the bytes of each member lie.
 *
 * What the central directory says is compared with the header in front of each member and with the data
 * descriptor behind it, so that no two readers of one archive can see different members.  Members are stored
 * or deflated; nothing is decoded here, and no checksum computed.  Like every parser it may end with
 * HEFT_AGAIN and be called again from the start.  PKWARE's APPNOTE.TXT 6.3.10 is the specification.
 */
#ifndef HEFT_ZIP_H
#define HEFT_ZIP_H
#include "base/arena.h"
#include "base/cursor.h"
#include "base/out.h"

typedef enum heft_zip_method { HEFT_ZIP_STORED = 0, HEFT_ZIP_DEFLATED = 8 } heft_zip_method;

typedef struct heft_zip_entry {
    heft_str name;     /* UTF-8 without NUL; lent by the file, where it stands at name_at */
    uint64_t name_at;  /* in the central directory */
    uint64_t head;     /* the member: its local header, … */
    uint64_t data;     /* … its bytes, … */
    uint64_t stored;   /* … which are so many, … */
    uint64_t end;      /* … and what follows them, a data descriptor included */
    uint64_t content;  /* bytes once inflated; a stored member: stored */
    uint32_t crc;      /* CRC-32 of the content */
    uint16_t method;   /* heft_zip_method, or another one when is_opaque */
    uint16_t flags;    /* general purpose flags */
    bool is_described; /* a data descriptor follows the data */
    bool is_opaque;    /* encrypted, or compressed in a way that is not known here */
} heft_zip_entry;

typedef struct heft_zip {
    heft_zip_entry *entries; /* in the order of the central directory */
    uint32_t *by_place;      /* their numbers, by the place of their headers */
    uint32_t count;
    heft_range directory; /* the central directory; what ends the archive follows it */
    uint64_t comment;     /* bytes of the archive's comment, the last of the file */
} heft_zip;

/* The archive that the file is, without bytes before or behind it; in arena: about 85 bytes for each
 * member, never more than twice what the directory takes in the file.
 * HEFT_E_FORMAT: broken, cut short, members that overlap or share a name.  HEFT_E_UNSUPPORTED: encrypted,
 * in several volumes, compressed otherwise, or names that are not UTF-8.
 * takes_opaque: members that are encrypted or compressed otherwise are listed as opaque entries. */
heft_status heft_zip_open(heft_zip *out, heft_window *in, heft_arena *arena, bool takes_opaque);
/* HEFT_E_UNSUPPORTED with the reason when the entry is opaque. */
heft_status heft_zip_refuse_opaque(const heft_zip_entry *e, heft_error *err);
/* For probes: the name of the member that the file begins with, as far as it lies in head; *bits says how much
 * speaks for a zip archive, 0: it is none.  Of an empty archive: empty. */
heft_str heft_zip_first_name(int *bits, const uint8_t *head, size_t len);

/* ---- writing: members whose checksums follow them ---- */

typedef struct heft_zip_member {
    heft_str name;  /* UTF-8, at most 65535 bytes */
    uint64_t head;  /* where its local header is */
    uint64_t size;  /* of the content */
    uint32_t crc;   /* of the content; the local header does without */
    uint32_t extra; /* bytes of padding in the local header: 0, or HEFT_ZIP_EXTRA and more */
    bool is_deflated;
    uint64_t deflated; /* the bytes of a deflated one as they are stored */
} heft_zip_member;

enum { HEFT_ZIP_EXTRA = 6, HEFT_ZIP_MOST_EXTRA = 65535 - 32 };

void heft_zip_put_header(heft_out *o, const heft_zip_member *m);     /* in front of the content */
void heft_zip_put_descriptor(heft_out *o, const heft_zip_member *m); /* behind it */
void heft_zip_put_entry(heft_out *o, const heft_zip_member *m);      /* in the directory */
/* Behind the directory of so many members. */
void heft_zip_put_end(heft_out *o, uint64_t members, heft_range directory);

#endif
