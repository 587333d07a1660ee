/* dcp_write.c - writes the files of a distributed checkpoint: items (dcp_item.c) one after the
 * other, as PyTorch's FileSystemWriter writes them.
 *
 * Each tensor is stored whole, as a single chunk.  The checksum of an item follows its elements, so
 * the bytes before a part are the end of the preceding item, and the beginning of its own. */
#include "format/torch/dcp_write.h"

#include "format/losses.h"
#include "format/torch/dcp.h"

static const char where[] = "a distributed checkpoint";

/* ---- the plan ---- */

typedef struct plan {  /* heft_plan.priv */
    uint32_t *digests; /* by tensor: of its elements */
} plan;

static heft_status plan_tensor(heft_plan *p, uint32_t t)
{
    enum { MAX_RANK = 64 };
    if (!heft_loss_is_plain(p->x, t))
        return heft_loss_tensor(p, "torch/tensor", t,
                                "only dense tensors can be stored in a distributed checkpoint");
    if (!heft_torch_rebuild_as(heft_ix_row(p->x, t)->dtype).type)
        return heft_loss_type(p, "torch/dtype", t, where);
    const char *why = heft_torch_name_obstacle(p->x, t);
    if (!why && heft_ix_row(p->x, t)->name_len > HEFT_DCP_MAX_NAME)
        why = "a distributed checkpoint is read with names of at most 4096 bytes";
    if (!why)
        why = heft_torch_dense_obstacle(p->x, t);
    if (!why && heft_ix_row(p->x, t)->rank > MAX_RANK)
        why = "a distributed checkpoint has tensors of at most 64 dimensions";
    return why ? heft_loss_tensor(p, "torch/tensor", t, why) : HEFT_OK;
}

static heft_status place_items(heft_plan *p, const plan *own)
{
    heft_dcp_record r;
    uint64_t end = 0;
    for (uint32_t t = 0; t < heft_ix_tensors(p->x); t++) {
        uint32_t part = heft_ix_row(p->x, t)->first_part;
        heft_ix_part_row *row = heft_ix_part_row_at(p->x, part);
        heft_dcp_lay_out(&r, p->x, t);
        row->offset = end + r.data;
        row->stored = row->length;
        if (r.bytes < row->length || !heft_add(&end, end, r.bytes) || end > INT64_MAX)
            return heft_error_plain(p->err, HEFT_E_LOSSY, "the file would exceed 2^63 bytes");
        p->order[p->order_count++] = part;
        p->data_end = row->offset + row->length;
        HEFT_TRY(heft_plan_digest_range(p, "crc32", (heft_range){ row->offset, row->length },
                                        &own->digests[t]));
    }
    p->file_bytes = end;
    return HEFT_OK;
}

static heft_status dcp_plan(heft_plan *p)
{
    plan *own = heft_plan_alloc(p, sizeof *own);
    if (!own)
        return HEFT_E_NOMEM;
    p->priv = own;
    p->needs_preceding_digests = true;
    if (p->requested_align > 1 && p->requested_align != HEFT_DCP_ALIGN)
        HEFT_TRY(heft_plan_warn(p, "torch/align",
                                "a distributed checkpoint aligns the elements "
                                "of an item to 64 bytes, as PyTorch does"));
    HEFT_TRY(heft_loss_parts(p, "torch/parts", NULL, where));
    HEFT_TRY(heft_loss_metadata(p, "torch/metadata", where));
    HEFT_TRY(heft_loss_attributes(p, "torch/attributes", 0));
    for (uint32_t t = 0; t < heft_ix_tensors(p->x); t++)
        HEFT_TRY(plan_tensor(p, t));
    heft_plan_compact(p);
    size_t count = heft_ix_tensors(p->x);
    if (!count)
        return heft_torch_refuse_empty(p);
    p->order = heft_plan_alloc(p, count * sizeof *p->order);
    own->digests = heft_plan_alloc(p, count * sizeof *own->digests);
    return p->order && own->digests ? place_items(p, own) : HEFT_E_NOMEM;
}

/* ---- writing ---- */

static heft_status write_nothing(const heft_plan *p, heft_out *o)
{
    (void)p;
    return o->st;
}

/* Emit the end of the item of a tensor. */
static heft_status finish_item(const heft_plan *p, uint32_t t, heft_out *o)
{
    const plan *own = p->priv;
    heft_dcp_record r;
    const uint8_t *crc;
    HEFT_TRY(heft_plan_range_digest(p, own->digests[t], &crc));
    heft_dcp_lay_out(&r, p->x, t);
    heft_dcp_put_end(o, &r, heft_le32(crc));
    return o->st;
}

static heft_status write_record_header(const heft_plan *p, uint32_t part, heft_out *o)
{
    uint32_t t = heft_ix_owner(p->x, part);
    heft_dcp_record r;
    if (t)
        HEFT_TRY(finish_item(p, t - 1, o));
    heft_dcp_lay_out(&r, p->x, t);
    heft_dcp_put_start(o, &r, p->x, t);
    return o->st;
}

static heft_status write_trailer(const heft_plan *p, heft_out *o)
{
    return finish_item(p, heft_ix_tensors(p->x) - 1, o);
}

/* ---- the format ---- */

static const heft_sharding sharding = { .name = heft_dcp_put_file_name,
                                        .index = heft_dcp_put_index };

const heft_format_writer heft_format_writer_dcp = {
    .plan = dcp_plan,
    .write_header = write_nothing,
    .write_record_header = write_record_header,
    .write_trailer = write_trailer,
    .sharding = &sharding,
};
