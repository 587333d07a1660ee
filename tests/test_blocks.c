/* test_blocks.c - block types, compared with what ggml's library decoded. */
#include "base/crc.h"
#include "model/blocks.h"
#include "model/dtype.h"
#include "model/float.h"
#include "test_memory.h"

enum { BLOCKS = 256 };

/* CRC-32 of the elements that ggml's library decoded from the blocks of fill_block(), as
 * little-endian f32 with one pattern for NaN. */
static const struct {
    heft_dtype type;
    uint32_t crc;
} ggml[] = {
    { HEFT_Q4_0, 0x14CAE804 },    { HEFT_Q4_1, 0xA9AA8339 },   { HEFT_Q5_0, 0xD7E44E3E },
    { HEFT_Q5_1, 0xBAC7F67D },    { HEFT_Q8_0, 0xFDD2C581 },   { HEFT_Q2_K, 0x233842D8 },
    { HEFT_Q3_K, 0xFB92A24F },    { HEFT_Q4_K, 0xB54CEAFC },   { HEFT_Q5_K, 0x68069A14 },
    { HEFT_Q6_K, 0x75128C67 },    { HEFT_Q2_0, 0x2380C5E6 },   { HEFT_Q1_0, 0xA6D11835 },
    { HEFT_TQ1_0, 0xD94BDBA8 },   { HEFT_TQ2_0, 0xF2B6E9BA },  { HEFT_IQ4_NL, 0x6E31C593 },
    { HEFT_IQ4_XS, 0x6213CCCE },  { HEFT_MXFP4, 0x9B65CFBB },  { HEFT_NVFP4, 0xA404EA94 },
    { HEFT_IQ2_XXS, 0xA6157584 }, { HEFT_IQ2_XS, 0x8AAC1607 }, { HEFT_IQ2_S, 0x2E1D6FA0 },
    { HEFT_IQ3_XXS, 0x7AE06546 }, { HEFT_IQ3_S, 0xC5337670 },  { HEFT_IQ1_S, 0x63D0EF49 },
    { HEFT_IQ1_M, 0xD70A313D },
};

static void fill_block(uint8_t *block, uint32_t bytes, uint32_t *state)
{
    for (uint32_t i = 0; i < bytes; i++) {
        *state = *state * 1664525u + 1013904223u;
        block[i] = (uint8_t)(*state >> 24);
    }
}

/* Store the elements of a block as bytes. */
static void store_floats(uint8_t *out, const float *f, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t bits = f[i] == f[i] ? heft_f32_bits(f[i]) : 0x7FC00000;
        for (uint32_t k = 0; k < sizeof bits; k++)
            out[sizeof bits * i + k] = (uint8_t)(bits >> 8 * k);
    }
}

static void blocks_decode_as_in_ggml(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof ggml / sizeof *ggml; i++) {
        const heft_dtype_info *d = heft_dtype_get(ggml[i].type);
        uint32_t crc = 0, random = 1;
        for (uint32_t b = 0; b < BLOCKS; b++) {
            uint8_t block[HEFT_BLOCK_BYTES], stored[4 * HEFT_BLOCK_ELEMENTS];
            float out[HEFT_BLOCK_ELEMENTS];
            fill_block(block, d->block_bytes, &random);
            heft_decode_block(out, ggml[i].type, block);
            store_floats(stored, out, d->block_elems);
            crc = heft_crc32(crc, stored, 4 * (size_t)d->block_elems);
        }
        if (crc != ggml[i].crc)
            fail_msg("%s: the elements have the CRC %08X, not %08X", d->name, crc, ggml[i].crc);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_decode_as_in_ggml),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
