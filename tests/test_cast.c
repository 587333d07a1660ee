/* test_cast.c - tests of element types and casts, against vectors of
 * tests/py/gen_cast_vectors.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/number.h"
#include "test_bytes.h"

enum { DOUBLES = 0xFFFF, GUARD = 0xA5, MAX_COUNT = 70000 };

typedef struct record {
    uint16_t from, to;
    uint32_t count, lost[HEFT_CAST_LOSSES];
    uint8_t *given, *expected;
    uint64_t given_bytes, expected_bytes;
} record;

typedef struct vectors {
    record *at;
    size_t count;
} vectors;

static uint64_t bytes_of(uint16_t type, uint32_t count)
{
    uint64_t bytes;
    if (type == DOUBLES)
        return count * sizeof(double);
    assert_true(heft_dtype_bytes(&bytes, type, count));
    return bytes;
}

static uint8_t *read_bytes(FILE *f, uint64_t n)
{
    uint8_t *p = malloc(n ? (size_t)n : 1);
    assert_non_null(p);
    assert_int_equal(fread(p, 1, (size_t)n, f), n);
    return p;
}

/* Read values of a type from the little-endian file. Doubles are converted to the order of the
 * processor; elements of models are little-endian on every processor. */
static uint8_t *read_values(FILE *f, uint16_t type, uint64_t bytes)
{
    uint8_t *p = read_bytes(f, bytes);
    if (type == DOUBLES)
        heft_test_le(p, (size_t)bytes / sizeof(double), sizeof(double));
    return p;
}

static int read_vectors(void **state)
{
    const char *python = getenv("HEFT_PYTHON");
    char command[512];
    snprintf(command, sizeof command, "%s tests/py/gen_cast_vectors.py",
             python ? python : "python3");
    FILE *f = popen(command, "r");
    assert_non_null(f);
    vectors *v = calloc(1, sizeof *v);
    record r;
    uint16_t types[2];
    while (fread(types, sizeof types, 1, f) == 1) {
        heft_test_le(types, 2, sizeof types[0]);
        r.from = types[0];
        r.to = types[1];
        assert_int_equal(fread(&r.count, sizeof r.count, 1, f), 1);
        heft_test_le(&r.count, 1, sizeof r.count);
        assert_in_range(r.count, 1, MAX_COUNT);
        assert_int_equal(fread(r.lost, sizeof r.lost, 1, f), 1);
        heft_test_le(r.lost, HEFT_CAST_LOSSES, sizeof r.lost[0]);
        r.given_bytes = bytes_of(r.from, r.count);
        r.expected_bytes =
            bytes_of(r.to, r.to == DOUBLES && heft_dtype_get(r.from)->dlpack_code == 5 ? 2 * r.count
                                                                                       : r.count);
        r.given = read_values(f, r.from, r.given_bytes);
        r.expected = read_values(f, r.to, r.expected_bytes);
        v->at = realloc(v->at, (v->count + 1) * sizeof r);
        v->at[v->count++] = r;
    }
    *state = v;
    return pclose(f);
}

static int free_vectors(void **state)
{
    vectors *v = *state;
    for (size_t i = 0; i < v->count; i++) {
        free(v->at[i].given);
        free(v->at[i].expected);
    }
    free(v->at);
    free(v);
    return 0;
}

static void print_bytes(const char *label, const uint8_t *p, size_t n)
{
    print_error(" %s ", label);
    while (n)
        print_error("%02x", p[--n]);
}

/* Return the bits of an element of a packed type, 0 for other types. */
static uint32_t packed_bits(uint16_t type)
{
    if (type == HEFT_F4_E2M1)
        return 4;
    return type == HEFT_F6_E2M3 || type == HEFT_F6_E3M2 ? 6 : 0;
}

static uint32_t code_at(const uint8_t *p, uint32_t bits, uint32_t i)
{
    uint32_t at = i * bits, code = 0;
    for (uint32_t k = 0; k < bits; k++)
        code |= (uint32_t)(p[(at + k) / 8] >> (at + k) % 8 & 1) << k;
    return code;
}

