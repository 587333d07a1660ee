/* burnpack_scheme.c - quantization schemes: the generations of Burn that read a scheme, and
 * conversion between the encodings of the generations.
 *
 *   {"QFloat": {"value": text, "store": store, "mode": text, ...}}, with the types of the scales in
 *       "param": dtype, "level": level                  up to Burn 0.22-pre.2, and
 *       "tensor": dtype or null, "block": block or null in Burn 0.22
 *   store  "Native", "U32" (0.19), {"PackedNative": dim}, {"PackedU32": dim} (0.20 and later)
 *   level  "Tensor", {"Block": size},
 *          {"BlockTensor": {"block": size, "global": dtype}} (0.22-pre.2)
 *   block  {"size": size, "dtype": dtype}               size  {"storage": [5 bytes], "len": number}
 *
 * Burn refuses the whole file if a scheme has an unknown variant or lacks a field, but ignores
 * unknown keys.  Scales under the keys of another generation would therefore be lost silently.
 */
#include "format/burnpack/burnpack.h"

enum {
    OF_0_19 = HEFT_BURNPACK_0_19,
    OF_0_22_PRE = HEFT_BURNPACK_0_22_PRE,
    OF_0_22 = HEFT_BURNPACK_0_22,
    ANY = HEFT_BURNPACK_ANY,
    BEFORE_0_22 = ANY & ~OF_0_22, /* schemes with "param" and "level" */
    SINCE_0_20 = ANY & ~OF_0_19,
    SINCE_0_22_PRE = OF_0_22_PRE | OF_0_22,
    BLOCK_RANK = 5 /* maximum number of dimensions of a block */
};

/* Bits of scheme.fields, in the order of the table below and of Burn's writers.  Schemes before
 * 0.22 have the first five, schemes of 0.22 all except PARAM and LEVEL. */
enum { VALUE = 1, PARAM = 2, STORE = 4, LEVEL = 8, MODE = 16, TENSOR = 32, BLOCK = 64 };

static const struct {
    const char *name;
    uint32_t generations;
} fields[] = { { "value", ANY },         { "param", BEFORE_0_22 }, { "store", ANY },
               { "level", BEFORE_0_22 }, { "mode", ANY },          { "tensor", OF_0_22 },
               { "block", OF_0_22 } };
enum { FIELDS = sizeof fields / sizeof *fields };

static const struct {
    const char *name;
    uint8_t bits;
} values[] = { { "Q8F", 8 }, { "E5M2", 8 }, { "E4M3", 8 }, { "Q4F", 4 }, { "E2M1", 4 },
               { "Q2F", 2 }, { "Q8S", 8 },  { "Q4S", 4 },  { "Q2S", 2 } };
enum { VALUES = sizeof values / sizeof *values };

static const struct {
    const char *name;
    bool has_dim;
    uint32_t generations;
} stores[] = { { "Native", false, ANY },
               { "U32", false, OF_0_19 },
               { "PackedNative", true, SINCE_0_20 },
               { "PackedU32", true, SINCE_0_20 } };
enum { NATIVE, U32, PACKED_NATIVE, PACKED_U32, STORES };

static const char *const scale_types[] = { "F32", "F16", "BF16", "UE8M0", "UE4M3" };
enum { SCALE_TYPES = sizeof scale_types / sizeof *scale_types };

static const struct {
    const char *name;
    uint32_t generations;
} modes[] = { { "Symmetric", ANY }, { "Lookup", OF_0_22 } };
enum { MODES = sizeof modes / sizeof *modes };

typedef struct scheme {
    uint32_t value, store, mode; /* rows of the tables above */
    uint64_t packed_dim;         /* dimension of the packing, counted from the innermost */
    heft_str tensor_scale;       /* type of the scale of the whole tensor; ptr NULL: none */
    heft_str block_scale;        /* type of the scales of blocks; ptr NULL: none */
    heft_str block_size;         /* CBOR of `size`; ptr NULL: no blocks */
    heft_str param;              /* before 0.22: type of the innermost scales */
    uint32_t fields, generations;
} scheme;

