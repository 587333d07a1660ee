/* simd.c - chooses the kernels for the processor. */
#include "simd/simd.h"

const heft_kernels heft_portable_kernels = { .name = "portable" };

const heft_kernels *heft_kernels_now(void)
{
    const heft_simd_set *set = heft_simd_sets;
    while (!set->is_supported())
        set++;
    return set->kernels;
}
