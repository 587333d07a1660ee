/* test_sink_calls.c - the system calls of a file sink: order, failures, interruptions. C library
 * allocations fail through the linker option --wrap, see meson.build. */
#include "models.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "port/save/sink_file.h"

/* ---- a disk that fails and keeps a log ------------------------------------------------------ */

typedef enum call {
    NO_CALL,
    READ,
    WRITE,
    APPEND,
    RESERVE,
    START,
    SYNC,
    SYNC_DIR,
    FLUSH,
    CLOSE,
    SET_MODE,
    LOCK,
    CREATE,
    NAME,
    LINK,
    RENAME,
    RENAME_NEW,
    REMOVE,
    REFLINK,
    CALLOC,
    STRDUP,
    REALPATH
} call;

static struct {
    call fails;
    int os, times;  /* errno, and number of successive calls that fail */
    bool is_named;  /* O_TMPFILE is not supported */
    char log[4096]; /* one letter for each call, see letters[] */
    size_t logged;
    uint64_t started; /* bytes */
    int reserved;     /* calls of fallocate() */
} plan;

static const char letters[] = " rwa.bsdfcmlCNLRnxh";

static bool fails(call c)
{
    if (c < CALLOC && letters[c] != '.' && plan.logged + 1 < sizeof plan.log)
        plan.log[plan.logged++] = letters[c];
    if (c != plan.fails || !plan.times)
        return false;
    plan.times--;
    errno = plan.os;
    return true;
}

static ssize_t test_read(int fd, void *buf, size_t len, off_t at)
{
    return fails(READ) ? -!!plan.os : heft_system_disk.read(fd, buf, len, at);
}

/* Write only a part of several bytes, as the system may. */
static ssize_t test_write(int fd, const void *data, size_t len, off_t at)
{
    size_t part_len = len > 1 && len < 4096 ? len / 2 : len;
    return fails(WRITE) ? -!!plan.os : heft_system_disk.write(fd, data, part_len, at);
}

static ssize_t test_append(int fd, const void *data, size_t len)
{
    return fails(APPEND) ? -!!plan.os : heft_system_disk.append(fd, data, len > 1 ? len / 2 : len);
}

static int test_reserve(int fd, off_t size)
{
    return fails(RESERVE) ? -1 : heft_system_disk.reserve(fd, size);
}

static int test_start(int fd, off_t at, off_t len)
{
    plan.started += (uint64_t)len;
    return fails(START) ? -1 : heft_system_disk.start_sync(fd, at, len);
}

static int test_sync(int fd)
{
    struct stat st;
    assert_int_equal(fstat(fd, &st), 0);
    return fails(S_ISDIR(st.st_mode) ? SYNC_DIR : SYNC) ? -1 : 0;
}

static int test_flush(int fd)
{
    return fails(FLUSH) ? -1 : heft_system_disk.flush(fd);
}

/* Close the descriptor even when the call fails, as Linux does. */
static int test_close(int fd)
{
    int result = heft_system_disk.close(fd);
    return fails(CLOSE) ? -1 : result;
}

static int test_set_mode(int fd, mode_t mode)
{
    return fails(SET_MODE) ? -1 : heft_system_disk.set_mode(fd, mode);
}

static int test_lock(int fd)
{
    return fails(LOCK) ? -1 : heft_system_disk.lock(fd);
}

static int test_create(int dir, const char *name, int flags, mode_t mode)
{
    if (plan.is_named && (flags & O_TMPFILE) == O_TMPFILE) {
        errno = EOPNOTSUPP;
        return -1;
    }
    return fails(CREATE) ? -1 : heft_system_disk.create(dir, name, flags, mode);
}

static int test_name(int fd, int dir, const char *name)
{
    return fails(NAME) ? -1 : heft_system_disk.name(fd, dir, name);
}

static int test_link(int dir, const char *from, const char *to)
{
    return fails(LINK) ? -1 : heft_system_disk.link(dir, from, to);
}

