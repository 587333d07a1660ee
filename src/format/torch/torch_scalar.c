/* torch_scalar.c - converts numbers, texts and a few kinds of objects to metadata. */
#include "format/torch/torch.h"
#include "model/values.h"

static bool no_memory(heft_torch *t)
{
    t->st = heft_error_no_memory(t->x->err, "for a text");
    return false;
}

static bool charge(heft_torch *t, uint64_t work, uint32_t value)
{
    t->st = heft_torch_charge(t, work, heft_pickle_offset(&t->p, value));
    return !t->st;
}

static bool set_joined_text(heft_torch *t, heft_value *out, heft_str a, const char *between,
                            heft_str b)
{
    out->kind = HEFT_KIND_STR;
    out->as.s = heft_arena_join(&t->x->arena, a, heft_lit(between), b);
    return out->as.s.ptr || no_memory(t);
}

/* ("cuda") becomes cuda, ("cuda", 1) becomes cuda:1. */
static bool read_device(heft_torch *t, heft_value *out, uint32_t args)
{
    char digits[20];
    uint64_t index;
    uint32_t kind = heft_pickle_item(&t->p, args, 0);
    if (!heft_pickle_is(&t->p, kind, HEFT_PICKLE_TEXT))
        return false;
    heft_str name = heft_pickle_at(&t->p, kind)->as.s;
    out->kind = HEFT_KIND_STR;
    out->as.s = name;
    if (!heft_pickle_u64(&index, &t->p, heft_pickle_item(&t->p, args, 1)))
        return true;
    if (!charge(t, name.len, kind))
        return false;
    heft_str number = { digits, heft_u64_text(digits, index) };
    return set_joined_text(t, out, name, ":", number);
}

/* NumPy's names of scalar types: kind and size in bytes. */
static const heft_dtype_spelling number_rows[] = {
    { "f8", HEFT_F64 }, { "f4", HEFT_F32 }, { "f2", HEFT_F16 }, { "i8", HEFT_I64 },
    { "i4", HEFT_I32 }, { "i2", HEFT_I16 }, { "i1", HEFT_I8 },  { "u8", HEFT_U64 },
    { "u4", HEFT_U32 }, { "u2", HEFT_U16 }, { "u1", HEFT_U8 },  { "b1", HEFT_BOOL },
};
static const heft_dtype_spellings numbers = { number_rows,
                                              sizeof number_rows / sizeof *number_rows };

static bool number_type(const heft_pickle *p, uint32_t dtype, heft_dtype *type)
{
    if (!heft_pickle_is(p, dtype, HEFT_PICKLE_OBJECT))
        return false;
    const heft_pickle_value *o = heft_pickle_at(p, dtype);
    uint32_t name = heft_pickle_item(p, o->as.object.args, 0);
    uint32_t order = heft_pickle_item(p, o->as.object.state, 1); /* (3, "<", …) */
    if (!heft_pickle_is_global(p, o->as.object.callable, "numpy", "dtype") ||
        !heft_pickle_is(p, name, HEFT_PICKLE_TEXT))
        return false;
    if (heft_pickle_is(p, order, HEFT_PICKLE_TEXT) &&
        heft_str_is(heft_pickle_at(p, order)->as.s, ">"))
        return false;
    *type = heft_dtype_spelled(&numbers, heft_pickle_at(p, name)->as.s);
    return *type != HEFT_UNTYPED;
}

/* ---- bytes ---- */

/* Return the TEXT of _codecs.encode(TEXT, "latin1"), as protocols before 3 store bytes, or
 * HEFT_NONE. */
static uint32_t encoded_text(const heft_pickle *p, uint32_t args)
{
    uint32_t text = heft_pickle_item(p, args, 0), encoding = heft_pickle_item(p, args, 1);
    bool fits = heft_pickle_is(p, text, HEFT_PICKLE_TEXT) &&
                heft_pickle_is(p, encoding, HEFT_PICKLE_TEXT) &&
                heft_str_is(heft_pickle_at(p, encoding)->as.s, "latin1");
    return fits ? text : HEFT_NONE;
}

/* Write the code points of a text as bytes; return false if one is above 255, or if they are more
 * than `most`. */
static bool put_latin1(uint8_t *to, size_t most, size_t *len, heft_str s)
{
    *len = 0;
    for (size_t i = 0; i < s.len; i++) {
        uint8_t c = (uint8_t)s.ptr[i];
        if (c >= 0xC4 || *len == most)
            return false;
        if (c >= 0x80)
            c = (uint8_t)((c & 3) << 6 | ((uint8_t)s.ptr[++i] & 0x3F));
        to[(*len)++] = c;
    }
    return true;
}

static bool read_bytes(heft_torch *t, heft_value *out, uint32_t args)
{
    uint32_t text = encoded_text(&t->p, args);
    if (text == HEFT_NONE)
        return false;
    heft_str s = heft_pickle_at(&t->p, text)->as.s;
    uint8_t *bytes = charge(t, s.len, text) ? heft_arena_alloc(&t->x->arena, s.len + 1, 1) : NULL;
    size_t len;
    if (!bytes)
        return t->st ? false : no_memory(t);
    if (!put_latin1(bytes, s.len, &len, s))
        return false;
    out->kind = HEFT_KIND_BYTES;
    out->as.s = (heft_str){ (const char *)bytes, len };
    return true;
}

/* ---- numbers ---- */

