/* test_sinks.c - file sinks: files are created completely, or not at all. */
#include "models.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char text[] = "what the file holds";

static heft_status put(heft_sink *s, const void *p, size_t len, heft_error *err)
{
    return s->ops->write_at ? s->ops->write_at(s, 0, p, len, err) : s->ops->write(s, p, len, err);
}

/* Open, write and finish a file. */
static heft_status write_file(const char *path, uint32_t flags, const char *what, heft_error *err)
{
    heft_sink *s;
    heft_status st = heft_sink_open_file(&s, path, flags, err);
    if (st)
        return st;
    st = put(s, what, strlen(what), err);
    if (st) {
        heft_sink_discard(s);
        return st;
    }
    return s->ops->finish(s, err);
}

static void assert_holds(const char *path, const char *what)
{
    heft_bytes b = heft_test_load(path);
    assert_int_equal(b.len, strlen(what));
    assert_memory_equal(b.p, what, b.len);
    heft_test_free(&b);
}

static mode_t mode_of(const char *path)
{
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    return st.st_mode & 07777;
}

/* ---- atomic files --------------------------------------------------------------------------- */

static void file_gets_its_name_when_finished(void **state)
{
    heft_error err;
    heft_sink *s;
    const char *path = heft_test_path(*state, "new");
    mode_t mask = umask(027);
    heft_assert_ok(heft_sink_open_file(&s, path, 0, &err), &err);
    heft_assert_ok(put(s, text, strlen(text), &err), &err);
    assert_false(heft_test_exists(path));
    heft_assert_ok(s->ops->finish(s, &err), &err);
    umask(mask);
    assert_holds(path, text);
    assert_int_equal(mode_of(path), 0640);
    assert_int_equal(heft_test_dir_entries(*state), 1);
}

static void discarded_file_leaves_nothing(void **state)
{
    heft_error err;
    heft_sink *s;
    heft_assert_ok(heft_sink_open_file(&s, heft_test_path(*state, "new"), 0, &err), &err);
    heft_assert_ok(put(s, text, strlen(text), &err), &err);
    heft_sink_discard(s);
    heft_sink_discard(NULL);
    assert_int_equal(heft_test_dir_entries(*state), 0);
}

static void refuses_to_replace_an_existing_file(void **state)
{
    heft_error err;
    const char *path = heft_test_path(*state, "old");
    heft_sink *s;
    heft_test_save(path, "old", 3);
    heft_assert_fails(heft_sink_open_file(&s, path, 0, &err), HEFT_E_ARGUMENT, &err,
                      "already exists");
    assert_null(s); /* fails before any work is done */
    assert_int_equal(err.os, EEXIST);
    assert_holds(path, "old");
    assert_int_equal(heft_test_dir_entries(*state), 1);
}

static void keeps_a_file_that_appears_during_writing(void **state)
{
    heft_error err;
    heft_sink *s;
    const char *path = heft_test_path(*state, "new");
    heft_assert_ok(heft_sink_open_file(&s, path, 0, &err), &err);
    heft_assert_ok(put(s, text, strlen(text), &err), &err);
    heft_test_save(path, "other", 5);
    heft_assert_fails(s->ops->finish(s, &err), HEFT_E_ARGUMENT, &err, "already exists");
    assert_holds(path, "other");
    assert_int_equal(heft_test_dir_entries(*state), 1);
}

static void replaces_a_file_only_when_finished(void **state)
{
    heft_error err;
    heft_sink *s;
    char old[8] = "";
    const char *path = heft_test_path(*state, "old");
    heft_test_save(path, "old", 3);
    assert_int_equal(chmod(path, 0604), 0);
    int reader = open(path, O_RDONLY);
    heft_assert_ok(heft_sink_open_file(&s, path, HEFT_SINK_REPLACE, &err), &err);
    heft_assert_ok(put(s, text, strlen(text), &err), &err);
    assert_holds(path, "old");
    heft_assert_ok(s->ops->finish(s, &err), &err);
    assert_holds(path, text);
    assert_int_equal(mode_of(path), 0604);
    assert_int_equal(read(reader, old, sizeof old), 3); /* a reader keeps the old file */
    assert_string_equal(old, "old");
    close(reader);
    assert_int_equal(heft_test_dir_entries(*state), 1);
}

