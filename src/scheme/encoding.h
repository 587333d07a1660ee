/* encoding.h - how a scheme turns the numbers of a tensor into stored tensors.
 *
 * An encoder checks the shape of a tensor once (heft_scheme_encoder.prepare), and lists the parts
 * that represent the tensor.  The engine (encoder.c) reads the numbers in runs of one row, finds
 * the largest magnitude of each cell of a grid, asks for the scale, and lets the encoder store the
 * scaled numbers.  Rows count through the whole tensor, as for decoding. */
#ifndef HEFT_ENCODING_H
#define HEFT_ENCODING_H
#include "base/out.h"
#include "model/quality.h"
#include "scheme/decoding.h"

enum {
    HEFT_ENCODED_PARTS = 3,  /* most parts of an encoded tensor */
    HEFT_ENCODED_FIXED = 64, /* most bytes of a part that is the same for any numbers */
    HEFT_GROUP_MOST = 1024   /* most elements of a group; a power of two, and so is each group */
};

/* The method, and the options after its name. */
typedef struct heft_encode_choice {
    const struct heft_quantise_row *row;
    uint64_t block[2]; /* rows and columns with the same scale; 0: all; {1, 32}: groups */
    const char *form;  /* "gpt-oss", "modelopt", or NULL: the usual one */
} heft_encode_choice;

/* Return true for a scale of each row. */
static inline bool heft_has_row_scales(const heft_encode_choice *c)
{
    return c->block[0] == 1 && !c->block[1];
}

typedef struct heft_encoded_part {
    heft_role role;
    const char *suffix; /* appended to the name of the tensor; "/scale": in place of "weight" */
    heft_dtype dtype;
    uint32_t rank;
    uint64_t dims[HEFT_LOGICAL_RANK];
    uint64_t start, bytes; /* range in the source of all parts */
    uint8_t fixed[HEFT_ENCODED_FIXED];
} heft_encoded_part;

/* A tensor to be encoded. */
typedef struct heft_encoded {
    const heft_file *f;
    const struct heft_scheme_encoder *encoder;
    const heft_encode_choice *choice;
    heft_str name;
    /* The numbers: of a stored tensor, or if `decoding` is not NULL, those it represents. */
    uint32_t tensor, part;
    heft_dtype from;
    const heft_decoding *decoding;
    bool is_compressed; /* the part is read as a whole */
    bool allow_nan;
    bool is_copy;       /* the numbers are stored in this scheme already */
    bool is_transposed; /* rows are the last dimension of the tensor, columns the one before */
    uint32_t rank;
    uint64_t dims[HEFT_LOGICAL_RANK];
    uint64_t stack, rows, columns;
    /* Set by prepare. */
    heft_scale_grid grid; /* a scale for each cell of height x width elements */
    uint32_t bits;        /* bits that an encoded number has: 4 or 8 */
    bool needs_largest;   /* `largest` is found before anything is read */
    float largest;        /* magnitude in the whole tensor, and those that are joined with it */
    float factor;         /* scale of the whole tensor, set by `begin` */
    uint32_t quality;     /* record of heft_quality, if that measures the tensor */
    uint32_t part_count;
    heft_encoded_part parts[HEFT_ENCODED_PARTS];
} heft_encoded;

/* A scale: the number that stored numbers are multiplied with, and its bytes. */
typedef struct heft_encoded_scale {
    float by;
    uint8_t stored[4];
} heft_encoded_scale;

struct heft_encoder;
typedef struct heft_scheme_encoder {
    const char *scheme; /* name in listings: "fp8" */
    /* Layout of a tensor that has the numbers and the scales; NULL: parts are dense.  It may have
     * any shape with elements, and `prepare` sets its bytes. */
    const char *layout;
    /* Write the stored_dtype of a tensor with such a layout. */
    void (*put_type)(const heft_encoded *e, heft_out *o);
    /* Return whether the source is stored in this scheme already, so that its numbers are copied.
     * NULL: it never is. */
    bool (*copies)(const heft_encoded *e);
    /* Return whether rows and columns are exchanged in the stored form. NULL: they never are. */
    bool (*transposes)(const heft_encoded *e);
    /* Set grid, bits and parts by the shape.  Return NULL, or why the tensor is left alone. */
    const char *(*prepare)(heft_encoded *e);
    /* Once `largest` is known: set `factor` and fixed bytes.  May be NULL. */
    void (*begin)(heft_encoded *e);
    /* Make the scale of a cell from the largest magnitude in it. */
    heft_encoded_scale (*scale)(const heft_encoded *e, float largest);
    /* Store n scaled numbers, which may lie beyond the largest that can be stored. */
    void (*store)(const heft_encoded *e, float *x, size_t n, uint8_t *out);
    /* Load what `store` has stored, before it is multiplied with the scale. */
    void (*load)(const heft_encoded *e, const uint8_t *in, size_t n, float *x);
    /* Read bytes of part k; NULL: by `scale`, `store` and `load`. */
    heft_status (*read)(struct heft_encoder *r, uint32_t k, uint64_t from, uint8_t *buf,
                        size_t len);
} heft_scheme_encoder;
extern const heft_scheme_encoder heft_encoder_of_fp8, heft_encoder_of_integers,
    heft_encoder_of_mxfp4, heft_encoder_of_mxfp8, heft_encoder_of_nvfp4, heft_encoder_of_qfloat;

/* Takes the numbers of a scheme apart: each is an integer of 8 or 4 bits with a sign, times a
 * scale.  What they represent is the product in f32. */
