/* test_arrays.c - tests of heft_array: read, cast, view and save whole tensors. */
#include "models.h"

#include <math.h>

/* Large enough for more than two chunks, the last of which is short. */
enum { ROWS = 700, COLUMNS = 301, ELEMENTS = ROWS * COLUMNS };

static const test_tensor tensors[] = {
    { "f32", HEFT_F32, 2, { ROWS, COLUMNS } },
    { "f16", HEFT_F16, 1, { 33 } },
    { "u8", HEFT_U8, 1, { 5 } },
    { "empty", HEFT_F32, 2, { 0, 7 } },
    { "scalar", HEFT_F64, 0, { 0 } },
    { "i64", HEFT_I64, 1, { 9 } },
};

/* Return the elements of a tensor, cast in a single call. */
static uint8_t *expected(size_t *bytes, const heft_file *f, const char *name, heft_dtype as)
{
    heft_error err;
    heft_tensor t = heft_tensor_at(f, heft_tensor_find(f, heft_str_from(name)));
    size_t count = 1, stored = (size_t)heft_part_at(f, t.first_part).length;
    for (uint32_t i = 0; i < t.rank; i++)
        count *= (size_t)t.dims[i];
    uint8_t *raw = malloc(stored + 1), *cast = malloc(count * 16 + 1);
    heft_assert_ok(heft_part_read(raw, f, t.first_part, 0, stored, &err), &err);
    assert_true(heft_dtype_cast(cast, as, raw, t.dtype, count));
    free(raw);
    *bytes = count * heft_dtype_get(as)->block_bytes;
    return cast;
}

static void assert_reads(const heft_file *f, const char *name, heft_dtype as)
{
    heft_array a;
    heft_error err;
    size_t bytes;
    uint8_t *elements = expected(&bytes, f, name, as);
    heft_assert_ok(heft_array_read(&a, f, heft_str_from(name), as, NULL, 0, &err), &err);
    assert_int_equal(a.bytes, bytes);
    assert_int_equal(a.dtype, as);
    assert_int_equal((uintptr_t)a.data % 64, 0);
    assert_memory_equal(bytes ? a.data : "", elements, bytes);
    heft_array_free(&a);
    assert_null(a.data);
    uint8_t *buffer = malloc(bytes + 1);
    buffer[bytes] = 0xA7;
    heft_assert_ok(heft_array_read(&a, f, heft_str_from(name), as, buffer, bytes, &err), &err);
    assert_ptr_equal(a.data, buffer);
    assert_memory_equal(buffer, elements, bytes);
    assert_int_equal(buffer[bytes], 0xA7);
    heft_array_free(&a); /* does not free the caller's buffer */
    free(buffer);
    free(elements);
}

static void assert_reads_all(heft_bytes b, const heft_host *host, bool check)
{
    static const heft_dtype types[] = { HEFT_F32, HEFT_F64, HEFT_BF16, HEFT_I32, HEFT_BOOL };
    heft_file *f = heft_test_opened(b, host, check);
    for (size_t i = 0; i < HEFT_COUNT(tensors); i++)
        for (size_t k = 0; k < HEFT_COUNT(types); k++)
            assert_reads(f, tensors[i].name, types[k]);
    heft_file_close(f);
}

static void a_tensor_is_read_as_any_type(void **state)
{
    heft_test_host h[2];
    heft_write_options write = HEFT_WRITE_OPTIONS_INIT;
    heft_convert_options opt = HEFT_CONVERT_OPTIONS_INIT;
    write.storage.encoding = HEFT_ZSTD;
    write.storage.digest = "crc32c";
    opt.write = &write;
    heft_bytes plain = heft_test_model("safetensors", tensors, HEFT_COUNT(tensors));
    heft_bytes compressed = heft_test_converted("safetensors", tensors, HEFT_COUNT(tensors),
                                                "ztensor", &opt);
    for (uint32_t i = 0; i < 2; i++) {
        heft_test_host_init(&h[i], i ? 4 : 1);
        assert_reads_all(plain, &h[i].host, i);
        assert_reads_all(compressed, &h[i].host, i);
    }
    heft_test_free(&plain);
    heft_test_free(&compressed);
    (void)state;
}

