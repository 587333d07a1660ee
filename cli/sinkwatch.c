#include "sinkwatch.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "interrupt.h"

typedef struct watched {
    heft_sink base;
    heft_sink_ops ops; /* those that the inner sink has */
    heft_sink *inner;
    atomic_bool *failed;
} watched;

static heft_status note(const watched *w, heft_status st)
{
    if (st)
        atomic_store(w->failed, true);
    return st;
}

static heft_status watched_write(heft_sink *s, const void *data, size_t len, heft_error *err)
{
    const watched *w = (const watched *)s;
    return note(w, w->inner->ops->write(w->inner, data, len, err));
}

static heft_status watched_write_at(heft_sink *s, uint64_t offset, const void *data, size_t len,
                                    heft_error *err)
{
    const watched *w = (const watched *)s;
    return note(w, w->inner->ops->write_at(w->inner, offset, data, len, err));
}

static heft_status watched_reserve(heft_sink *s, uint64_t size, heft_error *err)
{
    const watched *w = (const watched *)s;
    return note(w, w->inner->ops->reserve(w->inner, size, err));
}

static bool watched_share(heft_sink *s, uint64_t offset, heft_source *from, uint64_t at,
                          uint64_t len)
{
    const watched *w = (const watched *)s;
    return w->inner->ops->share(w->inner, offset, from, at, len);
}

static heft_status watched_scratch(heft_sink *s, heft_scratch **out, uint64_t bytes,
                                   heft_error *err)
{
    const watched *w = (const watched *)s;
    return note(w, w->inner->ops->scratch(w->inner, out, bytes, err));
}

static heft_status watched_finish(heft_sink *s, heft_error *err)
{
    const watched *w = (const watched *)s;
    bool is_late = interrupt_is_pending();
    heft_status st = is_late ? interrupt_error(err) : w->inner->ops->finish(w->inner, err);
    if (is_late)
        w->inner->ops->discard(w->inner);
    note(w, st);
    free(s);
    return st;
}

static void watched_discard(heft_sink *s)
{
    const watched *w = (const watched *)s;
    w->inner->ops->discard(w->inner);
    free(s);
}

uint32_t sink_flags(bool force, bool no_sync)
{
    return (force ? HEFT_SINK_REPLACE : 0) | (no_sync ? HEFT_SINK_NO_SYNC : HEFT_SINK_SYNC);
}

heft_status sink_watch(heft_sink **sink, atomic_bool *failed, heft_error *err)
{
    const heft_sink_ops *inner = (*sink)->ops;
    watched *w = calloc(1, sizeof *w);
    if (!w) {
        heft_sink_discard(*sink);
        *err = (heft_error){ .status = HEFT_E_NOMEM, .offset = HEFT_NOWHERE };
        snprintf(err->message, sizeof err->message, "no memory for a sink");
        return HEFT_E_NOMEM;
    }
    w->ops = (heft_sink_ops){
        .write = inner->write ? watched_write : NULL,
        .write_at = inner->write_at ? watched_write_at : NULL,
        .reserve = inner->reserve ? watched_reserve : NULL,
        .share = inner->share ? watched_share : NULL,
        .scratch = inner->scratch ? watched_scratch : NULL,
        .finish = watched_finish,
        .discard = watched_discard,
    };
    w->base.ops = &w->ops;
    w->inner = *sink;
    w->failed = failed;
    *sink = &w->base;
    return HEFT_OK;
}

heft_status sink_open(heft_sink **sink, const char *path, bool force, bool no_sync,
                      atomic_bool *failed, heft_error *err)
{
    struct stat out;
    if (!stat(path, &out) && !S_ISREG(out.st_mode))
        interrupt_allow(); /* a pipe or a device, which may block for ever */
    else
        interrupt_hold();
    heft_status st = heft_sink_file(sink, path, sink_flags(force, no_sync), err);
    return st ? st : sink_watch(sink, failed, err);
}
