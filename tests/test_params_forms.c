/* test_params_forms.c - limits of the parameter store: ids, derived forms, tensors that are not
 * parameters, bytes that are mapped. */
#include "models.h"

#include <heft/params.h>

/* ---- ids ---- */

static void parses_exactly_the_digits_of_an_id(void **state)
{
    static const struct {
        char digit;
        int value; /* -1: not a digit */
    } rows[] = {
        { '/', -1 }, { '0', 0 },  { '9', 9 },  { ':', -1 }, { '@', -1 }, { 'A', 10 },
        { 'V', 31 }, { 'W', -1 }, { '`', -1 }, { 'a', 10 }, { 'v', 31 }, { 'w', -1 },
    };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        char text[] = "0000000000000";
        uint64_t id = 1;
        text[0] = rows[i].digit; /* the first five bits of the first byte */
        assert_int_equal(heft_param_id_parse(&id, heft_test_str(text)), rows[i].value >= 0);
        if (rows[i].value >= 0)
            assert_int_equal(id, (uint64_t)rows[i].value << 3);
    }
}

static void refuses_texts_that_are_not_ids(void **state)
{
    static const char *const rows[] = { "", "000000000000", "00000000000000", "0000000000001" };
    uint64_t id;
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++)
        assert_false(heft_param_id_parse(&id, heft_test_str(rows[i])));
    assert_true(heft_param_id_parse(&id, HEFT_STR("0000000000002")));
}

/* ---- shapes of derived forms ---- */

static const uint64_t huge = UINT64_MAX;

static void numbers_as_f32_need_numbers_and_64_bits(void **state)
{
    static const struct {
        heft_dtype dtype;
        uint64_t dims[2];
        heft_status st;
        uint64_t bytes;
    } rows[] = {
        { HEFT_F16, { 3, 5 }, HEFT_OK, 60 },
        { HEFT_U8, { huge / 4, 1 }, HEFT_OK, huge / 4 * 4 },
        { HEFT_U8, { huge / 4 + 1, 1 }, HEFT_E_LIMIT, 0 },
        { HEFT_UNTYPED, { 3, 5 }, HEFT_E_UNSUPPORTED, 0 },
        { HEFT_C64, { 3, 5 }, HEFT_E_UNSUPPORTED, 0 },
        { HEFT_IQ1_S, { 1, 256 }, HEFT_OK, 1024 },
    };
    heft_derivation d = heft_derivation_f32();
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        heft_error err;
        heft_param src = { .dims = rows[i].dims, .rank = 2, .dtype = rows[i].dtype }, out = src;
        heft_assert_status(d.shape(&out, &src, d.ctx, &err), rows[i].st, &err);
        if (rows[i].st)
            continue;
        assert_int_equal(out.bytes, rows[i].bytes);
        assert_int_equal(out.dtype, HEFT_F32);
    }
    heft_error err;
    uint64_t one = 1;
    uint8_t block[64] = { 0 }, made[1024];
    heft_param src = { block, 50, &one, 1, HEFT_UNTYPED }, out = { NULL, 4, &one, 1, HEFT_F32 };
    heft_assert_fails(d.make(made, &out, &src, d.ctx, &err), HEFT_E_UNSUPPORTED, &err, "cast");
}

