/* test_profile.c - the findings of profiles, word for word. */
#include "heft_test.h"

enum { MAX_RANK = 9, TEXT = 4096 };

typedef struct model_tensor {
    const char *name;
    heft_dtype dtype;
    uint32_t rank;
    uint64_t dims[MAX_RANK];
} model_tensor;

static const model_tensor tensors[] = {
    { "a", HEFT_F32, 2, { 2, 3 } },
    { "p.b", HEFT_F16, 1, { 4 } },
    { "l.0.w", HEFT_F32, 1, { 2 } },
    { "l.1.v", HEFT_F32, 1, { 2 } },
};
static const model_tensor deep_tensors[] = {
    { "deep", HEFT_F32, 9, { 1, 1, 1, 1, 1, 1, 1, 1, 2 } },
    { "eight", HEFT_F32, 8, { 1, 1, 1, 1, 1, 1, 1, 3 } },
    { "scalar", HEFT_F32, 1, { 1 } },
};

static void add_text(heft_writer *w, const char *key, const char *text)
{
    heft_error err;
    heft_value v = { .key = heft_test_str(key),
                     .kind = HEFT_KIND_STR,
                     .as.s = heft_test_str(text) };
    heft_assert_ok(heft_writer_add_meta(w, v, &err), &err);
}

static void add_integer(heft_writer *w, const char *key, int64_t number)
{
    heft_error err;
    heft_value v = { .key = heft_test_str(key), .kind = HEFT_KIND_INT, .as.i = number };
    heft_assert_ok(heft_writer_add_meta(w, v, &err), &err);
}

static void add_real(heft_writer *w, const char *key, double number)
{
    heft_error err;
    heft_value v = { .key = heft_test_str(key), .kind = HEFT_KIND_FLOAT, .as.f = number };
    heft_assert_ok(heft_writer_add_meta(w, v, &err), &err);
}

static void write_tensors(heft_writer *w, const model_tensor *t, size_t count)
{
    heft_error err;
    uint32_t part;
    static const uint8_t zeros[64];
    for (size_t i = 0; i < count; i++)
        heft_assert_ok(heft_writer_add_dense(&part, w, heft_test_str(t[i].name), t[i].dtype,
                                             t[i].dims, t[i].rank, &err),
                       &err);
    heft_assert_ok(heft_writer_begin(w, &err), &err);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t bytes = t[i].dtype == HEFT_F16 ? 2 : 4;
        for (uint32_t k = 0; k < t[i].rank; k++)
            bytes *= t[i].dims[k];
        heft_assert_ok(heft_writer_write(w, i, zeros, (size_t)bytes, &err), &err);
    }
    heft_assert_ok(heft_writer_finish(w, &err), &err);
}

/* An EMBD file: text as metadata, a vocabulary. */
static heft_file *open_embd(heft_test_sink *sink, bool has_vocab)
{
    heft_error err;
    heft_writer *w;
    heft_vocab *v;
    heft_assert_ok(heft_vocab_parse_lines(&v, heft_test_str("[PAD]\nx\n[UNK]\n"), NULL, &err),
                   &err);
    heft_assert_ok(heft_writer_open(&w, heft_format_find(HEFT_STR("embd")),
                                    heft_test_sink_init(sink, false), NULL, &err),
                   &err);
    add_text(w, "n", "4");
    add_text(w, "kind", "bert");
    add_text(w, "signed", "-4");
    if (has_vocab)
        heft_assert_ok(heft_writer_set_vocab(w, v, &err), &err);
    write_tensors(w, tensors, HEFT_COUNT(tensors));
    heft_vocab_close(v);
    return heft_test_opened(heft_test_sink_bytes(sink), NULL, true);
}

/* A .mag file: numbers as metadata, tensors of many dimensions, no vocabulary. */
static heft_file *open_mag(heft_test_sink *sink)
{
    heft_error err;
    heft_writer *w;
    heft_assert_ok(heft_writer_open(&w, heft_format_find(HEFT_STR("mag")),
                                    heft_test_sink_init(sink, false), NULL, &err),
                   &err);
    add_integer(w, "zero", 0);
    add_integer(w, "n", 4);
    add_integer(w, "negative", -1);
    add_real(w, "real", 4.0);
    write_tensors(w, deep_tensors, HEFT_COUNT(deep_tensors));
    return heft_test_opened(heft_test_sink_bytes(sink), NULL, true);
}

typedef struct findings {
    const heft_file *f;
    char text[TEXT];
} findings;

