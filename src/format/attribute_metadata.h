/* attribute_metadata.h - stores tensor attributes as text metadata, for formats that have no tensor
 * attributes.  An entry "heft.ATTRIBUTE/TENSOR" becomes an attribute again on reading. */
#ifndef HEFT_ATTRIBUTE_METADATA_H
#define HEFT_ATTRIBUTE_METADATA_H
#include "format/format.h"

/* Add an entry to the plan's metadata for each attribute.  Call after all tensors have been dropped
 * that will not be written. */
heft_status heft_attributes_to_metadata(heft_plan *p);
/* Warn about attributes that heft_attributes_to_metadata() does not store. */
heft_status heft_loss_attributes_beyond_metadata(heft_plan *p, const char *rule);
/* Replace the entries by attributes, after all tensors have been added to x.  Builds the name table
 * of x if there are any entries. */
heft_status heft_attributes_from_metadata(heft_index *x);

#endif
