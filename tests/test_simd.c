/* test_simd.c - compares the kernels of each instruction set that the processor has with the
 * portable form, byte by byte. */
#include "simd/simd.h"

#include <string.h>

#include "base/blake3.h"
#include "base/compiler.h"
#include "model/blocks.h"
#include "model/cast_batch.h"
#include "model/dtype.h"
#include "model/float.h"
#include "model/number.h"
#include "model/packed_loops.h"
#include "model/products.h"
#include "test_memory.h"

#include "guarded.h"

enum { CHUNK = 1024, MAX_CHUNKS = 3 * 16 + 1, ALIGNMENTS = 65 };

static uint8_t input[MAX_CHUNKS * CHUNK + ALIGNMENTS];

static void fill(uint8_t *p, size_t n)
{
    uint32_t r = 1;
    for (size_t i = 0; i < n; i++) {
        r = r * 1664525 + 1013904223;
        p[i] = (uint8_t)(r >> 24);
    }
}

static void check_chunks(const heft_kernels *k, const uint8_t *p, size_t count, uint64_t number)
{
    uint32_t out[MAX_CHUNKS + 1][8], expected[8];
    memset(out, 0xA5, sizeof out);
    k->blake3_chunks(out, p, count, number);
    for (size_t i = 0; i < count; i++) {
        heft_blake3_chunk(expected, p + i * CHUNK, number + i);
        if (memcmp(expected, out[i], sizeof expected) != 0)
            fail_msg("%s: chunk %zu of %zu differs", k->name, i, count);
    }
    memset(expected, 0xA5, sizeof expected);
    assert_memory_equal(out[count], expected, sizeof expected);
}

static void chunks_equal_the_portable_form(void **state)
{
    (void)state;
    fill(input, sizeof input);
    for (const heft_simd_set *s = heft_simd_sets; s->kernels->blake3_chunks; s++) {
        if (!s->is_supported()) {
            print_message("skipped: this processor has no %s\n", s->kernels->name);
            continue;
        }
        for (size_t count = 0; count <= MAX_CHUNKS; count++)
            check_chunks(s->kernels, input, count, 7 * count);
        for (size_t at = 0; at < ALIGNMENTS; at++)
            check_chunks(s->kernels, input + at, 17, 0);
        check_chunks(s->kernels, input, MAX_CHUNKS, UINT32_MAX - 20);
        check_chunks(s->kernels, input, MAX_CHUNKS, (1ULL << 54) - MAX_CHUNKS);
    }
}

static void parents_equal_the_portable_form(void **state)
{
    (void)state;
    for (const heft_simd_set *s = heft_simd_sets; s->kernels->blake3_parents; s++)
        for (size_t count = 0; count <= MAX_CHUNKS && s->is_supported(); count++) {
            uint32_t cv[2 * MAX_CHUNKS][8], in[2 * MAX_CHUNKS][8];
            fill((uint8_t *)in, sizeof in);
            memcpy(cv, in, sizeof cv);
            s->kernels->blake3_parents(cv, count);
            for (size_t i = 0; i < count; i++) {
                heft_blake3_parent(in[2 * i], in[2 * i + 1]);
                if (memcmp(cv[i], in[2 * i + 1], sizeof cv[i]) != 0)
                    fail_msg("%s: parent %zu of %zu differs", s->kernels->name, i, count);
            }
        }
}

/* ---- casts ---- */

enum { ELEMENTS = 10 * HEFT_KERNEL_BLOCK, MOST_BYTES = 8 };

typedef struct pair {
    const heft_kernels *kernels;
    heft_dtype to, from;
} pair;

/* Cast as few elements at a time as fill whole blocks: less than a kernel takes. */
static void cast_portably(uint8_t *dst, heft_dtype to, const uint8_t *src, heft_dtype from)
{
    enum { STEP = 4 };
    uint64_t from_bytes, to_bytes;
    assert_true(heft_dtype_bytes(&from_bytes, from, STEP) && heft_dtype_bytes(&to_bytes, to, STEP));
    for (size_t i = 0; i < ELEMENTS; i += STEP, src += from_bytes, dst += to_bytes)
        assert_true(heft_dtype_cast(dst, to, src, from, STEP));
}

