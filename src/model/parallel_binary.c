/* parallel_binary.c - very many records of a file, read by several workers at once; where they begin is told by those
 * before.
 *
 * Where a record begins shows only by walking there, which takes far less time than reading.  So whoever reads
 * a slice walks over it first, and tells where the next one begins; who comes before that is known walks there
 * too, and waits for nobody.
 * Only what goes well is done here.  A record that is refused or remarkable, or a slice that does not end
 * where the next one begins: all is forgotten, and whoever asked reads the records in order. */
#include "model/parallel.h"

#include "base/checked_math.h"
#include "base/compiler.h"

enum {
    MANY = 100000,
    SLICES = HEFT_IX_CHUNKS,
    SAMPLED = 64, /* records that tell how many dimensions the others have */
    BASE_ID = 16
};

typedef struct slice {
    heft_index x; /* with a share of the columns, and no memory */
    heft_cur c;
    heft_window in;
    const uint8_t *begin;
    uint32_t first, count; /* its tensors */
    uint32_t first_dim;    /* in the pool */
    heft_status st;
} slice;

/* Of a slice's first record.  Several may tell it: the same, unless the file changes. */
typedef struct place {
    size_t known; /* how far behind the first record of all, plus one */
    uint32_t dim; /* in the pool */
} place;

typedef struct work {
    const heft_ix_binary_records *how;
    const heft_index *x;
    const heft_cur *from;
    place places[SLICES];
    slice of[SLICES];
} work;

static void need_nothing(heft_window *in, uint64_t off, uint64_t len)
{
    (void)in;
    (void)off;
    (void)len;
}

/* Without messages, and nothing more to be had. */
static heft_cur quiet(const heft_cur *c, heft_window *in)
{
    heft_cur q = *c;
    *in = *c->in;
    in->err = NULL;
    in->need = need_nothing;
    q.in = in;
    return q;
}

/* ---- to where slices begin ---- */

/* Behind so many records; how many dimensions are in them. */
static uint64_t walk(const heft_ix_binary_records *how, heft_cur *c, uint32_t records)
{
    uint64_t dims = 0;
    for (uint32_t i = 0, rank = 0; i < records && !c->st; i++) {
        how->skip(how->ctx, c, &rank);
        dims += rank;
    }
    return dims;
}

/* Room for the dimensions of them all, going by the first ones. */
static bool make_room(heft_index *x, const heft_cur *from, uint32_t count,
                      const heft_ix_binary_records *how)
{
    heft_window in;
    heft_cur c = quiet(from, &in);
    uint64_t each = heft_div(walk(how, &c, SAMPLED), SAMPLED) + 2;
    uint64_t likely = each * count, most = heft_cur_left(from) / sizeof(uint64_t);
    return !c.st &&
           heft_vec_reserve(&x->mem, &x->dims, likely < most ? likely : most, sizeof(uint64_t));
}

/* To where a slice begins; *dim is that of its first record. */
static bool go_to(work *w, heft_cur *c, uint32_t number, uint32_t *dim)
{
    uint32_t i = number;
    size_t known;
    while ((known = heft_atomic_load_published(&w->places[i].known)) == 0)
        i--;
    uint64_t dims = heft_atomic_load(&w->places[i].dim);
    c->p = w->from->p + (known - 1);
    for (; i < number; i++) {
        dims += walk(w->how, c, w->of[i].count);
        if (c->st || dims > w->x->dims.cap)
            return false;
        heft_atomic_store(&w->places[i + 1].dim, (uint32_t)dims);
        heft_atomic_publish(&w->places[i + 1].known, (size_t)(c->p - w->from->p) + 1);
    }
    *dim = (uint32_t)dims;
    return true;
}

/* ---- to read them ---- */

static heft_vec share_of(const heft_vec *v, uint32_t first, uint32_t end)
{
    return v->cap >= end ? (heft_vec){ v->ptr, first, end } : (heft_vec){ NULL, 0, 0 };
}

