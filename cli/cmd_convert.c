/* cmd_convert.c - any readable format to any writable one, with changes on the way. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "folder.h"
#include "inputs.h"
#include "interrupt.h"
#include "losses.h"
#include "model.h"
#include "opt.h"
#include "progress.h"
#include "rules.h"
#include "sinkwatch.h"
#include "textfile.h"
#include "vocab.h"

typedef struct request {
    const char *in, *out, *to, *version, *config, *vocab, *special;
    const char *generator;
    bool strict, allow_loss, dry_run, force, no_sync;
    uint64_t align, threads;
    rules rules;
    const heft_format *target;
    bool into_stdout;
    /* what heft_file_convert() gets */
    heft_executor executor;
    heft_host host;
    losses losses;
    heft_convert_options options;
    heft_str config_text;
    folder folder; /* empty: IN is a file */
    heft_vocab *new_vocab;
    uint64_t planned;
} request;

/* ---- the target ---- */

static int choose_target(request *r)
{
    r->into_stdout = !strcmp(r->out, "-");
    if (!r->to && r->into_stdout)
        return say_usage("convert", "--to is needed when the output is stdout");
    r->target = r->to ? heft_format_find(r->to) : heft_format_for_path(r->out);
    if (!r->target && r->to)
        return say_usage("convert", "no format is called '%s': heft formats lists them", r->to);
    if (!r->target)
        return say_usage("convert", "the suffix of '%s' tells no format: use --to", r->out);
    if (heft_format_caps(r->target) & HEFT_CAN_WRITE)
        return CODE_DONE;
    say(r->out, "%s cannot be written by this build", heft_format_name(r->target));
    return CODE_CANNOT;
}

static const char *target_name(const request *r)
{
    return r->into_stdout ? "standard output" : r->out;
}

/* f: the model that is open, or NULL. */
static int check_inputs(const request *r, const heft_file *f, const struct stat *out)
{
    const input all[] = {
        { r->in, "the input itself", f },
        { r->vocab, "the vocabulary that is read", NULL },
        { r->config, "the configuration that is read", NULL },
        { r->folder.config, "the configuration that is read", NULL },
    };
    return inputs_check(target_name(r), all, sizeof all / sizeof *all, out);
}

static bool output_exists(const request *r, struct stat *out)
{
    return !(r->into_stdout ? fstat(STDOUT_FILENO, out) : stat(r->out, out));
}

/* Whether what is there may be written over; a pipe or a device always may. */
static int check_output(const request *r)
{
    struct stat out;
    if (!output_exists(r, &out))
        return CODE_DONE;
    int code = check_inputs(r, NULL, &out);
    if (code)
        return code;
    if (r->into_stdout && isatty(STDOUT_FILENO) && !r->force)
        return say_usage("convert", "stdout is a terminal: redirect it, or use --force");
    if (S_ISDIR(out.st_mode)) {
        say(r->out, "is a directory");
        return CODE_USAGE;
    }
    if (r->into_stdout || !S_ISREG(out.st_mode) || r->force)
        return CODE_DONE;
    say(r->out, "exists already: --force replaces it");
    return CODE_USAGE;
}

/* ---- options ---- */

static int read_config(request *r)
{
    int code = text_read(&r->config_text, r->config, TEXT_NAMED);
    r->options.config = r->config_text;
    return code;
}

static int check_numbers(const request *r)
{
    enum { MOST_THREADS = 1024 };
    if (r->align > UINT32_MAX || (r->align & (r->align - 1)))
        return say_usage("convert", "--align is a power of two below 2^32");
    if (r->threads > MOST_THREADS)
        return say_usage("convert", "--threads is at most %d", MOST_THREADS);
    return CODE_DONE;
}

