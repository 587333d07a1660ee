/* packed_loops.h - loops that unpack and scale the numbers of quantised tensors, for an instruction
 * set. */
#ifndef HEFT_PACKED_LOOPS_H
#define HEFT_PACKED_LOOPS_H
#include <stddef.h>
#include <stdint.h>

typedef struct heft_packed_loops {
    /* Unpack the bits of `mask` << shift from n little-endian words of 32 bits. */
    void (*words)(float *restrict out, const uint8_t *restrict p, size_t n, uint32_t shift,
                  uint32_t mask);
    /* Unpack n numbers of 4 bits, n even, the first of two in the low half of a byte. */
    void (*halves)(float *restrict out, const uint8_t *restrict p, size_t n);
    /* The same for numbers of E2M1. */
    void (*e2m1)(float *restrict out, const uint8_t *restrict p, size_t n);
    /* Unpack n words, each with eight numbers of 4 bits in the order of awq. */
    void (*awq)(float *restrict out, const uint8_t *restrict p, size_t n);
    /* Replace each number by (x - zero) * scale of its column. */
    void (*columns)(float *restrict x, const float *restrict zero, const float *restrict scale,
                    size_t n);
    /* Replace each number by (x - zero) * scale. */
    void (*group)(float *restrict x, float zero, float scale, size_t n);
} heft_packed_loops;

extern const heft_packed_loops heft_portable_packed;

/* Return the loops for the processor.  Static. */
const heft_packed_loops *heft_packed_now(void);

#endif
