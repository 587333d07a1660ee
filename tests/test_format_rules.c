/* test_format_rules.c - rules of single formats: alignment of mapped tensors, models that a writer
 * refuses, metadata and vocabularies passed by a program. */
#include "models.h"

#include <heft/params.h>

#include <math.h>

/* ---- alignment ------------------------------------------------------------------------------ */

static void assert_aligned(const char *dir, const char *format, uintptr_t align)
{
    static const test_tensor tensors[] = {
        { "a", HEFT_F32, 1, { 3 } },
        { "b", HEFT_F32, 2, { 5, 7 } },
        { "c", HEFT_F32, 1, { 1 } },
    };
    heft_bytes b = heft_test_model(format, tensors, HEFT_COUNT(tensors));
    const char *path = heft_test_path(dir, format);
    heft_error err;
    heft_file *f;
    heft_test_save(path, b.p, b.len);
    heft_assert_ok(heft_file_open(&f, path, NULL, &err), &err);
    for (uint32_t id = 0; id < HEFT_COUNT(tensors); id++) {
        const void *view = heft_part_view(f, heft_tensor_at(f, id).first_part);
        assert_non_null(view);
        assert_int_equal((uintptr_t)view % align, 0);
    }
    heft_file_close(f);
    heft_test_free(&b);
}

static void burnpack_tensors_are_mapped_at_multiples_of_256(void **state)
{
    assert_aligned(*state, "burnpack", 256);
}

static void embd_tensors_are_mapped_at_multiples_of_64(void **state)
{
    assert_aligned(*state, "embd", 64);
}

static void gptrs_tensors_are_mapped_at_multiples_of_64(void **state)
{
    assert_aligned(*state, "gptrs-checkpoint", 64);
    assert_aligned(*state, "gptrs-archive", 64);
}

static void mag_tensors_are_mapped_at_multiples_of_64(void **state)
{
    assert_aligned(*state, "mag", 64);
}

static void ztensor_tensors_are_mapped_at_multiples_of_64(void **state)
{
    assert_aligned(*state, "ztensor", 64);
}

/* ---- opening -------------------------------------------------------------------------------- */

/* Return the number of bytes requested until the index is complete. */
static uint64_t bytes_requested(heft_bytes b)
{
    heft_error err;
    heft_file *f;
    const heft_range *needs;
    uint64_t sum = 0;
    heft_status st = heft_file_begin(&f, b.len, NULL, &err);
    while (!st && (st = heft_file_step(f, &err)) == HEFT_AGAIN) {
        heft_range r = (heft_file_needs(f, &needs), needs[0]);
        sum += r.length;
        st = heft_file_feed(f, r.offset, b.p + r.offset, (size_t)r.length, &err);
    }
    heft_assert_ok(st, &err);
    assert_int_equal(heft_tensor_count(f), 1);
    heft_file_close(f);
    return sum;
}

/* Opening reads the first and last bytes of a large file, and the index. */
static void opening_reads_nothing_of_a_large_tensor(void **state)
{
    enum { MIB = 1 << 20, MAX_BYTES = 256 << 10 };
    const char *format;
    (void)state;
    for (size_t i = 0; (format = heft_test_writable(i)); i++) {
        heft_bytes b = heft_test_one(format, 8 * MIB);
        assert_in_range(bytes_requested(b), 1, MAX_BYTES);
        heft_test_free(&b);
    }
}

/* ---- refusals ------------------------------------------------------------------------------- */

enum { LONG = 65536 }; /* bytes of a name beyond the limit of many formats */
static char long_name[LONG + 1];

typedef struct refusal {
    const char *format, *version;
    heft_str name;
    heft_dtype dtype;
    uint32_t rank;
    uint64_t dims[5];
    const char *rule;
} refusal;

static void clear_reported_rule(void *ctx, heft_severity s, const char *rule, heft_str tensor,
                                const char *text)
{
    const char **expected = ctx;
    (void)tensor;
    assert_non_null(text);
    if (s > HEFT_NOTE && *expected && !strcmp(rule, *expected))
        *expected = NULL;
}

