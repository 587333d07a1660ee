/* burnpack_manifest.c - parsing of the CBOR manifest: tensors, metadata, scalars.  burnpack.c
 * shows the layout.
 *
 * Like the reference reader, the parser ignores tags and unknown keys, and accepts fields in any
 * order and items of indefinite length.  Of a duplicate key, the reference uses the last value;
 * Heft does so for metadata and scalars, and refuses all other duplicates.
 */
#include "format/burnpack/burnpack.h"
#include "model/values.h"

typedef struct reader {
    heft_cbor c;
    heft_index *x;
    heft_burnpack_manifest *manifest;
    heft_burnpack_type_cache types;
    bool noted_unknown_field, noted_unknown_key;
    bool noted_indefinite_name;
} reader;

static void note(reader *r, heft_severity s, const char *rule, uint32_t tensor, const char *text)
{
    heft_ix_note(r->x, s, rule, heft_cbor_offset(&r->c, r->c.item), tensor, text);
}

static bool key_is(const heft_cbor *c, const char *name, size_t len)
{
    return c->str.len == len && !memcmp(c->str.ptr, name, len);
}

/* Return true if the item can be a key of the root or of a descriptor.  The reference reader
 * accepts byte strings as keys, too. */
static bool is_key_kind(heft_cbor_kind k)
{
    return k == HEFT_CBOR_TEXT || k == HEFT_CBOR_BYTES;
}

/* ciborium, the parser that Burn uses, accepts indefinite length in values, but not in field
 * names. */
static void note_indefinite_name(reader *r, bool is_indefinite, uint32_t tensor)
{
    if (is_indefinite && !r->noted_indefinite_name)
        note(r, HEFT_WARNING, "burnpack/indefinite-name", tensor,
             "the name of a field or type is a text of indefinite length, which Burn refuses "
             "(there may be more)");
    r->noted_indefinite_name = r->noted_indefinite_name || is_indefinite;
}

/* ---- a tensor ---- */

enum { DTYPE = 1, SHAPE = 2, OFFSETS = 4, PARAM_ID = 8, REQUIRED = 7 };
static const char *const field_names[] = { "dtype", "shape", "data_offsets", "param_id" };

typedef struct descriptor {
    heft_str name;
    uint64_t at, begin, end;
    uint32_t id, fields;
} descriptor;

static const char *field_name(uint32_t field)
{
    uint32_t i = 0;
    while (field >> i != 1)
        i++;
    return field_names[i];
}

/* Get the unsigned integer of the last item, of kind k; false: the item is not an unsigned integer.
 * Warn about a bignum: the reference reader accepts bignums, but no writer stores any. */
static bool get_u64(reader *r, const descriptor *d, heft_cbor_kind k, uint64_t *out)
{
    if (k == HEFT_CBOR_BYTES)
        note(r, HEFT_WARNING, "burnpack/bignum", d->id,
             "a number is stored as a bignum, which no writer does");
    return heft_cbor_u64(out, &r->c, k);
}

static bool read_u64(reader *r, const descriptor *d, uint64_t *out)
{
    return get_u64(r, d, heft_cbor_next(&r->c), out);
}

static heft_status read_shape(reader *r, const descriptor *d)
{
    heft_cbor_kind k = heft_cbor_next(&r->c);
    uint64_t dim;
    if (k == HEFT_CBOR_BYTES) { /* the reference reads every byte as a dimension */

        note(r, HEFT_WARNING, "burnpack/shape-bytes", d->id,
             "its shape is stored as a byte string, which no writer does");
        for (size_t i = 0; i < r->c.str.len; i++)
            HEFT_TRY(heft_ix_dim(r->x, (uint8_t)r->c.str.ptr[i]));
        return HEFT_OK;
    }
    if (k != HEFT_CBOR_ARRAY)
        return heft_cbor_fail(&r->c, "tensor %q: its shape is not a list", d->name);
    while ((k = heft_cbor_next(&r->c)) != HEFT_CBOR_ARRAY_END) {
        if (!get_u64(r, d, k, &dim))
            return heft_cbor_fail(
                &r->c, "tensor %q: a dimension is not a number from 0 to 2^64 - 1", d->name);
        HEFT_TRY(heft_ix_dim(r->x, dim));
    }
    return HEFT_OK;
}

