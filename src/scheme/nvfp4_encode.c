/* nvfp4_encode.c - numbers of 4 bits (E2M1) with a scale of 8 bits (E4M3) for 16 elements of a row,
 * and a factor of the whole tensor. With A, the largest magnitude of the tensor, and a, that of 16:
 *
 *   ModelOpt, GGUF       factor g = A / 2688, scale s = E4M3(a / (6 * g)), number = E2M1(x / (s g))
 *   compressed-tensors   factor g = 2688 / A, scale s = E4M3(a / 6 * g), number = E2M1(x / (s / g))
 *
 * 2688 is 6 * 448. g is 1 if A is 0; s is 1 if a is 0, and at least 2^-9. */
#include "base/text.h"
#include "model/float.h"
#include "scheme/e2m1_encode.h"

enum { GROUP = 16, BLOCK = 64, LARGEST_FINITE = 0x7F7FFFFF };

/* The factor is what the sum of codes and scales is divided by. */
static bool divides(const heft_encoded *e)
{
    return !e->choice->form;
}

/* The reciprocal of a factor near the limits of f32 is 0, infinite or has few bits. */
static bool has_reciprocal(float factor)
{
    enum { LEAST_NORMAL = 0x00800000 };
    uint32_t bits = heft_f32_bits(1 / factor) & INT32_MAX, of = heft_f32_bits(factor) & INT32_MAX;
    bool is_special = !of || of > LARGEST_FINITE; /* 0 and infinity are each other's */
    return is_special || (bits >= LEAST_NORMAL && bits <= LARGEST_FINITE);
}

static bool copies(const heft_encoded *e)
{
    const heft_decoding *d = e->decoding;
    return heft_has_e2m1(e, &heft_scheme_nvfp4, HEFT_NVFP4, HEFT_F8_E4M3FN) &&
           (!d || d->divides == divides(e) || has_reciprocal(d->factor));
}

/* Take the factor of a source whose codes and scales are copied. */
static void copy_factor(heft_encoded *e, heft_encoded_part *p)
{
    const heft_decoding *d = e->decoding;
    e->factor = d ? d->factor : 1;
    if (d && d->divides != divides(e))
        e->factor = 1 / e->factor;
    heft_put_f32(p->fixed, e->factor);
}

static const char *prepare(heft_encoded *e)
{
    bool is_gguf = heft_encoded_has_form(e, "gguf"),
         is_modelopt = heft_encoded_has_form(e, "modelopt");
    e->bits = 4;
    const char *why = heft_encoded_set_grid(e);
    if (!why && is_gguf && e->columns % BLOCK)
        why = "its columns do not fill blocks of 64";
    if (!why && is_gguf && !heft_str_ends(e->name, ".weight"))
        why = "its name does not end with .weight";
    if (why)
        return why;
    heft_encoded_part *factor;
    if (is_gguf) {
        heft_encoded_add(e, HEFT_ROLE_WEIGHT, "", HEFT_NVFP4, e->rows, e->columns);
        factor = heft_encoded_add(e, HEFT_ROLE_GLOBAL_SCALE, "/scale", HEFT_F32, 0, 1);
    } else {
        heft_encoded_add(e, HEFT_ROLE_WEIGHT, is_modelopt ? "" : "_packed", HEFT_U8, e->rows,
                         e->columns / 2);
        heft_encoded_add(e, HEFT_ROLE_SCALE, "_scale", HEFT_F8_E4M3FN, e->rows, e->columns / GROUP);
        factor = heft_encoded_add(e, HEFT_ROLE_GLOBAL_SCALE,
                                  is_modelopt ? "_scale_2" : "_global_scale", HEFT_F32, 0, 1);
        factor->rank = is_modelopt ? 0 : 1;
    }
    e->needs_largest = !e->is_copy;
    if (e->is_copy)
        copy_factor(e, factor);
    return NULL;
}

static void begin(heft_encoded *e)
{
    const float most = 6 * 448;
    e->factor = divides(e) ? most / e->largest : e->largest / most;
    if (e->largest == 0 || e->factor == 0)
        e->factor = 1;
    if (heft_f32_bits(e->factor) > LARGEST_FINITE)
        e->factor = heft_f32_of(LARGEST_FINITE);
    heft_put_f32(e->parts[e->part_count - 1].fixed, e->factor);
}

static heft_encoded_scale scale(const heft_encoded *e, float largest)
{
    heft_encoded_scale s = { .by = 1 };
    float x = divides(e) ? largest / 6 * e->factor : largest / (6 * e->factor);
    if (largest == 0)
        x = 1;
    heft_floats_to(s.stored, HEFT_F8_E4M3FN, &x, 1);
    if (!s.stored[0])
        s.stored[0] = 1; /* 2^-9 */
    (void)heft_floats_from(&x, HEFT_F8_E4M3FN, s.stored, 1);
    s.by = divides(e) ? x / e->factor : x * e->factor;
    if (s.by == 0) /* the numbers are too small for any scale, and become 0 */
        s.by = 1;
    return s;
}

const heft_scheme_encoder heft_encoder_of_nvfp4 = { .scheme = "nvfp4",
                                                    .copies = copies,
                                                    .prepare = prepare,
                                                    .begin = begin,
                                                    .scale = scale,
                                                    .read = heft_read_e2m1 };
