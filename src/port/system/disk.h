/* disk.h - the system calls that write and edit files, as a table, so that tests can make any call
 * fail or simulate a kill after it.
 *
 * This room has calls of the system and nothing that knows a model: files, memory, threads,
 * pages. */
#ifndef HEFT_DISK_H
#define HEFT_DISK_H
#include <heft/editing.h>

#include <limits.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "port/port.h"

/* Every entry returns the result of its system call: -1 with errno set after a failure. */
typedef struct heft_disk {
    ssize_t (*read)(int fd, void *buf, size_t len, off_t at);
    ssize_t (*write)(int fd, const void *data, size_t len, off_t at);
    ssize_t (*append)(int fd, const void *data, size_t len); /* to a pipe or a device */
    int (*truncate)(int fd, off_t size);
    int (*reserve)(int fd, off_t size); /* allocate blocks for `size` bytes */
    int (*start_sync)(int fd, off_t at,
                      off_t len); /* start writing a range to disk without waiting */
    int (*sync)(int fd);
    int (*flush)(int fd); /* report errors that close() would report; fd stays open */
    int (*close)(int fd);
    int (*set_mode)(int fd, mode_t mode);
    int (*lock)(int fd); /* exclusively; EWOULDBLOCK while another program holds the lock */
    int (*create)(int dir, const char *name, int flags, mode_t mode);
    int (*name)(int fd, int dir,
                const char *name); /* link a file created with O_TMPFILE to a name */
    int (*link)(int dir, const char *from, const char *to);
    int (*rename)(int dir, const char *from, const char *to);
    int (*rename_new)(int dir, const char *from,
                      const char *to); /* fails with EEXIST if `to` exists */
    int (*remove)(int dir, const char *name);
    ssize_t (*copy)(int from, off_t at, int to, off_t to_at, size_t len);
    int (*reflink)(int from, off_t at, int to, off_t to_at, size_t len); /* share the blocks */
} heft_disk;
extern const heft_disk heft_system_disk;

/* Calls of the table, repeated after signals (EINTR). */
int heft_disk_create(const heft_disk *d, int dir, const char *name, int flags, mode_t mode);
int heft_disk_truncate(const heft_disk *d, int fd, off_t size);
int heft_disk_sync(const heft_disk *d, int fd);
int heft_disk_flush(const heft_disk *d, int fd);
int heft_disk_lock(const heft_disk *d, int fd);
ssize_t heft_disk_copy(const heft_disk *d, int from, off_t at, int to, off_t to_at, size_t len);
int heft_disk_reflink(const heft_disk *d, int from, off_t at, int to, off_t to_at, size_t len);
/* Rename a file; fail with EEXIST if `to` exists.  On a file system without RENAME_NOREPLACE, look
 * for the name first. */
int heft_disk_rename_new(const heft_disk *d, int dir, const char *from, const char *to);
/* Reserve blocks; return 0, or the errno if `size` bytes do not fit.  A file system that cannot
 * reserve blocks is not an error. */
int heft_disk_reserve(const heft_disk *d, int fd, uint64_t size);
/* Sync a directory; a file system that cannot sync directories is not an error. */
int heft_disk_sync_dir(const heft_disk *d, int dir);
/* Sync a directory after the new file got its final name.  The error message says that the file is
 * saved. */
heft_status heft_disk_sync_dir_after_save(const heft_disk *d, int dir, heft_error *err);
/* A `sync` entry that does nothing. */
int heft_disk_no_sync(int fd);
/* Read or write all len bytes at offset `at`, or return HEFT_E_IO. */
heft_status heft_disk_read_all(const heft_disk *d, int fd, uint64_t at, void *buf, size_t len,
                               heft_error *err);
heft_status heft_disk_write_all(const heft_disk *d, int fd, uint64_t at, const void *data,
                                size_t len, heft_error *err);

/* The file that is edited: open and locked. */
typedef struct heft_target {
    const heft_disk *disk;
    char *path;               /* symbolic links resolved */
    const char *name;         /* last component of `path` */
    int fd, dir;              /* the file and its directory */
    int added_fd;             /* source of extents whose `file` is 1, or -1; borrowed */
    struct stat stat_at_open; /* to detect changes by other programs */
} heft_target;

/* Open and lock the file.  Unless is_dry_run, roll back an interrupted edit of it first and set
 * *undone if there was one.  Call heft_target_close() even after a failure. */
heft_status heft_target_open(heft_target *t, bool *undone, const heft_disk *disk, const char *path,
                             const heft_host *host, bool is_dry_run, heft_error *err);
void heft_target_close(heft_target *t);

/* Return HEFT_E_IO if the file was changed or its name was given to another file since it was
 * opened. */
heft_status heft_target_check_unchanged(const heft_target *t, heft_error *err);
heft_status heft_target_write(const heft_target *t, int fd, uint64_t at, const void *data,
                              size_t len, heft_error *err);
heft_status heft_target_sync_dir(const heft_target *t, heft_error *err);

/* ---- editing in place, journal.c ---- */

extern const char heft_journal_suffix[], heft_journal_partial_suffix[], heft_journal_note_suffix[];
/* Append the suffix to the name; return false if the result would be too long. */
bool heft_journal_name(char out[NAME_MAX + 1], const char *name, const char *suffix);
/* An edit and its progress callback. */
typedef struct heft_edit_task {
    const heft_edit *edit;
    heft_progress_fn progress;
    void *progress_ctx;
    const char *cancelled_message; /* error message if `progress` returns false */
} heft_edit_task;

