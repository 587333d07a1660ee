/* dtypes.h - numbers of the element types.  The meaning of a number never changes.
 *
 * An element of a plain type occupies a whole number of bytes.  Packed and block-quantised types
 * store several elements in a block; heft_dtype_get() returns elements and bytes per block.
 *
 * Stability: stable. */
#ifndef HEFT_DTYPES_H
#define HEFT_DTYPES_H
#include <stdint.h>

typedef uint16_t heft_dtype;

enum {
    HEFT_UNTYPED = 0, /* bytes without an element type */
    HEFT_BOOL = 1,    /* one byte, 0 or 1 */
    HEFT_U8 = 2,
    HEFT_I8 = 3,
    HEFT_U16 = 4,
    HEFT_I16 = 5,
    HEFT_U32 = 6,
    HEFT_I32 = 7,
    HEFT_U64 = 8,
    HEFT_I64 = 9,
    HEFT_F16 = 10,
    HEFT_BF16 = 11,
    HEFT_F32 = 12,
    HEFT_F64 = 13,
    HEFT_F8_E4M3FN = 14,
    HEFT_F8_E5M2 = 15,
    HEFT_F8_E4M3FNUZ = 16,
    HEFT_F8_E5M2FNUZ = 17,
    HEFT_F8_E8M0 = 18,
    HEFT_F6_E2M3 = 19, /* four elements in three bytes */
    HEFT_F6_E3M2 = 20,
    HEFT_F4_E2M1 = 21, /* two elements in a byte, low nibble first */
    HEFT_C64 = 22,     /* two f32: real, imaginary */
    HEFT_C128 = 23,
    /* Block-quantised types of ggml: the elements of a block share scales. */
    HEFT_Q4_0 = 24, /* 32 elements per block */
    HEFT_Q4_1 = 25,
    HEFT_Q5_0 = 26,
    HEFT_Q5_1 = 27,
    HEFT_Q8_0 = 28,
    HEFT_Q8_1 = 29,
    HEFT_Q2_K = 30, /* 256 elements per block */
    HEFT_Q3_K = 31,
    HEFT_Q4_K = 32,
    HEFT_Q5_K = 33,
    HEFT_Q6_K = 34,
    HEFT_Q8_K = 35,
    HEFT_IQ2_XXS = 36,
    HEFT_IQ2_XS = 37,
    HEFT_IQ3_XXS = 38,
    HEFT_IQ1_S = 39,
    HEFT_IQ4_NL = 40, /* 32 elements per block */
    HEFT_IQ3_S = 41,  /* 256 elements per block */
    HEFT_IQ2_S = 42,
    HEFT_IQ4_XS = 43,
    HEFT_IQ1_M = 44,
    HEFT_TQ1_0 = 45,
    HEFT_TQ2_0 = 46,
    HEFT_MXFP4 = 47, /* 32 elements per block */
    HEFT_NVFP4 = 48, /* 64 elements per block; a scale of the tensor may be another tensor */
    HEFT_Q1_0 = 49,  /* 128 elements per block */
    HEFT_Q2_0 = 50,  /* 64 elements per block */
    HEFT_DTYPES = 51 /* number of element types */
};

/* Kind of the elements of a type.  Later versions may add kinds. */
typedef enum heft_dtype_kind {
    HEFT_DTYPE_NONE = 0, /* no element type */
    HEFT_DTYPE_BOOL = 1,
    HEFT_DTYPE_UINT = 2,
    HEFT_DTYPE_INT = 3,     /* two's complement */
    HEFT_DTYPE_FLOAT = 4,   /* plain and packed */
    HEFT_DTYPE_COMPLEX = 5, /* two floating-point numbers */
    HEFT_DTYPE_BLOCK = 6    /* block-quantised */
} heft_dtype_kind;

#endif
