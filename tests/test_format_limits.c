/* test_format_limits.c - limits of single formats, each at the last number and
 * at the next, and options that a format refuses. */
#include "core/write/writer/writer.h"
#include "models.h"

#include <sys/mman.h>

/* ---- options --------------------------------------------------------------------------------- */

static const test_tensor tensor = { "w", HEFT_F32, 1, { 3 } };

/* Plan a file with a single tensor. */
static heft_status plan(const char *format, const heft_write_options *opt, heft_error *err)
{
    heft_test_sink sink;
    heft_writer *w;
    uint32_t part;
    heft_test_poison(err);
    heft_status st = heft_writer_open(&w, heft_format_find(heft_str_from(format)),
                                      heft_test_sink_init(&sink, false), opt, err);
    if (!st) {
        st = heft_writer_add_dense(&part, w, heft_test_str(tensor.name), tensor.dtype, tensor.dims,
                                   tensor.rank, err);
        if (!st)
            st = heft_writer_begin(w, err);
        assert_true(!st || !sink.len);
        heft_writer_discard(w);
    }
    heft_test_sink_free(&sink);
    return st;
}

static void numpy_files_have_a_largest_alignment(void **state)
{
    static const char *const formats[] = { "npy", "npz" };
    enum { MOST = 32768 };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(formats); i++) {
        heft_write_options opt = HEFT_WRITE_OPTIONS_INIT;
        heft_error err;
        opt.align = MOST;
        heft_assert_ok(plan(formats[i], &opt, &err), &err);
        opt.align = 2 * MOST;
        heft_assert_fails(plan(formats[i], &opt, &err), HEFT_E_ARGUMENT, &err,
                          "an alignment of 65536 is too large");
    }
}

static void gguf_files_have_a_largest_alignment(void **state)
{
    heft_write_options opt = HEFT_WRITE_OPTIONS_INIT;
    heft_error err;
    (void)state;
    opt.align = 16 << 20;
    heft_assert_ok(plan("gguf", &opt, &err), &err);
    opt.align = 32 << 20;
    heft_assert_fails(plan("gguf", &opt, &err), HEFT_E_ARGUMENT, &err,
                      "an alignment of 33554432 exceeds the limit for GGUF files, 16777216");
}

static void note_alignment(void *ctx, heft_severity s, const char *rule, heft_str name,
                           const char *text)
{
    bool *noted = ctx;
    (void)name, (void)text;
    assert_int_equal(s, HEFT_NOTE);
    *noted = *noted || !strcmp(rule, "mag/align");
}

/* Early files with the version 100 have numbers of four bytes where later files have bytes. */
static void gaps_between_bytes_in_mag_are_no_numbers(void **state)
{
    static const test_tensor tensors[] = { { "a", HEFT_U8, 1, { 1024 } },
                                           { "b", HEFT_F32, 1, { 4 } } };
    heft_bytes from = heft_test_model("safetensors", tensors, HEFT_COUNT(tensors));
    heft_file *in = heft_test_opened(from, NULL, false), *out;
    heft_write_options write = HEFT_WRITE_OPTIONS_INIT;
    heft_convert_options opt = HEFT_CONVERT_OPTIONS_INIT;
    (void)state;
    opt.write = &write;
    write.version = "100";
    write.on_loss = note_alignment;
    for (uint32_t align = 64; align <= 4096; align += 4032) {
        heft_test_sink sink;
        heft_error err;
        bool noted = false;
        write.align = align;
        write.ctx = &noted;
        heft_assert_ok(heft_file_convert(in, heft_format_find(HEFT_STR("mag")),
                                         heft_test_sink_init(&sink, false), &opt, &err),
                       &err);
        assert_int_equal(noted, align == 4096);
        heft_assert_ok(heft_test_open(&out, heft_test_sink_bytes(&sink), NULL, &err), &err);
        assert_int_equal(heft_tensor_at(out, 0).dtype, HEFT_U8);
        assert_int_equal(heft_part_at(out, heft_tensor_at(out, 0).first_part).length, 1024);
        heft_file_close(out);
        heft_test_sink_free(&sink);
    }
    heft_file_close(in);
    heft_test_free(&from);
}

