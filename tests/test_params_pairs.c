/* test_params_pairs.c - every pair of parameter store functions runs on two threads at once. The
 * thread sanitizer finds races; other builds check the results only. */
#include "heft_test.h"

#include <pthread.h>

#include <heft/params.h>

enum { TENSORS = 8, BYTES = 64, POOL = 64, ROUNDS = 30 };

/* ---- models in memory ----------------------------------------------------------------------- */

typedef struct model { /* a safetensors file with tensors named NUMBER.INDEX */
    uint8_t bytes[2048];
    size_t len;
} model;

static model pool[POOL];

static void make_model(model *m, unsigned number)
{
    char *text = (char *)m->bytes + 8;
    size_t capacity = sizeof m->bytes - 8, at = 0;
    at += (size_t)snprintf(text, capacity, "{\"__metadata__\":{");
    for (unsigned i = 0; i < TENSORS; i++)
        at += (size_t)snprintf(text + at, capacity - at, "%s\"heft.burn.param_id/%u.%u\":\"%u\"",
                               i ? "," : "", number, i, number * TENSORS + i);
    at += (size_t)snprintf(text + at, capacity - at, "}");
    for (unsigned i = 0; i < TENSORS; i++)
        at += (size_t)snprintf(
            text + at, capacity - at,
            ",\"%u.%u\":{\"dtype\":\"U8\",\"shape\":[%d],\"data_offsets\":[%u,%u]}", number, i,
            BYTES, i * BYTES, (i + 1) * BYTES);
    at += (size_t)snprintf(text + at, capacity - at, "}");
    m->bytes[0] = (uint8_t)at;
    m->bytes[1] = (uint8_t)(at >> 8);
    for (unsigned i = 0; i < TENSORS; i++)
        memset(text + at + i * BYTES, (int)i, BYTES);
    m->len = 8 + at + TENSORS * BYTES;
    assert_true(m->len <= sizeof m->bytes);
}

static heft_file *open_model(unsigned number)
{
    heft_source *s;
    heft_file *f;
    if (heft_source_open_memory(&s, pool[number].bytes, pool[number].len, NULL) ||
        heft_file_open_source(&f, s, NULL, NULL))
        return NULL;
    return f;
}

/* ---- functions of the store ----------------------------------------------------------------- */

typedef struct store {
    heft_params *p;
    heft_id128 namespace, keys[TENSORS];
    atomic_uint next; /* index of the next unused model in the pool */
    atomic_uint events, wrong;
} store;

static bool same(heft_id128 a, heft_id128 b)
{
    return !memcmp(&a, &b, sizeof a);
}

static bool count_and_key_at(store *s, unsigned i)
{
    uint32_t n = heft_params_count(s->p);
    heft_id128 last = heft_params_key_at(s->p, n - 1);
    return n >= TENSORS && heft_params_name(s->p, last).ptr &&
           same(heft_params_key_at(s->p, i % TENSORS), s->keys[i % TENSORS]);
}

static bool by_name(store *s, unsigned i)
{
    heft_id128 key;
    char name[] = { '0', '.', (char)('0' + i % TENSORS) };
    return heft_params_find(&key, s->p, s->namespace, (heft_str){ name, sizeof name }) &&
           same(key, s->keys[i % TENSORS]) &&
           !heft_params_find(&key, s->p, s->namespace, HEFT_STR("x"));
}

static bool by_base(store *s, unsigned i)
{
    heft_id128 key, base;
    char name[] = { '0', '.', (char)('0' + i % TENSORS) };
    return heft_param_base_id(&base, (heft_str){ name, sizeof name }) &&
           heft_params_find_base(&key, s->p, s->namespace, base) && same(key, s->keys[i % TENSORS]);
}

static bool by_burn(store *s, unsigned i)
{
    heft_id128 key;
    return heft_params_find_burn(&key, s->p, s->namespace, i % TENSORS) &&
           same(key, s->keys[i % TENSORS]) &&
           !heft_params_find_burn(&key, s->p, s->namespace, UINT64_MAX);
}

static bool name_of(store *s, unsigned i)
{
    heft_str name = heft_params_name(s->p, s->keys[i % TENSORS]);
    return name.len == 3 && name.ptr[2] == (char)('0' + i % TENSORS);
}

static bool acquire(store *s, unsigned i)
{
    heft_param w;
    if (heft_params_acquire(&w, s->p, s->keys[i % TENSORS], NULL))
        return false;
    const uint8_t *data = w.data;
    bool right = w.bytes == BYTES && data[0] == i % TENSORS && data[BYTES - 1] == i % TENSORS;
    heft_params_release(s->p, s->keys[i % TENSORS]);
    return right;
}

