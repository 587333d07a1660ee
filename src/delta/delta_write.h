/* delta_write.h - what the files that make a delta share. */
#ifndef HEFT_DELTA_WRITE_H
#define HEFT_DELTA_WRITE_H
#include "delta/delta_file.h"
#include "delta/delta_pair.h"

typedef struct heft_delta_listed { /* a tensor of either model */
    heft_str name;
    heft_change change;
    uint32_t old_tensor, new_tensor; /* HEFT_NONE: that model has none */
    uint64_t changed;                /* units with new values */
    heft_hash base, result, replaced;
} heft_delta_listed;

typedef struct heft_delta_maker {
    const heft_file *old, *new;
    const heft_host *host;
    heft_delta_options opt;
    heft_memory mem;
    heft_delta_slots slots;
    heft_progress progress;
    heft_writer *writer; /* NULL: a dry run */
    heft_vec rows;       /* heft_delta_listed */
    heft_delta_sums sums;
    heft_error *err;
} heft_delta_maker;

/* Report what a tensor has besides values, and a delta has not. */
heft_status heft_delta_note_attributes(heft_delta_maker *m, const heft_delta_listed *row);
/* Report what the new model has besides tensors and metadata, and a delta has not. */
heft_status heft_delta_note_files(heft_delta_maker *m);
/* Write the list of all tensors, and the metadata that changed. */
heft_status heft_delta_write_list(heft_delta_maker *m);
/* Turn numbers of the host into little-endian ones, in place. */
void heft_delta_to_little(const heft_vec *v, size_t size);

#endif
