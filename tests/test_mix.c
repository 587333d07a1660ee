/* test_mix.c - tests of mixes, of importance, and of encoding rows in a conversion.
 * tests/py/check_ggml_mixes.py compares whole files with those of llama.cpp. */
#include <math.h>
#include <stdlib.h>

#include "model/block_encode.h"
#include "models.h"

/* ---- mixes ---------------------------------------------------------------------------------- */

static heft_value number(const char *key, uint64_t n)
{
    return (heft_value){
        .kind = HEFT_KIND_UINT, .stored = HEFT_U32, .key = heft_str_from(key), .as.u = n
    };
}

static heft_value text(const char *key, const char *value)
{
    return heft_value_str(heft_str_from(key), heft_str_from(value));
}

typedef struct mixed { /* a model of these tensors, and a mix for it */
    heft_bytes bytes;
    heft_file *f;
    heft_mix *mix;
    heft_error err;
} mixed;

static heft_status open_mix(mixed *m, const test_tensor *tensors, size_t count,
                            const heft_mix_options *o)
{
    m->bytes = heft_test_model("gguf", tensors, count);
    m->f = heft_test_opened(m->bytes, NULL, true);
    heft_test_poison(&m->err);
    return heft_mix_open(&m->mix, m->f, o, &m->err);
}

static void close_mix(mixed *m)
{
    heft_mix_close(m->mix);
    heft_file_close(m->f);
    heft_test_free(&m->bytes);
}

static void every_mix_is_found_by_its_name(void **state)
{
    heft_mix_info found, alias;
    (void)state;
    for (uint32_t i = 0; heft_mix_info_at(i).name; i++) {
        heft_mix_info info = heft_mix_info_at(i);
        assert_true(heft_mix_find(&found, heft_str_from(info.name)));
        assert_int_equal(found.file_type, info.file_type);
    }
    assert_true(heft_mix_find(&found, HEFT_STR("Q4_K_M")));
    assert_true(heft_mix_find(&alias, HEFT_STR("Q4_K")));
    assert_int_equal(found.file_type, 15);
    assert_int_equal(alias.file_type, 15);
    assert_false(heft_mix_find(&found, HEFT_STR("q4_k_x")));
    assert_false(heft_mix_find(&found, HEFT_STR("q4_k_")));
}

enum { MOST = 4, SETS = 4 };
typedef struct refusal {
    const char *mix;
    heft_value set[SETS];
    size_t set_count;
    test_tensor tensors[MOST];
    size_t count;
    heft_status st;
    const char *words;
} refusal;

static void what_a_mix_lacks_is_named(void **state)
{
    const heft_value llama = text("general.architecture", "llama");
    const heft_value layers = number("llama.block_count", 8);
    const test_tensor v = { "blk.0.attn_v.weight", HEFT_F32, 2, { 32, 256 } };
    const test_tensor down = { "blk.0.ffn_down.weight", HEFT_F32, 2, { 32, 256 } };
    const test_tensor loose = { "ffn_down.weight", HEFT_F32, 2, { 32, 256 } };
    const refusal rows[] = {
        { "q5", { llama }, 1, { v }, 1, HEFT_E_ARGUMENT, "there is no mix 'q5'; mixes are f32" },
        { "iq3_m", { llama }, 1, { v }, 1, HEFT_E_UNSUPPORTED, "cannot quantise to iq3_s" },
        { "q6_k", { llama }, 0, { v }, 1, HEFT_E_UNSUPPORTED, "'general.architecture'" },
        { "q4_k_m", { llama }, 1, { down }, 1, HEFT_E_UNSUPPORTED, "'llama.block_count'" },
        { "q2_k",
          { llama, layers },
          2,
          { v },
          1,
          HEFT_E_UNSUPPORTED,
          "'llama.attention.head_count'" },
        { "q3_k_s", { llama }, 1, { v }, 1, HEFT_E_UNSUPPORTED, "'llama.block_count'" },
        { "q3_k_s",
          { llama, number("llama.block_count", 80) },
          2,
          { v },
          1,
          HEFT_E_UNSUPPORTED,
          "'llama.attention.head_count'" },
        { "q4_k_m",
          { llama, layers, number("llama.expert_count", 4) },
          3,
          { loose },
          1,
          HEFT_E_UNSUPPORTED,
          "needs its layer" },
    };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        mixed m;
        heft_mix_options o = HEFT_MIX_OPTIONS_INIT;
        o.mix = rows[i].mix;
        o.set = rows[i].set;
        o.set_count = rows[i].set_count;
        heft_assert_fails(open_mix(&m, rows[i].tensors, rows[i].count, &o), rows[i].st, &m.err,
                          rows[i].words);
        assert_null(m.mix);
        close_mix(&m);
    }
}

