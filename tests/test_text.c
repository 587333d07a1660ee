/* test_text.c - strings, UTF-8, decimal numbers and shell patterns. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/path_risk.h"
#include "base/text.h"
#include "guarded.h"

static void compares_strings_by_bytes_and_length(void **state)
{
    (void)state;
    assert_true(heft_str_eq(heft_lit("abc"), heft_lit("abc")));
    assert_false(heft_str_eq(heft_lit("abc"), heft_lit("abd")));
    assert_false(heft_str_eq(heft_lit("abc"), heft_lit("ab")));
    assert_true(heft_str_eq((heft_str){ NULL, 0 }, heft_lit("")));
    assert_true(heft_str_is((heft_str){ "data\0", 4 }, "data"));
    assert_false(heft_str_is((heft_str){ "data\0", 5 }, "data"));
}

static void orders_by_bytes_with_prefixes_first(void **state)
{
    (void)state;
    static const char *const sorted[] = { "", "A", "a", "a\x01", "ab", "abc", "b", "\x7f", "é" };
    enum { N = sizeof sorted / sizeof *sorted };
    for (int i = 0; i < N; i++)
        for (int k = 0; k < N; k++) {
            int order = heft_str_order(heft_lit(sorted[i]), heft_lit(sorted[k]));
            assert_int_equal((order > 0) - (order < 0), (i > k) - (i < k));
        }
}

static void orders_without_reading_past_the_shorter(void **state)
{
    (void)state;
    guarded g = guarded_make();
    heft_str shorter = { guarded_last(&g, "ab", 2), 2 };
    assert_true(heft_str_order(shorter, heft_lit("abc")) < 0);
    assert_true(heft_str_order(heft_lit("abc"), shorter) > 0);
    guarded_free(&g);
}

/* Decode as in RFC 3629 and check the code point; return true if the bytes are one character. */
static bool is_one_char(const uint8_t *p, size_t len)
{
    uint32_t lead = p[0];
    size_t n = lead < 0x80 ? 1 : lead >> 5 == 6 ? 2 : lead >> 4 == 14 ? 3 : lead >> 3 == 30 ? 4 : 0;
    if (n != len)
        return false;
    uint32_t code = n == 1 ? lead : lead & (0xFFu >> (n + 1));
    for (size_t i = 1; i < n; i++) {
        if (p[i] >> 6 != 2)
            return false;
        code = code << 6 | (p[i] & 63u);
    }
    static const uint32_t min_code[] = { 0, 0, 0x80, 0x800, 0x10000 };
    return code >= min_code[n] && code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF);
}

static void check_sequence(const uint8_t *p, size_t len)
{
    bool is_valid = heft_utf8_valid(p, len) == len;
    bool starts_shorter = false;
    for (size_t n = 1; n < len; n++)
        starts_shorter = starts_shorter || is_one_char(p, n);
    if (!starts_shorter && is_valid != is_one_char(p, len))
        fail_msg("%02x %02x %02x %02x, %zu bytes: %d", p[0], p[1], p[2], p[3], len, is_valid);
}

static void utf8_agrees_with_a_simple_decoder(void **state)
{
    (void)state;
    static const uint8_t tails[] = { 0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xFF };
    enum { TAILS = sizeof tails };
    for (uint32_t a = 0; a < 256; a++) {
        uint8_t p[4] = { (uint8_t)a };
        check_sequence(p, 1);
        for (uint32_t b = 0; b < 256; b++) {
            p[1] = (uint8_t)b;
            check_sequence(p, 2);
            for (uint32_t c = 0; c < TAILS; c++) {
                p[2] = tails[c];
                check_sequence(p, 3);
                for (uint32_t d = 0; d < TAILS; d++) {
                    p[3] = tails[d];
                    check_sequence(p, 4);
                }
            }
        }
    }
}

