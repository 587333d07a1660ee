/* test_abi.c - tests of programs compiled with an older or a newer header. */

#include <heft/delta.h>
#include <heft/mix.h>
#include <heft/params.h>
#include <heft/quantise.h>
#include <heft/sign.h>

#include "models.h"

typedef struct size_row {
    const char *name;
    size_t size, expected; /* bytes, with 64-bit pointers */
} size_row;

static const size_row sizes[] = {
    { "heft_error", sizeof(heft_error), 288 },
    { "heft_str", sizeof(heft_str), 16 },
    { "heft_range", sizeof(heft_range), 16 },
    { "heft_dtype_info", sizeof(heft_dtype_info), 16 },
    { "heft_allocator", sizeof(heft_allocator), 32 },
    { "heft_read_counter", sizeof(heft_read_counter), 16 },
    { "heft_limits", sizeof(heft_limits), 48 },
    { "heft_open_options", sizeof(heft_open_options), 72 },
    { "heft_tensor", sizeof(heft_tensor), 40 },
    { "heft_part", sizeof(heft_part), 64 },
    { "heft_shard_file", sizeof(heft_shard_file), 40 },
    { "heft_value", sizeof(heft_value), 40 },
    { "heft_finding", sizeof(heft_finding), 72 },
    { "heft_verify_result", sizeof(heft_verify_result), 40 },
    { "heft_verify_options", sizeof(heft_verify_options), 40 },
    { "heft_checksum", sizeof(heft_checksum), 48 },
    { "heft_hash", sizeof(heft_hash), 32 },
    { "heft_scan_finding", sizeof(heft_scan_finding), 112 },
    { "heft_scan_result", sizeof(heft_scan_result), 64 },
    { "heft_scan_options", sizeof(heft_scan_options), 40 },
    { "heft_diagnosis", sizeof(heft_diagnosis), 88 },
    { "heft_doctor_options", sizeof(heft_doctor_options), 40 },
    { "heft_doctor_summary", sizeof(heft_doctor_summary), 80 },
    { "heft_file_digest", sizeof(heft_file_digest), 68 },
    { "heft_resource", sizeof(heft_resource), 120 },
    { "heft_signature_options", sizeof(heft_signature_options), 64 },
    { "heft_signature_info", sizeof(heft_signature_info), 96 },
    { "heft_write_options", sizeof(heft_write_options), 88 },
    { "heft_write_sums", sizeof(heft_write_sums), 64 },
    { "heft_storage", sizeof(heft_storage), 32 },
    { "heft_identity", sizeof(heft_identity), 48 },
    { "heft_component", sizeof(heft_component), 40 },
    { "heft_tensor_spec", sizeof(heft_tensor_spec), 160 },
    { "heft_convert_options", sizeof(heft_convert_options), 200 },
    { "heft_mix_info", sizeof(heft_mix_info), 24 },
    { "heft_mix_options", sizeof(heft_mix_options), 128 },
    { "heft_mix_item", sizeof(heft_mix_item), 80 },
    { "heft_gguf_options", sizeof(heft_gguf_options), 264 },
    { "heft_gguf_extra", sizeof(heft_gguf_extra), 24 },
    { "heft_quantise_method", sizeof(heft_quantise_method), 24 },
    { "heft_lora_adapter", sizeof(heft_lora_adapter), 24 },
    { "heft_lora_options", sizeof(heft_lora_options), 72 },
    { "heft_lora_item", sizeof(heft_lora_item), 64 },
    { "heft_extract_options", sizeof(heft_extract_options), 72 },
    { "heft_extracted", sizeof(heft_extracted), 64 },
    { "heft_map_options", sizeof(heft_map_options), 80 },
    { "heft_blend_options", sizeof(heft_blend_options), 56 },
    { "heft_blend_item", sizeof(heft_blend_item), 48 },
    { "heft_quantise_options", sizeof(heft_quantise_options), 72 },
    { "heft_quantise_item", sizeof(heft_quantise_item), 72 },
    { "heft_delta_sums", sizeof(heft_delta_sums), 96 },
    { "heft_delta_options", sizeof(heft_delta_options), 48 },
    { "heft_disk_delta_options", sizeof(heft_disk_delta_options), 80 },
    { "heft_delta_row", sizeof(heft_delta_row), 120 },
    { "heft_apply_options", sizeof(heft_apply_options), 32 },
    { "heft_source", sizeof(heft_source), 16 },
    { "heft_sink", sizeof(heft_sink), 8 },
    { "heft_executor", sizeof(heft_executor), 40 },
    { "heft_join_options", sizeof(heft_join_options), 32 },
    { "heft_edit_options", sizeof(heft_edit_options), 160 },
    { "heft_append_options", sizeof(heft_append_options), 32 },
    { "heft_split_options", sizeof(heft_split_options), 56 },
    { "heft_index_options", sizeof(heft_index_options), 32 },
    { "heft_index_result", sizeof(heft_index_result), 280 },
    { "heft_params_options", sizeof(heft_params_options), 56 },
    { "heft_edit_result", sizeof(heft_edit_result), 48 },
    { "heft_append_result", sizeof(heft_append_result), 64 },
    { "heft_params_stats", sizeof(heft_params_stats), 80 },
    { "heft_param", sizeof(heft_param), 32 },
    { "heft_array", sizeof(heft_array), 56 },
    { "heft_save_options", sizeof(heft_save_options), 48 },
    { "heft_derivation", sizeof(heft_derivation), 32 },
    { "heft_edit_extent", sizeof(heft_edit_extent), 40 },
    { "heft_rename", sizeof(heft_rename), 32 },
    { "heft_special_id", sizeof(heft_special_id), 8 },
    { "heft_id", sizeof(heft_id), 32 },
    { "heft_blob", sizeof(heft_blob), 24 },
    { "heft_scratch", sizeof(heft_scratch), 8 },
    { "heft_source_ops", sizeof(heft_source_ops), 112 },
    { "heft_sink_ops", sizeof(heft_sink_ops), 72 },
    { "heft_scratch_ops", sizeof(heft_scratch_ops), 40 },
    { "heft_digest", sizeof(heft_digest), 64 },
    { "heft_codec", sizeof(heft_codec), 80 },
    { "heft_host", sizeof(heft_host), 64 },
    { "heft_container", sizeof(heft_container), 64 },
    { "heft_container_array", sizeof(heft_container_array), 72 },
    { "heft_container_attribute", sizeof(heft_container_attribute), 64 },
    { "heft_container_alias", sizeof(heft_container_alias), 32 },
    { "heft_shard_folder", sizeof(heft_shard_folder), 48 },
    { "heft_tiling", sizeof(heft_tiling), 8 },
    { "heft_arena_memory", sizeof(heft_arena_memory), 32 },
};

