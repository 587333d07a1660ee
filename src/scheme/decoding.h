/* decoding.h - how a scheme turns the stored tensors of a group into numbers.
 *
 * A scheme checks the shapes of the parts once (heft_scheme.prepare) and says which tensor they
 * represent.  Then it decodes runs (heft_scheme.decode): at most HEFT_RUN elements of one row.
 * Rows count through the whole tensor: a stack of matrices has stack * rows rows. */
#ifndef HEFT_DECODING_H
#define HEFT_DECODING_H
#include <heft/scheme.h>

#include "core/read/file.h"
#include "model/cast_batch.h"
#include "model/float.h"
#include "model/packed_loops.h"
#include "scheme/recognition.h"

enum {
    HEFT_RUN = 1024,      /* elements that are decoded at once */
    HEFT_LOGICAL_RANK = 8 /* most dimensions of a decoded tensor */
};

typedef enum heft_role {
    HEFT_ROLE_WEIGHT,
    HEFT_ROLE_SCALE,
    HEFT_ROLE_GLOBAL_SCALE,
    HEFT_ROLE_ZERO_POINT,
    HEFT_ROLE_GROUP_INDEX,
    HEFT_ROLE_SHAPE,
    HEFT_ROLE_BIAS,
    HEFT_ROLE_ABSMAX,
    HEFT_ROLE_QUANT_MAP,
    HEFT_ROLE_NESTED_ABSMAX,
    HEFT_ROLE_NESTED_MAP,
    HEFT_ROLE_QUANT_STATE,
    HEFT_ROLE_FORMAT,
    HEFT_ROLE_DESCRIPTION,
    HEFT_ROLE_PRE_SCALE,
    HEFT_ROLES
} heft_role;

/* heft_dtype_cast() between elements as they are stored and numbers of the machine. */
static inline bool heft_floats_from(float *out, heft_dtype from, const void *stored, size_t n)
{
    bool is_number = heft_dtype_cast(out, HEFT_F32, stored, from, n);
    if (heft_is_big_endian())
        heft_f32_from_little(out, n);
    return is_number;
}

static inline void heft_floats_to(void *out, heft_dtype to, float *numbers, size_t n)
{
    if (heft_is_big_endian())
        heft_f32_from_little(numbers, n); /* turns them round */
    (void)heft_dtype_cast(out, to, numbers, HEFT_F32, n);
    if (heft_is_big_endian())
        heft_f32_from_little(numbers, n);
}

typedef struct heft_decoding_part {
    uint32_t tensor; /* HEFT_NONE: absent */
    uint32_t part;
    heft_dtype dtype;
    uint32_t rank;
    uint64_t elements, bytes;
    const uint64_t *dims; /* borrowed from the index */
    bool is_compressed;   /* read as a whole: there is no access in the middle */
} heft_decoding_part;

/* A grid of scales over matrices of rows x columns: scale (i, k) belongs to rows i * height and
 * columns k * width on. */
typedef struct heft_scale_grid {
    uint64_t down, across, height, width;
    uint64_t matrix; /* scales of a matrix; 0: all matrices of a stack have the same */
    bool is_tiled;   /* bytes in tiles, see scales.c */
} heft_scale_grid;

/* A tensor of Burn as it is stored: lines of packed numbers, then the scales of blocks, for the
 * dimensions in the order in which they are stored. */
typedef struct heft_qfloat_layout {
    uint64_t line_bits;  /* bits from a line to the next */
    uint32_t value_bits; /* bits from a number to the next */
    heft_dtype type;     /* type of floats; HEFT_UNTYPED: the numbers are integers */
    bool has_blocks;
    uint64_t scales_at; /* in the part */
    uint64_t dims[HEFT_LOGICAL_RANK];
    uint64_t sizes[HEFT_LOGICAL_RANK]; /* sizes of a block */
    uint32_t rank;
    /* Lines lie along a dimension before the last but one: `along` numbers, and so many lines from
     * one to the next in the dimension between; 0: they do not. */
    uint64_t along, between;
} heft_qfloat_layout;

/* A quantised tensor that can be decoded. */
typedef struct heft_decoding {
    const heft_file *f;
    const heft_scheme *scheme;
    const struct heft_scheme_decoder *decoder;
    heft_str name;
    const heft_quantisation_settings *settings;
    const char *variant; /* or NULL */
    uint32_t bits;
    uint64_t block[2]; /* see heft_quantised */
    heft_decoding_part part[HEFT_ROLES];
    /* Set by the scheme. */
    heft_dtype dtype;      /* the natural element type of the result */
    bool refuses_infinity; /* a finite number that `dtype` does not have is an error */
    uint32_t rank;
    uint64_t dims[HEFT_LOGICAL_RANK];
    /* The matrices as they are stored, and decoded row by row.  is_transposed: the last two
     * dimensions of the result are columns x rows. */
    uint64_t stack, rows, columns;
    bool is_transposed;
    heft_scale_grid grid;
    float factor; /* a scale of the whole tensor; divides: scales are divided by it */
    bool divides;
    bool has_factors;   /* HEFT_ROLE_GLOBAL_SCALE has a factor for each matrix instead */
    float offset;       /* added to a nested scale */
    uint64_t group;     /* elements of a group, where that is not in `grid` */
    bool is_aligned;    /* packed numbers do not cross words of 32 bits */
    bool is_high_first; /* the first of two numbers in a byte is the high half */
    uint32_t excess;    /* added to stored zero points */
    /* Rows of the result are columns of stored words; NULL: they are not. */
    const struct heft_word_columns *by_column;
    heft_qfloat_layout qfloat;
} heft_decoding;

