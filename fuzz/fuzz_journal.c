/* fuzz_journal.c - fuzzes the recovery of interrupted edits, in a folder in memory.  The input is a
 * file, a journal that the target seals, and how far the edit has come: recovery restores the file.
 * A journal that is damaged afterwards changes nothing.  Any sealed bytes as the journal of an edit
 * or of a set of files are survived. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/blake3.h"
#include "fuzz.h"
#include "port/save/sealed.h"

enum { HEADER = 64, RECORD = 24, MAX_RECORDS = 4, MAX_FILE = 512, PATH = 128 };

static char dir[64];

static void remove_all(void)
{
    DIR *d = opendir(dir);
    fuzz_require(d);
    for (struct dirent *e; (e = readdir(d));)
        unlinkat(dirfd(d), e->d_name, 0);
    closedir(d);
}

static void remove_dir(void)
{
    remove_all();
    rmdir(dir);
}

static void make_dir(void)
{
    if (*dir)
        return;
    snprintf(dir, sizeof dir, "/dev/shm/heft-fuzz-XXXXXX");
    if (!mkdtemp(dir)) {
        snprintf(dir, sizeof dir, "/tmp/heft-fuzz-XXXXXX");
        fuzz_require(mkdtemp(dir));
    }
    atexit(remove_dir);
}

static void store(const char *name, const void *bytes, size_t len)
{
    char path[PATH];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    fuzz_require(fd >= 0 && write(fd, bytes, len) == (ssize_t)len && !close(fd));
}

static bool exists(const char *name)
{
    char path[PATH];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return !access(path, F_OK);
}

static bool holds(const char *name, const uint8_t *bytes, size_t len)
{
    uint8_t got[4 * MAX_FILE];
    char path[PATH];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    int fd = open(path, O_RDONLY);
    ssize_t n = read(fd, got, sizeof got);
    return !close(fd) && n == (ssize_t)len && !memcmp(got, bytes, len);
}

static heft_status recover(bool *rolled_back)
{
    char path[PATH];
    heft_error err = fuzz_no_error();
    snprintf(path, sizeof path, "%s/m", dir);
    heft_status st = heft_edit_recover(rolled_back, path, &err);
    fuzz_require_error(st, &err);
    return st;
}

/* ---- a journal as Heft writes it ------------------------------------------------------------ */

typedef struct edit {
    uint8_t before[MAX_FILE], after[2 * MAX_FILE], now[2 * MAX_FILE];
    size_t old_size, new_size, now_size;
    uint8_t journal[HEADER + MAX_RECORDS * (RECORD + 3 * MAX_FILE) + HEFT_SEAL];
    size_t len;
} edit;

/* Hash both ends of the file, which is shorter than an end, without the bytes of the records. */
static void hash_context(edit *e, const heft_range *changed, uint32_t count)
{
    uint8_t bytes[MAX_FILE];
    heft_blake3 h;
    size_t size = e->old_size < e->new_size ? e->old_size : e->new_size;
    memcpy(bytes, e->before, size);
    for (uint32_t i = 0; i < count; i++)
        for (uint64_t k = 0; k < changed[i].length && changed[i].offset + k < size; k++)
            bytes[changed[i].offset + k] = 0;
    heft_blake3_init(&h);
    heft_blake3_update(&h, bytes, size);
    heft_blake3_update(&h, bytes, size);
    heft_blake3_final(&h, e->journal + 32);
}

/* Append a record: `length` bytes at an offset become other bytes, perhaps past the old end. */
static void put_record(edit *e, heft_range r, fuzz_script *s)
{
    uint64_t left = r.offset < e->old_size ? e->old_size - r.offset : 0;
    uint64_t old_len = r.length < left ? r.length : left;
    uint64_t new_left = r.offset < e->new_size ? e->new_size - r.offset : 0;
    uint64_t new_len = r.length < new_left ? r.length : new_left;
    uint8_t *to = e->journal + e->len;
    for (uint64_t i = 0; i < new_len; i++)
        e->after[r.offset + i] = (uint8_t)fuzz_next(s);
    to = heft_put(heft_put(heft_put(to, r.offset, 8), old_len, 8), new_len, 8);
    to = heft_put_bytes(to, e->before + r.offset, old_len);
    to = heft_put_bytes(to, e->after + r.offset, new_len);
    e->len = (size_t)(to - e->journal);
}

