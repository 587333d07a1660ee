/* test_zip_members.c - the members of a zip archive that any reader could see. */
#include "grammar/zip.h"

#include <stdio.h>

#include "base/out.h"
#include "base/text.h"
#include "test_memory.h"

enum { MAX_BYTES = 1 << 18 };

typedef struct archive {
    uint8_t bytes[MAX_BYTES];
    heft_out o;
    char found[2000]; /* "name@data+stored", separated by blanks */
    bool has_more, has_overlaps;
} archive;

static archive the_archive;

static archive *empty_archive(void)
{
    archive *a = &the_archive;
    memset(a, 0, sizeof *a);
    a->o = (heft_out){ .buf = a->bytes, .cap = MAX_BYTES };
    return a;
}

typedef struct member {
    const char *name;
    uint32_t stored; /* number that the header states */
    uint16_t method, flags;
    uint16_t extra; /* bytes of extra fields in the header */
} member;

/* Append a local header; return its offset. */
static uint32_t put_local(archive *a, member m)
{
    uint32_t at = (uint32_t)a->o.len;
    heft_out_u32(&a->o, 0x04034B50);
    heft_out_u16(&a->o, 20);
    heft_out_u16(&a->o, m.flags);
    heft_out_u16(&a->o, m.method);
    heft_out_fill(&a->o, 0, 8);
    heft_out_u32(&a->o, m.stored);
    heft_out_u32(&a->o, m.stored);
    heft_out_u16(&a->o, (uint16_t)strlen(m.name));
    heft_out_u16(&a->o, m.extra);
    heft_out_str(&a->o, heft_lit(m.name));
    heft_out_fill(&a->o, 'e', m.extra);
    return at;
}

/* Append a directory entry with the extra bytes, and a comment of as many bytes. */
static void put_entry(archive *a, member m, uint32_t head, const void *extra, uint16_t extra_len,
                      uint16_t comment)
{
    heft_out_u32(&a->o, 0x02014B50);
    heft_out_u32(&a->o, 20);
    heft_out_u16(&a->o, m.flags);
    heft_out_u16(&a->o, m.method);
    heft_out_fill(&a->o, 0, 8);
    heft_out_u32(&a->o, m.stored);
    heft_out_u32(&a->o, extra_len == 28 ? UINT32_MAX : 7); /* content; zip64 with three numbers */
    heft_out_u16(&a->o, (uint16_t)strlen(m.name));
    heft_out_u16(&a->o, extra_len);
    heft_out_u16(&a->o, comment);
    heft_out_fill(&a->o, 0, 8);
    heft_out_u32(&a->o, head);
    heft_out_str(&a->o, heft_lit(m.name));
    heft_out_bytes(&a->o, extra, extra_len);
    heft_out_fill(&a->o, 'c', comment);
}

static void put_end(archive *a, uint32_t bytes, uint32_t offset)
{
    heft_out_u32(&a->o, 0x06054B50);
    heft_out_fill(&a->o, 0, 8);
    heft_out_u32(&a->o, bytes);
    heft_out_u32(&a->o, offset);
    heft_out_u16(&a->o, 0);
}

static void find(archive *a)
{
    test_memory t;
    heft_zip_members out;
    test_memory_init(&t, 0);
    heft_memory m = { .al = &t.al, .limit = UINT64_MAX };
    a->found[0] = '\0';
    assert_true(heft_zip_find_members(&out, &m, a->bytes, a->o.len));
    for (uint32_t i = 0; i < out.members.len; i++) {
        const heft_zip_found *f = (const heft_zip_found *)out.members.ptr + i;
        size_t len = strlen(a->found);
        assert_true(f->data + f->stored <= a->o.len);
        snprintf(a->found + len, sizeof a->found - len, "%s%.*s@%u+%u%s", len ? " " : "",
                 (int)f->name.len, f->name.ptr, (unsigned)f->data, (unsigned)f->stored,
                 f->claims_encrypted ? "!" : "");
    }
    a->has_more = out.has_more_end_records;
    a->has_overlaps = out.has_overlaps;
    heft_vec_free(&m, &out.members, sizeof(heft_zip_found));
    assert_int_equal(t.live, 0);
}

