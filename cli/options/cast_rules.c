#include "options/cast_rules.h"

#include <heft/mix.h>
#include <heft/scheme.h>

#include <stdlib.h>
#include <string.h>

#include "models/model.h"
#include "models/quantised.h"
#include "text/number_text.h"
#include "text/words.h"

/* ---- arguments ---- */

int say_unknown_dtype(const char *cmd, const char *text)
{
    char hint[SUGGESTION_BYTES];
    const heft_dtype_info *d;
    outbuf types;
    out_open(&types, -1);
    for (heft_dtype t = 1; (d = heft_dtype_get(t)) != NULL; t++)
        if (heft_dtype_can_cast(t, HEFT_F32) || heft_dtype_can_cast(t, HEFT_C64))
            out_format(&types, "%s%s", types.used ? ", " : "", d->name);
    int code = say_usage(cmd,
                         "unknown element type '%s'%s (known: %s; `heft formats --types` "
                         "describes them)",
                         text, suggest_dtype(hint, text), out_cstr(&types));
    out_free(&types);
    return code;
}

static heft_dtype find_type(const char *text, size_t len)
{
    return heft_dtype_find((heft_str){ text, len });
}

/* Find the pattern and the source type in the text before the last '=', or before the last ':' if
 * there is no '='. What is no element type is a pattern, as in GLOB=DTYPE. */
static bool read_selector(cast_rule *to, const char *text, size_t len)
{
    size_t colon = len;
    while (colon && text[colon - 1] != ':')
        colon--;
    to->from = find_type(text + colon, len - colon);
    size_t glob = !to->from ? len : colon ? colon - 1 : 0;
    to->glob = glob || !to->from ? strndup(text, glob) : NULL;
    return to->glob || (!glob && to->from);
}

static int read_rule(cast_rule *to, const char *arg, const char *cmd)
{
    const char *equals = strrchr(arg, '='), *colon = strrchr(arg, ':');
    const char *type = equals ? equals + 1 : colon ? colon + 1 : arg;
    to->to = find_type(type, strlen(type));
    if (!to->to)
        return say_unknown_dtype(cmd, type);
    bool ok = true;
    if (equals)
        ok = read_selector(to, arg, (size_t)(equals - arg));
    else if (colon)
        ok = (to->glob = strndup(arg, (size_t)(colon - arg))) != NULL;
    return ok ? CODE_DONE : say_status(HEFT_E_NOMEM, NULL, "no memory for the options");
}

int cast_rules_prepare(cast_rules *c, const char *cmd)
{
    int code = CODE_DONE;
    c->items = calloc(c->args.count + 1, sizeof *c->items);
    if (!c->items)
        return say_status(HEFT_E_NOMEM, NULL, "no memory for the options");
    for (size_t i = 0; i < c->args.count && !code; i++)
        code = read_rule(&c->items[i], c->args.item[i], cmd);
    return code;
}

void cast_rules_release(cast_rules *c)
{
    for (size_t i = 0; c->items && i < c->args.count; i++)
        free(c->items[i].glob);
    free(c->items);
    c->items = NULL;
}

/* ---- tensors ---- */

static bool is_float(heft_dtype t)
{
    const heft_dtype_info *d = heft_dtype_get(t);
    return d && (d->kind == HEFT_DTYPE_FLOAT || d->kind == HEFT_DTYPE_BLOCK);
}

/* Return true for a rule that leaves tensors of other types alone. */
static bool is_for_floats(const cast_rule *r)
{
    return !r->glob && !r->from && is_float(r->to);
}

static bool is_quantised(const cast_rules *c, const heft_tensor *t)
{
    return c->schemes &&
           heft_schemes_find(c->schemes, heft_tensor_find(c->f, t->name)) != HEFT_NONE;
}

/* Return whether the tensor is a scale, or another part beside the packed numbers. */
static bool is_scale(const cast_rules *c, const heft_tensor *t)
{
    heft_quantised q;
    uint32_t tensor = c->schemes ? heft_tensor_find(c->f, t->name) : HEFT_NONE;
    const char *role = quantised_role(c->schemes, tensor, &q);
    return role && strcmp(role, "weight") != 0 && strcmp(role, "data") != 0;
}

/* A source type selects no scales: they stay, unless a pattern alone names them. */
static bool matches(bool *no_memory, const cast_rules *c, const cast_rule *r, const heft_tensor *t)
{
    bool suits = !is_for_floats(r) || is_float(t->dtype) || is_quantised(c, t);
    return suits && (!r->from || (t->dtype == r->from && !is_scale(c, t))) &&
           (!r->glob || name_matches(no_memory, t->name, r->glob));
}

static const cast_rule *find_rule(bool *no_memory, const cast_rules *c, const heft_tensor *t)
{
    for (size_t i = 0; i < c->args.count; i++)
        if (matches(no_memory, c, &c->items[i], t))
            return &c->items[i];
    return NULL;
}

/* Return why a rule does not count for the tensor, which llama.cpp needs in f32; or NULL. */
static const char *reason_for_f32(const cast_rules *c, const cast_rule *r, const heft_tensor *t)
{
    return r && c->is_for_ggml && r->to != HEFT_F32 ? heft_mix_needs_f32(t, t->name) : NULL;
}

