/* flax_types.c - names of element types, and the key of arrays in pieces. */
#include "format/flax/flax.h"

const uint8_t heft_flax_empty[HEFT_FLAX_EMPTY_BYTES] = { 0xDE, 0, 0 };
const char heft_flax_chunked[] = "__msgpack_chunked_array__";

static const heft_dtype_spelling rows[] = {
    { "float32", HEFT_F32 },
    { "bfloat16", HEFT_BF16 },
    { "float16", HEFT_F16 },
    { "float64", HEFT_F64 },
    { "int8", HEFT_I8 },
    { "int16", HEFT_I16 },
    { "int32", HEFT_I32 },
    { "int64", HEFT_I64 },
    { "uint8", HEFT_U8 },
    { "uint16", HEFT_U16 },
    { "uint32", HEFT_U32 },
    { "uint64", HEFT_U64 },
    { "bool", HEFT_BOOL },
    { "complex64", HEFT_C64 },
    { "complex128", HEFT_C128 },
    { "float8_e4m3fn", HEFT_F8_E4M3FN },
    { "float8_e5m2", HEFT_F8_E5M2 },
    { "float8_e4m3fnuz", HEFT_F8_E4M3FNUZ },
    { "float8_e5m2fnuz", HEFT_F8_E5M2FNUZ },
    { "float8_e8m0fnu", HEFT_F8_E8M0 },
};
static const heft_dtype_spellings names = { rows, sizeof rows / sizeof *rows };

heft_dtype heft_flax_type(heft_str name)
{
    return heft_dtype_spelled(&names, name);
}

const char *heft_flax_type_name(heft_dtype t)
{
    return heft_dtype_spelling_of(&names, t);
}
