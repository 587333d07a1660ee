/* test_encode.c - encoding of block types: bytes that ggml's library has made, and the same bytes
 * by the searches of each instruction set that the processor has. */
#include "model/block_encode.h"

#include <math.h>
#include <string.h>

#include "base/crc.h"
#include "model/blocks.h"
#include "model/dtype.h"
#include "model/float.h"
#include "simd/simd.h"
#include "test_memory.h"

#include "guarded.h"

enum { COLUMNS = 768, ROWS = 16, ROW_BYTES = 3 * HEFT_BLOCK_BYTES };

static float rows[ROWS][COLUMNS], importance[COLUMNS];
static uint32_t state_of_draw;

static uint32_t draw(void)
{
    state_of_draw = state_of_draw * 1664525 + 1013904223;
    return state_of_draw;
}

/* Numbers whose products are the same in any program that follows IEEE 754. */
static void fill_rows(void)
{
    state_of_draw = 1;
    for (uint32_t i = 0; i < ROWS * COLUMNS; i++) {
        float whole = (float)((int32_t)(draw() >> 8) - (1 << 23));
        rows[i / COLUMNS][i % COLUMNS] = ldexpf(whole, -26 - (int)(draw() >> 29));
    }
    for (uint32_t i = 0; i < COLUMNS; i++)
        importance[i] = ldexpf((float)((draw() >> 8) + 1), -20);
}

static size_t row_bytes(heft_dtype t)
{
    return (size_t)COLUMNS / heft_dtype_get(t)->block_elems * heft_dtype_get(t)->block_bytes;
}

/* CRC-32 of the rows as ggml 0.4.0 encodes them, without and with importance. */
static const struct {
    heft_dtype type;
    uint32_t plain, weighted;
} vectors[] = {
    { HEFT_Q8_0, 0x923F8EB9, 0x923F8EB9 },   { HEFT_Q4_0, 0x5BD6872B, 0x5F3A1F3A },
    { HEFT_Q4_1, 0xB7093AD8, 0x5F17EF93 },   { HEFT_Q5_0, 0xADF36669, 0xA75DDE78 },
    { HEFT_Q5_1, 0xE98EF94F, 0x87977698 },   { HEFT_Q2_K, 0x41D5CE53, 0x4574CC11 },
    { HEFT_Q3_K, 0x3720BDFA, 0xE8609DD3 },   { HEFT_Q4_K, 0x9E349E2A, 0x7C5BC8F4 },
    { HEFT_Q5_K, 0x2355D5A5, 0x1F868501 },   { HEFT_Q6_K, 0x70D65803, 0x75163FFC },
    { HEFT_Q8_K, 0x31B765E8, 0x31B765E8 },   { HEFT_IQ4_NL, 0xEC2B00D6, 0xBF7DC1A2 },
    { HEFT_IQ4_XS, 0x30C443ED, 0xADAE8A90 }, { HEFT_TQ1_0, 0x08251E5F, 0x08251E5F },
    { HEFT_TQ2_0, 0x102D5626, 0x102D5626 },  { HEFT_Q1_0, 0xB359AE32, 0xB359AE32 },
    { HEFT_Q2_0, 0x444FC2EB, 0x444FC2EB },   { HEFT_MXFP4, 0xF0C7EF4A, 0xF0C7EF4A },
    { HEFT_NVFP4, 0xD821C030, 0xD821C030 },
};

static uint32_t crc_of_rows(heft_dtype t, const float *weights)
{
    uint8_t out[ROW_BYTES];
    uint32_t crc = 0;
    for (uint32_t i = 0; i < ROWS; i++) {
        heft_row_encode_with(&heft_portable_fits, out, t, rows[i], COLUMNS, weights);
        crc = heft_crc32(crc, out, row_bytes(t));
    }
    return crc;
}

static void bytes_are_those_of_ggml(void **state)
{
    (void)state;
    fill_rows();
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        heft_dtype t = vectors[i].type;
        if (crc_of_rows(t, NULL) != vectors[i].plain)
            fail_msg("%s differs", heft_dtype_get(t)->name);
        if (crc_of_rows(t, importance) != vectors[i].weighted)
            fail_msg("%s differs by importance", heft_dtype_get(t)->name);
    }
}

/* ---- instruction sets ---- */

