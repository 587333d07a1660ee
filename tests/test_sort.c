/* test_sort.c - the stable sort, and the number of comparisons for sorted and reversed keys. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/sort.h"

typedef struct keys {
    const uint32_t *key_of;
    uint64_t *comparisons;
} keys;

static bool below(const void *ctx, uint32_t a, uint32_t b)
{
    const keys *k = ctx;
    ++*k->comparisons;
    return k->key_of[a] < k->key_of[b];
}

/* Sort 0..n by key, check order and stability; return the number of comparisons. */
static uint64_t sort_and_check(const uint32_t *key_of, uint32_t n)
{
    uint32_t *ids = malloc((n + 1) * sizeof *ids), *scratch = malloc((n + 1) * sizeof *ids);
    assert_true(ids && scratch);
    uint8_t *seen = calloc(n + 1, 1);
    assert_non_null(seen);
    for (uint32_t i = 0; i < n; i++)
        ids[i] = i;
    ids[n] = scratch[n] = 0xABCDEF01;
    uint64_t comparisons = 0;
    keys k = { key_of, &comparisons };
    heft_sort(ids, scratch, n, below, &k);
    for (uint32_t i = 0; i < n; i++) {
        assert_true(ids[i] < n && !seen[ids[i]]);
        seen[ids[i]] = 1;
        if (i)
            assert_true(key_of[ids[i - 1]] < key_of[ids[i]] ||
                        (key_of[ids[i - 1]] == key_of[ids[i]] && ids[i - 1] < ids[i]));
    }
    assert_true(ids[n] == 0xABCDEF01 && scratch[n] == 0xABCDEF01);
    free(ids);
    free(scratch);
    free(seen);
    return comparisons;
}

static void sorts_random_keys_stably(void **state)
{
    (void)state;
    static uint32_t key_of[2000];
    uint32_t x = 2463534242;
    for (uint32_t n = 0; n < 2000; n = n < 300 ? n + 1 : n + 97)
        for (uint32_t range = 1; range < 5000; range = range * 7 + 2) {
            for (uint32_t i = 0; i < n; i++) {
                x ^= x << 13;
                x ^= x >> 17;
                x ^= x << 5;
                key_of[i] = x % range;
            }
            sort_and_check(key_of, n);
        }
}

static void compares_sorted_keys_at_most_twice(void **state)
{
    (void)state;
    enum { N = 100000 };
    static uint32_t key_of[N];
    for (uint32_t i = 0; i < N; i++)
        key_of[i] = i / 3;
    assert_true(sort_and_check(key_of, N) < 2 * N);
}

static void sorts_reversed_keys_in_n_log_n_comparisons(void **state)
{
    (void)state;
    enum { N = 65536 };
    static uint32_t key_of[N];
    for (uint32_t i = 0; i < N; i++)
        key_of[i] = N - i;
    assert_true(sort_and_check(key_of, N) < UINT64_C(20) * N);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sorts_random_keys_stably),
        cmocka_unit_test(compares_sorted_keys_at_most_twice),
        cmocka_unit_test(sorts_reversed_keys_in_n_log_n_comparisons),
    };
    return cmocka_run_group_tests_name("sort", tests, NULL, NULL);
}