/* Return the name of a role, as in heft_quantised_part. */
const char *heft_role_name(heft_role role);
/* Apart from heft_scheme, so that a program that only recognises schemes has no decoder. */
struct heft_decoder;
typedef struct heft_scheme_decoder {
    heft_status (*prepare)(heft_decoding *d, heft_error *err);
    heft_status (*decode)(struct heft_decoder *r, uint64_t row, uint64_t column, size_t count,
                          float *out);
    /* Decode a run to a type of 16 bits by tables.  Return false if the run has to be decoded as
     * above, or after an error.  NULL: there are no tables. */
    bool (*look_up)(struct heft_decoder *r, uint64_t row, uint64_t column, size_t count,
                    heft_dtype as, uint8_t *out);
} heft_scheme_decoder;
extern const heft_scheme_decoder heft_decoder_of_awq, heft_decoder_of_bitnet,
    heft_decoder_of_bitsandbytes, heft_decoder_of_blocks, heft_decoder_of_comfyui,
    heft_decoder_of_compressed_tensors, heft_decoder_of_fp8, heft_decoder_of_gptq,
    heft_decoder_of_mlx, heft_decoder_of_modelopt, heft_decoder_of_mxfp4, heft_decoder_of_mxfp8,
    heft_decoder_of_nvfp4, heft_decoder_of_onnx, heft_decoder_of_qfloat, heft_decoder_of_torch;
/* Return the decoder of a scheme; NULL: the scheme is recognised, and not decoded. */
const heft_scheme_decoder *heft_scheme_decoder_of(const heft_scheme *s);

/* Find the parts of quantised tensor i of s, and let its scheme check them.
 *   HEFT_E_UNSUPPORTED  the scheme is recognised, and not decoded
 *   HEFT_E_FORMAT       the parts contradict each other; the message names two of them */
heft_status heft_decoding_open(heft_decoding *d, const heft_file *f, const heft_schemes *s,
                               uint32_t i, heft_error *err);
/* Do the same for a stored tensor of a block type. */
heft_status heft_decoding_open_blocks(heft_decoding *d, const heft_file *f, uint32_t tensor,
                                      heft_error *err);

/* The bytes of a part, for one thread.  Mapped bytes are lent, others are read into windows. */
typedef struct heft_part_window {
    const uint8_t *lent; /* all bytes of the part, or NULL */
    uint8_t *buf;
    size_t capacity, len;
    uint64_t at; /* offset of buf in the part */
} heft_part_window;
enum { HEFT_WINDOW = 64 << 10 }; /* bytes to read ahead */
/* Return `len` bytes of the part at `at`, or NULL if the window does not have them. */
const uint8_t *heft_part_window_find(const heft_part_window *w, uint64_t at, size_t len);
/* Read the range into the window. */
heft_status heft_part_window_fill(heft_part_window *w, const heft_file *f, uint32_t part,
                                  heft_range read, heft_error *err);

typedef struct heft_decoder {
    const heft_decoding *d; /* NULL: none */
    heft_part_window window[HEFT_ROLES];
    heft_byte_numbers table; /* the numbers of a type with 8 bits */
    heft_dtype table_type;   /* HEFT_UNTYPED: none */
    /* The numbers of 4 bits, each times the number of a scale of 8 bits and the factor. */
    heft_code_table scaled[256];
    bool has_scaled[256];
    heft_dtype scaled_type; /* HEFT_UNTYPED: none */
    float scaled_factor;
    /* Decoded elements [tile_first, tile_first + tile_count) of a transposed tensor. */
    uint8_t *tile;
    size_t tile_capacity;
    uint64_t tile_first, tile_count;
    heft_dtype tile_type;
    /* Rows of words [strip_first, strip_first + strip_rows) of a tensor that is stored by column,
     * in `tile`, and their zero points and scales. */
    uint64_t strip_first, strip_rows;
    size_t strip_stride;
    bool has_plain_groups;                             /* runs of d->group elements */
    float group_scale[HEFT_RUN], group_zero[HEFT_RUN]; /* of a run */
    uint64_t matrix; /* the matrix of the stack that is decoded now */
    uint64_t wanted; /* elements of this call: bounds what is read ahead */
    heft_status st;
    heft_error *err;
} heft_decoder;

/* Begin to decode; keeps the memory of a decoder that was used before.  *r is zero at first. */
void heft_decoder_begin(heft_decoder *r, const heft_decoding *d, heft_error *err);
void heft_decoder_free(heft_decoder *r, const heft_allocator *al);
/* Decode elements [from, from + count) of the tensor to out, in the order of its dimensions. */
heft_status heft_decoder_read(heft_decoder *r, uint64_t from, size_t count, heft_dtype as,
                              uint8_t *out);
