/* burnrecord.h - shared by the files of the burn-record format. */
#ifndef HEFT_BURNRECORD_H
#define HEFT_BURNRECORD_H
#include "format/msgpack_tree.h"

typedef struct heft_record { /* state of the parser */
    heft_msgpack_tree tree;  /* names of values are joined by dots as in Burn */
    heft_dtype floats;       /* type of floats according to the metadata, or HEFT_UNTYPED */
    heft_dtype ints;         /* type of integers according to the metadata, or HEFT_UNTYPED */
    heft_str id;             /* id of the current parameter; ptr NULL outside of a parameter */
    bool may_be_halves;      /* integers were interpreted as half-precision floats */
} heft_record;

typedef struct heft_record_type { /* an element type as stored */
    heft_dtype dtype;
    heft_str stored; /* value of stored_dtype for types unknown to Heft, or ptr NULL */
    bool is_quantized;
} heft_record_type;
/* Read the element type at the cursor: record_types.c. */
heft_status heft_record_read_type(heft_record *r, heft_record_type *out);
/* Return the type with a Rust name, e.g. "half::binary16::f16", or HEFT_UNTYPED. */
heft_dtype heft_record_rust_type(heft_str name);

#endif
