/* unique_keys.h - keys that occur once: those of metadata, and the attributes of a tensor. */
#ifndef HEFT_UNIQUE_KEYS_H
#define HEFT_UNIQUE_KEYS_H
#include "model/index.h"

/* Return HEFT_E_FORMAT if a top-level metadata key occurs twice; call at the end of a parse.
 * `what` names the container in the message, e.g. "__metadata__". */
heft_status heft_meta_unique(heft_index *x, const char *what);
/* Return HEFT_E_FORMAT if an attribute of the tensor added last occurs twice. */
heft_status heft_attrs_unique(heft_index *x, uint32_t tensor, const char *what);

#endif
