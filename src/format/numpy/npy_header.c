/* npy_header.c - reads and writes the Python literal in the header of an array:
 *
 *    {'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }
 *
 * NumPy evaluates the literal with Python.  This parser accepts only this dictionary: three keys in
 * any order, strings without escapes, True and False, decimal integers.
 */
#include "format/numpy/npy.h"

typedef struct literal {
    const char *p, *end, *start;
    uint64_t base;
    bool is_stored; /* the bytes of the text are in the file; false: decoded bytes */
    heft_str name;  /* name of the array, for messages */
    heft_error *err;
    heft_npy *h;
} literal;

static heft_status fail(const literal *l, heft_status st, const char *fmt, ...)
{
    heft_error why;
    va_list ap;
    va_start(ap, fmt);
    heft_error_set_list(&why, st, 0, fmt, &ap);
    va_end(ap);
    uint64_t at = l->is_stored ? l->base + (uint64_t)(l->p - l->start) : l->base;
    return heft_error_set(l->err, st, at, "array %q: %s", l->name, why.message);
}

/* Skip white space; return the next character, or 0 at the end. */
static char peek(literal *l)
{
    while (l->p < l->end && (*l->p == ' ' || *l->p == '\t' || *l->p == '\n' || *l->p == '\r'))
        l->p++;
    return l->p < l->end ? *l->p : 0;
}

static bool take(literal *l, char c)
{
    bool matches = peek(l) == c;
    l->p += matches;
    return matches;
}

static heft_status expect(literal *l, char c, const char *what)
{
    const char text[] = { c, 0 };
    return take(l, c) ? HEFT_OK : fail(l, HEFT_E_FORMAT, "the header has no '%s' %s", text, what);
}

static heft_status read_string(literal *l, heft_str *out)
{
    char quote = peek(l);
    if (quote != '\'' && quote != '"')
        return fail(l, HEFT_E_FORMAT, "a string is missing in the header");
    out->ptr = ++l->p;
    while (l->p < l->end && *l->p != quote && *l->p != '\\' && *l->p != '\n')
        l->p++;
    if (l->p == l->end || *l->p != quote)
        return fail(l, HEFT_E_FORMAT, "a string in the header does not end, or has an escape");
    out->len = (size_t)(l->p++ - out->ptr);
    return HEFT_OK;
}

/* ---- descr ---- */

/* Spellings after the letter for the byte order. */
static const heft_dtype_spelling type_rows[] = {
    { "f4", HEFT_F32 }, { "f2", HEFT_F16 },   { "f8", HEFT_F64 }, { "i8", HEFT_I64 },
    { "i4", HEFT_I32 }, { "i2", HEFT_I16 },   { "i1", HEFT_I8 },  { "u1", HEFT_U8 },
    { "u2", HEFT_U16 }, { "u4", HEFT_U32 },   { "u8", HEFT_U64 }, { "b1", HEFT_BOOL },
    { "c8", HEFT_C64 }, { "c16", HEFT_C128 },
};
static const heft_dtype_spellings types = { type_rows, sizeof type_rows / sizeof *type_rows };

typedef struct refusal { /* an unsupported type */
    const char *prefix, *what;
} refusal;

static const refusal refusals[] = {
    { "O", "Python objects, which are stored as a pickle and not supported" },
    { "S", "byte strings, not numbers" },
    { "a", "byte strings, not numbers" },
    { "U", "strings, not numbers" },
    { "T", "strings, not numbers" },
    { "M", "dates, not numbers" },
    { "m", "spans of time, not numbers" },
    { "V", "raw bytes: NumPy stores bfloat16 and other foreign types without a name" },
    { "f10", "extended precision, which differs between machines" },
    { "f12", "extended precision, which differs between machines" },
    { "f16", "extended precision, which differs between machines" },
    { "c20", "extended precision, which differs between machines" },
    { "c24", "extended precision, which differs between machines" },
    { "c32", "extended precision, which differs between machines" },
};

