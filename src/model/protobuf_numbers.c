/* protobuf_numbers.c - decodes a repeated field of numbers from input of any length. */
#include "model/protobuf_numbers.h"

#include "base/error.h"
#include "model/dtype.h"

enum { VARINT = 0, FIXED_64 = 1, BYTES = 2, FIXED_32 = 5 }; /* wire types */
enum { TAG, LENGTH, PACKED, SINGLE, OTHER, OTHER_VARINT };  /* steps */

static uint8_t fixed_bytes(heft_dtype t)
{
    return t == HEFT_F32 || t == HEFT_C64 ? 4 : t == HEFT_F64 || t == HEFT_C128 ? 8 : 0;
}

heft_protobuf_numbers heft_protobuf_numbers_of(uint64_t decoded, heft_dtype type)
{
    uint32_t size = heft_dtype_size(type);
    uint8_t fixed = fixed_bytes(type), width = fixed ? fixed : size ? (uint8_t)size : 1;
    return (heft_protobuf_numbers){ .decoded = decoded, .fixed = fixed, .width = width };
}

static heft_status format_error(heft_error *err, const char *what)
{
    return heft_error_plain(err, HEFT_E_FORMAT, "numbers of a protobuf message: %s", what);
}

/* Add a byte to a varint; set *is_whole after its last byte. */
static heft_status add_varint(heft_protobuf_numbers *n, uint8_t byte, bool *is_whole,
                              heft_error *err)
{
    if (n->shift > 63 || (n->shift == 63 && byte > 1))
        return format_error(err, "a number has more than 64 bits");
    n->bits |= (uint64_t)(byte & 0x7F) << n->shift;
    n->shift += 7;
    *is_whole = byte < 0x80;
    return HEFT_OK;
}

static bool fits(const heft_protobuf_numbers *n)
{
    uint64_t limit = n->width < 8 ? UINT64_C(1) << 8 * n->width : 0;
    return n->fixed || !limit || n->bits < limit || n->bits >= 0 - limit / 2;
}

/* The number is read: make it the next element. */
static heft_status put_element(heft_protobuf_numbers *n, heft_error *err)
{
    if (n->decoded < n->width)
        return format_error(err, "there are more numbers than the tensor has elements");
    if (!fits(n))
        return format_error(err, "a number does not fit the tensor's element type");
    for (uint32_t i = 0; i < n->width; i++)
        n->element[i] = (uint8_t)(n->bits >> 8 * i);
    n->element_left = n->width;
    n->decoded -= n->width;
    n->bits = n->shift = 0;
    return HEFT_OK;
}

static heft_status begin_value(heft_protobuf_numbers *n, heft_error *err)
{
    uint64_t number = n->bits >> 3;
    uint8_t wire = n->bits & 7, own = n->fixed == 4 ? FIXED_32 : n->fixed ? FIXED_64 : VARINT;
    n->first = n->first ? n->first : number;
    n->is_other = number != n->first;
    n->bits = n->shift = 0;
    if (wire != BYTES && !n->is_other && wire != own)
        return format_error(err, "a number has the wire type of other numbers");
    n->left = wire == FIXED_64 ? 8 : 4;
    n->step = wire == BYTES    ? LENGTH
              : !n->is_other   ? SINGLE
              : wire == VARINT ? OTHER_VARINT
                               : OTHER;
    return HEFT_OK;
}

static void end_length(heft_protobuf_numbers *n)
{
    n->left = n->bits;
    n->bits = n->shift = 0;
    n->step = !n->left ? TAG : n->is_other ? OTHER : PACKED;
}

/* Add a byte to a number; set *is_whole after its last byte. */
static heft_status add_value(heft_protobuf_numbers *n, uint8_t byte, bool *is_whole,
                             heft_error *err)
{
    if (!n->fixed)
        return add_varint(n, byte, is_whole, err);
    n->bits |= (uint64_t)byte << n->shift;
    n->shift += 8;
    *is_whole = n->shift == 8 * n->fixed;
    return HEFT_OK;
}

static heft_status add_number_byte(heft_protobuf_numbers *n, uint8_t byte, heft_error *err)
{
    bool is_whole = false;
    heft_status st = add_value(n, byte, &is_whole, err);
    if (!st && is_whole)
        st = put_element(n, err);
    if (n->step == PACKED && !--n->left) {
        n->step = TAG;
        if (!st && !is_whole)
            st = format_error(err, "the last number is truncated");
    } else if (n->step == SINGLE && is_whole)
        n->step = TAG;
    return st;
}

static heft_status add_byte(heft_protobuf_numbers *n, uint8_t byte, heft_error *err)
{
    bool is_whole = false;
    if (n->step == PACKED || n->step == SINGLE)
        return add_number_byte(n, byte, err);
    if (n->step == OTHER) {
        n->step = --n->left ? OTHER : TAG;
        return HEFT_OK;
    }
    HEFT_TRY(add_varint(n, byte, &is_whole, err));
    if (!is_whole)
        return HEFT_OK;
    if (n->step == TAG)
        return begin_value(n, err);
    if (n->step == LENGTH)
        end_length(n);
    else {
        n->bits = n->shift = 0;
        n->step = TAG;
    }
    return HEFT_OK;
}

heft_status heft_protobuf_numbers_decode(heft_protobuf_numbers *n, const uint8_t *in,
                                         size_t *in_len, uint8_t *out, size_t *out_len, bool *whole,
                                         heft_error *err)
{
    size_t at = 0, written = 0;
    heft_status st = HEFT_OK;
    while (!st) {
        if (n->element_left) {
            if (written == *out_len)
                break;
            out[written++] = n->element[n->width - n->element_left--];
            continue;
        }
        if (at == *in_len)
            break;
        st = add_byte(n, in[at++], err);
    }
    *whole = n->step == TAG && !n->shift && !n->element_left && !n->decoded;
    *in_len = at;
    *out_len = written;
    return st;
}
