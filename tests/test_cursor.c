/* test_cursor.c - tests of the cursor: bounds checks, bytes not yet available, bytes past the
 * end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/cursor.h"
#include "base/text.h"

typedef struct file { /* a window that has the bytes [from, till) */
    heft_window in;
    heft_error err;
    const uint8_t *bytes;
    uint64_t from, till;
    heft_range needed;
    uint32_t needs;
} file;

static const uint8_t *window(heft_window *in, uint64_t off, uint64_t len, uint64_t *have)
{
    file *f = (file *)(void *)in;
    *have = 0;
    if (off < f->from || off >= f->till)
        return NULL;
    *have = f->till - off < len ? f->till - off : len;
    return f->bytes + (off - f->from);
}

static void need(heft_window *in, uint64_t off, uint64_t len)
{
    file *f = (file *)(void *)in;
    f->needed = (heft_range){ off, len };
    f->needs++;
}

static const uint8_t sample[] = { 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x88, 0x09, 0x0A,
                                  0x0B, 0x0C, 0x0D, 0x0E, 0x8F, 'a',  'b',  0xC3, 0xA9, 0xFF };

static void open_sample(file *f, uint64_t available)
{
    *f = (file){ .in = { .size = sizeof sample, .window = window, .need = need },
                 .bytes = sample,
                 .till = available };
    f->in.err = &f->err;
}

static void numbers_are_little_endian(void **state)
{
    (void)state;
    file f;
    open_sample(&f, sizeof sample);
    heft_cur c = heft_cur_open(&f.in, 0, sizeof sample, "the sample");
    assert_true(heft_cur_u64(&c) == UINT64_C(0x8807060504030201));
    assert_int_equal(heft_cur_u32(&c), 0x0C0B0A09);
    assert_int_equal(heft_cur_u16(&c), 0x0E0D);
    assert_int_equal(heft_cur_u8(&c), 0x8F);
    assert_int_equal(heft_cur_pos(&c), 15);
    assert_int_equal(heft_cur_left(&c), 5);
    assert_int_equal(c.st, HEFT_OK);
}

static void bytes_are_borrowed_without_a_copy(void **state)
{
    (void)state;
    file f;
    open_sample(&f, sizeof sample);
    heft_cur c = heft_cur_open(&f.in, 4, 10, "the sample");
    assert_ptr_equal(heft_cur_take(&c, 3), sample + 4);
    assert_ptr_equal(heft_cur_take(&c, 0), sample + 7);
    assert_ptr_equal(heft_cur_take(&c, 7), sample + 7);
    assert_int_equal(heft_cur_left(&c), 0);
    assert_null(heft_cur_take(&c, 1));
}

static void reads_past_the_end_fail_for_good(void **state)
{
    (void)state;
    file f;
    open_sample(&f, sizeof sample);
    heft_cur c = heft_cur_open(&f.in, 2, 9, "the header");
    heft_cur_u64(&c);
    assert_int_equal(heft_cur_u32(&c), 0);
    assert_int_equal(c.st, HEFT_E_FORMAT);
    assert_int_equal(f.err.status, HEFT_E_FORMAT);
    assert_int_equal(f.err.offset, 10);
    assert_string_equal(f.err.message, "the header: 4 bytes are needed, 1 are left");
    assert_int_equal(heft_cur_u8(&c), 0); /* the error persists, although one byte is left */
    assert_int_equal(heft_cur_u64(&c), 0);
    assert_int_equal(heft_cur_pos(&c), 10);
    assert_int_equal(f.needs, 0);
}

static void missing_bytes_are_requested_not_refused(void **state)
{
    (void)state;
    file f;
    open_sample(&f, 5);
    heft_cur c = heft_cur_open(&f.in, 0, sizeof sample, "the header");
    assert_int_equal(heft_cur_u32(&c), 0x04030201);
    assert_int_equal(heft_cur_u32(&c), 0);
    assert_int_equal(c.st, HEFT_AGAIN);
    assert_int_equal(f.needed.offset, 4);
    assert_int_equal(f.needed.length, 4);
    assert_int_equal(heft_cur_u8(&c),
                     0); /* no read after the missing bytes, although one byte is available */
    assert_int_equal(f.needs, 1);
    assert_int_equal(heft_cur_fail(&c, "wrong"), HEFT_AGAIN);
}

