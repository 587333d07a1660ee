/* test_gguf_texts.c - metadata of GGUF files from the texts of a model: values, and refusals.
 * tests/py/check_gguf_runs.py has llama.cpp for a judge. */
#include "heft_test.h"

#define LLAMA                                                                               \
    "{\"model_type\":\"llama\",\"num_hidden_layers\":1,\"max_position_embeddings\":64,"     \
    "\"hidden_size\":32,\"num_attention_heads\":2,\"intermediate_size\":64,\"hidden_act\":" \
    "\"silu\""
#define CONFIG LLAMA ",\"rms_norm_eps\":1e-05}"
#define PRE    "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false}"
#define BPE \
    "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},\"merges\":[\"a b\"]},"

/* A text in the place of those of a small model. */
typedef struct texts {
    heft_gguf_text text;
    const char *content;
    const char *other; /* a second text, of the tokenizer, or NULL */
} texts;

static heft_gguf_options options_of(const texts *t)
{
    heft_gguf_options opt = HEFT_GGUF_OPTIONS_INIT;
    opt.texts[HEFT_GGUF_CONFIG] = heft_test_str(CONFIG);
    if (t->other)
        opt.texts[HEFT_GGUF_TOKENIZER] = heft_test_str(t->other);
    if (t->content)
        opt.texts[t->text] = heft_test_str(t->content);
    return opt;
}

static heft_gguf_metadata *open_texts(const texts *t)
{
    heft_error err;
    heft_gguf_metadata *m;
    heft_gguf_options opt = options_of(t);
    heft_assert_ok(heft_gguf_metadata_open(&m, &opt, NULL, &err), &err);
    return m;
}

static const heft_value *find(const heft_gguf_metadata *m, const char *key)
{
    size_t count;
    const heft_value *v = heft_gguf_metadata_values(&count, m);
    for (size_t i = 0; i < count; i++)
        if (v[i].key.len == strlen(key) && !memcmp(v[i].key.ptr, key, v[i].key.len))
            return &v[i];
    fail_msg("there is no %s", key);
    return NULL;
}

/* ---- values ---- */

static void keys_are_made_of_settings(void **state)
{
    (void)state;
    heft_gguf_metadata *m = open_texts(&(texts){ .content = NULL });
    const heft_value *eps = find(m, "llama.attention.layer_norm_rms_epsilon");
    assert_int_equal(find(m, "llama.block_count")->as.u, 1);
    assert_int_equal(find(m, "llama.rope.dimension_count")->as.u, 16);
    assert_int_equal(find(m, "llama.attention.head_count_kv")->as.u, 2);
    assert_int_equal(eps->stored, HEFT_F32);
    assert_true((float)eps->as.f == 1e-5F);
    assert_false(heft_gguf_metadata_has_tokenizer(m));
    assert_null(heft_gguf_metadata_note(m, 0).ptr);
    heft_gguf_metadata_close(m);
    heft_gguf_metadata_close(NULL);
}

static void settings_of_a_part_count_first(void **state)
{
    (void)state;
    const texts t = {
        HEFT_GGUF_CONFIG,
        "{\"model_type\":\"gemma3\",\"hidden_size\":1,\"text_config\":{\"model_type\":"
        "\"gemma3_text\",\"hidden_size\":8,\"num_hidden_layers\":3,"
        "\"intermediate_size\":4,\"sliding_window\":512}}",
        NULL
    };
    heft_gguf_metadata *m = open_texts(&t);
    assert_int_equal(find(m, "gemma3.embedding_length")->as.u, 8);
    assert_int_equal(find(m, "gemma3.attention.head_count")->as.u, 8); /* transformers' default */
    assert_true(find(m, "gemma3.rope.freq_base")->as.f == 1000000);
    heft_gguf_metadata_close(m);
}

static void rows_without_a_token_are_padded(void **state)
{
    (void)state;
    const texts t = { HEFT_GGUF_CONFIG, LLAMA ",\"rms_norm_eps\":1,\"vocab_size\":5}",
                      BPE PRE "}" };
    heft_gguf_metadata *m = open_texts(&t);
    const heft_value *tokens = find(m, "tokenizer.ggml.tokens");
    assert_int_equal(tokens->as.container.count, 5);
    assert_memory_equal(tokens[4].as.s.ptr, "[PAD3]", 6);
    assert_int_equal(find(m, "llama.vocab_size")->as.u, 5);
    assert_int_equal(find(m, "tokenizer.ggml.merges")->as.container.count, 1);
    assert_memory_equal(find(m, "tokenizer.ggml.pre")->as.s.ptr, "gpt-2", 5);
    assert_true(heft_gguf_metadata_has_tokenizer(m));
    heft_gguf_metadata_close(m);
}