/* A block of ggml's q8_0 is an f16 scale followed by 32 signed bytes. */
static void quantized_blocks_are_cast_to_elements(void **state)
{
    uint8_t blocks[3 * 34], reread[sizeof blocks];
    uint64_t dims[] = { 3, 32 };
    heft_blob blob;
    heft_sink *sink;
    heft_error err;
    heft_array a = { HEFT_STR("q"), blocks, sizeof blocks, dims, 2, HEFT_Q8_0, NULL }, got;
    heft_save_options opt = HEFT_SAVE_OPTIONS_INIT;
    opt.format = heft_format_find(HEFT_STR("gguf"));
    for (size_t i = 0; i < sizeof blocks; i++)
        blocks[i] = i % 34 == 0 ? 0x00 : i % 34 == 1 ? 0x3C : (uint8_t)i; /* scale 1 */
    heft_assert_ok(heft_sink_open_memory(&sink, &blob, NULL, &err), &err);
    heft_assert_ok(heft_array_write(sink, &a, 1, &opt, &err), &err);
    heft_file *f = heft_test_opened((heft_bytes){ blob.data, blob.size }, NULL, false);
    heft_assert_ok(heft_array_read(&got, f, a.name, HEFT_F32, NULL, 0, &err), &err);
    assert_int_equal(got.bytes, 96 * sizeof(float));
    float values[96];
    memcpy(values, got.data, sizeof values);
    heft_test_le(values, HEFT_COUNT(values), sizeof *values);
    for (size_t i = 0; i < 96; i++)
        assert_true(values[i] == (float)(int8_t)blocks[i / 32 * 34 + 2 + i % 32]);
    heft_array_free(&got);
    heft_assert_ok(heft_array_read(&got, f, a.name, HEFT_UNTYPED, reread, sizeof reread, &err),
                   &err);
    assert_memory_equal(reread, blocks, sizeof blocks);
    heft_assert_fails(heft_array_read(&got, f, a.name, HEFT_Q4_0, NULL, 0, &err),
                      HEFT_E_UNSUPPORTED, &err, "q8_0 cannot be cast to q4_0");
    heft_file_close(f);
    heft_blob_free(&blob);
    (void)state;
}

static void unknown_names_and_short_buffers_are_refused(void **state)
{
    heft_array a;
    heft_error err;
    float small_buffer[2];
    heft_bytes b = heft_test_model("safetensors", tensors, HEFT_COUNT(tensors));
    heft_file *f = heft_test_opened(b, NULL, false);
    heft_test_poison(&err);
    heft_assert_fails(heft_array_read(&a, f, HEFT_STR("none"), HEFT_F32, NULL, 0, &err),
                      HEFT_E_NOTFOUND, &err, "there is no tensor 'none'");
    heft_assert_fails(heft_array_view(&a, f, HEFT_STR("none"), &err), HEFT_E_NOTFOUND, &err,
                      "there is no tensor 'none'");
    heft_assert_fails(
        heft_array_read(&a, f, HEFT_STR("f16"), HEFT_F32, small_buffer, sizeof small_buffer, &err),
        HEFT_E_ARGUMENT, &err, "'f16' needs 132 bytes as f32, but the buffer has 8");
    assert_null(a.data);
    heft_file_close(f);
    heft_test_free(&b);
    (void)state;
}

static heft_layout to_coo(void *ctx, const heft_tensor *t)
{
    (void)ctx;
    return t->rank ? HEFT_SPARSE_COO : HEFT_DENSE;
}

static void a_sparse_tensor_is_refused(void **state)
{
    heft_array a;
    heft_error err;
    heft_convert_options opt = HEFT_CONVERT_OPTIONS_INIT;
    opt.sparsify = to_coo;
    heft_bytes b = heft_test_converted("safetensors", tensors, HEFT_COUNT(tensors), "ztensor",
                                       &opt);
    heft_file *f = heft_test_opened(b, NULL, false);
    heft_assert_fails(heft_array_read(&a, f, HEFT_STR("f16"), HEFT_F32, NULL, 0, &err),
                      HEFT_E_UNSUPPORTED, &err, "is not dense");
    heft_file_close(f);
    heft_test_free(&b);
    (void)state;
}

/* Open the same file at every alignment: a view points into the file if the data are aligned,
 * otherwise to a copy. */
