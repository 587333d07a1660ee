/* copy_range.c - data that stays as aligned to the file system's blocks as it was is not copied but shared, where the
 * file system can do that; else it is copied without passing through this program, where the system can do that. */
#include "port/copy_range.h"

#include <errno.h>
#include <stdlib.h>

enum {
    BLOCK = 4096,
    STEP = 16 << 20, /* of copying, between two calls of progress */
    BUFFER = 1 << 20
};

static heft_edit_extent part_of(heft_edit_extent p, uint64_t from, uint64_t len)
{
    return (heft_edit_extent){ p.at + from, len, p.from + from, NULL, p.file };
}

static heft_status step(heft_range_copier *m, uint64_t bytes, heft_error *err)
{
    m->done += bytes;
    if (!m->progress || m->progress(m->progress_ctx, m->done, m->total))
        return HEFT_OK;
    return heft_error_plain(err, HEFT_E_CANCELLED, "%s", m->stopped);
}

static heft_status copy_through(heft_range_copier *m, int from, heft_edit_extent p, heft_error *err)
{
    heft_status st = HEFT_OK;
    if (!m->buf)
        m->buf = malloc(BUFFER);
    if (!m->buf)
        return heft_error_no_memory(err, "to copy");
    for (uint64_t at = 0, n; at < p.length && !st; at += n) {
        n = p.length - at < BUFFER ? p.length - at : BUFFER;
        st = heft_target_read(from, p.from + at, m->buf, (size_t)n, err);
        if (!st)
            st = heft_disk_write_all(m->disk, m->to, p.at + at, m->buf, (size_t)n, err);
        if (!st)
            st = step(m, n, err);
    }
    return st;
}

static bool cannot(int os)
{
    return os == ENOSYS || os == EXDEV || os == EINVAL || os == EOPNOTSUPP || os == EBADF ||
           os == EPERM || os == ENOTTY || os == ETXTBSY;
}

static heft_status copy(heft_range_copier *m, int from, heft_edit_extent p, heft_error *err)
{
    while (p.length && !m->no_copy) {
        size_t most = p.length < STEP ? (size_t)p.length : STEP;
        ssize_t n = heft_disk_copy(m->disk, from, (off_t)p.from, m->to, (off_t)p.at, most);
        if (n < 0 && !cannot(errno))
            return heft_os_error(err, errno, "copying failed");
        m->no_copy = n <= 0;
        if (m->no_copy)
            break;
        p = part_of(p, (uint64_t)n, p.length - (uint64_t)n);
        heft_status st = step(m, (uint64_t)n, err);
        if (st)
            return st;
    }
    return copy_through(m, from, p, err);
}

/* Whole blocks in the middle are shared; what stands before and behind them is copied. */
heft_status heft_copy_range(heft_range_copier *m, int from, heft_edit_extent p, heft_error *err)
{
    uint64_t head = (BLOCK - p.from % BLOCK) % BLOCK;
    uint64_t middle = p.length > head ? (p.length - head) / BLOCK * BLOCK : 0;
    if (m->no_share || p.from % BLOCK != p.at % BLOCK || !middle)
        return copy(m, from, p, err);
    heft_edit_extent shared = part_of(p, head, middle);
    if (heft_disk_reflink(m->disk, from, (off_t)shared.from, m->to, (off_t)shared.at,
                          (size_t)middle)) {
        if (!cannot(errno))
            return heft_os_error(err, errno, "copying failed");
        m->no_share = true;
        return copy(m, from, p, err);
    }
    heft_status st = step(m, middle, err);
    if (!st)
        st = copy(m, from, part_of(p, 0, head), err);
    return st ? st : copy(m, from, part_of(p, head + middle, p.length - head - middle), err);
}

void heft_range_copier_end(heft_range_copier *m)
{
    free(m->buf);
    m->buf = NULL;
}
