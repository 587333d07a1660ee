/* test_read_many.c - heft_part_read_many() from warm and cold files, and heft_buffer_new(). */
#include "models.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MIB = 1 << 20, HUGE_PAGE = 2 << 20 };

static const test_tensor tensors[] = {
    /* every format supports f32 */
    { "empty", HEFT_F32, 2, { 0, 7 } },       { "small.a", HEFT_F32, 1, { 3 } },
    { "large", HEFT_F32, 2, { 2500, 1001 } }, { "small.b", HEFT_F32, 1, { 5 } },
    { "page", HEFT_F32, 1, { 1024 } },        { "share", HEFT_F32, 1, { MIB } },
    { "odd", HEFT_F32, 1, { 799999 } },
};

typedef struct request {
    heft_file *f;
    uint32_t parts[16], count;
    void *buffers[16];
} request;

/* Prepare to read the parts from the last to the first, and the last part twice. */
static void prepare(request *r, heft_file *f)
{
    *r = (request){ .f = f };
    for (uint32_t i = heft_tensor_count(f); i--;)
        r->parts[r->count++] = heft_tensor_at(f, i).first_part;
    r->parts[r->count++] = r->parts[0];
    for (uint32_t i = 0; i < r->count; i++) {
        size_t bytes = (size_t)heft_part_at(f, r->parts[i]).length;
        r->buffers[i] = malloc(bytes + 1);
        memset(r->buffers[i], 0xA5, bytes + 1);
    }
}

static heft_status read_all(const request *r, heft_progress_fn fn, void *ctx, heft_error *err)
{
    return heft_part_read_many(r->buffers, r->f, r->parts, r->count, fn, ctx, err);
}

static void assert_all_read(const request *r)
{
    heft_error err;
    for (uint32_t i = 0; i < r->count; i++) {
        size_t bytes = (size_t)heft_part_at(r->f, r->parts[i]).length;
        uint8_t *expected = malloc(bytes + 1), *got = r->buffers[i];
        heft_assert_ok(heft_part_read(expected, r->f, r->parts[i], 0, bytes, &err), &err);
        assert_true(!memcmp(got, expected, bytes));
        assert_int_equal(got[bytes], 0xA5);
        free(expected);
    }
}

static void finish(request *r)
{
    for (uint32_t i = 0; i < r->count; i++)
        free(r->buffers[i]);
    heft_file_close(r->f);
}

