/* sink_file.h - a staged file as a sink, and the steps in which it appears, for sets of files that appear together. */
#ifndef HEFT_SINK_FILE_H
#define HEFT_SINK_FILE_H
#include <stdatomic.h>

#include "port/staged.h"

typedef struct heft_staged_sink {
    heft_sink base;
    heft_staged staged;
    const char *no_space_message; /* the message when the disk is full */
    bool syncs;                   /* begin to sync what was written */
    atomic_bool has_failed;       /* what was called here, rather than what is written into it */
    bool is_complete;             /* a file of a set that waits for the others */
} heft_staged_sink;

/* Operations of sinks that begin with a heft_staged_sink. */
heft_status heft_staged_write_at(heft_sink *s, uint64_t off, const void *data, size_t len,
                                 heft_error *err);
heft_status heft_staged_read_at(heft_sink *s, uint64_t off, void *buf, size_t len, heft_error *err);
heft_status heft_staged_reserve(heft_sink *s, uint64_t size, heft_error *err);
heft_status heft_staged_scratch(heft_sink *s, heft_scratch **out, uint64_t bytes, heft_error *err);
bool heft_staged_reflink(heft_sink *s, uint64_t offset, heft_source *from, uint64_t at,
                         uint64_t len);

/* Besides the flags of heft_sink_open_file(): what killed programs left in the directory stays. */
enum { HEFT_FILE_SINK_KEEP_STALE = 1 << 16 };
/* heft_sink_open_file() on a disk of the caller's. */
heft_status heft_file_sink_open(heft_sink **out, const heft_disk *disk, const char *path,
                                uint32_t flags, heft_error *err);
/* Whether it is one that heft_sink_open_file() made for a regular file. */
bool heft_sink_is_file(const heft_sink *s);
void heft_file_sink_discard(heft_sink *s);
/* Sync the file where that is asked for, report every error of writing, and give the file another name than its own
 * in the same folder; the sink stays. */
heft_status heft_file_sink_stage(heft_sink *s, const char *name, heft_error *err);

/* heft_sink_dir_open() on a disk of the caller's. */
heft_status heft_sink_dir_open_on(const heft_disk *disk, heft_sink_dir **out, const char *dir,
                                  uint32_t flags, heft_error *err);

/* sink_stream.c; own: the descriptor is the sink's, even when this fails. */
heft_status heft_stream_sink(heft_sink **out, const heft_disk *disk, int fd, bool own, bool syncs,
                             heft_error *err);

#endif
