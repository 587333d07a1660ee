/* test_notices.c - notices about an opened file, and checksums that are verified at opening. */
#include "models.h"

static heft_file *open_or_fail(heft_bytes b, bool no_verify)
{
    heft_open_options opt = HEFT_OPEN_OPTIONS_INIT;
    heft_source *source;
    heft_error err;
    heft_file *f;
    opt.no_verify = no_verify;
    heft_assert_ok(heft_source_open_memory(&source, b.p, b.len, &err), &err);
    heft_assert_ok(heft_file_open_source(&f, source, &opt, &err), &err);
    return f;
}

static heft_status try_open(heft_bytes b, heft_error *err)
{
    heft_source *source;
    heft_file *f;
    heft_assert_ok(heft_source_open_memory(&source, b.p, b.len, err), err);
    heft_status st = heft_file_open_source(&f, source, NULL, err);
    heft_file_close(f);
    return st;
}

/* Find the first warning about the tensor; return false if there is none. */
static bool find_warning(heft_finding *out, const heft_file *f, uint32_t tensor)
{
    for (uint32_t i = 0, n = heft_notice_count(f); i < n; i++) {
        *out = heft_notice_at(f, i);
        if (out->tensor == tensor && out->severity == HEFT_WARNING)
            return true;
    }
    return false;
}

/* ---- names ---------------------------------------------------------------------------------- */

static const struct {
    const char *name, *words; /* part of the warning; NULL: no warning */
} names[] = {
    { "/etc/passwd.1", "begins with '/'" },
    { "../weight", "a '..'" },
    { "..", "a '..'" },
    { "encoder/layer/../../weight", "a '..'" },
    { "encoder.layer\\..\\weight", "a '..'" },
    { "C:\\weights\\w", "the letter of a drive" },
    { "c:/weights/w", "the letter of a drive" },
    { "encoder.layer.0\\weight", "a backslash" },
    { "a\\b", "a backslash" },
    { "encoder/layer/weight", NULL },
    { "encoder..weight", NULL },
    { "...", NULL },
    { "x:0", NULL },
    { "encoder.layer.0.attention.weight", NULL },
    { "w", NULL },
};

static void assert_warned(const char *format, const heft_file *f, size_t i)
{
    heft_finding x;
    char rule[64];
    uint32_t id = heft_tensor_find(f, heft_str_from(names[i].name));
    assert_int_not_equal(id, HEFT_NONE);
    /* members of an .npz archive have suffixes, and a warning with a different text */
    bool is_npz = !strcmp(format, "npz");
    bool found = find_warning(&x, f, id);
    if (is_npz && strlen(names[i].name) < 4)
        return;
    if (found != !!names[i].words)
        fail_msg("%s, %s: %s", format, names[i].name, found ? x.text : "no warning");
    if (!found)
        return;
    snprintf(rule, sizeof rule, "%s", format);
    rule[strcspn(rule, "-")] = '\0'; /* "gptrs-archive" */
    strcat(rule, "/name");
    assert_string_equal(x.rule, rule);
    if (!is_npz)
        assert_non_null(strstr(x.text, names[i].words));
}

static void every_format_warns_of_names_that_look_like_paths(void **state)
{
    const char *format;
    (void)state;
    for (size_t k = 0; (format = heft_test_writable(k)) != NULL; k++)
        for (size_t i = 0; i < HEFT_COUNT(names); i++) {
            /* One model for each name: Flax has no map "..", in which "weight" is, and a leaf. */
            const test_tensor t = { names[i].name, HEFT_F32, 1, { 2 } };
            heft_bytes b = heft_test_model(format, &t, 1);
            heft_file *f = open_or_fail(b, false);
            assert_warned(format, f, i);
            heft_file_close(f);
            heft_test_free(&b);
        }
}

static void conversion_keeps_names_that_look_like_paths(void **state)
{
    static const test_tensor tensors[] = { { "../w", HEFT_F32, 1, { 2 } } };
    heft_finding x;
    (void)state;
    heft_bytes b = heft_test_converted("safetensors", tensors, 1, "ztensor", NULL);
    heft_file *f = open_or_fail(b, false);
    assert_true(find_warning(&x, f, heft_tensor_find(f, HEFT_STR("../w"))));
    assert_string_equal(x.rule, "ztensor/name");
    heft_file_close(f);
    heft_test_free(&b);
}

