/* write.h - write and convert files of model weights.  The general rules of heft.h apply.
 *
 *   heft_array_save()    writes dense tensors in memory as a file;
 *   heft_file_convert()  writes an open file in another format;
 *   heft_writer          writes tensors piece by piece.
 * editing.h changes files, split.h writes a model as several files.
 *
 * Everything is planned before a byte is written, and losses (content that the target format
 * cannot represent) are reported.  Lost metadata is a warning, unless `strict`; for a tensor that
 * cannot be stored the call fails with HEFT_E_LOSSY, unless losses are allowed.  Files appear and
 * are replaced atomically.
 *
 * Stability: stable. */
#ifndef HEFT_WRITE_H
#define HEFT_WRITE_H
#include <heft/ids.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- writing ------------------------------------------------------------------------------ */

/* A sink receives the bytes of a file; heft_ext.h says how to write your own. */
enum {
    HEFT_SINK_REPLACE = 1, /* replace an existing file when the new file is complete */
    /* Sync the file before the rename, and the folder before the finishing call returns: after a
     * power cut there is the whole file under the final name, or none.  Replacing a file does so
     * unless HEFT_SINK_NO_SYNC is set. */
    HEFT_SINK_SYNC = 2,
    /* Never wait for the disk, for temporary files: a power cut may leave an empty or torn file.
     * Together with HEFT_SINK_SYNC: HEFT_E_ARGUMENT. */
    HEFT_SINK_NO_SYNC = 4
};
/* Open a sink for a file.  The complete file appears under the path, or none.  If an error message
 * begins with "saved, but", the file has appeared and a later step failed.  A replacement keeps the
 * permission bits, and owner and group if the process may set both, but no extended attributes.  An
 * existing path that is not a regular file (a pipe, /dev/stdout) is written sequentially.
 * Temporary files of killed programs in the folder are removed, except files locked (flock) by a
 * writer.  "s3://BUCKET/KEY" is written by a multipart upload; a failed upload leaves no parts
 * (heft/remote.h).
 *   HEFT_E_ARGUMENT     the file exists and HEFT_SINK_REPLACE is not set
 *   HEFT_E_UNSUPPORTED  another URL, or a URL without libcurl */
HEFT_API HEFT_MUST_CHECK heft_status heft_sink_open_file(heft_sink **out, const char *path,
                                                         uint32_t flags, heft_error *err);
/* Open a sink that writes sequentially to a descriptor.  The caller closes the descriptor. */
HEFT_API HEFT_MUST_CHECK heft_status heft_sink_open_fd(heft_sink **out, int fd, heft_error *err);
typedef struct heft_blob { /* a file in memory */
    void *data;            /* aligned to 64 bytes; NULL: empty */
    size_t size;
    const heft_allocator *allocator;
} heft_blob;
/* Open a sink in memory.  When the file is complete, *to holds the bytes; until then and on failure
 * *to is empty.  *to must not be moved meanwhile.  host (NULL: the default) supplies the allocator
 * and must outlive the blob. */
HEFT_API HEFT_MUST_CHECK heft_status heft_sink_open_memory(heft_sink **out, heft_blob *to,
                                                           const heft_host *host, heft_error *err);
/* Free the bytes, and empty the blob.  An empty blob is ignored. */
HEFT_API void heft_blob_free(heft_blob *b);
/* Close a sink that no function has taken; no file appears.  NULL is ignored. */
HEFT_API void heft_sink_discard(heft_sink *s);

/* Report a loss.  HEFT_NOTE: represented in a different form; HEFT_WARNING: dropped or altered;
 * HEFT_FAULT: prevents the conversion.  tensor: name, or ptr NULL.  docs/findings.md lists the
 * rules; "heft/cast" says how many values of a tensor a cast alters.  Arguments are valid until the
 * callback returns. */
typedef void (*heft_loss_fn)(void *ctx, heft_severity severity, const char *rule, heft_str tensor,
                             const char *text);

/* Numbers of tensors, for a sentence about losses. */
typedef struct heft_write_sums {
    uint64_t tensors;     /* all tensors, written or left out */
    uint64_t reshaped;    /* stored with a new shape */
    uint64_t left_out;    /* not stored, because the format cannot */
    uint64_t reserved[5]; /* 0: room for five counts */
} heft_write_sums;

