/* running_digest.h - a digest over bytes that come in order, including the memory of the state; and
 * checksums over ranges, joined from states of segments. */
#ifndef HEFT_RUNNING_DIGEST_H
#define HEFT_RUNNING_DIGEST_H
#include "core/read/file.h"

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

/* Return HEFT_E_CHECKSUM with the message for a checksum that does not match. */
heft_status heft_stored_checksum_mismatch(const heft_file *f, const heft_stored_checksum *c,
                                          heft_error *err);
/* Add the zero bytes between the two ranges of the checksum to state. */
void heft_stored_checksum_add_zeros(const heft_stored_checksum *c, const heft_digest *d,
                                    void *state);
/* Compute a checksum with a joinable state of at most HEFT_DIGEST_SMALL bytes; *holds: the checksum
 * matches.  add() extends the state by a range. */
heft_status heft_stored_checksum_join(
    bool *holds, const heft_stored_checksum *c, const heft_digest *d,
    heft_status (*add)(void *ctx, const heft_digest *d, heft_range r, void *state, heft_error *err),
    void *ctx, heft_error *err);

#endif
