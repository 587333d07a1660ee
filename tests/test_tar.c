/* test_tar.c - tar archives: headers, numbers, members that describe the next member. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "grammar/tar.h"

enum { BLOCK = 512, MAX_BYTES = 4 << 20 };

typedef struct archive {
    uint8_t bytes[MAX_BYTES];
    size_t len;
    heft_window_bytes in;
    heft_error err;
    heft_tar t;
} archive;

static archive the_archive;

static archive *empty_archive(void)
{
    memset(&the_archive, 0, sizeof the_archive);
    return &the_archive;
}

/* Write the sum of the header's bytes, the checksum field counted as spaces. */
static void put_sum(uint8_t *header, bool is_signed)
{
    int32_t sum = 0;
    char text[16];
    memset(header + 148, ' ', 8);
    for (size_t i = 0; i < BLOCK; i++)
        sum += is_signed ? (int8_t)header[i] : header[i];
    snprintf(text, sizeof text, "%06o", (unsigned)sum);
    memcpy(header + 148, text, 7);
}

/* Append a header, whose size field is the text `size`. */
static uint8_t *put_header(archive *a, const char *name, char type, const char *size)
{
    uint8_t *h = a->bytes + a->len;
    memcpy(h, name, strlen(name));
    memcpy(h + 124, size, strlen(size));
    h[156] = (uint8_t)type;
    memcpy(h + 257, "ustar", 6);
    put_sum(h, false);
    a->len += BLOCK;
    return h;
}

static uint8_t *put_member(archive *a, const char *name, char type, const char *data, size_t len)
{
    char size[16];
    snprintf(size, sizeof size, "%011o", (unsigned)len);
    uint8_t *h = put_header(a, name, type, size);
    memcpy(a->bytes + a->len, data, len);
    a->len += (len + BLOCK - 1) / BLOCK * BLOCK;
    return h;
}

static void open_archive(archive *a)
{
    a->in = heft_window_of(a->bytes, a->len, &a->err);
    a->t = (heft_tar){ .in = &a->in.in };
}

static void expect_member(archive *a, heft_tar_entry *e, const char *name, uint64_t bytes)
{
    bool found;
    heft_status st = heft_tar_next(&a->t, e, &found);
    if (st)
        print_message("# %s\n", a->err.message);
    assert_int_equal(st, HEFT_OK);
    assert_true(found);
    assert_true(heft_str_is(e->name, name));
    assert_int_equal(e->data.length, bytes);
}

static void expect_end(archive *a)
{
    heft_tar_entry e;
    bool found = true;
    assert_int_equal(heft_tar_next(&a->t, &e, &found), HEFT_OK);
    assert_false(found);
}

static void expect_refusal(archive *a, heft_status st, uint64_t at, const char *words)
{
    heft_tar_entry e;
    bool found = true;
    open_archive(a);
    assert_int_equal(heft_tar_next(&a->t, &e, &found), st);
    if (!strstr(a->err.message, words) || a->err.offset != at)
        fail_msg("%s at %u", a->err.message, (unsigned)a->err.offset);
}

static void members_are_read_in_order(void **state)
{
    static const char bytes[BLOCK + 1] = "x";
    heft_tar_entry e;
    (void)state;
    archive *a = empty_archive();
    put_member(a, "empty", '0', "", 0);
    put_member(a, "one", '\0', "1", 1);
    put_member(a, "block", '7', bytes, BLOCK);
    put_member(a, "more", '0', bytes, BLOCK + 1);
    put_member(a, "folder/", '5', "", 0);
    size_t end = a->len;
    a->len += 2 * BLOCK;
    open_archive(a);
    expect_member(a, &e, "empty", 0);
    assert_true(e.is_file && !e.has_prefix && e.header == 0 && e.data.offset == BLOCK);
    expect_member(a, &e, "one", 1);
    assert_true(e.is_file && e.header == BLOCK && e.data.offset == 2 * BLOCK);
    expect_member(a, &e, "block", BLOCK);
    assert_true(e.is_file && e.header == 3 * BLOCK);
    expect_member(a, &e, "more", BLOCK + 1);
    assert_int_equal(e.header, 5 * BLOCK);
    expect_member(a, &e, "folder/", 0);
    assert_false(e.is_file);
    expect_end(a);
    a->len = end; /* without the blocks of zeros */
    open_archive(a);
    for (int i = 0; i < 5; i++) {
        bool found;
        assert_int_equal(heft_tar_next(&a->t, &e, &found), HEFT_OK);
        assert_true(found);
    }
    expect_end(a);
}

