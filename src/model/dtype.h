/* dtype.h - element types: one table with a row for each, and what is read from it. */
#ifndef HEFT_DTYPE_H
#define HEFT_DTYPE_H
#include <heft/heft.h>

/* What lies above the numbers of a floating-point type. */
typedef enum heft_specials {
    HEFT_F_NOT_FLOAT, /* it is none */
    HEFT_F_IEEE,      /* one infinity, then NaN */
    HEFT_F_ONE_NAN,   /* all bits set, no infinity */
    HEFT_F_NEG_ZERO,  /* the code of minus zero is the NaN; no infinity, no minus zero */
    HEFT_F_NONE,      /* numbers only */
    HEFT_F_POWERS     /* e8m0: an exponent and nothing else */
} heft_specials;

typedef struct heft_float_layout { /* of a floating-point type */
    uint8_t exp_bits, mant_bits;
    int16_t bias;
    heft_specials specials;
} heft_float_layout;

typedef struct heft_dtype_row {
    heft_dtype_info info;     /* what heft_dtype_get() returns; name NULL: no element type */
    heft_float_layout layout; /* of a floating-point type */
    heft_dtype real;          /* of a complex type: the type of its two parts */
} heft_dtype_row;

extern const heft_dtype_row heft_dtype_rows[HEFT_DTYPES];

static inline heft_dtype_kind heft_dtype_kind_of(heft_dtype t)
{
    return t < HEFT_DTYPES ? (heft_dtype_kind)heft_dtype_rows[t].info.kind : HEFT_DTYPE_NONE;
}
static inline bool heft_dtype_is_float(heft_dtype t)
{
    return heft_dtype_kind_of(t) == HEFT_DTYPE_FLOAT;
}
static inline bool heft_dtype_is_complex(heft_dtype t)
{
    return heft_dtype_kind_of(t) == HEFT_DTYPE_COMPLEX;
}
static inline bool heft_dtype_is_signed_int(heft_dtype t)
{
    return heft_dtype_kind_of(t) == HEFT_DTYPE_INT;
}
static inline bool heft_dtype_is_int(heft_dtype t)
{
    return heft_dtype_is_signed_int(t) || heft_dtype_kind_of(t) == HEFT_DTYPE_UINT;
}
/* The type of the two parts of a complex type; any other type itself. */
static inline heft_dtype heft_dtype_real(heft_dtype t)
{
    return heft_dtype_is_complex(t) ? heft_dtype_rows[t].real : t;
}
/* NULL: no floating-point type. */
static inline const heft_float_layout *heft_float_layout_of(heft_dtype t)
{
    return heft_dtype_is_float(t) ? &heft_dtype_rows[t].layout : NULL;
}

/* Bytes of n elements, a block begun counting whole; false when that passes 64 bits. */
bool heft_dtype_bytes(uint64_t *out, heft_dtype t, uint64_t n);
/* Whole blocks that n elements fill; what is left over is not counted. */
uint64_t heft_dtype_blocks(heft_dtype t, uint64_t n);
/* Whether n elements fill whole blocks. */
bool heft_dtype_fills_blocks(heft_dtype t, uint64_t n);
/* Bytes of one element; 0 for packed types and none. */
static inline uint32_t heft_dtype_size(heft_dtype t)
{
    const heft_dtype_info *d = t < HEFT_DTYPES ? &heft_dtype_rows[t].info : NULL;
    return d && d->block_elems == 1 ? d->block_bytes : 0;
}
/* Bytes of one number: half an element for complex types, 1 where order does not matter. */
uint32_t heft_dtype_number_bytes(heft_dtype t);
const char *heft_dtype_name(heft_dtype t); /* "none" for HEFT_UNTYPED */

/* ---- the tables of formats ---- */

/* Which of a format's types, in the order of its codes, t is; count: none, as HEFT_UNTYPED always is. */
uint32_t heft_dtype_code(heft_dtype t, const heft_dtype *types, uint32_t count);

typedef struct heft_dtype_spelling {
    const char *text;
    heft_dtype dtype;
} heft_dtype_spelling;

typedef struct heft_dtype_spellings { /* of a format; searched from the front */
    const heft_dtype_spelling *rows;
    size_t count;
} heft_dtype_spellings;

/* HEFT_UNTYPED: the format has no such spelling. */
heft_dtype heft_dtype_spelled(const heft_dtype_spellings *s, heft_str text);
/* NULL: the format has no such type. */
const char *heft_dtype_spelling_of(const heft_dtype_spellings *s, heft_dtype t);

#endif
