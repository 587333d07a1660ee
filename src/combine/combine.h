/* combine.h - a model in which some tensors are computed from tensors of several files.
 *
 * A feature (adapters that are merged, models that are blended, deltas that are applied) decides
 * which tensors of the result are computed, and computes them in strips: elements [from, from +
 * count) as f32, or bytes.  This room makes a file of it, like any other: the index is that of the
 * base, with the computed tensors in the place of others, and a source computes their bytes when
 * they are read.  Nothing is kept but the memory of a few strips.
 *
 * The value of an element must not depend on the strip in which it is computed.  Then the bytes are
 * the same for any number of threads and any way to read them. */
#ifndef HEFT_COMBINE_H
#define HEFT_COMBINE_H
#include "core/read/file.h"
#include "core/read/stream.h"

enum { HEFT_COMBINE_STRIP = 64 << 10 }; /* most elements that are computed at once */

/* ---- inputs ------------------------------------------------------------------------------- */

/* A dense tensor of a file, whose elements are read as f32. */
typedef struct heft_combine_input {
    const heft_file *f; /* NULL: there is none */
    heft_str name;
    uint32_t tensor, part;
    heft_dtype dtype;
    uint32_t rank;
    const uint64_t *dims; /* borrowed from the index */
    uint64_t count;       /* elements */
    uint32_t number;      /* heft_error.input gets it */
} heft_combine_input;

/* Describe a tensor of file number `number` as an input.  verify: compare the checksum that the
 * file stores for it first, by reading its bytes.
 *   HEFT_E_UNSUPPORTED  the tensor is sparse or has no elements of a known type
 *   HEFT_E_FORMAT       its size does not match its shape */
heft_status heft_combine_input_open(heft_combine_input *out, const heft_file *f, uint32_t number,
                                    uint32_t tensor, bool verify, heft_error *err);
/* Return whether f32 represents all values of the type: floating-point numbers of up to 32 bits,
 * also in blocks. */
bool heft_combine_is_exact(heft_dtype t);

/* The means of a thread to read inputs; zeroed at first.  A reader stays with an input as long as
 * it can, since a compressed one has to be read in order. */
typedef struct heft_combine_reader {
    const heft_combine_input *in;
    heft_stream *stream; /* reads a compressed part */
    uint64_t next;       /* the byte that the stream reads next */
    uint8_t *buf;
    const heft_allocator *al;
} heft_combine_reader;

/* Read elements [from, from + count) as f32, in the byte order of the host; count is at most
 * HEFT_COMBINE_STRIP. */
heft_status heft_combine_read(heft_combine_reader *r, const heft_combine_input *in, uint64_t from,
                              size_t count, float *out, heft_error *err);
/* Read bytes [from, from + len) of the elements as they are stored. */
heft_status heft_combine_read_bytes(heft_combine_reader *r, const heft_combine_input *in,
                                    uint64_t from, void *buf, size_t len, heft_error *err);
void heft_combine_reader_free(heft_combine_reader *r);

/* ---- the result --------------------------------------------------------------------------- */

typedef struct heft_combine_tensor {
    heft_str name;        /* copied; empty: that of the tensor in whose place it is */
    uint32_t place;       /* tensor of the base; HEFT_NONE: after all others */
    heft_dtype dtype;     /* element type of the result */
    uint32_t rank;        /* number of dims */
    const uint64_t *dims; /* copied */
    bool is_bytes;        /* the feature computes bytes, not f32 */
    /* Tensors next to each other with the same number are computed together: a read prefers the
     * scratch object of another one.  0: none. */
    uint32_t group;
} heft_combine_tensor;

typedef struct heft_combine_ops {
    size_t scratch_bytes; /* size of a scratch object, which is zeroed before its first use */
    /* Compute elements [from, from + count) of tensor i; count is at most HEFT_COMBINE_STRIP.  out
     * is not initialised.  Called on several threads, each with a scratch object of its own. */
    heft_status (*floats)(void *ctx, void *scratch, uint32_t i, uint64_t from, size_t count,
                          float *out, heft_error *err);
    /* Compute bytes [from, from + len) of tensor i, with is_bytes; may be NULL. */
    heft_status (*bytes)(void *ctx, void *scratch, uint32_t i, uint64_t from, uint8_t *out,
                         size_t len, heft_error *err);
    /* Release what a scratch object has, also one that was never used; may be NULL. */
    void (*free_scratch)(void *ctx, void *scratch);
    /* Release ctx; may be NULL. */
    void (*close)(void *ctx);
} heft_combine_ops;

typedef struct heft_combination {
    const heft_file *const *files; /* the base, then the others that are read */
    uint32_t file_count;
    const heft_combine_tensor *tensors; /* `count` of them, by ascending place */
    uint32_t count;
    const uint8_t *is_dropped; /* by tensor of the base: left out of the result; NULL: none */
    heft_str label;     /* name of the source in errors, such as "merged tensors"; may be empty */
    bool allow_nan;     /* results that are not finite are kept */
    bool leaves_values; /* the result has no metadata of the base */
    const heft_combine_ops *ops;
    void *ctx; /* taken, also after an error */
} heft_combination;

/* Open the result.  Metadata, order and checksums of all other tensors are those of the base.  The
 * files must outlive *out; `c` and its arrays need not.
 * Reading a computed tensor fails with HEFT_E_LOSSY, rule "heft/not-finite", if an element is NaN,
 * infinite, or too large for the type.
 *   HEFT_E_LIMIT        the computed tensors exceed the range of offsets
 *   HEFT_E_UNSUPPORTED  elements of a computed type share bytes, and is_bytes is not set */
heft_status heft_combine_open(heft_file **out, const heft_combination *c, heft_error *err);

/* ---- within the room ---------------------------------------------------------------------- */

typedef struct heft_combine_row { /* a computed tensor */
    heft_str name;
    heft_dtype dtype;
    bool is_bytes;
    uint32_t group, first; /* first row of the group */
    uint64_t start, bytes; /* in the source */
} heft_combine_row;

/* Make the source of `count` rows; takes the rows and c->ctx, also after an error. */
heft_status heft_combine_source(heft_source **out, const heft_combination *c,
                                heft_combine_row *take, const heft_allocator *al, heft_error *err);

#endif
