/* spill.c - random access to bytes that are produced in order: memory up to 16 MiB, otherwise
 * scratch space. */
#include "core/read/spill.h"

#include "core/read/chunks.h"

enum { MEMORY_LIMIT = 16 << 20 }; /* for the spills of all threads together */

/* Scratch space of the sink is beside the output, that of the host is elsewhere. */
static heft_status blame(const heft_spill *s, heft_status st, heft_error *err)
{
    return heft_error_about(err, st, s->uses_sink ? HEFT_ABOUT_TARGET : HEFT_ABOUT_NOTHING);
}

static heft_status fill_memory(heft_spill *s, heft_spill_read read, void *ctx, heft_error *err)
{
    const heft_allocator *al = s->host->allocator;
    if (s->len <= SIZE_MAX)
        s->memory = heft_alloc(al, (size_t)s->len, 64);
    if (!s->memory)
        return heft_error_plain(err, HEFT_E_NOMEM,
                                "no memory for %U bytes to reorder a compressed part", s->len);
    s->bytes = s->memory;
    return read(ctx, s->memory, (size_t)s->len, err);
}

static heft_status fill_scratch(heft_spill *s, heft_spill_read read, void *ctx, heft_error *err)
{
    const void *mapped = NULL;
    heft_chunks c;
    heft_status st = heft_chunks_open(&c, s->host->allocator, NULL, s->len, err);
    while (!st && heft_chunks_next(&c)) {
        st = read(ctx, c.buf, c.len, err);
        if (!st)
            st = blame(s, s->scratch->ops->write(s->scratch, c.data, c.len, err), err);
    }
    heft_chunks_close(&c);
    if (!st)
        st = blame(s, s->scratch->ops->map(s->scratch, &mapped, err), err);
    s->bytes = mapped;
    return st;
}

heft_status heft_spill_fill(heft_spill *out, const heft_host *h, heft_sink *sink, uint64_t len,
                            heft_spill_read read, void *ctx, heft_error *err)
{
    bool uses_sink = sink && HEFT_HAS(sink->ops, scratch);
    uint32_t threads = h->executor && h->executor->width ? h->executor->width : 1;
    *out = (heft_spill){ .host = h, .len = len, .uses_sink = uses_sink };
    if (len <= MEMORY_LIMIT / threads || !(uses_sink || HEFT_HAS(h, scratch)))
        return fill_memory(out, read, ctx, err);
    HEFT_TRY(blame(out,
                   uses_sink ? sink->ops->scratch(sink, &out->scratch, len, err)
                             : h->scratch(&out->scratch, len, err),
                   err));
    HEFT_TRY(heft_sized_check(out->scratch->ops->size, sizeof(heft_scratch_ops), "heft_scratch_ops",
                              err));
    return fill_scratch(out, read, ctx, err);
}

heft_status heft_spill_state(const heft_spill *s, heft_error *err)
{
    return s->scratch ? blame(s, s->scratch->ops->check(s->scratch, err), err) : HEFT_OK;
}

void heft_spill_close(heft_spill *s)
{
    if (s->scratch)
        s->scratch->ops->close(s->scratch);
    if (s->memory) /* a zeroed spill has no host */
        heft_free(s->host->allocator, s->memory, (size_t)s->len, 64);
    *s = (heft_spill){ .host = s->host };
}