static void a_named_pre_tokenizer_replaces_the_steps(void **state)
{
    (void)state;
    heft_error err;
    heft_gguf_metadata *m;
    heft_gguf_options opt = options_of(&(texts){ .other = BPE "\"pre_tokenizer\":null}" });
    opt.pre = "qwen2";
    heft_assert_ok(heft_gguf_metadata_open(&m, &opt, NULL, &err), &err);
    assert_memory_equal(find(m, "tokenizer.ggml.pre")->as.s.ptr, "qwen2", 5);
    heft_gguf_metadata_close(m);
}

static void a_window_that_is_not_computed_is_noted(void **state)
{
    (void)state;
    const texts t = { HEFT_GGUF_CONFIG, LLAMA ",\"rms_norm_eps\":1,\"sliding_window\":4096}",
                      NULL };
    heft_gguf_metadata *m = open_texts(&t);
    assert_non_null(heft_gguf_metadata_note(m, 0).ptr);
    assert_null(heft_gguf_metadata_note(m, 1).ptr);
    heft_gguf_metadata_close(m);
}

static void an_id_of_no_token_is_noted(void **state)
{
    (void)state;
    const texts t = { HEFT_GGUF_GENERATION,
                      "{\"bos_token_id\":-1,\"eos_token_id\":[999,1],\"pad_token_id\":1}",
                      BPE PRE "}" };
    heft_gguf_metadata *m = open_texts(&t);
    heft_str note = heft_gguf_metadata_note(m, 0);
    assert_int_equal(find(m, "tokenizer.ggml.padding_token_id")->as.u, 1);
    assert_non_null(note.ptr);
    assert_memory_equal(note.ptr, "'eos_token_id' is the id of no token", 36);
    assert_null(heft_gguf_metadata_note(m, 1).ptr);
    heft_gguf_metadata_close(m);
}

static void long_texts_stretch_the_slow_waves(void **state)
{
    (void)state;
    const texts t = { HEFT_GGUF_CONFIG,
                      LLAMA ",\"rms_norm_eps\":1,\"rope_theta\":500000,\"rope_scaling\":{"
                            "\"rope_type\":\"llama3\",\"factor\":8,\"low_freq_factor\":1,"
                            "\"high_freq_factor\":4,\"original_max_position_embeddings\":8192}}",
                      NULL };
    heft_gguf_metadata *m = open_texts(&t);
    heft_gguf_extra extra = heft_gguf_metadata_extra(m, 0);
    assert_string_equal(extra.name, "rope_freqs.weight");
    assert_int_equal(extra.count, 8);
    assert_true(extra.values[0] == 1 && extra.values[7] == 8);
    assert_null(heft_gguf_metadata_extra(m, 1).name);
    heft_gguf_metadata_close(m);
}

static void files_have_names(void **state)
{
    (void)state;
    assert_string_equal(heft_gguf_text_file(HEFT_GGUF_PIECES), "tokenizer.model");
    assert_null(heft_gguf_text_file(HEFT_GGUF_TEXTS));
}

#define SPECIAL                                                                                   \
    "\"added_tokens\":[{\"id\":3,\"content\":\"<s>\",\"special\":true},{\"id\":4,\"content\":"    \
    "\"u\xE2\x96\x81v\"}],\"post_processor\":{\"type\":\"Sequence\",\"processors\":[{\"type\":"   \
    "\"ByteLevel\"},{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"<s>" \
    "\"}},"                                                                                       \
    "{\"Sequence\":{\"id\":\"A\"}}]}]}"

