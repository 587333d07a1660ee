/* safetensors.c - reads and verifies safetensors files.
 *
 *    0  u64 n, the length of the header: at most 100,000,000
 *    8  the header, n bytes of JSON: {"__metadata__": {text: text, ...},
 *           name: {"dtype": text, "shape": [...], "data_offsets": [begin, end]}, ...}
 *  8+n  the data; data_offsets count from here
 *
 * Sorted by data_offsets, the tensors fill the data section up to the end of the file without gaps.
 * Heft accepts the same files as the reference implementation, the Rust crate safetensors.
 */
#include "format/safetensors/safetensors.h"

#include "base/bisect.h"
#include "format/attribute_metadata.h"
#include "format/shard_index.h"
#include "model/values.h"

/* ---- offsets of the data ---- */

/* Report data at a wrong offset; `next` is the end of the preceding data. */
static heft_status report_offset(heft_index *x, const heft_st_header *h, uint32_t tensor,
                                 uint64_t next)
{
    uint64_t begin = heft_ix_part_row_at(x, tensor)->offset;
    heft_str name = tensor < x->parts.len ? heft_ix_name(x, tensor)
                                          : heft_ix_role(x, heft_ix_part_row_at(x, tensor)->role);
    if (begin > next)
        return heft_ix_forgive(
            x,
            heft_error_set(x->err, HEFT_E_FORMAT, next,
                           "tensor %q: data begins at offset %U of the data section, but the "
                           "preceding data ends at %U",
                           name, begin - h->data, next - h->data),
            "gap");
    return heft_ix_forgive(
        x,
        heft_error_set(x->err, HEFT_E_FORMAT, begin,
                       "tensor %q: data begins at offset %U of the data section, inside another "
                       "tensor",
                       name, begin - h->data),
        "overlap");
}

/* Return true if some part begins at `offset`; `order` is sorted by offset. */
static bool is_boundary(const heft_index *x, const uint32_t *order, uint32_t count, uint64_t offset)
{
    heft_bisect b = { .end = count };
    while (heft_bisect_next(&b))
        heft_bisect_narrow(&b, heft_ix_part_row_at(x, order[b.mid])->offset < offset);
    return b.first < count && heft_ix_part_row_at(x, order[b.first])->offset == offset;
}

/* Every tensor has a single part, with the same number. */
static heft_status check_sorted(heft_index *x, heft_st_header *h, const uint32_t *order,
                                uint32_t count)
{
    uint64_t next = h->data;
    heft_status st = HEFT_OK;
    for (uint32_t i = 0; i < count && !st; i++) {
        const heft_ix_part_row *part = heft_ix_part_row_at(x, order[i]);
        uint64_t end = part->offset + part->stored;
        if (part->offset != next)
            st = report_offset(x, h, order[i], next);
        next = end > next ? end : next;
    }
    h->next = next - h->data;
    for (uint32_t t = 0; t < heft_ix_tensors(x) && !st; t++) {
        const heft_ix_part_row *part = heft_ix_part_row_at(x, t);
        if (!part->stored && part->offset != next && !is_boundary(x, order, count, part->offset))
            st = report_offset(x, h, t, part->offset < next ? UINT64_MAX : next);
    }
    return st;
}

static heft_status check_offsets(heft_index *x, heft_st_header *h)
{
    heft_status st = HEFT_OK;
    if (!h->in_order) {
        uint32_t *order = NULL, count = 0;
        st = heft_ix_order(x, &order, &count);
        if (!st)
            st = check_sorted(x, h, order, count);
        heft_ix_order_free(x, order);
    }
    if (!st && h->next != h->data_bytes)
        return heft_ix_forgive(
            x,
            heft_error_expect(
                x->err,
                heft_error_set(x->err, HEFT_E_FORMAT, h->data + h->next,
                               "unexpected bytes after the data of the last tensor: %U",
                               h->data_bytes - h->next),
                h->data, h->next),
            "trailing-bytes");
    return st;
}

/* ---- the format ---- */

