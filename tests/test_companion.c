/* test_companion.c - tests of vocabularies, settings and profiles parsed from text. */
#include "heft_test.h"

static heft_str str(const char *s)
{
    return heft_test_str(s);
}

static void assert_token(const heft_vocab *v, uint32_t id, const char *token)
{
    heft_str got = heft_vocab_at(v, id);
    assert_int_equal(got.len, strlen(token));
    assert_memory_equal(got.ptr, token, got.len);
}

static uint32_t find(const heft_vocab *v, const char *token)
{
    return heft_vocab_find(v, heft_str_from(token));
}

/* ---- vocab.txt ------------------------------------------------------------------------------ */

static void each_line_is_a_token(void **state)
{
    heft_error err;
    heft_vocab *v;
    (void)state;
    heft_assert_ok(heft_vocab_parse_lines(&v, str("a\r\n\nb\n[CLS]\na"), NULL, &err), &err);
    assert_int_equal(heft_vocab_count(v), 5);
    assert_token(v, 0, "a");
    assert_token(v, 1, "");
    assert_token(v, 3, "[CLS]");
    assert_token(v, 4, "a");
    assert_int_equal(find(v, "a"), 0); /* the first of two equal tokens */
    assert_int_equal(find(v, ""), 1);
    assert_int_equal(find(v, "c"), HEFT_NONE);
    assert_int_equal(heft_vocab_special(v, HEFT_CLS), 3);
    assert_int_equal(heft_vocab_special(v, HEFT_SEP), HEFT_NONE);
    heft_vocab_set_special(v, HEFT_SEP, 2);
    assert_int_equal(heft_vocab_special(v, HEFT_SEP), 2);
    assert_string_equal(heft_vocab_special_name(HEFT_MASK), "mask");
    heft_vocab_close(v);
}

static void an_empty_text_has_no_tokens(void **state)
{
    heft_error err;
    heft_vocab *v;
    (void)state;
    heft_assert_ok(heft_vocab_parse_lines(&v, str(""), NULL, &err), &err);
    assert_int_equal(heft_vocab_count(v), 0);
    assert_int_equal(find(v, ""), HEFT_NONE);
    heft_vocab_close(v);
    heft_vocab_close(NULL);
}

static void the_vocabulary_of_bert_is_read(void **state)
{
    const char *shared = getenv("HEFT_SHARED");
    const char *path = heft_test_path(shared ? shared : "", "data/bert-vocab/vocab.txt");
    heft_error err;
    heft_vocab *v;
    (void)state;
    if (!shared || !heft_test_exists(path))
        skip();
    heft_bytes text = heft_test_load(path);
    heft_assert_ok(heft_vocab_parse_lines(&v, (heft_str){ (char *)text.p, text.len }, NULL, &err),
                   &err);
    assert_int_equal(heft_vocab_count(v), 30522);
    static const uint32_t ids[HEFT_SPECIALS] = { 0, 100, 101, 102, 103 };
    for (int i = 0; i < HEFT_SPECIALS; i++)
        assert_int_equal(heft_vocab_special(v, (heft_special)i), ids[i]);
    for (uint32_t i = 0; i < heft_vocab_count(v); i++) {
        heft_str token = heft_vocab_at(v, i);
        assert_int_equal(heft_vocab_find(v, token), i);
    }
    heft_vocab_close(v);
    heft_test_free(&text);
}

/* ---- tokenizer.json ------------------------------------------------------------------------- */

static void tokens_of_an_object_are_sorted_by_id(void **state)
{
    heft_error err;
    heft_vocab *v;
    (void)state;
    heft_str text = str(
        "{\"other\": [1, {\"a\": 2}],"
        "\"added_tokens\": [{\"id\": 3, \"content\": \"[MASK]\", \"special\": true},"
        " {\"content\": \"b\", \"id\": 1}],"
        "\"model\": {\"type\": \"WordPiece\","
        " \"vocab\": {\"c\": 2, \"\\u0061\": 0, \"b\": 1}}}");
    heft_assert_ok(heft_vocab_parse_json(&v, text, NULL, &err), &err);
    assert_int_equal(heft_vocab_count(v), 4);
    assert_token(v, 0, "a");
    assert_token(v, 2, "c");
    assert_token(v, 3, "[MASK]");
    assert_int_equal(heft_vocab_special(v, HEFT_MASK), 3);
    heft_vocab_close(v);
}

static void assert_special(const heft_vocab *v, const uint32_t ids[HEFT_SPECIALS])
{
    for (int i = 0; i < HEFT_SPECIALS; i++)
        assert_int_equal(heft_vocab_special(v, (heft_special)i), ids[i]);
}

