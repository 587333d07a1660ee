/* types.c - generations of Burn, and element types: text or maps of one entry, and how they are spelled as stored_dtype.
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

const char heft_burnpack_qfloat[] = "burn.qfloat", heft_burnpack_scalars[] = "burn.scalars";

static const heft_dtype_spelling type_rows[] = {
    { "F32", HEFT_F32 }, { "F16", HEFT_F16 }, { "BF16", HEFT_BF16 }, { "F64", HEFT_F64 },
    { "I64", HEFT_I64 }, { "I32", HEFT_I32 }, { "U8", HEFT_U8 },     { "I8", HEFT_I8 },
    { "I16", HEFT_I16 }, { "U64", HEFT_U64 }, { "U32", HEFT_U32 },   { "U16", HEFT_U16 },
};
static const heft_dtype_spellings types = { type_rows, sizeof type_rows / sizeof *type_rows };

static const struct {
    const char *store, *stored; /* as stored_dtype spells it; the first is what every bool is */
    heft_dtype dtype;
} bools[] = {
    { "Native", "{\"Bool\":\"Native\"}", HEFT_BOOL },
    { "U8", "{\"Bool\":\"U8\"}", HEFT_BOOL },
    { "U32", "{\"Bool\":\"U32\"}", HEFT_U32 },
};
enum { BOOLS = sizeof bools / sizeof *bools };

static const char hex_mark[] = "cbor:", digits[] = "0123456789abcdef";
enum { MARK = sizeof hex_mark - 1 };

heft_str heft_burnpack_type_name(heft_dtype t)
{
    const char *name = heft_dtype_spelling_of(&types, t);
    return name ? heft_lit(name) : (heft_str){ NULL, 0 };
}

/* ---- schemes as text ---- */

/* A text that is its own spelling between quotes. */
static bool is_plain(heft_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if ((uint8_t)s.ptr[i] < ' ' || s.ptr[i] == '"' || s.ptr[i] == '\\')
            return false;
    return true;
}

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
        return is_plain(c->str);
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
        if (c.place == HEFT_CBOR_AS_VALUE)
            heft_out_u8(o, ':');
        else if (!is_first)
            heft_out_u8(o, ',');
        if (!put_json_item(o, &c, k) || (c.place == HEFT_CBOR_AS_KEY && k != HEFT_CBOR_TEXT))
            return false;
        is_first = k == HEFT_CBOR_ARRAY || k == HEFT_CBOR_MAP;
    }
    return true;
}

static void put_hex(heft_out *o, heft_str raw)
{
    heft_out_str(o, heft_lit(hex_mark));
    for (size_t i = 0; i < raw.len; i++) {
        uint8_t byte = (uint8_t)raw.ptr[i];
        heft_out_u8(o, (uint8_t)digits[byte >> 4]);
        heft_out_u8(o, (uint8_t)digits[byte & 15]);
    }
}

static heft_status spell_scheme(heft_index *x, heft_burnpack_schemes *seen, heft_str raw)
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
        put_hex(&o, raw);
    seen->raw = raw;
    seen->text = (heft_str){ (char *)text, len };
    seen->generations = heft_burnpack_scheme_generations(raw);
    return HEFT_OK;
}

/* ---- reading ---- */

static heft_status refuse(heft_cbor *c, heft_str name)
{
    return heft_cbor_fail(c, "tensor %q: its dtype is neither a text nor a map of one entry", name);
}

static heft_status read_plain(heft_burnpack_type *out, heft_cbor *c, heft_str name)
{
    heft_dtype t = heft_dtype_spelled(&types, c->str);
    if (t)
        *out = (heft_burnpack_type){ .name = c->str, .dtype = t, .generations = HEFT_BURNPACK_ANY };
    else if (heft_str_is(c->str, "Bool"))
        *out = (heft_burnpack_type){ .name = c->str,
                                     .dtype = HEFT_BOOL,
                                     .generations = HEFT_BURNPACK_TEXT_BOOL };
    else if (heft_str_is(c->str, "Flex32"))
        *out = (heft_burnpack_type){
            .name = c->str, .dtype = HEFT_F32, .stored = c->str, .generations = HEFT_BURNPACK_ANY
        };
    else
        return heft_cbor_fail(c, "tensor %q: element type %q is none of Burnpack's", name, c->str);
    return HEFT_OK;
}

static heft_status read_bool(heft_burnpack_type *out, heft_cbor *c, heft_str name)
{
    if (heft_cbor_next(c) != HEFT_CBOR_TEXT)
        return heft_cbor_fail(c, "tensor %q: its kind of Bool is not a text", name);
    for (unsigned i = 0; i < BOOLS; i++)
        if (heft_str_is(c->str, bools[i].store)) {
            out->dtype = bools[i].dtype;
            out->generations = HEFT_BURNPACK_ANY & ~HEFT_BURNPACK_TEXT_BOOL;
            if (i)
                out->stored = heft_lit(bools[i].stored);
            return HEFT_OK;
        }
    return heft_cbor_fail(c, "tensor %q: Bool of %q is neither Native, U8 nor U32", name, c->str);
}

