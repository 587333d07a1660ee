/* slice.h - the part of a tensor that 'NAME[0:3,:,-1]' selects, with the rules of NumPy: negative
 * indices count from the end, bounds are clipped, steps may be negative, an index removes its axis,
 * and "..." stands for the axes that are not written. */
#ifndef HEFT_CLI_SLICE_H
#define HEFT_CLI_SLICE_H
#include "models/model_view.h"

enum { SLICE_RANK = 64 };

typedef struct slice_axis {
    uint64_t start, count;
    int64_t step;  /* elements of the axis */
    bool is_index; /* a single index: the axis is not part of the result */
} slice_axis;

typedef struct slice {
    slice_axis axes[SLICE_RANK]; /* an entry for each axis of the tensor */
    const uint64_t *dims;        /* dimensions of the tensor */
    uint64_t shape[SLICE_RANK];  /* dimensions of the result */
    uint32_t rank, shape_rank;   /* ranks of tensor and result */
    uint64_t elements;           /* number of elements of the result */
} slice;

/* Find the tensor that the word names. A whole name counts before a name with a slice; *text
 * becomes the text after '[', or NULL. HEFT_NONE, after an error line, if there is none. */
uint32_t slice_find(const char **text, const model_view *v, const char *path, const char *word);
/* Parse the text after '[' for a tensor. Return CODE_USAGE after an error line. */
int slice_parse(slice *out, const char *text, const heft_tensor *t, const char *path);
/* Reads the elements of a slice, of which only the needed bytes are read; a compressed part is
 * decoded into memory. */
enum { SLICE_RUN = 4096, SLICE_BYTES = (SLICE_RUN + 512) * 16 };
typedef struct slice_reader {
    slice slice;
    const heft_file *f;
    uint32_t part;
    heft_dtype stored, type; /* element type in the file, and of the elements that are read */
    uint8_t *decoded;        /* the part, if the part is compressed */
    uint8_t raw[SLICE_BYTES], cast[SLICE_BYTES];
} slice_reader;

/* Open a reader for a dense tensor. text: the text after '[', or NULL for the whole tensor. as: the
 * element type to convert to, or HEFT_UNTYPED. Return an exit code. Close the reader even after an
 * error. */
int slice_reader_open(slice_reader *r, const session *s, const model_view *v, const char *path,
                      uint32_t tensor, const char *text, heft_dtype as);
void slice_reader_close(slice_reader *r);
/* Read elements of the result from number `from` on, at most `most`: *n elements of r->type, of
 * which the first is number *skip in *data. */
heft_status slice_read(const void **data, size_t *skip, size_t *n, slice_reader *r, uint64_t from,
                       size_t most, heft_error *err);

/* ---- print the values of a tensor as JSON ---- */

/* Print a document with all values of a dense tensor, or of the slice that slice_text describes,
 * converted to `as`; the arguments are those of slice_reader_open(). Return an exit code. */
int show_json(outbuf *o, const session *s, const model_view *v, const char *path, uint32_t tensor,
              const char *slice_text, heft_dtype as);

#endif