static void views_are_aligned_or_copied(void **state)
{
    heft_array a;
    heft_error err;
    heft_bytes b = heft_test_model("safetensors", tensors, HEFT_COUNT(tensors));
    uint8_t *memory = malloc(b.len + 16);
    for (size_t shift = 0; shift < 9; shift++) {
        memcpy(memory + shift, b.p, b.len);
        heft_file *f = heft_test_opened((heft_bytes){ memory + shift, b.len }, NULL, shift & 1);
        heft_assert_ok(heft_array_view(&a, f, HEFT_STR("f32"), &err), &err);
        const uint8_t *data = a.data;
        bool in_place = data >= memory && data < memory + b.len + 16;
        uint32_t part = heft_tensor_at(f, heft_tensor_find(f, HEFT_STR("f32"))).first_part;
        assert_int_equal(in_place, (uintptr_t)heft_part_view(f, part) % sizeof(float) == 0);
        const float *values = a.data;
        double sum = 0;
        for (size_t i = 0; i < ELEMENTS; i++) /* a sanitizer reports unaligned loads */
            sum += isfinite(values[i]) ? 1 : 0;
        assert_true(sum > 0);
        heft_array_free(&a);
        heft_assert_ok(heft_array_view(&a, f, HEFT_STR("empty"), &err), &err);
        assert_int_equal(a.bytes, 0);
        heft_array_free(&a);
        heft_file_close(f);
    }
    free(memory);
    heft_test_free(&b);
    (void)state;
}

static void views_and_reads_check_the_digest(void **state)
{
    heft_array a;
    heft_error err;
    heft_write_options write = HEFT_WRITE_OPTIONS_INIT;
    heft_convert_options opt = HEFT_CONVERT_OPTIONS_INIT;
    write.storage.digest = "crc32c";
    opt.write = &write;
    heft_bytes b = heft_test_converted("safetensors", tensors, HEFT_COUNT(tensors), "ztensor",
                                       &opt);
    heft_file *f = heft_test_opened(b, NULL, true);
    heft_part p = heft_part_at(f,
                               heft_tensor_at(f, heft_tensor_find(f, HEFT_STR("f32"))).first_part);
    heft_assert_ok(heft_array_view(&a, f, HEFT_STR("f32"), &err), &err);
    heft_array_free(&a);
    b.p[p.offset + p.stored / 2] ^= 1;
    heft_assert_status(heft_array_view(&a, f, HEFT_STR("f32"), &err), HEFT_E_CHECKSUM, &err);
    assert_null(a.data);
    heft_assert_status(heft_array_read(&a, f, HEFT_STR("f32"), HEFT_F16, NULL, 0, &err),
                       HEFT_E_CHECKSUM, &err);
    heft_file_close(f);
    heft_test_free(&b);
    (void)state;
}

static void arrays_are_saved_and_read_again(void **state)
{
    static const float weights[] = { 1, 2, 3, 4, 5, 6 };
    static const uint64_t dims[] = { 2, 3 }, none[] = { 0 };
    const heft_array arrays[] = {
        { HEFT_STR("w"), weights, sizeof weights, dims, 2, HEFT_F32, NULL },
        { HEFT_STR("e"), NULL, 0, none, 1, HEFT_F32, NULL },
    };
    const heft_value meta[] = {
        { HEFT_KIND_STR, HEFT_UNTYPED, HEFT_STR("k"), { .s = HEFT_STR("v") } }
    };
    const char *path = heft_test_path(*state, "model.safetensors");
    heft_save_options opt = HEFT_SAVE_OPTIONS_INIT;
    heft_file *f;
    heft_array a;
    heft_value v;
    heft_error err;
    opt.meta = meta;
    opt.meta_count = 1;
    heft_assert_ok(heft_array_save(path, arrays, 2, &opt, &err), &err);
    heft_assert_status(heft_array_save(path, arrays, 2, &opt, &err), HEFT_E_ARGUMENT, &err);
    opt.flags = HEFT_SINK_REPLACE;
    heft_assert_ok(heft_array_save(path, arrays, 2, &opt, &err), &err);
    heft_assert_ok(heft_file_open(&f, path, NULL, &err), &err);
    heft_assert_ok(heft_array_view(&a, f, HEFT_STR("w"), &err), &err);
    assert_memory_equal(a.data, weights, sizeof weights);
    assert_int_equal(a.rank, 2);
    assert_true(heft_meta_find(&v, f, HEFT_STR("k")) && v.as.s.len == 1 && *v.as.s.ptr == 'v');
    heft_array_free(&a);
    heft_file_close(f);
}