static heft_status read_offsets(reader *r, descriptor *d)
{
    heft_cbor *c = &r->c;
    if (heft_cbor_next(c) != HEFT_CBOR_ARRAY || !read_u64(r, d, &d->begin) ||
        !read_u64(r, d, &d->end) || heft_cbor_next(c) != HEFT_CBOR_ARRAY_END)
        return heft_cbor_fail(c, "tensor %q: its data_offsets are not a list of two numbers",
                              d->name);
    if (d->begin > d->end)
        return heft_cbor_fail(c, "tensor %q: its data_offsets begin at %U but end at %U", d->name,
                              d->begin, d->end);
    return HEFT_OK;
}

static heft_status read_param_id(reader *r, const descriptor *d)
{
    heft_cbor_kind k = heft_cbor_next(&r->c);
    uint64_t id;
    if (k == HEFT_CBOR_NULL)
        return HEFT_OK;
    if (!get_u64(r, d, k, &id))
        return heft_cbor_fail(&r->c, "tensor %q: its param_id is not a number from 0 to 2^64 - 1",
                              d->name);
    return heft_ix_param_id(r->x, d->id, id);
}

/* Skip the value of an unknown key.  Note only the first unknown key, but register every key as
 * an omission. */
static heft_status skip_unknown(reader *r, bool *is_noted, const char *rule, uint32_t tensor,
                                const char *text, const char *omitted)
{
    if (!*is_noted)
        note(r, HEFT_NOTE, rule, tensor, text);
    *is_noted = true;
    heft_ix_omit(r->x, HEFT_WARNING, rule, r->c.str, omitted);
    return heft_cbor_skip(&r->c, heft_cbor_next(&r->c));
}

/* Read the value of the last key. */
static heft_status read_field(reader *r, descriptor *d, heft_burnpack_type *type)
{
    const heft_cbor *c = &r->c;
    uint32_t field = key_is(c, "dtype", 5)           ? DTYPE
                     : key_is(c, "shape", 5)         ? SHAPE
                     : key_is(c, "data_offsets", 12) ? OFFSETS
                     : key_is(c, "param_id", 8)      ? PARAM_ID
                                                     : 0;
    if (heft_unlikely(d->fields & field))
        return heft_cbor_fail(&r->c, "tensor %q: its %s occurs twice", d->name, field_name(field));
    d->fields |= field;
    if (field == SHAPE)
        return read_shape(r, d);
    if (field == OFFSETS)
        return read_offsets(r, d);
    if (field == PARAM_ID)
        return read_param_id(r, d);
    if (!field)
        return skip_unknown(
            r, &r->noted_unknown_field, "burnpack/unknown-field", d->id,
            "its descriptor has an unknown field (other descriptors may have one, too)",
            "is an unknown field of a tensor's descriptor and is left out");
    heft_status st = heft_burnpack_read_type(type, &r->c, r->x, &r->types, d->name);
    note_indefinite_name(r, !st && r->types.has_indefinite_name, d->id);
    return st;
}

/* Add the part with a relative offset: data_start is known only after all descriptors are
 * read. */
static heft_status finish_tensor(reader *r, const descriptor *d, const heft_burnpack_type *type)
{
    heft_index *x = r->x;
    heft_range where = { d->begin, d->end - d->begin };
    heft_status st = HEFT_OK;
    heft_ix_row(x, d->id)->dtype = type->dtype;
    uint32_t generations = r->manifest->generations & type->generations;
    if (!generations && r->manifest->conflict_tensor == HEFT_NONE)
        r->manifest->conflict_tensor = d->id;
    r->manifest->generations = generations;
    if (!type->is_opaque)
        st = heft_ix_dense(x, d->id, d->at, where.offset, where.length);
    else if (!(st = heft_ix_set_layout(x, d->id, heft_lit(heft_burn_qfloat))))
        st = heft_ix_part(x, d->id, heft_lit("data"), HEFT_U8, where, where.length, HEFT_RAW);
    if (st || !type->stored.ptr)
        return st;
    return heft_ix_attr_text(x, d->id, heft_lit("stored_dtype"), type->stored);
}

