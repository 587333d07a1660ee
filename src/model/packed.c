/* packed.c - the loops of packed_loops.h in their portable form. */
#include "base/kernels.h"
#include "model/packed_steps.h"

static void look_up_codes(uint8_t *restrict out, const uint8_t *restrict p,
                          const heft_code_table *restrict tables, const uint8_t *restrict which,
                          size_t width, size_t groups)
{
    for (size_t g = 0; g < groups; g++, out += 2 * width, p += width / 2)
        look_up_rest(out, p, tables[which[g]].number, 0, width);
}

const heft_packed_loops heft_portable_packed = {
    .halves = unpack_halves,
    .e2m1 = unpack_e2m1,
    .awq = turn_awq,
    .group = scale_group,
    .look_up = look_up_codes,
    .bytes = look_up_bytes,
    .bf16 = round_to_bf16,
};

const heft_packed_loops *heft_packed_now(void)
{
    const heft_kernels *k = heft_kernels_now();
    return k->packed ? k->packed : &heft_portable_packed;
}
