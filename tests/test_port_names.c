/* test_port_names.c - names at the limits: temporary files, indices, shards, folders; and
 * descriptor 0. */
#include "heft_test.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "folder/weight_names.h"
#include "port/folders/model_folder.h"
#include "port/save/sink_file.h"
#include "port/system/disk.h"

/* ---- names ----------------------------------------------------------------------------------- */

static void removes_exactly_the_temporary_files(void **state)
{
    static const struct {
        const char *name;
        bool is_removed;
    } rows[] = {
        { ".m.0123abcd.heft-new", true },
        { ".other.0.heft-new", true },
        { ".m.0123456789abcdef.heft-new", true },   /* sixteen digits */
        { ".m.00123456789abcdef.heft-new", false }, /* seventeen digits */
        { ".m.0123abcg.heft-new", false },
        { ".m..heft-new", false },
        { "..0.heft-new", false }, /* without the target's name */
        { ".a.0.heft-new", true },
        { "m.0123abcd.heft-new", false },
        { ".m.0123abcd.heft-newer", false },
        { ".m.0123abcd.tmp", true },
        { ".m.0123abc.tmp", false },
        { ".m.0123abcde.tmp", false },
        { ".m.0123abcg.tmp", false },
        { ".n.0123abcd.tmp", false },
        { ".mm0123abcd.tmp", false },
        { ".0.0123abcd.tmp", false },
    };
    for (size_t i = 0; i < HEFT_COUNT(rows); i++)
        heft_test_save(heft_test_path(*state, rows[i].name), "", 0);
    assert_int_equal(symlink("nowhere", heft_test_path(*state, ".l.0.heft-new")), 0);
    assert_int_equal(mkdir(heft_test_path(*state, ".d.0.heft-new"), 0700), 0);
    assert_int_equal(mkfifo(heft_test_path(*state, ".p.0.heft-new"), 0600), 0);
    int dir = open(*state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    heft_staged_remove_stale(&heft_system_disk, dir, "m");
    close(dir);
    for (size_t i = 0; i < HEFT_COUNT(rows); i++)
        assert_int_equal(heft_test_exists(heft_test_path(*state, rows[i].name)),
                         !rows[i].is_removed);
    assert_true(heft_test_exists(heft_test_path(*state, ".l.0.heft-new")));
    assert_true(heft_test_exists(heft_test_path(*state, ".d.0.heft-new")));
    assert_true(heft_test_exists(heft_test_path(*state, ".p.0.heft-new")));
}

static void an_index_is_recognised_by_its_name(void **state)
{
    static const struct {
        const char *index, *shard;
        bool may_be;
    } rows[] = {
        { "m.safetensors.index.json", "x", true },
        { ".safetensors.index.json", "x", false }, /* nothing before the suffix */
        { "m.bin.index.json", "x", true },
        { "m.safetensors.index.fp16.json", "x", true },
        { "m.safetensors.fp16.index.json", "x", true },
        { "m.bin.index.fp16.json", "x", true },
        { "m.index.json", "x", false },
        { "m.json", "x", false },
        { "m.zt", "m-1.zt", true },
        { "m.zt", "m1.zt", false },
        { "m.zt", "n-1.zt", false },
        { "m.zt", "m-1.gguf", false },
        { "m.zt", "m-.zt", true },
        { "m", "m-1", false },
    };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++)
        assert_int_equal(heft_weight_name_may_be_index_of(rows[i].index, rows[i].shard),
                         rows[i].may_be);
}

static void names_have_at_most_255_bytes(void **state)
{
    char name[NAME_MAX + 2];
    memset(name, 'x', sizeof name);
    name[NAME_MAX + 1] = '\0';
    assert_false(heft_is_file_name(name));
    heft_source *s;
    heft_error err;
    heft_assert_fails(heft_source_open_in_folder(&s, *state, name, HEFT_ACCESS_AUTO, &err),
                      HEFT_E_ARGUMENT, &err, "not a file name");
    name[NAME_MAX] = '\0';
    assert_true(heft_is_file_name(name));
    heft_test_save(heft_test_path(*state, name), "content", 7);
    heft_assert_ok(heft_source_open_in_folder(&s, *state, name, HEFT_ACCESS_AUTO, &err), &err);
    heft_source_close(s);
    static const char *const wrong[] = { "", ".", "..", "a/b", "/" };
    for (size_t i = 0; i < HEFT_COUNT(wrong); i++)
        assert_false(heft_is_file_name(wrong[i]));
    assert_true(heft_is_file_name("..."));
}