static heft_status st_parse(heft_window *in, heft_index *x)
{
    if (in->size < HEFT_ST_LENGTH)
        return heft_error_set(x->err, HEFT_E_FORMAT, 0,
                              "the file has %U bytes, but the length of the header alone takes 8",
                              in->size);
    heft_cur c = heft_cur_whole(in, 0, HEFT_ST_LENGTH, "the length of the header");
    const uint8_t *first = heft_cur_take(&c, HEFT_ST_LENGTH);
    if (c.st)
        return c.st;
    uint64_t n = heft_le64(first), left = in->size - HEFT_ST_LENGTH;
    heft_status st = HEFT_OK;
    if (n > HEFT_ST_MAX_HEADER && heft_shard_index_is_json_object(first))
        return heft_st_parse_index(in, x);
    if (n > HEFT_ST_MAX_HEADER)
        st = heft_error_set(x->err, HEFT_E_FORMAT, 0,
                            "the header has %U bytes, but at most 100000000 are allowed", n);
    if (st && (n > left || heft_ix_forgive(x, st, "header-length")))
        return st;
    if (n > left)
        return heft_error_expect(
            x->err,
            heft_error_set(x->err, HEFT_E_FORMAT, 0,
                           "file is truncated: the header has %U bytes, only %U are present", n,
                           left),
            HEFT_ST_LENGTH, n);
    c = heft_cur_whole(in, HEFT_ST_LENGTH, n, "the header");
    heft_str header = { (const char *)heft_cur_take(&c, n), (size_t)n };
    if (c.st)
        return c.st;
    heft_st_header h = { .data = HEFT_ST_LENGTH + n, .data_bytes = left - n, .in_order = true };
    st = heft_st_read_header(&h, x, header);
    if (!st)
        st = check_offsets(x, &h);
    if (!st)
        st = heft_meta_unique(x, "__metadata__");
    if (!st)
        st = heft_attributes_from_metadata(x);
    return st ? st : heft_st_read_pieces(x);
}

static heft_status st_check(heft_check *c)
{
    uint64_t data = c->size;
    if (c->x->is_shard_index) /* an index has no data; each shard is checked on its own */
        return HEFT_OK;
    for (uint32_t t = 0; t < heft_ix_tensors(c->x); t++) {
        uint64_t offset = heft_ix_part_row_at(c->x, t)->offset;
        data = offset < data ? offset : data;
    }
    uint32_t fnuz = heft_st_find_fnuz(c->x);
    if (fnuz != HEFT_NONE) {
        const heft_ix_part_row *part = heft_ix_part_row_at(c->x, fnuz);
        c->report(c, HEFT_NOTE, "safetensors/fnuz", (heft_range){ part->offset, part->stored },
                  fnuz, heft_st_fnuz_text);
    }
    if (data % HEFT_ST_ALIGN)
        c->report(c, HEFT_NOTE, "safetensors/align", (heft_range){ data, c->size - data },
                  HEFT_NONE, "the data section does not begin at a multiple of 8");
    return HEFT_OK;
}

static int st_probe(const uint8_t *head, size_t head_len, const uint8_t *tail, size_t tail_len,
                    uint64_t size)
{
    enum { SURE = 24, BROKEN = 12 };
    (void)tail;
    (void)tail_len;
    if (size <= HEFT_ST_LENGTH || head_len <= HEFT_ST_LENGTH)
        return 0;
    uint64_t n = heft_le64(head);
    size_t at = HEFT_ST_LENGTH;
    if (heft_shard_index_recognise(head, head_len))
        return SURE;
    if (n >= 2 && n <= HEFT_ST_MAX_HEADER && n <= size - HEFT_ST_LENGTH) {
        while (at < head_len && heft_shard_index_is_space(head[at]))
            at++;
        if (at < head_len && head[at] == '{')
            return SURE;
        at = HEFT_ST_LENGTH;
        return heft_st_has_mark((heft_str){ (const char *)head + at, head_len - at }) ? BROKEN : 0;
    }
    /* Truncated, or an invalid length: parse() reports the error. */
    return head[at] == '{' ? BROKEN : 0;
}

static const heft_name_rules name_rules = { "safetensors/name", NULL, NULL, "safetensors/rank" };

const heft_format heft_format_safetensors = {
    .name = "safetensors",
    .title = "safetensors",
    .structure_rule = "safetensors/structure",
    .suffixes = ".safetensors",
    .versions = "",
    .caps = HEFT_CAN_READ | HEFT_CAN_WRITE | HEFT_CAN_EDIT | HEFT_CAN_SCHEMES | HEFT_CAN_META,
    .align = 64,
    .probe = st_probe,
    .parse = st_parse,
    .name_rules = &name_rules,
    .check = st_check,
};

const heft_format_writer heft_format_writer_safetensors = {
    .plan = heft_st_plan,
    .write_header = heft_st_write_header,
    .sharding = &heft_st_sharding,
};
