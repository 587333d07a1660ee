/* prefetch.c - a thread that loads requested parameters in order, as far as the budget allows. */
#include <stdlib.h>

#include "params/params_store.h"

/* Return the next queued entry, or NULL when the store closes; call under the lock.  Entries loaded
 * meanwhile are skipped: they may have been used and evicted already. */
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

/* Load an entry, waiting for memory: each release of a last use is a reason to try again.  Called
 * and returns with the lock held. */
static void load_when_possible(heft_params *p, entry *e)
{
    heft_status st = HEFT_E_LIMIT;
    atomic_fetch_or(&p->attention, PREFETCH_WAITS); /* every release takes the lock from here on */
    while (st == HEFT_E_LIMIT && !p->stopping) {
        uint64_t seen = p->releases;
        pthread_mutex_unlock(&p->lock);
        st = HEFT_OK;
        if ((atomic_load(&e->word) & STATE) == ABSENT) {
            atomic_store(&e->prefetched, true);
            st = heft_cache_acquire(p, e, NULL, true, NULL);
            if (!st)
                heft_cache_release(p, e);
        }
        pthread_mutex_lock(&p->lock);
        while (st == HEFT_E_LIMIT && p->releases == seen && !p->stopping)
            pthread_cond_wait(&p->changed, &p->lock);
    }
    atomic_fetch_and(&p->attention, ~(unsigned)PREFETCH_WAITS);
}

static void *run_prefetcher(void *arg)
{
    heft_params *p = arg;
    pthread_mutex_lock(&p->lock);
    for (entry *e; (e = next(p));)
        load_when_possible(p, e);
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

void heft_params_prefetch(heft_params *p, const heft_id128 *keys, size_t n)
{
    pthread_mutex_lock(&p->lock);
    if (!p->prefetcher_runs)
        p->prefetcher_runs = !pthread_create(&p->prefetcher, NULL, run_prefetcher, p);
    for (size_t i = 0; i < n; i++) {
        entry *e = heft_store_find(p, keys[i]);
        if (!e || e->queued || (atomic_load(&e->word) & STATE) != ABSENT ||
            !heft_params_store_reserve((void **)&p->queue, &p->queue_capacity, p->queue_len,
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
    if (p->prefetcher_runs)
        pthread_join(p->prefetcher, NULL);
    free(p->queue);
}
