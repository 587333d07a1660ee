/* test_write_refusals.c - refusals of models and options that a caller of the public functions may
 * have: arrays in memory, conversions, and builds without libraries. */
#include "limited_host.h"

/* ---- arrays in memory ------------------------------------------------------------------------ */

static heft_status write_array(const heft_array *a, const heft_save_options *o, heft_error *err)
{
    heft_test_sink sink;
    heft_test_poison(err);
    heft_status st = heft_array_write(heft_test_sink_init(&sink, false), a, a ? 1 : 0, o, err);
    assert_int_equal(sink.finished, !st);
    assert_int_equal(sink.discarded, !!st);
    assert_true(!st || !sink.len);
    heft_test_sink_free(&sink);
    return st;
}

static void arrays_fit_the_address_space(void **state)
{
    static const struct {
        heft_dtype dtype;
        uint64_t dims[2];
        const char *words;
    } rows[] = {
        { HEFT_U8, { UINT64_MAX, 2 }, "tensor 'a': its shape exceeds the address space" },
        { HEFT_F64, { UINT64_MAX / 8 + 1, 1 }, "tensor 'a': its shape exceeds the address space" },
        { HEFT_U8, { SIZE_MAX, 1 }, "tensor 'a': shape and element type need" },
    };
    heft_save_options o = HEFT_SAVE_OPTIONS_INIT;
    (void)state;
    o.format = heft_format_find(HEFT_STR("mag"));
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        heft_array a = { .name = HEFT_STR("a"), .dims = rows[i].dims, .rank = 2 };
        heft_error err;
        a.dtype = rows[i].dtype;
        heft_assert_fails(write_array(&a, &o, &err), HEFT_E_ARGUMENT, &err, rows[i].words);
    }
}

static void options_of_arrays_are_checked(void **state)
{
    const heft_value map = { .kind = HEFT_KIND_MAP, .key = HEFT_STR("k") };
    heft_save_options without_format = HEFT_SAVE_OPTIONS_INIT, with_map = without_format,
                      without_size = without_format;
    heft_error err;
    (void)state;
    heft_assert_fails(write_array(NULL, &without_format, &err), HEFT_E_ARGUMENT, &err,
                      "no output format is given");
    with_map.format = heft_format_find(HEFT_STR("safetensors"));
    with_map.meta = &map;
    with_map.meta_count = 1;
    heft_assert_fails(write_array(NULL, &with_map, &err), HEFT_E_ARGUMENT, &err,
                      "metadata 'k' is a list or map");
    without_size.size = 0;
    heft_assert_fails(write_array(NULL, &without_size, &err), HEFT_E_ARGUMENT, &err, "size");
}

static void a_sink_in_memory_needs_a_host(void **state)
{
    heft_host without_size = *heft_host_default();
    heft_sink *s;
    heft_blob blob;
    heft_error err;
    (void)state;
    without_size.size = 0;
    heft_assert_fails(heft_sink_open_memory(&s, &blob, &without_size, &err), HEFT_E_ARGUMENT, &err,
                      "host");
    assert_true(!s && !blob.data);
}

/* ---- conversions ----------------------------------------------------------------------------- */

typedef struct sparse { /* a tensor with `entries` entries, all in the first row */
    const char *layout;
    uint32_t rank;
    uint64_t dims[40];
    uint32_t entries;
} sparse;

/* A file with a sparse tensor "s" of f32 values. */
static heft_bytes sparse_model(const sparse *s)
{
    static const float values[4] = { 1, 2, 3, 4 };
    bool is_csr = !strcmp(s->layout, "sparse_csr");
    uint64_t numbers[2][80] = { { 0 } };
    const heft_component parts[] = {
        { HEFT_STR("values"), HEFT_F32, s->entries, NULL },
        { heft_test_str(is_csr ? "indices" : "coords"), HEFT_U64,
          is_csr ? s->entries : s->entries * s->rank, NULL },
        { HEFT_STR("indptr"), HEFT_U64, s->dims[0] + 1, NULL },
    };
    heft_tensor_spec spec = HEFT_TENSOR_SPEC_INIT;
    heft_write_options w = HEFT_WRITE_OPTIONS_INIT;
    heft_test_sink sink;
    heft_writer *writer;
    heft_error err;
    uint32_t first;
    for (uint32_t i = 0; i < s->entries; i++) /* the last dimension tells the entries apart */
        numbers[0][is_csr ? i : s->entries * (s->rank - 1) + i] = i;
    for (uint64_t i = 1; is_csr && i <= s->dims[0]; i++)
        numbers[1][i] = s->entries;
    w.version = "1.2";
    spec.name = HEFT_STR("s");
    spec.dtype = HEFT_F32;
    spec.rank = s->rank;
    spec.dims = s->dims;
    spec.layout = heft_test_str(s->layout);
    spec.components = parts;
    spec.component_count = is_csr ? 3 : 2;
    heft_assert_ok(heft_writer_open(&writer, heft_format_find(HEFT_STR("ztensor")),
                                    heft_test_sink_init(&sink, false), &w, &err),
                   &err);
    heft_assert_ok(heft_writer_add_tensor(&first, writer, &spec, &err), &err);
    heft_assert_ok(heft_writer_begin(writer, &err), &err);
    heft_assert_ok(heft_writer_write(writer, first, values, 4 * (size_t)s->entries, &err), &err);
    for (uint32_t i = 1; i < spec.component_count; i++) {
        uint8_t bytes[sizeof *numbers];
        heft_test_put_u64(bytes, numbers[i - 1], (size_t)parts[i].count);
        heft_assert_ok(
            heft_writer_write(writer, first + i, bytes, 8 * (size_t)parts[i].count, &err), &err);
    }
    heft_assert_ok(heft_writer_finish(writer, &err), &err);
    return (heft_bytes){ sink.p, sink.len };
}

