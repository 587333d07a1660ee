/* cast_loops.c - casts in loops without branches, compiled for each instruction set: meson.build
 * renames heft_cast_loops() for the set.
 *
 * A cast is a route of up to four steps over a block that stays in the cache.  Floats go through
 * f32, integers of up to 32 bits through i32 or, to floats, through f32, others through f64 or i64.
 * A step whose result is rounded again rounds to odd: the last bit says that digits were lost, so
 * that the cast rounds once.  Sources of a byte are looked up in a table that the portable form
 * fills. */
#include "simd/cast_loops.h"

#include "model/cast_batch.h"
#include "simd/cast_lookup.h"
#include "simd/float_steps.h"
#include "simd/int_loops.h"

enum { MAX_STEPS = 4 };

/* ---- routes ---- */

typedef void (*step)(void *restrict out, const void *restrict in);

typedef struct typed_step {
    heft_dtype from, to;
    step run;
} typed_step;

static const typed_step steps[] = {
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
    { HEFT_F32, HEFT_F8_E8M0, f32_to_e8m0 },
    { HEFT_F32, HEFT_F4_E2M1, f32_to_e2m1 },
    { HEFT_F32, HEFT_I8, heft_f32_to_i8 },
    { HEFT_F32, HEFT_U8, heft_f32_to_u8 },
    { HEFT_F32, HEFT_I16, heft_f32_to_i16 },
    { HEFT_F32, HEFT_U16, heft_f32_to_u16 },
    { HEFT_F32, HEFT_I32, heft_f32_to_i32 },
    { HEFT_F32, HEFT_U32, heft_f32_to_u32 },
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
    { HEFT_U32, HEFT_F32, heft_u32_to_f32 },
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

/* Steps that round to odd, for results that are rounded again. */
static const typed_step odd_steps[] = {
    { HEFT_F64, HEFT_F32, f64_to_odd_f32 },      { HEFT_I32, HEFT_F32, heft_i32_to_odd_f32 },
    { HEFT_U32, HEFT_F32, heft_u32_to_odd_f32 }, { HEFT_I64, HEFT_F64, heft_i64_to_odd_f64 },
    { HEFT_U64, HEFT_F64, heft_u64_to_odd_f64 },
};

static step find_step(const typed_step *list, size_t count, heft_dtype from, heft_dtype to)
{
    for (size_t i = 0; i < count; i++)
        if (list[i].from == from && list[i].to == to)
            return list[i].run;
    return NULL;
}

static step step_between(heft_dtype from, heft_dtype to)
{
    return find_step(steps, sizeof steps / sizeof *steps, from, to);
}

/* Return the step to a type whose values are cast again. */
static step step_before(heft_dtype from, heft_dtype to)
{
    step odd = find_step(odd_steps, sizeof odd_steps / sizeof *odd_steps, from, to);
    return odd ? odd : step_between(from, to);
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
        return to_float ? HEFT_UNTYPED : HEFT_F64;
    case HEFT_F64:
    case HEFT_I16:
    case HEFT_U16:
        return to_float ? HEFT_F32 : HEFT_I32;
    case HEFT_I32:
        return to_float ? HEFT_F32 : HEFT_I64;
    case HEFT_U32:
        return to_float ? HEFT_F32 : to_small ? HEFT_I32 : HEFT_I64;
    case HEFT_I64:
        return to_float ? HEFT_F64 : HEFT_I32;
    case HEFT_U64:
        return to_float ? HEFT_F64 : HEFT_I64;
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
        step run = next == to ? step_between(from, to) : step_before(from, next);
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

typedef struct loss_limit {
    uint32_t least, mask; /* the bits of an f32 that are compared with `least` */
} loss_limit;

static loss_limit loss_limit_of(heft_dtype to)
{
    bool is_unsigned = !heft_dtype_is_float(to) && !heft_dtype_is_signed_int(to);
    return (loss_limit){ least_lost(to), is_unsigned ? UINT32_MAX : 0x7FFFFFFF };
}

/* Return true if a cast may lose an f32 of the block. */
static bool may_lose(const void *block, const loss_limit *limit)
{
    const uint32_t *f = block;
    uint32_t most = 0, mask = limit->mask;
    for (size_t i = 0; i < BLOCK; i++) {
        uint32_t magnitude = f[i] & mask;
        most = most > magnitude ? most : magnitude;
    }
    return most >= limit->least;
}

/* ---- the cast ---- */

static size_t bytes_of(heft_dtype t, size_t n)
{
    uint64_t bytes;
    return heft_dtype_bytes(&bytes, t, n) ? (size_t)bytes : 0;
}

/* Steps take and return whole elements in memory. */
static bool is_aligned(const void *p)
{
    return (uintptr_t)p % sizeof(uint64_t) == 0;
}

/* Run the steps for a block; return false before a step that may lose a value. */
static bool cast_block(uint8_t *dst, size_t stride, const uint8_t *src, size_t step_bytes,
                       const route *r, const loss_limit *limit)
{
    uint64_t blocks[2][BLOCK];
    const void *in = is_aligned(src) ? src : memcpy(blocks[1], src, step_bytes);
    void *last = is_aligned(dst) && !limit ? dst : (void *)blocks[(r->count - 1) % 2];
    for (size_t i = 0; i < r->count; i++) {
        if (limit && i == r->f32_before && may_lose(in, limit))
            return false;
        void *out = i + 1 == r->count ? last : blocks[i % 2];
        r->steps[i](out, in);
        in = out;
    }
    if (limit && r->f32_before == r->count && may_lose(in, limit))
        return false;
    if (in != dst)
        memcpy(dst, in, stride);
    return true;
}

static size_t cast_by_steps(uint8_t *dst, heft_dtype to, const uint8_t *src, heft_dtype from,
                            size_t n, bool stops_at_loss)
{
    route r;
    size_t step_bytes = bytes_of(from, BLOCK), stride = bytes_of(to, BLOCK), done = 0;
    if (!find_route(&r, to, from))
        return 0;
    if (stops_at_loss &&
        (!heft_dtype_is_float(from) || r.f32_before == SIZE_MAX || to == HEFT_F8_E8M0))
        return 0;
    const loss_limit limit = loss_limit_of(to);
    while (n - done >= BLOCK &&
           cast_block(dst, stride, src, step_bytes, &r, stops_at_loss ? &limit : NULL)) {
        done += BLOCK;
        src += step_bytes;
        dst += stride;
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
