/* tensor_hash.h - the hash of a tensor whose pieces somebody else has hashed. */
#ifndef HEFT_TENSOR_HASH_H
#define HEFT_TENSOR_HASH_H
#include <heft/check.h>

#include "base/blake3.h"
#include "model/index.h"

/* Make the hash of a tensor with one part, as heft_file_hash() does; pieces: of the hashes of its
 * pieces of 1 MiB, in order. */
void heft_hash_one_part(heft_hash *out, const heft_index *x, uint32_t tensor,
                        const heft_blake3 *pieces);

#endif
