/* ztensor.c - dispatches to the zTensor generation that a file has, or that is to be written.
 * |   first 8 bytes              last 8 bytes         generation
 *   "ZTEN0001"                 u64 size             0.1
 *   "ZTEN1000"                 u64 size             1.0
 *   "ZTEN1000"                 "ZTEN1000"           1.1, 1.2
 *   89 "ZT2" 0D 0A 1A 0A       same as the first    2 | */
#include "format/ztensor/ztensor.h"

#include "model/values.h"

/* ---- notices ---- */

static uint64_t hash_offset(uint64_t v)
{
    v = (v ^ v >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    v = (v ^ v >> 27) * UINT64_C(0x94D049BB133111EB);
    return v ^ v >> 31;
}

/* Return true if the payloads are contiguous, in any order: each payload except the last ends,
 * rounded up to a multiple of 64, where another begins. Compares the sets of ends and beginnings
 * through sums of keyed hashes, without sorting. */
static bool is_contiguous(const heft_index *x)
{
    uint64_t secret = hash_offset(x->key.secret[0]);
    uint64_t begins = 0, ends = 0, first = UINT64_MAX, last = 0, end;
    for (uint32_t i = 0; i < x->parts.len; i++) {
        const heft_ix_part_row *p = heft_ix_part_row_at(x, i);
        if (!p->stored)
            continue;
        if (!heft_align_up(&end, p->offset + p->stored, HEFT_ZT_ALIGN))
            return false;
        begins += hash_offset(p->offset + secret);
        ends += hash_offset(end + secret);
        first = p->offset < first ? p->offset : first;
        last = end > last ? end : last;
    }
    return !last || begins + hash_offset(last + secret) == ends + hash_offset(first + secret);
}

static heft_status zt1_notice(heft_index *x)
{
    uint32_t *order = NULL, count = 0;
    heft_ix_note_offsets(x, HEFT_ZT_ALIGN, "ztensor/align-64",
                         "data does not begin at a multiple of 64");
    heft_status st = is_contiguous(x) ? HEFT_OK : heft_ix_order(x, &order, &count);
    heft_range last = { 0, 0 }; /* range with the largest end so far */
    for (uint32_t i = 0; i < count && !st; i++) {
        const heft_ix_part_row *p = heft_ix_part_row_at(x, order[i]);
        heft_range where = { p->offset, p->stored };
        bool is_shared = where.offset == last.offset && where.length == last.length;
        /* Components that share bytes must share all of them. */
        if (where.offset < last.offset + last.length && !is_shared)
            heft_ix_note_range(x, HEFT_WARNING, "ztensor/overlap", where,
                               heft_ix_owner(x, order[i]), "data partly overlaps other data");
        if (where.offset + where.length > last.offset + last.length)
            last = where;
    }
    heft_ix_order_free(x, order);
    return st;
}

/* ---- checking ---- */

/* Bytes up to the next multiple of 64 are padding. Bytes of a gap after that are unused, for
 * example data that the reference writer abandons when a name occurs twice. */
static heft_status zt1_check(heft_check *c)
{
    const uint32_t *order;
    uint32_t count;
    uint64_t aligned;
    uint64_t end = c->x->data_start; /* end of the range checked so far */
    heft_status st = c->order(c, &order, &count);
    for (uint32_t i = 0; i <= count && !st; i++) {
        const heft_ix_part_row *p = i < count ? heft_ix_part_row_at(c->x, order[i]) : NULL;
        uint64_t begin = p ? p->offset : c->x->data_end;
        if (begin > end) {
            if (!heft_align_up(&aligned, end, HEFT_ZT_ALIGN) || aligned > begin)
                aligned = begin;
            heft_range padding = { end, aligned - end }, unused = { aligned, begin - aligned };
            st = c->padding(c, "ztensor/padding", HEFT_WARNING, padding, 0);
            if (!st)
                st = c->padding(c, "ztensor/unused", HEFT_NOTE, unused, 0);
        }
        if (p && p->offset + p->stored > end)
            end = p->offset + p->stored;
    }
    return st;
}

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

/* 0.1 (read-only). */
static heft_status zt01_parse(heft_window *in, heft_index *x)
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

typedef struct generation {
    const char *magic;
    heft_status (*parse)(heft_window *in, heft_index *x);
} generation;

static const generation generations[] = {
    { "ZTEN1000", heft_zt1_parse },
    { "ZTEN0001", zt01_parse },
    { "\x89ZT2\r\n\x1a\n", heft_zt2_parse },
};
enum { GENERATIONS = sizeof generations / sizeof *generations };

/* Return NULL if no generation begins with this magic number. */
static const generation *generation_of(const uint8_t *magic)
{
    for (unsigned i = 0; i < GENERATIONS; i++)
        if (!memcmp(magic, generations[i].magic, HEFT_ZT_MAGIC))
            return &generations[i];
    return NULL;
}

static heft_status zt_parse(heft_window *in, heft_index *x)
{
    heft_cur c = heft_cur_open(in, 0, HEFT_ZT_MAGIC, "the magic number");
    const uint8_t *magic = heft_cur_take(&c, HEFT_ZT_MAGIC);
    if (!magic)
        return c.st;
    const generation *g = generation_of(magic);
    if (!g)
        return heft_error_set(x->err, HEFT_E_FORMAT, 0,
                              "no zTensor generation begins with this magic number");
    return g->parse(in, x);
}

static const heft_name_rules odd_rules = { "ztensor/name", "ztensor/nul-in-name", NULL,
                                           "ztensor/rank" };

static heft_status zt_notice(heft_index *x)
{
    return heft_str_is(x->version, "2") ? HEFT_OK : zt1_notice(x);
}

static heft_status zt_check(heft_check *c)
{
    return heft_str_is(c->x->version, "2") ? heft_zt2_check(c) : zt1_check(c);
}

static bool writes_2(const heft_plan *p)
{
    return p->version && heft_str_is(heft_lit(p->version), "2");
}

/* Keep the digest and encoding of an existing file where the target generation supports them. */
static void zt_storage(const heft_plan *p, heft_storage *storage, bool is_kept)
{
    const char *own = writes_2(p) ? "xxh3" : "crc32c";
    bool takes_own = storage->digest ? is_kept && !heft_zt_has_digest(storage->digest, own)
                                     : !is_kept && writes_2(p);
    if (takes_own)
        storage->digest = own;
    if (is_kept && storage->encoding != HEFT_ZSTD)
        storage->encoding = HEFT_RAW;
}

static heft_status zt_plan(heft_plan *p)
{
    return writes_2(p) ? heft_zt2_plan(p) : heft_zt1_plan(p);
}

static heft_status zt_write_header(const heft_plan *p, heft_out *o)
{
    return writes_2(p) ? heft_zt2_write_header(p, o) : heft_zt1_write_header(p, o);
}

static heft_status zt_write_trailer(const heft_plan *p, heft_out *o)
{
    return writes_2(p) ? heft_zt2_write_trailer(p, o) : heft_zt1_write_trailer(p, o);
}

static int zt_probe(const uint8_t *head, size_t head_len, const uint8_t *tail, size_t tail_len,
                    uint64_t size)
{
    (void)tail;
    (void)tail_len;
    (void)size;
    return head_len >= HEFT_ZT_MAGIC && generation_of(head) ? 8 * HEFT_ZT_MAGIC : 0;
}

const heft_format heft_format_ztensor = {
    .name = "ztensor",
    .title = "zTensor",
    .structure_rule = "ztensor/structure",
    .suffixes = ".zt",
    .versions = "1.0 1.1 1.2 2",
    .caps = HEFT_CAN_READ | HEFT_CAN_WRITE | HEFT_CAN_EDIT | HEFT_CAN_SCHEMES | HEFT_CAN_APPEND |
            HEFT_CAN_SPARSE | HEFT_CAN_ENCODE | HEFT_CAN_META | HEFT_CAN_DIGEST,
    .align = HEFT_ZT_ALIGN,
    .probe = zt_probe,
    .parse = zt_parse,
    .name_rules = &odd_rules,
    .notice = zt_notice,
    .check = zt_check,
};

const heft_format_writer heft_format_writer_ztensor = {
    .storage = zt_storage,
    .plan = zt_plan,
    .write_header = zt_write_header,
    .write_trailer = zt_write_trailer,
    .sharding = &heft_zt2_sharding,
};
