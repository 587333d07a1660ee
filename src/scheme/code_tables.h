/* code_tables.h - decodes numbers of 4 bits by tables.
 *
 * A group of elements with one scale has 16 different numbers.  These are computed, scaled and
 * rounded as single elements are; then each element is looked up. */
#ifndef HEFT_CODE_TABLES_H
#define HEFT_CODE_TABLES_H
#include "scheme/decoding.h"

/* A run of codes, two in a byte, the first in the low half. */
typedef struct heft_coded_run {
    const uint8_t *codes;
    uint64_t into;  /* elements of the first group that are before the run */
    uint64_t width; /* of a group */
    size_t count;
} heft_coded_run;

/* Return the run of columns [column, column + count) of a row; the caller sets `codes`. */
heft_coded_run heft_coded_run_of(uint64_t column, uint64_t width, size_t count);
/* Return true if tables pay, and the run begins with a group or lies within one. */
bool heft_coded_run_fits(const heft_coded_run *run);
/* Look up each group i of the run in tables[which[i]]. */
void heft_look_up_run(const heft_coded_run *run, const heft_code_table *tables,
                      const uint8_t *which, uint8_t *out);
/* Decode codes to (code - zero) * scale of their group, in a type of 16 bits. */
void heft_look_up_scaled(const heft_coded_run *run, const float *zero, const float *scale,
                         heft_dtype as, uint8_t *out);

#endif
