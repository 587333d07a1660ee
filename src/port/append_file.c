/* append_file.c - tensors are added to a file where it stands.
 *
 * They are first written into a file beside it that never gets a name, in the form in which they are to be appended:
 * whatever can be wrong with them is found out before the file is touched.  From there on it is an edit. */
#include "port/sink_file.h"

/* ---- the file beside it, as a sink ---- */

/* The file is read next, by whoever opened it. */
static heft_status finish(heft_sink *s, heft_error *err)
{
    (void)s;
    (void)err;
    return HEFT_OK;
}

static void discard(heft_sink *s)
{
    (void)s;
}

static const heft_sink_ops ops = {
    .size = sizeof(heft_sink_ops),
    .write_at = heft_staged_write_at,
    .reserve = heft_staged_reserve,
    .finish = finish,
    .discard = discard,
    .reflink = heft_staged_reflink,
    .read_at = heft_staged_read_at,
    .scratch = heft_staged_scratch,
};

/* ---- appending ---- */

typedef struct appending {
    heft_target t;
    heft_staged_sink b; /* whose failures are not about what is read */
    const heft_file *from;
    heft_append_settings o;
    heft_append_result r;
    heft_edit *e;
} appending;

static heft_status plan_added(appending *a, const heft_file *f, heft_error *err)
{
    heft_open_options o = HEFT_OPEN_OPTIONS_INIT;
    heft_source *s;
    heft_file *added;
    heft_status st = heft_source_of(&s, a->t.added, err);
    o.host = a->o.write.host;
    o.format = heft_file_format(f);
    o.limits = a->o.append.limits;
    if (!st)
        st = heft_file_open_source(&added, s, &o, err);
    if (st)
        return st;
    st = heft_append_plan(&a->e, f, added, &a->o.append, err);
    heft_file_close(added);
    return st;
}

static heft_status convert(appending *a, const heft_file *f, heft_error *err)
{
    heft_sink *into = a->o.convert.dry_run ? NULL : &a->b.base;
    a->o.convert.planned_bytes = &a->r.edit.size;
    heft_status st = heft_append_convert(&a->r.tensors, f, a->from, into, &a->o.append, err);
    bool is_of_file = st == HEFT_E_ARGUMENT || st == HEFT_E_UNSUPPORTED;
    a->r.source_failed = st && !is_of_file && !atomic_load(&a->b.has_failed);
    return st;
}

/* What is there must be fit to be written again. */
static heft_status try_file(const appending *a, const heft_file *f, heft_error *err)
{
    heft_edit_options o = HEFT_EDIT_OPTIONS_INIT;
    heft_edit *e;
    o.host = a->o.write.host;
    heft_status st = heft_edit_plan(&e, f, &o, err);
    if (!st)
        heft_edit_close(e);
    return st;
}

static heft_status plan(appending *a, heft_error *err)
{
    heft_open_options open = HEFT_OPEN_OPTIONS_INIT;
    heft_file *f;
    bool is_dry = a->o.convert.dry_run;
    int os = 0;
    open.host = a->o.write.host;
    open.limits = a->o.append.limits;
    heft_status st = heft_file_open(&f, a->t.path, &open, err);
    if (st)
        return st;
    a->r.edit.in_place = heft_format_caps(heft_file_format(f)) & HEFT_CAN_APPEND;
    if (is_dry) {
        st = try_file(a, f, err);
    } else {
        os = heft_staged_open(&a->b.staged, a->t.disk, a->t.dir, a->t.name, 0600);
        a->t.added = a->b.staged.fd;
    }
    if (os)
        st = heft_os_error(err, os, "a new file cannot be made in its directory");
    if (!st)
        st = convert(a, f, err);
    if (!st && !is_dry && a->r.tensors)
        st = plan_added(a, f, err);
    heft_file_close(f); /* nothing maps the file from here on */
    if (!st && a->e)
        heft_edit_describe(&a->r.edit, &a->t, a->e);
    return st;
}

heft_status heft_append_file_on(const heft_disk *disk, heft_append_result *out, const char *path,
                                const heft_file *from, const heft_append_options *opt,
                                heft_error *err)
{
    heft_error own;
    heft_disk hasty = *disk;
    appending a = { .b = { .base = { &ops },
                           .staged = { .disk = disk, .fd = -1 },
                           .no_room = "no room for what is to be appended" },
                    .from = from };
    err = heft_error_begin(err, &own);
    if (out)
        *out = a.r;
    heft_status st = heft_append_read_options(&a.o, opt, err);
    if (!st && !path)
        st = heft_error_plain(err, HEFT_E_ARGUMENT, "there is no path of a file to append to");
    if (st)
        return st;
    hasty.sync = heft_disk_no_sync;
    st = heft_target_open(&a.t, &a.r.edit.rolled_back, a.o.append.no_sync ? &hasty : disk, path,
                          a.o.write.host, a.o.convert.dry_run, err);
    if (!st)
        st = plan(&a, err);
    heft_applying how = { a.e, a.o.convert.progress, a.o.convert.progress_ctx,
                          "interrupted; nothing written" };
    if (!st && a.e)
        st = heft_target_apply(&a.r.edit, &a.t, &how, err);
    a.r.tensors = st ? 0 : a.r.tensors;
    heft_edit_close(a.e);
    (void)heft_staged_close(&a.b.staged); /* nothing of it is wanted any more */
    heft_target_close(&a.t);
    if (out)
        *out = a.r;
    return heft_error_end(err, st);
}

heft_status heft_file_append(heft_append_result *out, const char *path, const heft_file *from,
                             const heft_append_options *opt, heft_error *err)
{
    return heft_append_file_on(&heft_system_disk, out, path, from, opt, err);
}
