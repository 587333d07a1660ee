/* heft_ext.h - sources, sinks, allocators, threads, digests and codecs of your own.  The
 * general rules of heft.h apply.
 *
 * Fill in a table of functions and return HEFT_OK or an error: set *err to the same status (err may
 * be NULL).  Contexts and tables must outlive the objects that refer to them.
 *
 * Stability: provisional. */
#ifndef HEFT_EXT_H
#define HEFT_EXT_H
#include <heft/memory_limits.h>
#include <heft/source.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Tables of functions begin with a size, so that later versions can append functions.  True if a
 * table contains an optional function (`member` is within the size and not NULL).  A program that
 * wraps a table of the library asks HEFT_HAS(s->ops, dont_need) before the call. */
#define HEFT_HAS(table, member)                                                                 \
    ((size_t)((const char *)(&(table)->member + 1) - (const char *)(table)) <= (table)->size && \
     (table)->member)

/* ---- sources ------------------------------------------------------------------------------ */

typedef struct heft_executor heft_executor;

/* A source supplies the bytes of a file.  Define a struct with a heft_source as the first member,
 * for heft_file_open_source().  All functions are called by several threads at once; functions
 * marked optional may be NULL. */
typedef struct heft_source_ops {
    size_t size; /* = sizeof(heft_source_ops) */
    /* Read exactly len bytes at offset, or fail; offset + len <= source size. */
    heft_status (*read)(heft_source *s, uint64_t offset, void *buf, size_t len, heft_error *err);
    /* Optional.  Return the bytes in place, valid until close, or NULL. */
    const void *(*map)(heft_source *s, uint64_t offset, uint64_t len);
    /* Optional.  Return an error if mapped bytes have turned out to be missing. */
    heft_status (*check)(heft_source *s, heft_error *err);
    /* Optional.  Hint: the range will be read soon. */
    void (*will_need)(heft_source *s, uint64_t offset, uint64_t len);
    /* Optional.  Called on the same thread before and after mapped bytes are accessed; a mapping
     * can be guarded against SIGBUS in between. */
    void (*begin_access)(heft_source *s);
    void (*end_access)(heft_source *s);
    void (*close)(heft_source *s);
    /* Optional.  Hint: the range is not needed for now; mapped pointers stay valid. */
    void (*dont_need)(heft_source *s, uint64_t offset, uint64_t len);
    /* Optional, for a source that maps a file.  Load the range into memory before returning. */
    heft_status (*populate)(heft_source *s, uint64_t offset, uint64_t len, heft_error *err);
    /* Optional.  Return an error if any byte may have changed since the source was opened. */
    heft_status (*check_unchanged)(heft_source *s, heft_error *err);
    /* Optional.  The origin of the source states a digest of the whole file.  begin_digest: begin
     * to compute the digest, because all bytes will be read.  check_digest: read the other bytes,
     * and compare; HEFT_E_CHECKSUM for different digests.  *is_stated: the origin states a
     * digest. */
    void (*begin_digest)(heft_source *s);
    heft_status (*check_digest)(heft_source *s, bool *is_stated, heft_error *err);
    /* Optional, for a source whose requests take long.  Return an executor with more threads than
     * processors, or NULL: heft_part_read_many() uses it instead of the host's, so that many
     * requests are sent at the same time.  Never called if the host has no executor. */
    const heft_executor *(*executor)(const heft_source *s);
} heft_source_ops;
struct heft_source {
    const heft_source_ops *ops;
    uint64_t size;
};

/* Return true if heft_part_view() returns pages of mapped files, in the file and all shards. */
HEFT_API bool heft_file_is_mapped(const heft_file *f);
/* Load the stored bytes of a part of a mapped file into memory.  HEFT_OK without a mapping. */
HEFT_API HEFT_MUST_CHECK heft_status heft_part_populate(const heft_file *f, uint32_t part,
                                                        heft_error *err);
/* Hint that the stored bytes of a part of a mapped file are not needed for now. */
HEFT_API void heft_part_dont_need(const heft_file *f, uint32_t part);

