/* memory_limits.h - limits on memory and on bytes to read, and the allocator.  The general rules
 * of heft.h apply.
 *
 * Stability: stable. */
#ifndef HEFT_MEMORY_LIMITS_H
#define HEFT_MEMORY_LIMITS_H
#include <heft/heft.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- limits and allocators ---------------------------------------------------------------- */

/* Counts the bytes that are read, see heft_limits.read_bytes.  Initialise with zeros. */
typedef struct heft_read_counter {
    uint64_t bytes;
    uint32_t lock;     /* for the library */
    uint32_t reserved; /* 0: up to 8 bytes */
} heft_read_counter;

struct heft_limits {      /* 0: the default in parentheses */
    size_t size;          /* = sizeof(heft_limits) */
    uint64_t index_bytes; /* bytes of the file that the index may occupy (4 GiB) */
    uint64_t memory;      /* bytes of memory that the index may occupy (4 GiB) */
    uint32_t tensors;     /* (16 Mi) */
    uint32_t depth;       /* nesting of JSON, CBOR and pickle (128) */
    /* Bytes that may be read after the index, all calls together (no limit): of compressed data
     * both the stored and the decoded bytes count; bytes that are read again count again.  Reading
     * more is HEFT_E_LIMIT.  Views (heft_part_view(), heft_array_view()) do not count. */
    uint64_t read_bytes;
    /* Counter of several files with one limit; must outlive the files.  NULL: each file counts for
     * itself.  Shards count with the model. */
    heft_read_counter *read_counter;
};
#define HEFT_LIMITS_INIT                         \
    {                                            \
        sizeof(heft_limits), 0, 0, 0, 0, 0, NULL \
    }

struct heft_allocator {
    size_t size; /* = sizeof(heft_allocator) */
    /* Allocate (ptr NULL), resize, or free (new_size 0, returns NULL).  NULL otherwise means out of
     * memory and leaves ptr unchanged.  align is a power of two.  Called by several threads at
     * once. */
    void *(*resize)(void *ctx, void *ptr, size_t old_size, size_t new_size, size_t align);
    void *ctx;
    void *reserved; /* NULL: room for a function */
};

#ifdef __cplusplus
}
#endif
#endif
