/* file.h - struct heft_file, and the internal functions that read bytes of an open file. */
#ifndef HEFT_FILE_H
#define HEFT_FILE_H
#include <heft/check.h>
#include <heft/heft_ext.h>

#include "base/sized.h"
#include "core/read/input_window.h"
#include "format/format.h"

typedef struct heft_shard { /* a shard; opened or not */
    heft_str name;          /* file name, or the label in the index if no folder was given */
    heft_source *source;
    const uint8_t *whole_file; /* all bytes in memory, or NULL */
    heft_error *error;         /* why source is NULL; NULL if there is a source */
    const char *rule;          /* rule of the finding for error; NULL: derived from status */
    heft_file *model;          /* parsed shard, owner of source; NULL for plain data */
    heft_status status;
    uint32_t input;    /* number for heft_error.input, of files that were joined; 0: it has none */
    bool is_borrowed;  /* source is not closed with the file */
    bool is_assembled; /* no file: assembled tensors */
    /* Set after a system error: the shard may well be intact, so verify fails instead of reporting
     * a fault. */
    bool is_unreadable;
} heft_shard;

typedef struct heft_joined_file { /* a file whose tensors were added to this file's index */
    const heft_file *file;
    uint32_t first_shard;    /* number for heft_global_offset(); the shards of `file` follow */
    heft_str prefix;         /* precedes the names of the tensors */
    uint32_t first_tensor;   /* pipelines: id of the file's first tensor in the joined index */
    uint32_t first_checksum; /* number of the file's first checksum in the joined index */
} heft_joined_file;

typedef struct heft_gzip_content { /* a file compressed with gzip as a whole: gunzip.c */
    heft_range deflated;           /* range of the DEFLATE stream */
    uint32_t crc, isize; /* RFC 1952, trailer: CRC-32 of the content, length modulo 2^32 */
    bool is_compressed, was_decompressed;
} heft_gzip_content;

typedef struct heft_opened_container heft_opened_container; /* opened_container.h */

/* Functions of opening that heft_file_open_in_place() leaves out, so that a linker can drop the
 * code: a small program on a board needs none of the functions. */
typedef struct heft_opening {
    /* Implements heft_window.decode. */
    heft_status (*decode)(heft_window *in, heft_encoding e, heft_range stored, void *out,
                          size_t *len);
    /* Implements heft_window.container; NULL: HDF5 files are refused. */
    heft_status (*container)(heft_window *in, const heft_container **out,
                             const heft_packed_range *where);
    heft_status (*gunzip_detect)(heft_file *f, heft_error *err);
    heft_status (*gunzip)(heft_file *f, heft_error *err);
    heft_status (*resolve_lengths)(heft_file *f, heft_error *err);
    heft_status (*archive_enter)(heft_file *f, const uint8_t *head, size_t len, bool *is_entered,
                                 heft_error *err);
    heft_status (*archive_note)(heft_file *f);
    /* Return the error for a file that no format recognises. */
    heft_status (*detect_foreign)(const uint8_t *head, size_t head_len, const uint8_t *tail,
                                  size_t tail_len, uint64_t size, heft_error *err);
} heft_opening;

struct heft_file {
    const heft_host *host;
    const heft_opening *opening;
    heft_source *source;             /* NULL: the caller feeds the bytes */
    const heft_shard_folder *shards; /* the caller's; valid while opening */
    heft_shard *opened_shards;       /* one per x.shards, once opened */
    uint32_t opened_shard_count, opened_shard_capacity;
    heft_joined_file *joined_files;
    uint32_t joined_count, joined_capacity;
    heft_str name;             /* file name; may be empty */
    const heft_folder *folder; /* heft_open_options.folder; valid while opening */
    /* First reason why the model is incomplete, in the arena; NULL if the model is complete. */
    const heft_error *missing;
    /* Error of listing the folder, in the arena; NULL if the folder was listed or need not be. */
    const heft_error *list_error;
    const heft_format *format;
    heft_input input;
    heft_index x;
    heft_gzip_content gzip;
    heft_opened_container *container; /* an HDF5 file that was opened to list it, or NULL */
    void (*close_container)(heft_opened_container *c);
    heft_read_counter read_counter; /* unless x.limits refers to a counter of the caller */
    bool requested_ends;            /* the first and last bytes were requested */
    bool ready;
    bool is_pipeline;       /* the joined files are components, each with a prefix */
    bool has_folder_shards; /* no index lists the shards */
    bool has_ranks;         /* the shards are files of ranks, which the format joins */
    /* Once the file is ready, verify the digest of a part that is read as a whole. */
    bool check_parts;
    bool no_verify; /* a wrong checksum does not prevent opening */
    bool raw_tensors;
    /* Assembled tensors: by checksum, 1 if it matches and covers the boxes of several tensors, so
     * that it is not compared for each of them.  In the arena, and atomic; or NULL. */
    uint32_t *matching;
    /* heft_box_verify() of core/shards, set with the assembled tensors. */
    heft_status (*verify_box)(const heft_file *f, uint32_t row, uint32_t box, bool *is_compared,
                              heft_error *err);
    /* The quantised tensors, a heft_schemes *, once src/scheme has found and published them. */
    size_t schemes;
    void (*close_schemes)(heft_schemes *s);
};

