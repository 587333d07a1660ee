/* edit_replaced.c - check the bytes of the file that the edit replaces instead of copying. After
 * the edit, damage in these bytes could no longer be found.  So each checksum over replaced
 * bytes must hold, or a checksum of the edited file must derive from that checksum; and replaced
 * bytes must follow the rules of the format. */
#include "base/bisect.h"
#include "base/sort.h"
#include "core/check/verification.h"
#include "core/edit/edit.h"
#include "core/read/stored_checksum.h"

/* ---- copied ranges ---- */

static const heft_edit_extent *copy_at(const heft_edit_job *g, uint32_t i)
{
    return (const heft_edit_extent *)g->e->extents.ptr + g->copy_order[i];
}

static bool sorts_by_source(const void *ctx, uint32_t a, uint32_t b)
{
    const heft_edit_extent *extents = ctx;
    return extents[a].from < extents[b].from;
}

static heft_status sort_copies(heft_edit_job *g)
{
    const heft_edit_extent *extents = g->e->extents.ptr;
    uint32_t n = g->e->extents.len;
    g->copy_order = heft_plan_alloc(&g->p.plan, 2 * (size_t)n * sizeof *g->copy_order);
    if (!g->copy_order)
        return HEFT_E_NOMEM;
    for (uint32_t i = 0; i < n; i++)
        if (!extents[i].data)
            g->copy_order[g->copy_count++] = i;
    heft_sort(g->copy_order, g->copy_order + n, g->copy_count, sorts_by_source, extents);
    return HEFT_OK;
}

/* Return how many bytes from the beginning of r on, in the file before the edit, are all copied
 * or all replaced. */
static uint64_t run_length(const heft_edit_job *g, heft_range r, bool *is_copied)
{
    heft_bisect b = { .end = g->copy_count };
    while (heft_bisect_next(&b))
        heft_bisect_narrow(&b, copy_at(g, b.mid)->from + copy_at(g, b.mid)->length <= r.offset);
    const heft_edit_extent *p = b.first < g->copy_count ? copy_at(g, b.first) : NULL;
    *is_copied = p && p->from <= r.offset;
    uint64_t end = !p ? HEFT_NOWHERE : *is_copied ? p->from + p->length : p->from;
    return end - r.offset < r.length ? end - r.offset : r.length;
}

static bool is_copied_whole(void *ctx, heft_range r)
{
    const heft_edit_job *g = ctx;
    bool is_copied = true;
    for (uint64_t n; r.length && is_copied; r.offset += n, r.length -= n)
        n = run_length(g, r, &is_copied);
    return is_copied;
}

/* ---- checksums ---- */

static heft_status digest_original(void *ctx, const heft_digest *d, heft_range r, void *state,
                                   heft_error *err)
{
    heft_edit_job *g = ctx;
    for (uint64_t n; r.length; r.offset += n, r.length -= n) {
        bool is_copied;
        n = run_length(g, r, &is_copied);
        heft_range next = { r.offset, n };
        HEFT_TRY(is_copied ? heft_edit_carry_original(g, d, next, state, err)
                           : heft_digest_stored(g->in, d, state, next, err));
    }
    return HEFT_OK;
}

/* Check a checksum of the file, always a CRC: heft_source_verifier_begin() leaves no checksums
 * of other kinds.  The CRC of copied data is derived from other checksums that cover the data. */
static heft_status check_checksum(heft_edit_job *g, uint32_t checksum)
{
    heft_stored_checksum c = heft_ix_checksum_at(&g->in->x, checksum);
    bool holds;
    g->checking = checksum;
    heft_status st =
        heft_stored_checksum_compute(&holds, &c, heft_host_digest(g->in->host, c.algorithm),
                                     g->e->host->allocator, digest_original, g, g->err);
    g->checking = HEFT_NONE;
    if (st || g->all_checksums_hold || holds)
        return st;
    return heft_edit_check_all_checksums(g, g->err); /* find out which checksum is broken */
}

static heft_status check_checksums(heft_edit_job *g)
{
    const heft_index *x = &g->in->x;
    for (uint32_t i = 0; i < heft_ix_checksums(x) && !g->all_checksums_hold; i++) {
        heft_stored_checksum c = heft_ix_checksum_at(x, i);
        /* Skip appended tensors: the conversion has just computed the checksum. */
        if (heft_global_offset_file(x, c.range[0].offset))
            continue;
        bool needs_check = c.part == HEFT_NONE && g->ledger.ways[i] == HEFT_LEDGER_SHOWN;
        if (needs_check && !(is_copied_whole(g, c.range[0]) && is_copied_whole(g, c.range[1])))
            HEFT_TRY(check_checksum(g, i));
    }
    return HEFT_OK;
}

/* ---- rules of the format ---- */

/* Record a finding in replaced bytes as an error: bytes in place of padding may belong to a
 * tensor with a damaged offset. */
static void record_finding(void *ctx, const heft_finding *found)
{
    heft_edit_job *g = ctx;
    heft_range where = found->where;
    bool is_replaced = where.offset != HEFT_NOWHERE && where.length && !is_copied_whole(g, where);
    if (!g->layout_status && is_replaced && found->severity >= HEFT_WARNING)
        g->layout_status = heft_error_set(g->err, HEFT_E_FORMAT, where.offset,
                                          "%s: %s: an edit would hide this damage", found->rule,
                                          found->text);
}

heft_status heft_edit_check_replaced(heft_edit_job *g)
{
    HEFT_TRY(sort_copies(g));
    HEFT_TRY(check_checksums(g));
    HEFT_TRY(heft_verify_layout(g->original, is_copied_whole, record_finding, g, g->err));
    return g->layout_status;
}
