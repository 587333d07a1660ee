/* cmd_convert.c - `heft convert`: write a model in another format, with optional changes. */
#include <errno.h>
#include <heft/remote.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "commands/job.h"
#include "models/adapters.h"
#include "models/companions.h"
#include "models/inputs.h"
#include "models/kept_blocks.h"
#include "models/mapped.h"
#include "models/model.h"
#include "models/quantised.h"
#include "models/quantised_model.h"
#include "options/command.h"
#include "process/textfile.h"
#include "values/compare.h"

typedef struct request {
    job job;
    const char *in;
    folder folder;          /* companion files; empty if IN is a file */
    const char *out_folder; /* OUT, if the weights go into it; or NULL */
    char *out_file;         /* of the weights in out_folder */
    bool made_folder;       /* out_folder was not there before */
} request;

/* ---- --resume: keep the downloaded bytes of an input on a server ---- */

/* Refuse --resume where nothing can be kept. Return an exit code. */
static int resume_check(const job *j, const char *in)
{
    if (!j->resume)
        return CODE_DONE;
    if (!heft_is_url(in))
        return say_usage("convert", "--resume needs the address of a file on a server as IN");
    if (j->to_stdout || heft_is_url(j->out))
        return say_usage("convert", "--resume needs a file as OUT: the download is kept beside it");
    if (j->share.number || j->finish || j->dry_run)
        return say_usage("convert", "--resume excludes --share, --finish and --dry-run");
    return CODE_DONE;
}

static void say_text(void *ctx, const char *text)
{
    say(MESSAGE_INFO, ctx, "%s", text);
}

/* Return the path that names the kept files: an output that is a link stays a link. */
static const char *stem_of(char real[PATH_MAX], const char *out)
{
    return realpath(out, real) ? real : out;
}

/* Open the input with the bytes that an earlier command has kept beside the output. */
static heft_status resume_open(heft_file **out, const job *j, const char *in, heft_error *err)
{
    char real[PATH_MAX];
    heft_url_options o = HEFT_URL_OPTIONS_INIT;
    o.say = say_text;
    o.ctx = (void *)(uintptr_t)in;
    o.resume = stem_of(real, j->out);
    return model_try_open_url(j->session, out, in, &o, err);
}

/* Remove the files with downloaded bytes after success, and if the download is no valid model;
 * after any other failure print that the files are kept. The input has been opened and closed.
 * Return an exit code. */
static int resume_end(const job *j, const char *in, int code)
{
    char real[PATH_MAX];
    heft_error err;
    if (!j->resume)
        return code;
    if (code && code != CODE_INVALID) { /* bytes with a wrong checksum are not kept */
        say(MESSAGE_INFO, in,
            "what was downloaded is kept beside the output: "
            "the same command continues the download");
        return code;
    }
    int removed = heft_url_remove_kept(stem_of(real, j->out), &err) ? say_error(j->out, &err)
                                                                    : CODE_DONE;
    return code ? code : removed;
}

/* ---- before the input is open ---- */

static int choose_target(job *j)
{
    j->to_stdout = !strcmp(j->out, "-");
    j->may_be_folder = true;
    if (!j->to && j->to_stdout)
        return say_usage("convert", "--to is required when the output is stdout");
    return job_choose_target(j);
}

/* Refuse what is for one file, if the target is a folder of files. Return an exit code. */
static int folder_check(job *j)
{
    if (!job_is_for_folder(j))
        return CODE_DONE;
    const char *name = heft_format_name(j->target);
    j->count = 1;
    if (j->to_stdout || heft_is_url(j->out))
        return say_usage("convert", "a model in %s is a folder of files: OUT must be a folder",
                         name);
    if (j->share.number || j->finish || j->resume || j->verify_quality)
        return say_usage("convert",
                         "a model in %s is a folder of files, which excludes --share, --finish, "
                         "--resume and --verify-quality",
                         name);
    return CODE_DONE;
}

