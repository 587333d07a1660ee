/* test_sink_memory.c - the memory sink: the bytes of a file on disk, or none after a failure. */
#include "models.h"

static const test_tensor tensors[] = {
    { "a", HEFT_F32, 2, { 300, 1000 } },
    { "b", HEFT_F32, 1, { 3 } },
    { "c", HEFT_F32, 1, { 70001 } },
};

typedef struct fixture {
    heft_bytes model;
    heft_file *in;
    heft_convert_options opt;
    heft_write_options write;
} fixture;

static void begin(fixture *s)
{
    heft_error err;
    *s = (fixture){ .model = heft_test_model("safetensors", tensors, HEFT_COUNT(tensors)) };
    s->opt = (heft_convert_options)HEFT_CONVERT_OPTIONS_INIT;
    s->write = (heft_write_options)HEFT_WRITE_OPTIONS_INIT;
    s->opt.write = &s->write;
    s->write.allow_loss = true;
    heft_assert_ok(heft_test_open(&s->in, s->model, NULL, &err), &err);
}

static void end(fixture *s)
{
    heft_file_close(s->in);
    heft_test_free(&s->model);
}

static void assert_same_as_file(const fixture *s, const char *format)
{
    heft_blob blob;
    heft_test_sink file;
    heft_sink *sink;
    heft_error err;
    const heft_format *to = heft_format_find(heft_str_from(format));
    heft_assert_ok(heft_file_convert(s->in, to, heft_test_sink_init(&file, true), &s->opt, &err),
                   &err);
    heft_assert_ok(heft_sink_open_memory(&sink, &blob, s->write.host, &err), &err);
    heft_assert_ok(heft_file_convert(s->in, to, sink, &s->opt, &err), &err);
    assert_int_equal((uintptr_t)blob.data % 64, 0);
    heft_assert_same_bytes((heft_bytes){ blob.data, blob.size }, heft_test_sink_bytes(&file));
    heft_blob_free(&blob);
    assert_null(blob.data);
    heft_blob_free(&blob);
    heft_test_sink_free(&file);
}

static void converts_into_memory_as_into_a_file(void **state)
{
    fixture s;
    (void)state;
    begin(&s);
    for (size_t i = 0; heft_test_writable(i); i++)
        assert_same_as_file(&s, heft_test_writable(i));
    end(&s);
}

static void grows_with_compressed_parts(void **state)
{
    fixture s;
    (void)state;
    begin(&s);
    s.write.storage.encoding = HEFT_ZSTD;
    assert_same_as_file(&s, "ztensor");
    end(&s);
}

/* Whichever allocation fails, bytes and sink are freed. */
static void reports_every_failed_allocation(void **state)
{
    fixture s;
    bool failed = true;
    (void)state;
    begin(&s);
    for (uint32_t n = 1; failed; n++) {
        heft_test_memory m;
        heft_blob blob;
        heft_sink *sink;
        heft_error err;
        heft_test_memory_init(&m, n);
        s.write.host = &m.host;
        s.write.storage.encoding = n & 1 ? HEFT_ZSTD : HEFT_RAW;
        heft_status st = heft_sink_open_memory(&sink, &blob, &m.host, &err);
        if (!st)
            st = heft_file_convert(s.in, heft_format_find(HEFT_STR("ztensor")), sink, &s.opt, &err);
        failed = atomic_load(&m.calls) >= n;
        heft_assert_status(st, failed ? HEFT_E_NOMEM : HEFT_OK, &err);
        assert_int_equal(!blob.data, failed);
        heft_blob_free(&blob);
        heft_assert_all_freed(&m);
    }
    end(&s);
}

static void discarding_frees_all_memory(void **state)
{
    heft_test_memory m;
    heft_blob blob;
    heft_sink *sink;
    heft_error err;
    uint8_t back[4];
    (void)state;
    heft_test_memory_init(&m, 0);
    heft_assert_ok(heft_sink_open_memory(&sink, &blob, &m.host, &err), &err);
    heft_assert_ok(sink->ops->write_at(sink, 3, "x", 1, &err), &err);
    heft_assert_ok(sink->ops->read_at(sink, 0, back, 4, &err), &err);
    assert_memory_equal(back, "\0\0\0x", 4);
    heft_assert_status(sink->ops->read_at(sink, 1, back, 4, &err), HEFT_E_ARGUMENT, &err);
    heft_assert_ok(sink->ops->reserve(sink, 5, &err), &err);
    heft_assert_status(sink->ops->write_at(sink, 4, "xy", 2, &err), HEFT_E_ARGUMENT, &err);
    heft_sink_discard(sink);
    assert_null(blob.data);
    heft_assert_all_freed(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(converts_into_memory_as_into_a_file),
        cmocka_unit_test(grows_with_compressed_parts),
        cmocka_unit_test(reports_every_failed_allocation),
        cmocka_unit_test(discarding_frees_all_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
