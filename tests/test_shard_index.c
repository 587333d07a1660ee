/* test_shard_index.c - the JSON index of a model in several files: recognition and refusals. */
#include "heft_test.h"

#include "base/text.h"
#include "format/shard_index.h"
#include "guarded.h"

static bool is_bin(heft_str file)
{
    return heft_str_ends(file, ".bin");
}

static const heft_shard_index_kind kind = { "test/total", "test/mark", is_bin, "test", false };

/* ---- recognition ---------------------------------------------------------------------------- */

static void the_first_eight_bytes_decide_about_json(void **state)
{
    static const struct {
        const char *first;
        bool is_json;
    } rows[] = {
        { "{\"a\":1,\"", true },   { "        ", true },
        { " \t\r\n{ \t\"", true }, { "{\xC3\xA9\xE2\x82\xAC\"a", true },
        { "[\"a\":1,\"", false },  { "x{\"a\":1,", false },
        { "{\"a\x1F:1,", false },  { "{\"a\x7F:1,", false },
        { "{      \x01", false },  { "{      \x7F", false },
        { "{      ~", true },      { "\v{      ", false },
    };
    guarded g = guarded_make();
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++)
        if (heft_shard_index_is_json_object(guarded_last(&g, rows[i].first, 8)) != rows[i].is_json)
            fail_msg("row %zu", i);
    guarded_free(&g);
    for (unsigned c = 0; c < 256; c++)
        assert_int_equal(heft_shard_index_is_space((uint8_t)c),
                         c == ' ' || c == '\t' || c == '\n' || c == '\r');
}

static void the_first_shard_is_read_from_what_is_present(void **state)
{
    static const struct {
        const char *head;
        bool is_index;
        const char *first;
    } rows[] = {
        { "{\"weight_map\":{\"a\":\"x.bin\"}}", true, "x.bin" },
        { "{ \"weight_map\" : { \"a\" :\n\"x.bin\" } }", true, "x.bin" },
        { "{\"weight_map\":{\"a\\\"b\":\"x.bin\"}}", true, "x.bin" },
        { "{\"weight_map\":{\"a\":\"x\\\"y\"}}", true, "x\\\"y" },
        { "{\"m\":\"weight_map\",\"weight_map\":{\"a\":\"x.bin\"}}", true, "x.bin" },
        { "{\"m\":\"\\\"weight_map\"}                  ", true, "" },
        { "{\"weight_map\":[\"a\",\"x.bin\"]}", true, "" },
        { "{\"weight_map\":{}}", true, "" },
        { "{\"weight_map\";{\"a\":\"x.bin\"}}", true, "" },
        { "{\"weight_map\":{\"a\";\"x.bin\"}}", true, "" },
        { "{\"weight_map\":{\"a\":1}}", true, "" },
        { "{\"weight_map\":{\"a\":\"x.bin", true, "" },
        { "{\"weight_map\":{\"a\":\"x.bin\\", true, "" },
        { "{\"weight_map\":{\"a", true, "" },
        { "{\"weight_map\":", true, "" },
        { "{\"weight_map\" ", true, "" },
        { "{\"weight_map\"", false, "" },
        { "{\"weight_maq\":{\"a\":\"x.bin\"}}", false, "" },
        { "[\"weight_map\":{\"a\":\"x.bin\"}}", false, "x.bin" },
        { "{\"a\":1}", false, "" },
    };
    guarded g = guarded_make();
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        size_t len = strlen(rows[i].head);
        const uint8_t *head = guarded_last(&g, rows[i].head, len);
        if (heft_shard_index_recognise(head, len) != rows[i].is_index)
            fail_msg("row %zu is an index: %d", i, !rows[i].is_index);
        heft_str first = heft_shard_index_first_shard(head, len);
        if (!heft_str_is(first, rows[i].first))
            fail_msg("row %zu: the first shard is %.*s", i, (int)first.len, first.ptr);
    }
    guarded_free(&g);
}

