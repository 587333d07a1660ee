/* convert_model.h - the model that a conversion writes, from that of its input. */
#ifndef HEFT_CONVERT_MODEL_H
#define HEFT_CONVERT_MODEL_H
#include "core/write/convert.h"
#include "core/write/copy.h"

/* All tensors, or those that were chosen, with their parts, and how these are stored. */
heft_status heft_conversion_add_tensors(heft_conversion *c);
heft_status heft_conversion_add_metadata(heft_conversion *c);
heft_status heft_conversion_add_model_parts(heft_conversion *c);
heft_status heft_conversion_add_vocab(heft_conversion *c);

#endif
