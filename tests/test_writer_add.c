/* test_writer_add.c - heft_writer_add_tensor(): layouts, components, attributes, identities. */
#include <heft/params.h>

#include "models.h"

typedef struct fixture {
    heft_test_memory m;
    heft_test_sink sink;
    heft_write_options opt;
    heft_error err;
    heft_writer *w;
    heft_file *file; /* the written file; set by end_writing() */
} fixture;

static void begin(fixture *f, const char *format, const char *version)
{
    memset(f, 0, sizeof *f);
    heft_test_memory_init(&f->m, 0);
    f->opt = (heft_write_options)HEFT_WRITE_OPTIONS_INIT;
    f->opt.host = &f->m.host;
    f->opt.version = version;
    heft_assert_ok(heft_writer_open(&f->w, heft_format_find(heft_str_from(format)),
                                    heft_test_sink_init(&f->sink, false), &f->opt, &f->err),
                   &f->err);
}

static void end_writing(fixture *f)
{
    heft_assert_ok(heft_writer_finish(f->w, &f->err), &f->err);
    heft_assert_ok(heft_test_open(&f->file, heft_test_sink_bytes(&f->sink), NULL, &f->err),
                   &f->err);
}

static void end(fixture *f)
{
    heft_file_close(f->file);
    heft_test_sink_free(&f->sink);
    heft_assert_all_freed(&f->m);
}

static void discard(fixture *f)
{
    heft_writer_discard(f->w);
    assert_true(f->sink.discarded);
    end(f);
}

static const uint64_t two_by_three[] = { 2, 3 };

static heft_tensor_spec spec_of(const char *name, heft_dtype t)
{
    heft_tensor_spec s = HEFT_TENSOR_SPEC_INIT;
    s.name = heft_test_str(name);
    s.dtype = t;
    s.dims = two_by_three;
    s.rank = 2;
    return s;
}

static void add_and_fill(fixture *f, const heft_tensor_spec *s, const void *data, size_t len)
{
    uint32_t part;
    heft_assert_ok(heft_writer_add_tensor(&part, f->w, s, &f->err), &f->err);
    heft_assert_ok(heft_writer_begin(f->w, &f->err), &f->err);
    heft_assert_ok(heft_writer_write(f->w, part, data, len, &f->err), &f->err);
    end_writing(f);
}

/* ---- stored specifications ------------------------------------------------------------------ */

static void dense_spec_equals_add_dense(void **state)
{
    static const float numbers[6] = { 1, 2, 3, 4, 5, 6 };
    const heft_component data[] = { { { "data", 4 }, HEFT_UNTYPED, 0, NULL },
                                    { { "data", 4 }, HEFT_F32, 6, NULL } };
    fixture a, b;
    uint32_t part;
    (void)state;
    begin(&a, "mag", NULL);
    heft_assert_ok(
        heft_writer_add_dense(&part, a.w, heft_test_str("w"), HEFT_F32, two_by_three, 2, &a.err),
        &a.err);
    heft_assert_ok(heft_writer_begin(a.w, &a.err), &a.err);
    heft_assert_ok(heft_writer_write(a.w, part, numbers, sizeof numbers, &a.err), &a.err);
    end_writing(&a);
    for (uint32_t i = 0; i < 3; i++) {
        heft_tensor_spec s = spec_of("w", HEFT_F32);
        s.components = i ? &data[i - 1] : NULL;
        s.component_count = i > 0;
        s.layout = heft_test_str(i ? "dense" : "");
        begin(&b, "mag", NULL);
        add_and_fill(&b, &s, numbers, sizeof numbers);
        heft_assert_same_bytes(heft_test_sink_bytes(&a.sink), heft_test_sink_bytes(&b.sink));
        end(&b);
    }
    end(&a);
}

/* Make a map with a number and an empty list in a list, a text, an array and a bool. Return 7. */
static uint32_t make_attributes(heft_value *v)
{
    static const uint16_t numbers[] = { 7, 8, 9 };
    v[0] = (heft_value){ .kind = HEFT_KIND_MAP, .key = { "map", 3 }, .as.container = { 2, 0 } };
    v[1] = (heft_value){ .kind = HEFT_KIND_LIST, .key = { "list", 4 }, .as.container = { 2, 0 } };
    v[2] = (heft_value){ .kind = HEFT_KIND_INT, .as.i = -5 };
    v[3] = (heft_value){ .kind = HEFT_KIND_LIST, .as.container = { 0, 0 } };
    v[4] = (heft_value){ .kind = HEFT_KIND_STR, .key = { "text", 4 }, .as.s = { "x", 1 } };
    v[5] = (heft_value){ .kind = HEFT_KIND_ARRAY, .key = { "array", 5 } };
    v[5].as.array.ptr = numbers;
    v[5].as.array.count = 3;
    v[5].as.array.dtype = HEFT_U16;
    v[6] = (heft_value){ .kind = HEFT_KIND_BOOL, .key = { "yes", 3 }, .as.b = true };
    return 7;
}

