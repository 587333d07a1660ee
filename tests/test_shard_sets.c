/* test_shard_sets.c - sets of files that are written together: killed at every system call, with
 * every system call failing, and with damaged or hostile journals. */
#include "models.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "port/save/sealed.h"
#include "port/save/set_journal.h"
#include "port/save/sink_file.h"
#include "stopping_disk.h"

/* ---- folders -------------------------------------------------------------------------------- */

enum { MAX_FILES = 24 };

typedef struct snapshot { /* names and content of all files of a folder */
    char name[MAX_FILES][64];
    heft_bytes bytes[MAX_FILES];
    size_t count;
} snapshot;

/* Return heft_test_path() in one of eight static buffers; the path stays valid during a test. */
static const char *static_path(const char *dir, const char *name)
{
    static char names[8][4096];
    static size_t next;
    char *to = names[next++ % HEFT_COUNT(names)];
    return strcpy(to, heft_test_path(dir, name));
}

static void free_snapshot(snapshot *s)
{
    for (size_t i = 0; i < s->count; i++)
        heft_test_free(&s->bytes[i]);
    s->count = 0;
}

static void clear(const char *dir)
{
    struct dirent *e;
    DIR *d = opendir(dir);
    while (d && (e = readdir(d)))
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            assert_int_equal(unlink(heft_test_path(dir, e->d_name)), 0);
    if (d)
        closedir(d);
}

static snapshot take_snapshot(const char *dir)
{
    snapshot s = { .count = 0 };
    struct dirent *e;
    DIR *d = opendir(dir);
    while (d && (e = readdir(d))) {
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
            continue;
        assert_true(s.count < MAX_FILES && strlen(e->d_name) < sizeof s.name[0]);
        strcpy(s.name[s.count], e->d_name);
        s.bytes[s.count++] = heft_test_load(heft_test_path(dir, e->d_name));
    }
    if (d)
        closedir(d);
    return s;
}

static void restore(const char *dir, const snapshot *s)
{
    clear(dir);
    for (size_t i = 0; i < s->count; i++)
        heft_test_save(heft_test_path(dir, s->name[i]), s->bytes[i].p, s->bytes[i].len);
}

static const heft_bytes *find(const snapshot *s, const char *name)
{
    for (size_t i = 0; i < s->count; i++)
        if (!strcmp(s->name[i], name))
            return &s->bytes[i];
    return NULL;
}

static bool is_same(const snapshot *a, const snapshot *b)
{
    bool same = a->count == b->count;
    for (size_t i = 0; i < a->count && same; i++) {
        const heft_bytes *other = find(b, a->name[i]);
        same = other && other->len == a->bytes[i].len &&
               !memcmp(other->p, a->bytes[i].p, other->len);
    }
    return same;
}

static bool folder_is(const char *dir, const snapshot *want)
{
    snapshot now = take_snapshot(dir);
    bool same = is_same(&now, want);
    free_snapshot(&now);
    return same;
}

static bool has_journal(const char *dir)
{
    return heft_test_exists(heft_test_path(dir, "heft-set.journal"));
}

/* ---- shard sets ----------------------------------------------------------------------------- */

static const heft_disk *test_disk = &heft_stopping_disk;

typedef struct task {
    const char *dir;
    const heft_format *format;
    heft_bytes model;
    uint32_t flags;
} task;

static heft_status open_sink(heft_sink **out, void *ctx, const char *name, heft_error *err)
{
    return heft_sink_dir_add(out, ctx, name, err);
}

