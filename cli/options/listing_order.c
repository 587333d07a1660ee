#include "options/opt.h"

#include <stdlib.h>
#include <string.h>

#include "models/module_tree.h"
#include "options/cast_rules.h"

typedef struct sort_row {
    heft_str name;
    uint64_t number; /* size, offset or element type */
    uint32_t id;
} sort_row;

static int by_id(const sort_row *a, const sort_row *b)
{
    return a->id < b->id ? -1 : a->id > b->id;
}

static int by_name(const void *a, const void *b)
{
    const sort_row *x = a, *y = b;
    int order = name_order(x->name, y->name);
    return order ? order : by_id(x, y);
}

static int ascending(const void *a, const void *b)
{
    const sort_row *x = a, *y = b;
    return x->number < y->number ? -1 : x->number > y->number ? 1 : by_id(x, y);
}

static int descending(const void *a, const void *b)
{
    const sort_row *x = a, *y = b;
    return x->number > y->number ? -1 : x->number < y->number ? 1 : by_id(x, y);
}

static uint64_t bytes_of(const model_view *v, uint32_t id)
{
    uint64_t bytes = view_bytes(v, id);
    return bytes == HEFT_UNKNOWN_LENGTH ? 0 : bytes;
}

/* Return the offset in the shard, after all offsets of earlier shards. */
static uint64_t offset_of(const model_view *v, uint32_t tensor)
{
    const heft_file *f = v->stored;
    uint32_t id = view_stored(v, tensor);
    if (id == HEFT_NONE)
        return UINT64_MAX;
    heft_tensor t = heft_tensor_at(f, id);
    uint32_t data = heft_part_find(f, id, HEFT_STR("data"));
    if (data == HEFT_NONE && !t.part_count)
        return UINT64_MAX;
    heft_part p = heft_part_at(f, data == HEFT_NONE ? t.first_part : data);
    enum { OFFSET_BITS = 48 }; /* offsets of larger files are compared without the shard */
    return p.offset >> OFFSET_BITS ? p.offset : (uint64_t)p.shard << OFFSET_BITS | p.offset;
}

/* Quantised tensors come last, by the bits of a stored element. */
static uint64_t dtype_of(const model_view *v, uint32_t id)
{
    uint32_t q = view_quantised(v, id), dtype = heft_tensor_at(v->f, id).dtype;
    enum { BITS_AT = 32, IS_QUANTISED = 40 };
    return q == HEFT_NONE ? dtype
                          : UINT64_C(1) << IS_QUANTISED | dtype |
                                (uint64_t)heft_schemes_at(v->schemes, q).bits << BITS_AT;
}

static const struct {
    const char *name;
    uint64_t (*number)(const model_view *v, uint32_t id);
    int (*compare)(const void *a, const void *b);
} keys[] = {
    { "name", NULL, by_name },
    { "size", bytes_of, descending },
    { "offset", offset_of, ascending },
    { "dtype", dtype_of, ascending },
};
enum { KEYS = sizeof keys / sizeof *keys };

static size_t key_of(const char *sort)
{
    size_t k = 0;
    while (k + 1 < KEYS && strcmp(keys[k].name, sort) != 0)
        k++;
    return k;
}

/* Return the element type in a type: what follows the last slash, if there is a scheme. */
static heft_str dtype_in(heft_str type)
{
    size_t at = type.len;
    while (at && type.ptr[at - 1] != '/')
        at--;
    return (heft_str){ type.ptr + at, type.len - at };
}

int listing_order_check(const listing_order *l, const char *cmd)
{
    for (size_t i = 0; i < l->dtypes.count; i++)
        if (heft_dtype_find(dtype_in(str_of(l->dtypes.item[i]))) == HEFT_UNTYPED)
            return say_unknown_dtype(cmd, l->dtypes.item[i]);
    return CODE_DONE;
}

/* Give the selection a list of ids of its own. */
static bool own_ids(selection *s)
{
    if (s->ids)
        return true;
    s->ids = malloc(((size_t)s->count + 1) * sizeof *s->ids);
    for (uint32_t i = 0; s->ids && i < s->count; i++)
        s->ids[i] = i;
    return s->ids;
}

/* Return whether a type is the one that the user calls `name`. */
static bool is_called(heft_str type, heft_str name)
{
    heft_str dtype = dtype_in(type), wanted = dtype_in(name);
    return heft_dtype_find(dtype) == heft_dtype_find(wanted) &&
           str_same((heft_str){ type.ptr, type.len - dtype.len },
                    (heft_str){ name.ptr, name.len - wanted.len });
}

/* Return whether the type of the tensor is one of --dtype. */
static bool has_dtype(const listing_order *l, const model_view *v, uint32_t tensor)
{
    char buf[VIEW_TYPE_BYTES];
    heft_str type = view_type(buf, v, tensor);
    for (size_t i = 0; i < l->dtypes.count; i++)
        if (is_called(type, str_of(l->dtypes.item[i])))
            return true;
    return false;
}

static void keep_dtypes(selection *s, const listing_order *l, const model_view *v, const char *path)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < s->count; i++)
        if (has_dtype(l, v, s->ids[i]))
            s->ids[kept++] = s->ids[i];
    if (s->count && !kept)
        say(MESSAGE_WARNING, path, "no tensor has the element type of --dtype");
    s->count = kept;
}

static bool sort(selection *s, const model_view *v, size_t key)
{
    sort_row *rows = malloc(((size_t)s->count + 1) * sizeof *rows);
    bool ok = rows;
    for (uint32_t i = 0; ok && i < s->count; i++)
        rows[i] = (sort_row){ heft_tensor_at(v->f, s->ids[i]).name,
                              keys[key].number ? keys[key].number(v, s->ids[i]) : 0, s->ids[i] };
    if (ok)
        qsort(rows, s->count, sizeof *rows, keys[key].compare);
    for (uint32_t i = 0; ok && i < s->count; i++)
        s->ids[i] = rows[i].id;
    free(rows);
    return ok;
}

bool listing_order_apply(selection *s, const listing_order *l, const model_view *v,
                         const char *path)
{
    if (!l->sort && !l->dtypes.count)
        return true;
    bool ok = own_ids(s);
    if (ok && l->dtypes.count)
        keep_dtypes(s, l, v, path);
    if (ok && l->sort)
        ok = sort(s, v, key_of(l->sort));
    if (!ok)
        say_status(HEFT_E_NOMEM, path, "no memory for a list of %u tensors", s->count);
    return ok;
}
