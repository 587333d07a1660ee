/* fp8_encode.c - floats of 8 bits (E4M3) with a scale for each block or row.
 *
 *   scale = largest magnitude / 448, or 1 if all numbers are 0; number = E4M3(x / scale), rounded
 *   to the nearest, ties to even */
#include "scheme/encoding.h"

static const char *prepare(heft_encoded *e)
{
    const char *suffix = heft_has_row_scales(e->choice) ? "_scale" : "_scale_inv";
    e->bits = 8;
    const char *why = heft_encoded_set_grid(e);
    heft_encoded_add(e, HEFT_ROLE_WEIGHT, "", HEFT_F8_E4M3FN, e->rows, e->columns);
    heft_encoded_add(e, HEFT_ROLE_SCALE, suffix, HEFT_F32, e->grid.down, e->grid.across);
    return why;
}

static heft_encoded_scale scale(const heft_encoded *e, float largest)
{
    const float most = 448;
    heft_encoded_scale s = { .by = largest / most };
    (void)e;
    if (s.by == 0) /* also of numbers so small that the scale would be 0 */
        s.by = 1;
    heft_put_f32(s.stored, s.by);
    return s;
}

static void store(const heft_encoded *e, float *x, size_t n, uint8_t *out)
{
    (void)e;
    heft_floats_to(out, HEFT_F8_E4M3FN, x, n); /* saturates */
}

const heft_scheme_encoder heft_encoder_of_fp8 = {
    .scheme = "fp8", .prepare = prepare, .scale = scale, .store = store, .load = heft_load_e4m3
};
