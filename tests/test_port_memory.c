/* test_port_memory.c - each allocation of the C library fails in turn.  The calls are intercepted
 * through the linker option --wrap, see meson.build. */
#include "models.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stopping_disk.h"

/* ---- intercepted calls ---------------------------------------------------------------------- */

typedef enum call { NO_CALL, MALLOC, CALLOC, STRDUP, OPENAT } call;

static struct {
    call fails;
    int at; /* number of the call that fails, from 1 */
    int calls;
} plan;

static void plan_for(call c, int at)
{
    plan.fails = c;
    plan.at = at;
    plan.calls = 0;
}

static bool fails(call c)
{
    if (c != plan.fails || ++plan.calls != plan.at)
        return false;
    errno = ENOMEM;
    return true;
}

/* Shared libraries may call a wrapped function, too: the symbols must be visible to libraries. */
#define WRAPPED(result, name, parameters, arguments, c, failure)            \
    result __real_##name parameters;                                        \
    __attribute__((visibility("default"))) result __wrap_##name parameters; \
    result __wrap_##name parameters                                         \
    {                                                                       \
        return fails(c) ? (failure) : __real_##name arguments;              \
    }

WRAPPED(void *, malloc, (size_t size), (size), MALLOC, NULL)
WRAPPED(char *, strdup, (const char *text), (text), STRDUP, NULL)
WRAPPED(char *, strndup, (const char *text, size_t len), (text, len), STRDUP, NULL)
/* On machines of 32 bits the blocks that are aligned to 16 bytes come from posix_memalign(). */
WRAPPED(int, posix_memalign, (void **block, size_t align, size_t size), (block, align, size),
        MALLOC, ENOMEM)
WRAPPED(void *, calloc, (size_t n, size_t size), (n, size), CALLOC, NULL)
WRAPPED(int, openat64, (int dir, const char *name, int flags, mode_t mode),
        (dir, name, flags, mode), OPENAT, -1)
/* openat64() without a mode, under _FORTIFY_SOURCE */
WRAPPED(int, __openat64_2, (int dir, const char *name, int flags), (dir, name, flags), OPENAT, -1)

/* A path that cannot be copied, and a file that cannot be opened, are failed calls with ENOMEM. */
static void assert_lacks_memory(heft_status st, bool is_reached, call c, const heft_error *err)
{
    bool is_call = (c == STRDUP || c == OPENAT) && st == HEFT_E_IO && err->os == ENOMEM;
    heft_assert_status(st, is_call ? st : is_reached ? HEFT_E_NOMEM : HEFT_OK, err);
    assert_true(is_reached || !is_call);
}

/* ---- a model -------------------------------------------------------------------------------- */

static heft_status set_long_value(const char *dir, heft_error *err)
{
    char long_text[9000];
    heft_value v = { .kind = HEFT_KIND_STR, .key = HEFT_STR("k") };
    heft_edit_options o = HEFT_EDIT_OPTIONS_INIT;
    memset(long_text, 'x', sizeof long_text);
    v.as.s = (heft_str){ long_text, sizeof long_text };
    o.set = &v;
    o.set_count = 1;
    return heft_file_edit(NULL, heft_test_path(dir, "m.safetensors"), &o, err);
}

static heft_status rename_tensor(const char *dir, heft_error *err)
{
    heft_rename rename = { HEFT_STR("w"), HEFT_STR("v") };
    heft_edit_options o = HEFT_EDIT_OPTIONS_INIT;
    o.rename = &rename;
    o.rename_count = 1;
    return heft_file_edit(NULL, heft_test_path(dir, "m.safetensors"), &o, err);
}

static heft_status open_model(const char *dir, heft_error *err)
{
    heft_file *f;
    heft_status st = heft_file_open(&f, heft_test_path(dir, "m.safetensors"), NULL, err);
    if (!st)
        heft_file_close(f);
    return st;
}

static heft_status open_the_folder(const char *dir, heft_error *err)
{
    heft_file *f;
    heft_status st = heft_file_open(&f, dir, NULL, err);
    if (!st)
        heft_file_close(f);
    return st;
}

static heft_status write_a_set(const char *dir, heft_error *err)
{
    heft_sink_dir *set;
    heft_sink *s;
    heft_status st = heft_sink_dir_open(&set, dir, HEFT_SINK_REPLACE, err);
    if (st)
        return st;
    st = heft_sink_dir_add(&s, set, "z", err);
    if (!st)
        st = s->ops->write_at(s, 0, "new", 3, err);
    if (!st)
        st = s->ops->finish(s, err);
    if (!st)
        return heft_sink_dir_finish(set, err);
    heft_sink_dir_discard(set);
    return st;
}

static heft_status recover_file(const char *dir, heft_error *err)
{
    bool undone;
    return heft_edit_recover(&undone, heft_test_path(dir, "m.safetensors"), err);
}

