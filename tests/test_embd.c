/* test_embd.c - EMBD files written call by call, and EMBD files larger than 4 GiB. */
#include "dump.h"

static const char *const layouts[] = { "1.0", "simple" };

static heft_vocab *vocab_of(const char *lines)
{
    heft_error err;
    heft_vocab *v;
    heft_assert_ok(heft_vocab_parse_lines(&v, heft_test_str(lines), NULL, &err), &err);
    return v;
}

/* ---- written call by call ------------------------------------------------------------------- */

enum { LARGE = 70000 };

static void declare(heft_writer *w, const heft_vocab *v, heft_error *err)
{
    const uint64_t small[2] = { 2, 3 }, large[1] = { LARGE };
    heft_value key = { .kind = HEFT_KIND_STR, .key = heft_test_str("model_name") };
    uint32_t part;
    key.as.s = heft_test_str("tiny");
    heft_assert_ok(heft_writer_add_meta(w, key, err), err);
    heft_assert_ok(heft_writer_set_vocab(w, v, err), err);
    heft_assert_ok(heft_writer_add_dense(&part, w, heft_test_str("small"), HEFT_F32, small, 2, err),
                   err);
    heft_assert_ok(
        heft_writer_add_dense(&part, w, heft_test_str("a longer name"), HEFT_F32, large, 1, err),
        err);
    heft_assert_ok(heft_writer_add_dense(&part, w, heft_test_str("last"), HEFT_F32, small, 1, err),
                   err);
}

/* Write the model in chunks of 999 bytes; no tensor is a multiple of 999 bytes. */
static heft_bytes write_model(const char *layout, bool is_stream, const heft_vocab *v)
{
    static const uint32_t elements[] = { 6, LARGE, 2 };
    heft_test_sink sink;
    heft_writer *w;
    heft_error err;
    uint8_t chunk[999];
    heft_write_options opt = HEFT_WRITE_OPTIONS_INIT;
    opt.version = layout;
    heft_assert_ok(heft_writer_open(&w, heft_format_find(HEFT_STR("embd")),
                                    heft_test_sink_init(&sink, is_stream), &opt, &err),
                   &err);
    declare(w, v, &err);
    heft_assert_ok(heft_writer_begin(w, &err), &err);
    heft_assert_fails(heft_writer_set_vocab(w, v, &err), HEFT_E_ARGUMENT, &err,
                      "must be set before");
    for (uint32_t part = 0; part < HEFT_COUNT(elements); part++)
        for (size_t left = 4u * elements[part], n; left; left -= n) {
            n = left < sizeof chunk ? left : sizeof chunk;
            memset(chunk, (int)(left % 251), n);
            heft_assert_ok(heft_writer_write(w, part, chunk, n, &err), &err);
        }
    heft_assert_ok(heft_writer_finish(w, &err), &err);
    heft_bytes b = heft_test_copy(sink.p, sink.len);
    heft_test_sink_free(&sink);
    return b;
}

static void assert_flawless(heft_bytes b, const char *layout)
{
    heft_verify_result result;
    heft_status st;
    heft_error err;
    heft_file *f;
    heft_assert_ok(heft_test_open(&f, b, NULL, &err), &err);
    char *findings = heft_test_findings(&result, &st, f, &err);
    heft_assert_ok(st, &err);
    heft_assert_same_text(findings, "");
    assert_int_equal(result.bytes_checked > 4 * LARGE, !strcmp(layout, "1.0"));
    free(findings);
    heft_file_close(f);
}

static void writes_flawless_files_call_by_call(void **state)
{
    heft_vocab *v = vocab_of("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nword\n");
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(layouts); i++) {
        heft_bytes file = write_model(layouts[i], false, v);
        heft_bytes stream = write_model(layouts[i], true, v);
        heft_assert_same_bytes(file, stream);
        assert_flawless(file, layouts[i]);
        heft_test_free(&file);
        heft_test_free(&stream);
    }
    heft_vocab_close(v);
}

