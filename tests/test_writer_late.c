/* test_writer_late.c - tensors and metadata that are added after heft_writer_begin(). */
#include "models.h"

typedef struct losses { /* reported losses, one line each */
    char text[2048];
    size_t len;
} losses;

typedef struct fixture {
    heft_test_memory m;
    heft_test_sink sink;
    heft_write_options opt;
    heft_error err;
    heft_writer *w;
    losses losses;
} fixture;

static void note_loss(void *ctx, heft_severity severity, const char *rule, heft_str tensor,
                      const char *text)
{
    losses *t = ctx;
    t->len += (size_t)snprintf(t->text + t->len, sizeof t->text - t->len, "%d %s %.*s: %s\n",
                               (int)severity, rule, (int)tensor.len, tensor.ptr ? tensor.ptr : "",
                               text);
    assert_true(t->len < sizeof t->text);
}

static void prepare(fixture *f, const char *version)
{
    memset(f, 0, sizeof *f);
    heft_test_memory_init(&f->m, 0);
    f->opt = (heft_write_options)HEFT_WRITE_OPTIONS_INIT;
    f->opt.host = &f->m.host;
    f->opt.version = version;
    f->opt.on_loss = note_loss;
    f->opt.ctx = &f->losses;
}

static void open_writer(fixture *f, bool is_stream)
{
    heft_assert_ok(heft_writer_open(&f->w, heft_format_find(HEFT_STR("ztensor")),
                                    heft_test_sink_init(&f->sink, is_stream), &f->opt, &f->err),
                   &f->err);
}

static void begin(fixture *f)
{
    heft_assert_ok(heft_writer_begin(f->w, &f->err), &f->err);
}

static void finish(fixture *f)
{
    heft_assert_ok(heft_writer_finish(f->w, &f->err), &f->err);
}

static void end(fixture *f)
{
    heft_test_sink_free(&f->sink);
    heft_assert_all_freed(&f->m);
}

/* ---- a model -------------------------------------------------------------------------------- */

enum { ELEMENTS = 40000 }; /* elements of the largest tensor */

static const struct {
    const char *name;
    uint64_t elements;
} tensors[] = { { "a", 3 }, { "b", ELEMENTS }, { "none", 0 }, { "c", 1 }, { "d", 200 } };

enum { TENSORS = sizeof tensors / sizeof *tensors };

static uint32_t numbers[ELEMENTS];

static void add(fixture *f, uint32_t i, const heft_storage *storage, uint32_t *part)
{
    heft_tensor_spec s = HEFT_TENSOR_SPEC_INIT;
    s.name = heft_test_str(tensors[i].name);
    s.dtype = HEFT_U32;
    s.dims = &tensors[i].elements;
    s.rank = 1;
    s.storage = storage;
    heft_assert_ok(heft_writer_add_tensor(part, f->w, &s, &f->err), &f->err);
}

static void fill(fixture *f, uint32_t i, uint32_t part)
{
    size_t len = (size_t)tensors[i].elements * 4, half = len / 2;
    heft_assert_ok(heft_writer_write(f->w, part, numbers, half, &f->err), &f->err);
    heft_assert_ok(heft_writer_write(f->w, part, (uint8_t *)numbers + half, len - half, &f->err),
                   &f->err);
}

static heft_value text(const char *key, const char *s)
{
    heft_value v = { .kind = HEFT_KIND_STR, .key = heft_test_str(key) };
    v.as.s = heft_test_str(s);
    return v;
}

/* Write a model; `declared` tensors are added before heft_writer_begin(), the rest afterwards. */
static void write_model(fixture *f, uint32_t declared, bool is_stream)
{
    uint32_t part[TENSORS];
    open_writer(f, is_stream);
    if (declared)
        heft_assert_ok(heft_writer_add_meta(f->w, text("k", "v"), &f->err), &f->err);
    for (uint32_t i = 0; i < declared; i++)
        add(f, i, NULL, &part[i]);
    begin(f);
    if (!declared)
        heft_assert_ok(heft_writer_add_meta(f->w, text("k", "v"), &f->err), &f->err);
    for (uint32_t i = 0; i < declared; i++)
        fill(f, i, part[i]);
    for (uint32_t i = declared; i < TENSORS; i++) {
        add(f, i, NULL, &part[i]);
        fill(f, i, part[i]);
    }
    finish(f);
}

