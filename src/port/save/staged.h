/* staged.h - a new file that gets its final name once it is complete. */
#ifndef HEFT_STAGED_H
#define HEFT_STAGED_H
#include <limits.h>

#include "port/system/disk.h"

typedef struct heft_staged {
    const heft_disk *disk;
    int dir;                 /* borrowed */
    int fd;                  /* -1: not open */
    char name[NAME_MAX + 1]; /* temporary name; empty: the file is unnamed */
} heft_staged;

/* Create and lock an empty file in dir that will be named target.  Returns 0 or errno, as the
 * functions below. */
int heft_staged_open(heft_staged *s, const heft_disk *d, int dir, const char *target, mode_t mode);
/* Give the file the name target; EEXIST if the name exists. */
int heft_staged_commit(heft_staged *s, const char *target);
/* Give the file the name target, replacing an existing file. */
int heft_staged_replace(heft_staged *s, const char *target);
/* Remove the temporary name; the file stays open. */
void heft_staged_drop_name(heft_staged *s);
/* Close the file.  A file that has not got its final name is deleted. */
int heft_staged_close(heft_staged *s);
/* Remove temporary files that killed programs left in dir: of any target and, with the older form
 * of names, of this target only.  A file that is being written is locked and stays. */
void heft_staged_remove_stale(const heft_disk *d, int dir, const char *target);

#endif
