/* mxfp8_encode.c - floats of 8 bits (E4M3) with a power of two for 32 elements of a row.
 *
 *   scale = 2^(floor(log2(largest magnitude)) - 8), the rule of OCP: the largest numbers of a group
 *   may be rounded down to 448; number = E4M3(x / scale) */
#include "scheme/encoding.h"

static const char *prepare(heft_encoded *e)
{
    e->bits = 8;
    const char *why = heft_encoded_set_grid(e);
    heft_encoded_add(e, HEFT_ROLE_WEIGHT, "", HEFT_F8_E4M3FN, e->rows, e->columns);
    heft_encoded_add(e, HEFT_ROLE_SCALE, "_scale", HEFT_U8, e->rows, e->grid.across);
    return why;
}

static heft_encoded_scale scale(const heft_encoded *e, float largest)
{
    enum { MOST_EXPONENT = 8 };
    heft_encoded_scale s;
    (void)e;
    s.stored[0] = heft_power_scale(&s.by, largest, MOST_EXPONENT);
    return s;
}

static void store(const heft_encoded *e, float *x, size_t n, uint8_t *out)
{
    (void)e;
    heft_floats_to(out, HEFT_F8_E4M3FN, x, n);
}

const heft_scheme_encoder heft_encoder_of_mxfp8 = {
    .scheme = "mxfp8", .prepare = prepare, .scale = scale, .store = store, .load = heft_load_e4m3
};