/* Refuse an output that is a file of --set-file. */
static int check_set_files(const job *j, const char *name, const struct stat *out)
{
    int code = CODE_DONE;
    for (size_t i = 0; i < j->rules.set.files.count && !code; i++) {
        const char *equals = strchr(j->rules.set.files.item[i], '=');
        const input text = { equals ? equals + 1 : NULL, "a file of --set-file", NULL };
        code = inputs_check(name, &text, 1, out);
    }
    return code;
}

/* Refuse to write the file `name` if it is an input. f is the open model, or NULL. */
static int check_inputs(const request *r, const heft_file *f, const char *name,
                        const struct stat *out)
{
    const job *j = &r->job;
    const input all[] = {
        { r->in, "the input itself", f },
        { j->vocab, "the vocabulary file", NULL },
        { j->config, "the configuration file", NULL },
        { j->mix.imatrix, "the imatrix file", NULL },
        { r->folder.config, "the configuration file", NULL },
    };
    int code = inputs_check(name, all, sizeof all / sizeof *all, out);
    return code || f ? code : check_set_files(j, name, out);
}

/* Refuse an output that is an input, a directory or an existing file without --force. A pipe or a
 * device is always accepted. f is the open model; NULL on the first call, before opening. */
static int check_output(const request *r, const heft_file *f)
{
    const job *j = &r->job;
    struct stat out;
    if (job_is_for_folder(j)) /* each file is checked when it is opened */
        return CODE_DONE;
    if (j->to_stdout ? fstat(STDOUT_FILENO, &out) : stat(j->out, &out))
        return CODE_DONE;
    int code = check_inputs(r, f, j->to_stdout ? "standard output" : j->out, &out);
    if (code || f)
        return code;
    if (j->to_stdout && isatty(STDOUT_FILENO) && !j->force)
        return say_usage("convert", "stdout is a terminal: redirect it, or use --force");
    return job_check_output(j, &out);
}

/* Refuse to replace an input by the settings of quantised weights. */
static int check_settings(const request *r, const char *path)
{
    struct stat out;
    return path && !stat(path, &out) ? check_inputs(r, NULL, path, &out) : CODE_DONE;
}

/* Find the companion files in the folder. For an EMBD target, read vocabulary and metadata. */
static int use_folder(request *r)
{
    job *j = &r->job;
    int code = folder_open(&r->folder, j->session->strict, r->in);
    if (code || strcmp(heft_format_name(j->target), "embd") != 0)
        return code;
    j->rules.encoder = true;
    if (!j->vocab)
        j->vocab = r->folder.vocab;
    if (!j->vocab)
        say(MESSAGE_WARNING, r->in,
            "no vocab.txt or tokenizer.json in the folder: the output has no vocabulary");
    return folder_read_values(&r->folder, r->in);
}

/* A missing input is the first thing to say, before what is wrong with the output. */
static int check_input(const session *s, const char *in)
{
    heft_error err;
    heft_file *f;
    struct stat info;
    if (heft_is_url(in) || !stat(in, &info) || errno != ENOENT)
        return CODE_DONE;
    if (model_try_open(s, &f, in, &err))
        return model_say_open_error(s, in, &err);
    heft_file_close(f);
    return CODE_DONE;
}

/* Name the output beside which config.json goes: OUT, if programs load that file with one. */
static quantise_output quantise_target(const request *r)
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

/* Refuse --verify-quality where nothing is measured, or its result has no place. Return an exit
 * code. */
static int quality_check(const job *j)
{
    int lists = j->verify_quality + (adapters_wanted(&j->adapters) > 0) + (j->extract.rank > 0);
    if (j->quality_as_json && lists != 1)
        return say_usage("convert", "--json prints what one of --verify-quality, --lora and "
                                    "--extract-lora lists");
    if (j->quality_as_json && j->to_stdout)
        return say_usage("convert", "--json prints to stdout: write OUT to a file");
    if (j->adapters.peft_rounding && !adapters_wanted(&j->adapters))
        return say_usage("convert", "--peft-rounding needs --lora");
    if (!j->verify_quality)
        return CODE_DONE;
    if (!j->quantise.args.count)
        return say_usage("convert", "--verify-quality measures what is quantised: add --quantize");
    if (j->dry_run || j->share.number || j->finish)
        return say_usage("convert", "--verify-quality measures while the whole file is written: it "
                                    "excludes --dry-run, --share and --finish");
    return CODE_DONE;
}

