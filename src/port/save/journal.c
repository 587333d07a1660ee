/* journal.c - edit a file in place, protected by a journal that can roll the edit back.
 *
 *    0  "HEFTJRNL"   8  u32 1   12  u32 records   16  u64 size before   24  u64 size after
 *   32  32 bytes: BLAKE3 of both ends of the file, without the bytes of the records
 *   64  records: u64 offset, u64 length before, u64 length after, bytes before, bytes after
 *  -32  BLAKE3 of all preceding bytes
 *
 * Appended bytes may be large and are not listed.  A journal with such a record has version 2: each
 * record has one more u64 after the lengths, the number of listed bytes after, which is the length
 * after or 0.
 *
 * The journal gets its name, complete and synced, before the first byte of the file changes, and is
 * removed when the last byte is on disk.  As long as the journal exists, the edit has not happened:
 * the next program that edits the file writes the bytes before back.  If the file has bytes that
 * are neither the bytes before nor the bytes after, somebody else changed the file, and it is left
 * alone. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/blake3.h"
#include "base/checked_math.h"
#include "port/save/sealed.h"
#include "port/save/value_journal.h"
#include "port/system/disk.h"

enum {
    HEADER = 64,
    RECORD = 24, /* plus 8 in version 2 */
    HASH = HEFT_SEAL,
    VERSION_ALL_LISTED = 1,
    VERSION_SOME_UNLISTED = 2,
    CONTEXT = 64 << 10, /* bytes hashed at each end of the file */
    STEP = 4096
};

static const char magic[] = "HEFTJRNL";
const char heft_journal_suffix[] = ".heft-journal",
           heft_journal_partial_suffix[] = ".heft-journal-new",
           heft_journal_note_suffix[] = ".heft-replaced";

typedef struct record {
    uint64_t at, old_len, new_len;
    const uint8_t *old, *new; /* new is NULL if the new bytes are not listed; ... */
    uint64_t from;            /* ... then the offset in the file of appended tensors */
} record;

typedef struct journal {
    uint64_t old_size, new_size;
    uint8_t context_hash[HASH];
    record *records;
    uint32_t count;
    uint8_t *bytes; /* owned; the records point into it; NULL: each record owns its old bytes */
} journal;

static const char purpose[] = "for a journal";

static void free_journal(journal *j)
{
    for (uint32_t i = 0; !j->bytes && i < j->count; i++)
        free((void *)(uintptr_t)j->records[i].old);
    free(j->records);
    free(j->bytes);
}

bool heft_journal_name(char out[NAME_MAX + 1], const char *name, const char *suffix)
{
    size_t len = strlen(name), end_len = strlen(suffix);
    if (len + end_len > NAME_MAX)
        return false;
    memcpy(out, name, len);
    memcpy(out + len, suffix, end_len + 1);
    return true;
}

/* ---- recognising the file ---- */

/* Hash bytes [at, end) of the file, with zeros instead of the bytes that the edit may have
 * changed. */
static heft_status hash_around(heft_blake3 *h, const journal *j, int fd, uint64_t at, uint64_t end,
                               heft_error *err)
{
    uint8_t buf[STEP];
    for (uint64_t n; at < end; at += n) {
        n = end - at < STEP ? end - at : STEP;
        HEFT_TRY(heft_disk_read_all(&heft_system_disk, fd, at, buf, (size_t)n, err));
        for (uint32_t i = 0; i < j->count; i++) {
            const record *r = &j->records[i];
            uint64_t longer = r->old_len > r->new_len ? r->old_len : r->new_len;
            uint64_t from = r->at > at ? r->at : at, to = r->at + longer;
            to = to < at + n ? to : at + n;
            if (from < to)
                memset(buf + (from - at), 0, (size_t)(to - from));
        }
        heft_blake3_update(h, buf, (size_t)n);
    }
    return HEFT_OK;
}

static heft_status hash_file(uint8_t out[HASH], const journal *j, int fd, heft_error *err)
{
    heft_blake3 h;
    uint64_t size = j->old_size < j->new_size ? j->old_size : j->new_size;
    uint64_t head = size < CONTEXT ? size : CONTEXT;
    heft_blake3_init(&h);
    heft_status st = hash_around(&h, j, fd, 0, head, err);
    if (!st)
        st = hash_around(&h, j, fd, size - head, size, err);
    heft_blake3_final(&h, out);
    return st;
}

