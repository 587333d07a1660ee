/* blake3_constants.h - the constants of BLAKE3, for its portable form and the kernels of src/simd.
 */
#ifndef HEFT_BLAKE3_CONSTANTS_H
#define HEFT_BLAKE3_CONSTANTS_H
#include <stdint.h>

enum { HEFT_BLAKE3_BLOCK = 64, HEFT_BLAKE3_CHUNK = 1024, HEFT_BLAKE3_ROUNDS = 7 };
/* Flags of a compression. */
enum {
    HEFT_BLAKE3_CHUNK_START = 1,
    HEFT_BLAKE3_CHUNK_END = 2,
    HEFT_BLAKE3_PARENT = 4,
    HEFT_BLAKE3_ROOT = 8
};

static const uint32_t heft_blake3_initial[8] = { 0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A,
                                                 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19 };

/* Index of the block word for each input of a round; row r is the permutation applied r times. */
static const uint8_t heft_blake3_schedule[HEFT_BLAKE3_ROUNDS][16] = {
    { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 },
    { 2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8 },
    { 3, 4, 10, 12, 13, 2, 7, 14, 6, 5, 9, 0, 11, 15, 8, 1 },
    { 10, 7, 12, 9, 14, 3, 13, 15, 4, 0, 11, 2, 5, 8, 1, 6 },
    { 12, 13, 9, 11, 15, 10, 14, 8, 7, 2, 5, 3, 0, 1, 6, 4 },
    { 9, 14, 11, 5, 8, 12, 15, 1, 13, 3, 0, 10, 2, 6, 4, 7 },
    { 11, 15, 5, 0, 1, 9, 8, 6, 14, 10, 2, 12, 3, 4, 7, 13 },
};

#endif
