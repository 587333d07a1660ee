/* share_folder.c - shares of a conversion beside the output.  The folder "OUT.shares" has
 *
 *   plan               the id of the plan; linked to this name once, before any data
 *   data               the output, filled in any order
 *   share-00002-of-8   the record of share 2, linked to this name after the data are on disk
 *   done               empty; created before `data` becomes the output
 *
 * The process that finds all records writes the rest of `data`, gives the file the name of the
 * output, and removes the folder, records first.  Two processes write equal bytes; a process
 * that finds `data` gone is done. */
#include <heft/remote.h>
#include <heft/share.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "port/set_journal.h"
#include "port/share_folder.h"

enum { NAME_BYTES = 40, PLAN_BYTES = 128, MAX_RECORD_BYTES = 1 << 30 };

static void record_name(char name[NAME_BYTES], uint32_t number, uint32_t count)
{
    snprintf(name, NAME_BYTES, "share-%05u-of-%u", (unsigned)number, (unsigned)count);
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

static void close_folder(heft_share_folder *f)
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

/* ---- the plan ---- */

static heft_status refuse_other_plan(const heft_share_folder *f, const char *found, heft_error *err)
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
static heft_status agree_on_plan(const heft_share_folder *f, bool creates, heft_error *err)
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

/* ---- progress of all shares ---- */

uint32_t heft_share_count_missing(const heft_share_folder *f)
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

/* Return true if a different process has completed the output: the data have left the
 * folder after the file "done" was created, or the output differs from the file before. */
static bool is_completed(const heft_share_folder *f)
{
    struct stat info;
    bool has_left = fstatat(f->folder, "data", &info, AT_SYMLINK_NOFOLLOW) && errno == ENOENT;
    if (!has_left || fstatat(f->dir, f->name, &info, 0))
        return false;
    if (!fstatat(f->folder, heft_share_done, &(struct stat){ 0 }, AT_SYMLINK_NOFOLLOW))
        return true;
    return !f->exists || info.st_ino != f->old.st_ino || info.st_dev != f->old.st_dev;
}

/* ---- a share ---- */

static heft_status write_share(heft_share_folder *f, uint32_t number, heft_error *err)
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
    st = heft_share_data_open(&sink, f, true, false, err);
    if (st == HEFT_E_NOTFOUND && is_completed(f))
        return HEFT_OK;
    f->result.about_output = st;
    if (!st)
        st = heft_share_write(&record, f->plan, number, sink, err);
    if (!st)
        st = write_text(f, name, record.data, record.size, err);
    heft_blob_free(&record);
    return st;
}

/* ---- the last step ---- */

static void remove_folder(const heft_share_folder *f)
{
    char name[NAME_BYTES];
    for (uint32_t i = 1; i <= f->count; i++) {
        record_name(name, i, f->count);
        f->disk->remove(f->folder, name);
    }
    f->disk->remove(f->folder, "plan");
    f->disk->remove(f->folder, heft_share_done);
    heft_staged_remove_stale(f->disk, f->folder, "");
    (void)unlinkat(f->dir, f->folder_name, AT_REMOVEDIR); /* stays if further files are inside */
}

static heft_status read_records(const heft_share_folder *f, heft_str *records, heft_error *err)
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

static heft_status join(heft_share_folder *f, heft_error *err)
{
    heft_sink *sink;
    heft_str *records = calloc(f->count, sizeof *records);
    if (!records)
        return heft_error_no_memory(err, "for the records of shares");
    heft_status st = read_records(f, records, err);
    if (!st)
        st = heft_share_data_open(&sink, f, false, true, err);
    f->result.about_output = st;
    if (!st)
        st = heft_share_join(f->plan, records, f->count, sink, err);
    if (st == HEFT_E_ARGUMENT) /* a record is wrong, or the output exists */
        f->result.about_output = true;
    for (uint32_t i = 0; i < f->count; i++)
        free((char *)(uintptr_t)records[i].ptr);
    free(records);
    return st;
}

/* Complete the output if all records are there. */
static heft_status complete(heft_share_folder *f, heft_error *err)
{
    f->result.missing = heft_share_count_missing(f);
    heft_status st = f->result.missing ? HEFT_OK : join(f, err);
    if (f->result.missing || st == HEFT_E_NOTFOUND) {
        bool completed = is_completed(f);
        f->result.missing = completed ? 0 : f->result.missing;
        if (completed)
            remove_folder(f); /* a process may have been killed before */
        return completed ? HEFT_OK : st;
    }
    if (!st)
        remove_folder(f);
    return st;
}

/* ---- public functions ---- */

static heft_status begin(heft_share_folder *f, const heft_file *in, const heft_format *to,
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
    if (heft_is_url(path))
        return heft_error_plain(err, HEFT_E_UNSUPPORTED,
                                "shares are written to a file in a folder that all processes see; "
                                "write to such a file, or convert without shares");
    if (flags & HEFT_SINK_SYNC && flags & HEFT_SINK_NO_SYNC)
        return heft_error_plain(err, HEFT_E_ARGUMENT,
                                "HEFT_SINK_SYNC and HEFT_SINK_NO_SYNC exclude each other");
    return HEFT_OK;
}

heft_status heft_share_convert(heft_share_result *out, const heft_file *in, const heft_format *to,
                               const char *path, heft_share share, uint32_t flags,
                               const heft_convert_options *opt, heft_error *err)
{
    heft_share_folder f = { .disk = &heft_system_disk, .flags = flags, .dir = -1, .folder = -1 };
    heft_error own;
    err = heft_error_begin(err, &own);
    heft_status st = check_arguments(path, flags, err);
    f.result.about_output = st;
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
static heft_status read_count(heft_share_folder *f, const char *path, uint32_t *count,
                              heft_error *err)
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
    heft_share_folder f = { .disk = &heft_system_disk, .flags = flags, .dir = -1, .folder = -1 };
    heft_share_folder first = f;
    heft_error own;
    uint32_t count = 0;
    err = heft_error_begin(err, &own);
    heft_status st = check_arguments(path, flags, err);
    f.result.about_output = st;
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