static bool pin(store *s, unsigned i)
{
    if (heft_params_pin(s->p, s->keys[i % TENSORS], NULL))
        return false;
    heft_params_unpin(s->p, s->keys[i % TENSORS]);
    return true;
}

static bool resolve(store *s, unsigned i)
{
    heft_param w;
    heft_derivation d = heft_derivation_f32();
    if (heft_params_resolve(&w, s->p, s->keys[i % TENSORS], &d, NULL))
        return false;
    float first;
    memcpy(&first, w.data, sizeof first);
    heft_test_le(&first, 1, sizeof first);
    heft_params_release_form(s->p, s->keys[i % TENSORS], d.kind);
    return w.bytes == 4 * BYTES && first == (float)(i % TENSORS);
}

static bool prefetch(store *s, unsigned i)
{
    heft_params_prefetch(s->p, &s->keys[i % TENSORS], TENSORS - i % TENSORS);
    return true;
}

static bool statistics(store *s, unsigned i)
{
    heft_params_stats t = heft_params_statistics(s->p);
    (void)i;
    return t.peak >= t.resident;
}

static bool add(store *s, unsigned i)
{
    heft_id128 namespace, key;
    heft_file *f = open_model(i % POOL);
    return f && !heft_params_add(&namespace, s->p, f, NULL) &&
           heft_params_find_burn(&key, s->p, namespace, i % POOL * TENSORS);
}

static bool add_to(store *s, unsigned i)
{
    unsigned number = atomic_fetch_add(&s->next, 1);
    heft_file *f = open_model(number);
    heft_id128 key;
    (void)i;
    return f && !heft_params_add_to(s->p, s->namespace, f, NULL) &&
           heft_params_find_burn(&key, s->p, s->namespace, number * TENSORS + 3);
}

static bool (*const functions[])(store *s, unsigned i) = {
    count_and_key_at, by_name,  by_base,    by_burn, name_of, acquire, pin,
    resolve,          prefetch, statistics, add,     add_to,
};

/* ---- two threads ---------------------------------------------------------------------------- */

typedef struct runner {
    store *s;
    bool (*fn)(store *s, unsigned i);
    pthread_barrier_t *barrier;
} runner;

static void *run(void *arg)
{
    const runner *r = arg;
    pthread_barrier_wait(r->barrier);
    for (unsigned i = 0; i < ROUNDS; i++)
        if (!r->fn(r->s, i))
            atomic_fetch_add(&r->s->wrong, 1);
    return NULL;
}

static void count_event(void *ctx, heft_params_event event, heft_id128 key, uint64_t bytes)
{
    (void)event, (void)key, (void)bytes;
    atomic_fetch_add(&((store *)ctx)->events, 1);
}

static void open_store(store *s)
{
    heft_params_options opt = HEFT_PARAMS_OPTIONS_INIT;
    heft_error err;
    *s = (store){ .p = NULL };
    atomic_store(&s->next, 1);
    opt.budget = 3 * BYTES; /* one derived form exceeds the budget */
    opt.copy = true;
    opt.on_event = count_event;
    opt.ctx = s;
    heft_assert_ok(heft_params_open(&s->p, &opt, &err), &err);
    heft_assert_ok(heft_params_add(&s->namespace, s->p, open_model(0), &err), &err);
    for (uint32_t i = 0; i < TENSORS; i++)
        s->keys[i] = heft_params_key_at(s->p, i);
}

static void run_pair(size_t a, size_t b)
{
    store s;
    pthread_t threads[2];
    pthread_barrier_t barrier;
    open_store(&s);
    assert_int_equal(pthread_barrier_init(&barrier, NULL, 2), 0);
    runner runners[2] = { { &s, functions[a], &barrier }, { &s, functions[b], &barrier } };
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run, &runners[i]), 0);
    for (size_t i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&barrier);
    if (atomic_load(&s.wrong))
        print_error("functions %zu and %zu\n", a, b);
    assert_int_equal(atomic_load(&s.wrong), 0);
    heft_params_close(s.p);
}

static void every_pair_of_functions_may_run_concurrently(void **state)
{
    (void)state;
    for (unsigned i = 0; i < POOL; i++)
        make_model(&pool[i], i);
    for (size_t a = 0; a < HEFT_COUNT(functions); a++)
        for (size_t b = a; b < HEFT_COUNT(functions); b++)
            run_pair(a, b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pair_of_functions_may_run_concurrently),
    };
    return cmocka_run_group_tests_name("params_pairs", tests, NULL, NULL);
}
