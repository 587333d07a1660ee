/* read_many.c - reads many parts into the caller's memory, on all threads.
 *
 * Parts are read in the order of offsets, in chunks of 4 to 16 MiB: a large part is split into
 * several chunks, small parts are combined. */
#include "base/sort.h"
#include "core/read/checked_read.h"
#include "core/read/progress.h"
#include "core/read/stream.h"

enum { MIN_CHUNK = 4 << 20, MAX_CHUNK = 16 << 20, CHUNKS = 64, BLOCK = 4096 };

typedef struct chunk_start { /* start of a chunk */
    uint32_t index;          /* index into `order` */
    uint64_t offset;         /* offset in that part */
} chunk_start;

typedef struct read_job {
    const heft_file *f;
    void *const *buffers;
    const uint32_t *parts;
    uint32_t *order, count; /* indices into `parts`; the array has as many words of scratch */
    heft_memory mem;
    heft_vec chunks;
    const heft_executor *executor; /* NULL: this thread */
    heft_progress progress;
    heft_checked_read checks;
} read_job;

static const heft_ix_part_row *row_at(const read_job *j, uint32_t at)
{
    return heft_ix_part_row_at(&j->f->x, j->parts[j->order[at]]);
}

/* ---- chunks ---- */

static bool offset_less(const void *ctx, uint32_t a, uint32_t b)
{
    const read_job *j = ctx;
    return heft_ix_part_row_at(&j->f->x, j->parts[a])->offset <
           heft_ix_part_row_at(&j->f->x, j->parts[b])->offset;
}

static heft_status check_parts(read_job *j, heft_error *err)
{
    for (uint32_t i = 0; i < j->count; i++) {
        HEFT_TRY(heft_file_find_part(j->f, j->parts[i], err));
        uint64_t length = heft_ix_part_row_at(&j->f->x, j->parts[i])->length;
        if (length == HEFT_UNKNOWN_LENGTH)
            return heft_error_plain(err, HEFT_E_ARGUMENT,
                                    "the decoded length of part %U is unknown",
                                    (uint64_t)j->parts[i]);
        j->progress.total += length;
        j->order[i] = i;
    }
    return HEFT_OK;
}

static uint32_t digest_in_order(const read_job *j, uint32_t at)
{
    return heft_ledger_in_order(&j->checks.ledger, j->parts[j->order[at]]);
}

/* Return the host's executor, or that of the source of the first part: a source whose requests take
 * long has an executor with more threads. */
static const heft_executor *choose_executor(const read_job *j)
{
    const heft_executor *own = j->f->host->executor, *wide = NULL;
    uint32_t number = j->count ? heft_global_offset_file(&j->f->x, row_at(j, 0)->offset) : 0;
    const heft_source *s = heft_file_source(j->f, number);
    if (own && s && HEFT_HAS(s->ops, executor))
        wide = s->ops->executor(s);
    return wide ? wide : own;
}

/* Few chunks load large models faster, many chunks occupy all threads to the end.  Where threads
 * wait, only the end matters. */
static uint64_t choose_chunk_bytes(const read_job *j)
{
    uint64_t bytes = j->progress.total / CHUNKS;
    if (bytes < MIN_CHUNK || j->executor != j->f->host->executor)
        return MIN_CHUNK;
    return bytes < MAX_CHUNK ? bytes : MAX_CHUNK;
}

/* Never split an encoded part or a part with a digest that cannot be joined: neither allows random
 * access. */