static void utf8_returns_the_length_of_the_valid_prefix(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t len, valid;
    } rows[] = {
        { "", 0, 0 },
        { "plain ASCII, longer than eight", 30, 30 },
        { "plain ASCII, longer than \xFF", 26, 25 },
        { "12345678\x80", 9, 8 },
        { "é€😀", 9, 9 },
        { "é€😀", 8, 5 },
        { "é€😀", 6, 5 },
        { "é€😀", 4, 2 },
        { "é€😀", 1, 0 },
        { "aé\x80", 4, 3 },
        { "a\0b", 3, 3 },
        { "\xED\xA0\x80", 3, 0 },
        { "\xF4\x90\x80\x80", 4, 0 },
        { "\xC0\x80", 2, 0 },
        { "abc\xE2\x82", 5, 3 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(heft_utf8_valid(rows[i].text, rows[i].len), rows[i].valid);
}

static void finds_a_non_ascii_byte_at_every_offset(void **state)
{
    (void)state;
    char text[40];
    for (size_t len = 0; len <= sizeof text; len++)
        for (size_t at = 0; at <= len; at++) {
            memset(text, 'x', sizeof text);
            if (at < sizeof text)
                text[at] = '\xFF';
            assert_int_equal(heft_is_ascii(text, len), at >= len);
            assert_int_equal(heft_utf8_valid(text, len), at);
        }
}

static void check_decimal(uint64_t v)
{
    char expected[32], got[20];
    int n = snprintf(expected, sizeof expected, "%llu", (unsigned long long)v);
    assert_int_equal(heft_u64_text(got, v), n);
    assert_memory_equal(got, expected, (size_t)n);
}

static void writes_decimal_numbers(void **state)
{
    (void)state;
    for (uint64_t v = 0; v < 20000; v++)
        check_decimal(v);
    for (uint64_t v = 1, i = 0; i < 20; i++, v *= 10) {
        check_decimal(v - 1);
        check_decimal(v);
    }
    uint64_t random = 88172645463325252u;
    for (int i = 0; i < 100000; i++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        check_decimal(random >> (random & 63));
    }
    check_decimal(UINT32_MAX);
    check_decimal((uint64_t)UINT32_MAX + 1);
    check_decimal(UINT64_MAX);
}

static void matches_patterns_as_a_shell(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *text;
        bool matches;
    } rows[] = {
        { "", "", true },
        { "", "a", false },
        { "*", "", true },
        { "***", "", true },
        { "*", "anything/at.all", true },
        { "a", "a", true },
        { "a", "b", false },
        { "a", "", false },
        { "?", "", false },
        { "?", "x", true },
        { "??", "x", false },
        { "*.weight", "layers.0.weight", true },
        { "*.weight", "layers.0.bias", false },
        { "*.weight", "weight", false },
        { "layers.*.weight", "layers.0.weight.weight", true },
        { "layers.*", "layers.", true },
        { "*a*b*c*", "xxaxxbxxcxx", true },
        { "*a*b*c*", "xxaxxcxxbxx", false },
        { "*ab", "aab", true },
        { "*abab", "abaabab", true },
        { "layers.[0-3].x", "layers.2.x", true },
        { "layers.[0-3].x", "layers.4.x", false },
        { "[abc]", "b", true },
        { "[abc]", "d", false },
        { "[!abc]", "d", true },
        { "[!abc]", "b", false },
        { "[!abc]", "", false },
        { "[]]", "]", true },
        { "[!]]", "]", false },
        { "[!]]", "x", true },
        { "[]-a]", "^", true },
        { "[a-]", "-", true },
        { "[-a]", "-", true },
        { "[a-]", "b", false },
        { "[z-a]", "m", false },
        { "[\\]]", "]", true },
        { "[a\\-c]", "b", false },
        { "[a\\-c]", "-", true },
        { "[", "[", true },
        { "[a", "[a", true },
        { "[a", "a", false },
        { "[]", "[]", true },
        { "[!]", "[!]", true },
        { "*[", "x[", true },
        { "\\*", "*", true },
        { "\\*", "x", false },
        { "\\?", "?", true },
        { "\\[a]", "[a]", true },
        { "\\\\", "\\", true },
        { "\\", "\\", true },
        { "a\\", "a\\", true },
        { "*\\", "a\\", true },
        { "*[0-9]*", "layer7x", true },
        { "*[0-9]", "layer7x", false },
        { "[\x80-\xFF]", "\xC3", true },
        { "é", "é", true },
        { "*é", "caf\xC3\xA9", true },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (heft_glob(heft_lit(rows[i].pattern), heft_lit(rows[i].text)) != rows[i].matches)
            fail_msg("'%s' on '%s' should be %d", rows[i].pattern, rows[i].text, rows[i].matches);
}

static void matches_many_stars_in_polynomial_time(void **state)
{
    (void)state;
    char pattern[201], text[5001];
    for (size_t i = 0; i < 200; i += 2)
        memcpy(pattern + i, "*a", 2);
    pattern[200] = 'b';
    memset(text, 'a', sizeof text);
    assert_false(heft_glob((heft_str){ pattern, sizeof pattern }, (heft_str){ text, sizeof text }));
}

static void lists_have_whole_words_only(void **state)
{
    (void)state;
    static const char *const lists[] = { "ab cd", " ab cd ", "cd ab" };
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        assert_true(heft_str_has_word(heft_lit(lists[i]), heft_lit("ab")));
        assert_true(heft_str_has_word(heft_lit(lists[i]), heft_lit("cd")));
        assert_false(heft_str_has_word(heft_lit(lists[i]), heft_lit("a")));
        assert_false(heft_str_has_word(heft_lit(lists[i]), heft_lit("ab cd")));
        assert_false(heft_str_has_word(heft_lit(lists[i]), heft_lit("")));
    }
    assert_false(heft_str_has_word(heft_lit(""), heft_lit("")));
    assert_false(heft_str_has_word((heft_str){ "ab cd", 4 }, heft_lit("cd")));

    heft_str list = heft_lit("ab cd");
    heft_str first = heft_str_next_word(&list), second = heft_str_next_word(&list);
    assert_true(heft_str_is(first, "ab") && heft_str_is(second, "cd"));
    assert_int_equal(list.len, 0);
}

