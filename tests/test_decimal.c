/* test_decimal.c - tests of doubles printed as decimal text. */
#include <float.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/float.h"
#include "model/values.h"

static void text_of(char out[HEFT_F64_TEXT + 1], double v)
{
    size_t n = heft_f64_text(out, v);
    assert_in_range(n, 1, HEFT_F64_TEXT - 1);
    out[n] = 0;
}

static void known_doubles_have_the_expected_text(void **state)
{
    (void)state;
    static const struct number {
        double v;
        const char *text;
    } numbers[] = {
        { 0.0, "0.0" },
        { -0.0, "-0.0" },
        { 1.0, "1.0" },
        { -2.5, "-2.5" },
        { 0.1, "0.1" },
        { 1.0 / 3, "0.3333333333333333" },
        { 100, "100.0" },
        { 123456789.125, "123456789.125" },
        { 0.0001, "0.0001" },
        { 0.00012, "0.00012" },
        { 0.00001, "1e-05" },
        { 1.5e-7, "1.5e-07" },
        { 1e15, "1000000000000000.0" },
        { 9007199254740993.0, "9007199254740992.0" },
        { 1e16, "1e+16" },
        { 1e22, "1e+22" },
        { 1e23, "1e+23" },
        { 1.2345678901234567e+100, "1.2345678901234567e+100" },
        { 5e-324, "5e-324" },
        { DBL_MIN, "2.2250738585072014e-308" },
        { DBL_MAX, "1.7976931348623157e+308" },
        { -DBL_MAX, "-1.7976931348623157e+308" },
    };
    char text[HEFT_F64_TEXT + 1];
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        text_of(text, numbers[i].v);
        assert_string_equal(text, numbers[i].text);
    }
    text_of(text, heft_f64_of(0x7FF0000000000000));
    assert_string_equal(text, "inf");
    text_of(text, heft_f64_of(0xFFF0000000000000));
    assert_string_equal(text, "-inf");
    text_of(text, heft_f64_of(0xFFF8000000000000));
    assert_string_equal(text, "nan");
}

static size_t count_digits(const char *text)
{
    size_t n = 0, zeros = 0;
    for (; *text && *text != 'e'; text++) {
        if (*text == '0' && n)
            zeros++;
        else if (*text > '0')
            n += zeros + 1, zeros = 0;
    }
    return n;
}

/* Assert that strtod() restores the value, and that one digit less does not suffice. */
static void assert_shortest(double v)
{
    char text[HEFT_F64_TEXT + 1], shorter[64];
    text_of(text, v);
    assert_true(heft_f64_bits(strtod(text, NULL)) == heft_f64_bits(v));
    size_t n = count_digits(text);
    assert_in_range(n, 1, 17);
    if (n == 1)
        return;
    snprintf(shorter, sizeof shorter, "%.*e", (int)n - 2, v);
    if (strtod(shorter, NULL) == v)
        fail_msg("%s is not the shortest: %s", text, shorter);
}

static void the_text_is_the_shortest_that_round_trips(void **state)
{
    (void)state;
    uint64_t bits = 0x0123456789ABCDEF;
    for (int i = 0; i < 20000; i++) {
        bits = bits * 6364136223846793005 + 1442695040888963407;
        uint64_t number = bits ^ bits >> 29;
        if ((number >> 52 & 0x7FF) != 0x7FF)
            assert_shortest(heft_f64_of(number));
        assert_shortest((double)(number >> 40) / 1000 + 0.001);
    }
    /* The two neighbours of a power of two differ in distance. */
    for (uint64_t exp = 0; exp < 0x7FF; exp++) {
        assert_shortest(heft_f64_of(exp << 52 | !exp));
        assert_shortest(heft_f64_of(exp << 52 | 1));
        assert_shortest(heft_f64_of(exp << 52 | 0xFFFFFFFFFFFFF));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_doubles_have_the_expected_text),
        cmocka_unit_test(the_text_is_the_shortest_that_round_trips),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
