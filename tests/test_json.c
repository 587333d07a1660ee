/* test_json.c - the JSON reader, and the functions that write JSON values. */
#include "grammar/json.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "test_memory.h"

/* A reader of a copy that fills an allocation, so that sanitizers find overreads. */
typedef struct reader {
    test_memory t;
    heft_memory m;
    heft_arena arena;
    heft_error err;
    char *text;
    heft_json j;
} reader;

static void open_bytes(reader *r, const char *text, size_t len, uint32_t max_depth)
{
    *r = (reader){ .text = malloc(len ? len : 1) };
    assert_non_null(r->text);
    memcpy(r->text, text, len);
    test_memory_init(&r->t, 0);
    r->m = (heft_memory){ .al = &r->t.al, .limit = UINT64_MAX };
    r->arena = (heft_arena){ .mem = &r->m };
    r->j = heft_json_open((heft_str){ r->text, len }, 1000, max_depth, &r->arena, &r->err);
}

static void open_text(reader *r, const char *text)
{
    open_bytes(r, text, strlen(text), 128);
}

static void close_reader(reader *r)
{
    heft_arena_free(&r->arena);
    assert_int_equal(r->t.live, 0);
    free(r->text);
}

/* Append one letter per token, and texts in full: {"a":[1,true]} gives {k(a)[n(1)t]}. */
static void print_token(char *out, size_t capacity, const heft_json *j, heft_json_kind k)
{
    static const char letters[] = "!.{}[]ksntf0";
    size_t at = strlen(out);
    if (k == HEFT_JSON_KEY || k == HEFT_JSON_STRING || k == HEFT_JSON_NUMBER)
        snprintf(out + at, capacity - at, "%c(%.*s)", letters[k], (int)j->text.len, j->text.ptr);
    else
        snprintf(out + at, capacity - at, "%c", letters[k]);
}

static void print_tokens(char *out, size_t capacity, heft_json *j)
{
    heft_json_kind k;
    *out = '\0';
    do {
        k = heft_json_next(j);
        print_token(out, capacity, j, k);
    } while (k != HEFT_JSON_END && k != HEFT_JSON_FAILED);
    assert_int_equal(heft_json_next(j), k); /* END and FAILED are final */
}

