/* test_params.c - the parameter store: identities, budget, derived forms, many threads. */
#include "layers.h"

#include <pthread.h>
#include <unistd.h>

/* ---- identity ---- */

static void ids_equal_the_gptrs_test_vectors(void **state)
{
    static const struct {
        const char *name, *base, *key;
    } rows[] = {
        { "", "49c9dc36ea4d40a0a6a1f9f5b94913af", "6c63f592967a668fd6c5f58e1158f1b1" },
        { "w", "7a61e32d973b81c6075dbebe2015f2f2", "ef5a9390b6bffa6f0aae138a9f636aa2" },
        { "model.layers.0.self_attn.q_proj.weight", "3b099226d1b991843a69214ba54f7a1d",
          "75125a85428d96d57670693113e2b9c5" },
    };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        heft_id128 base;
        char text[33];
        assert_true(heft_param_base_id(&base, heft_str_from(rows[i].name)));
        heft_id128_text(text, base);
        assert_string_equal(text, rows[i].base);
        heft_id128_text(text, heft_param_key(heft_id128_from(1, 0), base));
        assert_string_equal(text, rows[i].key);
    }
}

static void refuses_a_base_id_of_a_non_ascii_name(void **state)
{
    heft_id128 base;
    (void)state;
    assert_false(heft_param_base_id(&base, HEFT_STR("\xc3\xa9")));
}

static void keys_of_large_namespaces_equal_the_test_vectors(void **state)
{
    heft_id128 base;
    char text[33];
    (void)state;
    assert_true(heft_param_base_id(&base, HEFT_STR("w")));
    heft_id128_text(text, heft_param_key(heft_id128_from(UINT64_MAX, 0), base));
    assert_string_equal(text, "4c646aaa6ef6c65f6d22098c31329e51");
    heft_id128_text(text, heft_param_key(heft_id128_from(UINT64_MAX, UINT64_MAX), base));
    assert_string_equal(text, "990111a40728bee70622a0890ada56c9");
}

/* ---- one thread ---- */

static void finds_parameters_by_name_base_id_and_key(void **state)
{
    const char *path = heft_test_path(*state, "m.safetensors");
    layers_write(path, "safetensors", 3);
    layers s = layers_open(path, (heft_params_options)HEFT_PARAMS_OPTIONS_INIT);
    heft_id128 key, base;
    assert_int_equal(heft_params_count(s.p), 3);
    assert_true(heft_params_find(&key, s.p, s.model, HEFT_STR("layers.2.weight")));
    assert_memory_equal(&key, &s.keys[2], sizeof key);
    assert_true(heft_param_base_id(&base, HEFT_STR("layers.1.weight")));
    assert_true(heft_params_find_base(&key, s.p, s.model, base));
    assert_memory_equal(&key, &s.keys[1], sizeof key);
    assert_false(heft_params_find(&key, s.p, s.model, HEFT_STR("layers.9.weight")));
    assert_false(heft_params_find_burn(&key, s.p, s.model, 7));
    assert_int_equal(heft_params_name(s.p, s.keys[0]).len, 15);
    heft_params_close(s.p);
}

static void adds_one_model_twice_as_two_namespaces(void **state)
{
    const char *path = heft_test_path(*state, "m.safetensors");
    heft_error err;
    heft_id128 again, key;
    layers_write(path, "safetensors", 2);
    layers s = layers_open(path, (heft_params_options)HEFT_PARAMS_OPTIONS_INIT);
    heft_assert_ok(heft_params_add(&again, s.p, layers_file(path), &err), &err);
    assert_int_equal(heft_params_count(s.p), 4);
    assert_true(heft_params_find(&key, s.p, again, HEFT_STR("layers.0.weight")));
    assert_memory_not_equal(&key, &s.keys[0], sizeof key);
    heft_assert_fails(heft_params_add_to(s.p, again, layers_file(path), &err), HEFT_E_ARGUMENT,
                      &err, "layers.0.weight");
    heft_params_close(s.p);
}