static void more_than_the_limit_is_refused_even_when_bytes_are_missing(void **state)
{
    (void)state;
    file f;
    open_sample(&f, 5);
    heft_cur c = heft_cur_open(&f.in, 0, 8, "the header");
    assert_null(heft_cur_take(&c, 9));
    assert_int_equal(c.st, HEFT_E_FORMAT);
    c = heft_cur_open(&f.in, 0, 8, "the header");
    assert_null(heft_cur_take(&c, UINT64_MAX));
    assert_int_equal(c.st, HEFT_E_FORMAT);
}

static void a_cursor_ends_at_the_end_of_the_file(void **state)
{
    (void)state;
    file f;
    open_sample(&f, sizeof sample);
    heft_cur c = heft_cur_open(&f.in, 18, UINT64_MAX, "the tail");
    assert_int_equal(heft_cur_left(&c), 2);
    c = heft_cur_open(&f.in, sizeof sample, 1, "the tail");
    assert_int_equal(heft_cur_left(&c), 0);
    c = heft_cur_open(&f.in, UINT64_MAX, UINT64_MAX, "the tail");
    assert_int_equal(heft_cur_left(&c), 0);
    assert_int_equal(heft_cur_u8(&c), 0);
    assert_int_equal(c.st, HEFT_E_FORMAT);
    assert_int_equal(f.err.offset, UINT64_MAX);
}

static void a_whole_structure_is_available_requested_or_refused(void **state)
{
    (void)state;
    file f;
    open_sample(&f, 10);
    heft_cur c = heft_cur_whole(&f.in, 2, 8, "the index");
    assert_int_equal(c.st, HEFT_OK);
    assert_int_equal(heft_cur_left(&c), 8);
    c = heft_cur_whole(&f.in, 2, 9, "the index");
    assert_int_equal(c.st, HEFT_AGAIN);
    assert_int_equal(f.needed.offset, 2);
    assert_int_equal(f.needed.length, 9);
    c = heft_cur_whole(&f.in, 2, 19, "the index");
    assert_int_equal(c.st, HEFT_E_FORMAT);
    assert_string_equal(f.err.message, "the index: 19 bytes are needed, 18 are left");
    c = heft_cur_whole(&f.in, sizeof sample, 0, "the index");
    assert_int_equal(c.st, HEFT_OK);
    assert_int_equal(heft_cur_whole(&f.in, 1, UINT64_MAX, "the index").st, HEFT_E_FORMAT);
}

static void the_first_error_is_kept(void **state)
{
    (void)state;
    file f;
    open_sample(&f, sizeof sample);
    heft_cur c = heft_cur_open(&f.in, 0, sizeof sample, "the header");
    heft_cur_u16(&c);
    assert_int_equal(heft_cur_fail(&c, "version %U", UINT64_C(9)), HEFT_E_FORMAT);
    assert_int_equal(heft_cur_fail(&c, "rank %U", UINT64_C(7)), HEFT_E_FORMAT);
    assert_int_equal(heft_cur_u32(&c), 0);
    assert_string_equal(f.err.message, "version 9");
    assert_int_equal(f.err.offset, 2);
}

static void text_must_be_utf8(void **state)
{
    (void)state;
    file f;
    open_sample(&f, sizeof sample);
    heft_cur c = heft_cur_open(&f.in, 15, 5, "the key");
    heft_str s = heft_cur_text(&c, 4, "the key");
    assert_true(heft_str_is(s, "abé"));
    assert_ptr_equal(s.ptr, sample + 15);
    s = heft_cur_text(&c, 0, "the key");
    assert_true(s.ptr && !s.len && !c.st);
    c = heft_cur_open(&f.in, 15, 5, "the key");
    s = heft_cur_text(&c, 5, "the key");
    assert_true(s.ptr && !s.len);
    assert_int_equal(c.st, HEFT_E_FORMAT);
    assert_int_equal(f.err.offset, 19);
    assert_string_equal(f.err.message, "the key is not UTF-8: byte 0xff");
    c = heft_cur_open(&f.in, 15, 3, "the key");
    heft_cur_text(&c, 3, "the key");
    assert_int_equal(f.err.offset, 17);
}

