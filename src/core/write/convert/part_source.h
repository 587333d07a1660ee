/* part_source.h - produce the bytes of a part to write: read, decode, cast, transpose or convert
 * the source. */
#ifndef HEFT_PART_SOURCE_H
#define HEFT_PART_SOURCE_H
#include "core/read/stream.h"
#include "core/write/convert/copy.h"
#include "model/blocks.h"
#include "model/quality.h"

enum {
    HEFT_MAX_ELEMENT_BYTES = 16,                  /* bytes of the largest element type */
    HEFT_MAX_UNIT_BYTES = 8 * HEFT_BLOCK_ELEMENTS /* largest block, cast to 8-byte elements */
};

/* A worker's position in the part that the worker currently reads. */
typedef struct heft_part_source {
    const heft_copy_context *c;
    uint8_t *scratch; /* in each half: elements before a cast, and rows to transpose */
    size_t half;      /* bytes of a half */
    uint32_t part;    /* current part, or HEFT_NONE */
    bool in_order;    /* the part is read from first byte to last */
    heft_stream stream;
    heft_layout_converter *converter; /* converts the layout, instead of the stream; or NULL */
    heft_running_digest target_digest;
    heft_spill transpose_spill; /* the whole decoded part, if a compressed part is transposed */
    uint64_t unit_first;        /* number of the unit in `unit`, or HEFT_NOWHERE */
    uint64_t lost[HEFT_CAST_LOSSES]; /* values of the part lost by casts so far */
    heft_pair_sums sums;             /* rows of the part that are not collected yet */
    uint8_t *unit;                   /* `block`, or memory for an encoded row */
    float *values;  /* a row before it is encoded; NULL: no such part has been open */
    size_t columns; /* capacity of `values`, and of `unit` in elements */
    _Alignas(HEFT_MAX_ELEMENT_BYTES) uint8_t block[HEFT_MAX_UNIT_BYTES];
    heft_error err;
} heft_part_source;

/* Return true if a single worker has to produce the whole part in order. */
bool heft_part_is_whole(const heft_copy_context *c, uint32_t part);

/* Return the number of bytes to write that are produced together: elements of blocks that a cast
 * converts at once. */
uint32_t heft_part_unit_bytes(const heft_copy_context *c, uint32_t part);

bool heft_part_source_init(heft_part_source *w, const heft_copy_context *c);
void heft_part_source_free(heft_part_source *w);
/* Read the next bytes [from, from + len) of a part.  A part that is whole must be read from 0 to
 * the end, without other parts in between. */
heft_status heft_part_source_read(heft_part_source *w, uint32_t part, uint64_t from, size_t len,
                                  uint8_t *dst);

#endif
