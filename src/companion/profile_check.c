/* profile_check.c - checks a file against a profile, with a finding for everything missing or
 * wrong. */
#include <string.h>

#include "base/checked_math.h"
#include "base/error.h"
#include "base/out.h"
#include "companion/profile_types.h"

/* ---- expressions ---- */

typedef struct expression {
    heft_str text;
    size_t at;
    const heft_profile *p;
    const heft_file *f;
} expression;

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static char peek(expression *x)
{
    while (x->at < x->text.len && x->text.ptr[x->at] == ' ')
        x->at++;
    return x->at < x->text.len ? x->text.ptr[x->at] : 0;
}

/* Get a metadata value as a number; return false for any other value. */
static bool profile_number(uint64_t *out, const heft_value *v)
{
    *out = v->as.u;
    if (v->kind == HEFT_KIND_STR)
        return heft_json_u64(out, v->as.s);
    return v->kind == HEFT_KIND_UINT || (v->kind == HEFT_KIND_INT && v->as.i >= 0);
}

/* Get the metadata value with the given key; return false if absent. */
static bool profile_meta(heft_value *out, const heft_file *f, heft_str key)
{
    for (uint32_t i = 0; i < heft_meta_count(f); i = heft_meta_next(f, i)) {
        *out = heft_meta_at(f, i);
        if (heft_str_eq(out->key, key))
            return true;
    }
    return false;
}

static bool name_value(uint64_t *out, const expression *x, heft_str name)
{
    const heft_profile_size *sizes = x->p->sizes.ptr;
    for (uint32_t i = 0; i < x->p->sizes.len; i++)
        if (heft_str_eq(sizes[i].name, name)) {
            *out = sizes[i].value;
            return true;
        }
    heft_value v;
    return x->f && profile_meta(&v, x->f, name) && profile_number(out, &v);
}

static bool take_operand(uint64_t *out, expression *x)
{
    bool is_number = is_digit(peek(x));
    heft_str word = { x->text.ptr + x->at, 0 };
    for (; x->at < x->text.len; x->at++, word.len++) {
        char c = x->text.ptr[x->at];
        if (!is_digit(c) && (uint8_t)((c | 0x20) - 'a') > 25 && c != '_' && c != '.')
            break;
    }
    return word.len && (is_number ? heft_json_u64(out, word) : name_value(out, x, word));
}

static bool take_product(uint64_t *out, expression *x)
{
    uint64_t next;
    bool ok = take_operand(out, x);
    while (ok && (peek(x) == '*' || peek(x) == '/')) {
        bool is_product = x->text.ptr[x->at++] == '*';
        ok = take_operand(&next, x);
        if (ok && is_product)
            ok = heft_mul(out, *out, next);
        else if (ok && next)
            *out = heft_div(*out, next);
        else
            ok = false;
    }
    return ok;
}

/* Evaluate an expression such as "3*hidden_size": numbers, names of sizes and metadata keys of f
 * (may be NULL), joined by + - * /.  Return false if the expression has no value. */
static bool profile_value(uint64_t *out, const heft_profile *p, const heft_file *f, heft_str text)
{
    expression x = { text, 0, p, f };
    uint64_t next;
    bool ok = take_product(out, &x);
    while (ok && (peek(&x) == '+' || peek(&x) == '-')) {
        bool is_plus = x.text.ptr[x.at++] == '+';
        ok = take_product(&next, &x);
        if (ok && is_plus)
            ok = heft_add(out, *out, next);
        else if (ok && next <= *out)
            *out -= next;
        else
            ok = false;
    }
    return ok && !peek(&x);
}

/* ---- names ---- */

typedef struct heft_profile_group group;

/* Return the position of `needle` in the text, or the length of the text. */
static size_t find_text(heft_str text, const char *needle)
{
    size_t len = heft_lit(needle).len, at = 0;
    while (at + len <= text.len && memcmp(text.ptr + at, needle, len) != 0)
        at++;
    return at + len <= text.len ? at : text.len;
}

/* Parse a name; return false for an invalid group, or too many groups. */
static bool profile_pattern_open(heft_profile_pattern *out, const heft_profile *p,
                                 const heft_file *f, heft_str text)
{
    *out = (heft_profile_pattern){ .text = text };
    for (size_t at = 0; at < text.len; at++) {
        if (text.ptr[at] != '{')
            continue;
        heft_str rest = { text.ptr + at + 1, text.len - at - 1 };
        rest.len = find_text(rest, "}");
        if (out->count == HEFT_PROFILE_GROUPS || at + 1 + rest.len == text.len)
            return false;
        group *g = &out->group[out->count++];
        size_t dots = find_text(rest, "..");
        *g = (group){ .at = at + 1, .len = rest.len, .count = 1, .is_range = dots < rest.len };
        for (size_t i = 0; i < rest.len; i++)
            g->count += rest.ptr[i] == '|';
        if (g->is_range) {
            heft_str last = { rest.ptr + dots + 2, rest.len - dots - 2 };
            if (!profile_value(&g->first, p, f, (heft_str){ rest.ptr, dots }) ||
                !profile_value(&g->last, p, f, last))
                return false;
            if (!heft_add(&g->count, g->last - g->first, 1))
                g->count = UINT64_MAX;
            if (g->last < g->first)
                g->count = 0;
        }
        at += rest.len + 1;
    }
    return true;
}

