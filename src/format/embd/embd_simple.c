/* embd_simple.c - reads and writes the simple stream of EMBD's own programs, with the same magic:
 *    0  "EMBD"   4  u32 1   8  u32 tensors
 *   12  per tensor: u32 name length, name, u32 rank, u32 shape[rank], f32 data
 *       u32 tokens, per token: u32 length, text
 * The data are not aligned; there are no metadata and no checksums.
 */
#include "format/embd/embd.h"

enum {
    HEADER = 12,
    MIN_RECORD = 12, /* record of a tensor with an empty name and a single dimension */
    MAX_TEXT = HEFT_EMBD_SIMPLE_TEXT
};

/* ---- reading ---- */

/* Read the record at offset *at, and advance *at past the data, which follow the record. */
static heft_status read_tensor(heft_window *in, heft_index *x, uint64_t *at)
{
    heft_cur c = heft_cur_open(in, *at, in->size, "a tensor's record");
    uint32_t name_bytes = heft_cur_u32(&c), id;
    if (!c.st && name_bytes > MAX_TEXT)
        heft_cur_fail(&c, "a name has %U bytes, at most %U are allowed", (uint64_t)name_bytes,
                      (uint64_t)MAX_TEXT);
    heft_str name = heft_cur_text(&c, name_bytes, "a tensor's name");
    uint32_t rank = heft_cur_u32(&c);
    if (!c.st && (!rank || rank > HEFT_EMBD_RANK))
        heft_cur_fail(&c, "tensor %q: rank is %U, not 1 to 4", name, (uint64_t)rank);
    const uint8_t *shape = heft_cur_take(&c, 4 * (uint64_t)rank);
    if (c.st)
        return c.st;
    uint64_t *dims, data = heft_cur_pos(&c);
    HEFT_TRY(heft_ix_tensor(x, name, HEFT_F32, rank, &dims, &id));
    for (uint32_t i = 0; i < rank; i++) {
        dims[i] = heft_le32(shape + 4 * i);
        if (!dims[i])
            return heft_error_set(x->err, HEFT_E_FORMAT, data - 4 * (uint64_t)(rank - i),
                                  "tensor %q: dimension %U is 0", name, (uint64_t)i);
    }
    if (!name.len)
        heft_ix_note(x, HEFT_WARNING, "embd/empty-name", data, id, "its name is empty");
    HEFT_TRY(heft_ix_dense(x, id, *at, data, HEFT_UNKNOWN_LENGTH));
    *at = data + heft_ix_part_row_at(x, id)->length; /* part and tensor numbers are equal */
    return HEFT_OK;
}

heft_status heft_embd_simple_parse(heft_window *in, heft_index *x, bool may_be_specified)
{
    heft_cur c = heft_cur_open(in, 0, in->size, "the header");
    const uint8_t *header = heft_cur_take(&c, HEADER);
    if (!header)
        return c.st;
    if (heft_le32(header + 4) != 1)
        return heft_error_set(x->err, HEFT_E_FORMAT, 4, "version %U is not 1",
                              (uint64_t)heft_le32(header + 4));
    x->version = heft_lit(heft_embd_simple_version);
    uint32_t tensors = heft_le32(header + 8);
    uint64_t at = HEADER;
    heft_status st = heft_ix_reserve(x, 8, tensors, heft_cur_left(&c), MIN_RECORD);
    for (uint32_t i = 0; i < tensors && !st; i++)
        st = read_tensor(in, x, &at);
    if (!st)
        st = heft_embd_read_simple_vocab(in, x, at, &at);
    if (!st && at < in->size && may_be_specified)
        st =
            heft_error_set(x->err, HEFT_E_FORMAT, at,
                           "bytes follow the vocabulary of a simple stream, but the file has marks "
                           "of the specified layout: its header is damaged");
    else if (!st && at < in->size) {
        heft_ix_omit(x, HEFT_WARNING, "embd/trailing-bytes", (heft_str){ NULL, 0 },
                     "the bytes after the vocabulary are left out");
        heft_ix_note(x, HEFT_WARNING, "embd/trailing-bytes", at, HEFT_NONE,
                     "unexpected bytes after the vocabulary");
    }
    return st;
}

/* ---- writing ---- */

heft_status heft_embd_simple_plan_layout(heft_plan *p, const heft_vocab *v)
{
    p->align = 1;
    p->header_bytes = HEADER;
    heft_status st = heft_plan_place(p, HEADER, 1);
    heft_out count = heft_out_counting();
    heft_embd_put_simple_vocab(&count, v);
    if (!st && !heft_add(&p->file_bytes, p->data_end, count.total))
        st = heft_error_plain(p->err, HEFT_E_LOSSY, "the file would exceed 2^64 bytes");
    return st;
}

heft_status heft_embd_simple_write_header(const heft_plan *p, heft_out *o)
{
    heft_out_str(o, heft_lit("EMBD"));
    heft_out_u32(o, 1);
    heft_out_u32(o, heft_ix_tensors(p->x));
    return o->st;
}

heft_status heft_embd_simple_write_record_header(const heft_plan *p, uint32_t part, heft_out *o)
{
    uint32_t t = heft_ix_owner(p->x, part);
    const heft_ix_tensor_row *row = heft_ix_row(p->x, t);
    const uint64_t *dims = heft_ix_dims(p->x, t);
    heft_out_u32(o, row->name_len);
    heft_out_str(o, heft_ix_name(p->x, t));
    heft_out_u32(o, row->rank);
    for (uint32_t i = 0; i < row->rank; i++)
        heft_out_u32(o, (uint32_t)dims[i]);
    return o->st;
}
