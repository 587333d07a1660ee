/* torn_check.h - report quantised tensors whose parts no longer belong together. */
#ifndef HEFT_TORN_CHECK_H
#define HEFT_TORN_CHECK_H
#include "core/write/plan/plan.h"

/* Warn about quantised tensors of `in` of which only some parts are planned, or whose planned parts
 * have names that do not show the quantised tensor.  planned: id in the plan of each tensor of
 * `in`, HEFT_NONE if it is left out; NULL: the ids are equal.  schemes: the quantised tensors of
 * `in`; NULL: they are found. */
heft_status heft_warn_torn(heft_planner *p, const heft_file *in, const heft_schemes *schemes,
                           const uint32_t *planned);

#endif
