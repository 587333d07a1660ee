/* sort.h - a stable sort of numbers by a key, without recursion: a merge that passes over
 * what is in order already, so ordered input costs little more than one look at each. */
#ifndef HEFT_SORT_H
#define HEFT_SORT_H
#include <stdbool.h>
#include <stdint.h>

/* Sorts ids[0..n) so that below(ctx, ids[i + 1], ids[i]) never holds; scratch has room for n. */
void heft_sort(uint32_t *ids, uint32_t *scratch, uint32_t n,
               bool (*below)(const void *ctx, uint32_t a, uint32_t b), const void *ctx);
/* Fills ids with the numbers from 0 to n - 1, sorted; ids has room for 2 * n. */
void heft_sort_numbers(uint32_t *ids, uint32_t n,
                       bool (*below)(const void *ctx, uint32_t a, uint32_t b), const void *ctx);

#endif
