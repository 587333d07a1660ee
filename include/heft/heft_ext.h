/* heft_ext.h - plug something into heft: where bytes come from and go to, memory, threads,
 * digests.  Stable within a minor release.
 */
#ifndef HEFT_EXT_H
#define HEFT_EXT_H
#include <heft/heft.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Tables of functions begin with their size, so that they can grow: what is in them says sizeof of itself, and the library
 * reads no further.  Whoever wraps an object of the library asks in the same way whether a table has a function that came
 * later, which those are that may be NULL: HEFT_HAS(s->ops, dont_need). */
#define HEFT_HAS(table, member)                                                                 \
    ((size_t)((const char *)(&(table)->member + 1) - (const char *)(table)) <= (table)->size && \
     (table)->member)

/* ---- sources ------------------------------------------------------------------------------ */

/* Every function may be called from several threads at once.  Derive a struct that begins with
 * heft_source and give it to heft_file_open_source(). */
typedef struct heft_source_ops {
    size_t size; /* = sizeof(heft_source_ops) */
    /* len bytes at offset, all of them or an error; offset + len <= size was checked. */
    heft_status (*read)(heft_source *s, uint64_t offset, void *buf, size_t len, heft_error *err);
    /* The bytes in place until close, or NULL.  May be NULL. */
    const void *(*map)(heft_source *s, uint64_t offset, uint64_t len);
    /* An error once lent bytes turned out not to be there.  May be NULL. */
    heft_status (*check)(heft_source *s, heft_error *err);
    /* These bytes will be wanted soon.  May be NULL. */
    void (*will_need)(heft_source *s, uint64_t offset, uint64_t len);
    /* Called around work on lent bytes: a source that guards its mapping arms itself.  May be
     * NULL. */
    void (*begin_access)(heft_source *s);
    void (*end_access)(heft_source *s);
    void (*close)(heft_source *s);
    /* These bytes have been read and are not wanted for now; what was lent stays valid.  May be
     * NULL. */
    void (*dont_need)(heft_source *s, uint64_t offset, uint64_t len);
    /* A source that maps a file: has these bytes in memory when it returns.  May be NULL. */
    heft_status (*populate)(heft_source *s, uint64_t offset, uint64_t len, heft_error *err);
} heft_source_ops;
struct heft_source {
    const heft_source_ops *ops;
    uint64_t size;
};

/* Whether what heft_part_view() lends are pages of a mapped file. */
HEFT_API bool heft_file_is_mapped(const heft_file *f);
/* A raw part of a mapped file: all in memory when this returns, or no longer needed there.  Without a
 * mapping neither does anything. */
HEFT_API HEFT_MUST_CHECK heft_status heft_part_populate(const heft_file *f, uint32_t part,
                                                        heft_error *err);
HEFT_API void heft_part_dont_need(const heft_file *f, uint32_t part);

/* ---- files beside a file ------------------------------------------------------------------- */

/* Borrowed until the file is open: heft_file_open_source() has returned, or heft_file_step() said HEFT_OK.  Called on the thread
 * that opens. */
struct heft_shard_folder {
    size_t size;      /* = sizeof(heft_shard_folder) */
    const char *name; /* of the file itself, a single component of a path: "model.zt" */
    /* The file of that name, again a single component, beside it.  HEFT_E_NOTFOUND: there is none, which is a fault of
     * the model.  HEFT_E_IO with an errno: nothing is known of it, and heft_file_verify() fails. */
    heft_status (*open)(heft_source **out, void *ctx, const char *name, heft_error *err);
    void *ctx;
    /* Calls fn with the name of every file beside it.  NULL: nobody knows them. */
    heft_status (*list)(void *ctx, void (*fn)(void *arg, const char *name), void *arg,
                        heft_error *err);
};

/* Opens the file `name`, a single component of a path, of a model's folder, under the rules that hold
 * for shards: it is a regular file; symbolic links are followed as long as they stay in the folder or,
 * when the folder is a snapshot in a cache of Hugging Face, in the folder that holds both `snapshots`
 * and `blobs`.  Absolute links are refused.  HEFT_E_IO with err->os ENOENT: there is no such file. */
HEFT_API HEFT_MUST_CHECK heft_status heft_source_open_in_folder(heft_source **out,
                                                                const char *folder,
                                                                const char *name, heft_access how,
                                                                heft_error *err);

/* ---- room for a while ---------------------------------------------------------------------- */

/* Space on a disk for what memory should not hold: compressed elements that are wanted in another order than they
 * come in.  One thread uses it at a time. */
