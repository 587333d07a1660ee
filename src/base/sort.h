/* sort.h - a stable sort of numbers by a key, without recursion.  Sorted input costs little more
 * than one comparison per number. */
#ifndef HEFT_SORT_H
#define HEFT_SORT_H
#include <stdbool.h>
#include <stdint.h>

/* Sort ids[0..n) in ascending order of is_less(ctx, a, b); scratch has capacity for n numbers. */
void heft_sort(uint32_t *ids, uint32_t *scratch, uint32_t n,
               bool (*is_less)(const void *ctx, uint32_t a, uint32_t b), const void *ctx);
/* Fill ids with the numbers from 0 to n - 1, sorted; ids has capacity for 2 * n numbers. */
void heft_sort_numbers(uint32_t *ids, uint32_t n,
                       bool (*is_less)(const void *ctx, uint32_t a, uint32_t b), const void *ctx);

#endif
