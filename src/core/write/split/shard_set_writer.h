/* shard_set_writer.h - hold back shards that are written but not yet committed, for an index
 * that refers to the parts. */
#ifndef HEFT_SHARD_SET_WRITER_H
#define HEFT_SHARD_SET_WRITER_H
#include "core/read/file.h"

typedef struct heft_shard_set_writer heft_shard_set_writer;

heft_status heft_shard_set_writer_begin(heft_shard_set_writer **out, const heft_host *h,
                                        const heft_format *format, uint32_t count, heft_error *err);
/* Return the sink of the next of `count` files.  The sink owns inner and does not commit the
 * file. */
heft_sink *heft_shard_set_writer_sink(heft_shard_set_writer *l, heft_sink *inner);
/* Read back the file written last, of `size` bytes. */
heft_status heft_shard_set_writer_add(heft_shard_set_writer *l, uint64_t size, heft_error *err);
/* Join all files to a model, and describe each file for the index; both live as long as l. */
heft_status heft_shard_set_writer_join(heft_shard_set_writer *l, const heft_file **out,
                                       const heft_plan_shard **shards, heft_error *err);
/* Commit all files, in order. */
heft_status heft_shard_set_writer_finish(heft_shard_set_writer *l, heft_error *err);
void heft_shard_set_writer_free(heft_shard_set_writer *l); /* NULL is harmless */

#endif
