/* append_file.c - append tensors to an existing file.
 *
 * The new tensors are first written to an unnamed temporary file in the target's directory, in
 * their final form, so that every error in the tensors is found before the target is touched.  The
 * rest is an edit of the target. */
#include "base/sized.h"
#include "local/overwrite_file.h"
#include "port/save/sink_file.h"

/* ---- the temporary file, as a sink ---- */

/* Keep the temporary file open: plan_added() reads it next. */
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

typedef struct append_job {
    heft_target target;
    heft_staged_sink staged_sink; /* takes the new tensors */
    const heft_file *from;
    heft_append_settings options;
    heft_append_result result;
    heft_edit *edit;
} append_job;

static heft_status plan_added(append_job *job, const heft_file *f, heft_error *err)
{
    heft_open_options o = HEFT_OPEN_OPTIONS_INIT;
    heft_source *s;
    heft_file *added;
    heft_status st = heft_source_of(&s, job->target.added_fd, err);
    o.host = job->options.write.host;
    o.format = heft_file_format(f);
    o.limits = job->options.append.limits;
    if (!st)
        st = heft_file_open_source(&added, s, &o, err);
    if (st)
        return st;
    st = heft_append_plan(&job->edit, f, added, &job->options.append, err);
    heft_file_close(added);
    return st;
}

static heft_status convert(append_job *job, const heft_file *f, heft_error *err)
{
    heft_sink *into = job->options.convert.dry_run ? NULL : &job->staged_sink.base;
    job->options.convert.planned_bytes = &job->result.edit.size;
    return heft_append_convert(&job->result.tensors, f, job->from, into, &job->options.append, err);
}

/* Fail if the existing content of the file could not be rewritten by an edit. */
static heft_status check_editable(const append_job *job, const heft_file *f, heft_error *err)
{
    heft_edit_options o = HEFT_EDIT_OPTIONS_INIT;
    heft_edit *e;
    o.host = job->options.write.host;
    HEFT_TRY(heft_edit_plan(&e, f, &o, err));
    heft_edit_close(e);
    return HEFT_OK;
}

static heft_status plan_append(append_job *job, heft_error *err)
{
    heft_open_options open = HEFT_OPEN_OPTIONS_INIT;
    heft_file *f;
    bool is_dry_run = job->options.convert.dry_run;
    int os = 0;
    open.access = (uint8_t)heft_edit_access;
    open.host = job->options.write.host;
    open.limits = job->options.append.limits;
    HEFT_TRY(heft_file_open(&f, job->target.path, &open, err));
    if (job->options.append.replaces && heft_format_caps(heft_file_format(f)) & HEFT_CAN_REPLACE) {
        heft_status done = heft_overwrite_file(&job->result, &job->target, &f, job->from,
                                               &job->options, err);
        heft_file_close(f);
        return done;
    }
    job->result.edit.in_place = heft_format_caps(heft_file_format(f)) & HEFT_CAN_APPEND;
    heft_status st = HEFT_OK;
    if (is_dry_run) {
        st = check_editable(job, f, err);
    } else {
        os = heft_staged_open(&job->staged_sink.staged, job->target.disk, job->target.dir,
                              job->target.name, 0600);
        job->target.added_fd = job->staged_sink.staged.fd;
    }
    if (os)
        st = heft_os_error(err, os, "a temporary file cannot be created in its directory");
    if (!st)
        st = convert(job, f, err);
    if (job->options.append.replaces && is_dry_run)
        job->result.edit.in_place = job->result.edit.size == heft_file_size(f);
    if (!st && !is_dry_run && job->result.tensors)
        st = plan_added(job, f, err);
    heft_file_close(f); /* unmap the file before the edit changes it */
    if (!st && job->edit)
        heft_edit_describe(&job->result.edit, &job->target, job->edit);
    return st;
}

heft_status heft_append_file_on(const heft_disk *disk, heft_append_result *out, const char *path,
                                const heft_file *from, const heft_append_options *opt,
                                heft_error *err)
{
    heft_error own;
    heft_disk unsynced_disk = *disk;
    append_job job = { .staged_sink = { .base = { &ops },
                                        .staged = { .disk = disk, .fd = -1 },
                                        .no_space_message =
                                            "cannot reserve disk space for the new tensors" },
                       .from = from };
    err = heft_error_begin(err, &own);
    if (out)
        *out = job.result;
    heft_status st = heft_append_read_options(&job.options, opt, err);
    if (!st && !path)
        st = heft_error_plain(err, HEFT_E_ARGUMENT, "the path of the file to append to is missing");
    if (st)
        return heft_error_about(err, st, HEFT_ABOUT_TARGET);
    unsynced_disk.sync = heft_disk_no_sync;
    st = heft_target_open(&job.target, &job.result.edit.rolled_back,
                          job.options.append.no_sync ? &unsynced_disk : disk, path,
                          job.options.write.host, job.options.convert.dry_run, err);
    if (!st)
        st = plan_append(&job, err);
    heft_edit_task task = { job.edit, job.options.convert.progress, job.options.convert.ctx,
                            "interrupted; nothing written" };
    if (!st && job.edit)
        st = heft_target_apply(&job.result.edit, &job.target, &task, err);
    job.result.tensors = st ? 0 : job.result.tensors;
    heft_edit_close(job.edit);
    (void)heft_staged_close(&job.staged_sink.staged); /* errors on discarded data do not matter */
    heft_target_close(&job.target);
    if (out)
        *out = job.result;
    return heft_error_about(err, heft_error_end(err, st), HEFT_ABOUT_TARGET);
}

heft_status heft_file_append(heft_append_result *out, const char *path, const heft_file *from,
                             const heft_append_options *opt, heft_error *err)
{
    return heft_append_file_on(&heft_system_disk, out, path, from, opt, err);
}
