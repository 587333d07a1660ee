/* editing.h - change a file around its data, and append tensors.  The general rules of heft.h
 * apply.
 *
 *   heft_file_edit()    changes names, metadata, identities and vocabularies;
 *   heft_file_append()  adds the tensors of another file;
 *   heft_edit_plan()    plans either, for programs that store the bytes themselves.
 *
 * Stability: provisional. */
#ifndef HEFT_EDITING_H
#define HEFT_EDITING_H
#include <heft/source.h>
#include <heft/vocabulary.h>
#include <heft/write.h>

#ifdef __cplusplus
extern "C" {
#endif

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
    bool dry_run;              /* only plan */
    heft_loss_fn on_loss;      /* may be NULL */
    heft_progress_fn progress; /* progress of copying; may be NULL */
    /* See heft_convert_options; with tensor and identity before the edit. */
    bool (*identify)(void *ctx, const heft_tensor *t, heft_identity *id);
    void *ctx;                 /* passed to all callbacks */
    const heft_limits *limits; /* see heft_open_options */
    /* New vocabulary with special tokens, for formats that store one (EMBD); NULL: keep. */
    const heft_vocab *vocab;
    const heft_special_id *special; /* special tokens to change */
    size_t special_count;
    heft_str config;     /* JSON text (gpt-rs checkpoints); ptr NULL: keep */
    bool strict;         /* a warning ends the edit, too: HEFT_E_LOSSY */
    uint8_t reserved[7]; /* 0: up to 8 bytes */
} heft_edit_options;
#define HEFT_EDIT_OPTIONS_INIT                                                                     \
    {                                                                                              \
        sizeof(heft_edit_options), NULL, NULL, 0, NULL, 0, NULL, 0, false, NULL, NULL, NULL, NULL, \
            NULL, NULL, NULL, 0, { NULL, 0 }, false,                                               \
        {                                                                                          \
            0                                                                                      \
        }                                                                                          \
    }

typedef struct heft_edit_result {
    uint64_t size;        /* size of the edited file */
    uint64_t written;     /* new bytes that were written */
    uint64_t copied;      /* bytes of data that were copied to a new file */
    uint32_t hard_links;  /* further hard links to the file: see docs/edit.md */
    bool in_place;        /* false: a new file replaced the old file */
    bool changed;         /* false: already up to date, file left unchanged */
    bool rolled_back;     /* an interrupted edit was rolled back first */
    uint8_t reserved[17]; /* 0: room for two sizes */
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
    /* The tensors take the place of those with the same names, which must exist and be dense: each
     * with its name, ids and attributes.  Duplicates are ignored.  A tensor of as many bytes is
     * written over the old one, in any format; else the file is replaced by a new file.  With
     * HEFT_CAN_REPLACE type and shape stay, and casts are refused; the bytes may be in a file of
     * external data, which is the one that changes. */
    bool replaces;
    bool may_differ;           /* new tensors may have other types and shapes */
    const heft_limits *limits; /* limits for the file at path; NULL: the defaults */
} heft_append_options;
#define HEFT_APPEND_OPTIONS_INIT                                                             \
    {                                                                                        \
        sizeof(heft_append_options), NULL, HEFT_DUPLICATES_REFUSE, false, false, false, NULL \
    }

typedef struct heft_append_result {
    heft_edit_result edit; /* changed false: nothing to append; size 0: not known on a dry run */
    uint32_t tensors;      /* number of appended tensors */
    uint8_t reserved[12];  /* 0: room for two numbers */
} heft_append_result;

/* Append the tensors of an open file, of any format, to the file at path; atomic as
 * heft_file_edit().  zTensor files grow in place.  Files of other formats are replaced by a new
 * file that shares the old data blocks if the file system supports reflinks; docs/edit.md says what
 * concurrent readers see.  Existing contents stay the same.  Metadata of `from` are not appended:
 * note "heft/append".  `from` may be the file at path, opened before.  out and opt may be NULL.
 * err->about is always set: HEFT_ABOUT_SOURCE is `from`, HEFT_ABOUT_TARGET the file at path.
 * Errors as heft_file_edit(), and before a byte is written:
 *   HEFT_E_ARGUMENT  the file has a tensor of the same name (HEFT_DUPLICATES_REFUSE); a tensor to
 *                    replace has another element type or shape (rule "heft/replacement-differs")
 *   HEFT_E_NOTFOUND  the file has no tensor of the name to replace
 *   HEFT_E_LOSSY     the format cannot represent a tensor
 *   HEFT_E_CHECKSUM  `from` is damaged */
HEFT_API HEFT_MUST_CHECK heft_status heft_file_append(heft_append_result *out, const char *path,
                                                      const heft_file *from,
                                                      const heft_append_options *opt,
                                                      heft_error *err);

/* ---- plans of edits ----------------------------------------------------------------------- */

/* The plan of an edit, for programs that store the bytes themselves: a list of extents that form
 * the edited file from first to last. */
typedef struct heft_edit heft_edit;
typedef struct heft_edit_extent {
    uint64_t at, length; /* range of the edited file */
    uint64_t from;       /* if data is NULL: offset of the bytes in the source file */
    const void *data;    /* new bytes, valid until heft_edit_close(), or NULL */
    uint32_t file;       /* source file: 0 for the file, 1 for the file with added tensors */
} heft_edit_extent;
/* Plan an edit like heft_file_edit(), with the same errors, except that a shard listed in an index
 * is not recognised.  f may be closed afterwards.  opt NULL: the file as this library would write
 * it; dry_run and progress of the options are ignored. */
HEFT_API HEFT_MUST_CHECK heft_status heft_edit_plan(heft_edit **out, const heft_file *f,
                                                    const heft_edit_options *opt, heft_error *err);
/* Do the first half of heft_file_append(): write the tensors of `from` as a file in the format
 * and version of f.  *tensors becomes the number of tensors written; 0: there is nothing to
 * add.  On a dry run take may be NULL, and planned_bytes becomes the size of both files
 * together, or 0.  no_sync is ignored. */
HEFT_API HEFT_MUST_CHECK heft_status heft_append_convert(uint32_t *tensors, const heft_file *f,
                                                         const heft_file *from, heft_sink *take,
                                                         const heft_append_options *opt,
                                                         heft_error *err);
/* Do the second half of heft_file_append(): plan a file with the tensors of f and of `added`,
 * the file written by heft_append_convert().  Both may be closed afterwards. */
HEFT_API HEFT_MUST_CHECK heft_status heft_append_plan(heft_edit **out, const heft_file *f,
                                                      const heft_file *added,
                                                      const heft_append_options *opt,
                                                      heft_error *err);
/* Return the number of extents; *out is borrowed from e. */
HEFT_API size_t heft_edit_extents(const heft_edit *e, const heft_edit_extent **out);
/* Return the size of the edited file. */
HEFT_API uint64_t heft_edit_size(const heft_edit *e);
/* Return true if all copied extents keep their offsets. */
HEFT_API bool heft_edit_is_in_place(const heft_edit *e);
/* Close a plan.  NULL is ignored. */
HEFT_API void heft_edit_close(heft_edit *e);

#ifdef __cplusplus
}
#endif
#endif
