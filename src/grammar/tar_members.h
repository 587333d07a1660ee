/* tar_members.h - finds every member of a tar archive that any reader could see.
 *
 * Readers differ: Python reads headers without a magic, sums of signed or unsigned bytes, unknown
 * types as files, and sizes and names from pax headers for the whole archive; some go on after
 * blocks that are no header.  heft_tar_next() refuses such an archive; the search here takes every
 * header whose checksum is right, for programs that look for hostile content.
 */
#ifndef HEFT_TAR_MEMBERS_H
#define HEFT_TAR_MEMBERS_H
#include <heft/heft.h>

typedef struct heft_tar_found {
    heft_str name;    /* any bytes; borrowed from the archive */
    heft_range data;  /* the longest content that a reader could see */
    bool is_sparse;   /* the content is a list of ranges, which are not put together here */
    bool is_too_long; /* the header states more bytes than the archive has */
} heft_tar_found;

typedef struct heft_tar_search {
    const uint8_t *bytes;
    uint64_t size, at;
    heft_str next_name, global_name; /* names in extension headers; ptr NULL: none */
    uint64_t next_size, global_size; /* HEFT_UNKNOWN_LENGTH: none */
    bool next_is_sparse, global_is_sparse;
    bool has_ended;  /* a block of zeros was found */
    bool has_other;  /* a block is neither zeros nor a header */
    bool is_damaged; /* before the end, other bytes are where a header should be */
    bool is_certain; /* only zeros precede the first header, or a header has the magic */
} heft_tar_search;

/* Return true if the bytes begin with a header that some reader accepts, perhaps after zeros
 * or a few other blocks. */
bool heft_tar_begins(const uint8_t *bytes, uint64_t size);
void heft_tar_search_begin(heft_tar_search *t, const uint8_t *bytes, uint64_t size);
/* Find the next member; return false after the last. */
bool heft_tar_search_next(heft_tar_search *t, heft_tar_found *out);

#endif
