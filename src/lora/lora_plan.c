/* lora_plan.c - decides what an adapter does to each tensor, and checks that the shapes fit. */
#include "base/checked_math.h"
#include "base/error.h"
#include "base/text.h"
#include "lora/merging.h"
#include "model/float.h"
#include "scheme/refuse.h"

static const char purpose[] = "to merge an adapter";

typedef struct plan { /* an adapter that is merged */
    heft_lora *l;
    const heft_lora_adapter *a;
    uint32_t number;
    heft_lora_config config;
    heft_lora_base *base;
    uint64_t unmatched; /* tensors */
    heft_str first_unmatched;
    heft_error *err;
} plan;

typedef struct pair { /* the matrices of a module */
    heft_str module;
    heft_combine_input down, up, mid;
    uint64_t rank; /* rows of down: with experts, the ranks of all */
    bool is_embedding;
} pair;

static heft_status no_memory(const plan *p)
{
    return heft_error_no_memory(p->err, purpose);
}

static heft_status open_part(const plan *p, heft_combine_input *out, uint32_t tensor)
{
    *out = (heft_combine_input){ .f = NULL };
    return tensor == HEFT_NONE ? HEFT_OK
                               : heft_combine_input_open(out, p->a->f, heft_lora_input(p->number),
                                                         tensor, p->l->opt.verify, p->err);
}

/* ---- targets ---- */

static void set_shape(heft_lora_target *t, uint32_t rank, const uint64_t *dims)
{
    t->rank = rank;
    t->dims = dims;
    t->stack = t->rows = t->columns = 1;
    for (uint32_t i = 0; i < rank; i++)
        *(i ? &t->columns : &t->rows) *= dims[i]; /* the bytes are in a file: no overflow */
}

static heft_status check_type(const plan *p, const heft_combine_input *in)
{
    HEFT_TRY(heft_error_input(p->err, heft_refuse_cast(in->f, in->tensor, p->err), in->number));
    bool is_block = heft_dtype_kind_of(in->dtype) == HEFT_DTYPE_BLOCK;
    bool is_plain = heft_dtype_size(in->dtype);
    if (heft_combine_is_exact(in->dtype) && (is_block ? p->l->opt.block_type : is_plain))
        return HEFT_OK;
    heft_status st = heft_error_plain(p->err, HEFT_E_UNSUPPORTED,
                                      "tensor %q is %s: adapters are merged into floating-point "
                                      "numbers of up to 32 bits",
                                      in->name, heft_dtype_name(in->dtype));
    heft_error_input(p->err, st, in->number);
    return heft_error_rule(p->err, st, "heft/quantised");
}

/* Return the target that is a tensor of the base, which is added if it is new; NULL: an error. */
static heft_lora_target *target_of(const plan *p, uint32_t tensor, heft_status *st)
{
    heft_lora *l = p->l;
    if (l->target_of[tensor])
        return heft_lora_target_at(l, l->target_of[tensor] - 1);
    heft_lora_target t = { .tensor = tensor, .first = HEFT_NONE, .last = HEFT_NONE };
    *st = heft_combine_input_open(&t.base, l->base, HEFT_INPUT_FIRST, tensor, l->opt.verify,
                                  p->err);
    if (*st)
        return NULL;
    t.name = t.base.name;
    bool is_block = heft_dtype_kind_of(t.base.dtype) == HEFT_DTYPE_BLOCK;
    t.dtype = is_block && l->opt.block_type ? l->opt.block_type : t.base.dtype;
    set_shape(&t, t.base.rank, t.base.dims);
    if (!heft_vec_add(&l->mem, &l->targets, &t, sizeof t)) {
        *st = no_memory(p);
        return NULL;
    }
    l->target_of[tensor] = l->targets.len;
    return heft_lora_target_at(l, l->targets.len - 1);
}

/* Two modules of an adapter that lead to one tensor are two names for the same weight. */
static heft_status refuse_second_product(const plan *p, const heft_lora_target *t)
{
    for (uint32_t i = t->first; i != HEFT_NONE; i = heft_lora_step_at(p->l, i)->next) {
        const heft_lora_step *s = heft_lora_step_at(p->l, i);
        if (s->adapter == p->number && s->rank)
            return heft_error_plain(p->err, HEFT_E_FORMAT,
                                    "two modules of the adapter change tensor %q", t->name);
    }
    return HEFT_OK;
}

