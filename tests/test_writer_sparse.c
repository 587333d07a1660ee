/* test_writer_sparse.c - sparse tensors written in chunks, and checks of sparse indices. */
#include "models.h"

typedef struct fixture {
    heft_test_memory m;
    heft_test_sink sink;
    heft_write_options opt;
    heft_error err;
    heft_writer *w;
    uint32_t part[3];
} fixture;

static void begin(fixture *f, const char *version)
{
    memset(f, 0, sizeof *f);
    heft_test_memory_init(&f->m, 0);
    f->opt = (heft_write_options)HEFT_WRITE_OPTIONS_INIT;
    f->opt.host = &f->m.host;
    f->opt.version = version;
    heft_assert_ok(heft_writer_open(&f->w, heft_format_find(HEFT_STR("ztensor")),
                                    heft_test_sink_init(&f->sink, false), &f->opt, &f->err),
                   &f->err);
}

static void end(fixture *f)
{
    heft_test_sink_free(&f->sink);
    heft_assert_all_freed(&f->m);
}

/* ---- models --------------------------------------------------------------------------------- */

enum { MAX_NUMBERS = 8 };

typedef struct sparse { /* components in the order of writing */
    const char *layout;
    uint64_t dims[3];
    uint32_t rank;
    const char *roles[3];
    int64_t numbers[3][MAX_NUMBERS];
    uint32_t counts[3];
} sparse;

static const sparse csr = { "sparse_csr",
                            { 4, 10 },
                            2,
                            { "values", "indices", "indptr" },
                            { { 1, 2, 3, 4, 5 }, { 0, 9, 3, 4, 5 }, { 0, 2, 2, 5, 5 } },
                            { 5, 5, 5 } };
static const sparse csr_pointers_first = {
    "sparse_csr",
    { 4, 10 },
    2,
    { "indptr", "indices", "values" },
    { { 0, 2, 2, 5, 5 }, { 0, 9, 3, 4, 5 }, { 1, 2, 3, 4, 5 } },
    { 5, 5, 5 }
};
static const sparse coo = {
    "sparse_coo", { 4, 10 }, 2, { "coords", "values" }, { { 0, 3, 1, /* */ 9, 2, 0 }, { 1, 2, 3 } },
    { 6, 3 }
};

static const heft_dtype index_types[] = { HEFT_I8,  HEFT_U8,  HEFT_I16, HEFT_U16,
                                          HEFT_I32, HEFT_U32, HEFT_I64, HEFT_U64 };

static uint32_t component_count(const sparse *s)
{
    return s->roles[2] ? 3 : 2;
}

static bool is_values(const char *role)
{
    return !strcmp(role, "values");
}

static heft_status declare(fixture *f, const sparse *s, const char *name, heft_dtype index)
{
    heft_component c[3];
    heft_tensor_spec spec = HEFT_TENSOR_SPEC_INIT;
    spec.name = heft_test_str(name);
    spec.dtype = HEFT_F32;
    spec.dims = s->dims;
    spec.rank = s->rank;
    spec.layout = heft_test_str(s->layout);
    spec.components = c;
    spec.component_count = component_count(s);
    for (uint32_t i = 0; i < spec.component_count; i++)
        c[i] = (heft_component){ heft_test_str(s->roles[i]),
                                 is_values(s->roles[i]) ? (heft_dtype)HEFT_F32 : index,
                                 s->counts[i], NULL };
    uint32_t first;
    heft_status st = heft_writer_add_tensor(&first, f->w, &spec, &f->err);
    for (uint32_t i = 0; i < 3; i++)
        f->part[i] = first + i;
    return st;
}

static size_t encode(uint8_t *to, const sparse *s, uint32_t i, heft_dtype index)
{
    size_t size = heft_dtype_get(index)->block_bytes;
    if (is_values(s->roles[i]))
        size = sizeof(float);
    for (uint32_t k = 0; k < s->counts[i]; k++) {
        float value = (float)s->numbers[i][k];
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        heft_test_put(to + k * size, is_values(s->roles[i]) ? bits : (uint64_t)s->numbers[i][k],
                      size);
    }
    return s->counts[i] * size;
}