/* Cast to an address that is `odd` bytes off the alignment. */
static void check_cast_to(const pair *p, const uint8_t *src, bool stops_at_loss, size_t odd,
                          const uint8_t *expected)
{
    static _Alignas(8) uint8_t memory[8 + ELEMENTS * MOST_BYTES + 8];
    uint8_t *out = memory + 7 + odd;
    uint64_t bytes;
    memset(memory, 0xA5, sizeof memory);
    size_t n = p->kernels->cast(out + 1, p->to, src, p->from, ELEMENTS, stops_at_loss);
    assert_true(n <= ELEMENTS && n % HEFT_KERNEL_BLOCK == 0);
    assert_true(heft_dtype_bytes(&bytes, p->to, n));
    if (memcmp(out + 1, expected, (size_t)bytes) != 0)
        fail_msg("%s: %s to %s differs", p->kernels->name, heft_dtype_get(p->from)->name,
                 heft_dtype_get(p->to)->name);
    if (out[0] != 0xA5 || out[1 + bytes] != 0xA5)
        fail_msg("%s: %s to %s writes beyond the elements", p->kernels->name,
                 heft_dtype_get(p->from)->name, heft_dtype_get(p->to)->name);
}

static void check_cast(const pair *p, const uint8_t *src)
{
    static uint8_t expected[ELEMENTS * MOST_BYTES];
    cast_portably(expected, p->to, src, p->from);
    for (uint32_t i = 0; i < 4; i++)
        check_cast_to(p, src, i & 1, i >> 1, expected);
}

/* Write numbers of 2 to 8 bytes where rounding, subnormals, limits and NaN are: an exponent, a
 * mantissa of few bits at either end, and one more or less. */
static void fill_numbers(uint8_t *p, uint32_t size, uint32_t seed)
{
    for (size_t i = 0; i < ELEMENTS; i++, p += size) {
        uint64_t r = (i + seed * ELEMENTS) * 0x9E3779B97F4A7C15;
        uint64_t code = (r >> 20 & 3) == 3 ? r : r >> 40 << 40;
        uint32_t bits = 8 * size;
        code = code >> (64 - bits) << (r & 1 ? (r >> 8) % bits / 2 : 0);
        code = (r >> 4 & 15) == 1 ? UINT64_MAX >> (r >> 8) % bits : code;
        code += (r >> 1 & 3) - 1;
        for (uint32_t k = 0; k < size; k++)
            p[k] = (uint8_t)(code >> 8 * k);
    }
}

static void check_pair(const pair *p)
{
    static _Alignas(8) uint8_t src[1 + ELEMENTS * MOST_BYTES], zeros[ELEMENTS * MOST_BYTES];
    uint32_t size = heft_dtype_get(p->from)->block_bytes;
    for (uint32_t seed = 0; seed < 8; seed++) {
        fill_numbers(src + 1, size, seed);
        check_cast(p, src + 1);
        fill_numbers(src, size, seed);
        check_cast(p, src);
    }
    for (size_t i = 0; i < sizeof src - 1; i++) /* every byte at every index */
        src[1 + i] = (uint8_t)(i + i / 256 * 3);
    check_cast(p, src + 1);
    memset(src, 0xFF, sizeof src);
    check_cast(p, src + 1);
    check_cast(p, zeros);
}

static bool is_compared(heft_dtype t)
{
    const heft_dtype_info *d = heft_dtype_get(t);
    return d && d->kind != HEFT_DTYPE_COMPLEX && d->kind != HEFT_DTYPE_BLOCK &&
           d->block_bytes <= MOST_BYTES;
}

static void casts_equal_the_portable_form(void **state)
{
    uint32_t known = 0;
    (void)state;
    for (const heft_simd_set *s = heft_simd_sets;; s++) {
        for (uint32_t i = 0; s->is_supported() && i < 256 * 256; i++) {
            pair p = { s->kernels, (heft_dtype)(i / 256), (heft_dtype)(i % 256) };
            if (p.to == p.from || !is_compared(p.to) || !is_compared(p.from))
                continue;
            check_pair(&p);
            known++;
        }
        if (s->kernels == &heft_portable_kernels)
            break;
    }
    assert_true(known > 200);
}

/* Return how many elements a kernel casts.  `number` is an f32 at the end of the second block; the
 * other elements are zeros. */
static size_t count_cast(const pair *p, size_t n, bool stops_at_loss, uint32_t number)
{
    static uint64_t in[ELEMENTS], out[ELEMENTS];
    memset(in, 0, sizeof in);
    if (p->from == HEFT_F32)
        memcpy((uint8_t *)in + (2 * HEFT_KERNEL_BLOCK - 1) * sizeof number, &number, sizeof number);
    return p->kernels->cast((uint8_t *)out, p->to, (const uint8_t *)in, p->from, n, stops_at_loss);
}