static const char *const versions[] = { "1.0", "1.1", "1.2", "2" };

/* ---- same bytes ----------------------------------------------------------------------------- */

static void compare_with_declared(const char *version, heft_encoding encoding, const char *digest)
{
    fixture whole, late;
    prepare(&whole, version);
    whole.opt.storage.encoding = encoding;
    whole.opt.storage.digest = digest;
    write_model(&whole, TENSORS, false);
    for (uint32_t declared = 0; declared < TENSORS; declared++)
        for (int is_stream = 0; is_stream < 2; is_stream++) {
            prepare(&late, version);
            late.opt.storage.encoding = encoding;
            late.opt.storage.digest = digest;
            write_model(&late, declared, is_stream);
            heft_assert_same_bytes(heft_test_sink_bytes(&whole.sink),
                                   heft_test_sink_bytes(&late.sink));
            end(&late);
        }
    end(&whole);
}

static void late_and_declared_tensors_give_the_same_file(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < ELEMENTS; i++)
        numbers[i] = i * i;
    for (size_t v = 0; v < 3;
         v++) { /* version 2 is excluded: it sorts the declared tensors by name */
        compare_with_declared(versions[v], HEFT_RAW, NULL);
        compare_with_declared(versions[v], HEFT_RAW, "crc32c");
        compare_with_declared(versions[v], HEFT_RAW, "sha256");
        compare_with_declared(versions[v], HEFT_ZSTD, "crc32c");
    }
}

static void check_file(fixture *f)
{
    heft_file *file;
    heft_verify_result r = { .notes = 0 };
    uint32_t got[ELEMENTS];
    heft_assert_ok(heft_test_open(&file, heft_test_sink_bytes(&f->sink), NULL, &f->err), &f->err);
    heft_assert_ok(heft_file_verify(&r, file, NULL, &f->err), &f->err);
    assert_int_equal(r.faults + r.warnings, 0);
    assert_int_equal(heft_tensor_count(file), TENSORS);
    for (uint32_t i = 0; i < TENSORS; i++) {
        uint32_t t = heft_tensor_find(file, heft_str_from(tensors[i].name));
        size_t len = (size_t)tensors[i].elements * 4;
        heft_assert_ok(
            heft_part_read(got, file, heft_tensor_at(file, t).first_part, 0, len, &f->err),
            &f->err);
        assert_memory_equal(got, numbers, len);
    }
    heft_file_close(file);
}

static void stores_each_tensor_with_its_own_encoding(void **state)
{
    static const heft_storage storage[2][3] = {
        { { .digest = NULL },
          { .encoding = HEFT_ZSTD, .level = 1, .digest = "crc32c" },
          { .digest = "sha256" } },
        { { .digest = "xxh3" },
          { .encoding = HEFT_ZSTD, .level = 1, .digest = "xxh3" },
          { .encoding = HEFT_ZSTD, .level = 19, .digest = "sha256" } }
    };
    (void)state;
    for (size_t v = 0; v < 4; v++)
        for (uint32_t declared = 0; declared < 3; declared++)
            for (int is_stream = 0; is_stream < 2; is_stream++) {
                fixture f;
                uint32_t part[TENSORS];
                prepare(&f, versions[v]);
                open_writer(&f, is_stream);
                for (uint32_t i = 0; i < declared; i++)
                    add(&f, i, &storage[v == 3][i % 3], &part[i]);
                begin(&f);
                for (uint32_t i = declared; i < TENSORS; i++) /* before any data */
                    add(&f, i, &storage[v == 3][i % 3], &part[i]);
                for (uint32_t i = 0; i < TENSORS; i++)
                    fill(&f, i, part[i]);
                finish(&f);
                check_file(&f);
                end(&f);
            }
}

