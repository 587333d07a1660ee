/* gguf_special.c - ids of special tokens, tokens around a text, and the chat template. */
#include "gguf/gguf_tokenizer.h"

#include "base/error.h"
#include "base/text.h"

/* ---- ids ---- */

typedef struct special_row {
    const char *key;    /* in GGUF */
    const char *name;   /* name of a token in texts of the tokenizer */
    const char *number; /* name of an id in the configuration of the model */
} special_row;

static const special_row specials[] = {
    { "tokenizer.ggml.bos_token_id", "bos_token", "bos_token_id" },
    { "tokenizer.ggml.eos_token_id", "eos_token", "eos_token_id" },
    { "tokenizer.ggml.unknown_token_id", "unk_token", NULL },
    { "tokenizer.ggml.seperator_token_id", "sep_token", "sep_token_id" },
    { "tokenizer.ggml.padding_token_id", "pad_token", "pad_token_id" },
    { "tokenizer.ggml.cls_token_id", "cls_token", NULL },
    { "tokenizer.ggml.mask_token_id", "mask_token", NULL },
};
enum { SPECIALS = sizeof specials / sizeof *specials, BOS = 0, EOS = 1, UNK = 2, SEP = 3, CLS = 5 };

/* Texts name a token as a string, or as an object with the string as "content". */
static heft_value token_name(const heft_gguf_metadata *m, heft_gguf_text text, const char *name)
{
    heft_value v = heft_gguf_setting(m, text, name);
    if (v.kind != HEFT_KIND_MAP)
        return v;
    uint32_t map = heft_settings_find_path(m->json[text], heft_lit(name));
    for (uint32_t i = map + 1; i < v.as.container.end; i = heft_settings_next(m->json[text], i))
        if (heft_str_is(heft_settings_value_at(m->json[text], i).key, "content"))
            return heft_settings_value_at(m->json[text], i);
    return (heft_value){ .kind = HEFT_KIND_NULL };
}

/* Return an id, or the first of a list of ids; HEFT_NONE: there is none, or it is negative, which
 * says the same, or no token has it. */
static uint32_t id_at(heft_gguf_metadata *m, heft_gguf_text text, const char *key)
{
    double id;
    heft_value v = heft_gguf_setting(m, text, key);
    if (v.kind == HEFT_KIND_LIST && v.as.container.count)
        v = heft_settings_value_at(m->json[text],
                                   heft_settings_find_path(m->json[text], heft_lit(key)) + 1);
    if (!heft_gguf_number(&id, &v) || id < 0)
        return HEFT_NONE;
    if (id < m->tokens.len)
        return (uint32_t)id;
    heft_gguf_note(m, "%q is the id of no token and is left out", heft_lit(key));
    return HEFT_NONE;
}

static uint32_t find_special(const heft_gguf_tokenizer *t, const special_row *row)
{
    static const heft_gguf_text names[] = { HEFT_GGUF_TOKENIZER_CONFIG, HEFT_GGUF_SPECIAL_TOKENS };
    static const heft_gguf_text numbers[] = { HEFT_GGUF_CONFIG, HEFT_GGUF_GENERATION };
    uint32_t id = HEFT_NONE;
    for (int i = 0; i < 2 && id == HEFT_NONE; i++) {
        heft_value v = token_name(t->m, names[i], row->name);
        if (v.kind == HEFT_KIND_STR)
            id = heft_vocab_find(t->m->vocab, v.as.s);
    }
    for (int i = 0; i < 2 && id == HEFT_NONE && row->number; i++)
        id = id_at(t->m, numbers[i], row->number);
    if (id == HEFT_NONE && row == &specials[UNK] && t->unknown.len)
        id = heft_vocab_find(t->m->vocab, t->unknown);
    if (id == HEFT_NONE && row == &specials[UNK] && t->unknown_id < t->m->tokens.len)
        id = t->unknown_id;
    return id;
}

/* The tokens of BERT are found by their usual names, too. */
static void add_ids(heft_gguf_tokenizer *t)
{
    uint32_t ids[SPECIALS];
    for (int i = 0; i < SPECIALS; i++)
        ids[i] = find_special(t, &specials[i]);
    if (t->first.len) /* the token before a text counts, whatever its name */
        ids[BOS] = heft_vocab_find(t->m->vocab, t->first);
    if (t->adds_eos && t->last.len && !heft_str_is(t->kind, "WordPiece"))
        ids[EOS] = heft_vocab_find(t->m->vocab, t->last);
    if (heft_str_is(t->kind, "WordPiece")) {
        ids[CLS] = ids[CLS] == HEFT_NONE ? heft_vocab_find(t->m->vocab, heft_lit("[CLS]"))
                                         : ids[CLS];
        ids[SEP] = ids[SEP] == HEFT_NONE ? heft_vocab_find(t->m->vocab, heft_lit("[SEP]"))
                                         : ids[SEP];
        ids[BOS] = ids[BOS] == HEFT_NONE ? ids[CLS] : ids[BOS];
        ids[EOS] = ids[EOS] == HEFT_NONE ? ids[SEP] : ids[EOS];
    }
    bool has_defaults = heft_str_is(t->kind, "pieces"); /* llama.cpp has ids for these */
    t->adds_bos = t->adds_bos && (has_defaults || ids[BOS] != HEFT_NONE);
    t->adds_eos = t->adds_eos && (has_defaults || ids[EOS] != HEFT_NONE);
    for (int i = 0; i < SPECIALS; i++)
        if (ids[i] != HEFT_NONE)
            heft_gguf_add_u32(t->m, heft_lit(specials[i].key), ids[i]);
}

