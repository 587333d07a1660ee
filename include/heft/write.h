/* write.h - files of model weights that are made: written, converted, edited, split.  heft.h includes it
 * and has the rules. */
#ifndef HEFT_WRITE_H
#define HEFT_WRITE_H
#include <heft/heft.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- writing ------------------------------------------------------------------------------ */

typedef struct heft_sink heft_sink;
/* SYNC: the file is on disk before it gets its name, and the name is on disk before the call that finishes the
 * file returns, so that a power cut leaves the whole file or none of that name.  Replacing a file does that
 * without being asked; NO_SYNC, for scratch files, never waits for the disk: a power cut may leave an empty or
 * torn file.  SYNC and NO_SYNC together are HEFT_E_ARGUMENT. */
enum {
    HEFT_SINK_REPLACE = 1, /* an existing file is replaced, once the new one is complete */
    HEFT_SINK_SYNC = 2,
    HEFT_SINK_NO_SYNC = 4
};
/* The file appears whole under its name when the writing is finished, or not at all.  An error whose message begins
 * with "saved, but" came after that: the file has its name.  An existing path that is no regular file (a pipe,
 * /dev/stdout) is written front to back instead.  Temporary files that killed programs left in the directory are
 * removed, except those that are locked (flock) because they are being written.  A file that replaces another one gets
 * its permission bits, and its owner and group where the process may set them; no extended attributes. */
HEFT_API HEFT_MUST_CHECK heft_status heft_sink_open_file(heft_sink **out, const char *path,
                                                         uint32_t flags, heft_error *err);
/* Front to back into a descriptor, which stays the caller's. */
HEFT_API HEFT_MUST_CHECK heft_status heft_sink_open_fd(heft_sink **out, int fd, heft_error *err);
/* Into memory.  When the writing is finished, `to` has the bytes of the file; until then, and when it fails, `to` is
 * empty.  `to` must not move meanwhile.  host: whose allocator is used, as long as the bytes live; NULL: the default. */
typedef struct heft_blob {
    void *data; /* aligned to 64 bytes; NULL: none */
    size_t size;
    const heft_allocator *allocator;
} heft_blob;
HEFT_API HEFT_MUST_CHECK heft_status heft_sink_open_memory(heft_sink **out, heft_blob *to,
                                                           const heft_host *host, heft_error *err);
HEFT_API void heft_blob_free(heft_blob *b);    /* an empty one is harmless */
HEFT_API void heft_sink_discard(heft_sink *s); /* leaves no file behind; NULL is harmless */

/* Files of one folder that appear together: all under their names when the set is finished, in the order in which
 * they were added, or none of them, and what was there before is as it was, also when the program is killed: see
 * heft_sink_dir_recover().  The folder is made when it is not there, and locked: HEFT_E_IO when another set is being
 * written into it.  flags as above. */
typedef struct heft_sink_dir heft_sink_dir;
HEFT_API HEFT_MUST_CHECK heft_status heft_sink_dir_open(heft_sink_dir **out, const char *dir,
                                                        uint32_t flags, heft_error *err);
/* A file of the set, by a name that is one component of a path.  Finishing or discarding the sink leaves its file to
 * the set, which does not appear while one of them is unfinished. */
HEFT_API HEFT_MUST_CHECK heft_status heft_sink_dir_add(heft_sink **out, heft_sink_dir *s,
                                                       const char *name, heft_error *err);
HEFT_API HEFT_MUST_CHECK heft_status heft_sink_dir_finish(heft_sink_dir *take, heft_error *err);
HEFT_API void heft_sink_dir_discard(heft_sink_dir *s); /* NULL is harmless */

typedef enum heft_recovery {
    HEFT_RECOVERY_NONE,      /* there was nothing to do */
    HEFT_RECOVERY_COMPLETED, /* all files have their names */
    HEFT_RECOVERY_ROLLED_BACK     /* the files from before are back */
} heft_recovery;
/* Completes, or else undoes, a set that a killed program left half written; heft_file_open() refuses the files of such a
 * folder until then.  Whatever writes into the folder does this first.  dir may also be a file in the folder. */
HEFT_API HEFT_MUST_CHECK heft_status heft_sink_dir_recover(heft_recovery *out, const char *dir,
                                                           heft_error *err);