static void mag_snapshots_have_65534_tensors_at_most(void **state)
{
    enum { MOST = 65534 };
    (void)state;
    for (uint32_t count = MOST; count <= MOST + 1; count++) {
        heft_bytes b = heft_test_many("safetensors", count);
        heft_file *f = heft_test_opened(b, NULL, false);
        heft_write_options write = HEFT_WRITE_OPTIONS_INIT;
        heft_convert_options opt = HEFT_CONVERT_OPTIONS_INIT;
        heft_error err;
        opt.write = &write;
        opt.dry_run = true;
        write.version = "snapshot";
        heft_status st = heft_file_convert(f, heft_format_find(HEFT_STR("mag")), NULL, &opt, &err);
        if (count > MOST)
            heft_assert_fails(st, HEFT_E_LOSSY, &err, "at most 65534 are allowed");
        else
            heft_assert_ok(st, &err);
        heft_file_close(f);
        heft_test_free(&b);
    }
}

static void close_nothing(void *state)
{
    (void)state;
}

/* The program has an encoder for deflate. */
static void ztensor_stores_only_zstd(void **state)
{
    static const heft_codec deflate = { .size = sizeof deflate,
                                        .encoding = HEFT_DEFLATE,
                                        .name = "deflate",
                                        .encoder_close = close_nothing };
    static const heft_codec *const codecs[] = { &deflate, NULL };
    static const struct {
        const char *version, *words;
    } rows[] = {
        { "1.0", "zTensor supports only zstd compression" },
        { "1.2", "zTensor supports only zstd compression" },
        { "2", "zTensor 2 supports only zstd compression" },
    };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        heft_write_options opt = HEFT_WRITE_OPTIONS_INIT;
        heft_error err;
        heft_host host;
        heft_host_copy(&host, NULL, sizeof host);
        host.codecs = codecs;
        opt.host = &host;
        opt.version = rows[i].version;
        opt.storage.encoding = HEFT_DEFLATE;
        heft_assert_fails(plan("ztensor", &opt, &err), HEFT_E_UNSUPPORTED, &err, rows[i].words);
    }
}

static void ztensor_2_needs_xxh3(void **state)
{
    static const heft_digest *const none[] = { NULL };
    heft_write_options opt = HEFT_WRITE_OPTIONS_INIT;
    heft_host host;
    heft_error err;
    (void)state;
    heft_host_copy(&host, NULL, sizeof host);
    host.digests = none;
    opt.host = &host;
    heft_assert_ok(plan("ztensor", &opt, &err), &err);
    opt.version = "2";
    heft_assert_fails(plan("ztensor", &opt, &err), HEFT_E_UNSUPPORTED, &err,
                      "this build cannot compute xxh3, which zTensor 2 requires");
}

/* The writer looks at keys of the top level; the format finds keys of maps. */
static void ztensor_2_stores_each_key_once(void **state)
{
    static const char *const keys[] = { "a", "b" };
    (void)state;
    if (heft_test_lacks_libraries())
        skip();
    for (size_t i = 0; i < HEFT_COUNT(keys); i++) {
        heft_value v = { .kind = HEFT_KIND_MAP, .key = HEFT_STR("map") };
        heft_write_options opt = HEFT_WRITE_OPTIONS_INIT;
        heft_test_sink sink;
        heft_writer *w;
        heft_error err;
        opt.version = "2";
        heft_assert_ok(heft_writer_open(&w, heft_format_find(HEFT_STR("ztensor")),
                                        heft_test_sink_init(&sink, false), &opt, &err),
                       &err);
        heft_assert_ok(heft_writer_add_meta(w, v, &err), &err);
        v = (heft_value){ .kind = HEFT_KIND_INT, .key = heft_test_str(keys[0]) };
        heft_assert_ok(heft_writer_add_meta(w, v, &err), &err);
        v.key = heft_test_str(keys[i]);
        heft_assert_ok(heft_writer_add_meta(w, v, &err), &err);
        heft_assert_ok(heft_writer_end_meta(w, &err), &err);
        heft_status st = heft_writer_begin(w, &err);
        if (i)
            heft_assert_ok(st, &err);
        else
            heft_assert_fails(st, HEFT_E_ARGUMENT, &err, "metadata key 'a' occurs twice");
        assert_true(!st || !sink.len);
        heft_writer_discard(w);
        heft_test_sink_free(&sink);
    }
}

/* ---- numbers --------------------------------------------------------------------------------- */

