/* test_arena.c - tests of the arena and of vectors, with an allocator that can fail. */
#include "base/arena.h"

#include <string.h>

#include "base/text.h"
#include "test_memory.h"

static void freeing_null_changes_nothing(void **state)
{
    (void)state;
    test_memory t;
    test_memory_init(&t, 3);
    heft_memory m = { .al = &t.al, .limit = 100 };
    void *plain = heft_alloc(&t.al, 40, 16), *counted = heft_mem_alloc(&m, 60);
    assert_non_null(plain);
    assert_non_null(counted);
    assert_int_equal(m.used, 60);
    assert_null(heft_mem_alloc(&m, 41)); /* past the limit */
    assert_null(heft_alloc(&t.al, 1, 16));
    heft_mem_free(&m, NULL, 41);
    heft_free(&t.al, NULL, 1, 16);
    assert_int_equal(m.used, 60);
    heft_mem_free(&m, counted, 60);
    heft_free(&t.al, plain, 40, 16);
    assert_int_equal(m.used, 0);
    assert_int_equal(t.live, 0);
}

static void the_limit_is_the_largest_sum_of_allocations(void **state)
{
    (void)state;
    test_memory t;
    test_memory_init(&t, 0);
    heft_memory m = { .al = &t.al, .limit = 100 };
    void *first = heft_mem_alloc(&m, 60), *second = heft_mem_alloc(&m, 40);
    assert_non_null(first);
    assert_non_null(second);
    assert_null(heft_mem_resize(&m, second, 40, 41));
    m.limit = 10; /* memory can be returned, no matter how much is in use */
    second = heft_mem_resize(&m, second, 40, 39);
    assert_non_null(second);
    assert_null(heft_mem_resize(&m, second, 39, 40));
    assert_int_equal(m.used, 99);
    heft_mem_free(&m, first, 60);
    heft_mem_free(&m, second, 39);
    assert_int_equal(m.used, 0);
    assert_int_equal(t.live, 0);
}

static void allocations_are_aligned_and_do_not_overlap(void **state)
{
    (void)state;
    test_memory t;
    test_memory_init(&t, 0);
    heft_memory m = { .al = &t.al, .limit = UINT64_MAX };
    heft_arena a = { .mem = &m };
    uint8_t *blocks[400];
    for (size_t i = 0; i < 400; i++) {
        size_t align = (size_t)1 << i % 7;
        blocks[i] = heft_arena_alloc(&a, i, align);
        assert_non_null(blocks[i]);
        assert_int_equal((uintptr_t)blocks[i] % align, 0);
        memset(blocks[i], (int)(i & 0xFF), i);
    }
    for (size_t i = 0; i < 400; i++)
        for (size_t b = 0; b < i; b++)
            assert_int_equal(blocks[i][b], i & 0xFF);
    assert_int_equal(m.used, t.live);
    assert_true(t.calls < 12); /* blocks grow */
    heft_arena_free(&a);
    assert_int_equal(m.used, 0);
    assert_int_equal(t.live, 0);
    assert_null(a.last);
}

static void a_small_arena_reserves_at_most_one_kibibyte(void **state)
{
    (void)state;
    test_memory t;
    test_memory_init(&t, 0);
    heft_memory m = { .al = &t.al, .limit = 64 * 1024 };
    heft_arena a = { .mem = &m };
    assert_non_null(heft_arena_alloc(&a, 100, 8));
    assert_true(m.used <= 1024);
    heft_arena_free(&a);
}

static void blocks_stop_growing_at_a_mebibyte(void **state)
{
    (void)state;
    test_memory t;
    test_memory_init(&t, 0);
    heft_memory m = { .al = &t.al, .limit = UINT64_MAX };
    heft_arena a = { .mem = &m };
    uint64_t before = 0, largest = 0;
    for (size_t i = 0; i < 8 << 20; i += 512) {
        assert_non_null(heft_arena_alloc(&a, 512, 1));
        largest = m.used - before > largest ? m.used - before : largest;
        before = m.used;
    }
    assert_int_equal(largest, 1 << 20);
    heft_arena_free(&a);
}

static void a_large_allocation_gets_a_separate_block(void **state)
{
    (void)state;
    test_memory t;
    test_memory_init(&t, 0);
    heft_memory m = { .al = &t.al, .limit = UINT64_MAX };
    heft_arena a = { .mem = &m };
    size_t size = (5 << 20) + 1;
    char *p = heft_arena_alloc(&a, size, 16);
    assert_non_null(p);
    memset(p, 1, size);
    assert_non_null(heft_arena_alloc(&a, 1, 1));
    heft_arena_free(&a);
    assert_int_equal(t.live, 0);
}

