/* convert.h - a conversion in three steps, for callers that look at its plan or write several files. */
#ifndef HEFT_CONVERT_H
#define HEFT_CONVERT_H
#include "core/write/plan.h"

typedef struct heft_converting { /* what differs from heft_file_convert() */
    bool own_metadata;           /* that of the options alone, nothing of the input's */
    const uint32_t *only;        /* tensors of the input, ascending, instead of all; or NULL */
    uint32_t only_count;
    const uint32_t *
        equal; /* by part of the input: equal numbers, equal bytes; no part is read to find out.  Or NULL */
    const heft_plan_shard *shards; /* see heft_plan; or NULL */
    uint32_t shard_count;
    /* Metadata, parts of the file and vocabulary are those of this file, and not the input's; or NULL. */
    const heft_file *about;
} heft_converting;

typedef struct heft_conversion {
    heft_planner p;
    const heft_file *in;
    heft_convert_options opt;
    heft_converting how;
    heft_vec origins;  /* by part to be written */
    heft_vocab *vocab; /* the input's */
    uint8_t *passing;  /* by part of the input: heft_part_use */
    bool decodes;      /* what is compressed is decoded once before, for its digests */
    heft_error *err, own_err;
} heft_conversion;

/* Plan the file that is to be written; how may be NULL.  heft_conversion_end() must follow, also after an error. */
heft_status heft_conversion_plan(heft_conversion *c, const heft_file *in, const heft_format *to,
                                 const heft_convert_options *opt, const heft_converting *how,
                                 heft_error *err);
/* Write all of the file; a dry run counts what casts lose instead and needs no sink. */
heft_status heft_conversion_write(heft_conversion *c, heft_sink *sink);
/* Release c.  Finish the sink if st is HEFT_OK and this is no dry run, else discard it. */
heft_status heft_conversion_end(heft_conversion *c, heft_sink *take, heft_status st);
/* All three steps. */
heft_status heft_convert_as(const heft_file *in, const heft_format *to, heft_sink *take,
                            const heft_convert_options *opt, const heft_converting *how,
                            heft_error *err);

#endif
