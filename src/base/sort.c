/* sort.c - bottom-up merge sort: insertion sort for short runs, then merges of adjacent runs unless
 * a pair is already in order. */
#include "base/sort.h"

#include <string.h>

enum { RUN = 8 };

typedef struct order {
    bool (*is_less)(const void *ctx, uint32_t a, uint32_t b);
    const void *ctx;
} order;

static void insert(uint32_t *ids, uint64_t n, const order *o)
{
    for (uint64_t i = 1; i < n; i++) {
        uint32_t id = ids[i];
        uint64_t at = i;
        for (; at && o->is_less(o->ctx, id, ids[at - 1]); at--)
            ids[at] = ids[at - 1];
        ids[at] = id;
    }
}

/* Merge the sorted runs [0, mid) and [mid, n); equal elements of the left run come first. */
static void merge(uint32_t *ids, uint32_t *scratch, uint64_t mid, uint64_t n, const order *o)
{
    if (!o->is_less(o->ctx, ids[mid], ids[mid - 1]))
        return;
    memcpy(scratch, ids, (size_t)mid * sizeof *ids);
    uint64_t left = 0, right = mid, to = 0;
    while (left < mid && right < n) {
        bool take_right = o->is_less(o->ctx, ids[right], scratch[left]);
        ids[to++] = take_right ? ids[right++] : scratch[left++];
    }
    memcpy(ids + to, scratch + left, (size_t)(mid - left) * sizeof *ids);
}

void heft_sort(uint32_t *ids, uint32_t *scratch, uint32_t n,
               bool (*is_less)(const void *ctx, uint32_t a, uint32_t b), const void *ctx)
{
    order o = { is_less, ctx };
    for (uint64_t at = 0; at < n; at += RUN)
        insert(ids + at, n - at < RUN ? n - at : RUN, &o);
    for (uint64_t width = RUN; width < n; width *= 2)
        for (uint64_t at = 0; at + width < n; at += 2 * width)
            merge(ids + at, scratch, width, n - at < 2 * width ? n - at : 2 * width, &o);
}

void heft_sort_numbers(uint32_t *ids, uint32_t n,
                       bool (*is_less)(const void *ctx, uint32_t a, uint32_t b), const void *ctx)
{
    for (uint32_t i = 0; i < n; i++)
        ids[i] = i;
    heft_sort(ids, ids + n, n, is_less, ctx);
}
