/* nvfp4.c - numbers of 4 bits (E2M1), two in a byte, with a scale of 8 bits (E4M3) for 16 elements
 * of a row, and a scale of the whole tensor. */
#include "base/text.h"
#include "scheme/decoding.h"

enum { GROUP = 16 };

/* GGUF: blocks with scales of their own, and a factor of the tensor, or of each expert. */
static heft_status prepare_blocks(heft_decoding *d, heft_error *err)
{
    HEFT_TRY(heft_decoding_take_shape(d, 1, err));
    return heft_decoding_set_factor(d, err);
}

static heft_status decode_blocks(heft_decoder *r, uint64_t first, size_t count, float *out)
{
    enum { ELEMENTS = 64, BYTES = 36 };
    float run[HEFT_RUN + 2 * ELEMENTS], factor;
    uint64_t block = first / ELEMENTS;
    size_t skip = (size_t)(first % ELEMENTS), blocks = (skip + count + ELEMENTS - 1) / ELEMENTS;
    if (!heft_decoder_factor(r, &factor))
        return r->st;
    const uint8_t *p = heft_decoder_bytes(r, HEFT_ROLE_WEIGHT, block * BYTES, blocks * BYTES);
    if (p)
        (void)heft_floats_from(run, HEFT_NVFP4, p, blocks * ELEMENTS);
    for (size_t i = 0; p && i < count; i++)
        out[i] = run[skip + i] * factor;
    return r->st;
}

static heft_status decode(heft_decoder *r, uint64_t row, uint64_t column, size_t count, float *out)
{
    return r->d->part[HEFT_ROLE_WEIGHT].dtype == HEFT_NVFP4
               ? decode_blocks(r, row * r->d->columns + column, count, out)
               : heft_decode_e2m1(r, row, column, count, out);
}

static bool look_up(heft_decoder *r, uint64_t row, uint64_t column, size_t count, heft_dtype as,
                    uint8_t *out)
{
    return r->d->part[HEFT_ROLE_WEIGHT].dtype != HEFT_NVFP4 &&
           heft_look_up_e2m1(r, row, column, count, as, out);
}

/* ModelOpt stores the factor of the whole tensor, compressed-tensors what divides. */
static heft_status prepare(heft_decoding *d, heft_error *err)
{
    heft_decoding_part *w = &d->part[HEFT_ROLE_WEIGHT], *s = &d->part[HEFT_ROLE_SCALE];
    bool divides = heft_str_is(heft_lit(d->variant), "compressed-tensors");
    if (w->dtype == HEFT_NVFP4)
        return prepare_blocks(d, err);
    if (s->dtype == HEFT_U8)
        s->dtype = HEFT_F8_E4M3FN;
    heft_status st = heft_decoding_take_shape(d, w->dtype == HEFT_F4_E2M1 ? 1 : 2, err);
    if (!st && s->rank == 1 && s->elements > 1) /* TensorRT-LLM stores them so */
        st = heft_decoding_set_tiles(d, GROUP, err);
    else if (!st)
        st = heft_decoding_set_grid(d, HEFT_ROLE_SCALE, err);
    if (!st)
        st = heft_decoding_set_factor(d, err);
    d->divides = divides;
    return st;
}

const heft_scheme_decoder heft_decoder_of_nvfp4 = { prepare, decode, look_up };
