/* parallel.h - parses the records of very many tensors with several workers. */
#ifndef HEFT_PARALLEL_H
#define HEFT_PARALLEL_H
#include "base/cursor.h"
#include "model/index.h"

enum { HEFT_IX_CHUNKS = HEFT_IS_SMALL ? 1 : 4 };

/* ---- records that state their length: parallel_binary.c ---- */

typedef struct heft_ix_binary_records {
    /* Skip one record and set *rank to its number of dimensions.  Need not report errors: read()
     * does.  Must be thread-safe. */
    void (*skip)(const void *ctx, heft_cur *c, uint32_t *rank);
    /* Parse count records into x, with heft_ix_add() and heft_ix_base_id().  Several chunks are
     * read at the same time; `chunk` selects per-chunk state in ctx. */
    heft_status (*read)(void *ctx, heft_cur *c, heft_index *x, uint32_t count, uint32_t chunk);
    void *ctx;
    bool base_ids; /* records may have base ids */
} heft_ix_binary_records;

/* Parse count records from c on into an index without tensors that has capacity for them.  Return
 * false if nothing was done and the caller must parse the records in sequence. */
bool heft_ix_parallel_binary(heft_index *x, heft_cur *c, uint32_t count,
                             const heft_ix_binary_records *records);

/* ---- records of a text, found by their shape: parallel_text.c ---- */

typedef struct heft_ix_text_records {
    /* Return the first position after p and before end where a record seems to begin, or NULL.  A
     * wrong guess costs only time. */
    const uint8_t *(*seek)(const void *ctx, const uint8_t *p, const uint8_t *end);
    /* Add the records that begin at p and before end to x, each with one part and no values, up to
     * the first record of an unusual form.  Return the end of the last record added, or NULL if a
     * record was refused.  Several chunks are read at the same time. */
    const uint8_t *(*read)(void *ctx, const uint8_t *p, const uint8_t *end, heft_index *x,
                           uint32_t chunk);
    /* Called in order for each chunk that is kept: the numbers of its tensors are now smaller by
     * `moved` than in read(). */
    void (*join)(void *ctx, uint32_t chunk, uint32_t moved);
    void *ctx;
    bool param_ids; /* records may have parameter ids */
} heft_ix_text_records;

/* Parse at most `max` records, the first of which begins at p, into an index whose tensors have one
 * part each.  Return the start of the first record that was not parsed; p if none was. */
const uint8_t *heft_ix_parallel_text(heft_index *x, const uint8_t *p, const uint8_t *end,
                                     uint32_t max, const heft_ix_text_records *records);

/* ---- shared ---- */

typedef struct heft_row_range { /* a range of rows and of dimensions */
    uint32_t first, end, first_dim, end_dim;
} heft_row_range;
/* Initialise a worker's view of x with the rows that the worker fills. */
void heft_ix_worker_rows(heft_index *to, const heft_index *x, const heft_row_range *s);
/* Add a worker's summary of names and offsets to x. */
void heft_ix_worker_end(heft_index *x, const heft_index *worker);

#endif
