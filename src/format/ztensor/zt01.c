/* zt01.c - reads zTensor 0.1.
 *
 *   "ZTEN0001", zeros, data at multiples of 64 with zeros between, the manifest in CBOR, u64 length
 *   of the manifest, which may be 0 in a file of 16 bytes: there are no tensors
 *
 * The manifest is an array of maps with "name", "offset", "size", "dtype", "layout", "shape",
 * "encoding", "data_endianness"?, "checksum"?. Any other field becomes an attribute.
 * "sparsecoo" and "sparsecsr" tensors have all their data in one range, which is kept as raw bytes.
 */
#include "format/ztensor/ztensor.h"
#include "model/values.h"

enum { NAME, OFFSET, SIZE, DTYPE, LAYOUT, SHAPE, ENCODING, ENDIANNESS, CHECKSUM, FIELDS };

static const char *const names[] = { "name",     "offset",          "size",
                                     "dtype",    "layout",          "shape",
                                     "encoding", "data_endianness", "checksum" };
static const heft_zt_fields fields = { "a tensor", names, FIELDS };

typedef struct entry {
    heft_zt_part part;
    heft_str name, dtype, layout;
    uint32_t id;         /* HEFT_NONE until the tensor is added */
    heft_zt_item shape;  /* skipped shape, if it came before the name */
    bool has_attributes; /* has fields that are not listed above */
} entry;

/* ---- fields ---- */

static heft_status read_endianness(heft_cbor *c, heft_cbor_kind k, entry *e)
{
    heft_str name;
    if (c->st || k == HEFT_CBOR_NULL)
        return c->st;
    HEFT_TRY(heft_zt_expect_text(c, k, "data_endianness", &name));
    e->part.is_big_endian = heft_str_is(name, "big");
    if (!e->part.is_big_endian && !heft_str_is(name, "little"))
        return heft_cbor_fail(c, "data_endianness %q is neither \"little\" nor \"big\"", name);
    return HEFT_OK;
}

static heft_status begin_tensor(heft_index *x, entry *e)
{
    uint64_t *dims;
    return heft_ix_tensor(x, e->name, HEFT_UNTYPED, 0, &dims, &e->id);
}

static heft_status read_field(heft_cbor *c, heft_index *x, uint32_t field, entry *e)
{
    heft_cbor_kind k = heft_cbor_next(c);
    heft_status st;
    switch (field) {
    case NAME:
        return heft_zt_expect_text(c, k, "name", &e->name);
    case OFFSET:
        return heft_zt_expect_u64(c, k, "offset", &e->part.range.offset);
    case SIZE:
        return heft_zt_expect_u64(c, k, "size", &e->part.range.length);
    case DTYPE:
        return heft_zt_expect_text(c, k, "dtype", &e->dtype);
    case LAYOUT:
        return heft_zt_expect_text(c, k, "layout", &e->layout);
    case SHAPE:
        if (!e->name.ptr)
            return heft_zt_skip_value(c, k, &e->shape);
        st = begin_tensor(x, e);
        return st ? st : heft_zt_read_shape(c, k, x);
    case ENCODING:
        return heft_zt_read_encoding(c, k, &e->part.is_zstd);
    case ENDIANNESS:
        return read_endianness(c, k, e);
    case CHECKSUM:
        return k == HEFT_CBOR_NULL ? HEFT_OK
                                   : heft_zt_expect_text(c, k, "checksum", &e->part.digest);
    default:
        e->has_attributes = true;
        return heft_cbor_skip(c, k);
    }
}

/* ---- entries ---- */

static heft_status add_data(heft_index *x, entry *e)
{
    heft_ix_tensor_row *row = heft_ix_row(x, e->id);
    for (size_t i = 0; i < heft_zt_type_count; i++)
        if (*heft_zt_types[i].long_name && heft_str_is(e->dtype, heft_zt_types[i].long_name))
            row->dtype = heft_zt_types[i].dtype;
    if (!row->dtype)
        return heft_error_set(x->err, HEFT_E_FORMAT, e->part.at,
                              "tensor %q: unknown element type %q", e->name, e->dtype);
    HEFT_TRY(heft_ix_set_layout(x, e->id, e->layout));
    e->part.role = heft_lit("data");
    e->part.dtype = row->layout == HEFT_DENSE ? row->dtype : (heft_dtype)HEFT_UNTYPED;
    if (row->layout != HEFT_DENSE)
        heft_ix_note(x, HEFT_NOTE, "ztensor/layout-undefined", e->part.at, e->id,
                     HEFT_IS_SMALL ? "the layout is not defined"
                                   : "version 0.1 does not define the layout: the bytes are "
                                     "listed as they are");
    if (e->part.is_zstd)
        e->part.is_big_endian = false; /* the field applies to raw data only */
    if (e->part.is_big_endian && row->layout != HEFT_DENSE)
        heft_ix_note(
            x, HEFT_WARNING, "ztensor/big-endian", e->part.at, e->id,
            "big-endian data is not byte-swapped, because the tensor is not a plain array");
    return heft_zt_add_part(x, e->id, &e->part);
}

