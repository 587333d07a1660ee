/* delta.h - what changed between two models, as a small file, and its application.  The general
 * rules of heft.h apply.
 *
 *   heft_delta_make()           writes what changed from one model to another
 *   heft_delta_apply()          opens the new model, from the base and the delta
 *   heft_delta_apply_in_place() changes the file of the base instead
 *
 * A delta is about names, element types, shapes, values and metadata, so the models may have
 * different formats.  It is a zTensor file, which docs/delta.md describes.
 *
 * Stability: provisional. */
#ifndef HEFT_DELTA_H
#define HEFT_DELTA_H
#include <heft/write.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- making ------------------------------------------------------------------------------- */

/* Kinds of changes of a tensor. */
typedef enum heft_change {
    HEFT_CHANGE_NONE,    /* it stays the same */
    HEFT_CHANGE_SPARSE,  /* some elements have new values */
    HEFT_CHANGE_XOR,     /* many have: stored are all bytes, old exclusive-or new */
    HEFT_CHANGE_WHOLE,   /* it has another type, shape or layout: stored is the new one */
    HEFT_CHANGE_ADDED,   /* it is new: the base does not have it */
    HEFT_CHANGE_REMOVED, /* the new model does not have it */
    HEFT_CHANGES         /* the number of kinds */
} heft_change;
/* Return the name of a kind in files and in messages: "sparse"; NULL for other numbers. */
HEFT_API const char *heft_change_name(heft_change c);

typedef struct heft_delta_sums {
    uint32_t tensors[HEFT_CHANGES]; /* by kind */
    uint32_t metadata;              /* keys that are set or removed */
    uint32_t reserved_count;        /* 0 */
    uint64_t bytes;                 /* decoded bytes of all tensors of the new model */
    /* The elements with new values count, and all bytes of tensors of the kinds XOR, WHOLE and
     * ADDED.  heft_delta_make_disk() counts the bytes with new values; HEFT_UNKNOWN_LENGTH says
     * that a disk delta was only opened. */
    uint64_t changed_bytes;
    uint64_t reserved[6]; /* 0: room for six sizes */
} heft_delta_sums;

typedef struct heft_delta_options {
    size_t size;                 /* = sizeof(heft_delta_options) */
    const heft_storage *storage; /* NULL: zstd, if the host has it, and CRC-32C */
    heft_loss_fn on_loss;        /* content that does not travel: "heft/delta"; may be NULL */
    heft_progress_fn progress;   /* bytes of both models; may be NULL */
    void *ctx;                   /* passed to both */
    bool strict;                 /* fail with HEFT_E_LOSSY after a loss */
    bool dry_run;                /* only compare; the sink may be NULL */
    uint8_t reserved[6];         /* 0: up to 8 bytes */
} heft_delta_options;
#define HEFT_DELTA_OPTIONS_INIT                                           \
    {                                                                     \
        sizeof(heft_delta_options), NULL, NULL, NULL, NULL, false, false, \
        {                                                                 \
            0                                                             \
        }                                                                 \
    }

/* Write what changed from one model to another, of any formats.  Each model is read once, a tensor
 * of which most elements changed twice.  out and opt may be NULL.
 *   HEFT_E_LOSSY        an added tensor cannot be stored in zTensor, or `strict` and a loss
 *   HEFT_E_UNSUPPORTED  this build does not write zTensor, or not the storage asked for */
HEFT_API HEFT_MUST_CHECK heft_status heft_delta_make(heft_delta_sums *out,
                                                     const heft_file *old_model,
                                                     const heft_file *new_model, heft_sink *take,
                                                     const heft_delta_options *opt,
                                                     heft_error *err);

/* ---- for other programs ------------------------------------------------------------------- */

typedef struct heft_disk_delta_options {
    size_t size;            /* = sizeof(heft_disk_delta_options) */
    const char *encoding;   /* "xor" or "overwrite"; NULL: xor */
    const char *checksum;   /* "xxh3-128", "blake3" or "adler32"; NULL: adler32 */
    uint32_t version;       /* number of the new model; that of the base is one less; 0: 1 */
    uint32_t reserved_bits; /* 0 */
    /* Open the sink for the file `name` of the folder; the index comes last. */
    heft_status (*open)(heft_sink **out, void *ctx, const char *name, heft_error *err);
    void *open_ctx;
    heft_loss_fn on_loss;      /* metadata that do not travel: "heft/delta"; may be NULL */
    heft_progress_fn progress; /* bytes of both models; may be NULL */
    void *ctx;                 /* passed to both */
    bool strict;               /* fail with HEFT_E_LOSSY after a loss */
    uint8_t reserved[7];       /* 0: up to 8 bytes */
} heft_disk_delta_options;
#define HEFT_DISK_DELTA_OPTIONS_INIT                                                            \
    {                                                                                           \
        sizeof(heft_disk_delta_options), NULL, NULL, 0, 0, NULL, NULL, NULL, NULL, NULL, false, \
        {                                                                                       \
            0                                                                                   \
        }                                                                                       \
    }
