#include "options/renames.h"

#include <errno.h>
#include <regex.h>
#include <stdlib.h>

#include "models/model.h"
#include "options/glob_rules.h"

typedef struct rename_rule {
    heft_str from, to; /* A and B of A=B */
    bool is_expression, is_global, has_matched;
    regex_t re;
    char *text; /* replacement, with \1 and & not yet expanded; NULL before regcomp() */
} rename_rule;

typedef struct stored_name {
    struct stored_name *next;
    char text[];
} stored_name;

enum { GROUPS = 10 }; /* & and \1 to \9 */

/* ---- expressions ---- */

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
static bool substitute(outbuf *o, rename_rule *s, const char *name)
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

/* ---- names ---- */

/* Append the name that the adjacent rules A=B from number *i give, and advance *i past them. */
static void replace_exact(outbuf *o, renames *r, size_t *i, heft_str name)
{
    bool is_done = false;
    for (; *i < r->args.count && !r->rules[*i].is_expression; (*i)++) {
        rename_rule *s = &r->rules[*i];
        if (is_done || !str_same(s->from, name))
            continue;
        is_done = s->has_matched = true;
        out_bytes(o, s->to.ptr, s->to.len);
    }
    if (!is_done)
        out_bytes(o, name.ptr, name.len);
}

static size_t skip_expression(outbuf *o, size_t i, heft_str name)
{
    out_bytes(o, name.ptr, name.len);
    return i + 1;
}

/* Store the name after all rules in `now`. */
static void apply_all(renames *r, outbuf *now, heft_str name)
{
    outbuf next;
    bool has_zero = name.len && memchr(name.ptr, 0, name.len);
    out_open(&next, -1);
    out_bytes(now, name.ptr, name.len);
    for (size_t i = 0; i < r->args.count && !r->no_memory;) {
        next.used = 0;
        const char *before = out_cstr(now);
        if (now->os)
            break;
        if (!r->rules[i].is_expression)
            replace_exact(&next, r, &i, (heft_str){ before, now->used });
        else if (!has_zero)
            r->no_memory = !substitute(&next, &r->rules[i++], before);
        else /* regexec() would see the beginning only */
            i = skip_expression(&next, i, (heft_str){ before, now->used });
        r->no_memory = r->no_memory || next.os;
        outbuf swapped = *now;
        *now = next;
        next = swapped;
    }
    r->no_memory = r->no_memory || now->os;
    out_free(&next);
}

static heft_str store_name(renames *r, const outbuf *text)
{
    stored_name *k = malloc(sizeof *k + text->used + 1);
    if (!k) {
        r->no_memory = true;
        return (heft_str){ NULL, 0 };
    }
    if (text->used)
        memcpy(k->text, text->buf, text->used);
    k->next = r->names;
    r->names = k;
    return (heft_str){ k->text, text->used };
}

heft_str renames_apply(renames *r, heft_str name)
{
    outbuf now;
    heft_str renamed = name;
    if (!r->args.count || r->no_memory)
        return name;
    out_open(&now, -1);
    apply_all(r, &now, name);
    if (!r->no_memory && !str_same((heft_str){ now.buf, now.used }, name))
        renamed = store_name(r, &now);
    out_free(&now);
    return renamed.ptr ? renamed : name;
}

bool renames_have_expressions(const renames *r)
{
    for (size_t i = 0; i < r->args.count; i++)
        if (r->rules[i].is_expression)
            return true;
    return false;
}

heft_rename renames_pair(const renames *r, size_t i)
{
    return (heft_rename){ .from = r->rules[i].from, .to = r->rules[i].to };
}

/* ---- arguments ---- */

/* Letters, digits and the characters that names of tensors often contain do not delimit, so that
 * 'sum.weight=w' is a rename of one tensor. */
static bool is_delimiter(char c)
{
    return c && strchr("/|,;:!@#%^&*+~?<>()[]{}$'\"` ", c);
}

/* Return the end of the field at p, which is the next delimiter without a backslash, or NULL. */
static const char *field_end(const char *p, char delimiter)
{
    while (*p && *p != delimiter)
        p += *p == '\\' && p[1] ? 2 : 1;
    return *p ? p : NULL;
}

/* Copy the text before `end`; a backslash makes a delimiter an ordinary character. NULL without
 * memory. */
static char *copy_field(const char *from, const char *end, char delimiter)
{
    char *field = malloc((size_t)(end - from) + 1), *to = field;
    for (const char *p = from; field && p < end; p++) {
        if (*p == '\\' && p + 1 < end && p[1] == delimiter)
            p++;
        else if (*p == '\\' && p + 1 < end)
            *to++ = *p++;
        *to++ = *p;
    }
    if (field)
        *to = 0;
    return field;
}

static int compile(rename_rule *s, const char *cmd, const char *arg, const char *re)
{
    char why[200];
    int failed = regcomp(&s->re, re, REG_EXTENDED);
    if (failed == REG_ESPACE)
        return say_status(HEFT_E_NOMEM, NULL, "no memory for '%s'", arg);
    if (!failed)
        return CODE_DONE;
    regerror(failed, &s->re, why, sizeof why);
    return say_usage(cmd, "'%s': %s", arg, why);
}

