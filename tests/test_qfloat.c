/* test_qfloat.c - tests of quantised tensors that become Burn's, as a program sees them. NumPy
 * judges their bytes: see check_qfloat.py. */
#include "models.h"

#include <heft/private.h>
#include <heft/quantise.h>

enum { ROWS = 3, COLUMNS = 36, SCALES = 3, BYTES = ROWS * COLUMNS + 4 * SCALES };

static const test_tensor tensors[] = { { "l.weight", HEFT_I8, 2, { ROWS, COLUMNS } },
                                       { "l.weight_scale", HEFT_F16, 2, { ROWS, 1 } },
                                       { "norm.weight", HEFT_F16, 1, { 8 } } };

static bool is(heft_str s, const char *text)
{
    return s.len == strlen(text) && !memcmp(s.ptr, text, s.len);
}

static heft_status plan(heft_quantisation **q, const heft_file *f, heft_error *err)
{
    heft_quantise_options o = HEFT_QUANTISE_OPTIONS_INIT;
    o.method = "qfloat";
    return heft_quantisation_open(q, f, &o, err);
}

typedef struct planned {
    heft_bytes b;
    heft_file *f;
    heft_quantisation *q;
} planned;

static planned begin(void)
{
    heft_error err;
    planned p = { .b = heft_test_model("safetensors", tensors, 3) };
    p.f = heft_test_opened(p.b, NULL, true);
    heft_assert_ok(plan(&p.q, p.f, &err), &err);
    return p;
}

static void end(planned *p)
{
    heft_quantisation_close(p->q);
    heft_file_close(p->f);
    heft_test_free(&p->b);
}

static void integers_and_scales_are_one_tensor(void **state)
{
    planned p = begin();
    const heft_file *made = heft_quantisation_file(p.q);
    (void)state;
    assert_int_equal(heft_tensor_count(made), 2);
    uint32_t id = heft_tensor_find(made, HEFT_STR("l.weight"));
    heft_tensor t = heft_tensor_at(made, id);
    assert_int_equal(t.dtype, HEFT_U8);
    assert_int_equal(t.rank, 2);
    assert_int_equal(t.dims[1], COLUMNS);
    assert_int_equal(heft_part_at(made, t.first_part).length, BYTES);
    assert_true(is(heft_tensor_layout_name(made, id), "burn.qfloat"));
    assert_int_equal(heft_attribute_count(made, id), 1);
    assert_true(is(heft_attribute_at(made, id, 0).as.s,
                   "{\"QFloat\":{\"value\":\"Q8F\",\"param\":\"F32\",\"store\":"
                   "\"Native\",\"level\":{\"Block\":{\"storage\":[36,1,1,1,1],"
                   "\"len\":1}},\"mode\":\"Symmetric\"}}"));
    end(&p);
}

static void any_pieces_have_the_same_bytes(void **state)
{
    uint8_t whole[BYTES], pieces[BYTES];
    heft_error err;
    planned p = begin();
    const heft_file *made = heft_quantisation_file(p.q);
    (void)state;
    uint32_t part = heft_tensor_at(made, heft_tensor_find(made, HEFT_STR("l.weight"))).first_part;
    heft_assert_ok(heft_part_read(whole, made, part, 0, BYTES, &err), &err);
    for (size_t size = 1; size < BYTES; size++) {
        memset(pieces, 0, sizeof pieces);
        for (size_t at = BYTES; at;) { /* backwards */
            size_t n = at < size ? at : size;
            at -= n;
            heft_assert_ok(heft_part_read(pieces + at, made, part, at, n, &err), &err);
        }
        assert_memory_equal(whole, pieces, BYTES);
    }
    end(&p);
}

static void the_method_is_not_listed_and_has_no_settings(void **state)
{
    heft_error err;
    heft_blob text;
    planned p = begin();
    (void)state;
    for (uint32_t i = 0; heft_quantise_method_at(i).name; i++)
        assert_string_not_equal(heft_quantise_method_at(i).name, "qfloat");
    heft_status st = heft_quantisation_config(&text, p.q, HEFT_STR("{}"), &err);
    heft_assert_fails(st, HEFT_E_UNSUPPORTED, &err, "qfloat has no settings");
    end(&p);
}

static void missing_memory_is_reported(void **state)
{
    heft_test_memory m;
    heft_error err;
    heft_status st = HEFT_E_NOMEM;
    (void)state;
    heft_test_memory_init(&m, 0);
    heft_bytes b = heft_test_model("safetensors", tensors, 3);
    heft_file *f = heft_test_opened(b, &m.host, true);
    for (uint32_t fail_at = 1; st == HEFT_E_NOMEM; fail_at++) {
        heft_quantisation *q;
        heft_test_memory_rewind(&m);
        m.fail_at = fail_at;
        st = plan(&q, f, &err);
        heft_assert_error_set(st, &err);
        heft_quantisation_close(q);
    }
    heft_assert_ok(st, &err);
    heft_file_close(f);
    heft_test_free(&b);
    heft_assert_all_freed(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_and_scales_are_one_tensor),
        cmocka_unit_test(any_pieces_have_the_same_bytes),
        cmocka_unit_test(the_method_is_not_listed_and_has_no_settings),
        cmocka_unit_test(missing_memory_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
