/* blend_settings.c - reads the settings of a blend, an object in JSON:
 *
 *     {"method": "ties", "base_model": "B",
 *      "models": [{"model": "A", "parameters": {"weight": 0.5, "density": [...]}}, ...],
 *      "parameters": {"t": [{"filter": "mlp", "value": 0.3}, {"value": 0.5}]},
 *      "dtype": "bf16", "seed": 1, "missing": "base", "tied": {"a": "b"}, "untie": true}
 *
 * A parameter is a number, a list of numbers by layer, or a list of rules, of which the first that
 * matches counts.  The keys are those of mergekit as far as mergekit has them. */
#include "base/error.h"
#include "base/text.h"
#include "blend/blending.h"
#include "model/values.h"

static const heft_blend_method methods[] = {
    { .name = "linear", .normalizes = true },
    { .name = "slerp", .is_slerp = true },
    { .name = "task_arithmetic", .has_deltas = true },
    { .name = "ties", .has_deltas = true, .trims = true, .has_election = true, .normalizes = true },
    { .name = "dare_linear", .has_deltas = true, .drops = true },
    { .name = "dare_ties", .has_deltas = true, .drops = true, .has_election = true },
};

typedef struct parameter {
    const char *name;
    double least, most;
    bool is_flag;
} parameter;

#define LARGEST 1e30 /* f32 has it */
static const parameter parameters[HEFT_BLEND_PARAMETERS] = {
    [HEFT_BLEND_WEIGHT] = { "weight", -LARGEST, LARGEST, false },
    [HEFT_BLEND_DENSITY] = { "density", 0, 1, false },
    [HEFT_BLEND_T] = { "t", 0, 1, false },
    [HEFT_BLEND_LAMBDA] = { "lambda", -LARGEST, LARGEST, false },
    [HEFT_BLEND_NORMALIZE] = { "normalize", 0, 1, true },
    [HEFT_BLEND_RESCALE] = { "rescale", 0, 1, true },
};

/* Keys of mergekit about what is not in the weights. */
static const char *const ignored[] = { "tokenizer_source", "tokenizer", "chat_template", "name",
                                       "architecture",     "int8_mask" };

/* Keys of the document; those with the same number are one. */
static const struct key {
    const char *name;
    uint32_t number;
} keys[] = {
    { "merge_method", 0 }, { "method", 0 }, { "models", 1 },    { "slices", 1 },
    { "base_model", 2 },   { "dtype", 3 },  { "out_dtype", 4 }, { "parameters", 5 },
    { "missing", 6 },      { "tied", 7 },   { "untie", 8 },     { "seed", 9 },
};

typedef struct reader {
    heft_blend_settings *s;
    uint32_t seen;      /* a bit for each number of a key */
    bool has_out_dtype; /* "dtype" says nothing any more: it is that of the computation */
    heft_error *err;
} reader;

static heft_value value_at(const reader *r, uint32_t i)
{
    return heft_settings_value_at(r->s->json, i);
}

static heft_status no_memory(const reader *r)
{
    return heft_error_no_memory(r->err, "for the settings of a blend");
}

static heft_status wrong(const reader *r, heft_str key, const char *what)
{
    return heft_error_plain(r->err, HEFT_E_FORMAT, "settings: %q: %s", key, what);
}

/* ---- numbers ---- */

static bool read_number(double *out, const heft_value *v)
{
    if (v->kind == HEFT_KIND_BOOL)
        *out = v->as.b;
    else if (v->kind == HEFT_KIND_INT)
        *out = (double)v->as.i;
    else if (v->kind == HEFT_KIND_UINT)
        *out = (double)v->as.u;
    else
        return v->kind == HEFT_KIND_STR && heft_blend_number(out, v->as.s);
    return true;
}

