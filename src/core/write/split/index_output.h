/* index_output.h - the text of an index goes to a sink. */
#ifndef HEFT_INDEX_OUTPUT_H
#define HEFT_INDEX_OUTPUT_H
#include "core/read/file.h"

/* Write the index of the set, without finishing the sink. */
heft_status heft_index_output(const heft_sharding *sharding, const heft_shard_set *set,
                              heft_sink *sink, const heft_allocator *al, heft_error *err);

#endif