static void append_finding(void *ctx, const heft_finding *finding)
{
    findings *all = ctx;
    heft_str name = { "", 0 };
    size_t len = strlen(all->text);
    if (finding->tensor != HEFT_NONE)
        name = heft_tensor_at(all->f, finding->tensor).name;
    snprintf(all->text + len, TEXT - len, "%s%s %.*s: %s\n",
             finding->severity == HEFT_FAULT ? "" : "warning ", finding->rule, (int)name.len,
             name.ptr, finding->text);
}

typedef struct row {
    const char *profile, *findings;
} row;

static void check_rows(const heft_file *f, const row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        heft_error err;
        heft_profile *p;
        findings all = { .f = f };
        heft_verify_result result = { .notes = 0 }, unheard = { .notes = 0 };
        heft_assert_ok(heft_profile_parse_json(&p, heft_test_str(rows[i].profile), NULL, &err),
                       &err);
        heft_assert_ok(heft_profile_check(&result, p, f, append_finding, &all, &err), &err);
        if (strcmp(all.text, rows[i].findings) != 0)
            fail_msg("%s\n%s", rows[i].profile, all.text);
        heft_assert_ok(heft_profile_check(&unheard, p, f, NULL, NULL, &err), &err);
        heft_assert_ok(heft_profile_check(NULL, p, f, NULL, NULL, &err), &err);
        uint32_t lines = 0, warnings = 0;
        for (const char *at = all.text; *at; at = strchr(at, '\n') + 1, lines++)
            warnings += !strncmp(at, "warning ", 8);
        assert_int_equal(result.warnings, warnings);
        assert_int_equal(result.faults + result.warnings, lines);
        assert_int_equal(unheard.faults, result.faults);
        assert_int_equal(unheard.warnings, result.warnings);
        heft_profile_close(p);
    }
}

