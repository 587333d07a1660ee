/* test_split.c - splitting a model: number of plans, sizes of shards, losses, cancelling. */
#include "models.h"

#include "format/format.h"

enum { LIMIT = 20000 };

/* ---- a format that counts planned tensors --------------------------------------------------- */

static uint64_t planned_tensors, plans;

static heft_status counting_plan(heft_plan *p)
{
    planned_tensors += heft_ix_tensors(p->x);
    plans++;
    return heft_registry_writer(heft_format_find(HEFT_STR("safetensors")))->plan(p);
}

static heft_format counting_format(void)
{
    static heft_format_writer writer;
    heft_format f = *heft_format_find(HEFT_STR("safetensors"));
    writer = *heft_registry_writer(heft_format_find(HEFT_STR("safetensors")));
    writer.plan = counting_plan;
    f.writer = &writer;
    planned_tensors = plans = 0;
    return f;
}

/* ---- models --------------------------------------------------------------------------------- */

typedef struct sample { /* n tensors of bytes; size() returns the size of tensor i */
    const char *name;
    uint32_t n;
    bool has_long_names;
    uint32_t (*size)(uint32_t i);
} sample;

static uint32_t small(uint32_t i)
{
    (void)i;
    return 64;
}

static uint32_t empty(uint32_t i)
{
    (void)i;
    return 0;
}

static uint32_t large_at_the_end(uint32_t i)
{
    return i < 2500 ? 0 : LIMIT + 1;
}

static uint32_t every_hundredth_large(uint32_t i)
{
    return i % 100 ? 1 : LIMIT - 200;
}

static uint32_t large_at_both_ends(uint32_t i)
{
    return i == 0 || i > 120 ? 3000 : 0;
}

static uint32_t random_size(uint32_t i)
{
    uint64_t state = i;
    uint32_t magnitude = heft_test_random(&state, 14);
    return heft_test_random(&state, 1u << magnitude);
}

static const sample samples[] = {
    { "small ones", 3000, false, small },
    { "nothing but headers", 3000, false, empty },
    { "long names", 1000, true, empty },
    { "too large ones at last", 2600, false, large_at_the_end },
    { "large ones among small ones", 3000, false, every_hundredth_large },
    { "ones of any size", 3000, false, random_size },
    { "large ones at both ends", 123, false, large_at_both_ends },
};

typedef struct model {
    heft_file *f;
    heft_test_sink bytes;
} model;

static void make_model(model *m, const sample *of)
{
    heft_error err;
    heft_writer *w;
    heft_sink *sink = heft_test_sink_init(&m->bytes, false);
    uint8_t *zeros = calloc(1, LIMIT + 1);
    char name[512];
    uint32_t part;
    heft_assert_ok(
        heft_writer_open(&w, heft_format_find(HEFT_STR("safetensors")), sink, NULL, &err), &err);
    for (uint32_t i = 0; i < of->n; i++) {
        uint64_t size = of->size(i);
        snprintf(name, sizeof name, "%0*u", of->has_long_names ? 300 : 6, i);
        heft_assert_ok(
            heft_writer_add_dense(&part, w, heft_test_str(name), HEFT_U8, &size, 1, &err), &err);
    }
    heft_assert_ok(heft_writer_begin(w, &err), &err);
    for (uint32_t i = 0; i < of->n; i++)
        heft_assert_ok(heft_writer_write(w, i, zeros, of->size(i), &err), &err);
    heft_assert_ok(heft_writer_finish(w, &err), &err);
    heft_assert_ok(heft_test_open(&m->f, heft_test_sink_bytes(&m->bytes), NULL, &err), &err);
    free(zeros);
}

static void free_model(model *m)
{
    heft_file_close(m->f);
    heft_test_sink_free(&m->bytes);
}

/* ---- sinks that record the size only -------------------------------------------------------- */

enum { MAX_FILES = 4096 };

typedef struct counted_sink {
    heft_sink base;
    uint64_t *size;
} counted_sink;

static uint64_t sizes[MAX_FILES + 1];
static uint32_t files;

static heft_status count_bytes(heft_sink *s, uint64_t offset, const void *data, size_t len,
                               heft_error *err)
{
    uint64_t *size = ((counted_sink *)s)->size;
    (void)data;
    (void)err;
    *size = offset + len > *size ? offset + len : *size;
    return HEFT_OK;
}

static void discard(heft_sink *s)
{
    free(s);
}