static void aligned_allocations_stay_inside_the_block(void **state)
{
    (void)state;
    for (size_t size = 800; size < 1100; size++) {
        test_memory t;
        test_memory_init(&t, 0);
        heft_memory m = { .al = &t.al, .limit = UINT64_MAX };
        heft_arena a = { .mem = &m };
        assert_non_null(heft_arena_alloc(&a, 1, 1));
        char *p = heft_arena_alloc(&a, size, 64);
        assert_non_null(p);
        memset(p, 0, size);
        heft_arena_free(&a);
    }
}

static void impossible_sizes_are_refused(void **state)
{
    (void)state;
    test_memory t;
    test_memory_init(&t, 0);
    heft_memory m = { .al = &t.al, .limit = 1 << 20 };
    heft_arena a = { .mem = &m };
    assert_null(heft_arena_alloc(&a, SIZE_MAX, 16));
    assert_null(heft_arena_alloc(&a, SIZE_MAX - 40, 16));
    assert_null(heft_arena_alloc(&a, 1 << 20, 16)); /* the limit includes the block header */
    assert_non_null(heft_arena_alloc(&a, (1 << 20) - 200, 16));
    assert_null(heft_arena_alloc(&a, 1000, 16));
    assert_true(m.used <= m.limit);
    heft_arena_free(&a);
    assert_int_equal(m.used, 0);
}

static void copies_are_equal_and_never_null(void **state)
{
    (void)state;
    test_memory t;
    test_memory_init(&t, 0);
    heft_memory m = { .al = &t.al, .limit = UINT64_MAX };
    heft_arena a = { .mem = &m };
    heft_str name = heft_lit("layers.0.weight"), copy = heft_arena_copy(&a, name);
    assert_true(heft_str_eq(name, copy));
    assert_ptr_not_equal(name.ptr, copy.ptr);
    assert_non_null(heft_arena_copy(&a, (heft_str){ NULL, 0 }).ptr);
    heft_arena_free(&a);
}

static void a_copy_is_null_when_memory_runs_out(void **state)
{
    (void)state;
    test_memory t;
    test_memory_init(&t, 1);
    heft_memory m = { .al = &t.al, .limit = UINT64_MAX };
    heft_arena a = { .mem = &m };
    assert_null(heft_arena_copy(&a, heft_lit("x")).ptr);
    assert_int_equal(m.used, 0);
    heft_arena_free(&a);
}

static void a_vector_keeps_its_elements_while_growing(void **state)
{
    (void)state;
    test_memory t;
    test_memory_init(&t, 0);
    heft_memory m = { .al = &t.al, .limit = UINT64_MAX };
    heft_vec v = { .ptr = NULL };
    for (uint64_t i = 0; i < 100000; i++) {
        uint64_t *p = heft_vec_push(&m, &v, sizeof *p);
        assert_non_null(p);
        *p = i * i;
    }
    assert_int_equal(v.len, 100000);
    for (uint64_t i = 0; i < v.len; i++)
        assert_true(((uint64_t *)v.ptr)[i] == i * i);
    assert_true(t.calls < 20);
    assert_int_equal(m.used, v.cap * sizeof(uint64_t));
    heft_vec_free(&m, &v, sizeof(uint64_t));
    assert_int_equal(t.live, 0);
    assert_int_equal(v.len, 0);
    assert_null(v.ptr);
    heft_vec_free(&m, &v, sizeof(uint64_t));
}

static void reserved_capacity_needs_one_allocation(void **state)
{
    (void)state;
    test_memory t;
    test_memory_init(&t, 0);
    heft_memory m = { .al = &t.al, .limit = UINT64_MAX };
    heft_vec v = { .ptr = NULL };
    assert_true(heft_vec_reserve(&m, &v, 5000, 12));
    for (int i = 0; i < 5000; i++)
        assert_non_null(heft_vec_push(&m, &v, 12));
    assert_int_equal(t.calls, 1);
    assert_true(heft_vec_reserve(&m, &v, 0, 12));
    assert_int_equal(t.calls, 1);
    heft_vec_free(&m, &v, 12);
}

static void a_vector_has_fewer_than_two_to_the_32_elements(void **state)
{
    (void)state;
    test_memory t;
    test_memory_init(&t, 0);
    heft_memory m = { .al = &t.al, .limit = 1 << 16 };
    heft_vec v = { .ptr = NULL };
    assert_non_null(heft_vec_push(&m, &v, 1));
    assert_false(heft_vec_reserve(&m, &v, UINT32_MAX - 1, 1));
    assert_false(heft_vec_reserve(&m, &v, UINT64_C(1) << 32, 1));
    assert_false(heft_vec_reserve(&m, &v, UINT64_MAX, 1));
    assert_false(heft_vec_reserve(&m, &v, UINT32_MAX - 2, 1)); /* in range, but past the limit */
    assert_int_equal(v.len, 1);
    heft_vec_free(&m, &v, 1);
    assert_int_equal(t.live, 0);
}

