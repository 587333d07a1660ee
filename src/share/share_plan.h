/* share_plan.h - a conversion in several shares: plan, id of the plan, record of a share. */
#ifndef HEFT_SHARE_PLAN_H
#define HEFT_SHARE_PLAN_H
#include <heft/share.h>

#include "core/write/convert/convert.h"

struct heft_share_plan {
    heft_conversion c;
    const heft_host *host;
    heft_ledger uses; /* says whether a part has to stay whole; verifies nothing */
    heft_hash id;
    uint32_t count;
    uint64_t *borders;    /* offsets in the output where shares begin; count + 1 numbers */
    uint32_t *file_order; /* parts of the output by offset; part_count numbers */
    uint32_t part_count;
    uint8_t *is_own; /* by part of the input: belongs to the share that is being written */
    bool is_first;   /* the share that is being written has number 1 */
    heft_error err;
};

/* Compute the id of a plan, share_id.c. */
heft_status heft_share_compute_id(heft_share_plan *p, const heft_copy_context *copying);

/* ---- records, share_record.c ---- */

/* Origin or destination of the content of a record. */
typedef struct heft_share_content {
    const heft_share_plan *p;
    heft_partial_crcs *target;
    heft_ledger *source;
    size_t (*lost)[HEFT_CAST_LOSSES]; /* by part to write; NULL: nothing is counted */
    const heft_range *only;           /* while writing: the range of the share */
    uint8_t *has_digest;              /* while reading: parts with a digest in a record */
    uint8_t *has_state;               /* while reading: checksums with a state in a record */
} heft_share_content;

/* Write the record of share `number` up to the hash, and the end with the hash. */
void heft_share_record_put(heft_out *o, const heft_share_content *c, uint32_t number);
void heft_share_record_end(heft_out *o, const heft_hash *before);
/* Read a record that belongs to the plan, and add the content; without `target` only check that
 * the record belongs to the plan.  *number: the share.  HEFT_E_ARGUMENT: the record is damaged or
 * belongs to a different plan. */
heft_status heft_share_record_read(const heft_share_content *c, heft_str text, uint32_t *number,
                                   heft_error *err);

#endif
