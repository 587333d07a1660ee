/* test_views.c - strided tensors: read from a mapped or unmapped source, as a whole, in ranges and
 * as a stream, and compared element by element. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/read/stream.h"
#include "random_file.h"

enum { MAX_RANK = 4 };

typedef struct shape {
    uint32_t rank;
    uint64_t dims[MAX_RANK], strides[MAX_RANK];
    heft_dtype dtype;
    bool big_endian;
} shape;

static uint32_t add(random_file *b, const shape *s, uint64_t offset, uint64_t first)
{
    uint64_t *dims;
    uint32_t id;
    heft_range where = { offset, STORAGE - offset };
    assert_int_equal(heft_ix_tensor(&b->f.x, (heft_str){ "t", 1 }, s->dtype, s->rank, &dims, &id),
                     HEFT_OK);
    memcpy(dims, s->dims, s->rank * sizeof *dims);
    heft_status st = heft_ix_strided(&b->f.x, id, 0, where, HEFT_RAW, where.length, first,
                                     s->strides);
    if (st)
        print_message("# %s\n", b->err.message);
    assert_int_equal(st, HEFT_OK);
    if (s->big_endian)
        heft_ix_big_endian(&b->f.x);
    return id;
}

/* Copy the tensor element by element, as the definition of strides says; return the bytes. */
static uint64_t copy_elements(uint8_t *out, const random_file *b, const shape *s, uint64_t start)
{
    uint32_t size = heft_dtype_size(s->dtype), number = heft_dtype_number_bytes(s->dtype);
    uint64_t count = 1;
    for (uint32_t i = 0; i < s->rank; i++)
        count *= s->dims[i];
    for (uint64_t n = 0; n < count; n++) {
        uint64_t rest = n, at = 0;
        for (uint32_t d = s->rank; d--;) {
            at += rest % s->dims[d] * s->strides[d];
            rest /= s->dims[d];
        }
        for (uint32_t i = 0; i < size; i++) {
            uint32_t from = s->big_endian ? i / number * number + number - 1 - i % number : i;
            out[n * size + i] = b->bytes[start + at * size + from];
        }
    }
    return count * size;
}

static void compare(random_file *b, uint32_t part, const uint8_t *want, uint64_t len)
{
    uint8_t *got = malloc((size_t)len + 1);
    heft_stream *s;
    assert_int_equal(heft_ix_part_row_at(&b->f.x, part)->length, len);
    assert_int_equal(heft_part_read(got, &b->f, part, 0, (size_t)len, NULL), HEFT_OK);
    assert_memory_equal(got, want, (size_t)len);
    for (int i = 0; i < 20; i++) {
        uint64_t from = random_below((uint32_t)len + 1),
                 n = random_below((uint32_t)(len - from) + 1);
        assert_int_equal(heft_part_read(got, &b->f, part, from, (size_t)n, NULL), HEFT_OK);
        assert_memory_equal(got, want + from, (size_t)n);
    }
    assert_int_equal(heft_stream_open(&s, &b->f, part, NULL), HEFT_OK);
    for (uint64_t at = 0, n; at < len; at += n) {
        n = 1 + random_below(40);
        n = n < len - at ? n : len - at;
        assert_int_equal(heft_stream_read(got, s, (size_t)n, NULL), HEFT_OK);
        assert_memory_equal(got, want + at, (size_t)n);
    }
    heft_stream_close(s);
    free(got);
}

static shape random_shape(void)
{
    static const heft_dtype types[] = {
        HEFT_U8, HEFT_F16, HEFT_F32, HEFT_F64, HEFT_C64, HEFT_C128
    };
    shape s = { .rank = 1 + random_below(MAX_RANK),
                .dtype = types[random_below(6)],
                .big_endian = random_below(2) };
    for (uint32_t i = 0; i < s.rank; i++) {
        s.dims[i] = 1 + random_below(7);
        s.strides[i] = random_below(3) ? random_below(60) : 0;
    }
    if (!random_below(3)) { /* column-major */
        uint64_t step = 1;
        for (uint32_t i = 0; i < s.rank; i++) {
            s.strides[i] = step;
            step *= s.dims[i];
        }
    }
    return s;
}

static void reads_tensors_with_any_strides(void **state)
{
    (void)state;
    uint8_t *want = malloc(STORAGE);
    for (int i = 0; i < 400; i++) {
        random_file *b = open_random_file(i & 1);
        shape s = random_shape();
        uint64_t offset = random_below(1000), first = random_below(50) * heft_dtype_size(s.dtype);
        uint32_t id = add(b, &s, offset, first);
        uint64_t len = copy_elements(want, b, &s, offset + first);
        compare(b, heft_ix_row(&b->f.x, id)->first_part, want, len);
        close_random_file(b);
    }
    free(want);
}

static void makes_no_view_of_contiguous_tensors(void **state)
{
    (void)state;
    random_file *b = open_random_file(true);
    shape s = { .rank = 3, .dims = { 4, 1, 5 }, .strides = { 5, 77, 1 }, .dtype = HEFT_F32 };
    uint32_t part = heft_ix_row(&b->f.x, add(b, &s, 100, 24))->first_part;
    assert_null(heft_ix_view_of(&b->f.x, part));
    assert_ptr_equal(heft_part_view(&b->f, part), b->bytes + 124);
    s.strides[2] = 2;
    part = heft_ix_row(&b->f.x, add(b, &s, 100, 24))->first_part;
    assert_non_null(heft_ix_view_of(&b->f.x, part));
    assert_null(heft_part_view(&b->f, part));
    close_random_file(b);
}

