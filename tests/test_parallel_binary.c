/* test_parallel_binary.c - parallel parsing of binary records: same index, same errors as with one
 * thread. */
#include "models.h"
#include "workers.h"

#include "model/parallel.h"
#include "model/records.h"

enum { TENSORS = 110003, DAMAGES = 24, NEAR_BYTES = 128, SHAPE_BYTES = 16 };

static const char *const formats[] = { "mag",      "gptrs-archive", "gptrs-checkpoint",
                                       "burnpack", "ztensor",       "safetensors" };

/* Burn reads at most 100,000 tensors. */
static uint32_t tensors_of(const char *format)
{
    return strcmp(format, "burnpack") ? TENSORS : 100000;
}

/* Make a model with names of several lengths, and with several ranks, most in the last quarter. */
static heft_bytes make(const char *format)
{
    uint32_t count = tensors_of(format);
    test_tensor *t = calloc(count, sizeof *t);
    char(*names)[40] = calloc(count, sizeof *names);
    assert_non_null(t);
    assert_non_null(names);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t rank = 1 + i % 2 + (i > count * 3 / 4 ? i % 3 : 0);
        snprintf(names[i], sizeof names[i], "%u%s", i * 7919 % count,
                 i % 5   ? ".weight"
                 : i % 3 ? ""
                         : ".\xC3\xA9l\xC3\xA9ment");
        if (i % 5 == 0 && i % 3 == 0 && !strcmp(format, "gptrs-checkpoint"))
            strcpy(names[i] + strlen(names[i]) - strlen("\xC3\xA9l\xC3\xA9ment"), "element");
        t[i] = (test_tensor){ names[i], HEFT_F32, rank, { 1, 1, 1, 1 } };
    }
    heft_bytes b = heft_test_model(format, t, count);
    free(names);
    free(t);
    return b;
}

static void any_number_of_workers_builds_the_same_index(void **state)
{
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(formats); i++) {
        heft_bytes b = make(formats[i]);
        heft_expect_same_by_workers(b, NULL);
        heft_test_free(&b);
    }
}

/* The first half of the tensors has no data. */
static void workers_may_find_no_data(void **state)
{
    test_tensor *t = calloc(TENSORS, sizeof *t);
    char(*names)[12] = calloc(TENSORS, sizeof *names);
    (void)state;
    assert_non_null(t);
    assert_non_null(names);
    for (uint32_t i = 0; i < TENSORS; i++) {
        snprintf(names[i], sizeof names[i], "%u", (unsigned)i);
        t[i] = (test_tensor){ names[i], HEFT_F32, 1, { i > TENSORS / 2 } };
    }
    heft_bytes b = heft_test_model("gptrs-archive", t, TENSORS);
    heft_expect_same_by_workers(b, NULL);
    heft_test_free(&b);
    free(names);
    free(t);
}

static const uint8_t *name_in(heft_bytes b, uint32_t tensor, size_t *len)
{
    heft_file *f;
    heft_error err;
    heft_assert_ok(heft_test_open(&f, b, NULL, &err), &err);
    heft_str name = heft_tensor_at(f, tensor).name;
    heft_file_close(f);
    *len = name.len;
    return (const uint8_t *)name.ptr;
}

/* Flip one bit in or near the record of a random tensor. */
static void workers_report_damage_as_one_thread_does(void **state)
{
    uint32_t at = 1;
    int damages = (int)heft_test_fewer(DAMAGES);
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(formats); i++) {
        heft_bytes b = make(formats[i]);
        for (int k = 0; k < damages; k++) {
            size_t len;
            at = at * 1664525 + 1013904223;
            const uint8_t *name = name_in(b, (at >> 8) % tensors_of(formats[i]), &len);
            size_t at_byte = (size_t)(name - (const uint8_t *)b.p) + (at >> 4) % NEAR_BYTES -
                             NEAR_BYTES / 2;
            uint8_t *p = (uint8_t *)b.p + (at_byte < b.len ? at_byte : b.len - 1), old = *p;
            *p ^= (uint8_t)(1 << k % 8);
            heft_expect_same_by_workers(b, NULL);
            *p = old;
        }
        heft_test_free(&b);
    }
}

/* Overwrite the name of tensor `second`, or of the nearest preceding tensor with a name of the same
 * length, with the name of `first`. b is open as f. Return false if there is no such tensor. */
static bool make_duplicate(heft_bytes b, const heft_file *f, uint32_t first, uint32_t second)
{
    heft_str name = heft_tensor_at(f, first).name;
    while (heft_tensor_at(f, second).name.len != name.len)
        second--;
    size_t at = (size_t)(heft_tensor_at(f, second).name.ptr - (const char *)b.p);
    memcpy((char *)b.p + at, name.ptr, name.len);
    return second != first;
}

