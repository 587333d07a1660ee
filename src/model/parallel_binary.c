/* parallel_binary.c - parses very many records of variable length with several workers.
 *
 * The start of a record is found only by skipping all records before, which is much faster than
 * parsing them.  Each worker first skips the records of its chunk and publishes the start of the
 * next chunk.  A worker whose start is not yet published computes it itself, so no worker blocks.
 *
 * Only the case without errors is handled here.  If a record is refused or causes a note, or a
 * chunk does not end where the next one begins, all results are discarded and the caller parses the
 * records in sequence. */
#include "model/parallel.h"

#include "base/checked_math.h"
#include "base/compiler.h"

enum {
    MIN_RECORDS = 100000,
    CHUNKS = HEFT_IX_CHUNKS,
    SAMPLED = 64, /* records from which the number of dimensions is estimated */
    BASE_ID = 16
};

typedef struct chunk {
    heft_index x; /* worker's view with rows to fill */
    heft_cur c;
    heft_window in;
    const uint8_t *begin;
    uint32_t first, count; /* tensors of the chunk */
    uint32_t first_dim;    /* index in heft_index.dims */
    heft_status st;
} chunk;

/* Start of a chunk.  Several workers may store it: the same value, unless the file changes. */
typedef struct chunk_start {
    size_t known; /* bytes after the start of the first chunk, plus one; 0: not yet known */
    uint32_t dim; /* index in heft_index.dims */
} chunk_start;

typedef struct job {
    const heft_ix_binary_records *records;
    const heft_index *x;
    const heft_cur *from;
    chunk_start starts[CHUNKS];
    chunk of[CHUNKS];
} job;

static void need_nothing(heft_window *in, uint64_t off, uint64_t len)
{
    (void)in;
    (void)off;
    (void)len;
}

/* Copy a cursor so that it reports no errors and requests no further bytes. */
static heft_cur silent_copy(const heft_cur *c, heft_window *in)
{
    heft_cur q = *c;
    *in = *c->in;
    in->err = NULL;
    in->need = need_nothing;
    q.in = in;
    return q;
}

/* ---- starts of chunks ---- */

/* Skip records; return the number of their dimensions. */
static uint64_t skip_records(const heft_ix_binary_records *records, heft_cur *c, uint32_t count)
{
    uint64_t dims = 0;
    for (uint32_t i = 0, rank = 0; i < count && !c->st; i++) {
        records->skip(records->ctx, c, &rank);
        dims += rank;
    }
    return dims;
}

/* Reserve the dimensions of all records, estimated from the first ones. */
static bool reserve_dims(heft_index *x, const heft_cur *from, uint32_t count,
                         const heft_ix_binary_records *records)
{
    heft_window in;
    heft_cur c = silent_copy(from, &in);
    uint64_t each = heft_div(skip_records(records, &c, SAMPLED), SAMPLED) + 2;
    uint64_t estimate = each * count, max_dims = heft_cur_left(from) / sizeof(uint64_t);
    return !c.st && heft_vec_reserve(&x->mem, &x->dims, estimate < max_dims ? estimate : max_dims,
                                     sizeof(uint64_t));
}

/* Move the cursor to the start of a chunk; set *dim to the index of its first dimension. */
static bool find_start(job *w, heft_cur *c, uint32_t number, uint32_t *dim)
{
    uint32_t i = number;
    size_t known;
    while ((known = heft_atomic_load_published(&w->starts[i].known)) == 0)
        i--;
    uint64_t dims = heft_atomic_load(&w->starts[i].dim);
    c->p = w->from->p + (known - 1);
    for (; i < number; i++) {
        dims += skip_records(w->records, c, w->of[i].count);
        if (c->st || dims > w->x->dims.cap)
            return false;
        heft_atomic_store(&w->starts[i + 1].dim, (uint32_t)dims);
        heft_atomic_publish(&w->starts[i + 1].known, (size_t)(c->p - w->from->p) + 1);
    }
    *dim = (uint32_t)dims;
    return true;
}

/* ---- parsing ---- */

static heft_vec column_range(const heft_vec *v, uint32_t first, uint32_t end)
{
    return v->cap >= end ? (heft_vec){ v->ptr, first, end } : (heft_vec){ NULL, 0, 0 };
}

