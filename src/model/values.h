/* values.h - metadata values: as text, compared, and without repetitions. */
#ifndef HEFT_VALUES_H
#define HEFT_VALUES_H
#include "model/decimal.h"
#include "model/index.h"

/* Text as it is, numbers and truth values as text, for which room is; false: v has no such text, or none
 * that is UTF-8. */
bool heft_value_text(heft_str *out, const heft_value *v, char room[HEFT_F64_TEXT]);
/* Key and value, floats bit for bit; of containers only how many children they have. */
bool heft_value_same(const heft_value *a, const heft_value *b);
/* Of the children of value `parent`, or with HEFT_NONE of the top-level values, those whose key comes again are
 * taken away: the last one counts.  No container may be open. */
heft_status heft_ix_meta_keep_last(heft_index *x, uint32_t parent, uint32_t *dropped);

#endif
