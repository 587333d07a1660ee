/* share_folder.c - shares of a conversion beside the output.  The folder "OUT.shares" has
 *
 *   plan               the id of the plan; linked to this name once, before any data
 *   data               the output, filled in any order
 *   share-00002-of-8   the record of share 2, linked to this name after the data are on disk
 *
 * The process that finds all records writes the rest of `data`, gives the file the name of the
 * output, and removes the folder, records first.  Two such processes write equal bytes; a process
 * that finds `data` gone is done. */
#include <heft/share.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "port/set_journal.h"
#include "port/sink_file.h"

enum { NAME_BYTES = 40, PLAN_BYTES = 128, MAX_RECORD_BYTES = 1 << 30 };

typedef struct share_folder {
    const heft_disk *disk;
    heft_share_plan *plan;
    uint32_t count, flags;
    char *path;       /* path of the output, symbolic links resolved; owned */
    const char *name; /* last component of `path` */
    char folder_name[NAME_MAX + 1];
    int dir, folder; /* directory of the output; "OUT.shares" */
    bool exists;     /* the output exists, and will be replaced */
    struct stat old; /* attributes of the existing output */
    bool syncs;
    heft_share_result result;
} share_folder;

static void record_name(char name[NAME_BYTES], uint32_t number, uint32_t count)
{
    snprintf(name, NAME_BYTES, "share-%05u-of-%u", (unsigned)number, (unsigned)count);
}

/* ---- opening ---- */

static heft_status find_output(share_folder *f, const char *path, heft_error *err)
{
    f->exists = !stat(path, &f->old);
    if (!f->exists && errno != ENOENT)
        return heft_os_error(err, errno, "cannot be created");
    if (f->exists && S_ISDIR(f->old.st_mode))
        return heft_os_error(err, EISDIR, "cannot be created");
    if (f->exists && !S_ISREG(f->old.st_mode))
        return heft_error_plain(err, HEFT_E_ARGUMENT, "shares need a regular file as the output");
    if (f->exists && !(f->flags & HEFT_SINK_REPLACE))
        return heft_error_exists(err, HEFT_E_ARGUMENT);
    f->path = f->exists ? realpath(path, NULL) : strdup(path);
    if (!f->path)
        return heft_os_error(err, errno, "cannot be created");
    const char *slash = strrchr(f->path, '/');
    f->name = slash ? slash + 1 : f->path;
    int n = snprintf(f->folder_name, sizeof f->folder_name, "%s.shares", f->name);
    if (!*f->name || n < 0 || n >= (int)sizeof f->folder_name)
        return heft_os_error(err, *f->name ? ENAMETOOLONG : EISDIR, "cannot be created");
    f->syncs = f->flags & HEFT_SINK_SYNC || (f->exists && !(f->flags & HEFT_SINK_NO_SYNC));
    return HEFT_OK;
}

static heft_status open_folder(share_folder *f, bool creates, heft_error *err)
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

static void close_folder(share_folder *f)
{
    if (f->folder >= 0)
        close(f->folder);
    if (f->dir >= 0)
        close(f->dir);
    free(f->path);
    heft_share_close(f->plan);
}

/* ---- small files ---- */

