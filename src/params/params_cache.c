/* params_cache.c - states of entries, eviction under the budget, loading. */
#include "params/params_store.h"

#include <stdlib.h>

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
    heft_load_return(p, dropped);
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
    holding *h = heft_load_take(e);
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
    HEFT_TRY(heft_load_measure(p, e, d, err));
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
        st = heft_load_bytes(p, e, d, err);
        if (st) {
            pthread_mutex_lock(&p->lock);
            p->stats.resident -= e->weight;
            clear_over_budget(p);
            unlock(p);
        }
    }
    heft_load_measured(p, e);
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
        heft_load_return(p, heft_load_take(e));
    free(atomic_load(&e->shared));
}
