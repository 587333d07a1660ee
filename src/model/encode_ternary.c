/* encode_ternary.c - encoding of the types with a scale and a sign or a digit for each element. */
#include "model/encode_fits.h"
#include "model/encode_rounding.h"

static float greatest_magnitude(const float *x, uint32_t n)
{
    float most = 0;
    for (uint32_t i = 0; i < n; i++)
        most = most > heft_magnitude(x[i]) ? most : heft_magnitude(x[i]);
    return most;
}

/* Importance is not used by the encoders of this file. */
void heft_encode_q1_0(uint8_t *out, const float *row, size_t n, const float *importance,
                      const heft_fits *fits)
{
    enum { ELEMENTS = 128, BITS = 2, BYTES = BITS + ELEMENTS / 8 };
    (void)importance, (void)fits;
    for (size_t at = 0; at < n; at += ELEMENTS, out += BYTES) {
        float sum = 0;
        for (uint32_t i = 0; i < ELEMENTS; i++)
            sum += heft_magnitude(row[at + i]);
        heft_put_half(out, sum / ELEMENTS);
        for (uint32_t i = 0; i < BYTES - BITS; i++) {
            uint32_t bits = 0;
            for (uint32_t k = 0; k < 8; k++)
                bits |= (uint32_t)(row[at + 8 * i + k] >= 0) << k;
            out[BITS + i] = (uint8_t)bits;
        }
    }
}

void heft_encode_q2_0(uint8_t *out, const float *row, size_t n, const float *importance,
                      const heft_fits *fits)
{
    enum { ELEMENTS = 64, CODES = 2, PER_BYTE = 4, BYTES = CODES + ELEMENTS / PER_BYTE };
    (void)importance, (void)fits;
    for (size_t at = 0; at < n; at += ELEMENTS, out += BYTES) {
        float scale = 0;
        for (uint32_t i = 0; i < ELEMENTS; i++) /* NaN is ignored */
            scale = heft_magnitude(row[at + i]) > scale ? heft_magnitude(row[at + i]) : scale;
        float inverse = heft_reciprocal(scale);
        heft_put_half(out, scale);
        for (uint32_t i = 0; i < BYTES - CODES; i++) {
            uint32_t byte = 0;
            for (uint32_t k = 0; k < PER_BYTE; k++) {
                int32_t code = heft_rounded(row[at + PER_BYTE * i + k] * inverse);
                byte |= (uint32_t)(heft_clamp(code, -1, 2) + 1) << 2 * k;
            }
            out[CODES + i] = (uint8_t)byte;
        }
    }
}

void heft_encode_tq2_0(uint8_t *out, const float *row, size_t n, const float *importance,
                       const heft_fits *fits)
{
    enum { SCALE = 64, BYTES = 66 };
    (void)importance, (void)fits;
    for (size_t at = 0; at < n; at += HEFT_SUPER_BLOCK, out += BYTES) {
        uint8_t codes[HEFT_SUPER_BLOCK];
        float scale = greatest_magnitude(row + at, HEFT_SUPER_BLOCK);
        float inverse = heft_reciprocal(scale);
        for (uint32_t i = 0; i < HEFT_SUPER_BLOCK; i++)
            codes[i] = (uint8_t)(heft_rounded(row[at + i] * inverse) + 1);
        heft_put_two_bits(out, codes, 0);
        heft_put_half(out + SCALE, scale);
    }
}

/* Write `count` bytes of `digits` digits of base 3, the first digit the highest.  A byte is a
 * fraction of 243 digits, rounded up to a fraction of 256. */
static void put_digits(uint8_t *out, const float *x, uint32_t count, uint32_t digits, float inverse)
{
    enum { DIGITS = 5, FRACTION = 243 };
    for (uint32_t i = 0; i < count; i++) {
        uint32_t number = 0;
        for (uint32_t k = 0; k < DIGITS; k++) {
            int32_t digit = k < digits ? heft_rounded(x[i + k * count] * inverse) + 1 : 0;
            number = (uint8_t)(3 * number + (uint32_t)digit);
        }
        out[i] = (uint8_t)((number * 256 + FRACTION - 1) / FRACTION);
    }
}

void heft_encode_tq1_0(uint8_t *out, const float *row, size_t n, const float *importance,
                       const heft_fits *fits)
{
    enum { SECOND = 32, LAST = 48, SCALE = 52, BYTES = 54 };
    (void)importance, (void)fits;
    for (size_t at = 0; at < n; at += HEFT_SUPER_BLOCK, out += BYTES) {
        float scale = greatest_magnitude(row + at, HEFT_SUPER_BLOCK);
        float inverse = heft_reciprocal(scale);
        put_digits(out, row + at, SECOND, 5, inverse);
        put_digits(out + SECOND, row + at + 5 * SECOND, LAST - SECOND, 5, inverse);
        put_digits(out + LAST, row + at + 5 * LAST, SCALE - LAST, 4, inverse);
        heft_put_half(out + SCALE, scale);
    }
}
