/* test_convert.c - tests of changes during a conversion (keep, rename, cast, transpose, metadata),
 * against a simple implementation of each. */
#include "dump.h"
#include "models.h"

typedef struct change {                           /* settings of the callbacks */
    const char *keep, *rename, *cast, *transpose; /* name of the affected tensor, "*": all */
    heft_str name;
    heft_dtype dtype;
    uint64_t stop_at, last, total, calls;
} change;

static bool is_named(const heft_tensor *t, const char *name)
{
    return name && (!strcmp(name, "*") ||
                    (t->name.len == strlen(name) && !memcmp(t->name.ptr, name, t->name.len)));
}

static bool keep(void *ctx, const heft_tensor *t)
{
    return is_named(t, ((change *)ctx)->keep);
}

static heft_str rename_tensor(void *ctx, const heft_tensor *t)
{
    return is_named(t, ((change *)ctx)->rename) ? ((change *)ctx)->name : t->name;
}

static heft_dtype cast(void *ctx, const heft_tensor *t)
{
    return is_named(t, ((change *)ctx)->cast) ? ((change *)ctx)->dtype : HEFT_UNTYPED;
}

static bool transpose(void *ctx, const heft_tensor *t)
{
    return is_named(t, ((change *)ctx)->transpose);
}

static bool count_progress(void *ctx, uint64_t done, uint64_t total)
{
    change *c = ctx;
    assert_in_range(done, c->last, total);
    c->last = done;
    c->total = total;
    return ++c->calls != c->stop_at;
}

static heft_convert_options options(change *c)
{
    heft_convert_options o = HEFT_CONVERT_OPTIONS_INIT;
    o.keep = c->keep ? keep : NULL;
    o.rename = c->rename ? rename_tensor : NULL;
    o.cast = c->cast ? cast : NULL;
    o.transpose = c->transpose ? transpose : NULL;
    o.ctx = c;
    o.progress = count_progress;
    return o;
}

/* ---- the input and the converted file ------------------------------------------------------- */

typedef struct fixture {
    heft_bytes bytes, out;
    heft_file *in, *got; /* opened `bytes` and `out` */
    heft_error err;
} fixture;

static void begin(fixture *f, const char *format, const test_tensor *tensors, size_t count)
{
    *f = (fixture){ .bytes = heft_test_model(format, tensors, count) };
    heft_assert_ok(heft_test_open(&f->in, f->bytes, NULL, &f->err), &f->err);
}

static void drop_result(fixture *f)
{
    heft_file_close(f->got);
    f->got = NULL;
    heft_test_free(&f->out);
}

static void end(fixture *f)
{
    drop_result(f);
    heft_file_close(f->in);
    heft_test_free(&f->bytes);
}

static heft_status run(fixture *f, const char *format, const heft_convert_options *o)
{
    heft_test_sink sink;
    drop_result(f);
    if (o->progress)
        ((change *)o->ctx)->last = 0;
    heft_status st = heft_file_convert(f->in, heft_format_find(heft_str_from(format)),
                                       heft_test_sink_init(&sink, false), o, &f->err);
    assert_int_equal(sink.finished, !st);
    assert_int_equal(sink.discarded, !!st);
    if (!st) {
        f->out = heft_test_copy(sink.p, sink.len);
        heft_assert_ok(heft_test_open(&f->got, f->out, NULL, &f->err), &f->err);
    }
    heft_test_sink_free(&sink);
    return st;
}

static const uint8_t *data_of(const heft_file *f, const char *name, size_t *len)
{
    uint32_t id = heft_tensor_find(f, heft_str_from(name));
    assert_int_not_equal(id, HEFT_NONE);
    uint32_t part = heft_tensor_at(f, id).first_part;
    *len = (size_t)heft_part_at(f, part).length;
    return heft_part_view(f, part);
}

static void assert_same_data(const fixture *f, const char *before, const char *after)
{
    size_t n, m;
    const uint8_t *a = data_of(f->in, before, &n), *b = data_of(f->got, after, &m);
    assert_int_equal(n, m);
    assert_memory_equal(a, b, n);
}

static const test_tensor three_tensors[] = {
    { "a", HEFT_F32, 2, { 3, 5 } },
    { "b", HEFT_U8, 1, { 70 } },
    { "c", HEFT_I64, 3, { 2, 1, 4 } },
};

