/* test_failures.c - each failure inside an operation is the result of the operation: each
 * allocation, each read and each write fails in turn, each question for changes of the file finds
 * one, and each report of progress cancels. */
#include "models.h"

/* ---- the failure ---------------------------------------------------------------------------- */

typedef enum kind { ALLOCATION, READ, CHANGE, WRITE, PROGRESS, KINDS } kind;

static const heft_status results[KINDS] = { HEFT_E_NOMEM, HEFT_E_IO, HEFT_E_IO, HEFT_E_IO,
                                            HEFT_E_CANCELLED };

static struct {
    kind kind;
    uint32_t at, calls; /* number of the call that fails, from 1; calls so far; at 0: none */
    bool loses_all;     /* a conversion ended early, because its target holds none of the tensors */
    heft_test_memory memory;
} plan;

static bool fails(kind k)
{
    return plan.at && plan.kind == k && ++plan.calls == plan.at;
}

static heft_status fail_io(heft_error *err)
{
    if (err)
        *err = (heft_error){
            .status = HEFT_E_IO, .os = 5, .offset = HEFT_NOWHERE, .message = "the test fails"
        };
    return HEFT_E_IO;
}

static bool go_on(void *ctx, uint64_t done, uint64_t total)
{
    (void)ctx;
    (void)done;
    (void)total;
    return !fails(PROGRESS);
}

/* ---- sources and sinks ---------------------------------------------------------------------- */

typedef struct test_source {
    heft_source base;
    const uint8_t *bytes;
} test_source;

static heft_status source_read(heft_source *s, uint64_t off, void *buf, size_t len, heft_error *err)
{
    assert_true(len > 0);
    if (fails(READ))
        return fail_io(err);
    memcpy(buf, ((const test_source *)s)->bytes + off, len);
    return HEFT_OK;
}

static heft_status source_unchanged(heft_source *s, heft_error *err)
{
    (void)s;
    return fails(CHANGE) ? fail_io(err) : HEFT_OK;
}

static void source_close(heft_source *s)
{
    free(s);
}

static const heft_source_ops source_ops = { .size = sizeof(heft_source_ops),
                                            .read = source_read,
                                            .close = source_close,
                                            .check_unchanged = source_unchanged };

static heft_source *source_of(heft_bytes b)
{
    test_source *s = calloc(1, sizeof *s);
    assert_non_null(s);
    *s = (test_source){ { &source_ops, b.len }, b.p };
    return &s->base;
}

static heft_status sink_write(heft_sink *s, uint64_t off, const void *data, size_t len,
                              heft_error *err)
{
    (void)s, (void)off, (void)data, (void)len;
    return fails(WRITE) ? fail_io(err) : HEFT_OK;
}

static heft_status sink_finish(heft_sink *s, heft_error *err)
{
    free(s);
    return fails(WRITE) ? fail_io(err) : HEFT_OK;
}

static void sink_discard(heft_sink *s)
{
    free(s);
}

static const heft_sink_ops sink_ops = { .size = sizeof(heft_sink_ops),
                                        .write_at = sink_write,
                                        .finish = sink_finish,
                                        .discard = sink_discard };

static heft_sink *new_sink(void)
{
    heft_sink *s = calloc(1, sizeof *s);
    assert_non_null(s);
    s->ops = &sink_ops;
    return s;
}

static heft_status open_sink(heft_sink **out, void *ctx, const char *name, heft_error *err)
{
    (void)ctx, (void)name;
    *out = NULL;
    if (fails(WRITE))
        return fail_io(err);
    *out = new_sink();
    return HEFT_OK;
}

/* ---- operations ----------------------------------------------------------------------------- */

typedef struct input {
    heft_bytes bytes;
    heft_file *f;
} input;

static heft_status open_input(heft_file **out, heft_bytes b, heft_error *err)
{
    heft_open_options o = HEFT_OPEN_OPTIONS_INIT;
    o.host = &plan.memory.host;
    o.check_parts = true;
    return heft_file_open_source(out, source_of(b), &o, err);
}

static heft_status run_open(input *in, heft_error *err)
{
    heft_file *f;
    heft_status st = open_input(&f, in->bytes, err);
    heft_file_close(st ? NULL : f);
    return st;
}

static heft_status run_verify(input *in, heft_error *err)
{
    heft_verify_options o = HEFT_VERIFY_OPTIONS_INIT;
    heft_verify_result r;
    o.progress = go_on;
    return heft_file_verify(&r, in->f, &o, err);
}