/* ---- refusals ------------------------------------------------------------------------------- */

static heft_status try_add(fixture *f, const char *name, heft_dtype t)
{
    uint32_t part;
    uint64_t dims[1] = { 2 };
    return heft_writer_add_dense(&part, f->w, heft_test_str(name), t, dims, 1, &f->err);
}

static void refuses_duplicate_names_and_keys(void **state)
{
    fixture f;
    heft_value list = { .kind = HEFT_KIND_LIST, .key = { "k2", 2 } };
    (void)state;
    for (size_t v = 0; v < 4; v++) {
        uint32_t part;
        prepare(&f, versions[v]);
        open_writer(&f, true);
        heft_assert_ok(heft_writer_add_meta(f.w, text("k", "v"), &f.err), &f.err);
        add(&f, 0, NULL, &part);
        begin(&f);
        heft_assert_fails(try_add(&f, "a", HEFT_U8), HEFT_E_ARGUMENT, &f.err,
                          "tensor 'a' is in the file already");
        fill(&f, 0, part);
        add(&f, 3, NULL, &part);
        heft_assert_fails(try_add(&f, "c", HEFT_U8), HEFT_E_ARGUMENT, &f.err,
                          "tensor 'c' is in the file already");
        fill(&f, 3, part);
        heft_assert_ok(heft_writer_add_meta(f.w, text("k2", "v"), &f.err), &f.err);
        heft_assert_fails(heft_writer_add_meta(f.w, text("k", "v"), &f.err), HEFT_E_ARGUMENT,
                          &f.err, "the metadata have the key 'k' already");
        heft_assert_fails(heft_writer_add_meta(f.w, list, &f.err), HEFT_E_ARGUMENT, &f.err,
                          "the key 'k2' already");
        finish(&f);
        end(&f);
    }
}

static void continues_after_a_refused_tensor(void **state)
{
    fixture f;
    heft_file *file;
    uint32_t part;
    (void)state;
    prepare(&f, "1.0");
    open_writer(&f, true);
    begin(&f);
    add(&f, 0, NULL, &part);
    fill(&f, 0, part);
    heft_assert_fails(try_add(&f, "bad", HEFT_C64), HEFT_E_LOSSY, &f.err, "1 problem");
    assert_non_null(strstr(f.losses.text, "2 ztensor/dtype bad: element type c64"));
    add(&f, 3, NULL, &part);
    fill(&f, 3, part);
    finish(&f);
    heft_assert_ok(heft_test_open(&file, heft_test_sink_bytes(&f.sink), NULL, &f.err), &f.err);
    assert_int_equal(heft_tensor_count(file), 2);
    heft_file_close(file);
    end(&f);
}

static void accepts_the_bytes_of_dropped_tensors(void **state)
{
    fixture f;
    heft_file *file;
    uint32_t part[3];
    uint64_t dims[1] = { 2 };
    (void)state;
    prepare(&f, "1.0");
    f.opt.allow_loss = true;
    open_writer(&f, true);
    begin(&f);
    add(&f, 0, NULL, &part[0]);
    heft_assert_ok(
        heft_writer_add_dense(&part[1], f.w, heft_test_str("bad"), HEFT_C64, dims, 1, &f.err),
        &f.err);
    add(&f, 3, NULL, &part[2]);
    fill(&f, 0, part[0]);
    heft_assert_ok(heft_writer_write(f.w, part[1], numbers, 16, &f.err), &f.err);
    fill(&f, 3, part[2]);
    finish(&f);
    heft_assert_ok(heft_test_open(&file, heft_test_sink_bytes(&f.sink), NULL, &f.err), &f.err);
    assert_int_equal(heft_tensor_count(file), 2);
    assert_int_equal(heft_tensor_find(file, HEFT_STR("bad")), HEFT_NONE);
    heft_file_close(file);
    end(&f);
}

