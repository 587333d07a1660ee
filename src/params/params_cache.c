/* params_cache.c - states of entries, eviction under the budget, loading. */
#include "params/params_store.h"

#include "base/arena.h"
#include "scheme/refuse.h"

#include <stdlib.h>
#include <string.h>

/* ---- loading an entry ---- */

enum {
    ALIGN = 64,
    MAP_FROM = 256 << 10 /* bytes; smaller parts are copied, since whole pages would cost more */
};

/* Return the bytes in place, or NULL if a copy is needed. */
static const void *view_in_place(const heft_params *p, const entry *e)
{
    const void *view = heft_part_view(e->file, e->part);
    const heft_dtype_info *info = heft_dtype_get(e->view.dtype);
    if (!view || p->opt.copy || (uintptr_t)view % (info->block_elems == 1 ? info->block_bytes : 1))
        return NULL;
    return heft_file_is_mapped(e->file) && e->view.bytes < MAP_FROM ? NULL : view;
}

/* ---- measuring ---- */

static heft_status measure_form(heft_params *p, entry *e, const heft_derivation *d, heft_error *err)
{
    HEFT_TRY(heft_uses_add(p, e->source, true)
                 ? HEFT_OK
                 : heft_cache_acquire(p, e->source, NULL, false, err));
    heft_param form = e->source->view;
    form.data = NULL;
    heft_status st = HEFT_OK;
    if (d->kind == heft_derivation_f32().kind && form.dtype != HEFT_F32)
        st = heft_refuse_cast(e->source->file, e->source->tensor, err);
    if (!st)
        st = d->shape(&form, &e->source->view, d->ctx, err);
    if (!st && form.rank > FORM_RANK && form.dims != e->source->view.dims)
        st = heft_error_plain(err, HEFT_E_ARGUMENT, "a derived form has more than 8 dimensions");
    if (st) {
        heft_cache_release(p, e->source);
        return st;
    }
    if (form.dims != e->source->view.dims) {
        memmove(e->dims, form.dims, form.rank * sizeof *form.dims);
        form.dims = e->dims;
    }
    e->view = form;
    e->weight = form.bytes;
    return HEFT_OK;
}

/* Set e->view without data, and e->weight. */
static heft_status load_measure(heft_params *p, entry *e, const heft_derivation *d, heft_error *err)
{
    if (!e->file)
        return measure_form(p, e, d, err);
    /* Memory of the caller does not count against the budget. */
    e->weight = view_in_place(p, e) && !heft_file_is_mapped(e->file) ? 0 : e->view.bytes;
    return HEFT_OK;
}

static void load_measured(heft_params *p, entry *e)
{
    if (!e->file)
        heft_cache_release(p, e->source);
}

/* ---- loading ---- */

static heft_status allocate(heft_params *p, entry *e, heft_error *err)
{
    const heft_allocator *al = p->host->allocator;
    holding *h = e->view.bytes < SIZE_MAX ? calloc(1, sizeof *h) : NULL;
    e->held = h;
    if (!h)
        return heft_store_no_memory(err);
    h->size = (size_t)e->view.bytes + 1;
    h->owned = heft_alloc(al, h->size, ALIGN);
    e->view.data = h->owned;
    return h->owned ? HEFT_OK : heft_store_no_memory(err);
}

static heft_status map(entry *e, const void *view, heft_error *err)
{
    e->view.data = view;
    if (!heft_file_is_mapped(e->file))
        return HEFT_OK;
    e->held = calloc(1, sizeof *e->held);
    if (!e->held)
        return heft_store_no_memory(err);
    e->held->mapped = e->file;
    e->held->part = e->part;
    return heft_part_populate(e->file, e->part, err);
}

/* An empty part is read as well, since it may have a digest.  Mapped pages that were copied are
 * dropped, because they would count as memory of the process beside the budget. */
