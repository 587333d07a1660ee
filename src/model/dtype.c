/* dtype.c - the table of element types.  The number of elements in a block is a power of two.
 *
 * docs/adding-a-dtype.md lists what a new row needs in other files. */
#include "model/dtype.h"

#include "base/checked_math.h"
#include "base/text.h"

enum { /* DLPack's type codes */
       DL_INT = 0,
       DL_UINT = 1,
       DL_FLOAT = 2,
       DL_BFLOAT = 4,
       DL_COMPLEX = 5,
       DL_BOOL = 6,
       DL_F8_E4M3FN = 10,
       DL_F8_E4M3FNUZ = 11,
       DL_F8_E5M2 = 12,
       DL_F8_E5M2FNUZ = 13,
       DL_F8_E8M0FNU = 14,
       DL_F6_E2M3FN = 15,
       DL_F6_E3M2FN = 16,
       DL_F4_E2M1FN = 17,
       NO_DL = 255
};

const heft_dtype_row heft_dtype_rows[HEFT_DTYPES] = {
    [HEFT_BOOL] = { .info = { "bool", 1, 1, DL_BOOL, 8, HEFT_DTYPE_BOOL } },
    [HEFT_U8] = { .info = { "u8", 1, 1, DL_UINT, 8, HEFT_DTYPE_UINT } },
    [HEFT_I8] = { .info = { "i8", 1, 1, DL_INT, 8, HEFT_DTYPE_INT } },
    [HEFT_U16] = { .info = { "u16", 1, 2, DL_UINT, 16, HEFT_DTYPE_UINT } },
    [HEFT_I16] = { .info = { "i16", 1, 2, DL_INT, 16, HEFT_DTYPE_INT } },
    [HEFT_U32] = { .info = { "u32", 1, 4, DL_UINT, 32, HEFT_DTYPE_UINT } },
    [HEFT_I32] = { .info = { "i32", 1, 4, DL_INT, 32, HEFT_DTYPE_INT } },
    [HEFT_U64] = { .info = { "u64", 1, 8, DL_UINT, 64, HEFT_DTYPE_UINT } },
    [HEFT_I64] = { .info = { "i64", 1, 8, DL_INT, 64, HEFT_DTYPE_INT } },
    [HEFT_F16] = { .info = { "f16", 1, 2, DL_FLOAT, 16, HEFT_DTYPE_FLOAT },
                   .layout = { 5, 10, 15, HEFT_F_IEEE } },
    [HEFT_BF16] = { .info = { "bf16", 1, 2, DL_BFLOAT, 16, HEFT_DTYPE_FLOAT },
                    .layout = { 8, 7, 127, HEFT_F_IEEE } },
    [HEFT_F32] = { .info = { "f32", 1, 4, DL_FLOAT, 32, HEFT_DTYPE_FLOAT },
                   .layout = { 8, 23, 127, HEFT_F_IEEE } },
    [HEFT_F64] = { .info = { "f64", 1, 8, DL_FLOAT, 64, HEFT_DTYPE_FLOAT },
                   .layout = { 11, 52, 1023, HEFT_F_IEEE } },
    [HEFT_F8_E4M3FN] = { .info = { "f8_e4m3fn", 1, 1, DL_F8_E4M3FN, 8, HEFT_DTYPE_FLOAT },
                         .layout = { 4, 3, 7, HEFT_F_ONE_NAN } },
    [HEFT_F8_E5M2] = { .info = { "f8_e5m2", 1, 1, DL_F8_E5M2, 8, HEFT_DTYPE_FLOAT },
                       .layout = { 5, 2, 15, HEFT_F_IEEE } },
    [HEFT_F8_E4M3FNUZ] = { .info = { "f8_e4m3fnuz", 1, 1, DL_F8_E4M3FNUZ, 8, HEFT_DTYPE_FLOAT },
                           .layout = { 4, 3, 8, HEFT_F_NEG_ZERO } },
    [HEFT_F8_E5M2FNUZ] = { .info = { "f8_e5m2fnuz", 1, 1, DL_F8_E5M2FNUZ, 8, HEFT_DTYPE_FLOAT },
                           .layout = { 5, 2, 16, HEFT_F_NEG_ZERO } },
    [HEFT_F8_E8M0] = { .info = { "f8_e8m0", 1, 1, DL_F8_E8M0FNU, 8, HEFT_DTYPE_FLOAT },
                       .layout = { 8, 0, 127, HEFT_F_POWERS } },
    [HEFT_F6_E2M3] = { .info = { "f6_e2m3", 4, 3, DL_F6_E2M3FN, 6, HEFT_DTYPE_FLOAT },
                       .layout = { 2, 3, 1, HEFT_F_NONE } },
    [HEFT_F6_E3M2] = { .info = { "f6_e3m2", 4, 3, DL_F6_E3M2FN, 6, HEFT_DTYPE_FLOAT },
                       .layout = { 3, 2, 3, HEFT_F_NONE } },
    [HEFT_F4_E2M1] = { .info = { "f4_e2m1", 2, 1, DL_F4_E2M1FN, 4, HEFT_DTYPE_FLOAT },
                       .layout = { 2, 1, 1, HEFT_F_NONE } },
    [HEFT_C64] = { .info = { "c64", 1, 8, DL_COMPLEX, 64, HEFT_DTYPE_COMPLEX }, .real = HEFT_F32 },
    [HEFT_C128] = { .info = { "c128", 1, 16, DL_COMPLEX, 128, HEFT_DTYPE_COMPLEX },
                    .real = HEFT_F64 },
    [HEFT_Q4_0] = { .info = { "q4_0", 32, 18, NO_DL, NO_DL, HEFT_DTYPE_BLOCK } },
    [HEFT_Q4_1] = { .info = { "q4_1", 32, 20, NO_DL, NO_DL, HEFT_DTYPE_BLOCK } },
    [HEFT_Q5_0] = { .info = { "q5_0", 32, 22, NO_DL, NO_DL, HEFT_DTYPE_BLOCK } },
    [HEFT_Q5_1] = { .info = { "q5_1", 32, 24, NO_DL, NO_DL, HEFT_DTYPE_BLOCK } },
    [HEFT_Q8_0] = { .info = { "q8_0", 32, 34, NO_DL, NO_DL, HEFT_DTYPE_BLOCK } },
    [HEFT_Q8_1] = { .info = { "q8_1", 32, 36, NO_DL, NO_DL, HEFT_DTYPE_BLOCK } },
    [HEFT_Q2_K] = { .info = { "q2_k", 256, 84, NO_DL, NO_DL, HEFT_DTYPE_BLOCK } },
    [HEFT_Q3_K] = { .info = { "q3_k", 256, 110, NO_DL, NO_DL, HEFT_DTYPE_BLOCK } },
    [HEFT_Q4_K] = { .info = { "q4_k", 256, 144, NO_DL, NO_DL, HEFT_DTYPE_BLOCK } },
    [HEFT_Q5_K] = { .info = { "q5_k", 256, 176, NO_DL, NO_DL, HEFT_DTYPE_BLOCK } },
    [HEFT_Q6_K] = { .info = { "q6_k", 256, 210, NO_DL, NO_DL, HEFT_DTYPE_BLOCK } },
    [HEFT_Q8_K] = { .info = { "q8_k", 256, 292, NO_DL, NO_DL, HEFT_DTYPE_BLOCK } },
    [HEFT_IQ2_XXS] = { .info = { "iq2_xxs", 256, 66, NO_DL, NO_DL, HEFT_DTYPE_BLOCK } },
    [HEFT_IQ2_XS] = { .info = { "iq2_xs", 256, 74, NO_DL, NO_DL, HEFT_DTYPE_BLOCK } },
    [HEFT_IQ3_XXS] = { .info = { "iq3_xxs", 256, 98, NO_DL, NO_DL, HEFT_DTYPE_BLOCK } },
    [HEFT_IQ1_S] = { .info = { "iq1_s", 256, 50, NO_DL, NO_DL, HEFT_DTYPE_BLOCK } },
    [HEFT_IQ4_NL] = { .info = { "iq4_nl", 32, 18, NO_DL, NO_DL, HEFT_DTYPE_BLOCK } },
    [HEFT_IQ3_S] = { .info = { "iq3_s", 256, 110, NO_DL, NO_DL, HEFT_DTYPE_BLOCK } },
    [HEFT_IQ2_S] = { .info = { "iq2_s", 256, 82, NO_DL, NO_DL, HEFT_DTYPE_BLOCK } },
    [HEFT_IQ4_XS] = { .info = { "iq4_xs", 256, 136, NO_DL, NO_DL, HEFT_DTYPE_BLOCK } },
    [HEFT_IQ1_M] = { .info = { "iq1_m", 256, 56, NO_DL, NO_DL, HEFT_DTYPE_BLOCK } },
    [HEFT_TQ1_0] = { .info = { "tq1_0", 256, 54, NO_DL, NO_DL, HEFT_DTYPE_BLOCK } },
    [HEFT_TQ2_0] = { .info = { "tq2_0", 256, 66, NO_DL, NO_DL, HEFT_DTYPE_BLOCK } },
    [HEFT_MXFP4] = { .info = { "mxfp4", 32, 17, NO_DL, NO_DL, HEFT_DTYPE_BLOCK } },
    [HEFT_NVFP4] = { .info = { "nvfp4", 64, 36, NO_DL, NO_DL, HEFT_DTYPE_BLOCK } },
    [HEFT_Q1_0] = { .info = { "q1_0", 128, 18, NO_DL, NO_DL, HEFT_DTYPE_BLOCK } },
    [HEFT_Q2_0] = { .info = { "q2_0", 64, 18, NO_DL, NO_DL, HEFT_DTYPE_BLOCK } },
};