/* Read a descriptor; the name of the tensor was the last item. */
static heft_status read_descriptor(reader *r)
{
    heft_cbor *c = &r->c;
    descriptor d = { .name = c->str, .at = heft_cbor_offset(c, c->item) };
    heft_burnpack_type type = { .dtype = HEFT_UNTYPED };
    heft_cbor_kind k;
    uint64_t *dims;
    HEFT_TRY(heft_ix_tensor(r->x, d.name, HEFT_UNTYPED, 0, &dims, &d.id));
    if (heft_cbor_next(c) != HEFT_CBOR_MAP)
        return heft_cbor_fail(c, "tensor %q: its descriptor is not a map", d.name);
    while ((k = heft_cbor_next(c)) != HEFT_CBOR_MAP_END) {
        if (!is_key_kind(k))
            return heft_cbor_fail(c, "tensor %q: a key of its descriptor is not a text", d.name);
        note_indefinite_name(r, c->flags & HEFT_CBOR_INDEFINITE, d.id);
        HEFT_TRY(read_field(r, &d, &type));
    }
    uint32_t missing = REQUIRED & ~d.fields;
    if (missing)
        return heft_error_set(r->x->err, HEFT_E_FORMAT, d.at, "tensor %q: it has no %s", d.name,
                              field_name(missing & (0 - missing)));
    HEFT_TRY(finish_tensor(r, &d, &type));
    heft_burnpack_count_tensor(r->manifest, r->x, d.id, d.at);
    return HEFT_OK;
}

static heft_status read_tensors(reader *r)
{
    enum { MIN_BYTES = 34 }; /* descriptor of a scalar with an empty name */
    heft_cbor *c = &r->c;
    heft_cbor_kind k = heft_cbor_next(c);
    uint64_t at = heft_cbor_offset(c, c->item), count = c->u;
    if (k != HEFT_CBOR_MAP)
        return heft_cbor_fail(c, "\"tensors\" is not a map");
    if (c->flags & HEFT_CBOR_INDEFINITE)
        count = 0;
    heft_status st = heft_ix_reserve(r->x, at, count, (uint64_t)(c->end - c->p), MIN_BYTES);
    if (!st && !HEFT_IS_SMALL)
        heft_burnpack_read_parallel(c, r->x, r->manifest);
    for (bool read = false; !st;) {
        if (!HEFT_IS_SMALL) /* the fast path is code for speed only */
            st = heft_burnpack_read_canonical(c, r->x, r->manifest, &read);
        if (st || read)
            continue;
        if ((k = heft_cbor_next(c)) == HEFT_CBOR_MAP_END)
            break;
        st = k == HEFT_CBOR_TEXT ? read_descriptor(r)
                                 : heft_cbor_fail(c, "the name of a tensor is not a text");
    }
    if (!st && heft_ix_tensors(r->x) > HEFT_BURNPACK_MAX_TENSORS)
        heft_ix_note(r->x, HEFT_WARNING, "burnpack/tensor-count", at, HEFT_NONE,
                     "there are more than 100000 tensors: Burn will refuse this file");
    return st;
}

/* ---- metadata ---- */

static heft_status keep_last_values(reader *r, uint32_t parent, uint64_t at)
{
    uint32_t dropped;
    heft_status st = heft_ix_meta_keep_last(r->x, parent, &dropped);
    if (dropped) {
        heft_ix_omit(r->x, HEFT_WARNING, "burnpack/metadata-twice", (heft_str){ NULL, 0 },
                     "only the last value of a duplicate metadata key is kept");
        heft_ix_note(r->x, HEFT_WARNING, "burnpack/metadata-twice", at, HEFT_NONE,
                     "a metadata key occurs twice: the last value is used");
    }
    return st;
}

