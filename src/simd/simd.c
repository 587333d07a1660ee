/* simd.c - chooses the kernels for the processor. */
#include "simd/simd.h"

#include "base/compiler.h"
#include "model/products.h"
#include "simd/block_loops.h"
#include "simd/cast_loops.h"
#include "simd/encode_sets.h"
#include "simd/float_loops.h"
#include "simd/packed_sets.h"

const heft_kernels heft_portable_kernels = {
    .name = "portable",
    .cast = heft_cast_loops,
    .decode_blocks = heft_block_loops,
    .floats = &heft_float_loops,
    .fits = &heft_fits_baseline,
    .packed = &heft_packed_set,
    .products = heft_products_loops,
};

/* The set is chosen once: in a virtual machine a question to the processor takes as long as a
 * system call. */
const heft_kernels *heft_kernels_now(void)
{
    static uint32_t chosen; /* index in heft_simd_sets, plus 1 */
    uint32_t i = heft_atomic_load(&chosen);
    if (i)
        return heft_simd_sets[i - 1].kernels;
    while (!heft_simd_sets[i].is_supported())
        i++;
    heft_atomic_store(&chosen, i + 1);
    return heft_simd_sets[i].kernels;
}