typedef struct heft_write_options {
    size_t size;           /* = sizeof(heft_write_options) */
    const heft_host *host; /* NULL: heft_host_default() */
    const char *version;   /* version of the format; NULL: the default */
    heft_storage storage;  /* storage of all parts; a digest is stored if the format can */
    uint32_t align;        /* alignment of data in bytes, a power of two; 0: the format's default */
    bool allow_loss;       /* continue after HEFT_FAULT: drop or alter the parts concerned */
    bool strict;           /* fail with HEFT_E_LOSSY after HEFT_WARNING */
    /* Called while planning, before a byte is written.  For "heft/cast": called after the data are
     * converted, before the file appears; before a byte is written if strict, on a dry run or when
     * writing to a stream.  May be NULL. */
    heft_loss_fn on_loss;
    void *ctx; /* passed to on_loss */
    /* The numbers of each plan are added, also if the losses are not allowed.  May be NULL. */
    heft_write_sums *sums;
} heft_write_options;
#define HEFT_WRITE_OPTIONS_INIT                                                                \
    {                                                                                          \
        sizeof(heft_write_options), NULL, NULL, { HEFT_RAW, 0, NULL, { 0 } }, 0, false, false, \
            NULL, NULL, NULL                                                                   \
    }

typedef struct heft_writer heft_writer;
/* Open a writer.  opt may be NULL.  Call the functions below in this order: add metadata, tensors
 * and parts; heft_writer_begin(); heft_writer_write() for every part in the order of declaration;
 * heft_writer_finish().  After a failure other than HEFT_E_ARGUMENT the file cannot be completed:
 * begin, write and finish return the error again.  Memory grows with the number of tensors, not
 * with the size of the data.
 *
 * A format with HEFT_CAN_APPEND accepts metadata, tensors and a generator after heft_writer_begin()
 * as well (examples/write_history.c).  A loss is then HEFT_E_LOSSY, and an existing name or key
 * HEFT_E_ARGUMENT, from the call that adds the tensor or value; the writer continues without the
 * tensor or value.  Losses of the whole model are reported by heft_writer_finish(). */
HEFT_API HEFT_MUST_CHECK heft_status heft_writer_open(heft_writer **out, const heft_format *fmt,
                                                      heft_sink *take,
                                                      const heft_write_options *opt,
                                                      heft_error *err);
/* Add a top-level value, or a child of the list or map that was added last and has not been ended.
 * Keys and text are copied. */
HEFT_API HEFT_MUST_CHECK heft_status heft_writer_add_meta(heft_writer *w, heft_value v,
                                                          heft_error *err);
/* End the list or map that was added last. */
HEFT_API HEFT_MUST_CHECK heft_status heft_writer_end_meta(heft_writer *w, heft_error *err);
/* Set the name of the writing program, "train.c 1.4"; the default is this library.  A loss of the
 * rule "heft/generator" unless the format stores the name (zTensor 1.0).  The text is copied. */
HEFT_API HEFT_MUST_CHECK heft_status heft_writer_set_generator(heft_writer *w, heft_str name,
                                                               heft_error *err);
/* A part of a tensor to be written. */
typedef struct heft_component {
    heft_str role;               /* "data", "values", "scale" */
    heft_dtype dtype;            /* HEFT_UNTYPED: bytes without an element type */
    uint64_t count;              /* number of elements; of bytes if HEFT_UNTYPED */
    const heft_storage *storage; /* NULL: as heft_tensor_spec.storage */
} heft_component;

/* A tensor to be written.  Everything is copied except names of digests: borrowed until the writer
 * is finished or discarded. */
typedef struct heft_tensor_spec {
    size_t size; /* = sizeof(heft_tensor_spec) */
    heft_str name;
    heft_dtype dtype; /* HEFT_UNTYPED: only with a layout of your own */
    uint32_t rank;
    const uint64_t *dims; /* rank numbers; may be NULL if rank is 0 */
    heft_str layout;      /* "dense", "sparse_csr", "sparse_coo" or your own; empty: dense */
    /* Burn's name of an element type that dtype does not determine: Flex32 (f32), {"Bool":"U8"}
     * (bool), {"Bool":"U32"} (u32), {"QFloat":SCHEME} (u8, layout "burn.qfloat").  Other formats
     * store the text if possible.  Empty: as dtype. */
    heft_str stored_type;
    heft_identity identity; /* a loss unless the format stores identities */
    /* Parts, in the order of writing.  dense: NULL means one part "data".
     * sparse_csr (rank 2): values, indices, indptr; sparse_coo: values, coords.  Values have the
     * tensor's dtype; indices have any integer type and are converted to the type that the format
     * stores.  Other layouts: any parts. */
    const heft_component *components;
    uint32_t component_count;
    const heft_storage *storage; /* NULL: as in heft_write_options */
    /* Flat list as in heft_attribute_at(): a list or map precedes its children and counts them. */
    const heft_value *attributes;
    uint32_t attribute_count;
    uint32_t reserved; /* 0: up to 8 bytes */
} heft_tensor_spec;
#define HEFT_TENSOR_SPEC_INIT                                                                   \
    {                                                                                           \
        sizeof(heft_tensor_spec), { NULL, 0 }, HEFT_UNTYPED, 0, NULL, { NULL, 0 }, { NULL, 0 }, \
            { 0, false, 0, { { 0 } }, { 0 } }, NULL, 0, NULL, NULL, 0, 0                        \
    }