static void the_last_member_needs_no_padding(void **state)
{
    heft_tar_entry e;
    (void)state;
    archive *a = empty_archive();
    put_member(a, "a", '0', "data", 4);
    a->len = BLOCK + 4;
    open_archive(a);
    expect_member(a, &e, "a", 4);
    expect_end(a);
    a->len--;
    expect_refusal(a, HEFT_E_FORMAT, 0, "member 'a': 4 bytes are announced, 3 are left");
    a->len = BLOCK - 1;
    expect_refusal(a, HEFT_E_FORMAT, 0, "512 bytes are needed, 511 are left");
}

static void links_and_devices_have_no_content(void **state)
{
    (void)state;
    for (char type = '0'; type <= '8'; type++) {
        heft_tar_entry e;
        archive *a = empty_archive();
        put_member(a, "a", type, "data", 4);
        open_archive(a);
        expect_member(a, &e, "a", type >= '1' && type <= '6' ? 0 : 4);
        assert_int_equal(e.is_file, type == '0' || type == '7');
    }
}

static void sizes_are_octal_or_base_256(void **state)
{
    static const struct {
        const char *size;
        uint64_t bytes;
        bool is_valid;
    } rows[] = {
        { "00000000000", 0, true },
        { "  7 ", 7, true },
        { "7  \0 ", 7, true },
        { "777777777777", 077777777777, true },
        { "00000000008", 0, false },
        { "0000000000/", 0, false },
        { "1 1", 0, false },
        { "-1", 0, false },
        { "\x80\0\0\0\0\0\0\0\0\0\0\x05", 5, true },
        { "\x80\0\0\0\x7F\xFF\xFF\xFF\xFF\xFF\xFF\xFF", INT64_MAX, true },
        { "\x80\0\0\x01\0\0\0\0\0\0\0\0", 0, false },
        { "\x81\0\0\0\0\0\0\0\0\0\0\x05", 0, false },
        { "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF", 0, false },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        heft_tar_entry e;
        bool found;
        archive *a = empty_archive();
        uint8_t *h = put_header(a, "a", '0', "");
        bool is_binary = rows[i].size[0] & 0x80;
        memcpy(h + 124, rows[i].size, is_binary ? 12 : strlen(rows[i].size));
        put_sum(h, false);
        a->len += BLOCK;
        open_archive(a);
        heft_status st = heft_tar_next(&a->t, &e, &found);
        assert_int_equal(st, rows[i].is_valid && rows[i].bytes <= BLOCK ? HEFT_OK : HEFT_E_FORMAT);
        if (!rows[i].is_valid)
            assert_int_equal(a->err.offset, 124);
        else if (st)
            assert_non_null(strstr(a->err.message, "are announced, 512 are left"));
        else
            assert_int_equal(e.data.length, rows[i].bytes);
    }
}

