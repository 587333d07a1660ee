/* msgpack_numbers.h - arrays of MessagePack numbers as elements: HEFT_MSGPACK.
 *
 * The array's own head is what is decoded first; how wide an element is follows from the bytes that the array is to
 * decode to: floats of 4 or 8, integers of 1, 2, 4 or 8, truth values of 1.  Little-endian.
 */
#ifndef HEFT_MSGPACK_NUMBERS_H
#define HEFT_MSGPACK_NUMBERS_H
#include <heft/heft.h>

typedef struct heft_msgpack_numbers {
    uint64_t decoded; /* bytes that the array decodes to */
    uint64_t left;    /* numbers, once the head was read */
    uint32_t width;   /* bytes of each */
    uint8_t item[9];  /* an item as far as it was taken */
    uint8_t have, need;
    uint8_t element[8];
    uint8_t given; /* bytes of the element that were given out; == width: all */
    bool began;
} heft_msgpack_numbers;

heft_msgpack_numbers heft_msgpack_numbers_of(uint64_t decoded);
/* As heft_codec.decode. */
heft_status heft_msgpack_numbers_decode(heft_msgpack_numbers *n, const uint8_t *in, size_t *in_len,
                                        uint8_t *out, size_t *out_len, bool *whole,
                                        heft_error *err);

#endif