static heft_status add_step(const plan *p, heft_lora_target *t, heft_lora_step *step)
{
    heft_lora *l = p->l;
    if (step->rank)
        HEFT_TRY(refuse_second_product(p, t));
    step->adapter = p->number;
    step->next = HEFT_NONE;
    if (!heft_vec_add(&l->mem, &l->steps, step, sizeof *step))
        return no_memory(p);
    if (t->first == HEFT_NONE)
        t->first = l->steps.len - 1;
    else
        heft_lora_step_at(l, t->last)->next = l->steps.len - 1;
    t->last = l->steps.len - 1;
    return HEFT_OK;
}

/* ---- scales ---- */

double heft_lora_square_root(double x)
{
    double back = 1;
    for (; x > 0x1p100 && back < 0x1p500; back *= 0x1p50) /* f32 has no such numbers */
        x *= 0x1p-100;
    for (; x > 0 && x < 0x1p-100; back *= 0x1p-50)
        x *= 0x1p100;
    double root = (double)heft_square_root((float)x);
    for (int i = 0; i < 3 && root > 0; i++)
        root -= (root * root - x) / (2 * root);
    return root * back;
}

static heft_status read_alpha(const plan *p, uint32_t tensor, double *alpha)
{
    heft_combine_input in;
    heft_combine_reader r = { .in = NULL };
    float x = 0;
    HEFT_TRY(open_part(p, &in, tensor));
    if (in.count != 1)
        return heft_error_plain(p->err, HEFT_E_FORMAT,
                                "tensor %q has %U numbers, alpha is a single one", in.name,
                                in.count);
    heft_status st = heft_combine_read(&r, &in, 0, 1, &x, p->err);
    heft_combine_reader_free(&r);
    *alpha = (double)x;
    return st;
}

/* Find alpha / rank, and check the rank.  `name` is that by which the settings know the module. */
static heft_status find_scale(const plan *p, const heft_lora_module *m, heft_str name,
                              uint64_t rank, double *scale)
{
    double stated, alpha;
    bool use_rslora = p->config.use_rslora;
    heft_lora_config_of(&p->config, name, &stated, &alpha);
    HEFT_TRY(heft_lora_config_check(&p->config, p->err));
    if (p->config.settings && p->config.has_rank && stated != (double)rank)
        return heft_error_plain(p->err, HEFT_E_FORMAT,
                                "module %q has the rank %U, but adapter_config.json says %U",
                                m->name, rank, stated > 0 ? (uint64_t)stated : 0);
    if (m->part[HEFT_LORA_ALPHA] != HEFT_NONE)
        HEFT_TRY(read_alpha(p, m->part[HEFT_LORA_ALPHA], &alpha));
    else if (!p->config.settings && heft_lora_unwrapped(m->name).len != m->name.len)
        return heft_error_plain(p->err, HEFT_E_NOTFOUND,
                                "the adapter is one of PEFT, but there is no adapter_config.json: "
                                "the scale of module %q is not known",
                                m->name);
    else if (!p->config.settings &&
             !heft_lora_config_in_file(&p->config, p->a->f, m->name, &alpha, &use_rslora))
        alpha = (double)rank;
    HEFT_TRY(heft_lora_config_check(&p->config, p->err));
    double by = use_rslora ? heft_lora_square_root((double)rank) : (double)rank;
    *scale = p->a->scale * alpha / by;
    return HEFT_OK;
}

/* ---- matrices ---- */

static heft_status refuse_shape(const plan *p, const pair *m, const heft_lora_target *t)
{
    uint64_t columns = m->rank ? heft_div(m->down.count, m->rank) : 0;
    return heft_error_plain(p->err, HEFT_E_FORMAT,
                            "the adapter is for another model: module %q changes a weight of %U x "
                            "%U, but tensor %q is %U x %U",
                            m->module, m->up.rank ? m->up.dims[0] : 0, columns, t->name, t->rows,
                            t->columns);
}

/* Return whether up (rows x rank) and down (rank x columns) have these sizes. */
static bool fits(const pair *m, uint64_t rows, uint64_t columns)
{
    uint64_t up, down;
    return heft_mul(&up, rows, m->rank) && heft_mul(&down, columns, m->rank) && m->up.count == up &&
           m->down.count == down && m->up.dims[0] == rows;
}

