/* map_text.c - reads the text of a map.
 *
 *     map NAME                      header: the name, and what the map leads from and to
 *     let heads = A | B             a number of the model
 *     words x = up:ffn_up           {x} is "up" on the left side and "ffn_up" on the right one
 *     LEFT, ... -> RIGHT, ... : OPERATION; ...
 *
 * docs/maps.md describes all of it.  A map may use another one, whose text is read in its place. */
#include "base/error.h"
#include "base/text.h"
#include "map/map_reader.h"

/* ---- statements ---- */

typedef heft_status statement_fn(heft_map_reader *r, heft_str rest);

static heft_status read_let(heft_map_reader *r, heft_str rest)
{
    heft_str name;
    if (!heft_map_cut(&rest, &name, "=") || !name.len)
        return heft_map_fail(r, "a name and = are expected in", rest);
    heft_map_let l = { name, heft_map_trim(rest), r->line };
    return heft_vec_add(&r->m->mem, &r->m->lets, &l, sizeof l) ? HEFT_OK
                                                               : heft_map_no_memory(r->err);
}

/* A set of words: pairs LEFT:RIGHT, or one word for both sides. */
static heft_status read_words(heft_map_reader *r, heft_str rest)
{
    heft_map_words w;
    if (!heft_map_cut(&rest, &w.name, "=") || !w.name.len)
        return heft_map_fail(r, "a name and = are expected in", rest);
    w.pairs = heft_map_trim(rest);
    return heft_vec_add(&r->m->mem, &r->words, &w, sizeof w) ? HEFT_OK : heft_map_no_memory(r->err);
}

/* Read a condition: "if EXPRESSION", "unless EXPRESSION", or nothing. */
static heft_status read_condition(heft_map_condition *out, const heft_map_reader *r, heft_str rest)
{
    heft_str word = heft_map_word(&rest);
    *out = (heft_map_condition){ heft_map_trim(rest), heft_str_is(word, "unless") };
    if (word.len && !out->is_negated && !heft_str_is(word, "if"))
        return heft_map_fail(r, "if or unless is expected, not", word);
    if (word.len && !out->expression.len)
        return heft_map_fail(r, "a number is expected after", word);
    return HEFT_OK;
}

static heft_status read_mention(heft_map_reader *r, heft_str rest, heft_map_mention_kind kind,
                                uint8_t side)
{
    heft_map_mention x = { .line = r->line, .kind = kind, .side = side };
    heft_str pattern = rest;
    uint8_t slots;
    if (kind == HEFT_MAP_EXPECT) {
        pattern = heft_map_word(&rest);
        HEFT_TRY(read_condition(&x.condition, r, rest));
    }
    HEFT_TRY(heft_map_add_pattern(r, pattern, &x.pattern, &slots));
    return heft_vec_add(&r->m->mem, &r->m->mentions, &x, sizeof x) ? HEFT_OK
                                                                   : heft_map_no_memory(r->err);
}

static heft_status read_drop(heft_map_reader *r, heft_str rest)
{
    return read_mention(r, rest, HEFT_MAP_DROP, 0);
}

static heft_status read_drop_right(heft_map_reader *r, heft_str rest)
{
    return read_mention(r, rest, HEFT_MAP_DROP, 1);
}

/* Read "A B", and a condition. */
static heft_status read_tie(heft_map_reader *r, heft_str rest, bool is_untie, uint8_t side)
{
    heft_map_tie t = { .line = r->line, .is_untie = is_untie, .side = side };
    t.first = heft_map_word(&rest);
    t.second = heft_map_word(&rest);
    if (!t.second.len || heft_str_eq(t.first, t.second))
        return heft_map_fail(r, "the names of two tensors are expected after", t.first);
    HEFT_TRY(read_condition(&t.condition, r, rest));
    if (r->m->ties.len == HEFT_MAP_TIES)
        return heft_map_fail(r, "more than 16 ties with", t.first);
    return heft_vec_add(&r->m->mem, &r->m->ties, &t, sizeof t) ? HEFT_OK
                                                               : heft_map_no_memory(r->err);
}

static heft_status read_tie_left(heft_map_reader *r, heft_str rest)
{
    return read_tie(r, rest, false, 0);
}

static heft_status read_tie_right(heft_map_reader *r, heft_str rest)
{
    return read_tie(r, rest, false, 1);
}

static heft_status read_untie_left(heft_map_reader *r, heft_str rest)
{
    return read_tie(r, rest, true, 0);
}

static heft_status read_untie_right(heft_map_reader *r, heft_str rest)
{
    return read_tie(r, rest, true, 1);
}

static heft_status read_require(heft_map_reader *r, heft_str rest)
{
    return read_mention(r, rest, HEFT_MAP_REQUIRE, 0);
}

static heft_status read_expect(heft_map_reader *r, heft_str rest)
{
    return read_mention(r, rest, HEFT_MAP_EXPECT, 0);
}

static heft_status read_vectors(heft_map_reader *r, heft_str rest)
{
    if (!heft_str_is(rest, "f32"))
        return heft_map_fail(r, "f32 is expected, not", rest);
    r->m->has_f32_vectors = true;
    return HEFT_OK;
}

static heft_status read_others(heft_map_reader *r, heft_str rest)
{
    if (!heft_str_is(rest, "keep"))
        return heft_map_fail(r, "keep is expected, not", rest);
    r->m->keeps_others = true;
    return HEFT_OK;
}

