/* test_remote_rows.c - which reads of a file on a server follow one another. */
#include "heft_test.h"

#include "port/remote/source_url.h"

enum { KIB = 1 << 10, MIB = 1 << 20, MOST = 48 << 20 };

static url_source file_of(uint64_t mib)
{
    return (url_source){ .base.size = mib * MIB };
}

static void read_at(url_source *u, uint64_t mib, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        heft_url_follow(u, mib * MIB + i * MIB, MIB, MOST);
}

/* A thread of its own reads `count` MiB. */
typedef struct reading {
    url_source *u;
    uint64_t mib, count;
} reading;

static void *read_in_thread(void *arg)
{
    reading *r = arg;
    read_at(r->u, r->mib, r->count);
    return NULL;
}

static void read_elsewhere(url_source *u, uint64_t mib, uint64_t count)
{
    reading r = { u, mib, count };
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, read_in_thread, &r), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static uint64_t end_near(url_source *u, uint64_t mib)
{
    const url_row *row = heft_url_row_near(u, mib * MIB);
    return row ? heft_url_row_end(u, row) / MIB : 0;
}

static void bytes_ahead_grow_with_a_row(void **state)
{
    url_source u = file_of(1000);
    (void)state;
    read_at(&u, 100, 1);
    assert_int_equal(end_near(&u, 101), 101);
    read_at(&u, 101, 1);
    assert_int_equal(end_near(&u, 102), 102 + 4);
    read_at(&u, 102, 8);
    assert_int_equal(end_near(&u, 110), 110 + 2 * 9);
    read_at(&u, 110, 90);
    assert_int_equal(end_near(&u, 200), 200 + MOST / MIB);
    assert_int_equal(heft_url_rows_end(&u) / MIB, 200);
}

static void a_read_elsewhere_begins_a_row(void **state)
{
    url_source u = file_of(1000);
    (void)state;
    read_at(&u, 100, 10);
    read_at(&u, 500, 1);
    assert_int_equal(end_near(&u, 110), 110);
    assert_int_equal(end_near(&u, 501), 501);
    assert_null(heft_url_row_near(&u, UINT64_C(300) * MIB));
}

static void threads_read_rows_of_their_own(void **state)
{
    url_source u = file_of(1000);
    (void)state;
    read_at(&u, 100, 5);
    read_elsewhere(&u, 500, 5);
    assert_int_equal(end_near(&u, 105), 105 + 8);
    assert_int_equal(end_near(&u, 505), 505 + 8);
    read_at(&u, 105, 60);
    assert_int_equal(end_near(&u, 165), 165 + MOST / MIB / 2);
}

static void the_last_reader_of_a_row_keeps_it(void **state)
{
    url_source u = file_of(1000);
    (void)state;
    read_at(&u, 100, 5);
    read_elsewhere(&u, 105, 2);
    read_at(&u, 500, 1);
    assert_int_equal(end_near(&u, 107), 107 + 12);
}

static void nothing_is_requested_where_another_row_began(void **state)
{
    url_source u = file_of(1000);
    (void)state;
    read_elsewhere(&u, 116, 3);
    read_at(&u, 100, 10);
    assert_int_equal(end_near(&u, 110), 116);
    assert_int_equal(heft_url_next_row(&u, UINT64_C(101) * MIB) / MIB, 116);
    assert_int_equal(heft_url_next_row(&u, UINT64_C(117) * MIB) / MIB, 1000);
    read_at(&u, 110, 7);
    assert_true(end_near(&u, 117) > 117);
}

static void a_row_that_skips_bytes_begins_after_them(void **state)
{
    url_source u = file_of(1000);
    (void)state;
    read_at(&u, 0, 16);
    read_elsewhere(&u, 16, 2);
    read_at(&u, 32, 4);
    assert_int_equal(heft_url_next_row(&u, UINT64_C(17) * MIB) / MIB, 32);
}

static void tensors_from_the_last_to_the_first_are_rows(void **state)
{
    url_source u = file_of(1000);
    (void)state;
    for (uint64_t mib = 100; mib >= 20; mib -= 20) {
        read_at(&u, mib, 20);
        assert_int_equal(end_near(&u, mib + 20), mib == 100 ? 120 + 38 : mib + 20);
    }
}

static void reads_behind_the_foremost_one_continue_the_row(void **state)
{
    url_source u = file_of(1000);
    (void)state;
    read_at(&u, 100, 10);
    heft_url_follow(&u, 105 * MIB, 64 * KIB, MOST);
    assert_int_equal(end_near(&u, 110), 110 + 18);
    assert_ptr_equal(heft_url_row_near(&u, 105 * MIB), heft_url_row_near(&u, 110 * MIB));
    heft_url_follow(&u, 110 * MIB - 512 * KIB, MIB, MOST); /* half of the bytes were read before */
    assert_int_equal(heft_url_row_near(&u, 110 * MIB)->ahead, 19 * MIB);
}

static void a_row_that_nobody_continues_ends(void **state)
{
    url_source u = file_of(8000);
    (void)state;
    read_elsewhere(&u, 2000, 5);
    read_at(&u, 100, 1025);
    assert_int_equal(heft_url_next_row(&u, UINT64_C(1999) * MIB) / MIB, 8000);
}

