/* set_commit.c - give the files of a shard set their names atomically.
 *
 * The new files are in the folder, complete and on disk, as heft-set.00001.new and so on.  Then the
 * journal heft-set.journal gets its name.  This is the atomic step: from then on the set will be
 * completed, by this program or, if this program is killed, by the next program that writes into
 * the folder.
 *
 *  1. Rename the replaced files to heft-set.NNNNN.old, in reverse order.  The last file is the
 *     index; without the index, programs that do not know the journal do not take the other files
 *     for a model.
 *  2. Give the new files the final names, the index last, and sync the folder.
 *  3. Remove the old files, the journals of interrupted edits of the old files, and finally the
 *     set's journal.
 *
 * Until step 3 everything can be undone.  Undoing moves the new files back before it restores the
 * old files, so that the folder has all new files at any moment, under the temporary or the final
 * name. */
#include "port/save/set_journal.h"
#include "port/save/sink_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- renaming ---- */

/* Rename a file; fail if the new name exists. */
static heft_status move_file(const heft_target *t, const char *from, const char *to,
                             heft_error *err)
{
    if (!heft_disk_rename_new(t->disk, t->dir, from, to))
        return HEFT_OK;
    return errno == EEXIST ? heft_error_exists(err, HEFT_E_IO)
                           : heft_os_error(err, errno, "cannot be renamed to its final name");
}

static void remove_if_staged(void *arg, const char *name)
{
    const heft_target *t = arg;
    if (heft_shard_set_is_staged_name(name))
        t->disk->remove(t->dir, name);
}

/* Remove staged files of any number: a power failure may have undone the naming of any of them. */
static void remove_all_staged(const heft_target *t)
{
    heft_target target = *t;
    heft_error ignored; /* if the folder cannot be listed, the files stay */
    (void)!heft_folder_list(t->dir, remove_if_staged, &target, &ignored);
}

/* Does not list the folder, which needs memory. */
void heft_shard_set_remove_staged(const heft_target *t, uint32_t count)
{
    char staged[HEFT_SHARD_SET_NAME];
    while (count--) {
        heft_shard_set_staged_name(staged, count);
        t->disk->remove(t->dir, staged);
    }
}

static void find_staged(void *arg, const char *name)
{
    bool *found = arg;
    *found = *found || heft_shard_set_is_staged_name(name);
}

static heft_status set_aside_old(const heft_target *t, const heft_shard_set_file *f, uint32_t i,
                                 heft_error *err)
{
    char staged[HEFT_SHARD_SET_NAME], old[HEFT_SHARD_SET_NAME];
    bool is_staged, exists = false;
    heft_shard_set_staged_name(staged, i);
    heft_shard_set_old_name(old, i);
    HEFT_TRY(heft_name_exists(&is_staged, t->dir, staged, err));
    if (is_staged)
        HEFT_TRY(heft_name_exists(&exists, t->dir, f->name, err));
    return exists ? move_file(t, f->name, old, err) : HEFT_OK;
}

/* Steps 1 and 2.  *at: the file that the error is about. */
static heft_status complete(const heft_target *t, const heft_shard_set_file *files, uint32_t count,
                            uint32_t *at, heft_error *err)
{
    char staged[HEFT_SHARD_SET_NAME];
    bool is_staged;
    heft_status st = HEFT_OK;
    for (*at = count; *at > 0 && !st;) {
        --*at;
        st = files[*at].replaces ? set_aside_old(t, &files[*at], *at, err) : HEFT_OK;
    }
    for (*at = st ? *at : 0; *at < count && !st; *at += !st) {
        heft_shard_set_staged_name(staged, *at);
        st = heft_name_exists(&is_staged, t->dir, staged, err);
        if (!st && is_staged)
            st = move_file(t, staged, files[*at].name, err);
    }
    return st ? st : heft_target_sync_dir(t, err);
}

static heft_status remove_journal(const heft_target *t, heft_error *err)
{
    if (t->disk->remove(t->dir, heft_shard_set_journal))
        return heft_os_error(err, errno, "the journal cannot be removed");
    return heft_target_sync_dir(t, err);
}

/* Step 3.  Sync the folder before the journal is removed: without a journal, an old file that is
 * back after a power failure would stay, and prevent the next split. */
static heft_status clean_up(const heft_target *t, const heft_shard_set_file *files, uint32_t count,
                            heft_error *err)
{
    char old[HEFT_SHARD_SET_NAME];
    bool has_replaced = false;
    for (uint32_t i = 0; i < count; i++) {
        has_replaced = has_replaced || files[i].replaces;
        heft_shard_set_old_name(old, i);
        if (t->disk->remove(t->dir, old) && errno != ENOENT && errno != ENAMETOOLONG)
            return heft_os_error(err, errno, "a replaced file cannot be removed");
        HEFT_TRY(heft_journal_remove(t, files[i].name, err));
    }
    if (has_replaced)
        HEFT_TRY(heft_target_sync_dir(t, err));
    return remove_journal(t, err);
}

/* Rename the new file back to its temporary name, unless the name belongs to another file, such as
 * an old file that was never renamed; then restore the old file. */
