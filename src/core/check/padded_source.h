/* padded_source.h - a source that shows a truncated file at the expected size, with zeros in place
 * of the missing bytes. */
#ifndef HEFT_PADDED_SOURCE_H
#define HEFT_PADDED_SOURCE_H
#include <heft/heft_ext.h>

typedef struct heft_padded_source {
    heft_source base; /* first member; base.size is the size that is shown */
    heft_source *from;
} heft_padded_source;

/* Show `from` at `size` bytes, more or fewer than it has.  Both objects stay with the caller:
 * closing the source does nothing. */
heft_padded_source heft_padded_source_of(heft_source *from, uint64_t size);
/* Return the size without zeros of a padded source, or the size of any other source. */
uint64_t heft_padded_present(heft_source *s);

#endif