/* Unigram: the id of a token is the index in the list; the order of members does not matter. */
static void tokens_of_a_list_keep_the_order_of_the_list(void **state)
{
    static const char *const texts[] = {
        "{\"added_tokens\": [{\"id\": 4, \"content\": \"<mask>\"}, {\"id\": 0, \"content\": "
        "\"<s>\"}, "
        "{\"id\": 1, \"content\": \"<pad>\"}], \"model\": {\"type\": \"Unigram\", \"unk_id\": 2, "
        "\"vocab\": [[\"<s>\", 0.0], [\"<pad>\", 0], [\"?\", -1.5e1], [\"\\u2581a\", -3.25]]}}",
        "{\"model\": {\"vocab\": [[\"<s>\", 0.0], [\"<pad>\", 0], [\"?\", -1.5e1], [\"\\u2581a\", "
        "-3]], "
        "\"unk_id\": 2}, \"added_tokens\": [{\"id\": 4, \"content\": \"<mask>\"}, {\"id\": 0, "
        "\"content\": \"<s>\"}, {\"id\": 1, \"content\": \"<pad>\"}]}",
    };
    static const uint32_t special[HEFT_SPECIALS] = { 1, 2, 0, HEFT_NONE, 4 };
    heft_error err;
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(texts); i++) {
        heft_vocab *v;
        heft_assert_ok(heft_vocab_parse_json(&v, str(texts[i]), NULL, &err), &err);
        assert_int_equal(heft_vocab_count(v), 5);
        assert_token(v, 2, "?");
        assert_token(v, 3,
                     "\xe2\x96\x81"
                     "a");
        assert_token(v, 4, "<mask>");
        assert_special(v, special);
        heft_vocab_close(v);
    }
}

static void an_id_past_the_tokens_is_not_special(void **state)
{
    heft_error err;
    heft_vocab *v;
    (void)state;
    for (int id = 0; id < 2; id++) {
        char text[100];
        snprintf(text, sizeof text, "{\"model\": {\"unk_id\": %d, \"vocab\": [[\"a\", 0]]}}", id);
        heft_assert_ok(heft_vocab_parse_json(&v, str(text), NULL, &err), &err);
        assert_int_equal(heft_vocab_special(v, HEFT_UNK), id ? HEFT_NONE : 0);
        heft_vocab_close(v);
    }
}

static void an_id_without_a_token_gets_a_name(void **state)
{
    heft_error err;
    heft_vocab *v;
    (void)state;
    heft_assert_ok(heft_vocab_parse_json(&v, str("{\"model\": {\"vocab\": {\"a\": 0, \"b\": 3}}}"),
                                         NULL, &err),
                   &err);
    assert_int_equal(heft_vocab_count(v), 4);
    assert_token(v, 1, "<unused_1>");
    assert_token(v, 2, "<unused_2>");
    assert_token(v, 3, "b");
    heft_vocab_close(v);
}

static void an_unknown_token_may_be_null(void **state)
{
    heft_error err;
    heft_vocab *v;
    (void)state;
    heft_assert_ok(heft_vocab_parse_json(&v,
                                         str("{\"model\": {\"unk_id\": null, \"vocab\": "
                                             "[[\"a\", 0]]}}"),
                                         NULL, &err),
                   &err);
    assert_int_equal(heft_vocab_special(v, HEFT_UNK), HEFT_NONE);
    heft_vocab_close(v);
}

/* BPE: merges are ignored; only added tokens and the names of WordPiece are special, and the latter
 * take precedence. */
static void tokens_of_byte_pair_encoding_are_read(void **state)
{
    static const uint32_t special[HEFT_SPECIALS] = { 4, HEFT_NONE, 3, HEFT_NONE, HEFT_NONE };
    heft_error err;
    heft_vocab *v;
    (void)state;
    heft_str text = str("{\"model\": {\"type\": \"BPE\", \"unk_token\": null, \"vocab\": "
                        "{\"\\u0120a\": 1, \"a\": 0, "
                        "\"</s>\": 2, \"[PAD]\": 4}, \"merges\": [\"\\u0120 a\", [\"x\", \"y\"]]}, "
                        "\"added_tokens\": [{\"id\": 3, \"content\": \"<s>\"}, {\"id\": 5, "
                        "\"content\": \"<pad>\"}]}");
    heft_assert_ok(heft_vocab_parse_json(&v, text, NULL, &err), &err);
    assert_int_equal(heft_vocab_count(v), 6);
    assert_token(v, 1,
                 "\xc4\xa0"
                 "a");
    assert_special(v, special);
    heft_vocab_close(v);
}

typedef struct refusal {
    const char *text, *message;
} refusal;

