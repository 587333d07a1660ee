/* test_sort.c - sorted, stable, and cheap on what is in order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/sort.h"

typedef struct keys {
    const uint32_t *of; /* the key of each number */
    uint64_t *comparisons;
} keys;

static bool below(const void *ctx, uint32_t a, uint32_t b)
{
    const keys *k = ctx;
    ++*k->comparisons;
    return k->of[a] < k->of[b];
}

/* Sorts 0..n by their keys, checks the order and that equals stay; returns the comparisons. */
static uint64_t sort_and_check(const uint32_t *of, uint32_t n)
{
    uint32_t *ids = malloc((n + 1) * sizeof *ids), *scratch = malloc((n + 1) * sizeof *ids);
    assert_true(ids && scratch);
    uint8_t *seen = calloc(n + 1, 1);
    assert_non_null(seen);
    for (uint32_t i = 0; i < n; i++)
        ids[i] = i;
    ids[n] = scratch[n] = 0xABCDEF01;
    uint64_t comparisons = 0;
    keys k = { of, &comparisons };
    heft_sort(ids, scratch, n, below, &k);
    for (uint32_t i = 0; i < n; i++) {
        assert_true(ids[i] < n && !seen[ids[i]]);
        seen[ids[i]] = 1;
        if (i)
            assert_true(of[ids[i - 1]] < of[ids[i]] ||
                        (of[ids[i - 1]] == of[ids[i]] && ids[i - 1] < ids[i]));
    }
    assert_true(ids[n] == 0xABCDEF01 && scratch[n] == 0xABCDEF01);
    free(ids);
    free(scratch);
    free(seen);
    return comparisons;
}

static void random_keys_of_every_length_are_sorted(void **state)
{
    (void)state;
    static uint32_t of[2000];
    uint32_t x = 2463534242;
    for (uint32_t n = 0; n < 2000; n = n < 300 ? n + 1 : n + 97)
        for (uint32_t range = 1; range < 5000; range = range * 7 + 2) {
            for (uint32_t i = 0; i < n; i++) {
                x ^= x << 13;
                x ^= x >> 17;
                x ^= x << 5;
                of[i] = x % range;
            }
            sort_and_check(of, n);
        }
}

static void ordered_keys_are_looked_at_twice_at_most(void **state)
{
    (void)state;
    enum { N = 100000 };
    static uint32_t of[N];
    for (uint32_t i = 0; i < N; i++)
        of[i] = i / 3;
    assert_true(sort_and_check(of, N) < 2 * N);
}

static void reversed_keys_are_no_worse_than_any(void **state)
{
    (void)state;
    enum { N = 65536 };
    static uint32_t of[N];
    for (uint32_t i = 0; i < N; i++)
        of[i] = N - i;
    assert_true(sort_and_check(of, N) < UINT64_C(20) * N);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_keys_of_every_length_are_sorted),
        cmocka_unit_test(ordered_keys_are_looked_at_twice_at_most),
        cmocka_unit_test(reversed_keys_are_no_worse_than_any),
    };
    return cmocka_run_group_tests_name("sort", tests, NULL, NULL);
}
