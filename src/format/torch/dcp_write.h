/* dcp_write.h - shared by the files that write distributed checkpoints of PyTorch (DCP). */
#ifndef HEFT_DCP_WRITE_H
#define HEFT_DCP_WRITE_H
#include "format/torch/torch_write.h"

/* Members before the data: data.pkl, byteorder, version; the alignment of the data. */
enum { HEFT_DCP_LEADING = 3, HEFT_DCP_ALIGN = 64 };

typedef struct heft_dcp_record {                   /* an item: a tensor as torch.save() stores it */
    heft_zip_member members[HEFT_DCP_LEADING + 1]; /* their offsets are those in the item */
    uint64_t data;                                 /* offset of the elements in the item */
    uint64_t bytes;                                /* size of the item */
} heft_dcp_record;

/* ---- items: dcp_item.c ---- */

/* Lay out the item of a dense tensor, which depends on its type and shape only. */
void heft_dcp_lay_out(heft_dcp_record *r, const heft_index *x, uint32_t tensor);
/* Emit the bytes before the elements. */
void heft_dcp_put_start(heft_out *o, const heft_dcp_record *r, const heft_index *x, uint32_t t);
/* Emit the bytes after the elements, whose CRC-32 is `crc`. */
void heft_dcp_put_end(heft_out *o, const heft_dcp_record *r, uint32_t crc);

/* ---- .metadata: dcp_write_index.c ---- */

void heft_dcp_put_file_name(heft_out *o, heft_str stem, uint32_t i, uint32_t count);
void heft_dcp_put_index(heft_out *o, const heft_shard_set *s);

#endif
