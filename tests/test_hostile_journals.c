/* test_hostile_journals.c - journals of edits with a right seal and wrong content, and journals
 * that do not describe the file. */
#include "heft_test.h"

#include <errno.h>
#include <unistd.h>

#include "base/blake3.h"
#include "port/save/sealed.h"

typedef struct record {
    uint64_t at, old_len, new_len, listed; /* listed: only in version 2 */
    const char *bytes;                     /* the bytes before and, if listed, the bytes after */
} record;

typedef struct journal {
    const char *file; /* content now */
    uint64_t version, count, old_size, new_size;
    record records[2];
    size_t record_count;
    size_t extra; /* bytes after the records */
} journal;

/* Hash the file without the bytes of the records.  A short file is hashed twice: as the beginning
 * and as the end. */
static void hash_context(uint8_t out[32], const journal *j)
{
    uint64_t size = j->old_size < j->new_size ? j->old_size : j->new_size;
    char text[64] = "";
    heft_blake3 h;
    snprintf(text, sizeof text, "%s", j->file);
    for (size_t i = 0; i < j->record_count; i++) {
        const record *r = &j->records[i];
        uint64_t longer = r->old_len > r->new_len ? r->old_len : r->new_len;
        for (uint64_t k = r->at; k < r->at + longer && k < sizeof text; k++)
            text[k] = 0;
    }
    heft_blake3_init(&h);
    for (int i = 0; i < 2; i++)
        heft_blake3_update(&h, text, size < sizeof text ? (size_t)size : sizeof text);
    heft_blake3_final(&h, out);
}

static void save(const char *path, const journal *j)
{
    uint8_t bytes[500] = { 0 }, *to = bytes;
    char name[1200];
    to = heft_put_bytes(to, "HEFTJRNL", 8);
    to = heft_put(heft_put(to, j->version, 4), j->count, 4);
    to = heft_put(heft_put(to, j->old_size, 8), j->new_size, 8);
    hash_context(to, j);
    to += 32;
    for (size_t i = 0; i < j->record_count; i++) {
        const record *r = &j->records[i];
        to = heft_put(heft_put(heft_put(to, r->at, 8), r->old_len, 8), r->new_len, 8);
        to = j->version == 2 ? heft_put(to, r->listed, 8) : to;
        to = heft_put_bytes(to, r->bytes, strlen(r->bytes));
    }
    to += j->extra + 32;
    heft_seal(bytes, (size_t)(to - bytes));
    snprintf(name, sizeof name, "%s.heft-journal", path);
    heft_test_save(name, bytes, (size_t)(to - bytes));
    heft_test_save(path, j->file, strlen(j->file));
}

#define DAMAGED "is damaged: nothing was changed"
#define FOREIGN "belongs to another file, or this file was changed"