static int test_rename(int dir, const char *from, const char *to)
{
    return fails(RENAME) ? -1 : heft_system_disk.rename(dir, from, to);
}

static int test_rename_new(int dir, const char *from, const char *to)
{
    return fails(RENAME_NEW) ? -1 : heft_system_disk.rename_new(dir, from, to);
}

static int test_remove(int dir, const char *name)
{
    return fails(REMOVE) ? -1 : heft_system_disk.remove(dir, name);
}

static int test_reflink(int from, off_t at, int to, off_t to_at, size_t len)
{
    (void)from, (void)at, (void)to, (void)to_at, (void)len;
    return fails(REFLINK) ? -1 : 0;
}

static const heft_disk test_disk = {
    .read = test_read,
    .write = test_write,
    .append = test_append,
    .reserve = test_reserve,
    .start_sync = test_start,
    .sync = test_sync,
    .flush = test_flush,
    .close = test_close,
    .set_mode = test_set_mode,
    .lock = test_lock,
    .create = test_create,
    .name = test_name,
    .link = test_link,
    .rename = test_rename,
    .rename_new = test_rename_new,
    .remove = test_remove,
    .reflink = test_reflink,
};

/* ---- allocations of the C library ----------------------------------------------------------- */

void *__real_calloc(size_t n, size_t size);
char *__real_strdup(const char *text);
char *__real_realpath(const char *path, char *out);
void *__wrap_calloc(size_t n, size_t size);
char *__wrap_strdup(const char *text);
char *__wrap_realpath(const char *path, char *out);

void *__wrap_calloc(size_t n, size_t size)
{
    return fails(CALLOC) ? NULL : __real_calloc(n, size);
}

char *__wrap_strdup(const char *text)
{
    return fails(STRDUP) ? NULL : __real_strdup(text);
}

char *__wrap_realpath(const char *path, char *out)
{
    return fails(REALPATH) ? NULL : __real_realpath(path, out);
}

/* Replace the function of the C library. */
int fallocate(int fd, int mode, off_t at, off_t len)
{
    (void)fd, (void)mode, (void)at, (void)len;
    plan.reserved++;
    return 0;
}

/* ---- writing -------------------------------------------------------------------------------- */

static const char text[] = "what the file holds";

static void plan_for(call c, int os, int times, bool is_named)
{
    memset(&plan, 0, sizeof plan);
    plan.fails = c;
    plan.os = os;
    plan.times = times;
    plan.is_named = is_named;
}

/* Open, reserve, write, read back and finish a file on test_disk. */
static heft_status write_file(const char *path, uint32_t flags, heft_error *err)
{
    heft_sink *s;
    char back[sizeof text] = "";
    heft_status st = heft_file_sink_open(&s, &test_disk, path, flags, err);
    if (st)
        return st;
    if (s->ops->reserve)
        st = s->ops->reserve(s, strlen(text), err);
    if (!st)
        st = s->ops->write_at ? s->ops->write_at(s, 0, text, strlen(text), err)
                              : s->ops->write(s, text, strlen(text), err);
    if (!st && s->ops->read_at)
        st = s->ops->read_at(s, 0, back, strlen(text), err);
    if (!st)
        return s->ops->finish(s, err);
    heft_sink_discard(s);
    return st;
}

static bool file_is(const char *path, const char *what)
{
    heft_bytes b = heft_test_load(path);
    bool same = b.len == strlen(what) && !memcmp(b.p, what, b.len);
    heft_test_free(&b);
    return same;
}

/* ---- order ---------------------------------------------------------------------------------- */

/* Return the position in the log of the last call with the letter. */
static size_t last(char letter)
{
    const char *at = strrchr(plan.log, letter);
    assert_non_null(at);
    return (size_t)(at - plan.log);
}

