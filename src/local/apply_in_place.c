/* apply_in_place.c - change values in the file of a model, under a journal that undoes the change.
 *
 * The journal is complete and durable before the first byte changes, and is removed when the last
 * byte is on disk, as that of an edit; docs/edit.md says what an interruption leaves. */
#include "local/apply_in_place.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "delta/delta_places.h"
#include "port/save/value_journal.h"

static const char interrupted[] = "interrupted: the file is unchanged";

typedef struct work {
    const heft_target *t;
    heft_delta_places *places;
    const heft_apply_options *opt;
    size_t per_task; /* places that a task changes */
    uint64_t done, total;
    pthread_mutex_t lock;
    heft_status st; /* the first failure; guarded, like err and done */
    heft_error err;
} work;

/* ---- the journal ---- */

static heft_status add_record(heft_value_journal *j, const work *w, size_t i, uint8_t *buf,
                              heft_error *err)
{
    heft_delta_place p = heft_delta_places_at(w->places, i);
    heft_value_record r = { .at = p.at,
                            .length = p.length,
                            .unit = p.unit,
                            .count = p.count,
                            .positions = p.positions,
                            .old = p.positions ? p.old : buf };
    if (!p.positions)
        HEFT_TRY(heft_disk_read_all(w->t->disk, w->t->fd, p.at, buf, p.length, err));
    return heft_value_journal_add(j, &r, err);
}

static heft_status write_journal(heft_value_journal *j, const work *w, heft_error *err)
{
    size_t n = heft_delta_places_count(w->places);
    HEFT_TRY(heft_value_journal_begin(j, w->t, heft_delta_places_range(w->places), err));
    uint8_t *buf = malloc(HEFT_PLACE_BYTES);
    heft_status st = buf ? HEFT_OK : heft_error_no_memory(err, "for a journal");
    for (size_t i = 0; i < n && !st; i++)
        st = add_record(j, w, i, buf, err);
    free(buf);
    return st ? st : heft_value_journal_commit(j, err);
}

/* ---- the values ---- */

static bool has_failed(work *w)
{
    pthread_mutex_lock(&w->lock);
    bool failed = w->st != HEFT_OK;
    pthread_mutex_unlock(&w->lock);
    return failed;
}

/* Keep the first failure, and report progress. */
static void end_task(work *w, heft_status st, const heft_error *err, uint64_t bytes)
{
    pthread_mutex_lock(&w->lock);
    if (st && !w->st) {
        w->st = st;
        w->err = *err;
    }
    w->done += bytes;
    if (!w->st && w->opt->progress && !w->opt->progress(w->opt->ctx, w->done, w->total))
        w->st = heft_error_plain(&w->err, HEFT_E_CANCELLED, "%s", interrupted);
    pthread_mutex_unlock(&w->lock);
}

static uint64_t count_bytes(const work *w, size_t from, size_t end)
{
    uint64_t bytes = 0;
    for (; from < end; from++)
        bytes += heft_delta_places_at(w->places, from).length;
    return bytes;
}

static heft_status rewrite(const work *w, size_t i, uint8_t *buf, heft_error *err)
{
    heft_delta_place p = heft_delta_places_at(w->places, i);
    HEFT_TRY(heft_disk_read_all(w->t->disk, w->t->fd, p.at, buf, p.length, err));
    HEFT_TRY(heft_delta_places_put(w->places, i, buf, err));
    return heft_target_write(w->t, w->t->fd, p.at, buf, p.length, err);
}

static void run_task(void *arg, size_t task)
{
    work *w = arg;
    heft_error err;
    size_t n = heft_delta_places_count(w->places), from = task * w->per_task;
    size_t end = n - from < w->per_task ? n : from + w->per_task;
    uint64_t bytes = count_bytes(w, from, end);
    if (has_failed(w))
        return;
    uint8_t *buf = malloc(HEFT_PLACE_BYTES);
    heft_status st = buf ? HEFT_OK : heft_error_no_memory(&err, "to change values");
    for (; from < end && !st; from++)
        st = rewrite(w, from, buf, &err);
    free(buf);
    end_task(w, st, &err, bytes);
}

static heft_status change_all(work *w, heft_error *err)
{
    size_t n = heft_delta_places_count(w->places);
    w->total = count_bytes(w, 0, n);
    heft_delta_places_run(w->places, (n + w->per_task - 1) / w->per_task, run_task, w);
    if (w->st)
        *err = w->err;
    else if (heft_disk_sync(w->t->disk, w->t->fd))
        w->st = heft_os_error(err, errno, "writing to disk failed");
    return w->st;
}

/* ---- the whole ---- */

static heft_status apply(const heft_target *t, heft_delta_places *places,
                         const heft_apply_options *o, heft_error *err)
{
    enum { TASK = 64 };
    heft_value_journal j;
    work w = {
        .t = t, .places = places, .opt = o, .per_task = TASK, .lock = PTHREAD_MUTEX_INITIALIZER
    };
    heft_status st = write_journal(&j, &w, err);
    if (!st) {
        st = heft_target_check_unchanged(t, err);
        if (st) { /* the file was not touched: a journal that cannot be removed does no harm */
            heft_error ignored;
            (void)!heft_value_journal_remove(&j, &ignored);
        } else {
            st = change_all(&w, err) ? heft_journal_undo_after(t, err)
                                     : heft_value_journal_remove(&j, err);
        }
    }
    heft_value_journal_close(&j);
    return st;
}

static heft_status open_places(heft_delta_places **out, heft_delta_sums *sums, const heft_target *t,
                               const heft_delta *d, const heft_apply_options *o, heft_error *err)
{
    heft_open_options open = HEFT_OPEN_OPTIONS_INIT;
    heft_file *base;
    *out = NULL;
    HEFT_TRY(heft_file_open(&base, t->path, &open, err));
    heft_status st = heft_delta_places_open(out, base, d, o, err);
    *sums = heft_delta_sum(d);
    if (!st)
        sums->changed_bytes = heft_delta_places_bytes(*out);
    heft_file_close(base); /* unmap the file before it changes */
    return st;
}

heft_status heft_apply_in_place_on(const heft_disk *disk, heft_delta_sums *out, const char *path,
                                   const heft_delta *d, const heft_apply_options *opt,
                                   heft_error *err)
{
    heft_error own;
    heft_apply_options o = HEFT_APPLY_OPTIONS_INIT;
    heft_delta_sums sums = { .bytes = 0 };
    heft_delta_places *places = NULL;
    heft_target t;
    bool undone;
    err = heft_error_begin(err, &own);
    HEFT_TRY(heft_sized_copy(&o, sizeof o, opt, err));
    if (!path)
        return heft_error_plain(err, HEFT_E_ARGUMENT, "the path of the file to change is missing");
    heft_disk unsynced = *disk;
    unsynced.sync = o.no_sync ? heft_disk_no_sync : disk->sync;
    heft_status st = heft_target_open(&t, &undone, &unsynced, path, NULL, o.dry_run, err);
    if (!st)
        st = open_places(&places, &sums, &t, d, &o, err);
    if (!st && !o.dry_run && heft_delta_places_count(places))
        st = apply(&t, places, &o, err);
    heft_delta_places_close(places);
    heft_target_close(&t);
    if (out)
        *out = sums;
    return heft_error_end(err, st);
}

heft_status heft_delta_apply_in_place(heft_delta_sums *out, const char *path, const heft_delta *d,
                                      const heft_apply_options *opt, heft_error *err)
{
    return heft_apply_in_place_on(&heft_system_disk, out, path, d, opt, err);
}
