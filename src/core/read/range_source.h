/* range_source.h - shows a range of an open file as a file of its own. */
#ifndef HEFT_RANGE_SOURCE_H
#define HEFT_RANGE_SOURCE_H
#include "core/read/file.h"

typedef struct heft_range_source {
    heft_source base; /* first member */
    const heft_file *f;
    uint64_t offset; /* global offset of the range */
} heft_range_source;

/* Initialise *s, which the caller keeps as long as the source is used; the file must outlive the
 * source.  where.offset: see heft_global_offset().  Return the source. */
heft_source *heft_range_source_init(heft_range_source *s, const heft_file *f, heft_range where);

#endif