/* ---- reading ---- */

/* Return the row of a table with this name, or `rows`.  `names` points to the name in the first
 * row; rows are `stride` bytes apart. */
static uint32_t find_row(const void *names, size_t stride, uint32_t rows, heft_str name)
{
    uint32_t i = 0;
    while (i < rows && !heft_str_is(name, *(const char *const *)(const void *)((const char *)names +
                                                                               i * stride)))
        i++;
    return i;
}

static bool read_text(heft_cbor *c, heft_str *out)
{
    bool is_text = heft_cbor_next(c) == HEFT_CBOR_TEXT;
    *out = c->str;
    return is_text;
}

/* Return true if the last item, of kind k, names a type of scales. */
static bool is_scale_type(const heft_cbor *c, heft_cbor_kind k, heft_str *out)
{
    *out = c->str;
    return k == HEFT_CBOR_TEXT &&
           find_row(scale_types, sizeof *scale_types, SCALE_TYPES, *out) < SCALE_TYPES;
}

/* Return true if the last item, of kind k, is the head of a map of definite length with `keys`
 * keys. */
static bool is_map(const heft_cbor *c, heft_cbor_kind k, uint64_t keys)
{
    return k == HEFT_CBOR_MAP && !(c->flags & HEFT_CBOR_INDEFINITE) && c->u == keys;
}

static bool read_map(heft_cbor *c, uint64_t keys)
{
    return is_map(c, heft_cbor_next(c), keys);
}

static bool read_key(heft_cbor *c, const char *key)
{
    heft_str found;
    return read_text(c, &found) && heft_str_is(found, key);
}

static bool read_size(heft_cbor *c, heft_str *out)
{
    const uint8_t *from = c->p;
    if (!read_map(c, 2) || !read_key(c, "storage") || heft_cbor_next(c) != HEFT_CBOR_ARRAY)
        return false;
    for (uint32_t i = 0; i < BLOCK_RANK; i++)
        if (heft_cbor_next(c) != HEFT_CBOR_UINT || c->u > UINT8_MAX)
            return false;
    if (heft_cbor_next(c) != HEFT_CBOR_ARRAY_END || !read_key(c, "len") ||
        heft_cbor_next(c) != HEFT_CBOR_UINT || c->u > BLOCK_RANK ||
        heft_cbor_next(c) != HEFT_CBOR_MAP_END)
        return false;
    *out = (heft_str){ (const char *)from, (size_t)(c->p - from) };
    return true;
}

static bool read_store(heft_cbor *c, scheme *s)
{
    heft_cbor_kind k = heft_cbor_next(c);
    bool has_dim = is_map(c, k, 1);
    if (has_dim)
        k = heft_cbor_next(c);
    s->store = find_row(&stores->name, sizeof *stores, STORES, c->str);
    if (k != HEFT_CBOR_TEXT || s->store == STORES || stores[s->store].has_dim != has_dim)
        return false;
    s->generations &= stores[s->store].generations;
    if (!has_dim)
        return true;
    bool is_dim = heft_cbor_next(c) == HEFT_CBOR_UINT;
    s->packed_dim = c->u;
    return is_dim && heft_cbor_next(c) == HEFT_CBOR_MAP_END;
}

static bool read_level(heft_cbor *c, scheme *s)
{
    heft_cbor_kind k = heft_cbor_next(c);
    if (k == HEFT_CBOR_TEXT)
        return heft_str_is(c->str, "Tensor");
    heft_str name;
    if (!is_map(c, k, 1) || !read_text(c, &name))
        return false;
    bool is_read = heft_str_is(name, "Block") && read_size(c, &s->block_size);
    if (heft_str_is(name, "BlockTensor")) {
        s->generations &= OF_0_22_PRE;
        is_read = read_map(c, 2) && read_key(c, "block") && read_size(c, &s->block_size) &&
                  read_key(c, "global") && is_scale_type(c, heft_cbor_next(c), &s->tensor_scale) &&
                  heft_cbor_next(c) == HEFT_CBOR_MAP_END;
    }
    return is_read && heft_cbor_next(c) == HEFT_CBOR_MAP_END;
}