static void syncs_a_file_before_it_gets_its_name(void **state)
{
    static const struct {
        uint32_t flags;
        bool exists, is_named;
        char name; /* letter of the call that names the file */
    } rows[] = {
        { HEFT_SINK_SYNC, false, false, 'N' },
        { HEFT_SINK_SYNC, false, true, 'n' },
        { HEFT_SINK_SYNC | HEFT_SINK_REPLACE, false, false, 'R' },
        { HEFT_SINK_SYNC | HEFT_SINK_REPLACE, true, false, 'R' },
        { HEFT_SINK_SYNC | HEFT_SINK_REPLACE, true, true, 'R' },
        { HEFT_SINK_REPLACE, true, false, 'R' },
    };
    const char *path = heft_test_path(*state, "x");
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        heft_error err;
        unlink(path);
        if (rows[i].exists)
            heft_test_save(path, "old", 3);
        plan_for(NO_CALL, 0, 0, rows[i].is_named);
        heft_assert_ok(write_file(path, rows[i].flags, &err), &err);
        assert_true(last('w') < last('s')); /* every byte, then the sync, ... */
        assert_true(last('s') < last(rows[i].name));
        assert_true(last('f') < last(rows[i].name));
        /* ... then the name, which is synced as well */
        assert_true(last(rows[i].name) < last('d'));
        assert_true(file_is(path, text));
        assert_int_equal(heft_test_dir_entries(*state), 1);
    }
}

static void does_not_sync_unless_requested(void **state)
{
    static const struct {
        uint32_t flags;
        bool exists;
    } rows[] = {
        { 0, false },
        { HEFT_SINK_NO_SYNC, false },
        { HEFT_SINK_REPLACE, false },
        { HEFT_SINK_REPLACE | HEFT_SINK_NO_SYNC, true },
    };
    const char *path = heft_test_path(*state, "x");
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        heft_error err;
        unlink(path);
        if (rows[i].exists)
            heft_test_save(path, "old", 3);
        plan_for(NO_CALL, 0, 0, false);
        heft_assert_ok(write_file(path, rows[i].flags, &err), &err);
        assert_null(strpbrk(plan.log, "sdb"));
        assert_true(last('w') < last('f')); /* errors of close() are still reported */
        assert_true(file_is(path, text));
    }
}

static void starts_writing_back_finished_blocks_early(void **state)
{
    enum { CHUNK = 1 << 20, CHUNKS = 13, BLOCKS = 12 << 20 };
    heft_error err;
    heft_sink *s;
    uint8_t *chunk = calloc(1, CHUNK);
    for (int syncs = 0; syncs < 2; syncs++) {
        plan_for(NO_CALL, 0, 0, false);
        heft_assert_ok(heft_file_sink_open(&s, &test_disk, heft_test_path(*state, "x"),
                                           syncs ? HEFT_SINK_SYNC : 0, &err),
                       &err);
        for (uint64_t i = 0; i < CHUNKS; i++)
            heft_assert_ok(s->ops->write_at(s, i * CHUNK, chunk, CHUNK, &err), &err);
        assert_int_equal(plan.started, syncs ? BLOCKS : 0);
        heft_sink_discard(s);
    }
    free(chunk);
}

/* ---- failures ------------------------------------------------------------------------------- */

enum { NEW = 0, REPLACED = HEFT_SINK_REPLACE | HEFT_SINK_SYNC, SYNCED = HEFT_SINK_SYNC };

