#include "commands/job.h"

#include <heft/split.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "models/mapped.h"
#include "models/model.h"
#include "process/interrupt.h"
#include "text/words.h"

/* ---- options ---- */

enum { C = JOB_CONVERT, M = JOB_MERGE, S = JOB_SPLIT, A = JOB_APPEND, E = JOB_EDIT, B = JOB_BLEND };

const shared_opt job_options[] = {
    { B, { .name = OPT_TITLE, .help = "Choose the blend" } },
    { B,
      { "settings", 0, OPT_FILE, AT(job, blend.settings), "FILE",
        "method, models and values, in YAML or JSON" } },
    { B,
      { "method", 0, OPT_TEXT,
        AT_WORD(job, blend.method, "linear slerp task_arithmetic ties dare_linear dare_ties"),
        "NAME", "linear, slerp, task_arithmetic, ties, dare_linear, dare_ties" } },
    { B,
      { "base", 0, OPT_MODEL, AT(job, blend.base), "MODEL",
        "the base of differences; its metadata are those of OUT" } },
    { B,
      { "weight", 0, OPT_LIST, AT(job, blend.weights), "[FILTER=]N,...",
        "weight of each model, or of all; first match counts" } },
    { B,
      { "density", 0, OPT_LIST, AT(job, blend.densities), "[FILTER=]N,...",
        "ties, dare: part of the differences that is kept" } },
    { B,
      { "t", 0, OPT_LIST, AT(job, blend.shares), "[FILTER=]N",
        "slerp: from the base, 0, to the model, 1" } },
    { B,
      { "factor", 0, OPT_TEXT, AT(job, blend.lambda), "N", "factor of the sum of differences" } },
    { B,
      { "normalize", 0, OPT_TEXT, AT_WORD(job, blend.normalize, "true false"), "true|false",
        "divide by the sum of the weights" } },
    { B, { "seed", 0, OPT_TEXT, AT(job, blend.seed), "N", "dare: seed of the choice (0)" } },
    { B,
      { "missing", 0, OPT_TEXT, AT_WORD(job, blend.missing, "error base present"), "HOW",
        "a tensor that a model lacks: error, base or present" } },
    { B,
      { "tied", 0, OPT_LIST, AT(job, blend.tied), "NAME=OTHER",
        "where a model lacks NAME, read OTHER" } },
    { B,
      { "untie", 0, OPT_FLAG, AT(job, blend.unties), NULL,
        "tensors that share their bytes may differ" } },
    { B,
      { "dtype", 0, OPT_TEXT, AT_WORD(job, blend.dtype, "f32 bf16 f16"), "TYPE",
        "type of blended tensors: f32, bf16, f16" } },
    { B,
      { "allow-nan", 0, OPT_FLAG, AT(job, blend.allow_nan), NULL,
        "keep results that are NaN or infinite" } },
    { B,
      { "json", 0, OPT_FLAG, AT(job, blend.as_json), NULL,
        "print all tensors, as one JSON document" } },
    { C | A, { .name = OPT_TITLE, .help = "Choose tensors" } },
    { C | A,
      { "keep", 0, OPT_LIST, AT_NAME(job, rules.keep, NAMES_GLOB), "GLOB",
        "keep only tensors that match" } },
    { C | A,
      { "drop", 0, OPT_LIST, AT_NAME(job, rules.drop, NAMES_GLOB), "GLOB",
        "leave out tensors that match" } },
    { C | M | S | A | E, { .name = OPT_TITLE, .help = "Change tensors" } },
    { C | A | E,
      { "rename", 0, OPT_LIST, AT_NAME(job, rules.rename.args, NAMES_TENSOR), RENAMES_VALUE,
        RENAMES_HELP } },
    { E,
      { "tensor", 0, OPT_TENSOR_FILES, AT_NAME(job, tensors, NAMES_TENSOR), "NAME=FILE[:NAME]",
        "replace a tensor by one of a file, of any format" } },
    { E,
      { "round", 0, OPT_FLAG, AT(job, rounds), NULL,
        "with --tensor: round to the type that the tensor has" } },
    { E,
      { "allow-change", 0, OPT_FLAG, AT(job, allow_change), NULL,
        "with --tensor: the type and the shape may change" } },
    { C, { "map", 0, OPT_FILE, SETTING(map), "NAME|FILE", MAP_HELP } },
    { C,
      { "pre-tokenizer", 0, OPT_TEXT, SETTING(pre_tokenizer), "NAME",
        "with --map to GGUF: how llama.cpp splits texts, such as qwen2" } },
    { C,
      { "allow-unmatched", 0, OPT_FLAG, SETTING(allow_unmatched), NULL,
        "go on with tensors that match nothing: of the map, of an adapter" } },
    { C,
      { "lora", 0, OPT_MODELS, AT(job, adapters.list), "ADAPTER[=SCALE]",
        "merge an adapter (LoRA) into the weights; may be repeated" } },
    { C,
      { "peft-rounding", 0, OPT_FLAG, AT(job, adapters.peft_rounding), NULL,
        "with --lora: round as PEFT does, twice" } },
    { C,
      { "extract-lora", 0, OPT_COUNT, offsetof(job, extract.rank), false, NULL, 1, 4096,
        NAMES_NOTHING, "RANK",
        "write an adapter that leads from --base to IN, into the folder OUT" } },
    { C,
      { "base", 0, OPT_MODEL, AT(job, extract.base), "BASE",
        "with --extract-lora: the model before it was tuned" } },
    { C | A,
      { "cast", 0, OPT_LIST, AT_NAME(job, rules.cast.args, NAMES_DTYPE_OF), "[GLOB:][FROM=]DTYPE",
        "convert the element type; first match counts; also GLOB=DTYPE" } },
    { C | A,
      { "raw-tensors", 0, OPT_FLAG, AT(job, rules.raw_tensors), NULL,
        "cast parts of quantised tensors as numbers, without their scales" } },
    { C | M | S | A | B,
      { "dequantize", 0, OPT_MAYBE, AT_NAME(job, dequantize, NAMES_DECODED), "[=DTYPE]",
        "decode quantised tensors, to bf16, f16 or f32" } },
    { C,
      { "quantize", 0, OPT_LIST, AT_NAME(job, quantise.args, NAMES_QUANTISATION),
        "[GLOB=]NAME[:OPTION]",
        "quantise weights: fp8, mxfp4, int4:64 ...; GLOB=none: not these" } },
    { C,
      { "requantize", 0, OPT_FLAG, AT(job, quantise.requantise), NULL,
        "quantise weights that are quantised already" } },
    { C | A,
      { "allow-nan", 0, OPT_FLAG, AT(job, quantise.allow_nan), NULL,
        "store NaN and infinities in quantised or merged weights" } },
    { C,
      { "verify-quality", 0, OPT_FLAG, AT(job, verify_quality), NULL,
        "print how far quantised weights are from those of IN" } },
    { C,
      { "json", 0, OPT_FLAG, AT(job, quality_as_json), NULL,
        "with --verify-quality or LoRA: all tensors, as one JSON document" } },
    { C,
      { "tensor-type", 0, OPT_LIST, AT_NAME(job, mix.types, NAMES_DTYPE_OF), "REGEX=TYPE",
        "with a mix: the type of tensors that match; first match counts" } },
    { C,
      { "token-embedding-type", 0, OPT_TEXT, AT_NAME(job, mix.embedding, NAMES_DTYPE), "TYPE",
        "with a mix: the type of the token embedding" } },
    { C,
      { "output-tensor-type", 0, OPT_TEXT, AT_NAME(job, mix.output, NAMES_DTYPE), "TYPE",
        "with a mix: the type of output.weight" } },
    { C,
      { "leave-output-tensor", 0, OPT_FLAG, AT(job, mix.keeps_output), NULL,
        "with a mix: output.weight keeps its type" } },
    { C, { "pure", 0, OPT_FLAG, AT(job, mix.pure), NULL, "with a mix: one type for all weights" } },
    { C,
      { "imatrix", 0, OPT_FILE, AT(job, mix.imatrix), "FILE",
        "with a mix: importance of columns, from llama-imatrix" } },
    { C,
      { "transpose", 0, OPT_LIST, AT_NAME(job, rules.transpose, NAMES_GLOB), "GLOB",
        "transpose matrices that match" } },
    { C,
      { "densify", 0, OPT_LIST, AT_NAME(job, rules.densify, NAMES_GLOB), "GLOB",
        "convert sparse tensors to dense" } },
    { C,
      { "sparsify", 0, OPT_LIST, AT_NAME(job, rules.sparsify.args, NAMES_LAYOUT), "[GLOB=]csr|coo",
        "convert dense tensors to sparse" } },
    { M | A,
      { "duplicates", 0, OPT_TEXT, AT_WORD(job, duplicates, "first last"), "first|last",
        "which tensor of a name to keep (default: error)" } },
    { C | M | E,
      { "requires-grad", 0, OPT_LIST, AT_NAME(job, rules.gptrs.grads.args, NAMES_STATE),
        "[GLOB=]BOOL", "mark tensors as trained: true, false or unset (gpt-rs)" } },
    { C | M | E, { .name = OPT_TITLE, .help = "Change ids" } },
    { C | M | E,
      { "set-id", 0, OPT_LIST, AT_NAME(job, rules.ids.set, NAMES_TENSOR), "NAME=ID",
        "set a Burn id: a number, Burn's text, or none" } },
    { C | M | E,
      { "new-ids", 0, OPT_FLAG, AT(job, rules.ids.all_new), NULL,
        "new random Burn ids for all tensors" } },
    { C | M | E,
      { "fill-ids", 0, OPT_FLAG, AT(job, rules.ids.fill), NULL,
        "new random Burn ids for tensors without one" } },
    { C | M | E,
      { "id-seed", 0, OPT_TEXT, AT(job, rules.ids.seed), "N",
        "derive the new ids from a number" } },
    { C | M | E,
      { "base-ids", 0, OPT_TEXT, AT_WORD(job, rules.gptrs.base_ids, "name none"), "name|none",
        "derive base ids from names, or none (gpt-rs)" } },
    { C | M | S | E, { .name = OPT_TITLE, .help = "Change metadata and companions" } },
    { C | E,
      { "set", 0, OPT_LIST, AT_NAME(job, rules.set.args, NAMES_KEY_TO_SET), "KEY=VALUE",
        "set metadata; KEY:TYPE=VALUE: u64, f32, str, [i32] ..." } },
    { C | E,
      { "set-file", 0, OPT_KEY_FILES, AT(job, rules.set.files), "KEY=FILE",
        "set metadata to the text of a file" } },
    { E, { "unset", 0, OPT_LIST, AT_NAME(job, unset, NAMES_KEY), "KEY", "remove metadata" } },
    { C | M | S,
      { "no-format-key", 0, OPT_FLAG, AT(job, convert.exact_metadata), NULL,
        "do not add \"format\" to metadata of safetensors" } },
    { C,
      { "generator", 0, OPT_TEXT, AT(job, generator), "TEXT",
        "writing program to store in OUT (zTensor 1.0)" } },
    { C | E,
      { "vocab", 0, OPT_FILE, AT(job, vocab), "FILE", "vocabulary: vocab.txt or tokenizer.json" } },
    { C | E,
      { "special", 0, OPT_TEXT, AT(job, special), "NAME=ID,...",
        "ids of the tokens pad, unk, cls, sep, mask" } },
    { C | E,
      { "config", 0, OPT_FILE, AT(job, config), "FILE", "configuration of the model (gpt-rs)" } },
    { C | M | S | A | B, { .name = OPT_TITLE, .help = "Choose format and storage" } },
    { C | M | B,
      { "to", 't', OPT_TEXT, AT_NAME(job, to, NAMES_FORMAT), "FORMAT",
        "target format (default: by the suffix of OUT)" } },
    { S,
      { "to", 't', OPT_TEXT, AT_NAME(job, to, NAMES_FORMAT), "FORMAT",
        "target format (default: that of IN)" } },
    { C | M | B,
      { "format-version", 0, OPT_TEXT, AT_NAME(job, version, NAMES_VERSION), "V",
        "version of the target format, see `heft formats`" } },
    { S,
      { "max-size", 's', OPT_SIZE, AT(job, max_bytes), "N",
        "maximum bytes per file, header included: 500MB" } },
    { S, { "count", 'c', OPT_NUMBER, AT(job, count), "N", "minimum number of files" } },
    { S, { "name", 0, OPT_TEXT, AT(job, stem), "STEM", "beginning of the files' names" } },
    { C | M | S | A | B,
      { "compress", 0, OPT_LIST, AT_NAME(job, rules.storage.compress.args, NAMES_ENCODING),
        "[GLOB=]zstd[:N]", "compress parts; none: store raw" } },
    { C | M | S | A | B,
      { "digest", 0, OPT_LIST, AT_NAME(job, rules.storage.digest.args, NAMES_DIGEST), "[GLOB=]NAME",
        "digest of each part: crc32c, sha256, xxh3, none" } },
    { C,
      { "external-data", 0, OPT_TEXT, AT(job, external_data), "FILE",
        "of an ONNX model: initializers go to FILE in the folder of OUT" } },
    { C,
      { "inline", 0, OPT_FLAG, AT(job, moves_inside), NULL,
        "of an ONNX model: external data go into OUT" } },
    { C | M | A | B, { "align", 0, OPT_NUMBER, AT(job, align), "N", "align payloads to N bytes" } },
    { C | M | S | A | E | B, { .name = OPT_TITLE, .help = "Control the run" } },
    { C | M | S | A | E | B,
      { "strict", 0, OPT_FLAG, SETTING(strict), NULL,
        "treat warnings about losses and patterns as errors" } },
    { C | M | S | A | B,
      { "allow-loss", 0, OPT_FLAG, AT(job, allow_loss), NULL,
        "leave out or alter what the target cannot represent" } },
    { C | B,
      { "dry-run", 'n', OPT_FLAG, AT(job, dry_run), NULL,
        "print losses and size; write nothing" } },
    { A | E,
      { "dry-run", 'n', OPT_FLAG, AT(job, dry_run), NULL,
        "print what would be done; change nothing" } },
    { C,
      { "force", 'f', OPT_FLAG, AT(job, force), NULL, "replace OUT; write to a terminal, too" } },
    { M | B, { "force", 'f', OPT_FLAG, AT(job, force), NULL, "replace OUT" } },
    { S, { "force", 'f', OPT_FLAG, AT(job, force), NULL, "replace files of the same names" } },
    { C | M | S | A | B,
      { "no-sync", 0, OPT_FLAG, AT(job, no_sync), NULL,
        "do not wait for the disk (scratch files)" } },
    { C,
      { "resume", 0, OPT_FLAG, AT(job, resume), NULL,
        "keep the download of IN from a server, and continue it" } },
    { C | A | B,
      { "verbose", 'v', OPT_FLAG, SETTING(verbose), NULL, "print notes and a summary on stderr" } },
    { M | S, { "verbose", 'v', OPT_FLAG, SETTING(verbose), NULL, "print notes on stderr" } },
    { E,
      { "verbose", 'v', OPT_FLAG, SETTING(verbose), NULL,
        "print notes, and how FILE was changed, on stderr" } },
    { C | M, { .name = OPT_TITLE, .help = "Share the work" } },
    { C | M,
      { "share", 0, OPT_TEXT, AT(job, share_text), "I/N",
        "write only share I of N; auto: as Open MPI, MPICH or Slurm says" } },
    { C | M,
      { "finish", 0, OPT_FLAG, AT(job, finish), NULL,
        "complete OUT from the shares that are there" } },
    { C | M,
      { "abort", 0, OPT_FLAG, AT(job, abort), NULL,
        "give up the shares of OUT: remove their data and records" } },
    { .commands = 0 },
};

