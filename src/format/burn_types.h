/* burn_types.h - Burn's names of element types, in Burnpacks and in records. */
#ifndef HEFT_BURN_TYPES_H
#define HEFT_BURN_TYPES_H
#include "model/dtype.h"

/* Burn's names of numeric types.  Flex32 is separate: the elements are f32. */
extern const heft_dtype_spellings heft_burn_numbers;
extern const char heft_burn_flex32[];

typedef struct heft_burn_bool {
    const char *store;  /* Burn's name of the storage: "Native", "U8" or "U32" */
    const char *stored; /* spelling for the attribute stored_dtype */
    heft_dtype dtype;
} heft_burn_bool;
enum { HEFT_BURN_BOOLS = 3 };
/* The first entry is the default, and needs no stored_dtype. */
extern const heft_burn_bool heft_burn_bools[HEFT_BURN_BOOLS];

extern const char heft_burn_qfloat[]; /* layout of quantized tensors */

/* Return the type with the given name, or HEFT_UNTYPED.  Set *stored to the value of the attribute
 * stored_dtype that preserves the name; ptr is NULL if the type alone implies the name. */
heft_dtype heft_burn_type(heft_str name, heft_str *stored);
/* Same for a type spelled {"Bool": store}. */
heft_dtype heft_burn_bool_type(heft_str store, heft_str *stored);

#endif
