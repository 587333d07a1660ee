/* onnx.h - shared by the files of the ONNX format. */
#ifndef HEFT_ONNX_H
#define HEFT_ONNX_H
#include "format/format.h"
#include "grammar/protobuf.h"
#include "model/names.h"

typedef struct heft_onnx {
    heft_window *in;
    heft_index *x;
    heft_names files; /* numbers of the shards of external data, from 0 */
    uint32_t noted;   /* the last file with a note about its checksum, plus 1; 0: none */
    heft_names used;  /* numbers of uses, by the name of the weight; onnx_uses.c */
    heft_vec uses;
    heft_vec *listed;    /* heft_onnx_message of each TensorProto; NULL: they are not listed */
    bool is_initializer; /* the tensor that is added is an initializer of a graph */
} heft_onnx;

/* The place of a TensorProto, for onnx_move.c. */
typedef struct heft_onnx_message {
    heft_range where;
    uint32_t part; /* its elements; HEFT_NONE: they are left out */
    bool is_initializer, is_external;
} heft_onnx_message;

/* A TensorProto, without its dimensions. */
typedef struct heft_onnx_tensor {
    heft_range message;
    heft_str name;
    uint64_t type, rank; /* number of the element type */
    heft_range data;     /* all records of the field that has the numbers */
    uint32_t data_field; /* number of this field; 0: there is none */
    bool is_one_record;  /* it is packed in one record */
    heft_range packed;   /* content of the last record */
    bool is_external, has_checksum;
    bool is_attribute; /* the message is not a TensorProto, but numbers of an attribute */
    heft_str location;
    uint64_t offset, length; /* external data; length HEFT_UNKNOWN_LENGTH: not stated */
} heft_onnx_tensor;

/* ---- element types: onnx_types.c ---- */

typedef struct heft_onnx_type {
    const char *name;
    heft_dtype dtype; /* HEFT_UNTYPED: texts */
    uint8_t field;    /* field of TensorProto with numbers of the type */
    uint8_t per_byte; /* elements in a byte, if Heft has no such type; or 0 */
} heft_onnx_type;

/* Return the row of an element type, or NULL. */
const heft_onnx_type *heft_onnx_type_of(uint64_t number);

/* ---- the whole model: onnx.c ---- */

/* Fill x; listed: gets each TensorProto, or NULL. */
heft_status heft_onnx_parse(heft_window *in, heft_index *x, heft_vec *listed);

/* ---- TensorProto: onnx_tensor.c ---- */

heft_status heft_onnx_read_tensor(heft_onnx *o, heft_range message, heft_onnx_tensor *t);
/* Add a tensor that was read; the name must live as long as the index. */
heft_status heft_onnx_add_tensor(heft_onnx *o, const heft_onnx_tensor *t, heft_str name);
/* Append a part to the tensor added last: its elements, or values or indices of a sparse one. */
heft_status heft_onnx_add_part(heft_onnx *o, const heft_onnx_tensor *t, uint32_t id, heft_str role,
                               heft_dtype type, uint64_t count);
/* Note that a tensor of texts, or of an unknown type, is left out, and add its bytes as a part. */
heft_status heft_onnx_leave_out(heft_onnx *o, const heft_onnx_tensor *t, heft_str name);
/* Add a SparseTensorProto; name ptr NULL: that of its values. */
heft_status heft_onnx_add_sparse(heft_onnx *o, heft_range message, heft_str name);

/* ---- the value of a Constant: onnx_constant.c ---- */

/* Add the tensor of an AttributeProto, if it has one. */
heft_status heft_onnx_add_constant(heft_onnx *o, heft_range attribute, heft_str name);

/* ---- quantised weights: onnx_uses.c ---- */

/* Note the nodes of a graph that decode its weights.  path: the names on the way to the graph. */
heft_status heft_onnx_find_uses(heft_onnx *o, heft_range graph, heft_str path);
/* Say how the tensor added last is decoded, if a node decodes it. */
heft_status heft_onnx_add_use(heft_onnx *o, uint32_t id);
void heft_onnx_free_uses(heft_onnx *o);

/* ---- metadata: onnx_facts.c ---- */

/* Add the metadata of a field of ModelProto, unless it has none; c: the cursor after the field. */
heft_status heft_onnx_add_fact(heft_onnx *o, heft_cur *c, const heft_protobuf_field *f);
/* Add an unsigned number under a key of Heft's. */
heft_status heft_onnx_add_count(heft_onnx *o, const char *key, uint64_t count);

#endif
