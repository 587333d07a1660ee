/* torch_write.h - shared by the files that write the PyTorch format: the plan, and the pickle. */
#ifndef HEFT_TORCH_WRITE_H
#define HEFT_TORCH_WRITE_H
#include "format/torch/torch.h"
#include "format/zip_plan.h"

enum { HEFT_TORCH_LEADING = 3 }; /* data.pkl, byteorder, version */

typedef struct heft_torch_plan { /* heft_plan.priv */
    heft_zip_plan zip;
    heft_zip_member leading[HEFT_TORCH_LEADING];
    uint32_t *storage_of; /* number of the storage, which is its key, by part */
    bool is_checkpoint;   /* the dictionary may have an entry of settings */
    bool has_metadata;    /* it has */
} heft_torch_plan;

/* Ways to rebuild a tensor. */
typedef struct heft_torch_rebuild {
    const heft_torch_type *type; /* NULL: PyTorch has no such type */
    heft_torch_form form;        /* PLAIN, TYPED or QUANTIZED */
    heft_value scale, zero_point;
    const char *lost; /* why the attributes cannot be expressed, or NULL */
} heft_torch_rebuild;

/* ---- element types and quantizers: torch_rebuild.c ---- */

/* Choose the rebuild function and the element type for a tensor, from its attributes. */
heft_torch_rebuild heft_torch_rebuild_of(const heft_index *x, uint32_t tensor);
/* Return how a tensor of this type without attributes is rebuilt. */
heft_torch_rebuild heft_torch_rebuild_as(heft_dtype type);
/* Return the layout of a sparse tensor; NULL for any other tensor. */
const heft_torch_layout *heft_torch_layout_of(const heft_index *x, uint32_t tensor);
/* Return true for an attribute that heft_torch_rebuild_of() expresses. */
bool heft_torch_keeps_attribute(const heft_value *v);

/* ---- the pickle: torch_write_pickle.c ---- */

/* Emit data.pkl. */
void heft_torch_put_pickle(const heft_plan *p, heft_out *o);
/* Emit the pickle of one tensor, which takes all of the storage 0. */
void heft_torch_put_tensor(heft_out *o, const heft_torch_rebuild *r, uint64_t bytes,
                           const uint64_t *dims, uint32_t rank);

/* ---- functions of the format: torch_write.c ---- */

/* Return why PyTorch cannot store the name, the shape or the data of a tensor, or NULL. */
const char *heft_torch_name_obstacle(const heft_index *x, uint32_t t);
const char *heft_torch_dense_obstacle(const heft_index *x, uint32_t t);
/* Refuse a model without a tensor. */
heft_status heft_torch_refuse_empty(heft_plan *p);
heft_status heft_torch_plan_file(heft_plan *p);
heft_status heft_torch_write_header(const heft_plan *p, heft_out *o);
heft_status heft_torch_write_record_header(const heft_plan *p, uint32_t part, heft_out *o);
heft_status heft_torch_write_trailer(const heft_plan *p, heft_out *o);
extern const heft_sharding heft_torch_sharding;

#endif
