/* blend_plan.c - finds the tensors of a blend in all models, and opens the result.
 *
 * Nothing is decided silently: a tensor that not all models have, shapes that differ, and tensors
 * that share their bytes and would differ are errors unless the settings say what is meant; what is
 * taken from the base is reported. */
#include "base/error.h"
#include "base/out.h"
#include "base/text.h"
#include "blend/blending.h"
#include "model/names.h"

static const char purpose[] = "to blend models";

/* ---- reports ---- */

static void report(const heft_blend *b, const char *rule, heft_severity severity, heft_str tensor,
                   const char *text)
{
    if (b->opt.on_loss)
        b->opt.on_loss(b->opt.ctx, severity, rule, tensor, text);
}

static void report_ignored(const heft_blend *b)
{
    for (uint32_t i = 0; i < b->s->ignored_count; i++) {
        heft_error text;
        heft_error_plain(&text, HEFT_OK,
                         "the settings have %q, which has no effect on weights with the method "
                         "%s",
                         b->s->ignored[i], b->s->method->name);
        report(b, "heft/blend-ignored", HEFT_WARNING, (heft_str){ NULL, 0 }, text.message);
    }
}

static void report_base(const heft_blend *b, heft_str tensor, const char *text)
{
    report(b, "heft/blend-base", HEFT_NOTE, tensor, text);
}

/* ---- inputs of a tensor ---- */

/* Find the tensor in model m, or the one that the settings name where it is missing. */
static uint32_t find_tensor(const heft_blend *b, uint32_t m, heft_str name)
{
    const heft_blend_tie *ties = b->s->ties.ptr;
    const heft_index *x = &b->files[m]->x;
    uint32_t t = heft_ix_find(x, name);
    for (uint32_t i = 0; t == HEFT_NONE && i < b->s->ties.len; i++)
        if (heft_str_eq(ties[i].name, name))
            t = heft_ix_find(x, ties[i].other);
    return t;
}

enum { SHAPE = 96 };

static const char *shape_text(char buf[SHAPE], const heft_combine_input *in)
{
    heft_out o = { .buf = (uint8_t *)buf, .cap = SHAPE - 1 };
    for (uint32_t i = 0; i < in->rank; i++) {
        heft_out_str(&o, heft_lit(i ? ", " : ""));
        heft_out_decimal(&o, in->dims[i], 1);
    }
    buf[o.len] = '\0';
    return buf;
}

/* The error that was just set is about a model. */
static heft_status refuse_model(const heft_blend *b, uint32_t model, const char *rule,
                                heft_status st)
{
    heft_error_rule(b->err, st, rule);
    return heft_error_input(b->err, st, model + 1);
}

static heft_status check_shape(const heft_blend *b, const heft_combine_input *base,
                               const heft_combine_input *in, uint32_t model)
{
    char has[SHAPE], other[SHAPE];
    bool same = base->rank == in->rank;
    for (uint32_t i = 0; same && i < in->rank; i++)
        same = base->dims[i] == in->dims[i];
    if (same)
        return HEFT_OK;
    return refuse_model(b, model, "heft/blend-shape",
                        heft_error_plain(b->err, HEFT_E_ARGUMENT,
                                         "tensor %q: the shape is [%s] in %q, but [%s] in %q",
                                         base->name, shape_text(has, base),
                                         b->s->model[b->s->base].name, shape_text(other, in),
                                         b->s->model[model].name));
}

static bool has_floats(heft_dtype t)
{
    heft_dtype_kind kind = heft_dtype_kind_of(t);
    return kind == HEFT_DTYPE_FLOAT || kind == HEFT_DTYPE_BLOCK;
}

static heft_status check_type(const heft_blend *b, const heft_combine_input *in, uint32_t model)
{
    if (has_floats(in->dtype))
        return HEFT_OK;
    return refuse_model(
        b, model, NULL,
        heft_error_plain(b->err, HEFT_E_UNSUPPORTED,
                         "tensor %q of %q has %s, and only floating-point numbers are blended",
                         in->name, b->s->model[model].name, heft_dtype_name(in->dtype)));
}

static bool is_blended(const heft_blend *b, uint32_t model)
{
    bool is_other = model != b->s->base || !(b->s->method->has_deltas || b->s->method->is_slerp);
    return b->s->model[model].is_listed && is_other;
}

static heft_status get_value(double *out, const heft_blend *b, uint32_t model,
                             heft_blend_parameter p, heft_str name)
{
    return heft_blend_value(out, b->s, model, p, name, &b->layers, b->err);
}

