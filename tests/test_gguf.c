/* test_gguf.c - writing GGUF: kinds of metadata, shapes, vocabularies. */
#include "dump.h"

typedef struct losses {
    char text[2048];
    uint32_t count[3]; /* by severity */
} losses;

static void note_loss(void *ctx, heft_severity s, const char *rule, heft_str tensor,
                      const char *text)
{
    losses *l = ctx;
    size_t at = strlen(l->text);
    (void)tensor;
    l->count[s]++;
    snprintf(l->text + at, sizeof l->text - at, "%s: %s\n", rule, text);
}

typedef struct fixture {
    heft_test_sink sink;
    heft_write_options opt;
    losses losses;
    heft_error err;
    heft_writer *w;
} fixture;

static void begin(fixture *f)
{
    memset(f, 0, sizeof *f);
    f->opt = (heft_write_options)HEFT_WRITE_OPTIONS_INIT;
    f->opt.on_loss = note_loss;
    f->opt.ctx = &f->losses;
    heft_assert_ok(heft_writer_open(&f->w, heft_format_find(HEFT_STR("gguf")),
                                    heft_test_sink_init(&f->sink, false), &f->opt, &f->err),
                   &f->err);
}

static void put(fixture *f, heft_value v)
{
    heft_assert_ok(heft_writer_add_meta(f->w, v, &f->err), &f->err);
}

static void put_list(fixture *f, const char *key, const heft_value *v, size_t count)
{
    put(f, (heft_value){ .kind = HEFT_KIND_LIST, .key = heft_test_str(key) });
    for (size_t i = 0; i < count; i++)
        put(f, v[i]);
    heft_assert_ok(heft_writer_end_meta(f->w, &f->err), &f->err);
}

static heft_file *finish(fixture *f)
{
    heft_file *out;
    heft_assert_ok(heft_writer_begin(f->w, &f->err), &f->err);
    heft_assert_ok(heft_writer_finish(f->w, &f->err), &f->err);
    heft_assert_ok(heft_test_open(&out, heft_test_sink_bytes(&f->sink), NULL, &f->err), &f->err);
    return out;
}

static void end(fixture *f, heft_file *opened)
{
    heft_file_close(opened);
    heft_test_sink_free(&f->sink);
}

static heft_value uint_value(const char *key, uint64_t u, heft_dtype stored)
{
    return (heft_value){
        .kind = HEFT_KIND_UINT, .stored = stored, .key = heft_test_str(key), .as.u = u
    };
}

static heft_value int_value(const char *key, int64_t i, heft_dtype stored)
{
    return (heft_value){
        .kind = HEFT_KIND_INT, .stored = stored, .key = heft_test_str(key), .as.i = i
    };
}

static heft_value float_value(const char *key, double f, heft_dtype stored)
{
    return (heft_value){
        .kind = HEFT_KIND_FLOAT, .stored = stored, .key = heft_test_str(key), .as.f = f
    };
}

static heft_value text_value(const char *key, const char *s)
{
    return (
        heft_value){ .kind = HEFT_KIND_STR, .key = heft_test_str(key), .as.s = heft_test_str(s) };
}

static void assert_dump(const heft_file *f, const char *expected)
{
    char *text = heft_test_dump(f, DUMP_MODEL);
    heft_assert_same_text(text, expected);
    free(text);
}

/* ---- metadata ------------------------------------------------------------------------------- */