/* ---- selection and names -------------------------------------------------------------------- */

static void only_kept_tensors_are_written(void **state)
{
    fixture f;
    change c = { .keep = "b" };
    heft_convert_options o = options(&c);
    (void)state;
    begin(&f, "safetensors", three_tensors, 3);
    heft_assert_ok(run(&f, "safetensors", &o), &f.err);
    assert_int_equal(heft_tensor_count(f.got), 1);
    assert_same_data(&f, "b", "b");
    c.keep = "none of them";
    heft_assert_ok(run(&f, "safetensors", &o), &f.err);
    assert_int_equal(heft_tensor_count(f.got), 0);
    end(&f);
}

static void a_renamed_tensor_keeps_its_bytes_and_position(void **state)
{
    fixture f;
    change c = { .rename = "b", .name = { "z", 1 } };
    heft_convert_options o = options(&c);
    (void)state;
    begin(&f, "safetensors", three_tensors, 3);
    heft_assert_ok(run(&f, "safetensors", &o), &f.err);
    assert_int_equal(heft_tensor_find(f.got, HEFT_STR("b")), HEFT_NONE);
    assert_int_equal(heft_tensor_find(f.got, HEFT_STR("z")), 1); /* the position is kept */
    assert_same_data(&f, "b", "z");
    assert_same_data(&f, "c", "c");
    c.name = (heft_str){ "a", 1 };
    heft_assert_fails(run(&f, "safetensors", &o), HEFT_E_ARGUMENT, &f.err,
                      "after renaming, tensor 'a' occurs twice");
    c.name = (heft_str){ "\xff", 1 };
    heft_assert_fails(run(&f, "safetensors", &o), HEFT_E_ARGUMENT, &f.err, "not UTF-8");
    end(&f);
}

/* ---- cast ----------------------------------------------------------------------------------- */

static void compare_cast(const fixture *f, heft_dtype from, heft_dtype to)
{
    size_t n, m;
    const uint8_t *before = data_of(f->in, "t", &n), *after = data_of(f->got, "t", &m);
    size_t count = (size_t)heft_tensor_at(f->in, heft_tensor_find(f->in, HEFT_STR("t"))).dims[0];
    const heft_dtype_info *d = heft_dtype_get(to);
    uint8_t *expected = malloc(m);
    assert_non_null(expected);
    assert_int_equal(m, (count + d->block_elems - 1) / d->block_elems * d->block_bytes);
    assert_true(heft_dtype_cast(expected, to, before, from, count));
    assert_memory_equal(after, expected, m);
    assert_int_equal(heft_tensor_at(f->got, heft_tensor_find(f->got, HEFT_STR("t"))).dtype, to);
    free(expected);
}

static void casts_agree_with_heft_dtype_cast(void **state)
{
    static const heft_dtype types[] = { HEFT_BOOL,    HEFT_U8,      HEFT_I16,    HEFT_I64,
                                        HEFT_F16,     HEFT_BF16,    HEFT_F32,    HEFT_F64,
                                        HEFT_F8_E5M2, HEFT_F6_E3M2, HEFT_F4_E2M1 };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(types) * HEFT_COUNT(types); i++) {
        heft_dtype from = types[i / HEFT_COUNT(types)], to = types[i % HEFT_COUNT(types)];
        bool is_packed = heft_dtype_get(from)->block_elems * heft_dtype_get(to)->block_elems > 1;
        /* "s" makes the data of "t" unaligned; "t" is larger than the buffer of a worker */
        const test_tensor two_tensors[] = { { "s", HEFT_U8, 1, { 3 } },
                                            { "t", from, 1, { is_packed ? 300004 : 300001 } } };
        fixture f;
        change c = { .cast = "t", .dtype = to };
        heft_convert_options o = options(&c);
        begin(&f, "safetensors", two_tensors, 2);
        heft_assert_ok(run(&f, "safetensors", &o), &f.err);
        compare_cast(&f, from, to);
        assert_same_data(&f, "s", "s");
        end(&f);
    }
}

