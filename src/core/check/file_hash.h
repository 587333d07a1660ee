/* file_hash.h - hash the tensors of a share. */
#ifndef HEFT_FILE_HASH_H
#define HEFT_FILE_HASH_H
#include "core/read/checked_read.h"

/* Hash `count` tensors of a list from number `first` on, like heft_tensor_hash_many(); other shares
 * hash the rest of the list.  *checks receives the CRCs of the bytes read; call
 * heft_checked_read_free() also after an error. */
heft_status heft_tensor_hash_share(heft_hash *hashes, heft_checked_read *checks, const heft_file *f,
                                   const uint32_t *tensors, uint32_t all_count, uint32_t first,
                                   uint32_t count, heft_progress_fn on_progress, void *progress_ctx,
                                   heft_error *err);

#endif
