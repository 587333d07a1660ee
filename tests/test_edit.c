/* test_edit.c - tests that an edit is complete or has no effect if the program is killed at any
 * system call or any system call fails. */
#include "models.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stopping_disk.h"

/* ---- edits ---------------------------------------------------------------------------------- */

enum { DATA = 5000 };

static const char long_name[] =
    "a name that is so much longer than what there was that many a header has "
    "no room for it and all of the data has to move, which in some of the "
    "formats takes more than two hundred and fifty-six bytes, so that this "
    "name goes on for a little while longer than anyone would like it to";

/* Return true if the format stores the name of the tensor, "w". */
static bool has_name(heft_bytes b)
{
    heft_file *f;
    heft_error err;
    heft_assert_ok(heft_test_open(&f, b, NULL, &err), &err);
    bool found = heft_tensor_find(f, HEFT_STR("w")) != HEFT_NONE;
    heft_file_close(f);
    return found;
}

static heft_status edit(const char *path, const char *to, heft_edit_result *r, heft_error *err)
{
    heft_rename rename = { heft_test_str("w"), heft_test_str(to) };
    heft_edit_options o = HEFT_EDIT_OPTIONS_INIT;
    heft_test_host host;
    heft_test_host_init(&host, 1);
    o.host = &host.host;
    o.rename = &rename;
    o.rename_count = 1;
    return heft_edit_file_on(&heft_stopping_disk, r, path, &o, err);
}

static heft_bytes edited(const char *path, heft_bytes old, const char *to)
{
    heft_error err;
    memset(&heft_stop, 0, sizeof heft_stop);
    heft_test_save(path, old.p, old.len);
    heft_assert_ok(edit(path, to, NULL, &err), &err);
    return heft_test_load(path);
}

static bool has_journal(const char *path)
{
    char name[4096];
    snprintf(name, sizeof name, "%s.heft-journal", path);
    return heft_test_exists(name);
}

typedef struct task {
    const char *path, *to; /* to: the new name; NULL: recover */
} task;

static heft_status do_task(void *ctx)
{
    const task *t = ctx;
    heft_error err;
    bool rolled_back;
    return t->to ? edit(t->path, t->to, NULL, &err)
                 : heft_edit_recover_on(&heft_stopping_disk, &rolled_back, t->path, &err);
}

static bool is_killed(heft_disk_failure failure, unsigned at, const char *path, const char *to)
{
    return heft_test_is_killed(failure, at, do_task, &(task){ path, to });
}

/* Assert that recovery gives the old or the new file, and that an edit of the old file then
 * works. */
static void assert_recovered(const char *dir, const char *path, heft_bytes old, heft_bytes new,
                             const char *to)
{
    heft_error err;
    bool rolled_back;
    heft_file *f;
    memset(&heft_stop, 0, sizeof heft_stop);
    if (has_journal(path))
        heft_assert_fails(heft_file_open(&f, path, NULL, &err), HEFT_E_IO, &err, "journal");
    heft_assert_ok(heft_edit_recover_on(&heft_stopping_disk, &rolled_back, path, &err), &err);
    if (heft_test_file_is(path, new)) {
        assert_false(rolled_back);
        assert_int_equal(heft_test_dir_entries(dir), 1);
        return;
    }
    assert_true(heft_test_file_is(path, old));
    heft_assert_ok(edit(path, to, NULL, &err), &err);
    assert_true(heft_test_file_is(path, new));
    assert_int_equal(heft_test_dir_entries(dir), 1);
}

static void kill_everywhere(const char *dir, const char *format, const char *to,
                            heft_disk_failure failure, bool no_copy)
{
    const char *path = heft_test_path(dir, "model");
    heft_bytes old = heft_test_one(format, DATA);
    if (has_name(old)) {
        heft_bytes new = edited(path, old, to);
        unsigned n = 0;
        for (unsigned survived = 0; survived < 20;) {
            heft_test_save(path, old.p, old.len);
            memset(&heft_stop, 0, sizeof heft_stop);
            heft_stop.no_copy = no_copy;
            survived = is_killed(failure, ++n, path, to) ? 0 : survived + 1;
            assert_recovered(dir, path, old, new, to);
        }
        assert_true(n > 22); /* killed at three or more calls */
        heft_test_free(&new);
    }
    heft_test_free(&old);
    unlink(path);
}

