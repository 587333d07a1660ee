/* test_slices.c - heft_array_read_slice() against elements selected one by one from the tensor. */
#include "models.h"

#include <unistd.h>

static const test_tensor tensors[] = {
    { "u8", HEFT_U8, 1, { 3000 } },         { "f32", HEFT_F32, 3, { 7, 40, 33 } },
    { "i64", HEFT_I64, 4, { 3, 5, 4, 6 } }, { "f64", HEFT_F64, 2, { 70, 300 } },
    { "bf16", HEFT_BF16, 2, { 2000, 3 } },  { "empty", HEFT_F32, 2, { 0, 7 } },
    { "scalar", HEFT_F64, 0, { 0 } },       { "flags", HEFT_BOOL, 2, { 90, 70 } },
};

/* Select indices of a dimension at random; often all, and often in steps. */
static heft_slice any_slice(uint64_t *seed, uint64_t dim)
{
    heft_slice s = { 0, dim, 1 };
    if (!dim || !heft_test_random(seed, 3))
        return s;
    s.start = heft_test_random(seed, (uint32_t)dim);
    bool is_back = heft_test_random(seed, 2), is_near = heft_test_random(seed, 2);
    uint64_t distance = 1 + heft_test_random(seed, is_near ? 3 : (uint32_t)dim + 3);
    uint64_t most = (is_back ? s.start : dim - 1 - s.start) / distance + 1;
    s.step = is_back ? -(int64_t)distance : (int64_t)distance;
    s.count = heft_test_random(seed, (uint32_t)most + 1);
    return s;
}

/* Copy the selected elements of whole, which has elements of `size` bytes. */
static size_t select_elements(uint8_t *out, const uint8_t *whole, const heft_tensor *t,
                              const heft_slice *axes, size_t size)
{
    size_t count = 1;
    for (uint32_t i = 0; i < t->rank; i++)
        count *= (size_t)axes[i].count;
    for (size_t k = 0; k < count; k++) {
        uint64_t element = 0, stride = 1, rest = k;
        for (uint32_t i = t->rank; i--; stride *= t->dims[i]) {
            uint64_t index = rest % axes[i].count;
            element += (axes[i].start + index * (uint64_t)axes[i].step) * stride;
            rest /= axes[i].count;
        }
        memcpy(out + k * size, whole + element * size, size);
    }
    return count * size;
}

static void assert_slices(const heft_file *f, const char *name, heft_dtype as, uint32_t rounds)
{
    heft_array whole;
    heft_error err;
    heft_slice axes[4];
    uint64_t seed = 7;
    heft_tensor t = heft_tensor_at(f, heft_tensor_find(f, heft_str_from(name)));
    heft_assert_ok(heft_array_read(&whole, f, t.name, as, NULL, 0, &err), &err);
    size_t size = heft_dtype_get(whole.dtype)->block_bytes;
    uint8_t *expected = malloc((size_t)whole.bytes + 1), *got = malloc((size_t)whole.bytes + 1);
    while (rounds--) {
        for (uint32_t i = 0; i < t.rank; i++)
            axes[i] = any_slice(&seed, t.dims[i]);
        size_t bytes = select_elements(expected, whole.data, &t, axes, size);
        got[bytes] = 0xA7;
        heft_assert_ok(heft_array_read_slice(got, bytes, f, t.name, axes, as, &err), &err);
        assert_memory_equal(got, expected, bytes);
        assert_int_equal(got[bytes], 0xA7);
    }
    free(expected);
    free(got);
    heft_array_free(&whole);
}

static void slices_have_the_selected_elements(void **state)
{
    heft_write_options write = HEFT_WRITE_OPTIONS_INIT;
    heft_convert_options opt = HEFT_CONVERT_OPTIONS_INIT;
    write.storage.encoding = HEFT_ZSTD;
    opt.write = &write;
    heft_bytes files[] = {
        heft_test_model("safetensors", tensors, HEFT_COUNT(tensors)),
        heft_test_converted("safetensors", tensors, HEFT_COUNT(tensors), "ztensor", &opt),
    };
    for (size_t i = 0; i < HEFT_COUNT(files); i++) {
        heft_file *f = heft_test_opened(files[i], NULL, true);
        for (size_t k = 0; k < HEFT_COUNT(tensors); k++) {
            assert_slices(f, tensors[k].name, HEFT_UNTYPED, 100);
            assert_slices(f, tensors[k].name, HEFT_F32, 100);
        }
        heft_file_close(f);
        heft_test_free(&files[i]);
    }
    (void)state;
}

