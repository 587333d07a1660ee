/* source_url.h - declarations shared by the files that read a file on a server. */
#ifndef HEFT_PORT_REMOTE_SOURCE_URL_H
#define HEFT_PORT_REMOTE_SOURCE_URL_H
#include <pthread.h>

#include "port/remote/session.h"

enum { HEFT_URL_HEAD = 128 << 10 }; /* bytes of the first request */
enum { HEFT_URL_BLOCK = 4 << 20 };  /* bytes of most other requests */
enum { SPARE_BUFFERS = 4, URL_ROWS = 16 };

typedef struct block block;

/* The comparison of the whole file with the SHA-256 that the server states, url_digest.c. */
typedef struct url_digest {
    uint8_t stated[HEFT_HASH_BYTES];
    const heft_digest *method; /* NULL: the file is not compared */
    void *state;
    uint64_t done;  /* bytes from the beginning of the file that are in the digest */
    bool is_busy;   /* a thread computes without the lock */
    bool is_ending; /* only the digest reads the file */
} url_digest;

struct block {
    heft_request request; /* first member */
    struct block *next;
    uint64_t used;   /* time of the last read, by url_source.clock */
    size_t capacity; /* bytes of the buffer */
    unsigned readers;
    uint64_t read; /* bytes that have been read */
};

/* Reads that follow one another, by one thread or by several. */
typedef struct url_row {
    pthread_t thread;  /* the last reader */
    uint64_t first;    /* offset of the first read */
    uint64_t expected; /* offset after the foremost read */
    uint64_t bytes;    /* bytes read in a row, less the bytes that were skipped */
    uint64_t ahead;    /* bytes to request ahead */
    uint64_t until;    /* the bytes before this offset have been announced; 0: none */
    uint64_t used;     /* time of the last read, by url_source.clock; 0: no row */
} url_row;

typedef struct url_source {
    heft_source base;
    heft_session *session;
    heft_address target;
    heft_route route;
    heft_answer pinned;
    block *blocks;
    uint64_t cached, clock; /* bytes of all blocks; counts reads */
    url_row rows[URL_ROWS];
    bool is_directed;    /* the caller reads blocks, and announces each in advance: no rows */
    heft_request *whole; /* receives the file by one answer; NULL: read by ranges */
    uint8_t *spare[SPARE_BUFFERS]; /* buffers of freed blocks */
    unsigned spare_count;
    url_digest digest;
    heft_status status; /* of a request that failed: all later reads fail */
    heft_error error;
} url_source;

/* ---- blocks, source_url.c; the lock of the session is held ---- */

/* Bytes in a block, which is not freed before let_go(). */
typedef struct url_bytes {
    block *block;
    const uint8_t *at;
    size_t count;
} url_bytes;
/* Wait for bytes at the offset; `len` bytes will be read there, and missing ones are requested. */
heft_status heft_url_hold(url_bytes *out, url_source *u, uint64_t offset, uint64_t len,
                          heft_error *err);
void heft_url_let_go(url_source *u, const url_bytes *bytes);
/* Return the block with the byte at the offset; NULL: not requested. */
block *heft_url_find_block(const url_source *u, uint64_t offset);

/* ---- whole files, whole_file.c; the lock of the session is held ---- */

/* Return true if answers of this version can be told from those of any other version. */
bool heft_url_is_one_version(const url_source *u, const heft_request *first);
/* Read the file by one answer: that of `take`, the first member of a block that is taken over, or
 * of a new request if `take` is NULL.  Wait until the size is known. */
heft_status heft_url_whole_begin(url_source *u, heft_request *take, heft_error *err);
/* Wait for bytes, and read them; the lock is released meanwhile. */
heft_status heft_url_whole_read(url_source *u, uint64_t offset, void *buf, size_t len,
                                heft_error *err);
void heft_url_whole_end(url_source *u);
/* Tell the user, without the lock. */
void heft_url_whole_say(const url_source *u);

/* ---- rows of reads, read_rows.c; the lock of the session is held ---- */

/* Return the row that a read at the offset continues, or NULL. */
url_row *heft_url_row_near(url_source *u, uint64_t offset);
/* Begin a row at the offset.  Requests ahead of the row that this thread has read are cancelled. */
url_row *heft_url_begin_row(url_source *u, uint64_t offset);
/* Continue the row that was announced up to the offset, or begin one, which is announced up to
 * `end`: requests are sent ahead of its reads from the first one on.  `most`: for all rows
 * together. */
url_row *heft_url_announce(url_source *u, uint64_t offset, uint64_t end, uint64_t most);
/* Return true if the byte at the offset has been announced, with many more, and not been read. */
bool heft_url_is_in_long_row(const url_source *u, uint64_t offset);
/* Return the length of the next request at the offset.  The first requests of a long row have
 * different lengths: equal ones would end together, and nothing would arrive until the answers to
 * the next ones do. */
uint64_t heft_url_next_length(const url_source *u, uint64_t offset);
/* Move the end of the row near the offset, or of a new row, to the offset, and let `ahead` bytes
 * be requested ahead of the row. */
void heft_url_lead(url_source *u, uint64_t offset, uint64_t ahead);
/* Continue a row with a read, or begin one.  The bytes to request ahead grow with the bytes that
 * were read in a row, unless reads skip more than they read, as those of headers between the data
 * do; `most`: for all rows together. */
void heft_url_follow(url_source *u, uint64_t offset, size_t len, uint64_t most);
/* Return where the first row at or after the offset begins, or the size of the file. */
uint64_t heft_url_next_row(const url_source *u, uint64_t offset);
/* Return the offset to which bytes are requested ahead of the row. */
uint64_t heft_url_row_end(const url_source *u, const url_row *row);
/* Return the largest offset that reads of a row have reached. */
uint64_t heft_url_rows_end(const url_source *u);
/* Return true if a row will soon read the bytes of the request. */
bool heft_url_is_in_rows(const url_source *u, const heft_request *b);

/* ---- the digest, url_digest.c; the lock of the session is held ---- */

/* Begin to compare the file, if the server states a digest and this build has SHA-256. */
void heft_url_digest_begin(url_source *u);
/* Return true if the digest takes further bytes without requests of its own. */
bool heft_url_digest_is_moving(const url_source *u);
/* Add bytes that have arrived; return false if the next bytes have not. */
bool heft_url_digest_step(url_source *u);
/* Add the missing bytes, and compare. */
heft_status heft_url_digest_end(url_source *u, bool *is_stated, heft_error *err);
/* Compare all of `bytes` with the digest that the server states for `stated`, a url_source. */
heft_status heft_url_digest_of(heft_source *bytes, heft_source *stated, bool *is_stated,
                               heft_error *err);

#endif
