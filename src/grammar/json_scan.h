/* json_scan.h - finds the end of a run of plain characters in a JSON string, eight bytes at a
 * time. */
#ifndef HEFT_JSON_SCAN_H
#define HEFT_JSON_SCAN_H
#include "base/compiler.h"

/* Return the top bit of each byte that ends the run: a quote, a backslash, a control character.
 * Exact up to the lowest such byte; borrows may corrupt the bits above. */
static inline uint64_t heft_json_stops(uint64_t x)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), tops = UINT64_C(0x8080808080808080);
    uint64_t quote = x ^ ones * '"', backslash = x ^ ones * '\\';
    return ((quote - ones) | (backslash - ones) | (x - ones * ' ')) & ~x & tops;
}

/* Return the first byte from p on that is not plain, or end.  *high collects the top bits of the
 * bytes passed. */
static inline const char *heft_json_find_stop(const char *p, const char *end, uint64_t *high)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), tops = UINT64_C(0x8080808080808080);
    for (; end - p >= 8; p += 8) {
        uint64_t x = heft_le64((const uint8_t *)p), hit = heft_json_stops(x);
        if (hit) {
            uint64_t below = (hit & (0 - hit)) - 1; /* includes 7 bits of the byte found */
            *high |= x & below & tops;
            return p + (((below & ones) * ones >> 56) - 1);
        }
        *high |= x & tops;
    }
    for (; p < end && *p != '"' && *p != '\\' && (uint8_t)*p >= ' '; p++)
        *high |= (uint8_t)*p & 0x80;
    return p;
}

#endif