static void stores_numbers_in_their_type_or_a_wider_type(void **state)
{
    fixture f;
    (void)state;
    begin(&f);
    put(&f, uint_value("a", 7, HEFT_U8));
    put(&f, uint_value("b", 300, HEFT_U8)); /* 300 does not fit into u8 */
    put(&f, uint_value("c", 3, HEFT_UNTYPED));
    put(&f, uint_value("d", UINT64_C(1) << 40, HEFT_UNTYPED));
    put(&f, int_value("e", -3, HEFT_UNTYPED));
    put(&f, int_value("f", INT64_MIN, HEFT_UNTYPED));
    put(&f, int_value("g", 3, HEFT_I64));
    put(&f, int_value("h", -1, HEFT_U32)); /* -1 does not fit into u32 */
    put(&f, float_value("i", 0.5, HEFT_UNTYPED));
    put(&f, float_value("j", 0.1, HEFT_UNTYPED));
    put(&f, float_value("k", 0.5, HEFT_F64));
    put(&f, uint_value("l", 9, HEFT_F16)); /* GGUF has no f16 metadata */
    heft_file *g = finish(&f);
    assert_dump(g, "meta 1 \"a\" uint 7 stored as u8\n"
                   "meta 1 \"b\" uint 300 stored as u32\n"
                   "meta 1 \"c\" uint 3 stored as u32\n"
                   "meta 1 \"d\" uint 1099511627776 stored as u64\n"
                   "meta 1 \"e\" int -3 stored as i32\n"
                   "meta 1 \"f\" int -9223372036854775808 stored as i64\n"
                   "meta 1 \"g\" int 3 stored as i64\n"
                   "meta 1 \"h\" int -1 stored as i32\n"
                   "meta 1 \"i\" float 3fe0000000000000 stored as f32\n"
                   "meta 1 \"j\" float 3fb999999999999a stored as f64\n"
                   "meta 1 \"k\" float 3fe0000000000000 stored as f64\n"
                   "meta 1 \"l\" uint 9 stored as u32\n");
    assert_string_equal(f.losses.text, "");
    end(&f, g);
}

static void stores_lists_as_arrays_of_one_type(void **state)
{
    fixture f;
    (void)state;
    const heft_value small[] = { uint_value("", 1, 0), uint_value("", 2, 0) };
    const heft_value wide[] = { uint_value("", 1, 0), int_value("", -2, 0),
                                uint_value("", UINT64_C(1) << 33, 0) };
    const heft_value real[] = { float_value("", 0.5, 0), float_value("", 0.1, 0) };
    const heft_value texts[] = { text_value("", "x"), text_value("", "") };
    begin(&f);
    put_list(&f, "small", small, HEFT_COUNT(small));
    put_list(&f, "wide", wide, HEFT_COUNT(wide));
    put_list(&f, "real", real, HEFT_COUNT(real));
    put_list(&f, "texts", texts, HEFT_COUNT(texts));
    put_list(&f, "none", NULL, 0);
    heft_file *g = finish(&f);
    heft_value v;
    assert_true(heft_meta_find(&v, g, HEFT_STR("small")));
    assert_int_equal(v.as.array.dtype, HEFT_U32);
    assert_memory_equal(v.as.array.ptr, "\1\0\0\0\2\0\0\0", 8);
    assert_true(heft_meta_find(&v, g, HEFT_STR("wide")));
    assert_int_equal(v.as.array.dtype, HEFT_I64);
    assert_memory_equal(v.as.array.ptr,
                        "\1\0\0\0\0\0\0\0\xFE\xFF\xFF\xFF\xFF\xFF\xFF\xFF\0\0\0\0\2\0\0\0", 24);
    assert_true(heft_meta_find(&v, g, HEFT_STR("real")));
    assert_int_equal(v.as.array.dtype, HEFT_F64);
    assert_true(heft_meta_find(&v, g, HEFT_STR("texts")));
    assert_int_equal(v.kind, HEFT_KIND_LIST);
    assert_int_equal(v.as.container.count, 2);
    assert_true(heft_meta_find(&v, g, HEFT_STR("none")));
    assert_int_equal(v.as.container.count, 0);
    assert_string_equal(f.losses.text, "");
    end(&f, g);
}