static heft_status split(const task *t, heft_error *err)
{
    heft_write_options write = HEFT_WRITE_OPTIONS_INIT;
    heft_convert_options convert = HEFT_CONVERT_OPTIONS_INIT;
    heft_split_options o = HEFT_SPLIT_OPTIONS_INIT;
    heft_test_host host;
    heft_sink_dir *s;
    heft_file *f;
    heft_test_host_init(&host, 1);
    heft_status st = heft_test_open(&f, t->model, &host.host, err);
    if (st)
        return st;
    st = heft_sink_dir_open_on(test_disk, &s, t->dir, t->flags, err);
    o.convert = &convert;
    convert.write = &write;
    write.host = &host.host;
    o.count = 3;
    o.open = open_sink;
    o.ctx = s;
    if (!st && (st = heft_file_split(f, t->format, &o, err)))
        heft_sink_dir_discard(s);
    else if (!st)
        st = heft_sink_dir_finish(s, err);
    heft_file_close(f);
    return st;
}

static heft_status do_split(void *ctx)
{
    heft_error err;
    return split(ctx, &err);
}

static heft_status recover(heft_recovery *out, const char *dir, heft_error *err)
{
    return heft_shard_set_recover_path(out, test_disk, dir, err);
}

static heft_status do_recover(void *ctx)
{
    heft_recovery result;
    heft_error err;
    return recover(&result, ((const task *)ctx)->dir, &err);
}

static void clear_failures(void)
{
    memset(&heft_stop, 0, sizeof heft_stop);
}

/* Six tensors. Names and sizes do not depend on seed, so a mixture of two models would open. */
static heft_bytes model_of(uint8_t seed)
{
    static const test_tensor tensors[] = {
        { "a", HEFT_F32, 1, { 8 } }, { "b", HEFT_F32, 1, { 9 } }, { "c", HEFT_F32, 1, { 7 } },
        { "d", HEFT_F32, 1, { 8 } }, { "e", HEFT_F32, 1, { 9 } }, { "f", HEFT_F32, 1, { 7 } }
    };
    enum { DATA = 48 * 4 };
    heft_bytes b = heft_test_model("safetensors", tensors, HEFT_COUNT(tensors));
    for (size_t i = b.len - DATA; i < b.len; i++)
        b.p[i] ^= seed;
    return b;
}

typedef struct fixture { /* the content of a folder before and after a split */
    task task;
    snapshot old, new;
    unsigned journal_at; /* number of the call that publishes the journal; 0: unknown */
} fixture;

static fixture begin(const char *dir, const heft_format *format, bool is_new)
{
    heft_error err;
    fixture s = { .task = { dir, format, model_of(1), HEFT_SINK_REPLACE } };
    mkdir(dir, 0700);
    clear_failures();
    if (!is_new) {
        heft_assert_ok(split(&s.task, &err), &err);
        heft_test_save(heft_test_path(dir, "README"), "stays", 5);
        heft_test_save(heft_test_path(dir, "other-00001-of-00001.bin"), "stays", 5);
    }
    heft_test_free(&s.task.model);
    s.task.model = model_of(2);
    s.old = take_snapshot(dir);
    heft_assert_ok(split(&s.task, &err), &err);
    s.new = take_snapshot(dir);
    assert_false(is_same(&s.old, &s.new));
    return s;
}

static void end(fixture *s)
{
    clear(s->task.dir);
    free_snapshot(&s->old);
    free_snapshot(&s->new);
    heft_test_free(&s->task.model);
}

static const heft_format *splittable(uint32_t *i)
{
    while (*i < heft_format_count() && !heft_format_can_split(heft_format_at(*i)))
        ++*i;
    return *i < heft_format_count() ? heft_format_at((*i)++) : NULL;
}

/* safetensors is tested with every failure, the other formats with some. */
static bool is_thorough(const heft_format *format)
{
    return format == heft_format_find(HEFT_STR("safetensors"));
}

static void assert_pending(const char *path)
{
    heft_error err;
    heft_file *f;
    heft_assert_fails(heft_file_open(&f, path, NULL, &err), HEFT_E_IO, &err, "heft-set.journal");
}