static void expect(archive *a, const char *members)
{
    find(a);
    assert_string_equal(a->found, members);
}

/* ---- local headers -------------------------------------------------------------------------- */

static void members_without_a_directory_are_found(void **state)
{
    (void)state;
    archive *a = empty_archive();
    expect(a, "");
    put_local(a, (member){ .name = "a", .stored = 3 });
    heft_out_str(&a->o, heft_lit("abc"));
    heft_out_str(&a->o, heft_lit("between"));
    put_local(a, (member){ .name = "bb", .stored = 2, .extra = 5, .flags = 1 });
    heft_out_str(&a->o, heft_lit("de"));
    expect(a, "a@31+3 bb@78+2!");
    a->o.len--; /* the stated size does not fit: up to the end */
    expect(a, "a@31+3 bb@78+1!");
    a->o.len = 78 - 5; /* the extra field is missing */
    expect(a, "a@31+3 bb@73+0!");
    a->o.len = 78 - 6; /* the name is incomplete: no member */
    expect(a, "a@31+3");
    a->o.len = 41 + 29; /* the header is incomplete */
    expect(a, "a@31+3");
}

static void members_without_a_size_reach_to_the_next(void **state)
{
    (void)state;
    archive *a = empty_archive();
    put_local(a, (member){ .name = "a", .stored = 3, .flags = 8 });
    heft_out_str(&a->o, heft_lit("abcdef"));
    expect(a, "a@31+6");
    a = empty_archive();
    put_local(a, (member){ .name = "a", .stored = 0 });
    heft_out_str(&a->o, heft_lit("abcdef"));
    expect(a, "a@31+6");
    a = empty_archive();
    put_local(a, (member){ .name = "a", .stored = 7 });
    heft_out_str(&a->o, heft_lit("abcdef"));
    expect(a, "a@31+6");
    a = empty_archive();
    heft_out_str(&a->o, heft_lit("PK\3\4 no header, but four bytes that look like it"));
    put_local(a, (member){ .name = "a", .stored = 1 });
    heft_out_str(&a->o, heft_lit("x"));
    expect(a, "a@79+1");
}

/* ---- directories ---------------------------------------------------------------------------- */

static void a_directory_names_the_members(void **state)
{
    (void)state;
    archive *a = empty_archive();
    member m = { .name = "a", .stored = 4, .method = 8 };
    uint32_t head = put_local(a, m);
    heft_out_str(&a->o, heft_lit("data"));
    uint32_t directory = (uint32_t)a->o.len;
    put_entry(a, m, head, "", 0, 0);
    put_end(a, (uint32_t)a->o.len - directory, directory);
    expect(a, "a@31+4");
    assert_false(a->has_more);
    a->bytes[directory + 46] = 'b'; /* another name in the directory: both are listed */
    expect(a, "b@31+4 a@31+4");
    a->bytes[directory + 46] = 'a';
    a->bytes[directory + 20] = 3; /* another size */
    expect(a, "a@31+3 a@31+4");
    a->bytes[directory + 20] = 4;
    a->bytes[directory + 10] = 0; /* another method */
    expect(a, "a@31+4 a@31+4");
    a->bytes[directory + 10] = 8;
    a->bytes[directory + 8] = 1; /* encrypted, says the directory */
    expect(a, "a@31+4!");
    a->bytes[directory + 8] = 0;
    a->bytes[directory + 23] = 0x7F; /* past the end */
    find(a);
    assert_non_null(strstr(a->found, "a@31+4"));
    a->bytes[directory + 23] = 0;
    a->bytes[directory + 42] = 1; /* no header there */
    expect(a, "a@31+4");
    a->bytes[directory + 42] = 0;
    a->bytes[directory] = 'Q'; /* no entry there */
    expect(a, "a@31+4");
}

static void two_entries_may_lie_behind_each_other(void **state)
{
    (void)state;
    archive *a = empty_archive();
    member m = { .name = "a", .stored = 1, .flags = 8 }, n = { .name = "b", .stored = 2 };
    uint32_t first = put_local(a, m);
    heft_out_str(&a->o, heft_lit("xyz"));
    uint32_t second = put_local(a, n);
    heft_out_str(&a->o, heft_lit("uv"));
    uint32_t directory = (uint32_t)a->o.len;
    put_entry(a, m, first, "\7\0\2\0xx", 6, 3);
    put_entry(a, n, second, "", 0, 0);
    put_end(a, (uint32_t)a->o.len - directory, directory);
    find(a);
    assert_string_equal(a->found, "a@31+1 b@65+2");
}

