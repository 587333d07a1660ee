/* test_pipelines.c - the components that model_index.json lists, and their models as one. */
#include "heft_test.h"

#include <string.h>

/* ---- model_index.json ----------------------------------------------------------------------- */

static heft_status list(heft_pipeline_component out[HEFT_PIPELINE_COMPONENTS], uint32_t *count,
                        heft_settings **s, const char *text, heft_error *err)
{
    heft_assert_ok(heft_settings_parse_json(s, heft_test_str(text), NULL, err), err);
    heft_test_poison(err);
    return heft_settings_pipeline(out, count, *s, err);
}

static void lists_components(void **state)
{
    static const struct {
        const char *text, *names; /* first letters; a capital has weights */
    } rows[] = {
        { "{}", "" },
        { "{\"a\": [\"l\", \"C\"]}", "" },
        { "{\"_class_name\": 3, \"a\": [\"l\", \"C\"]}", "" },
        { "{\"_class_name\": \"P\", \"a\": [\"l\", \"C\"], \"b\": [null, null], \"c\": false}",
          "A b " },
        { "{\"_class_name\": \"P\", \"a\": [null, \"C\"], \"b\": [\"l\", null], \"c\": [1, 2]}",
          "A " },
        { "{\"_class_name\": \"P\", \"a\": [\"l\"], \"b\": [\"l\", \"C\", \"D\"], \"c\": [[], []],"
          "\"d\": {\"e\": [\"l\", \"C\"]}}",
          "" },
        { "{\"_class_name\": \"P\", \"a\": [\"l\", \"PNDMScheduler\"], \"b\": [\"l\", \"Model\"],"
          "\"c\": [\"l\", \"CLIPTokenizer\"], \"d\": [\"l\", \"T5TokenizerFast\"],"
          "\"e\": [\"l\", \"CLIPImageProcessor\"], \"f\": [\"l\", \"CLIPFeatureExtractor\"],"
          "\"g\": [\"l\", \"SchedulerModel\"]}",
          "a B c d e f G " },
    };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        heft_pipeline_component c[HEFT_PIPELINE_COMPONENTS];
        heft_settings *s;
        heft_error err;
        uint32_t count;
        char names[64] = "";
        heft_assert_ok(list(c, &count, &s, rows[i].text, &err), &err);
        for (uint32_t k = 0; k < count; k++) {
            size_t at = strlen(names);
            names[at] = (char)(c[k].has_weights ? c[k].name.ptr[0] - 32 : c[k].name.ptr[0]);
            names[at + 1] = ' ';
            names[at + 2] = '\0';
            assert_int_equal(c[k].is_present, c[k].class_name.len > 0);
        }
        assert_string_equal(names, rows[i].names);
        heft_settings_close(s);
    }
}

static void refuses_components(void **state)
{
    static const struct {
        const char *name, *words;
    } rows[] = {
        { "..", "not the name of a folder" },       { "a/b", "not the name of a folder" },
        { "a.b", "not the name of a folder" },      { "", "not the name of a folder" },
        { "1a", "not the name of a folder" },       { "a\\u0000", "not the name of a folder" },
        { "a\\u00e9", "not the name of a folder" }, { "twice", "listed twice" }
    };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        heft_pipeline_component c[HEFT_PIPELINE_COMPONENTS];
        heft_settings *s;
        heft_error err;
        uint32_t count;
        char text[256];
        snprintf(text, sizeof text,
                 "{\"twice\": [\"l\", \"C\"], \"%s\": [\"l\", \"C\"], \"_class_name\": \"P\"}",
                 rows[i].name);
        heft_assert_fails(list(c, &count, &s, text, &err), HEFT_E_FORMAT, &err, rows[i].words);
        assert_int_equal(count, 0);
        heft_settings_close(s);
    }
}

