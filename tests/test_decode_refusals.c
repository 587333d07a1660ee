/* test_decode_refusals.c - refusals of functions that decode parts and whole files, and find the
 * lengths of parts. Codecs and sources of the test provoke the refusals. */
#include "core/read/decode.h"
#include "limited_host.h"

/* ---- a codec of the test --------------------------------------------------------------------- */

/* Numbers of bytes that each call consumes and produces; the last entry repeats. */
typedef struct decoder_step {
    size_t consumed, produced;
} decoder_step;

static decoder_step steps[4];
static size_t next_step;
static uint64_t content_bytes =
    UINT64_MAX; /* after the content, the rest of the input is consumed */
static uint64_t content_left;

static heft_status open_decoder(void **state, uint64_t decoded, heft_error *err)
{
    (void)decoded, (void)err;
    next_step = 0;
    content_left = content_bytes;
    *state = &next_step;
    return HEFT_OK;
}

static heft_status decode(void *state, const void *in, size_t *in_len, void *out, size_t *out_len,
                          bool *whole, heft_error *err)
{
    decoder_step s = steps[next_step];
    size_t whole_input = *in_len;
    (void)state, (void)in, (void)err;
    next_step += next_step + 1 < HEFT_COUNT(steps);
    *in_len = s.consumed < *in_len ? s.consumed : *in_len;
    *out_len = s.produced < *out_len ? s.produced : *out_len;
    *out_len = content_left < *out_len ? (size_t)content_left : *out_len;
    content_left -= *out_len;
    *in_len = content_left ? *in_len : whole_input;
    memset(out, 'x', *out_len);
    *whole = true;
    return HEFT_OK;
}

static void close_decoder(void *state)
{
    assert_ptr_equal(state, &next_step);
}

static const heft_codec test_codec = { .size = sizeof(heft_codec),
                                       .encoding = HEFT_DEFLATE,
                                       .name = "test",
                                       .open = open_decoder,
                                       .decode = decode,
                                       .close = close_decoder };
static const heft_codec *const test_codecs[] = { &test_codec, NULL };

static void a_decoder_that_does_nothing_is_an_error(void **state)
{
    static const struct {
        decoder_step steps[4];
        size_t produced;
        heft_status st;
    } rows[] = {
        { { { 50, 7 }, { 0, 0 } }, 7, HEFT_OK },
        { { { 1, 0 }, { 0, 2 }, { 49, 1 }, { 0, 0 } }, 3, HEFT_OK },
        { { { 1, 1 }, { 0, 0 } }, 1, HEFT_E_FORMAT },
    };
    heft_bytes b;
    heft_error err;
    uint8_t out[20];
    (void)state;
    begin();
    heft_file *f = opened("mag", &b);
    host.codecs = test_codecs;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        size_t len = sizeof out;
        memcpy(steps, rows[i].steps, sizeof steps);
        f->input.in.err = &err;
        heft_status st = heft_input_decode(&f->input.in, HEFT_DEFLATE, (heft_range){ 0, 50 }, out,
                                           &len);
        heft_assert_status(st, rows[i].st, &err);
        assert_int_equal(len, rows[i].produced);
        if (st)
            heft_assert_fails(st, st, &err, "corrupt or truncated");
    }
    host.codecs = NULL;
    size_t none = sizeof out;
    heft_assert_fails(
        heft_input_decode(&f->input.in, HEFT_DEFLATE, (heft_range){ 0, 50 }, out, &none),
        HEFT_E_UNSUPPORTED, &err, "no decoder for the compressed data here");
    f->input.in.err = NULL;
    close_all(f, &b);
}

/* A part that the decoder neither ends nor reads to the end. */
static void a_decoder_that_stops_does_not_hang(void **state)
{
    static const struct {
        decoder_step steps[4];
        heft_status st;
        const char *words;
    } rows[] = {
        { { { 100, 100 }, { 0, 0 } }, HEFT_OK, "" },
        { { { 10, 60 }, { 0, 0 } },
          HEFT_E_FORMAT,
          "the part decodes to 60 bytes, its tensor needs 100" },
        { { { 10, 100 }, { 0, 0 } }, HEFT_E_FORMAT, "the last frame is truncated" },
    };
    heft_bytes b;
    heft_error err;
    (void)state;
    begin();
    heft_file *f = opened("mag", &b);
    host.codecs = test_codecs;
    heft_ix_part_row_at(&f->x, 0)->encoding = HEFT_DEFLATE;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        memcpy(steps, rows[i].steps, sizeof steps);
        heft_status st = read_array(f, &err);
        heft_assert_status(st, rows[i].st, &err);
        if (st)
            heft_assert_fails(st, st, &err, rows[i].words);
    }
    close_all(f, &b);
}