/* Compare packed elements; the rest of the last block must be zero. */
static void assert_same_packed(const record *r, const uint8_t *got, uint32_t first, uint32_t count)
{
    uint32_t bits = packed_bits(r->to), slots = (uint32_t)(bytes_of(r->to, count) * 8 / bits);
    for (uint32_t i = 0; i < slots; i++) {
        uint32_t expected = i < count ? code_at(r->expected, bits, first + i) : 0;
        if (code_at(got, bits, i) != expected)
            fail_msg("%s to %s, element %u: expected %x, got %x", heft_dtype_name(r->from),
                     heft_dtype_name(r->to), (unsigned)(first + i), (unsigned)expected,
                     (unsigned)code_at(got, bits, i));
    }
}

static void assert_same(const record *r, const uint8_t *got, uint32_t first, uint32_t count)
{
    size_t size = (size_t)(r->expected_bytes / r->count),
           step = (size_t)(r->given_bytes / r->count);
    const uint8_t *expected = r->expected + first * size;
    if (packed_bits(r->to)) {
        assert_same_packed(r, got, first, count);
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!memcmp(got + i * size, expected + i * size, size))
            continue;
        print_error("%s to %s, element %u:", heft_dtype_name(r->from),
                    r->to == DOUBLES ? "double" : heft_dtype_name(r->to), (unsigned)(first + i));
        if (heft_dtype_size(r->from))
            print_bytes("of", r->given + (first + i) * step, step);
        print_bytes("expected", expected + i * size, size);
        print_bytes("got", got + i * size, size);
        print_error("\n");
        fail();
    }
}

static void every_conversion_gives_the_nearest_number(void **state)
{
    const vectors *v = *state;
    uint8_t *out = malloc(MAX_COUNT * 16 + 2);
    assert_true(v->count > 300);
    for (size_t i = 0; i < v->count; i++) {
        const record *r = &v->at[i];
        if (r->to == DOUBLES)
            continue;
        memset(out, GUARD, (size_t)r->expected_bytes + 2);
        assert_true(heft_dtype_cast(out + 1, r->to, r->given, r->from, r->count)); /* unaligned */
        assert_same(r, out + 1, 0, r->count);
        assert_int_equal(out[0], GUARD);
        assert_int_equal(out[r->expected_bytes + 1], GUARD);
    }
    free(out);
}

static void lost_values_are_counted(void **state)
{
    const vectors *v = *state;
    uint8_t *out = malloc(MAX_COUNT * 16);
    for (size_t i = 0; i < v->count; i++) {
        const record *r = &v->at[i];
        uint64_t lost[HEFT_CAST_LOSSES] = { 0 }, total = 0;
        if (r->to == DOUBLES)
            continue;
        assert_true(heft_cast_counted(out, r->to, r->given, r->from, r->count, lost));
        assert_same(r, out, 0, r->count);
        for (int k = 0; k < HEFT_CAST_LOSSES; k++) {
            total |= lost[k];
            if (lost[k] != r->lost[k])
                fail_msg("%s to %s, kind %d: %u are lost, %llu were counted",
                         heft_dtype_name(r->from), heft_dtype_name(r->to), k, (unsigned)r->lost[k],
                         (unsigned long long)lost[k]);
        }
        assert_true(!total || heft_cast_is_lossy(r->to, r->from));
    }
    free(out);
}

static void casts_to_bool_lose_nothing(void **state)
{
    static const double in[] = { 0, 0.5, -1e300 };
    enum { COUNT = sizeof in / sizeof *in };
    uint64_t lost[HEFT_CAST_LOSSES] = { 0 };
    uint8_t out[COUNT];
    (void)state;
    assert_true(heft_cast_counted(out, HEFT_BOOL, in, HEFT_F64, COUNT, lost));
    for (int k = 0; k < HEFT_CAST_LOSSES; k++)
        assert_int_equal(lost[k], 0);
    assert_true(!out[0] && out[1] == 1 && out[2] == 1);
}

