/* heft.h - open files of model weights of any supported format, find tensors and read them.
 *
 * A file is opened, its tensors are listed or found by name, and their bytes are read or viewed in
 * place.  A tensor consists of parts: a dense tensor of one, "data"; a sparse one of several, such
 * as "values" and "indices".  This program prints a tensor of any element type as f32:
 *
 *     #include <heft/heft.h>
 *     #include <stdio.h>
 *
 *     int main(int argc, char **argv)
 *     {
 *         heft_file *file = NULL;
 *         heft_array array;
 *         heft_error err;
 *         if (argc != 3)
 *             return 2;
 *         if (heft_file_open(&file, argv[1], NULL, &err) ||
 *             heft_array_read(&array, file, heft_str_from(argv[2]), HEFT_F32, NULL, 0, &err)) {
 *             fprintf(stderr, "%s: %s\n", argv[1], err.message);
 *             heft_file_close(file);
 *             return 1;
 *         }
 *         const float *values = array.data;
 *         for (size_t i = 0; i < array.bytes / sizeof *values; i++)
 *             printf("%g\n", (double)values[i]);
 *         heft_array_free(&array);
 *         heft_file_close(file);
 *     }
 *
 * This header is for programs that open and read files.  Further headers include it:
 *   source.h         sources of bytes, feeding, joining files;
 *   memory_limits.h  limits and allocators;
 *   check.h          verify checksums and rules, hash tensors;
 *   write.h          write and convert files;
 *   editing.h        change files, append tensors;
 *   split.h          write a model as several files;
 *   ids.h            identities of tensors in gpt-rs and Burn;
 *   vocabulary.h     vocabularies;
 *   companion.h      settings and profiles of models;
 *   map.h            names and layouts of other frameworks;
 *   gguf_texts.h     metadata of GGUF files from texts next to weights, and back;
 *   lora.h           merge adapters into a model, or make them;
 *   blend.h          blend models;
 *   delta.h          what changed between two models;
 *   scheme.h         quantised tensors that several stored tensors represent;
 *   block_rows.h     encode and decode rows of block-quantised types;
 *   quantise.h       models whose weights are quantised;
 *   mix.h            models of block types of GGUF, as llama-quantize makes them;
 *   doctor.h         find out why a file does not open;
 *   share.h          convert in shares on several machines;
 *   sign.h           signatures of models;
 *   params.h         parameters in a memory budget;
 *   remote.h         files on servers;
 *   heft_ext.h       your own sources, sinks, threads, digests;
 *   all.h            all of these.
 *
 * Which way to read?  Opening reads the index only; data are read when they are asked for.
 *
 *     the file is               open it with               cost; who owns the bytes
 *     at a path, or a folder    heft_file_open()           mapped, or read on demand
 *     in memory                 heft_source_open_memory(), no copy; yours, until the file
 *                               heft_file_open_source()    is closed
 *     in flash memory           heft_file_open_in_place()  as in memory, with the least code
 *     fetched by you            heft_file_begin(), _feed() you feed ranges; no call waits
 *     on a server               heft_file_open()           requests for the ranges that are read
 *     of another kind           heft_source of heft_ext.h  that of your functions
 *
 *     you want                  call                       cost; who owns the result
 *     a tensor as any type      heft_array_read()          a copy, converted; heft_array_free()
 *     a tensor as stored        heft_array_view()          no copy if possible; heft_array_free()
 *     a slice of a tensor       heft_array_read_slice()    little more than its bytes; your buffer
 *     a part in place           heft_part_view()           none; the file; NULL if not possible
 *     bytes of a part           heft_part_read()           a copy; your buffer
 *     many parts                heft_part_read_many()      a copy, on all threads; your buffers
 *     a large or encoded part   heft_stream_read()         pieces of any size; your buffer
 *     all checksums compared    heft_checked_read_open()   streams; covered bytes are read once
 *     parameters, lazily        heft_params_acquire()      loaded on first use, under a budget;
 *                                                          the store, until they are released
 *     parameters as f32, tiles  heft_params_resolve()      made once, then as above
 *
 * Rules for all functions, unless a comment says otherwise:
 *   Errors     A function that can fail returns heft_status and takes a heft_error last, which may
 *              be NULL.  HEFT_E_NOMEM, HEFT_E_IO and HEFT_E_LIMIT can come from every such function
 *              and are not repeated below.
 *   Numbers    Things of a list have the numbers 0 to count - 1: ..._count() returns the count,
 *              ..._at() the thing of a number.  A number past the end returns an empty thing,
 *              without name, text or rule, or, from a function that can fail, HEFT_E_ARGUMENT.
 *   Arguments  Output parameters come first, then the object, then the rest.  Pointers must not be
 *              NULL, except err, options and callbacks.  Options begin with `size`: initialise them
 *              with HEFT_..._INIT, so that the library knows which members the program has.
 *   Ownership  An object returned through T ** is the caller's, until its _close, _finish or
 *              _discard.  Pointers and heft_str results are borrowed from the object that they came
 *              from; pointers from a heft_file stay valid until heft_file_close().  Arguments are
 *              borrowed until the call returns.  A parameter named `take` becomes the library's,
 *              even if the call fails.
 *   Threads    Several threads may read one open heft_file at the same time.  Any other object is
 *              used by one thread at a time; different objects are independent.
 *   Callbacks  A callback runs during the call that it was given to, on the calling thread, and
 *              never while the library holds a lock.
 *   Units      Offsets and sizes are bytes.  Shapes are row-major, outermost dimension first.
 *              Numbers in files are little-endian.  Text is UTF-8 and not terminated.
 *
 * Stability: stable. */
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