static void structs_keep_their_sizes(void **state)
{
    bool differs = false;
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(sizes) && sizeof(void *) == 8; i++) {
        if (sizes[i].size == sizes[i].expected)
            continue;
        print_error("%s has %zu bytes, not %zu\n", sizes[i].name, sizes[i].size, sizes[i].expected);
        differs = true;
    }
    assert_false(differs);
}

static void enumerators_and_names_stay_the_same(void **state)
{
    static const char *const names[] = { "bool",        "u8",        "i8",      "u16",
                                         "i16",         "u32",       "i32",     "u64",
                                         "i64",         "f16",       "bf16",    "f32",
                                         "f64",         "f8_e4m3fn", "f8_e5m2", "f8_e4m3fnuz",
                                         "f8_e5m2fnuz", "f8_e8m0",   "f6_e2m3", "f6_e3m2",
                                         "f4_e2m1",     "c64",       "c128" };
    static const char *const statuses[] = { "ok",        "format", "unsupported", "limit",
                                            "no-memory", "io",     "checksum",    "not-found",
                                            "argument",  "lossy",  "cancelled" };
    (void)state;
    for (heft_dtype t = 1; t <= HEFT_COUNT(names); t++)
        assert_string_equal(heft_dtype_get(t)->name, names[t - 1]);
    for (int s = 0; s < (int)HEFT_COUNT(statuses); s++)
        assert_string_equal(heft_status_name((heft_status)-s), statuses[s]);
    assert_string_equal(heft_status_name(HEFT_AGAIN), "again");
    assert_string_equal(heft_status_name((heft_status)-11), "unknown");
    assert_string_equal(heft_status_name((heft_status)99), "unknown");
    assert_int_equal(HEFT_CAN_DIGEST, 64);
    assert_int_equal(HEFT_KIND_MAP, 10);
    assert_int_equal(HEFT_LAYOUT_OTHER, 3);
    assert_int_equal(HEFT_DEFLATE, 2);
    assert_int_equal(HEFT_MSGPACK, 4);
    assert_int_equal(HEFT_FAULT, 2);
}

