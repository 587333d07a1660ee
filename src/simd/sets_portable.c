/* sets_portable.c - the instruction sets of processors for which the compiler's baseline is all
 * that is used, for example NEON of 64-bit ARM. */
#include "simd/simd.h"

static bool always(void)
{
    return true;
}

const heft_simd_set heft_simd_sets[] = { { always, &heft_portable_kernels } };