typedef struct heft_scratch heft_scratch;
typedef struct heft_scratch_ops {
    size_t size; /* = sizeof(heft_scratch_ops) */
    /* Behind everything written so far; no more in all than was asked for. */
    heft_status (*write)(heft_scratch *s, const void *data, size_t len, heft_error *err);
    /* All that was written, in place until close; nothing is written afterwards. */
    heft_status (*map)(heft_scratch *s, const void **out, heft_error *err);
    /* An error once lent bytes turned out not to be there. */
    heft_status (*check)(heft_scratch *s, heft_error *err);
    void (*close)(heft_scratch *s); /* gives the space back */
} heft_scratch_ops;
struct heft_scratch {
    const heft_scratch_ops *ops;
};

/* ---- sinks -------------------------------------------------------------------------------- */

/* write, read_at, reserve, finish, discard and share are called by one thread at a time, which may be any of the host's
 * executor. */
typedef struct heft_sink_ops {
    size_t size; /* = sizeof(heft_sink_ops) */
    /* Behind everything written so far.  Used when write_at is NULL. */
    heft_status (*write)(heft_sink *s, const void *data, size_t len, heft_error *err);
    /* At a place of the file, from several threads at once, each byte once.  NULL: a stream. */
    heft_status (*write_at)(heft_sink *s, uint64_t offset, const void *data, size_t len,
                            heft_error *err);
    /* The final size, before the first write.  When nobody knows the size, it is not called, and writes come one at a
     * time.  May be NULL. */
    heft_status (*reserve)(heft_sink *s, uint64_t size, heft_error *err);
    /* Completes and frees s; frees it also on failure, leaving nothing behind. */
    heft_status (*finish)(heft_sink *s, heft_error *err);
    void (*discard)(heft_sink *s);
    /* Makes len bytes of another file this one's at offset without moving them; all three are multiples
     * of 4096, and nothing else is written there.  false: that is not possible here.  May be NULL. */
    bool (*reflink)(heft_sink *s, uint64_t offset, heft_source *from, uint64_t at, uint64_t len);
    /* len bytes that were written, before finish.  NULL: they cannot be had again. */
    heft_status (*read_at)(heft_sink *s, uint64_t offset, void *buf, size_t len, heft_error *err);
    /* As that of the host, on the disk that is written to; from several threads at once.  NULL: the host's. */
    heft_status (*scratch)(heft_sink *s, heft_scratch **out, uint64_t bytes, heft_error *err);
} heft_sink_ops;
struct heft_sink {
    const heft_sink_ops *ops;
};

/* ---- editing ------------------------------------------------------------------------------ */

/* What an edit makes of a file, for whoever keeps the bytes himself: a list of pieces, first to last,
 * that are the edited file.  dry_run and progress of the options are of no use here. */
typedef struct heft_edit heft_edit;
typedef struct heft_edit_extent {
    uint64_t at, length; /* in the edited file */
    uint64_t from;       /* its place in the file as it is, when data is NULL */
    const void *data;    /* the bytes, as long as the edit lives; or NULL */
    uint32_t file;       /* that `from` is a place of: 0, the file; 1, that with what is added */
} heft_edit_extent;
/* f may be closed afterwards.  opt may be NULL: the file as this library would write it.  Whether an index beside the
 * file lists it is not known here: heft_file_edit() refuses such a file. */
HEFT_API HEFT_MUST_CHECK heft_status heft_edit_plan(heft_edit **out, const heft_file *f,
                                                    const heft_edit_options *opt, heft_error *err);
/* The two halves of heft_file_append().  The first writes tensors of `from` as a file of the format and version of f,
 * and counts them; 0: nothing is to be added.  On a dry run the sink may be NULL, and planned_bytes tells the size of both
 * together, or 0.  The second plans a file of what f and such a file, `added`, hold; both may be closed
 * afterwards.  no_sync of the options is of no use here. */
HEFT_API HEFT_MUST_CHECK heft_status heft_append_convert(uint32_t *tensors, const heft_file *f,
                                                         const heft_file *from, heft_sink *take,
                                                         const heft_append_options *opt,
                                                         heft_error *err);
HEFT_API HEFT_MUST_CHECK heft_status heft_append_plan(heft_edit **out, const heft_file *f,
                                                      const heft_file *added,
                                                      const heft_append_options *opt,
                                                      heft_error *err);
HEFT_API size_t heft_edit_extents(const heft_edit *e, const heft_edit_extent **out);
HEFT_API uint64_t heft_edit_size(const heft_edit *e);
HEFT_API bool heft_edit_is_in_place(const heft_edit *e); /* whatever is copied stays where it is */
HEFT_API void heft_edit_close(heft_edit *e);             /* NULL is harmless */

