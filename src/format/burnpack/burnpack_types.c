/* burnpack_types.c - the table of Burn generations, and conversion of element types between CBOR
 * and stored_dtype.
 *
 * An element type is a text, or a map with one entry.  The type of a quantized tensor contains
 * the quantization scheme, a tree of texts, small numbers and nulls.  The stored_dtype is JSON
 * without spaces, {"QFloat":{"value":"Q8S",...}}, if the shortest CBOR of that JSON reproduces
 * the bytes exactly, otherwise "cbor:" and the bytes in hexadecimal.
 */
#include "format/burnpack/burnpack.h"
#include "grammar/json.h"

const heft_burnpack_generation heft_burnpack_generations[HEFT_BURNPACK_GENERATIONS] = {
    { "0.21", HEFT_BURNPACK_0_21, true },           { "0.22", HEFT_BURNPACK_0_22, true },
    { "0.22-pre.2", HEFT_BURNPACK_0_22_PRE, true }, { "0.20", HEFT_BURNPACK_0_20, true },
    { "0.19", HEFT_BURNPACK_0_19, false },
};

const char heft_burnpack_scalars[] = "burn.scalars";

static const char hex_prefix[] = "cbor:";
enum { PREFIX = sizeof hex_prefix - 1 };

bool heft_burnpack_has_type(heft_dtype t)
{
    return t == HEFT_BOOL || heft_dtype_spelling_of(&heft_burn_numbers, t);
}

/* ---- schemes as stored_dtype ---- */

static bool put_json_item(heft_out *o, const heft_cbor *c, heft_cbor_kind k)
{
    static const char *const words[] = { "false", "true", "null" };
    switch (k) {
    case HEFT_CBOR_UINT:
        heft_json_put_u64(o, c->u);
        return true;
    case HEFT_CBOR_NINT:
        heft_json_put_i64(o, (int64_t)~c->u);
        return c->u <= INT64_MAX;
    case HEFT_CBOR_TEXT:
        heft_json_put_str(o, c->str);
        for (size_t i = 0; i < c->str.len; i++) /* refuse texts that JSON would escape */
            if ((uint8_t)c->str.ptr[i] < ' ' || c->str.ptr[i] == '"' || c->str.ptr[i] == '\\')
                return false;
        return true;
    case HEFT_CBOR_FALSE:
    case HEFT_CBOR_TRUE:
    case HEFT_CBOR_NULL:
        heft_out_str(o, heft_lit(words[k - HEFT_CBOR_FALSE]));
        return true;
    case HEFT_CBOR_ARRAY:
    case HEFT_CBOR_MAP:
        heft_out_u8(o, k == HEFT_CBOR_MAP ? '{' : '[');
        return true;
    default:
        return false;
    }
}

/* Write `raw` as JSON; false: the JSON would not reproduce the same bytes. */
static bool put_json(heft_out *o, heft_str raw)
{
    heft_cbor c = heft_cbor_open(raw.ptr, raw.len, 0, HEFT_CBOR_DEPTH, NULL, NULL);
    heft_cbor_kind k;
    bool is_first = true;
    while ((k = heft_cbor_next(&c)) != HEFT_CBOR_END) {
        if (c.flags) /* this form would not be reproduced */
            return false;
        if (k == HEFT_CBOR_ARRAY_END || k == HEFT_CBOR_MAP_END) {
            heft_out_u8(o, k == HEFT_CBOR_MAP_END ? '}' : ']');
            is_first = false;
            continue;
        }
        if (c.context == HEFT_CBOR_AS_VALUE)
            heft_out_u8(o, ':');
        else if (!is_first)
            heft_out_u8(o, ',');
        if (!put_json_item(o, &c, k) || (c.context == HEFT_CBOR_AS_KEY && k != HEFT_CBOR_TEXT))
            return false;
        is_first = k == HEFT_CBOR_ARRAY || k == HEFT_CBOR_MAP;
    }
    return true;
}

static heft_status cache_scheme(heft_index *x, heft_burnpack_type_cache *cache, heft_str raw)
{
    heft_out count = heft_out_counting();
    bool is_json = put_json(&count, raw);
    size_t len = is_json ? (size_t)count.total : PREFIX + 2 * raw.len;
    uint8_t *text = len < SIZE_MAX / 2 ? heft_arena_alloc(&x->arena, len, 1) : NULL;
    if (!text)
        return heft_error_plain(x->err, HEFT_E_NOMEM, "no memory for a dtype of %U bytes",
                                (uint64_t)raw.len);
    heft_out o = { .buf = text, .cap = len };
    if (is_json)
        put_json(&o, raw);
    else
        heft_out_str(&o, heft_lit(hex_prefix));
    for (size_t i = 0; !is_json && i < raw.len; i++) {
        char two[2];
        heft_hex_text(two, (const uint8_t *)raw.ptr + i, 1);
        heft_out_bytes(&o, two, sizeof two);
    }
    cache->raw = raw;
    cache->text = (heft_str){ (char *)text, len };
    cache->generations = heft_burnpack_scheme_generations(raw);
    return HEFT_OK;
}

