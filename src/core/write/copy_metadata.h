/* copy_metadata.h - what a file says, in the model of a file that is to be written. */
#ifndef HEFT_COPY_METADATA_H
#define HEFT_COPY_METADATA_H
#include "core/write/plan.h"

/* All that is said of a tensor besides type and shape; cast: it has got another type, so that what was
 * said of the stored one holds no longer.  identity: that the tensor gets, or NULL: the one that it has. */
heft_status heft_copy_attributes(heft_planner *p, const heft_index *from, uint32_t id,
                                 uint32_t source, bool cast, const heft_identity *identity);

/* number_map.c.  Whether a key is that of a number in the map that the format keeps numbers in, MAP.NAME; of a value: whether
 * it goes there. */
bool heft_is_in_number_map(const heft_format *f, heft_str key, heft_str *name);
bool heft_is_map_number(const heft_format *f, const heft_value *v, heft_str *name);
/* HEFT_E_ARGUMENT for a value that was asked for under such a key, and cannot go there. */
heft_status heft_check_map_number(const heft_format *f, const heft_value *v, heft_error *err);
/* Moves such numbers of the top level into the map, where the last one of a name counts. */
heft_status heft_planner_nest(heft_planner *p);

#endif
