/* cast.c - numbers of one element type as numbers of another.
 *
 * Floating-point types of up to 32 bits go through blocks of f32, which holds each of them exactly; so do
 * the pairs that matter most.  Everything else goes one by one through heft_number, which holds every value
 * of every type exactly, so that each conversion rounds once.  Bytes on both sides are little-endian.
 */
#include "model/blocks.h"
#include "model/dtype.h"
#include "model/float.h"
#include "model/number.h"

enum { LANES = 32 }; /* elements that go through the local arrays at a time */

static bool is_complex(heft_dtype t)
{
    return t == HEFT_C64 || t == HEFT_C128;
}

/* ---- by the block ------------------------------------------------------------------------- */

/* Codes of a type narrower than f32 as f32. */
static void widen(uint32_t *restrict f, const uint32_t *restrict codes,
                  const heft_float_layout *restrict l)
{
    uint32_t sign = 1u << (l->exp_bits + l->mant_bits), up = 23u - l->mant_bits;
    uint32_t rebias = (uint32_t)(127 - l->bias) << 23, least = 1u << 23;
    uint32_t special = l->specials == HEFT_F_IEEE      ? sign - (1u << l->mant_bits)
                       : l->specials == HEFT_F_ONE_NAN ? sign - 1
                                                       : sign;
    uint32_t negative_zero = l->specials == HEFT_F_NEG_ZERO ? sign : UINT32_MAX;
    /* HEFT_F_IEEE: the exponent of infinity; the payload stays where it is. */
    uint32_t keep = l->specials == HEFT_F_IEEE ? least - 1 : 0;
    uint32_t above = l->specials == HEFT_F_IEEE ? 0x7F800000 : 0x7FC00000;
    uint32_t to_sign = 31u - l->exp_bits - l->mant_bits;
    for (uint32_t i = 0; i < LANES; i++) {
        uint32_t code = codes[i], abs = code & (sign - 1), placed = abs << up;
        /* A subnormal: read with the least exponent, then take away the hidden bit it lacks. */
        uint32_t tiny =
            heft_f32_bits(heft_f32_of(placed + rebias + least) - heft_f32_of(rebias + least));
        uint32_t wide = heft_pick(placed < least, tiny, placed + rebias);
        wide = heft_pick(abs >= special, above | (placed & keep), wide);
        wide |= (code & sign) << to_sign;
        f[i] = heft_pick(code == negative_zero, above, wide);
    }
}

/* The other way round, for types of at most eight bits. */
static void narrow(uint32_t *restrict codes, const uint32_t *restrict f,
                   const heft_float_layout *restrict l)
{
    uint32_t sign = 1u << (l->exp_bits + l->mant_bits), top = (uint32_t)heft_float_top(l);
    uint32_t down = 23u - l->mant_bits, below = (1u << (down - 1)) - 1;
    uint32_t rebias = (uint32_t)(127 - l->bias) << 23, least = rebias + (1u << 23);
    /* A float whose last place is worth as much as that of a subnormal: the sum rounds it. */
    uint32_t unit = (uint32_t)(151 - l->bias - l->mant_bits) << 23;
    bool is_ieee = l->specials == HEFT_F_IEEE, no_minus_zero = l->specials == HEFT_F_NEG_ZERO;
    uint32_t nan = l->specials == HEFT_F_ONE_NAN ? sign - 1 : no_minus_zero ? sign : top;
    uint32_t payload = is_ieee ? (1u << l->mant_bits) - 1 : 0,
             quiet = is_ieee ? payload / 2 + 1 : 0;
    uint32_t nan_sign = is_ieee || l->specials == HEFT_F_ONE_NAN ? sign : 0;
    uint32_t to_sign = 31u - l->exp_bits - l->mant_bits;
    for (uint32_t i = 0; i < LANES; i++) {
        uint32_t size = f[i] & 0x7FFFFFFF, minus = f[i] >> to_sign & sign;
        uint32_t normal = (size + below + (size >> down & 1) - rebias) >> down;
        uint32_t capped = heft_pick(size < least, size, least);
        uint32_t tiny = heft_f32_bits(heft_f32_of(capped) + heft_f32_of(unit)) - unit;
        uint32_t abs = heft_pick(size < least, tiny, normal);
        abs = heft_pick(abs < top, abs, top);
        uint32_t code = abs | heft_pick(no_minus_zero & !abs, 0, minus);
        uint32_t kept = size >> down & payload;
        uint32_t broken = nan | (minus & nan_sign) | heft_pick(!kept, quiet, kept);
        codes[i] = heft_pick(size > 0x7F800000, broken, code);
    }
}

