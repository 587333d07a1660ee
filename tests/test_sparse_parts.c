/* test_sparse_parts.c - sparse tensors whose parts do not fit the shape or each other. The writer
 * refuses such tensors: the file has another layout of the same length, which is replaced. */
#include "heft_test.h"

#include "core/read/sparse_read.h"

enum { MAX_PARTS = 3 };
static const char csr[] = "sparse_csr", coo[] = "sparse_coo", written[] = "my__layout";

typedef struct part {
    const char *role; /* NULL: no more parts */
    heft_dtype dtype;
    uint32_t count;
    uint64_t numbers[8]; /* little-endian elements of the type */
} part;

typedef struct sparse {
    const char *layout;
    uint32_t rank;
    uint64_t dims[10];
    part parts[MAX_PARTS];
} sparse;

static void write_part(heft_writer *w, uint32_t number, const part *p)
{
    const heft_dtype_info *info = heft_dtype_get(p->dtype);
    uint8_t bytes[64] = { 0 };
    size_t size = info ? info->block_bytes : 1, len = 0;
    heft_error err;
    for (uint32_t i = 0; i < p->count; i++)
        for (size_t k = 0; k < size && size <= 8; k++)
            bytes[len++] = (uint8_t)(p->numbers[i] >> 8 * k);
    if (info && info->block_elems > 1)
        len = p->count / info->block_elems * info->block_bytes;
    heft_assert_ok(heft_writer_write(w, number, bytes, len, &err), &err);
}

/* Replace the name of the layout. */
static void set_layout(heft_bytes b, const char *layout)
{
    size_t len = strlen(written);
    assert_int_equal(strlen(layout), len);
    for (size_t i = 0; i + len <= b.len; i++)
        if (!memcmp(b.p + i, written, len))
            memcpy(b.p + i, layout, len);
}

static heft_bytes make(const sparse *s)
{
    heft_test_sink sink;
    heft_write_options opt = HEFT_WRITE_OPTIONS_INIT;
    heft_writer *w;
    heft_error err;
    heft_component components[MAX_PARTS];
    heft_tensor_spec spec = HEFT_TENSOR_SPEC_INIT;
    uint32_t first, count = 0;
    opt.version = "1.2";
    for (; count < MAX_PARTS && s->parts[count].role; count++)
        components[count] = (heft_component){ heft_test_str(s->parts[count].role),
                                              s->parts[count].dtype, s->parts[count].count, NULL };
    spec.name = HEFT_STR("s");
    spec.dtype = HEFT_F32;
    spec.rank = s->rank;
    spec.dims = s->dims;
    spec.layout = heft_test_str(written);
    spec.components = components;
    spec.component_count = count;
    heft_assert_ok(heft_writer_open(&w, heft_format_find(HEFT_STR("ztensor")),
                                    heft_test_sink_init(&sink, false), &opt, &err),
                   &err);
    heft_assert_ok(heft_writer_add_tensor(&first, w, &spec, &err), &err);
    heft_assert_ok(heft_writer_begin(w, &err), &err);
    for (uint32_t i = 0; i < count; i++)
        write_part(w, first + i, &s->parts[i]);
    heft_assert_ok(heft_writer_finish(w, &err), &err);
    heft_bytes b = heft_test_copy(sink.p, sink.len);
    heft_test_sink_free(&sink);
    set_layout(b, s->layout);
    return b;
}

#define VALUES                 \
    {                          \
        "values", HEFT_F32, 3, \
        {                      \
            1, 2, 3            \
        }                      \
    }

