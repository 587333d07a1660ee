/* test_writer.c - the writer: a model declared call by call, wrong calls, failures. */
#include "dump.h"
#include "models.h"

typedef struct fixture {
    heft_test_memory m;
    heft_test_sink sink;
    heft_write_options opt;
    heft_error err;
    heft_writer *w;
} fixture;

static void begin_with(fixture *f, const char *format, bool is_stream)
{
    memset(f, 0, sizeof *f);
    heft_test_memory_init(&f->m, 0);
    f->opt = (heft_write_options)HEFT_WRITE_OPTIONS_INIT;
    f->opt.host = &f->m.host;
    heft_assert_ok(heft_writer_open(&f->w, heft_format_find(heft_str_from(format)),
                                    heft_test_sink_init(&f->sink, is_stream), &f->opt, &f->err),
                   &f->err);
}

static void begin(fixture *f)
{
    begin_with(f, "mag", false);
}

static void end(fixture *f)
{
    assert_true(f->sink.finished || f->sink.discarded);
    heft_test_sink_free(&f->sink);
    heft_assert_all_freed(&f->m);
}

static void discard(fixture *f)
{
    heft_writer_discard(f->w);
    assert_true(f->sink.discarded);
    end(f);
}

static uint32_t add(fixture *f, const char *name, uint64_t elements)
{
    uint32_t part;
    heft_assert_ok(
        heft_writer_add_dense(&part, f->w, heft_test_str(name), HEFT_F32, &elements, 1, &f->err),
        &f->err);
    return part;
}

static heft_value number(const char *key, int64_t i)
{
    heft_value v = { .kind = HEFT_KIND_INT, .key = heft_test_str(key) };
    v.as.i = i;
    return v;
}

static const uint8_t zeros[4096];

/* ---- calls out of order --------------------------------------------------------------------- */

static void refuses_declarations_after_begin(void **state)
{
    fixture f;
    uint32_t part;
    uint64_t dims[1] = { 1 };
    (void)state;
    begin(&f);
    uint32_t w = add(&f, "w", 4);
    heft_assert_fails(heft_writer_write(f.w, w, zeros, 4, &f.err), HEFT_E_ARGUMENT, &f.err,
                      "data must be written after heft_writer_begin()");
    heft_assert_ok(heft_writer_begin(f.w, &f.err), &f.err);
    heft_assert_fails(heft_writer_begin(f.w, &f.err), HEFT_E_ARGUMENT, &f.err,
                      "was called already");
    heft_assert_fails(
        heft_writer_add_dense(&part, f.w, heft_test_str("v"), HEFT_F32, dims, 1, &f.err),
        HEFT_E_ARGUMENT, &f.err, "tensors come too late");
    heft_assert_fails(heft_writer_add_meta(f.w, number("k", 1), &f.err), HEFT_E_ARGUMENT, &f.err,
                      "metadata come too late");
    heft_assert_fails(heft_writer_end_meta(f.w, &f.err), HEFT_E_ARGUMENT, &f.err, "no list or map");
    heft_assert_fails(heft_writer_add_model_part(f.w, heft_test_str("config"), "{}", 2, &f.err),
                      HEFT_E_ARGUMENT, &f.err, "must be added before");
    /* the failed calls changed nothing */
    heft_assert_ok(heft_writer_write(f.w, w, zeros, 16, &f.err), &f.err);
    heft_assert_ok(heft_writer_finish(f.w, &f.err), &f.err);
    end(&f);
}

