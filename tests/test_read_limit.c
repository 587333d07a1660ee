/* test_read_limit.c - heft_limits.read_bytes, for each call that reads tensor data. */
#include "models.h"

enum { ELEMENTS = 3 << 16, BYTES = 4 * ELEMENTS }; /* elements of f32 */

static const test_tensor tensors[] = { { "large.weight", HEFT_BOOL, 2, { 3, BYTES / 3 } },
                                       { "mask", HEFT_BOOL, 1, { 1000 } } };

/* ---- calls that read all bytes of large.weight ---- */

static heft_status read_part(heft_file *f, heft_error *err)
{
    static uint8_t buf[BYTES];
    return heft_part_read(buf, f, 0, 0, sizeof buf, err);
}

static heft_status read_sections(heft_file *f, heft_error *err)
{
    static uint8_t buf[BYTES / 2];
    heft_status st = heft_part_read(buf, f, 0, 0, sizeof buf, err);
    return st ? st : heft_part_read(buf, f, 0, sizeof buf, sizeof buf, err);
}

static heft_status read_many(heft_file *f, heft_error *err)
{
    static uint8_t buf[BYTES];
    void *to = buf;
    uint32_t part = 0;
    return heft_part_read_many(&to, f, &part, 1, NULL, NULL, err);
}

static heft_status stream(heft_file *f, heft_error *err)
{
    static uint8_t buf[BYTES];
    heft_stream *s;
    heft_status st = heft_stream_open(&s, f, 0, err);
    if (st)
        return st;
    st = heft_stream_read(buf, s, sizeof buf, err);
    heft_stream_close(s);
    return st;
}

static heft_status stream_view(heft_file *f, heft_error *err)
{
    static uint8_t buf[BYTES];
    const void *data;
    heft_stream *s;
    heft_status st = heft_stream_open(&s, f, 0, err);
    if (st)
        return st;
    st = heft_stream_view(&data, s, buf, sizeof buf, err);
    heft_stream_close(s);
    return st;
}

static heft_status read_array(heft_file *f, heft_error *err)
{
    heft_array a;
    heft_status st = heft_array_read(&a, f, heft_tensor_at(f, 0).name, HEFT_UNTYPED, NULL, 0, err);
    heft_array_free(&a);
    return st;
}

static heft_status read_cast(heft_file *f, heft_error *err)
{
    heft_array a;
    heft_status st = heft_array_read(&a, f, heft_tensor_at(f, 0).name, HEFT_BF16, NULL, 0, err);
    heft_array_free(&a);
    return st;
}

static heft_status hash(heft_file *f, heft_error *err)
{
    heft_hash model, each[HEFT_COUNT(tensors)];
    return heft_file_hash(&model, each, f, NULL, NULL, err);
}

static heft_status convert_with(heft_file *f, const char *to, const heft_convert_options *opt,
                                heft_error *err)
{
    heft_test_sink sink;
    heft_sink *out = heft_test_sink_init(&sink, false);
    heft_status st = heft_file_convert(f, heft_format_find(heft_str_from(to)), out, opt, err);
    heft_test_sink_free(&sink);
    return st;
}

static heft_status convert(heft_file *f, heft_error *err)
{
    return convert_with(f, "safetensors", NULL, err);
}

static heft_status convert_to_ztensor_2(heft_file *f, heft_error *err)
{
    heft_write_options write = HEFT_WRITE_OPTIONS_INIT;
    heft_convert_options opt = HEFT_CONVERT_OPTIONS_INIT;
    write.version = "2";
    opt.write = &write;
    return convert_with(f, "ztensor", &opt, err);
}

static bool transpose_large(void *ctx, const heft_tensor *t)
{
    (void)ctx;
    return t->rank == 2;
}

static heft_status transpose(heft_file *f, heft_error *err)
{
    heft_convert_options opt = HEFT_CONVERT_OPTIONS_INIT;
    opt.transpose = transpose_large;
    return convert_with(f, "safetensors", &opt, err);
}

static heft_status join(heft_file *f, heft_error *err)
{
    const heft_file *files[] = { f };
    heft_file *joined;
    heft_status st = heft_file_join(&joined, files, 1, NULL, err);
    if (st)
        return st;
    st = hash(joined, err);
    heft_file_close(joined);
    return st;
}

static heft_status verify(heft_file *f, heft_error *err)
{
    return heft_file_verify(NULL, f, NULL, err);
}

static heft_status verify_part(heft_file *f, heft_error *err)
{
    return heft_part_verify(NULL, f, 0, err);
}

