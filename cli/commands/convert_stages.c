/* convert_stages.c - the stages of a conversion: quantised weights are decoded or kept, adapters
 * merged or extracted, tensors renamed, weights quantised; each stage makes a model of the one
 * before, or leaves it.  Then the last model is written. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "commands/convert_request.h"
#include "models/inputs.h"
#include "models/kept_blocks.h"
#include "models/mapped.h"
#include "models/quantised.h"
#include "models/quantised_model.h"
#include "values/compare.h"

quantise_output convert_settings_place(const convert_request *r)
{
    const job *j = &r->job;
    bool is_file = !j->to_stdout && !heft_is_url(j->out) && !j->share.number && !j->finish;
    bool has_config = !strcmp(heft_format_name(j->target), "safetensors");
    return (quantise_output){ .path = is_file && has_config ? j->out : NULL,
                              .format = j->target,
                              .dry_run = j->dry_run,
                              .force = j->force,
                              .no_sync = j->no_sync };
}

/* Refuse to replace an input by the settings of quantised weights. */
static int check_settings(const convert_request *r, const char *path)
{
    struct stat out;
    return path && !stat(path, &out) ? convert_check_inputs(r, NULL, path, &out) : CODE_DONE;
}

/* Refuse to write one of the files of --lora or --base. Return an exit code. */
static int check_lora_inputs(const convert_request *r, const adapters *a, const extracted *x)
{
    const job *j = &r->job;
    struct stat out;
    if (j->to_stdout ? fstat(STDOUT_FILENO, &out) : stat(j->out, &out))
        return CODE_DONE;
    const input base = { j->extract.base, "the model of --base", x->base };
    int code = inputs_check(j->out, &base, 1, &out);
    for (size_t i = 0; i < a->count && !code; i++) {
        const input one = { j->adapters.list.item[2 * i], "an adapter of --lora", a->files[i] };
        code = inputs_check(j->out, &one, 1, &out);
    }
    return code;
}

/* Print what was merged or extracted. Return whether the size of OUT follows. */
static bool print_lora(outbuf *o, const job *j, const adapters *a, const extracted *x)
{
    if (a->merged && (j->quality_as_json || j->dry_run))
        adapters_print(o, a, &j->adapters, j->session, j->quality_as_json);
    if (x->plan && (j->quality_as_json || !j->session->quiet))
        extracted_print(o, x, j->session, j->quality_as_json);
    return !j->quality_as_json;
}

static int say_done(convert_request *r, const heft_file *in, const adapters *a, const extracted *x)
{
    job *j = &r->job;
    if (j->session->verbose && !j->written.missing)
        say(MESSAGE_INFO, j->out, "%s, %llu bytes", heft_format_name(j->target),
            (unsigned long long)j->bytes);
    bool lists_merged = (a->merged && j->quality_as_json) || x->plan;
    if (!j->dry_run && !j->to_stdout && !lists_merged)
        return CODE_DONE;
    outbuf o;
    out_open(&o, STDOUT_FILENO);
    if (print_lora(&o, j, a, x) && j->dry_run) {
        job_mix_print(&o, j, in);
        out_message(&o, j->out);
        out_format(&o, ": %llu bytes\n", (unsigned long long)j->bytes);
    }
    return out_end(&o, CODE_DONE);
}

/* A mix quantises what quantised tensors represent, in f32, so that no rounding is added; so does
 * what quantises the result of a map. */
static int decode_for_mix(dequantised *d, const job *j, const heft_file *f)
{
    heft_schemes *found;
    int code = quantised_open_to_convert(&found, f, j->source);
    uint32_t count = code ? 0 : heft_schemes_count(found);
    heft_schemes_close(code ? NULL : found);
    if (!count)
        return code;
    if (!j->quantise.requantise)
        return say_status(HEFT_E_UNSUPPORTED, j->source,
                          "%u tensor%s quantised already: %s adds a second loss; "
                          "--requantize allows this",
                          count, count == 1 ? " is" : "s are",
                          j->mix.info.name ? "a mix" : "--quantize of a computed model");
    return dequantise(d, j->session, f, j->source, "f32", false);
}

