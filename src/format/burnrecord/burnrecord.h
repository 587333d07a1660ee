/* burnrecord.h - what the files of the burn-record format share. */
#ifndef HEFT_BURNRECORD_H
#define HEFT_BURNRECORD_H
#include "format/format.h"
#include "grammar/msgpack.h"

typedef struct heft_record { /* a record that is being read */
    heft_cur c;
    heft_index *x;
    heft_vec path;     /* of char: the name of the value at the cursor */
    uint64_t work;     /* bytes of names, and values of metadata, that may still be kept */
    heft_dtype floats; /* that the metadata name, or HEFT_UNTYPED */
    heft_dtype ints;
    heft_str id;        /* of the parameter that is read; ptr NULL: of none */
    bool may_be_halves; /* integers were taken for half-precision numbers */
} heft_record;

/* record_path.c */
heft_status heft_record_no_memory(const heft_record *r);
/* Cut the path to its first path_len bytes, then append a dot and the name. */
heft_status heft_record_enter(heft_record *r, uint32_t path_len, heft_str name);
/* Keeping names and values takes memory in proportion to the file: HEFT_E_LIMIT when it would take more. */
heft_status heft_record_charge(heft_record *r, uint64_t work, uint64_t at);
/* The path as the index keeps it; `alone` when it is empty. */
heft_status heft_record_name(heft_record *r, uint64_t at, const char *alone, heft_str *out);

/* What is in the item, whose head was read: names of nested values joined by dots; record_walk.c. */
heft_status heft_record_walk(heft_record *r, const heft_msgpack_item *item);

/* Adds the tensor that a map is, whose head was read; *is_one false: it is none, and the cursor stands where it stood;
 * record_tensor.c. */
heft_status heft_record_tensor(heft_record *r, const heft_msgpack_item *map, bool *is_one);

typedef struct heft_record_type { /* an element type as stored */
    heft_dtype dtype;
    heft_str stored; /* its spelling where Heft has no name for it, or ptr NULL */
    bool is_quantized;
} heft_record_type;
/* Reads the element type at the cursor; record_types.c. */
heft_status heft_record_read_type(heft_record *r, heft_record_type *out);
/* The type that the metadata call so, "half::binary16::f16"; HEFT_UNTYPED: none that is known. */
heft_dtype heft_record_rust_type(heft_str name);

#endif