static void floats_of_few_bits_need_consent(void **state)
{
    static const test_tensor tensors[] = {
        { "blk.0.ffn_up.weight", HEFT_F8_E4M3FN, 2, { 8, 256 } }
    };
    heft_bytes bytes = heft_test_model("safetensors", tensors, 1);
    heft_file *f = heft_test_opened(bytes, NULL, true);
    heft_mix_options o = HEFT_MIX_OPTIONS_INIT;
    heft_mix *m;
    heft_error err;
    (void)state;
    o.mix = "q8_0";
    heft_assert_fails(heft_mix_open(&m, f, &o, &err), HEFT_E_UNSUPPORTED, &err,
                      "is f8_e4m3fn already");
    assert_true(heft_test_is_rule(&err, "heft/requantise"));
    heft_file_close(f);
    heft_test_free(&bytes);
}

static void weights_that_are_quantised_need_consent(void **state)
{
    const test_tensor tensors[] = { { "blk.0.ffn_up.weight", HEFT_Q4_0, 2, { 8, 256 } },
                                    { "blk.1.ffn_up.weight", HEFT_Q8_0, 2, { 8, 256 } } };
    heft_mix_options o = HEFT_MIX_OPTIONS_INIT;
    mixed m;
    (void)state;
    o.mix = "q8_0";
    heft_assert_fails(open_mix(&m, tensors, 2, &o), HEFT_E_UNSUPPORTED, &m.err, "is q4_0 already");
    close_mix(&m);
    o.requantise = true;
    heft_assert_ok(open_mix(&m, tensors, 2, &o), &m.err);
    assert_int_equal(heft_mix_at(m.mix, 0).to, HEFT_Q8_0);
    assert_int_equal(heft_mix_at(m.mix, 1).to, HEFT_Q8_0);
    close_mix(&m);
}

static void tensors_that_stay_say_why(void **state)
{
    const test_tensor tensors[] = { { "blk.0.attn_norm.weight", HEFT_F32, 2, { 8, 256 } },
                                    { "blk.0.ffn_up.weight", HEFT_F32, 1, { 256 } },
                                    { "blk.0.ffn_up.scale", HEFT_F32, 2, { 8, 256 } },
                                    { "blk.0.ids.weight", HEFT_I32, 2, { 8, 256 } } };
    static const char *const reasons[] = { "norm", "one dimension", "not a weight",
                                           "not floating-point" };
    heft_mix_options o = HEFT_MIX_OPTIONS_INIT;
    mixed m;
    (void)state;
    o.mix = "q8_0";
    heft_assert_ok(open_mix(&m, tensors, HEFT_COUNT(tensors), &o), &m.err);
    for (uint32_t i = 0; i < HEFT_COUNT(tensors); i++) {
        heft_mix_item item = heft_mix_at(m.mix, i);
        assert_string_equal(item.reason, reasons[i]);
        assert_int_equal(item.to, item.from);
        assert_int_equal(item.bytes, item.new_bytes);
    }
    close_mix(&m);
}

static void llama_needs_vectors_and_norms_in_f32(void **state)
{
    const uint64_t dims[] = { 1, 8, 4 };
    heft_tensor t = { .dtype = HEFT_BF16, .rank = 2, .dims = dims };
    (void)state;
    assert_string_equal(heft_mix_needs_f32(&t, HEFT_STR("rope_freqs.weight")), "one dimension");
    t.rank = 3;
    assert_string_equal(heft_mix_needs_f32(&t, HEFT_STR("blk.0.ffn_gate_inp.weight")),
                        "router of experts");
    assert_null(heft_mix_needs_f32(&t, HEFT_STR("blk.0.attn_q.weight")));
    t.dtype = HEFT_Q8_0;
    assert_null(heft_mix_needs_f32(&t, HEFT_STR("blk.0.ffn_gate_inp.weight")));
}

