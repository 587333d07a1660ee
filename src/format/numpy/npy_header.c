/* npy_header.c - reads and writes the Python literal in the header of an array:
 *
 *    {'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }
 *
 * NumPy evaluates the literal with Python.  This parser accepts only this dictionary: three keys in
 * any order, strings, True and False, integers, wherever Python allows white space, comments and
 * parentheses.
 */
#include "format/numpy/npy.h"
#include "grammar/python_literal.h"

typedef struct literal {
    heft_python text;
    uint64_t base;
    bool is_stored; /* the bytes of the text are in the file; false: decoded bytes */
    heft_str name;  /* name of the array, for messages */
    const heft_array_types *types;
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
    uint64_t at = l->is_stored ? l->base + (uint64_t)(l->text.p - l->text.start) : l->base;
    return heft_error_set(l->err, st, at, "array %q: %s", l->name, why.message);
}

/* Fail if `why` says what is wrong at the current position. */
static heft_status refuse(const literal *l, const char *why)
{
    return why ? fail(l, HEFT_E_FORMAT, "%s", why) : HEFT_OK;
}

static heft_status expect(literal *l, char c, const char *what)
{
    const char text[] = { c, 0 };
    return heft_python_take(&l->text, c)
               ? HEFT_OK
               : fail(l, HEFT_E_FORMAT, "the header has no '%s' %s", text, what);
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
    { "V", "raw bytes: NumPy stores types of other packages without a name (--view NAME=TYPE)" },
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

/* The characters that NumPy has for C types, and these types on Linux with 64 bits.  In the list of
 * names each name is followed by such a character. */
static const char characters[] = "?bBhHiIlLqQpPefdFD";
static const uint8_t types_of_characters[] = {
    HEFT_BOOL, HEFT_I8,  HEFT_U8,  HEFT_I16, HEFT_U16, HEFT_I32, HEFT_U32, HEFT_I64, HEFT_U64,
    HEFT_I64,  HEFT_U64, HEFT_I64, HEFT_U64, HEFT_F16, HEFT_F32, HEFT_F64, HEFT_C64, HEFT_C128,
};
static const char names[] =
    "bool? bool_? bool8? int8b byteb uint8B ubyteB int16h shorth uint16H ushortH int32i intci "
    "uint32I uintcI int64l intl int_l longl intpl int0l longlongl uint64L uintL ulongL uintpL "
    "uint0L ulonglongL float16e halfe float32f singlef float64d doubled floatd float_d complex64F "
    "csingleF singlecomplexF complex128D complexD complex_D cdoubleD cfloatD ";

static heft_dtype type_of_character(char c)
{
    for (size_t i = 0; characters[i]; i++)
        if (characters[i] == c)
            return types_of_characters[i];
    return HEFT_UNTYPED;
}

static heft_dtype type_of_name(heft_str name)
{
    size_t len = 0;
    for (const char *p = names; !HEFT_IS_LEAN && *p; p += len + 1) {
        for (len = 0; p[len] != ' ';)
            len++;
        if (heft_str_eq((heft_str){ p, len - 1 }, name))
            return type_of_character(p[len - 1]);
    }
    return HEFT_UNTYPED;
}

/* Return the size of a type without a name (V2), or 0. */
static uint64_t nameless_bytes(heft_str type)
{
    enum { MOST_DIGITS = 9 };
    uint64_t bytes = 0;
    if (heft_str_is(type, "f1"))
        return 1;
    if (type.len < 2 || type.len > MOST_DIGITS || *type.ptr != 'V')
        return 0;
    for (size_t i = 1; i < type.len; i++) {
        if (type.ptr[i] < '0' || type.ptr[i] > '9')
            return 0;
        bytes = 10 * bytes + (uint64_t)(type.ptr[i] - '0');
    }
    return bytes;
}

/* Find the type of elements that NumPy stores without a name: the caller's, or the usual one. */
static heft_status read_nameless(literal *l, heft_str type, heft_str whole)
{
    uint64_t bytes = nameless_bytes(type);
    heft_npy *h = l->h;
    h->dtype = !HEFT_IS_LEAN && bytes && l->types ? l->types->choose(l->types->ctx, l->name, bytes)
                                                  : HEFT_UNTYPED;
    h->is_chosen = !HEFT_IS_LEAN && h->dtype;
    const heft_dtype_info *chosen = heft_dtype_get(h->dtype);
    if (h->is_chosen && (!chosen || chosen->block_elems != 1 || chosen->block_bytes != bytes))
        return fail(
            l, HEFT_E_ARGUMENT,
            "elements of type %q have %U byte%s, and cannot be read as "
            "%s (%U bits)",
            whole, bytes, bytes == 1 ? "" : "s", chosen ? chosen->name : "an unknown type",
            (uint64_t)(chosen ? 8 * (uint32_t)chosen->block_bytes / chosen->block_elems : 0));
    if (!h->is_chosen)
        h->dtype = heft_dtype_spelled(&nameless, type);
    h->is_nameless = h->dtype;
    return HEFT_OK;
}

static heft_status read_type(literal *l, heft_str whole)
{
    heft_str s = whole;
    char order = s.len ? *s.ptr : 0;
    bool has_order = order == '<' || order == '>' || order == '|' || order == '=';
    l->h->is_big_endian = order == '>';
    s = (heft_str){ s.ptr + has_order, s.len - has_order };
    l->h->dtype = s.len == 1 ? type_of_character(*s.ptr) : heft_dtype_spelled(&types, s);
    if (!l->h->dtype && !has_order)
        l->h->dtype = type_of_name(s);
    heft_status st = l->h->dtype ? HEFT_OK : read_nameless(l, s, whole);
    if (st || l->h->dtype)
        return st;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++)
        if (heft_str_begins(s, refusals[i].prefix))
            return fail(l, HEFT_E_UNSUPPORTED, "elements of type %q are %s", whole,
                        refusals[i].what);
    /* Other packages register names, such as bfloat16; no name begins with an order of bytes. */
    bool is_name = !has_order && s.len > 2 && *s.ptr >= 'a' && *s.ptr <= 'z';
    return fail(l, is_name ? HEFT_E_UNSUPPORTED : HEFT_E_FORMAT, "unknown NumPy element type %q",
                whole);
}

