/* tar.h - iterates over the members of a tar archive.
 *
 * Supports POSIX.1-2017, pax: "ustar Interchange Format" and "pax Interchange Format" (the keywords
 * path and size), and GNU's long names and sizes in base 256.  Verifies the checksum of every
 * header.  As in every parser, reading may end with HEFT_AGAIN and be repeated from the start.
 */
#ifndef HEFT_TAR_H
#define HEFT_TAR_H
#include "base/cursor.h"

/* The size of a header, the offsets of fields, and the sizes of fields. */
enum {
    HEFT_TAR_BLOCK = 512,
    HEFT_TAR_NAME_BYTES = 100,
    HEFT_TAR_SIZE = 124,
    HEFT_TAR_SIZE_BYTES = 12,
    HEFT_TAR_CHECKSUM = 148,
    HEFT_TAR_CHECKSUM_BYTES = 8,
    HEFT_TAR_TYPE = 156,
    HEFT_TAR_MAGIC = 257
};

typedef struct heft_tar_entry {
    heft_str name;   /* name as stored, without the ustar prefix; borrowed from the file */
    heft_range data; /* file range of the content */
    uint64_t header; /* offset of the member's header, after any extension headers */
    bool has_prefix; /* the full name has a ustar prefix before `name` */
    bool is_file;    /* a regular file: not a directory, link or device */
} heft_tar_entry;

typedef struct heft_tar {
    heft_window *in;
    uint64_t at; /* offset of the next header */
} heft_tar;

/* Get the next member; *found is false at the end.  HEFT_E_FORMAT: a wrong checksum or number in a
 * header, or a truncated member. */
heft_status heft_tar_next(heft_tar *t, heft_tar_entry *out, bool *found);
/* Return the name of the first member, as far as present in `head`; empty if not a tar archive.
 * For probes. */
heft_str heft_tar_first_name(const uint8_t *head, size_t len);

#endif
