/* quantise_largest.c - finds the largest magnitudes that scales of whole tensors need, before the
 * first byte is encoded.
 *
 * Programs join some tensors of a module to one matrix with one scale: these get the same, from the
 * largest of their magnitudes. */
#include "base/error.h"
#include "base/sort.h"
#include "base/text.h"
#include "logical/quantisation.h"

enum { ALIGN = 64, JOINED = 3 };

/* ---- magnitudes of tensors ---- */

typedef struct search {
    heft_quantisation *q;
    size_t has_failed; /* atomic */
} search;

static heft_status find_largest(const heft_quantisation *q, heft_encoded *e, heft_error *err)
{
    const heft_allocator *al = q->f->host->allocator;
    heft_encoder *r = heft_alloc(al, sizeof *r, ALIGN);
    if (!r)
        return heft_error_no_memory(err, "to quantise a model");
    memset(r, 0, sizeof *r);
    heft_encoder_begin(r, e, err);
    heft_file_enter(e->f);
    heft_status st = heft_encoder_largest(r, 0, e->stack * e->rows, &e->largest);
    st = heft_file_leave_after(e->f, st, err);
    heft_encoder_free(r, al);
    heft_free(al, r, sizeof *r, ALIGN);
    return st;
}

static void run_search(void *arg, size_t i)
{
    search *s = arg;
    heft_encoded *e = &s->q->all[i];
    heft_error err;
    if (e->needs_largest && find_largest(s->q, e, &err))
        heft_atomic_publish(&s->has_failed, 1);
}

/* ---- joined tensors ---- */

static const char *const joined[][JOINED] = {
    { "q_proj", "k_proj", "v_proj" },
    { "gate_proj", "up_proj", NULL },
    { "w1", "w3", NULL },
};

/* A tensor that is joined with those of the same prefix, set and end. */
typedef struct member {
    heft_encoded *e;
    heft_str prefix;
    uint32_t set;
    bool has_end; /* the name ends with ".weight" */
} member;

/* Find the set to which the component of the name before ".weight", or the last one, belongs. */
static bool find_set(member *m, heft_encoded *e)
{
    heft_str module = e->name;
    *m = (member){ .e = e, .has_end = heft_str_ends(module, ".weight") };
    module.len -= m->has_end ? sizeof ".weight" - 1 : 0;
    for (m->set = 0; m->set < sizeof joined / sizeof *joined; m->set++)
        for (size_t k = 0; k < JOINED && joined[m->set][k]; k++) {
            const char *word = joined[m->set][k];
            if (!heft_str_ends(module, word))
                continue;
            m->prefix = (heft_str){ module.ptr, module.len - heft_lit(word).len };
            if (!m->prefix.len || heft_str_ends(m->prefix, "."))
                return true;
        }
    return false;
}

static bool is_before(const void *ctx, uint32_t i, uint32_t k)
{
    const member *a = (const member *)ctx + i, *b = (const member *)ctx + k;
    int order = heft_str_order(a->prefix, b->prefix);
    return order ? order < 0 : a->set != b->set ? a->set < b->set : a->has_end < b->has_end;
}

/* Give each tensor the largest magnitude of all that it is joined with. */
static void share_largest(const member *all, uint32_t *ids, uint32_t n)
{
    heft_sort_numbers(ids, n, is_before, all);
    for (uint32_t first = 0, end; first < n; first = end) {
        float most = 0;
        for (end = first; end < n && !is_before(all, ids[first], ids[end]); end++)
            most = all[ids[end]].e->largest > most ? all[ids[end]].e->largest : most;
        for (uint32_t i = first; i < end; i++)
            all[ids[i]].e->largest = most;
    }
}

static heft_status join(heft_quantisation *q, heft_error *err)
{
    size_t room = (size_t)q->count + 1;
    member *all = heft_mem_alloc(&q->mem, room * sizeof *all);
    uint32_t *ids = heft_mem_alloc(&q->mem, 2 * room * sizeof *ids), n = 0;
    bool ok = all && ids;
    for (uint32_t i = 0; ok && i < q->count; i++)
        n += q->all[i].needs_largest && find_set(&all[n], &q->all[i]);
    if (ok)
        share_largest(all, ids, n);
    heft_mem_free(&q->mem, ids, 2 * room * sizeof *ids);
    heft_mem_free(&q->mem, all, room * sizeof *all);
    return ok ? HEFT_OK : heft_error_no_memory(err, "to quantise a model");
}

heft_status heft_quantise_largest(heft_quantisation *q, heft_error *err)
{
    search s = { .q = q };
    heft_host_run(q->f->host, q->count, run_search, &s);
    /* The first tensor that fails is named, whatever the order of the threads. */
    for (uint32_t i = 0; s.has_failed && i < q->count; i++)
        if (q->all[i].needs_largest)
            HEFT_TRY(find_largest(q, &q->all[i], err));
    HEFT_TRY(join(q, err));
    for (uint32_t i = 0; i < q->count; i++)
        if (q->all[i].needs_largest)
            q->all[i].encoder->begin(&q->all[i]);
    return HEFT_OK;
}