static void stores_nested_attributes(void **state)
{
    fixture f;
    heft_value given[8], got;
    heft_tensor_spec s = spec_of("w", HEFT_U8);
    (void)state;
    begin(&f, "ztensor", "1.2");
    s.attribute_count = make_attributes(given);
    s.attributes = given;
    add_and_fill(&f, &s, "abcdef", 6);
    got = heft_attribute_at(f.file, 0, 0); /* attributes are sorted by key */
    assert_int_equal(got.kind, HEFT_KIND_LIST);
    assert_int_equal(got.as.container.count, 3);
    got = heft_attribute_at(f.file, 0, got.as.container.end);
    assert_int_equal(got.kind, HEFT_KIND_MAP);
    assert_int_equal(got.as.container.count, 2);
    got = heft_attribute_at(f.file, 0, 5);
    assert_int_equal(got.kind, HEFT_KIND_LIST);
    got = heft_attribute_at(f.file, 0, 6);
    assert_int_equal(got.as.i, -5);
    end(&f);
}

static void stores_identities(void **state)
{
    fixture f;
    heft_value v;
    heft_tensor_spec s = spec_of("w", HEFT_F32);
    static const float numbers[6];
    (void)state;
    s.identity = (heft_identity){ .has = HEFT_HAS_PARAM_ID, .param_id = 0 };
    begin(&f, "burnpack", NULL);
    add_and_fill(&f, &s, numbers, sizeof numbers);
    v = heft_attribute_at(f.file, 0, 0);
    assert_memory_equal(v.key.ptr, "burn.param_id", v.key.len);
    assert_int_equal(v.as.u, 0);
    end(&f);
    for (int i = 0; i < 2; i++) {
        s.identity = (heft_identity){ .has = HEFT_HAS_REQUIRES_GRAD, .requires_grad = i };
        begin(&f, "gptrs-archive", NULL);
        add_and_fill(&f, &s, numbers, sizeof numbers);
        v = heft_attribute_at(f.file, 0, 0);
        assert_memory_equal(v.key.ptr, "gptrs.requires_grad", v.key.len);
        assert_int_equal(v.as.b, i);
        end(&f);
    }
}

static void record_loss(void *ctx, heft_severity severity, const char *rule, heft_str tensor,
                        const char *text)
{
    (void)severity;
    (void)tensor;
    snprintf(ctx, 200, "%s: %s", rule, text);
}

static void refuses_a_stored_type_of_another_element_type(void **state)
{
    static const struct {
        const char *stored;
        heft_dtype t;
        const char *loss; /* NULL: the stored type fits */
    } rows[] = {
        { "Flex32", HEFT_F32, NULL },
        { "{\"Bool\":\"Native\"}", HEFT_BOOL, NULL },
        { "{\"Bool\":\"U8\"}", HEFT_BOOL, NULL },
        { "{\"Bool\":\"U32\"}", HEFT_U32, NULL },
        { "Flex32", HEFT_F16, "burnpack/stored-dtype: Burn has no type 'Flex32' over f16" },
        { "{\"Bool\":\"U8\"}", HEFT_U8, "burnpack/stored-dtype: Burn has no type" },
        { "{\"Bool\":\"U32\"}", HEFT_BOOL, "burnpack/stored-dtype: Burn has no type" },
        { "Q8S", HEFT_U8, "burnpack/stored-dtype: Burn has no type" },
    };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        fixture f;
        char loss[200] = "";
        uint32_t part;
        heft_tensor_spec s = spec_of("w", rows[i].t);
        s.stored_type = heft_test_str(rows[i].stored);
        begin(&f, "burnpack", NULL);
        heft_writer_discard(f.w);
        heft_test_sink_free(&f.sink);
        f.opt.on_loss = record_loss;
        f.opt.ctx = loss;
        heft_assert_ok(heft_writer_open(&f.w, heft_format_find(HEFT_STR("burnpack")),
                                        heft_test_sink_init(&f.sink, false), &f.opt, &f.err),
                       &f.err);
        heft_assert_ok(heft_writer_add_tensor(&part, f.w, &s, &f.err), &f.err);
        heft_assert_status(heft_writer_begin(f.w, &f.err), rows[i].loss ? HEFT_E_LOSSY : HEFT_OK,
                           &f.err);
        assert_int_equal(!*loss, !rows[i].loss);
        assert_true(!rows[i].loss || strstr(loss, rows[i].loss));
        discard(&f);
    }
}

