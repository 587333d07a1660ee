/* test_changing.c - tests of files whose bytes change between two passes: no access out of bounds,
 * and an error that reports the change. */
#include "models.h"

#include <math.h>

#include "../cli/options/command.h"
#include "../cli/values/summary.h"

/* ---- a source that changes ------------------------------------------------------------------ */

typedef struct changing {
    heft_source base;
    heft_bytes first, later;
    uint64_t watched;     /* offset of a byte that each pass reads once */
    unsigned pass;        /* number of the current pass, from 1 */
    unsigned change_pass; /* the first pass that reads the later bytes */
} changing;

static heft_status read_changing(heft_source *s, uint64_t offset, void *buf, size_t len,
                                 heft_error *err)
{
    changing *c = (changing *)s;
    (void)err;
    c->pass += offset <= c->watched && c->watched - offset < len;
    memcpy(buf, (c->pass >= c->change_pass ? c->later.p : c->first.p) + offset, len);
    return HEFT_OK;
}

static void close_changing(heft_source *s)
{
    (void)s;
}

static const heft_source_ops ops = { .size = sizeof(heft_source_ops),
                                     .read = read_changing,
                                     .close = close_changing };

/* Open a file whose later content has the `len` bytes `later` at offset `at`. Release with
 * release(). */
static heft_file *open_changing(changing *c, heft_bytes take, uint64_t at, const void *later,
                                size_t len)
{
    heft_error err;
    heft_file *f;
    *c = (changing){
        .base = { &ops, take.len }, .first = take, .watched = at, .change_pass = UINT32_MAX
    };
    c->later = heft_test_copy(take.p, take.len);
    memcpy(c->later.p + at, later, len);
    heft_assert_ok(heft_file_open_source(&f, &c->base, NULL, &err), &err);
    c->pass = 0;
    return f;
}

static void release(changing *c, heft_file *f)
{
    heft_file_close(f);
    heft_test_free(&c->first);
    heft_test_free(&c->later);
}

/* Return the offset of a part of the only tensor. */
static uint64_t offset_of(heft_bytes b, const char *role)
{
    heft_error err;
    heft_file *f;
    heft_assert_ok(heft_test_open(&f, b, NULL, &err), &err);
    uint64_t at = heft_part_at(f, heft_part_find(f, 0, heft_str_from(role))).offset;
    heft_file_close(f);
    return at;
}

/* ---- statistics ----------------------------------------------------------------------------- */

static session plain; /* without options */

typedef struct task {
    const heft_file *f;
    summary sum;
    bool ok;
} task;

static void summarize_tensor(void *ctx, size_t i)
{
    work *w = ctx;
    task *v = w->ctx;
    const summary_options options = { NULL, true };
    v->ok = summarize(&v->sum, w, v->f, "file", (uint32_t)i, &options);
}

/* Without memory for the bytes of the first pass the bytes are read again. */
static void statistics_of_a_changing_file_fail(void **state)
{
    static const double later[] = { 3e6, -3e6, 1e308, -1e308, 1e-320, NAN, HUGE_VAL, -HUGE_VAL };
    static const test_tensor t = { "t", HEFT_F64, 1, { 8 } };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(later); i++) {
        changing c;
        heft_bytes b = heft_test_model("safetensors", &t, 1);
        uint64_t at = offset_of(b, "data");
        for (size_t k = 0; k < 8; k++) /* the values 1 to 8 */
            memcpy(b.p + at + 8 * k, &(double){ (double)k + 1 }, sizeof(double));
        heft_test_le(b.p + at, 8, sizeof(double));
        task v = { .f = open_changing(&c, b, at, &later[i], sizeof later[i]) };
        work w = { .session = &plain, .ctx = &v, .path = "file", .kept = WORK_KEPT };
        c.change_pass = 2;
        assert_int_equal(work_run(&w, 1, summarize_tensor), HEFT_E_IO);
        assert_false(v.ok);
        assert_non_null(strstr(w.err.message, "changed while it was being read"));
        release(&c, (heft_file *)(uintptr_t)v.f);
    }
}