static void refuses_parts_out_of_order_or_too_long(void **state)
{
    fixture f;
    (void)state;
    begin(&f);
    uint32_t a = add(&f, "a", 4), b = add(&f, "b", 4);
    heft_assert_ok(heft_writer_begin(f.w, &f.err), &f.err);
    heft_assert_fails(heft_writer_write(f.w, b, zeros, 4, &f.err), HEFT_E_ARGUMENT, &f.err,
                      "got data of part 1, but part 0 is next");
    heft_assert_fails(heft_writer_write(f.w, 77, zeros, 4, &f.err), HEFT_E_ARGUMENT, &f.err,
                      "got data of part 77");
    heft_assert_fails(heft_writer_write(f.w, a, zeros, 17, &f.err), HEFT_E_ARGUMENT, &f.err,
                      "part 0: more data than its 16 bytes");
    heft_assert_ok(heft_writer_write(f.w, a, zeros, 15, &f.err), &f.err);
    heft_assert_fails(heft_writer_write(f.w, a, zeros, 2, &f.err), HEFT_E_ARGUMENT, &f.err,
                      "more data than its 16");
    heft_assert_ok(heft_writer_write(f.w, a, NULL, 0, &f.err), &f.err);
    heft_assert_ok(heft_writer_write(f.w, a, zeros, 1, &f.err), &f.err);
    heft_assert_fails(heft_writer_write(f.w, a, zeros, 1, &f.err), HEFT_E_ARGUMENT, &f.err,
                      "got data of part 0, but part 1 is next");
    heft_assert_ok(heft_writer_write(f.w, b, zeros, 16, &f.err), &f.err);
    heft_assert_fails(heft_writer_write(f.w, b, zeros, 1, &f.err), HEFT_E_ARGUMENT, &f.err,
                      "part 2 is next");
    heft_assert_ok(heft_writer_finish(f.w, &f.err), &f.err);
    assert_true(f.sink.finished);
    end(&f);
}

static void discards_an_unfinished_file(void **state)
{
    fixture f;
    (void)state;
    begin(&f);
    heft_assert_fails(heft_writer_finish(f.w, &f.err), HEFT_E_ARGUMENT, &f.err, "was not called");
    assert_true(f.sink.discarded);
    end(&f);
    begin(&f);
    uint32_t a = add(&f, "a", 4);
    add(&f, "b", 4);
    heft_assert_ok(heft_writer_begin(f.w, &f.err), &f.err);
    heft_assert_ok(heft_writer_write(f.w, a, zeros, 16, &f.err), &f.err);
    heft_assert_fails(heft_writer_finish(f.w, &f.err), HEFT_E_ARGUMENT, &f.err,
                      "part 1 lacks 16 of its 16 bytes");
    assert_true(f.sink.discarded);
    end(&f);
    begin(&f);
    discard(&f);
    heft_writer_discard(NULL);
}

/* ---- refused declarations ------------------------------------------------------------------- */

static void refuses_invalid_tensors(void **state)
{
    static const struct {
        heft_str name;
        heft_dtype t;
        uint64_t dims[2];
        const char *words;
    } rows[] = {
        { { "a", 1 }, HEFT_UNTYPED, { 1, 1 }, "unknown element type" },
        { { "a", 1 }, 999, { 1, 1 }, "unknown element type" },
        { { "\xff", 1 }, HEFT_F32, { 1, 1 }, "not UTF-8" },
        { { "\xc0\x80", 2 }, HEFT_F32, { 1, 1 }, "not UTF-8" },
        { { "a", 1 }, HEFT_F32, { UINT64_MAX, 2 }, "overflows 64 bits" },
        { { "a", 1 }, HEFT_F64, { (uint64_t)1 << 61, 1 }, "overflows 64 bits" },
    };
    fixture f;
    uint32_t part;
    (void)state;
    begin(&f);
    for (size_t i = 0; i < HEFT_COUNT(rows); i++)
        heft_assert_fails(
            heft_writer_add_dense(&part, f.w, rows[i].name, rows[i].t, rows[i].dims, 2, &f.err),
            HEFT_E_ARGUMENT, &f.err, rows[i].words);
    /* the refused tensors are not in the file */
    heft_assert_ok(heft_writer_begin(f.w, &f.err), &f.err);
    heft_assert_ok(heft_writer_finish(f.w, &f.err), &f.err);
    end(&f);
}

