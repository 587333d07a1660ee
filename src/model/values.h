/* values.h - metadata values: conversion to text, comparison, removal of duplicate keys. */
#ifndef HEFT_VALUES_H
#define HEFT_VALUES_H
#include <stddef.h>

#include "model/dtype.h"
#include "model/index.h"

enum { HEFT_F64_TEXT = 32 };
/* Write the shortest decimal number that reads back as v, with a fraction or an exponent: 1.0, 0.1,
 * 1e-05, 1e+16; or nan, inf, -inf.  No terminator; return the number of characters. */
size_t heft_f64_text(char out[HEFT_F64_TEXT], double v);

/* Set *out to the value as text: a string is borrowed, a number is written to `buffer`, a bool
 * becomes "true" or "false".  Return false for every other kind, and for a string that is not UTF-8
 * (*out is still set). */
bool heft_value_text(heft_str *out, const heft_value *v, char buffer[HEFT_F64_TEXT]);
/* Return the little-endian number of a type of at most 8 bytes as a value without a key. */
heft_value heft_value_number(heft_dtype t, const void *bytes);
/* Return number i of an array as a value without a key. */
static inline heft_value heft_value_element(const heft_value *array, uint32_t i)
{
    heft_dtype t = array->as.array.dtype;
    return heft_value_number(t,
                             (const uint8_t *)array->as.array.ptr + (size_t)i * heft_dtype_size(t));
}
/* Return true if keys and values are equal.  Floats are compared bit by bit, containers only by the
 * number of children. */
bool heft_value_same(const heft_value *a, const heft_value *b);
/* Remove duplicate keys among the children of value `parent`, or among the top-level values if
 * `parent` is HEFT_NONE: the last value of each key stays.  Set *dropped to the number of removed
 * children.  No container may be open.  Invalidates value numbers. */
heft_status heft_ix_meta_keep_last(heft_index *x, uint32_t parent, uint32_t *dropped);

/* ---- keys that must occur once ---- */

/* Return HEFT_E_FORMAT if a top-level metadata key occurs twice; call at the end of a parse.
 * `what` names the container in the message, e.g. "__metadata__". */
heft_status heft_meta_unique(heft_index *x, const char *what);
/* Return HEFT_E_FORMAT if an attribute of the tensor added last occurs twice. */
heft_status heft_attrs_unique(heft_index *x, uint32_t tensor, const char *what);

#endif
