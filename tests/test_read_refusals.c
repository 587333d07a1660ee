/* test_read_refusals.c - refusals of the functions that open, read and check files, which no
 * file and no caller of the public functions provokes alone: the open file is changed for the
 * test, or a function of the library is called directly. */
#include "limited_host.h"

#include "core/check/coverage.h"
#include "core/check/file_hash.h"
#include "core/read/decode.h"
#include "core/read/open_file.h"
#include "core/read/part_check.h"
#include "core/read/sparse_read.h"

/* ---- numbers of rows beyond 32 bits ---------------------------------------------------------- */

/* Ranges of parts, ranges of checksums (two each), and as many as the larger of both. */
static void coverage_limits_the_number_of_ranges(void **state)
{
    heft_bytes b;
    heft_error err;
    uint64_t payload, checked;
    (void)state;
    begin();
    heft_file *f = opened("safetensors", &b);
    uint32_t parts = f->x.parts.len;
    assert_int_equal(heft_ix_checksums(&f->x), 0);
    f->x.checksums.len = UINT32_MAX / 8;
    for (uint32_t more = 0; more < 2; more++) {
        huge_requests = 0;
        f->x.parts.len = 3 + more;
        heft_assert_fails(heft_file_coverage(&payload, &checked, f, false, &err), HEFT_E_NOMEM,
                          &err, "to relate checksums and parts");
        assert_int_equal(huge_requests, !more);
    }
    f->x.checksums.len = 0;
    f->x.parts.len = parts;
    close_all(f, &b);
}

/* ---- arguments ------------------------------------------------------------------------------- */

static void a_share_hashes_tensors_that_exist(void **state)
{
    static const uint32_t tensors[] = { 0, 1 };
    heft_hash hashes[2];
    heft_checked_read checks;
    heft_bytes b;
    heft_error err;
    (void)state;
    begin();
    heft_file *f = opened("mag", &b);
    heft_assert_fails(
        heft_tensor_hash_share(hashes, &checks, f, tensors, 2, 0, 1, NULL, NULL, &err),
        HEFT_E_ARGUMENT, &err, "tensor 1 does not exist");
    heft_checked_read_free(&checks);
    heft_assert_ok(heft_tensor_hash_share(hashes, &checks, f, tensors, 1, 0, 1, NULL, NULL, &err),
                   &err);
    heft_checked_read_free(&checks);
    close_all(f, &b);
}

/* The file itself has the number 0, its shards follow. */
static void stored_bytes_lie_in_the_file_or_the_shard(void **state)
{
    heft_bytes b;
    heft_error err;
    heft_file *joined;
    uint8_t to[4];
    (void)state;
    begin();
    heft_file *f = opened("mag", &b);
    const heft_file *const files[] = { f };
    heft_assert_ok(heft_file_join(&joined, files, 1, NULL, &err), &err);
    for (uint64_t past = 0; past < 2; past++) {
        heft_status expected = past ? HEFT_E_ARGUMENT : HEFT_OK;
        uint64_t at = b.len - sizeof to + past;
        heft_status st = heft_file_read_stored(f, at, to, sizeof to, &err);
        heft_assert_status(st, expected, &err);
        if (past)
            heft_assert_fails(st, expected, &err, "4 bytes exceed the file, which has");
        st = heft_file_read_stored(joined, heft_global_offset(1, at), to, sizeof to, &err);
        heft_assert_status(st, expected, &err);
        if (past)
            heft_assert_fails(st, expected, &err, "exceed the file 'one of the files', which has");
    }
    heft_file_close(joined);
    close_all(f, &b);
}