static bool is_big_endian(void)
{
    const uint16_t one = 1;
    uint8_t first;
    memcpy(&first, &one, sizeof first);
    return !first;
}

/* Between the order of the host and little-endian; nothing on most hosts. */
static void order_bytes(void *array, uint32_t size)
{
    uint8_t *p = array;
    if (!is_big_endian())
        return;
    for (uint32_t i = 0; i < LANES; i++, p += size)
        for (uint32_t a = 0, b = size - 1; a < b; a++, b--) {
            uint8_t moved = p[a];
            p[a] = p[b];
            p[b] = moved;
        }
}

/* n <= LANES elements; whole blocks by a length the compiler knows. */
static inline void copy(void *dst, const void *src, size_t n, size_t size)
{
    if (n == LANES)
        memcpy(dst, src, LANES * size);
    else
        memcpy(dst, src, n * size);
}

static void load_u8(uint32_t *out, const uint8_t *src, size_t n)
{
    uint8_t raw[LANES] = { 0 };
    copy(raw, src, n, 1);
    for (uint32_t i = 0; i < LANES; i++)
        out[i] = raw[i];
}

static void load_u16(uint32_t *out, const uint8_t *src, size_t n)
{
    uint16_t raw[LANES] = { 0 };
    copy(raw, src, n, sizeof *raw);
    order_bytes(raw, sizeof *raw);
    for (uint32_t i = 0; i < LANES; i++)
        out[i] = raw[i];
}

static void load_u32(uint32_t *out, const uint8_t *src, size_t n)
{
    copy(out, src, n, sizeof *out);
    order_bytes(out, sizeof *out);
}

/* n <= LANES elements of 1, 2 or 4 bytes. */
static void load_codes(uint32_t *out, uint32_t size, const uint8_t *src, size_t n)
{
    if (size == 4)
        load_u32(out, src, n);
    else if (size == 2)
        load_u16(out, src, n);
    else
        load_u8(out, src, n);
}

/* n <= LANES elements, from number `first` of the block at src on, of a packed type. */
static void load_packed(uint32_t *out, const uint8_t *src, uint32_t first, size_t n, uint32_t bits)
{
    for (uint32_t i = 0; i < LANES; i++)
        out[i] = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = (first + i) * bits, low = at % 8;
        uint32_t pair = src[at / 8];
        if (low + bits > 8)
            pair |= (uint32_t)src[at / 8 + 1] << 8;
        out[i] = pair >> low & ((1u << bits) - 1);
    }
}

static void store_u8(uint8_t *dst, const uint32_t *codes, size_t n)
{
    uint8_t raw[LANES];
    for (uint32_t i = 0; i < LANES; i++)
        raw[i] = (uint8_t)codes[i];
    copy(dst, raw, n, 1);
}

static uint32_t bits_of(heft_dtype packed)
{
    return 1u + heft_float_layouts[packed].exp_bits + heft_float_layouts[packed].mant_bits;
}

/* n <= LANES elements to the block at dst on; what is left of the last block becomes 0. */
static void store_packed(uint8_t *dst, const uint32_t *codes, size_t n, heft_dtype t)
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

/* f32 or narrower, with an exponent and a mantissa. */
static bool fits_f32(heft_dtype t)
{
    const heft_float_layout *l = heft_float_layout_of(t);
    return l && l->specials != HEFT_F_POWERS && t != HEFT_F64;
}

/* n <= LANES elements of a plain type that fits_f32(), as f32. */
static void load_f32(uint32_t *f, heft_dtype t, const uint8_t *src, size_t n)
{
    uint32_t codes[LANES] = { 0 };
    load_codes(codes, heft_dtype_size(t), src, n);
    if (t == HEFT_F32)
        copy(f, codes, LANES, sizeof *f);
    else if (t == HEFT_BF16)
        for (uint32_t i = 0; i < LANES; i++)
            f[i] = codes[i] << 16;
    else
        widen(f, codes, &heft_float_layouts[t]);
}

static void store_f32(uint8_t *dst, heft_dtype t, const uint32_t *f, size_t n)
{
    uint16_t narrow[LANES];
    if (t == HEFT_F16)
        for (uint32_t i = 0; i < LANES; i++)
            narrow[i] = heft_f32_to_f16(f[i]);
    else
        for (uint32_t i = 0; i < LANES; i++)
            narrow[i] = heft_f32_to_bf16(f[i]);
    order_bytes(narrow, sizeof *narrow);
    copy(dst, narrow, n, sizeof *narrow);
}

