/* test_identity.c - Burn parameter ids as text, and tensor identities changed by conversions and
 * edits. */
#include <heft/params.h>

#include "models.h"

/* ---- Burn's ids as text --------------------------------------------------------------------- */

/* Texts from Python's base64.b32hexencode() of the eight bytes. */
static const struct {
    uint64_t id;
    const char *text;
} texts[] = {
    { UINT64_C(0x0), "0000000000000" },
    { UINT64_C(0x1), "0400000000000" },
    { UINT64_C(0x2a), "5800000000000" },
    { UINT64_C(0x123456789abcdef), "tv6qn2b78khg2" },
    { UINT64_C(0x8000000000000000), "0000000000080" },
    { UINT64_C(0xffffffffffffffff), "vvvvvvvvvvvvu" },
};

static void formats_and_parses_ids_as_burn_does(void **state)
{
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(texts); i++) {
        char text[HEFT_PARAM_ID_TEXT];
        uint64_t id;
        heft_param_id_text(text, texts[i].id);
        assert_string_equal(text, texts[i].text);
        assert_true(heft_param_id_parse(&id, heft_str_from(text)));
        assert_int_equal(id, texts[i].id);
    }
}

static void refuses_texts_that_are_not_ids(void **state)
{
    static const char *const wrong[] = { "",
                                         "000000000000",
                                         "00000000000000",
                                         "000000000000w",
                                         "0000000000001",
                                         "00000000-0000",
                                         "vvvvvvvvvvvvv" };
    uint64_t id;
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(wrong); i++)
        assert_false(heft_param_id_parse(&id, heft_str_from(wrong[i])));
    assert_true(heft_param_id_parse(&id, HEFT_STR("VVVVVVVVVVVVU")));
    assert_int_equal(id, UINT64_MAX);
}

static void new_ids_are_unique(void **state)
{
    enum { IDS = 64 };
    uint64_t ids[IDS], all_bits = 0;
    heft_error err;
    (void)state;
    for (size_t i = 0; i < IDS; i++) {
        heft_assert_ok(heft_param_id_new(&ids[i], &err), &err);
        all_bits |= ids[i];
        for (size_t k = 0; k < i; k++)
            assert_int_not_equal(ids[i], ids[k]);
    }
    assert_int_equal(all_bits, UINT64_MAX); /* fails by chance once in 2^58 runs */
}

/* ---- identities ----------------------------------------------------------------------------- */

static const test_tensor two[] = {
    { "a", HEFT_F32, 2, { 3, 5 } },
    { "b", HEFT_F32, 1, { 7 } },
};

typedef struct id_change { /* the answer of the callback for the tensor "a" */
    heft_identity id, old; /* the new identity, and the identity passed to the callback */
    unsigned calls;
    bool is_refused; /* the callback sets *id, but returns false */
} id_change;

static bool identify(void *ctx, const heft_tensor *t, heft_identity *id)
{
    id_change *w = ctx;
    w->calls++;
    if (t->name.len != 1 || *t->name.ptr != 'a')
        return false;
    w->old = *id;
    *id = w->id;
    return !w->is_refused;
}

static bool find_attribute(heft_value *out, const heft_file *f, uint32_t tensor, const char *key)
{
    bool found = false;
    for (uint32_t i = 0, n = heft_attribute_count(f, tensor); !found && i < n; i++) {
        *out = heft_attribute_at(f, tensor, i);
        found = out->key.len == strlen(key) && !memcmp(out->key.ptr, key, out->key.len);
    }
    return found;
}

static void assert_id(const heft_file *f, const char *name, const uint64_t *id)
{
    heft_value v;
    uint32_t t = heft_tensor_find(f, heft_str_from(name));
    assert_int_not_equal(t, HEFT_NONE);
    assert_int_equal(find_attribute(&v, f, t, "burn.param_id"), id != NULL);
    if (id)
        assert_int_equal(v.as.u, *id);
}

static heft_bytes converted(const char *to, const char *version, heft_bytes from, id_change *w)
{
    heft_test_sink sink;
    heft_write_options write = HEFT_WRITE_OPTIONS_INIT;
    heft_convert_options o = HEFT_CONVERT_OPTIONS_INIT;
    heft_file *f;
    heft_error err;
    o.write = &write;
    write.version = version;
    o.identify = identify;
    o.ctx = w;
    o.exact_metadata = true;
    w->calls = 0;
    heft_assert_ok(heft_test_open(&f, from, NULL, &err), &err);
    heft_assert_ok(heft_file_convert(f, heft_format_find(heft_str_from(to)),
                                     heft_test_sink_init(&sink, false), &o, &err),
                   &err);
    assert_int_equal(w->calls, heft_tensor_count(f));
    heft_bytes out = heft_test_copy(sink.p, sink.len);
    heft_test_sink_free(&sink);
    heft_file_close(f);
    return out;
}

