/* heft.h - read files of model weights.  It includes check.h (verify and hash files), companion.h (vocabularies, settings,
 * profiles) and write.h (write, convert, edit and split files).
 *
 * These four headers are all that a program needs.  The rules, once:
 *   - a function that can fail returns heft_status and takes a heft_error last (which may be
 *     NULL); a function that cannot fail returns its value;
 *   - out parameters come first, then the object, then the rest;
 *   - what a function hands out by pointer or heft_str is borrowed and lives as long as the
 *     heft_file it came from; what it hands out through T ** is owned by the caller and has a
 *     matching _close, _finish or _discard; a parameter called take is taken over, even when
 *     the call fails;
 *   - a number past the end, such as the HEFT_NONE of a search that found nothing, is HEFT_E_ARGUMENT or, from a function
 *     that cannot fail, an empty tensor, part, value or text;
 *   - one heft_file may be read from several threads at once; a writer may not;
 *   - callbacks run while the call that they were given to runs, on the thread that made that call unless
 *     their declaration says otherwise, and never while the library holds a lock;
 *   - offsets and sizes are bytes, shapes are row-major with the outermost dimension first,
 *     numbers in files are little-endian, text is UTF-8 and not terminated.
 */
#ifndef HEFT_H
#define HEFT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <heft/dtypes.h>