/* A strict writer refuses to change the model, writes nothing, and reports the rule. */
static void assert_refused(const refusal *r)
{
    heft_write_options opt = HEFT_WRITE_OPTIONS_INIT;
    heft_test_sink sink;
    heft_writer *w;
    heft_error err;
    const char *rule = r->rule;
    uint32_t part;
    opt.version = r->version;
    opt.strict = true;
    opt.on_loss = clear_reported_rule;
    opt.ctx = &rule;
    heft_assert_ok(heft_writer_open(&w, heft_format_find(heft_str_from(r->format)),
                                    heft_test_sink_init(&sink, false), &opt, &err),
                   &err);
    heft_assert_ok(heft_writer_add_dense(&part, w, r->name, r->dtype, r->dims, r->rank, &err),
                   &err);
    heft_assert_status(heft_writer_begin(w, &err), HEFT_E_LOSSY, &err);
    if (rule)
        fail_msg("%s was not reported: %s", rule, err.message);
    assert_int_equal(sink.len, 0);
    heft_writer_discard(w);
    heft_test_sink_free(&sink);
}

static void refuses_tensors_that_mag_cannot_represent(void **state)
{
    static const uint64_t half = (uint64_t)1 << 63;
    const refusal rows[] = {
        { "mag", NULL, { "w", 1 }, HEFT_F32, 0, { 0 }, "mag/rank-0" },
        { "mag", NULL, { "w", 1 }, HEFT_F32, 1, { 0 }, "mag/tensor" },
        { "mag", NULL, { "w", 1 }, HEFT_BOOL, 1, { half }, "mag/tensor" },
        { "mag", NULL, { "", 0 }, HEFT_F32, 1, { 1 }, "mag/tensor" },
        { "mag", NULL, { long_name, LONG }, HEFT_F32, 1, { 1 }, "mag/tensor" },
        { "mag", NULL, { "w", 1 }, HEFT_F64, 1, { 1 }, "mag/dtype" },
        { "mag", "1", { "w", 1 }, HEFT_I64, 1, { 1 }, "mag/dtype" },
        { "mag", "100", { "w", 1 }, HEFT_BF16, 1, { 1 }, "mag/dtype" },
    };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++)
        assert_refused(&rows[i]);
}

typedef struct excess { /* metadata beyond a length field */
    const char *format, *version, *rule;
    heft_kind kind;
    size_t key_bytes, value_bytes; /* value_bytes of a string */
} excess;

/* Write a model with the metadata. Set *rule, the expected rule, to NULL when it is reported. */
static heft_status write_excess(const excess *r, bool allow_loss, const char **rule,
                                heft_error *err)
{
    heft_write_options opt = HEFT_WRITE_OPTIONS_INIT;
    heft_test_sink sink;
    heft_writer *w;
    uint64_t dims[] = { 1 };
    uint32_t part;
    float one = 1;
    heft_value v = { .kind = r->kind, .key = { long_name, r->key_bytes } };
    if (r->kind == HEFT_KIND_STR)
        v.as.s = (heft_str){ long_name, r->value_bytes };
    opt.version = r->version;
    opt.allow_loss = allow_loss;
    opt.on_loss = clear_reported_rule;
    opt.ctx = rule;
    heft_assert_ok(heft_writer_open(&w, heft_format_find(heft_str_from(r->format)),
                                    heft_test_sink_init(&sink, false), &opt, err),
                   err);
    heft_assert_ok(heft_writer_add_meta(w, v, err), err);
    heft_assert_ok(heft_writer_add_dense(&part, w, (heft_str){ "w", 1 }, HEFT_F32, dims, 1, err),
                   err);
    heft_status st = heft_writer_begin(w, err);
    if (!st)
        st = heft_writer_write(w, part, &one, sizeof one, err);
    if (st)
        heft_writer_discard(w);
    else
        st = heft_writer_finish(w, err);
    heft_test_sink_free(&sink);
    return st;
}