static void conversion_and_calls_write_the_same_bytes(void **state)
{
    heft_vocab *v = vocab_of("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nword\n");
    heft_bytes model = write_model("1.0", false, v);
    heft_error err;
    heft_file *f;
    (void)state;
    heft_assert_ok(heft_test_open(&f, model, NULL, &err), &err);
    for (size_t i = 0; i < 2 * HEFT_COUNT(layouts); i++) {
        heft_test_sink sink;
        heft_write_options write = HEFT_WRITE_OPTIONS_INIT;
        heft_convert_options opt = HEFT_CONVERT_OPTIONS_INIT;
        opt.write = &write;
        write.version = layouts[i / 2];
        heft_sink *to = heft_test_sink_init(&sink, i & 1);
        heft_assert_ok(heft_file_convert(f, heft_format_find(HEFT_STR("embd")), to, &opt, &err),
                       &err);
        heft_bytes same = write_model(layouts[i / 2], false, v);
        heft_assert_same_bytes(heft_test_sink_bytes(&sink), same);
        heft_test_free(&same);
        heft_test_sink_free(&sink);
    }
    heft_file_close(f);
    heft_test_free(&model);
    heft_vocab_close(v);
}

/* ---- large files ---------------------------------------------------------------------------- */

static const uint64_t giant = 5ull << 30;

typedef struct ends_source { /* a file with given first and last bytes, and zeros between */
    heft_source base;
    heft_bytes head, tail;
} ends_source;

static heft_status read_ends(heft_source *s, uint64_t off, void *buf, size_t len, heft_error *err)
{
    const ends_source *f = (ends_source *)s;
    uint64_t tail = s->size - f->tail.len;
    (void)err;
    memset(buf, 0, len);
    for (size_t i = 0; i < len; i++) {
        if (off + i < f->head.len)
            ((uint8_t *)buf)[i] = f->head.p[off + i];
        else if (off + i >= tail)
            ((uint8_t *)buf)[i] = f->tail.p[off + i - tail];
        else if (off + i + 1 < tail)
            i = off + len <= tail ? len : (size_t)(tail - off) - 1;
    }
    return HEFT_OK;
}

static void close_ends(heft_source *s)
{
    free(s);
}

typedef struct ends_sink { /* stores the first and the last bytes of a large file */
    heft_sink base;
    uint8_t head[4096], tail[4096];
    uint64_t size, written;
    bool finished;
} ends_sink;

static heft_status ends_reserve(heft_sink *s, uint64_t size, heft_error *err)
{
    (void)err;
    ((ends_sink *)s)->size = size;
    return HEFT_OK;
}

static heft_status ends_write_at(heft_sink *s, uint64_t at, const void *data, size_t len,
                                 heft_error *err)
{
    ends_sink *e = (ends_sink *)s;
    const uint8_t *p = data;
    uint64_t tail = e->size - sizeof e->tail;
    (void)err;
    for (size_t i = 0; i < len; i++) {
        if (at + i < sizeof e->head)
            e->head[at + i] = p[i];
        else if (at + i >= tail)
            e->tail[at + i - tail] = p[i];
        else if (at + len <= tail)
            break;
    }
    e->written += len;
    return HEFT_OK;
}

static heft_status ends_finish(heft_sink *s, heft_error *err)
{
    (void)err;
    ((ends_sink *)s)->finished = true;
    return HEFT_OK;
}

static void ends_discard(heft_sink *s)
{
    (void)s;
}

static const heft_sink_ops ends_ops = { .size = sizeof(heft_sink_ops),
                                        .write_at = ends_write_at,
                                        .reserve = ends_reserve,
                                        .finish = ends_finish,
                                        .discard = ends_discard };

/* Write two tensors of 5 GiB together; the second begins after 4 GiB. */
static void write_giant(ends_sink *sink)
{
    static uint8_t zeros[1 << 20];
    const uint64_t dims[2][2] = { { 1 << 15, 1 << 15 }, { 1 << 14, 1 << 14 } };
    heft_error err;
    heft_writer *w;
    uint32_t part;
    *sink = (ends_sink){ .base = { &ends_ops } };
    heft_assert_ok(
        heft_writer_open(&w, heft_format_find(HEFT_STR("embd")), &sink->base, NULL, &err), &err);
    for (int i = 0; i < 2; i++)
        heft_assert_ok(heft_writer_add_dense(&part, w, heft_test_str(i ? "second" : "first"),
                                             HEFT_F32, dims[i], 2, &err),
                       &err);
    heft_assert_ok(heft_writer_begin(w, &err), &err);
    for (uint64_t done = 0; done < giant; done += sizeof zeros)
        heft_assert_ok(heft_writer_write(w, done >= 4ull << 30, zeros, sizeof zeros, &err), &err);
    heft_assert_ok(heft_writer_finish(w, &err), &err);
    assert_true(sink->finished);
    assert_int_equal(sink->written, sink->size);
}