/* ---- gzip ------------------------------------------------------------------------------------ */

/* Unpack a file; all bytes are deflated. */
static heft_status unpack(heft_bytes b, uint32_t isize, heft_error *err)
{
    heft_file *f = begun(b);
    heft_assert_ok(heft_file_set_source(f, source_of(b.p, b.len), err), err);
    f->input.whole_file = b.p;
    f->gzip = (heft_gzip_content){ .deflated = { 0, b.len }, .isize = isize };
    heft_test_poison(err);
    heft_status st = heft_gunzip(f, err);
    heft_file_close(f);
    return st;
}

static void the_length_of_the_content_is_that_of_the_trailer(void **state)
{
    static const char stored[] = "\x01\x05\x00\xFA\xFFhello", empty[] = "\x03\x00";
    static const struct {
        const char *deflated;
        size_t len;
        uint32_t isize;
        const char *words;
    } rows[] = {
        { stored, 10, 10 * 1032, "the content has 5 bytes, which does not match its trailer" },
        { stored, 10, 11 * 1032, "10 compressed bytes cannot unpack to the 11352 bytes" },
        { empty, 2, 0, "the content has 0 bytes, which does not match its trailer" },
    };
    (void)state;
    begin();
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        heft_bytes b = heft_test_copy(rows[i].deflated, rows[i].len);
        heft_error err;
        heft_assert_fails(unpack(b, rows[i].isize, &err), HEFT_E_FORMAT, &err, rows[i].words);
        close_all(NULL, &b);
    }
}

/* 64 MiB are always allowed; then the checksum is compared. */
static void content_has_a_limit(void **state)
{
    enum { ALWAYS_ALLOWED = 64 << 20, STORED = 70000 };
    static const uint8_t stored[STORED];
    heft_bytes b = heft_test_copy(stored, sizeof stored);
    heft_error err;
    (void)state;
    memcpy(steps, (decoder_step[4]){ { 1, SIZE_MAX }, { 0, SIZE_MAX }, { 0, SIZE_MAX } },
           sizeof steps);
    steps[3] = steps[2];
    for (uint32_t more = 0; more < 2; more++) {
        begin();
        host.codecs = test_codecs;
        content_bytes = ALWAYS_ALLOWED + more;
        heft_status st = unpack(b, ALWAYS_ALLOWED + more, &err);
        content_bytes = UINT64_MAX;
        heft_assert_fails(st, more ? HEFT_E_LIMIT : HEFT_E_CHECKSUM, &err,
                          more ? "70000 compressed bytes unpack to more than 64 times that size"
                               : "the CRC-32 in the trailer does not match");
        heft_assert_all_freed(&memory);
    }
    heft_test_free(&b);
}

static void a_build_without_deflate_says_so(void **state)
{
    heft_bytes b = heft_test_copy("\x03\x00", 2);
    heft_error err;
    (void)state;
    begin();
    host.codecs = NULL;
    heft_status st = unpack(b, 0, &err);
    assert_int_equal(st, HEFT_E_UNSUPPORTED);
    assert_non_null(strstr(err.message, "this build cannot unpack gzip"));
    close_all(NULL, &b);
}

/* ---- lengths that a file does not state ------------------------------------------------------ */

enum { ENTRIES = 3, FAR_END = (1 << 30) + 8 };

/* A source of any size; every number in the source is the number of entries. */
static heft_status read_entries(heft_source *s, uint64_t off, void *buf, size_t len,
                                heft_error *err)
{
    (void)s, (void)off, (void)err;
    memset(buf, 0, len);
    *(uint8_t *)buf = ENTRIES;
    return HEFT_OK;
}

static void close_nothing(heft_source *s)
{
    (void)s;
}

static heft_file *sparse_file(heft_bytes *b)
{
    static const uint64_t dims[] = { 2, 9 }, values[] = { 1, 2, 3 }, columns[] = { 1, 4, 8 },
                          rows[] = { 0, 1, 3 };
    static const heft_component parts[] = { { HEFT_STR("values"), HEFT_U64, ENTRIES, NULL },
                                            { HEFT_STR("indices"), HEFT_U64, ENTRIES, NULL },
                                            { HEFT_STR("indptr"), HEFT_U64, 3, NULL } };
    static const uint64_t *const data[] = { values, columns, rows };
    heft_write_options w = HEFT_WRITE_OPTIONS_INIT;
    heft_tensor_spec spec = HEFT_TENSOR_SPEC_INIT;
    heft_test_sink sink;
    heft_writer *writer;
    heft_error err;
    uint32_t first;
    w.version = "1.2";
    spec.name = HEFT_STR("s");
    spec.dtype = HEFT_U64;
    spec.rank = 2;
    spec.dims = dims;
    spec.layout = HEFT_STR("sparse_csr");
    spec.components = parts;
    spec.component_count = 3;
    heft_assert_ok(heft_writer_open(&writer, heft_format_find(HEFT_STR("ztensor")),
                                    heft_test_sink_init(&sink, false), &w, &err),
                   &err);
    heft_assert_ok(heft_writer_add_tensor(&first, writer, &spec, &err), &err);
    heft_assert_ok(heft_writer_begin(writer, &err), &err);
    for (uint32_t i = 0; i < 3; i++) {
        uint8_t bytes[24];
        heft_test_put_u64(bytes, data[i], 3);
        heft_assert_ok(heft_writer_write(writer, first + i, bytes, sizeof bytes, &err), &err);
    }
    heft_assert_ok(heft_writer_finish(writer, &err), &err);
    *b = (heft_bytes){ sink.p, sink.len };
    return heft_test_opened(*b, &host, false);
}

