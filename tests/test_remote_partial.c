/* test_remote_partial.c - downloads that are kept on the disk, and used by the next process. */
#include "heft_test.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "port/remote/partial_file.h"

enum { BLOCK = HEFT_PARTIAL_BLOCK, HEAD = 88, LIST = 4096, DATA = 8192, REST = 5 };

/* ---- calls that fail ---- */

typedef enum call { NO_CALL, CALLOC, FSTAT, FTRUNCATE, PWRITE, UNLINKAT } call;

static struct {
    call fails;
    int at; /* number of the call that fails, from 1 */
    int calls;
    int os;     /* errno; 0: ENOSPC */
    int second; /* errno of the next call, which fails, too; 0: the next call succeeds */
} plan;

static bool fails(call c)
{
    if (c != plan.fails || ++plan.calls < plan.at)
        return false;
    bool is_first = plan.calls == plan.at;
    errno = !is_first ? plan.second : plan.os ? plan.os : ENOSPC;
    return is_first || (plan.second && plan.calls == plan.at + 1);
}

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size)
{
    return fails(CALLOC) ? NULL : __real_calloc(n, size);
}

int __real_fstat64(int fd, struct stat *info);
int __wrap_fstat64(int fd, struct stat *info);
int __wrap_fstat64(int fd, struct stat *info)
{
    return fails(FSTAT) ? -1 : __real_fstat64(fd, info);
}

int __real_ftruncate64(int fd, off_t size);
int __wrap_ftruncate64(int fd, off_t size);
int __wrap_ftruncate64(int fd, off_t size)
{
    return fails(FTRUNCATE) ? -1 : __real_ftruncate64(fd, size);
}

ssize_t __real_pwrite64(int fd, const void *from, size_t len, off_t off);
ssize_t __wrap_pwrite64(int fd, const void *from, size_t len, off_t off);
ssize_t __wrap_pwrite64(int fd, const void *from, size_t len, off_t off)
{
    return fails(PWRITE) ? -1 : __real_pwrite64(fd, from, len, off);
}

int __real_unlinkat(int dir, const char *name, int flags);
int __wrap_unlinkat(int dir, const char *name, int flags);
int __wrap_unlinkat(int dir, const char *name, int flags)
{
    return fails(UNLINKAT) ? -1 : __real_unlinkat(dir, name, flags);
}

/* ---- files ---- */

static const char *folder;
static char stem[PATH_MAX];
static uint8_t block[BLOCK], loaded[BLOCK];
static const uint8_t version[HEFT_VERSION_BYTES] = "version";

static int set_up(void **state)
{
    if (heft_test_dir_make(state))
        return -1;
    folder = *state;
    snprintf(stem, sizeof stem, "%s/out", folder);
    for (size_t i = 0; i < BLOCK; i += 64)
        block[i] = (uint8_t)(i >> 6);
    return 0;
}

static heft_partial *open_version(uint64_t size, const uint8_t v[HEFT_VERSION_BYTES], bool is_other)
{
    heft_partial *p = NULL;
    heft_error err;
    bool was_other = !is_other;
    assert_int_equal(heft_partial_open(&p, stem, "address", size, v, &was_other, &err), HEFT_OK);
    assert_int_equal(was_other, is_other);
    return p;
}

/* Keep a file of two blocks, the second of REST bytes, and return the path of the partial file. */
static const char *keep_two(void)
{
    static char path[PATH_MAX];
    heft_error err;
    heft_partial *p = open_version(BLOCK + REST, version, false);
    assert_false(heft_partial_has(p, 0) || heft_partial_has(p, 1));
    assert_int_equal(heft_partial_store(p, 0, block, &err), HEFT_OK);
    assert_int_equal(heft_partial_store(p, 1, block + 64, &err), HEFT_OK);
    heft_partial_close(p);
    snprintf(path, sizeof path, "%s/.out.heft-part-%s", folder, "592c11ff16cc49b9");
    return path;
}

static void change_byte(const char *path, off_t at)
{
    uint8_t byte = 0;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_int_equal(pread(fd, &byte, 1, at), 1);
    byte ^= 1;
    assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    close(fd);
}

static void blocks_are_used_by_the_next_process(void **state)
{
    heft_error err;
    (void)state;
    keep_two();
    heft_partial *p = open_version(BLOCK + REST, version, false);
    assert_true(heft_partial_has(p, 0) && heft_partial_has(p, 1));
    assert_true(heft_partial_load(p, 0, loaded));
    assert_memory_equal(loaded, block, BLOCK);
    assert_true(heft_partial_load(p, 1, loaded));
    assert_memory_equal(loaded, block + 64, REST);
    assert_memory_equal(loaded + REST, block + REST, BLOCK - REST);
    assert_int_equal(heft_partial_read(p, BLOCK - 64, loaded, 64 + REST, &err), HEFT_OK);
    assert_memory_equal(loaded, block + BLOCK - 64, 64);
    assert_memory_equal(loaded + 64, block + 64, REST);
    assert_int_equal(heft_partial_read(p, BLOCK, loaded, REST + 1, &err), HEFT_E_IO);
    heft_partial_close(p);
}

