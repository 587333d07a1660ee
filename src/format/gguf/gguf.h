/* gguf.h - what the files of GGUF share. */
#ifndef HEFT_GGUF_H
#define HEFT_GGUF_H
#include "format/format.h"

enum {
    HEFT_GGUF_ALIGN = 32,           /* of the data, unless general.alignment says otherwise */
    HEFT_GGUF_LEAST_ALIGN = 8,      /* that the specification allows */
    HEFT_GGUF_MAX_ALIGN = 16 << 20, /* that is taken for an alignment */
    HEFT_GGUF_RANK = 4,
    HEFT_GGUF_MAX_TYPE = 65535, /* that is taken for the number of an element type */
    HEFT_GGUF_NAME = 64,        /* bytes that ggml has for a tensor's name and a NUL */
    HEFT_GGUF_KEY = 65535       /* bytes of a key */
};

typedef enum heft_gguf_kind { /* of metadata; numbers and truth values have an element type */
                              HEFT_GGUF_STRING = 8,
                              HEFT_GGUF_ARRAY = 9,
                              HEFT_GGUF_KINDS = 13
} heft_gguf_kind;

/* By number: the element type of a value; HEFT_UNTYPED for the two above and beyond the last. */
heft_dtype heft_gguf_value_type(uint32_t kind);
/* Number of the kind of value with that element type; HEFT_GGUF_KINDS: there is none. */
uint32_t heft_gguf_kind_of(heft_dtype t);

enum { HEFT_GGUF_TYPES = 43 };
extern const heft_dtype heft_gguf_types[HEFT_GGUF_TYPES]; /* of elements, by ggml's number */
const char *heft_gguf_removed_type(uint32_t number);      /* that ggml has no longer: its name */

/* Layout of a tensor whose element type is newer than that table: bytes whose number does not follow from the shape.
 * stored_dtype is "ggml:NUMBER". */
extern const char heft_gguf_opaque[];
bool heft_gguf_is_opaque(const heft_index *x, uint32_t tensor);
/* ggml's number of the element type of a tensor; UINT32_MAX: it has none. */
uint32_t heft_gguf_type_number(const heft_index *x, uint32_t tensor);
/* What such a tensor has for stored_dtype. */
heft_status heft_gguf_keep_number(heft_index *x, uint32_t tensor, uint32_t number);

extern const char heft_gguf_alignment_key[], heft_gguf_tokens_key[];
/* Of special tokens: the key of their id, and another that is read, or NULL. */
extern const char *const heft_gguf_special_keys[HEFT_SPECIALS][2];
bool heft_gguf_is_special(heft_str key);
/* Ids of special tokens among t->count tokens.  Where there is none of their keys they are known by their
 * names, and has_special stays as it is. */
void heft_gguf_find_special(const heft_index *x, heft_ix_tokens *t);

typedef struct heft_gguf_reader {
    heft_cur c;
    heft_index *x;
    bool big_endian;
    uint8_t length_bytes; /* of lengths, counts and dimensions: 4 in the first generation */
    uint64_t field;       /* where the number is that was read last */
    heft_cur number;   /* at the last value that is a number, for what goes wrong behind it … */
    bool after_number; /* … when nothing but numbers has come since */
    bool noted_bytes, noted_nested;
    bool has_opaque; /* a tensor of an element type that is not known */
} heft_gguf_reader;

uint32_t heft_gguf_u32(heft_gguf_reader *r);
uint64_t heft_gguf_u64(heft_gguf_reader *r);
uint64_t heft_gguf_length(heft_gguf_reader *r);
/* A text behind its length; what names it in messages. */
heft_str heft_gguf_text(heft_gguf_reader *r, const char *what);
/* Bytes that a text may not have: the mark of a conversion that replaced what was no text.  Says so, in
 * place of the message there is, when they are in front of what could not be read. */
heft_status heft_gguf_error(heft_gguf_reader *r, heft_status st);
/* count entries of metadata. */
heft_status heft_gguf_read_metadata(heft_gguf_reader *r, uint64_t count);

/* A value of the metadata's top level, or NULL. */
const heft_value *heft_gguf_find(const heft_index *x, const char *key);
/* What such a value says; 0: something wrong. */
uint64_t heft_gguf_alignment_of(const heft_value *v);
uint64_t heft_gguf_alignment(const heft_index *x); /* HEFT_GGUF_ALIGN when nothing is said */

/* gguf_values.c: values to be written. */

/* Whether a value of the metadata, with all that is in it, can be carried. */
bool heft_gguf_can_carry(const heft_index *x, uint32_t i);
/* Whether such a value is an array of arrays. */
bool heft_gguf_is_nested(const heft_index *x, uint32_t i);
void heft_gguf_put_text(heft_out *o, heft_str s);
/* Kind and value, its children included. */
void heft_gguf_put_value(heft_out *o, const heft_index *x, uint32_t i);

/* gguf_split.c: what a file says of the set that it belongs to becomes x->shard_info. */
heft_status heft_gguf_read_split(heft_index *x);
extern const heft_sharding heft_gguf_sharding;

heft_status heft_gguf_plan(heft_plan *p);
heft_status heft_gguf_write_header(const heft_plan *p, heft_out *o);

#endif
