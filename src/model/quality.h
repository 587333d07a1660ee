/* quality.h - how far numbers that are quantised are from those of the source: struct heft_quality.
 *
 * Pairs of numbers are added in runs of at most HEFT_QUALITY_RUN from the beginning of a row.  The
 * sums of a run are doubles, and those of a tensor have all their digits, so that the order of the
 * runs, and with it the number of threads, changes nothing. */
#ifndef HEFT_QUALITY_H
#define HEFT_QUALITY_H
#include <heft/heft.h>

#include "base/arena.h"

enum {
    HEFT_QUALITY_RUN = 1024,
    HEFT_SUM_LIMBS = 22,
    HEFT_SUM_ONE = 320 /* number of the bit of an exact sum that counts 1 */
};

/* The sum of limb[i] * 2^(32 i - HEFT_SUM_ONE).  Limbs may be negative, and exceed 32 bits. */
typedef struct heft_exact_sum {
    int64_t limb[HEFT_SUM_LIMBS];
} heft_exact_sum;

/* Sums over pairs of a number a of the source and a number b that is written. */
typedef struct heft_pair_sums {
    uint64_t pairs, finite; /* finite: pairs of two finite numbers, of which the sums are */
    uint64_t differing;     /* pairs of different numbers; NaN equals NaN, and -0 equals 0 */
    double max_abs;         /* over all pairs without a NaN */
    heft_exact_sum squared; /* sum of (a - b)^2 */
    heft_exact_sum source, written, products; /* sums of a^2, b^2 and a * b */
} heft_pair_sums;

typedef struct heft_quality_record {
    heft_str name;
    heft_dtype from;
    const char *type;
    heft_pair_sums sums;
} heft_quality_record;

typedef struct heft_quality {
    heft_memory mem;
    heft_arena arena;
    heft_vec records; /* heft_quality_record */
    uint32_t lock;    /* guards the sums */
    bool is_writing;  /* bytes that are encoded now go to the file, and are not read again */
} heft_quality;

/* Add the pairs of a run. */
void heft_pairs_add(heft_pair_sums *s, const float *a, const float *b, size_t n);
/* Add the sums of other pairs. */
void heft_pairs_join(heft_pair_sums *to, const heft_pair_sums *s);
/* Return the double nearest to a sum, but for a few units in its last place. */
double heft_exact_sum_value(const heft_exact_sum *s);

/* Add a tensor; the name is copied.  *out becomes its number. */
heft_status heft_quality_add(uint32_t *out, heft_quality *q, heft_str name, heft_dtype from,
                             const char *type, heft_error *err);
/* Add sums to those of a tensor, and set them to 0; on any thread. */
void heft_quality_collect(heft_quality *q, uint32_t record, heft_pair_sums *take);

#endif