/* Return how many of n elements a kernel has to cast: whole blocks if there are steps from type to
 * type, all if bytes are looked up in a table that pays. */
static size_t expected_count(const pair *p, size_t n, bool stops_at_loss)
{
    enum { PAYS = 2048 };
    uint32_t size = heft_dtype_size(p->from);
    bool is_halves = p->from == HEFT_F4_E2M1, is_int = !heft_dtype_is_float(p->to);
    size_t whole = n - n % HEFT_KERNEL_BLOCK;
    if (p->from == HEFT_F6_E2M3 || p->from == HEFT_F6_E3M2 || p->to == HEFT_F6_E2M3 ||
        p->to == HEFT_F6_E3M2)
        return 0;
    if (size == 1 || is_halves)
        return n < PAYS || stops_at_loss                       ? 0
               : (is_halves && n % 2) || p->to == HEFT_F4_E2M1 ? whole
                                                               : n;
    if (p->to == HEFT_BOOL)
        return 0;
    if (stops_at_loss &&
        (!heft_dtype_is_float(p->from) || p->to == HEFT_F8_E8M0 || (p->from == HEFT_F64 && is_int)))
        return 0;
    return whole;
}

static void check_counts(const pair *p)
{
    static const size_t lengths[] = { 0,    255,  256,  511,  512,  2047,
                                      2048, 2049, 2050, 2303, 2304, 2560 };
    for (size_t i = 0; i < 2 * sizeof lengths / sizeof *lengths; i++) {
        size_t n = lengths[i / 2], count = count_cast(p, n, i % 2, 0);
        if (count != expected_count(p, n, i % 2))
            fail_msg("%s: %s to %s casts %zu of %zu elements", p->kernels->name,
                     heft_dtype_get(p->from)->name, heft_dtype_get(p->to)->name, count, n);
    }
}

static bool is_lost(uint32_t number, heft_dtype to)
{
    uint64_t lost[HEFT_CAST_LOSSES] = { 0 }, out[4], any = 0;
    uint32_t in[2] = { number };
    assert_true(heft_cast_counted(out, to, in, HEFT_F32, 2, lost));
    for (size_t i = 0; i < HEFT_CAST_LOSSES; i++)
        any |= lost[i];
    return any;
}

/* The largest f32 that a cast keeps is cast with the block, the next number is left over. */
static void check_limit(const pair *p)
{
    const uint32_t infinity = 0x7F800000, sign = 1u << 31, minus_one = 0xBF800000;
    uint32_t kept = 0, lost = infinity;
    while (lost - kept > 1) {
        uint32_t middle = kept + (lost - kept) / 2;
        *(is_lost(middle, p->to) ? &lost : &kept) = middle;
    }
    bool is_signed = heft_dtype_is_float(p->to) || heft_dtype_is_signed_int(p->to);
    assert_int_equal(count_cast(p, ELEMENTS, true, kept), ELEMENTS);
    assert_int_equal(count_cast(p, ELEMENTS, true, lost), HEFT_KERNEL_BLOCK);
    assert_int_equal(count_cast(p, ELEMENTS, true, infinity | 1), HEFT_KERNEL_BLOCK);
    assert_int_equal(count_cast(p, ELEMENTS, true, is_signed ? kept | sign : kept), ELEMENTS);
    assert_int_equal(count_cast(p, ELEMENTS, true, is_signed ? lost | sign : minus_one),
                     HEFT_KERNEL_BLOCK);
}

static void whole_blocks_are_cast_up_to_a_loss(void **state)
{
    uint32_t limits = 0;
    (void)state;
    if (heft_is_big_endian())
        skip(); /* the portable form casts every element there */
    for (const heft_simd_set *s = heft_simd_sets;; s++) {
        for (uint32_t i = 0; s->is_supported() && i < 256 * 256; i++) {
            pair p = { s->kernels, (heft_dtype)(i / 256), (heft_dtype)(i % 256) };
            if (p.to == p.from || !is_compared(p.to) || !is_compared(p.from))
                continue;
            check_counts(&p);
            if (p.from == HEFT_F32 && expected_count(&p, ELEMENTS, true)) {
                check_limit(&p);
                limits++;
            }
        }
        if (s->kernels == &heft_portable_kernels)
            break;
    }
    assert_true(limits >= 16);
}

