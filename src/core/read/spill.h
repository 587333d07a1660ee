/* spill.h - bytes that are needed in any order and come in one: in memory when they are few, else where the host has
 * room for a while. */
#ifndef HEFT_SPILL_H
#define HEFT_SPILL_H
#include "core/read/file.h"

typedef struct heft_spill {
    const heft_host *host;
    const uint8_t *bytes;
    uint64_t len;
    void *memory;          /* or … */
    heft_scratch *scratch; /* … on a disk */
} heft_spill;

/* The next len bytes of what is to be kept. */
typedef heft_status (*heft_spill_read)(void *ctx, uint8_t *buf, size_t len, heft_error *err);

/* Takes room for len bytes, near the sink if that is not NULL, and fills it.  To be closed whatever is returned. */
heft_status heft_spill_fill(heft_spill *out, const heft_host *h, heft_sink *sink, uint64_t len,
                            heft_spill_read read, void *ctx, heft_error *err);
/* Whether bytes that were looked at were there. */
heft_status heft_spill_state(const heft_spill *s, heft_error *err);
void heft_spill_close(heft_spill *s); /* one of zeros is harmless */

#endif
