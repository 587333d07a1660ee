/* test_plan_refusals.c - refusals of functions that work for a plan of a conversion, a split or an
 * edit. The test calls a function directly where no caller of the public functions provokes the
 * refusal alone. */
#include "core/edit/edit.h"
#include "core/write/append/frame_output.h"
#include "core/write/convert/convert.h"
#include "core/write/convert/copy.h"
#include "core/write/split/shard_cut.h"
#include "core/write/split/shard_set_writer.h"
#include "core/write/split/split_units.h"
#include "limited_host.h"

/* ---- functions that are called for a plan ---------------------------------------------------- */

typedef struct planned {
    heft_bytes bytes;
    heft_file *f;
    heft_conversion c;
    heft_error err;
} planned;

static void begin_plan(planned *p)
{
    heft_write_options w = HEFT_WRITE_OPTIONS_INIT;
    heft_convert_options o = HEFT_CONVERT_OPTIONS_INIT;
    begin();
    p->f = opened("mag", &p->bytes);
    w.host = &host;
    o.write = &w;
    heft_assert_ok(
        heft_conversion_plan(&p->c, p->f, heft_format_find(HEFT_STR("mag")), &o, NULL, &p->err),
        &p->err);
}

static void end_plan(planned *p)
{
    heft_conversion_release(&p->c);
    close_all(p->f, &p->bytes);
}

/* Read 8 bytes of the part, cast to the type `to`. */
static heft_status read_cast(planned *p, heft_dtype to, uint64_t elements, uint64_t from)
{
    heft_progress progress = { .fn = NULL };
    heft_ledger off;
    heft_copy_context c = {
        .p = &p->c.p, .in = p->f, .origins = p->c.origins.ptr, .progress = &progress
    };
    heft_part_source w;
    uint8_t out[8];
    heft_assert_ok(heft_source_verifier_begin(&off, p->f, true, NULL, NULL, &p->err), &p->err);
    c.ledger = &off;
    heft_ix_part_row_at(&p->c.p.x, 0)->dtype = to;
    ((heft_origin *)p->c.origins.ptr)->elements = elements;
    assert_true(heft_part_source_init(&w, &c));
    heft_status st = heft_part_source_read(&w, 0, from, sizeof out, out);
    p->err = w.err;
    heft_part_source_free(&w);
    heft_ledger_free(&off);
    return st;
}

static void a_cast_reads_elements_that_can_exist(void **state)
{
    planned p;
    (void)state;
    begin_plan(&p);
    heft_assert_ok(read_cast(&p, HEFT_U8, 25, 0), &p.err);
    heft_assert_fails(read_cast(&p, HEFT_U8, UINT64_MAX, UINT64_C(1) << 62), HEFT_E_LIMIT, &p.err,
                      "a tensor exceeds 2^64 bytes");
    heft_assert_fails(read_cast(&p, HEFT_Q4_0, 25, 0), HEFT_E_UNSUPPORTED, &p.err,
                      "f32 cannot be cast to q4_0");
    end_plan(&p);
}

static void appended_parts_end_before_2_to_64(void **state)
{
    static uint8_t raw[4];
    heft_storage storage = { .encoding = HEFT_RAW };
    heft_append_chunk chunk = { .len = sizeof raw, .raw = raw };
    heft_appender a = { .at = UINT64_MAX - 3 };
    planned p;
    (void)state;
    begin_plan(&p);
    a.p = &p.c.p;
    p.c.p.plan.storage = &storage;
    p.c.p.plan.align = 64;
    heft_assert_fails(heft_append_write(&a, &chunk, &p.err), HEFT_E_LOSSY, &p.err,
                      "the file would exceed 2^64 bytes");
    p.c.p.plan.storage = NULL;
    end_plan(&p);
}