static void invalid_tokenizers_are_refused_with_the_reason(void **state)
{
    static const refusal refusals[] = {
        { "", "JSON" },
        { "[]", "an object is expected" },
        { "{}", "no \"model\"" },
        { "{\"model\": 1}", "an object is expected" },
        { "{\"model\": {\"vocab\": 1}}", "an object or a list is expected" },
        { "{\"model\": {\"vocab\": [\"a\"]}}", "[token, score] is expected" },
        { "{\"model\": {\"vocab\": [[1, 2]]}}", "a string is expected" },
        { "{\"model\": {\"vocab\": [[\"a\"]]}}", "a number is expected" },
        { "{\"model\": {\"vocab\": [[\"a\", 0, 1]]}}", "the end of the list is expected" },
        { "{\"model\": {\"vocab\": [[\"a\", 0]", "JSON" },
        { "{\"model\": {\"unk_id\": \"0\"}}", "\"unk_id\" is not a token id" },
        { "{\"model\": {\"unk_id\": -1}}", "\"unk_id\" is not a token id" },
        { "{\"model\": {\"vocab\": [[\"a\", 0]]}, \"added_tokens\": [{\"id\": 0, \"content\": "
          "\"b\"}]}",
          "same id" },
        { "{\"model\": {\"vocab\": {\"a\": \"0\"}}}", "a number is expected" },
        { "{\"model\": {\"vocab\": {\"a\": 0.5}}}", "is not a non-negative integer" },
        { "{\"model\": {\"vocab\": {\"a\": -1}}}", "is not a non-negative integer" },
        { "{\"model\": {\"vocab\": {\"a\": 1026}}}", "with 1 tokens an id" },
        { "{\"model\": {\"vocab\": {\"a\": 0, \"b\": 0}}}", "same id" },
        { "{\"model\": {\"vocab\": {\"a\": 1, \"b\": 18446744073709551615}}}",
          "with 2 tokens an id" },
        { "{\"added_tokens\": [1]}", "not an object" },
        { "{\"added_tokens\": [{\"id\": 1}]}", "no id or no content" },
        { "{\"added_tokens\": [{\"id\": 1, \"content\": 2}]}", "a string is expected" },
        { "{\"added_tokens\": {}}", "a list is expected" },
        { "{\"model\": {\"vocab\": {}}} x", "JSON" },
        { "{\"model\": {\"vocab\": {}}} {}", "JSON" },
        { "{\"model\": {}}", "no \"model\" with a \"vocab\"" },
        { "{\"model\": {\"vocab\": {\"a\": 0}", "JSON" },
        { "{\"model\": {\"vocab\": {\"a\": 0", "JSON" },
        { "{\"model\": {\"vocab\": {\"a\": 0}, \"x\": [", "JSON" },
        { "{\"model\": {\"vocab\": {\"a\": 0}}, \"x\": [", "JSON" },
        { "{\"model\": {\"vocab\": {\"a\": 0}}, \"added_tokens\": [{\"id\": 1,", "JSON" },
        { "{\"model\": {\"vocab\": {\"a\": 0}}, \"added_tokens\": [{\"x\": [", "JSON" },
        { "{\"added_tokens\": [{\"content\": \"a\"}]}", "no id or no content" },
        { "{\"added_tokens\": [{\"id\": \"1\"}]}", "a number is expected" },
        { "{\"added_tokens\": [[]]}", "not an object" },
        { "{\"model\": {\"unk_id\": 0.5}}", "\"unk_id\" is not a token id" },
        { "{\"model\": {\"vocab\": [1]}}", "[token, score] is expected" },
        { "{\"model\": {\"vocab\": [{}]}}", "[token, score] is expected" },
        { "{\"model\": {\"vocab\": [[\"a\", \"b\"]]}}", "a number is expected" },
        { "{\"model\": {\"vocab\": {\"a\": 1028, \"b\": 0}}}", "with 2 tokens an id" },
    };
    heft_error err;
    heft_vocab *v;
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(refusals); i++) {
        heft_assert_fails(heft_vocab_parse_json(&v, str(refusals[i].text), NULL, &err),
                          HEFT_E_FORMAT, &err, refusals[i].message);
        assert_null(v);
        assert_int_equal(heft_vocab_parse_json(&v, str(refusals[i].text), NULL, NULL),
                         HEFT_E_FORMAT);
    }
}

/* ---- config.json ---------------------------------------------------------------------------- */

