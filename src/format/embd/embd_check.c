/* embd_check.c - checks that the bytes between sections and tensors of the specified layout are
 * 0. */
#include "format/embd/embd.h"

enum { SECTIONS = 5 };

static heft_status check_gap(heft_check *c, uint64_t from, uint64_t to)
{
    heft_range gap = { from, to - from };
    return from < to ? c->padding(c, "embd/padding", HEFT_WARNING, gap, 0) : HEFT_OK;
}

/* Compute the ranges of the sections again from the header and the names, as in
 * parse_specified(). */
static heft_status find_sections(heft_check *c, heft_range out[SECTIONS])
{
    uint8_t h[HEFT_EMBD_HEADER] = { 0 }, total[4] = { 0 };
    heft_status st = c->read(c, 0, h, sizeof h);
    uint64_t meta = heft_le32(h + 12), index = 0;
    if (!st && heft_le32(h + 16))
        st = c->read(c, meta + 4, total, sizeof total);
    if (st)
        return st;
    for (uint32_t t = 0; t < heft_ix_tensors(c->x); t++) {
        const heft_ix_tensor_row *row = heft_ix_row(c->x, t);
        uint64_t data = heft_ix_part_row_at(c->x, row->first_part)->offset;
        if (!heft_global_offset_file(c->x, data))
            index += HEFT_EMBD_DESCRIPTOR + (uint64_t)row->name_len;
    }
    out[0] = (heft_range){ 0, HEFT_EMBD_HEADER };
    out[1] = (heft_range){ meta, heft_le32(h + 16)
                                     ? HEFT_EMBD_META_HEADER + (uint64_t)heft_le32(total)
                                     : 0 };
    out[2] = (heft_range){ heft_le32(h + 20), heft_le32(h + 24) };
    out[3] = (heft_range){ heft_le32(h + 28), index };
    out[4] = (heft_range){ heft_le32(h + 36), heft_le64(h + 40) };
    return HEFT_OK;
}

static void sort_sections(heft_range s[SECTIONS])
{
    for (unsigned i = 1; i < SECTIONS; i++)
        for (unsigned k = i; k && s[k].offset < s[k - 1].offset; k--) {
            heft_range swap = s[k];
            s[k] = s[k - 1];
            s[k - 1] = swap;
        }
}

static heft_status check_data(heft_check *c, heft_range data)
{
    const uint32_t *order;
    uint64_t data_end = data.offset; /* of the parts so far */
    uint32_t count;
    heft_status st = c->order(c, &order, &count);
    for (uint32_t i = 0; !st && i < count; i++) {
        const heft_ix_part_row *part = heft_ix_part_row_at(c->x, order[i]);
        uint64_t end = part->offset + part->stored;
        if (order[i] >= c->x->parts.len)
            continue; /* the vocabulary is a part of the file, not of a tensor */
        st = check_gap(c, data_end, part->offset);
        data_end = end > data_end ? end : data_end;
    }
    return st ? st : check_gap(c, data_end, data.offset + data.length);
}

heft_status heft_embd_check(heft_check *c)
{
    heft_range s[SECTIONS] = { { 0, 0 } };
    uint64_t section_end = 0;
    if (heft_str_is(c->x->version, heft_embd_simple_version))
        return HEFT_OK;
    HEFT_TRY(find_sections(c, s));
    heft_range data = s[SECTIONS - 1];
    sort_sections(s);
    heft_status st = HEFT_OK;
    for (unsigned i = 0; i < SECTIONS && !st; i++) {
        if (!s[i].length)
            continue;
        st = check_gap(c, section_end, s[i].offset);
        section_end = s[i].offset + s[i].length;
    }
    if (!st)
        st = check_gap(c, section_end, c->size - HEFT_EMBD_FOOTER);
    return st ? st : check_data(c, data);
}
