/* test_msgpack.c - MessagePack: every first byte, counts at the limit, numbers at the limit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "grammar/msgpack.h"

typedef struct input {
    heft_window_bytes in;
    heft_error err;
} input;

static heft_cur open_bytes(input *f, const void *bytes, size_t len)
{
    memset(&f->err, 0, sizeof f->err);
    f->in = heft_window_of(bytes, len, &f->err);
    return heft_cur_open(&f->in.in, 0, len, "the record");
}

#define BYTES(text) text, sizeof(text) - 1

typedef struct item_row {
    const char *bytes;
    size_t len;
    heft_msgpack_kind kind;
    uint64_t u;
    int64_t i;
    double f;
    size_t head; /* bytes of the head */
} item_row;

static const item_row items[] = {
    { BYTES("\x00"), HEFT_MSGPACK_UINT, 0, 0, 0, 1 },
    { BYTES("\x7F"), HEFT_MSGPACK_UINT, 127, 0, 0, 1 },
    { BYTES("\x80"), HEFT_MSGPACK_MAP, 0, 0, 0, 1 },
    { BYTES("\x81\xC0\xC0"), HEFT_MSGPACK_MAP, 1, 0, 0, 1 },
    { BYTES("\x90"), HEFT_MSGPACK_ARRAY, 0, 0, 0, 1 },
    { BYTES("\x92\xC0\xC0"), HEFT_MSGPACK_ARRAY, 2, 0, 0, 1 },
    { BYTES("\xA0"), HEFT_MSGPACK_TEXT, 0, 0, 0, 1 },
    { BYTES("\xA3xyz"), HEFT_MSGPACK_TEXT, 3, 0, 0, 1 },
    { BYTES("\xC0"), HEFT_MSGPACK_NIL, 0, 0, 0, 1 },
    { BYTES("\xC2"), HEFT_MSGPACK_BOOL, 0, 0, 0, 1 },
    { BYTES("\xC3"), HEFT_MSGPACK_BOOL, 1, 0, 0, 1 },
    { BYTES("\xC4\x02xx"), HEFT_MSGPACK_BYTES, 2, 0, 0, 2 },
    { BYTES("\xC5\x00\x01x"), HEFT_MSGPACK_BYTES, 1, 0, 0, 3 },
    { BYTES("\xC6\x00\x00\x00\x01x"), HEFT_MSGPACK_BYTES, 1, 0, 0, 5 },
    { BYTES("\xC7\x01\xFFx"), HEFT_MSGPACK_EXT, 1, -1, 0, 3 },
    { BYTES("\xC8\x00\x01\x05x"), HEFT_MSGPACK_EXT, 1, 5, 0, 4 },
    { BYTES("\xC9\x00\x00\x00\x01\x05x"), HEFT_MSGPACK_EXT, 1, 5, 0, 6 },
    { BYTES("\xCA\x3F\xC0\x00\x00"), HEFT_MSGPACK_F32, 0x3FC00000, 0, 1.5, 5 },
    { BYTES("\xCB\xC0\x04\x00\x00\x00\x00\x00\x00"), HEFT_MSGPACK_F64, UINT64_C(0xC004) << 48, 0,
      -2.5, 9 },
    { BYTES("\xCC\xFF"), HEFT_MSGPACK_UINT, 255, 0, 0, 2 },
    { BYTES("\xCD\x01\x02"), HEFT_MSGPACK_UINT, 0x102, 0, 0, 3 },
    { BYTES("\xCE\xFF\xFF\xFF\xFF"), HEFT_MSGPACK_UINT, UINT32_MAX, 0, 0, 5 },
    { BYTES("\xCF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"), HEFT_MSGPACK_UINT, UINT64_MAX, 0, 0, 9 },
    { BYTES("\xD0\x7F"), HEFT_MSGPACK_UINT, 127, 0, 0, 2 },
    { BYTES("\xD0\x80"), HEFT_MSGPACK_INT, 0x80, -128, 0, 2 },
    { BYTES("\xD1\xFF\xFE"), HEFT_MSGPACK_INT, 0xFFFE, -2, 0, 3 },
    { BYTES("\xD2\x80\x00\x00\x00"), HEFT_MSGPACK_INT, 0x80000000, INT32_MIN, 0, 5 },
    { BYTES("\xD3\x80\x00\x00\x00\x00\x00\x00\x00"), HEFT_MSGPACK_INT, UINT64_C(1) << 63, INT64_MIN,
      0, 9 },
    { BYTES("\xD3\x7F\xFF\xFF\xFF\xFF\xFF\xFF\xFF"), HEFT_MSGPACK_UINT, INT64_MAX, 0, 0, 9 },
    { BYTES("\xD4\x07x"), HEFT_MSGPACK_EXT, 1, 7, 0, 2 },
    { BYTES("\xD8\x07xxxxxxxxxxxxxxxx"), HEFT_MSGPACK_EXT, 16, 7, 0, 2 },
    { BYTES("\xD9\x01x"), HEFT_MSGPACK_TEXT, 1, 0, 0, 2 },
    { BYTES("\xDA\x00\x01x"), HEFT_MSGPACK_TEXT, 1, 0, 0, 3 },
    { BYTES("\xDB\x00\x00\x00\x01x"), HEFT_MSGPACK_TEXT, 1, 0, 0, 5 },
    { BYTES("\xDC\x00\x01\xC0"), HEFT_MSGPACK_ARRAY, 1, 0, 0, 3 },
    { BYTES("\xDD\x00\x00\x00\x01\xC0"), HEFT_MSGPACK_ARRAY, 1, 0, 0, 5 },
    { BYTES("\xDE\x00\x01\xC0\xC0"), HEFT_MSGPACK_MAP, 1, 0, 0, 3 },
    { BYTES("\xDF\x00\x00\x00\x01\xC0\xC0"), HEFT_MSGPACK_MAP, 1, 0, 0, 5 },
    { BYTES("\xE0"), HEFT_MSGPACK_INT, 0, -32, 0, 1 },
    { BYTES("\xFF"), HEFT_MSGPACK_INT, 0, -1, 0, 1 },
};