static void slices_of_block_types_begin_within_blocks(void **state)
{
    static const test_tensor quantized[] = { { "q", HEFT_Q8_0, 2, { 9, 320 } } };
    heft_slice part[] = { { 1, 1, 1 }, { 3, 40, 1 } };
    heft_error err;
    float got[40];
    heft_bytes b = heft_test_model("gguf", quantized, 1);
    heft_file *f = heft_test_opened(b, NULL, false);
    assert_slices(f, "q", HEFT_F32, 300);
    heft_assert_fails(
        heft_array_read_slice(got, sizeof got, f, HEFT_STR("q"), part, HEFT_UNTYPED, &err),
        HEFT_E_UNSUPPORTED, &err, "elements of q8_0 share bytes");
    heft_assert_fails(
        heft_array_read_slice(got, sizeof got, f, HEFT_STR("q"), part, HEFT_Q4_0, &err),
        HEFT_E_UNSUPPORTED, &err, "q8_0 cannot be cast to q4_0");
    heft_file_close(f);
    heft_test_free(&b);
    (void)state;
}

static void slices_outside_of_the_tensor_are_refused(void **state)
{
    static const heft_slice wrong[] = {
        { 3000, 1, 1 },       { 2999, 2, 1 }, { 0, 2, 0 },         { 0, 2, -1 },
        { 5, 7, -1 },         { 0, 2, 3000 }, { 0, 2, INT64_MIN }, { UINT64_MAX, 1, 1 },
        { 1, UINT64_MAX, 1 }, { 0, 3001, 1 }, { 1, 3, INT64_MAX }, { 2999, 1501, -2 }
    };
    static const heft_slice right[] = { { 2999, 1, 0 },       { 0, 2, 2999 }, { 5, 6, -1 },
                                        { 2999, 1500, -2 },   { 9999, 0, 0 }, { 7, 1, INT64_MIN },
                                        { UINT64_MAX, 0, -1 } };
    uint8_t got[3001];
    heft_error err;
    heft_bytes b = heft_test_model("safetensors", tensors, HEFT_COUNT(tensors));
    heft_file *f = heft_test_opened(b, NULL, false);
    for (size_t i = 0; i < HEFT_COUNT(wrong); i++)
        heft_assert_fails(heft_array_read_slice(got, sizeof got, f, HEFT_STR("u8"), &wrong[i],
                                                HEFT_UNTYPED, &err),
                          HEFT_E_ARGUMENT, &err, "leaves dimension 0, whose size is 3000");
    for (size_t i = 0; i < HEFT_COUNT(right); i++)
        heft_assert_ok(heft_array_read_slice(got, sizeof got, f, HEFT_STR("u8"), &right[i],
                                             HEFT_UNTYPED, &err),
                       &err);
    heft_assert_fails(
        heft_array_read_slice(got, 5, f, HEFT_STR("u8"), &right[2], HEFT_UNTYPED, &err),
        HEFT_E_ARGUMENT, &err, "has 6 elements of u8, but the buffer has 5 bytes");
    heft_assert_fails(
        heft_array_read_slice(got, 5, f, HEFT_STR("x"), &right[2], HEFT_UNTYPED, &err),
        HEFT_E_NOTFOUND, &err, "there is no tensor 'x'");
    heft_file_close(f);
    heft_test_free(&b);
    (void)state;
}

