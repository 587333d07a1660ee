/* delta_scan.c - finds the units that differ in two blocks of bytes, and puts them back. */
#include "delta/delta_scan.h"

#include <string.h>

/* Compare lines of 64 bytes first: where few units differ, most lines are equal. */
static inline uint32_t scan(heft_delta_found *f, const uint8_t *a, const uint8_t *b, uint32_t units,
                            unsigned unit)
{
    enum { LINE = 64 };
    uint32_t per_line = LINE / unit, n = 0, last = 0;
    for (uint32_t from = 0; from < units; from += per_line) {
        uint32_t left = units - from, here = left < per_line ? left : per_line;
        const uint8_t *p = a + (size_t)from * unit, *q = b + (size_t)from * unit;
        if (here == per_line ? !memcmp(p, q, LINE) : !memcmp(p, q, (size_t)here * unit))
            continue;
        for (uint32_t i = 0; i < here; i++) { /* without branches: written over unless it differs */
            uint32_t differs = memcmp(p + (size_t)i * unit, q + (size_t)i * unit, unit) != 0;
            f->gaps[n] = (uint16_t)(from + i - last);
            memcpy(f->old + (size_t)n * unit, p + (size_t)i * unit, unit);
            memcpy(f->new + (size_t)n *unit, q + (size_t)i * unit, unit);
            last = differs ? from + i : last;
            n += differs;
        }
    }
    return n;
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
    for (uint32_t i = 0; i < n; i++)
        if (positions[i] - first < units)
            memcpy(to + (size_t)(positions[i] - first) * unit, values + (size_t)i * unit, unit);
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