/* Write all components in chunks of the size. */
static heft_status write_components(fixture *f, const sparse *s, heft_dtype index, size_t chunk)
{
    heft_status st = HEFT_OK;
    for (uint32_t i = 0; i < component_count(s) && !st; i++) {
        uint8_t bytes[8 * MAX_NUMBERS];
        size_t len = encode(bytes, s, i, index);
        for (size_t at = 0; at < len && !st; at += chunk)
            st = heft_writer_write(f->w, f->part[i], bytes + at,
                                   len - at < chunk ? len - at : chunk, &f->err);
    }
    return st;
}

static void write_one(fixture *f, const sparse *s, const char *version, heft_dtype index,
                      size_t chunk)
{
    begin(f, version);
    heft_assert_ok(declare(f, s, "a", index), &f->err);
    heft_assert_ok(heft_writer_begin(f->w, &f->err), &f->err);
    heft_assert_ok(write_components(f, s, index, chunk), &f->err);
    heft_assert_ok(heft_writer_finish(f->w, &f->err), &f->err);
}

/* Check that each component has the numbers of s, with indices as u64 or u32. */
static void check_file(fixture *f, const sparse *s)
{
    heft_file *file;
    heft_verify_result result = { .notes = 0 };
    heft_assert_ok(heft_test_open(&file, heft_test_sink_bytes(&f->sink), NULL, &f->err), &f->err);
    heft_assert_ok(heft_file_verify(&result, file, NULL, &f->err), &f->err);
    assert_int_equal(result.faults + result.warnings, 0);
    heft_str layout = heft_tensor_layout_name(file, 0);
    assert_int_equal(layout.len, strlen(s->layout));
    assert_memory_equal(layout.ptr, s->layout, layout.len);
    for (uint32_t i = 0; i < component_count(s); i++) {
        uint32_t id = heft_part_find(file, 0, heft_str_from(s->roles[i]));
        heft_part part = heft_part_at(file, id);
        uint8_t bytes[8 * MAX_NUMBERS];
        double n[MAX_NUMBERS];
        assert_true(part.length <= sizeof bytes);
        heft_assert_ok(heft_part_read(bytes, file, id, 0, (size_t)part.length, &f->err), &f->err);
        heft_dtype t = part.dtype ? part.dtype : (heft_dtype)HEFT_U64;
        assert_int_equal(part.length, heft_dtype_get(t)->block_bytes * s->counts[i]);
        if (!is_values(s->roles[i]))
            assert_true(t == HEFT_U64 || t == HEFT_U32);
        assert_true(heft_dtype_to_f64(n, t, bytes, 0, s->counts[i]));
        for (uint32_t k = 0; k < s->counts[i]; k++)
            assert_true(n[k] == (double)s->numbers[i][k]);
    }
    heft_file_close(file);
}

/* ---- valid tensors -------------------------------------------------------------------------- */

static void writes_every_index_type_in_chunks_of_any_size(void **state)
{
    static const sparse *const models[] = { &csr, &csr_pointers_first, &coo };
    static const char *const versions[] = { "1.0", "1.1", "1.2", "2" };
    static const size_t chunks[] = { 1, 3, 7, 64 };
    (void)state;
    for (size_t m = 0; m < HEFT_COUNT(models); m++)
        for (size_t v = 0; v < HEFT_COUNT(versions); v++)
            for (size_t t = 0; t < HEFT_COUNT(index_types); t++)
                for (size_t p = 0; p < HEFT_COUNT(chunks); p++) {
                    fixture f;
                    write_one(&f, models[m], versions[v], index_types[t], chunks[p]);
                    check_file(&f, models[m]);
                    end(&f);
                }
}

static void writes_tensors_without_entries(void **state)
{
    static const sparse empty = { "sparse_csr",
                                  { 3, 0 },
                                  2,
                                  { "values", "indices", "indptr" },
                                  { { 0 }, { 0 }, { 0, 0, 0, 0 } },
                                  { 0, 0, 4 } };
    static const sparse none = { "sparse_coo",           { 3, 2, 1 }, 3,
                                 { "values", "coords" }, { { 0 } },   { 0 } };
    fixture f;
    (void)state;
    for (int i = 0; i < 2; i++) {
        write_one(&f, &empty, i ? "2" : "1.0", HEFT_U32, 5);
        check_file(&f, &empty);
        end(&f);
        write_one(&f, &none, i ? "2" : "1.0", HEFT_I16, 5);
        check_file(&f, &none);
        end(&f);
    }
}

