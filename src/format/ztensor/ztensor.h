/* ztensor.h - declarations shared by the parsers and writers of all zTensor generations. */
#ifndef HEFT_ZTENSOR_H
#define HEFT_ZTENSOR_H
#include "format/format.h"
#include "grammar/cbor.h"

enum {
    HEFT_ZT_MAGIC = 8,
    HEFT_ZT_ALIGN = 64,
    HEFT_ZT_MAX_PARTS = 256 /* parts of a tensor in 1.x: reading compares each pair of parts */
};

/* ---- element types, digests: zt_types.c ---- */

typedef struct heft_zt_type {
    heft_dtype dtype;
    char name[8];        /* 1.1 and later: "f32"; empty if the type is only logical */
    char long_name[9];   /* 1.0 and 0.1: "float32" */
    const char *logical; /* 1.2: "complex64", over elements of the type `base` */
    heft_dtype base;
} heft_zt_type;

extern const heft_zt_type heft_zt_types[];
extern const size_t heft_zt_type_count;
const heft_zt_type *heft_zt_type_of(heft_dtype t); /* NULL if zTensor 1 cannot store t. */
/* Return the role of the part that holds the elements in a zTensor 1 layout: "data" or "values". */
static inline heft_str heft_zt_main_role(const heft_ix_tensor_row *row)
{
    bool is_sparse = row->layout == HEFT_SPARSE_CSR || row->layout == HEFT_SPARSE_COO;
    return heft_lit(is_sparse ? "values" : "data");
}
/* Return true if files may carry this digest: `own` (the generation's checksum) or SHA-256. */
bool heft_zt_has_digest(const char *algorithm, const char *own);

/* ---- values: zt_values.c ---- */

/* Read the value whose first item, of kind k, was read last. Store it in the file's metadata, or
 * in the attributes of `tensor` unless that is HEFT_NONE. Attributes that have a column of their
 * own in the index go into that column. */
heft_status heft_zt_read_attribute(heft_cbor *c, heft_cbor_kind k, heft_str key, heft_index *x,
                                   uint32_t tensor);
/* Read a map of values whose map head was read last. `what` names the map in messages: "the
 * attributes". */
heft_status heft_zt_read_values(heft_cbor *c, heft_index *x, uint32_t tensor, const char *what);
/* Get value i of the file's metadata, or of the attributes of `tensor` unless that is HEFT_NONE.
 * Return false if there is no value i. */
bool heft_zt_value(heft_value *out, const heft_index *x, uint32_t tensor, uint32_t i);
/* Like heft_zt_value(), but return a null value if there is no value i. */
heft_value heft_zt_value_at(const heft_index *x, uint32_t tensor, uint32_t i);
/* Write a value without its key; of a list or map write only the head. */
void heft_zt_put_scalar(heft_out *o, const heft_value *v);
/* Write value i (metadata or attribute) without its key, and all its children. */
void heft_zt_put_value(heft_out *o, const heft_index *x, uint32_t tensor, uint32_t i);

/* Write the key "shape" and the dimensions. */
void heft_zt_put_shape(heft_out *o, const heft_index *x, uint32_t tensor);
/* Write a text: `prefix`, then the bytes in hexadecimal. If is_number, the last byte comes first
 * (bytes are little-endian). bytes NULL: write zeros, to count the length. */
void heft_zt_put_hex(heft_out *o, heft_str prefix, const uint8_t *bytes, uint32_t count,
                     bool is_number, bool is_upper);

/* ---- 0.1 to 1.2: zt_parts.c ---- */

typedef struct heft_zt_part { /* component, as stated by the manifest */
    uint64_t at;              /* offset of the component's entry, for messages */
    heft_str role, digest;
    heft_range range;
    uint64_t decoded; /* decoded length stated by the manifest, or HEFT_NOWHERE */
    heft_dtype dtype;
    bool is_zstd, is_big_endian;
} heft_zt_part;

/* Record data that is read but not kept: `omitted` warns whoever writes the file again, `text`
 * whoever reads it. */
void heft_zt_omit(heft_index *x, const char *rule, uint64_t at, uint32_t tensor,
                  const char *omitted, const char *text);
/* Append a component to `tensor`, which must be the tensor added last. */
heft_status heft_zt_add_part(heft_index *x, uint32_t tensor, const heft_zt_part *p);
/* Fail if the tensor lacks components, or has another rank, than its layout needs. */
heft_status heft_zt_check_layout(heft_index *x, uint32_t tensor, uint64_t at);
/* Find the manifest through the footer. Set the index's data_start and data_end to the range
 * that payloads may use, and *is_10 if the footer holds only the length. */
