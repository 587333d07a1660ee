/* edit_checksums.c - checksums of the edited file over data that stays.
 *
 * Such a checksum is not made from the data.  What the file says of a range is joined to what is said of the bytes
 * around it, so that damaged data stay known as damaged.  Only a range of which the file says nothing is read, and
 * every checksum that the file has must hold before. */
#include "base/bisect.h"
#include "base/sort.h"
#include "core/edit/edit.h"
#include "core/read/part_check.h"

/* ---- what the file says -------------------------------------------------------------------- */

static bool claim_before(const void *ctx, uint32_t a, uint32_t b)
{
    return heft_ix_checksum_at(ctx, a).range[0].offset <
           heft_ix_checksum_at(ctx, b).range[0].offset;
}

heft_status heft_edit_sort_checksums(heft_editing *g)
{
    uint32_t n = heft_ix_checksums(&g->in->x);
    g->checksums = heft_plan_alloc(&g->p.plan, 2 * (size_t)n * sizeof *g->checksums);
    g->is_carried = heft_plan_alloc(&g->p.plan, n);
    if (!g->checksums || !g->is_carried)
        return HEFT_E_NOMEM;
    for (uint32_t i = 0; i < n; i++)
        g->checksums[i] = i;
    heft_sort(g->checksums, g->checksums + n, n, claim_before, &g->in->x);
    return HEFT_OK;
}

/* How many claims, in the order of their places, begin before `end`. */
static uint32_t claims_before(const heft_editing *g, uint64_t end)
{
    heft_bisect b = { .end = heft_ix_checksums(&g->in->x) };
    while (heft_bisect_next(&b))
        heft_bisect_narrow(&b, heft_ix_checksum_at(&g->in->x, g->checksums[b.mid]).range[0].offset <
                                   end);
    return b.first;
}

/* Whether the claim covers one range of the file, and nothing else could be meant. */
static bool is_simple(const heft_stored_checksum *c, const heft_digest *d)
{
    return !c->range[1].length && !c->zeros && !c->decoded && !c->is_alternative &&
           heft_str_is(heft_lit(c->algorithm), d->name);
}

/* What the file says of exactly these of its bytes. */
static bool find_claim(const heft_editing *g, const heft_digest *d, heft_range r, uint32_t *said)
{
    for (uint32_t i = claims_before(g, r.offset), n = heft_ix_checksums(&g->in->x); i < n; i++) {
        heft_stored_checksum c = heft_ix_checksum_at(&g->in->x, g->checksums[i]);
        if (c.range[0].offset != r.offset)
            return false;
        *said = heft_le32(c.expect);
        if (c.range[0].length == r.length && is_simple(&c, d) && g->checksums[i] != g->judged)
            return true;
    }
    return false;
}

/* The checksum of a range that a claim covers the end of, from that and from the bytes before the range: should those be
 * damaged, the checksum is wrong as well.  The algorithms are linear: joined to nothing, the beginning is what it adds
 * to the whole. */
static bool find_tail(const heft_editing *g, const heft_digest *d, heft_range r, uint32_t *said)
{
    enum { MOST = 4096 };
    uint8_t before[MOST];
    uint32_t begin, none = 0, i = claims_before(g, r.offset);
    if (!i || g->checksums[--i] == g->judged)
        return false;
    heft_stored_checksum c = heft_ix_checksum_at(&g->in->x, g->checksums[i]);
    uint64_t skip = r.offset - c.range[0].offset;
    bool covers = c.range[0].length >= skip && c.range[0].length - skip == r.length;
    if (!covers || skip > MOST || !is_simple(&c, d) ||
        heft_file_read_stored(g->in, c.range[0].offset, before, (size_t)skip, NULL))
        return false;
    d->init(&begin);
    d->update(&begin, before, (size_t)skip);
    d->join(&begin, &none, r.length);
    *said = heft_le32(c.expect) ^ begin;
    if (g->judged == HEFT_NONE)
        g->is_carried[g->checksums[i]] = true;
    return true;
}

/* ---- carrying over -------------------------------------------------------------------------- */

heft_status heft_edit_sweep(heft_editing *g, heft_error *err)
{
    if (g->is_swept)
        return HEFT_OK;
    heft_status st = heft_source_verifier_check_now(&g->verifier, err);
    if (!st)
        st = heft_source_verifier_require(&g->verifier, true, err);
    g->is_swept = !st;
    return st;
}

/* The algorithms that are joined have states that are numbers. */
heft_status heft_edit_carry_old(heft_editing *g, const heft_digest *d, heft_range r, void *state,
                                heft_error *err)
{
    uint32_t said;
    if (find_claim(g, d, r, &said) || find_tail(g, d, r, &said)) {
        d->join(state, &said, r.length);
        return HEFT_OK;
    }
    heft_status st = heft_edit_sweep(g, err);
    return st ? st : heft_digest_stored(g->in, d, state, r, err);
}

heft_status heft_edit_carry(void *ctx, const heft_digest *d, heft_range r, void *state,
                            heft_error *err)
{
    heft_editing *g = ctx;
    heft_status st = HEFT_OK;
    while (r.length && !st) {
        const heft_edit_extent *p = heft_edit_extent_at(g->e, r.offset);
        if (!p)
            return heft_error_set(err, HEFT_E_ARGUMENT, r.offset, "a checksum passes the end");
        uint64_t skip = r.offset - p->at, left = p->length - skip;
        uint64_t n = left < r.length ? left : r.length;
        if (p->data)
            d->update(state, (const uint8_t *)p->data + skip, (size_t)n);
        else
            st = heft_edit_carry_old(g, d, (heft_range){ p->from + skip, n }, state, err);
        r = (heft_range){ r.offset + n, r.length - n };
    }
    return st;
}