/* ---- losses ---- */

void keep_loss(void *ctx, heft_severity severity, const char *rule, heft_str tensor,
               const char *text)
{
    losses *l = ctx;
    if (l->casts_only && strcmp(rule, "heft/cast") != 0 && severity != HEFT_FAULT)
        return;
    /* Always print a note about tied tensors: nothing is lost, but the target grows. */
    if (severity == HEFT_NOTE && !l->verbose && strcmp(rule, "heft/tied") != 0)
        return;
    l->groups.lists_all = l->verbose;
    message_groups_add(&l->groups, &(message){ .kind = MESSAGE_LOSS,
                                               .severity = severity,
                                               .file = l->path,
                                               .rule = rule,
                                               .text = text,
                                               .tensor = tensor,
                                               .offset = HEFT_NOWHERE });
}

void losses_print(losses *l)
{
    message_groups_print(&l->groups);
}

void job_begin(const session *s, void *zeroed)
{
    job *j = zeroed;
    j->session = s;
    j->command = s->command->name;
    j->write = (heft_write_options)HEFT_WRITE_OPTIONS_INIT;
    j->convert = (heft_convert_options)HEFT_CONVERT_OPTIONS_INIT;
    j->convert.write = &j->write;
}

void job_release(job *j)
{
    rules_release(&j->rules);
    job_mix_release(j);
    text_free(j->config_text);
    heft_vocab_close(j->new_vocab);
    quantise_close_quality(j->quantise.quality);
}