static void refuses_metadata_beyond_a_length_field(void **state)
{
    enum { MAX_BYTES = 65535 };
    const excess rows[] = {
        { "embd", NULL, "embd/metadata-length", HEFT_KIND_STR, 1, MAX_BYTES + 1 },
        { "embd", NULL, "embd/metadata-length", HEFT_KIND_STR, MAX_BYTES + 1, 1 },
        { "embd", NULL, "embd/metadata-length", HEFT_KIND_INT, MAX_BYTES + 1, 0 },
        { "mag", "1", "mag/metadata-length", HEFT_KIND_INT, MAX_BYTES + 1, 0 },
        { "mag", "100", "mag/metadata-length", HEFT_KIND_FLOAT, MAX_BYTES + 1, 0 },
        { "gguf", NULL, "gguf/metadata-length", HEFT_KIND_STR, MAX_BYTES + 1, 1 },
    };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        heft_error err;
        const char *rule = rows[i].rule;
        heft_assert_status(write_excess(&rows[i], false, &rule, &err), HEFT_E_LOSSY, &err);
        assert_null(rule);
        rule = rows[i].rule;
        heft_assert_ok(write_excess(&rows[i], true, &rule, &err), &err);
        assert_null(rule);
        excess fits = rows[i];
        fits.key_bytes = fits.key_bytes > MAX_BYTES ? MAX_BYTES : fits.key_bytes;
        fits.value_bytes = fits.value_bytes > MAX_BYTES ? MAX_BYTES : fits.value_bytes;
        rule = rows[i].rule;
        heft_assert_ok(write_excess(&fits, false, &rule, &err), &err);
        assert_non_null(rule);
    }
}

static heft_status write_token(size_t bytes, const char *version, bool allow_loss,
                               const char **rule, heft_error *err)
{
    heft_write_options opt = HEFT_WRITE_OPTIONS_INIT;
    heft_test_sink sink;
    heft_writer *w;
    heft_vocab *v;
    char *text = calloc(1, bytes + 1);
    assert_non_null(text);
    memset(text, 't', bytes);
    heft_assert_ok(heft_vocab_parse_lines(&v, (heft_str){ text, bytes }, NULL, err), err);
    opt.version = version;
    opt.allow_loss = allow_loss;
    opt.on_loss = clear_reported_rule;
    opt.ctx = rule;
    heft_assert_ok(heft_writer_open(&w, heft_format_find(HEFT_STR("embd")),
                                    heft_test_sink_init(&sink, false), &opt, err),
                   err);
    heft_assert_ok(heft_writer_set_vocab(w, v, err), err);
    heft_status st = heft_writer_begin(w, err);
    if (st)
        heft_writer_discard(w);
    else
        st = heft_writer_finish(w, err);
    heft_vocab_close(v);
    free(text);
    heft_test_sink_free(&sink);
    return st;
}

static void refuses_a_token_beyond_its_length_field(void **state)
{
    const struct {
        const char *version;
        size_t max_bytes;
    } rows[] = { { "1.0", 65535 }, { "simple", 1 << 20 } };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        heft_error err;
        const char *version = rows[i].version, *rule = "embd/vocab";
        heft_assert_status(write_token(rows[i].max_bytes + 1, version, false, &rule, &err),
                           HEFT_E_LOSSY, &err);
        assert_null(rule);
        rule = "embd/vocab";
        heft_assert_ok(write_token(rows[i].max_bytes + 1, version, true, &rule, &err), &err);
        assert_null(rule);
        rule = "embd/vocab";
        heft_assert_ok(write_token(rows[i].max_bytes, version, false, &rule, &err), &err);
        assert_non_null(rule);
    }
}

static void note_many_tokens(void *ctx, heft_severity s, const char *rule, heft_str tensor,
                             const char *text)
{
    (void)tensor, (void)text;
    if (!strcmp(rule, "embd/many-tokens"))
        *(uint32_t *)ctx += s == HEFT_NOTE;
}

