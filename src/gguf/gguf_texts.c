/* gguf_texts.c - texts of a model from the metadata of its GGUF file. */
#include "gguf/gguf_back.h"

#include "base/error.h"
#include "base/text.h"
#include "core/read/file.h"

/* Count the bytes of a text, and write it. */
static heft_status make(heft_gguf_texts *t, heft_gguf_text text,
                        heft_status (*put)(heft_gguf_texts *t, heft_out *out))
{
    heft_out counting = heft_out_counting();
    HEFT_TRY(put(t, &counting));
    uint8_t *bytes = heft_arena_alloc(&t->arena, (size_t)counting.total, 1);
    if (!bytes)
        return heft_error_no_memory(t->err, "for the texts of a model");
    heft_out out = { .buf = bytes, .cap = (size_t)counting.total };
    HEFT_TRY(put(t, &out));
    t->texts[text] = (heft_str){ (const char *)bytes, out.len };
    return out.st;
}

static heft_status make_all(heft_gguf_texts *t)
{
    HEFT_TRY(make(t, HEFT_GGUF_CONFIG, heft_gguf_put_config));
    t->refusal = heft_gguf_tokenizer_refusal(t);
    if (t->refusal)
        return HEFT_OK;
    HEFT_TRY(make(t, HEFT_GGUF_TOKENIZER, heft_gguf_put_tokenizer));
    return make(t, HEFT_GGUF_TOKENIZER_CONFIG, heft_gguf_put_tokenizer_config);
}

heft_status heft_gguf_texts_open(heft_gguf_texts **out, const heft_file *f, heft_error *err)
{
    heft_error own;
    const heft_allocator *al = f->host->allocator;
    *out = NULL;
    err = heft_error_begin(err, &own);
    heft_gguf_texts *t = heft_alloc(al, sizeof *t, 16);
    if (!t)
        return heft_error_no_memory(err, "for the texts of a model");
    *t = (heft_gguf_texts){ .f = f, .mem = { al, UINT64_MAX, 0 }, .err = err };
    t->arena.mem = &t->mem;

    heft_file_enter(f); /* metadata are mapped */
    heft_status st = make_all(t);
    st = heft_file_leave_after(f, st, err);
    t->f = NULL;
    t->err = NULL;
    if (st)
        heft_gguf_texts_close(t);
    else
        *out = t;
    return heft_error_end(err, st);
}

void heft_gguf_texts_close(heft_gguf_texts *t)
{
    if (!t)
        return;
    heft_arena_free(&t->arena);
    heft_free(t->mem.al, t, sizeof *t, 16);
}

heft_str heft_gguf_texts_get(const heft_gguf_texts *t, uint32_t text)
{
    return text < HEFT_GGUF_TEXTS ? t->texts[text] : (heft_str){ NULL, 0 };
}

/* Return whether a key after the name of the architecture is one of config.json. */
static bool is_setting(const heft_gguf_architecture *a, heft_str key)
{
    if (heft_str_begins(key, "rope.scaling.") ||
        heft_gguf_is_among(key, "rope.freq_base|rope.dimension_count|vocab_size"))
        return true;
    for (int set = 0; set < HEFT_GGUF_RULE_SETS; set++)
        for (const heft_gguf_rule *r = a->rules[set]; r && r->key; r++)
            if (heft_str_is(key, r->key))
                return true;
    return false;
}

bool heft_gguf_texts_has(const heft_gguf_texts *t, heft_str key)
{
    const char *name = t->architecture->name;
    size_t len = heft_lit(name).len;
    if (heft_str_begins(key, "tokenizer."))
        return !t->refusal;
    if (heft_str_begins(key, name) && key.len > len && key.ptr[len] == '.')
        return is_setting(t->architecture, (heft_str){ key.ptr + len + 1, key.len - len - 1 });
    if (heft_gguf_is_among(key, "rope_freqs.weight|rope_factors_long.weight|"
                                "rope_factors_short.weight"))
        return true;
    return heft_gguf_is_among(key, "general.architecture|general.type|general.file_type|"
                                   "general.quantization_version|general.alignment");
}

const char *heft_gguf_texts_refusal(const heft_gguf_texts *t)
{
    return t->refusal;
}