static void checks_the_indices_of_compressed_parts(void **state)
{
    fixture f;
    sparse bad = csr;
    (void)state;
    bad.numbers[1][2] = 10;
    for (int i = 0; i < 2; i++) {
        const sparse *s = i ? &bad : &csr;
        begin(&f, "1.0");
        heft_writer_discard(f.w);
        heft_test_sink_free(&f.sink);
        f.opt.storage.encoding = HEFT_ZSTD;
        f.opt.storage.digest = "crc32c";
        heft_assert_ok(heft_writer_open(&f.w, heft_format_find(HEFT_STR("ztensor")),
                                        heft_test_sink_init(&f.sink, true), &f.opt, &f.err),
                       &f.err);
        heft_assert_ok(declare(&f, s, "a", HEFT_I32), &f.err);
        heft_assert_ok(heft_writer_begin(f.w, &f.err), &f.err);
        heft_status st = write_components(&f, s, HEFT_I32, 3);
        if (i) {
            heft_assert_fails(st, HEFT_E_ARGUMENT, &f.err, "element 2 is 10");
            heft_writer_discard(f.w);
            assert_true(f.sink.discarded);
        } else {
            heft_assert_ok(st, &f.err);
            heft_assert_ok(heft_writer_finish(f.w, &f.err), &f.err);
            check_file(&f, s);
        }
        end(&f);
    }
}

/* ---- invalid tensors ------------------------------------------------------------------------ */

typedef struct damage {
    const sparse *model;
    uint32_t component, element;
    int64_t number;
    const char *words;
    bool strict; /* wrong in zTensor 2 only */
} damage;

static const damage damages[] = {
    { &csr, 1, 1, 10, "component 'indices': element 1 is 10, but there are 10 columns", false },
    { &csr, 1, 4, -1, "component 'indices': element 4 is negative", false },
    { &csr, 2, 0, 1, "component 'indptr': element 0 is 1: the first row pointer must be 0", false },
    { &csr, 2, 2, 1, "component 'indptr': element 2 is 1, less than 2 before it", false },
    { &csr, 2, 3, 6, "component 'indptr': element 3 is 6, but there are 5 values", false },
    { &csr, 2, 4, 4, "component 'indptr': element 4 is 4, less than 5", false },
    { &csr, 2, 3, -3, "component 'indptr': element 3 is negative", false },
    { &csr, 1, 1, 0, "component 'indices': element 1 is not greater", true },
    { &csr, 1, 3, 2, "component 'indices': element 3 is not greater", true },
    { &csr, 1, 4, 4, "component 'indices': element 4 is not greater", true },
    { &csr_pointers_first, 1, 1, 0, "component 'indices': element 1 is not greater", true },
    { &csr_pointers_first, 1, 4, 4, "component 'indices': element 4 is not greater", true },
    { &csr_pointers_first, 0, 4, 4, "component 'indptr': element 4 is 4, less than 5", false },
    { &coo, 0, 1, 4, "component 'coords': element 1 is 4, but the dimension is 4", false },
    { &coo, 0, 3, 10, "component 'coords': element 3 is 10, but the dimension is 10", false },
    { &coo, 0, 5, -7, "component 'coords': element 5 is negative", false },
};

static void refuse_damage(const damage *d, const char *version, size_t chunk, const char *words)
{
    fixture f;
    sparse bad = *d->model;
    bad.numbers[d->component][d->element] = d->number;
    begin(&f, version);
    heft_assert_ok(declare(&f, &bad, "a name", HEFT_I32), &f.err);
    heft_assert_ok(heft_writer_begin(f.w, &f.err), &f.err);
    heft_assert_fails(write_components(&f, &bad, HEFT_I32, chunk), HEFT_E_ARGUMENT, &f.err, words);
    assert_non_null(strstr(f.err.message, "tensor 'a name'"));
    heft_assert_fails(heft_writer_write(f.w, f.part[0], "x", 1, &f.err), HEFT_E_ARGUMENT, &f.err,
                      words);
    heft_assert_fails(heft_writer_finish(f.w, &f.err), HEFT_E_ARGUMENT, &f.err, words);
    assert_true(f.sink.discarded);
    end(&f);
}

