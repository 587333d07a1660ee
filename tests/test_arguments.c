/* test_arguments.c - tests of invalid arguments: numbers past the end, HEFT_NONE, NULL. */
#include <heft/doctor.h>
#include <heft/params.h>
#include <heft/sign.h>

#include "models.h"

/* Numbers that do not exist where there is one tensor, part or value. */
static const uint32_t past_end[] = { 1, 2, 1000, UINT32_MAX - 1, HEFT_NONE };

typedef struct fixture {
    heft_bytes bytes;
    heft_file *f; /* one tensor with one part */
} fixture;

static void begin(fixture *x)
{
    heft_error err;
    x->bytes = heft_test_one("mag", 100);
    heft_assert_ok(heft_test_open(&x->f, x->bytes, NULL, &err), &err);
    assert_int_equal(heft_tensor_count(x->f), 1);
}

static void end(fixture *x)
{
    heft_file_close(x->f);
    heft_test_free(&x->bytes);
}

static void tensors_past_the_end_are_empty(void **state)
{
    fixture x;
    (void)state;
    begin(&x);
    for (size_t i = 0; i < HEFT_COUNT(past_end); i++) {
        heft_tensor t = heft_tensor_at(x.f, past_end[i]);
        assert_true(!t.name.len && !t.rank && !t.part_count && t.dtype == HEFT_UNTYPED);
        assert_int_equal(heft_tensor_layout_name(x.f, past_end[i]).len, 0);
        assert_int_equal(heft_tensor_bytes(x.f, past_end[i]), 0);
        assert_int_equal(heft_attribute_count(x.f, past_end[i]), 0);
        assert_int_equal(heft_attribute_at(x.f, past_end[i], 0).kind, HEFT_KIND_NULL);
        assert_int_equal(heft_part_find(x.f, past_end[i], HEFT_STR("data")), HEFT_NONE);
    }
    assert_int_equal(heft_tensor_find(x.f, HEFT_STR("none such")), HEFT_NONE);
    end(&x);
}

static void parts_past_the_end_are_empty(void **state)
{
    fixture x;
    heft_error err;
    heft_stream *s;
    heft_checked_read *r;
    uint8_t buf[8];
    bool checked;
    (void)state;
    begin(&x);
    heft_part_prefetch(x.f, past_end, HEFT_COUNT(past_end));
    heft_assert_ok(heft_checked_read_open(&r, x.f, NULL, 0, &err), &err);
    for (size_t i = 0; i < HEFT_COUNT(past_end); i++) {
        void *to = buf;
        heft_part p = heft_part_at(x.f, past_end[i]);
        assert_true(!p.role.len && !p.stored && !p.length && !p.digest.len && !p.shard);
        assert_null(heft_part_view(x.f, past_end[i]));
        heft_assert_fails(heft_part_read(buf, x.f, past_end[i], 0, 1, &err), HEFT_E_ARGUMENT, &err,
                          "no part");
        heft_assert_fails(heft_part_read(buf, x.f, past_end[i], 0, 0, &err), HEFT_E_ARGUMENT, &err,
                          "no part");
        heft_assert_fails(heft_part_read_many(&to, x.f, &past_end[i], 1, NULL, NULL, &err),
                          HEFT_E_ARGUMENT, &err, "no part");
        heft_assert_fails(heft_stream_open(&s, x.f, past_end[i], &err), HEFT_E_ARGUMENT, &err,
                          "no part");
        heft_assert_fails(heft_stream_open_checked(&s, x.f, past_end[i], &err), HEFT_E_ARGUMENT,
                          &err, "no part");
        heft_assert_fails(heft_checked_read_stream(&s, r, past_end[i], &err), HEFT_E_ARGUMENT, &err,
                          "no part");
        heft_assert_fails(heft_part_verify(&checked, x.f, past_end[i], &err), HEFT_E_ARGUMENT, &err,
                          "no part");
        heft_assert_fails(heft_part_populate(x.f, past_end[i], &err), HEFT_E_ARGUMENT, &err,
                          "no part");
        heft_part_dont_need(x.f, past_end[i]);
    }
    heft_checked_read_close(r);
    end(&x);
}

