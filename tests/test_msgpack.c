/* test_msgpack.c - MessagePack: every first byte, counts at the limit, numbers at the limit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "grammar/msgpack.h"
#include "model/msgpack_numbers.h"

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

/* ---- arrays that are decoded ---------------------------------------------------------------- */

typedef struct array_row {
    const char *bytes;
    size_t len;
    const char *decoded;
    size_t decoded_len;
    const char *message; /* NULL: decoded */
} array_row;

static const char wrong_width[] = "a float does not have the size of the tensor's elements";
static const char wrong_count[] = "the number of items does not match the size of the tensor";
static const char too_large[] = "an integer does not fit the tensor's element type";

static const array_row arrays[] = {
    { BYTES("\x90"), BYTES(""), NULL },
    { BYTES("\x92\x01\x7F"), BYTES("\x01\x7F"), NULL },
    { BYTES("\x9F\1\2\3\4\5\6\7\x08\x09\1\2\3\4\5\6"), BYTES("\1\2\3\4\5\6\7\x08\x09\1\2\3\4\5\6"),
      NULL },
    { BYTES("\xDC\x00\x01\x05"), BYTES("\x05"), NULL },
    { BYTES("\xDD\x00\x00\x00\x01\x05"), BYTES("\x05"), NULL },
    { BYTES("\x92\xC2\xC3"), BYTES("\x00\x01"), NULL },
    { BYTES("\x91\xCC\xFF"), BYTES("\xFF"), NULL },
    { BYTES("\x91\xD0\x80"), BYTES("\x80"), NULL },
    { BYTES("\x91\xE0"), BYTES("\xE0"), NULL },
    { BYTES("\x91\xE0"), BYTES("\xE0\xFF\xFF\xFF"), NULL },
    { BYTES("\x91\x7F"), BYTES("\x7F\0\0\0\0\0\0\0"), NULL },
    { BYTES("\x91\xCD\x01\x02"), BYTES("\x02\x01"), NULL },
    { BYTES("\x91\xD1\x80\x00"), BYTES("\x00\x80"), NULL },
    { BYTES("\x91\xCE\x01\x02\x03\x04"), BYTES("\x04\x03\x02\x01"), NULL },
    { BYTES("\x91\xD2\xFF\xFF\xFF\xFE"), BYTES("\xFE\xFF"), NULL },
    { BYTES("\x91\xCF\x01\x02\x03\x04\x05\x06\x07\x08"), BYTES("\x08\x07\x06\x05\x04\x03\x02\x01"),
      NULL },
    { BYTES("\x91\xD3\x80\x00\x00\x00\x00\x00\x00\x00"), BYTES("\0\0\0\0\0\0\0\x80"), NULL },
    { BYTES("\x93\xCA\x01\x02\x03\x04\xCA\x05\x06\x07\x08\xCA\x09\x0A\x0B\x0C"),
      BYTES("\x04\x03\x02\x01\x08\x07\x06\x05\x0C\x0B\x0A\x09"), NULL },
    { BYTES("\x91\xCB\x01\x02\x03\x04\x05\x06\x07\x08"), BYTES("\x08\x07\x06\x05\x04\x03\x02\x01"),
      NULL },
    { BYTES("\x92\x05\xCA\x01\x02\x03\x04"), BYTES("\x05\0\0\0\x04\x03\x02\x01"), NULL },
    { BYTES("\x8F"), BYTES("x"), "not an array" },
    { BYTES("\xA0"), BYTES("x"), "not an array" },
    { BYTES("\xDB"), BYTES("x"), "not an array" },
    { BYTES("\xDE"), BYTES("x"), "not an array" },
    { BYTES("\x91\x80"), BYTES("x"), "an item is not a number" },
    { BYTES("\x91\xC0"), BYTES("x"), "an item is not a number" },
    { BYTES("\x91\xC1"), BYTES("x"), "an item is not a number" },
    { BYTES("\x91\xC4"), BYTES("x"), "an item is not a number" },
    { BYTES("\x91\xD4"), BYTES("x"), "an item is not a number" },
    { BYTES("\x91\xDF"), BYTES("x"), "an item is not a number" },
    { BYTES("\x90"), BYTES("x"), wrong_count },
    { BYTES("\x92"), BYTES("abc"), wrong_count },
    { BYTES("\x91"), BYTES("abc"), wrong_count },
    { BYTES("\x91"), BYTES("0123456789abcdef"), wrong_count },
    { BYTES("\x92"), BYTES("x"), wrong_count },
    { BYTES("\x90\x01"), BYTES(""), "bytes follow the last number" },
    { BYTES("\x91\x01\x02"), BYTES("\x01"), "bytes follow the last number" },
    { BYTES("\x91\xCA\1\2\3\4\xCA"), BYTES("\4\3\2\1"), "bytes follow the last number" },
    { BYTES("\x91\xCB\1\2\3\4\5\6\7\x08"), BYTES("abcd"), wrong_width },
    { BYTES("\x91\xCA\1\2\3\4"), BYTES("01234567"), wrong_width },
    { BYTES("\x91\xC3"), BYTES("ab"), "a boolean in a tensor of numbers" },
    { BYTES("\x91\xCD\x01\x00"), BYTES("x"), too_large },
    { BYTES("\x91\xD1\xFF\x7F"), BYTES("x"), too_large },
    { BYTES("\x91\xD1\x01\x00"), BYTES("x"), too_large },
    { BYTES("\x91\xD1\xFF\x80"), BYTES("\x80"), NULL },
    { BYTES("\x91\xD1\x00\xFF"), BYTES("\xFF"), NULL },
};

