/* stale_journal.c - decide whether a journal belongs to the file that has its name.
 *
 * When a file is replaced, the old file's journal must go, too, but file and journal cannot change
 * in one step.  If the journal were removed first, a kill would leave a half edited file that looks
 * intact; if it were removed last, a kill would leave an intact new file that cannot be read.
 * Therefore a note, NAME.heft-replaced, first names the new file, to which the journal does not
 * belong:
 *
 *    0  "HEFTNOTE"   8  u32 1   12  u32 0   16  u64 device   24  u64 inode
 *   32  fingerprint of the new file
 *  -32  BLAKE3 of all preceding bytes
 *
 * Then the new file gets the name, the journal is removed, and finally the note.  The note cannot
 * match the old file, since both files exist when the note is written and have different inodes.
 * The note does not match a copy of the new file either; such a copy is refused as long as the
 * journal exists.  A damaged note is ignored. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "port/save/sealed.h"
#include "port/save/set_journal.h"
#include "port/system/disk.h"

enum { HEADER = 32, FINGERPRINT = 40, NOTE = HEADER + FINGERPRINT + HEFT_SEAL, VERSION = 1 };

static const char magic[] = "HEFTNOTE";

/* ---- the note ---- */

static heft_status encode_note(uint8_t out[NOTE], int fd, heft_error *err)
{
    struct stat info;
    heft_fingerprint f;
    if (fstat(fd, &info))
        return heft_os_error(err, errno, "its status cannot be read");
    heft_status st = heft_fingerprint_of(&f, fd, err);
    uint8_t *to = heft_put(heft_put(heft_put_bytes(out, magic, 8), VERSION, 4), 0, 4);
    to = heft_put(heft_put(to, info.st_dev, 8), info.st_ino, 8);
    heft_put_bytes(heft_put(to, f.size, 8), f.hash, sizeof f.hash);
    heft_seal(out, NOTE);
    return st;
}

/* Write the note under its final name.  This need not be atomic, since an incomplete note is
 * ignored. */
static heft_status write_note(const heft_target *t, const char *note, int fd, heft_error *err)
{
    uint8_t bytes[NOTE];
    HEFT_TRY(encode_note(bytes, fd, err));
    t->disk->remove(t->dir, note);
    int out = heft_disk_create(t->disk, t->dir, note, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    heft_status st = out < 0 ? heft_os_error(err, errno, "its journal cannot be replaced")
                             : heft_target_write(t, out, 0, bytes, NOTE, err);
    if (!st && heft_disk_sync(t->disk, out))
        st = heft_os_error(err, errno, "writing to disk failed");
    if (out >= 0)
        close(out);
    return st ? st : heft_target_sync_dir(t, err);
}

heft_status heft_journal_is_obsolete(bool *is_obsolete, const heft_target *t, heft_error *err)
{
    char note[NAME_MAX + 1];
    uint8_t *bytes, now[NOTE];
    size_t len;
    *is_obsolete = false;
    if (!heft_journal_name(note, t->name, heft_journal_note_suffix))
        return HEFT_OK;
    heft_status st = heft_sealed_load(&bytes, &len, t->dir, note, NOTE, err);
    if (!st && bytes)
        st = encode_note(now, t->fd, err);
    *is_obsolete = !st && bytes && len == NOTE && !memcmp(bytes, now, NOTE);
    free(bytes);
    return st == HEFT_E_FORMAT ? HEFT_OK : st;
}

heft_status heft_journal_remove(const heft_target *t, const char *name, heft_error *err)
{
    const char *const suffixes[] = { heft_journal_suffix, heft_journal_partial_suffix,
                                     heft_journal_note_suffix };
    char full[NAME_MAX + 1];
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        bool exists = false;
        if (heft_journal_name(full, name, suffixes[i]))
            HEFT_TRY(heft_name_exists(&exists, t->dir, full, err));
        if (exists && t->disk->remove(t->dir, full))
            return heft_os_error(err, errno, "its journal cannot be removed");
        if (exists && suffixes[i] == heft_journal_suffix)
            HEFT_TRY(heft_target_sync_dir(t, err)); /* before the note is removed */
    }
    return HEFT_OK;
}

/* ---- reading ---- */

/* Return HEFT_E_IO if the file has a journal that is not obsolete.  Another program may remove the
 * journal and then the note between the two tests; therefore test for the journal again if there is
 * no matching note. */
