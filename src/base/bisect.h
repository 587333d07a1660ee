/* bisect.h - binary search for a lower bound: the first of the numbers [first, end) that is not
 * before what is sought, where all that are before it come first.
 *
 *     heft_bisect b = { .end = count };
 *     while (heft_bisect_next(&b))
 *         heft_bisect_narrow(&b, rows[b.mid].part < part);
 *     return b.first;                                        // count: all rows are before it
 */
#ifndef HEFT_BISECT_H
#define HEFT_BISECT_H
#include <stdbool.h>
#include <stdint.h>

typedef struct heft_bisect {
    uint32_t first, end, mid;
} heft_bisect;

/* Set mid to the number to look at; false: first is the answer. */
static inline bool heft_bisect_next(heft_bisect *b)
{
    b->mid = b->first + (b->end - b->first) / 2;
    return b->first < b->end;
}
/* Go on in the upper half when mid is before what is sought, else in the lower one. */
static inline void heft_bisect_narrow(heft_bisect *b, bool is_before)
{
    if (is_before)
        b->first = b->mid + 1;
    else
        b->end = b->mid;
}

#endif
