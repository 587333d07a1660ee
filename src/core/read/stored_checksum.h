/* stored_checksum.h - a checksum that a file stores: computed from the bytes that it covers, and
 * the errors if it does not match. */
#ifndef HEFT_STORED_CHECKSUM_H
#define HEFT_STORED_CHECKSUM_H
#include "core/read/file.h"
#include "core/read/progress.h"

enum { HEFT_DIGEST_SMALL = 16 }; /* largest state that is not allocated: enough for a CRC */

typedef struct heft_running_digest { /* zeroed: no digest; may be moved in memory */
    const heft_digest *digest;       /* NULL: no digest */
    const heft_allocator *al;
    void *allocated; /* the state; NULL: the state is in `small` */
    bool is_running; /* begun and not ended: the state may own memory */
    _Alignas(16) uint8_t small[HEFT_DIGEST_SMALL];
} heft_running_digest;

/* Begin a digest.  The state's memory is reused if the previous digest has the same algorithm.  d
 * NULL: no digest.  HEFT_E_NOMEM with `purpose` in the message. */
heft_status heft_running_digest_begin(heft_running_digest *r, const heft_digest *d,
                                      const heft_allocator *al, const char *purpose,
                                      heft_error *err);
static inline void *heft_running_digest_state(heft_running_digest *r)
{
    return r->allocated ? r->allocated : r->small;
}
static inline void heft_running_digest_update(heft_running_digest *r, const void *data, size_t len)
{
    if (r->is_running)
        r->digest->update(heft_running_digest_state(r), data, len);
}
/* Write the digest to out, unless out is NULL; keep the state's memory. */
void heft_running_digest_end(heft_running_digest *r, uint8_t *out);
/* End and release; harmless without a digest. */
void heft_running_digest_close(heft_running_digest *r);

typedef enum heft_checksum_state {
    HEFT_CHECKSUM_MATCHES,
    HEFT_CHECKSUM_MISMATCH,
    HEFT_CHECKSUM_UNCHECKED /* nothing was compared, or this build lacks the algorithm */
} heft_checksum_state;

/* heft_ix_checksum_at() for text that is mapped: an error if the file has been truncated. */
heft_status heft_stored_checksum_get(heft_stored_checksum *out, const heft_file *f,
                                     uint32_t checksum, heft_error *err);
/* Extend the state of the digest by the bytes of a range. */
typedef heft_status heft_add_range(void *ctx, const heft_digest *d, heft_range r, void *state,
                                   heft_error *err);
/* Compute a checksum; *holds: the checksum matches.  add() is called for each range
 * that is not empty. */
heft_status heft_stored_checksum_compute(bool *holds, const heft_stored_checksum *c,
                                         const heft_digest *d, const heft_allocator *al,
                                         heft_add_range *add, void *ctx, heft_error *err);
/* Add the zero bytes between the two ranges of the checksum to state. */
void heft_stored_checksum_add_zeros(const heft_stored_checksum *c, const heft_digest *d,
                                    void *state);
/* Return HEFT_E_CHECKSUM with the message for a checksum that does not match. */
heft_status heft_stored_checksum_mismatch(const heft_file *f, const heft_stored_checksum *c,
                                          heft_error *err);
/* Return HEFT_E_CHECKSUM with a message that names the checksum and the part. */
heft_status heft_checksum_mismatch_error(const heft_file *f, uint32_t checksum, uint32_t part,
                                         heft_error *err);

typedef void heft_feed_function(void *ctx, const uint8_t *p, size_t len);
/* Call feed for each chunk of stored bytes, in place or read into a buffer, until the progress is
 * halted.  progress may be NULL. */
heft_status heft_pass_stored(const heft_file *f, heft_range r, const heft_progress *progress,
                             heft_feed_function *feed, void *ctx, heft_error *err);
/* Update a digest with stored bytes of the file. */
heft_status heft_digest_stored(const heft_file *f, const heft_digest *d, void *state, heft_range r,
                               heft_error *err);

/* ---- the checksums that are stored for the boxes of assembled tensors ---- */

/* Where the bytes of a part are assembled. */
typedef struct heft_assembled_part {
    const heft_file *file; /* the file, or one that was joined to it; NULL: the part is stored */
    uint32_t row;          /* row of heft_index.assembled of that file */
    uint32_t base;         /* number of that file: see heft_global_offset() */
} heft_assembled_part;
heft_assembled_part heft_assembled_part_of(const heft_file *f, uint32_t part);
/* Set *out to the range, in the files of the model, that has the elements of a box.  Return false
 * if the box is a file of its own, or in a shard that is missing. */
bool heft_assembled_box(heft_range *out, const heft_assembled_part *a, uint32_t box);
/* Return true if the files that have the bytes of the part, or of all its boxes, are open. */
bool heft_part_has_bytes(const heft_file *f, uint32_t part);

/* Find the checksums that are stored for the boxes of the assembled parts for which is_chosen()
 * returns true, NULL: of all; set needed[] of the checksums of f to `way`.  Those in files that
 * boxes are, are compared at once: HEFT_E_CHECKSUM at the first that does not match.  The bytes of
 * a part that is assembled have no checksum of their own. */
heft_status heft_box_checksums_choose(const heft_file *f, uint8_t *needed, uint8_t way,
                                      bool (*is_chosen)(void *ctx, uint32_t part), void *ctx,
                                      heft_error *err);
/* Choose, and compare all at once. */
heft_status heft_box_checksums_check(const heft_file *f,
                                     bool (*is_chosen)(void *ctx, uint32_t part), void *ctx,
                                     heft_error *err);
/* Do so for one part, if it is assembled. */
heft_status heft_box_checksums_check_part(const heft_file *f, uint32_t part, heft_error *err);

#endif
