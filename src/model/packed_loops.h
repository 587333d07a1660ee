/* packed_loops.h - loops that unpack and scale the numbers of quantised tensors, for an instruction
 * set. */
#ifndef HEFT_PACKED_LOOPS_H
#define HEFT_PACKED_LOOPS_H
#include <stddef.h>
#include <stdint.h>

/* The numbers of 16 bits that codes of 4 bits stand for. */
typedef struct heft_code_table {
    uint16_t number[16];
} heft_code_table;

/* The numbers of a type of 8 bits.  The lower halves of their bits are zero; the upper ones are
 * here as bytes, too. */
typedef struct heft_byte_numbers {
    float number[256];
    uint8_t third[256], top[256]; /* bits 16 to 23, bits 24 to 31 */
} heft_byte_numbers;

typedef struct heft_packed_loops {
    /* Unpack n numbers of 4 bits, n even, the first of two in the low half of a byte. */
    void (*halves)(float *restrict out, const uint8_t *restrict p, size_t n);
    /* The same for numbers of E2M1. */
    void (*e2m1)(float *restrict out, const uint8_t *restrict p, size_t n);
    /* Turn eight rows of n words, `stride` bytes apart: words have eight numbers of 4 bits in the
     * order of awq.  Word k * n + j of the result has number k of word j of all rows. */
    void (*awq)(uint32_t *restrict out, const uint8_t *restrict p, size_t stride, size_t n);
    /* Replace each number by (x - zero) * scale. */
    void (*group)(float *restrict x, float zero, float scale, size_t n);
    /* Look up codes of 4 bits, two in a byte: those of group i, `width` codes, an even number, in
     * tables[which[i]].  Numbers are little-endian. */
    void (*look_up)(uint8_t *restrict out, const uint8_t *restrict p,
                    const heft_code_table *restrict tables, const uint8_t *restrict which,
                    size_t width, size_t groups);
    /* Look up n bytes. */
    void (*bytes)(float *restrict out, const uint8_t *restrict p, size_t n,
                  const heft_byte_numbers *restrict numbers);
    /* Round n numbers to bf16, little-endian. */
    void (*bf16)(uint8_t *restrict out, const float *restrict x, size_t n);
} heft_packed_loops;

extern const heft_packed_loops heft_portable_packed;

/* Return the loops for the processor.  Static. */
const heft_packed_loops *heft_packed_now(void);

#endif
