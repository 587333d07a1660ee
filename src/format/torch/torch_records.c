/* torch_records.c - storages and tensors of a tar archive by their keys, which are numbers. */
#include "base/bisect.h"
#include "base/sort.h"
#include "format/torch/torch.h"

/* ---- keys ---- */

/* As text at most 18 digits, with a sign or not. */
bool heft_torch_read_key(int64_t *out, const heft_pickle *p, uint32_t value)
{
    enum { MOST = 18 };
    if (heft_pickle_is(p, value, HEFT_PICKLE_INT))
        *out = heft_pickle_at(p, value)->as.i;
    if (!heft_pickle_is(p, value, HEFT_PICKLE_TEXT))
        return heft_pickle_is(p, value, HEFT_PICKLE_INT);
    heft_str s = heft_pickle_at(p, value)->as.s;
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

/* ---- sorting ---- */

typedef struct things {
    const char *first;
    size_t size; /* of each */
} things;

static const heft_torch_keyed *thing(const things *s, uint32_t i)
{
    return (const heft_torch_keyed *)(const void *)(s->first + i * s->size);
}

static bool key_below(const void *ctx, uint32_t a, uint32_t b)
{
    return thing(ctx, a)->key < thing(ctx, b)->key;
}

heft_status heft_torch_sort(const heft_torch *t, const heft_vec *from, size_t size,
                            const char *what, void **out)
{
    things s = { from->ptr, size };
    uint32_t n = from->len;
    uint32_t *ids = heft_arena_alloc(&t->x->arena, (2 * (size_t)n + 1) * sizeof *ids, 4);
    char *to = *out = heft_arena_alloc(&t->x->arena, ((size_t)n + 1) * size, 8);
    if (!ids || !to)
        return heft_error_no_memory(t->x->err, "for a list of storages");
    heft_sort_numbers(ids, n, key_below, &s);
    for (uint32_t i = 0; i < n; i++, to += size) {
        const heft_torch_keyed *id = thing(&s, ids[i]);
        memcpy(to, id, size);
        if (i && id->key == thing(&s, ids[i - 1])->key)
            return heft_error_set(t->x->err, HEFT_E_FORMAT, id->at,
                                  "%ss: two %ss have the same number", what, what);
    }
    return HEFT_OK;
}

/* ---- finding ---- */

uint32_t heft_torch_find_memory(const heft_torch *t, int64_t key)
{
    heft_bisect b = { .end = t->memory_count };
    while (heft_bisect_next(&b))
        heft_bisect_narrow(&b, t->memories[b.mid].id.key < key);
    return b.first < t->memory_count && t->memories[b.first].id.key == key ? b.first : HEFT_NONE;
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
        heft_bisect_narrow(&b, t->records[b.mid].id.key < key);
    if (b.first < t->record_count && t->records[b.first].id.key == key)
        return &t->records[b.first];
    *is_storage = heft_torch_find_memory(t, key) != HEFT_NONE;
    return NULL;
}
