/* meter.c - how work on several threads reports and stops. */
#include "core/read/meter.h"

static bool lock(heft_meter *m, bool wait)
{
    while (__atomic_exchange_n(&m->busy, 1, __ATOMIC_ACQUIRE))
        if (!wait)
            return false;
    return true;
}

static void unlock(heft_meter *m)
{
    __atomic_store_n(&m->busy, 0, __ATOMIC_RELEASE);
}

void heft_meter_add(heft_meter *m, uint64_t bytes)
{
    if (!m->fn)
        return;
    lock(m, true);
    m->done += bytes;
    if (!m->fn(m->ctx, m->done, m->total))
        __atomic_store_n(&m->stopped, 1, __ATOMIC_RELAXED);
    unlock(m);
}

bool heft_meter_halted(const heft_meter *m)
{
    return __atomic_load_n(&m->stopped, __ATOMIC_RELAXED) ||
           __atomic_load_n(&m->failed, __ATOMIC_RELAXED);
}

void heft_meter_fail(heft_meter *m, const heft_error *err)
{
    lock(m, true);
    if (!m->failed) {
        m->error = *err;
        __atomic_store_n(&m->failed, 1, __ATOMIC_RELAXED);
    }
    unlock(m);
}

heft_status heft_meter_end(heft_meter *m, heft_error *err)
{
    if (m->failed) {
        if (err)
            *err = m->error;
        return m->error.status;
    }
    if (m->stopped)
        return heft_error_plain(err, HEFT_E_CANCELLED, "stopped");
    return HEFT_OK;
}
