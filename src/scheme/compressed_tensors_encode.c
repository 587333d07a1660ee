/* compressed_tensors_encode.c - integers of 4 or 8 bits in words of 32 bits along a row, with a
 * scale for each group or row, without zero points.
 *
 *   scale = largest magnitude / ((2^bits - 1) / 2), at most largest number / 2^(bits - 1),
 *           rounded to its type, or 1 if that is 0;
 *   number = x / scale, rounded to the nearest, ties to even, and kept within the bits;
 *   stored = number + 2^(bits - 1) */
#include "base/checked_math.h"
#include "scheme/quantise_methods.h"

/* The type of the scales is that of the numbers: readers decode to it. */
static heft_dtype scale_type(const heft_encoded *e)
{
    return e->from == HEFT_F16 || e->from == HEFT_F32 ? e->from
           : e->from == HEFT_F64                      ? HEFT_F32
                                                      : HEFT_BF16;
}

static const char *prepare(heft_encoded *e)
{
    enum { WORD_BITS = 32 };
    e->bits = e->choice->row->bits;
    const char *why = heft_encoded_set_grid(e);
    if (!why && e->columns * e->bits % WORD_BITS)
        why = "its columns do not fill words of 32 bits";
    heft_encoded_add(e, HEFT_ROLE_WEIGHT, "_packed", HEFT_I32, e->rows,
                     e->columns * e->bits / WORD_BITS);
    heft_encoded_add(e, HEFT_ROLE_SCALE, "_scale", scale_type(e), e->rows, e->grid.across);
    heft_encoded_part *shape = heft_encoded_add(e, HEFT_ROLE_SHAPE, "_shape", HEFT_I64, 0, 2);
    heft_put_le64(shape->fixed, e->rows);
    heft_put_le64(shape->fixed + 8, e->columns);
    return why;
}

/* The least number, -2^(bits - 1), is decoded to f16 or bf16 and stays finite. */
static heft_encoded_scale scale(const heft_encoded *e, float largest)
{
    const float most_f16 = 65504, most_bf16 = 0x1.FEp127F;
    heft_dtype t = scale_type(e);
    float most = (t == HEFT_F16 ? most_f16 : most_bf16) / (e->bits == 4 ? 8 : 128);
    heft_encoded_scale s = { .by = largest / (e->bits == 4 ? 7.5F : 127.5F) };
    s.by = s.by < most ? s.by : most;
    heft_floats_to(s.stored, t, &s.by, 1);
    (void)heft_floats_from(&s.by, t, s.stored, 1);
    if (s.by == 0) {
        s.by = 1;
        heft_floats_to(s.stored, t, &s.by, 1);
    }
    return s;
}

/* Adding 1.5 * 2^23 rounds a small number to an integer, which the lowest bits then have. */
static void store(const heft_encoded *e, float *x, size_t n, uint8_t *out)
{
    const float round = 12582912;
    float middle = e->bits == 4 ? 8 : 128;
    heft_drop_nan(x, n);
    for (size_t i = 0; i < n; i++) {
        float v = x[i] > -middle ? x[i] : -middle;
        v = v < middle - 1 ? v : middle - 1;
        x[i] = (v + round) - round + middle;
    }
    if (e->bits == 4)
        for (size_t i = 0; i < n; i += 2)
            out[i / 2] = (uint8_t)((uint32_t)x[i] | (uint32_t)x[i + 1] << 4);
    else
        for (size_t i = 0; i < n; i++)
            out[i] = (uint8_t)x[i];
}

static void load(const heft_encoded *e, const uint8_t *in, size_t n, float *x)
{
    for (size_t i = 0; i < n; i++)
        x[i] = e->bits == 4 ? (float)(in[i / 2] >> 4 * (i % 2) & 15) - 8 : (float)in[i] - 128;
}

const heft_scheme_encoder heft_encoder_of_integers = {
    .scheme = "pack-quantized", .prepare = prepare, .scale = scale, .store = store, .load = load
};
