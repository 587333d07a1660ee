/* share_data.c - the file `data` in the folder of shares: a sink that each share fills in part, and
 * that the last step gives the name of the output. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "local/share_folder.h"
#include "port/save/set_journal.h"

/* Created before `data` leaves the folder, so that a later process can tell a completed output from
 * lost data. */
const char heft_share_done[] = "done";

typedef struct data_sink {
    heft_staged_sink s;
    heft_share_folder *f;
    bool is_last;    /* finishing gives the file the final name */
    bool is_creator; /* this process has created the file */
} data_sink;

/* All shares announce the same size.  The share that creates the file reserves the blocks of all
 * shares. */
static heft_status set_size(heft_sink *s, uint64_t size, heft_error *err)
{
    data_sink *d = (data_sink *)s;
    struct stat info;
    d->f->base.result.bytes = size;
    int os = d->is_creator ? heft_disk_reserve(d->f->disk, d->s.staged.fd, size) : 0;
    if (os)
        return heft_os_error(err, os, "cannot reserve disk space");
    if (fstat(d->s.staged.fd, &info))
        return heft_os_error(err, errno, "the size of its data cannot be read");
    if ((uint64_t)info.st_size == size)
        return HEFT_OK;
    if (d->is_last) /* every share has set this size */
        return heft_error_plain(err, HEFT_E_ARGUMENT,
                                "the data in '%s' were truncated or extended; remove the folder, "
                                "and write all shares again",
                                d->f->folder_name);
    if (!heft_disk_truncate(d->f->disk, d->s.staged.fd, (off_t)size))
        return HEFT_OK;
    return heft_os_error(err, errno, "cannot be extended to its size");
}

static void discard_data(heft_sink *s)
{
    data_sink *d = (data_sink *)s;
    (void)heft_staged_close(&d->s.staged);
    free(d);
}

/* Give `data` the name of the output, unless a different process has. */
static heft_status name_output(heft_share_folder *f, heft_error *err)
{
    char from[NAME_MAX + sizeof "/data"];
    snprintf(from, sizeof from, "%s/data", f->folder_name);
    int failed = f->base.flags & HEFT_SINK_REPLACE
                     ? f->disk->rename(f->dir, from, f->name)
                     : heft_disk_rename_new(f->disk, f->dir, from, f->name);
    if (!failed || errno == ENOENT)
        return HEFT_OK;
    if (errno == EEXIST)
        return heft_error_exists(err, HEFT_E_ARGUMENT);
    return heft_os_error(err, errno, "cannot be renamed to its final name");
}

static heft_status commit(data_sink *d, heft_error *err)
{
    heft_share_folder *f = d->f;
    heft_journal_retirement r;
    heft_error retire_error;
    int os = f->exists ? heft_copy_access(f->disk, d->s.staged.fd, &f->old) : 0;
    if (os)
        return heft_os_error(err, os, "cannot be given the permissions of the old file");
    HEFT_TRY(heft_journal_retire_begin(&r, f->disk, f->dir, f->name, d->s.staged.fd, err));
    int done = heft_disk_create(f->disk, f->folder, heft_share_done,
                                O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (done >= 0)
        close(done);
    heft_status st = name_output(f, err);
    bool is_named = !st;
    if (!st && f->syncs)
        st = heft_disk_sync_dir_after_save(f->disk, f->dir, err);
    heft_status retired = heft_journal_retire_end(&r, is_named, st ? &retire_error : err);
    return st ? st : retired;
}

static heft_status finish_data(heft_sink *s, heft_error *err)
{
    data_sink *d = (data_sink *)s;
    const heft_disk *disk = d->f->disk;
    heft_status st = HEFT_OK;
    if (d->s.syncs && heft_disk_sync(disk, d->s.staged.fd))
        st = heft_os_error(err, errno, "writing to disk failed");
    if (!st && heft_disk_flush(disk, d->s.staged.fd))
        st = heft_os_error(err, errno, "writing failed");
    if (!st && d->is_last)
        st = commit(d, err);
    discard_data(s);
    return st;
}

static const heft_sink_ops data_ops = {
    .size = sizeof(heft_sink_ops),
    .write_at = heft_staged_write_at,
    .reserve = set_size,
    .finish = finish_data,
    .discard = discard_data,
    .reflink = heft_staged_reflink,
    .read_at = heft_staged_read_at,
    .scratch = heft_staged_scratch,
};

/* Return true if no share has a record; otherwise false with errno, which is ENOENT if a share has
 * one. */
static bool has_no_records(const heft_share_folder *f)
{
    heft_error why;
    uint32_t missing;
    heft_status st = heft_share_count_missing(&missing, f, &why);
    errno = st ? why.os : ENOENT;
    return !st && missing == f->base.count;
}

/* Open or create `data`.  Records vouch for bytes, and a new file would lack the bytes: no file
 * is created where records exist. */
static int open_or_create(data_sink *d, const heft_share_folder *f, bool creates)
{
    enum { FLAGS = O_RDWR | O_NOFOLLOW | O_CLOEXEC };
    int fd = heft_disk_create(f->disk, f->folder, "data", FLAGS, 0666);
    if (fd >= 0 || errno != ENOENT || !creates || !has_no_records(f))
        return fd;
    fd = heft_disk_create(f->disk, f->folder, "data", FLAGS | O_CREAT | O_EXCL, 0666);
    d->is_creator = fd >= 0;
    return fd >= 0 || errno != EEXIST ? fd
                                      : heft_disk_create(f->disk, f->folder, "data", FLAGS, 0666);
}

heft_status heft_share_data_open(heft_sink **out, heft_share_store *s, uint32_t number,
                                 heft_error *err)
{
    heft_share_folder *f = (heft_share_folder *)s;
    data_sink *d = calloc(1, sizeof *d);
    if (!d)
        return heft_error_no_memory(err, "for a sink");
    d->s.base.ops = &data_ops;
    d->s.staged = (heft_staged){ .disk = f->disk, .dir = f->folder };
    d->s.syncs = f->syncs;
    d->f = f;
    d->is_last = !number;
    d->s.staged.fd = open_or_create(d, f, !d->is_last);
    *out = &d->s.base;
    if (d->s.staged.fd >= 0)
        return HEFT_OK;
    int os = errno;
    free(d);
    return os == ENOENT ? heft_error_plain(err, HEFT_E_NOTFOUND,
                                           "the data in '%s' are gone, but not the records; remove "
                                           "the folder, and write all shares again",
                                           f->folder_name)
                        : heft_os_error(err, os, "the data of the shares cannot be opened");
}
