/* cast_loops.c - casts in loops without branches, compiled for each instruction set: meson.build
 * renames heft_cast_loops() for the set.
 *
 * A cast is a route of up to four steps over a block that stays in the cache.  Floats go through
 * f32, integers of up to 32 bits through i32, others through f64 or i64.  A step whose result is
 * rounded again rounds to odd: the last bit says that digits were lost, so that the cast rounds
 * once.  Sources of a byte are looked up in a table that the portable form fills. */
#include "simd/cast_loops.h"

#include "model/cast_batch.h"
#include "model/narrow_float.h"
#include "model/number.h"
#include "simd/cast_lookup.h"
#include "simd/int_loops.h"

enum { BLOCK = HEFT_KERNEL_BLOCK, MAX_STEPS = 4 };

/* ---- floats ---- */

static void f16_to_f32(void *restrict out, const void *restrict in)
{
    const uint16_t *h = in;
    uint32_t *f = out;
    for (size_t i = 0; i < BLOCK; i++)
        f[i] = heft_f16_to_f32(h[i]);
}

static void bf16_to_f32(void *restrict out, const void *restrict in)
{
    const uint16_t *h = in;
    uint32_t *f = out;
    for (size_t i = 0; i < BLOCK; i++)
        f[i] = (uint32_t)h[i] << 16;
}

