/* value_counts.h - how often each value of a type with 8 or 16 bits occurs. All statistics of a
 * tensor follow from the counts, so one pass over the bytes suffices. */
#ifndef HEFT_CLI_VALUE_COUNTS_H
#define HEFT_CLI_VALUE_COUNTS_H
#include <stdbool.h>

#include <heft/heft.h>

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
