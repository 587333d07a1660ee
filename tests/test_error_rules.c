/* test_error_rules.c - errors carry the id of the violated rule or limit. */
#include "models.h"

static const test_tensor tensors[] = { { "a", HEFT_F32, 1, { 4 } },
                                       { "b", HEFT_F32, 1, { 4 } },
                                       { "c", HEFT_F32, 1, { 4 } } };

static void assert_rule(const heft_error *err, const char *rule)
{
    if (!err->rule)
        print_error("no rule: %s\n", err->message);
    assert_non_null(err->rule);
    assert_string_equal(err->rule, rule);
}

static heft_status open_within(heft_bytes b, const heft_limits *limits, heft_error *err)
{
    heft_open_options o = HEFT_OPEN_OPTIONS_INIT;
    heft_source *s;
    heft_file *f;
    o.limits = limits;
    memset(err, 0xEE, sizeof *err);
    heft_assert_ok(heft_source_open_memory(&s, b.p, b.len, NULL), err);
    heft_status st = heft_file_open_source(&f, s, &o, err);
    heft_file_close(f);
    return st;
}

static void exceeded_limits_set_a_rule(void **state)
{
    const struct {
        heft_limits limits;
        const char *rule;
    } rows[] = {
        { { .size = sizeof(heft_limits), .tensors = 2 }, "heft/limit-tensors" },
        { { .size = sizeof(heft_limits), .depth = 1 }, "heft/limit-depth" },
    };
    const char *format;
    heft_error err;
    (void)state;
    for (size_t k = 0; (format = heft_test_writable(k)) != NULL; k++) {
        if (heft_format_caps(heft_format_find(heft_str_from(format))) & HEFT_ONE_TENSOR)
            continue;
        heft_bytes b = heft_test_model(format, tensors, HEFT_COUNT(tensors));
        heft_assert_status(open_within(b, &rows[0].limits, &err), HEFT_E_LIMIT, &err);
        assert_rule(&err, rows[0].rule);
        if (!strcmp(format, "safetensors")) {
            heft_assert_status(open_within(b, &rows[1].limits, &err), HEFT_E_LIMIT, &err);
            assert_rule(&err, rows[1].rule);
        }
        heft_test_free(&b);
    }
}

static void exceeded_index_limit_sets_a_rule(void **state)
{
    static const uint8_t zeros[400];
    heft_limits limits = { .size = sizeof limits, .index_bytes = 300 };
    heft_open_options o = HEFT_OPEN_OPTIONS_INIT;
    heft_file *f;
    heft_error err;
    (void)state;
    o.limits = &limits;
    heft_assert_ok(heft_file_begin(&f, 1000, &o, &err), &err);
    heft_assert_fails(heft_file_feed(f, 0, zeros, sizeof zeros, &err), HEFT_E_LIMIT, &err,
                      "the index exceeds");
    assert_rule(&err, "heft/limit-index");
    heft_file_close(f);
}

static void truncated_file_sets_a_rule_of_its_format(void **state)
{
    const char *format;
    heft_error err;
    (void)state;
    for (size_t k = 0; (format = heft_test_writable(k)) != NULL; k++) {
        heft_bytes b = heft_test_model(format, tensors, HEFT_COUNT(tensors));
        size_t len = b.len;
        for (b.len = len / 2; b.len < len; b.len++) {
            heft_status st = open_within(b, NULL, &err);
            if (st != HEFT_E_FORMAT)
                continue;
            assert_non_null(err.rule);
            const char *end = strchr(err.rule, '/');
            assert_non_null(end);
            if (!strcmp(end, "/structure"))
                assert_memory_equal(err.rule, format, (size_t)(end - err.rule));
        }
        b.len = len;
        heft_test_free(&b);
    }
}

