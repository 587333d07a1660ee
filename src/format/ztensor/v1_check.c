/* v1_check.c - what is odd in files of zTensor 0.1 to 1.2: offsets, data that overlap, padding. */
#include "format/ztensor/ztensor.h"

/* ---- what is allowed but odd ---- */

static bool ascend(const heft_index *x)
{
    uint64_t reach = 0;
    for (uint32_t i = 0; i < x->parts.len; i++) {
        const heft_ix_part_row *p = heft_ix_part_row_at(x, i);
        if (p->stored && p->offset < reach)
            return false;
        reach = p->stored ? p->offset + p->stored : reach;
    }
    return true;
}

/* Components that share bytes share all of them. */
static void note_overlaps(heft_index *x, const uint32_t *order, uint32_t count)
{
    heft_range last = { 0, 0 }; /* that ends furthest so far */
    for (uint32_t i = 0; i < count; i++) {
        const heft_ix_part_row *p = heft_ix_part_row_at(x, order[i]);
        heft_range where = { p->offset, p->stored };
        bool is_shared = where.offset == last.offset && where.length == last.length;
        if (where.offset < last.offset + last.length && !is_shared)
            heft_ix_note_range(x, HEFT_WARNING, "ztensor/overlap", where,
                               heft_ix_owner(x, order[i]), "its data overlap partly with others");
        if (where.offset + where.length > last.offset + last.length)
            last = where;
    }
}

heft_status heft_zt1_notice(heft_index *x)
{
    uint32_t *order = NULL, count = 0;
    heft_ix_note_offsets(x, HEFT_ZT_ALIGN, "ztensor/align-64",
                         "its data do not begin at a multiple of 64");
    heft_status st = ascend(x) ? HEFT_OK : heft_ix_order(x, &order, &count);
    if (!st)
        note_overlaps(x, order, count);
    heft_ix_order_free(x, order);
    return st;
}

/* ---- checking ---- */

/* Up to the next multiple of 64 there is padding; what a gap has beyond belongs to nobody, such as what
 * the first writer left behind when a name came twice. */
static heft_status check_gap(heft_check *c, uint64_t from, uint64_t to)
{
    uint64_t aligned;
    if (!heft_align_up(&aligned, from, HEFT_ZT_ALIGN) || aligned > to)
        aligned = to;
    heft_range padding = { from, aligned - from }, unused = { aligned, to - aligned };
    heft_status st = c->padding(c, "ztensor/padding", HEFT_WARNING, padding, 0);
    return st ? st : c->padding(c, "ztensor/unused", HEFT_NOTE, unused, 0);
}

heft_status heft_zt1_check(heft_check *c)
{
    const uint32_t *order;
    uint32_t count;
    uint64_t end = c->x->data_start; /* of what was passed */
    heft_status st = c->order(c, &order, &count);
    for (uint32_t i = 0; i <= count && !st; i++) {
        const heft_ix_part_row *p = i < count ? heft_ix_part_row_at(c->x, order[i]) : NULL;
        uint64_t begin = p ? p->offset : c->x->data_end;
        if (begin > end)
            st = check_gap(c, end, begin);
        if (p && p->offset + p->stored > end)
            end = p->offset + p->stored;
    }
    return st;
}
