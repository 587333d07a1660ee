/* disk.h - the system calls by which files are written and edited, as a table, so that tests let each of them
 * fail, or be the last one before a kill. */
#ifndef HEFT_DISK_H
#define HEFT_DISK_H
#include <limits.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "port/port.h"

/* Every entry returns what the system call behind it returns: -1 and errno after a failure. */
typedef struct heft_disk {
    ssize_t (*read)(int fd, void *buf, size_t len, off_t at);
    ssize_t (*write)(int fd, const void *data, size_t len, off_t at);
    ssize_t (*append)(int fd, const void *data, size_t len); /* to a pipe or a device */
    int (*truncate)(int fd, off_t size);
    int (*reserve)(int fd, off_t size); /* allocate blocks for so many bytes */
    int (*start_sync)(int fd, off_t at,
                      off_t len); /* begin to write a range to disk, without waiting */
    int (*sync)(int fd);
    int (*flush)(int fd); /* report the errors that close() would report; fd stays open */
    int (*close)(int fd);
    int (*set_mode)(int fd, mode_t mode);
    int (*lock)(int fd); /* exclusively; EWOULDBLOCK while another program holds the lock */
    int (*create)(int dir, const char *name, int flags, mode_t mode);
    int (*name)(int fd, int dir,
                const char *name); /* name a file that was created with O_TMPFILE */
    int (*link)(int dir, const char *from, const char *to);
    int (*rename)(int dir, const char *from, const char *to);
    int (*rename_new)(int dir, const char *from, const char *to); /* EEXIST: `to` exists */
    int (*remove)(int dir, const char *name);
    ssize_t (*copy)(int from, off_t at, int to, off_t to_at, size_t len);
    int (*reflink)(int from, off_t at, int to, off_t to_at, size_t len); /* the same blocks */
} heft_disk;
extern const heft_disk heft_system_disk;

/* The same calls, repeated for as long as signals interrupt them. */
int heft_disk_create(const heft_disk *d, int dir, const char *name, int flags, mode_t mode);
int heft_disk_truncate(const heft_disk *d, int fd, off_t size);
int heft_disk_sync(const heft_disk *d, int fd);
int heft_disk_flush(const heft_disk *d, int fd);
int heft_disk_lock(const heft_disk *d, int fd);
ssize_t heft_disk_copy(const heft_disk *d, int from, off_t at, int to, off_t to_at, size_t len);
int heft_disk_reflink(const heft_disk *d, int from, off_t at, int to, off_t to_at, size_t len);
/* 0, or the errno that says that so many bytes do not fit; a file system that cannot reserve blocks is no
 * error. */
int heft_disk_reserve(const heft_disk *d, int fd, uint64_t size);
/* Sync a directory; a file system that cannot do that is no error. */
int heft_disk_sync_dir(const heft_disk *d, int dir);
/* The same after the last change of a name, when the new file is there and stays whatever happens. */
heft_status heft_disk_sync_dir_after_save(const heft_disk *d, int dir, heft_error *err);
/* An entry `sync` that does nothing. */
int heft_disk_no_sync(int fd);
/* All len bytes, or HEFT_E_IO. */
heft_status heft_disk_read_all(const heft_disk *d, int fd, uint64_t at, void *buf, size_t len,
                               heft_error *err);
heft_status heft_disk_write_all(const heft_disk *d, int fd, uint64_t at, const void *data,
                                size_t len, heft_error *err);

typedef struct heft_target { /* a file that is edited: open, locked, and seen to be what it was */
    const heft_disk *disk;
    char *path;       /* without links */
    const char *name; /* in its directory */
    int fd, dir;
    int added_fd; /* the file that pieces of number 1 come from, or -1; borrowed */
    struct stat stat_at_open;
} heft_target;

/* Opens and locks the file, and undoes what an interrupted edit of it has left, unless nothing is to be written.  To be
 * closed, whether this succeeds or not. */
heft_status heft_target_open(heft_target *t, bool *undone, const heft_disk *disk, const char *path,
                             const heft_host *host, bool is_dry_run, heft_error *err);
void heft_target_close(heft_target *t);

