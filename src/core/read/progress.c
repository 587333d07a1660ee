/* progress.c - progress reports and cancellation for several workers. */
#include "core/read/progress.h"

static void report(heft_progress *p, uint64_t done)
{
    bool goes_on = p->fn(p->ctx, done, p->total);
    heft_spin_lock(&p->lock);
    p->reported = done;
    p->reporting = false;
    if (!goes_on)
        heft_atomic_store(&p->stopped, 1);
    heft_spin_unlock(&p->lock);
}

void heft_progress_add(heft_progress *p, uint64_t bytes)
{
    if (!p->fn)
        return;
    heft_spin_lock(&p->lock);
    uint64_t done = p->done += bytes;
    bool reports = !p->reporting && !p->stopped;
    p->reporting = p->reporting || reports;
    heft_spin_unlock(&p->lock);
    if (reports)
        report(p, done);
}

bool heft_progress_halted(const heft_progress *p)
{
    return heft_atomic_load(&p->stopped) || heft_atomic_load(&p->failed);
}

void heft_progress_fail(heft_progress *p, heft_status st, const heft_error *err)
{
    if (heft_atomic_set_if_zero(&p->failed, 1)) {
        p->error = *err;
        heft_error_end(&p->error, st);
    }
}

/* Report the bytes that workers added during the last report. */
heft_status heft_progress_end(heft_progress *p, heft_error *err)
{
    if (p->failed) {
        if (err)
            *err = p->error;
        return p->error.status;
    }
    if (!p->stopped && p->reported != p->done)
        report(p, p->done);
    if (p->stopped)
        return heft_error_plain(err, HEFT_E_CANCELLED, "stopped");
    return HEFT_OK;
}
