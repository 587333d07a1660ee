/* parallel_text.c - very many records of a text, read by several workers at once; where they begin is guessed.
 *
 * Each slice is read from where a record seems to begin to where the next slice begins.  The first one does
 * begin where a record does.  If it ends exactly where the second begins, then so does that one, and so on: what is
 * kept is what reading in order gives.  The first slice that ends elsewhere is the last one that is kept, and one
 * in which a record is refused or remarkable is forgotten with those behind it.  Whoever asked goes on
 * there, in order.
 *
 * How many records a slice has is not known beforehand either.  So each has more room than it will need, in
 * columns that nobody touches before there is something to put there, and in the end the gaps are closed. */
#include "model/parallel.h"

#include "base/checked_math.h"

enum {
    SLICES = HEFT_IX_CHUNKS,
    MANY = 50000,    /* records, about, from which on it pays */
    NEAR = 64 << 10, /* bytes within which a record should begin */
    SAMPLED = 64,    /* records of a slice that tell how long the others are */
    SPARE = 64,      /* … and a quarter more: records for which there is room */
    DIMS_EACH = 4,   /* dimensions of each, on average, for which there is room */
    PARAM_ID = 8
};

typedef struct slice {
    heft_index x; /* with a share of the columns, and no memory */
    const uint8_t *begin, *end, *stop;
    heft_row_range room;
    uint32_t to, to_dim; /* where its rows belong */
} slice;

typedef struct work {
    const heft_ix_text_records *how;
    heft_index *x;
    uint32_t kept; /* slices */
    slice of[SLICES];
} work;

/* ---- before ---- */

static const uint8_t *near_end(const uint8_t *p, const uint8_t *end)
{
    return end - p < NEAR ? end : p + NEAR;
}

/* False: no record seems to begin where a slice should. */
static bool choose(work *w, const uint8_t *p, const uint8_t *end)
{
    uint64_t each = (uint64_t)(end - p) / SLICES;
    for (uint32_t i = 0; i < SLICES; i++) {
        const uint8_t *at = p + i * each;
        w->of[i].begin = i ? w->how->seek(w->how->ctx, at, near_end(at, end)) : p;
        if (!w->of[i].begin || (i && w->of[i].begin <= w->of[i - 1].begin))
            return false;
    }
    for (uint32_t i = 0; i < SLICES; i++)
        w->of[i].end = i + 1 < SLICES ? w->of[i + 1].begin : end;
    return true;
}

/* How many records a slice has, going by its first ones. */
static uint64_t estimate(const work *w, const slice *s)
{
    const uint8_t *p = s->begin, *end = near_end(p, s->end), *next;
    uint64_t n = 0;
    for (; n < SAMPLED && (next = w->how->seek(w->how->ctx, p, end)) != NULL; n++)
        p = next;
    return n ? heft_div((uint64_t)(s->end - s->begin), heft_div((uint64_t)(p - s->begin), n)) : 0;
}

static bool make_room(work *w)
{
    heft_index *x = w->x;
    uint64_t rows = x->tensors.len, dims = x->dims.len, records = 0;
    for (uint32_t i = 0; i < SLICES; i++) {
        slice *s = &w->of[i];
        uint64_t likely = estimate(w, s), room = likely + likely / 4 + SPARE;
        uint64_t end = rows + room, end_dim = dims + DIMS_EACH * room;
        if (!likely || end_dim > UINT32_MAX)
            return false;
        s->room = (heft_row_range){ (uint32_t)rows, (uint32_t)end, (uint32_t)dims,
                                    (uint32_t)end_dim };
        rows = end;
        dims = end_dim;
        records += likely;
    }
    if (records < MANY || rows > x->limits.tensors)
        return false;
    rows -= x->tensors.len;
    dims -= x->dims.len;
    return heft_ix_reserve_rows(x, rows, dims) &&
           (!w->how->param_ids || heft_vec_reserve(&x->mem, &x->param_ids, rows, PARAM_ID));
}

static void read_slice(void *arg, size_t i)
{
    work *w = arg;
    slice *s = &w->of[i];
    heft_ix_worker_rows(&s->x, w->x, &s->room);
    s->x.parsed_from = (const char *)s->begin;
    s->stop = w->how->read(w->how->ctx, s->begin, s->end, &s->x, (uint32_t)i);
}

/* ---- afterwards ---- */

static uint32_t rows_of(const slice *s)
{
    return s->x.tensors.len - s->room.first;
}

