/* portable_kernels.c - the portable kernels on every processor, for tests that are linked with
 * --wrap=heft_kernels_now. */
#include "simd/simd.h"

const heft_kernels *__wrap_heft_kernels_now(void);

const heft_kernels *__wrap_heft_kernels_now(void)
{
    return &heft_portable_kernels;
}
