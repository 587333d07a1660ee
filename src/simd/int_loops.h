/* int_loops.h - the steps of casts (cast_loops.c) from and to integers.  A number that is too large
 * or too small for the type becomes the largest or the least number of the type; NaN becomes 0. */
#ifndef HEFT_INT_LOOPS_H
#define HEFT_INT_LOOPS_H
#include "base/kernels.h"
#include "model/float.h"

static inline int32_t clamp_i32(int32_t v, int32_t low, int32_t high)
{
    v = v < low ? low : v;
    return v > high ? high : v;
}

static inline int64_t clamp_i64(int64_t v, int64_t low, int64_t high)
{
    v = v < low ? low : v;
    return v > high ? high : v;
}

static inline int32_t i32_of_f32(float v)
{
    const float beyond = 2147483648.0F, most = 2147483520.0F; /* the largest f32 below */
    float inside = v == v ? v : 0;
    inside = inside > most ? most : inside;
    inside = inside < -beyond ? -beyond : inside;
    return v >= beyond ? INT32_MAX : (int32_t)inside;
}

/* `low` and `high` are limits of a type of at most 16 bits. */
static inline int32_t small_of_f32(float v, float low, float high)
{
    v = v == v ? v : 0;
    v = v < low ? low : v;
    return (int32_t)(v > high ? high : v);
}

static inline uint32_t u32_of_f32(float v)
{
    const float beyond = 4294967296.0F, most = 4294967040.0F; /* the largest f32 below */
    float inside = v > 0 ? v : 0;
    inside = inside > most ? most : inside;
    return v >= beyond ? UINT32_MAX : (uint32_t)inside;
}

static inline int32_t i32_of_f64(double v)
{
    v = v == v ? v : 0;
    v = v > INT32_MAX ? INT32_MAX : v;
    return (int32_t)(v < INT32_MIN ? INT32_MIN : v);
}

static inline uint32_t u32_of_f64(double v)
{
    v = v > 0 ? v : 0;
    return (uint32_t)(v > UINT32_MAX ? UINT32_MAX : v);
}

static inline int64_t i64_of_f64(double v)
{
    const double beyond = 9223372036854775808.0;
    double inside = v >= -beyond && v < beyond ? v : v < 0 ? -beyond : 0;
    return v >= beyond ? INT64_MAX : (int64_t)inside;
}

static inline uint64_t u64_of_f64(double v)
{
    const double beyond = 18446744073709551616.0;
    double inside = v > 0 && v < beyond ? v : 0;
    return v >= beyond ? UINT64_MAX : (uint64_t)inside;
}

/* Return v, or v with a last bit that stands for the bits below, if f64 does not have v. */
static inline uint64_t odd_53_bits(uint64_t v)
{
    uint64_t rest = v & 0x7FF;
    return heft_pick64(v >> 53 != 0, (v - rest) | (uint64_t)(rest != 0) << 11, v);
}

/* Round a number of 25 bits or more to odd, with at most 24 significant bits, as f32 has: the last
 * 8 bits become zeros, and the bit before these is set if one of the 8 bits was set. */
static inline uint32_t odd_u32(uint32_t v)
{
    uint32_t rest = v & 0xFF;
    return v >> 24 ? (v - rest) | (uint32_t)(rest != 0) << 8 : v;
}

/* Return v, which has at most 24 significant bits, as an f32. */
static inline float f32_of_u32(uint32_t v)
{
    return (float)(int32_t)(v >> 16) * 65536.0F + (float)(int32_t)(v & 0xFFFF);
}

static inline double f64_of_u32(uint32_t v)
{
    return (double)(int32_t)(v ^ 1u << 31) + 2147483648.0;
}

static void heft_f32_to_i32(void *restrict out, const void *restrict in)
{
    const uint32_t *from = in;
    int32_t *to = out;
    for (size_t i = 0; i < HEFT_KERNEL_BLOCK; i++)
        to[i] = i32_of_f32(heft_f32_of(from[i]));
}