static void refuses_duplicate_names_and_keys(void **state)
{
    fixture f;
    (void)state;
    begin(&f);
    add(&f, "twice", 4);
    add(&f, "twice", 4);
    heft_assert_fails(heft_writer_begin(f.w, &f.err), HEFT_E_ARGUMENT, &f.err,
                      "tensor 'twice' occurs twice");
    heft_assert_fails(heft_writer_finish(f.w, &f.err), HEFT_E_ARGUMENT, &f.err, "occurs twice");
    end(&f);
    begin(&f);
    heft_assert_ok(heft_writer_add_meta(f.w, number("twice", 1), &f.err), &f.err);
    heft_assert_ok(heft_writer_add_meta(f.w, number("twice", 2), &f.err), &f.err);
    heft_assert_fails(heft_writer_begin(f.w, &f.err), HEFT_E_ARGUMENT, &f.err, "twice");
    discard(&f);
}

static void refuses_invalid_text_and_open_lists(void **state)
{
    fixture f;
    heft_value bad = { .kind = HEFT_KIND_STR, .key = { "k", 1 }, .as.s = { "\xff", 1 } };
    heft_value list = { .kind = HEFT_KIND_LIST, .key = { "l", 1 } };
    (void)state;
    begin_with(&f, "safetensors", false);
    heft_assert_fails(heft_writer_add_meta(f.w, bad, &f.err), HEFT_E_ARGUMENT, &f.err, "not UTF-8");
    bad = number("\xed\xa0\x80", 1);
    heft_assert_fails(heft_writer_add_meta(f.w, bad, &f.err), HEFT_E_ARGUMENT, &f.err, "not UTF-8");
    heft_assert_fails(heft_writer_end_meta(f.w, &f.err), HEFT_E_ARGUMENT, &f.err, "no list or map");
    heft_assert_ok(heft_writer_add_meta(f.w, list, &f.err), &f.err);
    heft_assert_fails(heft_writer_begin(f.w, &f.err), HEFT_E_ARGUMENT, &f.err, "still open");
    heft_assert_ok(heft_writer_end_meta(f.w, &f.err), &f.err);
    heft_assert_ok(heft_writer_begin(f.w, &f.err), &f.err);
    heft_assert_ok(heft_writer_finish(f.w, &f.err), &f.err);
    end(&f);
}

static void refuses_metadata_nested_beyond_the_limit(void **state)
{
    fixture f;
    heft_value list = { .kind = HEFT_KIND_LIST, .key = { "l", 1 } };
    heft_status st = HEFT_OK;
    uint32_t depth = 0;
    (void)state;
    begin(&f);
    for (; depth < 300 && !st; depth++)
        st = heft_writer_add_meta(f.w, list, &f.err);
    heft_assert_fails(st, HEFT_E_LIMIT, &f.err, "nested deeper than 128");
    discard(&f);
}

static void refuses_unsupported_options(void **state)
{
    static const struct {
        uint32_t align;
        heft_encoding encoding;
        const char *digest;
        heft_status st;
        const char *words;
    } rows[] = {
        { 3, HEFT_RAW, NULL, HEFT_E_ARGUMENT, "an alignment of 3" },
        { 0, HEFT_ZSTD, NULL, HEFT_E_UNSUPPORTED, "does not support compression" },
        { 0, HEFT_RAW, "crc32c", HEFT_E_UNSUPPORTED, "cannot store a digest" },
    };
    heft_writer *w;
    heft_error err;
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        heft_test_sink sink;
        heft_write_options opt = HEFT_WRITE_OPTIONS_INIT;
        opt.align = rows[i].align;
        opt.storage.encoding = rows[i].encoding;
        opt.storage.digest = rows[i].digest;
        heft_assert_fails(heft_writer_open(&w, heft_format_find(HEFT_STR("mag")),
                                           heft_test_sink_init(&sink, false), &opt, &err),
                          rows[i].st, &err, rows[i].words);
        assert_null(w);
        assert_true(sink.discarded);
    }
    heft_assert_fails(heft_writer_open(&w, heft_format_find(HEFT_STR("mag")), NULL, NULL, &err),
                      HEFT_E_ARGUMENT, &err, "no sink");
    heft_test_sink sink;
    heft_assert_status(heft_writer_open(&w, NULL, heft_test_sink_init(&sink, false), NULL, &err),
                       HEFT_E_UNSUPPORTED, &err);
    assert_true(sink.discarded);
}