static void other_formats_refuse_late_tensors(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < heft_format_count(); i++) {
        const heft_format *format = heft_format_at(i);
        heft_test_sink sink;
        fixture f;
        uint32_t caps = heft_format_caps(format), part;
        uint64_t dims[1] = { 1 };
        if (!(caps & HEFT_CAN_WRITE) || caps & HEFT_CAN_APPEND)
            continue;
        heft_assert_ok(
            heft_writer_open(&f.w, format, heft_test_sink_init(&sink, false), NULL, &f.err),
            &f.err);
        heft_assert_ok(
            heft_writer_add_dense(&part, f.w, heft_test_str("a"), HEFT_F32, dims, 1, &f.err),
            &f.err);
        heft_assert_ok(heft_writer_begin(f.w, &f.err), &f.err);
        heft_assert_fails(try_add(&f, "b", HEFT_F32), HEFT_E_ARGUMENT, &f.err, "write zTensor");
        heft_assert_fails(heft_writer_add_meta(f.w, text("k", "v"), &f.err), HEFT_E_ARGUMENT,
                          &f.err, "metadata come too late");
        heft_assert_ok(heft_writer_write(f.w, part, numbers, 4, &f.err), &f.err);
        finish(&f);
        heft_test_sink_free(&sink);
    }
}

/* ---- metadata ------------------------------------------------------------------------------- */

static void adds_nested_metadata_between_tensors(void **state)
{
    fixture f;
    heft_file *file;
    heft_value v, list = { .kind = HEFT_KIND_LIST, .key = { "list", 4 } };
    uint32_t part;
    (void)state;
    prepare(&f, "1.2");
    open_writer(&f, true);
    begin(&f);
    heft_assert_ok(heft_writer_add_meta(f.w, list, &f.err), &f.err);
    add(&f, 0, NULL, &part);
    heft_assert_ok(heft_writer_add_meta(f.w, text("", "x"), &f.err), &f.err);
    fill(&f, 0, part);
    heft_assert_ok(heft_writer_end_meta(f.w, &f.err), &f.err);
    finish(&f);
    heft_assert_ok(heft_test_open(&file, heft_test_sink_bytes(&f.sink), NULL, &f.err), &f.err);
    assert_true(heft_meta_find(&v, file, HEFT_STR("list")));
    assert_int_equal(v.as.container.count, 1);
    heft_file_close(file);
    end(&f);
    prepare(&f, "1.2");
    open_writer(&f, true);
    begin(&f);
    heft_assert_ok(heft_writer_add_meta(f.w, list, &f.err), &f.err);
    heft_assert_fails(heft_writer_finish(f.w, &f.err), HEFT_E_ARGUMENT, &f.err, "still open");
    assert_true(f.sink.discarded);
    end(&f);
}

static void refuses_or_drops_unsupported_metadata(void **state)
{
    fixture f;
    heft_file *file;
    heft_value list = { .kind = HEFT_KIND_LIST, .key = { "list", 4 } };
    (void)state;
    for (int strict = 0; strict < 2; strict++) {
        prepare(&f, "1.0");
        f.opt.strict = strict;
        open_writer(&f, true);
        begin(&f);
        heft_assert_ok(heft_writer_add_meta(f.w, list, &f.err), &f.err);
        heft_status st = heft_writer_end_meta(f.w, &f.err);
        heft_assert_status(st, strict ? HEFT_E_LOSSY : HEFT_OK, &f.err);
        heft_assert_ok(heft_writer_add_meta(f.w, text("k", "v"), &f.err), &f.err);
        finish(&f);
        heft_assert_ok(heft_test_open(&file, heft_test_sink_bytes(&f.sink), NULL, &f.err), &f.err);
        assert_int_equal(heft_meta_count(file), 1);
        heft_file_close(file);
        char *first = strstr(f.losses.text, "metadata 'list' is left out");
        assert_non_null(first);
        assert_null(strstr(first + 1, "metadata 'list' is left out")); /* reported once */
        end(&f);
    }
}

