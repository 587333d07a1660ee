/* torch_types.c - the table of the element types of PyTorch. */
#include "grammar/torch_types.h"

#include "base/text.h"

const heft_torch_type heft_torch_types[HEFT_TORCH_TYPES] = {
    { "float32", "FloatStorage", HEFT_F32, false, 4, false },
    { "float16", "HalfStorage", HEFT_F16, false, 2, false },
    { "bfloat16", "BFloat16Storage", HEFT_BF16, false, 2, false },
    { "float64", "DoubleStorage", HEFT_F64, false, 8, false },
    { "int64", "LongStorage", HEFT_I64, false, 8, false },
    { "int32", "IntStorage", HEFT_I32, false, 4, false },
    { "int16", "ShortStorage", HEFT_I16, false, 2, false },
    { "int8", "CharStorage", HEFT_I8, false, 1, false },
    { "uint8", "ByteStorage", HEFT_U8, false, 1, false },
    { "bool", "BoolStorage", HEFT_BOOL, false, 1, false },
    { "complex64", "ComplexFloatStorage", HEFT_C64, false, 8, false },
    { "complex128", "ComplexDoubleStorage", HEFT_C128, false, 16, false },
    { "qint8", "QInt8Storage", HEFT_I8, true, 1, true },
    { "quint8", "QUInt8Storage", HEFT_U8, true, 1, true },
    { "qint32", "QInt32Storage", HEFT_I32, true, 4, true },
    { "uint16", NULL, HEFT_U16, false, 2, false },
    { "uint32", NULL, HEFT_U32, false, 4, false },
    { "uint64", NULL, HEFT_U64, false, 8, false },
    { "float8_e4m3fn", NULL, HEFT_F8_E4M3FN, false, 1, false },
    { "float8_e5m2", NULL, HEFT_F8_E5M2, false, 1, false },
    { "float8_e4m3fnuz", NULL, HEFT_F8_E4M3FNUZ, false, 1, false },
    { "float8_e5m2fnuz", NULL, HEFT_F8_E5M2FNUZ, false, 1, false },
    { "float8_e8m0fnu", NULL, HEFT_F8_E8M0, false, 1, false },
    { "float4_e2m1fn_x2", NULL, HEFT_U8, true, 1, false },
    { "bits8", NULL, HEFT_U8, true, 1, false },
    { "bits16", NULL, HEFT_U16, true, 2, false },
    { "quint4x2", "QUInt4x2Storage", HEFT_UNTYPED, true, 1, true },
    { "quint2x4", "QUInt2x4Storage", HEFT_UNTYPED, true, 1, true },
    { "complex32", "ComplexHalfStorage", HEFT_UNTYPED, true, 0, false },
    { "uint8", "UntypedStorage", HEFT_U8, false, 1, false }, /* the tensors state the type */
};

uint32_t heft_torch_storage_bytes(heft_str class_name)
{
    if (heft_str_is(class_name, "_UntypedStorage")) /* PyTorch 1.11 and 1.12 */
        return 1;
    for (size_t i = 0; i < HEFT_TORCH_TYPES; i++)
        if (heft_torch_types[i].storage && heft_str_is(class_name, heft_torch_types[i].storage))
            return heft_torch_types[i].bytes;
    return 0;
}
