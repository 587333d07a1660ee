/* no_kernels.c - portable loops only, for builds without an operating system. */
#include "base/kernels.h"

const heft_kernels *heft_kernels_now(void)
{
    static const heft_kernels none = { .name = "portable" };
    return &none;
}
