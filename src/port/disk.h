/* disk.h - what editing asks of the system, as a table: tests let each call fail, or be the last one.
 * All but `name` are as the calls they stand for: -1 and errno. */
#ifndef HEFT_DISK_H
#define HEFT_DISK_H
#include <sys/stat.h>
#include <sys/types.h>

#include "port/port.h"

typedef struct heft_disk {
    ssize_t (*write)(int fd, const void *data, size_t len, off_t at);
    int (*truncate)(int fd, off_t size);
    int (*sync)(int fd);
    int (*create)(int dir, const char *name, int flags, mode_t mode);
    int (*name)(int fd, int dir, const char *name); /* of a file that has none */
    int (*rename)(int dir, const char *from, const char *to);
    int (*remove)(int dir, const char *name);
    ssize_t (*copy)(int from, off_t at, int to, off_t to_at, size_t len);
    int (*share)(int from, off_t at, int to, off_t to_at, size_t len); /* the same blocks */
} heft_disk;
extern const heft_disk heft_system_disk;

typedef struct heft_target { /* a file that is edited: open, locked, and seen to be what it was */
    const heft_disk *disk;
    char *path;       /* without links */
    const char *name; /* in its directory */
    int fd, dir;
    struct stat was;
} heft_target;

/* Whether neither the file nor its name has been touched since it was looked at. */
heft_status heft_target_check(const heft_target *t, heft_error *err);
heft_status heft_target_write(const heft_target *t, int fd, uint64_t at, const void *data,
                              size_t len, heft_error *err);
heft_status heft_target_read(int fd, uint64_t at, void *buf, size_t len, heft_error *err);
heft_status heft_target_sync_dir(const heft_target *t, heft_error *err);

/* ---- in place, journal.c ---- */

/* Whether a journal stands beside the file; path need not exist. */
bool heft_journal_is_there(const char *path);
/* Makes the file what the pieces say, those that are bytes.  *changed: it was not that already; *fits
 * false: its name is too long for a journal, and nothing was done. */
heft_status heft_journal_edit(bool *changed, bool *fits, const heft_target *t, const heft_edit *e,
                              heft_error *err);
/* Undoes what a journal speaks of, and removes it; *undone: there was one. */
heft_status heft_journal_undo(bool *undone, const heft_target *t, heft_error *err);

/* ---- by a new file, replace.c ---- */

/* *copied: bytes of data that were moved. */
heft_status heft_replace(const heft_target *t, const heft_edit *e, const heft_edit_options *o,
                         uint64_t *copied, heft_error *err);

/* heft_edit_file() and heft_edit_undo() on a disk of the caller's. */
heft_status heft_edit_file_on(const heft_disk *disk, heft_edit_result *out, const char *path,
                              const heft_edit_options *opt, heft_error *err);
heft_status heft_edit_undo_on(const heft_disk *disk, bool *undone, const char *path,
                              heft_error *err);

#endif