static void rows_that_do_not_fill_blocks_fall_back(void **state)
{
    const test_tensor tensors[] = { { "blk.0.ffn_up.weight", HEFT_F32, 2, { 8, 36 } } };
    heft_mix_options o = HEFT_MIX_OPTIONS_INIT;
    mixed m;
    (void)state;
    o.mix = "q8_0";
    heft_assert_ok(open_mix(&m, tensors, 1, &o), &m.err);
    heft_mix_item item = heft_mix_at(m.mix, 0);
    assert_int_equal(item.to, HEFT_F16);
    assert_int_equal(item.instead_of, HEFT_Q8_0);
    assert_int_equal(item.new_bytes, 8 * 36 * 2);
    close_mix(&m);
}

/* ---- importance ----------------------------------------------------------------------------- */

typedef struct dat { /* an imatrix.dat */
    uint8_t bytes[512];
    size_t len;
} dat;

static void put(dat *d, const void *bytes, size_t len)
{
    memcpy(d->bytes + d->len, bytes, len);
    d->len += len;
}

static void put_u32(dat *d, uint32_t n)
{
    const uint8_t le[] = { (uint8_t)n, (uint8_t)(n >> 8), (uint8_t)(n >> 16), (uint8_t)(n >> 24) };
    put(d, le, sizeof le);
}

static void put_entry(dat *d, const char *name, uint32_t calls, uint32_t count, uint32_t value)
{
    put_u32(d, (uint32_t)strlen(name));
    put(d, name, strlen(name));
    put_u32(d, calls);
    put_u32(d, count);
    for (uint32_t i = 0; i < count; i++)
        put_u32(d, value);
}

enum { SIX = 0x40C00000, NAN_BITS = 0x7FC00000, BELOW = 0xBF800000, INFINITE = 0x7F800000 };

static dat good(uint32_t value)
{
    dat d = { .len = 0 };
    put_u32(&d, 2);
    put_entry(&d, "b", 3, 4, value);
    put_entry(&d, "a", 0, 2, SIX);
    return d;
}

static void sums_become_means(void **state)
{
    heft_error err;
    heft_importance *m;
    uint64_t count;
    dat d = good(SIX);
    (void)state;
    put_u32(&d, 9);
    put_u32(&d, 4);
    put(&d, "text", 4);
    put(&d, "more", 3);
    heft_assert_ok(heft_importance_read(&m, d.bytes, d.len, NULL, &err), &err);
    assert_int_equal(heft_importance_count(m), 2);
    assert_int_equal(heft_importance_chunks(m), 9);
    assert_true(heft_importance_dataset(m).len == 4);
    assert_int_equal(heft_importance_trailing(m), 3);
    const float *b = heft_importance_find(&count, m, HEFT_STR("b"));
    assert_int_equal(count, 4);
    assert_true(b[0] == 2 && b[3] == 2);
    const float *a = heft_importance_find(&count, m, HEFT_STR("a"));
    assert_true(count == 2 && a[1] == 6);
    assert_null(heft_importance_find(&count, m, HEFT_STR("c")));
    heft_importance_close(m);
    heft_importance_close(NULL);
}

static void bad_importance_is_refused(void **state)
{
    static const uint32_t values[] = { NAN_BITS, BELOW, INFINITE };
    heft_error err;
    heft_importance *m;
    dat twice = { .len = 0 }, whole = good(SIX), none = { .len = 0 }, long_one = { .len = 0 };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(values); i++) {
        dat d = good(values[i]);
        heft_assert_fails(heft_importance_read(&m, d.bytes, d.len, NULL, &err), HEFT_E_FORMAT, &err,
                          "NaN, infinite or below 0");
        assert_null(m);
    }
    put_u32(&twice, 2);
    put_entry(&twice, "a", 1, 1, SIX);
    put_entry(&twice, "a", 1, 1, SIX);
    heft_assert_fails(heft_importance_read(&m, twice.bytes, twice.len, NULL, &err), HEFT_E_FORMAT,
                      &err, "two entries for 'a'");
    put_u32(&none, 0);
    heft_assert_fails(heft_importance_read(&m, none.bytes, none.len, NULL, &err), HEFT_E_FORMAT,
                      &err, "no entries");
    put_u32(&long_one, 1);
    put_u32(&long_one, 1);
    put(&long_one, "a", 1);
    put_u32(&long_one, 1);
    put_u32(&long_one, INT32_MAX);
    heft_assert_status(heft_importance_read(&m, long_one.bytes, long_one.len, NULL, &err),
                       HEFT_E_FORMAT, &err);
    for (size_t len = 0; len < whole.len; len++) {
        heft_bytes cut = heft_test_copy(whole.bytes, len);
        heft_assert_status(heft_importance_read(&m, cut.p, cut.len, NULL, &err), HEFT_E_FORMAT,
                           &err);
        heft_test_free(&cut);
    }
}

