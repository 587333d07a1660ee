/* test_huge_plans.c - plans of files near 2^64 bytes: the plan fails before a byte is written. No
 * data exist: the writer only plans, and the inputs of conversions are fed without data. */
#include "models.h"

static heft_status refuse_write(heft_sink *s, uint64_t off, const void *data, size_t len,
                                heft_error *err)
{
    (void)s, (void)off, (void)data, (void)len;
    *err = (heft_error){ .status = HEFT_E_IO, .message = "a byte was written" };
    return HEFT_E_IO;
}

static heft_status finish(heft_sink *s, heft_error *err)
{
    (void)s, (void)err;
    return HEFT_OK;
}

static void discard(heft_sink *s)
{
    (void)s;
}

static const heft_sink_ops ops = {
    .size = sizeof(heft_sink_ops), .write_at = refuse_write, .finish = finish, .discard = discard
};

/* ---- written --------------------------------------------------------------------------------- */

/* Plan a file with tensors of the given sizes. */
static heft_status plan(const char *format, const uint64_t *bytes, uint32_t count, heft_error *err)
{
    static const char *const names[] = { "a", "b", "c" };
    heft_sink sink = { &ops };
    heft_writer *w;
    uint32_t part;
    heft_assert_ok(heft_writer_open(&w, heft_format_find(format), &sink, NULL, err), err);
    heft_status st = HEFT_OK;
    for (uint32_t i = 0; i < count && !st; i++)
        st = heft_writer_add_dense(&part, w, heft_test_str(names[i]), HEFT_U8, &bytes[i], 1, err);
    if (!st)
        st = heft_writer_begin(w, err);
    heft_writer_discard(w);
    return st;
}

static void no_format_plans_more_than_64_bits(void **state)
{
    static const uint64_t max = UINT64_MAX;
    static const struct {
        uint64_t bytes[3];
        uint32_t count;
    } rows[] = {
        { { max }, 1 },
        { { max - 63 }, 1 },
        { { max / 2 + 1, max / 2 }, 2 },
        { { max / 2, max / 2 + 1 }, 2 },
        { { 1, max - 70 }, 2 },
        { { max - 300, 1 }, 2 },
        { { max / 2, max / 4, max / 4 + 9 }, 3 },
    };
    (void)state;
    for (size_t k = 0; heft_test_writable(k); k++)
        for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
            heft_error err;
            heft_test_poison(&err);
            heft_status st = plan(heft_test_writable(k), rows[i].bytes, rows[i].count, &err);
            assert_int_not_equal(st, HEFT_OK);
            assert_int_not_equal(st, HEFT_E_IO); /* a byte was written */
            heft_assert_error_set(st, &err);
        }
}

static void says_that_the_file_would_be_too_large(void **state)
{
    static const char *const formats[] = { "gguf", "ztensor", "mag", "burnpack" };
    (void)state;
    for (size_t k = 0; k < HEFT_COUNT(formats); k++)
        for (uint64_t less = 0; less < 5000; less = less * 2 + 1) {
            uint64_t bytes[2] = { UINT64_MAX / 2 + 1, UINT64_MAX / 2 - less };
            heft_error err;
            heft_status st = plan(formats[k], bytes, 2, &err);
            if (st != HEFT_E_IO) /* otherwise the header was about to be written */
                heft_assert_fails(st, HEFT_E_LOSSY, &err, "");
        }
}

/* ---- converted ------------------------------------------------------------------------------- */

