/* test_params_memory.c - the parameter store without memory, without threads, and in races of
 * two threads. The calls are intercepted through the linker option --wrap, see meson.build. */
#include "models.h"

#include <errno.h>
#include <pthread.h>
#include <unistd.h>

#include <heft/params.h>

/* ---- intercepted calls ---------------------------------------------------------------------- */

static struct {
    int fail_at; /* number of the allocation that fails, from 1; 0: none */
    int calls;
    bool no_threads;
    void (*before_lock)(void); /* called once, before the next lock */
    int joins;                 /* threads that were joined */
} plan;

static bool fails(void)
{
    return plan.fail_at && ++plan.calls == plan.fail_at;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
int __real_posix_memalign(void **out, size_t align, size_t size);
int __real_pthread_create(pthread_t *out, const pthread_attr_t *attr, void *(*fn)(void *),
                          void *arg);
int __real_pthread_mutex_lock(pthread_mutex_t *lock);
int __real_pthread_join(pthread_t thread, void **result);
int __wrap_pthread_join(pthread_t thread, void **result);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
int __wrap_posix_memalign(void **out, size_t align, size_t size);
int __wrap_pthread_create(pthread_t *out, const pthread_attr_t *attr, void *(*fn)(void *),
                          void *arg);
int __wrap_pthread_mutex_lock(pthread_mutex_t *lock);

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size)
{
    return fails() ? NULL : __real_realloc(p, size);
}

int __wrap_posix_memalign(void **out, size_t align, size_t size)
{
    return fails() ? ENOMEM : __real_posix_memalign(out, align, size);
}

int __wrap_pthread_create(pthread_t *out, const pthread_attr_t *attr, void *(*fn)(void *),
                          void *arg)
{
    return plan.no_threads ? EAGAIN : __real_pthread_create(out, attr, fn, arg);
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *lock)
{
    void (*before)(void) = plan.before_lock;
    if (before) {
        plan.before_lock = NULL;
        before();
    }
    return __real_pthread_mutex_lock(lock);
}

int __wrap_pthread_join(pthread_t thread, void **result)
{
    plan.joins++;
    return __real_pthread_join(thread, result);
}

/* ---- a store -------------------------------------------------------------------------------- */

enum { BYTES = 4096, TENSORS = 40 };

static struct {
    heft_bytes bytes;
    heft_params *p;
    heft_id128 model, keys[TENSORS];
    heft_params_options opt;
    heft_file *take; /* for add() */
} store;

/* Tensors "00", "01" and so on, from number `first`. */
static heft_bytes make_file(uint32_t first, uint32_t count)
{
    static char names[TENSORS][8];
    test_tensor tensors[TENSORS];
    for (uint32_t i = 0; i < count; i++) {
        snprintf(names[i], sizeof names[i], "%02u", first + i);
        tensors[i] = (test_tensor){ names[i], HEFT_U8, 2, { 64, BYTES / 64 } };
    }
    return heft_test_model("burnpack", tensors, count);
}

static heft_file *open_bytes(heft_bytes b)
{
    heft_error err;
    heft_file *f;
    heft_assert_ok(heft_test_open(&f, b, NULL, &err), &err);
    return f;
}

static void open_store(const heft_params_options *opt)
{
    heft_error err;
    store.bytes = make_file(0, TENSORS);
    heft_assert_ok(heft_params_open(&store.p, opt, &err), &err);
    heft_assert_ok(heft_params_add(&store.model, store.p, open_bytes(store.bytes), &err), &err);
    for (uint32_t i = 0; i < TENSORS; i++)
        store.keys[i] = heft_params_key_at(store.p, i);
}

static void close_store(void)
{
    heft_params_close(store.p);
    heft_test_free(&store.bytes);
}

static heft_params_options copying(void)
{
    heft_params_options opt = HEFT_PARAMS_OPTIONS_INIT;
    opt.copy = true;
    return opt;
}

static void acquire(uint32_t i)
{
    heft_error err;
    heft_param w;
    heft_assert_ok(heft_params_acquire(&w, store.p, store.keys[i], &err), &err);
    assert_int_equal(w.bytes, BYTES);
}

/* ---- each allocation fails ------------------------------------------------------------------ */

static heft_status open_another(heft_error *err)
{
    heft_params *p;
    heft_id128 model;
    heft_status st = heft_params_open(&p, &store.opt, err);
    if (st)
        heft_file_close(store.take);
    else
        st = heft_params_add(&model, p, store.take, err);
    heft_params_close(p);
    return st;
}

static heft_status add_file(heft_error *err)
{
    return heft_params_add_to(store.p, store.model, store.take, err);
}