/* ---- number of notices ---------------------------------------------------------------------- */

static void stops_after_10000_notices(void **state)
{
    enum { COUNT = 10001, MAX_NOTICES = 10000 };
    test_tensor *tensors = calloc(COUNT, sizeof *tensors);
    char(*text)[16] = calloc(COUNT, sizeof *text);
    heft_finding x;
    (void)state;
    for (uint32_t i = 0; i < COUNT; i++) {
        snprintf(text[i], sizeof text[i], "../%u", i);
        tensors[i] = (test_tensor){ text[i], HEFT_U8, 1, { 1 } };
    }
    heft_bytes b = heft_test_model("safetensors", tensors, COUNT);
    heft_file *f = open_or_fail(b, false);
    assert_int_equal(heft_notice_count(f), MAX_NOTICES + 1);
    assert_string_equal(heft_notice_at(f, MAX_NOTICES - 1).rule, "safetensors/name");
    x = heft_notice_at(f, MAX_NOTICES);
    assert_string_equal(x.rule, "heft/notices");
    assert_int_equal(x.severity, HEFT_WARNING);
    assert_null(heft_notice_at(f, MAX_NOTICES + 1).rule);
    heft_file_close(f);
    heft_test_free(&b);
    free(tensors);
    free(text);
}

static void valid_files_have_no_warnings(void **state)
{
    const char *format;
    heft_finding x;
    (void)state;
    for (size_t k = 0; (format = heft_test_writable(k)) != NULL; k++) {
        heft_bytes b = heft_test_one(format, 4096);
        heft_file *f = open_or_fail(b, false);
        for (uint32_t i = 0, n = heft_notice_count(f); i < n; i++) {
            x = heft_notice_at(f, i);
            assert_int_equal(x.severity, HEFT_NOTE);
        }
        heft_file_close(f);
        heft_test_free(&b);
    }
}

/* ---- verification --------------------------------------------------------------------------- */

typedef struct findings {
    const heft_file *f;
    uint32_t notices;
    size_t faults;
    const char *fault;
} findings;

static void on_finding(void *ctx, const heft_finding *x)
{
    findings *s = ctx;
    const char *notice = heft_notice_at(s->f, s->notices).text;
    if (notice && !strcmp(notice, x->text))
        s->notices++;
    s->fault = x->severity == HEFT_FAULT ? x->rule : s->fault;
    s->faults += x->severity == HEFT_FAULT;
}

static void verify_reports_each_notice_once(void **state)
{
    static const test_tensor tensors[] = {
        { "../v", HEFT_F32, 1, { 2 } },
        { "a\\w", HEFT_F32, 1, { 2 } },
    };
    heft_verify_result result;
    heft_error err;
    (void)state;
    heft_bytes b = heft_test_model("mag", tensors, HEFT_COUNT(tensors));
    heft_file *f = open_or_fail(b, false);
    findings s = { .f = f };
    heft_assert_ok(heft_file_verify(&result, f,
                                    &(heft_verify_options){ sizeof(heft_verify_options),
                                                            .on_finding = on_finding, .ctx = &s },
                                    &err),
                   &err);
    assert_int_equal(s.notices, 2);
    assert_int_equal(result.warnings, 2);
    heft_file_close(f);
    heft_test_free(&b);
}

/* ---- quick verification --------------------------------------------------------------------- */

typedef struct counted_source { /* a source that limits the bytes read, and cannot map */
    heft_source base;
    heft_source_ops ops;
    heft_bytes bytes;
    uint64_t max_bytes; /* bytes that may still be read */
} counted_source;

static heft_status read_counted(heft_source *s, uint64_t off, void *buf, size_t len,
                                heft_error *err)
{
    counted_source *r = (counted_source *)s;
    (void)err;
    assert_in_range(len, 0, r->max_bytes);
    r->max_bytes -= len;
    memcpy(buf, r->bytes.p + off, len);
    return HEFT_OK;
}

static void close_counted(heft_source *s)
{
    (void)s;
}

static heft_file *open_counted(counted_source *r, heft_bytes b)
{
    heft_file *f;
    heft_error err;
    *r = (counted_source){
        .ops = { .size = sizeof r->ops, .read = read_counted, .close = close_counted },
        .bytes = b,
        .max_bytes = UINT64_MAX
    };
    r->base = (heft_source){ &r->ops, b.len };
    heft_assert_ok(heft_file_open_source(&f, &r->base, NULL, &err), &err);
    return f;
}