static void scalars_at_the_top_level_are_settings(void **state)
{
    heft_error err;
    heft_settings *s;
    heft_value v;
    (void)state;
    heft_str text = str("{\"text\": \"a\\nb\", \"list\": [1, 2], \"int\": -12, \"real\": 1e-12,"
                        "\"yes\": true, \"nothing\": null, \"huge\": 18446744073709551615,"
                        "\"map\": {\"int\": 3}, \"int\": 7}");
    heft_assert_ok(heft_settings_parse_json(&s, text, NULL, &err), &err);
    assert_int_equal(heft_settings_count(s), 6);
    assert_true(heft_settings_find(&v, s, str("text")));
    assert_int_equal(v.kind, HEFT_KIND_STR);
    assert_memory_equal(v.as.s.ptr, "a\nb", 3);
    assert_true(heft_settings_find(&v, s, str("int")));
    assert_int_equal(v.as.i, 7);
    assert_int_equal(heft_settings_at(s, 1).as.i, -12);
    assert_true(heft_settings_find(&v, s, str("real")));
    assert_int_equal(v.kind, HEFT_KIND_STR);
    assert_memory_equal(v.as.s.ptr, "1e-12", 5);
    assert_true(heft_settings_find(&v, s, str("yes")));
    assert_true(v.kind == HEFT_KIND_BOOL && v.as.b);
    assert_true(heft_settings_find(&v, s, str("huge")));
    assert_true(v.kind == HEFT_KIND_UINT && v.as.u == UINT64_MAX);
    assert_false(heft_settings_find(&v, s, str("nothing")));
    heft_settings_close(s);
    heft_settings_close(NULL);
    assert_int_equal(heft_settings_parse_json(&s, str("[1]"), NULL, &err), HEFT_E_FORMAT);
    assert_int_equal(heft_settings_parse_json(&s, str("{\"a\": 1"), NULL, &err), HEFT_E_FORMAT);
}

static void integers_of_64_bits_are_numbers_others_text(void **state)
{
    static const struct {
        const char *text;
        heft_kind kind;
        uint64_t bits;
    } rows[] = {
        { "0", HEFT_KIND_INT, 0 },
        { "-0", HEFT_KIND_INT, 0 },
        { "-1", HEFT_KIND_INT, UINT64_MAX },
        { "9223372036854775807", HEFT_KIND_INT, INT64_MAX },
        { "9223372036854775808", HEFT_KIND_UINT, UINT64_C(1) << 63 },
        { "18446744073709551615", HEFT_KIND_UINT, UINT64_MAX },
        { "18446744073709551616", HEFT_KIND_STR, 0 },
        { "-9223372036854775807", HEFT_KIND_INT, (UINT64_C(1) << 63) + 1 },
        { "-9223372036854775809", HEFT_KIND_STR, 0 },
        { "1.0", HEFT_KIND_STR, 0 },
        { "\"7\"", HEFT_KIND_STR, 0 },
    };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        heft_error err;
        heft_settings *s;
        char text[64];
        snprintf(text, sizeof text, "{\"n\": %s}", rows[i].text);
        heft_assert_ok(heft_settings_parse_json(&s, str(text), NULL, &err), &err);
        heft_value v = heft_settings_at(s, 0);
        assert_int_equal(v.kind, rows[i].kind);
        if (v.kind != HEFT_KIND_STR)
            assert_true(v.as.u == rows[i].bits);
        assert_int_equal(heft_settings_at(s, 1).kind, HEFT_KIND_NULL);
        assert_int_equal(heft_settings_value_at(s, 1).kind, HEFT_KIND_NULL);
        assert_int_equal(heft_settings_next(s, 0), 1);
        assert_int_equal(heft_settings_next(s, 1), 1);
        heft_settings_close(s);
    }
}

static heft_value at_path(const heft_settings *s, const char *path)
{
    uint32_t i = heft_settings_find_path(s, str(path));
    if (i == HEFT_NONE)
        fail_msg("there is no %s", path);
    return heft_settings_value_at(s, i);
}

static void nested_settings_are_found_by_their_path(void **state)
{
    heft_error err;
    heft_settings *s;
    (void)state;
    heft_str text = str(
        "{\"kind\": \"gpt\", \"config\": {\"embed_dim\": 64, \"rope\": {\"theta\": 1e4},"
        "\"layers\": [{\"heads\": 4}, [7, null, true]], \"embed_dim\": 96}, \"a.b\": 1,"
        "\"a\": {\"b\": 2, \"c\": 3}, \"\": {}}");
    heft_assert_ok(heft_settings_parse_json(&s, text, NULL, &err), &err);
    assert_int_equal(at_path(s, "config.embed_dim").as.i, 96);
    assert_memory_equal(at_path(s, "config.rope.theta").as.s.ptr, "1e4", 3);
    assert_int_equal(at_path(s, "config.layers.0.heads").as.i, 4);
    assert_int_equal(at_path(s, "config.layers.1.0").as.i, 7);
    assert_int_equal(at_path(s, "config.layers.1.1").kind, HEFT_KIND_NULL);
    assert_true(at_path(s, "config.layers.1.2").as.b);
    assert_int_equal(at_path(s, "config.layers").kind, HEFT_KIND_LIST);
    assert_int_equal(at_path(s, "config.layers").as.container.count, 2);
    assert_int_equal(at_path(s, "a.b").as.i, 1); /* the longest key */
    assert_int_equal(at_path(s, "a.c").as.i, 3);
    static const char *const missing[] = {
        "",         "config.",         "config.rope.theta.x", "rope",      "config.9",
        "layers.0", "config.layers.2", "config.layers.01",    "config..x", ".",
        "kind.0"
    };
    for (size_t i = 0; i < HEFT_COUNT(missing); i++)
        if (heft_settings_find_path(s, str(missing[i])) != HEFT_NONE)
            fail_msg("there is a %s", missing[i]);
    heft_settings_close(s);
}

