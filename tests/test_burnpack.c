/* test_burnpack.c - tests of Burnpack that samples cannot cover: Burn's limits, and models of other
 * formats converted to Burnpack. */
#include "dump.h"
#include "models.h"

#include "core/read/file.h"
#include "format/burnpack/burnpack.h"

/* ---- losses --------------------------------------------------------------------------------- */

typedef struct target {
    heft_test_sink sink;
    heft_write_options opt;
    heft_error err;
    heft_writer *w;
    char losses[2000]; /* lines of "severity rule tensor: text" */
} target;

static void note_loss(void *ctx, heft_severity s, const char *rule, heft_str tensor,
                      const char *text)
{
    target *f = ctx;
    size_t at = strlen(f->losses);
    snprintf(f->losses + at, sizeof f->losses - at, "%d %s%s%.*s: %s\n", (int)s, rule,
             tensor.ptr ? " " : "", (int)tensor.len, tensor.ptr ? tensor.ptr : "", text);
}

static void begin(target *f, bool allow_loss)
{
    memset(f, 0, sizeof *f);
    f->opt = (heft_write_options)HEFT_WRITE_OPTIONS_INIT;
    f->opt.on_loss = note_loss;
    f->opt.ctx = f;
    f->opt.allow_loss = allow_loss;
    heft_assert_ok(heft_writer_open(&f->w, heft_format_find(HEFT_STR("burnpack")),
                                    heft_test_sink_init(&f->sink, true), &f->opt, &f->err),
                   &f->err);
}

static void add(target *f, const char *name, heft_dtype t, uint64_t elements)
{
    uint32_t part;
    heft_assert_ok(
        heft_writer_add_dense(&part, f->w, heft_test_str(name), t, &elements, 1, &f->err), &f->err);
}

static void assert_losses(const target *f, const char *expected)
{
    if (strcmp(f->losses, expected) != 0)
        fail_msg("losses are:\n%s", f->losses);
}

/* ---- Burn's limits -------------------------------------------------------------------------- */

static void add_too_many_tensors(target *f)
{
    char name[12];
    for (unsigned i = 0; i <= HEFT_BURNPACK_MAX_TENSORS; i++) {
        snprintf(name, sizeof name, "%u", i);
        add(f, name, HEFT_U8, 0);
    }
}

static void add_large_tensor(target *f)
{
    add(f, "w", HEFT_U8, HEFT_BURNPACK_MAX_TENSOR + 1);
}

static void add_too_many_bytes(target *f)
{
    char name[12];
    for (unsigned i = 0; i <= 10; i++) {
        snprintf(name, sizeof name, "%u", i);
        add(f, name, HEFT_U8, HEFT_BURNPACK_MAX_TENSOR);
    }
}

static void add_large_metadata(target *f)
{
    heft_value v = { .kind = HEFT_KIND_STR, .key = heft_test_str("k") };
    char *text = calloc(1, HEFT_BURNPACK_MAX_METADATA);
    assert_non_null(text);
    v.as.s = (heft_str){ text, HEFT_BURNPACK_MAX_METADATA };
    heft_assert_ok(heft_writer_add_meta(f->w, v, &f->err), &f->err);
    free(text);
}

static void a_pack_beyond_the_limits_of_burn_is_written_only_when_allowed(void **state)
{
    static const struct {
        void (*fill)(target *f);
        const char *rule;
    } rows[] = {
        { add_too_many_tensors, "burnpack/tensor-count" },
        { add_large_tensor, "burnpack/tensor-size w" },
        { add_too_many_bytes, "burnpack/file-size" },
        { add_large_metadata, "burnpack/manifest-size" },
    };
    (void)state;
    for (size_t i = 0; i < 2 * HEFT_COUNT(rows); i++) {
        target f;
        bool allowed = i % 2;
        begin(&f, allowed);
        rows[i / 2].fill(&f);
        heft_assert_status(heft_writer_begin(f.w, &f.err), allowed ? HEFT_OK : HEFT_E_LOSSY,
                           &f.err);
        assert_int_equal(f.losses[0], allowed ? '1' : '2');
        assert_true(!strncmp(f.losses + 2, rows[i / 2].rule, strlen(rows[i / 2].rule)));
        assert_int_equal(f.sink.len > 0, allowed);
        heft_writer_discard(f.w);
        heft_test_sink_free(&f.sink);
    }
}