/* The file is the file before or after the operation; no further file is left. */
static void allocations_fail_without_a_trace(void **state)
{
    static heft_status (*const rows[])(const char *dir, heft_error *err) = {
        open_model, open_the_folder, rename_tensor, set_long_value, write_a_set, recover_file,
    };
    static const call calls[] = { MALLOC, CALLOC, STRDUP };
    heft_bytes model = heft_test_one("safetensors", 5000);
    char path[PATH_MAX]; /* heft_test_path() returns one of a few buffers in turn */
    snprintf(path, sizeof path, "%s", heft_test_path(*state, "m.safetensors"));
    for (size_t i = 0; i < HEFT_COUNT(rows); i++)
        for (size_t k = 0; k < HEFT_COUNT(calls); k++) {
            bool is_reached = true;
            for (int at = 1; is_reached; at++) {
                heft_error err;
                heft_test_save(path, model.p, model.len);
                plan_for(calls[k], at);
                heft_status st = rows[i](*state, &err);
                is_reached = plan.calls >= at;
                plan_for(NO_CALL, 0);
                assert_lacks_memory(st, is_reached, calls[k], &err);
                heft_bytes after = heft_test_load(path);
                if (st)
                    heft_assert_same_bytes(after, model);
                heft_test_free(&after);
                unlink(heft_test_path(*state, "z"));
                assert_int_equal(heft_test_dir_entries(*state), 1);
            }
        }
    heft_test_free(&model);
}

/* ---- a journal ------------------------------------------------------------------------------ */

/* Leave the model with the journal of an edit that failed; return the journal. */
static heft_bytes leave_half_edited(const char *path, const char *journal, heft_bytes model)
{
    const heft_rename rename = { HEFT_STR("w"), HEFT_STR("v") };
    heft_edit_options o = HEFT_EDIT_OPTIONS_INIT;
    o.rename = &rename;
    o.rename_count = 1;
    for (unsigned at = 1; !heft_test_exists(journal); at++) {
        heft_error err;
        heft_test_save(path, model.p, model.len);
        heft_stop = (heft_stopping){ .failure = HEFT_FAILS_FROM, .os = EIO, .at = at };
        heft_assert_fails(heft_edit_file_on(&heft_stopping_disk, NULL, path, &o, &err), HEFT_E_IO,
                          &err, "");
    }
    return heft_test_load(journal);
}

/* The journal stays, for the next attempt. */
static void a_rollback_without_memory_changes_nothing(void **state)
{
    static const call calls[] = { MALLOC, CALLOC, STRDUP };
    char path[PATH_MAX], journal[PATH_MAX];
    heft_bytes model = heft_test_one("safetensors", 5000);
    snprintf(path, sizeof path, "%s", heft_test_path(*state, "m.safetensors"));
    snprintf(journal, sizeof journal, "%s", heft_test_path(*state, "m.safetensors.heft-journal"));
    heft_bytes noted = leave_half_edited(path, journal, model), half = heft_test_load(path);
    for (size_t i = 0; i < HEFT_COUNT(calls); i++) {
        bool is_reached = true;
        for (int at = 1; is_reached; at++) {
            bool undone;
            heft_error err;
            heft_test_save(path, half.p, half.len);
            heft_test_save(journal, noted.p, noted.len);
            plan_for(calls[i], at);
            heft_status st = heft_edit_recover(&undone, path, &err);
            is_reached = plan.calls >= at;
            plan_for(NO_CALL, 0);
            assert_lacks_memory(st, is_reached, calls[i], &err);
            heft_bytes after = heft_test_load(path);
            heft_assert_same_bytes(after, st ? half : model);
            assert_int_equal(heft_test_dir_entries(*state), st ? 2 : 1);
            heft_test_free(&after);
        }
    }
    heft_test_free(&noted);
    heft_test_free(&half);
    heft_test_free(&model);
}

/* ---- a pipeline ----------------------------------------------------------------------------- */

static void make_pipeline(const char *dir)
{
    static const char index[] = "{\"_class_name\": \"P\", \"unet\": [\"l\", \"U\"]}";
    heft_bytes model = heft_test_one("safetensors", 64);
    assert_int_equal(mkdir(heft_test_path(dir, "unet"), 0700), 0);
    heft_test_save(heft_test_path(dir, "unet/model.safetensors"), model.p, model.len);
    heft_test_save(heft_test_path(dir, "other.safetensors"), model.p, model.len);
    heft_test_save(heft_test_path(dir, "model_index.json"), index, sizeof index - 1);
    heft_test_free(&model);
}

/* A component that cannot be opened for lack of memory is not a component that is missing. */
static void a_pipeline_without_memory_is_an_error(void **state)
{
    static const call calls[] = { MALLOC, CALLOC, STRDUP, OPENAT };
    make_pipeline(*state);
    for (size_t i = 0; i < HEFT_COUNT(calls); i++) {
        bool is_reached = true;
        for (int at = 1; is_reached; at++) {
            heft_file *f;
            heft_error err;
            plan_for(calls[i], at);
            heft_status st = heft_file_open(&f, *state, NULL, &err);
            is_reached = plan.calls >= at;
            plan_for(NO_CALL, 0);
            assert_lacks_memory(st, is_reached, calls[i], &err);
            if (st)
                continue;
            heft_assert_ok(heft_file_is_complete(f, &err), &err);
            assert_int_equal(heft_tensor_find(f, HEFT_STR("unet.w")), 0);
            heft_file_close(f);
        }
    }
}

#define with_dir(fn) cmocka_unit_test_setup_teardown(fn, heft_test_dir_make, heft_test_dir_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_dir(allocations_fail_without_a_trace),
        with_dir(a_rollback_without_memory_changes_nothing),
        with_dir(a_pipeline_without_memory_is_an_error),
    };
    return cmocka_run_group_tests_name("port_memory", tests, NULL, NULL);
}