void heft_ix_worker_rows(heft_index *to, const heft_index *x, const heft_row_range *s)
{
    heft_ix_worker_view(to, x);
    to->tensors = share_of(&x->tensors, s->first, s->end);
    to->hashes = share_of(&x->hashes, s->first, s->end);
    to->parts = share_of(&x->parts, s->first, s->end);
    to->dims = share_of(&x->dims, s->first_dim, s->end_dim);
    to->base_ids = share_of(&x->base_ids, s->first, s->end);
    to->param_ids = share_of(&x->param_ids, s->first, s->end);
}

void heft_ix_worker_end(heft_index *x, const heft_index *share)
{
    x->odd_names = x->odd_names || share->odd_names;
    x->offset_bits |= share->offset_bits;
    x->max_rank = share->max_rank > x->max_rank ? share->max_rank : x->max_rank;
}

/* Its dimensions end where those of the next one begin. */
static bool lend_share(work *w, uint32_t number)
{
    slice *s = &w->of[number];
    heft_window in;
    heft_cur next = quiet(w->from, &in);
    uint32_t end_dim = w->x->dims.cap;
    s->c = quiet(w->from, &s->in);
    if (!go_to(w, &s->c, number, &s->first_dim) ||
        (number + 1 < SLICES && !go_to(w, &next, number + 1, &end_dim)) || end_dim < s->first_dim)
        return false;
    s->begin = s->c.p;
    heft_ix_worker_rows(&s->x, w->x,
                        &(heft_row_range){ s->first, s->first + s->count, s->first_dim, end_dim });
    s->x.parsed_from = (const char *)s->begin;
    return true;
}

static void read_slice(void *arg, size_t i)
{
    work *w = arg;
    slice *s = &w->of[i];
    if (lend_share(w, (uint32_t)i))
        s->st = w->how->read(w->how->ctx, &s->c, &s->x, s->count, (uint32_t)i);
}

/* The file may have changed meanwhile: nothing that was walked over is taken for granted. */
static bool went_well(const work *w)
{
    for (uint32_t i = 0; i < SLICES; i++) {
        const slice *s = &w->of[i];
        uint32_t end = s->first + s->count;
        if (s->st || s->x.lost_notes || s->x.lost_omissions || s->x.tensors.len != end ||
            s->x.parts.len != end)
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

static void share_out(work *w, uint32_t count)
{
    uint32_t each = count / SLICES;
    for (uint32_t i = 0; i < SLICES; i++) {
        slice *s = &w->of[i];
        s->first = i * each;
        s->count = i + 1 < SLICES ? each : count - s->first;
        s->st = HEFT_AGAIN; /* until it is read */
    }
}

bool heft_ix_parallel_binary(heft_index *x, heft_cur *c, uint32_t count,
                             const heft_ix_binary_records *how)
{
    bool at_hand = (uint64_t)(c->end - c->start) == c->limit - c->base;
    if (!HEFT_HAS_ATOMICS || count < MANY || !x->run || !at_hand || c->st || x->tensors.len ||
        !heft_ix_cache_data_role(x) || !make_room(x, c, count, how) ||
        (how->base_ids && !heft_vec_reserve(&x->mem, &x->base_ids, count, BASE_ID)))
        return false;
    work w = { .how = how, .x = x, .from = c, .places[0].known = 1 };
    share_out(&w, count);
    heft_ix_run(x, SLICES, read_slice, &w);
    if (!went_well(&w))
        return false;
    x->tensors.len = x->hashes.len = x->parts.len = count;
    x->dims.len = w.of[SLICES - 1].x.dims.len;
    for (uint32_t i = 0; i < SLICES; i++) {
        join_ids(x, &w.of[i]);
        heft_ix_worker_end(x, &w.of[i].x);
    }
    c->p = w.of[SLICES - 1].c.p;
    return true;
}