static void count_quick(void *ctx, const heft_finding *x)
{
    *(int *)ctx += !strcmp(x->rule, "heft/quick") && x->severity == HEFT_NOTE;
}

static void quick_verification_does_not_read_the_payload(void **state)
{
    enum { PAYLOAD = 8 << 20, INDEX = 64 << 10 };
    const char *format;
    (void)state;
    for (size_t k = 0; (format = heft_test_writable(k)) != NULL; k++) {
        counted_source r;
        heft_verify_result result;
        heft_verify_options o = HEFT_VERIFY_OPTIONS_INIT;
        heft_error err;
        int notes = 0;
        heft_bytes b = heft_test_one(format, PAYLOAD);
        heft_file *f = open_counted(&r, b);
        r.max_bytes = INDEX;
        o.quick = true;
        o.on_finding = count_quick;
        o.ctx = &notes;
        heft_assert_ok(heft_file_verify(&result, f, &o, &err), &err);
        assert_int_equal(notes, 1);
        assert_int_equal(result.faults, 0);
        assert_in_range(result.bytes_checked, 0, INDEX);
        heft_file_close(f);
        heft_test_free(&b);
    }
}

static void quick_verification_finds_wrong_header_checksums(void **state)
{
    heft_verify_result result;
    heft_verify_options o = HEFT_VERIFY_OPTIONS_INIT;
    heft_error err;
    (void)state;
    heft_bytes b = heft_test_one("mag", 64);
    b.p[8] ^= 1;
    heft_file *f = open_or_fail(b, true);
    o.quick = true;
    heft_assert_ok(heft_file_verify(&result, f, &o, &err), &err);
    assert_int_equal(result.faults, 1);
    heft_assert_ok(heft_file_verify(NULL, f, NULL, &err), &err);
    heft_file_close(f);
    heft_test_free(&b);
}

/* ---- checksums ------------------------------------------------------------------------------ */

static const struct {
    const char *format, *rule;
    size_t byte; /* offset of the damaged byte, in the name or the checksum */
} damages[] = {
    { "mag", "mag/header-crc", 8 },
    { "embd", "embd/header-crc", 56 },
};

static void refuses_to_open_with_a_wrong_header_checksum(void **state)
{
    heft_verify_result result;
    heft_error err;
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(damages); i++) {
        heft_bytes b = heft_test_one(damages[i].format, 64);
        b.p[damages[i].byte] ^= 1;
        heft_assert_fails(try_open(b, &err), HEFT_E_CHECKSUM, &err, damages[i].rule);
        assert_int_not_equal(err.offset, HEFT_NOWHERE);
        heft_file *f = open_or_fail(b, true);
        findings s = { .f = f };
        heft_assert_ok(
            heft_file_verify(&result, f,
                             &(heft_verify_options){ sizeof(heft_verify_options),
                                                     .on_finding = on_finding, .ctx = &s },
                             &err),
            &err);
        assert_int_equal(s.faults, result.faults);
        assert_true(result.faults);
        heft_file_close(f);
        heft_test_free(&b);
    }
}

/* Every method of opening verifies the checksum: mapped, read, fed in chunks. */
static void every_open_method_refuses_a_wrong_header_checksum(void **state)
{
    enum { TENSORS = 3000 }; /* records longer than the first bytes that are read */
    const char *path = heft_test_path(*state, "damaged.mag");
    heft_bytes b = heft_test_many("mag", TENSORS);
    heft_error err;
    b.p[8] ^= 1;
    heft_test_save(path, b.p, b.len);
    for (size_t i = 0; i < heft_test_open_method_count; i++) {
        heft_test_input in = { path, b };
        heft_open_options opt = HEFT_OPEN_OPTIONS_INIT;
        heft_file *f = NULL;
        heft_status st = heft_test_open_methods[i].open(&f, &in, &opt, &err);
        heft_file_close(f);
        heft_assert_fails(st, HEFT_E_CHECKSUM, &err, "mag/header-crc");
        opt.no_verify = true;
        heft_assert_ok(heft_test_open_methods[i].open(&f, &in, &opt, &err), &err);
        assert_int_equal(heft_tensor_count(f), TENSORS);
        heft_file_close(f);
    }
    heft_test_free(&b);
}

