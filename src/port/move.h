/* move.h - bytes from one open file into another, past the program where the system can do that. */
#ifndef HEFT_MOVE_H
#define HEFT_MOVE_H
#include "port/disk.h"

typedef struct heft_mover {
    const heft_disk *disk;
    int to; /* borrowed */
    heft_progress_fn progress;
    void *progress_ctx;
    const char *stopped;    /* the message when progress says stop */
    uint64_t done, total;   /* bytes, for progress */
    bool no_share, no_copy; /* the system has said that it cannot */
    uint8_t *buf;
} heft_mover;

/* Bytes [p.from, p.from + p.length) of the open file `from` go to p.at. */
heft_status heft_move(heft_mover *m, int from, heft_edit_piece p, heft_error *err);
void heft_mover_end(heft_mover *m);

#endif
