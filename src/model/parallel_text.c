/* parallel_text.c - parses very many records of a text with several workers; the starts are
 * guessed.
 *
 * Each chunk is parsed from a position where a record seems to begin up to the start of the next
 * chunk.  The first chunk does begin at a record.  If a chunk ends exactly where the next one
 * begins, the guess was right, so that the result equals that of parsing in sequence.  The first
 * chunk that ends elsewhere is the last one kept; a chunk with a refused or noted record is
 * discarded together with all later chunks.  The caller continues after the last chunk kept, in
 * sequence.
 *
 * The number of records per chunk is not known in advance.  Each chunk gets more rows than it
 * needs, in memory that is not touched until it is used; the gaps are closed at the end. */
#include "model/parallel.h"

#include "base/checked_math.h"

enum {
    CHUNKS = HEFT_IX_CHUNKS,
    MIN_RECORDS = 50000, /* estimated records from which several workers are faster */
    NEAR = 64 << 10,     /* bytes within which a record must begin */
    SAMPLED = 64,        /* records from which the length of the others is estimated */
    SPARE = 64,          /* rows added to 5/4 of the estimate */
    DIMS_EACH = 4,       /* dimensions reserved per row */
    PARAM_ID = 8
};

typedef struct chunk {
    heft_index x; /* worker's view with rows to fill */
    const uint8_t *begin, *end, *stop;
    heft_row_range rows;
    uint32_t to, to_dim; /* final first row and first dimension */
} chunk;

typedef struct job {
    const heft_ix_text_records *records;
    heft_index *x;
    uint32_t kept; /* number of chunks kept */
    chunk of[CHUNKS];
} job;

/* ---- dividing the text ---- */

static const uint8_t *near_end(const uint8_t *p, const uint8_t *end)
{
    return end - p < NEAR ? end : p + NEAR;
}

/* Choose the starts of the chunks; false if no record seems to begin near one of them. */
static bool choose_starts(job *w, const uint8_t *p, const uint8_t *end)
{
    uint64_t each = (uint64_t)(end - p) / CHUNKS;
    for (uint32_t i = 0; i < CHUNKS; i++) {
        const uint8_t *at = p + i * each;
        w->of[i].begin = i ? w->records->seek(w->records->ctx, at, near_end(at, end)) : p;
        if (!w->of[i].begin || (i && w->of[i].begin <= w->of[i - 1].begin))
            return false;
    }
    for (uint32_t i = 0; i < CHUNKS; i++)
        w->of[i].end = i + 1 < CHUNKS ? w->of[i + 1].begin : end;
    return true;
}

/* Estimate the number of records of a chunk from its first ones. */
static uint64_t estimate(const job *w, const chunk *s)
{
    const uint8_t *p = s->begin, *end = near_end(p, s->end), *next;
    uint64_t n = 0;
    for (; n < SAMPLED && (next = w->records->seek(w->records->ctx, p, end)) != NULL; n++)
        p = next;
    return n ? heft_div((uint64_t)(s->end - s->begin), heft_div((uint64_t)(p - s->begin), n)) : 0;
}

static bool reserve_rows(job *w)
{
    heft_index *x = w->x;
    uint64_t rows = x->tensors.len, dims = x->dims.len, total = 0;
    for (uint32_t i = 0; i < CHUNKS; i++) {
        chunk *s = &w->of[i];
        uint64_t expected = estimate(w, s), reserved = expected + expected / 4 + SPARE;
        uint64_t end = rows + reserved, end_dim = dims + DIMS_EACH * reserved;
        if (!expected || end_dim > UINT32_MAX)
            return false;
        s->rows = (heft_row_range){ (uint32_t)rows, (uint32_t)end, (uint32_t)dims,
                                    (uint32_t)end_dim };
        rows = end;
        dims = end_dim;
        total += expected;
    }
    if (total < MIN_RECORDS || rows > x->limits.tensors)
        return false;
    rows -= x->tensors.len;
    dims -= x->dims.len;
    return heft_ix_reserve_rows(x, rows, dims) &&
           (!w->records->param_ids || heft_vec_reserve(&x->mem, &x->param_ids, rows, PARAM_ID));
}

static void read_chunk(void *arg, size_t i)
{
    job *w = arg;
    chunk *s = &w->of[i];
    heft_ix_worker_rows(&s->x, w->x, &s->rows);
    s->x.parsed_from = (const char *)s->begin;
    s->stop = w->records->read(w->records->ctx, s->begin, s->end, &s->x, (uint32_t)i);
}

/* ---- closing the gaps ---- */

static uint32_t rows_of(const chunk *s)
{
    return s->x.tensors.len - s->rows.first;
}

