/* cast_batch.c - converts batches of elements to f32 and back, in loops without branches, which
 * compilers translate to the vector instructions of the baseline. */
#include "model/cast_batch.h"

#include "model/narrow_float.h"
#include "model/number.h"

void heft_cast_batch_byteswap(void *array, uint32_t size)
{
    uint8_t *p = array;
    if (!heft_is_big_endian())
        return;
    for (uint32_t i = 0; i < HEFT_CAST_BATCH; i++, p += size)
        for (uint32_t a = 0, b = size - 1; a < b; a++, b--) {
            uint8_t moved = p[a];
            p[a] = p[b];
            p[b] = moved;
        }
}

/* Convert codes of a type narrower than f32 to f32. */
static void widen(uint32_t *restrict f, const uint32_t *restrict codes,
                  const heft_float_layout *restrict l)
{
    uint32_t sign = 1u << (l->exp_bits + l->mant_bits), up = 23u - l->mant_bits;
    uint32_t rebias = (uint32_t)(127 - l->bias) << 23, min_normal = 1u << 23;
    uint32_t first_special = l->specials == HEFT_F_IEEE      ? sign - (1u << l->mant_bits)
                             : l->specials == HEFT_F_ONE_NAN ? sign - 1
                                                             : sign;
    uint32_t negative_zero = l->specials == HEFT_F_NEG_ZERO ? sign : UINT32_MAX;
    /* HEFT_F_IEEE: infinity, or NaN with the same payload; other types have a single quiet NaN. */
    uint32_t special_f32 = l->specials == HEFT_F_IEEE ? 0x7F800000 : 0x7FC00000;
    uint32_t payload = l->specials == HEFT_F_IEEE ? min_normal - 1 : 0;
    uint32_t to_sign = 31u - l->exp_bits - l->mant_bits;
    for (uint32_t i = 0; i < HEFT_CAST_BATCH; i++) {
        uint32_t code = codes[i], abs = code & (sign - 1), shifted = abs << up;
        /* Read a subnormal with the least exponent, then subtract the hidden bit. */
        uint32_t subnormal = heft_f32_bits(heft_f32_of(shifted + rebias + min_normal) -
                                           heft_f32_of(rebias + min_normal));
        uint32_t wide = heft_pick(shifted < min_normal, subnormal, shifted + rebias);
        wide = heft_pick(abs >= first_special, special_f32 | (shifted & payload), wide);
        wide |= (code & sign) << to_sign;
        f[i] = heft_pick(code == negative_zero, special_f32, wide);
    }
}

/* Convert f32 to codes of a type of at most eight bits. */
static void narrow(uint32_t *restrict codes, const uint32_t *restrict f, const heft_float_layout *l)
{
    const heft_narrowing to = heft_narrowing_to(l);
    for (uint32_t i = 0; i < HEFT_CAST_BATCH; i++)
        codes[i] = heft_f32_narrow(f[i], &to);
}

void heft_cast_batch_codes(uint32_t *out, uint32_t size, const uint8_t *src, size_t n)
{
    if (size == 4) {
        heft_cast_batch_copy(out, src, n, sizeof *out);
        heft_cast_batch_byteswap(out, sizeof *out);
    } else if (size == 2) {
        uint16_t raw[HEFT_CAST_BATCH] = { 0 };
        heft_cast_batch_copy(raw, src, n, sizeof *raw);
        heft_cast_batch_byteswap(raw, sizeof *raw);
        for (uint32_t i = 0; i < HEFT_CAST_BATCH; i++)
            out[i] = raw[i];
    } else {
        uint8_t raw[HEFT_CAST_BATCH] = { 0 };
        heft_cast_batch_copy(raw, src, n, 1);
        for (uint32_t i = 0; i < HEFT_CAST_BATCH; i++)
            out[i] = raw[i];
    }
}

static void store_u8(uint8_t *dst, const uint32_t *codes, size_t n)
{
    uint8_t raw[HEFT_CAST_BATCH];
    for (uint32_t i = 0; i < HEFT_CAST_BATCH; i++)
        raw[i] = (uint8_t)codes[i];
    heft_cast_batch_copy(dst, raw, n, 1);
}

static uint32_t bits_of(heft_dtype packed)
{
    return heft_dtype_rows[packed].info.dlpack_bits;
}

void heft_cast_batch_store_packed(uint8_t *dst, const uint32_t *codes, size_t n, heft_dtype t)
{
    uint32_t bits = bits_of(t);
    uint64_t bytes;
    if (heft_dtype_bytes(&bytes, t, n))
        memset(dst, 0, (size_t)bytes);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = i * bits, low = at % 8, pair = codes[i] << low;
        dst[at / 8] |= (uint8_t)pair;
        if (low + bits > 8)
            dst[at / 8 + 1] |= (uint8_t)(pair >> 8);
    }
}

