/* test_append.c - tests of heft_file_append(): the append is complete or has no effect, even if the
 * program is killed, a call fails or memory runs out. */
#include "models.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stopping_disk.h"

enum { DATA = 5000, MORE = 9000 };

static bool has_journal(const char *path)
{
    char name[1100];
    snprintf(name, sizeof name, "%s.heft-journal", path);
    return heft_test_exists(name);
}

/* Return a file with two tensors to append. */
static heft_bytes more_of(const char *format)
{
    static const test_tensor tensors[] = { { "v", HEFT_F32, 2, { MORE / 12, 3 } },
                                           { "u", HEFT_F32, 1, { 4 } } };
    return heft_test_model(format, tensors, HEFT_COUNT(tensors));
}

static heft_status append(const heft_disk *disk, const char *path, heft_bytes more,
                          const heft_append_options *opt, heft_append_result *r, heft_error *err)
{
    heft_write_options write = HEFT_WRITE_OPTIONS_INIT;
    heft_convert_options convert = HEFT_CONVERT_OPTIONS_INIT;
    heft_append_options o = HEFT_APPEND_OPTIONS_INIT;
    heft_test_host host;
    heft_file *from;
    heft_test_host_init(&host, 1);
    o = opt ? *opt : o;
    convert = o.convert ? *o.convert : convert;
    o.convert = &convert;
    convert.write = &write;
    write.host = &host.host;
    heft_assert_ok(heft_test_open(&from, more, &host.host, err), err);
    heft_status st = heft_append_file_on(disk, r, path, from, &o, err);
    heft_file_close(from);
    return st;
}

/* ---- scenarios: a file before and after the append ------------------------------------------- */

typedef struct scenario {
    const char *dir, *path;
    heft_bytes old, new; /* the file before and after the append */
    heft_bytes more;     /* the file with the tensors to append */
    bool no_copy, no_unnamed;
} scenario;

static heft_bytes zt2_file(void)
{
    static const test_tensor w = { "w", HEFT_F32, 1, { DATA / 4 } };
    heft_write_options write = HEFT_WRITE_OPTIONS_INIT;
    heft_convert_options o = HEFT_CONVERT_OPTIONS_INIT;
    o.write = &write;
    write.version = "2";
    write.align = 4096;
    return heft_test_converted("safetensors", &w, 1, "ztensor", &o);
}

static void reset_disk(void)
{
    memset(&heft_stop, 0, sizeof heft_stop);
}

static scenario begin_scenario(const char *dir, size_t kind)
{
    scenario s = { .dir = dir, .path = heft_test_path(dir, "model") };
    const char *format = kind ? heft_test_editable(kind - 1) : "ztensor";
    heft_error err;
    reset_disk();
    if (!format)
        return s;
    s.old = kind ? heft_test_one(format, DATA) : zt2_file();
    s.more = more_of("safetensors");
    heft_test_save(s.path, s.old.p, s.old.len);
    heft_assert_ok(append(&heft_system_disk, s.path, s.more, NULL, NULL, &err), &err);
    s.new = heft_test_load(s.path);
    return s;
}

static void end_scenario(scenario *s)
{
    heft_test_free(&s->old);
    heft_test_free(&s->new);
    heft_test_free(&s->more);
    unlink(s->path);
    reset_disk();
}

static void restore(const scenario *s)
{
    heft_test_save(s->path, s->old.p, s->old.len);
    reset_disk();
    heft_stop.no_copy = s->no_copy;
    heft_stop.no_unnamed = s->no_unnamed;
}

/* ---- content after an append ----------------------------------------------------------------- */

