/* cmd_merge.c - `heft merge`: write several files, or a model in shards, as one file. */
#include "commands/job.h"
#include "models/inputs.h"
#include "options/command.h"

typedef struct request {
    job job;
    inputs in;
    uint32_t conflicts;
    bool no_memory; /* out of memory while a warning was formatted */
} request;

static void on_conflict(void *ctx, heft_str key, uint32_t file)
{
    request *r = ctx;
    outbuf name;
    out_open(&name, -1);
    out_escaped(&name, key);
    const char *text = out_cstr(&name);
    r->no_memory = r->no_memory || name.os;
    say_lost(r->job.session->strict, r->in.paths[r->in.distinct_index[file]],
             "metadata \"%s\" differs from an earlier file; the earlier value is kept", text);
    out_free(&name);
    r->conflicts++;
}

static int join(request *r)
{
    heft_join_options o = HEFT_JOIN_OPTIONS_INIT;
    o.duplicates = job_duplicates(&r->job);
    o.on_conflict = on_conflict;
    o.ctx = r;
    int code = inputs_join(&r->in, &o, r->job.out);
    if (code || r->no_memory)
        return code ? code : CODE_SYSTEM;
    return r->job.session->strict && r->conflicts ? CODE_CANNOT : CODE_DONE;
}

static int check_output(const request *r)
{
    struct stat out;
    if (stat(r->job.out, &out))
        return CODE_DONE;
    for (uint32_t i = 0; i < r->in.count; i++) { /* files[i] may be NULL: a shard of the first */
        const input one = { r->in.paths[i], "one of the inputs", r->in.files[i] };
        int code = inputs_check(r->job.out, &one, 1, &out);
        if (code)
            return code;
    }
    return job_check_output(&r->job, &out);
}

static int prepare(request *r)
{
    job *j = &r->job;
    int code = job_prepare(j);
    if (!code)
        code = inputs_open(&r->in);
    if (!code)
        code = job_choose_target(j);
    if (!code)
        code = gptrs_check_target(&j->rules.gptrs, j->target, j->out);
    if (!code)
        code = check_output(r);
    if (!code)
        code = join(r);
    if (!code && j->dequantize)
        code = inputs_dequantise(&r->in, j->dequantize);
    if (!code)
        code = inputs_check_target(&r->in, j->target);
    if (!code)
        job_set_options(j,
                        r->in.distinct_count == 1 ? r->in.paths[r->in.distinct_index[0]] : j->out);
    j->inputs = r->in.distinct_paths;
    j->input_count = r->in.joined ? r->in.distinct_count : 0;
    return code;
}

static int merge(request *r)
{
    int code = prepare(r);
    if (!code)
        code = r->job.share.number || r->job.finish
                   ? job_convert_share(&r->job, inputs_model(&r->in))
                   : job_convert(&r->job, inputs_model(&r->in));
    if (!code)
        job_say_result(&r->job);
    inputs_close(&r->in);
    return code;
}

static int run(const session *s, void *ctx)
{
    request *r = ctx;
    r->in.session = s;
    r->in.paths = s->args.item;
    r->in.count = (uint32_t)s->args.count - 1;
    r->job.out = s->args.item[r->in.count];
    int code = r->job.abort ? job_give_up(&r->job) : merge(r);
    job_release(&r->job);
    return code;
}

const command command_merge = {
    .name = "merge",
    .args = "IN... OUT",
    .summary = "write several files as one",
    .description =
        "Writes all tensors of the inputs to one file. The inputs are a model in several\n"
        "files, named by its folder or index, or independent files. Two tensors of the same\n"
        "name are an error unless --duplicates chooses one. Of metadata with the same key the\n"
        "first value is kept, and a difference is a warning.",
    .example = "heft merge shards/ model.safetensors",
    .group = GROUP_CHANGE,
    .traits = COMMAND_WRITES | COMMAND_REPORTS_LOSSES,
    .operands = { 0, -2, -1, FILE_OUTPUT },
    .shared = job_options,
    .sharer = JOB_MERGE,
    .request_bytes = sizeof(request),
    .begin = job_begin,
    .writes_shares = job_makes_folders,
    .run = run,
};
