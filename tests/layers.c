/* layers.c - a test model with layers of equal size, and a parameter store for the model. */
#include "layers.h"

uint8_t layers_byte(size_t layer, size_t at)
{
    return (uint8_t)(layer * 31 + at * 7 + (at >> 9));
}

void layers_write(const char *path, const char *format, size_t count)
{
    static uint8_t data[LAYER_BYTES];
    uint64_t dims[2] = { LAYER_SIDE, LAYER_SIDE };
    uint32_t parts[LAYERS];
    heft_error err;
    heft_sink *sink;
    heft_writer *w;
    heft_assert_ok(heft_sink_open_file(&sink, path, HEFT_SINK_REPLACE, &err), &err);
    heft_assert_ok(heft_writer_open(&w, heft_format_find(heft_str_from(format)), sink, NULL, &err),
                   &err);
    for (size_t i = 0; i < count; i++) {
        char name[32];
        int len = snprintf(name, sizeof name, "layers.%zu.weight", i);
        heft_str s = { name, (size_t)len };
        heft_assert_ok(heft_writer_add_dense(&parts[i], w, s, HEFT_F32, dims, 2, &err), &err);
    }
    heft_assert_ok(heft_writer_begin(w, &err), &err);
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < sizeof data; k++)
            data[k] = layers_byte(i, k);
        heft_assert_ok(heft_writer_write(w, parts[i], data, sizeof data, &err), &err);
    }
    heft_assert_ok(heft_writer_finish(w, &err), &err);
}

heft_file *layers_file(const char *path)
{
    heft_error err;
    heft_file *f;
    heft_assert_ok(heft_file_open(&f, path, NULL, &err), &err);
    return f;
}

void layers_compress(const char *path, const char *from)
{
    heft_write_options write = HEFT_WRITE_OPTIONS_INIT;
    heft_convert_options opt = HEFT_CONVERT_OPTIONS_INIT;
    heft_file *f = layers_file(from);
    heft_error err;
    heft_sink *sink;
    opt.write = &write;
    write.storage.encoding = HEFT_ZSTD;
    heft_assert_ok(heft_sink_open_file(&sink, path, HEFT_SINK_REPLACE, &err), &err);
    heft_assert_ok(heft_file_convert(f, heft_format_find(HEFT_STR("ztensor")), sink, &opt, &err),
                   &err);
    heft_file_close(f);
}

layers layers_open_file(heft_file *take, heft_params_options opt)
{
    heft_error err;
    layers s;
    heft_assert_ok(heft_params_open(&s.p, &opt, &err), &err);
    heft_assert_ok(heft_params_add(&s.model, s.p, take, &err), &err);
    for (uint32_t i = 0; i < heft_params_count(s.p); i++)
        s.keys[i] = heft_params_key_at(s.p, i);
    return s;
}

layers layers_open(const char *path, heft_params_options opt)
{
    return layers_open_file(layers_file(path), opt);
}

void layers_assert(const heft_param *w, size_t layer)
{
    const uint8_t *p = w->data;
    assert_int_equal(w->bytes, LAYER_BYTES);
    assert_int_equal(w->rank, 2);
    assert_int_equal(w->dims[1], LAYER_SIDE);
    for (size_t k = 0; k < w->bytes; k += 997)
        assert_int_equal(p[k], layers_byte(layer, k));
}