static void a_killed_edit_is_rolled_back_or_complete(void **state)
{
    const char *format;
    for (size_t i = 0; (format = heft_test_editable(i)); i++) {
        kill_everywhere(*state, format, "v", HEFT_KILLED, false);
        kill_everywhere(*state, format, long_name, HEFT_KILLED, false);
        kill_everywhere(*state, format, long_name, HEFT_KILLED, true);
    }
}

static void a_torn_write_is_rolled_back(void **state)
{
    const char *format;
    for (size_t i = 0; (format = heft_test_editable(i)); i++) {
        kill_everywhere(*state, format, "v", HEFT_TORN, false);
        kill_everywhere(*state, format, long_name, HEFT_TORN, true);
    }
}

/* ---- recovery ------------------------------------------------------------------------------- */

/* Leave a partly edited file with a journal. */
static void leave_half_edited(const char *path, heft_bytes old, const char *to)
{
    unsigned n = 1;
    do {
        heft_test_save(path, old.p, old.len);
        memset(&heft_stop, 0, sizeof heft_stop);
        (void)is_killed(HEFT_TORN, n++, path, to);
    } while (!has_journal(path) || heft_test_file_is(path, old));
}

static void a_killed_recovery_can_be_repeated(void **state)
{
    const char *path = heft_test_path(*state, "model");
    heft_bytes old = heft_test_one("ztensor", DATA);
    heft_error err;
    bool rolled_back, killed = true;
    for (unsigned n = 1; killed; n++)
        for (heft_disk_failure failure = HEFT_KILLED; failure <= HEFT_TORN; failure++) {
            leave_half_edited(path, old, "a longer name");
            bool is_dead = is_killed(failure, n, path, NULL);
            killed = failure == HEFT_KILLED ? is_dead : killed;
            heft_assert_ok(heft_edit_recover_on(&heft_stopping_disk, &rolled_back, path, &err),
                           &err);
            assert_true(heft_test_file_is(path, old));
            assert_int_equal(heft_test_dir_entries(*state), 1);
        }
    heft_test_free(&old);
}

static void an_edit_first_rolls_back_an_interrupted_edit(void **state)
{
    const char *path = heft_test_path(*state, "model");
    heft_bytes old = heft_test_one("safetensors", DATA);
    heft_bytes expected = edited(path, old, "u");
    heft_edit_result r;
    heft_error err;
    leave_half_edited(path, old, "v");
    heft_assert_ok(edit(path, "u", &r, &err), &err);
    assert_true(r.rolled_back);
    assert_true(r.in_place);
    assert_true(heft_test_file_is(path, expected));
    assert_int_equal(heft_test_dir_entries(*state), 1);
    heft_test_free(&expected);
    heft_test_free(&old);
}

static void a_dry_run_does_not_roll_back(void **state)
{
    const char *path = heft_test_path(*state, "model");
    heft_bytes old = heft_test_one("safetensors", DATA);
    heft_edit_options o = HEFT_EDIT_OPTIONS_INIT;
    heft_error err;
    o.dry_run = true;
    leave_half_edited(path, old, "v");
    heft_assert_fails(heft_file_edit(NULL, path, &o, &err), HEFT_E_IO, &err, "journal");
    assert_true(has_journal(path));
    heft_test_free(&old);
}

/* ---- invalid journals ------------------------------------------------------------------------ */

static void assert_refused(const char *path, const char *message)
{
    heft_bytes before = heft_test_load(path);
    heft_edit_result r;
    heft_error err;
    bool rolled_back;
    heft_status st = heft_edit_recover_on(&heft_stopping_disk, &rolled_back, path, &err);
    assert_true(st == HEFT_E_FORMAT || st == HEFT_E_UNSUPPORTED);
    if (message && !strstr(err.message, message))
        fail_msg("\"%s\" is not \"...%s...\"", err.message, message);
    assert_true(edit(path, "v", &r, &err) == st);
    assert_true(heft_test_file_is(path, before));
    assert_true(has_journal(path));
    heft_test_free(&before);
}

