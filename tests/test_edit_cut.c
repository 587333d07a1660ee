/* test_edit_cut.c - tests of a power failure during an edit or an append. A simulated disk loses a
 * random part of the unsynced writes and the last unsynced changes of directory entries; after
 * recovery the file must be the old file or the new file. */
#include "models.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "port/system/disk.h"

/* ---- a disk that loses unsynced changes ----------------------------------------------------- */

enum { MAX_CHANGES = 64, MORE = 5000, CUT = 9 }; /* CUT: exit status */

typedef struct change { /* an unsynced write or truncation */
    int fd;
    off_t at, old_size, new_size;
    heft_bytes old, new;
} change;

typedef struct entry_change { /* an unsynced change of up to two directory entries */
    char name[2][64];
    heft_bytes old[2]; /* content of the files before the change */
    bool existed[2];
} entry_change;

static struct {
    unsigned cut_at, calls;
    uint64_t random;
    int dir;
    change changes[MAX_CHANGES];
    entry_change entry_changes[MAX_CHANGES];
    size_t change_count, entry_change_count;
} machine;

static heft_bytes bytes_at(int fd, off_t at, size_t len)
{
    heft_bytes b = { calloc(1, len + 1), 0 };
    ssize_t n = pread(fd, b.p, len, at);
    b.len = n > 0 ? (size_t)n : 0;
    return b;
}

static off_t size_of(int fd)
{
    struct stat st;
    return fstat(fd, &st) ? 0 : st.st_size;
}

