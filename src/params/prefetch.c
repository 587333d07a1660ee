/* prefetch.c - one thread that loads what will be needed, in the order it was asked for, as long as
 * there is room that nothing else needs. */
#include <stdlib.h>

#include "params/params_store.h"

/* The next entry asked for, or NULL when the store closes; under the lock.  Those that were loaded
 * meanwhile are no longer queued: by now they may have been used and given up again. */
static entry *next(heft_params *p)
{
    while (!p->stopping) {
        entry *e = p->queue_at < p->queue_len ? p->queue[p->queue_at++] : NULL;
        if (p->queue_at == p->queue_len)
            p->queue_at = p->queue_len = 0;
        if (!e) {
            pthread_cond_wait(&p->changed, &p->lock);
        } else if (e->queued) {
            e->queued = false;
            return e;
        }
    }
    return NULL;
}

/* Tries until it is there, or will not come; a release since the last try is reason for another.
 * Comes and goes with the lock. */
static void load_when_there_is_room(heft_params *p, entry *e)
{
    heft_status st = HEFT_E_LIMIT;
    atomic_fetch_or(&p->attention, ROOM_IS_WANTED); /* from here on every release is told */
    while (st == HEFT_E_LIMIT && !p->stopping) {
        uint64_t seen = p->releases;
        pthread_mutex_unlock(&p->lock);
        st = HEFT_OK;
        if ((atomic_load(&e->word) & STATE) == ABSENT) {
            atomic_store(&e->fresh, true);
            st = heft_cache_acquire(p, e, NULL, true, NULL);
            if (!st)
                heft_cache_release(p, e);
        }
        pthread_mutex_lock(&p->lock);
        while (st == HEFT_E_LIMIT && p->releases == seen && !p->stopping)
            pthread_cond_wait(&p->changed, &p->lock);
    }
    atomic_fetch_and(&p->attention, ~(unsigned)ROOM_IS_WANTED);
}

static void *read_ahead(void *arg)
{
    heft_params *p = arg;
    pthread_mutex_lock(&p->lock);
    for (entry *e; (e = next(p));)
        load_when_there_is_room(p, e);
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

void heft_params_prefetch(heft_params *p, const heft_id128 *keys, size_t n)
{
    pthread_mutex_lock(&p->lock);
    if (!p->reader_runs)
        p->reader_runs = !pthread_create(&p->reader, NULL, read_ahead, p);
    for (size_t i = 0; i < n && p->reader_runs; i++) {
        entry *e = heft_store_find(p, keys[i]);
        if (!e || e->queued || (atomic_load(&e->word) & STATE) != ABSENT ||
            !heft_params_store_reserve((void **)&p->queue, &p->queue_room, p->queue_len,
                                       sizeof(entry *)))
            continue;
        e->queued = true;
        p->queue[p->queue_len++] = e;
    }
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
}

void heft_prefetch_stop(heft_params *p)
{
    pthread_mutex_lock(&p->lock);
    p->stopping = true;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
    if (p->reader_runs)
        pthread_join(p->reader, NULL);
    free(p->queue);
}
