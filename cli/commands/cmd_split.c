/* cmd_split.c - `heft split`: write a model as several shards in a folder. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <heft/heft_ext.h>
#include <heft/split.h>

#include "commands/job.h"
#include "models/inputs.h"
#include "options/command.h"
#include "process/interrupt.h"
#include "process/textfile.h"

typedef struct request {
    job job;                /* job.out is the folder */
    const heft_file *f;     /* the input */
    const heft_file *model; /* the input, or a file of what its quantised tensors represent */
    heft_sink_dir *set;
    outbuf files; /* names of the shards, each with a zero byte */
    char *shard;  /* path of the file that is being written, or NULL */
} request;

static int choose_target(job *j, const heft_file *f)
{
    j->target = j->to ? heft_format_find(heft_str_from(j->to)) : heft_file_format(f);
    if (!j->target)
        return say_usage("split", "unknown format '%s': `heft formats` lists what is supported",
                         j->to);
    if (heft_format_can_split(j->target))
        return CODE_DONE;
    return say_status(
        HEFT_E_UNSUPPORTED, j->source,
        "%s does not support models in several files: choose another format with --to",
        heft_format_name(j->target));
}

/* Names that programs expect of the shards of a format; other formats keep the input's stem. */
static const struct {
    const char *format, *stem;
} expected_stems[] = { { "safetensors", "model" },
                       { "torch", "pytorch_model" },
                       { "flax", "flax_model" } };

static char *choose_stem(const request *r)
{
    heft_str name = heft_file_name(r->f);
    size_t len = name.len;
    if (r->job.stem)
        return strdup(r->job.stem);
    for (size_t i = 0; i < sizeof expected_stems / sizeof *expected_stems; i++)
        if (!strcmp(heft_format_name(r->job.target), expected_stems[i].format))
            return strdup(expected_stems[i].stem);
    while (len && name.ptr[len - 1] != '.')
        len--;
    return len > 1 ? strndup(name.ptr, len - 1) : strdup("model");
}

/* ---- files ---- */

/* Raise the limit on open files to the maximum: all shards are open at once. */
static void raise_file_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur == limit.rlim_max)
        return;
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit))
        return; /* keep the present limit */
}

static heft_status set_error(heft_error *err, heft_status st, const char *name, const char *reason)
{
    *err = (heft_error){ .status = st, .offset = HEFT_UNKNOWN_LENGTH };
    snprintf(err->message, sizeof err->message, "%s: %s", name, reason);
    return st;
}

static heft_status open_path(heft_sink **out, request *r, const char *path, const char *name,
                             heft_error *err)
{
    const input in = { r->job.source, "the input itself", r->f };
    struct stat info;
    char reason[128];
    heft_status st;
    if (!stat(path, &info)) {
        if (inputs_contain(reason, &st, &in, 1, &info))
            return set_error(err, st, name, reason);
        if (S_ISREG(info.st_mode) && !r->job.force)
            return set_error(err, HEFT_E_ARGUMENT, name, "already exists: --force replaces it");
    }
    st = heft_sink_dir_add(out, r->set, name, err);
    return st ? st : sink_watch(out, &r->job.events, err);
}

static heft_status open_file(heft_sink **out, void *ctx, const char *name, heft_error *err)
{
    request *r = ctx;
    char *path = path_in(r->job.out, name);
    *out = NULL;
    out_bytes(&r->files, name, strlen(name) + 1);
    heft_status st = path && !r->files.os
                         ? open_path(out, r, path, name, err)
                         : set_error(err, HEFT_E_NOMEM, name, "no memory for its path");
    free(r->shard);
    r->shard = st ? NULL : path;
    if (st)
        free(path);
    return st;
}

/* ---- the command ---- */

static void say_result(const request *r)
{
    result_line line;
    if (!result_begin(&line, r->job.out))
        return;
    json_member_str(&line.json, "format", str_of(heft_format_name(r->job.target)));
    json_member_begin(&line.json, "files", '[');
    for (size_t at = 0; at < r->files.used; at += strlen(r->files.buf + at) + 1)
        json_str(&line.json, str_of(r->files.buf + at));
    json_end(&line.json, ']');
    result_end(&line);
}