static void only_entries_of_sparse_tensors_are_opened(void **state)
{
    heft_entries entries;
    heft_bytes b;
    heft_error err;
    (void)state;
    begin();
    heft_file *f = opened("mag", &b);
    heft_ix_row(&f->x, 0)->rank = HEFT_SPARSE_RANK + 1;
    heft_status st = heft_entries_open(&entries, f, 0, &err);
    heft_assert_fails(st, st, &err, "");
    assert_int_not_equal(st, HEFT_OK);
    assert_null(strstr(err.message, "dimensions"));
    heft_ix_row(&f->x, 0)->rank = 1;
    close_all(f, &b);
}

static void a_source_needs_a_table_of_functions(void **state)
{
    static const heft_source_ops without_size = { .size = 0 };
    heft_source bad = { &without_size, 100 };
    heft_bytes b = heft_test_one("mag", 100);
    heft_error err;
    (void)state;
    begin();
    heft_file *f = begun(b);
    bad.size = b.len;
    heft_assert_status(heft_file_set_source(f, &bad, &err), HEFT_E_ARGUMENT, &err);
    assert_null(f->source);
    close_all(f, &b);
}

/* Unpacking replaces the bytes of the caller; then the file takes no more. */
static void an_unpacked_file_takes_no_more_bytes(void **state)
{
    heft_bytes b = heft_test_one("mag", 100);
    heft_error err;
    (void)state;
    begin();
    heft_file *f = begun(b);
    f->gzip.was_decompressed = true;
    heft_assert_fails(heft_file_feed(f, 0, b.p, b.len, &err), HEFT_E_ARGUMENT, &err,
                      "the file is complete");
    close_all(f, &b);
}

/* ---- sources that fail ----------------------------------------------------------------------- */

static heft_status check_fails(heft_source *s, heft_error *err)
{
    (void)s;
    *err = (heft_error){ .status = HEFT_E_IO, .message = "the mapped file was truncated" };
    return HEFT_E_IO;
}

static void ids_report_a_source_that_failed(void **state)
{
    heft_ids *ids;
    heft_bytes b;
    heft_error err;
    (void)state;
    begin();
    heft_file *f = opened("mag", &b);
    heft_source_ops ops = *f->source->ops;
    ops.check = check_fails;
    f->source->ops = &ops;
    heft_assert_fails(heft_ids_open(&ids, f, &err), HEFT_E_IO, &err, "was truncated");
    assert_null(ids);
    close_all(f, &b);
}

/* ---- parts that do not fit their tensor ------------------------------------------------------ */

static heft_status read_array(const heft_file *f, heft_error *err)
{
    heft_array a;
    heft_status st = heft_array_read(&a, f, HEFT_STR("w"), HEFT_UNTYPED, NULL, 0, err);
    assert_true(st || a.bytes);
    if (!st)
        heft_array_free(&a);
    return st;
}

static void a_dense_tensor_has_data_of_its_size(void **state)
{
    heft_bytes b;
    heft_error err;
    (void)state;
    begin();
    heft_file *f = opened("mag", &b);
    heft_assert_ok(read_array(f, &err), &err);
    heft_ix_part_row_at(&f->x, 0)->length = 96;
    heft_assert_fails(read_array(f, &err), HEFT_E_FORMAT, &err,
                      "tensor 'w': the size of its data does not match its shape");
    heft_ix_row(&f->x, 0)->part_count = 0;
    heft_assert_fails(read_array(f, &err), HEFT_E_UNSUPPORTED, &err, "tensor 'w' is not dense");
    close_all(f, &b);
}

static void parts_of_unknown_length_are_not_read_at_once(void **state)
{
    static const uint32_t parts[] = { 0 };
    heft_bytes b;
    heft_error err;
    float data[25];
    void *to = data;
    (void)state;
    begin();
    heft_file *f = opened("mag", &b);
    heft_ix_part_row_at(&f->x, 0)->length = HEFT_UNKNOWN_LENGTH;
    heft_assert_fails(heft_part_read_many(&to, f, parts, 1, NULL, NULL, &err), HEFT_E_ARGUMENT,
                      &err, "the decoded length of part 0 is unknown");
    close_all(f, &b);
}