static bool always(void *ctx, const heft_tensor *t)
{
    (void)ctx, (void)t;
    return true;
}

static heft_layout as_csr(void *ctx, const heft_tensor *t)
{
    (void)ctx, (void)t;
    return HEFT_SPARSE_CSR;
}

static heft_dtype to_f64(void *ctx, const heft_tensor *t)
{
    (void)ctx, (void)t;
    return HEFT_F64;
}

static heft_dtype to_u8(void *ctx, const heft_tensor *t)
{
    (void)ctx, (void)t;
    return HEFT_U8;
}

/* Plan a conversion without writing. */
static heft_status plan(const heft_file *f, heft_convert_options o, heft_error *err)
{
    heft_write_options w = HEFT_WRITE_OPTIONS_INIT;
    w.version = "1.2";
    o.write = &w;
    o.dry_run = true;
    heft_test_poison(err);
    return heft_file_convert(f, heft_format_find(HEFT_STR("ztensor")), NULL, &o, err);
}

static void some_sparse_tensors_cannot_be_made_dense(void **state)
{
    static const uint64_t large = UINT64_C(1) << 40;
    const struct {
        sparse model;
        heft_dtype dtype; /* HEFT_UNTYPED: as written */
        heft_dtype (*cast)(void *ctx, const heft_tensor *t);
        heft_status st;
        const char *words;
    } rows[] = {
        { { "sparse_coo", 2, { 2, 3 }, 2 }, HEFT_UNTYPED, NULL, HEFT_OK, "" },
        { { "sparse_csr", 2, { 2, 3 }, 2 }, HEFT_UNTYPED, NULL, HEFT_OK, "" },
        { { "sparse_coo", 2, { 2, 3 }, 2 },
          HEFT_Q4_0,
          NULL,
          HEFT_E_UNSUPPORTED,
          "tensor 's': q4_0 cannot be made dense" },
        { { "sparse_coo",
            32,
            { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
              1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2 },
            2 },
          HEFT_UNTYPED,
          NULL,
          HEFT_OK,
          "" },
        { { "sparse_coo",
            33,
            { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
              1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2 },
            2 },
          HEFT_UNTYPED,
          NULL,
          HEFT_E_UNSUPPORTED,
          "tensor 's': has 33 dimensions, at most 32 can be made dense" },
        { { "sparse_coo", 2, { large, large }, 2 },
          HEFT_UNTYPED,
          NULL,
          HEFT_E_LIMIT,
          "tensor 's': as f32 it would take 2^64 bytes or more" },
        { { "sparse_coo", 1, { UINT64_C(1) << 62 }, 2 },
          HEFT_UNTYPED,
          NULL,
          HEFT_E_LIMIT,
          "tensor 's': as f32 it would take 2^64 bytes or more" },
        { { "sparse_coo", 1, { UINT64_C(1) << 62 }, 2 },
          HEFT_UNTYPED,
          to_u8,
          HEFT_E_LIMIT,
          "tensor 's': as f32 it would take 2^64 bytes or more" },
    };
    heft_convert_options o = HEFT_CONVERT_OPTIONS_INIT;
    (void)state;
    o.densify = always;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        heft_error err;
        heft_bytes b = sparse_model(&rows[i].model);
        begin();
        heft_file *f = heft_test_opened(b, &host, false);
        if (rows[i].dtype)
            heft_ix_row(&f->x, 0)->dtype = rows[i].dtype;
        o.cast = rows[i].cast;
        heft_status st = plan(f, o, &err);
        heft_assert_status(st, rows[i].st, &err);
        if (st)
            heft_assert_fails(st, st, &err, rows[i].words);
        close_all(f, &b);
    }
}