static int split(request *r)
{
    heft_error err;
    job *j = &r->job;
    heft_split_options o = HEFT_SPLIT_OPTIONS_INIT;
    bool recovered;
    int code = path_is_folder(j->out) ? recover_set(&recovered, j->out) : CODE_DONE;
    if (code)
        return code;
    char *stem = choose_stem(r);
    if (!stem)
        return say_status(HEFT_E_NOMEM, j->source, "no memory for a name");
    o.convert = &j->convert;
    o.max_bytes = j->max_bytes;
    o.count = (uint32_t)j->count;
    o.stem = stem;
    o.open = open_file;
    o.ctx = r;
    raise_file_limit();
    interrupt_hold();
    heft_status st = heft_sink_dir_open(&r->set, j->out, sink_flags(j->force, j->no_sync), &err);
    progress_begin(&j->bar, j->out);
    if (!st)
        st = heft_file_split(r->model, j->target, &o, &err);
    progress_end(&j->bar);
    losses_print(&j->losses);
    const char *file = st && r->shard && err.about == HEFT_ABOUT_TARGET ? r->shard : j->out;
    if (!st && interrupt_is_pending())
        st = interrupt_error(&err);
    if (st)
        heft_sink_dir_discard(r->set);
    else
        st = heft_sink_dir_finish(r->set, &err);
    free(stem);
    if (st && j->rules.no_memory)
        return say_no_memory_to_match(j->source);
    job_say_sums(j, st);
    return st ? say_error(err.about == HEFT_ABOUT_TARGET ? file : j->source, &err) : CODE_DONE;
}

static int prepare(job *j)
{
    enum { MOST_FILES = 4096 };
    if (!j->max_bytes && !j->count)
        return say_usage("split", "expected --max-size or --count");
    if (j->count > MOST_FILES)
        return say_usage("split", "--count must be at most %d", MOST_FILES);
    return job_prepare(j);
}

static int run(const session *s, void *ctx)
{
    request *r = ctx;
    job *j = &r->job;
    heft_file *f = NULL;
    dequantised d = { NULL, NULL };
    j->out = s->args.item[1];
    int code = prepare(j);
    job_set_options(j, s->args.item[0]);
    if (!code)
        code = model_open_whole(s, &f, j->source);
    r->f = f;
    out_open(&r->files, -1);
    if (!code)
        code = choose_target(j, f);
    if (!code && j->dequantize)
        code = dequantise(&d, s, f, j->source, j->dequantize);
    if (!code && !d.model)
        code = dequantise_check_target(s, f, j->source, j->target);
    r->model = d.model ? d.model : f;
    if (!code)
        code = rules_check(&j->rules, s, r->model, j->source);
    if (!code)
        code = split(r);
    if (!code)
        say_result(r);
    out_free(&r->files);
    free(r->shard);
    dequantised_release(&d);
    heft_file_close(f);
    job_release(j);
    return code;
}

const command command_split = {
    .name = "split",
    .args = "IN OUTDIR",
    .summary = "write a model as several files",
    .description =
        "Writes a model as several files: safetensors with an index, GGUF or zTensor 2.\n"
        "A file holds as many tensors as fit into --max-size; a larger tensor gets a file of\n"
        "its own, with a warning. With --count, the files are as equal as the order of the\n"
        "tensors allows. All files appear together, or none. An interrupted split is\n"
        "completed or rolled back by the next one, or by `heft edit OUTDIR`.",
    .example = "heft split --max-size 5GB model.safetensors shards/",
    .group = GROUP_CHANGE,
    .traits = COMMAND_WRITES | COMMAND_REPORTS_LOSSES,
    .operands = { 0, 0, 1, FOLDER_OUTPUT },
    .shared = job_options,
    .sharer = JOB_SPLIT,
    .request_bytes = sizeof(request),
    .begin = job_begin,
    .run = run,
};