static void members_of_a_directory_may_share_bytes(void **state)
{
    (void)state;
    for (uint32_t more = 0; more < 2; more++) {
        archive *a = empty_archive();
        member m = { .name = "a", .stored = 3 + more }, n = { .name = "b", .stored = 2 };
        uint32_t first = put_local(a, m);
        heft_out_str(&a->o, heft_lit("xyz"));
        uint32_t second = put_local(a, n);
        heft_out_str(&a->o, heft_lit("uv"));
        uint32_t directory = (uint32_t)a->o.len;
        put_entry(a, m, first, "", 0, 0);
        put_entry(a, n, second, "", 0, 0);
        put_end(a, (uint32_t)a->o.len - directory, directory);
        find(a);
        assert_int_equal(a->has_overlaps, more);
    }
}

static void bytes_may_precede_the_archive(void **state)
{
    enum { BEFORE = 100 };
    (void)state;
    archive *a = empty_archive();
    member m = { .name = "a", .stored = 4, .flags = 8 };
    heft_out_fill(&a->o, '.', BEFORE);
    put_local(a, m);
    heft_out_str(&a->o, heft_lit("data"));
    uint32_t directory = (uint32_t)a->o.len;
    put_entry(a, m, 0, "", 0, 0); /* all offsets count from the archive's first byte */
    put_end(a, (uint32_t)a->o.len - directory, directory - BEFORE);
    expect(a, "a@131+4");
}

