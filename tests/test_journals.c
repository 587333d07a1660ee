/* test_journals.c - edit journals: a journal that cannot be searched for prevents opening, and
 * replacing a file removes its journal. */
#include "models.h"

#include <dlfcn.h>
#include <errno.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "port/save/sink_file.h"
#include "stopping_disk.h"

/* ---- calls that fail ------------------------------------------------------------------------ */

static struct {
    int realpath_os, stat_os;
    const char *stat_name; /* part of the file name for which fstatat() fails */
} failing;

/* Override realpath() and fstatat() of the C library. The parentheses keep the macros of
 * msan_calls.h from being expanded. */
char *(realpath)(const char *path, char *resolved)
{
    char *(*real)(const char *, char *);
    *(void **)&real = dlsym(RTLD_NEXT, "realpath");
    if (!failing.realpath_os)
        return real(path, resolved);
    errno = failing.realpath_os;
    return NULL;
}

int(fstatat)(int dir, const char *name, struct stat *out, int flags)
{
    int (*real)(int, const char *, struct stat *, int);
    *(void **)&real = dlsym(RTLD_NEXT, "fstatat64");
    if (!failing.stat_os || !strstr(name, failing.stat_name))
        return real(dir, name, out, flags);
    errno = failing.stat_os;
    return -1;
}

static void clear_failures(void)
{
    memset(&failing, 0, sizeof failing);
    memset(&heft_stop, 0, sizeof heft_stop);
}

/* ---- files ---------------------------------------------------------------------------------- */

enum { DATA = 5000 };

static heft_status can_open(const char *path, heft_error *err)
{
    heft_file *f;
    heft_status st = heft_file_open(&f, path, NULL, err);
    if (!st)
        heft_file_close(f);
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

/* Interrupt an edit, so that a half-edited file and a journal remain. */
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
    } while (!heft_test_exists(journal) || heft_test_file_is(path, model));
}

typedef struct fixture {
    char path[1024], journal[1100], note[1100];
    heft_bytes old, new;
} fixture;

static fixture begin(const char *dir)
{
    fixture s = { .old = heft_test_one("safetensors", DATA), .new = heft_test_one("mag", DATA) };
    snprintf(s.path, sizeof s.path, "%s/model", dir);
    snprintf(s.journal, sizeof s.journal, "%s.heft-journal", s.path);
    snprintf(s.note, sizeof s.note, "%s.heft-replaced", s.path);
    clear_failures();
    return s;
}

static void end(fixture *s)
{
    heft_test_free(&s->old);
    heft_test_free(&s->new);
    clear_failures();
}

/* ---- failing searches ----------------------------------------------------------------------- */

static void refuses_to_open_when_the_journal_search_fails(void **state)
{
    static const int errors[] = { EIO, ENOMEM, EACCES, ENOENT, ELOOP };
    fixture s = begin(*state);
    heft_error err;
    for (int half = 0; half < 2; half++)
        for (size_t i = 0; i < HEFT_COUNT(errors); i++) {
            clear_failures();
            heft_test_save(s.path, s.old.p, s.old.len);
            if (half)
                leave_half_edited(s.path, s.old);
            failing.realpath_os = errors[i];
            heft_assert_fails(can_open(s.path, &err), HEFT_E_IO, &err, "cannot be resolved");
            clear_failures();
            failing.stat_os = errors[i];
            failing.stat_name = "heft-journal";
            if (errors[i] != ENOENT)
                heft_assert_fails(can_open(s.path, &err), HEFT_E_IO, &err, "cannot be searched");
            failing.stat_name = "heft-set.journal";
            if (errors[i] != ENOENT)
                heft_assert_fails(can_open(s.path, &err), HEFT_E_IO, &err, "cannot be searched");
        }
    end(&s);
}

static void opens_an_unlinked_file(void **state)
{
    fixture s = begin(*state);
    char fd_path[64];
    heft_error err;
    heft_test_save(s.path, s.old.p, s.old.len);
    FILE *f = fopen(s.path, "rb");
    snprintf(fd_path, sizeof fd_path, "/proc/self/fd/%d", fileno(f));
    heft_assert_ok(can_open(fd_path, &err), &err);
    assert_int_equal(unlink(s.path), 0);
    heft_assert_ok(can_open(fd_path, &err), &err);
    fclose(f);
    end(&s);
}