static heft_status add_number(const reader *r, const parameter *p, const heft_value *v)
{
    double n;
    if (!read_number(&n, v) || (v->kind == HEFT_KIND_BOOL) > p->is_flag ||
        (p->is_flag && n != 0 && n != 1))
        return wrong(r, heft_lit(p->name),
                     p->is_flag ? "true or false is expected here"
                                : "a number of at most 19 digits, and with an exponent from -22 to "
                                  "22, is expected here");
    if (n < p->least || n > p->most)
        return wrong(r, heft_lit(p->name),
                     p->most == 1 ? "a number from 0 to 1 is expected here"
                                  : "the number is too large");
    return heft_vec_add(&r->s->mem, &r->s->numbers, &n, sizeof n) ? HEFT_OK : no_memory(r);
}

/* ---- parameters ---- */

/* Add value i, a number or a list of them, for the tensors of the filter. */
static heft_status add_rule(const reader *r, const parameter *p, heft_str filter, uint32_t i)
{
    heft_value v = value_at(r, i);
    heft_blend_rule rule = { .filter = filter, .first = r->s->numbers.len };
    if (heft_str_is(filter, "*"))
        rule.filter.len = 0;
    if (v.kind != HEFT_KIND_LIST)
        HEFT_TRY(add_number(r, p, &v));
    for (uint32_t k = i + 1; v.kind == HEFT_KIND_LIST && k < v.as.container.end;
         k = heft_settings_next(r->s->json, k)) {
        heft_value item = value_at(r, k);
        HEFT_TRY(add_number(r, p, &item));
    }
    rule.count = r->s->numbers.len - rule.first;
    if (!rule.count)
        return wrong(r, heft_lit(p->name), "the list is empty");
    return heft_vec_add(&r->s->mem, &r->s->rules, &rule, sizeof rule) ? HEFT_OK : no_memory(r);
}

/* Read {"filter": TEXT, "value": NUMBER}. */
static heft_status read_rule(const reader *r, const parameter *p, uint32_t i)
{
    heft_value v = value_at(r, i);
    heft_str filter = { "", 0 };
    uint32_t value = HEFT_NONE;
    for (uint32_t k = i + 1; k < v.as.container.end; k = heft_settings_next(r->s->json, k)) {
        heft_value item = value_at(r, k);
        if (heft_str_is(item.key, "value"))
            value = k;
        else if (heft_str_is(item.key, "filter") && item.kind == HEFT_KIND_STR)
            filter = item.as.s;
        else if (!heft_str_is(item.key, "filter") || item.kind != HEFT_KIND_NULL)
            return wrong(r, item.key, "a rule has \"filter\", a text, and \"value\"");
    }
    if (value == HEFT_NONE)
        return wrong(r, heft_lit(p->name), "a rule has no \"value\"");
    return add_rule(r, p, filter, value);
}

static heft_status read_parameter(const reader *r, heft_blend_rules *to, const parameter *p,
                                  uint32_t i)
{
    heft_value v = value_at(r, i);
    bool has_rules = v.kind == HEFT_KIND_LIST && v.as.container.count &&
                     value_at(r, i + 1).kind == HEFT_KIND_MAP;
    if (to->count)
        return wrong(r, v.key, "is there twice");
    to->first = r->s->rules.len;
    if (!has_rules)
        HEFT_TRY(v.kind == HEFT_KIND_MAP ? read_rule(r, p, i)
                                         : add_rule(r, p, (heft_str){ "", 0 }, i));
    for (uint32_t k = i + 1; has_rules && k < v.as.container.end;
         k = heft_settings_next(r->s->json, k))
        HEFT_TRY(value_at(r, k).kind == HEFT_KIND_MAP
                     ? read_rule(r, p, k)
                     : wrong(r, v.key, "a list has rules or numbers, not both"));
    to->count = r->s->rules.len - to->first;
    return HEFT_OK;
}

static bool is_ignored(const reader *r, heft_str key)
{
    heft_blend_settings *s = r->s;
    bool found = false;
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored && !found; i++)
        found = heft_str_is(key, ignored[i]);
    if (found && s->ignored_count < HEFT_BLEND_IGNORED)
        s->ignored[s->ignored_count++] = key;
    return found;
}