/* ---- version, status, errors -------------------------------------------------------------- */

#define HEFT_VERSION_MAJOR 0
#define HEFT_VERSION_MINOR 1
#define HEFT_VERSION_PATCH 0
/* Return the version of the library in use: major << 16 | minor << 8 | patch. */
HEFT_API uint32_t heft_version(void);

typedef enum heft_status {
    HEFT_OK = 0,
    HEFT_AGAIN = 1,          /* more bytes are needed: see heft_file_needs() */
    HEFT_E_FORMAT = -1,      /* the bytes break the rules of the format, or no format is known */
    HEFT_E_UNSUPPORTED = -2, /* well formed, but not supported by this build */
    HEFT_E_LIMIT = -3,       /* a limit of heft_limits was reached */
    HEFT_E_NOMEM = -4,       /* the allocator returned NULL */
    HEFT_E_IO = -5,          /* reading or writing failed; heft_error.os holds errno */
    HEFT_E_CHECKSUM = -6,    /* a checksum in the file does not match the covered bytes */
    HEFT_E_NOTFOUND = -7,    /* there is no tensor, part or format of that name */
    HEFT_E_ARGUMENT = -8,    /* the caller broke a rule of this header */
    HEFT_E_LOSSY = -9,       /* the target format cannot represent part of the model */
    HEFT_E_CANCELLED = -10   /* a progress callback returned false, or heft_url_interrupt() */
} heft_status;

#define HEFT_NONE           UINT32_MAX /* no tensor or part; the file itself as an owner of parts */
#define HEFT_NOWHERE        UINT64_MAX /* an offset: no particular byte */
#define HEFT_UNKNOWN_LENGTH UINT64_MAX /* a length or size: not known */

/* The file that an error is about, if a function reads one file and writes another. */
typedef enum heft_about {
    HEFT_ABOUT_NOTHING = 0, /* neither, such as a lack of memory; or unknown */
    HEFT_ABOUT_SOURCE = 1,  /* the file that is read */
    HEFT_ABOUT_TARGET = 2   /* the output or what it should be; the file that is appended to */
} heft_about;

typedef struct heft_error {
    heft_status status;
    int32_t os;        /* errno, or 0 */
    uint64_t offset;   /* byte of the file that the message is about, or HEFT_NOWHERE */
    char message[240]; /* one line without the path and a newline, always terminated */
    /* Stable name of the violated rule, "heft/limit-tensors", or NULL; docs/findings.md lists all
     * rules.  The text is static. */
    const char *rule;
    /* Size that the content of the file asks for, at least, when the file has a different size, as
     * a truncated file has; otherwise 0. */
    uint64_t expected_bytes;
    heft_about about;
    /* The file that the error is about, of a function that takes several: counted from 1, in the
     * order of the arguments, also when a model made of them is read.  0: not known. */
    uint32_t input;
    uint8_t reserved[8]; /* 0 */
} heft_error;

typedef enum heft_severity {
    HEFT_NOTE,    /* nothing is wrong */
    HEFT_WARNING, /* allowed, but other readers may fail */
    HEFT_FAULT    /* a rule of the format is broken, or a checksum does not match */
} heft_severity;

/* Return the name of a status, "format" or "io"; "unknown" for any other value. */
HEFT_API const char *heft_status_name(heft_status s);

typedef struct heft_str { /* text, not terminated */
    const char *ptr;
    size_t len;
} heft_str;

/* Make a heft_str from a string literal: heft_tensor_find(f, HEFT_STR("wte.weight")). */
#ifdef __cplusplus
#define HEFT_STR(literal) (heft_str{ "" literal, sizeof(literal) - 1 })
#else
#define HEFT_STR(literal) ((heft_str){ "" literal, sizeof(literal) - 1 })
#endif
/* Make a heft_str from terminated text.  The text is borrowed; it must not be NULL. */
HEFT_API heft_str heft_str_from(const char *text);