/* Restore entry k as before the change. */
static void restore_entry(const entry_change *n, int k)
{
    unlinkat(machine.dir, n->name[k], 0);
    if (!n->existed[k])
        return;
    int fd = openat(machine.dir, n->name[k], O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (write(fd, n->old[k].p, n->old[k].len) < 0)
        abort();
    close(fd);
}

/* Undo all unsynced changes, then repeat a random part of them. */
static void lose_writes(void)
{
    for (size_t i = machine.change_count; i--;) {
        const change *c = &machine.changes[i];
        if (pwrite(c->fd, c->old.p, c->old.len, c->at) < 0 || ftruncate(c->fd, c->old_size))
            abort();
    }
    for (size_t i = 0; i < machine.change_count; i++) {
        const change *c = &machine.changes[i];
        size_t kept_count = heft_test_random(&machine.random, (uint32_t)c->new.len + 1);
        if (heft_test_random(&machine.random, 3) && pwrite(c->fd, c->new.p, kept_count, c->at) < 0)
            abort();
        if (heft_test_random(&machine.random, 2) && ftruncate(c->fd, c->new_size))
            abort(); /* a disk may write the size before or after the data */
    }
}

/* Count a call; at call `cut_at` lose unsynced changes and exit with CUT. */
static void count_call(void)
{
    if (++machine.calls != machine.cut_at)
        return;
    lose_writes();
    size_t kept_count = heft_test_random(&machine.random, (uint32_t)machine.entry_change_count + 1);
    for (size_t i = machine.entry_change_count; i-- > kept_count;)
        for (int k = 0; k < 2; k++)
            restore_entry(&machine.entry_changes[i], k);
    _exit(CUT);
}

static void record_change(int fd, off_t at, const void *data, size_t len, off_t new_size)
{
    change *c = &machine.changes[machine.change_count++];
    assert_true(machine.change_count < MAX_CHANGES);
    off_t size = size_of(fd);
    size_t old_len = new_size < size ? (size_t)(size - new_size) : len;
    *c = (change){ fd, at, size, new_size, bytes_at(fd, at, old_len), { NULL, 0 } };
    c->new = heft_test_copy(data ? data : "", len);
}

static void record_entries(int dir, const char *a, const char *b)
{
    entry_change *n = &machine.entry_changes[machine.entry_change_count++];
    const char *const names[] = { a, b };
    assert_true(machine.entry_change_count < MAX_CHANGES);
    machine.dir = dir;
    for (int k = 0; k < 2; k++) {
        snprintf(n->name[k], sizeof n->name[k], "%s", names[k]);
        int fd = openat(dir, names[k], O_RDONLY);
        n->existed[k] = fd >= 0;
        if (fd >= 0)
            n->old[k] = bytes_at(fd, 0, (size_t)size_of(fd));
        if (fd >= 0)
            close(fd);
    }
}

static ssize_t cut_write(int fd, const void *data, size_t len, off_t at)
{
    off_t size = size_of(fd), end = at + (off_t)len;
    count_call();
    record_change(fd, at, data, len, end > size ? end : size);
    return pwrite(fd, data, len, at);
}

static int cut_truncate(int fd, off_t size)
{
    count_call();
    record_change(fd, size, NULL, 0, size);
    return ftruncate(fd, size);
}

static int cut_sync(int fd)
{
    struct stat st;
    size_t kept_count = 0;
    count_call();
    if (!fstat(fd, &st) && S_ISDIR(st.st_mode))
        machine.entry_change_count = 0;
    for (size_t i = 0; i < machine.change_count; i++)
        if (machine.changes[i].fd != fd)
            machine.changes[kept_count++] = machine.changes[i];
    machine.change_count = kept_count;
    return 0;
}

static int cut_create(int dir, const char *name, int flags, mode_t mode)
{
    count_call();
    if ((flags & O_TMPFILE) == O_TMPFILE) {
        errno = EOPNOTSUPP; /* force a temporary name, which a power failure can lose */
        return -1;
    }
    record_entries(dir, name, name);
    return openat(dir, name, flags, mode);
}

static int cut_rename(int dir, const char *from, const char *to)
{
    count_call();
    record_entries(dir, from, to);
    return renameat(dir, from, dir, to);
}

static int cut_remove(int dir, const char *name)
{
    count_call();
    record_entries(dir, name, name);
    return unlinkat(dir, name, 0);
}

static ssize_t cut_copy(int from, off_t at, int to, off_t to_at, size_t len)
{
    (void)from, (void)at, (void)to, (void)to_at, (void)len;
    errno = ENOSYS;
    return -1;
}

static int cut_reflink(int from, off_t at, int to, off_t to_at, size_t len)
{
    return (int)cut_copy(from, at, to, to_at, len);
}

static ssize_t plain_read(int fd, void *buf, size_t len, off_t at)
{
    return heft_system_disk.read(fd, buf, len, at);
}

static int no_reserve(int fd, off_t size)
{
    (void)fd, (void)size;
    errno = EOPNOTSUPP;
    return -1;
}

static int cut_flush(int fd)
{
    return heft_system_disk.flush(fd);
}

static int cut_close(int fd)
{
    return heft_system_disk.close(fd);
}

static int cut_lock(int fd)
{
    return heft_system_disk.lock(fd);
}

static const heft_disk cut_disk = {
    .flush = cut_flush,
    .close = cut_close,
    .lock = cut_lock,
    .read = plain_read,
    .reserve = no_reserve,
    .write = cut_write,
    .truncate = cut_truncate,
    .sync = cut_sync,
    .create = cut_create,
    .rename = cut_rename,
    .remove = cut_remove,
    .copy = cut_copy,
    .reflink = cut_reflink,
};

static int no_sync(int fd)
{
    (void)fd;
    return 0;
}

/* ---- edits ---------------------------------------------------------------------------------- */

static heft_status edit(const heft_disk *disk, const char *path, const char *to)
{
    heft_rename rename = { heft_test_str("w"), heft_test_str(to) };
    heft_edit_options o = HEFT_EDIT_OPTIONS_INIT;
    heft_test_host host;
    heft_error err;
    heft_test_host_init(&host, 1);
    o.host = &host.host;
    o.rename = &rename;
    o.rename_count = 1;
    return heft_edit_file_on(disk, NULL, path, &o, &err);
}

/* Return the name of the tensor, prefixed with `ctx` and a space. */
static heft_str add_prefix(void *ctx, const heft_tensor *t)
{
    static char name[600];
    int n = snprintf(name, sizeof name, "%s %.*s", (const char *)ctx, (int)t->name.len,
                     t->name.ptr);
    return (heft_str){ name, (size_t)n };
}

static heft_status append(const heft_disk *disk, const char *path, const char *to)
{
    heft_write_options write = HEFT_WRITE_OPTIONS_INIT;
    heft_convert_options convert = HEFT_CONVERT_OPTIONS_INIT;
    heft_append_options o = HEFT_APPEND_OPTIONS_INIT;
    heft_bytes more = heft_test_one("safetensors", MORE);
    heft_test_host host;
    heft_file *from;
    heft_error err;
    heft_test_host_init(&host, 1);
    o.convert = &convert;
    convert.write = &write;
    write.host = &host.host;
    convert.rename = add_prefix;
    convert.ctx = (void *)(uintptr_t)to;
    heft_assert_ok(heft_test_open(&from, more, &host.host, &err), &err);
    heft_status st = heft_append_file_on(disk, NULL, path, from, &o, &err);
    heft_file_close(from);
    heft_test_free(&more);
    return st;
}

typedef heft_status (*operation)(const heft_disk *disk, const char *path, const char *to);

/* Run `make` in a child process with a power failure at call `at`; return false if the child
 * finished before. */
static bool is_cut(unsigned at, uint64_t random, const char *path, const char *to, operation make)
{
    int exit_status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        machine.cut_at = at;
        machine.random = random;
        _exit(make(&cut_disk, path, to) ? 1 : 0);
    }
    assert_int_equal(waitpid(child, &exit_status, 0), child);
    if (!WIFEXITED(exit_status) || WEXITSTATUS(exit_status) == 1)
        fail_msg("cut at call %u: it ended with %d", at, exit_status);
    return WEXITSTATUS(exit_status) == CUT;
}