static void refuses_an_unknown_version(void **state)
{
    for (uint32_t i = 0; i < heft_format_count(); i++) {
        const heft_format *format = heft_format_at(i);
        heft_test_sink sink;
        heft_write_options opt = HEFT_WRITE_OPTIONS_INIT;
        heft_writer *w;
        heft_error err;
        (void)state;
        if (!(heft_format_caps(format) & HEFT_CAN_WRITE))
            continue;
        opt.version = "none such";
        heft_status st = heft_writer_open(&w, format, heft_test_sink_init(&sink, false), &opt,
                                          &err);
        if (!st) {
            st = heft_writer_begin(w, &err);
            heft_writer_discard(w);
        }
        heft_assert_fails(st, HEFT_E_ARGUMENT, &err, "none such");
        assert_true(sink.discarded);
        assert_int_equal(sink.len, 0);
        heft_test_sink_free(&sink);
    }
}

/* ---- failures and losses -------------------------------------------------------------------- */

static void failed_write_is_a_sticky_error(void **state)
{
    fixture f;
    (void)state;
    begin(&f);
    uint32_t a = add(&f, "a", 1000);
    heft_assert_ok(heft_writer_begin(f.w, &f.err), &f.err);
    f.sink.fail_from = 2000;
    heft_assert_ok(heft_writer_write(f.w, a, zeros, 1000, &f.err), &f.err);
    heft_assert_fails(heft_writer_write(f.w, a, zeros, 1000, &f.err), HEFT_E_IO, &f.err, "full");
    f.sink.fail_from = HEFT_NOWHERE;
    heft_assert_fails(heft_writer_write(f.w, a, zeros, 2000, &f.err), HEFT_E_IO, &f.err, "full");
    heft_assert_fails(heft_writer_finish(f.w, &f.err), HEFT_E_IO, &f.err, "full");
    assert_false(f.sink.finished);
    end(&f);
}

static void refuses_to_write_with_losses(void **state)
{
    fixture f;
    uint32_t part;
    (void)state;
    begin(&f);
    heft_assert_ok(
        heft_writer_add_dense(&part, f.w, heft_test_str("scalar"), HEFT_F64, NULL, 0, &f.err),
        &f.err);
    heft_assert_fails(heft_writer_begin(f.w, &f.err), HEFT_E_LOSSY, &f.err,
                      "cannot write this model as mag: 1 problem; the first: element type f64");
    heft_assert_fails(heft_writer_begin(f.w, &f.err), HEFT_E_LOSSY, &f.err, "problem");
    assert_int_equal(f.sink.len, 0);
    discard(&f);
}

