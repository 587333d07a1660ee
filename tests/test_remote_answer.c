/* test_remote_answer.c - headers of HTTP answers, and the ETag of an object in several parts. */
#include <stdio.h>

#include "base/text.h"
#include "port/remote/session.h"
#include "test_memory.h"

#include "guarded.h"

static guarded memory;

/* Read a line that ends where the accessible memory ends. */
static void read_line(heft_answer *a, const char *line)
{
    size_t len = strlen(line);
    heft_answer_line(a, (heft_str){ guarded_last(&memory, line, len), len });
}

static heft_answer answer_of(const char *const *lines, size_t count)
{
    heft_answer a = { .has_range = false };
    for (size_t i = 0; i < count; i++)
        read_line(&a, lines[i]);
    return a;
}

static bool has_md5 = true;

bool __real_heft_md5(uint8_t out[HEFT_MD5_BYTES], const void *p, size_t len);
bool __wrap_heft_md5(uint8_t out[HEFT_MD5_BYTES], const void *p, size_t len);
bool __wrap_heft_md5(uint8_t out[HEFT_MD5_BYTES], const void *p, size_t len)
{
    return has_md5 && __real_heft_md5(out, p, len);
}

static void ranges_are_read_whole_or_not_at_all(void **state)
{
    enum { NONE = 0, RANGE = 1, TOTAL = 2 };
    static const struct {
        const char *value;
        unsigned has;
        uint64_t first, last, total;
    } cases[] = {
        { "bytes 0-99/200", RANGE | TOTAL, 0, 99, 200 },
        { "bytes 5-5/6", RANGE | TOTAL, 5, 5, 6 },
        { "bytes 90-199/200", RANGE | TOTAL, 90, 199, 200 },
        { "bytes 0-9/*", RANGE, 0, 9, 0 },
        { "bytes */200", TOTAL, 0, 0, 200 },
        { "bytes */0", TOTAL, 0, 0, 0 },
        { "bytes 0-1/9223372036854775807", RANGE | TOTAL, 0, 1, INT64_MAX },
        { "bytes 0-1/9223372036854775808", NONE, 0, 1, 0 },
        { "bytes 0-1/92233720368547758070", NONE, 0, 1, 0 },
        { "bytes 9223372036854775807-9223372036854775807/*", RANGE, INT64_MAX, INT64_MAX, 0 },
        { "bytes 9223372036854775808-9223372036854775808/*", NONE, 0, 0, 0 },
        { "bytes 0-9223372036854775808/*", NONE, 0, 0, 0 },
        { "bytes 0-99/99", NONE, 0, 99, 99 }, /* the last byte is past the end */
        { "bytes 0-99/100", RANGE | TOTAL, 0, 99, 100 },
        { "bytes 6-5/10", NONE, 6, 5, 0 },
        { "bytes 0-9/10 ", RANGE | TOTAL, 0, 9, 10 }, /* the value is trimmed */
        { "bytes 0-9/10x", NONE, 0, 9, 10 },
        { "bytes 0-9*", NONE, 0, 9, 0 },
        { "0-9/10", NONE, 0, 9, 10 },
        { "bytes 0-9/**", NONE, 0, 9, 0 },
        { "bytes 0-9/", NONE, 0, 9, 0 },
        { "bytes 0-9", NONE, 0, 9, 0 },
        { "bytes 0/10", NONE, 0, 0, 0 },
        { "bytes -9/10", NONE, 0, 0, 0 },
        { "bytes 0-/10", NONE, 0, 0, 0 },
        { "bytes 0-:/10", NONE, 0, 0, 0 },
        { "bytes /-9/10", NONE, 0, 0, 0 },
        { "bytes */*", NONE, 0, 0, 0 },
        { "bytes */", NONE, 0, 0, 0 },
        { "bytes *", NONE, 0, 0, 0 },
        { "bytes */20x", NONE, 0, 0, 20 },
        { "byte 0-9/10", NONE, 0, 0, 0 },
        { "bytes", NONE, 0, 0, 0 },
        { "", NONE, 0, 0, 0 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char line[128];
        snprintf(line, sizeof line, "Content-Range: %s%s", cases[i].value, i % 2 ? "\r\n" : "");
        /* The range of an earlier line must not remain. */
        heft_answer a = answer_of((const char *[]){ "content-range: bytes 0-0/1", line }, 2);
        unsigned has = (a.has_range ? RANGE : 0u) | (a.has_total ? TOTAL : 0u);
        bool range = has & RANGE, total = has & TOTAL;
        if (has != cases[i].has || (range && a.first != cases[i].first) ||
            (range && a.last != cases[i].last) || (total && a.total != cases[i].total))
            fail_msg("%s: %s%s, %llu to %llu of %llu", cases[i].value, range ? "range " : "",
                     total ? "total" : "", (unsigned long long)a.first, (unsigned long long)a.last,
                     (unsigned long long)a.total);
    }
}

static void names_ignore_case_and_values_are_trimmed(void **state)
{
    static const struct {
        const char *line, *etag;
    } cases[] = {
        { "ETag:\"a\"", "\"a\"" },
        { "etag: \t\"a\" \t\r\n", "\"a\"" },
        { "ETAG: a b\n", "a b" },
        { "EtAg: x:y", "x:y" },
        { "etag:", "" },
        { "etag: \r\n", "" },
        { "etag", "" },
        { "etag a", "" },
        { "eta: a", "" },
        { "etags: a", "" },
        { "etah: a", "" },
        { " etag: a", "" },
        { "xetag: a", "" },
        { "", "" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        heft_answer a = answer_of(&cases[i].line, 1);
        assert_string_equal(a.etag, cases[i].etag);
    }
    /* 'A' and 'Z' are the first and the last letter; '@' and '[' are the neighbours. */
    heft_answer a = answer_of((const char *[]){ "LAST-MODIFIED: Z", "X-LINKED-ETAG: L" }, 2);
    assert_string_equal(a.modified, "Z");
    assert_string_equal(a.linked, "L");
}

static void values_that_do_not_fit_are_left_out(void **state)
{
    static const struct {
        const char *name;
        size_t offset, size;
    } fields[] = {
        { "etag: ", offsetof(heft_answer, etag), sizeof((heft_answer *)0)->etag },
        { "x-linked-etag: ", offsetof(heft_answer, linked), sizeof((heft_answer *)0)->linked },
        { "last-modified: ", offsetof(heft_answer, modified), sizeof((heft_answer *)0)->modified },
    };
    (void)state;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        for (size_t len = fields[i].size - 1; len <= fields[i].size; len++) {
            char line[512];
            heft_answer a = { .has_range = false };
            snprintf(line, sizeof line, "%s%0*d", fields[i].name, (int)len, 7);
            read_line(&a, line);
            const char *field = (const char *)&a + fields[i].offset;
            assert_int_equal(strlen(field), len < fields[i].size ? len : 0);
        }
}

static void a_status_line_clears_all_but_the_stated_digest(void **state)
{
    (void)state;
    static const char *const lines[] = { "HTTP/1.1 302 Found",
                                         "etag: a",
                                         "x-linked-etag: \"first\"",
                                         "last-modified: b",
                                         "content-range: bytes 0-9/10",
                                         "content-encoding: gzip",
                                         "HTTP/2 200" };
    heft_answer a = answer_of(lines, sizeof lines / sizeof *lines - 1);
    assert_string_equal(a.etag, "a");
    assert_string_equal(a.modified, "b");
    assert_true(a.has_range && a.has_total && a.is_encoded);
    read_line(&a, "HTTP");
    read_line(&a, "HTTQ/1.1 200");
    assert_string_equal(a.etag, "a");
    read_line(&a, "HTTP/");
    assert_true(!*a.etag && !*a.modified && !a.has_range && !a.has_total && !a.is_encoded);
    assert_string_equal(a.linked, "\"first\"");
    read_line(&a, "x-linked-etag: \"second\"");
    assert_string_equal(a.linked, "\"first\"");
}

static void other_encodings_than_identity_are_noticed(void **state)
{
    static const struct {
        const char *line;
        bool is_encoded;
    } cases[] = {
        { "content-encoding: gzip", true },      { "content-encoding: identity", false },
        { "content-encoding:", false },          { "content-encoding: identitx", true },
        { "content-encoding: identity2", true }, { "content-encoding: identit", true },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(answer_of(&cases[i].line, 1).is_encoded, cases[i].is_encoded);
}

/* The MD5s of "a" and "b", and the MD5 of the two MD5s, were computed by openssl. */
static void an_etag_of_parts_needs_md5s_in_quotation_marks(void **state)
{
    static const struct {
        const char *first, *expected;
    } cases[] = {
        { "\"0cc175b9c0f1b6a831c399e269772661\"", "\"96e024ba2074fe77e8e965ba43a704be-2\"" },
        { "0cc175b9c0f1b6a831c399e269772661", NULL },
        { "\"0cc175b9c0f1b6a831c399e26977266\"", NULL },
        { "\"0cc175b9c0f1b6a831c399e2697726611\"", NULL },
        { "\"0cc175b9c0f1b6a831c399e269772661\"x", NULL },
        { "'0cc175b9c0f1b6a831c399e269772661\"", NULL },
        { "\"0cc175b9c0f1b6a831c399e269772661'", NULL },
        { "\"0cc175b9c0f1b6a831c399e26977266g\"", NULL },
        { "", NULL },
    };
    char etags[2][64] = { "", "\"92eb5ffee6ae2fec3ad71c777531578f\"" }, out[HEFT_S3_ETAG];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(etags[0], sizeof etags[0], "%s", cases[i].first);
        bool known = heft_s3_etag(out, etags[0], sizeof etags[0], 2);
        assert_int_equal(known, cases[i].expected != NULL);
        if (known)
            assert_string_equal(out, cases[i].expected);
    }
    snprintf(etags[0], sizeof etags[0], "%s", cases[0].first);
    snprintf(etags[1], sizeof etags[1], "%s", cases[1].first);
    assert_false(heft_s3_etag(out, etags[0], sizeof etags[0], 2)); /* the last ETag, too */
    assert_true(heft_s3_etag(out, etags[0], sizeof etags[0], 1));
    has_md5 = false;
    assert_false(heft_s3_etag(out, etags[0], sizeof etags[0], 1));
    has_md5 = true;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_are_read_whole_or_not_at_all),
        cmocka_unit_test(names_ignore_case_and_values_are_trimmed),
        cmocka_unit_test(values_that_do_not_fit_are_left_out),
        cmocka_unit_test(a_status_line_clears_all_but_the_stated_digest),
        cmocka_unit_test(other_encodings_than_identity_are_noticed),
        cmocka_unit_test(an_etag_of_parts_needs_md5s_in_quotation_marks),
    };
    memory = guarded_make();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