/* ---- a codec of the test --------------------------------------------------------------------- */

/* Numbers of bytes that each call consumes and produces; the last entry repeats. */
typedef struct decoder_step {
    size_t consumed, produced;
} decoder_step;

static decoder_step steps[4];
static size_t next_step;
static uint64_t content_bytes = UINT64_MAX; /* after these, the rest of the input is consumed */
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

/* Unpack a file of these bytes, all deflated. */
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

/* ---- a format of the test -------------------------------------------------------------------- */

static heft_status parse_and_fail(heft_window *in, heft_index *x)
{
    (void)in;
    return heft_error_rule(x->err, heft_error_plain(x->err, HEFT_E_FORMAT, "it is wrong"),
                           "test/own-rule");
}

static heft_status parse_and_fail_without_rule(heft_window *in, heft_index *x)
{
    (void)in;
    return heft_error_plain(x->err, HEFT_E_FORMAT, "it is wrong");
}

static heft_status parse_unknown_length(heft_window *in, heft_index *x)
{
    (void)in;
    x->unknown_lengths = 1;
    return HEFT_OK;
}

static heft_status open_as(const heft_format *format, heft_error *err)
{
    heft_open_options o = HEFT_OPEN_OPTIONS_INIT;
    heft_file *f;
    o.format = format;
    o.host = &host;
    heft_test_poison(err);
    heft_status st = heft_file_open_in_place(&f, "0123456789", 10, &o, err);
    assert_true(!f == !!st);
    heft_file_close(f);
    return st;
}

static void a_parser_may_name_its_own_rule(void **state)
{
    heft_format format = *heft_format_find("mag");
    heft_error err;
    (void)state;
    begin();
    format.parse = parse_and_fail;
    heft_assert_fails(open_as(&format, &err), HEFT_E_FORMAT, &err, "it is wrong");
    assert_string_equal(err.rule, "test/own-rule");
    format.parse = parse_and_fail_without_rule;
    heft_assert_fails(open_as(&format, &err), HEFT_E_FORMAT, &err, "it is wrong");
    assert_string_equal(err.rule, format.structure_rule);
    heft_assert_all_freed(&memory);
}

static void nothing_is_decoded_in_place(void **state)
{
    heft_format format = *heft_format_find("mag");
    heft_error err;
    (void)state;
    begin();
    format.parse = parse_unknown_length;
    heft_assert_fails(open_as(&format, &err), HEFT_E_UNSUPPORTED, &err,
                      "a part is compressed and its length is not stated");
    heft_assert_all_freed(&memory);
}

/* ---- lengths that a file does not state ------------------------------------------------------ */

enum { ENTRIES = 3, FAR_END = (1 << 30) + 8 };

/* A source of any number of bytes, in which every number is the number of entries. */
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
    heft_assert_ok(heft_writer_open(&writer, heft_format_find("ztensor"),
                                    heft_test_sink_init(&sink, false), &w, &err),
                   &err);
    heft_assert_ok(heft_writer_add_tensor(&first, writer, &spec, &err), &err);
    heft_assert_ok(heft_writer_begin(writer, &err), &err);
    for (uint32_t i = 0; i < 3; i++)
        heft_assert_ok(heft_writer_write(writer, first + i, data[i], 24, &err), &err);
    heft_assert_ok(heft_writer_finish(writer, &err), &err);
    *b = (heft_bytes){ sink.p, sink.len };
    return heft_test_opened(*b, &host, false);
}

/* The last row pointer is the number of values, whose length is not stated. Without a decoder, the
 * values have no other length. */
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

/* ---- checksums ------------------------------------------------------------------------------- */

static void note_rule(void *ctx, const heft_finding *finding)
{
    if (!strcmp(finding->rule, "heft/notices"))
        ++*(uint32_t *)ctx;
}