static void evicts_the_least_recently_used_parameter(void **state)
{
    const char *path = heft_test_path(*state, "m.mag");
    heft_params_options opt = HEFT_PARAMS_OPTIONS_INIT;
    heft_error err;
    heft_param w;
    layers_write(path, "mag", 6);
    opt.budget = 3 * LAYER_SIDE * LAYER_SIDE * 4;
    layers s = layers_open(path, opt);
    /* 3 evicts 1, and 1 evicts 2 */
    static const uint8_t order[] = { 0, 1, 2, 0, 3, 0, 1 };
    for (size_t i = 0; i < HEFT_COUNT(order); i++) {
        heft_assert_ok(heft_params_acquire(&w, s.p, s.keys[order[i]], &err), &err);
        layers_assert(&w, order[i]);
        heft_params_release(s.p, s.keys[order[i]]);
    }
    heft_params_stats t = heft_params_statistics(s.p);
    assert_int_equal(t.loads, 5);
    assert_int_equal(t.evictions, 2);
    assert_int_equal(t.hits, 2);
    assert_true(t.peak <= opt.budget);
    heft_params_close(s.p);
}

static void use(const layers *s, size_t layer)
{
    heft_error err;
    heft_param w;
    heft_assert_ok(heft_params_acquire(&w, s->p, s->keys[layer], &err), &err);
    layers_assert(&w, layer);
    heft_params_release(s->p, s->keys[layer]);
}

/* A parameter that was in use while others were evicted is the next to be evicted. */
static void a_parameter_in_use_keeps_its_rank(void **state)
{
    const char *path = heft_test_path(*state, "m.mag");
    heft_params_options opt = HEFT_PARAMS_OPTIONS_INIT;
    heft_error err;
    heft_param held;
    layers_write(path, "mag", 5);
    opt.budget = 3 * LAYER_SIDE * LAYER_SIDE * 4;
    layers s = layers_open(path, opt);
    heft_assert_ok(heft_params_acquire(&held, s.p, s.keys[0], &err), &err);
    use(&s, 1);
    use(&s, 2);
    use(&s, 3); /* evicts 1, since 0 is in use */
    heft_params_release(s.p, s.keys[0]);
    use(&s, 4); /* evicts 0 */
    assert_int_equal(heft_params_statistics(s.p).evictions, 2);
    use(&s, 2);
    assert_int_equal(heft_params_statistics(s.p).loads, 5);
    use(&s, 0);
    assert_int_equal(heft_params_statistics(s.p).loads, 6);
    heft_params_close(s.p);
}

static void keeps_acquired_and_pinned_parameters(void **state)
{
    const char *path = heft_test_path(*state, "m.mag");
    heft_params_options opt = HEFT_PARAMS_OPTIONS_INIT;
    heft_error err;
    heft_param held, w;
    layers_write(path, "mag", 6);
    opt.budget = 2 * LAYER_SIDE * LAYER_SIDE * 4;
    opt.copy = true;
    layers s = layers_open(path, opt);
    heft_assert_ok(heft_params_acquire(&held, s.p, s.keys[0], &err), &err);
    heft_assert_ok(heft_params_pin(s.p, s.keys[1], &err), &err);
    for (size_t i = 2; i < 6; i++) {
        heft_assert_ok(heft_params_acquire(&w, s.p, s.keys[i], &err), &err);
        layers_assert(&w, i);
        heft_params_release(s.p, s.keys[i]);
    }
    layers_assert(&held, 0);
    uint64_t loads = heft_params_statistics(s.p).loads;
    heft_assert_ok(heft_params_acquire(&w, s.p, s.keys[1], &err), &err);
    assert_int_equal(heft_params_statistics(s.p).loads, loads);
    heft_params_release(s.p, s.keys[1]);
    heft_params_release(s.p, s.keys[0]);
    heft_params_unpin(s.p, s.keys[1]);
    heft_params_close(s.p);
}

