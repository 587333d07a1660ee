/* test_starved_writers.c - writers that run out of memory, see starved.h. */
#include "starved.h"

#include "core/write/writer/writer.h"

static const char config[] = "{\"kind\":\"gpt\",\"config\":{}}";

static heft_status open_writer(heft_writer **out, const char *version, heft_error *err)
{
    static heft_test_sink sink;
    heft_write_options o = HEFT_WRITE_OPTIONS_INIT;
    heft_test_sink_free(&sink);
    o.host = &memory.host;
    o.version = version;
    o.storage.digest = *version == '1' ? "crc32c" : NULL;
    return heft_writer_open(out, heft_format_find(HEFT_STR("ztensor")),
                            heft_test_sink_init(&sink, false), &o, err);
}

/* Finish the file, or discard the writer after an error. */
static heft_status end_writer(heft_writer *w, heft_status st, heft_error *err)
{
    if (!st)
        return heft_writer_finish(w, err);
    heft_writer_discard(w);
    return st;
}

/* A failure that the writer keeps is also the result of the call. */
static heft_status returned(const heft_writer *w, heft_status st)
{
    heft_error kept;
    heft_status failure = heft_writer_failure(w, &kept);
    if (failure)
        assert_int_equal(st, failure);
    return st;
}

static heft_status add_text(heft_writer *w, const char *key, heft_error *err)
{
    heft_value v = { .kind = HEFT_KIND_STR, .key = heft_test_str(key), .as.s = HEFT_STR("v") };
    return returned(w, heft_writer_add_meta(w, v, err));
}

/* Add a tensor of two components; late: write the data, too. */
static heft_status add_tensor(heft_writer *w, const char *name, bool late, heft_error *err)
{
    static const uint64_t dims[] = { 4 };
    static const heft_component parts[] = { { HEFT_STR("p0"), HEFT_U8, 4, NULL },
                                            { HEFT_STR("p1"), HEFT_U8, 4, NULL } };
    heft_tensor_spec spec = HEFT_TENSOR_SPEC_INIT;
    uint32_t first;
    spec.name = heft_test_str(name);
    spec.dtype = HEFT_U8;
    spec.rank = 1;
    spec.dims = dims;
    spec.layout = HEFT_STR("my.layout");
    spec.components = parts;
    spec.component_count = 2;
    heft_status st = returned(w, heft_writer_add_tensor(&first, w, &spec, err));
    for (uint32_t i = 0; i < 2 && late && !st; i++)
        st = heft_writer_write(w, first + i, "abcd", 4, err);
    return st;
}

static heft_status run_write(const input *in, heft_error *err)
{
    heft_writer *w;
    (void)in;
    heft_status st = open_writer(&w, "1.2", err);
    if (st)
        return st;
    st = heft_writer_set_generator(w, HEFT_STR("a test"), err);
    if (!st)
        st = add_tensor(w, "a", false, err);
    if (!st)
        st = heft_writer_begin(w, err);
    for (uint32_t i = 0; i < 2 && !st; i++)
        st = heft_writer_write(w, i, "abcd", 4, err);
    return end_writer(w, st, err);
}

/* Everything is added after the beginning of the file. */
static heft_status run_write_late(const input *in, heft_error *err)
{
    static const char *const names[] = { "a", "b", "c", "d", "e" };
    heft_writer *w;
    (void)in;
    heft_status st = open_writer(&w, "1.2", err);
    if (st)
        return st;
    st = heft_writer_begin(w, err);
    if (!st)
        st = heft_writer_set_generator(w, HEFT_STR("a test"), err);
    if (!st)
        st = add_text(w, "k", err);
    for (size_t i = 0; i < HEFT_COUNT(names) && !st; i++)
        st = add_tensor(w, names[i], true, err);
    return end_writer(w, st, err);
}

/* Names and keys are compared with the names and keys in the file, once there is memory for the
 * tables. */
static heft_status repeat_late(bool repeats_key, heft_error *err)
{
    static const char keys[] = "abcdefghijklmnopqrst";
    heft_writer *w;
    heft_status st = open_writer(&w, "1.2", err);
    if (st)
        return st;
    for (size_t i = 0; keys[i] && !st; i++) {
        const char key[] = { keys[i], '\0' };
        st = add_text(w, key, err);
        if (!st && i < 3)
            st = add_tensor(w, key, false, err);
    }
    if (!st)
        st = heft_writer_begin(w, err);
    for (uint32_t i = 0; i < 6 && !st; i++)
        st = heft_writer_write(w, i, "abcd", 4, err);
    if (!st)
        st = repeats_key ? add_text(w, "a", err) : add_tensor(w, "a", true, err);
    if (st == HEFT_E_ARGUMENT) /* the writer stays usable */
        st = HEFT_OK;
    return end_writer(w, st, err);
}