static void special_tokens_and_templates_are_found(void **state)
{
    (void)state;
    const texts t = { HEFT_GGUF_TOKENIZER_CONFIG,
                      "{\"eos_token\":{\"content\":\"ab\"},\"pad_token\":\"b\",\"chat_template\":["
                      "{\"name\":\"rag\",\"template\":\"x\"},{\"name\":\"default\",\"template\":"
                      "\"y\"}]}",
                      BPE PRE "," SPECIAL "}" };
    heft_gguf_metadata *m = open_texts(&t);
    const heft_value *types = find(m, "tokenizer.ggml.token_type");
    const int32_t expected[] = { 1, 1, 1, 3, 4 };
    assert_int_equal(find(m, "tokenizer.ggml.bos_token_id")->as.u, 3);
    assert_int_equal(find(m, "tokenizer.ggml.eos_token_id")->as.u, 2);
    assert_int_equal(find(m, "tokenizer.ggml.padding_token_id")->as.u, 1);
    assert_true(find(m, "tokenizer.ggml.add_bos_token")->as.b);
    assert_false(find(m, "tokenizer.ggml.add_eos_token")->as.b);
    assert_memory_equal(find(m, "tokenizer.chat_template")->as.s.ptr, "y", 1);
    assert_int_equal(types->as.array.count, 5);
    assert_memory_equal(types->as.array.ptr, expected, sizeof expected);
    assert_memory_equal(find(m, "tokenizer.ggml.tokens")[5].as.s.ptr, "u v", 3);
    heft_gguf_metadata_close(m);
}

/* ---- refusals ---- */

typedef struct refusal {
    texts texts;
    heft_status status;
    const char *words;
} refusal;

#define REFUSED(text, content, words)                 \
    {                                                 \
        { text, content, NULL }, HEFT_E_FORMAT, words \
    }
#define TOKENIZER(content, words)                  \
    {                                              \
        { .other = content }, HEFT_E_FORMAT, words \
    }
#define UNSUPPORTED(text, content, words)                  \
    {                                                      \
        { text, content, NULL }, HEFT_E_UNSUPPORTED, words \
    }