/* The last row pointer is the number of values. The length of the values is not stated, and without
 * a decoder nothing else tells the length. */
static void the_last_row_pointer_is_a_number_of_entries(void **state)
{
    static const struct {
        heft_dtype dtype;
        uint64_t length;
        bool is_known;
    } rows[] = {
        { HEFT_U64, 24, true },          { HEFT_U8, 3, true },
        { HEFT_UNTYPED, 24, false },     { HEFT_C128, 48, false },
        { HEFT_U64, FAR_END - 8, true }, { HEFT_U64, FAR_END, false },
    };
    static const heft_source_ops ops = { .size = sizeof(heft_source_ops),
                                         .read = read_entries,
                                         .close = close_nothing };
    heft_bytes b;
    heft_error err;
    (void)state;
    begin();
    heft_file *f = sparse_file(&b);
    uint64_t in_memory = f->input.in.size;
    heft_source far_source = { &ops, 2 * (uint64_t)FAR_END }, *source = f->source;
    const uint8_t *whole_file = f->input.whole_file;
    host.codecs = NULL;
    f->source = &far_source;
    f->input.whole_file = NULL;
    f->input.in.size = far_source.size;
    f->x.unknown_lengths = 2;
    const uint32_t unknown[] = { heft_part_find(f, 0, HEFT_STR("values")),
                                 heft_part_find(f, 0, HEFT_STR("indices")) };
    heft_ix_part_row *pointers = heft_ix_part_row_at(&f->x,
                                                     heft_part_find(f, 0, HEFT_STR("indptr")));
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        for (uint32_t k = 0; k < 2; k++) {
            heft_ix_part_row_at(&f->x, unknown[k])->length = HEFT_UNKNOWN_LENGTH;
            heft_ix_part_row_at(&f->x, unknown[k])->encoding = HEFT_DEFLATE;
        }
        pointers->dtype = rows[i].dtype;
        pointers->length = pointers->stored = rows[i].length;
        heft_assert_ok(heft_resolve_lengths(f, &err), &err);
        for (uint32_t k = 0; k < 2; k++)
            assert_true(heft_ix_part_row_at(&f->x, unknown[k])->length ==
                        (rows[i].is_known ? 8 * ENTRIES : HEFT_UNKNOWN_LENGTH));
    }
    f->source = source;
    f->input.whole_file = whole_file;
    f->input.in.size = in_memory;
    close_all(f, &b);
}

static void a_part_that_decodes_has_a_length(void **state)
{
    heft_bytes b;
    heft_error err;
    (void)state;
    begin();
    heft_file *f = opened("mag", &b);
    host.codecs = test_codecs;
    memcpy(steps, (decoder_step[4]){ { 100, 100 } }, sizeof steps);
    heft_ix_part_row_at(&f->x, 0)->encoding = HEFT_DEFLATE;
    heft_assert_ok(heft_check_lengths(f, &err), &err);
    heft_ix_part_row_at(&f->x, 0)->length = HEFT_UNKNOWN_LENGTH;
    heft_assert_fails(heft_check_lengths(f, &err), HEFT_E_UNSUPPORTED, &err,
                      "the decoded length of a part is unknown");
    close_all(f, &b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_decoder_that_does_nothing_is_an_error),
        cmocka_unit_test(a_decoder_that_stops_does_not_hang),
        cmocka_unit_test(the_length_of_the_content_is_that_of_the_trailer),
        cmocka_unit_test(content_has_a_limit),
        cmocka_unit_test(a_build_without_deflate_says_so),
        cmocka_unit_test(the_last_row_pointer_is_a_number_of_entries),
        cmocka_unit_test(a_part_that_decodes_has_a_length),
    };
    return cmocka_run_group_tests_name("decode_refusals", tests, NULL, NULL);
}