static void reads_and_writes_5_gib_of_data(void **state)
{
    static const heft_source_ops ops = { .size = sizeof(heft_source_ops),
                                         .read = read_ends,
                                         .close = close_ends };
    ends_sink *sink = calloc(1, sizeof *sink);
    ends_source *s = malloc(sizeof *s);
    heft_error err;
    heft_file *f;
    heft_checksum sum;
    (void)state;
    assert_true(sink && s);
    write_giant(sink);
    *s = (ends_source){ { &ops, sink->size },
                        { sink->head, sizeof sink->head },
                        { sink->tail, sizeof sink->tail } };
    heft_assert_ok(heft_file_open_source(&f, &s->base, NULL, &err), &err);
    heft_part second =
        heft_part_at(f, heft_tensor_at(f, heft_tensor_find(f, HEFT_STR("second"))).first_part);
    assert_true(second.offset > 4ull << 30);
    assert_int_equal(second.offset + second.length + 16, sink->size);
    sum = heft_checksum_at(f, 1);
    assert_int_equal(sum.range.length, giant);
    heft_verify_result result;
    heft_assert_ok(heft_file_verify(&result, f, NULL, &err), &err);
    assert_int_equal(result.faults + result.warnings + result.notes, 0);
    heft_file_close(f);
    free(sink);
}

/* ---- metadata limit ------------------------------------------------------------------------- */

enum { NAME_BYTES = 65535, NAMES = 65600 };
static char *letters;

/* Names overlap in `letters`: each begins one letter after the preceding name. */
static heft_str long_name(void *ctx, const heft_tensor *t)
{
    unsigned long i = strtoul(t->name.ptr + strlen("layers."), NULL, 10);
    (void)ctx;
    return (heft_str){ letters + i, NAME_BYTES };
}

static heft_bytes many_tensors(void)
{
    heft_test_sink sink;
    heft_writer *w;
    heft_error err;
    const uint64_t one = 1;
    heft_assert_ok(heft_writer_open(&w, heft_format_find(HEFT_STR("embd")),
                                    heft_test_sink_init(&sink, false), NULL, &err),
                   &err);
    for (uint32_t i = 0, part; i < NAMES; i++) {
        char name[32];
        snprintf(name, sizeof name, "layers.%u", i);
        heft_assert_ok(
            heft_writer_add_dense(&part, w, heft_test_str(name), HEFT_F32, &one, 1, &err), &err);
    }
    heft_assert_ok(heft_writer_begin(w, &err), &err);
    for (uint32_t i = 0; i < NAMES; i++)
        heft_assert_ok(heft_writer_write(w, i, &one, 4, &err), &err);
    heft_assert_ok(heft_writer_finish(w, &err), &err);
    heft_bytes b = heft_test_copy(sink.p, sink.len);
    heft_test_sink_free(&sink);
    return b;
}

static void refuses_names_beyond_4_gib_before_the_data(void **state)
{
    heft_bytes b = many_tensors();
    heft_convert_options opt = HEFT_CONVERT_OPTIONS_INIT;
    heft_test_sink sink;
    heft_error err;
    heft_file *f;
    uint64_t random = 1;
    (void)state;
    letters = malloc(NAME_BYTES + NAMES);
    assert_non_null(letters);
    for (size_t i = 0; i < NAME_BYTES + NAMES; i++)
        letters[i] = (char)('a' + heft_test_random(&random, 26));
    opt.rename = long_name;
    heft_assert_ok(heft_test_open(&f, b, NULL, &err), &err);
    heft_assert_fails(heft_file_convert(f, heft_format_find(HEFT_STR("embd")),
                                        heft_test_sink_init(&sink, false), &opt, &err),
                      HEFT_E_LOSSY, &err, "the sections before the data would take");
    assert_true(sink.discarded);
    assert_int_equal(sink.len, 0);
    heft_test_sink_free(&sink);
    heft_file_close(f);
    heft_test_free(&b);
    free(letters);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_flawless_files_call_by_call),
        cmocka_unit_test(conversion_and_calls_write_the_same_bytes),
        cmocka_unit_test(reads_and_writes_5_gib_of_data),
        cmocka_unit_test(refuses_names_beyond_4_gib_before_the_data),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
