/* running_digest.h - a digest that takes its bytes in order, with the memory of its state; and checksums whose ranges
 * are joined from what is known about pieces of them. */
#ifndef HEFT_RUNNING_DIGEST_H
#define HEFT_RUNNING_DIGEST_H
#include "core/read/file.h"

enum { HEFT_DIGEST_SMALL = 16 }; /* bytes of a state that is not allocated: enough for a CRC */

typedef struct heft_running_digest { /* zeroed: none; may be moved */
    const heft_digest *digest;       /* NULL: none */
    const heft_allocator *al;
    void *allocated; /* the state, or NULL: it is in `small` */
    bool is_running; /* begun and not ended: the state may own memory */
    _Alignas(16) uint8_t small[HEFT_DIGEST_SMALL];
} heft_running_digest;

/* Begin a digest from its start, in the memory of the one before when it is the same; d NULL: none.  HEFT_E_NOMEM with
 * the purpose in its message. */
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
/* Put the digest into out, unless that is NULL; the memory is kept for the next one. */
void heft_running_digest_end(heft_running_digest *r, uint8_t *out);
/* End and release; harmless when there is none. */
void heft_running_digest_close(heft_running_digest *r);

/* HEFT_E_CHECKSUM: set the message of a checksum that its ranges break. */
heft_status heft_stored_checksum_mismatch(const heft_index *x, const heft_stored_checksum *c,
                                          heft_error *err);
/* The zeros that a checksum has between its two ranges. */
void heft_stored_checksum_add_zeros(const heft_stored_checksum *c, const heft_digest *d,
                                    void *state);
/* Whether a checksum holds that can be joined and whose state is small; add() carries the state over a range. */
heft_status heft_stored_checksum_join(
    bool *holds, const heft_stored_checksum *c, const heft_digest *d,
    heft_status (*add)(void *ctx, const heft_digest *d, heft_range r, void *state, heft_error *err),
    void *ctx, heft_error *err);

#endif