static void tiles_need_a_plain_matrix_and_64_bits(void **state)
{
    static const struct {
        heft_tiling tile;
        uint64_t dims[3];
        uint32_t rank;
        heft_dtype dtype;
        heft_status st;
        uint64_t bytes;
    } rows[] = {
        { { 2, 4 }, { 5, 8 }, 2, HEFT_U16, HEFT_OK, 6 * 8 * 2 },
        { { 2, 4 }, { 0, 8 }, 2, HEFT_U16, HEFT_OK, 0 },
        { { 2, 4 }, { 8 }, 1, HEFT_U16, HEFT_E_UNSUPPORTED, 0 },
        { { 2, 4 }, { 5, 8, 1 }, 3, HEFT_U16, HEFT_E_UNSUPPORTED, 0 },
        { { 0, 4 }, { 5, 8 }, 2, HEFT_U16, HEFT_E_UNSUPPORTED, 0 },
        { { 2, 0 }, { 5, 8 }, 2, HEFT_U16, HEFT_E_UNSUPPORTED, 0 },
        { { 2, 4 }, { 5, 32 }, 2, HEFT_Q4_0, HEFT_E_UNSUPPORTED, 0 },
        /* each product exceeds 64 bits */
        { { 1, 1 }, { (uint64_t)1 << 32, huge >> 32 }, 2, HEFT_U8, HEFT_OK, huge >> 32 << 32 },
        { { 1, 1 }, { (uint64_t)1 << 32, (uint64_t)1 << 32 }, 2, HEFT_U8, HEFT_E_LIMIT, 0 },
        { { 2, 1 }, { huge, 1 }, 2, HEFT_U8, HEFT_E_LIMIT, 0 },
        { { 1, 2 }, { 1, huge }, 2, HEFT_U8, HEFT_E_LIMIT, 0 },
        { { 1, 1 }, { huge / 4, 1 }, 2, HEFT_F32, HEFT_OK, huge / 4 * 4 },
        { { 1, 1 }, { huge / 4 + 1, 1 }, 2, HEFT_F32, HEFT_E_LIMIT, 0 },
    };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        heft_error err;
        heft_derivation d = heft_derivation_tiles(&rows[i].tile);
        heft_param src = { .dims = rows[i].dims, .rank = rows[i].rank, .dtype = rows[i].dtype };
        heft_param out = src;
        heft_assert_status(d.shape(&out, &src, d.ctx, &err), rows[i].st, &err);
        if (!rows[i].st)
            assert_int_equal(out.bytes, rows[i].bytes);
    }
}

/* A whole number of tiles, and tiles that are filled with zeros at two edges. */
static void tiles_are_column_major_and_padded(void **state)
{
    static const struct {
        uint64_t dims[2];
        size_t bytes;
        uint8_t matrix[9], tiles[16];
    } rows[] = {
        { { 2, 4 }, 8, { 1, 2, 3, 4, 5, 6, 7, 8 }, { 1, 5, 2, 6, 3, 7, 4, 8 } },
        { { 3, 3 },
          16,
          { 1, 2, 3, 4, 5, 6, 7, 8, 9 },
          { 1, 4, 2, 5, 3, 6, 0, 0, 7, 0, 8, 0, 9, 0, 0, 0 } },
    };
    const heft_tiling tile = { 2, 2 };
    heft_derivation d = heft_derivation_tiles(&tile);
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        heft_param src = { rows[i].matrix, 0, rows[i].dims, 2, HEFT_U8 }, out = src;
        heft_error err;
        heft_assert_ok(d.shape(&out, &src, d.ctx, &err), &err);
        assert_int_equal(out.bytes, rows[i].bytes);
        heft_bytes made = heft_test_copy(rows[i].tiles, rows[i].bytes); /* without slack */
        memset(made.p, 0xEE, made.len);
        heft_assert_ok(d.make(made.p, &out, &src, d.ctx, &err), &err);
        assert_memory_equal(made.p, rows[i].tiles, rows[i].bytes);
        heft_test_free(&made);
    }
}

/* ---- a store ---- */

typedef struct store {
    heft_bytes bytes;
    heft_params *p;
    heft_file *file; /* borrowed */
    heft_id128 model;
} store;

static store open_store(heft_bytes take)
{
    store s = { .bytes = take };
    heft_error err;
    heft_assert_ok(heft_test_open(&s.file, take, NULL, &err), &err);
    heft_assert_ok(heft_params_open(&s.p, NULL, &err), &err);
    heft_assert_ok(heft_params_add(&s.model, s.p, s.file, &err), &err);
    return s;
}

static void close_store(store *s)
{
    heft_params_close(s->p);
    heft_test_free(&s->bytes);
}

static store open_matrix(void)
{
    static const test_tensor t = { "w", HEFT_F32, 2, { 3, 4 } };
    return open_store(heft_test_model("safetensors", &t, 1));
}

/* ---- new shapes ---- */

typedef struct made_shape {
    const uint64_t *dims; /* NULL: dimensions of the parameter */
    uint32_t rank;
    heft_status st;
} made_shape;