static const row embd_rows[] = {
    { "{}", "" },
    /* metadata: present, text, a number or an expression, optional */
    { "{\"metadata\": {\"n\": true, \"kind\": \"bert\"}, \"optional_metadata\": [\"n\"]}", "" },
    { "{\"sizes\": {\"k\": 2}, \"metadata\": {\"n\": 4}}", "" },
    { "{\"metadata\": {\"n\": 5}}", "profile/metadata-value : metadata 'n' is '4', not '5'\n" },
    { "{\"metadata\": {\"n\": \"5\"}}", "profile/metadata-value : metadata 'n' is '4', not '5'\n" },
    { "{\"metadata\": {\"signed\": 4}}",
      "profile/metadata-value : metadata 'signed' is '-4', not '4'\n" },
    { "{\"metadata\": {\"kind\": 4}}",
      "profile/metadata-value : metadata 'kind' is 'bert', not '4'\n" },
    { "{\"metadata\": {\"n\": 4.5}}", "profile/metadata-value : metadata 'n' is '4', not '4.5'\n" },
    { "{\"metadata\": {\"x\": true}}",
      "profile/metadata : metadata 'x' is missing (heft edit --set 'x'=VALUE adds it)\n" },
    { "{\"optional_metadata\": [\"x\"]}",
      "warning profile/metadata : metadata 'x' is missing (heft edit --set 'x'=VALUE adds it)\n" },
    { "{\"complete_in\": [\"gguf *\"], \"metadata\": {\"x\": true}, \"optional_metadata\": "
      "[\"y\"]}",
      "warning profile/metadata : metadata 'x' is missing\n"
      "warning profile/metadata : metadata 'y' is missing\n" },
    { "{\"complete_in\": [\"gguf *\", \"embd *\"], \"metadata\": {\"x\": true}}",
      "profile/metadata : metadata 'x' is missing (heft edit --set 'x'=VALUE adds it)\n" },
    { "{\"complete_in\": [\"embd *\", \"gguf *\"], \"metadata\": {\"x\": true}}",
      "profile/metadata : metadata 'x' is missing (heft edit --set 'x'=VALUE adds it)\n" },
    /* the vocabulary */
    { "{\"vocabulary\": {\"tokens\": \"n-1\", \"special\": {\"pad\": 0, \"unk\": \"2\"}}}", "" },
    { "{\"vocabulary\": {\"tokens\": 4}}",
      "profile/vocabulary : the vocabulary has 3 tokens, not 4\n" },
    { "{\"vocabulary\": {\"tokens\": \"m\"}}",
      "profile/vocabulary : vocabulary: 'm' has no value\n" },
    { "{\"vocabulary\": {\"special\": {\"unk\": 1}}}",
      "profile/special : special token unk has the id 2, not 1\n" },
    { "{\"vocabulary\": {\"special\": {\"mask\": 1}}}",
      "profile/special : special token mask is missing\n" },
    { "{\"vocabulary\": {\"special\": {\"pad\": \"m\"}}}",
      "profile/special : special token pad: 'm' has no value\n" },
    /* shapes */
    { "{\"tensors\": [{\"name\": \"a\", \"shape\": [2, 3]}, {\"name\": \"p.b\", \"shape\": "
      "[\"n\"]}]}",
      "" },
    { "{\"tensors\": [{\"name\": \"a\", \"shape\": [3, 2]}]}",
      "profile/shape a: shape [2, 3] should be [3, 2]: it is transposed\n" },
    { "{\"tensors\": [{\"name\": \"a\", \"shape\": [3, 3]}]}",
      "profile/shape a: shape [2, 3] should be [3, 3]\n" },
    { "{\"tensors\": [{\"name\": \"a\", \"shape\": [2, 2]}]}",
      "profile/shape a: shape [2, 3] should be [2, 2]\n" },
    { "{\"tensors\": [{\"name\": \"a\", \"shape\": [6]}]}",
      "profile/shape a: shape [2, 3] should be [6]\n" },
    { "{\"tensors\": [{\"name\": \"a\", \"shape\": [2]}]}",
      "profile/shape a: shape [2, 3] should be [2]\n" },
    { "{\"tensors\": [{\"name\": \"a\", \"shape\": [2, 3, 1]}]}",
      "profile/shape a: shape [2, 3] should be [2, 3, 1]\n" },
    { "{\"tensors\": [{\"name\": \"a\", \"shape\": [3, 2, 1]}]}",
      "profile/shape a: shape [2, 3] should be [3, 2, 1]\n" },
    { "{\"tensors\": [{\"name\": \"a\", \"shape\": []}]}",
      "profile/shape a: shape [2, 3] should be []\n" },
    { "{\"tensors\": [{\"name\": \"p.b\", \"shape\": [5]}]}",
      "profile/shape p.b: shape [4] should be [5]\n" },
    { "{\"tensors\": [{\"name\": \"p.b\", \"shape\": [4, 4]}]}",
      "profile/shape p.b: shape [4] should be [4, 4]\n" },
    { "{\"tensors\": [{\"name\": \"a\", \"shape\": [2, \"m\"]}]}",
      "profile/shape a: shape: 'm' has no value\n" },
    { "{\"tensors\": [{\"name\": \"a\", \"shape\": [1, 2, 3, 4, 5, 6, 7, 8, 9]}]}",
      "profile/shape a: shape [2, 3] should be [1, 2, 3, 4, 5, 6, 7, 8]\n" },
    /* element types */
    { "{\"tensors\": [{\"name\": \"a\", \"dtype\": [\"f16\", \"f32\"]}]}", "" },
    { "{\"tensors\": [{\"name\": \"a\", \"dtype\": []}]}", "" },
    { "{\"tensors\": [{\"name\": \"a\", \"dtype\": [\"f16\", \"bf16\"]}]}",
      "profile/dtype a: element type f32 should be 'f16'\n" },
    /* names: optional, with prefixes, ranges and alternatives */
    { "{\"tensors\": [{\"name\": \"x\", \"shape\": [1], \"dtype\": [\"f32\"]}]}",
      "profile/tensor : tensor 'x' is missing\n" },
    { "{\"tensors\": [{\"name\": \"x\", \"optional\": true, \"shape\": [1]}]}", "" },
    { "{\"tensors\": [{\"name\": \"a\", \"optional\": true, \"shape\": [1]}]}",
      "profile/shape a: shape [2, 3] should be [1]\n" },
    { "{\"tensors\": [{\"name\": \"x\", \"optional\": false}]}",
      "profile/tensor : tensor 'x' is missing\n" },
    { "{\"tensors\": [{\"name\": \"b\"}]}", "profile/tensor : tensor 'b' is missing\n" },
    { "{\"prefixes\": [\"o.\", \"p.\"], \"tensors\": [{\"name\": \"b\"}, {\"name\": \"a\"}]}", "" },
    { "{\"tensors\": [{\"name\": \"l.{0..1}.{w|v}\", \"shape\": [2]}]}", "" },
    { "{\"tensors\": [{\"name\": \"l.{0..1}.{u|v|w}\", \"shape\": [3]}]}",
      "profile/shape l.0.w: shape [2] should be [3]\n"
      "profile/shape l.1.v: shape [2] should be [3]\n" },
    { "{\"tensors\": [{\"name\": \"l.{0..n-2}.{w|v}\"}]}",
      "profile/tensor : tensor 'l.2.w' is missing\n" },
    { "{\"tensors\": [{\"name\": \"{l|k}.{1..2}.{w|x}\"}]}",
      "profile/tensor : tensor 'l.1.w' is missing\n"
      "profile/tensor : tensor 'l.2.w' is missing\n" },
    { "{\"tensors\": [{\"name\": \"{l}.{0..0}.{w}\"}]}", "" },
    { "{\"tensors\": [{\"name\": \"x.{1..0}\"}]}", "" },
    { "{\"tensors\": [{\"name\": \"x.{2..2}{0..1}\"}]}",
      "profile/tensor : tensor 'x.20' is missing\n"
      "profile/tensor : tensor 'x.21' is missing\n" },
    { "{\"tensors\": [{\"name\": \"{a|b}{c|d}{e|f}{g|h}\"}]}",
      "profile/tensor : tensor 'aceg' is missing\n" },
    { "{\"tensors\": [{\"name\": \"{a}{a}{a}{a}{a}\"}]}",
      "profile/tensor : tensors '{a}{a}{a}{a}{a}': invalid range or alternatives in the name\n" },
    { "{\"tensors\": [{\"name\": \"x{\"}]}",
      "profile/tensor : tensors 'x{': invalid range or alternatives in the name\n" },
    { "{\"tensors\": [{\"name\": \"x{a\"}]}",
      "profile/tensor : tensors 'x{a': invalid range or alternatives in the name\n" },
    { "{\"tensors\": [{\"name\": \"x{m..2}\"}]}",
      "profile/tensor : tensors 'x{m..2}': invalid range or alternatives in the name\n" },
    { "{\"tensors\": [{\"name\": \"x{0..m}\"}]}",
      "profile/tensor : tensors 'x{0..m}': invalid range or alternatives in the name\n" },
    { "{\"tensors\": [{\"name\": \"x{0..}\"}]}",
      "profile/tensor : tensors 'x{0..}': invalid range or alternatives in the name\n" },
    { "{\"tensors\": [{\"name\": \"x{..0}\"}]}",
      "profile/tensor : tensors 'x{..0}': invalid range or alternatives in the name\n" },
};

