/* coverage.c - intersects the byte ranges of parts with the byte ranges of checksums.
 *
 * Both lists are sorted and merged into disjoint ranges first, so that the work is
 * O(n log n) and shared bytes count once. */
#include "core/check/coverage.h"

#include "base/sort.h"

typedef struct range_list { /* disjoint and ascending after merge_ranges() */
    heft_range *range;
    uint32_t count, capacity;
} range_list;

static void add_range(range_list *l, uint64_t offset, uint64_t length)
{
    if (length && length <= UINT64_MAX - offset && l->count < l->capacity)
        l->range[l->count++] = (heft_range){ offset, length };
}

static bool is_before(const void *ctx, uint32_t a, uint32_t b)
{
    const heft_range *r = ctx;
    return r[a].offset < r[b].offset;
}

/* Return the total length of the ranges after they are sorted and overlaps are joined.  The sorted
 * ranges go to `to`. */
static uint64_t merge_ranges(range_list *to, const range_list *from, uint32_t *order)
{
    uint64_t total = 0, end = 0;
    heft_sort_numbers(order, from->count, is_before, from->range);
    for (uint32_t i = 0; i < from->count; i++) {
        heft_range r = from->range[order[i]];
        uint64_t start = r.offset > end ? r.offset : end, stop = r.offset + r.length;
        if (stop <= start)
            continue;
        add_range(to, start, stop - start);
        total += stop - start;
        end = stop;
    }
    return total;
}

/* Return the number of bytes that lie in ranges of both lists. */
static uint64_t intersect(const range_list *a, const range_list *b)
{
    uint64_t common = 0;
    for (uint32_t i = 0, k = 0; i < a->count && k < b->count;) {
        heft_range x = a->range[i], y = b->range[k];
        uint64_t x_end = x.offset + x.length, y_end = y.offset + y.length;
        uint64_t from = x.offset > y.offset ? x.offset : y.offset;
        uint64_t to = x_end < y_end ? x_end : y_end;
        common += to > from ? to - from : 0;
        if (x_end <= y_end)
            i++;
        else
            k++;
    }
    return common;
}

static void add_parts(range_list *to, const heft_vec *parts)
{
    const heft_ix_part_row *row = parts->ptr;
    for (size_t i = 0; i < parts->len; i++)
        add_range(to, row[i].offset, row[i].stored);
}

static void add_checksums(range_list *to, const heft_file *f, bool header_only)
{
    for (uint32_t i = 0; i < heft_ix_checksums(&f->x); i++) {
        heft_stored_checksum c = heft_ix_checksum_at(&f->x, i);
        if (header_only && !c.at_open)
            continue;
        for (size_t k = 0; k < HEFT_CHECKSUM_RANGES; k++)
            if (c.range[k].length && heft_file_has_bytes(f, c.range[k].offset) &&
                heft_host_digest(f->host, c.algorithm))
                add_range(to, c.range[k].offset, c.range[k].length);
    }
}

heft_status heft_file_coverage(uint64_t *payload, uint64_t *checked, const heft_file *f,
                               bool header_only, heft_error *err)
{
    heft_memory mem = { f->host->allocator, UINT64_MAX, 0 };
    uint64_t parts = (uint64_t)f->x.parts.len + f->x.model_parts.len;
    uint64_t sums = (uint64_t)HEFT_CHECKSUM_RANGES * heft_ix_checksums(&f->x);
    uint64_t larger = parts > sums ? parts : sums, all = parts + sums + larger;
    uint64_t bytes = 2 * (parts + sums) * sizeof(heft_range) + 2 * larger * sizeof(uint32_t) + 1;
    *payload = *checked = 0;
    if (all > UINT32_MAX / 2 || bytes > SIZE_MAX)
        return heft_error_no_memory(err, "to relate checksums and parts");
    heft_range *block = heft_mem_alloc(&mem, (size_t)bytes);
    if (!block)
        return heft_error_no_memory(err, "to relate checksums and parts");
    uint32_t p = (uint32_t)parts, s = (uint32_t)sums;
    uint32_t *order = (uint32_t *)(block + 2 * (parts + sums));
    range_list raw_parts = { block, 0, p }, raw_sums = { block + p, 0, s };
    range_list of_parts = { block + p + s, 0, p }, of_sums = { block + 2 * p + s, 0, s };
    add_parts(&raw_parts, &f->x.parts);
    add_parts(&raw_parts, &f->x.model_parts);
    add_checksums(&raw_sums, f, header_only);
    *payload = merge_ranges(&of_parts, &raw_parts, order);
    merge_ranges(&of_sums, &raw_sums, order);
    *checked = intersect(&of_parts, &of_sums);
    heft_mem_free(&mem, block, (size_t)bytes);
    return HEFT_OK;
}