/* The reference program of the simple version reads a fixed number of tokens. */
static void notes_more_tokens_than_the_reference_reads(void **state)
{
    enum { MOST = 100000, DIGITS = 6 };
    (void)state;
    for (size_t count = MOST; count <= MOST + 1; count++) {
        heft_write_options opt = HEFT_WRITE_OPTIONS_INIT;
        heft_test_sink sink;
        heft_finding notice;
        heft_writer *w;
        heft_vocab *v;
        heft_error err;
        uint32_t losses = 0, notices = 0;
        char *text = malloc((DIGITS + 1) * count + 1);
        assert_non_null(text);
        for (size_t i = 0; i < count; i++)
            snprintf(text + i * (DIGITS + 1), DIGITS + 2, "%0*u\n", DIGITS, (unsigned)i);
        heft_assert_ok(heft_vocab_parse_lines(&v, heft_test_str(text), NULL, &err), &err);
        opt.version = "simple";
        opt.on_loss = note_many_tokens;
        opt.ctx = &losses;
        heft_assert_ok(heft_writer_open(&w, heft_format_find(HEFT_STR("embd")),
                                        heft_test_sink_init(&sink, false), &opt, &err),
                       &err);
        heft_assert_ok(heft_writer_set_vocab(w, v, &err), &err);
        heft_assert_ok(heft_writer_begin(w, &err), &err);
        heft_assert_ok(heft_writer_finish(w, &err), &err);
        assert_int_equal(losses, count > MOST);
        heft_file *f = heft_test_opened(heft_test_sink_bytes(&sink), NULL, false);
        for (uint32_t i = 0, n = heft_notice_count(f); i < n; i++) {
            notice = heft_notice_at(f, i);
            notices += !strcmp(notice.rule, "embd/many-tokens");
        }
        assert_int_equal(notices, count > MOST);
        heft_file_close(f);
        heft_vocab_close(v);
        heft_test_sink_free(&sink);
        free(text);
    }
}

static void refuses_tensors_that_embd_cannot_represent(void **state)
{
    const refusal rows[] = {
        { "embd", NULL, { "w", 1 }, HEFT_F32, 0, { 0 }, "embd/rank-0" },
        { "embd", NULL, { "w", 1 }, HEFT_F32, 5, { 1, 1, 1, 1, 1 }, "embd/tensor" },
        { "embd", NULL, { "w", 1 }, HEFT_F32, 2, { 0, 4 }, "embd/tensor" },
        { "embd", NULL, { "w", 1 }, HEFT_U8, 1, { (uint64_t)1 << 32 }, "embd/tensor" },
        { "embd", NULL, { "", 0 }, HEFT_F32, 1, { 1 }, "embd/tensor" },
        { "embd", NULL, { long_name, LONG }, HEFT_F32, 1, { 1 }, "embd/tensor" },
        { "embd", NULL, { "w", 1 }, HEFT_F64, 1, { 1 }, "embd/dtype" },
        { "embd", NULL, { "w", 1 }, HEFT_I64, 1, { 1 }, "embd/dtype" },
        { "embd", NULL, { "w", 1 }, HEFT_BOOL, 1, { 1 }, "embd/dtype" },
    };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++)
        assert_refused(&rows[i]);
}

static void refuses_tensors_that_gptrs_cannot_represent(void **state)
{
    const refusal rows[] = {
        { "gptrs-checkpoint", NULL, { "w", 1 }, HEFT_F32, 0, { 0 }, "gptrs/rank-0" },
        { "gptrs-archive", NULL, { "w", 1 }, HEFT_F32, 0, { 0 }, "gptrs/rank-0" },
        { "gptrs-checkpoint", NULL, { "w", 1 }, HEFT_F64, 1, { 1 }, "gptrs/dtype" },
        { "gptrs-archive", NULL, { "w", 1 }, HEFT_BOOL, 1, { 1 }, "gptrs/dtype" },
        { "gptrs-checkpoint", NULL, { "\xc3\xa9", 2 }, HEFT_F32, 1, { 1 }, "gptrs/tensor" },
    };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++)
        assert_refused(&rows[i]);
}