static void a_file_of_another_type_is_no_imatrix(void **state)
{
    static const test_tensor tensors[] = { { "a.in_sum2", HEFT_F32, 2, { 1, 4 } } };
    heft_error err;
    heft_importance *m;
    (void)state;
    heft_bytes b = heft_test_model("gguf", tensors, 1);
    heft_file *f = heft_test_opened(b, NULL, true);
    heft_assert_fails(heft_importance_open(&m, f, &err), HEFT_E_FORMAT, &err, "general.type");
    heft_file_close(f);
    heft_test_free(&b);
}

static void importance_of_another_model_is_refused(void **state)
{
    static const test_tensor tensors[] = { { "b", HEFT_F32, 2, { 8, 32 } },
                                           { "blk.0.ffn_up.weight", HEFT_F32, 2, { 8, 32 } } };
    heft_error err;
    heft_importance *i;
    heft_mix_options o = HEFT_MIX_OPTIONS_INIT;
    dat d = { .len = 0 };
    mixed m;
    (void)state;
    put_u32(&d, 1);
    put_entry(&d, "blk.0.ffn_up.weight", 1, 16, SIX);
    heft_assert_ok(heft_importance_read(&i, d.bytes, d.len, NULL, &err), &err);
    o.mix = "q8_0";
    o.importance = i;
    heft_assert_fails(open_mix(&m, tensors, 2, &o), HEFT_E_ARGUMENT, &m.err,
                      "the imatrix has 16 numbers");
    close_mix(&m);
    heft_importance_close(i);
}

/* ---- rows ----------------------------------------------------------------------------------- */

typedef struct request { /* context of the callbacks */
    heft_dtype to;
    const float *importance;
    uint64_t count;
    bool transposes;
} request;

static heft_dtype cast(void *ctx, const heft_tensor *t)
{
    (void)t;
    return ((request *)ctx)->to;
}

static const float *importance(void *ctx, const heft_tensor *t, uint64_t *count)
{
    (void)t;
    *count = ((request *)ctx)->count;
    return ((request *)ctx)->importance;
}

static bool transpose(void *ctx, const heft_tensor *t)
{
    return t->rank == 2 && ((request *)ctx)->transposes;
}

static float *values_of(size_t count)
{
    float *v = malloc((count + !count) * sizeof *v);
    uint32_t x = 1;
    assert_non_null(v);
    for (size_t i = 0; i < count; i++) {
        x = x * 1664525 + 1013904223;
        v[i] = (float)(int32_t)x / 4294967296.0F;
    }
    return v;
}

/* Convert a tensor of these values to GGUF, and return the file. */
static heft_status convert(heft_test_sink *sink, const float *values, const uint64_t *dims,
                           uint32_t rank, request *r, heft_convert_options *o, bool is_stream,
                           heft_error *err)
{
    heft_save_options save = HEFT_SAVE_OPTIONS_INIT;
    heft_blob b;
    heft_sink *to;
    heft_array a = { .name = HEFT_STR("w"),
                     .data = values,
                     .dims = dims,
                     .rank = rank,
                     .dtype = HEFT_F32,
                     .bytes = sizeof *values };
    for (uint32_t i = 0; i < rank; i++)
        a.bytes *= dims[i];
    save.format = heft_format_find(HEFT_STR("safetensors"));
    heft_assert_ok(heft_sink_open_memory(&to, &b, NULL, err), err);
    heft_assert_ok(heft_array_write(to, &a, 1, &save, err), err);
    heft_file *f = heft_test_opened((heft_bytes){ b.data, b.size }, NULL, true);
    o->cast = cast;
    o->importance = r->importance ? importance : NULL;
    o->transpose = transpose;
    o->ctx = r;
    heft_status st = heft_file_convert(f, heft_format_find(HEFT_STR("gguf")),
                                       heft_test_sink_init(sink, is_stream), o, err);
    heft_file_close(f);
    heft_blob_free(&b);
    return st;
}