/* Without a journal, the folder has the old or the new files; with a journal, no file opens. */
static void assert_not_a_mixture(const fixture *s)
{
    const char *dir = s->task.dir;
    snapshot now = take_snapshot(dir);
    if (has_journal(dir)) {
        assert_pending(dir);
        for (size_t i = 0; i < s->new.count; i++)
            assert_pending(heft_test_path(dir, s->new.name[i]));
    } else {
        for (size_t i = 0; i < now.count; i++) /* staged files are ignored */
            if (!strncmp(now.name[i], "heft-set.", 9))
                assert_int_equal(unlink(heft_test_path(dir, now.name[i])), 0);
        assert_true(folder_is(dir, &s->old) || folder_is(dir, &s->new));
        restore(dir, &now);
    }
    free_snapshot(&now);
}

static void assert_recovers(const fixture *s)
{
    heft_recovery result;
    heft_error err;
    clear_failures();
    bool was_pending = has_journal(s->task.dir);
    heft_assert_ok(recover(&result, s->task.dir, &err), &err);
    assert_int_equal(result != HEFT_RECOVERY_NONE, was_pending);
    assert_true(folder_is(s->task.dir, &s->old) || folder_is(s->task.dir, &s->new));
    if (was_pending)
        assert_true(folder_is(s->task.dir, result == HEFT_RECOVERY_COMPLETED ? &s->new : &s->old));
}

/* ---- killed --------------------------------------------------------------------------------- */

static void kill_everywhere(fixture *s, heft_disk_failure what)
{
    heft_error err;
    bool killed = true;
    unsigned n = 0, pending = 0;
    /* only writes are torn, so other calls do not end the loop */
    unsigned max_quiet = what == HEFT_TORN ? 12 : 1;
    for (unsigned quiet = 0; quiet < max_quiet; quiet = killed ? 0 : quiet + 1) {
        restore(s->task.dir, &s->old);
        clear_failures();
        killed = heft_test_is_killed(what, ++n, do_split, &s->task);
        pending += has_journal(s->task.dir);
        assert_not_a_mixture(s);
        assert_recovers(s);
        heft_assert_ok(split(&s->task, &err), &err);
        assert_true(folder_is(s->task.dir, &s->new));
    }
    assert_true(what == HEFT_TORN || pending > s->new.count - s->old.count);
}

static void killed_split_leaves_the_old_or_the_new_set(void **state)
{
    const heft_format *format;
    for (uint32_t i = 0; (format = splittable(&i));)
        for (int is_new = 0; is_new < 2; is_new++) {
            if (is_new && !is_thorough(format))
                break;
            fixture s = begin(static_path(*state, "set"), format, is_new);
            kill_everywhere(&s, HEFT_KILLED);
            if (is_thorough(format))
                kill_everywhere(&s, HEFT_TORN);
            end(&s);
        }
}

/* Kill a split `calls` system calls after the journal is published. */
static void leave_pending(fixture *s, unsigned calls)
{
    for (unsigned n = 1; !s->journal_at; n++) {
        restore(s->task.dir, &s->old);
        clear_failures();
        assert_true(heft_test_is_killed(HEFT_KILLED, n, do_split, &s->task));
        s->journal_at = has_journal(s->task.dir) ? n : 0;
    }
    restore(s->task.dir, &s->old);
    clear_failures();
    (void)heft_test_is_killed(HEFT_KILLED, s->journal_at + calls, do_split, &s->task);
}

static void killed_recovery_leaves_the_old_or_the_new_set(void **state)
{
    enum { CALLS = 14 };
    uint32_t first = 0;
    fixture s = begin(static_path(*state, "set"), splittable(&first), false);
    for (unsigned calls = 0; calls < CALLS; calls++)
        for (int loses = 0; loses < 2; loses++) {
            bool killed = true;
            leave_pending(&s, calls);
            if (loses) /* the set cannot be completed without a staged file */
                unlink(heft_test_path(s.task.dir, "heft-set.00004.new"));
            snapshot pending = take_snapshot(s.task.dir);
            for (unsigned n = 1; killed; n++) {
                restore(s.task.dir, &pending);
                clear_failures();
                killed = heft_test_is_killed(HEFT_KILLED, n, do_recover, &s.task);
                assert_not_a_mixture(&s);
                assert_recovers(&s);
            }
            free_snapshot(&pending);
        }
    end(&s);
}

