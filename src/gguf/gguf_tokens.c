/* gguf_tokens.c - the tokenizer of a GGUF file: tokens by id, types, scores and merges. */
#include "gguf/gguf_architectures.h"
#include "gguf/gguf_tokenizer.h"

#include "base/error.h"
#include "base/text.h"
#include "companion/companion_text.h"
#include "model/float.h"
#include "model/vocab.h"

enum { SPARE_ROWS = 1 << 16 }; /* rows past the tokens that config.json alone may state */

/* ---- tokens by id ---- */

/* Return the rows of the embedding; 0: not stated. */
static uint64_t stated_rows(const heft_gguf_metadata *m)
{
    double rows;
    heft_value v = heft_gguf_config(m, "vocab_size");
    if (m->opt.rows)
        return m->opt.rows;
    return heft_gguf_number(&rows, &v) && rows > 0 && rows < UINT32_MAX ? (uint64_t)rows : 0;
}

/* Find the number of rows, and refuse one that the tokens do not fit in, or that is far more. */
static heft_status count_rows(heft_gguf_tokenizer *t, uint64_t *rows)
{
    const heft_gguf_entry *e = t->entries.ptr;
    uint64_t most = 2 * (uint64_t)t->entries.len + SPARE_ROWS, stated = stated_rows(t->m);
    *rows = stated;
    for (uint32_t i = 0; i < t->entries.len; i++) {
        if (stated && e[i].id >= stated && e[i].score != HEFT_GGUF_ADDED_SCORE)
            return heft_error_plain(t->m->err, HEFT_E_FORMAT,
                                    "token %q has the id %U, but the embedding has %U rows",
                                    e[i].text, e[i].id, stated);
        if (!stated && e[i].id >= most)
            return heft_error_plain(t->m->err, HEFT_E_FORMAT,
                                    "token %q has the id %U, but there are %U tokens", e[i].text,
                                    e[i].id, (uint64_t)t->entries.len);
        if (!stated && e[i].id >= *rows)
            *rows = e[i].id + 1;
    }
    if (!t->m->opt.rows && *rows > most)
        return heft_error_plain(t->m->err, HEFT_E_FORMAT,
                                "config.json: vocab_size is %U, but there are %U tokens", *rows,
                                (uint64_t)t->entries.len);
    return HEFT_OK;
}

/* Put an entry in its place.  An added token keeps the score of the one that it repeats. */
static heft_status place(heft_gguf_tokenizer *t, const heft_gguf_entry *e)
{
    bool is_added = e->score == HEFT_GGUF_ADDED_SCORE;
    if (e->id >= t->m->tokens.len) {
        heft_gguf_note(t->m, "added token %q has no row in the embedding and is left out", e->text);
        return HEFT_OK;
    }
    heft_gguf_token *to = (heft_gguf_token *)t->m->tokens.ptr + e->id;
    bool is_same = to->text.ptr && heft_str_eq(to->text, e->text);
    if (to->text.ptr && !is_same && to->type != HEFT_TOKEN_UNUSED && !is_added)
        return heft_error_plain(t->m->err, HEFT_E_FORMAT, "tokens %q and %q have the same id, %U",
                                to->text, e->text, e->id);
    float score = is_same && heft_str_is(t->kind, "Unigram") ? to->score : e->score;
    *to = (heft_gguf_token){ e->text, score, e->type };
    return HEFT_OK;
}

static heft_status place_all(heft_gguf_tokenizer *t)
{
    uint64_t rows;
    HEFT_TRY(count_rows(t, &rows));
    if (!heft_vec_reserve(&t->m->mem, &t->m->tokens, rows, sizeof(heft_gguf_token)))
        return heft_companion_no_memory(t->m->err);
    heft_gguf_token *tokens = t->m->tokens.ptr;
    t->m->tokens.len = (uint32_t)rows;
    memset(tokens, 0, (size_t)rows * sizeof *tokens);
    for (uint32_t i = 0; i < t->entries.len; i++)
        HEFT_TRY(place(t, (const heft_gguf_entry *)t->entries.ptr + i));

    for (uint32_t i = 0; i < rows; i++) {
        char digits[20];
        heft_str number = { digits, heft_u64_text(digits, i) };
        if (tokens[i].text.ptr)
            continue;
        tokens[i] = (heft_gguf_token){ heft_arena_join(&t->m->arena, heft_lit("[PAD"), number,
                                                       heft_lit("]")),
                                       HEFT_GGUF_ADDED_SCORE, HEFT_TOKEN_UNUSED };
        if (!tokens[i].text.ptr)
            return heft_companion_no_memory(t->m->err);
    }
    return HEFT_OK;
}