/* ---- block types ---- */

enum { BLOCKS = 9, BLOCK_TYPES = 27 };

static guarded memory;

/* The blocks end where the accessible memory ends. */
static void check_blocks_at(const heft_kernels *k, heft_dtype type, const uint8_t *blocks)
{
    enum { FLOATS = BLOCKS * HEFT_BLOCK_ELEMENTS };
    static float out[FLOATS], expected[FLOATS];
    const heft_dtype_info *d = heft_dtype_get(type);
    size_t floats = (size_t)BLOCKS * d->block_elems, bytes = (size_t)BLOCKS * d->block_bytes;
    const uint8_t *in = guarded_last(&memory, blocks, bytes);
    memset(out, 0xA5, sizeof out);
    memset(expected, 0xA5, sizeof expected);
    k->decode_blocks(out, type, in, BLOCKS);
    for (size_t i = 0; i < BLOCKS; i++) {
        float block[HEFT_BLOCK_ELEMENTS];
        heft_decode_block(block, type, in + i * d->block_bytes);
        memcpy(expected + i * d->block_elems, block, d->block_elems * sizeof *block);
    }
    if (memcmp(out, expected, sizeof out) != 0)
        fail_msg("%s: %zu elements of %s differ", k->name, floats, d->name);
}

/* Compare blocks with each byte where scales of 8 bits are, and blocks of the same bytes: those of
 * ones have the last entry of each code book. */
static void check_bytes(const heft_kernels *k, heft_dtype type)
{
    enum { SCALES = 4 };
    static uint8_t in[BLOCKS * HEFT_BLOCK_BYTES];
    uint32_t bytes = heft_dtype_get(type)->block_bytes;
    for (uint32_t first = 0; first < 256; first += BLOCKS) {
        for (uint32_t at = 0; at < SCALES; at++) {
            memcpy(in, input + 1, (size_t)BLOCKS * bytes);
            for (uint32_t i = 0; i < BLOCKS; i++)
                in[at + i * bytes] = (uint8_t)(first + i);
            check_blocks_at(k, type, in);
        }
        for (uint32_t i = 0; i < BLOCKS; i++)
            memset(in + (size_t)i * bytes, (int)(first + i), bytes);
        check_blocks_at(k, type, in);
    }
}

/* Compare blocks of any bytes, and blocks with NaN or infinity as scale or minimum. */
static void check_blocks(const heft_kernels *k, heft_dtype type)
{
    static const uint16_t halves[] = { 0x7E01, 0xFE01, 0x7C01, 0x7C00, 0xFC00, 0x7BFF, 0x8000 };
    static uint8_t in[BLOCKS * HEFT_BLOCK_ELEMENTS * sizeof(float)];
    uint32_t bytes = heft_dtype_get(type)->block_bytes;
    check_blocks_at(k, type, input + 1);
    for (uint32_t at = 0; at + 1 < bytes; at++)
        for (size_t i = 0; i < sizeof halves / sizeof *halves; i++) {
            memcpy(in, input + 1, (size_t)BLOCKS * bytes);
            in[at + bytes] = (uint8_t)halves[i];
            in[at + bytes + 1] = (uint8_t)(halves[i] >> 8);
            check_blocks_at(k, type, in);
        }
}

static void blocks_equal_the_portable_form(void **state)
{
    uint32_t known = 0, sets = 0;
    (void)state;
    fill(input, sizeof input);
    memory = guarded_make();
    for (const heft_simd_set *s = heft_simd_sets;; s++) {
        sets += s->is_supported();
        for (uint32_t t = 0; s->is_supported() && t < 256; t++)
            if (heft_block_is_known((heft_dtype)t)) {
                check_blocks(s->kernels, (heft_dtype)t);
                check_bytes(s->kernels, (heft_dtype)t);
                known++;
            }
        if (s->kernels == &heft_portable_kernels)
            break;
    }
    guarded_free(&memory);
    assert_int_equal(known, BLOCK_TYPES * sets);
}

/* ---- packed numbers ---- */

enum { PACKED = 70 };

/* Return number i of a list in which each word has eight numbers of 4 bits. */
static uint32_t half_at(const uint8_t *p, size_t i)
{
    return p[i / 2] >> 4 * (i % 2) & 15U;
}

