/* test_shard_sets.c - files of a folder appear together: killed at every call of the system, with every call failing, and
 * with journals that nobody should believe. */
#include "models.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "port/sealed.h"
#include "port/set_journal.h"
#include "port/sink_file.h"
#include "stopping_disk.h"

/* ---- folders --------------------------------------------------------------------------------- */

enum { MOST = 24 };

typedef struct snapshot { /* all files of a folder, by name */
    char name[MOST][64];
    heft_bytes bytes[MOST];
    size_t count;
} snapshot;

/* heft_test_path() for a name that is used for as long as the test runs, of which there are few. */
static const char *lasting(const char *dir, const char *name)
{
    static char names[8][4096];
    static size_t next;
    char *to = names[next++ % HEFT_COUNT(names)];
    return strcpy(to, heft_test_path(dir, name));
}

static void forget(snapshot *s)
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

static snapshot snap(const char *dir)
{
    snapshot s = { .count = 0 };
    struct dirent *e;
    DIR *d = opendir(dir);
    while (d && (e = readdir(d))) {
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
            continue;
        assert_true(s.count < MOST && strlen(e->d_name) < sizeof s.name[0]);
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
    snapshot now = snap(dir);
    bool same = is_same(&now, want);
    forget(&now);
    return same;
}

static bool has_journal(const char *dir)
{
    return heft_test_exists(heft_test_path(dir, "heft-set.journal"));
}

/* ---- sets ------------------------------------------------------------------------------------ */

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
    heft_recovery how;
    heft_error err;
    return recover(&how, ((const task *)ctx)->dir, &err);
}

static void no_trouble(void)
{
    memset(&heft_stop, 0, sizeof heft_stop);
}

/* Six tensors of the same names and sizes for either seed, so that a mixture would be a model, too. */
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

typedef struct scene { /* what a folder holds before and after a split */
    task task;
    snapshot old, new;
    unsigned journal_at; /* the first call at which the journal has its name; 0: not known yet */
} scene;

static scene scene_of(const char *dir, const heft_format *format, bool is_new)
{
    heft_error err;
    scene s = { .task = { dir, format, model_of(1), HEFT_SINK_REPLACE } };
    mkdir(dir, 0700);
    no_trouble();
    if (!is_new) {
        heft_assert_ok(split(&s.task, &err), &err);
        heft_test_save(heft_test_path(dir, "README"), "stays", 5);
        heft_test_save(heft_test_path(dir, "other-00001-of-00001.bin"), "stays", 5);
    }
    heft_test_free(&s.task.model);
    s.task.model = model_of(2);
    s.old = snap(dir);
    heft_assert_ok(split(&s.task, &err), &err);
    s.new = snap(dir);
    assert_false(is_same(&s.old, &s.new));
    return s;
}

static void end_scene(scene *s)
{
    clear(s->task.dir);
    forget(&s->old);
    forget(&s->new);
    heft_test_free(&s->task.model);
}

static const heft_format *splittable(size_t *i)
{
    while (*i < heft_format_count() && !heft_format_can_split(heft_format_at(*i)))
        ++*i;
    return *i < heft_format_count() ? heft_format_at((*i)++) : NULL;
}

/* That format is tested in all ways, the others in some. */
static bool is_thorough(const heft_format *format)
{
    return format == heft_format_find("safetensors");
}

static void assert_pending(const char *path)
{
    heft_error err;
    heft_file *f;
    heft_assert_fails(heft_file_open(&f, path, NULL, &err), HEFT_E_IO, &err, "heft-set.journal");
}

/* Without a journal the folder is the old one or the new one; with it, no file of it is read. */
static void assert_not_a_mixture(const scene *s)
{
    const char *dir = s->task.dir;
    snapshot now = snap(dir);
    if (has_journal(dir)) {
        assert_pending(dir);
        for (size_t i = 0; i < s->new.count; i++)
            assert_pending(heft_test_path(dir, s->new.name[i]));
    } else {
        for (size_t i = 0; i < now.count; i++) /* staged files mean nothing */
            if (!strncmp(now.name[i], "heft-set.", 9))
                assert_int_equal(unlink(heft_test_path(dir, now.name[i])), 0);
        assert_true(folder_is(dir, &s->old) || folder_is(dir, &s->new));
        restore(dir, &now);
    }
    forget(&now);
}

