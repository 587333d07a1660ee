/* spill.c - memory, or the host's scratch when it would be much. */
#include "core/read/spill.h"

#include "core/read/chunks.h"

enum { IN_MEMORY = 16 << 20 }; /* of all threads that may have such a room at once */

static heft_status fill_memory(heft_spill *r, heft_spill_read read, void *ctx, heft_error *err)
{
    const heft_allocator *al = r->host->allocator;
    if (r->len <= SIZE_MAX)
        r->memory = heft_alloc(al, (size_t)r->len, 64);
    if (!r->memory)
        return heft_error_plain(err, HEFT_E_NOMEM,
                                "no memory for %U bytes of a compressed part in another order",
                                r->len);
    r->bytes = r->memory;
    return read(ctx, r->memory, (size_t)r->len, err);
}

static heft_status fill_scratch(heft_spill *r, heft_spill_read read, void *ctx, heft_error *err)
{
    const void *lent = NULL;
    heft_chunks c;
    heft_status st = heft_chunks_open(&c, r->host->allocator, NULL, r->len, err);
    while (!st && heft_chunks_next(&c)) {
        st = read(ctx, c.buf, c.len, err);
        if (!st)
            st = r->scratch->ops->write(r->scratch, c.data, c.len, err);
    }
    heft_chunks_close(&c);
    if (!st)
        st = r->scratch->ops->map(r->scratch, &lent, err);
    r->bytes = lent;
    return st;
}

heft_status heft_spill_fill(heft_spill *out, const heft_host *h, heft_sink *near, uint64_t len,
                            heft_spill_read read, void *ctx, heft_error *err)
{
    bool beside = near && HEFT_HAS(near->ops, scratch);
    uint32_t threads = h->executor && h->executor->width ? h->executor->width : 1;
    *out = (heft_spill){ .host = h, .len = len };
    if (len <= IN_MEMORY / threads || !(beside || HEFT_HAS(h, scratch)))
        return fill_memory(out, read, ctx, err);
    heft_status st = beside ? near->ops->scratch(near, &out->scratch, len, err)
                            : h->scratch(&out->scratch, len, err);
    if (!st)
        st = heft_sized_check(out->scratch->ops->size, sizeof(heft_scratch_ops), "heft_scratch_ops",
                              err);
    return st ? st : fill_scratch(out, read, ctx, err);
}

heft_status heft_spill_state(const heft_spill *r, heft_error *err)
{
    return r->scratch ? r->scratch->ops->state(r->scratch, err) : HEFT_OK;
}

void heft_spill_close(heft_spill *r)
{
    if (r->scratch)
        r->scratch->ops->close(r->scratch);
    if (r->memory) /* else there may be no host */
        heft_free(r->host->allocator, r->memory, (size_t)r->len, 64);
    *r = (heft_spill){ .host = r->host };
}