/* Something the target cannot carry: HEFT_NOTE, carried in another form; HEFT_WARNING, left out or
 * bent; HEFT_FAULT, stands in the way.  tensor is its name, ptr NULL: none in particular.  Rules are listed in
 * docs/findings.md; "heft/cast" tells how many values of a tensor a cast loses.  Called on the thread that plans: the
 * one that called the function. */
typedef void (*heft_loss_fn)(void *ctx, heft_severity severity, const char *rule, heft_str tensor,
                             const char *text);

/* How a part of a tensor is stored. */
typedef struct heft_storage {
    heft_encoding encoding; /* a part that compressing does not make smaller may stay raw */
    int level;              /* of the encoder; 0: the codec's default */
    const char *digest;     /* "crc32c", "sha256", "xxh3": written beside the part; NULL: none */
    uint64_t reserved[2];   /* 0 */
} heft_storage;

typedef struct heft_write_options {
    size_t size;           /* = sizeof(heft_write_options) */
    const heft_host *host; /* NULL: heft_host_default() */
    const char *version;   /* generation of the format, or NULL for its default */
    const char *digest;    /* "crc32c", "sha256": stored where the format has a place; or NULL */
    uint32_t align;        /* of payloads, in bytes, a power of two; 0: the format's own */
    heft_encoding encoding;
    int encoding_level; /* 0: the codec's default */
    bool allow_loss;    /* leave out, or bend, what the format cannot carry */
    bool strict;        /* treat warnings as losses that stop */
    /* Called while planning, before any byte is written, and for "heft/cast" once the data are converted, before the
     * file has its name (with strict, into a stream or on a dry run: before any byte is written).  May be NULL. */
    heft_loss_fn on_loss;
    void *loss_ctx;
} heft_write_options;
#define HEFT_WRITE_OPTIONS_INIT                                                                \
    {                                                                                          \
        sizeof(heft_write_options), NULL, NULL, NULL, 0, HEFT_RAW, 0, false, false, NULL, NULL \
    }

/* What programs know a tensor by besides its name.  A field counts when `has` has its flag. */
enum { HEFT_HAS_PARAM_ID = 1, HEFT_HAS_BASE_ID = 2, HEFT_HAS_REQUIRES_GRAD = 4 };
typedef struct heft_identity {
    uint32_t has;       /* sum of HEFT_HAS_... */
    bool requires_grad; /* gpt-rs: whether the tensor is trained */
    uint64_t param_id;  /* Burn's ParamId; in a file every id belongs to one tensor */
    /* gpt-rs' base id.  Without it, a format that stores base ids derives the id from the tensor's name; all zero
     * bytes: no id is stored. */
    heft_id128 base_id;
    uint64_t reserved[2]; /* 0 */
} heft_identity;

typedef struct heft_writer heft_writer;
/* Declare metadata, tensors and parts, then begin, then hand over each part's bytes in the order
 * of declaration, then finish.  After a call that failed for another reason than its arguments
 * nothing can be written any more: begin, data and finish say why.
 *
 * A format with HEFT_CAN_APPEND takes metadata, tensors and a generator after heft_writer_begin() as well: examples/
 * train_loop.c.  What it cannot carry is HEFT_E_LOSSY from the call that adds it, a name or key that is taken
 * HEFT_E_ARGUMENT, and the file goes on without it; only losses of the model as a whole show when it is finished.
 * Memory grows with the number of tensors, not with their bytes. */
HEFT_API HEFT_MUST_CHECK heft_status heft_writer_open(heft_writer **out, const heft_format *fmt,
                                                      heft_sink *take,
                                                      const heft_write_options *opt,
                                                      heft_error *err);
/* A top-level value, or a child of the container opened last.  Names and text are copied. */
HEFT_API HEFT_MUST_CHECK heft_status heft_writer_add_meta(heft_writer *w, heft_value v,
                                                          heft_error *err);
HEFT_API HEFT_MUST_CHECK heft_status heft_writer_end_meta(heft_writer *w, heft_error *err);
/* The program that writes the file, "train.c 1.4", where the format names one (zTensor 1.0); else a loss of rule
 * "heft/generator".  Without the call it is this library.  The text is copied. */