/* Types that NumPy stores without a name: what the programs that write them mean.  MLX, JAX, Keras
 * and ml_dtypes write bfloat16 as V2. */
static const heft_dtype_spelling nameless_rows[] = {
    { "V2", HEFT_BF16 },
    { "f1", HEFT_F8_E5M2 },
    { "V1", HEFT_F8_E4M3FN },
};
static const heft_dtype_spellings nameless = { nameless_rows,
                                               sizeof nameless_rows / sizeof *nameless_rows };

static heft_status read_descr(literal *l)
{
    heft_str s = { NULL, 0 };
    char next = peek(l);
    if (next == '[' || next == '(' || next == '{')
        return fail(l, HEFT_E_UNSUPPORTED, "the elements are records (a structured dtype)");
    heft_status st = read_string(l, &s);
    if (st)
        return st;
    heft_str whole = s;
    l->h->is_big_endian = s.len && *s.ptr == '>';
    if (s.len && (*s.ptr == '<' || *s.ptr == '>' || *s.ptr == '|' || *s.ptr == '='))
        s = (heft_str){ s.ptr + 1, s.len - 1 };
    l->h->dtype = heft_dtype_spelled(&types, s);
    if (l->h->dtype)
        return HEFT_OK;
    l->h->dtype = heft_dtype_spelled(&nameless, s);
    l->h->is_nameless = l->h->dtype;
    if (l->h->dtype)
        return HEFT_OK;
    l->p = whole.ptr - 1; /* the offset of the error is that of the string */
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++)
        if (heft_str_begins(s, refusals[i].prefix))
            return fail(l, HEFT_E_UNSUPPORTED, "elements of type %q are %s", whole,
                        refusals[i].what);
    return fail(l, HEFT_E_FORMAT, "unknown NumPy element type %q", whole);
}

/* ---- shape and order ---- */

static heft_status read_dim(literal *l, uint64_t *out)
{
    const char *from = l->p;
    uint64_t v = 0;
    for (; l->p < l->end && *l->p >= '0' && *l->p <= '9'; l->p++) {
        uint32_t digit = (uint32_t)(*l->p - '0');
        if (v > ((uint64_t)INT64_MAX - digit) / 10)
            return fail(l, HEFT_E_FORMAT, "a dimension exceeds 2^63 - 1");
        v = v * 10 + digit;
    }
    if (l->p == from || (*from == '0' && l->p - from > 1))
        return fail(l, HEFT_E_FORMAT, "a dimension is not a decimal integer");
    if (l->p < l->end && *l->p == 'L') /* suffix of Python 2's long integers */
        l->p++;
    *out = v;
    return HEFT_OK;
}

static heft_status read_shape(literal *l)
{
    heft_npy *h = l->h;
    bool has_comma = true, any_comma = false;
    heft_status st = expect(l, '(', "before the shape");
    while (!st && peek(l) != ')') {
        if (!has_comma)
            return fail(l, HEFT_E_FORMAT, "no comma between two dimensions");
        if (h->rank == HEFT_NPY_RANK)
            return fail(l, HEFT_E_FORMAT, "more than %U dimensions", (uint64_t)HEFT_NPY_RANK);
        st = read_dim(l, &h->dims[h->rank]);
        h->rank += !st;
        has_comma = !st && take(l, ',');
        any_comma = any_comma || has_comma;
    }
    if (!st && h->rank == 1 && !any_comma) /* (3) is a number, (3,) a tuple */
        return fail(l, HEFT_E_FORMAT, "the shape is not a tuple");
    return st ? st : expect(l, ')', "after the shape");
}

static heft_status read_order(literal *l)
{
    peek(l);
    heft_str rest = { l->p, (size_t)(l->end - l->p) };
    l->h->is_fortran = heft_str_begins(rest, "True");
    if (!l->h->is_fortran && !heft_str_begins(rest, "False"))
        return fail(l, HEFT_E_FORMAT, "fortran_order is neither True nor False");
    l->p += l->h->is_fortran ? 4 : 5;
    return HEFT_OK;
}

/* ---- the dictionary ---- */

