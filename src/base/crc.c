/* crc.c - CRC-32 and CRC-32C, eight bytes at a time; CRCs are joined by multiplication in GF(2)[x].
 *
 * Polynomials are bit-reversed: the highest bit of a number is the coefficient of x^0.
 */
#include "base/crc.h"

#include "base/compiler.h"
#include "base/crc_tables.h"

enum { STEP = CRC_SLICES };

static const uint32_t ieee = 0xEDB88320, castagnoli = 0x82F63B78;

/* Extend a CRC by half bytes.  The table has the CRC of each half byte, with four shifts. */
static uint32_t update_small(const uint32_t table[16], uint32_t crc, const uint8_t *p, size_t len)
{
    crc = ~crc;
    for (; len; p++, len--) {
        crc = crc >> 4 ^ table[(crc ^ *p) & 15];
        crc = crc >> 4 ^ table[(crc ^ *p >> 4) & 15];
    }
    return ~crc;
}

static uint32_t update(const uint32_t tables[CRC_SLICES][256], uint32_t crc, const uint8_t *p,
                       size_t len)
{
    crc = ~crc;
    for (; len >= STEP; p += STEP, len -= STEP) {
        uint32_t a = heft_le32(p) ^ crc, b = heft_le32(p + 4);
        crc = tables[7][a & 0xFF] ^ tables[6][a >> 8 & 0xFF] ^ tables[5][a >> 16 & 0xFF] ^
              tables[4][a >> 24] ^ tables[3][b & 0xFF] ^ tables[2][b >> 8 & 0xFF] ^
              tables[1][b >> 16 & 0xFF] ^ tables[0][b >> 24];
    }
    for (; len; p++, len--)
        crc = crc >> 8 ^ tables[0][(crc ^ *p) & 0xFF];
    return ~crc;
}

/* Multiply two polynomials modulo `polynomial`. */
static uint32_t multiply(uint32_t polynomial, uint32_t a, uint32_t b)
{
    uint32_t product = 0;
    for (; a; a <<= 1) {
        if (a >> 31)
            product ^= b;
        b = b >> 1 ^ (b & 1 ? polynomial : 0);
    }
    return product;
}

/* Appending b_len zero bytes multiplies CRC a by x^(8 b_len); the initial and final inversions
 * cancel. */
static uint32_t join(uint32_t polynomial, uint32_t a, uint32_t b, uint64_t b_len)
{
    uint32_t power = UINT32_C(1) << 23; /* x^8 */
    for (; b_len; b_len >>= 1) {
        if (b_len & 1)
            a = multiply(polynomial, a, power);
        power = multiply(polynomial, power, power);
    }
    return a ^ b;
}

uint32_t heft_crc32(uint32_t crc, const void *data, size_t len)
{
    return HEFT_IS_SMALL ? update_small(ieee_halves, crc, data, len)
                         : update(ieee_tables, crc, data, len);
}

uint32_t heft_crc32c(uint32_t crc, const void *data, size_t len)
{
    return HEFT_IS_SMALL ? update_small(castagnoli_halves, crc, data, len)
                         : update(castagnoli_tables, crc, data, len);
}

uint32_t heft_crc32_join(uint32_t a, uint32_t b, uint64_t b_len)
{
    return join(ieee, a, b, b_len);
}

uint32_t heft_crc32c_join(uint32_t a, uint32_t b, uint64_t b_len)
{
    return join(castagnoli, a, b, b_len);
}
