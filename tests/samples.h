/* samples.h - files to test with: ROOT/FORMAT/good and ROOT/FORMAT/bad, each with FILE.json beside
 * it that says what is in it or what is to be made of it; and files from the world. */
#ifndef SAMPLES_H
#define SAMPLES_H
#include "heft_test.h"

typedef enum sample_kind { SAMPLE_GOOD = 1, SAMPLE_BAD = 2, SAMPLE_REAL = 4 } sample_kind;

typedef struct sample {
    char *path, *title; /* "mag/good/one.mag" */
    sample_kind kind;
    heft_test_input in;
    struct facts *facts; /* NULL for REAL ones */
} sample;

typedef struct samples {
    sample *at;
    size_t count;
} samples;

/* Below $HEFT_SAMPLES and, where they exist, $HEFT_SHARED/fixtures and $HEFT_SHARED/data: those of
 * formats that this build reads, by title. */
samples heft_test_samples(void);
void heft_test_samples_free(samples *s);

/* Members of FILE.json by path: "tensors.0.shape.1".  ptr NULL: there is none of it. */
heft_str heft_test_fact(const sample *s, const char *path, ...)
    __attribute__((format(printf, 2, 3)));
bool heft_test_fact_is(heft_str f, const char *text);

#endif