/* Read the entry again and store its other fields as attributes. */
static heft_status read_attributes(heft_cbor *c, heft_index *x, uint32_t tensor)
{
    uint32_t seen = 0;
    bool packed;
    for (heft_cbor_kind k = heft_cbor_next(c); (k = heft_cbor_next(c)) != HEFT_CBOR_MAP_END;) {
        heft_str key = c->str;
        bool is_text = k == HEFT_CBOR_TEXT;
        uint32_t field = heft_zt_field(c, k, &fields, &seen, &packed);
        k = heft_cbor_next(c);
        HEFT_TRY(field < FIELDS || !is_text ? heft_cbor_skip(c, k)
                                            : heft_zt_read_attribute(c, k, key, x, tensor));
    }
    return heft_attrs_unique(x, tensor, "a tensor's fields");
}

static heft_status read_entry(heft_cbor *c, heft_index *x, heft_cbor_kind k)
{
    entry e = { .part = { .decoded = HEFT_UNKNOWN_LENGTH }, .id = HEFT_NONE };
    heft_zt_item whole = { c->item, NULL };
    uint32_t seen = 0;
    bool packed = false;
    heft_status st = c->st;
    e.part.at = heft_cbor_offset(c, c->item);
    if (!st && k != HEFT_CBOR_MAP)
        return heft_cbor_fail(c, "an entry of the manifest is not a map");
    while (!st && (k = heft_cbor_next(c)) != HEFT_CBOR_MAP_END) {
        uint32_t field = heft_zt_field(c, k, &fields, &seen, &packed);
        st = c->st ? c->st : read_field(c, x, field, &e);
    }
    const uint32_t required = 1u << NAME | 1u << OFFSET | 1u << SIZE | 1u << DTYPE | 1u << LAYOUT |
                              1u << SHAPE | 1u << ENCODING;
    for (uint32_t i = 0; i < FIELDS && !st; i++)
        if (required & ~seen & 1u << i)
            st = heft_error_set(x->err, HEFT_E_FORMAT, e.part.at, "tensor %q: \"%s\" is missing",
                                e.name, names[i]);
    if (!st && e.id == HEFT_NONE) {
        heft_cbor skipped_shape = heft_zt_reopen(c, e.shape);
        st = begin_tensor(x, &e);
        if (!st)
            st = heft_zt_read_shape(&skipped_shape, heft_cbor_next(&skipped_shape), x);
    }
    if (!st)
        st = add_data(x, &e);
    if (st || !e.has_attributes)
        return st;
    whole.to = c->p;
    heft_cbor entry_reader = heft_zt_reopen(c, whole);
    return read_attributes(&entry_reader, x, e.id);
}

static heft_status read_list(heft_cbor *c, heft_index *x)
{
    enum { MIN_ENTRY = 38 }; /* smallest entry in bytes: empty name, empty shape, numeric keys */
    heft_cbor_kind k = heft_cbor_next(c);
    if (c->st)
        return c->st;
    if (k != HEFT_CBOR_ARRAY)
        return heft_cbor_fail(c, "manifest is not an array");
    uint64_t left = (uint64_t)(c->end - c->p);
    if (!(c->flags & HEFT_CBOR_INDEFINITE))
        HEFT_TRY(heft_ix_reserve(x, heft_cbor_offset(c, c->item), c->u, left, MIN_ENTRY));
    while ((k = heft_cbor_next(c)) != HEFT_CBOR_ARRAY_END)
        HEFT_TRY(read_entry(c, x, k));
    return heft_zt_close_manifest(c);
}

heft_status heft_zt01_parse(heft_window *in, heft_index *x)
{
    heft_cbor c;
    heft_range where;
    bool is_length_only;
    heft_status st = heft_zt_find_manifest(in, x, &where, &is_length_only);
    if (!st && !is_length_only)
        return heft_error_set(x->err, HEFT_E_FORMAT, in->size - HEFT_ZT_MAGIC,
                              "file begins as zTensor 0.1 but ends as zTensor 1.1");
    x->version = heft_lit("0.1");
    if (!st && !where.length && where.offset > HEFT_ZT_MAGIC)
        st = heft_error_set(x->err, HEFT_E_FORMAT, where.offset,
                            "file is truncated: there are %U bytes of data, but no manifest",
                            where.offset - HEFT_ZT_MAGIC);
    if (st || !where.length)
        return st;
    st = heft_zt_open_manifest(&c, in, x, where);
    return st ? st : heft_zt_check_depth(&c, read_list(&c, x));
}
