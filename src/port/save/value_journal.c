/* value_journal.c - a journal of values that change within the data of a file.
 *
 *    0  "HEFTJRNL"   8  u32 3   12  u32 0   16  u64 size of the file   24  u64 the same
 *   32  BLAKE3 of the bytes of the file outside of the range, at most 64 KiB before and after
 *   64  u64 offset, 72 u64 length of the range with all changes
 *   80  records: u64 offset, u32 length, u32 count, u8 unit, u8 1 with positions, 6 zeros; then
 *       positions, u16 each; then the old units
 *  -32  BLAKE3 of all preceding bytes
 *
 * It is written front to back, since it may be large, and read as a whole.  The new values are not
 * listed: bytes that neither have the old nor the new value are not noticed, but a file that is
 * another one is, by its size and by its bytes around the data. */
#include "port/save/value_journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked_math.h"
#include "port/save/sealed.h"

enum { BUFFER = 1 << 20, HEADER = 80, RECORD = 24, CONTEXT = 64 << 10, MOST = 65536 };

/* ---- the file around the range ---- */

static heft_status hash_range(heft_blake3 *h, int fd, uint64_t from, uint64_t end, heft_error *err)
{
    uint8_t buf[4096];
    for (uint64_t n; from < end; from += n) {
        n = end - from < sizeof buf ? end - from : sizeof buf;
        HEFT_TRY(heft_disk_read_all(&heft_system_disk, fd, from, buf, (size_t)n, err));
        heft_blake3_update(h, buf, (size_t)n);
    }
    return HEFT_OK;
}

static heft_status hash_context(uint8_t out[HEFT_SEAL], int fd, heft_range r, uint64_t size,
                                heft_error *err)
{
    heft_blake3 h;
    uint64_t end = r.offset + r.length, last = size > CONTEXT ? size - CONTEXT : 0;
    heft_blake3_init(&h);
    heft_status st = hash_range(&h, fd, 0, r.offset < CONTEXT ? r.offset : CONTEXT, err);
    if (!st)
        st = hash_range(&h, fd, end > last ? end : last, size, err);
    heft_blake3_final(&h, out);
    return st;
}

/* ---- writing ---- */

static heft_status flush(heft_value_journal *j, heft_error *err)
{
    heft_blake3_update(&j->seal, j->buffer, j->used);
    heft_status st = heft_target_write(j->t, j->fd, j->written, j->buffer, j->used, err);
    j->written += j->used;
    j->used = 0;
    return st;
}

static heft_status put(heft_value_journal *j, const void *data, size_t len, heft_error *err)
{
    const uint8_t *from = data;
    for (size_t n; len; len -= n, from += n) {
        n = BUFFER - j->used < len ? BUFFER - j->used : len;
        memcpy(j->buffer + j->used, from, n);
        j->used += n;
        if (j->used == BUFFER)
            HEFT_TRY(flush(j, err));
    }
    return HEFT_OK;
}

heft_status heft_value_journal_begin(heft_value_journal *j, const heft_target *t, heft_range within,
                                     heft_error *err)
{
    uint8_t header[HEADER], *to = header;
    uint64_t size = (uint64_t)t->stat_at_open.st_size;
    *j = (heft_value_journal){ .t = t, .fd = -1 };
    if (!heft_journal_name(j->name, t->name, heft_journal_suffix) ||
        !heft_journal_name(j->partial, t->name, heft_journal_partial_suffix))
        return heft_error_plain(err, HEFT_E_UNSUPPORTED,
                                "its name is too long for a journal beside it (write a new file)");
    j->buffer = malloc(BUFFER);
    if (!j->buffer)
        return heft_error_no_memory(err, "for a journal");
    to = heft_put_bytes(to, "HEFTJRNL", 8);
    to = heft_put(heft_put(to, HEFT_VALUE_JOURNAL_VERSION, 4), 0, 4);
    to = heft_put(heft_put(to, size, 8), size, 8);
    HEFT_TRY(hash_context(to, t->fd, within, size, err));
    heft_put(heft_put(to + HEFT_SEAL, within.offset, 8), within.length, 8);
    heft_blake3_init(&j->seal);
    HEFT_TRY(heft_journal_remove(t, t->name, err)); /* left by a killed program */
    j->fd = heft_disk_create(t->disk, t->dir, j->partial, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC,
                             0600);
    if (j->fd < 0)
        return heft_os_error(err, errno, "a journal cannot be put beside it");
    return put(j, header, sizeof header, err);
}