static void heft_f32_to_i8(void *restrict out, const void *restrict in)
{
    const uint32_t *from = in;
    int8_t *to = out;
    for (size_t i = 0; i < HEFT_KERNEL_BLOCK; i++)
        to[i] = (int8_t)small_of_f32(heft_f32_of(from[i]), INT8_MIN, INT8_MAX);
}

static void heft_f32_to_u8(void *restrict out, const void *restrict in)
{
    const uint32_t *from = in;
    uint8_t *to = out;
    for (size_t i = 0; i < HEFT_KERNEL_BLOCK; i++)
        to[i] = (uint8_t)small_of_f32(heft_f32_of(from[i]), 0, UINT8_MAX);
}

static void heft_f32_to_i16(void *restrict out, const void *restrict in)
{
    const uint32_t *from = in;
    int16_t *to = out;
    for (size_t i = 0; i < HEFT_KERNEL_BLOCK; i++)
        to[i] = (int16_t)small_of_f32(heft_f32_of(from[i]), INT16_MIN, INT16_MAX);
}

static void heft_f32_to_u16(void *restrict out, const void *restrict in)
{
    const uint32_t *from = in;
    uint16_t *to = out;
    for (size_t i = 0; i < HEFT_KERNEL_BLOCK; i++)
        to[i] = (uint16_t)small_of_f32(heft_f32_of(from[i]), 0, UINT16_MAX);
}

static void heft_f32_to_u32(void *restrict out, const void *restrict in)
{
    const uint32_t *from = in;
    uint32_t *to = out;
    for (size_t i = 0; i < HEFT_KERNEL_BLOCK; i++)
        to[i] = u32_of_f32(heft_f32_of(from[i]));
}

static void heft_f64_to_i32(void *restrict out, const void *restrict in)
{
    const uint64_t *from = in;
    int32_t *to = out;
    for (size_t i = 0; i < HEFT_KERNEL_BLOCK; i++)
        to[i] = i32_of_f64(heft_f64_of(from[i]));
}

static void heft_f64_to_u32(void *restrict out, const void *restrict in)
{
    const uint64_t *from = in;
    uint32_t *to = out;
    for (size_t i = 0; i < HEFT_KERNEL_BLOCK; i++)
        to[i] = u32_of_f64(heft_f64_of(from[i]));
}

static void heft_f64_to_i64(void *restrict out, const void *restrict in)
{
    const uint64_t *from = in;
    int64_t *to = out;
    for (size_t i = 0; i < HEFT_KERNEL_BLOCK; i++)
        to[i] = i64_of_f64(heft_f64_of(from[i]));
}

static void heft_f64_to_u64(void *restrict out, const void *restrict in)
{
    const uint64_t *from = in;
    uint64_t *to = out;
    for (size_t i = 0; i < HEFT_KERNEL_BLOCK; i++)
        to[i] = u64_of_f64(heft_f64_of(from[i]));
}

static void heft_i64_to_f32(void *restrict out, const void *restrict in)
{
    const int64_t *from = in;
    uint32_t *to = out;
    for (size_t i = 0; i < HEFT_KERNEL_BLOCK; i++)
        to[i] = heft_f32_bits((float)from[i]);
}

static void heft_i64_to_f64(void *restrict out, const void *restrict in)
{
    const int64_t *from = in;
    uint64_t *to = out;
    for (size_t i = 0; i < HEFT_KERNEL_BLOCK; i++)
        to[i] = heft_f64_bits((double)from[i]);
}

static void heft_i64_to_odd_f64(void *restrict out, const void *restrict in)
{
    const int64_t *from = in;
    uint64_t *to = out;
    for (size_t i = 0; i < HEFT_KERNEL_BLOCK; i++) {
        uint64_t minus = from[i] < 0, v = (uint64_t)from[i];
        uint64_t odd = odd_53_bits(heft_pick64(minus, 0 - v, v));
        to[i] = heft_f64_bits((double)(int64_t)heft_pick64(minus, 0 - odd, odd));
    }
}