static void count_losses(void *ctx, heft_severity severity, const char *rule, heft_str tensor,
                         const char *text)
{
    (void)tensor;
    (void)text;
    *(int *)ctx += severity == HEFT_WARNING && !strcmp(rule, "npz/metadata");
}

static void lost_metadata_are_reported(void **state)
{
    static const float weight[] = { 1 };
    static const uint64_t dims[] = { 1 };
    const heft_array a = { HEFT_STR("w"), weight, 0, dims, 1, HEFT_F32, NULL };
    const heft_value meta[] = { heft_value_str(HEFT_STR("k"), HEFT_STR("v")),
                                heft_value_int(HEFT_STR("n"), -7),
                                heft_value_float(HEFT_STR("x"), 0.5),
                                heft_value_bool(HEFT_STR("b"), true) };
    const char *path = heft_test_path(*state, "model.npz");
    heft_write_options write = HEFT_WRITE_OPTIONS_INIT;
    heft_save_options opt = HEFT_SAVE_OPTIONS_INIT;
    heft_error err;
    int losses = 0;
    opt.meta = meta;
    opt.meta_count = 4;
    if (!heft_format_find(HEFT_STR("npz")))
        skip();
    heft_assert_fails(heft_array_save(path, &a, 1, &opt, &err), HEFT_E_LOSSY, &err, "4 problems");
    assert_non_null(strstr(err.message, "; the first: metadata "));
    assert_int_equal(heft_test_dir_entries(*state), 0);
    opt.write = &write;
    heft_assert_fails(heft_array_save(path, &a, 1, &opt, &err), HEFT_E_LOSSY, &err, "4 problems");
    write.on_loss = count_losses;
    write.ctx = &losses;
    heft_assert_ok(heft_array_save(path, &a, 1, &opt, &err), &err);
    assert_int_equal(losses, 4);
    write.on_loss = NULL;
    write.allow_loss = true;
    opt.flags = HEFT_SINK_REPLACE;
    heft_assert_ok(heft_array_save(path, &a, 1, &opt, &err), &err);
}

static heft_dtype choose(void *ctx, heft_str array, uint64_t bytes)
{
    assert_int_equal(array.len, 4);
    assert_memory_equal(array.ptr, "data", 4);
    assert_int_equal(bytes, 2);
    return *(const heft_dtype *)ctx;
}

static heft_status open_with(heft_file **f, heft_dtype type, heft_error *err)
{
    static const char bytes[] = "\x93NUMPY\1\0\x38\0{'descr': '<V2', 'fortran_order': False, "
                                "'shape': (2,)}\n\x80\x3f\0\x40";
    heft_array_types types = { &type, choose };
    heft_open_options o = HEFT_OPEN_OPTIONS_INIT;
    heft_source *s;
    o.array_types = &types;
    heft_assert_ok(heft_source_open_memory(&s, bytes, sizeof bytes - 1, err), err);
    return heft_file_open_source(f, s, &o, err);
}

/* NumPy stores bfloat16 as V2, a type without a name. */
static void the_caller_chooses_types_of_arrays_without_one(void **state)
{
    static const struct {
        heft_dtype chosen, got;
    } rows[] = { { HEFT_UNTYPED, HEFT_BF16 }, { HEFT_F16, HEFT_F16 }, { HEFT_I16, HEFT_I16 } };
    heft_error err;
    heft_file *f;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        heft_assert_ok(open_with(&f, rows[i].chosen, &err), &err);
        assert_int_equal(heft_tensor_at(f, 0).dtype, rows[i].got);
        heft_file_close(f);
    }
    heft_assert_fails(open_with(&f, HEFT_F32, &err), HEFT_E_ARGUMENT, &err,
                      "elements of type '<V2' have 2 bytes, and cannot be read as f32");
    (void)state;
}

