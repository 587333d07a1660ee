/* cmd_delta.c - `heft delta`: write what changed from one model to another. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <heft/delta.h>

#include "commands/delta_report.h"
#include "options/command.h"

typedef struct request {
    job job;
    const char *compress;
    bool as_json;
} request;

/* Read --compress: none, zstd or zstd:LEVEL. */
static int read_storage(heft_storage *out, const request *r)
{
    char *end;
    *out = (heft_storage){ .encoding = HEFT_RAW, .digest = "crc32c" };
    if (!strcmp(r->compress, "none"))
        return CODE_DONE;
    out->encoding = HEFT_ZSTD;
    out->level = 1;
    if (!strcmp(r->compress, "zstd"))
        return CODE_DONE;
    long level = strncmp(r->compress, "zstd:", 5) ? 0 : strtol(r->compress + 5, &end, 10);
    if (!level || *end || level > 22 || level < -100)
        return say_usage("delta", "--compress is none, zstd or zstd:LEVEL, such as zstd:3");
    out->level = (int)level;
    return CODE_DONE;
}

static int open_output(heft_sink **sink, job *j)
{
    heft_error err;
    struct stat info;
    *sink = NULL;
    if (j->dry_run)
        return CODE_DONE;
    int code = stat(j->out, &info) ? CODE_DONE : job_check_output(j, &info);
    if (!code && sink_open(sink, j->out, j->force, j->no_sync, &j->events, &err))
        code = say_error(j->out, &err);
    return code;
}

static int make(request *r, const heft_file *old, const heft_file *new)
{
    job *j = &r->job;
    heft_error err;
    heft_delta_sums sums;
    heft_storage storage;
    heft_sink *sink;
    heft_delta_options o = HEFT_DELTA_OPTIONS_INIT;
    int code = r->compress ? read_storage(&storage, r) : CODE_DONE;
    job_set_options(j, j->session->args.item[1]);
    if (!code)
        code = open_output(&sink, j);
    if (code)
        return code;
    o.storage = r->compress ? &storage : NULL;
    o.on_loss = keep_loss_of_job;
    o.progress = job_step;
    o.ctx = j;
    o.strict = j->session->strict;
    o.dry_run = j->dry_run;
    progress_begin(&j->bar, j->dry_run ? j->source : j->out);
    heft_status st = heft_delta_make(&sums, old, new, sink, &o, &err);
    progress_end(&j->bar);
    losses_print(&j->losses);
    if (st)
        return say_error(job_explain(j, &err), &err);
    return delta_report(&(delta_summary){ .session = j->session,
                                          .path = j->dry_run ? NULL : j->out,
                                          .sums = sums,
                                          .as_json = r->as_json,
                                          .verb = j->dry_run ? "would be" : NULL });
}

static int check_output(const job *j)
{
    if (!j->out && !j->dry_run)
        return say_usage("delta", "-o DELTA is missing: the file to write");
    return CODE_DONE;
}

static int run(const session *s, void *ctx)
{
    request *r = ctx;
    heft_file *old = NULL, *new = NULL;
    int code = check_output(&r->job);
    if (!code)
        code = model_open_whole(s, &old, s->args.item[0]);
    if (!code)
        code = model_open_whole(s, &new, s->args.item[1]);
    if (!code)
        code = make(r, old, new);
    heft_file_close(old);
    heft_file_close(new);
    job_release(&r->job);
    return code;
}

static const opt options[] = {
    { "output", 'o', OPT_OUTPUT, AT(request, job.out), "DELTA", "the file to write, a .zt file" },
    { "compress", 0, OPT_TEXT, AT(request, compress), "zstd[:N]",
      "compress changes (the default); none: store raw" },
    { "dry-run", 'n', OPT_FLAG, AT(request, job.dry_run), NULL, "compare, and write nothing" },
    { "force", 'f', OPT_FLAG, AT(request, job.force), NULL, "replace DELTA" },
    { "no-sync", 0, OPT_FLAG, AT(request, job.no_sync), NULL,
      "do not wait for the disk (scratch files)" },
    { "verbose", 'v', OPT_FLAG, SETTING(verbose), NULL, "print what changed, on stderr" },
    { "json", 0, OPT_FLAG, AT(request, as_json), NULL, "print one JSON document" },
    { .name = NULL },
};

const command command_delta = {
    .name = "delta",
    .args = "OLD NEW",
    .summary = "write what changed from one model to another",
    .description =
        "Writes the values, tensors and metadata that NEW has and OLD has not to a file, which\n"
        "`heft apply` turns into NEW where there is OLD. Of tensors in which few elements\n"
        "changed only these are stored. OLD and NEW may have different formats. The file is\n"
        "a zTensor file with digests of all tensors of both models.",
    .example = "heft delta step1.safetensors step2.safetensors -o step2.zt",
    .group = GROUP_CHANGE,
    .traits = COMMAND_WRITES | COMMAND_REPORTS_LOSSES | COMMAND_CHECKS_PARTS,
    .operands = { 0, 1, 0, NO_OUTPUT },
    .options = options,
    .request_bytes = sizeof(request),
    .begin = job_begin,
    .run = run,
};
