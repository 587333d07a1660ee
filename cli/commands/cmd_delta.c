/* cmd_delta.c - `heft delta`: write what changed from one model to another. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <heft/delta.h>
#include <heft/split.h>

#include "commands/delta_report.h"
#include "options/command.h"
#include "process/interrupt.h"

typedef struct request {
    job job;
    const char *compress, *disk, *checksum;
    uint64_t version;
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

static int report(const request *r, const heft_delta_sums *sums)
{
    const job *j = &r->job;
    return delta_report(&(delta_summary){ .session = j->session,
                                          .path = j->dry_run ? NULL : j->out,
                                          .sums = *sums,
                                          .as_json = r->as_json,
                                          .verb = j->dry_run ? "would be" : NULL });
}

/* ---- for other programs ---- */

static heft_status open_in_folder(heft_sink **out, void *ctx, const char *name, heft_error *err)
{
    heft_sink_dir *sinks = ctx;
    heft_status st = heft_sink_dir_add(out, sinks, name, err);
    return st ? st : sink_watch(out, NULL, err);
}

static heft_status write_folder(request *r, heft_sink_dir *sinks, const heft_file *old,
                                const heft_file *new, heft_delta_sums *sums, heft_error *err)
{
    job *j = &r->job;
    heft_disk_delta_options o = HEFT_DISK_DELTA_OPTIONS_INIT;
    o.encoding = r->disk;
    o.checksum = r->checksum;
    o.version = (uint32_t)r->version;
    o.open = open_in_folder;
    o.open_ctx = sinks;
    o.on_loss = keep_loss_of_job;
    o.progress = job_step;
    o.ctx = j;
    o.strict = j->session->strict;
    progress_begin(&j->bar, j->out);
    heft_status st = heft_delta_make_disk(sums, old, new, &o, err);
    progress_end(&j->bar);
    losses_print(&j->losses);
    return st;
}

static int make_folder(request *r, const heft_file *old, const heft_file *new)
{
    job *j = &r->job;
    heft_error err;
    heft_delta_sums sums;
    heft_sink_dir *sinks = NULL;
    job_set_options(j, j->session->args.item[1]);
    interrupt_hold();
    heft_status st = heft_sink_dir_open(&sinks, j->out, sink_flags(j->force, j->no_sync), &err);
    if (st)
        return say_error(j->out, &err);
    st = write_folder(r, sinks, old, new, &sums, &err);
    if (!st && interrupt_is_pending())
        st = interrupt_error(&err);
    if (st)
        heft_sink_dir_discard(sinks);
    else
        st = heft_sink_dir_finish(sinks, &err);
    if (st)
        return say_error(job_explain(j, &err), &err);
    return report(r, &sums);
}

static int check_disk(const request *r)
{
    if (!r->disk && (r->checksum || r->version))
        return say_usage("delta", "--checksum and --delta-version are for --disk");
    if (!r->disk)
        return CODE_DONE;
    if (r->job.dry_run || r->compress)
        return say_usage("delta", "--disk excludes --dry-run and --compress");
    return r->version > 999999 ? say_usage("delta", "--delta-version has at most six digits")
                               : CODE_DONE;
}

static bool makes_folder(const void *of)
{
    const request *r = of;
    return r->disk;
}

/* ---- a delta of Heft ---- */

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
    return report(r, &sums);
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
    r->job.inputs = (const char *const *)s->args.item; /* OLD and NEW */
    r->job.input_count = 2;
    int code = check_output(&r->job);
    if (!code)
        code = check_disk(r);
    if (!code)
        code = model_open_whole(s, &old, s->args.item[0]);
    if (!code)
        code = model_open_whole(s, &new, s->args.item[1]);
    if (!code)
        code = r->disk ? make_folder(r, old, new) : make(r, old, new);
    heft_file_close(old);
    heft_file_close(new);
    job_release(&r->job);
    return code;
}

static const opt options[] = {
    { "output", 'o', OPT_OUTPUT, AT(request, job.out), "DELTA",
      "the file to write, .zt, or the folder of --disk" },
    { "compress", 0, OPT_TEXT, AT(request, compress), "zstd[:N]",
      "compress changes (the default); none: store raw" },
    { "disk", 0, OPT_TEXT, AT(request, disk), "xor|overwrite",
      "write a folder for miles, slime and SGLang" },
    { "checksum", 0, OPT_TEXT, AT(request, checksum), "NAME",
      "with --disk: xxh3-128, blake3 or adler32 (the default)" },
    { "delta-version", 0, OPT_NUMBER, AT(request, version), "N",
      "with --disk: number of NEW (default 1); OLD has N - 1" },
    { "dry-run", 'n', OPT_FLAG, AT(request, job.dry_run), NULL, "compare, and write nothing" },
    { "force", 'f', OPT_FLAG, AT(request, job.force), NULL, "replace DELTA" },
    { "no-sync", 0, OPT_FLAG, AT(request, job.no_sync), NULL,
      "do not wait for the disk (scratch files)" },
    { "strict", 0, OPT_FLAG, SETTING(strict), NULL, "treat warnings as errors" },
    { "verbose", 'v', OPT_FLAG, SETTING(verbose), NULL, "print what changed, on stderr" },
    { "json", 0, OPT_FLAG, AT(request, as_json), NULL, "print one JSON document" },
    { .name = NULL },
};

const command command_delta = {
    .name = "delta",
    .args = "OLD NEW",
    .summary = "write what changed from one model to another",
    .description =
        "Writes what differs from OLD to NEW - values, tensors, metadata - to a file. Where OLD\n"
        "is, `heft apply` makes NEW from this file. If few elements of a tensor changed, only\n"
        "these are stored. OLD and NEW may have different formats. The file is a zTensor file\n"
        "with digests of all tensors of both models.",
    .example = "heft delta step1.safetensors step2.safetensors -o step2.zt",
    .group = GROUP_CHANGE,
    .traits = COMMAND_WRITES | COMMAND_REPORTS_LOSSES | COMMAND_CHECKS_PARTS,
    .operands = { 0, 1, 0, NO_OUTPUT },
    .options = options,
    .request_bytes = sizeof(request),
    .begin = job_begin,
    .makes_folder = makes_folder,
    .run = run,
};