/* ---- what was asked ---- */

int job_prepare(job *j)
{
    const char *cmd = j->command;
    if (j->align > UINT32_C(1) << 31 || (j->align & (j->align - 1)))
        return say_usage(cmd, "--align must be a power of two below 2^32");
    int code = job_prepare_share(j);
    if (!code)
        code = job_mix_prepare(j);
    return code ? code : rules_prepare(&j->rules, cmd, &j->write);
}

heft_duplicates job_duplicates(const job *j)
{
    if (!j->duplicates)
        return HEFT_DUPLICATES_REFUSE;
    return *j->duplicates == 'f' ? HEFT_DUPLICATES_FIRST : HEFT_DUPLICATES_LAST;
}

/* Find a format by name or suffix, such as pt. */
static const heft_format *find_format(const char *word)
{
    enum { LONGEST = 32 };
    char path[LONGEST + 2] = "x.";
    const heft_format *f = heft_format_find(heft_str_from(word));
    if (f || strlen(word) >= LONGEST - 1)
        return f;
    return heft_format_for_path(strcat(path, word));
}

static int say_no_writer(const job *j)
{
    const char *name = heft_format_name(j->target), *writer = foreign_format_writer(name);
    if (!strcmp(name, "onnx"))
        return say_status(HEFT_E_UNSUPPORTED, j->out,
                          "heft makes no graphs of ONNX: --external-data and --inline write a "
                          "model that exists, with its data elsewhere");
    if (writer)
        return say_status(HEFT_E_UNSUPPORTED, j->out, "%s files are read and not written: %s", name,
                          writer);
    return say_status(HEFT_E_UNSUPPORTED, j->out, "this build cannot write %s", name);
}