/* ---- failing -------------------------------------------------------------------------------- */

static void fail_everywhere(fixture *s, heft_disk_failure what, int os)
{
    heft_error err;
    bool was_reached = true;
    for (unsigned n = 1; was_reached; n++) {
        restore(s->task.dir, &s->old);
        clear_failures();
        heft_stop.failure = what;
        heft_stop.at = n;
        heft_stop.os = os;
        heft_status st = split(&s->task, &err);
        was_reached = heft_stop.calls >= n;
        if (st)
            heft_assert_status(st, HEFT_E_IO, &err);
        else
            assert_true(folder_is(s->task.dir, &s->new));
        assert_not_a_mixture(s);
        if (st && has_journal(s->task.dir))
            assert_non_null(strstr(err.message, "'heft edit' on the folder"));
        else if (st && !strstr(err.message, "saved"))
            assert_true(what == HEFT_FAILS_FROM || folder_is(s->task.dir, &s->old));
        assert_recovers(s);
    }
}

static void failed_split_is_rolled_back(void **state)
{
    const heft_format *format;
    for (uint32_t i = 0; (format = splittable(&i));)
        for (int is_new = 0; is_new < 2; is_new++) {
            if (is_new && !is_thorough(format))
                break;
            fixture s = begin(static_path(*state, "set"), format, is_new);
            fail_everywhere(&s, HEFT_FAILS_ONCE, EIO);
            if (is_thorough(format))
                fail_everywhere(&s, HEFT_FAILS_ONCE, ENOSPC);
            fail_everywhere(&s, HEFT_FAILS_FROM, EIO);
            end(&s);
        }
}

/* ---- folders changed by other programs ------------------------------------------------------ */

static void assert_left_alone(const char *dir, heft_status status, const char *words)
{
    heft_recovery result;
    heft_error err;
    heft_sink_dir *s;
    heft_sink *sink;
    snapshot before = take_snapshot(dir);
    heft_status st = recover(&result, dir, &err);
    heft_assert_fails(st, status, &err, words);
    assert_int_equal(result, HEFT_RECOVERY_NONE);
    heft_assert_fails(heft_sink_dir_open(&s, dir, HEFT_SINK_REPLACE, &err), status, &err, words);
    heft_assert_fails(heft_sink_open_file(&sink, heft_test_path(dir, "x"), 0, &err), status, &err,
                      words);
    assert_pending(dir);
    assert_true(folder_is(dir, &before));
    free_snapshot(&before);
}

static void rolls_back_when_staged_files_are_lost(void **state)
{
    uint32_t first = 0;
    fixture s = begin(static_path(*state, "set"), splittable(&first), false);
    const char *last = static_path(s.task.dir, "heft-set.00003.new");
    for (unsigned calls = 0; calls < 9; calls++)
        for (int is_cut = 0; is_cut < 2; is_cut++) {
            leave_pending(&s, calls);
            if (!heft_test_exists(last))
                continue;
            assert_int_equal(is_cut ? truncate(last, 3) : unlink(last), 0);
            assert_not_a_mixture(&s);
            assert_recovers(&s);
            assert_true(folder_is(s.task.dir, &s.old));
        }
    end(&s);
}