static const mode_t modes[] = { 0600, 0444, 0664, 0777, 02755, 01644 };

static void replaced_file_keeps_its_permissions(void **state)
{
    heft_error err;
    const char *path = heft_test_path(*state, "old");
    mode_t mask = umask(077);
    for (size_t i = 0; i < HEFT_COUNT(modes); i++) {
        heft_test_save(path, "old", 3);
        assert_int_equal(chmod(path, modes[i]), 0);
        heft_assert_ok(write_file(path, HEFT_SINK_REPLACE, text, &err), &err);
        assert_int_equal(mode_of(path), modes[i]);
        assert_int_equal(unlink(path), 0);
    }
    umask(mask);
}

static void replaced_set_keeps_its_permissions(void **state)
{
    char name[8];
    heft_error err;
    heft_sink_dir *set;
    mode_t mask = umask(077);
    for (size_t i = 0; i < HEFT_COUNT(modes); i++) {
        snprintf(name, sizeof name, "%u", (unsigned)i);
        heft_test_save(heft_test_path(*state, name), "old", 3);
        assert_int_equal(chmod(heft_test_path(*state, name), modes[i]), 0);
    }
    heft_assert_ok(heft_sink_dir_open(&set, *state, HEFT_SINK_REPLACE, &err), &err);
    for (size_t i = 0; i < HEFT_COUNT(modes); i++) {
        heft_sink *s;
        snprintf(name, sizeof name, "%u", (unsigned)i);
        heft_assert_ok(heft_sink_dir_add(&s, set, name, &err), &err);
        heft_assert_ok(put(s, text, strlen(text), &err), &err);
        heft_assert_ok(s->ops->finish(s, &err), &err);
    }
    heft_assert_ok(heft_sink_dir_finish(set, &err), &err);
    umask(mask);
    for (size_t i = 0; i < HEFT_COUNT(modes); i++) {
        snprintf(name, sizeof name, "%u", (unsigned)i);
        assert_holds(heft_test_path(*state, name), text);
        assert_int_equal(mode_of(heft_test_path(*state, name)), modes[i]);
    }
}

/* Requires the privilege to change the owner of files. */
static void replaced_file_keeps_its_owner(void **state)
{
    enum { OWNER = 12345, GROUP = 54321 };
    heft_error err;
    struct stat st;
    const char *path = heft_test_path(*state, "old");
    heft_test_save(path, "old", 3);
    if (chown(path, OWNER, GROUP))
        skip();
    assert_int_equal(chmod(path, 06750), 0);
    heft_assert_ok(write_file(path, HEFT_SINK_REPLACE, text, &err), &err);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_uid, OWNER);
    assert_int_equal(st.st_gid, GROUP);
    assert_int_equal(st.st_mode & 07777, 06750);
}

static void replacing_creates_a_missing_file(void **state)
{
    heft_error err;
    const char *path = heft_test_path(*state, "new");
    heft_assert_ok(write_file(path, HEFT_SINK_REPLACE | HEFT_SINK_SYNC, text, &err), &err);
    assert_holds(path, text);
    assert_int_equal(heft_test_dir_entries(*state), 1);
}

static void discarded_replacement_keeps_the_old_file(void **state)
{
    heft_error err;
    heft_sink *s;
    const char *path = heft_test_path(*state, "old");
    heft_test_save(path, "old", 3);
    heft_assert_ok(heft_sink_open_file(&s, path, HEFT_SINK_REPLACE, &err), &err);
    heft_assert_ok(put(s, text, strlen(text), &err), &err);
    heft_sink_discard(s);
    assert_holds(path, "old");
    assert_int_equal(heft_test_dir_entries(*state), 1);
}

/* ---- links, directories, paths -------------------------------------------------------------- */

