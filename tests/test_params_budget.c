/* test_params_budget.c - resident bytes return under the budget once parameters are released. */
#include "models.h"

#include <pthread.h>
#include <unistd.h>

#include <heft/params.h>

enum { COUNT = 64, BYTES = 4096, BUDGET = 100000 };

typedef struct store {
    heft_bytes file;
    heft_params *p;
    heft_id128 keys[COUNT];
} store;

static store open_store(void)
{
    static char names[COUNT][8];
    test_tensor tensors[COUNT];
    heft_params_options opt = HEFT_PARAMS_OPTIONS_INIT;
    heft_source *source;
    heft_error err;
    heft_file *f;
    heft_id128 namespace;
    store s;
    for (int i = 0; i < COUNT; i++) {
        snprintf(names[i], sizeof names[i], "%02d", i);
        tensors[i] = (test_tensor){ names[i], HEFT_U8, 1, { BYTES } };
    }
    s.file = heft_test_model("safetensors", tensors, COUNT);
    opt.budget = BUDGET;
    opt.copy = true;
    heft_assert_ok(heft_source_open_memory(&source, s.file.p, s.file.len, &err), &err);
    heft_assert_ok(heft_file_open_source(&f, source, NULL, &err), &err);
    heft_assert_ok(heft_params_open(&s.p, &opt, &err), &err);
    heft_assert_ok(heft_params_add(&namespace, s.p, f, &err), &err);
    for (uint32_t i = 0; i < COUNT; i++)
        s.keys[i] = heft_params_key_at(s.p, i);
    return s;
}

static void close_store(store *s)
{
    heft_params_close(s->p);
    heft_test_free(&s->file);
}

static void acquire(store *s, uint32_t i)
{
    heft_error err;
    heft_param w;
    heft_assert_ok(heft_params_acquire(&w, s->p, s->keys[i], &err), &err);
}

/* Resident bytes are at least the bytes in use, and at most that or the budget. */
static void assert_resident(const store *s, uint64_t in_use)
{
    uint64_t max_bytes = in_use > BUDGET ? in_use : BUDGET;
    assert_in_range(heft_params_statistics(s->p).resident, in_use, max_bytes);
}

static void releasing_returns_to_the_budget(void **state)
{
    static const uint32_t step[] = { 1, 63, 5 }; /* steps of the order of releasing */
    (void)state;
    for (size_t k = 0; k < HEFT_COUNT(step); k++) {
        store s = open_store();
        for (uint32_t i = 0; i < COUNT; i++)
            acquire(&s, i);
        assert_int_equal(heft_params_statistics(s.p).resident, COUNT * BYTES);
        for (uint32_t i = 0, at = 0; i < COUNT; i++, at += step[k]) {
            heft_params_release(s.p, s.keys[at % COUNT]);
            assert_resident(&s, (uint64_t)(COUNT - 1 - i) * BYTES);
        }
        assert_int_equal(heft_params_statistics(s.p).resident, BUDGET / BYTES * BYTES);
        close_store(&s);
    }
}

static void keeps_a_parameter_until_the_last_release(void **state)
{
    (void)state;
    store s = open_store();
    for (uint32_t i = 0; i < COUNT; i++) {
        acquire(&s, i);
        acquire(&s, i);
    }
    for (uint32_t i = 0; i < COUNT; i++)
        heft_params_release(s.p, s.keys[i]);
    assert_int_equal(heft_params_statistics(s.p).resident, COUNT * BYTES);
    for (uint32_t i = 0; i < COUNT; i++)
        heft_params_release(s.p, s.keys[i]);
    assert_resident(&s, 0);
    close_store(&s);
}

static void unpinning_returns_to_the_budget(void **state)
{
    heft_error err;
    (void)state;
    store s = open_store();
    for (uint32_t i = 0; i < COUNT; i++)
        heft_assert_ok(heft_params_pin(s.p, s.keys[i], &err), &err);
    assert_int_equal(heft_params_statistics(s.p).resident, COUNT * BYTES);
    for (uint32_t i = 0; i < COUNT; i++) {
        heft_params_unpin(s.p, s.keys[i]);
        assert_resident(&s, (uint64_t)(COUNT - 1 - i) * BYTES);
    }
    close_store(&s);
}

static void releasing_forms_returns_to_the_budget(void **state)
{
    heft_derivation d = heft_derivation_f32();
    heft_error err;
    heft_param w;
    (void)state;
    store s = open_store();
    for (uint32_t i = 0; i < COUNT; i++)
        heft_assert_ok(heft_params_resolve(&w, s.p, s.keys[i], &d, &err), &err);
    assert_int_equal(heft_params_statistics(s.p).resident, COUNT * BYTES * 4);
    for (uint32_t i = 0; i < COUNT; i++) {
        heft_params_release_form(s.p, s.keys[i], d.kind);
        assert_resident(&s, (uint64_t)(COUNT - 1 - i) * BYTES * 4);
    }
    close_store(&s);
}

