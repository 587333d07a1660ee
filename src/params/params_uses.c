/* params_uses.c - use counts of entries, and the stamps that order acquires.
 *
 * A thread counts a use in the entry's word. Threads that meet at the word of an entry get stripes
 * of use counts for the entry: the number of uses is then the sum of the word's count and of all
 * stripes. A use may be added in one stripe and removed in another.
 *
 * The stamp of an acquire is the number of loads so far, so acquiring writes nothing that threads
 * with other parameters read. Entries that were used after the same load are equally recent. */
#include "params/params_store.h"

#include <stdlib.h>

static size_t stripe_of_thread(void)
{
    uint64_t thread = (uint64_t)(uintptr_t)pthread_self();
    return (size_t)((thread * UINT64_C(0x9E3779B97F4A7C15)) >> 32) % STRIPES;
}

/* ---- uses ---- */

/* Give an entry stripes, unless many entries have stripes or there is no memory. */
static void share(heft_params *p, entry *e)
{
    use_stripe *none = NULL, *made = NULL;
    if (atomic_load_explicit(&p->shared, memory_order_relaxed) < MAX_SHARED)
        made = calloc(STRIPES, sizeof *made);
    if (!made)
        return;
    if (atomic_compare_exchange_strong(&e->shared, &none, made))
        atomic_fetch_add_explicit(&p->shared, 1, memory_order_relaxed);
    else
        free(made);
}

/* The use is counted before the state is read, and heft_uses_block() sets the state before it reads
 * the counts: one of both sees the other. */
static bool add_shared_use(entry *e, use_stripe *s, bool is_hit)
{
    uint64_t use = is_hit ? HIT + 1 : 1;
    atomic_fetch_add(&s->word, use);
    if ((atomic_load(&e->word) & STATE) == READY)
        return true;
    atomic_fetch_sub(&s->word, use);
    return false;
}

static bool add_use(entry *e, bool is_hit)
{
    uint64_t word = atomic_load_explicit(&e->word, memory_order_relaxed);
    while ((word & STATE) == READY)
        if (atomic_compare_exchange_weak_explicit(&e->word, &word, word + (is_hit ? HIT + 1 : 1),
                                                  memory_order_acquire, memory_order_relaxed))
            return true;
    return false;
}

static inline void stamp(const heft_params *p, entry *e, atomic_uint_fast64_t *at)
{
    uint64_t now = atomic_load_explicit(&p->loads, memory_order_relaxed);
    if (atomic_load_explicit(at, memory_order_relaxed) != now)
        atomic_store_explicit(at, now, memory_order_relaxed);
    if (atomic_load_explicit(&e->prefetched, memory_order_relaxed))
        atomic_store_explicit(&e->prefetched, false, memory_order_relaxed);
}

/* Threads have met at the word, or the entry has stripes or is not READY. */
static bool add_contended_use(heft_params *p, entry *e, bool is_hit)
{
    use_stripe *shared = atomic_load_explicit(&e->shared, memory_order_acquire);
    if (!shared && (atomic_load(&e->word) & STATE) == READY)
        share(p, e);
    shared = atomic_load_explicit(&e->shared, memory_order_acquire);
    use_stripe *own = shared ? &shared[stripe_of_thread()] : NULL;
    bool ok = own ? add_shared_use(e, own, is_hit) : add_use(e, is_hit);
    if (ok && is_hit)
        stamp(p, e, own ? &own->stamp : &e->stamp);
    return ok;
}

bool heft_uses_add(heft_params *p, entry *e, bool is_hit)
{
    uint64_t word = atomic_load_explicit(&e->word, memory_order_relaxed);
    if ((word & STATE) != READY || atomic_load_explicit(&e->shared, memory_order_acquire) ||
        !atomic_compare_exchange_strong_explicit(&e->word, &word, word + (is_hit ? HIT + 1 : 1),
                                                 memory_order_acquire, memory_order_relaxed))
        return add_contended_use(p, e, is_hit);
    if (is_hit)
        stamp(p, e, &e->stamp);
    return true;
}

void heft_uses_stamp(heft_params *p, entry *e)
{
    stamp(p, e, &e->stamp);
}

/* Eviction sets the attention before reading the use counts. */
void heft_cache_release(heft_params *p, entry *e)
{
    use_stripe *shared = atomic_load_explicit(&e->shared, memory_order_acquire);
    uint64_t uses = 0;
    if (shared)
        atomic_fetch_sub(&shared[stripe_of_thread()].word, 1);
    else
        uses = atomic_fetch_sub(&e->word, 1) & USES;
    if (atomic_load(&p->attention) && uses <= 1)
        heft_cache_released(p, e);
}

/* The words of an entry and of its stripes add up to all uses, the entry's state, and all hits. */
static uint64_t sum_of_words(const entry *e)
{
    use_stripe *shared = atomic_load(&e->shared);
    uint64_t sum = atomic_load(&e->word);
    for (size_t i = 0; shared && i < STRIPES; i++)
        sum += atomic_load(&shared[i].word);
    return sum;
}

/* Every removal that is seen belongs to a use that is seen, too, so the sum is 0 only if all uses
 * were removed. */
static bool is_unused(const entry *e)
{
    return !(sum_of_words(e) & USES);
}

bool heft_uses_block(entry *e)
{
    uint64_t word = atomic_load(&e->word);
    if (!is_unused(e))
        return false;
    while ((word & STATE) == READY)
        if (atomic_compare_exchange_weak(&e->word, &word, (word & ~STATE) | LOADING)) {
            if (is_unused(e))
                return true;
            atomic_fetch_add(&e->word, READY - LOADING);
            return false;
        }
    return false;
}

uint64_t heft_uses_stamp_of(const entry *e)
{
    use_stripe *shared = atomic_load(&e->shared);
    uint64_t latest = atomic_load(&e->stamp);
    for (size_t i = 0; shared && i < STRIPES; i++) {
        uint64_t other = atomic_load(&shared[i].stamp);
        latest = other > latest ? other : latest;
    }
    return latest;
}

uint64_t heft_uses_hits(const entry *e)
{
    return sum_of_words(e) / HIT;
}