HEFT_API HEFT_MUST_CHECK heft_status heft_writer_set_generator(heft_writer *w, heft_str name,
                                                               heft_error *err);
/* One of the components that a tensor consists of: "data", "values", "scale". */
typedef struct heft_component {
    heft_str role;
    heft_dtype dtype;            /* HEFT_UNTYPED: bytes that have no element type */
    uint64_t count;              /* of its elements; without an element type, of its bytes */
    const heft_storage *storage; /* NULL: that of the tensor */
} heft_component;

/* A tensor to be written.  Everything is copied, but for the names of digests, which are borrowed until the writer is
 * gone. */
typedef struct heft_tensor_spec {
    size_t size; /* = sizeof(heft_tensor_spec) */
    heft_str name;
    heft_dtype dtype; /* HEFT_UNTYPED: none; not for dense and sparse tensors */
    uint32_t rank;
    const uint64_t *dims; /* one number for each dimension; may be NULL when rank is 0 */
    heft_str layout; /* "dense", "sparse_csr", "sparse_coo" or a name of your own; empty: dense */
    /* Burn's name of an element type that a dtype alone does not tell: Flex32 (f32), {"Bool":"U8"} (bool),
     * {"Bool":"U32"} (u32), {"QFloat":SCHEME} (u8, in the layout "burn.qfloat"); other formats keep it where they have
     * a place for it.  Empty: that of dtype. */
    heft_str stored_type;
    heft_identity identity; /* what the format has no place for is a loss */
    /* Their bytes come in this order.  A dense tensor may have none: then its component "data" is added.  sparse_csr
     * (rank 2) has values, indices and indptr, sparse_coo values and coords: values of the tensor's element type, the
     * others of any integer type, which becomes the one that the format stores.  The components of other
     * layouts are what you say. */
    const heft_component *components;
    uint32_t component_count;
    const heft_storage *storage; /* NULL: as the writer's options say */
    /* A flat list, as heft_attribute_at() gives it: a list or map stands before its children and counts them. */
    const heft_value *attributes;
    uint32_t attribute_count;
    uint32_t reserved; /* 0 */
} heft_tensor_spec;
#define HEFT_TENSOR_SPEC_INIT                                                                   \
    {                                                                                           \
        sizeof(heft_tensor_spec), { NULL, 0 }, HEFT_UNTYPED, 0, NULL, { NULL, 0 }, { NULL, 0 }, \
            { 0, false, 0, { { 0 } }, { 0 } }, NULL, 0, NULL, NULL, 0, 0                        \
    }

/* Any tensor.  Its components get the numbers *first_part, *first_part + 1, and so on.  HEFT_E_ARGUMENT: components
 * that are not those of its layout, attributes that are none, a base id that is not that of the name;
 * HEFT_E_UNSUPPORTED: a storage that the format does not have, or this build cannot make. */
HEFT_API HEFT_MUST_CHECK heft_status heft_writer_add_tensor(uint32_t *first_part, heft_writer *w,
                                                            const heft_tensor_spec *spec,
                                                            heft_error *err);
/* The short form for a dense tensor; its one part "data" gets the number *part. */
HEFT_API HEFT_MUST_CHECK heft_status heft_writer_add_dense(uint32_t *part, heft_writer *w,
                                                           heft_str name, heft_dtype t,
                                                           const uint64_t *dims, uint32_t rank,
                                                           heft_error *err);
/* A part of the file itself, such as gpt-rs' "config"; its bytes are copied at once. */
HEFT_API HEFT_MUST_CHECK heft_status heft_writer_add_model_part(heft_writer *w, heft_str role,
                                                                const void *data, size_t len,
                                                                heft_error *err);
/* The model's vocabulary, borrowed until the writer is gone. */
HEFT_API HEFT_MUST_CHECK heft_status heft_writer_set_vocab(heft_writer *w, const heft_vocab *v,
                                                           heft_error *err);
/* Settles the layout, reports losses, and writes what precedes the data. */
HEFT_API HEFT_MUST_CHECK heft_status heft_writer_begin(heft_writer *w, heft_error *err);
/* The next len bytes of a part; parts in order, each in as many pieces as you like.  Indices of sparse tensors are
 * checked as they come: in bounds, row pointers from 0 up to the number of values, and where the format demands it,
 * columns that ascend within a row and no two entries in one place (sought among up to 4 Mi coordinates).  One that is
 * wrong is HEFT_E_ARGUMENT, with tensor, component and element in its message, and nothing can be written any more. */