/* Refuse options that --quantize excludes. Return an exit code. */
static int quantise_check(const request *r)
{
    const job *j = &r->job;
    int code = quality_check(j);
    if (code || !j->quantise.args.count)
        return code;
    if (j->dequantize)
        return say_usage("convert", "--quantize decodes by itself: leave out --dequantize");
    if (!j->mix.info.name && j->rules.rename.args.count && quantise_target(r).path)
        return say_usage("convert", "--quantize excludes --rename: config.json lists modules by "
                                    "the names of IN. Rename in a conversion before it");
    return CODE_DONE;
}

/* Refuse to write one of the files of --lora or --base. Return an exit code. */
static int check_lora_inputs(const request *r, const adapters *a, const extracted *x)
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

static int prepare(request *r)
{
    job *j = &r->job;
    int code = job_prepare(j);
    if (!code)
        code = check_input(j->session, r->in);
    if (!code)
        code = choose_target(j);
    if (!code)
        code = folder_check(j);
    if (!code)
        code = quantise_check(r);
    bool is_folder = false;
    if (!code)
        code = path_find_folder(&is_folder, r->in);
    if (!code && is_folder)
        code = use_folder(r);
    if (!code && (j->vocab || j->special) && !(heft_format_caps(j->target) & HEFT_CAN_VOCAB))
        code = say_status(HEFT_E_UNSUPPORTED, j->out, "%s files cannot store a vocabulary",
                          heft_format_name(j->target));
    if (!code)
        code = gptrs_check_target(&j->rules.gptrs, j->target, j->out);
    if (!code && j->to_stdout && (j->share.number || j->finish))
        code = say_usage("convert", "--share and --finish need a file as OUT");
    if (!code)
        code = resume_check(j, r->in);
    if (!code)
        code = check_output(r, NULL);
    if (!code)
        code = job_read_texts(j, j->vocab == r->folder.vocab ? TEXT_FOUND : TEXT_NAMED);
    job_set_options(j, r->in);
    return code;
}

/* Use the vocabulary of --vocab. If only --special is given, change the input's vocabulary. */
static int choose_vocab(job *j, const heft_file *f)
{
    int code = CODE_DONE;
    if (j->special && !j->new_vocab)
        code = vocab_find(&j->new_vocab, f, j->source);
    if (!code && j->special && !j->new_vocab)
        code = say_usage("convert", "--special needs a vocabulary: add --vocab FILE");
    if (!code && j->special)
        code = vocab_set_special(j->new_vocab, &j->specials);
    j->convert.vocab = j->new_vocab;
    return code;
}

