/* job.h - what convert, merge, split, append and edit have in common: their options, the texts that go into a model,
 * where the output goes, and how the library is called. */
#ifndef HEFT_CLI_JOB_H
#define HEFT_CLI_JOB_H
#include <sys/stat.h>

#include "loss_report.h"
#include "opt.h"
#include "progress_line.h"
#include "rules.h"
#include "sinkwatch.h"
#include "vocab_file.h"

enum { JOB_OPTIONS = 40 };

typedef struct job {
    /* what was asked */
    const char *out, *to, *version, *duplicates, *generator, *config, *vocab, *special, *stem;
    uint64_t align, threads, max_bytes, count;
    bool strict, allow_loss, dry_run, force, no_sync;
    opt_list unset, renames; /* KEY and A=B */
    rules rules;
    opt options[JOB_OPTIONS];
    opt_usage usage;
    /* what follows from it */
    bool to_stdout;
    const char *source; /* the input, as an error line names it */
    const heft_format *target;
    heft_str config_text;
    heft_vocab *new_vocab;
    specials specials;
    heft_executor executor;
    heft_host host;
    losses losses;
    progress bar;
    sink_failure failure;
    heft_write_options write;
    heft_convert_options convert; /* with these write options */
} job;

/* As opt_parse(), with those of the options above that are the command's; `about` lists none. */
bool job_parse(job *j, opt_args *rest, int *code, const opt_usage *usage, int argc, char **argv);
void job_release(job *j);

/* An int that one of these returns is an exit code: not CODE_DONE, said why not. */

/* Checks numbers and makes sense of rules. */
int job_prepare(job *j);
/* By --to or the suffix of the output. */
int job_choose_target(job *j);
/* Reads what --vocab, --special and --config name. */
int job_read_texts(job *j, text_origin of_vocab);
/* Whether the output, of which stat() says `about`, may be written over. */
int job_check_output(const job *j, const struct stat *info);
/* Fills j->how for an input, which is the source from here on. */
void job_set_options(job *j, const char *source);
heft_duplicates job_duplicates(const job *j);
/* Holds the rules against the model and writes it to the output; on a dry run to nothing. */
int job_convert(job *j, const heft_file *f);
/* The notes about a file that was changed in place or replaced. */
void job_say_edited(const char *path, const heft_edit_result *result);

#endif