/* ---- reading ---- */

static heft_status read_bool(heft_burnpack_type *out, heft_cbor *c, heft_str name)
{
    if (heft_cbor_next(c) != HEFT_CBOR_TEXT)
        return heft_cbor_fail(c, "tensor %q: the storage of its type Bool is not a text", name);
    out->generations = HEFT_BURNPACK_ANY & ~HEFT_BURNPACK_TEXT_BOOL;
    out->dtype = heft_burn_bool_type(c->str, &out->stored);
    if (out->dtype)
        return HEFT_OK;
    return heft_cbor_fail(c, "tensor %q: storage %q of its type Bool is neither Native, U8 nor U32",
                          name, c->str);
}

/* Read the value of a map {"QFloat": scheme} that begins at `from`; the key was the last item. */
static heft_status read_scheme(heft_burnpack_type *out, heft_cbor *c, heft_index *x,
                               heft_burnpack_type_cache *cache, const uint8_t *from)
{
    heft_status st = heft_cbor_skip(c, heft_cbor_next(c));
    heft_str raw = { (const char *)from, (size_t)(c->p - from) };
    if (!st && !(cache->raw.len && heft_str_eq(cache->raw, raw)))
        st = cache_scheme(x, cache, raw);
    out->dtype = HEFT_U8;
    out->is_opaque = true;
    out->stored = cache->text;
    out->generations = cache->generations;
    return st;
}

bool heft_burnpack_fast_type(heft_cbor_fast *f, heft_dtype *out)
{
    enum { MAX_NAME = 4 };
    uint32_t len;
    if (!heft_cbor_fast_head(f, HEFT_CBOR_HEAD_TEXT, MAX_NAME, &len) ||
        (size_t)(f->end - f->p) < len)
        return false;
    *out = heft_dtype_spelled(&heft_burn_numbers, (heft_str){ (const char *)f->p, len });
    f->p += len;
    return *out != HEFT_UNTYPED;
}

heft_status heft_burnpack_read_type(heft_burnpack_type *out, heft_cbor *c, heft_index *x,
                                    heft_burnpack_type_cache *cache, heft_str name)
{
    heft_cbor_kind k = heft_cbor_next(c);
    const uint8_t *from = c->item;
    cache->has_indefinite_name = k == HEFT_CBOR_TEXT && c->flags & HEFT_CBOR_INDEFINITE;
    *out = (heft_burnpack_type){ .dtype = HEFT_UNTYPED };
    if (k == HEFT_CBOR_TEXT) {
        out->dtype = heft_burn_type(c->str, &out->stored);
        out->generations = out->dtype == HEFT_BOOL ? (uint32_t)HEFT_BURNPACK_TEXT_BOOL
                                                   : (uint32_t)HEFT_BURNPACK_ANY;
        if (out->dtype)
            return HEFT_OK;
        return heft_cbor_fail(c, "tensor %q: unknown element type %q", name, c->str);
    }
    if (k != HEFT_CBOR_MAP || c->flags & HEFT_CBOR_INDEFINITE || c->u != 1 ||
        heft_cbor_next(c) != HEFT_CBOR_TEXT)
        return heft_cbor_fail(c, "tensor %q: its dtype is neither a text nor a map with one entry",
                              name);
    cache->has_indefinite_name = c->flags & HEFT_CBOR_INDEFINITE;
    bool is_bool = heft_str_is(c->str, "Bool");
    if (!is_bool && !heft_str_is(c->str, "QFloat"))
        return heft_cbor_fail(c, "tensor %q: unknown element type %q with parameters", name,
                              c->str);
    HEFT_TRY(is_bool ? read_bool(out, c, name) : read_scheme(out, c, x, cache, from));
    heft_cbor_next(c); /* end of the map */
    return HEFT_OK;
}

/* ---- writing ---- */

/* Return the row of heft_burn_bools with this type and stored_dtype; HEFT_BURN_BOOLS: none. */
static unsigned find_bool(heft_dtype t, heft_str stored)
{
    unsigned i = 0;
    while (i < HEFT_BURN_BOOLS &&
           !(heft_burn_bools[i].dtype == t && heft_str_is(stored, heft_burn_bools[i].stored)))
        i++;
    return i;
}