static heft_status check_journal(const heft_target *t, heft_error *err)
{
    char journal[NAME_MAX + 1];
    bool exists = false, is_obsolete = false;
    if (!heft_journal_name(journal, t->name, heft_journal_suffix))
        return HEFT_OK;
    heft_status st = heft_name_exists(&exists, t->dir, journal, err);
    if (!st && exists)
        st = heft_journal_is_obsolete(&is_obsolete, t, err);
    if (!st && exists && !is_obsolete)
        st = heft_name_exists(&exists, t->dir, journal, err);
    if (st || !exists || is_obsolete)
        return st;
    heft_error_plain(err, HEFT_E_IO,
                     "an edit of it was interrupted or is in progress: it has a journal ('heft "
                     "edit' with no options rolls the edit back)");
    return heft_error_os(err, HEFT_E_IO, EBUSY);
}

static bool still_has_name(const heft_target *t)
{
    struct stat open, named;
    return !fstat(t->fd, &open) && !fstatat(t->dir, t->name, &named, AT_SYMLINK_NOFOLLOW) &&
           open.st_dev == named.st_dev && open.st_ino == named.st_ino;
}

heft_status heft_journal_check(bool *is_same, const char *path, int fd, heft_error *err)
{
    struct stat info;
    char *real = realpath(path, NULL);
    int os = errno;
    *is_same = true;
    if (!real && os == ENOENT && !fstat(fd, &info) && !info.st_nlink)
        return HEFT_OK; /* the file was removed while open, so there is no name for a journal */
    if (!real)
        return heft_os_error(err, os,
                             "its path cannot be resolved to look for the journal of an "
                             "interrupted edit");
    heft_target t = { .disk = &heft_system_disk,
                      .name = strrchr(real, '/') + 1,
                      .fd = fd,
                      .dir = heft_open_folder_of(real, O_PATH) };
    heft_status st = t.dir < 0 ? heft_os_error(err, errno, "its folder cannot be opened")
                               : heft_shard_set_check(t.dir, err);
    if (!st)
        st = check_journal(&t, err);
    *is_same = st ||
               still_has_name(&t); /* last: a journal is removed only after its file was replaced */
    if (t.dir >= 0)
        close(t.dir);
    free(real);
    return st;
}

/* ---- replacing ---- */

/* The file did not get the name, so the note says nothing. */
static void remove_note(heft_journal_retirement *r)
{
    char note[NAME_MAX + 1];
    if (r->has_note && heft_journal_name(note, r->t.name, heft_journal_note_suffix))
        r->t.disk->remove(r->t.dir, note);
    r->has_note = false;
}

static void unlock(heft_journal_retirement *r)
{
    if (r->lock >= 0)
        close(r->lock);
    r->lock = -1;
}

heft_status heft_journal_retire_begin(heft_journal_retirement *r, const heft_disk *disk, int dir,
                                      const char *name, int fd, heft_error *err)
{
    char journal[NAME_MAX + 1], note[NAME_MAX + 1];
    *r = (heft_journal_retirement){ .t = { .disk = disk, .name = name, .fd = fd, .dir = dir },
                                    .lock = -1 };
    if (!heft_journal_name(journal, name, heft_journal_suffix) ||
        !heft_journal_name(note, name, heft_journal_note_suffix))
        return HEFT_OK;
    bool has_journal;
    heft_status st = heft_name_exists(&has_journal, dir, journal, err);
    if (st || !has_journal)
        return st;
    /* the journal may belong to an edit that is in progress */
    r->lock = heft_open_at(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (r->lock < 0 && errno != ENOENT)
        st = heft_os_error(err, errno, "cannot be locked");
    else if (r->lock >= 0 && heft_disk_lock(disk, r->lock) && errno == EWOULDBLOCK)
        st = heft_os_error(err, EBUSY, "another program is editing it");
    r->has_note = !st;
    if (!st)
        st = write_note(&r->t, note, fd, err);
    if (st) {
        remove_note(r);
        unlock(r);
    }
    return st;
}

heft_status heft_journal_retire_end(heft_journal_retirement *r, bool is_replaced, heft_error *err)
{
    heft_error cause;
    heft_status st = HEFT_OK;
    if (!is_replaced)
        remove_note(r);
    else if (still_has_name(&r->t))
        st = heft_journal_remove(&r->t, r->t.name, &cause);
    if (st) {
        heft_error_plain(err, st, "saved, but %s", cause.message);
        heft_error_os(err, st, cause.os);
    }
    unlock(r);
    return st;
}