/* A list of notices that was cut off ends with a notice about that. */
static void a_check_reports_that_notices_are_missing(void **state)
{
    heft_verify_options o = HEFT_VERIFY_OPTIONS_INIT;
    uint32_t reports = 0;
    heft_bytes b;
    heft_error err;
    (void)state;
    begin();
    heft_file *f = opened("mag", &b);
    o.on_finding = note_rule;
    o.ctx = &reports;
    assert_int_equal(f->x.notes.len, 0);
    f->x.notes_cut = true;
    heft_assert_ok(heft_file_verify(NULL, f, &o, &err), &err);
    assert_int_equal(reports, 1);
    close_all(f, &b);
}

static void a_mismatch_names_a_part_of_the_file(void **state)
{
    static const char config[] = "{\"kind\":\"gpt\",\"config\":{}}";
    heft_stored_checksum sum = {
        .range = { { 8, 4 } }, .algorithm = "crc32", .rule = "test/sum", .tensor = HEFT_NONE
    };
    heft_test_sink sink;
    heft_writer *w;
    heft_error err;
    (void)state;
    begin();
    heft_assert_ok(heft_writer_open(&w, heft_format_find("gptrs-checkpoint"),
                                    heft_test_sink_init(&sink, false), NULL, &err),
                   &err);
    heft_assert_ok(
        heft_writer_add_model_part(w, HEFT_STR("config"), config, sizeof config - 1, &err), &err);
    heft_assert_ok(heft_writer_begin(w, &err), &err);
    heft_assert_ok(heft_writer_finish(w, &err), &err);
    heft_bytes b = { sink.p, sink.len };
    heft_file *f = heft_test_opened(b, &host, false);
    uint32_t part = heft_part_find(f, HEFT_NONE, HEFT_STR("config"));
    f->x.err = &err;
    heft_assert_ok(heft_ix_checksum(&f->x, sum), &err);
    f->x.err = NULL;
    uint32_t last = heft_ix_checksums(&f->x) - 1;
    heft_assert_fails(heft_checksum_mismatch_error(f, last, part, &err), HEFT_E_CHECKSUM, &err,
                      "part 'config' of the file: test/sum: the crc32 digest does not match");
    heft_assert_fails(heft_checksum_mismatch_error(f, last, HEFT_NONE, &err), HEFT_E_CHECKSUM, &err,
                      "test/sum: the crc32 checksum does not match the 4 bytes it covers");
    close_all(f, &b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(coverage_limits_the_number_of_ranges),
        cmocka_unit_test(a_share_hashes_tensors_that_exist),
        cmocka_unit_test(stored_bytes_lie_in_the_file_or_the_shard),
        cmocka_unit_test(only_entries_of_sparse_tensors_are_opened),
        cmocka_unit_test(a_source_needs_a_table_of_functions),
        cmocka_unit_test(an_unpacked_file_takes_no_more_bytes),
        cmocka_unit_test(ids_report_a_source_that_failed),
        cmocka_unit_test(a_dense_tensor_has_data_of_its_size),
        cmocka_unit_test(parts_of_unknown_length_are_not_read_at_once),
        cmocka_unit_test(a_decoder_that_does_nothing_is_an_error),
        cmocka_unit_test(a_decoder_that_stops_does_not_hang),
        cmocka_unit_test(the_length_of_the_content_is_that_of_the_trailer),
        cmocka_unit_test(content_has_a_limit),
        cmocka_unit_test(a_build_without_deflate_says_so),
        cmocka_unit_test(a_parser_may_name_its_own_rule),
        cmocka_unit_test(nothing_is_decoded_in_place),
        cmocka_unit_test(the_last_row_pointer_is_a_number_of_entries),
        cmocka_unit_test(a_part_that_decodes_has_a_length),
        cmocka_unit_test(a_check_reports_that_notices_are_missing),
        cmocka_unit_test(a_mismatch_names_a_part_of_the_file),
    };
    return cmocka_run_group_tests_name("read_refusals", tests, NULL, NULL);
}
