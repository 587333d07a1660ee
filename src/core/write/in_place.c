/* in_place.c - the places of data that is there already, when the file around it is planned anew. */
#include "core/write/plan.h"

enum {
    BLOCK = 4096,   /* what file systems share between files, at least */
    LARGE = 1 << 20 /* from here on sharing is worth a padding */
};

bool heft_existing_data(const heft_index *kept, uint32_t file, heft_range *out)
{
    uint64_t first = HEFT_NOWHERE, end = 0;
    uint64_t size = file ? heft_ix_shard_at(kept, file)->size : kept->file_bytes;
    for (uint32_t i = 0; i < kept->parts.len; i++) {
        const heft_ix_part_row *p = heft_ix_part_row_at(kept, i);
        uint64_t offset = heft_global_offset_local(kept, p->offset);
        if (heft_global_offset_file(kept, p->offset) != file)
            continue;
        if (p->stored && offset < first)
            first = offset;
        if (offset <= size && offset + p->stored > end)
            end = offset + p->stored;
    }
    *out = (heft_range){ first, end - first };
    return first != HEFT_NOWHERE;
}

bool heft_planner_existing(const heft_planner *p, heft_range *out)
{
    const heft_index *kept = p->plan.existing;
    if (p->plan.keeps_tail) {
        *out = (heft_range){ p->plan.header_bytes, kept->file_bytes - p->plan.header_bytes };
        return true;
    }
    bool has_data = heft_existing_data(kept, 0, out);
    if (has_data && !p->format->write_trailer)
        out->length = kept->file_bytes - out->offset;
    return has_data;
}

bool heft_plan_reserve_front(const heft_plan *p, uint64_t *start)
{
    heft_range data;
    uint64_t step;
    if (!p->existing || !heft_existing_data(p->existing, 0, &data))
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

typedef struct placing { /* of data that are moved as one, of a file of the plan */
    heft_range data;
    uint64_t start;
} placing;

bool heft_planner_move(heft_planner *p, uint64_t start, uint64_t tail_align)
{
    const heft_index *kept = p->plan.existing;
    placing to[2] = { { .start = start } };
    uint64_t end;
    bool ok = heft_planner_existing(p, &to[0].data) && heft_add(&end, start, to[0].data.length);
    if (ok && p->plan.adds && heft_existing_data(kept, 1, &to[1].data))
        ok = heft_align_up(&to[1].start, end, p->plan.align) &&
             heft_add(&end, to[1].start, to[1].data.length);
    for (uint32_t i = 0; ok && i < p->plan.order_count; i++) {
        heft_ix_part_row *part = heft_ix_part_row_at(&p->x, p->plan.order[i]);
        const heft_ix_part_row *old = heft_ix_part_row_at(kept, p->plan.order[i]);
        const placing *moved = &to[heft_global_offset_file(kept, old->offset) > 0];
        uint64_t offset = heft_global_offset_local(kept, old->offset), begin = moved->data.offset;
        bool is_inside = offset >= begin && offset <= begin + moved->data.length;
        part->stored = old->stored;
        ok = heft_add(&part->offset, moved->start, is_inside ? offset - begin : 0);
    }
    bool pads = p->format->write_trailer || p->plan.adds;
    return ok && heft_align_up(&p->plan.data_end, end, pads ? tail_align : 1);
}
