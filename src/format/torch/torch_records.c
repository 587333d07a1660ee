/* torch_records.c - storages and tensors of a tar archive by their keys, which are numbers. */
#include "base/bisect.h"
#include "base/sort.h"
#include "format/torch/torch.h"

/* ---- keys ---- */

/* Decimal digits, at most 18, with a sign or not. */
static bool read_digits(int64_t *out, heft_str s)
{
    enum { MOST = 18 };
    bool is_negative = s.len && s.ptr[0] == '-';
    size_t at = is_negative;
    *out = 0;
    if (at == s.len || s.len - at > MOST)
        return false;
    for (; at < s.len; at++) {
        if (s.ptr[at] < '0' || s.ptr[at] > '9')
            return false;
        *out = *out * 10 + (s.ptr[at] - '0');
    }
    *out = is_negative ? -*out : *out;
    return true;
}

bool heft_torch_read_key(int64_t *out, const heft_pickle *p, uint32_t value)
{
    if (heft_pickle_is(p, value, HEFT_PICKLE_TEXT))
        return read_digits(out, heft_pickle_at(p, value)->as.s);
    if (!heft_pickle_is(p, value, HEFT_PICKLE_INT))
        return false;
    *out = heft_pickle_at(p, value)->as.i;
    return true;
}

/* ---- sorting ---- */

static bool memory_below(const void *ctx, uint32_t a, uint32_t b)
{
    const heft_torch_memory *m = ctx;
    return m[a].key < m[b].key;
}

static bool record_below(const void *ctx, uint32_t a, uint32_t b)
{
    const heft_torch_record *m = ctx;
    return m[a].key < m[b].key;
}

/* The numbers of n things in the order of their keys; NULL: no memory. */
static uint32_t *sorted(const heft_torch *t, uint32_t n,
                        bool (*below)(const void *ctx, uint32_t a, uint32_t b), const void *things)
{
    uint32_t *ids = heft_arena_alloc(&t->x->arena, (2 * (size_t)n + 1) * sizeof *ids, 4);
    for (uint32_t i = 0; ids && i < n; i++)
        ids[i] = i;
    if (ids)
        heft_sort(ids, ids + n, n, below, things);
    return ids;
}

heft_status heft_torch_sort_memories(heft_torch *t, const heft_vec *memories)
{
    const heft_torch_memory *from = memories->ptr;
    uint32_t n = memories->len, *ids = sorted(t, n, memory_below, from);
    heft_torch_memory *to = heft_arena_alloc(&t->x->arena, ((size_t)n + 1) * sizeof *to, 8);
    if (!ids || !to)
        return heft_error_no_memory(t->x->err, "for a list of storages");
    for (uint32_t i = 0; i < n; i++) {
        to[i] = from[ids[i]];
        if (i && to[i].key == to[i - 1].key)
            return heft_error_set(t->x->err, HEFT_E_FORMAT, to[i].at,
                                  "storages: two storages have the same number");
    }
    t->memories = to;
    t->memory_count = n;
    return HEFT_OK;
}

heft_status heft_torch_sort_records(heft_torch *t, const heft_vec *records)
{
    const heft_torch_record *from = records->ptr;
    uint32_t n = records->len, *ids = sorted(t, n, record_below, from);
    heft_torch_record *to = heft_arena_alloc(&t->x->arena, ((size_t)n + 1) * sizeof *to, 8);
    if (!ids || !to)
        return heft_error_no_memory(t->x->err, "for a list of storages");
    for (uint32_t i = 0; i < n; i++) {
        to[i] = from[ids[i]];
        if (i && to[i].key == to[i - 1].key)
            return heft_error_set(t->x->err, HEFT_E_FORMAT, to[i].at,
                                  "tensors: two tensors have the same number");
    }
    t->records = to;
    t->record_count = n;
    return HEFT_OK;
}

/* ---- finding ---- */

uint32_t heft_torch_find_memory(const heft_torch *t, int64_t key)
{
    heft_bisect b = { .end = t->memory_count };
    while (heft_bisect_next(&b))
        heft_bisect_narrow(&b, t->memories[b.mid].key < key);
    return b.first < t->memory_count && t->memories[b.first].key == key ? b.first : HEFT_NONE;
}

const heft_torch_record *heft_torch_record_of(const heft_torch *t, uint32_t persistent,
                                              bool *is_storage)
{
    int64_t key;
    heft_bisect b = { .end = t->record_count };
    *is_storage = false;
    if (!heft_torch_read_key(&key, &t->p, heft_pickle_at(&t->p, persistent)->as.id))
        return NULL;
    while (heft_bisect_next(&b))
        heft_bisect_narrow(&b, t->records[b.mid].key < key);
    if (b.first < t->record_count && t->records[b.first].key == key)
        return &t->records[b.first];
    *is_storage = heft_torch_find_memory(t, key) != HEFT_NONE;
    return NULL;
}
