/* hdf5_lists.c - checks what the worker has written, before anything is read through it.
 *
 * A library that a damaged file leads astray may write anywhere in the worker, into the lists too.
 * The lists are copied to memory that the worker does not have, and then checked: each pointer
 * leads into them, each count and range is within what it counts. */
#include "port/libraries/hdf5_library.h"

#include <string.h>

#include "base/checked_math.h"
#include "base/text.h"

typedef struct lists {
    const heft_hdf5_file *f;
    uintptr_t start;
    size_t size;
} lists;

static bool has(const lists *l, const void *p, uint64_t count, size_t element, size_t align)
{
    uintptr_t at = (uintptr_t)p;
    uint64_t bytes;
    if (!count)
        return true;
    return heft_mul(&bytes, count, element) && at >= l->start && !(at % align) &&
           heft_range_in((heft_range){ at - l->start, bytes }, l->size);
}

static bool has_vec(const lists *l, const heft_vec *v, size_t element)
{
    return has(l, v->ptr, v->len, element, sizeof(uint64_t));
}

static bool has_bytes(const lists *l, heft_str s)
{
    return has(l, s.ptr, s.len, 1, 1);
}

static bool has_text(const lists *l, heft_str s)
{
    return has_bytes(l, s) && heft_str_is_utf8(s);
}

/* ---- arrays ---- */

/* The elements fill the range: so many bytes as the shape takes. */
static bool fits_shape(const heft_container_array *a)
{
    const heft_dtype_info *type = heft_dtype_get(a->dtype);
    uint64_t n, bytes;
    if (!heft_product(&n, a->dims, a->rank))
        return false;
    return a->dtype == HEFT_UNTYPED ||
           (type && type->block_elems == 1 && heft_mul(&bytes, n, type->block_bytes) &&
            bytes == a->bytes);
}

/* The description ends within the lists. */
static bool is_terminated(const lists *l, const char *text)
{
    if (!has(l, text, 1, 1, 1))
        return false;
    size_t left = l->size - ((uintptr_t)text - l->start);
    heft_str s = { text, strnlen(text, left) };
    return s.len < left && heft_str_is_utf8(s);
}

static bool is_array(const lists *l, const heft_container_array *a)
{
    uint64_t size = a->is_decoded ? l->f->decoded_bytes : l->f->file_bytes;
    uint32_t own = l->f->attributes.len - l->f->group_attributes.len;
    heft_range attributes = { a->first_attribute, a->attribute_count };
    if (a->type ? !is_terminated(l, a->type) : a->dtype == HEFT_UNTYPED)
        return false;
    return has_text(l, a->name) && a->rank <= HEFT_HDF5_RANK &&
           has(l, a->dims, a->rank, sizeof *a->dims, sizeof *a->dims) && fits_shape(a) &&
           a->is_decoded <= 1 && a->is_big_endian <= 1 && heft_range_in(attributes, own) &&
           (a->dtype == HEFT_UNTYPED || !a->bytes ||
            heft_range_in((heft_range){ a->offset, a->bytes }, size));
}

/* ---- decoded arrays ---- */

static bool has_bands(const lists *l, const heft_hdf5_decoded *d)
{
    uint64_t n, step;
    if (!has(l, d->dims, 2 * (uint64_t)d->rank, sizeof *d->dims, sizeof *d->dims) ||
        !heft_product(&n, d->dims, d->rank) || !heft_mul(&n, n, d->element) || n != d->bytes ||
        !heft_mul(&step, d->element, d->dims[d->rank]))
        return false;
    for (uint32_t i = 1; i < d->rank; i++)
        if (!heft_mul(&step, step, d->dims[i]))
            return false;
    return step && step <= HEFT_HDF5_TOGETHER;
}

static bool is_decoded(const lists *l, const heft_hdf5_decoded *d, uint64_t start)
{
    if (d->start != start || !d->bytes || !d->element || d->rank > H5S_MAX_RANK ||
        d->filter_count > HEFT_HDF5_FILTERS)
        return false;
    if (d->rank)
        return has_bands(l, d);
    return d->is_compact ? d->bytes <= HEFT_HDF5_TOGETHER : has(l, d->fill, d->element, 1, 1);
}

static bool are_decoded(const lists *l)
{
    const heft_hdf5_decoded *d = l->f->decoded_arrays.ptr;
    uint64_t end = 0;
    for (uint32_t i = 0; i < l->f->decoded_arrays.len; i++)
        if (!is_decoded(l, &d[i], end) || !heft_add(&end, end, d[i].bytes))
            return false;
    return end == l->f->decoded_bytes;
}