static void rolls_back_only_what_fits(void **state)
{
    static const struct {
        journal j;
        const char *after, *words; /* after NULL: refused, and the words are in the message */
    } rows[] = {
        /* right */
        { { "ABxDEFGH", 1, 1, 8, 8, { { 2, 1, 1, 0, "Cx" } }, 1, 0 }, "ABCDEFGH", NULL },
        { { "ABCDEFGH", 1, 1, 8, 8, { { 2, 1, 1, 0, "Cx" } }, 1, 0 }, "ABCDEFGH", NULL },
        { { "xBCDEFGx", 1, 2, 8, 8, { { 0, 1, 1, 0, "Ax" }, { 7, 1, 1, 0, "Hx" } }, 2, 0 },
          "ABCDEFGH",
          NULL },
        { { "ABCDEFGHxy", 1, 1, 8, 10, { { 8, 0, 2, 0, "xy" } }, 1, 0 }, "ABCDEFGH", NULL },
        { { "ABCDEFGHx", 1, 1, 8, 10, { { 8, 0, 2, 0, "xy" } }, 1, 0 }, "ABCDEFGH", NULL },
        { { "ABCD", 1, 1, 8, 4, { { 4, 4, 0, 0, "EFGH" } }, 1, 0 }, "ABCDEFGH", NULL },
        { { "ABCDEF", 1, 1, 8, 4, { { 4, 4, 0, 0, "EFGH" } }, 1, 0 }, "ABCDEFGH", NULL },
        { { "ABCDEFGH??", 2, 1, 8, 10, { { 8, 0, 2, 0, "" } }, 1, 0 }, "ABCDEFGH", NULL },
        { { "AB?DEFGH", 2, 1, 8, 8, { { 2, 1, 1, 0, "C" } }, 1, 0 }, "ABCDEFGH", NULL },
        { { "ABxDEFGH", 2, 1, 8, 8, { { 2, 1, 1, 1, "Cx" } }, 1, 0 }, "ABCDEFGH", NULL },
        { { "ABCDEFGH", 2, 1, 8, 8, { { 2, 0, 0, 0, "" } }, 1, 0 }, "ABCDEFGH", NULL },
        { { "ABCDEFGH", 1, 0, 8, 8, { { 0 } }, 0, 0 }, "ABCDEFGH", NULL },
        /* the version */
        { { "ABxDEFGH", 0, 1, 8, 8, { { 2, 1, 1, 0, "Cx" } }, 1, 0 }, NULL, "version 0" },
        { { "ABxDEFGH", 4, 1, 8, 8, { { 2, 1, 1, 0, "Cx" } }, 1, 0 }, NULL, "version 4" },
        { { "ABxDEFGH", 3, 1, 8, 8, { { 2, 1, 1, 0, "Cx" } }, 1, 0 }, NULL, "another file" },
        /* counts and lengths */
        { { "ABxDEFGH", 1, 2, 8, 8, { { 2, 1, 1, 0, "Cx" } }, 1, 0 }, NULL, DAMAGED },
        { { "ABxDEFGH", 1, 0, 8, 8, { { 2, 1, 1, 0, "Cx" } }, 1, 0 }, NULL, DAMAGED },
        { { "ABxDEFGH", 1, 1, 8, 8, { { 2, 1, 1, 0, "Cx" } }, 1, 1 }, NULL, DAMAGED },
        { { "ABxDEFGH", 1, 1, 8, 8, { { 2, 1, 1, 0, "C" } }, 1, 0 }, NULL, DAMAGED },
        { { "ABxDEFGH", 1, 1, 8, 8, { { 2, 3, 0, 0, "Cx" } }, 1, 0 }, NULL, DAMAGED },
        { { "ABxDEFGH", 1, 1, 8, 8, { { 2, UINT64_MAX, 1, 0, "Cx" } }, 1, 0 }, NULL, DAMAGED },
        { { "ABxDEFGH", 1, 1, 8, 8, { { 2, 1, UINT64_MAX, 0, "Cx" } }, 1, 0 }, NULL, DAMAGED },
        { { "ABxDEFGH", 2, 1, 8, 8, { { 2, 1, 2, 1, "Cx" } }, 1, 0 }, NULL, DAMAGED },
        { { "ABxDEFGH", 2, 1, 8, 8, { { 2, 1, 1, 2, "Cxx" } }, 1, 0 }, NULL, DAMAGED },
        { { "ABxDEFGH", 1, 1, 8, 8, { { 0 } }, 0, 24 }, "ABxDEFGH", NULL },
        { { "ABxDEFGH", 2, 1, 8, 8, { { 0 } }, 0, 24 }, NULL, DAMAGED },
        { { "ABxDEFGH", 2, 1, 8, 8, { { 0 } }, 0, 31 }, NULL, DAMAGED },
        { { "ABCDEFGH", 2, 1, 8, 8, { { 0 } }, 0, 32 }, "ABCDEFGH", NULL },
        /* ranges */
        { { "ABCDEFGx", 1, 1, 8, 8, { { 8, 1, 0, 0, "H" } }, 1, 0 }, NULL, DAMAGED },
        { { "ABCDEFGx", 1, 1, 7, 8, { { 7, 1, 1, 0, "Hx" } }, 1, 0 }, NULL, DAMAGED },
        { { "ABCDEFGx", 1, 1, 8, 7, { { 7, 1, 1, 0, "Hx" } }, 1, 0 }, NULL, DAMAGED },
        { { "ABCDEFGx", 1, 1, 8, 8, { { UINT64_MAX, 1, 1, 0, "Hx" } }, 1, 0 }, NULL, DAMAGED },
        /* another file */
        { { "AB?DEFGH", 1, 1, 8, 8, { { 2, 1, 1, 0, "Cx" } }, 1, 0 }, NULL, FOREIGN },
        { { "ABxDEFG", 1, 1, 8, 8, { { 2, 1, 1, 0, "Cx" } }, 1, 0 }, NULL, FOREIGN },
        { { "ABxDEFGHI", 1, 1, 8, 8, { { 2, 1, 1, 0, "Cx" } }, 1, 0 }, NULL, FOREIGN },
        { { "ABCDEFGHxyz", 1, 1, 8, 10, { { 8, 0, 2, 0, "xy" } }, 1, 0 }, NULL, FOREIGN },
        { { "ABC", 1, 1, 8, 4, { { 4, 4, 0, 0, "EFGH" } }, 1, 0 }, NULL, FOREIGN },
        { { "ABCDEF?H", 1, 1, 8, 4, { { 4, 4, 0, 0, "EFGH" } }, 1, 0 }, NULL, FOREIGN },
        { { "ABCDEFGH?y", 1, 1, 8, 10, { { 8, 0, 2, 0, "xy" } }, 1, 0 }, NULL, FOREIGN },
        { { "?BxDEFGx", 1, 2, 8, 8, { { 2, 1, 1, 0, "Cx" }, { 0, 1, 1, 0, "Ax" } }, 2, 0 },
          NULL,
          FOREIGN },
    };
    const char *path = heft_test_path(*state, "m");
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        heft_error err;
        bool undone;
        save(path, &rows[i].j);
        heft_status st = heft_edit_recover(&undone, path, &err);
        heft_bytes after = heft_test_load(path);
        const char *wanted = rows[i].after ? rows[i].after : rows[i].j.file;
        if (rows[i].after)
            heft_assert_ok(st, &err);
        else
            heft_assert_fails(st,
                              strstr(rows[i].words, "version") ? HEFT_E_UNSUPPORTED : HEFT_E_FORMAT,
                              &err, rows[i].words);
        assert_int_equal(after.len, strlen(wanted));
        assert_memory_equal(after.p, wanted, after.len);
        assert_int_equal(undone, !st);
        assert_int_equal(heft_test_dir_entries(*state), st ? 2 : 1);
        heft_test_free(&after);
    }
}