static heft_status read_metadata(reader *r)
{
    heft_cbor *c = &r->c;
    heft_cbor_kind k = heft_cbor_next(c);
    if (k != HEFT_CBOR_MAP)
        return heft_cbor_fail(c, "\"metadata\" is not a map");
    while ((k = heft_cbor_next(c)) != HEFT_CBOR_MAP_END) {
        heft_str key = c->str;
        if (k != HEFT_CBOR_TEXT)
            return heft_cbor_fail(c, "a metadata key is not a text");
        if (heft_cbor_next(c) != HEFT_CBOR_TEXT)
            return heft_cbor_fail(c, "metadata %q: the value is not a text", key);
        HEFT_TRY(heft_ix_meta_text(r->x, key, c->str));
    }
    return HEFT_OK;
}

/* Read the map {"Int": 3} or another scalar, whose head was k; false: Burn would refuse the scalar.
 * In both cases the whole item is consumed, or c has failed. */
static bool read_scalar(heft_cbor *c, heft_cbor_kind k, heft_value *v)
{
    if (k != HEFT_CBOR_MAP || c->flags & HEFT_CBOR_INDEFINITE || c->u != 1) {
        heft_cbor_skip(c, k);
        return false;
    }
    heft_cbor_kind key = heft_cbor_next(c);
    heft_str name = key == HEFT_CBOR_TEXT ? c->str : (heft_str){ "", 0 };
    heft_cbor_skip(c, key);
    k = heft_cbor_next(c);
    bool fits = true;
    if (heft_str_is(name, "Int") && (k == HEFT_CBOR_UINT || k == HEFT_CBOR_NINT)) {
        v->kind = HEFT_KIND_INT;
        v->as.i = k == HEFT_CBOR_UINT ? (int64_t)c->u : -1 - (int64_t)c->u;
        fits = c->u <= INT64_MAX;
    } else if (heft_str_is(name, "UInt") && k == HEFT_CBOR_UINT) {
        v->kind = HEFT_KIND_UINT;
        v->as.u = c->u;
    } else if (heft_str_is(name, "Float") && k == HEFT_CBOR_FLOAT) {
        v->kind = HEFT_KIND_FLOAT;
        heft_cbor_f64(&v->as.f, c);
    } else if (heft_str_is(name, "Bool") && (k == HEFT_CBOR_TRUE || k == HEFT_CBOR_FALSE)) {
        v->kind = HEFT_KIND_BOOL;
        v->as.b = k == HEFT_CBOR_TRUE;
    } else {
        fits = false;
    }
    heft_cbor_skip(c, k);
    heft_cbor_next(c); /* end of the map */
    return fits;
}

/* Burn before 0.22 ignores all scalars, so an unknown scalar is no error. */
static heft_status omit_scalar(reader *r)
{
    heft_ix_omit(r->x, HEFT_WARNING, "burnpack/scalar", (heft_str){ NULL, 0 },
                 "scalars of a type or value unknown to Burn are left out");
    note(r, HEFT_WARNING, "burnpack/scalar", HEFT_NONE,
         "a scalar has a type or value unknown to Burn: it is ignored here, and Burn 0.22 refuses "
         "this file");
    return r->c.st;
}

static heft_status read_scalars(reader *r)
{
    heft_cbor *c = &r->c;
    heft_cbor_kind k = heft_cbor_next(c);
    const heft_value scalars = { .kind = HEFT_KIND_MAP, .key = heft_lit(heft_burnpack_scalars) };
    uint32_t map = HEFT_NONE;
    uint64_t at = heft_cbor_offset(c, c->item);
    heft_status st = HEFT_OK;
    r->manifest->has_scalars = true;
    if (k != HEFT_CBOR_MAP) {
        heft_cbor_skip(c, k);
        return omit_scalar(r);
    }
    while (!st && (k = heft_cbor_next(c)) != HEFT_CBOR_MAP_END) {
        heft_value v = { .kind = HEFT_KIND_NULL, .key = c->str };
        if (k != HEFT_CBOR_TEXT)
            return heft_cbor_fail(c, "the name of a scalar is not a text");
        if (!read_scalar(c, heft_cbor_next(c), &v)) {
            st = omit_scalar(r);
            continue;
        }
        if (map == HEFT_NONE) { /* the first valid scalar opens the map */
            map = r->x->values.len;
            st = heft_ix_meta(r->x, scalars);
        }
        if (!st)
            st = heft_ix_meta(r->x, v);
        st = c->st ? c->st : st;
    }
    if (st || map == HEFT_NONE)
        return st;
    heft_ix_meta_end(r->x);
    return keep_last_values(r, map, at);
}