static void unsupported_casts_are_refused(void **state)
{
    static const test_tensor tensors[] = { { "t", HEFT_C64, 1, { 4 } },
                                           { "f4", HEFT_F4_E2M1, 1, { 4 } } };
    fixture f;
    change c = { .cast = "t", .dtype = HEFT_F32 };
    heft_convert_options o = options(&c);
    (void)state;
    begin(&f, "safetensors", tensors, 2);
    heft_assert_fails(run(&f, "safetensors", &o), HEFT_E_UNSUPPORTED, &f.err,
                      "tensor 't': c64 cannot be cast to f32");
    c.cast = "f4";
    c.dtype = HEFT_C128;
    heft_assert_fails(run(&f, "safetensors", &o), HEFT_E_UNSUPPORTED, &f.err, "f4_e2m1");
    c.dtype = 999;
    heft_assert_status(run(&f, "safetensors", &o), HEFT_E_UNSUPPORTED, &f.err);
    end(&f);
}

/* Unused bits of the last block are written as 0 and not read as an element. */
static void packed_types_may_end_inside_a_block(void **state)
{
    static const heft_dtype types[] = { HEFT_F32, HEFT_F8_E4M3FN };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(types); i++) {
        const test_tensor t = { "t", types[i], 1, { 300001 } };
        fixture f;
        change c = { .cast = "t", .dtype = HEFT_F4_E2M1 };
        heft_write_options write = HEFT_WRITE_OPTIONS_INIT;
        heft_convert_options o = options(&c);
        size_t n, m;
        begin(&f, "safetensors", &t, 1);
        o.write = &write;
        write.version = "2";
        heft_assert_ok(run(&f, "ztensor", &o), &f.err);
        compare_cast(&f, types[i], HEFT_F4_E2M1);
        const uint8_t *packed = data_of(f.got, "t", &n);
        assert_int_equal(n, 150001);
        assert_int_equal(packed[n - 1] >> 4, 0);
        fixture reread = { .bytes = heft_test_copy(f.out.p, f.out.len) };
        heft_assert_ok(heft_test_open(&reread.in, reread.bytes, NULL, &f.err), &f.err);
        c.dtype = HEFT_F32;
        heft_assert_ok(run(&reread, "ztensor", &o), &reread.err);
        data_of(reread.got, "t", &m);
        assert_int_equal(m, 4 * 300001);
        compare_cast(&reread, HEFT_F4_E2M1, HEFT_F32);
        end(&reread);
        end(&f);
    }
}

static void transpose_and_cast_to_a_packed_type_agree_with_two_steps(void **state)
{
    const test_tensor t = { "t", HEFT_F32, 2, { 301, 404 } };
    fixture combined, first_step, second_step;
    change c = { .cast = "t", .dtype = HEFT_F4_E2M1, .transpose = "t" };
    heft_write_options write = HEFT_WRITE_OPTIONS_INIT;
    heft_convert_options o = options(&c);
    (void)state;
    o.write = &write;
    write.version = "2";
    begin(&combined, "ztensor", &t, 1);
    heft_assert_ok(run(&combined, "ztensor", &o), &combined.err);
    begin(&first_step, "ztensor", &t, 1);
    c.cast = NULL;
    heft_assert_ok(run(&first_step, "ztensor", &o), &first_step.err);
    second_step = (fixture){ .bytes = heft_test_copy(first_step.out.p, first_step.out.len) };
    heft_assert_ok(heft_test_open(&second_step.in, second_step.bytes, NULL, &second_step.err),
                   &second_step.err);
    c = (change){ .cast = "t", .dtype = HEFT_F4_E2M1 };
    heft_assert_ok(run(&second_step, "ztensor", &o), &second_step.err);
    heft_assert_same_bytes(combined.out, second_step.out);
    end(&combined);
    end(&first_step);
    end(&second_step);
}

/* ---- transpose ------------------------------------------------------------------------------ */

static void transpose_by_hand(uint8_t *out, const uint8_t *in, uint64_t rows, uint64_t columns,
                              size_t size)
{
    for (uint64_t r = 0; r < rows; r++)
        for (uint64_t k = 0; k < columns; k++)
            memcpy(out + (k * rows + r) * size, in + (r * columns + k) * size, size);
}

static void compare_transposed(const fixture *f, const test_tensor *t)
{
    size_t n, m, size = heft_dtype_get(t->dtype)->block_bytes;
    const uint8_t *before = data_of(f->in, t->name, &n), *after = data_of(f->got, t->name, &m);
    heft_tensor transposed = heft_tensor_at(f->got,
                                            heft_tensor_find(f->got, heft_str_from(t->name)));
    uint8_t *expected = malloc(n + 1);
    assert_non_null(expected);
    assert_int_equal(transposed.dims[0], t->dims[1]);
    assert_int_equal(transposed.dims[1], t->dims[0]);
    assert_int_equal(n, m);
    transpose_by_hand(expected, before, t->dims[0], t->dims[1], size);
    if (n)
        assert_memory_equal(after, expected, n);
    free(expected);
}

