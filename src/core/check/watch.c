/* watch.c - each claim is judged in one of three ways: before the copy, by a sweep, when the copy
 * does not pass all of its bytes or a digest would need them in another order; during the copy, by
 * a tap on one part; after the copy, joined from the pieces that passed by. */
#include "core/check/watch.h"

#include "core/check/contents.h"
#include "core/read/part_check.h"

enum { BEFORE, TAPPED, JOINED, NOT_AT_ALL };

static const char purpose[] = "to check checksums";

static bool touches_payload(const heft_index *x, const heft_claim *c)
{
    if (c->tensor != HEFT_NONE && heft_ix_row(x, c->tensor)->part_count) {
        const heft_ix_part_row *own = heft_ix_part_row_at(x, heft_ix_row(x, c->tensor)->first_part);
        if (own->stored &&
            heft_range_in((heft_range){ own->offset - c->range[0].offset, own->stored },
                          c->range[0].length))
            return true; /* the usual: the tensor's own */
    }
    for (int r = 0; r < HEFT_CLAIM_RANGES; r++)
        for (uint32_t i = 0; c->range[r].length && i < x->parts.len; i++) {
            const heft_ix_part_row *p = heft_ix_part_row_at(x, i);
            if (p->stored && p->offset < c->range[r].offset + c->range[r].length &&
                c->range[r].offset < p->offset + p->stored)
                return true;
        }
    return false;
}

/* Whether anything is copied from the file beside this one that the claim is about. */
static bool is_used(const heft_index *x, uint32_t file, heft_passing_fn passing, void *ctx)
{
    for (uint32_t i = 0; i < x->parts.len; i++)
        if (heft_ix_place_file(x, heft_ix_part_row_at(x, i)->offset) == file && passing(ctx, i))
            return true;
    return !file;
}

static uint8_t way(heft_watch *w, uint32_t claim, heft_passing_fn passing, void *ctx)
{
    const heft_host *h = w->f->host;
    uint32_t part = heft_ix_claim_part(&w->f->x, claim);
    if (part < w->f->x.parts.len && heft_ix_part_row_at(&w->f->x, part)->length &&
        passing(ctx, part) == HEFT_LEFT_OUT) /* then its digest need not be looked at */
        return NOT_AT_ALL;
    const heft_claim at = heft_ix_claim_at(&w->f->x, claim), *c = &at;
    if (c->part == HEFT_NONE) {
        uint32_t file = heft_ix_place_file(&w->f->x, c->range[0].offset);
        if (file && !is_used(&w->f->x, file, passing, ctx))
            return NOT_AT_ALL;
        bool joins = !c->apart && touches_payload(&w->f->x, c) &&
                     heft_segments_want(&w->seen, h, c->algorithm);
        return joins ? JOINED : BEFORE;
    }
    const heft_ix_part_row *p = heft_ix_part_row_at(&w->f->x, c->part);
    if (c->part >= w->f->x.parts.len || !p->length)
        return BEFORE;
    heft_passing p_is = passing(ctx, c->part);
    if (p_is != HEFT_COPIED)
        return p_is == HEFT_TIED ? BEFORE : NOT_AT_ALL;
    if (!c->decoded && heft_segments_want(&w->seen, h, c->algorithm))
        return JOINED;
    return heft_host_digest(h, c->algorithm) ? TAPPED : NOT_AT_ALL;
}

static bool allocate(heft_watch *w)
{
    w->count = heft_ix_claims(&w->f->x);
    if (!w->count)
        return true;
    w->states = heft_mem_alloc(&w->mem, w->count * sizeof *w->states);
    w->later = heft_mem_alloc(&w->mem, w->count);
    return w->states && w->later;
}

void heft_watch_free(heft_watch *w)
{
    heft_mem_free(&w->mem, w->states, w->count * sizeof *w->states);
    heft_mem_free(&w->mem, w->later, w->count);
    heft_segments_free(&w->seen);
}

