/* ties.h - which parts that are to be written will have the same bytes. */
#ifndef HEFT_TIES_H
#define HEFT_TIES_H
#include "core/write/copy.h"

/* Sets same[part], which holds each part's own number, to the first part of the same bytes.  What is looked at:
 * parts made of the same stored bytes in the same way and, with contents, parts that are copied byte for
 * byte.  Whole parts are read only where length, beginning and end are those of another. */
heft_status heft_ties(uint32_t *same, heft_planner *p, const heft_file *in,
                      const heft_origin *origins, bool contents, heft_error *err);

#endif