static const heft_dtype transposed_types[] = { HEFT_U8, HEFT_F16, HEFT_F32, HEFT_I64 };
static const uint64_t shapes[][2] = { { 1, 1 }, { 1, 1000 },   { 1000, 1 },
                                      { 3, 5 }, { 700, 999 },  { 0, 7 },
                                      { 7, 0 }, { 2, 400000 }, { 400000, 2 } };

/* A mag snapshot has no padding, so that three bytes of "s" make the data of "t" unaligned. */
static void transposed_matrices_agree_with_a_simple_loop(void **state)
{
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(transposed_types) * HEFT_COUNT(shapes); i++) {
        const uint64_t *shape = shapes[i % HEFT_COUNT(shapes)];
        const test_tensor two_tensors[] = {
            { "s", HEFT_U8, 1, { 3 } },
            { "t", transposed_types[i / HEFT_COUNT(shapes)], 2, { shape[0], shape[1] } }
        };
        fixture f;
        change c = { .transpose = "t" };
        heft_write_options write = HEFT_WRITE_OPTIONS_INIT;
        heft_convert_options o = options(&c);
        bool is_empty = !shape[0] || !shape[1]; /* mag cannot store empty tensors */
        const char *format = is_empty ? "safetensors" : "mag";
        o.write = &write;
        write.version = is_empty ? NULL : "snapshot";
        begin(&f, "safetensors", two_tensors, 2);
        heft_assert_ok(run(&f, format, &o), &f.err);
        compare_transposed(&f, &two_tensors[1]);
        assert_same_data(&f, "s", "s");
        end(&f);
    }
}

/* Transpose unaligned data twice, from a source with and without memory-mapped views. */
static void transposing_twice_restores_the_data(void **state)
{
    static const test_tensor two_tensors[] = { { "s", HEFT_U8, 1, { 3 } },
                                               { "t", HEFT_F32, 2, { 301, 777 } } };
    fixture f;
    change c = { .transpose = "t" };
    heft_write_options write = HEFT_WRITE_OPTIONS_INIT;
    heft_convert_options o = options(&c);
    (void)state;
    begin(&f, "safetensors", two_tensors, 2);
    o.write = &write;
    write.version = "snapshot";
    heft_assert_ok(run(&f, "mag", &o), &f.err);
    for (size_t method = 0; method < 4; method += 3) {
        heft_test_input in = { NULL, f.out };
        heft_test_sink sink;
        heft_file *transposed, *reread;
        size_t n, m;
        c.last = 0;
        heft_assert_ok(heft_test_open_methods[method].open(&transposed, &in, NULL, &f.err), &f.err);
        heft_assert_ok(heft_file_convert(transposed, heft_format_find(HEFT_STR("mag")),
                                         heft_test_sink_init(&sink, method == 3), &o, &f.err),
                       &f.err);
        heft_assert_ok(heft_test_open(&reread, heft_test_sink_bytes(&sink), NULL, &f.err), &f.err);
        const uint8_t *a = data_of(f.in, "t", &n), *b = data_of(reread, "t", &m);
        assert_int_equal(n, m);
        assert_memory_equal(a, b, n);
        heft_file_close(reread);
        heft_file_close(transposed);
        heft_test_sink_free(&sink);
    }
    end(&f);
}

static void transpose_and_cast_agree_with_two_steps(void **state)
{
    static const test_tensor two_tensors[] = { { "s", HEFT_U8, 1, { 3 } },
                                               { "t", HEFT_F32, 2, { 523, 601 } } };
    fixture f;
    size_t n, m;
    change c = { .transpose = "t", .cast = "t", .dtype = HEFT_F64 };
    heft_convert_options o = options(&c);
    (void)state;
    begin(&f, "safetensors", two_tensors, 2);
    heft_assert_ok(run(&f, "safetensors", &o), &f.err);
    const uint8_t *in = data_of(f.in, "t", &n), *out = data_of(f.got, "t", &m);
    uint8_t *transposed = malloc(n), *expected = malloc(m);
    assert_non_null(transposed);
    assert_non_null(expected);
    assert_int_equal(m, 2 * n);
    transpose_by_hand(transposed, in, 523, 601, 4);
    assert_true(heft_dtype_cast(expected, HEFT_F64, transposed, HEFT_F32, n / 4));
    assert_memory_equal(out, expected, m);
    free(transposed);
    free(expected);
    end(&f);
}