/* A power failure may undo the naming of any staged file. */
static void removes_staged_files_whose_first_is_missing(void **state)
{
    static const char *const stale[] = { "heft-set.00002.new", "heft-set.00009.new",
                                         "heft-set.65536.new", "heft-set.journal-new" };
    static const char *const kept[] = { "heft-set.00002.old", "heft-set.0002.new",
                                        "heft-set.00002.new.txt", "my-heft-set.00002.new" };
    heft_recovery result;
    heft_error err;
    for (size_t i = 0; i < HEFT_COUNT(stale); i++)
        heft_test_save(heft_test_path(*state, stale[i]), "new", 3);
    for (size_t i = 0; i < HEFT_COUNT(kept); i++)
        heft_test_save(heft_test_path(*state, kept[i]), "stays", 5);
    heft_assert_ok(recover(&result, *state, &err), &err);
    assert_int_equal(result, HEFT_RECOVERY_NONE);
    for (size_t i = 0; i < HEFT_COUNT(stale); i++)
        assert_false(heft_test_exists(heft_test_path(*state, stale[i])));
    for (size_t i = 0; i < HEFT_COUNT(kept); i++)
        assert_true(heft_test_exists(heft_test_path(*state, kept[i])));
}

static void keeps_a_folder_that_cannot_be_recovered(void **state)
{
    uint32_t first = 0;
    const char *dir = static_path(*state, "set");
    fixture s = begin(dir, splittable(&first), false);
    leave_pending(&s, 7); /* one of the new files is committed */
    assert_true(heft_test_exists(heft_test_path(dir, "heft-set.00004.new")));
    unlink(heft_test_path(dir, "heft-set.00004.new"));
    unlink(heft_test_path(dir, "heft-set.00002.old"));
    assert_left_alone(dir, HEFT_E_FORMAT, "are missing or were changed");
    leave_pending(&s, 7);
    heft_test_save(heft_test_path(dir, s.new.name[0]), "another program's", 17);
    heft_test_save(heft_test_path(dir, "model.safetensors.index.json"), "another program's", 17);
    assert_left_alone(dir, HEFT_E_FORMAT, "are missing or were changed");
    end(&s);
}

static void completes_a_copy_of_the_folder(void **state)
{
    uint32_t first = 0;
    const char *copy = static_path(*state, "copy");
    fixture s = begin(static_path(*state, "set"), splittable(&first), false);
    assert_int_equal(mkdir(copy, 0700), 0);
    for (unsigned calls = 0; calls < 13; calls++) {
        leave_pending(&s, calls);
        snapshot now = take_snapshot(s.task.dir);
        bool was_pending = has_journal(s.task.dir);
        restore(copy, &now);
        free_snapshot(&now);
        heft_recovery result;
        heft_error err;
        clear_failures();
        heft_assert_ok(recover(&result, copy, &err), &err);
        assert_int_equal(result, was_pending ? HEFT_RECOVERY_COMPLETED : HEFT_RECOVERY_NONE);
        assert_true(folder_is(copy, &s.new));
    }
    clear(copy);
    end(&s);
}

static void recovers_when_old_and_new_set_are_equal(void **state)
{
    uint32_t first = 0;
    fixture s = begin(static_path(*state, "set"), splittable(&first), false);
    free_snapshot(&s.old);
    s.old = take_snapshot(s.task.dir);
    for (unsigned calls = 0; calls < 14; calls++) {
        leave_pending(&s, calls);
        assert_recovers(&s);
        leave_pending(&s, calls);
        unlink(heft_test_path(s.task.dir, "heft-set.00004.new"));
        assert_recovers(&s);
    }
    end(&s);
}

/* ---- damaged and hostile journals ----------------------------------------------------------- */

