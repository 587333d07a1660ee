/* delta_settle.h - the changes of a tensor, brought together with its base. */
#ifndef HEFT_DELTA_SETTLE_H
#define HEFT_DELTA_SETTLE_H
#include "base/blake3.h"
#include "combine/combine.h"
#include "delta/delta_open.h"

typedef struct heft_delta_source { /* the bytes of a tensor of the base */
    heft_combine_input in;
    heft_combine_reader reader;
    const uint8_t *in_place; /* NULL: they are read */
} heft_delta_source;

/* Describe the bytes of a part of file number `number` as an input. */
heft_combine_input heft_delta_input(const heft_file *f, uint32_t number, uint32_t tensor,
                                    uint32_t part);
/* Take the old units at the positions of the changes.  buf: room for a block. */
heft_status heft_delta_gather(uint8_t *old, const heft_delta_loaded *l, heft_delta_source *at,
                              uint8_t *buf, heft_error *err);
/* Return a digest by its name in disk deltas, or NULL. */
const heft_digest *heft_delta_digest(const heft_host *host, const char *name);
/* Compare the checksum of the bytes of the result.
 *   HEFT_E_ARGUMENT  it differs */
heft_status heft_delta_verify_result(const heft_delta *d, const heft_delta_item *item,
                                     const heft_delta_loaded *l, heft_delta_source *at,
                                     uint8_t *buf, heft_error *err);

typedef struct heft_delta_settled {
    bool wants_old;           /* set by the caller */
    heft_delta_loaded loaded; /* values are new units, never exclusive ors */
    uint8_t *old;             /* the old units; NULL unless they are wanted */
    size_t old_bytes;         /* size of that memory */
} heft_delta_settled;

/* Load the changes of a sparse item, turn exclusive ors into new values, and compare checksums of
 * the result if `verifies`.  heft_delta_settled_free() must follow, even after an error. */
heft_status heft_delta_settle(heft_delta_settled *s, const heft_delta *d, uint32_t item,
                              const heft_file *base, uint32_t tensor, bool verifies,
                              heft_error *err);
void heft_delta_settled_free(heft_delta_settled *s, const heft_delta *d);

#endif