/* ---- options of other sizes ----------------------------------------------------------------- */

/* Use structs as an older header declares them, shorter and followed by garbage. */
static void members_that_an_older_header_lacks_have_defaults(void **state)
{
    heft_bytes b = heft_test_one("mag", 100);
    heft_test_sink sink;
    heft_error err;
    heft_file *f;
    heft_source *s;
    heft_open_options open;
    heft_convert_options convert;
    (void)state;
    memset(&open, 0xEE, sizeof open);
    open.size = offsetof(heft_open_options, host);
    open.format = NULL;
    heft_assert_ok(heft_source_open_memory(&s, b.p, b.len, &err), &err);
    heft_assert_ok(heft_file_open_source(&f, s, &open, &err), &err);
    memset(&convert, 0xEE, sizeof convert);
    convert.size = offsetof(heft_convert_options, keep);
    convert.write = NULL;
    heft_assert_ok(heft_file_convert(f, heft_format_find(HEFT_STR("mag")),
                                     heft_test_sink_init(&sink, false), &convert, &err),
                   &err);
    heft_assert_same_bytes(heft_test_sink_bytes(&sink), b);
    heft_test_sink_free(&sink);
    heft_file_close(f);
    heft_test_free(&b);
}

/* The copy has the members that the host's header declares, and 0 in the others. */
static void a_copy_of_an_older_host_lacks_the_later_members(void **state)
{
    enum { DECLARED = offsetof(heft_host, executor) };
    heft_host older, copy, expected;
    (void)state;
    memset(&older, 0xEE, sizeof older);
    older.size = DECLARED;
    memset(&expected, 0, sizeof expected);
    memcpy(&expected, &older, DECLARED);
    expected.size = sizeof expected;
    heft_host_copy(&copy, &older, sizeof copy);
    assert_memory_equal(&copy, &expected, sizeof copy);
}

