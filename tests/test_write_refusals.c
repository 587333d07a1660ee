/* test_write_refusals.c - refusals of the functions that convert, write, split and edit: of models
 * and options that a caller may have, and of the inner functions, which are called directly where
 * no caller of the public functions provokes the refusal alone. */
#include "core/edit/edit.h"
#include "core/write/append_model.h"
#include "core/write/convert.h"
#include "core/write/part_source.h"
#include "core/write/shard_cut.h"
#include "core/write/shard_set_writer.h"
#include "core/write/split_units.h"
#include "limited_host.h"

/* ---- arrays in memory ------------------------------------------------------------------------ */

static heft_status write_array(const heft_array *a, const heft_save_options *o, heft_error *err)
{
    heft_test_sink sink;
    heft_test_poison(err);
    heft_status st = heft_array_write(heft_test_sink_init(&sink, false), a, a ? 1 : 0, o, err);
    assert_int_equal(sink.finished, !st);
    assert_int_equal(sink.discarded, !!st);
    assert_true(!st || !sink.len);
    heft_test_sink_free(&sink);
    return st;
}

static void arrays_fit_the_address_space(void **state)
{
    static const struct {
        heft_dtype dtype;
        uint64_t dims[2];
        const char *words;
    } rows[] = {
        { HEFT_U8, { UINT64_MAX, 2 }, "tensor 'a': its shape exceeds the address space" },
        { HEFT_F64, { UINT64_MAX / 8 + 1, 1 }, "tensor 'a': its shape exceeds the address space" },
        { HEFT_U8, { SIZE_MAX, 1 }, "tensor 'a': shape and element type need" },
    };
    heft_save_options o = HEFT_SAVE_OPTIONS_INIT;
    (void)state;
    o.format = heft_format_find("mag");
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        heft_array a = { .name = HEFT_STR("a"), .dims = rows[i].dims, .rank = 2 };
        heft_error err;
        a.dtype = rows[i].dtype;
        heft_assert_fails(write_array(&a, &o, &err), HEFT_E_ARGUMENT, &err, rows[i].words);
    }
}

static void options_of_arrays_are_checked(void **state)
{
    const heft_value map = { .kind = HEFT_KIND_MAP, .key = HEFT_STR("k") };
    heft_save_options without_format = HEFT_SAVE_OPTIONS_INIT, with_map = without_format,
                      without_size = without_format;
    heft_error err;
    (void)state;
    heft_assert_fails(write_array(NULL, &without_format, &err), HEFT_E_ARGUMENT, &err,
                      "no output format is given");
    with_map.format = heft_format_find("safetensors");
    with_map.meta = &map;
    with_map.meta_count = 1;
    heft_assert_fails(write_array(NULL, &with_map, &err), HEFT_E_ARGUMENT, &err,
                      "metadata 'k' is a list or map");
    without_size.size = 0;
    heft_assert_fails(write_array(NULL, &without_size, &err), HEFT_E_ARGUMENT, &err, "size");
}

static void a_sink_in_memory_needs_a_host(void **state)
{
    heft_host without_size = *heft_host_default();
    heft_sink *s;
    heft_blob blob;
    heft_error err;
    (void)state;
    without_size.size = 0;
    heft_assert_fails(heft_sink_open_memory(&s, &blob, &without_size, &err), HEFT_E_ARGUMENT, &err,
                      "host");
    assert_true(!s && !blob.data);
}

/* ---- conversions ----------------------------------------------------------------------------- */

typedef struct sparse { /* a tensor with `entries` entries, all in the first row */
    const char *layout;
    uint32_t rank;
    uint64_t dims[40];
    uint32_t entries;
} sparse;

