/* cache.c - states, uses and the budget. */
#include "params/store.h"

#include <stdlib.h>

/* ---- uses ---- */

static bool add_use(entry *e)
{
    unsigned word = atomic_load_explicit(&e->word, memory_order_relaxed);
    while ((word & STATE) == READY)
        if (atomic_compare_exchange_weak_explicit(&e->word, &word, word + 1, memory_order_acquire,
                                                  memory_order_relaxed))
            return true;
    return false;
}

static void touch(heft_params *p, entry *e)
{
    uint64_t now = atomic_fetch_add_explicit(&p->tick, 1, memory_order_relaxed);
    atomic_store_explicit(&e->stamp, now + 1, memory_order_relaxed);
    if (atomic_load_explicit(&e->fresh, memory_order_relaxed))
        atomic_store_explicit(&e->fresh, false, memory_order_relaxed);
}

bool heft_cache_take(heft_params *p, entry *e)
{
    if (!add_use(e))
        return false;
    touch(p, e);
    return true;
}

void heft_cache_release(heft_params *p, entry *e)
{
    atomic_fetch_sub_explicit(&e->word, 1, memory_order_seq_cst);
    if (!atomic_load_explicit(&p->wants_room, memory_order_seq_cst))
        return;
    pthread_mutex_lock(&p->lock);
    p->releases++;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
}

/* ---- least recently used; under the lock ---- */

static void heap_up(heft_params *p, size_t i)
{
    for (size_t up; i && p->heap[up = (i - 1) / 2].stamp > p->heap[i].stamp; i = up) {
        ranked swap = p->heap[up];
        p->heap[up] = p->heap[i];
        p->heap[i] = swap;
    }
}

static void heap_down(heft_params *p)
{
    size_t i = 0;
    for (size_t c; (c = 2 * i + 1) < p->heap_len; i = c) {
        c += c + 1 < p->heap_len && p->heap[c + 1].stamp < p->heap[c].stamp;
        if (p->heap[i].stamp <= p->heap[c].stamp)
            return;
        ranked swap = p->heap[i];
        p->heap[i] = p->heap[c];
        p->heap[c] = swap;
    }
}

/* Room was made before the entry was loaded. */
static void heap_push(heft_params *p, entry *e)
{
    p->heap[p->heap_len++] = (ranked){ atomic_load(&e->stamp), e };
    heap_up(p, p->heap_len - 1);
}

static entry *heap_pop(heft_params *p)
{
    entry *e = p->heap[0].e;
    p->heap[0] = p->heap[--p->heap_len];
    heap_down(p);
    return e;
}

/* ---- the budget; under the lock ---- */

/* An event that finds no memory is counted all the same. */
static void note(heft_params *p, heft_params_event what, const entry *e)
{
    if (p->opt.on_event &&
        heft_store_room((void **)&p->events, &p->event_room, p->event_count, sizeof *p->events))
        p->events[p->event_count++] = (event){ what, e->key, e->weight };
}

static void unlock(heft_params *p)
{
    event *events = p->events;
    size_t n = p->event_count;
    p->events = NULL;
    p->event_count = p->event_room = 0;
    pthread_mutex_unlock(&p->lock);
    for (size_t i = 0; i < n; i++)
        p->opt.on_event(p->opt.ctx, events[i].what, events[i].key, events[i].bytes);
    free(events);
}

static bool give_up(heft_params *p, entry *e, bool ahead)
{
    unsigned unused = READY;
    if (ahead && atomic_load(&e->fresh))
        return false;
    /* as if it were being loaded: whoever wants it now comes for the lock */
    if (!atomic_compare_exchange_strong(&e->word, &unused, LOADING))
        return false;
    heft_load_drop(p, e);
    p->stats.resident -= e->weight;
    p->stats.evictions++;
    note(p, HEFT_PARAMS_EVICTION, e);
    atomic_store(&e->word, ABSENT);
    return true;
}

/* Evicts until so many bytes more fit, or nothing is left to evict.  Entries in use are set aside,
 * at the end of the heap's own array, and put back; those used since they were ranked are ranked
 * anew. */
