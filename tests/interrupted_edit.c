#include "interrupted_edit.h"

static void let_succeed(void)
{
    memset(&heft_stop, 0, sizeof heft_stop);
}

void heft_test_restore(const heft_interrupted_edit *e)
{
    heft_test_save(e->path, e->old.p, e->old.len);
    let_succeed();
}

/* Return whether the file is the new one; otherwise it is the old one. */
static bool recover(const heft_interrupted_edit *e)
{
    heft_error err;
    bool rolled_back;
    heft_assert_ok(heft_edit_recover_on(&heft_system_disk, &rolled_back, e->path, &err), &err);
    bool is_new = heft_test_file_is(e->path, e->new);
    assert_true(is_new ? !rolled_back : heft_test_file_is(e->path, e->old));
    return is_new;
}

static heft_status edit_and_stop(void *ctx)
{
    const heft_interrupted_edit *e = ctx;
    heft_error err;
    return e->edit(&heft_stopping_disk, e->ctx, &err);
}

void heft_test_kill_edit(const heft_interrupted_edit *e, heft_disk_failure failure, unsigned least)
{
    heft_interrupted_edit edit = *e;
    unsigned n = 1;
    for (unsigned survived = 0; survived < 3 && n < 200; n++) {
        heft_error err;
        heft_test_restore(e);
        bool killed = heft_test_is_killed(failure, n, edit_and_stop, &edit);
        let_succeed();
        if (recover(e) && e->is_once)
            heft_test_restore(e);
        heft_assert_ok(e->edit(&heft_system_disk, e->ctx, &err), &err);
        assert_true(heft_test_file_is(e->path, e->new));
        assert_int_equal(heft_test_dir_entries(e->dir), 1);
        survived = killed ? 0 : survived + 1; /* only a write can be torn; other calls survive */
    }
    assert_true(n > least && n < 200);
}

void heft_test_fail_edit(const heft_interrupted_edit *e, heft_disk_failure failure, int os)
{
    bool reached = true;
    for (unsigned n = 1; reached; n++) {
        heft_error err;
        heft_test_restore(e);
        heft_stop.failure = failure;
        heft_stop.at = n;
        heft_stop.os = os;
        heft_status st = e->edit(&heft_stopping_disk, e->ctx, &err);
        reached = heft_stop.calls >= n;
        let_succeed();
        if (st)
            heft_assert_status(st, HEFT_E_IO, &err);
        assert_true(recover(e) || st);
    }
}
