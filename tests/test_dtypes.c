/* test_dtypes.c - tests of the table of element types and of the types that each format stores; see
 * docs/adding-a-dtype.md. */
#include "model/blocks.h"
#include "model/dtype.h"
#include "models.h"

/* ---- rows ---- */

static void every_type_has_a_row_and_a_unique_name(void **state)
{
    (void)state;
    for (heft_dtype t = 1; t < HEFT_DTYPES; t++) {
        const heft_dtype_info *d = heft_dtype_get(t);
        if (!d)
            fail_msg("element type %d has no row in heft_dtype_rows", t);
        assert_int_equal(heft_dtype_find(heft_str_from(d->name)), t);
        assert_string_equal(heft_dtype_name(t), d->name);
    }
    assert_null(heft_dtype_get(HEFT_UNTYPED));
    assert_int_equal(heft_dtype_kind_of(HEFT_UNTYPED), HEFT_DTYPE_NONE);
    assert_int_equal(heft_dtype_kind_of(HEFT_DTYPES), HEFT_DTYPE_NONE);
}

static void usual_names_of_other_programs_are_understood(void **state)
{
    static const struct {
        const char *name;
        heft_dtype type;
    } names[] = {
        { "F16", HEFT_F16 },           { "fp16", HEFT_F16 },      { "Half", HEFT_F16 },
        { "bfloat16", HEFT_BF16 },     { "BF16", HEFT_BF16 },     { "float", HEFT_F32 },
        { "FP32", HEFT_F32 },          { "double", HEFT_F64 },    { "int8", HEFT_I8 },
        { "uint64", HEFT_U64 },        { "long", HEFT_I64 },      { "Q8_0", HEFT_Q8_0 },
        { "F8_E4M3", HEFT_F8_E4M3FN }, { "complex64", HEFT_C64 }, { "float1", HEFT_UNTYPED },
        { "halff", HEFT_UNTYPED },     { "fp", HEFT_UNTYPED },
    };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(names); i++)
        assert_int_equal(heft_dtype_find(heft_str_from(names[i].name)), names[i].type);
}