/* Formats and versions that store parameter ids. */
static const struct {
    const char *format, *version;
} formats[] = {
    { "burnpack", NULL },
    { "safetensors", NULL },
    { "ztensor", "1.2" },
    { "gguf", NULL },
};

static heft_bytes model_of(size_t format)
{
    heft_write_options write = HEFT_WRITE_OPTIONS_INIT;
    heft_convert_options o = HEFT_CONVERT_OPTIONS_INIT;
    o.write = &write;
    write.version = formats[format].version;
    return heft_test_converted("safetensors", two, 2, formats[format].format, &o);
}

static void conversion_sets_keeps_and_removes_ids(void **state)
{
    const uint64_t id = UINT64_MAX - 5, other = 12;
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(formats); i++) {
        heft_file *f;
        heft_error err;
        id_change w = { .id = { .has = HEFT_HAS_PARAM_ID, .param_id = id } };
        heft_bytes b[4] = { model_of(i) };
        const char *format = formats[i].format, *version = formats[i].version;
        b[1] = converted(format, version, b[0], &w);
        assert_int_equal(w.old.has & HEFT_HAS_PARAM_ID, 0);
        heft_assert_ok(heft_test_open(&f, b[1], NULL, &err), &err);
        assert_id(f, "a", &id);
        assert_id(f, "b", NULL);
        heft_file_close(f);
        w = (id_change){ .id = { .has = HEFT_HAS_PARAM_ID, .param_id = other },
                         .is_refused = true };
        b[2] = converted(format, version, b[1], &w);
        assert_int_equal(w.old.has & HEFT_HAS_PARAM_ID, HEFT_HAS_PARAM_ID);
        assert_int_equal(w.old.param_id, id);
        heft_assert_same_bytes(b[1], b[2]);
        w = (id_change){ .id = { .has = 0, .param_id = other } };
        b[3] = converted(format, version, b[2], &w);
        heft_assert_same_bytes(b[0], b[3]);
        for (size_t k = 0; k < HEFT_COUNT(b); k++)
            heft_test_free(&b[k]);
    }
}

static heft_status edit(const char *path, id_change *w, heft_edit_result *result, heft_error *err)
{
    heft_edit_options o = HEFT_EDIT_OPTIONS_INIT;
    o.identify = identify;
    o.ctx = w;
    return heft_file_edit(result, path, &o, err);
}

static void edit_sets_changes_and_removes_ids(void **state)
{
    static const uint64_t ids[] = { UINT64_MAX, 7, 1ull << 40 };
    for (size_t i = 0; i < HEFT_COUNT(formats); i++) {
        const char *path = heft_test_path(*state, formats[i].format);
        heft_bytes before = model_of(i), after;
        heft_edit_result result;
        heft_file *f;
        heft_error err;
        heft_test_save(path, before.p, before.len);
        for (size_t k = 0; k < HEFT_COUNT(ids); k++) {
            id_change w = { .id = { .has = HEFT_HAS_PARAM_ID, .param_id = ids[k] } };
            heft_assert_ok(edit(path, &w, &result, &err), &err);
            assert_true(result.changed);
            heft_assert_ok(heft_file_open(&f, path, NULL, &err), &err);
            assert_id(f, "a", &ids[k]);
            assert_id(f, "b", NULL);
            heft_file_close(f);
        }
        heft_assert_ok(edit(path, &(id_change){ .id = { .has = 0 } }, &result, &err), &err);
        heft_assert_ok(heft_file_open(&f, path, NULL, &err), &err);
        assert_id(f, "a", NULL);
        heft_file_close(f);
        after = heft_test_load(path);
        if (!strcmp(formats[i].format, "burnpack")) /* the other formats leave padding */
            heft_assert_same_bytes(before, after);
        heft_test_free(&before);
        heft_test_free(&after);
    }
}

