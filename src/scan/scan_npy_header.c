/* scan_npy_header.c - the length of an array, from the header of an npy file: a dictionary of
 * Python with the keys descr, fortran_order and shape.  A header that says the same in a way that
 * no writer uses gives no length. */
#include "base/checked_math.h"
#include "base/cursor.h"
#include "base/text.h"
#include "scan/scan.h"

/* Skip blanks, and a text after them; return false for another text. */
static bool skip(heft_str *s, const char *text)
{
    heft_str t = heft_lit(text);
    while (heft_str_begins(*s, " "))
        *s = (heft_str){ s->ptr + 1, s->len - 1 };
    if (!heft_str_begins(*s, text))
        return false;
    *s = (heft_str){ s->ptr + t.len, s->len - t.len };
    return true;
}

static bool read_number(heft_str *s, uint64_t *out)
{
    size_t digits = 0;
    *out = 0;
    skip(s, "");
    for (; digits < s->len && s->ptr[digits] >= '0' && s->ptr[digits] <= '9'; digits++)
        if (!heft_mul(out, *out, 10) || !heft_add(out, *out, (uint64_t)(s->ptr[digits] - '0')))
            return false;
    *s = (heft_str){ s->ptr + digits, s->len - digits };
    return digits;
}

/* Read a text in quotes, without escapes. */
static bool read_text(heft_str *s, heft_str *out)
{
    size_t len = 0;
    bool is_single = skip(s, "'");
    if (!is_single && !skip(s, "\""))
        return false;
    while (len < s->len && s->ptr[len] != (is_single ? '\'' : '"') && s->ptr[len] != '\\')
        len++;
    *out = (heft_str){ s->ptr, len };
    *s = (heft_str){ s->ptr + len, s->len - len };
    return skip(s, is_single ? "'" : "\"");
}

/* Multiply by the sizes of a shape: "()", "(3,)", "(3, 4)"; Python 2 wrote "(3L,)". */
static bool multiply_shape(heft_str *s, uint64_t *bytes)
{
    uint64_t n;
    if (!skip(s, "("))
        return false;
    while (!skip(s, ")")) {
        if (!read_number(s, &n) || !heft_mul(bytes, *bytes, n))
            return false;
        skip(s, "L");
        if (!skip(s, ",") && !heft_str_begins(*s, ")"))
            return false;
    }
    return true;
}

/* Read the type of a number or text, "<f4", "|S8", "<M8[ns]", or of an object: "|O". */
static bool read_type(heft_str *s, uint64_t *bytes, bool *has_objects)
{
    static const char letters[] = "biufcSUVMmO";
    heft_str t;
    if (!read_text(s, &t))
        return false;
    if (!skip(&t, "<") && !skip(&t, ">") && !skip(&t, "|"))
        skip(&t, "=");
    const char *letter = t.ptr;
    if (!t.len || !heft_str_seek((const uint8_t *)letters,
                                 (const uint8_t *)letters + sizeof letters - 1, letter, 1))
        return false;
    t = (heft_str){ t.ptr + 1, t.len - 1 };
    *bytes = 0;
    *has_objects |= *letter == 'O';
    if (*letter == 'O' && !t.len)
        return true;
    return read_number(&t, bytes) && heft_mul(bytes, *bytes, *letter == 'U' ? 4 : 1) &&
           (!t.len || ((*letter == 'M' || *letter == 'm') && *t.ptr == '['));
}

/* Read the beginning of a field up to its type: ("name", or (("title", "name"), */
static bool begin_field(heft_str *s)
{
    heft_str ignored;
    if (!skip(s, "("))
        return false;
    bool has_title = skip(s, "(");
    if (has_title && (!read_text(s, &ignored) || !skip(s, ",")))
        return false;
    return read_text(s, &ignored) && (!has_title || skip(s, ")")) && skip(s, ",");
}

/* End a field, whose shape may follow its type. */
static bool end_field(heft_str *s, uint64_t *bytes)
{
    return skip(s, ")") || (skip(s, ",") && multiply_shape(s, bytes) && skip(s, ")"));
}

/* Read an element type: a type, or a list of fields, whose types may be lists. */
static bool read_descr(heft_str *s, uint64_t *bytes, bool *has_objects)
{
    enum { DEPTH = 8 };
    uint64_t sums[DEPTH];
    size_t depth = 0;
    for (;;) {
        for (; skip(s, "["); sums[depth++] = 0)
            if (depth == DEPTH || !begin_field(s))
                return false;
        if (!read_type(s, bytes, has_objects))
            return false;
        for (; depth; *bytes = sums[--depth]) {
            if (!end_field(s, bytes) || !heft_add(&sums[depth - 1], sums[depth - 1], *bytes))
                return false;
            if (!skip(s, "]"))
                break;
        }
        if (!depth)
            return true;
        if (!skip(s, ",") || !begin_field(s))
            return false;
    }
}

typedef struct header {
    uint64_t element, elements;
    bool has_type, has_order, has_shape, has_objects;
} header;

/* Read the value of a key, which may occur once. */
static bool read_value(heft_str *s, header *h, heft_str key)
{
    bool *has = heft_str_is(key, "descr")           ? &h->has_type
                : heft_str_is(key, "shape")         ? &h->has_shape
                : heft_str_is(key, "fortran_order") ? &h->has_order
                                                    : NULL;
    if (!has || *has)
        return false;
    *has = true;
    if (has == &h->has_type)
        return read_descr(s, &h->element, &h->has_objects);
    if (has == &h->has_shape)
        return multiply_shape(s, &h->elements);
    return skip(s, "False") || skip(s, "True");
}

/* Set *bytes to the length of the array that a header describes, unless *has_objects is set: then
 * the array is a pickle.  Return false for a header that no writer writes. */
static bool read_length(uint64_t *bytes, bool *has_objects, heft_str s)
{
    header h = { .elements = 1 };
    heft_str key;
    if (!skip(&s, "{"))
        return false;
    while (!skip(&s, "}")) {
        if (!read_text(&s, &key) || !skip(&s, ":") || !read_value(&s, &h, key))
            return false;
        if (!skip(&s, ",") && !heft_str_begins(s, "}"))
            return false;
    }
    skip(&s, "\n");
    *has_objects = h.has_objects;
    return h.has_type && h.has_order && h.has_shape && !s.len &&
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
    heft_str text = { (const char *)p + header_at(p), (size_t)(data - header_at(p)) };
    if (!read_length(&bytes, &has_objects, text))
        return false;
    *end = 0;
    return has_objects || heft_add(end, data, bytes);
}