static void refuses_a_wrong_index(void **state)
{
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(damages); i++)
        for (size_t chunk = 1; chunk < 9; chunk += 3) {
            refuse_damage(&damages[i], "2", chunk, damages[i].words);
            if (!damages[i].strict)
                refuse_damage(&damages[i], "1.0", chunk, damages[i].words);
        }
}

static void older_versions_accept_unsorted_indices(void **state)
{
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(damages); i++) {
        fixture f;
        sparse odd = *damages[i].model;
        if (!damages[i].strict)
            continue;
        odd.numbers[damages[i].component][damages[i].element] = damages[i].number;
        write_one(&f, &odd, "1.2", HEFT_U64, 8);
        end(&f);
    }
}

static void refuses_a_last_row_pointer_other_than_the_count(void **state)
{
    const damage d = {
        &csr, 2, 4, 5, "element 4 is 4: the last row pointer must be the number of values, 5", false
    };
    sparse bad = csr;
    (void)state;
    bad.numbers[2][3] = 4;
    bad.numbers[2][4] = 4;
    damage late = d;
    late.model = &bad;
    late.number = 4;
    refuse_damage(&late, "1.0", 4, d.words);
    refuse_damage(&late, "2", 4, d.words);
}

/* Column indices may descend only where a row begins; here as many descend as there are rows. */
static void refuses_descending_columns_within_a_row(void **state)
{
    const sparse two_rows = { "sparse_csr",
                              { 2, 10 },
                              2,
                              { "indices", "values", "indptr" },
                              { { 5, 4, 3, 2 }, { 1, 2, 3, 4 }, { 0, 2, 4 } },
                              { 4, 4, 3 } };
    const damage d = { &two_rows, 0, 0, 5, "", true };
    (void)state;
    refuse_damage(&d, "2", 4, "element 2 is not greater");
}

static void version_2_refuses_duplicate_entries(void **state)
{
    const sparse twice = { "sparse_coo",
                           { 4, 10 },
                           2,
                           { "coords", "values" },
                           { { 3, 1, 3, /* */ 9, 9, 9 }, { 1, 2, 3 } },
                           { 6, 3 } };
    const damage d = { &twice, 0, 0, 3, "", true };
    fixture f;
    (void)state;
    refuse_damage(&d, "2", 4, "element 2 repeats, with the other dimensions");
    write_one(&f, &twice, "1.0", HEFT_U64, 8);
    end(&f);
}

