/* running_digest.h - a digest over bytes that come in order, including the memory of the state. */
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

#endif