static const float specials[] = { 0,        -0.0f,     1,         -1,        0.5f,      -0.5f,
                                  INFINITY, -INFINITY, NAN,       1e-45f,    -1e-40f,   1e-30f,
                                  1e-15f,   3e38f,     -3e38f,    16777216,  4194304,   -4194303,
                                  1e20f,    -1e-20f,   0.0078125, 0x1p-127f, 0x1p-126f, 127.5f };

/* Change a row: kind 0 leaves the row, others set groups to constants, ties, or all magnitudes, and
 * elements to special numbers. */
static void change_row(float *row, uint32_t kind)
{
    const uint32_t count = sizeof specials / sizeof *specials;
    for (uint32_t i = 0; i < COLUMNS; i++) {
        uint32_t r = draw() >> 8;
        if (kind == 1)
            row[i] = (float)((int32_t)(r % 63) - 31) / 8;
        else if (kind == 2)
            row[i] = rows[0][i / 16];
        else if (kind == 3)
            row[i] = ldexpf(row[i], (int)(r % 64) - 32);
        else if (kind == 4)
            row[i] = r % 64 == 0 ? 1000 : 0;
        else if (kind >= 5 && r % 100 < kind)
            row[i] = specials[r / 100 % count];
    }
    if (kind == 7)
        for (uint32_t i = 0; i < COLUMNS; i++)
            row[i] = specials[i / 32 % count];
}

static guarded memory;

/* Rows of three, so that kernels which take many groups at a time have all they take. */
enum { THREE = 3 };

static void check_row(const heft_kernels *k, heft_dtype t, const float *row, const float *weights)
{
    uint8_t out[THREE * ROW_BYTES + 1], expected[THREE * ROW_BYTES + 1];
    memset(out, 0xA5, sizeof out);
    memset(expected, 0xA5, sizeof expected);
    const float *last = guarded_last(&memory, row, THREE * COLUMNS * sizeof *row);
    heft_row_encode_with(k->fits, out, t, last, THREE * COLUMNS, weights);
    heft_row_encode_with(&heft_portable_fits, expected, t, last, THREE * COLUMNS, weights);
    if (memcmp(out, expected, sizeof out) != 0)
        fail_msg("%s: %s differs%s", k->name, heft_dtype_get(t)->name,
                 weights ? ", by importance" : "");
}

static void check_type(const heft_kernels *k, heft_dtype t)
{
    enum { KINDS = 8 };
    float row[THREE * COLUMNS], weights[THREE * COLUMNS];
    for (uint32_t i = 0; i < ROWS; i++) {
        for (uint32_t part = 0; part < THREE; part++) {
            float *at = row + part * COLUMNS;
            memcpy(at, rows[(i + part) % ROWS], COLUMNS * sizeof *at);
            memcpy(weights + part * COLUMNS, importance, COLUMNS * sizeof *at);
            change_row(at, i % KINDS);
        }
        check_row(k, t, row, NULL);
        check_row(k, t, row, weights);
    }
}

static void instruction_sets_give_the_same_bytes(void **state)
{
    uint32_t known = 0;
    (void)state;
    fill_rows();
    memory = guarded_make();
    for (const heft_simd_set *s = heft_simd_sets;; s++) {
        for (uint32_t t = 0; s->is_supported() && t < HEFT_DTYPES; t++)
            if (heft_block_can_encode((heft_dtype)t)) {
                check_type(s->kernels, (heft_dtype)t);
                known++;
            }
        if (s->kernels == &heft_portable_kernels)
            break;
    }
    guarded_free(&memory);
    assert_true(known >= sizeof vectors / sizeof *vectors);
}

/* ---- parts ---- */

static void types_without_an_encoder_say_why(void **state)
{
    (void)state;
    for (uint32_t t = 0; t < HEFT_DTYPES; t++) {
        const char *refusal = heft_block_encode_refusal((heft_dtype)t);
        assert_int_equal(heft_block_can_encode((heft_dtype)t), refusal == NULL);
    }
    assert_non_null(strstr(heft_block_encode_refusal(HEFT_IQ2_XS), "importance"));
    assert_non_null(strstr(heft_block_encode_refusal(HEFT_Q8_1), "intermediate"));
    assert_non_null(strstr(heft_block_encode_refusal(HEFT_F32), "not a type of blocks"));
    assert_false(heft_block_uses_importance(HEFT_Q8_0));
    assert_true(heft_block_uses_importance(HEFT_Q4_K));
}