/* Otherwise a setting of a newer header would be ignored silently. */
static void unknown_options_of_a_newer_header_are_refused(void **state)
{
    struct {
        heft_write_options known;
        uint64_t unknown[4];
    } newer = { HEFT_WRITE_OPTIONS_INIT, { 0, 0, 0, 4 } };
    heft_convert_options convert = HEFT_CONVERT_OPTIONS_INIT;
    heft_bytes b = heft_test_one("mag", 100);
    heft_test_sink sink;
    heft_writer *w;
    heft_error err;
    heft_file *f;
    (void)state;
    newer.known.size = sizeof newer;
    heft_assert_fails(heft_writer_open(&w, heft_format_find(HEFT_STR("mag")),
                                       heft_test_sink_init(&sink, false), &newer.known, &err),
                      HEFT_E_ARGUMENT, &err, "does not know");
    assert_true(sink.discarded);
    heft_test_sink_free(&sink);
    convert.write = &newer.known;
    heft_assert_ok(heft_test_open(&f, b, NULL, &err), &err);
    heft_assert_fails(heft_file_convert(f, heft_format_find(HEFT_STR("mag")),
                                        heft_test_sink_init(&sink, false), &convert, &err),
                      HEFT_E_ARGUMENT, &err, "does not know");
    assert_true(sink.discarded);
    heft_test_sink_free(&sink);
    convert.size = 0;
    heft_assert_fails(heft_file_convert(f, heft_format_find(HEFT_STR("mag")),
                                        heft_test_sink_init(&sink, false), &convert, &err),
                      HEFT_E_ARGUMENT, &err, "invalid size");
    assert_true(sink.discarded);
    heft_test_sink_free(&sink);
    heft_file_close(f);
    heft_test_free(&b);
    newer.unknown[3] = 0;
    heft_assert_ok(heft_writer_open(&w, heft_format_find(HEFT_STR("mag")),
                                    heft_test_sink_init(&sink, false), &newer.known, &err),
                   &err);
    heft_assert_ok(heft_writer_begin(w, &err), &err);
    heft_assert_ok(heft_writer_finish(w, &err), &err);
    heft_test_sink_free(&sink);
}

static void options_without_a_size_are_refused(void **state)
{
    heft_open_options opt = HEFT_OPEN_OPTIONS_INIT;
    heft_limits limits = HEFT_LIMITS_INIT;
    heft_error err;
    heft_file *f;
    (void)state;
    opt.size = 0;
    heft_assert_fails(heft_file_begin(&f, 100, &opt, &err), HEFT_E_ARGUMENT, &err, "invalid size");
    opt.size = (size_t)UINT64_C(0xEEEEEEEEEEEEEEEE);
    heft_assert_fails(heft_file_begin(&f, 100, &opt, &err), HEFT_E_ARGUMENT, &err, "invalid size");
    opt.size = sizeof opt;
    limits.size = 0;
    opt.limits = &limits;
    heft_assert_fails(heft_file_begin(&f, 100, &opt, &err), HEFT_E_ARGUMENT, &err, "invalid size");
}

/* ---- formats -------------------------------------------------------------------------------- */

static void formats_are_found_by_name_and_suffix(void **state)
{
    static const struct {
        const char *path, *format;
    } rows[] = { { "m.mag", "mag" },
                 { "dir.gten/m.MAG", "mag" },
                 { "/x/m.gptrs", "gptrs-checkpoint" },
                 { "m.gten", "gptrs-archive" },
                 { "m.safetensors", "safetensors" },
                 { ".safetensors", NULL },
                 { "m.mag.txt", NULL },
                 { "mag", NULL },
                 { "", NULL } };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++)
        assert_ptr_equal(heft_format_for_path(rows[i].path),
                         rows[i].format ? heft_format_find(heft_str_from(rows[i].format)) : NULL);
    for (uint32_t i = 0; i < heft_format_count(); i++) {
        const heft_format *f = heft_format_at(i);
        assert_ptr_equal(heft_format_find(heft_str_from(heft_format_name(f))), f);
        assert_true(heft_format_caps(f) & HEFT_CAN_READ);
        assert_non_null(heft_format_title(f));
        bool is_folder = f == heft_format_find(heft_str_from("dcp"));
        assert_int_equal(heft_format_suffixes(f)[0], is_folder ? '\0' : '.');
        assert_non_null(heft_format_versions(f));
    }
    assert_null(heft_format_at(heft_format_count()));
    assert_null(heft_format_at(UINT32_MAX));
    assert_null(heft_format_find(HEFT_STR("no such")));
    assert_null(heft_format_find(HEFT_STR("")));
}

static void null_handles_can_be_released(void **state)
{
    (void)state;
    heft_file_close(NULL);
    heft_source_close(NULL);
    heft_sink_discard(NULL);
    heft_writer_discard(NULL);
    heft_stream_close(NULL);
}

/* ---- misuse that is refused ----------------------------------------------------------------- */

