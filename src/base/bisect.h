/* bisect.h - binary search for a lower bound: the first number of [first, end) for which the
 * caller's predicate "is before the key" is false.  The predicate must be monotonic.
 *
 *     heft_bisect b = { .end = count };
 *     while (heft_bisect_next(&b))
 *         heft_bisect_narrow(&b, rows[b.mid].part < part);
 *     return b.first;                                        // count if all rows are before
 */
#ifndef HEFT_BISECT_H
#define HEFT_BISECT_H
#include <stdbool.h>
#include <stdint.h>

typedef struct heft_bisect {
    uint32_t first, end, mid;
} heft_bisect;

/* Set mid to the number to compare next; return false once first is the result. */
static inline bool heft_bisect_next(heft_bisect *b)
{
    b->mid = b->first + (b->end - b->first) / 2;
    return b->first < b->end;
}
/* Continue in the upper half if mid is before the key, otherwise in the lower half. */
static inline void heft_bisect_narrow(heft_bisect *b, bool is_before)
{
    if (is_before)
        b->first = b->mid + 1;
    else
        b->end = b->mid;
}

#endif
