/* test_writer_stored.c - compressed parts and digests from a writer, compared with a conversion of
 * the same model. */
#include "dump.h"
#include "models.h"

enum { TENSORS = 5, CHUNK = 70001 };

/* Compressible and random, empty, and longer than the block that is encoded at once. */
static const struct {
    const char *name;
    uint64_t bytes;
    bool is_random;
} tensors[TENSORS] = {
    { "a", 3000000, false },  { "b", 100, true },     { "c", 0, false },
    { "d", 27000000, false }, { "e", 2200001, true },
};

static const char *const formats[][2] = {
    { "ztensor", "1.0" },
    { "ztensor", "1.2" },
    { "ztensor", "2" },
};

/* Return the content of a tensor, which is made once. */
static const uint8_t *content_of(size_t i)
{
    static uint8_t *contents[TENSORS];
    uint64_t random = 7;
    if (contents[i])
        return contents[i];
    uint8_t *p = contents[i] = malloc((size_t)tensors[i].bytes + 1);
    assert_non_null(p);
    for (uint64_t k = 0; k < tensors[i].bytes; k++)
        p[k] = (uint8_t)(tensors[i].is_random ? (random = random * 6364136223846793005u + 1) >> 56
                                              : k / 1000 + i);
    return p;
}

static bool has_codec(void)
{
    const heft_codec *const *c = heft_host_default()->codecs;
    while (c && *c && (*c)->encoding != HEFT_ZSTD)
        c++;
    return c && *c;
}

static heft_status write_all(heft_writer *w, heft_error *err)
{
    uint32_t part[TENSORS];
    heft_status st = HEFT_OK;
    for (size_t i = 0; i < TENSORS && !st; i++)
        st = heft_writer_add_dense(&part[i], w, heft_test_str(tensors[i].name), HEFT_U8,
                                   &tensors[i].bytes, 1, err);
    if (!st)
        st = heft_writer_begin(w, err);
    for (size_t i = 0; i < TENSORS && !st; i++) {
        const uint8_t *data = content_of(i);
        for (uint64_t at = 0; at < tensors[i].bytes && !st; at += CHUNK) {
            uint64_t left = tensors[i].bytes - at;
            st = heft_writer_write(w, part[i], data + at, left < CHUNK ? (size_t)left : CHUNK, err);
        }
    }
    if (!st)
        return heft_writer_finish(w, err);
    heft_writer_discard(w);
    return st;
}

static heft_bytes write_model(const char *const format[2], bool is_stream, heft_write_options opt)
{
    heft_test_sink sink;
    heft_writer *w;
    heft_error err;
    opt.version = format[1];
    heft_assert_ok(heft_writer_open(&w, heft_format_find(heft_str_from(format[0])),
                                    heft_test_sink_init(&sink, is_stream), &opt, &err),
                   &err);
    heft_assert_ok(write_all(w, &err), &err);
    heft_bytes b = heft_test_copy(sink.p, sink.len);
    heft_test_sink_free(&sink);
    return b;
}

static void assert_stored(heft_bytes b, heft_encoding encoding)
{
    heft_verify_result result;
    heft_status st;
    heft_error err;
    heft_file *f;
    heft_assert_ok(heft_test_open(&f, b, NULL, &err), &err);
    char *findings = heft_test_findings(&result, &st, f, &err);
    heft_assert_ok(st, &err);
    heft_assert_same_text(findings, "");
    free(findings);
    for (size_t i = 0; i < TENSORS; i++) {
        const uint8_t *want = content_of(i);
        uint8_t *got = malloc((size_t)tensors[i].bytes + 1);
        uint32_t id = heft_tensor_find(f, (heft_str){ tensors[i].name, 1 });
        heft_part p = heft_part_at(f, heft_tensor_at(f, id).first_part);
        assert_int_equal(p.length, tensors[i].bytes);
        heft_assert_ok(
            heft_part_read(got, f, heft_tensor_at(f, id).first_part, 0, (size_t)p.length, &err),
            &err);
        assert_memory_equal(got, want, (size_t)p.length);
        if (tensors[i].bytes > 1000 && !tensors[i].is_random)
            assert_int_equal(p.encoding, encoding);
        free(got);
    }
    heft_file_close(f);
}

/* Check that a conversion of the raw model writes the same bytes. */
static void assert_converted(heft_bytes raw, heft_bytes same, const char *const format[2],
                             heft_write_options opt)
{
    heft_convert_options convert = HEFT_CONVERT_OPTIONS_INIT;
    heft_test_sink sink;
    heft_error err;
    heft_file *f;
    convert.write = &opt;
    opt.version = format[1];
    heft_assert_ok(heft_test_open(&f, raw, NULL, &err), &err);
    heft_assert_ok(heft_file_convert(f, heft_format_find(heft_str_from(format[0])),
                                     heft_test_sink_init(&sink, false), &convert, &err),
                   &err);
    heft_assert_same_bytes(heft_test_sink_bytes(&sink), same);
    heft_test_sink_free(&sink);
    heft_file_close(f);
}