static void a_file_that_is_cut_later_gives_no_block(void **state)
{
    (void)state;
    const char *path = keep_two();
    heft_partial *p = open_version(BLOCK + REST, version, false);
    assert_true(heft_partial_load(p, 1, loaded));
    assert_int_equal(truncate(path, DATA + BLOCK), 0);
    assert_false(heft_partial_load(p, 1, loaded));
    heft_partial_close(p);
}

static void descriptor_0_is_closed(void **state)
{
    (void)state;
    int kept = dup(0);
    close(0);
    heft_partial *p = open_version(1, version, false);
    assert_int_equal(fcntl(0, F_GETFD), -1);
    heft_partial_close(p);
    heft_error err;
    assert_int_equal(heft_partial_remove_all(stem, &err), HEFT_OK);
    assert_int_equal(fcntl(0, F_GETFD), -1);
    assert_int_equal(dup2(kept, 0), 0);
    close(kept);
}

static void lengths_of_blocks(void **state)
{
    static const struct {
        uint64_t size, blocks;
        size_t last;
    } cases[] = {
        { 0, 0, 0 },
        { 1, 1, 1 },
        { BLOCK - 1, 1, BLOCK - 1 },
        { BLOCK, 1, BLOCK },
        { BLOCK + 1, 2, 1 },
        { 257 * (uint64_t)BLOCK, 257, BLOCK }, /* the list fills more than a page */
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        heft_partial *p = open_version(cases[i].size, version, i > 0);
        assert_int_equal(heft_partial_blocks(p), cases[i].blocks);
        if (cases[i].blocks)
            assert_int_equal(heft_partial_length(p, cases[i].blocks - 1), cases[i].last);
        if (cases[i].blocks > 1)
            assert_int_equal(heft_partial_length(p, 0), BLOCK);
        heft_partial_close(p);
    }
}

static void files_of_another_version_are_replaced(void **state)
{
    static const uint8_t other[HEFT_VERSION_BYTES] = "Version";
    (void)state;
    keep_two();
    heft_partial *p = open_version(BLOCK + REST, other, true);
    assert_false(heft_partial_has(p, 0) || heft_partial_has(p, 1));
    heft_partial_close(p);
    p = open_version(BLOCK + REST + 1, other, true);
    assert_false(heft_partial_has(p, 0));
    heft_partial_close(p);
}

static void every_byte_of_the_head_is_compared(void **state)
{
    (void)state;
    for (off_t at = 0; at < HEAD; at++) {
        const char *path = keep_two();
        change_byte(path, at);
        heft_partial *p = open_version(BLOCK + REST, version, true);
        if (heft_partial_has(p, 0) || heft_partial_has(p, 1))
            fail_msg("byte %d was changed", (int)at);
        heft_partial_close(p);
        assert_int_equal(unlink(path), 0);
    }
}

static void files_that_end_in_the_list_are_replaced(void **state)
{
    static const off_t ends[] = { 1, HEAD - 1, HEAD, LIST, LIST + 31 };
    (void)state;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        const char *path = keep_two();
        assert_int_equal(truncate(path, ends[i]), 0);
        heft_partial *p = open_version(BLOCK + REST, version, true);
        assert_false(heft_partial_has(p, 0));
        heft_partial_close(p);
        assert_int_equal(unlink(path), 0);
    }
    /* A list without data is completed; the digests tell that the bytes are missing. */
    const char *path = keep_two();
    assert_int_equal(truncate(path, LIST + 32), 0);
    heft_partial *p = open_version(BLOCK + REST, version, false);
    assert_true(heft_partial_has(p, 0) && !heft_partial_load(p, 0, loaded));
    heft_partial_close(p);
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_size, DATA + BLOCK + REST);
}

static void damaged_blocks_are_not_used(void **state)
{
    static const struct {
        off_t at;
        bool first, second; /* usable blocks */
    } cases[] = {
        { LIST, false, true },         { LIST + 15, false, true },
        { LIST + 16, true, false },    { LIST + 31, true, false },
        { DATA, false, true },         { DATA + BLOCK - 1, false, true },
        { DATA + BLOCK, true, false }, { DATA + BLOCK + REST - 1, true, false },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *path = keep_two();
        change_byte(path, cases[i].at);
        heft_partial *p = open_version(BLOCK + REST, version, false);
        assert_int_equal(heft_partial_load(p, 0, loaded), cases[i].first);
        assert_int_equal(heft_partial_load(p, 1, loaded), cases[i].second);
        heft_partial_close(p);
        assert_int_equal(unlink(path), 0);
    }
}