static void heft_u64_to_odd_f64(void *restrict out, const void *restrict in)
{
    const uint64_t *from = in;
    uint64_t *to = out;
    for (size_t i = 0; i < HEFT_KERNEL_BLOCK; i++)
        to[i] = heft_f64_bits((double)odd_53_bits(from[i]));
}

static void heft_u64_to_f32(void *restrict out, const void *restrict in)
{
    const uint64_t *from = in;
    uint32_t *to = out;
    for (size_t i = 0; i < HEFT_KERNEL_BLOCK; i++)
        to[i] = heft_f32_bits((float)from[i]);
}

static void heft_u64_to_f64(void *restrict out, const void *restrict in)
{
    const uint64_t *from = in;
    uint64_t *to = out;
    for (size_t i = 0; i < HEFT_KERNEL_BLOCK; i++)
        to[i] = heft_f64_bits((double)from[i]);
}

static void heft_i16_to_f32(void *restrict out, const void *restrict in)
{
    const int16_t *from = in;
    uint32_t *to = out;
    for (size_t i = 0; i < HEFT_KERNEL_BLOCK; i++)
        to[i] = heft_f32_bits((float)from[i]);
}

static void heft_u16_to_f32(void *restrict out, const void *restrict in)
{
    const uint16_t *from = in;
    uint32_t *to = out;
    for (size_t i = 0; i < HEFT_KERNEL_BLOCK; i++)
        to[i] = heft_f32_bits((float)(int32_t)from[i]);
}

static void heft_i32_to_f32(void *restrict out, const void *restrict in)
{
    const int32_t *from = in;
    uint32_t *to = out;
    for (size_t i = 0; i < HEFT_KERNEL_BLOCK; i++)
        to[i] = heft_f32_bits((float)from[i]);
}

static void heft_u32_to_f32(void *restrict out, const void *restrict in)
{
    const uint32_t *from = in;
    uint32_t *to = out;
    for (size_t i = 0; i < HEFT_KERNEL_BLOCK; i++)
        to[i] = heft_f32_bits((float)from[i]);
}

static void heft_i32_to_odd_f32(void *restrict out, const void *restrict in)
{
    const int32_t *from = in;
    uint32_t *to = out;
    for (size_t i = 0; i < HEFT_KERNEL_BLOCK; i++) {
        uint32_t v = (uint32_t)from[i], minus = v >> 31 << 31;
        int32_t odd = (int32_t)odd_u32(from[i] < 0 ? 0 - v : v);
        to[i] = heft_f32_bits((float)odd) | minus; /* (int32_t)(1U << 31) has this sign, too */
    }
}

static void heft_u32_to_odd_f32(void *restrict out, const void *restrict in)
{
    const uint32_t *from = in;
    uint32_t *to = out;
    for (size_t i = 0; i < HEFT_KERNEL_BLOCK; i++)
        to[i] = heft_f32_bits(f32_of_u32(odd_u32(from[i])));
}

static void heft_i32_to_f64(void *restrict out, const void *restrict in)
{
    const int32_t *from = in;
    uint64_t *to = out;
    for (size_t i = 0; i < HEFT_KERNEL_BLOCK; i++)
        to[i] = heft_f64_bits((double)from[i]);
}

static void heft_u32_to_f64(void *restrict out, const void *restrict in)
{
    const uint32_t *from = in;
    uint64_t *to = out;
    for (size_t i = 0; i < HEFT_KERNEL_BLOCK; i++)
        to[i] = heft_f64_bits(f64_of_u32(from[i]));
}

static void heft_i16_to_i32(void *restrict out, const void *restrict in)
{
    const int16_t *from = in;
    int32_t *to = out;
    for (size_t i = 0; i < HEFT_KERNEL_BLOCK; i++)
        to[i] = from[i];
}

