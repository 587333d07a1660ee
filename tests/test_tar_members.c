/* test_tar_members.c - the search for every header of a tar archive that some reader accepts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "grammar/tar_members.h"

enum {
    BLOCK = 512,
    NAME = 0,
    SIZE = 124,
    SUM = 148,
    TYPE = 156,
    LINK = 157,
    MAGIC = 257,
    PREFIX = 345
};

typedef struct archive {
    uint8_t bytes[16 * BLOCK];
    size_t len;
} archive;

static int sum_of(const uint8_t *header, bool is_signed)
{
    int sum = 0;
    for (size_t i = 0; i < BLOCK; i++)
        sum += i >= SUM && i < TYPE ? ' ' : is_signed ? (int8_t)header[i] : header[i];
    return sum;
}

static void put_sum(uint8_t *header, bool is_signed)
{
    char text[16];
    int sum = sum_of(header, is_signed);
    snprintf(text, sizeof text, "%s%o", sum < 0 ? "-" : "", (unsigned)(sum < 0 ? -sum : sum));
    memset(header + SUM, 0, 8);
    memcpy(header + SUM, text, strlen(text));
}

/* Append a header without a magic, and the content. */
static uint8_t *put_member(archive *a, const char *name, char type, const char *content)
{
    uint8_t *h = a->bytes + a->len;
    size_t len = strlen(content);
    memcpy(h + NAME, name, strlen(name));
    snprintf((char *)h + SIZE, 12, "%o", (unsigned)len);
    h[TYPE] = (uint8_t)type;
    put_sum(h, false);
    memcpy(h + BLOCK, content, len);
    a->len += BLOCK + (len + BLOCK - 1) / BLOCK * BLOCK;
    return h;
}

/* Check the members, "NAME:OFFSET+LENGTH;" for each, with "sparse" or "long" before the ";". */
static void assert_members(const archive *a, const char *expected)
{
    char text[400] = "";
    heft_tar_search t;
    heft_tar_found m;
    heft_tar_search_begin(&t, a->bytes, a->len);
    while (heft_tar_search_next(&t, &m)) {
        size_t at = strlen(text);
        snprintf(text + at, sizeof text - at, "%.*s:%u+%u%s%s;", (int)m.name.len, m.name.ptr,
                 (unsigned)m.data.offset, (unsigned)m.data.length, m.is_sparse ? "sparse" : "",
                 m.is_too_long ? "long" : "");
    }
    if (t.is_damaged)
        strcat(text, t.is_certain ? "damaged" : "uncertain");
    assert_string_equal(text, expected);
}

static void headers_need_no_magic(void **state)
{
    archive a = { .len = 0 };
    (void)state;
    put_member(&a, "v7", '\0', "content");
    memcpy(put_member(&a, "odd", 'Z', "x") + MAGIC, "abcdef", 6);
    assert_members(&a, "v7:512+7;damaged");
    put_sum(a.bytes + 1024, false);
    assert_members(&a, "v7:512+7;odd:1536+1;");
    assert_true(heft_tar_begins(a.bytes, a.len));
    assert_false(heft_tar_begins(a.bytes, BLOCK - 1));
}

static void sums_are_of_signed_or_unsigned_bytes(void **state)
{
    archive a = { .len = 0 };
    (void)state;
    uint8_t *h = put_member(&a, "a", '0', "content");
    h[1] = 0xFF;
    put_sum(h, true);
    assert_true(heft_tar_begins(a.bytes, a.len));
    h[SUM]++;
    assert_false(heft_tar_begins(a.bytes, a.len));
}

static void sums_may_be_negative(void **state)
{
    archive a = { .len = 0 };
    (void)state;
    uint8_t *h = put_member(&a, "a", '0', "");
    memset(h + NAME, 0xFF, 100);
    memset(h + LINK, 0xFF, 100);
    memset(h + PREFIX, 0xFF, 155);
    put_sum(h, true);
    int sum = sum_of(h, true);
    assert_int_equal(h[SUM], '-');
    assert_true(heft_tar_begins(a.bytes, a.len));
    memset(h + SUM, 0xFF, 8);
    h[SUM + 7] = (uint8_t)sum;
    h[SUM + 6] = (uint8_t)(sum >> 8 & 0xFF);
    assert_true(heft_tar_begins(a.bytes, a.len));
    h[SUM + 5] = 0xFE;
    assert_false(heft_tar_begins(a.bytes, a.len));
}