static bool make_room(heft_params *p, uint64_t bytes, bool ahead)
{
    size_t aside = p->heap_room;
    bool fits = !p->opt.budget;
    while (!fits) {
        fits = p->stats.resident <= p->opt.budget && bytes <= p->opt.budget - p->stats.resident;
        if (fits || !p->heap_len)
            break;
        uint64_t ranked_at = p->heap[0].stamp;
        entry *e = heap_pop(p);
        if (atomic_load(&e->stamp) != ranked_at)
            heap_push(p, e);
        else if (!give_up(p, e, ahead))
            p->heap[--aside].e = e;
    }
    while (aside < p->heap_room)
        heap_push(p, p->heap[aside++].e);
    return fits;
}

/* ---- loading ---- */

/* Waits for another's load; a use was added for us if it succeeded.  HEFT_AGAIN: nothing came of it. */
static heft_status wait_for(heft_params *p, load *l, heft_error *err)
{
    l->waiting++;
    while (!l->done)
        pthread_cond_wait(&p->changed, &p->lock);
    heft_status st = l->given_up ? HEFT_AGAIN : l->err.status;
    if (st && err)
        *err = l->err;
    if (!--l->waiting)
        free(l);
    return st;
}

/* Reserves room; without the lock. */
static heft_status reserve(heft_params *p, entry *e, bool ahead, heft_error *err)
{
    pthread_mutex_lock(&p->lock);
    bool fits = make_room(p, e->weight, ahead);
    heft_status st = HEFT_OK;
    if (ahead && !fits)
        st = heft_error_plain(err, HEFT_E_LIMIT, "no room under the budget");
    else
        p->stats.resident += e->weight;
    if (p->stats.resident > p->stats.peak)
        p->stats.peak = p->stats.resident;
    unlock(p);
    return st;
}

static heft_status load_now(heft_params *p, entry *e, const heft_derivation *d, bool ahead,
                            heft_error *err)
{
    heft_status st = heft_load_measure(p, e, d, err);
    if (st)
        return st;
    st = reserve(p, e, ahead, err);
    if (!st) {
        st = heft_load_bytes(p, e, d, err);
        if (st) {
            pthread_mutex_lock(&p->lock);
            p->stats.resident -= e->weight;
            unlock(p);
        }
    }
    heft_load_measured(p, e);
    return st;
}

/* Publishes what came of a load; under the lock. */
static void settle(heft_params *p, entry *e, bool ahead, heft_status st, const heft_error *err)
{
    load *l = e->load;
    if (st) {
        l->err = *err;
        l->given_up = ahead && st == HEFT_E_LIMIT;
        atomic_store(&e->word, ABSENT);
    } else {
        p->stats.loads++;
        p->stats.bytes_loaded += e->view.bytes;
        atomic_store(&e->stamp, atomic_load(&p->tick));
        atomic_store(&e->word, READY + 1 + l->waiting); /* ours, and one for each who waits */
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
    atomic_store(&e->word, LOADING);
    e->queued = false;
    if (!ahead && !waited) {
        p->stats.stalls++;
        note(p, HEFT_PARAMS_STALL, e);
    }
    unlock(p);
    heft_status st = load_now(p, e, d, ahead, &own);
    pthread_mutex_lock(&p->lock);
    settle(p, e, ahead, st, &own);
    unlock(p);
    if (st && err)
        *err = own;
    if (!st && !ahead)
        touch(p, e);
    return st;
}

heft_status heft_cache_acquire(heft_params *p, entry *e, const heft_derivation *d, bool ahead,
                               heft_error *err)
{
    heft_status st = HEFT_OK;
    bool waited = false;
    pthread_mutex_lock(&p->lock);
    while (!add_use(e)) {
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
        touch(p, e);
    return st;
}

void heft_cache_free(heft_params *p, entry *e)
{
    if ((atomic_load(&e->word) & STATE) == READY)
        heft_load_drop(p, e);
}
