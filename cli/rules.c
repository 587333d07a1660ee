#include "rules.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "assign.h"
#include "model.h"

/* ---- names ---- */

typedef struct kept_name { /* a new name, which lives until the conversion ends */
    struct kept_name *next;
    char text[];
} kept_name;

static bool matches_any(rules *r, heft_str name, const opt_list *globs)
{
    for (size_t i = 0; i < globs->count; i++)
        if (name_matches(&r->no_memory, name, globs->item[i]))
            return true;
    return false;
}

/* ---- what a conversion asks ---- */

static bool keep(void *ctx, const heft_tensor *t)
{
    static const char ids[] =
        "position_ids"; /* of an encoder: a buffer that counts upwards, no weight */
    size_t len = sizeof ids - 1, n = t->name.len;
    const char *end = t->name.ptr + n;
    rules *r = ctx;
    if (r->encoder && n >= len && !memcmp(end - len, ids, len) &&
        (n == len || end[-(ptrdiff_t)len - 1] == '.'))
        return false;
    bool kept = !r->keep.count || matches_any(r, t->name, &r->keep);
    kept = kept && !matches_any(r, t->name, &r->drop);
    return kept || r->no_memory; /* then the new name ends the conversion */
}

static bool transpose(void *ctx, const heft_tensor *t)
{
    rules *r = ctx;
    return matches_any(r, t->name, &r->transpose);
}

static bool densify(void *ctx, const heft_tensor *t)
{
    rules *r = ctx;
    return matches_any(r, t->name, &r->densify);
}

/* A choice for all tensors is one for those that can have the layout at all. */
static heft_layout sparsify(void *ctx, const heft_tensor *t)
{
    rules *r = ctx;
    const heft_dtype_info *d = heft_dtype_get(t->dtype);
    bool plain = d && d->block_elems == 1 && t->part_count == 1;
    for (size_t i = 0; i < r->sparsify.given.count; i++) {
        const pick *s = &r->sparsify.items[i];
        bool suits = plain && (s->layout == HEFT_SPARSE_CSR ? t->rank == 2 : t->rank > 0);
        if (s->glob ? name_matches(&r->no_memory, t->name, s->glob) : suits)
            return s->layout;
    }
    return HEFT_DENSE;
}

static heft_dtype cast(void *ctx, const heft_tensor *t)
{
    rules *r = ctx;
    const pick *p = picks_find(&r->no_memory, &r->cast, t->name);
    return p ? p->dtype : (heft_dtype)HEFT_UNTYPED;
}

static bool storage(void *ctx, const heft_tensor *t, heft_str role, heft_storage *how)
{
    rules *r = ctx;
    bool is_asked = storing_choose(&r->storage, t, role, how);
    r->no_memory = r->no_memory || r->storage.no_memory;
    return is_asked;
}

static bool identify(void *ctx, const heft_tensor *t, heft_identity *id)
{
    rules *r = ctx;
    return identity_of(&r->ids, &r->gptrs, t, t->name, false, id);
}

/* ---- renaming ---- */

enum { GROUPS = 10 }; /* & and \1 to \9 */

/* The replacement: & and \0 are the whole match, \1 to \9 its groups, \x is x. */
static void put_replacement(outbuf *o, const char *text, const char *from, const regmatch_t *m)
{
    for (const char *p = text; *p; p++) {
        bool escaped = *p == '\\' && p[1];
        p += escaped;
        bool group = escaped && *p >= '0' && *p <= '9';
        if (group || (!escaped && *p == '&')) {
            const regmatch_t *g = &m[group ? *p - '0' : 0];
            if (g->rm_so >= 0)
                out_bytes(o, from + g->rm_so, (size_t)(g->rm_eo - g->rm_so));
        } else {
            out_char(o, *p);
        }
    }
}

/* Appends name with its first match, or with all, replaced.  As sed does, an empty match right
 * behind another one does not count.  False: no memory. */
static bool substitute(outbuf *o, substitution *s, const char *name)
{
    regmatch_t m[GROUPS];
    bool behind_match = false;
    int st = 0;
    for (int flags = 0;; flags = REG_NOTBOL) {
        errno = 0;
        st = regexec(&s->re, name, GROUPS, m, flags);
        if (st)
            break;
        bool empty = m[0].rm_so == m[0].rm_eo;
        s->has_matched = true;
        out_bytes(o, name, (size_t)m[0].rm_so);
        if (!(empty && behind_match && !m[0].rm_so))
            put_replacement(o, s->text, name, m);
        name += m[0].rm_eo;
        if (!s->everywhere || (empty && !*name))
            break;
        if (empty)
            out_char(o, *name++);
        behind_match = !empty;
    }
    out_text(o, name);
    /* the C library may say "no match" for a lack of memory as well, which then stands in errno */
    return !o->os && (!st || (st == REG_NOMATCH && errno != ENOMEM));
}

