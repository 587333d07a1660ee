/* test_edit.c - an edit happens whole or not at all: killed at every call it makes of the system, and with
 * every one of them failing. */
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

static const char longer[] =
    "a name that is so much longer than what there was that many a header has "
    "no room for it and all of the data has to move, which in some of the "
    "formats takes more than two hundred and fifty-six bytes, so that this "
    "name goes on for a little while longer than anyone would like it to";

/* What the one tensor is called; NULL: the format has no names. */
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

static bool is_same(heft_bytes a, heft_bytes b)
{
    return a.len == b.len && !memcmp(a.p, b.p, a.len);
}

static bool file_is(const char *path, heft_bytes want)
{
    heft_bytes b = heft_test_load(path);
    bool same = is_same(b, want);
    heft_test_free(&b);
    return same;
}

static bool has_journal(const char *path)
{
    char name[4096];
    snprintf(name, sizeof name, "%s.heft-journal", path);
    return heft_test_exists(name);
}

typedef struct task {
    const char *path, *to; /* to NULL: undoes */
} task;

static heft_status do_task(void *ctx)
{
    const task *t = ctx;
    heft_error err;
    bool undone;
    return t->to ? edit(t->path, t->to, NULL, &err)
                 : heft_edit_recover_on(&heft_stopping_disk, &undone, t->path, &err);
}

static bool is_killed(heft_disk_failure what, unsigned at, const char *path, const char *to)
{
    return heft_test_is_killed(what, at, do_task, &(task){ path, to });
}

/* Whatever was left behind is cleared away by the next to come. */
static void assert_mended(const char *dir, const char *path, heft_bytes old, heft_bytes new,
                          const char *to)
{
    heft_error err;
    bool undone;
    heft_file *f;
    memset(&heft_stop, 0, sizeof heft_stop);
    if (has_journal(path))
        heft_assert_fails(heft_file_open(&f, path, NULL, &err), HEFT_E_IO, &err, "journal");
    heft_assert_ok(heft_edit_recover_on(&heft_stopping_disk, &undone, path, &err), &err);
    if (file_is(path, new)) {
        assert_false(undone);
        assert_int_equal(heft_test_dir_entries(dir), 1);
        return;
    }
    assert_true(file_is(path, old));
    heft_assert_ok(edit(path, to, NULL, &err), &err);
    assert_true(file_is(path, new));
    assert_int_equal(heft_test_dir_entries(dir), 1);
}

static void kill_everywhere(const char *dir, const char *format, const char *to,
                            heft_disk_failure what, bool no_copy)
{
    const char *path = heft_test_path(dir, "model");
    heft_bytes old = heft_test_one(format, DATA);
    if (has_name(old)) {
        heft_bytes new = edited(path, old, to);
        bool killed = true;
        unsigned n = 0;
        for (unsigned quiet = 0; quiet < 20; quiet = killed ? 0 : quiet + 1) {
            heft_test_save(path, old.p, old.len);
            memset(&heft_stop, 0, sizeof heft_stop);
            heft_stop.no_copy = no_copy;
            killed = is_killed(what, ++n, path, to);
            assert_mended(dir, path, old, new, to);
        }
        assert_true(n > 22); /* some calls were there to be killed at */
        heft_test_free(&new);
    }
    heft_test_free(&old);
    unlink(path);
}

static void a_killed_edit_has_not_happened(void **state)
{
    const char *format;
    for (size_t i = 0; (format = heft_test_writable(i)); i++) {
        kill_everywhere(*state, format, "v", HEFT_KILLED, false);
        kill_everywhere(*state, format, longer, HEFT_KILLED, false);
        kill_everywhere(*state, format, longer, HEFT_KILLED, true);
    }
}

static void a_write_that_is_torn_is_mended(void **state)
{
    const char *format;
    for (size_t i = 0; (format = heft_test_writable(i)); i++) {
        kill_everywhere(*state, format, "v", HEFT_TORN, false);
        kill_everywhere(*state, format, longer, HEFT_TORN, true);
    }
}

/* ---- undoing -------------------------------------------------------------------------------- */

/* A file in the middle of an edit, with its journal. */
static void leave_half_edited(const char *path, heft_bytes old, const char *to)
{
    unsigned n = 1;
    do {
        heft_test_save(path, old.p, old.len);
        memset(&heft_stop, 0, sizeof heft_stop);
        (void)is_killed(HEFT_TORN, n++, path, to);
    } while (!has_journal(path) || file_is(path, old));
}

