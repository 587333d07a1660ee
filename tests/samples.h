/* samples.h - sample files: ROOT/FORMAT/good/FILE and ROOT/FORMAT/bad/FILE, each with a
 * FILE.json that states the expected content or verdict; and real-world files. */
#ifndef SAMPLES_H
#define SAMPLES_H
#include "heft_test.h"

typedef enum sample_kind { SAMPLE_GOOD = 1, SAMPLE_BAD = 2, SAMPLE_REAL = 4 } sample_kind;

typedef struct sample {
    char *path, *title; /* "mag/good/one.mag" */
    sample_kind kind;
    heft_test_input in;
    struct facts *facts; /* content of FILE.json; NULL for SAMPLE_REAL */
} sample;

typedef struct samples {
    sample *at;
    size_t count;
} samples;

/* Return the samples below $HEFT_SAMPLES and, if they exist, $HEFT_SHARED/fixtures and
 * $HEFT_SHARED/data, for the formats that this build reads, sorted by title. */
samples heft_test_samples(void);
void heft_test_samples_free(samples *s);

/* Return a value of FILE.json by its path, as in "tensors.0.shape.1"; ptr NULL: there is no such
 * value. */
heft_str heft_test_fact(const sample *s, const char *path, ...)
    __attribute__((format(printf, 2, 3)));
bool heft_test_fact_is(heft_str f, const char *text);

#endif