/* Whether neither the file nor its name has been touched since it was looked at. */
heft_status heft_target_check_unchanged(const heft_target *t, heft_error *err);
heft_status heft_target_write(const heft_target *t, int fd, uint64_t at, const void *data,
                              size_t len, heft_error *err);
heft_status heft_target_read(int fd, uint64_t at, void *buf, size_t len, heft_error *err);
heft_status heft_target_sync_dir(const heft_target *t, heft_error *err);

/* ---- sets of files, edit_set.c ---- */

/* HEFT_E_UNSUPPORTED when an index beside the file, or beside `path`, should that be a link to the file, lists it. */
heft_status heft_target_check_not_shard(const heft_target *t, const char *path,
                                        const heft_host *host, heft_error *err);

/* ---- in place, journal.c ---- */

extern const char heft_journal_suffix[], heft_journal_partial_suffix[], heft_journal_note_suffix[];
/* false: the name would be too long. */
bool heft_journal_name(char out[NAME_MAX + 1], const char *name, const char *suffix);
/* What is done to a file, and who is told of it. */
typedef struct heft_edit_task {
    const heft_edit *edit;
    heft_progress_fn progress;
    void *progress_ctx;
    const char *cancelled_message; /* the message when progress says stop */
} heft_edit_task;

/* Makes the file what the pieces say, those that are not its own.  *changed: it was not that already; *fits
 * false: its name is too long for a journal, and nothing was done. */
heft_status heft_journal_edit(bool *changed, bool *fits, const heft_target *t,
                              const heft_edit_task *a, heft_error *err);
/* Undoes what a journal speaks of, and removes it; *undone: there was one. */
heft_status heft_journal_undo(bool *undone, const heft_target *t, heft_error *err);

/* ---- journals of files that are read or replaced, stale_journal.c ---- */

/* HEFT_E_IO when the open file fd, whose path that is, must not be read: a journal that counts is beside it, or
 * its folder has one.  *is_same false: another file has the path meanwhile. */
heft_status heft_journal_check(bool *is_same, const char *path, int fd, heft_error *err);
/* Whether the journal beside the name in t, if there is one, is of a file that t->fd has replaced. */
heft_status heft_journal_is_obsolete(bool *is_obsolete, const heft_target *t, heft_error *err);
/* Remove the journal of a name, and what belongs to it. */
heft_status heft_journal_remove(const heft_target *t, const char *name, heft_error *err);

typedef struct heft_journal_retirement { /* a journal whose file is about to be replaced */
    heft_target t;
    int lock;
} heft_journal_retirement;
/* Before the open file fd gets the name.  The name stays borrowed. */
heft_status heft_journal_retire_begin(heft_journal_retirement *r, const heft_disk *disk, int dir,
                                      const char *name, int fd, heft_error *err);
/* Afterwards, whether the file got the name or not. */
heft_status heft_journal_retire_end(heft_journal_retirement *r, heft_error *err);

/* ---- by a new file, replace.c ---- */

/* *copied: bytes of data that were moved. */
heft_status heft_replace(const heft_target *t, const heft_edit_task *a, uint64_t *copied,
                         heft_error *err);

/* ---- either way, edit_file.c ---- */

/* Sets r->changed, copied and in_place; in_place says beforehand what is possible. */
heft_status heft_target_apply(heft_edit_result *r, const heft_target *t, const heft_edit_task *a,
                              heft_error *err);
/* What the edit comes to, before it is applied. */
void heft_edit_describe(heft_edit_result *r, const heft_target *t, const heft_edit *e);

/* heft_file_edit() and heft_edit_recover() on a disk of the caller's. */
heft_status heft_edit_file_on(const heft_disk *disk, heft_edit_result *out, const char *path,
                              const heft_edit_options *opt, heft_error *err);
heft_status heft_append_file_on(const heft_disk *disk, heft_append_result *out, const char *path,
                                const heft_file *from, const heft_append_options *opt,
                                heft_error *err);
heft_status heft_edit_recover_on(const heft_disk *disk, bool *undone, const char *path,
                                 heft_error *err);

#endif