typedef struct heft_range {
    uint64_t offset, length;
} heft_range;

enum { HEFT_HASH_BYTES = 32 };
typedef struct heft_hash {
    uint8_t bytes[HEFT_HASH_BYTES];
} heft_hash;

/* Progress in bytes; done stays 0 while a conversion is planned.  Return false to stop with
 * HEFT_E_CANCELLED.  Called on any thread of the host's executor, by one thread at a time; the
 * other threads go on working meanwhile. */
typedef bool (*heft_progress_fn)(void *ctx, uint64_t done, uint64_t total);

/* ---- opening ------------------------------------------------------------------------------ */

typedef struct heft_file heft_file;
typedef struct heft_format heft_format;
typedef struct heft_source heft_source;
typedef struct heft_limits heft_limits;
typedef struct heft_allocator heft_allocator;
typedef struct heft_host heft_host;                 /* memory, threads, codecs: heft_ext.h */
typedef struct heft_shard_folder heft_shard_folder; /* access to shards: heft_ext.h */
typedef struct heft_folder heft_folder;             /* files next to the file: heft_ext.h */
typedef struct heft_sink heft_sink;                 /* receives a file: write.h */
typedef struct heft_vocab heft_vocab;               /* tokens: vocabulary.h */
typedef struct heft_settings heft_settings;         /* values of a config.json: companion.h */
typedef struct heft_schemes heft_schemes;           /* quantised tensors: scheme.h */

/* Chooses the element types of arrays that a file stores without a type: NumPy does so with types
 * that it does not know (bfloat16 is V2). */
typedef struct heft_array_types {
    void *ctx;
    /* Return the type for an array with elements of this many bytes, or HEFT_UNTYPED to let Heft
     * choose.  A type of another size is HEFT_E_ARGUMENT.  Called by the thread that opens the
     * file, perhaps several times for an array; the answer must be the same each time. */
    heft_dtype (*choose)(void *ctx, heft_str array, uint64_t bytes);
} heft_array_types;

typedef struct heft_open_options {
    size_t size;               /* = sizeof(heft_open_options) */
    const heft_format *format; /* NULL: detect the format by content */
    const heft_host *host;     /* NULL: heft_host_default(); must outlive the file */
    const heft_limits *limits; /* NULL: the defaults */
    /* NULL: heft_file_open() looks for shards in the folder of path, other functions do not. */
    const heft_shard_folder *shards;
    /* Open only this entry of a nested file (HEFT_CAN_OPEN_KEY), "state_dict" or "ema.model";
     * tensor names are relative to the entry.  NULL: the whole file.  Borrowed until the file is
     * open. */
    const char *key;
    /* The other files of a model's folder: shards that no index lists, and files that are not read
     * and reported; set by heft_file_open() for a folder.  NULL: none; builds for boards and
     * browsers take none.  Borrowed until the file is open. */
    const heft_folder *folder;
    /* The types of arrays without a type, in the file and in its shards.  NULL: Heft chooses, or
     * leaves the array out; builds for boards and browsers take none.  Borrowed until the file is
     * open. */
    const heft_array_types *array_types;
    /* Compare a part's digest when the whole part is read by heft_part_read(),
     * heft_part_read_many(), heft_array_read(), heft_array_view(), a heft_stream or
     * heft_file_hash(): HEFT_E_CHECKSUM on a mismatch.  For the digest of a part see
     * heft_part_verify().  Reading a section of a part and heft_part_view() check nothing. */
    bool check_parts;
    /* Open the file even if a checksum of the header or index does not match; heft_file_verify()
     * reports that checksum as a fault. */
    bool no_verify;
    /* A heft_access: how heft_file_open() reads the file and the shards. */
    uint8_t access;
    /* heft_file_open() follows symbolic links that leave the model's folder. */
    bool follow_links;
    /* heft_array_read(), heft_array_read_slice() and heft_derivation_f32() convert the stored
     * numbers of quantised tensors, without their scales; by default this is an error. */
    bool raw_tensors;
    uint8_t reserved[3]; /* 0: up to 8 bytes */
} heft_open_options;
#define HEFT_OPEN_OPTIONS_INIT                                                                \
    {                                                                                         \
        sizeof(heft_open_options), NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, false, 0, \
            false, false,                                                                     \
        {                                                                                     \
            0                                                                                 \
        }                                                                                     \
    }

