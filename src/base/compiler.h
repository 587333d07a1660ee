/* compiler.h - what differs between compilers, and nothing else. */
#ifndef HEFT_COMPILER_H
#define HEFT_COMPILER_H
#include <stdint.h>

#if defined(__GNUC__)
#define heft_unlikely(x)      __builtin_expect(!!(x), 0)
#define heft_prefetch_line(p) __builtin_prefetch(p)
#else
#define heft_unlikely(x)      (x)
#define heft_prefetch_line(p) ((void)(p))
#endif

/* Numbers that are added, shifted and combined side by side; one where the machine has no more. */
#if defined(__GNUC__) && (defined(__SSE2__) || defined(__ARM_NEON) || defined(__wasm_simd128__))
enum { HEFT_LANES = 4 };
typedef uint32_t heft_lanes __attribute__((vector_size(16)));
#else
enum { HEFT_LANES = 1 };
typedef uint32_t heft_lanes;
#endif

#endif
