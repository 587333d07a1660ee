/* copy_range.c - copy bytes between open files by the cheapest available method: reflink whole
 * blocks if source and destination have the same block alignment, else copy_file_range(), else a
 * buffer. */
#include "port/system/disk.h"

#include <errno.h>
#include <stdlib.h>

enum {
    BLOCK = 4096,
    PROGRESS_STEP = 16 << 20, /* bytes copied between two calls of progress */
    BUFFER_SIZE = 1 << 20
};

static heft_edit_extent subrange(heft_edit_extent extent, uint64_t from, uint64_t len)
{
    return (heft_edit_extent){ extent.at + from, len, extent.from + from, NULL, extent.file };
}

static heft_status report_progress(heft_range_copier *copier, uint64_t bytes, heft_error *err)
{
    copier->done += bytes;
    if (!copier->progress || copier->progress(copier->progress_ctx, copier->done, copier->total))
        return HEFT_OK;
    return heft_error_plain(err, HEFT_E_CANCELLED, "%s", copier->cancelled_message);
}

static heft_status copy_buffered(heft_range_copier *copier, int from, heft_edit_extent extent,
                                 heft_error *err)
{
    if (!copier->buf)
        copier->buf = malloc(BUFFER_SIZE);
    if (!copier->buf)
        return heft_error_no_memory(err, "to copy");
    for (uint64_t at = 0, n; at < extent.length; at += n) {
        n = extent.length - at < BUFFER_SIZE ? extent.length - at : BUFFER_SIZE;
        HEFT_TRY(heft_disk_read_all(&heft_system_disk, from, extent.from + at, copier->buf,
                                    (size_t)n, err));
        HEFT_TRY(heft_disk_write_all(copier->disk, copier->to, extent.at + at, copier->buf,
                                     (size_t)n, err));
        HEFT_TRY(report_progress(copier, n, err));
    }
    return HEFT_OK;
}

static bool is_unsupported(int os)
{
    return os == ENOSYS || os == EXDEV || os == EINVAL || os == EOPNOTSUPP || os == EBADF ||
           os == EPERM || os == ENOTTY || os == ETXTBSY;
}

static heft_status copy_in_kernel(heft_range_copier *copier, int from, heft_edit_extent extent,
                                  heft_error *err)
{
    while (extent.length && !copier->no_copy) {
        size_t max = extent.length < PROGRESS_STEP ? (size_t)extent.length : PROGRESS_STEP;
        ssize_t n = heft_disk_copy(copier->disk, from, (off_t)extent.from, copier->to,
                                   (off_t)extent.at, max);
        if (n < 0 && !is_unsupported(errno))
            return heft_os_error(err, errno, "copying failed");
        copier->no_copy = n <= 0;
        if (copier->no_copy)
            break;
        extent = subrange(extent, (uint64_t)n, extent.length - (uint64_t)n);
        HEFT_TRY(report_progress(copier, (uint64_t)n, err));
    }
    return copy_buffered(copier, from, extent, err);
}

/* Reflink the whole blocks in the middle; copy the partial blocks at both ends. */
heft_status heft_copy_range(heft_range_copier *copier, int from, heft_edit_extent extent,
                            heft_error *err)
{
    uint64_t head = (BLOCK - extent.from % BLOCK) % BLOCK;
    uint64_t middle = extent.length > head ? (extent.length - head) / BLOCK * BLOCK : 0;
    if (copier->no_reflink || extent.from % BLOCK != extent.at % BLOCK || !middle)
        return copy_in_kernel(copier, from, extent, err);
    heft_edit_extent blocks = subrange(extent, head, middle);
    if (heft_disk_reflink(copier->disk, from, (off_t)blocks.from, copier->to, (off_t)blocks.at,
                          (size_t)middle)) {
        if (!is_unsupported(errno))
            return heft_os_error(err, errno, "copying failed");
        copier->no_reflink = true;
        return copy_in_kernel(copier, from, extent, err);
    }
    heft_status st = report_progress(copier, middle, err);
    if (!st)
        st = copy_in_kernel(copier, from, subrange(extent, 0, head), err);
    return st ? st
              : copy_in_kernel(copier, from,
                               subrange(extent, head + middle, extent.length - head - middle), err);
}

void heft_range_copier_end(heft_range_copier *copier)
{
    free(copier->buf);
    copier->buf = NULL;
}