static heft_status make_shape(heft_param *out, const heft_param *src, const void *ctx,
                              heft_error *err)
{
    const made_shape *m = ctx;
    (void)src;
    out->bytes = 16;
    out->rank = m->rank;
    if (m->dims)
        out->dims = m->dims;
    if (m->st)
        *err = (heft_error){ .status = m->st, .message = "not this form" };
    return m->st;
}

static heft_status make_zeros(void *dst, const heft_param *out, const heft_param *src,
                              const void *ctx, heft_error *err)
{
    (void)src, (void)ctx, (void)err;
    memset(dst, 0, (size_t)out->bytes);
    return HEFT_OK;
}

static void forms_have_at_most_8_dimensions(void **state)
{
    uint64_t dims[9] = { 16, 1, 1, 1, 1, 1, 1, 1, 1 };
    const struct {
        made_shape shape;
        heft_status st;
        const char *words;
    } rows[] = {
        { { dims, 8, HEFT_OK }, HEFT_OK, "" },
        { { dims, 9, HEFT_OK }, HEFT_E_ARGUMENT, "more than 8 dimensions" },
        { { dims, 1, HEFT_E_UNSUPPORTED }, HEFT_E_UNSUPPORTED, "not this form" },
        { { dims, 9, HEFT_E_UNSUPPORTED }, HEFT_E_UNSUPPORTED, "not this form" },
        { { NULL, 2, HEFT_OK }, HEFT_OK, "" },
    };
    (void)state;
    store s = open_matrix();
    heft_id128 key = heft_params_key_at(s.p, 0);
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        heft_derivation d = { 100 + i, make_shape, make_zeros, &rows[i].shape };
        heft_error err;
        heft_param w = { .rank = 0 };
        heft_assert_status(heft_params_resolve(&w, s.p, key, &d, &err), rows[i].st, &err);
        assert_true(!rows[i].st || strstr(err.message, rows[i].words));
        if (rows[i].st)
            continue;
        assert_int_equal(w.rank, rows[i].shape.rank);
        assert_int_equal(w.dims[0], rows[i].shape.dims ? 16 : 3);
        assert_ptr_not_equal(w.dims, dims);
        heft_params_release_form(s.p, key, d.kind);
    }
    close_store(&s);
}

static void shapes_of_many_dimensions_may_be_kept(void **state)
{
    static const char text[] = "{\"w\":{\"dtype\":\"U8\",\"shape\":[1,1,1,1,1,1,1,1,2],"
                               "\"data_offsets\":[0,2]}}  ";
    uint8_t file[8 + sizeof text + 1] = { sizeof text - 1 };
    const made_shape kept = { NULL, 9, HEFT_OK };
    const heft_derivation d = { 100, make_shape, make_zeros, &kept };
    heft_error err;
    heft_param w;
    (void)state;
    memcpy(file + 8, text, sizeof text - 1);
    store s = open_store(heft_test_copy(file, sizeof file));
    heft_id128 key = heft_params_key_at(s.p, 0);
    heft_assert_ok(heft_params_resolve(&w, s.p, key, &d, &err), &err);
    assert_int_equal(w.rank, 9);
    assert_int_equal(w.dims[8], 2);
    heft_params_release_form(s.p, key, d.kind);
    close_store(&s);
}

static void keeps_forms_of_several_kinds_apart(void **state)
{
    const heft_tiling tile = { 2, 2 };
    const heft_derivation kinds[] = { heft_derivation_f32(), heft_derivation_tiles(&tile) };
    static const uint64_t bytes[] = { 48, 64 };
    heft_error err;
    heft_param w;
    (void)state;
    store s = open_matrix();
    heft_id128 key = heft_params_key_at(s.p, 0);
    for (int round = 0; round < 2; round++)
        for (size_t i = 0; i < HEFT_COUNT(kinds); i++) {
            heft_assert_ok(heft_params_resolve(&w, s.p, key, &kinds[i], &err), &err);
            assert_int_equal(w.bytes, bytes[i]);
            heft_params_release_form(s.p, key, kinds[i].kind);
        }
    assert_int_equal(heft_params_statistics(s.p).loads, 3); /* the parameter and two forms */
    close_store(&s);
}