/* ---- shards -------------------------------------------------------------------------------- */

/* Access to the other files of a model.  Borrowed until heft_file_open_source() returns or
 * heft_file_step() returns HEFT_OK. */
struct heft_shard_folder {
    size_t size;      /* = sizeof(heft_shard_folder) */
    const char *name; /* file name of the first file, without folders: "model.zt" */
    /* Open the file `name` of the same folder.  HEFT_E_NOTFOUND: the file does not exist;
     * heft_file_verify() reports a fault.  HEFT_E_IO with err->os set: the file cannot be read;
     * heft_file_verify() fails. */
    heft_status (*open)(heft_source **out, void *ctx, const char *name, heft_error *err);
    void *ctx;
    /* Call fn with the name of every file in the folder.  NULL: the folder cannot be listed; builds
     * for boards and browsers take no other. */
    heft_status (*list)(void *ctx, void (*fn)(void *arg, const char *name), void *arg,
                        heft_error *err);
    /* Prepare to open the file `name`, which will be opened soon: a file on a server is requested.
     * Called for at most 16 files that have not been opened yet.  NULL: files are not prepared. */
    void (*expect)(void *ctx, const char *name);
};

/* What a file next to the opened file is to the model. */
typedef enum heft_folder_role {
    HEFT_FOLDER_SHARD = 0, /* a shard, unless the file or the index lists its shards itself; if the
                              shard cannot be opened, the model is incomplete */
    HEFT_FOLDER_LEFT_OUT = 1,    /* may hold weights of the model: the warning "heft/left-out" */
    HEFT_FOLDER_ALTERNATIVE = 2, /* the same weights in another form: the note "heft/passed-over" */
    /* The caller opens the file, too: a shard is not reported as alone if all others are given. */
    HEFT_FOLDER_GIVEN = 3
} heft_folder_role;
typedef struct heft_folder_file {
    const char *name; /* "model-mtp.safetensors" */
    uint8_t role;     /* a heft_folder_role */
} heft_folder_file;
/* The files next to the opened file, in the order of heft_open_options.folder.  Files that turn out
 * to be shards of the model are not reported. */
struct heft_folder {
    const heft_folder_file *files;
    uint32_t count;
    const char *prefix; /* precedes the names in findings: "unet/"; NULL: nothing */
};

/* Open the regular file `name` (no path) of a model's folder, under the rules for shards: symbolic
 * links are followed if they stay in the folder or, if the folder is a snapshot in a Hugging Face
 * cache, in the folder that contains `snapshots` and `blobs`.
 *   HEFT_E_ARGUMENT  name is not the name of a file
 *   HEFT_E_IO        there is no such file (err->os is ENOENT), or a link is absolute or leaves the
 *                    folder */
HEFT_API HEFT_MUST_CHECK heft_status heft_source_open_in_folder(heft_source **out,
                                                                const char *folder,
                                                                const char *name, heft_access how,
                                                                heft_error *err);

/* ---- pipelines ---------------------------------------------------------------------------- */

typedef struct heft_pipeline_file { /* a model that is part of a pipeline */
    heft_str name;                  /* "unet": the folder, and the beginning of tensor names */
    heft_file *file;                /* an open file with a source; NULL: cannot be opened */
    const heft_error *error;        /* why not, if file is NULL; borrowed during the call */
} heft_pipeline_file;
/* Present the models of a pipeline as a single model: tensor "w" of the component "unet" is called
 * "unet.w", and the files are the shards, "unet/model.safetensors".  heft_file_open() calls this
 * function for a folder with model_index.json.  A component without a file makes the model
 * incomplete; if no component has a file, the first error is returned.
 *   take        the bytes of model_index.json or of a similar index; `name` is the name of the
 *               index
 *   take_files  components with different names; the files are taken, even after a failure, and set
 *               to NULL
 *   opt         host, limits, no_verify and folder count; NULL: the defaults */