static inline const heft_dtype_info *info_of(heft_dtype t)
{
    return t < HEFT_DTYPES && heft_dtype_rows[t].info.name ? &heft_dtype_rows[t].info : NULL;
}

const heft_dtype_info *heft_dtype_get(heft_dtype t)
{
    return info_of(t);
}

/* Names of other programs, in small letters. */
static const struct {
    const char *name;
    heft_dtype type;
} aliases[] = {
    { "boolean", HEFT_BOOL },
    { "uint8", HEFT_U8 },
    { "byte", HEFT_U8 },
    { "int8", HEFT_I8 },
    { "uint16", HEFT_U16 },
    { "int16", HEFT_I16 },
    { "short", HEFT_I16 },
    { "uint32", HEFT_U32 },
    { "int32", HEFT_I32 },
    { "int", HEFT_I32 },
    { "uint64", HEFT_U64 },
    { "int64", HEFT_I64 },
    { "long", HEFT_I64 },
    { "fp16", HEFT_F16 },
    { "float16", HEFT_F16 },
    { "half", HEFT_F16 },
    { "bfloat16", HEFT_BF16 },
    { "fp32", HEFT_F32 },
    { "float32", HEFT_F32 },
    { "float", HEFT_F32 },
    { "single", HEFT_F32 },
    { "fp64", HEFT_F64 },
    { "float64", HEFT_F64 },
    { "double", HEFT_F64 },
    { "f8_e4m3", HEFT_F8_E4M3FN },
    { "fp8_e4m3", HEFT_F8_E4M3FN },
    { "float8_e4m3fn", HEFT_F8_E4M3FN },
    { "fp8_e5m2", HEFT_F8_E5M2 },
    { "float8_e5m2", HEFT_F8_E5M2 },
    { "float8_e4m3fnuz", HEFT_F8_E4M3FNUZ },
    { "float8_e5m2fnuz", HEFT_F8_E5M2FNUZ },
    { "float8_e8m0fnu", HEFT_F8_E8M0 },
    { "complex64", HEFT_C64 },
    { "complex128", HEFT_C128 },
};