/* ---- unknown keys, wrong options ---- */

static void unknown_keys_and_names_are_not_found(void **state)
{
    const heft_derivation d = heft_derivation_f32();
    heft_id128 unknown = heft_id128_from(5, 5), key;
    heft_error err;
    heft_param w;
    (void)state;
    store s = open_matrix();
    heft_assert_status(heft_params_resolve(&w, s.p, unknown, &d, &err), HEFT_E_NOTFOUND, &err);
    assert_string_equal(err.rule, "heft/no-parameter");
    heft_params_release_form(s.p, unknown, d.kind);
    heft_params_release_form(s.p, heft_params_key_at(s.p, 0), d.kind);
    assert_false(heft_params_find(&key, s.p, s.model, HEFT_STR("\xc3\xa9")));
    assert_null(heft_params_name(s.p, unknown).ptr);
    key = heft_params_key_at(s.p, 1);
    assert_memory_equal(&key, &(heft_id128){ { 0 } }, sizeof key);
    close_store(&s);
    heft_params_close(NULL);
}

static void refuses_wrong_options(void **state)
{
    heft_host host = *heft_host_default();
    heft_params_options opt = HEFT_PARAMS_OPTIONS_INIT;
    heft_params *p;
    heft_error err;
    (void)state;
    opt.size = 1;
    heft_assert_status(heft_params_open(&p, &opt, &err), HEFT_E_ARGUMENT, &err);
    assert_null(p);
    opt = (heft_params_options)HEFT_PARAMS_OPTIONS_INIT;
    opt.host = &host;
    opt.reserved[0] = 1;
    heft_assert_status(heft_params_open(&p, &opt, &err), HEFT_E_ARGUMENT, &err);
    assert_null(p);
    opt.reserved[0] = 0;
    host.size = 1;
    opt.host = &host;
    heft_assert_status(heft_params_open(&p, &opt, &err), HEFT_E_ARGUMENT, &err);
    assert_null(p);
}

/* ---- the tensors that are parameters ---- */

/* Write a tensor of two u8 elements; parts: number of parts "data0", "data1", ..., 0: dense. */
static heft_bytes one_tensor(const char *format, const char *name, heft_str layout,
                             heft_dtype dtype, uint32_t parts, const heft_value *attribute)
{
    static const char *const roles[] = { "data0", "data1" };
    static const uint64_t dims[] = { 2 };
    heft_test_sink sink;
    heft_writer *w;
    heft_error err;
    heft_component components[2];
    heft_tensor_spec spec = HEFT_TENSOR_SPEC_INIT;
    heft_write_options opt = HEFT_WRITE_OPTIONS_INIT;
    uint32_t first;
    opt.version = attribute ? "1.2" : NULL;
    for (uint32_t i = 0; i < parts; i++)
        components[i] = (heft_component){ heft_test_str(roles[i]), dtype, 2, NULL };
    spec.name = heft_test_str(name);
    spec.dtype = dtype;
    spec.rank = 1;
    spec.dims = dims;
    spec.layout = layout;
    spec.components = parts ? components : NULL;
    spec.component_count = parts;
    spec.attributes = attribute;
    spec.attribute_count = !!attribute;
    heft_assert_ok(heft_writer_open(&w, heft_format_find(heft_str_from(format)),
                                    heft_test_sink_init(&sink, false), &opt, &err),
                   &err);
    heft_assert_ok(heft_writer_add_tensor(&first, w, &spec, &err), &err);
    heft_assert_ok(heft_writer_begin(w, &err), &err);
    for (uint32_t i = 0; i < parts || !i; i++)
        heft_assert_ok(heft_writer_write(w, first + i, "ab", 2, &err), &err);
    heft_assert_ok(heft_writer_finish(w, &err), &err);
    heft_bytes b = heft_test_copy(sink.p, sink.len);
    heft_test_sink_free(&sink);
    return b;
}

