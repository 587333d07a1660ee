/* gptq.c - integers packed into 32-bit words along the inputs: qweight [inputs * bits / 32,
 * outputs], scales [groups, outputs], qzeros [groups, outputs * bits / 32], g_idx [inputs]. */
#include "base/checked_math.h"
#include "base/error.h"
#include "base/text.h"
#include "scheme/encoding.h"
#include "scheme/packed.h"
#include "scheme/word_columns.h"

/* ---- decoding ---- */

enum { WORD_BITS = 32, WORD = 4, MOST_BITS = 8 };

/* The zero points of a group are a stream of bits along the outputs. */
static bool read_zero_points(heft_decoder *r, uint64_t group, uint64_t output, size_t count,
                             float *zero)
{
    const heft_decoding *d = r->d;
    const heft_decoding_part *z = heft_decoding_part_of(d, HEFT_ROLE_ZERO_POINT);
    uint32_t mask = (1U << d->bits) - 1;
    for (size_t i = 0; !z && i < count; i++)
        zero[i] = (float)(1U << (d->bits - 1));
    if (!z)
        return true;
    uint64_t first = output * d->bits, end = (output + count) * d->bits;
    const uint8_t *p = heft_decoder_bytes(r, HEFT_ROLE_ZERO_POINT,
                                          group * heft_decoding_dim(z, 0) * WORD + first / 8,
                                          (size_t)((end + 7) / 8 - first / 8));
    for (size_t i = 0; p && i < count; i++)
        zero[i] = (float)((heft_bits_at(p, first % 8 + i * d->bits, d->bits) + d->excess) & mask);
    return p;
}

/* The words of an output are one below the other. */
static bool read_band(heft_decoder *r, uint64_t word, size_t height, uint64_t output, size_t count,
                      uint32_t *band)
{
    for (size_t i = 0; i < height; i++, band += count) {
        const uint8_t *p = heft_decoder_bytes(
            r, HEFT_ROLE_WEIGHT, ((word + i) * r->d->rows + output) * WORD, count * WORD);
        if (!p)
            return false;
        for (size_t k = 0; k < count; k++)
            band[k] = heft_le32(p + k * WORD);
    }
    return true;
}

static const heft_word_columns columns = { read_band, 1, read_zero_points };

/* The first form subtracts 1 from zero points, "gptq_v2" does not. */
static heft_status set_form(heft_decoding *d, heft_error *err)
{
    char name[16] = "";
    d->excess = !heft_str_is(d->settings->form, "gptq_v2");
    if (!d->settings->form.len || !d->excess || heft_str_is(d->settings->form, "gptq"))
        return HEFT_OK;
    memcpy(name, d->settings->form.ptr,
           d->settings->form.len < sizeof name ? d->settings->form.len : sizeof name - 1);
    return heft_error_plain(
        err, HEFT_E_UNSUPPORTED,
        "tensor %q is quantised by gptq in the form %s, which is recognised and not decoded: use "
        "the model in the form gptq or gptq_v2 from which it was made",
        d->name, name);
}

static heft_status check_parts(const heft_decoding *d, heft_error *err)
{
    const heft_decoding_part *z = heft_decoding_part_of(d, HEFT_ROLE_ZERO_POINT);
    const heft_decoding_part *s = &d->part[HEFT_ROLE_SCALE];
    const heft_decoding_part *g = heft_decoding_part_of(d, HEFT_ROLE_GROUP_INDEX);
    uint64_t groups = heft_decoding_dim(s, 1);
    uint64_t words = heft_div_up(d->rows * d->bits, WORD_BITS);
    if (!groups || heft_decoding_dim(s, 0) != d->rows || s->rank != 2)
        return heft_decoding_refuse(d, HEFT_ROLE_SCALE, "does not have a number for each output",
                                    err);
    if (z && (z->dtype != HEFT_I32 || z->rank != 2 || heft_decoding_dim(z, 0) != words ||
              heft_decoding_dim(z, 1) != groups))
        return heft_decoding_refuse(d, HEFT_ROLE_ZERO_POINT,
                                    "has another shape than the width of the numbers gives", err);
    if (g && (g->dtype != HEFT_I32 || g->elements != d->columns))
        return heft_decoding_refuse(d, HEFT_ROLE_GROUP_INDEX,
                                    "does not have a number for each input", err);
    if (!g && heft_div(d->columns - 1, d->group) + 1 != groups)
        return heft_decoding_refuse(d, HEFT_ROLE_SCALE, "has groups that do not divide the inputs",
                                    err);
    return heft_decoding_check_groups(d, d->columns, groups, err);
}

