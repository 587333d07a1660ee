/* slices.h - reading the records of very many tensors side by side. */
#ifndef HEFT_SLICES_H
#define HEFT_SLICES_H
#include "base/cursor.h"
#include "model/index.h"

enum { HEFT_IX_SLICES = 4 };

typedef struct heft_ix_slicing {
    /* Moves behind the record that begins here; *rank dimensions are in it.  What is wrong is for read(). */
    void (*skip)(const void *ctx, heft_cur *c, uint32_t *rank);
    /* Reads count records into x, by heft_ix_add() and perhaps heft_ix_base_id().  Slices are read at the
     * same time: what they have to do with each other is kept by their numbers. */
    heft_status (*read)(void *ctx, heft_cur *c, heft_index *x, uint32_t count, uint32_t slice);
    void *ctx;
    bool base_ids; /* there may be some */
} heft_ix_slicing;

/* Reads count records from c on into an index without tensors that has room for them.  False: nothing was
 * done, and they have to be read one after the other. */
bool heft_ix_slices(heft_index *x, heft_cur *c, uint32_t count, const heft_ix_slicing *how);

#endif
