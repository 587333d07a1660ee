/* parallel.h - reading the records of very many tensors side by side. */
#ifndef HEFT_PARALLEL_H
#define HEFT_PARALLEL_H
#include "base/cursor.h"
#include "model/index.h"

enum { HEFT_IX_CHUNKS = 4 };

/* ---- records that tell how long they are: parallel_binary.c ---- */

typedef struct heft_ix_binary_records {
    /* Moves behind the record that begins here; *rank dimensions are in it.  What is wrong is for read().  Several
     * may walk at the same time. */
    void (*skip)(const void *ctx, heft_cur *c, uint32_t *rank);
    /* Reads count records into x, by heft_ix_add() and perhaps heft_ix_base_id().  Slices are read at the
     * same time: what they have to do with each other is kept by their numbers. */
    heft_status (*read)(void *ctx, heft_cur *c, heft_index *x, uint32_t count, uint32_t slice);
    void *ctx;
    bool base_ids; /* there may be some */
} heft_ix_binary_records;

/* Reads count records from c on into an index without tensors that has room for them.  False: nothing was
 * done, and they have to be read one after the other. */
bool heft_ix_parallel_binary(heft_index *x, heft_cur *c, uint32_t count,
                             const heft_ix_binary_records *how);

/* ---- records of a text, which can be told by how they look: parallel_text.c ---- */

typedef struct heft_ix_text_records {
    /* The first place behind p and before end where a record seems to begin; NULL: none does.  A wrong one
     * costs time and nothing else. */
    const uint8_t *(*seek)(const void *ctx, const uint8_t *p, const uint8_t *end);
    /* Adds the records from p on to x, each with one part and no values, while they begin before end, and
     * returns the place behind the last one.  One that is not as usual ends them: it begins there.  NULL: one
     * was refused.  Slices are read at the same time. */
    const uint8_t *(*read)(void *ctx, const uint8_t *p, const uint8_t *end, heft_index *x,
                           uint32_t slice);
    /* The slice is one of those that count; its tensors' numbers are now smaller by `moved` than they
     * were in read().  Called for one slice after the other. */
    void (*join)(void *ctx, uint32_t slice, uint32_t moved);
    void *ctx;
    bool param_ids; /* there may be some */
} heft_ix_text_records;

/* Reads records from p on, where one begins, at most so many, into an index whose tensors have one part each.
 * Returns where the first one that it did not read begins: p when it read none. */
const uint8_t *heft_ix_parallel_text(heft_index *x, const uint8_t *p, const uint8_t *end,
                                     uint32_t most, const heft_ix_text_records *how);

/* ---- of both ---- */

typedef struct heft_row_range { /* of the columns */
    uint32_t first, end, first_dim, end_dim;
} heft_row_range;
/* As heft_ix_worker_view(), with these rows to fill. */
void heft_ix_worker_rows(heft_index *to, const heft_index *x, const heft_row_range *s);
/* What a share that is kept says of all names and offsets goes into x. */
void heft_ix_worker_end(heft_index *x, const heft_index *share);

#endif