static void assert_same_tensor(const heft_file *f, const heft_file *from, const char *name)
{
    uint32_t a = heft_tensor_find(f, heft_str_from(name)),
             b = heft_tensor_find(from, heft_str_from(name));
    heft_error err;
    uint8_t got[MORE], expected[MORE];
    assert_true(a != HEFT_NONE && b != HEFT_NONE);
    size_t len = (size_t)heft_tensor_bytes(from, b);
    assert_int_equal(heft_tensor_bytes(f, a), len);
    heft_assert_ok(heft_part_read(got, f, heft_tensor_at(f, a).first_part, 0, len, &err), &err);
    heft_assert_ok(heft_part_read(expected, from, heft_tensor_at(from, b).first_part, 0, len, &err),
                   &err);
    assert_memory_equal(got, expected, len);
}

static void a_file_of_any_format_gains_tensors(void **state)
{
    scenario s;
    for (size_t kind = 0; (s = begin_scenario(*state, kind)).old.p; kind++) {
        heft_file *f, *original, *from;
        heft_verify_result found;
        heft_error err;
        heft_assert_ok(heft_file_open(&f, s.path, NULL, &err), &err);
        heft_assert_ok(heft_test_open(&original, s.old, NULL, &err), &err);
        heft_assert_ok(heft_test_open(&from, s.more, NULL, &err), &err);
        assert_int_equal(heft_tensor_count(f), 3);
        assert_ptr_equal(heft_file_format(f), heft_file_format(original));
        assert_same_tensor(f, original, "w");
        assert_same_tensor(f, from, "v");
        assert_same_tensor(f, from, "u");
        heft_assert_ok(heft_file_verify(&found, f, NULL, &err), &err);
        assert_int_equal(found.faults + found.warnings, 0);
        assert_int_equal(heft_test_dir_entries(*state), 1);
        heft_file_close(from);
        heft_file_close(original);
        heft_file_close(f);
        end_scenario(&s);
    }
}

/* ---- killed ---------------------------------------------------------------------------------- */

static heft_status do_append(void *ctx)
{
    const scenario *s = ctx;
    heft_error err;
    return append(&heft_stopping_disk, s->path, s->more, NULL, NULL, &err);
}

/* Assert that an append after a kill rolls back the journal, removes temporary files and gives the
 * same file. */
static void assert_append_repeated(const scenario *s)
{
    heft_append_result r;
    heft_error err;
    heft_file *f;
    bool had_journal = has_journal(s->path);
    reset_disk();
    if (had_journal)
        heft_assert_fails(heft_file_open(&f, s->path, NULL, &err), HEFT_E_IO, &err, "journal");
    else
        assert_true(heft_test_file_is(s->path, s->old) || heft_test_file_is(s->path, s->new));
    heft_status st = append(&heft_stopping_disk, s->path, s->more, NULL, &r, &err);
    if (st) /* the killed append was complete */
        heft_assert_fails(st, HEFT_E_ARGUMENT, &err, "already");
    assert_int_equal(r.edit.rolled_back, had_journal);
    assert_true(heft_test_file_is(s->path, s->new));
    assert_int_equal(heft_test_dir_entries(s->dir), 1);
}

static void kill_everywhere(scenario *s, heft_disk_failure failure)
{
    unsigned n = 1;
    for (unsigned survived = 0; survived < 3 && n < 200; n++) {
        restore(s);
        bool killed = heft_test_is_killed(failure, n, do_append, s);
        assert_append_repeated(s);
        survived = killed ? 0 : survived + 1; /* only a write can be torn; other calls survive */
    }
    assert_true(n > 4 && n < 200);
}

static void an_append_after_a_kill_rolls_back_and_completes(void **state)
{
    scenario s;
    for (size_t kind = 0; (s = begin_scenario(*state, kind)).old.p; kind++) {
        int step = getenv("HEFT_TEST_FEWER") ? 3 : 1; /* neither call is missing, or both */
        for (int missing = 0; missing < 4; missing += step) {
            s.no_copy = missing & 1;
            s.no_unnamed = missing & 2;
            kill_everywhere(&s, HEFT_KILLED);
        }
        kill_everywhere(&s, HEFT_TORN);
        end_scenario(&s);
    }
}

