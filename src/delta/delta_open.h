/* delta_open.h - a delta that was read, and its changes in memory. */
#ifndef HEFT_DELTA_OPEN_H
#define HEFT_DELTA_OPEN_H
#include "core/read/file.h"
#include "delta/delta_file.h"

/* Ways to store the changes of a tensor. */
typedef enum heft_delta_coding {
    HEFT_DELTA_GAPS,           /* counts, gaps and values */
    HEFT_DELTA_XORS,           /* all bytes */
    HEFT_DELTA_DISK_XOR,       /* all bytes, as a zstd stream in a tensor of bytes */
    HEFT_DELTA_DISK_OVERWRITE, /* u32 count, u32 positions, bytes; as a zstd stream */
    HEFT_DELTA_PATCH,          /* indices and values */
    HEFT_DELTA_PATCH_GAPS      /* distances between indices, and values */
} heft_delta_coding;

typedef struct heft_delta_item {
    heft_delta_row row;
    heft_dtype dtype; /* HEFT_UNTYPED: not stated */
    uint8_t coding;   /* heft_delta_coding, of sparse changes and exclusive ors */
    uint32_t part[3]; /* numbers in the file of the delta */
    bool has_replaced;
    heft_hash replaced;
    heft_str checksum; /* hexadecimal, covers the new bytes; empty: not stated */
} heft_delta_item;

struct heft_delta {
    const heft_file *f;
    heft_memory mem;
    heft_vec items; /* heft_delta_item */
    heft_delta_sums sums;
    bool lists_all;        /* every tensor of the base has an item */
    uint32_t set, unset;   /* numbers of the map and of the list among the metadata; HEFT_NONE */
    const char *algorithm; /* all checksums have it */
};

static inline const heft_delta_item *heft_delta_item_at(const heft_delta *d, uint32_t i)
{
    return (const heft_delta_item *)d->items.ptr + i;
}
/* Append an item of change NONE; NULL: out of memory. */
heft_delta_item *heft_delta_add(heft_delta *d, heft_str name);
heft_status heft_delta_bad(heft_error *err, heft_str tensor, const char *what);

/* delta_foreign.c: read the layouts of other programs; *is_known false: the file has none. */
heft_status heft_delta_read_foreign(heft_delta *d, bool *is_known, heft_error *err);

/* ---- the changes of a tensor in memory, delta_load.c ---- */

typedef struct heft_delta_loaded {
    uint32_t unit;    /* bytes */
    uint64_t units;   /* all units of the tensor */
    uint64_t *starts; /* by block: the number of units before it that change; blocks + 1 */
    uint64_t blocks;
    uint16_t *positions; /* within the block */
    uint8_t *values;
    bool is_xor;  /* values are exclusive ors of the old and the new units */
    size_t bytes; /* size of the memory that has the three arrays */
} heft_delta_loaded;

/* Read and check the changes of a sparse item for a tensor of `bytes` bytes.
 *   HEFT_E_FORMAT  positions out of order or range, lengths that contradict each other */
heft_status heft_delta_load(heft_delta_loaded *out, const heft_delta *d, uint32_t item,
                            heft_dtype type, uint64_t bytes, heft_error *err);
void heft_delta_unload(heft_delta_loaded *l, const heft_delta *d);

/* ---- the base, delta_match.c ---- */

/* Find the tensor of the base of each item, base[i] or HEFT_NONE, and compare shapes and types.
 *   HEFT_E_ARGUMENT  the base is not the one of the delta */
heft_status heft_delta_match(uint32_t *tensors, const heft_delta *d, const heft_file *base,
                             heft_error *err);
/* Compare the base's tensors with the digests of the delta.  only_changed: of tensors without a
 * digest of the replaced values, and none that does not change. */
heft_status heft_delta_verify_base(const uint32_t *tensors, const heft_delta *d,
                                   const heft_file *base, bool only_changed,
                                   const heft_apply_options *opt, heft_error *err);

#endif
