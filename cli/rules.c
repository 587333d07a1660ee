#include "rules.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "assign.h"
#include "model.h"

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

/* A buffer that counts upwards: no weight. */
static bool is_position_ids(heft_str name)
{
    static const char ids[] = "position_ids";
    size_t len = sizeof ids - 1;
    return name.len >= len && !memcmp(name.ptr + name.len - len, ids, len) &&
           (name.len == len || name.ptr[name.len - len - 1] == '.');
}

bool rules_keep(void *ctx, const heft_tensor *t)
{
    rules *r = ctx;
    if (r->encoder && is_position_ids(t->name))
        return false;
    bool kept = !r->keep.count || matches_any(r, t->name, &r->keep);
    kept = kept && !matches_any(r, t->name, &r->drop);
    return kept || r->no_memory; /* rules_rename() ends the conversion */
}

bool rules_transpose(void *ctx, const heft_tensor *t)
{
    rules *r = ctx;
    return matches_any(r, t->name, &r->transpose);
}

bool rules_densify(void *ctx, const heft_tensor *t)
{
    rules *r = ctx;
    return matches_any(r, t->name, &r->densify);
}

/* Whether a tensor can have the layout at all. */
static bool suits(heft_layout layout, const heft_tensor *t)
{
    const heft_dtype_info *d = heft_dtype_get(t->dtype);
    bool plain = d && d->block_elems == 1 && t->part_count == 1;
    return plain && (layout == HEFT_SPARSE_CSR ? t->rank == 2 : t->rank > 0);
}

heft_layout rules_sparsify(void *ctx, const heft_tensor *t)
{
    rules *r = ctx;
    for (size_t i = 0; i < r->sparsify.given.count; i++) {
        const pick *s = &r->sparsify.items[i];
        if (s->glob ? name_matches(&r->no_memory, t->name, s->glob) : suits(s->layout, t))
            return s->layout;
    }
    return HEFT_DENSE;
}

heft_dtype rules_cast(void *ctx, const heft_tensor *t)
{
    rules *r = ctx;
    const pick *p = picks_find(&r->no_memory, &r->cast, t->name);
    return p ? p->dtype : (heft_dtype)HEFT_UNTYPED;
}

bool rules_storage(void *ctx, const heft_tensor *t, heft_str role, heft_storage *how)
{
    rules *r = ctx;
    bool is_asked = storing_choose(&r->storage, t, role, how);
    r->no_memory = r->no_memory || r->storage.no_memory;
    return is_asked;
}

bool rules_identify(void *ctx, const heft_tensor *t, heft_identity *id)
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

/* The C library may say "no match" for a lack of memory as well, which then stands in errno. */
static bool finds(bool *no_memory, const regex_t *re, const char *text, regmatch_t m[GROUPS],
                  int flags)
{
    errno = 0;
    int st = regexec(re, text, GROUPS, m, flags);
    *no_memory = st && (st != REG_NOMATCH || errno == ENOMEM);
    return !st;
}

/* Appends name with its first match, or with all, replaced.  As sed does, an empty match right
 * behind another one does not count.  False: no memory. */
