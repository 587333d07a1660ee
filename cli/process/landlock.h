/* landlock.h - restrict the files that this process can open, by Linux's Landlock. */
#ifndef HEFT_CLI_LANDLOCK_H
#define HEFT_CLI_LANDLOCK_H
#include <stdbool.h>
#include <stdint.h>

/* Access to a single file, or to a folder with all files below. */
enum {
    ACCESS_READ = 1,    /* read files, list folders */
    ACCESS_SPILL = 2,   /* create, read, write and remove files */
    ACCESS_WRITE = 4,   /* ACCESS_READ and ACCESS_SPILL */
    ACCESS_FOLDERS = 8, /* create and remove folders */
    ACCESS_MOVE = 16    /* rename files to another folder; needs version 2 of Landlock */
};

typedef struct landlock {
    int ruleset, os; /* os: errno value of the first failure, or 0 */
    uint64_t handled;
} landlock;

/* Begin a ruleset without any access, except TCP connections if allows_tcp. Without Landlock in the
 * kernel, and after a failed call, the following calls do nothing, and landlock_enforce() returns
 * the reason. */
void landlock_begin(landlock *l, bool allows_tcp);
/* Allow access to a path, with symbolic links followed. A path that does not exist is ignored. */
void landlock_allow(landlock *l, const char *path, unsigned access);
/* Restrict the calling thread, and all threads created later, to the accesses allowed so far.
 * Files that are already open stay usable. Return 0, or the errno value of the failure. */
int landlock_enforce(landlock *l);

#endif
