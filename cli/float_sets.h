/* float_sets.h - the instruction sets with loops of their own (float_loops.c). */
#ifndef HEFT_CLI_FLOAT_SETS_H
#define HEFT_CLI_FLOAT_SETS_H
#include "float_loops.h"

typedef struct float_set {
    bool (*is_supported)(void); /* by the processor and the operating system */
    const float_loops *loops;
} float_set;

/* The fastest first; the last is the compiler's baseline. */
extern const float_set float_sets[];

#endif