static void gptrs_files_have_65535_dimensions_at_most(void **state)
{
    enum { MOST = 65535 };
    static const char *const formats[] = { "gptrs-archive", "gptrs-checkpoint" };
    static uint64_t dims[MOST];
    (void)state;
    for (size_t i = 0; i < MOST; i++)
        dims[i] = 1;
    for (size_t i = 0; i < HEFT_COUNT(formats); i++) {
        heft_test_sink sink;
        heft_writer *w;
        heft_error err;
        heft_file *f;
        uint32_t part;
        float one = 1;
        heft_assert_ok(heft_writer_open(&w, heft_format_find(heft_str_from(formats[i])),
                                        heft_test_sink_init(&sink, false), NULL, &err),
                       &err);
        heft_assert_ok(heft_writer_add_dense(&part, w, HEFT_STR("w"), HEFT_F32, dims, MOST, &err),
                       &err);
        heft_assert_ok(heft_writer_begin(w, &err), &err);
        heft_assert_ok(heft_writer_write(w, part, &one, sizeof one, &err), &err);
        heft_assert_ok(heft_writer_finish(w, &err), &err);
        heft_assert_ok(heft_test_open(&f, heft_test_sink_bytes(&sink), NULL, &err), &err);
        assert_int_equal(heft_tensor_at(f, 0).rank, MOST);
        heft_file_close(f);
        heft_test_sink_free(&sink);
    }
}

/* Return a simple stream with a tensor and a token. */
static heft_bytes simple_stream(size_t name_bytes, size_t token_bytes)
{
    static const uint8_t shape[] = { 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0 }; /* rank, 1, data */
    heft_bytes b = { calloc(1, 64 + name_bytes + token_bytes), 0 };
    assert_non_null(b.p);
    memcpy(b.p, "EMBD\1\0\0\0\1\0\0\0", 12);
    heft_test_put(b.p + 12, name_bytes, 4);
    memset(b.p + 16, 'n', name_bytes);
    memcpy(b.p + 16 + name_bytes, shape, sizeof shape);
    b.len = 16 + name_bytes + sizeof shape;
    heft_test_put(b.p + b.len, 1, 4);
    heft_test_put(b.p + b.len + 4, token_bytes, 4);
    memset(b.p + b.len + 8, 't', token_bytes);
    b.len += 8 + token_bytes;
    return b;
}

static void simple_streams_have_texts_of_a_mib_at_most(void **state)
{
    enum { MOST = 1 << 20 };
    static const struct {
        size_t name, token;
        const char *words; /* NULL: the file is opened */
    } rows[] = {
        { MOST, MOST, NULL },
        { MOST + 1, 1, "a name has 1048577 bytes, at most 1048576 are allowed" },
        { 1, MOST + 1, "token 0 has 1048577 bytes, at most 1048576 are allowed" },
    };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        heft_bytes b = simple_stream(rows[i].name, rows[i].token);
        heft_error err;
        heft_file *f;
        heft_status st = heft_test_open(&f, b, NULL, &err);
        if (rows[i].words)
            heft_assert_fails(st, HEFT_E_FORMAT, &err, rows[i].words);
        else
            heft_assert_ok(st, &err);
        heft_file_close(f);
        heft_test_free(&b);
    }
}

/* The header is {"__metadata__":{"k":"…"}}. */
static void safetensors_headers_take_100_mb_at_most(void **state)
{
    enum { MOST = 100000000, AROUND_TEXT = 25 };
    char *text = malloc(MOST);
    (void)state;
    assert_non_null(text);
    memset(text, 'x', MOST);
    for (size_t more = 0; more < 2; more++) {
        heft_write_options opt = HEFT_WRITE_OPTIONS_INIT;
        heft_value v = { .kind = HEFT_KIND_STR,
                         .key = HEFT_STR("k"),
                         .as.s = { text, MOST - AROUND_TEXT + more } };
        heft_test_sink sink;
        heft_writer *w;
        heft_error err;
        opt.align = 8;
        heft_assert_ok(heft_writer_open(&w, heft_format_find(HEFT_STR("safetensors")),
                                        heft_test_sink_init(&sink, false), &opt, &err),
                       &err);
        w->p.x.err = &err;
        heft_assert_ok(heft_ix_meta(&w->p.x, v), &err);
        heft_status st = heft_writer_begin(w, &err);
        if (more)
            heft_assert_fails(st, HEFT_E_LOSSY, &err, "the header needs 100000001 bytes");
        else
            heft_assert_ok(st, &err);
        heft_writer_discard(w);
        heft_test_sink_free(&sink);
    }
    free(text);
}

/* Plan a file of EMBD with `count` values of the longest text and a last value; the values borrow
 * the texts; heft_writer_add_meta() would copy the texts. */
