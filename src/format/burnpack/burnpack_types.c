/* burnpack_types.c - generations of Burn, and element types: text or maps of one entry, and how they are spelled as stored_dtype.
 *
 * A quantized type carries its scheme, a tree of texts, small numbers and nulls.  It is kept as JSON without
 * spaces, {"QFloat":{"value":"Q8S",...}}, when CBOR in shortest form can be made of that again byte for byte,
 * and else as "cbor:" and the bytes in hexadecimal.
 */
#include "format/burnpack/burnpack.h"
#include "grammar/json.h"

const heft_burnpack_generation heft_burnpack_generations[HEFT_BURNPACK_GENERATIONS] = {
    { "0.21", HEFT_BURNPACK_0_21, true },           { "0.22", HEFT_BURNPACK_0_22, true },
    { "0.22-pre.2", HEFT_BURNPACK_0_22_PRE, true }, { "0.20", HEFT_BURNPACK_0_20, true },
    { "0.19", HEFT_BURNPACK_0_19, false },
};

const char heft_burnpack_scalars[] = "burn.scalars";

static const char hex_mark[] = "cbor:", digits[] = "0123456789abcdef";
enum { MARK = sizeof hex_mark - 1 };

bool heft_burnpack_has_type(heft_dtype t)
{
    return t == HEFT_BOOL || heft_dtype_spelling_of(&heft_burn_numbers, t);
}

/* ---- schemes as text ---- */

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
        for (size_t i = 0; i < c->str.len; i++) /* it has to be its own spelling between quotes */
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

