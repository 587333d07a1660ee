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

/* Numbers as files have them, little-endian.  Out of shifted bytes compilers make one load often, not always. */
#if defined(__GNUC__) && defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
static inline uint32_t heft_le32(const uint8_t *p)
{
    uint32_t v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
}

static inline uint64_t heft_le64(const uint8_t *p)
{
    uint64_t v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
}

static inline void heft_put_le64(uint8_t *to, uint64_t v)
{
    __builtin_memcpy(to, &v, sizeof v);
}
#else
static inline uint32_t heft_le32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline uint64_t heft_le64(const uint8_t *p)
{
    return (uint64_t)heft_le32(p) | (uint64_t)heft_le32(p + 4) << 32;
}

static inline void heft_put_le64(uint8_t *to, uint64_t v)
{
    for (unsigned i = 0; i < 8; i++)
        to[i] = (uint8_t)(v >> 8 * i);
}
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
