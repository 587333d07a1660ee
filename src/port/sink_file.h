/* sink_file.h - the steps in which a file appears, for sets of files that appear together. */
#ifndef HEFT_SINK_FILE_H
#define HEFT_SINK_FILE_H
#include "port/disk.h"

/* Besides the flags of heft_sink_open_file(): what killed programs left in the directory stays. */
enum { HEFT_FILE_SINK_UNSWEPT = 1 << 16 };
/* heft_sink_open_file() on a disk of the caller's. */
heft_status heft_file_sink_open(heft_sink **out, const heft_disk *disk, const char *path,
                                uint32_t flags, heft_error *err);
/* Whether it is one that heft_sink_open_file() made for a regular file. */
bool heft_sink_is_file(const heft_sink *s);
/* Sync the file where that is asked for, report every error of writing, and give the file another name than its own
 * in the same folder; the sink stays. */
heft_status heft_file_sink_stage(heft_sink *s, const char *name, heft_error *err);

/* heft_sink_set_open() on a disk of the caller's. */
heft_status heft_sink_set_open_on(const heft_disk *disk, heft_sink_set **out, const char *dir,
                                  uint32_t flags, heft_error *err);

/* sink_stream.c; own: the descriptor is the sink's, even when this fails. */
heft_status heft_stream_sink(heft_sink **out, const heft_disk *disk, int fd, bool own, bool syncs,
                             heft_error *err);

#endif