static void refuses_tensors_that_burnpack_cannot_represent(void **state)
{
    const refusal rows[] = {
        { "burnpack", NULL, { "w", 1 }, HEFT_C64, 1, { 1 }, "burnpack/dtype" },
        { "burnpack", NULL, { "w", 1 }, HEFT_F8_E4M3FN, 1, { 1 }, "burnpack/dtype" },
        { "burnpack", NULL, { "a\0b", 3 }, HEFT_F32, 1, { 1 }, "burnpack/tensor" },
    };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++)
        assert_refused(&rows[i]);
}

static void refuses_tensors_that_ztensor_cannot_represent(void **state)
{
    const refusal rows[] = {
        { "ztensor", "1.0", { "w", 1 }, HEFT_C64, 1, { 1 }, "ztensor/dtype" },
        { "ztensor", "1.0", { "w", 1 }, HEFT_F8_E4M3FN, 1, { 1 }, "ztensor/dtype" },
        { "ztensor", "1.0", { "w", 1 }, HEFT_F4_E2M1, 1, { 2 }, "ztensor/dtype" },
    };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++)
        assert_refused(&rows[i]);
}

/* ---- metadata ------------------------------------------------------------------------------- */

typedef struct written {
    heft_test_sink sink;
    heft_file *f;
} written;

/* Write one tensor "w" with the metadata values, and open the file. */
static void write_values(written *r, const char *format, const heft_value *values, size_t count)
{
    const uint64_t one = 1;
    heft_writer *w;
    heft_error err;
    uint32_t part;
    heft_assert_ok(heft_writer_open(&w, heft_format_find(heft_str_from(format)),
                                    heft_test_sink_init(&r->sink, false), NULL, &err),
                   &err);
    for (size_t i = 0; i < count; i++)
        heft_assert_ok(heft_writer_add_meta(w, values[i], &err), &err);
    heft_assert_ok(heft_writer_add_dense(&part, w, heft_test_str("w"), HEFT_F32, &one, 1, &err),
                   &err);
    heft_assert_ok(heft_writer_begin(w, &err), &err);
    heft_assert_ok(heft_writer_write(w, part, &one, 4, &err), &err);
    heft_assert_ok(heft_writer_finish(w, &err), &err);
    heft_assert_ok(heft_test_open(&r->f, heft_test_sink_bytes(&r->sink), NULL, &err), &err);
}

static void close_written(written *r)
{
    heft_file_close(r->f);
    heft_test_sink_free(&r->sink);
}

static void mag_stores_numbers_bit_by_bit(void **state)
{
    const heft_value values[] = {
        { .kind = HEFT_KIND_INT,
          .key = { "w", 1 },
          .as.i = INT64_MIN }, /* the key is the name of the tensor, too */
        { .kind = HEFT_KIND_FLOAT, .key = { "nan", 3 }, .as.f = (double)NAN },
        { .kind = HEFT_KIND_FLOAT, .key = { "inf", 3 }, .as.f = (double)-INFINITY },
        { .kind = HEFT_KIND_FLOAT, .key = { "rate", 4 }, .as.f = 0.1 },
    };
    written r;
    heft_value v;
    (void)state;
    write_values(&r, "mag", values, HEFT_COUNT(values));
    assert_int_not_equal(heft_tensor_find(r.f, HEFT_STR("w")), HEFT_NONE);
    for (size_t i = 0; i < HEFT_COUNT(values); i++) {
        char key[8];
        snprintf(key, sizeof key, "%.*s", (int)values[i].key.len, values[i].key.ptr);
        assert_true(heft_meta_find(&v, r.f, heft_str_from(key)));
        assert_int_equal(v.kind, values[i].kind);
        assert_memory_equal(&v.as.u, &values[i].as.u, sizeof v.as.u);
    }
    close_written(&r);
}