/* Read the value of a field, VALUE to BLOCK; false: no known generation reads the value. */
static bool read_field(heft_cbor *c, scheme *s, uint32_t field)
{
    if (field == STORE)
        return read_store(c, s);
    if (field == LEVEL)
        return read_level(c, s);
    heft_cbor_kind k = heft_cbor_next(c);
    if (field == PARAM)
        return is_scale_type(c, k, &s->param);
    if (field == TENSOR)
        return k == HEFT_CBOR_NULL || is_scale_type(c, k, &s->tensor_scale);
    if (field == BLOCK)
        return k == HEFT_CBOR_NULL ||
               (is_map(c, k, 2) && read_key(c, "size") && read_size(c, &s->block_size) &&
                read_key(c, "dtype") && is_scale_type(c, heft_cbor_next(c), &s->block_scale) &&
                heft_cbor_next(c) == HEFT_CBOR_MAP_END);
    if (field == VALUE)
        s->value = find_row(&values->name, sizeof *values, VALUES, c->str);
    else
        s->mode = find_row(&modes->name, sizeof *modes, MODES, c->str);
    if (k != HEFT_CBOR_TEXT || s->value == VALUES || s->mode == MODES)
        return false;
    s->generations &= modes[s->mode].generations;
    return true;
}

static bool is_native_e2m1(const scheme *s)
{
    return s->store == NATIVE && heft_str_is(heft_lit(values[s->value].name), "E2M1");
}

/* Check for missing fields, and set tensor_scale and block_scale as Burn 0.22 describes the
 * scales.  A scheme of 0.22 without scales has an implicit tensor scale of type F32. */
static bool normalize_scales(scheme *s)
{
    enum { NEEDED = VALUE | STORE | MODE, OLD = PARAM | LEVEL };
    bool is_old = s->fields & OLD;
    if ((s->fields & NEEDED) != NEEDED || (is_old && (s->fields & OLD) != OLD))
        return false;
    s->generations &= is_old ? BEFORE_0_22 : OF_0_22;
    /* Burn 0.19 packs two E2M1 values per byte in the store Native; later releases call that store
     * PackedNative. */
    if (is_old && is_native_e2m1(s))
        s->generations &= OF_0_19;
    if (is_old && s->block_size.ptr)
        s->block_scale = s->param;
    else if (is_old)
        s->tensor_scale = s->param;
    else if (!s->block_size.ptr && !s->tensor_scale.ptr)
        s->tensor_scale = heft_lit("F32");
    return s->generations != 0;
}

/* Parse `raw`, the map {"QFloat": scheme}; false: no known generation of Burn reads the scheme. */
static bool read_scheme(scheme *s, heft_str raw)
{
    heft_cbor c = heft_cbor_open(raw.ptr, raw.len, 0, HEFT_CBOR_DEPTH, NULL, NULL);
    heft_cbor_kind k;
    *s = (scheme){ .generations = ANY };
    if (!read_map(&c, 1) || !read_key(&c, "QFloat") || heft_cbor_next(&c) != HEFT_CBOR_MAP ||
        c.flags & HEFT_CBOR_INDEFINITE)
        return false;
    while ((k = heft_cbor_next(&c)) == HEFT_CBOR_TEXT) {
        uint32_t i = find_row(&fields->name, sizeof *fields, FIELDS, c.str);
        if (i == FIELDS || s->fields >> i & 1)
            return false;
        s->fields |= 1u << i;
        s->generations &= fields[i].generations;
        if (!read_field(&c, s, 1u << i))
            return false;
    }
    return k == HEFT_CBOR_MAP_END && heft_cbor_next(&c) == HEFT_CBOR_MAP_END && normalize_scales(s);
}

uint32_t heft_burnpack_scheme_generations(heft_str raw)
{
    scheme s;
    return read_scheme(&s, raw) ? s.generations : 0;
}

/* ---- conversion between generations ---- */

