/* padded_source.h - a source that shows a truncated file at the expected size, with zeros in place
 * of the missing bytes. */
#ifndef HEFT_PADDED_SOURCE_H
#define HEFT_PADDED_SOURCE_H
#include <heft/heft_ext.h>

typedef struct heft_padded_source {
    heft_source base; /* first member; base.size is the size that is shown */
    heft_source *from;
} heft_padded_source;

#endif
