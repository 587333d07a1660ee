/* test_running_digest.c - digest states are released once, without leaks. */
#include "core/read/stored_checksum.h"

#include "base/error.h"
#include "test_memory.h"

enum { LARGE = 100 };

/* Resize with the test allocator; the alignment of 16 bytes suffices for the tested states. */
static void *test_memory_resize_any(void *ctx, void *p, size_t old_size, size_t new_size,
                                    size_t align)
{
    (void)align;
    return test_memory_resize(ctx, p, old_size, new_size, 16);
}

static int running; /* states that init() began and final() did not release */
static bool refuses;

static bool init_sum(void *state)
{
    *(uint8_t *)state = 0;
    running += !refuses;
    return !refuses;
}

static void add_bytes(void *state, const void *data, size_t len)
{
    for (size_t i = 0; i < len; i++)
        *(uint8_t *)state = (uint8_t)(*(uint8_t *)state + ((const uint8_t *)data)[i]);
}

static void put_sum(uint8_t *out, void *state)
{
    if (out)
        *out = *(uint8_t *)state;
    running--;
}

static void join_sums(void *state, const void *next, uint64_t len)
{
    (void)len;
    add_bytes(state, next, 1);
}

/* Sums of bytes, with a large state and a small state. */
static const heft_digest large = { sizeof large, "large", 1,    LARGE, init_sum,
                                   add_bytes,    put_sum, NULL, NULL };
static const heft_digest small = { sizeof small, "small", 1,         1,   init_sum,
                                   add_bytes,    put_sum, join_sums, NULL };

static int reset(void **state)
{
    (void)state;
    running = 0;
    refuses = false;
    return 0;
}

/* Return an allocator that accepts any alignment. */
static heft_allocator memory_for(test_memory *t, uint32_t fail_at)
{
    test_memory_init(t, fail_at);
    return (heft_allocator){ .size = sizeof t->al, .resize = test_memory_resize_any, .ctx = t };
}

static void reuses_the_state_of_a_digest(void **state)
{
    (void)state;
    test_memory t;
    heft_allocator aligned = memory_for(&t, 0);
    heft_running_digest r = { .digest = NULL };
    uint8_t sum = 0;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(heft_running_digest_begin(&r, &large, &aligned, "to sum", NULL), HEFT_OK);
        heft_running_digest_update(&r, "\1\2", 2);
        heft_running_digest_update(&r, "\3", 1);
        heft_running_digest_end(&r, &sum);
        assert_int_equal(sum, 6);
        assert_int_equal(t.calls, 1);
    }
    assert_int_equal(heft_running_digest_begin(&r, &small, &aligned, "to sum", NULL), HEFT_OK);
    assert_int_equal(t.live, 0); /* a small state is not allocated */
    heft_running_digest_close(&r);
    assert_int_equal(running, 0);
}

static void closing_twice_releases_once(void **state)
{
    (void)state;
    test_memory t;
    heft_allocator aligned = memory_for(&t, 0);
    heft_running_digest r = { .digest = NULL };
    heft_running_digest_close(&r);
    assert_int_equal(heft_running_digest_begin(&r, NULL, &aligned, "to sum", NULL), HEFT_OK);
    heft_running_digest_update(&r, "\1", 1);
    assert_int_equal(heft_running_digest_begin(&r, &large, &aligned, "to sum", NULL), HEFT_OK);
    assert_int_equal(heft_running_digest_begin(&r, &large, &aligned, "to sum", NULL), HEFT_OK);
    assert_int_equal(running, 1);
    heft_running_digest_close(&r);
    heft_running_digest_close(&r);
    assert_int_equal(running, 0);
    assert_int_equal(t.live, 0);
}

static void reports_a_failed_allocation(void **state)
{
    (void)state;
    test_memory t;
    heft_allocator aligned = memory_for(&t, 1);
    heft_running_digest r = { .digest = NULL };
    heft_error e;
    assert_int_equal(heft_running_digest_begin(&r, &large, &aligned, "to sum", &e), HEFT_E_NOMEM);
    assert_string_equal(e.message, "no memory to sum");
    refuses = true;
    assert_int_equal(heft_running_digest_begin(&r, &large, &aligned, "to sum", &e), HEFT_E_NOMEM);
    assert_null(r.digest);
    assert_int_equal(running, 0);
    assert_int_equal(t.live, 0);
}

static heft_status add_range(void *ctx, const heft_digest *d, heft_range r, void *state,
                             heft_error *err)
{
    const uint8_t *failing = ctx, byte = (uint8_t)r.offset;
    d->update(state, &byte, 1);
    return *failing && r.offset == *failing ? heft_error_plain(err, HEFT_E_IO, "gone") : HEFT_OK;
}

static heft_status compute(bool *holds, const heft_stored_checksum *c, uint8_t *failing)
{
    return heft_stored_checksum_compute(holds, c, &small, NULL, add_range, failing, NULL);
}

static void joins_the_digests_of_two_ranges(void **state)
{
    (void)state;
    heft_stored_checksum c = { .algorithm = "small", .range = { { 3, 1 }, { 4, 1 } }, .zeros = 8 };
    uint8_t failing = 0;
    bool holds = false;
    c.expect[0] = 7;
    assert_int_equal(compute(&holds, &c, &failing), HEFT_OK);
    assert_true(holds);
    c.expect[0] = 8;
    assert_int_equal(compute(&holds, &c, &failing), HEFT_OK);
    assert_false(holds);
    c.expect[0] = 7;
    for (failing = 3; failing < 5; failing++) {
        assert_int_equal(compute(&holds, &c, &failing), HEFT_E_IO);
        assert_false(holds);
    }
    assert_int_equal(running, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(reuses_the_state_of_a_digest, reset),
        cmocka_unit_test_setup(closing_twice_releases_once, reset),
        cmocka_unit_test_setup(reports_a_failed_allocation, reset),
        cmocka_unit_test_setup(joins_the_digests_of_two_ranges, reset),
    };
    return cmocka_run_group_tests_name("running digest", tests, NULL, NULL);
}