/* The fast path skips blocks without a lost value, so place a lost value at every index. */
static void a_lost_value_is_counted_at_every_index(void **state)
{
    static const struct row {
        heft_dtype to, from;
        uint64_t fits, lost;
    } rows[] = {
        { HEFT_BF16, HEFT_F32, 0x7F7F7FFF, 0x7F7F8000 },
        { HEFT_BF16, HEFT_F32, 0xFF7F7FFF, 0xFF7F8000 },
        { HEFT_F16, HEFT_F32, 0x477FEFFF, 0x477FF000 },
        { HEFT_F16, HEFT_F32, 0xC77FEFFF, 0xC77FF000 },
        { HEFT_F32, HEFT_F64, 0x47EFFFFFEFFFFFFF, 0x47EFFFFFF0000000 },
        { HEFT_F32, HEFT_F64, 0xC7EFFFFFEFFFFFFF, 0xC7EFFFFFF0000000 },
    };
    enum { COUNT = 100 };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t at = 0; at < COUNT; at++) {
            uint8_t in[COUNT * 8] = { 0 }, out[COUNT * 4];
            uint64_t lost[HEFT_CAST_LOSSES] = { 0 };
            uint32_t size = heft_dtype_size(rows[i].from);
            heft_test_put(in + at * size, rows[i].fits, size);
            assert_true(heft_cast_counted(out, rows[i].to, in, rows[i].from, COUNT, lost));
            assert_int_equal(lost[HEFT_LOST_RANGE], 0);
            heft_test_put(in + at * size, rows[i].lost, size);
            assert_true(heft_cast_counted(out, rows[i].to, in, rows[i].from, COUNT, lost));
            assert_int_equal(lost[HEFT_LOST_RANGE], 1);
        }
}

static void short_and_unaligned_casts_stay_inside_the_output(void **state)
{
    static const struct run {
        uint32_t first, count;
    } runs[] = { { 0, 0 }, { 1, 1 }, { 0, 3 }, { 1, 31 }, { 0, 32 }, { 3, 33 }, { 2, 70 } };
    const vectors *v = *state;
    for (size_t i = 0; i < v->count; i++) {
        const record *r = &v->at[i];
        for (size_t k = 0; k < sizeof runs / sizeof *runs && r->to != DOUBLES; k++) {
            struct run n = runs[k];
            size_t step = heft_dtype_size(r->from), size = (size_t)bytes_of(r->to, n.count);
            if (n.first + n.count > r->count || (n.first && !step))
                continue; /* block types can only begin at the first block */
            size_t bytes = (size_t)bytes_of(r->from, n.count);
            uint8_t *in = malloc(bytes + 1), *out = malloc(size + 1);
            memcpy(in + 1, r->given + n.first * step, bytes);
            out[size] = GUARD;
            assert_true(heft_dtype_cast(out, r->to, in + 1, r->from, n.count));
            assert_same(r, out, n.first, n.count);
            assert_int_equal(out[size], GUARD);
            free(in);
            free(out);
        }
    }
}

static void every_real_type_reads_as_doubles(void **state)
{
    const vectors *v = *state;
    double *out = malloc(MAX_COUNT * sizeof *out);
    uint32_t types = 0;
    for (size_t i = 0; i < v->count; i++) {
        const record *r = &v->at[i];
        if (r->to != DOUBLES)
            continue;
        types++;
        for (uint32_t first = 0; first < 75 && first < r->count; first++) {
            uint32_t count = first % 3 ? (r->count - first) / 2 : r->count - first;
            out[count] = 14;
            assert_true(heft_dtype_to_f64(out, r->from, r->given, first, count));
            assert_same(r, (const uint8_t *)out, first, count);
            assert_true(out[count] == 14); /* no write past the last element */
        }
    }
    assert_int_equal(types, HEFT_DTYPES - 3); /* all but untyped and the two complex types */
    free(out);
}

static void complex_numbers_read_as_two_doubles(void **state)
{
    (void)state;
    float in[4] = { 1, -2, 3, 0.5F };
    double wide[4], out[4];
    heft_test_le(in, 4, sizeof in[0]);
    assert_true(heft_dtype_to_f64(out, HEFT_C64, in, 0, 4));
    assert_true(out[0] == 1 && out[1] == -2 && out[2] == 3 && out[3] == 0.5);
    assert_true(heft_dtype_to_f64(out, HEFT_C64, in, 2, 2));
    assert_true(out[0] == 3 && out[1] == 0.5);
    assert_true(heft_dtype_cast(wide, HEFT_C128, in, HEFT_C64, 2));
    assert_true(heft_dtype_to_f64(out, HEFT_C128, wide, 1, 3));
    assert_true(out[0] == -2 && out[1] == 3 && out[2] == 0.5);
}

