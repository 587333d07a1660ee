/* dtypes.h - the element types, by number.  A number never changes its meaning.
 *
 * Plain types hold one element in a whole number of bytes.  Packed and block types hold
 * several elements in one block; heft_dtype_get() tells how many, in how many bytes.
 */
#ifndef HEFT_DTYPES_H
#define HEFT_DTYPES_H
#include <stdint.h>

typedef uint16_t heft_dtype;

enum {
    HEFT_UNTYPED = 0, /* bytes without an element type of their own */
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
    HEFT_F4_E2M1 = 21, /* two elements in a byte, the low nibble first */
    HEFT_C64 = 22,     /* two f32: real, imaginary */
    HEFT_C128 = 23,
    HEFT_DTYPES = 24 /* how many there are */
};

#endif
