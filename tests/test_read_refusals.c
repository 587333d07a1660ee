/* test_read_refusals.c - refusals of the functions that open, read and check files. No file
 * and no caller of the public functions provokes the refusals alone: the open file is changed for
 * the test, or a function of the library is called directly. */
#include "limited_host.h"

#include "core/check/verification.h"
#include "core/read/file.h"
#include "core/read/sparse_read.h"
#include "core/read/stored_checksum.h"

/* ---- numbers of rows beyond 32 bits ---------------------------------------------------------- */

/* Ranges of parts, ranges of checksums (two each), and as many as the larger of both. */
static void coverage_limits_the_number_of_ranges(void **state)
{
    heft_bytes b;
    heft_error err;
    heft_verify_result result = { .notes = 0 };
    (void)state;
    begin();
    heft_file *f = opened("safetensors", &b);
    uint32_t parts = f->x.parts.len;
    assert_int_equal(heft_ix_checksums(&f->x), 0);
    f->x.checksums.len = UINT32_MAX / 8;
    for (uint32_t more = 0; more < 2; more++) {
        huge_requests = 0;
        f->x.parts.len = 3 + more;
        heft_assert_fails(heft_file_coverage(&result, f, false, &err), HEFT_E_NOMEM, &err,
                          "to relate checksums and parts");
        assert_int_equal(huge_requests, HAS_64_BITS && !more);
    }
    f->x.checksums.len = 0;
    f->x.parts.len = parts;
    close_all(f, &b);
}

/* ---- arguments ------------------------------------------------------------------------------- */

/* The file has the number 0, the shards follow. */
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
            heft_assert_fails(st, expected, &err, "bytes, in 'one of the files'");
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

/* Parsers check the number of dimensions, too. */
static void sparse_csr_has_two_dimensions(void **state)
{
    heft_sparse_order order;
    heft_bytes b;
    heft_error err;
    (void)state;
    begin();
    heft_file *f = opened("mag", &b);
    heft_ix_row(&f->x, 0)->layout = HEFT_SPARSE_CSR;
    heft_assert_fails(heft_sparse_check(f, 0, false, &order, &err), HEFT_E_FORMAT, &err,
                      "sparse_csr needs 2 dimensions, and its shape has 1");
    heft_ix_row(&f->x, 0)->rank = 2;
    heft_assert_fails(heft_sparse_check(f, 0, false, &order, &err), HEFT_E_FORMAT, &err,
                      "parts that its layout requires are missing");
    heft_ix_row(&f->x, 0)->rank = 1;
    heft_ix_row(&f->x, 0)->layout = HEFT_DENSE;
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

/* Return a tar archive with the model as its only member, "w.mag". */
static heft_bytes tar_of(heft_bytes model)
{
    enum { BLOCK = 512, SUM = 148, MAGIC = 257 };
    heft_bytes tar = { NULL, BLOCK + (model.len + BLOCK - 1) / BLOCK * BLOCK + 2 * BLOCK };
    tar.p = calloc(tar.len, 1);
    assert_non_null(tar.p);
    char *head = (char *)tar.p;
    unsigned sum = 0;
    memcpy(head, "w.mag", 5);
    snprintf(head + 124, 12, "%011o", (unsigned)model.len);
    memset(head + SUM, ' ', 8);
    head[156] = '0';
    memcpy(head + MAGIC,
           "ustar\0"
           "00",
           8);
    for (int i = 0; i < BLOCK; i++)
        sum += tar.p[i];
    snprintf(head + SUM, 8, "%06o", sum);
    memcpy(tar.p + BLOCK, model.p, model.len);
    return tar;
}

/* Offsets of bytes that the caller feeds are those of the archive, whether or not there is a
 * source. */
static void no_archive_is_entered_while_bytes_are_fed(void **state)
{
    heft_bytes model = heft_test_one("mag", 100), tar = tar_of(model);
    heft_error err;
    (void)state;
    for (int has_source = 0; has_source < 2; has_source++) {
        const heft_range *needs;
        heft_status st;
        begin();
        heft_file *f = begun(tar);
        if (has_source)
            heft_assert_ok(heft_file_set_source(f, source_of(tar.p, tar.len), &err), &err);
        while ((st = heft_file_step(f, &err)) == HEFT_AGAIN)
            for (size_t i = 0, n = heft_file_needs(f, &needs); i < n; i++)
                heft_assert_ok(heft_file_feed(f, needs[i].offset, tar.p + needs[i].offset,
                                              (size_t)needs[i].length, &err),
                               &err);
        heft_assert_fails(st, HEFT_E_FORMAT, &err, "is a tar archive");
        heft_file_close(f);
    }
    heft_file *whole = heft_test_opened(tar, &host, false);
    assert_int_equal(heft_file_size(whole), model.len);
    heft_file_close(whole);
    free(tar.p);
    free(model.p);
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

static heft_status check_digest_fails(heft_source *s, bool *is_stated, heft_error *err)
{
    *is_stated = true;
    return check_fails(s, err);
}

static void verify_reports_a_source_that_cannot_read_its_digest(void **state)
{
    heft_verify_result result;
    heft_bytes b;
    heft_error err;
    (void)state;
    begin();
    heft_file *f = opened("mag", &b);
    heft_source_ops ops = *f->source->ops;
    ops.check_digest = check_digest_fails;
    f->source->ops = &ops;
    heft_test_poison(&err);
    heft_assert_fails(heft_file_verify(&result, f, NULL, &err), HEFT_E_IO, &err, "was truncated");
    assert_int_equal(result.faults, 0);
    close_all(f, &b);
}

/* ---- parts that do not fit the tensor -------------------------------------------------------- */

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
    heft_format format = *heft_format_find(HEFT_STR("mag"));
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
    heft_format format = *heft_format_find(HEFT_STR("mag"));
    heft_error err;
    (void)state;
    begin();
    format.parse = parse_unknown_length;
    heft_assert_fails(open_as(&format, &err), HEFT_E_UNSUPPORTED, &err,
                      "a part is compressed and its length is not stated");
    heft_assert_all_freed(&memory);
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
    heft_assert_ok(heft_writer_open(&w, heft_format_find(HEFT_STR("gptrs-checkpoint")),
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
        cmocka_unit_test(stored_bytes_lie_in_the_file_or_the_shard),
        cmocka_unit_test(only_entries_of_sparse_tensors_are_opened),
        cmocka_unit_test(sparse_csr_has_two_dimensions),
        cmocka_unit_test(a_source_needs_a_table_of_functions),
        cmocka_unit_test(an_unpacked_file_takes_no_more_bytes),
        cmocka_unit_test(no_archive_is_entered_while_bytes_are_fed),
        cmocka_unit_test(ids_report_a_source_that_failed),
        cmocka_unit_test(verify_reports_a_source_that_cannot_read_its_digest),
        cmocka_unit_test(a_dense_tensor_has_data_of_its_size),
        cmocka_unit_test(parts_of_unknown_length_are_not_read_at_once),
        cmocka_unit_test(a_parser_may_name_its_own_rule),
        cmocka_unit_test(nothing_is_decoded_in_place),
        cmocka_unit_test(a_check_reports_that_notices_are_missing),
        cmocka_unit_test(a_mismatch_names_a_part_of_the_file),
    };
    return cmocka_run_group_tests_name("read_refusals", tests, NULL, NULL);
}