static void names_of_pytorch_files_have_a_stem(void **state)
{
    (void)state;
    assert_true(heft_shard_index_is_torch_name(heft_test_str("a.bin")));
    assert_true(heft_shard_index_is_torch_name(heft_test_str("a.pt")));
    assert_true(heft_shard_index_is_torch_name(heft_test_str("a.pth")));
    assert_false(heft_shard_index_is_torch_name(heft_test_str(".bin")));
    assert_false(heft_shard_index_is_torch_name(heft_test_str(".pt")));
    assert_false(heft_shard_index_is_torch_name(heft_test_str("a.safetensors")));
    assert_false(heft_shard_index_is_torch_name(heft_test_str("bin")));
}

/* ---- parsing -------------------------------------------------------------------------------- */

typedef struct fixture {
    heft_test_memory m;
    heft_index x;
    heft_window_bytes in;
    heft_error err;
    heft_status st;
} fixture;

static void parse(fixture *f, const char *text, uint32_t fail_at)
{
    memset(&f->err, 0, sizeof f->err);
    heft_test_memory_init(&f->m, fail_at);
    heft_ix_init(&f->x, &f->m.al, NULL, (uint64_t[2]){ 0, 0 });
    f->x.err = &f->err;
    f->in = heft_window_of(text, strlen(text), &f->err);
    f->st = heft_shard_index_parse(&f->in.in, &f->x, &kind);
}

static void end(fixture *f)
{
    heft_ix_free(&f->x);
    heft_assert_all_freed(&f->m);
}

static const char complete[] =
    "{\"other\": [1], \"metadata\": {\"total_size\": 70, \"k\": \"v\", \"n\": 1, \"m\": {}},"
    "\"weight_map\": {\"a\": \"2.bin\", \"b\": \"1.bin\", \"c\": \"2.bin\"}}";

static void entries_and_files_are_listed(void **state)
{
    fixture f;
    (void)state;
    parse(&f, complete, 0);
    heft_assert_ok(f.st, &f.err);
    const heft_ix_shard_entry *entries = f.x.shard_entries.ptr;
    const heft_ix_shard *shards = f.x.shards.ptr;
    assert_int_equal(f.x.shard_entries.len, 3);
    assert_int_equal(f.x.shards.len, 2);
    assert_true(heft_str_is(shards[0].label, "1.bin") && heft_str_is(shards[1].label, "2.bin"));
    assert_true(entries[0].shard == 2 && entries[1].shard == 1 && entries[2].shard == 2);
    assert_int_equal(complete[entries[1].at + 1], 'b');
    assert_int_equal(f.x.stated_tensor_bytes, 70);
    assert_int_equal(f.x.values.len, 1);
    assert_int_equal(f.x.notes.len, 0);
    end(&f);
    heft_status st = HEFT_E_NOMEM;
    for (uint32_t n = 1; st; n++) {
        parse(&f, complete, n);
        st = f.st;
        assert_int_equal(st == HEFT_OK, atomic_load(&f.m.calls) < n);
        if (st)
            heft_assert_status(st, HEFT_E_NOMEM, &f.err);
        end(&f);
        assert_in_range(n, 1, 100);
    }
}

static void a_total_that_is_no_integer_is_noted(void **state)
{
    fixture f;
    (void)state;
    parse(&f, "{\"metadata\": {\"total_size\": 7e1}, \"weight_map\": {}}", 0);
    heft_assert_ok(f.st, &f.err);
    assert_true(f.x.stated_tensor_bytes == HEFT_UNKNOWN_LENGTH);
    assert_int_equal(f.x.notes.len, 1);
    assert_string_equal(((const heft_note *)f.x.notes.ptr)->rule, "test/total");
    end(&f);
    parse(&f, "{\"metadata\": null, \"weight_map\": {}}", 0);
    heft_assert_ok(f.st, &f.err);
    end(&f);
    parse(&f, "{\"metadata\": {\"total_size\": \"70\"}, \"weight_map\": {}}", 0);
    heft_assert_ok(f.st, &f.err);
    assert_true(f.x.stated_tensor_bytes == HEFT_UNKNOWN_LENGTH);
    end(&f);
}