HEFT_API HEFT_MUST_CHECK heft_status heft_writer_write(heft_writer *w, uint32_t part,
                                                       const void *data, size_t len,
                                                       heft_error *err);
/* Completes the file.  w is gone afterwards, whether this succeeds or not. */
HEFT_API HEFT_MUST_CHECK heft_status heft_writer_finish(heft_writer *w, heft_error *err);
HEFT_API void heft_writer_discard(heft_writer *w); /* leaves no file behind; NULL is harmless */

/* ---- saving arrays ------------------------------------------------------------------------ */

typedef struct heft_save_options {
    size_t size;                     /* = sizeof(heft_save_options) */
    const heft_format *format;       /* NULL: that of the path's suffix */
    const heft_write_options *write; /* NULL: the defaults */
    uint32_t
        flags; /* HEFT_SINK_...; without HEFT_SINK_REPLACE an existing file is HEFT_E_ARGUMENT */
    const heft_value *meta; /* metadata of the file; no lists or maps, which heft_writer takes */
    size_t meta_count;
} heft_save_options;
#define HEFT_SAVE_OPTIONS_INIT                            \
    {                                                     \
        sizeof(heft_save_options), NULL, NULL, 0, NULL, 0 \
    }

/* Writes dense tensors as one file, whole or not at all.  Of each array name, data, dims, rank and dtype count, and bytes
 * unless it is 0: HEFT_E_ARGUMENT when they are not what dims and dtype need.  opt may be NULL.  HEFT_E_ARGUMENT too when
 * the suffix belongs to no format; HEFT_E_LOSSY when the format cannot carry a tensor: opt->write->on_loss says why. */
HEFT_API HEFT_MUST_CHECK heft_status heft_array_save(const char *path, const heft_array *arrays,
                                                     uint32_t count, const heft_save_options *opt,
                                                     heft_error *err);
/* The same into any sink; flags do not count, and the format must be given. */
HEFT_API HEFT_MUST_CHECK heft_status heft_array_write(heft_sink *take, const heft_array *arrays,
                                                      uint32_t count, const heft_save_options *opt,
                                                      heft_error *err);

/* ---- converting --------------------------------------------------------------------------- */

typedef struct heft_convert_options {
    size_t size;                     /* = sizeof(heft_convert_options) */
    const heft_write_options *write; /* NULL: their defaults */
    /* These callbacks, and the ones below, are called on the thread that converts, while it plans. */
    bool (*keep)(void *ctx, const heft_tensor *t); /* NULL: all */
    heft_str (*rename)(
        void *ctx,
        const heft_tensor *t); /* NULL: as they are; borrowed until the conversion ends */
    heft_dtype (*cast)(void *ctx, const heft_tensor *t); /* NULL, or HEFT_UNTYPED: as it is */
    bool (*transpose)(void *ctx, const heft_tensor *t);  /* NULL: none; rank 2 only */
    void *ctx;                                           /* handed to these callbacks */
    const heft_value *set;                               /* top-level metadata to add or replace */
    size_t set_count;
    heft_str config; /* ptr NULL: as the input has it; a JSON text (gpt-rs) */
    bool no_verify;  /* copy even when a checksum of the input disagrees */
    bool dry_run;    /* plan and report losses only, reading what is cast; the sink may be NULL */
    uint64_t *
        planned_bytes; /* NULL, or set to the size of the file to be written; at most, when parts are compressed */
    heft_progress_fn progress;
    void *progress_ctx;
    const heft_vocab *vocab; /* NULL: as the input has it */
    /* Sparse tensors that become dense ones; entries of the same element add up.  NULL: none. */
    bool (*densify)(void *ctx, const heft_tensor *t);
    /* Dense tensors that become HEFT_SPARSE_CSR (rank 2) or HEFT_SPARSE_COO, of the elements that are not
     * all zero bits; HEFT_DENSE: stays as it is.  NULL: none. */
    heft_layout (*sparsify)(void *ctx, const heft_tensor *t);
    /* Changes the identity of a tensor of the input: *id is what the input says, but has no base id.  false: the
     * tensor keeps that identity, whatever *id is now.  NULL: all tensors do. */
    bool (*identify)(void *ctx, const heft_tensor *t, heft_identity *id);
    heft_str generator; /* as heft_writer_set_generator(); ptr NULL: as the input has it */
    /* How each part of a tensor of the input is stored; role: of the part that is written.  *how comes with what is
     * done otherwise: in the input's own format as the input has it, else as `write` says.  true: *how was changed;
     * its text is copied.  NULL: none was. */
    bool (*storage)(void *ctx, const heft_tensor *t, heft_str role, heft_storage *how);
} heft_convert_options;
#define HEFT_CONVERT_OPTIONS_INIT                                                               \
    {                                                                                           \
        sizeof(heft_convert_options), NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, { NULL, 0 }, \
            false, false, NULL, NULL, NULL, NULL, NULL, NULL, NULL, { NULL, 0 }, NULL           \
    }

