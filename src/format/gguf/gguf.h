/* gguf.h - declarations shared by the files that read and write GGUF. */
#ifndef HEFT_GGUF_H
#define HEFT_GGUF_H
#include <heft/vocabulary.h>

#include "format/format.h"

enum {
    HEFT_GGUF_ALIGN = 32,           /* default alignment of the data; see general.alignment */
    HEFT_GGUF_MIN_ALIGN = 8,        /* smallest alignment that the specification allows */
    HEFT_GGUF_MAX_ALIGN = 16 << 20, /* largest alignment that Heft accepts */
    HEFT_GGUF_MAX_RANK = 4,
    HEFT_GGUF_MAX_TYPE = 65535, /* largest element type number that Heft accepts */
    HEFT_GGUF_NAME_BUFFER = 64, /* ggml's buffer for the name of a tensor and a NUL */
    HEFT_GGUF_MAX_KEY = 65535   /* maximum length of a metadata key */
};

/* Kinds of metadata values; all other kinds are element types. */
typedef enum heft_gguf_kind {
    HEFT_GGUF_STRING = 8,
    HEFT_GGUF_ARRAY = 9,
    HEFT_GGUF_KINDS = 13
} heft_gguf_kind;

/* Element type of a metadata kind; HEFT_UNTYPED for strings, arrays and unknown kinds. */
heft_dtype heft_gguf_value_type(uint32_t kind);
/* Kind of metadata values with this element type; HEFT_GGUF_KINDS: none. */
uint32_t heft_gguf_kind_of(heft_dtype t);

enum { HEFT_GGUF_TYPES = 43 };
/* Element types of tensors by ggml's number; HEFT_UNTYPED: ggml has removed the type. */
extern const heft_dtype heft_gguf_types[HEFT_GGUF_TYPES];
/* Name of a type that ggml has removed. */
const char *heft_gguf_removed_type(uint32_t number);

/* Layout of tensors with an element type beyond heft_gguf_types.  The shape does not determine
 * the number of bytes; stored_dtype is "ggml:NUMBER". */
extern const char heft_gguf_opaque[];
bool heft_gguf_is_opaque(const heft_index *x, uint32_t tensor);
/* ggml's number of the element type of a tensor; UINT32_MAX: none. */
uint32_t heft_gguf_type_number(const heft_index *x, uint32_t tensor);
/* Set the stored_dtype of an opaque tensor. */
heft_status heft_gguf_set_type_number(heft_index *x, uint32_t tensor, uint32_t number);

extern const char heft_gguf_alignment_key[], heft_gguf_tokens_key[];
/* Keys of the ids of special tokens: the key to write, and an alternative for reading, or NULL. */
extern const char *const heft_gguf_special_keys[HEFT_SPECIALS][2];
bool heft_gguf_is_special(heft_str key);
/* Set the ids of special tokens from the metadata; t->count must be set.  If no key is present,
 * t->has_special stays unchanged, and special tokens are recognised by name. */
void heft_gguf_find_special(const heft_index *x, heft_ix_tokens *t);

typedef struct heft_gguf_reader {
    heft_cur c;
    heft_index *x;
    bool big_endian;
    uint8_t length_bytes;  /* size of lengths, counts and dimensions: 4 in version 1, else 8 */
    uint64_t field_offset; /* file offset of the last integer that was read */
    heft_cur binary_start; /* end of the last text: binary fields follow */
    bool noted_invalid_utf8, noted_nested;
    bool has_opaque; /* some tensor is opaque */
} heft_gguf_reader;

uint32_t heft_gguf_read_u32(heft_gguf_reader *r);
uint64_t heft_gguf_read_u64(heft_gguf_reader *r);
uint64_t heft_gguf_read_length(heft_gguf_reader *r);
/* Read a length and a UTF-8 text.  `what` names the text in messages. */
heft_str heft_gguf_read_text(heft_gguf_reader *r, const char *what);
/* Replace the message of HEFT_E_FORMAT if binary fields contain U+FFFD, which shows that a
 * conversion of text has corrupted the file.  Return st. */
heft_status heft_gguf_explain_error(heft_gguf_reader *r, heft_status st);
/* Read `count` entries of metadata. */
heft_status heft_gguf_read_metadata(heft_gguf_reader *r, uint64_t count);

/* Find a metadata value of the top level; NULL: none. */
const heft_value *heft_gguf_find_value(const heft_index *x, const char *key);
/* Alignment that a value of general.alignment stands for; 0: the value is invalid. */
uint64_t heft_gguf_alignment_of(const heft_value *v);
/* Alignment of the file; HEFT_GGUF_ALIGN without general.alignment. */
uint64_t heft_gguf_alignment(const heft_index *x);
/* Round up to a multiple of the alignment, which is a power of two unless the parser forgives;
 * false: overflow. */
bool heft_gguf_align_up(uint64_t *out, uint64_t at, uint64_t align);

/* ---- gguf_split.c ---- */

/* Set x->shard_info from the metadata "split.*", and name the other shards. */
heft_status heft_gguf_read_split(heft_index *x);
/* Return false if the key is one of "split.*" and the value is not an unsigned integer: no reader
 * opens a file with such a value. */
bool heft_gguf_allows_split_value(const heft_value *v);
extern const heft_sharding heft_gguf_sharding;

heft_status heft_gguf_plan(heft_plan *p);
heft_status heft_gguf_write_header(const heft_plan *p, heft_out *o);

#endif
