/* attribute_metadata.h - attributes of tensors in formats that have no place for them but text metadata: an
 * entry "heft.ATTRIBUTE/TENSOR" for each, which is an attribute again when the file is read. */
#ifndef HEFT_ATTRIBUTE_METADATA_H
#define HEFT_ATTRIBUTE_METADATA_H
#include "format/format.h"

/* Adds the entries to the plan's metadata.  For writers, when the tensors to be written are settled. */
heft_status heft_attributes_to_metadata(heft_plan *p);
/* A warning for what heft_attributes_to_metadata() cannot carry. */
heft_status heft_loss_attributes_beyond_metadata(heft_plan *p, const char *rule);
/* Turns the entries back into attributes.  For readers, when all tensors are known; seals x if
 * there are any. */
heft_status heft_attributes_from_metadata(heft_index *x);

#endif