/* Add a tensor.  The components get the part numbers *first_part, *first_part + 1 and so on.
 *   HEFT_E_ARGUMENT     the components do not match the layout, the attributes are malformed, or
 *                       the base id does not match the name
 *   HEFT_E_UNSUPPORTED  a storage that the format or this build does not support */
HEFT_API HEFT_MUST_CHECK heft_status heft_writer_add_tensor(uint32_t *first_part, heft_writer *w,
                                                            const heft_tensor_spec *spec,
                                                            heft_error *err);
/* Add a dense tensor with one part "data"; *part becomes the number of the part. */
HEFT_API HEFT_MUST_CHECK heft_status heft_writer_add_dense(uint32_t *part, heft_writer *w,
                                                           heft_str name, heft_dtype t,
                                                           const uint64_t *dims, uint32_t rank,
                                                           heft_error *err);
/* Add a part of the file, such as gpt-rs' "config".  The bytes are copied. */
HEFT_API HEFT_MUST_CHECK heft_status heft_writer_add_model_part(heft_writer *w, heft_str role,
                                                                const void *data, size_t len,
                                                                heft_error *err);
/* Set the vocabulary, borrowed until the writer is finished or discarded. */
HEFT_API HEFT_MUST_CHECK heft_status heft_writer_set_vocab(heft_writer *w, const heft_vocab *v,
                                                           heft_error *err);
/* Plan the file, report losses and write the header.  HEFT_E_LOSSY: nothing is written. */
HEFT_API HEFT_MUST_CHECK heft_status heft_writer_begin(heft_writer *w, heft_error *err);
/* Write the next len bytes of a part.  Parts come in order, each in any number of calls.  Indices
 * of sparse tensors are checked: bounds; row pointers that ascend from 0 to the number of values;
 * if the format requires it, ascending columns within a row and no duplicate entries (searched
 * among up to 4 Mi coordinates).  A wrong index is HEFT_E_ARGUMENT with tensor, component and
 * element in the message, and the file cannot be completed.  Values forbidden by the format (a
 * boolean above 1) are HEFT_E_ARGUMENT, and the call writes nothing. */
HEFT_API HEFT_MUST_CHECK heft_status heft_writer_write(heft_writer *w, uint32_t part,
                                                       const void *data, size_t len,
                                                       heft_error *err);
/* Complete the file.  Frees w, also on failure. */
HEFT_API HEFT_MUST_CHECK heft_status heft_writer_finish(heft_writer *w, heft_error *err);
/* Give up the file: no file appears.  Frees w; NULL is ignored. */
HEFT_API void heft_writer_discard(heft_writer *w);

/* ---- saving arrays ------------------------------------------------------------------------ */

typedef struct heft_save_options {
    size_t size;                     /* = sizeof(heft_save_options) */
    const heft_format *format;       /* NULL: by the suffix of the path */
    const heft_write_options *write; /* NULL: the defaults */
    uint32_t flags;                  /* HEFT_SINK_... */
    const heft_value *meta;          /* metadata of the file, without lists and maps */
    size_t meta_count;
} heft_save_options;
#define HEFT_SAVE_OPTIONS_INIT                            \
    {                                                     \
        sizeof(heft_save_options), NULL, NULL, 0, NULL, 0 \
    }

/* Save `count` dense tensors as a file.  Set name, data, dims, rank and dtype of each array; bytes
 * may be 0, and allocator is not used: data are borrowed.  opt may be NULL.
 *   HEFT_E_ARGUMENT  bytes do not match dims and dtype, no format has the suffix of the path, or
 *                    the file exists and HEFT_SINK_REPLACE is not set
 *   HEFT_E_LOSSY     the format cannot represent a tensor; or metadata or a tensor without
 *                    dimensions, if opt->write has neither `on_loss`, which would be told of the
 *                    loss, nor `allow_loss`.  The message counts the losses and states the first,
 *                    unless `on_loss` has all */
HEFT_API HEFT_MUST_CHECK heft_status heft_array_save(const char *path, const heft_array *arrays,
                                                     uint32_t count, const heft_save_options *opt,
                                                     heft_error *err);
/* Like heft_array_save(), to a sink.  opt->format is required, opt->flags are ignored. */
HEFT_API HEFT_MUST_CHECK heft_status heft_array_write(heft_sink *take, const heft_array *arrays,
                                                      uint32_t count, const heft_save_options *opt,
                                                      heft_error *err);

/* ---- converting --------------------------------------------------------------------------- */

/* Measures how far numbers that are quantised are from those of the source; quantise.h. */
typedef struct heft_quality heft_quality;