static void accepts_the_bytes_of_dropped_tensors(void **state)
{
    fixture f;
    heft_file *file;
    uint32_t first, lost, last;
    uint64_t dims[1] = { 2 };
    const uint32_t numbers[2] = { 1, 2 };
    (void)state;
    memset(&f, 0, sizeof f);
    heft_test_memory_init(&f.m, 0);
    f.opt = (heft_write_options)HEFT_WRITE_OPTIONS_INIT;
    f.opt.allow_loss = true;
    heft_assert_ok(heft_writer_open(&f.w, heft_format_find(HEFT_STR("gptrs-archive")),
                                    heft_test_sink_init(&f.sink, false), &f.opt, &f.err),
                   &f.err);
    heft_str a = { "a", 1 }, b = { "b", 1 }, c = { "c", 1 };
    heft_assert_ok(heft_writer_add_dense(&first, f.w, a, HEFT_I32, dims, 1, &f.err), &f.err);
    heft_assert_ok(heft_writer_add_dense(&lost, f.w, b, HEFT_U8, dims, 1, &f.err), &f.err);
    heft_assert_ok(heft_writer_add_dense(&last, f.w, c, HEFT_I32, dims, 1, &f.err), &f.err);
    heft_assert_ok(heft_writer_begin(f.w, &f.err), &f.err);
    heft_assert_ok(heft_writer_write(f.w, first, numbers, 8, &f.err), &f.err);
    heft_assert_ok(heft_writer_write(f.w, lost, zeros, 2, &f.err), &f.err);
    heft_assert_ok(heft_writer_write(f.w, last, numbers, 8, &f.err), &f.err);
    heft_assert_ok(heft_writer_finish(f.w, &f.err), &f.err);
    heft_assert_ok(heft_test_open(&file, heft_test_sink_bytes(&f.sink), NULL, &f.err), &f.err);
    assert_int_equal(heft_tensor_count(file), 2);
    assert_memory_equal(heft_part_view(file, heft_tensor_at(file, 1).first_part), numbers, 8);
    heft_file_close(file);
    end(&f);
}

static void works_without_an_error_object(void **state)
{
    heft_test_sink sink;
    heft_writer *w;
    uint32_t part;
    uint64_t dims[2] = { 2, 2 };
    heft_value list = { .kind = HEFT_KIND_LIST, .key = { "l", 1 } };
    (void)state;
    assert_int_equal(heft_writer_open(&w, NULL, NULL, NULL, NULL), HEFT_E_UNSUPPORTED);
    assert_int_equal(heft_writer_open(&w, heft_format_find(HEFT_STR("mag")),
                                      heft_test_sink_init(&sink, false), NULL, NULL),
                     HEFT_OK);
    assert_int_equal(heft_writer_add_meta(w, list, NULL), HEFT_OK);
    assert_int_equal(heft_writer_begin(w, NULL), HEFT_E_ARGUMENT);
    assert_int_equal(heft_writer_end_meta(w, NULL), HEFT_OK);
    assert_int_equal(heft_writer_end_meta(w, NULL), HEFT_E_ARGUMENT);
    assert_int_equal(heft_writer_add_dense(&part, w, list.key, HEFT_F64, dims, 2, NULL), HEFT_OK);
    assert_int_equal(heft_writer_write(w, part, zeros, 1, NULL), HEFT_E_ARGUMENT);
    assert_int_equal(heft_writer_begin(w, NULL), HEFT_E_LOSSY);
    assert_int_equal(heft_writer_finish(w, NULL), HEFT_E_LOSSY);
}

/* ---- values that a format forbids ------------------------------------------------------------ */

typedef struct value_case {
    heft_dtype dtype;
    uint64_t elements;
    uint8_t data[3];
    const char *version, *message; /* message NULL: the values are written */
} value_case;

