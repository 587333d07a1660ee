/* reflink.c - reflink parts that are copied unchanged, where the blocks are aligned alike in
 * both files and no checksum needs the bytes. */
#include "core/write/convert/reflink.h"

enum {
    BLOCK = 4096, /* block size of nearly every file system; the call fails with larger blocks */
    MIN_LENGTH = 64 << 10 /* copying less is as fast */
};

/* ---- eligible parts ---- */

/* Return true if a part is copied unchanged, and no checksum needs the bytes. */
static bool can_reflink(const heft_copy_context *c, uint32_t part)
{
    const heft_origin *o = &c->origins[part];
    const heft_ix_part_row *from = heft_ix_part_row_at(&c->in->x, o->part);
    if (heft_planner_digest_of(c->p, part) || c->p->written.digest_count ||
        c->ledger->crcs.digest_count || heft_ledger_in_order(c->ledger, o->part) != HEFT_NONE)
        return false;
    return !o->layout_target && !o->transposed && heft_ix_is_plain(from) &&
           o->dtype == heft_ix_part_row_at(&c->p->x, part)->dtype;
}

/* Return the whole blocks of a part in the target; false: too few, or not aligned like the
 * source. */
static bool whole_blocks(heft_range *out, uint64_t to, uint64_t from, uint64_t length)
{
    uint64_t skip = (0 - to) & (BLOCK - 1);
    if ((to ^ from) & (BLOCK - 1) || length < MIN_LENGTH)
        return false;
    *out = (heft_range){ to + skip, (length - skip) & ~(uint64_t)(BLOCK - 1) };
    return true;
}

/* Cut the range to the whole blocks of the range that this copy writes; false: too few remain. */
static bool cut_to_share(heft_range *r, const heft_range *only)
{
    if (!only)
        return true;
    uint64_t from = (only->offset + BLOCK - 1) & ~(uint64_t)(BLOCK - 1);
    uint64_t to = (only->offset + only->length) & ~(uint64_t)(BLOCK - 1),
             end = r->offset + r->length;
    from = from > r->offset ? from : r->offset;
    to = to < end ? to : end;
    *r = (heft_range){ from, from < to ? to - from : 0 };
    return r->length >= MIN_LENGTH;
}

/* ---- the call ---- */

/* false: the file system does not support the call. */
static bool reflink_range(const heft_copy_context *c, uint32_t part, heft_range r)
{
    const heft_file *f = c->in;
    const heft_ix_part_row *to = heft_ix_part_row_at(&c->p->x, part);
    const heft_ix_part_row *from = heft_ix_part_row_at(&f->x, c->origins[part].part);
    uint32_t number = heft_global_offset_file(&f->x, from->offset);
    heft_source *s = number ? f->opened_shards[number - 1].source : f->source;
    uint64_t at = heft_global_offset_local(&f->x, from->offset) + (r.offset - to->offset);
    return s && c->sink->ops->reflink(c->sink, r.offset, s, at, r.length);
}

heft_status heft_reflink_parts(const heft_copy_context *c, const uint32_t *file_order,
                               uint32_t count, heft_memory *m, heft_vec *reflinked, heft_error *err)
{
    if (!HEFT_HAS(c->sink->ops, reflink))
        return HEFT_OK;
    for (uint32_t i = 0; i < count && !heft_progress_halted(c->progress); i++) {
        const heft_ix_part_row *to = heft_ix_part_row_at(&c->p->x, file_order[i]);
        uint64_t from = heft_ix_part_row_at(&c->in->x, c->origins[file_order[i]].part)->offset;
        heft_range r;
        if (!can_reflink(c, file_order[i]) ||
            !whole_blocks(&r, to->offset, heft_global_offset_local(&c->in->x, from), to->stored) ||
            !cut_to_share(&r, c->only))
            continue;
        heft_range *range = heft_vec_push(m, reflinked, sizeof *range);
        if (!range)
            return heft_error_no_memory(err, "to plan the copy");
        *range = r;
        if (!reflink_range(c, file_order[i], r)) {
            reflinked->len--;
            break;
        }
        HEFT_TRY(heft_file_count_read(c->in, c->origins[file_order[i]].part, r.length, err));
        heft_progress_add(c->progress, r.length);
    }
    return HEFT_OK;
}