/* Drop the file from the page cache, as far as the system complies. */
static void make_cold(const char *path)
{
    int fd = open(path, O_RDONLY);
    assert_true(fd >= 0 && !fsync(fd));
    (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
}

static void reads_parts_with_every_access(void **state)
{
    static const heft_access accesses[] = { HEFT_ACCESS_AUTO, HEFT_ACCESS_READ,
                                            HEFT_ACCESS_POPULATE, HEFT_ACCESS_DIRECT };
    const char *format;
    for (size_t i = 0; (format = heft_test_writable(i)); i++) {
        const char *path = heft_test_path(*state, "model");
        /* without "empty": .mag has no empty tensors */
        heft_bytes b = heft_test_model(format, tensors + 1, HEFT_COUNT(tensors) - 1);
        heft_test_save(path, b.p, b.len);
        for (size_t k = 0; k < 2 * HEFT_COUNT(accesses); k++) {
            heft_source *s;
            heft_error err;
            heft_file *f;
            request r;
            make_cold(path);
            heft_assert_ok(heft_source_open_file(&s, path, accesses[k / 2], &err), &err);
            heft_assert_ok(heft_file_open_source(&f, s, NULL, &err), &err);
            prepare(&r, f);
            heft_assert_ok(read_all(&r, NULL, NULL, &err), &err);
            assert_all_read(&r);
            finish(&r);
        }
        heft_test_free(&b);
    }
}

/* ---- direct I/O ---- */

enum { COLD = 21 * MIB + 4321, RANGES = 300, READERS = 4 };

typedef struct cold {
    heft_source *s;
    const uint8_t *bytes;
    size_t wrong[READERS];
} cold;

static void read_ranges(void *arg, size_t reader)
{
    cold *c = arg;
    uint64_t random = reader + 1;
    uint8_t *buf = malloc(6 * MIB);
    for (int i = 0; i < RANGES; i++) {
        heft_error err;
        uint32_t max_bytes = i % 3 ? 5000 : 5 * MIB;
        size_t at = (size_t)heft_test_random(&random, COLD);
        size_t len = (size_t)heft_test_random(&random, max_bytes) + 1;
        len = len < COLD - at ? len : COLD - at;
        uint8_t *got = buf + i % 5; /* sometimes aligned as the file offset */
        if (i % 2)
            got = buf + (at - (uintptr_t)buf) % 4096 + (i % 4 == 1 ? 512 : 0);
        memset(got, 0xEE, len + 1);
        bool equal = !c->s->ops->read(c->s, at, got, len, &err) &&
                     !memcmp(got, c->bytes + at, len) && got[len] == 0xEE;
        c->wrong[reader] += !equal;
    }
    free(buf);
}

/* Cached bytes, direct reads and preceding reads agree in a partly cached file. */
static void direct_access_reads_any_range(void **state)
{
    const char *path = heft_test_path(*state, "cold");
    heft_executor threads = heft_executor_threads(READERS);
    uint8_t *bytes = malloc(COLD);
    uint64_t random = 11;
    cold c = { .bytes = bytes };
    heft_error err;
    for (size_t i = 0; i < COLD; i++)
        bytes[i] = (uint8_t)heft_test_random(&random, 256);
    heft_test_save(path, bytes, COLD);
    make_cold(path);
    int fd = open(path, O_RDONLY);
    uint8_t *buf = malloc(10 * MIB);
    assert_true(pread(fd, buf, 10 * MIB, 0) == 10 * MIB);
    close(fd);
    heft_assert_ok(heft_source_open_file(&c.s, path, HEFT_ACCESS_DIRECT, &err), &err);
    threads.run(threads.ctx, READERS, read_ranges, &c);
    for (int i = 0; i < READERS; i++)
        assert_int_equal(c.wrong[i], 0);
    c.s->ops->close(c.s);
    free(buf);
    free(bytes);
}

/* ---- sources with an executor ---- */

typedef struct waiting_source {
    heft_source base;
    heft_source *inner;
} waiting_source;

static size_t counted_runs;

static heft_status read_inner(heft_source *s, uint64_t at, void *buf, size_t len, heft_error *err)
{
    heft_source *inner = ((waiting_source *)s)->inner;
    return inner->ops->read(inner, at, buf, len, err);
}

static void close_inner(heft_source *s)
{
    heft_source_close(((waiting_source *)s)->inner);
}

static void run_counted(void *ctx, size_t n, void (*fn)(void *arg, size_t i), void *arg)
{
    (void)ctx;
    counted_runs++;
    for (size_t i = 0; i < n; i++)
        fn(arg, i);
}

static const heft_executor *counting_executor(const heft_source *s)
{
    static const heft_executor e = { .size = sizeof e, .run = run_counted, .width = 16 };
    (void)s;
    return &e;
}

/* The executor of a source reads many parts, unless the host has no executor: then its functions
 * are called by one thread only. */
static void uses_the_executor_of_the_source(void **state)
{
    static const heft_source_ops ops = {
        .size = sizeof ops, .read = read_inner, .close = close_inner, .executor = counting_executor
    };
    heft_bytes model = heft_test_model("safetensors", tensors, HEFT_COUNT(tensors));
    (void)state;
    for (size_t has_executor = 0; has_executor < 2; has_executor++) {
        waiting_source s = { { &ops, model.len }, NULL };
        heft_open_options o = HEFT_OPEN_OPTIONS_INIT;
        heft_host host;
        heft_error err;
        heft_file *f;
        request r;
        heft_host_copy(&host, NULL, sizeof host);
        host.executor = has_executor ? host.executor : NULL;
        o.host = &host;
        counted_runs = 0;
        heft_assert_ok(heft_source_open_memory(&s.inner, model.p, model.len, &err), &err);
        heft_assert_ok(heft_file_open_source(&f, &s.base, &o, &err), &err);
        prepare(&r, f);
        heft_assert_ok(read_all(&r, NULL, NULL, &err), &err);
        assert_int_equal(counted_runs, has_executor);
        assert_all_read(&r);
        finish(&r);
    }
    heft_test_free(&model);
}

/* ---- every kind of part ---- */

/* Return a NumPy array stored column by column, with big-endian elements. */
static heft_bytes fortran_array(void)
{
    static const char header[] = "{'descr': '>f4', 'fortran_order': True, 'shape': (1900, 1203), }";
    enum { HEADER = 128, ELEMENTS = 1900 * 1203 };
    heft_bytes b = { malloc(HEADER + ELEMENTS * 4), HEADER + ELEMENTS * 4 };
    uint64_t random = 7;
    memset(b.p, ' ', HEADER);
    memcpy(b.p, "\x93NUMPY\x01\x00\x76\x00", 10);
    memcpy(b.p + 10, header, sizeof header - 1);
    b.p[HEADER - 1] = '\n';
    for (size_t i = HEADER; i < b.len; i++)
        b.p[i] = (uint8_t)heft_test_random(&random, 256);
    return b;
}

static heft_bytes compressed_model(void)
{
    heft_write_options write = HEFT_WRITE_OPTIONS_INIT;
    heft_convert_options o = HEFT_CONVERT_OPTIONS_INIT;
    o.write = &write;
    write.storage.encoding = HEFT_ZSTD;
    return heft_test_converted("mag", tensors + 1, HEFT_COUNT(tensors) - 1, "ztensor", &o);
}

static void reads_strided_and_compressed_parts(void **state)
{
    heft_bytes files[] = { fortran_array(), compressed_model() };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(files); i++) {
        heft_error err;
        heft_file *f;
        request r;
        heft_assert_ok(heft_test_open(&f, files[i], NULL, &err), &err);
        prepare(&r, f);
        heft_assert_ok(read_all(&r, NULL, NULL, &err), &err);
        assert_all_read(&r);
        finish(&r);
        heft_test_free(&files[i]);
    }
}