/* The checksum of a range is joined from the checksums of the parts. */
static void a_checksum_of_a_range_can_be_joined(void **state)
{
    planned p;
    uint32_t number;
    (void)state;
    begin_plan(&p);
    p.c.p.plan.err = &p.err;
    heft_assert_ok(heft_plan_digest_range(&p.c.p.plan, "crc32", (heft_range){ 0, 8 }, &number),
                   &p.err);
    heft_assert_fails(heft_plan_digest_range(&p.c.p.plan, "sha256", (heft_range){ 0, 8 }, &number),
                      HEFT_E_UNSUPPORTED, &p.err,
                      "this build cannot compute sha256 of a byte range");
    end_plan(&p);
}

/* Tensors that a plan adds have no place in a split of the input. */
static void a_split_writes_tensors_of_the_input(void **state)
{
    heft_bytes b = heft_test_many("mag", 2);
    heft_split_units units = { .count = 0 };
    planned p;
    (void)state;
    begin_plan(&p);
    heft_file *other = heft_test_opened(b, &host, false);
    heft_assert_fails(heft_split_units_collect(&units, other, &p.c.p, &p.err), HEFT_E_UNSUPPORTED,
                      &p.err, "tensor 'w' is not in the input");
    heft_split_units_free(&units);
    heft_file_close(other);
    heft_test_free(&b);
    end_plan(&p);
}

/* ---- splitting ------------------------------------------------------------------------------- */

static heft_status count_units(void *ctx, uint32_t first, uint32_t end, uint64_t *bytes)
{
    (void)ctx;
    *bytes = end - first;
    return HEFT_OK;
}

static void a_split_makes_at_most_4096_files(void **state)
{
    enum { MAX_FILES = 4096 };
    static uint64_t payload[MAX_FILES + 1];
    (void)state;
    begin();
    for (uint32_t units = MAX_FILES; units <= MAX_FILES + 1; units++) {
        heft_memory mem = { &limited, UINT64_MAX, 0 };
        heft_error err;
        heft_shard_cut c = { .mem = &mem,
                             .payload = payload,
                             .units = units,
                             .max_bytes = 1,
                             .plan = count_units,
                             .err = &err };
        for (uint32_t i = 0; i < units; i++)
            payload[i] = 1;
        heft_status st = heft_shard_cut_model(&c, 0);
        if (units == MAX_FILES)
            heft_assert_ok(st, &err);
        else
            heft_assert_fails(st, HEFT_E_LIMIT, &err, "more than 4096 files");
        heft_shard_cut_free(&c);
    }
    heft_assert_all_freed(&memory);
}

static heft_blob file_of_split;
static uint32_t files_of_split;

static heft_status open_sink(heft_sink **out, void *ctx, const char *name, heft_error *err)
{
    (void)ctx, (void)name;
    files_of_split++;
    return heft_sink_open_memory(out, &file_of_split, &host, err);
}

static heft_status split(const test_tensor *tensors, uint32_t count, const char *stem,
                         heft_error *err)
{
    heft_write_options w = HEFT_WRITE_OPTIONS_INIT;
    heft_convert_options c = HEFT_CONVERT_OPTIONS_INIT;
    heft_split_options o = HEFT_SPLIT_OPTIONS_INIT;
    heft_bytes b = heft_test_model("gguf", tensors, count);
    heft_file *f = heft_test_opened(b, &host, false);
    w.host = &host;
    c.write = &w;
    o.convert = &c;
    o.count = 1;
    o.stem = stem;
    o.open = open_sink;
    files_of_split = 0;
    heft_test_poison(err);
    heft_status st = heft_file_split(f, heft_format_find(HEFT_STR("gguf")), &o, err);
    heft_blob_free(&file_of_split);
    heft_file_close(f);
    heft_test_free(&b);
    return st;
}

static void a_model_without_tensors_makes_a_single_file(void **state)
{
    heft_error err;
    (void)state;
    begin();
    heft_assert_ok(split(NULL, 0, "model", &err), &err);
    assert_int_equal(files_of_split, 1);
    heft_assert_all_freed(&memory);
}

