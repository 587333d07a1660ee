/* test_combine.c - a model whose tensors are computed from those of two files: the sum of both. */
#include "combine/combine.h"
#include "models.h"

static const test_tensor tensors[] = {
    { "a", HEFT_F32, 2, { 300, 411 } },  { "kept", HEFT_I64, 1, { 9 } },
    { "half", HEFT_F16, 2, { 70, 33 } }, { "empty", HEFT_F32, 2, { 0, 7 } },
    { "scalar", HEFT_BF16, 0, { 0 } },
};
enum { TENSORS = sizeof tensors / sizeof *tensors };

typedef struct sum {
    heft_combine_input a[TENSORS], b[TENSORS];
    bool is_broken;
    size_t closed;
} sum;
typedef struct sum_scratch {
    heft_combine_reader a, b;
    float other[HEFT_COMBINE_STRIP];
} sum_scratch;

static heft_status add(void *ctx, void *scratch, uint32_t i, uint64_t from, size_t count,
                       float *out, heft_error *err)
{
    const sum *s = ctx;
    sum_scratch *c = scratch;
    heft_status st = heft_combine_read(&c->a, &s->a[i], from, count, out, err);
    if (!st)
        st = heft_combine_read(&c->b, &s->b[i], from, count, c->other, err);
    for (size_t k = 0; k < count && !st; k++)
        out[k] += c->other[k];
    for (size_t k = 0; s->is_broken && k < count && !st; k++)
        out[k] = from + k == 77 ? 1e30F * 1e30F : out[k];
    return st;
}

static void free_readers(void *ctx, void *scratch)
{
    sum_scratch *c = scratch;
    (void)ctx;
    heft_combine_reader_free(&c->a);
    heft_combine_reader_free(&c->b);
}

static void count_close(void *ctx)
{
    ((sum *)ctx)->closed++;
}

static const heft_combine_ops sum_ops = { .scratch_bytes = sizeof(sum_scratch),
                                          .floats = add,
                                          .free_scratch = free_readers,
                                          .close = count_close };

static bool is_summed(const test_tensor *t)
{
    return t->dtype != HEFT_I64;
}

/* Open the sum of both files. */
static heft_status open_sum(heft_file **out, sum *s, const heft_file *const files[2], bool nan,
                            heft_error *err)
{
    heft_combine_tensor rows[TENSORS] = { { .place = 0 } };
    uint32_t n = 0;
    for (uint32_t i = 0; i < heft_tensor_count(files[0]); i++) {
        heft_tensor t = heft_tensor_at(files[0], i);
        uint32_t other = heft_tensor_find(files[1], t.name);
        if (t.dtype == HEFT_I64)
            continue;
        heft_assert_ok(heft_combine_input_open(&s->a[n], files[0], 1, i, true, err), err);
        heft_assert_ok(heft_combine_input_open(&s->b[n], files[1], 2, other, true, err), err);
        rows[n++] =
            (heft_combine_tensor){ .place = i, .dtype = t.dtype, .rank = t.rank, .dims = t.dims };
    }
    heft_combination c = { .files = files,
                           .file_count = 2,
                           .tensors = rows,
                           .count = n,
                           .label = HEFT_STR("summed tensors"),
                           .allow_nan = nan,
                           .ops = &sum_ops,
                           .ctx = s };
    return heft_combine_open(out, &c, err);
}

static void read_array(heft_array *out, const heft_file *f, const char *name, heft_dtype as)
{
    heft_error err;
    heft_assert_ok(heft_array_read(out, f, heft_str_from(name), as, NULL, 0, &err), &err);
}

static void assert_sum(const heft_file *f, const heft_file *const files[2], const test_tensor *t)
{
    heft_array a, b, got;
    read_array(&a, files[0], t->name, HEFT_F32);
    read_array(&b, files[1], t->name, HEFT_F32);
    read_array(&got, f, t->name, t->dtype);
    size_t n = (size_t)(a.bytes / sizeof(float));
    float *sums = malloc((size_t)a.bytes + 1);
    uint8_t *expected = malloc((size_t)a.bytes + 1);
    for (size_t i = 0; i < n; i++)
        sums[i] = ((const float *)a.data)[i] + ((const float *)b.data)[i];
    assert_true(heft_dtype_cast(expected, t->dtype, sums, HEFT_F32, n));
    assert_int_equal(got.bytes, n * heft_dtype_get(t->dtype)->block_bytes);
    assert_memory_equal(got.data, expected, (size_t)got.bytes);
    free(sums);
    free(expected);
    heft_array_free(&a);
    heft_array_free(&b);
    heft_array_free(&got);
}

