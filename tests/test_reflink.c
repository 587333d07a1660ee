/* test_reflink.c - payload that a sink shares with the source (reflink): the same output, and only
 * for bytes that are neither changed nor checked. */
#include "models.h"

enum { MIB = 1 << 20, ALIGN = 4096 };

static const test_tensor tensors[] = {
    { "small", HEFT_F32, 1, { 3 } },
    { "large", HEFT_F32, 2, { 700, 1001 } },
    { "whole", HEFT_F32, 1, { MIB / 4 } },
    { "short", HEFT_F32, 1, { 5000 } },
    { "last", HEFT_F32, 2, { 1, MIB / 4 + 1 } },
};

typedef struct reflink_sink { /* a sink that accepts the first max_calls reflinks */
    heft_test_sink to;
    heft_sink_ops ops;
    uint32_t calls, max_calls;
    uint64_t shared; /* bytes */
} reflink_sink;

static bool reflink(heft_sink *s, uint64_t offset, heft_source *from, uint64_t at, uint64_t len)
{
    reflink_sink *sink = (reflink_sink *)s;
    void *bytes = malloc((size_t)len);
    heft_error err;
    assert_int_equal((offset | at | len) % ALIGN, 0);
    bool can = sink->calls++ < sink->max_calls;
    if (can) {
        heft_assert_ok(from->ops->read(from, at, bytes, (size_t)len, &err), &err);
        heft_assert_ok(s->ops->write_at(s, offset, bytes, (size_t)len, &err), &err);
        sink->shared += len;
    }
    free(bytes);
    return can;
}

/* Return a .mag file: the format allows padding between tensors, safetensors does not. */
static heft_bytes aligned_model(void)
{
    heft_write_options write = HEFT_WRITE_OPTIONS_INIT;
    heft_convert_options o = HEFT_CONVERT_OPTIONS_INIT;
    o.write = &write;
    write.align = ALIGN;
    return heft_test_converted("safetensors", tensors, HEFT_COUNT(tensors), "mag", &o);
}

static bool cast_large(const heft_tensor *t)
{
    return t->name.len == 5 && !memcmp(t->name.ptr, "large", 5);
}

static heft_dtype to_bf16(void *ctx, const heft_tensor *t)
{
    (void)ctx;
    return cast_large(t) ? (heft_dtype)HEFT_BF16 : (heft_dtype)HEFT_UNTYPED;
}

/* Convert the model with a sink that accepts at most max_calls reflinks. */
static void convert(reflink_sink *s, heft_bytes from, const char *format, uint32_t max_calls,
                    bool casts)
{
    heft_write_options write = HEFT_WRITE_OPTIONS_INIT;
    heft_convert_options o = HEFT_CONVERT_OPTIONS_INIT;
    heft_error err;
    heft_source *source;
    heft_file *f;
    heft_sink *sink = heft_test_sink_init(&s->to, false);
    s->ops = *sink->ops;
    s->ops.reflink = max_calls ? reflink : NULL;
    s->to.base.ops = &s->ops;
    s->calls = 0;
    s->max_calls = max_calls;
    s->shared = 0;
    o.write = &write;
    write.align = ALIGN;
    o.cast = casts ? to_bf16 : NULL;
    heft_assert_ok(heft_source_open_memory(&source, from.p, from.len, &err), &err);
    heft_assert_ok(heft_file_open_source(&f, source, NULL, &err), &err);
    heft_assert_ok(heft_file_convert(f, heft_format_find(heft_str_from(format)), sink, &o, &err),
                   &err);
    heft_file_close(f);
}

static void assert_same_file(const reflink_sink *a, const reflink_sink *b)
{
    heft_assert_same_bytes(heft_test_sink_bytes(&a->to), heft_test_sink_bytes(&b->to));
}

static void reflinks_do_not_change_the_output(void **state)
{
    static const char *const formats[] = { "mag", "gptrs-archive", "ztensor" };
    heft_bytes from = aligned_model();
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(formats); i++) {
        reflink_sink plain, s;
        convert(&plain, from, formats[i], 0, false);
        for (uint32_t max_calls = 1; max_calls <= 4; max_calls++) {
            convert(&s, from, formats[i], max_calls, false);
            assert_same_file(&plain, &s);
            /* large, whole, last; copying "short" and "small" is as fast */
            assert_int_equal(s.calls, max_calls < 3 ? max_calls + 1 : 3);
            if (max_calls >= 3)
                assert_int_equal(s.shared, 2 * MIB + 700 * 1001 * 4 / ALIGN * ALIGN);
            heft_test_sink_free(&s.to);
        }
        heft_test_sink_free(&plain.to);
    }
    heft_test_free(&from);
}

static void cast_tensors_are_not_reflinked(void **state)
{
    heft_bytes from = aligned_model();
    reflink_sink plain, s;
    (void)state;
    convert(&plain, from, "ztensor", 0, true);
    convert(&s, from, "ztensor", 9, true);
    assert_same_file(&plain, &s);
    assert_int_equal(s.calls, 2);
    heft_test_sink_free(&plain.to);
    heft_test_sink_free(&s.to);
    heft_test_free(&from);
}

/* EMBD stores a checksum of all data, to be computed and verified. */
static void checksummed_bytes_are_not_reflinked(void **state)
{
    heft_bytes from = aligned_model();
    reflink_sink embd, s;
    (void)state;
    convert(&embd, from, "embd", 9, false);
    assert_int_equal(embd.calls, 0);
    heft_bytes b = heft_test_copy(embd.to.p, embd.to.len);
    convert(&s, b, "mag", 9, false);
    assert_int_equal(s.calls, 0);
    heft_test_sink_free(&embd.to);
    heft_test_sink_free(&s.to);
    heft_test_free(&b);
    heft_test_free(&from);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reflinks_do_not_change_the_output),
        cmocka_unit_test(cast_tensors_are_not_reflinked),
        cmocka_unit_test(checksummed_bytes_are_not_reflinked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