static void malformed_indexes_are_refused_with_the_reason(void **state)
{
    static const struct {
        const char *text;
        heft_status st;
        const char *words;
    } rows[] = {
        { "[]", HEFT_E_FORMAT, "the index is not a JSON object" },
        { "", HEFT_E_FORMAT, "JSON" },
        { "{\"metadata\": {}}", HEFT_E_FORMAT, "the index has no weight_map" },
        { "{\"weight_map\": {}} x", HEFT_E_FORMAT, "JSON" },
        { "{\"weight_map\": {}", HEFT_E_FORMAT, "JSON" },
        { "{\"weight_map\": {}, \"x\": [", HEFT_E_FORMAT, "JSON" },
        { "{\"weight_map\": []}", HEFT_E_FORMAT, "the weight_map is not an object" },
        { "{\"weight_map\": {}, \"weight_map\": {}}", HEFT_E_FORMAT, "two members \"weight_map\"" },
        { "{\"weight_map\": {\"a\": 1}}", HEFT_E_FORMAT,
          "tensor 'a': the name of its file is not a string" },
        { "{\"weight_map\": {\"a\": \"1.bin\"", HEFT_E_FORMAT, "JSON" },
        { "{\"weight_map\": {\"a\": \"x/1.bin\"}}", HEFT_E_FORMAT, "single path component" },
        { "{\"weight_map\": {\"a\": \"x\\\\1.bin\"}}", HEFT_E_FORMAT, "single path component" },
        { "{\"weight_map\": {\"a\": \"1\\u0000.bin\"}}", HEFT_E_FORMAT, "single path component" },
        { "{\"weight_map\": {\"a\": \"\"}}", HEFT_E_FORMAT, "single path component" },
        { "{\"weight_map\": {\"a\": \".\"}}", HEFT_E_FORMAT, "single path component" },
        { "{\"weight_map\": {\"a\": \"..\"}}", HEFT_E_FORMAT, "single path component" },
        { "{\"weight_map\": {\"a\": \"1.pt\"}}", HEFT_E_UNSUPPORTED,
          "'1.pt' is not the name of a test file" },
        { "{\"metadata\": []}", HEFT_E_FORMAT, "\"metadata\" of the index is not an object" },
        { "{\"metadata\": {}, \"metadata\": {}}", HEFT_E_FORMAT, "two members \"metadata\"" },
        { "{\"metadata\": null, \"metadata\": null}", HEFT_E_FORMAT, "two members \"metadata\"" },
        { "{\"metadata\": {\"k\": [}}", HEFT_E_FORMAT, "JSON" },
        { "{\"metadata\": {\"k\": \"v\"", HEFT_E_FORMAT, "JSON" },
        { "{\"metadata\": {\"k\": \"\", \"k\": \"\"}, \"weight_map\": {}}", HEFT_E_FORMAT,
          "key 'k' occurs twice in the metadata of the index" },
    };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        fixture f;
        parse(&f, rows[i].text, 0);
        heft_assert_fails(f.st, rows[i].st, &f.err, rows[i].words);
        end(&f);
    }
}

static void a_file_name_has_255_bytes_at_most(void **state)
{
    (void)state;
    for (size_t len = 255; len <= 256; len++) {
        fixture f;
        char text[400], name[257] = "";
        memset(name, 'n', len - 4);
        memcpy(name + len - 4, ".bin", 5);
        snprintf(text, sizeof text, "{\"weight_map\": {\"a\": \"%s\"}}", name);
        parse(&f, text, 0);
        heft_assert_status(f.st, len == 255 ? HEFT_OK : HEFT_E_FORMAT, &f.err);
        end(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_eight_bytes_decide_about_json),
        cmocka_unit_test(the_first_shard_is_read_from_what_is_present),
        cmocka_unit_test(names_of_pytorch_files_have_a_stem),
        cmocka_unit_test(entries_and_files_are_listed),
        cmocka_unit_test(a_total_that_is_no_integer_is_noted),
        cmocka_unit_test(malformed_indexes_are_refused_with_the_reason),
        cmocka_unit_test(a_file_name_has_255_bytes_at_most),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