/* Open a file, or the model in a folder (docs/shards.md says which file of the folder is opened).
 * Reads only the index, and the cost does not depend on the size of the data; the exception is a
 * compressed part without a stated decoded length, which is decoded to learn the length.  opt may
 * be NULL.
 *
 * Shards are opened in the folder of the file, but not through symbolic links that leave the
 * folder.  A missing shard is an error only when a part in that shard is read: see
 * heft_file_is_complete().
 *   HEFT_E_FORMAT       no format recognises the file, or the file is damaged
 *   HEFT_E_UNSUPPORTED  a version or feature that this build does not handle; a key in a format
 *                       without HEFT_CAN_OPEN_KEY
 *   HEFT_E_CHECKSUM     a checksum of the header or index does not match, unless opt->no_verify
 *   HEFT_E_IO           the file cannot be read, or an interrupted edit or split must be recovered
 *                       first: heft_edit_recover() */
HEFT_API HEFT_MUST_CHECK heft_status heft_file_open(heft_file **out, const char *path,
                                                    const heft_open_options *opt, heft_error *err);
/* Like heft_file_open(), from a source instead of a path. */
HEFT_API HEFT_MUST_CHECK heft_status heft_file_open_source(heft_file **out, heft_source *take,
                                                           const heft_open_options *opt,
                                                           heft_error *err);
/* Close a file and free everything that was borrowed from it.  NULL is ignored. */
HEFT_API void heft_file_close(heft_file *f);

/* ---- tensors and parts -------------------------------------------------------------------- */

typedef enum heft_layout {
    HEFT_DENSE,
    HEFT_SPARSE_CSR, /* compressed sparse rows: parts "values", "indices", "indptr" */
    HEFT_SPARSE_COO, /* coordinates: parts "values", "coords" */
    HEFT_LAYOUT_OTHER
} heft_layout;
typedef enum heft_encoding {
    HEFT_RAW,
    HEFT_ZSTD,
    HEFT_DEFLATE,
    HEFT_ENCODING_OTHER, /* an unknown encoding: parts are listed, but not decoded */
    HEFT_MSGPACK,        /* consecutive MessagePack numbers, each with a type byte */
    HEFT_PROTOBUF        /* fields of a protobuf message with numbers, packed or not */
} heft_encoding;

/* How a part of a tensor is to be stored: see write.h. */
typedef struct heft_storage {
    heft_encoding encoding; /* a part that would not get smaller may stay raw */
    int level;              /* 0: the codec's default */
    const char *digest;     /* algorithm, "crc32c", "sha256" or "xxh3"; NULL: none */
    uint64_t reserved[2];   /* 0: room for two options of codecs */
} heft_storage;

typedef struct heft_tensor {
    heft_str name;
    const uint64_t *dims;
    uint32_t rank;                   /* number of dims */
    uint32_t first_part, part_count; /* part_count may be 0 */
    heft_dtype dtype;
    uint8_t layout;   /* heft_layout; heft_tensor_layout_name() returns the name */
    uint8_t reserved; /* 0: up to 8 bytes */
} heft_tensor;

typedef struct heft_part {
    heft_str role;           /* "data", "indices", "scale"; of the file: "vocab" */
    uint64_t offset, stored; /* range of the file: first byte, number of stored bytes */
    uint64_t length;         /* decoded bytes, or HEFT_UNKNOWN_LENGTH */
    heft_str digest;         /* spelled as in the file, "crc32c:0x1A2B3C4D"; empty: none */
    heft_dtype dtype;
    uint8_t encoding; /* heft_encoding */
    uint8_t reserved; /* 0: up to the next member */
    uint32_t shard;   /* 0: the part is in this file; else in heft_shard_file_at(f, shard - 1) */
} heft_part;

/* Return the number of tensors.  Ids are 0 to number - 1, in the order of the file. */
HEFT_API uint32_t heft_tensor_count(const heft_file *f);
/* Return a tensor by id.  Constant time. */
HEFT_API heft_tensor heft_tensor_at(const heft_file *f, uint32_t id);
/* Return the id of the tensor with that name, or HEFT_NONE.  Constant time on average. */
HEFT_API uint32_t heft_tensor_find(const heft_file *f, heft_str name);
/* Return the name of the tensor's layout, "dense" or "sparse_csr". */
HEFT_API heft_str heft_tensor_layout_name(const heft_file *f, uint32_t tensor);
/* Return the decoded bytes of the tensor: of the only part or of the part "data", else the sum of
 * all parts.  HEFT_UNKNOWN_LENGTH if a length is not known. */
HEFT_API uint64_t heft_tensor_bytes(const heft_file *f, uint32_t id);

/* Return a part by number: tensor.first_part and the numbers that follow. */
HEFT_API heft_part heft_part_at(const heft_file *f, uint32_t part);
/* Return the number of the part with that role, or HEFT_NONE.  owner: id of a tensor, or HEFT_NONE
 * for parts of the file. */