typedef struct progress {
    uint64_t done, total, stop_at;
} progress;

static bool note_progress(void *ctx, uint64_t done, uint64_t total)
{
    progress *s = ctx;
    assert_true(done >= s->done && done <= total);
    s->done = done;
    s->total = total;
    return done < s->stop_at;
}

static heft_bytes model(void)
{
    return heft_test_model("safetensors", tensors, HEFT_COUNT(tensors));
}

static void reports_progress_and_stops_on_request(void **state)
{
    heft_bytes b = model();
    uint64_t sum = 0;
    heft_error err;
    heft_file *f;
    request r;
    (void)state;
    heft_assert_ok(heft_test_open(&f, b, NULL, &err), &err);
    prepare(&r, f);
    for (uint32_t i = 0; i < r.count; i++)
        sum += heft_part_at(f, r.parts[i]).length;
    progress all = { 0, 0, UINT64_MAX }, partial = { 0, 0, 5 * MIB };
    heft_assert_ok(read_all(&r, note_progress, &all, &err), &err);
    assert_int_equal(all.done, sum);
    assert_int_equal(all.total, sum);
    heft_assert_status(read_all(&r, note_progress, &partial, &err), HEFT_E_CANCELLED, &err);
    assert_in_range(partial.done, 5 * MIB, sum);
    finish(&r);
    heft_test_free(&b);
}

static void refuses_an_unknown_part(void **state)
{
    heft_bytes b = model();
    uint32_t none = 1000;
    void *buffer = &none;
    heft_error err;
    heft_file *f;
    (void)state;
    heft_assert_ok(heft_test_open(&f, b, NULL, &err), &err);
    heft_assert_fails(heft_part_read_many(&buffer, f, &none, 1, NULL, NULL, &err), HEFT_E_ARGUMENT,
                      &err, "there is no part 1000");
    heft_assert_ok(heft_part_read_many(NULL, f, NULL, 0, NULL, NULL, &err), &err);
    heft_file_close(f);
    heft_test_free(&b);
}