static void checksums_are_compared(void **state)
{
    static const size_t changed[] = { 0, 99, 124, 147, 156, 257, 345, 511 };
    heft_tar_entry e;
    (void)state;
    for (size_t i = 0; i < sizeof changed / sizeof *changed; i++) {
        archive *a = empty_archive();
        put_member(a, "a", '0', "", 0);
        a->bytes[changed[i]]++;
        expect_refusal(a, HEFT_E_FORMAT, 0, "the checksum does not match");
    }
    archive *a = empty_archive();
    uint8_t *h = put_member(a, "\xC3\xA9", '0', "", 0);
    put_sum(h, true); /* the sum of signed bytes */
    open_archive(a);
    expect_member(a, &e, "\xC3\xA9", 0);
    h[154] = '9'; /* no octal digit */
    expect_refusal(a, HEFT_E_FORMAT, 0, "the checksum does not match");
    a = empty_archive();
    h = put_member(a, "a", '0', "", 0);
    h[257] = 'U';
    put_sum(h, false);
    expect_refusal(a, HEFT_E_FORMAT, 0, "the checksum does not match");
    a = empty_archive();
    h = put_member(a, "a", '0', "", 0);
    h[345] = 'p';
    put_sum(h, false);
    open_archive(a);
    expect_member(a, &e, "a", 0);
    assert_true(e.has_prefix);
    h[262] = ' '; /* GNU: the prefix has another meaning */
    put_sum(h, false);
    open_archive(a);
    expect_member(a, &e, "a", 0);
    assert_false(e.has_prefix);
}

static void a_name_may_fill_the_field(void **state)
{
    char name[102];
    heft_tar_entry e;
    (void)state;
    memset(name, 'n', sizeof name);
    name[100] = '\0';
    archive *a = empty_archive();
    put_member(a, name, '0', "", 0);
    a->bytes[100] = '0'; /* the mode follows */
    put_sum(a->bytes, false);
    open_archive(a);
    expect_member(a, &e, name, 0);
    assert_int_equal(heft_tar_first_name(a->bytes, a->len).len, 100);
}

