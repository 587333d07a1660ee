/* cast.c - converts elements of one type to another.
 *
 * Floating-point types of up to 32 bits are converted in batches through f32, which represents all
 * of their values exactly.  The most frequent pairs have functions of their own, and some have a
 * kernel for the processor (base/kernels.h).  All other pairs are converted one by one through
 * heft_number, which represents every value of every type exactly.  So each conversion rounds once.
 * Source and target bytes are little-endian.
 */
#include "base/kernels.h"
#include "model/blocks.h"
#include "model/cast_batch.h"
#include "model/dtype.h"
#include "model/float.h"
#include "model/number.h"

/* Cast n <= HEFT_CAST_BATCH elements through f32; lost NULL: do not count losses. */
static void cast_batch(uint8_t *dst, heft_dtype to, const uint8_t *src, heft_dtype from, size_t n,
                       uint64_t *lost)
{
    uint32_t f[HEFT_CAST_BATCH] = { 0 };
    if (heft_dtype_size(from))
        heft_cast_batch_load(f, from, src, n);
    else
        heft_cast_batch_load_packed(f, from, src, 0, n);
    if (lost)
        heft_cast_batch_count(lost, to, f, !heft_float_layout_of(from));
    heft_cast_batch_store(dst, to, f, n);
}

/* Cast n <= HEFT_CAST_BATCH elements of a plain type one by one through heft_number. */
static void cast_each(uint8_t *dst, heft_dtype to, const uint8_t *src, heft_dtype from, size_t n,
                      uint64_t *lost)
{
    uint32_t step = heft_dtype_size(from), stride = heft_dtype_size(to),
             codes[HEFT_CAST_BATCH] = { 0 };
    bool is_int = !heft_float_layout_of(from);
    for (size_t i = 0; i < n && lost; i++) {
        heft_cast_loss kind = heft_number_loss(heft_number_read(src + i * step, from), is_int, to);
        if (kind != HEFT_LOST_NOTHING)
            lost[kind]++;
    }
    for (size_t i = 0; i < n && stride; i++)
        heft_number_write(dst + i * stride, to, heft_number_read(src + i * step, from));
    for (size_t i = 0; i < n && !stride; i++)
        codes[i] = (uint32_t)heft_number_code(heft_number_read(src + i * step, from),
                                              heft_float_layout_of(to));
    if (!stride)
        heft_cast_batch_store_packed(dst, codes, n, to);
}

/* Cast n <= HEFT_CAST_BATCH elements of a packed type to a type that cast_batch() does not
 * support. */
static void cast_packed(uint8_t *dst, heft_dtype to, const uint8_t *src, heft_dtype from, size_t n,
                        uint64_t *lost)
{
    uint8_t f[HEFT_CAST_BATCH * sizeof(float)];
    cast_batch(f, HEFT_F32, src, from, n, NULL);
    cast_each(dst, to, f, HEFT_F32, n, lost);
}

/* ---- fast paths of the most frequent pairs, for HEFT_CAST_BATCH elements ----------------------
 *
 * Each returns true if an element may be lost; only then the caller has to count losses. */

static uint32_t f32_at(const uint8_t *src, uint32_t i)
{
    uint32_t f;
    memcpy(&f, src + i * sizeof f, sizeof f);
    return f;
}

/* Return a word whose top bit is set if the magnitude of an f32 is at least `least`, a positive
 * f32, or if the f32 is NaN.  Results of several elements are combined with |. */
static uint32_t at_least_flag(uint32_t f, uint32_t least)
{
    return (f & 0x7FFFFFFF) + (0x80000000 - least);
}

/* Look for elements that need more than rounding in a loop of its own: two simple loops take less
 * time than one loop that decides for each element. */
static bool f32_to_bf16(uint8_t *restrict dst, const uint8_t *restrict src)
{
    enum { LEAST_INFINITE = 0x7F7F8000 }; /* the least f32 that rounds to infinity */
    uint32_t specials = 0;
    for (uint32_t i = 0; i < HEFT_CAST_BATCH; i++)
        specials |= at_least_flag(f32_at(src, i), LEAST_INFINITE);
    for (uint32_t i = 0; i < HEFT_CAST_BATCH; i++) {
        uint16_t code = heft_f32_round_to_bf16(f32_at(src, i));
        memcpy(dst + i * sizeof code, &code, sizeof code);
    }
    for (uint32_t i = 0; specials >> 31 && i < HEFT_CAST_BATCH; i++) {
        uint16_t code = heft_f32_to_bf16(f32_at(src, i));
        memcpy(dst + i * sizeof code, &code, sizeof code);
    }
    return specials >> 31;
}

