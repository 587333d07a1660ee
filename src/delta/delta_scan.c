/* delta_scan.c - finds the units that differ in two blocks of bytes, and puts them back. */
#include "delta/delta_scan.h"

#include <string.h>

#include "base/compiler.h"

enum { WORD = 8, LINE = 64 };

typedef struct listing {
    heft_delta_found *f;
    uint32_t n, last; /* units so far, and the position of the last one */
} listing;

/* Note a unit, without a branch: what is written counts only if the unit differs. */
static inline void note(listing *l, bool differs, uint32_t at, const uint8_t *old,
                        const uint8_t *new, unsigned unit)
{
    l->f->gaps[l->n] = (uint16_t)(at - l->last);
    memcpy(l->f->old + (size_t)l->n * unit, old, unit);
    memcpy(l->f->new + (size_t)l->n *unit, new, unit);
    l->last = differs ? at : l->last;
    l->n += differs;
}

/* Look at the words of a line that differ. */
static inline void scan_line(listing *l, uint32_t from, const uint8_t *p, const uint8_t *q,
                             unsigned unit)
{
    const uint64_t ones = UINT64_MAX >> (64 - 8 * unit);
    for (unsigned at = 0; at < LINE; at += WORD) {
        uint64_t differing = heft_le64(p + at) ^ heft_le64(q + at);
        if (!differing)
            continue;
        for (unsigned k = 0; k < WORD; k += unit)
            note(l, (differing >> 8 * k) & ones, from + (at + k) / unit, p + at + k, q + at + k,
                 unit);
    }
}

/* Compare lines first: where few units differ, most lines are equal. */
static inline uint32_t scan(heft_delta_found *f, const uint8_t *a, const uint8_t *b, uint32_t units,
                            unsigned unit)
{
    listing l = { .f = f };
    uint32_t per_line = LINE / unit, from = 0;
    for (; units - from >= per_line; from += per_line) {
        const uint8_t *p = a + (size_t)from * unit, *q = b + (size_t)from * unit;
        if (memcmp(p, q, LINE) != 0)
            scan_line(&l, from, p, q, unit);
    }
    for (; from < units; from++) {
        const uint8_t *p = a + (size_t)from * unit, *q = b + (size_t)from * unit;
        note(&l, memcmp(p, q, unit) != 0, from, p, q, unit);
    }
    return l.n;
}

uint32_t heft_delta_scan(heft_delta_found *f, const uint8_t *a, const uint8_t *b, uint32_t units,
                         unsigned unit)
{
    switch (unit) { /* constants, so that each loop compares words */
    case 1:
        return scan(f, a, b, units, 1);
    case 2:
        return scan(f, a, b, units, 2);
    case 4:
        return scan(f, a, b, units, 4);
    default:
        return scan(f, a, b, units, 8);
    }
}

static inline void put(uint8_t *to, uint64_t first, uint64_t units, const uint16_t *positions,
                       const uint8_t *values, uint32_t n, unsigned unit)
{
    enum { AHEAD = 24 };
    for (uint32_t i = 0; i < n; i++) {
        if (i + AHEAD < n && positions[i + AHEAD] - first < units)
            heft_prefetch_to_write(to + (size_t)(positions[i + AHEAD] - first) * unit);
        if (positions[i] - first < units)
            memcpy(to + (size_t)(positions[i] - first) * unit, values + (size_t)i * unit, unit);
    }
}

void heft_delta_put(uint8_t *to, uint64_t first, uint64_t units, const uint16_t *positions,
                    const uint8_t *values, uint32_t n, unsigned unit)
{
    switch (unit) {
    case 1:
        put(to, first, units, positions, values, n, 1);
        break;
    case 2:
        put(to, first, units, positions, values, n, 2);
        break;
    case 4:
        put(to, first, units, positions, values, n, 4);
        break;
    default:
        put(to, first, units, positions, values, n, 8);
    }
}

bool heft_delta_positions(uint16_t *to, const uint16_t *gaps, uint32_t n, uint32_t units)
{
    uint64_t at = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (i && !gaps[i])
            return false;
        at += gaps[i];
        if (at >= units)
            return false;
        to[i] = (uint16_t)at;
    }
    return true;
}

void heft_delta_xor(uint8_t *to, const uint8_t *with, size_t len)
{
    for (size_t i = 0; i < len; i++)
        to[i] ^= with[i];
}
