/* params.h - parameters by identity: loaded when first needed, kept under a budget, derived forms
 * cached beside them.  Works over every format; needs threads, so it is not in bare builds.
 *
 * A parameter is the data of one dense tensor.  Its identity has three parts (gpt-rs):
 *   base id    from its name alone, the same in every file, on every machine;
 *   namespace  of one opened model, handed out at run time: two models, or one model twice, never
 *              share one;
 *   key        from both: what a cache of one process goes by.
 *
 * All functions on one store may be called from many threads at once, except close.
 */
#ifndef HEFT_PARAMS_H
#define HEFT_PARAMS_H
#include <heft/heft.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- identity ----------------------------------------------------------------------------- */

/* The first 16 bytes of BLAKE3(name).  false when the name is not ASCII: it has no base id. */
HEFT_API bool heft_param_base_id(heft_id128 *out, heft_str name);
/* The first 16 bytes of BLAKE3("gpt-rs:param-key:v1" || namespace || base id). */
HEFT_API heft_id128 heft_param_key(heft_id128 space, heft_id128 base);
/* A namespace that this process has not handed out before: 1, 2, … */
HEFT_API heft_id128 heft_param_namespace_new(void);
HEFT_API heft_id128 heft_id128_from(uint64_t low, uint64_t high);
/* 32 hexadecimal digits, the most significant first, and a terminator. */
HEFT_API void heft_id128_text(char out[33], heft_id128 id);

/* Burn's ids of parameters, which are 64-bit numbers.  Burn makes one from eight random bytes, and prints it as
 * thirteen characters: the base32 of those bytes with the digits 0-9 and a-v (base32hex, without padding). */
enum { HEFT_PARAM_ID_TEXT = 14 }; /* bytes, the terminator included */
/* A new id, from the system's random numbers.  HEFT_E_IO: there are none. */
HEFT_API HEFT_MUST_CHECK heft_status heft_param_id_new(uint64_t *out, heft_error *err);
HEFT_API void heft_param_id_text(char out[HEFT_PARAM_ID_TEXT], uint64_t id);
/* false: it is not the text of an id.  Capital letters count as small ones. */
HEFT_API bool heft_param_id_parse(uint64_t *out, heft_str text);

/* ---- the store ---------------------------------------------------------------------------- */

typedef struct heft_params heft_params;

typedef struct heft_param { /* bytes ready to use, until released */
    const void *data;       /* aligned to its element type at least */
    uint64_t bytes;
    const uint64_t *dims; /* as long as the store is open */
    uint32_t rank;
    heft_dtype dtype;
} heft_param;

typedef enum heft_params_event {
    HEFT_PARAMS_HIT,      /* an acquire found its bytes there */
    HEFT_PARAMS_LOAD,     /* bytes were loaded, or a derived form was made */
    HEFT_PARAMS_EVICTION, /* bytes were given up to keep to the budget */
    HEFT_PARAMS_STALL     /* an acquire had to wait for a load, its own or another's */
} heft_params_event;

typedef struct heft_params_stats {
    uint64_t hits, loads, evictions, stalls;
    uint64_t bytes_loaded;
    uint64_t resident, peak; /* bytes under the budget now, and at most so far */
    uint64_t reserved[3];
} heft_params_stats;

typedef struct heft_params_options {
    size_t size;           /* = sizeof(heft_params_options) */
    const heft_host *host; /* NULL: heft_host_default() */
    uint64_t budget; /* bytes; 0: without a limit.  Parameters in use are never taken away, so what
                           * is acquired at one time may pass it; releasing returns under it */
    bool copy;       /* never lend mapped bytes: always read into memory of the store */
    /* Called for each event but hits, on the thread that met it, by several at once: those that use the store and the
     * one that reads ahead.  bytes: 0 for a stall, since a load that goes on has not settled them yet. */
    void (*on_event)(void *ctx, heft_params_event event, heft_id128 key, uint64_t bytes);
    void *ctx;
    /* Loading a parameter checks its digest, where heft_part_verify() finds one, whatever its file was opened with:
     * HEFT_E_CHECKSUM, and nothing is loaded.  Bytes that stay where they are mapped are all read for that. */
    bool check_parts;
    uint8_t reserved[7]; /* 0 */
} heft_params_options;
#define HEFT_PARAMS_OPTIONS_INIT                                        \
    {                                                                   \
        sizeof(heft_params_options), NULL, 0, false, NULL, NULL, false, \
        {                                                               \
            0                                                           \
        }                                                               \
    }