static heft_status read_descr(literal *l)
{
    heft_python_text text;
    uint32_t opened = heft_python_open(&l->text);
    char next = heft_python_peek(&l->text);
    const char *from = l->text.p;
    bool is_record = next == '[' || next == '{' || (opened && next == ')');
    heft_status st = is_record ? HEFT_OK : refuse(l, heft_python_string(&l->text, &text));
    if (is_record || (!st && opened && heft_python_peek(&l->text) == ','))
        return fail(l, HEFT_E_UNSUPPORTED, "the elements are records (a structured dtype)");
    if (!st)
        st = refuse(l, heft_python_close(&l->text, opened));
    if (st)
        return st;
    const char *after = l->text.p;
    l->text.p = from; /* the offset of an error is that of the string */
    st = read_type(l, (heft_str){ text.bytes, text.len });
    l->text.p = st ? from : after;
    return st;
}

/* ---- shape and order ---- */

/* Read an integer, within parentheses or not. */
static heft_status read_dim(literal *l, uint32_t opened)
{
    heft_npy *h = l->h;
    if (h->rank == HEFT_NPY_RANK)
        return fail(l, HEFT_E_FORMAT, "more than %U dimensions", (uint64_t)HEFT_NPY_RANK);
    const char *why = heft_python_integer(&l->text, &h->dims[h->rank]);
    h->rank += !why;
    return refuse(l, why ? why : heft_python_close(&l->text, opened));
}

/* Read the first dimension.  The parentheses that are closed before the first comma belong to the
 * dimension, and the next one to the tuple. */
static heft_status read_first_dim(literal *l, uint32_t *opened)
{
    HEFT_TRY(read_dim(l, 0));
    while (*opened && heft_python_take(&l->text, ')'))
        --*opened;
    /* (3) is a number, (3,) a tuple */
    if (!*opened)
        return fail(l, HEFT_E_FORMAT, "the shape is not a tuple");
    return expect(l, ',', "after the first dimension");
}