static void cut_everywhere(const char *dir, const char *format, const char *to, operation make)
{
    enum { DATA = 3000, TRIES = 12 };
    const char *path = heft_test_path(dir, "model");
    const char *journal = heft_test_path(dir, "model.heft-journal");
    heft_bytes old = heft_test_one(format, DATA), new;
    heft_disk no_sync_disk = heft_system_disk;
    heft_error err;
    bool cut = true, rolled_back;
    no_sync_disk.sync = no_sync;
    heft_test_save(path, old.p, old.len);
    if (make(&no_sync_disk, path, to)) { /* the format stores no names */
        heft_test_free(&old);
        return;
    }
    new = heft_test_load(path);
    for (unsigned n = 1; cut; n++)
        for (uint64_t random = 1; random <= heft_test_fewer(TRIES); random++) {
            heft_test_save(path, old.p, old.len);
            unlink(journal);
            cut = is_cut(n, random * 7919 + n, path, to, make);
            heft_assert_ok(heft_edit_recover_on(&no_sync_disk, &rolled_back, path, &err), &err);
            assert_true(heft_test_file_is(path, old) || heft_test_file_is(path, new));
            assert_true(cut || heft_test_file_is(path, new));
        }
    heft_test_free(&new);
    heft_test_free(&old);
}

static void an_edit_in_place_survives_a_power_failure(void **state)
{
    const char *format;
    for (size_t i = 0; (format = heft_test_editable(i)); i++)
        cut_everywhere(*state, format, "v", edit);
}

static void an_edit_that_moves_data_survives_a_power_failure(void **state)
{
    char name[400];
    const char *format;
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    for (size_t i = 0; (format = heft_test_editable(i)); i++)
        cut_everywhere(*state, format, name, edit);
}

static void an_append_survives_a_power_failure(void **state)
{
    cut_everywhere(*state, "ztensor", "more", append);     /* in place */
    cut_everywhere(*state, "safetensors", "more", append); /* in a new file */
}

#define in_dir(test) cmocka_unit_test_setup_teardown(test, heft_test_dir_make, heft_test_dir_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        in_dir(an_edit_in_place_survives_a_power_failure),
        in_dir(an_edit_that_moves_data_survives_a_power_failure),
        in_dir(an_append_survives_a_power_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
