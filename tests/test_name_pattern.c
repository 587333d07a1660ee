/* test_name_pattern.c - tests of the patterns by which settings name modules. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "scheme/name_pattern.h"

enum { NO, YES, WRONG };

typedef struct row {
    const char *pattern, *name;
    int result; /* result of Python's re.match() */
} row;

static const row rows[] = {
    { "", "", YES },
    { "", "a", YES },
    { "a", "", NO },
    { "lm_head", "lm_head.weight", YES },
    { "head", "lm_head", NO },
    { ".*head", "lm_head", YES },
    { "a.b", "a.b", YES },
    { "a.b", "axb", YES },
    { "a\\.b", "axb", NO },
    { "a\\.b", "a.b", YES },
    { "a$", "ab", NO },
    { "^a\\Z", "a", YES },
    { ".*layers\\.[0-2]\\.", "model.layers.2.mlp", YES },
    { ".*layers\\.[0-2]\\.", "model.layers.3.mlp", NO },
    { ".*layers\\.[^0-2]\\.", "model.layers.3.mlp", YES },
    { ".*layers\\.\\d+\\.(?:q|k)_proj$", "m.layers.31.k_proj", YES },
    { ".*layers\\.\\d+\\.(?:q|k)_proj$", "m.layers.31.v_proj", NO },
    { ".*\\.(gate|up|down)_proj", "a.down_proj", YES },
    { "(a|ab)(c|bcd)(d*)$", "abcd", YES },
    { "(a*)*$", "aaaaaaaaaaaaaaaaaaaaaaaab", NO },
    { "(a|aa)+$", "aaaaaaaaaaaaaaaaaaaaaaaaaaaab", NO },
    { "a{2}", "aa", YES },
    { "a{2}$", "aaa", NO },
    { "a{2,}$", "aaa", YES },
    { "a{1,2}$", "aaa", NO },
    { "(ab){0,1}c", "c", YES },
    { "a{,2}$", "", YES },
    { "[]a]+$", "]a", YES },
    { "[a-]+$", "-a", YES },
    { "[\\w.]+$", "a_0.", YES },
    { "[^\\d]$", "0", NO },
    { "\\D\\S\\W", "ab.", YES },
    { "a??b", "ab", YES },
    { "(?!a).*", "b", WRONG },
    { "(?P<n>a)", "a", WRONG },
    { "a\\1", "a", WRONG },
    { "\\bword", "word", WRONG },
    { "a**", "a", WRONG },
    { "*a", "a", WRONG },
    { "(a", "a", WRONG },
    { "a)", "a", WRONG },
    { "[a", "a", WRONG },
    { "[b-a]", "a", WRONG },
    { "a{3,2}", "a", WRONG },
    { "a{65}", "a", WRONG },
    { "a\\", "a", WRONG },
};

static void patterns_match_as_in_python(void **state)
{
    static heft_name_pattern p;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint64_t work = 1 << 20;
        bool is_known = heft_pattern_compile(&p, heft_str_from(rows[i].pattern));
        int got = !is_known                                                      ? WRONG
                  : heft_pattern_matches(&p, heft_str_from(rows[i].name), &work) ? YES
                                                                                 : NO;
        if (got != rows[i].result)
            print_message("# %s, %s\n", rows[i].pattern, rows[i].name);
        assert_int_equal(got, rows[i].result);
    }
}

/* A pattern takes steps, and a name bytes: neither can take more than their product. */
static void matching_ends_when_its_work_is_spent(void **state)
{
    static heft_name_pattern p;
    uint64_t work = 100;
    (void)state;
    assert_true(heft_pattern_compile(&p, heft_str_from("(a|b)*c")));
    assert_false(heft_pattern_matches(&p, heft_str_from("aaaaaaaaaaaaaaaaaaaaaaac"), &work));
    assert_int_equal(work, 0);
    work = 1 << 20;
    assert_true(heft_pattern_matches(&p, heft_str_from("aaaaaaaaaaaaaaaaaaaaaaac"), &work));
}

static void long_patterns_are_refused(void **state)
{
    static heft_name_pattern p;
    char text[HEFT_PATTERN_STEPS + 1];
    (void)state;
    memset(text, 'a', sizeof text);
    assert_false(heft_pattern_compile(&p, (heft_str){ text, sizeof text }));
    assert_true(heft_pattern_compile(&p, (heft_str){ text, sizeof text - 2 }));
    assert_false(heft_pattern_compile(&p, heft_str_from("((a{30}){30}){30}")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns_match_as_in_python),
        cmocka_unit_test(matching_ends_when_its_work_is_spent),
        cmocka_unit_test(long_patterns_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