static void drops_and_reports_metadata_without_a_gguf_type(void **state)
{
    fixture f;
    (void)state;
    const heft_value mixed[] = { uint_value("", 1, 0), text_value("", "x") };
    const heft_value halves[] = { uint_value("", UINT64_MAX, 0), int_value("", -1, 0) };
    heft_value bytes = { .kind = HEFT_KIND_BYTES, .key = heft_test_str("bytes") };
    bytes.as.s = heft_test_str("\xff\x01");
    begin(&f);
    put_list(&f, "mixed", mixed, HEFT_COUNT(mixed));
    put_list(&f, "halves", halves, HEFT_COUNT(halves));
    put(&f, (heft_value){ .kind = HEFT_KIND_MAP, .key = heft_test_str("map") });
    put(&f, text_value("in", "it"));
    heft_assert_ok(heft_writer_end_meta(f.w, &f.err), &f.err);
    put(&f, (heft_value){ .kind = HEFT_KIND_NULL, .key = heft_test_str("null") });
    put(&f, text_value("", "no key"));
    put(&f, bytes);
    heft_file *g = finish(&f);
    assert_dump(g, "meta 1 \"bytes\" array 2 u8 \"\\xff\\x01\"\n");
    assert_int_equal(f.losses.count[HEFT_WARNING], 5);
    assert_int_equal(f.losses.count[HEFT_NOTE], 1);
    assert_non_null(strstr(f.losses.text, "metadata 'mixed' is left out"));
    assert_non_null(strstr(f.losses.text, "metadata 'halves' is left out"));
    assert_non_null(strstr(f.losses.text, "metadata 'map' is left out"));
    assert_non_null(strstr(f.losses.text, "metadata 'bytes' becomes an array of u8"));
    end(&f, g);
}

/* ---- tensors -------------------------------------------------------------------------------- */

static heft_status write_tensor(fixture *f, heft_dtype t, const uint64_t *dims, uint32_t rank,
                                bool allow_loss)
{
    uint32_t part;
    const uint8_t zeros[4096] = { 0 };
    memset(f, 0, sizeof *f);
    f->opt = (heft_write_options)HEFT_WRITE_OPTIONS_INIT;
    f->opt.on_loss = note_loss;
    f->opt.ctx = &f->losses;
    f->opt.allow_loss = allow_loss;
    heft_assert_ok(heft_writer_open(&f->w, heft_format_find(HEFT_STR("gguf")),
                                    heft_test_sink_init(&f->sink, false), &f->opt, &f->err),
                   &f->err);
    heft_assert_ok(heft_writer_add_dense(&part, f->w, heft_test_str("t"), t, dims, rank, &f->err),
                   &f->err);
    heft_status st = heft_writer_begin(f->w, &f->err);
    if (st || allow_loss) {
        heft_writer_discard(f->w);
    } else {
        uint64_t bytes = 1;
        for (uint32_t i = 0; i < rank; i++)
            bytes *= dims[i];
        bytes = bytes / heft_dtype_get(t)->block_elems * heft_dtype_get(t)->block_bytes;
        heft_assert_ok(heft_writer_write(f->w, part, zeros, (size_t)bytes, &f->err), &f->err);
        heft_assert_ok(heft_writer_finish(f->w, &f->err), &f->err);
    }
    heft_test_sink_free(&f->sink);
    return st;
}

static void refuses_tensors_that_ggml_does_not_support(void **state)
{
    static const struct row {
        heft_dtype t;
        uint32_t rank;
        uint64_t dims[5];
        const char *words; /* part of the loss message; NULL if the tensor is accepted */
    } rows[] = {
        { HEFT_F32, 0, { 0 }, NULL }, /* stored as [1], with a warning */
        { HEFT_F32, 5, { 1, 1, 1, 1, 2 }, "rank 5" },
        { HEFT_F32, 4, { 1, 1, 1, 2 }, NULL },
        { HEFT_F32, 2, { 0, 3 }, NULL },
        { HEFT_Q4_0, 2, { 3, 0 }, NULL },
        { HEFT_F32, 2, { 0, UINT64_MAX }, "dimension beyond" },
        { HEFT_U8, 1, { 4 }, "element type u8" },
        { HEFT_BOOL, 1, { 4 }, "element type bool" },
        { HEFT_F8_E4M3FN, 1, { 4 }, "element type f8_e4m3fn" },
        { HEFT_Q4_0, 2, { 32, 3 }, "not a multiple of the block size" },
        { HEFT_Q4_0, 2, { 3, 32 }, NULL },
        { HEFT_MXFP4, 1, { 64 }, NULL },
        { HEFT_Q4_0, 0, { 0 }, "not a multiple of the block size" },
    };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        fixture f;
        heft_status st = write_tensor(&f, rows[i].t, rows[i].dims, rows[i].rank, false);
        assert_int_equal(st, rows[i].words ? HEFT_E_LOSSY : HEFT_OK);
        assert_true(!rows[i].words || strstr(f.losses.text, rows[i].words));
        heft_assert_ok(write_tensor(&f, rows[i].t, rows[i].dims, rows[i].rank, true), &f.err);
    }
}

