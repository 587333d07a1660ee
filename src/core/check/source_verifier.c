/* source_verifier.c - each claim is judged in one of three ways: before the copy, by a sweep, when the copy
 * does not pass all of its bytes or a digest would need them in another order; during the copy, by
 * a tap on one part; after the copy, joined from the pieces that passed by. */
#include "core/check/source_verifier.h"

#include "core/check/decoded_check.h"
#include "core/read/part_check.h"

enum { BEFORE, TAPPED, JOINED, NOT_AT_ALL };

static const char purpose[] = "to check checksums";

static bool touches_payload(const heft_index *x, const heft_stored_checksum *c)
{
    if (c->tensor != HEFT_NONE && heft_ix_row(x, c->tensor)->part_count) {
        const heft_ix_part_row *own = heft_ix_part_row_at(x, heft_ix_row(x, c->tensor)->first_part);
        if (own->stored &&
            heft_range_in((heft_range){ own->offset - c->range[0].offset, own->stored },
                          c->range[0].length))
            return true; /* the usual: the tensor's own */
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

/* Whether anything is copied from the file beside this one that the claim is about. */
static bool is_used(const heft_index *x, uint32_t file, heft_part_use_fn passing, void *ctx)
{
    for (uint32_t i = 0; i < x->parts.len; i++)
        if (heft_global_offset_file(x, heft_ix_part_row_at(x, i)->offset) == file &&
            passing(ctx, i))
            return true;
    return !file;
}

static uint8_t way(heft_source_verifier *w, uint32_t claim, heft_part_use_fn passing, void *ctx)
{
    const heft_host *h = w->f->host;
    uint32_t part = heft_ix_checksum_part(&w->f->x, claim);
    if (part < w->f->x.parts.len && heft_ix_part_row_at(&w->f->x, part)->length &&
        passing(ctx, part) == HEFT_PART_UNUSED) /* then its digest need not be looked at */
        return NOT_AT_ALL;
    const heft_stored_checksum at = heft_ix_checksum_at(&w->f->x, claim), *c = &at;
    if (c->part == HEFT_NONE) {
        uint32_t file = heft_global_offset_file(&w->f->x, c->range[0].offset);
        if (file && !is_used(&w->f->x, file, passing, ctx))
            return NOT_AT_ALL;
        bool joins = !c->covers_metadata_only && touches_payload(&w->f->x, c) &&
                     heft_partial_crcs_track(&w->seen, h, c->algorithm);
        return joins ? JOINED : BEFORE;
    }
    const heft_ix_part_row *p = heft_ix_part_row_at(&w->f->x, c->part);
    if (c->part >= w->f->x.parts.len || !p->length)
        return BEFORE;
    heft_part_use p_is = passing(ctx, c->part);
    if (p_is != HEFT_PART_COPIED)
        return p_is == HEFT_PART_CHECKED_BEFORE ? BEFORE : NOT_AT_ALL;
    if (!c->decoded && heft_partial_crcs_track(&w->seen, h, c->algorithm))
        return JOINED;
    return heft_host_digest(h, c->algorithm) ? TAPPED : NOT_AT_ALL;
}

static bool allocate(heft_source_verifier *w)
{
    w->count = heft_ix_checksums(&w->f->x);
    if (!w->count)
        return true;
    w->states = heft_mem_alloc(&w->mem, w->count * sizeof *w->states);
    w->later = heft_mem_alloc(&w->mem, w->count);
    return w->states && w->later;
}

void heft_source_verifier_free(heft_source_verifier *w)
{
    heft_mem_free(&w->mem, w->states, w->count * sizeof *w->states);
    heft_mem_free(&w->mem, w->later, w->count);
    heft_partial_crcs_free(&w->seen);
}

/* A checksum with several readings is broken when none of them holds. */
heft_status heft_source_verifier_require(const heft_source_verifier *w, bool advisory,
                                         heft_error *err)
{
    heft_status st = HEFT_OK;
    if (w->off || !w->count)
        return HEFT_OK;
    for (uint32_t i = 0, pick; !st && heft_checksums_next(w->f, w->states, &i, &pick);) {
        if (w->states[pick] != HEFT_CHECKSUM_MISMATCH)
            continue;
        heft_stored_checksum c = heft_ix_checksum_at(&w->f->x, pick);
        if (advisory || !c.advisory)
            st = heft_stored_checksum_mismatch(&w->f->x, &c, err);
    }
    return st;
}

heft_status heft_source_verifier_begin(heft_source_verifier *w, const heft_file *f, bool off,
                                       heft_part_use_fn passing, void *ctx, heft_error *err)
{
    heft_progress meter = { .fn = NULL };
    *w = (heft_source_verifier){ .f = f, .mem = { f->host->allocator, UINT64_MAX, 0 }, .off = off };
    heft_partial_crcs_init(&w->seen, f->host);
    if (off)
        return HEFT_OK;
    if (!allocate(w))
        return heft_error_no_memory(err, purpose);
    if (!w->count)
        return HEFT_OK;
    for (uint32_t i = 0; i < w->count; i++)
        w->later[i] = way(w, i, passing, ctx);
    heft_status st = heft_checksum_sweep(w->states, f, w->later, &meter, err);
    return st ? st : heft_source_verifier_require(w, false, err);
}

uint32_t heft_source_verifier_ordered(const heft_source_verifier *w, uint32_t part)
{
    uint32_t row = w->off ? HEFT_NONE : heft_ix_digest_find(&w->f->x, part);
    uint32_t claim = row == HEFT_NONE ? HEFT_NONE : w->f->x.checksums.len + row;
    return claim != HEFT_NONE && w->later[claim] == TAPPED ? claim : HEFT_NONE;
}

void heft_source_verifier_compare(heft_source_verifier *w, uint32_t claim, const uint8_t *digest,
                                  uint32_t bytes)
{
    heft_stored_checksum c = heft_ix_checksum_at(&w->f->x, claim);
    w->states[claim] = memcmp(c.expect, digest, bytes) ? HEFT_CHECKSUM_MISMATCH
                                                       : HEFT_CHECKSUM_MATCHES;
}

heft_status heft_source_verifier_add(heft_source_verifier *w, uint64_t off, const void *data,
                                     size_t len, heft_error *err)
{
    return heft_partial_crcs_add(&w->seen, off, data, len, err);
}

heft_status heft_source_verifier_end(heft_source_verifier *w, heft_error *err)
{
    heft_status st = HEFT_OK;
    if (w->off || !w->count)
        return HEFT_OK;
    heft_partial_crcs_sort(&w->seen);
    for (uint32_t i = 0; i < w->count && !st; i++) {
        if (w->later[i] != JOINED)
            continue;
        heft_stored_checksum c = heft_ix_checksum_at(&w->f->x, i);
        bool holds;
        st = heft_stored_checksum_join_crcs(&holds, &c, w->f, &w->seen, err);
        w->states[i] = st ? w->states[i] : holds ? HEFT_CHECKSUM_MATCHES : HEFT_CHECKSUM_MISMATCH;
    }
    return st ? st : heft_source_verifier_require(w, false, err);
}

heft_status heft_source_verifier_check_now(heft_source_verifier *w, heft_error *err)
{
    heft_progress meter = { .fn = NULL };
    if (w->off || !w->count)
        return HEFT_OK;
    heft_status st = heft_checksum_sweep(w->states, w->f, NULL, &meter, err);
    if (!st)
        memset(w->later, BEFORE, w->count);
    return st;
}

heft_status heft_check_all(const heft_file *f, heft_error *err)
{
    heft_source_verifier w = { .f = f, .mem = { f->host->allocator, UINT64_MAX, 0 } };
    heft_partial_crcs_init(&w.seen, f->host);
    heft_status st = allocate(&w) ? heft_source_verifier_check_now(&w, err)
                                  : heft_error_no_memory(err, purpose);
    if (!st)
        st = heft_source_verifier_require(&w, false, err);
    heft_source_verifier_free(&w);
    return st ? st : heft_decoded_check_require(f, err);
}