static void extensions_describe_the_next_member(void **state)
{
    static const struct {
        char type;
        const char *data, *name;
        uint64_t bytes;
    } rows[] = {
        { 'x', "12 path=abc\n", "abc", 4 },
        { 'x', "9 path=a\n9 path=b\n", "b", 4 },
        { 'x', "8 path=\n", "", 4 },
        { 'x', "9 size=3\n", "short", 3 },
        { 'x', "9 size=3\n9 path=a\n", "a", 3 },
        { 'x', "6 a=b\n", "short", 4 },
        { 'x', "5 a=\n", "short", 4 },
        { 'x', "10 paths=a\n", NULL, 0 },
        { 'g', "9 path=a\n", "short", 4 },
        { 'g', "nonsense", "short", 4 },
        { 'K', "target", "short", 4 },
        { 'L', "long name\0", "long name", 4 },
        { 'x', "", "short", 4 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        heft_tar_entry e;
        archive *a = empty_archive();
        size_t len = strlen(rows[i].data);
        put_member(a, "extension", rows[i].type, rows[i].data, len);
        size_t header = a->len;
        uint8_t *h = put_member(a, "short", '0', "data", 4);
        h[345] = 'p';
        put_sum(h, false);
        if (!rows[i].name) {
            expect_refusal(a, HEFT_E_FORMAT, BLOCK, "a pax record is not LENGTH KEY=VALUE");
            continue;
        }
        open_archive(a);
        expect_member(a, &e, rows[i].name, rows[i].bytes);
        assert_int_equal(e.header, header);
        assert_int_equal(e.has_prefix, !strcmp(rows[i].name, "short"));
        expect_end(a);
        assert_true(heft_str_is(heft_tar_first_name(a->bytes, a->len), "short"));
    }
}

static void malformed_extensions_are_refused(void **state)
{
    static const struct {
        const char *data;
        uint64_t at; /* offset of the record in the extension */
    } rows[] = {
        { "nonsense", 0 },
        { "12 path=abc", 0 },
        { "11 path=abc\n", 0 },
        { "13 path=abc\n", 0 },
        { " path=abc\n", 0 },
        { "x path=abc\n", 0 },
        { "8 pathab\n", 0 },
        { "4 =\n", 4 },
        { "3 \n", 0 },
        { "9 size=x\n", 0 },
        { "8 size=\n", 0 },
        { "9 path=a\n9 size=-\n", 9 },
        { "12", 0 },
        { "9 path=a\n9", 9 },
        { "29 size=18446744073709551616\n", 0 },
        { "99999999999999999999 a=\n", 0 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        archive *a = empty_archive();
        put_member(a, "extension", 'x', rows[i].data, strlen(rows[i].data));
        put_member(a, "short", '0', "data", 4);
        heft_tar_entry e;
        bool found;
        open_archive(a);
        heft_status st = heft_tar_next(&a->t, &e, &found);
        if (!strcmp(rows[i].data, "4 =\n")) { /* an empty key is a key */
            assert_int_equal(st, HEFT_OK);
            continue;
        }
        assert_int_equal(st, HEFT_E_FORMAT);
        assert_int_equal(a->err.offset, BLOCK + rows[i].at);
    }
}

static void an_extension_has_a_mebibyte_at_most(void **state)
{
    static char text[(1 << 20) + 1];
    heft_tar_entry e;
    (void)state;
    memset(text, 'n', sizeof text);
    archive *a = empty_archive();
    put_member(a, "extension", 'L', text, sizeof text - 1);
    put_member(a, "short", '0', "data", 4);
    open_archive(a);
    bool found;
    assert_int_equal(heft_tar_next(&a->t, &e, &found), HEFT_OK);
    assert_int_equal(e.name.len, sizeof text - 1);
    assert_true(heft_str_is(heft_tar_first_name(a->bytes, a->len), "short"));
    a = empty_archive();
    put_member(a, "extension", 'L', text, sizeof text);
    put_member(a, "short", '0', "data", 4);
    expect_refusal(a, HEFT_E_LIMIT, 0, "has 1048577 bytes, more than 1048576");
    assert_int_equal(heft_tar_first_name(a->bytes, a->len).len, 0);
}

static void a_size_of_an_extension_must_fit(void **state)
{
    (void)state;
    archive *a = empty_archive();
    put_member(a, "extension", 'x', "11 size=999\n", 12);
    put_member(a, "short", '0', "data", 4);
    expect_refusal(a, HEFT_E_FORMAT, BLOCK, "a pax record");
    a = empty_archive();
    put_member(a, "extension", 'x', "12 size=999\n", 12);
    put_member(a, "short", '0', "data", 4);
    expect_refusal(a, HEFT_E_FORMAT, 2 * BLOCK, "member 'short': 999 bytes are announced, 512");
}

static void the_first_name_is_read_from_what_is_present(void **state)
{
    (void)state;
    archive *a = empty_archive();
    put_member(a, "first", '0', "data", 4);
    assert_true(heft_str_is(heft_tar_first_name(a->bytes, BLOCK), "first"));
    assert_int_equal(heft_tar_first_name(a->bytes, BLOCK - 1).len, 0);
    a->bytes[124] = '9';
    put_sum(a->bytes, false);
    assert_int_equal(heft_tar_first_name(a->bytes, a->len).len, 0);
    a->bytes[124] = '0';
    assert_int_equal(heft_tar_first_name(a->bytes, a->len).len, 0);
    put_sum(a->bytes, false);
    a->bytes[261] = 'x';
    put_sum(a->bytes, false);
    assert_int_equal(heft_tar_first_name(a->bytes, a->len).len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_are_read_in_order),
        cmocka_unit_test(the_last_member_needs_no_padding),
        cmocka_unit_test(links_and_devices_have_no_content),
        cmocka_unit_test(sizes_are_octal_or_base_256),
        cmocka_unit_test(checksums_are_compared),
        cmocka_unit_test(a_name_may_fill_the_field),
        cmocka_unit_test(extensions_describe_the_next_member),
        cmocka_unit_test(malformed_extensions_are_refused),
        cmocka_unit_test(an_extension_has_a_mebibyte_at_most),
        cmocka_unit_test(a_size_of_an_extension_must_fit),
        cmocka_unit_test(the_first_name_is_read_from_what_is_present),
    };
    return cmocka_run_group_tests_name("tar", tests, NULL, NULL);
}
