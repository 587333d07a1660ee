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
    heft_assert_ok(heft_writer_open(&w, heft_format_find(heft_str_from(format)), &sink, NULL, err),
                   err);
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

/* Indices of a byte become indices of eight bytes. */
static void wider_indices_may_not_exceed_64_bits(void **state)
{
    static const char *const versions[] = { "1.0", "1.2" };
    const uint64_t count = UINT64_C(1) << 61, shape = UINT64_C(1) << 62;
    const heft_component parts[] = {
        { .role = HEFT_STR("values"), .dtype = HEFT_U8, .count = count },
        { .role = HEFT_STR("coords"), .dtype = HEFT_U8, .count = count }
    };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(versions); i++) {
        heft_tensor_spec t = HEFT_TENSOR_SPEC_INIT;
        heft_write_options opt = HEFT_WRITE_OPTIONS_INIT;
        heft_sink sink = { &ops };
        heft_writer *w;
        heft_error err;
        uint32_t part;
        opt.version = versions[i];
        t.name = HEFT_STR("t");
        t.dtype = HEFT_U8;
        t.rank = 1;
        t.dims = &shape;
        t.layout = HEFT_STR("sparse_coo");
        t.components = parts;
        t.component_count = HEFT_COUNT(parts);
        heft_assert_ok(
            heft_writer_open(&w, heft_format_find(HEFT_STR("ztensor")), &sink, &opt, &err), &err);
        heft_assert_ok(heft_writer_add_tensor(&part, w, &t, &err), &err);
        heft_assert_fails(heft_writer_begin(w, &err), HEFT_E_LOSSY, &err,
                          "file would exceed 2^64 bytes");
        heft_writer_discard(w);
    }
}

/* ---- converted ------------------------------------------------------------------------------- */

