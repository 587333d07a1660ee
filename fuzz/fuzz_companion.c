/* fuzz_companion.c - fuzzes the parsers of vocabularies, configurations and profiles. */
#include <string.h>

#include <heft/companion.h>
#include <heft/gguf_texts.h>
#include <heft/vocabulary.h>

#include "fuzz.h"

typedef heft_status (*vocab_reader)(heft_vocab **out, heft_str text, const heft_host *host,
                                    heft_error *err);

static void try_vocab(vocab_reader read, heft_str text)
{
    heft_vocab *v;
    if (read(&v, text, NULL, NULL)) {
        fuzz_require(!v);
        return;
    }
    for (uint32_t id = 0; id < heft_vocab_count(v); id++) {
        heft_str token = heft_vocab_at(v, id);
        fuzz_require(heft_vocab_find(v, token) <= id);
    }
    for (int i = 0; i < HEFT_SPECIALS; i++) {
        uint32_t id = heft_vocab_special(v, (heft_special)i);
        fuzz_require(id == HEFT_NONE || id < heft_vocab_count(v));
    }
    heft_vocab_close(v);
}

static void try_settings(heft_str text)
{
    heft_pipeline_component components[HEFT_PIPELINE_COMPONENTS];
    heft_settings *s;
    heft_value v;
    uint32_t found;
    if (heft_settings_parse_json(&s, text, NULL, NULL))
        return;
    if (!heft_settings_pipeline(components, &found, s, NULL))
        fuzz_require(found <= HEFT_PIPELINE_COMPONENTS);
    fuzz_use(heft_settings_find(&v, s, HEFT_STR("vocab_size")));
    fuzz_use(heft_settings_find_path(s, HEFT_STR("config.layers.0.heads")));
    for (uint32_t i = 0, count = heft_settings_value_count(s); i < count;
         i = heft_settings_next(s, i)) {
        v = heft_settings_value_at(s, i);
        fuzz_require(heft_settings_next(s, i) > i && heft_settings_next(s, i) <= count);
        fuzz_use(v.key.len);
    }
    heft_settings_close(s);
}

static void try_profile(heft_str text)
{
    heft_profile *p;
    if (heft_profile_parse_json(&p, text, NULL, NULL))
        return;
    fuzz_use(heft_profile_name(p).len);
    heft_profile_close(p);
}

/* The input in the place of each text next to a small model. */
static void try_gguf(heft_str content)
{
    for (uint32_t i = 0; i < HEFT_GGUF_TEXTS; i++) {
        heft_gguf_options opt = HEFT_GGUF_OPTIONS_INIT;
        heft_gguf_metadata *m;
        size_t count;
        opt.texts[HEFT_GGUF_CONFIG] = HEFT_STR(
            "{\"model_type\":\"gpt2\",\"n_layer\":1,\"n_positions\":8,\"n_embd\":4,"
            "\"n_head\":1,\"layer_norm_epsilon\":1,\"vocab_size\":9}");
        opt.texts[HEFT_GGUF_MERGES] = HEFT_STR("a b\n");
        opt.texts[i] = content;
        if (heft_gguf_metadata_open(&m, &opt, NULL, NULL)) {
            fuzz_require(!m);
            continue;
        }
        const heft_value *v = heft_gguf_metadata_values(&count, m);
        for (size_t k = 0; k < count; k++)
            fuzz_require(v[k].kind != HEFT_KIND_LIST || v[k].as.container.end <= count);
        heft_gguf_metadata_close(m);
    }
}

static void run(const uint8_t *data, size_t size, fuzz_script *s)
{
    (void)s;
    heft_str text = { (const char *)data, size };
    try_vocab(heft_vocab_parse_lines, text);
    try_vocab(heft_vocab_parse_json, text);
    try_settings(text);
    try_profile(text);
    try_gguf(text);
}

const fuzz_target fuzz_this = { .run = run };