/* heft_edit_recover() alone, without a second append, restores the old file. */
static void recovery_restores_the_old_file(void **state)
{
    for (size_t kind = 0; kind < 2; kind++) {
        scenario s = begin_scenario(*state, 0);
        unsigned journals = 0;
        bool killed = true;
        s.no_copy = kind;
        for (unsigned n = 1; killed; n++) {
            heft_error err;
            bool rolled_back;
            restore(&s);
            killed = heft_test_is_killed(HEFT_KILLED, n, do_append, &s);
            bool had_journal = has_journal(s.path);
            journals += had_journal;
            reset_disk();
            heft_assert_ok(heft_edit_recover_on(&heft_stopping_disk, &rolled_back, s.path, &err),
                           &err);
            assert_int_equal(rolled_back, had_journal);
            assert_true(!had_journal || heft_test_file_is(s.path, s.old));
        }
        assert_true(journals > 1);
        end_scenario(&s);
    }
}

/* The journal of an append has version 2 and is checked as strictly as that of an
 * edit. */
static void a_damaged_journal_is_refused(void **state)
{
    scenario s = begin_scenario(*state, 0);
    const char *journal_path = heft_test_path(*state, "model.heft-journal");
    heft_error err;
    bool rolled_back;
    unsigned n = 1;
    do {
        assert_true(n < 100);
        restore(&s);
        unlink(journal_path);
        (void)heft_test_is_killed(HEFT_KILLED, n++, do_append, &s);
    } while (!heft_test_exists(journal_path) || heft_test_file_is(s.path, s.old));
    reset_disk();
    heft_bytes journal = heft_test_load(journal_path), interrupted = heft_test_load(s.path);
    assert_int_equal(journal.p[8], 2); /* the version */
    for (size_t i = 0; i < journal.len; i++) {
        journal.p[i] ^= 1;
        heft_test_save(journal_path, journal.p, journal.len);
        journal.p[i] ^= 1;
        heft_assert_fails(heft_edit_recover_on(&heft_stopping_disk, &rolled_back, s.path, &err),
                          HEFT_E_FORMAT, &err, "is damaged");
        heft_test_save(journal_path, journal.p, i);
        heft_assert_fails(heft_edit_recover_on(&heft_stopping_disk, &rolled_back, s.path, &err),
                          HEFT_E_FORMAT, &err, "is damaged");
        assert_true(heft_test_file_is(s.path, interrupted));
    }
    heft_test_save(journal_path, journal.p, journal.len);
    interrupted.p[100] ^= 1; /* the journal no longer matches the file */
    heft_test_save(s.path, interrupted.p, interrupted.len);
    heft_assert_fails(heft_edit_recover_on(&heft_stopping_disk, &rolled_back, s.path, &err),
                      HEFT_E_FORMAT, &err, "belongs to another file");
    interrupted.p[100] ^= 1;
    heft_test_save(s.path, interrupted.p, interrupted.len);
    heft_assert_ok(heft_edit_recover_on(&heft_stopping_disk, &rolled_back, s.path, &err), &err);
    assert_true(rolled_back && heft_test_file_is(s.path, s.old));
    heft_test_free(&journal);
    heft_test_free(&interrupted);
    end_scenario(&s);
}

/* ---- calls that fail ------------------------------------------------------------------------- */

static void fail_everywhere(scenario *s, heft_disk_failure failure, int os)
{
    bool reached = true;
    for (unsigned n = 1; reached; n++) {
        heft_append_result r;
        heft_error err;
        bool rolled_back;
        restore(s);
        heft_stop.failure = failure;
        heft_stop.at = n;
        heft_stop.os = os;
        heft_status st = append(&heft_stopping_disk, s->path, s->more, NULL, &r, &err);
        reached = heft_stop.calls >= n;
        reset_disk();
        if (st)
            heft_assert_status(st, HEFT_E_IO, &err);
        assert_int_equal(r.tensors, st ? 0 : 2);
        heft_assert_ok(heft_edit_recover_on(&heft_stopping_disk, &rolled_back, s->path, &err),
                       &err);
        assert_true(heft_test_file_is(s->path, s->new) ||
                    (st && heft_test_file_is(s->path, s->old)));
        if (rolled_back)
            assert_true(heft_test_file_is(s->path, s->old));
    }
}

