/* convert_model.h - the model that a conversion writes, from that of its input. */
#ifndef HEFT_CONVERT_MODEL_H
#define HEFT_CONVERT_MODEL_H
#include "core/write/convert.h"
#include "core/write/copy.h"

typedef struct heft_conversion {
    heft_planner p;
    const heft_file *in;
    heft_convert_options opt;
    heft_vec origins;  /* by part to be written */
    heft_vocab *vocab; /* the input's */
    uint8_t *passing;  /* by part of the input: heft_passing */
    const heft_converting *how;
    bool decodes; /* what is compressed is decoded once before, for its digests */
    heft_error *err;
} heft_conversion;

/* All tensors, or those that were chosen, with their parts, and how these are stored. */
heft_status heft_conversion_add_tensors(heft_conversion *c);
heft_status heft_conversion_add_metadata(heft_conversion *c);
heft_status heft_conversion_add_model_parts(heft_conversion *c);
heft_status heft_conversion_add_vocab(heft_conversion *c);

#endif
