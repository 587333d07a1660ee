/* convert.h - a conversion in three steps, for callers that inspect the plan or write several
 * files.
 *
 * This room takes the tensors of an open file, changed by options, to a planned file: origins,
 * casts, layouts, copies on all threads. What a program declares itself is in writer. */
#ifndef HEFT_CONVERT_H
#define HEFT_CONVERT_H
#include <heft/write.h>

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
heft_status heft_conversion_write(heft_conversion *c, heft_sink *sink);
/* Release c.  Finish the sink if st is HEFT_OK and this is no dry run; otherwise discard the
 * sink. */
heft_status heft_conversion_end(heft_conversion *c, heft_sink *take, heft_status st);
/* Release c only, in place of heft_conversion_end(). */
void heft_conversion_release(heft_conversion *c);
/* Run all three steps. */
heft_status heft_convert_as(const heft_file *in, const heft_format *to, heft_sink *take,
                            const heft_convert_options *opt, const heft_conversion_scope *scope,
                            heft_error *err);

#endif
