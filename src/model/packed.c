/* packed.c - the loops of packed_loops.h in their portable form. */
#include "base/kernels.h"
#include "model/packed_steps.h"

const heft_packed_loops heft_portable_packed = HEFT_PACKED_LOOPS;

const heft_packed_loops *heft_packed_now(void)
{
    const heft_kernels *k = heft_kernels_now();
    return k->packed ? k->packed : &heft_portable_packed;
}