/* Feed the requested ranges of a file of `size` bytes, which begins with `data` and continues with
 * zeros. Assert that parsing gives one warning, of `rule`. */
static void assert_noted(const uint8_t *data, size_t len, uint64_t size, const char *rule)
{
    heft_error err;
    heft_file *f;
    heft_status st = heft_file_begin(&f, size, NULL, &err);
    const heft_range *needs;
    while (!st && (st = heft_file_step(f, &err)) == HEFT_AGAIN) {
        heft_range r = (heft_file_needs(f, &needs), needs[0]);
        uint8_t *bytes = calloc(1, (size_t)r.length);
        assert_non_null(bytes);
        if (r.offset < len)
            memcpy(bytes, data + r.offset,
                   (size_t)(r.length < len - r.offset ? r.length : len - r.offset));
        st = heft_file_feed(f, r.offset, bytes, (size_t)r.length, &err);
        free(bytes);
    }
    heft_assert_ok(st, &err);
    const heft_note *notes = f->x.notes.ptr;
    assert_int_equal(f->x.notes.len, 1);
    assert_string_equal(notes[0].rule, rule);
    assert_int_equal(notes[0].severity, HEFT_WARNING);
    heft_file_close(f);
}

static void a_pack_beyond_the_limits_of_burn_is_read_with_a_warning(void **state)
{
    static const struct {
        void (*fill)(target *f);
        const char *rule;
    } rows[] = {
        { add_too_many_tensors, "burnpack/tensor-count" },
        { add_large_tensor, "burnpack/tensor-size" },
        { add_too_many_bytes, "burnpack/file-size" },
        { add_large_metadata, "burnpack/manifest-size" },
    };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        target f;
        begin(&f, true);
        rows[i].fill(&f);
        heft_assert_ok(heft_writer_begin(f.w, &f.err), &f.err);
        assert_noted(f.sink.p, f.sink.len, f.sink.reserved, rows[i].rule);
        heft_writer_discard(f.w);
        heft_test_sink_free(&f.sink);
    }
}

/* ---- metadata ------------------------------------------------------------------------------- */

static void add_value(target *f, heft_value v)
{
    heft_assert_ok(heft_writer_add_meta(f->w, v, &f->err), &f->err);
}

static heft_value value(heft_kind kind, const char *key)
{
    return (heft_value){ .kind = kind, .key = heft_test_str(key) };
}

static void add_values_of_all_kinds(target *f)
{
    heft_value v = value(HEFT_KIND_INT, "z");
    v.as.i = INT64_MIN;
    add_value(f, v);
    v = value(HEFT_KIND_UINT, "u");
    v.as.u = UINT64_MAX;
    add_value(f, v);
    v = value(HEFT_KIND_FLOAT, "f");
    v.as.f = 0.1;
    add_value(f, v);
    v = value(HEFT_KIND_BOOL, "b");
    v.as.b = true;
    add_value(f, v);
    v = value(HEFT_KIND_STR, "s");
    v.as.s = heft_test_str("text");
    add_value(f, v);
    v = value(HEFT_KIND_BYTES, "raw");
    v.as.s = heft_test_str("text");
    add_value(f, v);
    add_value(f, value(HEFT_KIND_NULL, "null"));
    add_value(f, value(HEFT_KIND_LIST, "list"));
    heft_assert_ok(heft_writer_end_meta(f->w, &f->err), &f->err);
}

