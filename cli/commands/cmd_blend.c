/* cmd_blend.c - `heft blend`: blend models of the same shapes into one. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands/job.h"
#include "models/inputs.h"
#include "models/model.h"
#include "models/quantised.h"
#include "options/command.h"

typedef struct blended_model {
    const char *path;
    heft_file *f;
    dequantised decoded;
} blended_model;

typedef struct request {
    job job;
    heft_blend_settings *settings;
    blended_model *models; /* as the settings count them */
    const char **paths;
    const heft_file **files;
    uint32_t count;
    heft_blend *blend;
    int strict_code; /* of the first warning: the exit code with --strict */
} request;

/* ---- models ---- */

/* Numbers that are stored as others, with scales, are no numbers to blend. */
static int decode(request *r, blended_model *m)
{
    job *j = &r->job;
    heft_schemes *schemes = NULL;
    int code = quantised_open(&schemes, m->f, m->path);
    bool is_quantised = !code && heft_schemes_count(schemes);
    heft_schemes_close(schemes);
    if (!code && is_quantised && !j->dequantize)
        return say_status(HEFT_E_UNSUPPORTED, m->path,
                          "the model is quantised: --dequantize decodes it");
    return !code && is_quantised
               ? dequantise(&m->decoded, j->session, m->f, m->path, j->dequantize, true)
               : code;
}

static int open_model(request *r, uint32_t i)
{
    const session *s = r->job.session;
    blended_model *m = &r->models[i];
    m->path = blend_model_path(r->settings, i, s, &r->job.blend, s->args.item,
                               (uint32_t)s->args.count - 1);
    int code = m->path ? model_open_whole(s, &m->f, m->path) : CODE_USAGE;
    if (!code)
        code = decode(r, m);
    r->paths[i] = m->path;
    r->files[i] = m->decoded.model ? m->decoded.model : m->f;
    return code;
}

static int open_models(request *r)
{
    r->count = heft_blend_settings_models(r->settings);
    r->models = calloc(r->count, sizeof *r->models);
    r->files = calloc(r->count, sizeof *r->files);
    r->paths = calloc(r->count, sizeof *r->paths);
    int code = r->models && r->files && r->paths
                   ? CODE_DONE
                   : say_status(HEFT_E_NOMEM, NULL, "no memory for the models");
    for (uint32_t i = 0; i < r->count && !code; i++)
        code = open_model(r, i);
    return code;
}

/* Every MODEL is named by the settings. */
static int check_used(const request *r)
{
    const session *s = r->job.session;
    for (int k = 0; k < s->args.count - 1; k++) {
        bool is_used = false;
        for (uint32_t i = 0; i < r->count; i++)
            is_used = is_used || r->models[i].path == s->args.item[k];
        if (!is_used)
            return say_usage(s->name, "the settings do not name the model '%s'", s->args.item[k]);
    }
    return CODE_DONE;
}

static int check_stdout(job *j)
{
    j->to_stdout = !strcmp(j->out, "-");
    if (!j->to_stdout)
        return CODE_DONE;
    if (!j->to)
        return say_usage(j->command, "--to is needed to write to standard output");
    if (j->blend.as_json)
        return say_usage(j->command, "standard output is the model: --json needs a file");
    if (!j->dry_run && isatty(STDOUT_FILENO) && !j->force)
        return say_usage(j->command, "standard output is a terminal: --force writes to it");
    return CODE_DONE;
}

static int check_output(const request *r)
{
    struct stat out;
    if (r->job.to_stdout || stat(r->job.out, &out))
        return CODE_DONE;
    for (uint32_t i = 0; i < r->count; i++) {
        const input one = { r->models[i].path, "one of the models", r->models[i].f };
        int code = inputs_check(r->job.out, &one, 1, &out);
        if (code)
            return code;
    }
    return job_check_output(&r->job, &out);
}

/* ---- the blend ---- */

static const char *way_out(const heft_error *err)
{
    static const struct {
        const char *rule, *way;
    } ways[] = {
        { "heft/blend-missing", " (--missing base|present, --tied NAME=OTHER)" },
        { "heft/blend-tied", " (--untie)" },
    };
    for (size_t i = 0; err->rule && i < sizeof ways / sizeof *ways; i++)
        if (!strcmp(err->rule, ways[i].rule))
            return ways[i].way;
    return "";
}

static void on_loss(void *ctx, heft_severity severity, const char *rule, heft_str tensor,
                    const char *text)
{
    request *r = ctx;
    if (severity >= HEFT_WARNING && !r->strict_code)
        r->strict_code = strcmp(rule, "heft/blend-unmatched") ? CODE_CANNOT : CODE_USAGE;
    if (severity == HEFT_WARNING && r->job.session->strict)
        severity = HEFT_FAULT;
    keep_loss(&r->job.losses, severity, rule, tensor, text);
}

/* Say how many tensors are not blended. */
static void say_kept(const request *r)
{
    uint32_t all = heft_blend_count(r->blend), kept = 0;
    for (uint32_t i = 0; i < all; i++)
        kept += !heft_blend_at(r->blend, i).models;
    if (kept && !r->job.session->quiet)
        say(MESSAGE_NOTE, r->job.source, "%u of %u tensors %s taken from the base%s", kept, all,
            kept == 1 ? "is" : "are", r->job.session->verbose ? "" : " (-v lists them)");
}

