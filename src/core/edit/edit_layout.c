/* edit_layout.c - what the plan of an edited file comes to: bytes that the format writes, and data that stay. */
#include "core/edit/edit.h"

/* ---- what the format writes ---- */

typedef struct memory_sink {
    heft_sink base;
    uint64_t at, length; /* of the file */
    uint8_t *to;
} memory_sink;

static heft_status write_at(heft_sink *s, uint64_t at, const void *data, size_t len,
                            heft_error *err)
{
    const memory_sink *m = (const memory_sink *)s;
    if (at < m->at || !heft_range_in((heft_range){ at - m->at, len }, m->length))
        return heft_error_plain(err, HEFT_E_UNSUPPORTED, "more was written than was planned");
    memcpy(m->to + (at - m->at), data, len);
    return HEFT_OK;
}

static const heft_sink_ops memory_ops = { .size = sizeof(heft_sink_ops), .write_at = write_at };

static heft_status make(heft_editing *g, heft_section section, uint64_t at, uint64_t length)
{
    memory_sink m = { { &memory_ops }, at, length, NULL };
    heft_status st = heft_edit_add_bytes(g, at, length, &m.to);
    return st ? st : heft_planner_emit(&g->p, section, &m.base, g->err);
}

/* What stands in front of place i, or behind all of them. */
static heft_status make_gap(heft_editing *g, const uint32_t *places, uint32_t count, uint32_t i,
                            heft_range r)
{
    uint8_t *to;
    if (!r.length)
        return HEFT_OK;
    heft_status st = heft_edit_add_bytes(g, r.offset, r.length, &to);
    if (!st)
        st = heft_planner_record_header(&g->p, places, count, i, r.offset, (size_t)r.length, to,
                                        g->err);
    if (!st)
        st = heft_partial_crcs_add(&g->p.written, r.offset, to, (size_t)r.length, g->err);
    return st;
}

/* ---- data ---- */

static heft_status misplaced(heft_editing *g)
{
    return heft_error_plain(g->err, HEFT_E_UNSUPPORTED,
                            "%s was planned with data on top of "
                            "each other",
                            g->p.format->name);
}

/* Where the data of a file of the plan come to lie that are moved as one. */
static uint64_t moved_to(const heft_editing *g, uint32_t file, const heft_range *data)
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

/* What fills the room in front of `to`, then the bytes of a file of the plan; *at becomes their end. */
static heft_status move_range(heft_editing *g, uint64_t *at, uint64_t to, uint32_t file,
                              heft_range r)
{
    if (to < *at || to + r.length > g->p.plan.data_end)
        return misplaced(g);
    heft_status st = make_gap(g, NULL, 0, 0, (heft_range){ *at, to - *at });
    if (!st)
        st = heft_edit_add_copy(g, to, r.length, heft_global_offset(file, r.offset));
    *at = to + r.length;
    return st;
}

static heft_status move_whole(heft_editing *g)
{
    const heft_plan *plan = &g->p.plan;
    heft_range data, added;
    (void)heft_planner_existing_block(&g->p, &data);
    uint64_t at = plan->header_bytes, to = plan->keeps_tail ? at : moved_to(g, 0, &data);
    heft_status st = move_range(g, &at, to, 0, data);
    if (!st && plan->adds && heft_existing_data(plan->existing, 1, &added))
        st = move_range(g, &at, moved_to(g, 1, &added), 1, added);
    return st ? st : make_gap(g, NULL, 0, 0, (heft_range){ at, plan->data_end - at });
}

static heft_status move_each(heft_editing *g)
{
    uint32_t *places, count;
    uint64_t at = g->p.plan.header_bytes;
    heft_status st = heft_planner_parts_in_order(&g->p, &places, &count, g->err);
    for (uint32_t i = 0; i < count && !st; i++) {
        const heft_ix_part_row *part = heft_ix_part_row_at(&g->p.x, places[i]);
        const heft_ix_part_row *old = heft_ix_part_row_at(&g->in->x, places[i]);
        if (part->offset < at)
            return misplaced(g);
        st = make_gap(g, places, count, i, (heft_range){ at, part->offset - at });
        if (!st)
            st = heft_edit_add_copy(g, part->offset, part->stored, old->offset);
        at = part->offset + part->stored;
    }
    if (!st && at > g->p.plan.data_end)
        return misplaced(g);
    return st ? st : make_gap(g, places, count, count, (heft_range){ at, g->p.plan.data_end - at });
}

/* ---- all of it ---- */

/* What is added comes from another file: its place in this one is new in any case. */
static bool is_in_place(const heft_editing *g)
{
    const heft_edit_extent *pieces = g->e->pieces.ptr;
    bool stays = !g->p.plan.adds || g->p.format->caps & HEFT_CAN_APPEND;
    for (uint32_t i = 0; i < g->e->pieces.len; i++) {
        bool is_own = !pieces[i].data && !heft_global_offset_file(&g->in->x, pieces[i].from);
        stays = stays && (!is_own || pieces[i].from == pieces[i].at);
    }
    return stays;
}

heft_status heft_edit_lay_out(heft_editing *g)
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
        st = make(g, HEFT_HEADER, 0, plan->header_bytes);
    g->p.carry_unwritten = plan->needs_preceding_digests
                               ? heft_edit_carry
                               : NULL; /* what stands between data asks for its checksums */
    g->p.carry_unwritten_ctx = g;
    if (!st)
        st = moves ? move_whole(g) : move_each(g);
    g->p.carry_unwritten = heft_edit_carry;
    if (!st)
        st = heft_planner_digests(&g->p, g->err);
    if (!st)
        st = make(g, HEFT_TRAILER, plan->data_end, plan->file_bytes - plan->data_end);
    g->e->size = plan->file_bytes;
    g->e->in_place = is_in_place(g);
    return st;
}