static void refuses_a_half_edited_shard(void **state)
{
    static const char index[] = "{\"metadata\": {}, \"weight_map\": {\"w\": \"model\"}}";
    const char *index_path = heft_test_path(*state, "m.safetensors.index.json");
    fixture s = begin(*state);
    heft_error err;
    heft_file *f;
    heft_test_save(s.path, s.old.p, s.old.len);
    leave_half_edited(s.path, s.old); /* before an index lists the file: shards are not edited */
    heft_bytes half = heft_test_load(s.path), journal = heft_test_load(s.journal);
    heft_test_save(index_path, index, sizeof index - 1);
    heft_test_save(s.path, s.old.p, s.old.len);
    assert_int_equal(unlink(s.journal), 0);
    heft_assert_ok(heft_file_open(&f, index_path, NULL, &err), &err);
    heft_assert_ok(heft_file_is_complete(f, &err), &err);
    heft_file_close(f);
    heft_test_save(s.path, half.p, half.len);
    heft_test_save(s.journal, journal.p, journal.len);
    heft_status st = heft_file_open(&f, index_path, NULL, &err);
    if (!st)
        st = heft_file_is_complete(f, &err);
    heft_assert_fails(st, HEFT_E_IO, &err, "journal");
    heft_file_close(f);
    heft_test_free(&half);
    heft_test_free(&journal);
    end(&s);
}

/* ---- rolling back ------------------------------------------------------------------------- */

typedef struct change {
    const char *path;
    bool sets; /* else unset */
    heft_test_host host;
} change;

static heft_status set_or_unset(const heft_disk *disk, const change *c, heft_error *err)
{
    heft_value license = {
        .kind = HEFT_KIND_STR,
        .key = heft_test_str("license"),
        .as.s =
            heft_test_str("a license with so long a name that the manifest grows by some bytes"),
    };
    heft_edit_options o = HEFT_EDIT_OPTIONS_INIT;
    o.host = &c->host.host;
    o.set = &license;
    o.set_count = c->sets;
    o.unset = &license.key;
    o.unset_count = !c->sets;
    return heft_edit_file_on(disk, NULL, c->path, &o, err);
}

static heft_status do_change(void *ctx)
{
    heft_error err;
    return set_or_unset(&heft_stopping_disk, ctx, &err);
}

/* Change each byte of a half-edited file: a byte that the edit covers must prevent the rollback,
 * unless it is the old or the new byte, or a zero past the old end. */
static void assert_bytes_are_checked(const fixture *s, heft_bytes half)
{
    heft_error err;
    bool undone;
    heft_bytes journal = heft_test_load(s->journal);
    for (size_t i = 0; i < half.len; i++) {
        uint8_t byte = half.p[i] ^ 0x5A;
        bool is_old = i < s->old.len && byte == s->old.p[i];
        bool is_new = i < s->new.len &&byte == s->new.p[i];
        bool changes = i >= s->old.len || i >= s->new.len || s->old.p[i] != s->new.p[i];
        if (!changes || is_old || is_new || (i >= s->old.len && !byte))
            continue;
        half.p[i] ^= 0x5A;
        heft_test_save(s->path, half.p, half.len);
        heft_assert_fails(heft_edit_recover(&undone, s->path, &err), HEFT_E_FORMAT, &err,
                          "was changed after the interrupted edit");
        assert_true(heft_test_file_is(s->path, half) && heft_test_file_is(s->journal, journal));
        half.p[i] ^= 0x5A;
    }
    heft_test_save(s->path, half.p, half.len);
    heft_test_free(&journal);
}

/* The edit from s->old to s->new is killed at each call. */
static void check_rollbacks(const fixture *s, change *c)
{
    heft_error err;
    bool killed = true, undone;
    unsigned checked = 0;
    for (unsigned n = 1; killed; n++) {
        heft_test_save(s->path, s->old.p, s->old.len);
        killed = heft_test_is_killed(HEFT_KILLED, n, do_change, c);
        if (!killed || !heft_test_exists(s->journal))
            continue;
        heft_bytes half = heft_test_load(s->path);
        assert_bytes_are_checked(s, half);
        checked++;
        heft_assert_ok(heft_edit_recover(&undone, s->path, &err), &err);
        assert_true(undone && heft_test_file_is(s->path, s->old));
        heft_test_free(&half);
    }
    assert_true(checked > 1 && heft_test_file_is(s->path, s->new));
}