static void stores_text_metadata(void **state)
{
    static const char *const formats[] = { "burnpack", "embd", "ztensor" };
    const heft_value values[] = {
        { .kind = HEFT_KIND_STR, .key = { "a", 1 }, .as.s = { "text", 4 } },
        { .kind = HEFT_KIND_STR, .key = { "\xc3\xa9", 2 }, .as.s = { "", 0 } },
    };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(formats); i++) {
        written r;
        heft_value v;
        write_values(&r, formats[i], values, HEFT_COUNT(values));
        assert_true(heft_meta_find(&v, r.f, HEFT_STR("a")));
        assert_int_equal(v.kind, HEFT_KIND_STR);
        assert_int_equal(v.as.s.len, 4);
        assert_memory_equal(v.as.s.ptr, "text", 4);
        assert_true(heft_meta_find(&v, r.f, HEFT_STR("\xc3\xa9")));
        assert_int_equal(v.as.s.len, 0);
        close_written(&r);
    }
}

static void burnpack_stores_scalars(void **state)
{
    heft_test_sink sink;
    heft_writer *w;
    heft_error err;
    (void)state;
    heft_assert_ok(heft_writer_open(&w, heft_format_find(HEFT_STR("burnpack")),
                                    heft_test_sink_init(&sink, false), NULL, &err),
                   &err);
    const heft_value values[] = {
        { .kind = HEFT_KIND_MAP, .key = heft_test_str("burn.scalars") },
        { .kind = HEFT_KIND_INT, .key = heft_test_str("i"), .as.i = -3 },
        { .kind = HEFT_KIND_UINT, .key = heft_test_str("u"), .as.u = UINT64_MAX },
        { .kind = HEFT_KIND_FLOAT, .key = heft_test_str("f"), .as.f = 0.5 },
        { .kind = HEFT_KIND_BOOL, .key = heft_test_str("b"), .as.b = true },
    };
    for (size_t i = 0; i < HEFT_COUNT(values); i++)
        heft_assert_ok(heft_writer_add_meta(w, values[i], &err), &err);
    heft_assert_ok(heft_writer_end_meta(w, &err), &err);
    heft_assert_ok(heft_writer_begin(w, &err), &err);
    heft_assert_ok(heft_writer_finish(w, &err), &err);
    static const char expected[] = "\x67scalars\xa4" /* sorted by name */
                                   "\x61"
                                   "b\xa1\x64"
                                   "Bool\xf5"
                                   "\x61"
                                   "f\xa1\x65"
                                   "Float\xf9\x38\x00"
                                   "\x61i\xa1\x63Int\x22"
                                   "\x61u\xa1\x64UInt\x1b\xff\xff\xff\xff\xff\xff\xff\xff";
    assert_non_null(memmem(sink.p, sink.len, expected, sizeof expected - 1));
    heft_test_sink_free(&sink);
}

/* ---- vocabularies --------------------------------------------------------------------------- */

static void embd_stores_a_vocabulary(void **state)
{
    static const char *const versions[] = { "1.0", "simple" };
    heft_error err;
    heft_vocab *v, *back;
    (void)state;
    heft_assert_ok(heft_vocab_parse_lines(&v, heft_test_str("[PAD]\n##ing\n[UNK]\n"), NULL, &err),
                   &err);
    for (size_t i = 0; i < HEFT_COUNT(versions); i++) {
        heft_write_options opt = HEFT_WRITE_OPTIONS_INIT;
        heft_test_sink sink;
        heft_writer *w;
        heft_file *f;
        opt.version = versions[i];
        heft_vocab_set_special(v, HEFT_UNK, i ? 2 : 1);
        heft_assert_ok(heft_writer_open(&w, heft_format_find(HEFT_STR("embd")),
                                        heft_test_sink_init(&sink, false), &opt, &err),
                       &err);
        heft_assert_ok(heft_writer_set_vocab(w, v, &err), &err);
        heft_assert_ok(heft_writer_begin(w, &err), &err);
        heft_assert_ok(heft_writer_finish(w, &err), &err);
        heft_assert_ok(heft_test_open(&f, heft_test_sink_bytes(&sink), NULL, &err), &err);
        heft_assert_ok(heft_vocab_open(&back, f, &err), &err);
        assert_int_equal(heft_vocab_count(back), 3);
        assert_int_equal(heft_vocab_find(back, HEFT_STR("##ing")), 1);
        assert_int_equal(heft_vocab_special(back, HEFT_PAD), 0);
        assert_int_equal(heft_vocab_special(back, HEFT_UNK), i ? 2 : 1);
        assert_int_equal(heft_vocab_special(back, HEFT_MASK), HEFT_NONE);
        heft_vocab_close(back);
        heft_file_close(f);
        heft_test_sink_free(&sink);
    }
    heft_vocab_close(v);
}