static void undoing_may_be_killed_as_well(void **state)
{
    const char *path = heft_test_path(*state, "model");
    heft_bytes old = heft_test_one("ztensor", DATA);
    heft_error err;
    bool undone, killed = true;
    for (unsigned n = 1; killed; n++)
        for (heft_disk_failure what = HEFT_KILLED; what <= HEFT_TORN; what++) {
            leave_half_edited(path, old, "a longer name");
            bool now = is_killed(what, n, path, NULL);
            killed = what == HEFT_KILLED ? now : killed;
            heft_assert_ok(heft_edit_recover_on(&heft_stopping_disk, &undone, path, &err), &err);
            assert_true(file_is(path, old));
            assert_int_equal(heft_test_dir_entries(*state), 1);
        }
    heft_test_free(&old);
}

static void an_edit_undoes_what_was_interrupted(void **state)
{
    const char *path = heft_test_path(*state, "model");
    heft_bytes old = heft_test_one("safetensors", DATA);
    heft_bytes want = edited(path, old, "u");
    heft_edit_result r;
    heft_error err;
    leave_half_edited(path, old, "v");
    heft_assert_ok(edit(path, "u", &r, &err), &err);
    assert_true(r.rolled_back);
    assert_true(r.in_place);
    assert_true(file_is(path, want));
    assert_int_equal(heft_test_dir_entries(*state), 1);
    heft_test_free(&want);
    heft_test_free(&old);
}

static void a_dry_run_undoes_nothing(void **state)
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

/* ---- journals that cannot be believed -------------------------------------------------------- */

static void assert_refused(const char *path, const char *words)
{
    heft_bytes before = heft_test_load(path);
    heft_edit_result r;
    heft_error err;
    bool undone;
    heft_status st = heft_edit_recover_on(&heft_stopping_disk, &undone, path, &err);
    assert_true(st == HEFT_E_FORMAT || st == HEFT_E_UNSUPPORTED);
    if (words && !strstr(err.message, words))
        fail_msg("\"%s\" is not \"...%s...\"", err.message, words);
    assert_true(edit(path, "v", &r, &err) == st);
    assert_true(file_is(path, before));
    assert_true(has_journal(path));
    heft_test_free(&before);
}

static void a_damaged_journal_is_refused(void **state)
{
    const char *path = heft_test_path(*state, "model");
    const char *beside = heft_test_path(*state, "model.heft-journal");
    heft_bytes old = heft_test_one("mag", 64), journal;
    leave_half_edited(path, old, "v");
    journal = heft_test_load(beside);
    for (size_t i = 0; i < journal.len; i++) {
        journal.p[i] ^= 1;
        heft_test_save(beside, journal.p, journal.len);
        journal.p[i] ^= 1;
        assert_refused(path, "is damaged");
        heft_test_save(beside, journal.p, i);
        assert_refused(path, "is damaged");
    }
    heft_test_free(&journal);
    heft_test_free(&old);
}

static void a_foreign_journal_is_refused(void **state)
{
    const char *path = heft_test_path(*state, "model"), *other = heft_test_path(*state, "other");
    const char *beside = heft_test_path(*state, "model.heft-journal");
    const char *beside_other = heft_test_path(*state, "other.heft-journal");
    heft_bytes old = heft_test_one("mag", 64), larger = heft_test_one("mag", 128);
    leave_half_edited(path, old, "v");
    assert_int_equal(rename(beside, beside_other), 0);
    heft_test_save(other, larger.p, larger.len); /* of another size */
    assert_refused(other, "belongs to another file");
    heft_bytes half = heft_test_load(path);
    half.p[half.len - 1] ^= 1; /* of other data */
    heft_test_save(other, half.p, half.len);
    assert_refused(other, "belongs to another file");
    half.p[half.len - 1] ^= 1;
    for (size_t i = 0; i < half.len; i++) /* of another header, wherever */
        if (half.p[i] != old.p[i]) {
            half.p[i] = 0x55;
            break;
        }
    heft_test_save(other, half.p, half.len);
    assert_refused(other, "belongs to another file");
    heft_test_free(&half);
    heft_test_free(&larger);
    heft_test_free(&old);
}

/* ---- calls that fail ------------------------------------------------------------------------ */

