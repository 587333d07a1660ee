/* test_error.c - error messages: formatting directives, quoted names, truncation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/text.h"

static void formats_every_directive(void **state)
{
    (void)state;
    heft_error e;
    heft_status st = heft_error_set(&e, HEFT_E_LIMIT, 77, "%s %q %U %D %D %X 100%%", "text",
                                    heft_lit("wte"), UINT64_MAX, INT64_MIN, (int64_t)7,
                                    UINT64_C(0xDEADBEEF01));
    assert_int_equal(st, HEFT_E_LIMIT);
    assert_int_equal(e.status, HEFT_E_LIMIT);
    assert_int_equal(e.os, 0);
    assert_int_equal(e.offset, 77);
    assert_string_equal(e.message, "text 'wte' 18446744073709551615 -9223372036854775808 7 "
                                   "deadbeef01 100%");
}

static void plain_error_has_no_offset(void **state)
{
    (void)state;
    heft_error e;
    assert_int_equal(heft_error_plain(&e, HEFT_E_ARGUMENT, "%X", UINT64_C(0)), HEFT_E_ARGUMENT);
    assert_int_equal(e.offset, HEFT_NOWHERE);
    assert_string_equal(e.message, "0");
}

static void returns_the_status_without_an_error_object(void **state)
{
    (void)state;
    assert_int_equal(heft_error_set(NULL, HEFT_E_IO, 1, "%s", "x"), HEFT_E_IO);
    assert_int_equal(heft_error_plain(NULL, HEFT_E_NOMEM, "x"), HEFT_E_NOMEM);
}

static void quotes_escapes_and_truncates_names(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        size_t len;
        const char *quoted;
    } rows[] = {
        { "", 0, "''" },
        { "a\nb\x7f", 4, "'a\\x0ab\\x7f'" },
        { "a\0b", 3, "'a\\x00b'" },
        { "it's \\ é 😀", 14, "'it\\'s \\\\ é 😀'" },
        { "\xC2\x85", 2, "'\\xc2\\x85'" },
        { "\xFFx\xE2\x82", 4, "'\\xffx\\xe2\\x82'" },
        { "123456789012345678901234567890123456789012345678901234567890", 60,
          "'123456789012345678901234567890123456789012345678901234567890'" },
        { "1234567890123456789012345678901234567890123456789012345678901", 61,
          "'123456789012345678901234567890123456789012345678901234567890…'" },
        { "12345678901234567890123456789012345678901234567890123456789é", 61,
          "'12345678901234567890123456789012345678901234567890123456789…'" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        heft_error e;
        heft_error_plain(&e, HEFT_E_FORMAT, "%q", (heft_str){ rows[i].name, rows[i].len });
        assert_string_equal(e.message, rows[i].quoted);
    }
}

static void truncates_between_utf8_characters(void **state)
{
    (void)state;
    char text[600];
    for (size_t prefix_bytes = 0; prefix_bytes < 5; prefix_bytes++) {
        memset(text, 'x', prefix_bytes);
        for (size_t i = prefix_bytes; i + 4 < sizeof text; i += 3)
            memcpy(text + i, "€", 4);
        heft_error e;
        memset(&e, 'z', sizeof e);
        heft_error_plain(&e, HEFT_E_FORMAT, "%s and more", text);
        size_t len = strlen(e.message);
        assert_true(len >= 237 && len <= 239);
        assert_int_equal((len - prefix_bytes) % 3, 0);
        assert_int_equal(heft_utf8_valid(e.message, len), len);
        heft_error_plain(&e, HEFT_E_FORMAT, text);
        assert_int_equal(strlen(e.message), len);
    }
}

static void formats_nothing_after_truncation(void **state)
{
    (void)state;
    char text[239];
    memset(text, 'x', 238);
    text[238] = '\0';
    heft_error e;
    heft_error_plain(&e, HEFT_E_FORMAT, "%s%U!", text, UINT64_C(12));
    assert_string_equal(e.message, text);
}

static void sets_an_error_for_a_failure_without_a_message(void **state)
{
    heft_error own, given, *e;
    (void)state;
    memset(&given, 0xA5, sizeof given);
    assert_ptr_equal(heft_error_begin(NULL, &own), &own);
    e = heft_error_begin(&given, &own);
    assert_ptr_equal(e, &given);
    assert_int_equal(heft_error_end(e, HEFT_OK), HEFT_OK);
    assert_int_equal(e->status, HEFT_OK);
    assert_int_equal(heft_error_end(e, HEFT_E_NOMEM), HEFT_E_NOMEM);
    assert_int_equal(e->status, HEFT_E_NOMEM);
    assert_string_equal(e->message, "out of memory; no details are available");
    heft_error_set(e, HEFT_E_FORMAT, 7, "what is wrong");
    assert_int_equal(heft_error_end(e, HEFT_E_FORMAT), HEFT_E_FORMAT);
    assert_string_equal(e->message, "what is wrong");
    assert_int_equal(heft_error_end(e, HEFT_E_IO),
                     HEFT_E_IO); /* the error was set for a different status */
    assert_int_equal(e->status, HEFT_E_IO);
    assert_true(e->offset == HEFT_NOWHERE);
}