HEFT_API HEFT_MUST_CHECK heft_status heft_file_join_pipeline(
    heft_file **out, heft_source *take, const char *name, heft_pipeline_file *take_files,
    uint32_t count, const heft_open_options *opt, heft_error *err);

/* ---- the Hugging Face cache ---------------------------------------------------------------- */

/* Find a repository, or a file of a repository, in the local Hugging Face cache.  Nothing is
 * downloaded.  name: hub:[OWNER/]NAME[@REVISION][/FILE].  The revision is a branch or tag, a
 * commit, or at least the first 4 digits of a commit.  The default is "main", or the only commit in
 * the cache.  "hub:" alone is the folder of the cache: $HF_HUB_CACHE, $HF_HOME/hub,
 * $XDG_CACHE_HOME/huggingface/hub or ~/.cache/huggingface/hub.  heft_file_open() calls this
 * function for every path that begins with "hub:"; a file of that name is "./hub:...".  The path
 * is written to out, terminated; FILE may be missing.
 *   HEFT_E_ARGUMENT  the name has another form, or several commits begin with the digits
 *   HEFT_E_NOTFOUND  no environment variable says where the cache is
 *   HEFT_E_IO        repository or revision are not in the cache (err->os is ENOENT)
 *   HEFT_E_LIMIT     the path has `capacity` bytes or more */
HEFT_API HEFT_MUST_CHECK heft_status heft_hub_path(char *out, size_t capacity, const char *name,
                                                   heft_error *err);

/* ---- temporary storage --------------------------------------------------------------------- */

/* Temporary storage on disk, for data too large for memory: decoded elements that are needed in a
 * different order.  Used by one thread at a time; all functions are required. */
typedef struct heft_scratch heft_scratch;
typedef struct heft_scratch_ops {
    size_t size; /* = sizeof(heft_scratch_ops) */
    /* Append; never more in total than the bytes that were requested. */
    heft_status (*write)(heft_scratch *s, const void *data, size_t len, heft_error *err);
    /* Return everything written, in place until close.  Nothing is written afterwards. */
    heft_status (*map)(heft_scratch *s, const void **out, heft_error *err);
    /* Return an error if mapped bytes have turned out to be missing. */
    heft_status (*check)(heft_scratch *s, heft_error *err);
    void (*close)(heft_scratch *s); /* release the storage */
} heft_scratch_ops;
struct heft_scratch {
    const heft_scratch_ops *ops;
};

/* ---- sinks -------------------------------------------------------------------------------- */

/* A sink receives the bytes of a file.  Define a struct with a heft_sink as the first member.
 * write_at and scratch are called by several threads at once; the other functions by one thread at
 * a time, on any thread of the host's executor.  Functions marked optional may be NULL. */
typedef struct heft_sink_ops {
    size_t size; /* = sizeof(heft_sink_ops) */
    /* Append.  Used if write_at is NULL. */
    heft_status (*write)(heft_sink *s, const void *data, size_t len, heft_error *err);
    /* Optional.  Write at an offset; every byte is written once.  NULL: the sink is a stream. */
    heft_status (*write_at)(heft_sink *s, uint64_t offset, const void *data, size_t len,
                            heft_error *err);
    /* Optional.  Announces the final size before the first write.  Not called if the size is not
     * known; writes then come one at a time. */
    heft_status (*reserve)(heft_sink *s, uint64_t size, heft_error *err);
    /* Complete the file and free s.  On failure free s and leave no file. */
    heft_status (*finish)(heft_sink *s, heft_error *err);
    /* Free s and leave no file. */
    void (*discard)(heft_sink *s);
    /* Optional.  Share len bytes of `from`, beginning at `at`, with this file at `offset` on a
     * copy-on-write file system.  offset, at and len are multiples of 4096; nothing else is written
     * to the range.  False: not possible, the bytes will be written instead. */
    bool (*reflink)(heft_sink *s, uint64_t offset, heft_source *from, uint64_t at, uint64_t len);
    /* Optional.  Read back len bytes that were written, before finish. */
    heft_status (*read_at)(heft_sink *s, uint64_t offset, void *buf, size_t len, heft_error *err);
    /* Optional.  As heft_host.scratch, on the disk of the sink; used instead of the host's. */
    heft_status (*scratch)(heft_sink *s, heft_scratch **out, uint64_t bytes, heft_error *err);
} heft_sink_ops;
struct heft_sink {
    const heft_sink_ops *ops;
};