static void every_truncation_gives_zeros_and_a_status(void **state)
{
    (void)state;
    for (uint64_t available = 0; available < 15; available++) {
        file f;
        open_sample(&f, available);
        heft_cur c = heft_cur_open(&f.in, 0, sizeof sample, "the header");
        uint64_t a = heft_cur_u64(&c);
        uint32_t b = heft_cur_u32(&c);
        uint16_t d = heft_cur_u16(&c);
        uint8_t e = heft_cur_u8(&c);
        assert_int_equal(c.st, HEFT_AGAIN);
        assert_int_equal(a == 0, available < 8);
        assert_int_equal(b == 0, available < 12);
        assert_int_equal(d == 0, available < 14);
        assert_int_equal(e, 0);
    }
}

static void an_empty_text_is_not_null_without_bytes(void **state)
{
    (void)state;
    file f;
    open_sample(&f, 5);
    heft_cur c = heft_cur_open(&f.in, 10, 5, "the key");
    heft_str s = heft_cur_text(&c, 0, "the key");
    assert_true(s.ptr && !s.len && !c.st);
    c = heft_cur_open(&f.in, sizeof sample, 5, "the key");
    s = heft_cur_text(&c, 0, "the key");
    assert_true(s.ptr && !s.len && !c.st);
}

static void a_text_that_is_not_there_is_empty(void **state)
{
    (void)state;
    file f;
    open_sample(&f, sizeof sample);
    heft_cur c = heft_cur_open(&f.in, 15, 3, "the key");
    heft_str s = heft_cur_text(&c, 4, "the key");
    assert_true(s.ptr && !s.len);
    assert_int_equal(c.st, HEFT_E_FORMAT);
    assert_string_equal(f.err.message, "the key: 4 bytes are needed, 3 are left");
    open_sample(&f, 16);
    c = heft_cur_open(&f.in, 15, 5, "the key");
    s = heft_cur_text(&c, 4, "the key");
    assert_true(s.ptr && !s.len);
    assert_int_equal(c.st, HEFT_AGAIN);
}

static void skips_to_bytes_within_and_past_the_window(void **state)
{
    (void)state;
    file f;
    open_sample(&f, 10);
    heft_cur c = heft_cur_open(&f.in, 0, 18, "the records");
    heft_cur_skip(&c, 0);
    heft_cur_skip(&c, 10); /* exactly the bytes that are available */
    assert_int_equal(heft_cur_pos(&c), 10);
    assert_int_equal(c.st, HEFT_OK);
    heft_cur_skip(&c, 8); /* exactly the bytes of the structure */
    assert_int_equal(heft_cur_pos(&c), 18);
    assert_int_equal(heft_cur_left(&c), 0);
    assert_int_equal(c.st, HEFT_OK);
    heft_cur_skip(&c, 1);
    assert_int_equal(c.st, HEFT_E_FORMAT);
    assert_string_equal(f.err.message, "the records: 1 bytes are needed, 0 are left");
    c = heft_cur_open(&f.in, 0, 18, "the records");
    heft_cur_skip(&c, UINT64_MAX);
    assert_int_equal(c.st, HEFT_E_FORMAT);
    heft_cur_skip(&c, 4); /* an error persists */
    assert_int_equal(heft_cur_pos(&c), 0);
    assert_int_equal(c.st, HEFT_E_FORMAT);
    assert_int_equal(f.needs, 0);
}