/* Select the next combination of the ranges, or of the alternatives in lists; return false after
 * the last combination, when the first is selected again. */
static bool profile_pattern_next(heft_profile_pattern *x, bool in_ranges)
{
    for (uint32_t i = x->count; i--;) {
        group *g = &x->group[i];
        if (g->is_range != in_ranges)
            continue;
        if (++g->chosen < g->count)
            return true;
        g->chosen = 0;
    }
    return false;
}

/* Return the selected alternative of a list. */
static heft_str alternative(heft_str text, uint64_t chosen)
{
    while (chosen--) {
        size_t bar = find_text(text, "|");
        text = (heft_str){ text.ptr + bar + 1, text.len - bar - 1 };
    }
    return (heft_str){ text.ptr, find_text(text, "|") };
}

/* Write the selected name; return the length, or 0 if too long. */
static size_t profile_pattern_name(char out[HEFT_PROFILE_NAME], const heft_profile_pattern *x,
                                   heft_str prefix)
{
    char digits[20];
    size_t at = 0;
    heft_out o = { .buf = (uint8_t *)out, .cap = HEFT_PROFILE_NAME };
    heft_out_str(&o, prefix);
    for (uint32_t i = 0; i < x->count; i++) {
        const group *g = &x->group[i];
        heft_str within = { x->text.ptr + g->at, g->len };
        heft_out_str(&o, (heft_str){ x->text.ptr + at, g->at - 1 - at });
        if (g->is_range)
            heft_out_str(&o, (heft_str){ digits, heft_u64_text(digits, g->first + g->chosen) });
        else
            heft_out_str(&o, alternative(within, g->chosen));
        at = g->at + g->len + 1;
    }
    heft_out_str(&o, (heft_str){ x->text.ptr + at, x->text.len - at });
    return o.st ? 0 : o.len;
}

typedef struct check {
    const heft_profile *p;
    const heft_file *f;
    heft_verify_result *result;
    heft_finding_fn fn;
    void *ctx;
    heft_severity absent; /* severity of missing metadata or vocabulary */
    heft_error message;   /* text of the next finding */
} check;

/* Report c->message. */
static void report(check *c, heft_severity s, const char *rule, uint32_t tensor)
{
    heft_finding finding = { .severity = s,
                             .rule = rule,
                             .where = { HEFT_NOWHERE, 0 },
                             .tensor = tensor,
                             .text = c->message.message };
    uint32_t *count = s == HEFT_FAULT     ? &c->result->faults
                      : s == HEFT_WARNING ? &c->result->warnings
                                          : &c->result->notes;
    ++*count;
    if (c->fn)
        c->fn(c->ctx, &finding);
}

/* ---- metadata ---- */

static bool has_value(const check *c, const heft_profile_key *k, const heft_value *v)
{
    uint64_t wanted, got;
    if (k->requirement == HEFT_PROFILE_TEXT)
        return v->kind == HEFT_KIND_STR && heft_str_eq(v->as.s, k->text);
    return k->requirement == HEFT_PROFILE_PRESENT || (profile_value(&wanted, c->p, NULL, k->text) &&
                                                      profile_number(&got, v) && got == wanted);
}

static void check_key(check *c, const heft_profile_key *k)
{
    heft_value v;
    heft_severity absent = k->is_optional && c->absent == HEFT_FAULT ? HEFT_WARNING : c->absent;
    if (!profile_meta(&v, c->f, k->key)) {
        if (c->absent == HEFT_FAULT)
            heft_error_plain(&c->message, HEFT_OK,
                             "metadata %q is missing (heft edit --set %q=VALUE adds it)", k->key,
                             k->key);
        else
            heft_error_plain(&c->message, HEFT_OK, "metadata %q is missing", k->key);
        report(c, absent, "profile/metadata", HEFT_NONE);
    } else if (!has_value(c, k, &v)) {
        heft_str is = v.kind == HEFT_KIND_STR ? v.as.s : heft_lit("another value");
        heft_error_plain(&c->message, HEFT_OK, "metadata %q is %q, not %q", k->key, is, k->text);
        report(c, HEFT_FAULT, "profile/metadata-value", HEFT_NONE);
    }
}

/* ---- the vocabulary ---- */