/* Shares are numbered from 1. */
static void verify_refuses_a_share_that_there_is_not(void **state)
{
    static const uint16_t refused[][2] = { { 0, 1 }, { 0, 65535 }, { 1, 0 }, { 3, 2 } };
    fixture x;
    heft_error err;
    (void)state;
    begin(&x);
    for (size_t i = 0; i < HEFT_COUNT(refused); i++) {
        heft_verify_options opt = HEFT_VERIFY_OPTIONS_INIT;
        opt.share = refused[i][0];
        opt.share_count = refused[i][1];
        heft_assert_fails(heft_file_verify(NULL, x.f, &opt, &err), HEFT_E_ARGUMENT, &err,
                          "there is no share");
    }
    end(&x);
}

/* Parts of the file are numbered after the parts of the tensors. */
static void parts_of_the_file_follow_the_parts_of_tensors(void **state)
{
    static const char config[] = "{\"kind\":\"gpt\",\"config\":{}}";
    heft_test_sink sink;
    heft_writer *w;
    heft_file *f;
    heft_error err;
    (void)state;
    heft_assert_ok(heft_writer_open(&w, heft_format_find(HEFT_STR("gptrs-checkpoint")),
                                    heft_test_sink_init(&sink, false), NULL, &err),
                   &err);
    heft_assert_ok(
        heft_writer_add_model_part(w, heft_test_str("config"), config, strlen(config), &err), &err);
    heft_assert_ok(heft_writer_begin(w, &err), &err);
    heft_assert_ok(heft_writer_finish(w, &err), &err);
    heft_assert_ok(heft_test_open(&f, heft_test_sink_bytes(&sink), NULL, &err), &err);
    uint32_t part = heft_part_find(f, HEFT_NONE, HEFT_STR("config"));
    assert_int_equal(part, 0);
    assert_int_equal(heft_part_at(f, part).length, strlen(config));
    assert_memory_equal(heft_part_view(f, part), config, strlen(config));
    assert_int_equal(heft_part_at(f, part + 1).length, 0);
    assert_null(heft_part_view(f, part + 1));
    heft_part_prefetch(f, &part, 1);
    heft_assert_ok(heft_part_populate(f, part, &err), &err);
    heft_file_close(f);
    heft_test_sink_free(&sink);
}

static void shards_metadata_notices_and_ids_past_the_end_are_empty(void **state)
{
    fixture x;
    heft_value v;
    heft_ids *ids;
    heft_error err;
    uint32_t count;
    heft_id id = { .kind = (heft_id_kind)7 };
    (void)state;
    begin(&x);
    for (size_t i = 0; i < HEFT_COUNT(past_end); i++) {
        heft_shard_file s = heft_shard_file_at(x.f, past_end[i] - 1);
        assert_true(!s.name.len && s.status == HEFT_E_ARGUMENT && s.size == HEFT_UNKNOWN_LENGTH);
        uint32_t past = heft_meta_count(x.f) + past_end[i] - 1;
        past = past < past_end[i] - 1 ? HEFT_NONE : past;
        assert_int_equal(heft_meta_at(x.f, past).kind, HEFT_KIND_NULL);
        assert_int_equal(heft_meta_next(x.f, past), heft_meta_count(x.f));
        assert_int_equal(heft_attribute_at(x.f, 0, 1000 + past_end[i]).kind, HEFT_KIND_NULL);
        assert_null(heft_notice_at(x.f, 1000 + past_end[i]).rule);
        assert_null(heft_checksum_at(x.f, 1000 + past_end[i]).rule);
    }
    assert_false(heft_meta_find(&v, x.f, (heft_str){ NULL, 0 }));
    heft_assert_ok(heft_ids_open(&ids, x.f, &err), &err);
    assert_int_equal(heft_ids_find(ids, &id, &count), HEFT_NONE);
    assert_int_equal(count, 0);
    assert_int_equal(heft_tensor_find_id(x.f, &id, &count), HEFT_NONE);
    assert_int_equal(count, 0);
    heft_ids_close(ids);
    end(&x);
}