HEFT_API uint32_t heft_part_find(const heft_file *f, uint32_t owner, heft_str role);
/* Return how many parts belong to the file and not to a tensor; *first becomes the first number. */
HEFT_API uint32_t heft_file_parts(const heft_file *f, uint32_t *first);

/* Find tensors with the same bytes in the file (tied weights).  first: array of heft_tensor_count()
 * elements; first[i] becomes the lowest id of a tensor with the byte ranges of tensor i. */
HEFT_API HEFT_MUST_CHECK heft_status heft_tensor_find_tied(uint32_t *first, const heft_file *f,
                                                           heft_error *err);

/* ---- reading whole tensors ---------------------------------------------------------------- */

/* A dense tensor in memory: row by row, little-endian, packed types in whole blocks.  A program may
 * also fill in an array, for heft_array_save(). */
typedef struct heft_array {
    heft_str name;
    const void *data;
    uint64_t bytes;       /* size of data */
    const uint64_t *dims; /* rank numbers */
    uint32_t rank;
    heft_dtype dtype;
    const heft_allocator *allocator; /* allocator of data; NULL: data is borrowed */
} heft_array;

/* Read a dense tensor and convert it to element type `as`; HEFT_UNTYPED keeps the stored type.
 * memory: buffer of `capacity` bytes, or NULL to allocate a buffer aligned to 64 bytes.  Free
 * the array with heft_array_free(); name and dims are borrowed from the file.  On failure *out is
 * empty.  Large tensors are read and converted by all threads of the file's host.
 *   HEFT_E_NOTFOUND     there is no tensor of that name
 *   HEFT_E_UNSUPPORTED  the tensor is not dense, heft_dtype_can_cast() is false, or the tensor is
 *                       part of a quantised tensor (scheme.h, rule "heft/quantised"), whose
 *                       scales a conversion would lose: see heft_open_options.raw_tensors
 *   HEFT_E_ARGUMENT     capacity is too small; the message says how many bytes are needed */
HEFT_API HEFT_MUST_CHECK heft_status heft_array_read(heft_array *out, const heft_file *f,
                                                     heft_str name, heft_dtype as, void *memory,
                                                     size_t capacity, heft_error *err);
/* The `count` indices of a dimension that a slice selects: start, start + step, ... */
typedef struct heft_slice {
    uint64_t start, count;
    int64_t step; /* may be negative; not 0 if count exceeds 1 */
} heft_slice;
/* Read the elements of a dense tensor that a slice selects into buf, row by row, as element type
 * `as`; HEFT_UNTYPED keeps the stored type.  axes: a slice for each dimension; NULL for rank 0.
 * Only the bytes of the elements and small gaps are read; a compressed tensor is decoded as a
 * whole.  A digest is compared only if the whole tensor is read or decoded.
 *   HEFT_E_NOTFOUND     there is no tensor of that name
 *   HEFT_E_ARGUMENT     the slice leaves the tensor, or exceeds capacity bytes
 *   HEFT_E_UNSUPPORTED  as heft_array_read(); or elements of `as` share bytes: packed and block
 *                       types are read as plain types */
HEFT_API HEFT_MUST_CHECK heft_status heft_array_read_slice(void *buf, size_t capacity,
                                                           const heft_file *f, heft_str name,
                                                           const heft_slice *axes, heft_dtype as,
                                                           heft_error *err);
/* Get a dense tensor in the stored element type, without a copy if possible: data then points into
 * the file as heft_part_view() does, is read-only and ends with the file.  Data that are
 * compressed, not contiguous or not aligned in the file are copied.  Either way data are aligned to
 * the element size, at most 8 bytes; call heft_array_free() in both cases.  Errors as
 * heft_array_read(). */
HEFT_API HEFT_MUST_CHECK heft_status heft_array_view(heft_array *out, const heft_file *f,
                                                     heft_str name, heft_error *err);
/* Free data unless borrowed, and empty the array.  An empty array is ignored. */
HEFT_API void heft_array_free(heft_array *a);

/* Allocate zeroed memory for weights, aligned to huge pages (2 MiB); pages are allocated on first
 * touch.  NULL on failure. */
HEFT_API void *heft_buffer_new(size_t bytes);
/* Free a buffer; bytes as for heft_buffer_new().  p may be NULL. */
HEFT_API void heft_buffer_free(void *p, size_t bytes);

/* ---- reading parts ------------------------------------------------------------------------ */

