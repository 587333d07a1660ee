/* copy_range.h - copy bytes between open files, inside the kernel where the file system supports
 * it. */
#ifndef HEFT_COPY_RANGE_H
#define HEFT_COPY_RANGE_H
#include <heft/editing.h>

#include "port/system/disk.h"

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

#endif
