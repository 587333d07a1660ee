/* source_verifier.c - verifies each checksum at one of three times.  Before the copy, by a sweep,
 * if the copy does not read all covered bytes or not in the order that the digest needs; during the
 * copy, by the stream of a part; after the copy, joined from the CRCs of the copied bytes. */
#include "core/check/source_verifier.h"

#include "core/check/decoded_check.h"
#include "core/read/part_check.h"

enum { CHECK_BEFORE_COPY, CHECK_PART_STREAM, CHECK_AFTER_COPY, CHECK_NEVER };

static const char purpose[] = "to check checksums";

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

static uint8_t choose_check_time(heft_source_verifier *v, uint32_t checksum,
                                 heft_part_use_fn part_use, void *ctx)
{
    const heft_host *h = v->f->host;
    uint32_t part = heft_ix_checksum_part(&v->f->x, checksum);
    if (part < v->f->x.parts.len && heft_ix_part_row_at(&v->f->x, part)->length &&
        part_use(ctx, part) == HEFT_PART_UNUSED) /* unused data need no digest */
        return CHECK_NEVER;
    const heft_stored_checksum stored = heft_ix_checksum_at(&v->f->x, checksum), *c = &stored;
    if (c->part == HEFT_NONE) {
        uint32_t file = heft_global_offset_file(&v->f->x, c->range[0].offset);
        if (file && !shard_is_used(&v->f->x, file, part_use, ctx))
            return CHECK_NEVER;
        bool joins = !c->covers_metadata_only && covers_payload(&v->f->x, c) &&
                     heft_partial_crcs_track(&v->crcs, h, c->algorithm);
        return joins ? CHECK_AFTER_COPY : CHECK_BEFORE_COPY;
    }
    const heft_ix_part_row *p = heft_ix_part_row_at(&v->f->x, c->part);
    if (c->part >= v->f->x.parts.len || !p->length)
        return CHECK_BEFORE_COPY;
    heft_part_use use = part_use(ctx, c->part);
    if (use != HEFT_PART_COPIED)
        return use == HEFT_PART_CHECKED_BEFORE ? CHECK_BEFORE_COPY : CHECK_NEVER;
    if (!c->decoded && heft_partial_crcs_track(&v->crcs, h, c->algorithm))
        return CHECK_AFTER_COPY;
    return heft_host_digest(h, c->algorithm) ? CHECK_PART_STREAM : CHECK_NEVER;
}

static bool allocate(heft_source_verifier *v)
{
    v->checksums = heft_ix_checksums(&v->f->x);
    if (!v->checksums)
        return true;
    v->states = heft_mem_alloc(&v->mem, v->checksums * sizeof *v->states);
    v->check_time = heft_mem_alloc(&v->mem, v->checksums);
    return v->states && v->check_time;
}

void heft_source_verifier_free(heft_source_verifier *v)
{
    heft_mem_free(&v->mem, v->states, v->checksums * sizeof *v->states);
    heft_mem_free(&v->mem, v->check_time, v->checksums);
    heft_partial_crcs_free(&v->crcs);
}

/* Fail on the first checksum that mismatches with all alternatives. */
heft_status heft_source_verifier_require(const heft_source_verifier *v, bool advisory,
                                         heft_error *err)
{
    heft_status st = HEFT_OK;
    if (v->is_disabled || !v->checksums)
        return HEFT_OK;
    for (uint32_t i = 0, representative;
         !st && heft_checksums_next(v->f, v->states, &i, &representative);) {
        if (v->states[representative] != HEFT_CHECKSUM_MISMATCH)
            continue;
        heft_stored_checksum c = heft_ix_checksum_at(&v->f->x, representative);
        if (advisory || !c.advisory)
            st = heft_stored_checksum_mismatch(v->f, &c, err);
    }
    return st;
}

heft_status heft_source_verifier_choose(heft_source_verifier *v, const heft_file *f,
                                        bool is_disabled, heft_part_use_fn part_use, void *ctx,
                                        heft_error *err)
{
    *v = (heft_source_verifier){ .f = f,
                                 .mem = { f->host->allocator, UINT64_MAX, 0 },
                                 .is_disabled = is_disabled };
    heft_partial_crcs_init(&v->crcs, f->host);
    if (is_disabled)
        return HEFT_OK;
    if (!allocate(v))
        return heft_error_no_memory(err, purpose);
    for (uint32_t i = 0; i < v->checksums; i++)
        v->check_time[i] = choose_check_time(v, i, part_use, ctx);
    return HEFT_OK;
}

/* Compare the checksums that CHECK_BEFORE_COPY is chosen for. */
static heft_status check_before_copy(heft_source_verifier *v, heft_error *err)
{
    heft_progress progress = { .fn = NULL };
    if (v->is_disabled || !v->checksums)
        return HEFT_OK;
    heft_status st = heft_checksum_sweep(v->states, v->f, v->check_time, &progress, err);
    return st ? st : heft_source_verifier_require(v, false, err);
}

heft_status heft_source_verifier_begin(heft_source_verifier *v, const heft_file *f,
                                       bool is_disabled, heft_part_use_fn part_use, void *ctx,
                                       heft_error *err)
{
    heft_status st = heft_source_verifier_choose(v, f, is_disabled, part_use, ctx, err);
    return st ? st : check_before_copy(v, err);
}

