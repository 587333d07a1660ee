/* derived.c - the derived forms of the library: numbers as f32, matrices in tiles. */
#include <string.h>

#include <heft/params.h>

#include "base/checked_math.h"
#include "base/error.h"

/* ---- numbers as f32 ---- */

static uint64_t elements(const heft_param *p)
{
    uint64_t n = 1;
    heft_product(&n, p->dims, p->rank);
    return n;
}

static heft_status f32_shape(heft_param *out, const heft_param *src, const void *ctx,
                             heft_error *err)
{
    (void)ctx;
    if (!heft_dtype_can_cast(HEFT_F32, src->dtype))
        return heft_error_plain(err, HEFT_E_UNSUPPORTED, "this element type cannot be cast to f32");
    out->dtype = HEFT_F32;
    if (!heft_mul(&out->bytes, elements(src), 4))
        return heft_error_plain(err, HEFT_E_LIMIT, "the parameter exceeds 2^64 bytes");
    return HEFT_OK;
}

static heft_status f32_make(void *dst, const heft_param *out, const heft_param *src,
                            const void *ctx, heft_error *err)
{
    (void)ctx;
    if (heft_dtype_cast(dst, out->dtype, src->data, src->dtype, (size_t)elements(src)))
        return HEFT_OK;
    return heft_error_plain(err, HEFT_E_UNSUPPORTED, "this element type cannot be cast to f32");
}

heft_derivation heft_derivation_f32(void)
{
    enum { KIND = 1 };
    return (heft_derivation){ KIND, f32_shape, f32_make, NULL };
}

/* ---- tiles ---- */

typedef struct grid {
    uint64_t rows, columns, down, across; /* elements of the matrix, tiles */
    uint32_t tile_rows, tile_columns, size;
} grid;

static bool lay_grid(grid *g, const heft_param *src, const heft_tiling *t)
{
    const heft_dtype_info *info = heft_dtype_get(src->dtype);
    if (src->rank != 2 || !t->rows || !t->columns || info->block_elems != 1)
        return false;
    *g = (grid){ .rows = src->dims[0],
                 .columns = src->dims[1],
                 .tile_rows = t->rows,
                 .tile_columns = t->columns,
                 .size = info->block_bytes };
    g->down = g->rows / t->rows + !!(g->rows % t->rows);
    g->across = g->columns / t->columns + !!(g->columns % t->columns);
    return true;
}

static heft_status tiles_shape(heft_param *out, const heft_param *src, const void *ctx,
                               heft_error *err)
{
    grid g;
    uint64_t bytes = 1;
    if (!lay_grid(&g, src, ctx))
        return heft_error_plain(err, HEFT_E_UNSUPPORTED,
                                "only matrices of a plain element type can be tiled");
    if (!heft_mul(&bytes, g.down, g.across) || !heft_mul(&bytes, bytes, g.tile_rows) ||
        !heft_mul(&bytes, bytes, g.tile_columns) || !heft_mul(&bytes, bytes, g.size))
        return heft_error_plain(err, HEFT_E_LIMIT, "the tiles exceed 2^64 bytes");
    out->bytes = bytes;
    return HEFT_OK; /* the shape is the shape of the matrix */
}

static heft_status tiles_make(void *dst, const heft_param *out, const heft_param *src,
                              const void *ctx, heft_error *err)
{
    grid g;
    uint8_t *tile = dst;
    const uint8_t *from = src->data;
    (void)err;
    lay_grid(&g, src, ctx);
    memset(dst, 0, (size_t)out->bytes);
    for (uint64_t row = 0; row < g.rows; row += g.tile_rows)
        for (uint64_t column = 0; column < g.columns; column += g.tile_columns) {
            for (uint64_t k = 0; k < g.tile_columns && column + k < g.columns; k++)
                for (uint64_t i = 0; i < g.tile_rows && row + i < g.rows; i++)
                    memcpy(tile + (k * g.tile_rows + i) * g.size,
                           from + ((row + i) * g.columns + column + k) * g.size, g.size);
            tile += (uint64_t)g.tile_rows * g.tile_columns * g.size;
        }
    return HEFT_OK;
}

heft_derivation heft_derivation_tiles(const heft_tiling *t)
{
    /* Each tile size is a kind of its own. */
    uint64_t kind = (uint64_t)1 << 63 | (uint64_t)t->rows << 31 | t->columns;
    return (heft_derivation){ kind, tiles_shape, tiles_make, t };
}
