/* convert_model.h - build the model that a conversion writes from the model of the input. */
#ifndef HEFT_CONVERT_MODEL_H
#define HEFT_CONVERT_MODEL_H
#include "core/write/convert.h"
#include "core/write/copy.h"

/* Add the selected tensors, with parts and storage settings. */
heft_status heft_conversion_add_tensors(heft_conversion *c);
heft_status heft_conversion_add_metadata(heft_conversion *c);
heft_status heft_conversion_add_model_parts(heft_conversion *c);
heft_status heft_conversion_add_vocab(heft_conversion *c);
/* Implement heft_plan_source.check_values; ctx is a heft_conversion. */
heft_status heft_conversion_check_values(void *ctx, uint32_t tensor, heft_value_rule *broken);

#endif