/* ---- the bytes that an edit changes ---- */

/* Shorten the record to the bytes that differ; return false if the record is empty. */
static bool trim(record *r)
{
    if (!r->new)
        return r->old_len || r->new_len;
    uint64_t common = r->old_len < r->new_len ? r->old_len : r->new_len, n = 0;
    while (n < common && r->old[n] == r->new[n])
        n++;
    uint64_t suffix_length = 0;
    while (r->old_len == r->new_len && suffix_length < common - n &&
           r->old[r->old_len - 1 - suffix_length] == r->new[r->new_len - 1 - suffix_length])
        suffix_length++;
    if (n) { /* old and new may be NULL if n is 0 */
        memmove((uint8_t *)(uintptr_t)r->old, r->old + n, (size_t)(r->old_len - n));
        r->at += n;
        r->new += n;
    }
    r->old_len -= n + suffix_length;
    r->new_len -= n + suffix_length;
    return r->old_len || r->new_len;
}

static heft_status add_record(journal *j, const heft_target *t, record r, heft_error *err)
{
    uint64_t left = r.at < j->old_size ? j->old_size - r.at : 0;
    r.old_len = r.old_len < left ? r.old_len : left;
    uint8_t *old = r.old_len < SIZE_MAX ? malloc((size_t)r.old_len + 1) : NULL;
    if (!old)
        return heft_error_no_memory(err, purpose);
    heft_status st = heft_disk_read_all(&heft_system_disk, t->fd, r.at, old, (size_t)r.old_len,
                                        err);
    r.old = old;
    if (!st && trim(&r))
        j->records[j->count++] = r;
    else
        free(old);
    return st;
}

static heft_status collect_records(journal *j, const heft_target *t, const heft_edit *e,
                                   heft_error *err)
{
    const heft_edit_extent *p;
    size_t n = heft_edit_extents(e, &p);
    *j = (journal){ .old_size = (uint64_t)t->stat_at_open.st_size, .new_size = heft_edit_size(e) };
    j->records = calloc(n + 1, sizeof *j->records);
    if (!j->records)
        return heft_error_no_memory(err, purpose);
    for (size_t i = 0; i < n; i++)
        if (p[i].data || p[i].file)
            HEFT_TRY(add_record(j, t,
                                (record){ .at = p[i].at,
                                          .old_len = p[i].length,
                                          .new_len = p[i].length,
                                          .new = p[i].data,
                                          .from = p[i].from },
                                err));
    uint64_t cut = j->new_size < j->old_size ? j->old_size - j->new_size : 0;
    if (cut)
        HEFT_TRY(add_record(j, t, (record){ .at = j->new_size, .old_len = cut }, err));
    return hash_file(j->context_hash, j, t->fd, err);
}

/* ---- the journal's bytes ---- */

static uint64_t listed_length(const record *r)
{
    return r->new ? r->new_len : 0;
}

static heft_status write_journal(const journal *j, const heft_target *t, const char *name,
                                 const char *partial, heft_error *err)
{
    bool all_listed = true;
    size_t len = HEADER + HASH;
    for (uint32_t i = 0; i < j->count; i++)
        all_listed = all_listed && listed_length(&j->records[i]) == j->records[i].new_len;
    for (uint32_t i = 0; i < j->count; i++)
        len += RECORD + !all_listed * 8u +
               (size_t)(j->records[i].old_len + listed_length(&j->records[i]));
    uint8_t *bytes = malloc(len), *to = bytes;
    if (!bytes)
        return heft_error_no_memory(err, purpose);
    to = heft_put_bytes(to, magic, 8);
    to = heft_put(heft_put(to, all_listed ? VERSION_ALL_LISTED : VERSION_SOME_UNLISTED, 4),
                  j->count, 4);
    to = heft_put(heft_put(to, j->old_size, 8), j->new_size, 8);
    to = heft_put_bytes(to, j->context_hash, HASH);
    for (uint32_t i = 0; i < j->count; i++) {
        const record *r = &j->records[i];
        to = heft_put(heft_put(heft_put(to, r->at, 8), r->old_len, 8), r->new_len, 8);
        to = all_listed ? to : heft_put(to, listed_length(r), 8);
        to = heft_put_bytes(heft_put_bytes(to, r->old, r->old_len), r->new, listed_length(r));
    }
    heft_seal(bytes, len);
    heft_status st = heft_journal_remove(t, t->name, err);
    if (!st)
        st = heft_sealed_store(t, name, partial, bytes, len, err);
    free(bytes);
    return st;
}

