/* test_find_id.c - finding tensors by gpt-rs base id and by Burn parameter id. */
#include "models.h"

#include <heft/params.h>

#include "core/read/file.h"

static heft_file *open_model(heft_bytes b)
{
    heft_error err;
    heft_file *f;
    heft_assert_ok(heft_test_open(&f, b, NULL, &err), &err);
    return f;
}

static heft_id base_id(const char *name)
{
    heft_id id = { .kind = HEFT_ID_BASE };
    heft_id128 base;
    assert_true(heft_param_base_id(&base, heft_str_from(name)));
    id.base = base;
    return id;
}

/* heft_tensor_find_id() and heft_ids_find() both return the tensor and the count. */
static void assert_found(const heft_file *f, const heft_id *id, uint32_t tensor, uint32_t count)
{
    heft_ids *ids;
    heft_error err;
    uint32_t n = 99, m = 99;
    assert_int_equal(heft_tensor_find_id(f, id, &n), tensor);
    assert_int_equal(heft_tensor_find_id(f, id, NULL), tensor);
    heft_assert_ok(heft_ids_open(&ids, f, &err), &err);
    assert_int_equal(heft_ids_find(ids, id, &m), tensor);
    assert_int_equal(heft_ids_find(ids, id, NULL), tensor);
    heft_ids_close(ids);
    assert_int_equal(n, count);
    assert_int_equal(m, count);
}

/* gpt-rs test vector: "w" has the id 7a61e32d973b81c6075dbebe2015f2f2. */
static void finds_a_tensor_by_the_base_id_of_its_name(void **state)
{
    static const char *const formats[] = { "safetensors", "gptrs-checkpoint", "gptrs-archive" };
    static const uint8_t w[16] = { 0xf2, 0xf2, 0x15, 0x20, 0xbe, 0xbe, 0x5d, 0x07,
                                   0xc6, 0x81, 0x3b, 0x97, 0x2d, 0xe3, 0x61, 0x7a };
    heft_id id = { .kind = HEFT_ID_BASE }, burn = { .kind = HEFT_ID_BURN, .burn = 0 };
    (void)state;
    memcpy(id.base.bytes, w, sizeof w);
    for (size_t i = 0; i < HEFT_COUNT(formats); i++) {
        heft_bytes b = heft_test_one(formats[i], 64);
        heft_file *f = open_model(b);
        assert_found(f, &id, 0, 1);
        assert_found(f, &burn, HEFT_NONE, 0);
        id.base.bytes[3] ^= 1;
        assert_found(f, &id, HEFT_NONE, 0);
        id.base.bytes[3] ^= 1;
        heft_file_close(f);
        heft_test_free(&b);
    }
}

/* A stored id that is not the hash of the name does not identify the tensor. */
static void ignores_a_stored_id_of_another_name(void **state)
{
    heft_bytes b = heft_test_one("gptrs-checkpoint", 64);
    heft_id id = base_id("w"), other = base_id("v");
    (void)state;
    uint8_t *at = memmem(b.p, b.len, id.base.bytes, sizeof id.base.bytes);
    assert_non_null(at);
    memcpy(at, other.base.bytes, sizeof other.base.bytes);
    heft_file *f = open_model(b);
    assert_found(f, &id, 0, 1);
    assert_found(f, &other, HEFT_NONE, 0);
    heft_file_close(f);
    heft_test_free(&b);
}

static void finds_no_base_id_for_a_non_ascii_name(void **state)
{
    static const test_tensor t[] = { { "\xc3\xa9", HEFT_F32, 1, { 1 } },
                                     { "w", HEFT_F32, 1, { 1 } } };
    heft_bytes b = heft_test_model("safetensors", t, 2);
    heft_file *f = open_model(b);
    heft_id id = { .kind = HEFT_ID_BASE };
    (void)state;
    /* BLAKE3 of the two bytes of the name */
    static const uint8_t hashed[16] = { 0x46, 0xd0, 0xec, 0x74, 0x2c, 0xea, 0xad, 0x14,
                                        0x9f, 0x9a, 0x3d, 0x10, 0x9d, 0x1b, 0xd9, 0xe9 };
    memcpy(id.base.bytes, hashed, sizeof hashed);
    assert_found(f, &id, HEFT_NONE, 0);
    id = base_id("w");
    uint32_t w = heft_tensor_find(f, HEFT_STR("w"));
    assert_found(f, &id, w, 1);
    heft_file_close(f);
    heft_test_free(&b);
}

