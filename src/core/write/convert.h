/* convert.h - a conversion that is one of several. */
#ifndef HEFT_CONVERT_H
#define HEFT_CONVERT_H
#include "core/write/plan.h"

typedef struct heft_converting {
    void *ctx;
    /* Once everything is planned; or NULL. */
    heft_status (*planned)(void *ctx, heft_planner *p, heft_error *err);
    bool own_metadata;    /* that of the options alone, nothing of the input's */
    const uint32_t *only; /* tensors of the input, ascending, instead of all; or NULL */
    uint32_t only_count;
    const uint32_t *
        equal; /* by part of the input: equal numbers, equal bytes; no part is read to find out.  Or NULL */
    const heft_plan_link *links; /* see heft_plan; or NULL */
    uint32_t link_count;
    /* Metadata, parts of the file and vocabulary are those of this file, and not the input's; or NULL. */
    const heft_file *about;
} heft_converting;

/* heft_file_convert(); how may be NULL. */
heft_status heft_convert_as(const heft_file *in, const heft_format *to, heft_sink *take,
                            const heft_convert_options *opt, const heft_converting *how,
                            heft_error *err);

#endif