static void a_block_is_valid_at_its_number_only(void **state)
{
    uint8_t digest[16];
    heft_error err;
    (void)state;
    heft_partial *p = open_version(2 * (uint64_t)BLOCK, version, false);
    assert_int_equal(heft_partial_store(p, 0, block, &err), HEFT_OK);
    assert_int_equal(heft_partial_store(p, 1, block, &err), HEFT_OK);
    heft_partial_close(p);
    snprintf((char *)loaded, sizeof loaded, "%s/.out.heft-part-%s", folder, "592c11ff16cc49b9");
    int fd = open((const char *)loaded, O_RDWR | O_CLOEXEC);
    assert_int_equal(pread(fd, digest, 16, LIST), 16);
    assert_int_equal(pwrite(fd, digest, 16, LIST + 16), 16);
    close(fd);
    p = open_version(2 * (uint64_t)BLOCK, version, false);
    assert_true(heft_partial_load(p, 0, loaded) && !heft_partial_load(p, 1, loaded));
    heft_partial_close(p);
}

/* ---- refusals ---- */

static void refuse(const char *path, uint64_t size, heft_status st, const char *text)
{
    heft_partial *p = (heft_partial *)1;
    heft_error err;
    bool was_other;
    assert_int_equal(heft_partial_open(&p, path, "address", size, version, &was_other, &err), st);
    assert_null(p);
    assert_non_null(strstr(err.message, text));
}

static void two_processes_do_not_share_a_file(void **state)
{
    (void)state;
    heft_partial *p = open_version(1, version, false);
    refuse(stem, 1, HEFT_E_IO, "another process");
    heft_partial_close(p);
    heft_partial_close(open_version(1, version, false));
}

static void files_that_cannot_be_kept_are_refused(void **state)
{
    char path[PATH_MAX];
    heft_error err;
    (void)state;
    refuse(stem, ((uint64_t)16 << 20) * BLOCK + 1, HEFT_E_LIMIT, "too large");
    refuse(stem, UINT64_MAX, HEFT_E_LIMIT, "too large");
    plan.fails = FSTAT; /* a file at the limit is refused later */
    plan.at = 1;
    plan.calls = 0;
    refuse(stem, ((uint64_t)16 << 20) * BLOCK, HEFT_E_IO, "cannot be read");
    plan.fails = NO_CALL;
    snprintf(path, sizeof path, "%s/missing/out", folder);
    refuse(path, 1, HEFT_E_IO, "cannot be kept");
    assert_int_equal(heft_partial_remove_all(path, &err), HEFT_E_IO);
    assert_non_null(strstr(err.message, "the kept download cannot be removed"));
    /* A name of 255 bytes fits, a name of 256 bytes does not. */
    int most = 255 - (1 + 11 + 16);
    for (int len = most; len <= most + 1; len++) {
        heft_partial *p = NULL;
        bool was_other;
        snprintf(path, sizeof path, "%s/%0*d", folder, len, 7);
        heft_status st = heft_partial_open(&p, path, "address", 1, version, &was_other, &err);
        assert_int_equal(st, len == most ? HEFT_OK : HEFT_E_IO);
        heft_partial_close(p);
        assert_int_equal(heft_partial_remove_all(path, &err), HEFT_OK);
    }
}

/* Begin a file and store a block while each call fails in turn. */
static void each_failed_call_is_reported(void **state)
{
    static const struct {
        call c;
        int calls;
        heft_status st;
        const char *message;
    } rows[] = { { CALLOC, 2, HEFT_E_NOMEM, "list of blocks" },
                 { FSTAT, 1, HEFT_E_IO, "download" },
                 { FTRUNCATE, 2, HEFT_E_IO, "download" },
                 { PWRITE, 3, HEFT_E_IO, "download" } };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int at = 1; at <= rows[i].calls + 1; at++) {
            heft_error err;
            heft_partial *p = NULL;
            bool was_other, is_last = at > rows[i].calls;
            plan.fails = rows[i].c;
            plan.at = at;
            plan.calls = 0;
            heft_status st = heft_partial_open(&p, stem, "address", 1, version, &was_other, &err);
            assert_int_equal(st != HEFT_OK, !p);
            if (!st)
                st = heft_partial_store(p, 0, block, &err);
            plan.fails = NO_CALL;
            assert_int_equal(st, is_last ? HEFT_OK : rows[i].st);
            assert_true(is_last || strstr(err.message, rows[i].message));
            heft_partial_close(p);
            assert_int_equal(heft_partial_remove_all(stem, &err), HEFT_OK);
        }
}