static heft_status run_hash(input *in, heft_error *err)
{
    heft_hash model, tensors[8];
    assert_true(heft_tensor_count(in->f) <= HEFT_COUNT(tensors));
    return heft_file_hash(&model, tensors, in->f, go_on, NULL, err);
}

static heft_status run_part_verify(input *in, heft_error *err)
{
    heft_status st = HEFT_OK;
    bool checked;
    for (uint32_t i = 0; i < heft_tensor_count(in->f) && !st; i++)
        st = heft_part_verify(&checked, in->f, heft_tensor_at(in->f, i).first_part, err);
    return st;
}

static heft_status run_arrays(input *in, heft_error *err)
{
    heft_status st = HEFT_OK;
    for (uint32_t i = 0; i < 2 * heft_tensor_count(in->f) && !st; i++) {
        heft_tensor t = heft_tensor_at(in->f, i / 2);
        heft_array a;
        st = heft_array_read(&a, in->f, t.name, i % 2 ? HEFT_F32 : HEFT_UNTYPED, NULL, 0, err);
        if (!st)
            heft_array_free(&a);
    }
    return st;
}

static heft_status run_slices(input *in, heft_error *err)
{
    heft_status st = HEFT_OK;
    float to[4];
    for (uint32_t i = 0; i < heft_tensor_count(in->f) && !st; i++) {
        heft_tensor t = heft_tensor_at(in->f, i);
        heft_slice axes[4];
        for (uint32_t k = 0; k < t.rank; k++)
            axes[k] = (heft_slice){ 1, k + 2 < t.rank ? 1 : 2, 2 };
        st = heft_array_read_slice(to, sizeof to, in->f, t.name, axes, HEFT_F32, err);
    }
    return st;
}

static heft_status run_streams(input *in, heft_error *err)
{
    heft_status st = HEFT_OK;
    for (uint32_t i = 0; i < heft_tensor_count(in->f) && !st; i++) {
        heft_stream *s;
        uint8_t byte[40];
        heft_part p = heft_part_at(in->f, heft_tensor_at(in->f, i).first_part);
        st = heft_stream_open_checked(&s, in->f, heft_tensor_at(in->f, i).first_part, err);
        for (uint64_t at = 0; at < p.length && !st; at += sizeof byte)
            st = heft_stream_read(byte, s, p.length - at < 40 ? (size_t)(p.length - at) : 40, err);
        heft_stream_close(s);
    }
    return st;
}

static heft_status run_read_many(input *in, heft_error *err)
{
    uint32_t parts[8], n = 0;
    void *to[8];
    for (; n < heft_tensor_count(in->f) && n < 8; n++) {
        parts[n] = heft_tensor_at(in->f, n).first_part;
        to[n] = malloc((size_t)heft_part_at(in->f, parts[n]).length + 1);
    }
    heft_status st = heft_part_read_many(to, in->f, parts, n, go_on, NULL, err);
    while (n)
        free(to[--n]);
    return st;
}

static heft_status run_ids(input *in, heft_error *err)
{
    heft_ids *ids;
    heft_status st = heft_ids_open(&ids, in->f, err);
    if (!st)
        heft_ids_close(ids);
    return st;
}

static heft_status run_doctor(input *in, heft_error *err)
{
    heft_doctor_options o = HEFT_DOCTOR_OPTIONS_INIT;
    heft_doctor *d;
    o.host = &plan.memory.host;
    o.progress = go_on;
    o.path = "model.gguf";
    heft_status st = heft_doctor_open(&d, source_of(in->bytes), &o, err);
    if (!st)
        heft_doctor_close(d);
    return st;
}

static heft_status run_salvage(input *in, heft_error *err)
{
    heft_doctor_options o = HEFT_DOCTOR_OPTIONS_INIT;
    heft_doctor *d;
    o.host = &plan.memory.host;
    heft_status st = heft_doctor_open(&d, source_of(in->bytes), &o, err);
    if (st)
        return st;
    heft_doctor_summary summary;
    heft_doctor_summarize(&summary, d);
    if (summary.can_salvage)
        st = heft_doctor_salvage(d, heft_format_find(HEFT_STR("safetensors")), new_sink(), NULL,
                                 go_on, NULL, err);
    heft_doctor_close(d);
    return st;
}

