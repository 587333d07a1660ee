/* gguf_unigram.c - what tokenizer.json says of a Unigram tokenizer beside its pieces.
 *
 * llama.cpp replaces characters by a table of SentencePiece, removes extra spaces or keeps all, and
 * adds a space before a text or does not.  The steps of "normalizer" and "pre_tokenizer" that come
 * to the same are known; others are an error. */
#include "gguf/gguf_object.h"
#include "gguf/gguf_tokenizer.h"

#include "base/error.h"
#include "companion/companion_text.h"
#include "grammar/base64.h"

typedef struct steps {
    heft_str characters;   /* the table in base64; ptr NULL: none */
    bool joins, strips;    /* several spaces become one; those at the end are removed */
    bool splits;           /* at spaces, which are removed */
    bool adds, has_spaces; /* a space before a text; spaces become letters */
    bool is_unknown;
} steps;

static void read_step(steps *s, heft_gguf_object o)
{
    heft_value type = heft_gguf_member(o, "type"), v;
    heft_str regex = heft_gguf_pattern(o, "Regex");
    if (heft_gguf_is_text(&type, "Precompiled")) {
        v = heft_gguf_member(o, "precompiled_charsmap");
        s->is_unknown |= s->characters.ptr || v.kind != HEFT_KIND_STR;
        s->characters = v.kind == HEFT_KIND_STR && v.as.s.len ? v.as.s : s->characters;
    } else if (heft_gguf_is_text(&type, "Replace") && heft_str_is(regex, " {2,}")) {
        s->joins = true;
    } else if (heft_gguf_is_text(&type, "Strip") && heft_gguf_flag(o, "strip_right", true)) {
        s->strips = true;
    } else if (heft_gguf_is_text(&type, "WhitespaceSplit")) {
        s->splits = true;
    } else if (heft_gguf_is_text(&type, "Metaspace")) {
        v = heft_gguf_member(o, "prepend_scheme");
        s->has_spaces = true;
        s->adds = v.kind == HEFT_KIND_STR ? !heft_gguf_is_text(&v, "never")
                                          : heft_gguf_flag(o, "add_prefix_space", true);
    } else {
        s->is_unknown = true;
    }
}

static void read_steps(steps *s, const heft_settings *from, const char *list)
{
    if (!from)
        return;
    uint32_t at = heft_settings_find_path(from, heft_lit(list));
    if (at == HEFT_NONE) {
        read_step(s, heft_gguf_whole(from));
        return;
    }
    heft_gguf_object o = heft_gguf_object_at(from, at);
    for (uint32_t i = o.begin; i < o.end; i = heft_settings_next(from, i))
        read_step(s, heft_gguf_object_at(from, i));
}

/* A piece with a space after its first character is found across words by llama.cpp alone. */
static bool crosses_words(const heft_gguf_tokenizer *t)
{
    const heft_gguf_token *tokens = t->m->tokens.ptr;
    heft_str space = heft_lit("\xE2\x96\x81");
    for (uint32_t i = 0; i < t->m->tokens.len; i++) {
        heft_str text = tokens[i].text;
        for (size_t k = 1; tokens[i].type == HEFT_TOKEN_NORMAL && k + space.len <= text.len; k++)
            if (!memcmp(text.ptr + k, space.ptr, space.len))
                return true;
    }
    return false;
}

static heft_status add_characters(heft_gguf_tokenizer *t, heft_str text)
{
    bool is_valid;
    heft_str table = heft_base64_decode(&is_valid, &t->m->arena, text);
    if (!is_valid)
        return heft_error_plain(t->m->err, HEFT_E_FORMAT,
                                "tokenizer.json: the table of characters is not base64");
    if (!table.ptr || table.len > UINT32_MAX)
        return heft_companion_no_memory(t->m->err);
    enum { SIZE = 4 }; /* bytes that state the length of the tree; replacements follow it */
    size_t tree = table.len < SIZE ? SIZE : heft_le32((const uint8_t *)table.ptr);
    if (table.len < SIZE || tree % SIZE || tree >= table.len - SIZE)
        return heft_error_plain(t->m->err, HEFT_E_FORMAT,
                                "tokenizer.json: the table of characters is cut off");
    heft_gguf_add_array(t->m, "tokenizer.ggml.precompiled_charsmap", table.ptr, (uint32_t)table.len,
                        HEFT_U8);
    return HEFT_OK;
}

heft_status heft_gguf_shape_unigram(heft_gguf_tokenizer *t)
{
    steps s = { .joins = false };
    read_steps(&s, t->normalizer, "normalizers");
    read_steps(&s, t->pre_tokenizer, "pretokenizers");
    bool removes = s.splits || (s.joins && s.strips);
    /* llama.cpp adds a space wherever it removes some. */
    bool is_known = !s.is_unknown && s.has_spaces && (removes ? s.adds : !s.joins && !s.strips);
    if (!is_known)
        return heft_error_plain(
            t->m->err, HEFT_E_UNSUPPORTED,
            "tokenizer.json: llama.cpp has no Unigram tokenizer with these "
            "steps of \"normalizer\" and \"pre_tokenizer\"; tokenizer.model, if "
            "the model has one, says the same in another way");
    if (s.characters.ptr)
        HEFT_TRY(add_characters(t, s.characters));
    if (removes && !s.characters.ptr)
        heft_gguf_note(t->m,
                       "llama.cpp takes line breaks and tabs of a text for characters, not "
                       "for spaces as %q does",
                       heft_lit("tokenizer.json"));
    if (crosses_words(t))
        heft_gguf_note(t->m,
                       "llama.cpp finds pieces with spaces across words, which the steps of "
                       "%q keep apart",
                       heft_lit("tokenizer.json"));
    if (t->byte_fallback)
        heft_gguf_note(t->m,
                       "llama.cpp has no tokens for the bytes of unknown characters, as %q "
                       "states",
                       heft_lit("tokenizer.json"));
    heft_gguf_add_bool(t->m, "tokenizer.ggml.remove_extra_whitespaces", removes);
    t->adds_space = s.adds;
    t->knows_space = true;
    return HEFT_OK;
}