static void begins_and_ends_compare_whole_words(void **state)
{
    (void)state;
    heft_str name = heft_lit("weight");
    assert_true(heft_str_begins(name, "") && heft_str_ends(name, ""));
    assert_true(heft_str_begins(name, "wei") && heft_str_ends(name, "ght"));
    assert_true(heft_str_begins(name, "weight") && heft_str_ends(name, "weight"));
    assert_false(heft_str_begins(name, "weightx") || heft_str_ends(name, "xweight"));
    assert_false(heft_str_begins(name, "wex") || heft_str_ends(name, "xht"));
    assert_false(heft_str_begins((heft_str){ "weight", 2 }, "wei"));
    assert_false(heft_str_ends((heft_str){ &"bias"[2], 2 }, "ias"));
    assert_true(heft_str_has_nul((heft_str){ "a\0", 2 }) && heft_str_has_nul((heft_str){ "", 1 }));
    assert_false(heft_str_has_nul((heft_str){ "a", 1 }) || heft_str_has_nul((heft_str){ "", 0 }));
}

static void seeks_only_within_the_bytes(void **state)
{
    (void)state;
    guarded g = guarded_make();
    const uint8_t *p = guarded_last(&g, "xabxabc", 7), *end = g.end;
    assert_ptr_equal(heft_str_seek(p, end, "abc", 3), p + 4);
    assert_ptr_equal(heft_str_seek(p, end, "ab", 2), p + 1);
    assert_ptr_equal(heft_str_seek(p, end, "xabxabc", 7), p);
    assert_ptr_equal(heft_str_seek(p, end, "c", 1), p + 6);
    assert_null(heft_str_seek(p, end, "cx", 2));
    assert_null(heft_str_seek(p, end, "xabxabcx", 8));
    assert_null(heft_str_seek(end, end, "x", 1));
    guarded_free(&g);
}