/* Set *out to `wanted`, or to the default host if NULL, and check that its mandatory functions
 * exist. */
heft_status heft_host_resolve(const heft_host **out, const heft_host *wanted, heft_error *err);
const heft_digest *heft_host_digest(const heft_host *h, const char *name); /* NULL if unknown */
/* Return true if the states of adjacent byte ranges can be joined. */
static inline bool heft_digest_joins(const heft_digest *d)
{
    return HEFT_HAS(d, combine);
}
const heft_codec *heft_host_codec(const heft_host *h, heft_encoding e); /* NULL if unknown */
/* Call fn(arg, i) for every i below n, on the threads of the executor; NULL: on this thread. */
void heft_executor_run(const heft_executor *e, size_t n, void (*fn)(void *arg, size_t i),
                       void *arg);
/* Call fn(arg, i) for every i below n, on the host's threads. */
static inline void heft_host_run(const heft_host *h, size_t n, void (*fn)(void *arg, size_t i),
                                 void *arg)
{
    heft_executor_run(h->executor, n, fn, arg);
}
/* Initialise an empty index with the host's allocator and threads, and a fresh hash secret. */
void heft_host_init_index(const heft_host *h, heft_index *x, const heft_limits *limits);

/* Return true if the format can write that version. */
bool heft_format_writes(const heft_format *f, heft_str version);
/* Return the format that recognises the content, or NULL. */
const heft_format *heft_detect(const uint8_t *head, size_t head_len, const uint8_t *tail,
                               size_t tail_len, uint64_t size);
/* Return HEFT_E_FORMAT with a message that guesses the kind of file. */
heft_status heft_detect_foreign(const uint8_t *head, size_t head_len, const uint8_t *tail,
                                size_t tail_len, uint64_t size, heft_error *err);

/* Implement heft_opening.archive_enter for bytes in place, and for bytes that the caller feeds:
 * their offsets are those of the file. */
heft_status heft_no_archive(heft_file *f, const uint8_t *head, size_t len, bool *is_entered,
                            heft_error *err);
/* Begin again with the bytes of the file's source. */
void heft_file_use_source(heft_file *f);
/* Create a file for the functions of `opening`; see heft_file_begin(). */
heft_status heft_file_create(heft_file **out, uint64_t file_size, const heft_opening *opening,
                             const heft_open_options *opt, heft_error *err);

void heft_shards_close(heft_file *f);
void heft_joined_files_free(heft_file *f);
/* Return HEFT_OK if the shard is open, otherwise the error of opening.  Shards count from 1. */
heft_status heft_shard_status(const heft_file *f, uint32_t number, heft_error *err);
/* Return true if the file or shard that holds this global offset is open. */
bool heft_file_has_bytes(const heft_file *f, uint64_t offset);

/* Return HEFT_E_ARGUMENT if the part does not exist. */
heft_status heft_file_find_part(const heft_file *f, uint32_t part, heft_error *err);
/* Read stored bytes of the file or of a shard.  offset is global: see heft_global_offset() in
 * model/index.h. */
heft_status heft_file_read_stored(const heft_file *f, uint64_t offset, void *buf, size_t len,
                                  heft_error *err);