static heft_str keep_name(rules *r, const outbuf *text)
{
    kept_name *k = malloc(sizeof *k + text->used + 1);
    if (!k) {
        r->no_memory = true;
        return (heft_str){ NULL, 0 };
    }
    memcpy(k->text, text->buf, text->used);
    k->next = r->names;
    r->names = k;
    return (heft_str){ k->text, text->used };
}

/* Puts the name with all substitutions into `now`; false: it is nothing that an expression could match. */
static bool substitute_all(rules *r, outbuf *now, heft_str name)
{
    outbuf next;
    if (!r->rename.count || (name.len && memchr(name.ptr, 0, name.len)))
        return false;
    now->used = 0;
    out_open(&next, -1);
    out_bytes(now, name.ptr, name.len);
    for (size_t i = 0; i < r->rename.count && !r->no_memory; i++) {
        next.used = 0;
        const char *before = out_cstr(now);
        r->no_memory = now->os || !substitute(&next, &r->substitutions[i], before);
        outbuf turn = *now;
        *now = next;
        next = turn;
    }
    out_free(&next);
    r->no_memory = r->no_memory || now->os;
    return true;
}

static heft_str substituted(rules *r, const heft_tensor *t)
{
    outbuf now;
    heft_str name = t->name;
    out_open(&now, -1);
    if (substitute_all(r, &now, t->name) &&
        (now.used != t->name.len || (now.used && memcmp(now.buf, t->name.ptr, now.used) != 0)))
        name = keep_name(r, &now);
    out_free(&now);
    return name.ptr ? name : t->name;
}

static heft_str rename_tensor(void *ctx, const heft_tensor *t)
{
    static const char prefix[] = "bert.";
    size_t len = sizeof prefix - 1;
    rules *r = ctx;
    heft_str name = r->no_memory ? t->name : substituted(r, t);
    if (r->no_memory)
        return (heft_str){ "\xFF", 1 }; /* no name at all: the conversion ends before it writes */
    if (r->encoder && name.len > len && !memcmp(name.ptr, prefix, len))
        name = (heft_str){ name.ptr + len, name.len - len };
    return name;
}

/* ---- what was given ---- */

/* Up to the next delimiter; a backslash before one makes it an ordinary character.  NULL: there is none, or no
 * memory, which *no_memory tells. */
static char *take_field(bool *no_memory, const char **at, char delimiter)
{
    const char *end = *at;
    while (*end && *end != delimiter)
        end += *end == '\\' && end[1] ? 2 : 1;
    char *field = *end ? malloc((size_t)(end - *at) + 1) : NULL;
    char *to = field;
    *no_memory = *end && !field;
    for (const char *p = *at; field && p < end; p++) {
        if (*p == '\\' && p + 1 < end && p[1] == delimiter)
            p++;
        else if (*p == '\\' && p + 1 < end)
            *to++ = *p++;
        *to++ = *p;
    }
    if (field)
        *to = 0;
    *at = end + 1;
    return field;
}

static int prepare_substitution(substitution *s, const char *who, const char *given)
{
    char why[200];
    const char *at = given + 2;
    char delimiter = *given == 's' ? given[1] : 0;
    bool no_memory = false;
    char *re = delimiter && delimiter != '\\' ? take_field(&no_memory, &at, delimiter) : NULL;
    s->text = re && *re ? take_field(&no_memory, &at, delimiter) : NULL;
    s->everywhere = s->text && !strcmp(at, "g");
    int code = CODE_DONE;
    if (!no_memory && (!s->text || (*at && !s->everywhere)))
        code = say_usage(who, "'%s' is not s/RE/TEXT/ or s/RE/TEXT/g", given);
    int failed = no_memory ? REG_ESPACE : code ? 0 : regcomp(&s->re, re, REG_EXTENDED);
    if (failed == REG_ESPACE) {
        code = say_code(CODE_SYSTEM, NULL, "no memory for '%s'", given);
    } else if (failed) {
        regerror(failed, &s->re, why, sizeof why);
        code = say_usage(who, "'%s': %s", given, why);
    }
    if (code) {
        free(s->text);
        s->text = NULL; /* there is no expression to release */
    }
    free(re);
    return code;
}

static heft_value *find_value(heft_value *values, size_t count, heft_str key)
{
    for (size_t i = 0; i < count; i++)
        if (str_same(values[i].key, key))
            return &values[i];
    return NULL;
}

/* A key that is given again counts as given last. */
static int prepare_value(rules *r, const char *who, const char *given)
{
    heft_value now;
    int code = assign_value(&now, who, given);
    if (code)
        return code;
    heft_value *same = find_value(r->values, r->value_count, now.key);
    *(same ? same : &r->values[r->value_count++]) = now;
    return CODE_DONE;
}

int rules_prepare(rules *r, const char *who, heft_write_options *o)
{
    int code = gptrs_prepare(&r->gptrs, who);
    r->substitutions = calloc(r->rename.count + 1, sizeof *r->substitutions);
    r->values = calloc(r->set.count + 1, sizeof *r->values);
    if (!code && (!r->substitutions || !r->values))
        code = say_code(CODE_SYSTEM, NULL, "no memory for the options");
    for (size_t i = 0; i < r->rename.count && !code; i++)
        code = prepare_substitution(&r->substitutions[i], who, r->rename.item[i]);
    if (!code)
        code = picks_prepare(&r->cast, PICK_CAST, who);
    if (!code)
        code = picks_prepare(&r->sparsify, PICK_SPARSIFY, who);
    if (!code)
        code = storing_prepare(&r->storage, who, o);
    for (size_t i = 0; i < r->set.count && !code; i++)
        code = prepare_value(r, who, r->set.item[i]);
    return code;
}

