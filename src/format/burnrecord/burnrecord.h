/* burnrecord.h - shared by the files of the burn-record format. */
#ifndef HEFT_BURNRECORD_H
#define HEFT_BURNRECORD_H
#include "format/format.h"
#include "grammar/msgpack.h"

typedef struct heft_record { /* state of the parser */
    heft_cur c;
    heft_index *x;
    heft_vec path;      /* char: dotted name of the value at the cursor */
    uint64_t budget;    /* bytes that names and metadata values may still take */
    heft_dtype floats;  /* type of floats according to the metadata, or HEFT_UNTYPED */
    heft_dtype ints;    /* type of integers according to the metadata, or HEFT_UNTYPED */
    heft_str id;        /* id of the current parameter; ptr NULL outside of a parameter */
    bool may_be_halves; /* integers were interpreted as half-precision floats */
} heft_record;

/* record_path.c */
heft_status heft_record_no_memory(const heft_record *r);
/* Truncate the path to path_len bytes, then append a dot and the name. */
heft_status heft_record_enter(heft_record *r, uint32_t path_len, heft_str name);
/* Subtract `bytes` from the budget, which is proportional to the file size; HEFT_E_LIMIT if
 * exceeded. */
heft_status heft_record_charge(heft_record *r, uint64_t bytes, uint64_t at);
/* Copy the path to the index; an empty path becomes `fallback`. */
heft_status heft_record_name(heft_record *r, uint64_t at, const char *fallback, heft_str *out);

/* Add the content of an item after the head was read; names of nested values are joined by dots:
 * record_walk.c. */
heft_status heft_record_walk(heft_record *r, const heft_msgpack_item *item);

/* Add a tensor if a map, after the head was read, represents a tensor.  Otherwise *is_tensor is
 * false and the cursor does not move: record_tensor.c. */
heft_status heft_record_tensor(heft_record *r, const heft_msgpack_item *map, bool *is_tensor);

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
