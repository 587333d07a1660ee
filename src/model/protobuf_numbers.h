/* protobuf_numbers.h - decoder of the encoding HEFT_PROTOBUF: one repeated field of numbers.
 *
 * The input consists of fields of one message.  Those with the number of the first field are
 * decoded, packed or not; others are passed over.  f32, f64 and complex numbers are copied; numbers
 * of other types are varints, which must fit the element, with or without a sign. */
#ifndef HEFT_PROTOBUF_NUMBERS_H
#define HEFT_PROTOBUF_NUMBERS_H
#include <heft/heft.h>

typedef struct heft_protobuf_numbers {
    uint64_t decoded;     /* bytes of the numbers that are not yet decoded */
    uint64_t left;        /* bytes of a value of known length that are not yet read */
    uint64_t first;       /* number of the first field; 0: not read yet */
    uint64_t bits;        /* a varint or number, as far as it is read */
    uint8_t shift;        /* number of bits that are read */
    uint8_t step;         /* the next byte belongs to this */
    uint8_t width, fixed; /* bytes of an element; bytes of a fixed number, 0: a varint */
    bool is_other;        /* the field is not the first one */
    uint8_t element[8], element_left; /* bytes that are not yet written are the last ones */
} heft_protobuf_numbers;

/* decoded: bytes of all numbers; type: of the elements, whose width is 1 for packed types. */
heft_protobuf_numbers heft_protobuf_numbers_of(uint64_t decoded, heft_dtype type);
/* Decode like heft_codec.decode. */
heft_status heft_protobuf_numbers_decode(heft_protobuf_numbers *n, const uint8_t *in,
                                         size_t *in_len, uint8_t *out, size_t *out_len, bool *whole,
                                         heft_error *err);

#endif
