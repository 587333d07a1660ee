/* test_callbacks.c - tests that the library holds no lock during a callback: a callback may run the
 * work of another worker on its own thread, which would deadlock on a held lock. */
#include "models.h"

#include <pthread.h>
#include <unistd.h>

#include <heft/params.h>

#include "core/read/partial_crcs.h"
#include "core/read/progress.h"

enum { TIMEOUT = 300 }; /* seconds until a deadlocked test is killed */

/* ---- work inside callbacks ------------------------------------------------------------------ */

static struct {
    void (*fn)(void *arg, size_t i);
    void *arg;
    size_t next, count;
    bool is_nested;
    size_t nested; /* number of items run by callbacks */
    uint64_t done, total;
    size_t calls;
} work;

static void run_items(void)
{
    while (work.next < work.count)
        work.fn(work.arg, work.next++);
}

static void run(void *ctx, size_t n, void (*fn)(void *arg, size_t i), void *arg)
{
    (void)ctx;
    work.fn = fn;
    work.arg = arg;
    work.next = 0;
    work.count = n;
    run_items();
}

static bool run_rest(void *ctx, uint64_t done, uint64_t total)
{
    (void)ctx;
    assert_true(done >= work.done && done <= total);
    work.done = done;
    work.total = total;
    work.calls++;
    if (!work.is_nested) {
        work.is_nested = true;
        work.nested += work.count - work.next;
        run_items();
        work.is_nested = false;
    }
    return true;
}

static const test_tensor tensors[] = {
    { "a", HEFT_F32, 2, { 3000, 700 } },
    { "b", HEFT_F16, 2, { 2000, 2000 } },
    { "c", HEFT_I32, 1, { 2500000 } },
};

static heft_status read_all(const heft_file *f, heft_error *err)
{
    static const uint32_t parts[] = { 0, 1, 2 };
    void *buffers[HEFT_COUNT(parts)];
    for (size_t i = 0; i < HEFT_COUNT(parts); i++)
        buffers[i] = heft_buffer_new((size_t)heft_part_at(f, parts[i]).length);
    heft_status st = heft_part_read_many(buffers, f, parts, HEFT_COUNT(parts), run_rest, NULL, err);
    for (size_t i = 0; i < HEFT_COUNT(parts); i++)
        heft_buffer_free(buffers[i], (size_t)heft_part_at(f, parts[i]).length);
    return st;
}

static heft_status verify(const heft_file *f, heft_error *err)
{
    return heft_file_verify(
        NULL, f,
        &(heft_verify_options){ sizeof(heft_verify_options), .progress = run_rest, .ctx = NULL },
        err);
}

static heft_status hash(const heft_file *f, heft_error *err)
{
    heft_hash model, each[HEFT_COUNT(tensors)];
    return heft_file_hash(&model, each, f, run_rest, NULL, err);
}

static heft_status convert_to(const heft_file *f, const char *format, heft_encoding encoding,
                              const heft_host *host, heft_error *err)
{
    heft_test_sink sink;
    heft_write_options write = HEFT_WRITE_OPTIONS_INIT;
    heft_convert_options o = HEFT_CONVERT_OPTIONS_INIT;
    o.progress = run_rest;
    o.write = &write;
    write.storage.encoding = encoding;
    write.host = host;
    heft_status st = heft_file_convert(f, heft_format_find(heft_str_from(format)),
                                       heft_test_sink_init(&sink, false), &o, err);
    heft_test_sink_free(&sink);
    return st;
}

static heft_host nesting_host(heft_executor *x)
{
    heft_host host = *heft_host_default();
    *x = (heft_executor){ .size = sizeof(heft_executor), .run = run, .width = 4 };
    host.executor = x;
    return host;
}

static heft_file *open_model(heft_bytes b, const heft_host *host)
{
    heft_open_options opt = HEFT_OPEN_OPTIONS_INIT;
    heft_source *s;
    heft_file *f;
    heft_error err;
    opt.host = host;
    heft_assert_ok(heft_source_open_memory(&s, b.p, b.len, &err), &err);
    heft_assert_ok(heft_file_open_source(&f, s, &opt, &err), &err);
    return f;
}

static void progress_callbacks_may_run_other_work_items(void **state)
{
    heft_executor x;
    heft_host host = nesting_host(&x);
    heft_bytes b = heft_test_model("embd", tensors, HEFT_COUNT(tensors));
    heft_file *f = open_model(b, &host); /* embd files have checksums */
    (void)state;
    alarm(TIMEOUT);
    for (int operation = 0; operation < 5; operation++) {
        heft_error err;
        memset(&work, 0, sizeof work);
        heft_status st = operation == 0   ? read_all(f, &err)
                         : operation == 1 ? verify(f, &err)
                         : operation == 2 ? hash(f, &err)
                         : operation == 3 ? convert_to(f, "gptrs-archive", HEFT_RAW, &host, &err)
                                          : convert_to(f, "ztensor", HEFT_ZSTD, &host, &err);
        heft_assert_ok(st, &err);
        assert_true(work.nested);
        if (operation != 1) /* verify reads bytes covered by two checksums once, but counts both */
            assert_int_equal(work.done, work.total);
    }
    heft_file_close(f);
    heft_test_free(&b);
}

