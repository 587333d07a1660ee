/* delta_file.h - the names in a delta, for the code that makes deltas and the code that reads
 * them; docs/delta.md describes the layout. */
#ifndef HEFT_DELTA_FILE_H
#define HEFT_DELTA_FILE_H
#include <heft/delta.h>

#include "base/text.h"

enum { HEFT_DELTA_VERSION = 1 };

/* Keys of the metadata. */
#define HEFT_DELTA_KEY "heft.delta"
/* Layouts of tensors, and their parts. */
#define HEFT_DELTA_SPARSE "heft.sparse_change"
#define HEFT_DELTA_XOR    "heft.xor_change"

#endif