static void checksum_mismatch_sets_the_rule_of_the_checksum(void **state)
{
    heft_bytes b = heft_test_model("mag", tensors, 1);
    heft_limits limits = HEFT_LIMITS_INIT;
    heft_checksum sum;
    heft_file *f;
    heft_error err;
    bool checked;
    (void)state;
    heft_assert_ok(heft_test_open(&f, b, NULL, &err), &err);
    sum = heft_checksum_at(f, 0);
    heft_file_close(f);
    b.p[sum.range.offset + sum.range.length - 1] ^= 1;
    heft_assert_status(open_within(b, &limits, &err), HEFT_E_CHECKSUM, &err);
    assert_rule(&err, sum.rule);
    heft_test_free(&b);

    heft_write_options write = HEFT_WRITE_OPTIONS_INIT;
    heft_test_sink sink;
    heft_writer *w;
    uint32_t part;
    write.storage.digest = "crc32c";
    heft_assert_ok(heft_writer_open(&w, heft_format_find(HEFT_STR("ztensor")),
                                    heft_test_sink_init(&sink, false), &write, &err),
                   &err);
    heft_assert_ok(heft_writer_add_dense(&part, w, heft_test_str("a"), HEFT_U8,
                                         (const uint64_t[]){ 4 }, 1, &err),
                   &err);
    heft_assert_ok(heft_writer_begin(w, &err), &err);
    heft_assert_ok(heft_writer_write(w, part, "abcd", 4, &err), &err);
    heft_assert_ok(heft_writer_finish(w, &err), &err);
    b = heft_test_sink_bytes(&sink);
    heft_assert_ok(heft_test_open(&f, b, NULL, &err), &err);
    b.p[heft_part_at(f, part).offset] ^= 1;
    assert_int_equal(heft_part_verify(&checked, f, part, &err), HEFT_E_CHECKSUM);
    assert_rule(&err, "ztensor/digest");
    heft_file_close(f);
    heft_test_sink_free(&sink);
}

static void refused_conversion_sets_the_rule_of_the_first_loss(void **state)
{
    heft_bytes b = heft_test_model("safetensors", tensors, HEFT_COUNT(tensors));
    heft_test_sink sink;
    heft_file *f;
    heft_error err;
    (void)state;
    heft_assert_ok(heft_test_open(&f, b, NULL, &err), &err);
    assert_int_equal(heft_file_convert(f, heft_format_find(HEFT_STR("npy")),
                                       heft_test_sink_init(&sink, false), NULL, &err),
                     HEFT_E_LOSSY);
    assert_rule(&err, "npy/one-tensor");
    heft_test_sink_free(&sink);
    heft_file_close(f);
    heft_test_free(&b);
}

static void missing_things_set_a_rule(void **state)
{
    static uint8_t unknown_bytes[64] = "rubbish";
    heft_bytes b = heft_test_model("safetensors", tensors, 1);
    heft_str key = heft_test_str("none such");
    heft_rename rename = { key, key };
    heft_edit_options o = HEFT_EDIT_OPTIONS_INIT;
    heft_limits limits = HEFT_LIMITS_INIT;
    heft_vocab *vocab;
    heft_edit *e;
    heft_file *f;
    heft_error err;
    (void)state;
    heft_assert_status(
        open_within((heft_bytes){ unknown_bytes, sizeof unknown_bytes }, &limits, &err),
        HEFT_E_FORMAT, &err);
    assert_rule(&err, "heft/unknown-format");
    heft_assert_ok(heft_test_open(&f, b, NULL, &err), &err);
    assert_int_equal(heft_vocab_open(&vocab, f, &err), HEFT_E_NOTFOUND);
    assert_rule(&err, "heft/no-vocabulary");
    assert_int_equal(heft_part_read(NULL, f, 9, 0, 0, &err), HEFT_E_ARGUMENT);
    assert_rule(&err, "heft/no-part");
    assert_int_equal(heft_part_read(NULL, f, 0, 0, 1000, &err), HEFT_E_ARGUMENT);
    assert_null(err.rule);
    o.rename = &rename;
    o.rename_count = 1;
    assert_int_equal(heft_edit_plan(&e, f, &o, &err), HEFT_E_NOTFOUND);
    assert_rule(&err, "heft/no-tensor");
    o.rename_count = 0;
    o.unset = &key;
    o.unset_count = 1;
    assert_int_equal(heft_edit_plan(&e, f, &o, &err), HEFT_E_NOTFOUND);
    assert_rule(&err, "heft/no-metadata");
    heft_file_close(f);
    heft_test_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exceeded_limits_set_a_rule),
        cmocka_unit_test(exceeded_index_limit_sets_a_rule),
        cmocka_unit_test(truncated_file_sets_a_rule_of_its_format),
        cmocka_unit_test(checksum_mismatch_sets_the_rule_of_the_checksum),
        cmocka_unit_test(refused_conversion_sets_the_rule_of_the_first_loss),
        cmocka_unit_test(missing_things_set_a_rule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