/* ---- an allocator that calls the structure for which it allocates ---------------------------- */

static heft_partial_crcs *growing;
static bool is_in_allocator;
static uint64_t added;

static void *add_and_allocate(void *ctx, void *p, size_t old, size_t new, size_t align)
{
    heft_error err;
    (void)ctx;
    if (new && !is_in_allocator) {
        is_in_allocator = true;
        heft_assert_ok(heft_partial_crcs_add(growing, added++, "x", 1, &err), &err);
        is_in_allocator = false;
    }
    const heft_allocator *al = heft_host_default()->allocator;
    return al->resize(al->ctx, p, old, new, align);
}

static void the_allocator_may_add_crcs_while_crcs_are_added(void **state)
{
    enum { MANY = 5000 };
    heft_allocator al = { .size = sizeof al, .resize = add_and_allocate };
    heft_host host = *heft_host_default();
    heft_partial_crcs s;
    heft_error err;
    uint32_t crc, whole;
    (void)state;
    alarm(TIMEOUT);
    host.allocator = &al;
    growing = &s;
    heft_partial_crcs_init(&s, &host);
    assert_true(heft_partial_crcs_track(&s, &host, "crc32"));
    while (added < MANY) {
        uint64_t at = added++;
        heft_assert_ok(heft_partial_crcs_add(&s, at, "x", 1, &err), &err);
    }
    const heft_digest *d = s.digests[0];
    assert_true(d->init(&crc) && d->init(&whole));
    heft_partial_crcs_sort(&s);
    heft_assert_ok(
        heft_partial_crcs_join(&s, "crc32", (heft_range){ 0, MANY }, &crc, NULL, NULL, &err), &err);
    for (int i = 0; i < MANY; i++)
        d->update(&whole, "x", 1);
    assert_int_equal(crc, whole);
    heft_partial_crcs_free(&s);
}

/* Borders come in any order; segments are joined up to the next border. */
static void segments_are_not_joined_across_borders(void **state)
{
    static const heft_range parts[] = { { 60, 20 }, { 0, 20 }, { 30, 10 } };
    static const uint64_t starts[] = { 0, 20, 30, 40, 60, 80 };
    const heft_host *host = heft_host_default();
    heft_partial_crcs s;
    heft_borders b;
    heft_error err;
    (void)state;
    heft_partial_crcs_init(&s, host);
    assert_true(heft_partial_crcs_track(&s, host, "crc32"));
    for (uint32_t at = 100; at; at -= 10)
        heft_assert_ok(heft_partial_crcs_add(&s, at - 10, "0123456789", 10, &err), &err);
    heft_borders_init(&b, host);
    for (size_t i = 0; i < HEFT_COUNT(parts); i++)
        assert_true(heft_borders_add(&b, parts[i]));
    assert_true(heft_borders_sort(&b));
    heft_partial_crcs_compact(&s, &b);
    assert_int_equal(s.segments.len, HEFT_COUNT(starts));
    for (uint32_t i = 0; i < HEFT_COUNT(starts); i++) {
        const heft_crc_segment *at = (const heft_crc_segment *)s.segments.ptr + i;
        assert_int_equal(at->offset, starts[i]);
        assert_int_equal(at->offset + at->len, i + 1 < HEFT_COUNT(starts) ? starts[i + 1] : 100);
    }
    heft_borders_free(&b);
    heft_partial_crcs_free(&s);
}

/* ---- a parameter store that is queried during an eviction ------------------------------------ */

enum { PARAM = 1 << 20, PARAMS = 4 };

static heft_params *queried;
static size_t queries;

static void query_store(void)
{
    if (queried)
        queries += heft_params_statistics(queried).loads > 0;
}

static void *query_and_free(void *ctx, void *p, size_t old, size_t new, size_t align)
{
    (void)ctx;
    if (!new)
        query_store();
    const heft_allocator *al = heft_host_default()->allocator;
    return al->resize(al->ctx, p, old, new, align);
}

typedef struct mapped { /* a source that reports memory-mapped bytes */
    heft_source base;
    heft_bytes bytes;
} mapped;

static heft_status read_mapped(heft_source *s, uint64_t off, void *buf, size_t len, heft_error *err)
{
    (void)err;
    memcpy(buf, ((const mapped *)s)->bytes.p + off, len);
    return HEFT_OK;
}

static const void *view_mapped(heft_source *s, uint64_t off, uint64_t len)
{
    (void)len;
    return ((const mapped *)s)->bytes.p + off;
}

static heft_status populate_mapped(heft_source *s, uint64_t off, uint64_t len, heft_error *err)
{
    (void)s, (void)off, (void)len, (void)err;
    return HEFT_OK;
}