static heft_status finish(heft_sink *s, heft_error *err)
{
    (void)err;
    free(s);
    return HEFT_OK;
}

static heft_status open_counted(heft_sink **out, void *ctx, const char *name, heft_error *err)
{
    static const heft_sink_ops ops = {
        .size = sizeof(heft_sink_ops), .write_at = count_bytes, .finish = finish, .discard = discard
    };
    counted_sink *s = calloc(1, sizeof *s);
    (void)ctx;
    (void)name;
    (void)err;
    assert_true(files <= MAX_FILES);
    s->base.ops = &ops;
    s->size = &sizes[files++];
    *out = &s->base;
    return HEFT_OK;
}

static heft_split_options options_of(uint64_t max_bytes)
{
    heft_split_options opt = HEFT_SPLIT_OPTIONS_INIT;
    memset(sizes, 0, sizeof sizes);
    files = 0;
    opt.open = open_counted;
    opt.max_bytes = max_bytes;
    return opt;
}

/* ---- tests ---------------------------------------------------------------------------------- */

static uint32_t log2_of(uint64_t n)
{
    uint32_t log = 0;
    for (; n > 1; n /= 2)
        log++;
    return log + 1;
}

/* Planned tensors stay below 2 n log2(n): one survey, one plan to write, and the trials. */
static void plans_at_most_2_n_log_n_tensors(void **state)
{
    static const uint64_t limits[] = { 1000, LIMIT, 100 * LIMIT, 1u << 30 };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(samples); i++) {
        model m;
        make_model(&m, &samples[i]);
        for (size_t k = 0; k < HEFT_COUNT(limits); k++) {
            heft_error err;
            heft_format counting = counting_format();
            heft_split_options opt = options_of(limits[k]);
            heft_assert_ok(heft_file_split(m.f, &counting, &opt, &err), &err);
            uint64_t max_tensors = 2 * (uint64_t)samples[i].n * log2_of(samples[i].n);
            if (planned_tensors > max_tensors)
                fail_msg("%s in files of %llu bytes: %llu tensors were planned, more than %llu",
                         samples[i].name, (unsigned long long)limits[k],
                         (unsigned long long)planned_tensors, (unsigned long long)max_tensors);
        }
        free_model(&m);
    }
}

static void plans_equal_tensors_few_times(void **state)
{
    heft_error err;
    model m;
    (void)state;
    make_model(&m, &samples[0]);
    heft_format counting = counting_format();
    heft_split_options opt = options_of(LIMIT);
    heft_assert_ok(heft_file_split(m.f, &counting, &opt, &err), &err);
    assert_true(plans <= 6 * (uint64_t)files);
    assert_true(planned_tensors <= 6 * (uint64_t)samples[0].n);
    free_model(&m);
}

static void fills_shards_with_small_tensors(void **state)
{
    heft_error err;
    model m;
    heft_split_options opt = options_of(200000);
    (void)state;
    make_model(&m, &samples[0]);
    heft_assert_ok(heft_file_split(m.f, heft_format_find(HEFT_STR("safetensors")), &opt, &err),
                   &err);
    assert_int_equal(files, 2 + 1); /* two shards and the index */
    assert_in_range(sizes[0], 200000 - 200, 200000);
    free_model(&m);
}

/* Three shards suffice for the data, but not for data and headers. */
static void obeys_the_size_limit_with_a_count(void **state)
{
    heft_error err;
    model m;
    heft_split_options opt = options_of(10000);
    (void)state;
    make_model(&m, &samples[6]);
    opt.count = 3;
    heft_assert_ok(heft_file_split(m.f, heft_format_find(HEFT_STR("safetensors")), &opt, &err),
                   &err);
    assert_in_range(files, 3 + 1, 4 + 1);
    for (uint32_t i = 0; i + 1 < files; i++)
        assert_in_range(sizes[i], 0, opt.max_bytes);
    free_model(&m);
}

/* ---- losses --------------------------------------------------------------------------------- */

typedef struct losses {
    uint32_t count;
    heft_severity severity;
    char name[64], text[256];
} losses;

static void note_loss(void *ctx, heft_severity severity, const char *rule, heft_str tensor,
                      const char *text)
{
    losses *s = ctx;
    assert_string_equal(rule, "heft/shard-size");
    s->count++;
    s->severity = severity;
    snprintf(s->name, sizeof s->name, "%.*s", (int)tensor.len, tensor.ptr);
    snprintf(s->text, sizeof s->text, "%s", text);
}