int job_choose_target(job *j)
{
    char hint[SUGGESTION_BYTES];
    const char *cmd = j->command, *writer = foreign_format_writer(j->to ? j->to : j->out);
    j->target = j->to ? find_format(j->to) : heft_format_for_path(j->out);
    if (!j->target && writer)
        return say_usage(cmd, "'%s' is not written by Heft: %s", j->to ? j->to : j->out, writer);
    if (!j->target && j->to)
        return say_usage(cmd, "unknown format '%s'%s `heft formats` lists what is supported", j->to,
                         *suggest_format(hint, j->to) ? hint : ":");
    if (!j->target)
        return say_usage(cmd, "cannot tell the format from the suffix of '%s': use --to", j->out);
    if (heft_format_caps(j->target) & HEFT_CAN_WRITE || (j->may_be_folder && job_is_for_folder(j)))
        return CODE_DONE;
    if (job_is_for_folder(j))
        return say_status(HEFT_E_UNSUPPORTED, j->out,
                          "a model in %s is a folder of files: `heft convert` and `heft split` "
                          "write it",
                          heft_format_name(j->target));
    return say_no_writer(j);
}

static bool is_folder(const heft_format *f)
{
    return f && !(heft_format_caps(f) & HEFT_CAN_WRITE) && heft_format_can_split(f);
}