static void check_special(check *c, const heft_vocab *v, heft_special s)
{
    const char *name = heft_vocab_special_name(s);
    uint64_t wanted;
    uint32_t id = heft_vocab_special(v, s);
    if (!c->p->special[s].ptr)
        return;
    if (!profile_value(&wanted, c->p, c->f, c->p->special[s]))
        heft_error_plain(&c->message, HEFT_OK, "special token %s: %q has no value", name,
                         c->p->special[s]);
    else if (id == HEFT_NONE)
        heft_error_plain(&c->message, HEFT_OK, "special token %s is missing", name);
    else if (id != wanted)
        heft_error_plain(&c->message, HEFT_OK, "special token %s has the id %U, not %U", name,
                         (uint64_t)id, wanted);
    else
        return;
    report(c, HEFT_FAULT, "profile/special", HEFT_NONE);
}

static void check_tokens(check *c, const heft_vocab *v)
{
    uint64_t wanted, got = heft_vocab_count(v);
    if (!c->p->tokens.ptr)
        return;
    if (!profile_value(&wanted, c->p, c->f, c->p->tokens))
        heft_error_plain(&c->message, HEFT_OK, "vocabulary: %q has no value", c->p->tokens);
    else if (got != wanted)
        heft_error_plain(&c->message, HEFT_OK, "the vocabulary has %U tokens, not %U", got, wanted);
    else
        return;
    report(c, HEFT_FAULT, "profile/vocabulary", HEFT_NONE);
}

static heft_status check_vocabulary(check *c, heft_error *err)
{
    heft_vocab *v;
    bool is_required = c->p->tokens.ptr;
    for (unsigned i = 0; i < HEFT_SPECIALS; i++)
        is_required = is_required || c->p->special[i].ptr;
    if (!is_required)
        return HEFT_OK;
    heft_status st = heft_vocab_open(&v, c->f, err);
    if (st == HEFT_E_NOTFOUND) {
        heft_error_plain(&c->message, HEFT_OK, "the vocabulary is missing");
        report(c, c->absent, "profile/vocabulary", HEFT_NONE);
        return HEFT_OK;
    }
    if (st)
        return st;
    check_tokens(c, v);
    for (unsigned i = 0; i < HEFT_SPECIALS; i++)
        check_special(c, v, (heft_special)i);
    heft_vocab_close(v);
    return HEFT_OK;
}

/* ---- tensors ---- */

static void put_dim(heft_out *o, uint32_t i, uint64_t dim)
{
    char digits[20];
    if (i)
        heft_out_str(o, heft_lit(", "));
    heft_out_bytes(o, digits, heft_u64_text(digits, dim));
}

enum { MAX_SHOWN = 8, SHAPE_TEXT = 24 * MAX_SHOWN };

/* Write both shapes to c->message. */
static void describe_shapes(check *c, const heft_tensor *t, const uint64_t *wanted, uint32_t rank)
{
    uint8_t got_text[SHAPE_TEXT], wanted_text[SHAPE_TEXT];
    heft_out got = { .buf = got_text, .cap = SHAPE_TEXT }, want = got;
    want.buf = wanted_text;
    bool is_transposed = t->rank == 2 && rank == 2 && t->dims[0] == wanted[1] &&
                         t->dims[1] == wanted[0];
    for (uint32_t i = 0; i < t->rank && i < MAX_SHOWN; i++)
        put_dim(&got, i, t->dims[i]);
    for (uint32_t i = 0; i < rank && i < MAX_SHOWN; i++)
        put_dim(&want, i, wanted[i]);
    heft_out_u8(&got, 0);
    heft_out_u8(&want, 0);
    heft_error_plain(&c->message, HEFT_OK, "shape [%s] should be [%s]%s", (const char *)got_text,
                     (const char *)wanted_text, is_transposed ? ": it is transposed" : "");
}

static void check_shape(check *c, const heft_profile_tensor *p, uint32_t id)
{
    const heft_str *texts = c->p->texts.ptr;
    heft_tensor t = heft_tensor_at(c->f, id);
    uint64_t wanted[MAX_SHOWN];
    bool same = t.rank == p->rank;
    for (uint32_t i = 0; i < p->rank && i < MAX_SHOWN; i++) {
        heft_str text = texts[p->shape + i];
        if (!profile_value(&wanted[i], c->p, c->f, text)) {
            heft_error_plain(&c->message, HEFT_OK, "shape: %q has no value", text);
            report(c, HEFT_FAULT, "profile/shape", id);
            return;
        }
        same = same && t.dims[i] == wanted[i];
    }
    if (same)
        return;
    describe_shapes(c, &t, wanted, p->rank < MAX_SHOWN ? p->rank : (uint32_t)MAX_SHOWN);
    report(c, HEFT_FAULT, "profile/shape", id);
}

