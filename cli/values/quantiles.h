/* quantiles.h - quantiles of many values, in two passes and little memory.
 *
 * Up to 4096 values are sorted. More values are counted by the upper half of a 32-bit key that
 * orders like the value, then, near the wanted ranks, by the lower half. The key of integers up to
 * 32 bits and of values that fit in a 32-bit float is exact; of other types it is the upper half of
 * the double, within 1/1000000 of the value. */
#ifndef HEFT_CLI_QUANTILES_H
#define HEFT_CLI_QUANTILES_H
#include <stdbool.h>
#include <stddef.h>

#include <heft/heft.h>

enum { QUANTILES = 7, QUANTILE_RANKS = 2 * QUANTILES };
extern const unsigned quantile_percents[QUANTILES]; /* ascending; 50 is the median */

typedef enum quantile_key { KEY_FLOAT, KEY_INT, KEY_UINT, KEY_DOUBLE } quantile_key;

typedef struct quantile_rank { /* a value by its place in the sorted values */
    uint64_t rank;             /* among the values with the same upper half of the key */
    uint32_t upper;            /* upper half of the key */
} quantile_rank;

typedef struct quantiles {
    quantile_key key;
    uint64_t count;   /* values of the first pass */
    double *sorted;   /* the values while they are few, or NULL … */
    uint64_t *coarse; /* … otherwise counts by the upper half of the key */
    uint64_t *fine;   /* counts by the lower half, for each slot */
    uint8_t *slots;   /* by the upper half: number of the slot plus 1, or 0 */
    uint32_t slot_count;
    quantile_rank ranks[QUANTILE_RANKS]; /* the two neighbours of each quantile */
} quantiles;

/* Begin with values of a type, at most `most`. Return false without memory. */
bool quantiles_open(quantiles *q, heft_dtype type, uint64_t most);
/* Add finite values in the first pass. */
void quantiles_count(quantiles *q, const double *values, size_t n);
/* Do the same for values of HEFT_F32. */
void quantiles_count_floats(quantiles *q, const float *values, size_t n);
/* Add a finite value `times` times in the first pass, where more than 4096 values are expected. */
void quantiles_count_equal(quantiles *q, double value, uint64_t times);
/* End the first pass. Return false without memory. */
bool quantiles_find_ranks(quantiles *q);
/* Add the same values in the second pass. */
void quantiles_refine(quantiles *q, const double *values, size_t n);
void quantiles_refine_floats(quantiles *q, const float *values, size_t n);
void quantiles_refine_equal(quantiles *q, double value, uint64_t times);
/* Compute the quantiles, interpolated between neighbours as numpy.quantile() does, and limited to
 * the range from min to max. There is at least one value. */
void quantiles_end(double out[QUANTILES], quantiles *q, double min, double max);
void quantiles_close(quantiles *q);

/* ---- how often each value of a type with 8 or 16 bits occurs ---- */

typedef struct value_counts {
    size_t codes;     /* 256 or 65536 */
    uint32_t *counts; /* by code, in two halves that are counted in turns */
    double *values;   /* by code */
} value_counts;

/* Return whether elements of a type can be counted by their code, and are so many that a pass over
 * the codes costs little. */
bool value_counts_suit(heft_dtype type, uint64_t elements);
/* Return false without memory. */
bool value_counts_open(value_counts *c, heft_dtype type);
void value_counts_add(value_counts *c, const uint8_t *bytes, size_t elements);
/* Return the number of elements with a code. */
uint64_t value_counts_at(const value_counts *c, size_t code);
/* Return the number of the first element that is NaN or infinite; elements if there is none. */
size_t value_counts_find_not_finite(const value_counts *c, const uint8_t *bytes, size_t elements);
void value_counts_close(value_counts *c);

#endif
