/* profile_json.c - reads a profile from JSON; docs/profiles.md describes the members. */
#include "companion/profile_types.h"

#include <string.h>

#include "base/error.h"

/* A document that fails to parse has the status in `j`: all later tokens fail, and the end of the
 * profile is never found.  Functions return other failures. */
typedef struct reader {
    heft_json j;
    heft_profile *p;
    heft_error *err;
} reader;

/* ---- values ---- */

static heft_status copy(reader *r, heft_str *out, heft_str s)
{
    *out = heft_arena_copy(&r->p->arena, s);
    return out->ptr ? HEFT_OK : heft_companion_no_memory(r->err);
}

static heft_status add(reader *r, heft_vec *v, const void *element, size_t size)
{
    return heft_vec_add(&r->p->mem, v, element, size) ? HEFT_OK : heft_companion_no_memory(r->err);
}

static heft_status read_text(reader *r, heft_str *out, const char *what)
{
    HEFT_TRY(heft_companion_expect(&r->j, HEFT_JSON_STRING, what));
    return copy(r, out, r->j.text);
}

/* Read a list of strings or, in shapes, of strings and numbers. */
static heft_status read_list(reader *r, heft_vec *v, bool numbers, const char *what)
{
    HEFT_TRY(heft_companion_expect(&r->j, HEFT_JSON_ARRAY, what));
    heft_json_kind k;
    while (heft_companion_next_item(&r->j, &k)) {
        heft_str text;
        if (k != HEFT_JSON_STRING && !(numbers && k == HEFT_JSON_NUMBER))
            return heft_json_fail(&r->j, "%s: a string is expected here", what);
        HEFT_TRY(copy(r, &text, r->j.text));
        HEFT_TRY(add(r, v, &text, sizeof text));
    }
    return HEFT_OK;
}

/* Read a number or an expression as text. */
static heft_status read_expression(reader *r, heft_str *out, const char *what)
{
    heft_json_kind k = heft_json_next(&r->j);
    if (k != HEFT_JSON_STRING && k != HEFT_JSON_NUMBER)
        return heft_json_fail(&r->j, "%s: a number or an expression is expected here", what);
    return copy(r, out, r->j.text);
}

static heft_status unknown(reader *r, const char *where)
{
    return heft_json_fail(&r->j, "%s has no member %q", where, r->j.text);
}

/* ---- members ---- */

static heft_status read_sizes(reader *r)
{
    HEFT_TRY(heft_companion_expect(&r->j, HEFT_JSON_OBJECT, "sizes"));
    while (heft_companion_next_key(&r->j)) {
        heft_profile_size size = { { NULL, 0 }, 0 };
        HEFT_TRY(copy(r, &size.name, r->j.text));
        HEFT_TRY(heft_companion_expect(&r->j, HEFT_JSON_NUMBER, "a size"));
        if (!heft_json_u64(&size.value, r->j.text))
            return heft_json_fail(&r->j, "size %q is not a non-negative integer", r->j.text);
        HEFT_TRY(add(r, &r->p->sizes, &size, sizeof size));
    }
    return HEFT_OK;
}

static heft_status read_metadata(reader *r)
{
    heft_status st = heft_companion_expect(&r->j, HEFT_JSON_OBJECT, "metadata");
    while (!st && heft_companion_next_key(&r->j)) {
        heft_profile_key key = { .requirement = HEFT_PROFILE_PRESENT };
        st = copy(r, &key.key, r->j.text);
        heft_json_kind k = st ? HEFT_JSON_FAILED : heft_json_next(&r->j);
        if (k == HEFT_JSON_STRING || k == HEFT_JSON_NUMBER) {
            key.requirement = k == HEFT_JSON_STRING ? HEFT_PROFILE_TEXT : HEFT_PROFILE_NUMBER;
            st = copy(r, &key.text, r->j.text);
        } else if (!st && k != HEFT_JSON_TRUE) {
            st = heft_json_fail(&r->j, "metadata: a string, a number or true is expected here");
        }
        if (!st)
            st = add(r, &r->p->keys, &key, sizeof key);
    }
    return st;
}

static heft_status read_optional_metadata(reader *r)
{
    HEFT_TRY(heft_companion_expect(&r->j, HEFT_JSON_ARRAY, "optional_metadata"));
    heft_json_kind k;
    while (heft_companion_next_item(&r->j, &k)) {
        heft_profile_key key = { .requirement = HEFT_PROFILE_PRESENT, .is_optional = true };
        if (k != HEFT_JSON_STRING)
            return heft_json_fail(&r->j, "optional_metadata: a key is expected here");
        HEFT_TRY(copy(r, &key.key, r->j.text));
        HEFT_TRY(add(r, &r->p->keys, &key, sizeof key));
    }
    return HEFT_OK;
}

static heft_status read_special(reader *r)
{
    HEFT_TRY(heft_companion_expect(&r->j, HEFT_JSON_OBJECT, "special"));
    while (heft_companion_next_key(&r->j)) {
        unsigned i = 0;
        while (i < HEFT_SPECIALS &&
               !heft_str_is(r->j.text, heft_vocab_special_name((heft_special)i)))
            i++;
        HEFT_TRY(i == HEFT_SPECIALS ? unknown(r, "special")
                                    : read_expression(r, &r->p->special[i], "special"));
    }
    return HEFT_OK;
}