bool heft_cast_batch_fits_f32(heft_dtype t)
{
    const heft_float_layout *l = heft_float_layout_of(t);
    return l && l->specials != HEFT_F_POWERS && t != HEFT_F64;
}

bool heft_cast_batch_is_small_int(heft_dtype t)
{
    bool is_int = heft_dtype_is_int(t) || t == HEFT_BOOL;
    return is_int && heft_dtype_size(t) <= sizeof(uint16_t);
}

static void widen_ints(uint32_t *restrict f, const uint32_t *restrict codes, heft_dtype t)
{
    uint32_t up = 32 - 8 * heft_dtype_size(t);
    for (uint32_t i = 0; i < HEFT_CAST_BATCH && t == HEFT_BOOL; i++)
        f[i] = heft_f32_bits(codes[i] ? 1.0F : 0.0F);
    if (t == HEFT_BOOL)
        return;
    bool is_signed = heft_dtype_is_signed_int(t);
    for (uint32_t i = 0; i < HEFT_CAST_BATCH; i++) {
        int32_t value = is_signed ? (int32_t)(codes[i] << up) >> up : (int32_t)codes[i];
        f[i] = heft_f32_bits((float)value);
    }
}

void heft_cast_batch_load(uint32_t *f, heft_dtype t, const uint8_t *src, size_t n)
{
    uint32_t codes[HEFT_CAST_BATCH] = { 0 };
    heft_cast_batch_codes(codes, heft_dtype_size(t), src, n);
    if (heft_cast_batch_is_small_int(t)) {
        widen_ints(f, codes, t);
        return;
    }
    if (t == HEFT_F32)
        heft_cast_batch_copy(f, codes, HEFT_CAST_BATCH, sizeof *f);
    else if (t == HEFT_BF16)
        for (uint32_t i = 0; i < HEFT_CAST_BATCH; i++)
            f[i] = codes[i] << 16;
    else
        widen(f, codes, heft_float_layout_of(t));
}

static void store_half(uint8_t *dst, heft_dtype t, const uint32_t *f, size_t n)
{
    uint16_t narrow[HEFT_CAST_BATCH];
    if (t == HEFT_F16)
        for (uint32_t i = 0; i < HEFT_CAST_BATCH; i++)
            narrow[i] = heft_f32_to_f16(f[i]);
    else
        for (uint32_t i = 0; i < HEFT_CAST_BATCH; i++)
            narrow[i] = heft_f32_to_bf16(f[i]);
    heft_cast_batch_byteswap(narrow, sizeof *narrow);
    heft_cast_batch_copy(dst, narrow, n, sizeof *narrow);
}

void heft_cast_batch_f64(void *dst, const uint32_t *f, size_t n)
{
    uint64_t wide[HEFT_CAST_BATCH];
    for (uint32_t i = 0; i < HEFT_CAST_BATCH; i++)
        wide[i] = heft_f32_to_f64(f[i]);
    heft_cast_batch_copy(dst, wide, n, sizeof *wide);
}

/* Round towards zero and clamp to [low, high]; NaN becomes 0. */
static void f32_to_ints(uint32_t *restrict codes, const uint32_t *restrict f, double low,
                        double high)
{
    const double half = 2147483648.0; /* the least positive integer that int32_t cannot hold */
    for (uint32_t i = 0; i < HEFT_CAST_BATCH; i++) {
        double d = (double)heft_f32_of(f[i]);
        d = d == d ? d : 0;
        d = d < low ? low : d;
        d = d > high ? high : d;
        uint32_t top = d >= half;
        codes[i] = (uint32_t)(int32_t)(d - (top ? half : 0)) ^ top << 31;
    }
}

static void store_u16(uint8_t *dst, const uint32_t *codes, size_t n)
{
    uint16_t raw[HEFT_CAST_BATCH];
    for (uint32_t i = 0; i < HEFT_CAST_BATCH; i++)
        raw[i] = (uint16_t)codes[i];
    heft_cast_batch_byteswap(raw, sizeof *raw);
    heft_cast_batch_copy(dst, raw, n, sizeof *raw);
}

/* Return the number of integers of `size` bytes. */
static double int_range(uint32_t size)
{
    return size == 1 ? 256.0 : size == 2 ? 65536.0 : 4294967296.0;
}

static double least_int(heft_dtype t)
{
    return heft_dtype_is_signed_int(t) ? -int_range(heft_dtype_size(t)) / 2 : 0;
}

static void store_ints(uint8_t *dst, heft_dtype to, const uint32_t *f, size_t n)
{
    uint32_t codes[HEFT_CAST_BATCH], size = heft_dtype_size(to);
    double low = least_int(to);
    f32_to_ints(codes, f, low, low + int_range(size) - 1);
    if (size == 1) {
        store_u8(dst, codes, n);
    } else if (size == 2) {
        store_u16(dst, codes, n);
    } else {
        heft_cast_batch_byteswap(codes, sizeof *codes);
        heft_cast_batch_copy(dst, codes, n, sizeof *codes);
    }
}

