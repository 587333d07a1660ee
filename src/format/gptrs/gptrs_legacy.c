/* gptrs_legacy.c - reads gpt-rs files from before the final version 2.
 *
 * Version 1, after the magic, u32 1 and, in a checkpoint, u32 length and config_json:
 *    u32 tensors, then per tensor: u32 length, name, u32 rank, u64 dims[rank], u32 element type,
 *    u8 requires_grad, u64 length, data
 * Version 2 with an index in bincode (27 and 28 December 2025), u32 length and then:
 *    u64 tensors, then per tensor: u64 length, name, [checkpoint: u128 base id], u64 rank,
 *    u64 dims[rank], u32 element type, u8 requires_grad, u64 offset, u64 length
 */
#include "format/gptrs/gptrs_entry.h"

enum {
    V1_TAIL = 13, /* element type, flag, length */
    V1_MIN = 8 + V1_TAIL,
    TAIL = HEFT_GPTRS_TAIL, /* element type, flag, offset, length */
    BASE_ID = HEFT_GPTRS_BASE_ID
};

/* Read an entry of a bincode index, which heft_gptrs_is_bincode() has checked to be complete, or a
 * record of version 1, whose data follow the record. */
static heft_status read_entry(heft_cur *c, heft_gptrs_entry *e, bool is_bincode, bool is_checkpoint)
{
    *e = (heft_gptrs_entry){ .at = heft_cur_pos(c) };
    e->name = heft_cur_text(c, is_bincode ? heft_cur_u64(c) : heft_cur_u32(c), "a tensor's name");
    e->base_id = is_bincode && is_checkpoint ? heft_cur_take(c, BASE_ID) : NULL;
    e->rank = is_bincode ? heft_cur_u64(c) : heft_cur_u32(c);
    e->dims = heft_cur_take(c, 8 * e->rank);
    const uint8_t *tail = heft_cur_take(c, is_bincode ? TAIL : V1_TAIL);
    if (c->st)
        return c->st;
    e->tag = heft_le32(tail);
    e->grad = tail[4];
    e->offset = is_bincode ? heft_le64(tail + 5) : heft_cur_pos(c);
    e->length = heft_le64(tail + (is_bincode ? 13 : 5));
    return HEFT_OK;
}

/* ---- version 1 ---- */

heft_status heft_gptrs_parse_v1(heft_window *in, heft_index *x, uint64_t at, bool is_checkpoint)
{
    heft_cur c = heft_cur_open(in, at, in->size, "the tensor count");
    uint32_t tensors = heft_cur_u32(&c);
    if (c.st)
        return c.st;
    x->version = heft_lit("1");
    heft_status st = heft_ix_reserve(x, at, tensors, heft_cur_left(&c), V1_MIN);
    at = heft_cur_pos(&c);
    for (uint32_t i = 0; i < tensors && !st; i++) {
        heft_gptrs_entry e = { .is_ascii = false };
        c = heft_cur_open(in, at, in->size, "a tensor's record");
        st = read_entry(&c, &e, false, is_checkpoint);
        if (!st)
            st = heft_gptrs_add(x, &e, is_checkpoint);
        at = e.offset + e.length;
    }
    return st;
}

/* ---- version 2 with a bincode index ---- */

/* The try_ functions read from an index that is in memory as a whole.  Return false, without an
 * error message, if too few bytes are left. */
static bool try_skip(heft_cur *c, uint64_t n)
{
    return n <= heft_cur_left(c) && heft_cur_take(c, n);
}

static bool try_u32(heft_cur *c, uint64_t *out)
{
    bool fits = heft_cur_left(c) >= 4;
    *out = fits ? heft_cur_u32(c) : 0;
    return fits;
}

static bool try_u64(heft_cur *c, uint64_t *out)
{
    bool fits = heft_cur_left(c) >= 8;
    *out = fits ? heft_cur_u64(c) : 0;
    return fits;
}

/* Return true if the entries fill the index exactly when counts and lengths are read by
 * try_count. */
static bool fills_index(heft_cur c, bool (*try_count)(heft_cur *, uint64_t *), uint64_t base_id)
{
    uint64_t tensors, name_len, rank;
    bool fits = try_count(&c, &tensors);
    for (uint64_t i = 0; fits && i < tensors; i++)
        fits = try_count(&c, &name_len) && try_skip(&c, name_len) && try_skip(&c, base_id) &&
               try_count(&c, &rank) && rank <= heft_cur_left(&c) / 8 && try_skip(&c, 8 * rank) &&
               try_skip(&c, TAIL);
    return fits && !heft_cur_left(&c);
}

/* The upper half of the u64 count of a bincode index is zero.  A regular index may begin with the
 * same bytes if the first name is empty, so both interpretations are tried. */
bool heft_gptrs_is_bincode(heft_cur index, bool is_checkpoint)
{
    uint64_t base_id = is_checkpoint ? BASE_ID : 0, count;
    heft_cur c = index;
    return try_u64(&c, &count) && count <= UINT32_MAX && !fills_index(index, try_u32, base_id) &&
           fills_index(index, try_u64, base_id);
}

heft_status heft_gptrs_parse_bincode(heft_cur *index, heft_index *x, bool is_checkpoint)
{
    uint64_t at = heft_cur_pos(index), tensors = heft_cur_u64(index);
    uint64_t min_bytes = 16 + TAIL + (is_checkpoint ? BASE_ID : 0);
    x->version = heft_lit("2-bincode");
    HEFT_TRY(heft_ix_reserve(x, at, tensors, heft_cur_left(index), min_bytes));
    for (uint64_t i = 0; i < tensors; i++) {
        heft_gptrs_entry e = { .is_ascii = false };
        HEFT_TRY(read_entry(index, &e, true, is_checkpoint));
        HEFT_TRY(heft_gptrs_add(x, &e, is_checkpoint));
    }
    return HEFT_OK;
}
