/* group.c - what a scheme asks about tensors with the names of its parts. */
#include "base/checked_math.h"
#include "base/text.h"
#include "scheme/recognition.h"

uint32_t heft_group_part(const heft_scheme_group *g, const char *role)
{
    const heft_scheme_part *part = g->names->part;
    for (uint32_t k = 0; k < HEFT_SCHEME_PARTS && part[k].role; k++)
        if (heft_str_is(heft_lit(part[k].role), role) && g->tensor[k] != HEFT_NONE)
            return g->tensor[k];
    return HEFT_NONE;
}

static const heft_ix_tensor_row *row_of(const heft_scheme_group *g, const char *role)
{
    uint32_t tensor = heft_group_part(g, role);
    return tensor == HEFT_NONE ? NULL : heft_ix_row(g->x, tensor);
}

heft_dtype heft_group_dtype(const heft_scheme_group *g, const char *role)
{
    const heft_ix_tensor_row *row = row_of(g, role);
    return row && row->layout == HEFT_DENSE ? row->dtype : (heft_dtype)HEFT_UNTYPED;
}

uint32_t heft_group_rank(const heft_scheme_group *g, const char *role)
{
    const heft_ix_tensor_row *row = row_of(g, role);
    return row ? row->rank : 0;
}

uint64_t heft_group_dim(const heft_scheme_group *g, const char *role, uint32_t from_last)
{
    const heft_ix_tensor_row *row = row_of(g, role);
    if (!row || from_last >= row->rank)
        return 1;
    return heft_ix_dims(g->x, heft_group_part(g, role))[row->rank - 1 - from_last];
}

bool heft_group_is_scalar(const heft_scheme_group *g, const char *role)
{
    const heft_ix_tensor_row *row = row_of(g, role);
    bool is = row;
    for (uint32_t i = 0; is && i < row->rank; i++)
        is = heft_group_dim(g, role, i) == 1;
    return is;
}

void heft_group_rows(heft_scheme_group *g, uint64_t size)
{
    g->block[0] = 1;
    g->block[1] = size;
    g->has_block = true;
}

/* Return true if `count` blocks of that size cover `total` elements, the last perhaps in part. */
static bool is_size(uint64_t size, uint64_t total, uint64_t count)
{
    return size && heft_div(total - 1, size) + 1 == count;
}

/* Return the size of each of `count` blocks.  Blocks at the edge are partial, so several sizes are
 * possible: the stated one comes first, then powers of two. */
static uint64_t block_size(uint64_t total, uint64_t count, uint64_t stated)
{
    static const uint16_t usual[] = { 128, 64, 32, 16, 256, 512, 1024 };
    if (is_size(stated, total, count))
        return stated;
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if (is_size(usual[i], total, count))
            return usual[i];
    return heft_div(total - 1, count) + 1;
}

bool heft_group_blocks(heft_scheme_group *g, uint64_t rows, uint64_t columns)
{
    uint32_t rank = heft_group_rank(g, "scale");
    uint64_t down = heft_group_dim(g, "scale", 1), across = heft_group_dim(g, "scale", 0);
    if (rank == 4 && heft_group_rank(g, "weight") == 2 && across == 1 &&
        heft_group_dim(g, "scale", 2) == 1) { /* ModelOpt: [M / 128, 1, N / 128, 1] */
        across = down;
        down = heft_group_dim(g, "scale", 3);
    }
    /* [M] and, for a stack of matrices, [E] */
    if (rank == 1 && across > 1) {
        down = across == rows ? rows : 1;
        across = 1;
    }
    if (!down || !across || down > rows || across > columns)
        return false;
    uint64_t stated = g->settings->has_group ? g->settings->group : g->settings->block[1];
    bool is_by_row = down == rows && rows > 1;
    g->has_block = true;
    g->block[0] = is_by_row            ? 1
                  : down + across == 2 ? 0
                                       : block_size(rows, down, g->settings->block[0]);
    g->block[1] = across == 1 && (is_by_row || down == 1) ? 0 : block_size(columns, across, stated);
    return true;
}

/* ---- element types ---- */

bool heft_is_float8(heft_dtype t)
{
    return t >= HEFT_F8_E4M3FN && t <= HEFT_F8_E5M2FNUZ;
}

bool heft_is_scale(heft_dtype t)
{
    return (t >= HEFT_F16 && t <= HEFT_F64) || t == HEFT_F8_E8M0;
}

bool heft_is_packed(heft_dtype t)
{
    return (t >= HEFT_U8 && t <= HEFT_I32) || t == HEFT_F4_E2M1;
}
