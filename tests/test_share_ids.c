/* test_share_ids.c - the ids of files and plans, by which a share knows the records of others. */
#include <heft/private.h>
#include <heft/share.h>

#include "core/read/file.h"
#include "models.h"

static const test_tensor tensors[] = {
    { "a", HEFT_F32, 1, { 1000 } }, { "b", HEFT_F32, 2, { 33, 41 } }, { "c", HEFT_F32, 1, { 7 } },
    { "d", HEFT_F32, 1, { 900 } },  { "e", HEFT_F32, 1, { 500 } },
};

static heft_hash id_of_bytes(heft_bytes b)
{
    heft_error err;
    heft_hash id;
    heft_file *f = heft_test_opened(b, NULL, false);
    heft_assert_ok(heft_share_file_id(&id, f, &err), &err);
    heft_file_close(f);
    return id;
}

static void the_id_of_a_file_covers_every_byte_of_a_small_file(void **state)
{
    (void)state;
    heft_bytes b = heft_test_model("safetensors", tensors, HEFT_COUNT(tensors));
    heft_hash id = id_of_bytes(b), again = id_of_bytes(b);
    assert_memory_equal(&id, &again, sizeof id);
    for (size_t i = 1; i < 4000; i += 37) {
        b.p[b.len - i] ^= 8;
        again = id_of_bytes(b);
        assert_memory_not_equal(&id, &again, sizeof id);
        b.p[b.len - i] ^= 8;
    }
    heft_test_free(&b);
}

static void the_id_of_a_large_file_has_samples_of_all_of_it(void **state)
{
    enum { MIB = 1 << 20 };
    (void)state;
    heft_bytes b = heft_test_one("safetensors", 8 * MIB);
    heft_hash id = id_of_bytes(b), again;
    for (size_t i = 0; i < 8; i++) { /* every block of 32 KiB has a sample */
        for (size_t k = 0; k < MIB / 16; k++)
            b.p[b.len - 1 - i * MIB - k] ^= 8;
        again = id_of_bytes(b);
        assert_memory_not_equal(&id, &again, sizeof id);
        id = again;
    }
    heft_test_free(&b);
}

static heft_hash id_of_file(const heft_file *f)
{
    heft_hash id;
    heft_error err;
    heft_assert_ok(heft_share_file_id(&id, f, &err), &err);
    return id;
}

/* Change a value without changing a byte of the file. */
static void assert_value_in_id(const heft_file *f, heft_value *v)
{
    const heft_value before = *v;
    heft_hash id = id_of_file(f), other;
    if (v->kind == HEFT_KIND_BOOL)
        v->as.b = !v->as.b;
    else if (v->kind == HEFT_KIND_LIST || v->kind == HEFT_KIND_MAP)
        v->as.container.count++;
    else
        v->as.u++;
    other = id_of_file(f);
    assert_memory_not_equal(&id, &other, sizeof id);
    *v = before;
    other = id_of_file(f);
    assert_memory_equal(&id, &other, sizeof id);
}