/* A file with a sparse tensor "s" of f32 values. */
static heft_bytes sparse_model(const sparse *s)
{
    static const float values[4] = { 1, 2, 3, 4 };
    bool is_csr = !strcmp(s->layout, "sparse_csr");
    uint64_t numbers[2][80] = { { 0 } };
    const heft_component parts[] = {
        { HEFT_STR("values"), HEFT_F32, s->entries, NULL },
        { heft_test_str(is_csr ? "indices" : "coords"), HEFT_U64,
          is_csr ? s->entries : s->entries * s->rank, NULL },
        { HEFT_STR("indptr"), HEFT_U64, s->dims[0] + 1, NULL },
    };
    heft_tensor_spec spec = HEFT_TENSOR_SPEC_INIT;
    heft_write_options w = HEFT_WRITE_OPTIONS_INIT;
    heft_test_sink sink;
    heft_writer *writer;
    heft_error err;
    uint32_t first;
    for (uint32_t i = 0; i < s->entries; i++) /* the last dimension tells the entries apart */
        numbers[0][is_csr ? i : s->entries * (s->rank - 1) + i] = i;
    for (uint64_t i = 1; is_csr && i <= s->dims[0]; i++)
        numbers[1][i] = s->entries;
    w.version = "1.2";
    spec.name = HEFT_STR("s");
    spec.dtype = HEFT_F32;
    spec.rank = s->rank;
    spec.dims = s->dims;
    spec.layout = heft_test_str(s->layout);
    spec.components = parts;
    spec.component_count = is_csr ? 3 : 2;
    heft_assert_ok(heft_writer_open(&writer, heft_format_find("ztensor"),
                                    heft_test_sink_init(&sink, false), &w, &err),
                   &err);
    heft_assert_ok(heft_writer_add_tensor(&first, writer, &spec, &err), &err);
    heft_assert_ok(heft_writer_begin(writer, &err), &err);
    heft_assert_ok(heft_writer_write(writer, first, values, 4 * (size_t)s->entries, &err), &err);
    for (uint32_t i = 1; i < spec.component_count; i++)
        heft_assert_ok(
            heft_writer_write(writer, first + i, numbers[i - 1], 8 * (size_t)parts[i].count, &err),
            &err);
    heft_assert_ok(heft_writer_finish(writer, &err), &err);
    return (heft_bytes){ sink.p, sink.len };
}

static bool always(void *ctx, const heft_tensor *t)
{
    (void)ctx, (void)t;
    return true;
}

static heft_layout as_csr(void *ctx, const heft_tensor *t)
{
    (void)ctx, (void)t;
    return HEFT_SPARSE_CSR;
}

static heft_dtype to_f64(void *ctx, const heft_tensor *t)
{
    (void)ctx, (void)t;
    return HEFT_F64;
}

/* Plan a conversion without writing. */
static heft_status plan(const heft_file *f, heft_convert_options o, heft_error *err)
{
    heft_write_options w = HEFT_WRITE_OPTIONS_INIT;
    w.version = "1.2";
    o.write = &w;
    o.dry_run = true;
    heft_test_poison(err);
    return heft_file_convert(f, heft_format_find("ztensor"), NULL, &o, err);
}

static void some_sparse_tensors_cannot_be_made_dense(void **state)
{
    static const uint64_t large = UINT64_C(1) << 40;
    const struct {
        sparse model;
        heft_dtype dtype; /* HEFT_UNTYPED: as written */
        heft_status st;
        const char *words;
    } rows[] = {
        { { "sparse_coo", 2, { 2, 3 }, 2 }, HEFT_UNTYPED, HEFT_OK, "" },
        { { "sparse_csr", 2, { 2, 3 }, 2 }, HEFT_UNTYPED, HEFT_OK, "" },
        { { "sparse_coo", 2, { 2, 3 }, 2 },
          HEFT_Q4_0,
          HEFT_E_UNSUPPORTED,
          "tensor 's': q4_0 cannot be made dense" },
        { { "sparse_coo",
            32,
            { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
              1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2 },
            2 },
          HEFT_UNTYPED,
          HEFT_OK,
          "" },
        { { "sparse_coo",
            33,
            { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
              1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2 },
            2 },
          HEFT_UNTYPED,
          HEFT_E_UNSUPPORTED,
          "tensor 's': has 33 dimensions, at most 32 can be made dense" },
        { { "sparse_coo", 2, { large, large }, 2 },
          HEFT_UNTYPED,
          HEFT_E_LIMIT,
          "tensor 's': as f32 it would take 2^64 bytes or more" },
        { { "sparse_coo", 1, { UINT64_C(1) << 62 }, 2 },
          HEFT_UNTYPED,
          HEFT_E_LIMIT,
          "tensor 's': as f32 it would take 2^64 bytes or more" },
    };
    heft_convert_options o = HEFT_CONVERT_OPTIONS_INIT;
    (void)state;
    o.densify = always;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        heft_error err;
        heft_bytes b = sparse_model(&rows[i].model);
        begin();
        heft_file *f = heft_test_opened(b, &host, false);
        if (rows[i].dtype)
            heft_ix_row(&f->x, 0)->dtype = rows[i].dtype;
        heft_status st = plan(f, o, &err);
        heft_assert_status(st, rows[i].st, &err);
        if (st)
            heft_assert_fails(st, st, &err, rows[i].words);
        close_all(f, &b);
    }
}

