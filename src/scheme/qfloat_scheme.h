/* qfloat_scheme.h - what the type of a quantised tensor of Burn says, in any release. */
#ifndef HEFT_QFLOAT_SCHEME_H
#define HEFT_QFLOAT_SCHEME_H
#include <heft/heft.h>

enum { HEFT_QFLOAT_RANK = 5 }; /* most dimensions of a block */

typedef enum heft_qfloat_store {
    HEFT_QFLOAT_BYTES,  /* "Native": a byte for each number */
    HEFT_QFLOAT_NATIVE, /* "PackedNative": as many in a byte as the processor's type has */
    HEFT_QFLOAT_WORDS   /* "PackedU32", "U32": words of 32 bits */
} heft_qfloat_store;

typedef struct heft_qfloat_scheme {
    const char *value; /* "Q8S"; static */
    uint32_t bits;
    heft_dtype type; /* type of floats; HEFT_UNTYPED: the numbers are integers */
    heft_qfloat_store store;
    uint64_t packed_dim; /* dimension along which numbers are packed, counted from the last */
    heft_dtype block_scale, tensor_scale; /* types of scales; HEFT_UNTYPED: there are none */
    uint32_t size_count;                  /* dimensions of a block, the last ones of the tensor */
    uint8_t size[HEFT_QFLOAT_RANK];
    bool is_since_0_22; /* spelled as Burn 0.22 does: "tensor" and "block" */
    bool is_lookup;     /* numbers are places in a table that the file does not have */
} heft_qfloat_scheme;

/* Read the attribute stored_dtype, {"QFloat":{...}}.  Return false if no known release of Burn
 * writes such a scheme. */
bool heft_qfloat_scheme_read(heft_qfloat_scheme *out, heft_str stored_dtype);

#endif
