/* burn_types.h - element types as Burn names them, in Burnpacks and in records. */
#ifndef HEFT_BURN_TYPES_H
#define HEFT_BURN_TYPES_H
#include "model/dtype.h"

/* Types of numbers, but for Flex32, by their names. */
extern const heft_dtype_spellings heft_burn_numbers;
extern const char heft_burn_flex32[];

typedef struct heft_burn_bool {
    const char *store,
        *stored; /* "U8", and as stored_dtype spells it; the first is what every bool is */
    heft_dtype dtype;
} heft_burn_bool;
enum { HEFT_BURN_BOOLS = 3 };
extern const heft_burn_bool heft_burn_bools[HEFT_BURN_BOOLS];

extern const char heft_burn_qfloat[]; /* the layout of quantized tensors */

/* The type that a text names, or HEFT_UNTYPED; *stored is what to keep as stored_dtype, ptr NULL: nothing. */
heft_dtype heft_burn_type(heft_str name, heft_str *stored);
/* The same of {"Bool": store}. */
heft_dtype heft_burn_bool_type(heft_str store, heft_str *stored);

#endif