/* Allocate from an arena and a vector; return true if every allocation succeeded. */
static bool use_memory(heft_memory *m)
{
    heft_arena a = { .mem = m };
    heft_vec v = { .ptr = NULL };
    bool has_all = true;
    for (uint64_t i = 0; i < 3000 && has_all; i++) {
        uint64_t *p = heft_vec_push(m, &v, sizeof *p);
        if (p)
            *p = i;
        has_all = p && heft_arena_alloc(&a, 10, 1);
    }
    for (uint64_t i = 0; i < v.len; i++)
        assert_true(((uint64_t *)v.ptr)[i] == i);
    heft_vec_free(m, &v, sizeof(uint64_t));
    heft_arena_free(&a);
    return has_all;
}

static void a_failed_allocation_leaks_nothing(void **state)
{
    (void)state;
    for (uint32_t n = 1;; n++) {
        test_memory t;
        test_memory_init(&t, n);
        heft_memory m = { .al = &t.al, .limit = UINT64_MAX };
        bool has_all = use_memory(&m);
        assert_int_equal(has_all, t.calls < n);
        assert_int_equal(m.used, 0);
        assert_int_equal(t.live, 0);
        if (has_all) {
            assert_true(n > 10);
            break;
        }
    }
}

/* An allocator without memory, for sizes that no machine has. */
static void *pretend(void *ctx, void *p, size_t old_size, size_t new_size, size_t align)
{
    (void)old_size;
    (void)align;
    *(size_t *)ctx = new_size;
    return p ? p : ctx;
}

static void a_vector_may_have_two_to_the_32_less_two_elements(void **state)
{
    (void)state;
    size_t last = 0;
    heft_allocator al = { .size = sizeof al, .resize = pretend, .ctx = &last };
    heft_memory m = { .al = &al, .limit = UINT64_MAX };
    heft_vec v = { .ptr = NULL };
    assert_false(heft_vec_reserve(&m, &v, UINT32_MAX, 1));
    assert_int_equal(last, 0);
    assert_true(heft_vec_reserve(&m, &v, UINT32_MAX - 1, 1));
    assert_int_equal(v.cap, UINT32_MAX - 1);
    assert_int_equal(last, UINT32_MAX - 1);
    v.len = v.cap;
    assert_true(heft_vec_reserve(&m, &v, 0, 1));
    assert_false(heft_vec_reserve(&m, &v, 1, 1));
    v.len = v.cap = (UINT32_MAX - 1) / 2 + 1; /* twice as many would be too many */
    assert_true(heft_vec_reserve(&m, &v, 1, 1));
    assert_int_equal(v.cap, UINT32_MAX - 1);
    v.len = v.cap = 100;
    assert_true(heft_vec_reserve(&m, &v, 1, 1));
    assert_int_equal(v.cap, 200);
    assert_false(heft_vec_reserve(&m, &v, 200, SIZE_MAX / 300 + 1)); /* the bytes pass 64 bits */
}

static void joined_parts_follow_each_other(void **state)
{
    (void)state;
    test_memory t;
    test_memory_init(&t, 0);
    heft_memory m = { .al = &t.al, .limit = UINT64_MAX };
    heft_arena a = { .mem = &m };
    heft_str none = { NULL, 0 };
    assert_true(heft_str_is(heft_arena_join(&a, heft_lit("one"), none, heft_lit("two")), "onetwo"));
    assert_true(heft_str_is(heft_arena_join(&a, none, heft_lit("one"), heft_lit("two")), "onetwo"));
    assert_true(
        heft_str_is(heft_arena_join(&a, heft_lit("1"), heft_lit("2"), heft_lit("3")), "123"));
    heft_arena_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(freeing_null_changes_nothing),
        cmocka_unit_test(allocations_are_aligned_and_do_not_overlap),
        cmocka_unit_test(a_small_arena_reserves_at_most_one_kibibyte),
        cmocka_unit_test(blocks_stop_growing_at_a_mebibyte),
        cmocka_unit_test(a_large_allocation_gets_a_separate_block),
        cmocka_unit_test(aligned_allocations_stay_inside_the_block),
        cmocka_unit_test(impossible_sizes_are_refused),
        cmocka_unit_test(copies_are_equal_and_never_null),
        cmocka_unit_test(a_copy_is_null_when_memory_runs_out),
        cmocka_unit_test(a_vector_keeps_its_elements_while_growing),
        cmocka_unit_test(reserved_capacity_needs_one_allocation),
        cmocka_unit_test(a_vector_has_fewer_than_two_to_the_32_elements),
        cmocka_unit_test(a_failed_allocation_leaks_nothing),
        cmocka_unit_test(the_limit_is_the_largest_sum_of_allocations),
        cmocka_unit_test(a_vector_may_have_two_to_the_32_less_two_elements),
        cmocka_unit_test(joined_parts_follow_each_other),
    };
    return cmocka_run_group_tests_name("arena", tests, NULL, NULL);
}
