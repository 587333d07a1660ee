/* torch_storage.c - the storages that a pickle mentions, with their element types.
 *
 * A storage is a persistent id: ("storage", class, key, location, elements).  Legacy files append a
 * view, (key, offset, elements), or None.
 */
#include "base/bisect.h"
#include "base/sort.h"
#include "format/torch/torch.h"

enum { MAX_KEY = 1024 };

static const heft_torch_type unknown_type = { "unknown", NULL, HEFT_UNTYPED, true, 0, false };

bool heft_torch_has_unknown_class(const heft_torch_storage *s)
{
    return s->type == &unknown_type;
}

const heft_torch_type *heft_torch_type_of_class(const heft_pickle *p, uint32_t global,
                                                const char *end)
{
    heft_str suffix = heft_lit(end);
    if (!heft_pickle_is(p, global, HEFT_PICKLE_GLOBAL))
        return NULL;
    heft_str module = heft_pickle_module(p, global), name = heft_pickle_name(p, global);
    if (!heft_str_is(module, "torch") && !heft_str_is(module, "torch.storage") &&
        !heft_str_is(module, "torch.cuda"))
        return NULL;
    for (size_t i = 0; i < HEFT_TORCH_TYPES; i++) {
        heft_str storage = heft_lit(heft_torch_types[i].storage ? heft_torch_types[i].storage : "");
        size_t begin = storage.len - heft_lit("Storage").len;
        if (storage.len && name.len == begin + suffix.len &&
            !memcmp(name.ptr, storage.ptr, begin) &&
            !memcmp(name.ptr + begin, suffix.ptr, suffix.len))
            return &heft_torch_types[i];
    }
    return NULL;
}

const heft_torch_type *heft_torch_type_of_dtype(const heft_pickle *p, uint32_t global)
{
    if (!heft_pickle_is(p, global, HEFT_PICKLE_GLOBAL) ||
        !heft_str_is(heft_pickle_module(p, global), "torch"))
        return NULL;
    for (size_t i = 0; i < HEFT_TORCH_TYPES; i++)
        if (heft_str_is(heft_pickle_name(p, global), heft_torch_types[i].dtype))
            return &heft_torch_types[i];
    return NULL;
}

const heft_torch_type *heft_torch_type_stored_as(heft_dtype type)
{
    for (size_t i = 0; i < HEFT_TORCH_TYPES; i++)
        if (heft_torch_types[i].type && heft_torch_types[i].type == type &&
            !heft_torch_types[i].keeps_name)
            return &heft_torch_types[i];
    return NULL;
}

const heft_torch_type *heft_torch_type_named(heft_str stored_dtype)
{
    for (size_t i = 0; i < HEFT_TORCH_TYPES; i++)
        if (heft_torch_types[i].type && heft_torch_types[i].keeps_name &&
            heft_str_is(stored_dtype, heft_torch_types[i].dtype))
            return &heft_torch_types[i];
    return NULL;
}

heft_status heft_torch_keep_name(heft_index *x, uint32_t tensor, const heft_torch_type *type,
                                 uint64_t at)
{
    heft_str name = heft_lit(type->dtype);
    if (!type->keeps_name)
        return HEFT_OK;
    HEFT_TRY(heft_ix_attr_text(x, tensor, heft_lit("stored_dtype"), name));
    if (!type->is_quantized)
        heft_ix_note_format(x, HEFT_WARNING, "torch/similar-type", (heft_range){ at, 0 }, tensor,
                            "tensor %q has the type %q, whose bytes are listed as %s",
                            heft_ix_name(x, tensor), name, heft_dtype_name(type->type));
    return HEFT_OK;
}

/* ---- storages ---- */

static bool is_id_of(const heft_pickle *p, uint32_t persistent, const char *kind)
{
    uint32_t first = heft_pickle_item(p, heft_pickle_at(p, persistent)->as.id, 0);
    return heft_pickle_is(p, first, HEFT_PICKLE_TEXT) &&
           heft_str_is(heft_pickle_at(p, first)->as.s, kind);
}

uint32_t heft_torch_class(const heft_pickle *p, uint32_t value)
{
    if (!heft_pickle_is(p, value, HEFT_PICKLE_PERSISTENT))
        return value;
    uint32_t id = heft_pickle_at(p, value)->as.id, first = heft_pickle_item(p, id, 0);
    if (heft_pickle_is(p, first, HEFT_PICKLE_GLOBAL))
        return first;
    return is_id_of(p, value, "module") ? heft_pickle_item(p, id, 1) : value;
}

bool heft_torch_is_storage(const heft_pickle *p, uint32_t value)
{
    return heft_pickle_is(p, value, HEFT_PICKLE_PERSISTENT) && is_id_of(p, value, "storage");
}

static heft_status refuse(const heft_torch *t, uint32_t persistent, const char *what)
{
    return heft_error_set(t->x->err, HEFT_E_FORMAT, heft_pickle_offset(&t->p, persistent),
                          "%s: a persistent id does not name a storage: %s", t->p.c.what, what);
}