heft_dtype cast_rules_find(bool *no_memory, const cast_rules *c, const heft_tensor *t)
{
    const cast_rule *r = find_rule(no_memory, c, t);
    if (reason_for_f32(c, r, t))
        return HEFT_F32;
    return r ? r->to : HEFT_UNTYPED;
}

/* ---- what has no effect ---- */

static void check_rule(unmatched *u, const cast_rules *c, const cast_rule *r, const char *arg)
{
    for (uint32_t i = 0; i < heft_tensor_count(u->f); i++) {
        heft_tensor t = heft_tensor_at(u->f, i);
        if (matches(&u->no_memory, c, r, &t) || u->no_memory)
            return;
    }
    char hint[SUGGESTION_BYTES];
    unmatched_say(u, "cast", r->glob && !r->from ? r->glob : arg);
    if (r->glob && !r->from && *suggest_dtype(hint, r->glob))
        say(MESSAGE_INFO, u->path, "'%s' is a pattern here, not an element type%s", r->glob, hint);
}

/* Say how many scales a rule with a source type leaves as they are, where no other rule casts
 * them. */
static void say_scales(unmatched *u, const cast_rules *c, const cast_rule *r)
{
    uint32_t count = 0;
    for (uint32_t i = 0; r->from && i < heft_tensor_count(u->f); i++) {
        heft_tensor t = heft_tensor_at(u->f, i);
        bool is_meant = t.dtype == r->from && is_scale(c, &t) &&
                        (!r->glob || name_matches(&u->no_memory, t.name, r->glob));
        count += is_meant && !cast_rules_find(&u->no_memory, c, &t);
    }
    if (count)
        say(MESSAGE_NOTE, u->path, "%u scale%s of quantised tensors keep%s the type %s", count,
            count == 1 ? "" : "s", count == 1 ? "s" : "", dtype_name(r->from));
}

/* Write how many tensors of each type keep it although a rule for all floats is given. */
static uint32_t count_kept(outbuf *o, unmatched *u, const cast_rules *c)
{
    uint32_t of_type[HEFT_DTYPES] = { 0 }, count = 0;
    for (uint32_t i = 0; i < heft_tensor_count(u->f); i++) {
        heft_tensor t = heft_tensor_at(u->f, i);
        if (t.dtype && t.dtype < HEFT_DTYPES && !is_float(t.dtype) &&
            !cast_rules_find(&u->no_memory, c, &t))
            of_type[t.dtype]++;
    }
    for (heft_dtype t = 1; t < HEFT_DTYPES; t++) {
        if (of_type[t])
            out_format(o, "%s%u %s", count ? ", " : "", of_type[t], dtype_name(t));
        count += of_type[t];
    }
    return count;
}

static void say_kept(unmatched *u, const cast_rules *c, const cast_rule *rule)
{
    outbuf types;
    out_open(&types, -1);
    uint32_t count = count_kept(&types, u, c);
    if (count)
        say(MESSAGE_NOTE, u->path,
            "%u tensor%s %s not floating-point and keep%s: %s (--cast '*=%s' casts every tensor)",
            count, count == 1 ? "" : "s", count == 1 ? "is" : "are",
            count == 1 ? "s its type" : " their types", out_cstr(&types), dtype_name(rule->to));
    out_free(&types);
}

/* Say how many tensors llama.cpp needs in f32, and refuse a rule that names one of them. */
static void check_f32(unmatched *u, const cast_rules *c)
{
    uint32_t count = 0;
    outbuf name;
    out_open(&name, -1);
    for (uint32_t i = 0; c->is_for_ggml && i < heft_tensor_count(u->f); i++) {
        heft_tensor t = heft_tensor_at(u->f, i);
        const cast_rule *r = find_rule(&u->no_memory, c, &t);
        const char *reason = reason_for_f32(c, r, &t);
        if (!reason)
            continue;
        if (!count++)
            out_escaped(&name, t.name);
        bool is_named = r->glob && strlen(r->glob) == t.name.len &&
                        !memcmp(r->glob, t.name.ptr, t.name.len);
        if (is_named)
            u->code = say_status(HEFT_E_UNSUPPORTED, u->path,
                                 "--cast '%s=%s': llama.cpp needs this tensor in f32 (%s)", r->glob,
                                 dtype_name(r->to), reason);
    }
    if (count && !u->code)
        say(MESSAGE_NOTE, u->path, "%u tensor%s f32 in spite of --cast, as llama.cpp needs%s: %s%s",
            count, count == 1 ? " is" : "s are", count == 1 ? " it" : " them", out_cstr(&name),
            count == 1 ? "" : " ...");
    out_free(&name);
}

void cast_rules_check(unmatched *u, const cast_rules *c)
{
    const cast_rule *for_floats = NULL;
    for (size_t i = 0; i < c->args.count; i++) {
        if (is_for_floats(&c->items[i]))
            for_floats = &c->items[i];
        else if (c->items[i].glob || c->items[i].from)
            check_rule(u, c, &c->items[i], c->args.item[i]);
        say_scales(u, c, &c->items[i]);
    }
    if (for_floats)
        say_kept(u, c, for_floats);
    check_f32(u, c);
}
