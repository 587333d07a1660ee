/* test_planned.c - inputs that change after a conversion is planned: the output never exceeds the
 * plan, and content that no longer fits the plan is an error. */
#include "models.h"

enum { RUN = 8 }; /* number of changing bytes in each name, key and text */

typedef struct changing {
    heft_test_sink sink;
    heft_status (*reserve)(heft_sink *s, uint64_t size, heft_error *err);
    heft_bytes source;
    char from, to;
} changing;

/* Replace every run of RUN bytes `from` in the input. */
static void replace_runs(changing *c)
{
    for (size_t at = 0; at + RUN <= c->source.len; at++) {
        size_t n = 0;
        while (n < RUN && c->source.p[at + n] == (uint8_t)c->from)
            n++;
        if (n == RUN)
            memset(c->source.p + at, c->to, RUN);
    }
}

/* Change the input when the plan is made and before a byte is written. */
static heft_status change_and_reserve(heft_sink *s, uint64_t size, heft_error *err)
{
    changing *c = (changing *)(void *)s;
    replace_runs(c);
    return c->reserve(s, size, err);
}

static heft_str make_text(char *text, char filler, const char *end)
{
    memset(text, filler, RUN);
    strcpy(text + RUN, end);
    return (heft_str){ text, strlen(text) };
}

/* Return a GGUF file, which an index borrows names from: two tensors, a number and a text. */
static heft_bytes model(char filler)
{
    enum { MAX_TEXT = RUN + 8 };
    char text[MAX_TEXT], value[MAX_TEXT];
    const uint64_t dims[] = { 4 };
    const float data[4] = { 1, 2, 3, 4 };
    uint32_t part;
    heft_error err;
    heft_writer *w;
    heft_test_sink sink;
    heft_value v = { .kind = HEFT_KIND_STR };
    heft_assert_ok(heft_writer_open(&w, heft_format_find(HEFT_STR("gguf")),
                                    heft_test_sink_init(&sink, false), NULL, &err),
                   &err);
    v.key = make_text(text, filler, ".text");
    v.as.s = make_text(value, filler, "");
    heft_assert_ok(heft_writer_add_meta(w, v, &err), &err);
    v = (heft_value){ .kind = HEFT_KIND_INT, .key = make_text(text, filler, ".one"), .as.i = 1 };
    heft_assert_ok(heft_writer_add_meta(w, v, &err), &err);
    for (int i = 0; i < 2; i++)
        heft_assert_ok(heft_writer_add_dense(&part, w, make_text(text, filler, i ? ".1" : ".0"),
                                             HEFT_F32, dims, 1, &err),
                       &err);
    heft_assert_ok(heft_writer_begin(w, &err), &err);
    for (uint32_t i = 0; i < 2; i++)
        heft_assert_ok(heft_writer_write(w, i, data, sizeof data, &err), &err);
    heft_assert_ok(heft_writer_finish(w, &err), &err);
    heft_bytes b = heft_test_sink_bytes(&sink);
    b = heft_test_copy(b.p, b.len);
    heft_test_sink_free(&sink);
    return b;
}

/* Return true if the conversion failed. */
static bool convert_changing(const heft_format *to, const char *version, char from, char into,
                             bool is_stream)
{
    enum { MAX_OUTPUT = 1 << 20 }; /* stops a writer that does not end */
    changing c = { .source = model(from), .from = from, .to = into };
    heft_write_options write = HEFT_WRITE_OPTIONS_INIT;
    heft_convert_options o = HEFT_CONVERT_OPTIONS_INIT;
    heft_error err;
    heft_file *in;
    uint64_t planned = 0;
    heft_test_sink_init(&c.sink, is_stream);
    c.reserve = c.sink.ops.reserve;
    c.sink.ops.reserve = change_and_reserve;
    c.sink.fail_from = MAX_OUTPUT;
    o.write = &write;
    write.version = version;
    write.allow_loss = true;
    o.no_verify = true;
    o.planned_bytes = &planned;
    heft_assert_ok(heft_test_open(&in, c.source, NULL, &err), &err);
    heft_status st = heft_file_convert(in, to, &c.sink.base, &o, &err);
    if (c.sink.len > planned)
        fail_msg("%s, %02x to %02x: %llu bytes were planned, %zu written", heft_format_name(to),
                 (uint8_t)from, (uint8_t)into, (unsigned long long)planned, c.sink.len);
    if (st)
        heft_assert_fails(st, HEFT_E_IO, &err, "the input changed while");
    else
        assert_int_equal(c.sink.len, planned);
    assert_int_equal(c.sink.finished, !st);
    heft_file_close(in);
    heft_test_free(&c.source);
    heft_test_sink_free(&c.sink);
    return st;
}

static const heft_format *format_at(uint32_t i)
{
    const heft_format *f = i < heft_format_count() ? heft_format_at(i) : NULL;
    return f && !(heft_format_caps(f) & HEFT_CAN_WRITE) ? format_at(i + 1) : f;
}

/* Escapes make names grow and shrink in JSON; keys and texts that become invalid are dropped. */
static void no_format_writes_more_than_planned(void **state)
{
    static const char pairs[][2] = { { 'a', '"' }, { '"', 'a' }, { 'a', '\xFF' },
                                     { 'a', 0 },   { 'a', 'b' }, { '\x01', '"' } };
    (void)state;
    for (uint32_t i = 0; i < heft_format_count(); i++)
        for (size_t k = 0; k < HEFT_COUNT(pairs); k++)
            for (int is_stream = 0; is_stream < 2; is_stream++) {
                const heft_format *f = format_at(i);
                if (f && f == heft_format_at(i))
                    convert_changing(f, NULL, pairs[k][0], pairs[k][1], is_stream);
            }
}

static void no_version_writes_more_than_planned(void **state)
{
    static const char *const targets[][2] = {
        { "ztensor", "1.1" },  { "ztensor", "1.2" }, { "ztensor", "2" },     { "mag", "100" },
        { "mag", "snapshot" }, { "embd", "simple" }, { "burnpack", "0.20" },
    };
    static const char into[] = { '"', '\xFF', 0, 'b' };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(targets); i++)
        for (size_t k = 0; k < HEFT_COUNT(into); k++)
            convert_changing(heft_format_find(heft_str_from(targets[i][0])), targets[i][1], 'a',
                             into[k], false);
}

static void refuses_a_header_of_another_length(void **state)
{
    const heft_format *safetensors = heft_format_find(HEFT_STR("safetensors"));
    (void)state;
    assert_true(convert_changing(safetensors, NULL, 'a', '"', false));
    assert_true(convert_changing(safetensors, NULL, '"', 'a', false));
    assert_true(convert_changing(safetensors, NULL, 'a', '\xFF', false));
    assert_true(convert_changing(heft_format_find(HEFT_STR("mag")), NULL, 'a', 0, false));
    assert_true(convert_changing(heft_format_find(HEFT_STR("embd")), NULL, 'a', '\xFF', false));
}

/* The checksum of a .mag file precedes the names. */
static void refuses_changed_names_under_a_checksum(void **state)
{
    (void)state;
    assert_true(convert_changing(heft_format_find(HEFT_STR("mag")), NULL, 'a', 'b', false));
    assert_true(convert_changing(heft_format_find(HEFT_STR("mag")), "snapshot", 'a', 'b', true));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_format_writes_more_than_planned),
        cmocka_unit_test(no_version_writes_more_than_planned),
        cmocka_unit_test(refuses_a_header_of_another_length),
        cmocka_unit_test(refuses_changed_names_under_a_checksum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
