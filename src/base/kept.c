/* kept.c - chooses among the objects that stay with a source. */
#include "base/kept.h"

#include "base/compiler.h"

/* Return a free object: the one that ended at `from`; one that has done part of the work;
 * otherwise, since other threads go on with those that were used recently, the one that was used
 * least recently of one more than there are threads. */
static uint32_t find(const heft_kept *k, const heft_kept_wish *w)
{
    uint32_t unused = HEFT_KEPT, oldest = HEFT_KEPT, same = HEFT_KEPT, before = HEFT_KEPT, used = 0;
    for (uint32_t i = 0; i < HEFT_KEPT; i++) {
        const heft_kept_use *u = &k->use[i];
        used += u->of != NULL;
        if (u->is_taken)
            continue;
        if (u->of == w->of && u->next == w->from)
            return i;
        if (!u->of)
            unused = unused < HEFT_KEPT ? unused : i;
        else if (oldest == HEFT_KEPT || u->last_use < k->use[oldest].last_use)
            oldest = i;
        if (u->of == w->of && u->next < w->from &&
            (before == HEFT_KEPT || u->next > k->use[before].next))
            before = i;
        if (w->has_more && u->of == w->of && w->has_more(w->ctx, i))
            same = i;
    }
    bool is_large = oldest < HEFT_KEPT && w->is_large && w->is_large(w->ctx, oldest);
    bool grows = unused < HEFT_KEPT &&
                 (oldest == HEFT_KEPT || (used <= k->most_taken && !is_large));
    if (same < HEFT_KEPT)
        return same;
    if (w->goes_forward && before < HEFT_KEPT)
        return before;
    return grows ? unused : oldest;
}

uint32_t heft_kept_take(heft_kept *k, const heft_kept_wish *w)
{
    heft_spin_lock(&k->lock);
    uint32_t i = find(k, w);
    if (i < HEFT_KEPT) {
        k->use[i].is_taken = true;
        k->use[i].of = w->of;
        k->use[i].last_use = ++k->uses;
        k->taken++;
        k->most_taken = k->taken > k->most_taken ? k->taken : k->most_taken;
    }
    heft_spin_unlock(&k->lock);
    return i;
}

void heft_kept_return(heft_kept *k, uint32_t i, uint64_t next)
{
    heft_spin_lock(&k->lock);
    k->use[i].is_taken = false;
    k->use[i].next = next;
    k->taken--;
    heft_spin_unlock(&k->lock);
}
