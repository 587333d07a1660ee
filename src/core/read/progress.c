/* progress.c - progress reports and cancellation for several workers. */
#include "core/read/progress.h"

#include "base/compiler.h"
#include "core/read/file.h"

/* Add to the counter; return the sum, UINT64_MAX if the sum overflows.  A lock, because not every
 * processor adds 64 bits atomically. */
static uint64_t add(heft_read_counter *c, uint64_t bytes)
{
    heft_spin_lock(&c->lock);
    c->bytes = c->bytes > UINT64_MAX - bytes ? UINT64_MAX : c->bytes + bytes;
    uint64_t sum = c->bytes;
    heft_spin_unlock(&c->lock);
    return sum;
}

static heft_status limit_error(const heft_file *f, uint32_t part, heft_error *err)
{
    const heft_index *x = &f->x;
    uint32_t tensor = part == HEFT_NONE ? HEFT_NONE : heft_ix_owner(x, part);
    heft_status st = HEFT_E_LIMIT;
    if (tensor == HEFT_NONE)
        heft_error_plain(err, st, "the limit of %U bytes to read (--max-bytes) is reached",
                         x->limits.read_bytes);
    else if (heft_ix_part_row_at(x, part)->length == HEFT_UNKNOWN_LENGTH)
        heft_error_plain(err, st,
                         "tensor %q, of unknown length: the limit of %U bytes to read "
                         "(--max-bytes) is reached",
                         heft_ix_name(x, tensor), x->limits.read_bytes);
    else
        heft_error_plain(
            err, st, "tensor %q, %U bytes: the limit of %U bytes to read (--max-bytes) is reached",
            heft_ix_name(x, tensor), heft_tensor_bytes(f, tensor), x->limits.read_bytes);
    return heft_error_rule(err, st, "heft/limit-read");
}

heft_status heft_file_count_read(const heft_file *f, uint32_t part, uint64_t bytes, heft_error *err)
{
    const heft_limits *l = &f->x.limits;
    if (!l->read_bytes || add(l->read_counter, bytes) <= l->read_bytes)
        return HEFT_OK;
    heft_file_enter(f); /* the name may be mapped */
    return heft_file_leave_after(f, limit_error(f, part, err), err);
}

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