static const refusal refusals[] = {
    REFUSED(HEFT_GGUF_CONFIG, "{", "in 'config.json'"),
    REFUSED(HEFT_GGUF_CONFIG, "{}", "lacks model_type"),
    REFUSED(HEFT_GGUF_CONFIG, LLAMA "}", "lacks 'rms_norm_eps'"),
    REFUSED(HEFT_GGUF_CONFIG, LLAMA ",\"rms_norm_eps\":\"x\"}", "'rms_norm_eps' is not a number"),
    REFUSED(HEFT_GGUF_CONFIG, LLAMA ",\"rms_norm_eps\":1,\"head_dim\":-1}",
            "not a number in range"),
    REFUSED(HEFT_GGUF_CONFIG, LLAMA ",\"rms_norm_eps\":1,\"rope_scaling\":{\"type\":\"linear\"}}",
            "lacks a positive factor"),
    REFUSED(HEFT_GGUF_CONFIG,
            LLAMA ",\"rms_norm_eps\":1,\"rope_scaling\":{\"type\":\"llama3\",\"factor\":8,"
                  "\"low_freq_factor\":4,\"high_freq_factor\":1}}",
            "impossible numbers"),
    REFUSED(HEFT_GGUF_CONFIG,
            LLAMA ",\"rms_norm_eps\":1,\"original_max_position_embeddings\":32,\"rope_scaling\":{"
                  "\"type\":\"longrope\",\"long_factor\":[1]}}",
            "long_factor is not a list of 8"),
    REFUSED(HEFT_GGUF_CONFIG,
            LLAMA ",\"rms_norm_eps\":1,\"rope_scaling\":{\"type\":\"yarn\",\"factor\":4,"
                  "\"original_max_position_embeddings\":8,\"attention_factor\":-1}}",
            "impossible numbers"),
    REFUSED(HEFT_GGUF_CONFIG,
            LLAMA ",\"rms_norm_eps\":1,\"rope_scaling\":{\"type\":\"yarn\",\"factor\":4,"
                  "\"original_max_position_embeddings\":8,\"attention_factor\":1e999}}",
            "impossible numbers"),
    REFUSED(HEFT_GGUF_CONFIG,
            LLAMA ",\"rms_norm_eps\":1,\"rope_scaling\":{\"type\":\"yarn\",\"factor\":4,"
                  "\"original_max_position_embeddings\":8,\"attention_factor\":\"x\"}}",
            "impossible numbers"),
    UNSUPPORTED(HEFT_GGUF_CONFIG, "{\"model_type\":\"mamba\"}", "'mamba'"),
    UNSUPPORTED(HEFT_GGUF_CONFIG, LLAMA ",\"rms_norm_eps\":1,\"hidden_act\":\"relu\"}",
                "llama.cpp computes 'silu'"),
    UNSUPPORTED(HEFT_GGUF_CONFIG, LLAMA ",\"rms_norm_eps\":1,\"rope_scaling\":{\"type\":\"x\"}}",
                "rotary scaling 'x'"),
    TOKENIZER("[]", "in 'tokenizer.json'"),
    TOKENIZER("{\"model\":{\"vocab\":[[\"a\"]]}}", "the score of a token"),
    TOKENIZER("{\"model\":{\"vocab\":{\"a\":-1}}}", "not a non-negative integer"),
    TOKENIZER("{\"model\":{\"vocab\":{\"a\":0,\"b\":0},\"merges\":[]}}", "have the same id"),
    TOKENIZER("{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"a\":1}}}", "has two ids"),
    TOKENIZER("{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0}}," PRE "}", "has no merges"),
    TOKENIZER("{\"model\":{\"vocab\":{\"a\":70000},\"merges\":[]}}", "but there are 1 tokens"),
    TOKENIZER("{\"model\":{\"vocab\":{\"a\":0},\"merges\":[\"a\"]}}", "a merge is neither"),
    TOKENIZER("{\"model\":{\"vocab\":{\"a\":0},\"merges\":[\"a a\"]}}", "is not one of tokens"),
    TOKENIZER("{\"model\":{\"vocab\":{\"a\":0},\"merges\":[[\"a\",\"a\",\"a\"]]}}", "a merge"),
    TOKENIZER("{\"added_tokens\":[{\"id\":0}],\"model\":{\"vocab\":{\"a\":0}}}", "no content"),
    TOKENIZER("{\"added_tokens\":[0],\"model\":{\"vocab\":{\"a\":0}}}", "is not an object"),
    TOKENIZER("{\"model\":{\"vocab\":{\"a\":0},\"byte_fallback\":1}}", "true or false"),
    TOKENIZER("{\"model\":{\"vocab\":[[\"a\",1e999]]}}", "out of range"),
    { { .other = BPE "\"pre_tokenizer\":{\"type\":\"Whitespace\"}}" },
      HEFT_E_UNSUPPORTED,
      "--pre-tokenizer" },
    { { .other = BPE "\"pre_tokenizer\":null}" }, HEFT_E_UNSUPPORTED, "--pre-tokenizer" },
    { { .other = "{\"model\":{\"type\":\"WordLevel\",\"vocab\":{\"a\":0}}}" },
      HEFT_E_UNSUPPORTED,
      "of the kind 'WordLevel'" },
    { { .other = "{\"normalizer\":{\"type\":\"Precompiled\"},\"model\":{\"vocab\":[[\"a\",0]]}}" },
      HEFT_E_UNSUPPORTED,
      "tokenizer.model" },
    { { HEFT_GGUF_CONFIG, LLAMA ",\"rms_norm_eps\":1,\"vocab_size\":2}", BPE PRE "}" },
      HEFT_E_FORMAT,
      "the embedding has 2 rows" },
    { { HEFT_GGUF_CONFIG, LLAMA ",\"rms_norm_eps\":1,\"vocab_size\":4000000000}", BPE PRE "}" },
      HEFT_E_FORMAT,
      "vocab_size is 4000000000" },
    REFUSED(HEFT_GGUF_PIECES, "\x0A\x05\x0A", "in 'tokenizer.model'"),
    REFUSED(HEFT_GGUF_PIECES, "\x0F", "wire type 7"),
    REFUSED(HEFT_GGUF_PIECES, "\x18\x01", "there are no pieces"),
    REFUSED(HEFT_GGUF_PIECES, "\x08\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01", "64 bits"),
    REFUSED(HEFT_GGUF_PIECES, "\x0A\x05\x0A\x01\x61\x18\x09", "unknown kind 9"),
    REFUSED(HEFT_GGUF_PIECES, "\x0A\x03\x0A\x01\xFF", "is not UTF-8"),
    UNSUPPORTED(HEFT_GGUF_PIECES, "\x0A\x03\x0A\x01\x61\x12\x02\x18\x03", "words or characters"),
    REFUSED(HEFT_GGUF_WORDS, "a\n\xFF", "in 'vocab.txt'"),
};

static void bad_texts_are_refused_with_the_reason(void **state)
{
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(refusals); i++) {
        heft_error err;
        heft_gguf_metadata *m;
        heft_gguf_options opt = options_of(&refusals[i].texts);
        heft_status st = heft_gguf_metadata_open(&m, &opt, NULL, &err);
        heft_assert_fails(st, refusals[i].status, &err, refusals[i].words);
        assert_null(m);
    }
}