void heft_ix_worker_rows(heft_index *to, const heft_index *x, const heft_row_range *s)
{
    heft_ix_worker_view(to, x);
    to->tensors = column_range(&x->tensors, s->first, s->end);
    to->hashes = column_range(&x->hashes, s->first, s->end);
    to->parts = column_range(&x->parts, s->first, s->end);
    to->dims = column_range(&x->dims, s->first_dim, s->end_dim);
    to->base_ids = column_range(&x->base_ids, s->first, s->end);
    to->param_ids = column_range(&x->param_ids, s->first, s->end);
}

void heft_ix_worker_end(heft_index *x, const heft_index *worker)
{
    x->odd_names = x->odd_names || worker->odd_names;
    x->offset_bits |= worker->offset_bits;
    x->max_rank = worker->max_rank > x->max_rank ? worker->max_rank : x->max_rank;
}

/* Give the worker the rows of its chunk; the dimensions end where those of the next chunk begin. */
static bool assign_rows(job *w, uint32_t number)
{
    chunk *s = &w->of[number];
    heft_window in;
    heft_cur next = silent_copy(w->from, &in);
    uint32_t end_dim = w->x->dims.cap;
    s->c = silent_copy(w->from, &s->in);
    if (!find_start(w, &s->c, number, &s->first_dim) ||
        (number + 1 < CHUNKS && !find_start(w, &next, number + 1, &end_dim)) ||
        end_dim < s->first_dim)
        return false;
    s->begin = s->c.p;
    heft_ix_worker_rows(&s->x, w->x,
                        &(heft_row_range){ s->first, s->first + s->count, s->first_dim, end_dim });
    s->x.parsed_from = (const char *)s->begin;
    return true;
}

static void read_chunk(void *arg, size_t i)
{
    job *w = arg;
    chunk *s = &w->of[i];
    if (assign_rows(w, (uint32_t)i))
        s->st = w->records->read(w->records->ctx, &s->c, &s->x, s->count, (uint32_t)i);
}

/* Check that all chunks were parsed and meet; the file may have changed since they were skipped. */
static bool is_complete(const job *w)
{
    for (uint32_t i = 0; i < CHUNKS; i++) {
        const chunk *s = &w->of[i];
        uint32_t end = s->first + s->count;
        if (s->st || s->x.lost_notes || s->x.lost_omissions || s->x.tensors.len != end ||
            s->x.parts.len != end)
            return false;
        if (i + 1 < CHUNKS && (s->c.p != s[1].begin || s->x.dims.len != s[1].first_dim))
            return false;
    }
    return true;
}

/* Append the base ids of a chunk; the column ends at the last tensor with an id. */
static void join_ids(heft_index *x, const chunk *s)
{
    uint32_t old = x->base_ids.len;
    if (s->x.base_ids.len <= s->first)
        return;
    memset((uint8_t *)x->base_ids.ptr + (size_t)old * BASE_ID, 0,
           (size_t)(s->first - old) * BASE_ID);
    x->base_ids.len = s->x.base_ids.len;
}

static void divide(job *w, uint32_t count)
{
    uint32_t each = count / CHUNKS;
    for (uint32_t i = 0; i < CHUNKS; i++) {
        chunk *s = &w->of[i];
        s->first = i * each;
        s->count = i + 1 < CHUNKS ? each : count - s->first;
        s->st = HEFT_AGAIN; /* until the chunk is parsed */
    }
}

bool heft_ix_parallel_binary(heft_index *x, heft_cur *c, uint32_t count,
                             const heft_ix_binary_records *records)
{
    bool is_in_memory = (uint64_t)(c->end - c->start) == c->limit - c->base;
    if (HEFT_IS_SMALL || !HEFT_HAS_THREADS || !HEFT_HAS_ATOMICS || count < MIN_RECORDS || !x->run ||
        !is_in_memory || c->st || x->tensors.len || !heft_ix_cache_data_role(x) ||
        !reserve_dims(x, c, count, records) ||
        (records->base_ids && !heft_vec_reserve(&x->mem, &x->base_ids, count, BASE_ID)))
        return false;
    job w = { .records = records, .x = x, .from = c, .starts[0].known = 1 };
    divide(&w, count);
    heft_ix_run(x, CHUNKS, read_chunk, &w);
    if (!is_complete(&w))
        return false;
    x->tensors.len = x->hashes.len = x->parts.len = count;
    x->dims.len = w.of[CHUNKS - 1].x.dims.len;
    for (uint32_t i = 0; i < CHUNKS; i++) {
        join_ids(x, &w.of[i]);
        heft_ix_worker_end(x, &w.of[i].x);
    }
    c->p = w.of[CHUNKS - 1].c.p;
    return true;
}
