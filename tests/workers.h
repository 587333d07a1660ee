/* workers.h - compares a file opened with several worker threads and with one. */
#ifndef WORKERS_H
#define WORKERS_H
#include "heft_test.h"

/* Assert that one thread and several give the same tensors and findings, or the same error.
 * text: part of the expected error, or NULL if the file may be valid. */
void heft_expect_same_by_workers(heft_bytes b, const char *text);

#endif