static void set_options(request *r)
{
    heft_convert_options *o = &r->options;
    r->executor = heft_executor_threads((uint32_t)r->threads);
    r->host = *heft_host_default();
    r->host.executor = &r->executor;
    o->write.host = &r->host;
    o->write.version = r->version;
    o->write.align = (uint32_t)r->align;
    o->write.allow_loss = r->allow_loss;
    o->write.strict = r->strict;
    r->losses = (losses){ r->in, model_opening.verbose };
    o->write.on_loss = say_loss;
    o->write.loss_ctx = &r->losses;
    bool encoder = r->rules.encoder;
    o->keep = r->rules.keep.count || r->rules.drop.count || encoder ? rules_keep : NULL;
    o->rename = rules_are_given(&r->rules) ? rules_rename : NULL;
    o->cast = r->rules.cast.given.count ? rules_cast : NULL;
    o->transpose = r->rules.transpose.count ? rules_transpose : NULL;
    o->densify = r->rules.densify.count ? rules_densify : NULL;
    o->sparsify = r->rules.sparsify.given.count ? rules_sparsify : NULL;
    bool has_identities = identities_are_given(&r->rules.ids) || gptrs_are_given(&r->rules.gptrs);
    o->identify = has_identities ? rules_identify : NULL;
    o->storage = storing_is_given(&r->rules.storage) ? rules_storage : NULL;
    o->ctx = &r->rules;
    o->set = r->rules.values;
    o->set_count = r->rules.value_count;
    if (r->generator)
        o->generator = (heft_str){ r->generator, strlen(r->generator) };
    o->no_verify = model_opening.no_verify;
    o->dry_run = r->dry_run;
    o->planned_bytes = &r->planned;
}

/* For an EMBD file, all that the folder says of its weights. */
static int use_folder(request *r)
{
    const char *dir = r->in;
    if (strcmp(heft_format_name(r->target), "embd") != 0)
        return CODE_DONE;
    int code = folder_open(&r->folder, dir);
    if (code)
        return code;
    r->rules.encoder = true;
    if (!r->vocab)
        r->vocab = r->folder.vocab;
    if (!r->vocab)
        say(dir, "warning: a folder without a vocab.txt or tokenizer.json: no vocabulary");
    return folder_read_values(&r->folder, dir, r->strict);
}

static int prepare_rules(request *r)
{
    int code = gptrs_prepare(&r->rules.gptrs, "convert");
    if (!code)
        code = rules_prepare(&r->rules, "convert", &r->options.write);
    if (code || rules_add_values(&r->rules, r->folder.values, r->folder.count))
        return code;
    say(r->in, "no memory for metadata");
    return CODE_SYSTEM;
}

static int prepare(request *r)
{
    r->options = (heft_convert_options)HEFT_CONVERT_OPTIONS_INIT;
    int code = check_numbers(r);
    if (!code)
        code = choose_target(r);
    if (!code && path_is_folder(r->in))
        code = use_folder(r);
    if (!code && (r->vocab || r->special) && !(heft_format_caps(r->target) & HEFT_CAN_VOCAB)) {
        say(r->out, "%s has no place for a vocabulary", heft_format_name(r->target));
        code = CODE_CANNOT;
    }
    if (!code)
        code = gptrs_check_target(&r->rules.gptrs, r->target, r->out);
    if (!code)
        code = prepare_rules(r);
    if (!code)
        code = check_output(r);
    if (!code && r->vocab)
        code = vocab_read(&r->new_vocab, r->vocab,
                          r->vocab == r->folder.vocab ? TEXT_FOUND : TEXT_NAMED);
    if (!code && r->config)
        code = read_config(r);
    if (!code)
        set_options(r);
    return code;
}

/* ---- conversion ---- */

static heft_status open_sink(heft_sink **sink, const request *r, sink_failure *failure,
                             heft_error *err)
{
    *sink = NULL;
    if (r->dry_run)
        return HEFT_OK;
    if (!r->into_stdout)
        return sink_open(sink, r->out, r->force, r->no_sync, failure, err);
    interrupt_allow();
    heft_status st = heft_sink_open_fd(sink, STDOUT_FILENO, err);
    return st ? st : sink_watch(sink, target_name(r), failure, err);
}