static void a_damaged_journal_is_refused(void **state)
{
    const char *path = heft_test_path(*state, "model");
    const char *journal_path = heft_test_path(*state, "model.heft-journal");
    heft_bytes old = heft_test_one("mag", 64), journal;
    leave_half_edited(path, old, "v");
    journal = heft_test_load(journal_path);
    for (size_t i = 0; i < journal.len; i++) {
        journal.p[i] ^= 1;
        heft_test_save(journal_path, journal.p, journal.len);
        journal.p[i] ^= 1;
        assert_refused(path, "is damaged");
        heft_test_save(journal_path, journal.p, i);
        assert_refused(path, "is damaged");
    }
    heft_test_free(&journal);
    heft_test_free(&old);
}

static void a_foreign_journal_is_refused(void **state)
{
    const char *path = heft_test_path(*state, "model"), *other = heft_test_path(*state, "other");
    const char *journal_path = heft_test_path(*state, "model.heft-journal");
    const char *other_journal_path = heft_test_path(*state, "other.heft-journal");
    heft_bytes old = heft_test_one("mag", 64), larger = heft_test_one("mag", 128);
    leave_half_edited(path, old, "v");
    assert_int_equal(rename(journal_path, other_journal_path), 0);
    heft_test_save(other, larger.p, larger.len); /* another size */
    assert_refused(other, "belongs to another file");
    heft_bytes half_edited = heft_test_load(path);
    half_edited.p[half_edited.len - 1] ^= 1; /* other data */
    heft_test_save(other, half_edited.p, half_edited.len);
    assert_refused(other, "belongs to another file");
    half_edited.p[half_edited.len - 1] ^= 1;
    for (size_t i = 0; i < half_edited.len; i++) /* another header: change the first edited byte */
        if (half_edited.p[i] != old.p[i]) {
            half_edited.p[i] = 0x55;
            break;
        }
    heft_test_save(other, half_edited.p, half_edited.len);
    assert_refused(other, "belongs to another file");
    heft_test_free(&half_edited);
    heft_test_free(&larger);
    heft_test_free(&old);
}

/* ---- calls that fail ------------------------------------------------------------------------ */

static void fail_everywhere(const char *dir, const char *format, const char *to,
                            heft_disk_failure failure, int os)
{
    const char *path = heft_test_path(dir, "model");
    heft_bytes old = heft_test_one(format, DATA);
    heft_bytes new = has_name(old) ? edited(path, old, to) : (heft_bytes){ NULL, 0 };
    heft_error err;
    for (unsigned n = 1; new.p; n++) {
        bool rolled_back;
        heft_test_save(path, old.p, old.len);
        memset(&heft_stop, 0, sizeof heft_stop);
        heft_stop.failure = failure;
        heft_stop.at = n;
        heft_stop.os = os;
        heft_status st = edit(path, to, NULL, &err);
        bool was_reached = heft_stop.calls >= n;
        memset(&heft_stop, 0, sizeof heft_stop);
        if (st)
            heft_assert_status(st, HEFT_E_IO, &err);
        heft_assert_ok(heft_edit_recover_on(&heft_stopping_disk, &rolled_back, path, &err), &err);
        assert_true(heft_test_file_is(path, old) || heft_test_file_is(path, new));
        assert_true(st || heft_test_file_is(path, new));
        if (!was_reached)
            break;
    }
    heft_test_free(&new);
    heft_test_free(&old);
    unlink(path);
}

static void a_failing_call_leaves_the_old_or_the_new_file(void **state)
{
    const char *format;
    for (size_t i = 0; (format = heft_test_editable(i)); i++) {
        fail_everywhere(*state, format, "v", HEFT_FAILS_ONCE, ENOSPC);
        fail_everywhere(*state, format, long_name, HEFT_FAILS_ONCE, ENOSPC);
        fail_everywhere(*state, format, "v", HEFT_FAILS_FROM, EIO);
        fail_everywhere(*state, format, long_name, HEFT_FAILS_FROM, EIO);
    }
}

static void an_edit_on_a_full_disk_leaves_no_temporary_file(void **state)
{
    const char *path = heft_test_path(*state, "model");
    heft_bytes old = heft_test_one("safetensors", DATA);
    heft_error err;
    bool has_failed = false;
    for (unsigned n = 1; n < 8; n++) {
        heft_test_save(path, old.p, old.len);
        memset(&heft_stop, 0, sizeof heft_stop);
        heft_stop.failure = HEFT_FAILS_ONCE;
        heft_stop.at = n;
        heft_stop.os = ENOSPC;
        has_failed |= edit(path, "v", NULL, &err) == HEFT_E_IO;
        if (!heft_test_exists(heft_test_path(*state, "model.heft-journal")))
            assert_int_equal(heft_test_dir_entries(*state), 1);
    }
    assert_true(has_failed);
    heft_test_free(&old);
}