/* ---- finding tokens ---- */

static heft_status build_vocab(heft_gguf_metadata *m)
{
    uint64_t bytes = 0;
    const heft_gguf_token *tokens = m->tokens.ptr;
    for (uint32_t i = 0; i < m->tokens.len; i++)
        bytes += tokens[i].text.len;
    HEFT_TRY(heft_vocab_begin(&m->vocab, m->mem.al, m->tokens.len, bytes, m->err));
    if (m->host->entropy)
        m->host->entropy(m->vocab->key, sizeof m->vocab->key);
    for (uint32_t i = 0; i < m->tokens.len; i++)
        heft_vocab_add(m->vocab, tokens[i].text);
    HEFT_TRY(heft_vocab_end(m->vocab, false, m->err));
    for (uint32_t i = 0; i < m->tokens.len; i++) {
        uint32_t first = heft_vocab_find(m->vocab, tokens[i].text);
        if (first != i)
            return heft_error_plain(m->err, HEFT_E_FORMAT, "token %q has two ids, %U and %U",
                                    tokens[i].text, (uint64_t)first, (uint64_t)i);
    }
    return HEFT_OK;
}

/* ---- merges ---- */

static uint32_t find_joined(heft_gguf_tokenizer *t, heft_str joined)
{
    return joined.ptr ? heft_vocab_find(t->m->vocab, joined) : HEFT_NONE;
}

/* Check that merges are of tokens, and join each to "a b" as GGUF has them.  Without byte-level
 * tokens, merges become scores: the token that is made first has the highest. */
static heft_status read_merges(heft_gguf_tokenizer *t, bool to_scores)
{
    heft_gguf_token *tokens = t->m->tokens.ptr;
    const heft_gguf_merge *merge = t->merges.ptr;
    uint32_t last = HEFT_NONE;
    bool is_ordered = true;
    for (uint32_t i = 0; i < t->merges.len; i++) {
        heft_str joined = heft_arena_join(&t->m->arena, merge[i].left, merge[i].right,
                                          heft_lit(""));
        uint32_t id = find_joined(t, joined);
        if (id == HEFT_NONE || heft_vocab_find(t->m->vocab, merge[i].left) == HEFT_NONE ||
            heft_vocab_find(t->m->vocab, merge[i].right) == HEFT_NONE)
            return joined.ptr ? heft_error_plain(t->m->err, HEFT_E_FORMAT,
                                                 "merge %U of %q and %q is not one of tokens to a "
                                                 "token",
                                                 (uint64_t)i, merge[i].left, merge[i].right)
                              : heft_companion_no_memory(t->m->err);
        if (to_scores && tokens[id].score == 0 && id != last && i)
            tokens[id].score = -(float)i;
        else if (to_scores && !i)
            tokens[id].score = -0.5F;
        else if (to_scores && id != last)
            is_ordered = false;
        last = id;
    }
    if (!is_ordered)
        heft_gguf_note(t->m,
                       "%q has merges of one token at several places, of which llama.cpp knows the "
                       "first",
                       heft_lit("tokenizer.json"));
    return HEFT_OK;
}

static void add_merges(heft_gguf_tokenizer *t)
{
    const heft_gguf_merge *merge = t->merges.ptr;
    heft_gguf_add_list(t->m, "tokenizer.ggml.merges", t->merges.len);
    for (uint32_t i = 0; i < t->merges.len; i++) {
        heft_str text = heft_arena_join(&t->m->arena, merge[i].left, heft_lit(" "), merge[i].right);
        t->m->is_out_of_memory |= !text.ptr;
        heft_gguf_add(t->m, heft_value_str(heft_lit(""), text));
    }
}

/* ---- kinds of tokenizers ---- */

