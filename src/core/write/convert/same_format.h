/* same_format.h - preserve the version, encodings and digests of a file that is converted to the
 * same format. */
#ifndef HEFT_SAME_FORMAT_H
#define HEFT_SAME_FORMAT_H
#include "core/write/plan/plan.h"

/* Return true if the input has the format that is written. */
bool heft_is_same_format(const heft_planner *p, const heft_file *in);
/* Keep the version of the input, unless the caller chose a version. */
heft_status heft_same_format_version(heft_planner *p, const heft_file *in, heft_error *err);
/* Return the storage of a part of the input if the caller asked for none. */
heft_storage heft_same_format_storage(heft_planner *p, const heft_file *in, uint32_t part);
/* Count changes of storage against the input, for heft_same_format_losses(). */
void heft_same_format_note(heft_planner *p, const heft_file *in, uint32_t part,
                           const heft_storage *storage);
/* Report the content of the input that is not among the tensors, as warnings. */
heft_status heft_left_out_losses(heft_planner *p, const heft_file *in);
/* Report everything that the parser skipped and the target will therefore lack. */
heft_status heft_same_format_losses(heft_planner *p, const heft_file *in);

#endif
