/* test_journals.c - journals beside files: a question about them that the system does not answer is never a
 * no. */
#include "models.h"

#include <dlfcn.h>
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stopping_disk.h"

/* ---- calls that fail ------------------------------------------------------------------------- */

static struct {
    int realpath_os, stat_os;
    const char *stat_name; /* whose name it is that cannot be looked at */
} failing;

/* In place of those of the C library. */
char *realpath(const char *path, char *resolved)
{
    char *(*real)(const char *, char *);
    *(void **)&real = dlsym(RTLD_NEXT, "realpath");
    if (!failing.realpath_os)
        return real(path, resolved);
    errno = failing.realpath_os;
    return NULL;
}

int fstatat(int dir, const char *name, struct stat *out, int flags)
{
    int (*real)(int, const char *, struct stat *, int);
    *(void **)&real = dlsym(RTLD_NEXT, "fstatat64");
    if (!failing.stat_os || !strstr(name, failing.stat_name))
        return real(dir, name, out, flags);
    errno = failing.stat_os;
    return -1;
}

static void nothing_fails(void)
{
    memset(&failing, 0, sizeof failing);
    memset(&heft_stop, 0, sizeof heft_stop);
}

/* ---- files ----------------------------------------------------------------------------------- */

enum { DATA = 5000 };

static bool file_is(const char *path, heft_bytes want)
{
    heft_bytes b = heft_test_load(path);
    bool same = b.len == want.len && !memcmp(b.p, want.p, b.len);
    heft_test_free(&b);
    return same;
}

static heft_status can_open(const char *path, heft_error *err)
{
    heft_file *f;
    heft_status st = heft_open(&f, path, NULL, err);
    if (!st)
        heft_close(f);
    else
        assert_null(f);
    return st;
}

static heft_status edit(const heft_disk *disk, const char *path, heft_error *err)
{
    heft_rename rename = { heft_test_str("w"), heft_test_str("v") };
    heft_edit_options o = HEFT_EDIT_OPTIONS_INIT;
    heft_test_host host;
    heft_test_host_init(&host, 1);
    o.host = &host.host;
    o.rename = &rename;
    o.rename_count = 1;
    return heft_edit_file_on(disk, NULL, path, &o, err);
}

static heft_status do_edit(void *path)
{
    heft_error err;
    return edit(&heft_stopping_disk, path, &err);
}

/* The file in the middle of an edit, with its journal. */
static void leave_half_edited(char *path, heft_bytes model)
{
    char journal[1100];
    snprintf(journal, sizeof journal, "%s.heft-journal", path);
    unsigned n = 1;
    do {
        unlink(journal);
        heft_test_save(path, model.p, model.len);
        (void)heft_test_is_killed(HEFT_TORN, n++, do_edit, path);
        assert_true(n < 100);
    } while (!heft_test_exists(journal) || file_is(path, model));
}

typedef struct scene {
    char path[1024];
    heft_bytes old;
} scene;

static scene scene_of(const char *dir)
{
    scene s = { .old = heft_test_one("safetensors", DATA) };
    snprintf(s.path, sizeof s.path, "%s/model", dir);
    nothing_fails();
    return s;
}

static void end_scene(scene *s)
{
    heft_test_free(&s->old);
    nothing_fails();
}

/* ---- questions that are not answered ---------------------------------------------------------- */

static void a_question_without_an_answer_is_not_a_no(void **state)
{
    static const int errors[] = { EIO, ENOMEM, EACCES, ENOENT, ELOOP };
    scene s = scene_of(*state);
    heft_error err;
    for (int half = 0; half < 2; half++)
        for (size_t i = 0; i < HEFT_COUNT(errors); i++) {
            nothing_fails();
            heft_test_save(s.path, s.old.p, s.old.len);
            if (half)
                leave_half_edited(s.path, s.old);
            failing.realpath_os = errors[i];
            heft_assert_fails(can_open(s.path, &err), HEFT_E_IO, &err, "cannot be looked up");
            nothing_fails();
            failing.stat_os = errors[i];
            failing.stat_name = "heft-journal";
            if (errors[i] != ENOENT)
                heft_assert_fails(can_open(s.path, &err), HEFT_E_IO, &err, "cannot be looked at");
            failing.stat_name = "heft-set.journal";
            if (errors[i] != ENOENT)
                heft_assert_fails(can_open(s.path, &err), HEFT_E_IO, &err, "cannot be looked at");
        }
    end_scene(&s);
}

static void a_file_without_a_name_has_no_journal(void **state)
{
    scene s = scene_of(*state);
    char self[64];
    heft_error err;
    heft_test_save(s.path, s.old.p, s.old.len);
    FILE *f = fopen(s.path, "rb");
    snprintf(self, sizeof self, "/proc/self/fd/%d", fileno(f));
    heft_assert_ok(can_open(self, &err), &err);
    assert_int_equal(unlink(s.path), 0);
    heft_assert_ok(can_open(self, &err), &err);
    fclose(f);
    end_scene(&s);
}

static void a_half_edited_shard_is_not_read(void **state)
{
    static const char index[] = "{\"metadata\": {}, \"weight_map\": {\"w\": \"model\"}}";
    const char *list = heft_test_path(*state, "m.safetensors.index.json");
    scene s = scene_of(*state);
    heft_error err;
    heft_file *f;
    heft_test_save(list, index, sizeof index - 1);
    heft_test_save(s.path, s.old.p, s.old.len);
    heft_assert_ok(heft_open(&f, list, NULL, &err), &err);
    heft_assert_ok(heft_is_whole(f, &err), &err);
    heft_close(f);
    leave_half_edited(s.path, s.old);
    heft_status st = heft_open(&f, list, NULL, &err);
    if (!st)
        st = heft_is_whole(f, &err);
    heft_assert_fails(st, HEFT_E_IO, &err, "journal");
    heft_close(f);
    end_scene(&s);
}

#define in_dir(test) cmocka_unit_test_setup_teardown(test, heft_test_dir_make, heft_test_dir_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        in_dir(a_question_without_an_answer_is_not_a_no),
        in_dir(a_file_without_a_name_has_no_journal),
        in_dir(a_half_edited_shard_is_not_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
