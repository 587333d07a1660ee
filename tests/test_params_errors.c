/* test_params_errors.c - a failed load is reported to the callers of the parameter only. */
#include "layers.h"

#include <pthread.h>
#include <unistd.h>

enum { THREADS = 8, ROUNDS = 40 };

/* ---- threads that acquire ---- */

typedef struct acquirer {
    const layers *s;
    pthread_barrier_t *barrier;
    size_t layer;
    uint32_t done, wrong, failed; /* number of calls; failed: with the expected error */
    heft_status expected;
    const char *words; /* part of the expected message */
} acquirer;

static void *acquire_repeatedly(void *arg)
{
    acquirer *a = arg;
    for (uint32_t i = 0; i < ROUNDS; i++) {
        heft_error err;
        heft_param w;
        pthread_barrier_wait(a->barrier);
        bool is_told = i % 4; /* otherwise the caller does not want the error */
        heft_status st = heft_params_acquire(&w, a->s->p, a->s->keys[a->layer],
                                             is_told ? &err : NULL);
        if (st) {
            bool fits = st == a->expected &&
                        (!is_told || (err.status == st && strstr(err.message, a->words)));
            a->failed += fits;
            a->wrong += !fits;
            continue;
        }
        const uint8_t *p = w.data;
        for (size_t k = 0; k < w.bytes; k += 4099)
            a->wrong += p[k] != layers_byte(a->layer, k);
        heft_params_release(a->s->p, a->s->keys[a->layer]);
        a->done++;
    }
    return NULL;
}

