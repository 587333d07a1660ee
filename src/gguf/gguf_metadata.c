/* gguf_metadata.c - metadata of a GGUF file from the texts of a model, step by step. */
#include "gguf/gguf_build.h"

#include "base/error.h"
#include "base/sized.h"
#include "base/text.h"
#include "companion/companion_text.h"

static const char *const files[HEFT_GGUF_TEXTS] = {
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
    "tokenizer.model",
    "vocab.txt",
    "chat_template.jinja",
    "1_Pooling/config.json",
};

const char *heft_gguf_text_file(uint32_t text)
{
    return text < HEFT_GGUF_TEXTS ? files[text] : NULL;
}

/* Parse the texts that are objects of settings. */
static heft_status parse_settings(heft_gguf_metadata *m)
{
    static const heft_gguf_text objects[] = { HEFT_GGUF_CONFIG, HEFT_GGUF_GENERATION,
                                              HEFT_GGUF_TOKENIZER_CONFIG, HEFT_GGUF_SPECIAL_TOKENS,
                                              HEFT_GGUF_POOLING };
    if (!m->opt.texts[HEFT_GGUF_CONFIG].ptr)
        return heft_error_plain(m->err, HEFT_E_FORMAT, "there is no config.json");
    for (size_t i = 0; i < sizeof objects / sizeof *objects; i++) {
        heft_str text = m->opt.texts[objects[i]];
        if (!text.ptr)
            continue;
        heft_status st = heft_settings_parse_json(&m->json[objects[i]], text, m->host, m->err);
        if (st)
            return heft_error_in(m->err, st, heft_lit(files[objects[i]]));
    }
    return HEFT_OK;
}

static heft_status read_all(heft_gguf_metadata *m)
{
    HEFT_TRY(parse_settings(m));
    HEFT_TRY(heft_gguf_read_config(m));
    HEFT_TRY(heft_gguf_read_tokenizer(m));
    return m->is_out_of_memory ? heft_companion_no_memory(m->err) : HEFT_OK;
}

heft_status heft_gguf_metadata_open(heft_gguf_metadata **out, const heft_gguf_options *opt,
                                    const heft_host *host, heft_error *err)
{
    heft_error own;
    err = heft_error_begin(err, &own);
    const heft_allocator *al = heft_companion_allocator(&host, err);
    *out = NULL;
    if (!al)
        return HEFT_E_ARGUMENT;
    heft_gguf_options checked = HEFT_GGUF_OPTIONS_INIT;
    HEFT_TRY(heft_sized_copy(&checked, sizeof checked, opt, err));
    heft_gguf_metadata *m = heft_alloc(al, sizeof *m, 16);
    if (!m)
        return heft_companion_no_memory(err);
    *m = (heft_gguf_metadata){
        .opt = checked, .host = host, .mem = { al, UINT64_MAX, 0 }, .err = err
    };
    m->arena.mem = &m->mem;
    heft_status st = read_all(m);
    m->err = NULL;
    if (st)
        heft_gguf_metadata_close(m);
    else
        *out = m;
    return heft_error_end(err, st);
}

void heft_gguf_metadata_close(heft_gguf_metadata *m)
{
    if (!m)
        return;
    const heft_allocator *al = m->mem.al;
    for (int i = 0; i < HEFT_GGUF_TEXTS; i++)
        heft_settings_close(m->json[i]);
    heft_vocab_close(m->vocab);
    heft_vec_free(&m->mem, &m->values, sizeof(heft_value));
    heft_vec_free(&m->mem, &m->notes, sizeof(heft_str));
    heft_vec_free(&m->mem, &m->extras, sizeof(heft_gguf_extra));
    heft_vec_free(&m->mem, &m->tokens, sizeof(heft_gguf_token));
    heft_arena_free(&m->arena);
    heft_free(al, m, sizeof *m, 16);
}

const heft_value *heft_gguf_metadata_values(size_t *count, const heft_gguf_metadata *m)
{
    *count = m->values.len;
    return m->values.ptr;
}

bool heft_gguf_metadata_has_tokenizer(const heft_gguf_metadata *m)
{
    return m->has_tokenizer;
}

heft_str heft_gguf_metadata_note(const heft_gguf_metadata *m, uint32_t i)
{
    return i < m->notes.len ? ((const heft_str *)m->notes.ptr)[i] : (heft_str){ NULL, 0 };
}

heft_gguf_extra heft_gguf_metadata_extra(const heft_gguf_metadata *m, uint32_t i)
{
    return i < m->extras.len ? ((const heft_gguf_extra *)m->extras.ptr)[i]
                             : (heft_gguf_extra){ .name = NULL };
}