static heft_status add_input(heft_blend *b, heft_blend_tensor *t, uint32_t model, uint32_t tensor)
{
    heft_blend_input in = { .model = model, .last = UINT64_MAX };
    /* The generator has the name of the first tensor with these bytes. */
    heft_str name = t->base.name;
    heft_str first = heft_ix_name(&b->base->x, b->tied[b->s->base][t->place]);
    double weight;
    HEFT_TRY(
        heft_combine_input_open(&in.in, b->files[model], model + 1, tensor, b->opt.verify, b->err));
    HEFT_TRY(check_type(b, &in.in, model));
    HEFT_TRY(check_shape(b, &t->base, &in.in, model));
    HEFT_TRY(get_value(&weight, b, model, HEFT_BLEND_WEIGHT, name));
    HEFT_TRY(get_value(&in.density, b, model, HEFT_BLEND_DENSITY, name));
    in.weight = (float)weight;
    in.key = heft_blend_key(b->s->seed, first, model);
    t->weights = t->count++ ? t->weights + in.weight : in.weight;
    b->most_inputs = t->count > b->most_inputs ? t->count : b->most_inputs;
    return heft_vec_add(&b->mem, &b->inputs, &in, sizeof in)
               ? HEFT_OK
               : heft_error_no_memory(b->err, purpose);
}

static heft_status refuse_missing(const heft_blend *b, heft_str name, uint32_t model)
{
    return refuse_model(b, model, "heft/blend-missing",
                        heft_error_plain(b->err, HEFT_E_ARGUMENT,
                                         "tensor %q is missing in %q: say whether a missing "
                                         "tensor is taken from the base, blended from the "
                                         "models that have it, or tied to another",
                                         name, b->s->model[model].name));
}

/* Add the tensors of all models; *is_whole: none is missing. */
static heft_status add_inputs(heft_blend *b, heft_blend_tensor *t, bool *is_whole)
{
    *is_whole = true;
    for (uint32_t m = 0; m < b->s->model_count; m++) {
        if (!is_blended(b, m))
            continue;
        uint32_t tensor = find_tensor(b, m, t->base.name);
        if (tensor == HEFT_NONE && b->s->missing == HEFT_BLEND_MISSING_ERROR)
            return refuse_missing(b, t->base.name, m);
        if (tensor == HEFT_NONE)
            *is_whole = false;
        else
            HEFT_TRY(add_input(b, t, m, tensor));
    }
    return HEFT_OK;
}

/* Report the tensors of model m that the base lacks. */
static heft_status report_left_out(const heft_blend *b, uint32_t m)
{
    for (uint32_t i = 0; i < heft_ix_tensors(&b->files[m]->x); i++) {
        heft_str name = heft_ix_name(&b->files[m]->x, i);
        heft_error text;
        if (find_tensor(b, b->s->base, name) != HEFT_NONE)
            continue;
        if (b->s->missing == HEFT_BLEND_MISSING_ERROR)
            return refuse_missing(b, name, b->s->base);
        heft_error_plain(&text, HEFT_OK,
                         "the base has no tensor of this name: that of %q is left "
                         "out",
                         b->s->model[m].name);
        report(b, "heft/blend-left-out", HEFT_WARNING, name, text.message);
    }
    return HEFT_OK;
}

/* ---- tensors ---- */

static heft_status set_values(heft_blend *b, heft_blend_tensor *t)
{
    const heft_blend_method *m = b->s->method;
    const float least = 1e-8f;
    heft_str name = t->base.name;
    double lambda, normalizes, rescales;
    HEFT_TRY(get_value(&lambda, b, HEFT_NONE, HEFT_BLEND_LAMBDA, name));
    HEFT_TRY(get_value(&normalizes, b, HEFT_NONE, HEFT_BLEND_NORMALIZE, name));
    HEFT_TRY(get_value(&rescales, b, HEFT_NONE, HEFT_BLEND_RESCALE, name));
    HEFT_TRY(get_value(&t->t, b, HEFT_NONE, HEFT_BLEND_T, name));
    t->lambda = (float)lambda;
    t->normalizes = normalizes != 0 && !m->is_slerp;
    t->rescales = rescales != 0;
    bool is_zero = t->weights < least && t->weights > -least;
    if (t->normalizes && !m->has_election && is_zero)
        return heft_error_plain(b->err, HEFT_E_ARGUMENT,
                                "tensor %q: the sum of its weights is zero, so that they cannot be "
                                "normalised",
                                name);
    return HEFT_OK;
}