static void sizes_are_numbers_of_python(void **state)
{
    static const struct {
        const char *size, *members;
    } rows[] = {
        { " 7 ", "a:512+7;" },
        { "+7", "a:512+7;" },
        { "0o7", "a:512+7;" },
        { "\x1c\x37\x1f", "a:512+7;" },
        { "0_7", "a:512+7;" },
        { "\x80\0\0\0\0\0\0\0\0\0\0\7", "a:512+7;" },
        { "", "a:512+0;damaged" },
        { "7777777", "a:512+512long;" },
        { "-7", "a:512+512long;damaged" },
        { "9", "a:512+512long;damaged" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        archive a = { .len = 0 };
        uint8_t *h = put_member(&a, "a", '0', "content");
        memset(h + SIZE, 0, 12);
        memcpy(h + SIZE, rows[i].size, rows[i].size[0] == '\x80' ? 12 : strlen(rows[i].size));
        put_sum(h, false);
        assert_members(&a, rows[i].members);
    }
}

static void extensions_name_the_next_or_all_members(void **state)
{
    archive a = { .len = 0 };
    (void)state;
    put_member(&a, "pax", 'x', "14 path=a.pkl\n");
    put_member(&a, "b", '0', "content");
    put_member(&a, "long", 'L', "c.pkl");
    put_member(&a, "d", '0', "content");
    assert_members(&a, "a.pkl:1536+7;c.pkl:3584+7;");
    archive all = { .len = 0 };
    put_member(&all, "pax", 'g', "10 path=e\n10 size=5\n");
    put_member(&all, "f", '0', "content");
    put_member(&all, "g", '0', "content");
    assert_members(&all, "e:1536+7;e:2560+7;");
}

static void sizes_of_extensions_hide_no_header(void **state)
{
    archive a = { .len = 0 };
    (void)state;
    put_member(&a, "pax", 'x', "13 size=1024\n");
    put_member(&a, "a", '0', "");
    put_member(&a, "b", '0', "content");
    assert_members(&a, "a:1536+1024;b:2048+7;");
}

static void sparse_members_are_marked(void **state)
{
    archive a = { .len = 0 };
    (void)state;
    put_member(&a, "a", 'S', "content");
    put_member(&a, "pax", 'x', "22 GNU.sparse.major=1\n");
    put_member(&a, "b", '0', "content");
    put_member(&a, "c", '0', "content");
    assert_members(&a, "a:512+7sparse;b:2560+7sparse;c:3584+7;");
}

static void links_and_folders_have_no_content_to_skip(void **state)
{
    archive a = { .len = 0 };
    (void)state;
    memcpy(put_member(&a, "a/", '5', "") + SIZE, "7777", 4);
    put_sum(a.bytes, false);
    put_member(&a, "b", '0', "content");
    assert_members(&a, "a/:512+1024long;b:1024+7;");
}

static void headers_without_a_magic_after_other_blocks_are_uncertain(void **state)
{
    archive a = { .len = BLOCK };
    (void)state;
    memset(a.bytes, 'x', BLOCK);
    uint8_t *h = put_member(&a, "a", '0', "content");
    assert_true(heft_tar_begins(a.bytes, a.len));
    assert_members(&a, "a:1024+7;uncertain");
    memcpy(h + MAGIC, "ustar", 5);
    put_sum(h, false);
    assert_members(&a, "a:1024+7;damaged");
}

static void search_goes_on_after_the_end(void **state)
{
    archive a = { .len = BLOCK };
    (void)state;
    put_member(&a, "a", '0', "content");
    a.len += 2 * BLOCK;
    put_member(&a, "b", '0', "content");
    assert_true(heft_tar_begins(a.bytes, a.len));
    assert_members(&a, "a:1024+7;b:3072+7;");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(headers_need_no_magic),
        cmocka_unit_test(sums_are_of_signed_or_unsigned_bytes),
        cmocka_unit_test(sums_may_be_negative),
        cmocka_unit_test(sizes_are_numbers_of_python),
        cmocka_unit_test(extensions_name_the_next_or_all_members),
        cmocka_unit_test(sizes_of_extensions_hide_no_header),
        cmocka_unit_test(sparse_members_are_marked),
        cmocka_unit_test(links_and_folders_have_no_content_to_skip),
        cmocka_unit_test(headers_without_a_magic_after_other_blocks_are_uncertain),
        cmocka_unit_test(search_goes_on_after_the_end),
    };
    return cmocka_run_group_tests_name("tar_members", tests, NULL, NULL);
}
