/* profile_check.c - checks a file against a profile, with a finding for everything missing or
 * wrong. */
#include <string.h>

#include "base/error.h"
#include "base/out.h"
#include "companion/profile_types.h"

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
    return k->requirement == HEFT_PROFILE_PRESENT ||
           (heft_profile_value(&wanted, c->p, NULL, k->text) && heft_profile_number(&got, v) &&
            got == wanted);
}

static void check_key(check *c, const heft_profile_key *k)
{
    heft_value v;
    heft_severity absent = k->is_optional && c->absent == HEFT_FAULT ? HEFT_WARNING : c->absent;
    if (!heft_profile_meta(&v, c->f, k->key)) {
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
    if (!heft_profile_value(&wanted, c->p, c->f, c->p->special[s]))
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
    if (!heft_profile_value(&wanted, c->p, c->f, c->p->tokens))
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
        if (!heft_profile_value(&wanted[i], c->p, c->f, text)) {
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
            size_t len = heft_profile_pattern_name(name, x, prefix);
            uint32_t id = len ? heft_tensor_find(c->f, (heft_str){ name, len }) : HEFT_NONE;
            if (id != HEFT_NONE)
                return id;
        }
    } while (heft_profile_pattern_next(x, false));
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
        size_t len = heft_profile_pattern_name(name, x, (heft_str){ "", 0 });
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
    if (!heft_profile_pattern_open(&x, c->p, c->f, p->name)) {
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
    while (heft_profile_pattern_next(&x, true));
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