static void some_dense_tensors_cannot_be_made_sparse(void **state)
{
    static const struct {
        test_tensor tensor;
        heft_status st;
        const char *words;
    } rows[] = {
        { { "t", HEFT_F32, 2, { 2, 3 } }, HEFT_OK, "" },
        { { "t", HEFT_F32, 1, { 3 } }, HEFT_E_ARGUMENT, "'t': sparse_csr needs two dimensions" },
        { { "t", HEFT_F32, 2, { UINT64_MAX, 0 } },
          HEFT_E_LIMIT,
          "'t': as u64 it would take 2^64 bytes or more" },
    };
    heft_convert_options o = HEFT_CONVERT_OPTIONS_INIT;
    (void)state;
    o.sparsify = as_csr;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        heft_error err;
        heft_bytes b = heft_test_model("ztensor", &rows[i].tensor, 1);
        begin();
        heft_file *f = heft_test_opened(b, &host, false);
        heft_status st = plan(f, o, &err);
        heft_assert_status(st, rows[i].st, &err);
        if (st)
            heft_assert_fails(st, st, &err, rows[i].words);
        close_all(f, &b);
    }
}

static void the_number_of_cast_elements_has_64_bits(void **state)
{
    static const test_tensor t = { "t", HEFT_F32, 2, { 2, 3 } };
    heft_convert_options o = HEFT_CONVERT_OPTIONS_INIT;
    heft_bytes b = heft_test_model("mag", &t, 1);
    heft_error err;
    (void)state;
    begin();
    heft_file *f = heft_test_opened(b, &host, false);
    o.cast = to_f64;
    heft_assert_ok(plan(f, o, &err), &err);
    heft_ix_dims(&f->x, 0)[0] = heft_ix_dims(&f->x, 0)[1] = UINT64_C(1) << 33;
    heft_assert_fails(plan(f, o, &err), HEFT_E_LIMIT, &err, "tensor 't': as f64 it would take");
    close_all(f, &b);
}

/* ---- a plan, and functions that are called for it -------------------------------------------- */

typedef struct planned {
    heft_bytes bytes;
    heft_file *f;
    heft_conversion c;
    heft_error err;
} planned;

static void begin_plan(planned *p)
{
    heft_write_options w = HEFT_WRITE_OPTIONS_INIT;
    heft_convert_options o = HEFT_CONVERT_OPTIONS_INIT;
    begin();
    p->f = opened("mag", &p->bytes);
    w.host = &host;
    o.write = &w;
    heft_assert_ok(heft_conversion_plan(&p->c, p->f, heft_format_find("mag"), &o, NULL, &p->err),
                   &p->err);
}

static void end_plan(planned *p)
{
    heft_conversion_release(&p->c);
    close_all(p->f, &p->bytes);
}

