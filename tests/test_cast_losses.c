/* test_cast_losses.c - tests that each value that a cast loses is counted once, with any number of
 * threads, and that strict conversions then leave no output. */
#include "heft_test.h"

/* Elements, enough for the chunks of more than two workers in any type; index of the NaN. */
enum { COUNT = 6000004, NAN_INDEX = 1234567 };

typedef struct fixture {
    heft_test_sink bytes;
    heft_file *in;
} fixture;

/* Make a model with two f32 tensors: "large" contains 100 and one NaN, "small" loses no value. */
static int make_model(void **state)
{
    heft_error err;
    heft_writer *w;
    uint32_t part;
    uint64_t n = COUNT, four = 4;
    fixture *f = calloc(1, sizeof *f);
    float *values = malloc(COUNT * sizeof *values), small[4] = { 1, 2 };
    for (uint32_t i = 0; i < COUNT; i++)
        values[i] = 100;
    memcpy(&values[NAN_INDEX], &(uint32_t){ 0x7FC00000 }, sizeof *values);
    heft_test_le(values, COUNT, sizeof *values);
    heft_test_le(small, HEFT_COUNT(small), sizeof *small);
    heft_sink *sink = heft_test_sink_init(&f->bytes, false);
    heft_assert_ok(
        heft_writer_open(&w, heft_format_find(HEFT_STR("safetensors")), sink, NULL, &err), &err);
    heft_assert_ok(heft_writer_add_dense(&part, w, heft_test_str("large"), HEFT_F32, &n, 1, &err),
                   &err);
    heft_assert_ok(
        heft_writer_add_dense(&part, w, heft_test_str("small"), HEFT_F32, &four, 1, &err), &err);
    heft_assert_ok(heft_writer_begin(w, &err), &err);
    heft_assert_ok(heft_writer_write(w, 0, values, COUNT * sizeof *values, &err), &err);
    heft_assert_ok(heft_writer_write(w, 1, small, sizeof small, &err), &err);
    heft_assert_ok(heft_writer_finish(w, &err), &err);
    heft_assert_ok(heft_test_open(&f->in, heft_test_sink_bytes(&f->bytes), NULL, &err), &err);
    free(values);
    *state = f;
    return 0;
}

static int free_model(void **state)
{
    fixture *f = *state;
    heft_file_close(f->in);
    heft_test_sink_free(&f->bytes);
    free(f);
    return 0;
}

typedef struct reports {
    uint32_t count;
    heft_severity severity;
    char text[256];
    const heft_test_sink *sink;
    bool before_output; /* the loss was reported before a byte was written */
} reports;

static void note_loss(void *ctx, heft_severity severity, const char *rule, heft_str tensor,
                      const char *text)
{
    reports *s = ctx;
    if (strcmp(rule, "heft/cast") != 0)
        return;
    assert_true(tensor.len == 5 && !memcmp(tensor.ptr, "large", 5));
    s->count++;
    s->severity = severity;
    s->before_output = s->sink && !s->sink->len;
    snprintf(s->text, sizeof s->text, "%s", text);
}

typedef struct conversion {
    const char *format;
    heft_dtype to;
    uint32_t threads;
    bool is_stream, strict, dry_run;
    heft_encoding encoding;
} conversion;

static heft_dtype cast(void *ctx, const heft_tensor *t)
{
    (void)t;
    return ((const conversion *)ctx)->to;
}

static heft_status run(const fixture *f, const conversion *options, reports *s,
                       heft_test_sink *sink, heft_error *err)
{
    heft_test_host host;
    heft_write_options write = HEFT_WRITE_OPTIONS_INIT;
    heft_convert_options o = HEFT_CONVERT_OPTIONS_INIT;
    conversion copy = *options;
    heft_test_host_init(&host, options->threads);
    o.write = &write;
    write.host = &host.host;
    write.version = options->encoding ? "1.2" : NULL;
    write.storage.encoding = options->encoding;
    write.strict = options->strict;
    write.on_loss = note_loss;
    write.ctx = s;
    o.cast = cast;
    o.ctx = &copy;
    o.dry_run = options->dry_run;
    s->sink = sink;
    heft_sink *to = heft_test_sink_init(sink, options->is_stream);
    return heft_file_convert(f->in, heft_format_find(heft_str_from(options->format)), to, &o, err);
}

static void each_lost_value_is_counted_once(void **state)
{
    static const struct row {
        conversion options;
        const char *text;
    } rows[] = {
        { { "safetensors", HEFT_F6_E2M3, 1, false, false, false, HEFT_RAW },
          "cast from f32 to f6_e2m3 loses values: 6000003 saturated, 1 NaN to a number" },
        { { "safetensors", HEFT_F6_E2M3, 3, false, false, false, HEFT_RAW },
          "cast from f32 to f6_e2m3 loses values: 6000003 saturated, 1 NaN to a number" },
        { { "safetensors", HEFT_F6_E2M3, 3, true, false, false, HEFT_RAW },
          "cast from f32 to f6_e2m3 loses values: 6000003 saturated, 1 NaN to a number" },
        { { "safetensors", HEFT_F6_E2M3, 3, false, false, true, HEFT_RAW },
          "cast from f32 to f6_e2m3 loses values: 6000003 saturated, 1 NaN to a number" },
        { { "ztensor", HEFT_I8, 3, false, false, false, HEFT_ZSTD },
          "cast from f32 to i8 loses values: 1 NaN to a number" },
        { { "safetensors", HEFT_U8, 2, false, false, false, HEFT_RAW },
          "cast from f32 to u8 loses values: 1 NaN to a number" },
        { { "safetensors", HEFT_BF16, 2, false, false, false, HEFT_RAW }, NULL },
        { { "safetensors", HEFT_F64, 2, false, false, false, HEFT_RAW }, NULL },
    };
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        heft_error err;
        heft_test_sink sink;
        reports s = { 0 };
        heft_assert_ok(run(*state, &rows[i].options, &s, &sink, &err), &err);
        heft_test_sink_free(&sink);
        assert_int_equal(s.count, rows[i].text != NULL);
        if (!rows[i].text)
            continue;
        assert_int_equal(s.severity, HEFT_WARNING);
        assert_string_equal(s.text, rows[i].text);
    }
}

static void strict_conversions_leave_no_output(void **state)
{
    static const conversion conversions[] = {
        { "safetensors", HEFT_F6_E2M3, 2, false, true, false, HEFT_RAW },
        { "safetensors", HEFT_F6_E2M3, 2, true, true, false, HEFT_RAW },
        { "safetensors", HEFT_F6_E2M3, 2, false, true, true, HEFT_RAW },
        { "ztensor", HEFT_I8, 2, false, true, false, HEFT_ZSTD },
    };
    for (size_t i = 0; i < HEFT_COUNT(conversions); i++) {
        heft_error err;
        heft_test_sink sink;
        reports s = { 0 };
        heft_assert_fails(run(*state, &conversions[i], &s, &sink, &err), HEFT_E_LOSSY, &err,
                          "1 tensor loses values by a cast");
        assert_true(sink.discarded);
        assert_false(sink.finished);
        assert_int_equal(s.count, 1);
        assert_int_equal(s.severity, HEFT_FAULT);
        assert_true(s.before_output || !conversions[i].is_stream);
        assert_true(sink.len == 0 || !conversions[i].is_stream);
        heft_test_sink_free(&sink);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_lost_value_is_counted_once),
        cmocka_unit_test(strict_conversions_leave_no_output),
    };
    return cmocka_run_group_tests_name("cast_losses", tests, make_model, free_model);
}
