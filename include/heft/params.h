/* params.h - a cache of parameters: loaded on first use, evicted under a memory budget, with
 * derived forms (casts, tiles).  Works with every format.  Needs threads: missing in builds without
 * an operating system.  The general rules of heft.h apply.
 *
 * A parameter is the data of one dense tensor.  As in gpt-rs, a parameter has three identities:
 *   base id    derived from the name: the same in every file and on every machine;
 *   namespace  assigned at run time to each model in a store, never twice in a process;
 *   key        derived from both: identifies the parameter within a process.
 *
 * All functions on a store are thread-safe, except heft_params_close().
 *
 * Stability: provisional. */
#ifndef HEFT_PARAMS_H
#define HEFT_PARAMS_H
#include <heft/ids.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- keys --------------------------------------------------------------------------------- */

/* Compute a key: the first 16 bytes of BLAKE3("gpt-rs:param-key:v1" || namespace || base id). */
HEFT_API heft_id128 heft_param_key(heft_id128 ns, heft_id128 base);
/* Return a namespace that was never returned before in this process: 1, 2, ... */
HEFT_API heft_id128 heft_param_namespace_new(void);

/* ---- the store ---------------------------------------------------------------------------- */

typedef struct heft_params heft_params;

typedef struct heft_param { /* a loaded parameter, valid until released */
    const void *data;       /* aligned at least to the element type */
    uint64_t bytes;
    const uint64_t *dims; /* valid until heft_params_close() */
    uint32_t rank;
    heft_dtype dtype;
} heft_param;

typedef enum heft_params_event {
    HEFT_PARAMS_HIT,      /* a parameter was acquired that was in memory */
    HEFT_PARAMS_LOAD,     /* a parameter was loaded, or a derived form was made */
    HEFT_PARAMS_EVICTION, /* memory was freed to stay under the budget */
    HEFT_PARAMS_STALL     /* a thread waited for a load */
} heft_params_event;

typedef struct heft_params_stats {
    uint64_t hits, loads, evictions, stalls;
    uint64_t bytes_loaded;
    uint64_t resident, peak; /* bytes counted against the budget: now, maximum */
    uint64_t reserved[3];    /* 0: room for three counts */
} heft_params_stats;

typedef struct heft_params_options {
    size_t size;           /* = sizeof(heft_params_options) */
    const heft_host *host; /* NULL: heft_host_default() */
    /* Memory budget in bytes; 0: no limit.  Acquired parameters are never evicted, so the budget
     * can be exceeded until parameters are released. */
    uint64_t budget;
    bool copy; /* always read into memory of the store, never return mapped bytes */
    /* Called for every event except hits, by several threads at once: threads that use the store,
     * and the prefetching thread.  bytes: 0 for a stall.  May be NULL. */
    void (*on_event)(void *ctx, heft_params_event event, heft_id128 key, uint64_t bytes);
    void *ctx;
    /* Check the digest of each parameter on loading, if heft_part_verify() can, even if the file
     * was opened without check_parts.  On a mismatch nothing is loaded: HEFT_E_CHECKSUM.  Mapped
     * parameters are read once for the check. */
    bool check_parts;
    uint8_t reserved[7]; /* 0: up to 8 bytes */
} heft_params_options;
#define HEFT_PARAMS_OPTIONS_INIT                                        \
    {                                                                   \
        sizeof(heft_params_options), NULL, 0, false, NULL, NULL, false, \
        {                                                               \
            0                                                           \
        }                                                               \
    }

/* Create an empty store.  opt may be NULL. */
HEFT_API HEFT_MUST_CHECK heft_status heft_params_open(heft_params **out,
                                                      const heft_params_options *opt,
                                                      heft_error *err);
/* Close a store and all files in the store.  Every parameter must have been released.  NULL is
 * ignored. */
HEFT_API void heft_params_close(heft_params *p);

/* Add a model in a new namespace.  Tensors that are not dense, and names that are not ASCII, are
 * skipped.  HEFT_E_FORMAT: a stored base id does not match the tensor's name. */
HEFT_API HEFT_MUST_CHECK heft_status heft_params_add(heft_id128 *space, heft_params *p,
                                                     heft_file *take, heft_error *err);
/* Add a further file (shard) to the model of a namespace.  HEFT_E_ARGUMENT: a name exists. */
HEFT_API HEFT_MUST_CHECK heft_status heft_params_add_to(heft_params *p, heft_id128 space,
                                                        heft_file *take, heft_error *err);