static heft_dtype to_f64(void *ctx, const heft_tensor *t)
{
    (void)ctx;
    return heft_dtype_can_cast(HEFT_F64, t->dtype) && t->layout == HEFT_DENSE ? HEFT_F64
                                                                              : HEFT_UNTYPED;
}

static heft_dtype to_f16(void *ctx, const heft_tensor *t)
{
    (void)ctx;
    return heft_dtype_can_cast(HEFT_F16, t->dtype) && t->layout == HEFT_DENSE ? HEFT_F16
                                                                              : HEFT_UNTYPED;
}

static bool if_matrix(void *ctx, const heft_tensor *t)
{
    (void)ctx;
    return t->rank == 2 && t->layout == HEFT_DENSE;
}

static bool if_sparse(void *ctx, const heft_tensor *t)
{
    (void)ctx;
    return t->layout != HEFT_DENSE;
}

static heft_layout as_coo(void *ctx, const heft_tensor *t)
{
    (void)ctx;
    return t->rank ? HEFT_SPARSE_COO : HEFT_DENSE;
}

/* Return which file a failing call is about. */
static heft_about about_call(kind k)
{
    return k == WRITE                 ? HEFT_ABOUT_TARGET
           : k == READ || k == CHANGE ? HEFT_ABOUT_SOURCE
                                      : HEFT_ABOUT_NOTHING;
}

static heft_status convert(input *in, const char *to, const char *digest, heft_encoding encoding,
                           heft_convert_options o, heft_error *err)
{
    heft_write_options w = HEFT_WRITE_OPTIONS_INIT;
    w.host = &plan.memory.host;
    w.storage.digest = digest;
    w.storage.encoding = encoding;
    w.allow_loss = true;
    o.write = &w;
    o.progress = go_on;
    heft_status st = heft_file_convert(in->f, heft_format_find(heft_str_from(to)), new_sink(), &o,
                                       err);
    if (st && plan.at && plan.calls >= plan.at)
        assert_int_equal(err->about, about_call(plan.kind));
    plan.loses_all |= st && heft_test_is_rule(err, "heft/all-left-out");
    return plan.loses_all ? HEFT_OK : st;
}

static heft_status run_copy(input *in, heft_error *err)
{
    heft_convert_options o = HEFT_CONVERT_OPTIONS_INIT;
    return convert(in, "ztensor", "sha256", HEFT_RAW, o, err);
}

static heft_status run_compress(input *in, heft_error *err)
{
    heft_convert_options o = HEFT_CONVERT_OPTIONS_INIT;
    return convert(in, "ztensor", "crc32c", HEFT_ZSTD, o, err);
}

/* zTensor 2 has rules for the values of booleans and for the order of sparse entries. */
static heft_status run_checked_values(input *in, heft_error *err)
{
    heft_write_options w = HEFT_WRITE_OPTIONS_INIT;
    heft_convert_options o = HEFT_CONVERT_OPTIONS_INIT;
    w.host = &plan.memory.host;
    w.version = "2";
    w.allow_loss = true;
    o.write = &w;
    o.progress = go_on;
    return heft_file_convert(in->f, heft_format_find(HEFT_STR("ztensor")), new_sink(), &o, err);
}

static heft_status run_cast(input *in, heft_error *err)
{
    heft_convert_options o = HEFT_CONVERT_OPTIONS_INIT;
    o.cast = to_f64;
    o.transpose = if_matrix;
    o.densify = if_sparse;
    return convert(in, "mag", NULL, HEFT_RAW, o, err);
}

static heft_status run_lossy_cast(input *in, heft_error *err)
{
    heft_convert_options o = HEFT_CONVERT_OPTIONS_INIT;
    o.cast = to_f16;
    return convert(in, "ztensor", NULL, HEFT_RAW, o, err);
}

static heft_status run_sparsify(input *in, heft_error *err)
{
    heft_convert_options o = HEFT_CONVERT_OPTIONS_INIT;
    o.sparsify = as_coo;
    return convert(in, "ztensor", NULL, HEFT_RAW, o, err);
}

static heft_status run_split(input *in, heft_error *err)
{
    heft_write_options w = HEFT_WRITE_OPTIONS_INIT;
    heft_convert_options c = HEFT_CONVERT_OPTIONS_INIT;
    heft_split_options o = HEFT_SPLIT_OPTIONS_INIT;
    w.host = &plan.memory.host;
    w.allow_loss = true;
    c.write = &w;
    c.progress = go_on;
    o.convert = &c;
    o.count = 1;
    o.max_bytes = 2000;
    o.open = open_sink;
    return heft_file_split(in->f, heft_format_find(HEFT_STR("safetensors")), &o, err);
}

