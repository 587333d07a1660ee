/* edit_layout.c - turn the plan of an edited file into extents: bytes that the format writes,
 * and data copied as stored. */
#include "core/edit/edit.h"

/* ---- bytes written by the format ---- */

typedef struct memory_sink {
    heft_sink base;
    uint64_t at; /* offset of the section in the file */
    uint8_t *to;
} memory_sink;

/* heft_planner_emit() passes no byte outside of the planned section. */
static heft_status write_at(heft_sink *s, uint64_t at, const void *data, size_t len,
                            heft_error *err)
{
    const memory_sink *m = (const memory_sink *)s;
    (void)err;
    memcpy(m->to + (at - m->at), data, len);
    return HEFT_OK;
}

static const heft_sink_ops memory_ops = { .size = sizeof(heft_sink_ops), .write_at = write_at };

static heft_status emit_section(heft_edit_job *g, heft_section section, uint64_t at,
                                uint64_t length)
{
    memory_sink m = { { &memory_ops }, at, NULL };
    HEFT_TRY(heft_edit_add_bytes(g, at, length, &m.to));
    return heft_planner_emit(&g->p, section, &m.base, g->err);
}

/* Add the bytes of range r, between part i - 1 and part i in file order, or before the end of
 * the data if i == count. */
static heft_status fill_gap(heft_edit_job *g, const uint32_t *file_order, uint32_t count,
                            uint32_t i, heft_range r)
{
    uint8_t *to;
    if (!r.length)
        return HEFT_OK;
    HEFT_TRY(heft_edit_add_bytes(g, r.offset, r.length, &to));
    HEFT_TRY(heft_planner_record_header(&g->p, file_order, count, i, r.offset, (size_t)r.length, to,
                                        g->err));
    return heft_partial_crcs_add(&g->p.written, r.offset, to, (size_t)r.length, g->err);
}

/* ---- data ---- */

static heft_status overlap_error(heft_edit_job *g)
{
    return heft_error_plain(g->err, HEFT_E_UNSUPPORTED, "%s planned overlapping data",
                            g->p.format->name);
}

/* Return the new offset of a file's data that move as a block. */
static uint64_t new_offset(const heft_edit_job *g, uint32_t file, const heft_range *data)
{
    uint64_t to = 0;
    for (uint32_t i = 0; i < g->p.plan.order_count; i++) {
        uint32_t part = g->p.plan.order[i];
        const heft_ix_part_row *old = heft_ix_part_row_at(&g->in->x, part);
        if (old->stored && old->offset == heft_global_offset(file, data->offset))
            to = heft_ix_part_row_at(&g->p.x, part)->offset;
    }
    return to;
}

/* Fill the gap up to `to`, then copy range r of a file; *at becomes the end of the copy. */
static heft_status move_range(heft_edit_job *g, uint64_t *at, uint64_t to, uint32_t file,
                              heft_range r)
{
    if (to < *at || to + r.length > g->p.plan.data_end)
        return overlap_error(g);
    heft_status st = fill_gap(g, NULL, 0, 0, (heft_range){ *at, to - *at });
    if (!st)
        st = heft_edit_add_copy(g, to, r.length, heft_global_offset(file, r.offset));
    *at = to + r.length;
    return st;
}

static heft_status copy_block(heft_edit_job *g)
{
    const heft_plan *plan = &g->p.plan;
    heft_range data, added;
    (void)heft_planner_existing_block(&g->p, &data);
    uint64_t at = plan->header_bytes, to = plan->keeps_trailer ? at : new_offset(g, 0, &data);
    HEFT_TRY(move_range(g, &at, to, 0, data));
    if (plan->has_added_parts && heft_existing_data(plan->existing, 1, &added))
        HEFT_TRY(move_range(g, &at, new_offset(g, 1, &added), 1, added));
    return fill_gap(g, NULL, 0, 0, (heft_range){ at, plan->data_end - at });
}

static heft_status copy_parts(heft_edit_job *g)
{
    uint32_t *file_order, count;
    uint64_t at = g->p.plan.header_bytes;
    heft_status st = heft_planner_parts_in_order(&g->p, &file_order, &count, g->err);
    for (uint32_t i = 0; i < count && !st; i++) {
        const heft_ix_part_row *part = heft_ix_part_row_at(&g->p.x, file_order[i]);
        const heft_ix_part_row *old = heft_ix_part_row_at(&g->in->x, file_order[i]);
        if (part->offset < at)
            return overlap_error(g);
        st = fill_gap(g, file_order, count, i, (heft_range){ at, part->offset - at });
        if (!st)
            st = heft_edit_add_copy(g, part->offset, part->stored, old->offset);
        at = part->offset + part->stored;
    }
    if (!st && at > g->p.plan.data_end)
        return overlap_error(g);
    return st ? st
              : fill_gap(g, file_order, count, count, (heft_range){ at, g->p.plan.data_end - at });
}

/* ---- the whole file ---- */

/* Return true if the data of the file keep their offsets.  Appending counts as in place only if
 * the format has HEFT_CAN_APPEND. */
static bool is_in_place(const heft_edit_job *g)
{
    const heft_edit_extent *extents = g->e->extents.ptr;
    bool keeps_offsets = !g->p.plan.has_added_parts || g->p.format->caps & HEFT_CAN_APPEND;
    for (uint32_t i = 0; i < g->e->extents.len; i++) {
        bool is_own = !extents[i].data && !heft_global_offset_file(&g->in->x, extents[i].from);
        keeps_offsets = keeps_offsets && (!is_own || extents[i].from == extents[i].at);
    }
    return keeps_offsets;
}

heft_status heft_edit_lay_out(heft_edit_job *g)
{
    heft_plan *plan = &g->p.plan;
    bool moves;
    if (plan->appended || g->p.digest_of)
        return heft_error_plain(g->err, HEFT_E_UNSUPPORTED, "%s cannot be edited by this build",
                                g->p.format->name);
    heft_status st = heft_planner_moves_block(&g->p, &moves);
    if (!st)
        st = heft_edit_sort_checksums(g);
    if (!st)
        st = emit_section(g, HEFT_HEADER, 0, plan->header_bytes);
    /* Record headers between the data contain checksums of the data before. */
    g->p.carry_unwritten = plan->needs_preceding_digests ? heft_edit_carry : NULL;
    g->p.carry_unwritten_ctx = g;
    if (!st)
        st = moves ? copy_block(g) : copy_parts(g);
    g->p.carry_unwritten = heft_edit_carry;
    if (!st)
        st = heft_planner_digests(&g->p, g->err);
    if (!st)
        st = emit_section(g, HEFT_TRAILER, plan->data_end, plan->file_bytes - plan->data_end);
    g->e->size = plan->file_bytes;
    g->e->in_place = is_in_place(g);
    return st;
}