static void stores_the_generator(void **state)
{
    fixture f;
    (void)state;
    for (int late = 0; late < 2; late++) {
        begin(&f, "ztensor", "1.0");
        if (late)
            heft_assert_ok(heft_writer_begin(f.w, &f.err), &f.err);
        heft_assert_fails(heft_writer_set_generator(f.w, (heft_str){ "\xff", 1 }, &f.err),
                          HEFT_E_ARGUMENT, &f.err, "not UTF-8");
        heft_assert_ok(heft_writer_set_generator(f.w, heft_test_str("train 1.4"), &f.err), &f.err);
        if (!late)
            heft_assert_ok(heft_writer_begin(f.w, &f.err), &f.err);
        end_writing(&f);
        heft_str g = heft_file_generator(f.file);
        assert_int_equal(g.len, 9);
        assert_memory_equal(g.ptr, "train 1.4", 9);
        end(&f);
    }
    begin(&f, "mag", NULL);
    heft_assert_ok(heft_writer_begin(f.w, &f.err), &f.err);
    heft_assert_fails(heft_writer_set_generator(f.w, heft_test_str("x"), &f.err), HEFT_E_ARGUMENT,
                      &f.err, "the generator comes too late");
    discard(&f);
}

/* ---- refused specifications ----------------------------------------------------------------- */

static void refuses_a_layout_without_components(void **state)
{
    heft_tensor_spec s = spec_of("w", HEFT_F32);
    uint32_t part;
    fixture f;
    (void)state;
    begin(&f, "ztensor", NULL);
    s.layout = heft_test_str("own");
    heft_assert_fails(heft_writer_add_tensor(&part, f.w, &s, &f.err), HEFT_E_ARGUMENT, &f.err,
                      "no components are declared");
    discard(&f);
}

static void refuses_metadata_of_an_unknown_kind(void **state)
{
    heft_value v = { .kind = 99, .key = heft_test_str("k") };
    fixture f;
    (void)state;
    begin(&f, "ztensor", NULL);
    heft_assert_fails(heft_writer_add_meta(f.w, v, &f.err), HEFT_E_ARGUMENT, &f.err,
                      "metadata of an unknown kind");
    discard(&f);
}

/* zTensor 2 has types of its own in the attribute stored_dtype, as "storage:logical". */
static void keeps_a_stored_dtype_without_a_logical_type(void **state)
{
    static const char *const types[] = { "u8", "u8:" };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(types); i++) {
        heft_component c = { HEFT_STR("data"), HEFT_UNTYPED, 6, NULL };
        heft_tensor_spec s = spec_of("w", HEFT_U8);
        heft_value v = { .kind = HEFT_KIND_STR, .key = HEFT_STR("stored_dtype") };
        fixture f;
        begin(&f, "ztensor", "2");
        v.as.s = heft_test_str(types[i]);
        s.layout = heft_test_str("own");
        s.components = &c;
        s.component_count = 1;
        s.attributes = &v;
        s.attribute_count = 1;
        add_and_fill(&f, &s, "abcdef", 6);
        assert_int_equal(heft_part_at(f.file, 0).dtype, HEFT_U8);
        v = heft_attribute_at(f.file, 0, 0);
        assert_memory_equal(v.key.ptr, "stored_dtype", v.key.len);
        assert_int_equal(v.as.s.len, strlen(types[i]));
        assert_memory_equal(v.as.s.ptr, types[i], v.as.s.len);
        end(&f);
    }
}

