/* fp8.c - numbers of 8 bits with a scale per block, row or tensor; and mxfp8, whose scale is a
 * power of two for 32 elements of a row.
 *
 *   weight * scale, though DeepSeek calls the scale weight_scale_inv. */
#include "base/checked_math.h"
#include "scheme/decoding.h"

/* The scales belong to blocks as the settings state them, or as DeepSeek has them. Without a
 * statement they may also belong to rows, groups of a row, or the whole matrix. A guess would scale
 * wrongly. */
static heft_status check_blocks(const heft_decoding *d, const uint64_t block[2], heft_error *err)
{
    const heft_scale_grid *g = &d->grid;
    bool is_stated = d->settings->block[0] && d->settings->block[1];
    bool is_row = g->down == d->rows && (g->across == 1 || d->settings->has_group);
    bool is_one = g->down == 1 && g->across == 1;
    bool is_blocks = !d->rows || !d->columns ||
                     (heft_div(d->rows - 1, block[0]) + 1 == g->down &&
                      heft_div(d->columns - 1, block[1]) + 1 == g->across);
    return is_blocks || (!is_stated && (is_row || is_one))
               ? HEFT_OK
               : heft_decoding_refuse(d, HEFT_ROLE_SCALE,
                                      "has a shape that does not suit blocks of the weight", err);
}

static heft_status prepare(heft_decoding *d, heft_error *err)
{
    enum { USUAL_BLOCK = 128 };
    const heft_quantisation_settings *s = d->settings;
    heft_status st = heft_decoding_take_shape(d, 1, err);
    if (!st && heft_decoding_part_of(d, HEFT_ROLE_ZERO_POINT))
        st = heft_decoding_refuse(d, HEFT_ROLE_ZERO_POINT, "has no meaning for 8-bit floats", err);
    d->block[0] = s->block[0] ? s->block[0] : USUAL_BLOCK;
    d->block[1] = s->block[1] ? s->block[1] : s->group ? s->group : USUAL_BLOCK;
    if (!st)
        st = heft_decoding_set_grid(d, HEFT_ROLE_SCALE, err);
    heft_decoding_set_type(d, HEFT_ROLE_SCALE);
    return st ? st : check_blocks(d, d->block, err);
}

static heft_status decode(heft_decoder *r, uint64_t row, uint64_t column, size_t count, float *out)
{
    float scale[HEFT_RUN];
    uint64_t first = row * r->d->columns + column;
    if (heft_decoder_floats(r, HEFT_ROLE_WEIGHT, first, count, out) &&
        heft_decoder_scales(r, HEFT_ROLE_SCALE, row, column, count, scale))
        heft_decoder_multiply(r->d, column, count, scale, out);
    return r->st;
}

const heft_scheme_decoder heft_decoder_of_fp8 = { prepare, decode, NULL };

enum { GROUP = 32 };

/* A power of two may be stored as a plain byte. */
static heft_status prepare_mxfp8(heft_decoding *d, heft_error *err)
{
    d->part[HEFT_ROLE_SCALE].dtype = HEFT_F8_E8M0;
    HEFT_TRY(heft_decoding_take_shape(d, 1, err));
    return d->part[HEFT_ROLE_SCALE].rank == 1 && d->rank > 1
               ? heft_decoding_set_tiles(d, GROUP, err)
               : heft_decoding_set_grid(d, HEFT_ROLE_SCALE, err);
}

const heft_scheme_decoder heft_decoder_of_mxfp8 = { prepare_mxfp8, decode, NULL };
