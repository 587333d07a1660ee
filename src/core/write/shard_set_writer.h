/* shard_set_writer.h - files that were written but have not appeared yet, for an index that refers to their parts. */
#ifndef HEFT_SHARD_SET_WRITER_H
#define HEFT_SHARD_SET_WRITER_H
#include "core/read/file.h"

typedef struct heft_shard_set_writer heft_shard_set_writer;

heft_status heft_shard_set_writer_begin(heft_shard_set_writer **out, const heft_host *h,
                                        const heft_format *format, uint32_t count, heft_error *err);
/* The sink of the next of count files: takes inner over, and keeps it from appearing. */
heft_sink *heft_shard_set_writer_sink(heft_shard_set_writer *l, heft_sink *inner);
/* The file that was written last is complete, with so many bytes: reads it back. */
heft_status heft_shard_set_writer_add(heft_shard_set_writer *l, uint64_t size, heft_error *err);
/* All of them as one model, and what is to be said of each; they live as long as l. */
heft_status heft_shard_set_writer_join(heft_shard_set_writer *l, const heft_file **out,
                                       const heft_plan_shard **links, heft_error *err);
/* Lets all of them appear, in their order. */
heft_status heft_shard_set_writer_finish(heft_shard_set_writer *l, heft_error *err);
void heft_shard_set_writer_free(heft_shard_set_writer *l); /* NULL is harmless */

#endif