/* A file that cannot get the full length is begun again. */
static void a_file_of_the_wrong_length_is_replaced(void **state)
{
    (void)state;
    keep_two();
    plan.fails = FTRUNCATE;
    plan.at = 1;
    plan.calls = 0;
    heft_partial *p = open_version(BLOCK + REST, version, true);
    plan.fails = NO_CALL;
    assert_false(heft_partial_has(p, 0) || heft_partial_has(p, 1));
    heft_partial_close(p);
}

static void links_and_pipes_are_refused(void **state)
{
    const char *path = keep_two();
    char target[PATH_MAX];
    (void)state;
    snprintf(target, sizeof target, "%s/target", folder);
    assert_int_equal(rename(path, target), 0);
    assert_int_equal(symlink(target, path), 0);
    refuse(stem, BLOCK + REST, HEFT_E_IO, "cannot be kept");
    assert_int_equal(unlink(path) || unlink(target), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    refuse(stem, BLOCK + REST, HEFT_E_IO, "not a regular file");
}

static void only_partial_files_of_the_output_are_removed(void **state)
{
    static const struct {
        const char *name;
        bool is_removed;
    } rows[] = {
        { ".out.heft-part-0123456789abcdef", true },
        { ".out.heft-part-ffffffffffffffff", true },
        { ".out.heft-part-0123456789abcde", false },
        { ".out.heft-part-0123456789abcdef0", false },
        { ".out.heft-part-0123456789abcdefg", false },
        { ".out.heft-part-0123456789abcdeF", false },
        { ".out.heft-pars-0123456789abcdef", false },
        { ".ouu.heft-part-0123456789abcdef", false },
        { "xout.heft-part-0123456789abcdef", false },
        { ".out", false },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char path[PATH_MAX];
        heft_error err;
        snprintf(path, sizeof path, "%s/%s", folder, rows[i].name);
        close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
        assert_int_equal(heft_partial_remove_all(stem, &err), HEFT_OK);
        bool is_removed = access(path, F_OK) != 0;
        if (is_removed != rows[i].is_removed)
            fail_msg("%s: %d", rows[i].name, is_removed);
        unlink(path);
    }
    /* A failure to remove is reported: a folder has the name of a partial file. */
    char path[PATH_MAX];
    heft_error err;
    snprintf(path, sizeof path, "%s/%s", folder, rows[0].name);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(heft_partial_remove_all(stem, &err), HEFT_E_IO);
    assert_int_equal(rmdir(path), 0);
}

/* The first failure is reported; a file that another process has
 * removed is not an error. */
static void a_failed_removal_is_reported(void **state)
{
    static const char *const names[] = { ".out.heft-part-0123456789abcdef",
                                         ".out.heft-part-1123456789abcdef" };
    static const int errors[] = { 0, EACCES, ENOENT };
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        heft_error err;
        for (size_t k = 0; k < 2; k++)
            heft_test_save(heft_test_path(*state, names[k]), "", 0);
        plan.fails = errors[i] ? UNLINKAT : NO_CALL;
        plan.at = 1;
        plan.calls = 0;
        plan.os = errors[i];
        plan.second = errors[i] == EACCES ? EROFS : 0; /* the first failure is reported */
        errno = EPERM;                                 /* of an earlier call */
        heft_status st = heft_partial_remove_all(stem, &err);
        plan.fails = NO_CALL;
        plan.os = plan.second = 0;
        assert_int_equal(st, errors[i] == EACCES ? HEFT_E_IO : HEFT_OK);
        if (st)
            assert_int_equal(err.os, EACCES);
        assert_int_equal(heft_test_dir_entries(*state), !errors[i]            ? 0
                                                        : errors[i] == EACCES ? 2
                                                                              : 1);
        assert_int_equal(heft_partial_remove_all(stem, &err), HEFT_OK);
    }
}

int main(void)
{
#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, set_up, heft_test_dir_remove)
    const struct CMUnitTest tests[] = {
        IN_DIR(blocks_are_used_by_the_next_process),
        IN_DIR(a_file_that_is_cut_later_gives_no_block),
        IN_DIR(descriptor_0_is_closed),
        IN_DIR(lengths_of_blocks),
        IN_DIR(files_of_another_version_are_replaced),
        IN_DIR(every_byte_of_the_head_is_compared),
        IN_DIR(files_that_end_in_the_list_are_replaced),
        IN_DIR(damaged_blocks_are_not_used),
        IN_DIR(a_block_is_valid_at_its_number_only),
        IN_DIR(two_processes_do_not_share_a_file),
        IN_DIR(files_that_cannot_be_kept_are_refused),
        IN_DIR(each_failed_call_is_reported),
        IN_DIR(a_file_of_the_wrong_length_is_replaced),
        IN_DIR(links_and_pipes_are_refused),
        IN_DIR(a_failed_removal_is_reported),
        IN_DIR(only_partial_files_of_the_output_are_removed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