static void store_f64(void *dst, const uint32_t *f, size_t n)
{
    uint64_t wide[LANES];
    for (uint32_t i = 0; i < LANES; i++)
        wide[i] = heft_f32_to_f64(f[i]);
    copy(dst, wide, n, sizeof *wide);
}

/* f32, n <= LANES of them, as another floating-point type. */
static void store_block(uint8_t *dst, heft_dtype to, uint32_t *f, size_t n)
{
    uint32_t codes[LANES];
    uint64_t wide[LANES];
    switch (to) {
    case HEFT_F16:
    case HEFT_BF16:
        store_f32(dst, to, f, n);
        return;
    case HEFT_F32:
        order_bytes(f, sizeof *f);
        copy(dst, f, n, sizeof *f);
        return;
    case HEFT_F64:
        store_f64(wide, f, LANES);
        order_bytes(wide, sizeof *wide);
        copy(dst, wide, n, sizeof *wide);
        return;
    default:
        narrow(codes, f, &heft_float_layouts[to]);
        if (heft_dtype_size(to))
            store_u8(dst, codes, n);
        else
            store_packed(dst, codes, n, to);
    }
}

static void cast_block(uint8_t *dst, heft_dtype to, const uint8_t *src, heft_dtype from, size_t n)
{
    uint32_t f[LANES] = { 0 }, codes[LANES];
    if (heft_dtype_size(from)) {
        load_f32(f, from, src, n);
    } else {
        load_packed(codes, src, 0, n, bits_of(from));
        widen(f, codes, &heft_float_layouts[from]);
    }
    store_block(dst, to, f, n);
}

/* Elements of a plain type one by one; numbers of packed types are f32 before they come here. */
static void cast_each(uint8_t *dst, heft_dtype to, const uint8_t *src, heft_dtype from, size_t n)
{
    uint32_t step = heft_dtype_size(from), stride = heft_dtype_size(to), codes[LANES] = { 0 };
    for (size_t i = 0; i < n && stride; i++)
        heft_number_write(dst + i * stride, to, heft_number_read(src + i * step, from));
    for (size_t i = 0; i < n && !stride; i++)
        codes[i] = (uint32_t)heft_number_code(heft_number_read(src + i * step, from),
                                              &heft_float_layouts[to]);
    if (!stride)
        store_packed(dst, codes, n, to);
}

/* Of a packed type, to one that is not made from f32. */
static void cast_packed(uint8_t *dst, heft_dtype to, const uint8_t *src, heft_dtype from, size_t n)
{
    uint8_t f[LANES * sizeof(float)];
    cast_block(f, HEFT_F32, src, from, n);
    cast_each(dst, to, f, HEFT_F32, n);
}

/* ---- the pairs that matter most, LANES elements from where they are to where they go ------- */

static void f32_to_bf16(uint8_t *restrict dst, const uint8_t *restrict src)
{
    for (uint32_t i = 0; i < LANES; i++) {
        uint32_t f;
        memcpy(&f, src + i * sizeof f, sizeof f);
        uint16_t code = heft_f32_to_bf16(f);
        memcpy(dst + i * sizeof code, &code, sizeof code);
    }
}

static void f32_to_f16(uint8_t *restrict dst, const uint8_t *restrict src)
{
    for (uint32_t i = 0; i < LANES; i++) {
        uint32_t f;
        memcpy(&f, src + i * sizeof f, sizeof f);
        uint16_t code = heft_f32_to_f16(f);
        memcpy(dst + i * sizeof code, &code, sizeof code);
    }
}

static void bf16_to_f32(uint8_t *restrict dst, const uint8_t *restrict src)
{
    for (uint32_t i = 0; i < LANES; i++) {
        uint16_t code;
        memcpy(&code, src + i * sizeof code, sizeof code);
        uint32_t f = (uint32_t)code << 16;
        memcpy(dst + i * sizeof f, &f, sizeof f);
    }
}

static void f16_to_f32(uint8_t *restrict dst, const uint8_t *restrict src)
{
    for (uint32_t i = 0; i < LANES; i++) {
        uint16_t code;
        memcpy(&code, src + i * sizeof code, sizeof code);
        uint32_t f = heft_f16_to_f32(code);
        memcpy(dst + i * sizeof f, &f, sizeof f);
    }
}