static heft_status put_positions(heft_value_journal *j, const heft_value_record *r, heft_error *err)
{
    uint8_t bytes[4096];
    for (uint32_t i = 0; i < r->count;) {
        size_t n = 0;
        for (; n < sizeof bytes && i < r->count; n += 2, i++) {
            unsigned at = (unsigned)r->positions[i] - r->positions[0];
            bytes[n] = (uint8_t)at;
            bytes[n + 1] = (uint8_t)(at >> 8);
        }
        HEFT_TRY(put(j, bytes, n, err));
    }
    return HEFT_OK;
}

heft_status heft_value_journal_add(heft_value_journal *j, const heft_value_record *r,
                                   heft_error *err)
{
    uint8_t head[RECORD] = { 0 };
    heft_put(heft_put(heft_put(head, r->at, 8), r->length, 4), r->count, 4);
    head[16] = (uint8_t)r->unit;
    head[17] = r->positions != NULL;
    HEFT_TRY(put(j, head, sizeof head, err));
    if (r->positions)
        HEFT_TRY(put_positions(j, r, err));
    return put(j, r->old, (size_t)r->count * r->unit, err);
}

heft_status heft_value_journal_commit(heft_value_journal *j, heft_error *err)
{
    const heft_target *t = j->t;
    uint8_t seal[HEFT_SEAL];
    HEFT_TRY(flush(j, err));
    heft_blake3_final(&j->seal, seal);
    HEFT_TRY(heft_target_write(t, j->fd, j->written, seal, sizeof seal, err));
    if (heft_disk_sync(t->disk, j->fd))
        return heft_os_error(err, errno, "writing the journal to disk failed");
    if (t->disk->rename(t->dir, j->partial, j->name))
        return heft_os_error(err, errno, "a journal cannot be put beside it");
    close(j->fd);
    j->fd = -1;
    heft_status st = heft_target_sync_dir(t, err);
    if (st)
        t->disk->remove(t->dir, j->name);
    return st;
}

heft_status heft_value_journal_remove(const heft_value_journal *j, heft_error *err)
{
    if (j->t->disk->remove(j->t->dir, j->name))
        return heft_os_error(err, errno, "its journal cannot be removed");
    return heft_disk_sync_dir_after_save(j->t->disk, j->t->dir, err);
}

void heft_value_journal_close(heft_value_journal *j)
{
    if (j->fd >= 0) {
        close(j->fd);
        j->t->disk->remove(j->t->dir, j->partial);
    }
    free(j->buffer);
}

/* ---- reading ---- */

typedef struct record {
    heft_value_record r;
    const uint8_t *positions; /* little-endian, or NULL */
} record;

static uint32_t position_at(const record *r, uint32_t i)
{
    return (uint32_t)heft_get(r->positions + (size_t)i * 2, 2);
}

/* Return true if the positions ascend from 0 within the range. */
static bool has_positions(const record *r)
{
    uint32_t last = 0;
    for (uint32_t i = 0; i < r->r.count; i++) {
        uint32_t at = position_at(r, i);
        if (i ? at <= last : at != 0)
            return false;
        last = at;
    }
    return r->r.count && ((uint64_t)last + 1) * r->r.unit == r->r.length;
}

/* Decode the record at *p and advance; return false if it is not valid, or lies before `from` or
 * after the end of the file. */
static bool decode(record *out, const uint8_t **p, const uint8_t *end, uint64_t from, uint64_t size)
{
    const uint8_t *head = *p;
    uint64_t left = (uint64_t)(end - head);
    if (left < RECORD)
        return false;
    uint32_t unit = head[16];
    *out = (record){ .r = { .at = heft_get(head, 8),
                            .length = (uint32_t)heft_get(head + 8, 4),
                            .count = (uint32_t)heft_get(head + 12, 4),
                            .unit = unit } };
    const heft_value_record *r = &out->r;
    uint64_t positions = head[17] ? (uint64_t)r->count * 2 : 0, values = (uint64_t)r->count * unit;
    bool is_unit = unit == 1 || unit == 2 || unit == 4 || unit == 8;
    if (!is_unit || head[17] > 1 || r->count > MOST || r->length > (uint64_t)MOST * unit ||
        positions + values > left - RECORD || r->at < from ||
        !heft_range_in((heft_range){ r->at, r->length }, size))
        return false;
    out->positions = head[17] ? head + RECORD : NULL;
    out->r.old = head + RECORD + positions;
    *p = out->r.old + values;
    return out->positions ? has_positions(out) : r->length == values;
}

