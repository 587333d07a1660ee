/* test_float_loops.c - compares the loops of `heft stats` for each instruction set that the
 * processor has with the baseline of the compiler, bit by bit. */
#include "../cli/float_sets.h"

#include <string.h>

#include "heft_test.h"

static float values[FLOAT_BLOCK];

/* Fill with finite numbers of many exponents, some zero or equal. */
static void fill(uint32_t seed)
{
    uint32_t r = seed;
    for (size_t i = 0; i < FLOAT_BLOCK; i++) {
        r = r * 1664525 + 1013904223;
        uint32_t bits = r % 7 ? (r & 0x80FFFFFF) | (0x30 + (r >> 24 & 31)) << 23 : r & 1u << 31;
        memcpy(&values[i], &bits, sizeof bits);
    }
}

static void assert_same(const float_loops *a, const float_loops *b, size_t n)
{
    float_block x = a->block_of(values, n), y = b->block_of(values, n);
    assert_true(x.is_finite == y.is_finite);
    if (!x.is_finite)
        return;
    assert_true(x.zeros == y.zeros);
    assert_memory_equal(&x.min, &y.min, sizeof x.min);
    assert_memory_equal(&x.max, &y.max, sizeof x.max);
    assert_memory_equal(&x.sum, &y.sum, sizeof x.sum);
    double mean = x.sum / (double)n, p = a->squares(values, n, mean),
           q = b->squares(values, n, mean);
    assert_memory_equal(&p, &q, sizeof p);
    bins range = bins_between((double)x.min, (double)x.max);
    float_edges edges = float_edges_of(&range);
    uint64_t counts[2][SUMMARY_BINS] = { { 0 } };
    a->count_bins(counts[0], values, n, &edges);
    b->count_bins(counts[1], values, n, &edges);
    assert_memory_equal(counts[0], counts[1], sizeof counts[0]);
}

static void check(const float_loops *loops)
{
    for (size_t n = 1; n <= FLOAT_BLOCK; n = n < 130 ? n + 1 : 2 * n - 3) {
        fill((uint32_t)n);
        assert_same(loops, &float_loops_baseline, n);
        values[n / 2] = (float)strtod(n % 2 ? "nan" : "inf", NULL);
        assert_same(loops, &float_loops_baseline, n);
    }
}

static void sets_give_the_same_bits(void **state)
{
    (void)state;
    const float_set *s = float_sets;
    for (; s->loops != &float_loops_baseline; s++)
        if (s->is_supported())
            check(s->loops);
    check(s->loops);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(sets_give_the_same_bits) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