static bool f32_to_f16(uint8_t *restrict dst, const uint8_t *restrict src)
{
    enum { LEAST_INFINITE = 0x477FF000 };
    uint32_t specials = 0;
    for (uint32_t i = 0; i < HEFT_CAST_BATCH; i++) {
        uint32_t f = f32_at(src, i);
        uint16_t code = heft_f32_to_f16(f);
        specials |= at_least_flag(f, LEAST_INFINITE);
        memcpy(dst + i * sizeof code, &code, sizeof code);
    }
    return specials >> 31;
}

static bool bf16_to_f32(uint8_t *restrict dst, const uint8_t *restrict src)
{
    for (uint32_t i = 0; i < HEFT_CAST_BATCH; i++) {
        uint16_t code;
        memcpy(&code, src + i * sizeof code, sizeof code);
        uint32_t f = (uint32_t)code << 16;
        memcpy(dst + i * sizeof f, &f, sizeof f);
    }
    return false;
}

static bool f16_to_f32(uint8_t *restrict dst, const uint8_t *restrict src)
{
    for (uint32_t i = 0; i < HEFT_CAST_BATCH; i++) {
        uint16_t code;
        memcpy(&code, src + i * sizeof code, sizeof code);
        uint32_t f = heft_f16_to_f32(code);
        memcpy(dst + i * sizeof f, &f, sizeof f);
    }
    return false;
}

static bool f64_to_f32(uint8_t *restrict dst, const uint8_t *restrict src)
{
    enum { INFINITE = 0x7F800000 };
    uint32_t specials = 0;
    for (uint32_t i = 0; i < HEFT_CAST_BATCH; i++) {
        uint64_t d;
        memcpy(&d, src + i * sizeof d, sizeof d);
        uint32_t f = heft_f64_to_f32(d);
        memcpy(dst + i * sizeof f, &f, sizeof f);
    }
    for (uint32_t i = 0; i < HEFT_CAST_BATCH; i++)
        specials |= at_least_flag(f32_at(dst, i), INFINITE);
    return specials >> 31;
}

typedef bool (*fast_cast)(uint8_t *restrict dst, const uint8_t *restrict src);

static const struct {
    heft_dtype to, from;
    fast_cast cast;
} pairs[] = {
    { HEFT_BF16, HEFT_F32, f32_to_bf16 }, { HEFT_F16, HEFT_F32, f32_to_f16 },
    { HEFT_F32, HEFT_BF16, bf16_to_f32 }, { HEFT_F32, HEFT_F16, f16_to_f32 },
    { HEFT_F32, HEFT_F64, f64_to_f32 },
};

static fast_cast fast_cast_of(heft_dtype to, heft_dtype from)
{
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (pairs[i].to == to && pairs[i].from == from && !heft_is_big_endian())
            return pairs[i].cast;
    return NULL;
}

/* ---- any pair ----------------------------------------------------------------------------- */

typedef void (*cast_function)(uint8_t *dst, heft_dtype to, const uint8_t *src, heft_dtype from,
                              size_t n, uint64_t *lost);

static cast_function choose_cast(heft_dtype to, heft_dtype from)
{
    bool to_ints = heft_dtype_size(to) <= 4 && !heft_float_layout_of(to) && to != HEFT_BOOL;
    if (heft_cast_batch_fits_f32(from) &&
        (heft_float_layout_of(to) || (to_ints && heft_dtype_size(to))) && to != HEFT_F8_E8M0)
        return cast_batch;
    if (heft_cast_batch_is_small_int(from) && heft_float_layout_of(to) && to != HEFT_F8_E8M0)
        return cast_batch;
    return heft_dtype_size(from) ? cast_each : cast_packed;
}

static size_t cast_by_kernel(uint8_t *dst, heft_dtype to, const uint8_t *src, heft_dtype from,
                             size_t count, bool stops_at_loss)
{
    const heft_kernels *k = count >= HEFT_KERNEL_BLOCK ? heft_kernels_now() : NULL;
    return k && k->cast ? k->cast(dst, to, src, from, count, stops_at_loss) : 0;
}

static uint64_t bytes_of(heft_dtype t, size_t count)
{
    uint64_t bytes;
    return heft_dtype_bytes(&bytes, t, count) ? bytes : 0;
}

