/* burnpack.h - declarations shared by the files that read and write Burnpacks (Burn's .bpk). */
#ifndef HEFT_BURNPACK_H
#define HEFT_BURNPACK_H
#include "format/burn_types.h"
#include "format/format.h"
#include "grammar/cbor.h"

enum { HEFT_BURNPACK_HEADER = 10, HEFT_BURNPACK_ALIGN = 256 };

/* Limits of the reference reader: bytes, except for the number of tensors. */
#define HEFT_BURNPACK_MAX_METADATA (UINT64_C(100) << 20)
#define HEFT_BURNPACK_MAX_TENSORS  UINT64_C(100000)
#define HEFT_BURNPACK_MAX_TENSOR   (UINT64_C(10) << 30)
#define HEFT_BURNPACK_MAX_FILE     (UINT64_C(100) << 30)

/* Bits of a set of generations.  A generation is a range of Burn releases that read the same
 * files. */
enum {
    HEFT_BURNPACK_0_19 = 1,
    HEFT_BURNPACK_0_20 = 2,
    HEFT_BURNPACK_0_21 = 4,
    HEFT_BURNPACK_0_22_PRE = 8, /* 0.22.0-pre.1 and -pre.2 */
    HEFT_BURNPACK_0_22 = 16,
    HEFT_BURNPACK_ANY = 31,
    /* Generations that store the type bool as a text; newer generations store a map. */
    HEFT_BURNPACK_TEXT_BOOL = HEFT_BURNPACK_0_19 | HEFT_BURNPACK_0_20,
    /* Generations that read scalars; older generations ignore scalars. */
    HEFT_BURNPACK_SCALARS = HEFT_BURNPACK_0_22_PRE | HEFT_BURNPACK_0_22
};

typedef struct heft_burnpack_generation {
    const char *name;
    uint32_t bit;
    bool can_write; /* true if Heft writes files of the generation */
} heft_burnpack_generation;

enum { HEFT_BURNPACK_GENERATIONS = 5 };
/* In order of preference: a file is reported as the first generation that reads the file. */
extern const heft_burnpack_generation heft_burnpack_generations[HEFT_BURNPACK_GENERATIONS];

typedef struct heft_burnpack_type { /* a stored element type */
    heft_str stored; /* value of the attribute stored_dtype; ptr NULL: no attribute */
    heft_dtype dtype;
    bool is_opaque;       /* quantized: the shape does not determine the number of bytes */
    uint32_t generations; /* generations that read the type */
} heft_burnpack_type;

/* The last quantization scheme that was read; neighbouring tensors often have the same scheme. */
typedef struct heft_burnpack_type_cache {
    heft_str raw, text; /* CBOR and the corresponding stored_dtype */
    uint32_t generations;
    bool has_indefinite_name; /* the last type name was a text of indefinite length */
} heft_burnpack_type_cache;

/* Read the next item of c as an element type.  `name` is the name of the tensor, for messages. */
heft_status heft_burnpack_read_type(heft_burnpack_type *out, heft_cbor *c, heft_index *x,
                                    heft_burnpack_type_cache *cache, heft_str name);
/* Read an element type that heft_burn_numbers lists; false: the slow path must read the type. */
bool heft_burnpack_fast_type(heft_cbor_fast *f, heft_dtype *out);
/* Return true if Burn has a name for the element type of a dense tensor. */
bool heft_burnpack_has_type(heft_dtype t);
/* Return true if Burn has the type `stored` for dense tensors with elements of type t. */
bool heft_burnpack_is_stored_dtype(heft_dtype t, heft_str stored);
/* Write the element type of a dense tensor; text_bool: write bool as a text, as Burn 0.20 does. */
void heft_burnpack_put_type(heft_out *o, heft_dtype t, heft_str stored, bool text_bool);
/* Write the CBOR that a stored_dtype describes; false: the text describes no CBOR. */
bool heft_burnpack_put_stored_dtype(heft_out *o, heft_str stored);

/* Return the generations that read a quantization scheme as encoded in `raw`, the CBOR of
 * {"QFloat": scheme}. */
uint32_t heft_burnpack_scheme_generations(heft_str raw);
/* Return the generations that have an equivalent scheme for the bytes of a tensor of this shape,
 * perhaps encoded differently. */
uint32_t heft_burnpack_scheme_targets(heft_str raw, const uint64_t *dims, uint32_t rank);
/* Write the scheme in the encoding of `generation`, which heft_burnpack_scheme_targets() must
 * contain.  If that generation reads `raw`, copy `raw` unchanged. */
void heft_burnpack_put_scheme(heft_out *o, heft_str raw, uint32_t generation);

typedef struct heft_burnpack_manifest { /* totals over all descriptors */
    uint64_t data_bytes;                /* end of the last tensor's data, relative to data_start */
    uint32_t last_tensor;               /* tensor with the last data */
    bool is_unaligned;                  /* some data do not begin at a multiple of 256 */
    bool has_scalars;
    uint32_t generations;     /* generations that read all element types */
    uint32_t conflict_tensor; /* first tensor that makes `generations` empty, or HEFT_NONE */
} heft_burnpack_manifest;

/* Parse the CBOR into x.  Part offsets stay relative to the start of the data. */
heft_status heft_burnpack_read_manifest(heft_burnpack_manifest *out, heft_index *x,
                                        const uint8_t *p, size_t len);

/* Read the next tensor of c if its descriptor has the form that every writer uses; otherwise set
 * *read to false and leave c unchanged. */
heft_status heft_burnpack_read_canonical(heft_cbor *c, heft_index *x,
                                         heft_burnpack_manifest *manifest, bool *read);
/* Read tensors of canonical form on several threads, beginning with the next item of c.  Do
 * nothing if there are too few tensors; stop before the first tensor that is not canonical. */
void heft_burnpack_read_parallel(heft_cbor *c, heft_index *x, heft_burnpack_manifest *manifest);
/* Add tensor `id` of x to the totals.  `at`: file offset of the descriptor, for messages. */
void heft_burnpack_count_tensor(heft_burnpack_manifest *manifest, heft_index *x, uint32_t id,
                                uint64_t at);

typedef struct heft_burnpack_scheme_plan { /* schemes of the quantized tensors to be written */
    const heft_burnpack_generation *target;
    heft_str stored, cbor; /* last stored_dtype and its CBOR; ptr NULL: none */
    heft_str target_cbor;  /* cbor in the encoding of the target generation */
    heft_str *by_tensor;   /* target_cbor of each tensor; NULL: no tensor is quantized */
    bool noted_reencoding;
} heft_burnpack_scheme_plan;

extern const char heft_burnpack_scalars[]; /* key of the metadata map that holds the scalars */

/* Return true for the record of an optimizer: some scalar is called "ID.__rank". */
bool heft_burnpack_is_optimizer(const heft_index *x);
/* Report tensors of an optimizer's record that Burn does not load. */
void heft_burnpack_check_record(heft_check *c);
/* Set the param_id of a tensor of an optimizer's record to the number at the start of the name. */
heft_status heft_burnpack_derive_id(heft_plan *p, uint32_t tensor);

heft_status heft_burnpack_plan(heft_plan *p);
heft_status heft_burnpack_write_header(const heft_plan *p, heft_out *o);

#endif
