/* write.h - write, convert, edit, append and split files of model weights.  Included by heft.h; the
 * general rules of heft.h apply.
 *
 *   heft_array_save()    writes dense tensors in memory as a file;
 *   heft_file_convert()  writes an open file in another format;
 *   heft_writer          writes tensors piece by piece;
 *   heft_file_edit() and heft_file_append()  change a file;
 *   heft_file_split()    writes a model as several shards.
 *
 * Everything is planned before a byte is written, and losses (content that the target format
 * cannot represent) are reported.  Lost metadata is a warning, unless `strict`; for a tensor that
 * cannot be stored the call fails with HEFT_E_LOSSY, unless losses are allowed.  Files appear and
 * are replaced atomically.
 */
#include <heft/heft.h> /* before the guard: heft.h includes doctor.h after this header */
#ifndef HEFT_WRITE_H
#define HEFT_WRITE_H

#ifdef __cplusplus
extern "C" {
#endif

/* ---- writing ------------------------------------------------------------------------------ */

/* A sink receives the bytes of a file; heft_ext.h says how to write your own. */
typedef struct heft_sink heft_sink;
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

/* A set of files in a folder.  All files appear when the set is finished, in the order of adding;
 * on failure the old files are unchanged.  If the program is killed meanwhile,
 * heft_sink_dir_recover() completes the set or rolls the set back. */
typedef struct heft_sink_dir heft_sink_dir;
/* Begin a set.  The folder is created if necessary, and locked.  flags: HEFT_SINK_...  HEFT_E_IO:
 * the folder is locked by a set. */
HEFT_API HEFT_MUST_CHECK heft_status heft_sink_dir_open(heft_sink_dir **out, const char *dir,
                                                        uint32_t flags, heft_error *err);
/* Add a file to the set and open a sink.  name: file name without folders.  All sinks must be
 * finished before the set. */
HEFT_API HEFT_MUST_CHECK heft_status heft_sink_dir_add(heft_sink **out, heft_sink_dir *s,
                                                       const char *name, heft_error *err);
/* Make all files of the set appear.  Frees s, also on failure.  HEFT_E_ARGUMENT: a sink is not
 * finished, or a file exists and HEFT_SINK_REPLACE is not set. */
HEFT_API HEFT_MUST_CHECK heft_status heft_sink_dir_finish(heft_sink_dir *s, heft_error *err);
/* Give up the set: no file appears.  Frees s; NULL is ignored. */
HEFT_API void heft_sink_dir_discard(heft_sink_dir *s);

typedef enum heft_recovery {
    HEFT_RECOVERY_NONE,       /* there was nothing to recover */
    HEFT_RECOVERY_COMPLETED,  /* all files have their names */
    HEFT_RECOVERY_ROLLED_BACK /* the old files were restored */
} heft_recovery;
/* Complete, or else roll back, the set of a killed program.  Until then heft_file_open() refuses
 * the files of the folder; functions that write to the folder recover it first.  dir: the folder,
 * or a file in the folder. */
HEFT_API HEFT_MUST_CHECK heft_status heft_sink_dir_recover(heft_recovery *out, const char *dir,
                                                           heft_error *err);

/* Report a loss.  HEFT_NOTE: represented in a different form; HEFT_WARNING: dropped or altered;
 * HEFT_FAULT: prevents the conversion.  tensor: name, or ptr NULL.  docs/findings.md lists the
 * rules; "heft/cast" says how many values of a tensor a cast alters.  Arguments are valid until the
 * callback returns. */
typedef void (*heft_loss_fn)(void *ctx, heft_severity severity, const char *rule, heft_str tensor,
                             const char *text);

/* Storage of a part of a tensor. */
typedef struct heft_storage {
    heft_encoding encoding; /* a part that would not get smaller may stay raw */
    int level;              /* 0: the codec's default */
    const char *digest;     /* algorithm, "crc32c", "sha256" or "xxh3"; NULL: none */
    uint64_t reserved[2];   /* 0 */
} heft_storage;

/* Numbers of tensors, for a sentence about losses. */
typedef struct heft_write_sums {
    uint64_t tensors;     /* all tensors, written or left out */
    uint64_t reshaped;    /* stored with a new shape */
    uint64_t left_out;    /* not stored, because the format cannot */
    uint64_t reserved[5]; /* 0 */
} heft_write_sums;

typedef struct heft_write_options {
    size_t size;           /* = sizeof(heft_write_options) */
    const heft_host *host; /* NULL: heft_host_default() */
    const char *version;   /* version of the format; NULL: the default */
    const char *digest;    /* "crc32c", "sha256": stored if the format can; NULL: none */
    uint32_t align;        /* alignment of data in bytes, a power of two; 0: the format's default */
    heft_encoding encoding;
    int encoding_level; /* 0: the codec's default */
    bool allow_loss;    /* continue after HEFT_FAULT: drop or alter the parts concerned */
    bool strict;        /* fail with HEFT_E_LOSSY after HEFT_WARNING */
    /* Called while planning, before a byte is written.  For "heft/cast": called after the data are
     * converted, before the file appears; before a byte is written if strict, on a dry run or when
     * writing to a stream.  May be NULL. */
    heft_loss_fn on_loss;
    void *loss_ctx;
    /* The numbers of each plan are added, also if the losses are not allowed.  May be NULL. */
    heft_write_sums *sums;
} heft_write_options;
#define HEFT_WRITE_OPTIONS_INIT                                                                 \
    {                                                                                           \
        sizeof(heft_write_options), NULL, NULL, NULL, 0, HEFT_RAW, 0, false, false, NULL, NULL, \
            NULL                                                                                \
    }

/* Identity of a tensor besides the name.  A member is valid if `has` contains the flag.  Flags
 * unknown to this version are refused with HEFT_E_ARGUMENT. */
enum { HEFT_HAS_PARAM_ID = 1, HEFT_HAS_BASE_ID = 2, HEFT_HAS_REQUIRES_GRAD = 4 };
typedef struct heft_identity {
    uint32_t has;       /* sum of HEFT_HAS_... */
    bool requires_grad; /* gpt-rs: the tensor is trained */
    uint64_t param_id;  /* Burn's ParamId, unique in a file */
    /* gpt-rs' base id.  If not set, a format that stores base ids derives the id from the name; all
     * zero bytes: store no id. */
    heft_id128 base_id;
    uint64_t reserved[2]; /* 0 */
} heft_identity;

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
    uint32_t reserved; /* 0 */
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

typedef struct heft_convert_options {
    size_t size;                     /* = sizeof(heft_convert_options) */
    const heft_write_options *write; /* NULL: the defaults */
    /* Callbacks are called while planning, with a tensor of the input; NULL changes nothing. */
    /* Return false to drop the tensor. */
    bool (*keep)(void *ctx, const heft_tensor *t);
    /* Return the new name, borrowed until the conversion ends. */
    heft_str (*rename)(void *ctx, const heft_tensor *t);
    /* Return the new element type, or HEFT_UNTYPED for no change. */
    heft_dtype (*cast)(void *ctx, const heft_tensor *t);
    /* Return true to swap the dimensions; rank 2 only. */
    bool (*transpose)(void *ctx, const heft_tensor *t);
    void *ctx; /* passed to all callbacks except progress */
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
    void *progress_ctx;
    const heft_vocab *vocab; /* NULL: as in the input */
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
    uint8_t reserved[6];
} heft_convert_options;
#define HEFT_CONVERT_OPTIONS_INIT                                                               \
    {                                                                                           \
        sizeof(heft_convert_options), NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, { NULL, 0 }, \
            false, false, NULL, NULL, NULL, NULL, NULL, NULL, NULL, { NULL, 0 }, NULL, NULL,    \
            false, false,                                                                       \
        {                                                                                       \
            0                                                                                   \
        }                                                                                       \
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

/* ---- editing ------------------------------------------------------------------------------ */

typedef struct heft_rename {
    heft_str from, to;
} heft_rename;

typedef struct heft_special_id {
    heft_special special;
    uint32_t id; /* less than the number of tokens; HEFT_NONE: remove */
} heft_special_id;

typedef struct heft_edit_options {
    size_t size;           /* = sizeof(heft_edit_options) */
    const heft_host *host; /* NULL: heft_host_default() */
    const heft_value *set; /* see heft_convert_options */
    size_t set_count;
    const heft_str *unset; /* keys of top-level metadata to remove */
    size_t unset_count;
    const heft_rename *rename; /* tensors, renamed at the same time: names can be swapped */
    size_t rename_count;
    bool dry_run;         /* only plan */
    heft_loss_fn on_loss; /* may be NULL */
    void *loss_ctx;
    heft_progress_fn progress; /* progress of copying; may be NULL */
    void *progress_ctx;
    /* See heft_convert_options; with tensor and identity before the edit. */
    bool (*identify)(void *ctx, const heft_tensor *t, heft_identity *id);
    void *identify_ctx;
    const heft_limits *limits; /* see heft_open_options */
    /* New vocabulary with special tokens, for formats that store one (EMBD); NULL: keep. */
    const heft_vocab *vocab;
    const heft_special_id *special; /* special tokens to change */
    size_t special_count;
    heft_str config; /* JSON text (gpt-rs checkpoints); ptr NULL: keep */
    bool strict;     /* a warning ends the edit, too: HEFT_E_LOSSY */
    uint8_t reserved[7];
} heft_edit_options;
#define HEFT_EDIT_OPTIONS_INIT                                                                     \
    {                                                                                              \
        sizeof(heft_edit_options), NULL, NULL, 0, NULL, 0, NULL, 0, false, NULL, NULL, NULL, NULL, \
            NULL, NULL, NULL, NULL, NULL, 0, { NULL, 0 }, false,                                   \
        {                                                                                          \
            0                                                                                      \
        }                                                                                          \
    }

typedef struct heft_edit_result {
    uint64_t size;       /* size of the edited file */
    uint64_t written;    /* new bytes that were written */
    uint64_t copied;     /* bytes of data that were copied to a new file */
    uint32_t hard_links; /* further hard links to the file: see docs/edit.md */
    bool in_place;       /* false: a new file replaced the old file */
    bool changed;        /* false: already up to date, file left unchanged */
    bool rolled_back;    /* an interrupted edit was rolled back first */
    uint8_t reserved[17];
} heft_edit_result;

/* Edit a file atomically, also if the program is killed: see heft_edit_recover().  Format, version
 * and everything that is not edited stay the same, except that a bare GPT configuration moves under
 * "config", as in heft_file_convert().  Tensor data are not read, unless a required checksum over
 * the data is missing in the file.  out and opt may be NULL.
 *   HEFT_E_LOSSY        the format cannot represent the change
 *   HEFT_E_NOTFOUND     a key to be removed or a tensor to be renamed does not exist
 *   HEFT_E_UNSUPPORTED  this build cannot write everything that the file contains, or the file is
 *                       one of several files of a model
 *   HEFT_E_CHECKSUM, HEFT_E_FORMAT  the file is damaged, and the edit would hide the damage */
HEFT_API HEFT_MUST_CHECK heft_status heft_file_edit(heft_edit_result *out, const char *path,
                                                    const heft_edit_options *opt, heft_error *err);
/* Roll back an interrupted edit of the file at path, and recover an interrupted set of files in the
 * folder of path (or in path, if path is a folder).  Until then heft_file_open() refuses the file;
 * heft_file_edit() and heft_file_append() recover first.  *rolled_back: there was something to
 * recover. */
HEFT_API HEFT_MUST_CHECK heft_status heft_edit_recover(bool *rolled_back, const char *path,
                                                       heft_error *err);

/* ---- appending ---------------------------------------------------------------------------- */

typedef struct heft_append_options {
    size_t size; /* = sizeof(heft_append_options) */
    /* Conversion of the appended tensors; NULL: the defaults.  The file's version and metadata
     * stay: write->version, set, config and vocab are ignored.  write->align 0: as in the file.
     * progress runs twice: for the conversion, and for writing the result to the file. */
    const heft_convert_options *convert;
    heft_duplicates duplicates; /* FIRST: skip tensors with existing names; LAST: not allowed */
    bool no_sync;               /* do not wait for the disk: a power cut may leave a torn file */
    const heft_limits *limits;  /* limits for the file at path; NULL: the defaults */
} heft_append_options;
#define HEFT_APPEND_OPTIONS_INIT                                               \
    {                                                                          \
        sizeof(heft_append_options), NULL, HEFT_DUPLICATES_REFUSE, false, NULL \
    }

typedef struct heft_append_result {
    heft_edit_result edit; /* changed false: nothing to append; size 0: not known on a dry run */
    uint32_t tensors;      /* number of appended tensors */
    uint8_t reserved[12];
} heft_append_result;

/* Append the tensors of an open file, of any format, to the file at path; atomic as
 * heft_file_edit().  zTensor files grow in place.  Files of other formats are replaced by a new
 * file that shares the old data blocks if the file system supports reflinks; docs/edit.md says what
 * concurrent readers see.  Existing contents stay the same.  Metadata of `from` are not appended:
 * note "heft/append".  `from` may be the file at path, opened before.  out and opt may be NULL.
 * err->about is always set: HEFT_ABOUT_SOURCE is `from`, HEFT_ABOUT_TARGET the file at path.
 * Errors as heft_file_edit(), and before a byte is written:
 *   HEFT_E_ARGUMENT  the file has a tensor of the same name (HEFT_DUPLICATES_REFUSE)
 *   HEFT_E_LOSSY     the format cannot represent a tensor
 *   HEFT_E_CHECKSUM  `from` is damaged */
HEFT_API HEFT_MUST_CHECK heft_status heft_file_append(heft_append_result *out, const char *path,
                                                      const heft_file *from,
                                                      const heft_append_options *opt,
                                                      heft_error *err);

/* ---- splitting ---------------------------------------------------------------------------- */

typedef struct heft_split_options {
    size_t size; /* = sizeof(heft_split_options) */
    /* Conversion of each shard; of the callbacks only progress and storage are used.  NULL: the
     * defaults. */
    const heft_convert_options *convert;
    /* Largest size of a shard with several tensors; 0: no limit.  A single tensor that needs a
     * larger shard is a loss of the rule "heft/shard-size": a warning, or an error if
     * convert->write->strict. */
    uint64_t max_bytes;
    uint32_t count;   /* smallest number of shards; 0: as many as max_bytes requires */
    const char *stem; /* beginning of the file names */
    /* Open the sink for the file `name`.  Shards come before an index. */
    heft_status (*open)(heft_sink **out, void *ctx, const char *name, heft_error *err);
    void *ctx;
} heft_split_options;
#define HEFT_SPLIT_OPTIONS_INIT                                     \
    {                                                               \
        sizeof(heft_split_options), NULL, 0, 0, "model", NULL, NULL \
    }
/* Return true if models of that format can consist of several files. */
HEFT_API bool heft_format_can_split(const heft_format *f);
/* Write a model as shards of whole tensors, in the order of the input; each shard holds as many
 * tensors as max_bytes allows.  Errors as heft_file_convert(), and
 *   HEFT_E_UNSUPPORTED  heft_format_can_split() is false
 *   HEFT_E_ARGUMENT     max_bytes and count are 0, or count exceeds the number of tensors */
HEFT_API HEFT_MUST_CHECK heft_status heft_file_split(const heft_file *in, const heft_format *to,
                                                     const heft_split_options *opt,
                                                     heft_error *err);

#ifdef __cplusplus
}
#endif
#endif