/* Read 8 bytes of the part, cast to another type. */
static heft_status read_cast(planned *p, heft_dtype to, uint64_t elements, uint64_t from)
{
    heft_progress progress = { .fn = NULL };
    heft_source_verifier off;
    heft_copy_context c = {
        .p = &p->c.p, .in = p->f, .origins = p->c.origins.ptr, .progress = &progress
    };
    heft_part_source w;
    uint8_t out[8];
    heft_assert_ok(heft_source_verifier_begin(&off, p->f, true, NULL, NULL, &p->err), &p->err);
    c.verifier = &off;
    heft_ix_part_row_at(&p->c.p.x, 0)->dtype = to;
    ((heft_origin *)p->c.origins.ptr)->elements = elements;
    assert_true(heft_part_source_init(&w, &c));
    heft_status st = heft_part_source_read(&w, 0, from, sizeof out, out);
    p->err = w.err;
    heft_part_source_free(&w);
    heft_source_verifier_free(&off);
    return st;
}

static void a_cast_reads_elements_that_can_exist(void **state)
{
    planned p;
    (void)state;
    begin_plan(&p);
    heft_assert_ok(read_cast(&p, HEFT_U8, 25, 0), &p.err);
    heft_assert_fails(read_cast(&p, HEFT_U8, UINT64_MAX, UINT64_C(1) << 62), HEFT_E_LIMIT, &p.err,
                      "a tensor exceeds 2^64 bytes");
    heft_assert_fails(read_cast(&p, HEFT_Q4_0, 25, 0), HEFT_E_UNSUPPORTED, &p.err,
                      "f32 cannot be cast to q4_0");
    end_plan(&p);
}

static void appended_parts_end_before_2_to_64(void **state)
{
    static uint8_t raw[4];
    heft_storage storage = { .encoding = HEFT_RAW };
    heft_append_chunk chunk = { .len = sizeof raw, .raw = raw };
    heft_appender a = { .at = UINT64_MAX - 3 };
    planned p;
    (void)state;
    begin_plan(&p);
    a.p = &p.c.p;
    p.c.p.plan.storage = &storage;
    p.c.p.plan.align = 64;
    heft_assert_fails(heft_append_write(&a, &chunk, &p.err), HEFT_E_LOSSY, &p.err,
                      "the file would exceed 2^64 bytes");
    p.c.p.plan.storage = NULL;
    end_plan(&p);
}

/* The checksum of a range is joined from those of the parts. */
static void a_checksum_of_a_range_can_be_joined(void **state)
{
    planned p;
    uint32_t number;
    (void)state;
    begin_plan(&p);
    p.c.p.plan.err = &p.err;
    heft_assert_ok(heft_plan_digest_range(&p.c.p.plan, "crc32", (heft_range){ 0, 8 }, &number),
                   &p.err);
    heft_assert_fails(heft_plan_digest_range(&p.c.p.plan, "sha256", (heft_range){ 0, 8 }, &number),
                      HEFT_E_UNSUPPORTED, &p.err,
                      "this build cannot compute sha256 of a byte range");
    end_plan(&p);
}

/* Tensors that a plan adds have no place in a split of the input. */
static void a_split_writes_tensors_of_the_input(void **state)
{
    heft_bytes b = heft_test_many("mag", 2);
    heft_split_units units = { .count = 0 };
    planned p;
    (void)state;
    begin_plan(&p);
    heft_file *other = heft_test_opened(b, &host, false);
    heft_assert_fails(heft_split_units_collect(&units, other, &p.c.p, &p.err), HEFT_E_UNSUPPORTED,
                      &p.err, "tensor 'w' is not in the input");
    heft_split_units_free(&units);
    heft_file_close(other);
    heft_test_free(&b);
    end_plan(&p);
}

/* ---- a build without libraries --------------------------------------------------------------- */

/* Write a part with this storage, without digests and codecs of the host.  is_default: the storage
 * is that of all parts; late: the part is added when the file has begun. */