static void reports_every_failed_call(void **state)
{
    static const struct {
        call fails;
        int os;
        const char *message;
        uint32_t flags;
        bool is_named, is_saved;
    } rows[] = {
        { CALLOC, ENOMEM, "no memory for a sink", NEW, false, false },
        { STRDUP, ENOMEM, "cannot be created", NEW, false, false },
        { REALPATH, ENAMETOOLONG, "cannot be created", REPLACED, false, false },
        { CREATE, EROFS, "cannot be created", NEW, true, false },
        { SET_MODE, EPERM, "cannot be created", REPLACED, false, false },
        { SET_MODE, EPERM, "cannot be created", REPLACED, true, false },
        { RESERVE, ENOSPC, "cannot reserve disk space", NEW, false, false },
        { RESERVE, EFBIG, "cannot reserve disk space", NEW, true, false },
        { RESERVE, EDQUOT, "cannot reserve disk space", REPLACED, false, false },
        { WRITE, EIO, "writing failed", NEW, false, false },
        { WRITE, 0, "writing failed", NEW, true, false }, /* writes no byte */
        { READ, EIO, "reading failed", NEW, false, false },
        { READ, 0, "reading failed", NEW, false, false },
        { SYNC, EIO, "writing to disk failed", SYNCED, false, false },
        { SYNC, ENOSPC, "writing to disk failed", REPLACED, true, false },
        { FLUSH, EDQUOT, "writing failed", NEW, false, false },
        { FLUSH, EIO, "writing failed", SYNCED, true, false },
        { FLUSH, ENOSPC, "writing failed", REPLACED, false, false },
        { NAME, EDQUOT, "cannot be renamed to its final name", NEW, false, false },
        { NAME, EDQUOT, "cannot be renamed to its final name", REPLACED, false, false },
        { RENAME_NEW, EACCES, "cannot be renamed to its final name", NEW, true, false },
        { RENAME, EACCES, "cannot be renamed to its final name", REPLACED, false, false },
        { RENAME, EACCES, "cannot be renamed to its final name", REPLACED, true, false },
        { SYNC_DIR, EIO, "saved, but a power failure may undo it", SYNCED, false, true },
        { SYNC_DIR, EIO, "saved, but a power failure may undo it", REPLACED, true, true },
        { CLOSE, EIO, "saved, but closing it failed", NEW, false, true },
        { CLOSE, EIO, "saved, but closing it failed", REPLACED, true, true },
    };
    const char *path = heft_test_path(*state, "x");
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        heft_error err;
        bool replaces = rows[i].flags & HEFT_SINK_REPLACE;
        unlink(path);
        if (replaces)
            heft_test_save(path, "old", 3);
        plan_for(rows[i].fails, rows[i].os, 1, rows[i].is_named);
        heft_status want = rows[i].fails == CALLOC ? HEFT_E_NOMEM : HEFT_E_IO;
        heft_assert_fails(write_file(path, rows[i].flags, &err), want, &err, rows[i].message);
        assert_int_equal(plan.times, 0);
        if (rows[i].os && want == HEFT_E_IO)
            assert_int_equal(err.os, rows[i].os);
        if (rows[i].is_saved || replaces)
            assert_true(file_is(path, rows[i].is_saved ? text : "old"));
        assert_int_equal(heft_test_dir_entries(*state), rows[i].is_saved || replaces);
    }
}

static void ignores_harmless_failures(void **state)
{
    static const struct {
        call fails;
        int os, times;
        uint32_t flags;
        bool is_named;
    } rows[] = {
        { RESERVE, EOPNOTSUPP, 1, NEW, false },
        { SYNC_DIR, EINVAL, 1, SYNCED,
          false }, /* the file system does not support syncing folders */
        { RENAME_NEW, EINVAL, 1, SYNCED, true }, /* the file is linked instead */
        { CREATE, EEXIST, 3, NEW, true },        /* the temporary name is taken */
        { NAME, EEXIST, 3, REPLACED, false },
        { LOCK, ENOLCK, 9, NEW, true },
        { LOCK, EWOULDBLOCK, 1, NEW, true }, /* tries a new name */
        { CLOSE, EINTR, 1, SYNCED, true },   /* closed, after all bytes were written */
        { START, EINVAL, 9, SYNCED, false },
    };
    const char *path = heft_test_path(*state, "x");
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        heft_error err;
        unlink(path);
        plan_for(rows[i].fails, rows[i].os, rows[i].times, rows[i].is_named);
        heft_assert_ok(write_file(path, rows[i].flags, &err), &err);
        assert_true(file_is(path, text));
    }
}

