/* summary.h - statistics of a tensor's values, and of many tensors on all processors.
 *
 * This room computes from the values of tensors, compares them, and makes tables of the results. */
#ifndef HEFT_CLI_SUMMARY_H
#define HEFT_CLI_SUMMARY_H
#include <heft/check.h>

#include "models/model_view.h"
#include "process/work.h"
#include "values/bins.h"
#include "values/quantiles.h"

/* A complex number counts as two values. NaN and infinities are counted, and excluded from the
 * rest. */
typedef struct summary {
    bool numeric;
    uint64_t count, finite, zeros, nans, infinities;
    uint64_t
        first_not_finite; /* number of values before the first NaN or infinity; or UINT64_MAX */
    double min, max, mean, deviation; /* of the finite values; unset without any */
    uint64_t bins[SUMMARY_BINS];      /* equally wide, from min to max */
    bool has_quantiles;               /* there are finite values, and quantiles were asked for */
    double quantiles[QUANTILES];      /* of the finite values */
} summary;

/* Return the part with the tensor's numbers: "data", otherwise "values"; HEFT_NONE if it has no
 * numbers. */
uint32_t summary_part(const heft_file *f, uint32_t tensor);
typedef struct summary_options {
    heft_checked_read *checks; /* verifies the digests of the bytes read, or NULL */
    bool quantiles;
} summary_options;

/* Compute the statistics. Return false if the work was stopped. */
bool summarize(summary *s, work *w, const heft_file *f, const char *path, uint32_t tensor,
               const summary_options *options);
/* Add values, of which the finite ones are moved to the front; return how many there are. Until
 * summary_end() the deviation is another number. */
size_t summary_add(summary *s, double *values, size_t n);
void summary_end(summary *s);
/* Add the statistics of another tensor; bins and quantiles are lost. */
void summary_merge(summary *to, const summary *from);
/* Return the statistics of no values. */
summary summary_of_nothing(void);

typedef struct statistics_options {
    bool verifies; /* a wrong digest of the bytes read is an error, unless --no-verify */
    bool quantiles;
} statistics_options;

/* Summarise the selected tensors into a malloc'ed array, in the order of the selection. Return an
 * exit code; after an error *out is NULL. */
int statistics_compute(const session *s, summary **out, const model_view *v, const char *path,
                       const selection *chosen, const statistics_options *options);

#endif
