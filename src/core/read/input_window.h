/* input_window.h - what a parser sees of a file: the whole of it in place, or the pieces that have arrived
 * so far, and the list of pieces that it wants. */
#ifndef HEFT_INPUT_WINDOW_H
#define HEFT_INPUT_WINDOW_H
#include <heft/heft_ext.h>

#include "base/arena.h"
#include "base/cursor.h"

typedef struct heft_input {
    heft_window in; /* first: parsers get its address */
    heft_memory *mem;
    const uint8_t *whole_file; /* or NULL */
    heft_vec segments;         /* disjoint, ascending, never adjacent */
    heft_vec needs;            /* heft_range */
    const heft_host *host;     /* NULL: nothing can be decoded while parsing */
    uint64_t held, limit;      /* bytes in segments; the most there may be */
    bool over_limit, no_memory;
} heft_input;

void heft_input_init(heft_input *b, heft_memory *mem, uint64_t file_size, uint64_t limit);
void heft_input_free(heft_input *b);
/* Forgets the needs, before a parser runs. */
void heft_input_clear(heft_input *b);
/* Room for len bytes at off, none of which is held yet: *to is where they go. */
heft_status heft_input_reserve(heft_input *b, uint64_t off, size_t len, uint8_t **to,
                               heft_error *err);
/* Two segments that touch become one; for the end of what heft_input_reserve() gave room at off, once
 * it is filled. */
heft_status heft_input_join(heft_input *b, uint64_t off, heft_error *err);
/* Copies what is not held yet. */
heft_status heft_input_feed(heft_input *b, uint64_t off, const void *data, size_t len,
                            heft_error *err);

#endif