/* ---- threads ------------------------------------------------------------------------------ */

typedef struct heft_executor {
    size_t size; /* = sizeof(heft_executor) */
    /* Calls fn(arg, i) for every i below n, handed out in increasing order, on at most width
     * threads, and returns when all are done.  Called on the thread that called the library, or on the one with which a
     * heft_params store reads ahead; by several at once. */
    void (*run)(void *ctx, size_t n, void (*fn)(void *arg, size_t i), void *arg);
    void *ctx;
    uint32_t width;
    uint32_t reserved[3]; /* 0 */
} heft_executor;
/* Threads of the system; 0: as many as there are processors to run on. */
HEFT_API heft_executor heft_executor_threads(uint32_t width);

/* ---- digests ------------------------------------------------------------------------------ */

/* Called on all threads of the host's executor, by several at once, each with a state of its own. */
typedef struct heft_digest {
    size_t size;      /* = sizeof(heft_digest) */
    const char *name; /* "crc32c" */
    uint32_t bytes, state_bytes;
    bool (*init)(void *state); /* false: no memory */
    void (*update)(void *state, const void *data, size_t len);
    void (*final)(
        uint8_t *out,
        void *state); /* releases the state; out NULL: only that.  Checksums: little-endian */
    /* state becomes that of its bytes followed by those of next, which were len many.  NULL:
     * bytes must come in order. */
    void (*combine)(void *state, const void *next, uint64_t len);
} heft_digest;

/* ---- codecs ------------------------------------------------------------------------------- */

/* As a digest: by several threads at once, each with a state of its own. */
typedef struct heft_codec {
    size_t size; /* = sizeof(heft_codec) */
    heft_encoding encoding;
    const char *name;
    /* A decoder of a part of so many decoded bytes. */
    heft_status (*open)(void **state, uint64_t decoded, heft_error *err);
    /* Takes up to *in_len bytes and gives up to *out_len; both then tell how many it was.  *whole
     * says whether the input ends where a frame ends. */
    heft_status (*decode)(void *state, const void *in, size_t *in_len, void *out, size_t *out_len,
                          bool *whole, heft_error *err);
    void (*close)(void *state);
    /* One frame of in_len bytes, by an encoder that is used again and again.  out has room for
     * bound(in_len).  All four NULL: it only decodes. */
    size_t (*bound)(size_t in_len);
    /* level 0: the usual one; checksums: frames carry one of their content, when the codec has such. */
    heft_status (*encoder_open)(void **state, int level, bool checksums, heft_error *err);
    heft_status (*encode)(void *state, void *out, size_t *out_len, const void *in, size_t in_len,
                          heft_error *err);
    void (*encoder_close)(void *state);
} heft_codec;

/* ---- the host ----------------------------------------------------------------------------- */

struct heft_host {
    size_t size; /* = sizeof(heft_host) */
    const heft_allocator *allocator;
    const heft_executor *executor;          /* NULL: the caller's thread does everything */
    const heft_digest *const *digests;      /* up to a NULL; CRC-32 and CRC-32C are always there */
    const heft_codec *const *codecs;        /* up to a NULL; or NULL */
    void (*entropy)(void *buf, size_t len); /* keys for hash tables; NULL: fixed keys */
    /* Space for so many bytes, all there or HEFT_E_IO; from several threads at once.  NULL: what needs it takes memory
     * instead. */
    heft_status (*scratch)(heft_scratch **out, uint64_t bytes, heft_error *err);
};
/* Becomes from, NULL: the default, as far as this program knows the members of a host: size is sizeof(heft_host).  How to
 * begin a host that is like another one in most things; an assignment would take over a size that is not *out's. */
HEFT_API void heft_host_copy(heft_host *out, const heft_host *from, size_t size);
/* What this build has.  A build without an operating system has no allocator: give one. */
HEFT_API const heft_host *heft_host_default(void);
/* A random number of the system's, each of 2^64 as likely.  HEFT_E_IO: it has none.  From any thread; not in builds without
 * an operating system. */
HEFT_API HEFT_MUST_CHECK heft_status heft_random_u64(uint64_t *out, heft_error *err);

/* An allocator over the caller's memory, which frees only what was allocated last. */
typedef struct heft_arena_memory {
    uint8_t *base;
    size_t size, used, peak;
} heft_arena_memory;
HEFT_API heft_allocator heft_arena_allocator(heft_arena_memory *m);

#ifdef __cplusplus
}
#endif
#endif