static heft_status plan_embd(uint32_t count, const heft_value *last, bool strict, heft_error *err)
{
    enum { TEXT = 65535, KEY = 5 };
    static char text[TEXT], keys[1 << 16][KEY + 1];
    heft_write_options opt = HEFT_WRITE_OPTIONS_INIT;
    heft_test_sink sink;
    heft_writer *w;
    opt.strict = strict;
    heft_assert_ok(heft_writer_open(&w, heft_format_find(HEFT_STR("embd")),
                                    heft_test_sink_init(&sink, false), &opt, err),
                   err);
    w->p.x.err = err;
    for (uint32_t i = 0; i < count; i++) {
        snprintf(keys[i], sizeof keys[i], "%05u", i);
        heft_value v = { .kind = HEFT_KIND_STR, .key = { keys[i], KEY }, .as.s = { text, TEXT } };
        heft_assert_ok(heft_ix_meta(&w->p.x, v), err);
    }
    heft_assert_ok(heft_ix_meta(&w->p.x, *last), err);
    heft_status st = heft_writer_begin(w, err);
    assert_true(!st || !sink.len);
    heft_writer_discard(w);
    heft_test_sink_free(&sink);
    return st;
}

static void embd_metadata_take_4_gib_at_most(void **state)
{
    enum { ENTRY = 4, KEY = 5, TEXT = 65535, HEAD = 8 };
    static const uint64_t most = UINT32_MAX - HEAD, each = ENTRY + KEY + TEXT;
    static const char text[TEXT] = "";
    const char *const words[] = { "the sections before the data would take",
                                  "the metadata would take 4294967288 bytes" };
    (void)state;
    for (uint64_t more = 0; more < 2; more++) {
        heft_error err;
        heft_value v = { .kind = HEFT_KIND_STR, .key = HEFT_STR("k") };
        v.as.s = (heft_str){ text, (size_t)(most % each - ENTRY - 1 + more) };
        heft_status st = plan_embd((uint32_t)(most / each), &v, false, &err);
        heft_assert_fails(st, HEFT_E_LOSSY, &err, words[more]);
    }
}

static void embd_leaves_out_keys_that_are_not_utf8(void **state)
{
    const heft_value v = { .kind = HEFT_KIND_STR, .key = HEFT_STR("\xff"), .as.s = HEFT_STR("x") };
    heft_error err;
    (void)state;
    heft_assert_ok(plan_embd(0, &v, false, &err), &err);
    heft_assert_fails(plan_embd(0, &v, true, &err), HEFT_E_LOSSY, &err, "");
}

/* Only the length is read: nobody touches the pages of the array. */
static void gguf_arrays_have_2_32_elements_at_most(void **state)
{
    static const uint8_t head[] = "GGUF\3\0\0\0"
                                  "\0\0\0\0\0\0\0\0"           /* tensors */
                                  "\1\0\0\0\0\0\0\0"           /* metadata */
                                  "\1\0\0\0\0\0\0\0k\x9\0\0\0" /* an array */
                                  "\0\0\0\0";                  /* of u8 */
    enum { HEAD = sizeof head - 1 };
    static const uint64_t most = UINT32_MAX - 1;
    (void)state;
    if (SIZE_MAX == UINT32_MAX)
        skip();
    uint64_t size = HEAD + 8 + most + 1;
    uint8_t *bytes = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (bytes == MAP_FAILED)
        skip();
    memcpy(bytes, head, HEAD);
    for (uint64_t more = 0; more < 2; more++) {
        heft_error err;
        heft_file *f;
        heft_test_put(bytes + HEAD, most + more, 8);
        heft_bytes b = { bytes, (size_t)(HEAD + 8 + most + more) };
        heft_status st = heft_test_open(&f, b, NULL, &err);
        if (more)
            heft_assert_fails(st, HEFT_E_LIMIT, &err,
                              "metadata 'k': an array of 4294967295 elements exceeds the limit");
        else
            heft_assert_ok(st, &err);
        heft_file_close(f);
    }
    munmap(bytes, (size_t)size);
}

/* ---- files near 2^64 bytes ------------------------------------------------------------------- */