static int say_done(const request *r)
{
    if (model_opening.verbose)
        say(r->out, "%s, %llu bytes", heft_format_name(r->target), (unsigned long long)r->planned);
    if (!r->dry_run && !r->into_stdout)
        return CODE_DONE;
    outbuf o;
    out_open(&o, STDOUT_FILENO);
    if (r->dry_run) {
        out_message(&o, r->out);
        out_format(&o, ": %llu bytes\n", (unsigned long long)r->planned);
    }
    return out_end(&o, CODE_DONE);
}

static int convert(const heft_file *f, request *r)
{
    heft_error err;
    heft_sink *sink;
    sink_failure failure = { NULL };
    progress bar;
    const char *target = target_name(r);
    int code = rules_check(&r->rules, f, r->in);
    if (code)
        return code;
    if (open_sink(&sink, r, &failure, &err))
        return say_error(target, &err);
    progress_begin(&bar, r->out);
    r->options.progress = progress_step;
    r->options.progress_ctx = &bar;
    heft_status st = heft_file_convert(f, r->target, sink, &r->options, &err);
    progress_end(&bar);
    if (st && r->rules.no_memory)
        return rules_say_no_memory(r->in);
    code = st ? CODE_DONE : gptrs_check(&r->rules.gptrs, r->in);
    if (code)
        return code;
    bool about_target = st == HEFT_E_ARGUMENT || st == HEFT_E_UNSUPPORTED;
    if (st)
        return sink_say_error(&failure, about_target ? target : r->in, &err);
    return say_done(r);
}

/* The one that was given or, when its special tokens are to be others, that of the input. */
static int choose_vocab(request *r, const heft_file *f)
{
    specials given = { .count = 0 };
    int code = r->special ? vocab_read_special(&given, "convert", r->special) : CODE_DONE;
    if (!code && r->special && !r->new_vocab)
        code = vocab_find(&r->new_vocab, f, r->in);
    if (!code && r->special && !r->new_vocab)
        code = say_usage("convert", "--special needs a vocabulary: --vocab FILE");
    if (!code && r->special)
        code = vocab_set_special(r->new_vocab, &given);
    r->options.vocab = r->new_vocab;
    return code;
}

static int open_input(heft_file **f, request *r)
{
    heft_error err;
    struct stat out;
    int code = CODE_DONE;
    if (model_open_status(f, r->in, &err)) /* what is missing is said by what needs it */
        return model_say_not_open(r->in, &err);
    model_say_notices(*f, r->in);
    if (output_exists(r, &out))
        code = check_inputs(r, *f, &out);
    if (!code)
        code = choose_vocab(r, *f);
    r->options.set_count = folder_yield(&r->folder, r->rules.values, r->options.set_count, *f);
    return code;
}