static void repeats_interrupted_calls(void **state)
{
    static const struct {
        call fails;
        uint32_t flags;
        bool is_named;
    } rows[] = {
        { CREATE, NEW, false },  { CREATE, NEW, true }, { LOCK, NEW, true },
        { RESERVE, NEW, false }, { WRITE, NEW, false }, { READ, NEW, false },
        { SYNC, SYNCED, false }, { FLUSH, NEW, false }, { SYNC_DIR, SYNCED, false },
    };
    const char *path = heft_test_path(*state, "x");
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        heft_error err;
        unlink(path);
        plan_for(rows[i].fails, EINTR, 3, rows[i].is_named);
        heft_assert_ok(write_file(path, rows[i].flags, &err), &err);
        assert_int_equal(plan.times, 0);
        assert_true(file_is(path, text));
        assert_int_equal(heft_test_dir_entries(*state), 1);
    }
    plan_for(REFLINK, EINTR, 3, false);
    assert_int_equal(heft_disk_reflink(&test_disk, 0, 0, 0, 0, 1), 0);
}

/* Temporary names are random: so many that exist are no coincidence. */
static void gives_up_after_100_names(void **state)
{
    static const struct {
        call fails;
        uint32_t flags;
        bool is_named;
    } rows[] = { { CREATE, NEW, true }, { NAME, REPLACED, false } };
    const char *path = heft_test_path(*state, "x");
    for (size_t i = 0; i < HEFT_COUNT(rows); i++)
        for (int times = 99; times < 101; times++) {
            heft_error err;
            unlink(path);
            if (rows[i].flags & HEFT_SINK_REPLACE)
                heft_test_save(path, "old", 3);
            plan_for(rows[i].fails, EEXIST, times, rows[i].is_named);
            heft_status st = write_file(path, rows[i].flags, &err);
            heft_assert_status(st, times < 100 ? HEFT_OK : HEFT_E_IO, &err);
            assert_int_equal(plan.times, 0);
        }
}

static void keeps_a_file_that_appears_during_writing(void **state)
{
    const char *path = heft_test_path(*state, "x");
    for (int is_named = 0; is_named < 2; is_named++) {
        heft_error err;
        heft_sink *s;
        plan_for(is_named ? RENAME_NEW : NO_CALL, EINVAL, 1, is_named);
        heft_assert_ok(heft_file_sink_open(&s, &test_disk, path, 0, &err), &err);
        heft_test_save(path, "other", 5);
        heft_assert_fails(s->ops->finish(s, &err), HEFT_E_ARGUMENT, &err, "already exists");
        assert_true(file_is(path, "other"));
        assert_int_equal(heft_test_dir_entries(*state), 1);
        unlink(path);
    }
}

static void refuses_contradicting_flags(void **state)
{
    heft_error err;
    heft_sink *s;
    heft_assert_fails(heft_sink_open_file(&s, heft_test_path(*state, "x"),
                                          HEFT_SINK_SYNC | HEFT_SINK_NO_SYNC, &err),
                      HEFT_E_ARGUMENT, &err, "exclude each other");
    assert_null(s);
}

/* ---- files of killed programs --------------------------------------------------------------- */

static void removes_files_of_killed_programs(void **state)
{
    heft_error err;
    heft_sink *s, *other;
    int status;
    plan_for(NO_CALL, 0, 0, true);
    pid_t child = fork();
    if (!child)
        _exit(heft_file_sink_open(&s, &test_disk, heft_test_path(*state, "x"), 0, &err) ? 1 : 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(heft_test_dir_entries(*state), 1);
    heft_assert_ok(heft_file_sink_open(&s, &test_disk, heft_test_path(*state, "y"), 0, &err), &err);
    assert_int_equal(heft_test_dir_entries(*state), 1); /* the temporary file of y */
    heft_assert_ok(heft_sink_open_file(&other, heft_test_path(*state, "y"), 0, &err), &err);
    heft_sink_discard(other);
    assert_int_equal(heft_test_dir_entries(*state), 1); /* the temporary file is in use and stays */
    heft_assert_ok(s->ops->finish(s, &err), &err);
    assert_true(heft_test_exists(heft_test_path(*state, "y")));
    assert_int_equal(heft_test_dir_entries(*state), 1);
}

/* ---- streams -------------------------------------------------------------------------------- */

static void reports_every_failed_call_of_a_stream(void **state)
{
    static const struct {
        call fails;
        int os;
        const char *message;
    } rows[] = {
        { CALLOC, ENOMEM, "no memory for a sink" },
        { APPEND, EIO, "writing failed" },
        { APPEND, 0, "writing failed" },
        { SYNC, EIO, "writing failed" },
        { CLOSE, EDQUOT, "writing failed" },
    };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        heft_error err;
        plan_for(rows[i].fails, rows[i].os, 1, false);
        heft_assert_fails(write_file("/dev/null", HEFT_SINK_SYNC, &err),
                          rows[i].fails == CALLOC ? HEFT_E_NOMEM : HEFT_E_IO, &err,
                          rows[i].message);
        assert_int_equal(plan.times, 0);
    }
}

