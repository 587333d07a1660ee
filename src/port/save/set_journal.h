/* set_journal.h - give the files of a shard set their names atomically, even if the program is
 * killed. */
#ifndef HEFT_SET_JOURNAL_H
#define HEFT_SET_JOURNAL_H
#include <heft/split.h>

#include <limits.h>

#include "port/system/disk.h"

enum { HEFT_SHARD_SET_MAX_FILES = 65536, HEFT_SHARD_SET_NAME = 32 };

typedef struct heft_shard_set_file {
    char name[NAME_MAX + 1];
    bool replaces; /* a file of that name exists */
    heft_fingerprint new, old;
} heft_shard_set_file;

/* ---- the journal, set_journal.c ---- */

extern const char heft_shard_set_journal[], heft_shard_set_partial[];
/* Return true for a name that is reserved for journals and temporary files of shard sets. */
bool heft_shard_set_is_reserved_name(const char *name);
/* Temporary names of file i, counted from 0: of the new file, and of the replaced file. */
void heft_shard_set_staged_name(char out[HEFT_SHARD_SET_NAME], uint32_t i);
void heft_shard_set_old_name(char out[HEFT_SHARD_SET_NAME], uint32_t i);
/* Return true for the temporary name of a new file or of a new journal. */
bool heft_shard_set_is_staged_name(const char *name);
heft_status heft_shard_set_store(const heft_target *t, const heft_shard_set_file *files,
                                 uint32_t count, heft_error *err);
/* Read the journal.  The caller frees *out, which is NULL if the folder has no journal. */
heft_status heft_shard_set_load(heft_shard_set_file **out, uint32_t *count, int dir,
                                heft_error *err);
/* Return HEFT_E_IO if the folder has a journal: the shards in the folder must not be read. */
heft_status heft_shard_set_check(int dir, heft_error *err);

/* ---- the files, set_commit.c ---- */

/* Remove the first `count` staged files.  A file that cannot be removed is removed by the next
 * program that writes into the folder. */
void heft_shard_set_remove_staged(const heft_target *t, uint32_t count);

/* Lock the folder until the caller closes *lock, which is -1 if the folder cannot be opened for
 * locking.  HEFT_E_IO: another program holds the lock. */
heft_status heft_shard_set_lock(int *lock, const heft_disk *disk, int dir, heft_error *err);
/* Complete or undo the set that the folder's journal lists, and remove files staged by a killed
 * program.  Of t, only `disk` and `dir` are used, here and below; the folder must be locked. */
heft_status heft_shard_set_recover_locked(heft_recovery *out, const heft_target *t,
                                          heft_error *err);
/* Lock the folder, then recover as heft_shard_set_recover_locked(). */
heft_status heft_shard_set_recover(heft_recovery *out, const heft_disk *disk, int dir,
                                   heft_error *err);
/* Recover the folder `path`, or the folder of the file `path`. */
heft_status heft_shard_set_recover_path(heft_recovery *out, const heft_disk *disk, const char *path,
                                        heft_error *err);

/* Give the staged and synced files their names, all or none.  The caller sets the names in `files`;
 * this function sets the other members.  replace: replace existing files.  *at: the file that the
 * error is about, or count. */
heft_status heft_shard_set_commit(const heft_target *t, heft_shard_set_file *files, uint32_t count,
                                  bool replace, uint32_t *at, heft_error *err);

#endif
