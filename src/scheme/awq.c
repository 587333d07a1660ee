/* awq.c - integers packed into 32-bit words along the outputs: qweight [inputs, outputs * bits /
 * 32], scales [groups, outputs], qzeros [groups, outputs * bits / 32]. */
#include "base/checked_math.h"
#include "base/error.h"
#include "base/text.h"
#include "scheme/decoding.h"
#include "scheme/packed.h"

/* ---- decoding ---- */

enum { WORD = 4, WORD_BITS = 32, WIDTH = 4, IN_WORD = WORD_BITS / WIDTH };

static heft_status check_parts(const heft_decoding *d, heft_error *err)
{
    const heft_decoding_part *w = &d->part[HEFT_ROLE_WEIGHT];
    const heft_decoding_part *z = heft_decoding_part_of(d, HEFT_ROLE_ZERO_POINT);
    const heft_decoding_part *s = &d->part[HEFT_ROLE_SCALE];
    uint64_t groups = heft_decoding_dim(s, 1);
    if (heft_decoding_part_of(d, HEFT_ROLE_GROUP_INDEX))
        return heft_decoding_refuse(d, HEFT_ROLE_GROUP_INDEX, "is not expected here", err);
    if (s->rank != 2 || !groups || heft_div(d->rows - 1, d->group) + 1 != groups)
        return heft_decoding_refuse(d, HEFT_ROLE_SCALE, "has groups that do not divide the inputs",
                                    err);
    if (!z || z->dtype != HEFT_I32 || z->rank != 2 || heft_decoding_dim(z, 1) != groups ||
        heft_decoding_dim(z, 0) != heft_decoding_dim(w, 0))
        return heft_decoding_refuse(d, HEFT_ROLE_ZERO_POINT,
                                    "does not have a number for each group and output", err);
    return heft_decoding_check_groups(d, d->rows, groups, err);
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
    heft_status st = heft_decoding_set_shape(d, inputs, words * IN_WORD, err);
    d->group = d->block[1] && heft_decoding_dim(&d->part[HEFT_ROLE_SCALE], 1) > 1 ? d->block[1]
                                                                                  : inputs;
    if (!st)
        st = check_parts(d, err);
    d->is_transposed = true;
    d->dims[0] = d->columns;
    d->dims[1] = d->rows;
    heft_decoding_set_type(d, HEFT_ROLE_SCALE);
    return st;
}

/* Unpack the numbers of a row of words. */
static bool read_numbers(heft_decoder *r, heft_role role, uint64_t row, uint64_t output,
                         size_t count, float *out)
{
    uint64_t first = output / IN_WORD, end = (output + count - 1) / IN_WORD + 1;
    uint64_t words = heft_decoding_dim(&r->d->part[role], 0);
    const uint8_t *p = heft_decoder_bytes(r, role, (row * words + first) * WORD,
                                          (size_t)(end - first) * WORD);
    size_t skip = (size_t)(output % IN_WORD);
    while (p && count) {
        size_t whole = skip ? 0 : count / IN_WORD, n = whole * IN_WORD;
        float numbers[IN_WORD];
        heft_packed_now()->awq(whole ? out : numbers, p, whole ? whole : 1);
        if (!whole) {
            n = IN_WORD - skip < count ? IN_WORD - skip : count;
            memcpy(out, numbers + skip, n * sizeof *out);
        }
        p += (whole ? whole : 1) * WORD;
        out += n;
        count -= n;
        skip = 0;
    }
    return p;
}

/* A stored row has the numbers of an input for all outputs. */
static heft_status decode(heft_decoder *r, uint64_t input, uint64_t output, size_t count,
                          float *out)
{
    uint64_t group = heft_div(input, r->d->group);
    if (!read_numbers(r, HEFT_ROLE_WEIGHT, input, output, count, out))
        return r->st;
    if (!heft_decoder_has_group(r, group, output, count) &&
        (!read_numbers(r, HEFT_ROLE_ZERO_POINT, group, output, count, r->group_zero) ||
         !heft_decoder_floats(r, HEFT_ROLE_SCALE, group * r->d->columns + output, count,
                              r->group_scale)))
        return heft_decoder_drop_group(r);
    heft_decoder_apply_group(r, count, out);
    return HEFT_OK;
}

const heft_scheme_decoder heft_decoder_of_awq = { prepare, decode };