static void folders_have_paths_that_fit(void **state)
{
    char path[PATH_MAX + 2];
    memset(path, '/', sizeof path);
    (void)state;
    path[PATH_MAX + 1] = '\0';
    path[PATH_MAX] = 'x'; /* the folder has PATH_MAX bytes */
    errno = 0;
    assert_int_equal(heft_open_folder_of(path, O_RDONLY), -1);
    assert_int_equal(errno, ENAMETOOLONG);
    path[PATH_MAX - 1] = 'x';
    path[PATH_MAX] = '\0';
    int fd = heft_open_folder_of(path, O_RDONLY);
    assert_true(fd >= 0);
    close(fd);
    fd = heft_open_folder_of("x", O_RDONLY);
    assert_true(fd >= 0);
    close(fd);
}

/* ---- links ----------------------------------------------------------------------------------- */

static void make_link(const char *dir, const char *name, const char *to)
{
    const char *path = heft_test_path(dir, name);
    unlink(path);
    assert_int_equal(symlink(to, path), 0);
}

static void assert_opens(const char *dir, const char *name, heft_status expected, const char *words)
{
    heft_source *s;
    heft_error err;
    heft_status st = heft_source_open_in_folder(&s, dir, name, HEFT_ACCESS_AUTO, &err);
    heft_assert_status(st, expected, &err);
    if (st)
        heft_assert_fails(st, expected, &err, words);
    else
        heft_source_close(s);
}

/* "a" is a link to "b/x", and "b" is a link to the directory "d". */
static void links_have_targets_that_fit(void **state)
{
    char target[PATH_MAX];
    assert_int_equal(mkdir(heft_test_path(*state, "d"), 0700), 0);
    heft_test_save(heft_test_path(*state, "d/x"), "content", 7);
    make_link(*state, "a", "b/x");
    for (size_t len = PATH_MAX - 4; len < PATH_MAX - 1; len++) { /* followed by "/x" and 0 */
        for (size_t i = 0; i < len; i++)
            target[i] = i % 2 && i + 1 < len ? '/' : '.';
        target[len - 2] = '/';
        target[len - 1] = 'd';
        target[len] = '\0';
        make_link(*state, "b", target);
        assert_opens(*state, "a", len < PATH_MAX - 2 ? HEFT_OK : HEFT_E_IO, "cannot be resolved");
    }
}

static void links_have_components_that_fit(void **state)
{
    char target[NAME_MAX + 2];
    memset(target, 'x', sizeof target);
    target[NAME_MAX + 1] = '\0';
    make_link(*state, "a", target);
    assert_opens(*state, "a", HEFT_E_IO, strerror(ENAMETOOLONG));
    target[NAME_MAX] = '\0';
    make_link(*state, "a", target);
    assert_opens(*state, "a", HEFT_E_IO, "No such file");
    heft_test_save(heft_test_path(*state, target), "content", 7);
    assert_opens(*state, "a", HEFT_OK, "");
}

static void links_stay_in_the_folder(void **state)
{
    static const struct {
        const char *to;
        heft_status st;
        const char *words;
    } rows[] = {
        { "x", HEFT_OK, "" },
        { "./x", HEFT_OK, "" },
        { "d/../x", HEFT_OK, "" },
        { ".//d/./../x", HEFT_OK, "" },
        { "/x", HEFT_E_IO, "leaves the model's folder" },
        { "..", HEFT_E_IO, "leaves the model's folder" },
        { "../x", HEFT_E_IO, "leaves the model's folder" },
        { "d/../../x", HEFT_E_IO, "leaves the model's folder" },
        { ".", HEFT_E_IO, "cannot be resolved" },
        { "d", HEFT_E_IO, "directory" },
        { "x/y", HEFT_E_IO, "cannot be resolved" },
        { "gone/y", HEFT_E_IO, "cannot be resolved" },
        { "gone", HEFT_E_IO, "cannot be resolved" },
        { "a", HEFT_E_IO, "cannot be resolved" },
    };
    assert_int_equal(mkdir(heft_test_path(*state, "d"), 0700), 0);
    heft_test_save(heft_test_path(*state, "x"), "content", 7);
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        make_link(*state, "a", rows[i].to);
        assert_opens(*state, "a", rows[i].st, rows[i].words);
    }
}

/* ---- files that cannot be edited ------------------------------------------------------------- */