static void reports_each_loss_once(void **state)
{
    fixture f;
    uint32_t part;
    heft_tensor_spec s = HEFT_TENSOR_SPEC_INIT;
    const uint64_t dims[2] = { 1, 1 };
    const heft_component c[] = { { { "values", 6 }, HEFT_F32, 0, NULL },
                                 { { "coords", 6 }, HEFT_I32, 0, NULL } };
    (void)state;
    prepare(&f, "1.0");
    open_writer(&f, false);
    s.name = heft_test_str("s1");
    s.dtype = HEFT_F32;
    s.dims = dims;
    s.rank = 2;
    s.layout = heft_test_str("sparse_coo");
    s.components = c;
    s.component_count = 2;
    heft_assert_ok(heft_writer_add_tensor(&part, f.w, &s, &f.err), &f.err);
    begin(&f);
    s.name = heft_test_str("s2");
    heft_assert_ok(heft_writer_add_tensor(&part, f.w, &s, &f.err), &f.err);
    finish(&f);
    assert_string_equal(f.losses.text,
                        "0 ztensor/indices s1: 'coords' is converted to u64 from i32\n"
                        "0 ztensor/indices s2: 'coords' is converted to u64 from i32\n");
    end(&f);
}

static heft_status add_sparse(fixture *f, const char *name, const uint64_t coords[4])
{
    static const float values[2] = { 1, 2 };
    const uint64_t dims[2] = { 4, 10 };
    uint64_t stored[4];
    memcpy(stored, coords, sizeof stored);
    heft_test_le(stored, 4, sizeof *stored);
    const heft_component c[] = { { { "coords", 6 }, HEFT_U64, 4, NULL },
                                 { { "values", 6 }, HEFT_F32, 2, NULL } };
    heft_tensor_spec s = HEFT_TENSOR_SPEC_INIT;
    uint32_t part;
    s.name = heft_test_str(name);
    s.dtype = HEFT_F32;
    s.dims = dims;
    s.rank = 2;
    s.layout = heft_test_str("sparse_coo");
    s.components = c;
    s.component_count = 2;
    heft_status st = heft_writer_add_tensor(&part, f->w, &s, &f->err);
    if (!st)
        st = heft_writer_write(f->w, part, stored, sizeof stored, &f->err);
    return st ? st : heft_writer_write(f->w, part + 1, values, 8, &f->err);
}

/* zTensor 2 wants each element once, in order. */
static void checks_the_order_of_a_late_sparse_tensor(void **state)
{
    static const uint64_t sorted[4] = { 0, 3, 9, 2 }, twice[4] = { 3, 3, 2, 2 };
    fixture f;
    (void)state;
    prepare(&f, "2");
    open_writer(&f, false);
    begin(&f);
    heft_assert_ok(add_sparse(&f, "sorted", sorted), &f.err);
    heft_assert_fails(add_sparse(&f, "twice", twice), HEFT_E_ARGUMENT, &f.err, "element 1 repeats");
    heft_writer_discard(f.w);
    end(&f);
}

/* ---- failures ------------------------------------------------------------------------------- */

static void failed_write_is_a_sticky_error(void **state)
{
    fixture f;
    uint32_t part;
    (void)state;
    for (int is_stream = 0; is_stream < 2; is_stream++) {
        heft_status st = HEFT_OK;
        prepare(&f, "1.0");
        open_writer(&f, is_stream);
        begin(&f);
        f.sink.fail_from = 100000;
        add(&f, 1, NULL, &part);
        st = heft_writer_write(f.w, part, numbers, ELEMENTS * 4, &f.err);
        if (st) { /* the error may come later if the data fit into a buffer */
            heft_assert_fails(st, HEFT_E_IO, &f.err, "full");
            heft_assert_fails(try_add(&f, "x", HEFT_U8), HEFT_E_IO, &f.err, "full");
        }
        heft_assert_fails(heft_writer_finish(f.w, &f.err), HEFT_E_IO, &f.err, "full");
        assert_true(f.sink.discarded);
        end(&f);
    }
}

