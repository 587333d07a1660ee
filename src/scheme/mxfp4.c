/* mxfp4.c - numbers of 4 bits (E2M1), two in a byte, with a power of two for 32 elements of a
 * row. */
#include "base/text.h"
#include "scheme/code_tables.h"
#include "scheme/decoding.h"
#include "scheme/packed.h"

/* transformers loads these names of gpt-oss with rows and columns exchanged. */
static bool is_loaded_transposed(const heft_decoding *d)
{
    return d->variant && heft_str_is(heft_lit(d->variant), "gpt-oss") &&
           (heft_str_ends(d->name, "gate_up_proj") || heft_str_ends(d->name, "down_proj"));
}

static heft_status prepare(heft_decoding *d, heft_error *err)
{
    enum { GROUP = 32 };
    heft_decoding_part *w = &d->part[HEFT_ROLE_WEIGHT];
    bool has_group = w->rank == d->part[HEFT_ROLE_SCALE].rank + 1;
    w->rank -= has_group; /* the 16 bytes of a group */
    heft_status st = heft_decoding_take_shape(d,
                                              has_group                  ? GROUP
                                              : w->dtype == HEFT_F4_E2M1 ? 1
                                                                         : 2,
                                              err);
    d->part[HEFT_ROLE_SCALE].dtype = HEFT_F8_E8M0;
    if (!st)
        st = heft_decoding_set_grid(d, HEFT_ROLE_SCALE, err);
    if (!st && is_loaded_transposed(d) && d->rank >= 2) {
        d->is_transposed = true;
        d->dims[d->rank - 2] = d->columns;
        d->dims[d->rank - 1] = d->rows;
    }
    return st;
}

heft_status heft_decode_e2m1(heft_decoder *r, uint64_t row, uint64_t column, size_t count,
                             float *out)
{
    float scale[HEFT_RUN], factor;
    uint64_t first = row * r->d->columns + column;
    if (!heft_decoder_factor(r, &factor))
        return r->st;
    const uint8_t *p = heft_decoder_bytes(r, HEFT_ROLE_WEIGHT, first / 2,
                                          (size_t)(first % 2 + count + 1) / 2);
    size_t n = p ? heft_decoder_scales(r, HEFT_ROLE_SCALE, row, column, count, scale) : 0;
    for (size_t i = 0; i < n; i++)
        scale[i] = r->d->divides ? scale[i] / factor : scale[i] * factor;
    if (n) {
        heft_e2m1_unpack(out, p, first % 2, r->d->is_high_first, count);
        heft_decoder_multiply(r->d, column, count, scale, out);
    }
    return r->st;
}

/* Set the table of a code of the scale, if it is not there. */
static void set_table(heft_decoder *r, heft_dtype scale_type, uint8_t code, heft_dtype as)
{
    float scale, numbers[16];
    if (r->has_scaled[code])
        return;
    (void)heft_decoding_floats(&scale, scale_type, &code, 1);
    scale = r->d->divides ? scale / r->scaled_factor : scale * r->scaled_factor;
    for (size_t i = 0; i < 16; i++)
        numbers[i] = heft_e2m1[i] * scale;
    (void)heft_dtype_cast(&r->scaled[code], as, numbers, HEFT_F32, 16);
    r->has_scaled[code] = true;
}

/* Drop the tables of another type or factor; a NaN as factor drops them each time. */
static void keep_tables(heft_decoder *r, heft_dtype as, float factor)
{
    if (r->scaled_type != as || !(r->scaled_factor == factor))
        memset(r->has_scaled, 0, sizeof r->has_scaled);
    r->scaled_type = as;
    r->scaled_factor = factor;
}

bool heft_look_up_e2m1(heft_decoder *r, uint64_t row, uint64_t column, size_t count, heft_dtype as,
                       uint8_t *out)
{
    const heft_decoding *d = r->d;
    heft_dtype scale_type = d->part[HEFT_ROLE_SCALE].dtype;
    uint64_t first = row * d->columns + column;
    uint8_t raw[HEFT_RUN];
    const uint8_t *which;
    float factor;
    heft_coded_run run = heft_coded_run_of(column, d->grid.width, count);
    if (heft_dtype_size(scale_type) != 1 || d->is_high_first || first % 2 ||
        !heft_coded_run_fits(&run) || !heft_decoder_factor(r, &factor))
        return false;
    run.codes = heft_decoder_bytes(r, HEFT_ROLE_WEIGHT, first / 2, count / 2);
    size_t n = run.codes
                   ? heft_decoder_scale_codes(r, HEFT_ROLE_SCALE, row, column, count, &which, raw)
                   : 0;
    keep_tables(r, as, factor);
    for (size_t i = 0; i < n; i++)
        set_table(r, scale_type, which[i], as);
    if (n)
        heft_look_up_run(&run, r->scaled, which, out);
    return n;
}

const heft_scheme_decoder heft_decoder_of_mxfp4 = { prepare, heft_decode_e2m1, heft_look_up_e2m1 };