/* Return the bytes of a part in place, valid until heft_file_close(); NULL if the part is empty or
 * encoded, if the elements are not contiguous and little-endian, or if the source cannot be
 * mapped.  No digest is checked.  The address is aligned as the offset in the file: see
 * heft_file_alignment().  If the file is truncated meanwhile, touching the missing bytes raises
 * SIGBUS; heft_part_read() returns HEFT_E_IO instead. */
HEFT_API const void *heft_part_view(const heft_file *f, uint32_t part);
/* Read decoded bytes [from, from + len) of a part into buf.  For consecutive sections of an encoded
 * part use a stream: decoding always starts at the beginning of a part.
 *   HEFT_E_ARGUMENT  the part does not exist, or the range exceeds the part
 *   HEFT_E_CHECKSUM  the whole part was read into buf, and the digest does not match
 *                    (check_parts) */
HEFT_API HEFT_MUST_CHECK heft_status heft_part_read(void *buf, const heft_file *f, uint32_t part,
                                                    uint64_t from, size_t len, heft_error *err);
/* Read `count` whole parts: parts[i] into buffers[i], which holds the decoded length.  Uses all
 * threads of the file's host and reads in the order of the file.  After an error the contents of
 * the buffers are undefined.  progress may be NULL.  From a source with HEFT_ACCESS_DIRECT, large
 * parts are read without a copy if buffer address and file offset are equal modulo 512.
 *   HEFT_E_ARGUMENT  a part does not exist, or the length is HEFT_UNKNOWN_LENGTH */
HEFT_API HEFT_MUST_CHECK heft_status heft_part_read_many(void *const *buffers, const heft_file *f,
                                                         const uint32_t *parts, uint32_t count,
                                                         heft_progress_fn progress, void *ctx,
                                                         heft_error *err);
/* Hint that n parts will be read soon. */
HEFT_API void heft_part_prefetch(const heft_file *f, const uint32_t *parts, size_t n);

/* A stream reads the decoded bytes of one part from first to last.  Close the stream before the
 * file. */
typedef struct heft_stream heft_stream;
/* Open a stream over the decoded bytes of a part.  The part's digest is checked at the end if
 * heft_open_options.check_parts is set. */
HEFT_API HEFT_MUST_CHECK heft_status heft_stream_open(heft_stream **out, const heft_file *f,
                                                      uint32_t part, heft_error *err);
/* Like heft_stream_open(), and check the digest of the part even without check_parts. */
HEFT_API HEFT_MUST_CHECK heft_status heft_stream_open_checked(heft_stream **out, const heft_file *f,
                                                              uint32_t part, heft_error *err);
/* Read the next len bytes; HEFT_E_ARGUMENT if fewer are left.  If the digest is checked, the call
 * that reads the last byte fills buf and returns HEFT_E_CHECKSUM on a mismatch; read 0 bytes to
 * check the digest of an empty part. */
HEFT_API HEFT_MUST_CHECK heft_status heft_stream_read(void *buf, heft_stream *s, size_t len,
                                                      heft_error *err);
/* Like heft_stream_read(), without a copy if possible: *data points into the file as
 * heft_part_view() does, or to buf, a buffer of len bytes. */
HEFT_API HEFT_MUST_CHECK heft_status heft_stream_view(const void **data, heft_stream *s, void *buf,
                                                      size_t len, heft_error *err);
/* Close a stream, read to the end or not.  NULL is ignored. */
HEFT_API void heft_stream_close(heft_stream *s);

/* ---- element types (numbers: dtypes.h) ---------------------------------------------------- */

typedef struct heft_dtype_info {
    const char *name;                  /* "f32", "bf16", as on the command line */
    uint16_t block_elems, block_bytes; /* plain types: 1 and the element size */
    uint8_t dlpack_code, dlpack_bits;  /* DLPack's type code and bits; 255: none */
    uint8_t kind;                      /* heft_dtype_kind */
} heft_dtype_info;

/* Return the description of an element type; NULL for HEFT_UNTYPED and unknown numbers. */
HEFT_API const heft_dtype_info *heft_dtype_get(heft_dtype t);
/* Return the element type of that name, or HEFT_UNTYPED.  Letters of either case and usual names
 * are understood: "F16", "float16", "fp16" and "half" are f16. */
HEFT_API heft_dtype heft_dtype_find(heft_str name);
/* Return whether heft_dtype_cast() converts `from` to `to`. */
HEFT_API bool heft_dtype_can_cast(heft_dtype to, heft_dtype from);
/* Convert count elements.  Both sides are little-endian and do not overlap.  False:
 * heft_dtype_can_cast() is false.  docs/casting.md describes every pair of types.
 *   To floats: round to nearest, ties to even; overflow becomes infinity, or the largest number of
 *   a type without infinity; a NaN keeps its sign and as many leading payload bits as fit.
 *   To integers: round towards zero and saturate; NaN becomes 0.  To bool: true unless zero.
 *   Complex types convert only to complex types; block-quantised types only to f16, bf16, f32, f64.
 *   Packed types begin at a block; the unused rest of the last block becomes 0. */