static void numbers_in_metadata_become_text_and_lists_are_left_out(void **state)
{
    target f;
    heft_file *reopened;
    (void)state;
    begin(&f, false);
    add_values_of_all_kinds(&f);
    heft_assert_ok(heft_writer_begin(f.w, &f.err), &f.err);
    heft_assert_ok(heft_writer_finish(f.w, &f.err), &f.err);
    assert_losses(&f,
                  "0 burnpack/metadata-text: metadata 'z' becomes text\n"
                  "0 burnpack/metadata-text: metadata 'u' becomes text\n"
                  "0 burnpack/metadata-text: metadata 'f' becomes text\n"
                  "0 burnpack/metadata-text: metadata 'b' becomes text\n"
                  "1 burnpack/metadata: metadata 'raw' is left out: a Burnpack stores only text\n"
                  "1 burnpack/metadata: metadata 'null' is left out: a Burnpack stores only text\n"
                  "1 burnpack/metadata: metadata 'list' is left out: a Burnpack stores only text\n"
                  "0 burnpack/order: the metadata are written in the order of their keys\n");
    heft_assert_ok(heft_test_open(&reopened, heft_test_sink_bytes(&f.sink), NULL, &f.err), &f.err);
    char *dump = heft_test_dump(reopened, DUMP_MODEL);
    assert_string_equal(dump, "meta 1 \"b\" str \"true\"\nmeta 1 \"f\" str \"0.1\"\n"
                              "meta 1 \"s\" str \"text\"\n"
                              "meta 1 \"u\" str \"18446744073709551615\"\n"
                              "meta 1 \"z\" str \"-9223372036854775808\"\n");
    free(dump);
    heft_file_close(reopened);
    heft_test_sink_free(&f.sink);
}

static void scalars_that_are_not_numbers_or_bools_are_left_out(void **state)
{
    target f;
    (void)state;
    begin(&f, false);
    add_value(&f, value(HEFT_KIND_MAP, "burn.scalars"));
    add_value(&f, value(HEFT_KIND_STR, "text"));
    add_value(&f, value(HEFT_KIND_INT, "b"));
    add_value(&f, value(HEFT_KIND_BOOL, "a"));
    heft_assert_ok(heft_writer_end_meta(f.w, &f.err), &f.err);
    heft_assert_ok(heft_writer_begin(f.w, &f.err), &f.err);
    assert_losses(&f, "1 burnpack/metadata: metadata 'text' is left out: a scalar must be a "
                      "number or a boolean\n"
                      "0 burnpack/scalars: Burn before 0.22 ignores the scalars\n"
                      "0 burnpack/order: the metadata are written in the order of their keys\n");
    heft_writer_discard(f.w);
    heft_test_sink_free(&f.sink);
}

static void a_key_that_occurs_twice_is_refused(void **state)
{
    target f;
    (void)state;
    begin(&f, true);
    add_value(&f, value(HEFT_KIND_INT, "k"));
    add_value(&f, value(HEFT_KIND_INT, "k"));
    heft_assert_fails(heft_writer_begin(f.w, &f.err), HEFT_E_ARGUMENT, &f.err, "occurs twice");
    heft_writer_discard(f.w);
    heft_test_sink_free(&f.sink);
}

/* ---- tensors -------------------------------------------------------------------------------- */

static void a_name_with_a_nul_is_refused(void **state)
{
    target f;
    uint32_t part;
    uint64_t dims[1] = { 1 };
    (void)state;
    begin(&f, false);
    heft_assert_ok(
        heft_writer_add_dense(&part, f.w, (heft_str){ "a\0b", 3 }, HEFT_U8, dims, 1, &f.err),
        &f.err);
    heft_assert_status(heft_writer_begin(f.w, &f.err), HEFT_E_LOSSY, &f.err);
    assert_non_null(strstr(f.losses, "2 burnpack/tensor a: a name with a NUL"));
    heft_writer_discard(f.w);
    heft_test_sink_free(&f.sink);
}