static void names_of_shards_have_a_limit(void **state)
{
    static const test_tensor t = { "t", HEFT_F32, 1, { 8 } };
    static char stem[100000];
    heft_error err;
    (void)state;
    begin();
    memset(stem, 'm', sizeof stem - 1);
    heft_assert_fails(split(&t, 1, stem, &err), HEFT_E_ARGUMENT, &err,
                      "the file names would exceed");
    assert_int_equal(files_of_split, 0);
    heft_assert_all_freed(&memory);
}

/* An index that refers to parts needs the digests of the shards. */
static void shards_can_be_read_back(void **state)
{
    enum { NO_SIZE, NO_READ_AT, NO_DIGEST, CASES };
    static const char *const words[] = { "cannot read back a shard that the index refers to",
                                         "cannot read back a shard that the index refers to",
                                         "this build cannot compute xxh3 digests" };
    (void)state;
    for (int i = 0; i < CASES; i++) {
        heft_shard_set_writer *l;
        heft_sink *inner;
        heft_blob blob = { NULL, 0, NULL };
        heft_error err;
        heft_test_sink stream;
        begin();
        host.digests = NULL;
        heft_assert_ok(
            heft_shard_set_writer_begin(&l, &host, heft_format_find(HEFT_STR("ztensor")), 1, &err),
            &err);
        if (i == NO_READ_AT)
            inner = heft_test_sink_init(&stream, false);
        else
            heft_assert_ok(heft_sink_open_memory(&inner, &blob, &host, &err), &err);
        heft_sink *s = heft_shard_set_writer_sink(l, inner);
        heft_assert_ok(s->ops->write_at(s, 0, "abcd", 4, &err), &err);
        heft_assert_ok(s->ops->finish(s, &err), &err);
        heft_status st = heft_shard_set_writer_add(l, i == NO_SIZE ? 0 : 4, &err);
        assert_int_equal(st, HEFT_E_UNSUPPORTED);
        assert_non_null(strstr(err.message, words[i]));
        heft_shard_set_writer_free(l);
        if (i == NO_READ_AT)
            heft_test_sink_free(&stream);
        heft_assert_all_freed(&memory);
    }
}

/* ---- edits ----------------------------------------------------------------------------------- */

static void bytes_outside_of_the_plan_of_an_edit_do_not_exist(void **state)
{
    static const uint8_t data[10];
    heft_edit_extent extent = { .at = 10, .length = sizeof data, .data = data };
    heft_edit e = { .extents = { &extent, 1, 1 } };
    heft_edit_job g = { .e = &e };
    heft_error err;
    uint8_t to[4];
    uint32_t crc;
    (void)state;
    begin();
    const heft_digest *d = heft_host_digest(&host, "crc32");
    d->init(&crc);
    heft_assert_ok(heft_edit_bytes(&g, 16, to, sizeof to, &err), &err);
    heft_assert_fails(heft_edit_bytes(&g, 17, to, sizeof to, &err), HEFT_E_UNSUPPORTED, &err,
                      "no bytes are planned here");
    heft_assert_fails(heft_edit_bytes(&g, 9, to, sizeof to, &err), HEFT_E_UNSUPPORTED, &err,
                      "no bytes are planned here");
    heft_assert_ok(heft_edit_carry(&g, d, (heft_range){ 10, 10 }, &crc, &err), &err);
    heft_assert_fails(heft_edit_carry(&g, d, (heft_range){ 10, 11 }, &crc, &err), HEFT_E_ARGUMENT,
                      &err, "a checksum covers bytes past the end");
}

static void a_plan_that_appends_cannot_be_laid_out(void **state)
{
    (void)state;
    for (int has_digests = 0; has_digests < 2; has_digests++) {
        const heft_digest *digests[1] = { NULL };
        heft_edit_job g = { .p = { .format = heft_format_find(HEFT_STR("mag")) } };
        heft_error err;
        g.err = &err;
        g.p.plan.appended = !has_digests;
        g.p.digest_of = has_digests ? digests : NULL;
        heft_assert_fails(heft_edit_lay_out(&g), HEFT_E_UNSUPPORTED, &err,
                          "mag cannot be edited by this build");
    }
}