static void reports_an_unknown_key(void **state)
{
    const char *path = heft_test_path(*state, "m.mag");
    heft_error err;
    heft_param w;
    layers_write(path, "mag", 1);
    layers s = layers_open(path, (heft_params_options)HEFT_PARAMS_OPTIONS_INIT);
    heft_assert_status(heft_params_acquire(&w, s.p, heft_id128_from(5, 5), &err), HEFT_E_NOTFOUND,
                       &err);
    heft_params_release(s.p, heft_id128_from(5, 5));
    heft_params_close(s.p);
}

static void refuses_a_wrong_stored_id(void **state)
{
    const char *path = heft_test_path(*state, "m.gptrs");
    heft_error err;
    heft_params *p;
    heft_id128 model;
    layers_write(path, "gptrs-checkpoint", 1);
    heft_bytes b = heft_test_load(path);
    size_t at = 0;
    while (memcmp(b.p + at, "layers.0.weight", 15))
        at++;
    b.p[at + 15] ^= 1;
    heft_test_save(path, b.p, b.len);
    heft_test_free(&b);
    heft_assert_ok(heft_params_open(&p, NULL, &err), &err);
    heft_assert_fails(heft_params_add(&model, p, layers_file(path), &err), HEFT_E_FORMAT, &err,
                      "stored base id");
    heft_params_close(p);
}

/* ---- derived forms ---- */

static void makes_a_form_once_and_again_after_eviction(void **state)
{
    const char *path = heft_test_path(*state, "m.mag");
    heft_params_options opt = HEFT_PARAMS_OPTIONS_INIT;
    heft_error err;
    heft_param w, tiles;
    heft_tiling t = { 8, 32 };
    heft_derivation d = heft_derivation_tiles(&t);
    layers_write(path, "mag", 4);
    opt.budget = 4 * LAYER_SIDE * LAYER_SIDE * 4;
    layers s = layers_open(path, opt);
    for (int i = 0; i < 3; i++) {
        heft_assert_ok(heft_params_resolve(&tiles, s.p, s.keys[2], &d, &err), &err);
        heft_params_release_form(s.p, s.keys[2], d.kind);
    }
    assert_int_equal(heft_params_statistics(s.p).loads, 2);
    heft_assert_ok(heft_params_resolve(&tiles, s.p, s.keys[2], &d, &err), &err);
    heft_assert_ok(heft_params_acquire(&w, s.p, s.keys[2], &err), &err);
    const float *dst = tiles.data;
    const uint32_t *bits = w.data;
    uint32_t got;
    assert_int_equal(tiles.bytes, 38ull * 10 * 8 * 32 * 4);
    memcpy(&got, &dst[(2 * 10 + 3) * 256 + 5 * 8 + 1], 4); /* row 17, column 101 */
    assert_int_equal(got, bits[17 * LAYER_SIDE + 101]);
    memcpy(&got, &dst[(37 * 10) * 256 + 7], 4); /* row 303: padding */
    assert_int_equal(got, 0);
    heft_params_release_form(s.p, s.keys[2], d.kind);
    heft_params_release(s.p, s.keys[2]);
    for (size_t i = 0; i < 4; i++) {
        heft_assert_ok(heft_params_acquire(&w, s.p, s.keys[i], &err), &err);
        heft_params_release(s.p, s.keys[i]);
    }
    uint64_t loads = heft_params_statistics(s.p).loads;
    heft_assert_ok(heft_params_resolve(&tiles, s.p, s.keys[2], &d, &err), &err);
    assert_true(heft_params_statistics(s.p).loads > loads);
    heft_params_release_form(s.p, s.keys[2], d.kind);
    heft_params_close(s.p);
}