static void assert_mended(const scene *s)
{
    heft_recovery how;
    heft_error err;
    no_trouble();
    bool was_pending = has_journal(s->task.dir);
    heft_assert_ok(recover(&how, s->task.dir, &err), &err);
    assert_int_equal(how != HEFT_RECOVERY_NONE, was_pending);
    assert_true(folder_is(s->task.dir, &s->old) || folder_is(s->task.dir, &s->new));
    if (was_pending)
        assert_true(folder_is(s->task.dir, how == HEFT_RECOVERY_COMPLETED ? &s->new : &s->old));
}

/* ---- killed ---------------------------------------------------------------------------------- */

static void kill_everywhere(scene *s, heft_disk_failure what)
{
    heft_error err;
    bool killed = true;
    unsigned n = 0, pending = 0;
    unsigned most_quiet = what == HEFT_TORN ? 12 : 1; /* only writes are torn */
    for (unsigned quiet = 0; quiet < most_quiet; quiet = killed ? 0 : quiet + 1) {
        restore(s->task.dir, &s->old);
        no_trouble();
        killed = heft_test_is_killed(what, ++n, do_split, &s->task);
        pending += has_journal(s->task.dir);
        assert_not_a_mixture(s);
        assert_mended(s);
        heft_assert_ok(split(&s->task, &err), &err);
        assert_true(folder_is(s->task.dir, &s->new));
    }
    assert_true(what == HEFT_TORN || pending > s->new.count - s->old.count);
}

static void a_killed_set_is_the_old_one_or_the_new_one(void **state)
{
    const heft_format *format;
    for (size_t i = 0; (format = splittable(&i));)
        for (int is_new = 0; is_new < 2; is_new++) {
            if (is_new && !is_thorough(format))
                break;
            scene s = scene_of(lasting(*state, "set"), format, is_new);
            kill_everywhere(&s, HEFT_KILLED);
            if (is_thorough(format))
                kill_everywhere(&s, HEFT_TORN);
            end_scene(&s);
        }
}

/* The folder of a set that was killed so many calls after its journal had its name. */
static void leave_pending(scene *s, unsigned calls)
{
    for (unsigned n = 1; !s->journal_at; n++) {
        restore(s->task.dir, &s->old);
        no_trouble();
        assert_true(heft_test_is_killed(HEFT_KILLED, n, do_split, &s->task));
        s->journal_at = has_journal(s->task.dir) ? n : 0;
    }
    restore(s->task.dir, &s->old);
    no_trouble();
    (void)heft_test_is_killed(HEFT_KILLED, s->journal_at + calls, do_split, &s->task);
}

static void mending_may_be_killed_as_well(void **state)
{
    enum { PLACES = 14 };
    size_t first = 0;
    scene s = scene_of(lasting(*state, "set"), splittable(&first), false);
    for (unsigned calls = 0; calls < PLACES; calls++)
        for (int loses = 0; loses < 2; loses++) {
            bool killed = true;
            leave_pending(&s, calls);
            if (loses) /* nobody can complete it */
                unlink(heft_test_path(s.task.dir, "heft-set.00004.new"));
            snapshot pending = snap(s.task.dir);
            for (unsigned n = 1; killed; n++) {
                restore(s.task.dir, &pending);
                no_trouble();
                killed = heft_test_is_killed(HEFT_KILLED, n, do_recover, &s.task);
                assert_not_a_mixture(&s);
                assert_mended(&s);
            }
            forget(&pending);
        }
    end_scene(&s);
}

/* ---- failing --------------------------------------------------------------------------------- */

static void fail_everywhere(scene *s, heft_disk_failure what, int os)
{
    heft_error err;
    bool was_reached = true;
    for (unsigned n = 1; was_reached; n++) {
        restore(s->task.dir, &s->old);
        no_trouble();
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
        assert_mended(s);
    }
}

