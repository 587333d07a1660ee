/* declare.c - what a writer's caller says of the model, call by call: metadata, parts of the file itself, a vocabulary. */
#include "core/write/writer.h"

heft_status heft_writer_copy(heft_writer *w, heft_str *s, heft_error *err)
{
    w->p.x.err = err;
    *s = heft_ix_copy(&w->p.x, *s);
    return s->ptr ? HEFT_OK : HEFT_E_NOMEM;
}

bool heft_writer_is_value(const heft_value *v)
{
    const heft_dtype_info *d = v->kind == HEFT_KIND_ARRAY ? heft_dtype_get(v->as.array.dtype)
                                                          : NULL;
    if (v->kind > HEFT_KIND_MAP || !heft_value_is_text(v))
        return false;
    if (v->kind == HEFT_KIND_ID128)
        return v->as.s.len == 16;
    return v->kind != HEFT_KIND_ARRAY || (d && d->block_elems == 1);
}

heft_status heft_writer_copy_value(heft_writer *w, heft_value *v, heft_error *err)
{
    heft_status st = heft_writer_copy(w, &v->key, err);
    if (!st && v->kind >= HEFT_KIND_STR && v->kind <= HEFT_KIND_ID128)
        st = heft_writer_copy(w, &v->as.s, err);
    if (!st && v->kind == HEFT_KIND_ARRAY) {
        heft_str raw = { v->as.array.ptr,
                         v->as.array.count * (size_t)heft_dtype_size(v->as.array.dtype) };
        st = heft_writer_copy(w, &raw, err);
        v->as.array.ptr = raw.ptr;
    }
    return st;
}

heft_status heft_writer_meta(heft_writer *w, heft_value v, heft_error *err)
{
    heft_error own;
    err = heft_error_begin(err, &own);
    if (w->begun)
        return heft_writer_wrong(err, "metadata come before heft_writer_begin()");
    if (!heft_value_is_text(&v))
        return heft_writer_wrong(err, "the key or text of metadata is not UTF-8");
    if (!heft_writer_is_value(&v))
        return heft_writer_wrong(err, "metadata are of no kind that there is");
    heft_status st = heft_writer_copy_value(w, &v, err);
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

heft_status heft_writer_model_part(heft_writer *w, heft_str role, const void *data, size_t len,
                                   heft_error *err)
{
    heft_error own;
    heft_str bytes = { data, len };
    err = heft_error_begin(err, &own);
    if (w->begun)
        return heft_writer_wrong(err, "parts of the file come before heft_writer_begin()");
    heft_status st = heft_writer_copy(w, &role, err);
    if (!st)
        st = heft_writer_copy(w, &bytes, err);
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