static heft_status read_parameters(const reader *r, heft_blend_rules *to, uint32_t i)
{
    heft_value v = value_at(r, i);
    if (v.kind == HEFT_KIND_NULL) /* YAML: a key without a value */
        return HEFT_OK;
    if (v.kind != HEFT_KIND_MAP)
        return wrong(r, v.key, "an object is expected here");
    for (uint32_t k = i + 1; k < v.as.container.end; k = heft_settings_next(r->s->json, k)) {
        heft_str key = value_at(r, k).key;
        uint32_t p = 0;
        while (p < HEFT_BLEND_PARAMETERS && !heft_str_is(key, parameters[p].name))
            p++;
        if (p < HEFT_BLEND_PARAMETERS)
            HEFT_TRY(read_parameter(r, &to[p], &parameters[p], k));
        else if (!is_ignored(r, key))
            return heft_error_plain(r->err, HEFT_E_ARGUMENT,
                                    "settings: there is no parameter %q (weight, density, t, "
                                    "lambda, normalize, rescale)",
                                    key);
    }
    return HEFT_OK;
}

/* ---- models ---- */

static uint32_t find_model(const heft_blend_settings *s, heft_str name)
{
    uint32_t i = 0;
    while (i < s->model_count && !heft_str_eq(s->model[i].name, name))
        i++;
    return i;
}

static heft_status add_model(const reader *r, heft_str name, bool is_listed)
{
    heft_blend_settings *s = r->s;
    if (!name.len)
        return wrong(r, heft_lit("model"), "the name is empty");
    if (s->model_count == HEFT_BLEND_MODELS)
        return heft_error_plain(r->err, HEFT_E_LIMIT, "settings: more than %U models",
                                (uint64_t)HEFT_BLEND_MODELS);
    if (find_model(s, name) < s->model_count)
        return wrong(r, name, "is among the models twice");
    s->model[s->model_count++] = (heft_blend_model){ .name = name, .is_listed = is_listed };
    return HEFT_OK;
}

/* Check "layer_range": [0, N], the same for all sources. */
static heft_status read_layers(const reader *r, uint32_t i)
{
    heft_value v = value_at(r, i);
    bool is_pair = v.kind == HEFT_KIND_LIST && v.as.container.end == i + 3;
    heft_value first = { .kind = HEFT_KIND_NULL }, end = first;
    if (is_pair) {
        first = value_at(r, i + 1);
        end = value_at(r, i + 2);
    }
    if (first.kind != HEFT_KIND_INT || end.kind != HEFT_KIND_INT || end.as.i <= 0)
        return wrong(r, v.key, "two numbers are expected here");
    bool is_other = r->s->slice_layers && r->s->slice_layers != (uint64_t)end.as.i;
    if (first.as.i || is_other)
        return heft_error_plain(r->err, HEFT_E_UNSUPPORTED,
                                "settings: slices of layers are not supported: all sources need "
                                "all layers");
    r->s->slice_layers = (uint64_t)end.as.i;
    return HEFT_OK;
}

static heft_status read_model(const reader *r, uint32_t i, bool is_source)
{
    heft_value v = value_at(r, i);
    heft_blend_rules rules[HEFT_BLEND_PARAMETERS] = { { 0, 0 } };
    heft_str name = { NULL, 0 };
    if (v.kind != HEFT_KIND_MAP)
        return wrong(r, heft_lit("models"), "each model is an object");
    for (uint32_t k = i + 1; k < v.as.container.end; k = heft_settings_next(r->s->json, k)) {
        heft_value item = value_at(r, k);
        if (heft_str_is(item.key, "model") && item.kind == HEFT_KIND_STR)
            name = item.as.s;
        else if (heft_str_is(item.key, "parameters"))
            HEFT_TRY(read_parameters(r, rules, k));
        else if (heft_str_is(item.key, "layer_range") && is_source)
            HEFT_TRY(read_layers(r, k));
        else
            return wrong(r, item.key, "a model has \"model\", a text, and \"parameters\"");
    }
    if (!name.ptr)
        return wrong(r, heft_lit("models"), "a model has no \"model\"");
    HEFT_TRY(add_model(r, name, true));
    memcpy(r->s->model[r->s->model_count - 1].rules, rules, sizeof rules);
    return HEFT_OK;
}