/* All threads acquire round by round: even threads `bad`, odd threads one of the other layers. */
static void acquire_on_all_threads(const layers *s, size_t bad, size_t others, heft_status expected,
                                   const char *words)
{
    pthread_barrier_t barrier;
    pthread_t threads[THREADS];
    acquirer acquirers[THREADS];
    assert_int_equal(pthread_barrier_init(&barrier, NULL, THREADS), 0);
    for (size_t i = 0; i < THREADS; i++) {
        size_t layer = i % 2 ? (i / 2) % others : bad;
        acquirers[i] = (acquirer){ s, &barrier, layer, 0, 0, 0, expected, words };
        assert_int_equal(pthread_create(&threads[i], NULL, acquire_repeatedly, &acquirers[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(acquirers[i].wrong, 0);
        assert_int_equal(acquirers[i].failed, i % 2 ? 0 : ROUNDS);
        assert_int_equal(acquirers[i].done, i % 2 ? ROUNDS : 0);
    }
    pthread_barrier_destroy(&barrier);
}

static void assert_loads(const layers *s, size_t layer)
{
    heft_error err;
    heft_param w;
    heft_assert_ok(heft_params_acquire(&w, s->p, s->keys[layer], &err), &err);
    layers_assert(&w, layer);
    heft_params_release(s->p, s->keys[layer]);
}

/* A budget of two layers, so that the other layers are evicted while one layer fails. */
static heft_params_options small_budget(void)
{
    heft_params_options opt = HEFT_PARAMS_OPTIONS_INIT;
    opt.budget = 2 * LAYER_BYTES;
    return opt;
}

/* ---- decoding ---- */

static bool has_zstd(void)
{
    const heft_codec *const *c = heft_host_default()->codecs;
    while (c && *c && (*c)->encoding != HEFT_ZSTD)
        c++;
    return c && *c;
}

static void failed_decode_fails_only_its_callers(void **state)
{
    enum { BAD = 3 };
    const char *path = heft_test_path(*state, "m.zt");
    if (!has_zstd())
        skip();
    const char *plain = heft_test_path(*state, "m.mag");
    layers_write(plain, "mag", BAD + 1);
    layers_compress(path, plain);
    heft_file *f = layers_file(path);
    heft_part part = heft_part_at(f, heft_tensor_at(f, BAD).first_part);
    assert_int_equal(part.encoding, HEFT_ZSTD);
    heft_file_close(f);
    heft_bytes b = heft_test_load(path);
    memset(b.p + part.offset + part.stored / 2, 0xFF, (size_t)part.stored / 4);
    heft_test_save(path, b.p, b.len);
    heft_test_free(&b);
    layers s = layers_open(path, small_budget());
    acquire_on_all_threads(&s, BAD, BAD, HEFT_E_FORMAT, "zstd");
    for (size_t i = 0; i < BAD; i++)
        assert_loads(&s, i);
    heft_params_close(s.p);
}

/* ---- reading ---- */

/* Truncated after opening: nothing more can be read, but loaded layers stay available. */
static void truncated_file_fails_only_its_callers(void **state)
{
    enum { BAD = 5 };
    heft_test_fault_handler(*state);
    for (int copy = 0; copy < 2; copy++) {
        const char *path = heft_test_path(*state, copy ? "copied.safetensors" : "lent.safetensors");
        heft_params_options opt = HEFT_PARAMS_OPTIONS_INIT;
        layers_write(path, "safetensors", BAD + 1);
        heft_file *f = layers_file(path);
        heft_part part = heft_part_at(f, heft_tensor_at(f, BAD).first_part);
        opt.copy = copy;
        layers s = layers_open_file(f, opt);
        for (size_t i = 0; i < BAD; i++)
            assert_loads(&s, i);
        assert_int_equal(truncate(path, (off_t)part.offset), 0);
        acquire_on_all_threads(&s, BAD, BAD, HEFT_E_IO, "was truncated");
        for (size_t i = 0; i < BAD; i++)
            assert_loads(&s, i);
        heft_params_close(s.p);
    }
}

/* A source that fails to read beyond the offset `from` while `broken` is set. */
typedef struct failing_source {
    heft_source base;
    heft_bytes bytes;
    uint64_t from;
    atomic_bool broken;
} failing_source;

static heft_status failing_read(heft_source *s, uint64_t off, void *buf, size_t len,
                                heft_error *err)
{
    failing_source *b = (failing_source *)s;
    if (atomic_load(&b->broken) && off + len > b->from) {
        if (err) {
            *err = (heft_error){ .status = HEFT_E_IO, .os = 5, .offset = off };
            strcpy(err->message, "the disk is gone");
        }
        return HEFT_E_IO;
    }
    memcpy(buf, b->bytes.p + off, len);
    return HEFT_OK;
}

static void failing_close(heft_source *s)
{
    (void)s;
}

static void failed_read_fails_only_its_callers(void **state)
{
    enum { BAD = 2 };
    static const heft_source_ops ops = { .size = sizeof(heft_source_ops),
                                         .read = failing_read,
                                         .close = failing_close };
    const char *path = heft_test_path(*state, "m.mag");
    heft_error err;
    heft_file *f;
    layers_write(path, "mag", BAD + 1);
    failing_source b = { .bytes = heft_test_load(path) };
    b.base = (heft_source){ &ops, b.bytes.len };
    heft_assert_ok(heft_file_open_source(&f, &b.base, NULL, &err), &err);
    b.from = heft_part_at(f, heft_tensor_at(f, BAD).first_part).offset;
    layers s = layers_open_file(f, small_budget());
    atomic_store(&b.broken, true);
    acquire_on_all_threads(&s, BAD, BAD, HEFT_E_IO, "the disk is gone");
    atomic_store(&b.broken, false);
    assert_loads(&s, BAD);
    heft_params_close(s.p);
    heft_test_free(&b.bytes);
}

/* ---- memory ---- */

/* An allocator that fails for blocks larger than a layer while `full` is set. */
typedef struct failing_memory {
    heft_allocator al;
    heft_host host;
    atomic_bool full;
} failing_memory;

static void *failing_resize(void *ctx, void *p, size_t old_size, size_t new_size, size_t align)
{
    failing_memory *t = ctx;
    const heft_allocator *libc = heft_host_default()->allocator;
    if (new_size > LAYER_BYTES && atomic_load(&t->full))
        return NULL;
    return libc->resize(libc->ctx, p, old_size, new_size, align);
}

static void failed_allocation_fails_only_its_callers(void **state)
{
    enum { BAD = 4 };
    const char *path = heft_test_path(*state, "m.mag");
    failing_memory t = {
        .al = { .size = sizeof(heft_allocator), .resize = failing_resize, .ctx = &t },
        .host = *heft_host_default()
    };
    heft_params_options opt = HEFT_PARAMS_OPTIONS_INIT;
    t.host.allocator = &t.al;
    opt.host = &t.host;
    opt.copy = true;
    layers_write(path, "mag", BAD + 1);
    layers s = layers_open(path, opt);
    for (size_t i = 0; i < BAD; i++)
        assert_loads(&s, i); /* loaded layers need no more memory */
    atomic_store(&t.full, true);
    acquire_on_all_threads(&s, BAD, BAD, HEFT_E_NOMEM, "memory");
    atomic_store(&t.full, false);
    assert_loads(&s, BAD);
    heft_params_close(s.p);
}

static void failed_allocation_reaches_the_caller(void **state)
{
    const char *path = heft_test_path(*state, "m.mag");
    heft_test_memory m;
    heft_params_options opt = HEFT_PARAMS_OPTIONS_INIT;
    heft_error err;
    heft_param w;
    layers_write(path, "mag", 1);
    heft_test_memory_init(&m, 1);
    opt.host = &m.host;
    opt.copy = true;
    layers s = layers_open(path, opt);
    heft_assert_status(heft_params_acquire(&w, s.p, s.keys[0], &err), HEFT_E_NOMEM, &err);
    assert_loads(&s, 0);
    heft_params_close(s.p);
    heft_assert_all_freed(&m);
}

/* ---- prefetching ---- */

typedef struct race { /* a prefetch gives up for lack of budget while another thread acquires */
    layers *s;
    pthread_t thread;
    atomic_bool armed, began;
    heft_status st;
    heft_error err;
    bool is_right;
} race;

static void *acquire_once(void *arg)
{
    race *m = arg;
    heft_param w;
    m->st = heft_params_acquire(&w, m->s->p, m->s->keys[2], &m->err);
    if (m->st)
        return NULL;
    m->is_right = ((const uint8_t *)w.data)[5] == layers_byte(2, 5);
    heft_params_release(m->s->p, m->s->keys[2]);
    return NULL;
}

/* Called by the prefetching thread during an eviction. */
static void start_race(void *ctx, heft_params_event event, heft_id128 key, uint64_t bytes)
{
    race *m = ctx;
    (void)key, (void)bytes;
    if (event != HEFT_PARAMS_EVICTION || !atomic_exchange(&m->armed, false))
        return;
    uint64_t stalls = heft_params_statistics(m->s->p).stalls;
    atomic_store(&m->began, !pthread_create(&m->thread, NULL, acquire_once, m));
    while (heft_params_statistics(m->s->p).stalls == stalls)
        usleep(100); /* until the other thread waits for this one */
}

enum { SMALL = 64 };

static heft_status small_shape(heft_param *out, const heft_param *src, const void *ctx,
                               heft_error *err)
{
    static const uint64_t dims[] = { SMALL };
    (void)src, (void)ctx, (void)err;
    *out = (heft_param){ NULL, SMALL, dims, 1, HEFT_U8 };
    return HEFT_OK;
}

static heft_status small_make(void *dst, const heft_param *out, const heft_param *src,
                              const void *ctx, heft_error *err)
{
    (void)src, (void)ctx, (void)err;
    memset(dst, 0, (size_t)out->bytes);
    return HEFT_OK;
}

static void failed_prefetch_fails_no_caller(void **state)
{
    static const heft_derivation small = { 77, small_shape, small_make, NULL };
    const char *path = heft_test_path(*state, "m.mag");
    race m = { .armed = false };
    heft_params_options opt = HEFT_PARAMS_OPTIONS_INIT;
    heft_error err;
    heft_param held;
    layers_write(path, "mag", 3);
    opt.budget = LAYER_BYTES + SMALL;
    opt.on_event = start_race;
    opt.ctx = &m;
    layers s = layers_open(path, opt);
    m.s = &s;
    heft_assert_ok(heft_params_acquire(&held, s.p, s.keys[0], &err), &err);
    heft_param form; /* evicting the form does not free enough bytes */
    heft_assert_ok(heft_params_resolve(&form, s.p, s.keys[0], &small, &err), &err);
    heft_params_release_form(s.p, s.keys[0], small.kind);
    atomic_store(&m.armed, true);
    heft_params_prefetch(s.p, &s.keys[2], 1);
    while (!atomic_load(&m.began))
        usleep(100);
    pthread_join(m.thread, NULL);
    heft_assert_ok(m.st, &m.err);
    assert_true(m.is_right);
    heft_params_release(s.p, s.keys[0]);
    heft_params_close(s.p);
}

/* The thread goes on after a failure that is not a lack of budget. */
static void failed_prefetch_does_not_stop_the_next(void **state)
{
    static const heft_source_ops ops = { .size = sizeof(heft_source_ops),
                                         .read = failing_read,
                                         .close = failing_close };
    const char *path = heft_test_path(*state, "m.mag");
    heft_params_options opt = HEFT_PARAMS_OPTIONS_INIT;
    heft_error err;
    heft_file *f;
    layers_write(path, "mag", 2);
    failing_source b = { .bytes = heft_test_load(path) };
    b.base = (heft_source){ &ops, b.bytes.len };
    heft_assert_ok(heft_file_open_source(&f, &b.base, NULL, &err), &err);
    b.from = heft_part_at(f, heft_tensor_at(f, 1).first_part).offset;
    layers s = layers_open_file(f, opt);
    atomic_store(&b.broken, true);
    heft_id128 keys[] = { s.keys[1], s.keys[0] }; /* the first key fails */
    heft_params_prefetch(s.p, keys, HEFT_COUNT(keys));
    while (!heft_params_statistics(s.p).loads)
        usleep(100);
    atomic_store(&b.broken, false);
    assert_loads(&s, 0);
    assert_int_equal(heft_params_statistics(s.p).loads, 1);
    assert_loads(&s, 1);
    heft_params_close(s.p);
    heft_test_free(&b.bytes);
}

#define with_dir(fn) cmocka_unit_test_setup_teardown(fn, heft_test_dir_make, heft_test_dir_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        /* must be first: the library installs a fault handler when the first file is mapped */
        with_dir(truncated_file_fails_only_its_callers),
        with_dir(failed_decode_fails_only_its_callers),
        with_dir(failed_read_fails_only_its_callers),
        with_dir(failed_allocation_fails_only_its_callers),
        with_dir(failed_allocation_reaches_the_caller),
        with_dir(failed_prefetch_fails_no_caller),
        with_dir(failed_prefetch_does_not_stop_the_next),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
