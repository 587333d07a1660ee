/* late_tensors.c - tensors and metadata added after heft_writer_begin().
 *
 * Everything declared before has planned offsets; late parts are appended at the end of the
 * file.  plan_addition.c plans them. */
#include "core/write/writer/writer.h"

bool heft_writer_grows(const heft_writer *w)
{
    return w->p.format->caps & HEFT_CAN_APPEND;
}

heft_status heft_writer_too_late(const heft_writer *w, const char *what, heft_error *err)
{
    return heft_error_plain(err, HEFT_E_ARGUMENT,
                            "%s too late: %s plans the whole file in heft_writer_begin(); declare "
                            "them before, or write zTensor, which accepts them later",
                            what, w->p.format->name);
}

static const char purpose[] = "for what is added to the file";

static bool add_name(heft_writer *w, uint32_t tensor)
{
    return heft_text_set_add(&w->names, &w->p.x.mem, &w->p.x.key, heft_ix_name(&w->p.x, tensor));
}

static bool add_key(heft_writer *w, uint32_t value)
{
    return heft_text_set_add(&w->keys, &w->p.x.mem, &w->p.x.key,
                             heft_ix_value(&w->p.x, value)->key);
}

heft_status heft_writer_open_late(heft_writer *w, heft_error *err)
{
    const heft_index *x = &w->p.x;
    bool has_memory = true;
    if (w->is_late)
        return HEFT_OK;
    for (uint32_t t = 0; t < heft_ix_tensors(x) && has_memory; t++)
        has_memory = add_name(w, t);
    for (uint32_t i = 0; i < x->values.len && has_memory; i = heft_ix_value_next(x, i))
        has_memory = add_key(w, i);
    w->is_late = has_memory;
    w->declared_parts = x->parts.len;
    return heft_writer_record_failure(w, has_memory ? HEFT_OK : heft_error_no_memory(err, purpose),
                                      err);
}

heft_status heft_writer_late_name(heft_writer *w, heft_error *err)
{
    return add_name(w, w->p.x.tensors.len - 1) ? HEFT_OK : heft_error_no_memory(err, purpose);
}

heft_status heft_writer_late_value(heft_writer *w, uint32_t value, heft_error *err)
{
    heft_planner q;
    heft_error own;
    err = heft_error_begin(err, &own);
    heft_status st = heft_planner_trial(&q, &w->p, err);
    q.x.err = err;
    if (!st)
        st = heft_ix_copy_value(&q.x, &w->p.x, value, HEFT_NONE);
    if (!st)
        st = heft_planner_run(&q, err);
    heft_planner_free(&q);
    if (st)
        w->p.x.values.len = value;
    else if (!add_key(w, value))
        return heft_writer_record_failure(w, heft_error_no_memory(err, purpose), err);
    return heft_error_end(err, st);
}

heft_status heft_writer_append(heft_writer *w, heft_error *err)
{
    heft_status st = HEFT_OK;
    if (w->appender)
        return HEFT_OK;
    if (!w->sink->ops->write_at)
        st = heft_writer_fill_gaps(w, err);
    if (!st)
        st = heft_planner_digests(&w->p, err);
    heft_partial_crcs_free(&w->p.written);
    heft_partial_crcs_init(&w->p.written, w->p.host);
    w->p.plan.appended = true;
    return st ? st : heft_writer_open_appender(w, err);
}