static void tokens_and_settings_past_the_end_are_empty(void **state)
{
    heft_vocab *vocab;
    heft_settings *s;
    heft_value v;
    heft_error err;
    (void)state;
    heft_assert_ok(heft_vocab_parse_lines(&vocab, heft_test_str("a\n"), NULL, &err), &err);
    heft_assert_ok(heft_settings_parse_json(&s, heft_test_str("{\"a\": 1}"), NULL, &err), &err);
    for (size_t i = 0; i < HEFT_COUNT(past_end); i++) {
        assert_int_equal(heft_vocab_at(vocab, past_end[i]).len, 0);
        assert_int_equal(heft_settings_at(s, past_end[i]).kind, HEFT_KIND_NULL);
        assert_int_equal(heft_settings_value_at(s, past_end[i]).kind, HEFT_KIND_NULL);
        assert_int_equal(heft_settings_next(s, past_end[i]), heft_settings_value_count(s));
    }
    assert_int_equal(heft_vocab_special(vocab, (heft_special)7), HEFT_NONE);
    heft_vocab_set_special(vocab, (heft_special)7, 0);
    assert_false(heft_settings_find(&v, s, HEFT_STR("none such")));
    assert_false(heft_settings_find(&v, s, (heft_str){ NULL, 0 }));
    assert_int_equal(heft_settings_find_path(s, HEFT_STR("a.b")), HEFT_NONE);
    assert_int_equal(heft_settings_find_path(s, (heft_str){ NULL, 0 }), HEFT_NONE);
    heft_settings_close(s);
    heft_vocab_close(vocab);
}

static void unknown_parameter_keys_are_not_found(void **state)
{
    fixture x;
    heft_params *p;
    heft_param param;
    heft_id128 space, key, unknown = { { 0xEE } };
    heft_error err;
    (void)state;
    begin(&x);
    heft_assert_ok(heft_params_open(&p, NULL, &err), &err);
    heft_assert_ok(heft_params_add(&space, p, x.f, &err), &err);
    x.f = NULL;
    for (size_t i = 0; i < HEFT_COUNT(past_end); i++) {
        key = heft_params_key_at(p, past_end[i]);
        heft_assert_fails(heft_params_acquire(&param, p, key, &err), HEFT_E_NOTFOUND, &err, "");
    }
    heft_params_release(p, unknown);
    heft_params_unpin(p, unknown);
    heft_params_release_form(p, unknown, 1);
    heft_params_release_form(p, heft_params_key_at(p, 0), 1);
    heft_params_prefetch(p, &unknown, 1);
    assert_int_equal(heft_params_name(p, unknown).len, 0);
    assert_false(heft_params_find(&key, p, unknown, HEFT_STR("w")));
    heft_assert_fails(heft_params_pin(p, unknown, &err), HEFT_E_NOTFOUND, &err, "");
    heft_params_close(p);
    end(&x);
}

static void unknown_element_types_cannot_be_cast(void **state)
{
    static const heft_dtype unknown[] = { HEFT_UNTYPED, HEFT_DTYPES, 1000, UINT16_MAX };
    uint8_t from[16] = { 0 }, to[16];
    double number;
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(unknown); i++) {
        assert_null(heft_dtype_get(unknown[i]));
        assert_false(heft_dtype_can_cast(unknown[i], HEFT_F32) ||
                     heft_dtype_can_cast(HEFT_F32, unknown[i]));
        assert_false(heft_dtype_cast(to, unknown[i], from, HEFT_F32, 1));
        assert_false(heft_dtype_cast(to, HEFT_F32, from, unknown[i], 1));
        assert_false(heft_dtype_to_f64(&number, unknown[i], from, 0, 1));
    }
    assert_int_equal(heft_dtype_find((heft_str){ NULL, 0 }), HEFT_UNTYPED);
}