/* Several threads compute the checksum of records of many megabytes. */
static void finds_a_wrong_checksum_of_a_large_index(void **state)
{
    enum { TENSORS = 150000, FROM_END = 100 };
    heft_error err;
    (void)state;
    heft_bytes b = heft_test_many("mag", TENSORS);
    heft_file_close(open_or_fail(b, false));
    heft_file *f = open_or_fail(b, false);
    uint64_t data = heft_part_at(f, heft_tensor_at(f, 0).first_part).offset;
    heft_str name = heft_tensor_at(f, TENSORS / 2).name;
    size_t at = (size_t)((const uint8_t *)name.ptr - b.p) + name.len - 1;
    assert_true(at < data);
    heft_file_close(f);
    b.p[at] = 'X'; /* the changed name stays unique */
    heft_assert_fails(try_open(b, &err), HEFT_E_CHECKSUM, &err, "mag/header-crc");
    f = open_or_fail(b, true);
    assert_int_equal(heft_tensor_count(f), TENSORS);
    heft_file_close(f);
    heft_test_free(&b);
}

/* ---- unknown keys --------------------------------------------------------------------------- */

static void count_unknown(void *ctx, heft_severity severity, const char *rule, heft_str tensor,
                          const char *text)
{
    (void)severity, (void)tensor;
    *(uint32_t *)ctx += !strcmp(rule, "safetensors/unknown-field") && strstr(text, "extra");
}

/* Open a file with the n-th allocation failing, and convert the file. Return false if there were
 * fewer than n allocations. */
static bool convert_after_failure(heft_bytes b, uint32_t n)
{
    heft_test_memory m;
    heft_open_options opt = HEFT_OPEN_OPTIONS_INIT;
    heft_write_options write = HEFT_WRITE_OPTIONS_INIT;
    heft_convert_options convert = HEFT_CONVERT_OPTIONS_INIT;
    heft_test_sink sink;
    heft_source *source;
    heft_file *f;
    heft_error err;
    uint32_t reported = 0;
    heft_test_memory_init(&m, n);
    opt.host = &m.host;
    convert.write = &write;
    write.on_loss = count_unknown;
    write.ctx = &reported;
    heft_assert_ok(heft_source_open_memory(&source, b.p, b.len, &err), &err);
    heft_status st = heft_file_open_source(&f, source, &opt, &err);
    bool was_reached = atomic_load(&m.calls) >= n;
    if (!st) {
        st = heft_file_convert(f, heft_format_find(HEFT_STR("safetensors")),
                               heft_test_sink_init(&sink, false), &convert, &err);
        assert_true(st == HEFT_E_NOMEM || (!st && reported == 1));
        heft_test_sink_free(&sink);
    }
    heft_file_close(f);
    heft_assert_all_freed(&m);
    return was_reached;
}

static void reports_unknown_keys_after_a_failed_allocation(void **state)
{
    static const char header[] =
        "{\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"extra\":1}}  ";
    uint8_t raw[8 + sizeof header - 1 + 4] = { sizeof header - 1 };
    (void)state;
    memcpy(raw + 8, header, sizeof header - 1);
    for (uint32_t n = 1; convert_after_failure((heft_bytes){ raw, sizeof raw }, n); n++)
        ;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_format_warns_of_names_that_look_like_paths),
        cmocka_unit_test(conversion_keeps_names_that_look_like_paths),
        cmocka_unit_test(stops_after_10000_notices),
        cmocka_unit_test(valid_files_have_no_warnings),
        cmocka_unit_test(verify_reports_each_notice_once),
        cmocka_unit_test(quick_verification_does_not_read_the_payload),
        cmocka_unit_test(quick_verification_finds_wrong_header_checksums),
        cmocka_unit_test(refuses_to_open_with_a_wrong_header_checksum),
        cmocka_unit_test_setup_teardown(every_open_method_refuses_a_wrong_header_checksum,
                                        heft_test_dir_make, heft_test_dir_remove),
        cmocka_unit_test(finds_a_wrong_checksum_of_a_large_index),
        cmocka_unit_test(reports_unknown_keys_after_a_failed_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