static void f64_to_f32(uint8_t *restrict dst, const uint8_t *restrict src)
{
    for (uint32_t i = 0; i < LANES; i++) {
        uint64_t d;
        memcpy(&d, src + i * sizeof d, sizeof d);
        uint32_t f = heft_f64_to_f32(d);
        memcpy(dst + i * sizeof f, &f, sizeof f);
    }
}

typedef void (*direct)(uint8_t *restrict dst, const uint8_t *restrict src);

static const struct {
    heft_dtype to, from;
    direct cast;
} pairs[] = {
    { HEFT_BF16, HEFT_F32, f32_to_bf16 }, { HEFT_F16, HEFT_F32, f32_to_f16 },
    { HEFT_F32, HEFT_BF16, bf16_to_f32 }, { HEFT_F32, HEFT_F16, f16_to_f32 },
    { HEFT_F32, HEFT_F64, f64_to_f32 },
};

static direct direct_of(heft_dtype to, heft_dtype from)
{
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (pairs[i].to == to && pairs[i].from == from && !is_big_endian())
            return pairs[i].cast;
    return NULL;
}

/* ---- any pair ----------------------------------------------------------------------------- */

typedef void (*caster)(uint8_t *dst, heft_dtype to, const uint8_t *src, heft_dtype from, size_t n);

static caster caster_of(heft_dtype to, heft_dtype from)
{
    if (fits_f32(from) && heft_float_layout_of(to) && to != HEFT_F8_E8M0)
        return cast_block;
    return heft_dtype_size(from) ? cast_each : cast_packed;
}

static uint64_t bytes_of(heft_dtype t, size_t count)
{
    uint64_t bytes;
    return heft_dtype_bytes(&bytes, t, count) ? bytes : 0;
}

static void cast_reals(uint8_t *dst, heft_dtype to, const uint8_t *src, heft_dtype from,
                       size_t count)
{
    caster cast = caster_of(to, from);
    direct fast = direct_of(to, from);
    /* LANES is a multiple of every packed block, so the bytes advance by whole ones. */
    size_t step = (size_t)bytes_of(from, LANES), stride = (size_t)bytes_of(to, LANES);
    if (to == from && heft_dtype_size(to)) {
        memcpy(dst, src, count * heft_dtype_size(to));
        return;
    }
    for (; fast && count >= LANES; count -= LANES, dst += stride, src += step)
        fast(dst, src);
    for (; count > LANES; count -= LANES, dst += stride, src += step)
        cast(dst, to, src, from, LANES);
    if (count)
        cast(dst, to, src, from, count);
}

/* ---- blocks that share scales ---- */

/* src begins with a block; the last may be wanted in part only. */
static void cast_blocks(uint8_t *dst, heft_dtype to, const uint8_t *src, heft_dtype from,
                        size_t count)
{
    const heft_dtype_info *d = heft_dtype_get(from);
    float f[HEFT_BLOCK_ELEMENTS];
    for (; count; src += d->block_bytes) {
        size_t n = count < d->block_elems ? count : d->block_elems;
        heft_block_decode(f, from, src);
        for (uint32_t i = 0; i < d->block_elems; i += LANES)
            order_bytes(f + i, sizeof *f);
        cast_reals(dst, to, (const uint8_t *)f, HEFT_F32, n);
        dst += n * heft_dtype_size(to);
        count -= n;
    }
}

static void blocks_to_f64(double *out, heft_dtype t, const uint8_t *src, uint64_t first,
                          size_t count)
{
    const heft_dtype_info *d = heft_dtype_get(t);
    uint32_t skip = (uint32_t)first & (d->block_elems - 1u);
    float f[HEFT_BLOCK_ELEMENTS];
    src += heft_dtype_blocks(t, first) * d->block_bytes;
    for (; count; src += d->block_bytes, skip = 0) {
        size_t left = d->block_elems - skip, n = count < left ? count : left;
        heft_block_decode(f, t, src);
        for (size_t i = 0; i < n; i++)
            *out++ = heft_f64_of(heft_f32_to_f64(heft_f32_bits(f[skip + i])));
        count -= n;
    }
}

/* ---- what the world calls ----------------------------------------------------------------- */

/* Not: blocks that share scales, and no type at all. */
static bool has_numbers(heft_dtype t)
{
    return heft_dtype_size(t) || heft_float_layout_of(t);
}

bool heft_can_cast(heft_dtype to, heft_dtype from)
{
    if (heft_block_is_known(from))
        return to == HEFT_F16 || to == HEFT_BF16 || to == HEFT_F32 || to == HEFT_F64;
    return has_numbers(to) && has_numbers(from) && is_complex(to) == is_complex(from);
}

