/* scan_npy_header.c - the length of an array, from the header of an npy file: a dictionary of
 * Python with the keys descr, fortran_order and shape.  A header that NumPy may read in another
 * way gives no length. */
#include "base/checked_math.h"
#include "base/cursor.h"
#include "base/text.h"
#include "grammar/json.h"
#include "grammar/python_literal.h"
#include "scan/scan.h"

static heft_str text_of(const heft_python_text *t)
{
    return (heft_str){ t->bytes, t->len };
}

static bool is_one_of(char c, const char *letters)
{
    heft_str all = heft_lit(letters);
    return heft_str_seek((const uint8_t *)all.ptr, (const uint8_t *)all.ptr + all.len, &c, 1);
}

/* Multiply by the sizes of a shape: "()", "(3,)", "(3, 4)"; Python 2 wrote "(3L,)". */
static bool multiply_shape(heft_python *l, uint64_t *bytes)
{
    uint64_t n;
    if (!heft_python_take(l, '('))
        return false;
    while (!heft_python_take(l, ')')) {
        if (heft_python_integer(l, &n) || !heft_mul(bytes, *bytes, n))
            return false;
        if (!heft_python_take(l, ',') && heft_python_peek(l) != ')')
            return false;
    }
    return true;
}

/* Read the type of a number or text, "<f4", "|S8", "<M8[ns]", or of an object: "|O". */
static bool read_type(heft_python *l, uint64_t *bytes, bool *has_objects)
{
    static const char letters[] = "biufcSUVMmO", orders[] = "<>|=";
    heft_python_text text;
    if (heft_python_string(l, &text))
        return false;
    heft_str t = text_of(&text);
    bool has_order = t.len && is_one_of(*t.ptr, orders);
    t = (heft_str){ t.ptr + has_order, t.len - has_order };
    if (!t.len || !is_one_of(*t.ptr, letters))
        return false;
    char letter = *t.ptr++;
    size_t digits = 0;
    for (t.len--; digits < t.len && heft_hex_digit(t.ptr[digits]) < 10;)
        digits++;
    *bytes = 0;
    *has_objects |= letter == 'O';
    if (letter == 'O' && !t.len)
        return true;
    bool is_time = letter == 'M' || letter == 'm';
    return digits && heft_json_u64(bytes, (heft_str){ t.ptr, digits }) &&
           heft_mul(bytes, *bytes, letter == 'U' ? 4 : 1) &&
           (digits == t.len || (is_time && t.ptr[digits] == '['));
}

/* Read the beginning of a field up to its type: ("name", or (("title", "name"), */
static bool begin_field(heft_python *l)
{
    heft_python_text ignored;
    if (!heft_python_take(l, '('))
        return false;
    bool has_title = heft_python_take(l, '(');
    if (has_title && (heft_python_string(l, &ignored) || !heft_python_take(l, ',')))
        return false;
    return !heft_python_string(l, &ignored) && (!has_title || heft_python_take(l, ')')) &&
           heft_python_take(l, ',');
}

/* End a field, whose shape may follow its type. */
static bool end_field(heft_python *l, uint64_t *bytes)
{
    return heft_python_take(l, ')') ||
           (heft_python_take(l, ',') && multiply_shape(l, bytes) && heft_python_take(l, ')'));
}

/* Read an element type: a type, or a list of fields, whose types may be lists. */
static bool read_descr(heft_python *l, uint64_t *bytes, bool *has_objects)
{
    enum { DEPTH = 8 };
    uint64_t sums[DEPTH];
    size_t depth = 0;
    for (;;) {
        for (; heft_python_take(l, '['); sums[depth++] = 0)
            if (depth == DEPTH || !begin_field(l))
                return false;
        if (!read_type(l, bytes, has_objects))
            return false;
        for (; depth; *bytes = sums[--depth]) {
            if (!end_field(l, bytes) || !heft_add(&sums[depth - 1], sums[depth - 1], *bytes))
                return false;
            if (!heft_python_take(l, ']'))
                break;
        }
        if (!depth)
            return true;
        if (!heft_python_take(l, ',') || !begin_field(l))
            return false;
    }
}

typedef struct header {
    uint64_t element, elements;
    bool has_type, has_order, has_shape, has_objects;
} header;

/* Read the value of a key, which may occur once. */
static bool read_value(heft_python *l, header *h, heft_str key)
{
    bool *has = heft_str_is(key, "descr")           ? &h->has_type
                : heft_str_is(key, "shape")         ? &h->has_shape
                : heft_str_is(key, "fortran_order") ? &h->has_order
                                                    : NULL;
    if (!has || *has)
        return false;
    *has = true;
    if (has == &h->has_type)
        return read_descr(l, &h->element, &h->has_objects);
    if (has == &h->has_shape)
        return multiply_shape(l, &h->elements);
    return heft_python_word(l, "False") || heft_python_word(l, "True");
}

/* Set *bytes to the length of the array that a header describes, unless *has_objects is set: then
 * the array is a pickle.  Return false for a header that is not understood. */
static bool read_length(uint64_t *bytes, bool *has_objects, heft_python *l)
{
    header h = { .elements = 1 };
    heft_python_text key;
    if (!heft_python_take(l, '{'))
        return false;
    while (!heft_python_take(l, '}')) {
        if (heft_python_string(l, &key) || !heft_python_take(l, ':') ||
            !read_value(l, &h, text_of(&key)))
            return false;
        if (!heft_python_take(l, ',') && heft_python_peek(l) != '}')
            return false;
    }
    while (l->p < l->end && (*l->p == ' ' || *l->p == '\n'))
        l->p++;
    *has_objects = h.has_objects;
    return h.has_type && h.has_order && h.has_shape && l->p == l->end &&
           heft_mul(bytes, h.element, h.elements);
}

/* ---- files ---- */

/* The header follows magic, two bytes of version, and its length: u16, from version 2 on u32. */
enum { FIXED = 10, FIXED_2 = 12 };

static uint64_t header_at(const uint8_t *p)
{
    return p[6] == 1 ? FIXED : FIXED_2;
}

uint64_t heft_scan_npy_data(const uint8_t *p, uint64_t size)
{
    if (size < FIXED_2 || memcmp(p, "\x93NUMPY", 6) != 0)
        return 0;
    uint64_t length = p[6] == 1 ? heft_le16(p + 8) : heft_le32(p + 8);
    uint64_t data = header_at(p) + length;
    return data < size ? data : size;
}

bool heft_scan_npy_end(uint64_t *end, const uint8_t *p, uint64_t size)
{
    uint64_t data = heft_scan_npy_data(p, size), bytes = 0;
    bool has_objects;
    if (!data || header_at(p) > data)
        return false;
    const char *text = (const char *)p + header_at(p);
    heft_python python = { text, (const char *)p + data, text, true };
    if (!read_length(&bytes, &has_objects, &python))
        return false;
    *end = 0;
    return has_objects || heft_add(end, data, bytes);
}
