/* flax.h - shared by the files of the Flax format. */
#ifndef HEFT_FLAX_H
#define HEFT_FLAX_H
#include "format/msgpack_tree.h"

enum { /* types of MessagePack's extensions */
       HEFT_FLAX_ARRAY = 1,
       HEFT_FLAX_COMPLEX = 2, /* a number of Python */
       HEFT_FLAX_SCALAR = 3   /* a number of NumPy: an array without dimensions */
};
enum { HEFT_FLAX_SEPARATOR = '/' }; /* between the keys of a name */

/* An empty tree as Heft writes it: a map of no pairs, with a wide head. */
enum { HEFT_FLAX_EMPTY_BYTES = 3 };
extern const uint8_t heft_flax_empty[HEFT_FLAX_EMPTY_BYTES];

/* Key of a map that stands for an array in pieces. */
extern const char heft_flax_chunked[];

/* Largest array that is written in one piece, a multiple of every element's size; flax_piece.c. */
extern const uint64_t heft_flax_piece_bytes;

/* Return the type with a name of NumPy or ml_dtypes, or HEFT_UNTYPED. */
heft_dtype heft_flax_type(heft_str name);
/* Return the name of a type, or NULL if arrays of NumPy do not have the type. */
const char *heft_flax_type_name(heft_dtype t);

typedef struct heft_flax_array { /* the content of an extension */
    uint64_t at, end;            /* offset of the head; end of the extension */
    uint64_t rank;
    heft_cur shape; /* at the first dimension */
    heft_str type;
    heft_range data;
} heft_flax_array;

/* ---- one array: flax_array.c ---- */

/* Read the head of the next item, which must be of this kind; `name` is for the message. */
heft_status heft_flax_expect(heft_msgpack_tree *t, heft_msgpack_kind kind, const char *name,
                             heft_msgpack_item *it);
/* Read an array, the content of an extension whose head was read. */
heft_status heft_flax_read_array(heft_msgpack_tree *t, const heft_msgpack_item *ext,
                                 heft_flax_array *a);

/* ---- heft_format_writer: flax_write.c ---- */

heft_status heft_flax_plan(heft_plan *p);
heft_status heft_flax_write_header(const heft_plan *p, heft_out *o);
heft_status heft_flax_write_record_header(const heft_plan *p, uint32_t part, heft_out *o);
heft_status heft_flax_write_trailer(const heft_plan *p, heft_out *o);
extern const heft_sharding heft_flax_sharding;

#endif