/* ---- compressed parts ----------------------------------------------------------------------- */

static void reads_any_range_of_a_compressed_part(void **state)
{
    enum { BYTES = 300000, LONGEST = 5000, ROUNDS = 100 };
    static const test_tensor t[] = { { "w", HEFT_BOOL, 1, { BYTES } } };
    heft_write_options write = HEFT_WRITE_OPTIONS_INIT;
    heft_convert_options opt = HEFT_CONVERT_OPTIONS_INIT;
    heft_error err;
    heft_file *plain, *f;
    uint64_t random = 1;
    (void)state;
    if (!heft_host_default()->codecs)
        skip();
    opt.write = &write;
    write.storage.encoding = HEFT_ZSTD;
    heft_bytes raw = heft_test_model("mag", t, 1);
    heft_bytes packed = heft_test_converted("mag", t, 1, "ztensor", &opt);
    heft_assert_ok(heft_test_open(&plain, raw, NULL, &err), &err);
    heft_assert_ok(heft_test_open(&f, packed, NULL, &err), &err);
    assert_int_equal(heft_part_at(f, 0).encoding, HEFT_ZSTD);
    assert_null(heft_part_view(f, 0));
    for (int i = 0; i < ROUNDS; i++) {
        static uint8_t a[LONGEST], b[LONGEST];
        uint64_t at = heft_test_random(&random, BYTES - LONGEST);
        size_t n = heft_test_random(&random, LONGEST);
        heft_assert_ok(heft_part_read(a, plain, 0, at, n, &err), &err);
        heft_assert_ok(heft_part_read(b, f, 0, at, n, &err), &err);
        assert_memory_equal(a, b, n);
    }
    heft_file_close(plain);
    heft_file_close(f);
    heft_test_free(&raw);
    heft_test_free(&packed);
}

/* ---- parameters ----------------------------------------------------------------------------- */

static heft_file *open_bytes(heft_bytes b)
{
    heft_error err;
    heft_file *f;
    heft_assert_ok(heft_test_open(&f, b, NULL, &err), &err);
    return f;
}

static void adds_a_second_file_to_a_namespace(void **state)
{
    static const test_tensor one[] = { { "a", HEFT_F32, 1, { 2 } } },
                             other[] = { { "b", HEFT_F32, 1, { 3 } } };
    heft_bytes first = heft_test_model("mag", one, 1);
    heft_bytes second = heft_test_model("gptrs-checkpoint", other, 1);
    heft_params *p;
    heft_id128 namespace, key;
    heft_error err;
    heft_param w;
    (void)state;
    heft_assert_ok(heft_params_open(&p, NULL, &err), &err);
    heft_assert_ok(heft_params_add(&namespace, p, open_bytes(first), &err), &err);
    heft_assert_ok(heft_params_add_to(p, namespace, open_bytes(second), &err), &err);
    assert_int_equal(heft_params_count(p), 2);
    for (uint64_t i = 0; i < 2; i++) {
        assert_true(heft_params_find(&key, p, namespace, (heft_str){ i ? "b" : "a", 1 }));
        heft_assert_ok(heft_params_acquire(&w, p, key, &err), &err);
        assert_int_equal(w.bytes, 4 * (2 + i));
        heft_params_release(p, key);
    }
    heft_params_close(p);
    heft_test_free(&first);
    heft_test_free(&second);
}

