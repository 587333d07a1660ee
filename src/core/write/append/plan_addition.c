/* plan_addition.c - plan additions to a file that grows while it is written.
 *
 * A separate planner plans each addition first: losses are reported, and an addition that the
 * format cannot represent is refused before the model changes.  Once everything is written, the
 * whole model is planned again; existing parts keep the offsets, and losses already reported are
 * not repeated. */
#include "core/write/plan/plan.h"

/* ---- additions ---- */

heft_status heft_planner_trial(heft_planner *q, heft_planner *p, heft_error *err)
{
    heft_status st = heft_planner_init(q, p->format, &p->opt, err);
    q->grows_into = p;
    q->plan.grows = true;
    q->plan.is_declared = p->plan.is_declared;
    return st;
}

/* Return a copy of an array with a larger capacity, allocated from the plan. */
static void *grow_array(heft_planner *p, const void *from, uint32_t count, uint32_t capacity,
                        size_t elem)
{
    void *to = heft_plan_alloc(&p->plan, capacity * elem);
    if (to && from && count)
        memcpy(to, from, count * elem);
    return to;
}

static heft_status reserve_parts(heft_planner *p, uint32_t old_count)
{
    heft_plan *plan = &p->plan;
    uint32_t all = p->x.parts.len, capacity = all < UINT32_MAX / 2 ? 2 * all : all;
    if (all <= p->part_capacity)
        return HEFT_OK;
    plan->storage = grow_array(p, plan->storage, old_count, capacity, sizeof *plan->storage);
    p->digest_of = grow_array(p, p->digest_of, old_count, capacity, sizeof *p->digest_of);
    p->part_digests = grow_array(p, p->part_digests, old_count, capacity, sizeof *p->part_digests);
    p->part_capacity = capacity;
    return plan->storage && p->digest_of && p->part_digests ? HEFT_OK : HEFT_E_NOMEM;
}

heft_status heft_planner_adopt_layout(heft_planner *p, uint32_t first, const heft_planner *q,
                                      heft_error *err)
{
    p->plan.err = err;
    heft_status st = reserve_parts(p, first);
    for (uint32_t i = first; i < p->x.parts.len && !st; i++) {
        heft_ix_part_row *to = heft_ix_part_row_at(&p->x, i);
        const heft_ix_part_row *from = heft_ix_part_row_at(&q->x, i - first);
        to->dtype = from->dtype;
        to->length = to->stored = from->length;
        p->plan.storage[i] = q->plan.storage[i - first];
        p->digest_of[i] = heft_planner_digest_of(q, i - first);
    }
    if (p->plan.grows)
        return st;
    p->plan.grows = true;
    p->plan.digest_decoded = q->plan.digest_decoded;
    p->plan.frame_bytes = q->plan.frame_bytes;
    p->plan.frame_checksums = q->plan.frame_checksums;
    p->plan.frames_end = q->plan.frames_end;
    return st;
}

/* ---- the whole model ---- */

heft_status heft_planner_replan(heft_planner *p, heft_error *err)
{
    heft_plan *plan = &p->plan;
    uint64_t header_bytes = plan->header_bytes, end = plan->data_end, align = plan->align;
    plan->grows = plan->appended = true;
    plan->order = plan->duplicate_of = NULL;
    plan->order_count = 0;
    heft_status st = heft_planner_run(p, err);
    plan->header_bytes = header_bytes;
    plan->data_end = end;
    plan->align = align;
    return st;
}
