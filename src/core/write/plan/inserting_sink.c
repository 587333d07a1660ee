/* inserting_sink.c - a sink that adds bytes of the format inside of the data of parts.
 *
 * Whoever writes the byte after an insertion writes the insertion, too, so that threads may write
 * in any order. */
#include "base/bisect.h"
#include "core/write/plan/plan.h"

/* Return the number of insertions before the byte at `at`, and the sum of their bytes. */
static uint32_t insertions_before(const heft_plan *p, uint64_t at, uint64_t *bytes)
{
    heft_bisect b = { .end = p->insertion_count };
    while (heft_bisect_next(&b))
        heft_bisect_narrow(&b, p->insertions[b.mid].at < at);
    const heft_insertion *last = b.first ? &p->insertions[b.first - 1] : NULL;
    *bytes = last ? last->before + last->bytes.len : 0;
    return (uint32_t)b.first;
}

uint64_t heft_plan_size(const heft_plan *plan)
{
    uint64_t inserted;
    insertions_before(plan, UINT64_MAX, &inserted);
    return plan->file_bytes ? plan->file_bytes + inserted : 0;
}

/* Write a range without insertions, or cut it at them. */
static heft_status write_at(heft_sink *s, uint64_t offset, const void *data, size_t len,
                            heft_error *err)
{
    heft_inserting_sink *w = (heft_inserting_sink *)s;
    const heft_insertion *all = w->plan->insertions;
    const uint8_t *p = data;
    uint64_t inserted;
    for (uint32_t i = insertions_before(w->plan, offset, &inserted); len; i++) {
        bool is_last = i == w->plan->insertion_count || all[i].at - offset >= len;
        size_t n = is_last ? len : (size_t)(all[i].at - offset);
        HEFT_TRY(heft_sink_put(w->to, offset + inserted, p, n, err));
        offset += n;
        p += n;
        len -= n;
        if (is_last)
            break;
        HEFT_TRY(heft_sink_put(w->to, offset + inserted, all[i].bytes.ptr, all[i].bytes.len, err));
        inserted += all[i].bytes.len;
    }
    return HEFT_OK;
}

static heft_status write_next(heft_sink *s, const void *data, size_t len, heft_error *err)
{
    heft_inserting_sink *w = (heft_inserting_sink *)s;
    uint64_t at = w->at;
    w->at += len;
    return write_at(s, at, data, len, err);
}

static heft_status reserve(heft_sink *s, uint64_t size, heft_error *err)
{
    (void)size; /* the plan knows it */
    const heft_inserting_sink *w = (heft_inserting_sink *)s;
    return heft_sink_reserve(w->to, heft_plan_size(w->plan), err);
}

static heft_status finish(heft_sink *s, heft_error *err)
{
    return heft_sink_finish(((heft_inserting_sink *)s)->to, err);
}

static void discard(heft_sink *s)
{
    heft_sink_discard(((heft_inserting_sink *)s)->to);
}

static const heft_sink_ops stream = { .size = sizeof(heft_sink_ops),
                                      .write = write_next,
                                      .reserve = reserve,
                                      .finish = finish,
                                      .discard = discard };
static const heft_sink_ops random_access = { .size = sizeof(heft_sink_ops),
                                             .write = write_next,
                                             .write_at = write_at,
                                             .reserve = reserve,
                                             .finish = finish,
                                             .discard = discard };

heft_sink *heft_sink_inserting(heft_inserting_sink *s, heft_sink *to, const heft_plan *plan)
{
    if (!plan->insertion_count)
        return to;
    *s = (heft_inserting_sink){ { to->ops->write_at ? &random_access : &stream }, to, plan, 0 };
    return &s->base;
}