static void f32_to_f16(void *restrict out, const void *restrict in)
{
    const uint32_t *f = in;
    uint16_t *h = out;
    for (size_t i = 0; i < BLOCK; i++)
        h[i] = heft_f32_to_f16(f[i]);
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

static inline void narrow(uint8_t *restrict out, const uint32_t *restrict f, heft_float_layout l)
{
    const heft_narrowing to = heft_narrowing_to(&l);
    for (size_t i = 0; i < BLOCK; i++)
        out[i] = (uint8_t)heft_f32_narrow(f[i], &to);
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

/* ---- routes ---- */

typedef void (*step)(void *restrict out, const void *restrict in);

static const struct {
    heft_dtype from, to;
    step run;
} steps[] = {
    { HEFT_F16, HEFT_F32, f16_to_f32 },
    { HEFT_BF16, HEFT_F32, bf16_to_f32 },
    { HEFT_F32, HEFT_F16, f32_to_f16 },
    { HEFT_F32, HEFT_BF16, f32_to_bf16 },
    { HEFT_F32, HEFT_F64, f32_to_f64 },
    { HEFT_F64, HEFT_F32, f64_to_f32 },
    { HEFT_F32, HEFT_F8_E4M3FN, f32_to_e4m3fn },
    { HEFT_F32, HEFT_F8_E5M2, f32_to_e5m2 },
    { HEFT_F32, HEFT_F8_E4M3FNUZ, f32_to_e4m3fnuz },
    { HEFT_F32, HEFT_F8_E5M2FNUZ, f32_to_e5m2fnuz },
    { HEFT_F32, HEFT_F4_E2M1, f32_to_e2m1 },
    { HEFT_F32, HEFT_I32, heft_f32_to_i32 },
    { HEFT_F64, HEFT_I32, heft_f64_to_i32 },
    { HEFT_F64, HEFT_U32, heft_f64_to_u32 },
    { HEFT_F64, HEFT_I64, heft_f64_to_i64 },
    { HEFT_F64, HEFT_U64, heft_f64_to_u64 },
    { HEFT_I64, HEFT_F32, heft_i64_to_f32 },
    { HEFT_I64, HEFT_F64, heft_i64_to_f64 },
    { HEFT_U64, HEFT_F32, heft_u64_to_f32 },
    { HEFT_U64, HEFT_F64, heft_u64_to_f64 },
    { HEFT_I16, HEFT_F32, heft_i16_to_f32 },
    { HEFT_U16, HEFT_F32, heft_u16_to_f32 },
    { HEFT_I32, HEFT_F32, heft_i32_to_f32 },
    { HEFT_I32, HEFT_F64, heft_i32_to_f64 },
    { HEFT_U32, HEFT_F64, heft_u32_to_f64 },
    { HEFT_I16, HEFT_I32, heft_i16_to_i32 },
    { HEFT_U16, HEFT_I32, heft_u16_to_i32 },
    { HEFT_U32, HEFT_I32, heft_u32_to_i32 },
    { HEFT_I32, HEFT_I8, heft_i32_to_i8 },
    { HEFT_I32, HEFT_U8, heft_i32_to_u8 },
    { HEFT_I32, HEFT_I16, heft_i32_to_i16 },
    { HEFT_I32, HEFT_U16, heft_i32_to_u16 },
    { HEFT_I32, HEFT_U32, heft_i32_to_u32 },
    { HEFT_I32, HEFT_I64, heft_i32_to_i64 },
    { HEFT_U32, HEFT_I64, heft_u32_to_i64 },
    { HEFT_U64, HEFT_I64, heft_u64_to_i64 },
    { HEFT_I64, HEFT_I32, heft_i64_to_i32 },
    { HEFT_I64, HEFT_U32, heft_i64_to_u32 },
    { HEFT_I64, HEFT_U64, heft_i64_to_u64 },
};

static step step_between(heft_dtype from, heft_dtype to)
{
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        if (steps[i].from == from && steps[i].to == to)
            return steps[i].run;
    return NULL;
}

/* Return the type through which a type is cast if there is no step; HEFT_UNTYPED: none. */
static heft_dtype type_between(heft_dtype from, heft_dtype to)
{
    bool to_float = heft_dtype_is_float(to), to_small = heft_dtype_size(to) <= 2;
    switch (from) {
    case HEFT_F16:
    case HEFT_BF16:
        return HEFT_F32;
    case HEFT_F32:
        return to_float ? HEFT_UNTYPED : to_small ? HEFT_I32 : HEFT_F64;
    case HEFT_F64:
    case HEFT_I16:
    case HEFT_U16:
        return to_float ? HEFT_F32 : HEFT_I32;
    case HEFT_I32:
        return to_float ? HEFT_F64 : HEFT_I64;
    case HEFT_U32:
        return to_float ? HEFT_F64 : to_small ? HEFT_I32 : HEFT_I64;
    case HEFT_I64:
        return to_float ? HEFT_UNTYPED : HEFT_I32;
    case HEFT_U64:
        return to_float ? HEFT_UNTYPED : HEFT_I64;
    default:
        return HEFT_UNTYPED;
    }
}

typedef struct route {
    step steps[MAX_STEPS];
    size_t count;
    size_t f32_before; /* index of the step that takes f32; SIZE_MAX: none */
} route;

static bool find_route(route *r, heft_dtype to, heft_dtype from)
{
    r->count = 0;
    r->f32_before = SIZE_MAX;
    while (from != to && r->count < MAX_STEPS) {
        if (from == HEFT_F32)
            r->f32_before = r->count;
        heft_dtype next = step_between(from, to) ? to : type_between(from, to);
        step run = next == HEFT_F32 && from == HEFT_F64 && to != HEFT_F32
                       ? f64_to_odd_f32
                       : step_between(from, next);
        if (!run)
            return false;
        r->steps[r->count++] = run;
        from = next;
    }
    if (to == HEFT_F32)
        r->f32_before = r->count;
    return from == to;
}

/* ---- losses ---- */

/* Return the least magnitude of an f32, as bits, that a cast may lose. */
static uint32_t least_lost(heft_dtype to)
{
    const heft_float_layout *l = heft_float_layout_of(to);
    if (!l)
        return (127u + 8 * heft_dtype_size(to) - heft_dtype_is_signed_int(to)) << 23;
    if (l->mant_bits >= 23)
        return 0x7F800000;
    bool has_infinity = l->specials == HEFT_F_IEEE;
    uint32_t largest = heft_narrow_top(l) - has_infinity, down = 23u - l->mant_bits;
    return ((uint32_t)(127 - l->bias) << 23) + (largest << down) + (1u << (down - 1)) +
           !(largest & 1);
}

/* Return true if a cast may lose an f32 of the block. */
static bool may_lose(const void *block, uint32_t least, uint32_t mask)
{
    const uint32_t *f = block;
    uint32_t most = 0;
    for (size_t i = 0; i < BLOCK; i++) {
        uint32_t magnitude = f[i] & mask;
        most = most > magnitude ? most : magnitude;
    }
    return most >= least;
}

/* ---- the cast ---- */

static size_t bytes_of(heft_dtype t, size_t n)
{
    uint64_t bytes;
    return heft_dtype_bytes(&bytes, t, n) ? (size_t)bytes : 0;
}

static size_t cast_by_steps(uint8_t *dst, heft_dtype to, const uint8_t *src, heft_dtype from,
                            size_t n, bool stops_at_loss)
{
    route r;
    uint64_t blocks[2][BLOCK];
    size_t step_bytes = bytes_of(from, BLOCK), stride = bytes_of(to, BLOCK), done = 0;
    bool is_unsigned = !heft_dtype_is_float(to) && !heft_dtype_is_signed_int(to);
    uint32_t mask = is_unsigned ? UINT32_MAX : 0x7FFFFFFF, least = least_lost(to);
    if (!find_route(&r, to, from))
        return 0;
    if (stops_at_loss && (!heft_dtype_is_float(from) || r.f32_before == SIZE_MAX))
        return 0;
    for (; n - done >= BLOCK; done += BLOCK, src += step_bytes, dst += stride) {
        memcpy(blocks[0], src, step_bytes);
        for (size_t i = 0; i < r.count; i++) {
            if (stops_at_loss && i == r.f32_before && may_lose(blocks[i % 2], least, mask))
                return done;
            r.steps[i](blocks[(i + 1) % 2], blocks[i % 2]);
        }
        if (stops_at_loss && r.count == r.f32_before && may_lose(blocks[r.count % 2], least, mask))
            return done;
        memcpy(dst, blocks[r.count % 2], stride);
    }
    return done;
}

size_t heft_cast_loops(uint8_t *dst, heft_dtype to, const uint8_t *src, heft_dtype from, size_t n,
                       bool stops_at_loss)
{
    enum { PAYS = 2048 }; /* elements */
    if (n < BLOCK || heft_is_big_endian())
        return 0;
    if (heft_lookup_fits(to, from))
        return n < PAYS || stops_at_loss ? 0 : heft_cast_by_lookup(dst, to, src, from, n);
    return cast_by_steps(dst, to, src, from, n, stops_at_loss);
}