bool job_is_for_folder(const job *j)
{
    return is_folder(j->target);
}

int job_read_texts(job *j, text_origin of_vocab)
{
    int code = CODE_DONE;
    if (j->vocab)
        code = vocab_read(&j->new_vocab, j->vocab, of_vocab);
    if (!code && j->special)
        code = vocab_read_special(&j->specials, j->command, j->special);
    if (!code && j->config)
        code = text_read(&j->config_text, j->config, TEXT_NAMED);
    return code;
}

int recover_set(bool *recovered, const char *path)
{
    heft_recovery how;
    heft_error err;
    *recovered = false;
    if (heft_sink_dir_recover(&how, path, &err))
        return say_error(path, &err);
    *recovered = how != HEFT_RECOVERY_NONE;
    if (how == HEFT_RECOVERY_COMPLETED)
        say(MESSAGE_NOTE, path, "completed an interrupted split");
    if (how == HEFT_RECOVERY_ROLLED_BACK)
        say(MESSAGE_NOTE, path, "rolled back an interrupted split: the old files are restored");
    return CODE_DONE;
}

int job_check_output(const job *j, const struct stat *info)
{
    if (S_ISDIR(info->st_mode))
        return say_status(HEFT_E_ARGUMENT, j->out, "is a directory");
    if (j->to_stdout || !S_ISREG(info->st_mode) || j->force)
        return CODE_DONE;
    return say_status(HEFT_E_ARGUMENT, j->out, "already exists: --force replaces it");
}