static void ranges_and_parts_that_do_not_exist_are_refused(void **state)
{
    heft_bytes b = heft_test_one("mag", 100);
    heft_error err;
    heft_file *f;
    heft_stream *s;
    uint8_t buf[200];
    (void)state;
    heft_assert_ok(heft_test_open(&f, b, NULL, &err), &err);
    heft_assert_fails(heft_part_read(buf, f, 7, 0, 1, &err), HEFT_E_ARGUMENT, &err, "no part 7");
    heft_assert_fails(heft_part_read(buf, f, 0, 99, 2, &err), HEFT_E_ARGUMENT, &err,
                      "exceed the part");
    heft_assert_fails(heft_part_read(buf, f, 0, UINT64_MAX, 2, &err), HEFT_E_ARGUMENT, &err,
                      "exceed the part");
    heft_assert_ok(heft_part_read(buf, f, 0, 100, 0, &err), &err);
    heft_assert_fails(heft_stream_open(&s, f, 7, &err), HEFT_E_ARGUMENT, &err, "no part 7");
    heft_assert_ok(heft_stream_open(&s, f, 0, &err), &err);
    heft_assert_fails(heft_stream_read(buf, s, 101, &err), HEFT_E_ARGUMENT, &err, "100 are left");
    heft_assert_ok(heft_stream_read(buf, s, 100, &err), &err);
    heft_assert_fails(heft_stream_read(buf, s, 1, &err), HEFT_E_ARGUMENT, &err, "0 are left");
    heft_stream_close(s);
    assert_int_equal(heft_part_find(f, HEFT_NONE, HEFT_STR("config")), HEFT_NONE);
    heft_assert_fails(heft_file_feed(f, 0, b.p, b.len, &err), HEFT_E_ARGUMENT, &err,
                      "no more bytes");
    heft_file_close(f);
    heft_assert_ok(heft_file_begin(&f, 100, NULL, &err), &err);
    heft_assert_fails(heft_file_feed(f, 90, buf, 11, &err), HEFT_E_ARGUMENT, &err,
                      "exceed the file");
    heft_assert_fails(heft_file_feed(f, UINT64_MAX, buf, 11, &err), HEFT_E_ARGUMENT, &err,
                      "exceed the file");
    heft_file_close(f);
    heft_test_free(&b);
}

/* Feed the index of a file only: the rest is read from a source. */
static heft_status feed_index(heft_file *f, heft_bytes b, heft_error *err)
{
    const heft_range *needs;
    heft_status st;
    while ((st = heft_file_step(f, err)) == HEFT_AGAIN)
        for (size_t n = heft_file_needs(f, &needs); n--;)
            heft_assert_ok(heft_file_feed(f, needs[n].offset, b.p + needs[n].offset,
                                          (size_t)needs[n].length, err),
                           err);
    return st;
}

static void a_fed_file_reads_its_parts_from_a_source(void **state)
{
    enum { BYTES = 1 << 20 };
    heft_bytes b = heft_test_one("mag", BYTES);
    heft_error err;
    heft_file *f;
    heft_source *s;
    uint8_t buf[2];
    (void)state;
    heft_assert_ok(heft_file_begin(&f, b.len, NULL, &err), &err);
    heft_assert_ok(heft_source_open_memory(&s, b.p, b.len - 1, &err), &err);
    heft_assert_fails(heft_file_set_source(f, s, &err), HEFT_E_ARGUMENT, &err, "the source has");
    heft_assert_ok(feed_index(f, b, &err), &err);
    heft_assert_fails(heft_part_read(buf, f, 0, BYTES / 2, 2, &err), HEFT_E_IO, &err, "not fed");
    heft_assert_ok(heft_source_open_memory(&s, b.p, b.len, &err), &err);
    heft_assert_ok(heft_file_set_source(f, s, &err), &err);
    heft_assert_ok(heft_part_read(buf, f, 0, BYTES / 2, 2, &err), &err);
    assert_memory_equal(buf, b.p + heft_part_at(f, 0).offset + BYTES / 2, 2);
    heft_assert_ok(heft_source_open_memory(&s, b.p, b.len, &err), &err);
    heft_assert_fails(heft_file_set_source(f, s, &err), HEFT_E_ARGUMENT, &err, "already");
    heft_file_close(f);
    heft_test_free(&b);
}