static heft_status move_back(const heft_target *t, const heft_shard_set_file *f, uint32_t i,
                             heft_error *err)
{
    char staged[HEFT_SHARD_SET_NAME], old[HEFT_SHARD_SET_NAME];
    heft_fingerprint fingerprint;
    bool is_staged, has_old = false, exists = false;
    heft_shard_set_staged_name(staged, i);
    heft_shard_set_old_name(old, i);
    HEFT_TRY(heft_name_exists(&is_staged, t->dir, staged, err));
    HEFT_TRY(heft_name_exists(&has_old, t->dir, old, err));
    if (!is_staged && (has_old || !f->replaces))
        HEFT_TRY(heft_fingerprint_at(&exists, &fingerprint, t->dir, f->name, err));
    if (exists && heft_fingerprint_equal(&fingerprint, &f->new))
        HEFT_TRY(move_file(t, f->name, staged, err));
    return has_old ? move_file(t, old, f->name, err) : HEFT_OK;
}

static heft_status undo(const heft_target *t, const heft_shard_set_file *files, uint32_t count,
                        heft_error *err)
{
    for (uint32_t i = count; i--;)
        HEFT_TRY(move_back(t, &files[i], i, err));
    HEFT_TRY(heft_target_sync_dir(t, err));
    HEFT_TRY(remove_journal(t, err));
    heft_shard_set_remove_staged(t, count);
    return HEFT_OK;
}

/* ---- recovering from a killed program ---- */

/* Clear *can_complete, *can_undo if the state of file i rules that out. */
static heft_status check_options(bool *can_complete, bool *can_undo, const heft_target *t,
                                 const heft_shard_set_file *f, uint32_t i, heft_error *err)
{
    char staged[HEFT_SHARD_SET_NAME], old[HEFT_SHARD_SET_NAME];
    bool has_staged, has_old, exists;
    heft_fingerprint staged_print, old_print, named_print;
    heft_shard_set_staged_name(staged, i);
    heft_shard_set_old_name(old, i);
    HEFT_TRY(heft_fingerprint_at(&has_staged, &staged_print, t->dir, staged, err));
    HEFT_TRY(heft_fingerprint_at(&has_old, &old_print, t->dir, old, err));
    HEFT_TRY(heft_fingerprint_at(&exists, &named_print, t->dir, f->name, err));
    bool is_new = heft_fingerprint_equal(&named_print, &f->new),
         is_old = heft_fingerprint_equal(&named_print, &f->old);
    bool can_replace = f->replaces && !has_old && is_old;
    bool can_restore_old = heft_fingerprint_equal(&old_print, &f->old) &&
                           (!exists || (is_new && !has_staged));
    bool can_name_new = heft_fingerprint_equal(&staged_print, &f->new) && (!exists || can_replace);
    *can_complete = *can_complete && (has_staged ? can_name_new : is_new);
    *can_undo = *can_undo && (!f->replaces || (has_old ? can_restore_old : is_old));
    return HEFT_OK;
}

static heft_status recover_files(heft_recovery *out, const heft_target *t,
                                 const heft_shard_set_file *files, uint32_t count, heft_error *err)
{
    bool can_complete = true, can_undo = true;
    uint32_t at;
    for (uint32_t i = 0; i < count; i++)
        HEFT_TRY(check_options(&can_complete, &can_undo, t, &files[i], i, err));
    if (!can_complete && !can_undo)
        return heft_error_plain(err, HEFT_E_FORMAT,
                                "files listed in %s are missing or were changed by another "
                                "program: nothing was changed "
                                "(new files are heft-set.*.new, replaced files heft-set.*.old: "
                                "rename the needed files, "
                                "then remove the journal)",
                                heft_shard_set_journal);
    heft_status st = HEFT_OK;
    if (!can_complete) {
        st = undo(t, files, count, err);
        *out = st ? HEFT_RECOVERY_NONE : HEFT_RECOVERY_ROLLED_BACK;
        return st;
    }
    st = complete(t, files, count, &at, err);
    if (!st)
        st = clean_up(t, files, count, err);
    *out = st ? HEFT_RECOVERY_NONE : HEFT_RECOVERY_COMPLETED;
    return st;
}

heft_status heft_shard_set_recover_locked(heft_recovery *out, const heft_target *t, heft_error *err)
{
    heft_shard_set_file *files;
    uint32_t count = 0;
    *out = HEFT_RECOVERY_NONE;
    heft_status st = heft_shard_set_load(&files, &count, t->dir, err);
    if (st)
        return st;
    if (files) {
        st = recover_files(out, t, files, count, err);
        free(files);
        return st;
    }
    remove_all_staged(t); /* without a journal the staged files are worthless */
    return HEFT_OK;
}

/* ---- whole folders ---- */

heft_status heft_shard_set_lock(int *lock, const heft_disk *disk, int dir, heft_error *err)
{
    *lock = heft_open_at(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*lock < 0)
        return errno == EACCES ? HEFT_OK : heft_os_error(err, errno, "its folder cannot be locked");
    if (!heft_disk_lock(disk, *lock) || errno != EWOULDBLOCK)
        return HEFT_OK;
    close(*lock);
    *lock = -1;
    return heft_os_error(err, EBUSY, "another program is writing shards into the folder");
}