static void an_error_undoes_the_set(void **state)
{
    const heft_format *format;
    for (size_t i = 0; (format = splittable(&i));)
        for (int is_new = 0; is_new < 2; is_new++) {
            if (is_new && !is_thorough(format))
                break;
            scene s = scene_of(lasting(*state, "set"), format, is_new);
            fail_everywhere(&s, HEFT_FAILS_ONCE, EIO);
            if (is_thorough(format))
                fail_everywhere(&s, HEFT_FAILS_ONCE, ENOSPC);
            fail_everywhere(&s, HEFT_FAILS_FROM, EIO);
            end_scene(&s);
        }
}

/* ---- folders that others have touched --------------------------------------------------------- */

static void assert_left_alone(const char *dir, heft_status status, const char *words)
{
    heft_recovery how;
    heft_error err;
    heft_sink_dir *s;
    heft_sink *sink;
    snapshot before = snap(dir);
    heft_status st = recover(&how, dir, &err);
    heft_assert_fails(st, status, &err, words);
    assert_int_equal(how, HEFT_RECOVERY_NONE);
    heft_assert_fails(heft_sink_dir_open(&s, dir, HEFT_SINK_REPLACE, &err), status, &err, words);
    heft_assert_fails(heft_sink_open_file(&sink, heft_test_path(dir, "x"), 0, &err), status, &err,
                      words);
    assert_pending(dir);
    assert_true(folder_is(dir, &before));
    forget(&before);
}

static void staged_files_that_are_lost_bring_the_old_ones_back(void **state)
{
    size_t first = 0;
    scene s = scene_of(lasting(*state, "set"), splittable(&first), false);
    const char *last = lasting(s.task.dir, "heft-set.00003.new");
    for (unsigned calls = 0; calls < 9; calls++)
        for (int is_cut = 0; is_cut < 2; is_cut++) {
            leave_pending(&s, calls);
            if (!heft_test_exists(last))
                continue;
            assert_int_equal(is_cut ? truncate(last, 3) : unlink(last), 0);
            assert_not_a_mixture(&s);
            assert_mended(&s);
            assert_true(folder_is(s.task.dir, &s.old));
        }
    end_scene(&s);
}

static void what_can_neither_be_completed_nor_undone_is_left_alone(void **state)
{
    size_t first = 0;
    const char *dir = lasting(*state, "set");
    scene s = scene_of(dir, splittable(&first), false);
    leave_pending(&s, 7); /* one of the new files has its name */
    assert_true(heft_test_exists(heft_test_path(dir, "heft-set.00004.new")));
    unlink(heft_test_path(dir, "heft-set.00004.new"));
    unlink(heft_test_path(dir, "heft-set.00002.old"));
    assert_left_alone(dir, HEFT_E_FORMAT, "are missing or were changed");
    leave_pending(&s, 7);
    heft_test_save(heft_test_path(dir, s.new.name[0]), "another program's", 17);
    heft_test_save(heft_test_path(dir, "model.safetensors.index.json"), "another program's", 17);
    assert_left_alone(dir, HEFT_E_FORMAT, "are missing or were changed");
    end_scene(&s);
}

static void a_copy_of_the_folder_is_completed_as_well(void **state)
{
    size_t first = 0;
    const char *copy = lasting(*state, "copy");
    scene s = scene_of(lasting(*state, "set"), splittable(&first), false);
    assert_int_equal(mkdir(copy, 0700), 0);
    for (unsigned calls = 0; calls < 13; calls++) {
        leave_pending(&s, calls);
        snapshot now = snap(s.task.dir);
        bool was_pending = has_journal(s.task.dir);
        restore(copy, &now);
        forget(&now);
        heft_recovery how;
        heft_error err;
        no_trouble();
        heft_assert_ok(recover(&how, copy, &err), &err);
        assert_int_equal(how, was_pending ? HEFT_RECOVERY_COMPLETED : HEFT_RECOVERY_NONE);
        assert_true(folder_is(copy, &s.new));
    }
    clear(copy);
    end_scene(&s);
}

static void the_same_set_again_is_recognised(void **state)
{
    size_t first = 0;
    scene s = scene_of(lasting(*state, "set"), splittable(&first), false);
    forget(&s.old);
    s.old = snap(s.task.dir);
    for (unsigned calls = 0; calls < 14; calls++) {
        leave_pending(&s, calls);
        assert_mended(&s);
        leave_pending(&s, calls);
        unlink(heft_test_path(s.task.dir, "heft-set.00004.new"));
        assert_mended(&s);
    }
    end_scene(&s);
}