static void write_values(const value_case *c, bool is_late, bool in_pieces)
{
    fixture f;
    uint32_t part;
    heft_error err;
    size_t len = c->dtype == HEFT_BOOL ? (size_t)c->elements : (size_t)(c->elements + 1) / 2;
    memset(&f, 0, sizeof f);
    heft_test_memory_init(&f.m, 0);
    f.opt = (heft_write_options)HEFT_WRITE_OPTIONS_INIT;
    f.opt.version = c->version;
    heft_assert_ok(heft_writer_open(&f.w, heft_format_find(HEFT_STR("ztensor")),
                                    heft_test_sink_init(&f.sink, false), &f.opt, &err),
                   &err);
    if (is_late)
        heft_assert_ok(heft_writer_begin(f.w, &err), &err);
    heft_assert_ok(
        heft_writer_add_dense(&part, f.w, HEFT_STR("m"), c->dtype, &c->elements, 1, &err), &err);
    if (!is_late)
        heft_assert_ok(heft_writer_begin(f.w, &err), &err);
    heft_status st = HEFT_OK;
    for (size_t i = 0, n = in_pieces ? 1 : len; i < len && !st; i += n)
        st = heft_writer_write(f.w, part, c->data + i, n, &err);
    if (c->message) {
        heft_assert_fails(st, HEFT_E_ARGUMENT, &err, c->message);
        /* the failed call has written nothing */
        size_t left = in_pieces ? 1 : len;
        st = heft_writer_write(f.w, part, zeros, left, &err);
    }
    heft_assert_ok(st, &err);
    heft_assert_ok(heft_writer_finish(f.w, &err), &err);
    end(&f);
}

static void refuses_values_that_the_format_forbids(void **state)
{
    static const value_case cases[] = {
        { HEFT_BOOL, 3, { 0, 1, 2 }, "2", "part 0, byte 2: a boolean is neither 0 nor 1" },
        { HEFT_BOOL, 3, { 0, 1, 1 }, "2", NULL },
        { HEFT_BOOL, 3, { 0, 1, 2 }, "1.0", NULL },
        { HEFT_F4_E2M1, 5, { 0xFF, 0xFF, 0x1F }, "2", "part 0, byte 2: the unused half byte" },
        { HEFT_F4_E2M1, 5, { 0xFF, 0xFF, 0x0F }, "2", NULL },
        { HEFT_F4_E2M1, 6, { 0xFF, 0xFF, 0x1F }, "2", NULL },
    };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(cases); i++)
        for (int k = 0; k < 4; k++)
            write_values(&cases[i], k & 1, k & 2);
}

/* ---- the same bytes as a conversion --------------------------------------------------------- */

/* Sorted by name, since some formats sort the index. */
static const test_tensor tensors[] = {
    { "a matrix", HEFT_F32, 2, { 3, 5 } },
    { "halves", HEFT_F16, 1, { 8 } },
    { "numbers", HEFT_I32, 3, { 2, 1, 4 } },
    { "the last", HEFT_F32, 1, { 1 } },
};

static heft_bytes converted(const heft_file *in, const char *format)
{
    heft_test_sink sink;
    heft_error err;
    heft_assert_ok(heft_file_convert(in, heft_format_find(heft_str_from(format)),
                                     heft_test_sink_init(&sink, false), NULL, &err),
                   &err);
    heft_bytes b = heft_test_copy(sink.p, sink.len);
    heft_test_sink_free(&sink);
    return b;
}

/* Return the tensor with the i-th lowest offset. Conversions write tensors in that order. */
static uint32_t nth_by_offset(const heft_file *in, uint32_t i)
{
    for (uint32_t id = 0;; id++) {
        uint64_t at = heft_part_at(in, heft_tensor_at(in, id).first_part).offset;
        uint32_t lower = 0;
        for (uint32_t k = 0; k < heft_tensor_count(in); k++)
            lower += heft_part_at(in, heft_tensor_at(in, k).first_part).offset < at;
        if (lower == i)
            return id;
    }
}

static void declare(fixture *f, const heft_file *in, uint32_t *parts)
{
    uint32_t first, n = heft_file_parts(in, &first);
    for (uint32_t i = 0; i < heft_meta_count(in); i++)
        heft_assert_ok(heft_writer_add_meta(f->w, heft_meta_at(in, i), &f->err), &f->err);
    for (uint32_t i = 0; i < heft_tensor_count(in); i++) {
        heft_tensor t = heft_tensor_at(in, nth_by_offset(in, i));
        heft_assert_ok(
            heft_writer_add_dense(&parts[i], f->w, t.name, t.dtype, t.dims, t.rank, &f->err),
            &f->err);
    }
    for (uint32_t i = 0; i < n; i++) {
        heft_part p = heft_part_at(in, first + i);
        heft_assert_ok(heft_writer_add_model_part(f->w, p.role, heft_part_view(in, first + i),
                                                  (size_t)p.length, &f->err),
                       &f->err);
    }
}

