/* file_hash.h - the hash of a model from the hashes of the tensors. */
#ifndef HEFT_FILE_HASH_H
#define HEFT_FILE_HASH_H
#include <heft/heft.h>

/* Compute the hash of the model from the hashes of all tensors, as heft_file_hash() does.  The
 * tensors are not read again. */
heft_status heft_hash_model(heft_hash *model, const heft_hash *tensors, const heft_file *f,
                            heft_error *err);

#endif
