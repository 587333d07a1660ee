/* shard_cut.h - decide where to cut a model into shards: runs of units that are never cut
 * themselves. */
#ifndef HEFT_SHARD_CUT_H
#define HEFT_SHARD_CUT_H
#include "base/arena.h"
#include "base/error.h"

typedef struct heft_shard_cut {
    heft_memory *mem;
    const uint64_t *payload; /* bytes of data, by unit */
    uint32_t units;
    uint64_t header_bytes; /* estimated bytes of header per unit */
    uint64_t max_bytes;    /* limit of the file size; 0: no limit */
    /* Plan the file of units [first, end) and set *bytes to the exact size.  A longer run never
     * makes a smaller file. */
    heft_status (*plan)(void *ctx, uint32_t first, uint32_t end, uint64_t *bytes);
    void *ctx;
    heft_error *err;
    /* The result, by shard. */
    heft_vec ends;  /* uint32_t: end of each shard, past the last unit */
    heft_vec sizes; /* uint64_t: planned bytes of each file; 0: not planned */
} heft_shard_cut;

/* Cut the units into at least `count` shards.  With a limit, each shard is the longest run
 * within the limit, or a single unit that exceeds the limit; the trials plan O(units log units)
 * units in all.  A model without units makes a single shard. */
heft_status heft_shard_cut_model(heft_shard_cut *c, uint32_t count);
void heft_shard_cut_free(heft_shard_cut *c);

#endif
