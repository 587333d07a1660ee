/* dtype.c - the element types, one row each.  Every block holds a power of two of elements. */
#include "model/dtype.h"

#include "base/checked.h"
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

const heft_dtype_info heft_dtype_rows[HEFT_DTYPES] = {
    [HEFT_BOOL] = { "bool", 1, 1, DL_BOOL, 8 },
    [HEFT_U8] = { "u8", 1, 1, DL_UINT, 8 },
    [HEFT_I8] = { "i8", 1, 1, DL_INT, 8 },
    [HEFT_U16] = { "u16", 1, 2, DL_UINT, 16 },
    [HEFT_I16] = { "i16", 1, 2, DL_INT, 16 },
    [HEFT_U32] = { "u32", 1, 4, DL_UINT, 32 },
    [HEFT_I32] = { "i32", 1, 4, DL_INT, 32 },
    [HEFT_U64] = { "u64", 1, 8, DL_UINT, 64 },
    [HEFT_I64] = { "i64", 1, 8, DL_INT, 64 },
    [HEFT_F16] = { "f16", 1, 2, DL_FLOAT, 16 },
    [HEFT_BF16] = { "bf16", 1, 2, DL_BFLOAT, 16 },
    [HEFT_F32] = { "f32", 1, 4, DL_FLOAT, 32 },
    [HEFT_F64] = { "f64", 1, 8, DL_FLOAT, 64 },
    [HEFT_F8_E4M3FN] = { "f8_e4m3fn", 1, 1, DL_F8_E4M3FN, 8 },
    [HEFT_F8_E5M2] = { "f8_e5m2", 1, 1, DL_F8_E5M2, 8 },
    [HEFT_F8_E4M3FNUZ] = { "f8_e4m3fnuz", 1, 1, DL_F8_E4M3FNUZ, 8 },
    [HEFT_F8_E5M2FNUZ] = { "f8_e5m2fnuz", 1, 1, DL_F8_E5M2FNUZ, 8 },
    [HEFT_F8_E8M0] = { "f8_e8m0", 1, 1, DL_F8_E8M0FNU, 8 },
    [HEFT_F6_E2M3] = { "f6_e2m3", 4, 3, DL_F6_E2M3FN, 6 },
    [HEFT_F6_E3M2] = { "f6_e3m2", 4, 3, DL_F6_E3M2FN, 6 },
    [HEFT_F4_E2M1] = { "f4_e2m1", 2, 1, DL_F4_E2M1FN, 4 },
    [HEFT_C64] = { "c64", 1, 8, DL_COMPLEX, 64 },
    [HEFT_C128] = { "c128", 1, 16, DL_COMPLEX, 128 },
    [HEFT_Q4_0] = { "q4_0", 32, 18, NO_DL, NO_DL },
    [HEFT_Q4_1] = { "q4_1", 32, 20, NO_DL, NO_DL },
    [HEFT_Q5_0] = { "q5_0", 32, 22, NO_DL, NO_DL },
    [HEFT_Q5_1] = { "q5_1", 32, 24, NO_DL, NO_DL },
    [HEFT_Q8_0] = { "q8_0", 32, 34, NO_DL, NO_DL },
    [HEFT_Q8_1] = { "q8_1", 32, 36, NO_DL, NO_DL },
    [HEFT_Q2_K] = { "q2_k", 256, 84, NO_DL, NO_DL },
    [HEFT_Q3_K] = { "q3_k", 256, 110, NO_DL, NO_DL },
    [HEFT_Q4_K] = { "q4_k", 256, 144, NO_DL, NO_DL },
    [HEFT_Q5_K] = { "q5_k", 256, 176, NO_DL, NO_DL },
    [HEFT_Q6_K] = { "q6_k", 256, 210, NO_DL, NO_DL },
    [HEFT_Q8_K] = { "q8_k", 256, 292, NO_DL, NO_DL },
    [HEFT_IQ2_XXS] = { "iq2_xxs", 256, 66, NO_DL, NO_DL },
    [HEFT_IQ2_XS] = { "iq2_xs", 256, 74, NO_DL, NO_DL },
    [HEFT_IQ3_XXS] = { "iq3_xxs", 256, 98, NO_DL, NO_DL },
    [HEFT_IQ1_S] = { "iq1_s", 256, 50, NO_DL, NO_DL },
    [HEFT_IQ4_NL] = { "iq4_nl", 32, 18, NO_DL, NO_DL },
    [HEFT_IQ3_S] = { "iq3_s", 256, 110, NO_DL, NO_DL },
    [HEFT_IQ2_S] = { "iq2_s", 256, 82, NO_DL, NO_DL },
    [HEFT_IQ4_XS] = { "iq4_xs", 256, 136, NO_DL, NO_DL },
    [HEFT_IQ1_M] = { "iq1_m", 256, 56, NO_DL, NO_DL },
    [HEFT_TQ1_0] = { "tq1_0", 256, 54, NO_DL, NO_DL },
    [HEFT_TQ2_0] = { "tq2_0", 256, 66, NO_DL, NO_DL },
    [HEFT_MXFP4] = { "mxfp4", 32, 17, NO_DL, NO_DL },
    [HEFT_NVFP4] = { "nvfp4", 64, 36, NO_DL, NO_DL },
    [HEFT_Q1_0] = { "q1_0", 128, 18, NO_DL, NO_DL },
    [HEFT_Q2_0] = { "q2_0", 64, 18, NO_DL, NO_DL },
};

static inline const heft_dtype_info *info_of(heft_dtype t)
{
    return t < HEFT_DTYPES && heft_dtype_rows[t].name ? &heft_dtype_rows[t] : NULL;
}

const heft_dtype_info *heft_dtype_get(heft_dtype t)
{
    return info_of(t);
}

heft_dtype heft_dtype_find(const char *name, size_t len)
{
    heft_str wanted = { name, len };
    for (heft_dtype t = 0; t < HEFT_DTYPES; t++)
        if (heft_dtype_rows[t].name && heft_str_is(wanted, heft_dtype_rows[t].name))
            return t;
    return HEFT_UNTYPED;
}

uint64_t heft_dtype_blocks(heft_dtype t, uint64_t n)
{
    const heft_dtype_info *d = info_of(t);
    /* A shift: dividing 64 bits takes a helper that 32-bit targets would have to link. */
    for (uint32_t left = d ? d->block_elems : 1; left > 1; left /= 2)
        n /= 2;
    return n;
}

bool heft_dtype_whole(heft_dtype t, uint64_t n)
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
    uint64_t blocks = heft_dtype_blocks(t, n) + !heft_dtype_whole(t, n);
    return heft_mul(out, blocks, d->block_bytes);
}

uint32_t heft_dtype_number(heft_dtype t)
{
    uint32_t size = heft_dtype_size(t);
    return t == HEFT_C64 || t == HEFT_C128 ? size / 2 : size ? size : 1;
}

const char *heft_dtype_name(heft_dtype t)
{
    const heft_dtype_info *d = info_of(t);
    return d ? d->name : "none";
}