static heft_status acquire_first(heft_error *err)
{
    heft_param w;
    heft_status st = heft_params_acquire(&w, store.p, store.keys[0], err);
    if (!st)
        heft_params_release(store.p, store.keys[0]);
    return st;
}

static heft_status resolve_second(heft_error *err)
{
    heft_param w;
    heft_derivation d = heft_derivation_f32();
    heft_status st = heft_params_resolve(&w, store.p, store.keys[1], &d, err);
    if (!st)
        heft_params_release_form(store.p, store.keys[1], d.kind);
    return st;
}

/* Call with failing allocation `at`; return false if there are fewer allocations. */
static bool call_without_memory(heft_status (*call)(heft_error *err), int at, heft_bytes more)
{
    heft_error err;
    open_store(&store.opt);
    bool takes_file = call == add_file || call == open_another;
    store.take = takes_file ? open_bytes(more) : NULL;
    plan.calls = 0;
    plan.fail_at = at;
    heft_status st = call(&err);
    plan.fail_at = 0;
    bool is_reached = plan.calls >= at;
    heft_assert_status(st, is_reached ? HEFT_E_NOMEM : HEFT_OK, &err);
    if (call == add_file)
        assert_int_equal(heft_params_count(store.p), is_reached ? TENSORS : 2 * TENSORS);
    if (call == acquire_first)
        assert_int_equal(heft_params_statistics(store.p).resident, is_reached ? 0 : BYTES);
    store.take = takes_file && is_reached ? open_bytes(more) : NULL;
    if (is_reached) /* the failure left nothing behind */
        heft_assert_ok(call(&err), &err);
    close_store();
    return is_reached;
}

static void reports_each_failed_allocation(void **state)
{
    static const struct {
        heft_status (*call)(heft_error *err);
        int min; /* allocations at least */
    } rows[] = {
        { open_another, 7 }, /* store, entries, heap, Burn ids, files, order, table */
        { add_file, 4 },     /* some lists are long enough */
        { acquire_first, 3 },
        { resolve_second, 6 },
    };
    (void)state;
    store.opt = copying();
    heft_bytes more = make_file(TENSORS, TENSORS);
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        int at = 1;
        while (call_without_memory(rows[i].call, at, more))
            at++;
        assert_true(at > rows[i].min);
    }
    heft_test_free(&more);
}

/* A form of a parameter that cannot be loaded is an error, too. */
static void a_form_needs_the_parameter(void **state)
{
    heft_params_options opt = copying();
    heft_derivation d = heft_derivation_f32();
    heft_error err;
    heft_param w;
    (void)state;
    open_store(&opt);
    for (int at = 1; at < 4; at++) {
        plan.calls = 0;
        plan.fail_at = at;
        heft_assert_status(heft_params_resolve(&w, store.p, store.keys[0], &d, &err), HEFT_E_NOMEM,
                           &err);
        plan.fail_at = 0;
    }
    assert_int_equal(heft_params_statistics(store.p).resident, 0);
    close_store();
}

/* The map of a large part needs memory as well. */
static void mapping_reports_missing_memory(void **state)
{
    const test_tensor t = { "w", HEFT_U8, 1, { 1 << 20 } };
    const char *path = heft_test_path(*state, "m.safetensors");
    heft_bytes b = heft_test_model("safetensors", &t, 1);
    heft_error err;
    heft_file *f;
    heft_param w;
    heft_test_save(path, b.p, b.len);
    heft_test_free(&b);
    heft_assert_ok(heft_file_open(&f, path, NULL, &err), &err);
    heft_assert_ok(heft_params_open(&store.p, NULL, &err), &err);
    heft_assert_ok(heft_params_add(&store.model, store.p, f, &err), &err);
    heft_id128 key = heft_params_key_at(store.p, 0);
    for (plan.calls = 0, plan.fail_at = 1; plan.fail_at < 3; plan.fail_at++, plan.calls = 0) {
        heft_assert_status(heft_params_acquire(&w, store.p, key, &err), HEFT_E_NOMEM, &err);
        assert_int_equal(heft_params_statistics(store.p).resident, 0);
    }
    plan.fail_at = 0;
    heft_assert_ok(heft_params_acquire(&w, store.p, key, &err), &err);
    heft_params_release(store.p, key);
    heft_params_close(store.p);
}

static void count_event(void *ctx, heft_params_event event, heft_id128 key, uint64_t bytes)
{
    (void)key, (void)bytes;
    ((int *)ctx)[event]++;
}

