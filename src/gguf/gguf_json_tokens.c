/* gguf_json_tokens.c - reads the tokens and merges of tokenizer.json, vocab.json and merges.txt:
 *   {"model": {"type": "BPE", "vocab": {token: id, ...}, "merges": ["a b", ["c", "d"], ...],
 *              "byte_fallback": false, "ignore_merges": false, "unk_token": token}, ...
 *    "model": {"type": "Unigram", "vocab": [[token, score], ...], "unk_id": id}, ...
 *    "added_tokens": [{"id": id, "content": token, "special": true}, ...],
 *    "normalizer": {...}, "pre_tokenizer": {...}, "post_processor": {...}}
 */
#include "gguf/gguf_tokenizer.h"

#include "base/error.h"
#include "base/text.h"
#include "companion/companion_text.h"

/* ---- vocabularies ---- */

static heft_status read_id(heft_json *j, uint64_t *id)
{
    HEFT_TRY(heft_companion_expect(j, HEFT_JSON_NUMBER, "the id of a token"));
    if (!heft_json_u64(id, j->text))
        return heft_json_fail(j, "token id %q is not a non-negative integer", j->text);
    return HEFT_OK;
}

/* Called after the opening brace. */
static heft_status read_pairs(heft_gguf_tokenizer *t, heft_json *j, bool added)
{
    while (heft_companion_next_key(j)) {
        heft_str token = j->text;
        uint64_t id = 0;
        HEFT_TRY(read_id(j, &id));
        HEFT_TRY(added ? heft_gguf_added_token(t, token, id, false)
                       : heft_gguf_add_token(t, token, id, 0, HEFT_TOKEN_NORMAL));
    }
    return j->st;
}

/* Called after the opening bracket: [token, score] each. */
static heft_status read_scored(heft_gguf_tokenizer *t, heft_json *j)
{
    heft_json_kind k;
    for (uint64_t id = 0; heft_companion_next_item(j, &k); id++) {
        double score;
        if (k != HEFT_JSON_ARRAY)
            return heft_json_fail(j, "a token of the list: [token, score] is expected here");
        HEFT_TRY(heft_companion_expect(j, HEFT_JSON_STRING, "a token of the list"));
        heft_str token = j->text;
        HEFT_TRY(heft_companion_expect(j, HEFT_JSON_NUMBER, "the score of a token"));
        heft_value v = heft_value_str(heft_lit(""), j->text);
        if (!heft_gguf_number(&score, &v))
            return heft_json_fail(j, "score %q is out of range", j->text);
        HEFT_TRY(heft_gguf_add_token(t, token, id, (float)score, HEFT_TOKEN_NORMAL));
        HEFT_TRY(heft_companion_expect(j, HEFT_JSON_ARRAY_END, "a token and its score"));
    }
    t->has_scores = true;
    return j->st;
}

static heft_status read_vocab(heft_gguf_tokenizer *t, heft_json *j)
{
    heft_json_kind k = heft_json_next(j);
    if (k == HEFT_JSON_OBJECT)
        return read_pairs(t, j, false);
    if (k == HEFT_JSON_ARRAY)
        return read_scored(t, j);
    return heft_json_fail(j, "the vocabulary: an object or a list is expected here");
}

/* ---- merges ---- */

static heft_status add_merge(heft_gguf_tokenizer *t, heft_str left, heft_str right)
{
    heft_gguf_merge merge = { left, right };
    return heft_vec_add(&t->m->mem, &t->merges, &merge, sizeof merge)
               ? HEFT_OK
               : heft_companion_no_memory(t->m->err);
}

/* Split "a b" at its only space. */
static bool split_merge(heft_str text, heft_str *left, heft_str *right)
{
    size_t at = 0, spaces = 0;
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] == ' ') {
            at = i;
            spaces++;
        }
    if (spaces != 1 || !at || at + 1 == text.len)
        return false;
    *left = (heft_str){ text.ptr, at };
    *right = (heft_str){ text.ptr + at + 1, text.len - at - 1 };
    return true;
}

