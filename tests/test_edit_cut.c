/* test_edit_cut.c - a machine that is cut off in the middle of an edit or an append.  Of what was written and not yet
 * synced any part may be lost, and so may the last changes of names in a directory that was not synced:
 * here both are, at random, and what is left must still be the old file or the new one. */
#include "models.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "port/disk.h"

/* ---- a disk that forgets -------------------------------------------------------------------- */

enum { MOST = 64, MORE = 5000 };

typedef struct change { /* of a file's bytes */
    int fd;
    off_t at, old_size, new_size;
    heft_bytes old, new;
} change;

typedef struct naming { /* what two names stood for before */
    char name[2][64];
    heft_bytes old[2];
    bool was[2];
} naming;

static struct {
    unsigned cut_at, calls;
    uint64_t random;
    int dir;
    change changes[MOST];
    naming namings[MOST];
    size_t change_count, naming_count;
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

static void put_back(const naming *n, int k)
{
    unlinkat(machine.dir, n->name[k], 0);
    if (!n->was[k])
        return;
    int fd = openat(machine.dir, n->name[k], O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (write(fd, n->old[k].p, n->old[k].len) < 0)
        abort();
    close(fd);
}

static void forget_bytes(void)
{
    for (size_t i = machine.change_count; i--;) {
        const change *c = &machine.changes[i];
        if (pwrite(c->fd, c->old.p, c->old.len, c->at) < 0 || ftruncate(c->fd, c->old_size))
            abort();
    }
    for (size_t i = 0; i < machine.change_count; i++) {
        const change *c = &machine.changes[i];
        size_t kept = heft_test_random(&machine.random, (uint32_t)c->new.len + 1);
        if (heft_test_random(&machine.random, 3) && pwrite(c->fd, c->new.p, kept, c->at) < 0)
            abort();
        if (heft_test_random(&machine.random, 2) && ftruncate(c->fd, c->new_size))
            abort(); /* the size is as likely to come before the bytes as behind them */
    }
}

static void count_call(void)
{
    if (++machine.calls != machine.cut_at)
        return;
    forget_bytes();
    size_t kept = heft_test_random(&machine.random, (uint32_t)machine.naming_count + 1);
    for (size_t i = machine.naming_count; i-- > kept;)
        for (int k = 0; k < 2; k++)
            put_back(&machine.namings[i], k);
    _exit(9);
}

static void note_change(int fd, off_t at, const void *data, size_t len, off_t new_size)
{
    change *c = &machine.changes[machine.change_count++];
    assert_true(machine.change_count < MOST);
    off_t size = size_of(fd);
    size_t lost = new_size < size ? (size_t)(size - new_size) : len;
    *c = (change){ fd, at, size, new_size, bytes_at(fd, at, lost), { NULL, 0 } };
    c->new = heft_test_copy(data ? data : "", len);
}

static void note_names(int dir, const char *a, const char *b)
{
    naming *n = &machine.namings[machine.naming_count++];
    const char *const names[] = { a, b };
    assert_true(machine.naming_count < MOST);
    machine.dir = dir;
    for (int k = 0; k < 2; k++) {
        snprintf(n->name[k], sizeof n->name[k], "%s", names[k]);
        int fd = openat(dir, names[k], O_RDONLY);
        n->was[k] = fd >= 0;
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
    note_change(fd, at, data, len, end > size ? end : size);
    return pwrite(fd, data, len, at);
}

static int cut_truncate(int fd, off_t size)
{
    count_call();
    note_change(fd, size, NULL, 0, size);
    return ftruncate(fd, size);
}

static int cut_sync(int fd)
{
    struct stat st;
    size_t kept = 0;
    count_call();
    if (!fstat(fd, &st) && S_ISDIR(st.st_mode))
        machine.naming_count = 0;
    for (size_t i = 0; i < machine.change_count; i++)
        if (machine.changes[i].fd != fd)
            machine.changes[kept++] = machine.changes[i];
    machine.change_count = kept;
    return 0;
}

static int cut_create(int dir, const char *name, int flags, mode_t mode)
{
    count_call();
    if ((flags & O_TMPFILE) == O_TMPFILE) {
        errno = EOPNOTSUPP; /* by name, of which one can get lost */
        return -1;
    }
    note_names(dir, name, name);
    return openat(dir, name, flags, mode);
}

static int cut_rename(int dir, const char *from, const char *to)
{
    count_call();
    note_names(dir, from, to);
    return renameat(dir, from, dir, to);
}

static int cut_remove(int dir, const char *name)
{
    count_call();
    note_names(dir, name, name);
    return unlinkat(dir, name, 0);
}

static ssize_t cut_copy(int from, off_t at, int to, off_t to_at, size_t len)
{
    (void)from, (void)at, (void)to, (void)to_at, (void)len;
    errno = ENOSYS;
    return -1;
}

static int cut_share(int from, off_t at, int to, off_t to_at, size_t len)
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
    .reflink = cut_share,
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

/* The same with further tensors, which all have `to` in front of their names. */
static heft_str under(void *ctx, const heft_tensor *t)
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
    convert.rename = under;
    convert.ctx = (void *)(uintptr_t)to;
    heft_assert_ok(heft_test_open(&from, more, &host.host, &err), &err);
    heft_status st = heft_append_file_on(disk, NULL, path, from, &o, &err);
    heft_file_close(from);
    heft_test_free(&more);
    return st;
}

typedef heft_status (*changing)(const heft_disk *disk, const char *path, const char *to);

/* false: the edit came to its end before. */
static bool is_cut(unsigned at, uint64_t random, const char *path, const char *to, changing make)
{
    int how;
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        machine.cut_at = at;
        machine.random = random;
        _exit(make(&cut_disk, path, to) ? 1 : 0);
    }
    assert_int_equal(waitpid(child, &how, 0), child);
    if (!WIFEXITED(how) || WEXITSTATUS(how) == 1)
        fail_msg("cut at call %u: it ended with %d", at, how);
    return WEXITSTATUS(how) == 9;
}

static bool file_is(const char *path, heft_bytes want)
{
    heft_bytes b = heft_test_load(path);
    bool same = b.len == want.len && !memcmp(b.p, want.p, b.len);
    heft_test_free(&b);
    return same;
}

static void cut_everywhere(const char *dir, const char *format, const char *to, changing make)
{
    enum { DATA = 3000, TRIES = 40 };
    const char *path = heft_test_path(dir, "model");
    const char *journal = heft_test_path(dir, "model.heft-journal");
    heft_bytes old = heft_test_one(format, DATA), new;
    heft_disk quick = heft_system_disk;
    heft_error err;
    bool cut = true, undone;
    quick.sync = no_sync;
    heft_test_save(path, old.p, old.len);
    if (make(&quick, path, to)) { /* a format without names */
        heft_test_free(&old);
        return;
    }
    new = heft_test_load(path);
    for (unsigned n = 1; cut; n++)
        for (uint64_t random = 1; random <= TRIES; random++) {
            heft_test_save(path, old.p, old.len);
            unlink(journal);
            cut = is_cut(n, random * 7919 + n, path, to, make);
            heft_assert_ok(heft_edit_recover_on(&quick, &undone, path, &err), &err);
            assert_true(file_is(path, old) || file_is(path, new));
            assert_true(cut || file_is(path, new));
        }
    heft_test_free(&new);
    heft_test_free(&old);
}

static void an_edit_in_place_survives_a_cut(void **state)
{
    const char *format;
    for (size_t i = 0; (format = heft_test_writable(i)); i++)
        cut_everywhere(*state, format, "v", edit);
}

static void an_edit_that_moves_data_survives_a_cut(void **state)
{
    char name[400];
    const char *format;
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    for (size_t i = 0; (format = heft_test_writable(i)); i++)
        cut_everywhere(*state, format, name, edit);
}

static void an_append_survives_a_cut(void **state)
{
    cut_everywhere(*state, "ztensor", "more", append);     /* in place */
    cut_everywhere(*state, "safetensors", "more", append); /* in a new file */
}

#define in_dir(test) cmocka_unit_test_setup_teardown(test, heft_test_dir_make, heft_test_dir_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        in_dir(an_edit_in_place_survives_a_cut),
        in_dir(an_edit_that_moves_data_survives_a_cut),
        in_dir(an_append_survives_a_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