static bool step(void *ctx, uint64_t done, uint64_t total)
{
    request *r = ctx;
    return progress_step(&r->job.bar, done, total);
}

static int open_blend(request *r)
{
    job *j = &r->job;
    heft_error err;
    heft_blend_options o = HEFT_BLEND_OPTIONS_INIT;
    o.on_loss = on_loss;
    o.progress = step;
    o.ctx = r;
    o.verify = !j->session->no_verify;
    o.allow_nan = j->blend.allow_nan;
    o.plan_only = j->dry_run;
    progress_begin(&j->bar, j->out);
    heft_status st = heft_blend_open(&r->blend, r->settings, r->files, &o, &err);
    progress_end(&j->bar);
    if (st)
        return say_status(err.status, job_explain(j, &err), "%s%s", err.message, way_out(&err));
    return j->session->strict ? r->strict_code : CODE_DONE;
}

static int print_tensors(const request *r)
{
    outbuf o;
    out_open(&o, STDOUT_FILENO);
    json j = json_open(&o);
    json_member_str(&j, "file", str_of(r->job.out));
    json_member_u64(&j, "bytes", r->job.bytes);
    json_member_bool(&j, "dry_run", r->job.dry_run);
    json_member_begin(&j, "tensors", '[');
    for (uint32_t i = 0; i < heft_blend_count(r->blend); i++) {
        heft_blend_item t = heft_blend_at(r->blend, i);
        json_line(&j);
        json_begin(&j, '{');
        json_member_str(&j, "name", t.name);
        json_member_u64(&j, "models", t.models);
        json_member_dtype(&j, "from", t.from);
        json_member_dtype(&j, "to", t.to);
        json_end(&j, '}');
    }
    json_end(&j, ']');
    json_close(&j);
    return out_end(&o, CODE_DONE);
}

static int say_plan(const request *r)
{
    outbuf o;
    uint32_t all = heft_blend_count(r->blend), blended = 0;
    for (uint32_t i = 0; i < all; i++)
        blended += heft_blend_at(r->blend, i).models > 0;
    out_open(&o, STDOUT_FILENO);
    out_message(&o, r->job.out);
    out_format(&o, ": %u of %u tensors blended, %llu bytes\n", blended, all,
               (unsigned long long)r->job.bytes);
    return out_end(&o, CODE_DONE);
}

static int prepare(request *r)
{
    job *j = &r->job;
    const session *s = j->session;
    int code = job_prepare(j);
    if (!code)
        code = check_stdout(j);
    if (!code)
        code = blend_settings(&r->settings, s, &j->blend, s->args.item,
                              (uint32_t)s->args.count - 1);
    if (!code)
        code = job_choose_target(j);
    if (!code)
        code = open_models(r);
    if (!code)
        code = check_used(r);
    if (!code)
        code = check_output(r);
    if (code)
        return code;
    job_set_options(j, r->models[heft_blend_settings_base(r->settings)].path);
    j->inputs = r->paths;
    j->input_count = r->count;
    j->convert.no_verify = true; /* computed tensors have no checksums */
    return open_blend(r);
}

static int blend(request *r)
{
    job *j = &r->job;
    int code = prepare(r);
    losses_print(&j->losses);
    if (!code)
        say_kept(r);
    if (!code)
        code = job_convert(j, heft_blend_file(r->blend));
    if (!code && j->blend.as_json)
        code = print_tensors(r);
    else if (!code && j->dry_run)
        code = say_plan(r);
    if (!code)
        job_say_result(j);
    return code;
}

static int run(const session *s, void *ctx)
{
    request *r = ctx;
    r->job.out = s->args.item[s->args.count - 1];
    int code = blend(r);
    heft_blend_close(r->blend);
    for (uint32_t i = 0; r->models && i < r->count; i++) {
        dequantised_release(&r->models[i].decoded);
        heft_file_close(r->models[i].f);
    }
    free(r->models);
    free(r->paths);
    free(r->files);
    heft_blend_settings_close(r->settings);
    job_release(&r->job);
    return code;
}

const command command_blend = {
    .name = "blend",
    .args = "MODEL... OUT",
    .summary = "blend models of the same shapes into one",
    .description =
        "Computes each tensor of OUT from the tensors of that name in all models: weighted\n"
        "sums, spherical interpolation, or sums of differences to a base. Models may have\n"
        "different formats. Numbers are computed in f32 and rounded once to the type of the\n"
        "base. A tensor that not all models have, and shapes that differ, are errors.",
    .example = "heft blend --method linear --weight 0.7,0.3 a.safetensors b.gguf c.gguf",
    .group = GROUP_CHANGE,
    .traits = COMMAND_WRITES | COMMAND_REPORTS_LOSSES,
    .operands = { 0, -2, -1, STDOUT_OUTPUT },
    .shared = job_options,
    .sharer = JOB_BLEND,
    .request_bytes = sizeof(request),
    .begin = job_begin,
    .run = run,
};
