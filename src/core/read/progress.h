/* progress.h - the progress of many workers. */
#ifndef HEFT_PROGRESS_H
#define HEFT_PROGRESS_H
#include "core/read/file.h"

/* Counts bytes, reports them on one thread at a time, remembers a stop.  While the callback runs, other workers count
 * and go on without a report of their own. */
typedef struct heft_progress {
    heft_progress_fn fn;
    void *ctx;
    uint64_t total;
    uint64_t done, reported; /* bytes; guarded by lock, as is reporting */
    bool reporting;          /* a worker is in fn */
    uint32_t lock;           /* never held while fn runs */
    uint32_t stopped;        /* fn said so */
    uint32_t failed;         /* some worker met an error ... */
    heft_error error;        /* ... the first of which this is, once all have ended */
} heft_progress;
void heft_progress_add(heft_progress *p, uint64_t bytes);
bool heft_progress_halted(const heft_progress *p); /* stopped or failed: no use in going on */
/* st: not HEFT_OK, what err was set for. */
void heft_progress_fail(heft_progress *p, heft_status st, const heft_error *err);
/* After the last worker has ended. */
heft_status heft_progress_end(heft_progress *p, heft_error *err);

#endif
