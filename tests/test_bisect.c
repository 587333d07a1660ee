/* test_bisect.c - tests of binary search with runs of equal numbers and in sublists. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/bisect.h"

enum { MAX_LENGTH = 40 };

/* Return element i of the sequence 1, 1, 1, 3, 3, 3, 5, 5, 5, ... */
static uint32_t number_at(uint32_t i)
{
    return i / 3 * 2 + 1;
}

static uint32_t lower_bound(uint32_t first, uint32_t end, uint32_t sought)
{
    heft_bisect b = { .first = first, .end = end };
    while (heft_bisect_next(&b)) {
        assert_in_range(b.mid, first, end - 1);
        heft_bisect_narrow(&b, number_at(b.mid) < sought);
    }
    return b.first;
}

static void the_lower_bound_is_found(void **state)
{
    (void)state;
    for (uint32_t end = 0; end < MAX_LENGTH; end++)
        for (uint32_t first = 0; first <= end; first++)
            for (uint32_t sought = 0; sought < MAX_LENGTH; sought++) {
                uint32_t at = first;
                while (at < end && number_at(at) < sought)
                    at++;
                assert_int_equal(lower_bound(first, end, sought), at);
            }
}

static void a_search_takes_at_most_32_steps(void **state)
{
    (void)state;
    heft_bisect b = { .end = UINT32_MAX };
    uint32_t steps = 0;
    for (; heft_bisect_next(&b); steps++)
        heft_bisect_narrow(&b, true);
    assert_true(b.first == UINT32_MAX);
    assert_in_range(steps, 1, 32);
}

static void empty_and_reversed_ranges_take_no_step(void **state)
{
    (void)state;
    assert_int_equal(lower_bound(7, 7, 0), 7);
    heft_bisect b = { .first = 1, .end = 0 };
    assert_false(heft_bisect_next(&b));
    assert_int_equal(b.first, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_lower_bound_is_found),
        cmocka_unit_test(a_search_takes_at_most_32_steps),
        cmocka_unit_test(empty_and_reversed_ranges_take_no_step),
    };
    return cmocka_run_group_tests_name("bisect", tests, NULL, NULL);
}
