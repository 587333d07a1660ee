/* reflink.c - parts that are copied as they are, by sharing the disk's blocks: where both files keep them at
 * multiples of a block, and nobody wants to see the bytes. */
#include "core/write/reflink.h"

enum {
    BLOCK = 4096,    /* of nearly every file system; one with larger ones says no */
    LEAST = 64 << 10 /* less is copied as fast */
};

/* ---- what can be shared ---- */

/* Whether a part is copied as it is, and nobody wants to see its bytes. */
static bool can_share(const heft_copy_context *c, uint32_t part)
{
    const heft_origin *o = &c->origins[part];
    const heft_ix_part_row *from = heft_ix_part_row_at(&c->in->x, o->part);
    if (heft_planner_digest_of(c->p, part) || c->p->written.digest_count ||
        c->verifier->crcs.digest_count ||
        heft_source_verifier_ordered_checksum(c->verifier, o->part) != HEFT_NONE)
        return false;
    return !o->layout_target && !o->transposed && heft_ix_is_plain(from) &&
           o->dtype == heft_ix_part_row_at(&c->p->x, part)->dtype;
}

/* The blocks of a part, in the target; false: too few, or they lie across those of the source. */
static bool whole_blocks(heft_range *out, uint64_t to, uint64_t from, uint64_t length)
{
    uint64_t skip = (0 - to) & (BLOCK - 1);
    if ((to ^ from) & (BLOCK - 1) || length < LEAST)
        return false;
    *out = (heft_range){ to + skip, (length - skip) & ~(uint64_t)(BLOCK - 1) };
    return true;
}

/* ---- sharing ---- */

/* false: the file system does not do that. */
static bool share(const heft_copy_context *c, uint32_t part, heft_range r)
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
                               uint32_t count, heft_memory *m, heft_vec *shared, heft_error *err)
{
    if (!HEFT_HAS(c->sink->ops, reflink))
        return HEFT_OK;
    for (uint32_t i = 0; i < count && !heft_progress_halted(c->progress); i++) {
        const heft_ix_part_row *to = heft_ix_part_row_at(&c->p->x, file_order[i]);
        uint64_t from = heft_ix_part_row_at(&c->in->x, c->origins[file_order[i]].part)->offset;
        heft_range r;
        if (!can_share(c, file_order[i]) ||
            !whole_blocks(&r, to->offset, heft_global_offset_local(&c->in->x, from), to->stored))
            continue;
        heft_range *kept = heft_vec_push(m, shared, sizeof *kept);
        if (!kept)
            return heft_error_no_memory(err, "to plan the copy");
        *kept = r;
        if (!share(c, file_order[i], r)) {
            shared->len--;
            break;
        }
        heft_progress_add(c->progress, r.length);
    }
    return HEFT_OK;
}