static void check_unpacking(const heft_packed_loops *k, const uint8_t *p, size_t n)
{
    static const float e2m1[16] = { 0,    0.5F,  1,   1.5F,  2,   3,   4,   6,
                                    -0.F, -0.5F, -1., -1.5F, -2., -3., -4., -6. };
    float got[2][2 * PACKED + 1], want[2][2 * PACKED + 1];
    memset(got, 0xA5, sizeof got);
    memset(want, 0xA5, sizeof want);
    k->halves(got[0], p, 2 * n);
    k->e2m1(got[1], p, 2 * n);
    for (size_t i = 0; i < 2 * n; i++) {
        want[0][i] = (float)half_at(p, i);
        want[1][i] = e2m1[half_at(p, i)];
    }
    assert_memory_equal(got, want, sizeof got);
}

/* Number i of row k, which has n words, is number k of the words of row i. */
static void check_turning(const heft_packed_loops *k, const uint8_t *p, size_t n)
{
    static const uint8_t awq[8] = { 0, 4, 1, 5, 2, 6, 3, 7 };
    uint32_t got[8 * PACKED + 1], want[8 * PACKED + 1];
    size_t stride = 4 * PACKED + n;
    memset(got, 0xA5, sizeof got);
    memset(want, 0xA5, sizeof want);
    k->awq(got, p, stride, n);
    for (size_t i = 0; i < 8 * n; i++) {
        want[i] = 0;
        for (size_t row = 0; row < 8; row++)
            want[i] |= half_at(p + row * stride, i % n * 8 + awq[i / n]) << 4 * row;
    }
    assert_memory_equal(got, want, sizeof got);
}

/* Look up groups of `width` codes. */
static void check_look_up(const heft_packed_loops *k, const uint8_t *p, size_t width)
{
    enum { GROUPS = 5, TABLES = 256 };
    static heft_code_table tables[TABLES];
    uint8_t got[GROUPS * PACKED * 4 + 1], want[GROUPS * PACKED * 4 + 1];
    const uint8_t *which = p + GROUPS * PACKED;
    memset(got, 0xA5, sizeof got);
    memset(want, 0xA5, sizeof want);
    memcpy(tables, input, sizeof tables);
    k->look_up(got, p, tables, which, width, GROUPS);
    for (size_t i = 0; i < GROUPS * width; i++) {
        uint16_t number = tables[which[i / width]].number[half_at(p, i)];
        want[2 * i] = (uint8_t)number;
        want[2 * i + 1] = (uint8_t)(number >> 8);
    }
    assert_memory_equal(got, want, sizeof got);
}

static void check_numbers(const heft_packed_loops *k, const uint8_t *p, size_t n)
{
    heft_byte_numbers numbers;
    uint32_t got[PACKED + 1], want[PACKED + 1], bits[256];
    memset(got, 0xA5, sizeof got);
    memset(want, 0xA5, sizeof want);
    for (uint32_t i = 0; i < 256; i++) {
        numbers.third[i] = input[i];
        numbers.top[i] = input[256 + i];
        bits[i] = (uint32_t)input[i] << 16 | (uint32_t)input[256 + i] << 24;
    }
    memcpy(numbers.number, bits, sizeof bits);
    k->bytes((float *)(void *)got, p, n, &numbers);
    for (size_t i = 0; i < n; i++)
        want[i] = bits[p[i]];
    assert_memory_equal(got, want, sizeof got);
}

/* Bits at random, among them infinities, ties, and a NaN in the middle. */
static void check_rounding(const heft_packed_loops *k, const uint8_t *p, size_t n)
{
    static const uint32_t special[] = { 0x7F800000, 0xFF800000, 0x7F7FFFFF, 0x3F808000, 0x3F818000,
                                        0x00000001, 0x80008000, 0x7F800001, 0xFFC12345 };
    enum { SPECIAL = sizeof special / sizeof *special };
    uint32_t bits[PACKED];
    uint8_t got[2 * PACKED + 1], want[2 * PACKED + 1];
    memset(got, 0xA5, sizeof got);
    memset(want, 0xA5, sizeof want);
    for (size_t i = 0; i < PACKED; i++) {
        bits[i] = heft_le32(p + 4 * i) & 0xBFFFFFFF; /* no NaN */
        bits[i] = i % 7 == 3 && i < n / 2 * 2 - n % 5 ? special[(i + n) % SPECIAL] : bits[i];
    }
    k->bf16(got, (const float *)(const void *)bits, n);
    for (size_t i = 0; i < n; i++) {
        uint16_t rounded = heft_f32_to_bf16(bits[i]);
        want[2 * i] = (uint8_t)rounded;
        want[2 * i + 1] = (uint8_t)(rounded >> 8);
    }
    assert_memory_equal(got, want, sizeof got);
}