/* Count bytes of a part that are about to be read, or were decoded; part HEFT_NONE: of the file.
 * HEFT_E_LIMIT beyond heft_limits.read_bytes.  Callers count where bytes are processed, because
 * mapped bytes are not read by a function; progress.c. */
heft_status heft_file_count_read(const heft_file *f, uint32_t part, uint64_t bytes,
                                 heft_error *err);
/* Return the stored bytes in place, or NULL if the file is not in memory. */
const uint8_t *heft_file_map(const heft_file *f, uint64_t offset, uint64_t len);
/* Return the stored bytes in place if a loop over the bytes is fastest there: all bytes in memory,
 * and short ranges of a mapped file.  NULL means that the caller reads the bytes into a small
 * buffer, which stays in the processor's cache, while each mapped page would cost a fault. */
const uint8_t *heft_file_in_place(const heft_file *f, uint64_t offset, uint64_t len);
/* Do the same for the bytes of a part; NULL also where heft_part_view() returns NULL. */
const uint8_t *heft_part_in_place(const heft_file *f, uint32_t part);
/* Convert a note of the index to a finding. */
heft_finding heft_file_finding(const heft_file *f, const heft_note *note);
/* Return the source of the file (number 0) or of shard `number`; NULL if the shard is not open or
 * the file is fed. */
static inline heft_source *heft_file_source(const heft_file *f, uint32_t number)
{
    return number ? f->opened_shards[number - 1].source : f->source;
}
/* Tell the source of the file or of a shard that a range will be read soon.  offset is global. */
void heft_file_announce(const heft_file *f, uint64_t offset, uint64_t length);
/* Append the name of shard `number` to the message of the error that was just set; number 0, the
 * file, has no name.  Findings have a member for the shard.  Return st; stored_bytes.c. */
heft_status heft_file_error_in(const heft_file *f, uint32_t number, heft_status st,
                               heft_error *err);
/* heft_file_error_in() for the shard with a global offset; also set the offset of the error. */
heft_status heft_file_error_at(const heft_file *f, uint64_t offset, heft_status st,
                               heft_error *err);
/* The digests that the origin of a file or shard states: see heft_source_ops. */
void heft_file_begin_origin_digests(const heft_file *f);
heft_status heft_file_check_origin_digest(const heft_file *f, uint32_t number, bool *is_stated,
                                          heft_error *err);
/* Call enter before and leave after work on mapped bytes.  leave returns an error if a mapped file
 * turned out to be truncated. */
void heft_file_enter(const heft_file *f);
heft_status heft_file_leave(const heft_file *f, heft_error *err);
/* Leave after work that returned st.  An error of the source takes precedence over st. */
static inline heft_status heft_file_leave_after(const heft_file *f, heft_status st, heft_error *err)
{
    heft_status source_st = heft_file_leave(f, err);
    return source_st ? source_st : st;
}
/* heft_file_leave_after() in a function that reads several files: it is number `number`. */
static inline heft_status heft_file_leave_input(const heft_file *f, uint32_t number, heft_status st,
                                                heft_error *err)
{
    heft_status source_st = heft_error_input(err, heft_file_leave(f, err), number);
    return source_st ? source_st : st;
}
/* heft_file_leave_after() and heft_file_is_unchanged(): a result never mixes two versions of the
 * file. */
heft_status heft_file_end_reading(const heft_file *f, heft_status st, heft_error *err);
void heft_file_disarm(const heft_file *f); /* leave without asking for the sources' state */

/* ---- opens a single file ---- */

/* Detect the format and parse, once.  HEFT_AGAIN: heft_file_needs() lists the missing ranges. */
heft_status heft_file_parse(heft_file *f, heft_error *err);
/* Resolve unknown lengths and mark the file ready; call after the shards are open. */
heft_status heft_file_finish(heft_file *f, heft_error *err);

/* An attempt to open; called again after more bytes were fetched. */
typedef heft_status (*heft_file_step_one)(heft_file *f, heft_error *err);
/* Take ownership of a source and call step() until the result is not HEFT_AGAIN.  After each
 * HEFT_AGAIN the requested bytes are read from the source. */
heft_status heft_file_open_one(heft_file **out, heft_source *take, const heft_open_options *opt,
                               heft_file_step_one step, heft_error *err);

#endif