/* Called after the opening bracket. */
static heft_status read_merges(heft_gguf_tokenizer *t, heft_json *j)
{
    heft_json_kind k;
    while (heft_companion_next_item(j, &k)) {
        heft_str left = j->text, right;
        if (k == HEFT_JSON_ARRAY) {
            HEFT_TRY(heft_companion_expect(j, HEFT_JSON_STRING, "a merge"));
            left = j->text;
            HEFT_TRY(heft_companion_expect(j, HEFT_JSON_STRING, "a merge"));
            right = j->text;
            HEFT_TRY(heft_companion_expect(j, HEFT_JSON_ARRAY_END, "a merge"));
        } else if (k != HEFT_JSON_STRING || !split_merge(j->text, &left, &right)) {
            return heft_json_fail(j, "a merge is neither \"a b\" nor [\"a\", \"b\"]");
        }
        HEFT_TRY(add_merge(t, left, right));
    }
    return j->st;
}

/* ---- tokenizer.json ---- */

static heft_status read_flag(heft_json *j, bool *out)
{
    heft_json_kind k = heft_json_next(j);
    *out = k == HEFT_JSON_TRUE;
    return k == HEFT_JSON_TRUE || k == HEFT_JSON_FALSE || k == HEFT_JSON_NULL
               ? HEFT_OK
               : heft_json_fail(j, "true or false is expected here");
}

static heft_status read_text(heft_json *j, heft_str *out)
{
    heft_json_kind k = heft_json_next(j);
    if (k == HEFT_JSON_STRING)
        *out = j->text;
    return k == HEFT_JSON_STRING || k == HEFT_JSON_NULL
               ? HEFT_OK
               : heft_json_fail(j, "a string is expected here");
}

static heft_status read_unknown_id(heft_gguf_tokenizer *t, heft_json *j)
{
    uint64_t id;
    heft_json_kind k = heft_json_next(j);
    if (k == HEFT_JSON_NULL)
        return HEFT_OK;
    if (k != HEFT_JSON_NUMBER || !heft_json_u64(&id, j->text) || id >= HEFT_NONE)
        return heft_json_fail(j, "\"unk_id\" is not a token id");
    t->unknown_id = (uint32_t)id;
    return HEFT_OK;
}

static heft_status read_model(heft_gguf_tokenizer *t, heft_json *j)
{
    HEFT_TRY(heft_companion_expect(j, HEFT_JSON_OBJECT, "the model"));
    while (heft_companion_next_key(j)) {
        heft_str key = j->text;
        if (heft_str_is(key, "vocab")) {
            HEFT_TRY(read_vocab(t, j));
        } else if (heft_str_is(key, "merges")) {
            HEFT_TRY(heft_companion_expect(j, HEFT_JSON_ARRAY, "the merges"));
            HEFT_TRY(read_merges(t, j));
        } else {
            HEFT_TRY(heft_str_is(key, "type")            ? read_text(j, &t->kind)
                     : heft_str_is(key, "unk_token")     ? read_text(j, &t->unknown)
                     : heft_str_is(key, "unk_id")        ? read_unknown_id(t, j)
                     : heft_str_is(key, "byte_fallback") ? read_flag(j, &t->byte_fallback)
                     : heft_str_is(key, "ignore_merges") ? read_flag(j, &t->ignore_merges)
                                                         : heft_json_skip(j, HEFT_JSON_KEY));
        }
    }
    return j->st;
}

/* Called after the opening brace. */
static heft_status read_added_token(heft_gguf_tokenizer *t, heft_json *j)
{
    heft_str token = { NULL, 0 };
    uint64_t id = UINT64_MAX;
    bool special = false;
    while (heft_companion_next_key(j)) {
        heft_str key = j->text;
        HEFT_TRY(heft_str_is(key, "id")        ? read_id(j, &id)
                 : heft_str_is(key, "content") ? read_text(j, &token)
                 : heft_str_is(key, "special") ? read_flag(j, &special)
                                               : heft_json_skip(j, HEFT_JSON_KEY));
    }
    if (j->st)
        return j->st;
    if (!token.ptr || id == UINT64_MAX)
        return heft_json_fail(j, "an added token has no id or no content");
    return heft_gguf_added_token(t, token, id, special);
}