static void merges_and_vocab_need_each_other(void **state)
{
    (void)state;
    heft_error err;
    heft_gguf_metadata *m;
    heft_gguf_options opt =
        options_of(&(texts){ HEFT_GGUF_VOCAB, "{\"a\":0,\"b\":1,\"ab\":2}", NULL });
    heft_assert_ok(heft_gguf_metadata_open(&m, &opt, NULL, &err), &err);
    assert_false(heft_gguf_metadata_has_tokenizer(m));
    heft_gguf_metadata_close(m);

    opt.texts[HEFT_GGUF_MERGES] = heft_test_str("#version: 0.2\na b\n");
    heft_assert_fails(heft_gguf_metadata_open(&m, &opt, NULL, &err), HEFT_E_UNSUPPORTED, &err,
                      "the pre-tokenizer is not known");
    opt.texts[HEFT_GGUF_TOKENIZER_CONFIG] =
        heft_test_str("{\"tokenizer_class\":\"GPT2Tokenizer\"}");
    heft_assert_ok(heft_gguf_metadata_open(&m, &opt, NULL, &err), &err);
    assert_true(heft_gguf_metadata_has_tokenizer(m));
    heft_gguf_metadata_close(m);
    opt.texts[HEFT_GGUF_MERGES] = heft_test_str("a b c\n");
    heft_assert_fails(heft_gguf_metadata_open(&m, &opt, NULL, &err), HEFT_E_FORMAT, &err,
                      "in 'merges.txt'");
    opt.texts[HEFT_GGUF_MERGES] = heft_test_str("a \xFF");
    heft_assert_fails(heft_gguf_metadata_open(&m, &opt, NULL, &err), HEFT_E_FORMAT, &err,
                      "not UTF-8");
}

static void deep_texts_are_refused(void **state)
{
    (void)state;
    char deep[4096];
    heft_error err;
    heft_gguf_metadata *m;
    memset(deep, '[', sizeof deep);
    memcpy(deep, "{\"a\":", 5);
    heft_gguf_options opt = options_of(&(texts){ .content = NULL });
    for (int text = HEFT_GGUF_CONFIG; text <= HEFT_GGUF_SPECIAL_TOKENS; text++) {
        opt = options_of(&(texts){ .content = NULL });
        opt.texts[text] = (heft_str){ deep, sizeof deep };
        heft_assert_fails(heft_gguf_metadata_open(&m, &opt, NULL, &err), HEFT_E_LIMIT, &err, "64");
    }
    opt = (heft_gguf_options)HEFT_GGUF_OPTIONS_INIT;
    heft_assert_fails(heft_gguf_metadata_open(&m, &opt, NULL, &err), HEFT_E_FORMAT, &err,
                      "there is no config.json");
}

static void every_failed_allocation_is_reported_without_a_leak(void **state)
{
    (void)state;
    heft_gguf_options opt = options_of(&(texts){ .other = BPE PRE "}" });
    heft_status st = HEFT_E_NOMEM;
    for (uint32_t n = 1; st; n++) {
        heft_test_memory memory;
        heft_error err;
        heft_gguf_metadata *m;
        heft_test_memory_init(&memory, n);
        st = heft_gguf_metadata_open(&m, &opt, &memory.host, &err);
        if (st)
            heft_assert_status(st, HEFT_E_NOMEM, &err);
        heft_gguf_metadata_close(m);
        heft_assert_all_freed(&memory);
        assert_in_range(n, 1, 1000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_are_made_of_settings),
        cmocka_unit_test(settings_of_a_part_count_first),
        cmocka_unit_test(rows_without_a_token_are_padded),
        cmocka_unit_test(a_named_pre_tokenizer_replaces_the_steps),
        cmocka_unit_test(a_window_that_is_not_computed_is_noted),
        cmocka_unit_test(an_id_of_no_token_is_noted),
        cmocka_unit_test(long_texts_stretch_the_slow_waves),
        cmocka_unit_test(files_have_names),
        cmocka_unit_test(special_tokens_and_templates_are_found),
        cmocka_unit_test(bad_texts_are_refused_with_the_reason),
        cmocka_unit_test(merges_and_vocab_need_each_other),
        cmocka_unit_test(deep_texts_are_refused),
        cmocka_unit_test(every_failed_allocation_is_reported_without_a_leak),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
