/* statistics.h - statistics of many tensors, on all processors. */
#ifndef HEFT_CLI_STATISTICS_H
#define HEFT_CLI_STATISTICS_H
#include "model.h"
#include "summary.h"

typedef struct statistics_options {
    bool verifies; /* a wrong digest of the bytes read is an error, unless --no-verify */
    bool quantiles;
} statistics_options;

/* Summarise the selected tensors into a malloc'ed array, in the order of the selection. Return an
 * exit code; after an error *out is NULL. */
int statistics_compute(const session *s, summary **out, const heft_file *f, const char *path,
                       const selection *chosen, const statistics_options *options);

#endif
