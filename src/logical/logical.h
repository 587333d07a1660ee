/* logical.h - a model as the tensors that its quantised tensors represent.
 *
 * This folder joins what src/scheme decodes to a file like any other: the index has a tensor for
 * each quantised one, and a source produces its numbers when they are read. It knows no scheme and
 * no format. */
#ifndef HEFT_LOGICAL_H
#define HEFT_LOGICAL_H
#include "scheme/decoding.h"

typedef struct heft_logical_tensor {
    heft_decoding d;
    heft_dtype as;         /* element type of the numbers */
    uint64_t start, bytes; /* in the source */
} heft_logical_tensor;

/* Make a source of the numbers of the tensors, one after the other. The source takes the array, of
 * `bytes` bytes, even after an error; the file of the decodings must outlive it. */
heft_status heft_logical_source(heft_source **out, heft_logical_tensor *take, uint32_t count,
                                size_t bytes, const heft_allocator *al, heft_error *err);

/* Copy the metadata of `from`, without those about the quantisation of the weights, and if they had
 * blocks, without those about the mix. */
heft_status heft_logical_values(heft_index *x, const heft_index *from, bool had_blocks,
                                const heft_allocator *al);
/* Return HEFT_E_FORMAT if a tensor beside the quantised ones of s is one without its scale, unless
 * the settings say that its module is not quantised. */
heft_status heft_refuse_unscaled(const heft_file *f, const heft_schemes *s, heft_error *err);

#endif
