/* progress.h - progress, cancellation and the first error of several workers. */
#ifndef HEFT_PROGRESS_H
#define HEFT_PROGRESS_H
#include "core/read/file.h"

/* Counts bytes and reports the sum on a single thread at a time.  While the callback runs, other
 * workers only count. */
typedef struct heft_progress {
    heft_progress_fn fn;
    void *ctx;
    uint64_t total;
    uint64_t done, reported; /* bytes; guarded by lock, like reporting */
    bool reporting;          /* a worker is in fn */
    uint32_t lock;           /* never held while fn runs */
    uint32_t stopped;        /* fn asked to stop */
    uint32_t failed;         /* some worker failed */
    heft_error error;        /* error of the first worker that failed; read after all have ended */
} heft_progress;
void heft_progress_add(heft_progress *p, uint64_t bytes);
bool heft_progress_halted(const heft_progress *p); /* stopped or failed: workers should return */
/* Record the first failure.  st is not HEFT_OK; err belongs to st. */
void heft_progress_fail(heft_progress *p, heft_status st, const heft_error *err);
/* After the last worker has ended: return the first error, or HEFT_E_CANCELLED if fn asked to
 * stop. */
heft_status heft_progress_end(heft_progress *p, heft_error *err);

#endif
