/* staged.h - a new file on its way to its name. */
#ifndef HEFT_STAGED_H
#define HEFT_STAGED_H
#include <limits.h>

#include "port/disk.h"

typedef struct heft_staged {
    const heft_disk *disk;
    int dir;                 /* borrowed */
    int fd;                  /* -1: not open */
    char name[NAME_MAX + 1]; /* temporary; empty: the file has no name */
} heft_staged;

/* Create an empty file in dir that will be called target, and lock it.  0 or errno, here and below. */
int heft_staged_open(heft_staged *s, const heft_disk *d, int dir, const char *target, mode_t mode);
/* Give the file the name target; EEXIST and unchanged when a file of that name exists. */
int heft_staged_commit(heft_staged *s, const char *target);
/* Give the file the name target and replace the file that has it. */
int heft_staged_replace(heft_staged *s, const char *target);
/* Remove the temporary name; the file stays open. */
void heft_staged_drop_name(heft_staged *s);
/* Close the file; whatever has no other name than the temporary one is gone. */
int heft_staged_close(heft_staged *s);
/* Remove files that programs which were killed left in dir under temporary names: those of any target and, of the
 * older form, those of this one.  A file that is being written is locked, and stays. */
void heft_staged_remove_stale(const heft_disk *d, int dir, const char *target);

#endif