HEFT_API HEFT_MUST_CHECK heft_status heft_params_open(heft_params **out,
                                                      const heft_params_options *opt,
                                                      heft_error *err);
/* Every parameter must have been released. */
HEFT_API void heft_params_close(heft_params *p); /* NULL is harmless */

/* A model in a namespace of its own.  A stored base id that is not that of its tensor's name is
 * HEFT_E_FORMAT.  Tensors whose names are not ASCII, and those that are not dense, are not parameters. */
HEFT_API HEFT_MUST_CHECK heft_status heft_params_add(heft_id128 *space, heft_params *p,
                                                     heft_file *take, heft_error *err);
/* A further file (a shard) of the model in that namespace; a name that is there already is
 * HEFT_E_ARGUMENT. */
HEFT_API HEFT_MUST_CHECK heft_status heft_params_add_to(heft_params *p, heft_id128 space,
                                                        heft_file *take, heft_error *err);

HEFT_API uint32_t heft_params_count(const heft_params *p);
/* In the order of adding; all zero bytes past the last. */
HEFT_API heft_id128 heft_params_key_at(const heft_params *p, uint32_t i);
/* false when there is none such.  Burn's ids are those that Burnpack files store. */
HEFT_API bool heft_params_find(heft_id128 *key, const heft_params *p, heft_id128 space,
                               heft_str name);
HEFT_API bool heft_params_find_base(heft_id128 *key, const heft_params *p, heft_id128 space,
                                    heft_id128 base);
HEFT_API bool heft_params_find_burn(heft_id128 *key, const heft_params *p, heft_id128 space,
                                    uint64_t burn_id);
HEFT_API heft_str heft_params_name(const heft_params *p, heft_id128 key); /* ptr NULL: none such */

/* Loads on first use: once, however many threads ask; an error goes to each of those that asked.
 * HEFT_E_NOTFOUND for a key of no parameter. */
HEFT_API HEFT_MUST_CHECK heft_status heft_params_acquire(heft_param *out, heft_params *p,
                                                         heft_id128 key, heft_error *err);
/* Once per acquire. */
HEFT_API void heft_params_release(heft_params *p, heft_id128 key);
/* Stays in memory whatever the budget says, until unpinned. */
HEFT_API HEFT_MUST_CHECK heft_status heft_params_pin(heft_params *p, heft_id128 key,
                                                     heft_error *err);
HEFT_API void heft_params_unpin(heft_params *p, heft_id128 key);
/* Reads ahead in the background, in this order, as far as the budget goes.  Unknown keys and failures are
 * passed over: acquiring tells. */
HEFT_API void heft_params_prefetch(heft_params *p, const heft_id128 *keys, size_t n);
HEFT_API heft_params_stats heft_params_statistics(const heft_params *p);

/* ---- derived forms ------------------------------------------------------------------------ */

/* shape and make are called on the thread that resolves the form, by several threads at once for several forms. */
typedef struct heft_derivation {
    uint64_t kind; /* names the form: the same kind must always mean the same bytes */
    /* Sets out's bytes, element type and shape, of at most 8 dimensions: dims may stay those of
     * src, or point to memory that lasts until this call returns to the store. */
    heft_status (*shape)(heft_param *out, const heft_param *src, const void *ctx, heft_error *err);
    /* Fills dst, out->bytes long and aligned to 64. */
    heft_status (*make)(void *dst, const heft_param *out, const heft_param *src, const void *ctx,
                        heft_error *err);
    const void *ctx;
} heft_derivation;

/* A form of a parameter, made once and kept by (key, kind) under the same budget. */
HEFT_API HEFT_MUST_CHECK heft_status heft_params_resolve(heft_param *out, heft_params *p,
                                                         heft_id128 key, const heft_derivation *d,
                                                         heft_error *err);
HEFT_API void heft_params_release_form(heft_params *p, heft_id128 key, uint64_t kind);

/* The same numbers as f32, from any plain type. */
HEFT_API heft_derivation heft_derivation_f32(void);
/* A matrix [rows, columns] cut into tiles, each holding its columns one after the other: tile (r, c)
 * of tile_rows x tile_columns elements, the tiles row by row, padded with zeros at the edges. */
typedef struct heft_tiling {
    uint32_t rows, columns;
} heft_tiling;
HEFT_API heft_derivation heft_derivation_tiles(const heft_tiling *t); /* t is borrowed */

#ifdef __cplusplus
}
#endif
#endif
