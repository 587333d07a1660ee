/* edit_checksums.c - derive checksums of the edited file over data that stays.
 *
 * These checksums are not computed from the data.  The checksum that the file has for a range is
 * joined with the checksums of the bytes around the range, so that damage in the data remains
 * detectable.  Only a range without a checksum is read, and then every checksum of the file must
 * hold. */
#include "base/bisect.h"
#include "base/sort.h"
#include "core/check/verification.h"
#include "core/edit/edit.h"
#include "core/read/stored_checksum.h"

/* ---- checksums of the file ---- */

static bool starts_before(const void *ctx, uint32_t a, uint32_t b)
{
    return heft_ix_checksum_at(ctx, a).range[0].offset <
           heft_ix_checksum_at(ctx, b).range[0].offset;
}

heft_status heft_edit_sort_checksums(heft_edit_job *g)
{
    uint32_t n = heft_ix_checksums(&g->in->x);
    g->checksums = heft_plan_alloc(&g->p.plan, 2 * (size_t)n * sizeof *g->checksums);
    if (!g->checksums)
        return HEFT_E_NOMEM;
    for (uint32_t i = 0; i < n; i++)
        g->checksums[i] = i;
    heft_sort(g->checksums, g->checksums + n, n, starts_before, &g->in->x);
    return HEFT_OK;
}

/* Count the checksums, sorted by offset, that begin before `end`. */
static uint32_t count_before(const heft_edit_job *g, uint64_t end)
{
    heft_bisect b = { .end = heft_ix_checksums(&g->in->x) };
    while (heft_bisect_next(&b))
        heft_bisect_narrow(&b, heft_ix_checksum_at(&g->in->x, g->checksums[b.mid]).range[0].offset <
                                   end);
    return b.first;
}

/* Return true if the checksum covers a single range of stored bytes and has no alternative
 * interpretation. */
static bool is_simple(const heft_stored_checksum *c, const heft_digest *d)
{
    return !c->range[1].length && !c->zeros && !c->decoded && !c->is_alternative &&
           heft_str_is(heft_lit(c->algorithm), d->name);
}

/* Find a checksum of exactly this range. */
static bool find_exact(const heft_edit_job *g, const heft_digest *d, heft_range r,
                       uint32_t *checksum)
{
    for (uint32_t i = count_before(g, r.offset), n = heft_ix_checksums(&g->in->x); i < n; i++) {
        heft_stored_checksum c = heft_ix_checksum_at(&g->in->x, g->checksums[i]);
        if (c.range[0].offset != r.offset)
            return false;
        *checksum = heft_le32(c.expect);
        if (c.range[0].length == r.length && is_simple(&c, d) && g->checksums[i] != g->checking)
            return true;
    }
    return false;
}

/* Derive the checksum of a range at the end of a longer covered range, from that range's
 * checksum and the bytes before; damage in these bytes makes the derived checksum wrong, too.
 * CRCs are linear: crc(tail) = crc(whole) ^ crc(head followed by as many zero bytes as the tail
 * has). */
static bool derive_tail(const heft_edit_job *g, const heft_digest *d, heft_range r,
                        uint32_t *checksum)
{
    enum { MAX_HEAD = 4096 };
    uint8_t head[MAX_HEAD];
    uint32_t head_crc, none = 0, i = count_before(g, r.offset);
    if (!i || g->checksums[--i] == g->checking)
        return false;
    heft_stored_checksum c = heft_ix_checksum_at(&g->in->x, g->checksums[i]);
    uint64_t skip = r.offset - c.range[0].offset;
    bool covers = c.range[0].length >= skip && c.range[0].length - skip == r.length;
    if (!covers || skip > MAX_HEAD || !is_simple(&c, d) ||
        heft_file_read_stored(g->in, c.range[0].offset, head, (size_t)skip, NULL))
        return false;
    d->init(&head_crc);
    d->update(&head_crc, head, (size_t)skip);
    d->combine(&head_crc, &none, r.length);
    *checksum = heft_le32(c.expect) ^ head_crc;
    if (g->checking == HEFT_NONE)
        g->ledger.ways[g->checksums[i]] = HEFT_LEDGER_NOT; /* damage makes the new one wrong */
    return true;
}

/* ---- derived checksums ---- */

/* Return true for parts whose bytes in the file are replaced: their digests are the new ones. */
static bool is_of_swap(const heft_edit_job *g, uint32_t part)
{
    heft_bisect b = { .end = part < g->in->x.parts.len ? g->swap_count : 0 };
    uint64_t at = b.end ? heft_ix_part_row_at(&g->in->x, part)->offset : 0;
    while (heft_bisect_next(&b))
        heft_bisect_narrow(&b, g->swaps[b.mid].at.offset < at);
    return b.first < b.end && g->swaps[b.first].part == part;
}

heft_status heft_edit_check_all_checksums(heft_edit_job *g, heft_error *err)
{
    if (g->all_checksums_hold)
        return HEFT_OK;
    heft_progress progress = { .fn = NULL };
    for (uint32_t i = 0; i < g->ledger.checksums; i++) {
        bool is_replaced = is_of_swap(g, heft_ix_checksum_part(&g->in->x, i));
        g->ledger.ways[i] = is_replaced ? HEFT_LEDGER_NOT : HEFT_LEDGER_SWEEP;
    }
    heft_status st = heft_checksum_sweep(&g->ledger, &progress, err);
    if (!st)
        st = heft_ledger_require(&g->ledger, true, err);
    g->all_checksums_hold = !st;
    return st;
}

/* The state of an algorithm that can be joined is a 32-bit number. */
heft_status heft_edit_carry_original(heft_edit_job *g, const heft_digest *d, heft_range r,
                                     void *state, heft_error *err)
{
    uint32_t checksum;
    /* The conversion has just written the bytes that replace others. */
    if (!g->adds && heft_global_offset_file(&g->in->x, r.offset))
        return heft_digest_stored(g->in, d, state, r, err);
    if (find_exact(g, d, r, &checksum) || derive_tail(g, d, r, &checksum)) {
        d->combine(state, &checksum, r.length);
        return HEFT_OK;
    }
    HEFT_TRY(heft_edit_check_all_checksums(g, err));
    return heft_digest_stored(g->in, d, state, r, err);
}

heft_status heft_edit_carry(void *ctx, const heft_digest *d, heft_range r, void *state,
                            heft_error *err)
{
    heft_edit_job *g = ctx;
    heft_status st = HEFT_OK;
    while (r.length && !st) {
        const heft_edit_extent *p = heft_edit_extent_at(g->e, r.offset);
        if (!p)
            return heft_error_set(err, HEFT_E_ARGUMENT, r.offset,
                                  "a checksum covers bytes past the end");
        uint64_t skip = r.offset - p->at, left = p->length - skip;
        uint64_t n = left < r.length ? left : r.length;
        if (p->data)
            d->update(state, (const uint8_t *)p->data + skip, (size_t)n);
        else
            st = heft_edit_carry_original(g, d, (heft_range){ p->from + skip, n }, state, err);
        r = (heft_range){ r.offset + n, r.length - n };
    }
    return st;
}
