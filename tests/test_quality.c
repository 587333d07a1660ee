/* Sums over pairs of numbers: exact between runs, so that their order changes nothing. */
#include "model/quality.h"

#include "heft_test.h"
#include "model/float.h"

enum { RUN = 77, RUNS = 9 };

/* Fill numbers of all magnitudes that f32 has. */
static void fill(float *a, float *b, size_t n)
{
    uint32_t state = 1;
    for (size_t i = 0; i < 2 * n; i++) {
        state = state * 1664525 + 1013904223;
        uint32_t exponent = (state >> 16) % 255;
        (i < n ? a : b)[i % n] = heft_f32_of((state & 0x80000000) | exponent << 23 | state >> 9);
    }
}

static void sums_do_not_depend_on_the_order(void **state)
{
    float a[RUN * RUNS], b[RUN * RUNS];
    heft_pair_sums forth = { .pairs = 0 }, back = { .pairs = 0 }, joined = { .pairs = 0 };
    (void)state;
    fill(a, b, RUN * RUNS);
    for (size_t i = 0; i < RUNS; i++) {
        size_t k = RUNS - 1 - i;
        heft_pair_sums one = { .pairs = 0 };
        heft_pairs_add(&forth, a + i * RUN, b + i * RUN, RUN);
        heft_pairs_add(&back, a + k * RUN, b + k * RUN, RUN);
        heft_pairs_add(&one, a + k * RUN, b + k * RUN, RUN);
        heft_pairs_join(&joined, &one);
    }
    heft_pair_sums all[2] = { { .pairs = 0 }, { .pairs = 0 } };
    heft_pairs_join(&all[0], &forth);
    heft_pairs_join(&all[1], &back);
    assert_memory_equal(&all[0], &all[1], sizeof all[0]);
    assert_memory_equal(&all[0], &joined, sizeof joined);
}

static void digits_that_a_double_would_lose_stay(void **state)
{
    const float large = 0x1p100F, small = 0x1p-100F, zero = 0;
    heft_pair_sums s = { .pairs = 0 };
    (void)state;
    heft_pairs_add(&s, &large, &large, 1);
    heft_pairs_add(&s, &small, &small, 1);
    const float minus = -large;
    heft_pairs_add(&s, &large, &minus, 1);
    heft_pairs_join(&s, &(heft_pair_sums){ .pairs = 0 });
    assert_true(heft_exact_sum_value(&s.products) == 0x1p-200);
    assert_true(heft_exact_sum_value(&s.squared) == 0x1p202);
    heft_pairs_add(&s, &small, &zero, 1);
    assert_true(s.finite == 4 && s.max_abs == 0x1p101 && s.differing == 2);
}

static void limits_of_f32_have_room(void **state)
{
    enum { MANY = 1 << 17 };
    const float most = 0x1.fffffep127F, least = 0x1p-149F, minus = -0x1.fffffep127F;
    heft_pair_sums large = { .pairs = 0 }, small = { .pairs = 0 };
    (void)state;
    for (int i = 0; i < MANY; i++)
        heft_pairs_add(&large, &most, &minus, 1);
    heft_pairs_add(&small, &least, &minus, 0);
    heft_pairs_add(&small, &least, &least, 1);
    heft_pairs_join(&large, &(heft_pair_sums){ .pairs = 0 });
    double square = (double)most * (double)most;
    assert_true(heft_exact_sum_value(&large.products) == -square * MANY);
    assert_true(heft_exact_sum_value(&large.squared) == 4 * square * MANY);
    assert_true(heft_exact_sum_value(&small.source) == 0x1p-298);
}

static void nan_and_infinities_are_left_out(void **state)
{
    float inf = heft_f32_of(0x7F800000), nan = heft_f32_of(0x7FC00000);
    const float a[] = { 1, nan, inf, inf, 2 }, b[] = { 1.5F, 1, inf, 3, nan };
    heft_pair_sums s = { .pairs = 0 };
    (void)state;
    heft_pairs_add(&s, a, b, 3);
    assert_true(s.pairs == 3 && s.finite == 1 && s.max_abs == 0.5);
    assert_true(heft_exact_sum_value(&s.squared) == 0.25);
    heft_pairs_add(&s, a + 3, b + 3, 2);
    assert_true(s.pairs == 5 && s.finite == 1 && s.max_abs == (double)inf);
    assert_true(s.differing == 4);
    heft_pairs_add(&s, &nan, &nan, 1);
    assert_true(s.differing == 4 && s.pairs == 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_do_not_depend_on_the_order),
        cmocka_unit_test(digits_that_a_double_would_lose_stay),
        cmocka_unit_test(limits_of_f32_have_room),
        cmocka_unit_test(nan_and_infinities_are_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