/* Burn finds the state of a parameter by the id, which begins the name. */
static void ids_of_an_optimizer_come_from_attributes_and_names(void **state)
{
    static const char *const names[] = { "7.momentum", "nothing", "none.", "x.y", "8.v" };
    static const uint64_t dims[1] = { 0 };
    heft_value rank = value(HEFT_KIND_INT, "7.__rank"), id = value(HEFT_KIND_UINT, "burn.param_id");
    heft_file *reopened;
    target f;
    (void)state;
    begin(&f, false);
    add_value(&f, value(HEFT_KIND_MAP, "burn.scalars"));
    add_value(&f, rank);
    heft_assert_ok(heft_writer_end_meta(f.w, &f.err), &f.err);
    id.as.u = 9;
    for (size_t i = 0; i < HEFT_COUNT(names); i++) {
        heft_tensor_spec spec = HEFT_TENSOR_SPEC_INIT;
        uint32_t part;
        spec.name = heft_test_str(names[i]);
        spec.dtype = HEFT_U8;
        spec.rank = 1;
        spec.dims = dims;
        spec.attributes = &id;
        spec.attribute_count = i == HEFT_COUNT(names) - 1;
        heft_assert_ok(heft_writer_add_tensor(&part, f.w, &spec, &f.err), &f.err);
    }
    heft_assert_ok(heft_writer_begin(f.w, &f.err), &f.err);
    heft_assert_ok(heft_writer_finish(f.w, &f.err), &f.err);
    assert_non_null(strstr(f.losses, "0 burnpack/record-id 7.momentum: its param_id is taken"));
    assert_null(strstr(f.losses, "record-id nothing"));
    heft_assert_ok(heft_test_open(&reopened, heft_test_sink_bytes(&f.sink), NULL, &f.err), &f.err);
    for (uint32_t t = 0; t < HEFT_COUNT(names); t++) {
        uint32_t at = heft_tensor_find(reopened, heft_test_str(names[t]));
        uint64_t expected = t == 0 ? 7 : t == HEFT_COUNT(names) - 1 ? 9 : 0;
        assert_int_equal(!!(heft_ix_row(&reopened->x, at)->flags & HEFT_T_PARAM_ID), !!expected);
        if (expected)
            assert_int_equal(((const uint64_t *)reopened->x.param_ids.ptr)[at], expected);
    }
    heft_file_close(reopened);
    heft_test_sink_free(&f.sink);
}

/* A quantized tensor needs the scheme of the numbers. */
static void quantized_tensors_need_a_scheme(void **state)
{
    static const char *const types[] = { "{\"Bool\":\"U8\"}", "{\"QFloat\":{},\"more\":1}",
                                         "\"F32\"", "[1,2]", "Flex32" };
    static const uint64_t dims[] = { 4 };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(types); i++) {
        const heft_component data = { HEFT_STR("data"), HEFT_U8, 8, NULL };
        heft_tensor_spec spec = HEFT_TENSOR_SPEC_INIT;
        uint32_t part;
        target f;
        begin(&f, false);
        spec.name = HEFT_STR("w");
        spec.dtype = HEFT_U8;
        spec.rank = 1;
        spec.dims = dims;
        spec.layout = HEFT_STR("burn.qfloat");
        spec.stored_type = heft_test_str(types[i]);
        spec.components = &data;
        spec.component_count = 1;
        heft_assert_ok(heft_writer_add_tensor(&part, f.w, &spec, &f.err), &f.err);
        heft_assert_status(heft_writer_begin(f.w, &f.err), HEFT_E_LOSSY, &f.err);
        assert_non_null(strstr(f.losses, "without a quantization scheme in its stored_dtype"));
        heft_writer_discard(f.w);
        heft_test_sink_free(&f.sink);
    }
}

static void a_larger_alignment_is_reduced_to_256(void **state)
{
    heft_write_options o = HEFT_WRITE_OPTIONS_INIT;
    heft_sink *sink;
    target f;
    (void)state;
    for (uint32_t align = 256; align <= 512; align += 256) {
        memset(&f, 0, sizeof f);
        o.align = align;
        o.on_loss = note_loss;
        o.ctx = &f;
        sink = heft_test_sink_init(&f.sink, false);
        heft_assert_ok(
            heft_writer_open(&f.w, heft_format_find(HEFT_STR("burnpack")), sink, &o, &f.err),
            &f.err);
        heft_assert_ok(heft_writer_begin(f.w, &f.err), &f.err);
        assert_int_equal(strstr(f.losses, "0 burnpack/align: ") != NULL, align > 256);
        heft_writer_discard(f.w);
        heft_test_sink_free(&f.sink);
    }
}