static heft_status read_all(const heft_params *p, entry *e, heft_error *err)
{
    enum { STEP = 8 << 20 };
    heft_stream *s;
    uint64_t at = 0, left = e->view.bytes;
    HEFT_TRY(p->opt.check_parts ? heft_stream_open_checked(&s, e->file, e->part, err)
                                : heft_stream_open(&s, e->file, e->part, err));
    heft_status st;
    do {
        size_t n = left < STEP ? (size_t)left : STEP;
        st = heft_stream_read((uint8_t *)e->held->owned + at, s, n, err);
        if (heft_file_is_mapped(e->file))
            heft_part_dont_need(e->file, e->part);
        at += n;
        left -= n;
    } while (left && !st);
    heft_stream_close(s);
    return st;
}

/* Detach the bytes from the entry; NULL if there is nothing to release. */
static holding *load_take(entry *e)
{
    holding *h = e->held;
    e->held = NULL;
    e->view.data = NULL;
    return h;
}

/* Release a list of holdings. */
static void load_return(const heft_params *p, holding *first)
{
    const heft_allocator *al = p->host->allocator;
    for (holding *h = first, *next; h; h = next) {
        next = h->next;
        heft_free(al, h->owned, h->size, ALIGN);
        if (h->mapped)
            heft_part_dont_need(h->mapped, h->part);
        free(h);
    }
}

/* Must follow a successful load_measure(), whether or not the bytes were loaded. */
static heft_status load_bytes(heft_params *p, entry *e, const heft_derivation *d, heft_error *err)
{
    const void *view = e->file ? view_in_place(p, e) : NULL;
    heft_status st = view ? map(e, view, err) : allocate(p, e, err);
    if (!st && view && p->opt.check_parts) /* the mapped bytes are resident now */
        st = heft_part_verify(NULL, e->file, e->part, err);
    if (!st && !view)
        st = e->file ? read_all(p, e, err)
                     : d->make(e->held->owned, &e->view, &e->source->view, d->ctx, err);
    if (st)
        load_return(p, load_take(e));
    return st;
}

/* ---- heap, least recently used first; under the lock ---- */

static void heap_put(heft_params *p, size_t i, ranked r)
{
    p->heap[i] = r;
    r.e->heap_at = i;
}

static void heap_up(heft_params *p, size_t i)
{
    ranked r = p->heap[i];
    for (size_t up; i && p->heap[up = (i - 1) / 2].stamp > r.stamp; i = up)
        heap_put(p, i, p->heap[up]);
    heap_put(p, i, r);
}

static void heap_down(heft_params *p, size_t i)
{
    ranked r = p->heap[i];
    for (size_t c; (c = 2 * i + 1) < p->heap_len; i = c) {
        c += c + 1 < p->heap_len && p->heap[c + 1].stamp < p->heap[c].stamp;
        if (r.stamp <= p->heap[c].stamp)
            break;
        heap_put(p, i, p->heap[c]);
    }
    heap_put(p, i, r);
}

/* Capacity was reserved when the entry was added. */
static void heap_push(heft_params *p, entry *e)
{
    p->heap[p->heap_len++] = (ranked){ heft_uses_stamp_of(e), e };
    heap_up(p, p->heap_len - 1);
}

static void heap_remove(heft_params *p, const entry *e)
{
    size_t i = e->heap_at;
    ranked last = p->heap[--p->heap_len];
    heap_put(p, i, last); /* the last element keeps the position */
    heap_down(p, i);
    heap_up(p, last.e->heap_at);
}

/* ---- the budget; under the lock ---- */

/* Queue an event.  Out of memory the event is lost, but the statistics count it.  A stall has no
 * bytes: the loading thread may be writing e->weight without the lock. */
static void note(heft_params *p, heft_params_event what, const entry *e)
{
    uint64_t bytes = what == HEFT_PARAMS_STALL ? 0 : e->weight;
    if (p->opt.on_event && heft_params_store_reserve((void **)&p->events, &p->event_capacity,
                                                     p->event_count, sizeof *p->events))
        p->events[p->event_count++] = (event){ what, e->key, bytes };
}

