/* vocab_json.c - reads a vocabulary from a tokenizer.json:
 *   {"model": {"vocab": {token: id, ...}, ...},             WordPiece, WordLevel, BPE
 *    "model": {"vocab": [[token, score], ...], "unk_id": id, ...},            Unigram
 *    "added_tokens": [{"id": id, "content": token, ...}, ...], ...}
 * In a list, the position of a token is the id.  An added token may also be in the vocabulary.  Ids
 * are consecutive from 0.  Scores and merges are not read.
 */
#include "base/error.h"
#include "base/text.h"
#include "companion/companion_text.h"
#include "model/vocab.h"

typedef struct entry {
    heft_str token;
    uint64_t id;
} entry;

/* A document that fails to parse has the status in `j`: all later tokens fail, and the end of the
 * document is never found.  Functions return other failures. */
typedef struct reader {
    heft_json j;
    heft_memory mem;
    heft_arena arena;
    heft_vec entries;
    uint64_t special[HEFT_SPECIALS]; /* ids of special tokens among the added tokens, or UNKNOWN */
    heft_error *err;
} reader;

/* Names of special tokens outside of WordPiece; heft_vocab_end() knows [PAD] and so on. */
static const char *const other_names[HEFT_SPECIALS] = { "<pad>", "<unk>", "<s>", "</s>", "<mask>" };
static const uint64_t UNKNOWN = UINT64_MAX;

static heft_status read_id(reader *r, uint64_t *id)
{
    HEFT_TRY(heft_companion_expect(&r->j, HEFT_JSON_NUMBER, "the id of a token"));
    if (!heft_json_u64(id, r->j.text))
        return heft_json_fail(&r->j, "token id %q is not a non-negative integer", r->j.text);
    return HEFT_OK;
}

static heft_status add_entry(reader *r, heft_str token, uint64_t id)
{
    entry e = { token, id };
    return heft_vec_add(&r->mem, &r->entries, &e, sizeof e) ? HEFT_OK
                                                            : heft_companion_no_memory(r->err);
}

/* ---- tokens ---- */

/* Called after the opening brace. */
static heft_status read_pairs(reader *r)
{
    while (heft_companion_next_key(&r->j)) {
        heft_str token = r->j.text;
        uint64_t id = 0;
        HEFT_TRY(read_id(r, &id));
        HEFT_TRY(add_entry(r, token, id));
    }
    return HEFT_OK;
}

/* Called after the opening bracket.  Positions are ids, so the list goes before any added
 * tokens. */
static heft_status read_list(reader *r)
{
    heft_vec added = r->entries;
    heft_status st = HEFT_OK;
    r->entries = (heft_vec){ .ptr = NULL };
    heft_json_kind k;
    while (!st && heft_companion_next_item(&r->j, &k)) { /* [token, score] */
        if (k != HEFT_JSON_ARRAY)
            heft_json_fail(&r->j, "a token of the list: [token, score] is expected here");
        st = heft_companion_expect(&r->j, HEFT_JSON_STRING, "a token of the list");
        if (!st)
            st = add_entry(r, r->j.text, r->entries.len);
        if (!st)
            st = heft_companion_expect(&r->j, HEFT_JSON_NUMBER, "the score of a token");
        if (!st)
            st = heft_companion_expect(&r->j, HEFT_JSON_ARRAY_END, "a token and its score");
    }
    for (uint32_t i = 0; i < added.len && !st; i++) {
        const entry *e = (const entry *)added.ptr + i;
        st = add_entry(r, e->token, e->id);
    }
    heft_vec_free(&r->mem, &added, sizeof(entry));
    return st;
}

static heft_status read_model(reader *r, bool *found)
{
    HEFT_TRY(heft_companion_expect(&r->j, HEFT_JSON_OBJECT, "the model"));
    while (heft_companion_next_key(&r->j)) {
        if (heft_str_is(r->j.text, "vocab")) {
            heft_json_kind k = heft_json_next(&r->j);
            *found = true;
            HEFT_TRY(k == HEFT_JSON_OBJECT ? read_pairs(r)
                     : k == HEFT_JSON_ARRAY
                         ? read_list(r)
                         : heft_json_fail(&r->j, "the vocabulary: an object or a "
                                                 "list is expected here"));
        } else if (heft_str_is(r->j.text, "unk_id")) { /* Unigram only; may be null */
            heft_json_kind k = heft_json_next(&r->j);
            bool is_id = k == HEFT_JSON_NUMBER && heft_json_u64(&r->special[HEFT_UNK], r->j.text);
            if (k != HEFT_JSON_NULL && !is_id)
                return heft_json_fail(&r->j, "\"unk_id\" is not a token id");
        } else {
            HEFT_TRY(heft_json_skip(&r->j, HEFT_JSON_KEY));
        }
    }
    return HEFT_OK;
}

/* Called after the opening brace. */
static heft_status read_added(reader *r)
{
    heft_str token = { NULL, 0 };
    uint64_t id = UNKNOWN;
    heft_status st = HEFT_OK;
    while (!st && heft_companion_next_key(&r->j)) {
        if (heft_str_is(r->j.text, "id")) {
            st = read_id(r, &id);
        } else if (heft_str_is(r->j.text, "content")) {
            st = heft_companion_expect(&r->j, HEFT_JSON_STRING, "an added token");
            token = r->j.text;
        } else {
            st = heft_json_skip(&r->j, HEFT_JSON_KEY);
        }
    }
    if (st)
        return st;
    if (!token.ptr || id == UNKNOWN)
        return heft_json_fail(&r->j, "an added token has no id or no content");
    for (int i = 0; i < HEFT_SPECIALS; i++)
        if (heft_str_is(token, other_names[i]))
            r->special[i] = id;
    return add_entry(r, token, id);
}

