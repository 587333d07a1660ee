/* test_identity.c - what programs know a tensor by besides its name: Burn's ids as text, and identities that
 * conversions and edits change. */
#include <heft/params.h>

#include "models.h"

/* ---- Burn's ids as text --------------------------------------------------------------------- */

/* The texts are those of Python's base64.b32hexencode() for the eight bytes. */
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

static void ids_are_spelled_as_burn_spells_them(void **state)
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

static void other_texts_are_no_ids(void **state)
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

static void new_ids_differ(void **state)
{
    enum { IDS = 64 };
    uint64_t ids[IDS], together = 0;
    heft_error err;
    (void)state;
    for (size_t i = 0; i < IDS; i++) {
        heft_assert_ok(heft_param_id_new(&ids[i], &err), &err);
        together |= ids[i];
        for (size_t k = 0; k < i; k++)
            assert_int_not_equal(ids[i], ids[k]);
    }
    assert_int_equal(together, UINT64_MAX); /* fails by chance once in 2^58 runs */
}

/* ---- identities ----------------------------------------------------------------------------- */

static const test_tensor two[] = {
    { "a", HEFT_F32, 2, { 3, 5 } },
    { "b", HEFT_F32, 1, { 7 } },
};

typedef struct wish { /* what the callback answers for the tensor "a" */
    heft_identity id, was;
    unsigned calls;
    bool is_refused; /* it changes *id, and says that nothing changes */
} wish;

static bool identify(void *ctx, const heft_tensor *t, heft_identity *id)
{
    wish *w = ctx;
    w->calls++;
    if (t->name.len != 1 || *t->name.ptr != 'a')
        return false;
    w->was = *id;
    *id = w->id;
    return !w->is_refused;
}

static bool find_attribute(heft_value *out, const heft_file *f, uint32_t tensor, const char *key)
{
    bool found = false;
    for (uint32_t i = 0; !found && heft_attribute_at(out, f, tensor, i); i++)
        found = out->key.len == strlen(key) && !memcmp(out->key.ptr, key, out->key.len);
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

static heft_bytes converted(const char *to, const char *version, heft_bytes from, wish *w)
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
    w->calls = 0;
    heft_assert_ok(heft_test_open(&f, from, NULL, &err), &err);
    heft_assert_ok(
        heft_file_convert(f, heft_format_find(to), heft_test_sink_init(&sink, false), &o, &err),
        &err);
    assert_int_equal(w->calls, heft_tensor_count(f));
    heft_bytes out = heft_test_copy(sink.p, sink.len);
    heft_test_sink_free(&sink);
    heft_file_close(f);
    return out;
}

/* Formats that keep ids, and the generation that does. */
static const struct {
    const char *format, *version;
} keepers[] = {
    { "burnpack", NULL },
    { "safetensors", NULL },
    { "ztensor", "1.2" },
    { "gguf", NULL },
};

static heft_bytes model_of(size_t keeper)
{
    heft_write_options write = HEFT_WRITE_OPTIONS_INIT;
    heft_convert_options o = HEFT_CONVERT_OPTIONS_INIT;
    o.write = &write;
    write.version = keepers[keeper].version;
    return heft_test_converted("safetensors", two, 2, keepers[keeper].format, &o);
}

static void conversions_set_keep_and_take_away_ids(void **state)
{
    const uint64_t id = UINT64_MAX - 5, other = 12;
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(keepers); i++) {
        heft_file *f;
        heft_error err;
        wish w = { .id = { .has = HEFT_HAS_PARAM_ID, .param_id = id } };
        heft_bytes b[4] = { model_of(i) };
        const char *format = keepers[i].format, *version = keepers[i].version;
        b[1] = converted(format, version, b[0], &w);
        assert_int_equal(w.was.has & HEFT_HAS_PARAM_ID, 0);
        heft_assert_ok(heft_test_open(&f, b[1], NULL, &err), &err);
        assert_id(f, "a", &id);
        assert_id(f, "b", NULL);
        heft_file_close(f);
        w = (wish){ .id = { .has = HEFT_HAS_PARAM_ID, .param_id = other }, .is_refused = true };
        b[2] = converted(format, version, b[1], &w);
        assert_int_equal(w.was.has & HEFT_HAS_PARAM_ID, HEFT_HAS_PARAM_ID);
        assert_int_equal(w.was.param_id, id);
        heft_assert_same_bytes(b[1], b[2]);
        w = (wish){ .id = { .has = 0, .param_id = other } };
        b[3] = converted(format, version, b[2], &w);
        heft_assert_same_bytes(b[0], b[3]);
        for (size_t k = 0; k < HEFT_COUNT(b); k++)
            heft_test_free(&b[k]);
    }
}

