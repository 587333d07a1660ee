/* blake3.h - BLAKE3, unkeyed, 32 bytes of output, for the parameter ids and content hashes of
 * gpt-rs. */
#ifndef HEFT_BLAKE3_H
#define HEFT_BLAKE3_H
#include <stddef.h>
#include <stdint.h>

typedef struct heft_blake3 {
    uint32_t stack[54][8]; /* one chaining value per level of the tree */
    uint32_t cv[8];        /* chaining value of the current chunk, or of the waiting subtree */
    uint32_t waiting;      /* chunks of a subtree that may end the input; 0: none */
    uint64_t chunk;        /* number of the current chunk */
    uint8_t block[64];
    uint8_t block_len, blocks, depth;
} heft_blake3;

void heft_blake3_init(heft_blake3 *h);
void heft_blake3_update(heft_blake3 *h, const void *data, size_t len);
void heft_blake3_final(const heft_blake3 *h, uint8_t out[32]);

/* Compute the first 16 bytes of BLAKE3(name), the BaseParamId of gpt-rs as stored on disk. */
void heft_blake3_id(uint8_t out[16], const void *name, size_t len);

/* The portable form of the members of heft_kernels: compute the chaining value of the whole chunk
 * at p, and replace `right` by the parent node of left and right. */
void heft_blake3_chunk(uint32_t cv[8], const uint8_t *p, uint64_t number);
void heft_blake3_parent(const uint32_t left[8], uint32_t right[8]);

/* ---- the constants of BLAKE3, for the portable form and the kernels of src/simd ---- */

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
