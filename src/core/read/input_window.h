/* input_window.h - the bytes of a file that a parser can see: the whole file in memory, or the
 * segments that have arrived so far; and the ranges that the parser still needs. */
#ifndef HEFT_INPUT_WINDOW_H
#define HEFT_INPUT_WINDOW_H
#include <heft/heft.h>
#include <heft/heft_ext.h>

#include "base/arena.h"
#include "base/cursor.h"
#include "base/error.h"

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
/* Set *missing to the first bytes of *rest that are not present, and *rest to what follows; return
 * false if all are present.  The ranges that a parser needs may overlap. */
bool heft_input_missing(const heft_input *b, heft_range *rest, heft_range *missing);
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

/* ---- kinds of files that no format recognises ---- */

typedef struct heft_foreign_kind {
    const char *kind; /* stable name, "git-lfs-pointer" */
    const char *description, *advice;
} heft_foreign_kind;

/* Return the kind of a file with these first and last bytes, or NULL if unknown. */
const heft_foreign_kind *heft_foreign_find(const uint8_t *head, size_t head_len,
                                           const uint8_t *tail, size_t tail_len);

/* ---- iterates over a range of bytes in chunks that fit into the processor's cache ---- */

typedef struct heft_chunks {
    const uint8_t *data; /* the chunk: mapped, or buf once the caller has filled it */
    uint8_t *buf;        /* NULL: the bytes are mapped */
    size_t len;          /* length of the chunk */
    uint64_t at, left;   /* bytes of the range before and after the chunk */
    size_t capacity;     /* size of buf */
    size_t unit;         /* a chunk has whole units of this many bytes, except for the last; 1 */
    const heft_allocator *al;
} heft_chunks;

/* mapped: the range in memory, or NULL if the caller reads each chunk into buf.  Call
 * heft_chunks_close() afterwards, also after an error. */
heft_status heft_chunks_open(heft_chunks *c, const heft_allocator *al, const void *mapped,
                             uint64_t length, heft_error *err);
/* Advance to the first or next chunk.  Return false, with len 0, at the end. */
bool heft_chunks_next(heft_chunks *c);
void heft_chunks_close(heft_chunks *c);

#endif
