/* npz.h - what reading and writing of .npz archives share. */
#ifndef HEFT_NPZ_H
#define HEFT_NPZ_H
#include "format/numpy/npy.h"

enum { HEFT_NPZ_SUFFIX = 4 };
extern const char heft_npz_suffix[]; /* of the name of a member that is an array: ".npy" */

/* What in the name of a member is dangerous to those who unpack the archive into a folder, or NULL. */
const char *heft_npz_risk(heft_str name);

heft_status heft_npz_plan(heft_plan *p);
heft_status heft_npz_write_header(const heft_plan *p, heft_out *o);
heft_status heft_npz_write_record_header(const heft_plan *p, uint32_t part, heft_out *o);
heft_status heft_npz_write_trailer(const heft_plan *p, heft_out *o);

#endif