static void loses_events_without_memory(void **state)
{
    heft_params_options opt = HEFT_PARAMS_OPTIONS_INIT;
    int events[4] = { 0 };
    (void)state;
    opt.on_event = count_event;
    opt.ctx = events;
    open_store(&opt);
    plan.calls = 0;
    plan.fail_at = 2; /* the event of the stall */
    acquire(0);
    plan.fail_at = 0;
    assert_int_equal(events[HEFT_PARAMS_STALL], 0);
    assert_int_equal(events[HEFT_PARAMS_LOAD], 1);
    assert_int_equal(heft_params_statistics(store.p).stalls, 1);
    heft_params_release(store.p, store.keys[0]);
    close_store();
}

/* ---- prefetching ---------------------------------------------------------------------------- */

static void await_loads(uint64_t loads)
{
    while (heft_params_statistics(store.p).loads < loads)
        usleep(1000);
}

static void prefetches_once_a_thread_can_be_created(void **state)
{
    heft_params_options opt = copying();
    (void)state;
    open_store(&opt);
    plan.no_threads = true;
    heft_params_prefetch(store.p, store.keys, 2);
    plan.no_threads = false;
    assert_int_equal(heft_params_statistics(store.p).loads, 0);
    acquire(3);
    heft_params_release(store.p, store.keys[3]);
    heft_params_prefetch(store.p, &store.keys[2], 1);
    await_loads(4);
    close_store();
}

/* Otherwise the thread would use the closed store. */
static void closing_waits_for_the_prefetching_thread(void **state)
{
    (void)state;
    for (int prefetches = 0; prefetches < 2; prefetches++) {
        heft_params_options opt = copying();
        open_store(&opt);
        if (prefetches)
            heft_params_prefetch(store.p, store.keys, TENSORS);
        plan.joins = 0;
        close_store();
        assert_int_equal(plan.joins, prefetches);
    }
}

static void skips_requests_without_memory(void **state)
{
    heft_params_options opt = copying();
    (void)state;
    open_store(&opt);
    plan.no_threads = true; /* this thread only */
    plan.calls = 0;
    plan.fail_at = 1; /* the queue */
    heft_params_prefetch(store.p, &store.keys[5], 1);
    plan.no_threads = false;
    plan.fail_at = 0;
    heft_params_prefetch(store.p, &store.keys[6], 1);
    await_loads(1);
    acquire(6);
    assert_int_equal(heft_params_statistics(store.p).loads, 1);
    heft_params_release(store.p, store.keys[6]);
    close_store();
}

/* ---- races --------------------------------------------------------------------------------- */

static void resolve_now(void)
{
    heft_error err;
    assert_int_equal(resolve_second(&err), HEFT_OK);
}

static void adds_a_form_once(void **state)
{
    heft_params_options opt = copying();
    heft_error err;
    (void)state;
    open_store(&opt);
    plan.before_lock = resolve_now; /* between the search for the form and the lock */
    assert_int_equal(resolve_second(&err), HEFT_OK);
    assert_int_equal(heft_params_statistics(store.p).loads, 2); /* the parameter and the form */
    close_store();
}

static void acquire_again(void)
{
    acquire(0);
}

static void keeps_a_parameter_that_is_acquired_during_the_release(void **state)
{
    heft_params_options opt = copying();
    (void)state;
    opt.budget = BYTES;
    open_store(&opt);
    acquire(0);
    acquire(1); /* over the budget */
    plan.before_lock = acquire_again;
    heft_params_release(store.p, store.keys[0]);
    assert_int_equal(heft_params_statistics(store.p).resident, 2 * BYTES);
    assert_int_equal(heft_params_statistics(store.p).evictions, 0);
    heft_params_release(store.p, store.keys[0]);
    assert_int_equal(heft_params_statistics(store.p).resident, BYTES);
    assert_int_equal(heft_params_statistics(store.p).evictions, 1);
    heft_params_release(store.p, store.keys[1]);
    acquire(2);
    heft_params_release(store.p, store.keys[2]);
    assert_int_equal(heft_params_statistics(store.p).evictions, 2);
    close_store();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reports_each_failed_allocation),
        cmocka_unit_test(a_form_needs_the_parameter),
        cmocka_unit_test_setup_teardown(mapping_reports_missing_memory, heft_test_dir_make,
                                        heft_test_dir_remove),
        cmocka_unit_test(loses_events_without_memory),
        cmocka_unit_test(prefetches_once_a_thread_can_be_created),
        cmocka_unit_test(closing_waits_for_the_prefetching_thread),
        cmocka_unit_test(skips_requests_without_memory),
        cmocka_unit_test(adds_a_form_once),
        cmocka_unit_test(keeps_a_parameter_that_is_acquired_during_the_release),
    };
    return cmocka_run_group_tests_name("params_memory", tests, NULL, NULL);
}
