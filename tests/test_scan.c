/* test_scan.c - scans for pickles: sources of every kind, limits, and failing memory.  What a scan
 * finds is tested by py/check_scan.py. */
#include <heft/check.h>
#include <heft/heft_ext.h>

#include <stdio.h>

#include "test_bytes.h"
#include "test_memory.h"

static const char evil[] = "cos\nsystem\n.";

/* ---- a source without a mapping ---- */

typedef struct plain_source {
    heft_source base;
    const char *bytes;
    bool fails, has_changed;
} plain_source;

static heft_status plain_read(heft_source *s, uint64_t offset, void *buf, size_t len,
                              heft_error *err)
{
    const plain_source *p = (const plain_source *)(void *)s;
    assert_true(offset <= s->size && len <= s->size - offset);
    if (p->fails)
        *err = (heft_error){ .status = HEFT_E_IO, .message = "the test fails" };
    else
        memcpy(buf, p->bytes + offset, len);
    return p->fails ? HEFT_E_IO : HEFT_OK;
}

static heft_status plain_unchanged(heft_source *s, heft_error *err)
{
    const plain_source *p = (const plain_source *)(void *)s;
    if (p->has_changed)
        *err = (heft_error){ .status = HEFT_E_IO, .message = "the test changes" };
    return p->has_changed ? HEFT_E_IO : HEFT_OK;
}

static void plain_close(heft_source *s)
{
    (void)s;
}

static const heft_source_ops plain_ops = { .size = sizeof(heft_source_ops),
                                           .read = plain_read,
                                           .close = plain_close,
                                           .check_unchanged = plain_unchanged };

static plain_source plain(const char *bytes, uint64_t size)
{
    return (plain_source){ .base = { &plain_ops, size }, .bytes = bytes };
}

static void reads_sources_without_a_mapping(void **state)
{
    (void)state;
    heft_scan_result result;
    plain_source s = plain(evil, sizeof evil - 1);
    assert_int_equal(heft_source_scan(&result, &s.base, NULL, NULL), HEFT_OK);
    assert_int_equal(result.findings, 1);
    assert_int_equal(result.pickles, 1);
    s = plain("", 0);
    assert_int_equal(heft_source_scan(&result, &s.base, NULL, NULL), HEFT_OK);
    assert_int_equal(result.findings, 0);
    assert_int_equal(heft_source_scan(NULL, &s.base, NULL, NULL), HEFT_OK);
}

static void reports_failing_and_changing_sources(void **state)
{
    (void)state;
    heft_error err;
    plain_source s = plain(evil, sizeof evil - 1);
    s.fails = true;
    assert_int_equal(heft_source_scan(NULL, &s.base, NULL, &err), HEFT_E_IO);
    assert_string_equal(err.message, "the test fails");
    s.fails = false;
    s.has_changed = true;
    assert_int_equal(heft_source_scan(NULL, &s.base, NULL, &err), HEFT_E_IO);
    assert_string_equal(err.message, "the test changes");
}

static void refuses_wrong_options(void **state)
{
    (void)state;
    heft_error err;
    plain_source s = plain(evil, sizeof evil - 1);
    heft_scan_options o = HEFT_SCAN_OPTIONS_INIT;
    o.size = 3;
    assert_int_equal(heft_source_scan(NULL, &s.base, &o, &err), HEFT_E_ARGUMENT);
}

/* ---- archives ---- */

typedef struct archive { /* of local headers only, without a directory */
    char bytes[4096];
    size_t size;
} archive;

static void put_u16(char *to, size_t v)
{
    to[0] = (char)v;
    to[1] = (char)(v >> 8);
}

/* Append a stored member. */
static void add_member(archive *a, const char *name, const void *data, size_t size)
{
    char head[30] = "PK\3\4";
    put_u16(head + 18, size);
    put_u16(head + 22, size);
    put_u16(head + 26, strlen(name));
    memcpy(a->bytes + a->size, head, sizeof head);
    strcpy(a->bytes + a->size + sizeof head, name);
    memcpy(a->bytes + a->size + sizeof head + strlen(name), data, size);
    a->size += sizeof head + strlen(name) + size;
}

static void print_finding(void *ctx, const heft_scan_finding *f)
{
    char *to = ctx;
    size_t at = strlen(to);
    snprintf(to + at, 500 - at, "%s %.*s;", f->rule, (int)f->member.len,
             f->member.len ? f->member.ptr : "");
}

static void scan_archive(char text[500], const archive *a, const heft_host *host)
{
    heft_source *s;
    heft_scan_options o = HEFT_SCAN_OPTIONS_INIT;
    text[0] = 0;
    o.on_finding = print_finding;
    o.ctx = text;
    o.host = host;
    assert_int_equal(heft_source_open_memory(&s, a->bytes, a->size, NULL), HEFT_OK);
    heft_status st = heft_source_scan(NULL, s, &o, NULL);
    assert_true(!st || st == HEFT_E_NOMEM);
    if (st)
        text[0] = 0;
    heft_source_close(s);
}