heft_dtype heft_dtype_find(heft_str name)
{
    for (heft_dtype t = 0; t < HEFT_DTYPES; t++)
        if (info_of(t) && heft_str_is_any_case(name, info_of(t)->name))
            return t;
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
        if (heft_str_is_any_case(name, aliases[i].name))
            return aliases[i].type;
    return HEFT_UNTYPED;
}

uint64_t heft_dtype_blocks(heft_dtype t, uint64_t n)
{
    const heft_dtype_info *d = info_of(t);
    /* Halve repeatedly: 32-bit targets would have to link a helper for a 64-bit division. */
    for (uint32_t left = d ? d->block_elems : 1; left > 1; left /= 2)
        n /= 2;
    return n;
}

bool heft_dtype_fills_blocks(heft_dtype t, uint64_t n)
{
    const heft_dtype_info *d = info_of(t);
    return d && !(n & (d->block_elems - 1u));
}

bool heft_dtype_bytes(uint64_t *out, heft_dtype t, uint64_t n)
{
    const heft_dtype_info *d = info_of(t);
    *out = 0;
    if (!d)
        return false;
    if (d->block_elems == 1)
        return heft_mul(out, n, d->block_bytes);
    uint64_t blocks = heft_dtype_blocks(t, n) + !heft_dtype_fills_blocks(t, n);
    return heft_mul(out, blocks, d->block_bytes);
}

uint32_t heft_dtype_number_bytes(heft_dtype t)
{
    uint32_t size = heft_dtype_size(t);
    return heft_dtype_is_complex(t) ? size / 2 : size ? size : 1;
}

const char *heft_dtype_name(heft_dtype t)
{
    const heft_dtype_info *d = info_of(t);
    return d ? d->name : "none";
}

/* ---- codes and spellings of element types in formats ---- */

uint32_t heft_dtype_code(heft_dtype t, const heft_dtype *types, uint32_t count)
{
    uint32_t code = 0;
    while (code < count && (types[code] != t || t == HEFT_UNTYPED))
        code++;
    return code;
}

heft_dtype heft_dtype_spelled(const heft_dtype_spellings *s, heft_str text)
{
    for (size_t i = 0; i < s->count; i++)
        if (heft_str_is(text, s->rows[i].text))
            return s->rows[i].dtype;
    return HEFT_UNTYPED;
}

const char *heft_dtype_spelling_of(const heft_dtype_spellings *s, heft_dtype t)
{
    for (size_t i = 0; i < s->count; i++)
        if (s->rows[i].dtype == t)
            return s->rows[i].text;
    return NULL;
}