/* Return a safetensors file with five tensors, a to d with Burn parameter ids. */
static heft_bytes with_burn_ids(void)
{
    static const char header[] =
        "{\"__metadata__\":{\"heft.burn.param_id/a\":\"18446744073709551615\","
        "\"heft.burn.param_id/b\":\"4294967303\",\"heft.burn.param_id/c\":\"4294967303\","
        "\"heft.burn.param_id/d\":\"8589934592\"},"
        "\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
        "\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]},"
        "\"c\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[2,3]},"
        "\"d\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[3,4]},"
        "\"e\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[4,5]}}";
    uint8_t bytes[8 + sizeof header - 1 + 5] = { (uint8_t)((sizeof header - 1) & 0xFF),
                                                 (uint8_t)((sizeof header - 1) >> 8) };
    memcpy(bytes + 8, header, sizeof header - 1);
    return heft_test_copy(bytes, sizeof bytes);
}

static void finds_and_counts_burn_ids(void **state)
{
    static const struct {
        uint64_t id;
        const char *name;
        uint32_t count;
    } rows[] = {
        { UINT64_MAX, "a", 1 }, { 0x100000007, "b", 2 }, { 0x200000000, "d", 1 },
        { 7, NULL, 0 },         { 0, NULL, 0 },
    };
    heft_bytes b = with_burn_ids();
    (void)state;
    for (int repeat = 0; repeat < 2; repeat++) {
        heft_file *f = open_model(b);
        for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
            heft_id id = { .kind = HEFT_ID_BURN, .burn = rows[i].id };
            uint32_t want = rows[i].name ? heft_tensor_find(f, (heft_str){ rows[i].name, 1 })
                                         : HEFT_NONE;
            assert_found(f, &id, want, rows[i].count);
        }
        heft_test_sink sink;
        heft_error err;
        heft_assert_ok(heft_file_convert(f, heft_format_find(HEFT_STR("burnpack")),
                                         heft_test_sink_init(&sink, false), NULL, &err),
                       &err);
        heft_file_close(f);
        heft_test_free(&b);
        b = heft_test_copy(sink.p, sink.len);
        heft_test_sink_free(&sink);
    }
    heft_test_free(&b);
}

static void attributes_of_other_names_are_no_ids(void **state)
{
    static const uint64_t dims[] = { 0 };
    heft_value values[] = { { .kind = HEFT_KIND_UINT, .key = HEFT_STR("param_id"), .as.u = 7 },
                            { .kind = HEFT_KIND_STR, .key = HEFT_STR("burn.param_id") } };
    heft_id id = { .kind = HEFT_ID_BURN, .burn = 7 };
    heft_tensor_spec spec = HEFT_TENSOR_SPEC_INIT;
    heft_write_options opt = HEFT_WRITE_OPTIONS_INIT;
    heft_test_sink sink;
    heft_writer *w;
    heft_error err;
    uint32_t part;
    (void)state;
    opt.version = "1.2";
    spec.name = HEFT_STR("w");
    spec.dtype = HEFT_U8;
    spec.rank = 1;
    spec.dims = dims;
    spec.attributes = values;
    spec.attribute_count = HEFT_COUNT(values);
    heft_assert_ok(heft_writer_open(&w, heft_format_find(HEFT_STR("ztensor")),
                                    heft_test_sink_init(&sink, false), &opt, &err),
                   &err);
    heft_assert_ok(heft_writer_add_tensor(&part, w, &spec, &err), &err);
    heft_assert_ok(heft_writer_begin(w, &err), &err);
    heft_assert_ok(heft_writer_finish(w, &err), &err);
    heft_file *f = open_model(heft_test_sink_bytes(&sink));
    assert_found(f, &id, HEFT_NONE, 0);
    heft_file_close(f);
    heft_test_sink_free(&sink);
}

static void finds_every_id_among_10007(void **state)
{
    enum { MANY = 10007 };
    heft_bytes b = heft_test_many("safetensors", MANY);
    heft_file *f = open_model(b);
    heft_ids *ids;
    heft_error err;
    (void)state;
    heft_assert_ok(heft_ids_open(&ids, f, &err), &err);
    for (uint32_t i = 0; i < MANY; i++) {
        char name[32];
        snprintf(name, sizeof name, "layers.%u.weight", i);
        heft_id id = base_id(name);
        assert_int_equal(heft_ids_find(ids, &id, NULL), heft_tensor_find(f, heft_str_from(name)));
    }
    heft_ids_close(ids);
    heft_ids_close(NULL);
    heft_file_close(f);
    heft_test_free(&b);
}

static void opening_ids_reports_every_failed_allocation(void **state)
{
    heft_bytes b = heft_test_many("safetensors", 3);
    heft_test_memory m;
    heft_status st = HEFT_E_NOMEM;
    (void)state;
    for (uint32_t fail_at = 1; st; fail_at++) {
        heft_ids *ids;
        heft_error err;
        heft_file *f;
        heft_test_memory_init(&m, 0);
        heft_assert_ok(heft_test_open(&f, b, &m.host, &err), &err);
        heft_test_memory_rewind(&m);
        m.fail_at = fail_at;
        st = heft_ids_open(&ids, f, &err);
        if (st)
            heft_assert_status(st, HEFT_E_NOMEM, &err);
        heft_ids_close(ids);
        heft_file_close(f);
        heft_assert_all_freed(&m);
    }
    heft_test_free(&b);
}