static void unlock(heft_params *p)
{
    event *events = p->events;
    holding *dropped = p->dropped;
    size_t n = p->event_count;
    p->dropped = NULL;
    p->events = NULL;
    p->event_count = p->event_capacity = 0;
    pthread_mutex_unlock(&p->lock);
    load_return(p, dropped);
    for (size_t i = 0; i < n; i++)
        p->opt.on_event(p->opt.ctx, events[i].what, events[i].key, events[i].bytes);
    free(events);
}

/* Change the state of an entry that no thread can use; the word keeps the count that belongs to
 * stripes. */
static void set_state(entry *e, uint64_t state)
{
    atomic_store(&e->word, (atomic_load(&e->word) & ~STATE) + state);
}

/* Evict an entry unless it is in use or, for a prefetch, prefetched itself. */
static bool evict(heft_params *p, entry *e, bool ahead)
{
    if (ahead && atomic_load(&e->prefetched))
        return false;
    /* LOADING sends threads that acquire the entry to the lock. */
    if (!heft_uses_block(e))
        return false;
    holding *h = load_take(e);
    if (h) {
        h->next = p->dropped;
        p->dropped = h;
    }
    p->stats.resident -= e->weight;
    p->stats.evictions++;
    note(p, HEFT_PARAMS_EVICTION, e);
    set_state(e, ABSENT);
    return true;
}

static bool fits(const heft_params *p, uint64_t bytes)
{
    uint64_t resident = p->stats.resident;
    return !p->opt.budget || (resident <= p->opt.budget && bytes <= p->opt.budget - resident);
}

/* Evict until `bytes` more bytes fit or no entry can be evicted.  Entries in use are moved to the
 * end of the heap's array and put back afterwards; entries used since they were ranked are ranked
 * again.
 *
 * OVER_BUDGET is set before the use counts are read: an entry is either seen unused here, or
 * evicted by the thread that releases it.  While OVER_BUDGET stays set, nothing can be evicted
 * here. */
static bool make_room(heft_params *p, uint64_t bytes, bool ahead)
{
    size_t aside = p->heap_capacity;
    if (fits(p, bytes) || atomic_load(&p->attention) & OVER_BUDGET)
        return fits(p, bytes);
    if (!ahead)
        atomic_fetch_or(&p->attention, OVER_BUDGET);
    while (!fits(p, bytes) && p->heap_len) {
        ranked least = p->heap[0];
        heap_remove(p, least.e);
        if (heft_uses_stamp_of(least.e) != least.stamp)
            heap_push(p, least.e);
        else if (!evict(p, least.e, ahead))
            p->heap[--aside].e = least.e;
    }
    while (aside < p->heap_capacity)
        heap_push(p, p->heap[aside++].e);
    return fits(p, bytes);
}

/* Clear OVER_BUDGET if the budget holds again; call after each change of stats.resident. */
static void clear_over_budget(heft_params *p)
{
    if (fits(p, 0))
        atomic_fetch_and(&p->attention, ~(unsigned)OVER_BUDGET);
}

void heft_cache_released(heft_params *p, entry *e)
{
    pthread_mutex_lock(&p->lock);
    if (!fits(p, 0) && evict(p, e, false)) {
        heap_remove(p, e);
        clear_over_budget(p);
    }
    p->releases++;
    pthread_cond_broadcast(&p->changed);
    unlock(p);
}

/* ---- loading ---- */

/* Wait for the load of another thread, which adds a use for this thread on success.  HEFT_AGAIN:
 * the load was abandoned. */
