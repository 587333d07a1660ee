/* packed_sets.c - the loops of packed_steps.h, compiled for several instruction sets: meson.build
 * renames heft_packed_set for each. */
#include "simd/packed_sets.h"

#include "model/packed_steps.h"
#include "simd/packed_instructions.h"

static void look_up_groups(uint8_t *restrict out, const uint8_t *restrict p,
                           const heft_code_table *restrict tables, const uint8_t *restrict which,
                           size_t width, size_t groups)
{
    for (size_t g = 0; g < groups; g++, out += 2 * width, p += width / 2) {
        const uint16_t *table = tables[which[g]].number;
        look_up_rest(out, p, table, heft_look_up_codes(out, p, table, width), width);
    }
}

static void look_up_numbers(float *restrict out, const uint8_t *restrict p, size_t n,
                            const heft_byte_numbers *restrict numbers)
{
    size_t done = heft_look_up_floats(out, p, n, numbers->third, numbers->top);
    look_up_bytes(out + done, p + done, n - done, numbers);
}

static void put_bf16(uint8_t *restrict out, const float *restrict x, size_t n)
{
    size_t done = heft_put_bf16(out, x, n);
    round_to_bf16(out + 2 * done, x + done, n - done);
}

const heft_packed_loops heft_packed_set = {
    .halves = unpack_halves,
    .e2m1 = unpack_e2m1,
    .awq = turn_awq,
    .group = scale_group,
    .look_up = look_up_groups,
    .bytes = look_up_numbers,
    .bf16 = put_bf16,
};