static void refuses_a_damaged_journal(void **state)
{
    uint32_t first = 0;
    const char *dir = static_path(*state, "set"), *words = "is damaged";
    char path[4096];
    fixture s = begin(dir, splittable(&first), false);
    leave_pending(&s, 3);
    snprintf(path, sizeof path, "%s/heft-set.journal", dir);
    heft_bytes journal = heft_test_load(path);
    for (size_t i = 0; i < journal.len; i += 5) {
        journal.p[i] ^= 1;
        heft_test_save(path, journal.p, journal.len);
        journal.p[i] ^= 1;
        assert_left_alone(dir, HEFT_E_FORMAT, words);
        heft_test_save(path, journal.p, i);
        assert_left_alone(dir, HEFT_E_FORMAT, words);
    }
    unlink(path);
    assert_int_equal(mkdir(path, 0700), 0);
    heft_recovery result;
    heft_error err;
    heft_assert_fails(recover(&result, dir, &err), HEFT_E_FORMAT, &err, words);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(symlink("/etc/passwd", path), 0);
    heft_assert_status(recover(&result, dir, &err), HEFT_E_IO, &err);
    unlink(path);
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    assert_int_equal(ftruncate(fd, (off_t)1 << 40), 0); /* must not allocate that much memory */
    close(fd);
    heft_assert_fails(recover(&result, dir, &err), HEFT_E_FORMAT, &err, words);
    heft_test_free(&journal);
    end(&s);
}

/* Save a journal with arbitrary fields and a correct digest. */
static void save_journal(const char *dir, uint32_t version, uint32_t count, uint32_t length,
                         uint32_t replaces, const char *name)
{
    uint8_t bytes[600] = { 0 }, *to = bytes;
    to = heft_put(heft_put(heft_put_bytes(to, "HEFTSETJ", 8), version, 4), count, 4);
    to = heft_put(heft_put(to, length, 4), replaces, 4) + 2 * 40;
    to = heft_put_bytes(to, name, strlen(name)) + HEFT_SEAL;
    heft_seal(bytes, (size_t)(to - bytes));
    heft_test_save(heft_test_path(dir, "heft-set.journal"), bytes, (size_t)(to - bytes));
}

static void refuses_a_hostile_journal(void **state)
{
    static const struct {
        uint32_t count, length, replaces;
        const char *name;
    } rows[] = { { 1, 6, 0, "../x/y" },    { 1, 4, 0, "/etc" }, { 1, 2, 0, ".." },
                 { 1, 1, 0, "." },         { 1, 0, 0, "" },     { 1, 2, 0, "x" },
                 { 1, 1, 2, "x" },         { 2, 1, 0, "x" },    { 0xFFFFFFFF, 1, 0, "x" },
                 { 0, 1, 0, "x" },         { 1, 1, 0, "xy" },   { 1, 16, 0, "heft-set.journal" },
                 { 1, 0xFFFFFFFF, 0, "x" } };
    const char *dir = static_path(*state, "set");
    clear_failures();
    assert_int_equal(mkdir(dir, 0700), 0);
    heft_test_save(heft_test_path(dir, "heft-set.00001.new"), "new", 3);
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        save_journal(dir, 1, rows[i].count, rows[i].length, rows[i].replaces, rows[i].name);
        assert_left_alone(dir, HEFT_E_FORMAT, "is damaged");
    }
    save_journal(dir, 2, 1, 1, 0, "x");
    assert_left_alone(dir, HEFT_E_UNSUPPORTED, "newer heft");
    save_journal(dir, 1, 1, 1, 0, "x"); /* valid, but the staged file does not match */
    heft_recovery result;
    heft_error err;
    heft_assert_ok(recover(&result, dir, &err), &err);
    assert_int_equal(result, HEFT_RECOVERY_ROLLED_BACK);
    assert_int_equal(heft_test_dir_entries(dir), 0);
}

/* ---- other writers -------------------------------------------------------------------------- */