static void limits_the_number_of_components(void **state)
{
    (void)state;
    for (uint32_t wanted = HEFT_PIPELINE_COMPONENTS; wanted <= HEFT_PIPELINE_COMPONENTS + 1;
         wanted++) {
        heft_pipeline_component c[HEFT_PIPELINE_COMPONENTS];
        heft_settings *s;
        heft_error err;
        uint32_t count;
        char text[4096] = "{\"_class_name\": \"P\"";
        for (uint32_t i = 0; i < wanted; i++)
            snprintf(text + strlen(text), sizeof text - strlen(text), ", \"c%u\": [\"l\", \"C\"]",
                     i);
        strcat(text, "}");
        bool fits = wanted == HEFT_PIPELINE_COMPONENTS;
        heft_assert_status(list(c, &count, &s, text, &err), fits ? HEFT_OK : HEFT_E_LIMIT, &err);
        assert_int_equal(count, fits ? wanted : 0);
        heft_settings_close(s);
    }
}

/* ---- joining -------------------------------------------------------------------------------- */

static const char weights[] = "\x40\0\0\0\0\0\0\0"
                              "{\"w\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}"
                              "           abcd";

static heft_source *memory_source(const char *text, size_t len)
{
    heft_source *s;
    heft_error err;
    heft_assert_ok(heft_source_open_memory(&s, text, len, &err), &err);
    return s;
}

static heft_file *opened(const char *text, size_t len)
{
    heft_file *f;
    heft_error err;
    heft_assert_ok(heft_file_open_source(&f, memory_source(text, len), NULL, &err), &err);
    return f;
}

static heft_file *model(void)
{
    return opened(weights, sizeof weights - 1);
}

static void joins_components(void **state)
{
    heft_error err, why = { .status = HEFT_E_NOTFOUND, .offset = HEFT_NOWHERE, .message = "gone" };
    heft_pipeline_file files[] = { { HEFT_STR("unet"), model(), NULL },
                                   { HEFT_STR("text"), NULL, &why },
                                   { HEFT_STR("vae"), model(), NULL } };
    const heft_folder_file other = { "other.safetensors", HEFT_FOLDER_ALTERNATIVE };
    const heft_folder folder = { &other, 1, NULL };
    heft_open_options opt = HEFT_OPEN_OPTIONS_INIT;
    heft_file *f;
    uint8_t data[4];
    (void)state;
    opt.folder = &folder;
    heft_assert_ok(
        heft_file_join_pipeline(&f, memory_source("{}", 2), "index.json", files, 3, &opt, &err),
        &err);
    assert_null(files[0].file);
    assert_int_equal(heft_tensor_count(f), 2);
    assert_int_equal(heft_tensor_find(f, HEFT_STR("vae.w")), 1);
    assert_int_equal(heft_tensor_find(f, HEFT_STR("w")), HEFT_NONE);
    uint32_t part = heft_tensor_at(f, 1).first_part;
    assert_int_equal(heft_part_at(f, part).shard, 3);
    heft_assert_ok(heft_part_read(data, f, part, 0, sizeof data, &err), &err);
    assert_memory_equal(data, "abcd", 4);
    assert_memory_equal(heft_file_name(f).ptr, "index.json", 10);
    assert_int_equal(heft_file_size(f), 2);
    assert_int_equal(heft_shard_file_count(f), 3);
    assert_memory_equal(heft_shard_file_at(f, 1).name.ptr, "text", 4);
    assert_int_equal(heft_shard_file_at(f, 1).status, HEFT_E_IO);
    heft_assert_fails(heft_file_is_complete(f, &err), HEFT_E_IO, &err, "component 'text': gone");
    heft_verify_result found;
    heft_assert_ok(heft_file_verify(&found, f, NULL, &err), &err);
    assert_int_equal(found.faults, 1);
    assert_int_equal(found.notes, 1);
    heft_file_close(f);
}

static void note_fnuz(void *ctx, const heft_finding *x)
{
    heft_finding *found = ctx;
    if (!strcmp(x->rule, "safetensors/fnuz"))
        *found = *x;
}