static void the_id_of_a_file_covers_metadata_and_attributes(void **state)
{
    static const heft_kind kinds[] = { HEFT_KIND_BOOL, HEFT_KIND_UINT, HEFT_KIND_INT,
                                       HEFT_KIND_LIST, HEFT_KIND_MAP };
    static const uint64_t dims[] = { 0 };
    heft_value values[HEFT_COUNT(kinds)] = { { .as.u = 0 } };
    heft_tensor_spec spec = HEFT_TENSOR_SPEC_INIT;
    heft_write_options opt = HEFT_WRITE_OPTIONS_INIT;
    heft_test_sink sink;
    heft_writer *w;
    heft_error err;
    uint32_t part;
    (void)state;
    opt.version = "1.2"; /* the versions before have only text */
    heft_assert_ok(heft_writer_open(&w, heft_format_find(HEFT_STR("ztensor")),
                                    heft_test_sink_init(&sink, false), &opt, &err),
                   &err);
    for (size_t i = 0; i < HEFT_COUNT(kinds); i++) {
        static char keys[HEFT_COUNT(kinds)][2];
        keys[i][0] = (char)('a' + i);
        values[i].kind = kinds[i];
        values[i].key = heft_test_str(keys[i]);
        heft_assert_ok(heft_writer_add_meta(w, values[i], &err), &err);
        if (kinds[i] == HEFT_KIND_LIST || kinds[i] == HEFT_KIND_MAP)
            heft_assert_ok(heft_writer_end_meta(w, &err), &err);
    }
    spec.name = HEFT_STR("w");
    spec.dtype = HEFT_U8;
    spec.rank = 1;
    spec.dims = dims;
    spec.attributes = values;
    spec.attribute_count = 2;
    heft_assert_ok(heft_writer_add_tensor(&part, w, &spec, &err), &err);
    heft_assert_ok(heft_writer_begin(w, &err), &err);
    heft_assert_ok(heft_writer_finish(w, &err), &err);
    heft_file *f = heft_test_opened((heft_bytes){ sink.p, sink.len }, NULL, false);
    assert_int_equal(f->x.values.len, HEFT_COUNT(kinds));
    for (uint32_t i = 0; i < f->x.values.len; i++)
        assert_value_in_id(f, (heft_value *)f->x.values.ptr + i);
    assert_int_equal(f->x.attrs.len, 2);
    for (uint32_t i = 0; i < f->x.attrs.len; i++)
        assert_value_in_id(f, &((heft_ix_attr_row *)f->x.attrs.ptr + i)->value);
    heft_file_close(f);
    heft_test_sink_free(&sink);
}

static void the_id_of_a_plan_covers_each_kind_of_metadata(void **state)
{
    static const uint16_t numbers[] = { 1, 2, 3 };
    const heft_value values[] = {
        { .kind = HEFT_KIND_STR, .as.s = heft_test_str("text") },
        { .kind = HEFT_KIND_STR, .as.s = heft_test_str("texts") },
        { .kind = HEFT_KIND_BOOL, .as.b = true },
        { .kind = HEFT_KIND_BOOL, .as.b = false },
        { .kind = HEFT_KIND_UINT, .as.u = 7 },
        { .kind = HEFT_KIND_FLOAT, .as.f = 7.5 },
        { .kind = HEFT_KIND_BYTES, .as.s = heft_test_str("text") },
        { .kind = HEFT_KIND_NULL },
        { .kind = HEFT_KIND_ARRAY, .as.array = { numbers, 3, HEFT_U16 } },
        { .kind = HEFT_KIND_ARRAY, .as.array = { numbers, 2, HEFT_U16 } },
    };
    heft_hash ids[HEFT_COUNT(values)];
    heft_bytes b = heft_test_model("ztensor", tensors, HEFT_COUNT(tensors));
    heft_file *in = heft_test_opened(b, NULL, false);
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(values); i++) {
        heft_convert_options opt = HEFT_CONVERT_OPTIONS_INIT;
        heft_value value = values[i];
        heft_share_plan *plan;
        heft_error err;
        value.key = heft_test_str("key");
        opt.set = &value;
        opt.set_count = 1;
        heft_assert_ok(
            heft_share_open(&plan, in, heft_format_find(HEFT_STR("ztensor")), 2, &opt, &err), &err);
        ids[i] = heft_share_id(plan);
        heft_share_close(plan);
        for (size_t k = 0; k < i; k++)
            assert_memory_not_equal(&ids[i], &ids[k], sizeof *ids);
    }
    heft_file_close(in);
    heft_test_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_id_of_a_file_covers_every_byte_of_a_small_file),
        cmocka_unit_test(the_id_of_a_large_file_has_samples_of_all_of_it),
        cmocka_unit_test(the_id_of_a_file_covers_metadata_and_attributes),
        cmocka_unit_test(the_id_of_a_plan_covers_each_kind_of_metadata),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
