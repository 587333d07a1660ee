/* cmd_split.c - `heft split`: write a model as several shards in a folder. */
#include <heft/split.h>

#include "commands/job.h"
#include "models/inputs.h"
#include "options/command.h"
#include "text/words.h"

typedef struct request {
    job job; /* job.out is the folder */
} request;

static int choose_target(job *j, const heft_file *f)
{
    j->target = j->to ? heft_format_find(heft_str_from(j->to)) : heft_file_format(f);
    const char *writer = j->to ? foreign_format_writer(j->to) : NULL;
    if (!j->target && writer)
        return say_usage("split", "'%s' is not written by Heft: %s", j->to, writer);
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
    if (!code)
        code = choose_target(j, f);
    if (!code && j->dequantize)
        code = dequantise(&d, s, f, j->source, j->dequantize, true);
    if (!code && !d.model)
        code = dequantise_check_target(s, f, j->source, j->target);
    if (!code)
        code = job_split(j, f, d.model ? d.model : f);
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
        "Writes a model as several files: safetensors, PyTorch or Flax with an index, GGUF,\n"
        "zTensor 2, or a distributed checkpoint of PyTorch (dcp).\n"
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
