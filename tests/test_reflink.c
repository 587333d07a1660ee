/* test_reflink.c - data that a sink takes over without moving them: the same file, and only then when nobody
 * has to look at the bytes. */
#include "models.h"

enum { MIB = 1 << 20, ALIGN = 4096 };

static const test_tensor tensors[] = {
    { "small", HEFT_F32, 1, { 3 } },
    { "large", HEFT_F32, 2, { 700, 1001 } },
    { "whole", HEFT_F32, 1, { MIB / 4 } },
    { "short", HEFT_F32, 1, { 5000 } },
    { "last", HEFT_F32, 2, { 1, MIB / 4 + 1 } },
};

typedef struct sharing { /* a sink that shares, at most so often */
    heft_test_sink to;
    heft_sink_ops ops;
    uint32_t calls, most;
    uint64_t shared;
} sharing;

static bool share(heft_sink *s, uint64_t offset, heft_source *from, uint64_t at, uint64_t len)
{
    sharing *sh = (sharing *)s;
    void *bytes = malloc((size_t)len);
    heft_error err;
    assert_int_equal((offset | at | len) % ALIGN, 0);
    bool can = sh->calls++ < sh->most;
    if (can) {
        heft_assert_ok(from->ops->read(from, at, bytes, (size_t)len, &err), &err);
        heft_assert_ok(s->ops->write_at(s, offset, bytes, (size_t)len, &err), &err);
        sh->shared += len;
    }
    free(bytes);
    return can;
}

/* Not every format has room between tensors. */
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

/* The model as that format, by a sink that shares at most so often. */
static void convert(sharing *s, heft_bytes from, const char *format, uint32_t most, bool casts)
{
    heft_write_options write = HEFT_WRITE_OPTIONS_INIT;
    heft_convert_options o = HEFT_CONVERT_OPTIONS_INIT;
    heft_error err;
    heft_source *source;
    heft_file *f;
    heft_sink *sink = heft_test_sink_init(&s->to, false);
    s->ops = *sink->ops;
    s->ops.reflink = most ? share : NULL;
    s->to.base.ops = &s->ops;
    s->calls = 0;
    s->most = most;
    s->shared = 0;
    o.write = &write;
    write.align = ALIGN;
    o.cast = casts ? to_bf16 : NULL;
    heft_assert_ok(heft_source_open_memory(&source, from.p, from.len, &err), &err);
    heft_assert_ok(heft_file_open_source(&f, source, NULL, &err), &err);
    heft_assert_ok(heft_file_convert(f, heft_format_find(format), sink, &o, &err), &err);
    heft_file_close(f);
}

static void assert_same_file(const sharing *a, const sharing *b)
{
    heft_assert_same_bytes(heft_test_sink_bytes(&a->to), heft_test_sink_bytes(&b->to));
}

static void a_file_is_the_same_however_much_is_shared(void **state)
{
    static const char *const formats[] = { "mag", "gptrs-archive", "ztensor" };
    heft_bytes from = aligned_model();
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(formats); i++) {
        sharing plain, s;
        convert(&plain, from, formats[i], 0, false);
        for (uint32_t most = 1; most <= 4; most++) {
            convert(&s, from, formats[i], most, false);
            assert_same_file(&plain, &s);
            /* large, whole, last; "short" and "small" are copied as fast */
            assert_int_equal(s.calls, most < 3 ? most + 1 : 3);
            if (most >= 3)
                assert_int_equal(s.shared, 2 * MIB + 700 * 1001 * 4 / ALIGN * ALIGN);
            heft_test_sink_free(&s.to);
        }
        heft_test_sink_free(&plain.to);
    }
    heft_test_free(&from);
}

static void what_is_changed_is_not_shared(void **state)
{
    heft_bytes from = aligned_model();
    sharing plain, s;
    (void)state;
    convert(&plain, from, "ztensor", 0, true);
    convert(&s, from, "ztensor", 9, true);
    assert_same_file(&plain, &s);
    assert_int_equal(s.calls, 2);
    heft_test_sink_free(&plain.to);
    heft_test_sink_free(&s.to);
    heft_test_free(&from);
}

/* EMBD has a checksum over all data: to write it, and to check it. */
static void what_is_looked_at_is_not_shared(void **state)
{
    heft_bytes from = aligned_model();
    sharing embd, s;
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
        cmocka_unit_test(a_file_is_the_same_however_much_is_shared),
        cmocka_unit_test(what_is_changed_is_not_shared),
        cmocka_unit_test(what_is_looked_at_is_not_shared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
