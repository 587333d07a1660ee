/* zt2_values.c - writes attributes of the file and of objects as deterministic CBOR: keys are
 * sorted on every level, without recursion. */
#include "base/sort.h"
#include "format/ztensor/zt2.h"
#include "model/open_containers.h"

enum { FILE_DEPTH = 2, OBJECT_DEPTH = 4 }; /* nesting depth of the map of attributes */

uint32_t heft_zt2_max_values(const heft_index *x)
{
    uint32_t max_depth = x->values.len;
    heft_value v;
    for (uint32_t t = 0; t < heft_ix_tensors(x); t++) {
        uint32_t n = 0;
        while ((heft_ix_row(x, t)->attrs || heft_ix_row(x, t)->flags) &&
               heft_ix_attribute(&v, x, t, n))
            n++;
        max_depth = n > max_depth ? n : max_depth;
    }
    return max_depth;
}

int heft_zt2_key_order(heft_str a, heft_str b)
{
    if (a.len != b.len)
        return a.len < b.len ? -1 : 1;
    return heft_str_order(a, b);
}

/* ---- what can be written ---- */

const char *heft_zt2_value_fault(const heft_index *x, uint32_t tensor, uint32_t i)
{
    heft_value v = heft_zt_value_at(x, tensor, i);
    heft_open_containers open;
    uint32_t end = heft_value_next(&v, i);
    uint32_t max_depth = HEFT_ZT2_MAX_DEPTH - (tensor == HEFT_NONE ? FILE_DEPTH : OBJECT_DEPTH);
    const char *reason = heft_zt2_bad_name(v.key);
    open.depth = 0;
    for (; !reason && i < end; i++) {
        v = heft_zt_value_at(x, tensor, i);
        if (!heft_str_is_utf8(v.key))
            reason = "a key that is not UTF-8";
        else if (heft_value_nests(&v) && open.depth == max_depth)
            reason = "lists and maps nested deeper than 32 levels";
        else
            heft_open_value(&open, &v);
        while (heft_open_leave(&open))
            continue;
    }
    return reason;
}

/* Return true if `key` is the attribute in which zt2_object.c stores the type of the part with
 * this role. */
static bool is_type_key(heft_str key, heft_str role)
{
    enum { PREFIX = 13 }; /* length of "stored_dtype." */
    if (heft_str_is(role, "data"))
        return heft_str_is(key, "stored_dtype");
    return heft_str_begins(key, "stored_dtype.") &&
           heft_str_eq((heft_str){ key.ptr + PREFIX, key.len - PREFIX }, role);
}

bool heft_zt2_preserved_type(const heft_index *x, uint32_t tensor, uint32_t part, heft_str *storage,
                             heft_str *logical)
{
    const heft_ix_part_row *row = heft_ix_part_row_at(x, part);
    heft_value v;
    for (uint32_t i = 0; row->dtype == HEFT_UNTYPED && heft_ix_attribute(&v, x, tensor, i); i++) {
        size_t colon = 0;
        if (!is_type_key(v.key, heft_ix_role(x, row->role)) || v.kind != HEFT_KIND_STR)
            continue;
        while (colon < v.as.s.len && v.as.s.ptr[colon] != ':')
            colon++;
        *storage = (heft_str){ v.as.s.ptr, colon };
        if (colon + 1 >= v.as.s.len)
            return false;
        *logical = (heft_str){ v.as.s.ptr + colon + 1, v.as.s.len - colon - 1 };
        for (size_t k = 0; k < heft_zt2_type_count; k++)
            if (!heft_zt2_types[k].logical && heft_str_is(*storage, heft_zt2_types[k].storage))
                return true;
        return false;
    }
    return false;
}