static void discards_an_unfinished_file(void **state)
{
    fixture f;
    uint32_t part;
    (void)state;
    prepare(&f, "1.0");
    open_writer(&f, false);
    begin(&f);
    add(&f, 0, NULL, &part);
    heft_assert_fails(heft_writer_finish(f.w, &f.err), HEFT_E_ARGUMENT, &f.err,
                      "part 0 lacks 12 of its 12 bytes");
    assert_true(f.sink.discarded);
    end(&f);
    prepare(&f, "2");
    open_writer(&f, false);
    begin(&f);
    add(&f, 0, NULL, &part);
    heft_writer_discard(f.w);
    assert_true(f.sink.discarded);
    end(&f);
}

static void reports_every_failed_allocation(void **state)
{
    uint32_t calls = 1;
    bool failed = true;
    (void)state;
    for (; failed; calls++) {
        heft_test_memory m;
        heft_test_sink sink;
        heft_write_options opt = HEFT_WRITE_OPTIONS_INIT;
        heft_error err;
        heft_writer *w = NULL;
        uint32_t part;
        uint64_t dims[1] = { 3 };
        heft_test_memory_init(&m, calls);
        opt.host = &m.host;
        opt.version = "1.2";
        opt.storage.digest = "sha256";
        heft_status st = heft_writer_open(&w, heft_format_find(HEFT_STR("ztensor")),
                                          heft_test_sink_init(&sink, true), &opt, &err);
        if (!st)
            st = heft_writer_begin(w, &err);
        for (uint32_t i = 0; i < 3 && !st; i++) {
            st = heft_writer_add_dense(&part, w, heft_test_str(tensors[i].name), HEFT_U32, dims, 1,
                                       &err);
            if (!st)
                st = heft_writer_write(w, part, numbers, 12, &err);
        }
        if (!st)
            st = heft_writer_add_meta(w, text("k", "v"), &err);
        failed = st;
        if (!st) {
            st = heft_writer_finish(w, &err);
            failed = st;
            w = NULL;
        }
        if (failed)
            heft_assert_status(st, HEFT_E_NOMEM, &err);
        heft_writer_discard(w);
        assert_int_equal(sink.finished, !failed);
        heft_test_sink_free(&sink);
        heft_assert_all_freed(&m);
    }
    assert_true(calls > 20);
}

/* A tensor 2500 times as large does not increase the peak by more than 4 KiB. */
static void memory_does_not_grow_with_the_data_size(void **state)
{
    uint64_t peak[2];
    (void)state;
    for (int i = 0; i < 2; i++) {
        fixture f;
        uint32_t part;
        uint64_t elements = i ? 4000 * 2500 : 4000;
        prepare(&f, "1.0");
        f.opt.storage.digest = "crc32c";
        open_writer(&f, false);
        begin(&f);
        heft_assert_ok(
            heft_writer_add_dense(&part, f.w, heft_test_str("w"), HEFT_U32, &elements, 1, &f.err),
            &f.err);
        for (uint64_t at = 0; at < elements; at += 4000)
            heft_assert_ok(heft_writer_write(f.w, part, numbers, 16000, &f.err), &f.err);
        finish(&f);
        peak[i] = atomic_load(&f.m.peak);
        end(&f);
    }
    assert_true(peak[1] < peak[0] + 4096);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(late_and_declared_tensors_give_the_same_file),
        cmocka_unit_test(stores_each_tensor_with_its_own_encoding),
        cmocka_unit_test(refuses_duplicate_names_and_keys),
        cmocka_unit_test(continues_after_a_refused_tensor),
        cmocka_unit_test(accepts_the_bytes_of_dropped_tensors),
        cmocka_unit_test(other_formats_refuse_late_tensors),
        cmocka_unit_test(adds_nested_metadata_between_tensors),
        cmocka_unit_test(refuses_or_drops_unsupported_metadata),
        cmocka_unit_test(reports_each_loss_once),
        cmocka_unit_test(checks_the_order_of_a_late_sparse_tensor),
        cmocka_unit_test(failed_write_is_a_sticky_error),
        cmocka_unit_test(discards_an_unfinished_file),
        cmocka_unit_test(reports_every_failed_allocation),
        cmocka_unit_test(memory_does_not_grow_with_the_data_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