static heft_status write_without_libraries(heft_storage storage, bool is_default, bool late,
                                           heft_error *err)
{
    static const uint64_t dims[] = { 4 };
    heft_write_options o = HEFT_WRITE_OPTIONS_INIT;
    heft_tensor_spec spec = HEFT_TENSOR_SPEC_INIT;
    heft_test_sink sink;
    heft_writer *w;
    uint32_t part;
    host.digests = NULL;
    host.codecs = NULL;
    o.host = &host;
    o.version = "1.2";
    spec.name = HEFT_STR("w");
    spec.dtype = HEFT_U8;
    spec.rank = 1;
    spec.dims = dims;
    spec.storage = is_default ? NULL : &storage;
    if (is_default) {
        o.encoding = storage.encoding;
        o.digest = storage.digest;
    }
    heft_assert_ok(heft_writer_open(&w, heft_format_find("ztensor"),
                                    heft_test_sink_init(&sink, false), &o, err),
                   err);
    heft_status st = late ? heft_writer_begin(w, err) : HEFT_OK;
    size_t written = sink.len;
    if (!st)
        st = heft_writer_add_tensor(&part, w, &spec, err);
    if (!st && !late)
        st = heft_writer_begin(w, err);
    if (!st)
        st = heft_writer_write(w, part, "abcd", 4, err);
    assert_true(!st || sink.len == written);
    if (!st)
        st = heft_writer_finish(w, err);
    else
        heft_writer_discard(w);
    heft_test_sink_free(&sink);
    return st;
}

static void a_build_without_libraries_says_so(void **state)
{
    static const struct {
        heft_storage storage;
        const char *words; /* NULL: it can */
    } rows[] = {
        { { .encoding = HEFT_RAW, .digest = "crc32c" }, NULL },
        { { .encoding = HEFT_RAW, .digest = "sha256" },
          "this build cannot compute sha256 digests" },
        { { .encoding = HEFT_ZSTD }, "this build cannot compress" },
    };
    (void)state;
    for (size_t i = 0; i < 4 * HEFT_COUNT(rows); i++) {
        const char *words = rows[i / 4].words;
        heft_error err;
        begin();
        heft_status st = write_without_libraries(rows[i / 4].storage, i & 1, i & 2, &err);
        assert_int_equal(st, words ? HEFT_E_UNSUPPORTED : HEFT_OK);
        if (st && !strstr(err.message, words))
            fail_msg("%s", err.message);
        heft_assert_all_freed(&memory);
    }
}

/* ---- splitting ------------------------------------------------------------------------------- */

static heft_status count_units(void *ctx, uint32_t first, uint32_t end, uint64_t *bytes)
{
    (void)ctx;
    *bytes = end - first;
    return HEFT_OK;
}

static void a_split_makes_at_most_4096_files(void **state)
{
    enum { MAX_FILES = 4096 };
    static uint64_t payload[MAX_FILES + 1];
    (void)state;
    begin();
    for (uint32_t units = MAX_FILES; units <= MAX_FILES + 1; units++) {
        heft_memory mem = { &limited, UINT64_MAX, 0 };
        heft_error err;
        heft_shard_cut c = { .mem = &mem,
                             .payload = payload,
                             .units = units,
                             .max_bytes = 1,
                             .plan = count_units,
                             .err = &err };
        for (uint32_t i = 0; i < units; i++)
            payload[i] = 1;
        heft_status st = heft_shard_cut_model(&c, 0);
        if (units == MAX_FILES)
            heft_assert_ok(st, &err);
        else
            heft_assert_fails(st, HEFT_E_LIMIT, &err, "more than 4096 files");
        heft_shard_cut_free(&c);
    }
    heft_assert_all_freed(&memory);
}

static heft_blob file_of_split;
static uint32_t files_of_split;

static heft_status open_sink(heft_sink **out, void *ctx, const char *name, heft_error *err)
{
    (void)ctx, (void)name;
    files_of_split++;
    return heft_sink_open_memory(out, &file_of_split, &host, err);
}

