/* recognition.h - what a scheme states so that its tensors are recognised.
 *
 * A scheme is a row of the table in schemes.c.  It lists the names of its parts; the engine
 * (recognise.c) finds tensors with these names, and the scheme judges their element types and
 * shapes.  Suffixes are relative to the stem, which the name of the anchor has before its suffix:
 *
 *   "_scale"   the anchor "up.weight_scale" has the stem "up.weight"
 *   "/scale"   the last component of the name: "up.scale" and "scale", but not "upscale"; the stem
 *              is "up.", and other suffixes with a slash replace the last component of the stem
 *   ""         the stem itself
 *   "@key"     the tensor whose name is the attribute "key" of the anchor */
#ifndef HEFT_RECOGNITION_H
#define HEFT_RECOGNITION_H
#include "model/index.h"
#include "scheme/module_settings.h"

enum { HEFT_SCHEME_PARTS = 12 };

typedef struct heft_scheme_part {
    const char *role, *suffix;
    bool is_optional;
} heft_scheme_part;

/* One way to name the parts.  Part 0 is the anchor: the part with the most particular name. */
typedef struct heft_scheme_names {
    const char *variant; /* NULL: none, or chosen by recognise() */
    const char *logical; /* suffix of the name of the quantised tensor */
    heft_scheme_part part[HEFT_SCHEME_PARTS];
} heft_scheme_names;

/* Tensors with the names of a scheme, and what the scheme says about them. */
typedef struct heft_scheme_group {
    const heft_index *x;
    const heft_quantisation_settings *settings; /* those of the module */
    const heft_scheme_names *names;
    uint32_t tensor[HEFT_SCHEME_PARTS]; /* by part; HEFT_NONE: absent */
    const char *variant;                /* initially that of names */
    uint32_t bits;
    uint64_t block[2];
    bool has_block;
} heft_scheme_group;

typedef struct heft_scheme {
    const char *name; /* on the command line and in heft_quantised */
    const heft_scheme_names *names;
    uint32_t name_count;
    /* A scheme of single tensors: the attribute that such a tensor has.  NULL: none. */
    const char *attribute;
    const char *layout; /* of that tensor; NULL: dense */
    bool is_vague;      /* a method that the settings name is the better name */
    /* Way on with a model of a scheme that is not decoded.  NULL: it is decoded. */
    const char *advice;
    /* Return true if element types and shapes are those of the scheme; set bits and block. */
    bool (*recognise)(heft_scheme_group *g);
} heft_scheme;

enum { HEFT_SCHEME_NAMES = 64 }; /* most ways to name parts, of all schemes together */
/* Return scheme i, or NULL after the last.  The first scheme that recognises tensors has them. */
const heft_scheme *heft_scheme_at(uint32_t i);
/* Return scheme i of those recognised by names only, or NULL after the last. */
const heft_scheme *heft_other_scheme_at(uint32_t i);

/* Find the quantised tensors of an index, as heft_schemes_open() does.  The index must outlive the
 * object.  `embedded` are settings in the metadata of the file; NULL: none. */
heft_status heft_schemes_of_index(heft_schemes **out, const heft_index *x, const heft_allocator *al,
                                  const heft_settings *settings, const heft_settings *embedded,
                                  heft_error *err);
/* Read settings that the metadata of a file has as a text; *out is NULL if there are none. */
heft_status heft_embedded_settings(heft_settings **out, const heft_file *f, heft_error *err);

/* The scheme of quantised tensor i; NULL: a method that only the settings name.  Its variant, which
 * may be NULL.  The settings of its module. */
const heft_scheme *heft_schemes_scheme(const heft_schemes *s, uint32_t i);
const char *heft_schemes_variant(const heft_schemes *s, uint32_t i);
const heft_quantisation_settings *heft_schemes_settings(const heft_schemes *s, uint32_t i);
/* Return the settings of all modules. */
const heft_module_settings *heft_schemes_modules(const heft_schemes *s);

extern const heft_scheme heft_scheme_awq, heft_scheme_bitnet, heft_scheme_bitsandbytes,
    heft_scheme_comfyui, heft_scheme_compressed_tensors, heft_scheme_fp8, heft_scheme_gptq,
    heft_scheme_mlx, heft_scheme_modelopt, heft_scheme_mxfp4, heft_scheme_mxfp8, heft_scheme_nvfp4,
    heft_scheme_onnx, heft_scheme_qfloat, heft_scheme_torch;

/* ---- what a scheme asks about a group ---- */

/* Return the tensor with that role, or HEFT_NONE. */
uint32_t heft_group_part(const heft_scheme_group *g, const char *role);
/* Return the element type of the part; HEFT_UNTYPED: absent, or not a dense tensor. */
heft_dtype heft_group_dtype(const heft_scheme_group *g, const char *role);
/* Return a dimension of the part, counted from the last (0); 1 beyond the first, or if absent. */
uint64_t heft_group_dim(const heft_scheme_group *g, const char *role, uint32_t from_last);
/* Return the number of dimensions of the part; 0 if absent. */
uint32_t heft_group_rank(const heft_scheme_group *g, const char *role);
/* Return true if the part has a single element. */
bool heft_group_is_scalar(const heft_scheme_group *g, const char *role);
/* Set the block of a matrix of rows x columns elements by the shape of the part "scale", and return
 * whether the shape suits such a matrix. */
bool heft_group_blocks(heft_scheme_group *g, uint64_t rows, uint64_t columns);
/* Set groups of `size` elements of a row; 0: whole rows. */
void heft_group_rows(heft_scheme_group *g, uint64_t size);

/* ---- attributes, for decoders too ---- */

/* Return an integer that the reader of ONNX has stated, or 0. */
int64_t heft_onnx_number(const heft_index *x, uint32_t tensor, const char *key);
/* Return the bits of a packed type of ONNX, or 0; *is_signed: it has a sign. */
uint32_t heft_onnx_packed_bits(const heft_index *x, uint32_t tensor, bool *is_signed);
/* Return whether two numbers of a tensor of PyTorch share a byte. */
bool heft_torch_has_pairs(const heft_index *x, uint32_t tensor);

/* ---- element types ---- */

bool heft_is_float8(heft_dtype t); /* a number of 8 bits, not E8M0 */
bool heft_is_scale(heft_dtype t);  /* floating-point, of 16 bits or more, or E8M0 */
bool heft_is_packed(heft_dtype t); /* an integer of up to 32 bits, or F4_E2M1 */
#endif