/* Duplicates far apart, and on both sides of a chunk border. */
static void workers_find_duplicate_names_anywhere(void **state)
{
    static const uint32_t pairs[][2] = { { 1, TENSORS - 1 },
                                         { TENSORS / 4 - 1, TENSORS / 4 },
                                         { TENSORS / 2 - 2, TENSORS / 2 + 3 },
                                         { 2, 7 } };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(pairs); i++) {
        heft_bytes b = make("mag");
        heft_file *f;
        heft_error err;
        heft_assert_ok(heft_test_open(&f, b, NULL, &err), &err);
        if (make_duplicate(b, f, pairs[i][0], pairs[i][1]))
            heft_expect_same_by_workers(b, "occurs twice");
        heft_file_close(f);
        heft_test_free(&b);
    }
}

/* The error names the first duplicate of the file, whichever a worker finds first. */
static void workers_report_the_first_duplicate_name(void **state)
{
    enum { APART = 997, PAIRS = 40 };
    (void)state;
    heft_bytes b = make("mag");
    heft_file *f;
    heft_error err;
    heft_assert_ok(heft_test_open(&f, b, NULL, &err), &err);
    for (uint32_t i = PAIRS; i > 0; i--)
        make_duplicate(b, f, i * APART, TENSORS - 1 - i * APART);
    heft_file_close(f);
    for (int times = 0; times < 10; times++)
        heft_expect_same_by_workers(b, "occurs twice");
    heft_test_free(&b);
}

/* ---- files that change during parsing ------------------------------------------------------- */

/* Records of one byte; read_fake() makes up the content. */
typedef struct fake {
    uint32_t extra_dims;  /* dimensions that read() adds to each 1000th record, unknown to skip() */
    uint32_t extra_bytes; /* bytes that read() consumes after record 999 and record 1999 */
} fake;

static void skip_fake(const void *ctx, heft_cur *c, uint32_t *rank)
{
    (void)ctx;
    heft_cur_take(c, 1);
    *rank = 1;
}

static heft_status read_fake(void *ctx, heft_cur *c, heft_index *x, uint32_t count, uint32_t chunk)
{
    static const uint8_t shape[SHAPE_BYTES] = { 1, 0, 0, 0, 0, 0, 0, 0, 1 };
    const fake *f = ctx;
    heft_status st = HEFT_OK;
    (void)chunk;
    for (uint32_t i = 0; i < count && !st; i++) {
        bool odd = i % 1000 == 999;
        heft_ix_record r = { .name = { (const char *)heft_cur_take(c, 1), 1 },
                             .shape = shape,
                             .length = HEFT_UNKNOWN_LENGTH,
                             .rank = 1 + (odd ? f->extra_dims : 0),
                             .dtype = HEFT_U8 };
        st = heft_ix_add(x, &r);
        if (odd && f->extra_bytes && i < 2000)
            heft_cur_take(c, f->extra_bytes);
    }
    return st;
}

static bool read_fakes(fake f, const heft_executor *threads)
{
    heft_test_memory m;
    heft_index x;
    heft_error err;
    uint8_t *bytes = calloc(TENSORS + 64, 1);
    heft_window in = { .size = TENSORS + 64, .err = &err };
    heft_cur c = { bytes, bytes + TENSORS + 64, bytes, 0, TENSORS + 64, &in, "records", HEFT_OK };
    heft_ix_binary_records records = { .skip = skip_fake, .read = read_fake, .ctx = &f };
    heft_test_memory_init(&m, 0);
    heft_ix_init(&x, &m.al, NULL, (uint64_t[2]){ 0, 0 });
    x.err = &err;
    x.run = threads->run;
    x.run_ctx = threads->ctx;
    heft_assert_ok(heft_ix_reserve(&x, 0, TENSORS, TENSORS, 1), &err);
    bool done = heft_ix_parallel_binary(&x, &c, TENSORS, &records);
    assert_int_equal(x.tensors.len, done ? TENSORS : 0);
    assert_int_equal(x.dims.len, done ? TENSORS : 0);
    assert_ptr_equal(c.p, done ? bytes + TENSORS : bytes);
    heft_ix_free(&x);
    heft_assert_all_freed(&m);
    free(bytes);
    return done;
}

static void falls_back_when_records_change_between_the_passes(void **state)
{
    heft_executor threads = heft_executor_threads(4);
    (void)state;
    assert_true(read_fakes((fake){ 0, 0 }, &threads));
    assert_false(read_fakes((fake){ 1, 0 }, &threads));
    assert_false(read_fakes((fake){ 0, 3 }, &threads));
}

static void run_backwards(void *ctx, size_t n, void (*fn)(void *arg, size_t i), void *arg)
{
    (void)ctx;
    while (n > 0)
        fn(arg, --n);
}

static void chunks_may_run_in_any_order(void **state)
{
    heft_executor backwards = { .size = sizeof backwards, .run = run_backwards, .width = 1 };
    (void)state;
    assert_true(read_fakes((fake){ 0, 0 }, &backwards));
    assert_false(read_fakes((fake){ 1, 0 }, &backwards));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_number_of_workers_builds_the_same_index),
        cmocka_unit_test(workers_may_find_no_data),
        cmocka_unit_test(workers_report_damage_as_one_thread_does),
        cmocka_unit_test(workers_find_duplicate_names_anywhere),
        cmocka_unit_test(workers_report_the_first_duplicate_name),
        cmocka_unit_test(falls_back_when_records_change_between_the_passes),
        cmocka_unit_test(chunks_may_run_in_any_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
