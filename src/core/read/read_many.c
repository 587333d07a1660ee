/* read_many.c - many parts into the caller's memory, on all threads.
 *
 * Parts are read in the order in which they lie, in shares of about SHARE bytes: a large part is several
 * shares, many small ones are one. */
#include "base/sort.h"
#include "core/read/checked_read.h"
#include "core/read/progress.h"
#include "core/read/stream.h"

enum { SHARE = 4 << 20, REST = SHARE / 4, BLOCK = 4096 };

typedef struct place { /* where a share begins */
    uint32_t at;       /* in the order */
    uint64_t from;     /* byte of that part */
} place;

typedef struct load {
    const heft_file *f;
    void *const *buffers;
    const uint32_t *parts;
    uint32_t *order, count; /* numbers in `parts`; behind them room for as many */
    heft_memory mem;
    heft_vec shares;
    heft_progress meter;
    heft_checked_read checks;
} load;

static const heft_ix_part_row *row_at(const load *l, uint32_t at)
{
    return heft_ix_part_row_at(&l->f->x, l->parts[l->order[at]]);
}

/* ---- shares ---- */

static bool lies_before(const void *ctx, uint32_t a, uint32_t b)
{
    const load *l = ctx;
    return heft_ix_part_row_at(&l->f->x, l->parts[a])->offset <
           heft_ix_part_row_at(&l->f->x, l->parts[b])->offset;
}

static heft_status check_parts(load *l, heft_error *err)
{
    for (uint32_t i = 0; i < l->count; i++) {
        heft_status st = heft_file_find_part(l->f, l->parts[i], err);
        if (st)
            return st;
        uint64_t length = heft_ix_part_row_at(&l->f->x, l->parts[i])->length;
        if (length == HEFT_NOWHERE)
            return heft_error_plain(err, HEFT_E_ARGUMENT,
                                    "part %U decodes to a number of bytes that is not known",
                                    (uint64_t)l->parts[i]);
        l->meter.total += length;
        l->order[i] = i;
    }
    return HEFT_OK;
}

static uint32_t digest_in_order(const load *l, uint32_t at)
{
    return heft_checked_read_in_order(&l->checks, l->parts[l->order[at]]);
}

/* An encoded part has no middle to begin at, nor has a digest that cannot be joined: such a part is in one share. */
static heft_status cut_shares(load *l, heft_error *err)
{
    uint64_t filled = SHARE;
    for (uint32_t i = 0; i < l->count; i++) {
        const heft_ix_part_row *row = row_at(l, i);
        bool splits = row->encoding == HEFT_RAW && digest_in_order(l, i) == HEFT_NONE;
        for (uint64_t from = 0; from < row->length;) {
            place here = { i, from };
            if (filled >= SHARE && !heft_vec_add(&l->mem, &l->shares, &here, sizeof here))
                return heft_error_no_memory(err, "to plan the reading");
            filled = filled < SHARE ? filled : 0;
            uint64_t n = row->length - from;
            bool ends = splits &&
                        n > SHARE - filled + REST; /* less than that is no share of its own */
            if (ends) { /* where a block of the file does, if that leaves any bytes */
                n = SHARE - filled;
                uint64_t beyond = (row->offset + from + n) % BLOCK;
                n -= n > beyond ? beyond : 0;
            }
            filled = ends ? SHARE : filled + n;
            from += n;
        }
    }
    return HEFT_OK;
}

/* ---- reading ---- */

static heft_status read_piece(load *l, uint32_t at, uint64_t from, uint64_t n, heft_error *err)
{
    uint32_t i = l->order[at];
    uint8_t *to = (uint8_t *)l->buffers[i] + from;
    const heft_ix_part_row *row = heft_ix_part_row_at(&l->f->x, l->parts[i]);
    if (digest_in_order(l, at) != HEFT_NONE)
        return heft_read_checked(to, l->f, l->parts[i], digest_in_order(l, at), err);
    heft_status st = heft_read_unchecked(to, l->f, l->parts[i], from, (size_t)n, err);
    if (st || !heft_ix_is_plain(row))
        return st;
    return heft_partial_crcs_add(&l->checks.seen, row->offset + from, to, (size_t)n, err);
}

static void run_share(void *arg, size_t share)
{
    load *l = arg;
    const place *p = (const place *)l->shares.ptr + share;
    bool is_last = share + 1 == l->shares.len;
    place end = is_last ? (place){ l->count, 0 } : p[1];
    uint64_t from = p->from;
    heft_error err;
    for (uint32_t i = p->at; i <= end.at && i < l->count; i++, from = 0) {
        uint64_t to = i == end.at ? end.from : row_at(l, i)->length;
        if (heft_progress_halted(&l->meter))
            return;
        heft_status st = to > from ? read_piece(l, i, from, to - from, &err) : HEFT_OK;
        if (st) {
            heft_progress_fail(&l->meter, st, &err);
            return;
        }
        heft_progress_add(&l->meter, to - from);
    }
}

heft_status heft_part_read_many(void *const *buffers, const heft_file *f, const uint32_t *parts,
                                uint32_t count, heft_progress_fn progress, void *ctx,
                                heft_error *err)
{
    load l = { .f = f, .buffers = buffers, .parts = parts, .count = count };
    size_t bytes = ((size_t)count * 2 + 1) * sizeof *l.order;
    l.mem = (heft_memory){ f->host->allocator, UINT64_MAX, 0 };
    l.meter = (heft_progress){ .fn = progress, .ctx = ctx };
    l.order = heft_mem_alloc(&l.mem, bytes);
    if (!l.order)
        return heft_error_no_memory(err, "to plan the reading");
    heft_status st = check_parts(&l, err);
    if (!st)
        st = heft_checked_read_begin(&l.checks, f, f->check_parts, true, parts, count, err);
    if (!st) {
        heft_sort(l.order, l.order + count, count, lies_before, &l);
        st = cut_shares(&l, err);
    }
    if (!st) {
        heft_host_run(f->host, l.shares.len, run_share, &l);
        st = heft_progress_end(&l.meter, err);
    }
    if (!st)
        st = heft_checked_read_end(&l.checks, err);
    heft_checked_read_free(&l.checks);
    heft_vec_free(&l.mem, &l.shares, sizeof(place));
    heft_mem_free(&l.mem, l.order, bytes);
    return st;
}
