/* cmd_apply.c - `heft apply`: the model that a delta makes of another one. */
#include <string.h>
#include <unistd.h>

#include "commands/delta_report.h"
#include "process/interrupt.h"

typedef struct request {
    job job;
    bool in_place, verify_all, as_json;
} request;

typedef struct opened {
    heft_file *file; /* holds the delta */
    heft_delta *delta;
} opened;

static int open_delta(opened *o, const session *s, const char *path)
{
    heft_error err;
    int code = model_open_whole(s, &o->file, path);
    if (!code && heft_delta_open(&o->delta, o->file, &err))
        code = say_error(path, &err);
    return code;
}

static void close_delta(opened *o)
{
    heft_delta_close(o->delta);
    heft_file_close(o->file);
}

static int say_not_applied(const request *r, const heft_error *err)
{
    int code = say_error(r->job.inputs[err->input == 2 ? 1 : 0], err);
    return err->status == HEFT_E_ARGUMENT ? CODE_CANNOT : code;
}

static int report(const request *r, const heft_delta_sums *sums)
{
    const job *j = &r->job;
    return delta_report(&(delta_summary){ .session = j->session,
                                          .path = r->in_place ? j->session->args.item[0] : j->out,
                                          .sums = *sums,
                                          .as_json = r->as_json,
                                          .verb = j->dry_run ? "would be" : NULL });
}

/* ---- to a new file ---- */

static int write_model(request *r, const heft_file *base, const heft_delta *d)
{
    job *j = &r->job;
    heft_error err;
    heft_file *f;
    heft_apply_options o = HEFT_APPLY_OPTIONS_INIT;
    heft_delta_sums sums = heft_delta_sum(d);
    o.progress = progress_step;
    o.ctx = &j->bar;
    o.no_verify = j->session->no_verify;
    job_set_options(j, j->session->args.item[0]);
    j->convert.exact_metadata = true; /* those of the new model */
    progress_begin(&j->bar, j->source);
    heft_status st = heft_delta_apply(&f, base, d, &o, &err);
    progress_end(&j->bar);
    if (st)
        return say_not_applied(r, &err);
    int code = job_convert(j, f);
    heft_file_close(f);
    return code ? code : report(r, &sums);
}

static int apply(request *r)
{
    const session *s = r->job.session;
    struct stat info;
    heft_file *base = NULL;
    opened o = { NULL, NULL };
    int code = job_prepare(&r->job);
    if (!code)
        code = job_choose_target(&r->job);
    if (!code && !stat(r->job.out, &info))
        code = job_check_output(&r->job, &info);
    if (!code)
        code = model_open_whole(s, &base, s->args.item[0]);
    if (!code)
        code = open_delta(&o, s, s->args.item[1]);
    if (!code)
        code = write_model(r, base, o.delta);
    heft_file_close(base);
    close_delta(&o);
    return code;
}

/* ---- in place ---- */

static int change_file(request *r, const heft_delta *d)
{
    job *j = &r->job;
    const char *path = j->session->args.item[0];
    heft_error err;
    heft_delta_sums sums;
    heft_apply_options o = HEFT_APPLY_OPTIONS_INIT;
    o.progress = progress_step;
    o.ctx = &j->bar;
    o.no_verify = j->session->no_verify;
    o.verify_all = r->verify_all;
    o.no_sync = j->no_sync;
    o.dry_run = j->dry_run;
    interrupt_hold();
    progress_begin(&j->bar, path);
    heft_status st = heft_delta_apply_in_place(&sums, path, d, &o, &err);
    progress_end(&j->bar);
    if (!st)
        return report(r, &sums);
    return say_not_applied(r, &err);
}

static int apply_in_place(request *r)
{
    const session *s = r->job.session;
    opened o = { NULL, NULL };
    int code = open_delta(&o, s, s->args.item[1]);
    if (!code)
        code = change_file(r, o.delta);
    close_delta(&o);
    return code;
}

/* ---- the command ---- */

static int run(const session *s, void *ctx)
{
    request *r = ctx;
    int code;
    r->job.inputs = (const char *const *)s->args.item; /* OLD and DELTA */
    r->job.input_count = 2;
    if (r->in_place == (r->job.out != NULL))
        code = say_usage(s->name, r->in_place ? "-o and --in-place exclude each other"
                                              : "either -o NEW or --in-place");
    else if (r->verify_all && !r->in_place)
        code = say_usage(s->name, "--verify is for --in-place: -o compares all tensors");
    else
        code = r->in_place ? apply_in_place(r) : apply(r);
    job_release(&r->job);
    return code;
}

static const opt options[] = {
    { "output", 'o', OPT_OUTPUT, AT(request, job.out), "NEW", "the file to write" },
    { "in-place", 0, OPT_FLAG, AT(request, in_place), NULL, "change the values in OLD instead" },
    { "verify", 0, OPT_FLAG, AT(request, verify_all), NULL,
      "with --in-place: compare all tensors of OLD first" },
    { "to", 't', OPT_TEXT, AT_NAME(request, job.to, NAMES_FORMAT), "FORMAT",
      "format of NEW (default: by the suffix of NEW)" },
    { "allow-loss", 0, OPT_FLAG, AT(request, job.allow_loss), NULL,
      "leave out or alter what the format of NEW cannot represent" },
    { "dry-run", 'n', OPT_FLAG, AT(request, job.dry_run), NULL,
      "compare OLD with the delta, and change nothing" },
    { "force", 'f', OPT_FLAG, AT(request, job.force), NULL, "replace NEW" },
    { "no-sync", 0, OPT_FLAG, AT(request, job.no_sync), NULL,
      "do not wait for the disk (scratch files)" },
    { "strict", 0, OPT_FLAG, SETTING(strict), NULL, "treat warnings as errors" },
    { "verbose", 'v', OPT_FLAG, SETTING(verbose), NULL, "print what changed, on stderr" },
    { "json", 0, OPT_FLAG, AT(request, as_json), NULL, "print one JSON document" },
    { .name = NULL },
};

const command command_apply = {
    .name = "apply",
    .args = "OLD DELTA",
    .summary = "make a model of another one and a delta",
    .description =
        "Writes the model that DELTA makes of OLD, in any format, or changes OLD in place. OLD\n"
        "is compared with digests in DELTA first: the wrong model is refused before a byte is\n"
        "written. --in-place compares the values that are replaced only, and keeps a journal,\n"
        "so that an interrupted change is undone by `heft edit OLD`. Deltas of miles, slime\n"
        "and SGLang, which are folders, and sparse patches of TRL are applied as well.",
    .example = "heft apply step1.safetensors step2.zt -o step2.safetensors",
    .group = GROUP_CHANGE,
    .traits = COMMAND_WRITES | COMMAND_REPORTS_LOSSES | COMMAND_CHECKS_PARTS,
    .operands = { 0, 1, 0, FILE_OUTPUT },
    .options = options,
    .request_bytes = sizeof(request),
    .begin = job_begin,
    .run = run,
};