heft_status heft_zt_find_manifest(heft_window *in, heft_index *x, heft_range *out, bool *is_10);
/* Open a CBOR reader over the manifest; the bytes stay valid as long as the index. */
heft_status heft_zt_open_manifest(heft_cbor *c, heft_window *in, heft_index *x, heft_range where);
/* Turn HEFT_E_LIMIT into HEFT_E_FORMAT if the manifest is nested deeper than the reference
 * reader accepts; return any other status unchanged. */
heft_status heft_zt_check_depth(const heft_cbor *c, heft_status st);
/* Fail if bytes follow the manifest's single item. */
heft_status heft_zt_close_manifest(heft_cbor *c);
/* Encoded bytes of an item that was skipped, to be read later. */
typedef struct heft_zt_item {
    const uint8_t *from, *to;
} heft_zt_item;

heft_status heft_zt_skip_value(heft_cbor *c, heft_cbor_kind k, heft_zt_item *out);
heft_cbor heft_zt_reopen(const heft_cbor *c, heft_zt_item item);

/* Read the encoding: "raw" or "zstd"; null means raw. */
heft_status heft_zt_read_encoding(heft_cbor *c, heft_cbor_kind k, bool *is_zstd);
/* Expect the value read last, of kind k, to be a u64 or a text. `what` names the value in the
 * message: "offset". */
heft_status heft_zt_expect_u64(heft_cbor *c, heft_cbor_kind k, const char *what, uint64_t *out);
heft_status heft_zt_expect_text(heft_cbor *c, heft_cbor_kind k, const char *what, heft_str *out);
/* Read the dimensions of the tensor added last, which must have none yet. */
heft_status heft_zt_read_shape(heft_cbor *c, heft_cbor_kind k, heft_index *x);

typedef struct heft_zt_fields { /* the known keys of a map */
    const char *map_name;       /* the map as messages name it: "a component" */
    const char *const *names;
    uint32_t count;
} heft_zt_fields;

/* Return the field named by the key read last, of kind k; f->count if the key is unknown. *seen
 * has a bit per field; a repeated field is an error. Numeric keys 0 to 3 stand for the first
 * four fields and set *packed. */
uint32_t heft_zt_field(heft_cbor *c, heft_cbor_kind k, const heft_zt_fields *f, uint32_t *seen,
                       bool *packed);

/* ---- generations ---- */

/* 1.0, 1.1 and 1.2. zt1_check() checks 0.1 as well. */
heft_status heft_zt1_parse(heft_window *in, heft_index *x);
/* Read the next tensor and its name if both use the canonical spelling; otherwise consume
 * nothing and clear *read. */
heft_status heft_zt1_read_canonical(heft_cbor *c, heft_index *x, bool is_10, bool *read);
/* Return true if Heft writes exactly this version string in the container of 1.0 (is_10) or of
 * 1.1. */
bool heft_zt1_writes(heft_str version, bool is_10);
heft_status heft_zt1_plan(heft_plan *p);
heft_status heft_zt1_write_header(const heft_plan *p, heft_out *o);
heft_status heft_zt1_write_trailer(const heft_plan *p, heft_out *o);

/* zTensor 2. */
heft_status heft_zt2_parse(heft_window *in, heft_index *x);
heft_status heft_zt2_check(heft_check *c);
heft_status heft_zt2_plan(heft_plan *p);
heft_status heft_zt2_write_header(const heft_plan *p, heft_out *o);
heft_status heft_zt2_write_trailer(const heft_plan *p, heft_out *o);
extern const heft_sharding heft_zt2_sharding;

/* ---- types shared by planning and writing of zTensor 1 ---- */

typedef struct heft_zt1_generation {
    const char *name, *version;
    bool is_10;             /* One element type per tensor, and no tensor attributes. */
    bool has_any_value;     /* Metadata values may be other than text. */
    bool has_logical_types; /* Writes "type" and "uncompressed_length". */
} heft_zt1_generation;
enum { HEFT_ZT1_GENERATIONS = 3 };
extern const heft_zt1_generation heft_zt1_generations[HEFT_ZT1_GENERATIONS]; /* default first */

typedef struct heft_zt1_ids { /* ids sorted by name or key */
    uint32_t *at, count;
} heft_zt1_ids;

typedef struct heft_zt1_plan_state { /* heft_plan.priv */
    const heft_zt1_generation *g;
    heft_zt1_ids tensors, metadata;
    uint32_t
        *scratch; /* capacity: twice the maximum number of attributes or components of a tensor */
} heft_zt1_plan_state;

#endif