/* Determine the chunks to keep and their final rows. */
static void select_chunks(job *w, uint32_t max)
{
    uint32_t to = w->x->tensors.len, to_dim = w->x->dims.len;
    bool is_contiguous = true;
    for (w->kept = 0; w->kept < CHUNKS && is_contiguous; w->kept++) {
        chunk *s = &w->of[w->kept];
        bool is_sound = s->stop && !s->x.lost_notes && !s->x.lost_omissions &&
                        s->x.parts.len == s->x.tensors.len && s->x.hashes.len == s->x.tensors.len;
        if (!is_sound || rows_of(s) > max)
            return;
        s->to = to;
        s->to_dim = to_dim;
        to += rows_of(s);
        to_dim += s->x.dims.len - s->rows.first_dim;
        max -= rows_of(s);
        is_contiguous = s->stop == s->end;
    }
}

static void close_tensors(job *w)
{
    heft_ix_tensor_row *rows = w->x->tensors.ptr;
    for (uint32_t k = 0; k < w->kept; k++) {
        const chunk *s = &w->of[k];
        uint32_t moved = s->rows.first - s->to, moved_dims = s->rows.first_dim - s->to_dim;
        for (uint32_t i = s->rows.first; (moved || moved_dims) && i < s->x.tensors.len; i++) {
            heft_ix_tensor_row row = rows[i];
            row.first_part -= moved;
            row.dims -= moved_dims;
            rows[i - moved] = row;
        }
        w->x->tensors.len = s->to + rows_of(s);
    }
}

/* Move count elements down from index `from` to index `to`, and end the column after them. */
static void move_down(heft_vec *column, size_t elem, uint32_t to, uint32_t from, uint32_t count)
{
    char *p = column->ptr;
    if (count && to < from)
        memmove(p + to * elem, p + from * elem, count * elem);
    column->len = to + count;
}

static void close_rows(job *w, heft_vec *column, size_t elem)
{
    for (const chunk *s = w->of; s < w->of + w->kept; s++)
        move_down(column, elem, s->to, s->rows.first, rows_of(s));
}

/* The column ends at the last tensor with an id; other tensors have 0. */
static void close_ids(job *w)
{
    heft_vec *ids = &w->x->param_ids;
    for (uint32_t k = 0; k < w->kept; k++) {
        const chunk *s = &w->of[k];
        uint32_t count = s->x.param_ids.len - s->rows.first;
        if (!s->x.param_ids.ptr || !count)
            continue;
        memset((char *)ids->ptr + (size_t)ids->len * PARAM_ID, 0,
               (size_t)(s->to - ids->len) * PARAM_ID);
        move_down(ids, PARAM_ID, s->to, s->rows.first, count);
    }
}

enum { COLUMNS = 4 };

static void close_gaps(void *arg, size_t column)
{
    job *w = arg;
    switch (column) {
    case 0:
        close_tensors(w);
        break;
    case 1:
        close_rows(w, &w->x->parts, sizeof(heft_ix_part_row));
        break;
    case 2:
        for (const chunk *s = w->of; s < w->of + w->kept; s++)
            move_down(&w->x->dims, sizeof(uint64_t), s->to_dim, s->rows.first_dim,
                      s->x.dims.len - s->rows.first_dim);
        break;
    default:
        close_rows(w, &w->x->hashes, sizeof(uint32_t));
        close_ids(w);
    }
}

const uint8_t *heft_ix_parallel_text(heft_index *x, const uint8_t *p, const uint8_t *end,
                                     uint32_t max, const heft_ix_text_records *records)
{
    enum { MIN_BYTES = MIN_RECORDS * 16 }; /* bytes of the smallest useful text */
    if (HEFT_IS_SMALL || !HEFT_HAS_THREADS || end - p < MIN_BYTES || !x->run ||
        x->parts.len != x->tensors.len)
        return p;
    job w = { .records = records, .x = x };
    if (!choose_starts(&w, p, end) || !reserve_rows(&w) || !heft_ix_cache_data_role(x))
        return p;
    heft_ix_run(x, CHUNKS, read_chunk, &w);
    select_chunks(&w, max);
    if (w.kept)
        heft_ix_run(x, COLUMNS, close_gaps, &w);
    /* Release unused rows, so that they do not count towards the memory limit. */
    heft_ix_trim(x);
    for (uint32_t i = 0; i < w.kept; i++) {
        heft_ix_worker_end(x, &w.of[i].x);
        records->join(records->ctx, i, w.of[i].rows.first - w.of[i].to);
    }
    return w.kept ? w.of[w.kept - 1].stop : p;
}