static heft_status read_storage(const heft_torch *t, uint32_t persistent, heft_torch_storage *s)
{
    const heft_pickle *p = &t->p;
    uint32_t id = heft_pickle_at(p, persistent)->as.id;
    uint32_t class = heft_pickle_item(p, id, 1), key = heft_pickle_item(p, id, 2);
    if (!heft_pickle_is(p, class, HEFT_PICKLE_GLOBAL))
        return refuse(t, persistent, "the class is missing");
    *s = (heft_torch_storage){ .class = heft_pickle_name(p, class),
                               .type = heft_torch_type_of_class(p, class, "Storage"),
                               .at = heft_pickle_offset(p, persistent),
                               .first_tensor = HEFT_NONE };
    if (!s->type)
        s->type = &unknown_type;
    if (!heft_pickle_is(p, key, HEFT_PICKLE_TEXT))
        return refuse(t, persistent, "the key is not a string");
    s->key = heft_pickle_at(p, key)->as.s;
    uint32_t location = heft_pickle_item(p, id, 3);
    s->is_meta = heft_pickle_is(p, location, HEFT_PICKLE_TEXT) &&
                 heft_str_is(heft_pickle_at(p, location)->as.s, "meta");
    if (s->key.len > MAX_KEY) /* keys are compared often; in practice, keys are short numbers */
        return refuse(t, persistent, "the key has more than 1024 bytes");
    if (!heft_pickle_u64(&s->elements, p, heft_pickle_item(p, id, 4)))
        return refuse(t, persistent, "the number of elements is missing");
    if (!heft_dtype_bytes(&s->bytes, s->type->type ? s->type->type : HEFT_U8, s->elements))
        return refuse(t, persistent, "the size exceeds 64 bits");
    return HEFT_OK;
}

static bool has_lower_key(const void *ctx, uint32_t a, uint32_t b)
{
    const heft_torch_storage *s = ctx;
    return heft_str_order(s[a].key, s[b].key) < 0;
}

/* Merge storages with the same key; *count becomes the number of distinct storages. */
static heft_status merge(const heft_torch *t, const heft_torch_storage *all, const uint32_t *order,
                         heft_torch_storage *to, uint32_t *count)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < *count; i++) {
        const heft_torch_storage *s = &all[order[i]], *previous = kept ? &to[kept - 1] : NULL;
        if (!previous || !heft_str_eq(previous->key, s->key))
            to[kept++] = *s;
        else if (!heft_str_eq(previous->class, s->class) || previous->elements != s->elements)
            return heft_error_set(t->x->err, HEFT_E_FORMAT, s->at,
                                  "storage %q is first a %q of %U elements, then a %q of %U",
                                  s->key, previous->class, previous->elements, s->class,
                                  s->elements);
    }
    *count = kept;
    return HEFT_OK;
}

heft_status heft_torch_storages(heft_torch *t)
{
    const heft_pickle *p = &t->p;
    uint32_t count = 0, n = 0;
    uint64_t bytes;
    for (uint32_t v = 0; v < p->values.len; v++)
        count += heft_torch_is_storage(p, v);
    heft_arena *arena = &t->x->arena;
    if (!count)
        return HEFT_OK;
    if (!heft_mul(&bytes, count, sizeof *t->storages) || bytes > SIZE_MAX)
        return heft_error_no_memory(t->x->err, "for a list of storages");
    heft_torch_storage *all = heft_arena_alloc(arena, (size_t)bytes, 8);
    heft_torch_storage *merged = heft_arena_alloc(arena, (size_t)bytes, 8);
    uint32_t *order = heft_arena_alloc(arena, 2 * (size_t)count * sizeof *order, 4);
    if (!all || !merged || !order)
        return heft_error_no_memory(t->x->err, "for a list of storages");
    for (uint32_t v = 0; v < p->values.len; v++) {
        if (!heft_torch_is_storage(p, v))
            continue;
        HEFT_TRY(read_storage(t, v, &all[n++]));
    }
    heft_sort_numbers(order, count, has_lower_key, all);
    t->storages = merged;
    t->storage_count = count;
    return merge(t, all, order, merged, &t->storage_count);
}

heft_status heft_torch_read_main(heft_torch *t, heft_window *in, heft_range where,
                                 uint64_t decoded_from, const char *what)
{
    HEFT_TRY(heft_torch_read_pickle(t, in, where, decoded_from, what));
    return heft_torch_storages(t);
}

heft_torch_storage *heft_torch_storage_find(const heft_torch *t, heft_str key)
{
    heft_bisect b = { .end = t->storage_count };
    while (heft_bisect_next(&b)) {
        int order = heft_str_order(t->storages[b.mid].key, key);
        if (!order)
            return &t->storages[b.mid];
        heft_bisect_narrow(&b, order < 0);
    }
    return NULL;
}
