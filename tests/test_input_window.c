/* test_input_window.c - segments fed in any order, compared with a map of the bytes fed. */
#include "heft_test.h"

#include "core/read/input_window.h"

enum { SIZE = 3000 };

typedef struct fixture {
    heft_test_memory m;
    heft_memory mem;
    heft_input b;
    heft_error err;
    uint8_t bytes[SIZE];
    bool fed[SIZE + 1]; /* bytes that were fed; the last element stays false */
} fixture;

static void begin(fixture *f, uint64_t limit)
{
    memset(f, 0, sizeof *f);
    heft_test_memory_init(&f->m, 0);
    f->mem = (heft_memory){ .al = &f->m.al, .limit = UINT64_MAX };
    heft_input_init(&f->b, &f->mem, SIZE, limit);
    for (size_t i = 0; i < SIZE; i++)
        f->bytes[i] = (uint8_t)(i * 7 + i / 251);
}

static void end(fixture *f)
{
    heft_input_free(&f->b);
    heft_assert_all_freed(&f->m);
}

static void feed(fixture *f, uint64_t off, size_t len)
{
    heft_bytes copy = heft_test_copy(f->bytes + off, len);
    heft_assert_ok(heft_input_feed(&f->b, off, copy.p, len, &f->err), &f->err);
    memset(f->fed + off, 1, len);
    heft_test_free(&copy);
}

static uint64_t fed_from(const fixture *f, uint64_t off)
{
    uint64_t n = 0;
    while (f->fed[off + n])
        n++;
    return n;
}

/* The missing bytes of a range are those that were not fed, in order. */
static void assert_missing(const fixture *f, heft_range r)
{
    uint64_t at = r.offset, end = r.offset + r.length;
    for (heft_range m; heft_input_missing(&f->b, &r, &m); at = m.offset + m.length) {
        for (; at < m.offset; at++)
            assert_true(f->fed[at]);
        for (uint64_t i = m.offset; i < m.offset + m.length; i++)
            assert_false(f->fed[i]);
    }
    for (; at < end; at++)
        assert_true(f->fed[at]);
}

/* A window at any offset shows exactly the bytes that were fed. */
static void assert_windows(fixture *f, uint64_t step)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < SIZE; i++)
        sum += f->fed[i];
    assert_int_equal(f->b.held, sum);
    for (uint64_t off = 0; off <= SIZE; off += step) {
        uint64_t have;
        assert_missing(f, (heft_range){ off, (SIZE - off) / 2 });
        assert_missing(f, (heft_range){ off, SIZE - off });
        const uint8_t *p = f->b.in.window(&f->b.in, off, SIZE, &have);
        assert_int_equal(have, fed_from(f, off));
        assert_memory_equal(p, f->bytes + off, (size_t)have);
        p = f->b.in.window(&f->b.in, off, 5, &have);
        assert_int_equal(have, fed_from(f, off) < 5 ? fed_from(f, off) : 5);
    }
}

static void windows_do_not_depend_on_the_order_of_feeding(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        fixture f;
        uint64_t random = seed;
        begin(&f, UINT64_MAX);
        for (int i = 0; i < 60; i++) {
            uint32_t off = heft_test_random(&random, SIZE);
            uint32_t max_bytes = seed % 2 ? 20 : SIZE - off;
            uint32_t len = heft_test_random(&random, max_bytes + 1);
            feed(&f, off, off + len <= SIZE ? len : SIZE - off);
            if (i % 10 == 0)
                assert_windows(&f, 7);
        }
        assert_windows(&f, 1);
        end(&f);
    }
}

static void joins_adjacent_segments(void **state)
{
    fixture f;
    (void)state;
    begin(&f, UINT64_MAX);
    for (uint32_t i = 0; i < SIZE; i += 20)
        feed(&f, i, 10);
    assert_int_equal(f.b.segments.len, SIZE / 20);
    for (uint32_t i = 0; i < SIZE; i += 20)
        feed(&f, i + 10, 10);
    assert_int_equal(f.b.segments.len, 1);
    assert_windows(&f, 1);
    end(&f);
}

static void joins_segments_covered_by_a_larger_segment(void **state)
{
    fixture f;
    (void)state;
    begin(&f, UINT64_MAX);
    for (uint32_t i = 5; i + 3 < SIZE; i += 11)
        feed(&f, i, 3);
    feed(&f, 0, SIZE);
    assert_int_equal(f.b.segments.len, 1);
    assert_windows(&f, 1);
    end(&f);
}

/* ---- needs ---------------------------------------------------------------------------------- */

static heft_range only_need(fixture *f)
{
    assert_int_equal(f->b.needs.len, 1);
    heft_range r = *(heft_range *)f->b.needs.ptr;
    heft_input_clear(&f->b);
    return r;
}