/* The map of one entry that begins at `from`, read up to the end of its value. */
static heft_status read_scheme(heft_burnpack_type *out, heft_cbor *c, heft_index *x,
                               heft_burnpack_schemes *seen, const uint8_t *from)
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

bool heft_burnpack_look_type(heft_cbor_look *l, heft_dtype *out)
{
    enum { LONGEST = 4 };
    uint32_t len;
    if (!heft_cbor_look_head(l, HEFT_CBOR_HEAD_TEXT, LONGEST, &len) ||
        (size_t)(l->end - l->p) < len)
        return false;
    *out = heft_dtype_spelled(&types, (heft_str){ (const char *)l->p, len });
    l->p += len;
    return *out != HEFT_UNTYPED;
}

heft_status heft_burnpack_read_type(heft_burnpack_type *out, heft_cbor *c, heft_index *x,
                                    heft_burnpack_schemes *seen, heft_str name)
{
    heft_cbor_kind k = heft_cbor_next(c);
    const uint8_t *from = c->item;
    seen->in_chunks = k == HEFT_CBOR_TEXT && c->flags & HEFT_CBOR_INDEFINITE;
    if (k == HEFT_CBOR_TEXT)
        return read_plain(out, c, name);
    if (k != HEFT_CBOR_MAP || c->flags & HEFT_CBOR_INDEFINITE || c->u != 1 ||
        heft_cbor_next(c) != HEFT_CBOR_TEXT)
        return refuse(c, name);
    seen->in_chunks = c->flags & HEFT_CBOR_INDEFINITE;
    *out = (heft_burnpack_type){ .name = c->str };
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

static const char flex32[] = "Flex32";

/* The kind of Bool that is meant; BOOLS: none. */
static unsigned bool_kind(heft_dtype t, heft_str stored)
{
    unsigned i = 0;
    while (i < BOOLS && !(bools[i].dtype == t && heft_str_is(stored, bools[i].stored)))
        i++;
    return i;
}

bool heft_burnpack_is_stored(heft_dtype t, heft_str stored)
{
    return bool_kind(t, stored) < BOOLS || (t == HEFT_F32 && heft_str_is(stored, flex32));
}

void heft_burnpack_put_type(heft_out *o, heft_dtype t, heft_str stored, bool text_bool)
{
    unsigned kind = bool_kind(t, stored);
    if (!text_bool && (kind < BOOLS || t == HEFT_BOOL)) {
        heft_cbor_put_map(o, 1);
        heft_cbor_put_text(o, heft_lit("Bool"));
        heft_cbor_put_text(o, heft_lit(bools[kind < BOOLS ? kind : 0].store));
    } else if (t == HEFT_BOOL) {
        heft_cbor_put_text(o, heft_lit("Bool"));
    } else if (t == HEFT_F32 && heft_str_is(stored, flex32)) {
        heft_cbor_put_text(o, stored);
    } else {
        heft_cbor_put_text(o, heft_burnpack_type_name(t));
    }
}

static int hex_digit(char c)
{
    for (int i = 0; i < 16; i++)
        if (digits[i] == c)
            return i;
    return -1;
}

static bool put_from_hex(heft_out *o, heft_str hex)
{
    for (size_t i = 0; i + 1 < hex.len; i += 2) {
        int high = hex_digit(hex.ptr[i]), low = hex_digit(hex.ptr[i + 1]);
        if (high < 0 || low < 0)
            return false;
        heft_out_u8(o, (uint8_t)(high << 4 | low));
    }
    return hex.len % 2 == 0;
}

/* Members of the container that j, whose copy this is, has just entered. */
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

/* Counting goes through each container once more for every level that it lies at. */
static bool put_from_json(heft_out *o, heft_str json)
{
    heft_json j = heft_json_open(json, 0, HEFT_JSON_DEPTH, NULL, NULL);
    heft_json_kind k;
    while ((k = heft_json_next(&j)) != HEFT_JSON_END)
        if (!put_json_token(o, &j, k))
            return false;
    return true;
}

bool heft_burnpack_put_stored(heft_out *o, heft_str stored)
{
    enum { MOST = 64 << 10 }; /* no scheme is as long; work grows with length and depth */
    if (stored.len > MOST)
        return false;
    if (stored.len > MARK && !memcmp(stored.ptr, hex_mark, MARK))
        return put_from_hex(o, (heft_str){ stored.ptr + MARK, stored.len - MARK });
    return put_from_json(o, stored);
}