static void compare(const char *const format[2], heft_encoding encoding, const char *digest)
{
    heft_write_options plain = HEFT_WRITE_OPTIONS_INIT, opt = HEFT_WRITE_OPTIONS_INIT;
    heft_test_host host;
    opt.storage.encoding = encoding;
    opt.storage.digest = digest;
    heft_bytes raw = write_model(format, false, plain);
    heft_bytes file = write_model(format, false, opt), stream = write_model(format, true, opt);
    heft_test_host_init(&host, 1);
    opt.host = &host.host;
    heft_bytes single_thread = write_model(format, false, opt);
    assert_stored(file, encoding);
    heft_assert_same_bytes(file, stream);
    heft_assert_same_bytes(file, single_thread);
    assert_converted(raw, file, format, opt);
    heft_test_free(&raw);
    heft_test_free(&file);
    heft_test_free(&stream);
    heft_test_free(&single_thread);
}

static void stores_digests_of_the_bytes(void **state)
{
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(formats); i++) {
        compare(formats[i], HEFT_RAW, "sha256");
        compare(formats[i], HEFT_RAW, strcmp(formats[i][1], "2") ? "crc32c" : NULL);
    }
}

static void compresses_parts_while_writing(void **state)
{
    (void)state;
    if (!has_codec())
        skip();
    for (size_t i = 0; i < HEFT_COUNT(formats); i++) {
        compare(formats[i], HEFT_ZSTD, NULL);
        compare(formats[i], HEFT_ZSTD, "sha256");
    }
}

static void full_sink_or_missing_bytes_leave_nothing(void **state)
{
    heft_write_options opt = HEFT_WRITE_OPTIONS_INIT;
    heft_test_sink sink;
    heft_writer *w;
    heft_error err;
    uint32_t part;
    const uint64_t bytes = 100;
    (void)state;
    if (!has_codec())
        skip();
    opt.storage.encoding = HEFT_ZSTD;
    heft_sink *to = heft_test_sink_init(&sink, false);
    sink.fail_from = 2000;
    heft_assert_ok(heft_writer_open(&w, heft_format_find(HEFT_STR("ztensor")), to, &opt, &err),
                   &err);
    heft_assert_fails(write_all(w, &err), HEFT_E_IO, &err, "full");
    assert_true(sink.discarded);
    heft_test_sink_free(&sink);
    to = heft_test_sink_init(&sink, false);
    heft_assert_ok(heft_writer_open(&w, heft_format_find(HEFT_STR("ztensor")), to, &opt, &err),
                   &err);
    heft_assert_ok(heft_writer_add_dense(&part, w, heft_test_str("t"), HEFT_U8, &bytes, 1, &err),
                   &err);
    heft_assert_ok(heft_writer_begin(w, &err), &err);
    heft_assert_ok(heft_writer_write(w, part, "some", 4, &err), &err);
    heft_assert_fails(heft_writer_write(w, part, content_of, 97, &err), HEFT_E_ARGUMENT, &err,
                      "more data than its 100 bytes");
    heft_assert_fails(heft_writer_finish(w, &err), HEFT_E_ARGUMENT, &err, "lacks 96");
    assert_true(sink.discarded);
    heft_test_sink_free(&sink);
}

static void reports_every_failed_allocation(void **state)
{
    heft_status st = HEFT_E_NOMEM;
    (void)state;
    if (!has_codec())
        skip();
    for (uint32_t n = 1; st; n++) {
        heft_write_options opt = HEFT_WRITE_OPTIONS_INIT;
        heft_test_memory m;
        heft_test_sink sink;
        heft_writer *w;
        heft_error err;
        uint32_t part;
        const uint64_t bytes = 1000;
        static const uint8_t zeros[1000];
        heft_test_memory_init(&m, n);
        opt.host = &m.host;
        opt.storage.encoding = HEFT_ZSTD;
        opt.storage.digest = "sha256";
        st = heft_writer_open(&w, heft_format_find(HEFT_STR("ztensor")),
                              heft_test_sink_init(&sink, false), &opt, &err);
        bool opened = !st;
        if (!st)
            st = heft_writer_add_dense(&part, w, heft_test_str("t"), HEFT_U8, &bytes, 1, &err);
        if (!st)
            st = heft_writer_begin(w, &err);
        if (!st)
            st = heft_writer_write(w, part, zeros, sizeof zeros, &err);
        if (!st)
            st = heft_writer_finish(w, &err);
        else if (opened)
            heft_writer_discard(w);
        if (st)
            heft_assert_status(st, HEFT_E_NOMEM, &err);
        heft_test_sink_free(&sink);
        heft_assert_all_freed(&m);
        assert_in_range(n, 1, 1000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stores_digests_of_the_bytes),
        cmocka_unit_test(compresses_parts_while_writing),
        cmocka_unit_test(full_sink_or_missing_bytes_leave_nothing),
        cmocka_unit_test(reports_every_failed_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