/* ---- journals that cannot be believed --------------------------------------------------------- */

static void a_damaged_journal_is_refused(void **state)
{
    size_t first = 0;
    const char *dir = lasting(*state, "set"), *words = "is damaged";
    char path[4096];
    scene s = scene_of(dir, splittable(&first), false);
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
    heft_recovery how;
    heft_error err;
    heft_assert_fails(recover(&how, dir, &err), HEFT_E_FORMAT, &err, words);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(symlink("/etc/passwd", path), 0);
    heft_assert_status(recover(&how, dir, &err), HEFT_E_IO, &err);
    unlink(path);
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    assert_int_equal(ftruncate(fd, (off_t)1 << 40), 0); /* no memory for that is asked for */
    close(fd);
    heft_assert_fails(recover(&how, dir, &err), HEFT_E_FORMAT, &err, words);
    heft_test_free(&journal);
    end_scene(&s);
}

/* A journal as a stranger may have made it, with a right digest. */
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

static void a_hostile_journal_is_refused(void **state)
{
    static const struct {
        uint32_t count, length, replaces;
        const char *name;
    } rows[] = { { 1, 6, 0, "../x/y" },    { 1, 4, 0, "/etc" }, { 1, 2, 0, ".." },
                 { 1, 1, 0, "." },         { 1, 0, 0, "" },     { 1, 2, 0, "x" },
                 { 1, 1, 2, "x" },         { 2, 1, 0, "x" },    { 0xFFFFFFFF, 1, 0, "x" },
                 { 0, 1, 0, "x" },         { 1, 1, 0, "xy" },   { 1, 16, 0, "heft-set.journal" },
                 { 1, 0xFFFFFFFF, 0, "x" } };
    const char *dir = lasting(*state, "set");
    no_trouble();
    assert_int_equal(mkdir(dir, 0700), 0);
    heft_test_save(heft_test_path(dir, "heft-set.00001.new"), "new", 3);
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        save_journal(dir, 1, rows[i].count, rows[i].length, rows[i].replaces, rows[i].name);
        assert_left_alone(dir, HEFT_E_FORMAT, "is damaged");
    }
    save_journal(dir, 2, 1, 1, 0, "x");
    assert_left_alone(dir, HEFT_E_UNSUPPORTED, "newer heft");
    save_journal(dir, 1, 1, 1, 0, "x"); /* good, and of a file that is not the staged one */
    heft_recovery how;
    heft_error err;
    heft_assert_ok(recover(&how, dir, &err), &err);
    assert_int_equal(how, HEFT_RECOVERY_ROLLED_BACK);
    assert_int_equal(heft_test_dir_entries(dir), 0);
}

/* ---- neighbours -------------------------------------------------------------------------------- */

static void journals_of_edits_go_with_the_files_they_are_of(void **state)
{
    size_t first = 0;
    heft_error err;
    const char *dir = lasting(*state, "set");
    scene s = scene_of(dir, splittable(&first), false);
    char stale[4096];
    snprintf(stale, sizeof stale, "%s/model-00002-of-00003.safetensors.heft-journal", dir);
    restore(dir, &s.old);
    heft_test_save(stale, "of an edit", 10);
    heft_test_save(heft_test_path(dir, "README.heft-journal"), "of an edit", 10);
    snapshot before = snap(dir);
    s.task.flags = 0;
    heft_assert_fails(split(&s.task, &err), HEFT_E_ARGUMENT, &err, "already exists");
    assert_true(folder_is(dir, &before));
    s.task.flags = HEFT_SINK_REPLACE;
    heft_assert_ok(split(&s.task, &err), &err);
    assert_false(heft_test_exists(stale));
    assert_int_equal(unlink(heft_test_path(dir, "README.heft-journal")), 0);
    assert_true(folder_is(dir, &s.new));
    forget(&s.old);
    s.old = before;
    for (unsigned calls = 0; calls < 14; calls++) {
        heft_recovery how;
        leave_pending(&s, calls);
        no_trouble();
        heft_assert_ok(recover(&how, dir, &err), &err);
        assert_false(heft_test_exists(stale));
        assert_true(heft_test_exists(heft_test_path(dir, "README.heft-journal")));
        leave_pending(&s, calls);
        if (unlink(heft_test_path(dir, "heft-set.00003.new")))
            break;
        heft_assert_ok(recover(&how, dir, &err), &err);
        assert_int_equal(how, HEFT_RECOVERY_ROLLED_BACK);
        assert_true(folder_is(dir, &s.old));
    }
    end_scene(&s);
}

