/* totals.h - sums over tensors: their number, parameters and bytes. */
#ifndef HEFT_CLI_TOTALS_H
#define HEFT_CLI_TOTALS_H
#include "model.h"

typedef struct totals {
    uint64_t tensors, parameters, bytes; /* saturated at UINT64_MAX */
} totals;

/* Add a tensor. tied: heft_tensor_find_tied()'s table, so that bytes that several tensors share
 * count once, or NULL. A tensor whose length is not known adds no bytes. */
void totals_add(totals *sum, const heft_file *f, const uint32_t *tied, uint32_t id);
/* Write "12 tensors, 1.78 B parameters, 3.3 GiB"; sizes in bytes if as_bytes is set. */
void out_totals(outbuf *o, const totals *sum, bool as_bytes);
/* Write a size, in bytes if as_bytes is set. */
void out_size_or_bytes(outbuf *o, uint64_t bytes, bool as_bytes);

#endif