static heft_status run_edit(input *in, heft_error *err)
{
    heft_edit_options o = HEFT_EDIT_OPTIONS_INIT;
    heft_value v = { .kind = HEFT_KIND_STR, .key = HEFT_STR("k"), .as.s = HEFT_STR("v") };
    heft_edit *e;
    o.host = &plan.memory.host;
    o.set = &v;
    o.set_count = 1;
    heft_status st = heft_edit_plan(&e, in->f, &o, err);
    if (!st)
        heft_edit_close(e);
    return st;
}

static heft_status run_rename(input *in, heft_error *err)
{
    heft_edit_options o = HEFT_EDIT_OPTIONS_INIT;
    heft_rename rename = { HEFT_STR("a"), HEFT_STR("a name of more than sixteen letters") };
    heft_edit *e;
    o.host = &plan.memory.host;
    o.rename = &rename;
    o.rename_count = 1;
    heft_status st = heft_edit_plan(&e, in->f, &o, err);
    if (!st)
        heft_edit_close(e);
    return st;
}

static heft_status run_join(input *in, heft_error *err)
{
    const heft_file *const files[] = { in->f };
    heft_file *joined;
    heft_status st = heft_file_join(&joined, files, 1, NULL, err);
    if (!st)
        heft_file_close(joined);
    return st;
}

static heft_status run_arrays_written(input *in, heft_error *err)
{
    heft_save_options o = HEFT_SAVE_OPTIONS_INIT;
    heft_write_options w = HEFT_WRITE_OPTIONS_INIT;
    heft_value meta[] = { { .kind = HEFT_KIND_STR, .key = HEFT_STR("k"), .as.s = HEFT_STR("v") },
                          { .kind = HEFT_KIND_STR, .key = HEFT_STR("l"), .as.s = HEFT_STR("w") } };
    static const uint64_t dims[] = { 2, 2 };
    heft_array arrays[2];
    (void)in;
    w.host = &plan.memory.host;
    o.write = &w;
    o.format = heft_format_find(HEFT_STR("safetensors"));
    o.meta = meta;
    o.meta_count = 2;
    for (size_t i = 0; i < 2; i++)
        arrays[i] = (heft_array){ .name = heft_test_str(i ? "b" : "a"),
                                  .data = "0123456789abcde",
                                  .dims = dims,
                                  .rank = 2,
                                  .dtype = HEFT_F32 };
    return heft_array_write(new_sink(), arrays, 2, &o, err);
}

static heft_status run_blob(input *in, heft_error *err)
{
    heft_convert_options o = HEFT_CONVERT_OPTIONS_INIT;
    heft_write_options w = HEFT_WRITE_OPTIONS_INIT;
    heft_blob blob;
    heft_sink *s;
    w.host = &plan.memory.host;
    w.allow_loss = true;
    o.write = &w;
    heft_status st = heft_sink_open_memory(&s, &blob, &plan.memory.host, err);
    if (!st)
        st = heft_file_convert(in->f, heft_format_find(HEFT_STR("safetensors")), s, &o, err);
    heft_blob_free(&blob);
    return st;
}

/* ---- inputs --------------------------------------------------------------------------------- */

static heft_layout sparse_if_named(void *ctx, const heft_tensor *t)
{
    (void)ctx;
    return *t->name.ptr == 'r'   ? HEFT_SPARSE_CSR
           : *t->name.ptr == 's' ? HEFT_SPARSE_COO
                                 : HEFT_DENSE;
}

static heft_bytes make_model(heft_encoding encoding)
{
    static const test_tensor tensors[] = {
        { "a", HEFT_F32, 2, { 20, 30 } }, { "b", HEFT_BF16, 3, { 3, 4, 5 } },
        { "c", HEFT_I64, 1, { 9 } },      { "r", HEFT_F32, 2, { 6, 7 } },
        { "s", HEFT_U8, 2, { 5, 9 } },    { "t", HEFT_F32, 2, { 20, 30 } },
        { "u", HEFT_BOOL, 1, { 99 } },
    };
    heft_write_options w = HEFT_WRITE_OPTIONS_INIT;
    heft_convert_options o = HEFT_CONVERT_OPTIONS_INIT;
    w.storage.encoding = encoding;
    w.storage.digest = "sha256";
    o.write = &w;
    o.sparsify = sparse_if_named;
    return heft_test_converted("safetensors", tensors, HEFT_COUNT(tensors), "ztensor", &o);
}

