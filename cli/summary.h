/* summary.h - what the values of a tensor come to. */
#ifndef HEFT_CLI_SUMMARY_H
#define HEFT_CLI_SUMMARY_H
#include "work.h"

enum { SUMMARY_BINS = 8 };

/* Complex numbers count as two.  NaN and infinities are counted and left out of the rest. */
typedef struct summary {
    bool numeric;
    uint64_t count, finite, zeros, nans, infinities;
    double min, max, mean, deviation; /* of the finite values; meaningless without any */
    uint64_t bins[SUMMARY_BINS];      /* from min to max, equally wide */
} summary;

/* The part whose numbers are summed up: the tensor's data, else its values; HEFT_NONE: it has no numbers. */
uint32_t summary_part(const heft_file *f, uint32_t tensor);
/* checks: NULL, or what checks the digests of what is read.  False: the work stopped. */
bool summarise(summary *s, work *w, const heft_file *f, const char *path, uint32_t tensor,
               heft_checked_read *checks);

#endif