static heft_status split(const test_tensor *tensors, uint32_t count, const char *stem,
                         heft_error *err)
{
    heft_write_options w = HEFT_WRITE_OPTIONS_INIT;
    heft_convert_options c = HEFT_CONVERT_OPTIONS_INIT;
    heft_split_options o = HEFT_SPLIT_OPTIONS_INIT;
    heft_bytes b = heft_test_model("gguf", tensors, count);
    heft_file *f = heft_test_opened(b, &host, false);
    w.host = &host;
    c.write = &w;
    o.convert = &c;
    o.count = 1;
    o.stem = stem;
    o.open = open_sink;
    files_of_split = 0;
    heft_test_poison(err);
    heft_status st = heft_file_split(f, heft_format_find("gguf"), &o, err);
    heft_blob_free(&file_of_split);
    heft_file_close(f);
    heft_test_free(&b);
    return st;
}

static void a_model_without_tensors_makes_a_single_file(void **state)
{
    heft_error err;
    (void)state;
    begin();
    heft_assert_ok(split(NULL, 0, "model", &err), &err);
    assert_int_equal(files_of_split, 1);
    heft_assert_all_freed(&memory);
}

static void names_of_shards_have_a_limit(void **state)
{
    static const test_tensor t = { "t", HEFT_F32, 1, { 8 } };
    static char stem[100000];
    heft_error err;
    (void)state;
    begin();
    memset(stem, 'm', sizeof stem - 1);
    heft_assert_fails(split(&t, 1, stem, &err), HEFT_E_ARGUMENT, &err,
                      "the file names would exceed");
    assert_int_equal(files_of_split, 0);
    heft_assert_all_freed(&memory);
}

/* An index that refers to parts needs the digests of the shards. */
static void shards_can_be_read_back(void **state)
{
    enum { NO_SIZE, NO_READ_AT, NO_DIGEST, CASES };
    static const char *const words[] = { "cannot read back a shard that the index refers to",
                                         "cannot read back a shard that the index refers to",
                                         "this build cannot compute xxh3 digests" };
    (void)state;
    for (int i = 0; i < CASES; i++) {
        heft_shard_set_writer *l;
        heft_sink *inner;
        heft_blob blob = { NULL, 0, NULL };
        heft_error err;
        heft_test_sink stream;
        begin();
        host.digests = NULL;
        heft_assert_ok(heft_shard_set_writer_begin(&l, &host, heft_format_find("ztensor"), 1, &err),
                       &err);
        if (i == NO_READ_AT)
            inner = heft_test_sink_init(&stream, false);
        else
            heft_assert_ok(heft_sink_open_memory(&inner, &blob, &host, &err), &err);
        heft_sink *s = heft_shard_set_writer_sink(l, inner);
        heft_assert_ok(s->ops->write_at(s, 0, "abcd", 4, &err), &err);
        heft_assert_ok(s->ops->finish(s, &err), &err);
        heft_status st = heft_shard_set_writer_add(l, i == NO_SIZE ? 0 : 4, &err);
        assert_int_equal(st, HEFT_E_UNSUPPORTED);
        assert_non_null(strstr(err.message, words[i]));
        heft_shard_set_writer_free(l);
        if (i == NO_READ_AT)
            heft_test_sink_free(&stream);
        heft_assert_all_freed(&memory);
    }
}

/* ---- edits ----------------------------------------------------------------------------------- */

static void bytes_outside_of_the_plan_of_an_edit_do_not_exist(void **state)
{
    static const uint8_t data[10];
    heft_edit_extent extent = { .at = 10, .length = sizeof data, .data = data };
    heft_edit e = { .extents = { &extent, 1, 1 } };
    heft_edit_job g = { .e = &e };
    heft_error err;
    uint8_t to[4];
    uint32_t crc;
    (void)state;
    begin();
    const heft_digest *d = heft_host_digest(&host, "crc32");
    d->init(&crc);
    heft_assert_ok(heft_edit_bytes(&g, 16, to, sizeof to, &err), &err);
    heft_assert_fails(heft_edit_bytes(&g, 17, to, sizeof to, &err), HEFT_E_UNSUPPORTED, &err,
                      "no bytes are planned here");
    heft_assert_fails(heft_edit_bytes(&g, 9, to, sizeof to, &err), HEFT_E_UNSUPPORTED, &err,
                      "no bytes are planned here");
    heft_assert_ok(heft_edit_carry(&g, d, (heft_range){ 10, 10 }, &crc, &err), &err);
    heft_assert_fails(heft_edit_carry(&g, d, (heft_range){ 10, 11 }, &crc, &err), HEFT_E_ARGUMENT,
                      &err, "a checksum covers bytes past the end");
}

