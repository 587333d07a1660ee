/* scan_npy.c - npy files, which may follow each other: numpy.load() reads one after the other.
 *
 * NumPy writes an array of objects as a pickle.  Programs write the type as "|O"; the header is a
 * text of Python, in which the letter may be written in other ways, too.  The data are therefore
 * looked at in any case. */
#include "base/checked_math.h"
#include "base/cursor.h"
#include "base/text.h"
#include "scan/scan.h"

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

static bool has_objects(const heft_scan_piece *p, uint64_t data)
{
    static const char *const signs[] = { "O'", "O\"", "O,", "O8", "O4", "object", "\\" };
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (heft_str_seek(p->bytes, p->bytes + data, signs[i], heft_lit(signs[i]).len))
            return true;
    return false;
}

/* ---- the length of an array, from a header as NumPy writes it ---- */

static bool skip(heft_str *s, const char *text)
{
    heft_str t = heft_lit(text);
    if (!heft_str_begins(*s, text))
        return false;
    *s = (heft_str){ s->ptr + t.len, s->len - t.len };
    return true;
}

static bool skip_one_of(heft_str *s, const char *letters, char *out)
{
    heft_str all = heft_lit(letters);
    if (!s->len ||
        !heft_str_seek((const uint8_t *)all.ptr, (const uint8_t *)all.ptr + all.len, s->ptr, 1))
        return false;
    *out = *s->ptr;
    *s = (heft_str){ s->ptr + 1, s->len - 1 };
    return true;
}

static bool read_number(heft_str *s, uint64_t *out)
{
    char c;
    bool has_digits = false;
    *out = 0;
    for (; skip_one_of(s, "0123456789", &c); has_digits = true)
        if (!heft_mul(out, *out, 10) || !heft_add(out, *out, (uint64_t)(c - '0')))
            return false;
    return has_digits;
}

/* Multiply by the sizes of a shape: "()", "(3,)", "(3, 4)". */
static bool multiply_shape(heft_str *s, uint64_t *bytes)
{
    uint64_t n;
    if (!skip(s, "("))
        return false;
    while (!skip(s, ")"))
        if (!read_number(s, &n) || !heft_mul(bytes, *bytes, n) ||
            (!skip(s, ", ") && !skip(s, ",") && !heft_str_begins(*s, ")")))
            return false;
    return true;
}

/* Set *bytes to the length of an array of numbers or texts; return false for any other header. */
static bool read_plain(uint64_t *bytes, heft_str s)
{
    char order, letter;
    if (!skip(&s, "{'descr': '") || !skip_one_of(&s, "<>|=", &order) ||
        !skip_one_of(&s, "biufcSUV", &letter) || !read_number(&s, bytes) ||
        !heft_mul(bytes, *bytes, letter == 'U' ? 4 : 1) || !skip(&s, "', 'fortran_order': ") ||
        (!skip(&s, "False") && !skip(&s, "True")) || !skip(&s, ", 'shape': ") ||
        !multiply_shape(&s, bytes) || !skip(&s, ", }"))
        return false;
    while (skip(&s, " "))
        ;
    return skip(&s, "\n") && !s.len;
}

/* Add what follows an array; the end of an array of another type is not known, and the next header
 * is searched for. */
static heft_status add_next(heft_scan *s, const heft_scan_piece *p, uint64_t data)
{
    const uint8_t *head = p->bytes + header_at(p->bytes);
    heft_scan_piece next = *p;
    uint64_t bytes, at = p->size;
    if (read_plain(&bytes, (heft_str){ (const char *)head, (size_t)(p->bytes + data - head) })) {
        at = bytes < p->size - data ? data + bytes : p->size;
    } else {
        const uint8_t *found = heft_str_seek(p->bytes + data, p->bytes + p->size, "\x93NUMPY", 6);
        at = found ? (uint64_t)(found - p->bytes) : p->size;
        if (!heft_scan_charge(s, p, at - data))
            return HEFT_OK;
    }
    next.bytes += at;
    next.size -= at;
    next.at += at;
    return next.size ? heft_scan_add(s, &next) : HEFT_OK;
}

heft_status heft_scan_npy(heft_scan *s, const heft_scan_piece *p, uint64_t data)
{
    heft_scan_piece rest = *p;
    if (!heft_scan_charge(s, p, data))
        return HEFT_OK;
    rest.bytes += data;
    rest.size -= data;
    rest.at += data;
    heft_status st = heft_scan_pickles(s, &rest, has_objects(p, data));
    return st ? st : add_next(s, p, data);
}
