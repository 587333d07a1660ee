/* test_threads.c - one open file used by many threads, and the executor. */
#include "dump.h"
#include "models.h"

#include <pthread.h>

enum { THREADS = 8, ROUNDS = 6 };

typedef struct shared {
    const heft_file *f;
    const char *dump;
    heft_hash model;
    heft_bytes converted;
    atomic_int wrong;
} shared;

static void expect(shared *s, bool ok)
{
    if (!ok)
        atomic_fetch_add(&s->wrong, 1);
}

static void use_names(shared *s)
{
    for (uint32_t i = 0; i < heft_tensor_count(s->f); i++) {
        heft_tensor t = heft_tensor_at(s->f, i);
        expect(s, heft_tensor_find(s->f, t.name) == i);
    }
    expect(s, heft_tensor_find(s->f, HEFT_STR("no such tensor")) == HEFT_NONE);
    char *dump = heft_test_dump(s->f, DUMP_ALL);
    expect(s, !strcmp(dump, s->dump));
    free(dump);
}

static void use_bytes(shared *s)
{
    uint8_t a[20000], b[20000];
    for (uint32_t i = 0; i < heft_tensor_count(s->f); i++) {
        uint32_t part = heft_tensor_at(s->f, i).first_part;
        size_t n = (size_t)heft_part_at(s->f, part).length;
        heft_stream *stream;
        heft_error err;
        n = n < sizeof a ? n : sizeof a;
        expect(s, !heft_part_read(a, s->f, part, 0, n, &err));
        expect(s, !heft_stream_open(&stream, s->f, part, &err));
        expect(s, !heft_stream_read(b, stream, n, &err) && !memcmp(a, b, n));
        heft_stream_close(stream);
        heft_part_prefetch(s->f, &part, 1);
    }
}

static void use_all(shared *s)
{
    heft_verify_result result;
    heft_hash model, *tensors = calloc(heft_tensor_count(s->f), sizeof *tensors);
    heft_error err;
    heft_test_sink sink;
    expect(s, !heft_file_verify(&result, s->f, NULL, &err) && !result.faults);
    expect(s, !heft_file_hash(&model, tensors, s->f, NULL, NULL, &err));
    expect(s, !memcmp(&model, &s->model, sizeof model));
    expect(s, !heft_file_convert(s->f, heft_file_format(s->f), heft_test_sink_init(&sink, false),
                                 NULL, &err));
    expect(s, sink.len == s->converted.len && !memcmp(sink.p, s->converted.p, sink.len));
    heft_test_sink_free(&sink);
    free(tensors);
}

static void *worker(void *arg)
{
    for (int i = 0; i < ROUNDS; i++) {
        use_names(arg);
        use_bytes(arg);
        use_all(arg);
    }
    return NULL;
}

static void use_from_many_threads(const heft_file *f)
{
    pthread_t threads[THREADS];
    heft_test_sink sink;
    heft_error err;
    heft_hash *tensors = calloc(heft_tensor_count(f), sizeof *tensors);
    shared s = { .f = f, .dump = heft_test_dump(f, DUMP_ALL) };
    heft_assert_ok(heft_file_hash(&s.model, tensors, f, NULL, NULL, &err), &err);
    heft_assert_ok(
        heft_file_convert(f, heft_file_format(f), heft_test_sink_init(&sink, false), NULL, &err),
        &err);
    s.converted = heft_test_sink_bytes(&sink);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, worker, &s), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(atomic_load(&s.wrong), 0);
    heft_test_sink_free(&sink);
    free((char *)(uintptr_t)s.dump);
    free(tensors);
}

static const test_tensor tensors[] = {
    { "a", HEFT_F32, 2, { 30, 50 } },     { "b", HEFT_BOOL, 1, { 700 } },
    { "c", HEFT_F16, 3, { 20, 10, 40 } }, { "large", HEFT_F32, 1, { 800000 } },
    { "i", HEFT_I32, 1, { 4097 } },
};

