/* job.h - shared code of convert, merge, split, append and edit: options, companion texts, the
 * output, and the call of the library.
 *
 * This room has the commands: cmd_NAME.c ends with the description of the command; what several of
 * them share, such as this file, is beside them. */
#ifndef HEFT_CLI_JOB_H
#define HEFT_CLI_JOB_H
#include <heft/editing.h>
#include <heft/mix.h>
#include <heft/share.h>
#include <sys/stat.h>

#include "models/adapters.h"
#include "models/blend_request.h"
#include "models/companions.h"
#include "models/extracted.h"
#include "models/quantised_model.h"
#include "options/command.h"
#include "options/opt.h"
#include "options/rules.h"
#include "process/message.h"
#include "process/progress_line.h"
#include "process/sinkwatch.h"
#include "text/outbuf.h"

typedef struct job_mix {
    /* options as given */
    opt_list types; /* REGEX=TYPE */
    const char *embedding, *output, *imatrix;
    bool pure, keeps_output;
    /* derived from the options */
    heft_mix_info info; /* name NULL: no mix is asked for */
    struct type_rule *rules;
    heft_importance *importance;
    heft_mix *mix;
} job_mix;

struct job;
/* Find out whether --quantize names a mix, and check its options. Return an exit code. */
int job_mix_prepare(struct job *j);
/* Apply the mix to the model that is converted: casts, importance and metadata of the job.  Print
 * what differs from the mix. Return an exit code. */
int job_mix_choose(struct job *j, const heft_file *f);
/* Print the table of types and sizes of a dry run, if a mix is asked for. */
void job_mix_print(outbuf *o, struct job *j, const heft_file *f);
void job_mix_release(struct job *j);

typedef struct losses {
    const char *path; /* of the input */
    bool verbose;     /* print notes, too */
    bool casts_only;  /* leave out losses that are known before the conversion */
    message_groups groups;
} losses;

typedef struct job {
    const session *session;
    const char *command; /* its name */
    /* options as given */
    const char *out, *to, *version, *duplicates, *generator, *config, *vocab, *special, *stem;
    const char *external_data; /* name of the file that gets the data; NULL: not asked */
    bool moves_inside;         /* --inline */
    const char *dequantize;    /* element type, "": of each tensor its own; NULL: not asked */
    quantise_options quantise;
    job_mix mix;
    blend_request blend;
    adapter_options adapters;
    extract_options extract;
    uint64_t align, max_bytes, count;
    bool may_be_folder;        /* the command writes folders, too */
    opt_list tensors;          /* --tensor */
    bool rounds, allow_change; /* tensors that are replaced keep their types, or change */
    bool allow_loss, dry_run, force, no_sync, finish, abort, resume;
    bool verify_quality, quality_as_json;
    const char *share_text; /* "I/N", "auto" or NULL */
    heft_share share;       /* number 0: the whole file */
    opt_list unset;
    rules rules;
    /* derived from the options */
    bool to_stdout;
    const char *source; /* path of the input, for error lines */
    /* heft_error.input counts the paths, which are borrowed, if there are several inputs. */
    const char *const *inputs;
    size_t input_count;
    const heft_format *target;
    heft_str config_text;
    heft_vocab *new_vocab;
    specials specials;
    losses losses;
    heft_write_sums sums;
    progress bar;
    sink_events events; /* losses are printed before the first byte is written */
    heft_write_options write;
    heft_convert_options convert; /* convert.write points to `write` */
    uint64_t bytes;               /* size of the converted file */
    heft_share_result written;    /* the result of --share or --finish */
} job;

/* The options of the commands, which have requests that begin with a job. */
enum {
    JOB_CONVERT = 1,
    JOB_MERGE = 2,
    JOB_SPLIT = 4,
    JOB_APPEND = 8,
    JOB_EDIT = 16,
    JOB_BLEND = 32
};
extern const shared_opt job_options[];

/* Fill a zeroed job: the member `begin` of a command whose request begins with a job. */
void job_begin(const session *s, void *zeroed);
void job_release(job *j);

/* The int functions below return exit codes. */

/* Check numeric options and parse the rules. */
int job_prepare(job *j);
/* Choose the target format by --to, otherwise by the suffix of the output. A format whose models
 * are folders is refused, unless j->may_be_folder is set. */
int job_choose_target(job *j);
/* Read the files of --vocab and --config, and parse --special. */
int job_read_texts(job *j, text_origin of_vocab);
/* Refuse an output that is a directory or, without --force, an existing file. info is the output's
 * stat(). */
int job_check_output(const job *j, const struct stat *info);
/* Complete or roll back an interrupted split in the folder `path`, or in the folder of the file
 * `path`, and print a note. *recovered is set if there was one. Return an exit code. */
int recover_set(bool *recovered, const char *path);
/* Set j->source, and fill j->write and j->convert from the options. */
void job_set_options(job *j, const char *source);
heft_duplicates job_duplicates(const job *j);
/* Check the rules against the model and convert it; a dry run writes nothing. */
int job_convert(job *j, const heft_file *f);
/* Return true if a model in the target format is a folder of files, and never one file. */
bool job_is_for_folder(const job *j);
/* Check the rules against the model, which may be made of the input f, and write the files of
 * --max-size and --count into the folder j->out. */
int job_split(job *j, const heft_file *f, const heft_file *model);
/* Check the rules against the model, and give the library what depends on it. */
int job_check_rules(job *j, const heft_file *f);
/* Return true if the job writes shares of its output or gives them up, or if the output is a
 * folder: it makes folders then. */
bool job_makes_folders(const void *job);
/* Append to the error of a conversion with losses the option that settles the matter; return the
 * path of the file that the error is about. */
const char *job_explain(const job *j, heft_error *err);
/* Print the progress of j, the context, after its losses. A heft_progress_fn. */
bool job_step(void *ctx, uint64_t done, uint64_t total);
/* Print how many tensors a conversion reshapes and leaves out, or would without an error. */
void job_say_sums(const job *j, bool has_failed);
/* Print the result message of a conversion. */
void job_say_result(const job *j);
/* Print a note or a warning if the edited file has other hard links. */
void job_say_edited(const char *path, const heft_edit_result *result);
/* Print the result message of tensors that were appended or replaced. */
void job_say_appended(const job *j, const heft_append_result *result);
/* Add the members of a result message that edit and append share. */
void job_result_edited(json *j, const heft_edit_result *result, bool dry_run);

/* Keep one loss for losses_print(). A heft_loss_fn; ctx is a `losses`. */
void keep_loss(void *ctx, heft_severity severity, const char *rule, heft_str tensor,
               const char *text);
/* Print the losses since the last call, one line for each rule. */
void losses_print(losses *l);
/* ---- data of an ONNX model in another file, job_move.c ---- */

/* Write the model as it is, with its data where --external-data or --inline says. Return an exit
 * code. */
int job_move(job *j, const char *in);

/* ---- shares, job_share.c; exit codes ---- */

/* Check --share and --finish, and set j->share. */
int job_prepare_share(job *j);
/* Write a share of the conversion, or complete its output, as --share or --finish says. */
int job_convert_share(job *j, const heft_file *f);
/* Give up the shares of the output, as --abort says. */
int job_give_up(const job *j);

#endif
