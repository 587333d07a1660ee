/* zt_types.c - element types of zTensor 0.1 to 1.2; digests and sort orders of all generations. */
#include "format/ztensor/ztensor.h"

const heft_zt_type heft_zt_types[] = {
    { HEFT_F64, "f64", "float64", NULL, HEFT_UNTYPED },
    { HEFT_F32, "f32", "float32", NULL, HEFT_UNTYPED },
    { HEFT_F16, "f16", "float16", NULL, HEFT_UNTYPED },
    { HEFT_BF16, "bf16", "bfloat16", NULL, HEFT_UNTYPED },
    { HEFT_I64, "i64", "int64", NULL, HEFT_UNTYPED },
    { HEFT_I32, "i32", "int32", NULL, HEFT_UNTYPED },
    { HEFT_I16, "i16", "int16", NULL, HEFT_UNTYPED },
    { HEFT_I8, "i8", "int8", NULL, HEFT_UNTYPED },
    { HEFT_U64, "u64", "uint64", NULL, HEFT_UNTYPED },
    { HEFT_U32, "u32", "uint32", NULL, HEFT_UNTYPED },
    { HEFT_U16, "u16", "uint16", NULL, HEFT_UNTYPED },
    { HEFT_U8, "u8", "uint8", NULL, HEFT_UNTYPED },
    { HEFT_BOOL, "bool", "bool", NULL, HEFT_UNTYPED },
    { HEFT_F8_E4M3FN, "", "", "f8_e4m3fn", HEFT_U8 },
    { HEFT_F8_E5M2, "", "", "f8_e5m2", HEFT_U8 },
    { HEFT_F8_E4M3FNUZ, "", "", "f8_e4m3fnuz", HEFT_U8 },
    { HEFT_F8_E5M2FNUZ, "", "", "f8_e5m2fnuz", HEFT_U8 },
    { HEFT_C64, "", "", "complex64", HEFT_F32 },
    { HEFT_C128, "", "", "complex128", HEFT_F64 },
};
const size_t heft_zt_type_count = sizeof heft_zt_types / sizeof *heft_zt_types;

const heft_zt_type *heft_zt_type_of(heft_dtype t)
{
    for (size_t i = 0; i < heft_zt_type_count; i++)
        if (heft_zt_types[i].dtype == t)
            return &heft_zt_types[i];
    return NULL;
}

bool heft_zt_has_digest(const char *algorithm, const char *own)
{
    heft_str name = heft_lit(algorithm);
    return heft_str_is(name, own) || heft_str_is(name, "sha256");
}

const heft_zt1_generation heft_zt1_generations[HEFT_ZT1_GENERATIONS] = {
    { "1.0", "1.0", true, false, false },
    { "1.1", "1.1.0", false, false, false },
    { "1.2", "1.2.0", false, true, true },
};

bool heft_zt1_writes(heft_str version, bool is_10)
{
    bool found = false;
    for (size_t i = 0; i < HEFT_ZT1_GENERATIONS && !found; i++)
        found = heft_zt1_generations[i].is_10 == is_10 &&
                heft_str_is(version, heft_zt1_generations[i].version);
    return found;
}