static void a_failing_call_leaves_the_old_or_the_new_file(void **state)
{
    scenario s;
    for (size_t kind = 0; (s = begin_scenario(*state, kind)).old.p; kind++) {
        fail_everywhere(&s, HEFT_FAILS_ONCE, ENOSPC);
        fail_everywhere(&s, HEFT_FAILS_FROM, EIO);
        s.no_copy = true;
        fail_everywhere(&s, HEFT_FAILS_ONCE, ENOSPC);
        end_scenario(&s);
    }
}

/* ---- memory that runs out -------------------------------------------------------------------- */

static heft_status append_with(heft_test_memory *m, const scenario *s, heft_error *err)
{
    heft_write_options write = HEFT_WRITE_OPTIONS_INIT;
    heft_convert_options convert = HEFT_CONVERT_OPTIONS_INIT;
    heft_append_options o = HEFT_APPEND_OPTIONS_INIT;
    heft_file *from;
    o.convert = &convert;
    convert.write = &write;
    write.host = &m->host;
    heft_assert_ok(heft_test_open(&from, s->more, NULL, err), err);
    heft_status st = heft_file_append(NULL, s->path, from, &o, err);
    heft_file_close(from);
    return st;
}

static void running_out_of_memory_leaves_the_file_unchanged(void **state)
{
    scenario s;
    for (size_t kind = 0; (s = begin_scenario(*state, kind)).old.p; kind++) {
        heft_status st = HEFT_E_NOMEM;
        for (uint32_t n = 1; st; n++) {
            heft_test_memory m;
            heft_error err;
            restore(&s);
            heft_test_memory_init(&m, n);
            st = append_with(&m, &s, &err);
            if (st)
                heft_assert_status(st, HEFT_E_NOMEM, &err);
            heft_assert_all_freed(&m);
            assert_true(heft_test_file_is(s.path, st ? s.old : s.new));
            assert_int_equal(heft_test_dir_entries(*state), 1);
        }
        end_scenario(&s);
    }
}

/* ---- refusals -------------------------------------------------------------------------------- */

static bool keep_none(void *ctx, const heft_tensor *t)
{
    (void)ctx, (void)t;
    return false;
}

static bool keep_v(void *ctx, const heft_tensor *t)
{
    (void)ctx;
    return t->name.len == 1 && *t->name.ptr == 'v';
}

static heft_str all_are_w(void *ctx, const heft_tensor *t)
{
    (void)ctx, (void)t;
    return heft_test_str("w");
}

static void names_that_the_file_has_are_refused(void **state)
{
    scenario s = begin_scenario(*state, 1);
    heft_convert_options convert = HEFT_CONVERT_OPTIONS_INIT;
    heft_append_options o = HEFT_APPEND_OPTIONS_INIT;
    heft_append_result r;
    heft_error err;
    heft_status st = append(&heft_system_disk, s.path, s.more, NULL, &r, &err);
    heft_assert_fails(st, HEFT_E_ARGUMENT, &err, "tensor 'v' already exists");
    assert_int_equal(err.about, HEFT_ABOUT_TARGET);
    restore(&s);
    o.convert = &convert;
    convert.keep = keep_v;
    convert.rename = all_are_w;
    st = append(&heft_system_disk, s.path, s.more, &o, &r, &err);
    heft_assert_fails(st, HEFT_E_ARGUMENT, &err, "tensor 'w' already exists");
    convert.keep = NULL;
    st = append(&heft_system_disk, s.path, s.more, &o, &r, &err);
    heft_assert_fails(st, HEFT_E_ARGUMENT, &err, "'w'");
    o = (heft_append_options)HEFT_APPEND_OPTIONS_INIT;
    o.duplicates = HEFT_DUPLICATES_LAST;
    st = append(&heft_system_disk, s.path, s.more, &o, &r, &err);
    heft_assert_fails(st, HEFT_E_ARGUMENT, &err, "does not replace");
    assert_true(heft_test_file_is(s.path, s.old));
    end_scenario(&s);
}