static unsigned writes_left; /* before a write fails */

static ssize_t failing_write(int fd, const void *data, size_t len, off_t at)
{
    if (writes_left--)
        return heft_system_disk.write(fd, data, len, at);
    errno = EIO;
    return -1;
}

static void a_failed_rollback_keeps_the_journal(void **state)
{
    static const journal j = { "xBCDEFGx", 1, 2,
                               8,          8, { { 0, 1, 1, 0, "Ax" }, { 7, 1, 1, 0, "Hx" } },
                               2,          0 };
    const char *path = heft_test_path(*state, "m");
    heft_disk disk = heft_system_disk;
    disk.write = failing_write;
    for (unsigned n = 0; n < 2; n++) {
        heft_error err;
        bool undone;
        save(path, &j);
        writes_left = n;
        heft_assert_fails(heft_edit_recover_on(&disk, &undone, path, &err), HEFT_E_IO, &err,
                          "writing failed");
        assert_false(undone);
        assert_int_equal(heft_test_dir_entries(*state), 2);
        heft_assert_ok(heft_edit_recover(&undone, path, &err), &err);
        heft_bytes after = heft_test_load(path);
        assert_memory_equal(after.p, "ABCDEFGH", 8);
        heft_test_free(&after);
    }
}

/* The context is 64 KiB at each end of the file. */
static void the_ends_of_the_file_are_compared(void **state)
{
    enum { SIZE = 200 << 10, CONTEXT = 64 << 10, CHANGED = 100 << 10 };
    static const struct {
        size_t at;
        bool is_compared;
    } rows[] = {
        { 0, true },
        { CONTEXT - 1, true },
        { CONTEXT, false },
        { CHANGED + 1, false },
        { SIZE - CONTEXT - 1, false },
        { SIZE - CONTEXT, true },
        { SIZE - 1, true },
    };
    const char *path = heft_test_path(*state, "m");
    char name[1200];
    uint8_t *file = malloc(SIZE), stored[64 + 26 + 32], *to = stored;
    heft_blake3 h;
    for (size_t i = 0; i < SIZE; i++)
        file[i] = (uint8_t)(i * 7 + (i >> 8));
    uint8_t old = file[CHANGED];
    to = heft_put(heft_put(heft_put_bytes(to, "HEFTJRNL", 8), 1, 4), 1, 4);
    to = heft_put(heft_put(to, SIZE, 8), SIZE, 8);
    heft_blake3_init(&h);
    heft_blake3_update(&h, file, CONTEXT);
    heft_blake3_update(&h, file + SIZE - CONTEXT, CONTEXT);
    heft_blake3_final(&h, to);
    to = heft_put(heft_put(heft_put(to + 32, CHANGED, 8), 1, 8), 1, 8);
    to = heft_put(heft_put(to, old, 1), old ^ 1u, 1);
    heft_seal(stored, sizeof stored);
    file[CHANGED] ^= 1;
    snprintf(name, sizeof name, "%s.heft-journal", path);
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        heft_error err;
        bool undone;
        file[rows[i].at] ^= 0x40;
        heft_test_save(name, stored, sizeof stored);
        heft_test_save(path, file, SIZE);
        file[rows[i].at] ^= 0x40;
        heft_status st = heft_edit_recover(&undone, path, &err);
        heft_assert_status(st, rows[i].is_compared ? HEFT_E_FORMAT : HEFT_OK, &err);
        heft_bytes after = heft_test_load(path);
        assert_int_equal(after.p[CHANGED], st ? old ^ 1 : old);
        heft_test_free(&after);
    }
    free(file);
}

#define with_dir(fn) cmocka_unit_test_setup_teardown(fn, heft_test_dir_make, heft_test_dir_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_dir(rolls_back_only_what_fits),
        with_dir(a_failed_rollback_keeps_the_journal),
        with_dir(the_ends_of_the_file_are_compared),
    };
    return cmocka_run_group_tests_name("hostile_journals", tests, NULL, NULL);
}