/* The slices that are kept, and where their rows belong. */
static void judge(work *w, uint32_t most)
{
    uint32_t to = w->x->tensors.len, to_dim = w->x->dims.len;
    bool goes_on = true;
    for (w->kept = 0; w->kept < SLICES && goes_on; w->kept++) {
        slice *s = &w->of[w->kept];
        bool is_sound = s->stop && !s->x.lost_notes && !s->x.lost_omissions &&
                        s->x.parts.len == s->x.tensors.len && s->x.hashes.len == s->x.tensors.len;
        if (!is_sound || rows_of(s) > most)
            return;
        s->to = to;
        s->to_dim = to_dim;
        to += rows_of(s);
        to_dim += s->x.dims.len - s->room.first_dim;
        most -= rows_of(s);
        goes_on = s->stop == s->end;
    }
}

static void close_tensors(work *w)
{
    heft_ix_tensor_row *rows = w->x->tensors.ptr;
    for (uint32_t k = 0; k < w->kept; k++) {
        const slice *s = &w->of[k];
        uint32_t moved = s->room.first - s->to, moved_dims = s->room.first_dim - s->to_dim;
        for (uint32_t i = s->room.first; (moved || moved_dims) && i < s->x.tensors.len; i++) {
            heft_ix_tensor_row row = rows[i];
            row.first_part -= moved;
            row.dims -= moved_dims;
            rows[i - moved] = row;
        }
        w->x->tensors.len = s->to + rows_of(s);
    }
}

/* Elements from `from` on, so many, become those that end the column, from `to` on. */
static void bring(heft_vec *column, size_t elem, uint32_t to, uint32_t from, uint32_t count)
{
    char *p = column->ptr;
    if (count && to < from)
        memmove(p + to * elem, p + from * elem, count * elem);
    column->len = to + count;
}

static void close_rows(work *w, heft_vec *column, size_t elem)
{
    for (const slice *s = w->of; s < w->of + w->kept; s++)
        bring(column, elem, s->to, s->room.first, rows_of(s));
}

/* Ids reach to the last tensor that has one: the others have zeros. */
static void close_ids(work *w)
{
    heft_vec *ids = &w->x->param_ids;
    for (uint32_t k = 0; k < w->kept; k++) {
        const slice *s = &w->of[k];
        uint32_t count = s->x.param_ids.len - s->room.first;
        if (!s->x.param_ids.ptr || !count)
            continue;
        memset((char *)ids->ptr + (size_t)ids->len * PARAM_ID, 0,
               (size_t)(s->to - ids->len) * PARAM_ID);
        bring(ids, PARAM_ID, s->to, s->room.first, count);
    }
}

enum { COLUMNS = 4 };

static void close_gaps(void *arg, size_t column)
{
    work *w = arg;
    switch (column) {
    case 0:
        close_tensors(w);
        break;
    case 1:
        close_rows(w, &w->x->parts, sizeof(heft_ix_part_row));
        break;
    case 2:
        for (const slice *s = w->of; s < w->of + w->kept; s++)
            bring(&w->x->dims, sizeof(uint64_t), s->to_dim, s->room.first_dim,
                  s->x.dims.len - s->room.first_dim);
        break;
    default:
        close_rows(w, &w->x->hashes, sizeof(uint32_t));
        close_ids(w);
    }
}

const uint8_t *heft_ix_parallel_text(heft_index *x, const uint8_t *p, const uint8_t *end,
                                     uint32_t most, const heft_ix_text_records *how)
{
    enum { LEAST = MANY * 16 }; /* bytes of so many records */
    work w = { .how = how, .x = x };
    if (end - p < LEAST || !x->run || x->parts.len != x->tensors.len || !choose(&w, p, end) ||
        !make_room(&w) || !heft_ix_cache_data_role(x))
        return p;
    heft_ix_run(x, SLICES, read_slice, &w);
    judge(&w, most);
    if (w.kept)
        heft_ix_run(x, COLUMNS, close_gaps, &w);
    /* what comes next shall not have less memory for the room that was not needed */
    heft_ix_trim(x);
    for (uint32_t i = 0; i < w.kept; i++) {
        heft_ix_worker_end(x, &w.of[i].x);
        how->join(how->ctx, i, w.of[i].room.first - w.of[i].to);
    }
    return w.kept ? w.of[w.kept - 1].stop : p;
}
