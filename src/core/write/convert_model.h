/* convert_model.h - build the model that a conversion writes from the model of the input. */
#ifndef HEFT_CONVERT_MODEL_H
#define HEFT_CONVERT_MODEL_H
#include "core/write/convert.h"
#include "core/write/copy.h"

/* Add all tensors, or the chosen ones, with their parts and the storage of the parts. */
heft_status heft_conversion_add_tensors(heft_conversion *c);
heft_status heft_conversion_add_metadata(heft_conversion *c);
heft_status heft_conversion_add_model_parts(heft_conversion *c);
heft_status heft_conversion_add_vocab(heft_conversion *c);

#endif