static void all_settings_are_visited_in_order(void **state)
{
    heft_error err;
    heft_settings *s;
    char walk[64] = "";
    (void)state;
    heft_assert_ok(heft_settings_parse_json(
                       &s, str("{\"a\": [[], {\"b\": 1}], \"c\": null, \"d\": 2}"), NULL, &err),
                   &err);
    assert_int_equal(heft_settings_value_count(s), 6);
    for (uint32_t i = 0; i < heft_settings_value_count(s); i = heft_settings_next(s, i))
        strncat(walk, heft_settings_value_at(s, i).key.ptr, heft_settings_value_at(s, i).key.len);
    assert_string_equal(walk, "acd");
    heft_value a = heft_settings_value_at(s, 0);
    assert_int_equal(a.kind, HEFT_KIND_LIST);
    assert_int_equal(a.as.container.count, 2);
    assert_int_equal(a.as.container.end, 4);
    assert_int_equal(heft_settings_value_at(s, 1).as.container.end, 2);
    assert_int_equal(heft_settings_value_at(s, 1).key.len, 0);
    assert_int_equal(heft_settings_value_at(s, 3).as.i, 1);
    assert_int_equal(heft_settings_count(s), 1); /* scalars at the top level */
    assert_int_equal(heft_settings_at(s, 0).as.i, 2);
    heft_settings_close(s);
}

/* Parse `begin` followed by `count` repetitions of `unit`. */
static heft_status parse_repeated(const char *begin, const char *unit, size_t count,
                                  heft_error *err)
{
    size_t len = strlen(begin), step = strlen(unit);
    char *text = malloc(len + count * step + 1);
    heft_settings *s;
    assert_non_null(text);
    memcpy(text, begin, len);
    for (size_t i = 0; i < count; i++)
        memcpy(text + len + i * step, unit, step);
    heft_status st = heft_settings_parse_json(&s, (heft_str){ text, len + count * step }, NULL,
                                              err);
    free(text);
    heft_settings_close(s);
    return st;
}

static void settings_nested_too_deep_or_too_many_are_refused(void **state)
{
    heft_error err;
    (void)state;
    assert_int_equal(parse_repeated("{\"a\": ", "[", 1 << 20, &err), HEFT_E_LIMIT);
    assert_non_null(strstr(err.message, "nested deeper"));
    assert_int_equal(parse_repeated("{\"a\": [1", ",1", 1 << 20, &err), HEFT_E_LIMIT);
    assert_non_null(strstr(err.message, "more than 1048576 values"));
    assert_int_equal(parse_repeated("{\"a\": ", "[", 63, &err),
                     HEFT_E_FORMAT); /* within the limit, but truncated */
    assert_int_equal(parse_repeated("{\"a\": ", "[", 64, &err), HEFT_E_LIMIT);
    /* The list is a value, too.  The last text reaches the limit and is truncated. */
    assert_int_equal(parse_repeated("{\"a\": [1", ",1", (1 << 20) - 1, &err), HEFT_E_LIMIT);
    assert_int_equal(parse_repeated("{\"a\": [1", ",1", (1 << 20) - 2, &err), HEFT_E_FORMAT);
}

static void invalid_settings_are_refused_with_the_reason(void **state)
{
    static const refusal refusals[] = {
        { "", "JSON" },
        { "[1]", "the document: an object is expected here" },
        { "1", "the document: an object is expected here" },
        { "{\"a\": 1", "JSON" },
        { "{\"a\": [}", "JSON" },
        { "{} 1", "JSON" },
        { "{} {}", "JSON" },
    };
    heft_error err;
    heft_settings *s;
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(refusals); i++) {
        heft_assert_fails(heft_settings_parse_json(&s, str(refusals[i].text), NULL, &err),
                          HEFT_E_FORMAT, &err, refusals[i].message);
        assert_null(s);
    }
}