/* Let the conversion measure what it quantises, if that is asked. */
static int begin_quality(job *j)
{
    int code = j->verify_quality
                   ? quantise_open_quality(&j->quantise.quality, j->session, j->source)
                   : CODE_DONE;
    j->convert.quality = j->quantise.quality;
    return code;
}

static int say_quality(const job *j)
{
    if (!j->verify_quality || (j->session->quiet && !j->quality_as_json))
        return CODE_DONE;
    return quality_print(j->quantise.quality, j->session,
                         j->to_stdout ? STDERR_FILENO : STDOUT_FILENO, j->quality_as_json);
}

static mapped_output output_kind_of(const convert_request *r)
{
    bool is_gguf = !strcmp(heft_format_name(r->job.target), "gguf");
    return r->out_folder ? MAPPED_FOLDER : is_gguf ? MAPPED_GGUF : MAPPED_OTHER;
}

/* Return whether quantised weights shall stay as they are, in the form that the target has for
 * them. */
static bool keeps_blocks(const convert_request *r)
{
    const job *j = &r->job;
    bool is_gguf = j->session->map && output_kind_of(r) == MAPPED_GGUF;
    bool is_burn = !strcmp(heft_format_name(j->target), "burnpack") && !j->session->map &&
                   !j->quantise.args.count;
    return (is_gguf || is_burn) && !j->dequantize && !j->quantise.requantise &&
           !j->rules.raw_tensors && !adapters_wanted(&j->adapters) && !j->extract.rank;
}

static int make_folder(convert_request *r)
{
    if (!r->out_folder || r->job.dry_run)
        return CODE_DONE;
    r->made_folder = !mkdir(r->out_folder, 0777);
    return r->made_folder || errno == EEXIST ? CODE_DONE : say_system(errno, r->out_folder);
}

/* Adapters are merged into blocks of GGUF only if the result is cast or quantised. */
static heft_dtype block_type(const job *j)
{
    return j->mix.info.name || j->rules.cast.args.count ? HEFT_F32 : HEFT_UNTYPED;
}

/* Each stage makes a model of the one before, or leaves it. */
typedef struct stages {
    heft_file *f; /* the input */
    kept_blocks kept;
    dequantised decoded;
    adapters merged;
    extracted extraction;
    mapped renamed;
    quantised_model quantised;
    const heft_file *last; /* the model after the last stage so far */
} stages;

/* Without memory for a pattern the conversion ends later. */
static bool is_cast(void *ctx, const heft_tensor *t)
{
    rules *r = ctx;
    return cast_rules_find(&r->no_memory, &r->cast, t) != HEFT_UNTYPED;
}

static int keep_blocks(convert_request *r, stages *t)
{
    job *j = &r->job;
    kept_options o = { j->target, j->rules.cast.args.count != 0, is_cast, &j->rules };
    return kept_blocks_open(&t->kept, j->session, t->f, r->in, &o);
}

/* Decode quantised weights, or keep them in the form that the target has for them. */
static int decode_input(convert_request *r, stages *t)
{
    job *j = &r->job;
    bool is_computed = j->session->map || adapters_wanted(&j->adapters);
    bool is_quantised_again = j->mix.info.name || (is_computed && j->quantise.args.count);
    int code = CODE_DONE;
    if (keeps_blocks(r))
        code = keep_blocks(r, t);
    if (!code && is_quantised_again && !j->dequantize && !t->kept.plan)
        code = decode_for_mix(&t->decoded, j, t->f);
    if (!code && j->dequantize)
        code = dequantise(&t->decoded, j->session, t->f, r->in, j->dequantize, true);
    j->rules.is_decoded = t->decoded.model || t->kept.plan;
    t->last = t->kept.plan ? kept_blocks_file(&t->kept) : t->f;
    if (!t->kept.plan && t->decoded.model)
        t->last = t->decoded.model;
    return code;
}