static void reports_tensors_beyond_the_size_limit(void **state)
{
    heft_error err;
    model m;
    (void)state;
    make_model(&m, &samples[3]);
    char text[256];
    for (int strict = 0; strict < 2; strict++) {
        losses s = { 0 };
        heft_write_options write = HEFT_WRITE_OPTIONS_INIT;
        heft_convert_options convert = HEFT_CONVERT_OPTIONS_INIT;
        heft_split_options opt = options_of(LIMIT);
        opt.convert = &convert;
        convert.write = &write;
        write.on_loss = note_loss;
        write.ctx = &s;
        write.strict = strict;
        heft_status st = heft_file_split(m.f, heft_format_find(HEFT_STR("safetensors")), &opt,
                                         &err);
        heft_assert_status(st, strict ? HEFT_E_LOSSY : HEFT_OK, &err);
        assert_int_equal(s.count, 100);
        assert_int_equal(s.severity, strict ? HEFT_FAULT : HEFT_WARNING);
        assert_string_equal(s.name, "002599");
        if (!strict) /* the last file is the index */
            snprintf(text, sizeof text,
                     "the tensor needs a shard of %llu bytes, more than --max-size %d",
                     (unsigned long long)sizes[files - 2], LIMIT);
        assert_string_equal(s.text, text);
        assert_int_equal(files != 0, !strict);
    }
    free_model(&m);
}

/* ---- cancelling ----------------------------------------------------------------------------- */

typedef struct progress {
    uint32_t calls, max_calls; /* cancels after max_calls */
    bool moves;                /* bytes were copied */
} progress;

static bool count_calls(void *ctx, uint64_t done, uint64_t total)
{
    progress *p = ctx;
    assert_true(done <= total);
    p->moves |= done != 0;
    return ++p->calls <= p->max_calls;
}

static void cancels_planning(void **state)
{
    heft_error err;
    model m;
    (void)state;
    make_model(&m, &samples[0]);
    for (uint32_t max_calls = 0; max_calls < 20; max_calls++) {
        progress p = { .max_calls = max_calls };
        heft_convert_options convert = HEFT_CONVERT_OPTIONS_INIT;
        heft_split_options opt = options_of(LIMIT);
        opt.convert = &convert;
        convert.progress = count_calls;
        convert.ctx = &p;
        heft_assert_status(
            heft_file_split(m.f, heft_format_find(HEFT_STR("safetensors")), &opt, &err),
            HEFT_E_CANCELLED, &err);
        assert_int_equal(files, 0);
        assert_false(p.moves);
        assert_int_equal(p.calls, max_calls + 1);
    }
    free_model(&m);
}

/* zTensor stores equal parts once, so parts are compared before planning. */
static void cancels_comparing(void **state)
{
    heft_error err;
    model m;
    progress p = { .max_calls = 0 };
    heft_convert_options convert = HEFT_CONVERT_OPTIONS_INIT;
    heft_split_options opt = options_of(LIMIT);
    (void)state;
    make_model(&m, &samples[0]);
    opt.convert = &convert;
    convert.progress = count_calls;
    convert.ctx = &p;
    heft_assert_status(heft_file_split(m.f, heft_format_find(HEFT_STR("ztensor")), &opt, &err),
                       HEFT_E_CANCELLED, &err);
    assert_int_equal(p.calls, 1);
    assert_int_equal(files, 0);
    free_model(&m);
}

/* GGUF aligns every tensor to 32 bytes; the padding does not count as progress. */
static void reports_no_more_progress_than_the_total(void **state)
{
    heft_error err;
    heft_file *f;
    heft_bytes b = heft_test_many("safetensors", 100);
    progress p = { .max_calls = UINT32_MAX };
    heft_convert_options convert = HEFT_CONVERT_OPTIONS_INIT;
    heft_split_options opt = options_of(LIMIT);
    (void)state;
    opt.convert = &convert;
    convert.progress = count_calls; /* asserts done <= total */
    convert.ctx = &p;
    heft_assert_ok(heft_test_open(&f, b, NULL, &err), &err);
    heft_assert_ok(heft_file_split(f, heft_format_find(HEFT_STR("gguf")), &opt, &err), &err);
    assert_true(p.moves);
    heft_file_close(f);
    heft_test_free(&b);
}