/* Values that are there already are not written: on a full disk, a range without blocks that could
 * not be changed cannot be written either. */
static heft_status write_back(const heft_target *t, const record *r, uint8_t *buf, heft_error *err)
{
    const heft_value_record *v = &r->r;
    heft_status st = heft_disk_read_all(t->disk, t->fd, v->at, buf, v->length, err);
    if (!r->positions) { /* bytes that cannot be read are not needed */
        bool is_there = !st && !memcmp(buf, v->old, v->length);
        return is_there ? HEFT_OK : heft_target_write(t, t->fd, v->at, v->old, v->length, err);
    }
    HEFT_TRY(st);
    bool differs = false;
    for (uint32_t i = 0; i < v->count; i++) {
        uint8_t *to = buf + (size_t)position_at(r, i) * v->unit;
        const uint8_t *old = v->old + (size_t)i * v->unit;
        differs = differs || memcmp(to, old, v->unit) != 0;
        memcpy(to, old, v->unit);
    }
    return differs ? heft_target_write(t, t->fd, v->at, buf, v->length, err) : HEFT_OK;
}

static heft_status damaged(const char *name, heft_error *err)
{
    return heft_error_plain(err, HEFT_E_FORMAT,
                            "%s, the journal of an interrupted change, is damaged: nothing was "
                            "changed (compare with a copy, then remove the journal)",
                            name);
}

/* Walk over the records, and write them back if buf is not NULL; without it, check them. */
static heft_status walk(const heft_target *t, const char *name, const uint8_t *bytes, size_t len,
                        uint8_t *buf, heft_error *err)
{
    const uint8_t *p = bytes + HEADER, *end = bytes + len - HEFT_SEAL;
    uint64_t from = heft_get(bytes + 64, 8), limit = from + heft_get(bytes + 72, 8);
    for (record r; p < end; from = r.r.at + r.r.length) {
        if (!decode(&r, &p, end, from, limit))
            return damaged(name, err);
        if (buf)
            HEFT_TRY(write_back(t, &r, buf, err));
    }
    return HEFT_OK;
}

static heft_status check_file(const heft_target *t, const char *name, const uint8_t *bytes,
                              heft_error *err)
{
    struct stat now;
    uint8_t hash[HEFT_SEAL];
    heft_range within = { heft_get(bytes + 64, 8), heft_get(bytes + 72, 8) };
    uint64_t size = heft_get(bytes + 16, 8);
    if (!heft_range_in(within, size))
        return damaged(name, err);
    if (fstat(t->fd, &now))
        return heft_os_error(err, errno, "its status cannot be read");
    bool matches = (uint64_t)now.st_size == size;
    if (matches)
        HEFT_TRY(hash_context(hash, t->fd, within, size, err));
    if (matches && !memcmp(hash, bytes + 32, HEFT_SEAL))
        return HEFT_OK;
    return heft_error_plain(err, HEFT_E_FORMAT,
                            "the journal %s belongs to another file: nothing was changed (if this "
                            "file is good, remove the journal)",
                            name);
}

heft_status heft_value_journal_restore(const heft_target *t, const char *name, const uint8_t *bytes,
                                       size_t len, heft_error *err)
{
    if (len < HEADER + HEFT_SEAL)
        return damaged(name, err);
    HEFT_TRY(check_file(t, name, bytes, err));
    HEFT_TRY(walk(t, name, bytes, len, NULL, err));
    uint8_t *buf = malloc((size_t)MOST * 8);
    if (!buf)
        return heft_error_no_memory(err, "to restore a file");
    heft_status st = walk(t, name, bytes, len, buf, err);
    free(buf);
    if (!st && heft_disk_sync(t->disk, t->fd))
        st = heft_os_error(err, errno, "writing to disk failed");
    return st;
}
