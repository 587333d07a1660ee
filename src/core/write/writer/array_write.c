/* array_write.c - heft_array_write(): write a file from arrays in memory. */
#include "base/checked_math.h"
#include "base/sized.h"
#include "core/write/writer/writer.h"

static heft_status check_array(const heft_array *a, heft_error *err)
{
    uint64_t count, bytes;
    if (!heft_product(&count, a->dims, a->rank) || !heft_dtype_bytes(&bytes, a->dtype, count) ||
        bytes > SIZE_MAX)
        return heft_error_plain(err, HEFT_E_ARGUMENT,
                                "tensor %q: its shape exceeds the address space", a->name);
    if (a->bytes ? a->bytes != bytes : bytes && !a->data)
        return heft_error_plain(err, HEFT_E_ARGUMENT,
                                "tensor %q: shape and element type need %U bytes, %U were given",
                                a->name, bytes, a->bytes);
    return HEFT_OK;
}

static heft_status declare(heft_writer *w, const heft_array *arrays, uint32_t count,
                           const heft_save_options *o, heft_error *err)
{
    uint32_t part;
    for (size_t i = 0; i < o->meta_count; i++) {
        heft_kind kind = o->meta[i].kind;
        HEFT_TRY(kind == HEFT_KIND_LIST || kind == HEFT_KIND_MAP
                     ? heft_error_plain(err, HEFT_E_ARGUMENT,
                                        "metadata %q is a list or map: use heft_writer_add_meta()",
                                        o->meta[i].key)
                     : heft_writer_add_meta(w, o->meta[i], err));
    }
    for (uint32_t i = 0; i < count; i++) {
        const heft_array *a = &arrays[i];
        HEFT_TRY(check_array(a, err));
        /* Parts are numbered in the order of the arrays. */
        HEFT_TRY(heft_writer_add_dense(&part, w, a->name, a->dtype, a->dims, a->rank, err));
    }
    return HEFT_OK;
}

static heft_status write_data(heft_writer *w, const heft_array *arrays, uint32_t count,
                              heft_error *err)
{
    for (uint32_t i = 0; i < count; i++) {
        uint64_t elements, bytes = 0;
        if (heft_product(&elements, arrays[i].dims, arrays[i].rank))
            (void)heft_dtype_bytes(&bytes, arrays[i].dtype, elements);
        if (bytes)
            HEFT_TRY(heft_writer_write(w, i, arrays[i].data, (size_t)bytes, err));
    }
    return HEFT_OK;
}

/* Without a callback nobody would hear of a loss: the call fails instead. */
static heft_status choose(heft_write_options *out, const heft_write_options *given, heft_error *err)
{
    *out = (heft_write_options)HEFT_WRITE_OPTIONS_INIT;
    heft_status st = heft_sized_copy(out, sizeof *out, given, err);
    if (!out->on_loss && !out->allow_loss)
        out->strict = true;
    return st;
}

heft_status heft_array_write(heft_sink *take, const heft_array *arrays, uint32_t count,
                             const heft_save_options *opt, heft_error *err)
{
    heft_error own;
    heft_writer *w = NULL;
    heft_save_options o = HEFT_SAVE_OPTIONS_INIT;
    heft_write_options write;
    err = heft_error_begin(err, &own);
    heft_status st = heft_sized_copy(&o, sizeof o, opt, err);
    if (!st)
        st = choose(&write, o.write, err);
    if (!st && !o.format)
        st = heft_error_plain(err, HEFT_E_ARGUMENT, "no output format is given");
    if (st) {
        heft_sink_discard(take);
        return st;
    }
    st = heft_writer_open(&w, o.format, take, &write, err);
    if (!st)
        st = declare(w, arrays, count, &o, err);
    if (!st)
        st = heft_writer_begin(w, err);
    if (!st)
        st = write_data(w, arrays, count, err);
    if (!st)
        return heft_error_end(err, heft_writer_finish(w, err));
    heft_writer_discard(w);
    return heft_error_end(err, st);
}