/* Wrap an archive into another, `times` times. */
static archive nested(int times)
{
    archive a = { .size = 0 };
    add_member(&a, "m.pkl", evil, sizeof evil - 1);
    for (int i = 0; i < times; i++) {
        archive outer = { .size = 0 };
        add_member(&outer, "a.zip", a.bytes, a.size);
        a = outer;
    }
    return a;
}

static void searches_three_archives_deep(void **state)
{
    (void)state;
    char text[500];
    archive a = nested(2);
    scan_archive(text, &a, NULL);
    assert_string_equal(text, "pickle/import a.zip!/a.zip!/m.pkl;");
    a = nested(3);
    scan_archive(text, &a, NULL);
    assert_string_equal(text, "pickle/unreadable a.zip!/a.zip!/a.zip!/m.pkl;");
}

/* Readers may begin with any of the directories; eight are followed. */
static void reports_directories_that_are_not_searched(void **state)
{
    enum { FOLLOWED = 8 };
    static const char end[22] = "PK\5\6";
    (void)state;
    for (int ends = FOLLOWED; ends <= FOLLOWED + 1; ends++) {
        char text[500];
        archive a = { .size = 0 };
        add_member(&a, "m.txt", "text", 4);
        for (int i = 0; i < ends; i++, a.size += sizeof end)
            memcpy(a.bytes + a.size, end, sizeof end);
        scan_archive(text, &a, NULL);
        assert_string_equal(text, ends > FOLLOWED ? "pickle/unreadable ;" : "");
    }
}

static void reports_members_in_order(void **state)
{
    (void)state;
    char text[500];
    archive a = { .size = 0 };
    add_member(&a, "b.pkl", evil, sizeof evil - 1);
    add_member(&a, "a.pkl", "\x80\x02}.", 4);
    add_member(&a, "c.pkl", "\x80\x02\x82\x01.", 5);
    scan_archive(text, &a, NULL);
    assert_string_equal(text, "pickle/import b.pkl;pickle/extension c.pkl;");
}

static void survives_failing_memory(void **state)
{
    (void)state;
    char text[500] = "";
    archive a = nested(1);
    for (uint32_t fail_at = 1; !text[0]; fail_at++) {
        test_memory t;
        test_memory_init(&t, fail_at);
        heft_host host = { .size = sizeof host, .allocator = &t.al };
        scan_archive(text, &a, &host);
        assert_int_equal(t.live, 0);
        assert_true(fail_at < 100);
    }
}

/* ---- hostile sizes ---- */

static void ends_when_bytes_are_shared_by_members(void **state)
{
    (void)state;
    enum { MEMBERS = 60000, ENTRY = 47, PICKLE = 200000 };
    size_t members = getenv("HEFT_TEST_FEWER") ? MEMBERS / 4 : MEMBERS,
           size = 31 + PICKLE + members * ENTRY + 22;
    char text[500] = "", *bytes = calloc(1, size), *p = bytes;
    assert_non_null(bytes);
    memcpy(p, "PK\3\4", 4);
    p[26] = 1;
    p[30] = 'x';
    memset(p + 31, 'N', PICKLE);
    p += 31 + PICKLE;
    for (size_t i = 0; i < members; i++, p += ENTRY) { /* each member is a byte shorter */
        memcpy(p, "PK\1\2", 4);
        heft_test_put(p + 20, PICKLE - i, 4);
        p[28] = 1;
        p[46] = 'x';
    }
    memcpy(p, "PK\5\6", 4);
    heft_test_put(p + 12, members * ENTRY, 4);
    heft_test_put(p + 16, 31 + PICKLE, 4);
    plain_source s = plain(bytes, size);
    heft_scan_options o = HEFT_SCAN_OPTIONS_INIT;
    o.on_finding = print_finding;
    o.ctx = text;
    assert_int_equal(heft_source_scan(NULL, &s.base, &o, NULL), HEFT_OK);
    assert_string_equal(text, "pickle/unreadable ;pickle/unreadable x;");
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_sources_without_a_mapping),
        cmocka_unit_test(reports_failing_and_changing_sources),
        cmocka_unit_test(refuses_wrong_options),
        cmocka_unit_test(searches_three_archives_deep),
        cmocka_unit_test(reports_directories_that_are_not_searched),
        cmocka_unit_test(reports_members_in_order),
        cmocka_unit_test(survives_failing_memory),
        cmocka_unit_test(ends_when_bytes_are_shared_by_members),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