static heft_status refuse_blocks(const heft_blend *b, heft_str name, heft_dtype t)
{
    return heft_error_plain(b->err, HEFT_E_UNSUPPORTED,
                            "tensor %q: the base has %s, which a blend does not write: choose the "
                            "type of the result, such as bf16",
                            name, heft_dtype_name(t));
}

/* Return why the tensor is not blended, or NULL. */
static const char *why_not(const heft_blend *b, uint32_t i)
{
    heft_tensor t = heft_tensor_at(b->base, i);
    if (t.layout != HEFT_DENSE)
        return "it is not dense: taken from the base";
    if (!has_floats(t.dtype))
        return "it has no floating-point numbers: taken from the base";
    return NULL;
}

static heft_status add_blended(heft_blend *b, uint32_t i)
{
    heft_blend_tensor t = { .place = i, .first = b->inputs.len };
    bool is_whole;
    HEFT_TRY(heft_combine_input_open(&t.base, b->base, b->s->base + 1, i, b->opt.verify, b->err));
    t.dtype = b->s->dtype ? b->s->dtype : t.base.dtype;
    HEFT_TRY(add_inputs(b, &t, &is_whole));
    if (!is_whole && (b->s->missing == HEFT_BLEND_MISSING_BASE || !t.count)) {
        b->inputs.len = t.first;
        report_base(b, t.base.name, "it is missing in a model: taken from the base");
        return HEFT_OK;
    }
    if (!is_whole)
        report(b, "heft/blend-present", HEFT_NOTE, t.base.name,
               "it is missing in a model: blended from the others");
    HEFT_TRY(set_values(b, &t));
    if (heft_dtype_kind_of(t.dtype) == HEFT_DTYPE_BLOCK)
        return refuse_blocks(b, t.base.name, t.dtype);
    if (t.base.dtype == HEFT_F64)
        report(b, "heft/blend-f32", HEFT_WARNING, t.base.name, "f64 is blended in f32");
    b->blended[i] = b->tensors.len + 1;
    return heft_vec_add(&b->mem, &b->tensors, &t, sizeof t) ? HEFT_OK
                                                            : heft_error_no_memory(b->err, purpose);
}

static heft_status add_tensors(heft_blend *b)
{
    for (uint32_t i = 0; i < heft_ix_tensors(&b->base->x); i++) {
        const char *why = why_not(b, i);
        if (why)
            report_base(b, heft_ix_name(&b->base->x, i), why);
        else
            HEFT_TRY(add_blended(b, i));
    }
    return HEFT_OK;
}

/* ---- rules and ties of no tensor ---- */

static heft_str filter_of(const void *ctx, uint32_t i)
{
    return ((const heft_blend_rule *)ctx)[i].filter;
}

/* Report each filter once, whatever the number of models and parameters that have it. */
static heft_status report_rules(heft_blend *b, const uint8_t *is_used)
{
    const heft_names_of of = { filter_of, b->s->rules.ptr };
    heft_names said = { .slots = NULL };
    uint32_t n = b->s->rules.len;
    if (!heft_names_reserve(&b->mem, &said, n))
        return heft_error_no_memory(b->err, purpose);
    for (uint32_t i = 0; i < n; i++) {
        heft_str filter = filter_of(of.ctx, i);
        heft_error text;
        if (is_used[i] || !filter.len ||
            heft_names_add(&said, of, heft_names_hash(&b->base->x.key, filter), filter, i) !=
                HEFT_NONE)
            continue;
        heft_error_plain(&text, HEFT_OK,
                         "no tensor matches the filter %q, or a rule before it takes all that do",
                         filter);
        report(b, "heft/blend-unmatched", HEFT_WARNING, (heft_str){ NULL, 0 }, text.message);
    }
    heft_names_free(&b->mem, &said);
    return HEFT_OK;
}

/* Report the filters that are for no tensor of the base, likely misspelt. */
static heft_status report_unused_rules(heft_blend *b)
{
    size_t bytes = (size_t)b->s->rules.len + 1;
    uint8_t *is_used = heft_mem_alloc(&b->mem, bytes);
    if (!is_used)
        return heft_error_no_memory(b->err, purpose);
    memset(is_used, 0, bytes);
    for (uint32_t i = 0; i < heft_ix_tensors(&b->base->x); i++)
        heft_blend_mark_used(is_used, b->s, heft_ix_name(&b->base->x, i));
    heft_status st = report_rules(b, is_used);
    heft_mem_free(&b->mem, is_used, bytes);
    return st;
}

