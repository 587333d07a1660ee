/* within.h - what a conversion into the input's own format keeps beyond the model. */
#ifndef HEFT_WITHIN_H
#define HEFT_WITHIN_H
#include "core/write/plan.h"

/* Whether `in` is of the format that is written. */
bool heft_is_same_format(const heft_planner *p, const heft_file *in);
/* The generation stays, unless another was asked for. */
heft_status heft_within_version(heft_planner *p, const heft_file *in, heft_error *err);
/* How a part of the input is stored when nothing else is asked for. */
heft_storage heft_within_storage(heft_planner *p, const heft_file *in, uint32_t part);
/* Counts what is stored otherwise than in the input, for heft_within_losses(). */
void heft_within_note(heft_planner *p, const heft_file *in, uint32_t part, const heft_storage *how);
/* Says what the input says and the target will not, since its parser passed over it. */
heft_status heft_within_losses(heft_planner *p, const heft_file *in);

#endif