static void only_writable_files_are_edited(void **state)
{
    static const struct {
        const char *name;
        const char *words;
    } rows[] = {
        { "pipe", "is a pipe or a device, not a file" },
        { "folder", "cannot be edited" },
        { "read-only", "is read-only" },
        { "missing", "cannot be opened" },
    };
    heft_error err;
    assert_int_equal(mkfifo(heft_test_path(*state, "pipe"), 0600), 0);
    assert_int_equal(mkdir(heft_test_path(*state, "folder"), 0700), 0);
    heft_test_save(heft_test_path(*state, "read-only"), "content", 7);
    assert_int_equal(chmod(heft_test_path(*state, "read-only"), 0400), 0);
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        const char *path = heft_test_path(*state, rows[i].name);
        heft_assert_fails(heft_file_edit(NULL, path, NULL, &err), HEFT_E_IO, &err, rows[i].words);
        heft_assert_fails(heft_file_append(NULL, path, NULL, NULL, &err), HEFT_E_IO, &err,
                          rows[i].words);
    }
    heft_assert_fails(heft_file_edit(NULL, NULL, NULL, &err), HEFT_E_ARGUMENT, &err, "path");
    heft_assert_fails(heft_file_append(NULL, NULL, NULL, NULL, &err), HEFT_E_ARGUMENT, &err,
                      "path");
}

/* ---- descriptor 0 ---------------------------------------------------------------------------- */

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

static heft_status open_and_read(const char *dir, heft_error *err)
{
    heft_source *s;
    char got[8];
    heft_status st = heft_source_open_file(&s, heft_test_path(dir, "x"), HEFT_ACCESS_READ, err);
    if (st)
        return st;
    assert_int_equal(heft_source_descriptor(s), 0);
    st = s->ops->read(s, 0, got, 7, err);
    heft_source_close(s);
    return st;
}

static heft_status make_scratch(const char *dir, heft_error *err)
{
    heft_scratch *s;
    setenv("TMPDIR", dir, 1);
    heft_status st = heft_scratch_temporary(&s, 7, err);
    if (!st)
        s->ops->close(s);
    unsetenv("TMPDIR");
    return st;
}

static heft_status list_names(const char *dir, heft_error *err)
{
    heft_source *s;
    heft_status st = heft_source_open_in_folder(&s, dir, "x", HEFT_ACCESS_AUTO, err);
    if (!st)
        heft_source_close(s);
    return st;
}

static heft_status write_new(const char *dir, heft_error *err)
{
    heft_sink *s;
    heft_status st = heft_sink_open_file(&s, heft_test_path(dir, "y"), HEFT_SINK_REPLACE, err);
    if (!st)
        st = s->ops->write_at(s, 0, "new", 3, err);
    return st ? st : s->ops->finish(s, err);
}

static heft_status write_set(const char *dir, heft_error *err)
{
    heft_sink_dir *set;
    heft_sink *s;
    heft_status st = heft_sink_dir_open(&set, dir, HEFT_SINK_REPLACE, err);
    if (!st)
        st = heft_sink_dir_add(&s, set, "z", err);
    if (!st)
        st = s->ops->finish(s, err);
    return st ? st : heft_sink_dir_finish(set, err);
}

static heft_status recover(const char *dir, heft_error *err)
{
    heft_recovery out;
    return heft_sink_dir_recover(&out, dir, err);
}

static heft_status fingerprint(const char *dir, heft_error *err)
{
    heft_fingerprint f;
    bool exists;
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), high = dup(fd);
    close(fd);
    heft_status st = heft_fingerprint_at(&exists, &f, high, "x", err);
    close(high);
    return st;
}

/* Descriptor 0 is a descriptor like any other if a program has closed the standard input. */
static void descriptor_0_is_used_and_closed(void **state)
{
    static heft_status (*const rows[])(const char *dir, heft_error *err) = {
        open_and_read, make_scratch, list_names, write_new, write_set, recover, fingerprint
    };
    int saved = dup(0);
    heft_test_save(heft_test_path(*state, "x"), "content", 7);
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        heft_error err;
        close(0);
        heft_status st = rows[i](*state, &err);
        bool left_open = is_open(0);
        close(0);
        heft_assert_ok(st, &err);
        assert_false(left_open);
    }
    dup2(saved, 0);
    close(saved);
}

#define with_dir(fn) cmocka_unit_test_setup_teardown(fn, heft_test_dir_make, heft_test_dir_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_dir(removes_exactly_the_temporary_files),
        cmocka_unit_test(an_index_is_recognised_by_its_name),
        with_dir(names_have_at_most_255_bytes),
        cmocka_unit_test(folders_have_paths_that_fit),
        with_dir(links_have_targets_that_fit),
        with_dir(links_have_components_that_fit),
        with_dir(links_stay_in_the_folder),
        with_dir(only_writable_files_are_edited),
        with_dir(descriptor_0_is_used_and_closed),
    };
    return cmocka_run_group_tests_name("port_names", tests, NULL, NULL);
}