/* Open a file of the given bytes and of zeros after the bytes, all fed on request. */
static heft_status open_fed(heft_file **out, const uint8_t *bytes, size_t len, uint64_t size,
                            heft_error *err)
{
    enum { MOST = 1 << 20 };
    static uint8_t fed[MOST]; /* borrowed for a file that is fed at once */
    const heft_range *needed;
    heft_status st = heft_file_begin(out, size, NULL, err);
    while (!st && (st = heft_file_step(*out, err)) == HEFT_AGAIN) {
        assert_true(heft_file_needs(*out, &needed) > 0);
        assert_in_range(needed->length, 1, MOST);
        heft_range r = needed[0];
        memset(fed, 0, (size_t)r.length);
        if (r.offset < len)
            memcpy(fed, bytes + r.offset,
                   r.length < len - r.offset ? (size_t)r.length : len - (size_t)r.offset);
        st = heft_file_feed(*out, r.offset, fed, (size_t)r.length, err);
    }
    return st;
}

static void burnpack_data_end_within_64_bits(void **state)
{
    enum { HEADER = 10, SHAPE = 30, END = 54, BYTES = 62, DATA = 256 };
    static const uint64_t last = UINT64_MAX - DATA;
    (void)state;
    for (uint64_t more = 0; more < 2; more++) {
        uint8_t bytes[HEADER + BYTES + 1] = "NRUB\1\0\x3e\0\0\0"
                                            "\xa1\x67tensors\xa1\x61"
                                            "a\xa3\x65"
                                            "dtype\x62U8\x65shape\x81\x1b--------\x6c"
                                            "data_offsets\x82\0\x1b--------";
        heft_error err;
        heft_file *f;
        for (unsigned i = 0; i < 8; i++)
            bytes[HEADER + SHAPE + i] = bytes[HEADER + END + i] = (uint8_t)((last + more) >>
                                                                            (56 - 8 * i));
        heft_status st = open_fed(&f, bytes, HEADER + BYTES, UINT64_MAX, &err);
        if (more)
            heft_assert_fails(st, HEFT_E_FORMAT, &err, "the file is truncated");
        else
            heft_assert_ok(st, &err);
        heft_file_close(f);
    }
}

/* Write a stream of PyTorch before 1.6 to `to`, with `tensors` tensors, each
 * with a single number for all elements; return the length. */
static size_t repeated_number(uint8_t to[700], uint32_t tensors, uint64_t elements)
{
    static const char head[] = "\x80\2\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19." /* magic */
                               "\x80\2M\xe9\3."                                          /* 1001 */
                               "\x80\2}." /* machine */
                               "\x80\2}";
    static const char begin[] = "ctorch._utils\n_rebuild_tensor_v2\n((X\7\0\0\0storage"
                                "ctorch\nFloatStorage\nX\1\0\0\0"
                                "0X\3\0\0\0cpuK\1NtQK\0\x8a\x08";
    static const char end[] = "\x85K\0\x85\x89NtRs";
    static const char storages[] = ".\x80\2]X\1\0\0\0"
                                   "0a.\1\0\0\0\0\0\0\0----";
    size_t len = 0;
#define PUT(text) (memcpy(to + len, text, sizeof(text) - 1), len += sizeof(text) - 1)
    PUT(head);
    for (uint32_t i = 0; i < tensors; i++) {
        memcpy(to + len, "X\1\0\0\0a", 6);
        to[len + 5] = (uint8_t)('a' + i);
        len += 6;
        PUT(begin);
        heft_test_put(to + len, elements, 8);
        len += 8;
        PUT(end);
    }
    PUT(storages);
#undef PUT
    return len;
}

/* A gibibyte is always allowed, then 1024 times the size of the file. */
static void tensors_of_pytorch_are_not_far_larger_than_the_file(void **state)
{
    enum { FEW = 1000, MIB = 1 << 20 };
    static const uint64_t gib = UINT64_C(1) << 30, half = UINT64_C(1) << 63;
    static const struct {
        uint64_t size, elements;
        uint32_t tensors;
        heft_status st;
    } rows[] = {
        { FEW, gib / 4, 1, HEFT_OK },
        { FEW, gib / 4 + 1, 1, HEFT_E_LIMIT },
        { FEW, gib / 8, 2, HEFT_OK },
        { MIB + 4, gib / 4 + 1024, 1, HEFT_OK },
        { MIB + 4, gib / 4 + 1025, 1, HEFT_E_LIMIT },
        { half, half / 4, 1, HEFT_OK },
        { half, half / 4, 2, HEFT_E_LIMIT },
    };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        uint8_t bytes[700];
        size_t len = repeated_number(bytes, rows[i].tensors, rows[i].elements);
        heft_error err;
        heft_file *f;
        heft_status st = open_fed(&f, bytes, len, rows[i].size, &err);
        if (rows[i].st)
            heft_assert_fails(st, rows[i].st, &err, "more than 1024 times as large as the file");
        else
            heft_assert_ok(st, &err);
        heft_file_close(f);
    }
}

