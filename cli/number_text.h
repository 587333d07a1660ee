/* number_text.h - single elements of tensors, exactly. */
#ifndef HEFT_CLI_NUMBER_TEXT_H
#define HEFT_CLI_NUMBER_TEXT_H
#include "outbuf.h"

typedef enum number_kind {
    NUMBER_NONE,
    NUMBER_BOOL,
    NUMBER_INT,
    NUMBER_UINT,
    NUMBER_REAL,
    NUMBER_COMPLEX
} number_kind;

typedef struct number {
    number_kind kind;
    int64_t i;
    uint64_t u; /* BOOL, too */
    double f, imaginary;
} number;

/* What the elements of a type are; NUMBER_NONE for those without numbers. */
number_kind number_kind_of(heft_dtype t);
/* Element i of those that begin at src, first in a block. */
number number_at(heft_dtype t, const void *src, uint64_t i);
/* The fewest digits, of at most 17, that tell v from its neighbours among the values of type t:
 * "%.*e" takes the result minus one. */
int number_digits(double v, heft_dtype t);

#endif