#if defined(__GNUC__)
#define HEFT_API        __attribute__((visibility("default")))
#define HEFT_MUST_CHECK __attribute__((warn_unused_result))
#else
#define HEFT_API
#define HEFT_MUST_CHECK
#endif
#ifdef __cplusplus
extern "C" {
#endif

/* ---- version ------------------------------------------------------------------------------ */

#define HEFT_VERSION_MAJOR 0
#define HEFT_VERSION_MINOR 1
#define HEFT_VERSION_PATCH 0
/* The library's own version: major << 16 | minor << 8 | patch. */
HEFT_API uint32_t heft_version(void);

/* ---- status and error --------------------------------------------------------------------- */

typedef enum heft_status {
    HEFT_OK = 0,
    HEFT_AGAIN = 1,          /* more bytes are wanted, see heft_file_needs() */
    HEFT_E_FORMAT = -1,      /* the bytes break the format's rules */
    HEFT_E_UNSUPPORTED = -2, /* well formed, but not something this build handles */
    HEFT_E_LIMIT = -3,       /* a limit of heft_limits was reached */
    HEFT_E_NOMEM = -4,       /* the allocator gave nothing */
    HEFT_E_IO = -5,          /* reading or writing failed; heft_error.os holds errno */
    HEFT_E_CHECKSUM = -6,    /* a checksum in the file disagrees with the bytes it covers */
    HEFT_E_NOTFOUND = -7,    /* no tensor, part or format of that name */
    HEFT_E_ARGUMENT = -8,    /* the caller broke a rule of this header */
    HEFT_E_LOSSY = -9,       /* the target format cannot carry something */
    HEFT_E_CANCELLED = -10   /* a progress callback said stop */
} heft_status;

#define HEFT_NOWHERE        UINT64_MAX /* an offset: no particular byte */
#define HEFT_UNKNOWN_LENGTH UINT64_MAX /* a length or size: not known */

typedef struct heft_error {
    heft_status status;
    int32_t os;        /* errno, or 0 */
    uint64_t offset;   /* the byte of the file that the complaint is about, or HEFT_NOWHERE */
    char message[240]; /* one line, no newline, always terminated */
    /* A stable name of the reason, "heft/limit-tensors", as in heft_finding; NULL: none is known.  All are listed in
     * docs/findings.md.  The text lives as long as the library is loaded. */
    const char *rule;
    uint64_t reserved[3]; /* not for programs */
} heft_error;

/* "format", "io" and so on; never NULL. */
HEFT_API const char *heft_status_name(heft_status s);

/* ---- small shared types ------------------------------------------------------------------- */

typedef struct heft_str {
    const char *ptr;
    size_t len;
} heft_str;

/* A literal, whose length the compiler counts: heft_tensor_find(f, HEFT_STR("wte.weight")). */
#ifdef __cplusplus
#define HEFT_STR(literal) (heft_str{ "" literal, sizeof(literal) - 1 })
#else
#define HEFT_STR(literal) ((heft_str){ "" literal, sizeof(literal) - 1 })
#endif
/* A text that ends with a NUL, which is not part of the heft_str. */
HEFT_API heft_str heft_str_from(const char *text);

typedef struct heft_range {
    uint64_t offset, length;
} heft_range;

typedef struct heft_id128 { /* a 128-bit number, little-endian, as gpt-rs stores it */
    uint8_t bytes[16];
} heft_id128;

typedef struct heft_dtype_info {
    const char *name;                  /* "f32", "bf16": the spelling of the command line */
    uint16_t block_elems, block_bytes; /* 1 and the element's size for plain types */
    uint8_t dlpack_code, dlpack_bits;  /* DLPack's type code and bits; 255 when it has none */
    uint8_t kind;                      /* heft_dtype_kind */
} heft_dtype_info;

/* NULL for a number that is not an element type; HEFT_UNTYPED is none. */
HEFT_API const heft_dtype_info *heft_dtype_get(heft_dtype t);
/* By name; HEFT_UNTYPED when there is none such. */
HEFT_API heft_dtype heft_dtype_find(heft_str name);

/* new_size 0 frees and returns NULL; ptr NULL allocates; NULL otherwise means no memory and
 * leaves ptr as it was.  align is a power of two.  Called on all threads of the host's executor, by several at
 * once. */
typedef struct heft_allocator {
    size_t size; /* = sizeof(heft_allocator) */
    void *(*resize)(void *ctx, void *ptr, size_t old_size, size_t new_size, size_t align);
    void *ctx;
    void *reserved; /* NULL */
} heft_allocator;

/* done and total are bytes; done stays 0 while a conversion is planned.  Return false to stop with HEFT_E_CANCELLED.
 * Called on any thread of the host's executor, by one at a time; the others go on meanwhile, and the next call tells of
 * their work as well. */
typedef bool (*heft_progress_fn)(void *ctx, uint64_t done, uint64_t total);

/* ---- formats ------------------------------------------------------------------------------ */

typedef struct heft_format heft_format;
typedef struct heft_host heft_host; /* what the library runs on: heft_ext.h */

enum {
    HEFT_CAN_READ = 1,
    HEFT_CAN_WRITE = 2,
    HEFT_CAN_APPEND = 4, /* takes further tensors after heft_writer_begin() */
    HEFT_CAN_SPARSE = 8,
    HEFT_CAN_ENCODE = 16,  /* compressed parts */
    HEFT_CAN_META = 32,    /* metadata of some kind */
    HEFT_CAN_DIGEST = 64,  /* a digest per part, of the caller's choice */
    HEFT_CAN_VOCAB = 128,  /* a vocabulary */
    HEFT_ONE_TENSOR = 256, /* holds a single tensor, without its name */
    HEFT_CAN_OPEN_KEY = 512    /* nests: a part of it can be opened, see heft_open_options.key */
};
HEFT_API size_t heft_format_count(void);
HEFT_API const heft_format *heft_format_at(size_t i); /* in a stable order */
/* By name ("mag") or by suffix of a path ("dir/model.mag"); NULL when there is none such. */
HEFT_API const heft_format *heft_format_find(const char *name);
HEFT_API const heft_format *heft_format_for_path(const char *path);
HEFT_API const char *heft_format_name(const heft_format *f);
HEFT_API const char *heft_format_title(const heft_format *f);    /* for people */
HEFT_API const char *heft_format_suffixes(const heft_format *f); /* ".pt .pth" */
HEFT_API const char *heft_format_versions(
    const heft_format *f); /* written: "1 100 snapshot", the default first */
HEFT_API uint32_t heft_format_caps(const heft_format *f);

/* ---- byte sources (heft_ext.h tells how to make one of your own) --------------------------- */

typedef struct heft_source heft_source;
typedef enum heft_access {
    HEFT_ACCESS_AUTO, /* mapped where that works */
    HEFT_ACCESS_MAP,
    HEFT_ACCESS_READ,     /* pread only; no mapping, no signal handler */
    HEFT_ACCESS_POPULATE, /* mapped, and all in memory before it is open */
    HEFT_ACCESS_DIRECT /* as AUTO, but what the system's cache does not hold as the file is opened is
                          read past it: faster for a cold file that is read once, and only there.
                          An executor of twice as many threads as processors keeps the disk busy
                          while others copy. */
} heft_access;
/* A regular file.  A mapped file that shrinks while it is open makes the call that met the gap,
 * and every later one, end with HEFT_E_IO.  What the library lends, names as well as views, is
 * read by the caller at its own risk. */
HEFT_API HEFT_MUST_CHECK heft_status heft_source_open_file(heft_source **out, const char *path,
                                                           heft_access how, heft_error *err);
/* data is borrowed until the source is closed. */
HEFT_API HEFT_MUST_CHECK heft_status heft_source_open_memory(heft_source **out, const void *data,
                                                             size_t len, heft_error *err);
HEFT_API void heft_source_close(heft_source *s); /* NULL is harmless */

/* ---- opening ------------------------------------------------------------------------------ */

typedef struct heft_file heft_file;
typedef struct heft_shard_folder
    heft_shard_folder; /* how to reach files beside a file: heft_ext.h */

typedef struct heft_limits { /* zero means the default in parentheses */
    size_t size;             /* = sizeof(heft_limits) */
    uint64_t index_bytes;    /* 4 GiB: bytes of the file that listing its tensors may take */
    uint64_t memory;         /* 4 GiB: bytes that the index may occupy */
    uint32_t tensors;        /* 16 Mi */
    uint32_t depth;          /* 128: nesting in JSON, CBOR, pickle */
} heft_limits;
#define HEFT_LIMITS_INIT                \
    {                                   \
        sizeof(heft_limits), 0, 0, 0, 0 \
    }

typedef struct heft_open_options {
    size_t size;               /* = sizeof(heft_open_options) */
    const heft_format *format; /* NULL: recognised by content */
    const heft_host *host;     /* NULL: heft_host_default() */
    const heft_limits *limits; /* NULL: their defaults */
    const heft_shard_folder
        *shards; /* NULL: heft_file_open() looks beside its path, the others nowhere */
    /* Of a file that nests (HEFT_CAN_OPEN_KEY) the part that is wanted, "state_dict" or "ema.model": what it holds
     * is named as if it were all.  NULL: the whole file.  Borrowed until the file is open. */
    const char *key;
    /* Other weights beside the file that were not opened although they are of the same model: the note
     * heft/passed-over names them.  heft_file_open() sets it for a folder.  NULL: none.  Borrowed until the file is open. */
    const char *passed_over;
    /* Compare digests with what is read: whatever reads a part from its first byte to its last (heft_part_read() of all of
     * it, heft_part_read_many(), a heft_stream, heft_file_hash()) ends with HEFT_E_CHECKSUM when the part's digest, or the
     * checksum of the member of an archive that it is in, is wrong.  What reads less does not check, nor does
     * heft_part_view().  heft_part_verify() says what counts as a part's digest. */
    bool check_parts;
    /* Open the file although a checksum of its header or index is wrong, which is HEFT_E_CHECKSUM otherwise;
     * heft_file_verify() reports such a checksum as a fault. */
    bool no_verify;
    uint8_t reserved[6]; /* 0 */
} heft_open_options;
#define HEFT_OPEN_OPTIONS_INIT                                                       \
    {                                                                                \
        sizeof(heft_open_options), NULL, NULL, NULL, NULL, NULL, NULL, false, false, \
        {                                                                            \
            0                                                                        \
        }                                                                            \
    }

/* opt may be NULL.  path is a file, or a folder: the one file of weights in it.  Reads the index only: nothing
 * grows with the size of the payload.  Files that hold
 * parts of this one are looked for in the directory of path, by one name and not through links that
 * leave it; one that is not there is no error until its bytes are asked for. */
HEFT_API HEFT_MUST_CHECK heft_status heft_file_open(heft_file **out, const char *path,
                                                    const heft_open_options *opt, heft_error *err);
HEFT_API HEFT_MUST_CHECK heft_status heft_file_open_source(heft_file **out, heft_source *take,
                                                           const heft_open_options *opt,
                                                           heft_error *err);
HEFT_API void heft_file_close(heft_file *f); /* NULL is harmless */

/* Opening without a source: for browsers, event loops and boards.  The library never waits; it
 * says which ranges it wants and the caller feeds them:
 *     heft_file_begin(&f, size, ...);
 *     while ((st = heft_file_step(f, err)) == HEFT_AGAIN)
 *         for each range of heft_file_needs(f, &ranges): heft_file_feed(f, ...);
 * A whole file fed at once (offset 0, len = file size) is borrowed until heft_file_close() and its
 * tensors can be viewed and read; anything less is copied, and serves the index only. */
HEFT_API HEFT_MUST_CHECK heft_status heft_file_begin(heft_file **out, uint64_t file_size,
                                                     const heft_open_options *opt, heft_error *err);
HEFT_API HEFT_MUST_CHECK heft_status heft_file_step(heft_file *f, heft_error *err);
HEFT_API size_t heft_file_needs(const heft_file *f, const heft_range **out);
HEFT_API HEFT_MUST_CHECK heft_status heft_file_feed(heft_file *f, uint64_t offset, const void *data,
                                                    size_t len, heft_error *err);

/* One model of several open files, in their order; they stay open until it is closed.  Of metadata with the
 * same key the first counts. */
typedef enum heft_duplicates { /* of tensors of the same name in two files: */
                               HEFT_DUPLICATES_REFUSE,
                               HEFT_DUPLICATES_FIRST, /* the first is kept */
                               HEFT_DUPLICATES_LAST
} heft_duplicates;
typedef struct heft_join_options {
    size_t size; /* = sizeof(heft_join_options) */
    heft_duplicates duplicates;
    /* A file, by its number, has another value under a key than one before it.  On the thread that joins.  NULL: never
     * mind. */
    void (*on_conflict)(void *ctx, heft_str key, uint32_t file);
    void *ctx;
} heft_join_options;
#define HEFT_JOIN_OPTIONS_INIT                                        \
    {                                                                 \
        sizeof(heft_join_options), HEFT_DUPLICATES_REFUSE, NULL, NULL \
    }
HEFT_API HEFT_MUST_CHECK heft_status heft_file_join(heft_file **out, const heft_file *const *files,
                                                    uint32_t count, const heft_join_options *opt,
                                                    heft_error *err);

/* ---- the model ---------------------------------------------------------------------------- */

typedef enum heft_layout { HEFT_DENSE, HEFT_SPARSE_CSR, HEFT_SPARSE_COO, HEFT_LAYOUT_OTHER } heft_layout;
typedef enum heft_encoding {
    HEFT_RAW,
    HEFT_ZSTD,
    HEFT_DEFLATE,
    HEFT_ENCODING_OTHER, /* of a name that is not known here: listed, not decoded */
    HEFT_MSGPACK /* an array of MessagePack numbers: one after the other, each with its kind */
} heft_encoding;

typedef struct heft_tensor {
    heft_str name;
    const uint64_t *dims;
    uint32_t rank;
    uint32_t first_part, part_count; /* part_count may be 0 */
    heft_dtype dtype;
    uint8_t layout; /* heft_layout; heft_tensor_layout_name() spells it */
    uint8_t reserved;
} heft_tensor;

typedef struct heft_part { /* "data", "indices", "scale", or a part of the file itself: "vocab" */
    heft_str role;
    uint64_t offset, stored; /* where it lies and how many bytes it takes there */
    uint64_t length;         /* decoded bytes, or HEFT_UNKNOWN_LENGTH */
    heft_str digest;         /* as the file spells it, "crc32c:0x1A2B3C4D"; empty: none */
    heft_dtype dtype;
    uint8_t encoding; /* heft_encoding */
    uint8_t reserved;
    uint32_t shard; /* 0: it lies in this file; else in heft_shard_file_at(f, shard - 1) */
} heft_part;

#define HEFT_NONE UINT32_MAX /* no such tensor; also "the file itself" as an owner */

HEFT_API const heft_format *heft_file_format(const heft_file *f);
HEFT_API heft_str heft_file_name(const heft_file *f);    /* without directories; empty: not known */
HEFT_API heft_str heft_file_version(const heft_file *f); /* "1", "100", "snapshot"; may be empty */
/* The program that wrote the file, as it says (zTensor 1.0); empty: the file does not. */
HEFT_API heft_str heft_file_generator(const heft_file *f);
HEFT_API uint64_t heft_file_size(const heft_file *f);
HEFT_API uint64_t heft_file_alignment(
    const heft_file *
        f); /* greatest power of two, at most 64 KiB, that divides every payload's offset; 0 without payloads */
HEFT_API uint64_t heft_file_memory(const heft_file *f); /* bytes the index occupies */

/* Files beside this one in which parts of it lie. */
typedef struct heft_shard_file {
    heft_str name;      /* of the file; where that is not known, what this file calls it */
    uint64_t size;      /* as this file states, or HEFT_UNKNOWN_LENGTH */
    heft_status status; /* HEFT_OK: at hand; HEFT_E_FORMAT: not the file that is meant; HEFT_E_IO */
    uint32_t reserved[3];
} heft_shard_file;
HEFT_API uint32_t heft_shard_file_count(const heft_file *f);
HEFT_API heft_shard_file heft_shard_file_at(const heft_file *f, uint32_t i);

/* Whether all files that belong to the model are at hand and hold what is said of them; what is lacking is not
 * listed, or cannot be read.  heft_file_verify() says all that is wrong, this the first thing. */
HEFT_API HEFT_MUST_CHECK heft_status heft_file_is_complete(const heft_file *f, heft_error *err);

HEFT_API uint32_t heft_tensor_count(const heft_file *f);
HEFT_API heft_tensor heft_tensor_at(const heft_file *f, uint32_t id);
HEFT_API uint32_t heft_tensor_find(const heft_file *f, heft_str name); /* or HEFT_NONE */

/* What programs call a tensor instead of its name. */
typedef enum heft_id_kind {
    HEFT_ID_BASE, /* gpt-rs: follows from the name, so that a file need not store it; names that are not ASCII have none */
    HEFT_ID_BURN  /* Burn: a number that Burnpack files store */
} heft_id_kind;
typedef struct heft_id {
    heft_id_kind kind;
    uint8_t base
        [16]; /* BASE: the number as gpt-rs stores it, little-endian; heft_param_base_id() makes one */
    uint64_t burn; /* BURN */
} heft_id;
/* Returns the first tensor that has the identity, or HEFT_NONE when no tensor has it.  count may be NULL; *count becomes
 * the number of tensors that have the identity.  The base id of a tensor follows from its name, whatever id the file
 * stores.  A call looks at every tensor: for many lookups see heft_ids_open().  Any thread. */
HEFT_API uint32_t heft_tensor_find_id(const heft_file *f, const heft_id *id, uint32_t *count);
/* The identities of all tensors, sorted: finding one takes a binary search, from any thread.  Close it before f. */
typedef struct heft_ids heft_ids;
HEFT_API HEFT_MUST_CHECK heft_status heft_ids_open(heft_ids **out, const heft_file *f,
                                                   heft_error *err);
HEFT_API uint32_t heft_ids_find(const heft_ids *ids, const heft_id *id, uint32_t *count);
HEFT_API void heft_ids_close(heft_ids *ids); /* NULL is harmless */

HEFT_API heft_str heft_tensor_layout_name(const heft_file *f,
                                          uint32_t tensor); /* "dense", "sparse_csr", … */
/* Decoded bytes of the tensor's data part, or of all its parts when it has none of that role;
 * HEFT_UNKNOWN_LENGTH when one of them has no known length. */
HEFT_API uint64_t heft_tensor_bytes(const heft_file *f, uint32_t id);
/* The part of that role (a number for heft_part_at) of a tensor or, with HEFT_NONE, of the file. */
HEFT_API uint32_t heft_part_find(const heft_file *f, uint32_t owner, heft_str role);
HEFT_API heft_part heft_part_at(const heft_file *f, uint32_t part);
HEFT_API uint32_t heft_file_parts(const heft_file *f, uint32_t *first); /* how many, from *first */

/* Tensors that share their bytes, as tied weights do: first, with room for heft_tensor_count() numbers, gets for
 * each tensor the first one that lies in the same places of the same files, perhaps itself. */
HEFT_API HEFT_MUST_CHECK heft_status heft_tensor_find_tied(uint32_t *first, const heft_file *f,
                                                           heft_error *err);

typedef enum heft_kind {
    HEFT_KIND_NULL,
    HEFT_KIND_BOOL,
    HEFT_KIND_INT,
    HEFT_KIND_UINT,
    HEFT_KIND_FLOAT,
    HEFT_KIND_STR,
    HEFT_KIND_BYTES,
    HEFT_KIND_ID128, /* sixteen bytes, a 128-bit number stored little-endian */
    HEFT_KIND_ARRAY, /* numbers of one element type, in place */
    HEFT_KIND_LIST,
    HEFT_KIND_MAP
} heft_kind;

typedef struct heft_value {
    heft_kind kind;
    /* INT, UINT, FLOAT: the element type that the number has or is to have in a file.  BYTES: HEFT_U8
     * when they are a text that is not UTF-8.  HEFT_UNTYPED: nothing is said. */
    heft_dtype stored;
    heft_str key; /* empty inside a list */
    union {
        bool b;
        int64_t i;
        uint64_t u;
        double f;
        heft_str s; /* STR, BYTES, ID128 */
        struct {
            uint32_t count, end; /* LIST, MAP: direct children; the value behind the last of them */
        } container;
        struct {
            const void *ptr;
            uint32_t count;
            heft_dtype dtype;
        } array;
    } as;
} heft_value;

/* Metadata of the file: a flat list in which a container stands before its children.  The first
 * child of value i is i + 1; behind value i, children included, comes heft_meta_next(f, i). */
HEFT_API uint32_t heft_meta_count(const heft_file *f); /* one past the last value */
HEFT_API heft_value heft_meta_at(const heft_file *f, uint32_t i);
HEFT_API uint32_t heft_meta_next(const heft_file *f, uint32_t i);
HEFT_API bool heft_meta_find(heft_value *out, const heft_file *f, const char *key); /* top level */
/* The i-th value of a tensor's attributes ("burn.param_id", "gptrs.base_id", …), false past the last: a
 * flat list like that of the metadata, where a container's end counts in i. */
HEFT_API bool heft_attribute_at(heft_value *out, const heft_file *f, uint32_t tensor, uint32_t i);

/* ---- bytes -------------------------------------------------------------------------------- */

/* The part's bytes in place, or NULL when they are encoded, when there are none, or when the
 * source cannot lend them.  Whoever reads them while another program cuts the file short gets
 * what the system does then: SIGBUS.  heft_part_read() gets HEFT_E_IO instead. */
/* The bytes are lent as they are: no digest is checked, whatever the file was opened with; see heft_part_verify().  Their
 * address is aligned as their offset in the file is, which heft_file_alignment() tells of: a program that reads them as
 * numbers takes heft_array_view(), which copies what is not aligned. */
HEFT_API const void *heft_part_view(const heft_file *f, uint32_t part);
/* Decoded bytes [from, from + len) of a part.  With check_parts, and when that is the whole part, HEFT_E_CHECKSUM: buf
 * has the bytes, whose digest is wrong. */
HEFT_API HEFT_MUST_CHECK heft_status heft_part_read(void *buf, const heft_file *f, uint32_t part,
                                                    uint64_t from, size_t len, heft_error *err);
/* All decoded bytes of parts[i] into buffers[i], which has room for its length, for i below count: on all
 * threads of the file's host, in the order in which the parts lie.  After an error or a stop the contents
 * of the buffers are undefined.  progress may be NULL.  HEFT_E_ARGUMENT: there is no such part, or its
 * length is not known.  From a source with HEFT_ACCESS_DIRECT, large parts come without a copy into buffers
 * whose addresses are, modulo 512, their offsets in the file. */
HEFT_API HEFT_MUST_CHECK heft_status heft_part_read_many(void *const *buffers, const heft_file *f,
                                                         const uint32_t *parts, uint32_t count,
                                                         heft_progress_fn progress, void *ctx,
                                                         heft_error *err);
/* ---- whole tensors ---- */

/* A dense tensor in memory: its elements row by row, little-endian, packed types in whole blocks.  A program may also
 * fill one in itself, to save it with heft_array_save(). */
typedef struct heft_array {
    heft_str name;
    const void *data;
    uint64_t bytes;       /* at data */
    const uint64_t *dims; /* rank numbers, the outermost dimension first */
    uint32_t rank;
    heft_dtype dtype;
    const heft_allocator
        *allocator; /* that data came from; NULL: data belongs to the file or to the caller */
} heft_array;

/* Reads the dense tensor `name` as element type `as`, or HEFT_UNTYPED: as the type that it has.  memory NULL: into
 * memory of the file's host, aligned to 64 bytes, which heft_array_free() gives back; else into memory, which has
 * room for `capacity` bytes.  out->name and out->dims are borrowed from the file.  On failure *out is empty.
 *   HEFT_E_NOTFOUND     there is no tensor of that name
 *   HEFT_E_UNSUPPORTED  the tensor is not dense, or heft_dtype_can_cast() is false; nothing is read
 *   HEFT_E_ARGUMENT     the capacity is too small; the message says how many bytes are needed
 * Casts and large tensors use all threads of the file's host.  Any thread. */
HEFT_API HEFT_MUST_CHECK heft_status heft_array_read(heft_array *out, const heft_file *f,
                                                     heft_str name, heft_dtype as, void *memory,
                                                     size_t capacity, heft_error *err);
/* The same in the tensor's own element type and without a copy where that is possible: data are then the bytes in the
 * mapped file, which heft_part_view() tells of, not to be written to and gone with the file.  Data that are compressed,
 * not contiguous, or not aligned for their element type in the file, are copied.  In both cases data are aligned
 * to the size of an element, 8 bytes at most, and heft_array_free() gives back what is to be given back.  With
 * check_parts the digest is checked either way. */
HEFT_API HEFT_MUST_CHECK heft_status heft_array_view(heft_array *out, const heft_file *f,
                                                     heft_str name, heft_error *err);
HEFT_API void heft_array_free(heft_array *a); /* an empty one is harmless */

/* Memory for weights: zeroed, whole huge pages where the system has them, aligned to those, and found by
 * whoever touches it first.  NULL: there is none.  Free it with the same number of bytes. */
HEFT_API void *heft_buffer_new(size_t bytes);
HEFT_API void heft_buffer_free(void *p, size_t bytes); /* NULL is harmless */
/* The decoded bytes of a part from the first to the last, in pieces as large as you like: what
 * heft_part_read() does with offsets is slow on compressed parts, which have no middle to begin at. */
typedef struct heft_stream heft_stream;
HEFT_API HEFT_MUST_CHECK heft_status heft_stream_open(heft_stream **out, const heft_file *f,
                                                      uint32_t part, heft_error *err);
/* The same, and its digest is checked, whatever the file was opened with. */
HEFT_API HEFT_MUST_CHECK heft_status heft_stream_open_checked(heft_stream **out, const heft_file *f,
                                                              uint32_t part, heft_error *err);
/* The next len bytes; the part must have as many left.  Where the digest is checked, what reads the last byte returns
 * HEFT_E_CHECKSUM when it is wrong: buf has the bytes then.  For an empty part that is reading 0 bytes. */
HEFT_API HEFT_MUST_CHECK heft_status heft_stream_read(void *buf, heft_stream *s, size_t len,
                                                      heft_error *err);
/* The same without a copy where the source can lend the bytes: *data is where they are, in place, which heft_part_view()
 * tells of, or in buf. */
HEFT_API HEFT_MUST_CHECK heft_status heft_stream_view(const void **data, heft_stream *s, void *buf,
                                                      size_t len, heft_error *err);
HEFT_API void heft_stream_close(heft_stream *s); /* NULL is harmless */
/* Many parts that are each read as a whole, through streams on any number of threads, with all that can be checked of
 * them on the way: the digest of each part, by its stream; and by heft_checked_read_end(), after the last byte, the
 * checksums of ranges in which nothing but these parts lies, such as that of all data in an EMBD file.  parts: those
 * that will be read, count of them; NULL: every part of every tensor.  What the checksums cover besides, headers in
 * front of arrays, is read at the end, as is what was not read after all.  HEFT_E_CHECKSUM at the first one that is
 * wrong. */
typedef struct heft_checked_read heft_checked_read;
HEFT_API HEFT_MUST_CHECK heft_status heft_checked_read_open(heft_checked_read **out,
                                                            const heft_file *f,
                                                            const uint32_t *parts, uint32_t count,
                                                            heft_error *err);
/* A stream of one of those parts, from any thread. */
HEFT_API HEFT_MUST_CHECK heft_status heft_checked_read_stream(heft_stream **out,
                                                              heft_checked_read *r, uint32_t part,
                                                              heft_error *err);
HEFT_API HEFT_MUST_CHECK heft_status heft_checked_read_end(heft_checked_read *r, heft_error *err);
HEFT_API void heft_checked_read_close(
    heft_checked_read *r); /* after its streams; NULL is harmless */
/* A hint that these parts will be read soon. */
HEFT_API void heft_part_prefetch(const heft_file *f, const uint32_t *parts, size_t n);

/* count numbers as doubles, from number first_elem of those at src on; a complex number is two.  src is
 * where number 0 is, little-endian as in files.  false for element types that have no numbers. */
HEFT_API bool heft_dtype_to_f64(double *out, heft_dtype t, const void *src, uint64_t first_elem,
                                size_t count);
/* count elements from one type to another: nearest, ties to even, for floats; towards zero and saturated for
 * integers, with NaN as 0; anything but zero is true.  What is too large for a float becomes its infinity,
 * or its largest number where it has none.  A NaN keeps its sign and the leading bits of its payload where there is
 * room.  docs/casting.md says it type by type.
 * Complex becomes complex only; block-quantised types are only read, as f16, bf16, f32 or f64.
 * Packed types begin and end with a block on either side; what is left of the last one becomes 0.
 * Both sides are little-endian and do not overlap.
 * false when there is no such conversion; heft_dtype_can_cast() says so beforehand. */
HEFT_API bool heft_dtype_can_cast(heft_dtype to, heft_dtype from);
HEFT_API bool heft_dtype_cast(void *dst, heft_dtype to, const void *src, heft_dtype from,
                              size_t count);

#ifdef __cplusplus
}
#endif

#include <heft/check.h>
#include <heft/companion.h>
#include <heft/write.h>
#endif
