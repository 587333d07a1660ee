/* msgpack_numbers.h - decoder of the encoding HEFT_MSGPACK: an array of MessagePack numbers.
 *
 * The input begins with the header of the array.  The size of an element follows from the number of
 * items and of decoded bytes: floats have 4 or 8 bytes, integers 1, 2, 4 or 8, booleans 1.  The
 * output is little-endian.
 */
#ifndef HEFT_MSGPACK_NUMBERS_H
#define HEFT_MSGPACK_NUMBERS_H
#include <heft/heft.h>

typedef struct heft_msgpack_numbers {
    uint64_t decoded;            /* bytes that the array decodes to */
    uint64_t left;               /* items not yet decoded, once the array header was read */
    uint32_t width;              /* bytes of an element */
    uint8_t item[9];             /* item, or array header, that the input may have split */
    uint8_t item_len, item_size; /* bytes of the item received so far, and in total */
    uint8_t element[8];
    uint8_t emitted; /* bytes of the element already in the output; width: all */
    bool has_header; /* the array header was read */
} heft_msgpack_numbers;

heft_msgpack_numbers heft_msgpack_numbers_of(uint64_t decoded);
/* Decode like heft_codec.decode. */
heft_status heft_msgpack_numbers_decode(heft_msgpack_numbers *n, const uint8_t *in, size_t *in_len,
                                        uint8_t *out, size_t *out_len, bool *whole,
                                        heft_error *err);

#endif
