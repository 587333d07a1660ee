/* carry.c - checksums of the edited file over data that stays.
 *
 * Checksums over data that stays are not made again.  What the file says of a range is joined to what
 * is said of the bytes around it, so that data which is damaged stays known as damaged. */
#include "base/sort.h"
#include "core/edit/edit.h"

enum { STEP = 64 << 10 };

static heft_status no_memory(heft_error *err)
{
    return heft_error_plain(err, HEFT_E_NOMEM, "no memory to carry a checksum over");
}

static bool claim_before(const void *ctx, uint32_t a, uint32_t b)
{
    return heft_ix_claim_at(ctx, a).range[0].offset < heft_ix_claim_at(ctx, b).range[0].offset;
}

heft_status heft_edit_sort_claims(heft_editing *g)
{
    uint32_t n = heft_ix_claims(&g->in->x);
    g->claims = heft_plan_alloc(&g->p.plan, 2 * (size_t)n * sizeof *g->claims);
    if (!g->claims)
        return HEFT_E_NOMEM;
    for (uint32_t i = 0; i < n; i++)
        g->claims[i] = i;
    heft_sort(g->claims, g->claims + n, n, claim_before, &g->in->x);
    return HEFT_OK;
}

/* What the file says of exactly these of its bytes. */
static bool find_claim(const heft_editing *g, const char *algorithm, heft_range r, heft_claim *out)
{
    uint32_t lo = 0, n = heft_ix_claims(&g->in->x), hi = n;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (heft_ix_claim_at(&g->in->x, g->claims[mid]).range[0].offset < r.offset)
            lo = mid + 1;
        else
            hi = mid;
    }
    for (; lo < n; lo++) {
        *out = heft_ix_claim_at(&g->in->x, g->claims[lo]);
        if (out->range[0].offset != r.offset)
            return false;
        bool is_it = out->range[0].length == r.length && !out->range[1].length && !out->zeros &&
                     !out->decoded && !out->or_next;
        if (is_it && heft_str_is(heft_lit(out->algorithm), algorithm))
            return true;
    }
    return false;
}

/* The checksum of a range that a claim covers the end of, from that and from the bytes before the range.  Both
 * algorithms are linear: joined to nothing, the beginning is what it adds to the whole. */
static bool find_tail(const heft_editing *g, const heft_digest *d, heft_range r, uint32_t *out)
{
    enum { MOST = 4096 };
    uint8_t before[MOST];
    uint32_t lo = 0, hi = heft_ix_claims(&g->in->x), begin, none = 0;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (heft_ix_claim_at(&g->in->x, g->claims[mid]).range[0].offset <= r.offset)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (!lo)
        return false;
    heft_claim c = heft_ix_claim_at(&g->in->x, g->claims[lo - 1]);
    uint64_t skip = r.offset - c.range[0].offset;
    bool covers = c.range[0].length >= skip && c.range[0].length - skip == r.length &&
                  !c.range[1].length && !c.zeros && !c.decoded && !c.or_next;
    if (!covers || skip > MOST || !heft_str_is(heft_lit(c.algorithm), d->name) ||
        heft_file_bytes(g->in, c.range[0].offset, before, (size_t)skip, NULL))
        return false;
    d->init(&begin);
    d->update(&begin, before, (size_t)skip);
    d->join(&begin, &none, r.length);
    *out = heft_le32(c.expect) ^ begin;
    return true;
}

static heft_status read_data(heft_editing *g, const heft_digest *d, heft_range r, void *state,
                             heft_error *err)
{
    uint8_t *buf = heft_mem_resize(&g->e->mem, NULL, 0, STEP);
    heft_status st = buf ? HEFT_OK : no_memory(err);
    for (uint64_t done = 0; done < r.length && !st; done += STEP) {
        size_t n = r.length - done < STEP ? (size_t)(r.length - done) : STEP;
        st = heft_file_bytes(g->in, r.offset + done, buf, n, err);
        if (!st)
            d->update(state, buf, n);
    }
    if (buf)
        heft_mem_resize(&g->e->mem, buf, STEP, 0);
    return st;
}

/* The algorithms that are joined have states that are numbers. */
static heft_status carry_data(heft_editing *g, const heft_digest *d, heft_range r, void *state,
                              heft_error *err)
{
    heft_claim c;
    uint32_t said;
    if (find_claim(g, d->name, r, &c))
        said = heft_le32(c.expect);
    else if (!find_tail(g, d, r, &said))
        return read_data(g, d, r, state, err);
    d->join(state, &said, r.length);
    return HEFT_OK;
}

heft_status heft_edit_carry(void *ctx, const heft_digest *d, heft_range r, void *state,
                            heft_error *err)
{
    heft_editing *g = ctx;
    heft_status st = HEFT_OK;
    while (r.length && !st) {
        const heft_edit_piece *p = heft_edit_piece_at(g->e, r.offset);
        if (!p)
            return heft_error_set(err, HEFT_E_ARGUMENT, r.offset, "a checksum passes the end");
        uint64_t skip = r.offset - p->at, left = p->length - skip;
        uint64_t n = left < r.length ? left : r.length;
        if (p->data)
            d->update(state, (const uint8_t *)p->data + skip, (size_t)n);
        else
            st = carry_data(g, d, (heft_range){ p->from + skip, n }, state, err);
        r = (heft_range){ r.offset + n, r.length - n };
    }
    return st;
}
