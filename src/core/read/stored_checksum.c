/* stored_checksum.c - computes stored checksums, and says which one does not match. */
#include "core/read/stored_checksum.h"

#include "base/sized.h"
#include "core/read/input_window.h"

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

heft_status heft_stored_checksum_get(heft_stored_checksum *out, const heft_file *f,
                                     uint32_t checksum, heft_error *err)
{
    heft_file_enter(f);
    *out = heft_ix_checksum_at(&f->x, checksum);
    return heft_file_leave(f, err);
}

void heft_stored_checksum_add_zeros(const heft_stored_checksum *c, const heft_digest *d,
                                    void *state)
{
    static const uint8_t zeros[64] = { 0 };
    if (c->zeros)
        d->update(state, zeros, c->zeros < sizeof zeros ? c->zeros : sizeof zeros);
}

heft_status heft_stored_checksum_compute(bool *holds, const heft_stored_checksum *c,
                                         const heft_digest *d, const heft_allocator *al,
                                         heft_add_range *add, void *ctx, heft_error *err)
{
    heft_running_digest own = { .digest = NULL };
    uint8_t got[64];
    heft_status st = heft_running_digest_begin(&own, d, al, "to check a checksum", err);
    for (int i = 0; i < HEFT_CHECKSUM_RANGES && !st; i++) {
        if (i)
            heft_stored_checksum_add_zeros(c, d, heft_running_digest_state(&own));
        if (c->range[i].length)
            st = add(ctx, d, c->range[i], heft_running_digest_state(&own), err);
    }
    heft_running_digest_end(&own, got);
    heft_running_digest_close(&own);
    *holds = !st && d->bytes <= HEFT_CHECKSUM_BYTES && !memcmp(got, c->expect, d->bytes);
    return st;
}

/* ---- errors ---- */

heft_status heft_stored_checksum_mismatch(const heft_file *f, const heft_stored_checksum *c,
                                          heft_error *err)
{
    if (c->covers_piece)
        heft_error_plain(err, HEFT_E_CHECKSUM,
                         "tensor %q: %s: the checksum of a piece does not match its bytes",
                         heft_ix_name(&f->x, c->tensor), c->rule);
    else
        heft_error_plain(err, HEFT_E_CHECKSUM,
                         "%s: the checksum does not match the bytes it covers", c->rule);
    heft_error_rule(err, HEFT_E_CHECKSUM, c->rule);
    return heft_file_error_at(f, c->range[0].offset, HEFT_E_CHECKSUM, err);
}

/* Names are mapped: read them between enter and leave. */
/* Return the part of a tensor that begins in the range, or its first part. */
static uint32_t part_in(const heft_index *x, uint32_t tensor, heft_range r)
{
    const heft_ix_tensor_row *t = heft_ix_row(x, tensor);
    for (uint32_t i = t->first_part; i < t->first_part + t->part_count; i++) {
        uint64_t at = heft_ix_part_row_at(x, i)->offset;
        if (at >= r.offset && at - r.offset < r.length)
            return i;
    }
    return t->first_part;
}

heft_status heft_checksum_mismatch_error(const heft_file *f, uint32_t checksum, uint32_t part,
                                         heft_error *err)
{
    heft_status st = HEFT_E_CHECKSUM;
    heft_file_enter(f);
    heft_stored_checksum c = heft_ix_checksum_at(&f->x, checksum);
    uint32_t owner = part == HEFT_NONE ? c.tensor : heft_ix_owner(&f->x, part);
    const char *of = c.decoded ? "decoded " : "";
    if (part == HEFT_NONE && owner != HEFT_NONE)
        part = part_in(&f->x, owner, c.range[0]);
    heft_str role = part == HEFT_NONE ? (heft_str){ NULL, 0 }
                                      : heft_ix_role(&f->x, heft_ix_part_row_at(&f->x, part)->role);
    if (part == HEFT_NONE)
        heft_error_plain(err, st, "%s: the %s checksum does not match the %U bytes it covers",
                         c.rule, c.algorithm, c.range[0].length + c.range[1].length);
    else if (owner == HEFT_NONE)
        heft_error_plain(err, st,
                         "part %q of the file: %s: the %s digest does not match its %sbytes", role,
                         c.rule, c.algorithm, of);
    else
        heft_error_plain(err, st,
                         "tensor %q, part %q: %s: the %s digest does not match its %sbytes",
                         heft_ix_name(&f->x, owner), role, c.rule, c.algorithm, of);
    heft_error_rule(err, st, c.rule);
    heft_file_error_at(f, c.range[0].offset, st, err);
    return heft_file_leave_after(f, st, err);
}

/* ---- stored bytes ---- */

heft_status heft_pass_stored(const heft_file *f, heft_range r, const heft_progress *progress,
                             heft_feed_function *feed, void *ctx, heft_error *err)
{
    heft_chunks c;
    const void *in_place = r.length && heft_file_has_bytes(f, r.offset)
                               ? heft_file_in_place(f, r.offset, r.length)
                               : NULL;
    heft_status st = heft_chunks_open(&c, f->host->allocator, in_place, r.length, err);
    while (!st && !(progress && heft_progress_halted(progress)) && heft_chunks_next(&c)) {
        st = heft_file_count_read(f, HEFT_NONE, c.len, err);
        if (!st && c.buf)
            st = heft_file_read_stored(f, r.offset + c.at, c.buf, c.len, err);
        if (!st)
            feed(ctx, c.data, c.len);
    }
    heft_chunks_close(&c);
    return st;
}

typedef struct digest_state {
    const heft_digest *digest;
    void *state;
} digest_state;

static void update_digest(void *ctx, const uint8_t *p, size_t len)
{
    const digest_state *d = ctx;
    d->digest->update(d->state, p, len);
}

heft_status heft_digest_stored(const heft_file *f, const heft_digest *d, void *state, heft_range r,
                               heft_error *err)
{
    digest_state to = { d, state };
    heft_file_enter(f);
    return heft_file_leave_after(f, heft_pass_stored(f, r, NULL, update_digest, &to, err), err);
}
