/* config_text.c - finds in a config.json what it says of quantisation, so that all else is kept. */
#include "logical/config_text.h"

#include "base/error.h"
#include "base/text.h"

bool heft_is_about_quantisation(heft_str key)
{
    return heft_str_is(key, "quantization_config") || heft_str_is(key, "quantization") ||
           heft_str_is(key, "compression_config");
}

static size_t offset_of(const heft_config_text *c, const char *p)
{
    return (size_t)(p - c->text.ptr);
}

static heft_status add_cut(heft_config_text *c, size_t from, size_t to)
{
    if (c->cuts == HEFT_CONFIG_CUTS)
        return heft_json_fail(&c->j, "JSON: more than %U settings of a quantisation",
                              (uint64_t)HEFT_CONFIG_CUTS);
    c->cut[c->cuts++] = (heft_range){ from, to - from };
    return HEFT_OK;
}

/* An object that is being read. */
typedef struct level {
    size_t kept;      /* end of the last member that is kept, or of the brace */
    bool has_members; /* some are kept */
    bool is_open;     /* the last cut reaches to the next member */
} level;

/* Leave a member out, with the comma before it, or with that after it if it is the first. */
static heft_status leave_out(heft_config_text *c, level *l, size_t key)
{
    size_t from = l->has_members ? l->kept : key;
    l->is_open = !l->has_members;
    return add_cut(c, from, offset_of(c, c->j.p));
}

/* Read a member whose key has been read; *inside: up to its brace. Inside of other objects, a key
 * alone says too little. */
static heft_status read_member(heft_config_text *c, level *l, bool is_outer, bool *inside)
{
    heft_json *j = &c->j;
    bool goes = heft_is_about_quantisation(j->text);
    size_t key = offset_of(c, j->token);
    if (l->is_open)
        c->cut[c->cuts - 1].length = key - c->cut[c->cuts - 1].offset;
    l->is_open = false;
    heft_json_kind k = heft_json_next(j);
    if (k == HEFT_JSON_FAILED)
        return j->st;
    goes = goes && (is_outer || k == HEFT_JSON_OBJECT);
    if (*inside && !goes && k == HEFT_JSON_OBJECT)
        return HEFT_OK;
    *inside = false;
    HEFT_TRY(heft_json_skip(j, k));
    if (goes)
        return leave_out(c, l, key);
    l->has_members = true;
    l->kept = offset_of(c, j->p);
    return HEFT_OK;
}

/* Read the outer object, whose brace has been read, and those in it. */
static heft_status read_members(heft_config_text *c)
{
    enum { DEPTH = 16 };
    heft_json *j = &c->j;
    level levels[DEPTH] = { { .kept = offset_of(c, j->p) } };
    uint32_t depth = 0;
    c->end = levels[0].kept;
    for (;;) {
        heft_json_kind k = heft_json_next(j);
        if (k == HEFT_JSON_OBJECT_END && !depth)
            break;
        if (k == HEFT_JSON_OBJECT_END) {
            level *outer = &levels[--depth];
            outer->has_members = true;
            outer->kept = offset_of(c, j->p);
            continue;
        }
        if (k != HEFT_JSON_KEY)
            return j->st ? j->st : heft_json_fail(j, "JSON: a key is expected");
        bool inside = depth + 1 < DEPTH;
        HEFT_TRY(read_member(c, &levels[depth], !depth, &inside));
        if (inside)
            levels[++depth] = (level){ .kept = offset_of(c, j->p) };
    }
    c->has_members = levels[0].has_members;
    c->end = c->has_members ? levels[0].kept : c->end;
    return HEFT_OK;
}

static heft_status read_config(heft_config_text *c)
{
    heft_json_kind k = heft_json_next(&c->j);
    if (k != HEFT_JSON_OBJECT)
        return k == HEFT_JSON_FAILED ? c->j.st
                                     : heft_json_fail(&c->j, "JSON: config.json is not an object");
    HEFT_TRY(read_members(c));
    k = heft_json_next(&c->j);
    return k == HEFT_JSON_FAILED ? c->j.st : HEFT_OK;
}

heft_status heft_config_text_read(heft_config_text *c, heft_str text, const heft_allocator *al,
                                  heft_error *err)
{
    heft_memory mem = { al, UINT64_MAX, 0 };
    heft_arena arena = { .mem = &mem };
    *c = (heft_config_text){ .text = text };
    c->j = heft_json_open(text, 0, HEFT_JSON_DEPTH, &arena, err);
    heft_status st = read_config(c);
    heft_arena_free(&arena);
    return st;
}

void heft_config_text_put(heft_out *o, const heft_config_text *c, size_t from, size_t to)
{
    for (uint32_t i = 0; i < c->cuts && from < to; i++) {
        size_t at = (size_t)c->cut[i].offset, end = at + (size_t)c->cut[i].length;
        if (at >= from && at < to) {
            heft_out_bytes(o, c->text.ptr + from, at - from);
            from = end;
        }
    }
    if (from < to)
        heft_out_bytes(o, c->text.ptr + from, to - from);
}