static heft_status failing_make(void *dst, const heft_param *out, const heft_param *src,
                                const void *ctx, heft_error *err)
{
    (void)dst, (void)out, (void)src, (void)ctx;
    err->status = HEFT_E_UNSUPPORTED;
    strcpy(err->message, "not today");
    return HEFT_E_UNSUPPORTED;
}

static void can_make_a_form_after_a_failure(void **state)
{
    const char *path = heft_test_path(*state, "m.mag");
    heft_error err;
    heft_param out;
    heft_derivation d = heft_derivation_f32();
    layers_write(path, "mag", 1);
    layers s = layers_open(path, (heft_params_options)HEFT_PARAMS_OPTIONS_INIT);
    d.make = failing_make;
    heft_assert_fails(heft_params_resolve(&out, s.p, s.keys[0], &d, &err), HEFT_E_UNSUPPORTED, &err,
                      "not today");
    d = heft_derivation_f32();
    heft_assert_ok(heft_params_resolve(&out, s.p, s.keys[0], &d, &err), &err);
    layers_assert(&out, 0);
    heft_params_release_form(s.p, s.keys[0], d.kind);
    heft_params_close(s.p);
}

/* ---- many threads ---- */

typedef struct thread_args {
    layers *s;
    atomic_int failures, wrong;
    atomic_uint seed;
    uint32_t rounds;
    size_t count;
    bool same;
} thread_args;

static void *use_store(void *arg)
{
    thread_args *c = arg;
    uint32_t r = atomic_fetch_add(&c->seed, 2654435761u) + 2654435761u;
    heft_derivation d = heft_derivation_f32();
    for (uint32_t i = 0; i < c->rounds; i++) {
        r = r * 1664525 + 1013904223;
        size_t layer = c->same ? 0 : (r >> 8) % c->count;
        bool form = !c->same && r >> 30 == 3;
        heft_error err;
        heft_param w;
        if (r >> 28 == 1)
            heft_params_prefetch(c->s->p, &c->s->keys[(layer + 1) % c->count], 1);
        heft_status st = form ? heft_params_resolve(&w, c->s->p, c->s->keys[layer], &d, &err)
                              : heft_params_acquire(&w, c->s->p, c->s->keys[layer], &err);
        if (st) {
            atomic_fetch_add(&c->failures, 1);
            continue;
        }
        size_t at = (r >> 4) % w.bytes;
        if (((const uint8_t *)w.data)[at] != layers_byte(layer, at))
            atomic_fetch_add(&c->wrong, 1);
        if (form)
            heft_params_release_form(c->s->p, c->s->keys[layer], d.kind);
        else
            heft_params_release(c->s->p, c->s->keys[layer]);
    }
    return NULL;
}

static void run_threads(thread_args *c)
{
    pthread_t threads[8];
    for (size_t i = 0; i < HEFT_COUNT(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use_store, c), 0);
    for (size_t i = 0; i < HEFT_COUNT(threads); i++)
        pthread_join(threads[i], NULL);
}

static void eight_threads_read_right_bytes_under_a_small_budget(void **state)
{
    const char *path = heft_test_path(*state, "m.safetensors");
    heft_params_options opt = HEFT_PARAMS_OPTIONS_INIT;
    layers_write(path, "safetensors", LAYERS);
    for (int copy = 0; copy < 2; copy++) {
        opt.budget = 11 * LAYER_SIDE * LAYER_SIDE * 4;
        opt.copy = copy;
        layers s = layers_open(path, opt);
        thread_args c = { .s = &s, .seed = 7, .rounds = 3000, .count = LAYERS };
        run_threads(&c);
        assert_int_equal(atomic_load(&c.failures), 0);
        assert_int_equal(atomic_load(&c.wrong), 0);
        assert_true(heft_params_statistics(s.p).evictions > 0);
        heft_params_close(s.p);
    }
}

