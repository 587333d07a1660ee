/* test_dtypes.c - the table of element types, row by row, and which types each format stores.  docs/adding-a-dtype.md */
#include "model/blocks.h"
#include "model/dtype.h"
#include "models.h"

/* Block types that are copied and never decoded. */
static const heft_dtype opaque[] = { HEFT_IQ2_XXS, HEFT_IQ2_XS, HEFT_IQ3_XXS, HEFT_IQ1_S,
                                     HEFT_IQ4_NL,  HEFT_IQ3_S,  HEFT_IQ2_S,   HEFT_IQ4_XS,
                                     HEFT_IQ1_M,   HEFT_TQ1_0,  HEFT_TQ2_0,   HEFT_MXFP4,
                                     HEFT_NVFP4,   HEFT_Q1_0 };

static bool is_opaque(heft_dtype t)
{
    for (size_t i = 0; i < HEFT_COUNT(opaque); i++)
        if (opaque[i] == t)
            return true;
    return false;
}

/* ---- rows ---- */

static void every_number_has_a_row_and_a_name_of_its_own(void **state)
{
    (void)state;
    for (heft_dtype t = 1; t < HEFT_DTYPES; t++) {
        const heft_dtype_info *d = heft_dtype_get(t);
        if (!d)
            fail_msg("element type %d has no row in heft_dtype_rows", t);
        assert_int_equal(heft_dtype_find(d->name, strlen(d->name)), t);
        assert_string_equal(heft_dtype_name(t), d->name);
    }
    assert_null(heft_dtype_get(HEFT_UNTYPED));
    assert_int_equal(heft_dtype_kind_of(HEFT_UNTYPED), HEFT_DTYPE_NONE);
    assert_int_equal(heft_dtype_kind_of(HEFT_DTYPES), HEFT_DTYPE_NONE);
}

/* A name begins with the letters of its kind; the number behind them is that of the bits. */
static void names_say_kind_and_bits(void **state)
{
    static const struct {
        const char *begins;
        heft_dtype_kind kind;
    } names[] = {
        { "bool", HEFT_DTYPE_BOOL },   { "bf", HEFT_DTYPE_FLOAT },    { "u", HEFT_DTYPE_UINT },
        { "iq", HEFT_DTYPE_BLOCK },    { "i", HEFT_DTYPE_INT },       { "f", HEFT_DTYPE_FLOAT },
        { "c", HEFT_DTYPE_COMPLEX },   { "q", HEFT_DTYPE_BLOCK },     { "tq", HEFT_DTYPE_BLOCK },
        { "mxfp4", HEFT_DTYPE_BLOCK }, { "nvfp4", HEFT_DTYPE_BLOCK },
    };
    (void)state;
    for (heft_dtype t = 1; t < HEFT_DTYPES; t++) {
        const heft_dtype_info *d = heft_dtype_get(t);
        size_t i = 0;
        while (i < HEFT_COUNT(names) &&
               strncmp(d->name, names[i].begins, strlen(names[i].begins)) != 0)
            i++;
        if (i == HEFT_COUNT(names))
            fail_msg("%s begins like no kind of this test", d->name);
        if (d->kind != names[i].kind)
            fail_msg("%s is of kind %d, not %d", d->name, d->kind, names[i].kind);
        if (d->kind != HEFT_DTYPE_BOOL && d->kind != HEFT_DTYPE_BLOCK)
            assert_int_equal(strtol(d->name + strlen(names[i].begins), NULL, 10), d->dlpack_bits);
    }
}

static void blocks_fill_whole_bytes(void **state)
{
    (void)state;
    for (heft_dtype t = 1; t < HEFT_DTYPES; t++) {
        const heft_dtype_info *d = heft_dtype_get(t);
        assert_true(d->block_elems && d->block_bytes);
        assert_int_equal(d->block_elems & (d->block_elems - 1), 0);
        assert_int_equal(heft_dtype_size(t), d->block_elems == 1 ? d->block_bytes : 0);
        if (d->kind == HEFT_DTYPE_BLOCK)
            assert_in_range(d->block_elems, 2, HEFT_BLOCK_ELEMENTS);
        else
            assert_int_equal(d->block_elems * d->dlpack_bits, 8 * d->block_bytes);
        if (d->kind != HEFT_DTYPE_BLOCK && d->kind != HEFT_DTYPE_FLOAT)
            assert_int_equal(d->block_elems, 1);
    }
}