/* No format has metadata of complex numbers; zTensor stored nulls. */
static void refuses_metadata_of_complex_numbers(void **state)
{
    static const float numbers[] = { 1, 2, 3, 4 };
    heft_value v = { .kind = HEFT_KIND_ARRAY,
                     .key = HEFT_STR("k"),
                     .as.array = { numbers, 2, HEFT_C64 } };
    heft_convert_options opt = HEFT_CONVERT_OPTIONS_INIT;
    heft_tensor_spec s = spec_of("w", HEFT_F32);
    heft_bytes b = heft_test_one("ztensor", 4);
    heft_file *from = heft_test_opened(b, NULL, false);
    uint32_t part;
    fixture f;
    (void)state;
    begin(&f, "ztensor", "1.2");
    heft_assert_fails(heft_writer_add_meta(f.w, v, &f.err), HEFT_E_ARGUMENT, &f.err,
                      "complex numbers");
    s.attributes = &v;
    s.attribute_count = 1;
    heft_assert_fails(heft_writer_add_tensor(&part, f.w, &s, &f.err), HEFT_E_ARGUMENT, &f.err,
                      "complex numbers");
    discard(&f);
    opt.set = &v;
    opt.set_count = 1;
    opt.dry_run = true;
    heft_assert_fails(
        heft_file_convert(from, heft_format_find(HEFT_STR("ztensor")), NULL, &opt, &f.err),
        HEFT_E_ARGUMENT, &f.err, "metadata 'k'");
    v.as.array.dtype = HEFT_F64;
    heft_assert_ok(
        heft_file_convert(from, heft_format_find(HEFT_STR("ztensor")), NULL, &opt, &f.err), &f.err);
    heft_file_close(from);
    heft_test_free(&b);
}

/* zTensor 2 allows names of 1024 bytes. */
static void ztensor_2_stores_no_long_names_of_parts(void **state)
{
    enum { MOST = 1024 };
    static char role[MOST + 1];
    (void)state;
    memset(role, 'r', sizeof role);
    for (size_t len = MOST; len <= MOST + 1; len++) {
        heft_component c = { { role, len }, HEFT_U8, 6, NULL };
        heft_tensor_spec s = spec_of("w", HEFT_U8);
        uint32_t part;
        fixture f;
        begin(&f, "ztensor", "2");
        s.layout = heft_test_str("own");
        s.components = &c;
        s.component_count = 1;
        heft_assert_ok(heft_writer_add_tensor(&part, f.w, &s, &f.err), &f.err);
        heft_assert_status(heft_writer_begin(f.w, &f.err), len > MOST ? HEFT_E_LOSSY : HEFT_OK,
                           &f.err);
        discard(&f);
    }
}

static void refuses_invalid_components(void **state)
{
    static const struct {
        heft_str layout;
        heft_component c[2];
        uint32_t count;
        heft_dtype t;
        const char *words;
    } rows[] = {
        { { "", 0 },
          { { { "x", 1 }, HEFT_F32, 6, NULL } },
          1,
          HEFT_F32,
          "a single component \"data\"" },
        { { "", 0 }, { { { "data", 4 }, HEFT_F32, 5, NULL } }, 1, HEFT_F32, "a single component" },
        { { "", 0 }, { { { "data", 4 }, HEFT_I32, 6, NULL } }, 1, HEFT_F32, "a single component" },
        { { "", 0 },
          { { { "data", 4 }, HEFT_F32, 6, NULL }, { { "x", 1 }, HEFT_F32, 6, NULL } },
          2,
          HEFT_F32,
          "a single component" },
        { { "", 0 }, { { { NULL, 0 }, 0, 0, NULL } }, 0, HEFT_UNTYPED, "unknown element type" },
        { { "own", 3 }, { { { NULL, 0 }, 0, 0, NULL } }, 0, 999, "unknown element type" },
        { { "own", 3 },
          { { { "x", 1 }, 999, 6, NULL } },
          1,
          HEFT_U8,
          "component 'x': there is no" },
        { { "own", 3 }, { { { "", 0 }, 0, 6, NULL } }, 1, HEFT_U8, "is empty or not UTF-8" },
        { { "own", 3 }, { { { "\xff", 1 }, 0, 6, NULL } }, 1, HEFT_U8, "is empty or not UTF-8" },
        { { "\xff", 1 },
          { { { "x", 1 }, 0, 6, NULL } },
          1,
          HEFT_U8,
          "its layout or its stored type" },
        { { "own", 3 },
          { { { "x", 1 }, HEFT_F64, UINT64_MAX, NULL } },
          1,
          HEFT_U8,
          "component 'x': its size in bytes overflows 64 bits" },
        { { "own", 3 },
          { { { "x", 1 }, 0, 6, NULL }, { { "x", 1 }, 0, 6, NULL } },
          2,
          HEFT_U8,
          "component 'x' is declared twice" },
    };
    fixture f;
    uint32_t part;
    (void)state;
    begin(&f, "ztensor", NULL);
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        heft_tensor_spec s = spec_of("w", rows[i].t);
        s.layout = rows[i].layout;
        s.components = rows[i].c;
        s.component_count = rows[i].count;
        heft_assert_fails(heft_writer_add_tensor(&part, f.w, &s, &f.err), HEFT_E_ARGUMENT, &f.err,
                          rows[i].words);
    }
    /* the refused tensors are not in the file */
    heft_assert_ok(heft_writer_begin(f.w, &f.err), &f.err);
    end_writing(&f);
    assert_int_equal(heft_tensor_count(f.file), 0);
    end(&f);
}