/* A name consists of the letters of the kind and the number of bits, as in "f32". */
static void names_state_kind_and_bits(void **state)
{
    static const struct {
        const char *prefix;
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
               strncmp(d->name, names[i].prefix, strlen(names[i].prefix)) != 0)
            i++;
        if (i == HEFT_COUNT(names))
            fail_msg("%s begins like no kind of this test", d->name);
        if (d->kind != names[i].kind)
            fail_msg("%s is of kind %d, not %d", d->name, d->kind, names[i].kind);
        if (d->kind != HEFT_DTYPE_BOOL && d->kind != HEFT_DTYPE_BLOCK)
            assert_int_equal(strtol(d->name + strlen(names[i].prefix), NULL, 10), d->dlpack_bits);
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

/* DLPack 1.1, DLDataTypeCode: 0 int, 1 uint, 2 float, 4 bfloat, 5 complex, 6 bool, 7 and above
 * floats of at most 8 bits. */
static void dlpack_codes_match_the_kind(void **state)
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

/* ---- properties of each kind ---- */

static void the_layout_of_a_float_covers_all_bits(void **state)
{
    (void)state;
    for (heft_dtype t = 0; t <= HEFT_DTYPES; t++) {
        const heft_float_layout *l = heft_float_layout_of(t);
        assert_int_equal(!!l, heft_dtype_kind_of(t) == HEFT_DTYPE_FLOAT);
        if (t < HEFT_DTYPES)
            assert_int_equal(!!l, heft_dtype_rows[t].layout.specials != HEFT_F_NOT_FLOAT);
        if (l) /* all types except f8_e8m0 have a sign bit */
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
        assert_int_equal(heft_dtype_number_bytes(t), heft_dtype_size(real));
    }
}

static void all_types_are_read_as_numbers(void **state)
{
    (void)state;
    for (heft_dtype t = 1; t < HEFT_DTYPES; t++) {
        bool is_block = heft_dtype_kind_of(t) == HEFT_DTYPE_BLOCK;
        double out[2];
        const uint8_t zero[512] = { 0 };
        assert_in_range(heft_dtype_get(t)->block_bytes, 1, sizeof zero);
        if (!heft_dtype_to_f64(out, t, zero, 0, 1))
            fail_msg("%s: has it a row in blocks.c?", heft_dtype_name(t));
        assert_int_equal(heft_block_is_known(t), is_block);
        if (is_block || heft_dtype_is_complex(t))
            assert_false(heft_dtype_can_cast(t, HEFT_F32));
        else
            assert_true(heft_dtype_can_cast(t, HEFT_F32) && heft_dtype_can_cast(HEFT_F32, t));
    }
}

static void signed_and_unsigned_integers_are_distinguished(void **state)
{
    (void)state;
    for (heft_dtype t = 1; t < HEFT_DTYPES; t++) {
        uint8_t ones[16];
        double out = 0;
        memset(ones, 0xFF, sizeof ones);
        if (!heft_dtype_is_int(t))
            continue;
        assert_true(heft_dtype_to_f64(&out, t, ones, 0, 1));
        assert_int_equal(out < 0, heft_dtype_is_signed_int(t));
    }
}

/* ---- formats ---- */

#define INTS "u8 i8 u16 i16 u32 i32 u64 i64"
#define F8   "f8_e4m3fn f8_e5m2 f8_e4m3fnuz f8_e5m2fnuz"
#define BLOCKS                                                                                  \
    "q4_0 q4_1 q5_0 q5_1 q8_0 q8_1 q2_k q3_k q4_k q5_k q6_k q8_k iq2_xxs iq2_xs iq3_xxs iq1_s " \
    "iq4_nl "                                                                                   \
    "iq3_s iq2_s iq4_xs iq1_m tq1_0 tq2_0 mxfp4 nvfp4 q1_0 q2_0"

/* Types that a format stores without a conversion, as in the tables of docs/formats. */
static const struct stored {
    const char *format, *version, *types;
} stored[] = {
    { "burnpack", "0.20", "bool " INTS " f16 bf16 f32 f64" },
    { "burnpack", "0.21", "bool " INTS " f16 bf16 f32 f64" },
    { "burnpack", "0.22-pre.2", "bool " INTS " f16 bf16 f32 f64" },
    { "burnpack", "0.22", "bool " INTS " f16 bf16 f32 f64" },
    { "mag", "1", "bool i32 f16 f32" },
    { "mag", "100", "bool " INTS " f16 f32" },
    { "mag", "snapshot", "bool " INTS " f16 bf16 f32" },
    { "gptrs-checkpoint", NULL, "i32 f16 bf16 f32" },
    { "gptrs-archive", NULL, "i32 f16 bf16 f32" },
    { "safetensors", NULL,
      "bool " INTS " f16 bf16 f32 f64 " F8 " f8_e8m0 f6_e2m3 f6_e3m2 f4_e2m1 c64" },
    { "torch", NULL, "bool " INTS " f16 bf16 f32 f64 " F8 " f8_e8m0 c64 c128" },
    { "embd", "1.0", "u8 i8 u16 i16 u32 i32 f16 bf16 f32" },
    { "embd", "simple", "f32" },
    { "flax", NULL, "bool " INTS " f16 bf16 f32 f64 " F8 " f8_e8m0 c64 c128" },
    { "npy", NULL, "bool " INTS " f16 f32 f64 c64 c128" },
    { "npz", NULL, "bool " INTS " f16 f32 f64 c64 c128" },
    { "gguf", "2", "i8 i16 i32 i64 f16 bf16 f32 f64 " BLOCKS },
    { "gguf", "3", "i8 i16 i32 i64 f16 bf16 f32 f64 " BLOCKS },
    { "ztensor", "1.0", "bool " INTS " f16 bf16 f32 f64" },
    { "ztensor", "1.1", "bool " INTS " f16 bf16 f32 f64" },
    { "ztensor", "1.2", "bool " INTS " f16 bf16 f32 f64 " F8 " c64 c128" },
    { "ztensor", "2", "bool " INTS " f16 bf16 f32 f64 " F8 " f8_e8m0 f4_e2m1 c64 c128" },
};

static bool contains_word(const char *words, const char *word)
{
    size_t len = strlen(word);
    for (const char *at = words; (at = strstr(at, word)); at += len)
        if ((at == words || at[-1] == ' ') && (!at[len] || at[len] == ' '))
            return true;
    return false;
}

/* Write a tensor of zeros; return HEFT_E_LOSSY if the format cannot store the type. */
static heft_status write_one(heft_test_sink *sink, const struct stored *s, heft_dtype t,
                             heft_error *err)
{
    enum { ELEMENTS = 256 }; /* a multiple of every block size */
    static const uint8_t zeros[ELEMENTS * 16] = { 0 };
    const uint64_t dims[] = { ELEMENTS };
    heft_write_options opt = HEFT_WRITE_OPTIONS_INIT;
    uint64_t bytes;
    uint32_t part;
    heft_writer *w;
    opt.version = s->version;
    opt.allow_loss = true;
    heft_assert_ok(heft_writer_open(&w, heft_format_find(heft_str_from(s->format)),
                                    heft_test_sink_init(sink, false), &opt, err),
                   err);
    heft_assert_ok(heft_writer_add_dense(&part, w, heft_test_str("w"), t, dims, 1, err), err);
    heft_status st = heft_writer_begin(w, err);
    if (st) {
        heft_assert_status(st, HEFT_E_LOSSY, err);
        heft_writer_discard(w);
        return st;
    }
    assert_true(heft_dtype_bytes(&bytes, t, ELEMENTS));
    heft_assert_ok(heft_writer_write(w, part, zeros, (size_t)bytes, err), err);
    heft_assert_ok(heft_writer_finish(w, err), err);
    return HEFT_OK;
}

/* Return true if a written tensor is in the file; fail if the type has changed. */
static bool is_stored(const struct stored *s, heft_dtype t)
{
    heft_test_sink sink;
    heft_error err;
    heft_file *f;
    bool is_written = false;
    if (!write_one(&sink, s, t, &err)) {
        heft_bytes b = { sink.p, sink.len };
        heft_assert_ok(heft_test_open(&f, b, NULL, &err), &err);
        is_written = heft_tensor_count(f);
        if (is_written && heft_tensor_at(f, 0).dtype != t)
            fail_msg("%s %s reads %s as %s", s->format, s->version ? s->version : "",
                     heft_dtype_name(t), heft_dtype_name(heft_tensor_at(f, 0).dtype));
        heft_file_close(f);
    }
    heft_test_sink_free(&sink);
    return is_written;
}

static void formats_store_exactly_the_listed_types(void **state)
{
    size_t differences = 0;
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(stored); i++)
        for (heft_dtype t = 1; t < HEFT_DTYPES; t++) {
            bool expected = contains_word(stored[i].types, heft_dtype_name(t));
            if (is_stored(&stored[i], t) == expected)
                continue;
            print_error("%s %s %s %s\n", stored[i].format,
                        stored[i].version ? stored[i].version : "",
                        expected ? "does not store" : "stores", heft_dtype_name(t));
            differences++;
        }
    assert_int_equal(differences, 0);
}