static void refuses_parts_that_do_not_fit(void **state)
{
    static const struct {
        sparse s;
        const char *words; /* NULL: the parts fit */
    } rows[] = {
        { { csr,
            2,
            { 2, 4 },
            { VALUES,
              { "indices", HEFT_U8, 3, { 0, 3, 1 } },
              { "indptr", HEFT_U8, 3, { 0, 2, 3 } } } },
          NULL },
        { { csr,
            2,
            { 2, 4 },
            { VALUES,
              { "indices", HEFT_U64, 3, { 0, 3, 1 } },
              { "indptr", HEFT_I32, 3, { 0, 2, 3 } } } },
          NULL },
        { { csr,
            1,
            { 2 },
            { VALUES,
              { "indices", HEFT_U8, 3, { 0, 1, 1 } },
              { "indptr", HEFT_U8, 3, { 0, 2, 3 } } } },
          "" },
        { { csr,
            3,
            { 2, 4, 1 },
            { VALUES,
              { "indices", HEFT_U8, 3, { 0, 1, 1 } },
              { "indptr", HEFT_U8, 3, { 0, 2, 3 } } } },
          "" },
        { { csr,
            2,
            { 2, 4 },
            { { "value", HEFT_F32, 3, { 1 } },
              { "indices", HEFT_U8, 3, { 0 } },
              { "indptr", HEFT_U8, 3, { 0, 2, 3 } } } },
          "" },
        { { csr,
            2,
            { 2, 4 },
            { VALUES,
              { "indixes", HEFT_U8, 3, { 0, 3, 1 } },
              { "indptr", HEFT_U8, 3, { 0, 2, 3 } } } },
          "" },
        { { csr,
            2,
            { 2, 4 },
            { VALUES,
              { "indices", HEFT_U8, 3, { 0, 3, 1 } },
              { "indpt", HEFT_U8, 3, { 0, 2, 3 } } } },
          "" },
        { { csr,
            2,
            { 2, 4 },
            { VALUES,
              { "indices", HEFT_F32, 3, { 0, 3, 1 } },
              { "indptr", HEFT_U8, 3, { 0, 2, 3 } } } },
          "not an integer" },
        { { csr,
            2,
            { 2, 4 },
            { VALUES,
              { "indices", HEFT_U8, 3, { 0, 3, 1 } },
              { "indptr", HEFT_F32, 3, { 0, 2, 3 } } } },
          "not an integer" },
        { { csr,
            2,
            { 2, 4 },
            { VALUES,
              { "indices", HEFT_U8, 2, { 0, 3 } },
              { "indptr", HEFT_U8, 3, { 0, 2, 3 } } } },
          "2 column indices" },
        { { csr,
            2,
            { 2, 4 },
            { VALUES,
              { "indices", HEFT_U8, 3, { 0, 3, 1 } },
              { "indptr", HEFT_U8, 2, { 0, 3 } } } },
          "2 row pointers" },
        { { csr,
            2,
            { 2, 4 },
            { VALUES,
              { "indices", HEFT_U8, 3, { 0, 4, 1 } },
              { "indptr", HEFT_U8, 3, { 0, 2, 3 } } } },
          "in column 4" },
        { { csr,
            2,
            { 2, 4 },
            { VALUES,
              { "indices", HEFT_U8, 3, { 0, 3, 1 } },
              { "indptr", HEFT_U8, 3, { 1, 2, 3 } } } },
          "begin with 1" },
        { { csr,
            2,
            { 2, 4 },
            { VALUES,
              { "indices", HEFT_U8, 3, { 0, 3, 1 } },
              { "indptr", HEFT_U8, 3, { 0, 3, 2 } } } },
          "decrease after row 1" },
        { { csr,
            2,
            { 2, 4 },
            { VALUES,
              { "indices", HEFT_U8, 3, { 0, 3, 1 } },
              { "indptr", HEFT_U8, 3, { 0, 4, 4 } } } },
          "only 3 values" },
        { { csr,
            2,
            { 2, 4 },
            { VALUES,
              { "indices", HEFT_U8, 3, { 0, 3, 1 } },
              { "indptr", HEFT_U8, 3, { 0, 1, 2 } } } },
          "end at value 2 of 3" },
        { { csr,
            2,
            { UINT64_MAX, 1 },
            { VALUES,
              { "indices", HEFT_U8, 3, { 0, 3, 1 } },
              { "indptr", HEFT_U8, 3, { 0, 2, 3 } } } },
          "too many rows" },
        { { coo, 2, { 2, 4 }, { VALUES, { "coords", HEFT_U8, 6, { 0, 1, 1, 0, 3, 1 } } } }, NULL },
        { { coo, 2, { 2, 4 }, { VALUES, { "coord", HEFT_U8, 6, { 0, 1, 1, 0, 3, 1 } } } }, "" },
        { { coo, 2, { 2, 4 }, { VALUES, { "coords", HEFT_U8, 5, { 0, 1, 1, 0, 3 } } } },
          "5 coordinates, 6 are needed" },
        { { coo, 2, { 2, 4 }, { VALUES, { "coords", HEFT_F32, 6, { 0 } } } }, "not an integer" },
        { { coo, 2, { 2, 4 }, { VALUES, { "coords", HEFT_U8, 6, { 0, 2, 1, 0, 3, 1 } } } },
          "dimension 0 is 2" },
        { { coo, 2, { 2, 4 }, { VALUES, { "coords", HEFT_U8, 6, { 0, 1, 1, 0, 4, 1 } } } },
          "dimension 1 is 4" },
        { { coo,
            0,
            { 0 },
            { { "values", HEFT_F32, 2, { 1, 2 } }, { "coords", HEFT_U8, 0, { 0 } } } },
          "a scalar has one element" },
        { { coo, 0, { 0 }, { { "values", HEFT_F32, 1, { 1 } }, { "coords", HEFT_U8, 0, { 0 } } } },
          NULL },
    };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        heft_error err;
        heft_file *f;
        heft_sparse_order order;
        heft_bytes b = make(&rows[i].s);
        heft_status st = heft_test_open(&f, b, NULL, &err);
        bool is_open = !st;
        if (!st)
            st = heft_sparse_check(f, 0, false, &order, &err);
        if (rows[i].words && *rows[i].words)
            heft_assert_fails(st, HEFT_E_FORMAT, &err, rows[i].words);
        else
            heft_assert_status(st, rows[i].words ? HEFT_E_FORMAT : HEFT_OK, &err);
        if (is_open)
            heft_file_close(f);
        heft_test_free(&b);
    }
}