static void replaces_the_target_of_a_link(void **state)
{
    heft_error err;
    struct stat st;
    const char *dir = heft_test_path(*state, "sub"), *link = heft_test_path(*state, "link");
    assert_int_equal(mkdir(dir, 0700), 0);
    heft_test_save(heft_test_path(dir, "real"), "old", 3);
    assert_int_equal(symlink("sub/real", link), 0);
    heft_assert_ok(write_file(link, HEFT_SINK_REPLACE, text, &err), &err);
    assert_holds(heft_test_path(dir, "real"), text);
    assert_int_equal(lstat(link, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(heft_test_dir_entries(dir), 1);
    assert_int_equal(heft_test_dir_entries(*state), 2);
}

static void refuses_a_dangling_link(void **state)
{
    heft_error err;
    const char *link = heft_test_path(*state, "link");
    assert_int_equal(symlink("nowhere", link), 0);
    heft_assert_fails(write_file(link, HEFT_SINK_REPLACE, text, &err), HEFT_E_IO, &err, "link");
    assert_int_equal(heft_test_dir_entries(*state), 1);
}

static void refuses_paths_that_cannot_be_files(void **state)
{
    static const struct {
        const char *path;
        int os;
    } rows[] = {
        { ".", EISDIR },         { "", EISDIR },         { "file/x", ENOTDIR },
        { "nowhere/x", ENOENT }, { "nowhere/", EISDIR }, { "loop", ELOOP },
    };
    heft_error err;
    char name[300];
    heft_test_save(heft_test_path(*state, "file"), "x", 1);
    assert_int_equal(symlink("loop", heft_test_path(*state, "loop")), 0);
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        const char *path = heft_test_path(*state, rows[i].path);
        heft_assert_status(write_file(path, HEFT_SINK_REPLACE, text, &err), HEFT_E_IO, &err);
        assert_int_equal(err.os, rows[i].os);
    }
    memset(name, 'n', sizeof name);
    name[256] = '\0';
    heft_assert_status(write_file(heft_test_path(*state, name), 0, text, &err), HEFT_E_IO, &err);
    assert_int_equal(err.os, ENAMETOOLONG);
    heft_assert_status(write_file("", 0, text, &err), HEFT_E_IO, &err);
    assert_int_equal(heft_test_dir_entries(*state), 2);
}

static void writes_and_replaces_the_longest_name(void **state)
{
    heft_error err;
    char name[256];
    memset(name, 'n', sizeof name);
    name[255] = '\0';
    heft_assert_ok(write_file(heft_test_path(*state, name), 0, "one", &err), &err);
    heft_assert_ok(write_file(heft_test_path(*state, name), HEFT_SINK_REPLACE, "two", &err), &err);
    assert_holds(heft_test_path(*state, name), "two");
    assert_int_equal(heft_test_dir_entries(*state), 1);
}

static void writes_a_name_into_the_current_folder(void **state)
{
    heft_error err;
    char here[1024];
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(chdir(*state), 0);
    heft_status made = write_file("plain", 0, "one", &err);
    heft_status replaced = write_file("plain", HEFT_SINK_REPLACE, "two", &err);
    assert_int_equal(chdir(here), 0);
    heft_assert_ok(made, &err);
    heft_assert_ok(replaced, &err);
    assert_holds(heft_test_path(*state, "plain"), "two");
}

/* ---- failures ------------------------------------------------------------------------------- */

/* Run fn(arg) in a child without privileges; return the result of fn, or 100 plus the signal. */
static int as_nobody(int (*fn)(const char *), const char *arg)
{
    int status;
    pid_t child = fork();
    assert_int_not_equal(child, -1);
    if (!child) {
        if (!geteuid() && (setgid(65534) || setuid(65534)))
            _exit(99);
        _exit(fn(arg));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

static int replace_file(const char *path)
{
    heft_error err;
    return write_file(path, HEFT_SINK_REPLACE, text, &err) ? err.os : 0;
}

/* The child may not change the owner. */
static void drops_set_id_bits_for_another_owner(void **state)
{
    struct stat st;
    const char *path = heft_test_path(*state, "old");
    assert_int_equal(chmod(*state, 0777), 0);
    heft_test_save(path, "old", 3);
    assert_int_equal(chmod(path, 06755), 0);
    assert_int_equal(as_nobody(replace_file, path), 0);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, geteuid() ? 06755 : 0755);
}

static void keeps_owner_and_group(void **state)
{
    static const gid_t owners[][2] = { { 1, 0 }, { 0, 1 }, { 1, 1 } };
    heft_error err;
    struct stat st;
    const char *path = heft_test_path(*state, "old");
    if (geteuid())
        skip(); /* only root may change the owner */
    for (size_t i = 0; i < HEFT_COUNT(owners); i++) {
        heft_test_save(path, "old", 3);
        assert_int_equal(chown(path, owners[i][0], owners[i][1]), 0);
        heft_assert_ok(write_file(path, HEFT_SINK_REPLACE, text, &err), &err);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_uid, owners[i][0]);
        assert_int_equal(st.st_gid, owners[i][1]);
    }
}

static int error_of_writing(const char *path)
{
    heft_error err;
    return write_file(path, HEFT_SINK_REPLACE, text, &err) == HEFT_E_IO ? err.os : 0;
}

static void reports_a_folder_without_write_permission(void **state)
{
    const char *dir = heft_test_path(*state, "closed");
    assert_int_equal(chmod(*state, 0755), 0);
    assert_int_equal(mkdir(dir, 0555), 0);
    assert_int_equal(as_nobody(error_of_writing, heft_test_path(dir, "x")), EACCES);
    assert_int_equal(heft_test_dir_entries(dir), 0);
}

static int fill_up(const char *path)
{
    struct rlimit small = { 4096, 4096 };
    heft_error err;
    heft_sink *s;
    char block[1000] = "";
    heft_status st = HEFT_OK;
    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &small) || heft_sink_open_file(&s, path, 0, &err))
        return 98;
    for (uint64_t i = 0; i < 10 && !st; i++)
        st = s->ops->write_at(s, i * sizeof block, block, sizeof block, &err);
    heft_sink_discard(s);
    return st == HEFT_E_IO ? err.os : 0;
}