static void only_matrices_can_be_transposed(void **state)
{
    static const test_tensor tensors[] = { { "cube", HEFT_F32, 3, { 2, 2, 2 } },
                                           { "packed", HEFT_F4_E2M1, 2, { 2, 2 } },
                                           { "row", HEFT_F32, 1, { 2 } } };
    fixture f;
    change c = { 0 };
    (void)state;
    begin(&f, "safetensors", tensors, 3);
    for (int i = 0; i < 3; i++) {
        c.transpose = tensors[i].name;
        heft_convert_options o = options(&c);
        heft_assert_fails(run(&f, "safetensors", &o), HEFT_E_ARGUMENT, &f.err, tensors[i].name);
    }
    end(&f);
}

/* ---- metadata and config -------------------------------------------------------------------- */

static heft_value text_value(const char *key, const char *s)
{
    heft_value v = { .kind = HEFT_KIND_STR, .key = heft_test_str(key) };
    v.as.s = heft_test_str(s);
    return v;
}

static void assert_meta(const heft_file *f, const char *key, const char *expected)
{
    heft_value v;
    assert_true(heft_meta_find(&v, f, heft_str_from(key)));
    assert_int_equal(v.as.s.len, strlen(expected));
    assert_memory_equal(v.as.s.ptr, expected, v.as.s.len);
}

static void metadata_are_added_and_replaced(void **state)
{
    fixture f, g;
    change c = { 0 };
    heft_convert_options o = options(&c);
    const heft_value first[] = { text_value("kept", "1"), text_value("replaced", "2") };
    const heft_value second[] = { text_value("replaced", "3"), text_value("new", "4"),
                                  text_value("new", "5") };
    (void)state;
    o.exact_metadata = true;
    begin(&f, "safetensors", three_tensors, 3);
    o.set = first;
    o.set_count = 2;
    heft_assert_ok(run(&f, "safetensors", &o), &f.err);
    g = (fixture){ .bytes = heft_test_copy(f.out.p, f.out.len) };
    heft_assert_ok(heft_test_open(&g.in, g.bytes, NULL, &g.err), &g.err);
    o.set = second;
    o.set_count = 3;
    c.last = 0;
    heft_assert_ok(run(&g, "safetensors", &o), &g.err);
    assert_int_equal(heft_meta_count(g.got), 3);
    assert_meta(g.got, "kept", "1");
    assert_meta(g.got, "replaced", "3");
    assert_meta(g.got, "new", "4"); /* the first value of a duplicate key */
    const heft_value bad = text_value("bad", "\xff");
    o.set = &bad;
    o.set_count = 1;
    heft_assert_fails(run(&g, "safetensors", &o), HEFT_E_ARGUMENT, &g.err, "not UTF-8");
    end(&g);
    end(&f);
}

static void a_new_config_replaces_the_old_config(void **state)
{
    static const test_tensor tensor[] = { { "w", HEFT_F32, 1, { 2 } } };
    const char *config = "{\"kind\":\"x\",\"config\":[1, 2]}";
    fixture f;
    change c = { 0 };
    heft_convert_options o = options(&c);
    (void)state;
    begin(&f, "gptrs-checkpoint", tensor, 1);
    o.config = heft_test_str(config);
    heft_assert_ok(run(&f, "gptrs-checkpoint", &o), &f.err);
    uint32_t part = heft_part_find(f.got, HEFT_NONE, HEFT_STR("config"));
    assert_int_equal(heft_part_at(f.got, part).length, strlen(config));
    assert_memory_equal(heft_part_view(f.got, part), config, strlen(config));
    o.config = heft_test_str("{\"kind\":");
    heft_assert_fails(run(&f, "gptrs-checkpoint", &o), HEFT_E_ARGUMENT, &f.err, "config");
    end(&f);
}

/* ---- dry runs, cancellation, damage --------------------------------------------------------- */