static void writes_to_parts_that_do_not_exist_are_refused(void **state)
{
    static const uint64_t dims[] = { 4 };
    heft_test_sink sink;
    heft_writer *w;
    heft_error err;
    uint32_t part;
    (void)state;
    heft_assert_ok(heft_writer_open(&w, heft_format_find(HEFT_STR("mag")),
                                    heft_test_sink_init(&sink, false), NULL, &err),
                   &err);
    heft_assert_fails(heft_writer_add_tensor(&part, w, NULL, &err), HEFT_E_ARGUMENT, &err, "");
    heft_assert_ok(heft_writer_add_dense(&part, w, heft_test_str("w"), HEFT_U8, dims, 1, &err),
                   &err);
    heft_assert_ok(heft_writer_begin(w, &err), &err);
    for (size_t i = 0; i < HEFT_COUNT(past_end); i++) {
        heft_assert_fails(heft_writer_write(w, past_end[i], "abcd", 4, &err), HEFT_E_ARGUMENT, &err,
                          "part");
        heft_assert_fails(heft_writer_write(w, past_end[i], NULL, 0, &err), HEFT_E_ARGUMENT, &err,
                          "no part");
    }
    heft_assert_ok(heft_writer_write(w, part, "abcd", 4, &err), &err);
    heft_assert_ok(heft_writer_finish(w, &err), &err);
    heft_test_sink_free(&sink);
}

static void null_formats_paths_and_sources_are_refused(void **state)
{
    heft_source *source = NULL;
    heft_sink *sink = NULL;
    heft_file *f;
    heft_error err;
    (void)state;
    assert_null(heft_format_find((heft_str){ NULL, 0 }));
    assert_null(heft_format_for_path(NULL));
    assert_string_equal(heft_format_name(NULL), "");
    assert_string_equal(heft_format_title(NULL), "");
    assert_string_equal(heft_format_suffixes(NULL), "");
    assert_string_equal(heft_format_versions(NULL), "");
    assert_int_equal(heft_format_caps(NULL), 0);
    assert_false(heft_format_can_split(NULL));
    heft_assert_fails(heft_file_open(&f, NULL, NULL, &err), HEFT_E_ARGUMENT, &err,
                      "the path to open is missing");
    heft_assert_fails(heft_file_open_source(&f, NULL, NULL, &err), HEFT_E_ARGUMENT, &err,
                      "there is no source");
    heft_assert_fails(heft_source_open_file(&source, NULL, HEFT_ACCESS_AUTO, &err), HEFT_E_ARGUMENT,
                      &err, "the path to open is missing");
    heft_assert_fails(heft_sink_open_file(&sink, NULL, 0, &err), HEFT_E_ARGUMENT, &err,
                      "the path to write to is missing");
    heft_assert_fails(heft_file_edit(NULL, NULL, NULL, &err), HEFT_E_ARGUMENT, &err,
                      "the path of the file to edit is missing");
    heft_assert_fails(heft_file_append(NULL, NULL, NULL, NULL, &err), HEFT_E_ARGUMENT, &err,
                      "the path of the file to append to is missing");
}

/* The first error is reported: with other options a path may be all right. */
static void options_are_checked_before_other_arguments(void **state)
{
    heft_edit_options edit = HEFT_EDIT_OPTIONS_INIT;
    heft_append_options append = HEFT_APPEND_OPTIONS_INIT;
    heft_error err;
    (void)state;
    edit.size = append.size = 1;
    heft_assert_fails(heft_file_edit(NULL, NULL, &edit, &err), HEFT_E_ARGUMENT, &err,
                      "invalid size");
    heft_assert_fails(heft_file_append(NULL, NULL, NULL, &append, &err), HEFT_E_ARGUMENT, &err,
                      "invalid size");
}