/* Return true if the attribute will be written as the type of a part instead. */
static bool is_preserved_type(const heft_index *x, uint32_t tensor, heft_str key)
{
    heft_str storage, logical;
    const heft_ix_tensor_row *row = tensor == HEFT_NONE ? NULL : heft_ix_row(x, tensor);
    if (!row || !heft_str_begins(key, "stored_dtype"))
        return false;
    for (uint32_t part = row->first_part; part < row->first_part + row->part_count; part++)
        if (is_type_key(key, heft_ix_role(x, heft_ix_part_row_at(x, part)->role)))
            return heft_zt2_preserved_type(x, tensor, part, &storage, &logical);
    return false;
}

/* ---- writing ---- */

typedef struct value_owner {
    const heft_index *x;
    uint32_t tensor;
} value_owner;

static bool key_less(const void *ctx, uint32_t a, uint32_t b)
{
    const value_owner *k = ctx;
    return heft_zt2_key_order(heft_zt_value_at(k->x, k->tensor, a).key,
                              heft_zt_value_at(k->x, k->tensor, b).key) < 0;
}

static void sort_keys(heft_zt2_values *v, uint32_t tensor, uint32_t *ids, uint32_t n)
{
    value_owner k = { v->x, tensor };
    for (uint32_t i = 1; i < n && !v->reordered; i++)
        v->reordered = key_less(&k, ids[i], ids[i - 1]);
    heft_sort(ids, v->ids + v->scratch, n, key_less, &k);
    for (uint32_t i = 1; i < n; i++) {
        heft_str key = heft_zt_value_at(v->x, tensor, ids[i]).key;
        if (heft_str_eq(heft_zt_value_at(v->x, tensor, ids[i - 1]).key, key))
            v->duplicate_key = key;
    }
}

/* Collect the ids of all top-level values that can be written in v->ids; return their number. */
static uint32_t list_values(heft_zt2_values *v, uint32_t tensor)
{
    uint32_t n = 0;
    heft_value value;
    for (uint32_t i = 0; heft_zt_value(&value, v->x, tensor, i); i = heft_value_next(&value, i))
        if (!heft_zt2_value_fault(v->x, tensor, i) && !is_preserved_type(v->x, tensor, value.key))
            v->ids[n++] = i;
    return n;
}

bool heft_zt2_has_values(heft_zt2_values *v, uint32_t tensor)
{
    const heft_ix_tensor_row *row = tensor == HEFT_NONE ? NULL : heft_ix_row(v->x, tensor);
    return (!row || row->attrs || row->flags) && list_values(v, tensor);
}

typedef struct level { /* a list or map being written */
    uint32_t *ids;
    uint32_t left, count;
    bool is_map;
} level;

/* Collect the children of container i in `ids`. */
static level open_level(heft_zt2_values *v, uint32_t tensor, uint32_t i, uint32_t *ids)
{
    heft_value c = heft_zt_value_at(v->x, tensor, i);
    level l = { ids, 0, 0, c.kind == HEFT_KIND_MAP };
    for (uint32_t k = i + 1; k < c.as.container.end;) {
        heft_value child = heft_zt_value_at(v->x, tensor, k);
        ids[l.count++] = k;
        k = heft_value_next(&child, k);
    }
    l.left = l.count;
    if (l.is_map)
        sort_keys(v, tensor, ids, l.count);
    return l;
}

void heft_zt2_put_values(heft_zt2_values *v, heft_out *o, uint32_t tensor)
{
    level stack[HEFT_ZT2_MAX_DEPTH];
    uint32_t depth = 1, used = list_values(v, tensor);
    stack[0] = (level){ v->ids, used, used, true };
    sort_keys(v, tensor, v->ids, used);
    heft_cbor_put_map(o, used);
    while (depth) {
        level *l = &stack[depth - 1];
        if (!l->left) {
            used -= l->count;
            depth--;
            continue;
        }
        uint32_t i = *l->ids++;
        heft_value value = heft_zt_value_at(v->x, tensor, i);
        l->left--;
        if (l->is_map)
            heft_cbor_put_text(o, value.key);
        heft_zt_put_scalar(o, &value);
        if (heft_value_nests(&value)) {
            stack[depth] = open_level(v, tensor, i, v->ids + used);
            used += stack[depth++].count;
        }
    }
}
