#include "rules.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "assign.h"
#include "model.h"

/* ---- names ---- */

typedef struct stored_name { /* a new name, valid until the conversion ends */
    struct stored_name *next;
    char text[];
} stored_name;

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
    /* A buffer 0, 1, 2, ... of BERT models, not a weight. */
    static const char ids[] = "position_ids";
    size_t len = sizeof ids - 1, n = t->name.len;
    const char *end = t->name.ptr + n;
    rules *r = ctx;
    if (r->encoder && n >= len && !memcmp(end - len, ids, len) &&
        (n == len || end[-(ptrdiff_t)len - 1] == '.'))
        return false;
    bool kept = !r->keep.count || matches_any(r, t->name, &r->keep);
    kept = kept && !matches_any(r, t->name, &r->drop);
    return kept || r->no_memory; /* on no_memory, rename_tensor() ends the conversion */
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

/* Without a pattern, --sparsify applies only to tensors that can have the layout. */
static heft_layout sparsify(void *ctx, const heft_tensor *t)
{
    rules *r = ctx;
    const heft_dtype_info *d = heft_dtype_get(t->dtype);
    bool plain = d && d->block_elems == 1 && t->part_count == 1;
    for (size_t i = 0; i < r->sparsify.args.count; i++) {
        const glob_rule *s = &r->sparsify.items[i];
        bool suits = plain && (s->layout == HEFT_SPARSE_CSR ? t->rank == 2 : t->rank > 0);
        if (s->glob ? name_matches(&r->no_memory, t->name, s->glob) : suits)
            return s->layout;
    }
    return HEFT_DENSE;
}

static heft_dtype cast(void *ctx, const heft_tensor *t)
{
    rules *r = ctx;
    const glob_rule *p = glob_rules_find(&r->no_memory, &r->cast, t->name);
    return p ? p->dtype : (heft_dtype)HEFT_UNTYPED;
}

static bool storage(void *ctx, const heft_tensor *t, heft_str role, heft_storage *out)
{
    rules *r = ctx;
    bool is_asked = storage_rules_choose(&r->storage, t, role, out);
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

/* Write the replacement: & and \0 are the whole match, \1 to \9 its groups, \x is x. */
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

/* Append the name with its first match, or all matches, replaced. As in sed, an empty match
 * directly after another match is ignored. Return false without memory. */
static bool substitute(outbuf *o, substitution *s, const char *name)
{
    regmatch_t m[GROUPS];
    bool after_match = false;
    int st = 0;
    for (int flags = 0;; flags = REG_NOTBOL) {
        errno = 0;
        st = regexec(&s->re, name, GROUPS, m, flags);
        if (st)
            break;
        bool empty = m[0].rm_so == m[0].rm_eo;
        s->has_matched = true;
        out_bytes(o, name, (size_t)m[0].rm_so);
        if (!(empty && after_match && !m[0].rm_so))
            put_replacement(o, s->text, name, m);
        name += m[0].rm_eo;
        if (!s->is_global || (empty && !*name))
            break;
        if (empty)
            out_char(o, *name++);
        after_match = !empty;
    }
    out_text(o, name);
    /* The C library may also return REG_NOMATCH when memory runs out, with errno set. */
    return !o->os && (!st || (st == REG_NOMATCH && errno != ENOMEM));
}

static heft_str store_name(rules *r, const outbuf *text)
{
    stored_name *k = malloc(sizeof *k + text->used + 1);
    if (!k) {
        r->no_memory = true;
        return (heft_str){ NULL, 0 };
    }
    memcpy(k->text, text->buf, text->used);
    k->next = r->names;
    r->names = k;
    return (heft_str){ k->text, text->used };
}

/* Store the name after all substitutions in `now`. Return false if there are none, or if the name
 * contains a zero byte, which regexec() cannot match. */
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
        outbuf swapped = *now;
        *now = next;
        next = swapped;
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
        name = store_name(r, &now);
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
        /* An invalid name ends the conversion before it writes. */
        return (heft_str){ "\xFF", 1 };
    if (r->encoder && name.len > len && !memcmp(name.ptr, prefix, len))
        name = (heft_str){ name.ptr + len, name.len - len };
    return name;
}

/* ---- what was given ---- */

/* Copy the text up to the next delimiter; a backslash makes a delimiter an ordinary character. NULL
 * if there is no delimiter, or if memory runs out, which sets *no_memory. */
static char *parse_field(bool *no_memory, const char **at, char delimiter)
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