static void nothing_to_append_changes_nothing(void **state)
{
    scenario s = begin_scenario(*state, 1);
    heft_convert_options convert = HEFT_CONVERT_OPTIONS_INIT;
    heft_append_options o = HEFT_APPEND_OPTIONS_INIT;
    heft_append_result r;
    heft_error err;
    o.duplicates = HEFT_DUPLICATES_FIRST; /* the file already has both tensors */
    heft_assert_ok(append(&heft_system_disk, s.path, s.more, &o, &r, &err), &err);
    assert_int_equal(r.tensors, 0);
    assert_false(r.edit.changed);
    o.convert = &convert;
    convert.keep = keep_none;
    heft_assert_ok(append(&heft_system_disk, s.path, s.more, &o, &r, &err), &err);
    assert_false(r.edit.changed);
    assert_true(heft_test_file_is(s.path, s.new));
    restore(&s);
    heft_assert_ok(append(&heft_system_disk, s.path, s.more, &o, &r, &err), &err);
    assert_int_equal(r.edit.size, s.old.len);
    assert_true(heft_test_file_is(s.path, s.old));
    end_scenario(&s);
}

static void a_dry_run_reports_the_result_without_writing(void **state)
{
    scenario s;
    for (size_t kind = 0; (s = begin_scenario(*state, kind)).old.p; kind++) {
        heft_convert_options convert = HEFT_CONVERT_OPTIONS_INIT;
        heft_append_options o = HEFT_APPEND_OPTIONS_INIT;
        heft_append_result dry_run_result, result;
        heft_error err;
        restore(&s);
        o.convert = &convert;
        convert.dry_run = true;
        heft_assert_ok(append(&heft_stopping_disk, s.path, s.more, &o, &dry_run_result, &err),
                       &err);
        assert_int_equal(heft_stop.calls, 0);
        assert_true(heft_test_file_is(s.path, s.old));
        heft_assert_ok(append(&heft_system_disk, s.path, s.more, NULL, &result, &err), &err);
        assert_int_equal(dry_run_result.tensors, 2);
        assert_int_equal(result.tensors, 2);
        assert_true(dry_run_result.edit.in_place == result.edit.in_place);
        assert_true(dry_run_result.edit.size == result.edit.size || !kind);
        assert_true(result.edit.changed && result.edit.size == s.new.len);
        end_scenario(&s);
    }
}

static bool count_down(void *ctx, uint64_t done, uint64_t total)
{
    (void)done, (void)total;
    return --*(int *)ctx >= 0;
}

static void a_cancelled_append_leaves_the_file_unchanged(void **state)
{
    scenario s;
    for (size_t kind = 0; (s = begin_scenario(*state, kind)).old.p; kind++) {
        heft_status st = HEFT_E_CANCELLED;
        for (int steps = 0; st; steps++) {
            heft_convert_options convert = HEFT_CONVERT_OPTIONS_INIT;
            heft_append_options o = HEFT_APPEND_OPTIONS_INIT;
            heft_error err;
            int steps_left = steps;
            restore(&s);
            o.convert = &convert;
            convert.progress = count_down;
            convert.ctx = &steps_left;
            st = append(&heft_system_disk, s.path, s.more, &o, NULL, &err);
            if (st)
                heft_assert_status(st, HEFT_E_CANCELLED, &err);
            assert_true(heft_test_file_is(s.path, st ? s.old : s.new));
            assert_int_equal(heft_test_dir_entries(*state), 1);
        }
        end_scenario(&s);
    }
}

