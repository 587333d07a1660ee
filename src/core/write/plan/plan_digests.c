/* plan_digests.c - checksums that the file will contain: requested while planning, known once
 * the bytes are written. */
#include "core/write/plan/plan.h"

/* ---- digests of ranges and parts ---- */

typedef struct range_digest {
    const char *algorithm;
    heft_range range;
    uint8_t bytes[HEFT_CHECKSUM_BYTES];
    bool known;
} range_digest;

static heft_status join_range(heft_planner *p, const heft_digest *d, heft_range r, uint8_t *out,
                              heft_error *err)
{
    uint32_t state;
    d->init(&state);
    heft_status st = heft_partial_crcs_join(&p->written, d->name, r, &state, p->carry_unwritten,
                                            p->carry_unwritten_ctx, err);
    d->final(out, &state);
    return st;
}

/* Compute the digest once all bytes of the range are written.  Before heft_planner_digests()
 * sorts the known ranges, the bytes must have been written sequentially. */
static heft_status settle_digest(heft_planner *p, range_digest *r, heft_error *err)
{
    heft_status st = r->known ? HEFT_OK
                              : join_range(p, heft_host_digest(p->host, r->algorithm), r->range,
                                           r->bytes, err);
    r->known = !st;
    return st;
}

heft_status heft_plan_digest_range(heft_plan *plan, const char *algorithm, heft_range r,
                                   uint32_t *number)
{
    heft_planner *p = plan->planner;
    range_digest *to = heft_vec_push(&p->x.mem, &p->range_digests, sizeof *to);
    if (!to)
        return heft_error_no_memory(plan->err, "for a checksum");
    if (!heft_partial_crcs_track(&p->written, p->host, algorithm))
        return heft_error_plain(plan->err, HEFT_E_UNSUPPORTED,
                                "this build cannot compute %s of a byte range", algorithm);
    *to = (range_digest){ algorithm, r, { 0 }, false };
    *number = p->range_digests.len - 1;
    return HEFT_OK;
}

heft_status heft_plan_range_digest(const heft_plan *plan, uint32_t number, const uint8_t **out)
{
    heft_planner *p = plan->planner;
    range_digest *r = (range_digest *)p->range_digests.ptr + number;
    *out = r->bytes;
    /* already settled, unless a stream has a plan with preceding digests */
    return settle_digest(p, r, plan->err);
}

const uint8_t *heft_plan_part_digest(const heft_plan *plan, uint32_t part)
{
    return plan->planner->part_digests[part];
}

/* ---- bytes written by a format ---- */

bool heft_plan_can_digest(const heft_plan *plan, const char *algorithm)
{
    return heft_host_digest(plan->planner->host, algorithm);
}

typedef struct digest_output {
    heft_running_digest own;
    heft_out *to;
} digest_output;

static heft_status digest_and_forward(void *ctx, uint64_t at, const void *data, size_t len)
{
    digest_output *g = ctx;
    (void)at;
    heft_running_digest_update(&g->own, data, len);
    heft_out_bytes(g->to, data, len);
    return g->to->st;
}

heft_status heft_plan_emit_digested(const heft_plan *plan, heft_out *o, const char *algorithm,
                                    void (*emit)(const heft_plan *p, heft_out *o),
                                    uint8_t digest[HEFT_CHECKSUM_BYTES])
{
    const heft_host *h = plan->planner->host;
    digest_output g = { .to = o };
    uint8_t buf[4096];
    heft_out own = { .buf = buf, .cap = sizeof buf, .flush = digest_and_forward, .ctx = &g };
    heft_status st = heft_running_digest_begin(&g.own, heft_host_digest(h, algorithm), h->allocator,
                                               "for a digest", plan->err);
    if (!st) {
        emit(plan, &own);
        st = heft_out_flush(&own);
        heft_running_digest_end(&g.own, digest);
    }
    heft_running_digest_close(&g.own);
    return st;
}

/* ---- after the data ---- */

/* Compute the digests of parts that were written in pieces, and of empty parts. */
static heft_status join_parts(heft_planner *p, heft_error *err)
{
    heft_status st = HEFT_OK;
    for (uint32_t i = 0; !p->plan.appended && i < p->plan.order_count && !st; i++) {
        uint32_t part = p->plan.order[i];
        const heft_digest *d = heft_planner_digest_of(p, part);
        const heft_ix_part_row *row = heft_ix_part_row_at(&p->x, part);
        heft_range r = { row->offset, row->stored };
        heft_running_digest none = { .digest = NULL };
        if (d && heft_digest_joins(d)) {
            st = join_range(p, d, r, p->part_digests[part], err);
        } else if (d && !row->stored) {
            st = heft_running_digest_begin(&none, d, p->host->allocator, "for a digest", err);
            heft_running_digest_end(&none, p->part_digests[part]);
            heft_running_digest_close(&none);
        }
    }
    return st;
}

heft_status heft_planner_digests(heft_planner *p, heft_error *err)
{
    range_digest *digests = p->range_digests.ptr;
    heft_partial_crcs_sort(&p->written);
    for (uint32_t i = 0; i < p->range_digests.len; i++)
        HEFT_TRY(settle_digest(p, &digests[i], err));
    return join_parts(p, err);
}

heft_status heft_planner_compact_crcs(heft_planner *p, heft_error *err)
{
    const range_digest *digests = p->range_digests.ptr;
    heft_borders borders;
    bool has_memory = true;
    heft_borders_init(&borders, p->host);
    for (uint32_t i = 0; i < p->range_digests.len && has_memory; i++)
        has_memory = heft_borders_add(&borders, digests[i].range);
    for (uint32_t i = 0; i < p->plan.order_count && has_memory; i++) {
        const heft_digest *d = heft_planner_digest_of(p, p->plan.order[i]);
        const heft_ix_part_row *row = heft_ix_part_row_at(&p->x, p->plan.order[i]);
        if (d && heft_digest_joins(d))
            has_memory = heft_borders_add(&borders, (heft_range){ row->offset, row->stored });
    }
    has_memory = has_memory && heft_borders_sort(&borders);
    if (has_memory)
        heft_partial_crcs_compact(&p->written, &borders);
    heft_borders_free(&borders);
    return has_memory ? HEFT_OK : heft_error_no_memory(err, "for checksums");
}

void heft_planner_digests_free(heft_planner *p)
{
    heft_vec_free(&p->x.mem, &p->range_digests, sizeof(range_digest));
}
