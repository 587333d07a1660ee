/* copy_range.h - bytes from one open file into another, past the program where the system can do that. */
#ifndef HEFT_COPY_RANGE_H
#define HEFT_COPY_RANGE_H
#include "port/disk.h"

typedef struct heft_range_copier {
    const heft_disk *disk;
    int to; /* borrowed */
    heft_progress_fn progress;
    void *progress_ctx;
    const char *cancelled_message; /* the message when progress says stop */
    uint64_t done, total;          /* bytes, for progress */
    bool no_reflink, no_copy;      /* the system has said that it cannot */
    uint8_t *buf;
} heft_range_copier;

/* Bytes [p.from, p.from + p.length) of the open file `from` go to p.at. */
heft_status heft_copy_range(heft_range_copier *m, int from, heft_edit_extent p, heft_error *err);
void heft_range_copier_end(heft_range_copier *m);

#endif