static void a_file_changed_by_another_program_is_not_edited(void **state)
{
    const char *path = heft_test_path(*state, "model");
    heft_bytes old = heft_test_one("mag", 64), after;
    const char *const names[] = { "v", long_name };
    heft_error err;
    for (size_t i = 0; i < HEFT_COUNT(names); i++) {
        heft_test_save(path, old.p, old.len);
        memset(&heft_stop, 0, sizeof heft_stop);
        heft_stop.touch = path;
        heft_assert_fails(edit(path, names[i], NULL, &err), HEFT_E_IO, &err, "in the meantime");
        after = heft_test_load(path);
        assert_int_equal(after.len, old.len + 1);
        assert_memory_equal(after.p, old.p, old.len);
        assert_int_equal(heft_test_dir_entries(*state), 1);
        heft_test_free(&after);
    }
    heft_test_free(&old);
}

/* ---- permissions, links, locks, names ------------------------------------------------------- */

static void mode_links_and_locks_are_respected(void **state)
{
    const char *path = heft_test_path(*state, "model"), *link_path = heft_test_path(*state, "link");
    const char *hard = heft_test_path(*state, "hard");
    heft_bytes old = heft_test_one("safetensors", 64);
    heft_edit_result r;
    heft_error err;
    struct stat info;
    memset(&heft_stop, 0, sizeof heft_stop);
    heft_test_save(path, old.p, old.len);
    assert_int_equal(chmod(path, 0640), 0);
    assert_int_equal(symlink("model", link_path), 0);
    assert_int_equal(link(path, hard), 0);
    heft_assert_ok(edit(link_path, long_name, &r, &err), &err);
    assert_false(r.in_place);
    assert_int_equal(r.hard_links, 1);
    assert_true(heft_test_file_is(hard, old)); /* the hard link keeps the old content */
    assert_int_equal(lstat(link_path, &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0640);
    heft_assert_ok(edit(hard, "v", &r, &err), &err);
    assert_true(r.in_place && r.changed && !r.hard_links);
    int fd = open(hard, O_RDONLY);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    heft_assert_fails(edit(hard, "u", &r, &err), HEFT_E_IO, &err, "another program is editing");
    close(fd);
    assert_int_equal(chmod(hard, 0444), 0);
    heft_assert_fails(edit(hard, "u", &r, &err), HEFT_E_IO, &err, "is read-only");
    heft_assert_fails(edit(*state, "u", &r, &err), HEFT_E_IO, &err, "cannot be edited");
    heft_test_free(&old);
}

static void a_file_with_a_name_too_long_for_a_journal_is_rewritten(void **state)
{
    char name[250];
    heft_bytes old = heft_test_one("safetensors", 64);
    heft_edit_result r;
    heft_error err;
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    const char *path = heft_test_path(*state, name);
    memset(&heft_stop, 0, sizeof heft_stop);
    heft_test_save(path, old.p, old.len);
    heft_assert_ok(edit(path, "v", &r, &err), &err);
    assert_true(r.changed && !r.in_place);
    assert_int_equal(heft_test_dir_entries(*state), 1);
    heft_test_free(&old);
}

/* ---- plans ---------------------------------------------------------------------------------- */

typedef struct counting_source {
    heft_source base;
    heft_bytes b;
    uint64_t read;
} counting_source;

static heft_status count_read(heft_source *s, uint64_t at, void *buf, size_t len, heft_error *err)
{
    counting_source *c = (counting_source *)s;
    (void)err;
    memcpy(buf, c->b.p + at, len);
    c->read += len;
    return HEFT_OK;
}

static void close_counting(heft_source *s)
{
    (void)s;
}

static const heft_source_ops counting_ops = { .size = sizeof(heft_source_ops),
                                              .read = count_read,
                                              .close = close_counting };

/* Return the number of bytes that heft_edit_plan() reads. */
static uint64_t bytes_read_by_plan(heft_bytes b, const char *to)
{
    counting_source s = { { &counting_ops, b.len }, b, 0 };
    heft_rename rename = { heft_test_str("w"), heft_test_str(to) };
    heft_edit_options o = HEFT_EDIT_OPTIONS_INIT;
    heft_edit *e;
    heft_file *f;
    heft_error err;
    o.rename = &rename;
    o.rename_count = 1;
    heft_assert_ok(heft_file_open_source(&f, &s.base, NULL, &err), &err);
    s.read = 0;
    heft_assert_ok(heft_edit_plan(&e, f, &o, &err), &err);
    heft_file_close(f);
    heft_edit_close(e);
    return s.read;
}

/* Detection reads the ends of the file even if the index is small; the number of bytes does not
 * depend on the size of the data. */
static void a_plan_does_not_read_the_data(void **state)
{
    enum { MAX_BYTES = 256 << 10, MIB = 1 << 20 };
    const char *const names[] = { "v", long_name }, *format;
    (void)state;
    for (size_t i = 0; (format = heft_test_editable(i)); i++) {
        heft_bytes small = heft_test_one(format, 2 * MIB), large = heft_test_one(format, 4 * MIB);
        for (size_t k = 0; has_name(small) && k < HEFT_COUNT(names); k++) {
            uint64_t bytes = bytes_read_by_plan(large, names[k]);
            assert_in_range(bytes, 1, MAX_BYTES);
            assert_int_equal(bytes, bytes_read_by_plan(small, names[k]));
        }
        heft_test_free(&small);
        heft_test_free(&large);
    }
}

static void the_extents_of_a_plan_form_the_edited_file(void **state)
{
    const char *format, *path = heft_test_path(*state, "model");
    for (size_t i = 0; (format = heft_test_editable(i)); i++) {
        heft_bytes old = heft_test_one(format, DATA);
        heft_rename rename = { heft_test_str("w"), heft_test_str(long_name) };
        heft_edit_options o = HEFT_EDIT_OPTIONS_INIT;
        const heft_edit_extent *p;
        heft_edit *e;
        heft_file *f;
        heft_error err;
        o.rename = &rename;
        o.rename_count = has_name(old);
        heft_assert_ok(heft_test_open(&f, old, NULL, &err), &err);
        heft_assert_ok(heft_edit_plan(&e, f, &o, &err), &err);
        heft_file_close(f);
        heft_bytes built = { calloc(1, (size_t)heft_edit_size(e) + 1), (size_t)heft_edit_size(e) };
        uint64_t at = 0;
        for (size_t k = 0, n = heft_edit_extents(e, &p); k < n; k++) {
            assert_int_equal(p[k].at, at);
            memcpy(built.p + at, p[k].data ? p[k].data : old.p + p[k].from, (size_t)p[k].length);
            at += p[k].length;
        }
        assert_int_equal(at, built.len);
        heft_edit_close(e);
        if (o.rename_count) {
            heft_bytes expected = edited(path, old, long_name);
            heft_assert_same_bytes(built, expected);
            heft_test_free(&expected);
        } else {
            heft_assert_same_bytes(built, old);
        }
        heft_test_free(&built);
        heft_test_free(&old);
    }
}

static void an_edit_without_changes_leaves_the_file_unchanged(void **state)
{
    const char *format, *path = heft_test_path(*state, "model");
    for (size_t i = 0; (format = heft_test_editable(i)); i++) {
        heft_bytes old = heft_test_many(format, 1);
        heft_edit_result r;
        heft_error err;
        heft_test_save(path, old.p, old.len);
        heft_assert_ok(heft_file_edit(&r, path, NULL, &err), &err);
        assert_false(r.changed);
        assert_true(heft_test_file_is(path, old));
        heft_test_free(&old);
    }
}

static void running_out_of_memory_is_reported(void **state)
{
    const char *format;
    (void)state;
    for (size_t i = 0; (format = heft_test_editable(i)); i++) {
        heft_bytes b = heft_test_one(format, 64);
        heft_status st = has_name(b) ? HEFT_E_NOMEM : HEFT_OK;
        for (uint32_t n = 1; st; n++) {
            heft_rename rename = { heft_test_str("w"), heft_test_str("v") };
            heft_edit_options o = HEFT_EDIT_OPTIONS_INIT;
            heft_test_memory m;
            heft_edit *e = NULL;
            heft_file *f;
            heft_error err;
            heft_test_memory_init(&m, n);
            o.host = &m.host;
            o.rename = &rename;
            o.rename_count = 1;
            heft_assert_ok(heft_test_open(&f, b, NULL, &err), &err);
            st = heft_edit_plan(&e, f, &o, &err);
            if (st)
                heft_assert_status(st, HEFT_E_NOMEM, &err);
            heft_edit_close(e);
            heft_file_close(f);
            heft_assert_all_freed(&m);
        }
        heft_test_free(&b);
    }
}

/* ---- invalid requests ----------------------------------------------------------------------- */

static heft_status plan(const char *format, const heft_value *set, const char *unset,
                        const heft_rename *rename, size_t renames, heft_error *err)
{
    static const test_tensor tensors[] = { { "a", HEFT_F32, 1, { 2 } },
                                           { "b", HEFT_F32, 1, { 3 } } };
    heft_bytes b = heft_test_model(format, tensors, 2);
    heft_str key = heft_test_str(unset ? unset : "");
    heft_edit_options o = HEFT_EDIT_OPTIONS_INIT;
    heft_edit *e = NULL;
    heft_file *f;
    o.set = set;
    o.set_count = set != NULL;
    o.unset = &key;
    o.unset_count = unset != NULL;
    o.rename = rename;
    o.rename_count = renames;
    heft_assert_ok(heft_test_open(&f, b, NULL, err), err);
    heft_status st = heft_edit_plan(&e, f, &o, err);
    heft_edit_close(e);
    heft_file_close(f);
    heft_test_free(&b);
    return st;
}

static heft_rename from_to(const char *from, const char *to)
{
    return (heft_rename){ heft_test_str(from), heft_test_str(to) };
}

static void invalid_requests_are_refused_with_the_reason(void **state)
{
    heft_value text = { .kind = HEFT_KIND_STR, .key = heft_test_str("k") };
    heft_value map = { .kind = HEFT_KIND_MAP, .key = heft_test_str("k") };
    heft_value bad = { .kind = HEFT_KIND_STR, .key = heft_test_str("\xff") };
    heft_rename r[2] = { from_to("a", "b"), from_to("b", "a") };
    heft_error err;
    (void)state;
    text.as.s = heft_test_str("v");
    heft_assert_ok(plan("safetensors", NULL, NULL, r, 2, &err), &err);
    heft_assert_ok(plan("safetensors", &text, NULL, r, 2, &err), &err);
    heft_assert_fails(plan("safetensors", NULL, NULL, r, 1, &err), HEFT_E_ARGUMENT, &err,
                      "after renaming");
    r[1].from = r[0].from;
    heft_assert_fails(plan("safetensors", NULL, NULL, r, 2, &err), HEFT_E_ARGUMENT, &err,
                      "renamed twice");
    r[0] = from_to("c", "d");
    heft_assert_fails(plan("safetensors", NULL, NULL, r, 1, &err), HEFT_E_NOTFOUND, &err,
                      "no tensor named 'c'");
    r[0] = from_to("a", "\xff");
    heft_assert_fails(plan("safetensors", NULL, NULL, r, 1, &err), HEFT_E_ARGUMENT, &err,
                      "not UTF-8");
    heft_assert_fails(plan("safetensors", NULL, "k", NULL, 0, &err), HEFT_E_NOTFOUND, &err,
                      "no metadata 'k'");
    heft_assert_fails(plan("safetensors", &text, "k", NULL, 0, &err), HEFT_E_ARGUMENT, &err,
                      "both set and unset");
    heft_assert_fails(plan("safetensors", &map, NULL, NULL, 0, &err), HEFT_E_ARGUMENT, &err,
                      "lists of anything but scalars");
    heft_assert_fails(plan("safetensors", &bad, NULL, NULL, 0, &err), HEFT_E_ARGUMENT, &err,
                      "not UTF-8");
    heft_assert_fails(plan("gptrs-archive", &text, NULL, NULL, 0, &err), HEFT_E_LOSSY, &err,
                      "cannot write this model");
    heft_assert_fails(plan("mag", &text, NULL, NULL, 0, &err), HEFT_E_LOSSY, &err,
                      "cannot write this model");
}

/* ---- damage --------------------------------------------------------------------------------- */

static uint32_t faults_of(heft_bytes b)
{
    heft_verify_result r;
    heft_file *f;
    heft_error err;
    heft_assert_ok(heft_test_open(&f, b, NULL, &err), &err);
    heft_assert_ok(heft_file_verify(&r, f, NULL, &err), &err);
    heft_file_close(f);
    return r.faults;
}

static void damaged_data_is_still_reported_after_an_edit(void **state)
{
    const char *path = heft_test_path(*state, "model");
    heft_bytes old = heft_test_one("embd", DATA), after;
    uint32_t faults;
    old.p[old.len - 100] ^= 1;
    faults = faults_of(old);
    assert_true(faults);
    after = edited(path, old, long_name);
    assert_int_equal(faults_of(after), faults);
    heft_test_free(&after);
    heft_test_free(&old);
}

/* Damage headers that share a checksum with the data, and the stored checksums. */
static void a_damaged_index_is_not_edited(void **state)
{
    static const struct {
        const char *format;
        int at; /* offset; negative: from the end */
    } damages[] = {
        { "mag", 8 }, { "embd", 57 }, { "embd", 110 }, { "embd", -16 }, { "embd", -12 },
    };
    const char *path = heft_test_path(*state, "model"), *const names[] = { "v", long_name };
    for (size_t i = 0; i < 2 * HEFT_COUNT(damages); i++) {
        heft_bytes old = heft_test_one(damages[i / 2].format, 64);
        int at = damages[i / 2].at;
        heft_error err;
        memset(&heft_stop, 0, sizeof heft_stop);
        old.p[at < 0 ? (int)old.len + at : at] ^= 1;
        heft_test_save(path, old.p, old.len);
        heft_assert_fails(edit(path, names[i % 2], NULL, &err), HEFT_E_CHECKSUM, &err, "-crc");
        assert_true(heft_test_file_is(path, old));
        assert_int_equal(heft_test_dir_entries(*state), 1);
        heft_test_free(&old);
    }
}

/* A checksum of zero may be absent or wrong, so that an edit must not compute a new checksum. */
static void an_edit_adds_no_missing_checksum(void **state)
{
    enum { FLAGS = 8, HEADER_CRC = 56, CHECKSUMS = 4 };
    const char *path = heft_test_path(*state, "model");
    heft_bytes old = heft_test_one("embd", DATA), after;
    old.p[FLAGS] &= (uint8_t)~CHECKSUMS;
    memset(old.p + HEADER_CRC, 0, 4);
    memset(old.p + old.len - 16, 0, 8);
    after = edited(path, old, long_name);
    assert_int_equal(after.p[FLAGS], old.p[FLAGS]);
    assert_memory_equal(after.p + HEADER_CRC, old.p + HEADER_CRC, 4);
    assert_memory_equal(after.p + after.len - 16, old.p + old.len - 16, 16);
    heft_test_free(&after);
    heft_test_free(&old);
}

#define in_dir(test) cmocka_unit_test_setup_teardown(test, heft_test_dir_make, heft_test_dir_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        in_dir(a_killed_edit_is_rolled_back_or_complete),
        in_dir(a_torn_write_is_rolled_back),
        in_dir(a_killed_recovery_can_be_repeated),
        in_dir(an_edit_first_rolls_back_an_interrupted_edit),
        in_dir(a_dry_run_does_not_roll_back),
        in_dir(a_damaged_journal_is_refused),
        in_dir(a_foreign_journal_is_refused),
        in_dir(a_failing_call_leaves_the_old_or_the_new_file),
        in_dir(an_edit_on_a_full_disk_leaves_no_temporary_file),
        in_dir(a_file_changed_by_another_program_is_not_edited),
        in_dir(mode_links_and_locks_are_respected),
        in_dir(a_file_with_a_name_too_long_for_a_journal_is_rewritten),
        in_dir(the_extents_of_a_plan_form_the_edited_file),
        in_dir(an_edit_without_changes_leaves_the_file_unchanged),
        in_dir(damaged_data_is_still_reported_after_an_edit),
        in_dir(a_damaged_index_is_not_edited),
        in_dir(an_edit_adds_no_missing_checksum),
        cmocka_unit_test(a_plan_does_not_read_the_data),
        cmocka_unit_test(running_out_of_memory_is_reported),
        cmocka_unit_test(invalid_requests_are_refused_with_the_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
