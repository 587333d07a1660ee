/* ztensor.h - what the generations of zTensor share. */
#ifndef HEFT_ZTENSOR_H
#define HEFT_ZTENSOR_H
#include "format/format.h"
#include "grammar/cbor.h"

enum {
    HEFT_ZT_MAGIC = 8,
    HEFT_ZT_ALIGN = 64,
    HEFT_ZT_PARTS = 256 /* of a tensor of 1.x, at most: each is compared with all when it is read */
};

/* ---- element types, digests, orders: zt_types.c ---- */

typedef struct heft_zt_type {
    heft_dtype dtype;
    char name[8];        /* 1.1 and later: "f32"; empty: only a logical type */
    char long_name[9];   /* 1.0 and 0.1: "float32" */
    const char *logical; /* 1.2: "complex64", over elements of the type `base` */
    heft_dtype base;
} heft_zt_type;

extern const heft_zt_type heft_zt_types[];
extern const size_t heft_zt_type_count;
const heft_zt_type *heft_zt_type_of(heft_dtype t); /* or NULL */
/* The part that has the elements of a tensor in a layout of zTensor 1: "data" or "values". */
static inline heft_str heft_zt_main_role(const heft_ix_tensor_row *row)
{
    bool is_sparse = row->layout == HEFT_SPARSE_CSR || row->layout == HEFT_SPARSE_COO;
    return heft_lit(is_sparse ? "values" : "data");
}
/* Whether files have that digest: `own`, the generation's, or SHA-256. */
bool heft_zt_has_digest(const char *algorithm, const char *own);
/* Tensors by name, parts by role: for heft_sort(), where ctx is the index. */
bool heft_zt_name_below(const void *ctx, uint32_t a, uint32_t b);
bool heft_zt_role_below(const void *ctx, uint32_t a, uint32_t b);

/* ---- values: zt_values.c ---- */

/* The item of kind k, read last, and what follows of it: a value of the file's metadata or, unless
 * tensor is HEFT_NONE, of that tensor's attributes. */
heft_status heft_zt_read_attribute(heft_cbor *c, heft_cbor_kind k, heft_str key, heft_index *x,
                                   uint32_t tensor);
/* What heft keeps in columns of its own goes there.
 * A map of such values, whose head was read last; what names it in messages: "attributes". */
heft_status heft_zt_read_values(heft_cbor *c, heft_index *x, uint32_t tensor, const char *what);
/* Value i of the metadata or, unless tensor is HEFT_NONE, of that tensor's attributes; false: there is
 * none. */
bool heft_zt_value(heft_value *out, const heft_index *x, uint32_t tensor, uint32_t i);
/* The same; a null where there is none. */
heft_value heft_zt_value_at(const heft_index *x, uint32_t tensor, uint32_t i);
/* A value without its key; of a list or map only the head. */
void heft_zt_put_scalar(heft_out *o, const heft_value *v);
/* Value i of the metadata or of a tensor's attributes, without its key, and its children. */
void heft_zt_put_value(heft_out *o, const heft_index *x, uint32_t tensor, uint32_t i);

/* The key "shape" and the dimensions. */
void heft_zt_put_shape(heft_out *o, const heft_index *x, uint32_t tensor);
/* A text of `prefix` and the bytes in hexadecimal, those of a number from the last one on; NULL: zeros
 * (for counting). */
void heft_zt_put_hex(heft_out *o, heft_str prefix, const uint8_t *bytes, uint32_t count,
                     bool is_number, bool is_upper);

/* ---- 0.1 to 1.2: zt_parts.c ---- */

typedef struct heft_zt_part { /* a component, as the manifest has it */
    uint64_t at;              /* of its entry, for messages */
    heft_str role, digest;
    heft_range where;
    uint64_t decoded; /* bytes once decoded, if the manifest says so, or HEFT_NOWHERE */
    heft_dtype dtype;
    bool is_zstd, is_big_endian;
} heft_zt_part;

/* Warn about what is read and left out: `omitted` tells whoever writes the file again, `text` whoever
 * reads it. */
void heft_zt_omit(heft_index *x, const char *rule, uint64_t at, uint32_t tensor,
                  const char *omitted, const char *text);
