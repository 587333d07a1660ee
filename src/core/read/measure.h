/* measure.h - lengths that the index does not tell.  Compressed parts of some files say only how long
 * they are compressed: what the layout implies is worked out, the rest is decoded once and counted. */
#ifndef HEFT_MEASURE_H
#define HEFT_MEASURE_H
#include "core/read/file.h"

/* Settles the lengths of all parts that are HEFT_NOWHERE and can be settled: a part that cannot be
 * decoded, or not here, stays as it is.  Fails only when the system does. */
heft_status heft_measure(heft_file *f, heft_error *err);
/* HEFT_OK when every length is known and possible, else what is wrong with the first that is not. */
heft_status heft_measured(const heft_file *f, heft_error *err);

#endif