/* Return a Burnpack with one tensor that has the Burn id, converted from safetensors. */
static heft_bytes burnpack_with_id(const char *id)
{
    char text[300];
    int n = snprintf(text + 8, sizeof text - 8,
                     "{\"__metadata__\":{\"heft.burn.param_id/w\":\"%s\"},"
                     "\"w\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}",
                     id);
    heft_test_sink sink;
    heft_error err;
    assert_in_range(n, 1, sizeof text - 9);
    heft_test_put(text, (uint64_t)n, 8);
    heft_file *f = open_bytes((heft_bytes){ (uint8_t *)text, 8 + (size_t)n });
    heft_assert_ok(heft_file_convert(f, heft_format_find(HEFT_STR("burnpack")),
                                     heft_test_sink_init(&sink, false), NULL, &err),
                   &err);
    heft_bytes b = heft_test_copy(sink.p, sink.len);
    heft_test_sink_free(&sink);
    heft_file_close(f);
    return b;
}

static void finds_a_parameter_by_its_burn_id(void **state)
{
    heft_bytes b = burnpack_with_id("18446744073709551615");
    heft_params *p;
    heft_id128 namespace, key, same;
    heft_error err;
    (void)state;
    heft_assert_ok(heft_params_open(&p, NULL, &err), &err);
    heft_assert_ok(heft_params_add(&namespace, p, open_bytes(b), &err), &err);
    assert_true(heft_params_find_burn(&key, p, namespace, UINT64_MAX));
    assert_true(heft_params_find(&same, p, namespace, HEFT_STR("w")));
    assert_memory_equal(&key, &same, sizeof key);
    assert_false(heft_params_find_burn(&key, p, namespace, 1));
    heft_params_close(p);
    heft_test_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define IN_A_DIRECTORY(test) \
    cmocka_unit_test_setup_teardown(test, heft_test_dir_make, heft_test_dir_remove)
        IN_A_DIRECTORY(burnpack_tensors_are_mapped_at_multiples_of_256),
        IN_A_DIRECTORY(embd_tensors_are_mapped_at_multiples_of_64),
        IN_A_DIRECTORY(gptrs_tensors_are_mapped_at_multiples_of_64),
        IN_A_DIRECTORY(mag_tensors_are_mapped_at_multiples_of_64),
        IN_A_DIRECTORY(ztensor_tensors_are_mapped_at_multiples_of_64),
        cmocka_unit_test(opening_reads_nothing_of_a_large_tensor),
        cmocka_unit_test(refuses_tensors_that_mag_cannot_represent),
        cmocka_unit_test(notes_more_tokens_than_the_reference_reads),
        cmocka_unit_test(refuses_tensors_that_embd_cannot_represent),
        cmocka_unit_test(refuses_metadata_beyond_a_length_field),
        cmocka_unit_test(refuses_a_token_beyond_its_length_field),
        cmocka_unit_test(refuses_tensors_that_gptrs_cannot_represent),
        cmocka_unit_test(refuses_tensors_that_burnpack_cannot_represent),
        cmocka_unit_test(refuses_tensors_that_ztensor_cannot_represent),
        cmocka_unit_test(mag_stores_numbers_bit_by_bit),
        cmocka_unit_test(stores_text_metadata),
        cmocka_unit_test(burnpack_stores_scalars),
        cmocka_unit_test(embd_stores_a_vocabulary),
        cmocka_unit_test(reads_any_range_of_a_compressed_part),
        cmocka_unit_test(adds_a_second_file_to_a_namespace),
        cmocka_unit_test(finds_a_parameter_by_its_burn_id),
    };
    memset(long_name, 'n', LONG);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
