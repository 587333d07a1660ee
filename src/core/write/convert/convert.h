/* convert.h - a conversion in three steps, for callers that inspect the plan or write several
 * files.
 *
 * This room takes the tensors of an open file, changed by options, to a planned file: origins,
 * casts, layouts, copies on all threads. What a program declares itself is in writer. */
#ifndef HEFT_CONVERT_H
#define HEFT_CONVERT_H
#include <heft/write.h>

#include "core/write/convert/copy.h"
#include "core/write/plan/plan.h"

/* Add to an error of a conversion which of the two files it is about, unless that is known; return
 * st. */
heft_status heft_conversion_blame(heft_error *err, heft_status st);

/* Restrictions and replacements that heft_file_convert() does not offer. */
typedef struct heft_conversion_scope {
    bool is_shard;        /* the file is one of a set */
    bool own_metadata;    /* take metadata from the options only, not from the input */
    const uint32_t *only; /* tensors of the input to write, ascending; NULL: all */
    uint32_t only_count;
    /* By part of the input: parts with equal numbers have equal bytes.  NULL: read and compare. */
    const uint32_t *equal_id;
    const heft_plan_shard *shards; /* see heft_plan; or NULL */
    uint32_t shard_count;
    void *progress_ctx; /* for the progress function; NULL: that of the options */
    /* Source of metadata, model-level parts and vocabulary instead of the input; or NULL. */
    const heft_file *metadata_from;
} heft_conversion_scope;

typedef struct heft_conversion {
    heft_planner p;
    const heft_file *in;
    heft_convert_options opt;
    heft_conversion_scope scope;
    heft_vec origins;      /* heft_origin, by part to write */
    heft_vocab *vocab;     /* the vocabulary of the input */
    uint8_t *part_use;     /* heft_part_use, by part of the input */
    bool checks_all_first; /* check every used part before the first byte is written */
    heft_error *err, own_err;
} heft_conversion;

/* Plan the file to write; scope may be NULL.  heft_conversion_end() must follow, even after an
 * error. */
heft_status heft_conversion_plan(heft_conversion *c, const heft_file *in, const heft_format *to,
                                 const heft_convert_options *opt,
                                 const heft_conversion_scope *scope, heft_error *err);
/* Write the whole file.  A dry run only counts the values that casts lose and needs no sink. */
heft_status heft_conversion_write(heft_conversion *c, heft_sink *target);
/* Release c.  Finish the sink if st is HEFT_OK and this is no dry run; otherwise discard the
 * sink. */
heft_status heft_conversion_end(heft_conversion *c, heft_sink *take, heft_status st);
/* Release c only, in place of heft_conversion_end(). */
void heft_conversion_release(heft_conversion *c);
/* Run all three steps. */
heft_status heft_convert_as(const heft_file *in, const heft_format *to, heft_sink *take,
                            const heft_convert_options *opt, const heft_conversion_scope *scope,
                            heft_error *err);

/* ---- build the model that a conversion writes from the model of the input ---- */

/* Add the selected tensors, with parts and storage settings. */
heft_status heft_conversion_add_tensors(heft_conversion *c);
heft_status heft_conversion_add_metadata(heft_conversion *c);
heft_status heft_conversion_add_model_parts(heft_conversion *c);
heft_status heft_conversion_add_vocab(heft_conversion *c);
/* ---- the input's checksums, convert.c ---- */

/* Set c->part_use, for the functions below. */
heft_status heft_conversion_mark_part_use(heft_conversion *c);
/* Return the use of a part of the input; ctx is a heft_conversion. */
heft_part_use heft_conversion_part_use(void *ctx, uint32_t part);
/* Return true if a part has to be decoded before the copy; ctx is a heft_conversion. */
bool heft_conversion_decodes_first(void *ctx, uint32_t part);

/* ---- preserve the version ---- */

/* Return true if the input has the format that is written. */
bool heft_is_same_format(const heft_planner *p, const heft_file *in);
/* Keep the version of the input, unless the caller chose a version. */
heft_status heft_same_format_version(heft_planner *p, const heft_file *in, heft_error *err);
/* Return the storage of a part of the input if the caller asked for none. */
heft_storage heft_same_format_storage(heft_planner *p, const heft_file *in, uint32_t part);
/* Count changes of storage against the input, for heft_same_format_losses(). */
void heft_same_format_note(heft_planner *p, const heft_file *in, uint32_t part,
                           const heft_storage *storage);
/* Report the content of the input that is not among the tensors, as warnings. */
heft_status heft_left_out_losses(heft_planner *p, const heft_file *in);
/* Report everything that the parser skipped and the target will therefore lack. */
heft_status heft_same_format_losses(heft_planner *p, const heft_file *in);

#endif