static void no_memory_names_the_purpose(void **state)
{
    (void)state;
    heft_error e;
    memset(&e, 0xA5, sizeof e);
    assert_int_equal(heft_error_no_memory(&e, "to plan the file"), HEFT_E_NOMEM);
    assert_int_equal(e.status, HEFT_E_NOMEM);
    assert_int_equal(e.os, 0);
    assert_true(e.offset == HEFT_NOWHERE);
    assert_string_equal(e.message, "no memory to plan the file");
    assert_int_equal(heft_error_no_memory(NULL, "to plan the file"), HEFT_E_NOMEM);
}

static void formats_zero_null_and_an_incomplete_directive(void **state)
{
    (void)state;
    heft_error e;
    heft_error_plain(&e, HEFT_E_FORMAT, "%D %D %s %", (int64_t)0, (int64_t)-1, (const char *)NULL);
    assert_string_equal(e.message, "0 -1 (none) ");
    heft_error_plain(&e, HEFT_E_FORMAT, "%s", "\xFF\xC3\xA9\xE2\x82");
    assert_string_equal(e.message, "\\xff\xC3\xA9\\xe2\\x82");
}

static void quotes_controls_only_as_escapes(void **state)
{
    (void)state;
    static const struct {
        const char *name, *quoted;
    } rows[] = {
        { "\x1f", "'\\x1f'" },
        { " ", "' '" },
        { "~", "'~'" },
        { "\x7f", "'\\x7f'" },
        { "\xC2\x80", "'\\xc2\\x80'" },
        { "\xC2\x9F", "'\\xc2\\x9f'" },
        { "\xC2\xA0", "'\xC2\xA0'" },
        { "\xC3\x80", "'\xC3\x80'" },
        { "\xE2\x82\x80", "'\xE2\x82\x80'" },
        /* the first and the last character of each length */
        { "\xDF\xBF", "'\xDF\xBF'" },
        { "\xE0\xA0\x80", "'\xE0\xA0\x80'" },
        { "\xEF\xBF\xBF", "'\xEF\xBF\xBF'" },
        { "\xF0\x90\x80\x80", "'\xF0\x90\x80\x80'" },
        { "\xF4\x8F\xBF\xBF", "'\xF4\x8F\xBF\xBF'" },
        { "\xF4\x90\x80\x80", "'\\xf4\\x90\\x80\\x80'" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        heft_error e;
        heft_error_plain(&e, HEFT_E_FORMAT, "%q", heft_lit(rows[i].name));
        assert_string_equal(e.message, rows[i].quoted);
    }
}

static void a_missing_message_depends_on_the_status(void **state)
{
    (void)state;
    static const struct {
        heft_status st;
        const char *message;
    } rows[] = {
        { HEFT_E_NOMEM, "out of memory; no details are available" },
        { HEFT_E_IO, "reading or writing failed; no details are available" },
        { HEFT_E_CANCELLED, "stopped; no details are available" },
        { HEFT_E_FORMAT, "the operation failed; no details are available" },
        { HEFT_AGAIN, "" },
        { HEFT_OK, "" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        heft_error own, *e = heft_error_begin(NULL, &own);
        assert_int_equal(heft_error_end(e, rows[i].st), rows[i].st);
        assert_string_equal(e->message, rows[i].message);
        e->status = rows[i].st; /* set, but without words */
        e->message[0] = '\0';
        heft_error_end(e, rows[i].st);
        assert_string_equal(e->message, rows[i].message);
    }
}

static void an_error_carries_a_rule_a_cause_and_the_expected_size(void **state)
{
    (void)state;
    heft_error e;
    heft_error_plain(&e, HEFT_E_FORMAT, "x");
    assert_int_equal(heft_error_rule(&e, HEFT_E_FORMAT, "mag/rank"), HEFT_E_FORMAT);
    assert_string_equal(e.rule, "mag/rank");
    assert_int_equal(heft_error_os(&e, HEFT_E_IO, 5), HEFT_E_IO);
    assert_int_equal(e.os, 5);
    heft_error_expect(&e, HEFT_E_FORMAT, UINT64_MAX - 7, 7);
    assert_true(e.expected_bytes == UINT64_MAX);
    e.expected_bytes = 3;
    assert_int_equal(heft_error_expect(&e, HEFT_E_FORMAT, UINT64_MAX - 7, 8), HEFT_E_FORMAT);
    assert_true(e.expected_bytes == 3); /* the sum passes 64 bits */
    assert_int_equal(heft_error_rule(NULL, HEFT_E_IO, "mag/rank"), HEFT_E_IO);
    assert_int_equal(heft_error_os(NULL, HEFT_E_IO, 5), HEFT_E_IO);
    assert_int_equal(heft_error_expect(NULL, HEFT_E_IO, 1, 1), HEFT_E_IO);
    assert_int_equal(heft_error_about(NULL, HEFT_E_IO, HEFT_ABOUT_TARGET), HEFT_E_IO);
    assert_int_equal(heft_error_about(&e, HEFT_OK, HEFT_ABOUT_TARGET), HEFT_OK);
    assert_int_equal(e.about, HEFT_ABOUT_NOTHING);
    assert_int_equal(heft_error_about(&e, HEFT_E_FORMAT, HEFT_ABOUT_SOURCE), HEFT_E_FORMAT);
    heft_error_about(&e, HEFT_E_FORMAT, HEFT_ABOUT_TARGET);
    assert_int_equal(e.about, HEFT_ABOUT_SOURCE);
    assert_string_equal(e.message, "x");
    heft_error_begin(&e, NULL);
    assert_null(e.rule);
    assert_int_equal(e.about, HEFT_ABOUT_NOTHING);
    heft_error_about(&e, HEFT_E_IO, HEFT_ABOUT_TARGET);
    assert_string_equal(e.message, "reading or writing failed; no details are available");
    assert_int_equal(e.about, HEFT_ABOUT_TARGET);
    assert_int_equal(heft_error_input(NULL, HEFT_E_IO, 2), HEFT_E_IO);
    assert_int_equal(heft_error_input(&e, HEFT_OK, 2), HEFT_OK);
    assert_int_equal(e.input, 0);
    heft_error_input(&e, HEFT_E_IO, 2);
    assert_int_equal(heft_error_input(&e, HEFT_E_IO, 3), HEFT_E_IO); /* the last word */
    assert_int_equal(e.input, 3);
    heft_error_plain(&e, HEFT_E_IO, "x");
    assert_int_equal(e.input, 0);
    heft_error_input(&e, HEFT_E_IO, 2);
    heft_error_begin(&e, NULL);
    assert_true(!e.os && !e.expected_bytes && e.offset == HEFT_NOWHERE && !e.input);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formats_every_directive),
        cmocka_unit_test(plain_error_has_no_offset),
        cmocka_unit_test(returns_the_status_without_an_error_object),
        cmocka_unit_test(quotes_escapes_and_truncates_names),
        cmocka_unit_test(truncates_between_utf8_characters),
        cmocka_unit_test(formats_nothing_after_truncation),
        cmocka_unit_test(sets_an_error_for_a_failure_without_a_message),
        cmocka_unit_test(no_memory_names_the_purpose),
        cmocka_unit_test(formats_zero_null_and_an_incomplete_directive),
        cmocka_unit_test(quotes_controls_only_as_escapes),
        cmocka_unit_test(a_missing_message_depends_on_the_status),
        cmocka_unit_test(an_error_carries_a_rule_a_cause_and_the_expected_size),
    };
    return cmocka_run_group_tests_name("error", tests, NULL, NULL);
}