static void fail_everywhere(const char *dir, const char *format, const char *to,
                            heft_disk_failure what, int os)
{
    const char *path = heft_test_path(dir, "model");
    heft_bytes old = heft_test_one(format, DATA);
    heft_bytes new = has_name(old) ? edited(path, old, to) : (heft_bytes){ NULL, 0 };
    heft_error err;
    for (unsigned n = 1; new.p; n++) {
        bool undone;
        heft_test_save(path, old.p, old.len);
        memset(&heft_stop, 0, sizeof heft_stop);
        heft_stop.failure = what;
        heft_stop.at = n;
        heft_stop.os = os;
        heft_status st = edit(path, to, NULL, &err);
        bool was_reached = heft_stop.calls >= n;
        memset(&heft_stop, 0, sizeof heft_stop);
        if (st)
            heft_assert_status(st, HEFT_E_IO, &err);
        heft_assert_ok(heft_edit_recover_on(&heft_stopping_disk, &undone, path, &err), &err);
        assert_true(file_is(path, old) || file_is(path, new));
        assert_true(st || file_is(path, new));
        if (!was_reached)
            break;
    }
    heft_test_free(&new);
    heft_test_free(&old);
    unlink(path);
}

static void a_failing_disk_leaves_the_file_whole(void **state)
{
    const char *format;
    for (size_t i = 0; (format = heft_test_writable(i)); i++) {
        fail_everywhere(*state, format, "v", HEFT_FAILS_ONCE, ENOSPC);
        fail_everywhere(*state, format, longer, HEFT_FAILS_ONCE, ENOSPC);
        fail_everywhere(*state, format, "v", HEFT_FAILS_FROM, EIO);
        fail_everywhere(*state, format, longer, HEFT_FAILS_FROM, EIO);
    }
}

static void a_full_disk_undoes_itself(void **state)
{
    const char *path = heft_test_path(*state, "model");
    heft_bytes old = heft_test_one("safetensors", DATA);
    heft_error err;
    bool was_full = false;
    for (unsigned n = 1; n < 8; n++) {
        heft_test_save(path, old.p, old.len);
        memset(&heft_stop, 0, sizeof heft_stop);
        heft_stop.failure = HEFT_FAILS_ONCE;
        heft_stop.at = n;
        heft_stop.os = ENOSPC;
        was_full |= edit(path, "v", NULL, &err) == HEFT_E_IO;
        if (!heft_test_exists(heft_test_path(*state, "model.heft-journal")))
            assert_int_equal(heft_test_dir_entries(*state), 1);
    }
    assert_true(was_full);
    heft_test_free(&old);
}

static void a_file_that_changes_meanwhile_is_left_alone(void **state)
{
    const char *path = heft_test_path(*state, "model");
    heft_bytes old = heft_test_one("mag", 64), now;
    const char *const names[] = { "v", longer };
    heft_error err;
    for (size_t i = 0; i < HEFT_COUNT(names); i++) {
        heft_test_save(path, old.p, old.len);
        memset(&heft_stop, 0, sizeof heft_stop);
        heft_stop.touch = path;
        heft_assert_fails(edit(path, names[i], NULL, &err), HEFT_E_IO, &err, "in the meantime");
        now = heft_test_load(path);
        assert_int_equal(now.len, old.len + 1);
        assert_memory_equal(now.p, old.p, old.len);
        assert_int_equal(heft_test_dir_entries(*state), 1);
        heft_test_free(&now);
    }
    heft_test_free(&old);
}

/* ---- what surrounds a file ------------------------------------------------------------------ */