/* Decode with at most `step` bytes of input and of output in each call. */
static void decode_in_steps(const array_row *r, size_t step)
{
    uint8_t out[32];
    heft_error err = { .status = HEFT_OK };
    heft_msgpack_numbers n = heft_msgpack_numbers_of(r->decoded_len);
    size_t at = 0, done = 0;
    bool whole = false;
    heft_status st = HEFT_OK;
    for (int calls = 0; !st && (at < r->len || !whole); calls++) {
        size_t in = r->len - at < step ? r->len - at : step, produced = step;
        st = heft_msgpack_numbers_decode(&n, (const uint8_t *)r->bytes + at, &in, out + done,
                                         &produced, &whole, &err);
        at += in;
        done += produced;
        assert_true(calls < 100 && done + step <= sizeof out);
    }
    if (r->message) {
        assert_int_equal(st, HEFT_E_FORMAT);
        if (!strstr(err.message, r->message))
            fail_msg("%s, not %s", err.message, r->message);
        return;
    }
    assert_int_equal(st, HEFT_OK);
    assert_true(whole);
    assert_int_equal(done, r->decoded_len);
    assert_memory_equal(out, r->decoded, done);
}

static void arrays_are_decoded_from_input_of_any_length(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof arrays / sizeof *arrays; k++)
        for (size_t step = 1; step <= 16; step++)
            decode_in_steps(&arrays[k], step);
}

static void an_incomplete_array_is_not_whole(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof arrays / sizeof *arrays && !arrays[k].message; k++)
        for (size_t len = 0; len < arrays[k].len; len++) {
            uint8_t out[32];
            heft_error err;
            heft_msgpack_numbers n = heft_msgpack_numbers_of(arrays[k].decoded_len);
            size_t in = len, produced = sizeof out;
            bool whole = true;
            heft_status st = heft_msgpack_numbers_decode(&n, (const uint8_t *)arrays[k].bytes, &in,
                                                         out, &produced, &whole, &err);
            assert_int_equal(st, HEFT_OK);
            assert_int_equal(in, len);
            assert_false(whole);
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
        cmocka_unit_test(arrays_are_decoded_from_input_of_any_length),
        cmocka_unit_test(an_incomplete_array_is_not_whole),
    };
    return cmocka_run_group_tests_name("msgpack", tests, NULL, NULL);
}
