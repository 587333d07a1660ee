/* delta_load.c - brings the changes of a tensor into memory: positions by block, and values. */
#include "base/checked_math.h"
#include "base/error.h"
#include "core/read/stream.h"
#include "delta/delta_foreign.h"
#include "delta/delta_open.h"
#include "delta/delta_pair.h"
#include "delta/delta_scan.h"

static const char purpose[] = "for the changes of a tensor";

/* Read a part of the delta and compare its digest. */
static heft_status read_part(void *to, const heft_delta *d, uint32_t part, heft_error *err)
{
    return heft_read_checked(to, d->f, part, heft_part_checksum(d->f, part, false), err);
}

heft_status heft_delta_reserve(heft_delta_loaded *l, const heft_delta *d, uint64_t changed,
                               heft_error *err)
{
    uint64_t starts, positions, values, all;
    bool fits = heft_mul(&starts, l->blocks + 1, sizeof *l->starts) &&
                heft_mul(&positions, changed, sizeof *l->positions) &&
                heft_mul(&values, changed, l->unit) && heft_add(&all, starts, values) &&
                heft_add(&all, all, positions) && all <= SIZE_MAX / 2;
    l->bytes = fits ? (size_t)all : 0;
    uint8_t *memory = fits ? heft_alloc(d->f->host->allocator, l->bytes, 64) : NULL;
    if (!memory)
        return heft_error_no_memory(err, purpose);
    l->starts = (uint64_t *)(void *)memory;
    l->values = memory + starts;
    l->positions = (uint16_t *)(void *)(memory + starts + values);
    if (values & 1) { /* values of one byte: positions come first, to be aligned */
        l->positions = (uint16_t *)(void *)(memory + starts);
        l->values = memory + starts + positions;
    }
    return HEFT_OK;
}

uint32_t heft_delta_block_units(const heft_delta_loaded *l, uint64_t block)
{
    uint64_t left = l->units - block * HEFT_DELTA_BLOCK;
    return left < HEFT_DELTA_BLOCK ? (uint32_t)left : HEFT_DELTA_BLOCK;
}

/* ---- gaps ---- */

/* Make the sums of the counts. */
static heft_status add_counts(heft_delta_loaded *l, const uint8_t *counts, uint64_t changed,
                              heft_str name, heft_error *err)
{
    uint64_t sum = 0;
    for (uint64_t b = 0; b < l->blocks; b++) {
        uint32_t n = heft_le32(counts + b * sizeof n);
        l->starts[b] = sum;
        if (n > heft_delta_block_units(l, b) || n > changed - sum)
            return heft_delta_bad(err, name, "counts more changes than it has");
        sum += n;
    }
    l->starts[l->blocks] = sum;
    return sum == changed ? HEFT_OK : heft_delta_bad(err, name, "counts fewer changes than it has");
}

/* Numbers as they are stored become those of the host. */
static void from_little(uint16_t *p, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        const uint8_t *b = (const uint8_t *)(p + i);
        p[i] = (uint16_t)(b[0] | b[1] << 8);
    }
}

static heft_status find_positions(heft_delta_loaded *l, heft_str name, heft_error *err)
{
    for (uint64_t b = 0; b < l->blocks; b++) {
        uint16_t *p = l->positions + l->starts[b];
        uint32_t n = (uint32_t)(l->starts[b + 1] - l->starts[b]);
        from_little(p, n);
        if (!heft_delta_positions(p, p, n, heft_delta_block_units(l, b)))
            return heft_delta_bad(err, name, "has positions out of range or out of order");
    }
    return HEFT_OK;
}

static heft_status load_gaps(heft_delta_loaded *l, const heft_delta *d, const heft_delta_item *item,
                             heft_error *err)
{
    const heft_index *x = &d->f->x;
    heft_str name = item->row.name;
    uint64_t counts = heft_ix_part_row_at(x, item->part[0])->length;
    uint64_t gaps = heft_ix_part_row_at(x, item->part[1])->length;
    uint64_t values = heft_ix_part_row_at(x, item->part[2])->length, changed = gaps / 2;
    if (counts != l->blocks * sizeof(uint32_t) || gaps != 2 * changed || changed > l->units ||
        values != changed * l->unit)
        return heft_delta_bad(err, name, "has parts whose lengths contradict each other");
    HEFT_TRY(heft_delta_reserve(l, d, changed, err));
    uint8_t *stored = heft_alloc(d->f->host->allocator, (size_t)counts + 1, 64);
    if (!stored)
        return heft_error_no_memory(err, purpose);
    heft_status st = read_part(stored, d, item->part[0], err);
    if (!st)
        st = add_counts(l, stored, changed, name, err);
    if (!st)
        st = read_part(l->positions, d, item->part[1], err);
    if (!st)
        st = read_part(l->values, d, item->part[2], err);
    heft_free(d->f->host->allocator, stored, (size_t)counts + 1, 64);
    return st ? st : find_positions(l, name, err);
}

/* ---- flat indices ---- */

heft_status heft_delta_load_flat(heft_delta_loaded *l, const heft_delta *d, heft_str name,
                                 const heft_delta_flat *flat, heft_error *err)
{
    uint64_t block = 0, last = 0;
    if (flat->count > l->units)
        return heft_delta_bad(err, name, "has more positions than the tensor has");
    HEFT_TRY(heft_delta_reserve(l, d, flat->count, err));
    l->starts[0] = 0;
    for (uint64_t i = 0; i < flat->count; i++) {
        const uint8_t *p = flat->indices + (size_t)i * flat->index_bytes;
        uint64_t at = flat->index_bytes == sizeof(uint64_t) ? heft_le64(p) : heft_le32(p);
        if (at >= l->units || (i && at <= last))
            return heft_delta_bad(err, name, "has positions out of range or out of order");
        for (; block < at / HEFT_DELTA_BLOCK; block++)
            l->starts[block + 1] = i;
        l->positions[i] = (uint16_t)(at % HEFT_DELTA_BLOCK);
        last = at;
    }
    for (; block < l->blocks; block++)
        l->starts[block + 1] = flat->count;
    if (flat->count)
        memcpy(l->values, flat->values, (size_t)flat->count * l->unit);
    return HEFT_OK;
}

/* ---- either ---- */

heft_status heft_delta_load(heft_delta_loaded *out, const heft_delta *d, uint32_t item,
                            heft_dtype type, uint64_t bytes, heft_error *err)
{
    const heft_delta_item *it = heft_delta_item_at(d, item);
    heft_delta_loaded l = { .unit = heft_delta_unit(type) };
    if (it->coding == HEFT_DELTA_DISK_OVERWRITE)
        l.unit = 1;
    l.units = heft_div(bytes, l.unit);
    l.blocks = (l.units + HEFT_DELTA_BLOCK - 1) / HEFT_DELTA_BLOCK;
    heft_status st = it->coding == HEFT_DELTA_GAPS ? load_gaps(&l, d, it, err)
                                                   : heft_delta_load_foreign(&l, d, it, err);
    if (st)
        heft_delta_unload(&l, d);
    *out = l;
    return st;
}

void heft_delta_unload(heft_delta_loaded *l, const heft_delta *d)
{
    heft_free(d->f->host->allocator, l->starts, l->bytes, 64);
    *l = (heft_delta_loaded){ .unit = 1 };
}