/* Get the bytes of a scalar. */
static bool number_bytes(const heft_pickle *p, uint32_t value, uint8_t bytes[8], size_t *len)
{
    enum { MOST = 8 };
    if (heft_pickle_is(p, value, HEFT_PICKLE_OBJECT)) {
        const heft_pickle_value *o = heft_pickle_at(p, value);
        bool is_encoded = heft_pickle_is_global(p, o->as.object.callable, "_codecs", "encode");
        value = is_encoded ? encoded_text(p, o->as.object.args) : HEFT_NONE;
        return value != HEFT_NONE && put_latin1(bytes, MOST, len, heft_pickle_at(p, value)->as.s);
    }
    if (!heft_pickle_is(p, value, HEFT_PICKLE_BYTES) || heft_pickle_at(p, value)->as.s.len > MOST)
        return false;
    *len = heft_pickle_at(p, value)->as.s.len;
    memcpy(bytes, heft_pickle_at(p, value)->as.s.ptr, *len);
    return true;
}

static bool read_number(const heft_torch *t, heft_value *out, uint32_t args)
{
    heft_dtype type;
    uint8_t bytes[8] = { 0 };
    size_t len;
    if (!number_type(&t->p, heft_pickle_item(&t->p, args, 0), &type) ||
        heft_pickle_item(&t->p, args, 1) == HEFT_NONE ||
        !number_bytes(&t->p, heft_pickle_item(&t->p, args, 1), bytes, &len) ||
        len != heft_dtype_size(type))
        return false;
    *out = heft_value_number(type, bytes);
    return true;
}

/* Convert an integer beyond 64 bits to text, like Python's hex(). */
static bool read_big_integer(heft_torch *t, heft_value *out, heft_str s)
{
    bool is_negative = (uint8_t)s.ptr[s.len - 1] >> 7;
    char *text = heft_arena_alloc(&t->x->arena, 2 * s.len + 3, 1), *to = text;
    uint32_t carry = is_negative;
    if (!text)
        return no_memory(t);
    char *end = text + 2 * s.len + 3;
    for (size_t i = 0; i < s.len;
         i++) { /* from the lowest digit, backwards from the end of the text */
        uint32_t byte = ((uint8_t)s.ptr[i] ^ (is_negative ? 0xFF : 0)) + carry;
        carry = byte >> 8;
        uint8_t low = (uint8_t)byte;
        heft_hex_text(end - 2 * (i + 1), &low, 1);
    }
    char *digits = text + 3;
    while (digits + 1 < end && *digits == '0')
        digits++;
    if (is_negative)
        *to++ = '-';
    *to++ = '0';
    *to++ = 'x';
    memmove(to, digits, (size_t)(end - digits));
    out->kind = HEFT_KIND_STR;
    out->as.s = (heft_str){ text, (size_t)(to - text) + (size_t)(end - digits) };
    return true;
}

/* Read an integer of 64 bits without a sign. */
static bool read_unsigned(heft_value *out, heft_str s)
{
    enum { BYTES = 8 };
    if (s.len != BYTES + 1 || s.ptr[BYTES])
        return false;
    out->kind = HEFT_KIND_UINT;
    out->as.u = heft_le64((const uint8_t *)s.ptr);
    return true;
}

/* Convert a value that is not an object. */
static bool read_plain(heft_torch *t, heft_value *out, uint32_t value)
{
    const heft_pickle_value *v = heft_pickle_at(&t->p, value);
    heft_str module, name;
    switch (v->kind) {
    case HEFT_PICKLE_NONE:
        out->kind = HEFT_KIND_NULL;
        return true;
    case HEFT_PICKLE_BOOL:
        out->kind = HEFT_KIND_BOOL;
        out->as.b = v->as.b;
        return true;
    case HEFT_PICKLE_INT:
        out->kind = HEFT_KIND_INT;
        out->as.i = v->as.i;
        return true;
    case HEFT_PICKLE_FLOAT:
        out->kind = HEFT_KIND_FLOAT;
        out->as.f = v->as.f;
        return true;
    case HEFT_PICKLE_DECIMAL:
    case HEFT_PICKLE_TEXT:
    case HEFT_PICKLE_BYTES:
        out->kind = v->kind == HEFT_PICKLE_BYTES ? HEFT_KIND_BYTES : HEFT_KIND_STR;
        out->as.s = v->as.s;
        return true;
    case HEFT_PICKLE_BIG:
        if (read_unsigned(out, v->as.s))
            return true;
        return charge(t, v->as.s.len, value) && read_big_integer(t, out, v->as.s);
    case HEFT_PICKLE_GLOBAL:
        /* a dtype such as torch.float32, or any class or function */
        module = heft_pickle_module(&t->p, value);
        name = heft_pickle_name(&t->p, value);
        return charge(t, module.len + name.len, value) &&
               set_joined_text(t, out, module, ".", name);
    default:
        return false;
    }
}

bool heft_torch_scalar(heft_torch *t, heft_value *out, uint32_t value)
{
    heft_torch_interpretation m = heft_torch_interpret(t, value);
    *out = (heft_value){ .kind = HEFT_KIND_NULL };
    if (m.kind == HEFT_TORCH_DEVICE)
        return read_device(t, out, m.args);
    if (m.kind == HEFT_TORCH_NUMBER)
        return read_number(t, out, m.args);
    if (m.kind == HEFT_TORCH_BYTES)
        return read_bytes(t, out, m.args);
    return m.kind == HEFT_TORCH_VALUE && read_plain(t, out, m.value);
}