/* Feed a header of safetensors; `f` has no data. */
static heft_file *fed_file(const char *dtype, const char *shape, uint64_t bytes, char header[300])
{
    heft_error err;
    heft_file *f;
    heft_open_options o = HEFT_OPEN_OPTIONS_INIT;
    int len = snprintf(header + 8, 292,
                       "{\"t\":{\"dtype\":\"%s\",\"shape\":[%s],\"data_offsets\":[0,%llu]}}", dtype,
                       shape, (unsigned long long)bytes);
    memset(header, 0, 8);
    header[0] = (char)len;
    heft_assert_ok(heft_file_begin(&f, 8 + (uint64_t)len + bytes, &o, &err), &err);
    heft_status st;
    while ((st = heft_file_step(f, &err)) == HEFT_AGAIN) {
        const heft_range *needed;
        assert_true(heft_file_needs(f, &needed) > 0);
        assert_true(needed->length <= 70000);
        uint8_t *bytes_needed = calloc(70000, 1); /* zeros after the header */
        for (uint64_t i = 0; i < needed->length && needed->offset + i < 8 + (uint64_t)len; i++)
            bytes_needed[i] = (uint8_t)header[needed->offset + i];
        heft_assert_ok(
            heft_file_feed(f, needed->offset, bytes_needed, (size_t)needed->length, &err), &err);
        free(bytes_needed);
    }
    heft_assert_ok(st, &err);
    return f;
}

static heft_dtype cast_to;
static bool transposes;

static heft_dtype cast(void *ctx, const heft_tensor *t)
{
    (void)ctx, (void)t;
    return cast_to;
}

static bool transpose(void *ctx, const heft_tensor *t)
{
    (void)ctx, (void)t;
    return transposes;
}

static void casts_may_not_exceed_64_bits(void **state)
{
    static const struct {
        const char *dtype, *shape;
        uint64_t bytes;
        heft_dtype to;
        bool transposes;
        heft_status st;
        const char *words;
    } rows[] = {
        { "U8", "2305843009213693951", 2305843009213693951u, HEFT_F64, false, HEFT_E_LOSSY, "" },
        { "U8", "2305843009213693952", 2305843009213693952u, HEFT_F64, false, HEFT_E_LIMIT,
          "as f64 it would take 2^64 bytes or more" },
        { "U8", "4611686018427387904", 4611686018427387904u, HEFT_F32, false, HEFT_E_LIMIT,
          "as f32 it would take 2^64 bytes or more" },
        { "U8", "4611686018427387904", 4611686018427387904u, HEFT_U8, false, HEFT_OK, "" },
        { "U8", "2,1152921504606846976", 2305843009213693952u, HEFT_U8, true, HEFT_OK, "" },
        { "U8", "2,1152921504606846976", 2305843009213693952u, HEFT_F64, true, HEFT_E_LIMIT,
          "as f64" },
    };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        char header[300];
        heft_error err;
        heft_convert_options o = HEFT_CONVERT_OPTIONS_INIT;
        uint64_t planned;
        heft_file *f = fed_file(rows[i].dtype, rows[i].shape, rows[i].bytes, header);
        cast_to = rows[i].to;
        transposes = rows[i].transposes;
        o.cast = cast;
        o.transpose = transpose;
        o.dry_run = true;
        o.no_verify = true;
        o.planned_bytes = &planned;
        heft_status st = heft_file_convert(f, heft_format_find("mag"), NULL, &o, &err);
        heft_assert_status(st, rows[i].st, &err);
        if (st)
            heft_assert_fails(st, rows[i].st, &err, rows[i].words);
        heft_file_close(f);
    }
}

/* The part has fewer than 2^64 bytes, but an array of f64 would have more. */
static void arrays_may_not_exceed_64_bits(void **state)
{
    static const uint64_t elements = UINT64_C(1) << 61;
    char header[300];
    heft_array a;
    heft_error err;
    (void)state;
    heft_file *f = fed_file("U8", "2305843009213693952", elements, header);
    heft_assert_fails(heft_array_read(&a, f, HEFT_STR("t"), HEFT_F64, NULL, 0, &err), HEFT_E_LIMIT,
                      &err, "the size of 2305843009213693952 elements of f64 exceeds 64 bits");
    heft_file_close(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_format_plans_more_than_64_bits),
        cmocka_unit_test(says_that_the_file_would_be_too_large),
        cmocka_unit_test(casts_may_not_exceed_64_bits),
        cmocka_unit_test(arrays_may_not_exceed_64_bits),
    };
    return cmocka_run_group_tests_name("huge_plans", tests, NULL, NULL);
}