static void counts_ascii_only_within_the_bytes(void **state)
{
    (void)state;
    guarded g = guarded_make();
    char text[33];
    memset(text, 'x', sizeof text);
    for (size_t len = 0; len <= sizeof text; len++) {
        assert_int_equal(heft_utf8_valid(guarded_last(&g, text, len), len), len);
        assert_true(heft_is_ascii(guarded_first(&g, text, len), len));
    }
    for (size_t len = 0; len <= 4; len++) {
        size_t valid = len == 4 ? 4 : 0;
        assert_int_equal(heft_utf8_valid(guarded_last(&g, "\xf0\x9f\x98\x80", len), len), valid);
    }
    guarded_free(&g);
}

static void writes_utf8_and_reads_hexadecimal_digits(void **state)
{
    (void)state;
    static const struct {
        uint32_t code;
        const char *text;
    } rows[] = {
        { 0x7F, "\x7F" },
        { 0x80, "\xC2\x80" },
        { 0x7FF, "\xDF\xBF" },
        { 0x800, "\xE0\xA0\x80" },
        { 0xFFFF, "\xEF\xBF\xBF" },
        { 0x10000, "\xF0\x90\x80\x80" },
        { 0x10FFFF, "\xF4\x8F\xBF\xBF" },
    };
    char out[5];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        out[heft_utf8_put(out, rows[i].code)] = '\0';
        assert_string_equal(out, rows[i].text);
    }
    for (uint32_t c = 0; c < 256; c++) {
        uint32_t digit = c >= '0' && c <= '9'   ? c - '0'
                         : c >= 'a' && c <= 'f' ? c - 'a' + 10
                         : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                : 16;
        assert_int_equal(heft_hex_digit((char)c), digit);
    }
    uint32_t number;
    assert_true(heft_hex_number(&number, "fedCBA98", 8));
    assert_int_equal(number, 0xFEDCBA98);
    assert_true(heft_hex_number(&number, "012x", 3));
    assert_int_equal(number, 0x12);
    assert_false(heft_hex_number(&number, "012x", 4));
    char text[5] = "";
    heft_hex_text(text, (const uint8_t[]){ 0xAB, 0x0F }, 2);
    assert_string_equal(text, "ab0f");
    heft_hex_capitals(text, (const uint8_t[]){ 0xAB, 0x0F }, 2);
    assert_string_equal(text, "AB0F");
    assert_int_equal(heft_str_fnv1a(heft_lit("")), 0x811C9DC5);
    assert_int_equal(heft_str_fnv1a(heft_lit("foobar")), 0xBF9CF968);
}

static void patterns_are_read_only_within_their_length(void **state)
{
    (void)state;
    static const char *const patterns[] = { "*",   "\\",    "[",    "[!", "[a",
                                            "[a-", "[!a-z", "[a\\", "[]", "?" };
    guarded g = guarded_make();
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        size_t len = strlen(patterns[i]);
        heft_str pattern = { guarded_last(&g, patterns[i], len), len };
        heft_glob(pattern, heft_lit("ab"));
        heft_glob(pattern, heft_lit(""));
        assert_true(heft_glob((heft_str){ pattern.ptr, 0 }, heft_lit("")));
    }
    assert_false(heft_glob(heft_lit("[a-]x"), heft_lit("b")));
    assert_true(heft_glob((heft_str){ "[a-c]", 4 }, heft_lit("[a-c")));
    guarded_free(&g);
}

