/* test_qfloat.c - tests of quantised tensors that become Burn's, and are decoded, as a program sees
 * them. NumPy judges their bytes and numbers: see check_qfloat.py, check_qfloat_decoding.py. */
#include "models.h"

#include <heft/private.h>
#include <heft/quantise.h>
#include <heft/scheme.h>

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

/* ---- decoding ---- */

typedef struct numbers {
    heft_schemes *schemes;
    heft_file *f;
} numbers;

static heft_status decode(numbers *n, const heft_file *f, heft_error *err)
{
    heft_decode_options o = HEFT_DECODE_OPTIONS_INIT;
    o.as = HEFT_F32;
    heft_status st = heft_schemes_open(&n->schemes, f, NULL, err);
    return st ? st : heft_schemes_decode(&n->f, f, n->schemes, &o, err);
}

static void release(numbers *n)
{
    heft_file_close(n->f);
    heft_schemes_close(n->schemes);
    *n = (numbers){ NULL, NULL };
}

static heft_status read_numbers(float *out, const heft_file *f, uint64_t from, size_t bytes,
                                heft_error *err)
{
    uint32_t part = heft_tensor_at(f, heft_tensor_find(f, HEFT_STR("l.weight"))).first_part;
    return heft_part_read((uint8_t *)out + from, f, part, from, bytes, err);
}

/* The bytes of Burn's tensor are computed: they are read, and not mapped. */
static void what_is_copied_is_decoded_to_the_same_numbers(void **state)
{
    float source[ROWS * COLUMNS], whole[ROWS * COLUMNS], pieces[ROWS * COLUMNS];
    numbers of_source = { NULL, NULL }, of_copy = { NULL, NULL };
    heft_error err;
    planned p = begin();
    (void)state;
    heft_assert_ok(decode(&of_source, p.f, &err), &err);
    heft_assert_ok(decode(&of_copy, heft_quantisation_file(p.q), &err), &err);
    heft_quantised one = heft_schemes_at(of_copy.schemes, 0);
    assert_true(is(one.scheme, "qfloat") && is(one.variant, "Q8F") && one.bits == 8);
    assert_true(one.has_block && one.block[0] == 1 && one.block[1] == COLUMNS);
    heft_assert_ok(read_numbers(source, of_source.f, 0, sizeof source, &err), &err);
    heft_assert_ok(read_numbers(whole, of_copy.f, 0, sizeof whole, &err), &err);
    assert_memory_equal(source, whole, sizeof source);
    for (size_t size = 1; size < sizeof pieces; size++) {
        for (size_t at = 0, n; at < sizeof pieces; at += n) {
            n = sizeof pieces - at < size ? sizeof pieces - at : size;
            heft_assert_ok(read_numbers(pieces, of_copy.f, at, n, &err), &err);
        }
        assert_memory_equal(whole, pieces, sizeof whole);
    }
    release(&of_source);
    release(&of_copy);
    end(&p);
}

static void a_cast_of_its_bytes_is_refused(void **state)
{
    heft_array array;
    heft_error err;
    planned p = begin();
    (void)state;
    heft_status st = heft_array_read(&array, heft_quantisation_file(p.q), HEFT_STR("l.weight"),
                                     HEFT_F32, NULL, 0, &err);
    heft_assert_fails(st, HEFT_E_UNSUPPORTED, &err, "tensor 'l.weight'");
    end(&p);
}

static void missing_memory_for_numbers_is_reported(void **state)
{
    float out[ROWS * COLUMNS];
    heft_test_memory m;
    heft_error err;
    heft_status st = HEFT_E_NOMEM;
    heft_bytes raw = heft_test_model("safetensors", tensors, 3);
    (void)state;
    heft_test_memory_init(&m, 0);
    heft_file *f = heft_test_opened(raw, &m.host, true);
    heft_quantisation *q;
    heft_assert_ok(plan(&q, f, &err), &err);
    for (uint32_t fail_at = 1; st == HEFT_E_NOMEM; fail_at++) {
        numbers n = { NULL, NULL };
        heft_test_memory_rewind(&m);
        m.fail_at = fail_at;
        st = decode(&n, heft_quantisation_file(q), &err);
        if (!st)
            st = read_numbers(out, n.f, 0, sizeof out, &err);
        heft_assert_error_set(st, &err);
        release(&n);
    }
    heft_assert_ok(st, &err);
    m.fail_at = 0;
    heft_quantisation_close(q);
    heft_file_close(f);
    heft_test_free(&raw);
    heft_assert_all_freed(&m);
}

/* ---- the method ---- */

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
        cmocka_unit_test(what_is_copied_is_decoded_to_the_same_numbers),
        cmocka_unit_test(a_cast_of_its_bytes_is_refused),
        cmocka_unit_test(missing_memory_for_numbers_is_reported),
        cmocka_unit_test(the_method_is_not_listed_and_has_no_settings),
        cmocka_unit_test(missing_memory_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
