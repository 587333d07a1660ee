#include "process/sinkwatch.h"

#include <heft/write.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "process/interrupt.h"
#include "process/message.h"

typedef struct watched {
    heft_sink base;
    heft_sink_ops ops; /* only the operations that the inner sink has */
    heft_sink *inner;
    char *path; /* freed with the sink, unless sink_failure took it over */
    sink_failure *failure;
} watched;

typedef struct watched_scratch {
    heft_scratch base;
    heft_scratch *inner;
    const watched *sink; /* outlives the scratch file */
} watched_scratch;

/* Record the first failure, from any thread. */
static heft_status record_failure(const watched *w, heft_status st)
{
    char *none = NULL;
    if (st)
        atomic_compare_exchange_strong(&w->failure->path, &none, w->path);
    return st;
}

/* ---- the scratch file beside an output ---- */

static heft_status scratch_write(heft_scratch *s, const void *data, size_t len, heft_error *err)
{
    const watched_scratch *w = (const watched_scratch *)s;
    return record_failure(w->sink, w->inner->ops->write(w->inner, data, len, err));
}

static heft_status scratch_map(heft_scratch *s, const void **out, heft_error *err)
{
    const watched_scratch *w = (const watched_scratch *)s;
    return record_failure(w->sink, w->inner->ops->map(w->inner, out, err));
}

static heft_status scratch_state(heft_scratch *s, heft_error *err)
{
    const watched_scratch *w = (const watched_scratch *)s;
    return record_failure(w->sink, w->inner->ops->check(w->inner, err));
}

static void scratch_close(heft_scratch *s)
{
    const watched_scratch *w = (const watched_scratch *)s;
    w->inner->ops->close(w->inner);
    free(s);
}

static heft_status no_memory(heft_error *err)
{
    *err = (heft_error){ .status = HEFT_E_NOMEM, .offset = HEFT_NOWHERE };
    snprintf(err->message, sizeof err->message, "no memory to write a file");
    return HEFT_E_NOMEM;
}

static heft_status watch_scratch(heft_scratch **scratch, const watched *sink, heft_error *err)
{
    static const heft_scratch_ops ops = { .size = sizeof(heft_scratch_ops),
                                          .write = scratch_write,
                                          .map = scratch_map,
                                          .check = scratch_state,
                                          .close = scratch_close };
    watched_scratch *w = malloc(sizeof *w);
    if (!w) {
        (*scratch)->ops->close(*scratch);
        *scratch = NULL;
        return no_memory(err);
    }
    *w = (watched_scratch){ { &ops }, *scratch, sink };
    *scratch = &w->base;
    return HEFT_OK;
}

/* ---- the output ---- */

static void announce(const watched *w)
{
    if (w->failure->before_write)
        w->failure->before_write(w->failure->ctx);
}

static heft_status watched_write(heft_sink *s, const void *data, size_t len, heft_error *err)
{
    const watched *w = (const watched *)s;
    announce(w);
    return record_failure(w, w->inner->ops->write(w->inner, data, len, err));
}

static heft_status watched_write_at(heft_sink *s, uint64_t offset, const void *data, size_t len,
                                    heft_error *err)
{
    const watched *w = (const watched *)s;
    announce(w);
    return record_failure(w, w->inner->ops->write_at(w->inner, offset, data, len, err));
}

static heft_status watched_read_at(heft_sink *s, uint64_t offset, void *buf, size_t len,
                                   heft_error *err)
{
    const watched *w = (const watched *)s;
    return record_failure(w, w->inner->ops->read_at(w->inner, offset, buf, len, err));
}

static heft_status watched_reserve(heft_sink *s, uint64_t size, heft_error *err)
{
    const watched *w = (const watched *)s;
    announce(w);
    return record_failure(w, w->inner->ops->reserve(w->inner, size, err));
}

static bool watched_reflink(heft_sink *s, uint64_t offset, heft_source *from, uint64_t at,
                            uint64_t len)
{
    const watched *w = (const watched *)s;
    return w->inner->ops->reflink(w->inner, offset, from, at, len);
}

static heft_status watched_open_scratch(heft_sink *s, heft_scratch **out, uint64_t bytes,
                                        heft_error *err)
{
    const watched *w = (const watched *)s;
    heft_status st = record_failure(w, w->inner->ops->scratch(w->inner, out, bytes, err));
    return st ? st : watch_scratch(out, w, err);
}

static void release(watched *w)
{
    if (atomic_load(&w->failure->path) != w->path)
        free(w->path);
    free(w);
}

static heft_status watched_finish(heft_sink *s, heft_error *err)
{
    watched *w = (watched *)s;
    bool interrupted = interrupt_is_pending();
    heft_status st = interrupted ? interrupt_error(err) : w->inner->ops->finish(w->inner, err);
    if (interrupted)
        w->inner->ops->discard(w->inner);
    record_failure(w, st);
    release(w);
    return st;
}

static void watched_discard(heft_sink *s)
{
    watched *w = (watched *)s;
    w->inner->ops->discard(w->inner);
    release(w);
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
        .scratch = HEFT_HAS(inner, scratch) ? watched_open_scratch : NULL,
        .finish = watched_finish,
        .discard = watched_discard,
    };
}

uint32_t sink_flags(bool force, bool no_sync)
{
    return (force ? HEFT_SINK_REPLACE : 0) | (no_sync ? HEFT_SINK_NO_SYNC : HEFT_SINK_SYNC);
}

heft_status sink_watch(heft_sink **sink, const char *path, sink_failure *failure, heft_error *err)
{
    watched *w = calloc(1, sizeof *w);
    char *copy = w ? strdup(path) : NULL;
    if (!copy) {
        free(w);
        heft_sink_discard(*sink);
        *sink = NULL;
        return no_memory(err);
    }
    w->ops = ops_of((*sink)->ops);
    w->base.ops = &w->ops;
    w->inner = *sink;
    w->path = copy;
    w->failure = failure;
    *sink = &w->base;
    return HEFT_OK;
}

heft_status sink_open(heft_sink **sink, const char *path, bool force, bool no_sync,
                      sink_failure *failure, heft_error *err)
{
    struct stat out;
    if (!stat(path, &out) && !S_ISREG(out.st_mode))
        interrupt_allow(); /* a pipe or a device may block forever */
    else
        interrupt_hold();
    heft_status st = heft_sink_open_file(sink, path, sink_flags(force, no_sync), err);
    return st ? st : sink_watch(sink, path, failure, err);
}

int sink_say_error(sink_failure *take, const char *fallback, const heft_error *err)
{
    char *path = atomic_exchange(&take->path, NULL);
    int code = say_error(path ? path : fallback, err);
    free(path);
    return code;
}