static heft_status damaged(const char *name, heft_error *err)
{
    return heft_error_plain(err, HEFT_E_FORMAT,
                            "%s, the journal of an interrupted edit, is damaged: nothing was "
                            "changed (compare with a copy, then remove the journal)",
                            name);
}

/* Decode the record at *p, where *left bytes remain, and advance both; return false if the record
 * is not valid. */
static bool decode_record(record *r, const journal *j, bool has_listed, const uint8_t **p,
                          uint64_t *left)
{
    uint64_t head = RECORD + has_listed * 8u;
    if (*left < head)
        return false;
    *r = (record){ .at = heft_get(*p, 8),
                   .old_len = heft_get(*p + 8, 8),
                   .new_len = heft_get(*p + 16, 8),
                   .old = *p + head };
    uint64_t count = has_listed ? heft_get(*p + RECORD, 8) : r->new_len;
    *left -= head;
    if (r->old_len > *left || count > *left - r->old_len || (count && count != r->new_len) ||
        (r->old_len && !heft_range_in((heft_range){ r->at, r->old_len }, j->old_size)) ||
        !heft_range_in((heft_range){ r->at, r->new_len }, j->new_size))
        return false;
    r->new = count == r->new_len ? r->old + r->old_len : NULL;
    *p += head + r->old_len + count;
    *left -= r->old_len + count;
    return true;
}

static heft_status decode(journal *j, const char *name, uint8_t *take, size_t len, heft_error *err)
{
    *j = (journal){ .bytes = take };
    if (len < HEADER + HASH || !heft_is_sealed(take, len, magic))
        return damaged(name, err);
    uint64_t version = heft_get(take + 8, 4);
    if (version != VERSION_ALL_LISTED && version != VERSION_SOME_UNLISTED)
        return heft_error_plain(err, HEFT_E_UNSUPPORTED,
                                "the journal of an interrupted edit has version %U: use a newer "
                                "heft to roll the edit back",
                                version);
    uint64_t count = heft_get(take + 12, 4), left = len - HEADER - HASH;
    const uint8_t *p = take + HEADER;
    j->old_size = heft_get(take + 16, 8);
    j->new_size = heft_get(take + 24, 8);
    memcpy(j->context_hash, take + 32, HASH);
    if (count > left / RECORD)
        return damaged(name, err);
    j->records = calloc((size_t)count + 1, sizeof *j->records);
    if (!j->records)
        return heft_error_no_memory(err, purpose);
    for (; j->count < count; j->count++)
        if (!decode_record(&j->records[j->count], j, version == VERSION_SOME_UNLISTED, &p, &left))
            return damaged(name, err);
    return left ? damaged(name, err) : HEFT_OK;
}

/* ---- writing, rolling back ---- */

/* Write bytes [from, to) of a record's new bytes, from memory or from the file of appended
 * tensors. */
static heft_status write_range(const record *r, const heft_target *t, heft_range_copier *copier,
                               uint64_t from, uint64_t to, heft_error *err)
{
    if (from >= to)
        return HEFT_OK;
    if (r->new)
        return heft_target_write(t, t->fd, r->at + from, r->new + from, (size_t)(to - from), err);
    heft_edit_extent p = { .at = r->at + from, .length = to - from, .from = r->from + from };
    return heft_copy_range(copier, t->added_fd, p, err);
}

static heft_status truncate_and_sync(const heft_target *t, uint64_t size, bool may_be_longer,
                                     heft_error *err)
{
    if (may_be_longer && heft_disk_truncate(t->disk, t->fd, (off_t)size))
        return heft_os_error(err, errno, "truncating it failed");
    if (heft_disk_sync(t->disk, t->fd))
        return heft_os_error(err, errno, "writing to disk failed");
    return HEFT_OK;
}