static void some_dense_tensors_cannot_be_made_sparse(void **state)
{
    static const struct {
        test_tensor tensor;
        heft_status st;
        const char *words;
    } rows[] = {
        { { "t", HEFT_F32, 2, { 2, 3 } }, HEFT_OK, "" },
        { { "t", HEFT_F32, 1, { 3 } }, HEFT_E_ARGUMENT, "'t': sparse_csr needs two dimensions" },
        { { "t", HEFT_F32, 2, { UINT64_MAX, 0 } },
          HEFT_E_LIMIT,
          "'t': as u64 it would take 2^64 bytes or more" },
    };
    heft_convert_options o = HEFT_CONVERT_OPTIONS_INIT;
    (void)state;
    o.sparsify = as_csr;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        heft_error err;
        heft_bytes b = heft_test_model("ztensor", &rows[i].tensor, 1);
        begin();
        heft_file *f = heft_test_opened(b, &host, false);
        heft_status st = plan(f, o, &err);
        heft_assert_status(st, rows[i].st, &err);
        if (st)
            heft_assert_fails(st, st, &err, rows[i].words);
        close_all(f, &b);
    }
}

static void the_number_of_cast_elements_has_64_bits(void **state)
{
    static const test_tensor t = { "t", HEFT_F32, 2, { 2, 3 } };
    heft_convert_options o = HEFT_CONVERT_OPTIONS_INIT;
    heft_bytes b = heft_test_model("mag", &t, 1);
    heft_error err;
    (void)state;
    begin();
    heft_file *f = heft_test_opened(b, &host, false);
    o.cast = to_f64;
    heft_assert_ok(plan(f, o, &err), &err);
    heft_ix_dims(&f->x, 0)[0] = heft_ix_dims(&f->x, 0)[1] = UINT64_C(1) << 33;
    heft_assert_fails(plan(f, o, &err), HEFT_E_LIMIT, &err, "tensor 't': as f64 it would take");
    close_all(f, &b);
}

/* ---- a build without libraries --------------------------------------------------------------- */

/* Write a part with this storage, without digests and codecs of the host.  is_default: the storage
 * is that of all parts; late: the part is added when the file has begun. */
static heft_status write_without_libraries(heft_storage storage, bool is_default, bool late,
                                           heft_error *err)
{
    static const uint64_t dims[] = { 4 };
    heft_write_options o = HEFT_WRITE_OPTIONS_INIT;
    heft_tensor_spec spec = HEFT_TENSOR_SPEC_INIT;
    heft_test_sink sink;
    heft_writer *w;
    uint32_t part;
    host.digests = NULL;
    host.codecs = NULL;
    o.host = &host;
    o.version = "1.2";
    spec.name = HEFT_STR("w");
    spec.dtype = HEFT_U8;
    spec.rank = 1;
    spec.dims = dims;
    spec.storage = is_default ? NULL : &storage;
    if (is_default) {
        o.storage.encoding = storage.encoding;
        o.storage.digest = storage.digest;
    }
    heft_assert_ok(heft_writer_open(&w, heft_format_find(HEFT_STR("ztensor")),
                                    heft_test_sink_init(&sink, false), &o, err),
                   err);
    heft_status st = late ? heft_writer_begin(w, err) : HEFT_OK;
    size_t written = sink.len;
    if (!st)
        st = heft_writer_add_tensor(&part, w, &spec, err);
    if (!st && !late)
        st = heft_writer_begin(w, err);
    if (!st)
        st = heft_writer_write(w, part, "abcd", 4, err);
    assert_true(!st || sink.len == written);
    if (!st)
        st = heft_writer_finish(w, err);
    else
        heft_writer_discard(w);
    heft_test_sink_free(&sink);
    return st;
}

static void a_build_without_libraries_says_so(void **state)
{
    static const struct {
        heft_storage storage;
        const char *words; /* NULL: no library is needed */
    } rows[] = {
        { { .encoding = HEFT_RAW, .digest = "crc32c" }, NULL },
        { { .encoding = HEFT_RAW, .digest = "sha256" },
          "this build cannot compute sha256 digests" },
        { { .encoding = HEFT_ZSTD }, "this build cannot compress" },
    };
    (void)state;
    for (size_t i = 0; i < 4 * HEFT_COUNT(rows); i++) {
        const char *words = rows[i / 4].words;
        heft_error err;
        begin();
        heft_status st = write_without_libraries(rows[i / 4].storage, i & 1, i & 2, &err);
        assert_int_equal(st, words ? HEFT_E_UNSUPPORTED : HEFT_OK);
        if (st && !strstr(err.message, words))
            fail_msg("%s", err.message);
        heft_assert_all_freed(&memory);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrays_fit_the_address_space),
        cmocka_unit_test(options_of_arrays_are_checked),
        cmocka_unit_test(a_sink_in_memory_needs_a_host),
        cmocka_unit_test(some_sparse_tensors_cannot_be_made_dense),
        cmocka_unit_test(some_dense_tensors_cannot_be_made_sparse),
        cmocka_unit_test(the_number_of_cast_elements_has_64_bits),
        cmocka_unit_test(a_build_without_libraries_says_so),
    };
    return cmocka_run_group_tests_name("write_refusals", tests, NULL, NULL);
}