/* ---- wrong ids in checkpoints --------------------------------------------------------------- */

typedef struct losses {
    unsigned count, warnings;
} losses;

static void count_loss(void *ctx, heft_severity severity, const char *rule, heft_str tensor,
                       const char *text)
{
    losses *l = ctx;
    (void)text;
    if (strcmp(rule, "gptrs/base-id") != 0)
        return;
    assert_true(tensor.len == 1 && *tensor.ptr == 'w');
    l->count++;
    l->warnings += severity == HEFT_WARNING;
}

/* Opening notes one warning for each wrong id; verify reports a fault in place of the warning. */
static void notes_a_wrong_base_id_at_opening(void **state)
{
    heft_bytes b = heft_test_one("gptrs-checkpoint", 64);
    heft_id id = base_id("w");
    (void)state;
    for (unsigned wrong = 0; wrong < 2; wrong++) {
        heft_file *f = open_model(b);
        const heft_note *note = f->x.notes.ptr;
        heft_verify_result r;
        heft_error err;
        assert_int_equal(f->x.notes.len, wrong);
        if (wrong) {
            assert_string_equal(note->rule, "gptrs/base-id");
            assert_int_equal(note->severity, HEFT_WARNING);
            assert_int_equal(note->tensor, 0);
        }
        heft_assert_ok(heft_file_verify(&r, f, NULL, &err), &err);
        assert_int_equal(r.warnings, 0);
        assert_int_equal(r.faults, wrong);
        heft_file_close(f);
        uint8_t *at = memmem(b.p, b.len, id.base.bytes, sizeof id.base.bytes);
        if (!wrong)
            at[5] ^= 1;
    }
    heft_test_free(&b);
}

static heft_status convert(heft_bytes b, const char *to, bool strict, losses *l, heft_error *err)
{
    heft_write_options write = HEFT_WRITE_OPTIONS_INIT;
    heft_convert_options opt = HEFT_CONVERT_OPTIONS_INIT;
    heft_test_sink sink;
    heft_file *f = open_model(b);
    *l = (losses){ 0, 0 };
    opt.write = &write;
    write.on_loss = count_loss;
    write.ctx = l;
    write.strict = strict;
    heft_status st = heft_file_convert(f, heft_format_find(heft_str_from(to)),
                                       heft_test_sink_init(&sink, false), &opt, err);
    heft_file_close(f);
    heft_test_sink_free(&sink);
    return st;
}

static void conversion_reports_a_wrong_base_id_before_repair(void **state)
{
    heft_bytes b = heft_test_one("gptrs-checkpoint", 64);
    heft_id id = base_id("w");
    heft_error err;
    losses l;
    (void)state;
    heft_assert_ok(convert(b, "gptrs-checkpoint", true, &l, &err), &err);
    assert_int_equal(l.count, 0);
    uint8_t *at = memmem(b.p, b.len, id.base.bytes, sizeof id.base.bytes);
    at[5] ^= 1;
    static const char *const targets[] = { "gptrs-checkpoint", "gptrs-archive" };
    for (size_t i = 0; i < HEFT_COUNT(targets); i++) {
        heft_status st = convert(b, targets[i], false, &l, &err);
        heft_assert_ok(st, &err);
        assert_int_equal(l.count, 1);
        assert_int_equal(l.warnings, 1);
        heft_assert_status(convert(b, targets[i], true, &l, &err), HEFT_E_LOSSY, &err);
        assert_int_equal(l.count, 1);
    }
    memset(at, 0, sizeof id.base.bytes); /* zeros mean that no id is stored, so no id is wrong */
    heft_assert_ok(convert(b, "gptrs-checkpoint", true, &l, &err), &err);
    assert_int_equal(l.count, 0);
    heft_test_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_a_tensor_by_the_base_id_of_its_name),
        cmocka_unit_test(ignores_a_stored_id_of_another_name),
        cmocka_unit_test(finds_no_base_id_for_a_non_ascii_name),
        cmocka_unit_test(finds_and_counts_burn_ids),
        cmocka_unit_test(attributes_of_other_names_are_no_ids),
        cmocka_unit_test(finds_every_id_among_10007),
        cmocka_unit_test(opening_ids_reports_every_failed_allocation),
        cmocka_unit_test(notes_a_wrong_base_id_at_opening),
        cmocka_unit_test(conversion_reports_a_wrong_base_id_before_repair),
    };
    return cmocka_run_group_tests_name("find_id", tests, NULL, NULL);
}