/* Elements in the order of Fortran, or big-endian. */
static heft_bytes make_npy(const char *type, const char *order)
{
    char head[128];
    uint8_t file[128 + 600 * 4];
    memset(head, ' ', sizeof head);
    memcpy(head, "\x93NUMPY\1\0\x76", 10);
    head[9] = 0;
    int n = snprintf(head + 10, sizeof head - 10,
                     "{'descr': '%s', 'fortran_order': %s, 'shape': (20, 30), }", type, order);
    head[10 + n] = ' ';
    head[127] = '\n';
    memcpy(file, head, sizeof head);
    for (size_t i = 0; i < 2400; i++)
        file[128 + i] = (uint8_t)(i * 7);
    return heft_test_copy(file, sizeof file);
}

static heft_bytes make_truncated(void)
{
    static const test_tensor tensors[] = { { "a", HEFT_F32, 2, { 20, 30 } },
                                           { "b", HEFT_F32, 1, { 3000 } } };
    heft_bytes b = heft_test_model("gguf", tensors, 2);
    b.len -= 5000;
    return b;
}

static heft_bytes make_zero_tail(void)
{
    static const test_tensor tensors[] = { { "a", HEFT_F32, 2, { 20, 30 } },
                                           { "b", HEFT_F32, 1, { 30000 } } };
    heft_bytes b = heft_test_model("safetensors", tensors, 2);
    memset(b.p + b.len - 70000, 0, 70000);
    return b;
}

static heft_bytes make_foreign(void)
{
    static char text[9000];
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = i % 50 ? 'x' : '\n';
    memcpy(text, "version https://git-lfs", 23);
    return heft_test_copy(text, sizeof text);
}

/* ---- each failure --------------------------------------------------------------------------- */

enum { ZT = 1, ZSTD = 2, NPY = 4, BIG = 8, CUT = 16, TAIL = 32, FOREIGN = 64, EMPTY = 128 };
enum { FIRST_FORMAT = 8 };
/* Bits from FIRST_FORMAT on stand for the formats that this build writes. */
#define FORMATS (~0u << FIRST_FORMAT)
#define MODELS  (ZT | ZSTD | NPY | BIG | TAIL | FORMATS)
enum { MAX_INPUTS = 32 };

enum {
    NO_FILE = 1,   /* the operation does not need the open file */
    OTHER_WAY = 2, /* if a checksum cannot be derived, all checksums are compared instead */
    ASKS = 4       /* the operation asks at the end whether the file has changed */
};

static const struct operation {
    const char *name;
    heft_status (*run)(input *in, heft_error *err);
    unsigned inputs;
    unsigned flags;
} operations[] = {
    { "open", run_open, MODELS, NO_FILE },
    { "verify", run_verify, MODELS, ASKS },
    { "hash", run_hash, MODELS, ASKS },
    { "part verify", run_part_verify, MODELS, 0 },
    { "arrays", run_arrays, MODELS & ~(unsigned)(ZT | ZSTD), 0 },
    { "slices", run_slices, NPY | BIG, 0 },
    { "streams", run_streams, MODELS, 0 },
    { "read many", run_read_many, MODELS, 0 },
    { "ids", run_ids, MODELS, 0 },
    { "doctor", run_doctor, ~0u, NO_FILE | ASKS },
    { "salvage", run_salvage, CUT | TAIL, NO_FILE | ASKS },
    { "copy", run_copy, MODELS, ASKS },
    { "compress", run_compress, MODELS, ASKS },
    { "checked values", run_checked_values, MODELS, ASKS },
    { "cast", run_cast, MODELS, ASKS },
    { "lossy cast", run_lossy_cast, MODELS, ASKS },
    { "sparsify", run_sparsify, NPY | BIG, ASKS },
    { "split", run_split, MODELS, ASKS },
    { "edit", run_edit, ZT | ZSTD | TAIL, 0 },
    { "rename", run_rename, FORMATS, OTHER_WAY },
    { "join", run_join, MODELS, 0 },
    { "arrays written", run_arrays_written, ZT, NO_FILE },
    { "blob", run_blob, NPY | TAIL, ASKS },
};

