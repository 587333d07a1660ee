/* determinism.c - converts a model to every generation of every format with 1, 2 and 8 threads in
 * three orders of scheduling; the bytes must always be the same.
 *
 *   determinism [--full | --seconds N] [--seed N]
 *
 * Each conversion runs once for each combination, or 100 times with --full. TAP on stdout, and a
 * comment with figures. */
#include <heft/heft_ext.h>
#include <heft/write.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The model is larger than three units of work of a conversion, of 4 MiB each. */
enum { TENSORS = 12, ROWS = 1100, COLUMNS = 256, MAX_THREADS = 8, FULL_ROUNDS = 100 };

/* ---- an executor that perturbs -------------------------------------------------------------- */

typedef enum order {
    PLAIN,
    YIELDING, /* each item gives the processor away at random */
    LAGGING,  /* every second item begins after later items */
    ORDERS
} order;

typedef struct schedule {
    order order;
    uint64_t seed;
    uint32_t width;
} schedule;

typedef struct run_items {
    const schedule *schedule;
    atomic_size_t next;
    size_t n;
    void (*fn)(void *arg, size_t i);
    void *arg;
} run_items;

static uint64_t random_of(uint64_t seed, uint64_t i)
{
    uint64_t x = (seed + i) * 0x9E3779B97F4A7C15;
    x ^= x >> 29;
    return x * 0xBF58476D1CE4E5B9 >> 32;
}

static void perturb(const run_items *r, size_t i)
{
    uint64_t random = random_of(r->schedule->seed, i);
    for (uint64_t k = random % 8; k && r->schedule->order == YIELDING; k--)
        sched_yield();
    if (r->schedule->order == LAGGING && i % 2 == 0)
        usleep((useconds_t)(random % 150));
}

static void *work(void *arg)
{
    run_items *r = arg;
    for (size_t i; (i = atomic_fetch_add(&r->next, 1)) < r->n;) {
        perturb(r, i);
        r->fn(r->arg, i);
    }
    return NULL;
}

static void run(void *ctx, size_t n, void (*fn)(void *arg, size_t i), void *arg)
{
    const schedule *s = ctx;
    run_items r = { s, 0, n, fn, arg };
    pthread_t threads[MAX_THREADS];
    uint32_t started = 0;
    while (started + 1 < s->width && !pthread_create(&threads[started], NULL, work, &r))
        started++;
    work(&r);
    while (started)
        pthread_join(threads[--started], NULL);
}

/* ---- conversions ---------------------------------------------------------------------------- */

typedef struct variant {
    const char *title;
    uint32_t needs; /* HEFT_CAN_... of the format */
    heft_encoding encoding;
    const char *digest;
    heft_dtype cast;
} variant;

static const variant variants[] = {
    { "", 0, HEFT_RAW, NULL, HEFT_UNTYPED },
    { ", cast to f16", 0, HEFT_RAW, NULL, HEFT_F16 },
    { ", zstd and sha256", HEFT_CAN_ENCODE | HEFT_CAN_DIGEST, HEFT_ZSTD, "sha256", HEFT_UNTYPED },
};

static heft_dtype cast(void *ctx, const heft_tensor *t)
{
    (void)t;
    return ((const variant *)ctx)->cast;
}

static void fail(const char *what, const heft_error *err)
{
    printf("Bail out! %s: %s\n", what, err->message);
    exit(2);
}

/* Convert the model in `from`; HEFT_E_LOSSY and HEFT_E_UNSUPPORTED are possible. */
static heft_status convert(heft_blob *out, const heft_blob *from, const heft_format *to,
                           const char *version, const variant *v, schedule *s, heft_error *err)
{
    heft_executor x = { .size = sizeof x, .run = run, .ctx = s, .width = s->width };
    heft_open_options open = HEFT_OPEN_OPTIONS_INIT;
    heft_convert_options opt = HEFT_CONVERT_OPTIONS_INIT;
    heft_write_options write = HEFT_WRITE_OPTIONS_INIT;
    heft_host host;
    heft_source *source;
    heft_sink *sink = NULL;
    heft_file *f = NULL;
    heft_host_copy(&host, heft_host_default(), sizeof host);
    host.executor = &x;
    open.host = write.host = &host;
    write.version = *version ? version : NULL;
    write.allow_loss = true;
    write.storage.encoding = v->encoding;
    write.storage.digest = v->digest;
    opt.write = &write;
    opt.cast = v->cast == HEFT_UNTYPED ? NULL : cast;
    opt.ctx = (void *)(uintptr_t)v;
    if (heft_source_open_memory(&source, from->data, from->size, err) ||
        heft_file_open_source(&f, source, &open, err) ||
        heft_sink_open_memory(&sink, out, NULL, err))
        fail("the model", err);
    heft_status st = heft_file_convert(f, to, sink, &opt, err);
    heft_file_close(f);
    return st;
}

