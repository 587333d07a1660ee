/* packed_steps.h - the loops of packed_loops.h, for the files that compile them for an instruction
 * set.  Steps have a constant length, so that compilers use vectors. */
#ifndef HEFT_PACKED_STEPS_H
#define HEFT_PACKED_STEPS_H
#include <string.h>

#include "base/compiler.h"
#include "model/float.h"
#include "model/packed_loops.h"

enum { STEP = 16, WORD = 4, IN_WORD = 8 };

static void unpack_words(float *restrict out, const uint8_t *restrict p, size_t n, uint32_t shift,
                         uint32_t mask)
{
    size_t i = 0;
    for (; i + STEP <= n; i += STEP)
        for (size_t k = 0; k < STEP; k++)
            out[i + k] = (float)(int32_t)(heft_le32(p + (i + k) * WORD) >> shift & mask);
    for (; i < n; i++)
        out[i] = (float)(int32_t)(heft_le32(p + i * WORD) >> shift & mask);
}

static void unpack_halves(float *restrict out, const uint8_t *restrict p, size_t n)
{
    size_t i = 0;
    for (; i + 2 * STEP <= n; i += 2 * STEP)
        for (size_t k = 0; k < STEP; k++) {
            int32_t both = p[i / 2 + k];
            out[i + 2 * k] = (float)(both & 15);
            out[i + 2 * k + 1] = (float)(both >> 4);
        }
    for (; i < n; i += 2) {
        out[i] = (float)(p[i / 2] & 15);
        out[i + 1] = (float)(p[i / 2] >> 4);
    }
}

/* The magnitudes are halves of 0 1 2 3 4 6 8 12: the greatest of three lines. */
static inline float number_of_e2m1(int32_t code)
{
    int32_t m = code & 7, twice = 2 * m - 4, four = 4 * m - 16;
    m = twice > m ? twice : m;
    m = four > m ? four : m;
    return heft_f32_of(heft_f32_bits((float)m * 0.5F) | (uint32_t)(code & 8) << 28);
}

static void unpack_e2m1(float *restrict out, const uint8_t *restrict p, size_t n)
{
    size_t i = 0;
    for (; i + 2 * STEP <= n; i += 2 * STEP)
        for (size_t k = 0; k < STEP; k++) {
            out[i + 2 * k] = number_of_e2m1(p[i / 2 + k]);
            out[i + 2 * k + 1] = number_of_e2m1(p[i / 2 + k] >> 4);
        }
    for (; i < n; i += 2) {
        out[i] = number_of_e2m1(p[i / 2]);
        out[i + 1] = number_of_e2m1(p[i / 2] >> 4);
    }
}

/* The even numbers are in the low half of a word, the odd ones in the high half. */
static void unpack_awq(float *restrict out, const uint8_t *restrict p, size_t n)
{
    typedef int32_t eight __attribute__((vector_size(IN_WORD * WORD)));
    typedef float eight_floats __attribute__((vector_size(IN_WORD * WORD)));
    const eight shifts = { 0, 16, 4, 20, 8, 24, 12, 28 };
    for (size_t i = 0; i < n; i++) {
        eight codes = ((eight){ 0 } + (int32_t)heft_le32(p + i * WORD)) >> shifts & 15;
        eight_floats numbers = __builtin_convertvector(codes, eight_floats);
        memcpy(out + i * IN_WORD, &numbers, sizeof numbers);
    }
}

static void scale_columns(float *restrict x, const float *restrict zero,
                          const float *restrict scale, size_t n)
{
    size_t i = 0;
    for (; i + STEP <= n; i += STEP)
        for (size_t k = 0; k < STEP; k++)
            x[i + k] = (x[i + k] - zero[i + k]) * scale[i + k];
    for (; i < n; i++)
        x[i] = (x[i] - zero[i]) * scale[i];
}

static void scale_group(float *restrict x, float zero, float scale, size_t n)
{
    size_t i = 0;
    for (; i + STEP <= n; i += STEP)
        for (size_t k = 0; k < STEP; k++)
            x[i + k] = (x[i + k] - zero) * scale;
    for (; i < n; i++)
        x[i] = (x[i] - zero) * scale;
}

#define HEFT_PACKED_LOOPS                                                                \
    {                                                                                    \
        unpack_words, unpack_halves, unpack_e2m1, unpack_awq, scale_columns, scale_group \
    }

#endif