static heft_lora_view view_of(const heft_combine_input *in, uint64_t row, uint64_t column)
{
    return (heft_lora_view){ .in = *in, .row = row, .column = column };
}

/* A convolution in three steps: multiply the kernel between by `down`, once. */
static heft_status join_mid(const plan *p, pair *m, heft_lora_step *s, const heft_lora_target *t)
{
    enum { MOST = 64 << 20 };
    heft_combine_reader r = { .in = NULL };
    uint64_t ranks = m->mid.rank > 1 ? m->mid.dims[0] : 0;
    uint64_t kernel = ranks ? heft_div(m->mid.count, ranks * m->rank) : 0, numbers = 0;
    uint64_t inputs = heft_div(m->down.count, m->rank);
    bool is_good = ranks && m->mid.dims[1] == m->rank && kernel * ranks * m->rank == m->mid.count &&
                   heft_mul(&numbers, inputs, kernel) && numbers == t->columns &&
                   m->up.dims[0] == t->rows && m->up.count == t->rows * ranks &&
                   numbers <= heft_div(MOST, ranks) && m->mid.count <= HEFT_COMBINE_STRIP &&
                   m->down.count <= MOST;
    if (!is_good)
        return refuse_shape(p, m, t);
    float *mid = heft_arena_alloc(&p->l->arena, (size_t)m->mid.count * sizeof *mid, sizeof *mid);
    float *to = heft_arena_alloc(&p->l->arena, (size_t)(numbers * ranks) * sizeof *to, sizeof *to);
    float *down = heft_arena_alloc(&p->l->arena, (size_t)m->down.count * sizeof *to, sizeof *to);
    if (!mid || !to || !down)
        return no_memory(p);
    heft_status st = heft_combine_read(&r, &m->mid, 0, (size_t)m->mid.count, mid, p->err);
    for (uint64_t at = 0, n; at < m->down.count && !st; at += n) {
        n = m->down.count - at < HEFT_COMBINE_STRIP ? m->down.count - at : HEFT_COMBINE_STRIP;
        st = heft_combine_read(&r, &m->down, at, (size_t)n, down + at, p->err);
    }
    heft_combine_reader_free(&r);
    for (uint64_t k = 0; k < ranks && !st; k++)
        for (uint64_t i = 0; i < numbers; i++) {
            uint64_t input = heft_div(i, kernel), at = i - input * kernel;
            float sum = 0;
            for (uint64_t d = 0; d < m->rank; d++)
                sum += mid[(k * m->rank + d) * kernel + at] * down[d * inputs + input];
            to[k * numbers + i] = sum;
        }
    s->left = view_of(&m->up, ranks, 1);
    s->right = (heft_lora_view){ .memory = to, .row = numbers, .column = 1 };
    s->rank = (uint32_t)ranks;
    return st;
}

/* Say where the numbers of both matrices are. */
static heft_status set_views(const plan *p, pair *m, heft_lora_step *s, const heft_lora_target *t)
{
    bool is_turned = m->is_embedding || p->config.fan_in_fan_out;
    s->rank = (uint32_t)m->rank;
    if (m->mid.f)
        return join_mid(p, m, s, t);
    if (is_turned && t->rank == 2 && fits(m, t->columns, t->rows)) {
        s->left = view_of(&m->down, 1, t->rows);
        s->right = view_of(&m->up, 1, m->rank);
        return HEFT_OK;
    }
    if (m->is_embedding || !fits(m, t->rows, t->columns))
        return refuse_shape(p, m, t);
    s->left = view_of(&m->up, m->rank, 1);
    s->right = view_of(&m->down, t->columns, 1);
    return HEFT_OK;
}

