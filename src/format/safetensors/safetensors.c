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
#include "format/losses.h"
#include "format/shard_index.h"
#include "grammar/json.h"
#include "model/boxes.h"
#include "model/values.h"

static const char key[] = "DCP_SHARDING_INFO";

typedef struct pieces {
    heft_index *x;
    heft_json j;
    uint64_t **offsets; /* by tensor; NULL: not listed */
} pieces;

static heft_status read_offsets(pieces *s, uint32_t tensor)
{
    heft_index *x = s->x;
    uint32_t rank = heft_ix_row(x, tensor)->rank, n = 0;
    uint64_t *offsets = heft_arena_alloc(&x->arena, ((size_t)rank + 1) * sizeof *offsets, 8);
    heft_json_kind k = heft_json_next(&s->j);
    if (!offsets)
        return heft_error_no_memory(x->err, "for the offsets of pieces");
    if (k != HEFT_JSON_ARRAY)
        return heft_json_fail(&s->j, "tensor %q: saved_offsets is not a list",
                              heft_ix_name(x, tensor));
    while ((k = heft_json_next(&s->j)) == HEFT_JSON_NUMBER && n < rank &&
           heft_json_u64(&offsets[n], s->j.text))
        n++;
    if (s->j.st)
        return s->j.st;
    if (k != HEFT_JSON_ARRAY_END || n != rank)
        return heft_json_fail(&s->j, "tensor %q: saved_offsets is not %U numbers from 0 on",
                              heft_ix_name(x, tensor), (uint64_t)rank);
    s->offsets[tensor] = offsets;
    return HEFT_OK;
}

/* Read the object of one tensor; a name without a tensor in this file has none of its elements. */
static heft_status read_entry(pieces *s, uint32_t tensor)
{
    heft_json_kind k = heft_json_next(&s->j);
    if (k != HEFT_JSON_OBJECT)
        return s->j.st ? s->j.st : heft_json_fail(&s->j, "%s: an entry is not an object", key);
    while ((k = heft_json_next(&s->j)) == HEFT_JSON_KEY) {
        bool is_offsets = heft_str_is(s->j.text, "saved_offsets") && tensor != HEFT_NONE;
        HEFT_TRY(is_offsets ? read_offsets(s, tensor) : heft_json_skip(&s->j, k));
    }
    return s->j.st;
}

static heft_status read_entries(pieces *s)
{
    heft_json_kind k = heft_json_next(&s->j);
    if (k != HEFT_JSON_OBJECT)
        return s->j.st ? s->j.st : heft_json_fail(&s->j, "%s is not an object", key);
    while ((k = heft_json_next(&s->j)) == HEFT_JSON_KEY)
        HEFT_TRY(read_entry(s, heft_ix_find(s->x, s->j.text)));
    if (!s->j.st)
        (void)heft_json_next(&s->j);
    return s->j.st;
}

static heft_status add_pieces(pieces *s)
{
    heft_index *x = s->x;
    for (uint32_t i = 0; i < heft_ix_tensors(x); i++)
        if (s->offsets[i])
            HEFT_TRY(heft_ix_piece_add(x, i, s->offsets[i], NULL, false));
    return heft_ix_pieces_fill(x);
}

static uint32_t find_key(const heft_index *x)
{
    for (uint32_t i = 0; i < x->values.len; i = heft_ix_value_next(x, i)) {
        const heft_value *v = heft_ix_value(x, i);
        if (heft_str_is(v->key, key) && v->kind == HEFT_KIND_STR)
            return i;
    }
    return HEFT_NONE;
}

/* Read where the pieces of tensors belong, if the file has pieces. */
static heft_status st_read_pieces(heft_index *x)
{
    enum { DEPTH = 8 };
    uint32_t i = find_key(x);
    x->has_pieces = i != HEFT_NONE;
    if (!x->has_pieces || HEFT_IS_LEAN)
        return HEFT_OK;
    size_t bytes = ((size_t)heft_ix_tensors(x) + 1) * sizeof(uint64_t *);
    pieces s = { .x = x, .offsets = heft_arena_alloc(&x->arena, bytes, 8) };
    if (!s.offsets)
        return heft_error_no_memory(x->err, "for the offsets of pieces");
    memset(s.offsets, 0, bytes);
    HEFT_TRY(heft_ix_build_name_table(x));
    s.j = heft_json_open(heft_ix_value(x, i)->as.s, HEFT_ST_LENGTH, DEPTH, &x->arena, x->err);
    HEFT_TRY(read_entries(&s));
    x->shard_info.prefix = heft_lit("DCP_"); /* keys of the checkpoint, not of the model */
    return add_pieces(&s);
}

/* PyTorch shards have an index of the same form, with other file names. */
static bool is_own(heft_str file)
{
    return !heft_shard_index_is_torch_name(file);
}

/* Parse the index of a model in several files. */
static heft_status st_parse_index(heft_window *in, heft_index *x)
{
    static const heft_shard_index_kind kind = { .total_rule = "safetensors/total-size",
                                                .mark_rule = "safetensors/byte-order-mark",
                                                .is_own = is_own,
                                                .title = "safetensors" };
    return heft_shard_index_parse(in, x, &kind);
}

/* ---- writing: in the layout of the transformers library ---- */

static void put_name(heft_out *o, heft_str stem, uint32_t i, uint32_t count)
{
    heft_shard_index_put_name(o, stem, i, count, ".safetensors");
}

static void put_index(heft_out *o, const heft_shard_set *s)
{
    heft_shard_index_put(o, s, put_name);
}

const heft_sharding heft_st_sharding = { .name = put_name, .index = put_index };

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
        return st_parse_index(in, x);
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
    return st ? st : st_read_pieces(x);
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