static const row mag_rows[] = {
    { "{\"tensors\": [{\"name\": \"scalar\", \"shape\": [\"real\"]}]}",
      "profile/shape scalar: shape: 'real' has no value\n" },
    { "{\"tensors\": [{\"name\": \"scalar\", \"shape\": [\"negative\"]}]}",
      "profile/shape scalar: shape: 'negative' has no value\n" },
    { "{\"metadata\": {\"n\": \"3+1\", \"zero\": 0}}",
      "profile/metadata-value : metadata 'n' is 'another value', not '3+1'\n" },
    { "{\"metadata\": {\"n\": 4, \"zero\": 0, \"negative\": true, \"real\": true}}", "" },
    { "{\"metadata\": {\"negative\": 18446744073709551615}}",
      "profile/metadata-value : metadata 'negative' is 'another value', not "
      "'18446744073709551615'\n" },
    { "{\"metadata\": {\"real\": 4}}",
      "profile/metadata-value : metadata 'real' is 'another value', not '4'\n" },
    { "{\"metadata\": {\"n\": \"4\"}}",
      "profile/metadata-value : metadata 'n' is 'another value', not '4'\n" },
    { "{\"vocabulary\": {\"tokens\": 1}}", "profile/vocabulary : the vocabulary is missing\n" },
    { "{\"vocabulary\": {\"special\": {\"mask\": 1}}}",
      "profile/vocabulary : the vocabulary is missing\n" },
    { "{\"vocabulary\": {}}", "" },
    { "{\"complete_in\": [\"embd *\"], \"vocabulary\": {\"tokens\": 1}}",
      "warning profile/vocabulary : the vocabulary is missing\n" },
    { "{\"tensors\": [{\"name\": \"eight\", \"shape\": [1, 1, 1, 1, 1, 1, 1, \"n-1\"]}, "
      "{\"name\": \"scalar\", \"shape\": [\"n/n\"]}]}",
      "" },
    { "{\"tensors\": [{\"name\": \"eight\", \"shape\": [1, 1, 1, 1, 1, 1, 1, 2]}]}",
      "profile/shape eight: shape [1, 1, 1, 1, 1, 1, 1, 3] should be [1, 1, 1, 1, 1, 1, 1, 2]\n" },
    { "{\"tensors\": [{\"name\": \"deep\", \"shape\": [1, 1, 1, 1, 1, 1, 1]}]}",
      "profile/shape deep: shape [1, 1, 1, 1, 1, 1, 1, 1] should be [1, 1, 1, 1, 1, 1, 1]\n" },
};