/* raw as JSON; false when it has none from which the same bytes could be made. */
static bool put_json(heft_out *o, heft_str raw)
{
    heft_cbor c = heft_cbor_open(raw.ptr, raw.len, 0, HEFT_CBOR_DEPTH, NULL, NULL);
    heft_cbor_kind k;
    bool is_first = true;
    while ((k = heft_cbor_next(&c)) != HEFT_CBOR_END) {
        if (c.flags) /* it is not in the form that would be written again */
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

static heft_status spell_scheme(heft_index *x, heft_burnpack_type_cache *seen, heft_str raw)
{
    heft_out count = heft_out_counting();
    bool is_json = put_json(&count, raw);
    size_t len = is_json ? (size_t)count.total : MARK + 2 * raw.len;
    uint8_t *text = len < SIZE_MAX / 2 ? heft_arena_alloc(&x->arena, len, 1) : NULL;
    if (!text)
        return heft_error_plain(x->err, HEFT_E_NOMEM, "no memory for a dtype of %U bytes",
                                (uint64_t)raw.len);
    heft_out o = { .buf = text, .cap = len };
    if (is_json)
        put_json(&o, raw);
    else
        heft_out_str(&o, heft_lit(hex_mark));
    for (size_t i = 0; !is_json && i < raw.len; i++) {
        heft_out_u8(&o, (uint8_t)digits[(uint8_t)raw.ptr[i] >> 4]);
        heft_out_u8(&o, (uint8_t)digits[raw.ptr[i] & 15]);
    }
    seen->raw = raw;
    seen->text = (heft_str){ (char *)text, len };
    seen->generations = heft_burnpack_scheme_generations(raw);
    return HEFT_OK;
}

/* ---- reading ---- */

static heft_status read_bool(heft_burnpack_type *out, heft_cbor *c, heft_str name)
{
    if (heft_cbor_next(c) != HEFT_CBOR_TEXT)
        return heft_cbor_fail(c, "tensor %q: its kind of Bool is not a text", name);
    out->generations = HEFT_BURNPACK_ANY & ~HEFT_BURNPACK_TEXT_BOOL;
    out->dtype = heft_burn_bool_type(c->str, &out->stored);
    if (out->dtype)
        return HEFT_OK;
    return heft_cbor_fail(c, "tensor %q: Bool of %q is neither Native, U8 nor U32", name, c->str);
}

/* The map of one entry that begins at `from`, read up to the end of its value. */
static heft_status read_scheme(heft_burnpack_type *out, heft_cbor *c, heft_index *x,
                               heft_burnpack_type_cache *seen, const uint8_t *from)
{
    heft_status st = heft_cbor_skip(c, heft_cbor_next(c));
    heft_str raw = { (const char *)from, (size_t)(c->p - from) };
    if (!st && !(seen->raw.len && heft_str_eq(seen->raw, raw)))
        st = spell_scheme(x, seen, raw);
    out->dtype = HEFT_U8;
    out->is_opaque = true;
    out->stored = seen->text;
    out->generations = seen->generations;
    return st;
}

bool heft_burnpack_fast_type(heft_cbor_fast *l, heft_dtype *out)
{
    enum { LONGEST = 4 };
    uint32_t len;
    if (!heft_cbor_fast_head(l, HEFT_CBOR_HEAD_TEXT, LONGEST, &len) ||
        (size_t)(l->end - l->p) < len)
        return false;
    *out = heft_dtype_spelled(&heft_burn_numbers, (heft_str){ (const char *)l->p, len });
    l->p += len;
    return *out != HEFT_UNTYPED;
}

heft_status heft_burnpack_read_type(heft_burnpack_type *out, heft_cbor *c, heft_index *x,
                                    heft_burnpack_type_cache *seen, heft_str name)
{
    heft_cbor_kind k = heft_cbor_next(c);
    const uint8_t *from = c->item;
    seen->has_indefinite_name = k == HEFT_CBOR_TEXT && c->flags & HEFT_CBOR_INDEFINITE;
    *out = (heft_burnpack_type){ .dtype = HEFT_UNTYPED };
    if (k == HEFT_CBOR_TEXT) {
        out->dtype = heft_burn_type(c->str, &out->stored);
        out->generations = out->dtype == HEFT_BOOL ? (uint32_t)HEFT_BURNPACK_TEXT_BOOL
                                                   : (uint32_t)HEFT_BURNPACK_ANY;
        if (out->dtype)
            return HEFT_OK;
        return heft_cbor_fail(c, "tensor %q: element type %q is none of Burnpack's", name, c->str);
    }
    if (k != HEFT_CBOR_MAP || c->flags & HEFT_CBOR_INDEFINITE || c->u != 1 ||
        heft_cbor_next(c) != HEFT_CBOR_TEXT)
        return heft_cbor_fail(c, "tensor %q: its dtype is neither a text nor a map of one entry",
                              name);
    seen->has_indefinite_name = c->flags & HEFT_CBOR_INDEFINITE;
    bool is_bool = heft_str_is(c->str, "Bool");
    if (!is_bool && !heft_str_is(c->str, "QFloat"))
        return heft_cbor_fail(c, "tensor %q: element type %q is no map of Burnpack's", name,
                              c->str);
    heft_status st = is_bool ? read_bool(out, c, name) : read_scheme(out, c, x, seen, from);
    if (!st)
        heft_cbor_next(c); /* the end of the map */
    return st;
}

/* ---- writing ---- */

/* The kind of Bool that is meant; HEFT_BURN_BOOLS: none. */
static unsigned bool_kind(heft_dtype t, heft_str stored)
{
    unsigned i = 0;
    while (i < HEFT_BURN_BOOLS &&
           !(heft_burn_bools[i].dtype == t && heft_str_is(stored, heft_burn_bools[i].stored)))
        i++;
    return i;
}

bool heft_burnpack_is_stored_dtype(heft_dtype t, heft_str stored)
{
    return bool_kind(t, stored) < HEFT_BURN_BOOLS ||
           (t == HEFT_F32 && heft_str_is(stored, heft_burn_flex32));
}

void heft_burnpack_put_type(heft_out *o, heft_dtype t, heft_str stored, bool text_bool)
{
    unsigned kind = bool_kind(t, stored);
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

static bool put_from_hex(heft_out *o, heft_str hex)
{
    unsigned byte = 0;
    for (size_t i = 0; i < hex.len; i++) {
        unsigned digit = 0;
        while (digit < 16 && digits[digit] != hex.ptr[i])
            digit++;
        if (digit == 16)
            return false;
        byte = byte << 4 | digit;
        if (i % 2)
            heft_out_u8(o, (uint8_t)byte);
    }
    return hex.len % 2 == 0;
}

/* Members of the container that j, whose copy this is, has just entered.  It is gone through once more for every level
 * that it lies at. */
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
    enum { MOST = 64 << 10 }; /* no scheme is as long; work grows with length and depth */
    if (stored.len > MOST)
        return false;
    if (stored.len > MARK && !memcmp(stored.ptr, hex_mark, MARK))
        return put_from_hex(o, (heft_str){ stored.ptr + MARK, stored.len - MARK });
    heft_json j = heft_json_open(stored, 0, HEFT_JSON_DEPTH, NULL, NULL);
    for (heft_json_kind k; (k = heft_json_next(&j)) != HEFT_JSON_END;)
        if (!put_json_token(o, &j, k))
            return false;
    return true;
}