static void every_first_byte_is_read(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof items / sizeof *items; k++) {
        const item_row *r = &items[k];
        input f;
        heft_cur c = open_bytes(&f, r->bytes, r->len);
        heft_msgpack_item it = heft_msgpack_next(&c);
        assert_int_equal(c.st, HEFT_OK);
        assert_int_equal(it.kind, r->kind);
        assert_int_equal(it.at, 0);
        if (it.kind != HEFT_MSGPACK_INT)
            assert_true(it.u == r->u);
        if (it.kind == HEFT_MSGPACK_INT || it.kind == HEFT_MSGPACK_EXT)
            assert_true(it.i == r->i);
        if (it.kind == HEFT_MSGPACK_F32 || it.kind == HEFT_MSGPACK_F64)
            assert_true(it.f == r->f);
        assert_int_equal(heft_cur_pos(&c), r->head);
        heft_msgpack_skip(&c, &it);
        assert_int_equal(c.st, HEFT_OK);
        assert_int_equal(heft_cur_left(&c), 0);
    }
}

static void every_truncation_is_refused(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof items / sizeof *items; k++)
        for (size_t len = 0; len < items[k].len; len++) {
            input f;
            heft_cur c = open_bytes(&f, items[k].bytes, len);
            heft_msgpack_item it = heft_msgpack_next(&c);
            assert_int_equal(it.kind, HEFT_MSGPACK_FAILED);
            assert_int_equal(c.st, HEFT_E_FORMAT);
        }
}

static void refusals_name_the_count_and_the_offset(void **state)
{
    static const struct {
        const char *bytes;
        size_t len;
        const char *message;
    } rows[] = {
        { BYTES("\xC0\xC1"), "the record: byte 0xC1 does not begin a MessagePack item" },
        { BYTES("\xC0\xA3xy"), "the record: 3 bytes are announced, 2 bytes are left" },
        { BYTES("\xC0\xC4\x03xy"), "the record: 3 bytes are announced, 2 bytes are left" },
        { BYTES("\xC0\xD5\x01x"), "the record: 2 bytes are announced, 1 bytes are left" },
        { BYTES("\xC0\x93\xC0\xC0"), "the record: 3 items are announced, 2 bytes are left" },
        { BYTES("\xC0\x82\xC0\xC0\xC0"), "the record: 2 pairs are announced, 3 bytes are left" },
    };
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        input f;
        heft_cur c = open_bytes(&f, rows[k].bytes, rows[k].len);
        heft_msgpack_next(&c);
        assert_int_equal(heft_msgpack_next(&c).kind, HEFT_MSGPACK_FAILED);
        assert_string_equal(f.err.message, rows[k].message);
        assert_int_equal(f.err.offset, 1);
    }
}