bool heft_cast(void *dst, heft_dtype to, const void *src, heft_dtype from, size_t count)
{
    if (!heft_can_cast(to, from))
        return false;
    if (heft_block_is_known(from))
        cast_blocks(dst, to, src, from, count);
    else if (!is_complex(to))
        cast_reals(dst, to, src, from, count);
    else
        cast_reals(dst, to == HEFT_C64 ? HEFT_F32 : HEFT_F64, src,
                   from == HEFT_C64 ? HEFT_F32 : HEFT_F64, count * 2);
    return true;
}

static void packed_to_f64(double *out, heft_dtype t, const uint8_t *src, uint64_t first,
                          size_t count)
{
    const heft_dtype_info *d = heft_dtype_get(t);
    const heft_float_layout *l = &heft_float_layouts[t];
    uint32_t bits = bits_of(t);
    uint32_t skip = (uint32_t)first & (d->block_elems - 1u);
    src += heft_dtype_blocks(t, first) * d->block_bytes;
    /* LANES is a multiple of every block: the bytes advance by whole blocks. */
    for (size_t done = 0; done < count; done += LANES, src += LANES * bits / 8) {
        size_t n = count - done < LANES ? count - done : LANES;
        uint32_t codes[LANES], f[LANES];
        load_packed(codes, src, skip, n, bits);
        widen(f, codes, l);
        store_f64(out + done, f, n);
    }
}

static void ints_to_f64(uint64_t *wide, const uint32_t *codes, uint32_t bits, bool is_signed)
{
    uint32_t up = 32 - bits;
    for (uint32_t i = 0; i < LANES; i++) {
        uint32_t top = codes[i] << up;
        int32_t low = is_signed ? (int32_t)top >> up : (int32_t)(codes[i] ^ 1u << 31);
        wide[i] = heft_f64_bits((double)low + (is_signed ? 0.0 : 2147483648.0));
    }
}

/* By halves: the sum rounds once, and no helper is called where 64 bits are two words. */
static void longs_to_f64(uint64_t *wide, bool is_signed)
{
    for (uint32_t i = 0; i < LANES; i++) {
        uint32_t high = (uint32_t)(wide[i] >> 32), low = (uint32_t)wide[i];
        double above = is_signed ? (double)(int32_t)high : (double)high;
        wide[i] = heft_f64_bits(above * 4294967296.0 + (double)low);
    }
}

static void plain_block(uint64_t *wide, heft_dtype t, const uint8_t *src, size_t n)
{
    uint32_t codes[LANES] = { 0 }, size = heft_dtype_size(t);
    bool is_signed = heft_dtype_is_signed_int(t);
    if (fits_f32(t)) {
        load_f32(codes, t, src, n);
        store_f64(wide, codes, LANES);
    } else if (heft_float_layout_of(t) || t == HEFT_BOOL) {
        cast_reals((uint8_t *)wide, HEFT_F64, src, t, n);
        order_bytes(wide, sizeof *wide);
    } else if (size == 8) {
        copy(wide, src, n, sizeof *wide);
        order_bytes(wide, sizeof *wide);
        longs_to_f64(wide, is_signed);
    } else {
        load_codes(codes, size, src, n);
        ints_to_f64(wide, codes, 8 * size, is_signed);
    }
}

static void plain_to_f64(double *out, heft_dtype t, const uint8_t *src, size_t count)
{
    uint32_t step = heft_dtype_size(t);
    for (size_t done = 0; done < count; done += LANES, src += LANES * step) {
        size_t n = count - done < LANES ? count - done : LANES;
        uint64_t wide[LANES] = { 0 };
        plain_block(wide, t, src, n);
        copy(out + done, wide, n, sizeof *out);
    }
}

bool heft_to_f64(double *out, heft_dtype t, const void *src, uint64_t first_elem, size_t count)
{
    const heft_dtype_info *d = heft_dtype_get(t);
    if (!d)
        return false;
    if (is_complex(t))
        t = t == HEFT_C64 ? HEFT_F32 : HEFT_F64;
    if (d->block_elems > 1 && !heft_float_layout_of(t) && !heft_block_is_known(t))
        return false;
    if (heft_block_is_known(t))
        blocks_to_f64(out, t, src, first_elem, count);
    else if (d->block_elems > 1)
        packed_to_f64(out, t, src, first_elem, count);
    else
        plain_to_f64(out, t, (const uint8_t *)src + first_elem * heft_dtype_size(t), count);
    return true;
}
