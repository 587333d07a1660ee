/* quantised_model.h - a model as it is when its weights are quantised, for --quantize, and its
 * config.json. */
#ifndef HEFT_CLI_QUANTISED_MODEL_H
#define HEFT_CLI_QUANTISED_MODEL_H
#include <heft/quantise.h>

#include "process/command_session.h"
#include "text/outbuf.h"

typedef struct quantise_options {
    opt_list args; /* [GLOB=]NAME[:OPTION] */
    bool requantise, allow_nan;
    heft_quality *quality; /* measures what is written; or NULL */
} quantise_options;

#define QUANTISED_SETTINGS "config.json" /* the file that is written beside the output */

typedef struct quantise_output {
    const char *path; /* the file of weights; NULL: no config.json is written */
    const heft_format *format;
    bool dry_run, force, no_sync;
} quantise_output;

typedef struct quantised_model {
    heft_quantisation *plan;
    heft_schemes *schemes;
    heft_str source_config; /* text of the input's config.json; may be empty */
    char *config;           /* path of the config.json to write, or NULL */
} quantised_model;

/* Plan to quantise `f`, opened from `path`; f must outlive *q, which must be released, after an
 * error, too. Print what is left alone. Return an exit code. */
int quantise(quantised_model *q, const quantise_options *o, const session *s, const heft_file *f,
             const char *path, quantise_output to);
/* Write config.json; on a dry run print a table of all tensors. Return an exit code. */
int quantised_end(const quantised_model *q, const session *s, quantise_output to);
void quantised_release(quantised_model *q);
/* Return the model whose weights are quantised; it ends with *q. */
const heft_file *quantised_file(const quantised_model *q);

/* Open the object that measures what is written. Return an exit code. */
int quantise_open_quality(heft_quality **out, const session *s, const char *path);
void quantise_close_quality(heft_quality *q);

/* Call fn for each method and mix that --quantize takes. */
void quantise_each_method(void (*fn)(void *ctx, const char *name, const char *summary), void *ctx);
/* Return the name of the mix with a number of general.file_type, or NULL. */
const char *quantise_mix_name(uint64_t file_type);

/* ---- what becomes of each tensor, as a table ---- */

typedef struct change {
    heft_str name; /* in the output */
    const char *from, *to;
    uint64_t bytes, new_bytes;
    const char *note;       /* NULL: there is nothing to say */
    const char *instead_of; /* type that was wanted; NULL: note counts */
} change;

/* Print a row for each of `count` changes; at(ctx, i) returns one. */
void change_table_print(outbuf *o, const session *s, uint32_t count,
                        change (*at)(void *ctx, uint32_t i), void *ctx);

#endif