static const struct {
    const char *name;
    heft_status (*call)(heft_file *f, heft_error *err);
    bool needs_checksum;
} calls[] = {
    { "read_part", read_part, false },
    { "read_sections", read_sections, false },
    { "read_many", read_many, false },
    { "stream", stream, false },
    { "stream_view", stream_view, false },
    { "read_array", read_array, false },
    { "read_cast", read_cast, false },
    { "hash", hash, false },
    { "convert", convert, false },
    { "transpose", transpose, false },
    { "convert_to_ztensor_2", convert_to_ztensor_2, false },
    { "join", join, false },
    { "verify", verify, true },
    { "verify_part", verify_part, true },
};

/* ---- files ---- */

enum { FILES = 4 };
typedef struct model_file {
    const char *name;
    heft_bytes bytes;
    bool has_checksum;
    uint64_t stored; /* bytes of the large tensor */
    bool is_compressed;
} model_file;

/* Zeros and 0xFF compress well. */
static model_file ztensor(const char *name, heft_encoding encoding)
{
    heft_write_options write = HEFT_WRITE_OPTIONS_INIT;
    heft_convert_options opt = HEFT_CONVERT_OPTIONS_INIT;
    write.storage.encoding = encoding;
    write.storage.digest = "sha256";
    opt.write = &write;
    model_file file = {
        name, heft_test_converted("safetensors", tensors, HEFT_COUNT(tensors), "ztensor", &opt),
        true, BYTES, false
    };
    heft_file *f = heft_test_opened(file.bytes, NULL, false);
    file.stored = heft_part_at(f, 0).stored;
    file.is_compressed = encoding != HEFT_RAW;
    assert_int_equal(heft_part_at(f, 0).encoding, encoding);
    heft_file_close(f);
    return file;
}

/* A .npy file in column-major order: the elements are gathered. */
static heft_bytes fortran(void)
{
    char header[128];
    int n = snprintf(header, sizeof header, "{'descr':'<f4','fortran_order':True,'shape':(3,%d)}\n",
                     ELEMENTS / 3);
    heft_bytes b = { calloc(1, 10 + (size_t)n + BYTES), 10 + (size_t)n + BYTES };
    assert_non_null(b.p);
    memcpy(b.p, "\x93NUMPY\1\0", 8);
    b.p[8] = (uint8_t)n;
    memcpy(b.p + 10, header, (size_t)n);
    return b;
}

static void make_files(model_file *files)
{
    files[0] = ztensor("raw", HEFT_RAW);
    files[1] = ztensor("zstd", HEFT_ZSTD);
    files[2] = (model_file){ "safetensors", heft_test_model("safetensors", tensors, 2), false,
                             BYTES, false };
    files[3] = (model_file){ "strided", fortran(), false, BYTES, false };
}

/* ---- tests ---- */

static heft_status run_within(const heft_bytes *b, size_t call, bool check, uint64_t limit,
                              heft_read_counter *counter, heft_error *err)
{
    heft_limits limits = HEFT_LIMITS_INIT;
    heft_open_options opt = HEFT_OPEN_OPTIONS_INIT;
    heft_test_input in = { NULL, *b };
    heft_file *f;
    limits.read_bytes = limit;
    limits.read_counter = counter;
    opt.limits = &limits;
    opt.check_parts = check;
    heft_assert_ok(heft_test_open_methods[0].open(&f, &in, &opt, err), err);
    heft_status st = calls[call].call(f, err);
    heft_file_close(f);
    return st;
}

/* Digests cover the stored bytes, which verify_part() reads, and verify() reads once more. */
static uint64_t least_bytes(const model_file *file, size_t call)
{
    uint64_t digested = calls[call].needs_checksum ? file->stored : 0;
    uint64_t read = BYTES + (file->is_compressed ? file->stored : 0);
    return digested + (calls[call].call == verify_part ? 0 : read);
}

/* Each call succeeds within the bytes that the call needs, and fails within one byte less, and
 * within half of the bytes. */