int cmd_convert(int argc, char **argv)
{
    request r = { .in = NULL };
    const opt options[] = {
        { "to", 't', OPT_TEXT, &r.to, "FORMAT", "target format; else the suffix of OUT tells" },
        { "format-version", 0, OPT_TEXT, &r.version, "V", "generation of the target format" },
        { "keep", 0, OPT_LIST, &r.rules.keep, "GLOB", "only tensors that match" },
        { "drop", 0, OPT_LIST, &r.rules.drop, "GLOB", "no tensors that match" },
        { "rename", 0, OPT_LIST, &r.rules.rename, "s/RE/TEXT/", "as sed -E; g for every match" },
        { "cast", 0, OPT_LIST, &r.rules.cast.given, "[GLOB=]DTYPE",
          "element type; first match counts" },
        { "transpose", 0, OPT_LIST, &r.rules.transpose, "GLOB", "rows become columns" },
        { "densify", 0, OPT_LIST, &r.rules.densify, "GLOB", "sparse tensors become dense" },
        { "sparsify", 0, OPT_LIST, &r.rules.sparsify.given, "[GLOB=]csr|coo",
          "dense tensors become sparse" },
        { "set", 0, OPT_LIST, &r.rules.set, "KEY=VALUE",
          "metadata; KEY:TYPE=VALUE: u64, f32, str, ..." },
        { "set-id", 0, OPT_LIST, &r.rules.ids.set, "NAME=ID",
          "Burn's id of a tensor: a number, its text, none" },
        { "new-ids", 0, OPT_FLAG, &r.rules.ids.all_new, NULL,
          "a new random id of Burn's for every tensor" },
        { "fill-ids", 0, OPT_FLAG, &r.rules.ids.fill, NULL, "the same for tensors without one" },
        { "id-seed", 0, OPT_TEXT, &r.rules.ids.seed, "N", "new ids that follow from a number" },
        { "generator", 0, OPT_TEXT, &r.generator, "TEXT",
          "the program that OUT names (zTensor 1.0)" },
        { "requires-grad", 0, OPT_LIST, &r.rules.gptrs.grads, "[GLOB=]BOOL",
          "true, false or unset (gpt-rs); first match counts" },
        { "base-ids", 0, OPT_TEXT, &r.rules.gptrs.base_ids, "name|none",
          "ids made from names, or none (gpt-rs)" },
        { "config", 0, OPT_TEXT, &r.config, "FILE", "the model's configuration (gpt-rs)" },
        { "vocab", 0, OPT_TEXT, &r.vocab, "FILE", "the vocabulary: vocab.txt, tokenizer.json" },
        { "special", 0, OPT_TEXT, &r.special, "NAME=ID,...", "pad, unk, cls, sep, mask tokens" },
        { "compress", 0, OPT_LIST, &r.rules.storage.compress.given, "[GLOB=]zstd[:N]",
          "encoding of parts; none: raw; first match counts" },
        { "digest", 0, OPT_LIST, &r.rules.storage.digest.given, "[GLOB=]NAME",
          "crc32c, sha256, xxh3 or none, of each part" },
        { "align", 0, OPT_NUMBER, &r.align, "N", "payloads at multiples of N bytes" },
        { "strict", 0, OPT_FLAG, &r.strict, NULL, "warnings are errors" },
        { "allow-loss", 0, OPT_FLAG, &r.allow_loss, NULL, "leave out what cannot be carried" },
        { "dry-run", 'n', OPT_FLAG, &r.dry_run, NULL, "losses and size only; write nothing" },
        { "force", 'f', OPT_FLAG, &r.force, NULL, "replace OUT" },
        { "no-sync", 0, OPT_FLAG, &r.no_sync, NULL, "do not wait for the disk (scratch files)" },
        { "threads", 'j', OPT_NUMBER, &r.threads, "N", "how many; 0: one per processor" },
        { "verbose", 'v', OPT_FLAG, &model_opening.verbose, NULL, "notes and a summary on stderr" },
    };
    const opt_usage usage = {
        "convert",
        "IN OUT",
        "Writes IN in another format.  Nothing is cast, transposed or renamed unless asked;\n"
        "checksums of IN are checked on the way; what the target cannot carry is listed\n"
        "before a byte is written.  OUT appears whole or not at all; - is stdout.  IN may be\n"
        "a folder with weights, config.json and vocab.txt or tokenizer.json.",
        "heft convert --cast '*.weight=bf16' model.zt model.safetensors",
        options,
        sizeof options / sizeof *options,
        2,
        2,
    };
    opt_args args;
    heft_file *f = NULL;
    int code;
    if (!opt_parse(&args, &code, &usage, argc, argv))
        return code;
    r.in = args.item[0];
    r.out = args.item[1];
    code = prepare(&r);
    if (!code)
        code = open_input(&f, &r);
    if (!code)
        code = convert(f, &r);
    heft_file_close(f);
    rules_release(&r.rules);
    gptrs_release(&r.rules.gptrs);
    text_free(r.config_text);
    heft_vocab_close(r.new_vocab);
    folder_close(&r.folder);
    opt_release(&usage);
    return code;
}