static void reads_the_tokens_of_valid_documents(void **state)
{
    (void)state;
    static const struct {
        const char *text, *tokens;
    } rows[] = {
        { "null", "0." },
        { " \t\r\n true \n", "t." },
        { "false", "f." },
        { "\"\"", "s()." },
        { "0", "n(0)." },
        { "-0", "n(-0)." },
        { "-0.0e-0", "n(-0.0e-0)." },
        { "1234567890123456789012345678901234567890",
          "n(1234567890123456789012345678901234567890)." },
        { "1.5", "n(1.5)." },
        { "1e5", "n(1e5)." },
        { "1E+05", "n(1E+05)." },
        { "[]", "[]." },
        { "{}", "{}." },
        { "[ ]", "[]." },
        { "{ }", "{}." },
        { "[1,2]", "[n(1)n(2)]." },
        { "[[],{},[[]]]", "[[]{}[[]]]." },
        { "{\"a\":1}", "{k(a)n(1)}." },
        { " { \"a\" : [ 1 , true ] , \"b\" : { } } ", "{k(a)[n(1)t]k(b){}}." },
        { "{\"\":\"\"}", "{k()s()}." },
        { "{\"a\":1,\"a\":2}", "{k(a)n(1)k(a)n(2)}." },
        { "\"a string of more than eight, of more than sixteen bytes\"",
          "s(a string of more than eight, of more than sixteen bytes)." },
        { "\"\x7f\"", "s(\x7f)." },
        { "\"é€😀 and so on, é\"", "s(é€😀 and so on, é)." },
        { "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "s(\"\\/\b\f\n\r\t)." },
        { "\"\\u0041\\u00e9\\u20AC\\ud83d\\uDE00\"", "s(Aé€😀)." },
        { "\"\\u007f\\u0080\\u07ff\\u0800\\uffff\\ud800\\udc00\\udbff\\udfff\"",
          "s(\x7f\xC2\x80\xDF\xBF\xE0\xA0\x80\xEF\xBF\xBF\xF0\x90\x80\x80\xF4\x8F\xBF\xBF)." },
        { "{\"a\\tb\":\"x\\ny, and then a good deal of plain text\"}",
          "{k(a\tb)s(x\ny, and then a good deal of plain text)}." },
        { "{\"t\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]}}",
          "{k(t){k(dtype)s(F32)k(shape)[n(2)n(3)]k(data_offsets)[n(0)n(24)]}}." },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        reader r;
        char got[400];
        open_text(&r, rows[i].text);
        print_tokens(got, sizeof got, &r.j);
        assert_string_equal(got, rows[i].tokens);
        assert_string_equal(r.err.message, "");
        close_reader(&r);
    }
}

static void refuses_invalid_documents_with_offset_and_reason(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t at;
        const char *message; /* beginning of the message */
    } rows[] = {
        { "", 0, "JSON: the text ends where a value is expected" },
        { "  ", 2, "JSON: the text ends where a value is expected" },
        { "\xEF\xBB\xBF{}", 0, "JSON: a value is expected, not '\xEF\xBB\xBF'" },
        { "\xFF", 0, "JSON: a value is expected, not '\\xff'" },
        { "nul", 0, "JSON: null is expected" },
        { "truf", 0, "JSON: true is expected" },
        { "fals", 0, "JSON: false is expected" },
        { "True", 0, "JSON: a value is expected, not 'T'" },
        { "NaN", 0, "JSON: a value is expected" },
        { "Infinity", 0, "JSON: a value is expected" },
        { "nullx", 4, "JSON: the end of the text is expected, not 'x'" },
        { "{} {}", 3, "JSON: the end of the text is expected" },
        { "1 2", 2, "JSON: the end of the text is expected" },
        { "{},", 2, "JSON: the end of the text is expected" },
        { "]", 0, "JSON: a value is expected" },
        { "}", 0, "JSON: a value is expected" },
        { "+1", 0, "JSON: a value is expected" },
        { ".5", 0, "JSON: a value is expected" },
        { "'a'", 0, "JSON: a value is expected, not '\\''" },
        { "/**/1", 0, "JSON: a value is expected" },
        { "1 // one", 2, "JSON: the end of the text is expected" },
        { "01", 1, "JSON: the end of the text is expected" },
        { "-01", 2, "JSON: the end of the text is expected" },
        { "0x10", 1, "JSON: the end of the text is expected" },
        { "-", 1, "JSON: the text ends where a digit is expected" },
        { "-a", 1, "JSON: a digit is expected, not 'a'" },
        { "1.", 2, "JSON: the text ends where a digit is expected" },
        { "1.e5", 2, "JSON: a digit is expected" },
        { "1e", 2, "JSON: the text ends where a digit is expected" },
        { "1e+", 3, "JSON: the text ends where a digit is expected" },
        { "1ex", 2, "JSON: a digit is expected" },
        { "1.5.5", 3, "JSON: the end of the text is expected" },
        { "[", 1, "JSON: the text ends where a value or ']' is expected" },
        { "[,", 1, "JSON: a value or ']' is expected, not ','" },
        { "[1", 2, "JSON: the text ends where ',' or ']' is expected" },
        { "[1,", 3, "JSON: the text ends where a value is expected" },
        { "[1,]", 3, "JSON: a value is expected, not ']'" },
        { "[1 2]", 3, "JSON: ',' or ']' is expected, not '2'" },
        { "[1}", 2, "JSON: ',' or ']' is expected, not '}'" },
        { "[}", 1, "JSON: a value or ']' is expected" },
        { "[1:2]", 2, "JSON: ',' or ']' is expected" },
        { "{", 1, "JSON: the text ends where a key in quotes or '}' is expected" },
        { "{]", 1, "JSON: a key in quotes or '}' is expected" },
        { "{a:1}", 1, "JSON: a key in quotes or '}' is expected" },
        { "{1:1}", 1, "JSON: a key in quotes or '}' is expected" },
        { "{\"a\"", 4, "JSON: the text ends where ':' is expected" },
        { "{\"a\",", 4, "JSON: ':' is expected, not ','" },
        { "{\"a\":", 5, "JSON: the text ends where a value is expected" },
        { "{\"a\":}", 5, "JSON: a value is expected, not '}'" },
        { "{\"a\":1", 6, "JSON: the text ends where ',' or '}' is expected" },
        { "{\"a\":1]", 6, "JSON: ',' or '}' is expected, not ']'" },
        { "{\"a\":1,", 7, "JSON: the text ends where a key in quotes is expected" },
        { "{\"a\":1,}", 7, "JSON: a key in quotes is expected, not '}'" },
        { "{\"a\":1 \"b\":2}", 7, "JSON: ',' or '}' is expected" },
        { "\"", 1, "JSON: the text ends inside a string" },
        { "\"abc", 4, "JSON: the text ends inside a string" },
        { "\"a\\", 3, "JSON: the text ends inside a string" },
        { "\"\\u", 1, "JSON: \\u with four" },
        { "\"\\q", 1, "JSON: one of" },
        { "\"a\nb\"", 2, "JSON: the control character 0xa in a string" },
        { "\"a plain beginning\x1f\"", 18, "JSON: the control character 0x1f in a string" },
        { "\"\\x41\"", 1, "JSON: one of \" \\ / b f n r t u is expected after a \\" },
        { "\"\\'\"", 1, "JSON: one of" },
        { "\"\\U0041\"", 1, "JSON: one of" },
        { "\"\\u\"", 1, "JSON: \\u with four hexadecimal digits" },
        { "\"\\u004\"", 1, "JSON: \\u with four hexadecimal digits" },
        { "\"\\u004g\"", 1, "JSON: \\u with four hexadecimal digits" },
        { "\"\\u+041\"", 1, "JSON: \\u with four hexadecimal digits" },
        { "\"\\ud800\"", 1,
          "JSON: \\u with four hexadecimal digits is expected, surrogates in pairs" },
        { "\"\\udc00\"", 1, "JSON: \\u with four hexadecimal digits" },
        { "\"\\udc00\\udc00\"", 1, "JSON: \\u with four hexadecimal digits" },
        { "\"\\udfff\"", 1, "JSON: \\u with four hexadecimal digits" },
        { "\"ab\\ud800x\"", 3, "JSON: \\u with four hexadecimal digits" },
        { "\"\\ud800\\n1234\"", 1, "JSON: \\u with four hexadecimal digits" },
        { "\"\\ud800\\ud800\"", 1, "JSON: \\u with four hexadecimal digits" },
        { "\"\\ud83d\\xde00\"", 1, "JSON: \\u with four hexadecimal digits" },
        { "\"\\ud83d?ude00\"", 1, "JSON: \\u with four hexadecimal digits" },
        { "\"\\ud800\\udbff\"", 1, "JSON: \\u with four hexadecimal digits" },
        { "\"\\ud800\\ue000\"", 1, "JSON: \\u with four hexadecimal digits" },
        { "\"\\udc00\\ud800\"", 1, "JSON: \\u with four hexadecimal digits" },
        { "\"ab\x80\"", 3, "JSON: a string is not UTF-8: byte 0x80" },
        { "\"123456789\xC0\xAF\"", 10, "JSON: a string is not UTF-8: byte 0xc0" },
        { "\"\xED\xA0\x80\"", 1, "JSON: a string is not UTF-8: byte 0xed" },
        { "\"\xC3\"", 1, "JSON: a string is not UTF-8" },
        { "\"\xC3\\n\"", 1, "JSON: a string is not UTF-8" },
        { "{\"k\xFF\":1}", 3, "JSON: a string is not UTF-8" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        reader r;
        char got[200];
        open_text(&r, rows[i].text);
        print_tokens(got, sizeof got, &r.j);
        if (r.j.st != HEFT_E_FORMAT || r.err.offset != 1000 + rows[i].at ||
            strncmp(r.err.message, rows[i].message, strlen(rows[i].message)) != 0)
            fail_msg("%s: %d at %d: %s", rows[i].text, r.j.st, (int)r.err.offset - 1000,
                     r.err.message);
        close_reader(&r);
    }
}

static void accepts_nul_in_strings_only(void **state)
{
    (void)state;
    reader r;
    open_bytes(&r, "1\0", 2, 8);
    assert_int_equal(heft_json_next(&r.j), HEFT_JSON_NUMBER);
    assert_int_equal(heft_json_next(&r.j), HEFT_JSON_FAILED);
    close_reader(&r);
    open_text(&r, "\"a\\u0000b\"");
    assert_int_equal(heft_json_next(&r.j), HEFT_JSON_STRING);
    assert_true(heft_str_eq(r.j.text, (heft_str){ "a\0b", 3 }));
    close_reader(&r);
}

static const char large[] =
    " {\"__metadata__\":{\"format\":\"pt\",\"note\":\"caf\\u00e9 \\ud83d\\ude00 \\\"x\\\"\"},\n"
    "\"layers.0.é.weight\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]},\n"
    "\"empty\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[24,24]},\n"
    "\"more\":[null,true,false,-0,1.25e-10,[[[{}]]],\"\"]}";

static void refuses_every_truncation_within_bounds(void **state)
{
    (void)state;
    for (size_t len = 0; len < sizeof large - 1; len++) {
        reader r;
        char got[2000];
        open_bytes(&r, large, len, 128);
        print_tokens(got, sizeof got, &r.j);
        assert_int_equal(r.j.st, HEFT_E_FORMAT);
        assert_true(r.err.offset >= 1000 && r.err.offset <= 1000 + len);
        close_reader(&r);
    }
    reader r;
    char got[2000];
    open_text(&r, large);
    print_tokens(got, sizeof got, &r.j);
    assert_int_equal(r.j.st, HEFT_OK);
    close_reader(&r);
}

static void stays_within_bounds_for_every_damaged_byte(void **state)
{
    (void)state;
    char text[sizeof large];
    for (size_t at = 0; at < sizeof large - 1; at++)
        for (unsigned byte = 0; byte < 256; byte++) {
            memcpy(text, large, sizeof large);
            text[at] = (char)byte;
            reader r;
            char got[2000];
            open_bytes(&r, text, sizeof large - 1, 128);
            print_tokens(got, sizeof got, &r.j);
            assert_int_equal(r.j.st != HEFT_OK, r.err.message[0] != '\0');
            close_reader(&r);
        }
}

static void finds_the_end_of_strings_of_any_length(void **state)
{
    (void)state;
    static const char stops[] = { '"', '\\', '\n', '\0', '\x1f', '\xFF' };
    for (size_t len = 0; len < 40; len++)
        for (size_t kind = 0; kind < sizeof stops; kind++) {
            char text[64];
            memset(text, '!', sizeof text);
            text[0] = '"';
            text[len + 1] = stops[kind];
            text[len + 2] = '"';
            reader r;
            open_bytes(&r, text, len + 3, 8);
            heft_json_kind k = heft_json_next(&r.j);
            assert_int_equal(k, kind == 0 ? HEFT_JSON_STRING : HEFT_JSON_FAILED);
            if (kind == 0)
                assert_int_equal(r.j.text.len, len);
            else /* an escaped quote does not end the string */
                assert_int_equal(r.err.offset, 1000 + (kind == 1 ? len + 3 : len + 1));
            close_reader(&r);
        }
}

static void borrows_strings_without_escapes(void **state)
{
    (void)state;
    reader r;
    open_text(&r, "[\"plain\",\"esc\\t\",\"é\"]");
    heft_json_next(&r.j);
    heft_json_next(&r.j);
    assert_ptr_equal(r.j.text.ptr, r.text + 2);
    assert_int_equal(r.t.live, 0);
    heft_json_next(&r.j);
    assert_true(r.t.live > 0);
    heft_json_next(&r.j);
    assert_ptr_equal(r.j.text.ptr, r.text + 18);
    close_reader(&r);
}

static void refuses_escapes_without_an_arena(void **state)
{
    (void)state;
    heft_error err;
    heft_json j = heft_json_open(heft_lit("[\"a\",\"\\n\"]"), 0, 8, NULL, &err);
    heft_json_next(&j);
    assert_int_equal(heft_json_next(&j), HEFT_JSON_STRING);
    assert_int_equal(heft_json_next(&j), HEFT_JSON_FAILED);
    assert_int_equal(j.st, HEFT_E_UNSUPPORTED);
    assert_int_equal(err.offset, 5);
}

static void reports_a_failed_allocation_for_an_escape(void **state)
{
    (void)state;
    reader r;
    open_text(&r, "[\"\\n\"]");
    r.t.fail_at = 1;
    heft_json_next(&r.j);
    assert_int_equal(heft_json_next(&r.j), HEFT_JSON_FAILED);
    assert_int_equal(r.j.st, HEFT_E_NOMEM);
    assert_int_equal(r.err.status, HEFT_E_NOMEM);
    close_reader(&r);
}

static void refuses_nesting_beyond_the_limit(void **state)
{
    (void)state;
    static const uint32_t limits[] = { 0, 1, 5, 63, 64, 65, 255, 256, 1000 };
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        for (uint32_t depth = 1; depth < 300; depth++) {
            char text[1800] = "";
            size_t len = 0;
            for (uint32_t d = 0; d < depth; d++)
                len += (size_t)snprintf(text + len, 6, d % 3 ? "[" : "{\"\":");
            text[len++] = '0';
            for (uint32_t d = depth; d--;)
                text[len++] = d % 3 ? ']' : '}';
            reader r;
            char got[3000];
            open_bytes(&r, text, len, limits[i]);
            print_tokens(got, sizeof got, &r.j);
            uint32_t max_depth = limits[i] < 256 ? limits[i] : 256;
            assert_int_equal(r.j.st, depth > max_depth ? HEFT_E_LIMIT : HEFT_OK);
            close_reader(&r);
        }
}

static void skips_a_value(void **state)
{
    (void)state;
    reader r;
    open_text(&r,
              "{\"a\":{\"x\":[1,{\"y\":\"\\n\"}]},\"b\":[[],[]],\"c\":\"\\t\",\"d\":7,\"e\":{}}");
    heft_json_next(&r.j);
    for (char name = 'a'; name <= 'e'; name++) {
        assert_int_equal(heft_json_next(&r.j), HEFT_JSON_KEY);
        assert_int_equal(r.j.text.ptr[0], name);
        heft_json_kind k = name % 2 ? HEFT_JSON_KEY : heft_json_next(&r.j);
        assert_int_equal(heft_json_skip(&r.j, k), HEFT_OK);
        assert_int_equal(r.t.live, 0); /* skipping allocates nothing, even with escapes */
    }
    assert_int_equal(heft_json_next(&r.j), HEFT_JSON_OBJECT_END);
    assert_int_equal(heft_json_next(&r.j), HEFT_JSON_END);
    close_reader(&r);
}

static void skips_without_an_arena_and_still_checks(void **state)
{
    (void)state;
    heft_error err;
    heft_json j = heft_json_open(heft_lit("[\"\\n\",2]"), 0, 8, NULL, &err);
    assert_int_equal(heft_json_skip(&j, heft_json_next(&j)), HEFT_OK);
    assert_int_equal(heft_json_next(&j), HEFT_JSON_END);
    j = heft_json_open(heft_lit("[\"\\n\",2,]"), 0, 8, NULL, &err);
    assert_int_equal(heft_json_skip(&j, heft_json_next(&j)), HEFT_E_FORMAT);
    assert_int_equal(err.offset, 8);
    assert_int_equal(heft_json_skip(&j, HEFT_JSON_KEY), HEFT_E_FORMAT);
}

static void reports_caller_errors_at_the_token(void **state)
{
    (void)state;
    reader r;
    open_text(&r, " [ 12 , \"abc\" ]");
    heft_json_next(&r.j);
    heft_json_next(&r.j);
    heft_json_next(&r.j);
    assert_int_equal(heft_json_fail(&r.j, "%q is no number", r.j.text), HEFT_E_FORMAT);
    assert_int_equal(r.err.offset, 1008);
    assert_string_equal(r.err.message, "'abc' is no number");
    assert_int_equal(heft_json_next(&r.j), HEFT_JSON_FAILED);
    assert_int_equal(heft_json_fail(&r.j, "another"), HEFT_E_FORMAT);
    assert_string_equal(r.err.message, "'abc' is no number");
    close_reader(&r);
}

static void parses_only_plain_integers_as_u64(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool fits;
        uint64_t value;
    } rows[] = {
        { "0", true, 0 },
        { "7", true, 7 },
        { "9007199254740993", true, 9007199254740993 },
        { "9999999999999999999", true, 9999999999999999999u },
        { "10000000000000000000", true, 10000000000000000000u },
        { "18446744073709551615", true, UINT64_MAX },
        { "18446744073709551616", false, 0 },
        { "18446744073709551620", false, 0 },
        { "99999999999999999999", false, 0 },
        { "100000000000000000000", false, 0 },
        { "-0", false, 0 },
        { "-1", false, 0 },
        { "1.0", false, 0 },
        { "1e2", false, 0 },
        { "007", false, 0 },
        { "", false, 0 },
        { "x", false, 0 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint64_t v;
        if (heft_json_u64(&v, heft_lit(rows[i].text)) != rows[i].fits)
            fail_msg("%s", rows[i].text);
        if (rows[i].fits)
            assert_true(v == rows[i].value);
    }
}

/* An array that is not plain is left to the tokens: nothing is consumed or read past the end. */
static void fast_path_reads_only_plain_arrays(void **state)
{
    (void)state;
    enum { MAX_VALUES = 3 };
    static const struct {
        const char *text;
        uint32_t count;
        uint64_t last;
    } rows[] = {
        { "{\"k\":[7]}", 1, 7 },
        { "{\"k\":[0,10,200]}", 3, 200 },
        { "{\"k\": [ 1 , 2 ] }", 2, 2 },
        { "{\"k\":[9999999999999999999]}", 1, 9999999999999999999u },
        { "{\"k\":[10000000000000000000]}", 0, 0 },
        { "{\"k\":[1,2,3,4]}", 0, 0 },
        { "{\"k\":[]}", 0, 0 },
        { "{\"k\":[01]}", 0, 0 },
        { "{\"k\":[-1]}", 0, 0 },
        { "{\"k\":[1.5]}", 0, 0 },
        { "{\"k\":[1e5]}", 0, 0 },
        { "{\"k\":[1,]}", 0, 0 },
        { "{\"k\":[1 2]}", 0, 0 },
        { "{\"k\":[1,\n2]}", 0, 0 },
        { "{\"k\":[[1]]}", 0, 0 },
        { "{\"k\":{}}", 0, 0 },
        { "{\"k\":[1", 0, 0 },
        { "{\"k\":[", 0, 0 },
        { "{\"k\":", 0, 0 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        reader r;
        uint64_t v[MAX_VALUES];
        const char *after;
        open_text(&r, rows[i].text);
        assert_int_equal(heft_json_next(&r.j), HEFT_JSON_OBJECT);
        assert_int_equal(heft_json_next(&r.j), HEFT_JSON_KEY);
        if (heft_json_fast_u64s(&r.j, v, MAX_VALUES, &after) != rows[i].count)
            fail_msg("%s", rows[i].text);
        if (rows[i].count) {
            assert_true(v[rows[i].count - 1] == rows[i].last);
            heft_json_accept(&r.j, after);
            assert_int_equal(heft_json_next(&r.j), HEFT_JSON_OBJECT_END);
            assert_int_equal(heft_json_next(&r.j), HEFT_JSON_END);
        }
        close_reader(&r);
    }
}

static void fast_path_obeys_the_depth_limit(void **state)
{
    (void)state;
    reader r;
    uint64_t v;
    const char *after;
    open_bytes(&r, "{\"k\":[1]}", 9, 1);
    assert_int_equal(heft_json_next(&r.j), HEFT_JSON_OBJECT);
    assert_int_equal(heft_json_next(&r.j), HEFT_JSON_KEY);
    assert_int_equal(heft_json_fast_u64s(&r.j, &v, 1, &after), HEFT_JSON_NOT_PLAIN);
    assert_int_equal(heft_json_next(&r.j), HEFT_JSON_FAILED);
    assert_int_equal(r.err.status, HEFT_E_LIMIT);
    close_reader(&r);
}

static void writes_strings_with_required_escapes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t len;
        const char *json;
    } rows[] = {
        { NULL, 0, "\"\"" },
        { "plain, and longer than eight bytes", 34, "\"plain, and longer than eight bytes\"" },
        { "a\"b\\c/d", 7, "\"a\\\"b\\\\c/d\"" },
        { "\0\x1f\n\t\x7f", 5, "\"\\u0000\\u001f\\n\\t\x7f\"" },
        { "\b\f\r\x0b\x0e", 5, "\"\\b\\f\\r\\u000b\\u000e\"" },
        { "é😀", 6, "\"é😀\"" },
        { "\"\"", 2, "\"\\\"\\\"\"" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint8_t buf[80];
        heft_out o = { .buf = buf, .cap = sizeof buf };
        heft_json_put_str(&o, (heft_str){ rows[i].text, rows[i].len });
        assert_true(heft_str_is((heft_str){ (char *)buf, o.len }, rows[i].json));
    }
}

static void round_trips_strings(void **state)
{
    (void)state;
    uint32_t x = 2463534242;
    for (int round = 0; round < 3000; round++) {
        char text[60];
        size_t len = (size_t)round % sizeof text;
        for (size_t i = 0; i < len; i++) {
            x ^= x << 13;
            x ^= x >> 17;
            x ^= x << 5;
            text[i] = x & 0x300 ? "\"\\/\n\x01 ab"[x & 7] : (char)(x & 0x7F);
        }
        uint8_t buf[400];
        heft_out o = { .buf = buf, .cap = sizeof buf };
        heft_json_put_str(&o, (heft_str){ text, len });
        assert_int_equal(o.st, HEFT_OK);
        reader r;
        open_bytes(&r, (char *)buf, o.len, 8);
        assert_int_equal(heft_json_next(&r.j), HEFT_JSON_STRING);
        assert_true(heft_str_eq(r.j.text, (heft_str){ text, len }));
        assert_int_equal(heft_json_next(&r.j), HEFT_JSON_END);
        close_reader(&r);
    }
}

static void writes_64_bit_integers(void **state)
{
    (void)state;
    uint8_t buf[100];
    heft_out o = { .buf = buf, .cap = sizeof buf };
    heft_json_put_u64(&o, UINT64_MAX);
    heft_out_u8(&o, ' ');
    heft_json_put_i64(&o, INT64_MIN);
    heft_out_u8(&o, ' ');
    heft_json_put_i64(&o, INT64_MAX);
    heft_out_u8(&o, ' ');
    heft_json_put_i64(&o, 0);
    assert_true(heft_str_is((heft_str){ (char *)buf, o.len },
                            "18446744073709551615 -9223372036854775808 9223372036854775807 0"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_the_tokens_of_valid_documents),
        cmocka_unit_test(refuses_invalid_documents_with_offset_and_reason),
        cmocka_unit_test(accepts_nul_in_strings_only),
        cmocka_unit_test(refuses_every_truncation_within_bounds),
        cmocka_unit_test(stays_within_bounds_for_every_damaged_byte),
        cmocka_unit_test(finds_the_end_of_strings_of_any_length),
        cmocka_unit_test(borrows_strings_without_escapes),
        cmocka_unit_test(refuses_escapes_without_an_arena),
        cmocka_unit_test(reports_a_failed_allocation_for_an_escape),
        cmocka_unit_test(refuses_nesting_beyond_the_limit),
        cmocka_unit_test(skips_a_value),
        cmocka_unit_test(skips_without_an_arena_and_still_checks),
        cmocka_unit_test(reports_caller_errors_at_the_token),
        cmocka_unit_test(parses_only_plain_integers_as_u64),
        cmocka_unit_test(fast_path_reads_only_plain_arrays),
        cmocka_unit_test(fast_path_obeys_the_depth_limit),
        cmocka_unit_test(writes_strings_with_required_escapes),
        cmocka_unit_test(round_trips_strings),
        cmocka_unit_test(writes_64_bit_integers),
    };
    return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
