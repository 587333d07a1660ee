/* part_source.h - the bytes of one part as they are to be written, whatever they are made from. */
#ifndef HEFT_PART_SOURCE_H
#define HEFT_PART_SOURCE_H
#include "core/read/stream.h"
#include "core/write/copy.h"
#include "model/blocks.h"

enum {
    HEFT_ELEMENT = 16,                  /* bytes of the largest element type */
    HEFT_UNIT = 8 * HEFT_BLOCK_ELEMENTS /* of the largest block, as the widest it is cast to */
};

/* One worker's view of the part it is at. */
typedef struct heft_part_source {
    const heft_copying *c;
    uint8_t *scratch; /* elements before they are cast, and rows */
    uint32_t part;    /* or HEFT_NONE */
    bool in_order;    /* the part goes by from its first byte to its last */
    heft_stream stream;
    heft_layout_converter *maker; /* of a part in another layout, instead of the stream */
    heft_running_digest source, target;
    uint32_t claim;                  /* of the source's tap */
    heft_spill turned;               /* the whole part, decoded, when it has to be turned */
    uint64_t one_first;              /* unit in one, or HEFT_NOWHERE */
    uint64_t lost[HEFT_CAST_LOSSES]; /* of the part, by the casts so far */
    _Alignas(HEFT_ELEMENT) uint8_t one[HEFT_UNIT];
    heft_error err;
} heft_part_source;

/* Whether the part has to be made by one worker, front to back. */
bool heft_part_is_whole(const heft_copying *c, uint32_t part);

bool heft_part_source_init(heft_part_source *w, const heft_copying *c);
void heft_part_source_free(heft_part_source *w);
/* The next bytes [from, from + len) of a part; a part that is whole begins at 0 and is not left before its
 * end. */
heft_status heft_part_source_read(heft_part_source *w, uint32_t part, uint64_t from, size_t len,
                                  uint8_t *dst);

#endif