static void stream_continues_after_an_interrupt(void **state)
{
    static const call rows[] = { APPEND, SYNC, CLOSE };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        heft_error err;
        plan_for(rows[i], EINTR, 1, false);
        heft_assert_ok(write_file("/dev/null", HEFT_SINK_SYNC, &err), &err);
        assert_int_equal(plan.times, 0);
    }
    static const int no_sync[] = { EINVAL, EROFS, ENOTSUP }; /* pipes and devices */
    for (size_t i = 0; i < HEFT_COUNT(no_sync); i++) {
        heft_error err;
        plan_for(SYNC, no_sync[i], 1, false);
        heft_assert_ok(write_file("/dev/null", HEFT_SINK_SYNC, &err), &err);
    }
}

static void refuses_a_socket(void **state)
{
    heft_error err;
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    snprintf(at.sun_path, sizeof at.sun_path, "%s", heft_test_path(*state, "x"));
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    heft_assert_fails(write_file(at.sun_path, 0, &err), HEFT_E_IO, &err, "cannot be opened");
    close(fd);
}

/* A failing fallocate() takes all free blocks for a moment, and other programs fail, too. */
static void does_not_ask_for_more_blocks_than_the_disk_has(void **state)
{
    struct statvfs system;
    int fd = open(heft_test_path(*state, "x"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(fstatvfs(fd, &system), 0);
    off_t all = (off_t)(system.f_bavail * system.f_frsize), more = (off_t)1 << 40;
    plan.reserved = 0;
    assert_int_equal(heft_disk_reserve(&heft_system_disk, fd, (uint64_t)(all + more)), ENOSPC);
    assert_int_equal(plan.reserved, 0);
    assert_int_equal(heft_disk_reserve(&heft_system_disk, fd, 1), 0);
    assert_int_equal(plan.reserved, 1);
    close(fd);
}

#define IN_A_DIRECTORY(test) \
    cmocka_unit_test_setup_teardown(test, heft_test_dir_make, heft_test_dir_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_DIRECTORY(syncs_a_file_before_it_gets_its_name),
        IN_A_DIRECTORY(does_not_sync_unless_requested),
        IN_A_DIRECTORY(starts_writing_back_finished_blocks_early),
        IN_A_DIRECTORY(reports_every_failed_call),
        IN_A_DIRECTORY(ignores_harmless_failures),
        IN_A_DIRECTORY(repeats_interrupted_calls),
        IN_A_DIRECTORY(gives_up_after_100_names),
        IN_A_DIRECTORY(keeps_a_file_that_appears_during_writing),
        IN_A_DIRECTORY(refuses_contradicting_flags),
        IN_A_DIRECTORY(removes_files_of_killed_programs),
        IN_A_DIRECTORY(reports_every_failed_call_of_a_stream),
        IN_A_DIRECTORY(stream_continues_after_an_interrupt),
        IN_A_DIRECTORY(refuses_a_socket),
        IN_A_DIRECTORY(does_not_ask_for_more_blocks_than_the_disk_has),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