/* Write from the end to the start, so that a full disk is noticed before existing bytes are
 * overwritten. */
static heft_status write_new(const journal *j, const heft_target *t, const heft_edit_task *task,
                             heft_error *err)
{
    heft_range_copier copier = { .disk = t->disk,
                                 .to = t->fd,
                                 .progress = task->progress,
                                 .progress_ctx = task->progress_ctx,
                                 .cancelled_message = task->cancelled_message };
    heft_status st = HEFT_OK;
    for (uint32_t i = 0; i < j->count; i++)
        copier.total += j->records[i].new_len - listed_length(&j->records[i]);
    for (uint32_t i = j->count; i-- && !st;) {
        const record *r = &j->records[i];
        uint64_t overlap = r->old_len < r->new_len ? r->old_len : r->new_len;
        uint64_t overwritten = r->new ? 0 : overlap; /* existing bytes, written after the rest */
        st = write_range(r, t, &copier, overwritten, r->new_len, err);
        if (!st)
            st = write_range(r, t, &copier, 0, overwritten, err);
    }
    heft_range_copier_end(&copier);
    return st ? st : truncate_and_sync(t, j->new_size, j->new_size < j->old_size, err);
}

static heft_status write_old(const journal *j, const heft_target *t, heft_error *err)
{
    for (uint32_t i = 0; i < j->count; i++)
        HEFT_TRY(heft_target_write(t, t->fd, j->records[i].at, j->records[i].old,
                                   (size_t)j->records[i].old_len, err));
    return truncate_and_sync(t, j->old_size, true, err);
}

static heft_status remove_journal(const heft_target *t, const char *name, heft_error *err)
{
    if (t->disk->remove(t->dir, name))
        return heft_os_error(err, errno, "its journal cannot be removed");
    return heft_disk_sync_dir_after_save(t->disk, t->dir, err);
}

/* Roll back and keep the error in *err, unless rolling back fails, too: then say how to repair the
 * file. */
static heft_status roll_back(const journal *j, const heft_target *t, const char *name,
                             heft_error *err)
{
    heft_error undo_error;
    heft_status st = write_old(j, t, &undo_error);
    if (!st)
        st = remove_journal(t, name, &undo_error);
    if (!st)
        return err->status;
    heft_error first_error = *err;
    return heft_error_plain(err, HEFT_E_IO,
                            "%s, and rolling back failed: the original bytes are in %s, and "
                            "'heft edit' with no options restores them",
                            first_error.message, name);
}

static bool journal_names(char name[NAME_MAX + 1], char partial[NAME_MAX + 1], const heft_target *t)
{
    return heft_journal_name(name, t->name, heft_journal_suffix) &&
           heft_journal_name(partial, t->name, heft_journal_partial_suffix);
}

bool heft_journal_fits(const heft_target *t)
{
    char name[NAME_MAX + 1], partial[NAME_MAX + 1];
    return journal_names(name, partial, t);
}

heft_status heft_journal_edit(bool *changed, const heft_target *t, const heft_edit_task *task,
                              heft_error *err)
{
    char name[NAME_MAX + 1], partial[NAME_MAX + 1];
    heft_error ignored;
    journal j = { .count = 0 };
    *changed = false;
    (void)journal_names(name, partial, t); /* the caller has called heft_journal_fits() */
    heft_status st = collect_records(&j, t, task->edit, err);
    *changed = j.count > 0;
    if (!st && *changed)
        st = write_journal(&j, t, name, partial, err);
    if (!st && *changed) {
        st = heft_target_check_unchanged(t, err);
        if (st) /* the file was not touched: a journal that cannot be removed does no harm */
            (void)!remove_journal(t, name, &ignored);
        else
            st = write_new(&j, t, task, err) ? roll_back(&j, t, name, err)
                                             : remove_journal(t, name, err);
    }
    free_journal(&j);
    return st;
}

/* ---- rolling back an interrupted edit ---- */

/* Clear *matches unless each byte of the record's range is the old byte or the new byte or, past
 * the old end of the file, zero: file systems put zeros where an appended byte was not written
 * before a power failure. */