static void a_model_is_compared_with_every_requirement(void **state)
{
    heft_test_sink sink;
    (void)state;
    heft_file *f = open_embd(&sink, true);
    check_rows(f, embd_rows, HEFT_COUNT(embd_rows));
    heft_file_close(f);
    heft_test_sink_free(&sink);
}

static void numbers_and_many_dimensions_are_compared(void **state)
{
    heft_test_sink sink;
    (void)state;
    heft_file *f = open_mag(&sink);
    check_rows(f, mag_rows, HEFT_COUNT(mag_rows));
    heft_file_close(f);
    heft_test_sink_free(&sink);
}

static void more_than_a_million_names_are_refused(void **state)
{
    static const struct {
        const char *name;
        bool is_refused;
    } names[] = {
        { "x.{1..1048576}", false },
        { "x.{1..1048577}", true },
        { "x.{0..18446744073709551615}", true },
        { "x.{1..18446744073709551615}", true },
        { "{1..1024}.{1..1024}", false },
        { "{1..1024}.{1..1025}", true },
        { "{1..1048576}.{1..1048576}.{1..1048576}.{1..1048576}", true },
        { "{1..1048577}.{1..1}", true },
    };
    heft_test_sink sink;
    (void)state;
    heft_file *f = open_embd(&sink, false);
    for (size_t i = 0; i < HEFT_COUNT(names); i++) {
        char text[200];
        heft_error err;
        heft_profile *p;
        snprintf(text, sizeof text, "{\"tensors\": [{\"name\": \"%s\", \"optional\": true}]}",
                 names[i].name);
        heft_assert_ok(heft_profile_parse_json(&p, heft_test_str(text), NULL, &err), &err);
        heft_status st = heft_profile_check(NULL, p, f, NULL, NULL, &err);
        if (names[i].is_refused)
            heft_assert_fails(st, HEFT_E_LIMIT, &err, "more than a million names");
        else
            heft_assert_ok(st, &err);
        heft_profile_close(p);
    }
    heft_file_close(f);
    heft_test_sink_free(&sink);
}

static void a_vocabulary_without_memory_is_an_error(void **state)
{
    heft_test_sink sink;
    heft_error err;
    heft_profile *p;
    (void)state;
    heft_file_close(open_embd(&sink, true));
    heft_assert_ok(
        heft_profile_parse_json(&p, heft_test_str("{\"vocabulary\": {\"tokens\": 3}}"), NULL, &err),
        &err);
    heft_status st = HEFT_E_NOMEM;
    for (uint32_t n = 1; st; n++) {
        heft_test_memory m;
        heft_file *f;
        heft_test_memory_init(&m, 0);
        heft_assert_ok(heft_test_open(&f, heft_test_sink_bytes(&sink), &m.host, &err), &err);
        heft_test_memory_rewind(&m);
        m.fail_at = n;
        st = heft_profile_check(NULL, p, f, NULL, NULL, &err);
        assert_int_equal(st == HEFT_OK, atomic_load(&m.calls) < n);
        if (st)
            heft_assert_status(st, HEFT_E_NOMEM, &err);
        heft_file_close(f);
        heft_assert_all_freed(&m);
        assert_in_range(n, 1, 100);
    }
    heft_profile_close(p);
    heft_test_sink_free(&sink);
}

/* A key larger than a block of the arena needs a new block. */
static void a_long_key_without_memory_is_an_error(void **state)
{
    char text[5000];
    heft_status st = HEFT_E_NOMEM;
    (void)state;
    snprintf(text, sizeof text, "{\"metadata\": {\"%04000d\": \"x\"}}", 0);
    for (uint32_t n = 1; st; n++) {
        heft_test_memory m;
        heft_profile *p;
        heft_error err;
        heft_test_memory_init(&m, n);
        st = heft_profile_parse_json(&p, heft_test_str(text), &m.host, &err);
        heft_assert_status(st, atomic_load(&m.calls) < n ? HEFT_OK : HEFT_E_NOMEM, &err);
        heft_profile_close(p);
        heft_assert_all_freed(&m);
        assert_in_range(n, 1, 100);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_is_compared_with_every_requirement),
        cmocka_unit_test(numbers_and_many_dimensions_are_compared),
        cmocka_unit_test(more_than_a_million_names_are_refused),
        cmocka_unit_test(a_vocabulary_without_memory_is_an_error),
        cmocka_unit_test(a_long_key_without_memory_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