/* Feed a header of safetensors, kept in `header`; the file has no data. */
static heft_file *fed_file(const char *text, uint64_t bytes, char *header)
{
    heft_error err;
    heft_file *f;
    heft_open_options o = HEFT_OPEN_OPTIONS_INIT;
    size_t len = strlen(text);
    heft_test_put(header, len, 8);
    memcpy(header + 8, text, len);
    heft_assert_ok(heft_file_begin(&f, 8 + len + bytes, &o, &err), &err);
    heft_status st;
    while ((st = heft_file_step(f, &err)) == HEFT_AGAIN) {
        const heft_range *needed;
        assert_true(heft_file_needs(f, &needed) > 0);
        assert_true(needed->length <= 70000);
        uint8_t *bytes_needed = calloc(70000, 1); /* zeros after the header */
        for (uint64_t i = 0; i < needed->length && needed->offset + i < 8 + len; i++)
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
        char text[292], header[300];
        heft_error err;
        heft_convert_options o = HEFT_CONVERT_OPTIONS_INIT;
        uint64_t planned;
        snprintf(text, sizeof text,
                 "{\"t\":{\"dtype\":\"%s\",\"shape\":[%s],\"data_offsets\":[0,%llu]}}",
                 rows[i].dtype, rows[i].shape, (unsigned long long)rows[i].bytes);
        heft_file *f = fed_file(text, rows[i].bytes, header);
        cast_to = rows[i].to;
        transposes = rows[i].transposes;
        o.cast = cast;
        o.transpose = transpose;
        o.dry_run = true;
        o.no_verify = true;
        o.planned_bytes = &planned;
        heft_status st = heft_file_convert(f, heft_format_find(HEFT_STR("mag")), NULL, &o, &err);
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
    static const char text[] = "{\"t\":{\"dtype\":\"U8\",\"shape\":[2305843009213693952],"
                               "\"data_offsets\":[0,2305843009213693952]}}";
    char header[sizeof text + 8];
    heft_array a;
    heft_error err;
    (void)state;
    heft_file *f = fed_file(text, elements, header);
    heft_assert_fails(heft_array_read(&a, f, HEFT_STR("t"), HEFT_F64, NULL, 0, &err), HEFT_E_LIMIT,
                      &err, "the size of 2305843009213693952 elements of f64 exceeds 64 bits");
    heft_file_close(f);
}

/* ---- the last size that fits ----------------------------------------------------------------- */

/* Plan a file with tensors of 2^64 - 4 * less bytes; no dimension exceeds 2^31. */
static heft_status plan_nearly_64_bits(const char *format, const char *version, uint64_t less,
                                       uint64_t *planned, heft_error *err)
{
    static const uint64_t big = UINT64_C(1) << 31, small = UINT64_C(1) << 29;
    const uint64_t shapes[][2] = {
        { big, small }, { big, small }, { big, small }, { big, small - 1 }, { big - less, 1 }
    };
    char text[800] = "";
    uint64_t at = 0;
    heft_write_options write = HEFT_WRITE_OPTIONS_INIT;
    heft_convert_options o = HEFT_CONVERT_OPTIONS_INIT;
    for (size_t i = 0; i < HEFT_COUNT(shapes); i++) {
        uint64_t end = at + shapes[i][0] * shapes[i][1];
        snprintf(text + strlen(text), sizeof text - strlen(text),
                 "%c\"%c\":{\"dtype\":\"U8\",\"shape\":[%llu,%llu],\"data_offsets\":[%llu,%llu]}",
                 i ? ',' : '{', (char)('a' + i), (unsigned long long)shapes[i][0],
                 (unsigned long long)shapes[i][1], (unsigned long long)at, (unsigned long long)end);
        at = end;
    }
    strcat(text, "}");
    char header[808];
    heft_file *f = fed_file(text, at, header);
    cast_to = HEFT_F32;
    transposes = false;
    o.cast = cast;
    o.write = &write;
    o.dry_run = true;
    o.no_verify = true;
    o.planned_bytes = planned;
    write.version = version;
    write.allow_loss = true;
    heft_status st = heft_file_convert(f, heft_format_find(heft_str_from(format)), NULL, &o, err);
    heft_file_close(f);
    return st;
}

/* The largest file that fits has the planned size, and four bytes more are refused. */
static void the_last_bytes_may_not_exceed_64_bits(void **state)
{
    static const struct {
        const char *format, *version;
    } rows[] = {
        { "embd", "1.0" },    { "embd", "simple" },    { "ztensor", "1.0" },
        { "ztensor", "1.2" }, { "ztensor", "2" },      { "gguf", "3" },
        { "mag", "1" },       { "mag", "100" },        { "mag", "snapshot" },
        { "burnpack", NULL }, { "safetensors", NULL }, { "gptrs-archive", NULL },
    };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        uint64_t refused = 0, fits = UINT64_C(1) << 24, planned = 0;
        heft_error err;
        if (rows[i].version && !strcmp(rows[i].version, "2") && heft_test_lacks_libraries())
            continue;
        while (fits - refused > 1) {
            uint64_t less = refused + (fits - refused) / 2;
            heft_status st = plan_nearly_64_bits(rows[i].format, rows[i].version, less, &planned,
                                                 &err);
            *(st ? &refused : &fits) = less;
        }
        heft_assert_ok(plan_nearly_64_bits(rows[i].format, rows[i].version, fits, &planned, &err),
                       &err);
        assert_true(planned > 0 - 4 * fits);
        heft_assert_fails(
            plan_nearly_64_bits(rows[i].format, rows[i].version, refused, &planned, &err),
            HEFT_E_LOSSY, &err, "2^64 bytes");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_format_plans_more_than_64_bits),
        cmocka_unit_test(says_that_the_file_would_be_too_large),
        cmocka_unit_test(the_last_bytes_may_not_exceed_64_bits),
        cmocka_unit_test(wider_indices_may_not_exceed_64_bits),
        cmocka_unit_test(casts_may_not_exceed_64_bits),
        cmocka_unit_test(arrays_may_not_exceed_64_bits),
    };
    return cmocka_run_group_tests_name("huge_plans", tests, NULL, NULL);
}
