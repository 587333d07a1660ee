/* progress.c - how work on several threads reports and stops. */
#include "core/read/progress.h"

static void report(heft_progress *m, uint64_t done)
{
    bool goes_on = m->fn(m->ctx, done, m->total);
    heft_shared_lock(&m->lock);
    m->reported = done;
    m->reporting = false;
    if (!goes_on)
        heft_shared_put(&m->stopped, 1);
    heft_shared_unlock(&m->lock);
}

void heft_progress_add(heft_progress *m, uint64_t bytes)
{
    if (!m->fn)
        return;
    heft_shared_lock(&m->lock);
    uint64_t done = m->done += bytes;
    bool reports = !m->reporting && !m->stopped;
    m->reporting = m->reporting || reports;
    heft_shared_unlock(&m->lock);
    if (reports)
        report(m, done);
}

bool heft_progress_halted(const heft_progress *m)
{
    return heft_shared_u32(&m->stopped) || heft_shared_u32(&m->failed);
}

void heft_progress_fail(heft_progress *m, heft_status st, const heft_error *err)
{
    if (heft_shared_take(&m->failed, 1)) {
        m->error = *err;
        heft_error_end(&m->error, st);
    }
}

/* The bytes that workers added while another one reported are reported here. */
heft_status heft_progress_end(heft_progress *m, heft_error *err)
{
    if (m->failed) {
        if (err)
            *err = m->error;
        return m->error.status;
    }
    if (m->fn && !m->stopped && m->reported != m->done)
        report(m, m->done);
    if (m->stopped)
        return heft_error_plain(err, HEFT_E_CANCELLED, "stopped");
    return HEFT_OK;
}