/* ---- attributes ---- */

static bool is_value(const lists *l, const heft_value *v)
{
    uint8_t truth;
    memcpy(&truth, &v->as, 1);
    if (!has_text(l, v->key) || v->stored >= HEFT_DTYPES)
        return false;
    switch (v->kind) {
    case HEFT_KIND_NULL:
    case HEFT_KIND_INT:
    case HEFT_KIND_UINT:
    case HEFT_KIND_FLOAT:
        return true;
    case HEFT_KIND_BOOL:
        return truth <= 1;
    case HEFT_KIND_STR:
        return has_text(l, v->as.s);
    case HEFT_KIND_BYTES:
        return has_bytes(l, v->as.s);
    default:
        return false;
    }
}

/* Elements of a list are together, and counted from 0. */
static bool are_attributes(const lists *l, const heft_container_attribute *a, uint32_t len)
{
    for (uint32_t i = 0, n; i < len; i += n) {
        n = a[i].count ? a[i].count : 1;
        if (n > len - i)
            return false;
        for (uint32_t k = 0; k < n; k++)
            if (a[i + k].index != k || a[i + k].count != a[i].count ||
                !has_text(l, a[i + k].owner) || !is_value(l, &a[i + k].value))
                return false;
    }
    return true;
}

/* An array's own begin and end with a list. */
static bool has_whole_lists(const lists *l, const heft_container_array *a)
{
    const heft_container_attribute *all = l->f->attributes.ptr;
    uint32_t end = a->first_attribute + a->attribute_count;
    return !a->attribute_count ||
           (!all[a->first_attribute].index && (end == l->f->attributes.len || !all[end].index));
}

bool heft_hdf5_lists_are_sound(const heft_hdf5_file *f, const void *start, size_t size)
{
    lists l = { f, (uintptr_t)start, size };
    const heft_container_array *arrays = f->arrays.ptr;
    const heft_container_attribute *all = f->attributes.ptr;
    const heft_container_alias *aliases = f->aliases.ptr;
    if (!has_vec(&l, &f->arrays, sizeof *arrays) || !has_vec(&l, &f->attributes, sizeof *all) ||
        !has_vec(&l, &f->aliases, sizeof *aliases) ||
        !has_vec(&l, &f->decoded_arrays, sizeof(heft_hdf5_decoded)) ||
        f->group_attributes.len > f->attributes.len || !are_decoded(&l))
        return false;
    uint32_t own = f->attributes.len - f->group_attributes.len;
    if (!are_attributes(&l, all, own) ||
        (f->group_attributes.len && !are_attributes(&l, all + own, f->group_attributes.len)))
        return false;
    for (uint32_t i = 0; i < f->arrays.len; i++)
        if (!is_array(&l, &arrays[i]) || !has_whole_lists(&l, &arrays[i]))
            return false;
    for (uint32_t i = 0; i < f->aliases.len; i++)
        if (!has_text(&l, aliases[i].name) ||
            (aliases[i].target.ptr && !has_text(&l, aliases[i].target)))
            return false;
    return true;
}

/* ---- errors ---- */

/* Rules that the worker names, by number; 0: none. */
static const char *const rules[] = { NULL, "keras/outside", "keras/fletcher32", "heft/limit-index",
                                     "keras/library" };

uint32_t heft_hdf5_rule_number(const char *rule)
{
    uint32_t i = sizeof rules / sizeof *rules - 1;
    while (i && (!rule || strcmp(rules[i], rule)))
        i--;
    return i;
}

bool heft_hdf5_error_is_sound(heft_error *e, heft_status st, uint32_t rule)
{
    static const heft_status known[] = { HEFT_E_FORMAT, HEFT_E_UNSUPPORTED, HEFT_E_LIMIT,
                                         HEFT_E_NOMEM,  HEFT_E_IO,          HEFT_E_CHECKSUM };
    heft_str text = { e->message, strnlen(e->message, sizeof e->message) };
    bool ok = text.len < sizeof e->message && heft_str_is_utf8(text) &&
              rule < sizeof rules / sizeof *rules && (uint32_t)e->about <= HEFT_ABOUT_TARGET;
    bool is_known = false;
    for (size_t i = 0; ok && i < text.len; i++)
        ok = (uint8_t)text.ptr[i] >= ' ' && text.ptr[i] != 0x7f;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        is_known = is_known || st == known[i];
    e->status = st;
    e->input = 0;
    e->rule = ok ? rules[rule] : NULL;
    return ok && is_known;
}
