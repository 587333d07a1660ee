/* quality_results.c - the object that measures what is quantised, and its results. */
#include <heft/heft_ext.h>
#include <heft/quantise.h>

#include "base/error.h"
#include "model/quality.h"

enum { ALIGN = 64 };

heft_status heft_quality_open(heft_quality **out, const heft_host *host, heft_error *err)
{
    heft_error own;
    const heft_allocator *al = (host ? host : heft_host_default())->allocator;
    heft_quality *q = heft_alloc(al, sizeof *q, ALIGN);
    *out = q;
    if (!q)
        return heft_error_no_memory(heft_error_begin(err, &own), "to measure the quality");
    *q = (heft_quality){ .mem = { al, UINT64_MAX, 0 } };
    q->arena.mem = &q->mem;
    return HEFT_OK;
}

void heft_quality_close(heft_quality *q)
{
    if (!q)
        return;
    heft_vec_free(&q->mem, &q->records, sizeof(heft_quality_record));
    heft_arena_free(&q->arena);
    heft_free(q->mem.al, q, sizeof *q, ALIGN);
}

static const heft_quality_record *record_at(const heft_quality *q, uint32_t i)
{
    return (const heft_quality_record *)q->records.ptr + i;
}

static heft_quality_item item_of(const heft_quality_record *r)
{
    return (heft_quality_item){ .name = r->name,
                                .from = r->from,
                                .type = r->type,
                                .elements = r->sums.pairs,
                                .finite = r->sums.finite,
                                .differing = r->sums.differing,
                                .max_abs = r->sums.max_abs,
                                .sum_squares = heft_exact_sum_value(&r->sums.squared),
                                .squares_source = heft_exact_sum_value(&r->sums.source),
                                .squares_written = heft_exact_sum_value(&r->sums.written),
                                .products = heft_exact_sum_value(&r->sums.products) };
}

uint32_t heft_quality_count(const heft_quality *q)
{
    return q->records.len;
}

heft_quality_item heft_quality_at(const heft_quality *q, uint32_t i)
{
    return i < q->records.len ? item_of(record_at(q, i)) : (heft_quality_item){ .type = NULL };
}

heft_quality_item heft_quality_total(const heft_quality *q)
{
    heft_quality_record total = { .type = NULL };
    for (uint32_t i = 0; i < q->records.len; i++)
        heft_pairs_join(&total.sums, &record_at(q, i)->sums);
    return item_of(&total);
}