static int prepare_substitution(substitution *s, const char *cmd, const char *arg)
{
    char why[200];
    const char *at = arg + 2;
    char delimiter = *arg == 's' ? arg[1] : 0;
    bool no_memory = false;
    char *re = delimiter && delimiter != '\\' ? parse_field(&no_memory, &at, delimiter) : NULL;
    s->text = re && *re ? parse_field(&no_memory, &at, delimiter) : NULL;
    s->is_global = s->text && !strcmp(at, "g");
    int code = CODE_DONE;
    if (!no_memory && (!s->text || (*at && !s->is_global)))
        code = say_usage(cmd, "'%s' is not s/RE/TEXT/ or s/RE/TEXT/g", arg);
    int failed = no_memory ? REG_ESPACE : code ? 0 : regcomp(&s->re, re, REG_EXTENDED);
    if (failed == REG_ESPACE) {
        code = say_status(HEFT_E_NOMEM, NULL, "no memory for '%s'", arg);
    } else if (failed) {
        regerror(failed, &s->re, why, sizeof why);
        code = say_usage(cmd, "'%s': %s", arg, why);
    }
    if (code) {
        free(s->text);
        s->text = NULL; /* regcomp() failed or was not called */
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

/* The last value of a repeated key counts. */
static int prepare_value(rules *r, const char *cmd, const char *arg)
{
    heft_value now;
    int code = assign_value(&now, cmd, arg);
    if (code)
        return code;
    heft_value *same = find_value(r->values, r->value_count, now.key);
    *(same ? same : &r->values[r->value_count++]) = now;
    return CODE_DONE;
}

int rules_prepare(rules *r, const char *cmd, heft_write_options *o)
{
    int code = gptrs_prepare(&r->gptrs, cmd);
    r->substitutions = calloc(r->rename.count + 1, sizeof *r->substitutions);
    r->values = calloc(r->set.count + 1, sizeof *r->values);
    if (!code && (!r->substitutions || !r->values))
        code = say_status(HEFT_E_NOMEM, NULL, "no memory for the options");
    for (size_t i = 0; i < r->rename.count && !code; i++)
        code = prepare_substitution(&r->substitutions[i], cmd, r->rename.item[i]);
    if (!code)
        code = glob_rules_prepare(&r->cast, GLOB_CAST, cmd);
    if (!code)
        code = glob_rules_prepare(&r->sparsify, GLOB_SPARSIFY, cmd);
    if (!code)
        code = storage_rules_prepare(&r->storage, cmd, o);
    for (size_t i = 0; i < r->set.count && !code; i++)
        code = prepare_value(r, cmd, r->set.item[i]);
    return code;
}

void rules_set(rules *r, heft_convert_options *o)
{
    bool filters = r->keep.count || r->drop.count || r->encoder, casts = r->cast.args.count;
    bool transposes = r->transpose.count, densifies = r->densify.count;
    bool sparsifies = r->sparsify.args.count;
    bool is_given = filters || r->rename.count || casts || transposes || densifies || sparsifies;
    bool has_identities = identities_are_given(&r->ids) || gptrs_are_given(&r->gptrs);
    o->keep = filters ? keep : NULL;
    o->rename = is_given ? rename_tensor : NULL; /* also ends the conversion on no_memory */
    o->cast = casts ? cast : NULL;
    o->transpose = transposes ? transpose : NULL;
    o->densify = densifies ? densify : NULL;
    o->sparsify = sparsifies ? sparsify : NULL;
    o->identify = has_identities ? identify : NULL;
    o->storage = storage_rules_are_given(&r->storage) ? storage : NULL;
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
        glob_warn_if_unmatched(&r->no_memory, f, path, option, globs->item[i]);
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
            glob_warn_unmatched(path, "rename", r->rename.item[i]);
}

/* Refuse to write an empty model: patterns that leave no tensor are most likely a mistake. */
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
    return say_status(HEFT_E_ARGUMENT, path,
                      "--keep and --drop leave none of the %u tensors: nothing written", count);
}

int rules_check(rules *r, const char *cmd, const heft_file *f, const char *path)
{
    check_patterns(r, f, path, "keep", &r->keep);
    check_patterns(r, f, path, "drop", &r->drop);
    check_patterns(r, f, path, "transpose", &r->transpose);
    check_patterns(r, f, path, "densify", &r->densify);
    glob_rules_warn_unmatched(&r->no_memory, &r->cast, GLOB_CAST, f, path);
    glob_rules_warn_unmatched(&r->no_memory, &r->sparsify, GLOB_SPARSIFY, f, path);
    storage_rules_warn_unmatched(&r->storage, f, path);
    r->no_memory = r->no_memory || r->storage.no_memory;
    check_renames(r, f, path);
    int code = refuse_empty(r, f, path);
    if (!code && identities_are_given(&r->ids))
        code = identities_prepare(&r->ids, cmd, f, path, keep, r);
    return r->no_memory ? say_no_memory_to_match(path) : code;
}

void rules_release(rules *r)
{
    for (size_t i = 0; r->substitutions && i < r->rename.count; i++)
        if (r->substitutions[i].text) {
            regfree(&r->substitutions[i].re);
            free(r->substitutions[i].text);
        }
    glob_rules_release(&r->cast);
    glob_rules_release(&r->sparsify);
    storage_rules_release(&r->storage);
    for (stored_name *k = r->names; k;) {
        stored_name *next = k->next;
        free(k);
        k = next;
    }
    identities_release(&r->ids);
    gptrs_release(&r->gptrs);
    free(r->substitutions);
    free(r->values);
}