/* Merge adapters, or extract one. */
static int merge_adapters(convert_request *r, stages *t)
{
    job *j = &r->job;
    int code = adapters_open(&t->merged, &j->adapters, j->session, t->last, r->in,
                             j->quantise.allow_nan, block_type(j));
    if (t->merged.merged)
        t->last = adapters_file(&t->merged);
    if (!code)
        code = extracted_open(&t->extraction, &j->extract, j->session, t->last, r->in);
    if (t->extraction.plan)
        t->last = extracted_file(&t->extraction);
    return code ? code : check_lora_inputs(r, &t->merged, &t->extraction);
}

static int rename_tensors(convert_request *r, stages *t)
{
    job *j = &r->job;
    int code = mapped_open(&t->renamed, j->session, t->last, r->in, output_kind_of(r));
    if (t->renamed.model)
        t->last = t->renamed.model;
    j->rules.cast.is_for_ggml = t->renamed.is_for_ggml;
    return code;
}

/* Quantise the model, and check that the target has a form for it. */
static int quantise_model(convert_request *r, stages *t)
{
    job *j = &r->job;
    int code = CODE_DONE;
    if (j->quantise.args.count && !j->mix.info.name)
        code = quantise(&t->quantised, &j->quantise, j->session, t->last, r->in,
                        convert_settings_place(r));
    if (!code)
        code = check_settings(r, t->quantised.config);
    bool is_as_stored = !t->decoded.model && !t->kept.plan && !t->quantised.plan &&
                        !j->rules.raw_tensors;
    if (!code && is_as_stored)
        code = dequantise_check_target(j->session, t->last, r->in, j->target);
    if (t->quantised.plan)
        t->last = quantised_file(&t->quantised);
    return code;
}

/* Let errors name the input that they are about. */
static void set_inputs(job *j, const stages *t)
{
    if (t->extraction.plan) {
        j->inputs = t->extraction.paths;
        j->input_count = 2;
    } else if (t->merged.merged) {
        j->inputs = t->merged.paths;
        j->input_count = t->merged.count + 1;
    }
}

static int write_model(convert_request *r, const stages *t)
{
    job *j = &r->job;
    int code = make_folder(r);
    set_inputs(j, t);
    if (code)
        return code;
    if (job_is_for_folder(j))
        return job_split(j, t->f, t->last);
    return j->share.number || j->finish ? job_convert_share(j, t->last) : job_convert(j, t->last);
}

/* Write the texts that belong to the weights, and say what was done. */
static int end_model(convert_request *r, stages *t)
{
    job *j = &r->job;
    int code = CODE_DONE;
    if (t->quantised.plan)
        code = quantised_end(&t->quantised, j->session, convert_settings_place(r));
    if (!code)
        code = say_quality(j);
    if (!code)
        code = say_done(r, t->last, &t->merged, &t->extraction);
    if (code || j->dry_run)
        return code;
    if (t->extraction.plan)
        return extracted_end(&t->extraction, j->session, r->out_folder, j->force, j->no_sync);
    return r->out_folder ? gguf_folder_write(&t->renamed.gguf, j->session, r->out_folder, j->force,
                                             j->no_sync)
                         : CODE_DONE;
}

static void release_stages(stages *t)
{
    quantised_release(&t->quantised);
    mapped_release(&t->renamed);
    extracted_release(&t->extraction);
    adapters_release(&t->merged);
    kept_blocks_release(&t->kept);
    dequantised_release(&t->decoded);
}

static int run_all(convert_request *r, stages *t)
{
    static int (*const make[])(convert_request *, stages *) = { decode_input, merge_adapters,
                                                                rename_tensors, quantise_model };
    int code = begin_quality(&r->job);
    for (size_t i = 0; i < sizeof make / sizeof *make && !code; i++)
        code = make[i](r, t);
    if (!code)
        code = write_model(r, t);
    return code ? code : end_model(r, t);
}

int convert_run_stages(convert_request *r, heft_file *f)
{
    stages t = { .f = f };
    int code = run_all(r, &t);
    release_stages(&t);
    return code;
}