static void asks_for_as_many_bytes_as_records_take(void **state)
{
    (void)state;
    static const struct {
        uint64_t size, at, records, wanted;
    } rows[] = {
        { 1 << 20, 0, 0, 64 << 10 },    { 1 << 20, 0, 511, 64 << 10 },
        { 1 << 20, 0, 512, 128 << 10 }, { 1 << 20, (1 << 20) - 9, 1, 9 },
        { 64 << 10, 0, 1, 64 << 10 },   { 1 << 20, 1 << 20, 1, 0 },
        { 1 << 20, UINT64_MAX, 1, 0 },  { 1 << 20, 0, UINT64_MAX, 0 }, /* the bytes pass 64 bits */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        file f;
        open_sample(&f, 0);
        f.in.size = rows[i].size;
        heft_window_ask_ahead(&f.in, rows[i].at, rows[i].records);
        assert_int_equal(f.needed.length, rows[i].wanted);
        assert_int_equal(f.needs, rows[i].wanted != 0);
        assert_int_equal(f.needed.offset, rows[i].wanted ? rows[i].at : 0);
    }
}

static heft_status decode_nothing(heft_window *in, heft_encoding e, heft_range stored, void *out,
                                  size_t *len)
{
    (void)in;
    (void)stored;
    (void)out;
    *len = 0;
    return e == HEFT_DEFLATE ? HEFT_AGAIN : HEFT_E_FORMAT;
}

static void a_window_without_a_decoder_refuses_compressed_bytes(void **state)
{
    (void)state;
    file f;
    uint8_t out[4];
    size_t len = sizeof out;
    heft_range stored = { 6, 3 };
    open_sample(&f, sizeof sample);
    assert_int_equal(heft_window_decode(&f.in, HEFT_DEFLATE, stored, out, &len),
                     HEFT_E_UNSUPPORTED);
    assert_int_equal(f.err.offset, 6);
    assert_int_equal(len, sizeof out);
    f.in.decode = decode_nothing;
    assert_int_equal(heft_window_decode(&f.in, HEFT_DEFLATE, stored, out, &len), HEFT_AGAIN);
    assert_int_equal(len, 0);
}

static void bytes_in_memory_are_a_window(void **state)
{
    (void)state;
    heft_error err;
    heft_window_bytes in = heft_window_of(sample, sizeof sample, &err);
    heft_cur c = heft_cur_open(&in.in, 16, 100, "the tail");
    assert_int_equal(heft_cur_left(&c), 4);
    assert_ptr_equal(heft_cur_take(&c, 4), sample + 16);
    uint64_t have = 1;
    in.in.window(&in.in, sizeof sample, 1, &have);
    assert_int_equal(have, 0);
    in.in.window(&in.in, UINT64_MAX, 1, &have);
    assert_int_equal(have, 0);
    assert_ptr_equal(in.in.window(&in.in, 19, 9, &have), sample + 19);
    assert_int_equal(have, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_little_endian),
        cmocka_unit_test(bytes_are_borrowed_without_a_copy),
        cmocka_unit_test(reads_past_the_end_fail_for_good),
        cmocka_unit_test(missing_bytes_are_requested_not_refused),
        cmocka_unit_test(more_than_the_limit_is_refused_even_when_bytes_are_missing),
        cmocka_unit_test(a_cursor_ends_at_the_end_of_the_file),
        cmocka_unit_test(a_whole_structure_is_available_requested_or_refused),
        cmocka_unit_test(the_first_error_is_kept),
        cmocka_unit_test(text_must_be_utf8),
        cmocka_unit_test(every_truncation_gives_zeros_and_a_status),
        cmocka_unit_test(an_empty_text_is_not_null_without_bytes),
        cmocka_unit_test(a_text_that_is_not_there_is_empty),
        cmocka_unit_test(skips_to_bytes_within_and_past_the_window),
        cmocka_unit_test(asks_for_as_many_bytes_as_records_take),
        cmocka_unit_test(a_window_without_a_decoder_refuses_compressed_bytes),
        cmocka_unit_test(bytes_in_memory_are_a_window),
    };
    return cmocka_run_group_tests_name("cursor", tests, NULL, NULL);
}