static void report_unused_ties(const heft_blend *b)
{
    const heft_blend_tie *ties = b->s->ties.ptr;
    for (uint32_t i = 0; i < b->s->ties.len; i++) {
        bool is_there = false;
        heft_error text;
        for (uint32_t m = 0; m < b->s->model_count && !is_there; m++)
            is_there = heft_ix_find(&b->files[m]->x, ties[i].name) != HEFT_NONE;
        if (is_there)
            continue;
        heft_error_plain(&text, HEFT_OK, "no model has the tensor %q that is tied to %q",
                         ties[i].name, ties[i].other);
        report(b, "heft/blend-unmatched", HEFT_WARNING, (heft_str){ NULL, 0 }, text.message);
    }
}

/* ---- tensors that share their bytes ---- */

static heft_status find_tied(heft_blend *b)
{
    for (uint32_t m = 0; m < b->s->model_count; m++) {
        size_t count = (size_t)heft_ix_tensors(&b->files[m]->x) + 1;
        b->tied[m] = heft_mem_alloc(&b->mem, count * sizeof **b->tied);
        if (!b->tied[m])
            return heft_error_no_memory(b->err, purpose);
        HEFT_TRY(heft_error_input(b->err, heft_tensor_find_tied(b->tied[m], b->files[m], b->err),
                                  m + 1));
    }
    return HEFT_OK;
}

/* Return true if both tensors are blended from the same numbers with the same values. */
static bool stays_tied(const heft_blend *b, const heft_blend_tensor *t, const heft_blend_tensor *u)
{
    const heft_blend_input *a = heft_blend_inputs(b, t), *c = heft_blend_inputs(b, u);
    bool same = t->count == u->count && t->dtype == u->dtype && t->lambda == u->lambda &&
                t->normalizes == u->normalizes && t->rescales == u->rescales && t->t == u->t;
    for (uint32_t k = 0; same && k < t->count; k++) {
        const uint32_t *first = b->tied[a[k].model];
        same = a[k].model == c[k].model && a[k].weight == c[k].weight &&
               a[k].density == c[k].density && first[a[k].in.tensor] == first[c[k].in.tensor];
    }
    return same;
}

static heft_status check_tied(const heft_blend *b)
{
    const heft_blend_tensor *all = b->tensors.ptr;
    for (uint32_t i = 0; i < heft_ix_tensors(&b->base->x) && !b->s->may_untie; i++) {
        uint32_t first = b->tied[b->s->base][i];
        bool same = b->blended[i] && b->blended[first]
                        ? stays_tied(b, &all[b->blended[i] - 1], &all[b->blended[first] - 1])
                        : !b->blended[i] && !b->blended[first];
        if (first != i && !same)
            return heft_error_rule(
                b->err,
                heft_error_plain(b->err, HEFT_E_ARGUMENT,
                                 "tensors %q and %q share their bytes in the base, and would "
                                 "differ: allow that with \"untie\"",
                                 heft_ix_name(&b->base->x, first), heft_ix_name(&b->base->x, i)),
                "heft/blend-tied");
    }
    return HEFT_OK;
}

static heft_status check_slice(const heft_blend *b)
{
    uint64_t layers = 0;
    for (uint32_t i = 0; i < b->layers.prefixes; i++)
        layers = b->layers.count[i] > layers ? b->layers.count[i] : layers;
    if (!b->s->slice_layers || b->s->slice_layers == layers)
        return HEFT_OK;
    return heft_error_plain(b->err, HEFT_E_UNSUPPORTED,
                            "the settings take %U layers of %U: slices of layers are not "
                            "supported",
                            b->s->slice_layers, layers);
}

/* ---- the result ---- */

static heft_status open_result(heft_blend *b)
{
    uint32_t n = b->tensors.len, others = 1;
    const heft_blend_tensor *all = b->tensors.ptr;
    size_t bytes = ((size_t)n + 1) * sizeof(heft_combine_tensor);
    heft_combine_tensor *list = heft_mem_alloc(&b->mem, bytes);
    const heft_file *files[HEFT_BLEND_MODELS] = { b->base };
    if (!list)
        return heft_error_no_memory(b->err, purpose);
    for (uint32_t i = 0; i < n; i++)
        list[i] = (heft_combine_tensor){ .place = all[i].place,
                                         .dtype = all[i].dtype,
                                         .rank = all[i].base.rank,
                                         .dims = all[i].base.dims };
    for (uint32_t m = 0; m < b->s->model_count; m++)
        if (m != b->s->base)
            files[others++] = b->files[m];
    heft_blend_set_ops(b);
    heft_combination c = { .files = files,
                           .file_count = others,
                           .tensors = list,
                           .count = n,
                           .label = heft_lit("blended tensors"),
                           .allow_nan = b->opt.allow_nan,
                           .ops = &b->ops,
                           .ctx = b };
    heft_status st = heft_combine_open(&b->out, &c, b->err);
    heft_mem_free(&b->mem, list, bytes);
    return st;
}