/* Write what changed as miles, slime and SGLang read it: a folder with safetensors files and an
 * index.  Each thread needs memory for up to three times the tensor that it compares.  out may be
 * NULL.
 *   HEFT_E_LOSSY        a tensor is added, removed, or has another type or shape: only values
 *                       travel; or `strict` and a loss
 *   HEFT_E_UNSUPPORTED  this build lacks zstd, the checksum or safetensors */
HEFT_API HEFT_MUST_CHECK heft_status heft_delta_make_disk(heft_delta_sums *out,
                                                          const heft_file *old_model,
                                                          const heft_file *new_model,
                                                          const heft_disk_delta_options *opt,
                                                          heft_error *err);

/* ---- reading and applying ----------------------------------------------------------------- */

typedef struct heft_delta heft_delta;
typedef struct heft_delta_row {
    heft_str name;
    heft_change change;
    uint32_t tensor;  /* number in the file of the delta, or HEFT_NONE */
    uint64_t changed; /* elements with new values of a sparse change */
    bool has_base, has_result;
    heft_hash base, result; /* hashes of heft_file_hash() */
    uint64_t reserved[2];   /* 0: room for two numbers */
} heft_delta_row;

/* Read the list of an open delta, which stays borrowed until heft_delta_close().  Besides the
 * files of heft_delta_make(), the folders of miles, slime and SGLang are read, and sparse patches:
 * docs/delta.md.
 *   HEFT_E_FORMAT  the file is not a delta, or contradicts itself */
HEFT_API HEFT_MUST_CHECK heft_status heft_delta_open(heft_delta **out, const heft_file *f,
                                                     heft_error *err);
/* Return the number of rows, unchanged tensors included if the delta lists them. */
HEFT_API uint32_t heft_delta_count(const heft_delta *d);
/* Return row i, below the count. */
HEFT_API heft_delta_row heft_delta_at(const heft_delta *d, uint32_t i);
/* Return the sums over all rows; `bytes` is 0. */
HEFT_API heft_delta_sums heft_delta_sum(const heft_delta *d);
/* Close a delta.  NULL is ignored. */
HEFT_API void heft_delta_close(heft_delta *d);

typedef struct heft_apply_options {
    size_t size;               /* = sizeof(heft_apply_options) */
    heft_progress_fn progress; /* bytes of the base that are compared, then of changes in place;
                                  may be NULL */
    void *ctx;
    bool no_verify; /* do not compare the base with the digests of the delta */
    /* In place: compare whole tensors.  By default only the values that are replaced are. */
    bool verify_all;
    bool no_sync;        /* in place: do not wait for the disk */
    bool dry_run;        /* in place: only check the base */
    uint8_t reserved[4]; /* 0: up to 8 bytes */
} heft_apply_options;
#define HEFT_APPLY_OPTIONS_INIT                                             \
    {                                                                       \
        sizeof(heft_apply_options), NULL, NULL, false, false, false, false, \
        {                                                                   \
            0                                                               \
        }                                                                   \
    }

/* Open the model that is the base with the changes.  It is a file like any other, to be read,
 * converted or split; values are computed when they are read.  Memory grows with the sparse
 * changes.  Base, delta and the file of the delta must outlive it.  opt may be NULL.
 *   HEFT_E_ARGUMENT  the base is not the model that the delta was made from; the message names the
 *                    first tensor that differs
 *   HEFT_E_FORMAT    the delta is damaged: positions out of range or out of order, lengths
 *   HEFT_E_CHECKSUM  a checksum does not match
 * err->input is 1 if the base is at fault, and 2 if the delta is. */
HEFT_API HEFT_MUST_CHECK heft_status heft_delta_apply(heft_file **out, const heft_file *base,
                                                      const heft_delta *d,
                                                      const heft_apply_options *opt,
                                                      heft_error *err);
/* Change the values in the file at path, which is one file with raw tensors without checksums.
 * The file is not read as a whole: of sparse changes only the values that are replaced are
 * compared with a digest, unless verify_all.  A journal beside the file undoes the change after a
 * kill or a power cut, see heft_edit_recover().  out and opt may be NULL.
 *   HEFT_E_ARGUMENT     as for heft_delta_apply(); the file is unchanged
 *   HEFT_E_UNSUPPORTED  the delta adds, removes or replaces tensors or changes metadata, or the
 *                       file stores tensors compressed, in several files, or with checksums */
HEFT_API HEFT_MUST_CHECK heft_status heft_delta_apply_in_place(heft_delta_sums *out,
                                                               const char *path,
                                                               const heft_delta *d,
                                                               const heft_apply_options *opt,
                                                               heft_error *err);

#ifdef __cplusplus
}
#endif
#endif
