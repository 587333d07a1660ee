/* test_blend.c - tests of blends: numbers of settings, memory that runs out, any way to read the
 * result.  check_blend.py judges the formulas. */
#include "blend/blending.h"
#include "models.h"

#include <math.h>

static const test_tensor tensors[] = {
    { "l.0.w", HEFT_F32, 2, { 130, 70 } }, { "n", HEFT_I64, 1, { 9 } },
    { "l.1.w", HEFT_F16, 2, { 70, 33 } },  { "empty", HEFT_F32, 2, { 0, 7 } },
    { "scalar", HEFT_BF16, 0, { 0 } },
};

static const char *const settings[] = {
    "{\"method\":\"linear\",\"models\":[{\"model\":\"a\"},{\"model\":\"b\"}]}",
    "{\"method\":\"slerp\",\"base_model\":\"a\",\"models\":[{\"model\":\"b\"}]}",
    "{\"method\":\"ties\",\"base_model\":\"a\",\"models\":[{\"model\":\"b\","
    "\"parameters\":{\"density\":[{\"filter\":\"l.\",\"value\":[0.25,0.75]}]}}],"
    "\"parameters\":{\"density\":0.5}}",
    ("{\"method\":\"dare_ties\",\"base_model\":\"a\",\"models\":[{\"model\":\"b\","
     "\"parameters\":{\"density\":[{\"filter\":\"l.0\",\"value\":0.5},{\"value\":0.9}]}}]}"),
};

/* ---- numbers ---- */

static void assert_number(const char *text)
{
    double v;
    assert_true(heft_blend_number(&v, heft_test_str(text)));
    if (v != strtod(text, NULL))
        fail_msg("%s becomes %.17g", text, v);
}

static void numbers_are_rounded_as_strtod_rounds(void **state)
{
    static const char *const texts[] = { "0",
                                         "-0",
                                         "1",
                                         "0.1",
                                         "1e22",
                                         "1e-22",
                                         "0.3333333333333333",
                                         "9007199254740993",
                                         "1234567890123456789",
                                         "5e-1",
                                         ".5",
                                         "2.5E+3",
                                         "0.000000000000000000001" };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(texts); i++)
        assert_number(texts[i]);
    for (uint64_t x = 1, i = 0; i < 200000; i++) {
        char text[64];
        x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        uint64_t digits = (x >> 2) % UINT64_C(1000000000000000000) >> (x % 50);
        int scale = (int)(x >> 40) % 23;
        snprintf(text, sizeof text, "%llue%d", (unsigned long long)digits, i % 2 ? scale : -scale);
        assert_number(text);
    }
}

static void other_texts_are_no_numbers(void **state)
{
    static const char *const texts[] = { "",   "-",    ".",      "e1",
                                         "1e", "1e+",  "1.2.3",  " 1",
                                         "1 ", "x",    "nan",    "0x10",
                                         "+1", "1e23", "1e-400", "12345678901234567890" };
    double v;
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(texts); i++)
        assert_false(heft_blend_number(&v, heft_test_str(texts[i])));
}

/* ---- slerp without a C library ---- */

static void the_shares_of_slerp_are_those_of_libm(void **state)
{
    (void)state;
    for (int i = -9995; i <= 9995; i++)
        for (int k = 0; k <= 8; k++) {
            float share[2];
            double c = i / 10000.0, t = k / 8.0, angle = acos(c);
            heft_blend_slerp(share, c, t);
            double first = sin((1 - t) * angle) / sin(angle), second = sin(t * angle) / sin(angle);
            assert_true(fabs(share[0] - first) <= 6e-8 * fabs(first) + 1e-15);
            assert_true(fabs(share[1] - second) <= 6e-8 * fabs(second) + 1e-15);
        }
}

/* ---- results ---- */

typedef struct blended {
    heft_bytes bytes[2];
    heft_file *files[2];
    heft_blend_settings *s;
    heft_blend *b;
} blended;

static heft_bytes other_model(const heft_convert_options *o)
{
    static const test_tensor shifted[] = {
        /* another order gives other numbers */
        { "scalar", HEFT_BF16, 0, { 0 } },     { "l.1.w", HEFT_F16, 2, { 70, 33 } },
        { "n", HEFT_I64, 1, { 9 } },           { "empty", HEFT_F32, 2, { 0, 7 } },
        { "l.0.w", HEFT_F32, 2, { 130, 70 } },
    };
    return heft_test_converted("safetensors", shifted, HEFT_COUNT(shifted), "ztensor", o);
}

static heft_status open_blend(blended *t, const char *text, const heft_host *host, heft_error *err)
{
    heft_blend_options o = HEFT_BLEND_OPTIONS_INIT;
    o.allow_nan = true;
    heft_status st = HEFT_OK;
    for (int i = 0; i < 2 && !st; i++)
        st = heft_test_open(&t->files[i], t->bytes[i], host, err);
    if (!st)
        st = heft_blend_settings_read(&t->s, heft_test_str(text), host, err);
    return st ? st : heft_blend_open(&t->b, t->s, (const heft_file *const *)t->files, &o, err);
}