static heft_status refuse_to_open(heft_sink **out, void *ctx, const char *name, heft_error *err)
{
    (void)ctx, (void)name;
    *out = NULL;
    *err = (heft_error){ .status = HEFT_E_IO, .message = "the first shard is opened" };
    return HEFT_E_IO;
}

static void refuses_wrong_options(void **state)
{
    static const struct {
        const char *format, *stem;
        uint64_t max_bytes;
        uint32_t count;
        heft_status st;
        const char *words;
    } rows[] = {
        { "safetensors", "m", 0, 2, HEFT_E_IO, "the first shard is opened" },
        { "safetensors", "a.b", 100, 0, HEFT_E_IO, "the first shard is opened" },
        { "safetensors", NULL, 0, 2, HEFT_E_ARGUMENT, "cannot begin a file name" },
        { "safetensors", "", 0, 2, HEFT_E_ARGUMENT, "cannot begin a file name" },
        { "safetensors", "a/b", 0, 2, HEFT_E_ARGUMENT, "cannot begin a file name" },
        { "safetensors", "a\\b", 0, 2, HEFT_E_ARGUMENT, "cannot begin a file name" },
        { "safetensors", "/", 0, 2, HEFT_E_ARGUMENT, "cannot begin a file name" },
        { "safetensors", ".a", 0, 2, HEFT_E_ARGUMENT, "cannot begin a file name" },
        { "safetensors", "\xFF", 0, 2, HEFT_E_ARGUMENT, "cannot begin a file name" },
        { "safetensors", "m", 0, 0, HEFT_E_ARGUMENT, "neither a size limit nor a number" },
        { "safetensors", "m", 0, 3, HEFT_E_IO, "the first shard is opened" },
        { "safetensors", "m", 0, 4, HEFT_E_ARGUMENT, "" },
        { "mag", "m", 0, 2, HEFT_E_UNSUPPORTED, "mag does not support splitting" },
    };
    heft_bytes b = heft_test_many("safetensors", 3);
    heft_error err;
    heft_file *f;
    (void)state;
    heft_assert_ok(heft_test_open(&f, b, NULL, &err), &err);
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        heft_split_options o = HEFT_SPLIT_OPTIONS_INIT;
        o.stem = rows[i].stem;
        o.max_bytes = rows[i].max_bytes;
        o.count = rows[i].count;
        o.open = refuse_to_open;
        heft_status st = heft_file_split(f, heft_format_find(heft_str_from(rows[i].format)), &o,
                                         &err);
        heft_assert_fails(st, rows[i].st, &err, rows[i].words);
    }
    heft_file_close(f);
    heft_test_free(&b);
}

/* An index would name no shard. */
static void refuses_an_empty_model(void **state)
{
    static const sample nothing = { "nothing", 0, false, empty };
    heft_split_options o = HEFT_SPLIT_OPTIONS_INIT;
    heft_error err;
    model m;
    (void)state;
    o.count = 1;
    o.open = refuse_to_open;
    make_model(&m, &nothing);
    heft_status st = heft_file_split(m.f, heft_format_find(HEFT_STR("safetensors")), &o, &err);
    heft_assert_fails(st, HEFT_E_UNSUPPORTED, &err, "without tensors");
    free_model(&m);
}

static void only_an_index_of_shards_can_be_right(void **state)
{
    static const char *const names[] = { "a.safetensors" };
    static const sample nothing = { "nothing", 0, false, empty };
    bool is_right = true;
    heft_error err;
    model m;
    (void)state;
    make_model(&m, &nothing);
    const heft_file *const shards[] = { m.f };
    heft_status st = heft_index_is_right(&is_right, m.f, shards, names, 1, &err);
    heft_assert_fails(st, HEFT_E_ARGUMENT, &err, "is no index of shards");
    assert_false(is_right);
    free_model(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_at_most_2_n_log_n_tensors),
        cmocka_unit_test(plans_equal_tensors_few_times),
        cmocka_unit_test(fills_shards_with_small_tensors),
        cmocka_unit_test(obeys_the_size_limit_with_a_count),
        cmocka_unit_test(reports_tensors_beyond_the_size_limit),
        cmocka_unit_test(cancels_planning),
        cmocka_unit_test(cancels_comparing),
        cmocka_unit_test(reports_no_more_progress_than_the_total),
        cmocka_unit_test(refuses_wrong_options),
        cmocka_unit_test(refuses_an_empty_model),
        cmocka_unit_test(only_an_index_of_shards_can_be_right),
    };
    return cmocka_run_group_tests_name("split", tests, NULL, NULL);
}