HEFT_API bool heft_dtype_cast(void *dst, heft_dtype to, const void *src, heft_dtype from,
                              size_t count);
/* Convert count numbers to double, beginning with number first_elem; src points to number 0, and a
 * complex element counts as two numbers.  False: the type does not hold numbers. */
HEFT_API bool heft_dtype_to_f64(double *out, heft_dtype t, const void *src, uint64_t first_elem,
                                size_t count);

/* ---- metadata ----------------------------------------------------------------------------- */

typedef enum heft_kind {
    HEFT_KIND_NULL,
    HEFT_KIND_BOOL,
    HEFT_KIND_INT,
    HEFT_KIND_UINT,
    HEFT_KIND_FLOAT,
    HEFT_KIND_STR,
    HEFT_KIND_BYTES,
    HEFT_KIND_ID128, /* 16 bytes: a little-endian 128-bit number */
    HEFT_KIND_ARRAY, /* numbers of one element type, in place */
    HEFT_KIND_LIST,
    HEFT_KIND_MAP
} heft_kind;

typedef struct heft_value {
    heft_kind kind;
    /* INT, UINT, FLOAT: element type of the number in the file.  BYTES: HEFT_U8 if the bytes are
     * text that is not UTF-8.  HEFT_UNTYPED: not specified. */
    heft_dtype stored;
    heft_str key; /* empty in a list */
    union {
        bool b;
        int64_t i;
        uint64_t u;
        double f;
        heft_str s; /* STR, BYTES, ID128 */
        struct {    /* LIST, MAP: number of direct children, index after the last descendant */
            uint32_t count, end;
        } container;
        struct {
            const void *ptr; /* little-endian elements, perhaps not aligned */
            uint32_t count;
            heft_dtype dtype;
        } array;
    } as;
} heft_value;

/* Make a boolean of HEFT_KIND_BOOL, for functions that write metadata.  The key is borrowed. */
HEFT_API heft_value heft_value_bool(heft_str key, bool value);
/* Make an integer of HEFT_KIND_INT likewise. */
HEFT_API heft_value heft_value_int(heft_str key, int64_t value);
/* Make a number of HEFT_KIND_FLOAT likewise. */
HEFT_API heft_value heft_value_float(heft_str key, double value);
/* Make a text of HEFT_KIND_STR likewise; the text is borrowed, too. */
HEFT_API heft_value heft_value_str(heft_str key, heft_str value);

/* Return the number of all metadata values, children included.  Metadata is a flat list.  A list or
 * map precedes its children: the first child of value i is i + 1, and heft_meta_next(f, i) is the
 * index after value i and all descendants. */
HEFT_API uint32_t heft_meta_count(const heft_file *f);
/* Return value i. */
HEFT_API heft_value heft_meta_at(const heft_file *f, uint32_t i);
/* Return the index after value i and all descendants. */
HEFT_API uint32_t heft_meta_next(const heft_file *f, uint32_t i);
/* Find a top-level value by key; false if there is none. */
HEFT_API bool heft_meta_find(heft_value *out, const heft_file *f, heft_str key);
/* Return the number of a tensor's attributes ("burn.param_id"), children included: a flat list like
 * the metadata.  Linear time. */
HEFT_API uint32_t heft_attribute_count(const heft_file *f, uint32_t tensor);
/* Return value i of a tensor's attributes.  After a list or map continue with i =
 * value.as.container.end to skip the children. */
HEFT_API heft_value heft_attribute_at(const heft_file *f, uint32_t tensor, uint32_t i);

/* ---- facts of the file -------------------------------------------------------------------- */

/* Return the format of the file; static. */
HEFT_API const heft_format *heft_file_format(const heft_file *f);
/* Return the name of the file without folders; empty if not known. */
HEFT_API heft_str heft_file_name(const heft_file *f);
/* Return the version of the format: "1", "100", "snapshot"; may be empty. */
HEFT_API heft_str heft_file_version(const heft_file *f);
/* Return the program that wrote the file (stored by zTensor 1.0); may be empty. */
HEFT_API heft_str heft_file_generator(const heft_file *f);
/* Return the size of the file in bytes; of a model in shards, of the file that was opened. */
HEFT_API uint64_t heft_file_size(const heft_file *f);
/* Return the greatest power of two, at most 64 KiB, that divides the offset of every part; 0
 * without data. */
HEFT_API uint64_t heft_file_alignment(const heft_file *f);
/* Return the bytes of memory that the index occupies. */
HEFT_API uint64_t heft_file_memory(const heft_file *f);