/* The data of an edited file stay as stored. */
static void an_edit_needs_no_codec(void **state)
{
    static const test_tensor t = { "t", HEFT_BOOL, 1, { 3000 } };
    heft_value v = { .kind = HEFT_KIND_STR, .key = HEFT_STR("k"), .as.s = HEFT_STR("v") };
    heft_write_options w = HEFT_WRITE_OPTIONS_INIT;
    heft_convert_options c = HEFT_CONVERT_OPTIONS_INIT;
    heft_edit_options o = HEFT_EDIT_OPTIONS_INIT;
    heft_edit *e;
    heft_error err;
    (void)state;
    w.storage.encoding = HEFT_ZSTD;
    c.write = &w;
    heft_bytes b = heft_test_converted("safetensors", &t, 1, "ztensor", &c);
    begin();
    host.codecs = NULL;
    heft_file *f = heft_test_opened(b, &host, false);
    assert_int_equal(heft_part_at(f, 0).encoding, HEFT_ZSTD);
    o.set = &v;
    o.set_count = 1;
    o.host = &host;
    heft_assert_ok(heft_edit_plan(&e, f, &o, &err), &err);
    heft_edit_close(e);
    close_all(f, &b);
}

static void the_parts_of_an_edited_file_are_in_order(void **state)
{
    heft_bytes b = heft_test_many("mag", 2);
    heft_edit *e;
    heft_error err;
    (void)state;
    begin();
    heft_file *f = heft_test_opened(b, &host, false);
    heft_ix_row(&f->x, 0)->first_part = 1;
    heft_ix_row(&f->x, 1)->first_part = 0;
    heft_assert_fails(heft_edit_plan(&e, f, NULL, &err), HEFT_E_UNSUPPORTED, &err,
                      "tensor 'layers.0.weight': its parts are out of order");
    assert_null(e);
    close_all(f, &b);
}

static void appended_tensors_come_from_a_file_of_the_format(void **state)
{
    enum { OTHER_FORMAT, SHARDS, NO_SOURCE, CASES };
    (void)state;
    for (int i = 0; i < CASES; i++) {
        heft_bytes b[2];
        heft_edit *e;
        heft_error err;
        begin();
        heft_file *f = opened("ztensor", &b[0]);
        heft_file *added = opened(i == OTHER_FORMAT ? "mag" : "ztensor", &b[1]);
        heft_source *source = added->source;
        added->x.shards.len = i == SHARDS;
        added->source = i == NO_SOURCE ? NULL : source;
        heft_assert_fails(heft_append_plan(&e, f, added, NULL, &err), HEFT_E_ARGUMENT, &err,
                          "the added tensors are not in a file of the same format");
        assert_null(e);
        added->x.shards.len = 0;
        added->source = source;
        heft_file_close(added);
        heft_test_free(&b[1]);
        close_all(f, &b[0]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cast_reads_elements_that_can_exist),
        cmocka_unit_test(appended_parts_end_before_2_to_64),
        cmocka_unit_test(a_checksum_of_a_range_can_be_joined),
        cmocka_unit_test(a_split_writes_tensors_of_the_input),
        cmocka_unit_test(a_split_makes_at_most_4096_files),
        cmocka_unit_test(a_model_without_tensors_makes_a_single_file),
        cmocka_unit_test(names_of_shards_have_a_limit),
        cmocka_unit_test(shards_can_be_read_back),
        cmocka_unit_test(bytes_outside_of_the_plan_of_an_edit_do_not_exist),
        cmocka_unit_test(a_plan_that_appends_cannot_be_laid_out),
        cmocka_unit_test(an_edit_needs_no_codec),
        cmocka_unit_test(the_parts_of_an_edited_file_are_in_order),
        cmocka_unit_test(appended_tensors_come_from_a_file_of_the_format),
    };
    return cmocka_run_group_tests_name("plan_refusals", tests, NULL, NULL);
}