static void eight_threads_read_the_same_file(void **state)
{
    heft_test_input in = { heft_test_path(*state, "model"),
                           heft_test_model("mag", tensors, HEFT_COUNT(tensors)) };
    heft_test_save(in.path, in.bytes.p, in.bytes.len);
    for (size_t method = 0; method < 4; method++) {
        heft_error err;
        heft_file *f;
        heft_assert_ok(heft_test_open_methods[method].open(&f, &in, NULL, &err), &err);
        use_from_many_threads(f);
        heft_file_close(f);
    }
    heft_test_free(&in.bytes);
}

/* ---- files opened and closed by many threads ------------------------------------------------ */

static void *open_and_close(void *arg)
{
    const char *path = arg;
    for (int i = 0; i < 40; i++) {
        heft_file *f;
        heft_error err;
        if (heft_file_open(&f, path, NULL, &err))
            return arg;
        (void)heft_tensor_find(f, HEFT_STR("a"));
        heft_file_close(f);
    }
    return NULL;
}

static void eight_threads_open_and_close_files(void **state)
{
    const char *path = heft_test_path(*state, "model");
    heft_bytes b = heft_test_model("mag", tensors, 3);
    pthread_t threads[THREADS];
    void *failed;
    heft_test_save(path, b.p, b.len);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, open_and_close, (void *)(uintptr_t)path),
                         0);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    heft_test_free(&b);
}

/* ---- checksums of the index ------------------------------------------------------------------ */

/* Open a model of more index bytes than one thread compares with the checksum. */
static heft_status open_on_threads(heft_bytes b, uint32_t threads, heft_error *err)
{
    heft_test_host h;
    heft_file *f;
    heft_test_host_init(&h, threads);
    heft_status st = heft_test_open(&f, b, &h.host, err);
    heft_file_close(f);
    return st;
}

static void a_large_index_is_compared_with_its_checksum_on_all_threads(void **state)
{
    static const char first[] = "layers.7.weight", last[] = "layers.299999.weight";
    heft_error err;
    (void)state;
    heft_bytes b = heft_test_many("mag", 300000);
    uint8_t *names[] = { memmem(b.p, b.len, first, sizeof first - 1),
                         memmem(b.p, b.len, last, sizeof last - 1) };
    heft_assert_ok(open_on_threads(b, 4, &err), &err);
    for (size_t i = 0; i < HEFT_COUNT(names); i++) {
        assert_non_null(names[i]);
        *names[i] = 'x';
        for (uint32_t threads = 1; threads <= 4; threads += 3) {
            assert_int_equal(open_on_threads(b, threads, &err), HEFT_E_CHECKSUM);
            assert_string_equal(err.rule, "mag/header-crc");
        }
        *names[i] = 'l';
    }
    heft_test_free(&b);
}

/* ---- the executor --------------------------------------------------------------------------- */

typedef struct tasks {
    atomic_int runs[1000];
    atomic_int at_once, max_at_once;
} tasks;

static void task(void *arg, size_t i)
{
    tasks *t = arg;
    int now = atomic_fetch_add(&t->at_once, 1) + 1, max_at_once = atomic_load(&t->max_at_once);
    while (now > max_at_once && !atomic_compare_exchange_weak(&t->max_at_once, &max_at_once, now))
        ;
    atomic_fetch_add(&t->runs[i], 1);
    atomic_fetch_sub(&t->at_once, 1);
}

static void executor_runs_every_task_once(void **state)
{
    static const uint32_t widths[] = { 0, 1, 2, 7, 1000 };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(widths); i++) {
        heft_executor x = heft_executor_threads(widths[i]);
        tasks t = { 0 };
        assert_in_range(x.width, 1, widths[i] ? widths[i] : 1024);
        x.run(x.ctx, HEFT_COUNT(t.runs), task, &t);
        for (size_t k = 0; k < HEFT_COUNT(t.runs); k++)
            assert_int_equal(atomic_load(&t.runs[k]), 1);
        assert_in_range(atomic_load(&t.max_at_once), 1, x.width);
        x.run(x.ctx, 0, task, &t);
    }
}

#define IN_A_DIRECTORY(test) \
    cmocka_unit_test_setup_teardown(test, heft_test_dir_make, heft_test_dir_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_DIRECTORY(eight_threads_read_the_same_file),
        IN_A_DIRECTORY(eight_threads_open_and_close_files),
        cmocka_unit_test(a_large_index_is_compared_with_its_checksum_on_all_threads),
        cmocka_unit_test(executor_runs_every_task_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
