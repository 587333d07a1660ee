/* test_simd.c - compares the kernels of each instruction set that the processor has with the
 * portable form, byte by byte. */
#include "simd/simd.h"

#include <string.h>

#include "base/blake3.h"
#include "test_memory.h"

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

static void cast_portably(uint8_t *dst, heft_dtype to, const uint8_t *src, heft_dtype from)
{
    for (size_t i = 0; i < HEFT_KERNEL_BATCH; i++) /* less than a batch: no kernel */
        assert_true(heft_dtype_cast(dst + i * heft_dtype_get(to)->block_bytes, to,
                                    src + i * heft_dtype_get(from)->block_bytes, from, 1));
}

static void check_cast(const heft_cast_kernel *k, const uint32_t codes[HEFT_KERNEL_BATCH])
{
    uint32_t from_bytes = heft_dtype_get(k->from)->block_bytes;
    uint32_t to_bytes = heft_dtype_get(k->to)->block_bytes;
    uint8_t src[1 + 4 * HEFT_KERNEL_BATCH], out[1 + 4 * HEFT_KERNEL_BATCH];
    uint8_t expected[4 * HEFT_KERNEL_BATCH];
    for (size_t i = 0; i < HEFT_KERNEL_BATCH; i++)
        memcpy(src + 1 + i * from_bytes, &codes[i], from_bytes);
    memset(expected, 0, sizeof expected);
    memset(out, 0, sizeof out); /* zeros are always converted */
    assert_int_equal(k->convert(out + 1, expected, HEFT_KERNEL_BATCH), HEFT_KERNEL_BATCH);
    assert_memory_equal(out + 1, expected, to_bytes * HEFT_KERNEL_BATCH);
    cast_portably(expected, k->to, src + 1, k->from);
    if (k->convert(out + 1, src + 1, HEFT_KERNEL_BATCH) == HEFT_KERNEL_BATCH)
        assert_memory_equal(out + 1, expected, to_bytes * HEFT_KERNEL_BATCH);
    assert_true(heft_dtype_cast(out + 1, k->to, src + 1, k->from, HEFT_KERNEL_BATCH));
    assert_memory_equal(out + 1, expected, to_bytes * HEFT_KERNEL_BATCH);
}

static void check_code(const heft_cast_kernel *k, uint32_t code)
{
    uint32_t codes[HEFT_KERNEL_BATCH] = { 0 };
    codes[code % HEFT_KERNEL_BATCH] = code;
    check_cast(k, codes);
}

/* All f16 and f8, and f32 around each tie of f16: in batches of such numbers, and alone among
 * zeros. */
static void casts_equal_the_portable_form(void **state)
{
    (void)state;
    for (const heft_simd_set *s = heft_simd_sets; s->kernels->casts; s++)
        for (const heft_cast_kernel *k = s->kernels->casts; k->convert && s->is_supported(); k++)
            for (uint32_t high = 0; high <= UINT16_MAX; high++) {
                uint32_t codes[HEFT_KERNEL_BATCH];
                if (k->from != HEFT_F32) {
                    check_code(k, high);
                    continue;
                }
                for (uint32_t i = 0; i < HEFT_KERNEL_BATCH; i++) /* ties of f16 and neighbours */
                    codes[i] = (high << 16 | i / 4 << 13 | (i & 2) << 11) + (i & 1) - (i & 2) / 2;
                check_cast(k, codes);
                check_code(k, high << 16 | (high & 1));
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chunks_equal_the_portable_form),
        cmocka_unit_test(parents_equal_the_portable_form),
        cmocka_unit_test(casts_equal_the_portable_form),
        cmocka_unit_test(the_chosen_kernels_are_supported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