static heft_status check_record(bool *matches, const journal *j, const record *r, int fd,
                                uint64_t size, heft_error *err)
{
    uint8_t buf[STEP];
    uint64_t len = r->old_len > r->new_len ? r->old_len : r->new_len;
    uint64_t left = r->at < size ? size - r->at : 0;
    len = len < left ? len : left;
    for (uint64_t at = 0, n; at < len && *matches; at += n) {
        n = len - at < STEP ? len - at : STEP;
        HEFT_TRY(heft_disk_read_all(&heft_system_disk, fd, r->at + at, buf, (size_t)n, err));
        for (uint64_t i = at; i < at + n; i++) {
            uint8_t byte = buf[i - at];
            bool old = i < r->old_len && byte == r->old[i];
            bool new = i < r->new_len && (!r->new || byte == r->new[i]);
            *matches = *matches && (old || new || (r->at + i >= j->old_size && !byte));
        }
    }
    return HEFT_OK;
}

/* Fail unless the file is the journal's file in the middle of the edit: a torn write leaves any
 * mixture of old and new bytes, and any size between the two sizes. */
static heft_status check_file(const journal *j, const heft_target *t, heft_error *err)
{
    uint8_t context_hash[HASH];
    struct stat now;
    if (fstat(t->fd, &now))
        return heft_os_error(err, errno, "its status cannot be read");
    uint64_t size = (uint64_t)now.st_size;
    uint64_t smallest = j->old_size < j->new_size ? j->old_size : j->new_size;
    bool matches = size >= smallest &&
                   size <= (j->old_size > j->new_size ? j->old_size : j->new_size);
    heft_status st = HEFT_OK;
    if (matches) {
        st = hash_file(context_hash, j, t->fd, err);
        matches = !st && !memcmp(context_hash, j->context_hash, HASH);
    }
    for (uint32_t i = 0; i < j->count && !st && matches; i++)
        st = check_record(&matches, j, &j->records[i], t->fd, size, err);
    if (st || matches)
        return st;
    return heft_error_plain(
        err, HEFT_E_FORMAT,
        "the journal %s%s belongs to another file, or this file was changed after the interrupted "
        "edit: nothing was changed (if this file is good, remove the journal)",
        t->name, heft_journal_suffix);
}

static bool is_of_values(const uint8_t *bytes, size_t len)
{
    return len >= HEADER + HASH && heft_is_sealed(bytes, len, magic) &&
           heft_get(bytes + 8, 4) == HEFT_VALUE_JOURNAL_VERSION;
}

heft_status heft_journal_undo(bool *undone, const heft_target *t, heft_error *err)
{
    char name[NAME_MAX + 1];
    bool is_obsolete;
    uint8_t *bytes;
    size_t len;
    journal j = { .count = 0 };
    *undone = false;
    if (!heft_journal_name(name, t->name, heft_journal_suffix))
        return HEFT_OK;
    heft_status st = heft_journal_is_obsolete(&is_obsolete, t, err);
    if (st || is_obsolete)
        return st ? st : heft_journal_remove(t, t->name, err);
    st = heft_sealed_load(&bytes, &len, t->dir, name, UINT64_MAX, err);
    if (st || !bytes)
        return st == HEFT_E_FORMAT ? damaged(name, err) : st;
    if (is_of_values(bytes, len)) {
        st = heft_value_journal_restore(t, name, bytes, len, err);
        j.bytes = bytes;
    } else {
        st = decode(&j, name, bytes, len, err);
        if (!st)
            st = check_file(&j, t, err);
        if (!st)
            st = write_old(&j, t, err);
    }
    if (!st)
        st = remove_journal(t, name, err);
    *undone = !st;
    free_journal(&j);
    return st;
}

heft_status heft_journal_undo_after(const heft_target *t, heft_error *err)
{
    heft_error cause = *err;
    bool undone;
    if (!heft_journal_undo(&undone, t, err)) {
        *err = cause;
        return err->status;
    }
    heft_error why = *err;
    return heft_error_plain(err, HEFT_E_IO,
                            "%s, and undoing the change failed (%s): 'heft edit' with no options "
                            "restores the file from its journal",
                            cause.message, why.message);
}
