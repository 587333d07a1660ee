/* torn_check.c - reports quantised tensors whose parts no longer belong together: some are left
 * out, or renaming hides which tensor they represent. */
#include "core/write/plan/plan.h"

#include <heft/scheme.h>

#include "base/text.h"
#include "scheme/recognition.h"
#include "scheme/refuse.h"

typedef struct torn_check {
    heft_planner *p;
    const heft_file *in;
    const heft_schemes *before;
    heft_schemes *after; /* the quantised tensors of the plan; NULL: not needed */
    const uint32_t *planned;
} torn_check;

static uint32_t planned_id(const torn_check *c, uint32_t tensor)
{
    return c->planned ? c->planned[tensor] : tensor;
}

/* Scales of activations say nothing about the stored numbers. */
static bool is_needed(const heft_quantised_part *part)
{
    heft_str role = heft_lit(part->role);
    return !heft_str_is(role, "input_scale") && !heft_str_is(role, "output_scale");
}

static heft_status warn(const torn_check *c, const heft_quantised *q,
                        const heft_quantised_part *part, const char *what)
{
    heft_error text;
    heft_error_plain(&text, HEFT_E_LOSSY, "quantised tensor %q (%q): its %s %q %s", q->name,
                     q->scheme, part->role, heft_ix_name(&c->in->x, part->tensor), what);
    return heft_plan_warn(&c->p->plan, "heft/torn-tensor", text.message);
}

/* Return the first needed part that is left out, and how many are planned. */
static uint32_t count_planned(heft_quantised_part *missing, const torn_check *c, uint32_t i)
{
    uint32_t count = heft_schemes_at(c->before, i).part_count, planned = 0;
    *missing = (heft_quantised_part){ HEFT_NONE, NULL };
    for (uint32_t k = 0; k < count; k++) {
        heft_quantised_part part = heft_schemes_part_at(c->before, i, k);
        bool is_planned = planned_id(c, part.tensor) != HEFT_NONE;
        planned += is_planned && is_needed(&part);
        if (!is_planned && !missing->role && is_needed(&part))
            *missing = part;
    }
    return planned;
}

/* A method that only the settings name has no rule for the names of its parts. */
static bool has_known_names(const heft_quantised_part *part)
{
    return !heft_str_is(heft_lit(part->role), "data");
}

static heft_status check_names(const torn_check *c, uint32_t i)
{
    const heft_quantised q = heft_schemes_at(c->before, i);
    for (uint32_t k = 0; c->after && k < q.part_count; k++) {
        heft_quantised_part part = heft_schemes_part_at(c->before, i, k);
        if (is_needed(&part) && has_known_names(&part) &&
            heft_schemes_find(c->after, planned_id(c, part.tensor)) == HEFT_NONE)
            return warn(c, &q, &part, "has a new name that does not belong to it");
    }
    return HEFT_OK;
}

static heft_status check(const torn_check *c, uint32_t i)
{
    const heft_quantised q = heft_schemes_at(c->before, i);
    heft_quantised_part missing;
    uint32_t planned = count_planned(&missing, c, i);
    if (!planned)
        return HEFT_OK;
    return missing.role ? warn(c, &q, &missing, "is left out: the other parts mean nothing alone")
                        : check_names(c, i);
}

/* Return true if a tensor has another name in the plan. */
static bool has_renamed(const torn_check *c)
{
    for (uint32_t t = 0; t < heft_ix_tensors(&c->in->x); t++) {
        uint32_t id = planned_id(c, t);
        if (id != HEFT_NONE && !heft_str_eq(heft_ix_name(&c->in->x, t), heft_ix_name(&c->p->x, id)))
            return true;
    }
    return false;
}

heft_status heft_warn_torn(heft_planner *p, const heft_file *in, const heft_schemes *schemes,
                           const uint32_t *planned)
{
    torn_check c = { .p = p, .in = in, .before = schemes, .planned = planned };
    heft_status st = schemes ? HEFT_OK : heft_schemes_of_file(&c.before, in, p->plan.err);
    if (st || !heft_schemes_count(c.before))
        return st;
    if (has_renamed(&c))
        st = heft_schemes_of_index(&c.after, &p->x, p->host->allocator, NULL, NULL, p->plan.err);
    for (uint32_t i = 0; i < heft_schemes_count(c.before) && !st; i++)
        st = check(&c, i);
    heft_schemes_close(c.after);
    return st;
}
