/* bitsandbytes.c - indexes of 4 bits into a map of 16 numbers, times the largest number of a block;
 * or integers of 8 bits, times SCB / 127 of the row. */
#include "scheme/recognition.h"

#define FOUR_BITS(state)                                                                       \
    {                                                                                          \
        { "absmax", ".absmax", false }, { "weight", "", false },                               \
            { "quant_map", ".quant_map", false }, { "nested_absmax", ".nested_absmax", true }, \
            { "nested_quant_map", ".nested_quant_map", true },                                 \
        {                                                                                      \
            "quant_state", ".quant_state.bitsandbytes__" state, false                          \
        }                                                                                      \
    }

static const heft_scheme_names names[] = {
    { "nf4", "", FOUR_BITS("nf4") },
    { "fp4", "", FOUR_BITS("fp4") },
    { NULL,
      "",
      { { "absmax", ".absmax", false },
        { "weight", "", false },
        { "quant_map", ".quant_map", false },
        { "nested_absmax", ".nested_absmax", true },
        { "nested_quant_map", ".nested_quant_map", true } } },
    { "int8",
      "/weight",
      { { "scale", "/SCB", false },
        { "weight", "/weight", false },
        { "format", "/weight_format", true } } },
};

/* The bytes of a packed weight may be stored as any type, quant_storage. */
static bool recognise(heft_scheme_group *g)
{
    bool is_int8 = heft_group_part(g, "scale") != HEFT_NONE;
    g->bits = is_int8 ? 8 : 4;
    if (is_int8)
        heft_group_rows(g, 0);
    return is_int8 ? heft_group_dtype(g, "weight") == HEFT_I8
                   : heft_group_dtype(g, "quant_map") == HEFT_F32;
}

const heft_scheme heft_scheme_bitsandbytes = {
    .name = "bitsandbytes",
    .names = names,
    .name_count = sizeof names / sizeof *names,
    .recognise = recognise,
};
