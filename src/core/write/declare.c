/* declare.c - what a writer's caller says of the model, call by call: metadata, tensors, parts of the file itself. */
#include "core/write/writer.h"

static heft_status copy_str(heft_writer *w, heft_str *s, heft_error *err)
{
    w->p.x.err = err;
    *s = heft_ix_copy(&w->p.x, *s);
    return s->ptr ? HEFT_OK : HEFT_E_NOMEM;
}

heft_status heft_writer_meta(heft_writer *w, heft_value v, heft_error *err)
{
    heft_error own;
    err = heft_error_begin(err, &own);
    if (w->begun)
        return heft_writer_wrong(err, "metadata come before heft_writer_begin()");
    if (!heft_value_is_text(&v))
        return heft_writer_wrong(err, "the key or text of metadata is not UTF-8");
    heft_status st = copy_str(w, &v.key, err);
    if (!st && (v.kind == HEFT_KIND_STR || v.kind == HEFT_KIND_BYTES))
        st = copy_str(w, &v.as.s, err);
    if (!st && v.kind == HEFT_KIND_ARRAY) {
        heft_str raw = { v.as.array.ptr,
                         v.as.array.count * (size_t)heft_dtype_size(v.as.array.dtype) };
        st = copy_str(w, &raw, err);
        v.as.array.ptr = raw.ptr;
    }
    if (!st)
        st = heft_ix_meta(&w->p.x, v);
    return heft_writer_break(w, st, err);
}

heft_status heft_writer_meta_end(heft_writer *w, heft_error *err)
{
    if (w->begun || !w->p.x.open.len)
        return heft_writer_wrong(err, "no list or map of metadata is open");
    heft_ix_meta_end(&w->p.x);
    return HEFT_OK;
}

heft_status heft_writer_tensor(uint32_t *part, heft_writer *w, heft_str name, heft_dtype t,
                               const uint64_t *dims, uint32_t rank, heft_error *err)
{
    heft_error own;
    uint64_t *to, bytes;
    uint32_t id;
    err = heft_error_begin(err, &own);
    if (w->begun)
        return heft_writer_wrong(err, "tensors come before heft_writer_begin()");
    if (!heft_dtype_get(t))
        return heft_writer_wrong(err, "there is no such element type");
    if (heft_utf8_valid(name.ptr, name.len) != name.len)
        return heft_writer_wrong(err, "a tensor's name is not UTF-8");
    if (!heft_product(&bytes, dims, rank) || !heft_dtype_bytes(&bytes, t, bytes))
        return heft_error_plain(err, HEFT_E_ARGUMENT, "tensor %q: the shape passes 64 bits", name);
    heft_status st = copy_str(w, &name, err);
    if (!st)
        st = heft_ix_tensor(&w->p.x, name, t, rank, &to, &id);
    if (!st && rank) /* the shape of a scalar may be NULL */
        memcpy(to, dims, rank * sizeof *dims);
    *part = w->p.x.parts.len;
    if (!st)
        st = heft_ix_dense(&w->p.x, id, HEFT_NOWHERE, 0, HEFT_NOWHERE);
    return heft_writer_break(w, st, err);
}

heft_status heft_writer_model_part(heft_writer *w, heft_str role, const void *data, size_t len,
                                   heft_error *err)
{
    heft_error own;
    heft_str bytes = { data, len };
    err = heft_error_begin(err, &own);
    if (w->begun)
        return heft_writer_wrong(err, "parts of the file come before heft_writer_begin()");
    heft_status st = copy_str(w, &role, err);
    if (!st)
        st = copy_str(w, &bytes, err);
    if (!st)
        st = heft_planner_model_part(&w->p, role, bytes, err);
    return heft_writer_break(w, st, err);
}

heft_status heft_writer_vocab(heft_writer *w, const heft_vocab *v, heft_error *err)
{
    if (w->begun)
        return heft_writer_wrong(err, "the vocabulary comes before heft_writer_begin()");
    w->p.plan.vocab = v;
    return HEFT_OK;
}
