/* flax_piece.c - the size of the pieces of large arrays, by itself, so that a test can have a small
 * one.
 *
 * A multiple of the size of every element: pieces are cut as flax.serialization cuts them. */
#include "format/flax/flax.h"

const uint64_t heft_flax_piece_bytes = UINT64_C(1) << 30;
