/* slices.c - very many records of a file, read by several workers at once; where they begin is told by those
 * before.
 *
 * Where a record begins shows only by walking there, which takes far less time than reading.  So the first
 * record of each slice is walked to, the columns are shared out, and the slices are read side by side.
 * Only what goes well is done here.  A record that is refused or remarkable, or a slice that does not end
 * where the next one begins: all is forgotten, and whoever asked reads the records in order. */
#include "model/slices.h"

#include "base/checked.h"

enum { MANY = 100000, SLICES = HEFT_IX_SLICES, BASE_ID = 16 };

typedef struct slice {
    heft_index x; /* with a share of the columns, and no memory */
    heft_cur c;
    heft_in in;
    const uint8_t *begin;
    uint32_t first, count; /* its tensors */
    uint32_t first_dim;    /* in the pool */
    heft_status st;
} slice;

typedef struct work {
    const heft_ix_slicing *how;
    slice of[SLICES];
} work;

static void need_nothing(heft_in *in, uint64_t off, uint64_t len)
{
    (void)in;
    (void)off;
    (void)len;
}

/* Without messages, and nothing more to be had. */
static heft_cur quiet(const heft_cur *c, heft_in *in)
{
    heft_cur q = *c;
    *in = *c->in;
    in->err = NULL;
    in->need = need_nothing;
    q.in = in;
    return q;
}

/* Dimensions of the last slice, to which nobody walks: it may have some more than the others. */
static uint64_t expected_dims(uint64_t met, uint32_t records, uint32_t last, uint64_t bytes)
{
    uint64_t most = bytes / sizeof(uint64_t), likely = (heft_div(met, records) + 2) * last;
    return likely < most ? likely : most;
}

/* To the first record of each slice. */
static bool walk(work *w, heft_index *x, const heft_cur *from, uint32_t count)
{
    heft_in in;
    heft_cur c = quiet(from, &in);
    uint32_t each = count / SLICES, left = count, rank = 0;
    uint64_t dims = 0;
    for (uint32_t i = 0; i < SLICES; i++) {
        slice *s = &w->of[i];
        s->begin = c.p;
        s->first = count - left;
        s->first_dim = (uint32_t)dims;
        s->count = i + 1 < SLICES ? each : left;
        left -= s->count;
        for (uint32_t k = 0; left && k < each && !c.st; k++) {
            w->how->skip(w->how->ctx, &c, &rank);
            dims += rank;
        }
    }
    uint32_t last = w->of[SLICES - 1].count;
    uint64_t room = dims + expected_dims(dims, count - last, last, heft_cur_left(&c));
    return !c.st && heft_vec_reserve(&x->mem, &x->dims, room, sizeof(uint64_t));
}

static heft_vec share_of(const heft_vec *v, uint32_t first, uint32_t end)
{
    return v->cap >= end ? (heft_vec){ v->ptr, first, end } : (heft_vec){ NULL, 0, 0 };
}

void heft_ix_share(heft_index *to, const heft_index *x, const heft_ix_stretch *s)
{
    heft_ix_lend(to, x);
    to->tensors = share_of(&x->tensors, s->first, s->end);
    to->hashes = share_of(&x->hashes, s->first, s->end);
    to->parts = share_of(&x->parts, s->first, s->end);
    to->dims = share_of(&x->dims, s->first_dim, s->end_dim);
    to->base_ids = share_of(&x->base_ids, s->first, s->end);
    to->param_ids = share_of(&x->param_ids, s->first, s->end);
}

static void share_out(work *w, const heft_index *x, const heft_cur *from)
{
    for (uint32_t i = 0; i < SLICES; i++) {
        slice *s = &w->of[i];
        uint32_t end = s->first + s->count;
        uint32_t dims = i + 1 < SLICES ? w->of[i + 1].first_dim : x->dims.cap;
        heft_ix_share(&s->x, x, &(heft_ix_stretch){ s->first, end, s->first_dim, dims });
        s->c = quiet(from, &s->in);
        s->c.p = s->begin;
        s->x.passed_from = (const char *)s->begin;
    }
}

static void read_slice(void *arg, size_t i)
{
    work *w = arg;
    slice *s = &w->of[i];
    s->st = w->how->read(w->how->ctx, &s->c, &s->x, s->count, (uint32_t)i);
}

/* The file may have changed meanwhile: nothing that was walked over is taken for granted. */
static bool went_well(const work *w)
{
    for (uint32_t i = 0; i < SLICES; i++) {
        const slice *s = &w->of[i];
        uint32_t end = s->first + s->count;
        if (s->st || s->x.lost_notes || s->x.tensors.len != end || s->x.parts.len != end)
            return false;
        if (i + 1 < SLICES && (s->c.p != s[1].begin || s->x.dims.len != s[1].first_dim))
            return false;
    }
    return true;
}

/* Ids reach to the last tensor of a slice that has one. */
static void join_ids(heft_index *x, const slice *s)
{
    uint32_t old = x->base_ids.len;
    if (s->x.base_ids.len <= s->first)
        return;
    memset((uint8_t *)x->base_ids.ptr + (size_t)old * BASE_ID, 0,
           (size_t)(s->first - old) * BASE_ID);
    x->base_ids.len = s->x.base_ids.len;
}

bool heft_ix_slices(heft_index *x, heft_cur *c, uint32_t count, const heft_ix_slicing *how)
{
    bool at_hand = (uint64_t)(c->end - c->start) == c->limit - c->base;
    if (count < MANY || !x->run || !at_hand || c->st || x->tensors.len || !heft_ix_know_data(x))
        return false;
    work w = { .how = how };
    if (!walk(&w, x, c, count) ||
        (how->base_ids && !heft_vec_reserve(&x->mem, &x->base_ids, count, BASE_ID)))
        return false;
    share_out(&w, x, c);
    heft_ix_run(x, SLICES, read_slice, &w);
    if (!went_well(&w))
        return false;
    x->tensors.len = x->hashes.len = x->parts.len = count;
    x->dims.len = w.of[SLICES - 1].x.dims.len;
    for (uint32_t i = 0; i < SLICES; i++)
        join_ids(x, &w.of[i]);
    c->p = w.of[SLICES - 1].c.p;
    return true;
}