static void needs_only_missing_bytes(void **state)
{
    fixture f;
    (void)state;
    begin(&f, UINT64_MAX);
    feed(&f, 100, 50);
    feed(&f, 1000, 10);
    f.b.in.need(&f.b.in, 120, 100); /* begins in the first segment, ends before the second */
    heft_range r = only_need(&f);
    assert_int_equal(r.offset, 150);
    assert_int_equal(r.length, 850); /* up to the next segment */
    f.b.in.need(&f.b.in, 1005, 100);
    r = only_need(&f);
    assert_int_equal(r.offset, 1010);
    assert_int_equal(r.length, SIZE - 1010);
    f.b.in.need(&f.b.in, 0, 10);
    r = only_need(&f);
    assert_int_equal(r.offset, 0);
    assert_int_equal(r.length, 100);
    end(&f);
}

static void needs_nothing_that_was_fed(void **state)
{
    fixture f;
    (void)state;
    begin(&f, UINT64_MAX);
    feed(&f, 0, SIZE);
    f.b.in.need(&f.b.in, 10, 20);
    f.b.in.need(&f.b.in, SIZE, 20);
    f.b.in.need(&f.b.in, SIZE - 1, UINT64_MAX);
    assert_int_equal(f.b.needs.len, 0);
    end(&f);
}

static void needs_nothing_beyond_the_limit(void **state)
{
    fixture f;
    (void)state;
    begin(&f, 1000);
    feed(&f, 0, 900);
    f.b.in.need(&f.b.in, 900, 10);
    /* a need is at least 64 KiB, or extends to the end of the file */
    assert_int_equal(f.b.needs.len, 0);
    assert_true(f.b.over_limit);
    heft_input_clear(&f.b);
    assert_false(f.b.over_limit);
    end(&f);
}

/* ---- memory --------------------------------------------------------------------------------- */

static void can_feed_again_after_a_failed_allocation(void **state)
{
    (void)state;
    for (uint32_t n = 1; n < 40; n++) {
        fixture f;
        begin(&f, UINT64_MAX);
        f.m.fail_at = n;
        for (uint32_t i = 0; i < 12; i++) {
            uint32_t off = i * 1777 % 12 * 250;
            heft_status st = heft_input_feed(&f.b, off, f.bytes + off, 250, &f.err);
            if (st)
                heft_assert_fails(st, HEFT_E_NOMEM, &f.err, "no memory");
            if (st)
                heft_assert_ok(heft_input_feed(&f.b, off, f.bytes + off, 250, &f.err), &f.err);
            memset(f.fed + off, 1, 250);
            assert_windows(&f, 50);
        }
        assert_int_equal(f.b.segments.len, 1);
        end(&f);
    }
}

static void feeding_single_bytes_reallocates_rarely(void **state)
{
    enum { MIB = 1 << 20 };
    fixture f;
    uint8_t byte = 1;
    (void)state;
    begin(&f, UINT64_MAX);
    for (uint32_t i = 0; i < MIB; i++)
        heft_assert_ok(heft_input_feed(&f.b, i, &byte, 1, &f.err), &f.err);
    assert_in_range(atomic_load(&f.m.calls), 1, 100);
    assert_in_range(atomic_load(&f.m.live), MIB, 2 * MIB);
    end(&f);
}

static void finds_the_offset_of_a_byte(void **state)
{
    (void)state;
    fixture f;
    begin(&f, UINT64_MAX);
    static const uint8_t elsewhere[1];
    static const uint64_t offsets[] = { 100, 149, 1000, 1009 };
    assert_true(heft_input_offset_of(&f.b, elsewhere) == HEFT_NOWHERE);
    feed(&f, 1000, 10);
    feed(&f, 100, 50);
    for (size_t i = 0; i < HEFT_COUNT(offsets); i++) {
        uint64_t have;
        const uint8_t *p = f.b.in.window(&f.b.in, offsets[i], 1, &have);
        assert_int_equal(have, 1);
        assert_true(heft_input_offset_of(&f.b, p) == offsets[i]);
        bool is_last = offsets[i] == 149 || offsets[i] == 1009;
        assert_true((heft_input_offset_of(&f.b, p + 1) == HEFT_NOWHERE) == is_last);
    }
    assert_true(heft_input_offset_of(&f.b, elsewhere) == HEFT_NOWHERE);
    f.b.whole_file = f.bytes;
    assert_true(heft_input_offset_of(&f.b, f.bytes) == 0);
    assert_true(heft_input_offset_of(&f.b, f.bytes + SIZE - 1) == SIZE - 1);
    assert_true(heft_input_offset_of(&f.b, f.bytes + SIZE) == HEFT_NOWHERE);
    assert_true(heft_input_offset_of(&f.b, elsewhere) == HEFT_NOWHERE);
    f.b.whole_file = NULL;
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_do_not_depend_on_the_order_of_feeding),
        cmocka_unit_test(joins_adjacent_segments),
        cmocka_unit_test(joins_segments_covered_by_a_larger_segment),
        cmocka_unit_test(needs_only_missing_bytes),
        cmocka_unit_test(needs_nothing_that_was_fed),
        cmocka_unit_test(needs_nothing_beyond_the_limit),
        cmocka_unit_test(can_feed_again_after_a_failed_allocation),
        cmocka_unit_test(feeding_single_bytes_reallocates_rarely),
        cmocka_unit_test(finds_the_offset_of_a_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