static heft_bytes written(const heft_file *in, const char *format, bool is_stream, size_t step)
{
    fixture f;
    uint32_t parts[16];
    begin_with(&f, format, is_stream);
    declare(&f, in, parts);
    heft_assert_ok(heft_writer_begin(f.w, &f.err), &f.err);
    for (uint32_t i = 0; i < heft_tensor_count(in); i++) {
        uint32_t part = heft_tensor_at(in, nth_by_offset(in, i)).first_part;
        size_t length = (size_t)heft_part_at(in, part).length;
        const uint8_t *p = heft_part_view(in, part);
        for (size_t at = 0; at < length; at += step)
            heft_assert_ok(heft_writer_write(f.w, parts[i], p + at,
                                             length - at < step ? length - at : step, &f.err),
                           &f.err);
    }
    heft_assert_ok(heft_writer_finish(f.w, &f.err), &f.err);
    heft_bytes b = heft_test_copy(f.sink.p, f.sink.len);
    end(&f);
    return b;
}

static void writes_the_bytes_of_a_conversion(void **state)
{
    const char *format;
    static const size_t steps[] = { 1, 3, 64, 100000 };
    (void)state;
    for (size_t i = 0; (format = heft_test_writable(i)); i++) {
        heft_bytes b = heft_test_model(format, tensors, HEFT_COUNT(tensors));
        heft_file *in;
        heft_error err;
        heft_assert_ok(heft_test_open(&in, b, NULL, &err), &err);
        heft_bytes expected = converted(in, format);
        for (size_t k = 0; k < 2 * HEFT_COUNT(steps); k++) {
            heft_bytes got = written(in, format, k & 1, steps[k / 2]);
            if (got.len != expected.len || memcmp(got.p, expected.p, got.len) != 0)
                print_error("%s, in chunks of %zu: ", format, steps[k / 2]);
            heft_assert_same_bytes(got, expected);
            heft_test_free(&got);
        }
        heft_test_free(&expected);
        heft_file_close(in);
        heft_test_free(&b);
    }
}

/* safetensors writes large elements first if model order would misalign large elements. */
static void stream_refuses_data_out_of_file_order(void **state)
{
    fixture f;
    uint32_t half, whole;
    uint64_t three = 3, four = 4;
    (void)state;
    for (int is_stream = 0; is_stream < 2; is_stream++) {
        begin_with(&f, "safetensors", is_stream);
        heft_assert_ok(
            heft_writer_add_dense(&half, f.w, heft_test_str("half"), HEFT_F16, &three, 1, &f.err),
            &f.err);
        heft_assert_ok(
            heft_writer_add_dense(&whole, f.w, heft_test_str("whole"), HEFT_F64, &four, 1, &f.err),
            &f.err);
        heft_assert_ok(heft_writer_begin(f.w, &f.err), &f.err);
        heft_assert_ok(heft_writer_write(f.w, half, zeros, 6, &f.err), &f.err);
        heft_status st = heft_writer_write(f.w, whole, zeros, 32, &f.err);
        if (is_stream)
            heft_assert_fails(st, HEFT_E_ARGUMENT, &f.err, "which a stream does not allow");
        heft_assert_status(heft_writer_finish(f.w, &f.err), st, &f.err);
        end(&f);
    }
}