static heft_status set_magnitude(const plan *p, const heft_lora_module *m, heft_lora_step *s,
                                 const heft_lora_target *t)
{
    uint32_t tensor = m->part[HEFT_LORA_MAGNITUDE];
    if (tensor == HEFT_NONE && p->config.use_dora)
        return heft_error_plain(p->err, HEFT_E_FORMAT,
                                "module %q has no magnitudes, but adapter_config.json says that "
                                "the adapter uses DoRA",
                                m->name);
    if (tensor == HEFT_NONE)
        return HEFT_OK;
    HEFT_TRY(open_part(p, &s->magnitude, tensor));
    s->how = "DoRA";
    uint32_t before = 0;
    for (uint32_t i = t->first; i != HEFT_NONE; i = heft_lora_step_at(p->l, i)->next)
        before += heft_lora_step_at(p->l, i)->magnitude.f != NULL;
    if (before == HEFT_LORA_MAGNITUDES)
        return heft_error_plain(p->err, HEFT_E_LIMIT,
                                "more than %U adapters have magnitudes for %q",
                                (uint64_t)HEFT_LORA_MAGNITUDES, t->name);
    if (s->magnitude.count == t->rows && t->stack == 1 && s->left.column == 1)
        return HEFT_OK;
    return heft_error_plain(p->err, HEFT_E_UNSUPPORTED,
                            "tensor %q has %U magnitudes: only one for each row of a weight is "
                            "merged, and %q has %U rows",
                            s->magnitude.name, s->magnitude.count, t->name, t->rows);
}

static heft_dtype rounding_of(const plan *p, const heft_combine_input *up)
{
    bool is_half = up->dtype == HEFT_F16 || up->dtype == HEFT_BF16;
    return p->l->opt.peft_rounding && is_half ? up->dtype : HEFT_UNTYPED;
}

/* ---- parameters of experts, which are one tensor of three dimensions ---- */

/* Try a tensor: set the views if exactly one way fits.  *fit: 1, or 2 if both do. */
static void try_experts(const pair *m, heft_lora_step *s, const heft_combine_input *in,
                        uint32_t *fit)
{
    *fit = 0;
    if (in->rank != 3 || !in->dims[0] || m->down.rank != 2 || m->up.rank != 2)
        return;
    uint64_t experts = in->dims[0], rank = heft_div(m->down.dims[0], experts);
    uint64_t inputs = m->down.dims[1], outputs = m->up.dims[0];
    if (!rank || rank * experts != m->down.dims[0] || m->up.dims[1] != m->down.dims[0])
        return;
    s->rank = (uint32_t)rank;
    if (in->dims[1] == outputs && in->dims[2] == inputs) {
        s->left = view_of(&m->up, rank * experts, experts);
        s->right = view_of(&m->down, inputs, 1);
        s->left.matrix = 1;
        s->right.matrix = rank * inputs;
        ++*fit;
    }
    if (in->dims[1] == inputs && in->dims[2] == outputs) {
        s->left = view_of(&m->down, 1, inputs);
        s->right = view_of(&m->up, experts, rank * experts);
        s->left.matrix = rank * inputs;
        s->right.matrix = 1;
        ++*fit;
    }
}

/* Return the part of a parameter's name after the module, if the parameter may be one of it. */
static heft_str leaf_of(heft_str parameter, heft_str module)
{
    size_t dot = parameter.len;
    while (dot && parameter.ptr[dot - 1] != '.')
        dot--;
    heft_str leaf = { parameter.ptr + dot, parameter.len - dot };
    if (!dot)
        return leaf;
    size_t len = dot - 1;
    bool ends = module.len >= len && !memcmp(module.ptr + module.len - len, parameter.ptr, len) &&
                (module.len == len || module.ptr[module.len - len - 1] == '.');
    return ends ? leaf : heft_lit("");
}

static heft_status refuse_experts(const plan *p, heft_str module, uint32_t fit)
{
    return heft_error_plain(p->err, fit ? HEFT_E_UNSUPPORTED : HEFT_E_FORMAT,
                            fit ? "module %q: its shapes fit more than one parameter, or a square "
                                  "one in both directions"
                                : "the adapter is for another model: the shapes of module %q fit "
                                  "none of its parameters",
                            module);
}

