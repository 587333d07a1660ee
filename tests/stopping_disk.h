/* stopping_disk.h - a disk on which the program is killed at a chosen call, or on which that call fails. */
#ifndef HEFT_STOPPING_DISK_H
#define HEFT_STOPPING_DISK_H
#include "port/disk.h"

typedef enum heft_trouble {
    HEFT_NO_TROUBLE,
    HEFT_KILLED,
    HEFT_TORN,    /* killed in the middle of a write */
    HEFT_FAILS,   /* that call */
    HEFT_FAILS_ON /* that call and all calls after it */
} heft_trouble;

typedef struct heft_stopping {
    heft_trouble what;
    int os;             /* errno of calls that fail */
    unsigned at, calls; /* the call of that number, from 1; how many there were */
    bool no_copy;       /* the system cannot copy for us */
    bool no_unnamed;    /* the file system has no files without a name */
    const char *touch;  /* a file that another program writes to at the first call */
} heft_stopping;

/* What heft_stopping_disk does from the next call on. */
extern heft_stopping heft_stop;
extern const heft_disk heft_stopping_disk;

/* Runs fn(ctx) in a process of its own, with that trouble at that call; false: it was not killed.  It must not
 * fail. */
bool heft_test_is_killed(heft_trouble what, unsigned at, heft_status (*fn)(void *ctx), void *ctx);

#endif