/* Return true if the file's name leaves space for the suffixes of a journal. */
bool heft_journal_fits(const heft_target *t);
/* Write the edit's new bytes into the file, protected by a journal, which must fit.  *changed: the
 * edit changed at least one byte. */
heft_status heft_journal_edit(bool *changed, const heft_target *t, const heft_edit_task *task,
                              heft_error *err);
/* Roll back the edit that the file's journal records, and remove the journal.  *undone: there was
 * one. */
heft_status heft_journal_undo(bool *undone, const heft_target *t, heft_error *err);
/* Undo a change that failed, and keep its error in *err, unless undoing fails, too. */
heft_status heft_journal_undo_after(const heft_target *t, heft_error *err);

/* ---- journals of files that are read or replaced, stale_journal.c ---- */

/* Return HEFT_E_IO if the open file fd at `path` must not be read, because it has a journal of its
 * own that is not obsolete, or because its directory has the journal of a shard set.  *is_same
 * false: `path` now names another file. */
heft_status heft_journal_check(bool *is_same, const char *path, int fd, heft_error *err);
/* Set *is_obsolete if the journal of t->name belongs to a former file that t->fd has replaced. */
heft_status heft_journal_is_obsolete(bool *is_obsolete, const heft_target *t, heft_error *err);
/* Remove the journal of a name, the partly written journal and the note. */
heft_status heft_journal_remove(const heft_target *t, const char *name, heft_error *err);

/* The removal of a journal whose file is about to be replaced. */
typedef struct heft_journal_retirement {
    heft_target t;
    int lock; /* descriptor of the locked old file, or -1 */
    bool has_note;
} heft_journal_retirement;
/* Call before the open file fd gets the name.  The name stays borrowed until
 * heft_journal_retire_end(). */
heft_status heft_journal_retire_begin(heft_journal_retirement *r, const heft_disk *disk, int dir,
                                      const char *name, int fd, heft_error *err);
/* Call afterwards; is_replaced: the file got the name. */
heft_status heft_journal_retire_end(heft_journal_retirement *r, bool is_replaced, heft_error *err);

/* ---- editing by replacing the file, file_attributes.c ---- */

/* Write the edited file as a new file that replaces the target.  *copied: bytes copied from other
 * files. */
heft_status heft_replace(const heft_target *t, const heft_edit_task *task, uint64_t *copied,
                         heft_error *err);

/* Give the new file `to` the owner, the mode and the extended attributes of the target:
 * file_attributes.c. */
heft_status heft_copy_file_attributes(int to, const heft_target *t, heft_error *err);

/* ---- both ways of editing, edit_file.c ---- */

/* Apply the edit in place if r->in_place, else by a new file.  Sets r->changed, r->copied and
 * r->in_place. */
heft_status heft_target_apply(heft_edit_result *r, const heft_target *t, const heft_edit_task *a,
                              heft_error *err);
/* Set the counts and flags of the result that are known before the edit is applied. */
void heft_edit_describe(heft_edit_result *r, const heft_target *t, const heft_edit *e);

/* heft_file_edit(), heft_file_append() and heft_edit_undo() with the caller's table of system
 * calls. */
heft_status heft_edit_file_on(const heft_disk *disk, heft_edit_result *out, const char *path,
                              const heft_edit_options *opt, heft_error *err);
heft_status heft_append_file_on(const heft_disk *disk, heft_append_result *out, const char *path,
                                const heft_file *from, const heft_append_options *opt,
                                heft_error *err);
heft_status heft_edit_recover_on(const heft_disk *disk, bool *undone, const char *path,
                                 heft_error *err);

/* ---- copy bytes between open files ---- */

typedef struct heft_range_copier {
    const heft_disk *disk;
    int to; /* destination descriptor; borrowed */
    heft_progress_fn progress;
    void *progress_ctx;
    const char *cancelled_message; /* error message if `progress` returns false */
    uint64_t done, total;          /* bytes, for progress */
    bool no_reflink, no_copy;      /* the system rejected reflinks, copy_file_range() */
    uint8_t *buf;
} heft_range_copier;

/* Copy bytes [extent.from, extent.from + extent.length) of the open file `from` to offset
 * extent.at. */
heft_status heft_copy_range(heft_range_copier *copier, int from, heft_edit_extent extent,
                            heft_error *err);
/* Free the copy buffer. */
void heft_range_copier_end(heft_range_copier *copier);

/* ---- recognise a file by a sample of its bytes, and test whether a name exists ---- */

/* Size of the file, and BLAKE3 of 64 blocks of 4096 bytes spread over the file; of all bytes if the
 * file has at most 256 KiB.  A copy of a file has the same fingerprint. */
typedef struct heft_fingerprint {
    uint64_t size; /* HEFT_NOWHERE: not a regular file */
    uint8_t hash[32];
} heft_fingerprint;

heft_status heft_fingerprint_of(heft_fingerprint *out, int fd, heft_error *err);
/* Fingerprint the file `name` in the directory; *exists false: there is no such name.  Does not
 * follow symbolic links. */
heft_status heft_fingerprint_at(bool *exists, heft_fingerprint *out, int dir, const char *name,
                                heft_error *err);
bool heft_fingerprint_equal(const heft_fingerprint *a, const heft_fingerprint *b);

/* Set *exists if the directory has that name.  If the system cannot tell, this is an error, never
 * "no". */
heft_status heft_name_exists(bool *exists, int dir, const char *name, heft_error *err);

#endif
