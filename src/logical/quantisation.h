/* quantisation.h - a model as it is when its weights are quantised: struct heft_quantisation. */
#ifndef HEFT_QUANTISATION_H
#define HEFT_QUANTISATION_H
#include <heft/quantise.h>

#include "core/read/file.h"
#include "scheme/quantise_methods.h"

typedef struct heft_quantised_row {
    heft_quantise_item item;
    bool is_exempt; /* a module that the settings list as not quantised */
} heft_quantised_row;

struct heft_quantisation {
    const heft_file *f;
    const heft_schemes *schemes;
    heft_schemes *own_schemes;
    heft_quantise_options opt;
    heft_encode_choice choice;
    heft_memory mem;
    heft_file *out;
    uint32_t shard;         /* number of the source in out */
    heft_encoded *all;      /* `count` of them, in the order of the source */
    heft_decoding *decoded; /* `decoded_count` tensors that must be decoded */
    uint32_t count, decoded_count, room, decoded_room;
    uint32_t *number; /* by stored tensor: 1 + number in `all` that takes its place, or 0 */
    uint8_t *is_kept; /* by stored tensor */
    heft_vec rows;    /* heft_quantised_row */
    heft_error *err;
};

/* Make a source of the parts of all encodings, one after the other; it borrows q. */
heft_status heft_quantised_source(heft_source **out, heft_quantisation *q, heft_error *err);
/* Find the largest magnitude of each tensor whose encoder needs it, on all threads, and let the
 * encoders begin; quantise_largest.c. */
heft_status heft_quantise_largest(heft_quantisation *q, heft_error *err);

#endif