/* A struct of the caller that is shorter than the member with the size. */
static const size_t too_short = 1;

static void options_of_an_invalid_size_are_refused(void **state)
{
    heft_test_sink sink;
    heft_doctor *doctor;
    heft_edit *edit;
    heft_file *joined;
    heft_error err;
    fixture x;
    uint32_t appended;
    const void *bad = &too_short;
    (void)state;
    begin(&x);
    const heft_file *const files[] = { x.f };
    heft_assert_fails(heft_file_verify(NULL, x.f, bad, &err), HEFT_E_ARGUMENT, &err,
                      "invalid size");
    heft_assert_fails(heft_file_join(&joined, files, 1, bad, &err), HEFT_E_ARGUMENT, &err,
                      "invalid size");
    assert_null(joined);
    heft_assert_fails(heft_file_split(x.f, heft_format_find(HEFT_STR("ztensor")), bad, &err),
                      HEFT_E_ARGUMENT, &err, "invalid size");
    heft_assert_fails(heft_append_plan(&edit, x.f, x.f, bad, &err), HEFT_E_ARGUMENT, &err,
                      "invalid size");
    assert_null(edit);
    heft_test_sink_init(&sink, false);
    heft_assert_fails(heft_append_convert(&appended, x.f, x.f, &sink.base, bad, &err),
                      HEFT_E_ARGUMENT, &err, "invalid size");
    assert_true(sink.discarded && !appended);
    heft_test_sink_free(&sink);
    heft_source *source;
    heft_assert_ok(heft_source_open_memory(&source, x.bytes.p, x.bytes.len, &err), &err);
    heft_assert_fails(heft_doctor_open(&doctor, source, bad, &err), HEFT_E_ARGUMENT, &err,
                      "invalid size");
    assert_null(doctor);
    end(&x);
}

static void hosts_of_an_invalid_size_are_refused(void **state)
{
    heft_host host = { .size = 1 };
    heft_edit_options o = HEFT_EDIT_OPTIONS_INIT;
    heft_doctor_options examine = HEFT_DOCTOR_OPTIONS_INIT;
    heft_source *source;
    heft_signature *signature;
    heft_doctor *doctor;
    heft_edit *edit;
    heft_error err;
    fixture x;
    (void)state;
    begin(&x);
    o.host = examine.host = &host;
    heft_assert_fails(heft_edit_plan(&edit, x.f, &o, &err), HEFT_E_ARGUMENT, &err, "host");
    assert_null(edit);
    heft_assert_fails(heft_signature_read(&signature, HEFT_STR("{}"), &host, &err), HEFT_E_ARGUMENT,
                      &err, "host");
    assert_null(signature);
    heft_assert_ok(heft_source_open_memory(&source, x.bytes.p, x.bytes.len, &err), &err);
    heft_assert_fails(heft_doctor_open(&doctor, source, &examine, &err), HEFT_E_ARGUMENT, &err,
                      "host");
    assert_null(doctor);
    end(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_past_the_end_are_empty),
        cmocka_unit_test(parts_past_the_end_are_empty),
        cmocka_unit_test(verify_refuses_a_share_that_there_is_not),
        cmocka_unit_test(parts_of_the_file_follow_the_parts_of_tensors),
        cmocka_unit_test(shards_metadata_notices_and_ids_past_the_end_are_empty),
        cmocka_unit_test(tokens_and_settings_past_the_end_are_empty),
        cmocka_unit_test(unknown_parameter_keys_are_not_found),
        cmocka_unit_test(unknown_element_types_cannot_be_cast),
        cmocka_unit_test(writes_to_parts_that_do_not_exist_are_refused),
        cmocka_unit_test(null_formats_paths_and_sources_are_refused),
        cmocka_unit_test(options_are_checked_before_other_arguments),
        cmocka_unit_test(options_of_an_invalid_size_are_refused),
        cmocka_unit_test(hosts_of_an_invalid_size_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