/* ---- the manifest ---- */

enum { TENSORS = 1, METADATA = 2, SCALARS = 4 };

static heft_status read_root(reader *r)
{
    heft_cbor *c = &r->c;
    heft_cbor_kind k;
    uint32_t seen = 0;
    if (heft_cbor_next(c) != HEFT_CBOR_MAP)
        return heft_cbor_fail(c, "the manifest is not a map");
    while ((k = heft_cbor_next(c)) != HEFT_CBOR_MAP_END) {
        if (!is_key_kind(k))
            return heft_cbor_fail(c, "a key of the manifest is not a text");
        note_indefinite_name(r, c->flags & HEFT_CBOR_INDEFINITE, HEFT_NONE);
        uint32_t key = key_is(c, "tensors", 7)    ? TENSORS
                       : key_is(c, "metadata", 8) ? METADATA
                       : key_is(c, "scalars", 7)  ? SCALARS
                                                  : 0;
        if (seen & key)
            return heft_cbor_fail(c, "the manifest has two keys %q", c->str);
        seen |= key;
        if (key == TENSORS)
            HEFT_TRY(read_tensors(r));
        else if (key == METADATA)
            HEFT_TRY(read_metadata(r));
        else if (key == SCALARS)
            HEFT_TRY(read_scalars(r));
        else
            HEFT_TRY(skip_unknown(r, &r->noted_unknown_key, "burnpack/unknown-key", HEFT_NONE,
                                  "the manifest has an unknown key (there may be more)",
                                  "is an unknown key of the manifest and is left out"));
    }
    if (!(seen & TENSORS))
        return heft_error_set(r->x->err, HEFT_E_FORMAT, HEFT_BURNPACK_HEADER,
                              "the manifest has no \"tensors\"");
    if (c->p < c->end) {
        heft_ix_omit(r->x, HEFT_WARNING, "burnpack/manifest-tail", (heft_str){ NULL, 0 },
                     "extra bytes after the manifest are left out");
        heft_ix_note(r->x, HEFT_WARNING, "burnpack/manifest-tail", heft_cbor_offset(c, c->p),
                     HEFT_NONE, "extra bytes follow the CBOR of the manifest");
    }
    return keep_last_values(r, HEFT_NONE, HEFT_BURNPACK_HEADER);
}

heft_status heft_burnpack_read_manifest(heft_burnpack_manifest *out, heft_index *x,
                                        const uint8_t *p, size_t len)
{
    enum { DEPTH = 128 }; /* limit of the reference reader, including the root */
    uint32_t depth = x->limits.depth < DEPTH ? x->limits.depth : (uint32_t)DEPTH;
    reader r = { .c = heft_cbor_open(p, len, HEFT_BURNPACK_HEADER, depth, &x->arena, x->err),
                 .x = x,
                 .manifest = out };
    *out = (heft_burnpack_manifest){ .generations = HEFT_BURNPACK_ANY,
                                     .conflict_tensor = HEFT_NONE };
    heft_status st = read_root(&r);
    if (r.c.st == HEFT_E_LIMIT && r.c.max_depth == DEPTH)
        return heft_error_set(x->err, HEFT_E_FORMAT, heft_cbor_offset(&r.c, r.c.item),
                              "the manifest is nested deeper than 128 levels, which Burn refuses");
    return st;
}