static void statistics_of_bytes_in_memory_are_those_of_the_first_pass(void **state)
{
    static const test_tensor t = { "t", HEFT_F64, 1, { 8 } };
    const double first = 1, later = NAN;
    changing c;
    (void)state;
    heft_bytes b = heft_test_model("safetensors", &t, 1);
    uint64_t at = offset_of(b, "data");
    for (size_t k = 0; k < 8; k++)
        memcpy(b.p + at + 8 * k, &first, sizeof first);
    heft_test_le(b.p + at, 8, sizeof first);
    task v = { .f = open_changing(&c, b, at, &later, sizeof later) };
    work w = { .session = &plain, .ctx = &v, .path = "file" };
    c.change_pass = 2;
    assert_int_equal(work_run(&w, 1, summarize_tensor), 0);
    assert_true(v.ok);
    assert_int_equal(v.sum.finite, 8);
    assert_true(v.sum.mean == first);
    assert_int_equal(c.pass, 1);
    assert_int_equal(w.kept, 0);
    release(&c, (heft_file *)(uintptr_t)v.f);
}

static void every_finite_value_is_in_a_bin_of_the_histogram(void **state)
{
    static const double ends[][2] = { { -1e308, 1e308 }, { 0, 5e-324 }, { 0, 1e-300 }, { 7, 7 },
                                      { -HUGE_VAL, 1 },  { NAN, 3 },    { -0.0, 0 } };
    static const test_tensor t = { "t", HEFT_F64, 1, { 2 } };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(ends); i++) {
        changing c;
        heft_bytes b = heft_test_model("safetensors", &t, 1);
        uint64_t at = offset_of(b, "data"), binned = 0;
        memcpy(b.p + at, ends[i], sizeof ends[i]);
        task v = { .f = open_changing(&c, b, at, ends[i], sizeof ends[i]) };
        work w = { .session = &plain, .ctx = &v, .path = "file" };
        assert_int_equal(work_run(&w, 1, summarize_tensor), HEFT_OK);
        for (size_t k = 0; k < SUMMARY_BINS; k++)
            binned += v.sum.bins[k];
        assert_int_equal(binned, v.sum.finite);
        release(&c, (heft_file *)(uintptr_t)v.f);
    }
}

/* ---- layouts -------------------------------------------------------------------------------- */

static heft_layout as_csr(void *ctx, const heft_tensor *t)
{
    (void)ctx, (void)t;
    return HEFT_SPARSE_CSR;
}

static heft_layout as_coo(void *ctx, const heft_tensor *t)
{
    (void)ctx, (void)t;
    return HEFT_SPARSE_COO;
}

static bool always(void *ctx, const heft_tensor *t)
{
    (void)ctx, (void)t;
    return true;
}

static heft_status convert(const heft_file *f, heft_convert_options how, heft_bytes *out,
                           heft_error *err)
{
    heft_test_sink sink;
    heft_status st = heft_file_convert(f, heft_format_find(HEFT_STR("ztensor")),
                                       heft_test_sink_init(&sink, false), &how, err);
    if (out)
        *out = heft_test_copy(sink.p, sink.len);
    heft_test_sink_free(&sink);
    return st;
}

/* Change the file in each pass after the first; the conversion must fail with a message about the
 * change. Return the number of passes. */
static unsigned change_in_each_pass(changing *c, const heft_file *f, heft_convert_options how)
{
    heft_error err;
    unsigned passes = 0;
    c->change_pass = UINT32_MAX;
    c->pass = 0;
    heft_assert_ok(convert(f, how, NULL, &err), &err);
    passes = c->pass;
    for (c->change_pass = 2; c->change_pass <= passes; c->change_pass++) {
        c->pass = 0;
        heft_assert_fails(convert(f, how, NULL, &err), HEFT_E_IO, &err, "changed while");
    }
    return passes;
}

