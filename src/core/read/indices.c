/* indices.c - reads index numbers of sparse tensors and finds entries with the same indices. */
#include "core/read/indices.h"

#include "base/sort.h"

uint32_t heft_index_size(heft_dtype t)
{
    return t == HEFT_UNTYPED ? 8 : heft_dtype_is_int(t) ? heft_dtype_size(t) : 0;
}

uint64_t heft_index_value(const uint8_t *p, heft_dtype t)
{
    uint32_t size = heft_index_size(t);
    uint64_t n = 0;
    if (size == 8)
        n = heft_le64(p);
    else
        for (uint32_t i = 0; i < size; i++)
            n |= (uint64_t)p[i] << 8 * i;
    return heft_dtype_is_signed_int(t) && n >> (8 * size - 1) ? UINT64_MAX : n;
}

/* ---- duplicate entries ---- */

enum { MAX_COMPARED = 4 << 20 }; /* maximum number of entries to search */

static size_t buffer_bytes(uint32_t count)
{
    return (size_t)count * 16 + 1;
}

bool heft_positions_open(heft_positions *s, const heft_allocator *al, uint64_t entries,
                         const uint64_t *dims, uint32_t rank)
{
    uint64_t cells;
    *s = (heft_positions){ .linear = NULL };
    if (entries > MAX_COMPARED || !heft_product(&cells, dims, rank) || !cells)
        return true;
    s->count = (uint32_t)entries;
    s->linear = heft_alloc(al, buffer_bytes(s->count), 64);
    if (!s->linear)
        return false;
    memset(s->linear, 0, buffer_bytes(s->count));
    s->ids = (uint32_t *)(s->linear + s->count);
    s->scratch = s->ids + s->count;
    return true;
}

static bool position_less(const void *ctx, uint32_t a, uint32_t b)
{
    const uint64_t *linear = ctx;
    return linear[a] < linear[b];
}

uint32_t heft_positions_repeated(heft_positions *s)
{
    if (!s->linear)
        return HEFT_NONE;
    for (uint32_t i = 0; i < s->count; i++)
        s->ids[i] = i;
    heft_sort(s->ids, s->scratch, s->count, position_less, s->linear);
    for (uint32_t i = 1; i < s->count; i++)
        if (s->linear[s->ids[i]] == s->linear[s->ids[i - 1]])
            return s->ids[i];
    return HEFT_NONE;
}

void heft_positions_close(heft_positions *s, const heft_allocator *al)
{
    heft_free(al, s->linear, buffer_bytes(s->count), 64);
    s->linear = NULL;
}