static heft_status prepare(heft_decoding *d, heft_error *err)
{
    const heft_decoding_part *w = &d->part[HEFT_ROLE_WEIGHT];
    uint64_t words = heft_decoding_dim(w, 1), outputs = heft_decoding_dim(w, 0);
    HEFT_TRY(set_form(d, err));
    if (w->rank != 2 || !words || !outputs || words > UINT32_MAX || outputs > UINT32_MAX)
        return heft_decoding_refuse(d, HEFT_ROLE_WEIGHT, "is not a matrix", err);
    if (d->bits != 2 && d->bits != 3 && d->bits != 4 && d->bits != MOST_BITS)
        return heft_decoding_refuse(d, HEFT_ROLE_WEIGHT,
                                    d->bits ? "has numbers of a width that is not decoded"
                                            : "has numbers of unknown width: config.json should "
                                              "state bits",
                                    err);
    uint64_t inputs = heft_div(words * WORD_BITS, d->bits);
    if (inputs * d->bits != words * WORD_BITS)
        return heft_decoding_refuse(d, HEFT_ROLE_WEIGHT,
                                    "has a number of words that does not suit the width of its "
                                    "numbers",
                                    err);
    uint64_t groups = heft_decoding_dim(&d->part[HEFT_ROLE_SCALE], 1);
    heft_status st = heft_decoding_set_shape(d, outputs, inputs, err);
    d->group = d->block[1] ? d->block[1] : inputs;
    if (groups == 1)
        d->group = inputs;
    if (!st)
        st = check_parts(d, err);
    d->by_column = &columns;
    heft_decoding_set_type(d, HEFT_ROLE_SCALE);
    return st;
}

const heft_scheme_decoder heft_decoder_of_gptq = { prepare, heft_decode_word_columns,
                                                   heft_look_up_word_columns };

/* ---- integers ---- */

static bool are_middle(const heft_decoding *d)
{
    const heft_decoding_part *z = heft_decoding_part_of(d, HEFT_ROLE_ZERO_POINT);
    uint32_t mask = (1U << d->bits) - 1, middle = 1U << (d->bits - 1);
    if (!z)
        return true;
    heft_code_lines lines = { heft_decoding_dim(z, 1), heft_decoding_dim(z, 0) * WORD, d->rows,
                              d->bits };
    return heft_integer_zeros_are(d, lines, (middle - d->excess) & mask);
}

/* An index that names the groups as they are without one means nothing. */
static bool is_in_order(const heft_decoding *d)
{
    enum { PIECE = 256 };
    const heft_decoding_part *g = heft_decoding_part_of(d, HEFT_ROLE_GROUP_INDEX);
    uint8_t piece[PIECE * WORD];
    heft_error err;
    for (uint64_t at = 0, n; g && at < d->columns; at += n) {
        n = d->columns - at < PIECE ? d->columns - at : PIECE;
        if (heft_part_read(piece, d->f, g->part, at * WORD, (size_t)n * WORD, &err))
            return false;
        for (uint64_t i = 0; i < n; i++)
            if (heft_word_at(piece + i * WORD) != heft_div(at + i, d->group))
                return false;
    }
    return true;
}

static const char *check(const heft_decoding *d, uint32_t *bits, uint64_t *run)
{
    *bits = d->bits;
    *run = d->group < d->columns ? heft_common_divisor(d->group, d->columns) : d->columns;
    if (*bits != 4 && *bits != MOST_BITS)
        return "its integers have neither 4 nor 8 bits";
    if (!is_in_order(d))
        return "its columns are not in the order of their groups";
    return are_middle(d) ? NULL : "it has zero points, and Burn has none";
}

static bool integers(heft_decoder *r, uint64_t row, uint64_t column, size_t count, float *out)
{
    const heft_decoding *d = r->d;
    float middle = (float)(1U << (d->bits - 1));
    uint64_t bit = column * d->bits;
    heft_word_row of;
    if (!heft_find_word_row(r, row, &of))
        return false;
    heft_bits_unpack(out, of.words + bit / 8, bit % 8, d->bits, count);
    for (size_t i = 0; i < count; i++)
        out[i] -= middle;
    return true;
}

static bool scale_of(heft_decoder *r, uint64_t row, uint64_t column, float *out)
{
    heft_word_row of;
    if (!heft_find_word_row(r, row, &of))
        return false;
    *out = of.scale[heft_div(column, r->d->group)];
    return true;
}

const heft_integer_form heft_integers_of_gptq = { check, integers, scale_of };
