/* dcp_item.c - an item of a distributed checkpoint that is written: a zip archive with one tensor.
 *
 *   archive/data.pkl, byteorder, version    as in torch_write.c
 *   archive/data/0                          the elements, at a multiple of 64
 *   the directory
 *
 * Offsets count from the first byte of the item. */
#include "format/torch/dcp_write.h"

#define FOLDER "archive/" /* of the members, as in torch.save() */

enum { ALIGN = HEFT_DCP_ALIGN, DATA = HEFT_DCP_LEADING };

static const struct {
    const char *name, *content; /* NULL: the pickle */
} leading[HEFT_DCP_LEADING] = {
    { FOLDER "data.pkl", NULL },
    { FOLDER "byteorder", "little" },
    { FOLDER "version", "3\n" },
};

/* A tensor of a plan that is not made yet has no parts. */
static uint64_t bytes_of(const heft_index *x, uint32_t t)
{
    const heft_ix_tensor_row *row = heft_ix_row(x, t);
    uint64_t elements, bytes;
    bool fits = heft_product(&elements, heft_ix_dims(x, t), row->rank) &&
                heft_dtype_bytes(&bytes, row->dtype, elements);
    return fits ? bytes : 0; /* heft_torch_dense_obstacle() has refused such a tensor */
}

static void put_content(heft_out *o, uint32_t member, const heft_index *x, uint32_t t)
{
    const heft_ix_tensor_row *row = heft_ix_row(x, t);
    heft_torch_rebuild r = heft_torch_rebuild_as(row->dtype);
    if (leading[member].content)
        heft_out_str(o, heft_lit(leading[member].content));
    else
        heft_torch_put_tensor(o, &r, bytes_of(x, t), heft_ix_dims(x, t), row->rank);
}

void heft_dcp_put_end(heft_out *o, const heft_dcp_record *r, uint32_t crc)
{
    heft_zip_member data = r->members[DATA];
    uint64_t start = o->total;
    data.crc = crc;
    heft_zip_put_descriptor(o, &data);
    heft_range directory = { r->data + data.size + (o->total - start), o->total };
    for (uint32_t i = 0; i < DATA; i++)
        heft_zip_put_entry(o, &r->members[i]);
    heft_zip_put_entry(o, &data);
    directory.length = o->total - directory.length;
    heft_zip_put_end(o, DATA + 1, directory);
}

void heft_dcp_put_start(heft_out *o, const heft_dcp_record *r, const heft_index *x, uint32_t t)
{
    for (uint32_t i = 0; i < DATA; i++) {
        heft_zip_put_header(o, &r->members[i]);
        put_content(o, i, x, t);
        heft_zip_put_descriptor(o, &r->members[i]);
    }
    heft_zip_put_header(o, &r->members[DATA]);
}

void heft_dcp_lay_out(heft_dcp_record *r, const heft_index *x, uint32_t tensor)
{
    uint8_t buf[512];
    heft_out count = heft_out_counting();
    for (uint32_t i = 0; i < DATA; i++) {
        heft_zip_member *m = &r->members[i];
        *m = (heft_zip_member){ .name = heft_lit(leading[i].name), .head = count.total };
        heft_out o = heft_zip_crc_out(buf, sizeof buf, &m->crc);
        put_content(&o, i, x, tensor);
        (void)heft_out_flush(&o); /* the checksum of bytes in memory cannot fail */
        m->size = o.total;
        heft_zip_put_header(&count, m);
        count.total += m->size;
        heft_zip_put_descriptor(&count, m);
    }

    heft_zip_member *data = &r->members[DATA];
    *data = (heft_zip_member){ .name = heft_lit(FOLDER "data/"
                                                       "0"),
                               .head = count.total,
                               .size = bytes_of(x, tensor) };
    heft_zip_put_header(&count, data);
    uint64_t padding = (0 - count.total) & (ALIGN - 1);
    data->extra = (uint32_t)(padding && padding < HEFT_ZIP_EXTRA ? padding + ALIGN : padding);
    r->data = count.total + data->extra;
    count = heft_out_counting();
    heft_dcp_put_end(&count, r, 0);
    r->bytes = r->data + data->size + count.total;
}
