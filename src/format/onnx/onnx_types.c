/* onnx_types.c - the element types of TensorProto. */
#include "format/onnx/onnx.h"

enum { FLOATS = 4, INT32S = 5, TEXTS = 6, INT64S = 7, DOUBLES = 10, UINT64S = 11 }; /* fields */

static const heft_onnx_type types[] = {
    [1] = { "float", HEFT_F32, FLOATS, 0 },
    [2] = { "uint8", HEFT_U8, INT32S, 0 },
    [3] = { "int8", HEFT_I8, INT32S, 0 },
    [4] = { "uint16", HEFT_U16, INT32S, 0 },
    [5] = { "int16", HEFT_I16, INT32S, 0 },
    [6] = { "int32", HEFT_I32, INT32S, 0 },
    [7] = { "int64", HEFT_I64, INT64S, 0 },
    [8] = { "string", HEFT_UNTYPED, TEXTS, 0 },
    [9] = { "bool", HEFT_BOOL, INT32S, 0 },
    [10] = { "float16", HEFT_F16, INT32S, 0 },
    [11] = { "double", HEFT_F64, DOUBLES, 0 },
    [12] = { "uint32", HEFT_U32, UINT64S, 0 },
    [13] = { "uint64", HEFT_U64, UINT64S, 0 },
    [14] = { "complex64", HEFT_C64, FLOATS, 0 },
    [15] = { "complex128", HEFT_C128, DOUBLES, 0 },
    [16] = { "bfloat16", HEFT_BF16, INT32S, 0 },
    [17] = { "float8e4m3fn", HEFT_F8_E4M3FN, INT32S, 0 },
    [18] = { "float8e4m3fnuz", HEFT_F8_E4M3FNUZ, INT32S, 0 },
    [19] = { "float8e5m2", HEFT_F8_E5M2, INT32S, 0 },
    [20] = { "float8e5m2fnuz", HEFT_F8_E5M2FNUZ, INT32S, 0 },
    [21] = { "uint4", HEFT_U8, INT32S, 2 },
    [22] = { "int4", HEFT_U8, INT32S, 2 },
    [23] = { "float4e2m1", HEFT_F4_E2M1, INT32S, 0 },
    [24] = { "float8e8m0", HEFT_F8_E8M0, INT32S, 0 },
    [25] = { "uint2", HEFT_U8, INT32S, 4 },
    [26] = { "int2", HEFT_U8, INT32S, 4 },
};

const heft_onnx_type *heft_onnx_type_of(uint64_t number)
{
    return number && number < sizeof types / sizeof *types ? &types[number] : NULL;
}