static void values_have_kind_and_key(void **state)
{
    const heft_value b = heft_value_bool(HEFT_STR("b"), true),
                     i = heft_value_int(HEFT_STR("i"), -7),
                     f = heft_value_float(HEFT_STR("f"), 0.5),
                     t = heft_value_str(HEFT_STR("t"), HEFT_STR("v"));
    (void)state;
    assert_true(b.kind == HEFT_KIND_BOOL && b.as.b && b.key.len == 1 && *b.key.ptr == 'b');
    assert_true(i.kind == HEFT_KIND_INT && i.as.i == -7 && i.stored == HEFT_UNTYPED);
    assert_true(f.kind == HEFT_KIND_FLOAT && f.as.f == 0.5 && *f.key.ptr == 'f');
    assert_true(t.kind == HEFT_KIND_STR && t.as.s.len == 1 && *t.as.s.ptr == 'v');
}

static void a_refused_save_leaves_no_file(void **state)
{
    static const float weight[] = { 1 };
    static const uint64_t dims[] = { 1 };
    heft_value list = { HEFT_KIND_LIST, HEFT_UNTYPED, HEFT_STR("k"), { .b = false } };
    heft_array a = { HEFT_STR("w"), weight, 3, dims, 1, HEFT_F32, NULL };
    heft_save_options opt = HEFT_SAVE_OPTIONS_INIT;
    heft_error err;
    const char *path = heft_test_path(*state, "model.safetensors");
    heft_assert_fails(heft_array_save(heft_test_path(*state, "model.x"), &a, 1, NULL, &err),
                      HEFT_E_ARGUMENT, &err, "no format matches the suffix");
    heft_assert_fails(heft_array_save(path, &a, 1, NULL, &err), HEFT_E_ARGUMENT, &err,
                      "need 4 bytes, 3 were given");
    a.bytes = 0;
    opt.meta = &list;
    opt.meta_count = 1;
    heft_assert_fails(heft_array_save(path, &a, 1, &opt, &err), HEFT_E_ARGUMENT, &err,
                      "list or map");
    a.data = NULL;
    heft_assert_fails(heft_array_save(path, &a, 1, NULL, &err), HEFT_E_ARGUMENT, &err,
                      "need 4 bytes");
    assert_int_equal(heft_test_dir_entries(*state), 0);
}

static void a_read_without_memory_leaks_nothing(void **state)
{
    heft_test_memory m;
    heft_array a;
    heft_error err;
    heft_bytes b = heft_test_model("safetensors", tensors, HEFT_COUNT(tensors));
    heft_test_memory_init(&m, 0);
    heft_file *f = heft_test_opened(b, &m.host, false);
    bool failed = true;
    /* The file keeps which tensors are quantised from the first cast on: see test_schemes.c. */
    heft_assert_ok(heft_array_read(&a, f, HEFT_STR("f32"), HEFT_F16, NULL, 0, &err), &err);
    heft_array_free(&a);
    for (uint32_t i = 1; failed; i++) {
        uint64_t before = atomic_load(&m.live);
        heft_test_memory_rewind(&m);
        m.fail_at = i;
        heft_status st = heft_array_read(&a, f, HEFT_STR("f32"), HEFT_F16, NULL, 0, &err);
        failed = st != HEFT_OK;
        if (failed)
            heft_assert_status(st, HEFT_E_NOMEM, &err);
        heft_array_free(&a);
        assert_int_equal(atomic_load(&m.live), before);
    }
    m.fail_at = 0;
    heft_file_close(f);
    heft_assert_all_freed(&m);
    heft_test_free(&b);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tensor_is_read_as_any_type),
        cmocka_unit_test(quantized_blocks_are_cast_to_elements),
        cmocka_unit_test(unknown_names_and_short_buffers_are_refused),
        cmocka_unit_test(a_sparse_tensor_is_refused),
        cmocka_unit_test(views_are_aligned_or_copied),
        cmocka_unit_test(views_and_reads_check_the_digest),
        cmocka_unit_test_setup_teardown(arrays_are_saved_and_read_again, heft_test_dir_make,
                                        heft_test_dir_remove),
        cmocka_unit_test(the_caller_chooses_types_of_arrays_without_one),
        cmocka_unit_test(values_have_kind_and_key),
        cmocka_unit_test_setup_teardown(lost_metadata_are_reported, heft_test_dir_make,
                                        heft_test_dir_remove),
        cmocka_unit_test_setup_teardown(a_refused_save_leaves_no_file, heft_test_dir_make,
                                        heft_test_dir_remove),
        cmocka_unit_test(a_read_without_memory_leaks_nothing),
    };
    return cmocka_run_group_tests_name("arrays", tests, NULL, NULL);
}