/* ---- threads ------------------------------------------------------------------------------ */

struct heft_executor {
    size_t size; /* = sizeof(heft_executor) */
    /* Call fn(arg, i) once for every i < n, started in increasing order, on at most width threads;
     * return when all calls have returned.  Called by several threads at once: threads that called
     * the library, and the prefetching thread of a heft_params store. */
    void (*run)(void *ctx, size_t n, void (*fn)(void *arg, size_t i), void *arg);
    void *ctx;
    uint32_t width;       /* number of threads */
    uint32_t reserved[3]; /* 0: room for a function and a number */
};
/* Return an executor with that many system threads; 0: one for each available processor. */
HEFT_API heft_executor heft_executor_threads(uint32_t width);

/* ---- digests ------------------------------------------------------------------------------ */

/* A checksum or hash algorithm.  Called by several threads at once, each with a separate state. */
typedef struct heft_digest {
    size_t size;                 /* = sizeof(heft_digest) */
    const char *name;            /* "crc32c" */
    uint32_t bytes, state_bytes; /* of the digest (1 to HEFT_HASH_BYTES), of its state */
    bool (*init)(void *state);   /* false: out of memory */
    void (*update)(void *state, const void *data, size_t len);
    /* Write the digest (checksums: little-endian) and release the state; out NULL: only release. */
    void (*final)(uint8_t *out, void *state);
    /* Append to state the len bytes that `next` has digested.  NULL: not possible, all bytes are
     * digested in order. */
    void (*combine)(void *state, const void *next, uint64_t len);
    /* Load the library of the other functions; the error names a missing library.  Called before
     * every init().  NULL: no library has to be loaded. */
    heft_status (*load)(heft_error *err);
} heft_digest;

/* ---- codecs ------------------------------------------------------------------------------- */

/* A compression algorithm.  Called by several threads at once, each with a separate state. */
typedef struct heft_codec {
    size_t size; /* = sizeof(heft_codec) */
    heft_encoding encoding;
    const char *name; /* "zstd" */
    /* Open a decoder for a part of `decoded` decoded bytes. */
    heft_status (*open)(void **state, uint64_t decoded, heft_error *err);
    /* Consume at most *in_len bytes and produce at most *out_len; set both to the actual numbers.
     * Set *whole to whether the consumed input ends at the end of a frame. */
    heft_status (*decode)(void *state, const void *in, size_t *in_len, void *out, size_t *out_len,
                          bool *whole, heft_error *err);
    void (*close)(void *state); /* close the decoder */
    /* The encoder: all four NULL if the codec only decodes.  bound() returns the capacity that
     * encode() needs for in_len bytes. */
    size_t (*bound)(size_t in_len);
    /* Open an encoder.  level 0: the codec's default; checksums: store a checksum of the content in
     * each frame, if the codec can. */
    heft_status (*encoder_open)(void **state, int level, bool checksums, heft_error *err);
    /* Encode in_len bytes as one frame; *out_len is the capacity of out and becomes the size of the
     * frame.  An encoder is used for many frames. */
    heft_status (*encode)(void *state, void *out, size_t *out_len, const void *in, size_t in_len,
                          heft_error *err);
    void (*encoder_close)(void *state);
} heft_codec;

/* ---- containers --------------------------------------------------------------------------- */

