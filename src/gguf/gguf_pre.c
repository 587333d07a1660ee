/* gguf_pre.c - names of pre-tokenizers in llama.cpp, by what tokenizer.json says: its steps are
 * brought to the short form of gguf_pre.h. */
#include "gguf/gguf_pre.h"
#include "gguf/gguf_object.h"
#include "gguf/gguf_tokenizer.h"

#include "base/error.h"
#include "base/out.h"
#include "base/text.h"
#include "gguf/gguf_architectures.h"

enum { STEPS = 4096 };

/* ---- short forms ---- */

/* Write an expression with tabs and line breaks escaped: tokenizer.json has either. */
static void put_expression(heft_out *out, heft_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (c == '\r' || c == '\n' || c == '\t')
            heft_out_str(out, heft_lit(c == '\r' ? "\\r" : c == '\n' ? "\\n" : "\\t"));
        else
            heft_out_u8(out, (uint8_t)c);
    }
}

static void put_split(heft_out *out, heft_gguf_object o)
{
    heft_value behaviour = heft_gguf_member(o, "behavior");
    bool inverted = heft_gguf_flag(o, "invert", false);
    bool isolated = heft_gguf_is_text(&behaviour, "Isolated") ||
                    (heft_gguf_is_text(&behaviour, "Removed") && inverted);
    heft_str regex = heft_gguf_pattern(o, "Regex");
    heft_out_u8(out, isolated && regex.ptr ? 'S' : '?');
    put_expression(out, regex);
}

static void put_punctuation(heft_out *out, heft_gguf_object o)
{
    heft_value behaviour = heft_gguf_member(o, "behavior");
    bool together = heft_gguf_is_text(&behaviour, "Contiguous");
    bool isolated = behaviour.kind == HEFT_KIND_NULL || heft_gguf_is_text(&behaviour, "Isolated");
    heft_out_u8(out, together ? 'C' : isolated ? 'P' : '?');
}

static void put_step(heft_out *out, heft_gguf_object o)
{
    heft_value type = heft_gguf_member(o, "type");
    if (heft_gguf_is_text(&type, "Split"))
        put_split(out, o);
    else if (heft_gguf_is_text(&type, "Digits"))
        heft_out_u8(out, heft_gguf_flag(o, "individual_digits", false) ? 'D' : 'N');
    else if (heft_gguf_is_text(&type, "Punctuation"))
        put_punctuation(out, o);
    else if (heft_gguf_is_text(&type, "ByteLevel") && !heft_gguf_flag(o, "add_prefix_space", true))
        heft_out_u8(out, heft_gguf_flag(o, "use_regex", true) ? 'G' : 'B');
    else
        heft_out_u8(out, '?');
    heft_out_u8(out, '\n');
}

static void put_steps(heft_out *out, const heft_settings *s)
{
    uint32_t list = heft_settings_find_path(s, heft_lit("pretokenizers"));
    if (list == HEFT_NONE) {
        put_step(out, heft_gguf_whole(s));
        return;
    }
    heft_gguf_object o = heft_gguf_object_at(s, list);
    for (uint32_t i = o.begin; i < o.end; i = heft_settings_next(s, i))
        put_step(out, heft_gguf_object_at(s, i));
}

/* ---- rows ---- */

/* Return whether the steps of a file are those of a row, in which HEFT_GGUF_REST_OF_LINE stands
 * for the rest of a line. */
static bool fits(heft_str steps, const char *row)
{
    size_t at = 0;
    for (; *row; row++) {
        if (*row == *HEFT_GGUF_REST_OF_LINE) {
            while (at < steps.len && steps.ptr[at] != '\n')
                at++;
        } else if (at == steps.len || steps.ptr[at++] != *row) {
            return false;
        }
    }
    return at == steps.len;
}

const char *heft_gguf_pre_steps(heft_str name, bool *ignores_merges)
{
    const heft_gguf_pre_row *row = heft_gguf_pre_row_of(name);
    if (row)
        *ignores_merges = row->ignores_merges;
    return row && !heft_str_begins(heft_lit(row->steps), "S[\\r\\n]\nS\\s?[A") ? row->steps : NULL;
}

/* Without tokenizer.json the class of the tokenizer says how texts are split. */
static heft_status find_by_class(heft_gguf_tokenizer *t)
{
    heft_value v = heft_gguf_setting(t->m, HEFT_GGUF_TOKENIZER_CONFIG, "tokenizer_class");
    const heft_gguf_pre_row *row = v.kind == HEFT_KIND_STR ? heft_gguf_pre_row_of(v.as.s) : NULL;
    if (!row && heft_str_is(heft_lit(t->m->architecture->name), "gpt2"))
        row = heft_gguf_pre_row_at(0);
    if (!row)
        return heft_error_plain(
            t->m->err, HEFT_E_UNSUPPORTED,
            "without tokenizer.json the pre-tokenizer is not known; name the one "
            "of llama.cpp with --pre-tokenizer, such as qwen2");
    t->pre = row->name;
    return HEFT_OK;
}

heft_status heft_gguf_find_pre(heft_gguf_tokenizer *t)
{
    uint8_t text[STEPS];
    heft_out out = { .buf = text, .cap = sizeof text };
    t->pre = t->m->opt.pre;
    if (t->pre && !heft_gguf_pre_is_known(heft_lit(t->pre)))
        heft_gguf_note(t->m, "llama.cpp 0.5.0 does not know the pre-tokenizer %q",
                       heft_lit(t->pre));
    if (t->pre)
        return HEFT_OK;
    if (!t->m->opt.texts[HEFT_GGUF_TOKENIZER].ptr)
        return find_by_class(t);
    if (t->pre_tokenizer)
        put_steps(&out, t->pre_tokenizer);
    heft_str steps = { (const char *)text, out.st ? 0 : out.len };
    const heft_gguf_pre_row *row;
    for (size_t i = 0; !t->pre && (row = heft_gguf_pre_row_at(i)) != NULL; i++)
        if (fits(steps, row->steps) && row->ignores_merges == t->ignore_merges)
            t->pre = row->name;
    if (!t->pre)
        return heft_error_plain(
            t->m->err, HEFT_E_UNSUPPORTED,
            "tokenizer.json: no pre-tokenizer of llama.cpp is known to split "
            "texts by these steps; name one with --pre-tokenizer, such as qwen2");
    return HEFT_OK;
}
