/* in.h - what a parser sees of a file: the whole of it in place, or the pieces that have arrived
 * so far, and the list of pieces that it wants. */
#ifndef HEFT_IN_H
#define HEFT_IN_H
#include <heft/heft_ext.h>

#include "base/arena.h"
#include "base/cursor.h"

typedef struct heft_inbox {
    heft_in in; /* first: parsers get its address */
    heft_memory *mem;
    const uint8_t *whole;  /* or NULL */
    heft_vec segments;     /* disjoint, ascending, never adjacent */
    heft_vec needs;        /* heft_range */
    const heft_host *host; /* NULL: nothing can be decoded while parsing */
    uint64_t held, limit;  /* bytes in segments; the most there may be */
    bool over_limit, no_memory;
} heft_inbox;

void heft_inbox_init(heft_inbox *b, heft_memory *mem, uint64_t file_size, uint64_t limit);
void heft_inbox_free(heft_inbox *b);
/* Forgets the needs, before a parser runs. */
void heft_inbox_clear(heft_inbox *b);
/* Room for len bytes at off, none of which is held yet: *to is where they go. */
heft_status heft_inbox_room(heft_inbox *b, uint64_t off, size_t len, uint8_t **to, heft_error *err);
/* Two segments that touch become one; for the end of what heft_inbox_room() gave room at off, once
 * it is filled. */
heft_status heft_inbox_join(heft_inbox *b, uint64_t off, heft_error *err);
/* Copies what is not held yet. */
heft_status heft_inbox_feed(heft_inbox *b, uint64_t off, const void *data, size_t len,
                            heft_error *err);

#endif