typedef struct heft_convert_options {
    size_t size;                     /* = sizeof(heft_convert_options) */
    const heft_write_options *write; /* NULL: the defaults */
    /* Callbacks are called while planning, with a tensor of the input; NULL changes nothing. */
    /* Return false to drop the tensor. */
    bool (*keep)(void *ctx, const heft_tensor *t);
    /* Return the new name, borrowed until the conversion ends. */
    heft_str (*rename)(void *ctx, const heft_tensor *t);
    /* Return the new element type, or HEFT_UNTYPED for no change.  A block type ("q4_k") encodes
     * each row; docs/casting.md lists the types, and mix.h chooses them. */
    heft_dtype (*cast)(void *ctx, const heft_tensor *t);
    /* Return true to swap the dimensions; rank 2 only. */
    bool (*transpose)(void *ctx, const heft_tensor *t);
    void *ctx; /* passed to all callbacks */
    /* Top-level metadata to add or replace.  A list of scalars precedes them, as in heft_meta_at();
     * lists of lists and maps are not supported. */
    const heft_value *set;
    size_t set_count;
    heft_str config; /* JSON text (gpt-rs); ptr NULL: as in the input */
    bool no_verify;  /* copy data even if a checksum of the input does not match */
    bool dry_run; /* only plan and report losses; reads tensors that are cast; sink may be NULL */
    /* Set to the size of the planned file, an upper bound if parts are compressed.  May be NULL. */
    uint64_t *planned_bytes;
    heft_progress_fn progress; /* may be NULL */
    const heft_vocab *vocab;   /* NULL: as in the input */
    /* Return true to make a sparse tensor dense; entries of the same element are added. */
    bool (*densify)(void *ctx, const heft_tensor *t);
    /* Return HEFT_SPARSE_CSR (rank 2) or HEFT_SPARSE_COO to store only the elements of a dense
     * tensor that have a bit set; HEFT_DENSE to keep the layout. */
    heft_layout (*sparsify)(void *ctx, const heft_tensor *t);
    /* Change *id, the identity in the input without a base id, and return true; false keeps the
     * identity. */
    bool (*identify)(void *ctx, const heft_tensor *t, heft_identity *id);
    heft_str generator; /* see heft_writer_set_generator(); ptr NULL: as in the input */
    /* Change how part `role` of the output is stored and return true.  *how is initially as in the
     * input if the format stays the same, else as in `write`.  Text is copied. */
    bool (*storage)(void *ctx, const heft_tensor *t, heft_str role, heft_storage *how);
    /* The quantised tensors of the input, for errors that name their scheme by its settings; NULL:
     * they are found by names, types and shapes when a tensor is cast. */
    const heft_schemes *schemes;
    bool raw_tensors; /* cast the stored numbers of quantised tensors, without their scales */
    /* Add no metadata that the input lacks.  By default "format" is "pt" in a safetensors file that
     * has other metadata: transformers loads no file without it. */
    bool exact_metadata;
    bool allow_nan; /* encode rows with NaN or infinity to block types: whole blocks are lost */
    uint8_t reserved[5]; /* 0: up to 8 bytes */
    /* Return the importance of the columns of a tensor that is encoded to a block type, for each of
     * its matrices a number for each column, and their count; NULL: all count evenly.  Borrowed
     * until the conversion ends. */
    const float *(*importance)(void *ctx, const heft_tensor *t, uint64_t *count);
    /* Measure what is written: the tensors that are encoded to block types, and those of a
     * heft_quantisation with the same object.  NULL: nothing is measured. */
    heft_quality *quality;
} heft_convert_options;
#define HEFT_CONVERT_OPTIONS_INIT                                                               \
    {                                                                                           \
        sizeof(heft_convert_options), NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, { NULL, 0 }, \
            false, false, NULL, NULL, NULL, NULL, NULL, NULL, { NULL, 0 }, NULL, NULL, false,   \
            false, false, { 0 }, NULL, NULL                                                     \
    }

/* Convert an open file to another (or the same) format, in the order of the input.  Checksums of
 * the input are checked.  opt may be NULL.  On failure no file appears.
 *   HEFT_E_LOSSY     the format cannot represent part of the model: see opt->write->on_loss
 *   HEFT_E_UNSUPPORTED  a cast of a part of a quantised tensor (rule "heft/quantised"), unless
 *                    opt->raw_tensors
 *   HEFT_E_CHECKSUM  a checksum of the input does not match, unless opt->no_verify */
HEFT_API HEFT_MUST_CHECK heft_status heft_file_convert(const heft_file *in, const heft_format *to,
                                                       heft_sink *take,
                                                       const heft_convert_options *opt,
                                                       heft_error *err);

#ifdef __cplusplus
}
#endif
#endif
