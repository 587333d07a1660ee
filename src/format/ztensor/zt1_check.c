/* zt1_check.c - notices and checks for zTensor 0.1 to 1.2: alignment, overlapping data, padding. */
#include "format/ztensor/ztensor.h"

/* ---- notices ---- */

static uint64_t hash_offset(uint64_t v)
{
    v = (v ^ v >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    v = (v ^ v >> 27) * UINT64_C(0x94D049BB133111EB);
    return v ^ v >> 31;
}

/* Return true if the payloads are contiguous, in any order: each payload except the last ends,
 * rounded up to a multiple of 64, where another begins. Compares the sets of ends and beginnings
 * through sums of keyed hashes, without sorting. */
static bool is_contiguous(const heft_index *x)
{
    uint64_t secret = hash_offset(x->key.secret[0]);
    uint64_t begins = 0, ends = 0, first = UINT64_MAX, last = 0, end;
    for (uint32_t i = 0; i < x->parts.len; i++) {
        const heft_ix_part_row *p = heft_ix_part_row_at(x, i);
        if (!p->stored)
            continue;
        if (!heft_align_up(&end, p->offset + p->stored, HEFT_ZT_ALIGN))
            return false;
        begins += hash_offset(p->offset + secret);
        ends += hash_offset(end + secret);
        first = p->offset < first ? p->offset : first;
        last = end > last ? end : last;
    }
    return !last || begins + hash_offset(last + secret) == ends + hash_offset(first + secret);
}

heft_status heft_zt1_notice(heft_index *x)
{
    uint32_t *order = NULL, count = 0;
    heft_ix_note_offsets(x, HEFT_ZT_ALIGN, "ztensor/align-64",
                         "data does not begin at a multiple of 64");
    heft_status st = is_contiguous(x) ? HEFT_OK : heft_ix_order(x, &order, &count);
    heft_range last = { 0, 0 }; /* range with the largest end so far */
    for (uint32_t i = 0; i < count && !st; i++) {
        const heft_ix_part_row *p = heft_ix_part_row_at(x, order[i]);
        heft_range where = { p->offset, p->stored };
        bool is_shared = where.offset == last.offset && where.length == last.length;
        /* Components that share bytes must share all of them. */
        if (where.offset < last.offset + last.length && !is_shared)
            heft_ix_note_range(x, HEFT_WARNING, "ztensor/overlap", where,
                               heft_ix_owner(x, order[i]), "data partly overlaps other data");
        if (where.offset + where.length > last.offset + last.length)
            last = where;
    }
    heft_ix_order_free(x, order);
    return st;
}

/* ---- checking ---- */

/* Bytes up to the next multiple of 64 are padding. Bytes of a gap after that are unused, for
 * example data that the reference writer abandons when a name occurs twice. */
heft_status heft_zt1_check(heft_check *c)
{
    const uint32_t *order;
    uint32_t count;
    uint64_t aligned;
    uint64_t end = c->x->data_start; /* end of the range checked so far */
    heft_status st = c->order(c, &order, &count);
    for (uint32_t i = 0; i <= count && !st; i++) {
        const heft_ix_part_row *p = i < count ? heft_ix_part_row_at(c->x, order[i]) : NULL;
        uint64_t begin = p ? p->offset : c->x->data_end;
        if (begin > end) {
            if (!heft_align_up(&aligned, end, HEFT_ZT_ALIGN) || aligned > begin)
                aligned = begin;
            heft_range padding = { end, aligned - end }, unused = { aligned, begin - aligned };
            st = c->padding(c, "ztensor/padding", HEFT_WARNING, padding, 0);
            if (!st)
                st = c->padding(c, "ztensor/unused", HEFT_NOTE, unused, 0);
        }
        if (p && p->offset + p->stored > end)
            end = p->offset + p->stored;
    }
    return st;
}
