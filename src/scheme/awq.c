/* awq.c - integers packed into 32-bit words along the outputs: qweight [inputs, outputs * bits /
 * 32], scales [groups, outputs], qzeros [groups, outputs * bits / 32]. */
#include "base/checked_math.h"
#include "base/error.h"
#include "base/text.h"
#include "scheme/decoding.h"
#include "scheme/packed.h"
#include "scheme/word_columns.h"

/* ---- decoding ---- */

enum { WORD = 4, WORD_BITS = 32, WIDTH = 4, IN_WORD = WORD_BITS / WIDTH };

/* A row of words has the numbers of an input, in groups of eight outputs. */
static bool read_zero_points(heft_decoder *r, uint64_t group, uint64_t output, size_t count,
                             float *zero)
{
    static const uint8_t shift[IN_WORD] = { 0, 16, 4, 20, 8, 24, 12, 28 };
    uint64_t words = heft_decoding_dim(&r->d->part[HEFT_ROLE_ZERO_POINT], 0);
    const uint8_t *p = heft_decoder_bytes(
        r, HEFT_ROLE_ZERO_POINT, (group * words + output / IN_WORD) * WORD, count / IN_WORD * WORD);
    for (size_t i = 0; p && i < count; i++)
        zero[i] = (float)(heft_word_at(p + i / IN_WORD * WORD) >> shift[i % IN_WORD] & 15);
    return p;
}

/* Turn the rows of eight inputs; the last may be fewer. */
static bool read_eight(heft_decoder *r, uint64_t input, uint64_t output, size_t words,
                       uint32_t *out)
{
    enum { MOST = 16 }; /* words of a strip */
    uint64_t line = r->d->rows / IN_WORD * WORD, left = r->d->columns - input;
    size_t height = left < IN_WORD ? (size_t)left : IN_WORD, bytes = words * WORD;
    const uint8_t *p = heft_decoder_bytes(r, HEFT_ROLE_WEIGHT,
                                          input * line + output / IN_WORD * WORD,
                                          (height - 1) * (size_t)line + bytes);
    uint8_t whole[IN_WORD * MOST * WORD] = { 0 };
    if (p && height == IN_WORD)
        heft_packed_now()->awq(out, p, (size_t)line, words);
    if (!p || height == IN_WORD)
        return p;
    for (size_t i = 0; i < height; i++)
        memcpy(whole + i * bytes, p + i * (size_t)line, bytes);
    heft_packed_now()->awq(out, whole, bytes, words);
    return true;
}

static bool read_band(heft_decoder *r, uint64_t word, size_t height, uint64_t output, size_t count,
                      uint32_t *band)
{
    for (size_t i = 0; i < height; i++, band += count)
        if (!read_eight(r, (word + i) * IN_WORD, output, count / IN_WORD, band))
            return false;
    return true;
}

static const heft_word_columns columns = { read_band, IN_WORD, read_zero_points };

static heft_status check_parts(const heft_decoding *d, heft_error *err)
{
    const heft_decoding_part *w = &d->part[HEFT_ROLE_WEIGHT];
    const heft_decoding_part *z = heft_decoding_part_of(d, HEFT_ROLE_ZERO_POINT);
    const heft_decoding_part *s = &d->part[HEFT_ROLE_SCALE];
    uint64_t groups = heft_decoding_dim(s, 1);
    if (heft_decoding_part_of(d, HEFT_ROLE_GROUP_INDEX))
        return heft_decoding_refuse(d, HEFT_ROLE_GROUP_INDEX, "is not expected here", err);
    if (s->rank != 2 || !groups || heft_div(d->columns - 1, d->group) + 1 != groups)
        return heft_decoding_refuse(d, HEFT_ROLE_SCALE, "has groups that do not divide the inputs",
                                    err);
    if (!z || z->dtype != HEFT_I32 || z->rank != 2 || heft_decoding_dim(z, 1) != groups ||
        heft_decoding_dim(z, 0) != heft_decoding_dim(w, 0))
        return heft_decoding_refuse(d, HEFT_ROLE_ZERO_POINT,
                                    "does not have a number for each group and output", err);
    return heft_decoding_check_groups(d, d->columns, groups, err);
}

static heft_status prepare(heft_decoding *d, heft_error *err)
{
    const heft_decoding_part *w = &d->part[HEFT_ROLE_WEIGHT];
    uint64_t inputs = heft_decoding_dim(w, 1), words = heft_decoding_dim(w, 0);
    bool is_gemm = !d->settings->form.len || heft_str_is(d->settings->form, "gemm") ||
                   heft_str_is(d->settings->form, "GEMM");
    if (!is_gemm || d->bits != WIDTH)
        return heft_error_plain(
            err, HEFT_E_UNSUPPORTED,
            "tensor %q is quantised by awq, which is decoded in the form gemm "
            "with 4 bits only: this is the form %q with %U bits. Start from the "
            "model before it was quantised",
            d->name, d->settings->form, (uint64_t)d->bits);
    if (w->rank != 2 || !inputs || !words || words > UINT32_MAX || inputs > UINT32_MAX)
        return heft_decoding_refuse(d, HEFT_ROLE_WEIGHT, "is not a matrix", err);
    heft_status st = heft_decoding_set_shape(d, words * IN_WORD, inputs, err);
    d->group = d->block[1] && heft_decoding_dim(&d->part[HEFT_ROLE_SCALE], 1) > 1 ? d->block[1]
                                                                                  : inputs;
    if (!st)
        st = check_parts(d, err);
    d->by_column = &columns;
    heft_decoding_set_type(d, HEFT_ROLE_SCALE);
    return st;
}

const heft_scheme_decoder heft_decoder_of_awq = { prepare, heft_decode_word_columns,
                                                  heft_look_up_word_columns };
