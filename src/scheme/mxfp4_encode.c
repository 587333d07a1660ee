/* mxfp4_encode.c - numbers of 4 bits (E2M1) with a power of two for 32 elements of a row.
 *
 *   scale = 2^(floor(log2(largest magnitude)) - 2), the rule of OCP: the largest numbers of a group
 *   may be rounded down to 6; number = E2M1(x / scale) */
#include "base/text.h"
#include "scheme/e2m1_encode.h"

enum { GROUP = 32 };

static bool copies(const heft_encoded *e)
{
    return heft_has_e2m1(e, &heft_scheme_mxfp4, HEFT_MXFP4, HEFT_F8_E8M0);
}

static bool is_gpt_oss_expert(const heft_encoded *e)
{
    return e->rank == 3 &&
           (heft_str_ends(e->name, "gate_up_proj") || heft_str_ends(e->name, "down_proj"));
}

/* transformers keeps rows and columns of these tensors exchanged while they are not quantised. */
static bool transposes(const heft_encoded *e)
{
    return heft_encoded_has_form(e, "gpt-oss") && is_gpt_oss_expert(e);
}

/* The parts of gpt-oss have a dimension for the bytes of a group. */
static void add_gpt_oss(heft_encoded *e)
{
    heft_encoded_part *w = heft_encoded_add(e, HEFT_ROLE_WEIGHT, "_blocks", HEFT_U8, e->rows,
                                            e->columns / GROUP);
    w->dims[w->rank++] = GROUP / 2;
    heft_encoded_add(e, HEFT_ROLE_SCALE, "_scales", HEFT_U8, e->rows, e->columns / GROUP);
}

static const char *prepare(heft_encoded *e)
{
    bool is_gpt_oss = heft_encoded_has_form(e, "gpt-oss");
    e->bits = 4;
    const char *why = heft_encoded_set_grid(e);
    if (!why && is_gpt_oss && e->rank + 1 > HEFT_LOGICAL_RANK)
        why = "it has too many dimensions";
    if (!why && is_gpt_oss && !e->is_copy && !is_gpt_oss_expert(e))
        why = "no expert of gpt-oss";
    if (why)
        return why;
    if (heft_encoded_has_form(e, "gguf")) {
        heft_encoded_add(e, HEFT_ROLE_WEIGHT, "", HEFT_MXFP4, e->rows, e->columns);
    } else if (is_gpt_oss) {
        add_gpt_oss(e);
    } else {
        heft_encoded_add(e, HEFT_ROLE_WEIGHT, "_packed", HEFT_U8, e->rows, e->columns / 2);
        heft_encoded_add(e, HEFT_ROLE_SCALE, "_scale", HEFT_U8, e->rows, e->columns / GROUP);
    }
    return NULL;
}

static heft_encoded_scale scale(const heft_encoded *e, float largest)
{
    enum { MOST_EXPONENT = 2 };
    heft_encoded_scale s;
    (void)e;
    s.stored[0] = heft_power_scale(&s.by, largest, MOST_EXPONENT);
    return s;
}

const heft_scheme_encoder heft_encoder_of_mxfp4 = { .scheme = "mxfp4",
                                                    .copies = copies,
                                                    .transposes = transposes,
                                                    .prepare = prepare,
                                                    .scale = scale,
                                                    .read = heft_read_e2m1 };