static void a_dry_run_writes_nothing(void **state)
{
    fixture f;
    heft_test_sink sink;
    uint64_t planned = 0;
    change c = { 0 };
    heft_convert_options o = options(&c);
    (void)state;
    begin(&f, "safetensors", three_tensors, 3);
    o.dry_run = true;
    o.planned_bytes = &planned;
    heft_assert_ok(heft_file_convert(f.in, heft_format_find(HEFT_STR("safetensors")),
                                     heft_test_sink_init(&sink, false), &o, &f.err),
                   &f.err);
    assert_true(sink.discarded);
    assert_int_equal(sink.cap, 0);
    assert_int_equal(planned, f.bytes.len);
    heft_assert_ok(
        heft_file_convert(f.in, heft_format_find(HEFT_STR("safetensors")), NULL, &o, &f.err),
        &f.err);
    o.dry_run = false;
    heft_assert_fails(
        heft_file_convert(f.in, heft_format_find(HEFT_STR("safetensors")), NULL, &o, &f.err),
        HEFT_E_ARGUMENT, &f.err, "no sink");
    end(&f);
}

static void progress_reaches_the_total_and_can_cancel(void **state)
{
    static const test_tensor large[] = { { "w", HEFT_F32, 1, { 3 << 20 } } };
    fixture f;
    change c = { 0 };
    heft_convert_options o = options(&c);
    (void)state;
    begin(&f, "safetensors", large, 1);
    heft_assert_ok(run(&f, "safetensors", &o), &f.err);
    assert_int_equal(c.last, c.total);
    assert_int_equal(c.total, 12 << 20);
    assert_in_range(c.calls, 4, 100);
    uint64_t calls = c.calls;
    for (c.stop_at = 1; c.stop_at <= calls; c.stop_at += calls / 3) {
        c.last = c.calls = 0;
        heft_status st = run(&f, "safetensors", &o);
        if (c.calls < c.stop_at) { /* threads that wait for each other report less often */
            assert_true(c.stop_at > 1 && !st);
            break;
        }
        heft_assert_status(st, HEFT_E_CANCELLED, &f.err);
        assert_in_range(c.calls, c.stop_at,
                        c.stop_at + 64); /* other threads may report once more */
    }
    end(&f);
}

static void open_unverified(fixture *f)
{
    heft_open_options opt = HEFT_OPEN_OPTIONS_INIT;
    heft_source *source;
    opt.no_verify = true;
    heft_assert_ok(heft_source_open_memory(&source, f->bytes.p, f->bytes.len, &f->err), &f->err);
    heft_assert_ok(heft_file_open_source(&f->in, source, &opt, &f->err), &f->err);
}

static void a_wrong_checksum_fails_unless_no_verify_is_set(void **state)
{
    fixture f;
    change c = { 0 };
    heft_convert_options o = options(&c);
    (void)state;
    f = (fixture){ .bytes = heft_test_one("mag", 4000) };
    f.bytes.p[8] ^= 1; /* damage the stored checksum */
    open_unverified(&f);
    heft_assert_fails(run(&f, "mag", &o), HEFT_E_CHECKSUM, &f.err, "mag/header-crc");
    o.no_verify = true;
    c.last = 0;
    heft_assert_ok(run(&f, "mag", &o), &f.err);
    assert_same_data(&f, "w", "w");
    end(&f);
}

static void a_file_without_fed_data_cannot_be_converted(void **state)
{
    heft_bytes b = heft_test_one("mag", 1 << 20);
    heft_test_input in = { NULL, b };
    heft_test_sink sink;
    heft_error err;
    heft_file *f;
    (void)state;
    heft_assert_ok(heft_test_open_methods[4].open(&f, &in, NULL, &err), &err);
    assert_null(heft_part_view(f, 0));
    heft_assert_fails(heft_file_convert(f, heft_format_find(HEFT_STR("mag")),
                                        heft_test_sink_init(&sink, false), NULL, &err),
                      HEFT_E_IO, &err, "not fed");
    assert_true(sink.discarded);
    heft_test_sink_free(&sink);
    heft_file_close(f);
    heft_test_free(&b);
}

/* ---- alignment ------------------------------------------------------------------------------ */

