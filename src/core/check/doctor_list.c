/* doctor_list.c - the lists of a diagnosis: rows of text, and lost tensors. */
#include <stdarg.h>

#include "base/bisect.h"
#include "base/error.h"
#include "base/sort.h"
#include "core/check/diagnosis.h"

const char *heft_doctor_copy(heft_doctor *d, const char *text)
{
    const heft_str end = { "", 1 }, nothing = { "", 0 }; /* a NUL ends the copy */
    return heft_arena_join(&d->arena, heft_lit(text), end, nothing).ptr;
}

void heft_doctor_add(heft_doctor *d, heft_doctor_row row, const char *fmt, ...)
{
    heft_error text;
    va_list ap;
    d->faults += row.severity == HEFT_FAULT;
    d->warnings += row.severity == HEFT_WARNING;
    if (d->rows.len >= HEFT_DOCTOR_ROWS)
        return;
    va_start(ap, fmt);
    heft_error_set_list(&text, HEFT_E_FORMAT, HEFT_NOWHERE, fmt, &ap);
    va_end(ap);
    row.text = heft_doctor_copy(d, text.message);
    d->is_out_of_memory = d->is_out_of_memory || !row.text || !row.kind ||
                          !heft_vec_add(&d->mem, &d->rows, &row, sizeof row);
}

heft_status heft_doctor_lose(heft_doctor *d, uint32_t tensor, heft_error *err)
{
    uint32_t n = heft_ix_tensors(&d->file->x);
    if (!d->lost) {
        d->lost = heft_mem_alloc(&d->mem, n);
        if (!d->lost)
            return heft_error_no_memory(err, "for the list of lost tensors");
        memset(d->lost, 0, n);
    }
    d->lost_count += !d->lost[tensor];
    d->lost[tensor] = 1;
    return HEFT_OK;
}

heft_status heft_doctor_lose_if(heft_doctor *d,
                                bool (*is_lost)(heft_doctor *d, const heft_ix_part_row *p,
                                                uint64_t at),
                                uint64_t at, heft_error *err)
{
    const heft_index *x = &d->file->x;
    for (uint32_t t = 0; t < heft_ix_tensors(x); t++) {
        const heft_ix_tensor_row *row = heft_ix_row(x, t);
        bool has_lost = false;
        for (uint32_t i = 0; i < row->part_count; i++)
            has_lost |= is_lost(d, heft_ix_part_row_at(x, row->first_part + i), at);
        if (has_lost)
            HEFT_TRY(heft_doctor_lose(d, t, err));
    }
    return HEFT_OK;
}

bool heft_doctor_is_lost(const heft_doctor *d, uint32_t tensor)
{
    return d->lost && d->lost[tensor];
}

static bool begins_before(const void *ctx, uint32_t a, uint32_t b)
{
    const heft_range *ranges = ctx;
    return ranges[a].offset < ranges[b].offset;
}

/* Sort the damaged ranges, and extend each to the furthest end so far. */
static bool sort_ranges(heft_doctor *d)
{
    uint32_t n = d->lost_ranges.len;
    size_t bytes = n * (2 * sizeof(uint32_t) + sizeof(heft_range));
    heft_range *ranges = d->lost_ranges.ptr, *sorted = heft_mem_alloc(&d->mem, bytes);
    uint64_t furthest = 0;
    if (!sorted)
        return false;
    uint32_t *ids = (uint32_t *)(sorted + n);
    heft_sort_numbers(ids, n, begins_before, ranges);
    for (uint32_t i = 0; i < n; i++) {
        heft_range r = ranges[ids[i]];
        furthest = r.offset + r.length > furthest ? r.offset + r.length : furthest;
        sorted[i] = (heft_range){ r.offset, furthest - r.offset };
    }
    memcpy(ranges, sorted, n * sizeof *ranges);
    heft_mem_free(&d->mem, sorted, bytes);
    return true;
}

/* Return true if the part has a byte in a damaged range: in the last range that begins before the
 * end of the part, or an earlier range with the same end. */
static bool is_hit(heft_doctor *d, const heft_ix_part_row *p, uint64_t at)
{
    (void)at;
    const heft_range *ranges = d->lost_ranges.ptr;
    heft_bisect b = { .end = d->lost_ranges.len };
    while (heft_bisect_next(&b))
        heft_bisect_narrow(&b, ranges[b.mid].offset < p->offset + p->stored);
    const heft_range *last = b.first ? &ranges[b.first - 1] : NULL;
    return p->stored && last && last->offset + last->length > p->offset;
}

heft_status heft_doctor_lose_ranges(heft_doctor *d, heft_error *err)
{
    if (!d->lost_ranges.len)
        return HEFT_OK;
    return sort_ranges(d) ? heft_doctor_lose_if(d, is_hit, 0, err)
                          : heft_error_no_memory(err, "for the damaged ranges");
}