static void parameters_are_dense_and_have_ascii_names(void **state)
{
    static const struct {
        const char *name, *layout;
        heft_dtype dtype;
        uint32_t parts, count;
    } rows[] = {
        { "w", "", HEFT_U8, 0, 1 },
        { "\xc3\xa9", "", HEFT_U8, 0, 0 },
        { "w", "my.layout", HEFT_U8, 1, 0 },
        { "w", "my.layout", HEFT_U8, 2, 0 },
        { "w", "my.layout", HEFT_UNTYPED, 1, 0 },
    };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        store s = open_store(one_tensor("ztensor", rows[i].name, heft_test_str(rows[i].layout),
                                        rows[i].dtype, rows[i].parts, NULL));
        assert_int_equal(heft_params_count(s.p), rows[i].count);
        close_store(&s);
    }
}

/* Replace each occurrence of a text in the file by a text of the same length. */
static void replace_text(heft_bytes b, const char *from, const char *to)
{
    size_t len = strlen(from);
    for (size_t i = 0; i + len <= b.len; i++)
        if (!memcmp(b.p + i, from, len))
            memcpy(b.p + i, to, len);
}

/* An attribute is an id only if the name and the kind of the value are right. */
static void ids_of_another_kind_are_not_ids(void **state)
{
    static const struct {
        const char *written, *name; /* the writer drops attributes with the name of an id */
        heft_value value;
    } rows[] = {
        { "gptrs.base_xx",
          "gptrs.base_id",
          { .kind = HEFT_KIND_STR, .as.s = HEFT_STR("sixteen letters!") } },
        { "burn.param_xx", "burn.param_id", { .kind = HEFT_KIND_STR, .as.s = HEFT_STR("7") } },
        { "burn.param_xx", "burn.param_xx", { .kind = HEFT_KIND_UINT, .as.u = 1 } },
    };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        heft_value v = rows[i].value;
        v.key = heft_test_str(rows[i].written);
        heft_id128 key;
        heft_bytes b = one_tensor("ztensor", "w", HEFT_STR(""), HEFT_U8, 0, &v);
        replace_text(b, rows[i].written, rows[i].name);
        store s = open_store(b);
        v = heft_attribute_at(s.file, 0, 0);
        assert_memory_equal(v.key.ptr, rows[i].name, v.key.len);
        assert_int_equal(heft_params_count(s.p), 1);
        assert_false(heft_params_find_burn(&key, s.p, s.model, 1)); /* the length of "7" */
        close_store(&s);
    }
}

/* ---- bytes that are mapped ---- */

/* Parts of at least 256 KiB of a mapped file are used in place. */
static void maps_large_parts_and_copies_small_parts(void **state)
{
    enum { SMALLEST = 256 << 10 };
    static const test_tensor tensors[] = { { "a", HEFT_U8, 1, { SMALLEST } },
                                           { "b", HEFT_U8, 1, { SMALLEST - 1 } },
                                           { "c", HEFT_U8, 1, { SMALLEST } } };
    const char *path = heft_test_path(*state, "m.safetensors");
    heft_bytes b = heft_test_model("safetensors", tensors, HEFT_COUNT(tensors));
    heft_error err;
    heft_id128 model;
    heft_params *p;
    heft_file *f;
    heft_test_save(path, b.p, b.len);
    heft_test_free(&b);
    heft_assert_ok(heft_file_open(&f, path, NULL, &err), &err);
    heft_assert_ok(heft_params_open(&p, NULL, &err), &err);
    heft_assert_ok(heft_params_add(&model, p, f, &err), &err);
    for (uint32_t i = 0; i < HEFT_COUNT(tensors); i++) {
        heft_param w;
        heft_id128 key = heft_params_key_at(p, i);
        heft_assert_ok(heft_params_acquire(&w, p, key, &err), &err);
        const void *view = heft_part_view(f, heft_tensor_at(f, i).first_part);
        assert_int_equal(w.data == view, tensors[i].dims[0] >= SMALLEST);
        heft_params_release(p, key);
    }
    heft_params_close(p);
}

/* In memory, elements that are not aligned are copied; blocks of several elements need no
 * alignment. */