static void print_losses(void *ctx)
{
    losses_print(ctx);
}

/* Losses are printed before the first byte is written. */
bool job_step(void *ctx, uint64_t done, uint64_t total)
{
    job *j = ctx;
    if (done)
        losses_print(&j->losses);
    return progress_step(&j->bar, done, total);
}

static bool convert_step(void *ctx, uint64_t done, uint64_t total)
{
    const rules *r = ctx;
    return job_step(r->job, done, total);
}

void job_set_options(job *j, const char *source)
{
    heft_convert_options *o = &j->convert;
    j->source = source;
    j->losses = (losses){ .path = source,
                          .verbose = j->session->verbose,
                          .casts_only = j->share.number > 1 };
    j->events = (sink_events){ print_losses, &j->losses };
    j->write.host = &j->session->host;
    j->write.version = j->version;
    j->write.align = (uint32_t)j->align;
    j->write.strict = j->session->strict;
    j->write.allow_loss = j->allow_loss;
    j->write.on_loss = keep_loss;
    j->write.ctx = &j->losses;
    j->write.sums = &j->sums;
    o->no_verify = j->session->no_verify;
    o->allow_nan = j->quantise.allow_nan;
    o->dry_run = j->dry_run;
    o->planned_bytes = &j->bytes;
    o->progress = convert_step;
    if (j->generator)
        o->generator = str_of(j->generator);
    o->config = j->config_text;
    j->rules.job = j;
    rules_set(&j->rules, o);
}

/* ---- the conversion ---- */

static heft_status open_sink(heft_sink **out, job *j, heft_error *err)
{
    *out = NULL;
    if (j->dry_run)
        return HEFT_OK;
    if (!j->to_stdout)
        return sink_open(out, j->out, j->force, j->no_sync, &j->events, err);
    interrupt_allow();
    heft_status st = heft_sink_open_fd(out, STDOUT_FILENO, err);
    return st ? st : sink_watch(out, &j->events, err);
}

static const char *target_name(const job *j)
{
    return j->to_stdout ? "standard output" : j->out;
}

/* Append the option that settles the matter to the error of a conversion with losses. */
static void name_way_out(const job *j, heft_error *err)
{
    size_t used = strlen(err->message);
    const char *way = "; --allow-loss leaves out or alters what does not fit";
    if (err->rule && !strcmp(err->rule, "heft/quantised"))
        way = ". --dequantize decodes known schemes; --raw-tensors casts the stored numbers";
    else if (err->rule && !strcmp(err->rule, "heft/not-finite"))
        way = j->extract.rank ? ": the difference of the models has such numbers, and no adapter"
              : !strcmp(j->command, "blend") ? ". --allow-nan keeps such numbers"
              : j->quantise.args.count && !j->mix.info.name
                  ? ". --allow-nan stores the nearest numbers"
              : adapters_wanted(&j->adapters) ? ". --allow-nan stores such numbers as they are"
                                              : ". --allow-nan quantises them as they are";
    else if (err->rule && !strcmp(err->rule, "heft/requantise"))
        way = "; --requantize allows this";
    else if (err->status != HEFT_E_LOSSY)
        return;
    else if (j->session->strict)
        way = "; --strict makes errors of warnings";
    snprintf(err->message + used, sizeof err->message - used, "%s", way);
}

const char *job_explain(const job *j, heft_error *err)
{
    name_way_out(j, err);
    bool is_known = err->input && err->input <= j->input_count;
    return err->about == HEFT_ABOUT_TARGET ? target_name(j)
           : is_known                      ? j->inputs[err->input - 1]
                                           : j->source;
}

