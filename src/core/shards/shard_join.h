/* shard_join.h - files in their own right that make one model together. */
#ifndef HEFT_SHARD_JOIN_H
#define HEFT_SHARD_JOIN_H
#include "core/read/file.h"

/* Opens the files beside this one, as far as they are there, after a parse: shards.c. */
heft_status heft_shards_open(heft_file *f, heft_error *err);
/* After the files beside f were opened: adds the tensors of those that are models. */
heft_status heft_join_shards(heft_file *f, heft_error *err);
/* Adds the tensors of an index, of a file of so many bytes of the same format, to those of an open file, which has no
 * files beside it; source: of those bytes, lent as long as f is open, or NULL: nothing of them is read. */
heft_status heft_join_added(heft_file *f, const heft_index *x, uint64_t bytes, heft_source *source,
                            heft_error *err);
/* Remembers what stands in the way of all that needs the whole model: completeness.c. */
void heft_file_set_missing(heft_file *f, const heft_error *why);
/* A finding about the files of a model, with names in it: see heft_error_set() for the format.  A fault makes the model
 * less than whole. */
heft_status heft_join_note(heft_file *f, heft_severity s, const char *rule, uint64_t at,
                           uint32_t tensor, const char *fmt, ...);
/* What a file is called, by its number for heft_global_offset(). */
heft_str heft_shard_name(const heft_file *f, uint32_t number);
/* What an index lists, and what the files say of themselves, once all are joined: shard_index_check.c. */
heft_status heft_check_shard_index(heft_file *f, heft_error *err);
heft_status heft_check_shard_info(heft_file *f);
/* What the numbers in the names of an index's files say: shard_numbering.c. */
heft_status heft_check_shard_numbers(heft_file *f);

#endif
