/* sink_file.h - the steps in which a file appears, for sets of files that appear together. */
#ifndef HEFT_SINK_FILE_H
#define HEFT_SINK_FILE_H
#include "port/disk.h"

/* Besides the flags of heft_sink_file(): what killed programs left in the directory stays. */
enum { HEFT_FILE_SINK_UNSWEPT = 1 << 16 };
/* heft_sink_file() on a disk of the caller's. */
heft_status heft_file_sink_open(heft_sink **out, const heft_disk *disk, const char *path,
                                uint32_t flags, heft_error *err);
/* Whether it is one that heft_sink_file() made for a regular file. */
bool heft_sink_is_file(const heft_sink *s);
/* Sync the file where that is asked for, and report every error of writing. */
heft_status heft_file_sink_settle(heft_sink *s, heft_error *err);
/* Before a file is replaced: so that heft_file_sink_undo() can bring it back. */
heft_status heft_file_sink_keep_old(heft_sink *s, heft_error *err);
/* Give the file its name; the sink stays.  With a message that begins with "saved" the file has it. */
heft_status heft_file_sink_appear(heft_sink *s, heft_error *err);
/* As it was before heft_file_sink_appear(). */
void heft_file_sink_undo(heft_sink *s);

/* sink_stream.c; own: the descriptor is the sink's, even when this fails. */
heft_status heft_stream_sink(heft_sink **out, const heft_disk *disk, int fd, bool own, bool syncs,
                             heft_error *err);

#endif