void job_say_sums(const job *j, bool has_failed)
{
    const heft_write_sums *s = &j->sums;
    outbuf text;
    if ((!s->reshaped && !s->left_out) || (j->session->quiet && !has_failed))
        return;
    out_open(&text, -1);
    out_format(&text, "%s%llu tensor%s, ", has_failed ? "of " : "", (unsigned long long)s->tensors,
               s->tensors == 1 ? "" : "s");
    const char *tense = has_failed ? "would be " : "";
    if (s->reshaped)
        out_format(&text, "%llu %sreshaped", (unsigned long long)s->reshaped, tense);
    if (s->reshaped && s->left_out)
        out_text(&text, ", ");
    if (s->left_out)
        out_format(&text, "%llu %sleft out", (unsigned long long)s->left_out, tense);
    say(MESSAGE_INFO, j->source, "%s", out_cstr(&text));
    out_free(&text);
}

int job_check_rules(job *j, const heft_file *f)
{
    int code = rules_check(&j->rules, j->session, f, j->source);
    bool can_list = heft_format_caps(j->target) & HEFT_CAN_LISTS;
    if (!code)
        code = set_options_resolve(&j->rules.set, f, can_list, j->source);
    rules_set(&j->rules, &j->convert);
    if (code || !j->mix.info.name)
        return code;
    code = job_mix_choose(j, f);
    if (!code)
        code = set_options_resolve(&j->rules.set, f, can_list, j->source);
    rules_set(&j->rules, &j->convert);
    return code;
}

int job_convert(job *j, const heft_file *f)
{
    heft_error err;
    heft_sink *sink;
    int code = job_check_rules(j, f);
    if (code)
        return code;
    if (open_sink(&sink, j, &err))
        return say_error(target_name(j), &err);
    progress_begin(&j->bar, j->out);
    heft_status st = heft_file_convert(f, j->target, sink, &j->convert, &err);
    progress_end(&j->bar);
    losses_print(&j->losses);
    if (st && j->rules.no_memory)
        return say_no_memory_to_match(j->source);
    job_say_sums(j, st);
    return st ? say_error(job_explain(j, &err), &err) : CODE_DONE;
}

bool job_makes_folders(const void *of)
{
    const job *j = of;
    return j->share_text || j->finish || j->abort || j->external_data || j->extract.rank ||
           (j->to && is_folder(find_format(j->to)));
}

void job_say_result(const job *j)
{
    result_line line;
    if (!result_begin(&line, j->out))
        return;
    json_member_str(&line.json, "format", str_of(heft_format_name(j->target)));
    json_member_u64(&line.json, "bytes", j->bytes);
    json_member_bool(&line.json, "dry_run", j->dry_run);
    if (j->share.count) {
        json_member_u64(&line.json, "share", j->share.number);
        json_member_u64(&line.json, "shares", j->share.count);
        json_member_u64(&line.json, "missing", j->written.missing);
    }
    result_end(&line);
}

void job_result_edited(json *j, const heft_edit_result *result, bool dry_run)
{
    json_member_u64(j, "bytes", result->size);
    json_member_u64(j, "copied", result->copied);
    json_member_bool(j, "changed", result->changed);
    json_member_bool(j, "in_place", result->in_place);
    json_member_bool(j, "rolled_back", result->rolled_back);
    json_member_bool(j, "dry_run", dry_run);
}

void job_say_appended(const job *j, const heft_append_result *result)
{
    result_line line;
    if (!result_begin(&line, j->out))
        return;
    json_member_u64(&line.json, "tensors", result->tensors);
    job_result_edited(&line.json, &result->edit, j->dry_run);
    result_end(&line);
}

void job_say_edited(const char *path, const heft_edit_result *result)
{
    unsigned n = result->hard_links;
    if (!n || !result->changed)
        return;
    const char *links = n == 1 ? "link" : "links", *show = n == 1 ? "shows" : "show";
    if (result->in_place)
        say(MESSAGE_NOTE, path, "%u other hard %s to the file also %s the change", n, links, show);
    else
        say(MESSAGE_WARNING, path, "%u other hard %s to the file still %s the old content", n,
            links, show);
}