static void the_lines_of_a_vocabulary_are_utf8(void **state)
{
    heft_error err;
    heft_vocab *v;
    (void)state;
    heft_assert_fails(heft_vocab_parse_lines(&v, str("a\nb\xFF\n"), NULL, &err), HEFT_E_FORMAT,
                      &err, "not UTF-8");
    assert_int_equal(err.offset, 3);
    assert_null(v);
    heft_assert_ok(heft_vocab_parse_lines(&v, str("\r\n\r\r\n\xC3\xA9"), NULL, &err), &err);
    assert_int_equal(heft_vocab_count(v), 3);
    assert_token(v, 0, "");
    assert_token(v, 1, "\r");
    assert_token(v, 2, "\xC3\xA9");
    heft_vocab_close(v);
}

static void a_host_without_an_allocator_is_refused_by_every_reader(void **state)
{
    heft_error err;
    heft_host host = { .size = sizeof host };
    heft_vocab *v;
    heft_settings *s;
    heft_profile *p;
    (void)state;
    heft_assert_status(heft_vocab_parse_lines(&v, str("a"), &host, &err), HEFT_E_ARGUMENT, &err);
    heft_assert_status(heft_vocab_parse_json(&v, str("{}"), &host, &err), HEFT_E_ARGUMENT, &err);
    heft_assert_status(heft_settings_parse_json(&s, str("{}"), &host, &err), HEFT_E_ARGUMENT, &err);
    heft_assert_status(heft_profile_parse_json(&p, str("{}"), &host, &err), HEFT_E_ARGUMENT, &err);
    assert_true(!v && !s && !p);
}

/* ---- profiles ------------------------------------------------------------------------------- */

static const char profile_text[] =
    "{\"name\": \"p\", \"about\": \"x\", \"sizes\": {\"n\": 3}, \"metadata\": {\"k\": true, \"i\": "
    "1, "
    "\"t\": \"v\"}, \"optional_metadata\": [\"o\"], \"vocabulary\": {\"tokens\": \"n*2\", "
    "\"special\": {\"pad\": 0}}, \"complete_in\": [\"mag *\"], \"prefixes\": [\"a.\"], "
    "\"tensors\": "
    "[{\"name\": \"l.{0..n-1}.{w|v}\", \"shape\": [2, \"n\"], \"dtype\": [\"f32\"], "
    "\"optional\": false}]}";

static void profiles_are_read(void **state)
{
    heft_error err;
    heft_profile *p;
    (void)state;
    heft_assert_ok(heft_profile_parse_json(&p, str(profile_text), NULL, &err), &err);
    assert_memory_equal(heft_profile_name(p).ptr, "p", 1);
    heft_profile_close(p);
    heft_profile_close(NULL);
}

