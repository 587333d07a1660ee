/* plan_calls.c - calls of formats while planning: losses, changes to the model, memory,
 * model-level parts. */
#include "core/write/plan/plan.h"

#include "base/sort.h"

/* ---- losses ---- */

/* Set *is_new if the loss has not been reported before, and remember the loss. */
static heft_status note_loss(heft_planner *p, const char *rule, heft_str tensor, const char *text,
                             bool *is_new)
{
    heft_planner *owner = p->grows_into ? p->grows_into : p;
    heft_str parts[] = { heft_lit(rule), tensor, heft_lit(text) };
    size_t len = parts[0].len + parts[1].len + parts[2].len + 2, at = 0;
    *is_new = true;
    if (!owner->plan.grows && !(owner->format->caps & HEFT_CAN_APPEND))
        return HEFT_OK;
    char *all = heft_arena_alloc(&owner->arena, len, 1);
    if (!all)
        return heft_error_no_memory(p->plan.err, "to plan the file");
    for (unsigned i = 0; i < 3; i++) {
        if (parts[i].len)
            memcpy(all + at, parts[i].ptr, parts[i].len);
        at += parts[i].len;
        if (i < 2)
            all[at++] = '\n';
    }
    heft_str key = { all, len };
    *is_new = !heft_text_set_has(&owner->reported, &owner->x.key, key);
    if (*is_new && !heft_text_set_add(&owner->reported, &owner->x.mem, &owner->x.key, key))
        return heft_error_no_memory(p->plan.err, "to plan the file");
    return HEFT_OK;
}

/* Keep the first blocking loss for the message of the error. */
static heft_status keep_first_loss(heft_planner *p, const char *rule, const char *text)
{
    p->first_loss = rule;
    if (p->opt.on_loss)
        return HEFT_OK;
    heft_str end = { "", 1 }; /* the terminating NUL */
    p->listed = heft_arena_join(&p->arena, heft_lit("; the first: "), heft_lit(text), end).ptr;
    return p->listed ? HEFT_OK : heft_error_no_memory(p->plan.err, "to plan the file");
}

/* Return the text, preceded by what happens to a tensor that is left out. */
static const char *say_left_out(heft_error *to, const heft_planner *p, uint32_t tensor,
                                const char *text)
{
    bool is_left_out = tensor != HEFT_NONE && p->opt.allow_loss &&
                       heft_ix_row(&p->x, tensor)->flags & HEFT_T_DROPPED;
    if (is_left_out)
        heft_error_plain(to, HEFT_E_LOSSY, "left out: %s", text);
    return is_left_out ? to->message : text;
}

heft_status heft_plan_loss(heft_plan *plan, heft_severity s, const char *rule, uint32_t tensor,
                           const char *text)
{
    heft_planner *p = plan->planner;
    heft_str name = { NULL, 0 };
    heft_error left_out;
    bool stops = (s == HEFT_FAULT && !p->opt.allow_loss) || (s == HEFT_WARNING && p->opt.strict);
    /* the only tensor */
    if (tensor == HEFT_NONE && p->grows_into && heft_ix_tensors(&p->x))
        tensor = 0;
    if (tensor != HEFT_NONE)
        name = heft_ix_name(&p->x, tensor);
    text = say_left_out(&left_out, p, tensor, text);
    if (stops)
        s = HEFT_FAULT;
    else if (s == HEFT_FAULT)
        s = HEFT_WARNING; /* the caller allows the loss */
    bool is_new, is_first = stops && !p->losses++;
    if (is_first)
        HEFT_TRY(keep_first_loss(p, rule, text));
    HEFT_TRY(note_loss(p, rule, name, text, &is_new));
    if (is_new && p->opt.on_loss)
        p->opt.on_loss(p->opt.ctx, s, rule, name, text);
    return HEFT_OK;
}

heft_status heft_plan_warn(heft_plan *plan, const char *rule, const char *text)
{
    heft_planner *p = plan->planner;
    bool is_strict = p->opt.strict;
    /* an edit is strict about losses, not about warnings, unless the caller is */
    p->opt.strict = is_strict && (!plan->existing || p->warnings_are_errors);
    heft_status st = heft_plan_loss(plan, HEFT_WARNING, rule, HEFT_NONE, text);
    p->opt.strict = is_strict;
    return st;
}

/* ---- the model ---- */

void heft_plan_drop(heft_plan *p, uint32_t tensor)
{
    heft_ix_tensor_row *row = heft_ix_row(p->x, tensor);
    p->planner->dropped += !(row->flags & HEFT_T_DROPPED);
    row->flags |= HEFT_T_DROPPED;
}

void heft_plan_compact(heft_plan *p)
{
    heft_ix_compact(p->x);
}

heft_status heft_plan_reshape(heft_plan *p, uint32_t tensor, const uint64_t *dims, uint32_t rank)
{
    p->planner->reshaped++;
    return heft_ix_reshape(p->x, tensor, dims, rank);
}

/* ---- memory, model-level parts ---- */

void *heft_plan_alloc(heft_plan *p, size_t size)
{
    void *mem = heft_arena_alloc(p->arena, size ? size : 1, 16);
    if (mem)
        memset(mem, 0, size);
    else
        heft_error_no_memory(p->err, "to plan the file");
    return mem;
}

heft_status heft_plan_sort(heft_plan *p, uint32_t *ids, uint32_t n,
                           bool (*is_before)(const void *ctx, uint32_t a, uint32_t b))
{
    uint32_t *scratch = heft_plan_alloc(p, n * sizeof *scratch);
    if (!scratch)
        return HEFT_E_NOMEM;
    heft_sort(ids, scratch, n, is_before, p->x);
    return HEFT_OK;
}

/* Read a model-level part on demand: most formats have no use for most parts, and any may be as
 * large as a file. */
static heft_status read_part(heft_plan *plan, heft_model_bytes *m)
{
    uint64_t length = heft_ix_part_row_at(&m->from->x, m->part)->length;
    char *to = length < SIZE_MAX ? heft_arena_alloc(plan->arena, (size_t)length + 1, 1) : NULL;
    if (!to)
        return heft_error_plain(plan->err, HEFT_E_NOMEM, "no memory for part %q", m->role);
    m->bytes = (heft_str){ to, (size_t)length };
    return heft_part_read(to, m->from, m->part, 0, (size_t)length, plan->err);
}

heft_status heft_plan_model_part(heft_plan *plan, const char *role, heft_str *out)
{
    const heft_planner *p = plan->planner;
    heft_model_bytes *m = p->model_bytes.ptr;
    heft_status st = HEFT_OK;
    uint32_t i = 0;
    while (i < p->model_bytes.len && !heft_str_is(m[i].role, role))
        i++;
    *out = (heft_str){ NULL, 0 };
    if (i == p->model_bytes.len)
        return HEFT_OK;
    if (!m[i].bytes.ptr && m[i].from)
        st = read_part(plan, &m[i]);
    *out = m[i].bytes;
    return st;
}
