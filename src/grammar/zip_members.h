/* zip_members.h - finds every member of a zip archive that any reader could see.
 *
 * Readers differ: some trust the central directory, some the local headers, some count offsets from
 * the first member and some from the first byte.  heft_zip_open() refuses an archive on which two
 * readers disagree; the search here takes the members of all readers, for programs that look for
 * hostile content.  Checksums, sizes after inflating and the flag for encryption hide nothing.
 */
#ifndef HEFT_ZIP_MEMBERS_H
#define HEFT_ZIP_MEMBERS_H
#include "base/arena.h"

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