static void drop_mapped(heft_source *s, uint64_t off, uint64_t len)
{
    (void)s, (void)off, (void)len;
    query_store();
}

static void close_mapped(heft_source *s)
{
    (void)s;
}

static void callbacks_of_an_eviction_may_query_the_store(void **state)
{
    static const heft_source_ops ops = { .size = sizeof(heft_source_ops),
                                         .read = read_mapped,
                                         .map = view_mapped,
                                         .populate = populate_mapped,
                                         .dont_need = drop_mapped,
                                         .close = close_mapped };
    static const test_tensor params[PARAMS] = { { "a", HEFT_F32, 1, { PARAM / 4 } },
                                                { "b", HEFT_F32, 1, { PARAM / 4 } },
                                                { "c", HEFT_F32, 1, { PARAM / 4 } },
                                                { "d", HEFT_F32, 1, { PARAM / 4 } } };
    heft_allocator al = { .size = sizeof al, .resize = query_and_free };
    heft_host host = *heft_host_default();
    heft_bytes b = heft_test_model("safetensors", params, PARAMS);
    (void)state;
    alarm(TIMEOUT);
    host.allocator = &al;
    for (int copies = 0; copies < 2; copies++) {
        heft_params_options opt = HEFT_PARAMS_OPTIONS_INIT;
        mapped s = { { &ops, b.len }, b };
        heft_params *p;
        heft_file *f;
        heft_error err;
        heft_id128 model;
        opt.host = &host;
        opt.budget = 2 * PARAM;
        opt.copy = copies;
        heft_assert_ok(heft_file_open_source(&f, &s.base, NULL, &err), &err);
        heft_assert_ok(heft_params_open(&p, &opt, &err), &err);
        heft_assert_ok(heft_params_add(&model, p, f, &err), &err);
        queried = p;
        queries = 0;
        for (uint32_t i = 0; i < PARAMS; i++) {
            heft_param got;
            heft_id128 key = heft_params_key_at(p, i);
            heft_assert_ok(heft_params_acquire(&got, p, key, &err), &err);
            heft_params_release(p, key);
        }
        assert_true(heft_params_statistics(p).evictions);
        assert_true(queries);
        queried = NULL;
        heft_params_close(p);
    }
    heft_test_free(&b);
}

/* ---- threads -------------------------------------------------------------------------------- */

enum { WORKERS = 4, ITEMS = 20000 };

typedef struct counting { /* not synchronised: calls must not overlap */
    uint64_t calls, last, stop_at;
    bool stopped;
} counting;

static bool count_call(void *ctx, uint64_t done, uint64_t total)
{
    counting *c = ctx;
    assert_false(c->stopped);
    assert_true(done >= c->last && done <= total);
    c->calls++;
    c->last = done;
    c->stopped = c->stop_at && done >= c->stop_at;
    return !c->stopped;
}

static void *add_bytes(void *arg)
{
    for (int i = 0; i < ITEMS && !heft_progress_halted(arg); i++)
        heft_progress_add(arg, 1);
    return NULL;
}

static void progress_callbacks_never_overlap(void **state)
{
    (void)state;
    for (uint64_t stop_at = 0; stop_at <= ITEMS; stop_at += ITEMS) {
        pthread_t threads[WORKERS];
        counting c = { .stop_at = stop_at };
        heft_progress m = { .fn = count_call, .ctx = &c, .total = WORKERS * ITEMS };
        heft_error err;
        for (int i = 0; i < WORKERS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, add_bytes, &m), 0);
        for (int i = 0; i < WORKERS; i++)
            assert_int_equal(pthread_join(threads[i], NULL), 0);
        if (stop_at) {
            heft_assert_status(heft_progress_end(&m, &err), HEFT_E_CANCELLED, &err);
            assert_true(c.stopped);
        } else {
            heft_assert_ok(heft_progress_end(&m, &err), &err);
            assert_int_equal(c.last, WORKERS * ITEMS); /* the end is always reported */
        }
    }
}

static void *fail_worker(void *arg)
{
    heft_error err = { .status = HEFT_E_IO, .message = "the disk is gone" };
    heft_progress_fail(arg, err.status, &err);
    return NULL;
}

static void the_first_error_is_kept(void **state)
{
    pthread_t threads[WORKERS];
    heft_progress m = { .fn = NULL };
    heft_error err;
    (void)state;
    for (int i = 0; i < WORKERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, fail_worker, &m), 0);
    for (int i = 0; i < WORKERS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_true(heft_progress_halted(&m));
    heft_assert_fails(heft_progress_end(&m, &err), HEFT_E_IO, &err, "the disk is gone");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(progress_callbacks_may_run_other_work_items),
        cmocka_unit_test(the_allocator_may_add_crcs_while_crcs_are_added),
        cmocka_unit_test(callbacks_of_an_eviction_may_query_the_store),
        cmocka_unit_test(progress_callbacks_never_overlap),
        cmocka_unit_test(the_first_error_is_kept),
        cmocka_unit_test(segments_are_not_joined_across_borders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
