/* delta_pair.h - compare the bytes of two dense tensors of one type and shape, in one pass. */
#ifndef HEFT_DELTA_PAIR_H
#define HEFT_DELTA_PAIR_H
#include "base/blake3.h"
#include "core/read/file.h"
#include "core/read/progress.h"

/* Memory for the pieces that are compared at the same time. */
typedef struct heft_delta_slots {
    struct heft_delta_slot *slots;
    uint32_t count;
    heft_memory *mem;
} heft_delta_slots;
heft_status heft_delta_slots_open(heft_delta_slots *s, const heft_host *host, heft_memory *mem,
                                  heft_error *err);
void heft_delta_slots_close(heft_delta_slots *s);

typedef struct heft_delta_pair {
    /* The caller sets these. */
    const heft_file *old, *new;
    uint32_t old_part, new_part;
    unsigned unit; /* bytes */
    heft_progress *progress;
    /* Results. */
    uint64_t length;  /* bytes */
    uint64_t changed; /* units */
    bool is_dense;    /* too many units differ for a list: these are not complete */
    heft_vec counts;  /* uint32_t: units that differ, by block */
    heft_vec gaps;    /* uint16_t */
    heft_vec values;  /* new units, one after the other */
    heft_blake3 old_digest, new_digest; /* take in the hash of each piece */
    heft_blake3 replaced;               /* takes in the old units that differ */
} heft_delta_pair;

/* Return an error if parts of one of the models are missing, or if one was changed by another
 * program; heft_error.input says which. */
heft_status heft_delta_are_complete(const heft_file *old, const heft_file *new, heft_error *err);
heft_status heft_delta_are_unchanged(const heft_file *old, const heft_file *new, heft_error *err);

/* Return the size of the units of a tensor: that of an element, if that is 1, 2, 4 or 8 bytes. */
unsigned heft_delta_unit(heft_dtype t);
/* Open streams of both parts; the caller closes both, also after an error. */
heft_status heft_delta_open_both(heft_stream **old, heft_stream **new, const heft_delta_pair *p,
                                 heft_error *err);
/* Read the next `len` bytes of both. */
heft_status heft_delta_read_both(void *to_old, heft_stream *old, void *to_new, heft_stream *new,
                                 size_t len, heft_error *err);
/* Compare.  heft_delta_pair_free() must follow, even after an error. */
heft_status heft_delta_pair_compare(heft_delta_pair *p, heft_delta_slots *s, heft_error *err);
void heft_delta_pair_free(heft_delta_pair *p, heft_memory *mem);

#endif