/* llama.cpp marks words that begin, where BERT marks those that continue. */
static heft_status mark_words(heft_gguf_tokenizer *t)
{
    heft_gguf_token *tokens = t->m->tokens.ptr;
    for (uint32_t i = 0; i < t->m->tokens.len; i++) {
        heft_str *text = &tokens[i].text;
        if (tokens[i].type == HEFT_TOKEN_CONTROL || tokens[i].type == HEFT_TOKEN_UNUSED)
            continue;
        if (heft_str_begins(*text, "##"))
            *text = (heft_str){ text->ptr + 2, text->len - 2 };
        else
            *text = heft_arena_join(&t->m->arena, heft_lit("\xE2\x96\x81"), *text, heft_lit(""));
        if (!text->ptr)
            return heft_companion_no_memory(t->m->err);
    }
    return HEFT_OK;
}

static bool setting_is(const heft_settings *s, const char *path, const char *text)
{
    heft_value v = heft_gguf_setting_at(s, heft_lit(path));
    return text ? heft_gguf_is_text(&v, text) : v.kind == HEFT_KIND_BOOL && v.as.b;
}

static void add_normaliser(heft_gguf_tokenizer *t)
{
    const heft_settings *s = t->normalizer;
    bool lower = !s || setting_is(s, "lowercase", NULL);
    heft_value v = heft_gguf_setting(t->m, HEFT_GGUF_TOKENIZER_CONFIG, "do_lower_case");
    if (!s && v.kind == HEFT_KIND_BOOL)
        lower = v.as.b;
    heft_value strip = heft_gguf_setting_at(s, heft_lit("strip_accents"));
    heft_gguf_add_bool(t->m, "tokenizer.ggml.normalizer.lowercase", lower);
    heft_gguf_add_bool(t->m, "tokenizer.ggml.normalizer.strip_accents",
                       strip.kind == HEFT_KIND_BOOL ? strip.as.b : lower);
}

static bool is_byte(heft_str text)
{
    return text.len == 6 && heft_str_begins(text, "<0x") && text.ptr[5] == '>';
}

/* Byte-pair encoding over characters, with tokens for the bytes of others: the tokenizer of
 * SentencePiece, as transformers writes it. */
static void mark_bytes(heft_gguf_tokenizer *t)
{
    heft_gguf_token *tokens = t->m->tokens.ptr;
    for (uint32_t i = 0; i < t->m->tokens.len; i++) {
        if (t->unknown.len && heft_str_eq(tokens[i].text, t->unknown))
            tokens[i].type = HEFT_TOKEN_UNKNOWN;
        else if (is_byte(tokens[i].text))
            tokens[i].type = HEFT_TOKEN_BYTE;
    }
    bool is_metaspace = setting_is(t->pre_tokenizer, "type", "Metaspace") &&
                        !setting_is(t->pre_tokenizer, "prepend_scheme", "never");
    t->adds_space = is_metaspace || setting_is(t->normalizer, "type", "Prepend") ||
                    setting_is(t->normalizer, "normalizers.0.type", "Prepend");
    t->knows_space = true;
}

static heft_status shape_bpe(heft_gguf_tokenizer *t)
{
    bool by_bytes = t->byte_fallback &&
                    heft_vocab_find(t->m->vocab, heft_lit("<0x00>")) != HEFT_NONE;
    t->model = by_bytes ? "llama" : "gpt2";
    HEFT_TRY(read_merges(t, by_bytes));
    if (!by_bytes)
        return heft_gguf_find_pre(t);
    t->has_scores = true;
    t->kind = heft_lit("pieces");
    mark_bytes(t);
    return HEFT_OK;
}

static heft_status shape(heft_gguf_tokenizer *t)
{
    t->pre = t->m->opt.pre ? t->m->opt.pre : "default";
    if (heft_str_is(t->kind, "BPE"))
        return shape_bpe(t);
    if (heft_str_is(t->kind, "WordPiece")) {
        t->model = "bert";
        add_normaliser(t);
        return mark_words(t);
    }
    t->model = heft_str_is(t->kind, "pieces") ? "llama" : "t5";
    if (!heft_str_is(t->kind, "pieces") && !heft_str_is(t->kind, "Unigram"))
        return heft_error_plain(t->m->err, HEFT_E_UNSUPPORTED,
                                "tokenizer.json: llama.cpp has no tokenizer of the kind %q",
                                t->kind);
    bool is_json = !t->m->opt.texts[HEFT_GGUF_PIECES].ptr;
    return is_json && heft_str_is(t->kind, "Unigram") ? heft_gguf_shape_unigram(t) : HEFT_OK;
}

/* ---- output ---- */