static void cast_reals(uint8_t *dst, heft_dtype to, const uint8_t *src, heft_dtype from,
                       size_t count, uint64_t *lost)
{
    cast_function cast = choose_cast(to, from);
    fast_cast fast = fast_cast_of(to, from);
    /* HEFT_CAST_BATCH is a multiple of every packed block: pointers advance by whole blocks. */
    size_t step = (size_t)bytes_of(from, HEFT_CAST_BATCH),
           stride = (size_t)bytes_of(to, HEFT_CAST_BATCH);
    if (to == from && heft_dtype_size(to)) {
        memcpy(dst, src, count * heft_dtype_size(to));
        return;
    }
    for (size_t done = 0; count; done += HEFT_CAST_BATCH) {
        if (done % HEFT_KERNEL_BLOCK == 0) {
            size_t n = cast_by_kernel(dst, to, src, from, count, lost != NULL);
            dst += n / HEFT_CAST_BATCH * stride;
            src += n / HEFT_CAST_BATCH * step;
            count -= n;
        }
        size_t n = count < HEFT_CAST_BATCH ? count : HEFT_CAST_BATCH;
        bool is_fast = fast && n == HEFT_CAST_BATCH;
        if (n && (!is_fast || (fast(dst, src) && lost)))
            cast(dst, to, src, from, n, lost);
        if (n == count)
            return;
        dst += stride;
        src += step;
        count -= n;
    }
}

/* ---- block types ---- */

static void decode_blocks(float *out, heft_dtype from, const uint8_t *src, size_t count)
{
    const heft_dtype_info *d = heft_dtype_get(from);
    const heft_kernels *k = heft_kernels_now();
    if (k->decode_blocks) {
        k->decode_blocks(out, from, src, count);
        return;
    }
    for (; count; count--, out += d->block_elems, src += d->block_bytes)
        heft_decode_block(out, from, src);
}

/* Cast `count` elements from the beginning of a block on; the last block may be used in part. */
static void cast_blocks(uint8_t *dst, heft_dtype to, const uint8_t *src, heft_dtype from,
                        size_t count, uint64_t *lost)
{
    const heft_dtype_info *d = heft_dtype_get(from);
    float f[HEFT_BLOCK_ELEMENTS];
    bool fits = to == HEFT_F32 && !heft_is_big_endian() && (uintptr_t)dst % sizeof *f == 0;
    while (count) {
        size_t most = fits ? count - count % HEFT_BLOCK_ELEMENTS : HEFT_BLOCK_ELEMENTS;
        size_t n = count < HEFT_BLOCK_ELEMENTS ? count : most;
        size_t blocks = (n + d->block_elems - 1) / d->block_elems, elems = blocks * d->block_elems;
        bool is_direct = fits && n == elems;
        decode_blocks(is_direct ? (float *)(void *)dst : f, from, src, blocks);
        for (size_t i = 0; !is_direct && i < elems; i += HEFT_CAST_BATCH)
            heft_cast_batch_byteswap(f + i, sizeof *f);
        if (!is_direct)
            cast_reals(dst, to, (const uint8_t *)f, HEFT_F32, n, lost);
        src += blocks * d->block_bytes;
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
        heft_decode_block(f, t, src);
        for (size_t i = 0; i < n; i++)
            *out++ = heft_f64_of(heft_f32_to_f64(heft_f32_bits(f[skip + i])));
        count -= n;
    }
}

/* ---- public functions --------------------------------------------------------------------- */

/* Return true for plain and packed types: all except block types and HEFT_UNTYPED. */
static bool has_numbers(heft_dtype t)
{
    return heft_dtype_size(t) || heft_float_layout_of(t);
}

bool heft_dtype_can_cast(heft_dtype to, heft_dtype from)
{
    if (heft_block_is_known(from))
        return heft_dtype_is_float(to) && heft_dtype_size(to) >= sizeof(uint16_t);
    return has_numbers(to) && has_numbers(from) &&
           heft_dtype_is_complex(to) == heft_dtype_is_complex(from);
}

bool heft_cast_is_lossy(heft_dtype to, heft_dtype from)
{
    if (heft_block_is_known(from))
        return heft_real_cast_is_lossy(to, HEFT_F32);
    return heft_real_cast_is_lossy(heft_dtype_real(to), heft_dtype_real(from));
}

bool heft_cast_counted(void *dst, heft_dtype to, const void *src, heft_dtype from, size_t count,
                       uint64_t *lost)
{
    if (!heft_dtype_can_cast(to, from))
        return false;
    if (lost && !heft_cast_is_lossy(to, from))
        lost = NULL;
    if (heft_block_is_known(from))
        cast_blocks(dst, to, src, from, count, lost);
    else
        cast_reals(dst, heft_dtype_real(to), src, heft_dtype_real(from),
                   heft_dtype_is_complex(to) ? count * 2 : count, lost);
    return true;
}