/* The check of a component finds the tensor 1 of the component, the tensor 2 of the model. */
static void findings_name_the_tensors_of_the_model(void **state)
{
    static const char two[] = "\x80\0\0\0\0\0\0\0"
                              "{\"v\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
                              "\"w\":{\"dtype\":\"F8_E4M3FNUZ\",\"shape\":[4],"
                              "\"data_offsets\":[4,8]}}"
                              "              abcdefgh";
    heft_pipeline_file files[] = { { HEFT_STR("unet"), model(), NULL },
                                   { HEFT_STR("vae"), opened(two, sizeof two - 1), NULL } };
    heft_verify_options o = HEFT_VERIFY_OPTIONS_INIT;
    heft_finding found = { .tensor = HEFT_NONE };
    heft_error err;
    heft_file *f;
    (void)state;
    heft_assert_ok(
        heft_file_join_pipeline(&f, memory_source("{}", 2), "index.json", files, 2, NULL, &err),
        &err);
    o.on_finding = note_fnuz;
    o.ctx = &found;
    heft_assert_ok(heft_file_verify(NULL, f, &o, &err), &err);
    assert_int_equal(found.tensor, 2);
    assert_int_equal(found.tensor, heft_tensor_find(f, HEFT_STR("vae.w")));
    assert_int_equal(found.shard, 2);
    heft_file_close(f);
}

static void takes_everything_in_spite_of_errors(void **state)
{
    heft_error err, why = { .status = HEFT_E_UNSUPPORTED, .message = "of ONNX" };
    heft_file *f;
    heft_pipeline_file neither = { HEFT_STR("unet"), NULL, NULL };
    heft_pipeline_file none = { HEFT_STR("unet"), NULL, &why };
    heft_pipeline_file one = { HEFT_STR("unet"), model(), NULL };
    (void)state;
    heft_assert_fails(heft_file_join_pipeline(&f, NULL, "i", &one, 1, NULL, &err), HEFT_E_ARGUMENT,
                      &err, "no source");
    assert_null(one.file);
    heft_assert_fails(
        heft_file_join_pipeline(&f, memory_source("{}", 2), "i", &neither, 1, NULL, &err),
        HEFT_E_ARGUMENT, &err, "neither a file nor an error");
    heft_assert_fails(
        heft_file_join_pipeline(&f, memory_source("{}", 2), "i", &none, 0, NULL, &err),
        HEFT_E_ARGUMENT, &err, "no components");
    heft_assert_fails(
        heft_file_join_pipeline(&f, memory_source("{}", 2), "i", &none, 1, NULL, &err),
        HEFT_E_UNSUPPORTED, &err, "component 'unet': of ONNX");
    assert_null(f);
}

static void runs_out_of_memory(void **state)
{
    (void)state;
    for (uint32_t fail_at = 1, more = 1; more; fail_at++) {
        heft_test_memory m;
        heft_error err, why = { .status = HEFT_E_FORMAT, .message = "no file" };
        heft_open_options opt = HEFT_OPEN_OPTIONS_INIT;
        heft_pipeline_file files[] = { { HEFT_STR("unet"), model(), NULL },
                                       { HEFT_STR("text"), NULL, &why } };
        heft_file *f;
        heft_test_memory_init(&m, fail_at);
        opt.host = &m.host;
        heft_status st = heft_file_join_pipeline(&f, memory_source("{}", 2), "i", files, 2, &opt,
                                                 &err);
        heft_assert_status(st, st ? HEFT_E_NOMEM : HEFT_OK, &err);
        more = st != HEFT_OK;
        heft_file_close(f);
        heft_assert_all_freed(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_components),
        cmocka_unit_test(refuses_components),
        cmocka_unit_test(limits_the_number_of_components),
        cmocka_unit_test(joins_components),
        cmocka_unit_test(findings_name_the_tensors_of_the_model),
        cmocka_unit_test(takes_everything_in_spite_of_errors),
        cmocka_unit_test(runs_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