/* Print a note if the folder has a vocabulary that the target could store, and the model none. */
static int say_unused_vocab(const request *r, const heft_file *f)
{
    const job *j = &r->job;
    heft_vocab *own = NULL;
    bool is_read = j->session->map && !strcmp(heft_format_name(j->target), "gguf");
    if (!r->folder.vocab || j->vocab || j->session->quiet || is_read ||
        !(heft_format_caps(j->target) & HEFT_CAN_VOCAB))
        return CODE_DONE;
    int code = vocab_find(&own, f, j->source);
    if (!code && !own)
        say(MESSAGE_NOTE, r->in, "the vocabulary in the folder is not used; give it by --vocab %s",
            r->folder.vocab);
    heft_vocab_close(own);
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

static int say_done(request *r, const heft_file *in, const adapters *a, const extracted *x)
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

/* Open IN, and find in the model and its folder what the options leave open. */
static int open_input(request *r, heft_file **f)
{
    heft_error err;
    job *j = &r->job;
    const session *s = j->session;
    int code = prepare(r);
    /* An incomplete model opens; heft_file_convert() reports what is missing. */
    if (!code && (j->resume ? resume_open(f, j, r->in, &err) : model_try_open(s, f, r->in, &err)))
        code = model_say_open_error(s, r->in, &err);
    if (code)
        return code;
    model_say_notices(s, *f, r->in);
    code = array_types_check(s, *f, r->in);
    if (!code)
        code = check_output(r, *f);
    if (!code)
        code = choose_vocab(j, *f);
    if (!code)
        code = say_unused_vocab(r, *f);
    if (code)
        return code;
    r->folder.count = folder_drop_revision(&r->folder, r->folder.values, r->folder.count, *f);
    return set_options_add(&j->rules.set, r->folder.values, r->folder.count)
               ? CODE_DONE
               : say_status(HEFT_E_NOMEM, r->in, "no memory for metadata");
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

static mapped_output output_kind_of(const request *r)
{
    bool is_gguf = !strcmp(heft_format_name(r->job.target), "gguf");
    return r->out_folder ? MAPPED_FOLDER : is_gguf ? MAPPED_GGUF : MAPPED_OTHER;
}

/* Return whether quantised weights shall stay as they are, in the form that the target has for
 * them. */
static bool keeps_blocks(const request *r)
{
    const job *j = &r->job;
    bool is_gguf = j->session->map && output_kind_of(r) == MAPPED_GGUF;
    bool is_burn = !strcmp(heft_format_name(j->target), "burnpack") && !j->session->map &&
                   !j->quantise.args.count;
    return (is_gguf || is_burn) && !j->dequantize && !j->quantise.requantise &&
           !j->rules.raw_tensors && !adapters_wanted(&j->adapters) && !j->extract.rank;
}

static int make_folder(request *r)
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

/* ---- the stages of a conversion ---- */

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

static int keep_blocks(request *r, stages *t)
{
    job *j = &r->job;
    kept_options o = { j->target, j->rules.cast.args.count != 0, is_cast, &j->rules };
    return kept_blocks_open(&t->kept, j->session, t->f, r->in, &o);
}

/* Decode quantised weights, or keep them in the form that the target has for them. */
static int decode_input(request *r, stages *t)
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
static int merge_adapters(request *r, stages *t)
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

static int rename_tensors(request *r, stages *t)
{
    job *j = &r->job;
    int code = mapped_open(&t->renamed, j->session, t->last, r->in, output_kind_of(r));
    if (t->renamed.model)
        t->last = t->renamed.model;
    j->rules.cast.is_for_ggml = t->renamed.is_for_ggml;
    return code;
}

/* Quantise the model, and check that the target has a form for it. */
static int quantise_model(request *r, stages *t)
{
    job *j = &r->job;
    int code = CODE_DONE;
    if (j->quantise.args.count && !j->mix.info.name)
        code = quantise(&t->quantised, &j->quantise, j->session, t->last, r->in,
                        quantise_target(r));
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

static int write_model(request *r, const stages *t)
{
    job *j = &r->job;
    int code = make_folder(r);
    if (code)
        return code;
    if (job_is_for_folder(j))
        return job_split(j, t->f, t->last);
    return j->share.number || j->finish ? job_convert_share(j, t->last) : job_convert(j, t->last);
}

/* Write the texts that belong to the weights, and say what was done. */
static int end_model(request *r, stages *t)
{
    job *j = &r->job;
    int code = CODE_DONE;
    if (t->quantised.plan)
        code = quantised_end(&t->quantised, j->session, quantise_target(r));
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

static int run_stages(request *r, stages *t)
{
    static int (*const make[])(request *, stages *) = { decode_input, merge_adapters,
                                                        rename_tensors, quantise_model };
    int code = begin_quality(&r->job);
    for (size_t i = 0; i < sizeof make / sizeof *make && !code; i++)
        code = make[i](r, t);
    if (!code)
        code = write_model(r, t);
    return code ? code : end_model(r, t);
}

static int convert(request *r)
{
    stages t = { .f = NULL };
    job *j = &r->job;
    int code = open_input(r, &t.f);
    if (!code)
        code = run_stages(r, &t);
    release_stages(&t);
    if (code && r->made_folder)
        (void)rmdir(r->out_folder); /* only if nothing is in it */
    if (!code && !job_is_for_folder(j))
        job_say_result(j);
    heft_file_close(t.f);
    return t.f ? resume_end(j, r->in, code) : code;
}

/* An adapter is written into a folder, for PEFT. Return an exit code. */
static int choose_adapter_folder(request *r)
{
    job *j = &r->job;
    if (!j->extract.base)
        return say_usage("convert", "--extract-lora needs --base, the model before it was tuned");
    if (j->session->map || j->quantise.args.count || j->to || j->dequantize || j->share.number ||
        j->share_text || j->finish || j->resume || heft_is_url(j->out) || !strcmp(j->out, "-"))
        return say_usage("convert", "--extract-lora writes safetensors into a folder: it excludes "
                                    "--map, --quantize, --dequantize, --to, --resume and shares");
    r->out_folder = j->out;
    r->out_file = path_in(j->out, "adapter_model.safetensors");
    j->out = r->out_file;
    return r->out_file ? CODE_DONE : CODE_SYSTEM;
}

/* With --map, OUT may be a folder: the weights are in it, and the texts of a GGUF file. Return an
 * exit code. */
static int choose_folder(request *r)
{
    job *j = &r->job;
    size_t len = strlen(j->out);
    bool is_folder = len && j->out[len - 1] == '/';
    int code = CODE_DONE;
    if (j->extract.rank)
        return choose_adapter_folder(r);
    if (j->extract.base)
        return say_usage("convert", "--base needs --extract-lora");
    if (!j->session->map || heft_is_url(j->out) || j->share.number || j->finish)
        return CODE_DONE;
    if (!is_folder && (!j->to || !strcmp(j->to, "safetensors")))
        code = path_find_folder(&is_folder, j->out);
    if (code || !is_folder)
        return code;
    code = gguf_folder_check(j->out, j->force);
    if (code)
        return code;
    r->out_folder = j->out;
    r->out_file = path_in(j->out, "model.safetensors");
    j->out = r->out_file;
    return r->out_file ? CODE_DONE : CODE_SYSTEM;
}

static int run(const session *s, void *ctx)
{
    request *r = ctx;
    job *j = &r->job;
    r->in = s->args.item[0];
    j->out = s->args.item[1];
    bool moves = j->external_data || j->moves_inside;
    int code = moves ? job_move(j, r->in) : choose_folder(r);
    if (!code && !moves)
        code = j->abort ? job_give_up(j) : convert(r);
    job_release(j);
    free(r->out_file);
    folder_close(&r->folder);
    return code;
}

/* Settings are written for quantised weights; the target is not known yet. */
static const char *writes_beside(const void *of)
{
    const request *r = of;
    if (r->job.external_data && !strchr(r->job.external_data, '/'))
        return r->job.external_data;
    return r->job.quantise.args.count ? QUANTISED_SETTINGS : NULL;
}

const command command_convert = {
    .name = "convert",
    .args = "IN OUT",
    .summary = "write a model in another format",
    .description =
        "Writes IN in another format. Nothing is cast, transposed or renamed unless asked.\n"
        "Checksums of IN are verified on the way. Everything that the target cannot\n"
        "represent is listed before a byte is written. OUT appears whole or not at all; - is\n"
        "stdout. IN may be a folder with weights, config.json and vocab.txt or\n"
        "tokenizer.json.",
    .example = "heft convert --cast '*.weight=bf16' model.zt model.safetensors",
    .group = GROUP_CHANGE,
    .traits = COMMAND_WRITES | COMMAND_REPORTS_LOSSES,
    .operands = { 0, 0, 1, STDOUT_OUTPUT },
    .shared = job_options,
    .sharer = JOB_CONVERT,
    .request_bytes = sizeof(request),
    .begin = job_begin,
    .writes_shares = job_makes_folders,
    .writes_beside = writes_beside,
    .run = run,
};