/* ---- around a text ---- */

static heft_value post(const heft_settings *s, const char *prefix, size_t number, const char *rest)
{
    char text[96], digits[20];
    heft_str parts[] = { heft_lit(prefix),
                         { digits, heft_u64_text(digits, number) },
                         heft_lit(rest) };
    size_t len = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        memcpy(text + len, parts[i].ptr, parts[i].len);
        len += parts[i].len;
    }
    return heft_gguf_setting_at(s, (heft_str){ text, len });
}

/* Read a template of one text: special tokens, and the text between them. */
static bool read_template(heft_gguf_tokenizer *t, const char *prefix)
{
    enum { MOST = 8 };
    const heft_settings *s = t->post_processor;
    bool before = true, is_template = false;
    uint32_t count = 0;
    for (size_t i = 0; i < MOST; i++) {
        bool is_text = post(s, prefix, i, ".Sequence.id").kind == HEFT_KIND_STR;
        heft_value token = post(s, prefix, i, ".SpecialToken.id");
        if (is_text)
            before = false;
        else if (token.kind != HEFT_KIND_STR)
            break;
        else if (!before)
            t->last = token.as.s;
        else if (!count++)
            t->first = token.as.s;
        is_template = true;
    }
    t->adds_bos = t->first.len;
    t->adds_eos = t->last.len;
    if (count > 1)
        heft_gguf_note(t->m,
                       "llama.cpp adds only the first of the tokens that %q adds before a text",
                       heft_lit("tokenizer.json"));
    return is_template;
}

/* Read what tokenizer.json adds to a text: a template, the fixed form of BERT, or the first
 * template of a sequence. */
static void read_additions(heft_gguf_tokenizer *t)
{
    heft_value adds;
    if (t->post_processor) {
        uint32_t at = heft_settings_find_path(t->post_processor, heft_lit("cls"));
        bool is_fixed = at != HEFT_NONE;
        t->adds_bos = t->adds_eos = is_fixed;
        t->knows_additions = is_fixed || read_template(t, "single.") ||
                             read_template(t, "processors.0.single.") ||
                             read_template(t, "processors.1.single.");
    }
    if (t->knows_additions)
        return;
    bool is_bert = heft_str_is(t->kind, "WordPiece");
    t->adds_bos = is_bert || heft_str_is(t->kind, "pieces");
    t->adds_eos = is_bert;
    adds = heft_gguf_setting(t->m, HEFT_GGUF_TOKENIZER_CONFIG, "add_bos_token");
    t->adds_bos = adds.kind == HEFT_KIND_BOOL ? adds.as.b : t->adds_bos;
    adds = heft_gguf_setting(t->m, HEFT_GGUF_TOKENIZER_CONFIG, "add_eos_token");
    t->adds_eos = adds.kind == HEFT_KIND_BOOL ? adds.as.b : t->adds_eos;
}

/* ---- chat templates ---- */

/* tokenizer_config.json has one template, or a list of named ones. */
static void add_template(heft_gguf_tokenizer *t)
{
    const heft_settings *s = t->m->json[HEFT_GGUF_TOKENIZER_CONFIG];
    heft_str text = t->m->opt.texts[HEFT_GGUF_TEMPLATE];
    heft_value v = heft_gguf_setting(t->m, HEFT_GGUF_TOKENIZER_CONFIG, "chat_template");
    if (!text.ptr && v.kind == HEFT_KIND_STR)
        text = v.as.s;
    for (size_t i = 0; !text.ptr && v.kind == HEFT_KIND_LIST && i < v.as.container.count; i++) {
        heft_value name = post(s, "chat_template.", i, ".name");
        heft_value one = post(s, "chat_template.", i, ".template");
        if (heft_gguf_is_text(&name, "default") && one.kind == HEFT_KIND_STR)
            text = one.as.s;
    }
    if (text.ptr && heft_str_is_utf8(text))
        heft_gguf_add_str(t->m, "tokenizer.chat_template", text);
    else if (text.ptr)
        heft_gguf_note(t->m, "%q is not UTF-8 and is left out", heft_lit("the chat template"));
}

heft_status heft_gguf_read_special(heft_gguf_tokenizer *t)
{
    read_additions(t);
    add_ids(t);
    heft_gguf_add_bool(t->m, "tokenizer.ggml.add_bos_token", t->adds_bos);
    heft_gguf_add_bool(t->m, "tokenizer.ggml.add_eos_token", t->adds_eos);
    if (heft_str_is(t->kind, "WordPiece"))
        heft_gguf_add_bool(t->m, "tokenizer.ggml.add_sep_token", t->adds_eos);
    add_template(t);
    return HEFT_OK;
}