static void every_type_and_every_writer_is_in_the_list(void **state)
{
    (void)state;
    for (heft_dtype t = 1; t < HEFT_DTYPES; t++) {
        size_t i = 0;
        while (i < HEFT_COUNT(stored) && !contains_word(stored[i].types, heft_dtype_name(t)))
            i++;
        if (i == HEFT_COUNT(stored))
            fail_msg("no format stores %s", heft_dtype_name(t));
    }
    for (uint32_t k = 0; k < heft_format_count(); k++) {
        const heft_format *f = heft_format_at(k);
        size_t i = 0;
        while (i < HEFT_COUNT(stored) && strcmp(stored[i].format, heft_format_name(f)) != 0)
            i++;
        assert_int_equal(i < HEFT_COUNT(stored), !!(heft_format_caps(f) & HEFT_CAN_WRITE));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_has_a_row_and_a_unique_name),
        cmocka_unit_test(usual_names_of_other_programs_are_understood),
        cmocka_unit_test(names_state_kind_and_bits),
        cmocka_unit_test(blocks_fill_whole_bytes),
        cmocka_unit_test(dlpack_codes_match_the_kind),
        cmocka_unit_test(the_layout_of_a_float_covers_all_bits),
        cmocka_unit_test(complex_types_are_two_floats),
        cmocka_unit_test(all_types_are_read_as_numbers),
        cmocka_unit_test(signed_and_unsigned_integers_are_distinguished),
        cmocka_unit_test(formats_store_exactly_the_listed_types),
        cmocka_unit_test(every_type_and_every_writer_is_in_the_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