static void refuses_inconsistent_declarations(void **state)
{
    static const struct {
        sparse s;
        heft_dtype index;
        const char *words;
    } rows[] = {
        { { "sparse_csr",
            { 4, 10, 1 },
            3,
            { "values", "indices", "indptr" },
            { { 0 } },
            { 5, 5, 5 } },
          HEFT_U64,
          "two dimensions, not 3" },
        { { "sparse_csr", { 4, 10 }, 2, { "values", "indices", "indptr" }, { { 0 } }, { 5, 4, 5 } },
          HEFT_U64,
          "component 'indices': 4 elements are declared, 5 are needed" },
        { { "sparse_csr", { 4, 10 }, 2, { "values", "indices", "indptr" }, { { 0 } }, { 5, 5, 4 } },
          HEFT_U64,
          "component 'indptr': 4 elements are declared, 5 are needed" },
        { { "sparse_csr",
            { UINT64_MAX, 1 },
            2,
            { "values", "indices", "indptr" },
            { { 0 } },
            { 0, 0, 0 } },
          HEFT_U64,
          "overflow 64 bits" },
        { { "sparse_csr", { 4, 10 }, 2, { "values", "indices", NULL }, { { 0 } }, { 5, 5 } },
          HEFT_U64,
          "exactly the components values, indices and indptr" },
        { { "sparse_csr", { 4, 10 }, 2, { "data", "indices", "indptr" }, { { 0 } }, { 5, 5, 5 } },
          HEFT_U64,
          "needs the component values" },
        { { "sparse_csr", { 4, 10 }, 2, { "values", "indices", "indptr" }, { { 0 } }, { 5, 5, 5 } },
          HEFT_F32,
          "component 'indices': indices must be integers, not f32" },
        { { "sparse_csr", { 4, 10 }, 2, { "values", "indices", "indptr" }, { { 0 } }, { 5, 5, 5 } },
          HEFT_UNTYPED,
          "component 'indices': indices must be integers, not" },
        { { "sparse_coo", { 4, 10 }, 2, { "values", "coords", "x" }, { { 0 } }, { 5, 10, 5 } },
          HEFT_U64,
          "sparse_coo needs exactly the components values and coords" },
        { { "sparse_coo", { 4, 10 }, 2, { "values", "coords" }, { { 0 } }, { 5, 5 } },
          HEFT_U64,
          "component 'coords': 5 elements are declared, 10 are needed" },
        { { "sparse_coo", { 0 }, 0, { "values", "coords" }, { { 0 } }, { 1, 0 } },
          HEFT_U64,
          "a scalar cannot be sparse" },
    };
    fixture f;
    heft_component c[] = { { { "values", 6 }, HEFT_F64, 1, NULL },
                           { { "coords", 6 }, HEFT_U64, 2, NULL } };
    heft_tensor_spec spec = HEFT_TENSOR_SPEC_INIT;
    uint32_t part;
    (void)state;
    begin(&f, NULL);
    for (size_t i = 0; i < HEFT_COUNT(rows); i++)
        heft_assert_fails(declare(&f, &rows[i].s, "a", rows[i].index), HEFT_E_ARGUMENT, &f.err,
                          rows[i].words);
    spec.name = heft_test_str("a");
    spec.dtype = HEFT_F32;
    spec.dims = coo.dims;
    spec.rank = 2;
    spec.layout = heft_test_str("sparse_coo");
    spec.components = c;
    spec.component_count = 2;
    heft_assert_fails(heft_writer_add_tensor(&part, f.w, &spec, &f.err), HEFT_E_ARGUMENT, &f.err,
                      "must have the element type");
    c[0].dtype = HEFT_F32;
    c[0].count = UINT64_MAX / 4;
    heft_assert_fails(heft_writer_add_tensor(&part, f.w, &spec, &f.err), HEFT_E_ARGUMENT, &f.err,
                      "2 elements are declared");
    heft_assert_ok(heft_writer_begin(f.w, &f.err), &f.err);
    heft_assert_ok(heft_writer_finish(f.w, &f.err), &f.err);
    end(&f);
}

/* Formats without sparse tensors fail at heft_writer_begin(), or drop the tensor and the bytes. */
static void refuses_sparse_tensors_in_other_formats(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < heft_format_count(); i++) {
        const heft_format *format = heft_format_at(i);
        heft_test_sink sink;
        fixture f;
        uint32_t caps = heft_format_caps(format);
        if (!(caps & HEFT_CAN_WRITE) || caps & (HEFT_CAN_SPARSE | HEFT_ONE_TENSOR))
            continue;
        for (int lossy = 0; lossy < 2; lossy++) {
            heft_write_options opt = HEFT_WRITE_OPTIONS_INIT;
            opt.allow_loss = lossy;
            heft_assert_ok(
                heft_writer_open(&f.w, format, heft_test_sink_init(&sink, false), &opt, &f.err),
                &f.err);
            heft_assert_ok(declare(&f, &csr, "a", HEFT_U32), &f.err);
            heft_status st = heft_writer_begin(f.w, &f.err);
            heft_assert_status(st, lossy ? HEFT_OK : HEFT_E_LOSSY, &f.err);
            if (!st)
                heft_assert_ok(write_components(&f, &csr, HEFT_U32, 5), &f.err);
            if (st)
                heft_writer_discard(f.w);
            else
                heft_assert_ok(heft_writer_finish(f.w, &f.err), &f.err);
            heft_test_sink_free(&sink);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_every_index_type_in_chunks_of_any_size),
        cmocka_unit_test(writes_tensors_without_entries),
        cmocka_unit_test(checks_the_indices_of_compressed_parts),
        cmocka_unit_test(refuses_a_wrong_index),
        cmocka_unit_test(older_versions_accept_unsorted_indices),
        cmocka_unit_test(refuses_a_last_row_pointer_other_than_the_count),
        cmocka_unit_test(refuses_descending_columns_within_a_row),
        cmocka_unit_test(version_2_refuses_duplicate_entries),
        cmocka_unit_test(refuses_inconsistent_declarations),
        cmocka_unit_test(refuses_sparse_tensors_in_other_formats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