static void file_size_limit_leaves_nothing(void **state)
{
    assert_int_equal(chmod(*state, 0777), 0);
    assert_int_equal(as_nobody(fill_up, heft_test_path(*state, "x")), EFBIG);
    assert_int_equal(heft_test_dir_entries(*state), 0);
}

static heft_status convert_into(const char *path, heft_bytes model, heft_error *err)
{
    heft_file *f;
    heft_sink *s;
    heft_source *from;
    heft_assert_ok(heft_source_open_memory(&from, model.p, model.len, err), err);
    heft_assert_ok(heft_file_open_source(&f, from, NULL, err), err);
    heft_assert_ok(heft_sink_open_file(&s, path, 0, err), err);
    heft_status st = heft_file_convert(f, heft_format_find(HEFT_STR("mag")), s, NULL, err);
    heft_file_close(f);
    return st;
}

/* Only root can mount a small file system; otherwise the test of the size limit suffices. */
static void full_disk_leaves_nothing(void **state)
{
    heft_error err;
    heft_bytes model = heft_test_one("mag", 2 << 20);
    if (mount("none", *state, "tmpfs", 0, "size=1m")) {
        heft_test_free(&model);
        return;
    }
    heft_status st = convert_into(heft_test_path(*state, "x"), model, &err);
    size_t left = heft_test_dir_entries(*state);
    heft_test_free(&model);
    assert_int_equal(umount(*state), 0);
    heft_assert_status(st, HEFT_E_IO, &err);
    assert_int_equal(err.os, ENOSPC);
    assert_int_equal(left, 0);
}

/* ---- without O_TMPFILE ---------------------------------------------------------------------- */

static bool file_is(const char *path, const char *what)
{
    char got[64] = "";
    int fd = open(path, O_RDONLY);
    ssize_t n = read(fd, got, sizeof got - 1);
    close(fd);
    return n == (ssize_t)strlen(what) && !strcmp(got, what);
}

