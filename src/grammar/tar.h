/* tar.h - the members of a tar archive, one after the other.
 *
 * POSIX.1-2017, pax: "ustar Interchange Format" and "pax Interchange Format" (the keywords path and size), and
 * GNU's long names and sizes in base 256.  The checksum of every header is checked.  Like every parser, reading
 * may end with HEFT_AGAIN and be repeated from the start.
 */
#ifndef HEFT_TAR_H
#define HEFT_TAR_H
#include "base/cursor.h"

typedef struct heft_tar_entry {
    heft_str name;   /* as stored, without the prefix of ustar; lent by the file */
    heft_range data; /* of the member, in the file */
    uint64_t header; /* offset of the member's own header */
    bool has_prefix; /* the name continues a prefix that is not in `name` */
    bool is_file;    /* a regular file: not a directory, a link, a device */
} heft_tar_entry;

typedef struct heft_tar {
    heft_window *in;
    uint64_t at; /* offset of the next header */
} heft_tar;

/* The next member; *found is false after the last one.  HEFT_E_FORMAT: a header with a wrong checksum or number, or
 * a member that is cut short. */
heft_status heft_tar_next(heft_tar *t, heft_tar_entry *out, bool *found);
/* For probes: the name of the first member as far as it lies in the first bytes of a file; empty: no tar archive. */
heft_str heft_tar_first_name(const uint8_t *head, size_t len);

#endif