static heft_status read_models(const reader *r, uint32_t i, bool is_source)
{
    heft_value v = value_at(r, i);
    if (v.kind != HEFT_KIND_LIST)
        return wrong(r, v.key, "a list is expected here");
    if (r->s->model_count)
        return wrong(r, v.key, "the models are there twice");
    for (uint32_t k = i + 1; k < v.as.container.end; k = heft_settings_next(r->s->json, k))
        HEFT_TRY(read_model(r, k, is_source));
    return HEFT_OK;
}

/* Read a list of one slice with "sources" and "parameters". */
static heft_status read_slices(const reader *r, uint32_t i)
{
    heft_value v = value_at(r, i);
    if (v.kind != HEFT_KIND_LIST || v.as.container.count != 1 ||
        value_at(r, i + 1).kind != HEFT_KIND_MAP)
        return heft_error_plain(r->err, HEFT_E_UNSUPPORTED,
                                "settings: more than one slice of layers is not supported");
    heft_value slice = value_at(r, i + 1);
    for (uint32_t k = i + 2; k < slice.as.container.end; k = heft_settings_next(r->s->json, k)) {
        heft_str key = value_at(r, k).key;
        if (heft_str_is(key, "sources"))
            HEFT_TRY(read_models(r, k, true));
        else if (heft_str_is(key, "parameters"))
            HEFT_TRY(read_parameters(r, r->s->common, k));
        else
            return wrong(r, key, "a slice has \"sources\" and \"parameters\"");
    }
    return HEFT_OK;
}

/* ---- the keys of the document ---- */

static heft_status read_method(const reader *r, const heft_value *v)
{
    enum { LIST = 128 };
    char list[LIST];
    heft_out o = { .buf = (uint8_t *)list, .cap = LIST - 1 };
    size_t count = sizeof methods / sizeof *methods;
    for (size_t i = 0; i < count; i++) {
        if (v->kind == HEFT_KIND_STR && heft_str_is(v->as.s, methods[i].name))
            r->s->method = &methods[i];
        heft_out_str(&o, heft_lit(i ? ", " : ""));
        heft_out_str(&o, heft_lit(methods[i].name));
    }
    list[o.len] = '\0';
    if (r->s->method)
        return HEFT_OK;
    return heft_error_plain(r->err, HEFT_E_ARGUMENT, "there is no method %q to blend models: %s",
                            v->kind == HEFT_KIND_STR ? v->as.s : heft_lit(""), list);
}

static heft_status read_dtype(reader *r, const heft_value *v)
{
    static const struct {
        const char *name;
        heft_dtype t;
    } others[] = { { "float16", HEFT_F16 }, { "bfloat16", HEFT_BF16 }, { "float32", HEFT_F32 } };
    heft_str name = v->kind == HEFT_KIND_STR ? v->as.s : heft_lit("");
    heft_dtype t = heft_dtype_find(name);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        t = heft_str_is(name, others[i].name) ? others[i].t : t;
    if (t != HEFT_F16 && t != HEFT_BF16 && t != HEFT_F32)
        return heft_error_plain(r->err, HEFT_E_ARGUMENT,
                                "settings: %q: the type of the result is f32, bf16 or f16", v->key);
    bool is_stored = heft_str_is(v->key, "out_dtype");
    if (is_stored || !r->has_out_dtype)
        r->s->dtype = t;
    r->has_out_dtype = r->has_out_dtype || is_stored;
    return HEFT_OK;
}