static heft_status read_shape(literal *l)
{
    heft_python *t = &l->text;
    uint32_t opened = heft_python_open(t);
    heft_status st = opened ? HEFT_OK : expect(l, '(', "before the shape");
    if (!st && heft_python_peek(t) != ')')
        st = read_first_dim(l, &opened);
    bool has_comma = true;
    while (!st && heft_python_peek(t) != ')') {
        if (!has_comma)
            return fail(l, HEFT_E_FORMAT, "no comma between two dimensions");
        st = read_dim(l, heft_python_open(t));
        has_comma = !st && heft_python_take(t, ',');
    }
    return st ? st : refuse(l, heft_python_close(t, opened));
}

static heft_status read_order(literal *l)
{
    uint32_t opened = heft_python_open(&l->text);
    l->h->is_fortran = heft_python_word(&l->text, "True");
    if (!l->h->is_fortran && !heft_python_word(&l->text, "False"))
        return fail(l, HEFT_E_FORMAT, "fortran_order is neither True nor False");
    return refuse(l, heft_python_close(&l->text, opened));
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

static heft_status read_key(literal *l, heft_python_text *key)
{
    uint32_t opened = heft_python_open(&l->text);
    const char *why = heft_python_string(&l->text, key);
    HEFT_TRY(refuse(l, why ? why : heft_python_close(&l->text, opened)));
    return expect(l, ':', "after a key");
}

static heft_status read_field(literal *l, uint32_t *seen)
{
    heft_python_text text;
    heft_python_peek(&l->text);
    const char *from = l->text.p;
    HEFT_TRY(read_key(l, &text));
    heft_str key = { text.bytes, text.len };
    for (uint32_t i = 0; i < FIELDS; i++) {
        if (!heft_str_is(key, fields[i].key))
            continue;
        if (*seen >> i & 1) {
            l->text.p = from; /* the offset of the error is that of the key */
            return fail(l, HEFT_E_FORMAT, "the header has %q twice", key);
        }
        *seen |= 1u << i;
        return fields[i].read(l);
    }
    l->text.p = from;
    return fail(l, HEFT_E_FORMAT, "unknown key %q in the header", key);
}

static heft_status read_fields(literal *l)
{
    uint32_t seen = 0;
    bool has_comma = true;
    heft_status st = expect(l, '{', "at the start");
    while (!st && heft_python_peek(&l->text) != '}') {
        if (!has_comma)
            return fail(l, HEFT_E_FORMAT, "no comma between two fields of the header");
        st = read_field(l, &seen);
        has_comma = !st && heft_python_take(&l->text, ',');
    }
    if (!st)
        st = expect(l, '}', "at the end");
    for (uint32_t i = 0; i < FIELDS && !st; i++)
        if (!(seen >> i & 1))
            st = fail(l, HEFT_E_FORMAT, "the header has no %q", heft_lit(fields[i].key));
    return st;
}

/* Python takes white space at the beginning of a line for a block of a program, except on the first
 * line, of which NumPy removes it. */
static bool is_indented(const heft_python *text)
{
    const char *p = text->p;
    while (p > text->start && (p[-1] == ' ' || p[-1] == '\t'))
        p--;
    return p < text->p && p > text->start;
}

heft_status heft_npy_literal(heft_npy *out, heft_str text, uint64_t at, bool is_stored,
                             heft_str name, const heft_array_types *choice, heft_error *err)
{
    heft_python python = { text.ptr, text.ptr + text.len, text.ptr, out->has_long };
    literal l = { python, at, is_stored, name, choice, err, out };
    heft_python_peek(&l.text);
    if (is_indented(&l.text))
        return fail(&l, HEFT_E_FORMAT, "the line is indented");
    uint32_t opened = heft_python_open(&l.text);
    heft_status st = read_fields(&l);
    if (!st)
        st = refuse(&l, heft_python_close(&l.text, opened));
    heft_python_peek(&l.text);
    return !st && l.text.p < l.text.end
               ? fail(&l, HEFT_E_FORMAT, "unexpected text after the end of the header")
               : st;
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
