/* sink_file.h - a staged file as a sink, and the separate steps of its commit, for shard sets.
 *
 * This room makes files appear whole or not at all: staged files, sets of them, journals that roll
 * back. Which bytes they get is decided in core/write and core/edit. */
#ifndef HEFT_SINK_FILE_H
#define HEFT_SINK_FILE_H
#include <limits.h>

#include <heft/split.h>

#include "port/system/disk.h"

typedef struct heft_staged {
    const heft_disk *disk;
    int dir;                 /* borrowed */
    int fd;                  /* -1: not open */
    char name[NAME_MAX + 1]; /* temporary name; empty: the file is unnamed */
} heft_staged;

/* Create and lock an empty file in dir that will be named target.  Returns 0 or errno, as the
 * functions below. */
int heft_staged_open(heft_staged *s, const heft_disk *d, int dir, const char *target, mode_t mode);
/* Give the file the name target; EEXIST if the name exists. */
int heft_staged_commit(heft_staged *s, const char *target);
/* Give the file the name target, replacing an existing file. */
int heft_staged_replace(heft_staged *s, const char *target);
/* Remove the temporary name; the file stays open. */
void heft_staged_drop_name(heft_staged *s);
/* Close the file.  A file that has not got its final name is deleted. */
int heft_staged_close(heft_staged *s);
/* Remove temporary files that killed programs left in dir: of any target and, with the older form
 * of names, of this target only.  A file that is being written is locked and stays. */
void heft_staged_remove_stale(const heft_disk *d, int dir, const char *target);

typedef struct heft_staged_sink {
    heft_sink base;
    heft_staged staged;
    const char *no_space_message; /* the message when the disk is full */
    bool syncs;                   /* start writing finished blocks to disk early */
    bool is_complete;             /* a finished shard, not committed yet */
} heft_staged_sink;

/* Operations for sinks with a heft_staged_sink as the first member. */
heft_status heft_staged_write_at(heft_sink *s, uint64_t off, const void *data, size_t len,
                                 heft_error *err);
heft_status heft_staged_read_at(heft_sink *s, uint64_t off, void *buf, size_t len, heft_error *err);
heft_status heft_staged_reserve(heft_sink *s, uint64_t size, heft_error *err);
heft_status heft_staged_scratch(heft_sink *s, heft_scratch **out, uint64_t bytes, heft_error *err);
bool heft_staged_reflink(heft_sink *s, uint64_t offset, heft_source *from, uint64_t at,
                         uint64_t len);

/* Say that the output exists and was not replaced; return the status. */
heft_status heft_error_exists(heft_error *err, heft_status st);

/* Flag in addition to the flags of heft_sink_open_file(): do not remove the temporary files of
 * killed programs. */
enum { HEFT_FILE_SINK_KEEP_STALE = 1 << 16 };
/* heft_sink_open_file() with the caller's table of system calls. */
heft_status heft_file_sink_open(heft_sink **out, const heft_disk *disk, const char *path,
                                uint32_t flags, heft_error *err);
/* Return true if heft_file_sink_open() made this sink for a regular file. */
bool heft_sink_is_file(const heft_sink *s);
void heft_file_sink_discard(heft_sink *s);
/* Sync the file if requested, report all write errors, and link the file to a temporary name in the
 * same folder.  The sink stays open. */
heft_status heft_file_sink_stage(heft_sink *s, const char *name, heft_error *err);

/* Copy owner, group and permissions of the replaced file, as far as this process may set them, so
 * that the new file is readable for the same users as the old file.  Set the mode last, since a
 * change of owner clears the set-id bits.  Do not copy set-id bits if the owner could not be
 * set. */
int heft_copy_access(const heft_disk *disk, int fd, const struct stat *old);

/* heft_sink_dir_open() with the caller's table of system calls. */
heft_status heft_sink_dir_open_on(const heft_disk *disk, heft_sink_dir **out, const char *dir,
                                  uint32_t flags, heft_error *err);

/* Make a sink for a pipe or device, sink_stream.c.  owns_fd: the sink closes fd, even if this call
 * fails. */
heft_status heft_stream_sink(heft_sink **out, const heft_disk *disk, int fd, bool own, bool syncs,
                             heft_error *err);

#endif