static void copies_elements_that_are_not_aligned(void **state)
{
    static const struct {
        test_tensor tensor;
        unsigned shift; /* bytes from the alignment */
        bool is_copied;
    } rows[] = {
        { { "w", HEFT_F32, 1, { 8 } }, 0, false },
        { { "w", HEFT_F32, 1, { 8 } }, 1, true },
        { { "w", HEFT_F32, 1, { 8 } }, 4, false },
        { { "w", HEFT_Q4_0, 1, { 32 } }, 1, false },
    };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        heft_bytes b = heft_test_model("gguf", &rows[i].tensor, 1);
        uint8_t *memory = aligned_alloc(64, (b.len + 128) & ~(size_t)63);
        memcpy(memory + rows[i].shift, b.p, b.len);
        heft_bytes shifted = { memory + rows[i].shift, b.len };
        heft_error err;
        heft_param w;
        store s = open_store(shifted);
        heft_id128 key = heft_params_key_at(s.p, 0);
        heft_assert_ok(heft_params_acquire(&w, s.p, key, &err), &err);
        bool is_inside = (const uint8_t *)w.data >= memory &&
                         (const uint8_t *)w.data < memory + b.len + 64;
        assert_int_equal(!is_inside, rows[i].is_copied);
        assert_int_equal(heft_params_statistics(s.p).resident, is_inside ? 0 : w.bytes);
        heft_params_release(s.p, key);
        heft_params_close(s.p);
        free(memory);
        heft_test_free(&b);
    }
}

/* A wrong digest matters only if the caller asks for the comparison. */
static void digests_are_compared_on_request(void **state)
{
    static const test_tensor t = { "w", HEFT_U8, 1, { 1000 } };
    heft_write_options write = HEFT_WRITE_OPTIONS_INIT;
    heft_convert_options convert = HEFT_CONVERT_OPTIONS_INIT;
    (void)state;
    write.storage.digest = "sha256";
    convert.write = &write;
    for (int checks = 0; checks < 2; checks++) {
        heft_params_options opt = HEFT_PARAMS_OPTIONS_INIT;
        heft_bytes b = heft_test_converted("safetensors", &t, 1, "ztensor", &convert);
        heft_error err;
        heft_file *f;
        heft_params *p;
        heft_id128 model;
        heft_param w;
        heft_assert_ok(heft_test_open(&f, b, NULL, &err), &err);
        b.p[heft_part_at(f, heft_tensor_at(f, 0).first_part).offset] ^= 1;
        opt.check_parts = checks;
        heft_assert_ok(heft_params_open(&p, &opt, &err), &err);
        heft_assert_ok(heft_params_add(&model, p, f, &err), &err);
        heft_id128 key = heft_params_key_at(p, 0);
        heft_status st = heft_params_acquire(&w, p, key, &err);
        heft_assert_status(st, checks ? HEFT_E_CHECKSUM : HEFT_OK, &err);
        if (!st)
            heft_params_release(p, key);
        heft_params_close(p);
        heft_test_free(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parses_exactly_the_digits_of_an_id),
        cmocka_unit_test(refuses_texts_that_are_not_ids),
        cmocka_unit_test(numbers_as_f32_need_numbers_and_64_bits),
        cmocka_unit_test(tiles_need_a_plain_matrix_and_64_bits),
        cmocka_unit_test(tiles_are_column_major_and_padded),
        cmocka_unit_test(forms_have_at_most_8_dimensions),
        cmocka_unit_test(shapes_of_many_dimensions_may_be_kept),
        cmocka_unit_test(keeps_forms_of_several_kinds_apart),
        cmocka_unit_test(unknown_keys_and_names_are_not_found),
        cmocka_unit_test(refuses_wrong_options),
        cmocka_unit_test(parameters_are_dense_and_have_ascii_names),
        cmocka_unit_test(ids_of_another_kind_are_not_ids),
        cmocka_unit_test_setup_teardown(maps_large_parts_and_copies_small_parts, heft_test_dir_make,
                                        heft_test_dir_remove),
        cmocka_unit_test(copies_elements_that_are_not_aligned),
        cmocka_unit_test(digests_are_compared_on_request),
    };
    return cmocka_run_group_tests_name("params_forms", tests, NULL, NULL);
}