static heft_status read_use(heft_map_reader *r, heft_str name)
{
    heft_str text = heft_map_find_text(name);
    if (!text.ptr)
        return heft_error_plain(r->err, HEFT_E_NOTFOUND, "line %U of the map: no map %q is shipped",
                                (uint64_t)r->line, name);
    if (r->depth == HEFT_MAP_DEPTH)
        return heft_map_fail(r, "maps use others too deeply at", name);
    r->depth++;
    r->text[r->depth] = text;
    r->line_of[r->depth] = 0;
    return HEFT_OK;
}

static const struct {
    const char *word;
    size_t member; /* member of heft_map_info that the text is stored in */
    statement_fn *read;
} statements[] = {
    { "map", offsetof(heft_map_info, name), NULL },
    { "title", offsetof(heft_map_info, title), NULL },
    { "from", offsetof(heft_map_info, from), NULL },
    { "to", offsetof(heft_map_info, to), NULL },
    { "models", offsetof(heft_map_info, models), NULL },
    { "architecture", offsetof(heft_map_info, architecture), NULL },
    { "let", 0, read_let },
    { "words", 0, read_words },
    { "drop", 0, read_drop },
    { "drop-right", 0, read_drop_right },
    { "require", 0, read_require },
    { "expect", 0, read_expect },
    { "tie", 0, read_tie_left },
    { "tie-right", 0, read_tie_right },
    { "untie", 0, read_untie_left },
    { "untie-right", 0, read_untie_right },
    { "vectors", 0, read_vectors },
    { "others", 0, read_others },
    { "use", 0, read_use },
};

/* The header of a map that is used is ignored. */
static heft_status read_header(heft_map_reader *r, size_t member, heft_str text)
{
    if (!r->depth)
        memcpy((char *)&r->m->info + member, &text, sizeof text);
    return HEFT_OK;
}

static heft_status read_line(heft_map_reader *r, heft_str line)
{
    heft_str rest = line, left;
    const heft_map *m = r->m;
    r->is_forward_only = false;
    if (m->rules.len + m->lets.len + m->mentions.len + r->words.len >= HEFT_MAP_RULES)
        return heft_map_too_many(r);
    if (heft_map_cut(&rest, &left, "->"))
        return heft_map_add_rules(r, left, rest);
    rest = line;
    r->is_forward_only = heft_map_cut(&rest, &left, "=>");
    if (r->is_forward_only)
        return heft_map_add_rules(r, left, rest);
    rest = line;
    heft_str word = heft_map_word(&rest);
    rest = heft_map_trim(rest);
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++)
        if (heft_str_is(word, statements[i].word))
            return statements[i].read ? statements[i].read(r, rest)
                                      : read_header(r, statements[i].member, rest);
    return heft_map_fail(r, "a rule or a statement is expected, not", word);
}

static heft_status read_text(heft_map_reader *r, heft_str text)
{
    heft_status st = HEFT_OK;
    r->text[0] = text;
    while (!st && (r->depth || r->text[0].len)) {
        heft_str line, code;
        if (!r->text[r->depth].len) {
            r->depth--;
            continue;
        }
        heft_map_cut(&r->text[r->depth], &line, "\n");
        heft_map_cut(&line, &code, "#");
        r->line = ++r->line_of[r->depth];
        if (code.len)
            st = read_line(r, code);
    }
    return st;
}

heft_status heft_map_parse(heft_map **out, heft_str text, const heft_host *host, heft_error *err)
{
    heft_error own;
    err = heft_error_begin(err, &own);
    *out = NULL;
    HEFT_TRY(heft_host_resolve(&host, host, err));
    heft_map *m = heft_alloc(host->allocator, sizeof *m, 16);
    if (!m)
        return heft_map_no_memory(err);
    *m = (heft_map){ .host = host, .mem = { host->allocator, UINT64_MAX, 0 } };
    m->arena.mem = &m->mem;
    heft_map_reader r = { .m = m, .err = err };
    text = heft_arena_copy(&m->arena, text);
    heft_status st = text.ptr ? read_text(&r, text) : heft_map_no_memory(err);
    if (!st && !m->info.name.len)
        st = heft_error_plain(err, HEFT_E_FORMAT, "the map has no line \"map NAME\"");
    heft_vec_free(&m->mem, &r.words, sizeof(heft_map_words));
    if (st)
        heft_map_close(m);
    else
        *out = m;
    return heft_error_end(err, st);
}

void heft_map_close(heft_map *m)
{
    if (!m)
        return;
    heft_vec_free(&m->mem, &m->tokens, sizeof(heft_map_token));
    heft_vec_free(&m->mem, &m->patterns, sizeof(heft_map_pattern));
    heft_vec_free(&m->mem, &m->ops, sizeof(heft_map_op));
    heft_vec_free(&m->mem, &m->args, sizeof(heft_str));
    heft_vec_free(&m->mem, &m->rules, sizeof(heft_map_rule));
    heft_vec_free(&m->mem, &m->lets, sizeof(heft_map_let));
    heft_vec_free(&m->mem, &m->mentions, sizeof(heft_map_mention));
    heft_vec_free(&m->mem, &m->ties, sizeof(heft_map_tie));
    heft_arena_free(&m->arena);
    heft_free(m->host->allocator, m, sizeof *m, 16);
}

heft_map_info heft_map_describe(const heft_map *m)
{
    return m->info;
}