static void replacing_a_set_removes_edit_journals_of_its_files(void **state)
{
    uint32_t first = 0;
    heft_error err;
    const char *dir = static_path(*state, "set");
    fixture s = begin(dir, splittable(&first), false);
    char stale[4096];
    snprintf(stale, sizeof stale, "%s/model-00002-of-00003.safetensors.heft-journal", dir);
    restore(dir, &s.old);
    heft_test_save(stale, "of an edit", 10);
    heft_test_save(heft_test_path(dir, "README.heft-journal"), "of an edit", 10);
    snapshot before = take_snapshot(dir);
    s.task.flags = 0;
    heft_assert_fails(split(&s.task, &err), HEFT_E_ARGUMENT, &err, "already exists");
    assert_true(folder_is(dir, &before));
    s.task.flags = HEFT_SINK_REPLACE;
    heft_assert_ok(split(&s.task, &err), &err);
    assert_false(heft_test_exists(stale));
    assert_int_equal(unlink(heft_test_path(dir, "README.heft-journal")), 0);
    assert_true(folder_is(dir, &s.new));
    free_snapshot(&s.old);
    s.old = before;
    for (unsigned calls = 0; calls < 14; calls++) {
        heft_recovery result;
        leave_pending(&s, calls);
        clear_failures();
        heft_assert_ok(recover(&result, dir, &err), &err);
        assert_false(heft_test_exists(stale));
        assert_true(heft_test_exists(heft_test_path(dir, "README.heft-journal")));
        leave_pending(&s, calls);
        if (unlink(heft_test_path(dir, "heft-set.00003.new")))
            break;
        heft_assert_ok(recover(&result, dir, &err), &err);
        assert_int_equal(result, HEFT_RECOVERY_ROLLED_BACK);
        assert_true(folder_is(dir, &s.old));
    }
    end(&s);
}

static void refuses_a_second_writer_of_a_folder(void **state)
{
    heft_error err;
    heft_sink_dir *one, *two;
    const char *dir = static_path(*state, "set");
    heft_assert_ok(heft_sink_dir_open(&one, dir, 0, &err), &err);
    heft_assert_fails(heft_sink_dir_open(&two, dir, 0, &err), HEFT_E_IO, &err, "another program");
    assert_int_equal(err.os, EBUSY);
    heft_sink_dir_discard(one);
    heft_assert_ok(heft_sink_dir_open(&two, dir, 0, &err), &err);
    heft_sink_dir_discard(two);
}

static void every_writer_completes_an_interrupted_set(void **state)
{
    uint32_t first = 0;
    heft_error err;
    heft_sink *sink;
    heft_sink_dir *set;
    heft_edit_result r;
    heft_recovery result;
    bool undone;
    const char *dir = static_path(*state, "set");
    fixture s = begin(dir, splittable(&first), false);
    const char *shard = static_path(dir, "model-00001-of-00003.safetensors");
    for (int writer = 0; writer < 6; writer++) {
        leave_pending(&s, 5);
        assert_false(heft_test_exists(shard));
        clear_failures();
        if (writer == 0)
            heft_assert_ok(heft_sink_open_file(&sink, heft_test_path(dir, "x"), 0, &err), &err);
        else if (writer == 1)
            heft_assert_ok(heft_sink_dir_open(&set, dir, 0, &err), &err);
        else if (writer == 2)
            heft_assert_ok(heft_edit_recover(&undone, dir, &err), &err);
        else if (writer == 3)
            heft_assert_ok(heft_edit_recover(&undone, shard, &err), &err);
        else if (writer == 4)
            heft_assert_fails(heft_file_edit(&r, shard, NULL, &err), HEFT_E_UNSUPPORTED, &err,
                              "is a shard of");
        else
            heft_assert_ok(heft_sink_dir_recover(&result, dir, &err), &err);
        if (writer == 0)
            heft_sink_discard(sink);
        if (writer == 1)
            heft_sink_dir_discard(set);
        assert_true(folder_is(dir, &s.new));
    }
    leave_pending(&s, 5);
    heft_edit_options o = HEFT_EDIT_OPTIONS_INIT;
    o.dry_run = true;
    snapshot before = take_snapshot(dir);
    heft_assert_status(heft_file_edit(&r, shard, &o, &err), HEFT_E_IO, &err);
    assert_true(folder_is(dir, &before));
    free_snapshot(&before);
    end(&s);
}