static void check_scaling(const heft_packed_loops *k, const float *x, size_t n)
{
    float got[PACKED + 1], want[PACKED + 1];
    memcpy(got, x, sizeof got);
    memcpy(want, got, sizeof want);
    k->group(got, x[3], x[4], n);
    for (size_t i = 0; i < n; i++)
        want[i] = (x[i] - x[3]) * x[4];
    assert_memory_equal(got, want, sizeof got);
}

static void check_packed(const heft_packed_loops *k, const float *x, size_t n)
{
    check_unpacking(k, input + n, n);
    check_turning(k, input + n, n);
    check_look_up(k, input + n, 2 * n);
    check_numbers(k, input + n, n);
    check_rounding(k, input + n, n);
    check_scaling(k, x, n);
}

static void packed_numbers_are_those_of_the_definition(void **state)
{
    float x[PACKED + 1];
    (void)state;
    fill(input, sizeof input);
    for (size_t i = 0; i < sizeof x / sizeof *x; i++)
        x[i] = ((float)input[i] - 100) / 7;
    for (const heft_simd_set *s = heft_simd_sets;; s++) {
        for (size_t n = 0; s->is_supported() && n < PACKED; n++) {
            check_packed(s->kernels->packed, x, n);
            check_packed(&heft_portable_packed, x, n);
        }
        if (s->kernels == &heft_portable_kernels)
            break;
    }
}

static void the_chosen_kernels_are_supported(void **state)
{
    (void)state;
    const heft_simd_set *s = heft_simd_sets;
    while (s->kernels != heft_kernels_now())
        s++;
    assert_true(s->is_supported());
}

/* ---- products ---- */

enum { MOST_ROWS = 11, MOST_COLUMNS = 75, MOST_RANK = 19, GAP = 3 };

static void fill_floats(float *x, size_t n, uint32_t seed)
{
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525 + 1013904223;
        x[i] = (float)(int32_t)seed * 0x1p-29F;
    }
}

static void check_products(const heft_kernels *k, size_t rows, size_t columns, size_t rank)
{
    enum { STRIDE = MOST_COLUMNS + GAP };
    static float got[MOST_ROWS * STRIDE], expected[MOST_ROWS * STRIDE];
    static float left[MOST_ROWS * MOST_RANK], right[MOST_RANK * STRIDE];
    fill_floats(got, MOST_ROWS * STRIDE, (uint32_t)(rows * 100 + columns));
    fill_floats(left, MOST_ROWS * MOST_RANK, 3);
    fill_floats(right, MOST_RANK * STRIDE, 5);
    memcpy(expected, got, sizeof got);
    heft_products p = { got, STRIDE, rows, columns, left, rank, right, STRIDE, 0.3F };
    k->products(&p);
    p.out = expected;
    heft_products_portable(&p);
    if (memcmp(got, expected, sizeof got) != 0)
        fail_msg("%s: %zu x %zu of rank %zu differs", k->name, rows, columns, rank);
}

static void products_equal_the_portable_form(void **state)
{
    (void)state;
    for (const heft_simd_set *s = heft_simd_sets;; s++) {
        for (size_t rows = 0; rows <= MOST_ROWS && s->is_supported(); rows++)
            for (size_t columns = 0; columns <= MOST_COLUMNS; columns++)
                for (size_t rank = 0; rank <= MOST_RANK; rank += 1 + rank / 4)
                    check_products(s->kernels, rows, columns, rank);
        if (s->kernels == &heft_portable_kernels)
            break;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chunks_equal_the_portable_form),
        cmocka_unit_test(parents_equal_the_portable_form),
        cmocka_unit_test(casts_equal_the_portable_form),
        cmocka_unit_test(whole_blocks_are_cast_up_to_a_loss),
        cmocka_unit_test(blocks_equal_the_portable_form),
        cmocka_unit_test(packed_numbers_are_those_of_the_definition),
        cmocka_unit_test(products_equal_the_portable_form),
        cmocka_unit_test(the_chosen_kernels_are_supported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