static void rolls_back_only_a_file_in_the_middle_of_the_edit(void **state)
{
    fixture s = begin(*state);
    heft_error err;
    change c = { .path = s.path, .sets = true };
    heft_test_host_init(&c.host, 1);
    heft_test_free(&s.old);
    heft_test_free(&s.new);
    s.old = heft_test_one("ztensor", 200);
    heft_test_save(s.path, s.old.p, s.old.len);
    heft_assert_ok(set_or_unset(&heft_system_disk, &c, &err), &err);
    s.new = heft_test_load(s.path);
    assert_true(s.new.len > s.old.len);
    check_rollbacks(&s, &c);
    c.sets = false; /* the file shrinks */
    heft_bytes longer = s.new;
    s.new = s.old;
    s.old = longer;
    check_rollbacks(&s, &c);
    end(&s);
}

/* ---- replacing ------------------------------------------------------------------------------ */

static heft_status replace(const fixture *s, heft_error *err)
{
    heft_sink *sink;
    heft_status st = heft_file_sink_open(&sink, &heft_stopping_disk, s->path, HEFT_SINK_REPLACE,
                                         err);
    if (st)
        return st;
    st = sink->ops->write_at(sink, 0, s->new.p, s->new.len, err);
    if (!st)
        return sink->ops->finish(sink, err);
    heft_sink_discard(sink);
    return st;
}

static heft_status do_replace(void *ctx)
{
    heft_error err;
    return replace(ctx, &err);
}

typedef enum journal_kind { VALID, DAMAGED, OF_THE_NEW_FILE, OF_NO_FILE, KINDS } journal_kind;

/* Leave an interrupted edit. OF_THE_NEW_FILE: a rollback would damage the new file. */
static void set_up(fixture *s, journal_kind kind)
{
    memset(&heft_stop, 0, sizeof heft_stop);
    unlink(s->note);
    leave_half_edited(s->path, kind == OF_THE_NEW_FILE ? s->new : s->old);
    if (kind == DAMAGED)
        heft_test_save(s->journal, "no journal", 10);
    if (kind == OF_NO_FILE)
        assert_int_equal(unlink(s->path), 0);
}

/* Either the old file and the journal are unchanged, or the new file opens and stays unchanged. */
static void assert_old_or_new(fixture *s, heft_bytes half, heft_bytes journal)
{
    heft_error err;
    bool undone, is_new = heft_test_exists(s->path) && heft_test_file_is(s->path, s->new);
    memset(&heft_stop, 0, sizeof heft_stop);
    if (!is_new) {
        assert_true(half.p ? heft_test_file_is(s->path, half) : !heft_test_exists(s->path));
        assert_true(heft_test_file_is(s->journal, journal));
        if (half.p)
            heft_assert_fails(can_open(s->path, &err), HEFT_E_IO, &err, "journal");
        return;
    }
    heft_assert_ok(can_open(s->path, &err), &err);
    heft_assert_ok(heft_edit_recover(&undone, s->path, &err), &err);
    assert_true(heft_test_file_is(s->path, s->new));
    heft_assert_ok(can_open(s->path, &err), &err);
    assert_false(heft_test_exists(s->journal) || heft_test_exists(s->note));
}

static heft_bytes load_if_exists(const char *path)
{
    return heft_test_exists(path) ? heft_test_load(path) : (heft_bytes){ NULL, 0 };
}

static void replacing_a_file_removes_its_journal(void **state)
{
    fixture s = begin(*state);
    heft_error err;
    for (journal_kind kind = VALID; kind < KINDS; kind++) {
        set_up(&s, kind);
        heft_assert_ok(replace(&s, &err), &err);
        assert_true(heft_test_file_is(s.path, s.new));
        heft_assert_ok(can_open(s.path, &err), &err);
        assert_int_equal(heft_test_dir_entries(*state), 1);
    }
    end(&s);
}

static void replacing_survives_a_kill_at_every_call(void **state)
{
    fixture s = begin(*state);
    heft_error err;
    for (journal_kind kind = VALID; kind < KINDS; kind++) {
        set_up(&s, kind);
        heft_bytes half = load_if_exists(s.path), journal = heft_test_load(s.journal);
        bool killed = true;
        for (unsigned n = 1; killed; n++) {
            unlink(s.path);
            unlink(s.note);
            if (half.p)
                heft_test_save(s.path, half.p, half.len);
            heft_test_save(s.journal, journal.p, journal.len);
            killed = heft_test_is_killed(HEFT_KILLED, n, do_replace, &s);
            assert_old_or_new(&s, half, journal);
            heft_assert_ok(replace(&s, &err), &err);
            assert_true(heft_test_file_is(s.path, s.new));
            heft_assert_ok(can_open(s.path, &err), &err);
        }
        heft_test_free(&half);
        heft_test_free(&journal);
    }
    end(&s);
}