static void nested_items_are_skipped_or_refused(void **state)
{
    static const struct {
        const char *bytes;
        size_t len, end;
        const char *message; /* NULL: skipped up to `end` */
    } rows[] = {
        { BYTES("\x92\x91\xC0\x81\xA1k\xA2xy\x01"), 9, NULL },
        { BYTES("\x90\x01"), 1, NULL },
        { BYTES("\x80\x01"), 1, NULL },
        { BYTES("\xC4\x01x\x01"), 3, NULL },
        { BYTES("\x91\xC7\x01\x05x\x01"), 5, NULL },
        { BYTES("\x82\x01\x81\x02\x03"), 0, "the record: 4 items are announced, 2 bytes are left" },
        { BYTES("\x92\x91\x01"), 0, "the record: 2 items are announced, 1 bytes are left" },
        { BYTES("\x91\xA2x"), 0, "the record: 2 bytes are announced, 1 bytes are left" },
        { BYTES("\x91\xC1"), 0, "the record: byte 0xC1 does not begin a MessagePack item" },
    };
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        input f;
        heft_cur c = open_bytes(&f, rows[k].bytes, rows[k].len);
        heft_msgpack_item it = heft_msgpack_next(&c);
        heft_msgpack_skip(&c, &it);
        assert_int_equal(c.st, rows[k].message ? HEFT_E_FORMAT : HEFT_OK);
        if (rows[k].message)
            assert_string_equal(f.err.message, rows[k].message);
        else
            assert_int_equal(heft_cur_pos(&c), rows[k].end);
    }
}

static void an_integer_is_neither_negative_nor_another_item(void **state)
{
    input f;
    (void)state;
    heft_cur c = open_bytes(&f, BYTES("\xCC\x80\xD0\x80"));
    assert_int_equal(heft_msgpack_u64(&c, "the id"), 128);
    assert_int_equal(heft_msgpack_u64(&c, "the id"), 0);
    assert_int_equal(c.st, HEFT_E_FORMAT);
    assert_string_equal(f.err.message, "the id is not an integer from 0 to 2^64 - 1");
    assert_int_equal(f.err.offset, 2);
    c = open_bytes(&f, BYTES("\xA1x"));
    heft_msgpack_item it = heft_msgpack_next(&c);
    assert_true(heft_str_is(heft_msgpack_text(&c, &it), "x"));
}

typedef struct facts_row {
    const char *bytes;
    size_t len;
    uint64_t count;
    bool ok, bools, ints, f32, f64;
    uint64_t max;
    int64_t min;
} facts_row;

static const facts_row facts[] = {
    { BYTES(""), 0, true, false, false, false, false, 0, 0 },
    { BYTES("\xC3\xC2"), 2, true, true, false, false, false, 0, 0 },
    { BYTES("\x05\x07\x06"), 3, true, false, true, false, false, 7, 0 },
    { BYTES("\xFF\xE0\xFE"), 3, true, false, true, false, false, 0, -32 },
    { BYTES("\xCA\x00\x00\x00\x00"), 1, true, false, false, true, false, 0, 0 },
    { BYTES("\xCA\x00\x00\x00\x00\xCA\x00\x00\x00\x00\x01"), 3, true, false, true, true, false, 1,
      0 },
    { BYTES("\xCB\x00\x00\x00\x00\x00\x00\x00\x00"), 1, true, false, false, false, true, 0, 0 },
    { BYTES("\xCA\x00\x00\x00"), 1, false, false, false, false, false, 0, 0 },
    { BYTES("\xC0"), 1, false, false, false, false, false, 0, 0 },
    { BYTES("\xA0"), 1, false, false, false, false, false, 0, 0 },
    { BYTES("\x05"), 2, false, false, false, false, false, 0, 0 },
};

static void the_numbers_of_an_array_are_surveyed(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof facts / sizeof *facts; k++) {
        const facts_row *r = &facts[k];
        input f;
        heft_msgpack_facts got;
        heft_cur c = open_bytes(&f, r->bytes, r->len);
        assert_int_equal(heft_msgpack_scan(&got, &c, r->count), r->ok);
        if (!r->ok)
            continue;
        assert_int_equal(got.end, r->len);
        assert_true(got.bools == r->bools && got.ints == r->ints);
        assert_true(got.f32 == r->f32 && got.f64 == r->f64);
        assert_true(got.max == r->max && got.min == r->min);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_first_byte_is_read),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(refusals_name_the_count_and_the_offset),
        cmocka_unit_test(nested_items_are_skipped_or_refused),
        cmocka_unit_test(an_integer_is_neither_negative_nor_another_item),
        cmocka_unit_test(the_numbers_of_an_array_are_surveyed),
    };
    return cmocka_run_group_tests_name("msgpack", tests, NULL, NULL);
}
