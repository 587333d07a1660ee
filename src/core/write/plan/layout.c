/* layout.c - compute offsets: parts in sequence, duplicates once; and the size of the file. */
#include "base/sort.h"
#include "core/write/plan/plan.h"

/* ---- called by formats ---- */

/* Default to the order of the tensors, unless the format has set an order. */
static heft_status set_default_order(heft_plan *p)
{
    uint32_t count = 0;
    if (p->order)
        return HEFT_OK;
    p->order = heft_plan_alloc(p, p->x->parts.len * sizeof *p->order);
    if (!p->order)
        return HEFT_E_NOMEM;
    for (uint32_t t = 0; t < heft_ix_tensors(p->x); t++)
        for (uint32_t k = 0; k < heft_ix_row(p->x, t)->part_count; k++) {
            uint32_t part = heft_ix_row(p->x, t)->first_part + k;
            if (!p->duplicate_of || p->duplicate_of[part] == part)
                p->order[count++] = part;
        }
    p->order_count = count;
    return HEFT_OK;
}

heft_status heft_plan_append(heft_plan *p, uint64_t start)
{
    p->appended = true;
    p->header_bytes = p->data_end = start;
    p->file_bytes = 0;
    return set_default_order(p);
}

static heft_status find_duplicates(heft_plan *p, bool contents)
{
    uint32_t count = p->x->parts.len;
    p->duplicate_of = heft_plan_alloc(p, count * sizeof *p->duplicate_of);
    if (!p->duplicate_of)
        return HEFT_E_NOMEM;
    for (uint32_t i = 0; i < count; i++)
        p->duplicate_of[i] = i;
    return p->source.find_duplicates
               ? p->source.find_duplicates(p->source.ctx, p->duplicate_of, contents)
               : HEFT_OK;
}

heft_status heft_plan_find_duplicates(heft_plan *p)
{
    return find_duplicates(p, true);
}

heft_status heft_plan_find_shared(heft_plan *p)
{
    return find_duplicates(p, false);
}

/* Count the bytes of a part's record header, without padding. */
static heft_status record_header_bytes(const heft_plan *plan, uint32_t part, uint64_t *out)
{
    const heft_format_writer *w = plan->planner->writer;
    heft_out count = heft_out_counting();
    heft_status st = w->write_record_header ? w->write_record_header(plan, part, &count) : HEFT_OK;
    *out = count.total;
    return st;
}

heft_status heft_planner_moves_block(const heft_planner *p, bool *moves)
{
    const heft_plan *plan = &p->plan;
    heft_range data;
    uint64_t header = 0;
    heft_status st = HEFT_OK;
    *moves = plan->existing && !plan->places_each_part && heft_planner_existing_block(p, &data);
    for (uint32_t i = 0; *moves && !st && p->writer->write_record_header && i < plan->order_count;
         i++) {
        st = record_header_bytes(plan, plan->order[i], &header);
        *moves = !header;
    }
    return st;
}

static heft_status file_too_large(heft_plan *p)
{
    return heft_error_plain(p->err, HEFT_E_LOSSY, "the file would exceed 2^64 bytes");
}

/* Place the parts in sequence. */
static heft_status place_each(heft_plan *p, uint64_t start, uint64_t tail_align)
{
    uint64_t at = start, header;
    heft_status st = HEFT_OK;
    for (uint32_t i = 0; i < p->order_count && !st; i++) {
        heft_ix_part_row *part = heft_ix_part_row_at(p->x, p->order[i]);
        st = record_header_bytes(p, p->order[i], &header);
        part->stored = p->existing ? heft_ix_part_row_at(p->existing, p->order[i])->stored
                                   : part->length;
        if (!heft_add(&at, at, header) || !heft_align_up(&at, at, p->align) ||
            !heft_add(&at, at, part->stored))
            return file_too_large(p);
        part->offset = at - part->stored;
    }
    return !st && !heft_align_up(&p->data_end, at, tail_align) ? file_too_large(p) : st;
}

heft_status heft_plan_place(heft_plan *p, uint64_t start, uint64_t tail_align)
{
    bool moves = false;
    heft_status st = set_default_order(p);
    if (!st)
        st = heft_planner_moves_block(p->planner, &moves);
    if (!st && !moves)
        st = place_each(p, start, tail_align);
    else if (!st && !heft_planner_move_block(p->planner, start, tail_align))
        st = file_too_large(p);
    for (uint32_t i = 0; !st && p->duplicate_of && i < p->x->parts.len; i++) {
        heft_ix_part_row *part = heft_ix_part_row_at(p->x, i);
        const heft_ix_part_row *first = heft_ix_part_row_at(p->x, p->duplicate_of[i]);
        part->offset = first->offset;
        part->stored = first->stored;
    }
    return st;
}

/* ---- called by the engine ---- */

static bool placed_before(const void *ctx, uint32_t a, uint32_t b)
{
    return heft_ix_part_row_at(ctx, a)->offset < heft_ix_part_row_at(ctx, b)->offset;
}

heft_status heft_planner_parts_in_order(heft_planner *p, uint32_t **out, uint32_t *count,
                                        heft_error *err)
{
    uint32_t n = 0;
    p->plan.err = err;
    uint32_t *ids = heft_plan_alloc(&p->plan, 2 * (size_t)p->x.parts.len * sizeof *ids);
    if (!ids)
        return HEFT_E_NOMEM;
    for (uint32_t i = 0; i < p->plan.order_count; i++)
        if (heft_ix_part_row_at(&p->x, p->plan.order[i])->stored || p->writer->write_record_header)
            ids[n++] = p->plan.order[i];
    heft_sort(ids, ids + p->x.parts.len, n, placed_before, &p->x);
    *out = ids;
    *count = n;
    return HEFT_OK;
}

/* The trailer of appended parts is measured here, since the end of the data was unknown while
 * planning. */
heft_status heft_planner_trailer_bytes(const heft_planner *p, uint64_t *out)
{
    heft_out count = heft_out_counting();
    *out = p->plan.file_bytes - p->plan.data_end;
    heft_status st = p->plan.appended ? p->writer->write_trailer(&p->plan, &count) : HEFT_OK;
    if (p->plan.appended)
        *out = count.total;
    return st;
}

uint64_t heft_planner_max_bytes(const heft_planner *p)
{
    enum {
        /* Besides padding, per part: frames that do not get smaller, longer numbers in the
         * index. */
        FRAME_OVERHEAD = 256
    };
    uint64_t sum, trailer;
    if (!p->plan.appended)
        return heft_plan_size(&p->plan);
    if (heft_planner_trailer_bytes(p, &trailer) ||
        !heft_add(&sum, p->plan.header_bytes + p->plan.align, trailer))
        return HEFT_UNKNOWN_LENGTH;
    for (uint32_t i = 0; i < p->plan.order_count; i++) {
        uint64_t length = heft_ix_part_row_at(&p->x, p->plan.order[i])->length;
        if (!heft_add(&sum, sum, length) ||
            !heft_add(&sum, sum, length / 256 + p->plan.align + FRAME_OVERHEAD))
            return HEFT_UNKNOWN_LENGTH;
    }
    return sum;
}
