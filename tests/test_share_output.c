/* test_share_output.c - outputs and folders of shares that heft_share_convert() refuses. */
#include "models.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <heft/private.h>
#include <heft/share.h>

#include "local/share_store.h"

typedef struct fixture {
    const char *dir;
    char *out, *plan, *folder;
    heft_bytes model;
    heft_file *in;
    heft_error err;
} fixture;

static void begin(fixture *x, const char *dir)
{
    x->dir = dir;
    x->out = strdup(heft_test_path(dir, "out.mag"));
    x->plan = strdup(heft_test_path(dir, "out.mag.shares/plan"));
    x->folder = strdup(heft_test_path(dir, "out.mag.shares"));
    assert_true(x->out && x->plan && x->folder);
    x->model = heft_test_one("safetensors", 100);
    heft_assert_ok(heft_test_open(&x->in, x->model, NULL, &x->err), &x->err);
}

static void end(fixture *x)
{
    heft_file_close(x->in);
    heft_test_free(&x->model);
    free(x->out);
    free(x->plan);
    free(x->folder);
}

static heft_status convert(fixture *x, const char *out, heft_share share, uint32_t flags)
{
    heft_share_result result;
    const heft_format *mag = heft_format_find(HEFT_STR("mag"));
    return heft_share_convert(&result, x->in, mag, out, share, flags, NULL, &x->err);
}

static void arguments_are_refused(void **state)
{
    static const heft_share missing[] = { { 0, 2 }, { 3, 2 }, { 1, 0 }, { 0, 0 } };
    const heft_share first = { 1, 2 };
    fixture x;
    begin(&x, *state);
    for (size_t i = 0; i < HEFT_COUNT(missing); i++)
        heft_assert_fails(convert(&x, x.out, missing[i], 0), HEFT_E_ARGUMENT, &x.err,
                          "there is no share");
    heft_assert_fails(convert(&x, NULL, first, 0), HEFT_E_ARGUMENT, &x.err,
                      "the path to write to is missing");
    heft_assert_fails(convert(&x, x.out, first, HEFT_SINK_SYNC | HEFT_SINK_NO_SYNC),
                      HEFT_E_ARGUMENT, &x.err, "exclude each other");
    heft_assert_fails(heft_share_abort(NULL, &x.err), HEFT_E_ARGUMENT, &x.err, "is missing");
    heft_assert_fails(heft_share_abort(x.out, &x.err), HEFT_E_NOTFOUND, &x.err, "no shares");
    assert_int_equal(heft_test_dir_entries(x.dir), 0);
    end(&x);
}

static void outputs_of_other_kinds_are_refused(void **state)
{
    const heft_share first = { 1, 2 };
    fixture x;
    begin(&x, *state);
    heft_assert_fails(convert(&x, x.dir, first, HEFT_SINK_REPLACE), HEFT_E_IO, &x.err,
                      "cannot be created");
    assert_int_equal(mkfifo(x.out, 0600), 0);
    heft_assert_fails(convert(&x, x.out, first, HEFT_SINK_REPLACE), HEFT_E_ARGUMENT, &x.err,
                      "a regular file as the output");
    assert_int_equal(unlink(x.out), 0);
    heft_test_save(x.out, "old", 3);
    heft_assert_fails(convert(&x, x.out, first, 0), HEFT_E_ARGUMENT, &x.err, "exists");
    assert_int_equal(heft_test_dir_entries(x.dir), 1);
    heft_assert_ok(convert(&x, x.out, first, HEFT_SINK_REPLACE), &x.err);
    end(&x);
}

static void make_fifo(const char *plan)
{
    assert_int_equal(mkfifo(plan, 0600), 0);
}

static void make_folder(const char *plan)
{
    assert_int_equal(mkdir(plan, 0700), 0);
}

static void make_too_long(const char *plan)
{
    heft_test_save(plan, "", 0);
    assert_int_equal(truncate(plan, (off_t)HEFT_SHARE_MAX_RECORD + 1), 0);
}

static void make_link(const char *plan)
{
    assert_int_equal(symlink("/etc/hostname", plan), 0);
}

static void make_text(const char *plan)
{
    heft_test_save(plan, "something else\n", 15);
}

static void remove_folder(const char *folder)
{
    static const char *const names[] = { "plan", "data", "share-00001-of-2" };
    for (size_t i = 0; i < HEFT_COUNT(names); i++)
        assert_int_equal(remove(heft_test_path(folder, names[i])), 0);
    assert_int_equal(rmdir(folder), 0);
}

