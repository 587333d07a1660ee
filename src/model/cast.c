/* cast.c - numbers of one element type as numbers of another.
 *
 * Floating-point types of up to 32 bits go through blocks of f32, which holds each of them exactly; so do
 * the pairs that matter most.  Everything else goes one by one through `number`, which holds every value of
 * every type exactly, so that each conversion rounds once.  Bytes on both sides are little-endian.
 */
#include "model/blocks.h"
#include "model/dtype.h"
#include "model/float.h"

enum { LANES = 32 }; /* elements that go through the local arrays at a time */

typedef enum specials { /* what lies above the numbers */
                        NOT_FLOAT,
                        IEEE,     /* one infinity, then NaN */
                        ONE_NAN,  /* all bits set, no infinity */
                        NEG_ZERO, /* the code of minus zero is the NaN; no infinity, no minus zero */
                        NONE,     /* numbers only */
                        POWERS    /* e8m0: an exponent and nothing else */
} specials;

typedef struct layout { /* of a floating-point type */
    uint8_t exp_bits, mant_bits;
    int16_t bias;
    specials specials;
} layout;

static const layout layouts[HEFT_DTYPES] = {
    [HEFT_F16] = { 5, 10, 15, IEEE },           [HEFT_BF16] = { 8, 7, 127, IEEE },
    [HEFT_F32] = { 8, 23, 127, IEEE },          [HEFT_F64] = { 11, 52, 1023, IEEE },
    [HEFT_F8_E4M3FN] = { 4, 3, 7, ONE_NAN },    [HEFT_F8_E5M2] = { 5, 2, 15, IEEE },
    [HEFT_F8_E4M3FNUZ] = { 4, 3, 8, NEG_ZERO }, [HEFT_F8_E5M2FNUZ] = { 5, 2, 16, NEG_ZERO },
    [HEFT_F8_E8M0] = { 8, 0, 127, POWERS },     [HEFT_F6_E2M3] = { 2, 3, 1, NONE },
    [HEFT_F6_E3M2] = { 3, 2, 3, NONE },         [HEFT_F4_E2M1] = { 2, 1, 1, NONE },
};

static const layout *layout_of(heft_dtype t)
{
    return t < HEFT_DTYPES && layouts[t].specials != NOT_FLOAT ? &layouts[t] : NULL;
}

static bool is_signed_int(heft_dtype t)
{
    return t == HEFT_I8 || t == HEFT_I16 || t == HEFT_I32 || t == HEFT_I64;
}

static bool is_complex(heft_dtype t)
{
    return t == HEFT_C64 || t == HEFT_C128;
}

static uint64_t load(const uint8_t *p, uint32_t size)
{
    uint64_t v = 0;
    for (uint32_t i = 0; i < size; i++)
        v |= (uint64_t)p[i] << 8 * i;
    return v;
}

static void store(uint8_t *p, uint64_t v, uint32_t size)
{
    for (uint32_t i = 0; i < size; i++)
        p[i] = (uint8_t)(v >> 8 * i);
}

/* ---- one by one --------------------------------------------------------------------------- */

typedef struct number {
    enum { ZERO, FINITE, INFINITE, NAN_ } kind;
    bool negative;
    int32_t exp;   /* FINITE: the value is mant * 2^(exp - 63), with the top bit of mant set */
    uint64_t mant; /* NAN_: the payload from the top bit down */
} number;

static number number_of(bool negative, int32_t exp, uint64_t mant)
{
    if (!mant)
        return (number){ .kind = ZERO, .negative = negative };
    for (uint32_t step = 32; step; step /= 2) {
        if (mant >> (64 - step))
            continue;
        mant <<= step;
        exp -= (int32_t)step;
    }
    return (number){ FINITE, negative, exp, mant };
}

static number int_number(uint64_t bits, uint32_t size, bool is_signed)
{
    bool negative = is_signed && bits >> (8 * size - 1);
    if (negative)
        bits = 0 - (bits | (size < 8 ? UINT64_MAX << 8 * size : 0));
    return number_of(negative, 63, bits);
}

static number power_number(uint64_t code, const layout *l)
{
    if (code == 0xFF)
        return (number){ .kind = NAN_, .mant = (uint64_t)1 << 63 };
    return number_of(false, (int32_t)code - l->bias, (uint64_t)1 << 63);
}