bool heft_burnpack_is_stored_dtype(heft_dtype t, heft_str stored)
{
    return find_bool(t, stored) < HEFT_BURN_BOOLS ||
           (t == HEFT_F32 && heft_str_is(stored, heft_burn_flex32));
}

void heft_burnpack_put_type(heft_out *o, heft_dtype t, heft_str stored, bool text_bool)
{
    unsigned kind = find_bool(t, stored);
    if (!text_bool && (kind < HEFT_BURN_BOOLS || t == HEFT_BOOL)) {
        heft_cbor_put_map(o, 1);
        heft_cbor_put_text(o, heft_lit("Bool"));
        heft_cbor_put_text(o, heft_lit(heft_burn_bools[kind < HEFT_BURN_BOOLS ? kind : 0].store));
    } else if (t == HEFT_BOOL) {
        heft_cbor_put_text(o, heft_lit("Bool"));
    } else if (t == HEFT_F32 && heft_str_is(stored, heft_burn_flex32)) {
        heft_cbor_put_text(o, stored);
    } else {
        heft_cbor_put_text(o, heft_lit(heft_dtype_spelling_of(&heft_burn_numbers, t)));
    }
}

static bool put_hex(heft_out *o, heft_str hex)
{
    uint32_t byte = 0;
    for (size_t i = 0; i < hex.len; i++) {
        uint32_t digit = heft_hex_digit(hex.ptr[i]);
        bool is_capital = hex.ptr[i] >= 'A' && hex.ptr[i] <= 'F';
        if (digit > 15 || is_capital)
            return false;
        byte = byte << 4 | digit;
        if (i % 2)
            heft_out_u8(o, (uint8_t)byte);
    }
    return hex.len % 2 == 0;
}

/* Count the members of the container that j has just entered; j is a copy of the caller's
 * reader.  Nested containers are scanned again at every level. */
static uint64_t count_members(heft_json j, bool is_object)
{
    uint64_t n = 0;
    heft_json_kind k;
    while ((k = heft_json_next(&j)) != HEFT_JSON_OBJECT_END && k != HEFT_JSON_ARRAY_END &&
           k != HEFT_JSON_FAILED && k != HEFT_JSON_END) {
        n++;
        if (heft_json_skip(&j, is_object ? HEFT_JSON_KEY : k))
            break;
    }
    return n;
}

static bool put_json_number(heft_out *o, heft_str text)
{
    bool negative = text.len && text.ptr[0] == '-';
    uint64_t v;
    if (!heft_json_u64(&v, (heft_str){ text.ptr + negative, text.len - negative }) ||
        (negative && (!v || v > (uint64_t)INT64_MAX + 1)))
        return false;
    if (negative)
        heft_cbor_put_i64(o, (int64_t)(0 - v));
    else
        heft_cbor_put_u64(o, v);
    return true;
}

static bool put_json_token(heft_out *o, const heft_json *j, heft_json_kind k)
{
    switch (k) {
    case HEFT_JSON_OBJECT:
        heft_cbor_put_map(o, count_members(*j, true));
        return true;
    case HEFT_JSON_ARRAY:
        heft_cbor_put_array(o, count_members(*j, false));
        return true;
    case HEFT_JSON_KEY:
    case HEFT_JSON_STRING:
        heft_cbor_put_text(o, j->text);
        return true;
    case HEFT_JSON_NUMBER:
        return put_json_number(o, j->text);
    case HEFT_JSON_TRUE:
    case HEFT_JSON_FALSE:
        heft_cbor_put_bool(o, k == HEFT_JSON_TRUE);
        return true;
    case HEFT_JSON_NULL:
        heft_cbor_put_null(o);
        return true;
    default:
        return k == HEFT_JSON_OBJECT_END || k == HEFT_JSON_ARRAY_END;
    }
}

bool heft_burnpack_put_stored_dtype(heft_out *o, heft_str stored)
{
    /* Far more than any scheme has; the time grows with length times depth. */
    enum { MAX_TEXT = 64 << 10 };
    if (stored.len > MAX_TEXT)
        return false;
    if (stored.len > PREFIX && !memcmp(stored.ptr, hex_prefix, PREFIX))
        return put_hex(o, (heft_str){ stored.ptr + PREFIX, stored.len - PREFIX });
    heft_json j = heft_json_open(stored, 0, HEFT_JSON_DEPTH, NULL, NULL);
    for (heft_json_kind k; (k = heft_json_next(&j)) != HEFT_JSON_END;)
        if (!put_json_token(o, &j, k))
            return false;
    return true;
}
