/* test_float_loops.c - compares the loops of floats.c for each instruction set that the
 * processor has with the baseline of the compiler, bit by bit. */
#include "simd/float_loops.h"

#include <math.h>
#include <string.h>

#include "../cli/values/bins.h"
#include "heft_test.h"
#include "simd/simd.h"

enum { VALUES = 4096 };

static float values[VALUES];

/* Fill with finite numbers of many exponents, some zero or equal. */
static void fill(uint32_t seed)
{
    uint32_t r = seed;
    for (size_t i = 0; i < VALUES; i++) {
        r = r * 1664525 + 1013904223;
        uint32_t bits = r % 7 ? (r & 0x80FFFFFF) | (0x30 + (r >> 24 & 31)) << 23 : r & 1u << 31;
        memcpy(&values[i], &bits, sizeof bits);
    }
}

static void assert_same(const heft_float_functions *a, const heft_float_functions *b, size_t n)
{
    heft_f32_summary x = a->summarize(values, n), y = b->summarize(values, n);
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
    bins range = bins_between((double)x.min, (double)x.max, SUMMARY_BINS);
    heft_f32_edges edges = float_edges_of(&range);
    uint64_t counts[2][SUMMARY_BINS] = { { 0 } };
    a->count(counts[0], values, n, &edges);
    b->count(counts[1], values, n, &edges);
    assert_memory_equal(counts[0], counts[1], sizeof counts[0]);
}

static void check(const heft_float_functions *loops)
{
    for (size_t n = 1; n <= VALUES; n = n < 130 ? n + 1 : 2 * n - 3) {
        fill((uint32_t)n);
        assert_same(loops, &heft_float_loops, n);
        values[n / 2] = (float)strtod(n % 2 ? "nan" : "inf", NULL);
        assert_same(loops, &heft_float_loops, n);
    }
}

static void sets_give_the_same_bits(void **state)
{
    (void)state;
    const heft_simd_set *s = heft_simd_sets;
    for (; s->kernels != &heft_portable_kernels; s++)
        if (s->is_supported())
            check(s->kernels->floats);
    check(&heft_float_loops);
}

/* The public functions, with values of which the results are known. */
static void summaries_are_exact(void **state)
{
    static const float v[] = { 3, -1, 0, 4, -0.0F, 1, 2, 7 };
    static const float with_nan[] = { 1, NAN, 2 };
    heft_f32_edges edges = { { -1, 0, 1, 2, 3, 4, 5, 6, 7 } };
    uint64_t counts[HEFT_F32_BINS] = { 10 };
    static const uint64_t expected[HEFT_F32_BINS] = { 11, 2, 1, 1, 1, 1, 0, 0 };
    (void)state;
    heft_f32_summary s = heft_f32_summarize(v, HEFT_COUNT(v));
    assert_true(s.is_finite && s.zeros == 2);
    assert_true(s.min == -1 && s.max == 7 && s.sum == 16);
    assert_true(heft_f32_squares(v, HEFT_COUNT(v), 2) == 48);
    assert_false(heft_f32_summarize(with_nan, HEFT_COUNT(with_nan)).is_finite);
    heft_f32_count(counts, v, HEFT_COUNT(v), &edges);
    heft_f32_count(counts, with_nan + 1, 1, &edges);
    assert_memory_equal(counts, expected, sizeof counts);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(sets_give_the_same_bits),
                                        cmocka_unit_test(summaries_are_exact) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