void rules_set(rules *r, heft_convert_options *o)
{
    bool keeps = r->keep.count || r->drop.count || r->encoder, casts = r->cast.given.count;
    bool turns = r->transpose.count, densifies = r->densify.count;
    bool sparsifies = r->sparsify.given.count;
    bool is_given = keeps || r->rename.count || casts || turns || densifies || sparsifies;
    bool has_identities = identities_are_given(&r->ids) || gptrs_are_given(&r->gptrs);
    o->keep = keeps ? keep : NULL;
    o->rename = is_given ? rename_tensor : NULL; /* to end the conversion without memory, too */
    o->cast = casts ? cast : NULL;
    o->transpose = turns ? transpose : NULL;
    o->densify = densifies ? densify : NULL;
    o->sparsify = sparsifies ? sparsify : NULL;
    o->identify = has_identities ? identify : NULL;
    o->storage = storing_is_given(&r->storage) ? storage : NULL;
    o->ctx = r;
    o->set = r->values;
    o->set_count = r->value_count;
}

bool rules_add_values(rules *r, const heft_value *values, size_t count)
{
    heft_value *all = calloc(r->value_count + count + 1, sizeof *all);
    size_t n = count;
    if (!all)
        return false;
    if (count)
        memcpy(all, values, count * sizeof *all);
    for (size_t i = 0; i < r->value_count; i++) {
        heft_value *same = find_value(all, n, r->values[i].key);
        *(same ? same : &all[n++]) = r->values[i];
    }
    free(r->values);
    r->values = all;
    r->value_count = n;
    return true;
}

/* ---- what has no effect ---- */

static void check_patterns(rules *r, const heft_file *f, const char *path, const char *option,
                           const opt_list *globs)
{
    for (size_t i = 0; i < globs->count; i++)
        pattern_check(&r->no_memory, f, path, option, globs->item[i]);
}

static void check_renames(rules *r, const heft_file *f, const char *path)
{
    outbuf now;
    bool all = false;
    out_open(&now, -1);
    for (uint32_t i = 0; i < heft_tensor_count(f) && !all; i++) {
        (void)substitute_all(r, &now, heft_tensor_at(f, i).name);
        all = true;
        for (size_t k = 0; k < r->rename.count; k++)
            all = all && r->substitutions[k].has_matched;
    }
    out_free(&now);
    for (size_t i = 0; i < r->rename.count && !r->no_memory; i++)
        if (!r->substitutions[i].has_matched)
            pattern_warn(path, "rename", r->rename.item[i]);
}

/* Most likely a slip, for which nothing is replaced by an empty model. */
static int refuse_empty(rules *r, const heft_file *f, const char *path)
{
    uint32_t count = heft_tensor_count(f);
    if (!r->keep.count && !r->drop.count)
        return CODE_DONE;
    for (uint32_t i = 0; i < count; i++) {
        heft_tensor t = heft_tensor_at(f, i);
        if (keep(r, &t))
            return CODE_DONE;
    }
    return say_code(CODE_USAGE, path,
                    "--keep and --drop leave none of %u tensors: nothing is written", count);
}

int rules_check(rules *r, const char *who, const heft_file *f, const char *path)
{
    check_patterns(r, f, path, "keep", &r->keep);
    check_patterns(r, f, path, "drop", &r->drop);
    check_patterns(r, f, path, "transpose", &r->transpose);
    check_patterns(r, f, path, "densify", &r->densify);
    picks_check(&r->no_memory, &r->cast, PICK_CAST, f, path);
    picks_check(&r->no_memory, &r->sparsify, PICK_SPARSIFY, f, path);
    storing_check(&r->storage, f, path);
    r->no_memory = r->no_memory || r->storage.no_memory;
    check_renames(r, f, path);
    int code = refuse_empty(r, f, path);
    if (!code && identities_are_given(&r->ids))
        code = identities_prepare(&r->ids, who, f, path, keep, r);
    return r->no_memory ? storing_say_no_memory(path) : code;
}

void rules_release(rules *r)
{
    for (size_t i = 0; r->substitutions && i < r->rename.count; i++)
        if (r->substitutions[i].text) {
            regfree(&r->substitutions[i].re);
            free(r->substitutions[i].text);
        }
    picks_release(&r->cast);
    picks_release(&r->sparsify);
    storing_release(&r->storage);
    for (kept_name *k = r->names; k;) {
        kept_name *next = k->next;
        free(k);
        k = next;
    }
    identities_release(&r->ids);
    gptrs_release(&r->gptrs);
    free(r->substitutions);
    free(r->values);
}