static heft_status read_missing(const reader *r, const heft_value *v)
{
    static const char *const words[] = { "error", "base", "present" };
    for (uint32_t i = 0; i < sizeof words / sizeof *words; i++)
        if (v->kind == HEFT_KIND_STR && heft_str_is(v->as.s, words[i])) {
            r->s->missing = (heft_blend_missing)i;
            return HEFT_OK;
        }
    return wrong(r, v->key, "\"error\", \"base\" or \"present\" is expected here");
}

static heft_status read_ties(const reader *r, uint32_t i)
{
    heft_value v = value_at(r, i);
    if (v.kind != HEFT_KIND_MAP)
        return wrong(r, v.key, "an object of names is expected here");
    for (uint32_t k = i + 1; k < v.as.container.end; k = heft_settings_next(r->s->json, k)) {
        heft_value other = value_at(r, k);
        heft_blend_tie tie = { other.key, other.as.s };
        if (other.kind != HEFT_KIND_STR)
            return wrong(r, other.key, "the name of a tensor is expected here");
        if (!heft_vec_add(&r->s->mem, &r->s->ties, &tie, sizeof tie))
            return no_memory(r);
    }
    return HEFT_OK;
}

static heft_status read_text(const reader *r, heft_str *to, const heft_value *v)
{
    if (v->kind != HEFT_KIND_STR || !v->as.s.len)
        return wrong(r, v->key, "a text is expected here");
    *to = v->as.s;
    return HEFT_OK;
}

static heft_status read_key(reader *r, uint32_t i, heft_str *base)
{
    heft_blend_settings *s = r->s;
    heft_value v = value_at(r, i);
    heft_str key = v.key;
    if (heft_str_is(key, "merge_method") || heft_str_is(key, "method"))
        return read_method(r, &v);
    if (heft_str_is(key, "models"))
        return read_models(r, i, false);
    if (heft_str_is(key, "slices"))
        return read_slices(r, i);
    if (heft_str_is(key, "base_model"))
        return v.kind == HEFT_KIND_NULL ? HEFT_OK : read_text(r, base, &v);
    if (heft_str_is(key, "parameters"))
        return read_parameters(r, s->common, i);
    if (heft_str_is(key, "dtype") || heft_str_is(key, "out_dtype"))
        return v.kind == HEFT_KIND_NULL ? HEFT_OK : read_dtype(r, &v);
    if (heft_str_is(key, "missing"))
        return read_missing(r, &v);
    if (heft_str_is(key, "tied"))
        return read_ties(r, i);
    if (heft_str_is(key, "untie") && v.kind == HEFT_KIND_BOOL) {
        s->may_untie = v.as.b;
        return HEFT_OK;
    }
    if (heft_str_is(key, "seed") && (v.kind == HEFT_KIND_INT || v.kind == HEFT_KIND_UINT)) {
        s->seed = v.as.u;
        return HEFT_OK;
    }
    return is_ignored(r, key)
               ? HEFT_OK
               : heft_error_plain(r->err, HEFT_E_ARGUMENT,
                                  "settings: there is no key %q, or it has another kind of value",
                                  key);
}

/* ---- what goes together ---- */

static bool uses(const heft_blend_method *m, uint32_t p)
{
    switch (p) {
    case HEFT_BLEND_T:
        return m->is_slerp;
    case HEFT_BLEND_DENSITY:
        return m->trims || m->drops;
    case HEFT_BLEND_LAMBDA:
        return m->has_deltas;
    case HEFT_BLEND_RESCALE:
        return m->drops;
    default: /* weight, normalize */
        return !m->is_slerp;
    }
}

/* A parameter of another method is likely a mistake: it is reported. */
static void note_unused(heft_blend_settings *s)
{
    for (uint32_t p = 0; p < HEFT_BLEND_PARAMETERS; p++) {
        bool is_there = s->common[p].count;
        for (uint32_t i = 0; i < s->model_count; i++)
            is_there = is_there || s->model[i].rules[p].count;
        if (is_there && !uses(s->method, p) && s->ignored_count < HEFT_BLEND_IGNORED)
            s->ignored[s->ignored_count++] = heft_lit(parameters[p].name);
    }
}