static void can_cast_agrees_with_cast(void **state)
{
    const vectors *v = *state;
    for (heft_dtype from = 0; from <= HEFT_DTYPES; from++)
        for (heft_dtype to = 0; to <= HEFT_DTYPES; to++) {
            bool is_in_vectors = false;
            uint8_t in[512] = { 0 }, out[16] = { 0 };
            for (size_t i = 0; i < v->count; i++)
                is_in_vectors = is_in_vectors || (v->at[i].from == from && v->at[i].to == to);
            assert_int_equal(heft_dtype_can_cast(to, from), is_in_vectors);
            assert_int_equal(heft_dtype_cast(out, to, in, from, 1), is_in_vectors);
        }
    double number;
    assert_false(heft_dtype_to_f64(&number, HEFT_UNTYPED, "", 0, 0));
    assert_false(heft_dtype_to_f64(&number, HEFT_DTYPES, "", 0, 0));
}

static void element_types_are_found_by_name(void **state)
{
    (void)state;
    for (heft_dtype t = 1; t < HEFT_DTYPES; t++) {
        const heft_dtype_info *d = heft_dtype_get(t);
        assert_non_null(d);
        assert_int_equal(heft_dtype_find(heft_str_from(d->name)), t);
        assert_string_equal(heft_dtype_name(t), d->name);
        assert_int_equal(d->block_elems & (d->block_elems - 1), 0);
        assert_int_equal(heft_dtype_size(t), d->block_elems == 1 ? d->block_bytes : 0);
    }
    assert_null(heft_dtype_get(HEFT_UNTYPED));
    assert_null(heft_dtype_get(HEFT_DTYPES));
    assert_string_equal(heft_dtype_name(HEFT_UNTYPED), "none");
    assert_int_equal(heft_dtype_find(HEFT_STR("f3")), HEFT_UNTYPED);
    assert_int_equal(heft_dtype_find(HEFT_STR("f320")), HEFT_UNTYPED);
    assert_int_equal(heft_dtype_find((heft_str){ "f32x", 3 }), HEFT_F32);
    assert_int_equal(heft_dtype_find(HEFT_STR("")), HEFT_UNTYPED);
}

static void sizes_round_up_to_blocks_and_detect_overflow(void **state)
{
    (void)state;
    static const struct size {
        heft_dtype t;
        bool fits, whole;
        uint64_t n, bytes;
    } sizes[] = {
        { HEFT_F32, true, true, 0, 0 },
        { HEFT_F32, true, true, 3, 12 },
        { HEFT_C128, true, true, 3, 48 },
        { HEFT_F4_E2M1, true, true, 4, 2 },
        { HEFT_F4_E2M1, true, false, 5, 3 },
        { HEFT_F4_E2M1, true, false, UINT64_MAX, (uint64_t)1 << 63 },
        { HEFT_F6_E2M3, true, true, 8, 6 },
        { HEFT_F6_E3M2, true, false, 9, 9 },
        { HEFT_F6_E3M2, true, false, UINT64_MAX, 0xC000000000000000 },
        { HEFT_U8, true, true, UINT64_MAX, UINT64_MAX },
        { HEFT_Q4_0, true, true, 64, 36 },
        { HEFT_Q6_K, true, false, 257, 420 },
        { HEFT_Q8_K, false, false, UINT64_MAX, 0 },
        { HEFT_F64, true, true, UINT64_MAX / 8, UINT64_MAX - 7 },
        { HEFT_F64, false, true, UINT64_MAX / 8 + 1, 0 },
        { HEFT_UNTYPED, false, false, 1, 0 },
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const struct size *s = &sizes[i];
        uint64_t bytes;
        assert_int_equal(heft_dtype_bytes(&bytes, s->t, s->n), s->fits);
        assert_int_equal(heft_dtype_fills_blocks(s->t, s->n), s->whole);
        if (s->fits)
            assert_true(bytes == s->bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(element_types_are_found_by_name),
        cmocka_unit_test(sizes_round_up_to_blocks_and_detect_overflow),
        cmocka_unit_test(every_conversion_gives_the_nearest_number),
        cmocka_unit_test(casts_to_bool_lose_nothing),
        cmocka_unit_test(lost_values_are_counted),
        cmocka_unit_test(a_lost_value_is_counted_at_every_index),
        cmocka_unit_test(short_and_unaligned_casts_stay_inside_the_output),
        cmocka_unit_test(every_real_type_reads_as_doubles),
        cmocka_unit_test(complex_numbers_read_as_two_doubles),
        cmocka_unit_test(can_cast_agrees_with_cast),
    };
    return cmocka_run_group_tests(tests, read_vectors, free_vectors);
}
