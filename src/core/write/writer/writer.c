/* writer.c - open a writer, plan the declared model, begin the file, and finish or discard the
 * file. */
#include "core/write/writer/writer.h"

#include "core/write/plan/plan.h"

heft_status heft_writer_open(heft_writer **out, const heft_format *fmt, heft_sink *take,
                             const heft_write_options *opt, heft_error *err)
{
    const heft_host *host;
    heft_write_options o = HEFT_WRITE_OPTIONS_INIT;
    *out = NULL;
    heft_status st = heft_sized_copy(&o, sizeof o, opt, err);
    if (!st)
        st = heft_host_resolve(&host, o.host, err);
    const heft_allocator *al = st ? NULL : host->allocator;
    heft_writer *w = al ? heft_alloc(al, sizeof *w, 16) : NULL;
    if (!st && !w)
        st = heft_error_no_memory(err, "for a writer");
    if (st) {
        heft_sink_discard(take);
        return st;
    }
    *w = (heft_writer){ .sink = take };
    st = heft_planner_init(&w->p, fmt, &o, err);
    if (!st)
        st = heft_planner_check_single(&w->p, err);
    w->p.plan.source = (heft_plan_source){ .ctx = w,
                                           .is_sorted = heft_writer_in_order,
                                           .check_values = heft_writer_check_values };
    w->p.plan.is_declared = true;
    if (!st)
        st = take ? heft_sink_check(take, err)
                  : heft_writer_argument_error(err, "no sink is given");
    if (st)
        heft_writer_discard(w);
    else
        *out = w;
    return st;
}

static void free_writer(heft_writer *w)
{
    const heft_allocator *al = w->p.host->allocator;
    heft_sparse_end(&w->indices);
    heft_vec_free(&w->p.x.mem, &w->sparse, sizeof(heft_sparse_spec *));
    heft_text_set_free(&w->names, &w->p.x.mem);
    heft_text_set_free(&w->keys, &w->p.x.mem);
    if (w->appender) {
        heft_append_close(w->appender);
        heft_free(al, w->appender, sizeof *w->appender, 64);
    }
    heft_running_digest_close(&w->part_digest);
    heft_planner_free(&w->p);
    heft_free(al, w, sizeof *w, 16);
}

void heft_writer_discard(heft_writer *w)
{
    if (!w)
        return;
    heft_sink_discard(w->sink);
    free_writer(w);
}

/* ---- beginning and end ---- */

heft_status heft_writer_begin(heft_writer *w, heft_error *err)
{
    heft_error own;
    err = heft_error_begin(err, &own);
    if (w->begun || w->p.x.open.len)
        return heft_writer_argument_error(err, w->begun
                                                   ? "heft_writer_begin() was called already"
                                                   : "a list or map of metadata is still open");
    heft_status st = heft_writer_failure(w, err);
    if (!st)
        st = heft_planner_run(&w->p, err);
    if (!st)
        st = heft_writer_build_order(w, err);
    if (!st)
        w->sink = heft_sink_inserting(&w->inserting, w->sink, &w->p.plan);
    if (!st && !w->p.plan.appended && !heft_writer_grows(w))
        st = heft_sink_reserve(w->sink, w->p.plan.file_bytes, err);
    if (!st)
        st = heft_planner_emit(&w->p, HEFT_HEADER, w->sink, err);
    w->filled_to = w->p.plan.header_bytes;
    if (!st && w->p.plan.appended)
        st = heft_writer_open_appender(w, err);
    else if (!st && w->sink->ops->write_at && !w->p.plan.needs_preceding_digests)
        st = heft_writer_fill_gaps(w, err);
    if (!st)
        st = heft_writer_advance(w, err);
    w->begun = !st;
    return heft_writer_record_failure(w, st, err);
}

static heft_status check_complete(const heft_writer *w, heft_error *err)
{
    if (w->failed.status)
        return heft_writer_failure(w, err);
    if (!w->begun || w->p.x.open.len)
        return heft_writer_argument_error(err, w->begun ? "a list or map of metadata is still open"
                                                        : "heft_writer_begin() was not called");
    if (w->part < w->p.x.parts.len)
        return heft_error_plain(err, HEFT_E_ARGUMENT, "part %U lacks %U of its %U bytes",
                                (uint64_t)w->part, heft_writer_length(w, w->part) - w->received,
                                heft_writer_length(w, w->part));
    return HEFT_OK;
}

heft_status heft_writer_finish(heft_writer *w, heft_error *err)
{
    heft_error own;
    err = heft_error_begin(err, &own);
    heft_status st = check_complete(w, err);
    if (!st && w->is_late)
        st = heft_writer_append(w, err);
    if (!st && w->appender) {
        st = heft_writer_flush(w, err);
        w->p.plan.data_end = w->appender->at;
    } else if (!st && !w->sink->ops->write_at) {
        st = heft_writer_fill_gaps(w, err);
    }
    if (!st && w->is_late)
        st = heft_planner_replan(&w->p, err);
    if (!st)
        st = heft_planner_close_file(&w->p, w->sink, err);
    st = heft_sink_end(w->sink, st, err);
    free_writer(w);
    return heft_error_end(err, st);
}
