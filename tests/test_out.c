/* test_out.c - the encoder: the same bytes and counts for every size of the buffer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/crc.h"
#include "base/out.h"
#include "base/text.h"

typedef struct flushed { /* the bytes passed to flush */
    uint8_t bytes[256];
    size_t len;
    uint32_t calls, fail_at;
} flushed;

static heft_status record_flush(void *ctx, uint64_t at, const void *data, size_t len)
{
    flushed *t = ctx;
    assert_int_equal(at, t->len);
    assert_true(len > 0 && t->len + len <= sizeof t->bytes);
    if (++t->calls == t->fail_at)
        return HEFT_E_IO;
    memcpy(t->bytes + t->len, data, len);
    t->len += len;
    return HEFT_OK;
}

static const uint8_t expected[] = { 1,  2,   3,   4,   5,   6, 7, 8, 9, 10, 11,   12,  13,  14,
                                    15, 'n', 'a', 'm', 'e', 0, 0, 0, 0, 0,  0xEE, 'x', 'y', 'z' };

static void write_sample(heft_out *o)
{
    heft_out_u8(o, 0x01);
    heft_out_u16(o, 0x0302);
    heft_out_u32(o, 0x07060504);
    heft_out_u64(o, UINT64_C(0x0F0E0D0C0B0A0908));
    heft_out_str(o, heft_lit("name"));
    heft_out_str(o, (heft_str){ NULL, 0 });
    heft_out_fill(o, 0, 5);
    heft_out_fill(o, 0xEE, 1);
    heft_out_fill(o, 0xDD, 0);
    heft_out_bytes(o, "xyz", 3);
}

static void writes_integers_strings_and_fill_into_a_buffer(void **state)
{
    (void)state;
    uint8_t buf[sizeof expected];
    heft_out o = { .buf = buf, .cap = sizeof buf };
    write_sample(&o);
    assert_int_equal(o.st, HEFT_OK);
    assert_int_equal(o.len, sizeof expected);
    assert_int_equal(o.total, sizeof expected);
    assert_memory_equal(buf, expected, sizeof expected);
    assert_int_equal(heft_out_flush(&o), HEFT_OK);
    assert_int_equal(o.len, sizeof expected);
}

static void flushes_the_same_bytes_for_every_buffer_size(void **state)
{
    (void)state;
    for (size_t cap = 1; cap < 40; cap++) {
        uint8_t buf[40];
        flushed t = { .len = 0 };
        heft_out o = { .buf = buf, .cap = cap, .flush = record_flush, .ctx = &t };
        write_sample(&o);
        assert_int_equal(heft_out_flush(&o), HEFT_OK);
        assert_int_equal(o.total, sizeof expected);
        assert_int_equal(t.len, sizeof expected);
        assert_memory_equal(t.bytes, expected, sizeof expected);
        uint32_t calls = t.calls;
        assert_int_equal(heft_out_flush(&o), HEFT_OK);
        assert_int_equal(t.calls, calls); /* the buffer was empty */
    }
}

static void full_buffer_without_flush_is_a_sticky_error(void **state)
{
    (void)state;
    for (size_t cap = 0; cap < sizeof expected; cap++) {
        uint8_t buf[sizeof expected + 1];
        memset(buf, 0xA5, sizeof buf);
        heft_out o = { .buf = buf, .cap = cap };
        write_sample(&o);
        assert_int_equal(o.st, HEFT_E_ARGUMENT);
        assert_int_equal(o.total, sizeof expected);
        assert_int_equal(heft_out_flush(&o), HEFT_E_ARGUMENT);
        for (size_t i = cap; i < sizeof buf; i++)
            assert_int_equal(buf[i], 0xA5);
    }
}

static void counts_but_does_not_flush_after_a_failed_flush(void **state)
{
    (void)state;
    for (uint32_t n = 1; n <= 4; n++) {
        uint8_t buf[6];
        flushed t = { .fail_at = n };
        heft_out o = { .buf = buf, .cap = sizeof buf, .flush = record_flush, .ctx = &t };
        write_sample(&o);
        assert_int_equal(heft_out_flush(&o), HEFT_E_IO);
        assert_int_equal(o.total, sizeof expected);
        assert_int_equal(t.calls, n);
        assert_memory_equal(t.bytes, expected, t.len);
    }
}

static void pads_decimals_with_leading_zeros(void **state)
{
    (void)state;
    uint8_t buf[64];
    heft_out o = { .buf = buf, .cap = sizeof buf };
    heft_out_decimal(&o, 3, 5);
    heft_out_decimal(&o, 0, 1);
    heft_out_decimal(&o, 1234567, 5);
    heft_out_decimal(&o, UINT64_MAX, 20);
    assert_int_equal(o.st, HEFT_OK);
    assert_int_equal(o.len, 33);
    assert_memory_equal(buf, "000030123456718446744073709551615", 33);
}

static void counts_bytes_without_a_buffer(void **state)
{
    (void)state;
    heft_out o = heft_out_counting();
    write_sample(&o);
    heft_out_fill(&o, 0, UINT64_C(1) << 40);
    assert_int_equal(heft_out_flush(&o), HEFT_OK);
    assert_true(o.total == sizeof expected + (UINT64_C(1) << 40));
}

static void continues_a_checksum_over_all_bytes(void **state)
{
    (void)state;
    uint8_t buf[7];
    uint32_t crc = heft_crc32c(0, "head", 4);
    uint32_t whole = heft_crc32c(crc, expected, sizeof expected);
    heft_out o = heft_out_crc32c(&crc, buf, sizeof buf);
    write_sample(&o);
    assert_int_equal(heft_out_flush(&o), HEFT_OK);
    assert_int_equal(crc, whole);
}

static void an_empty_fill_changes_nothing(void **state)
{
    (void)state;
    uint8_t buf[2];
    heft_out o = { .buf = buf, .cap = sizeof buf };
    heft_out_u16(&o, 7);
    heft_out_fill(&o, 0, 0);
    heft_out_bytes(&o, NULL, 0);
    assert_int_equal(o.st, HEFT_OK);
    assert_int_equal(o.len, 2);
}

static void a_buffer_of_no_bytes_is_an_error(void **state)
{
    (void)state;
    uint8_t byte;
    flushed t = { .len = 0 };
    heft_out o = { .buf = &byte, .flush = record_flush, .ctx = &t };
    heft_out_fill(&o, 1, 3);
    assert_int_equal(o.st, HEFT_E_ARGUMENT);
    assert_int_equal(o.total, 3);
    assert_int_equal(t.calls, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_integers_strings_and_fill_into_a_buffer),
        cmocka_unit_test(flushes_the_same_bytes_for_every_buffer_size),
        cmocka_unit_test(full_buffer_without_flush_is_a_sticky_error),
        cmocka_unit_test(counts_but_does_not_flush_after_a_failed_flush),
        cmocka_unit_test(pads_decimals_with_leading_zeros),
        cmocka_unit_test(counts_bytes_without_a_buffer),
        cmocka_unit_test(continues_a_checksum_over_all_bytes),
        cmocka_unit_test(an_empty_fill_changes_nothing),
        cmocka_unit_test(a_buffer_of_no_bytes_is_an_error),
    };
    return cmocka_run_group_tests_name("out", tests, NULL, NULL);
}
