/* test_huge_headers.c - plans of files with a header or index beyond a limit: the plan fails before
 * a byte is written. A marked text counts more bytes than the text has. */
#include "base/out.h"
#include "models.h"

/* ---- marked texts, by --wrap ----------------------------------------------------------------- */

#define MARK "a marked text "

static uint64_t pretended; /* bytes more */

void __real_heft_out_bytes(heft_out *o, const void *data, size_t len);
void __real_heft_out_str(heft_out *o, heft_str s);
void __wrap_heft_out_bytes(heft_out *o, const void *data, size_t len);
void __wrap_heft_out_str(heft_out *o, heft_str s);

void __wrap_heft_out_bytes(heft_out *o, const void *data, size_t len)
{
    __real_heft_out_bytes(o, data, len);
    if (!o->buf && len && memmem(data, len, MARK, sizeof MARK - 1))
        o->total += pretended;
}

void __wrap_heft_out_str(heft_out *o, heft_str s)
{
    __wrap_heft_out_bytes(o, s.ptr, s.len);
}

/* ---- limits ---------------------------------------------------------------------------------- */

typedef struct limit {
    const char *format, *version;
    uint64_t bytes;    /* limit of the header or index */
    const char *words; /* in the message for a byte more */
} limit;

static heft_status plan(const limit *l, const heft_file *in, uint64_t *planned, heft_error *err)
{
    heft_write_options write = HEFT_WRITE_OPTIONS_INIT;
    heft_convert_options o = HEFT_CONVERT_OPTIONS_INIT;
    write.version = l->version;
    write.allow_loss = true;
    o.write = &write;
    o.dry_run = true;
    o.planned_bytes = planned;
    return heft_file_convert(in, heft_format_find(heft_str_from(l->format)), NULL, &o, err);
}

/* Return the bytes of the manifest, as the footer of zTensor 2 tells. */
static uint64_t footer_length(const heft_test_sink *s)
{
    enum { FROM_END = 32 };
    uint64_t bytes;
    memcpy(&bytes, s->p + s->len - FROM_END, sizeof bytes);
    heft_test_le(&bytes, 1, sizeof bytes);
    return bytes;
}

static uint64_t manifest_bytes(const heft_file *in)
{
    heft_write_options write = HEFT_WRITE_OPTIONS_INIT;
    heft_convert_options o = HEFT_CONVERT_OPTIONS_INIT;
    heft_test_sink sink;
    heft_error err;
    write.version = "2";
    o.write = &write;
    pretended = 0;
    heft_assert_ok(heft_file_convert(in, heft_format_find(HEFT_STR("ztensor")),
                                     heft_test_sink_init(&sink, false), &o, &err),
                   &err);
    uint64_t bytes = footer_length(&sink);
    heft_test_sink_free(&sink);
    return bytes;
}

static void headers_end_at_the_limit(void **state)
{
    static const limit limits[] = {
        { "burnpack", NULL, UINT32_MAX, "the manifest would have 4294967296 bytes" },
        { "gptrs-archive", NULL, UINT32_MAX, "the index takes 4294967296 bytes" },
        { "gptrs-checkpoint", NULL, UINT32_MAX, "the index takes 4294967296 bytes" },
        { "safetensors", NULL, 100000000, /* multiples of 64 */ "the header needs 99999993 bytes" },
        { "ztensor", "2", UINT64_C(1) << 30, "manifest would exceed 1 GiB" },
    };
    static const test_tensor tensor = { MARK "t", HEFT_F32, 1, { 2 } };
    heft_bytes b = heft_test_model("mag", &tensor, 1);
    heft_file *in = heft_test_opened(b, NULL, false);
    enum { ALIGN = 256 };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(limits); i++) {
        const limit *l = &limits[i];
        heft_error err;
        uint64_t fits = 0, refused = l->bytes + 1, planned, least;
        if (!strcmp(l->format, "ztensor") && heft_test_lacks_libraries())
            continue;
        pretended = 0;
        heft_assert_ok(plan(l, in, &least, &err), &err);
        while (refused - fits > 1) {
            pretended = fits + (refused - fits) / 2;
            *(plan(l, in, &planned, &err) ? &refused : &fits) = pretended;
        }
        pretended = refused;
        heft_assert_fails(plan(l, in, &planned, &err), HEFT_E_LOSSY, &err, l->words);
        pretended = fits;
        heft_assert_ok(plan(l, in, &planned, &err), &err);
        assert_in_range(planned + ALIGN, least + fits, least + fits + 2 * ALIGN);
        if (!strcmp(l->format, "ztensor")) /* the message does not tell the bytes */
            assert_int_equal(fits + manifest_bytes(in), l->bytes);
    }
    heft_file_close(in);
    heft_test_free(&b);
}

/* Write a compressed file. The format measures the manifest once more at the end, and only there
 * `more` bytes are pretended. *bytes becomes the size of the written manifest. */
static heft_status write_compressed(uint64_t more, uint64_t *bytes, heft_error *err)
{
    static const float data[1000];
    const uint64_t shape = HEFT_COUNT(data);
    heft_write_options opt = HEFT_WRITE_OPTIONS_INIT;
    heft_test_sink sink;
    heft_writer *w;
    uint32_t part;
    opt.version = "2";
    opt.storage.encoding = HEFT_ZSTD;
    pretended = 0;
    heft_assert_ok(heft_writer_open(&w, heft_format_find(HEFT_STR("ztensor")),
                                    heft_test_sink_init(&sink, true), &opt, err),
                   err);
    heft_assert_ok(heft_writer_add_dense(&part, w, HEFT_STR(MARK "t"), HEFT_F32, &shape, 1, err),
                   err);
    heft_assert_ok(heft_writer_begin(w, err), err);
    heft_assert_ok(heft_writer_write(w, part, data, sizeof data, err), err);
    pretended = more;
    heft_status st = heft_writer_finish(w, err);
    *bytes = st ? 0 : footer_length(&sink);
    heft_test_sink_free(&sink);
    return st;
}

static void a_compressed_file_has_a_manifest_of_a_gib_at_most(void **state)
{
    static const uint64_t gib = UINT64_C(1) << 30;
    uint64_t bytes, ignored;
    heft_error err;
    (void)state;
    if (heft_test_lacks_libraries())
        skip();
    heft_assert_ok(write_compressed(0, &bytes, &err), &err);
    heft_assert_fails(write_compressed(gib + 1 - bytes, &ignored, &err), HEFT_E_LOSSY, &err,
                      "manifest would exceed 1 GiB");
    assert_int_not_equal(write_compressed(gib - bytes, &ignored, &err), HEFT_E_LOSSY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(headers_end_at_the_limit),
        cmocka_unit_test(a_compressed_file_has_a_manifest_of_a_gib_at_most),
    };
    return cmocka_run_group_tests_name("huge_headers", tests, NULL, NULL);
}