/* Run an operation whose call number `at` fails; return false if there are fewer calls. */
static bool run_failing(const struct operation *op, heft_bytes b, kind k, uint32_t at)
{
    input in = { .bytes = b };
    heft_error err;
    plan.at = 0;
    plan.loses_all = false;
    heft_test_memory_init(&plan.memory, 0);
    if (!(op->flags & NO_FILE))
        heft_assert_ok(open_input(&in.f, b, &err), &err);
    heft_test_memory_rewind(&plan.memory);
    plan.kind = k;
    plan.at = at;
    plan.calls = 0;
    plan.memory.fail_at = k == ALLOCATION ? at : 0;
    heft_test_poison(&err);
    heft_status st = op->run(&in, &err);
    uint32_t calls = k == ALLOCATION ? atomic_load(&plan.memory.calls) : plan.calls;
    plan.at = 0;
    plan.memory.fail_at = 0;
    bool may_succeed = calls < at || (op->flags & OTHER_WAY && k == READ);
    if (st != (calls < at ? HEFT_OK : results[k]) && !(may_succeed && !st))
        print_error("%s, failure %d at call %u: ", op->name, (int)k, (unsigned)at);
    heft_assert_status(st, may_succeed && !st ? HEFT_OK : results[k], &err);
    heft_file_close(in.f);
    heft_assert_all_freed(&plan.memory);
    return calls >= at;
}

static void fail_each(const struct operation *op, heft_bytes b, kind k)
{
    uint32_t calls = 0;
    while (run_failing(op, b, k, calls + 1))
        calls++;
    assert_true(calls || k != CHANGE || !(op->flags & ASKS) || plan.loses_all);
}

static void reports_each_failure(void **state)
{
    static const test_tensor tensors[] = { { "a", HEFT_F32, 2, { 4, 5 } },
                                           { "b", HEFT_F32, 1, { 3 } } };
    unsigned count = FIRST_FORMAT;
    heft_bytes inputs[MAX_INPUTS] = { make_model(HEFT_RAW),    make_model(HEFT_ZSTD),
                                      make_npy("<f4", "True"), make_npy(">f4", "False"),
                                      make_truncated(),        make_zero_tail(),
                                      make_foreign(),          heft_test_copy("", 0) };
    (void)state;
    for (size_t i = 0; heft_test_editable(i) && count < MAX_INPUTS; i++)
        inputs[count++] = heft_test_model(heft_test_editable(i), tensors, 2);
    unsigned editable = count;
    if (heft_format_find(HEFT_STR("torch")))
        inputs[count++] = heft_test_model("torch", tensors, 2); /* written, and not edited */
    for (size_t o = 0; o < HEFT_COUNT(operations); o++)
        for (unsigned i = 0; i < count; i++)
            for (int k = 0; k < KINDS && operations[o].inputs & 1u << i &&
                            (i < editable || operations[o].run != run_rename);
                 k++)
                fail_each(&operations[o], inputs[i], (kind)k);
    for (unsigned i = 0; i < count; i++)
        heft_test_free(&inputs[i]);
}

/* CRC-32 and CRC-32C are in every build, without digests of the host. */
static void builtin_checksums_need_no_host(void **state)
{
    static const char *const names[] = { "crc32", "crc32c" };
    static const test_tensor tensors[] = { { "a", HEFT_F32, 2, { 20, 30 } } };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(names); i++) {
        heft_write_options w = HEFT_WRITE_OPTIONS_INIT;
        heft_convert_options o = HEFT_CONVERT_OPTIONS_INIT;
        heft_host host = *heft_host_default();
        heft_error err;
        bool checked = false;
        w.storage.digest = i ? names[i] : NULL;
        o.write = &w;
        heft_bytes b = heft_test_converted("safetensors", tensors, 1, i ? "ztensor" : "npz", &o);
        host.digests = NULL;
        heft_file *f = heft_test_opened(b, &host, false);
        heft_verify_result r;
        heft_assert_ok(heft_file_verify(&r, f, NULL, &err), &err);
        assert_int_equal(r.faults, 0);
        assert_int_equal(r.payload_checked, r.payload_bytes);
        heft_assert_ok(heft_part_verify(&checked, f, heft_tensor_at(f, 0).first_part, &err), &err);
        assert_true(checked);
        heft_file_close(f);
        heft_test_free(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reports_each_failure),
        cmocka_unit_test(builtin_checksums_need_no_host),
    };
    return cmocka_run_group_tests_name("failures", tests, NULL, NULL);
}
