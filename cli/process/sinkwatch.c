#include "process/sinkwatch.h"

#include <heft/write.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "process/interrupt.h"

typedef struct watched {
    heft_sink base;
    heft_sink_ops ops; /* only the operations that the inner sink has */
    heft_sink *inner;
    const sink_events *events; /* or NULL */
} watched;

static heft_sink *announced(heft_sink *s)
{
    const watched *w = (const watched *)s;
    if (w->events)
        w->events->before_write(w->events->ctx);
    return w->inner;
}

static heft_status watched_write(heft_sink *s, const void *data, size_t len, heft_error *err)
{
    heft_sink *inner = announced(s);
    return inner->ops->write(inner, data, len, err);
}

static heft_status watched_write_at(heft_sink *s, uint64_t offset, const void *data, size_t len,
                                    heft_error *err)
{
    heft_sink *inner = announced(s);
    return inner->ops->write_at(inner, offset, data, len, err);
}

static heft_status watched_reserve(heft_sink *s, uint64_t size, heft_error *err)
{
    heft_sink *inner = announced(s);
    return inner->ops->reserve(inner, size, err);
}

static heft_status watched_read_at(heft_sink *s, uint64_t offset, void *buf, size_t len,
                                   heft_error *err)
{
    heft_sink *inner = ((const watched *)s)->inner;
    return inner->ops->read_at(inner, offset, buf, len, err);
}

static bool watched_reflink(heft_sink *s, uint64_t offset, heft_source *from, uint64_t at,
                            uint64_t len)
{
    heft_sink *inner = ((const watched *)s)->inner;
    return inner->ops->reflink(inner, offset, from, at, len);
}

static heft_status watched_scratch(heft_sink *s, heft_scratch **out, uint64_t bytes,
                                   heft_error *err)
{
    heft_sink *inner = ((const watched *)s)->inner;
    return inner->ops->scratch(inner, out, bytes, err);
}

static void watched_discard(heft_sink *s)
{
    heft_sink_discard(((const watched *)s)->inner);
    free(s);
}

static heft_status watched_finish(heft_sink *s, heft_error *err)
{
    heft_sink *inner = ((const watched *)s)->inner;
    if (interrupt_is_pending()) {
        watched_discard(s);
        return interrupt_error(err);
    }
    free(s);
    return inner->ops->finish(inner, err);
}

/* Operations that the inner sink lacks stay NULL, which has a meaning for each operation. */
static heft_sink_ops ops_of(const heft_sink_ops *inner)
{
    return (heft_sink_ops){
        .size = sizeof(heft_sink_ops),
        .write = inner->write ? watched_write : NULL,
        .write_at = inner->write_at ? watched_write_at : NULL,
        .reserve = inner->reserve ? watched_reserve : NULL,
        .reflink = HEFT_HAS(inner, reflink) ? watched_reflink : NULL,
        .read_at = HEFT_HAS(inner, read_at) ? watched_read_at : NULL,
        .scratch = HEFT_HAS(inner, scratch) ? watched_scratch : NULL,
        .finish = watched_finish,
        .discard = watched_discard,
    };
}

uint32_t sink_flags(bool force, bool no_sync)
{
    return (force ? HEFT_SINK_REPLACE : 0) | (no_sync ? HEFT_SINK_NO_SYNC : HEFT_SINK_SYNC);
}

heft_status sink_watch(heft_sink **sink, const sink_events *events, heft_error *err)
{
    watched *w = calloc(1, sizeof *w);
    if (!w) {
        heft_sink_discard(*sink);
        *sink = NULL;
        *err = (heft_error){ .status = HEFT_E_NOMEM, .offset = HEFT_NOWHERE };
        snprintf(err->message, sizeof err->message, "no memory to write a file");
        return HEFT_E_NOMEM;
    }
    *w = (watched){ { &w->ops }, ops_of((*sink)->ops), *sink, events };
    *sink = &w->base;
    return HEFT_OK;
}

heft_status sink_open(heft_sink **sink, const char *path, bool force, bool no_sync,
                      const sink_events *events, heft_error *err)
{
    struct stat out;
    if (!stat(path, &out) && !S_ISREG(out.st_mode))
        interrupt_allow(); /* a pipe or a device may block forever */
    else
        interrupt_hold();
    heft_status st = heft_sink_open_file(sink, path, sink_flags(force, no_sync), err);
    return st ? st : sink_watch(sink, events, err);
}

heft_status sink_put(heft_sink *sink, uint64_t at, const void *bytes, size_t len, heft_error *err)
{
    const heft_sink_ops *ops = sink->ops;
    return ops->write_at ? ops->write_at(sink, at, bytes, len, err)
                         : ops->write(sink, bytes, len, err);
}

heft_status sink_write_whole(heft_sink *take, const void *bytes, size_t len, heft_error *err)
{
    heft_status st = sink_put(take, 0, bytes, len, err);
    if (!st)
        return take->ops->finish(take, err);
    heft_sink_discard(take);
    return st;
}
