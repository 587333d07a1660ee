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

#endif