static void loads_once_for_ten_thousand_acquisitions(void **state)
{
    const char *path = heft_test_path(*state, "m.safetensors");
    layers_write(path, "safetensors", 2);
    layers s = layers_open(path, (heft_params_options)HEFT_PARAMS_OPTIONS_INIT);
    thread_args c = { .s = &s, .seed = 7, .rounds = 1250, .count = 1, .same = true };
    run_threads(&c);
    assert_int_equal(atomic_load(&c.wrong), 0);
    assert_int_equal(heft_params_statistics(s.p).loads, 1);
    heft_params_close(s.p);
}

static void count_event(void *ctx, heft_params_event event, heft_id128 key, uint64_t bytes)
{
    (void)key, (void)bytes;
    atomic_fetch_add(&((atomic_int *)ctx)[event], 1);
}

static void prefetched_parameters_are_hits(void **state)
{
    const char *path = heft_test_path(*state, "m.mag");
    heft_params_options opt = HEFT_PARAMS_OPTIONS_INIT;
    atomic_int events[4] = { 0 };
    heft_error err;
    heft_param w;
    layers_write(path, "mag", 4);
    opt.on_event = count_event;
    opt.ctx = events;
    layers s = layers_open(path, opt);
    heft_params_prefetch(s.p, s.keys, 4);
    while (atomic_load(&events[HEFT_PARAMS_LOAD]) < 4)
        usleep(1000);
    for (size_t i = 0; i < 4; i++) {
        heft_assert_ok(heft_params_acquire(&w, s.p, s.keys[i], &err), &err);
        layers_assert(&w, i);
        heft_params_release(s.p, s.keys[i]);
    }
    assert_int_equal(heft_params_statistics(s.p).hits, 4);
    assert_int_equal(atomic_load(&events[HEFT_PARAMS_STALL]), 0);
    heft_params_close(s.p);
}

/* Threads that meet at one parameter count their uses apart. */
static void parameters_used_by_many_threads_are_evicted(void **state)
{
    const char *path = heft_test_path(*state, "m.safetensors");
    heft_params_options opt = HEFT_PARAMS_OPTIONS_INIT;
    layers_write(path, "safetensors", 5);
    opt.budget = 2 * LAYER_SIDE * LAYER_SIDE * 4;
    layers s = layers_open(path, opt);
    use(&s, 0);
    thread_args c = { .s = &s, .rounds = 20000, .count = 1, .same = true };
    run_threads(&c);
    assert_int_equal(atomic_load(&c.failures), 0);
    heft_params_stats t = heft_params_statistics(s.p);
    assert_int_equal(t.hits + t.stalls, 8 * 20000 + 1);
    for (size_t round = 0; round < 3; round++)
        for (size_t i = 0; i < 5; i++)
            use(&s, i);
    t = heft_params_statistics(s.p);
    assert_true(t.peak <= opt.budget);
    assert_true(t.evictions >= 12);
    heft_params_close(s.p);
}

#define with_dir(fn) cmocka_unit_test_setup_teardown(fn, heft_test_dir_make, heft_test_dir_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_equal_the_gptrs_test_vectors),
        cmocka_unit_test(refuses_a_base_id_of_a_non_ascii_name),
        cmocka_unit_test(keys_of_large_namespaces_equal_the_test_vectors),
        with_dir(finds_parameters_by_name_base_id_and_key),
        with_dir(adds_one_model_twice_as_two_namespaces),
        with_dir(evicts_the_least_recently_used_parameter),
        with_dir(a_parameter_in_use_keeps_its_rank),
        with_dir(keeps_acquired_and_pinned_parameters),
        with_dir(reports_an_unknown_key),
        with_dir(refuses_a_wrong_stored_id),
        with_dir(makes_a_form_once_and_again_after_eviction),
        with_dir(can_make_a_form_after_a_failure),
        with_dir(eight_threads_read_right_bytes_under_a_small_budget),
        with_dir(loads_once_for_ten_thousand_acquisitions),
        with_dir(prefetched_parameters_are_hits),
        with_dir(parameters_used_by_many_threads_are_evicted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
