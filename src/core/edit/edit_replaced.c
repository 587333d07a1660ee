/* edit_replaced.c - bytes of the file that are not copied into the edited one: they are made anew, and nobody could tell
 * afterwards whether they were damaged.  So every checksum that covers some of them must hold, or be carried over, and
 * what the format demands of them must be so. */
#include "base/bisect.h"
#include "base/sort.h"
#include "core/check/file_verify.h"
#include "core/edit/edit.h"
#include "core/read/part_check.h"

/* ---- which bytes are copied ----------------------------------------------------------------- */

static const heft_edit_extent *copy_at(const heft_editing *g, uint32_t i)
{
    return (const heft_edit_extent *)g->e->pieces.ptr + g->copied[i];
}

static bool copied_before(const void *ctx, uint32_t a, uint32_t b)
{
    const heft_edit_extent *pieces = ctx;
    return pieces[a].from < pieces[b].from;
}

static heft_status sort_copies(heft_editing *g)
{
    const heft_edit_extent *pieces = g->e->pieces.ptr;
    uint32_t n = g->e->pieces.len;
    g->copied = heft_plan_alloc(&g->p.plan, 2 * (size_t)n * sizeof *g->copied);
    if (!g->copied)
        return HEFT_E_NOMEM;
    for (uint32_t i = 0; i < n; i++)
        if (!pieces[i].data)
            g->copied[g->copies++] = i;
    heft_sort(g->copied, g->copied + n, g->copies, copied_before, pieces);
    return HEFT_OK;
}

/* From the beginning of r on, in the file as it is: how many bytes are copied, or are not. */
static uint64_t stretch(const heft_editing *g, heft_range r, bool *is_copied)
{
    heft_bisect b = { .end = g->copies };
    while (heft_bisect_next(&b))
        heft_bisect_narrow(&b, copy_at(g, b.mid)->from + copy_at(g, b.mid)->length <= r.offset);
    const heft_edit_extent *p = b.first < g->copies ? copy_at(g, b.first) : NULL;
    *is_copied = p && p->from <= r.offset;
    uint64_t end = !p ? HEFT_NOWHERE : *is_copied ? p->from + p->length : p->from;
    return end - r.offset < r.length ? end - r.offset : r.length;
}

static bool is_copied_whole(const heft_editing *g, heft_range r)
{
    bool is_copied = true;
    for (uint64_t n; r.length && is_copied; r.offset += n, r.length -= n)
        n = stretch(g, r, &is_copied);
    return is_copied;
}

/* ---- checksums ------------------------------------------------------------------------------ */

static heft_status add_old(void *ctx, const heft_digest *d, heft_range r, void *state,
                           heft_error *err)
{
    heft_editing *g = ctx;
    heft_status st = HEFT_OK;
    for (uint64_t n; r.length && !st; r.offset += n, r.length -= n) {
        bool is_copied;
        n = stretch(g, r, &is_copied);
        heft_range next = { r.offset, n };
        st = is_copied ? heft_edit_carry_old(g, d, next, state, err)
                       : heft_digest_stored(g->in, d, state, next, err);
    }
    return st;
}

/* Check a checksum of the file, which is a CRC: no other one is left after heft_source_verifier_begin(). The CRC of copied
 * data is derived from other checksums that cover the data. */
static heft_status judge(heft_editing *g, uint32_t claim)
{
    heft_stored_checksum c = heft_ix_checksum_at(&g->in->x, claim);
    bool holds;
    g->judged = claim;
    heft_status st = heft_stored_checksum_join(
        &holds, &c, heft_host_digest(g->in->host, c.algorithm), add_old, g, g->err);
    g->judged = HEFT_NONE;
    if (st || g->is_swept || holds)
        return st;
    return heft_edit_sweep(g, g->err); /* which of them is broken */
}

static heft_status check_claims(heft_editing *g)
{
    const heft_index *x = &g->in->x;
    heft_status st = HEFT_OK;
    for (uint32_t i = 0; i < heft_ix_checksums(x) && !st && !g->is_swept; i++) {
        heft_stored_checksum c = heft_ix_checksum_at(x, i);
        if (heft_global_offset_file(x, c.range[0].offset))
            continue; /* of what is added: it was made by this library */
        bool is_open = c.part == HEFT_NONE && heft_source_verifier_is_pending(&g->verifier, i) &&
                       !g->is_carried[i];
        if (is_open && !(is_copied_whole(g, c.range[0]) && is_copied_whole(g, c.range[1])))
            st = judge(g, i);
    }
    return st;
}

/* ---- what the format demands ---------------------------------------------------------------- */

static bool passes(void *ctx, heft_range where)
{
    return is_copied_whole(ctx, where);
}

/* Bytes that are lost where padding should be may be those of a tensor whose place is damaged. */
static void refuse(void *ctx, const heft_finding *found)
{
    heft_editing *g = ctx;
    heft_range where = found->where;
    bool is_lost = where.offset != HEFT_NOWHERE && where.length && !is_copied_whole(g, where);
    if (!g->refused && is_lost && found->severity >= HEFT_WARNING)
        g->refused = heft_error_set(g->err, HEFT_E_FORMAT, where.offset,
                                    "%s: %s: an edit would hide that", found->rule, found->text);
}

heft_status heft_edit_check_replaced(heft_editing *g)
{
    heft_status st = sort_copies(g);
    if (!st)
        st = check_claims(g);
    if (!st)
        st = heft_verify_layout(g->plain, passes, refuse, g, g->err);
    return st ? st : g->refused;
}