/* ---- vocabularies --------------------------------------------------------------------------- */

static heft_vocab *vocabulary(const char *lines)
{
    heft_vocab *v;
    heft_error err;
    heft_assert_ok(heft_vocab_parse_lines(&v, heft_test_str(lines), NULL, &err), &err);
    return v;
}

/* Write the model again, with the vocabulary v. */
static heft_file *rewrite(fixture *f, const heft_file *in, const heft_vocab *v)
{
    heft_file *out;
    heft_write_options write = HEFT_WRITE_OPTIONS_INIT;
    heft_convert_options opt = HEFT_CONVERT_OPTIONS_INIT;
    memset(f, 0, sizeof *f);
    opt.write = &write;
    write.on_loss = note_loss;
    write.ctx = &f->losses;
    opt.vocab = v;
    heft_assert_ok(heft_file_convert(in, heft_format_find(HEFT_STR("gguf")),
                                     heft_test_sink_init(&f->sink, false), &opt, &f->err),
                   &f->err);
    heft_assert_ok(heft_test_open(&out, heft_test_sink_bytes(&f->sink), NULL, &f->err), &f->err);
    return out;
}

static void replaces_tokens_in_the_metadata_by_a_vocabulary(void **state)
{
    fixture f, g;
    (void)state;
    heft_vocab *v = vocabulary("[UNK]\n[PAD]\na\n"), *other = vocabulary("x\ny\n");
    begin(&f);
    heft_assert_ok(heft_writer_set_vocab(f.w, v, &f.err), &f.err);
    put(&f, text_value("last", "z"));
    heft_file *first = finish(&f), *same = rewrite(&g, first, v);
    heft_assert_same_bytes(heft_test_sink_bytes(&f.sink), heft_test_sink_bytes(&g.sink));
    assert_string_equal(g.losses.text, "");
    end(&g, same);
    heft_vocab_set_special(other, HEFT_MASK, 1);
    heft_file *second = rewrite(&g, first, other);
    assert_non_null(strstr(g.losses.text, "tokens are replaced"));
    heft_value value;
    assert_true(heft_meta_find(&value, second, HEFT_STR("tokenizer.ggml.tokens")));
    assert_int_equal(value.as.container.count, 2);
    assert_true(heft_meta_find(&value, second, HEFT_STR("tokenizer.ggml.mask_token_id")));
    assert_int_equal(value.as.u, 1);
    assert_false(heft_meta_find(&value, second, HEFT_STR("tokenizer.ggml.padding_token_id")));
    end(&g, second);
    end(&f, first);
    heft_vocab_close(v);
    heft_vocab_close(other);
}

/* GGUF cannot state that there is no padding token; readers find "[PAD]" by name. */
static void reports_special_tokens_that_readers_find_by_name(void **state)
{
    fixture f, g;
    (void)state;
    heft_vocab *v = vocabulary("a\nb\n"), *other = vocabulary("[PAD]\nb\n");
    begin(&f);
    heft_assert_ok(heft_writer_set_vocab(f.w, v, &f.err), &f.err);
    heft_file *first = finish(&f), *second = rewrite(&g, first, other);
    assert_null(strstr(g.losses.text, "gguf/special"));
    end(&g, second);
    heft_vocab_set_special(other, HEFT_PAD, HEFT_NONE);
    second = rewrite(&g, first, other);
    assert_non_null(strstr(g.losses.text, "ids of special tokens are left out"));
    end(&g, second);
    end(&f, first);
    heft_vocab_close(v);
    heft_vocab_close(other);
}