static void heft_u16_to_i32(void *restrict out, const void *restrict in)
{
    const uint16_t *from = in;
    int32_t *to = out;
    for (size_t i = 0; i < HEFT_KERNEL_BLOCK; i++)
        to[i] = from[i];
}

static void heft_u32_to_i32(void *restrict out, const void *restrict in)
{
    const uint32_t *from = in;
    int32_t *to = out;
    for (size_t i = 0; i < HEFT_KERNEL_BLOCK; i++)
        to[i] = (int32_t)(from[i] > INT32_MAX ? INT32_MAX : from[i]);
}

static void heft_i32_to_i8(void *restrict out, const void *restrict in)
{
    const int32_t *from = in;
    int8_t *to = out;
    for (size_t i = 0; i < HEFT_KERNEL_BLOCK; i++)
        to[i] = (int8_t)clamp_i32(from[i], INT8_MIN, INT8_MAX);
}

static void heft_i32_to_u8(void *restrict out, const void *restrict in)
{
    const int32_t *from = in;
    uint8_t *to = out;
    for (size_t i = 0; i < HEFT_KERNEL_BLOCK; i++)
        to[i] = (uint8_t)clamp_i32(from[i], 0, UINT8_MAX);
}

static void heft_i32_to_i16(void *restrict out, const void *restrict in)
{
    const int32_t *from = in;
    int16_t *to = out;
    for (size_t i = 0; i < HEFT_KERNEL_BLOCK; i++)
        to[i] = (int16_t)clamp_i32(from[i], INT16_MIN, INT16_MAX);
}

static void heft_i32_to_u16(void *restrict out, const void *restrict in)
{
    const int32_t *from = in;
    uint16_t *to = out;
    for (size_t i = 0; i < HEFT_KERNEL_BLOCK; i++)
        to[i] = (uint16_t)clamp_i32(from[i], 0, UINT16_MAX);
}

static void heft_i32_to_u32(void *restrict out, const void *restrict in)
{
    const int32_t *from = in;
    uint32_t *to = out;
    for (size_t i = 0; i < HEFT_KERNEL_BLOCK; i++)
        to[i] = (uint32_t)(from[i] < 0 ? 0 : from[i]);
}

static void heft_i32_to_i64(void *restrict out, const void *restrict in)
{
    const int32_t *from = in;
    int64_t *to = out;
    for (size_t i = 0; i < HEFT_KERNEL_BLOCK; i++)
        to[i] = from[i];
}

static void heft_u32_to_i64(void *restrict out, const void *restrict in)
{
    const uint32_t *from = in;
    int64_t *to = out;
    for (size_t i = 0; i < HEFT_KERNEL_BLOCK; i++)
        to[i] = from[i];
}

static void heft_u64_to_i64(void *restrict out, const void *restrict in)
{
    const uint64_t *from = in;
    int64_t *to = out;
    for (size_t i = 0; i < HEFT_KERNEL_BLOCK; i++)
        to[i] = (int64_t)(from[i] > INT64_MAX ? INT64_MAX : from[i]);
}

static void heft_i64_to_i32(void *restrict out, const void *restrict in)
{
    const int64_t *from = in;
    int32_t *to = out;
    for (size_t i = 0; i < HEFT_KERNEL_BLOCK; i++)
        to[i] = (int32_t)clamp_i64(from[i], INT32_MIN, INT32_MAX);
}

static void heft_i64_to_u32(void *restrict out, const void *restrict in)
{
    const int64_t *from = in;
    uint32_t *to = out;
    for (size_t i = 0; i < HEFT_KERNEL_BLOCK; i++)
        to[i] = (uint32_t)clamp_i64(from[i], 0, UINT32_MAX);
}

static void heft_i64_to_u64(void *restrict out, const void *restrict in)
{
    const int64_t *from = in;
    uint64_t *to = out;
    for (size_t i = 0; i < HEFT_KERNEL_BLOCK; i++)
        to[i] = (uint64_t)(from[i] < 0 ? 0 : from[i]);
}

#endif