static void refuses_invalid_attributes(void **state)
{
    fixture f;
    uint32_t part;
    heft_tensor_spec s = spec_of("w", HEFT_U8);
    const heft_value bad[] = {
        { .kind = HEFT_KIND_MAP, .key = { "m", 1 }, .as.container = { 1, 0 } },
        { .kind = (heft_kind)99, .key = { "k", 1 } },
        { .kind = HEFT_KIND_STR, .key = { "k", 1 }, .as.s = { "\xff", 1 } },
        { .kind = HEFT_KIND_ID128, .key = { "k", 1 }, .as.s = { "short", 5 } },
        { .kind = HEFT_KIND_ARRAY, .key = { "k", 1 } },
    };
    heft_value deep[300];
    (void)state;
    begin(&f, "ztensor", "1.2");
    s.attribute_count = 1;
    for (size_t i = 0; i < HEFT_COUNT(bad); i++) {
        s.attributes = &bad[i];
        heft_assert_fails(heft_writer_add_tensor(&part, f.w, &s, &f.err), HEFT_E_ARGUMENT, &f.err,
                          i ? "unknown kind" : "declares more children");
    }
    heft_value list = { .kind = HEFT_KIND_LIST, .key = { "l", 1 }, .as.container = { 1, 0 } };
    s.attributes = &(heft_value){ .kind = HEFT_KIND_NULL, .key = { "k", 1 } };
    heft_assert_ok(heft_writer_add_meta(f.w, list, &f.err), &f.err);
    heft_assert_fails(heft_writer_add_tensor(&part, f.w, &s, &f.err), HEFT_E_ARGUMENT, &f.err,
                      "metadata is still open");
    heft_assert_ok(heft_writer_end_meta(f.w, &f.err), &f.err);
    for (size_t i = 0; i < HEFT_COUNT(deep); i++)
        deep[i] = list;
    s.attributes = deep;
    s.attribute_count = HEFT_COUNT(deep);
    heft_assert_fails(heft_writer_add_tensor(&part, f.w, &s, &f.err), HEFT_E_LIMIT, &f.err,
                      "nested deeper than 128");
    discard(&f);
}

static void refuses_a_base_id_of_another_name(void **state)
{
    fixture f;
    uint32_t part;
    heft_tensor_spec s = spec_of("w", HEFT_F32);
    (void)state;
    begin(&f, "gptrs-archive", NULL);
    s.identity = (heft_identity){ .has = HEFT_HAS_BASE_ID, .base_id = { { 1 } } };
    heft_assert_fails(heft_writer_add_tensor(&part, f.w, &s, &f.err), HEFT_E_ARGUMENT, &f.err,
                      "its base id does not match its name");
    s.identity = (heft_identity){ .has = 1u << 30 };
    heft_assert_fails(heft_writer_add_tensor(&part, f.w, &s, &f.err), HEFT_E_ARGUMENT, &f.err,
                      "flags unknown to this version");
    s.identity.has = HEFT_HAS_BASE_ID;
    assert_true(heft_param_base_id(&s.identity.base_id, HEFT_STR("w")));
    heft_assert_ok(heft_writer_add_tensor(&part, f.w, &s, &f.err), &f.err);
    memset(&s.identity.base_id, 0, sizeof s.identity.base_id);
    s.name = heft_test_str("v");
    heft_assert_ok(heft_writer_add_tensor(&part, f.w, &s, &f.err), &f.err);
    discard(&f);
}

