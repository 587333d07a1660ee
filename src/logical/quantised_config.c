/* quantised_config.c - writes config.json for a quantised model: the text of another one, with
 * "quantization_config" in place of what it said of quantisation. */
#include "base/error.h"
#include "base/text.h"
#include "grammar/json.h"
#include "logical/quantisation.h"

/* Keys that say how the weights are stored. */
static bool is_about_quantisation(heft_str key)
{
    return heft_str_is(key, "quantization_config") || heft_str_is(key, "quantization") ||
           heft_str_is(key, "compression_config");
}

enum { CUTS = 8 };
typedef struct config_text {
    heft_str text;
    heft_range cut[CUTS]; /* left out, in ascending order */
    uint32_t cuts;
    size_t end;       /* end of the last member of the outer object that is kept, or of its brace */
    bool has_members; /* the outer object keeps some */
    heft_json j;
} config_text;

static size_t offset_of(const config_text *c, const char *p)
{
    return (size_t)(p - c->text.ptr);
}

static heft_status add_cut(config_text *c, size_t from, size_t to)
{
    if (c->cuts == CUTS)
        return heft_json_fail(&c->j, "JSON: more than %U settings of a quantisation",
                              (uint64_t)CUTS);
    c->cut[c->cuts++] = (heft_range){ from, to - from };
    return HEFT_OK;
}

/* Read the members of an object whose brace has been read. Members that are left out go with the
 * comma before them, or with that after them if they are first. `inner` is called for an object at
 * the key "text_config"; NULL: nothing is. */
static heft_status read_members(config_text *c, heft_status (*inner)(config_text *c))
{
    heft_json *j = &c->j;
    size_t kept = offset_of(c, j->p), first = kept;
    bool has_members = false, is_open = false; /* a cut reaches to the next member */
    for (heft_json_kind k; (k = heft_json_next(j)) != HEFT_JSON_OBJECT_END;) {
        if (k != HEFT_JSON_KEY)
            return j->st ? j->st : heft_json_fail(j, "JSON: a key is expected");
        bool goes = is_about_quantisation(j->text), is_inner = heft_str_is(j->text, "text_config");
        size_t key = offset_of(c, j->token);
        if (is_open)
            c->cut[c->cuts - 1].length = key - c->cut[c->cuts - 1].offset;
        is_open = false;
        k = heft_json_next(j);
        if (k == HEFT_JSON_FAILED)
            return j->st;
        HEFT_TRY(k == HEFT_JSON_OBJECT && is_inner && inner ? inner(c) : heft_json_skip(j, k));
        size_t end = offset_of(c, j->p);
        if (goes)
            HEFT_TRY(add_cut(c, has_members ? kept : key, end));
        is_open = goes && !has_members;
        has_members = has_members || !goes;
        kept = goes ? kept : end;
    }
    c->end = has_members ? kept : first;
    c->has_members = has_members;
    return HEFT_OK;
}

static heft_status read_inner(config_text *c)
{
    return read_members(c, NULL);
}

static heft_status read_config(config_text *c, heft_arena *arena, heft_error *err)
{
    c->j = heft_json_open(c->text, 0, HEFT_JSON_DEPTH, arena, err);
    heft_json_kind k = heft_json_next(&c->j);
    if (k != HEFT_JSON_OBJECT)
        return k == HEFT_JSON_FAILED ? c->j.st
                                     : heft_json_fail(&c->j, "JSON: config.json is not an object");
    HEFT_TRY(read_members(c, read_inner));
    k = heft_json_next(&c->j);
    return k == HEFT_JSON_FAILED ? c->j.st : HEFT_OK;
}

/* ---- writing ---- */

/* Return whether programs make a matrix of this tensor that they would load as a quantised one. */
static bool is_exempt_module(const heft_quantise_item *item)
{
    static const char *const others[] = { "vector", "norm", "bias", "not a matrix",
                                          "no floating-point numbers" };
    bool is_other = item->scheme || !heft_str_ends(item->name, ".weight");
    for (size_t i = 0; item->reason && i < sizeof others / sizeof *others; i++)
        is_other = is_other || heft_str_is(heft_lit(item->reason), others[i]);
    return !is_other;
}

static void put_quantisation(heft_out *o, const heft_quantisation *q)
{
    bool is_first = true;
    heft_out_str(o, heft_lit("{"));
    q->choice.row->config(o, &q->choice);
    heft_out_str(o, heft_lit(": ["));
    for (uint32_t i = 0; i < heft_quantisation_count(q); i++) {
        heft_quantise_item item = heft_quantisation_at(q, i);
        if (!is_exempt_module(&item))
            continue;
        if (!is_first)
            heft_out_str(o, heft_lit(", "));
        is_first = false;
        item.name.len -= sizeof ".weight" - 1;
        heft_json_put_str(o, item.name);
    }
    heft_out_str(o, heft_lit("]}"));
}

/* Write [from, to) of the text without what is left out. */
static void put_kept(heft_out *o, const config_text *c, size_t from, size_t to)
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

static void put_config(heft_out *o, const config_text *c, const heft_quantisation *q)
{
    put_kept(o, c, 0, c->end);
    heft_out_str(o, heft_lit(c->has_members ? ",\n  " : "\n  "));
    heft_out_str(o, heft_lit("\"quantization_config\": "));
    put_quantisation(o, q);
    if (!c->has_members)
        heft_out_str(o, heft_lit("\n"));
    put_kept(o, c, c->end, c->text.len);
}

static heft_status put_all(heft_blob *out, const config_text *c, const heft_quantisation *q,
                           heft_error *err)
{
    enum { ALIGN = 64 };
    const heft_allocator *al = q->f->host->allocator;
    heft_out o = heft_out_counting();
    put_config(&o, c, q);
    size_t bytes = (size_t)o.total;
    uint8_t *buf = o.total <= SIZE_MAX ? heft_alloc(al, bytes, ALIGN) : NULL;
    if (!buf)
        return heft_error_no_memory(err, "for config.json");
    o = (heft_out){ .buf = buf, .cap = bytes };
    put_config(&o, c, q);
    *out = (heft_blob){ buf, bytes, al };
    return HEFT_OK;
}

heft_status heft_quantisation_config(heft_blob *out, const heft_quantisation *q, heft_str config,
                                     heft_error *err)
{
    heft_error own;
    err = heft_error_begin(err, &own);
    heft_memory mem = { q->f->host->allocator, UINT64_MAX, 0 };
    heft_arena arena = { .mem = &mem };
    config_text c = { .text = config.len ? config : heft_lit("{}\n") };
    *out = (heft_blob){ .data = NULL };
    heft_file_enter(q->f); /* names are mapped */
    heft_status st = read_config(&c, &arena, err);
    if (!st)
        st = put_all(out, &c, q, err);
    st = heft_file_leave_after(q->f, st, err);
    heft_arena_free(&arena);
    return heft_error_end(err, st);
}
