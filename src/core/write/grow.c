/* grow.c - plans of a file that grows while it is written.
 *
 * What is added is planned on its own first, in a planner for it alone, so that its losses are known and what cannot be
 * carried is refused before anything of it counts.  When all is written the whole model is planned again: parts that
 * lie in the file keep their places, and losses that were told are not told again.
 */
#include "core/write/plan.h"

/* ---- what is added ---- */

heft_status heft_planner_trial(heft_planner *q, heft_planner *p, heft_error *err)
{
    heft_status st = heft_planner_init(q, p->format, &p->opt, err);
    q->grows_into = p;
    q->plan.grows = true;
    q->plan.is_declared = p->plan.is_declared;
    return st;
}

/* The same elements in an array of the plan's that has room for so many. */
static void *enlarge(heft_planner *p, const void *from, uint32_t count, uint32_t room, size_t elem)
{
    void *to = heft_plan_alloc(&p->plan, room * elem);
    if (to && from && count)
        memcpy(to, from, count * elem);
    return to;
}

static heft_status make_room(heft_planner *p, uint32_t had)
{
    heft_plan *plan = &p->plan;
    uint32_t all = p->x.parts.len, room = all < UINT32_MAX / 2 ? 2 * all : all;
    if (all <= p->part_capacity)
        return HEFT_OK;
    plan->storage = enlarge(p, plan->storage, had, room, sizeof *plan->storage);
    p->digest_of = enlarge(p, p->digest_of, had, room, sizeof *p->digest_of);
    p->part_digests = enlarge(p, p->part_digests, had, room, sizeof *p->part_digests);
    p->part_capacity = room;
    return plan->storage && p->digest_of && p->part_digests ? HEFT_OK : HEFT_E_NOMEM;
}

heft_status heft_planner_take(heft_planner *p, uint32_t first, const heft_planner *q,
                              heft_error *err)
{
    p->plan.err = err;
    heft_status st = make_room(p, first);
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

/* ---- all of it ---- */

heft_status heft_planner_again(heft_planner *p, heft_error *err)
{
    heft_plan *plan = &p->plan;
    uint64_t front = plan->header_bytes, end = plan->data_end, align = plan->align;
    plan->grows = plan->appended = true;
    plan->order = plan->duplicate_of = NULL;
    plan->order_count = 0;
    heft_status st = heft_planner_run(p, err);
    plan->header_bytes = front;
    plan->data_end = end;
    plan->align = align;
    return st;
}