/* Without /proc, unfinished files have a hidden name. Return 0, or the failed step. */
static int write_without_proc(const char *dir)
{
    heft_error err;
    heft_sink *s;
    const char *path = heft_test_path(dir, "x");
    if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
        umount2("/proc", MNT_DETACH))
        return 0; /* no permission to unmount */
    if (heft_sink_open_file(&s, path, 0, &err) || heft_test_dir_entries(dir) != 1)
        return 1;
    heft_sink_discard(s);
    if (heft_test_dir_entries(dir) || write_file(path, 0, "one", &err) || !file_is(path, "one"))
        return 2;
    if (write_file(path, 0, "two", &err) != HEFT_E_ARGUMENT || !file_is(path, "one"))
        return 3;
    if (write_file(path, HEFT_SINK_REPLACE, "three", &err) || !file_is(path, "three"))
        return 4;
    if (heft_sink_open_file(&s, path, HEFT_SINK_REPLACE, &err) || unlink(path))
        return 5;
    if (s->ops->finish(s, &err) || !heft_test_exists(path))
        return 6;
    return heft_test_dir_entries(dir) == 1 ? 0 : 7;
}

static void uses_hidden_names_without_unnamed_files(void **state)
{
    int status;
    pid_t child = fork();
    if (!child)
        _exit(write_without_proc(*state));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* ---- killed --------------------------------------------------------------------------------- */

static bool kill_halfway(void *ctx, uint64_t done, uint64_t total)
{
    (void)ctx;
    if (done > total / 2)
        raise(SIGKILL);
    return true;
}

static int convert_until_killed(const char *path)
{
    heft_error err;
    heft_file *f;
    heft_sink *s;
    heft_convert_options opt = HEFT_CONVERT_OPTIONS_INIT;
    heft_bytes model = heft_test_one("mag", 3 << 20);
    heft_source *from;
    opt.progress = kill_halfway;
    if (heft_source_open_memory(&from, model.p, model.len, &err) ||
        heft_file_open_source(&f, from, NULL, &err) ||
        heft_sink_open_file(&s, path, HEFT_SINK_REPLACE, &err))
        return 97;
    heft_status st = heft_file_convert(f, heft_format_find(HEFT_STR("mag")), s, &opt, &err);
    return st ? 96 : 0;
}

static void killed_program_leaves_nothing(void **state)
{
    assert_int_equal(chmod(*state, 0777), 0);
    assert_int_equal(as_nobody(convert_until_killed, heft_test_path(*state, "x")), 100 + SIGKILL);
    assert_int_equal(heft_test_dir_entries(*state), 0);
    heft_test_save(heft_test_path(*state, "old"), "old", 3);
    assert_int_equal(chmod(heft_test_path(*state, "old"), 0666), 0);
    assert_int_equal(as_nobody(convert_until_killed, heft_test_path(*state, "old")), 100 + SIGKILL);
    assert_holds(heft_test_path(*state, "old"), "old");
    assert_int_equal(heft_test_dir_entries(*state), 1);
}

/* ---- streams -------------------------------------------------------------------------------- */

/* Fork a child that copies the pipe into the file. */
static pid_t copy_to_file(int from, int other, const char *path)
{
    pid_t child = fork();
    if (child)
        return child;
    char block[1000];
    ssize_t n;
    close(other);
    FILE *f = fopen(path, "wb");
    while ((n = read(from, block, sizeof block)) > 0)
        if (fwrite(block, 1, (size_t)n, f) != (size_t)n)
            _exit(1);
    _exit(fclose(f) ? 1 : 0);
}

static void pipe_receives_the_bytes_of_a_file(void **state)
{
    heft_error err;
    heft_file *f;
    heft_sink *s;
    int ends[2], status;
    heft_bytes model = heft_test_one("mag", 300000), piped;
    heft_source *from;
    heft_assert_ok(heft_source_open_memory(&from, model.p, model.len, &err), &err);
    heft_assert_ok(heft_file_open_source(&f, from, NULL, &err), &err);
    assert_int_equal(pipe(ends), 0);
    pid_t child = copy_to_file(ends[0], ends[1], heft_test_path(*state, "piped"));
    close(ends[0]);
    heft_assert_ok(heft_sink_open_fd(&s, ends[1], &err), &err);
    assert_null(s->ops->write_at);
    heft_assert_ok(heft_file_convert(f, heft_format_find(HEFT_STR("mag")), s, NULL, &err), &err);
    assert_int_equal(close(ends[1]), 0); /* the caller still owns the descriptor */
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    piped = heft_test_load(heft_test_path(*state, "piped"));
    heft_assert_same_bytes(piped, model);
    heft_file_close(f);
    heft_test_free(&piped);
    heft_test_free(&model);
}

static void writes_a_named_pipe(void **state)
{
    heft_error err;
    int status;
    const char *fifo = heft_test_path(*state, "fifo"), *out = heft_test_path(*state, "out");
    assert_int_equal(mkfifo(fifo, 0600), 0);
    pid_t child = fork();
    if (!child) {
        int from = open(fifo, O_RDONLY);
        pid_t inner = copy_to_file(from, -1, out);
        _exit(waitpid(inner, &status, 0) == inner ? status : 1);
    }
    heft_assert_ok(write_file(fifo, 0, text, &err), &err);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_holds(out, text);
}

static void reports_a_pipe_without_a_reader(void **state)
{
    heft_error err;
    heft_sink *s;
    int ends[2];
    (void)state;
    signal(SIGPIPE, SIG_IGN);
    assert_int_equal(pipe(ends), 0);
    close(ends[0]);
    heft_assert_ok(heft_sink_open_fd(&s, ends[1], &err), &err);
    heft_assert_status(put(s, text, strlen(text), &err), HEFT_E_IO, &err);
    assert_int_equal(err.os, EPIPE);
    heft_sink_discard(s);
    close(ends[1]);
}

static void reports_a_full_device(void **state)
{
    heft_error err;
    (void)state;
    heft_assert_status(write_file("/dev/full", 0, text, &err), HEFT_E_IO, &err);
    assert_int_equal(err.os, ENOSPC);
}

#define IN_A_DIRECTORY(test) \
    cmocka_unit_test_setup_teardown(test, heft_test_dir_make, heft_test_dir_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_DIRECTORY(file_gets_its_name_when_finished),
        IN_A_DIRECTORY(discarded_file_leaves_nothing),
        IN_A_DIRECTORY(refuses_to_replace_an_existing_file),
        IN_A_DIRECTORY(keeps_a_file_that_appears_during_writing),
        IN_A_DIRECTORY(replaces_a_file_only_when_finished),
        IN_A_DIRECTORY(replaced_file_keeps_its_permissions),
        IN_A_DIRECTORY(replaced_set_keeps_its_permissions),
        IN_A_DIRECTORY(replaced_file_keeps_its_owner),
        IN_A_DIRECTORY(drops_set_id_bits_for_another_owner),
        IN_A_DIRECTORY(keeps_owner_and_group),
        IN_A_DIRECTORY(replacing_creates_a_missing_file),
        IN_A_DIRECTORY(discarded_replacement_keeps_the_old_file),
        IN_A_DIRECTORY(replaces_the_target_of_a_link),
        IN_A_DIRECTORY(refuses_a_dangling_link),
        IN_A_DIRECTORY(refuses_paths_that_cannot_be_files),
        IN_A_DIRECTORY(writes_and_replaces_the_longest_name),
        IN_A_DIRECTORY(writes_a_name_into_the_current_folder),
        IN_A_DIRECTORY(reports_a_folder_without_write_permission),
        IN_A_DIRECTORY(file_size_limit_leaves_nothing),
        IN_A_DIRECTORY(full_disk_leaves_nothing),
        IN_A_DIRECTORY(uses_hidden_names_without_unnamed_files),
        IN_A_DIRECTORY(killed_program_leaves_nothing),
        IN_A_DIRECTORY(pipe_receives_the_bytes_of_a_file),
        IN_A_DIRECTORY(writes_a_named_pipe),
        IN_A_DIRECTORY(reports_a_pipe_without_a_reader),
        IN_A_DIRECTORY(reports_a_full_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