/* A component of the tensor added last. */
heft_status heft_zt_add_part(heft_index *x, uint32_t tensor, const heft_zt_part *p);
/* Whether the tensor's layout has the components and the rank it takes. */
heft_status heft_zt_check_layout(heft_index *x, uint32_t tensor, uint64_t at);
/* Reads where the manifest is said to lie from the file's last bytes, and sets the index's data_start
 * and data_end to where payloads can be.  *is_10: the footer is its length alone. */
heft_status heft_zt_find_manifest(heft_window *in, heft_index *x, heft_range *out, bool *is_10);
/* A reader over the manifest; its data live as long as the index. */
heft_status heft_zt_open_manifest(heft_cbor *c, heft_window *in, heft_index *x, heft_range where);
/* A manifest that is nested deeper than the reference reads is wrong, not only too much. */
heft_status heft_zt_limit_depth(const heft_cbor *c, heft_status st);
/* The end of the manifest, once its one item was read. */
heft_status heft_zt_close_manifest(heft_cbor *c);
/* An item that was passed over, to be read later. */
typedef struct heft_zt_item {
    const uint8_t *from, *to;
} heft_zt_item;

heft_status heft_zt_skip_value(heft_cbor *c, heft_cbor_kind k, heft_zt_item *out);
heft_cbor heft_zt_reopen(const heft_cbor *c, heft_zt_item item);

/* "raw" or "zstd", and null for raw. */
heft_status heft_zt_read_encoding(heft_cbor *c, heft_cbor_kind k, bool *is_zstd);
/* The value read last, of kind k, is what it has to be; `what` names it in the message: "offset". */
heft_status heft_zt_want_u64(heft_cbor *c, heft_cbor_kind k, const char *what, uint64_t *out);
heft_status heft_zt_want_text(heft_cbor *c, heft_cbor_kind k, const char *what, heft_str *out);
/* Dimensions for the tensor added last, which has none yet. */
heft_status heft_zt_read_shape(heft_cbor *c, heft_cbor_kind k, heft_index *x);

typedef struct heft_zt_fields { /* the keys of a map that mean something */
    const char *what;           /* the map, for messages: "a component" */
    const char *const *names;
    uint32_t count;
} heft_zt_fields;

/* Which field the key read last, of kind k, names; count: none.  seen has a bit for each; a field that
 * comes twice is refused.  Keys that are numbers stand for the first four and set *packed. */
uint32_t heft_zt_field(heft_cbor *c, heft_cbor_kind k, const heft_zt_fields *f, uint32_t *seen,
                       bool *packed);

/* ---- generations ---- */

/* 0.1: only read. */
heft_status heft_zt01_parse(heft_window *in, heft_index *x);

/* 1.0, 1.1 and 1.2; the check is that of 0.1 too. */
heft_status heft_zt1_parse(heft_window *in, heft_index *x);
/* The next tensor with its name, if it is spelled as usual; *read: it was. */
heft_status heft_zt1_read_canonical(heft_cbor *c, heft_index *x, bool is_10, bool *read);
heft_status heft_zt1_notice(heft_index *x);
heft_status heft_zt1_check(heft_check *c);
/* Whether files are written with this version, to the letter, in the container of 1.0 or of 1.1. */
bool heft_zt1_writes(heft_str version, bool is_10);
heft_status heft_zt1_plan(heft_plan *p);
heft_status heft_zt1_write_header(const heft_plan *p, heft_out *o);
heft_status heft_zt1_write_trailer(const heft_plan *p, heft_out *o);

/* Makes an index part one of u32 or u64, with a note. */
heft_status heft_zt_widen_index(heft_plan *p, uint32_t t, heft_ix_part_row *part, heft_dtype to);

/* 2. */
heft_status heft_zt2_parse(heft_window *in, heft_index *x);
heft_status heft_zt2_check(heft_check *c);
heft_status heft_zt2_plan(heft_plan *p);
heft_status heft_zt2_write_header(const heft_plan *p, heft_out *o);
heft_status heft_zt2_write_trailer(const heft_plan *p, heft_out *o);
extern const heft_sharding heft_zt2_sharding;

#endif
