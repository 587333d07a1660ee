/* test_input_window.c - pieces of a file that arrive in any order, against a plain map of bytes. */
#include "heft_test.h"

#include "core/read/input_window.h"

enum { SIZE = 3000 };

typedef struct fixture {
    heft_test_memory m;
    heft_memory mem;
    heft_input b;
    heft_error err;
    uint8_t bytes[SIZE];
    bool held[SIZE + 1]; /* what must be there; one more, which never is */
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
    memset(f->held + off, 1, len);
    heft_test_free(&copy);
}

static uint64_t run_from(const fixture *f, uint64_t off)
{
    uint64_t n = 0;
    while (f->held[off + n])
        n++;
    return n;
}

/* Windows show what is held, no more, no less, from every place. */
static void assert_windows(fixture *f, uint64_t step)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < SIZE; i++)
        sum += f->held[i];
    assert_int_equal(f->b.held, sum);
    for (uint64_t off = 0; off <= SIZE; off += step) {
        uint64_t have;
        const uint8_t *p = f->b.in.window(&f->b.in, off, SIZE, &have);
        assert_int_equal(have, run_from(f, off));
        assert_memory_equal(p, f->bytes + off, have);
        p = f->b.in.window(&f->b.in, off, 5, &have);
        assert_int_equal(have, run_from(f, off) < 5 ? run_from(f, off) : 5);
    }
}

static void any_order_of_pieces_gives_the_same_windows(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        fixture f;
        uint64_t random = seed;
        begin(&f, UINT64_MAX);
        for (int i = 0; i < 60; i++) {
            uint32_t off = heft_test_random(&random, SIZE);
            uint32_t most = seed % 2 ? 20 : SIZE - off;
            uint32_t len = heft_test_random(&random, most + 1);
            feed(&f, off, off + len <= SIZE ? len : SIZE - off);
            if (i % 10 == 0)
                assert_windows(&f, 7);
        }
        assert_windows(&f, 1);
        end(&f);
    }
}

static void pieces_that_meet_become_one(void **state)
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

static void one_piece_over_many_keeps_what_was_there(void **state)
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

/* ---- what is wanted ------------------------------------------------------------------------- */

static heft_range only_need(fixture *f)
{
    assert_int_equal(f->b.needs.len, 1);
    heft_range r = *(heft_range *)f->b.needs.ptr;
    heft_input_clear(&f->b);
    return r;
}

static void only_what_is_missing_is_wanted(void **state)
{
    fixture f;
    (void)state;
    begin(&f, UINT64_MAX);
    feed(&f, 100, 50);
    feed(&f, 1000, 10);
    f.b.in.need(&f.b.in, 120, 100); /* begins inside the first, ends before the second */
    heft_range r = only_need(&f);
    assert_int_equal(r.offset, 150);
    assert_int_equal(r.length, 850); /* up to what is there already */
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

static void what_is_there_is_not_wanted(void **state)
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

static void more_than_the_limit_is_not_wanted(void **state)
{
    fixture f;
    (void)state;
    begin(&f, 1000);
    feed(&f, 0, 900);
    f.b.in.need(&f.b.in, 900, 10);
    assert_int_equal(f.b.needs.len, 0); /* 64 KiB at least, or up to the end */
    assert_true(f.b.over_limit);
    heft_input_clear(&f.b);
    assert_false(f.b.over_limit);
    end(&f);
}

/* ---- memory --------------------------------------------------------------------------------- */

static void feeding_without_memory_can_be_repeated(void **state)
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
            memset(f.held + off, 1, 250);
            assert_windows(&f, 50);
        }
        assert_int_equal(f.b.segments.len, 1);
        end(&f);
    }
}

static void a_byte_at_a_time_costs_no_copy_of_the_rest(void **state)
{
    enum { MUCH = 1 << 20 };
    fixture f;
    uint8_t byte = 1;
    (void)state;
    begin(&f, UINT64_MAX);
    for (uint32_t i = 0; i < MUCH; i++)
        heft_assert_ok(heft_input_feed(&f.b, i, &byte, 1, &f.err), &f.err);
    assert_in_range(atomic_load(&f.m.calls), 1, 100);
    assert_in_range(atomic_load(&f.m.live), MUCH, 2 * MUCH);
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_order_of_pieces_gives_the_same_windows),
        cmocka_unit_test(pieces_that_meet_become_one),
        cmocka_unit_test(one_piece_over_many_keeps_what_was_there),
        cmocka_unit_test(only_what_is_missing_is_wanted),
        cmocka_unit_test(what_is_there_is_not_wanted),
        cmocka_unit_test(more_than_the_limit_is_not_wanted),
        cmocka_unit_test(feeding_without_memory_can_be_repeated),
        cmocka_unit_test(a_byte_at_a_time_costs_no_copy_of_the_rest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