static void reports_a_truncated_file(void **state)
{
    const char *path = heft_test_path(*state, "model");
    heft_bytes b = model();
    heft_error err;
    heft_file *f;
    request r;
    heft_test_save(path, b.p, b.len);
    heft_assert_ok(heft_file_open(&f, path, NULL, &err), &err);
    prepare(&r, f);
    assert_int_equal(truncate(path, 2 * MIB), 0);
    heft_assert_status(read_all(&r, NULL, NULL, &err), HEFT_E_IO, &err);
    finish(&r);
    heft_test_free(&b);
}

static void reports_every_failed_allocation(void **state)
{
    heft_bytes b = model();
    heft_status st = HEFT_E_NOMEM;
    heft_test_memory m;
    heft_error err;
    heft_file *f;
    request r;
    (void)state;
    heft_test_memory_init(&m, 0);
    heft_assert_ok(heft_test_open(&f, b, &m.host, &err), &err);
    prepare(&r, f);
    for (uint32_t at = 1; st; at++) {
        heft_test_memory_rewind(&m);
        m.fail_at = at;
        st = read_all(&r, NULL, NULL, &err);
        assert_true(!st || st == HEFT_E_NOMEM);
        assert_in_range(at, 1, 20);
    }
    assert_all_read(&r);
    finish(&r);
    heft_assert_all_freed(&m);
    heft_test_free(&b);
}

static void buffers_are_zeroed_and_page_aligned(void **state)
{
    static const size_t sizes[] = { 0, 1, HUGE_PAGE - 1, HUGE_PAGE, 5 * HUGE_PAGE + 3 };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(sizes); i++) {
        uint8_t *p = heft_buffer_new(sizes[i]);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % HUGE_PAGE, 0);
        for (size_t at = 0; at < sizes[i]; at += 4096)
            assert_int_equal(p[at]++, 0);
        heft_buffer_free(p, sizes[i]);
        unsigned char resident;
        assert_int_equal(mincore(p, 1, &resident), -1); /* ENOMEM: nothing is mapped here */
    }
    assert_null(heft_buffer_new(SIZE_MAX));
    assert_null(heft_buffer_new(SIZE_MAX - 3 * (size_t)HUGE_PAGE));
    heft_buffer_free(NULL, 5);
}

static bool huge_pages_are_for_everybody(void)
{
    char text[64] = "";
    FILE *f = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "r");
    bool is_read = f && fgets(text, sizeof text, f);
    if (f)
        fclose(f);
    return is_read && strstr(text, "[always]");
}

static void a_small_buffer_occupies_the_pages_that_are_touched(void **state)
{
    unsigned char resident[HUGE_PAGE / 4096] = { 0 };
    size_t pages = 0, page = (size_t)sysconf(_SC_PAGESIZE);
    (void)state;
    if (page != 4096 || huge_pages_are_for_everybody())
        skip();
    uint8_t *p = heft_buffer_new(300000);
    assert_non_null(p);
    p[0] = 1;
    assert_int_equal(mincore(p, HUGE_PAGE, resident), 0);
    for (size_t i = 0; i < HEFT_COUNT(resident); i++)
        pages += resident[i] & 1;
    assert_int_equal(pages, 1);
    heft_buffer_free(p, 300000);
}

#define IN_A_DIRECTORY(test) \
    cmocka_unit_test_setup_teardown(test, heft_test_dir_make, heft_test_dir_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_DIRECTORY(reads_parts_with_every_access),
        IN_A_DIRECTORY(direct_access_reads_any_range),
        cmocka_unit_test(uses_the_executor_of_the_source),
        cmocka_unit_test(reads_strided_and_compressed_parts),
        cmocka_unit_test(reports_progress_and_stops_on_request),
        cmocka_unit_test(refuses_an_unknown_part),
        IN_A_DIRECTORY(reports_a_truncated_file),
        cmocka_unit_test(reports_every_failed_allocation),
        cmocka_unit_test(buffers_are_zeroed_and_page_aligned),
        cmocka_unit_test(a_small_buffer_occupies_the_pages_that_are_touched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
