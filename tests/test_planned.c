/* test_planned.c - an input that changes between the plan of a conversion and its bytes: the output is never
 * longer than planned, and what no longer fits the plan is an error. */
#include "models.h"

enum { STRETCH = 8 }; /* bytes of each name, key and text that change */

typedef struct changing {
    heft_test_sink sink;
    heft_status (*reserve)(heft_sink *s, uint64_t size, heft_error *err);
    heft_bytes source;
    char from, to;
} changing;

/* Every run of STRETCH such bytes, wherever the input has one. */
static void change(changing *c)
{
    for (size_t at = 0; at + STRETCH <= c->source.len; at++) {
        size_t n = 0;
        while (n < STRETCH && c->source.p[at + n] == (uint8_t)c->from)
            n++;
        if (n == STRETCH)
            memset(c->source.p + at, c->to, STRETCH);
    }
}

/* The plan is made, and no byte is written. */
static heft_status reserve(heft_sink *s, uint64_t size, heft_error *err)
{
    changing *c = (changing *)(void *)s;
    change(c);
    return c->reserve(s, size, err);
}

static heft_str word(char *room, char filler, const char *end)
{
    memset(room, filler, STRETCH);
    strcpy(room + STRETCH, end);
    return (heft_str){ room, strlen(room) };
}

/* A GGUF, whose names, keys and texts an index lends: two tensors, a number and a text. */
static heft_bytes model(char filler)
{
    enum { ROOM = STRETCH + 8 };
    char room[ROOM], text[ROOM];
    const uint64_t dims[] = { 4 };
    const float data[4] = { 1, 2, 3, 4 };
    uint32_t part;
    heft_error err;
    heft_writer *w;
    heft_test_sink sink;
    heft_value v = { .kind = HEFT_KIND_STR };
    heft_assert_ok(heft_writer_open(&w, heft_format_find("gguf"), heft_test_sink_init(&sink, false),
                                    NULL, &err),
                   &err);
    v.key = word(room, filler, ".text");
    v.as.s = word(text, filler, "");
    heft_assert_ok(heft_writer_add_meta(w, v, &err), &err);
    v = (heft_value){ .kind = HEFT_KIND_INT, .key = word(room, filler, ".one"), .as.i = 1 };
    heft_assert_ok(heft_writer_add_meta(w, v, &err), &err);
    for (int i = 0; i < 2; i++)
        heft_assert_ok(heft_writer_add_dense(&part, w, word(room, filler, i ? ".1" : ".0"),
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

/* Whether the conversion was refused. */
static bool convert_changing(const heft_format *to, const char *version, char from, char into,
                             bool is_stream)
{
    enum { FAR = 1 << 20 }; /* where a writer without an end is stopped */
    changing c = { .source = model(from), .from = from, .to = into };
    heft_write_options write = HEFT_WRITE_OPTIONS_INIT;
    heft_convert_options o = HEFT_CONVERT_OPTIONS_INIT;
    heft_error err;
    heft_file *in;
    uint64_t planned = 0;
    heft_test_sink_init(&c.sink, is_stream);
    c.reserve = c.sink.ops.reserve;
    c.sink.ops.reserve = reserve;
    c.sink.fail_from = FAR;
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

static const heft_format *format_at(size_t i)
{
    const heft_format *f = i < heft_format_count() ? heft_format_at(i) : NULL;
    return f && !(heft_format_caps(f) & HEFT_CAN_WRITE) ? format_at(i + 1) : f;
}

/* Names grow and shrink in JSON, and keys and texts that are none any more are left out. */
static void no_format_writes_more_than_it_planned(void **state)
{
    static const char pairs[][2] = { { 'a', '"' }, { '"', 'a' }, { 'a', '\xFF' },
                                     { 'a', 0 },   { 'a', 'b' }, { '\x01', '"' } };
    (void)state;
    for (size_t i = 0; i < heft_format_count(); i++)
        for (size_t k = 0; k < HEFT_COUNT(pairs); k++)
            for (int is_stream = 0; is_stream < 2; is_stream++) {
                const heft_format *f = format_at(i);
                if (f && f == heft_format_at(i))
                    convert_changing(f, NULL, pairs[k][0], pairs[k][1], is_stream);
            }
}

static void generations_neither(void **state)
{
    static const char *const targets[][2] = {
        { "ztensor", "1.1" },  { "ztensor", "1.2" }, { "ztensor", "2" },     { "mag", "100" },
        { "mag", "snapshot" }, { "embd", "simple" }, { "burnpack", "0.20" },
    };
    static const char into[] = { '"', '\xFF', 0, 'b' };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(targets); i++)
        for (size_t k = 0; k < HEFT_COUNT(into); k++)
            convert_changing(heft_format_find(targets[i][0]), targets[i][1], 'a', into[k], false);
}

static void a_header_of_another_length_is_an_error(void **state)
{
    const heft_format *safetensors = heft_format_find("safetensors");
    (void)state;
    assert_true(convert_changing(safetensors, NULL, 'a', '"', false));
    assert_true(convert_changing(safetensors, NULL, '"', 'a', false));
    assert_true(convert_changing(safetensors, NULL, 'a', '\xFF', false));
    assert_true(convert_changing(heft_format_find("mag"), NULL, 'a', 0, false));
    assert_true(convert_changing(heft_format_find("embd"), NULL, 'a', '\xFF', false));
}

/* Its checksum stands in front of the names. */
static void a_checksum_of_other_names_is_an_error(void **state)
{
    (void)state;
    assert_true(convert_changing(heft_format_find("mag"), NULL, 'a', 'b', false));
    assert_true(convert_changing(heft_format_find("mag"), "snapshot", 'a', 'b', true));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_format_writes_more_than_it_planned),
        cmocka_unit_test(generations_neither),
        cmocka_unit_test(a_header_of_another_length_is_an_error),
        cmocka_unit_test(a_checksum_of_other_names_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
