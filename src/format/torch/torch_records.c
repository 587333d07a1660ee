/* torch_records.c - looks up storages and tensors of a tar archive by number. */
#include "base/bisect.h"
#include "base/sort.h"
#include "format/torch/torch.h"

/* ---- keys ---- */

/* A text has at most 18 digits and an optional sign. */
bool heft_torch_read_key(int64_t *out, const heft_pickle *p, uint32_t value)
{
    enum { MAX_DIGITS = 18 };
    if (heft_pickle_is(p, value, HEFT_PICKLE_INT))
        *out = heft_pickle_at(p, value)->as.i;
    if (!heft_pickle_is(p, value, HEFT_PICKLE_TEXT))
        return heft_pickle_is(p, value, HEFT_PICKLE_INT);
    heft_str s = heft_pickle_at(p, value)->as.s;
    bool is_negative = s.len && s.ptr[0] == '-';
    size_t at = is_negative;
    *out = 0;
    if (at == s.len || s.len - at > MAX_DIGITS)
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

typedef struct records {
    const char *first;
    size_t size; /* size of a record */
} records;

static const heft_torch_id *id_at(const records *s, uint32_t i)
{
    return (const heft_torch_id *)(const void *)(s->first + i * s->size);
}

static bool has_lower_key(const void *ctx, uint32_t a, uint32_t b)
{
    return id_at(ctx, a)->key < id_at(ctx, b)->key;
}

heft_status heft_torch_sort(const heft_torch *t, const heft_vec *from, size_t size,
                            const char *what, void **out)
{
    records s = { from->ptr, size };
    uint32_t n = from->len;
    uint32_t *ids = heft_arena_alloc(&t->x->arena, (2 * (size_t)n + 1) * sizeof *ids, 4);
    char *to = *out = heft_arena_alloc(&t->x->arena, ((size_t)n + 1) * size, 8);
    if (!ids || !to)
        return heft_error_no_memory(t->x->err, "for a list of storages");
    heft_sort_numbers(ids, n, has_lower_key, &s);
    for (uint32_t i = 0; i < n; i++, to += size) {
        const heft_torch_id *id = id_at(&s, ids[i]);
        memcpy(to, id, size);
        if (i && id->key == id_at(&s, ids[i - 1])->key)
            return heft_error_set(t->x->err, HEFT_E_FORMAT, id->at,
                                  "%ss: two %ss have the same number", what, what);
    }
    return HEFT_OK;
}

/* ---- lookup ---- */

uint32_t heft_torch_find_storage_view(const heft_torch *t, int64_t key)
{
    heft_bisect b = { .end = t->storage_view_count };
    while (heft_bisect_next(&b))
        heft_bisect_narrow(&b, t->storage_views[b.mid].id.key < key);
    return b.first < t->storage_view_count && t->storage_views[b.first].id.key == key ? b.first
                                                                                      : HEFT_NONE;
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
    *is_storage = heft_torch_find_storage_view(t, key) != HEFT_NONE;
    return NULL;
}