void heft_cast_batch_store(uint8_t *dst, heft_dtype to, uint32_t *f, size_t n)
{
    uint32_t codes[HEFT_CAST_BATCH];
    uint64_t wide[HEFT_CAST_BATCH];
    switch (to) {
    case HEFT_F16:
    case HEFT_BF16:
        store_half(dst, to, f, n);
        return;
    case HEFT_F32:
        heft_cast_batch_byteswap(f, sizeof *f);
        heft_cast_batch_copy(dst, f, n, sizeof *f);
        return;
    case HEFT_F64:
        heft_cast_batch_f64(wide, f, HEFT_CAST_BATCH);
        heft_cast_batch_byteswap(wide, sizeof *wide);
        heft_cast_batch_copy(dst, wide, n, sizeof *wide);
        return;
    default:
        if (!heft_float_layout_of(to)) {
            store_ints(dst, to, f, n);
            return;
        }
        narrow(codes, f, heft_float_layout_of(to));
        if (heft_dtype_size(to))
            store_u8(dst, codes, n);
        else
            heft_cast_batch_store_packed(dst, codes, n, to);
    }
}

/* ---- counting losses ---- */

static void count_floats(uint64_t lost[HEFT_CAST_LOSSES], const heft_float_layout *restrict l,
                         const uint32_t *restrict f, bool is_int)
{
    enum { INFINITE = 0x7F800000 };
    bool has_infinity = l->specials == HEFT_F_IEEE;
    uint32_t largest = (uint32_t)heft_float_overflow_code(l) - has_infinity,
             down = 23u - l->mant_bits;
    uint32_t rebias = (uint32_t)(127 - l->bias) << 23;
    /* The bits of the least f32 that rounds beyond the largest number of the type: halfway to the
     * next number, where ties go to the even code. */
    int32_t first_beyond =
        (int32_t)(rebias + (largest << down) + (1u << (down - 1)) + !(largest & 1));
    int32_t last_beyond = has_infinity ? INFINITE - 1 : INFINITE;
    uint32_t beyond = 0, nans = 0, inexact = 0;
    uint32_t lost_bits = is_int ? (1u << down) - 1 : 0;
    for (uint32_t i = 0; i < HEFT_CAST_BATCH; i++) {
        int32_t magnitude = (int32_t)(f[i] & 0x7FFFFFFF);
        uint32_t is_large = magnitude >= first_beyond;
        beyond += is_large & (magnitude <= last_beyond);
        nans += magnitude > INFINITE;
        inexact += !is_large & ((f[i] & lost_bits) != 0);
    }
    lost[has_infinity ? HEFT_LOST_RANGE : HEFT_LOST_CLAMPED] += beyond;
    lost[HEFT_LOST_NAN] += l->specials == HEFT_F_NONE ? nans : 0;
    lost[HEFT_LOST_DIGITS] += inexact;
}

static void count_ints(uint64_t lost[HEFT_CAST_LOSSES], heft_dtype to, const uint32_t *restrict f)
{
    double low = least_int(to);
    /* Near -2^31 the distance of adjacent f32 is 256. */
    float above = (float)(low + int_range(heft_dtype_size(to)));
    float below = to == HEFT_I32 ? -2147483904.0F : (float)(low - 1);
    uint32_t beyond = 0, nans = 0;
    for (uint32_t i = 0; i < HEFT_CAST_BATCH; i++) {
        float v = heft_f32_of(f[i]);
        beyond += (v <= below) | (v >= above);
        nans += v != v;
    }
    lost[HEFT_LOST_CLAMPED] += beyond;
    lost[HEFT_LOST_NAN] += nans;
}

void heft_cast_batch_count(uint64_t lost[HEFT_CAST_LOSSES], heft_dtype to, const uint32_t *f,
                           bool is_int)
{
    const heft_float_layout *l = heft_float_layout_of(to);
    if (!l)
        count_ints(lost, to, f);
    else if (l->mant_bits < 23)
        count_floats(lost, l, f, is_int);
}

void heft_cast_batch_load_packed(uint32_t *f, heft_dtype t, const uint8_t *src, uint32_t first,
                                 size_t n)
{
    uint32_t codes[HEFT_CAST_BATCH] = { 0 }, bits = bits_of(t);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = (first + i) * bits, low = at % 8;
        uint32_t pair = src[at / 8];
        if (low + bits > 8)
            pair |= (uint32_t)src[at / 8 + 1] << 8;
        codes[i] = pair >> low & ((1u << bits) - 1);
    }
    widen(f, codes, heft_float_layout_of(t));
}
