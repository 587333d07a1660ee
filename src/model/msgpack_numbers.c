/* msgpack_numbers.c - items come in pieces of any size: one that is cut is kept until its rest is there. */
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

/* Bytes of an item with its head; 0: it is no number. */
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

static uint64_t number_after(const uint8_t *item, uint32_t bytes)
{
    uint64_t v = 0;
    for (uint32_t i = 1; i < bytes; i++)
        v = v << 8 | item[i];
    return v;
}

static heft_status refuse(heft_error *err, const char *what)
{
    return heft_error_plain(err, HEFT_E_FORMAT, "an array of MessagePack numbers: %s", what);
}

static heft_status read_head(heft_msgpack_numbers *n, heft_error *err)
{
    n->left = n->need == 1 ? n->item[0] & 15 : number_after(n->item, n->need);
    n->began = true;
    n->width = n->left ? (uint32_t)heft_div(n->decoded, n->left) : 1;
    n->given = (uint8_t)n->width;
    bool is_width = n->width == 1 || n->width == 2 || n->width == 4 || n->width == 8;
    if (!is_width || n->left * n->width != n->decoded)
        return refuse(err, "its count does not divide the bytes of its tensor");
    return HEFT_OK;
}

static heft_status read_integer(const heft_msgpack_numbers *n, uint64_t *bits, heft_error *err)
{
    uint8_t first = n->item[0];
    bool is_signed = first >= 0xD0;
    *bits = n->need == 1 ? first : number_after(n->item, n->need);
    uint32_t bytes = n->need == 1 ? 1 : n->need - 1U;
    uint64_t top = UINT64_C(1) << (8 * bytes - 1);
    bool is_negative = is_signed && *bits & top;
    if (is_negative)
        *bits = (*bits ^ top) - top;
    uint64_t most = n->width < 8 ? UINT64_C(1) << 8 * n->width : 0;
    /* the low bytes alone must hold the integer, with a sign or without */
    bool is_narrow = !most || (is_negative ? *bits >= 0 - most / 2 : *bits < most);
    return is_narrow ? HEFT_OK : refuse(err, "an integer passes the type of its tensor");
}

static heft_status read_number(heft_msgpack_numbers *n, heft_error *err)
{
    uint8_t first = n->item[0];
    uint64_t bits = first & 1;
    heft_status st = HEFT_OK;
    if (first == F32 || first == F64) {
        bits = number_after(n->item, n->need);
        if (n->width != n->need - 1U)
            return refuse(err, "a float is not of its tensor's type");
    } else if (first != FALSE_ITEM && first != TRUE_ITEM)
        st = read_integer(n, &bits, err);
    else if (n->width != 1)
        return refuse(err, "a truth value in a tensor of numbers");
    for (uint32_t i = 0; i < n->width; i++)
        n->element[i] = (uint8_t)(bits >> 8 * i);
    n->given = 0;
    n->left--;
    return st;
}

static heft_status take_byte(heft_msgpack_numbers *n, uint8_t byte, heft_error *err)
{
    if (n->began && !n->left)
        return refuse(err, "bytes after the last of them");
    if (!n->have && n->began)
        n->need = item_bytes(byte);
    else if (!n->have)
        n->need = byte >= 0x90 && byte < 0xA0 ? 1 : byte == ARRAY16 ? 3 : byte == ARRAY32 ? 5 : 0;
    if (!n->need)
        return refuse(err, "an item is not a number");
    n->item[n->have++] = byte;
    if (n->have < n->need)
        return HEFT_OK;
    n->have = 0;
    return n->began ? read_number(n, err) : read_head(n, err);
}

/* Whole floats of 4 bytes, of which most arrays consist; how many. */
static size_t take_floats(heft_msgpack_numbers *n, const uint8_t *in, size_t in_len, uint8_t *out,
                          size_t out_len)
{
    enum { ITEM = 5, WIDTH = 4 };
    size_t most = n->began && n->width == WIDTH && !n->have ? in_len / ITEM : 0, i = 0;
    most = most < out_len / WIDTH ? most : out_len / WIDTH;
    most = most < n->left ? most : (size_t)n->left;
    for (; i < most && in[ITEM * i] == F32; i++)
        for (uint32_t k = 0; k < WIDTH; k++)
            out[WIDTH * i + k] = in[ITEM * i + WIDTH - k];
    n->left -= i;
    return i;
}

heft_status heft_msgpack_numbers_decode(heft_msgpack_numbers *n, const uint8_t *in, size_t *in_len,
                                        uint8_t *out, size_t *out_len, bool *whole, heft_error *err)
{
    size_t at = 0, made = 0;
    heft_status st = HEFT_OK;
    while (!st) {
        if (n->began && n->given < n->width) {
            if (made == *out_len)
                break;
            out[made++] = n->element[n->given++];
            continue;
        }
        size_t floats = take_floats(n, in + at, *in_len - at, out + made, *out_len - made);
        at += 5 * floats;
        made += 4 * floats;
        if (at == *in_len)
            break;
        if (!floats)
            st = take_byte(n, in[at++], err);
    }
    *whole = n->began && !n->left && n->given == n->width;
    *in_len = at;
    *out_len = made;
    return st;
}
