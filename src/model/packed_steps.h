/* packed_steps.h - the loops of packed_loops.h, for the files that compile them for an instruction
 * set.  Steps have a constant length, so that compilers use vectors. */
#ifndef HEFT_PACKED_STEPS_H
#define HEFT_PACKED_STEPS_H
#include <string.h>

#include "base/compiler.h"
#include "model/float.h"
#include "model/packed_loops.h"

enum { STEP = 16, WORD = 4, IN_WORD = 8 };

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

/* Exchange numbers of `bits` bits between rows of words, `distance` rows apart. */
static inline void exchange(uint32_t rows[IN_WORD][STEP], size_t lanes, size_t distance,
                            uint32_t bits, uint32_t low)
{
    for (size_t i = 0; i < IN_WORD; i++) {
        if (i & distance)
            continue;
        uint32_t *a = rows[i], *b = rows[i + distance];
        for (size_t k = 0; k < lanes; k++) {
            uint32_t x = (a[k] >> bits ^ b[k]) & low;
            a[k] ^= x << bits;
            b[k] ^= x;
        }
    }
}

/* Turn `lanes` words of eight rows: row k gets the numbers k of the words. */
static inline void turn_words(uint32_t *restrict out, const uint8_t *restrict p, size_t stride,
                              size_t n, size_t lanes)
{
    static const uint8_t order[IN_WORD] = { 0, 4, 1, 5, 2, 6, 3, 7 };
    uint32_t rows[IN_WORD][STEP];
    for (size_t i = 0; i < IN_WORD; i++)
        for (size_t k = 0; k < lanes; k++)
            rows[i][k] = heft_le32(p + i * stride + k * WORD);
    exchange(rows, lanes, 1, 4, 0x0F0F0F0F);
    exchange(rows, lanes, 2, 8, 0x00FF00FF);
    exchange(rows, lanes, 4, 16, 0x0000FFFF);
    for (size_t i = 0; i < IN_WORD; i++)
        for (size_t k = 0; k < lanes; k++)
            out[i * n + k] = rows[order[i]][k];
}

static void turn_awq(uint32_t *restrict out, const uint8_t *restrict p, size_t stride, size_t n)
{
    size_t j = 0;
    for (; j + STEP <= n; j += STEP)
        turn_words(out + j, p + j * WORD, stride, n, STEP);
    for (; j < n; j++)
        turn_words(out + j, p + j * WORD, stride, n, 1);
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

/* Look up the codes of a group from number `i` on. */
static inline void look_up_rest(uint8_t *restrict out, const uint8_t *restrict p,
                                const uint16_t *restrict table, size_t i, size_t width)
{
    for (; i < width; i += 2) {
        uint32_t first = table[p[i / 2] & 15], second = table[p[i / 2] >> 4];
        uint8_t four[WORD] = { (uint8_t)first, (uint8_t)(first >> 8), (uint8_t)second,
                               (uint8_t)(second >> 8) };
        memcpy(out + 2 * i, four, sizeof four);
    }
}

static void look_up_bytes(float *restrict out, const uint8_t *restrict p, size_t n,
                          const heft_byte_numbers *restrict numbers)
{
    for (size_t i = 0; i < n; i++)
        out[i] = numbers->number[p[i]];
}

static void round_to_bf16(uint8_t *restrict out, const float *restrict x, size_t n)
{
    for (size_t i = 0; i < n; i += STEP) {
        size_t left = n - i < STEP ? n - i : STEP;
        uint16_t rounded[STEP];
        uint32_t bits[STEP] = { 0 };
        memcpy(bits, x + i, left * sizeof *bits);
        for (size_t k = 0; k < STEP; k++)
            rounded[k] = heft_f32_to_bf16(bits[k]);
        memcpy(out + 2 * i, rounded, 2 * left);
    }
}

#endif
