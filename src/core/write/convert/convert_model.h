/* convert_model.h - build the model that a conversion writes from the model of the input. */
#ifndef HEFT_CONVERT_MODEL_H
#define HEFT_CONVERT_MODEL_H
#include "core/write/convert/convert.h"
#include "core/write/convert/copy.h"

/* Add the selected tensors, with parts and storage settings. */
heft_status heft_conversion_add_tensors(heft_conversion *c);
heft_status heft_conversion_add_metadata(heft_conversion *c);
heft_status heft_conversion_add_model_parts(heft_conversion *c);
heft_status heft_conversion_add_vocab(heft_conversion *c);
/* ---- the input's checksums, convert.c ---- */

/* Set c->part_use, for the functions below. */
heft_status heft_conversion_mark_part_use(heft_conversion *c);
/* Return the use of a part of the input; ctx is a heft_conversion. */
heft_part_use heft_conversion_part_use(void *ctx, uint32_t part);
/* Return true if a part has to be decoded before the copy; ctx is a heft_conversion. */
bool heft_conversion_decodes_first(void *ctx, uint32_t part);

#endif