static heft_status read_vocabulary(reader *r)
{
    HEFT_TRY(heft_companion_expect(&r->j, HEFT_JSON_OBJECT, "vocabulary"));
    while (heft_companion_next_key(&r->j)) {
        if (heft_str_is(r->j.text, "tokens"))
            HEFT_TRY(read_expression(r, &r->p->tokens, "tokens"));
        else if (heft_str_is(r->j.text, "special"))
            HEFT_TRY(read_special(r));
        else
            HEFT_TRY(unknown(r, "vocabulary"));
    }
    return HEFT_OK;
}

/* ---- tensors ---- */

static heft_status read_types(reader *r, heft_profile_tensor *t)
{
    heft_vec *texts = &r->p->texts;
    t->types = texts->len;
    heft_status st = read_list(r, texts, false, "dtype");
    t->type_count = texts->len - t->types;
    for (uint32_t i = t->types; i < texts->len && !st; i++) {
        heft_str type = ((const heft_str *)texts->ptr)[i];
        if (!heft_dtype_find(type))
            st = heft_json_fail(&r->j, "unknown element type %q", type);
    }
    return st;
}

/* Called after the opening brace. */
static heft_status read_tensor(reader *r)
{
    heft_profile_tensor t = { .name = { NULL, 0 } };
    heft_status st = HEFT_OK;
    while (!st && heft_companion_next_key(&r->j)) {
        if (heft_str_is(r->j.text, "name"))
            st = read_text(r, &t.name, "the name of a tensor");
        else if (heft_str_is(r->j.text, "shape")) {
            t.has_shape = true;
            t.shape = r->p->texts.len;
            st = read_list(r, &r->p->texts, true, "shape");
            t.rank = r->p->texts.len - t.shape;
        } else if (heft_str_is(r->j.text, "dtype"))
            st = read_types(r, &t);
        else if (heft_str_is(r->j.text, "optional")) {
            heft_json_kind k = heft_json_next(&r->j);
            t.is_optional = k == HEFT_JSON_TRUE;
            if (k != HEFT_JSON_TRUE && k != HEFT_JSON_FALSE)
                st = heft_json_fail(&r->j, "optional: true or false is expected here");
        } else
            st = unknown(r, "a tensor");
    }
    if (st)
        return st;
    if (!t.name.ptr)
        return heft_json_fail(&r->j, "a tensor has no name");
    return add(r, &r->p->tensors, &t, sizeof t);
}

static heft_status read_tensors(reader *r)
{
    HEFT_TRY(heft_companion_expect(&r->j, HEFT_JSON_ARRAY, "tensors"));
    heft_json_kind k;
    while (heft_companion_next_item(&r->j, &k))
        HEFT_TRY(k == HEFT_JSON_OBJECT
                     ? read_tensor(r)
                     : heft_json_fail(&r->j, "tensors: an object is expected here"));
    return HEFT_OK;
}

/* ---- the document ---- */

static heft_status read_member(reader *r)
{
    heft_profile *p = r->p;
    heft_str name = r->j.text, about;
    if (heft_str_is(name, "name"))
        return read_text(r, &p->name, "name");
    if (heft_str_is(name, "about"))
        return read_text(r, &about, "about");
    if (heft_str_is(name, "sizes"))
        return read_sizes(r);
    if (heft_str_is(name, "metadata"))
        return read_metadata(r);
    if (heft_str_is(name, "optional_metadata"))
        return read_optional_metadata(r);
    if (heft_str_is(name, "vocabulary"))
        return read_vocabulary(r);
    if (heft_str_is(name, "complete_in"))
        return read_list(r, &p->complete_in, false, "complete_in");
    if (heft_str_is(name, "prefixes"))
        return read_list(r, &p->prefixes, false, "prefixes");
    return heft_str_is(name, "tensors") ? read_tensors(r) : unknown(r, "a profile");
}

heft_status heft_profile_parse_json(heft_profile **out, heft_str text, const heft_host *host,
                                    heft_error *err)
{
    heft_error unused;
    const heft_allocator *al = heft_companion_allocator(&host, err);
    reader r = { .err = err ? err : &unused };
    *out = NULL;
    if (!al)
        return HEFT_E_ARGUMENT;
    heft_profile *p = heft_alloc(al, sizeof *p, 16);
    if (!p)
        return heft_companion_no_memory(err);
    *p = (heft_profile){ .mem = { al, UINT64_MAX, 0 }, .name = heft_lit("") };
    p->arena.mem = &p->mem;
    r.p = p;
    r.j = heft_json_open(text, 0, HEFT_COMPANION_DEPTH, &p->arena, r.err);
    heft_status st = heft_companion_expect(&r.j, HEFT_JSON_OBJECT, "the profile");
    while (!st && heft_companion_next_key(&r.j))
        st = read_member(&r);
    if (!st)
        st = heft_companion_expect(&r.j, HEFT_JSON_END, "the profile");
    if (st)
        heft_profile_close(p);
    else
        *out = p;
    return st;
}

void heft_profile_close(heft_profile *p)
{
    if (!p)
        return;
    const heft_allocator *al = p->mem.al;
    heft_vec_free(&p->mem, &p->sizes, sizeof(heft_profile_size));
    heft_vec_free(&p->mem, &p->keys, sizeof(heft_profile_key));
    heft_vec_free(&p->mem, &p->tensors, sizeof(heft_profile_tensor));
    heft_vec_free(&p->mem, &p->texts, sizeof(heft_str));
    heft_vec_free(&p->mem, &p->prefixes, sizeof(heft_str));
    heft_vec_free(&p->mem, &p->complete_in, sizeof(heft_str));
    heft_arena_free(&p->arena);
    heft_free(al, p, sizeof *p, 16);
}

heft_str heft_profile_name(const heft_profile *p)
{
    return p->name;
}