static heft_status run_repeat_name(const input *in, heft_error *err)
{
    (void)in;
    return repeat_late(false, err);
}

static heft_status run_repeat_key(const input *in, heft_error *err)
{
    (void)in;
    return repeat_late(true, err);
}

static heft_status run_write_model_part(const input *in, heft_error *err)
{
    heft_write_options o = HEFT_WRITE_OPTIONS_INIT;
    heft_test_sink sink;
    heft_writer *w;
    (void)in;
    o.host = &memory.host;
    heft_status st = heft_writer_open(&w, heft_format_find(HEFT_STR("gptrs-checkpoint")),
                                      heft_test_sink_init(&sink, false), &o, err);
    if (st)
        return st;
    st = returned(
        w, heft_writer_add_model_part(w, HEFT_STR("config"), config, sizeof config - 1, err));
    if (!st)
        st = heft_writer_begin(w, err);
    st = end_writer(w, st, err);
    heft_test_sink_free(&sink);
    return st;
}

/* Write a sparse tensor to a format that requires the entries in order. */
static heft_status write_sparse(const char *layout, const heft_component *parts, uint32_t count,
                                const uint64_t (*numbers)[4], heft_error *err)
{
    static const uint64_t dims[] = { 3, 9 };
    heft_tensor_spec spec = HEFT_TENSOR_SPEC_INIT;
    heft_writer *w;
    uint32_t first;
    heft_status st = open_writer(&w, "2", err);
    if (st)
        return st;
    spec.name = HEFT_STR("s");
    spec.dtype = HEFT_U64;
    spec.rank = 2;
    spec.dims = dims;
    spec.layout = heft_test_str(layout);
    spec.components = parts;
    spec.component_count = count;
    st = heft_writer_add_tensor(&first, w, &spec, err);
    if (!st)
        st = heft_writer_begin(w, err);
    for (uint32_t i = 0; i < count && !st; i++) {
        uint8_t bytes[8 * HEFT_COUNT(*numbers)];
        heft_test_put_u64(bytes, numbers[i], (size_t)parts[i].count);
        st = heft_writer_write(w, first + i, bytes, 8 * (size_t)parts[i].count, err);
    }
    return end_writer(w, st, err);
}

/* Until the row pointers arrive, the places where columns do not ascend are kept. */
static heft_status run_write_csr(const input *in, heft_error *err)
{
    static const heft_component parts[] = { { HEFT_STR("values"), HEFT_U64, 3, NULL },
                                            { HEFT_STR("indices"), HEFT_U64, 3, NULL },
                                            { HEFT_STR("indptr"), HEFT_U64, 4, NULL } };
    static const uint64_t numbers[][4] = { { 1, 2, 3 }, { 7, 3, 1 }, { 0, 1, 2, 3 } };
    (void)in;
    return write_sparse("sparse_csr", parts, 3, numbers, err);
}

static heft_status run_write_coo(const input *in, heft_error *err)
{
    static const heft_component parts[] = { { HEFT_STR("coords"), HEFT_U64, 4, NULL },
                                            { HEFT_STR("values"), HEFT_U64, 2, NULL } };
    static const uint64_t numbers[][4] = { { 2, 0, /* columns */ 1, 8 }, { 1, 2 } };
    (void)in;
    return write_sparse("sparse_coo", parts, 2, numbers, err);
}

static void reports_each_request_that_fails(void **state)
{
    static const operation operations[] = {
        { "write", run_write, nothing, true, 0 },
        { "write late", run_write_late, nothing, true, 0 },
        { "repeat a name", run_repeat_name, nothing, true, 0 },
        { "repeat a key", run_repeat_key, nothing, true, 0 },
        { "write a part of the file", run_write_model_part, nothing, true, 0 },
        { "write sparse_csr", run_write_csr, nothing, true, 0 },
        { "write sparse_coo", run_write_coo, nothing, true, 0 },
    };
    (void)state;
    starve(operations, HEFT_COUNT(operations));
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(reports_each_request_that_fails) };
    return cmocka_run_group_tests_name("starved_writers", tests, NULL, NULL);
}
