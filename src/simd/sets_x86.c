/* sets_x86.c - the instruction sets of 64-bit x86. */
#include <cpuid.h>

#include "model/products.h"
#include "simd/blake3_kernels.h"
#include "simd/block_loops.h"
#include "simd/cast_loops.h"
#include "simd/encode_sets.h"
#include "simd/float_loops.h"
#include "simd/packed_sets.h"
#include "simd/simd.h"

static const heft_kernels vbmi = {
    .name = "AVX-512 VBMI",
    .blake3_chunks = heft_blake3_chunks_avx512,
    .blake3_parents = heft_blake3_parents_avx512,
    .cast = heft_cast_loops_vbmi,
    .decode_blocks = heft_block_loops_avx512,
    .floats = &heft_float_loops_avx512,
    .fits = &heft_fits_avx512,
    .packed = &heft_packed_set_vbmi,
    .products = heft_products_loops_avx512,
};

static const heft_kernels avx512 = {
    .name = "AVX-512",
    .blake3_chunks = heft_blake3_chunks_avx512,
    .blake3_parents = heft_blake3_parents_avx512,
    .cast = heft_cast_loops_avx512,
    .decode_blocks = heft_block_loops_avx512,
    .floats = &heft_float_loops_avx512,
    .fits = &heft_fits_avx512,
    .packed = &heft_packed_set_avx512,
    .products = heft_products_loops_avx512,
};

/* Compilers unroll loops over 16 codes.  The result for AVX2 has 0.3 to 0.6 of the speed of the
 * baseline, so that the baseline decodes the types with such loops. */
static void decode_blocks_avx2(float *out, heft_dtype from, const uint8_t *blocks, size_t count)
{
    bool has_short_loops = from == HEFT_Q4_0 || from == HEFT_Q4_1 || from == HEFT_Q2_K ||
                           from == HEFT_Q3_K || from == HEFT_Q6_K;
    heft_decode_function *decode = has_short_loops ? heft_block_loops : heft_block_loops_avx2;
    decode(out, from, blocks, count);
}

static const heft_kernels avx2 = {
    .name = "AVX2",
    .blake3_chunks = heft_blake3_chunks_avx2,
    .blake3_parents = heft_blake3_parents_avx2,
    .cast = heft_cast_loops_avx2,
    .decode_blocks = decode_blocks_avx2,
    .floats = &heft_float_loops_avx2,
    .fits = &heft_fits_avx2,
    .packed = &heft_packed_set_avx2,
    .products = heft_products_loops_avx2,
};

/* Block types and statistics gain nothing by SSE4.1, so that the baseline does them. */
static const heft_kernels sse4_1 = {
    .name = "SSE4.1",
    .blake3_chunks = heft_blake3_chunks_sse4_1,
    .blake3_parents = heft_blake3_parents_sse4_1,
    .cast = heft_cast_loops_sse4_1,
    .decode_blocks = heft_block_loops,
    .floats = &heft_float_loops,
    .fits = &heft_fits_baseline,
    .packed = &heft_packed_set,
    .products = heft_products_loops,
};

/* Ask the processor, because clang 14 has no name for F16C.  has_avx2() tells whether the operating
 * system saves the registers. */
static bool has_f16c(void)
{
    uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
    return __get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx & bit_F16C);
}

/* The compiler's runtime asked the processor once, before main(), and the operating system about
 * saving the registers. */
static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && has_f16c();
}

static bool has_avx512(void)
{
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

static bool has_vbmi(void)
{
    return has_avx512() && __builtin_cpu_supports("avx512vbmi");
}

static bool has_sse4_1(void)
{
    return __builtin_cpu_supports("sse4.1");
}

static bool always(void)
{
    return true;
}

const heft_simd_set heft_simd_sets[] = {
    { has_vbmi, &vbmi },
    { has_avx512, &avx512 },
    { has_avx2, &avx2 },
    { has_sse4_1, &sse4_1 },
    { always, &heft_portable_kernels },
};