static heft_status edit(const char *path, wish *w, heft_edit_result *result, heft_error *err)
{
    heft_edit_options o = HEFT_EDIT_OPTIONS_INIT;
    o.identify = identify;
    o.identify_ctx = w;
    return heft_file_edit(result, path, &o, err);
}

static void edits_set_change_and_take_away_ids(void **state)
{
    static const uint64_t ids[] = { UINT64_MAX, 7, 1ull << 40 };
    for (size_t i = 0; i < HEFT_COUNT(keepers); i++) {
        const char *path = heft_test_path(*state, keepers[i].format);
        heft_bytes before = model_of(i), after;
        heft_edit_result result;
        heft_file *f;
        heft_error err;
        heft_test_save(path, before.p, before.len);
        for (size_t k = 0; k < HEFT_COUNT(ids); k++) {
            wish w = { .id = { .has = HEFT_HAS_PARAM_ID, .param_id = ids[k] } };
            heft_assert_ok(edit(path, &w, &result, &err), &err);
            assert_true(result.changed);
            heft_assert_ok(heft_file_open(&f, path, NULL, &err), &err);
            assert_id(f, "a", &ids[k]);
            assert_id(f, "b", NULL);
            heft_file_close(f);
        }
        heft_assert_ok(edit(path, &(wish){ .id = { .has = 0 } }, &result, &err), &err);
        heft_assert_ok(heft_file_open(&f, path, NULL, &err), &err);
        assert_id(f, "a", NULL);
        heft_file_close(f);
        after = heft_test_load(path);
        if (!strcmp(keepers[i].format, "burnpack"))
            heft_assert_same_bytes(before, after); /* others leave room behind */
        heft_test_free(&before);
        heft_test_free(&after);
    }
}

/* Formats that have no place for an id refuse the edit, and keep the file. */
static void an_edit_that_would_lose_an_id_is_refused(void **state)
{
    const char *path = heft_test_path(*state, "m.mag");
    heft_bytes before = heft_test_one("mag", 64), after;
    heft_edit_options o = HEFT_EDIT_OPTIONS_INIT;
    heft_error err;
    wish w = { .id = { .has = HEFT_HAS_PARAM_ID, .param_id = 1 } };
    heft_test_save(path, before.p, before.len);
    heft_assert_ok(edit(path, &w, NULL, &err), &err); /* it has no tensor "a" */
    o.identify = identify;
    o.identify_ctx = &w;
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

static const test_tensor trained[] = {
    { "a", HEFT_F32, 1, { 4 } },
    { "b", HEFT_F32, 1, { 4 } },
};

/* gpt-rs has a place for requires_grad, and no word for "not said". */
static void requires_grad_is_set_and_cleared(void **state)
{
    const char *path = heft_test_path(*state, "m.gptrs");
    heft_bytes model = heft_test_model("gptrs-checkpoint", trained, 2);
    heft_file *f;
    heft_value v;
    heft_error err;
    heft_test_save(path, model.p, model.len);
    for (int grad = 1; grad >= 0; grad--) {
        wish w = { .id = { .has = HEFT_HAS_REQUIRES_GRAD, .requires_grad = grad } };
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
        cmocka_unit_test(ids_are_spelled_as_burn_spells_them),
        cmocka_unit_test(other_texts_are_no_ids),
        cmocka_unit_test(new_ids_differ),
        cmocka_unit_test(conversions_set_keep_and_take_away_ids),
        in_dir(edits_set_change_and_take_away_ids),
        in_dir(an_edit_that_would_lose_an_id_is_refused),
        in_dir(requires_grad_is_set_and_cleared),
    };
    return cmocka_run_group_tests_name("identity", tests, NULL, NULL);
}