/* Compare the bytes of the tensor with rows that are encoded one by one. */
static void check_rows(const heft_test_sink *sink, const float *values, size_t rows, size_t columns,
                       size_t matrix_rows, const request *r)
{
    heft_error err;
    heft_file *f = heft_test_opened(heft_test_sink_bytes(sink), NULL, true);
    heft_tensor t = heft_tensor_at(f, 0);
    const heft_dtype_info *d = heft_dtype_get(r->to);
    size_t bytes = columns / d->block_elems * d->block_bytes;
    uint8_t *expected = malloc(bytes), *row = malloc(bytes);
    assert_int_equal(t.dtype, r->to);
    assert_int_equal(heft_part_at(f, t.first_part).length, rows * bytes);
    for (size_t i = 0; i < rows; i++) {
        const float *weights = r->importance;
        heft_row_encode(expected, r->to, values + i * columns, columns,
                        weights ? weights + i / matrix_rows * columns : NULL);
        heft_assert_ok(heft_part_read(row, f, t.first_part, i * bytes, bytes, &err), &err);
        assert_memory_equal(row, expected, bytes);
    }
    free(expected);
    free(row);
    heft_file_close(f);
}

/* Rows longer than the buffers of the engine, rows that end across them, and a stack. */
static void rows_are_encoded_as_alone(void **state)
{
    static const struct {
        uint64_t dims[3];
        uint32_t rank;
    } shapes[] = { { { 40, 96 * 1024 }, 2 },
                   { { 4100, 992 }, 2 },
                   { { 3, 50, 64 }, 3 },
                   { { 64 }, 1 },
                   { { 0, 32 }, 2 } };
    (void)state;
    for (size_t i = 0; i < 2 * HEFT_COUNT(shapes); i++) {
        const uint64_t *dims = shapes[i / 2].dims;
        uint32_t rank = shapes[i / 2].rank;
        size_t columns = dims[rank - 1], rows = rank > 1 ? dims[rank - 2] : 1;
        size_t matrices = rank > 2 ? dims[0] : 1;
        heft_convert_options o = HEFT_CONVERT_OPTIONS_INIT;
        heft_error err;
        heft_test_sink sink;
        float *weights = values_of(matrices * columns),
              *values = values_of(matrices * rows * columns);
        for (size_t k = 0; k < matrices * columns; k++)
            weights[k] = weights[k] * weights[k];
        request r = { .to = HEFT_Q4_0, .importance = weights, .count = matrices * columns };
        heft_assert_ok(convert(&sink, values, dims, rank, &r, &o, i & 1, &err), &err);
        check_rows(&sink, values, matrices * rows, columns, rows, &r);
        heft_test_sink_free(&sink);
        free(weights);
        free(values);
    }
}

static void transposed_rows_are_encoded(void **state)
{
    enum { ROWS = 64, COLUMNS = 40 };
    const uint64_t dims[] = { ROWS, COLUMNS };
    float *values = values_of(ROWS * COLUMNS), turned[ROWS * COLUMNS];
    heft_convert_options o = HEFT_CONVERT_OPTIONS_INIT;
    request r = { .to = HEFT_Q8_0, .transposes = true };
    heft_test_sink sink;
    heft_error err;
    (void)state;
    for (size_t i = 0; i < ROWS * COLUMNS; i++)
        turned[i % COLUMNS * ROWS + i / COLUMNS] = values[i];
    heft_assert_ok(convert(&sink, values, dims, 2, &r, &o, false, &err), &err);
    check_rows(&sink, turned, COLUMNS, ROWS, COLUMNS, &r);
    heft_test_sink_free(&sink);
    free(values);
}

static void rows_must_fill_blocks(void **state)
{
    const uint64_t dims[] = { 4, 40 };
    float *values = values_of(160);
    heft_convert_options o = HEFT_CONVERT_OPTIONS_INIT;
    request r = { .to = HEFT_Q8_0 };
    heft_test_sink sink;
    heft_error err;
    (void)state;
    heft_assert_fails(convert(&sink, values, dims, 2, &r, &o, false, &err), HEFT_E_UNSUPPORTED,
                      &err, "rows of 40 elements do not fill blocks of q8_0");
    heft_test_sink_free(&sink);
    free(values);
}

static void importance_must_have_all_columns(void **state)
{
    const uint64_t dims[] = { 4, 32 };
    float *values = values_of(128);
    heft_convert_options o = HEFT_CONVERT_OPTIONS_INIT;
    request r = { .to = HEFT_Q4_0, .importance = values, .count = 31 };
    heft_test_sink sink;
    heft_error err;
    (void)state;
    heft_assert_fails(convert(&sink, values, dims, 2, &r, &o, false, &err), HEFT_E_ARGUMENT, &err,
                      "31 numbers of importance");
    heft_test_sink_free(&sink);
    free(values);
}

