/* apply_in_place.h - heft_delta_apply_in_place() with the caller's table of system calls. */
#ifndef HEFT_APPLY_IN_PLACE_H
#define HEFT_APPLY_IN_PLACE_H
#include <heft/delta.h>

#include "port/system/disk.h"

enum { HEFT_PLACE_BYTES = 65536 * 8 }; /* at most, in a range that is changed at once */

heft_status heft_apply_in_place_on(const heft_disk *disk, heft_delta_sums *out, const char *path,
                                   const heft_delta *d, const heft_apply_options *opt,
                                   heft_error *err);

#endif