/* Rows of up to 65536 entries are sorted in search of duplicates. */
static void finds_the_order_of_entries(void **state)
{
    static const struct {
        sparse s;
        bool has_duplicates, is_ascending;
    } rows[] = {
        { { csr,
            2,
            { 1, 9 },
            { VALUES,
              { "indices", HEFT_U8, 3, { 1, 3, 5 } },
              { "indptr", HEFT_U8, 2, { 0, 3 } } } },
          false,
          true },
        { { csr,
            2,
            { 1, 9 },
            { VALUES,
              { "indices", HEFT_U8, 3, { 1, 5, 3 } },
              { "indptr", HEFT_U8, 2, { 0, 3 } } } },
          false,
          false },
        { { csr,
            2,
            { 1, 9 },
            { VALUES,
              { "indices", HEFT_U8, 3, { 5, 3, 5 } },
              { "indptr", HEFT_U8, 2, { 0, 3 } } } },
          true,
          false },
        { { csr,
            2,
            { 1, 9 },
            { VALUES,
              { "indices", HEFT_U8, 3, { 5, 5, 7 } },
              { "indptr", HEFT_U8, 2, { 0, 3 } } } },
          true,
          false },
        { { csr,
            2,
            { 3, 9 },
            { VALUES,
              { "indices", HEFT_U8, 3, { 5, 5, 5 } },
              { "indptr", HEFT_U8, 4, { 0, 1, 2, 3 } } } },
          false,
          true },
        { { coo, 2, { 9, 9 }, { VALUES, { "coords", HEFT_U8, 6, { 1, 2, 1, 3, 3, 3 } } } },
          true,
          true },
        { { coo, 2, { 9, 9 }, { VALUES, { "coords", HEFT_U8, 6, { 1, 2, 1, 3, 3, 4 } } } },
          false,
          true },
    };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        heft_error err;
        heft_sparse_order order;
        heft_bytes b = make(&rows[i].s);
        heft_file *f = heft_test_opened(b, NULL, false);
        heft_assert_ok(heft_sparse_check(f, 0, false, &order, &err), &err);
        assert_int_equal(order.has_duplicates, rows[i].has_duplicates);
        assert_int_equal(order.is_ascending, rows[i].is_ascending);
        heft_file_close(f);
        heft_test_free(&b);
    }
}