static void square_roots_are_those_of_the_processor(void **state)
{
    static const uint32_t bits[] = { 0,          0x80000000, 1,          2,          0x007FFFFF,
                                     0x00800000, 0x7F7FFFFF, 0x7F800000, 0x3F7FFFFF, 0x3F800001 };
    (void)state;
    for (size_t i = 0; i < sizeof bits / sizeof *bits; i++)
        assert_int_equal(heft_f32_bits(heft_square_root(heft_f32_of(bits[i]))),
                         heft_f32_bits(sqrtf(heft_f32_of(bits[i]))));
    for (uint32_t i = 0; i < 200000; i++) {
        float v = heft_f32_of(draw() >> 1);
        if (v - v == 0)
            assert_int_equal(heft_f32_bits(heft_square_root(v)), heft_f32_bits(sqrtf(v)));
    }
    assert_true(isnan(heft_square_root(-1)) && isnan(heft_square_root(NAN)));
}

static void rows_that_do_not_fit_are_refused(void **state)
{
    enum { BYTES = 144 };
    float row[256] = { 0 }, weights[256] = { 0 };
    uint8_t out[BYTES];
    heft_error err;
    (void)state;
    assert_int_equal(heft_block_encode(out, BYTES, HEFT_Q4_K, row, 256, weights, &err), HEFT_OK);
    assert_int_equal(heft_block_decode(row, HEFT_Q4_K, out, BYTES, 256, &err), HEFT_OK);

    assert_int_equal(heft_block_encode(out, BYTES, HEFT_Q4_K, row, 255, NULL, &err),
                     HEFT_E_ARGUMENT);
    assert_string_equal(err.message, "255 columns do not fill blocks of q4_k, which have 256");
    assert_int_equal(heft_block_encode(out, BYTES - 1, HEFT_Q4_K, row, 256, NULL, &err),
                     HEFT_E_ARGUMENT);
    assert_string_equal(err.message, "256 columns of q4_k take 144 bytes, and there are 143");
    assert_int_equal(heft_block_decode(row, HEFT_Q4_K, out, BYTES - 1, 256, &err), HEFT_E_ARGUMENT);
    assert_int_equal(heft_block_decode(row, HEFT_Q4_K, out, BYTES, 1, &err), HEFT_E_ARGUMENT);
    assert_int_equal(heft_block_decode(row, HEFT_F16, out, BYTES, 1, &err), HEFT_E_UNSUPPORTED);
    assert_int_equal(heft_block_encode(out, BYTES, HEFT_IQ1_S, row, 256, NULL, &err),
                     HEFT_E_UNSUPPORTED);
    assert_non_null(strstr(err.message, "cannot encode to iq1_s, which has codes"));
    assert_int_equal(heft_block_encode(out, BYTES, HEFT_F32, row, 1, NULL, &err),
                     HEFT_E_UNSUPPORTED);
    for (uint32_t i = 0; i < 3; i++) {
        weights[7] = i == 0 ? -1 : i == 1 ? NAN : INFINITY;
        assert_int_equal(heft_block_encode(out, BYTES, HEFT_Q4_K, row, 256, weights, &err),
                         HEFT_E_ARGUMENT);
        assert_string_equal(err.message, "the importance of column 7 is negative or not finite");
    }
}

static void decoded_rows_are_numbers_of_the_machine(void **state)
{
    enum { BLOCK = 34 };
    float given[32], row[32];
    uint8_t out[BLOCK];
    heft_error err;
    (void)state;
    for (int i = 0; i < 32; i++)
        given[i] = (float)(i - 16);
    assert_int_equal(heft_block_encode(out, BLOCK, HEFT_Q8_0, given, 32, NULL, &err), HEFT_OK);
    assert_int_equal(heft_block_decode(row, HEFT_Q8_0, out, BLOCK, 32, &err), HEFT_OK);
    for (int i = 0; i < 32; i++)
        assert_true(fabsf(row[i] - given[i]) < 0.1F);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_are_those_of_ggml),
        cmocka_unit_test(instruction_sets_give_the_same_bytes),
        cmocka_unit_test(types_without_an_encoder_say_why),
        cmocka_unit_test(rows_that_do_not_fit_are_refused),
        cmocka_unit_test(decoded_rows_are_numbers_of_the_machine),
        cmocka_unit_test(square_roots_are_those_of_the_processor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