static void close_blend(blended *t)
{
    heft_blend_close(t->b);
    heft_blend_settings_close(t->s);
    heft_file_close(t->files[0]);
    heft_file_close(t->files[1]);
    t->b = NULL;
    t->s = NULL;
    t->files[0] = t->files[1] = NULL;
}

static heft_status read_all(uint8_t *to, size_t *len, const heft_file *f, size_t step,
                            heft_error *err)
{
    *len = 0;
    for (uint32_t t = 0; t < heft_tensor_count(f); t++) {
        size_t bytes = (size_t)heft_tensor_bytes(f, t);
        for (size_t at = 0, n; at < bytes; at += n) {
            n = bytes - at < step ? bytes - at : step;
            heft_status st = heft_part_read(to + *len, f, heft_tensor_at(f, t).first_part, at, n,
                                            err);
            if (st)
                return st;
            *len += n;
        }
    }
    return HEFT_OK;
}

enum { MOST = 64 << 10 };

static void any_way_to_read_gives_the_same_bytes(void **state)
{
    static uint8_t whole[MOST], parts[MOST];
    heft_write_options write = HEFT_WRITE_OPTIONS_INIT;
    heft_convert_options zstd = HEFT_CONVERT_OPTIONS_INIT;
    (void)state;
    zstd.write = &write;
    write.storage.encoding = HEFT_ZSTD;
    for (size_t i = 0; i < HEFT_COUNT(settings); i++) {
        blended t = { .bytes = { heft_test_model("safetensors", tensors, HEFT_COUNT(tensors)),
                                 other_model(NULL) } };
        size_t len, again;
        heft_error err;
        heft_assert_ok(open_blend(&t, settings[i], NULL, &err), &err);
        heft_assert_ok(read_all(whole, &len, heft_blend_file(t.b), MOST, &err), &err);
        heft_assert_ok(read_all(parts, &again, heft_blend_file(t.b), 977, &err), &err);
        assert_int_equal(len, again);
        assert_memory_equal(whole, parts, len);
        close_blend(&t);
        heft_test_free(&t.bytes[1]);
        t.bytes[1] = other_model(&zstd);
        heft_assert_ok(open_blend(&t, settings[i], NULL, &err), &err);
        heft_assert_ok(read_all(parts, &again, heft_blend_file(t.b), 3001, &err), &err);
        assert_memory_equal(whole, parts, len);
        close_blend(&t);
        heft_test_free(&t.bytes[0]);
        heft_test_free(&t.bytes[1]);
    }
}

static void memory_that_runs_out_is_reported(void **state)
{
    static uint8_t out[MOST];
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(settings); i++) {
        blended t = { .bytes = { heft_test_model("safetensors", tensors, HEFT_COUNT(tensors)),
                                 other_model(NULL) } };
        heft_status st = HEFT_E_NOMEM;
        for (uint32_t n = 1; st; n++) {
            heft_test_memory m;
            heft_error err;
            size_t len;
            heft_test_memory_init(&m, n);
            st = open_blend(&t, settings[i], &m.host, &err);
            if (!st)
                st = read_all(out, &len, heft_blend_file(t.b), MOST, &err);
            if (st)
                heft_assert_status(st, HEFT_E_NOMEM, &err);
            close_blend(&t);
            heft_assert_all_freed(&m);
            assert_true(n < 1000);
        }
        heft_test_free(&t.bytes[0]);
        heft_test_free(&t.bytes[1]);
    }
}

static bool stop(void *ctx, uint64_t done, uint64_t total)
{
    assert_true(done <= total);
    ++*(int *)ctx;
    return false;
}

static void reading_before_can_be_stopped(void **state)
{
    (void)state;
    blended t = { .bytes = { heft_test_model("safetensors", tensors, HEFT_COUNT(tensors)),
                             other_model(NULL) } };
    heft_blend_options o = HEFT_BLEND_OPTIONS_INIT;
    heft_blend *b;
    heft_error err;
    int calls = 0;
    heft_assert_ok(open_blend(&t, settings[1], NULL, &err), &err);
    o.progress = stop;
    o.ctx = &calls;
    heft_status st = heft_blend_open(&b, t.s, (const heft_file *const *)t.files, &o, &err);
    heft_assert_status(st, HEFT_E_CANCELLED, &err);
    assert_null(b);
    assert_true(calls > 0);
    o.plan_only = true;
    calls = 0;
    heft_assert_ok(heft_blend_open(&b, t.s, (const heft_file *const *)t.files, &o, &err), &err);
    assert_int_equal(calls, 0);
    heft_blend_close(b);
    close_blend(&t);
    heft_test_free(&t.bytes[0]);
    heft_test_free(&t.bytes[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_rounded_as_strtod_rounds),
        cmocka_unit_test(other_texts_are_no_numbers),
        cmocka_unit_test(the_shares_of_slerp_are_those_of_libm),
        cmocka_unit_test(any_way_to_read_gives_the_same_bytes),
        cmocka_unit_test(memory_that_runs_out_is_reported),
        cmocka_unit_test(reading_before_can_be_stopped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