/* Find the parameter of target_parameters that a module changes.  *is_there: there is one. */
static heft_status add_experts(plan *p, const heft_lora_module *m, pair *both, bool *is_there)
{
    const heft_settings *s = p->config.settings;
    heft_str module = heft_lora_without_layers(heft_lora_unwrapped(m->name)), name = module;
    uint32_t at = s ? heft_settings_find_path(s, heft_lit("target_parameters")) : HEFT_NONE;
    uint32_t fits_of_all = 0, found = HEFT_NONE;
    heft_lora_step step = { .how = "experts" };
    bool is_full = false;
    *is_there = false;
    for (uint32_t i = at + 1; at != HEFT_NONE && i < heft_settings_next(s, at);
         i = heft_settings_next(s, i)) {
        heft_value v = heft_settings_value_at(s, i);
        heft_str leaf = v.kind == HEFT_KIND_STR ? leaf_of(v.as.s, module) : heft_lit("");
        if (!leaf.len)
            continue;
        heft_str whole = heft_arena_join(&p->l->arena, module, heft_lit("."), leaf);
        if (!whole.ptr)
            return no_memory(p);
        uint32_t tensor = heft_lora_base_find(p->base, whole, false, "", &is_full), fit;
        heft_combine_input in;
        if (is_full)
            return no_memory(p);
        if (tensor == HEFT_NONE)
            continue;
        *is_there = true;
        HEFT_TRY(heft_combine_input_open(&in, p->l->base, HEFT_INPUT_FIRST, tensor, false, p->err));
        try_experts(both, &step, &in, &fit);
        found = fit ? tensor : found;
        name = fit ? whole : name;
        fits_of_all += fit;
    }
    if (!*is_there)
        return HEFT_OK;
    if (fits_of_all != 1)
        return refuse_experts(p, m->name, fits_of_all);
    heft_status st = HEFT_OK;
    heft_lora_target *t = target_of(p, found, &st);
    if (!t)
        return st;
    HEFT_TRY(check_type(p, &t->base));
    t->stack = t->dims[0];
    t->rows = t->dims[1];
    t->columns = t->dims[2];
    step.round_to = rounding_of(p, &both->up);
    HEFT_TRY(find_scale(p, m, name, step.rank, &step.scale));
    return add_step(p, t, &step);
}

/* ---- modules ---- */

static void leave_out(plan *p, const heft_lora_module *m)
{
    for (int k = 0; k < HEFT_LORA_ROLES; k++) {
        heft_str name = m->part[k] == HEFT_NONE ? heft_lit("")
                                                : heft_ix_name(&p->a->f->x, m->part[k]);
        if (m->part[k] == HEFT_NONE)
            continue;
        if (!p->unmatched++)
            p->first_unmatched = name;
        if (p->l->opt.on_unmatched)
            p->l->opt.on_unmatched(p->l->opt.ctx, p->number, name);
    }
}

/* Return whether the adapter has the weight of a bias, with as many rows. */
static bool has_new_weight(const plan *p, heft_str bias, uint64_t rows, bool *is_full)
{
    static const char end[] = ".bias";
    if (!heft_str_ends(bias, end))
        return false;
    heft_str name = heft_arena_join(&p->l->arena,
                                    (heft_str){ bias.ptr, bias.len - (sizeof end - 1) },
                                    heft_lit(".weight"), heft_lit(""));
    *is_full = !name.ptr;
    uint32_t i = name.ptr ? heft_tensor_find(p->a->f, name) : HEFT_NONE;
    heft_tensor t = heft_tensor_at(p->a->f, i);
    return t.rank > 1 && t.dims[0] == rows;
}

/* A vocabulary or a head may have another number of rows than in the model; nothing else may. */
static heft_status check_replacement(const plan *p, const heft_combine_input *in,
                                     const heft_lora_target *t)
{
    heft_lora_target new = { .rank = 0 };
    bool is_full = false, fits = in->rank == t->rank;
    for (uint32_t i = 1; fits && i < t->rank; i++)
        fits = in->dims[i] == t->dims[i];
    if (fits && t->rank == 1 && in->dims[0] != t->dims[0])
        fits = has_new_weight(p, in->name, in->dims[0], &is_full);
    if (is_full)
        return no_memory(p);
    if (fits)
        return HEFT_OK;
    set_shape(&new, in->rank, in->dims);
    return heft_error_plain(p->err, HEFT_E_FORMAT,
                            "the adapter is for another model: tensor %q is %U x %U, but %q, which "
                            "it replaces, is %U x %U",
                            in->name, new.rows, new.columns, t->name, t->rows, t->columns);
}

