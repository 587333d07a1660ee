/* records.c - the slow path of heft_ix_add(), which grows columns and reports errors. */
#include "model/records.h"

#include "base/error.h"

heft_status heft_ix_add_slowly(heft_index *x, heft_ix_record *r)
{
    uint64_t *dims;
    HEFT_TRY(heft_ix_tensor(x, r->name, r->dtype, r->rank, &dims, &r->id));
    for (uint32_t i = 0; i < r->rank; i++)
        dims[i] = heft_le64(r->shape + 8 * i);
    heft_ix_row(x, r->id)->flags = r->flags;
    HEFT_TRY(heft_ix_dense(x, r->id, r->at, r->offset, r->length));
    r->length = heft_ix_part_row_at(x, x->parts.len - 1)->length;
    heft_product(&r->elements, dims, r->rank);
    return HEFT_OK;
}
