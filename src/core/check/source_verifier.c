/* source_verifier.c - verifies each checksum at one of three times.  Before the copy, by a sweep,
 * if the copy does not read all covered bytes or not in the order that the digest needs; during the
 * copy, by the stream of a part; after the copy, joined from the CRCs of the copied bytes. */
#include "core/check/source_verifier.h"

#include "core/check/verification.h"
#include "core/read/stored_checksum.h"

static bool covers_payload(const heft_index *x, const heft_stored_checksum *c)
{
    if (c->tensor != HEFT_NONE && heft_ix_row(x, c->tensor)->part_count) {
        const heft_ix_part_row *own = heft_ix_part_row_at(x, heft_ix_row(x, c->tensor)->first_part);
        if (own->stored &&
            heft_range_in((heft_range){ own->offset - c->range[0].offset, own->stored },
                          c->range[0].length))
            return true; /* the common case: the tensor's own data */
    }
    for (int r = 0; r < HEFT_CHECKSUM_RANGES; r++)
        for (uint32_t i = 0; c->range[r].length && i < x->parts.len; i++) {
            const heft_ix_part_row *p = heft_ix_part_row_at(x, i);
            if (p->stored && p->offset < c->range[r].offset + c->range[r].length &&
                c->range[r].offset < p->offset + p->stored)
                return true;
        }
    return false;
}

/* Return true if a part of the given shard is used; file 0 is always used. */
static bool shard_is_used(const heft_index *x, uint32_t file, heft_part_use_fn part_use, void *ctx)
{
    for (uint32_t i = 0; i < x->parts.len; i++)
        if (heft_global_offset_file(x, heft_ix_part_row_at(x, i)->offset) == file &&
            part_use(ctx, i))
            return true;
    return !file;
}

static heft_ledger_way choose(heft_ledger *l, uint32_t checksum, heft_part_use_fn part_use,
                              void *ctx)
{
    const heft_index *x = &l->f->x;
    uint32_t part = heft_ix_checksum_part(x, checksum);
    if (part < x->parts.len && heft_ix_part_row_at(x, part)->length &&
        part_use(ctx, part) == HEFT_PART_UNUSED) /* unused data need no digest */
        return HEFT_LEDGER_NOT;
    const heft_stored_checksum stored = heft_ix_checksum_at(x, checksum), *c = &stored;
    if (c->part == HEFT_NONE) {
        uint32_t file = heft_global_offset_file(x, c->range[0].offset);
        if (file && !shard_is_used(x, file, part_use, ctx))
            return HEFT_LEDGER_NOT;
        bool joins = !c->covers_metadata_only && covers_payload(x, c) &&
                     heft_ledger_join(l, checksum);
        return joins ? HEFT_LEDGER_SHOWN : HEFT_LEDGER_SWEEP;
    }
    const heft_ix_part_row *p = heft_ix_part_row_at(x, c->part);
    if (c->part >= x->parts.len || !p->length)
        return HEFT_LEDGER_SWEEP;
    heft_part_use use = part_use(ctx, c->part);
    if (use != HEFT_PART_COPIED)
        return use == HEFT_PART_CHECKED_BEFORE ? HEFT_LEDGER_SWEEP : HEFT_LEDGER_NOT;
    if (!c->decoded && heft_ledger_join(l, checksum))
        return HEFT_LEDGER_SHOWN;
    return heft_host_digest(l->f->host, c->algorithm) ? HEFT_LEDGER_IN_ORDER : HEFT_LEDGER_NOT;
}

heft_status heft_source_verifier_choose(heft_ledger *l, const heft_file *f, bool is_disabled,
                                        heft_part_use_fn part_use, void *ctx, heft_error *err)
{
    HEFT_TRY(heft_ledger_open(l, f, is_disabled, err));
    for (uint32_t i = 0; i < l->checksums; i++)
        l->ways[i] = (uint8_t)choose(l, i, part_use, ctx);
    return HEFT_OK;
}

/* ---- boxes of assembled parts ---- */

typedef struct box_choice {
    heft_part_use_fn part_use;
    bool (*is_own)(void *ctx, uint32_t part); /* NULL: no other share checks */
    void *ctx;
} box_choice;