static void mode_links_and_locks(void **state)
{
    const char *path = heft_test_path(*state, "model"), *link_path = heft_test_path(*state, "link");
    const char *hard = heft_test_path(*state, "hard");
    heft_bytes old = heft_test_one("safetensors", 64);
    heft_edit_result r;
    heft_error err;
    struct stat is;
    memset(&heft_stop, 0, sizeof heft_stop);
    heft_test_save(path, old.p, old.len);
    assert_int_equal(chmod(path, 0640), 0);
    assert_int_equal(symlink("model", link_path), 0);
    assert_int_equal(link(path, hard), 0);
    heft_assert_ok(edit(link_path, longer, &r, &err), &err);
    assert_false(r.in_place);
    assert_int_equal(r.hard_links, 1);
    assert_true(file_is(hard, old)); /* the other name keeps what was there */
    assert_int_equal(lstat(link_path, &is), 0);
    assert_true(S_ISLNK(is.st_mode));
    assert_int_equal(stat(path, &is), 0);
    assert_int_equal(is.st_mode & 07777, 0640);
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

static void a_long_name_has_no_room_for_a_journal(void **state)
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

/* Bytes read for the plan alone. */
static uint64_t read_for(heft_bytes b, const char *to)
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

/* The ends of the file are looked at to recognise it, however small its index; more data is not more to
 * read. */
static void data_is_not_read(void **state)
{
    enum { MOST = 256 << 10, MIB = 1 << 20 };
    const char *const names[] = { "v", longer }, *format;
    (void)state;
    for (size_t i = 0; (format = heft_test_writable(i)); i++) {
        heft_bytes small = heft_test_one(format, 2 * MIB), large = heft_test_one(format, 4 * MIB);
        for (size_t k = 0; has_name(small) && k < HEFT_COUNT(names); k++) {
            uint64_t bytes = read_for(large, names[k]);
            assert_in_range(bytes, 1, MOST);
            assert_int_equal(bytes, read_for(small, names[k]));
        }
        heft_test_free(&small);
        heft_test_free(&large);
    }
}

static void pieces_are_the_edited_file(void **state)
{
    const char *format, *path = heft_test_path(*state, "model");
    for (size_t i = 0; (format = heft_test_writable(i)); i++) {
        heft_bytes old = heft_test_one(format, DATA);
        heft_rename rename = { heft_test_str("w"), heft_test_str(longer) };
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
        heft_bytes made = { calloc(1, (size_t)heft_edit_size(e) + 1), (size_t)heft_edit_size(e) };
        uint64_t at = 0;
        for (size_t k = 0, n = heft_edit_extents(e, &p); k < n; k++) {
            assert_int_equal(p[k].at, at);
            memcpy(made.p + at, p[k].data ? p[k].data : old.p + p[k].from, (size_t)p[k].length);
            at += p[k].length;
        }
        assert_int_equal(at, made.len);
        heft_edit_close(e);
        if (o.rename_count) {
            heft_bytes want = edited(path, old, longer);
            heft_assert_same_bytes(made, want);
            heft_test_free(&want);
        } else {
            heft_assert_same_bytes(made, old);
        }
        heft_test_free(&made);
        heft_test_free(&old);
    }
}

static void nothing_asked_changes_nothing(void **state)
{
    const char *format, *path = heft_test_path(*state, "model");
    for (size_t i = 0; (format = heft_test_writable(i)); i++) {
        heft_bytes old = heft_test_many(format, 1);
        heft_edit_result r;
        heft_error err;
        heft_test_save(path, old.p, old.len);
        heft_assert_ok(heft_file_edit(&r, path, NULL, &err), &err);
        assert_false(r.changed);
        assert_true(file_is(path, old));
        heft_test_free(&old);
    }
}

static void memory_that_runs_out_is_told(void **state)
{
    const char *format;
    (void)state;
    for (size_t i = 0; (format = heft_test_writable(i)); i++) {
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

/* ---- what is asked for ---------------------------------------------------------------------- */

static heft_status try(const char *format, const heft_value *set, const char *unset,
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

static void what_cannot_be_done_is_refused(void **state)
{
    heft_value text = { .kind = HEFT_KIND_STR, .key = heft_test_str("k") };
    heft_value map = { .kind = HEFT_KIND_MAP, .key = heft_test_str("k") };
    heft_value bad = { .kind = HEFT_KIND_STR, .key = heft_test_str("\xff") };
    heft_rename r[2] = { from_to("a", "b"), from_to("b", "a") };
    heft_error err;
    (void)state;
    text.as.s = heft_test_str("v");
    heft_assert_ok(try("safetensors", NULL, NULL, r, 2, &err), &err);
    heft_assert_ok(try("safetensors", &text, NULL, r, 2, &err), &err);
    heft_assert_fails(try("safetensors", NULL, NULL, r, 1, &err), HEFT_E_ARGUMENT, &err,
                      "after renaming");
    r[1].from = r[0].from;
    heft_assert_fails(try("safetensors", NULL, NULL, r, 2, &err), HEFT_E_ARGUMENT, &err,
                      "renamed twice");
    r[0] = from_to("c", "d");
    heft_assert_fails(try("safetensors", NULL, NULL, r, 1, &err), HEFT_E_NOTFOUND, &err,
                      "no tensor named 'c'");
    r[0] = from_to("a", "\xff");
    heft_assert_fails(try("safetensors", NULL, NULL, r, 1, &err), HEFT_E_ARGUMENT, &err,
                      "not UTF-8");
    heft_assert_fails(try("safetensors", NULL, "k", NULL, 0, &err), HEFT_E_NOTFOUND, &err,
                      "no metadata 'k'");
    heft_assert_fails(try("safetensors", &text, "k", NULL, 0, &err), HEFT_E_ARGUMENT, &err,
                      "both set and unset");
    heft_assert_fails(try("safetensors", &map, NULL, NULL, 0, &err), HEFT_E_ARGUMENT, &err,
                      "lists and maps");
    heft_assert_fails(try("safetensors", &bad, NULL, NULL, 0, &err), HEFT_E_ARGUMENT, &err,
                      "not UTF-8");
    heft_assert_fails(try("gptrs-archive", &text, NULL, NULL, 0, &err), HEFT_E_LOSSY, &err,
                      "cannot write this model");
    heft_assert_fails(try("mag", &text, NULL, NULL, 0, &err), HEFT_E_LOSSY, &err,
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

static void damaged_data_stays_known_as_damaged(void **state)
{
    const char *path = heft_test_path(*state, "model");
    heft_bytes old = heft_test_one("embd", DATA), now;
    uint32_t faults;
    old.p[old.len - 100] ^= 1;
    faults = faults_of(old);
    assert_true(faults);
    now = edited(path, old, longer);
    assert_int_equal(faults_of(now), faults);
    heft_test_free(&now);
    heft_test_free(&old);
}

/* Of what a checksum covers together with data, and of the checksums themselves. */
static void a_damaged_index_is_not_written_anew(void **state)
{
    static const struct {
        const char *format;
        int at; /* below 0: from the end */
    } damages[] = {
        { "mag", 8 }, { "embd", 57 }, { "embd", 110 }, { "embd", -16 }, { "embd", -12 },
    };
    const char *path = heft_test_path(*state, "model"), *const names[] = { "v", longer };
    for (size_t i = 0; i < 2 * HEFT_COUNT(damages); i++) {
        heft_bytes old = heft_test_one(damages[i / 2].format, 64);
        int at = damages[i / 2].at;
        heft_error err;
        memset(&heft_stop, 0, sizeof heft_stop);
        old.p[at < 0 ? (int)old.len + at : at] ^= 1;
        heft_test_save(path, old.p, old.len);
        heft_assert_fails(edit(path, names[i % 2], NULL, &err), HEFT_E_CHECKSUM, &err, "-crc");
        assert_true(file_is(path, old));
        assert_int_equal(heft_test_dir_entries(*state), 1);
        heft_test_free(&old);
    }
}

/* Which cannot be told from a checksum that is wrong over bytes that are right. */
static void a_file_gets_no_checksum_that_it_does_not_have(void **state)
{
    enum { FLAGS = 8, HEADER_CRC = 56, CHECKSUMS = 4 };
    const char *path = heft_test_path(*state, "model");
    heft_bytes old = heft_test_one("embd", DATA), now;
    old.p[FLAGS] &= (uint8_t)~CHECKSUMS;
    memset(old.p + HEADER_CRC, 0, 4);
    memset(old.p + old.len - 16, 0, 8);
    now = edited(path, old, longer);
    assert_int_equal(now.p[FLAGS], old.p[FLAGS]);
    assert_memory_equal(now.p + HEADER_CRC, old.p + HEADER_CRC, 4);
    assert_memory_equal(now.p + now.len - 16, old.p + old.len - 16, 16);
    heft_test_free(&now);
    heft_test_free(&old);
}

#define in_dir(test) cmocka_unit_test_setup_teardown(test, heft_test_dir_make, heft_test_dir_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        in_dir(a_killed_edit_has_not_happened),
        in_dir(a_write_that_is_torn_is_mended),
        in_dir(undoing_may_be_killed_as_well),
        in_dir(an_edit_undoes_what_was_interrupted),
        in_dir(a_dry_run_undoes_nothing),
        in_dir(a_damaged_journal_is_refused),
        in_dir(a_foreign_journal_is_refused),
        in_dir(a_failing_disk_leaves_the_file_whole),
        in_dir(a_full_disk_undoes_itself),
        in_dir(a_file_that_changes_meanwhile_is_left_alone),
        in_dir(mode_links_and_locks),
        in_dir(a_long_name_has_no_room_for_a_journal),
        in_dir(pieces_are_the_edited_file),
        in_dir(nothing_asked_changes_nothing),
        in_dir(damaged_data_stays_known_as_damaged),
        in_dir(a_damaged_index_is_not_written_anew),
        in_dir(a_file_gets_no_checksum_that_it_does_not_have),
        cmocka_unit_test(data_is_not_read),
        cmocka_unit_test(memory_that_runs_out_is_told),
        cmocka_unit_test(what_cannot_be_done_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