/* Opaque tensors have the number of a type that Heft does not know, 64 to 4095 for example. */
static void opaque_tensors_need_the_number_of_a_type(void **state)
{
    static const struct {
        const char *type;
        heft_status expected;
    } rows[] = {
        { "ggml:1000", HEFT_OK },         { "ggml:", HEFT_E_LOSSY },
        { "ggml:99x", HEFT_E_LOSSY },     { "ggml:/9", HEFT_E_LOSSY },
        { "ggml:4294967", HEFT_E_LOSSY }, { "ggml:4294967396", HEFT_E_LOSSY },
        { "gg:1000", HEFT_E_LOSSY },      { "ggml:1", HEFT_E_LOSSY },
    };
    static const uint64_t dims[] = { 32 };
    static const heft_component data = { { "data", 4 }, HEFT_UNTYPED, 32, NULL };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        heft_tensor_spec spec = HEFT_TENSOR_SPEC_INIT;
        uint32_t part;
        fixture f;
        begin(&f);
        spec.name = HEFT_STR("w");
        spec.layout = HEFT_STR("ggml.opaque");
        spec.stored_type = heft_test_str(rows[i].type);
        spec.rank = 1;
        spec.dims = dims;
        spec.components = &data;
        spec.component_count = 1;
        heft_assert_ok(heft_writer_add_tensor(&part, f.w, &spec, &f.err), &f.err);
        heft_assert_status(heft_writer_begin(f.w, &f.err), rows[i].expected, &f.err);
        heft_writer_discard(f.w);
        heft_test_sink_free(&f.sink);
    }
}

/* ---- files damaged by a conversion of text -------------------------------------------------- */

static void assert_refused(heft_bytes b, bool is_text_conversion)
{
    heft_error err;
    heft_file *f;
    heft_assert_status(heft_test_open(&f, b, NULL, &err), HEFT_E_FORMAT, &err);
    assert_int_equal(strstr(err.message, "text conversion") != NULL, is_text_conversion);
}

static void finds_a_text_conversion_in_binary_fields_only(void **state)
{
    fixture f;
    heft_value texts[] = { text_value("", "\xEF\xBF\xBD"), text_value("", "abcdefgh") };
    (void)state;
    begin(&f);
    put_list(&f, "texts", texts, HEFT_COUNT(texts));
    put(&f, uint_value("number", 1, HEFT_U32));
    put(&f, uint_value("next", 1, HEFT_U32));
    heft_file *written = finish(&f);
    heft_bytes whole = heft_test_sink_bytes(&f.sink);
    const uint8_t *last_text = memmem(whole.p, whole.len, "abcdefgh", 8);
    const uint8_t *number = memmem(whole.p, whole.len, "number", 6);
    assert_non_null(last_text);
    assert_non_null(number);
    assert_refused((heft_bytes){ whole.p, (size_t)(last_text + 4 - whole.p) }, false);
    uint8_t broken[512];
    size_t at = (size_t)(number + 6 + 4 - whole.p);
    assert_true(whole.len + 2 <= sizeof broken);
    memcpy(broken, whole.p, at);
    memcpy(broken + at, "\xEF\xBF\xBD", 3);
    memcpy(broken + at + 3, whole.p + at + 1, whole.len - at - 1);
    assert_refused((heft_bytes){ broken, whole.len + 2 }, true);
    end(&f, written);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stores_numbers_in_their_type_or_a_wider_type),
        cmocka_unit_test(stores_lists_as_arrays_of_one_type),
        cmocka_unit_test(drops_and_reports_metadata_without_a_gguf_type),
        cmocka_unit_test(refuses_tensors_that_ggml_does_not_support),
        cmocka_unit_test(replaces_tokens_in_the_metadata_by_a_vocabulary),
        cmocka_unit_test(reports_special_tokens_that_readers_find_by_name),
        cmocka_unit_test(opaque_tensors_need_the_number_of_a_type),
        cmocka_unit_test(finds_a_text_conversion_in_binary_fields_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