/* Plan disjoint records in order; the last record covers the bytes after the shorter end. */
static void make_journal(edit *e, fuzz_script *s)
{
    heft_range changed[MAX_RECORDS];
    uint32_t count = 0;
    size_t size = e->old_size < e->new_size ? e->old_size : e->new_size;
    size_t longer = e->old_size < e->new_size ? e->new_size : e->old_size;
    uint64_t at = 0;
    memset(e->after, 0, sizeof e->after);
    memcpy(e->after, e->before, size);
    e->len = HEADER;
    for (; count < fuzz_next(s) % MAX_RECORDS; count++) {
        changed[count] = (heft_range){ at + fuzz_next(s), fuzz_next(s) % 32 };
        at = changed[count].offset + changed[count].length;
        if (!changed[count].length || at > size)
            break;
        put_record(e, changed[count], s);
    }
    if (longer > size) {
        changed[count] = (heft_range){ size, longer - size };
        put_record(e, changed[count++], s);
    }
    uint8_t *head = heft_put_bytes(e->journal, "HEFTJRNL", 8);
    head = heft_put(heft_put(head, 1, 4), count, 4);
    heft_put(heft_put(head, e->old_size, 8), e->new_size, 8);
    hash_context(e, changed, count);
    e->len += HEFT_SEAL;
    heft_seal(e->journal, e->len);
}

/* Apply some bytes of the edit, as before a power failure. */
static void interrupt(edit *e, fuzz_script *s)
{
    size_t size = e->old_size < e->new_size ? e->old_size : e->new_size;
    bool has_new_size = fuzz_next(s) % 2;
    e->now_size = has_new_size && e->new_size > e->old_size ? e->new_size : e->old_size;
    memset(e->now, 0, sizeof e->now);
    memcpy(e->now, e->before, e->old_size);
    for (size_t i = 0; i < e->now_size && i < e->new_size; i++)
        if (fuzz_next(s) % 2)
            e->now[i] = e->after[i];
    if (has_new_size && e->new_size < e->old_size)
        e->now_size = e->new_size;
    fuzz_use(size);
}

static void try_edit(const uint8_t *data, size_t size, fuzz_script *s)
{
    edit e = { .old_size = size < MAX_FILE ? size : MAX_FILE };
    bool rolled_back = false;
    memcpy(e.before, data, e.old_size);
    uint32_t how = fuzz_next(s), change = fuzz_next(s);
    e.new_size = how % 3 == 0 ? e.old_size : how % 3 == 1 ? e.old_size + change : change;
    e.new_size = how % 3 == 2 && change > e.old_size ? e.old_size : e.new_size;
    make_journal(&e, s);
    interrupt(&e, s);
    bool is_damaged = how & 64;
    if (is_damaged)
        e.journal[(fuzz_next(s) * 7u) % e.len] ^= (uint8_t)(1 + fuzz_next(s) % 255);
    store("m", e.now, e.now_size);
    store("m.heft-journal", e.journal, e.len);
    heft_status st = recover(&rolled_back);
    if (is_damaged) {
        fuzz_require(st && holds("m", e.now, e.now_size) && exists("m.heft-journal"));
    } else {
        fuzz_require(!st && rolled_back && holds("m", e.before, e.old_size));
        fuzz_require(!exists("m.heft-journal"));
    }
}

/* ---- any bytes ------------------------------------------------------------------------------ */

static void try_bytes(const uint8_t *data, size_t size, bool of_set)
{
    bool rolled_back = false;
    size_t len = size < 8 ? 8 + HEFT_SEAL : size + HEFT_SEAL;
    uint8_t *journal = calloc(1, len);
    fuzz_require(journal);
    memcpy(journal, data, size);
    memcpy(journal, of_set ? "HEFTSETJ" : "HEFTJRNL", 8);
    heft_seal(journal, len);
    store("m", "content", 7);
    store("a", "kept", 4);
    if (of_set) {
        store("heft-set.00001.new", "new", 3);
        store("heft-set.00001.old", "old", 3);
    }
    store(of_set ? "heft-set.journal" : "m.heft-journal", journal, len);
    heft_status st = recover(&rolled_back);
    fuzz_require(of_set || !st || holds("m", (const uint8_t *)"content", 7));
    fuzz_require(of_set || holds("a", (const uint8_t *)"kept", 4));
    free(journal);
}

static void run(const uint8_t *data, size_t size, fuzz_script *s)
{
    uint32_t what = fuzz_next(s) % 4;
    make_dir();
    if (what < 2)
        try_edit(data, size, s);
    else
        try_bytes(data, size, what == 3);
    remove_all();
}

const fuzz_target fuzz_this = { .run = run, .script_bytes = 32 };