static void zip64_numbers_replace_numbers_that_do_not_fit(void **state)
{
    static const uint8_t two[20] = { 1, 0, 16, 0, 4, 0, 0, 0, 0, 0, 0, 0 };
    static const uint8_t three[28] = { 1, 0, 24, 0, 9, 9, 9, 9, 9, 9, 9, 9, 4 };
    static const uint8_t later[24] = { 7, 7, 0, 0, 1, 0, 16, 0, 4 };
    static const struct {
        const uint8_t *extra;
        uint16_t len;
        const char *found;
    } rows[] = {
        { two, 20, "a@31+4" },   { three, 28, "a@31+4" }, { later, 24, "a@31+4" },
        { two, 19, "a@31+121" }, { two, 3, "a@31+105" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        archive *a = empty_archive();
        member m = { .name = "a", .stored = UINT32_MAX, .flags = 8 };
        put_local(a, m);
        heft_out_str(&a->o, heft_lit("data"));
        uint32_t directory = (uint32_t)a->o.len;
        put_entry(a, m, UINT32_MAX, rows[i].extra, rows[i].len, 0);
        put_end(a, (uint32_t)a->o.len - directory, directory);
        find(a);
        bool is_read = i < 3; /* otherwise the header is found without the directory */
        if (is_read)
            assert_string_equal(a->found, rows[i].found);
        else
            assert_null(strstr(a->found, "a@31+4 "));
    }
}

static void a_zip64_record_is_followed(void **state)
{
    (void)state;
    for (int stated = 0; stated < 3; stated++) {
        archive *a = empty_archive();
        member m = { .name = "a", .stored = 4, .flags = 8 };
        put_local(a, m);
        heft_out_str(&a->o, heft_lit("data"));
        uint32_t directory = (uint32_t)a->o.len;
        put_entry(a, m, 0, "", 0, 0);
        uint64_t end64 = a->o.len;
        heft_out_u32(&a->o, stated == 2 ? 0 : 0x06064B50);
        heft_out_fill(&a->o, 0, 36);
        heft_out_u64(&a->o, end64 - directory);
        heft_out_u64(&a->o, directory);
        heft_out_u32(&a->o, 0x07064B50);
        heft_out_u32(&a->o, 0);
        heft_out_u64(&a->o, stated ? end64 : 12345678); /* the record precedes the locator */
        heft_out_u32(&a->o, 1);
        put_end(a, UINT32_MAX, UINT32_MAX);
        find(a);
        if (stated < 2)
            assert_string_equal(a->found, "a@31+4");
        else
            assert_null(strstr(a->found, "a@31+4 "));
    }
}

/* ---- end records ---------------------------------------------------------------------------- */

static void the_last_eight_end_records_are_followed(void **state)
{
    (void)state;
    for (int n = 7; n <= 9; n++) {
        archive *a = empty_archive();
        for (int i = 0; i < n; i++)
            put_end(a, 0, 0);
        expect(a, "");
        assert_int_equal(a->has_more, n > 8);
    }
}

static void an_end_record_is_looked_for_in_the_last_64_kib(void **state)
{
    static const struct {
        size_t before, after;
        bool has_end;
    } rows[] = {
        { 0, 0, true },      { 10, 65535, true },      { 0, 65535, true },
        { 1, 65536, false }, { 100000, 65536, false }, { 100000, 1, true },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        archive *a = empty_archive();
        heft_out_fill(&a->o, '.', rows[i].before);
        put_end(a, 0, 0);
        heft_out_fill(&a->o, '.', rows[i].after);
        assert_int_equal(heft_zip_has_end(a->bytes, a->o.len), rows[i].has_end);
    }
    archive *a = empty_archive();
    put_end(a, 0, 0);
    assert_false(heft_zip_has_end(a->bytes, a->o.len - 1));
    assert_true(heft_zip_begins(a->bytes, 4));
    assert_false(heft_zip_begins(a->bytes, 3));
    a->bytes[3] = 7;
    assert_false(heft_zip_begins(a->bytes, 22));
    a = empty_archive();
    put_local(a, (member){ .name = "" });
    assert_true(heft_zip_begins(a->bytes, 4));
}

static void members_are_sorted_without_doubles(void **state)
{
    (void)state;
    archive *a = empty_archive();
    member m = { .name = "a", .stored = 1 }, n = { .name = "b", .stored = 1 };
    uint32_t first = put_local(a, m);
    heft_out_u8(&a->o, 'x');
    uint32_t second = put_local(a, n);
    heft_out_u8(&a->o, 'y');
    uint32_t directory = (uint32_t)a->o.len;
    put_entry(a, n, second, "", 0, 0);
    put_entry(a, m, first, "", 0, 0);
    put_entry(a, n, second, "", 0, 0);
    put_end(a, (uint32_t)a->o.len - directory, directory);
    expect(a, "a@31+1 b@63+1");
}

static void every_failed_allocation_is_reported(void **state)
{
    (void)state;
    archive *a = empty_archive();
    for (int i = 0; i < 20; i++) {
        put_local(a, (member){ .name = "a", .stored = 1 });
        heft_out_u8(&a->o, 'x');
    }
    bool ok = false;
    for (uint32_t n = 1; !ok; n++) {
        test_memory t;
        heft_zip_members out;
        test_memory_init(&t, n);
        heft_memory m = { .al = &t.al, .limit = UINT64_MAX };
        ok = heft_zip_find_members(&out, &m, a->bytes, a->o.len);
        assert_int_equal(ok, t.calls < n);
        heft_vec_free(&m, &out.members, sizeof(heft_zip_found));
        assert_int_equal(t.live, 0);
        assert_in_range(n, 1, 100);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_without_a_directory_are_found),
        cmocka_unit_test(members_without_a_size_reach_to_the_next),
        cmocka_unit_test(a_directory_names_the_members),
        cmocka_unit_test(two_entries_may_lie_behind_each_other),
        cmocka_unit_test(members_of_a_directory_may_share_bytes),
        cmocka_unit_test(bytes_may_precede_the_archive),
        cmocka_unit_test(zip64_numbers_replace_numbers_that_do_not_fit),
        cmocka_unit_test(a_zip64_record_is_followed),
        cmocka_unit_test(the_last_eight_end_records_are_followed),
        cmocka_unit_test(an_end_record_is_looked_for_in_the_last_64_kib),
        cmocka_unit_test(members_are_sorted_without_doubles),
        cmocka_unit_test(every_failed_allocation_is_reported),
    };
    return cmocka_run_group_tests_name("zip_members", tests, NULL, NULL);
}
