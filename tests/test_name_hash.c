/* test_name_hash.c - the hash of names: values of tests/py/keyed_ref.py, and distribution. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/name_hash.h"

static const uint32_t vectors[] = {
#include "name_hash_vectors.h"
};

enum { LENGTHS = sizeof vectors / sizeof *vectors };

static heft_name_hash make_key(uint64_t low, uint64_t high)
{
    heft_name_hash key;
    heft_name_hash_init(&key, (uint64_t[2]){ low, high });
    return key;
}

static heft_name_hash test_key(void)
{
    return make_key(UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908));
}

static void hashes_agree_with_the_reference(void **state)
{
    heft_name_hash key = test_key();
    uint8_t buf[LENGTHS + 8];
    (void)state;
    for (size_t shift = 0; shift < 8; shift++) {
        for (size_t i = 0; i < LENGTHS; i++)
            buf[shift + i] = (uint8_t)i;
        for (size_t len = 0; len < LENGTHS; len++)
            assert_int_equal(heft_name_hash_of(&key, buf + shift, len), vectors[len]);
    }
}

/* Allocates exactly len bytes, so that a sanitizer finds reads beyond the end. */
static void hash_depends_on_every_byte_and_the_length(void **state)
{
    heft_name_hash key = test_key();
    (void)state;
    for (size_t len = 1; len < LENGTHS; len++) {
        uint8_t *p = calloc(len, 1);
        assert_non_null(p);
        uint32_t zeros = heft_name_hash_of(&key, p, len);
        assert_true(zeros != heft_name_hash_of(&key, p, len - 1));
        for (size_t i = 0; i < len; i++) {
            p[i] = 1;
            assert_true(zeros != heft_name_hash_of(&key, p, len));
            p[i] = 0;
        }
        free(p);
    }
}

static void hash_depends_on_the_key(void **state)
{
    static const char *const names[] = { "short", "neither short nor long" };
    heft_name_hash key = make_key(1, 2), low = make_key(0, 2),
                   high = make_key(1, UINT64_C(1) << 63);
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        uint32_t hash = heft_name_hash_of(&key, names[i], strlen(names[i]));
        assert_true(hash != heft_name_hash_of(&low, names[i], strlen(names[i])));
        assert_true(hash != heft_name_hash_of(&high, names[i], strlen(names[i])));
    }
}

/* Return the number of collisions in a table with linear probing, half full. */
static uint32_t count_collisions(const heft_name_hash *key, const char *pattern)
{
    enum { SLOTS = 1 << 16 };
    static uint8_t taken[SLOTS];
    uint32_t n = 0;
    memset(taken, 0, sizeof taken);
    for (int i = 0; i < SLOTS / 2; i++) {
        char name[64];
        int len = snprintf(name, sizeof name, pattern, i / 100, i % 100);
        uint32_t at = heft_name_hash_of(key, name, (size_t)len) % SLOTS;
        for (; taken[at]; at = (at + 1) % SLOTS)
            n++;
        taken[at] = 1;
    }
    return n;
}

/* Numbered names collide as often as random names, with any key: half a probe for each name. */
static void numbered_names_do_not_cluster(void **state)
{
    static const char *const patterns[] = { "tensor.%06d%02d", "layers.%d.mlp.experts.%d.weight",
                                            "%08x%08x", "a.%d.b.%d.and.so.on.and.on.and.on" };
    (void)state;
    for (uint64_t k = 0; k < 20; k++)
        for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
            heft_name_hash key = make_key(k, k * k);
            assert_in_range(count_collisions(&key, patterns[i]), 32768 / 5 * 2, 32768 / 5 * 3);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hashes_agree_with_the_reference),
        cmocka_unit_test(hash_depends_on_every_byte_and_the_length),
        cmocka_unit_test(hash_depends_on_the_key),
        cmocka_unit_test(numbered_names_do_not_cluster),
    };
    return cmocka_run_group_tests_name("name_hash", tests, NULL, NULL);
}
