/* spill.h - random access to bytes that are produced in order: a few in memory, many in the scratch
 * space of the sink or the host. */
#ifndef HEFT_SPILL_H
#define HEFT_SPILL_H
#include "core/read/file.h"

typedef struct heft_spill {
    const heft_host *host;
    const uint8_t *bytes;
    uint64_t len;
    void *memory;          /* the bytes, or NULL … */
    heft_scratch *scratch; /* … if they are in scratch space */
    bool uses_sink;        /* the scratch space is the sink's */
} heft_spill;

/* Produce the next len bytes. */
typedef heft_status (*heft_spill_read)(void *ctx, uint8_t *buf, size_t len, heft_error *err);

/* Reserve len bytes, in the sink's scratch space if possible, and fill this space.  Call
 * heft_spill_close() whatever is returned. */
heft_status heft_spill_fill(heft_spill *out, const heft_host *h, heft_sink *sink, uint64_t len,
                            heft_spill_read read, void *ctx, heft_error *err);
/* Return an error if bytes of the mapped scratch file could not be read. */
heft_status heft_spill_state(const heft_spill *s, heft_error *err);
void heft_spill_close(heft_spill *s); /* a zeroed s is harmless */

#endif
