/* hdf5_attributes.c - the attributes of datasets and groups: texts, lists of texts, numbers. */
#include "port/libraries/hdf5_library.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

enum { MOST_BYTES = 64 << 20, MOST_NUMBERS = 1 << 20 };

typedef struct reading {
    heft_hdf5_file *f;
    heft_str owner;
    heft_vec *to;
    heft_status st;
} reading;

typedef struct attribute {
    heft_str name;
    hid_t id, type, space;
    uint64_t count;
    bool is_scalar;
} attribute;

static heft_status add(reading *r, heft_value v, uint32_t index, uint32_t count)
{
    heft_container_attribute a = { .owner = r->owner, .value = v, .index = index, .count = count };
    return heft_vec_add(&r->f->mem, r->to, &a, sizeof a) ? HEFT_OK : heft_hdf5_no_memory(r->f);
}

/* ---- texts ---- */

static heft_status add_text(reading *r, const attribute *a, const char *text, size_t most,
                            uint32_t i)
{
    heft_str s = { text, strnlen(text, most) };
    heft_value v = { .kind = heft_str_is_utf8(s) ? HEFT_KIND_STR : HEFT_KIND_BYTES,
                     .key = a->name };
    v.stored = v.kind == HEFT_KIND_BYTES ? HEFT_U8 : HEFT_UNTYPED;
    v.as.s = heft_arena_copy(&r->f->arena, s);
    if (!v.as.s.ptr)
        return heft_hdf5_no_memory(r->f);
    return add(r, v, i, (uint32_t)a->count);
}

/* The library has texts of any length in memory of its own, with pointers in `buf`. */
static heft_status add_texts(reading *r, const attribute *a, const char *buf, size_t each)
{
    bool is_variable = heft_hdf5->H5Tis_variable_str(a->type) > 0;
    heft_status st = HEFT_OK;
    for (uint32_t i = 0; i < a->count && !st; i++) {
        const char *text = buf + i * each;
        if (is_variable)
            memcpy(&text, buf + i * each, sizeof text);
        st = add_text(r, a, text ? text : "", is_variable && text ? strlen(text) : each, i);
    }
    if (is_variable)
        heft_hdf5->H5Dvlen_reclaim(a->type, a->space, H5P_DEFAULT, (void *)(uintptr_t)buf);
    return st;
}

/* ---- numbers ---- */

static void exchange_bytes(uint8_t *p, size_t element)
{
    for (size_t i = 0, k = element - 1; i < k; i++, k--) {
        uint8_t kept = p[i];
        p[i] = p[k];
        p[k] = kept;
    }
}

static heft_value number_of(heft_dtype t, const uint8_t *p, size_t bytes)
{
    uint64_t u = 0;
    heft_value v = { .kind = HEFT_KIND_UINT, .stored = t };
    for (size_t i = bytes; i-- > 0;)
        u = u << 8 | p[i];
    bool is_signed = t == HEFT_I8 || t == HEFT_I16 || t == HEFT_I32 || t == HEFT_I64;
    if (is_signed && bytes < 8 && u >> (8 * bytes - 1))
        u |= ~UINT64_C(0) << 8 * bytes;
    v.as.u = u;
    if (is_signed) {
        v.kind = HEFT_KIND_INT;
        v.as.i = (int64_t)u;
    } else if (t == HEFT_BOOL) {
        v.kind = HEFT_KIND_BOOL;
        v.as.b = u;
    } else if (t == HEFT_F32) {
        uint32_t bits = (uint32_t)u;
        float value;
        memcpy(&value, &bits, sizeof value);
        v.kind = HEFT_KIND_FLOAT;
        v.as.f = (double)value;
    } else if (t == HEFT_F64) {
        v.kind = HEFT_KIND_FLOAT;
        memcpy(&v.as.f, &u, sizeof v.as.f);
    }
    return v;
}

static bool is_number(heft_dtype t)
{
    return (t >= HEFT_BOOL && t <= HEFT_I64) || t == HEFT_F32 || t == HEFT_F64;
}