bool heft_dtype_cast(void *dst, heft_dtype to, const void *src, heft_dtype from, size_t count)
{
    return heft_cast_counted(dst, to, src, from, count, NULL);
}

static void packed_to_f64(double *out, heft_dtype t, const uint8_t *src, uint64_t first,
                          size_t count)
{
    const heft_dtype_info *d = heft_dtype_get(t);
    uint32_t skip = (uint32_t)first & (d->block_elems - 1u);
    src += heft_dtype_blocks(t, first) * d->block_bytes;
    /* HEFT_CAST_BATCH is a multiple of every packed block: src advances by whole blocks. */
    for (size_t done = 0; done < count; done += HEFT_CAST_BATCH) {
        size_t n = count - done < HEFT_CAST_BATCH ? count - done : HEFT_CAST_BATCH;
        uint32_t f[HEFT_CAST_BATCH];
        heft_cast_batch_load_packed(f, t, src, skip, n);
        heft_cast_batch_f64(out + done, f, n);
        src += bytes_of(t, HEFT_CAST_BATCH);
    }
}

static void ints_to_f64(uint64_t *wide, const uint32_t *codes, uint32_t bits, bool is_signed)
{
    uint32_t up = 32 - bits;
    for (uint32_t i = 0; i < HEFT_CAST_BATCH; i++) {
        uint32_t top = codes[i] << up;
        int32_t low = is_signed ? (int32_t)top >> up : (int32_t)(codes[i] ^ 1u << 31);
        wide[i] = heft_f64_bits((double)low + (is_signed ? 0.0 : 2147483648.0));
    }
}

/* Convert 64-bit integers in place, in two halves: the sum rounds once, and 32-bit targets need no
 * helper function. */
static void ints64_to_f64(uint64_t *wide, bool is_signed)
{
    for (uint32_t i = 0; i < HEFT_CAST_BATCH; i++) {
        uint32_t high = (uint32_t)(wide[i] >> 32), low = (uint32_t)wide[i];
        double above = is_signed ? (double)(int32_t)high : (double)high;
        wide[i] = heft_f64_bits(above * 4294967296.0 + (double)low);
    }
}

static void plain_batch_to_f64(uint64_t *wide, heft_dtype t, const uint8_t *src, size_t n)
{
    uint32_t codes[HEFT_CAST_BATCH] = { 0 }, size = heft_dtype_size(t);
    bool is_signed = heft_dtype_is_signed_int(t);
    if (heft_cast_batch_fits_f32(t)) {
        heft_cast_batch_load(codes, t, src, n);
        heft_cast_batch_f64(wide, codes, HEFT_CAST_BATCH);
    } else if (heft_float_layout_of(t) || t == HEFT_BOOL) {
        cast_reals((uint8_t *)wide, HEFT_F64, src, t, n, NULL);
        heft_cast_batch_byteswap(wide, sizeof *wide);
    } else if (size == 8) {
        heft_cast_batch_copy(wide, src, n, sizeof *wide);
        heft_cast_batch_byteswap(wide, sizeof *wide);
        ints64_to_f64(wide, is_signed);
    } else {
        heft_cast_batch_codes(codes, size, src, n);
        ints_to_f64(wide, codes, 8 * size, is_signed);
    }
}

static void plain_to_f64(double *out, heft_dtype t, const uint8_t *src, size_t count)
{
    uint32_t step = heft_dtype_size(t);
    for (size_t done = 0; done < count; done += HEFT_CAST_BATCH, src += HEFT_CAST_BATCH * step) {
        size_t n = count - done < HEFT_CAST_BATCH ? count - done : HEFT_CAST_BATCH;
        uint64_t wide[HEFT_CAST_BATCH] = { 0 };
        plain_batch_to_f64(wide, t, src, n);
        heft_cast_batch_copy(out + done, wide, n, sizeof *out);
    }
}

bool heft_dtype_to_f64(double *out, heft_dtype t, const void *src, uint64_t first_elem,
                       size_t count)
{
    const heft_dtype_info *d = heft_dtype_get(t);
    if (!d)
        return false;
    t = heft_dtype_real(t);
    if (heft_block_is_known(t))
        blocks_to_f64(out, t, src, first_elem, count);
    else if (d->block_elems > 1)
        packed_to_f64(out, t, src, first_elem, count);
    else
        plain_to_f64(out, t, (const uint8_t *)src + first_elem * heft_dtype_size(t), count);
    return true;
}
