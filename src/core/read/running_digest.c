/* running_digest.c - manages a digest's state; compares checksums over joined ranges. */
#include "core/read/running_digest.h"

#include "base/error.h"
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
    heft_status st = heft_digest_load(d, err);
    if (st)
        return st;
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

heft_status heft_stored_checksum_mismatch(const heft_file *f, const heft_stored_checksum *c,
                                          heft_error *err)
{
    heft_error_plain(err, HEFT_E_CHECKSUM, "%s: the checksum does not match the bytes it covers",
                     c->rule);
    heft_error_rule(err, HEFT_E_CHECKSUM, c->rule);
    return heft_file_error_at(f, c->range[0].offset, HEFT_E_CHECKSUM, err);
}

void heft_stored_checksum_add_zeros(const heft_stored_checksum *c, const heft_digest *d,
                                    void *state)
{
    static const uint8_t zeros[64] = { 0 };
    if (c->zeros)
        d->update(state, zeros, c->zeros < sizeof zeros ? c->zeros : sizeof zeros);
}

heft_status heft_stored_checksum_join(
    bool *holds, const heft_stored_checksum *c, const heft_digest *d,
    heft_status (*add)(void *ctx, const heft_digest *d, heft_range r, void *state, heft_error *err),
    void *ctx, heft_error *err)
{
    _Alignas(16) uint8_t state[HEFT_DIGEST_SMALL];
    uint8_t got[64];
    d->init(state);
    heft_status st = add(ctx, d, c->range[0], state, err);
    heft_stored_checksum_add_zeros(c, d, state);
    if (!st)
        st = add(ctx, d, c->range[1], state, err);
    d->final(got, state);
    *holds = !st && d->bytes <= HEFT_CHECKSUM_BYTES && !memcmp(got, c->expect, d->bytes);
    return st;
}