static number float_number(uint64_t code, const layout *l)
{
    if (l->specials == POWERS)
        return power_number(code, l);
    uint64_t sign = (uint64_t)1 << (l->exp_bits + l->mant_bits), abs = code & (sign - 1);
    uint64_t exp = abs >> l->mant_bits, last = ((uint64_t)1 << l->exp_bits) - 1;
    uint64_t mant = abs << (63 - l->mant_bits) << 1; /* in two steps: 64 is too far for one */
    bool negative = (code & sign) != 0;
    if (l->specials == IEEE && exp == last)
        return (number){ .kind = mant ? NAN_ : INFINITE, .negative = negative, .mant = mant };
    if (l->specials == ONE_NAN && abs == sign - 1)
        return (number){ .kind = NAN_, .negative = negative, .mant = (uint64_t)1 << 63 };
    if (l->specials == NEG_ZERO && code == sign)
        return (number){ .kind = NAN_, .mant = (uint64_t)1 << 63 };
    if (!exp)
        return number_of(negative, -l->bias, mant); /* 0.mant * 2^(1 - bias) */
    return (number){ FINITE, negative, (int32_t)exp - l->bias, (uint64_t)1 << 63 | mant >> 1 };
}

static number decode(const uint8_t *p, heft_dtype t)
{
    uint32_t size = heft_dtype_size(t);
    uint64_t bits = load(p, size);
    const layout *l = layout_of(t);
    if (l)
        return float_number(bits, l);
    if (t == HEFT_BOOL)
        return number_of(false, 63, bits != 0);
    return int_number(bits, size, is_signed_int(t));
}

/* The bits of x below the sign, before any overflow is looked at. */
static uint64_t round_to(number x, const layout *l)
{
    int32_t exp = x.exp + l->bias; /* biased; below 1 the number is subnormal */
    int32_t cut = 63 - l->mant_bits + (exp < 1 ? 1 - exp : 0);
    if (cut > 64)
        return 0; /* less than half of the smallest */
    uint64_t kept = cut < 64 ? x.mant >> cut : 0, rest = x.mant << (64 - cut);
    const uint64_t half = (uint64_t)1 << 63;
    /* A carry out of the mantissa is the next exponent, as is the hidden bit. */
    kept += rest > half || (rest == half && (kept & 1));
    return exp < 1 ? kept : kept + ((uint64_t)(exp - 1) << l->mant_bits);
}

static uint64_t nan_code(number x, const layout *l, uint64_t sign)
{
    if (l->specials == NEG_ZERO)
        return sign;
    uint64_t negative = x.negative ? sign : 0;
    if (l->specials == ONE_NAN)
        return negative | (sign - 1);
    uint64_t payload = x.mant >> (63 - l->mant_bits) >> 1;
    uint64_t above = (((uint64_t)1 << l->exp_bits) - 1) << l->mant_bits;
    return negative | above | (payload ? payload : (uint64_t)1 << (l->mant_bits - 1));
}

static uint64_t float_code(number x, const layout *l)
{
    uint64_t sign = (uint64_t)1 << (l->exp_bits + l->mant_bits);
    if (x.kind == NAN_)
        return nan_code(x, l, sign);
    /* What lies one above the largest number; infinity where there is one. */
    uint64_t above = l->specials == IEEE      ? sign - ((uint64_t)1 << l->mant_bits)
                     : l->specials == ONE_NAN ? sign - 1
                                              : sign;
    uint64_t top = l->specials == IEEE ? above : above - 1, abs = 0;
    if (x.kind == FINITE)
        abs = round_to(x, l);
    if (x.kind == INFINITE || abs > top)
        abs = top;
    bool signless_zero = l->specials == NEG_ZERO && !abs;
    return abs | (x.negative && !signless_zero ? sign : 0);
}

static uint64_t int_code(number x, uint32_t size, bool is_signed)
{
    uint64_t top = UINT64_MAX >> (64 - 8 * size + is_signed), abs = 0;
    if (x.negative)
        top = is_signed ? top + 1 : 0;
    if (x.kind == INFINITE || (x.kind == FINITE && x.exp > 63))
        abs = top;
    else if (x.kind == FINITE && x.exp >= 0)
        abs = x.mant >> (63 - x.exp);
    if (abs > top)
        abs = top;
    return x.negative ? 0 - abs : abs;
}

static void encode(uint8_t *p, heft_dtype t, number x)
{
    uint32_t size = heft_dtype_size(t);
    const layout *l = layout_of(t);
    if (l)
        store(p, float_code(x, l), size);
    else if (t == HEFT_BOOL)
        *p = x.kind != ZERO;
    else
        store(p, int_code(x, size, is_signed_int(t)), size);
}

/* ---- by the block ------------------------------------------------------------------------- */