/* A tensor that replaces one of the model: of modules_to_save, or a trained bias. */
static heft_status add_whole(plan *p, const heft_lora_module *m)
{
    bool is_full = false;
    heft_str name = m->name;
    size_t len = sizeof ".base_layer" - 1;
    for (size_t i = name.len; i-- > len && is_full == false;)
        if (name.ptr[i] == '.') { /* before "weight" or "bias" */
            heft_str module = heft_lora_without_layers((heft_str){ name.ptr, i });
            name = heft_arena_join(&p->l->arena, module, heft_lit(""),
                                   (heft_str){ m->name.ptr + i, m->name.len - i });
            is_full = !name.ptr;
            break;
        }
    uint32_t tensor = is_full ? HEFT_NONE : heft_lora_base_find(p->base, name, false, "", &is_full);
    if (is_full)
        return no_memory(p);
    if (tensor == HEFT_NONE) {
        leave_out(p, m);
        return HEFT_OK;
    }
    heft_status st = HEFT_OK;
    heft_lora_step step = { .how = "replaced", .replaces = true, .scale = 1 };
    heft_lora_target *t = target_of(p, tensor, &st);
    if (!t)
        return st;
    HEFT_TRY(open_part(p, &step.left.in, m->part[0]));
    const heft_combine_input *in = &step.left.in;
    bool is_same = in->rank == t->rank;
    for (uint32_t i = 0; is_same && i < t->rank; i++)
        is_same = in->dims[i] == t->dims[i];
    bool is_number = heft_combine_is_exact(in->dtype) && heft_combine_is_exact(t->dtype) &&
                     heft_dtype_size(t->dtype);
    if ((!is_number && in->dtype != t->dtype) || (!is_same && t->first != HEFT_NONE))
        return heft_error_plain(p->err, HEFT_E_UNSUPPORTED,
                                "tensor %q (%s) cannot replace that of the model (%s)", in->name,
                                heft_dtype_name(in->dtype), heft_dtype_name(t->dtype));
    if (is_number)
        HEFT_TRY(check_type(p, &t->base));
    HEFT_TRY(check_replacement(p, in, t));
    set_shape(t, in->rank, in->dims);
    return add_step(p, t, &step);
}

/* Numbers that are added as they are: a difference, or what is learned for a bias. */
static heft_status add_numbers(plan *p, const heft_lora_module *m, heft_lora_role role,
                               double scale)
{
    bool is_full = false, is_bias = role == HEFT_LORA_UP_BIAS;
    heft_lora_step step = { .how = is_bias ? "bias" : "difference", .scale = scale };
    uint32_t tensor = heft_lora_base_find(p->base, heft_lora_without_layers(m->name), m->is_flat,
                                          is_bias ? ".bias" : ".weight", &is_full);
    if (is_full)
        return no_memory(p);
    HEFT_TRY(open_part(p, &step.left.in, m->part[role]));
    if (tensor == HEFT_NONE)
        return heft_error_plain(p->err, HEFT_E_FORMAT,
                                "tensor %q: the model has no tensor to which it is added",
                                step.left.in.name);
    heft_status st = HEFT_OK;
    heft_lora_target *t = target_of(p, tensor, &st);
    if (!t)
        return st;
    HEFT_TRY(check_type(p, &t->base));
    if (step.left.in.count != t->stack * t->rows * t->columns)
        return heft_error_plain(p->err, HEFT_E_FORMAT,
                                "the adapter is for another model: tensor %q has %U numbers, but "
                                "%q has %U",
                                step.left.in.name, step.left.in.count, t->name,
                                t->stack * t->rows * t->columns);
    return add_step(p, t, &step);
}

static heft_status open_pair(const plan *p, const heft_lora_module *m, pair *out)
{
    out->module = m->name;
    out->is_embedding = m->part[HEFT_LORA_EMBEDDING_DOWN] != HEFT_NONE;
    HEFT_TRY(open_part(p, &out->down,
                       m->part[out->is_embedding ? HEFT_LORA_EMBEDDING_DOWN : HEFT_LORA_DOWN]));
    HEFT_TRY(
        open_part(p, &out->up, m->part[out->is_embedding ? HEFT_LORA_EMBEDDING_UP : HEFT_LORA_UP]));
    HEFT_TRY(open_part(p, &out->mid, m->part[HEFT_LORA_MID]));
    out->rank = out->down.rank > 1 ? out->down.dims[0] : 0;
    if (out->rank > UINT32_MAX)
        return heft_error_plain(p->err, HEFT_E_LIMIT, "module %q has the rank %U", m->name,
                                out->rank);
    bool is_good = out->rank &&
                   out->rank <= HEFT_COMBINE_STRIP / 4 * (uint64_t)HEFT_COMBINE_STRIP &&
                   out->up.rank > 1 &&
                   out->up.dims[1] == (out->mid.f ? out->mid.dims[0] : out->rank);
    if (out->mid.f && out->mid.rank < 3)
        is_good = false;
    if (is_good)
        return HEFT_OK;
    return heft_error_plain(p->err, HEFT_E_FORMAT,
                            "module %q: the ranks of %q and %q differ, or one is not a matrix",
                            m->name, out->down.name, out->up.name);
}