/* A flag of a later version must neither be ignored nor half applied. */
static void refuses_flags_that_it_does_not_know(void **state)
{
    const char *path = heft_test_path(*state, "m.mpk");
    heft_bytes before = model_of(0), after;
    heft_test_sink sink;
    heft_convert_options o = HEFT_CONVERT_OPTIONS_INIT;
    heft_file *f;
    heft_error err;
    id_change w = { .id = { .has = HEFT_HAS_PARAM_ID | 1u << 3, .param_id = 1 } };
    o.identify = identify;
    o.ctx = &w;
    heft_assert_ok(heft_test_open(&f, before, NULL, &err), &err);
    heft_assert_fails(heft_file_convert(f, heft_format_find(heft_str_from(formats[0].format)),
                                        heft_test_sink_init(&sink, false), &o, &err),
                      HEFT_E_ARGUMENT, &err, "tensor 'a': its identity has flags unknown");
    assert_int_equal(sink.len, 0);
    heft_test_sink_free(&sink);
    heft_file_close(f);
    heft_test_save(path, before.p, before.len);
    heft_assert_fails(edit(path, &w, NULL, &err), HEFT_E_ARGUMENT, &err,
                      "tensor 'a': its identity has flags unknown");
    after = heft_test_load(path);
    heft_assert_same_bytes(before, after);
    heft_test_free(&before);
    heft_test_free(&after);
}

/* An edit of a format without parameter ids is refused and leaves the file unchanged. */
static void refuses_an_edit_that_would_lose_an_id(void **state)
{
    const char *path = heft_test_path(*state, "m.mag");
    heft_bytes before = heft_test_one("mag", 64), after;
    heft_edit_options o = HEFT_EDIT_OPTIONS_INIT;
    heft_error err;
    id_change w = { .id = { .has = HEFT_HAS_PARAM_ID, .param_id = 1 } };
    heft_test_save(path, before.p, before.len);
    /* no id changes: the file has no tensor "a" */
    heft_assert_ok(edit(path, &w, NULL, &err), &err);
    o.identify = identify;
    o.ctx = &w;
    heft_rename rename = { heft_test_str("w"), heft_test_str("a") };
    o.rename = &rename;
    o.rename_count = 1;
    heft_assert_ok(heft_file_edit(NULL, path, &o, &err), &err);
    heft_test_free(&before);
    before = heft_test_load(path);
    heft_assert_status(edit(path, &w, NULL, &err), HEFT_E_LOSSY, &err);
    after = heft_test_load(path);
    heft_assert_same_bytes(before, after);
    heft_test_free(&before);
    heft_test_free(&after);
}

static const test_tensor two_vectors[] = {
    { "a", HEFT_F32, 1, { 4 } },
    { "b", HEFT_F32, 1, { 4 } },
};

/* gpt-rs always stores requires_grad; there is no value for "unknown". */
static void edit_sets_and_clears_requires_grad(void **state)
{
    const char *path = heft_test_path(*state, "m.gptrs");
    heft_bytes model = heft_test_model("gptrs-checkpoint", two_vectors, 2);
    heft_file *f;
    heft_value v;
    heft_error err;
    heft_test_save(path, model.p, model.len);
    for (int grad = 1; grad >= 0; grad--) {
        id_change w = { .id = { .has = HEFT_HAS_REQUIRES_GRAD, .requires_grad = grad } };
        heft_assert_ok(edit(path, &w, NULL, &err), &err);
        heft_assert_ok(heft_file_open(&f, path, NULL, &err), &err);
        assert_true(
            find_attribute(&v, f, heft_tensor_find(f, HEFT_STR("a")), "gptrs.requires_grad"));
        assert_int_equal(v.as.b, grad);
        assert_true(
            find_attribute(&v, f, heft_tensor_find(f, HEFT_STR("b")), "gptrs.requires_grad"));
        assert_false(v.as.b);
        heft_file_close(f);
    }
    heft_test_free(&model);
}

#define in_dir(test) cmocka_unit_test_setup_teardown(test, heft_test_dir_make, heft_test_dir_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formats_and_parses_ids_as_burn_does),
        cmocka_unit_test(refuses_texts_that_are_not_ids),
        cmocka_unit_test(new_ids_are_unique),
        cmocka_unit_test(conversion_sets_keeps_and_removes_ids),
        in_dir(edit_sets_changes_and_removes_ids),
        in_dir(refuses_flags_that_it_does_not_know),
        in_dir(refuses_an_edit_that_would_lose_an_id),
        in_dir(edit_sets_and_clears_requires_grad),
    };
    return cmocka_run_group_tests_name("identity", tests, NULL, NULL);
}
