/* share_folder.c - shares of a conversion beside the output.  The folder "OUT.shares" has
 *
 *   plan               the id of the plan; linked to this name once, before any data
 *   data               the output, filled in any order
 *   share-00002-of-8   the record of share 2, linked to this name after the data are on disk
 *   done               empty; created before `data` becomes the output
 *
 * `data` becomes the output; a process that finds `data` gone is done. */
#include "local/share_store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "port/save/set_journal.h"
#include "port/system/disk.h"

/* ---- the file `data` in the folder of shares ---- */

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

/* Open `data` as a sink; number 0: finishing gives the file the name of the output.
 *   HEFT_E_NOTFOUND  the file does not exist, and is not created, because number is 0 or shares
 *                    have records */
static heft_status share_data_open(heft_sink **out, heft_share_store *s, uint32_t number,
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

/* ---- opening ---- */

static heft_status find_output(heft_share_folder *f, const char *path, heft_error *err)
{
    f->exists = !stat(path, &f->old);
    if (!f->exists && errno != ENOENT)
        return heft_os_error(err, errno, "cannot be created");
    if (f->exists && S_ISDIR(f->old.st_mode))
        return heft_os_error(err, EISDIR, "cannot be created");
    if (f->exists && !S_ISREG(f->old.st_mode))
        return heft_error_plain(err, HEFT_E_ARGUMENT, "shares need a regular file as the output");
    if (f->exists && !(f->base.flags & HEFT_SINK_REPLACE))
        return heft_error_exists(err, HEFT_E_ARGUMENT);
    f->path = f->exists ? realpath(path, NULL) : strdup(path);
    if (!f->path)
        return heft_os_error(err, errno, "cannot be created");
    const char *slash = strrchr(f->path, '/');
    f->name = slash ? slash + 1 : f->path;
    int n = snprintf(f->folder_name, sizeof f->folder_name, "%s.shares", f->name);
    if (!*f->name || n < 0 || n >= (int)sizeof f->folder_name)
        return heft_os_error(err, *f->name ? ENAMETOOLONG : EISDIR, "cannot be created");
    f->syncs = f->base.flags & HEFT_SINK_SYNC ||
               (f->exists && !(f->base.flags & HEFT_SINK_NO_SYNC));
    return HEFT_OK;
}

static heft_status open_folder(heft_share_folder *f, bool creates, heft_error *err)
{
    f->dir = heft_open_folder_of(f->path, O_RDONLY);
    if (f->dir < 0)
        return heft_os_error(err, errno, "its directory cannot be opened");
    if (creates && mkdirat(f->dir, f->folder_name, 0777) && errno != EEXIST)
        return heft_os_error(err, errno, "the folder for its shares cannot be created");
    f->folder = heft_open_at(f->dir, f->folder_name,
                             O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (f->folder >= 0)
        return HEFT_OK;
    if (errno == ENOENT)
        return heft_error_plain(err, HEFT_E_NOTFOUND,
                                "there are no shares: the folder '%s' does not exist",
                                f->folder_name);
    return heft_os_error(err, errno, "the folder with its shares cannot be opened");
}

/* ---- small files ---- */

/* Read a whole small file; the caller frees *out.  HEFT_E_NOTFOUND: the file does not exist. */
static heft_status read_text(const heft_share_folder *f, const char *name, char **out, size_t *len,
                             heft_error *err)
{
    struct stat info;
    *out = NULL;
    int fd = heft_open_at(f->folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? heft_error_plain(err, HEFT_E_NOTFOUND, "%s is missing", name)
                               : heft_os_error(err, errno, "a record of a share cannot be opened");
    heft_status st = HEFT_OK;
    if (fstat(fd, &info))
        st = heft_os_error(err, errno, "a record of a share cannot be read");
    else if (!S_ISREG(info.st_mode) || info.st_size > HEFT_SHARE_MAX_RECORD)
        st = heft_error_plain(err, HEFT_E_ARGUMENT, "%s is no record of a share", name);
    *len = st ? 0 : (size_t)info.st_size;
    *out = st ? NULL : malloc(*len + 1);
    if (!st && !*out)
        st = heft_error_no_memory(err, "for a record");
    if (!st)
        st = heft_disk_read_all(f->disk, fd, 0, *out, *len, err);
    if (!st)
        (*out)[*len] = '\0';
    if (st) {
        free(*out);
        *out = NULL;
    }
    close(fd);
    return st;
}

/* Make a complete file appear, unless a file of that name exists. */
static heft_status write_text(const heft_share_folder *f, const char *name, const void *text,
                              size_t len, heft_error *err)
{
    heft_staged s;
    int os = heft_staged_open(&s, f->disk, f->folder, name, 0666);
    if (os)
        return heft_os_error(err, os, "a record of a share cannot be created");
    heft_status st = heft_disk_write_all(f->disk, s.fd, 0, text, len, err);
    if (!st && f->syncs && heft_disk_sync(f->disk, s.fd))
        st = heft_os_error(err, errno, "writing to disk failed");
    os = st ? 0 : heft_staged_commit(&s, name);
    if (os && os != EEXIST)
        st = heft_os_error(err, os, "a record of a share cannot be named");
    os = heft_staged_close(&s);
    if (!st && os)
        st = heft_os_error(err, os, "writing failed");
    if (!st && f->syncs && heft_disk_sync_dir(f->disk, f->folder))
        st = heft_os_error(err, errno, "writing to disk failed");
    return st;
}

/* ---- progress of all shares ---- */

heft_status heft_share_count_missing(uint32_t *out, const heft_share_folder *f, heft_error *err)
{
    heft_status st = HEFT_OK;
    *out = 0;
    for (uint32_t i = 1; i <= f->base.count && !st; i++) {
        char name[HEFT_SHARE_NAME_BYTES];
        bool exists = false;
        heft_share_record_name(name, i, f->base.count);
        st = heft_name_exists(&exists, f->folder, name, err);
        *out += !exists;
    }
    return st;
}

static heft_status count_missing(uint32_t *out, heft_share_store *s, heft_error *err)
{
    return heft_share_count_missing(out, (heft_share_folder *)s, err);
}

/* The data have left the folder after the file "done" was created, or the output differs from the
 * file before. */
static bool is_completed(heft_share_store *s)
{
    const heft_share_folder *f = (const heft_share_folder *)s;
    struct stat info;
    bool has_left = fstatat(f->folder, "data", &info, AT_SYMLINK_NOFOLLOW) && errno == ENOENT;
    if (!has_left || fstatat(f->dir, f->name, &info, 0))
        return false;
    if (!fstatat(f->folder, heft_share_done, &(struct stat){ 0 }, AT_SYMLINK_NOFOLLOW))
        return true;
    return !f->exists || info.st_ino != f->old.st_ino || info.st_dev != f->old.st_dev;
}

/* ---- the store ---- */

static heft_status open_store(heft_share_store *s, bool creates, heft_error *err)
{
    heft_share_folder *f = (heft_share_folder *)s;
    heft_recovery earlier;
    HEFT_TRY(open_folder(f, creates, err));
    return heft_shard_set_recover(&earlier, f->disk, f->dir, err);
}

static heft_status publish_plan(heft_share_store *s, const char *text, size_t len, heft_error *err)
{
    return write_text((heft_share_folder *)s, "plan", text, len, err);
}

static heft_status read_plan(heft_share_store *s, char **out, size_t *len, heft_error *err)
{
    return read_text((heft_share_folder *)s, "plan", out, len, err);
}

static heft_status read_record(heft_share_store *s, uint32_t number, char **out, size_t *len,
                               heft_error *err)
{
    char name[HEFT_SHARE_NAME_BYTES];
    heft_share_record_name(name, number, s->count);
    return read_text((heft_share_folder *)s, name, out, len, err);
}

static heft_status publish_record(heft_share_store *s, uint32_t number, heft_str record,
                                  heft_error *err)
{
    char name[HEFT_SHARE_NAME_BYTES];
    heft_share_record_name(name, number, s->count);
    return write_text((heft_share_folder *)s, name, record.ptr, record.len, err);
}

static void remove_record(heft_share_store *s, uint32_t number)
{
    const heft_share_folder *f = (const heft_share_folder *)s;
    char name[HEFT_SHARE_NAME_BYTES];
    heft_share_record_name(name, number, s->count);
    f->disk->remove(f->folder, name);
}

static heft_status remove_all(heft_share_store *s, bool with_data, heft_error *err)
{
    const heft_share_folder *f = (const heft_share_folder *)s;
    for (uint32_t i = 1; i <= s->count; i++)
        remove_record(s, i);
    if (with_data && s->count) /* without a plan there are no data of shares */
        f->disk->remove(f->folder, "data");
    if (s->count)
        f->disk->remove(f->folder, "plan");
    f->disk->remove(f->folder, heft_share_done);
    heft_staged_remove_stale(f->disk, f->folder, "");
    if (!unlinkat(f->dir, f->folder_name, AT_REMOVEDIR) || errno == ENOENT)
        return HEFT_OK;
    return heft_os_error(err, errno,
                         s->count ? "the folder with its shares cannot be removed"
                                  : "the folder with its shares has no plan of shares and cannot "
                                    "be removed (remove the folder yourself)");
}

static void close_store(heft_share_store *s)
{
    heft_share_folder *f = (heft_share_folder *)s;
    if (f->folder >= 0)
        close(f->folder);
    if (f->dir >= 0)
        close(f->dir);
    free(f->path);
    free(f);
}

static const heft_share_store_ops ops = {
    .open = open_store,
    .publish_plan = publish_plan,
    .read_plan = read_plan,
    .read_record = read_record,
    .publish_record = publish_record,
    .remove_record = remove_record,
    .count_missing = count_missing,
    .data_open = share_data_open,
    .is_completed = is_completed,
    .remove_all = remove_all,
    .close = close_store,
};

heft_status heft_share_folder_new(heft_share_store **out, const char *path, uint32_t flags,
                                  heft_error *err)
{
    heft_share_folder *f = calloc(1, sizeof *f);
    *out = NULL;
    if (!f)
        return heft_error_no_memory(err, "for shares");
    f->base = (heft_share_store){ .ops = &ops, .flags = flags };
    f->disk = &heft_system_disk;
    f->dir = f->folder = -1;
    heft_status st = find_output(f, path, err);
    if (st)
        close_store(&f->base);
    else
        *out = &f->base;
    return st;
}