/* Return the number whose bytes are those of v, the lowest first. */
static uint32_t little_endian(uint32_t v)
{
    return heft_le32((const uint8_t *)&v);
}

static heft_status write_tokens(heft_gguf_tokenizer *t)
{
    heft_gguf_metadata *m = t->m;
    uint32_t count = m->tokens.len;
    const heft_gguf_token *tokens = m->tokens.ptr;
    uint32_t *types = heft_arena_alloc(&m->arena, count * sizeof *types, sizeof *types);
    uint32_t *scores = heft_arena_alloc(&m->arena, count * sizeof *scores, sizeof *scores);
    if (!types || !scores)
        return heft_companion_no_memory(m->err);

    heft_gguf_add_str(m, "tokenizer.ggml.model", heft_lit(t->model));
    heft_gguf_add_str(m, "tokenizer.ggml.pre", heft_lit(t->pre));
    heft_gguf_add_list(m, "tokenizer.ggml.tokens", count);
    for (uint32_t i = 0; i < count; i++) {
        types[i] = little_endian((uint32_t)tokens[i].type);
        scores[i] = little_endian(heft_f32_bits(tokens[i].score));
        heft_gguf_add(m, heft_value_str(heft_lit(""), tokens[i].text));
    }
    heft_gguf_add_array(m, "tokenizer.ggml.token_type", types, count, HEFT_I32);
    if (t->has_scores)
        heft_gguf_add_array(m, "tokenizer.ggml.scores", scores, count, HEFT_F32);
    if (heft_str_is(heft_lit(t->model), "gpt2"))
        add_merges(t);
    if (t->knows_space)
        heft_gguf_add_bool(m, "tokenizer.ggml.add_space_prefix", t->adds_space);
    return HEFT_OK;
}

/* The model of SentencePiece says more than the tokenizer.json that is made of it. */
static heft_status read_texts(heft_gguf_tokenizer *t)
{
    const heft_str *texts = t->m->opt.texts;
    if (texts[HEFT_GGUF_PIECES].ptr)
        return heft_gguf_read_pieces(t);
    if (texts[HEFT_GGUF_TOKENIZER].ptr)
        return heft_gguf_read_json_tokens(t);
    if (texts[HEFT_GGUF_VOCAB].ptr && texts[HEFT_GGUF_MERGES].ptr)
        return heft_gguf_read_vocab(t);
    return texts[HEFT_GGUF_WORDS].ptr ? heft_gguf_read_words(t) : HEFT_OK;
}

static heft_status read_tokenizer(heft_gguf_tokenizer *t)
{
    HEFT_TRY(read_texts(t));
    if (!t->entries.len)
        return HEFT_OK;
    HEFT_TRY(place_all(t));
    HEFT_TRY(build_vocab(t->m));
    HEFT_TRY(shape(t));
    if (heft_str_is(heft_lit(t->model), "gpt2") && !t->merges.len)
        return heft_error_plain(t->m->err, HEFT_E_FORMAT,
                                "the tokenizer has no merges, without which llama.cpp loads no "
                                "file");
    HEFT_TRY(write_tokens(t));
    t->m->has_tokenizer = true;
    return heft_gguf_read_special(t);
}

heft_status heft_gguf_read_tokenizer(heft_gguf_metadata *m)
{
    heft_gguf_tokenizer t = { .m = m, .unknown_id = HEFT_NONE };
    heft_status st = read_tokenizer(&t);
    uint64_t rows = m->tokens.len ? m->tokens.len : stated_rows(m);
    if (!st && rows)
        heft_gguf_add_u32(m,
                          heft_arena_join(&m->arena, heft_lit(m->architecture->name), heft_lit("."),
                                          heft_lit("vocab_size")),
                          rows);
    heft_value types = heft_gguf_config(m, "type_vocab_size");
    double count;
    if (!st && heft_gguf_number(&count, &types) && count >= 0 && count < UINT32_MAX)
        heft_gguf_add_u32(m, heft_lit("tokenizer.ggml.token_type_count"), (uint64_t)count);
    heft_vec_free(&m->mem, &t.entries, sizeof(heft_gguf_entry));
    heft_vec_free(&m->mem, &t.merges, sizeof(heft_gguf_merge));
    heft_settings_close(t.normalizer);
    heft_settings_close(t.pre_tokenizer);
    heft_settings_close(t.post_processor);
    return st;
}
