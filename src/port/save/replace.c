/* replace.c - write the edited file as a new file, which replaces the old file once it is complete
 * and on disk. */
#include <errno.h>

#include "port/save/staged.h"
#include "port/system/copy_range.h"

typedef struct replacement {
    const heft_target *t;
    heft_staged staged;
    heft_range_copier copier;
} replacement;

static heft_status write_extents(replacement *r, const heft_edit *e, uint64_t *copied,
                                 heft_error *err)
{
    const heft_edit_extent *p;
    size_t n = heft_edit_extents(e, &p);
    heft_status st = HEFT_OK;
    for (size_t i = 0; i < n; i++)
        r->copier.total += p[i].data ? 0 : p[i].length;
    for (size_t i = 0; i < n && !st; i++)
        st = p[i].data
                 ? heft_target_write(r->t, r->staged.fd, p[i].at, p[i].data, (size_t)p[i].length,
                                     err)
                 : heft_copy_range(&r->copier, p[i].file ? r->t->added_fd : r->t->fd, p[i], err);
    *copied = r->copier.total;
    return st;
}

heft_status heft_replace(const heft_target *t, const heft_edit_task *task, uint64_t *copied,
                         heft_error *err)
{
    replacement r = { .t = t,
                      .copier = { .disk = t->disk,
                                  .progress = task->progress,
                                  .progress_ctx = task->progress_ctx,
                                  .cancelled_message = task->cancelled_message } };
    heft_status st = HEFT_OK;
    int os = heft_staged_open(&r.staged, t->disk, t->dir, t->name, 0600);
    if (os)
        st = heft_os_error(err, os, "a new file cannot be created in its directory");
    r.copier.to = r.staged.fd;
    if (!st)
        st = write_extents(&r, task->edit, copied, err);
    if (!st)
        st = heft_copy_file_attributes(r.staged.fd, t, err);
    if (!st && (heft_disk_sync(t->disk, r.staged.fd) || heft_disk_flush(t->disk, r.staged.fd)))
        st = heft_os_error(err, errno, "writing to disk failed");
    if (!st)
        st = heft_target_check_unchanged(t, err);
    os = st ? 0 : heft_staged_replace(&r.staged, t->name);
    if (os)
        st = heft_os_error(err, os, "cannot be replaced");
    if (!st)
        st = heft_disk_sync_dir_after_save(t->disk, t->dir, err);
    os = heft_staged_close(&r.staged);
    if (os && !st)
        st = heft_os_error(err, os, "saved, but closing it failed");
    heft_range_copier_end(&r.copier);
    return st;
}