static void check_type(check *c, const heft_profile_tensor *p, uint32_t id)
{
    const heft_str *texts = (const heft_str *)c->p->texts.ptr + p->types;
    const heft_dtype_info *type = heft_dtype_get(heft_tensor_at(c->f, id).dtype);
    const char *name = type ? type->name : "none";
    for (uint32_t i = 0; i < p->type_count; i++)
        if (heft_str_is(texts[i], name))
            return;
    heft_error_plain(&c->message, HEFT_OK, "element type %s should be %q", name, texts[0]);
    report(c, HEFT_FAULT, "profile/dtype", id);
}

/* Find the tensor under any alternative name, with any prefix. */
static uint32_t find_tensor(const check *c, heft_profile_pattern *x)
{
    const heft_str *prefixes = c->p->prefixes.ptr;
    char name[HEFT_PROFILE_NAME];
    do {
        for (uint32_t i = 0; i <= c->p->prefixes.len; i++) {
            heft_str prefix = i ? prefixes[i - 1] : (heft_str){ "", 0 };
            size_t len = profile_pattern_name(name, x, prefix);
            uint32_t id = len ? heft_tensor_find(c->f, (heft_str){ name, len }) : HEFT_NONE;
            if (id != HEFT_NONE)
                return id;
        }
    } while (profile_pattern_next(x, false));
    return HEFT_NONE;
}

static void check_name(check *c, const heft_profile_tensor *p, heft_profile_pattern *x)
{
    char name[HEFT_PROFILE_NAME];
    uint32_t id = find_tensor(c, x);
    for (uint32_t i = 0; i < x->count; i++)
        if (!x->group[i].is_range)
            x->group[i].chosen = 0; /* back to the first alternative, for the message */
    if (id == HEFT_NONE && !p->is_optional) {
        size_t len = profile_pattern_name(name, x, (heft_str){ "", 0 });
        heft_error_plain(&c->message, HEFT_OK, "tensor %q is missing", (heft_str){ name, len });
        report(c, HEFT_FAULT, "profile/tensor", HEFT_NONE);
    }
    if (id != HEFT_NONE && p->has_shape)
        check_shape(c, p, id);
    if (id != HEFT_NONE && p->type_count)
        check_type(c, p, id);
}

static heft_status check_tensor(check *c, const heft_profile_tensor *p, heft_error *err)
{
    enum { MAX_NAMES = 1 << 20 };
    heft_profile_pattern x;
    uint64_t names = 1;
    if (!profile_pattern_open(&x, c->p, c->f, p->name)) {
        heft_error_plain(&c->message, HEFT_OK,
                         "tensors %q: invalid range or alternatives in the name", p->name);
        report(c, HEFT_FAULT, "profile/tensor", HEFT_NONE);
        return HEFT_OK;
    }
    for (uint32_t i = 0; i < x.count; i++)
        names = names > MAX_NAMES || x.group[i].count > MAX_NAMES ? MAX_NAMES + 1
                                                                  : names * x.group[i].count;
    if (names > MAX_NAMES)
        return heft_error_plain(err, HEFT_E_LIMIT, "tensors %q: more than a million names",
                                p->name);
    if (!names)
        return HEFT_OK; /* an empty range */
    do
        check_name(c, p, &x);
    while (profile_pattern_next(&x, true));
    return HEFT_OK;
}

/* ---- the profile ---- */

heft_status heft_profile_check(heft_verify_result *out, const heft_profile *p, const heft_file *f,
                               heft_finding_fn fn, void *ctx, heft_error *err)
{
    heft_verify_result unused = { .notes = 0 };
    const heft_profile_key *keys = p->keys.ptr;
    const heft_profile_tensor *tensors = p->tensors.ptr;
    /* Without a list, every format is expected to store metadata and vocabulary. */
    char text[64];
    heft_out o = { .buf = (uint8_t *)text, .cap = sizeof text };
    heft_out_str(&o, heft_lit(heft_format_name(heft_file_format(f))));
    heft_out_u8(&o, ' ');
    heft_out_str(&o, heft_file_version(f));
    bool is_complete = !p->complete_in.len;
    for (uint32_t i = 0; i < p->complete_in.len && !is_complete; i++)
        is_complete = heft_glob(((const heft_str *)p->complete_in.ptr)[i],
                                (heft_str){ text, o.len });
    check c = { .p = p,
                .f = f,
                .result = out ? out : &unused,
                .fn = fn,
                .ctx = ctx,
                .absent = is_complete ? HEFT_FAULT : HEFT_WARNING };
    for (uint32_t i = 0; i < p->keys.len; i++)
        check_key(&c, &keys[i]);
    HEFT_TRY(check_vocabulary(&c, err));
    for (uint32_t i = 0; i < p->tensors.len; i++)
        HEFT_TRY(check_tensor(&c, &tensors[i], err));
    return HEFT_OK;
}