typedef struct heft_shard_file { /* a further file with parts of the model */
    heft_str name;               /* file name; if not known, the label used in this file */
    uint64_t size;      /* bytes; of a shard that is not open as stated, or HEFT_UNKNOWN_LENGTH */
    heft_status status; /* HEFT_E_IO: missing or unreadable; HEFT_E_FORMAT: not that file */
    uint32_t is_assembled; /* 1: no file; the tensors that are assembled from pieces in others */
    uint32_t reserved[2];  /* 0: room for a size */
} heft_shard_file;
/* Return the number of other files that hold parts of the model.  Tensors that are assembled from
 * pieces have the next number as their heft_part.shard; it is no file. */
HEFT_API uint32_t heft_shard_file_count(const heft_file *f);
/* Return shard i. */
HEFT_API heft_shard_file heft_shard_file_at(const heft_file *f, uint32_t i);
/* Return HEFT_OK if every shard of the model is open and matches the index; else the first problem.
 * heft_file_verify() reports all problems. */
HEFT_API HEFT_MUST_CHECK heft_status heft_file_is_complete(const heft_file *f, heft_error *err);
/* Return HEFT_OK unless the file or a shard was truncated, extended or rewritten in place after
 * opening, judged by size and modification time: HEFT_E_IO.  heft_file_convert(), _split(),
 * _append(), _hash() and _verify() ask this before they succeed; ask it after reading several parts
 * that have to be of the same version. */
HEFT_API HEFT_MUST_CHECK heft_status heft_file_is_unchanged(const heft_file *f, heft_error *err);
/* Names, metadata and views point into mapped files: if another program truncates a file, touching
 * the missing bytes raises SIGBUS.  Between heft_file_guard() and heft_file_unguard() the missing
 * bytes read as zeros.  Pairs may be nested, and hold for all threads.  The library's functions
 * are guarded already. */
HEFT_API void heft_file_guard(const heft_file *f);
/* End a heft_file_guard().  HEFT_E_IO: missing bytes have been touched, now or earlier. */
HEFT_API HEFT_MUST_CHECK heft_status heft_file_unguard(const heft_file *f, heft_error *err);

/* ---- formats (static objects, in a stable order) ------------------------------------------ */

enum {
    HEFT_CAN_READ = 1,
    HEFT_CAN_WRITE = 2,
    HEFT_CAN_APPEND = 4,     /* accepts further tensors after heft_writer_begin() */
    HEFT_CAN_SPARSE = 8,     /* sparse tensors */
    HEFT_CAN_ENCODE = 16,    /* compressed parts */
    HEFT_CAN_META = 32,      /* metadata of some kind */
    HEFT_CAN_DIGEST = 64,    /* a digest for each part, of the caller's choice */
    HEFT_CAN_VOCAB = 128,    /* a vocabulary */
    HEFT_ONE_TENSOR = 256,   /* holds a single tensor without a name */
    HEFT_CAN_OPEN_KEY = 512, /* nested: heft_open_options.key opens an entry */
    HEFT_CAN_LISTS = 1024,   /* metadata may be lists and arrays, not only texts */
    HEFT_CAN_EDIT = 2048,    /* files are edited and appended to, not only written anew */
    HEFT_CAN_SCHEMES = 4096, /* programs that read it know quantised tensors of several parts */
    HEFT_CAN_REPLACE = 8192  /* not written, but plain elements are replaced where they are */
};
/* Return the number of formats in this build. */
HEFT_API uint32_t heft_format_count(void);
/* Return format i. */
HEFT_API const heft_format *heft_format_at(uint32_t i);
/* Find a format by name ("mag"); NULL if there is none. */
HEFT_API const heft_format *heft_format_find(heft_str name);
/* Find a format by the suffix of a path ("dir/model.mag"); NULL if none matches. */
HEFT_API const heft_format *heft_format_for_path(const char *path);
/* Return the name of the format on the command line: "gptrs-archive". */
HEFT_API const char *heft_format_name(const heft_format *f);
/* Return the name of the format for display: "gpt-rs tensor archive". */
HEFT_API const char *heft_format_title(const heft_format *f);
/* Return the suffixes of file names, separated by spaces: ".pt .pth"; empty: it is a folder. */
HEFT_API const char *heft_format_suffixes(const heft_format *f);
/* Return the versions that can be written, the default first: "1 100 snapshot". */
HEFT_API const char *heft_format_versions(const heft_format *f);
/* Return what the format can do: the sum of HEFT_CAN_... and HEFT_ONE_TENSOR. */
HEFT_API uint32_t heft_format_caps(const heft_format *f);

#ifdef __cplusplus
}
#endif
#endif