/* The iterator sees indices that were changed after the check. */
static void the_iterator_checks_again(void **state)
{
    static const sparse rows[] = {
        { csr,
          2,
          { 2, 4 },
          { VALUES,
            { "indices", HEFT_U8, 3, { 0, 4, 1 } },
            { "indptr", HEFT_U8, 3, { 0, 2, 3 } } } },
        { csr,
          2,
          { 2, 4 },
          { VALUES,
            { "indices", HEFT_U8, 3, { 0, 3, 1 } },
            { "indptr", HEFT_U8, 3, { 0, 4, 4 } } } },
        { csr,
          2,
          { 2, 4 },
          { VALUES,
            { "indices", HEFT_U8, 3, { 0, 3, 1 } },
            { "indptr", HEFT_U8, 3, { 2, 1, 3 } } } },
        { coo, 2, { 2, 4 }, { VALUES, { "coords", HEFT_U8, 6, { 0, 2, 1, 0, 3, 1 } } } },
        { coo, 2, { 2, 4 }, { VALUES, { "coords", HEFT_U8, 6, { 0, 1, 1, 0, 4, 1 } } } },
    };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        heft_error err;
        heft_entries e;
        heft_bytes b = make(&rows[i]);
        heft_file *f = heft_test_opened(b, NULL, false);
        heft_assert_ok(heft_entries_open(&e, f, 0, &err), &err);
        heft_status st = HEFT_OK;
        while (e.consumed < e.count && !st)
            st = heft_entries_next(&e, &err);
        heft_assert_fails(st, HEFT_E_IO, &err, "changed while being read");
        heft_entries_close(&e);
        heft_file_close(f);
        heft_test_free(&b);
    }
}

static void at_most_32_dimensions_are_converted(void **state)
{
    (void)state;
    for (uint32_t rank = 32; rank < 34; rank++) {
        uint64_t dims[40], zeros[40] = { 0 };
        heft_test_sink sink;
        heft_write_options opt = HEFT_WRITE_OPTIONS_INIT;
        heft_tensor_spec spec = HEFT_TENSOR_SPEC_INIT;
        heft_component parts[] = { { HEFT_STR("values"), HEFT_U8, 1, NULL },
                                   { HEFT_STR("coords"), HEFT_U64, rank, NULL } };
        heft_writer *w;
        heft_entries e;
        heft_error err;
        uint32_t first;
        for (uint32_t i = 0; i < rank; i++)
            dims[i] = 1;
        opt.version = "1.2";
        spec.name = HEFT_STR("s");
        spec.dtype = HEFT_U8;
        spec.rank = rank;
        spec.dims = dims;
        spec.layout = HEFT_STR("sparse_coo");
        spec.components = parts;
        spec.component_count = 2;
        heft_assert_ok(heft_writer_open(&w, heft_format_find(HEFT_STR("ztensor")),
                                        heft_test_sink_init(&sink, false), &opt, &err),
                       &err);
        heft_assert_ok(heft_writer_add_tensor(&first, w, &spec, &err), &err);
        heft_assert_ok(heft_writer_begin(w, &err), &err);
        heft_assert_ok(heft_writer_write(w, first, "\1", 1, &err), &err);
        heft_assert_ok(heft_writer_write(w, first + 1, zeros, 8 * (size_t)rank, &err), &err);
        heft_assert_ok(heft_writer_finish(w, &err), &err);
        heft_file *f = heft_test_opened(heft_test_sink_bytes(&sink), NULL, false);
        heft_status st = heft_entries_open(&e, f, 0, &err);
        if (rank > HEFT_SPARSE_RANK) {
            heft_assert_fails(st, HEFT_E_UNSUPPORTED, &err, "more than 32 dimensions");
        } else {
            heft_assert_ok(st, &err);
            heft_entries_close(&e);
        }
        heft_file_close(f);
        heft_test_sink_free(&sink);
    }
}