/* Read bytes [from, from + len) of the decoded tensor as elements of type `as`; the first and the
 * last element may be cut. */
heft_status heft_decoder_read_bytes(heft_decoder *r, heft_dtype as, uint64_t from, uint8_t *buf,
                                    size_t len);

/* ---- for schemes ---- */

/* Return `len` bytes of a part, valid until the next call for the same role; NULL: r->st is the
 * error. */
const uint8_t *heft_decoder_bytes(heft_decoder *r, heft_role role, uint64_t at, size_t len);
/* Read elements of a part as f32, at most HEFT_RUN.  Return false after an error. */
bool heft_decoder_floats(heft_decoder *r, heft_role role, uint64_t first, size_t count, float *out);
/* Set scale[i] for the groups that the columns [column, column + count) of a row touch, and return
 * their number; 0: an error. */
size_t heft_decoder_scales(heft_decoder *r, heft_role role, uint64_t row, uint64_t column,
                           size_t count, float *scale);
/* Set *out to the factor of the matrix that is decoded now.  Return false after an error. */
bool heft_decoder_factor(heft_decoder *r, float *out);
/* Multiply each run of columns by the scale of its group. */
void heft_decoder_multiply(const heft_decoding *d, uint64_t column, size_t count,
                           const float *scale, float *x);
/* Multiply each column by its number of HEFT_ROLE_PRE_SCALE, by which the inputs were divided. */
void heft_decoder_scale_columns(heft_decoder *r, uint64_t column, size_t count, float *x);

/* Set *codes to the bytes of these scales, of a type of 8 bits; `raw` is memory for HEFT_RUN. */
size_t heft_decoder_scale_codes(heft_decoder *r, heft_role role, uint64_t row, uint64_t column,
                                size_t count, const uint8_t **codes, uint8_t *raw);
/* Convert elements of a type with numbers to f32. */
bool heft_decoding_floats(float *out, heft_dtype t, const uint8_t *p, size_t count);

static inline const heft_decoding_part *heft_decoding_part_of(const heft_decoding *d,
                                                              heft_role role)
{
    return d->part[role].tensor == HEFT_NONE ? NULL : &d->part[role];
}
/* Return dimension i of the part, counted from the last; 1 beyond the first. */
static inline uint64_t heft_decoding_dim(const heft_decoding_part *p, uint32_t from_last)
{
    return from_last < p->rank ? p->dims[p->rank - 1 - from_last] : 1;
}
/* Take the shape of the weight, with `per_element` columns for each stored one. */
heft_status heft_decoding_take_shape(heft_decoding *d, uint64_t per_element, heft_error *err);
/* Set the shape: matrices of rows x columns, and the leading dimensions of the weight. */
heft_status heft_decoding_set_shape(heft_decoding *d, uint64_t rows, uint64_t columns,
                                    heft_error *err);
/* Set the grid by the shape of the part. HEFT_E_FORMAT names weight and part. */
heft_status heft_decoding_set_grid(heft_decoding *d, heft_role role, heft_error *err);
/* Set the grid of scales of 8 bits in tiles, one for `group` elements of a row. */
heft_status heft_decoding_set_tiles(heft_decoding *d, uint64_t group, heft_error *err);
/* Set the natural type by that of the part. */
void heft_decoding_set_type(heft_decoding *d, heft_role role);
/* Read the only element of a part as f32. */
heft_status heft_decoding_scalar(const heft_decoding *d, heft_role role, float *out,
                                 heft_error *err);
/* Take HEFT_ROLE_GLOBAL_SCALE as the factor of the tensor, or of each of its matrices. */
heft_status heft_decoding_set_factor(heft_decoding *d, heft_error *err);
/* Return HEFT_E_FORMAT if the settings of the module name another scheme, or numbers of another
 * width; HEFT_E_UNSUPPORTED if they name a form that is not decoded, or are not understood. */
heft_status heft_decoding_check_settings(const heft_decoding *d, const heft_module_settings *all,
                                         heft_error *err);
/* Return HEFT_E_FORMAT if `groups` groups of `inputs` elements are not those of the settings. */
heft_status heft_decoding_check_groups(const heft_decoding *d, uint64_t inputs, uint64_t groups,
                                       heft_error *err);
/* Return HEFT_E_FORMAT or another status with a message that names the weight and the part. */
heft_status heft_decoding_refuse(const heft_decoding *d, heft_role role, const char *why,
                                 heft_error *err);

/* Decodes a run of numbers of E2M1, two in a byte, with scales of a grid and a factor; of
 * mxfp4.c, for nvfp4, too. */
heft_status heft_decode_e2m1(heft_decoder *r, uint64_t row, uint64_t column, size_t count,
                             float *out);
bool heft_look_up_e2m1(heft_decoder *r, uint64_t row, uint64_t column, size_t count, heft_dtype as,
                       uint8_t *out);

#endif
