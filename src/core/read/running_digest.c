/* running_digest.c - manages a digest's state. */
#include "core/read/running_digest.h"

#include "base/sized.h"

heft_status heft_running_digest_begin(heft_running_digest *r, const heft_digest *d,
                                      const heft_allocator *al, const char *purpose,
                                      heft_error *err)
{
    heft_running_digest_end(r, NULL);
    if (r->digest != d)
        heft_running_digest_close(r);
    if (!d)
        return HEFT_OK;
    HEFT_TRY(heft_digest_load(d, err));
    bool is_small = d->state_bytes <= sizeof r->small;
    r->digest = d;
    r->al = al;
    if (!is_small && !r->allocated)
        r->allocated = heft_alloc(al, d->state_bytes, 64);
    r->is_running = (is_small || r->allocated) && d->init(heft_running_digest_state(r));
    if (r->is_running)
        return HEFT_OK;
    heft_running_digest_close(r);
    return heft_error_no_memory(err, purpose);
}

void heft_running_digest_end(heft_running_digest *r, uint8_t *out)
{
    if (r->is_running)
        r->digest->final(out, heft_running_digest_state(r));
    r->is_running = false;
}

void heft_running_digest_close(heft_running_digest *r)
{
    heft_running_digest_end(r, NULL);
    if (r->allocated)
        heft_free(r->al, r->allocated, r->digest->state_bytes, 64);
    r->allocated = NULL;
    r->digest = NULL;
}