static void copies_metadata(void **state)
{
    char key[] = "key", text[] = "text";
    heft_value v = { .kind = HEFT_KIND_STR, .key = { key, 3 }, .as.s = { text, 4 } };
    fixture f;
    heft_file *file;
    (void)state;
    begin_with(&f, "safetensors", false);
    heft_assert_ok(heft_writer_add_meta(f.w, v, &f.err), &f.err);
    memset(key, 'x', 3);
    memset(text, 'x', 4);
    heft_assert_ok(heft_writer_begin(f.w, &f.err), &f.err);
    heft_assert_ok(heft_writer_finish(f.w, &f.err), &f.err);
    heft_assert_ok(heft_test_open(&file, heft_test_sink_bytes(&f.sink), NULL, &f.err), &f.err);
    assert_true(heft_meta_find(&v, file, HEFT_STR("key")));
    assert_int_equal(v.as.s.len, 4);
    assert_memory_equal(v.as.s.ptr, "text", 4);
    heft_file_close(file);
    end(&f);
}

/* ---- memory --------------------------------------------------------------------------------- */

static heft_status write_all(heft_test_memory *m, heft_test_sink *sink, heft_error *err)
{
    heft_write_options opt = HEFT_WRITE_OPTIONS_INIT;
    heft_writer *w;
    uint32_t parts[40];
    uint64_t elements = 8;
    char name[16];
    opt.host = &m->host;
    heft_status st = heft_writer_open(&w, heft_format_find(HEFT_STR("mag")),
                                      heft_test_sink_init(sink, false), &opt, err);
    if (st)
        return st;
    st = heft_writer_add_meta(w, number("k", 1), err);
    for (int i = 0; i < 40 && !st; i++) {
        snprintf(name, sizeof name, "%d", i);
        st = heft_writer_add_dense(&parts[i], w, heft_test_str(name), HEFT_F32, &elements, 1, err);
    }
    if (!st)
        st = heft_writer_begin(w, err);
    for (int i = 0; i < 40 && !st; i++)
        st = heft_writer_write(w, parts[i], zeros, 32, err);
    heft_status finished = heft_writer_finish(w, err);
    assert_int_equal(finished, st); /* finish() returns the first error again */
    return finished;
}

static void reports_every_failed_allocation(void **state)
{
    bool was_reached = true;
    (void)state;
    for (uint32_t n = 1; was_reached; n++) {
        heft_test_memory m;
        heft_test_sink sink;
        heft_error err;
        heft_test_memory_init(&m, n);
        m.keeps_failing = n & 1;
        heft_status st = write_all(&m, &sink, &err);
        was_reached = atomic_load(&m.calls) >= n;
        heft_assert_status(st, was_reached ? HEFT_E_NOMEM : HEFT_OK, &err);
        assert_int_equal(sink.discarded, was_reached);
        heft_assert_all_freed(&m);
        heft_test_sink_free(&sink);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_declarations_after_begin),
        cmocka_unit_test(refuses_parts_out_of_order_or_too_long),
        cmocka_unit_test(discards_an_unfinished_file),
        cmocka_unit_test(refuses_invalid_tensors),
        cmocka_unit_test(refuses_duplicate_names_and_keys),
        cmocka_unit_test(refuses_invalid_text_and_open_lists),
        cmocka_unit_test(refuses_metadata_nested_beyond_the_limit),
        cmocka_unit_test(refuses_unsupported_options),
        cmocka_unit_test(refuses_an_unknown_version),
        cmocka_unit_test(failed_write_is_a_sticky_error),
        cmocka_unit_test(refuses_to_write_with_losses),
        cmocka_unit_test(accepts_the_bytes_of_dropped_tensors),
        cmocka_unit_test(works_without_an_error_object),
        cmocka_unit_test(refuses_values_that_the_format_forbids),
        cmocka_unit_test(writes_the_bytes_of_a_conversion),
        cmocka_unit_test(stream_refuses_data_out_of_file_order),
        cmocka_unit_test(copies_metadata),
        cmocka_unit_test(reports_every_failed_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