typedef struct heft_integer_form {
    /* Set *bits, and *run: so many elements, one after the other in the order of the tensor, have
     * the same scale; 0: all have.  Return NULL, or why the tensor has no such form; static. */
    const char *(*check)(const heft_decoding *d, uint32_t *bits, uint64_t *run);
    /* Read integers of a run of a row.  Return false after an error. */
    bool (*numbers)(heft_decoder *r, uint64_t row, uint64_t column, size_t count, float *out);
    /* Read the scale of an element. */
    bool (*scale)(heft_decoder *r, uint64_t row, uint64_t column, float *out);
} heft_integer_form;
extern const heft_integer_form heft_integers_of_blocks, heft_integers_of_comfyui,
    heft_integers_of_compressed_tensors, heft_integers_of_gptq, heft_integers_of_onnx,
    heft_integers_of_torch;
uint64_t heft_common_divisor(uint64_t a, uint64_t b);
/* Return how many elements have the same scale of the grid, one after the other; 0: all. */
uint64_t heft_integer_run(const heft_decoding *d);
/* Lines of codes of 4 or 8 bits, `stride` bytes apart. */
typedef struct heft_code_lines {
    uint64_t lines, stride, count;
    uint32_t bits;
} heft_code_lines;
/* Return whether all zero points have that code; false if they cannot be read. */
bool heft_integer_zeros_are(const heft_decoding *d, heft_code_lines of, uint32_t code);

/* Describe what `decoding` decodes as one part of its natural type: nothing is encoded. */
heft_status heft_encoded_open_decoded(heft_encoded *e, heft_error *err);
/* Describe tensor `tensor` of f, or the quantised tensor that `decoding` describes, and let the
 * encoder prepare it.  *why becomes NULL, or says why the tensor is left alone; static. */
heft_status heft_encoded_open(heft_encoded *e, const char **why, heft_error *err);

/* Reads numbers and encodes them, for one thread. */
typedef struct heft_encoder {
    const heft_encoded *e;   /* NULL: none */
    heft_decoder input;      /* reads numbers that must be decoded */
    heft_part_window source; /* of numbers that are stored */
    float *band;             /* largest magnitudes of the cells that lie side by side, or NULL */
    size_t band_capacity;
    uint64_t band_at; /* number of the band, from all matrices */
    bool has_band, has_run;
    uint64_t run_row, run_column; /* position of the numbers in x */
    float x[HEFT_RUN];
    heft_pair_sums *sums; /* get how far encoded numbers are from those of the source; or NULL */
    bool measures;        /* the run that is encoded now is to be added to `sums` */
    struct {              /* that run: its numbers, their scales, and what they decode to */
        float from[HEFT_RUN], by[HEFT_RUN], decoded[HEFT_RUN];
    } measured;
    heft_status st;
    heft_error *err;
} heft_encoder;

/* Begin to encode; keeps the memory of an encoder that was used before.  *r is zero at first. */
void heft_encoder_begin(heft_encoder *r, const heft_encoded *e, heft_error *err);
void heft_encoder_free(heft_encoder *r, const heft_allocator *al);
/* Read bytes [from, from + len) of part k.  Runs of the weight that begin in the range are added to
 * r->sums. */
heft_status heft_encoder_read(heft_encoder *r, uint32_t k, uint64_t from, uint8_t *buf, size_t len);
/* Set *largest to the largest magnitude in `count` rows from `row` on. */
heft_status heft_encoder_largest(heft_encoder *r, uint64_t row, uint64_t count, float *largest);

/* ---- for schemes ---- */

/* Read a run of numbers to r->x: at most HEFT_RUN elements of a row, from a column that is a
 * multiple of HEFT_RUN.  Return false after an error. */
bool heft_encoder_run(heft_encoder *r, uint64_t row, uint64_t column, size_t count);
/* Return `len` bytes of the stored tensor at `at`, valid until the next call; NULL: an error. */
const uint8_t *heft_encoder_source(heft_encoder *r, uint64_t at, size_t len);
/* Set *largest to the largest magnitude of n numbers of the run in r->x, from number `from` on.
 * Return false if one is not finite and must be. */
bool heft_encoder_magnitude(heft_encoder *r, size_t from, size_t n, float *largest);
/* Write the run that begins at a column, a multiple of HEFT_RUN; return false after an error. */
typedef bool heft_run_function(heft_encoder *r, uint64_t row, uint64_t column, size_t count,
                               uint8_t *out);
/* Read bytes of a part in which HEFT_RUN elements have run_bytes, at most 4096. */
heft_status heft_encoder_read_runs(heft_encoder *r, uint32_t run_bytes, heft_run_function *write,
                                   uint64_t from, uint8_t *buf, size_t len);
/* The member `load` for numbers of E4M3. */
void heft_load_e4m3(const heft_encoded *e, const uint8_t *in, size_t n, float *x);
/* Store NaN as 0 in a type without NaN. */
void heft_drop_nan(float *x, size_t n);
/* Return the power of two for numbers up to `largest` in a type whose largest number has the
 * exponent `most`, as E8M0; set *by to it. */
uint8_t heft_power_scale(float *by, float largest, uint32_t most);
/* Add a part with the leading dimensions of the tensor, then rows x columns; 0 rows: a vector. */
heft_encoded_part *heft_encoded_add(heft_encoded *e, heft_role role, const char *suffix,
                                    heft_dtype t, uint64_t rows, uint64_t columns);
/* Return true if the choice has that form, "gguf". */
bool heft_encoded_has_form(const heft_encoded *e, const char *form);
/* Set the grid to blocks of the choice; return NULL, or why the shape does not suit. */
const char *heft_encoded_set_grid(heft_encoded *e);
/* Store a float in little-endian order. */
void heft_put_f32(uint8_t out[4], float x);

#endif