static void refuses_unsupported_storage(void **state)
{
    static const struct {
        const char *format;
        heft_status st;
        heft_storage storage;
        const char *words;
    } rows[] = {
        { "mag",
          HEFT_E_UNSUPPORTED,
          { .encoding = HEFT_ZSTD },
          "mag does not support compression" },
        { "mag", HEFT_E_UNSUPPORTED, { .digest = "crc32c" }, "mag cannot store a digest" },
        { "ztensor", HEFT_E_UNSUPPORTED, { .digest = "none such" }, "this build cannot compute" },
        { "ztensor", HEFT_E_UNSUPPORTED, { .encoding = HEFT_DEFLATE }, "can only decode deflate" },
        { "ztensor", HEFT_E_ARGUMENT, { .encoding = HEFT_ENCODING_OTHER }, "unknown encoding" },
        { "ztensor", HEFT_E_ARGUMENT, { .reserved = { 1 } }, "heft_storage.reserved is not 0" },
        { "ztensor", HEFT_E_ARGUMENT, { .reserved = { 0, 1 } }, "heft_storage.reserved is not 0" },
    };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++)
        for (int own = 0; own < 2; own++) {
            const heft_component data = { { "data", 4 }, HEFT_UNTYPED, 0, &rows[i].storage };
            fixture f;
            uint32_t part;
            heft_tensor_spec s = spec_of("w", HEFT_F32);
            s.storage = own ? NULL : &rows[i].storage;
            s.components = own ? &data : NULL;
            s.component_count = (uint32_t)own;
            begin(&f, rows[i].format, NULL);
            heft_assert_fails(heft_writer_add_tensor(&part, f.w, &s, &f.err), rows[i].st, &f.err,
                              rows[i].words);
            /* the refused tensor changed nothing */
            heft_assert_ok(heft_writer_begin(f.w, &f.err), &f.err);
            discard(&f);
        }
}

/* The limit for a version is the number of components that the reader accepts. */
static void refuses_too_many_components(void **state)
{
    static const char *const versions[] = { "1.0", "1.2", "2" };
    static heft_component c[1000];
    static char names[1000][8];
    (void)state;
    for (uint32_t i = 0; i < HEFT_COUNT(c); i++) {
        snprintf(names[i], sizeof names[i], "c%u", (unsigned)i);
        c[i] = (heft_component){ heft_test_str(names[i]), HEFT_U8, 0, NULL };
    }
    for (size_t v = 0; v < HEFT_COUNT(versions); v++)
        for (uint32_t count = 256; count <= 1000; count += 744) {
            fixture f;
            uint32_t part;
            heft_tensor_spec s = spec_of("w", HEFT_U8);
            s.layout = heft_test_str("own");
            s.components = c;
            s.component_count = count;
            begin(&f, "ztensor", versions[v]);
            heft_assert_ok(heft_writer_add_tensor(&part, f.w, &s, &f.err), &f.err);
            heft_status st = heft_writer_begin(f.w, &f.err);
            if (st) {
                assert_true(v < 2 && count > 256);
                discard(&f);
                continue;
            }
            end_writing(&f);
            assert_int_equal(heft_tensor_at(f.file, 0).part_count, count);
            end(&f);
        }
}

static void accepts_a_shorter_spec_of_an_older_header(void **state)
{
    fixture f;
    static const float numbers[6];
    heft_tensor_spec s;
    (void)state;
    memset(&s, 0xEE, sizeof s);
    s.size = offsetof(heft_tensor_spec, layout);
    s.name = heft_test_str("w");
    s.dtype = HEFT_F32;
    s.dims = two_by_three;
    s.rank = 2;
    begin(&f, "ztensor", "1.2");
    add_and_fill(&f, &s, numbers, sizeof numbers);
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dense_spec_equals_add_dense),
        cmocka_unit_test(stores_nested_attributes),
        cmocka_unit_test(stores_identities),
        cmocka_unit_test(refuses_a_stored_type_of_another_element_type),
        cmocka_unit_test(stores_the_generator),
        cmocka_unit_test(refuses_a_base_id_of_another_name),
        cmocka_unit_test(refuses_unsupported_storage),
        cmocka_unit_test(refuses_a_layout_without_components),
        cmocka_unit_test(refuses_metadata_of_an_unknown_kind),
        cmocka_unit_test(keeps_a_stored_dtype_without_a_logical_type),
        cmocka_unit_test(refuses_metadata_of_complex_numbers),
        cmocka_unit_test(ztensor_2_stores_no_long_names_of_parts),
        cmocka_unit_test(refuses_invalid_components),
        cmocka_unit_test(refuses_invalid_attributes),
        cmocka_unit_test(refuses_too_many_components),
        cmocka_unit_test(accepts_a_shorter_spec_of_an_older_header),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