heft_status heft_shard_set_recover(heft_recovery *out, const heft_disk *disk, int dir,
                                   heft_error *err)
{
    heft_target t = { .disk = disk, .fd = -1, .dir = dir };
    bool has_journal, has_staged = false;
    heft_error ignored;
    int lock;
    *out = HEFT_RECOVERY_NONE;
    heft_status st = heft_name_exists(&has_journal, dir, heft_shard_set_journal, err);
    if (!st && !has_journal)
        (void)!heft_folder_list(dir, find_staged, &has_staged, &ignored);
    if (st || !(has_journal || has_staged))
        return st;
    st = heft_shard_set_lock(&lock, disk, dir, err);
    if (!st)
        st = heft_shard_set_recover_locked(out, &t, err);
    else if (!has_journal)
        st = HEFT_OK; /* another program is writing a set, but has not begun to rename files */
    if (lock >= 0)
        close(lock);
    return st;
}

heft_status heft_shard_set_recover_path(heft_recovery *out, const heft_disk *disk, const char *path,
                                        heft_error *err)
{
    *out = HEFT_RECOVERY_NONE;
    char *real = realpath(path, NULL);
    int dir = real ? heft_open_at(AT_FDCWD, real, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (dir < 0 && (!real || errno == ENOTDIR)) /* a file, or a name that does not exist yet */
        dir = heft_open_folder_of(real ? real : path, O_RDONLY);
    heft_status st = dir < 0 ? heft_os_error(err, errno, "its folder cannot be opened")
                             : heft_shard_set_recover(out, disk, dir, err);
    if (dir >= 0)
        close(dir);
    free(real);
    return st;
}

heft_status heft_sink_dir_recover(heft_recovery *out, const char *dir, heft_error *err)
{
    return heft_shard_set_recover_path(out, &heft_system_disk, dir, err);
}

/* ---- a new set ---- */

static heft_status fingerprint_files(const heft_target *t, heft_shard_set_file *f, uint32_t i,
                                     bool replace, heft_error *err)
{
    char staged[HEFT_SHARD_SET_NAME];
    bool exists;
    heft_shard_set_staged_name(staged, i);
    heft_status st = heft_fingerprint_at(&exists, &f->new, t->dir, staged, err);
    if (!st && f->new.size == HEFT_NOWHERE)
        return heft_error_plain(err, HEFT_E_IO, "was removed while it was being written");
    if (!st)
        st = heft_fingerprint_at(&f->replaces, &f->old, t->dir, f->name, err);
    if (st || !f->replaces)
        return st;
    if (!replace)
        return heft_error_exists(err, HEFT_E_ARGUMENT);
    if (f->old.size == HEFT_NOWHERE)
        return heft_error_plain(err, HEFT_E_IO, "is not a regular file and was left as it is");
    return HEFT_OK;
}

/* Undo and keep the error in *err, unless undoing fails, too: then say how to repair the folder. */
static heft_status roll_back(const heft_target *t, const heft_shard_set_file *files, uint32_t count,
                             heft_error *err)
{
    heft_error undo_error;
    heft_error first_error = *err;
    if (!undo(t, files, count, &undo_error))
        return first_error.status;
    return heft_error_plain(err, HEFT_E_IO,
                            "%s, and undoing the split failed: %s lists all files; 'heft edit' on "
                            "the folder, with no options, completes or undoes the split",
                            first_error.message, heft_shard_set_journal);
}

/* Remove the staged files, unless the journal was written and could not be removed: then the next
 * program completes the set. */
static heft_status cannot_write_journal(const heft_target *t, uint32_t count, heft_error *err)
{
    heft_error first_error = *err, ignored;
    bool exists;
    if (!heft_name_exists(&exists, t->dir, heft_shard_set_journal, &ignored) && !exists) {
        heft_shard_set_remove_staged(t, count);
        return first_error.status;
    }
    return heft_error_plain(err, first_error.status,
                            "%s, and %s cannot be removed: 'heft edit' on the folder, with no "
                            "options, completes or undoes the split",
                            first_error.message, heft_shard_set_journal);
}

heft_status heft_shard_set_commit(const heft_target *t, heft_shard_set_file *files, uint32_t count,
                                  bool replace, uint32_t *at, heft_error *err)
{
    heft_status st = HEFT_OK;
    for (*at = 0; *at < count && !st; *at += !st)
        st = fingerprint_files(t, &files[*at], *at, replace, err);
    if (st)
        heft_shard_set_remove_staged(t, count);
    if (st)
        return st;
    if (heft_shard_set_store(t, files, count, err))
        return cannot_write_journal(t, count, err);
    if (complete(t, files, count, at, err))
        return roll_back(t, files, count, err);
    if (!clean_up(t, files, count, err))
        return HEFT_OK;
    heft_error cause = *err;
    heft_error_plain(err, cause.status,
                     "saved, but %s ('heft edit' on the folder, with no options, completes the "
                     "cleanup)",
                     cause.message);
    return heft_error_os(err, cause.status, cause.os);
}
