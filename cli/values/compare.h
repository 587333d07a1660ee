/* compare.h - compare the values of two tensors, of any element types, within a tolerance. */
#ifndef HEFT_CLI_COMPARE_H
#define HEFT_CLI_COMPARE_H
#include <heft/check.h>
#include <heft/quantise.h>

#include "process/cmd.h"
#include "process/command_session.h"
#include "process/work.h"
#include "text/outbuf.h"
#include "values/difference.h"

typedef struct tolerance {
    double absolute, relative;
    uint64_t ulp; /* spacings of the less precise type at the larger of the two values */
} tolerance;

typedef struct side {
    const heft_file *f;
    const char *path;
    uint32_t tensor;
    heft_checked_read *checks; /* verifies the digests of the bytes read, or NULL */
} side;

/* Return true if values of the two types can be compared: numbers with numbers, complex numbers
 * with complex numbers, anything with values of the same type. */
bool compare_suits(heft_dtype a, heft_dtype b);
/* Compare by numpy.isclose's rule, |a - b| <= absolute + relative * |b|, or by the ulps; NaN equals
 * NaN. Numbers of two types are compared as doubles, 64-bit integers exactly. Errors stop the
 * work. */
void compare_tensors(difference *d, work *w, const side *a, const side *b, tolerance t);

/* ---- how far the numbers of a quantised model are from those of the source ---- */

/* Print the tensors that are farthest apart, and a line for the whole model; with as_json all
 * tensors in one document. Return an exit code. */
int quality_print(const heft_quality *q, const session *s, int fd, bool as_json);

#endif