static heft_status add_product(plan *p, const heft_lora_module *m, double *scale)
{
    pair both = { .rank = 0 };
    bool is_full = false, is_experts = false;
    *scale = 0;
    HEFT_TRY(open_pair(p, m, &both));
    heft_str name = heft_lora_without_layers(m->name);
    uint32_t tensor = heft_lora_base_find(p->base, name, m->is_flat, ".weight", &is_full);
    if (tensor == HEFT_NONE && !m->is_flat && !is_full)
        HEFT_TRY(add_experts(p, m, &both, &is_experts));
    if (tensor == HEFT_NONE && !m->is_flat && !is_full && !is_experts)
        tensor = heft_lora_base_find(p->base, name, false, "", &is_full);
    if (is_full)
        return no_memory(p);
    if (is_experts)
        return HEFT_OK;
    if (tensor == HEFT_NONE) {
        leave_out(p, m);
        return HEFT_OK;
    }
    heft_status st = HEFT_OK;
    heft_lora_target *t = target_of(p, tensor, &st);
    if (!t)
        return st;
    heft_lora_step step = { .how = t->rank > 2 ? "convolution" : "product" };
    HEFT_TRY(check_type(p, &t->base));
    HEFT_TRY(set_views(p, &both, &step, t));
    if (step.rank > HEFT_COMBINE_STRIP / 4)
        return heft_error_plain(p->err, HEFT_E_LIMIT, "module %q has a rank above %U", m->name,
                                (uint64_t)HEFT_COMBINE_STRIP / 4);
    HEFT_TRY(set_magnitude(p, m, &step, t));
    HEFT_TRY(find_scale(p, m, heft_lora_unwrapped(name), both.rank, &step.scale));
    step.round_to = rounding_of(p, &both.up);
    *scale = step.scale;
    return add_step(p, t, &step);
}

static heft_status add_module(plan *p, const heft_lora_module *m)
{
    double scale = p->a->scale;
    uint64_t before = p->unmatched;
    if (m->is_whole)
        return add_whole(p, m);
    if (m->part[HEFT_LORA_DIFFERENCE] != HEFT_NONE)
        return add_numbers(p, m, HEFT_LORA_DIFFERENCE, scale);
    HEFT_TRY(add_product(p, m, &scale));
    return m->part[HEFT_LORA_UP_BIAS] == HEFT_NONE || p->unmatched > before
               ? HEFT_OK
               : add_numbers(p, m, HEFT_LORA_UP_BIAS, scale);
}

heft_status heft_lora_plan(heft_lora *l, const heft_lora_adapter *a, uint32_t number,
                           heft_lora_base *base)
{
    plan p = { .l = l, .a = a, .number = number, .base = base, .err = l->err };
    heft_lora_modules modules = { .all = { NULL, 0, 0 } };
    uint64_t work = UINT64_C(30000000000); /* It lasts for less than a minute. */
    heft_status st = heft_lora_config_read(&p.config, a, &l->mem, &work, l->err);
    if (!st)
        st = heft_lora_modules_read(&modules, &l->mem, a->f, l->err);
    if (!st && !modules.all.len)
        st = heft_error_plain(l->err, HEFT_E_NOTFOUND, "the adapter has no tensors");
    if (!st) {
        heft_lora_config_report(&p.config, &modules, &l->opt, number);
        st = heft_lora_config_check(&p.config, l->err);
    }
    for (uint32_t i = 0; i < modules.all.len && !st; i++)
        st = add_module(&p, (const heft_lora_module *)modules.all.ptr + i);
    heft_lora_modules_free(&modules, &l->mem);
    heft_lora_config_free(&p.config);
    if (st || !p.unmatched || l->opt.allow_unmatched)
        return st;
    st = heft_error_plain(l->err, HEFT_E_NOTFOUND,
                          "tensor %q of the adapter, and %U others, match nothing in the model",
                          p.first_unmatched, p.unmatched - 1);
    return heft_error_rule(l->err, st, "heft/unmatched");
}