static void data_are_aligned_as_requested(void **state)
{
    static const char *const formats[] = { "mag", "gptrs-archive", "gptrs-checkpoint" };
    static const test_tensor two_tensors[] = { { "a", HEFT_F32, 1, { 5 } },
                                               { "b", HEFT_F32, 1, { 5 } } };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(formats); i++) {
        for (uint32_t align = 64; align <= 65536; align *= 4) {
            fixture f;
            change c = { 0 };
            heft_write_options write = HEFT_WRITE_OPTIONS_INIT;
            heft_convert_options o = options(&c);
            o.write = &write;
            write.align = align;
            begin(&f, formats[i], two_tensors, 2);
            heft_assert_ok(run(&f, formats[i], &o), &f.err);
            assert_int_equal(heft_file_alignment(f.got) % align, 0);
            assert_same_data(&f, "b", "b");
            end(&f);
        }
    }
}

/* Storage callback: "a" is compressed with a sha256 digest, "b" has a crc32c digest, "c" keeps the
 * default. */
static bool store(void *ctx, const heft_tensor *t, heft_str role, heft_storage *storage)
{
    change *c = ctx;
    assert_int_equal(role.len, 4);
    assert_memory_equal(role.ptr, "data", 4);
    c->stop_at += storage->encoding == HEFT_ZSTD ||
                  storage->digest; /* must be the storage of the input */
    if (is_named(t, "c"))
        return false;
    *storage = is_named(t, "a")
                   ? (heft_storage){ .encoding = HEFT_ZSTD, .level = 3, .digest = "sha256" }
                   : (heft_storage){ .digest = "crc32c" };
    return true;
}

static void assert_stored(const heft_file *f, const char *name, heft_encoding e, const char *digest)
{
    heft_part p =
        heft_part_at(f, heft_tensor_at(f, heft_tensor_find(f, heft_str_from(name))).first_part);
    assert_int_equal(p.encoding, e);
    assert_int_equal(!p.digest.len, !digest);
    if (digest)
        assert_memory_equal(p.digest.ptr, digest, strlen(digest));
}

static bool can_compress(void)
{
    const heft_codec *const *c = heft_host_default()->codecs;
    while (c && *c && (*c)->encoding != HEFT_ZSTD)
        c++;
    return c && *c;
}

static void every_part_is_stored_as_the_callback_requests(void **state)
{
    static const test_tensor tensors[] = { { "a", HEFT_BOOL, 1, { 50000 } },
                                           { "b", HEFT_F32, 1, { 5 } },
                                           { "c", HEFT_F32, 1, { 5 } } };
    fixture f;
    change c = { 0 };
    heft_convert_options o = options(&c);
    (void)state;
    if (!can_compress())
        skip();
    o.progress = NULL;
    o.storage = store;
    begin(&f, "safetensors", tensors, 3);
    heft_assert_ok(run(&f, "ztensor", &o), &f.err);
    assert_int_equal(c.stop_at, 0);
    assert_stored(f.got, "a", HEFT_ZSTD, "sha256:");
    assert_stored(f.got, "b", HEFT_RAW, "crc32c:");
    assert_stored(f.got, "c", HEFT_RAW, NULL);
    assert_same_data(&f, "c", "c");
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_kept_tensors_are_written),
        cmocka_unit_test(a_renamed_tensor_keeps_its_bytes_and_position),
        cmocka_unit_test(casts_agree_with_heft_dtype_cast),
        cmocka_unit_test(unsupported_casts_are_refused),
        cmocka_unit_test(packed_types_may_end_inside_a_block),
        cmocka_unit_test(transpose_and_cast_to_a_packed_type_agree_with_two_steps),
        cmocka_unit_test(transposed_matrices_agree_with_a_simple_loop),
        cmocka_unit_test(transposing_twice_restores_the_data),
        cmocka_unit_test(transpose_and_cast_agree_with_two_steps),
        cmocka_unit_test(only_matrices_can_be_transposed),
        cmocka_unit_test(metadata_are_added_and_replaced),
        cmocka_unit_test(a_new_config_replaces_the_old_config),
        cmocka_unit_test(a_dry_run_writes_nothing),
        cmocka_unit_test(progress_reaches_the_total_and_can_cancel),
        cmocka_unit_test(a_wrong_checksum_fails_unless_no_verify_is_set),
        cmocka_unit_test(a_file_without_fed_data_cannot_be_converted),
        cmocka_unit_test(every_part_is_stored_as_the_callback_requests),
        cmocka_unit_test(data_are_aligned_as_requested),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
