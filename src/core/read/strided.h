/* strided.h - the bytes of a part as its tensor has them, from wherever and however they are stored:
 * little-endian, the last dimension fastest. */
#ifndef HEFT_STRIDED_H
#define HEFT_STRIDED_H
#include "core/read/file.h"

typedef struct heft_strided_reader { /* of a part whose bytes can be had in any order */
    const heft_file *f;
    heft_ix_part_row row;
    const uint8_t *content;  /* all that the part decodes to; NULL: raw, and read from the file */
    uint64_t first;          /* byte of element 0 there */
    const uint64_t *strides; /* NULL: one behind the other */
    const uint64_t *dims;
    uint32_t rank;
} heft_strided_reader;

/* Of a raw part; or, with its content, of a compressed one. */
heft_strided_reader heft_strided_reader_of(const heft_file *f, uint32_t part,
                                           const uint8_t *content);
/* Bytes [from, from + len).  Takes no memory, and reads what lies together together. */
heft_status heft_strided_reader_read(const heft_strided_reader *r, uint64_t from, void *buf,
                                     size_t len, heft_error *err);
/* Bytes of what is turned round in big-endian parts of that type: a number, or a block. */
uint32_t heft_byteswap_unit(heft_dtype t);
/* Turns whole units round. */
void heft_byteswap(uint8_t *p, size_t len, heft_dtype t);

#endif
