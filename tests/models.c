/* models.c - model files for tests, generated with heft_writer. */
#include "models.h"

static void fill(uint8_t *p, uint64_t len, heft_dtype t, uint64_t *random)
{
    for (uint64_t i = 0; i < len; i++)
        p[i] = (uint8_t)heft_test_random(random, t == HEFT_BOOL ? 2 : 256);
}

static void write_data(heft_writer *w, uint32_t part, const test_tensor *t, uint64_t *random)
{
    const heft_dtype_info *d = heft_dtype_get(t->dtype);
    heft_error err;
    uint64_t n = 1;
    for (uint32_t i = 0; i < t->rank; i++)
        n *= t->dims[i];
    heft_bytes b = { NULL, (size_t)(n / d->block_elems * d->block_bytes) };
    b.p = malloc(b.len + 1);
    assert_non_null(b.p);
    fill(b.p, b.len, t->dtype, random);
    heft_assert_ok(heft_writer_write(w, part, b.p, b.len, &err), &err);
    heft_test_free(&b);
}

heft_bytes heft_test_model(const char *format, const test_tensor *tensors, size_t count)
{
    heft_test_sink sink;
    heft_writer *w;
    heft_error err;
    uint64_t random = 1;
    uint32_t *parts = calloc(count + 1, sizeof *parts);
    assert_non_null(parts);
    heft_assert_ok(heft_writer_open(&w, heft_format_find(heft_str_from(format)),
                                    heft_test_sink_init(&sink, false), NULL, &err),
                   &err);
    for (size_t i = 0; i < count; i++)
        heft_assert_ok(heft_writer_add_dense(&parts[i], w, heft_test_str(tensors[i].name),
                                             tensors[i].dtype, tensors[i].dims, tensors[i].rank,
                                             &err),
                       &err);
    heft_assert_ok(heft_writer_begin(w, &err), &err);
    for (size_t i = 0; i < count; i++)
        write_data(w, parts[i], &tensors[i], &random);
    heft_assert_ok(heft_writer_finish(w, &err), &err);
    heft_bytes b = heft_test_copy(sink.p, sink.len);
    heft_test_sink_free(&sink);
    free(parts);
    return b;
}

heft_bytes heft_test_converted(const char *from, const test_tensor *tensors, size_t count,
                               const char *to, const heft_convert_options *opt)
{
    heft_bytes plain = heft_test_model(from, tensors, count);
    heft_test_sink sink;
    heft_error err;
    heft_file *f;
    heft_assert_ok(heft_test_open(&f, plain, NULL, &err), &err);
    heft_sink *out = heft_test_sink_init(&sink, false);
    heft_assert_ok(heft_file_convert(f, heft_format_find(heft_str_from(to)), out, opt, &err), &err);
    heft_file_close(f);
    heft_bytes b = heft_test_copy(sink.p, sink.len);
    heft_test_sink_free(&sink);
    heft_test_free(&plain);
    return b;
}

static const char *format_with(uint32_t caps, size_t i)
{
    for (uint32_t k = 0; k < heft_format_count(); k++)
        if ((heft_format_caps(heft_format_at(k)) & (caps | HEFT_ONE_TENSOR)) == caps && !i--)
            return heft_format_name(heft_format_at(k));
    return NULL;
}

const char *heft_test_writable(size_t i)
{
    return format_with(HEFT_CAN_WRITE, i);
}

const char *heft_test_editable(size_t i)
{
    return format_with(HEFT_CAN_WRITE | HEFT_CAN_EDIT, i);
}

heft_bytes heft_test_one(const char *format, uint64_t bytes)
{
    const test_tensor t = { "w", HEFT_F32, 1, { bytes / 4 } };
    return heft_test_model(format, &t, 1);
}

heft_bytes heft_test_many(const char *format, uint32_t count)
{
    test_tensor *t = calloc(count, sizeof *t);
    char(*names)[32] = calloc(count, sizeof *names);
    assert_non_null(t);
    assert_non_null(names);
    for (uint32_t i = 0; i < count; i++) {
        snprintf(names[i], sizeof names[i], "layers.%u.weight", i);
        t[i] = (test_tensor){ names[i], HEFT_F32, 1, { 1 } };
    }
    heft_bytes b = heft_test_model(format, t, count);
    free(names);
    free(t);
    return b;
}