/* ---- sources, file modes, readers, plans ----------------------------------------------------- */

static void damage_in_the_source_is_reported(void **state)
{
    scenario s = begin_scenario(*state, 1);
    heft_convert_options convert = HEFT_CONVERT_OPTIONS_INIT;
    heft_append_options o = HEFT_APPEND_OPTIONS_INIT;
    heft_append_result r;
    heft_error err;
    static const test_tensor v = { "v", HEFT_F32, 1, { 100 } };
    heft_write_options write = HEFT_WRITE_OPTIONS_INIT;
    heft_convert_options c = HEFT_CONVERT_OPTIONS_INIT;
    c.write = &write;
    write.storage.digest = "crc32c";
    heft_bytes broken = heft_test_converted("safetensors", &v, 1, "ztensor", &c);
    broken.p[100] ^= 1;
    restore(&s);
    heft_status st = append(&heft_system_disk, s.path, broken, NULL, &r, &err);
    heft_assert_status(st, HEFT_E_CHECKSUM, &err);
    assert_int_equal(err.about, HEFT_ABOUT_SOURCE);
    assert_true(heft_test_file_is(s.path, s.old));
    o.convert = &convert;
    convert.no_verify = true;
    heft_assert_ok(append(&heft_system_disk, s.path, broken, &o, &r, &err), &err);
    heft_test_free(&broken);
    end_scenario(&s);
}

static void a_file_may_be_appended_to_itself(void **state)
{
    static const char *const formats[] = { "ztensor", "safetensors" };
    for (size_t i = 0; i < HEFT_COUNT(formats); i++) {
        const char *path = heft_test_path(*state, "model");
        heft_bytes old = more_of(formats[i]);
        heft_convert_options convert = HEFT_CONVERT_OPTIONS_INIT;
        heft_append_options o = HEFT_APPEND_OPTIONS_INIT;
        heft_error err;
        heft_file *f;
        heft_test_save(path, old.p, old.len);
        heft_assert_ok(heft_file_open(&f, path, NULL, &err), &err);
        heft_assert_fails(heft_file_append(NULL, path, f, NULL, &err), HEFT_E_ARGUMENT, &err,
                          "already");
        assert_true(heft_test_file_is(path, old));
        o.convert = &convert;
        convert.keep = keep_v;
        convert.rename = all_are_w;
        heft_assert_ok(heft_file_append(NULL, path, f, &o, &err), &err);
        heft_file_close(f);
        heft_assert_ok(heft_file_open(&f, path, NULL, &err), &err);
        assert_int_equal(heft_tensor_count(f), 3);
        heft_file_close(f);
        heft_test_free(&old);
    }
}

static void mode_and_links_are_kept(void **state)
{
    scenario s;
    for (size_t kind = 0; (s = begin_scenario(*state, kind)).old.p; kind++) {
        const char *hard = heft_test_path(*state, "hard"), *soft = heft_test_path(*state, "soft");
        heft_append_result r;
        struct stat info;
        heft_error err;
        restore(&s);
        assert_int_equal(chmod(s.path, 0640), 0);
        assert_int_equal(link(s.path, hard), 0);
        assert_int_equal(symlink("model", soft), 0);
        heft_assert_ok(append(&heft_system_disk, soft, s.more, NULL, &r, &err), &err);
        assert_int_equal(r.edit.hard_links, 1);
        assert_true(heft_test_file_is(s.path, s.new));
        assert_true(heft_test_file_is(hard, r.edit.in_place ? s.new : s.old));
        assert_int_equal(stat(s.path, &info), 0);
        assert_int_equal(info.st_mode & 07777, 0640);
        assert_int_equal(lstat(soft, &info), 0);
        assert_true(S_ISLNK(info.st_mode));
        unlink(hard);
        unlink(soft);
        end_scenario(&s);
    }
}

