/* rank_files.h - the files of ranks in a checkpoint of DeepSpeed ZeRO, which are joined to one
 * model. */
#ifndef HEFT_RANK_FILES_H
#define HEFT_RANK_FILES_H
#include "folder/folder_choice.h"

typedef struct heft_rank_row { /* a row of heft_folder_listing.ranks */
    const char *name;
    heft_rank_name n;
} heft_rank_row;

/* Keep the name, which is in the arena, if it is that of a file of a rank; false: no memory. */
bool heft_rank_files_keep(heft_folder_listing *l, const char *name);
/* Return true if the files of ranks are parts of one model, which their names tell apart: not those
 * of tensor or pipeline parallelism, of experts, or of two checkpoints. */
bool heft_rank_files_are_one(heft_folder_listing *l);
/* Return the file of ZeRO-3 to open, with the names and shapes; NULL: there is none. */
const char *heft_rank_files_main(const heft_folder_listing *l);
/* Return true for a universal checkpoint: a file for each tensor, beside model_states. */
bool heft_rank_files_are_universal(heft_folder_listing *l);
/* Add the files of a universal checkpoint to l->files, and model_states of ZeRO-3. */
heft_status heft_rank_files_add_universal(heft_folder_listing *l, const char *main,
                                          heft_error *err);
/* Add the other files to l->files; call after heft_rank_files_are_one().  cut: of ZeRO-3, whose
 * ranks must be all there.  HEFT_E_IO: a file is missing. */
heft_status heft_rank_files_add(heft_folder_listing *l, const char *main, bool cut,
                                heft_error *err);

/* Refuse a checkpoint of DeepSpeed that is not joined: HEFT_E_UNSUPPORTED. */
heft_status heft_rank_files_report(const heft_folder_listing *l, heft_error *err);

#endif