static void each_call_counts_every_byte(void **state)
{
    model_file files[FILES];
    make_files(files);
    (void)state;
    for (size_t i = 0; i < FILES * HEFT_COUNT(calls) * 2; i++) {
        const model_file *file = &files[i % FILES];
        size_t call = i / FILES % HEFT_COUNT(calls);
        bool check = i / FILES / HEFT_COUNT(calls);
        heft_read_counter all = { 0 }, counter = { 0 };
        heft_error err;
        if (calls[call].needs_checksum > file->has_checksum)
            continue;
        heft_status st = run_within(&file->bytes, call, check, UINT64_MAX, &all, &err);
        heft_assert_ok(st, &err);
        if (all.bytes < least_bytes(file, call))
            fail_msg("%s of %s counted %llu bytes", calls[call].name, file->name,
                     (unsigned long long)all.bytes);
        st = run_within(&file->bytes, call, check, all.bytes, &counter, &err);
        heft_assert_ok(st, &err);
        for (int half = 0; half < 2; half++) {
            uint64_t limit = half ? all.bytes / 2 : all.bytes - 1;
            counter = (heft_read_counter){ 0 };
            st = run_within(&file->bytes, call, check, limit, &counter, &err);
            heft_assert_fails(st, HEFT_E_LIMIT, &err, "(--max-bytes)");
            assert_string_equal(err.rule, "heft/limit-read");
        }
    }
    for (size_t i = 0; i < FILES; i++)
        heft_test_free(&files[i].bytes);
}

static void the_message_names_the_tensor(void **state)
{
    heft_bytes b = heft_test_model("safetensors", tensors, 2);
    heft_read_counter counter = { 0 };
    heft_error err;
    (void)state;
    heft_assert_fails(run_within(&b, 0, false, 1000, &counter, &err), HEFT_E_LIMIT, &err,
                      "tensor 'large.weight', 786432 bytes: the limit of 1000 bytes");
    heft_test_free(&b);
}

/* Parts that begin and end alike are compared before they are written. */
static void comparing_parts_counts(void **state)
{
    const char header[] = "{\"a\":{\"dtype\":\"U8\",\"shape\":[1000],\"data_offsets\":[0,1000]},"
                          "\"b\":{\"dtype\":\"U8\",\"shape\":[1000],\"data_offsets\":[1000,2000]}}";
    heft_bytes b = { calloc(1, 8 + strlen(header) + 2000), 8 + strlen(header) + 2000 };
    heft_read_counter counter = { 0 };
    heft_error err;
    (void)state;
    assert_non_null(b.p);
    b.p[0] = (uint8_t)strlen(header);
    memcpy(b.p + 8, header, strlen(header));
    size_t call = 0;
    while (calls[call].call != convert_to_ztensor_2)
        call++;
    heft_assert_ok(run_within(&b, call, false, UINT64_MAX, &counter, &err), &err);
    assert_in_range(counter.bytes, 3000, 4000);
    heft_test_free(&b);
}

static void checking_padding_counts(void **state)
{
    heft_bytes b = heft_test_model("gguf", &(test_tensor){ "w", HEFT_F32, 1, { 3 } }, 1);
    heft_read_counter counter = { 0 };
    heft_error err;
    (void)state;
    size_t call = 0;
    while (calls[call].call != verify)
        call++;
    heft_assert_ok(run_within(&b, call, false, UINT64_MAX, &counter, &err), &err);
    assert_in_range(counter.bytes, 1, b.len);
    heft_test_free(&b);
}

static void files_share_a_counter_or_count_alone(void **state)
{
    heft_bytes b = heft_test_model("safetensors", tensors, 2);
    heft_read_counter counter = { 0 };
    heft_error err;
    (void)state;
    for (int i = 0; i < 2; i++)
        heft_assert_status(run_within(&b, 0, false, BYTES, &counter, &err),
                           i ? HEFT_E_LIMIT : HEFT_OK, &err);
    for (int i = 0; i < 2; i++)
        heft_assert_ok(run_within(&b, 0, false, BYTES, NULL, &err), &err);
    heft_test_free(&b);
}

/* Opening and listing read no data. */
static void the_index_does_not_count(void **state)
{
    model_file files[FILES];
    make_files(files);
    (void)state;
    for (size_t i = 0; i < FILES; i++) {
        heft_test_input in = { NULL, files[i].bytes };
        heft_limits limits = HEFT_LIMITS_INIT;
        heft_open_options opt = HEFT_OPEN_OPTIONS_INIT;
        heft_file *f;
        heft_error err;
        limits.read_bytes = 1;
        opt.limits = &limits;
        for (size_t k = 0; k < heft_test_open_method_count; k++) {
            if (heft_test_open_methods[k].needs_path)
                continue;
            heft_assert_ok(heft_test_open_methods[k].open(&f, &in, &opt, &err), &err);
            heft_file_close(f);
        }
        heft_test_free(&files[i].bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_call_counts_every_byte),
        cmocka_unit_test(the_message_names_the_tensor),
        cmocka_unit_test(comparing_parts_counts),
        cmocka_unit_test(checking_padding_counts),
        cmocka_unit_test(files_share_a_counter_or_count_alone),
        cmocka_unit_test(the_index_does_not_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