static heft_status add_numbers(reading *r, const attribute *a, const heft_hdf5_type *t,
                               uint8_t *buf)
{
    for (uint32_t i = 0; i < a->count; i++) {
        uint8_t *p = buf + i * t->bytes;
        if (t->is_big_endian)
            exchange_bytes(p, t->bytes);
        heft_value v = number_of(t->dtype, p, t->bytes);
        v.key = a->name;
        HEFT_TRY(add(r, v, i, (uint32_t)a->count));
    }
    return HEFT_OK;
}

/* ---- an attribute ---- */

static heft_status add_unread(reading *r, const attribute *a, uint32_t count)
{
    return add(r, (heft_value){ .kind = HEFT_KIND_NULL, .key = a->name }, 0, count);
}

static heft_status read_values(reading *r, const attribute *a, const heft_hdf5_type *t,
                               bool is_text)
{
    char *buf = calloc((size_t)a->count, t->bytes);
    if (!buf)
        return heft_hdf5_no_memory(r->f);
    heft_status st = heft_hdf5->H5Aread(a->id, a->type, buf) < 0
                         ? heft_hdf5_fail(r->f, "the attribute", a->name)
                     : is_text ? add_texts(r, a, buf, t->bytes)
                               : add_numbers(r, a, t, (uint8_t *)buf);
    free(buf);
    return st;
}

static heft_status read_attribute(reading *r, attribute *a)
{
    hssize_t count = heft_hdf5->H5Sget_simple_extent_npoints(a->space);
    heft_hdf5_type t = heft_hdf5_type_of(a->type);
    bool is_text = heft_hdf5->H5Tget_class(a->type) == H5T_STRING;
    int kind = heft_hdf5->H5Sget_simple_extent_type(a->space);
    a->count = count > 0 && kind != H5S_NULL ? (uint64_t)count : 0;
    bool is_read = a->count <= MOST_NUMBERS && t.bytes && t.bytes <= MOST_BYTES / (a->count + 1) &&
                   (is_text || (is_number(t.dtype) && !t.rank));
    if (!a->count || !is_read)
        return add_unread(r, a, a->count ? 1 : 0);
    return read_values(r, a, &t, is_text);
}

static herr_t visit(hid_t object, const char *name, const H5A_info_t *info, void *ctx)
{
    reading *r = ctx;
    (void)info;
    attribute a = { .id = heft_hdf5->H5Aopen(object, name, H5P_DEFAULT), .type = -1, .space = -1 };
    heft_str found = { name, strlen(name) };
    a.type = a.id >= 0 ? heft_hdf5->H5Aget_type(a.id) : -1;
    a.space = a.id >= 0 ? heft_hdf5->H5Aget_space(a.id) : -1;
    a.name = heft_arena_copy(&r->f->arena, found);
    if (!a.name.ptr)
        r->st = heft_hdf5_no_memory(r->f);
    else if (!heft_str_is_utf8(found))
        r->st = heft_error_plain(r->f->err, HEFT_E_UNSUPPORTED,
                                 "the attribute %q has a name that is not UTF-8", found);
    else if (a.type < 0 || a.space < 0)
        r->st = heft_hdf5_fail(r->f, "the attribute", found);
    else
        r->st = read_attribute(r, &a);
    if (a.space >= 0)
        heft_hdf5->H5Sclose(a.space);
    if (a.type >= 0)
        heft_hdf5->H5Tclose(a.type);
    if (a.id >= 0)
        heft_hdf5->H5Aclose(a.id);
    return r->st ? -1 : 0;
}

heft_status heft_hdf5_add_attributes(heft_hdf5_file *f, hid_t object, heft_str owner, heft_vec *to)
{
    reading r = { .f = f, .owner = owner, .to = to };
    hsize_t at = 0;
    herr_t ok = heft_hdf5->H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_INC, &at, visit, &r);
    return r.st || ok >= 0
               ? r.st
               : heft_hdf5_fail(f, "the attributes of", owner.len ? owner : heft_lit("/"));
}