static void refuses_to_write_through_links(void **state)
{
    heft_error err;
    heft_sink_dir *s;
    heft_sink *sink;
    const char *dir = static_path(*state, "set"), *outside = static_path(*state, "outside");
    heft_test_save(outside, "outside", 7);
    heft_assert_ok(heft_sink_dir_open(&s, dir, HEFT_SINK_REPLACE, &err), &err);
    assert_int_equal(symlink(outside, heft_test_path(dir, "a")), 0);
    heft_assert_fails(heft_sink_dir_add(&sink, s, "a", &err), HEFT_E_ARGUMENT, &err,
                      "symbolic link");
    heft_assert_fails(heft_sink_dir_add(&sink, s, "heft-set.00001.new", &err), HEFT_E_ARGUMENT,
                      &err, "journals");
    heft_sink_dir_discard(s);
    assert_int_equal(heft_test_dir_entries(dir), 1);
}

/* A shard is renamed when the set is complete; a pipe cannot be written under another name. */
static void refuses_to_write_into_a_pipe(void **state)
{
    heft_error err;
    heft_sink_dir *s;
    heft_sink *sink;
    const char *dir = static_path(*state, "set");
    heft_assert_ok(heft_sink_dir_open(&s, dir, HEFT_SINK_REPLACE, &err), &err);
    assert_int_equal(mkfifo(heft_test_path(dir, "a"), 0600), 0);
    int reader = open(heft_test_path(dir, "a"), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    heft_assert_fails(heft_sink_dir_add(&sink, s, "a", &err), HEFT_E_ARGUMENT, &err,
                      "a: is not a regular file");
    assert_null(sink);
    close(reader);
    heft_sink_dir_discard(s);
    assert_int_equal(heft_test_dir_entries(dir), 1);
}

#define in_dir(test) cmocka_unit_test_setup_teardown(test, heft_test_dir_make, heft_test_dir_remove)

static void a_seal_covers_all_bytes_even_of_an_empty_file(void **state)
{
    enum { SHORTEST = 8 + HEFT_SEAL };
    static const char magic[] = "heft-abc";
    uint8_t bytes[SHORTEST + 1] = { 0 };
    (void)state;
    memcpy(bytes, magic, 8);
    heft_seal(bytes, SHORTEST);
    assert_true(heft_is_sealed(bytes, SHORTEST, magic));
    assert_false(heft_is_sealed(bytes, SHORTEST + 1, magic));
    assert_false(heft_is_sealed(bytes, SHORTEST - 1, magic));
    for (size_t i = 0; i < SHORTEST; i++) {
        bytes[i] ^= 1;
        assert_false(heft_is_sealed(bytes, SHORTEST, magic));
        bytes[i] ^= 1;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        in_dir(killed_split_leaves_the_old_or_the_new_set),
        in_dir(killed_recovery_leaves_the_old_or_the_new_set),
        in_dir(failed_split_is_rolled_back),
        in_dir(rolls_back_when_staged_files_are_lost),
        in_dir(removes_staged_files_whose_first_is_missing),
        in_dir(keeps_a_folder_that_cannot_be_recovered),
        in_dir(completes_a_copy_of_the_folder),
        in_dir(recovers_when_old_and_new_set_are_equal),
        in_dir(refuses_a_damaged_journal),
        in_dir(refuses_a_hostile_journal),
        in_dir(replacing_a_set_removes_edit_journals_of_its_files),
        in_dir(refuses_a_second_writer_of_a_folder),
        in_dir(every_writer_completes_an_interrupted_set),
        in_dir(refuses_to_write_through_links),
        in_dir(refuses_to_write_into_a_pipe),
        cmocka_unit_test(a_seal_covers_all_bytes_even_of_an_empty_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
