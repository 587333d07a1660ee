/* blake3_kernels.h - the members of heft_kernels for BLAKE3, by instruction set. */
#ifndef HEFT_BLAKE3_KERNELS_H
#define HEFT_BLAKE3_KERNELS_H
#include <stddef.h>
#include <stdint.h>

void heft_blake3_chunks_sse4_1(uint32_t (*out)[8], const uint8_t *p, size_t count, uint64_t number);
void heft_blake3_parents_sse4_1(uint32_t (*cv)[8], size_t count);
void heft_blake3_chunks_avx2(uint32_t (*out)[8], const uint8_t *p, size_t count, uint64_t number);
void heft_blake3_parents_avx2(uint32_t (*cv)[8], size_t count);
void heft_blake3_chunks_avx512(uint32_t (*out)[8], const uint8_t *p, size_t count, uint64_t number);
void heft_blake3_parents_avx512(uint32_t (*cv)[8], size_t count);

#endif