/* ---- limits of the caller -------------------------------------------------------------------- */

/* The limit of the format is a fault of the file; a lower limit of the caller is not. */
static void a_lower_limit_of_depth_is_no_fault_of_the_file(void **state)
{
    static const struct {
        const char *format, *version;
        uint32_t levels; /* allowed by the format */
    } rows[] = { { "burnpack", NULL, 128 }, { "ztensor", "1.2", 128 }, { "ztensor", "2", 32 } };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        heft_convert_options o = HEFT_CONVERT_OPTIONS_INIT;
        heft_write_options write = HEFT_WRITE_OPTIONS_INIT;
        heft_open_options open = HEFT_OPEN_OPTIONS_INIT;
        heft_limits limits = { .size = sizeof limits, .depth = 2 };
        heft_test_input in = { NULL, { NULL, 0 } };
        heft_error err;
        heft_file *f;
        if (rows[i].levels == 32 && heft_test_lacks_libraries())
            continue;
        o.write = &write;
        write.version = rows[i].version;
        in.bytes = heft_test_converted("safetensors", &tensor, 1, rows[i].format, &o);
        open.limits = &limits;
        heft_assert_status(heft_test_open_methods[0].open(&f, &in, &open, &err), HEFT_E_LIMIT,
                           &err);
        limits.depth = rows[i].levels;
        heft_assert_ok(heft_test_open_methods[0].open(&f, &in, &open, &err), &err);
        heft_file_close(f);
        heft_test_free(&in.bytes);
    }
}

/* A limit of tensors is not reported as the limit of the depth. */
static void a_limit_of_tensors_is_no_limit_of_depth(void **state)
{
    static const test_tensor two[] = { { "a", HEFT_F32, 1, { 1 } }, { "b", HEFT_F32, 1, { 1 } } };
    heft_convert_options o = HEFT_CONVERT_OPTIONS_INIT;
    heft_write_options write = HEFT_WRITE_OPTIONS_INIT;
    heft_open_options open = HEFT_OPEN_OPTIONS_INIT;
    heft_limits limits = { .size = sizeof limits, .tensors = 1 };
    heft_test_input in = { NULL, { NULL, 0 } };
    heft_error err;
    heft_file *f;
    (void)state;
    if (heft_test_lacks_libraries())
        skip();
    o.write = &write;
    write.version = "2";
    in.bytes = heft_test_converted("safetensors", two, 2, "ztensor", &o);
    open.limits = &limits;
    heft_assert_fails(heft_test_open_methods[0].open(&f, &in, &open, &err), HEFT_E_LIMIT, &err,
                      "2 tensors pass the limit of 1");
    heft_test_free(&in.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numpy_files_have_a_largest_alignment),
        cmocka_unit_test(gguf_files_have_a_largest_alignment),
        cmocka_unit_test(mag_snapshots_have_65534_tensors_at_most),
        cmocka_unit_test(gaps_between_bytes_in_mag_are_no_numbers),
        cmocka_unit_test(ztensor_stores_only_zstd),
        cmocka_unit_test(ztensor_2_needs_xxh3),
        cmocka_unit_test(ztensor_2_stores_each_key_once),
        cmocka_unit_test(gptrs_files_have_65535_dimensions_at_most),
        cmocka_unit_test(simple_streams_have_texts_of_a_mib_at_most),
        cmocka_unit_test(safetensors_headers_take_100_mb_at_most),
        cmocka_unit_test(embd_metadata_take_4_gib_at_most),
        cmocka_unit_test(embd_leaves_out_keys_that_are_not_utf8),
        cmocka_unit_test(gguf_arrays_have_2_32_elements_at_most),
        cmocka_unit_test(burnpack_data_end_within_64_bits),
        cmocka_unit_test(tensors_of_pytorch_are_not_far_larger_than_the_file),
        cmocka_unit_test(a_lower_limit_of_depth_is_no_fault_of_the_file),
        cmocka_unit_test(a_limit_of_tensors_is_no_limit_of_depth),
    };
    return cmocka_run_group_tests_name("format_limits", tests, NULL, NULL);
}
