/* burnpack.h - what the files of the format Burnpack share. */
#ifndef HEFT_BURNPACK_H
#define HEFT_BURNPACK_H
#include "format/format.h"
#include "grammar/cbor.h"

enum { HEFT_BURNPACK_HEADER = 10, HEFT_BURNPACK_ALIGN = 256 };

/* What the reference reader takes. */
#define HEFT_BURNPACK_MAX_METADATA (UINT64_C(100) << 20)
#define HEFT_BURNPACK_MAX_TENSORS  UINT64_C(100000)
#define HEFT_BURNPACK_MAX_TENSOR   (UINT64_C(10) << 30)
#define HEFT_BURNPACK_MAX_FILE     (UINT64_C(100) << 30)

typedef struct heft_burnpack_type { /* a stored element type */
    heft_str name;                  /* "F32"; of a map its one key, "Bool" or "QFloat" */
    heft_str stored; /* what is kept as the attribute stored_dtype; ptr NULL: nothing */
    heft_dtype dtype;
    bool is_opaque;  /* quantized: bytes whose number does not follow from the shape */
    bool is_text;    /* "Bool", which only Burn 0.20 and before write */
    bool is_of_0_22; /* fields that came with Burn 0.22 */
} heft_burnpack_type;

typedef struct
    heft_burnpack_schemes { /* the quantization scheme read last: the next one is often the same */
    heft_str raw, text;
    bool is_of_0_22;
} heft_burnpack_schemes;

/* The dtype that c reads next; name is its tensor's, for messages. */
heft_status heft_burnpack_read_type(heft_burnpack_type *out, heft_cbor *c, heft_index *x,
                                    heft_burnpack_schemes *seen, heft_str name);
/* One of the plain ones. */
bool heft_burnpack_look_type(heft_cbor_look *l, heft_dtype *out);
/* The name that the reference gives an element type, ptr NULL: none. */
heft_str heft_burnpack_type_name(heft_dtype t);
/* Whether a stored_dtype is one of the reference's for a dense tensor of that type. */
bool heft_burnpack_is_stored(heft_dtype t, heft_str stored);
/* The dtype of a dense tensor; text_bool: as Burn 0.20 writes it. */
void heft_burnpack_put_type(heft_out *o, heft_dtype t, heft_str stored, bool text_bool);
/* Writes the CBOR that a stored_dtype spells; false: it spells none. */
bool heft_burnpack_put_stored(heft_out *o, heft_str stored);

typedef struct heft_burnpack_manifest { /* what the descriptors said together */
    uint64_t end;                       /* of the data, counted from where they begin … */
    uint32_t end_tensor;                /* … and whose that is */
    bool is_unaligned;                  /* some data do not begin at a multiple of 256 */
    bool has_text_bool;
    bool is_of_0_22;
} heft_burnpack_manifest;

/* Fills x from the CBOR; offsets are left as they are, counted from where the data begin. */
heft_status heft_burnpack_read_manifest(heft_burnpack_manifest *out, heft_index *x,
                                        const uint8_t *p, size_t len);

/* The tensor that c reads next, if its descriptor is spelled as every writer spells it: *read. */
heft_status heft_burnpack_read_usual(heft_cbor *c, heft_index *x, heft_burnpack_manifest *found,
                                     bool *read);
/* Of very many tensors those that can be read side by side, from the one that c reads next on. */
void heft_burnpack_read_slices(heft_cbor *c, heft_index *x, heft_burnpack_manifest *found);
/* Adds the tensor read last, whose descriptor stands at `at`, to what they say together. */
void heft_burnpack_remember(heft_burnpack_manifest *found, heft_index *x, uint32_t id, uint64_t at);

extern const char heft_burnpack_qfloat[]; /* the layout of quantized tensors */

heft_status heft_burnpack_plan(heft_plan *p);
heft_status heft_burnpack_front(const heft_plan *p, heft_out *o);

#endif
