/* dtype.h - the table of element types, and functions that read the table. */
#ifndef HEFT_DTYPE_H
#define HEFT_DTYPE_H
#include <heft/heft.h>

#include "model/index.h"

/* Codes of a floating-point type that are not numbers. */
typedef enum heft_specials {
    HEFT_F_NOT_FLOAT, /* not a floating-point type */
    HEFT_F_IEEE,      /* the largest exponent: infinity and NaN */
    HEFT_F_ONE_NAN,   /* NaN if all bits below the sign are set; no infinity */
    HEFT_F_NEG_ZERO,  /* NaN is the code of minus zero; no infinity, no minus zero */
    HEFT_F_NONE,      /* all codes are numbers */
    HEFT_F_POWERS     /* f8_e8m0: powers of two without a sign; 0xFF is NaN */
} heft_specials;

typedef struct heft_float_layout {
    uint8_t exp_bits, mant_bits;
    int16_t bias;
    heft_specials specials;
} heft_float_layout;

typedef struct heft_dtype_row {
    heft_dtype_info info;     /* result of heft_dtype_get(); name NULL: no such type */
    heft_float_layout layout; /* floating-point types only */
    heft_dtype real;          /* complex types only: type of the real and the imaginary part */
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
/* Return true for a type whose numbers have been rounded to a few bits: blocks, and floats of less
 * than 16 bits. */
static inline bool heft_dtype_is_lossy(heft_dtype t)
{
    return heft_dtype_kind_of(t) == HEFT_DTYPE_BLOCK ||
           (heft_dtype_is_float(t) &&
            heft_dtype_rows[t].info.block_bytes * 8 < 16 * heft_dtype_rows[t].info.block_elems);
}
/* Return the type of the two parts of a complex type; return any other type unchanged. */
static inline heft_dtype heft_dtype_real(heft_dtype t)
{
    return heft_dtype_is_complex(t) ? heft_dtype_rows[t].real : t;
}
/* Return NULL if t is not a floating-point type. */
static inline const heft_float_layout *heft_float_layout_of(heft_dtype t)
{
    return heft_dtype_is_float(t) ? &heft_dtype_rows[t].layout : NULL;
}

/* Compute the bytes of n elements, rounded up to whole blocks.  Return false if the result exceeds
 * 64 bits, or t has no row in the table. */
bool heft_dtype_bytes(uint64_t *out, heft_dtype t, uint64_t n);
/* Return the number of whole blocks in n elements, rounded down. */
uint64_t heft_dtype_blocks(heft_dtype t, uint64_t n);
/* Return true if n elements fill whole blocks. */
bool heft_dtype_fills_blocks(heft_dtype t, uint64_t n);
/* Return the bytes of one element; 0 for packed and block types and HEFT_UNTYPED. */
static inline uint32_t heft_dtype_size(heft_dtype t)
{
    const heft_dtype_info *d = t < HEFT_DTYPES ? &heft_dtype_rows[t].info : NULL;
    return d && d->block_elems == 1 ? d->block_bytes : 0;
}
/* Return the bytes of one number, the unit of byte-swapping: half an element for complex types; 1
 * for packed and block types and HEFT_UNTYPED. */
uint32_t heft_dtype_number_bytes(heft_dtype t);
const char *heft_dtype_name(heft_dtype t); /* "none" for HEFT_UNTYPED */

/* ---- codes and spellings of element types in formats ---- */

/* Return the index of t in types[], which lists a format's element types by code.  Return count if
 * the format lacks t, and always for HEFT_UNTYPED. */
uint32_t heft_dtype_code(heft_dtype t, const heft_dtype *types, uint32_t count);

typedef struct heft_dtype_spelling {
    const char *text;
    heft_dtype dtype;
} heft_dtype_spelling;

/* All spellings of a format.  The first match counts. */
typedef struct heft_dtype_spellings {
    const heft_dtype_spelling *rows;
    size_t count;
} heft_dtype_spellings;

/* Return the type with this spelling; HEFT_UNTYPED if the format has no such spelling. */
heft_dtype heft_dtype_spelled(const heft_dtype_spellings *s, heft_str text);
/* Return the spelling of t, or NULL if the format has no such type. */
const char *heft_dtype_spelling_of(const heft_dtype_spellings *s, heft_dtype t);

/* ---- rules about the values of elements ---- */

typedef enum heft_value_rule {
    HEFT_ANY_VALUE,
    HEFT_BOOL_VALUE, /* each byte is 0 or 1 */
    HEFT_HALF_BYTE,  /* the high half of the last byte is 0 */
} heft_value_rule;

/* Return the rule that applies to the decoded bytes of a part. */
heft_value_rule heft_value_rule_of(const heft_index *x, uint32_t part);
/* Return the offset of the first byte that breaks the rule, or len.  is_end: the last byte is the
 * last byte of the part. */
size_t heft_value_rule_broken_at(heft_value_rule rule, const uint8_t *p, size_t len, bool is_end);
const char *heft_value_rule_name(heft_value_rule rule); /* "heft/bool-value" */
const char *heft_value_rule_text(heft_value_rule rule); /* what is wrong with the value */

#endif
