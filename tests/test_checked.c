/* test_checked.c - tests of overflow-checked arithmetic, against the compiler's built-in checks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/checked_math.h"
#include "base/compiler.h"

static uint64_t next_random(uint64_t *x)
{
    *x ^= *x << 13;
    *x ^= *x >> 7;
    *x ^= *x << 17;
    return *x;
}

static void check_pair(uint64_t a, uint64_t b)
{
    uint64_t got, expected;
    bool fits = heft_mul(&got, a, b);
    if (fits == __builtin_mul_overflow(a, b, &expected) || (fits && got != expected))
        fail_msg("%#llx times %#llx", (unsigned long long)a, (unsigned long long)b);
    fits = heft_add(&got, a, b);
    if (fits == __builtin_add_overflow(a, b, &expected) || (fits && got != expected))
        fail_msg("%#llx plus %#llx", (unsigned long long)a, (unsigned long long)b);
}

static void products_and_sums_agree_with_the_compiler(void **state)
{
    (void)state;
    uint64_t x = 88172645463325252u;
    for (int i = 0; i < 5000000; i++) {
        uint64_t a = next_random(&x), b = next_random(&x);
        check_pair(a >> (b & 63), b >> (a & 63));
    }
}

static void products_and_sums_agree_around_powers_of_two(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 64; i++)
        for (unsigned k = 0; k < 64; k++)
            for (unsigned d = 0; d < 9; d++)
                check_pair((UINT64_C(1) << i) + d % 3 - 1, (UINT64_C(1) << k) + d / 3 - 1);
}

static void quotients_agree_with_the_compiler(void **state)
{
    (void)state;
    uint64_t x = 88172645463325252u;
    for (int i = 0; i < 1000000; i++) {
        uint64_t a = next_random(&x), b = next_random(&x), divisor = (b >> (a & 63)) | (a >> 63);
        a >>= b & 63;
        if (divisor && heft_div(a, divisor) != a / divisor)
            fail_msg("%#llx / %#llx", (unsigned long long)a, (unsigned long long)divisor);
    }
    assert_true(heft_div(UINT64_MAX, UINT64_MAX) == 1 && heft_div(UINT64_MAX, 1) == UINT64_MAX);
    assert_true(heft_div(UINT64_MAX - 1, UINT64_MAX) == 0 && heft_div(0, UINT64_MAX) == 0);
}

static void alignment_rounds_up_or_reports_overflow(void **state)
{
    (void)state;
    uint64_t out;
    assert_true(heft_align_up(&out, 0, 64) && out == 0);
    assert_true(heft_align_up(&out, 1, 64) && out == 64);
    assert_true(heft_align_up(&out, 64, 64) && out == 64);
    assert_true(heft_align_up(&out, 65, 1) && out == 65);
    assert_true(heft_align_up(&out, UINT64_MAX - 63, 64) && out == UINT64_MAX - 63);
    assert_false(heft_align_up(&out, UINT64_MAX - 62, 64));
    assert_false(heft_align_up(&out, UINT64_MAX, 2));
}

static void range_checks_do_not_overflow(void **state)
{
    (void)state;
    assert_true(heft_range_in((heft_range){ 0, 10 }, 10));
    assert_true(heft_range_in((heft_range){ 10, 0 }, 10));
    assert_false(heft_range_in((heft_range){ 11, 0 }, 10));
    assert_false(heft_range_in((heft_range){ 1, 10 }, 10));
    assert_false(heft_range_in((heft_range){ 5, UINT64_MAX }, 10));
    assert_false(heft_range_in((heft_range){ UINT64_MAX, 2 }, 10));
}

static void a_product_with_a_zero_never_overflows(void **state)
{
    (void)state;
    uint64_t out;
    assert_true(heft_product(&out, NULL, 0) && out == 1);
    assert_true(heft_product(&out, (const uint64_t[]){ 2, 3, 7 }, 3) && out == 42);
    assert_true(heft_product(&out, (const uint64_t[]){ UINT64_MAX, UINT64_MAX, 0 }, 3) && !out);
    assert_true(heft_product(&out, (const uint64_t[]){ UINT64_MAX, 1 }, 2) && out == UINT64_MAX);
    assert_false(heft_product(&out, (const uint64_t[]){ UINT64_MAX, 2 }, 2));
    assert_false(heft_product(&out, (const uint64_t[]){ UINT32_MAX, UINT32_MAX, 2, 1 }, 4));
}

static void an_atomic_sum_stops_at_the_largest_number(void **state)
{
    (void)state;
    size_t sum = 5;
    heft_atomic_add(&sum, 0);
    assert_true(sum == 5);
    heft_atomic_add(&sum, SIZE_MAX - 5);
    assert_true(sum == SIZE_MAX);
    heft_atomic_add(&sum, 0);
    assert_true(sum == SIZE_MAX);
    heft_atomic_add(&sum, 1);
    assert_true(sum == SIZE_MAX);
    uint32_t slot = 0;
    assert_true(heft_atomic_set_if_zero(&slot, 7));
    assert_false(heft_atomic_set_if_zero(&slot, 8));
    assert_int_equal(heft_atomic_load(&slot), 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_and_sums_agree_with_the_compiler),
        cmocka_unit_test(products_and_sums_agree_around_powers_of_two),
        cmocka_unit_test(quotients_agree_with_the_compiler),
        cmocka_unit_test(alignment_rounds_up_or_reports_overflow),
        cmocka_unit_test(range_checks_do_not_overflow),
        cmocka_unit_test(a_product_with_a_zero_never_overflows),
        cmocka_unit_test(an_atomic_sum_stops_at_the_largest_number),
    };
    return cmocka_run_group_tests_name("checked", tests, NULL, NULL);
}
