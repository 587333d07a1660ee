/* workers.h - a file opened by several workers and by one. */
#ifndef WORKERS_H
#define WORKERS_H
#include "heft_test.h"

/* Both must see the same tensors, the same findings and the same failure; text is what that says, or NULL when
 * it may be whole. */
void heft_expect_same_by_workers(heft_bytes b, const char *text);

#endif