static heft_status read_document(reader *r)
{
    bool found = false;
    HEFT_TRY(heft_companion_expect(&r->j, HEFT_JSON_OBJECT, "the document"));
    while (heft_companion_next_key(&r->j)) {
        if (heft_str_is(r->j.text, "model"))
            HEFT_TRY(read_model(r, &found));
        else if (heft_str_is(r->j.text, "added_tokens")) {
            heft_json_kind k;
            HEFT_TRY(heft_companion_expect(&r->j, HEFT_JSON_ARRAY, "the added tokens"));
            while (heft_companion_next_item(&r->j, &k))
                HEFT_TRY(k == HEFT_JSON_OBJECT
                             ? read_added(r)
                             : heft_json_fail(&r->j, "an added token is not an object"));
        } else
            HEFT_TRY(heft_json_skip(&r->j, HEFT_JSON_KEY));
    }
    HEFT_TRY(heft_companion_expect(&r->j, HEFT_JSON_END, "the document"));
    if (!found)
        return heft_error_plain(r->err, HEFT_E_FORMAT, "there is no \"model\" with a \"vocab\"");
    return HEFT_OK;
}

/* ---- create_vocab by id ---- */

/* Return the name of a row of the embedding that no token has. */
static heft_str name_hole(reader *r, uint32_t id)
{
    char digits[20];
    heft_str number = { digits, heft_u64_text(digits, id) };
    return heft_arena_join(&r->arena, heft_lit("<unused_"), number, heft_lit(">"));
}

/* Fill tokens[id]; fail if two tokens share an id.  Ids without a token are rows of the embedding
 * that the model has reserved: they get names.  There may be as many of them as tokens. */
static heft_status fill_by_id(reader *r, heft_str *tokens, uint32_t most, uint32_t *count)
{
    const entry *e = r->entries.ptr;
    for (uint32_t i = 0; i < r->entries.len; i++) {
        if (e[i].id >= most)
            return heft_error_plain(
                r->err, HEFT_E_FORMAT,
                "token %q has the id %U, but with %U tokens an id must be below %U", e[i].token,
                e[i].id, (uint64_t)r->entries.len, (uint64_t)most);
        heft_str *to = &tokens[e[i].id];
        if (to->ptr && !heft_str_eq(*to, e[i].token))
            return heft_error_plain(r->err, HEFT_E_FORMAT, "tokens %q and %q have the same id, %U",
                                    *to, e[i].token, e[i].id);
        *to = e[i].token;
        *count = *count > e[i].id ? *count : (uint32_t)e[i].id + 1;
    }
    for (uint32_t i = 0; i < *count; i++) {
        tokens[i] = tokens[i].ptr ? tokens[i] : name_hole(r, i);
        if (!tokens[i].ptr)
            return heft_companion_no_memory(r->err);
    }
    return HEFT_OK;
}

static heft_status add_tokens(const reader *r, heft_vocab **out, const heft_host *host,
                              const heft_str *tokens, uint32_t count)
{
    heft_vocab *v;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < count; i++)
        bytes += tokens[i].len;
    HEFT_TRY(heft_vocab_begin(&v, host->allocator, count, bytes, r->err));
    if (host->entropy)
        host->entropy(v->key, sizeof v->key);
    for (uint32_t i = 0; i < count; i++)
        heft_vocab_add(v, tokens[i]);
    heft_status st = heft_vocab_end(v, true, r->err);
    if (st) {
        heft_vocab_close(v);
        return st;
    }
    for (int i = 0; i < HEFT_SPECIALS; i++) /* names unknown to heft_vocab_end() */
        if (v->special[i] == HEFT_NONE && r->special[i] < v->count)
            v->special[i] = (uint32_t)r->special[i];
    *out = v;
    return HEFT_OK;
}

static heft_status create_vocab(reader *r, heft_vocab **out, const heft_host *host)
{
    enum { MORE = 1024 };
    uint64_t most = 2 * (uint64_t)r->entries.len + MORE;
    size_t bytes = (size_t)most * sizeof(heft_str);
    uint32_t count = 0;
    if (most > UINT32_MAX)
        return heft_companion_no_memory(r->err);
    heft_str *tokens = heft_mem_alloc(&r->mem, bytes);
    if (!tokens)
        return heft_companion_no_memory(r->err);
    memset(tokens, 0, bytes);
    heft_status st = fill_by_id(r, tokens, (uint32_t)most, &count);
    if (!st)
        st = add_tokens(r, out, host, tokens, count);
    heft_mem_free(&r->mem, tokens, bytes);
    return st;
}

heft_status heft_vocab_parse_json(heft_vocab **out, heft_str text, const heft_host *host,
                                  heft_error *err)
{
    heft_error unused;
    const heft_allocator *al = heft_companion_allocator(&host, err);
    reader r = { .mem = { al, UINT64_MAX, 0 }, .err = err ? err : &unused };
    *out = NULL;
    if (!al)
        return HEFT_E_ARGUMENT;
    r.arena.mem = &r.mem;
    for (int i = 0; i < HEFT_SPECIALS; i++)
        r.special[i] = UNKNOWN;
    r.j = heft_json_open(text, 0, HEFT_COMPANION_DEPTH, &r.arena, r.err);
    heft_status st = read_document(&r);
    if (!st)
        st = create_vocab(&r, out, host);
    heft_vec_free(&r.mem, &r.entries, sizeof(entry));
    heft_arena_free(&r.arena);
    return st;
}
