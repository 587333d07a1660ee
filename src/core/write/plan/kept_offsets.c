/* kept_offsets.c - offsets of existing data when a file is planned anew around the data. */
#include "core/write/plan/plan.h"

enum {
    BLOCK = 4096,         /* the smallest block that file systems share between files */
    MIN_REFLINK = 1 << 20 /* smallest size that makes reflinking worth the padding */
};

bool heft_existing_data(const heft_index *existing, uint32_t file, heft_range *out)
{
    uint64_t first = HEFT_NOWHERE, end = 0;
    uint64_t size = file ? heft_ix_shard_at(existing, file)->size : existing->file_bytes;
    for (uint32_t i = 0; i < existing->parts.len; i++) {
        const heft_ix_part_row *p = heft_ix_part_row_at(existing, i);
        uint64_t offset = heft_global_offset_local(existing, p->offset);
        if (heft_global_offset_file(existing, p->offset) != file)
            continue;
        if (p->stored && offset < first)
            first = offset;
        if (offset <= size && offset + p->stored > end)
            end = offset + p->stored;
    }
    *out = (heft_range){ first, end - first };
    return first != HEFT_NOWHERE;
}

bool heft_planner_existing_block(const heft_planner *p, heft_range *out)
{
    const heft_index *existing = p->plan.existing;
    if (p->plan.keeps_trailer) {
        *out = (heft_range){ p->plan.header_bytes, existing->file_bytes - p->plan.header_bytes };
        return true;
    }
    bool has_data = heft_existing_data(existing, 0, out);
    if (has_data && !p->writer->write_trailer)
        out->length = existing->file_bytes - out->offset;
    return has_data;
}

bool heft_plan_keep_data_start(const heft_plan *p, uint64_t *start)
{
    heft_range data;
    uint64_t step;
    if (!p->existing || !heft_existing_data(p->existing, 0, &data))
        return false;
    if (*start <= data.offset) {
        *start = data.offset;
        return true;
    }
    /* the largest power of two, up to a block, that divides the offset is the alignment */
    step = data.offset | BLOCK;
    step = data.length >= MIN_REFLINK ? BLOCK : step & (~step + 1);
    if (heft_align_up(&step, *start - data.offset, step))
        *start = data.offset + step;
    return true;
}

/* A move of a file's data as a block. */
typedef struct block_move {
    heft_range data;
    uint64_t start;
} block_move;

bool heft_planner_move_block(heft_planner *p, uint64_t start, uint64_t tail_align)
{
    const heft_index *existing = p->plan.existing;
    block_move to[2] = { { .start = start } };
    uint64_t end = 0;
    bool ok = heft_planner_existing_block(p, &to[0].data) &&
              heft_add(&end, start, to[0].data.length);
    if (ok && p->plan.has_added_parts && heft_existing_data(existing, 1, &to[1].data))
        ok = heft_align_up(&to[1].start, end, p->plan.align) &&
             heft_add(&end, to[1].start, to[1].data.length);
    for (uint32_t i = 0; ok && i < p->plan.order_count; i++) {
        heft_ix_part_row *part = heft_ix_part_row_at(&p->x, p->plan.order[i]);
        const heft_ix_part_row *old = heft_ix_part_row_at(existing, p->plan.order[i]);
        const block_move *moved = &to[heft_global_offset_file(existing, old->offset) > 0];
        uint64_t offset = heft_global_offset_local(existing, old->offset),
                 begin = moved->data.offset;
        bool is_inside = offset >= begin && offset <= begin + moved->data.length;
        part->stored = old->stored;
        ok = heft_add(&part->offset, moved->start, is_inside ? offset - begin : 0);
    }
    bool pads = p->writer->write_trailer || p->plan.has_added_parts;
    return ok && heft_align_up(&p->plan.data_end, end, pads ? tail_align : 1);
}
