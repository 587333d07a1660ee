/* test_replace.c - tests of heft_file_append() with `replaces`: a tensor replaces another, or
 * nothing changes, even if the program is killed, a call fails or memory runs out. */
#include <errno.h>
#include <unistd.h>

#include "interrupted_edit.h"

enum { ROWS = 300, COLUMNS = 4, OTHER_ROWS = 70 };

typedef struct scenario {
    const char *path, *dir;
    heft_bytes old, new, from; /* the file before and after, the file with the tensor */
} scenario;

static heft_status replace(const heft_disk *disk, const scenario *s, const heft_host *host,
                           heft_append_result *r, heft_error *err)
{
    heft_write_options write = HEFT_WRITE_OPTIONS_INIT;
    heft_convert_options convert = HEFT_CONVERT_OPTIONS_INIT;
    heft_append_options o = HEFT_APPEND_OPTIONS_INIT;
    heft_test_host one_thread;
    heft_file *from;
    heft_test_host_init(&one_thread, 1);
    o.convert = &convert;
    o.replaces = true;
    o.may_differ = true;
    convert.write = &write;
    write.host = host ? host : &one_thread.host;
    heft_assert_ok(heft_test_open(&from, s->from, &one_thread.host, err), err);
    heft_status st = heft_append_file_on(disk, r, s->path, from, &o, err);
    heft_file_close(from);
    return st;
}

static heft_bytes from_file(uint64_t rows)
{
    const test_tensor v = { "v", HEFT_F32, 2, { rows, COLUMNS } };
    heft_bytes b = heft_test_model("safetensors", &v, 1);
    b.p[b.len - 1] ^= 1; /* other numbers than those of the file */
    return b;
}

/* The tensor is in the middle of the file. */
static scenario begin_scenario(const char *dir, size_t kind, uint64_t rows)
{
    const test_tensor tensors[] = { { "a", HEFT_F32, 1, { 9 } },
                                    { "v", HEFT_F32, 2, { ROWS, COLUMNS } },
                                    { "z", HEFT_F32, 1, { 400 } } };
    scenario s = { .dir = dir, .path = heft_test_path(dir, "model") };
    const char *format = heft_test_editable(kind);
    heft_error err;
    memset(&heft_stop, 0, sizeof heft_stop);
    if (!format)
        return s;
    s.old = heft_test_model(format, tensors, HEFT_COUNT(tensors));
    s.from = from_file(rows);
    heft_test_save(s.path, s.old.p, s.old.len);
    heft_assert_ok(replace(&heft_system_disk, &s, NULL, NULL, &err), &err);
    s.new = heft_test_load(s.path);
    return s;
}

static void end_scenario(scenario *s)
{
    heft_test_free(&s->old);
    heft_test_free(&s->new);
    heft_test_free(&s->from);
    unlink(s->path);
    memset(&heft_stop, 0, sizeof heft_stop);
}

static void restore(const scenario *s)
{
    heft_test_save(s->path, s->old.p, s->old.len);
    memset(&heft_stop, 0, sizeof heft_stop);
}

static void assert_tensor(const heft_file *f, const heft_file *from, const char *name)
{
    uint32_t a = heft_tensor_find(f, heft_str_from(name)),
             b = heft_tensor_find(from, heft_str_from(name));
    uint8_t got[ROWS * COLUMNS * 4], expected[sizeof got];
    heft_error err;
    assert_true(a != HEFT_NONE && b != HEFT_NONE);
    size_t len = (size_t)heft_tensor_bytes(from, b);
    assert_int_equal(heft_tensor_bytes(f, a), len);
    heft_assert_ok(heft_part_read(got, f, heft_tensor_at(f, a).first_part, 0, len, &err), &err);
    heft_assert_ok(heft_part_read(expected, from, heft_tensor_at(from, b).first_part, 0, len, &err),
                   &err);
    assert_memory_equal(got, expected, len);
}