/* Codes of a type narrower than f32 as f32. */
static void widen(uint32_t *restrict f, const uint32_t *restrict codes, const layout *restrict l)
{
    uint32_t sign = 1u << (l->exp_bits + l->mant_bits), up = 23u - l->mant_bits;
    uint32_t rebias = (uint32_t)(127 - l->bias) << 23, least = 1u << 23;
    uint32_t special = l->specials == IEEE      ? sign - (1u << l->mant_bits)
                       : l->specials == ONE_NAN ? sign - 1
                                                : sign;
    uint32_t negative_zero = l->specials == NEG_ZERO ? sign : UINT32_MAX;
    /* IEEE: the exponent of infinity; the payload stays where it is. */
    uint32_t keep = l->specials == IEEE ? least - 1 : 0;
    uint32_t above = l->specials == IEEE ? 0x7F800000 : 0x7FC00000;
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

/* f32 or narrower, with an exponent and a mantissa. */
static bool fits_f32(heft_dtype t)
{
    const layout *l = layout_of(t);
    return l && l->specials != POWERS && t != HEFT_F64;
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
        widen(f, codes, &layouts[t]);
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

static void cast_block(uint8_t *dst, heft_dtype to, const uint8_t *src, heft_dtype from, size_t n)
{
    uint32_t f[LANES] = { 0 };
    load_f32(f, from, src, n);
    if (to == HEFT_F16 || to == HEFT_BF16) {
        store_f32(dst, to, f, n);
    } else if (to == HEFT_F32) {
        order_bytes(f, sizeof *f);
        copy(dst, f, n, sizeof *f);
    } else {
        uint64_t wide[LANES] = { 0 };
        store_f64(wide, f, LANES);
        order_bytes(wide, sizeof *wide);
        copy(dst, wide, n, sizeof *wide);
    }
}

static void narrow_block(uint8_t *dst, const uint8_t *src, size_t n)
{
    uint64_t wide[LANES] = { 0 };
    uint32_t f[LANES];
    copy(wide, src, n, sizeof *wide);
    order_bytes(wide, sizeof *wide);
    for (uint32_t i = 0; i < LANES; i++)
        f[i] = heft_f64_to_f32(wide[i]);
    order_bytes(f, sizeof *f);
    copy(dst, f, n, sizeof *f);
}

static void cast_each(uint8_t *dst, heft_dtype to, const uint8_t *src, heft_dtype from, size_t n)
{
    uint32_t step = heft_dtype_size(from), stride = heft_dtype_size(to);
    for (size_t i = 0; i < n; i++)
        encode(dst + i * stride, to, decode(src + i * step, from));
}

static void cast_reals(uint8_t *dst, heft_dtype to, const uint8_t *src, heft_dtype from,
                       size_t count)
{
    uint32_t step = heft_dtype_size(from), stride = heft_dtype_size(to);
    bool by_f32 = fits_f32(from) && layout_of(to) && stride > 1;
    if (to == from) {
        memcpy(dst, src, count * step);
        return;
    }
    for (size_t done = 0; done < count; done += LANES) {
        size_t n = count - done < LANES ? count - done : LANES;
        if (by_f32)
            cast_block(dst + done * stride, to, src + done * step, from, n);
        else if (from == HEFT_F64 && to == HEFT_F32)
            narrow_block(dst + done * stride, src + done * step, n);
        else
            cast_each(dst + done * stride, to, src + done * step, from, n);
    }
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

bool heft_can_cast(heft_dtype to, heft_dtype from)
{
    if (heft_block_is_known(from))
        return to == HEFT_F16 || to == HEFT_BF16 || to == HEFT_F32 || to == HEFT_F64;
    if (!heft_dtype_size(to) || !heft_dtype_size(from))
        return false;
    if (is_complex(to) != is_complex(from))
        return false;
    /* e8m0 has no zero and no sign, and implementations differ in how they round to it. */
    return to != HEFT_F8_E8M0 || from == to;
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
    const layout *l = &layouts[t];
    uint32_t bits = 1u + l->exp_bits + l->mant_bits;
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
    bool is_signed = is_signed_int(t);
    if (fits_f32(t)) {
        load_f32(codes, t, src, n);
        store_f64(wide, codes, LANES);
    } else if (layout_of(t) || t == HEFT_BOOL) {
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
    if (d->block_elems > 1 && !layout_of(t) && !heft_block_is_known(t))
        return false;
    if (heft_block_is_known(t))
        blocks_to_f64(out, t, src, first_elem, count);
    else if (d->block_elems > 1)
        packed_to_f64(out, t, src, first_elem, count);
    else
        plain_to_f64(out, t, (const uint8_t *)src + first_elem * heft_dtype_size(t), count);
    return true;
}