/* Without a readable plan the folder may be the user's: nothing is written or removed. */
static void plans_of_other_kinds_are_refused(void **state)
{
    static const struct {
        void (*make)(const char *plan);
        heft_status st;
        const char *words;
    } plans[] = {
        { make_fifo, HEFT_E_ARGUMENT, "plan is no record of a share" },
        { make_too_long, HEFT_E_ARGUMENT, "plan is no record of a share" },
        { make_text, HEFT_E_ARGUMENT, "the plan of its shares is damaged" },
        { make_link, HEFT_E_IO, "a record of a share cannot be opened" },
        { make_folder, HEFT_E_ARGUMENT, "plan is no record of a share" },
    };
    fixture x;
    begin(&x, *state);
    for (size_t i = 0; i < HEFT_COUNT(plans); i++) {
        assert_int_equal(heft_test_dir_entries(x.dir), 0);
        heft_assert_ok(convert(&x, x.out, (heft_share){ 1, 2 }, 0), &x.err);
        assert_int_equal(unlink(x.plan), 0);
        plans[i].make(x.plan);
        heft_assert_fails(convert(&x, x.out, (heft_share){ 2, 2 }, 0), plans[i].st, &x.err,
                          plans[i].words);
        assert_false(heft_test_exists(x.out));
        heft_assert_fails(heft_share_abort(x.out, &x.err), HEFT_E_IO, &x.err,
                          plans[i].st == HEFT_E_IO ? "cannot be opened"
                                                   : "remove the folder yourself");
        assert_int_equal(heft_test_dir_entries(x.folder), 3);
        remove_folder(x.folder);
    }
    end(&x);
}

/* ---- what happens while a share is written -------------------------------------------------- */

static bool save_output(void *ctx, uint64_t done, uint64_t total)
{
    (void)done;
    (void)total;
    heft_test_save(ctx, "other", 5);
    return true;
}

static void an_output_that_appears_is_kept(void **state)
{
    heft_convert_options opt = HEFT_CONVERT_OPTIONS_INIT;
    fixture x;
    begin(&x, *state);
    opt.progress = save_output;
    opt.ctx = x.out;
    heft_status st = heft_share_convert(NULL, x.in, heft_format_find(HEFT_STR("mag")), x.out,
                                        (heft_share){ 1, 1 }, 0, &opt, &x.err);
    heft_assert_fails(st, HEFT_E_ARGUMENT, &x.err, "already exists and was left as it is");
    heft_bytes after = heft_test_load(x.out);
    heft_assert_same_bytes(after, (heft_bytes){ (uint8_t *)"other", 5 });
    heft_test_free(&after);
    end(&x);
}

typedef struct lost_source { /* the payload is gone when the other processes have completed */
    heft_source base;
    const fixture *x;
} lost_source;

static heft_status lost_read(heft_source *s, uint64_t off, void *buf, size_t len, heft_error *err)
{
    const fixture *x = ((lost_source *)s)->x;
    memcpy(buf, x->model.p + off, len);
    if (rename(heft_test_path(x->folder, "data"), x->out))
        return HEFT_OK;
    *err = (heft_error){ .status = HEFT_E_NOTFOUND, .message = "the input is gone" };
    return HEFT_E_NOTFOUND;
}

static void lost_close(heft_source *s)
{
    (void)s;
}

/* The output is complete, but the share did not read the input. */
static void an_input_that_is_gone_is_an_error(void **state)
{
    static const heft_source_ops ops = { .size = sizeof ops,
                                         .read = lost_read,
                                         .close = lost_close };
    heft_share_result result;
    heft_hash id;
    fixture x;
    begin(&x, *state);
    lost_source lost = { { &ops, x.model.len }, &x };
    heft_file_close(x.in);
    heft_assert_ok(heft_file_open_source(&x.in, &lost.base, NULL, &x.err), &x.err);
    assert_int_equal(mkdir(x.folder, 0700), 0);
    heft_test_save(heft_test_path(x.folder, "data"), "x", 1);
    heft_assert_fails(heft_share_file_id(&id, x.in, &x.err), HEFT_E_NOTFOUND, &x.err,
                      "the input is gone");
    assert_int_equal(unlink(x.out), 0);
    heft_status st = heft_share_convert(&result, x.in, heft_format_find(HEFT_STR("mag")), x.out,
                                        (heft_share){ 1, 2 }, 0, NULL, &x.err);
    heft_assert_fails(st, HEFT_E_NOTFOUND, &x.err, "the input is gone");
    assert_int_not_equal(x.err.about, HEFT_ABOUT_TARGET);
    end(&x);
}

/* The rank 2 of 2 is past the end, because ranks count from 0. */
static void ranks_of_engines_are_checked(void **state)
{
    heft_share share;
    heft_error err;
    (void)state;
    unsetenv("OMPI_COMM_WORLD_RANK");
    setenv("PMI_SIZE", "2", 1);
    setenv("PMI_RANK", "1", 1);
    heft_assert_ok(heft_share_find(&share, "auto", &err), &err);
    assert_true(share.number == 2 && share.count == 2);
    setenv("PMI_RANK", "2", 1);
    heft_assert_fails(heft_share_find(&share, "auto", &err), HEFT_E_ARGUMENT, &err,
                      "PMI_RANK=2 and PMI_SIZE=2, the variables of");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, heft_test_dir_make, heft_test_dir_remove)
    const struct CMUnitTest tests[] = {
        TEST(arguments_are_refused),
        TEST(outputs_of_other_kinds_are_refused),
        TEST(plans_of_other_kinds_are_refused),
        TEST(an_output_that_appears_is_kept),
        TEST(an_input_that_is_gone_is_an_error),
        TEST(ranks_of_engines_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