static heft_status read_added_list(heft_gguf_tokenizer *t, heft_json *j)
{
    heft_json_kind k;
    HEFT_TRY(heft_companion_expect(j, HEFT_JSON_ARRAY, "the added tokens"));
    while (heft_companion_next_item(j, &k)) {
        if (k != HEFT_JSON_OBJECT)
            return heft_json_fail(j, "an added token is not an object");
        HEFT_TRY(read_added_token(t, j));
    }
    return j->st;
}

/* Read an object to settings, or leave NULL in place of null. */
static heft_status read_object(heft_gguf_tokenizer *t, heft_json *j, heft_settings **out)
{
    heft_json_kind k = heft_json_next(j);
    const char *begin = j->token;
    HEFT_TRY(j->st);
    HEFT_TRY(heft_json_skip(j, k));
    if (k != HEFT_JSON_OBJECT || *out)
        return HEFT_OK;
    heft_str text = { begin, (size_t)(j->p - begin) };
    return heft_settings_parse_json(out, text, t->m->host, t->m->err);
}

static heft_status read_document(heft_gguf_tokenizer *t, heft_json *j)
{
    /* Added tokens replace those of the vocabulary, in whatever order they come. */
    heft_json added = *j;
    bool has_added = false;
    HEFT_TRY(heft_companion_expect(j, HEFT_JSON_OBJECT, "the document"));
    while (heft_companion_next_key(j)) {
        heft_str key = j->text;
        if (heft_str_is(key, "added_tokens")) {
            added = *j;
            has_added = true;
            HEFT_TRY(heft_json_skip(j, HEFT_JSON_KEY));
            continue;
        }
        HEFT_TRY(heft_str_is(key, "model")            ? read_model(t, j)
                 : heft_str_is(key, "normalizer")     ? read_object(t, j, &t->normalizer)
                 : heft_str_is(key, "pre_tokenizer")  ? read_object(t, j, &t->pre_tokenizer)
                 : heft_str_is(key, "post_processor") ? read_object(t, j, &t->post_processor)
                                                      : heft_json_skip(j, HEFT_JSON_KEY));
    }
    HEFT_TRY(heft_companion_expect(j, HEFT_JSON_END, "the document"));
    return has_added ? read_added_list(t, &added) : HEFT_OK;
}

static heft_json open_json(heft_gguf_tokenizer *t, heft_gguf_text text)
{
    return heft_json_open(t->m->opt.texts[text], 0, HEFT_COMPANION_DEPTH, &t->m->arena, t->m->err);
}

heft_status heft_gguf_read_json_tokens(heft_gguf_tokenizer *t)
{
    heft_json j = open_json(t, HEFT_GGUF_TOKENIZER);
    heft_status st = read_document(t, &j);
    if (!st && !t->kind.len)
        t->kind = heft_lit(t->has_scores ? "Unigram" : t->merges.len ? "BPE" : "WordPiece");
    return st ? heft_error_in(t->m->err, st, heft_lit("tokenizer.json")) : HEFT_OK;
}

/* ---- vocab.json, merges.txt ---- */

static heft_status read_merge_lines(heft_gguf_tokenizer *t, heft_str text)
{
    size_t valid = heft_utf8_valid(text.ptr, text.len);
    if (valid < text.len)
        return heft_error_set(t->m->err, HEFT_E_FORMAT, valid, "the merges are not UTF-8");
    for (size_t at = 0, end; at < text.len; at = end + 1) {
        heft_str left, right;
        for (end = at; end < text.len && text.ptr[end] != '\n'; end++)
            continue;
        heft_str line = { text.ptr + at, end - at };
        line.len -= line.len && line.ptr[line.len - 1] == '\r';
        if (!line.len || (!at && heft_str_begins(line, "#version")))
            continue;
        if (!split_merge(line, &left, &right))
            return heft_error_set(t->m->err, HEFT_E_FORMAT, at, "merge %q is not two tokens", line);
        HEFT_TRY(add_merge(t, left, right));
    }
    return HEFT_OK;
}