static void a_plan_that_appends_cannot_be_laid_out(void **state)
{
    (void)state;
    for (int has_digests = 0; has_digests < 2; has_digests++) {
        const heft_digest *digests[1] = { NULL };
        heft_edit_job g = { .p = { .format = heft_format_find("mag") } };
        heft_error err;
        g.err = &err;
        g.p.plan.appended = !has_digests;
        g.p.digest_of = has_digests ? digests : NULL;
        heft_assert_fails(heft_edit_lay_out(&g), HEFT_E_UNSUPPORTED, &err,
                          "mag cannot be edited by this build");
    }
}

static void the_parts_of_an_edited_file_are_in_order(void **state)
{
    heft_bytes b = heft_test_many("mag", 2);
    heft_edit *e;
    heft_error err;
    (void)state;
    begin();
    heft_file *f = heft_test_opened(b, &host, false);
    heft_ix_row(&f->x, 0)->first_part = 1;
    heft_ix_row(&f->x, 1)->first_part = 0;
    heft_assert_fails(heft_edit_plan(&e, f, NULL, &err), HEFT_E_UNSUPPORTED, &err,
                      "tensor 'layers.0.weight': its parts are out of order");
    assert_null(e);
    close_all(f, &b);
}

static void appended_tensors_come_from_a_file_of_the_format(void **state)
{
    enum { OTHER_FORMAT, SHARDS, NO_SOURCE, CASES };
    (void)state;
    for (int i = 0; i < CASES; i++) {
        heft_bytes b[2];
        heft_edit *e;
        heft_error err;
        begin();
        heft_file *f = opened("ztensor", &b[0]);
        heft_file *added = opened(i == OTHER_FORMAT ? "mag" : "ztensor", &b[1]);
        heft_source *source = added->source;
        added->x.shards.len = i == SHARDS;
        added->source = i == NO_SOURCE ? NULL : source;
        heft_assert_fails(heft_append_plan(&e, f, added, NULL, &err), HEFT_E_ARGUMENT, &err,
                          "the added tensors are not in a file of the same format");
        assert_null(e);
        added->x.shards.len = 0;
        added->source = source;
        heft_file_close(added);
        heft_test_free(&b[1]);
        close_all(f, &b[0]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrays_fit_the_address_space),
        cmocka_unit_test(options_of_arrays_are_checked),
        cmocka_unit_test(a_sink_in_memory_needs_a_host),
        cmocka_unit_test(some_sparse_tensors_cannot_be_made_dense),
        cmocka_unit_test(some_dense_tensors_cannot_be_made_sparse),
        cmocka_unit_test(the_number_of_cast_elements_has_64_bits),
        cmocka_unit_test(a_cast_reads_elements_that_can_exist),
        cmocka_unit_test(appended_parts_end_before_2_to_64),
        cmocka_unit_test(a_checksum_of_a_range_can_be_joined),
        cmocka_unit_test(a_split_writes_tensors_of_the_input),
        cmocka_unit_test(a_build_without_libraries_says_so),
        cmocka_unit_test(a_split_makes_at_most_4096_files),
        cmocka_unit_test(a_model_without_tensors_makes_a_single_file),
        cmocka_unit_test(names_of_shards_have_a_limit),
        cmocka_unit_test(shards_can_be_read_back),
        cmocka_unit_test(bytes_outside_of_the_plan_of_an_edit_do_not_exist),
        cmocka_unit_test(a_plan_that_appends_cannot_be_laid_out),
        cmocka_unit_test(the_parts_of_an_edited_file_are_in_order),
        cmocka_unit_test(appended_tensors_come_from_a_file_of_the_format),
    };
    return cmocka_run_group_tests_name("write_refusals", tests, NULL, NULL);
}
