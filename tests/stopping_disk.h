/* stopping_disk.h - system calls on files that fail, or kill the program, at a chosen call. */
#ifndef HEFT_STOPPING_DISK_H
#define HEFT_STOPPING_DISK_H
#include "port/system/disk.h"

typedef enum heft_disk_failure {
    HEFT_NO_FAILURE,
    HEFT_KILLED,
    HEFT_TORN,       /* killed in the middle of a write */
    HEFT_FAILS_ONCE, /* the chosen call fails */
    HEFT_FAILS_FROM  /* the chosen call and all later calls fail */
} heft_disk_failure;

typedef struct heft_stopping {
    heft_disk_failure failure;
    int os;            /* errno of calls that fail */
    unsigned at;       /* number of the chosen call, from 1 */
    unsigned calls;    /* calls so far; reads, hints and locks are not counted */
    bool no_copy;      /* copy_file_range() is unsupported (EXDEV) */
    bool no_unnamed;   /* O_TMPFILE is unsupported */
    const char *touch; /* path of a file that gets another byte at the first call */
} heft_stopping;

/* Behaviour of heft_stopping_disk, from the next call on. */
extern heft_stopping heft_stop;
extern const heft_disk heft_stopping_disk;

/* Run fn(ctx) in a child process with `failure` at call `at`. Return true if the child was
 * killed; a child that survives must return HEFT_OK. */
bool heft_test_is_killed(heft_disk_failure failure, unsigned at, heft_status (*fn)(void *ctx),
                         void *ctx);

#endif