heft_status heft_gguf_read_vocab(heft_gguf_tokenizer *t)
{
    heft_json j = open_json(t, HEFT_GGUF_VOCAB);
    heft_status st = heft_companion_expect(&j, HEFT_JSON_OBJECT, "the vocabulary");
    if (!st)
        st = read_pairs(t, &j, false);
    if (!st)
        st = heft_companion_expect(&j, HEFT_JSON_END, "the vocabulary");
    if (st)
        return heft_error_in(t->m->err, st, heft_lit("vocab.json"));
    t->kind = heft_lit("BPE");
    st = read_merge_lines(t, t->m->opt.texts[HEFT_GGUF_MERGES]);
    return st ? heft_error_in(t->m->err, st, heft_lit("merges.txt")) : heft_gguf_read_added(t);
}

/* ---- vocab.txt ---- */

heft_status heft_gguf_read_words(heft_gguf_tokenizer *t)
{
    static const char *const special[] = { "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]" };
    heft_vocab *v;
    heft_status st = heft_vocab_parse_lines(&v, t->m->opt.texts[HEFT_GGUF_WORDS], t->m->host,
                                            t->m->err);
    if (st)
        return heft_error_in(t->m->err, st, heft_lit("vocab.txt"));
    for (uint32_t i = 0; i < heft_vocab_count(v) && !st; i++) {
        heft_gguf_token_type type = HEFT_TOKEN_NORMAL;
        heft_str token = heft_arena_copy(&t->m->arena, heft_vocab_at(v, i));
        for (size_t k = 0; k < sizeof special / sizeof *special; k++)
            if (heft_str_is(token, special[k]))
                type = HEFT_TOKEN_CONTROL;
        st = heft_gguf_add_token(t, token, i, 0, type);
    }
    heft_vocab_close(v);
    t->kind = heft_lit("WordPiece");
    t->unknown = heft_lit("[UNK]");
    return st;
}

/* ---- tokens next to the vocabulary ---- */

static heft_status read_decoder(heft_gguf_tokenizer *t)
{
    const heft_settings *s = t->m->json[HEFT_GGUF_TOKENIZER_CONFIG];
    uint32_t map = s ? heft_settings_find_path(s, heft_lit("added_tokens_decoder")) : HEFT_NONE;
    if (map == HEFT_NONE || heft_settings_value_at(s, map).kind != HEFT_KIND_MAP)
        return HEFT_OK;
    for (uint32_t i = map + 1, end = heft_settings_next(s, map); i < end;) {
        heft_value entry = heft_settings_value_at(s, i), token = { .kind = HEFT_KIND_NULL };
        uint32_t next = heft_settings_next(s, i);
        uint64_t id;
        bool special = false;
        for (uint32_t k = i + 1; k < next; k = heft_settings_next(s, k)) {
            heft_value v = heft_settings_value_at(s, k);
            if (heft_str_is(v.key, "content"))
                token = v;
            else if (heft_str_is(v.key, "special"))
                special = v.kind == HEFT_KIND_BOOL && v.as.b;
        }
        if (!heft_json_u64(&id, entry.key) || token.kind != HEFT_KIND_STR)
            return heft_error_plain(t->m->err, HEFT_E_FORMAT,
                                    "tokenizer_config.json: added token %q has no id or no content",
                                    entry.key);
        HEFT_TRY(heft_gguf_added_token(t, token.as.s, id, special));
        i = next;
    }
    return HEFT_OK;
}

heft_status heft_gguf_read_added(heft_gguf_tokenizer *t)
{
    if (t->m->opt.texts[HEFT_GGUF_ADDED_TOKENS].ptr) {
        heft_json j = open_json(t, HEFT_GGUF_ADDED_TOKENS);
        heft_status st = heft_companion_expect(&j, HEFT_JSON_OBJECT, "the added tokens");
        if (!st)
            st = read_pairs(t, &j, true);
        if (st)
            return heft_error_in(t->m->err, st, heft_lit("added_tokens.json"));
    }
    return read_decoder(t);
}
