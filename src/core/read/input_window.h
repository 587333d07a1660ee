/* input_window.h - the bytes of a file that a parser can see: the whole file in memory, or the
 * segments that have arrived so far; and the ranges that the parser still needs. */
#ifndef HEFT_INPUT_WINDOW_H
#define HEFT_INPUT_WINDOW_H
#include <heft/heft_ext.h>

#include "base/arena.h"
#include "base/cursor.h"

typedef struct heft_input {
    heft_window in; /* first member: parsers get the address */
    heft_memory *mem;
    const uint8_t *whole_file; /* all bytes in memory, or NULL */
    heft_vec segments;         /* disjoint, ascending, never adjacent */
    heft_vec needs;            /* heft_range, to be fetched */
    const heft_host *host;     /* NULL: nothing can be decoded while parsing */
    uint64_t held, limit;      /* bytes in segments, and the maximum */
    uint64_t least;            /* request so many bytes at least */
    bool over_limit, no_memory;
} heft_input;

void heft_input_init(heft_input *b, heft_memory *mem, uint64_t file_size, uint64_t limit);
void heft_input_free(heft_input *b);
/* Drop the recorded needs; call before a parser runs. */
void heft_input_clear(heft_input *b);
/* Reserve space for len bytes at off, none present yet; set *to to that space. */
heft_status heft_input_reserve(heft_input *b, uint64_t off, size_t len, uint8_t **to,
                               heft_error *err);
/* Merge the segment that ends with the bytes reserved at off, now filled, with the next segment if
 * both touch. */
heft_status heft_input_join(heft_input *b, uint64_t off, heft_error *err);
/* Copy the bytes that are not present yet. */
heft_status heft_input_feed(heft_input *b, uint64_t off, const void *data, size_t len,
                            heft_error *err);

/* Return the offset in the file of a byte of the window, or HEFT_NOWHERE. */
uint64_t heft_input_offset_of(const heft_input *b, const void *p);

#endif