static void a_number_that_is_not_finite_is_named(void **state)
{
    const uint64_t dims[] = { 4, 64 };
    float *values = values_of(256);
    request r = { .to = HEFT_Q8_0 };
    heft_test_sink sink;
    heft_error err;
    (void)state;
    values[2 * 64 + 33] = HUGE_VALF;
    for (int nan = 0; nan < 2; nan++) {
        heft_convert_options o = HEFT_CONVERT_OPTIONS_INIT;
        heft_assert_fails(convert(&sink, values, dims, 2, &r, &o, false, &err), HEFT_E_LOSSY, &err,
                          nan ? "row 2, column 33 is NaN" : "row 2, column 33 is infinite");
        assert_true(heft_test_is_rule(&err, "heft/not-finite"));
        assert_true(sink.discarded);
        heft_test_sink_free(&sink);
        values[2 * 64 + 33] = NAN;
    }
    heft_convert_options o = HEFT_CONVERT_OPTIONS_INIT;
    o.allow_nan = true;
    heft_assert_ok(convert(&sink, values, dims, 2, &r, &o, false, &err), &err);
    check_rows(&sink, values, 4, 64, 4, &r);
    heft_test_sink_free(&sink);
    free(values);
}

/* Finite numbers for which a block has no scale: f16 ends at 65504, and the scales of nvfp4 at 448.
 */
static void a_number_too_large_for_its_block_is_named(void **state)
{
    static const struct {
        heft_dtype to;
        float most, beyond;
    } rows[] = { { HEFT_Q4_0, 5e5F, 6e5F },     { HEFT_Q4_1, 6.5e4F, 1e6F },
                 { HEFT_Q8_0, 8.3e6F, 8.4e6F }, { HEFT_Q3_K, 7e6F, 1e7F },
                 { HEFT_Q6_K, 2.5e8F, 3e8F },   { HEFT_Q6_K, 1e8F, 1e19F },
                 { HEFT_IQ4_XS, 1e8F, 3e8F },   { HEFT_IQ4_XS, 1e8F, 3e38F },
                 { HEFT_NVFP4, 2700, 2800 },    { HEFT_TQ2_0, 6.5e4F, 6.6e4F } };
    const uint64_t dims[] = { 2, 512 };
    (void)state;
    for (size_t i = 0; i < 2 * HEFT_COUNT(rows); i++) {
        bool is_beyond = i & 1;
        request r = { .to = rows[i / 2].to };
        heft_convert_options o = HEFT_CONVERT_OPTIONS_INIT;
        float *values = values_of(1024);
        heft_test_sink sink;
        heft_error err;
        values[512 + 300] = is_beyond ? rows[i / 2].beyond : rows[i / 2].most;
        heft_status st = convert(&sink, values, dims, 2, &r, &o, false, &err);
        if (is_beyond) {
            heft_assert_fails(st, HEFT_E_LOSSY, &err, "is too large");
            assert_true(heft_test_is_rule(&err, "heft/not-finite"));
            heft_test_sink_free(&sink);
            o.allow_nan = true;
            st = convert(&sink, values, dims, 2, &r, &o, false, &err);
        }
        heft_assert_ok(st, &err);
        check_rows(&sink, values, 2, 512, 2, &r);
        heft_test_sink_free(&sink);
        free(values);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_mix_is_found_by_its_name),
        cmocka_unit_test(what_a_mix_lacks_is_named),
        cmocka_unit_test(weights_that_are_quantised_need_consent),
        cmocka_unit_test(floats_of_few_bits_need_consent),
        cmocka_unit_test(tensors_that_stay_say_why),
        cmocka_unit_test(llama_needs_vectors_and_norms_in_f32),
        cmocka_unit_test(rows_that_do_not_fill_blocks_fall_back),
        cmocka_unit_test(sums_become_means),
        cmocka_unit_test(bad_importance_is_refused),
        cmocka_unit_test(a_file_of_another_type_is_no_imatrix),
        cmocka_unit_test(importance_of_another_model_is_refused),
        cmocka_unit_test(rows_are_encoded_as_alone),
        cmocka_unit_test(transposed_rows_are_encoded),
        cmocka_unit_test(rows_must_fill_blocks),
        cmocka_unit_test(importance_must_have_all_columns),
        cmocka_unit_test(a_number_that_is_not_finite_is_named),
        cmocka_unit_test(a_number_too_large_for_its_block_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
