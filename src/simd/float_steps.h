/* float_steps.h - the steps of casts (cast_loops.c) between floating-point types. */
#ifndef HEFT_FLOAT_STEPS_H
#define HEFT_FLOAT_STEPS_H
#include "base/kernels.h"
#include "model/narrow_float.h"
#include "model/number.h"
#include "simd/instructions.h"

enum { BLOCK = HEFT_KERNEL_BLOCK };

/* ---- f16 ---- */

static void f16_to_f32(void *restrict out, const void *restrict in)
{
    const uint16_t *h = in;
    uint32_t *f = out;
    if (heft_f16_block_to_f32(f, h))
        return;
    for (size_t i = 0; i < BLOCK; i++)
        f[i] = heft_f16_to_f32(h[i]);
}

static void f32_to_f16(void *restrict out, const void *restrict in)
{
    const uint32_t *f = in;
    uint16_t *h = out;
    if (heft_f32_block_to_f16(h, f))
        return;
    for (size_t i = 0; i < BLOCK; i++)
        h[i] = heft_f32_to_f16(f[i]);
}

/* ---- bf16 and f64 ---- */

static void bf16_to_f32(void *restrict out, const void *restrict in)
{
    const uint16_t *h = in;
    uint32_t *f = out;
    for (size_t i = 0; i < BLOCK; i++)
        f[i] = (uint32_t)h[i] << 16;
}

static void f32_to_bf16(void *restrict out, const void *restrict in)
{
    const uint32_t *f = in;
    uint16_t *h = out;
    for (size_t i = 0; i < BLOCK; i++)
        h[i] = heft_f32_to_bf16(f[i]);
}

static void f32_to_f64(void *restrict out, const void *restrict in)
{
    const uint32_t *f = in;
    uint64_t *d = out;
    for (size_t i = 0; i < BLOCK; i++)
        d[i] = heft_f32_to_f64(f[i]);
}

static void f64_to_f32(void *restrict out, const void *restrict in)
{
    const uint64_t *d = in;
    uint32_t *f = out;
    for (size_t i = 0; i < BLOCK; i++)
        f[i] = heft_f64_to_f32(d[i]);
}

/* Return d with 24 bits of the mantissa, rounded to odd; a NaN unchanged. */
static inline uint64_t odd_24_bits(uint64_t d)
{
    const uint64_t rest = 0x1FFFFFFF, infinity = 0x7FF0000000000000;
    uint64_t odd = (d & ~rest) | (uint64_t)((d & rest) != 0) << 29;
    return heft_pick64((d & (UINT64_MAX >> 1)) > infinity, d, odd);
}

/* Return the f32 nearest to d if d is that f32 or the last bit of the f32 is set; otherwise the
 * next f32 in the direction of d, whose last bit is set. */
static uint32_t odd_f32(uint64_t d)
{
    uint32_t f = heft_f64_to_f32(d);
    double value = heft_f64_of(d & (UINT64_MAX >> 1)), near = (double)heft_f32_of(f & 0x7FFFFFFF);
    uint32_t is_even = !(f & 1), below = near<value, above = near> value;
    return f + (is_even & below) - (is_even & above);
}

/* In the range of the subnormal numbers of f32 fewer than 24 bits are left. */
static void f64_to_odd_f32(void *restrict out, const void *restrict in)
{
    const uint64_t *d = in, least_normal = 0x3810000000000000;
    uint32_t *f = out;
    uint64_t tiny = 0;
    for (size_t i = 0; i < BLOCK; i++) {
        uint64_t magnitude = d[i] & (UINT64_MAX >> 1);
        tiny |= (magnitude - least_normal) & ~(magnitude - 1); /* zero is not tiny */
        f[i] = heft_f64_to_f32(odd_24_bits(d[i]));
    }
    for (size_t i = 0; tiny >> 63 && i < BLOCK; i++)
        f[i] = odd_f32(d[i]);
}

/* ---- types of at most eight bits ---- */

static inline bool has_nan(const uint32_t *f)
{
    uint32_t most = 0;
    for (size_t i = 0; i < BLOCK; i++) {
        uint32_t magnitude = f[i] & 0x7FFFFFFF;
        most = most > magnitude ? most : magnitude;
    }
    return most > 0x7F800000;
}

/* The payloads of NaNs take a third of the time, for blocks that hardly ever have any. */
static inline void narrow(uint8_t *restrict out, const uint32_t *restrict f, heft_float_layout l)
{
    const heft_narrowing to = heft_narrowing_to(&l);
    if (!to.payload || has_nan(f)) {
        for (size_t i = 0; i < BLOCK; i++)
            out[i] = (uint8_t)heft_f32_narrow(f[i], &to);
        return;
    }
    for (size_t i = 0; i < BLOCK; i++)
        out[i] = (uint8_t)heft_f32_narrow_number(f[i], &to);
}

static void f32_to_e4m3fn(void *restrict out, const void *restrict in)
{
    narrow(out, in, (heft_float_layout){ 4, 3, 7, HEFT_F_ONE_NAN });
}

static void f32_to_e5m2(void *restrict out, const void *restrict in)
{
    narrow(out, in, (heft_float_layout){ 5, 2, 15, HEFT_F_IEEE });
}

static void f32_to_e4m3fnuz(void *restrict out, const void *restrict in)
{
    narrow(out, in, (heft_float_layout){ 4, 3, 8, HEFT_F_NEG_ZERO });
}

static void f32_to_e5m2fnuz(void *restrict out, const void *restrict in)
{
    narrow(out, in, (heft_float_layout){ 5, 2, 16, HEFT_F_NEG_ZERO });
}

static void f32_to_e2m1(void *restrict out, const void *restrict in)
{
    uint8_t codes[BLOCK], *packed = out;
    narrow(codes, in, (heft_float_layout){ 2, 1, 1, HEFT_F_NONE });
    for (size_t i = 0; i < BLOCK / 2; i++)
        packed[i] = (uint8_t)(codes[2 * i] | codes[2 * i + 1] << 4);
}

/* A tie rounds up, and a subnormal number has its leading bit in the mantissa. */
static inline uint8_t power_of(uint32_t f)
{
    enum { MIN_NORMAL = 1 << 23, INFINITE = 0x7F800000, TOP = 0xFE, NAN_CODE = 0xFF };
    uint32_t code = (f + heft_pick(f < MIN_NORMAL, MIN_NORMAL / 4, MIN_NORMAL / 2)) >> 23;
    code = heft_pick(code < TOP, code, TOP);
    code = heft_pick(f > INFINITE, NAN_CODE, code); /* a NaN, or a number with a sign */
    return (uint8_t)heft_pick(f == 0x80000000, 0, code);
}

static void f32_to_e8m0(void *restrict out, const void *restrict in)
{
    const uint32_t *f = in;
    uint8_t *codes = out;
    for (size_t i = 0; i < BLOCK; i++)
        codes[i] = power_of(f[i]);
}

#endif