static void invalid_profiles_are_refused_with_the_reason(void **state)
{
    static const refusal refusals[] = {
        { "[]", "an object is expected" },
        { "{\"nmae\": 1}", "no member 'nmae'" },
        { "{\"name\": 1}", "a string is expected" },
        { "{\"sizes\": {\"n\": -1}}", "size '-1' is not" },
        { "{\"sizes\": {\"n\": \"1\"}}", "a number is expected" },
        { "{\"metadata\": {\"k\": false}}", "a string, a number or true" },
        { "{\"optional_metadata\": [1]}", "a key is expected" },
        { "{\"vocabulary\": {\"size\": 1}}", "no member 'size'" },
        { "{\"vocabulary\": {\"tokens\": true}}", "a number or an expression" },
        { "{\"vocabulary\": {\"special\": {\"bos\": 1}}}", "no member 'bos'" },
        { "{\"prefixes\": [1]}", "a string is expected" },
        { "{\"tensors\": [1]}", "an object is expected" },
        { "{\"tensors\": [{}]}", "no name" },
        { "{\"tensors\": [{\"name\": \"w\", \"shape\": 3}]}", "a list is expected" },
        { "{\"tensors\": [{\"name\": \"w\", \"shape\": [null]}]}", "a string is expected" },
        { "{\"tensors\": [{\"name\": \"w\", \"dtype\": [\"f33\"]}]}", "unknown element type" },
        { "{\"tensors\": [{\"name\": \"w\", \"optional\": 1}]}", "true or false" },
        { "{\"tensors\": [{\"name\": \"w\", \"rank\": 1}]}", "no member 'rank'" },
        { "{} {}", "JSON" },
        { "{\"name\": \"x\"", "JSON" },
        { "{\"about\": 1}", "a string is expected" },
        { "{\"sizes\": []}", "an object is expected" },
        { "{\"sizes\": {\"n\": 0.5}}", "size '0.5' is not" },
        { "{\"sizes\": {\"n\": 1", "JSON" },
        { "{\"metadata\": []}", "an object is expected" },
        { "{\"metadata\": {\"k\": null}}", "a string, a number or true" },
        { "{\"metadata\": {\"k\": 1", "JSON" },
        { "{\"optional_metadata\": {}}", "a list is expected" },
        { "{\"optional_metadata\": [\"k\"", "JSON" },
        { "{\"vocabulary\": []}", "an object is expected" },
        { "{\"vocabulary\": {\"tokens\":", "JSON" },
        { "{\"vocabulary\": {\"tokens\": 1", "JSON" },
        { "{\"vocabulary\": {\"tokens\": []}}", "a number or an expression" },
        { "{\"vocabulary\": {\"special\": []}}", "an object is expected" },
        { "{\"vocabulary\": {\"special\": {\"pad\": true}}}", "a number or an expression" },
        { "{\"vocabulary\": {\"special\": {\"pad\": 1", "JSON" },
        { "{\"complete_in\": \"mag\"}", "a list is expected" },
        { "{\"complete_in\": [1]}", "a string is expected" },
        { "{\"prefixes\": [\"a\"", "JSON" },
        { "{\"tensors\": {}}", "a list is expected" },
        { "{\"tensors\": [{\"name\": \"w\"}", "JSON" },
        { "{\"tensors\": [{\"name\": \"w\"", "JSON" },
        { "{\"tensors\": [{\"name\": 1}]}", "a string is expected" },
        { "{\"tensors\": [{\"name\": \"w\", \"dtype\": \"f32\"}]}", "a list is expected" },
        { "{\"tensors\": [{\"name\": \"w\", \"dtype\": [32]}]}", "a string is expected" },
        { "{\"tensors\": [{\"name\": \"w\", \"dtype\": [\"f32\", \"f33\"]}]}",
          "unknown element type 'f33'" },
        { "{\"tensors\": [{\"name\": \"w\", \"optional\": null}]}", "true or false" },
    };
    heft_error err;
    heft_profile *p;
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(refusals); i++) {
        heft_assert_fails(heft_profile_parse_json(&p, str(refusals[i].text), NULL, &err),
                          HEFT_E_FORMAT, &err, refusals[i].message);
        assert_null(p);
    }
}

/* Check a tensor of 12 elements against dimensions given as expressions. */
static void dimension_expressions_are_evaluated(void **state)
{
    static const struct {
        const char *text;
        bool holds; /* the value is 12, the dimension of the tensor */
    } expressions[] = {
        { "12", true },
        { " 3 * 4 ", true },
        { "3*n+n-n", true },
        { "2+n*2+2", true },
        { "n*n-4", true },
        { "48/n", true },
        { "13-1/2", false },
        { "11", false },
        { "n*", false },
        { "*n", false },
        { "n n", false },
        { "3-4+13", false },
        { "1/0", false },
        { "missing", false },
        { "(n)*3", false },
        { "0x0c", false },
        { "", false },
        { "012", false },
        { "12 ", true },
        { "n*3*1", true },
        { "18446744073709551615+13", false },
        { "n-n+12", true },
        { "12-0/n", true },
        { "4611686018427387904*n+12", false },
        { "0-1+13", false },
        { "12-1*0", true },
        { "9/8/1+11", true },
        { "48/n/1", true },
        { "12-", false },
        { "12+", false },
        { "12*", false },
        { "12/", false },
        { "12 12", false },
        { "m*12", false },
        { "12*m", false },
        { "12/m", false },
        { "12+m", false },
        { "12-m", false },
        { "n.*3", false },
        { "0-18446744073709551604", false }, /* 12 modulo 2^64 */
        { "N*3", false },
        { "n_*3", false },
        { "12@", false },
        { "n[*3", false },
        { "n{*3", false },
        { "n`*3", false },
    };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(expressions); i++) {
        char text[200];
        heft_error err;
        heft_profile *p;
        heft_test_sink sink;
        heft_writer *w;
        heft_file *f;
        uint64_t dim = 12;
        uint32_t part;
        heft_verify_result result = { .notes = 0 };
        snprintf(text, sizeof text,
                 "{\"sizes\": {\"n\": 4}, \"tensors\": [{\"name\": \"w\", \"shape\": [\"%s\"]}]}",
                 expressions[i].text);
        heft_assert_ok(heft_profile_parse_json(&p, str(text), NULL, &err), &err);
        heft_assert_ok(heft_writer_open(&w, heft_format_find(HEFT_STR("embd")),
                                        heft_test_sink_init(&sink, false), NULL, &err),
                       &err);
        heft_assert_ok(heft_writer_add_dense(&part, w, str("w"), HEFT_U8, &dim, 1, &err), &err);
        heft_assert_ok(heft_writer_begin(w, &err), &err);
        heft_assert_ok(heft_writer_write(w, part, "twelve bytes", 12, &err), &err);
        heft_assert_ok(heft_writer_finish(w, &err), &err);
        heft_assert_ok(heft_test_open(&f, heft_test_sink_bytes(&sink), NULL, &err), &err);
        heft_assert_ok(heft_profile_check(&result, p, f, NULL, NULL, &err), &err);
        if ((result.faults == 0) != expressions[i].holds)
            fail_msg("%s: %u faults", expressions[i].text, result.faults);
        heft_file_close(f);
        heft_test_sink_free(&sink);
        heft_profile_close(p);
    }
}