static void changing_data_cannot_be_converted_to_sparse(void **state)
{
    static const test_tensor t = { "t", HEFT_F32, 2, { 4, 4 } };
    static const uint32_t columns[2][2] = { { 1, 0 },
                                            { 0, 0 } }; /* adds or removes a nonzero element */
    heft_convert_options how = HEFT_CONVERT_OPTIONS_INIT;
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        changing c;
        heft_bytes b = heft_test_model("safetensors", &t, 1);
        uint64_t at = offset_of(b, "data");
        memset(b.p + at, 0, 64);
        b.p[at + 20] = 1;
        b.p[at] = i > 1; /* 0 changes to 1, or 1 to 0 */
        heft_file *f = open_changing(&c, b, at, columns[i / 2], sizeof columns[0]);
        how.sparsify = i % 2 ? as_coo : as_csr;
        assert_int_equal(change_in_each_pass(&c, f, how), 4);
        release(&c, f);
    }
}

/* Return a file with a sparse tensor of `rows` rows, with the first and the last element set. */
static heft_bytes sparse_file(uint64_t rows, heft_layout (*layout)(void *, const heft_tensor *))
{
    test_tensor t = { "t", HEFT_F32, 2, { rows, 1024 } };
    heft_convert_options how = HEFT_CONVERT_OPTIONS_INIT;
    heft_error err;
    heft_file *f;
    heft_bytes out, b = heft_test_model("safetensors", &t, 1);
    uint64_t at = offset_of(b, "data");
    memset(b.p + at, 0, (size_t)rows * 4096);
    b.p[at] = 1;
    b.p[at + rows * 4096 - 1] = 1;
    how.sparsify = layout;
    heft_assert_ok(heft_test_open(&f, b, NULL, &err), &err);
    heft_assert_ok(convert(f, how, &out, &err), &err);
    heft_file_close(f);
    heft_test_free(&b);
    return out;
}

static void changing_indices_cannot_be_converted_to_dense(void **state)
{
    static const struct {
        heft_layout (*layout)(void *, const heft_tensor *);
        const char *role;
        uint64_t later[2];
    } rows[] = {
        { as_coo, "coords", { 64, 63 } },         /* past the last row */
        { as_coo, "coords", { UINT64_MAX, 63 } }, /* largest index */
        { as_csr, "indices", { 0, 1024 } },       { as_csr, "indices", { 0, UINT64_MAX } },
        { as_csr, "indptr", { 0, 3 } }, /* more entries than there are */
        { as_csr, "indptr", { 0, UINT64_MAX } },
    };
    heft_convert_options how = HEFT_CONVERT_OPTIONS_INIT;
    (void)state;
    how.densify = always;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        changing c;
        heft_bytes b = sparse_file(64, rows[i].layout);
        uint64_t at = offset_of(b, rows[i].role);
        heft_file *f = open_changing(&c, b, at, rows[i].later, sizeof rows[i].later);
        assert_in_range(change_in_each_pass(&c, f, how), 3, 8);
        release(&c, f);
    }
}

/* After a change an entry may belong to a block that is already written, although the entries were
 * sorted in the pass that checked the order. */
static void entries_that_become_unsorted_are_refused(void **state)
{
    enum { ROWS = 4097 }; /* rows of 4 KiB, together more than a block */
    static const uint64_t later[] = { ROWS - 1, 0 };
    heft_convert_options how = HEFT_CONVERT_OPTIONS_INIT;
    heft_error err;
    changing c;
    (void)state;
    heft_bytes b = sparse_file(ROWS, as_coo);
    uint64_t at = offset_of(b, "coords");
    heft_file *f = open_changing(&c, b, at, later, sizeof later);
    how.densify = always;
    heft_assert_ok(convert(f, how, NULL, &err), &err);
    c.change_pass = c.pass; /* change in the last pass */
    c.pass = 0;
    heft_assert_fails(convert(f, how, NULL, &err), HEFT_E_IO, &err, "changed while");
    release(&c, f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statistics_of_a_changing_file_fail),
        cmocka_unit_test(statistics_of_bytes_in_memory_are_those_of_the_first_pass),
        cmocka_unit_test(every_finite_value_is_in_a_bin_of_the_histogram),
        cmocka_unit_test(changing_data_cannot_be_converted_to_sparse),
        cmocka_unit_test(changing_indices_cannot_be_converted_to_dense),
        cmocka_unit_test(entries_that_become_unsorted_are_refused),
    };
    session_begin(&plain, NULL);
    if (session_complete(&plain))
        return 1;
    return cmocka_run_group_tests_name("changing", tests, NULL, NULL);
}
