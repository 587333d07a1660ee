/* shard_join.h - joins several files to one model. */
#ifndef HEFT_SHARD_JOIN_H
#define HEFT_SHARD_JOIN_H
#include "core/read/file.h"

/* After a parse: open the shards that f names.  A shard that cannot be opened is recorded as such;
 * shard_files.c. */
heft_status heft_shards_open(heft_file *f, heft_error *err);
/* Return HEFT_E_UNSUPPORTED for the name of a file that has only pieces of tensors, ".distcp";
 * open_model.c. */
heft_status heft_refuse_piece(const char *name, heft_error *err);
/* Treat the first file of a set as a model of its own; completeness.c. */
void heft_file_drop_shards(heft_file *f);
/* Add the tensors of the opened shards that are models to f. */
heft_status heft_join_shards(heft_file *f, heft_error *err);
/* Reserve rows for `count` joined files; false: out of memory. */
bool heft_join_reserve(heft_file *f, uint32_t count);
/* Add the tensors and metadata of f->joined_files to f.  opt NULL: the files are shards of f or
 * components of a pipeline, and contradictions become findings. */
heft_status heft_join_files(heft_file *f, const heft_join_options *opt, heft_error *err);
/* Join the pieces of tensors that f and its joined files have; piece_join.c. */
heft_status heft_join_pieces(heft_file *f, heft_error *err);
/* Let the format join the files of ranks, which are f's joined files; rank_join.c. */
heft_status heft_join_ranks(heft_file *f, heft_error *err);
/* Warn that a file was opened alone whose tensors are pieces. */
heft_status heft_note_pieces(heft_file *f, heft_error *err);
/* Begin a file that joins `count` files of the caller, which are listed as its shards; `more`
 * shards may follow. After an error, too, the caller calls heft_join_end(); file_join.c. */
heft_status heft_join_begin(heft_file **out, const heft_file *const *files, uint32_t count,
                            uint32_t more, heft_error *err);
/* Add a source that computes the bytes of tensors, as the last shard of a file that was begun so;
 * *shard becomes its number.  label: how errors name the source.  Takes the source, also after an
 * error. */
heft_status heft_join_source(heft_file *f, heft_str label, heft_source *take, uint32_t *shard);
/* Append a tensor whose elements are bytes [start, start + bytes) of that source. */
heft_status heft_join_computed(heft_file *f, const heft_tensor *t, uint32_t shard, uint64_t start,
                               uint64_t bytes);
/* Finish the file after work that returned st, or close it. */
heft_status heft_join_end(heft_file **out, heft_status st, heft_error *err);
/* Make a file of `bytes` bytes another file of an open file without shards, whose number is
 * *number; source as below. */
heft_status heft_join_second(heft_file *f, uint64_t bytes, heft_source *source, uint32_t *number,
                             heft_error *err);
/* Add the tensors of index x to an open file without shards.  x describes a file of `bytes` bytes
 * in the same format.  source holds the bytes of that file and must outlive f; NULL if never
 * read. */
heft_status heft_join_added(heft_file *f, const heft_index *x, uint64_t bytes, heft_source *source,
                            heft_error *err);
/* Record the first reason why the model is incomplete; completeness.c. */
void heft_file_set_missing(heft_file *f, const heft_error *why);
/* Add a finding about the files of a model.  fmt: see heft_error_set().  A HEFT_FAULT also marks
 * the model incomplete. */
heft_status heft_join_note(heft_file *f, heft_severity s, const char *rule, uint64_t at,
                           uint32_t tensor, const char *fmt, ...);
/* Warn of weights that belong to the model and were not read.  A conversion reports the warning as
 * a loss; the model keeps its hash, because the weights are not part of the opened files. */
heft_status heft_join_left_out(heft_file *f, const char *rule, const char *fmt, ...);
/* After a parse: add the shards that only heft_open_options.folder lists; folder_shards.c. */
heft_status heft_add_folder_shards(heft_file *f, heft_error *err);
/* Add findings about shards without an index, and about files that were not read. */
heft_status heft_note_folder_files(heft_file *f, heft_error *err);
/* Return the name of a file by number, see heft_global_offset(). */
heft_str heft_shard_name(const heft_file *f, uint32_t number);
/* Compare the index's list of tensors, and the shard numbers stated in the files, with the joined
 * files; shard_index_check.c. */
heft_status heft_check_shard_index(heft_file *f, heft_error *err);
heft_status heft_check_shard_info(heft_file *f);
/* Compare the numbers in the file names, such as 00001-of-00003, with the list;
 * shard_numbering.c. */
heft_status heft_check_shard_numbers(heft_file *f);

#endif
