/* keep.c - the places of data that is there already, when the file around it is planned anew. */
#include "core/write/plan.h"

enum {
    BLOCK = 4096,   /* what file systems share between files, at least */
    LARGE = 1 << 20 /* from here on sharing is worth a padding */
};

bool heft_kept_data(const heft_index *kept, heft_range *out)
{
    uint64_t first = HEFT_NOWHERE, end = 0;
    for (uint32_t i = 0; i < kept->parts.len; i++) {
        const heft_ix_part_row *p = heft_ix_part_row_at(kept, i);
        if (p->stored && p->offset < first)
            first = p->offset;
        if (p->offset <= kept->file_bytes && p->offset + p->stored > end)
            end = p->offset + p->stored;
    }
    *out = (heft_range){ first, end - first };
    return first != HEFT_NOWHERE;
}

bool heft_plan_room(const heft_plan *p, uint64_t *start)
{
    heft_range data;
    uint64_t step;
    if (!p->kept || !heft_kept_data(p->kept, &data))
        return false;
    if (*start <= data.offset) {
        *start = data.offset;
        return true;
    }
    step = data.offset | BLOCK; /* what divides the offset, up to a block, is its alignment */
    step = data.length >= LARGE ? BLOCK : step & (~step + 1);
    if (heft_align_up(&step, *start - data.offset, step))
        *start = data.offset + step;
    return true;
}

/* What follows the data in a format that has nothing there is kept as well. */
bool heft_planner_move(heft_planner *p, uint64_t start, uint64_t tail_align)
{
    const heft_index *kept = p->plan.kept;
    heft_range data;
    uint64_t end;
    if (!heft_kept_data(kept, &data))
        return false;
    for (uint32_t i = 0; i < p->plan.order_count; i++) {
        heft_ix_part_row *part = heft_ix_part_row_at(&p->x, p->plan.order[i]);
        const heft_ix_part_row *old = heft_ix_part_row_at(kept, p->plan.order[i]);
        bool is_inside = old->offset >= data.offset && old->offset <= data.offset + data.length;
        if (!heft_add(&part->offset, start, is_inside ? old->offset - data.offset : 0))
            return false;
        part->stored = old->stored;
    }
    uint64_t behind = p->format->back ? data.offset + data.length : kept->file_bytes;
    if (!heft_add(&end, start, behind - data.offset))
        return false;
    return heft_align_up(&p->plan.data_end, end, p->format->back ? tail_align : 1);
}
