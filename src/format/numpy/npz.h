/* npz.h - shared by the reader and the writer of .npz archives. */
#ifndef HEFT_NPZ_H
#define HEFT_NPZ_H
#include "format/numpy/npy.h"

enum { HEFT_NPZ_SUFFIX = 4 };
extern const char heft_npz_suffix[]; /* ".npy", the suffix of members that are arrays */

/* Return the reason why the name of a member is dangerous for unpacking into a folder, or NULL. */
const char *heft_npz_risk(heft_str name);

heft_status heft_npz_plan(heft_plan *p);
heft_status heft_npz_write_header(const heft_plan *p, heft_out *o);
heft_status heft_npz_write_record_header(const heft_plan *p, uint32_t part, heft_out *o);
heft_status heft_npz_write_trailer(const heft_plan *p, heft_out *o);

#endif
