/* scales.c - reads the scales of a run of elements and applies them.
 *
 * Scales are a grid, row by row; or tiles of 128 x 4 scales, as tensor cores read them.  Tiles
 * follow each other row by row; scale (r, c) of a tile is at r % 32 * 16 + r / 32 * 4 + c. */
#include "base/checked_math.h"
#include "model/packed_loops.h"
#include "scheme/decoding.h"

enum { TILE_DOWN = 128, TILE_ACROSS = 4, TILE_LINES = 32, TILE_WIDTH = 16 };
enum { TILE = TILE_DOWN * TILE_ACROSS };

/* ---- scales ---- */

/* The scales that a run of columns touches. */
typedef struct touched_scales {
    uint64_t line, first; /* of the matrix */
    size_t n;
} touched_scales;

static touched_scales scales_of(const heft_decoder *r, uint64_t row, uint64_t column, size_t count)
{
    const heft_scale_grid *g = &r->d->grid;
    uint64_t first = heft_div(column, g->width), last = heft_div(column + count - 1, g->width);
    uint64_t line = heft_div(row - r->matrix * r->d->rows, g->height);
    return (touched_scales){ line, first, (size_t)(last - first + 1) };
}

/* Read scales of a line from tiles.  All tiles of the line are asked for at once, since the next
 * lines are in them, too. */
static bool read_tiled(heft_decoder *r, heft_role role, touched_scales s, uint8_t *raw)
{
    const heft_scale_grid *g = &r->d->grid;
    uint64_t strip = heft_div_up(g->across, TILE_ACROSS) * TILE;
    uint64_t at = r->matrix * g->matrix + s.line / TILE_DOWN * strip, in_tile = s.line % TILE_DOWN;
    const uint8_t *p = heft_decoder_bytes(r, role, at, (size_t)strip);
    for (size_t i = 0; p && i < s.n; i++) {
        uint64_t k = s.first + i;
        raw[i] = p[k / TILE_ACROSS * TILE + in_tile % TILE_LINES * TILE_WIDTH +
                   in_tile / TILE_LINES * TILE_ACROSS + k % TILE_ACROSS];
    }
    return p;
}

size_t heft_decoder_scale_codes(heft_decoder *r, heft_role role, uint64_t row, uint64_t column,
                                size_t count, const uint8_t **codes, uint8_t *raw)
{
    const heft_scale_grid *g = &r->d->grid;
    touched_scales s = scales_of(r, row, column, count);
    uint64_t at = r->matrix * g->matrix + s.line * g->across + s.first;
    if (!g->is_tiled)
        *codes = heft_decoder_bytes(r, role, at, s.n);
    else
        *codes = read_tiled(r, role, s, raw) ? raw : NULL;
    return *codes ? s.n : 0;
}

size_t heft_decoder_scales(heft_decoder *r, heft_role role, uint64_t row, uint64_t column,
                           size_t count, float *scale)
{
    const heft_scale_grid *g = &r->d->grid;
    touched_scales s = scales_of(r, row, column, count);
    uint64_t at = r->matrix * g->matrix + s.line * g->across + s.first;
    uint8_t raw[HEFT_RUN];
    bool ok = g->is_tiled ? read_tiled(r, role, s, raw) &&
                                heft_floats_from(scale, r->d->part[role].dtype, raw, s.n)
                          : heft_decoder_floats(r, role, at, s.n, scale);
    return ok ? s.n : 0;
}

void heft_decoder_multiply(const heft_decoding *d, uint64_t column, size_t count,
                           const float *scale, float *x)
{
    uint64_t width = d->grid.width, into = column - heft_div(column, width) * width;
    while (count) {
        size_t n = width - into < count ? (size_t)(width - into) : count;
        heft_packed_now()->group(x, 0, *scale++, n);
        x += n;
        count -= n;
        into = 0;
    }
}

/* ---- factors ---- */

bool heft_decoder_factor(heft_decoder *r, float *out)
{
    *out = r->d->factor;
    return !r->d->has_factors || heft_decoder_floats(r, HEFT_ROLE_GLOBAL_SCALE, r->matrix, 1, out);
}

/* ---- columns ---- */

void heft_decoder_scale_columns(heft_decoder *r, uint64_t column, size_t count, float *x)
{
    float scale[HEFT_RUN];
    if (heft_decoder_floats(r, HEFT_ROLE_PRE_SCALE, column, count, scale))
        for (size_t i = 0; i < count; i++)
            x[i] *= scale[i];
}

/* ---- the grid of tiles ---- */

heft_status heft_decoding_set_tiles(heft_decoding *d, uint64_t group, heft_error *err)
{
    const heft_decoding_part *s = heft_decoding_part_of(d, HEFT_ROLE_SCALE);
    heft_scale_grid *g = &d->grid;
    uint64_t across = heft_div_up(d->columns, group), all;
    uint64_t down = (d->rows + TILE_DOWN - 1) / TILE_DOWN * TILE_DOWN;
    if (!s)
        return heft_decoding_refuse(d, HEFT_ROLE_SCALE, "is missing", err);
    *g = (heft_scale_grid){ .down = d->rows, .across = across, .height = 1, .width = group };
    g->matrix = down * ((across + TILE_ACROSS - 1) / TILE_ACROSS * TILE_ACROSS);
    g->is_tiled = true;
    return heft_mul(&all, g->matrix, d->stack) && all == s->elements && s->bytes == all
               ? HEFT_OK
               : heft_decoding_refuse(d, HEFT_ROLE_SCALE,
                                      "does not have whole tiles of 128 x 4 scales for the weight",
                                      err);
}