/* A checksum with several readings is broken when none of them holds. */
heft_status heft_watch_demand(const heft_watch *w, bool advisory, heft_error *err)
{
    heft_status st = HEFT_OK;
    if (w->off || !w->count)
        return HEFT_OK;
    for (uint32_t i = 0, pick; !st && heft_claims_next(w->f, w->states, &i, &pick);) {
        if (w->states[pick] != HEFT_CLAIM_BROKEN)
            continue;
        heft_claim c = heft_ix_claim_at(&w->f->x, pick);
        if (advisory || !c.advisory)
            st = heft_claim_is_broken(&w->f->x, &c, err);
    }
    return st;
}

heft_status heft_watch_begin(heft_watch *w, const heft_file *f, bool off, heft_passing_fn passing,
                             void *ctx, heft_error *err)
{
    heft_meter meter = { .fn = NULL };
    *w = (heft_watch){ .f = f, .mem = { f->host->allocator, UINT64_MAX, 0 }, .off = off };
    heft_segments_init(&w->seen, f->host);
    if (off)
        return HEFT_OK;
    if (!allocate(w))
        return heft_error_no_memory(err, purpose);
    if (!w->count)
        return HEFT_OK;
    for (uint32_t i = 0; i < w->count; i++)
        w->later[i] = way(w, i, passing, ctx);
    heft_status st = heft_sweep(w->states, f, w->later, &meter, err);
    return st ? st : heft_watch_demand(w, false, err);
}

uint32_t heft_watch_tap(const heft_watch *w, uint32_t part)
{
    uint32_t row = w->off ? HEFT_NONE : heft_ix_digest_find(&w->f->x, part);
    uint32_t claim = row == HEFT_NONE ? HEFT_NONE : w->f->x.claims.len + row;
    return claim != HEFT_NONE && w->later[claim] == TAPPED ? claim : HEFT_NONE;
}

void heft_watch_settle(heft_watch *w, uint32_t claim, const uint8_t *digest, uint32_t bytes)
{
    heft_claim c = heft_ix_claim_at(&w->f->x, claim);
    w->states[claim] = memcmp(c.expect, digest, bytes) ? HEFT_CLAIM_BROKEN : HEFT_CLAIM_HOLDS;
}

heft_status heft_watch_seen(heft_watch *w, uint64_t off, const void *data, size_t len,
                            heft_error *err)
{
    return heft_segments_add(&w->seen, off, data, len, err);
}

heft_status heft_watch_end(heft_watch *w, heft_error *err)
{
    heft_status st = HEFT_OK;
    if (w->off || !w->count)
        return HEFT_OK;
    heft_segments_sort(&w->seen);
    for (uint32_t i = 0; i < w->count && !st; i++) {
        if (w->later[i] != JOINED)
            continue;
        heft_claim c = heft_ix_claim_at(&w->f->x, i);
        bool holds;
        st = heft_claim_join_segments(&holds, &c, w->f, &w->seen, err);
        w->states[i] = st ? w->states[i] : holds ? HEFT_CLAIM_HOLDS : HEFT_CLAIM_BROKEN;
    }
    return st ? st : heft_watch_demand(w, false, err);
}

heft_status heft_watch_sweep(heft_watch *w, heft_error *err)
{
    heft_meter meter = { .fn = NULL };
    if (w->off || !w->count)
        return HEFT_OK;
    heft_status st = heft_sweep(w->states, w->f, NULL, &meter, err);
    if (!st)
        memset(w->later, BEFORE, w->count);
    return st;
}

heft_status heft_check_all(const heft_file *f, heft_error *err)
{
    heft_watch w = { .f = f, .mem = { f->host->allocator, UINT64_MAX, 0 } };
    heft_segments_init(&w.seen, f->host);
    heft_status st = allocate(&w) ? heft_watch_sweep(&w, err) : heft_error_no_memory(err, purpose);
    if (!st)
        st = heft_watch_demand(&w, false, err);
    heft_watch_free(&w);
    return st ? st : heft_contents_demand(f, err);
}