static int prepare_expression(rename_rule *s, const char *cmd, const char *arg, const char *middle,
                              const char *end)
{
    char *re = copy_field(arg + 2, middle, arg[1]), *text = copy_field(middle + 1, end, arg[1]);
    int code = re && text ? compile(s, cmd, arg, re)
                          : say_status(HEFT_E_NOMEM, NULL, "no memory for '%s'", arg);
    free(re);
    if (code)
        free(text);
    else
        s->text = text;
    s->is_expression = true;
    s->is_global = end[1];
    return code;
}

/* A complete expression is an expression; any other argument with a '=' is A=B. */
static int prepare_rule(rename_rule *s, const char *cmd, const char *arg)
{
    char delimiter = arg[0] == 's' && is_delimiter(arg[1]) ? arg[1] : 0;
    const char *middle = delimiter ? field_end(arg + 2, delimiter) : NULL;
    const char *end = middle ? field_end(middle + 1, delimiter) : NULL;
    const char *equals = strchr(arg, '=');
    if (end && middle > arg + 2 && (!end[1] || !strcmp(end + 1, "g")))
        return prepare_expression(s, cmd, arg, middle, end);
    if (!equals)
        return say_usage(cmd, "'%s' is not A=B, s/RE/TEXT/ or s/RE/TEXT/g", arg);
    s->from = (heft_str){ arg, (size_t)(equals - arg) };
    s->to = str_of(equals + 1);
    return CODE_DONE;
}

int renames_prepare(renames *r, const char *cmd)
{
    int code = CODE_DONE;
    r->rules = calloc(r->args.count + 1, sizeof *r->rules);
    if (!r->rules)
        return say_status(HEFT_E_NOMEM, NULL, "no memory for the options");
    for (size_t i = 0; i < r->args.count && !code; i++)
        code = prepare_rule(&r->rules[i], cmd, r->args.item[i]);
    return code;
}

void renames_release(renames *r)
{
    for (size_t i = 0; r->rules && i < r->args.count; i++)
        if (r->rules[i].text) {
            regfree(&r->rules[i].re);
            free(r->rules[i].text);
        }
    for (stored_name *k = r->names; k;) {
        stored_name *next = k->next;
        free(k);
        k = next;
    }
    free(r->rules);
    r->rules = NULL;
    r->names = NULL;
}

/* ---- a file ---- */

heft_str *renames_apply_to_file(renames *r, const heft_file *f)
{
    uint32_t count = heft_tensor_count(f);
    heft_str *names = calloc((size_t)count + 1, sizeof *names);
    r->no_memory = r->no_memory || !names;
    for (uint32_t i = 0; names && i < count; i++)
        names[i] = renames_apply(r, heft_tensor_at(f, i).name);
    if (!r->no_memory)
        return names;
    free(names);
    return NULL;
}

typedef struct named { /* a tensor with the name after the rules */
    heft_str name;
    uint32_t tensor;
} named;

static int by_name(const void *a, const void *b)
{
    const named *x = a, *y = b;
    int order = str_order(x->name, y->name);
    if (order)
        return order;
    return x->tensor < y->tensor ? -1 : x->tensor > y->tensor;
}

static int say_collision(const heft_file *f, const char *path, const named *first)
{
    outbuf o;
    int code = model_check_unchanged(f, path);
    if (code)
        return code;
    out_open(&o, -1);
    out_text(&o, "--rename gives tensors '");
    out_escaped(&o, heft_tensor_at(f, first[0].tensor).name);
    out_text(&o, "' and '");
    out_escaped(&o, heft_tensor_at(f, first[1].tensor).name);
    out_text(&o, "' the same name '");
    out_escaped(&o, first->name);
    out_char(&o, '\'');
    code = say_status(HEFT_E_ARGUMENT, path, "%s", out_cstr(&o));
    out_free(&o);
    return code;
}

int renames_refuse_collisions(const heft_file *f, const char *path, const heft_str *names,
                              bool (*keeps)(void *ctx, const heft_tensor *t), void *ctx)
{
    uint32_t count = heft_tensor_count(f), kept = 0;
    int code = CODE_DONE;
    named *all = malloc(((size_t)count + 1) * sizeof *all);
    if (!all)
        return say_no_memory_to_match(path);
    for (uint32_t i = 0; i < count; i++) {
        heft_tensor t = heft_tensor_at(f, i);
        if (!keeps || keeps(ctx, &t))
            all[kept++] = (named){ names[i], i };
    }
    qsort(all, kept, sizeof *all, by_name);
    for (uint32_t i = 1; i < kept && !code; i++)
        if (str_same(all[i - 1].name, all[i].name))
            code = say_collision(f, path, &all[i - 1]);
    free(all);
    return code;
}

void renames_check(unmatched *u, const renames *r)
{
    for (size_t i = 0; i < r->args.count; i++)
        if (!r->rules[i].has_matched)
            unmatched_say(u, "rename", r->args.item[i]);
}

int renames_refuse_unknown(const renames *r, const char *path)
{
    for (size_t i = 0; i < r->args.count; i++)
        if (!r->rules[i].has_matched && !r->rules[i].is_expression)
            return say_status(HEFT_E_NOTFOUND, path, "no tensor matches --rename '%s'",
                              r->args.item[i]);
    return CODE_DONE;
}