/* A reader that opened the file before the append still reads the same bytes. */
static void open_readers_still_read_the_old_tensors(void **state)
{
    scenario s;
    for (size_t kind = 0; (s = begin_scenario(*state, kind)).old.p; kind++) {
        heft_file *f, *original;
        heft_error err;
        restore(&s);
        heft_assert_ok(heft_test_open(&original, s.old, NULL, &err), &err);
        heft_assert_ok(heft_file_open(&f, s.path, NULL, &err), &err);
        uint32_t part = heft_tensor_at(f, 0).first_part;
        heft_assert_ok(append(&heft_system_disk, s.path, s.more, NULL, NULL, &err), &err);
        uint8_t got[DATA], expected[DATA];
        heft_assert_ok(heft_part_read(got, f, part, 0, DATA, &err), &err);
        heft_assert_ok(heft_part_read(expected, original, part, 0, DATA, &err), &err);
        assert_memory_equal(got, expected, DATA);
        heft_file_close(f);
        heft_file_close(original);
        end_scenario(&s);
    }
}

/* For programs that apply a plan to their own storage: the extents together form the new file. */
static void the_extents_of_a_plan_form_the_new_file(void **state)
{
    scenario s;
    for (size_t kind = 0; (s = begin_scenario(*state, kind)).old.p; kind++) {
        heft_file *f, *from, *added;
        heft_test_sink sink;
        heft_edit *e;
        heft_error err;
        uint32_t tensors;
        const heft_edit_extent *p;
        heft_assert_ok(heft_test_open(&f, s.old, NULL, &err), &err);
        heft_assert_ok(heft_test_open(&from, s.more, NULL, &err), &err);
        heft_sink *into = heft_test_sink_init(&sink, false);
        heft_assert_ok(heft_append_convert(&tensors, f, from, into, NULL, &err), &err);
        assert_int_equal(tensors, 2);
        heft_bytes b = heft_test_sink_bytes(&sink);
        heft_assert_ok(heft_test_open(&added, b, NULL, &err), &err);
        heft_assert_ok(heft_append_plan(&e, f, added, NULL, &err), &err);
        assert_int_equal(heft_edit_size(e), s.new.len);
        size_t n = heft_edit_extents(e, &p);
        for (size_t i = 0; i < n; i++) {
            const uint8_t *bytes = p[i].data ? p[i].data : (p[i].file ? b.p : s.old.p) + p[i].from;
            assert_memory_equal(s.new.p + p[i].at, bytes, (size_t)p[i].length);
        }
        heft_edit_close(e);
        heft_file_close(added);
        heft_file_close(from);
        heft_file_close(f);
        heft_test_sink_free(&sink);
        end_scenario(&s);
    }
}

#define in_dir(test) cmocka_unit_test_setup_teardown(test, heft_test_dir_make, heft_test_dir_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        in_dir(a_file_of_any_format_gains_tensors),
        in_dir(an_append_after_a_kill_rolls_back_and_completes),
        in_dir(recovery_restores_the_old_file),
        in_dir(a_damaged_journal_is_refused),
        in_dir(a_failing_call_leaves_the_old_or_the_new_file),
        in_dir(running_out_of_memory_leaves_the_file_unchanged),
        in_dir(names_that_the_file_has_are_refused),
        in_dir(nothing_to_append_changes_nothing),
        in_dir(a_dry_run_reports_the_result_without_writing),
        in_dir(a_cancelled_append_leaves_the_file_unchanged),
        in_dir(damage_in_the_source_is_reported),
        in_dir(a_file_may_be_appended_to_itself),
        in_dir(mode_and_links_are_kept),
        in_dir(open_readers_still_read_the_old_tensors),
        in_dir(the_extents_of_a_plan_form_the_new_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
