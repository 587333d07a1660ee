/* meter.h - the progress of many workers. */
#ifndef HEFT_METER_H
#define HEFT_METER_H
#include "core/read/file.h"

/* Counts, calls back one at a time, remembers a stop. */
typedef struct heft_meter {
    heft_progress_fn fn;
    void *ctx;
    uint64_t total, done;      /* bytes */
    int busy, stopped, failed; /* atomic; failed: some worker met an error */
    heft_error error;          /* the first one */
} heft_meter;
void heft_meter_add(heft_meter *m, uint64_t bytes);
bool heft_meter_halted(const heft_meter *m); /* stopped or failed: no use in going on */
void heft_meter_fail(heft_meter *m, const heft_error *err);
heft_status heft_meter_end(heft_meter *m, heft_error *err);

#endif