static void unknown_versions_are_refused(void **state)
{
    static const char *const versions[] = { "0.19", "0.23", "0.22-pre.1", "1", "" };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(versions); i++) {
        heft_test_sink sink;
        heft_error err;
        heft_writer *w;
        heft_write_options opt = HEFT_WRITE_OPTIONS_INIT;
        opt.version = versions[i];
        heft_assert_ok(heft_writer_open(&w, heft_format_find(HEFT_STR("burnpack")),
                                        heft_test_sink_init(&sink, true), &opt, &err),
                       &err);
        heft_assert_fails(heft_writer_begin(w, &err), HEFT_E_ARGUMENT, &err, "only of 0.21, 0.20");
        heft_writer_discard(w);
        heft_test_sink_free(&sink);
    }
}

/* Convert a safetensors file with a tensor and a stored_dtype to Burnpack. */
static void convert_stored(target *f, const char *dtype, uint64_t bytes, const char *stored)
{
    char header[600];
    int n = snprintf(header + 8, sizeof header - 8,
                     "{\"__metadata__\":{\"heft.stored_dtype/w\":\"%s\"},"
                     "\"w\":{\"dtype\":\"%s\",\"shape\":[1],\"data_offsets\":[0,%llu]}}",
                     stored, dtype, (unsigned long long)bytes);
    assert_in_range(n, 1, sizeof header - 8 - 8);
    memset(header + 8 + n, 1, (size_t)bytes);
    heft_test_put(header, (uint64_t)n, 8);
    heft_bytes in = { (uint8_t *)header, 8 + (size_t)n + (size_t)bytes };
    heft_file *file;
    memset(f, 0, sizeof *f);
    heft_assert_ok(heft_test_open(&file, in, NULL, &f->err), &f->err);
    heft_write_options write = HEFT_WRITE_OPTIONS_INIT;
    heft_convert_options opt = HEFT_CONVERT_OPTIONS_INIT;
    opt.write = &write;
    write.on_loss = note_loss;
    write.ctx = f;
    heft_sink *to = heft_test_sink_init(&f->sink, false);
    heft_assert_ok(
        heft_file_convert(file, heft_format_find(HEFT_STR("burnpack")), to, &opt, &f->err),
        &f->err);
    heft_file_close(file);
}

static void stored_types_unknown_to_burn_are_left_out(void **state)
{
    static const struct {
        const char *dtype, *stored, *losses, *written;
        uint64_t bytes;
    } rows[] = {
        { "F32", "Flex32", "",
          "\x66"
          "Flex32",
          4 },
        { "BOOL", "{\\\"Bool\\\":\\\"U8\\\"}", "",
          "\x64"
          "Bool\x62U8",
          1 },
        { "U32", "{\\\"Bool\\\":\\\"U32\\\"}", "",
          "\x64"
          "Bool\x63U32",
          4 },
        { "F16", "Flex32",
          "1 burnpack/stored-dtype w: its stored_dtype 'Flex32' is left out: Burn "
          "has no such type\n",
          "\x63"
          "F16",
          2 },
        { "U8", "q4_0",
          "1 burnpack/stored-dtype w: its stored_dtype 'q4_0' is left out: Burn "
          "has no such type\n",
          "\x62U8", 1 },
    };
    (void)state;
    if (!heft_format_find(HEFT_STR("safetensors")))
        return;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        target f;
        convert_stored(&f, rows[i].dtype, rows[i].bytes, rows[i].stored);
        assert_losses(&f, rows[i].losses);
        assert_non_null(memmem(f.sink.p, f.sink.len, rows[i].written, strlen(rows[i].written)));
        heft_test_sink_free(&f.sink);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pack_beyond_the_limits_of_burn_is_written_only_when_allowed),
        cmocka_unit_test(a_pack_beyond_the_limits_of_burn_is_read_with_a_warning),
        cmocka_unit_test(numbers_in_metadata_become_text_and_lists_are_left_out),
        cmocka_unit_test(scalars_that_are_not_numbers_or_bools_are_left_out),
        cmocka_unit_test(a_key_that_occurs_twice_is_refused),
        cmocka_unit_test(a_name_with_a_nul_is_refused),
        cmocka_unit_test(ids_of_an_optimizer_come_from_attributes_and_names),
        cmocka_unit_test(quantized_tensors_need_a_scheme),
        cmocka_unit_test(a_larger_alignment_is_reduced_to_256),
        cmocka_unit_test(unknown_versions_are_refused),
        cmocka_unit_test(stored_types_unknown_to_burn_are_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
