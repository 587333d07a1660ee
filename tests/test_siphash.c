/* test_siphash.c - SipHash-1-3, compared with tests/py/siphash_ref.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/name_hash.h"
#include "guarded.h"

static const uint64_t vectors[] = {
#include "siphash_vectors.h"
};
static const uint64_t key[2] = { UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908) };

static void hashes_agree_with_the_reference(void **state)
{
    (void)state;
    uint8_t message[64];
    for (size_t i = 0; i < sizeof message; i++)
        message[i] = (uint8_t)i;
    for (size_t len = 0; len < sizeof vectors / sizeof *vectors; len++)
        assert_true(heft_siphash13(key, message, len) == vectors[len]);
}

static void hash_does_not_depend_on_the_alignment(void **state)
{
    (void)state;
    uint8_t buf[80];
    for (size_t shift = 0; shift < 8; shift++) {
        for (size_t i = 0; i < 63; i++)
            buf[shift + i] = (uint8_t)i;
        assert_true(heft_siphash13(key, buf + shift, 63) == vectors[63]);
    }
}

static void hash_depends_on_the_key(void **state)
{
    (void)state;
    uint64_t other[2] = { key[0] ^ 1, key[1] };
    assert_true(heft_siphash13(other, "", 0) != vectors[0]);
    other[0] = key[0];
    other[1] = key[1] ^ UINT64_C(1) << 63;
    assert_true(heft_siphash13(other, "", 0) != vectors[0]);
}

static void reads_only_the_bytes_of_the_message(void **state)
{
    (void)state;
    guarded g = guarded_make();
    uint8_t message[64];
    for (size_t i = 0; i < sizeof message; i++)
        message[i] = (uint8_t)i;
    for (size_t len = 0; len < sizeof message; len++) {
        assert_true(heft_siphash13(key, guarded_first(&g, message, len), len) == vectors[len]);
        assert_true(heft_siphash13(key, guarded_last(&g, message, len), len) == vectors[len]);
    }
    guarded_free(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hashes_agree_with_the_reference),
        cmocka_unit_test(hash_does_not_depend_on_the_alignment),
        cmocka_unit_test(hash_depends_on_the_key),
        cmocka_unit_test(reads_only_the_bytes_of_the_message),
    };
    return cmocka_run_group_tests_name("siphash", tests, NULL, NULL);
}