static void a_slice_without_memory_leaks_nothing(void **state)
{
    heft_test_memory m;
    heft_slice axes[] = { { 1, 3, 2 }, { 0, 40, 1 }, { 32, 17, -2 } };
    uint8_t got[3 * 40 * 17 * 4];
    heft_error err;
    heft_write_options write = HEFT_WRITE_OPTIONS_INIT;
    heft_convert_options opt = HEFT_CONVERT_OPTIONS_INIT;
    write.storage.encoding = HEFT_ZSTD;
    opt.write = &write;
    heft_bytes b = heft_test_converted("safetensors", tensors, HEFT_COUNT(tensors), "ztensor",
                                       &opt);
    heft_test_memory_init(&m, 0);
    heft_file *f = heft_test_opened(b, &m.host, false);
    for (int k = 0; k < 2; k++) {
        heft_str name = heft_test_str(k ? "flags" : "f32"); /* random numbers are not compressed */
        size_t bytes = k ? 3 * 40 : sizeof got;
        heft_status st = HEFT_E_NOMEM;
        for (uint32_t i = 1; st; i++) {
            uint64_t before = atomic_load(&m.live);
            heft_test_memory_rewind(&m);
            m.fail_at = i;
            st = heft_array_read_slice(got, bytes, f, name, axes, HEFT_UNTYPED, &err);
            assert_true(st == HEFT_OK || st == HEFT_E_NOMEM);
            assert_int_equal(atomic_load(&m.live), before);
        }
        m.fail_at = 0;
    }
    heft_file_close(f);
    heft_assert_all_freed(&m);
    heft_test_free(&b);
    (void)state;
}

/* A file that shrinks while it is open: an error, and no signal. */
static void a_truncated_file_is_an_error(void **state)
{
    const char *path = heft_test_path(*state, "model.safetensors");
    heft_slice axes[] = { { 6, 1, 1 }, { 0, 40, 1 }, { 0, 17, 2 } };
    uint8_t got[40 * 17 * 4];
    heft_error err;
    heft_test_fault_handler(*state);
    heft_bytes b = heft_test_model("safetensors", tensors, HEFT_COUNT(tensors));
    for (uint8_t access = HEFT_ACCESS_AUTO; access <= HEFT_ACCESS_READ; access++) {
        heft_open_options opt = HEFT_OPEN_OPTIONS_INIT;
        heft_file *f;
        heft_test_save(path, b.p, b.len);
        opt.access = access;
        heft_assert_ok(heft_file_open(&f, path, &opt, &err), &err);
        assert_int_equal(heft_file_is_mapped(f), access != HEFT_ACCESS_READ);
        heft_assert_ok(
            heft_array_read_slice(got, sizeof got, f, HEFT_STR("f32"), axes, HEFT_UNTYPED, &err),
            &err);
        assert_int_equal(truncate(path, 4096), 0);
        heft_assert_status(
            heft_array_read_slice(got, sizeof got, f, HEFT_STR("f32"), axes, HEFT_UNTYPED, &err),
            HEFT_E_IO, &err);
        heft_assert_status(
            heft_array_read_slice(got, sizeof got / 2, f, HEFT_STR("f32"), axes, HEFT_F16, &err),
            HEFT_E_IO, &err);
        heft_file_close(f);
    }
    heft_test_free(&b);
}

static void an_unknown_access_is_refused(void **state)
{
    heft_open_options opt = HEFT_OPEN_OPTIONS_INIT;
    heft_file *f;
    heft_error err;
    opt.access = HEFT_ACCESS_DIRECT + 1;
    heft_assert_fails(heft_file_open(&f, heft_test_path(*state, "x"), &opt, &err), HEFT_E_ARGUMENT,
                      &err, "access 5 is not a heft_access");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slices_have_the_selected_elements),
        cmocka_unit_test(slices_of_block_types_begin_within_blocks),
        cmocka_unit_test(slices_outside_of_the_tensor_are_refused),
        cmocka_unit_test(a_slice_without_memory_leaks_nothing),
        cmocka_unit_test_setup_teardown(a_truncated_file_is_an_error, heft_test_dir_make,
                                        heft_test_dir_remove),
        cmocka_unit_test_setup_teardown(an_unknown_access_is_refused, heft_test_dir_make,
                                        heft_test_dir_remove),
    };
    return cmocka_run_group_tests_name("slices", tests, NULL, NULL);
}
