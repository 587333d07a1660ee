/* burnpack.h - what the files of the format Burnpack share. */
#ifndef HEFT_BURNPACK_H
#define HEFT_BURNPACK_H
#include "format/burn_types.h"
#include "format/format.h"
#include "grammar/cbor.h"

enum { HEFT_BURNPACK_HEADER = 10, HEFT_BURNPACK_ALIGN = 256 };

/* What the reference reader takes. */
#define HEFT_BURNPACK_MAX_METADATA (UINT64_C(100) << 20)
#define HEFT_BURNPACK_MAX_TENSORS  UINT64_C(100000)
#define HEFT_BURNPACK_MAX_TENSOR   (UINT64_C(10) << 30)
#define HEFT_BURNPACK_MAX_FILE     (UINT64_C(100) << 30)

/* Generations of Burn that differ in what they read; sets of them are sums. */
enum {
    HEFT_BURNPACK_0_19 = 1,
    HEFT_BURNPACK_0_20 = 2,
    HEFT_BURNPACK_0_21 = 4,
    HEFT_BURNPACK_0_22_PRE = 8, /* 0.22.0-pre.1 and -pre.2 */
    HEFT_BURNPACK_0_22 = 16,
    HEFT_BURNPACK_ANY = 31,
    HEFT_BURNPACK_TEXT_BOOL = HEFT_BURNPACK_0_19 |
                              HEFT_BURNPACK_0_20, /* bool is a text, else a map */
    HEFT_BURNPACK_SCALARS = HEFT_BURNPACK_0_22_PRE |
                            HEFT_BURNPACK_0_22 /* others pass over scalars */
};

typedef struct heft_burnpack_generation {
    const char *name;
    uint32_t bit;
    bool is_written;
} heft_burnpack_generation;

enum { HEFT_BURNPACK_GENERATIONS = 5 };
/* A file that several generations read is taken for one of the first of these. */
extern const heft_burnpack_generation heft_burnpack_generations[HEFT_BURNPACK_GENERATIONS];

typedef struct heft_burnpack_type { /* a stored element type */
    heft_str stored; /* what is kept as the attribute stored_dtype; ptr NULL: nothing */
    heft_dtype dtype;
    bool is_opaque;       /* quantized: bytes whose number does not follow from the shape */
    uint32_t generations; /* that read it */
} heft_burnpack_type;

typedef struct
    heft_burnpack_schemes { /* the quantization scheme read last: the next one is often the same */
    heft_str raw, text;
    uint32_t generations;
    bool in_chunks; /* the name of the type read last is a text of indefinite length */
} heft_burnpack_schemes;

/* The dtype that c reads next; name is its tensor's, for messages. */
heft_status heft_burnpack_read_type(heft_burnpack_type *out, heft_cbor *c, heft_index *x,
                                    heft_burnpack_schemes *seen, heft_str name);
/* One of the plain ones. */
bool heft_burnpack_fast_type(heft_cbor_fast *l, heft_dtype *out);
/* Whether the reference has a name for the element type of a dense tensor. */
bool heft_burnpack_has_type(heft_dtype t);
/* Whether a stored_dtype is one of the reference's for a dense tensor of that type. */
bool heft_burnpack_is_stored(heft_dtype t, heft_str stored);
/* The dtype of a dense tensor; text_bool: as Burn 0.20 writes it. */
void heft_burnpack_put_type(heft_out *o, heft_dtype t, heft_str stored, bool text_bool);
/* Writes the CBOR that a stored_dtype spells; false: it spells none. */
bool heft_burnpack_put_stored(heft_out *o, heft_str stored);

/* Of a quantization scheme, as the CBOR of {"QFloat": scheme}: the generations that read it as it is spelled. */
uint32_t heft_burnpack_scheme_generations(heft_str raw);
/* The generations that have the same scheme, spelled in their way, for the same bytes of a tensor of this shape. */
uint32_t heft_burnpack_scheme_carriers(heft_str raw, const uint64_t *dims, uint32_t rank);
/* Write the scheme as one of its carriers spells it: as it is, if that generation reads it so. */
void heft_burnpack_put_scheme(heft_out *o, heft_str raw, uint32_t generation);

typedef struct heft_burnpack_manifest { /* what the descriptors said together */
    uint64_t end;                       /* of the data, counted from where they begin … */
    uint32_t end_tensor;                /* … and whose that is */
    bool is_unaligned;                  /* some data do not begin at a multiple of 256 */
    bool has_scalars;
    uint32_t generations; /* that read all types */
    uint32_t odd_tensor;  /* the first whose type leaves none of them, or HEFT_NONE */
} heft_burnpack_manifest;

/* Fills x from the CBOR; offsets are left as they are, counted from where the data begin. */
heft_status heft_burnpack_read_manifest(heft_burnpack_manifest *out, heft_index *x,
                                        const uint8_t *p, size_t len);

/* The tensor that c reads next, if its descriptor is spelled as every writer spells it: *read. */
heft_status heft_burnpack_read_canonical(heft_cbor *c, heft_index *x, heft_burnpack_manifest *found,
                                         bool *read);
/* Of very many tensors those that can be read side by side, from the one that c reads next on. */
void heft_burnpack_read_parallel(heft_cbor *c, heft_index *x, heft_burnpack_manifest *found);
/* Adds the tensor read last, whose descriptor stands at `at`, to what they say together. */
void heft_burnpack_record_fields(heft_burnpack_manifest *found, heft_index *x, uint32_t id,
                                 uint64_t at);

typedef struct heft_burnpack_schemes_out { /* of the quantized tensors that are written */
    const heft_burnpack_generation *target;
    heft_str stored, cbor; /* the stored_dtype spelled last, and its CBOR; ptr NULL: it has none */
    heft_str respelled;    /* that CBOR, as the target has it */
    heft_str *of;          /* by tensor; NULL: none is quantized */
    bool is_noted;         /* that schemes are respelled */
} heft_burnpack_schemes_out;

/* Leave a quantized tensor out, with a fault, if the target cannot have its scheme; a file that is planned anew keeps
 * any. */
heft_status heft_burnpack_plan_scheme(heft_plan *p, heft_burnpack_schemes_out *s, heft_str stored,
                                      uint32_t tensor);
/* Set s->of of a tensor whose scheme fits, once the numbers of tensors are final. */
heft_status heft_burnpack_spell_scheme(heft_plan *p, heft_burnpack_schemes_out *s, heft_str stored,
                                       uint32_t tensor);

extern const char heft_burnpack_scalars[]; /* the map of the metadata that holds the scalars */

/* Whether it is the record of an optimizer: a scalar is called "ID.__rank". */
bool heft_burnpack_is_optimizer(const heft_index *x);
/* Report tensors of such a record that Burn does not load. */
void heft_burnpack_check_record(heft_check *c);
/* Give a tensor of such a record, which has no id, the one that its name begins with. */
heft_status heft_burnpack_derive_id(heft_plan *p, uint32_t tensor);

heft_status heft_burnpack_plan(heft_plan *p);
heft_status heft_burnpack_write_header(const heft_plan *p, heft_out *o);

#endif