static heft_status wait_for(heft_params *p, load *l, heft_error *err)
{
    l->waiting++;
    while (!l->done)
        pthread_cond_wait(&p->changed, &p->lock);
    heft_status st = l->abandoned ? HEFT_AGAIN : l->err.status;
    if (st && err)
        *err = l->err;
    if (!--l->waiting)
        free(l);
    return st;
}

/* Load an entry; called without the lock. */
static heft_status load_now(heft_params *p, entry *e, const heft_derivation *d, bool ahead,
                            heft_error *err)
{
    HEFT_TRY(load_measure(p, e, d, err));
    pthread_mutex_lock(&p->lock);
    bool fits_now = make_room(p, e->weight, ahead);
    heft_status st = HEFT_OK;
    if (ahead && !fits_now)
        st = heft_error_plain(err, HEFT_E_LIMIT, "the memory budget is exhausted");
    else
        p->stats.resident += e->weight;
    p->stats.peak = p->stats.resident > p->stats.peak ? p->stats.resident : p->stats.peak;
    clear_over_budget(p);
    unlock(p);
    if (!st) {
        st = load_bytes(p, e, d, err);
        if (st) {
            pthread_mutex_lock(&p->lock);
            p->stats.resident -= e->weight;
            clear_over_budget(p);
            unlock(p);
        }
    }
    load_measured(p, e);
    return st;
}

/* Publish the result of a load; call under the lock. */
static void publish(heft_params *p, entry *e, bool ahead, heft_status st, const heft_error *err)
{
    load *l = e->load;
    if (st) {
        l->err = *err;
        l->abandoned = ahead && st == HEFT_E_LIMIT;
        set_state(e, ABSENT);
    } else {
        p->stats.loads++;
        p->stats.bytes_loaded += e->view.bytes;
        atomic_store(&e->stamp, atomic_fetch_add(&p->loads, 1) + 1);
        set_state(e, READY + 1 + l->waiting); /* this thread and each waiting thread */
        heap_push(p, e);
        note(p, HEFT_PARAMS_LOAD, e);
    }
    l->done = true;
    e->load = NULL;
    if (!l->waiting)
        free(l);
    pthread_cond_broadcast(&p->changed);
}

static heft_status load_entry(heft_params *p, entry *e, const heft_derivation *d, bool ahead,
                              bool waited, heft_error *err)
{
    heft_error own = { .status = HEFT_OK };
    e->load = calloc(1, sizeof *e->load);
    if (!e->load) {
        unlock(p);
        return heft_store_no_memory(err);
    }
    set_state(e, LOADING);
    e->queued = false;
    if (!ahead && !waited) {
        p->stats.stalls++;
        note(p, HEFT_PARAMS_STALL, e);
    }
    unlock(p);
    heft_status st = load_now(p, e, d, ahead, &own);
    pthread_mutex_lock(&p->lock);
    publish(p, e, ahead, st, &own);
    unlock(p);
    if (st && err)
        *err = own;
    if (!st && !ahead)
        heft_uses_stamp(p, e);
    return st;
}

heft_status heft_cache_acquire(heft_params *p, entry *e, const heft_derivation *d, bool ahead,
                               heft_error *err)
{
    heft_status st = HEFT_OK;
    bool waited = false;
    pthread_mutex_lock(&p->lock);
    while (!heft_uses_add(p, e, !ahead && !waited)) {
        load *l = e->load;
        if (!l)
            return load_entry(p, e, d, ahead, waited, err);
        if (!waited) {
            p->stats.stalls++;
            note(p, HEFT_PARAMS_STALL, e);
        }
        waited = true;
        st = wait_for(p, l, err);
        if (st != HEFT_AGAIN)
            break;
        st = HEFT_OK;
    }
    unlock(p);
    if (!st && !ahead)
        heft_uses_stamp(p, e);
    return st;
}

void heft_cache_free(heft_params *p, entry *e)
{
    if ((atomic_load(&e->word) & STATE) == READY)
        load_return(p, load_take(e));
    free(atomic_load(&e->shared));
}