/* Write a model with repeated and random bytes to memory. */
static void make_model(heft_blob *out)
{
    static char names[TENSORS][8];
    static float values[TENSORS][ROWS * COLUMNS];
    static const uint64_t dims[] = { ROWS, COLUMNS };
    heft_array arrays[TENSORS];
    heft_save_options opt = HEFT_SAVE_OPTIONS_INIT;
    heft_sink *sink;
    heft_error err;
    for (unsigned i = 0; i < TENSORS; i++) {
        snprintf(names[i], sizeof names[i], "t%u", i);
        for (size_t k = 0; k < ROWS * COLUMNS; k++)
            values[i][k] = (float)(random_of(i / 2, k / 3) % 1000) / 7;
        arrays[i] = (heft_array){ .name = heft_str_from(names[i]),
                                  .data = values[i],
                                  .dims = dims,
                                  .rank = 2,
                                  .dtype = HEFT_F32 };
    }
    opt.format = heft_format_find(HEFT_STR("safetensors"));
    if (heft_sink_open_memory(&sink, out, NULL, &err) ||
        heft_array_write(sink, arrays, TENSORS, &opt, &err))
        fail("the model", &err);
}

/* ---- comparing ------------------------------------------------------------------------------ */

typedef struct campaign {
    uint64_t rounds, seed; /* rounds of each conversion */
    uint64_t cases;
    unsigned tests, failures;
} campaign;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Convert once with each number of threads and each order; return the number of differing files. */
static unsigned compare_round(const heft_blob *want, const heft_blob *from, const heft_format *to,
                              const char *version, const variant *v, uint64_t seed)
{
    static const uint32_t widths[] = { 1, 2, MAX_THREADS };
    unsigned differing = 0;
    for (unsigned i = 0; i < 3 * ORDERS; i++) {
        schedule s = { (order)(i / 3), seed, widths[i % 3] };
        heft_blob got = { .data = NULL };
        heft_error err;
        heft_status st = convert(&got, from, to, version, v, &s, &err);
        bool same = !st && got.size == want->size && !memcmp(got.data, want->data, got.size);
        if (!same)
            printf("# %" PRIu32 " threads, order %d, seed %" PRIu64 ": %s\n", s.width, s.order,
                   seed, st ? err.message : "other bytes");
        differing += !same;
        heft_blob_free(&got);
    }
    return differing;
}

/* Test a conversion, unless the format cannot hold the model. */
static void check(campaign *c, const heft_blob *from, const heft_format *to, const char *version,
                  const variant *v)
{
    schedule one = { PLAIN, 0, 1 };
    heft_blob want = { .data = NULL };
    heft_error err;
    unsigned differing = 0;
    if ((heft_format_caps(to) & v->needs) != v->needs ||
        convert(&want, from, to, version, v, &one, &err))
        return;
    for (uint64_t i = 0; i < c->rounds; i++)
        differing += compare_round(&want, from, to, version, v, c->seed + i);
    heft_blob_free(&want);
    c->tests++;
    c->cases += c->rounds * 3 * ORDERS;
    c->failures += differing;
    printf("%sok %u - %s %s%s\n", differing ? "not " : "", c->tests, heft_format_name(to), version,
           v->title);
    fflush(stdout);
}

static void check_format(campaign *c, const heft_blob *from, const heft_format *to)
{
    char versions[100], *rest = versions;
    snprintf(versions, sizeof versions, "%s", heft_format_versions(to));
    if (!(heft_format_caps(to) & HEFT_CAN_WRITE) || heft_format_caps(to) & HEFT_ONE_TENSOR)
        return;
    for (const char *version = strsep(&rest, " "); version; version = strsep(&rest, " "))
        for (size_t i = 0; i < sizeof variants / sizeof *variants; i++)
            check(c, from, to, version, &variants[i]);
}

int main(int argc, char **argv)
{
    campaign c = { .rounds = 1, .seed = 1 };
    heft_blob model = { .data = NULL };
    double began = now(), seconds = 0;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--full"))
            c.rounds = FULL_ROUNDS;
        else if (!strcmp(argv[i], "--seconds") && i + 1 < argc)
            seconds = atof(argv[++i]);
        else if (!strcmp(argv[i], "--seed") && i + 1 < argc)
            c.seed = strtoull(argv[++i], NULL, 10) * 1000003;
        else
            return 2;
    }
    make_model(&model);
    do { /* with --seconds: again until the time is over */
        for (uint32_t i = 0; i < heft_format_count(); i++)
            check_format(&c, &model, heft_format_at(i));
        c.seed += c.rounds;
    } while (now() - began < seconds);
    heft_blob_free(&model);
    printf("1..%u\n# {\"campaign\": \"determinism\", \"cases\": %" PRIu64
           ", \"seconds\": %.1f, \"failures\": %u}\n",
           c.tests, c.cases, now() - began, c.failures);
    return c.failures || !c.tests;
}