static bool substitute(outbuf *o, substitution *s, const char *name)
{
    regmatch_t m[GROUPS];
    bool behind_match = false, no_memory = false;
    for (int flags = 0; finds(&no_memory, &s->re, name, m, flags); flags = REG_NOTBOL) {
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
    return !no_memory && !o->os;
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

heft_str rules_rename(void *ctx, const heft_tensor *t)
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

static int no_memory_for(const char *given)
{
    say(NULL, "no memory for '%s'", given);
    return CODE_SYSTEM;
}

static int compile(substitution *s, const char *who, const char *re, const char *given)
{
    char why[200];
    int failed = regcomp(&s->re, re, REG_EXTENDED);
    if (!failed)
        return CODE_DONE;
    regerror(failed, &s->re, why, sizeof why);
    free(s->text);
    s->text = NULL;
    return failed == REG_ESPACE ? no_memory_for(given) : say_usage(who, "'%s': %s", given, why);
}

static int prepare_substitution(substitution *s, const char *who, const char *given)
{
    const char *at = given + 2;
    char delimiter = *given == 's' ? given[1] : 0;
    bool no_memory = false;
    char *re = delimiter && delimiter != '\\' ? take_field(&no_memory, &at, delimiter) : NULL;
    s->text = re && *re ? take_field(&no_memory, &at, delimiter) : NULL;
    s->everywhere = s->text && !strcmp(at, "g");
    int code = CODE_DONE;
    if (no_memory)
        code = no_memory_for(given);
    else if (!s->text || (*at && !s->everywhere))
        code = say_usage(who, "'%s' is not s/RE/TEXT/ or s/RE/TEXT/g", given);
    if (code) {
        free(s->text);
        s->text = NULL;
    } else {
        code = compile(s, who, re, given);
    }
    free(re);
    return code;
}

static bool same_key(heft_str a, heft_str b)
{
    return a.len == b.len && !memcmp(a.ptr, b.ptr, a.len);
}

/* A key that is given again counts as given last. */
static int prepare_value(rules *r, const char *who, const char *given)
{
    heft_value *v = r->values, now;
    int code = assign_value(&now, who, given);
    if (code)
        return code;
    while (v < r->values + r->value_count && !same_key(v->key, now.key))
        v++;
    r->value_count += v == r->values + r->value_count;
    *v = now;
    return CODE_DONE;
}

bool rules_are_given(const rules *r)
{
    return r->keep.count || r->drop.count || r->rename.count || r->cast.given.count ||
           storing_is_given(&r->storage) || r->transpose.count || r->densify.count ||
           r->sparsify.given.count || r->encoder;
}

int rules_prepare(rules *r, const char *who, heft_write_options *o)
{
    int code = CODE_DONE;
    r->substitutions = calloc(r->rename.count + 1, sizeof *r->substitutions);
    r->values = calloc(r->set.count + 1, sizeof *r->values);
    if (!r->substitutions || !r->values) {
        say(NULL, "no memory for the options");
        return CODE_SYSTEM;
    }
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

static heft_value *value_of(heft_value *values, size_t count, heft_str key)
{
    for (size_t i = 0; i < count; i++)
        if (same_key(values[i].key, key))
            return &values[i];
    return NULL;
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
        heft_value *same = value_of(all, n, r->values[i].key);
        *(same ? same : &all[n++]) = r->values[i];
    }
    free(r->values);
    r->values = all;
    r->value_count = n;
    return true;
}

/* ---- what has no effect ---- */

static void warn(const char *path, const char *option, const char *given)
{
    say(path, "warning: no tensor matches --%s '%s'", option, given);
}

static void check_pattern(rules *r, const heft_file *f, const char *path, const char *option,
                          const char *glob)
{
    for (uint32_t i = 0; i < heft_tensor_count(f); i++)
        if (name_matches(&r->no_memory, heft_tensor_at(f, i).name, glob) || r->no_memory)
            return;
    warn(path, option, glob);
}

static void check_patterns(rules *r, const heft_file *f, const char *path, const char *option,
                           const opt_list *globs)
{
    for (size_t i = 0; i < globs->count; i++)
        check_pattern(r, f, path, option, globs->item[i]);
}

static size_t count_unmatched(const rules *r)
{
    size_t n = 0;
    for (size_t i = 0; i < r->rename.count; i++)
        n += !r->substitutions[i].has_matched;
    return n;
}

static void check_renames(rules *r, const heft_file *f, const char *path)
{
    outbuf now;
    out_open(&now, -1);
    for (uint32_t i = 0; i < heft_tensor_count(f) && count_unmatched(r); i++)
        (void)substitute_all(r, &now, heft_tensor_at(f, i).name);
    out_free(&now);
    for (size_t i = 0; i < r->rename.count && !r->no_memory; i++)
        if (!r->substitutions[i].has_matched)
            warn(path, "rename", r->rename.item[i]);
}

/* Most likely a slip, for which nothing is replaced by an empty model. */
static int refuse_empty(rules *r, const heft_file *f, const char *path)
{
    uint32_t count = heft_tensor_count(f);
    if (!r->keep.count && !r->drop.count)
        return CODE_DONE;
    for (uint32_t i = 0; i < count; i++) {
        heft_tensor t = heft_tensor_at(f, i);
        if (rules_keep(r, &t))
            return CODE_DONE;
    }
    say(path, "--keep and --drop leave none of %u tensors: nothing is written", count);
    return CODE_USAGE;
}

int rules_say_no_memory(const char *path)
{
    return storing_say_no_memory(path);
}

int rules_check(rules *r, const heft_file *f, const char *path)
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
        code = identities_prepare(&r->ids, "convert", f, path, rules_keep, r);
    return r->no_memory ? rules_say_no_memory(path) : code;
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
    free(r->substitutions);
    free(r->values);
}
