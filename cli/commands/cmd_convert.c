/* cmd_convert.c - `heft convert`: write a model in another format, with optional changes. */
#include <errno.h>
#include <heft/remote.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "commands/convert_request.h"
#include "models/gguf_folder.h"
#include "models/inputs.h"
#include "process/textfile.h"
#include "values/compare.h"

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

int convert_check_inputs(const convert_request *r, const heft_file *f, const char *name,
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
static int check_output(const convert_request *r, const heft_file *f)
{
    const job *j = &r->job;
    struct stat out;
    if (job_is_for_folder(j)) /* each file is checked when it is opened */
        return CODE_DONE;
    if (j->to_stdout ? fstat(STDOUT_FILENO, &out) : stat(j->out, &out))
        return CODE_DONE;
    int code = convert_check_inputs(r, f, j->to_stdout ? "standard output" : j->out, &out);
    if (code || f)
        return code;
    if (j->to_stdout && isatty(STDOUT_FILENO) && !j->force)
        return say_usage("convert", "stdout is a terminal: redirect it, or use --force");
    return job_check_output(j, &out);
}

/* Find the companion files in the folder. For an EMBD target, read vocabulary and metadata. */
static int use_folder(convert_request *r)
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
static int quantise_check(const convert_request *r)
{
    const job *j = &r->job;
    int code = quality_check(j);
    if (code || !j->quantise.args.count)
        return code;
    if (j->dequantize)
        return say_usage("convert", "--quantize decodes by itself: leave out --dequantize");
    if (!j->mix.info.name && j->rules.rename.args.count && convert_settings_place(r).path)
        return say_usage("convert", "--quantize excludes --rename: config.json lists modules by "
                                    "the names of IN. Rename in a conversion before it");
    return CODE_DONE;
}

static int prepare(convert_request *r)
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
static int say_unused_vocab(const convert_request *r, const heft_file *f)
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

/* Open IN, and find in the model and its folder what the options leave open. */
static int open_input(convert_request *r, heft_file **f)
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

static int convert(convert_request *r)
{
    heft_file *f = NULL;
    job *j = &r->job;
    int code = open_input(r, &f);
    if (!code)
        code = convert_run_stages(r, f);
    if (code && r->made_folder)
        (void)rmdir(r->out_folder); /* only if nothing is in it */
    if (!code && !job_is_for_folder(j))
        job_say_result(j);
    heft_file_close(f);
    return f ? resume_end(j, r->in, code) : code;
}

/* An adapter is written into a folder, for PEFT. Return an exit code. */
static int choose_adapter_folder(convert_request *r)
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
static int choose_folder(convert_request *r)
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
    convert_request *r = ctx;
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
    const convert_request *r = of;
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
    .request_bytes = sizeof(convert_request),
    .begin = job_begin,
    .writes_shares = job_makes_folders,
    .writes_beside = writes_beside,
    .run = run,
};