static void names_that_leave_a_folder_are_risky(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        size_t len;
        heft_path_risk risk;
    } rows[] = {
        { "", 0, HEFT_PATH_PLAIN },
        { "layers.0.weight", 15, HEFT_PATH_PLAIN },
        { ".", 1, HEFT_PATH_PLAIN },
        { "...", 3, HEFT_PATH_PLAIN },
        { ".a", 2, HEFT_PATH_PLAIN },
        { "a.", 2, HEFT_PATH_PLAIN },
        { "a..", 3, HEFT_PATH_PLAIN },
        { "a/b/c", 5, HEFT_PATH_PLAIN },
        { "/", 1, HEFT_PATH_ABSOLUTE },
        { "/etc/passwd", 11, HEFT_PATH_ABSOLUTE },
        { "..", 2, HEFT_PATH_PARENT },
        { "../a", 4, HEFT_PATH_PARENT },
        { "a/..", 4, HEFT_PATH_PARENT },
        { "a\\..\\b", 6, HEFT_PATH_PARENT },
        { "a/.b/..c", 8, HEFT_PATH_PLAIN },
        { "a/b./c", 6, HEFT_PATH_PLAIN },
        { "C:\\a", 4, HEFT_PATH_DRIVE },
        { "a:/", 3, HEFT_PATH_DRIVE },
        { "z:\\", 3, HEFT_PATH_DRIVE },
        { "Z:/abcdefgh", 11, HEFT_PATH_DRIVE },
        { "a:", 2, HEFT_PATH_PLAIN },
        { "a:b", 3, HEFT_PATH_PLAIN },
        { "1:/", 3, HEFT_PATH_PLAIN },
        { "@:/", 3, HEFT_PATH_PLAIN },
        { "[:/", 3, HEFT_PATH_PLAIN }, /* after Z in ASCII, and no letter in lower case */
        { "{:/", 3, HEFT_PATH_PLAIN },
        { "ab/", 3, HEFT_PATH_PLAIN },
        { "a\\b", 3, HEFT_PATH_BACKSLASH },
        { "\\", 1, HEFT_PATH_BACKSLASH },
        { "a\0b", 3, HEFT_PATH_NUL },
        { "layers\0weight", 13, HEFT_PATH_NUL },
        { "layers.weight\\", 14, HEFT_PATH_BACKSLASH },
        { "1234567\\", 8, HEFT_PATH_BACKSLASH },
        { "12345678\\12345678", 17, HEFT_PATH_BACKSLASH },
    };
    guarded g = guarded_make();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        heft_str name = { guarded_last(&g, rows[i].name, rows[i].len), rows[i].len };
        if (heft_str_path_risk(name) != rows[i].risk)
            fail_msg("row %zu: risk %d", i, heft_str_path_risk(name));
        bool has_special = heft_str_has_nul(name);
        for (size_t k = 0; k < name.len; k++)
            has_special = has_special || name.ptr[k] == '/' || name.ptr[k] == '\\';
        assert_int_equal(heft_str_may_be_path(name), has_special || heft_str_is(name, ".."));
        name.ptr = guarded_first(&g, rows[i].name, rows[i].len);
        assert_int_equal(heft_str_path_risk(name), rows[i].risk);
    }
    guarded_free(&g);
}

static void a_special_byte_is_noticed_at_every_offset(void **state)
{
    (void)state;
    char text[33];
    for (size_t len = 1; len <= sizeof text; len++)
        for (size_t at = 0; at < len; at++) {
            memset(text, 'x', sizeof text);
            assert_false(heft_str_may_be_path((heft_str){ text, len }));
            text[at] = "/\\"[at % 3];
            assert_true(heft_str_may_be_path((heft_str){ text, len }));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compares_strings_by_bytes_and_length),
        cmocka_unit_test(orders_by_bytes_with_prefixes_first),
        cmocka_unit_test(orders_without_reading_past_the_shorter),
        cmocka_unit_test(utf8_agrees_with_a_simple_decoder),
        cmocka_unit_test(utf8_returns_the_length_of_the_valid_prefix),
        cmocka_unit_test(finds_a_non_ascii_byte_at_every_offset),
        cmocka_unit_test(writes_decimal_numbers),
        cmocka_unit_test(matches_patterns_as_a_shell),
        cmocka_unit_test(matches_many_stars_in_polynomial_time),
        cmocka_unit_test(begins_and_ends_compare_whole_words),
        cmocka_unit_test(lists_have_whole_words_only),
        cmocka_unit_test(seeks_only_within_the_bytes),
        cmocka_unit_test(counts_ascii_only_within_the_bytes),
        cmocka_unit_test(writes_utf8_and_reads_hexadecimal_digits),
        cmocka_unit_test(patterns_are_read_only_within_their_length),
        cmocka_unit_test(names_that_leave_a_folder_are_risky),
        cmocka_unit_test(a_special_byte_is_noticed_at_every_offset),
    };
    return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}