static heft_status plan(heft_blend *b)
{
    size_t bytes = ((size_t)heft_ix_tensors(&b->base->x) + 1) * sizeof *b->blended;
    b->blended = heft_mem_alloc(&b->mem, bytes);
    if (!b->blended)
        return heft_error_no_memory(b->err, purpose);
    memset(b->blended, 0, bytes);
    report_ignored(b);
    HEFT_TRY(report_unused_rules(b));
    report_unused_ties(b);
    HEFT_TRY(heft_blend_count_layers(&b->layers, b->base, b->err));
    HEFT_TRY(check_slice(b));
    HEFT_TRY(find_tied(b));
    HEFT_TRY(add_tensors(b));
    HEFT_TRY(check_tied(b));
    for (uint32_t m = 0; m < b->s->model_count; m++)
        HEFT_TRY(report_left_out(b, m));
    if (!b->opt.plan_only)
        HEFT_TRY(heft_blend_measure(b));
    return open_result(b);
}

/* The files stay open while the result is read, so that names are borrowed. */
static heft_status plan_entered(heft_blend *b)
{
    for (uint32_t m = 0; m < b->s->model_count; m++)
        heft_file_enter(b->files[m]);
    heft_status st = plan(b);
    for (uint32_t m = 0; m < b->s->model_count; m++)
        st = heft_file_leave_input(b->files[m], m + 1, st, b->err);
    return st;
}

heft_status heft_blend_open(heft_blend **out, const heft_blend_settings *s,
                            const heft_file *const *files, const heft_blend_options *opt,
                            heft_error *err)
{
    heft_error own;
    heft_blend_options o = HEFT_BLEND_OPTIONS_INIT;
    err = heft_error_begin(err, &own);
    *out = NULL;
    heft_status st = heft_sized_copy(&o, sizeof o, opt, err);
    const heft_allocator *al = files[s->base]->host->allocator;
    heft_blend *b = st ? NULL : heft_alloc(al, sizeof *b, 16);
    if (!b)
        return heft_error_end(err, st ? st : heft_error_no_memory(err, purpose));
    memset(b, 0, sizeof *b);
    b->s = s;
    b->base = files[s->base];
    b->opt = o;
    b->mem = (heft_memory){ al, UINT64_MAX, 0 };
    b->err = err;
    memcpy(b->files, files, s->model_count * sizeof *files);
    st = plan_entered(b);
    b->err = NULL;
    if (st)
        heft_blend_close(b);
    else
        *out = b;
    return heft_error_end(err, st);
}

void heft_blend_close(heft_blend *b)
{
    if (!b)
        return;
    const heft_allocator *al = b->mem.al;
    heft_file_close(b->out);
    for (uint32_t m = 0; m < b->s->model_count; m++)
        heft_mem_free(&b->mem, b->tied[m],
                      ((size_t)heft_ix_tensors(&b->files[m]->x) + 1) * sizeof **b->tied);
    heft_mem_free(&b->mem, b->blended,
                  ((size_t)heft_ix_tensors(&b->base->x) + 1) * sizeof *b->blended);
    heft_vec_free(&b->mem, &b->inputs, sizeof(heft_blend_input));
    heft_vec_free(&b->mem, &b->tensors, sizeof(heft_blend_tensor));
    heft_free(al, b, sizeof *b, 16);
}

const heft_file *heft_blend_file(const heft_blend *b)
{
    return b->out;
}

uint32_t heft_blend_count(const heft_blend *b)
{
    return heft_ix_tensors(&b->base->x);
}

heft_blend_item heft_blend_at(const heft_blend *b, uint32_t i)
{
    heft_tensor t = heft_tensor_at(b->base, i);
    heft_blend_item item = { .name = t.name, .from = t.dtype, .to = t.dtype };
    if (b->blended[i]) {
        const heft_blend_tensor *own = (const heft_blend_tensor *)b->tensors.ptr + b->blended[i] -
                                       1;
        item.to = own->dtype;
        item.models = own->count;
    }
    return item;
}
