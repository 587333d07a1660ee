/* interrupted_edit.h - an edit of a file that is killed, or that fails, at each of its calls. */
#ifndef HEFT_INTERRUPTED_EDIT_H
#define HEFT_INTERRUPTED_EDIT_H
#include "models.h"
#include "stopping_disk.h"

typedef struct heft_interrupted_edit {
    const char *path, *dir; /* no other file is in the folder */
    heft_bytes old, new;    /* the file before and after */
    heft_status (*edit)(const heft_disk *disk, void *ctx, heft_error *err);
    void *ctx;
    bool is_once; /* the edit refuses the new file */
} heft_interrupted_edit;

/* Write the old file, and let calls succeed. */
void heft_test_restore(const heft_interrupted_edit *e);
/* Kill the edit at each call.  The old or the new file must be recovered, and another edit succeed.
 * least: the edit has more calls. */
void heft_test_kill_edit(const heft_interrupted_edit *e, heft_disk_failure failure, unsigned least);
/* Let each call fail.  The new file must be there, or after an error the old one. */
void heft_test_fail_edit(const heft_interrupted_edit *e, heft_disk_failure failure, int os);

#endif