typedef struct field {
    const char *key;
    heft_status (*read)(literal *l);
} field;

static const field fields[] = { { "descr", read_descr },
                                { "fortran_order", read_order },
                                { "shape", read_shape } };
enum { FIELDS = sizeof fields / sizeof *fields };

static heft_status read_field(literal *l, uint32_t *seen)
{
    heft_str key;
    heft_status st = read_string(l, &key);
    if (!st)
        st = expect(l, ':', "after a key");
    if (st)
        return st;
    for (uint32_t i = 0; i < FIELDS; i++) {
        if (!heft_str_is(key, fields[i].key))
            continue;
        if (*seen >> i & 1) {
            l->p = key.ptr - 1; /* the offset of the error is that of the key */
            return fail(l, HEFT_E_FORMAT, "the header has %q twice", key);
        }
        *seen |= 1u << i;
        return fields[i].read(l);
    }
    l->p = key.ptr - 1;
    return fail(l, HEFT_E_FORMAT, "unknown key %q in the header", key);
}

heft_status heft_npy_literal(heft_npy *out, heft_str text, uint64_t at, bool is_stored,
                             heft_str name, heft_error *err)
{
    literal l = { text.ptr, text.ptr + text.len, text.ptr, at, is_stored, name, err, out };
    uint32_t seen = 0;
    heft_status st = expect(&l, '{', "at the start");
    bool has_comma = true;
    while (!st && peek(&l) != '}') {
        if (!has_comma)
            return fail(&l, HEFT_E_FORMAT, "no comma between two fields of the header");
        st = read_field(&l, &seen);
        has_comma = !st && take(&l, ',');
    }
    if (!st)
        st = expect(&l, '}', "at the end");
    peek(&l);
    if (!st && l.p < l.end)
        return fail(&l, HEFT_E_FORMAT, "unexpected text after the end of the header");
    for (uint32_t i = 0; i < FIELDS && !st; i++)
        if (!(seen >> i & 1))
            st = fail(&l, HEFT_E_FORMAT, "the header has no %q", heft_lit(fields[i].key));
    return st;
}

/* ---- writing ---- */

bool heft_npy_has_type(heft_dtype t)
{
    return heft_dtype_spelling_of(&types, t) != NULL;
}

static void put_literal(heft_out *o, const heft_index *x, uint32_t tensor, bool is_fortran)
{
    const heft_ix_tensor_row *row = heft_ix_row(x, tensor);
    char digits[20];
    heft_out_str(o, heft_lit("{'descr': '"));
    heft_out_u8(o, heft_dtype_size(row->dtype) == 1 ? '|' : '<');
    heft_out_str(o, heft_lit(heft_dtype_spelling_of(&types, row->dtype)));
    heft_out_str(o, heft_lit("', 'fortran_order': "));
    heft_out_str(o, heft_lit(is_fortran ? "True" : "False"));
    heft_out_str(o, heft_lit(", 'shape': ("));
    for (uint32_t i = 0; i < row->rank; i++) {
        size_t n = heft_u64_text(digits, heft_ix_dims(x, tensor)[i]);
        heft_out_bytes(o, digits, n);
        heft_out_str(o, heft_lit(row->rank == 1 ? "," : i + 1u < row->rank ? ", " : ""));
    }
    heft_out_str(o, heft_lit("), }"));
}

void heft_npy_put(heft_out *o, const heft_index *x, uint32_t tensor, uint32_t align,
                  bool is_fortran)
{
    enum { PREFIX = 10 }; /* magic number, version, length */
    heft_out count = heft_out_counting();
    put_literal(&count, x, tensor, is_fortran);
    uint64_t used = PREFIX + count.total + 1, total = (used + align - 1) & ~((uint64_t)align - 1);
    heft_out_bytes(o, "\x93NUMPY\1\0", 8);
    heft_out_u16(o, (uint16_t)(total - PREFIX));
    put_literal(o, x, tensor, is_fortran);
    heft_out_fill(o, ' ', total - used);
    heft_out_u8(o, '\n');
}