heft_status heft_source_verifier_begin_share(heft_source_verifier *v, const heft_file *f,
                                             bool is_disabled, heft_part_use_fn part_use,
                                             bool (*is_own)(void *ctx, uint32_t part), void *ctx,
                                             heft_error *err)
{
    heft_status st = heft_source_verifier_choose(v, f, is_disabled, part_use, ctx, err);
    for (uint32_t i = 0; !st && i < v->checksums; i++) {
        uint32_t part = heft_ix_checksum_part(&f->x, i);
        part = part < f->x.parts.len ? part : HEFT_NONE;
        if (v->check_time[i] == CHECK_BEFORE_COPY && !is_own(ctx, part))
            v->check_time[i] = CHECK_NEVER;
    }
    return st ? st : check_before_copy(v, err);
}

heft_status heft_source_verifier_compact(heft_source_verifier *v, heft_error *err)
{
    heft_borders borders;
    bool has_memory = true;
    heft_borders_init(&borders, v->f->host);
    for (uint32_t i = 0; i < v->checksums && has_memory; i++) {
        if (v->check_time[i] != CHECK_AFTER_COPY)
            continue;
        heft_stored_checksum c = heft_ix_checksum_at(&v->f->x, i);
        for (int r = 0; r < HEFT_CHECKSUM_RANGES && has_memory; r++)
            has_memory = !c.range[r].length || heft_borders_add(&borders, c.range[r]);
    }
    has_memory = has_memory && heft_borders_sort(&borders);
    if (has_memory)
        heft_partial_crcs_compact(&v->crcs, &borders);
    heft_borders_free(&borders);
    return has_memory ? HEFT_OK : heft_error_no_memory(err, purpose);
}

heft_status heft_check_used(const heft_file *f, heft_part_use_fn part_use, void *ctx,
                            heft_error *err)
{
    heft_source_verifier v;
    heft_status st = heft_source_verifier_choose(&v, f, false, part_use, ctx, err);
    for (uint32_t i = 0; !st && i < v.checksums; i++)
        if (v.check_time[i] != CHECK_NEVER)
            v.check_time[i] = CHECK_BEFORE_COPY;
    if (!st)
        st = check_before_copy(&v, err);
    heft_source_verifier_free(&v);
    return st;
}

uint32_t heft_source_verifier_ordered_checksum(const heft_source_verifier *v, uint32_t part)
{
    uint32_t row = v->is_disabled ? HEFT_NONE : heft_ix_digest_find(&v->f->x, part);
    uint32_t checksum = row == HEFT_NONE ? HEFT_NONE : v->f->x.checksums.len + row;
    return checksum != HEFT_NONE && v->check_time[checksum] == CHECK_PART_STREAM ? checksum
                                                                                 : HEFT_NONE;
}

void heft_source_verifier_compare(heft_source_verifier *v, uint32_t checksum, const uint8_t *digest,
                                  uint32_t bytes)
{
    heft_stored_checksum c = heft_ix_checksum_at(&v->f->x, checksum);
    v->states[checksum] = memcmp(c.expect, digest, bytes) ? HEFT_CHECKSUM_MISMATCH
                                                          : HEFT_CHECKSUM_MATCHES;
}

heft_status heft_source_verifier_add(heft_source_verifier *v, uint64_t offset, const void *data,
                                     size_t len, heft_error *err)
{
    return heft_partial_crcs_add(&v->crcs, offset, data, len, err);
}

heft_status heft_source_verifier_end(heft_source_verifier *v, heft_error *err)
{
    heft_status st = HEFT_OK;
    if (v->is_disabled || !v->checksums)
        return HEFT_OK;
    heft_partial_crcs_sort(&v->crcs);
    for (uint32_t i = 0; i < v->checksums && !st; i++) {
        if (v->check_time[i] != CHECK_AFTER_COPY)
            continue;
        heft_stored_checksum c = heft_ix_checksum_at(&v->f->x, i);
        bool holds;
        st = heft_stored_checksum_join_crcs(&holds, &c, v->f, &v->crcs, err);
        v->states[i] = st ? v->states[i] : holds ? HEFT_CHECKSUM_MATCHES : HEFT_CHECKSUM_MISMATCH;
    }
    return st ? st : heft_source_verifier_require(v, false, err);
}

heft_status heft_source_verifier_check_now(heft_source_verifier *v, heft_error *err)
{
    heft_progress progress = { .fn = NULL };
    if (v->is_disabled || !v->checksums)
        return HEFT_OK;
    heft_status st = heft_checksum_sweep(v->states, v->f, NULL, &progress, err);
    if (!st)
        memset(v->check_time, CHECK_BEFORE_COPY, v->checksums);
    return st;
}

heft_status heft_check_all(const heft_file *f, heft_error *err)
{
    heft_source_verifier v = { .f = f, .mem = { f->host->allocator, UINT64_MAX, 0 } };
    heft_partial_crcs_init(&v.crcs, f->host);
    heft_status st = allocate(&v) ? heft_source_verifier_check_now(&v, err)
                                  : heft_error_no_memory(err, purpose);
    if (!st)
        st = heft_source_verifier_require(&v, false, err);
    heft_source_verifier_free(&v);
    return st ? st : heft_decoded_check_require(f, NULL, NULL, err);
}