/* DLPack 1.1, DLDataTypeCode: 0 int, 1 uint, 2 float, 4 bfloat, 5 complex, 6 bool; from 7 on floats of at most 8 bits. */
static void dlpack_codes_are_those_of_the_kind(void **state)
{
    static const uint8_t codes[] = { [HEFT_DTYPE_BOOL] = 6,
                                     [HEFT_DTYPE_UINT] = 1,
                                     [HEFT_DTYPE_INT] = 0,
                                     [HEFT_DTYPE_COMPLEX] = 5,
                                     [HEFT_DTYPE_BLOCK] = 255 };
    (void)state;
    for (heft_dtype t = 1; t < HEFT_DTYPES; t++) {
        const heft_dtype_info *d = heft_dtype_get(t);
        if (d->kind == HEFT_DTYPE_BLOCK)
            assert_int_equal(d->dlpack_bits, 255);
        if (d->kind != HEFT_DTYPE_FLOAT)
            assert_int_equal(d->dlpack_code, codes[d->kind]);
        else if (d->dlpack_bits > 8)
            assert_int_equal(d->dlpack_code, t == HEFT_BF16 ? 4 : 2);
        else
            assert_in_range(d->dlpack_code, 7, 17);
        for (heft_dtype u = 1; u < t && d->kind != HEFT_DTYPE_BLOCK; u++)
            assert_false(heft_dtype_get(u)->dlpack_code == d->dlpack_code &&
                         heft_dtype_get(u)->dlpack_bits == d->dlpack_bits);
    }
}

/* ---- what the kind promises ---- */

static void floats_have_a_layout_that_fills_their_bits(void **state)
{
    (void)state;
    for (heft_dtype t = 0; t <= HEFT_DTYPES; t++) {
        const heft_float_layout *l = heft_float_layout_of(t);
        assert_int_equal(!!l, heft_dtype_kind_of(t) == HEFT_DTYPE_FLOAT);
        if (t < HEFT_DTYPES)
            assert_int_equal(!!l, heft_dtype_rows[t].layout.specials != HEFT_F_NOT);
        if (l) /* all but f8_e8m0 have a sign */
            assert_int_equal((l->specials != HEFT_F_POWERS) + l->exp_bits + l->mant_bits,
                             heft_dtype_get(t)->dlpack_bits);
    }
}

static void complex_types_are_two_floats(void **state)
{
    (void)state;
    for (heft_dtype t = 0; t <= HEFT_DTYPES; t++) {
        heft_dtype real = heft_dtype_real(t);
        if (!heft_dtype_is_complex(t)) {
            assert_int_equal(real, t);
            continue;
        }
        assert_true(heft_dtype_is_float(real));
        assert_int_equal(heft_dtype_size(t), 2 * heft_dtype_size(real));
        assert_int_equal(heft_dtype_number(t), heft_dtype_size(real));
    }
}

static void all_but_opaque_blocks_are_read_as_numbers(void **state)
{
    (void)state;
    for (heft_dtype t = 1; t < HEFT_DTYPES; t++) {
        bool is_block = heft_dtype_kind_of(t) == HEFT_DTYPE_BLOCK;
        double out[2];
        const uint8_t zero[512] = { 0 };
        assert_in_range(heft_dtype_get(t)->block_bytes, 1, sizeof zero);
        if (heft_to_f64(out, t, zero, 0, 1) == is_opaque(t))
            fail_msg("%s: has it a row in blocks.c, or in `opaque` here?", heft_dtype_name(t));
        assert_int_equal(heft_block_is_known(t), is_block && !is_opaque(t));
        assert_true(is_block || !is_opaque(t));
        if (is_block || heft_dtype_is_complex(t))
            assert_false(heft_can_cast(t, HEFT_F32));
        else
            assert_true(heft_can_cast(t, HEFT_F32) && heft_can_cast(HEFT_F32, t));
    }
}

static void kinds_of_integers_are_told_apart(void **state)
{
    (void)state;
    for (heft_dtype t = 1; t < HEFT_DTYPES; t++) {
        uint8_t ones[16];
        double out = 0;
        memset(ones, 0xFF, sizeof ones);
        if (!heft_dtype_is_int(t))
            continue;
        assert_true(heft_to_f64(&out, t, ones, 0, 1));
        assert_int_equal(out < 0, heft_dtype_is_signed_int(t));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_number_has_a_row_and_a_name_of_its_own),
        cmocka_unit_test(names_say_kind_and_bits),
        cmocka_unit_test(blocks_fill_whole_bytes),
        cmocka_unit_test(dlpack_codes_are_those_of_the_kind),
        cmocka_unit_test(floats_have_a_layout_that_fills_their_bits),
        cmocka_unit_test(complex_types_are_two_floats),
        cmocka_unit_test(all_but_opaque_blocks_are_read_as_numbers),
        cmocka_unit_test(kinds_of_integers_are_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