static void replacing_survives_a_failure_of_every_call(void **state)
{
    fixture s = begin(*state);
    for (heft_disk_failure what = HEFT_FAILS_ONCE; what <= HEFT_FAILS_FROM; what++) {
        set_up(&s, VALID);
        heft_bytes half = heft_test_load(s.path), journal = heft_test_load(s.journal);
        bool was_reached = true;
        for (unsigned n = 1; was_reached; n++) {
            heft_error err;
            unlink(s.path);
            unlink(s.note);
            heft_test_save(s.path, half.p, half.len);
            heft_test_save(s.journal, journal.p, journal.len);
            heft_stop = (heft_stopping){ .failure = what, .at = n, .os = EIO };
            heft_status st = replace(&s, &err);
            was_reached = heft_stop.calls >= n;
            if (st)
                heft_assert_status(st, HEFT_E_IO, &err);
            else
                assert_true(heft_test_file_is(s.path, s.new));
            assert_old_or_new(&s, half, journal);
        }
        heft_test_free(&half);
        heft_test_free(&journal);
    }
    end(&s);
}

static void refuses_to_replace_a_file_that_is_being_edited(void **state)
{
    fixture s = begin(*state);
    heft_error err;
    set_up(&s, VALID);
    heft_bytes half = heft_test_load(s.path), journal = heft_test_load(s.journal);
    FILE *f = fopen(s.path, "rb");
    assert_int_equal(flock(fileno(f), LOCK_EX), 0);
    heft_assert_fails(replace(&s, &err), HEFT_E_IO, &err, "another program is editing");
    fclose(f);
    assert_old_or_new(&s, half, journal);
    assert_int_equal(heft_test_dir_entries(*state), 2);
    heft_test_free(&half);
    heft_test_free(&journal);
    end(&s);
}

/* A note about a replaced file applies to one file with unchanged content only. */
static void refuses_a_note_about_another_file(void **state)
{
    fixture s = begin(*state);
    heft_error err;
    unsigned n = 0;
    bool killed = true;
    do { /* until the new file is in place while the journal still exists */
        set_up(&s, VALID);
        killed = heft_test_is_killed(HEFT_KILLED, ++n, do_replace, &s);
    } while (killed && !(heft_test_file_is(s.path, s.new) && heft_test_exists(s.journal)));
    assert_true(killed && heft_test_exists(s.note));
    heft_assert_ok(can_open(s.path, &err), &err);
    heft_bytes note = heft_test_load(s.note);
    for (size_t i = 0; i < note.len; i++) {
        note.p[i] ^= 1;
        heft_test_save(s.note, note.p, note.len);
        note.p[i] ^= 1;
        heft_assert_fails(can_open(s.path, &err), HEFT_E_IO, &err, "journal");
        heft_test_save(s.note, note.p, i);
        heft_assert_fails(can_open(s.path, &err), HEFT_E_IO, &err, "journal");
    }
    heft_test_save(s.note, note.p, note.len);
    heft_assert_ok(can_open(s.path, &err), &err);
    const char *copy = heft_test_path(*state, "copy");
    heft_test_save(copy, s.new.p, s.new.len);
    assert_int_equal(rename(copy, s.path), 0); /* a different file with the same bytes */
    heft_assert_fails(can_open(s.path, &err), HEFT_E_IO, &err, "journal");
    heft_test_free(&note);
    end(&s);
}

#define in_dir(test) cmocka_unit_test_setup_teardown(test, heft_test_dir_make, heft_test_dir_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        in_dir(refuses_to_open_when_the_journal_search_fails),
        in_dir(opens_an_unlinked_file),
        in_dir(refuses_a_half_edited_shard),
        in_dir(rolls_back_only_a_file_in_the_middle_of_the_edit),
        in_dir(replacing_a_file_removes_its_journal),
        in_dir(replacing_survives_a_kill_at_every_call),
        in_dir(replacing_survives_a_failure_of_every_call),
        in_dir(refuses_to_replace_a_file_that_is_being_edited),
        in_dir(refuses_a_note_about_another_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
