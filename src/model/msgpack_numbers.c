/* msgpack_numbers.c - decodes an array of MessagePack numbers from input of any length; an item
 * that is split between two calls is kept until complete. */
#include "model/msgpack_numbers.h"

#include <string.h>

#include "base/checked_math.h"
#include "base/error.h"

enum {
    ARRAY16 = 0xDC,
    ARRAY32 = 0xDD,
    FALSE_ITEM = 0xC2,
    TRUE_ITEM = 0xC3,
    F32 = 0xCA,
    F64 = 0xCB
};

heft_msgpack_numbers heft_msgpack_numbers_of(uint64_t decoded)
{
    return (heft_msgpack_numbers){ .decoded = decoded };
}

/* Return the bytes of an array header including the first; 0 if `first` does not begin an array. */
static uint8_t array_header_bytes(uint8_t first)
{
    if (first == ARRAY16 || first == ARRAY32)
        return first == ARRAY16 ? 3 : 5;
    return first >= 0x90 && first < 0xA0 ? 1 : 0;
}

/* Return the bytes of an item including the first; 0 if the item is not a number or boolean. */
static uint8_t item_bytes(uint8_t first)
{
    static const uint8_t bytes[] = {
        [F32 - 0xC0] = 5, [F64 - 0xC0] = 9, [0x0C] = 2, [0x0D] = 3, [0x0E] = 5,
        [0x0F] = 9,       [0x10] = 2,       [0x11] = 3, [0x12] = 5, [0x13] = 9
    };
    if (first < 0x80 || first >= 0xE0 || first == FALSE_ITEM || first == TRUE_ITEM)
        return 1;
    return first >= 0xC0 && first < 0xC0 + sizeof bytes ? bytes[first - 0xC0] : 0;
}

/* Return the big-endian number after the first byte of an item of `bytes` bytes. */
static uint64_t item_number(const uint8_t *item, uint32_t bytes)
{
    uint64_t v = 0;
    for (uint32_t i = 1; i < bytes; i++)
        v = v << 8 | item[i];
    return v;
}

static heft_status format_error(heft_error *err, const char *what)
{
    return heft_error_plain(err, HEFT_E_FORMAT, "array of MessagePack numbers: %s", what);
}

static heft_status read_array_header(heft_msgpack_numbers *n, heft_error *err)
{
    n->left = n->item_size == 1 ? n->item[0] & 15 : item_number(n->item, n->item_size);
    n->has_header = true;
    n->width = n->left ? (uint32_t)heft_div(n->decoded, n->left) : 1;
    n->emitted = (uint8_t)n->width;
    bool is_width = n->width == 1 || n->width == 2 || n->width == 4 || n->width == 8;
    if (!is_width || n->left * n->width != n->decoded)
        return format_error(err, "the number of items does not match the size of the tensor");
    return HEFT_OK;
}

static heft_status read_integer(const heft_msgpack_numbers *n, uint64_t *bits, heft_error *err)
{
    uint8_t first = n->item[0];
    bool is_signed = first >= 0xD0;
    *bits = n->item_size == 1 ? first : item_number(n->item, n->item_size);
    uint32_t bytes = n->item_size == 1 ? 1 : n->item_size - 1U;
    uint64_t top = UINT64_C(1) << (8 * bytes - 1);
    bool is_negative = is_signed && *bits & top;
    if (is_negative)
        *bits = (*bits ^ top) - top;
    uint64_t limit = n->width < 8 ? UINT64_C(1) << 8 * n->width : 0;
    /* The integer must fit an element, signed or unsigned. */
    bool fits = !limit || (is_negative ? *bits >= 0 - limit / 2 : *bits < limit);
    return fits ? HEFT_OK : format_error(err, "an integer does not fit the tensor's element type");
}

static heft_status read_number(heft_msgpack_numbers *n, heft_error *err)
{
    uint8_t first = n->item[0];
    uint64_t bits = first & 1;
    heft_status st = HEFT_OK;
    if (first == F32 || first == F64) {
        bits = item_number(n->item, n->item_size);
        if (n->width != n->item_size - 1U)
            return format_error(err, "a float does not have the size of the tensor's elements");
    } else if (first != FALSE_ITEM && first != TRUE_ITEM)
        st = read_integer(n, &bits, err);
    else if (n->width != 1)
        return format_error(err, "a boolean in a tensor of numbers");
    for (uint32_t i = 0; i < n->width; i++)
        n->element[i] = (uint8_t)(bits >> 8 * i);
    n->emitted = 0;
    n->left--;
    return st;
}

static heft_status add_byte(heft_msgpack_numbers *n, uint8_t byte, heft_error *err)
{
    if (n->has_header && !n->left)
        return format_error(err, "bytes follow the last number");
    if (!n->item_len && n->has_header)
        n->item_size = item_bytes(byte);
    else if (!n->item_len)
        n->item_size = array_header_bytes(byte);
    if (!n->item_size)
        return format_error(err, n->has_header ? "an item is not a number" : "not an array");
    n->item[n->item_len++] = byte;
    if (n->item_len < n->item_size)
        return HEFT_OK;
    n->item_len = 0;
    return n->has_header ? read_number(n, err) : read_array_header(n, err);
}

/* Decode complete floats of 4 bytes, the items of most arrays; return the number of floats. */
static size_t decode_floats(heft_msgpack_numbers *n, const uint8_t *in, size_t in_len, uint8_t *out,
                            size_t out_len)
{
    enum { ITEM = 5, WIDTH = 4 };
    size_t max = n->has_header && n->width == WIDTH && !n->item_len ? in_len / ITEM : 0, i = 0;
    max = max < out_len / WIDTH ? max : out_len / WIDTH;
    max = max < n->left ? max : (size_t)n->left;
    for (; i < max && in[ITEM * i] == F32; i++)
        for (uint32_t k = 0; k < WIDTH; k++)
            out[WIDTH * i + k] = in[ITEM * i + WIDTH - k];
    n->left -= i;
    return i;
}

heft_status heft_msgpack_numbers_decode(heft_msgpack_numbers *n, const uint8_t *in, size_t *in_len,
                                        uint8_t *out, size_t *out_len, bool *whole, heft_error *err)
{
    size_t at = 0, written = 0;
    heft_status st = HEFT_OK;
    while (!st) {
        if (n->has_header && n->emitted < n->width) {
            if (written == *out_len)
                break;
            out[written++] = n->element[n->emitted++];
            continue;
        }
        size_t floats = decode_floats(n, in + at, *in_len - at, out + written, *out_len - written);
        at += 5 * floats;
        written += 4 * floats;
        if (at == *in_len)
            break;
        if (!floats)
            st = add_byte(n, in[at++], err);
    }
    *whole = n->has_header && !n->left && n->emitted == n->width;
    *in_len = at;
    *out_len = written;
    return st;
}