/* Read a whole small file; the caller frees *out.  HEFT_E_NOTFOUND: the file does not exist. */
static heft_status read_text(const share_folder *f, const char *name, char **out, size_t *len,
                             heft_error *err)
{
    struct stat info;
    *out = NULL;
    int fd = heft_open_at(f->folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? heft_error_plain(err, HEFT_E_NOTFOUND, "%s is missing", name)
                               : heft_os_error(err, errno, "a record of a share cannot be opened");
    heft_status st = HEFT_OK;
    if (fstat(fd, &info) || !S_ISREG(info.st_mode) || info.st_size > MAX_RECORD_BYTES)
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
static heft_status write_text(const share_folder *f, const char *name, const void *text, size_t len,
                              heft_error *err)
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

/* ---- the plan ---- */

static heft_status refuse_other_plan(const share_folder *f, const char *found, heft_error *err)
{
    unsigned count = 0;
    const char *line = strstr(found, "\ncount ");
    if (!line || sscanf(line, "\ncount %9u", &count) != 1)
        count = 0;
    return heft_error_plain(err, HEFT_E_ARGUMENT,
                            "'%s' has shares of another plan (%U shares): another input, other "
                            "options or another number; repeat that command, or remove the folder",
                            f->folder_name, (uint64_t)count);
}

/* Publish the id of the plan, or compare the id with the published id. */
static heft_status agree_on_plan(const share_folder *f, bool creates, heft_error *err)
{
    char text[PLAN_BYTES], *found;
    heft_hash id = heft_share_id(f->plan);
    size_t len = (size_t)snprintf(text, sizeof text, "heft shares 1\nplan "), found_len;
    for (size_t i = 0; i < sizeof id.bytes; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, "%02x", id.bytes[i]);
    len += (size_t)snprintf(text + len, sizeof text - len, "\ncount %u\n", (unsigned)f->count);
    heft_status st = creates ? write_text(f, "plan", text, len, err) : HEFT_OK;
    if (!st)
        st = read_text(f, "plan", &found, &found_len, err);
    if (st)
        return st;
    if (found_len != len || memcmp(found, text, len) != 0)
        st = refuse_other_plan(f, found, err);
    free(found);
    return st;
}

/* ---- the data ---- */

typedef struct data_sink {
    heft_staged_sink s;
    share_folder *f;
    bool is_last;    /* finishing gives the file the final name */
    bool is_creator; /* this process has created the file */
} data_sink;

/* All shares announce the same size.  The share that creates the file reserves the blocks of all
 * shares. */
static heft_status set_size(heft_sink *s, uint64_t size, heft_error *err)
{
    data_sink *d = (data_sink *)s;
    struct stat info;
    d->f->result.bytes = size;
    int os = d->is_creator ? heft_disk_reserve(d->f->disk, d->s.staged.fd, size) : 0;
    if (os) {
        atomic_store(&d->s.has_failed, true);
        return heft_os_error(err, os, "cannot reserve disk space");
    }
    if (!fstat(d->s.staged.fd, &info) && (uint64_t)info.st_size == size)
        return HEFT_OK;
    if (!heft_disk_truncate(d->f->disk, d->s.staged.fd, (off_t)size))
        return HEFT_OK;
    atomic_store(&d->s.has_failed, true);
    return heft_os_error(err, errno, "cannot be extended to its size");
}

static void discard_data(heft_sink *s)
{
    data_sink *d = (data_sink *)s;
    d->f->result.about_output = atomic_load(&d->s.has_failed);
    (void)heft_staged_close(&d->s.staged);
    free(d);
}

/* Give `data` the name of the output, unless a different process has. */
static heft_status name_output(share_folder *f, heft_error *err)
{
    char from[NAME_MAX + NAME_BYTES];
    struct stat info;
    snprintf(from, sizeof from, "%s/data", f->folder_name);
    int failed = f->flags & HEFT_SINK_REPLACE ? f->disk->rename(f->dir, from, f->name)
                                              : f->disk->rename_new(f->dir, from, f->name);
    if (failed && errno == EINVAL) { /* no support for RENAME_NOREPLACE */
        bool is_taken = !fstatat(f->dir, f->name, &info, AT_SYMLINK_NOFOLLOW);
        errno = EEXIST;
        failed = is_taken ? -1 : f->disk->rename(f->dir, from, f->name);
    }
    if (!failed || errno == ENOENT)
        return HEFT_OK;
    if (errno == EEXIST)
        return heft_error_exists(err, HEFT_E_ARGUMENT);
    return heft_os_error(err, errno, "cannot be renamed to its final name");
}

static heft_status commit(data_sink *d, heft_error *err)
{
    share_folder *f = d->f;
    heft_journal_retirement r;
    heft_error retire_error;
    int os = f->exists ? heft_copy_access(f->disk, d->s.staged.fd, &f->old) : 0;
    if (os)
        return heft_os_error(err, os, "cannot be given the permissions of the old file");
    heft_status st = heft_journal_retire_begin(&r, f->disk, f->dir, f->name, d->s.staged.fd, err);
    if (st)
        return st;
    st = name_output(f, err);
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
    if (st)
        atomic_store(&d->s.has_failed, true);
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

/* HEFT_E_NOTFOUND: the file does not exist, and flags do not create the file. */
static heft_status open_data(heft_sink **out, share_folder *f, int flags, bool is_last,
                             heft_error *err)
{
    data_sink *d = calloc(1, sizeof *d);
    if (!d)
        return heft_error_no_memory(err, "for a sink");
    d->s.base.ops = &data_ops;
    d->s.staged = (heft_staged){ .disk = f->disk, .dir = f->folder };
    d->s.syncs = f->syncs;
    d->f = f;
    d->is_last = is_last;
    enum { FLAGS = O_RDWR | O_NOFOLLOW | O_CLOEXEC };
    int exclusive = flags & O_CREAT ? O_CREAT | O_EXCL : 0;
    d->s.staged.fd = heft_disk_create(f->disk, f->folder, "data", FLAGS | exclusive, 0666);
    d->is_creator = exclusive && d->s.staged.fd >= 0;
    if (d->s.staged.fd < 0 && exclusive && errno == EEXIST)
        d->s.staged.fd = heft_disk_create(f->disk, f->folder, "data", FLAGS, 0666);
    *out = &d->s.base;
    if (d->s.staged.fd >= 0)
        return HEFT_OK;
    int os = errno;
    free(d);
    return os == ENOENT ? heft_error_plain(err, HEFT_E_NOTFOUND, "the data of the shares are gone")
                        : heft_os_error(err, os, "the data of the shares cannot be opened");
}

/* ---- a share ---- */

static heft_status write_share(share_folder *f, uint32_t number, heft_error *err)
{
    char name[NAME_BYTES], *text;
    size_t len;
    heft_sink *sink;
    heft_blob record = { NULL, 0, NULL };
    f->result.share_bytes = heft_share_range(f->plan, number).length;
    record_name(name, number, f->count);
    heft_status st = read_text(f, name, &text, &len, err);
    if (!st) {
        f->result.was_written = !heft_share_check(f->plan, (heft_str){ text, len }, number, NULL);
        free(text);
        if (f->result.was_written)
            return HEFT_OK;
        f->disk->remove(f->folder, name); /* damaged: write the share again */
    }
    st = open_data(&sink, f, O_CREAT, false, err);
    if (!st)
        st = heft_share_write(&record, f->plan, number, sink, err);
    if (!st)
        st = write_text(f, name, record.data, record.size, err);
    heft_blob_free(&record);
    return st;
}

/* ---- the last step ---- */

static uint32_t count_missing(const share_folder *f)
{
    char name[NAME_BYTES];
    struct stat info;
    uint32_t missing = 0;
    for (uint32_t i = 1; i <= f->count; i++) {
        record_name(name, i, f->count);
        missing += fstatat(f->folder, name, &info, AT_SYMLINK_NOFOLLOW) != 0;
    }
    return missing;
}

/* Return true if a different process has completed the output: the data have left the folder. */
static bool is_completed(const share_folder *f)
{
    struct stat info;
    return fstatat(f->folder, "data", &info, AT_SYMLINK_NOFOLLOW) && errno == ENOENT &&
           !fstatat(f->dir, f->name, &info, 0);
}

static void remove_folder(const share_folder *f)
{
    char name[NAME_BYTES];
    for (uint32_t i = 1; i <= f->count; i++) {
        record_name(name, i, f->count);
        f->disk->remove(f->folder, name);
    }
    f->disk->remove(f->folder, "plan");
    heft_staged_remove_stale(f->disk, f->folder, "");
    (void)unlinkat(f->dir, f->folder_name, AT_REMOVEDIR); /* stays if further files are inside */
}

static heft_status read_records(const share_folder *f, heft_str *records, heft_error *err)
{
    char name[NAME_BYTES], *text;
    heft_status st = HEFT_OK;
    for (uint32_t i = 0; i < f->count && !st; i++) {
        size_t len = 0;
        record_name(name, i + 1, f->count);
        st = read_text(f, name, &text, &len, err);
        records[i] = (heft_str){ text, len };
    }
    return st;
}

static heft_status join(share_folder *f, heft_error *err)
{
    heft_sink *sink;
    heft_str *records = calloc(f->count, sizeof *records);
    if (!records)
        return heft_error_no_memory(err, "for the records of shares");
    heft_status st = read_records(f, records, err);
    if (!st)
        st = open_data(&sink, f, 0, true, err);
    if (!st)
        st = heft_share_join(f->plan, records, f->count, sink, err);
    for (uint32_t i = 0; i < f->count; i++)
        free((char *)(uintptr_t)records[i].ptr);
    free(records);
    return st;
}

/* Complete the output if all records are there. */
static heft_status complete(share_folder *f, heft_error *err)
{
    f->result.missing = count_missing(f);
    heft_status st = f->result.missing ? HEFT_OK : join(f, err);
    if (f->result.missing || st == HEFT_E_NOTFOUND) {
        bool completed = is_completed(f);
        f->result.missing = completed ? 0 : f->result.missing;
        return completed ? HEFT_OK : st;
    }
    if (!st)
        remove_folder(f);
    return st;
}

/* ---- public functions ---- */

static heft_status begin(share_folder *f, const heft_file *in, const heft_format *to,
                         const char *path, uint32_t count, const heft_convert_options *opt,
                         bool creates, heft_error *err)
{
    heft_recovery earlier;
    f->count = count;
    heft_status st = find_output(f, path, err);
    f->result.about_output = st;
    if (st)
        return st;
    st = heft_share_open(&f->plan, in, to, count, opt, err);
    if (st)
        return st;
    f->result.bytes = heft_share_size(f->plan);
    st = open_folder(f, creates, err);
    if (!st)
        st = heft_shard_set_recover(&earlier, f->disk, f->dir, err);
    if (!st)
        st = agree_on_plan(f, creates, err);
    f->result.about_output = st;
    return st;
}

static heft_status check_arguments(const char *path, uint32_t flags, heft_error *err)
{
    if (!path)
        return heft_error_plain(err, HEFT_E_ARGUMENT, "the path to write to is missing");
    if (flags & HEFT_SINK_SYNC && flags & HEFT_SINK_NO_SYNC)
        return heft_error_plain(err, HEFT_E_ARGUMENT,
                                "HEFT_SINK_SYNC and HEFT_SINK_NO_SYNC exclude each other");
    return HEFT_OK;
}

heft_status heft_share_convert(heft_share_result *out, const heft_file *in, const heft_format *to,
                               const char *path, heft_share share, uint32_t flags,
                               const heft_convert_options *opt, heft_error *err)
{
    share_folder f = { .disk = &heft_system_disk, .flags = flags, .dir = -1, .folder = -1 };
    heft_error own;
    err = heft_error_begin(err, &own);
    heft_status st = check_arguments(path, flags, err);
    if (!st && share.number - 1 >= share.count)
        st = heft_error_plain(err, HEFT_E_ARGUMENT, "there is no share %U of %U",
                              (uint64_t)share.number, (uint64_t)share.count);
    if (!st)
        st = begin(&f, in, to, path, share.count, opt, true, err);
    if (!st)
        st = write_share(&f, share.number, err);
    if (!st)
        st = complete(&f, err);
    if (out)
        *out = f.result;
    close_folder(&f);
    return heft_error_end(err, st);
}

/* Read the number of shares from the plan in the folder. */
static heft_status read_count(share_folder *f, const char *path, uint32_t *count, heft_error *err)
{
    char *text;
    size_t len;
    unsigned n = 0;
    heft_status st = find_output(f, path, err);
    if (!st)
        st = open_folder(f, false, err);
    if (!st)
        st = read_text(f, "plan", &text, &len, err);
    if (st)
        return st;
    const char *line = strstr(text, "\ncount ");
    if (!line || sscanf(line, "\ncount %9u", &n) != 1 || !n || n > HEFT_SHARE_MAX_COUNT)
        st = heft_error_plain(err, HEFT_E_ARGUMENT, "the plan in '%s' is damaged", f->folder_name);
    *count = n;
    free(text);
    return st;
}

heft_status heft_share_finish(heft_share_result *out, const heft_file *in, const heft_format *to,
                              const char *path, uint32_t flags, const heft_convert_options *opt,
                              heft_error *err)
{
    share_folder f = { .disk = &heft_system_disk, .flags = flags, .dir = -1, .folder = -1 };
    share_folder first = f;
    heft_error own;
    uint32_t count = 0;
    err = heft_error_begin(err, &own);
    heft_status st = check_arguments(path, flags, err);
    if (!st) {
        st = read_count(&first, path, &count, err);
        f.result.about_output = st;
        close_folder(&first);
    }
    if (!st)
        st = begin(&f, in, to, path, count, opt, false, err);
    if (!st)
        st = complete(&f, err);
    if (!st && f.result.missing) {
        f.result.about_output = true;
        st = heft_error_plain(err, HEFT_E_NOTFOUND, "%U of %U shares are missing",
                              (uint64_t)f.result.missing, (uint64_t)count);
    }
    if (out)
        *out = f.result;
    close_folder(&f);
    return heft_error_end(err, st);
}