static bool is_checked(void *ctx, uint32_t part)
{
    const box_choice *c = ctx;
    return c->part_use(c->ctx, part) != HEFT_PART_UNUSED && (!c->is_own || c->is_own(c->ctx, part));
}

/* Compare the checksums of the boxes before the copy, which gathers boxes out of order. */
static heft_status choose_boxes(heft_ledger *l, box_choice *c, heft_error *err)
{
    return heft_box_checksums_choose(l->f, l->ways, HEFT_LEDGER_SWEEP, is_checked, c, err);
}

/* ---- before, during and after the copy ---- */

static heft_status check_before_copy(heft_ledger *l, heft_error *err)
{
    heft_progress progress = { .fn = NULL };
    HEFT_TRY(heft_checksum_sweep(l, &progress, err));
    return heft_ledger_require(l, false, err);
}

heft_status heft_source_verifier_begin(heft_ledger *l, const heft_file *f, bool is_disabled,
                                       heft_part_use_fn part_use, void *ctx, heft_error *err)
{
    box_choice boxes = { part_use, NULL, ctx };
    HEFT_TRY(heft_source_verifier_choose(l, f, is_disabled, part_use, ctx, err));
    if (!is_disabled)
        HEFT_TRY(choose_boxes(l, &boxes, err));
    return check_before_copy(l, err);
}

heft_status heft_source_verifier_begin_share(heft_ledger *l, const heft_file *f, bool is_disabled,
                                             heft_part_use_fn part_use,
                                             bool (*is_own)(void *ctx, uint32_t part), void *ctx,
                                             heft_error *err)
{
    box_choice boxes = { part_use, is_own, ctx };
    HEFT_TRY(heft_source_verifier_choose(l, f, is_disabled, part_use, ctx, err));
    for (uint32_t i = 0; i < l->checksums; i++) {
        uint32_t part = heft_ix_checksum_part(&f->x, i);
        part = part < f->x.parts.len ? part : HEFT_NONE;
        if (l->ways[i] == HEFT_LEDGER_SWEEP && !is_own(ctx, part))
            l->ways[i] = HEFT_LEDGER_NOT;
    }
    if (!is_disabled)
        HEFT_TRY(choose_boxes(l, &boxes, err));
    return check_before_copy(l, err);
}

heft_status heft_source_verifier_end(heft_ledger *l, heft_error *err)
{
    HEFT_TRY(heft_ledger_settle(l, err));
    return heft_ledger_require(l, false, err);
}

heft_status heft_source_verifier_check_now(heft_ledger *l, heft_error *err)
{
    heft_progress progress = { .fn = NULL };
    for (uint32_t i = 0; i < l->checksums; i++)
        l->ways[i] = HEFT_LEDGER_SWEEP;
    return heft_checksum_sweep(l, &progress, err);
}

heft_status heft_check_used(const heft_file *f, heft_part_use_fn part_use, void *ctx,
                            heft_error *err)
{
    heft_ledger l;
    box_choice boxes = { part_use, NULL, ctx };
    heft_status st = heft_source_verifier_choose(&l, f, false, part_use, ctx, err);
    if (!st)
        st = choose_boxes(&l, &boxes, err);
    for (uint32_t i = 0; !st && i < l.checksums; i++)
        if (l.ways[i] != HEFT_LEDGER_NOT)
            l.ways[i] = HEFT_LEDGER_SWEEP;
    if (!st)
        st = check_before_copy(&l, err);
    heft_ledger_free(&l);
    return st;
}

heft_status heft_check_all(const heft_file *f, heft_error *err)
{
    heft_ledger l;
    heft_status st = heft_ledger_open(&l, f, false, err);
    if (!st)
        st = heft_box_checksums_choose(f, l.ways, HEFT_LEDGER_SWEEP, NULL, NULL, err);
    if (!st)
        st = heft_source_verifier_check_now(&l, err);
    if (!st)
        st = heft_ledger_require(&l, false, err);
    heft_ledger_free(&l);
    return st ? st : heft_decoded_check_require(f, NULL, NULL, err);
}
