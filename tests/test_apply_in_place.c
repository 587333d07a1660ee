/* test_apply_in_place.c - tests that a delta changes a file, or nothing, even if the program is
 * killed, a call fails, or the file is cut while its bytes change. */
#include <errno.h>
#include <unistd.h>

#include <heft/delta.h>

#include "interrupted_edit.h"
#include "local/apply_in_place.h"

enum { BLOCK = 65536, UNITS = 9 * BLOCK }; /* The tensor has more than 1 MiB. */

typedef struct scenario {
    const char *path, *dir;
    heft_bytes old, new, delta;
    heft_test_host host;
    heft_file *file; /* has the delta */
    heft_delta *d;
} scenario;

static heft_bytes make_delta(const scenario *s)
{
    heft_test_sink sink;
    heft_file *old, *new;
    heft_delta_sums sums;
    heft_error err;
    heft_assert_ok(heft_test_open(&old, s->old, NULL, &err), &err);
    heft_assert_ok(heft_test_open(&new, s->new, NULL, &err), &err);
    heft_assert_ok(heft_delta_make(&sums, old, new, heft_test_sink_init(&sink, false), NULL, &err),
                   &err);
    assert_int_equal(sums.tensors[HEFT_CHANGE_SPARSE], 2);
    assert_int_equal(sums.tensors[HEFT_CHANGE_XOR], 1);
    heft_file_close(new);
    heft_file_close(old);
    heft_bytes b = heft_test_copy(sink.p, sink.len);
    heft_test_sink_free(&sink);
    return b;
}

/* Change bytes throughout the first tensor, a byte of the second, and all of the third. */
static void change(scenario *s)
{
    heft_file *f;
    heft_error err;
    heft_assert_ok(heft_test_open(&f, s->old, NULL, &err), &err);
    for (uint32_t i = 0; i < 3; i++) {
        heft_part part = heft_part_at(f, heft_tensor_at(f, i).first_part);
        uint8_t *p = s->new.p + part.offset;
        for (size_t at = 0; i == 0 && at < part.length; at += 50000)
            p[at] ^= 1;
        p[part.length - 1] ^= 1;
        for (size_t at = 0; i == 2 && at + 1 < part.length; at++)
            p[at] ^= 1;
    }
    heft_file_close(f);
}

static void begin_scenario(scenario *s, const char *dir)
{
    const test_tensor tensors[] = { { "a", HEFT_BF16, 2, { 9, BLOCK } },
                                    { "b", HEFT_F32, 1, { 4000 } },
                                    { "c", HEFT_F32, 1, { 300 } } };
    heft_error err;
    *s = (scenario){ .dir = dir, .path = heft_test_path(dir, "model") };
    heft_test_host_init(&s->host, 1);
    s->old = heft_test_model("safetensors", tensors, HEFT_COUNT(tensors));
    s->new = heft_test_copy(s->old.p, s->old.len);
    change(s);
    s->delta = make_delta(s);
    heft_assert_ok(heft_test_open(&s->file, s->delta, &s->host.host, &err), &err);
    heft_assert_ok(heft_delta_open(&s->d, s->file, &err), &err);
    memset(&heft_stop, 0, sizeof heft_stop);
}

static void end_scenario(scenario *s)
{
    heft_delta_close(s->d);
    heft_file_close(s->file);
    heft_test_free(&s->old);
    heft_test_free(&s->new);
    heft_test_free(&s->delta);
    memset(&heft_stop, 0, sizeof heft_stop);
}

static void restore(const scenario *s)
{
    heft_test_save(s->path, s->old.p, s->old.len);
    memset(&heft_stop, 0, sizeof heft_stop);
}

static heft_status apply(const heft_disk *disk, const scenario *s, heft_error *err)
{
    return heft_apply_in_place_on(disk, NULL, s->path, s->d, NULL, err);
}

/* ---- interruptions ---- */

static heft_status do_apply(const heft_disk *disk, void *ctx, heft_error *err)
{
    return apply(disk, ctx, err);
}

static heft_interrupted_edit edit_of(scenario *s)
{
    return (heft_interrupted_edit){ s->path, s->dir, s->old, s->new, do_apply, s, true };
}

static void a_kill_leaves_the_old_or_the_new_file(void **state)
{
    scenario s;
    begin_scenario(&s, *state);
    heft_interrupted_edit e = edit_of(&s);
    heft_test_kill_edit(&e, HEFT_KILLED, 6);
    heft_test_kill_edit(&e, HEFT_TORN, 6);
    end_scenario(&s);
}

static void a_failing_call_leaves_the_old_or_the_new_file(void **state)
{
    scenario s;
    begin_scenario(&s, *state);
    heft_interrupted_edit e = edit_of(&s);
    heft_test_fail_edit(&e, HEFT_FAILS_ONCE, ENOSPC);
    heft_test_fail_edit(&e, HEFT_FAILS_FROM, EIO);
    end_scenario(&s);
}

static ino_t changed_file;

static void restore_and_mark(const scenario *s)
{
    struct stat info;
    restore(s);
    assert_false(stat(s->path, &info));
    changed_file = info.st_ino;
}

/* ---- a full disk, where the file has ranges without blocks ---- */

static ssize_t write_if_blocks(int fd, const void *data, size_t len, off_t at)
{
    struct stat info;
    if (fstat(fd, &info) || info.st_ino != changed_file)
        return heft_system_disk.write(fd, data, len, at);
    errno = ENOSPC;
    return -1;
}

static void a_full_disk_leaves_the_file_and_no_journal(void **state)
{
    heft_disk disk = heft_system_disk;
    scenario s;
    heft_error err;
    begin_scenario(&s, *state);
    disk.write = write_if_blocks;
    restore_and_mark(&s);
    heft_assert_fails(apply(&disk, &s, &err), HEFT_E_IO, &err, "writing failed");
    assert_null(strstr(err.message, "undoing"));
    assert_true(heft_test_file_is(s.path, s.old));
    assert_int_equal(heft_test_dir_entries(s.dir), 1);
    end_scenario(&s);
}

/* ---- a file that another program cuts ---- */

static ssize_t write_and_cut(int fd, const void *data, size_t len, off_t at)
{
    struct stat info;
    ssize_t done = heft_system_disk.write(fd, data, len, at);
    bool is_model = !fstat(fd, &info) && info.st_ino == changed_file;
    return is_model && ftruncate(fd, at) ? -1 : done;
}

static void a_file_that_is_cut_meanwhile_is_an_error(void **state)
{
    heft_disk disk = heft_system_disk;
    scenario s;
    heft_error err;
    begin_scenario(&s, *state);
    disk.write = write_and_cut;
    restore_and_mark(&s);
    heft_assert_fails(apply(&disk, &s, &err), HEFT_E_IO, &err, "reading failed");
    assert_false(access(heft_test_path(s.dir, "model.heft-journal"), F_OK));
    end_scenario(&s);
}

#define in_dir(test) cmocka_unit_test_setup_teardown(test, heft_test_dir_make, heft_test_dir_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        in_dir(a_file_that_is_cut_meanwhile_is_an_error),
        in_dir(a_kill_leaves_the_old_or_the_new_file),
        in_dir(a_failing_call_leaves_the_old_or_the_new_file),
        in_dir(a_full_disk_leaves_the_file_and_no_journal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