static void one_set_at_a_time_is_written_into_a_folder(void **state)
{
    heft_error err;
    heft_sink_dir *one, *two;
    const char *dir = lasting(*state, "set");
    heft_assert_ok(heft_sink_dir_open(&one, dir, 0, &err), &err);
    heft_assert_fails(heft_sink_dir_open(&two, dir, 0, &err), HEFT_E_IO, &err, "another program");
    assert_int_equal(err.os, EBUSY);
    heft_sink_dir_discard(one);
    heft_assert_ok(heft_sink_dir_open(&two, dir, 0, &err), &err);
    heft_sink_dir_discard(two);
}

static void every_writer_completes_what_was_interrupted(void **state)
{
    size_t first = 0;
    heft_error err;
    heft_sink *sink;
    heft_sink_dir *set;
    heft_edit_result r;
    heft_recovery how;
    bool undone;
    const char *dir = lasting(*state, "set");
    scene s = scene_of(dir, splittable(&first), false);
    const char *shard = lasting(dir, "model-00001-of-00003.safetensors");
    for (int who = 0; who < 6; who++) {
        leave_pending(&s, 5);
        assert_false(heft_test_exists(shard));
        no_trouble();
        if (who == 0)
            heft_assert_ok(heft_sink_open_file(&sink, heft_test_path(dir, "x"), 0, &err), &err);
        else if (who == 1)
            heft_assert_ok(heft_sink_dir_open(&set, dir, 0, &err), &err);
        else if (who == 2)
            heft_assert_ok(heft_edit_recover(&undone, dir, &err), &err);
        else if (who == 3)
            heft_assert_ok(heft_edit_recover(&undone, shard, &err), &err);
        else if (who == 4)
            heft_assert_fails(heft_file_edit(&r, shard, NULL, &err), HEFT_E_UNSUPPORTED, &err,
                              "is a shard of");
        else
            heft_assert_ok(heft_sink_dir_recover(&how, dir, &err), &err);
        if (who == 0)
            heft_sink_discard(sink);
        if (who == 1)
            heft_sink_dir_discard(set);
        assert_true(folder_is(dir, &s.new));
    }
    leave_pending(&s, 5);
    heft_edit_options o = HEFT_EDIT_OPTIONS_INIT;
    o.dry_run = true;
    snapshot before = snap(dir);
    heft_assert_status(heft_file_edit(&r, shard, &o, &err), HEFT_E_IO, &err);
    assert_true(folder_is(dir, &before));
    forget(&before);
    end_scene(&s);
}

static void links_are_not_written_through(void **state)
{
    heft_error err;
    heft_sink_dir *s;
    heft_sink *sink;
    const char *dir = lasting(*state, "set"), *outside = lasting(*state, "outside");
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

#define in_dir(test) cmocka_unit_test_setup_teardown(test, heft_test_dir_make, heft_test_dir_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        in_dir(a_killed_set_is_the_old_one_or_the_new_one),
        in_dir(mending_may_be_killed_as_well),
        in_dir(an_error_undoes_the_set),
        in_dir(staged_files_that_are_lost_bring_the_old_ones_back),
        in_dir(what_can_neither_be_completed_nor_undone_is_left_alone),
        in_dir(a_copy_of_the_folder_is_completed_as_well),
        in_dir(the_same_set_again_is_recognised),
        in_dir(a_damaged_journal_is_refused),
        in_dir(a_hostile_journal_is_refused),
        in_dir(journals_of_edits_go_with_the_files_they_are_of),
        in_dir(one_set_at_a_time_is_written_into_a_folder),
        in_dir(every_writer_completes_what_was_interrupted),
        in_dir(links_are_not_written_through),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