/* Everything the input says is written in the target's terms, in the input's order; checksums of
 * the input are checked on the way.  HEFT_E_LOSSY and HEFT_E_CHECKSUM leave nothing written. */
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
    uint32_t id; /* below the number of tokens, or HEFT_NONE: there is no such token */
} heft_special_id;

typedef struct heft_edit_options {
    size_t size;           /* = sizeof(heft_edit_options) */
    const heft_host *host; /* NULL: heft_host_default() */
    const heft_value *set; /* top-level metadata to add or replace; no lists or maps */
    size_t set_count;
    const heft_str
        *unset; /* top-level metadata to take away: a key that is not there is HEFT_E_NOTFOUND */
    size_t unset_count;
    const heft_rename *rename; /* tensors, all at once: names may be exchanged */
    size_t rename_count;
    bool dry_run;         /* plan only */
    heft_loss_fn on_loss; /* may be NULL */
    void *loss_ctx;
    heft_progress_fn progress; /* of data that is copied; may be NULL */
    void *progress_ctx;
    /* As in heft_convert_options: `t` and *id are those of the file before the edit.  On the thread that edits, while it plans.
     * NULL: identities stay. */
    bool (*identify)(void *ctx, const heft_tensor *t, heft_identity *id);
    void *identify_ctx;
    const heft_limits *limits; /* as in heft_open_options */
    /* Where the format has a place (EMBD): the vocabulary that the file gets, NULL: its own.  Ids of special tokens
     * are those of that vocabulary, but for the ones that `special` changes. */
    const heft_vocab *vocab;
    const heft_special_id *special;
    size_t special_count;
    heft_str config; /* ptr NULL: as it is; a JSON text (gpt-rs checkpoints) */
} heft_edit_options;
#define HEFT_EDIT_OPTIONS_INIT                                                                     \
    {                                                                                              \
        sizeof(heft_edit_options), NULL, NULL, 0, NULL, 0, NULL, 0, false, NULL, NULL, NULL, NULL, \
            NULL, NULL, NULL, NULL, NULL, 0,                                                       \
        {                                                                                          \
            NULL, 0                                                                                \
        }                                                                                          \
    }

typedef struct heft_edit_result {
    uint64_t size;        /* of the edited file */
    uint64_t written;     /* bytes that were made anew */
    uint64_t copied;      /* bytes of data that were moved into a new file */
    uint32_t hard_links; /* hard links to the file, besides the path: see docs/edit.md */
    bool in_place;        /* else a new file took the place of the old one */
    bool changed;         /* false: it was like that already, and was left alone */
    bool rolled_back;        /* an earlier edit had been interrupted, and was undone first */
    uint8_t reserved[17];
} heft_edit_result;

/* Changes a file where it stands, whole or not at all, also when the program is killed; nothing but what
 * was asked for is another.  A bare GPT configuration is put under "config", as heft_file_convert() does.  Its format and
 * version stay, and so do the tensors' bytes: they are not read, unless a checksum must be made over them that the file does not have.  What the format cannot carry is HEFT_E_LOSSY;
 * HEFT_E_UNSUPPORTED: this build cannot write all that the file says, or the file is one of several of a model;
 * HEFT_E_CHECKSUM, HEFT_E_FORMAT: damage that the edit would hide.  out and opt may be NULL. */