static heft_status check(const reader *r, heft_str base)
{
    heft_blend_settings *s = r->s;
    if (!s->method)
        return heft_error_plain(r->err, HEFT_E_ARGUMENT, "settings: the method is missing");
    bool needs_base = s->method->has_deltas || s->method->is_slerp;
    if (needs_base && !base.ptr)
        return heft_error_plain(r->err, HEFT_E_ARGUMENT, "settings: %s needs a base model",
                                s->method->name);
    if (base.ptr && find_model(s, base) == s->model_count)
        HEFT_TRY(add_model(r, base, false));
    s->base = base.ptr ? find_model(s, base) : 0;
    note_unused(s);
    uint32_t listed = 0;
    for (uint32_t i = 0; i < s->model_count; i++)
        listed += s->model[i].is_listed && !(needs_base && i == s->base);
    if (!listed || (s->method->is_slerp && listed != 1))
        return heft_error_plain(
            r->err, HEFT_E_ARGUMENT, "settings: %s blends %s, and %U %s given beside the base",
            s->method->name, s->method->is_slerp ? "a base and one model" : "one model or more",
            (uint64_t)listed, listed == 1 ? "is" : "are");
    return HEFT_OK;
}

static heft_status refuse_twice(reader *r, heft_str key)
{
    uint32_t bit = 0;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (heft_str_is(key, keys[i].name))
            bit = UINT32_C(1) << keys[i].number;
    if (r->seen & bit)
        return wrong(r, key, "is there twice");
    r->seen |= bit;
    return HEFT_OK;
}

static heft_status read_settings(reader *r)
{
    heft_str base = { NULL, 0 };
    const heft_settings *json = r->s->json;
    for (uint32_t i = 0; i < heft_settings_value_count(json); i = heft_settings_next(json, i)) {
        HEFT_TRY(refuse_twice(r, value_at(r, i).key));
        HEFT_TRY(read_key(r, i, &base));
    }
    return check(r, base);
}

heft_status heft_blend_settings_read(heft_blend_settings **out, heft_str text,
                                     const heft_host *host, heft_error *err)
{
    heft_error own;
    err = heft_error_begin(err, &own);
    *out = NULL;
    heft_status st = heft_host_resolve(&host, host, err);
    if (st)
        return heft_error_end(err, st);
    heft_blend_settings *s = heft_alloc(host->allocator, sizeof *s, 16);
    if (!s)
        return heft_error_end(err, heft_error_no_memory(err, "for the settings of a blend"));
    memset(s, 0, sizeof *s);
    s->mem = (heft_memory){ host->allocator, UINT64_MAX, 0 };
    reader r = { .s = s, .err = err };
    st = heft_settings_parse_json(&s->json, text, host, err);
    if (!st)
        st = read_settings(&r);
    if (st)
        heft_blend_settings_close(s);
    else
        *out = s;
    return heft_error_end(err, st);
}

void heft_blend_settings_close(heft_blend_settings *s)
{
    if (!s)
        return;
    const heft_allocator *al = s->mem.al;
    heft_vec_free(&s->mem, &s->numbers, sizeof(double));
    heft_vec_free(&s->mem, &s->rules, sizeof(heft_blend_rule));
    heft_vec_free(&s->mem, &s->ties, sizeof(heft_blend_tie));
    heft_settings_close(s->json);
    heft_free(al, s, sizeof *s, 16);
}

uint32_t heft_blend_settings_models(const heft_blend_settings *s)
{
    return s->model_count;
}

heft_str heft_blend_settings_model(const heft_blend_settings *s, uint32_t i)
{
    return s->model[i].name;
}

uint32_t heft_blend_settings_base(const heft_blend_settings *s)
{
    return s->base;
}