/* Any way to cut a tensor gives the same bytes. */
static void assert_cuts(const heft_file *f, const test_tensor *t)
{
    heft_array whole;
    heft_error err;
    uint64_t seed = 3;
    read_array(&whole, f, t->name, t->dtype);
    uint32_t part = heft_part_find(f, heft_tensor_find(f, whole.name), HEFT_STR("data"));
    uint8_t *got = malloc((size_t)whole.bytes + 1);
    for (int i = 0; i < 50 && whole.bytes; i++) {
        uint64_t from = heft_test_random(&seed, (uint32_t)whole.bytes);
        size_t len = heft_test_random(&seed, (uint32_t)(whole.bytes - from) + 1);
        heft_assert_ok(heft_part_read(got, f, part, from, len, &err), &err);
        assert_memory_equal(got, (const uint8_t *)whole.data + from, len);
    }
    free(got);
    heft_array_free(&whole);
}

typedef struct pair {
    heft_bytes bytes[2];
    heft_file *files[2];
} pair;

/* Both files have the same bytes in the tensors; the second is in another format. */
static pair open_pair(const char *first, const char *second)
{
    pair p;
    p.bytes[0] = heft_test_model(first, tensors, TENSORS);
    p.bytes[1] = heft_test_converted("safetensors", tensors, TENSORS, second, NULL);
    for (int i = 0; i < 2; i++)
        p.files[i] = heft_test_opened(p.bytes[i], NULL, true);
    return p;
}

static void close_pair(pair *p)
{
    for (int i = 0; i < 2; i++) {
        heft_file_close(p->files[i]);
        heft_test_free(&p->bytes[i]);
    }
}

static void sum_of_two_files_is_read_in_any_pieces(void **state)
{
    static const char *const formats[][2] = { { "safetensors", "safetensors" },
                                              { "safetensors", "ztensor" } };
    (void)state;
    for (size_t k = 0; k < sizeof formats / sizeof *formats; k++) {
        pair p = open_pair(formats[k][0], formats[k][1]);
        const heft_file *const files[2] = { p.files[0], p.files[1] };
        sum s = { .closed = 0 };
        heft_file *f;
        heft_error err;
        heft_assert_ok(open_sum(&f, &s, files, true, &err), &err);
        assert_int_equal(heft_tensor_count(f), TENSORS);
        for (uint32_t i = 0; i < TENSORS; i++)
            assert_true(heft_tensor_find(f, heft_str_from(tensors[i].name)) ==
                        heft_tensor_find(files[0], heft_str_from(tensors[i].name)));
        for (uint32_t i = 0; i < TENSORS; i++) {
            if (is_summed(&tensors[i]))
                assert_sum(f, files, &tensors[i]);
            assert_cuts(f, &tensors[i]);
        }
        heft_file_close(f);
        assert_int_equal(s.closed, 1);
        close_pair(&p);
    }
}

static void sum_is_converted_on_threads(void **state)
{
    pair p = open_pair("safetensors", "ztensor");
    const heft_file *const files[2] = { p.files[0], p.files[1] };
    heft_bytes written[2];
    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        heft_test_host host;
        heft_write_options write = HEFT_WRITE_OPTIONS_INIT;
        heft_convert_options opt = HEFT_CONVERT_OPTIONS_INIT;
        heft_test_sink sink;
        heft_error err;
        heft_file *f;
        sum s = { .closed = 0 };
        heft_test_host_init(&host, 1 + 7 * i);
        write.host = &host.host;
        opt.write = &write;
        heft_assert_ok(open_sum(&f, &s, files, true, &err), &err);
        heft_assert_ok(heft_file_convert(f, heft_format_find(HEFT_STR("safetensors")),
                                         heft_test_sink_init(&sink, false), &opt, &err),
                       &err);
        heft_bytes bytes = heft_test_sink_bytes(&sink);
        written[i] = heft_test_copy(bytes.p, bytes.len);
        heft_test_sink_free(&sink);
        heft_file_close(f);
    }
    heft_assert_same_bytes(written[0], written[1]);
    heft_test_free(&written[0]);
    heft_test_free(&written[1]);
    close_pair(&p);
}

static void result_that_is_not_finite_is_refused_with_its_element(void **state)
{
    pair p = open_pair("safetensors", "safetensors");
    const heft_file *const files[2] = { p.files[0], p.files[1] };
    sum s = { .is_broken = true };
    heft_file *f;
    heft_array a;
    heft_error err;
    (void)state;
    heft_assert_ok(open_sum(&f, &s, files, false, &err), &err);
    heft_status st = heft_array_read(&a, f, HEFT_STR("a"), HEFT_F32, NULL, 0, &err);
    assert_int_equal(st, HEFT_E_LOSSY);
    assert_true(heft_test_is_rule(&err, "heft/not-finite"));
    heft_file_close(f);
    close_pair(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sum_of_two_files_is_read_in_any_pieces),
        cmocka_unit_test(sum_is_converted_on_threads),
        cmocka_unit_test(result_that_is_not_finite_is_refused_with_its_element),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
