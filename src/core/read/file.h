/* file.h - an open file, and how the engine's parts get at its bytes. */
#ifndef HEFT_FILE_H
#define HEFT_FILE_H
#include <heft/heft_ext.h>

#include "base/sized.h"
#include "core/read/input_window.h"
#include "format/format.h"

typedef struct heft_shard { /* a shard, opened or not */
    heft_str name;          /* of the file, or its label */
    heft_source *source;
    const uint8_t *whole_file; /* or NULL */
    heft_error *error;         /* there is no source; or NULL */
    const char *rule;          /* of the finding that says so; NULL: by the status */
    heft_file *model;          /* a file in its own right, which has the source; or NULL */
    heft_status status;
    bool is_borrowed; /* somebody else closes it */
    bool
        is_unreadable; /* the system failed: nothing is known of the file, which may be as it should */
} heft_shard;

typedef struct heft_joined_file { /* a file whose tensors are among this one's */
    const heft_file *file;
    uint32_t first_shard; /* its number, for heft_global_offset(); those beside it follow */
} heft_joined_file;

typedef struct heft_gzip_content { /* a file that is compressed with gzip as a whole: gunzip.c */
    heft_range deflated;           /* of the deflated content */
    uint32_t crc, isize;           /* of the content: its CRC-32, and its length modulo 2^32 */
    bool is_compressed, was_decompressed;
} heft_gzip_content;

struct heft_file {
    const heft_host *host;
    heft_source *source;             /* NULL: fed */
    const heft_shard_folder *shards; /* of the caller, while opening */
    heft_shard *opened_shards;       /* one for each of x.shards, once opened */
    uint32_t opened_shard_count, opened_shard_capacity;
    heft_joined_file *joined_files;
    uint32_t joined_count, joined_capacity;
    heft_str name;           /* of the file, or empty */
    const char *passed_over; /* heft_open_options.passed_over, while opening */
    heft_error missing;      /* status 0: nothing, of what the files of a set should hold */
    heft_error
        list_error; /* why the files beside this one could not be listed; status 0: they could, or need not be */
    const heft_format *format;
    heft_input input;
    heft_index x;
    heft_gzip_content gzip;
    bool requested_ends; /* head and tail were asked for */
    bool ready;
    bool check_parts; /* digests of parts that are read as a whole are checked, once it is ready */
    bool no_verify;   /* wrong checksums do not keep it from being open */
};

/* The host, or the default one, checked for what is indispensable. */
heft_status heft_host_resolve(const heft_host **out, const heft_host *wanted, heft_error *err);
const heft_digest *heft_host_digest(const heft_host *h, const char *name); /* or NULL */
/* Whether states of parts of the bytes can be joined. */
static inline bool heft_digest_joins(const heft_digest *d)
{
    return HEFT_HAS(d, join);
}
const heft_codec *heft_host_codec(const heft_host *h, heft_encoding e); /* or NULL */
/* fn(arg, i) for i below n, on the host's threads. */
void heft_host_run(const heft_host *h, size_t n, void (*fn)(void *arg, size_t i), void *arg);
/* An empty index, with the host's memory and threads and a secret of its own. */
void heft_host_init_index(const heft_host *h, heft_index *x, const heft_limits *limits);

/* Whether the format can be written in that version. */
bool heft_format_writes(const heft_format *f, heft_str version);
/* Recognises a format: NULL when none does. */
const heft_format *heft_detect(const uint8_t *head, size_t head_len, const uint8_t *tail,
                               size_t tail_len, uint64_t size);
/* HEFT_E_FORMAT with a guess at what the file is instead. */
heft_status heft_detect_foreign(const uint8_t *head, size_t head_len, uint64_t size,
                                heft_error *err);

void heft_shards_close(heft_file *f);
void heft_joined_files_free(heft_file *f);
/* Why the bytes of a shard cannot be had: HEFT_OK when they can.  number is that of a place. */
heft_status heft_shard_status(const heft_file *f, uint32_t number, heft_error *err);
/* Whether the bytes of that place can be had. */
bool heft_file_has_bytes(const heft_file *f, uint64_t offset);

/* HEFT_E_ARGUMENT: there is no part of that number. */
heft_status heft_file_find_part(const heft_file *f, uint32_t part, heft_error *err);
/* Stored bytes of the file and its shards, wherever they come from; places, see model/index.h. */
heft_status heft_file_read_stored(const heft_file *f, uint64_t offset, void *buf, size_t len,
                                  heft_error *err);
const uint8_t *heft_file_map(const heft_file *f, uint64_t offset, uint64_t len); /* or NULL */
/* After a parse: notes about names and about the index as a whole; open_notices.c. */
heft_status heft_file_add_notes(heft_file *f);
/* Checksums of what the parser has read: HEFT_E_CHECKSUM, or HEFT_AGAIN; open_checksums.c. */
heft_status heft_check_open_checksums(heft_file *f, heft_error *err);
/* A note of the index as a finding. */
heft_finding heft_file_finding(const heft_file *f, const heft_note *note);
/* The source of the file (number 0) or of its shard `number`; NULL: the shard is not open, or the file was fed. */
static inline heft_source *heft_file_source(const heft_file *f, uint32_t number)
{
    return number ? f->opened_shards[number - 1].source : f->source;
}
/* Around work on lent bytes; leave says whether they were all there. */
void heft_file_enter(const heft_file *f);
heft_status heft_file_leave(const heft_file *f, heft_error *err);
/* Leave after work that returned st: an error of the source is returned instead of st. */
static inline heft_status heft_file_leave_after(const heft_file *f, heft_status st, heft_error *err)
{
    heft_status source_st = heft_file_leave(f, err);
    return source_st ? source_st : st;
}
void heft_file_disarm(const heft_file *f); /* leaves without a look at the file */

#endif
