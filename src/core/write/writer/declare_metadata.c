/* declare_metadata.c - declarations of a writer's caller besides tensors: metadata,
 * model-level parts, a vocabulary. */
#include "core/write/plan/plan.h"
#include "core/write/writer/writer.h"

heft_status heft_writer_copy(heft_planner *p, heft_str *s, heft_error *err)
{
    p->x.err = err;
    *s = heft_ix_copy(&p->x, *s);
    return s->ptr ? HEFT_OK : HEFT_E_NOMEM;
}

heft_status heft_writer_copy_value(heft_planner *p, heft_value *v, heft_error *err)
{
    heft_status st = heft_writer_copy(p, &v->key, err);
    if (!st && v->kind >= HEFT_KIND_STR && v->kind <= HEFT_KIND_ID128)
        st = heft_writer_copy(p, &v->as.s, err);
    if (!st && v->kind == HEFT_KIND_ARRAY) {
        heft_str raw = { v->as.array.ptr,
                         v->as.array.count * (size_t)heft_dtype_size(v->as.array.dtype) };
        st = heft_writer_copy(p, &raw, err);
        v->as.array.ptr = raw.ptr;
    }
    return st;
}

/* ---- metadata ---- */

/* Check that a value can be added now; a top-level key must be new. */
static heft_status check_value(heft_writer *w, const heft_value *v, heft_error *err)
{
    if (w->begun && !heft_writer_grows(w))
        return heft_writer_too_late(w, "metadata come", err);
    if (!heft_value_is_text(v))
        return heft_writer_argument_error(err, "the key or text of metadata is not UTF-8");
    if (!heft_is_metadata_value(v))
        return heft_writer_argument_error(err, "metadata of an unknown kind, or complex numbers");
    if (!w->begun || w->p.x.open.len)
        return HEFT_OK;
    heft_status st = heft_writer_open_late(w, err);
    return !st && heft_text_set_has(&w->keys, &w->p.x.key, v->key)
               ? heft_error_plain(err, HEFT_E_ARGUMENT, "the metadata have the key %q already",
                                  v->key)
               : st;
}

heft_status heft_writer_add_meta(heft_writer *w, heft_value v, heft_error *err)
{
    heft_error own;
    err = heft_error_begin(err, &own);
    heft_status st = heft_writer_failure(w, err);
    if (!st)
        st = check_value(w, &v, err);
    if (st)
        return heft_error_end(err, st);
    st = heft_writer_copy_value(&w->p, &v, err);
    if (!st)
        st = heft_ix_meta(&w->p.x, v);
    if (st || !w->begun || w->p.x.open.len)
        return heft_writer_record_failure(w, st, err);
    return heft_writer_late_value(w, w->p.x.values.len - 1, err);
}

heft_status heft_writer_end_meta(heft_writer *w, heft_error *err)
{
    const uint32_t *open = w->p.x.open.ptr;
    if (!w->p.x.open.len)
        return heft_writer_argument_error(err, "no list or map of metadata is open");
    uint32_t value = open[0];
    heft_ix_meta_end(&w->p.x);
    return w->begun && !w->p.x.open.len ? heft_writer_late_value(w, value, err) : HEFT_OK;
}

/* ---- parts of the file, a vocabulary ---- */

heft_status heft_writer_set_generator(heft_writer *w, heft_str name, heft_error *err)
{
    heft_error own;
    err = heft_error_begin(err, &own);
    heft_status st = heft_writer_failure(w, err);
    if (!st && w->begun && !heft_writer_grows(w))
        return heft_writer_too_late(w, "the generator comes", err);
    if (!st && w->begun)
        st = heft_writer_open_late(w, err);
    if (!st)
        st = heft_planner_generator(&w->p, name, err);
    return st == HEFT_E_ARGUMENT ? heft_error_end(err, st) : heft_writer_record_failure(w, st, err);
}

heft_status heft_writer_add_model_part(heft_writer *w, heft_str role, const void *data, size_t len,
                                       heft_error *err)
{
    heft_error own;
    heft_str bytes = { data, len };
    err = heft_error_begin(err, &own);
    if (w->begun)
        return heft_writer_argument_error(
            err, "model-level parts must be added before heft_writer_begin()");
    heft_status st = heft_writer_copy(&w->p, &role, err);
    if (!st)
        st = heft_writer_copy(&w->p, &bytes, err);
    if (!st)
        st = heft_planner_model_part(&w->p, role, bytes, err);
    return heft_writer_record_failure(w, st, err);
}

heft_status heft_writer_set_vocab(heft_writer *w, const heft_vocab *v, heft_error *err)
{
    if (w->begun)
        return heft_writer_argument_error(err,
                                          "the vocabulary must be set before heft_writer_begin()");
    w->p.plan.vocab = v;
    return HEFT_OK;
}