/* Return true if no generation pads the packed values of this shape to whole 32-bit words.  Burn
 * 0.22 pads every row along the packed dimension; earlier releases pad only after the last
 * value. */
static bool needs_no_padding(const scheme *s, const uint64_t *dims, uint32_t rank)
{
    enum { WORD = 32 };
    uint32_t per_word = WORD / values[s->value].bits; /* a power of two */
    uint64_t count = 1;
    if (s->store == NATIVE && !is_native_e2m1(s))
        for (uint32_t i = 0; i < rank; i++)
            count *= dims[i]; /* may wrap: per_word divides 2^64 */
    else if (s->packed_dim < rank)
        count = dims[rank - 1 - s->packed_dim];
    return !(count & (per_word - 1));
}

uint32_t heft_burnpack_scheme_targets(heft_str raw, const uint64_t *dims, uint32_t rank)
{
    scheme s;
    if (!read_scheme(&s, raw))
        return 0;
    uint32_t targets = modes[s.mode].generations;
    if (s.tensor_scale.ptr && s.block_scale.ptr)
        targets &= SINCE_0_22_PRE;
    if (!needs_no_padding(&s, dims, rank) || (s.generations == OF_0_22 && is_native_e2m1(&s)))
        targets &= s.generations == OF_0_22 ? OF_0_22 : BEFORE_0_22;
    return targets;
}

static void put_text(heft_out *o, const char *name)
{
    heft_cbor_put_text(o, heft_lit(name));
}

static void put_store(heft_out *o, const scheme *s)
{
    uint32_t store = s->store == U32 ? PACKED_U32 : s->store;
    if (store == NATIVE && s->generations == OF_0_19)
        store = PACKED_NATIVE;
    put_text(o, "store");
    if (stores[store].has_dim)
        heft_cbor_put_map(o, 1);
    put_text(o, stores[store].name);
    if (stores[store].has_dim)
        heft_cbor_put_u64(o, s->packed_dim);
}

static void put_level(heft_out *o, const scheme *s)
{
    put_text(o, "level");
    if (!s->block_size.ptr) {
        put_text(o, "Tensor");
        return;
    }
    heft_cbor_put_map(o, 1);
    put_text(o, s->tensor_scale.ptr ? "BlockTensor" : "Block");
    if (s->tensor_scale.ptr) {
        heft_cbor_put_map(o, 2);
        put_text(o, "block");
    }
    heft_out_str(o, s->block_size);
    if (s->tensor_scale.ptr) {
        put_text(o, "global");
        heft_cbor_put_text(o, s->tensor_scale);
    }
}

static void put_block(heft_out *o, const scheme *s)
{
    put_text(o, "block");
    if (!s->block_size.ptr) {
        heft_cbor_put_null(o);
        return;
    }
    heft_cbor_put_map(o, 2);
    put_text(o, "size");
    heft_out_str(o, s->block_size);
    put_text(o, "dtype");
    heft_cbor_put_text(o, s->block_scale);
}

static void put_mode(heft_out *o, const scheme *s)
{
    put_text(o, "mode");
    put_text(o, modes[s->mode].name);
}

void heft_burnpack_put_scheme(heft_out *o, heft_str raw, uint32_t generation)
{
    scheme s;
    if (!read_scheme(&s, raw) || s.generations & generation) {
        heft_out_str(o, raw);
        return;
    }
    heft_cbor_put_map(o, 1);
    put_text(o, "QFloat");
    heft_cbor_put_map(o, 5);
    put_text(o, "value");
    put_text(o, values[s.value].name);
    if (generation == OF_0_22) {
        put_store(o, &s);
        put_mode(o, &s);
        put_text(o, "tensor");
        if (s.tensor_scale.ptr)
            heft_cbor_put_text(o, s.tensor_scale);
        else
            heft_cbor_put_null(o);
        put_block(o, &s);
        return;
    }
    put_text(o, "param");
    heft_cbor_put_text(o, s.block_scale.ptr ? s.block_scale : s.tensor_scale);
    put_store(o, &s);
    put_level(o, &s);
    put_mode(o, &s);
}