static void empty_tensors_have_no_bytes(void **state)
{
    (void)state;
    random_file *b = open_random_file(true);
    shape s = {
        .rank = 2, .dims = { UINT64_MAX, 0 }, .strides = { UINT64_MAX, 9 }, .dtype = HEFT_F32
    };
    const heft_ix_part_row *p =
        heft_ix_part_row_at(&b->f.x, heft_ix_row(&b->f.x, add(b, &s, 7, 0))->first_part);
    assert_int_equal(p->length, 0);
    assert_int_equal(p->stored, 0);
    close_random_file(b);
}

typedef struct refusal {
    shape s;
    uint64_t first;
    heft_status st;
    const char *words;
} refusal;

static const refusal refusals[] = {
    { { 1, { 3 }, { STORAGE / 8 }, HEFT_F32, false }, 0, HEFT_E_FORMAT, "of 262144" },
    { { 1, { 2 }, { 1 }, HEFT_F32, false }, STORAGE - 4, HEFT_E_FORMAT, "of 262144" },
    { { 1, { 2 }, { 1 }, HEFT_F32, false }, UINT64_MAX, HEFT_E_FORMAT, "of 262144" },
    { { 1, { 2 }, { UINT64_MAX }, HEFT_F32, false }, 0, HEFT_E_FORMAT, "overflow 64 bits" },
    { { 1, { 3 }, { UINT64_MAX }, HEFT_U8, false }, 0, HEFT_E_FORMAT, "overflow 64 bits" },
    { { 2, { UINT64_MAX, 2 }, { 0, 0 }, HEFT_U8, false }, 0, HEFT_E_FORMAT, "overflow 64 bits" },
    { { 1, { 4 }, { 2 }, HEFT_F4_E2M1, false }, 0, HEFT_E_UNSUPPORTED, "cannot be strided" },
};

static void refuses_elements_outside_the_stored_bytes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        const refusal *r = &refusals[i];
        random_file *b = open_random_file(true);
        uint64_t *dims;
        uint32_t id;
        assert_int_equal(
            heft_ix_tensor(&b->f.x, (heft_str){ "t", 1 }, r->s.dtype, r->s.rank, &dims, &id),
            HEFT_OK);
        memcpy(dims, r->s.dims, r->s.rank * sizeof *dims);
        heft_status st = heft_ix_strided(&b->f.x, id, 0, (heft_range){ 0, STORAGE }, HEFT_RAW,
                                         STORAGE, r->first, r->s.strides);
        if (st != r->st || !strstr(b->err.message, r->words))
            print_message("# %zu: %d %s\n", i, st, b->err.message);
        assert_int_equal(st, r->st);
        assert_non_null(strstr(b->err.message, r->words));
        close_random_file(b);
    }
}

/* Elements that are not whole bytes have no strides, but those in order need none. */
static void blocks_in_order_need_no_strides(void **state)
{
    static const uint64_t in_order[] = { 1 };
    const uint64_t *const strides[] = { NULL, in_order };
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        random_file *b = open_random_file(true);
        uint64_t *dims;
        uint32_t id;
        assert_int_equal(heft_ix_tensor(&b->f.x, (heft_str){ "t", 1 }, HEFT_Q8_0, 1, &dims, &id),
                         HEFT_OK);
        dims[0] = 64;
        assert_int_equal(heft_ix_strided(&b->f.x, id, 0, (heft_range){ 0, STORAGE }, HEFT_RAW,
                                         STORAGE, 0, strides[i]),
                         HEFT_OK);
        close_random_file(b);
    }
}

/* The bytes must lie in the file or in a shard, unless the size of the file is unknown. */
static void refuses_bytes_past_the_end_of_the_file(void **state)
{
    const struct {
        uint64_t offset, file_bytes;
        heft_status st;
    } rows[] = {
        { STORAGE - 8, STORAGE, HEFT_OK },
        { STORAGE - 7, STORAGE, HEFT_E_FORMAT },
        { STORAGE - 7, 0, HEFT_OK },
        { heft_global_offset(1, STORAGE), STORAGE, HEFT_OK },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        random_file *b = open_random_file(true);
        heft_ix_shard shard = { .label = { "s", 1 }, .size = STORAGE };
        uint64_t *dims, strides[] = { 2 };
        uint32_t id;
        heft_range where = { rows[i].offset, 8 };
        assert_int_equal(heft_ix_shard_add(&b->f.x, shard, &id), HEFT_OK);
        b->f.x.file_bytes = rows[i].file_bytes;
        assert_int_equal(heft_ix_tensor(&b->f.x, (heft_str){ "t", 1 }, HEFT_U8, 1, &dims, &id),
                         HEFT_OK);
        dims[0] = 3;
        heft_status st = heft_ix_strided(&b->f.x, id, 77, where, HEFT_DEFLATE, 8, 0, strides);
        assert_int_equal(st, rows[i].st);
        if (st) {
            assert_non_null(strstr(b->err.message, "8 bytes at offset 262137 pass the end"));
            assert_int_equal(b->err.offset, 77);
        }
        assert_int_equal(b->f.x.parts.len, st ? 0 : 1);
        close_random_file(b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_tensors_with_any_strides),
        cmocka_unit_test(makes_no_view_of_contiguous_tensors),
        cmocka_unit_test(empty_tensors_have_no_bytes),
        cmocka_unit_test(refuses_elements_outside_the_stored_bytes),
        cmocka_unit_test(blocks_in_order_need_no_strides),
        cmocka_unit_test(refuses_bytes_past_the_end_of_the_file),
    };
    return cmocka_run_group_tests_name("views", tests, NULL, NULL);
}