/* Return the number of parameters of all files. */
HEFT_API uint32_t heft_params_count(const heft_params *p);
/* Return key i, in the order of adding files. */
HEFT_API heft_id128 heft_params_key_at(const heft_params *p, uint32_t i);
/* Find the key of a parameter in a namespace by name, base id, or Burn's id as stored in Burnpack
 * files.  False if there is none. */
HEFT_API bool heft_params_find(heft_id128 *key, const heft_params *p, heft_id128 space,
                               heft_str name);
/* Find a parameter by gpt-rs base id; false if there is none. */
HEFT_API bool heft_params_find_base(heft_id128 *key, const heft_params *p, heft_id128 space,
                                    heft_id128 base);
/* Find a parameter by Burn id; false if there is none. */
HEFT_API bool heft_params_find_burn(heft_id128 *key, const heft_params *p, heft_id128 space,
                                    uint64_t burn_id);
/* Return the name of a parameter, borrowed from the store; ptr NULL if the key is unknown. */
HEFT_API heft_str heft_params_name(const heft_params *p, heft_id128 key);

/* Get a parameter and load the data if necessary.  Release the parameter once per call.  Concurrent
 * calls share a load and its result.  HEFT_E_NOTFOUND: the key is unknown. */
HEFT_API HEFT_MUST_CHECK heft_status heft_params_acquire(heft_param *out, heft_params *p,
                                                         heft_id128 key, heft_error *err);
/* Release a parameter, once per heft_params_acquire().  Thread-safe. */
HEFT_API void heft_params_release(heft_params *p, heft_id128 key);
/* Load a parameter and keep the data in memory regardless of the budget, until unpinned. */
HEFT_API HEFT_MUST_CHECK heft_status heft_params_pin(heft_params *p, heft_id128 key,
                                                     heft_error *err);
/* Undo a heft_params_pin(), so that the data may be evicted. */
HEFT_API void heft_params_unpin(heft_params *p, heft_id128 key);
/* Load n parameters in the background, in this order, as far as the budget allows.  Unknown keys
 * and failures are skipped; heft_params_acquire() reports errors. */
HEFT_API void heft_params_prefetch(heft_params *p, const heft_id128 *keys, size_t n);
/* Return counts of loads and evictions, and the bytes in memory. */
HEFT_API heft_params_stats heft_params_statistics(const heft_params *p);

/* ---- derived forms ------------------------------------------------------------------------ */

/* The functions that make a derived form.  Called by several threads at once. */
typedef struct heft_derivation {
    uint64_t kind; /* identifies the form: the same kind must always give the same bytes */
    /* Set bytes, dtype, rank and dims of *out, which begins as a copy of *src without data.  dims
     * may be replaced by at most 8 numbers in memory that is valid until heft_params_resolve()
     * returns. */
    heft_status (*shape)(heft_param *out, const heft_param *src, const void *ctx, heft_error *err);
    /* Fill out->bytes bytes at dst, which is aligned to 64 bytes. */
    heft_status (*make)(void *dst, const heft_param *out, const heft_param *src, const void *ctx,
                        heft_error *err);
    const void *ctx;
} heft_derivation;

/* Get a derived form, made once and cached by (key, kind) under the same budget.  Call
 * heft_params_release_form() once per call.  HEFT_E_NOTFOUND: the key is unknown. */
HEFT_API HEFT_MUST_CHECK heft_status heft_params_resolve(heft_param *out, heft_params *p,
                                                         heft_id128 key, const heft_derivation *d,
                                                         heft_error *err);
/* Release a derived form, once per heft_params_resolve().  Thread-safe. */
HEFT_API void heft_params_release_form(heft_params *p, heft_id128 key, uint64_t kind);

/* Return the derivation of a parameter's numbers as f32, from any plain type.  Resolving fails with
 * HEFT_E_UNSUPPORTED for a part of a quantised tensor, as heft_array_read() does. */
HEFT_API heft_derivation heft_derivation_f32(void);
typedef struct heft_tiling { /* size of a tile in elements */
    uint32_t rows, columns;
} heft_tiling;
/* Return the derivation of a matrix in tiles: tiles in row-major order, elements of a tile in
 * column-major order, padded with zeros at the edges; dims stay the dims of the matrix.  t is
 * borrowed as long as the derivation is used.  Resolving fails with HEFT_E_UNSUPPORTED unless
 * the parameter is a matrix of a plain type. */
HEFT_API heft_derivation heft_derivation_tiles(const heft_tiling *t);

#ifdef __cplusplus
}
#endif
#endif