static void the_tensor_changes_and_no_other(void **state)
{
    const uint64_t rows[] = { ROWS, OTHER_ROWS };
    scenario s;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++)
        for (size_t kind = 0; (s = begin_scenario(*state, kind, rows[i])).old.p; kind++) {
            heft_file *f, *original, *from;
            heft_verify_result found;
            heft_error err;
            heft_assert_ok(heft_file_open(&f, s.path, NULL, &err), &err);
            heft_assert_ok(heft_test_open(&original, s.old, NULL, &err), &err);
            heft_assert_ok(heft_test_open(&from, s.from, NULL, &err), &err);
            assert_int_equal(heft_tensor_count(f), 3);
            assert_tensor(f, from, "v");
            assert_tensor(f, original, "a");
            assert_tensor(f, original, "z");
            heft_assert_ok(heft_file_verify(&found, f, NULL, &err), &err);
            assert_int_equal(found.faults + found.warnings, 0);
            assert_int_equal(heft_test_dir_entries(*state), 1);
            heft_file_close(from);
            heft_file_close(original);
            heft_file_close(f);
            end_scenario(&s);
        }
}

/* A tensor of as many bytes lies where the old one lay, in every format. */
static void equal_bytes_are_written_in_place(void **state)
{
    scenario s;
    for (size_t kind = 0; (s = begin_scenario(*state, kind, ROWS)).old.p; kind++) {
        heft_append_result r;
        heft_error err;
        restore(&s);
        heft_assert_ok(replace(&heft_system_disk, &s, NULL, &r, &err), &err);
        assert_int_equal(r.tensors, 1);
        assert_true(r.edit.in_place && r.edit.changed);
        end_scenario(&s);
    }
}

static heft_status do_replace(const heft_disk *disk, void *ctx, heft_error *err)
{
    return replace(disk, ctx, NULL, NULL, err);
}

static heft_interrupted_edit edit_of(scenario *s)
{
    return (heft_interrupted_edit){ s->path, s->dir, s->old, s->new, do_replace, s, false };
}

static void a_kill_leaves_the_old_or_the_new_file(void **state)
{
    scenario s;
    for (size_t i = 0; i < 2; i++)
        for (size_t kind = 0; (s = begin_scenario(*state, kind, i ? OTHER_ROWS : ROWS)).old.p;
             kind++) {
            heft_interrupted_edit e = edit_of(&s);
            heft_test_kill_edit(&e, HEFT_KILLED, 4);
            heft_test_kill_edit(&e, HEFT_TORN, 4);
            end_scenario(&s);
        }
}

static void a_failing_call_leaves_the_old_or_the_new_file(void **state)
{
    scenario s;
    for (size_t i = 0; i < 2; i++)
        for (size_t kind = 0; (s = begin_scenario(*state, kind, i ? OTHER_ROWS : ROWS)).old.p;
             kind++) {
            heft_interrupted_edit e = edit_of(&s);
            heft_test_fail_edit(&e, HEFT_FAILS_ONCE, ENOSPC);
            heft_test_fail_edit(&e, HEFT_FAILS_FROM, EIO);
            end_scenario(&s);
        }
}

static void running_out_of_memory_leaves_the_file_unchanged(void **state)
{
    scenario s;
    for (size_t i = 0; i < 2; i++)
        for (size_t kind = 0; (s = begin_scenario(*state, kind, i ? OTHER_ROWS : ROWS)).old.p;
             kind++) {
            heft_status st = HEFT_E_NOMEM;
            for (uint32_t n = 1; st; n++) {
                heft_test_memory m;
                heft_error err;
                restore(&s);
                heft_test_memory_init(&m, n);
                st = replace(&heft_system_disk, &s, &m.host, NULL, &err);
                if (st)
                    heft_assert_status(st, HEFT_E_NOMEM, &err);
                heft_assert_all_freed(&m);
                assert_true(heft_test_file_is(s.path, st ? s.old : s.new));
            }
            end_scenario(&s);
        }
}

#define in_dir(test) cmocka_unit_test_setup_teardown(test, heft_test_dir_make, heft_test_dir_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        in_dir(the_tensor_changes_and_no_other),
        in_dir(equal_bytes_are_written_in_place),
        in_dir(a_kill_leaves_the_old_or_the_new_file),
        in_dir(a_failing_call_leaves_the_old_or_the_new_file),
        in_dir(running_out_of_memory_leaves_the_file_unchanged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
