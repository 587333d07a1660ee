/* mlx.c - integers of 2 to 8 bits as a dense stream of 32-bit words along a row, times a scale,
 * plus a bias; or mxfp4, mxfp8 and nvfp4 in the same words, without biases. */
#include "base/checked_math.h"
#include "base/text.h"
#include "scheme/decoding.h"
#include "scheme/packed.h"

/* ---- decoding ---- */

enum { WORD_BITS = 32, WORD = 4, MOST_BITS = 8 };

/* Without biases the words of a group tell the mode. */
static heft_status set_mode(heft_decoding *d, uint64_t words, uint64_t groups, heft_error *err)
{
    static const struct {
        const char *name;
        uint32_t words, bits, group;
        heft_dtype scale;
    } modes[] = { { "mxfp4", 4, 4, 32, HEFT_F8_E8M0 },
                  { "mxfp8", 8, 8, 32, HEFT_F8_E8M0 },
                  { "nvfp4", 2, 4, 16, HEFT_F8_E4M3FN } };
    heft_str stated = d->settings->form;
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (words == groups * modes[i].words &&
            (!stated.len || heft_str_is(stated, modes[i].name))) {
            d->bits = modes[i].bits;
            d->group = modes[i].group;
            d->part[HEFT_ROLE_SCALE].dtype = modes[i].scale;
            return HEFT_OK;
        }
    return heft_decoding_refuse(
        d, HEFT_ROLE_SCALE,
        "has another number of groups than the mode of config.json, or any mode "
        "without biases",
        err);
}

/* The settings of a model may be overridden for a module: the shapes decide. */
static heft_status set_affine(heft_decoding *d, uint64_t words, uint64_t groups, heft_error *err)
{
    static const uint8_t widths[] = { 2, 3, 4, 5, 6, 8 };
    uint64_t per_group = heft_div(words * WORD_BITS, groups), found = 0;
    uint32_t stated = d->bits;
    bool is_whole = per_group * groups == words * WORD_BITS;
    d->group = d->block[1];
    for (size_t i = 0; i < sizeof widths && is_whole; i++) {
        uint64_t group = heft_div(per_group, widths[i]);
        bool fits = group * widths[i] == per_group && (group == 32 || group == 64 || group == 128);
        bool has_group = !d->block[1] || group == d->block[1];
        bool has_bits = !stated || stated == widths[i];
        if (fits && has_group && has_bits && (d->block[1] || stated)) {
            d->bits = widths[i];
            d->group = group;
            found++;
        }
    }
    return found == 1
               ? HEFT_OK
               : heft_decoding_refuse(d, HEFT_ROLE_SCALE,
                                      "and the weight do not have the group_size and bits that "
                                      "config.json states, or should state",
                                      err);
}

static heft_status read_factor(heft_decoding *d, heft_error *err)
{
    const float largest = 6 * 448;
    heft_status st = HEFT_OK;
    if (heft_decoding_part_of(d, HEFT_ROLE_GLOBAL_SCALE)) {
        st = heft_decoding_scalar(d, HEFT_ROLE_GLOBAL_SCALE, &d->factor, err);
        d->factor /= largest;
    }
    return st;
}

static heft_status prepare(heft_decoding *d, heft_error *err)
{
    const heft_decoding_part *w = &d->part[HEFT_ROLE_WEIGHT];
    const heft_decoding_part *b = heft_decoding_part_of(d, HEFT_ROLE_BIAS);
    uint64_t words = heft_decoding_dim(w, 0), columns;
    uint64_t groups = heft_decoding_dim(&d->part[HEFT_ROLE_SCALE], 0);
    if (!words || !groups || words > UINT32_MAX || groups > UINT32_MAX)
        return heft_decoding_refuse(d, HEFT_ROLE_SCALE, "or the weight has no columns", err);
    heft_status st = b ? set_affine(d, words, groups, err) : set_mode(d, words, groups, err);
    columns = groups * d->group;
    if (!st)
        st = heft_decoding_set_shape(d, heft_decoding_dim(w, 1), columns, err);
    d->block[1] = d->group;
    if (!st)
        st = heft_decoding_set_grid(d, HEFT_ROLE_SCALE, err);
    if (!st && b && (b->elements != d->part[HEFT_ROLE_SCALE].elements || b->rank != w->rank))
        st = heft_decoding_refuse(d, HEFT_ROLE_BIAS, "does not have a number for each scale", err);
    if (b)
        heft_decoding_set_type(d, HEFT_ROLE_SCALE);
    return st ? st : read_factor(d, err);
}

static bool read_numbers(heft_decoder *r, uint64_t row, uint64_t column, size_t count, float *out)
{
    const heft_decoding *d = r->d;
    bool is_affine = heft_decoding_part_of(d, HEFT_ROLE_BIAS);
    uint64_t line = heft_decoding_dim(&d->part[HEFT_ROLE_WEIGHT], 0) * WORD;
    uint64_t first = column * d->bits, end = (column + count) * d->bits;
    const uint8_t *p = heft_decoder_bytes(r, HEFT_ROLE_WEIGHT, row * line + first / 8,
                                          (size_t)((end + 7) / 8 - first / 8));
    if (!p)
        return false;
    if (!is_affine && d->bits == MOST_BITS)
        (void)heft_floats_from(out, HEFT_F8_E4M3FN, p, count);
    else if (!is_affine)
        heft_e2m1_unpack(out, p, column % 2, false, count);
    else
        heft_bits_unpack(out, p, first % 8, d->bits, count);
    return true;
}

static heft_status decode(heft_decoder *r, uint64_t row, uint64_t column, size_t count, float *out)
{
    const heft_decoding *d = r->d;
    float *scale = r->group_scale, *bias = r->group_zero;
    bool is_affine = heft_decoding_part_of(d, HEFT_ROLE_BIAS);
    size_t n = read_numbers(r, row, column, count, out)
                   ? heft_decoder_scales(r, HEFT_ROLE_SCALE, row, column, count, scale)
                   : 0;
    if (!n || (is_affine && !heft_decoder_scales(r, HEFT_ROLE_BIAS, row, column, count, bias)))
        return r->st;
    for (size_t i = 0; i < n; i++)
        scale[i] *= d->factor;
    heft_decoder_multiply(d, column, count, scale, out);
    uint64_t into = column - heft_div(column, d->group) * d->group;
    for (size_t i = 0, g = 0; is_affine && i < count; i++) {
        out[i] += bias[g];
        g += into + i + 1 == (g + 1) * d->group;
    }
    return HEFT_OK;
}

const heft_scheme_decoder heft_decoder_of_mlx = { prepare, decode, NULL };
