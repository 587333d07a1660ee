/* split.h - write a model as several files, which appear together.  The general rules of heft.h
 * apply.
 *
 * Stability: provisional. */
#ifndef HEFT_SPLIT_H
#define HEFT_SPLIT_H
#include <heft/write.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- sets of files ------------------------------------------------------------------------- */

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

/* ---- splitting ---------------------------------------------------------------------------- */

typedef struct heft_split_options {
    size_t size; /* = sizeof(heft_split_options) */
    /* Conversion of each shard, as by heft_file_convert().  Callbacks are called several times for
     * a tensor, and must answer alike.  With dry_run nothing is opened, and *planned_bytes is the
     * size of the shards.  NULL: the defaults. */
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

/* ---- the index of shards that exist -------------------------------------------------------- */

/* Write the index of shards in a format whose sets have an index in JSON (safetensors, PyTorch,
 * Flax).  names: the names of their files, as the index spells them.  settings: a file with texts
 * of metadata for the index, such as the index before; NULL: none.  The sink is finished, or
 * discarded on failure.
 *   HEFT_E_UNSUPPORTED  the format has no such index
 *   HEFT_E_ARGUMENT     two shards have a tensor of the same name, or are in different formats */
HEFT_API HEFT_MUST_CHECK heft_status heft_index_write(heft_sink *take,
                                                      const heft_file *const *shards,
                                                      const char *const *names, uint32_t count,
                                                      const heft_file *settings, heft_error *err);

/* Set *out to true if the index lists the tensors of these shards, and no others, with their files
 * and the size of all tensors; other members of its metadata, and how it is spelled, do not matter.
 * Errors as heft_index_write(), and
 *   HEFT_E_ARGUMENT  `index` is not an index of shards */
HEFT_API HEFT_MUST_CHECK heft_status heft_index_is_right(bool *out, const heft_file *index,
                                                         const heft_file *const *shards,
                                                         const char *const *names, uint32_t count,
                                                         heft_error *err);

typedef struct heft_index_options {
    size_t size;               /* = sizeof(heft_index_options) */
    const char *const *shards; /* names of files in the folder; NULL: the numbered shards */
    uint32_t shard_count;
    bool dry_run; /* only say what would be written */
    const heft_limits *limits;
} heft_index_options;
#define HEFT_INDEX_OPTIONS_INIT                          \
    {                                                    \
        sizeof(heft_index_options), NULL, 0, false, NULL \
    }
typedef struct heft_index_result {
    char name[256]; /* the name of the index */
    uint64_t bytes; /* all tensors */
    uint32_t shards, tensors;
    bool existed;        /* there was an index of this name */
    bool is_unreadable;  /* it could not be read, so that its texts are lost */
    bool changed;        /* false: it is right, and was left unchanged */
    uint8_t reserved[5]; /* 0: a byte each */
} heft_index_result;
/* Write or repair the index of the shards in a folder; the shards stay as they are.  The index
 * keeps its name and the texts of its metadata, and is replaced atomically.  out and opt may be
 * NULL.  Errors as heft_index_write(), and
 *   HEFT_E_IO  there are no numbered shards, or several sets of them, or one is missing */
HEFT_API HEFT_MUST_CHECK heft_status heft_index_folder(heft_index_result *out, const char *folder,
                                                       const heft_index_options *opt,
                                                       heft_error *err);

#ifdef __cplusplus
}
#endif
#endif