/* A parameter larger than the budget is evicted at the release. */
static void evicts_a_released_parameter_beyond_the_budget(void **state)
{
    static const test_tensor t = { "t", HEFT_U8, 1, { 2 * BUDGET } };
    heft_params_options opt = HEFT_PARAMS_OPTIONS_INIT;
    heft_bytes b = heft_test_model("safetensors", &t, 1);
    heft_source *source;
    heft_error err;
    heft_file *f;
    heft_id128 namespace;
    heft_param w;
    store s = { .file = b };
    (void)state;
    opt.budget = BUDGET;
    opt.copy = true;
    heft_assert_ok(heft_source_open_memory(&source, b.p, b.len, &err), &err);
    heft_assert_ok(heft_file_open_source(&f, source, NULL, &err), &err);
    heft_assert_ok(heft_params_open(&s.p, &opt, &err), &err);
    heft_assert_ok(heft_params_add(&namespace, s.p, f, &err), &err);
    for (int i = 0; i < 2; i++) {
        heft_id128 key = heft_params_key_at(s.p, 0);
        heft_assert_ok(heft_params_acquire(&w, s.p, key, &err), &err);
        heft_params_release(s.p, key);
        assert_int_equal(heft_params_statistics(s.p).resident, 0);
    }
    assert_int_equal(heft_params_statistics(s.p).evictions, 2);
    close_store(&s);
}

/* Prefetches wait while acquired parameters fill the budget, and continue after releases. */
static void prefetch_continues_when_the_budget_allows(void **state)
{
    (void)state;
    store s = open_store();
    for (uint32_t i = 0; i < COUNT / 2; i++) /* more than the budget */
        acquire(&s, i);
    heft_params_prefetch(s.p, &s.keys[COUNT / 2], COUNT / 2);
    usleep(20000); /* time for a prefetch beyond the budget, which must not be */
    for (uint32_t i = 0; i < COUNT / 2; i++) {
        heft_params_release(s.p, s.keys[i]);
        assert_resident(&s, (uint64_t)(COUNT / 2 - 1 - i) * BYTES);
    }
    while (heft_params_statistics(s.p).loads < COUNT / 2 + BUDGET / BYTES)
        usleep(1000); /* until prefetched parameters fill the budget */
    assert_resident(&s, 0);
    assert_int_equal(heft_params_statistics(s.p).peak, COUNT / 2 * BYTES);
    close_store(&s);
}

/* The prefetching thread holds no parameter after the load. */
static void prefetched_parameters_can_be_evicted(void **state)
{
    enum { FIT = BUDGET / BYTES };
    (void)state;
    store s = open_store();
    heft_params_prefetch(s.p, s.keys, FIT);
    while (heft_params_statistics(s.p).loads < FIT)
        usleep(1000);
    for (uint32_t i = FIT; i < COUNT; i++) {
        acquire(&s, i);
        heft_params_release(s.p, s.keys[i]);
    }
    assert_int_equal(heft_params_statistics(s.p).evictions, COUNT - FIT);
    assert_int_equal(heft_params_statistics(s.p).resident, FIT * BYTES);
    close_store(&s);
}

typedef struct thread_args {
    store *s;
    atomic_uint seed;
} thread_args;

static void *hold_and_release(void *arg)
{
    thread_args *c = arg;
    uint32_t r = atomic_fetch_add(&c->seed, 2654435761u), held[40];
    for (int round = 0; round < 300; round++) {
        for (size_t k = 0; k < HEFT_COUNT(held); k++) {
            heft_param w;
            r = r * 1664525 + 1013904223;
            held[k] = (r >> 16) % COUNT;
            if (heft_params_acquire(&w, c->s->p, c->s->keys[held[k]], NULL))
                abort();
        }
        for (size_t k = 0; k < HEFT_COUNT(held); k++)
            heft_params_release(c->s->p, c->s->keys[held[k]]);
    }
    return NULL;
}

static void many_threads_return_to_the_budget(void **state)
{
    pthread_t threads[4];
    (void)state;
    store s = open_store();
    thread_args c = { .s = &s };
    for (size_t i = 0; i < HEFT_COUNT(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, hold_and_release, &c), 0);
    for (size_t i = 0; i < HEFT_COUNT(threads); i++)
        pthread_join(threads[i], NULL);
    assert_true(heft_params_statistics(s.p).peak > BUDGET);
    assert_resident(&s, 0);
    close_store(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(releasing_returns_to_the_budget),
        cmocka_unit_test(keeps_a_parameter_until_the_last_release),
        cmocka_unit_test(unpinning_returns_to_the_budget),
        cmocka_unit_test(releasing_forms_returns_to_the_budget),
        cmocka_unit_test(evicts_a_released_parameter_beyond_the_budget),
        cmocka_unit_test(prefetch_continues_when_the_budget_allows),
        cmocka_unit_test(prefetched_parameters_can_be_evicted),
        cmocka_unit_test(many_threads_return_to_the_budget),
    };
    return cmocka_run_group_tests_name("params_budget", tests, NULL, NULL);
}