/* ---- memory that runs out ------------------------------------------------------------------- */

static heft_status read_lines(const heft_host *host, heft_error *err)
{
    heft_vocab *v;
    heft_status st = heft_vocab_parse_lines(&v, str("a\nb\nc\n[PAD]\n"), host, err);
    heft_vocab_close(v);
    return st;
}

static heft_status read_tokenizer(const heft_host *host, heft_error *err)
{
    heft_vocab *v;
    heft_str text = str("{\"model\": {\"vocab\": {\"\\u0061\": 0, \"b\": 1, \"c\": 2}}}");
    heft_status st = heft_vocab_parse_json(&v, text, host, err);
    heft_vocab_close(v);
    return st;
}

static heft_status read_list(const heft_host *host, heft_error *err)
{
    heft_vocab *v;
    heft_str text = str("{\"added_tokens\": [{\"id\": 0, \"content\": \"a\"}], "
                        "\"model\": {\"vocab\": [[\"\\u0061\", 0], [\"b\", 1]]}}");
    heft_status st = heft_vocab_parse_json(&v, text, host, err);
    heft_vocab_close(v);
    return st;
}

static heft_status read_settings(const heft_host *host, heft_error *err)
{
    heft_settings *s;
    heft_status st = heft_settings_parse_json(
        &s, str("{\"a\": 1, \"b\": \"\\n\", \"c\": {\"d\": [2]}}"), host, err);
    heft_settings_close(s);
    return st;
}

static heft_status read_profile(const heft_host *host, heft_error *err)
{
    heft_profile *p;
    heft_status st = heft_profile_parse_json(&p, str(profile_text), host, err);
    heft_profile_close(p);
    return st;
}

static void every_failed_allocation_is_reported_without_a_leak(void **state)
{
    static heft_status (*const readers[])(const heft_host *,
                                          heft_error *) = { read_lines, read_tokenizer, read_list,
                                                            read_settings, read_profile };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(readers); i++) {
        heft_status st = HEFT_E_NOMEM;
        for (uint32_t n = 1; st; n++) {
            heft_test_memory m;
            heft_error err;
            heft_test_memory_init(&m, n);
            st = readers[i](&m.host, &err);
            assert_int_equal(st == HEFT_OK, atomic_load(&m.calls) < n);
            if (st)
                heft_assert_status(st, HEFT_E_NOMEM, &err);
            heft_assert_all_freed(&m);
            assert_in_range(n, 1, 1000);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_line_is_a_token),
        cmocka_unit_test(an_empty_text_has_no_tokens),
        cmocka_unit_test(the_vocabulary_of_bert_is_read),
        cmocka_unit_test(tokens_of_an_object_are_sorted_by_id),
        cmocka_unit_test(tokens_of_a_list_keep_the_order_of_the_list),
        cmocka_unit_test(an_id_past_the_tokens_is_not_special),
        cmocka_unit_test(an_id_without_a_token_gets_a_name),
        cmocka_unit_test(an_unknown_token_may_be_null),
        cmocka_unit_test(tokens_of_byte_pair_encoding_are_read),
        cmocka_unit_test(invalid_tokenizers_are_refused_with_the_reason),
        cmocka_unit_test(scalars_at_the_top_level_are_settings),
        cmocka_unit_test(integers_of_64_bits_are_numbers_others_text),
        cmocka_unit_test(nested_settings_are_found_by_their_path),
        cmocka_unit_test(all_settings_are_visited_in_order),
        cmocka_unit_test(settings_nested_too_deep_or_too_many_are_refused),
        cmocka_unit_test(invalid_settings_are_refused_with_the_reason),
        cmocka_unit_test(the_lines_of_a_vocabulary_are_utf8),
        cmocka_unit_test(a_host_without_an_allocator_is_refused_by_every_reader),
        cmocka_unit_test(profiles_are_read),
        cmocka_unit_test(invalid_profiles_are_refused_with_the_reason),
        cmocka_unit_test(dimension_expressions_are_evaluated),
        cmocka_unit_test(every_failed_allocation_is_reported_without_a_leak),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