static void a_file_of_another_format_than_required_is_refused(void **state)
{
    heft_bytes b = heft_test_one("mag", 100);
    heft_open_options opt = HEFT_OPEN_OPTIONS_INIT;
    heft_error err;
    heft_file *f;
    (void)state;
    for (uint32_t i = 0; i < heft_format_count(); i++) {
        heft_source *s;
        opt.format = heft_format_at(i);
        heft_assert_ok(heft_source_open_memory(&s, b.p, b.len, &err), &err);
        heft_status st = heft_file_open_source(&f, s, &opt, &err);
        bool is_mag = !strcmp(heft_format_name(opt.format), "mag");
        heft_assert_status(st, is_mag ? HEFT_OK : HEFT_E_FORMAT, &err);
        heft_file_close(f);
    }
    heft_test_free(&b);
}

static void a_host_without_an_allocator_is_refused(void **state)
{
    heft_host host = { .size = sizeof host };
    heft_open_options opt = HEFT_OPEN_OPTIONS_INIT;
    heft_error err;
    heft_file *f;
    (void)state;
    opt.host = &host;
    heft_assert_fails(heft_file_begin(&f, 100, &opt, &err), HEFT_E_ARGUMENT, &err, "no allocator");
    assert_null(f);
}

static bool no_init(void *state)
{
    (void)state;
    return true;
}

static void no_update(void *state, const void *data, size_t len)
{
    (void)state, (void)data, (void)len;
}

static void no_final(uint8_t *out, void *state)
{
    (void)out, (void)state;
}

static void a_digest_longer_than_a_stored_checksum_is_refused(void **state)
{
    heft_digest longest = { sizeof longest, "sha512", 64,   8,   no_init,
                            no_update,      no_final, NULL, NULL };
    const heft_digest *digests[] = { &longest, NULL };
    heft_host host;
    heft_open_options opt = HEFT_OPEN_OPTIONS_INIT;
    heft_error err;
    heft_file *f;
    (void)state;
    heft_host_copy(&host, NULL, sizeof host);
    host.digests = digests;
    opt.host = &host;
    heft_assert_fails(heft_file_begin(&f, 100, &opt, &err), HEFT_E_ARGUMENT, &err,
                      "digest sha512 has 64 bytes; 1 to 32 are allowed");
    longest.bytes = 0;
    heft_assert_fails(heft_file_begin(&f, 100, &opt, &err), HEFT_E_ARGUMENT, &err, "0 bytes");
    longest.bytes = 32;
    heft_assert_ok(heft_file_begin(&f, 100, &opt, &err), &err);
    heft_file_close(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(structs_keep_their_sizes),
        cmocka_unit_test(enumerators_and_names_stay_the_same),
        cmocka_unit_test(members_that_an_older_header_lacks_have_defaults),
        cmocka_unit_test(a_copy_of_an_older_host_lacks_the_later_members),
        cmocka_unit_test(unknown_options_of_a_newer_header_are_refused),
        cmocka_unit_test(options_without_a_size_are_refused),
        cmocka_unit_test(formats_are_found_by_name_and_suffix),
        cmocka_unit_test(null_handles_can_be_released),
        cmocka_unit_test(ranges_and_parts_that_do_not_exist_are_refused),
        cmocka_unit_test(a_fed_file_reads_its_parts_from_a_source),
        cmocka_unit_test(a_file_of_another_format_than_required_is_refused),
        cmocka_unit_test(a_host_without_an_allocator_is_refused),
        cmocka_unit_test(a_digest_longer_than_a_stored_checksum_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