HEFT_API HEFT_MUST_CHECK heft_status heft_file_edit(heft_edit_result *out, const char *path,
                                                    const heft_edit_options *opt, heft_error *err);
/* Undoes what an interrupted edit left behind, which heft_file_open() refuses; *rolled_back: there was something. */
HEFT_API HEFT_MUST_CHECK heft_status heft_edit_recover(bool *rolled_back, const char *path,
                                                    heft_error *err);

/* ---- appending ---------------------------------------------------------------------------- */

typedef struct heft_append_options {
    size_t size; /* = sizeof(heft_append_options) */
    /* Of the tensors that are appended: which, under which names, cast to what, how stored, whether their checksums
     * are checked.  What is there already stays as it is, and so do the file's version and metadata: version, set,
     * config and vocab are not used.  write.align 0: as in the file.  progress begins anew when the tensors are
     * converted and go on to their places.  NULL: the defaults. */
    const heft_convert_options *convert;
    heft_duplicates
        duplicates; /* a name that the file has: FIRST leaves the new tensor out; not LAST */
    bool no_sync;   /* do not wait for the disk: a power cut may leave a torn file */
    const heft_limits *limits; /* of opening the file, as in heft_open_options */
} heft_append_options;
#define HEFT_APPEND_OPTIONS_INIT                                               \
    {                                                                          \
        sizeof(heft_append_options), NULL, HEFT_DUPLICATES_REFUSE, false, NULL \
    }

typedef struct heft_append_result {
    heft_edit_result
        edit; /* changed false: nothing was to be appended; size 0: a dry run cannot know it */
    uint32_t tensors; /* that were appended */
    bool source_failed;  /* when it failed: because of what was to be appended, not of the file */
    uint8_t reserved[11];
} heft_append_result;

/* Adds the tensors of an open file, of any format, to the file at path, whole or not at all, also when the program is
 * killed.  zTensor grows in place, behind its data; files of other formats are replaced by new ones that share
 * the disk's blocks with the old, where the file system can do that: docs/edit.md says what readers see
 * meanwhile.  Everything that the file holds and says is kept as it is; metadata of `from` are not appended,
 * which is the note "heft/append".  Before a byte is written HEFT_E_ARGUMENT is a name that the file has,
 * HEFT_E_LOSSY a tensor that the format cannot carry, HEFT_E_CHECKSUM damage to `from`; the rest as
 * heft_file_edit().  `from` may be a file at the same path, opened before.  out and opt may be NULL. */
HEFT_API HEFT_MUST_CHECK heft_status heft_file_append(heft_append_result *out, const char *path,
                                                      const heft_file *from,
                                                      const heft_append_options *opt,
                                                      heft_error *err);

/* ---- splitting ---------------------------------------------------------------------------- */

typedef struct heft_split_options {
    size_t size; /* = sizeof(heft_split_options) */
    /* Of every file; of its callbacks, progress and storage are used.  NULL: the defaults. */
    const heft_convert_options *convert;
    /* Of a file that has more than one tensor; 0: no limit.  A tensor whose file is larger is a loss of rule
     * "heft/shard-size": a warning, an error with write options that are strict. */
    uint64_t max_bytes;
    uint32_t count;   /* of files, at least; 0: as many as max_bytes makes */
    const char *stem; /* what their names begin with */
    /* Where the file of that name goes; files that are referred to come before those that refer.  Called on the
     * thread that splits. */
    heft_status (*open)(heft_sink **out, void *ctx, const char *name, heft_error *err);
    void *ctx;
} heft_split_options;
#define HEFT_SPLIT_OPTIONS_INIT                                     \
    {                                                               \
        sizeof(heft_split_options), NULL, 0, 0, "model", NULL, NULL \
    }
/* Whether models of that format come in several files. */
HEFT_API bool heft_format_can_split(const heft_format *f);
/* Writes the model as several files, none of which has half a tensor.  The tensors keep their order.  With max_bytes,
 * each file has as many tensors as fit. */
HEFT_API HEFT_MUST_CHECK heft_status heft_file_split(const heft_file *in, const heft_format *to,
                                                     const heft_split_options *opt,
                                                     heft_error *err);

#ifdef __cplusplus
}
#endif
#endif