/* An array of a container.  Texts are UTF-8. */
typedef struct heft_container_array {
    heft_str name;        /* path of groups without the first '/': "layers/dense/vars/0" */
    const uint64_t *dims; /* `rank` numbers */
    uint32_t rank;
    heft_dtype dtype;       /* HEFT_UNTYPED: `type` says what the elements are */
    uint8_t is_big_endian;  /* 1: the most significant byte of a number is first */
    uint8_t is_decoded;     /* 1: the offset counts in heft_container.decoded, 0: in the file */
    uint64_t offset, bytes; /* range of the elements, row-major and without gaps */
    const char *type;       /* "text"; NULL if there is a dtype */
    uint32_t element_bytes; /* bytes of one element */
    uint32_t first_attribute, attribute_count;
} heft_container_array;

/* An attribute of an array or group, or an element of an attribute that is a list. */
typedef struct heft_container_attribute {
    heft_str owner;   /* path of the array or group; empty: the root */
    heft_value value; /* key: name of the attribute; HEFT_KIND_NULL: a value that is not read */
    uint32_t index, count; /* place in a list; otherwise 0 and 1 */
} heft_container_attribute;

/* A second name of a group, whose arrays are listed once.  target.ptr NULL: a name of nothing. */
typedef struct heft_container_alias {
    heft_str name, target;
} heft_container_alias;

/* A file of arrays that another library reads: HDF5.  Immutable, until close(). */
typedef struct heft_container heft_container;
struct heft_container {
    size_t size; /* = sizeof(heft_container) */
    const heft_container_array *arrays;
    const heft_container_attribute
        *attributes; /* those of arrays, in order, then those of groups */
    const heft_container_alias *aliases;
    uint32_t array_count, attribute_count, group_attributes, alias_count;
    /* Elements of arrays that are not stored one after the other, or compressed.  Closed with the
     * container.  NULL: there are none. */
    heft_source *decoded;
    void (*close)(heft_container *c);
};

/* ---- the host ----------------------------------------------------------------------------- */

/* The environment of the library.  A host must outlive every object made with the host. */
struct heft_host {
    size_t size;                            /* = sizeof(heft_host) */
    const heft_allocator *allocator;        /* required */
    const heft_executor *executor;          /* NULL: everything runs on the calling thread */
    const heft_digest *const *digests;      /* ends with NULL; CRC-32 and CRC-32C are built in */
    const heft_codec *const *codecs;        /* ends with NULL; may be NULL */
    void (*entropy)(void *buf, size_t len); /* random keys for hash tables; NULL: fixed keys */
    /* Reserve temporary storage for `bytes` bytes, or fail with HEFT_E_IO.  Called by several
     * threads at once.  NULL: memory is used instead. */
    heft_status (*scratch)(heft_scratch **out, uint64_t bytes, heft_error *err);
    /* Open an HDF5 file.  bytes: borrowed until the container is closed; memory: the most bytes
     * that the lists may take.  Called by several threads at once.  NULL: such files are
     * refused. */
    heft_status (*open_hdf5)(heft_container **out, heft_source *bytes, uint64_t memory,
                             heft_error *err);
};
/* Copy a host (NULL: the default host) in order to change some members.  size: sizeof(heft_host) of
 * the program; an assignment would copy the size that the library was built with. */
HEFT_API void heft_host_copy(heft_host *out, const heft_host *from, size_t size);
/* Return the host with everything that this build supports.  Static.  A build without an operating
 * system has no default allocator: supply one. */
HEFT_API const heft_host *heft_host_default(void);
/* Get a uniformly distributed random number from the system; HEFT_E_IO if the system has none.
 * Thread-safe.  Missing in builds without an operating system. */
HEFT_API HEFT_MUST_CHECK heft_status heft_random_u64(uint64_t *out, heft_error *err);

typedef struct heft_arena_memory { /* a fixed block of the caller's memory */
    uint8_t *base;
    size_t size, used, peak; /* bytes: of the block, in use, most in use so far */
} heft_arena_memory;
/* Return an allocator over m, which must outlive the allocator; used and peak become 0.  Only the
 * most recent allocation can be freed or grown in place.  One thread at a time. */
HEFT_API heft_allocator heft_arena_allocator(heft_arena_memory *m);

#ifdef __cplusplus
}
#endif
#endif