static heft_status split_chunks(read_job *j, heft_error *err)
{
    uint64_t chunk = choose_chunk_bytes(j), filled = chunk;
    for (uint32_t i = 0; i < j->count; i++) {
        const heft_ix_part_row *row = row_at(j, i);
        bool can_split = row->encoding == HEFT_RAW && digest_in_order(j, i) == HEFT_NONE;
        for (uint64_t from = 0; from < row->length;) {
            chunk_start start = { i, from };
            if (filled >= chunk && !heft_vec_add(&j->mem, &j->chunks, &start, sizeof start))
                return heft_error_no_memory(err, "to plan reads");
            filled = filled < chunk ? filled : 0;
            uint64_t n = row->length - from;
            bool ends_here = can_split &&
                             n > chunk - filled + chunk / 4; /* a shorter rest joins the chunk */
            /* Align the end to a block of the file, unless no bytes would be left. */
            if (ends_here) {
                n = chunk - filled;
                uint64_t beyond = (row->offset + from + n) % BLOCK;
                n -= n > beyond ? beyond : 0;
            }
            filled = ends_here ? chunk : filled + n;
            from += n;
        }
    }
    return HEFT_OK;
}

/* ---- reading ---- */

static heft_status read_range(read_job *j, uint32_t at, uint64_t from, uint64_t n, heft_error *err)
{
    uint32_t i = j->order[at];
    uint8_t *to = (uint8_t *)j->buffers[i] + from;
    const heft_ix_part_row *row = heft_ix_part_row_at(&j->f->x, j->parts[i]);
    if (digest_in_order(j, at) != HEFT_NONE)
        return heft_read_checked(to, j->f, j->parts[i], digest_in_order(j, at), err);
    heft_status st = heft_read_unchecked(to, j->f, j->parts[i], from, (size_t)n, err);
    if (st || !heft_ix_is_plain(row))
        return st;
    return heft_ledger_show(&j->checks.ledger, row->offset + from, to, (size_t)n, err);
}

static void read_chunk(void *arg, size_t chunk)
{
    read_job *j = arg;
    const chunk_start *p = (const chunk_start *)j->chunks.ptr + chunk;
    bool is_last = chunk + 1 == j->chunks.len;
    chunk_start end = is_last ? (chunk_start){ j->count, 0 } : p[1];
    uint64_t from = p->offset;
    heft_error err;
    for (uint32_t i = p->index; i <= end.index && i < j->count; i++, from = 0) {
        uint64_t to = i == end.index ? end.offset : row_at(j, i)->length;
        if (heft_progress_halted(&j->progress))
            return;
        heft_status st = to > from ? read_range(j, i, from, to - from, &err) : HEFT_OK;
        if (st) {
            heft_progress_fail(&j->progress, st, &err);
            return;
        }
        heft_progress_add(&j->progress, to - from);
    }
}

heft_status heft_part_read_many(void *const *buffers, const heft_file *f, const uint32_t *parts,
                                uint32_t count, heft_progress_fn on_progress, void *ctx,
                                heft_error *err)
{
    read_job j = { .f = f, .buffers = buffers, .parts = parts, .count = count };
    size_t bytes = ((size_t)count * 2 + 1) * sizeof *j.order;
    j.mem = (heft_memory){ f->host->allocator, UINT64_MAX, 0 };
    j.progress = (heft_progress){ .fn = on_progress, .ctx = ctx };
    j.order = heft_mem_alloc(&j.mem, bytes);
    if (!j.order)
        return heft_error_no_memory(err, "to plan reads");
    heft_status st = check_parts(&j, err);
    if (!st)
        st = heft_checked_read_begin(&j.checks, f, f->check_parts, true, parts, count, err);
    if (!st) {
        heft_sort(j.order, j.order + count, count, offset_less, &j);
        j.executor = choose_executor(&j);
        st = split_chunks(&j, err);
    }
    if (!st) {
        heft_executor_run(j.executor, j.chunks.len, read_chunk, &j);
        st = heft_progress_end(&j.progress, err);
    }
    if (!st)
        st = heft_checked_read_end(&j.checks, err);
    heft_ledger_free(&j.checks.ledger);
    heft_vec_free(&j.mem, &j.chunks, sizeof(chunk_start));
    heft_mem_free(&j.mem, j.order, bytes);
    return st;
}