static bool always(void *ctx, const heft_tensor *t)
{
    (void)ctx, (void)t;
    return true;
}

static void repeated_complex_entries_are_added(void **state)
{
    static const uint64_t dims[] = { 2 };
    static const float values[] = { 1, 2, 3, 4, 5, -6 }, sums[] = { 6, -4, 3, 4 };
    static const uint8_t coords[24] = { [8] = 1 }; /* the entries 0, 1, 0 */
    const heft_component parts[] = { { HEFT_STR("values"), HEFT_C64, 3, NULL },
                                     { HEFT_STR("coords"), HEFT_U64, 3, NULL } };
    heft_convert_options opt = HEFT_CONVERT_OPTIONS_INIT;
    heft_write_options write = HEFT_WRITE_OPTIONS_INIT;
    heft_tensor_spec spec = HEFT_TENSOR_SPEC_INIT;
    uint8_t little[sizeof values];
    heft_test_sink sparse_sink, dense_sink;
    heft_array dense;
    heft_error err;
    heft_writer *w;
    uint32_t first;
    (void)state;
    write.version = "1.2";
    opt.write = &write;
    opt.densify = always;
    spec.name = HEFT_STR("s");
    spec.dtype = HEFT_C64;
    spec.rank = 1;
    spec.dims = dims;
    spec.layout = HEFT_STR("sparse_coo");
    spec.components = parts;
    spec.component_count = 2;
    for (size_t i = 0; i < HEFT_COUNT(values); i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        heft_test_put(little + 4 * i, bits, 4);
    }
    heft_assert_ok(heft_writer_open(&w, heft_format_find(HEFT_STR("ztensor")),
                                    heft_test_sink_init(&sparse_sink, false), &write, &err),
                   &err);
    heft_assert_ok(heft_writer_add_tensor(&first, w, &spec, &err), &err);
    heft_assert_ok(heft_writer_begin(w, &err), &err);
    heft_assert_ok(heft_writer_write(w, first, little, sizeof little, &err), &err);
    heft_assert_ok(heft_writer_write(w, first + 1, coords, sizeof coords, &err), &err);
    heft_assert_ok(heft_writer_finish(w, &err), &err);
    heft_file *f = heft_test_opened(heft_test_sink_bytes(&sparse_sink), NULL, false);
    heft_assert_ok(heft_file_convert(f, heft_format_find(HEFT_STR("ztensor")),
                                     heft_test_sink_init(&dense_sink, false), &opt, &err),
                   &err);
    heft_file_close(f);
    f = heft_test_opened(heft_test_sink_bytes(&dense_sink), NULL, false);
    heft_assert_ok(heft_array_read(&dense, f, HEFT_STR("s"), HEFT_UNTYPED, NULL, 0, &err), &err);
    assert_int_equal(dense.bytes, sizeof sums);
    assert_memory_equal(dense.data, sums, sizeof sums);
    heft_array_free(&dense);
    heft_file_close(f);
    heft_test_sink_free(&dense_sink);
    heft_test_sink_free(&sparse_sink);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_parts_that_do_not_fit),
        cmocka_unit_test(finds_the_order_of_entries),
        cmocka_unit_test(the_iterator_checks_again),
        cmocka_unit_test(at_most_32_dimensions_are_converted),
        cmocka_unit_test(repeated_complex_entries_are_added),
    };
    return cmocka_run_group_tests_name("sparse_parts", tests, NULL, NULL);
}
