/* set_journal.h - files of a folder that get their names together, also when the program is killed. */
#ifndef HEFT_SET_JOURNAL_H
#define HEFT_SET_JOURNAL_H
#include <limits.h>

#include "port/disk.h"
#include "port/fingerprint.h"

enum { HEFT_SHARD_SET_MAX_FILES = 65536, HEFT_SHARD_SET_NAME = 32 };

typedef struct heft_shard_set_file {
    char name[NAME_MAX + 1];
    bool replaces; /* a file has the name already */
    heft_fingerprint new, old;
} heft_shard_set_file;

/* ---- the journal, set_journal.c ---- */

extern const char heft_shard_set_journal[], heft_shard_set_partial[];
/* Names that belong to journals of sets, and to no file of a set. */
bool heft_shard_set_is_reserved_name(const char *name);
/* The temporary names of file number i, counted from 0: of the new file, and of the file that it replaces. */
void heft_shard_set_staged_name(char out[HEFT_SHARD_SET_NAME], uint32_t i);
void heft_shard_set_old_name(char out[HEFT_SHARD_SET_NAME], uint32_t i);
heft_status heft_shard_set_store(const heft_target *t, const heft_shard_set_file *files,
                                 uint32_t count, heft_error *err);
/* *out is to be freed; NULL: the folder has no journal. */
heft_status heft_shard_set_load(heft_shard_set_file **out, uint32_t *count, int dir,
                                heft_error *err);
/* HEFT_E_IO while a journal is in the folder: files of it must not be read. */
heft_status heft_shard_set_check(int dir, heft_error *err);

/* ---- the files, set_commit.c ---- */

/* Remove files of those names, of which only the first `count` may exist; a file that stays is removed by the next
 * program that writes into the folder. */
void heft_shard_set_remove_staged(const heft_target *t, uint32_t count);

/* Lock the folder until *lock is closed; HEFT_E_IO: another program holds the lock.  *lock may be -1, where the
 * folder cannot be locked. */
heft_status heft_shard_set_lock(int *lock, const heft_disk *disk, int dir, heft_error *err);
/* Complete or undo the set that the folder's journal lists, and remove files that a killed program has staged.  t
 * has a disk and a locked folder, as below. */
heft_status heft_shard_set_recover_locked(heft_recovery *out, const heft_target *t,
                                          heft_error *err);
/* The same in a folder that is not locked. */
heft_status heft_shard_set_recover(heft_recovery *out, const heft_disk *disk, int dir,
                                   heft_error *err);
/* The same in the folder of a path, or in the path if it is a folder. */
heft_status heft_shard_set_recover_path(heft_recovery *out, const heft_disk *disk, const char *path,
                                        heft_error *err);

/* Give the staged and synced files their names, all or none: fills in all but the names.  replace: files that have
 * the names already are replaced.  *where: the file that the error is about, or count. */
heft_status heft_shard_set_commit(const heft_target *t, heft_shard_set_file *files, uint32_t count,
                                  bool replace, uint32_t *where, heft_error *err);

#endif