static void the_oldest_of_many_rows_is_replaced(void **state)
{
    url_source u = file_of(8000);
    (void)state;
    for (uint64_t i = 0; i <= URL_ROWS; i++)
        read_at(&u, 100 * (i + 1), 1);
    assert_null(heft_url_row_near(&u, UINT64_C(101) * MIB));
    assert_non_null(heft_url_row_near(&u, UINT64_C(201) * MIB));
    assert_non_null(heft_url_row_near(&u, UINT64_C(1701) * MIB));
}

static void the_digest_leads_a_row(void **state)
{
    url_source u = file_of(1000);
    (void)state;
    heft_url_lead(&u, 10 * MIB, 32 * MIB);
    assert_int_equal(end_near(&u, 10), 10 + 32);
    heft_url_lead(&u, 5 * MIB, 32 * MIB);
    assert_int_equal(end_near(&u, 5), 5 + 32); /* the beginning of the row is no limit for it */
    heft_url_lead(&u, 11 * MIB, 32 * MIB);
    assert_int_equal(end_near(&u, 11), 11 + 32);
    heft_request inside = { .offset = 20 * MIB, .length = MIB };
    heft_request outside = { .offset = 43 * MIB, .length = MIB };
    assert_true(heft_url_is_in_rows(&u, &inside));
    assert_false(heft_url_is_in_rows(&u, &outside));
}

static void announced_bytes_are_requested_before_any_is_read(void **state)
{
    url_source u = file_of(1000);
    (void)state;
    const url_row *row = heft_url_announce(&u, 100 * MIB, 700 * MIB, MOST);
    assert_int_equal(heft_url_row_end(&u, row), 100 * MIB + MOST);
    assert_true(heft_url_is_in_long_row(&u, 100 * MIB));
    assert_false(heft_url_is_in_long_row(&u, 700 * MIB));
    read_at(&u, 100, 590);
    assert_int_equal(end_near(&u, 690), 700);
    assert_ptr_equal(heft_url_announce(&u, 700 * MIB, 710 * MIB, MOST), row);
    assert_int_equal(end_near(&u, 690), 710);
    read_at(&u, 690, 20);
    assert_int_equal(end_near(&u, 710), 710);
}

static void threads_share_an_announced_row(void **state)
{
    url_source u = file_of(1000);
    (void)state;
    read_at(&u, 0, 1); /* the index, and the first bytes after it */
    heft_url_announce(&u, MIB / 2, 900 * MIB, MOST);
    read_at(&u, 1, 2);
    read_elsewhere(&u, 9, 2);
    read_at(&u, 3, 2);
    assert_int_equal(end_near(&u, 5), 11 + MOST / MIB);
    assert_int_equal(end_near(&u, 11), 11 + MOST / MIB);
}

static void a_thread_keeps_its_announced_rows(void **state)
{
    url_source u = file_of(1000);
    (void)state;
    heft_url_announce(&u, 100 * MIB, 200 * MIB, MOST);
    heft_url_begin_row(&u, 500 * MIB);
    assert_int_equal(end_near(&u, 100), 100 + MOST / MIB);
}

static void a_row_that_ends_cancels_its_requests_alone(void **state)
{
    heft_url_options options = { 0 };
    url_source u = file_of(1000);
    heft_error err;
    (void)state;
    if (heft_session_new(&u.session, &options, &err))
        skip(); /* this machine has no libcurl */
    block other = { .request = { .offset = 304 * MIB, .length = MIB } };
    block done = { .request = { .offset = 15 * MIB, .length = MIB, .state = HEFT_REQUEST_DONE },
                   .next = &other };
    block waited = { .request = { .offset = 16 * MIB, .length = MIB },
                     .next = &done,
                     .readers = 1 };
    block ahead = { .request = { .offset = 20 * MIB, .length = MIB }, .next = &waited };
    u.blocks = &ahead;
    heft_url_lead(&u, 10 * MIB, 32 * MIB);
    read_elsewhere(&u, 300, 4);
    read_at(&u, 600, 1);
    assert_true(ahead.request.is_cancelled);
    assert_false(waited.request.is_cancelled);
    assert_false(done.request.is_cancelled);
    assert_false(other.request.is_cancelled);
    heft_session_release(u.session);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_ahead_grow_with_a_row),
        cmocka_unit_test(a_read_elsewhere_begins_a_row),
        cmocka_unit_test(threads_read_rows_of_their_own),
        cmocka_unit_test(the_last_reader_of_a_row_keeps_it),
        cmocka_unit_test(nothing_is_requested_where_another_row_began),
        cmocka_unit_test(a_row_that_skips_bytes_begins_after_them),
        cmocka_unit_test(tensors_from_the_last_to_the_first_are_rows),
        cmocka_unit_test(reads_behind_the_foremost_one_continue_the_row),
        cmocka_unit_test(a_row_that_nobody_continues_ends),
        cmocka_unit_test(the_oldest_of_many_rows_is_replaced),
        cmocka_unit_test(the_digest_leads_a_row),
        cmocka_unit_test(announced_bytes_are_requested_before_any_is_read),
        cmocka_unit_test(threads_share_an_announced_row),
        cmocka_unit_test(a_thread_keeps_its_announced_rows),
        cmocka_unit_test(a_row_that_ends_cancels_its_requests_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
