/* private.h - functions of the library for the command `heft`.  Stability: private.
 *
 * This header is not installed.  The functions are exported with the symbol version HEFT_PRIVATE
 * and may change in every version, so that the command runs with the library of its own version
 * only. */
#ifndef HEFT_PRIVATE_H
#define HEFT_PRIVATE_H
#include <heft/heft.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- statistics of f32 values, with the vector instructions of the processor -------------- */

/* Sums have a fixed number of partial sums, so that all processors compute the same bits.  These
 * functions neither allocate nor fail, and several threads may call them at once.  Not part of
 * builds without an operating system. */

typedef struct heft_f32_summary {
    bool is_finite; /* false: a value is NaN or infinite, and min, max and sum mean nothing */
    uint64_t zeros; /* values equal to 0 or -0 */
    float min, max;
    double sum;
} heft_f32_summary;
/* Summarize values; count is from 1 to UINT32_MAX. */
HEFT_API heft_f32_summary heft_f32_summarize(const float *values, size_t count);
/* Return the sum of the squared distances of finite values from a mean. */
HEFT_API double heft_f32_squares(const float *values, size_t count, double mean);

enum { HEFT_F32_BINS = 8 };
/* Bin i has the values from first[i] to below first[i + 1]; the edges must not fall. */
typedef struct heft_f32_edges {
    float first[HEFT_F32_BINS + 1];
} heft_f32_edges;
/* Add the numbers of values in each bin to counts; NaN and values outside the bins are left out.
 * count is at most UINT32_MAX. */
HEFT_API void heft_f32_count(uint64_t counts[HEFT_F32_BINS], const float *values, size_t count,
                             const heft_f32_edges *edges);

/* ---- data of a model in another file ------------------------------------------------------- */

typedef struct heft_move_options {
    size_t size;          /* = sizeof(heft_move_options) */
    const char *location; /* name of the other file, as the model states it; NULL: none, all
                                  data go into the model */
    uint32_t align;       /* data in the other file begin at multiples; 0: as programs expect */
    heft_progress_fn progress; /* may be NULL */
    void *ctx;                 /* passed to progress */
} heft_move_options;
#define HEFT_MOVE_OPTIONS_INIT                         \
    {                                                  \
        sizeof(heft_move_options), NULL, 0, NULL, NULL \
    }
typedef struct heft_move_result {
    uint64_t bytes, other_bytes; /* sizes of the files; 0: nothing goes there */
    uint32_t tensors;            /* tensors whose data move */
} heft_move_result;
/* Write the model of f, an ONNX file, with its data in another file, or inside.  The graph is
 * copied byte for byte; only the fields that have or name data change, and lengths around them.
 * With a location, initializers of 1024 bytes and more go to the other file.  Sinks are taken, and
 * NULL writes nothing.  On failure no file appears.
 *   HEFT_E_UNSUPPORTED  the format refers to no other files; the model would be a message of 2 GiB
 *                       or more; data of an unknown type would have to move
 *   HEFT_E_ARGUMENT     the location is not the name of a file */
HEFT_API HEFT_MUST_CHECK heft_status heft_file_move_data(heft_move_result *out, const heft_file *f,
                                                         heft_sink *take, heft_sink *take_other,
                                                         const heft_move_options *opt,
                                                         heft_error *err);

/* ---- files for a browser on this machine --------------------------------------------------- */

typedef struct heft_served_file {
    const char *path;     /* requests have it, with escapes: "/model/a b.gguf" */
    const char *type;     /* media type: "text/html" */
    const char *location; /* a path, opened for each request, or a URL; NULL: `data` */
    heft_str data;        /* the bytes, if there is no location */
} heft_served_file;
typedef struct heft_served_set {
    size_t size; /* = sizeof(heft_served_set) */
    const heft_served_file *files;
    uint32_t count;
    const char *start; /* the first request is sent here: "/#open=..." */
    /* Called when bytes of a file cannot be read; one call at a time, on any thread. */
    void (*failed)(void *ctx, const heft_served_file *file, const heft_error *err);
    void *ctx;
} heft_served_set;

typedef struct heft_server heft_server;
/* Listen at a port of 127.0.0.1; port 0 is a free one.  Loads libmicrohttpd.
 *   HEFT_E_UNSUPPORTED  this build has no libmicrohttpd, or the library cannot be loaded
 *   HEFT_E_IO           the port is in use, or not allowed */
HEFT_API HEFT_MUST_CHECK heft_status heft_server_open(heft_server **out, uint16_t port,
                                                      heft_error *err);
/* Return "http://127.0.0.1:PORT/?token=TOKEN", until the server is closed.  The token is good for
 * one request, which gets the cookie that all others need. */
HEFT_API const char *heft_server_address(const heft_server *s);
/* Answer requests until no page has held a request for /alive open for five seconds; before the
 * first such request, for ever.  Everything in the set is borrowed until the call returns. */
HEFT_API HEFT_MUST_CHECK heft_status heft_server_run(heft_server *s, const heft_served_set *set,
                                                     heft_error *err);
/* NULL is ignored. */
HEFT_API void heft_server_close(heft_server *s);

/* ---- shares, caches ----------------------------------------------------------------------- */

/* Compute an id of a file, equal on every machine and for every copy of the file: of names, types,
 * shapes, metadata, offsets, stored checksums, and 256 blocks of 4096 bytes spread over the file
 * and all shards (all bytes up to 1 MiB).  The records of `heft verify
 * --share` have the id, so that the records of two versions of a file are not mixed; a change of a
 * few values of a large file may leave the id unchanged. */
HEFT_API HEFT_MUST_CHECK heft_status heft_share_file_id(heft_hash *out, const heft_file *f,
                                                        heft_error *err);
/* Call fn with the name of every repository of a model in the cache, "OWNER/NAME", in any order.
 * The name is borrowed for the time of the call.  Errors as for heft_hub_path("hub:"), and
 * HEFT_E_IO if the folder cannot be read. */
HEFT_API HEFT_MUST_CHECK heft_status heft_hub_list(void (*fn)(void *ctx, const char *name),
                                                   void *ctx, heft_error *err);

#ifdef __cplusplus
}
#endif
#endif
