/* test_crc.c - tests of CRC-32 and CRC-32C against known values and bitwise polynomial division. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/crc.h"

typedef struct kind {
    uint32_t polynomial;
    uint32_t (*add)(uint32_t crc, const void *data, size_t len);
    uint32_t (*join)(uint32_t a, uint32_t b, uint64_t b_len);
    uint32_t crc_of_digits; /* CRC of "123456789" */
} kind;

static const kind kinds[] = {
    { 0xEDB88320, heft_crc32, heft_crc32_join, 0xCBF43926 },
    { 0x82F63B78, heft_crc32c, heft_crc32c_join, 0xE3069283 },
};
enum { KINDS = sizeof kinds / sizeof *kinds, SIZE = 1000 };

static uint8_t data[SIZE];

static int fill_data(void **state)
{
    (void)state;
    uint32_t x = 2463534242;
    for (size_t i = 0; i < SIZE; i++) {
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        data[i] = (uint8_t)x;
    }
    return 0;
}

static uint32_t bitwise_crc(uint32_t polynomial, const uint8_t *p, size_t len)
{
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < len; i++)
        for (unsigned b = 0; b < 8; b++) {
            uint32_t bit = (crc ^ (uint32_t)p[i] >> b) & 1;
            crc = crc >> 1 ^ (bit ? polynomial : 0);
        }
    return ~crc;
}

static void known_values_are_computed(void **state)
{
    (void)state;
    for (size_t k = 0; k < KINDS; k++) {
        assert_int_equal(kinds[k].add(0, "123456789", 9), kinds[k].crc_of_digits);
        assert_int_equal(kinds[k].add(0, NULL, 0), 0);
    }
    uint8_t zeros[32] = { 0 };
    assert_int_equal(heft_crc32c(0, zeros, 32), 0x8A9136AA); /* RFC 3720 B.4 */
}

static void every_length_agrees_with_division(void **state)
{
    (void)state;
    for (size_t k = 0; k < KINDS; k++)
        for (size_t len = 0; len < 300; len++)
            for (size_t at = 0; at < 9; at++)
                assert_int_equal(kinds[k].add(0, data + at, len),
                                 bitwise_crc(kinds[k].polynomial, data + at, len));
}

static void a_crc_can_be_continued(void **state)
{
    (void)state;
    for (size_t k = 0; k < KINDS; k++)
        for (size_t cut = 0; cut <= SIZE; cut++) {
            uint32_t first = kinds[k].add(0, data, cut);
            assert_int_equal(kinds[k].add(first, data + cut, SIZE - cut),
                             bitwise_crc(kinds[k].polynomial, data, SIZE));
        }
}

static void crcs_of_two_ranges_can_be_joined(void **state)
{
    (void)state;
    for (size_t k = 0; k < KINDS; k++)
        for (size_t cut = 0; cut <= SIZE; cut++) {
            uint32_t a = kinds[k].add(0, data, cut);
            uint32_t b = kinds[k].add(0, data + cut, SIZE - cut);
            assert_int_equal(kinds[k].join(a, b, SIZE - cut),
                             bitwise_crc(kinds[k].polynomial, data, SIZE));
        }
}

/* Join the CRC of 2^n zeros, computed by doubling, in one step and in two. */
static void crcs_of_very_long_ranges_can_be_joined(void **state)
{
    (void)state;
    for (size_t k = 0; k < KINDS; k++) {
        uint32_t a = kinds[k].crc_of_digits, zeros = kinds[k].add(0, "", 1);
        for (unsigned n = 0; n < 63; n++) {
            uint64_t len = UINT64_C(1) << n;
            uint32_t twice = kinds[k].join(zeros, zeros, len);
            assert_int_equal(kinds[k].join(a, twice, 2 * len),
                             kinds[k].join(kinds[k].join(a, zeros, len), zeros, len));
            zeros = twice;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_values_are_computed),
        cmocka_unit_test(every_length_agrees_with_division),
        cmocka_unit_test(a_crc_can_be_continued),
        cmocka_unit_test(crcs_of_two_ranges_can_be_joined),
        cmocka_unit_test(crcs_of_very_long_ranges_can_be_joined),
    };
    return cmocka_run_group_tests_name("crc", tests, fill_data, NULL);
}
