/* checksum_sweep.c - claims cut the file at their ends; what lies between two cuts is read once and fed to
 * every algorithm that some claim over it needs.  The parts of a claim are joined afterwards.
 * Digests that cannot be joined take their bytes in order, one claim per worker. */
#include "core/check/checksum_sweep.h"

#include "base/bisect.h"
#include "base/sort.h"
#include "core/read/chunks.h"
#include "core/read/running_digest.h"

enum { PIECE = 8 << 20, ALGORITHMS = 8, STATE_MAX = 16 };

typedef struct piece {
    uint64_t off, len;
    uint32_t algorithms; /* a bit each */
    uint32_t first_state;
} piece;

typedef struct sweep {
    const heft_file *f;
    heft_memory mem;
    heft_progress *meter;
    const heft_digest *digests[ALGORITHMS];
    uint32_t digest_count;
    heft_vec cuts;   /* uint64_t, ascending, unique */
    heft_vec pieces; /* ascending, all below the last cut */
    heft_vec serial; /* claims that cannot be joined */
    uint8_t (*states)[STATE_MAX];
    size_t state_count;
    heft_checksum_state *result;
    const uint8_t *skip;
} sweep;

/* The number of the algorithm among those in use, or ALGORITHMS. */
static uint32_t algorithm(sweep *s, const char *name)
{
    uint32_t i = 0;
    for (; i < s->digest_count; i++)
        if (heft_str_is(heft_lit(s->digests[i]->name), name))
            return i;
    const heft_digest *d = heft_host_digest(s->f->host, name);
    if (!d || i == ALGORITHMS)
        return ALGORITHMS;
    s->digests[s->digest_count++] = d;
    return i;
}

static bool joins(const heft_digest *d)
{
    return heft_digest_joins(d) && d->state_bytes <= STATE_MAX;
}

/* Asked first: to put a claim together takes a while, and a shard of a model has few of them. */
static bool is_skipped(const sweep *s, uint32_t i)
{
    return s->skip && s->skip[i];
}

static bool cut_below(const void *ctx, uint32_t a, uint32_t b)
{
    const uint64_t *cuts = ctx;
    return cuts[a] < cuts[b];
}

static const char purpose[] = "to check checksums";

/* Sorts the cuts and drops those that occur twice. */
static bool order_cuts(sweep *s)
{
    uint32_t n = s->cuts.len, kept = 0;
    uint64_t *cuts = s->cuts.ptr;
    size_t bytes = (size_t)n * (2 * sizeof(uint32_t) + sizeof(uint64_t));
    if (!n) /* nothing that could be joined */
        return true;
    uint64_t *sorted = heft_mem_alloc(&s->mem, bytes + 1);
    if (!sorted)
        return false;
    uint32_t *ids = (uint32_t *)(sorted + n);
    for (uint32_t i = 0; i < n; i++)
        ids[i] = i;
    heft_sort(ids, ids + n, n, cut_below, cuts);
    for (uint32_t i = 0; i < n; i++)
        if (!kept || sorted[kept - 1] != cuts[ids[i]])
            sorted[kept++] = cuts[ids[i]];
    if (kept)
        memcpy(cuts, sorted, kept * sizeof *cuts);
    s->cuts.len = kept;
    heft_mem_free(&s->mem, sorted, bytes + 1);
    return true;
}

static bool is_longer(const void *ctx, uint32_t a, uint32_t b)
{
    const heft_stored_checksum p = heft_ix_checksum_at(ctx, a), q = heft_ix_checksum_at(ctx, b);
    return p.range[0].length + p.range[1].length > q.range[0].length + q.range[1].length;
}

/* The longest ones first: then no worker is left alone with one at the end. */
static bool order_serial(sweep *s)
{
    size_t bytes = ((size_t)s->serial.len + 1) * sizeof(uint32_t);
    uint32_t *room = heft_mem_alloc(&s->mem, bytes);
    if (!room)
        return false;
    heft_sort(s->serial.ptr, room, s->serial.len, is_longer, &s->f->x);
    heft_mem_free(&s->mem, room, bytes);
    return true;
}

/* Sorts claims into those that are joined, those in order and those out of reach. */
static bool sort_claims(sweep *s)
{
    for (uint32_t i = 0; i < heft_ix_checksums(&s->f->x); i++) {
        s->result[i] = HEFT_CHECKSUM_UNCHECKED;
        if (is_skipped(s, i))
            continue;
        const heft_stored_checksum c = heft_ix_checksum_at(&s->f->x, i);
        uint32_t a = algorithm(s, c.algorithm);
        if (a == ALGORITHMS || c.decoded) /* decoded bytes are not in the file */
            continue;
        bool done = true, is_serial = !joins(s->digests[a]);
        if (is_serial)
            done = heft_vec_add(&s->mem, &s->serial, &i, sizeof i);
        for (int r = 0; r < HEFT_CHECKSUM_RANGES && done && !is_serial; r++) {
            uint64_t from = c.range[r].offset, to = from + c.range[r].length;
            done = from == to || (heft_vec_add(&s->mem, &s->cuts, &from, sizeof from) &&
                                  heft_vec_add(&s->mem, &s->cuts, &to, sizeof to));
        }
        if (!done)
            return false;
    }
    return order_cuts(s) && order_serial(s);
}

static uint32_t cut_number(const sweep *s, uint64_t at)
{
    const uint64_t *cuts = s->cuts.ptr;
    heft_bisect b = { .end = s->cuts.len };
    while (heft_bisect_next(&b))
        heft_bisect_narrow(&b, cuts[b.mid] < at);
    return b.first;
}

/* Per cut and algorithm, how many claims begin there less how many end: the running sum tells
 * what is needed in between. */
static int32_t *begin_ends(sweep *s)
{
    size_t bytes = (size_t)s->cuts.len * ALGORITHMS * sizeof(int32_t);
    int32_t *net = heft_mem_alloc(&s->mem, bytes + 1);
    if (!net)
        return NULL;
    memset(net, 0, bytes);
    for (uint32_t i = 0; i < heft_ix_checksums(&s->f->x); i++) {
        if (is_skipped(s, i))
            continue;
        const heft_stored_checksum c = heft_ix_checksum_at(&s->f->x, i);
        uint32_t a = algorithm(s, c.algorithm);
        if (a == ALGORITHMS || c.decoded || !joins(s->digests[a]))
            continue;
        for (int r = 0; r < HEFT_CHECKSUM_RANGES; r++) {
            if (!c.range[r].length)
                continue;
            uint64_t end = c.range[r].offset + c.range[r].length;
            net[(size_t)cut_number(s, c.range[r].offset) * ALGORITHMS + a]++;
            net[(size_t)cut_number(s, end) * ALGORITHMS + a]--;
        }
    }
    return net;
}

static bool add_pieces(sweep *s, uint64_t from, uint64_t to, uint32_t algorithms)
{
    for (uint64_t at = from; at < to; at += PIECE) {
        piece p = { at, to - at < PIECE ? to - at : PIECE, algorithms, (uint32_t)s->state_count };
        if (!heft_vec_add(&s->mem, &s->pieces, &p, sizeof p))
            return false;
        for (uint32_t a = 0; a < s->digest_count; a++)
            s->state_count += algorithms >> a & 1;
    }
    return true;
}

static bool cut_pieces(sweep *s)
{
    int32_t *net = begin_ends(s), running[ALGORITHMS] = { 0 };
    const uint64_t *cuts = s->cuts.ptr;
    bool done = net;
    for (uint32_t i = 0; done && i + 1 < s->cuts.len; i++) {
        uint32_t needed = 0;
        for (uint32_t a = 0; a < s->digest_count; a++) {
            running[a] += net[(size_t)i * ALGORITHMS + a];
            needed |= (uint32_t)(running[a] > 0) << a;
        }
        if (needed)
            done = add_pieces(s, cuts[i], cuts[i + 1], needed);
    }
    heft_mem_free(&s->mem, net, (size_t)s->cuts.len * ALGORITHMS * sizeof *net + 1);
    return done;
}

/* ---- workers ---- */

typedef void (*feed_fn)(void *ctx, const uint8_t *p, size_t len);

/* Hands the range to feed chunk by chunk, from the mapping or through a buffer. */
static heft_status stream(const sweep *s, heft_range r, feed_fn feed, void *ctx, heft_error *err)
{
    const heft_file *f = s->f;
    const uint8_t *lent = heft_file_map(f, r.offset, r.length);
    heft_chunks c;
    heft_status st = heft_chunks_open(&c, f->host->allocator, lent, r.length, err);
    while (!st && !heft_progress_halted(s->meter) && heft_chunks_next(&c)) {
        if (c.buf)
            st = heft_file_bytes(f, r.offset + c.at, c.buf, c.len, err);
        if (!st)
            feed(ctx, c.data, c.len);
    }
    heft_chunks_close(&c);
    return st;
}

typedef struct feeding {
    const sweep *s;
    const piece *p;
} feeding;

static void feed_piece(void *ctx, const uint8_t *p, size_t len)
{
    const feeding *fd = ctx;
    uint32_t at = fd->p->first_state;
    for (uint32_t a = 0; a < fd->s->digest_count; a++)
        if (fd->p->algorithms >> a & 1)
            fd->s->digests[a]->update(fd->s->states[at++], p, len);
}

static void run_piece(void *arg, size_t i)
{
    sweep *s = arg;
    const piece *p = (const piece *)s->pieces.ptr + i;
    feeding fd = { s, p };
    heft_error err;
    uint32_t at = p->first_state;
    if (heft_progress_halted(s->meter))
        return;
    for (uint32_t a = 0; a < s->digest_count; a++)
        if (p->algorithms >> a & 1)
            s->digests[a]->init(s->states[at++]);
    heft_status st = stream(s, (heft_range){ p->off, p->len }, feed_piece, &fd, &err);
    if (st)
        heft_progress_fail(s->meter, st, &err);
    heft_progress_add(s->meter, p->len);
}

static void feed_serial(void *ctx, const uint8_t *p, size_t len)
{
    heft_running_digest_update(ctx, p, len);
}

static void run_serial(void *arg, size_t i)
{
    sweep *s = arg;
    uint32_t id = ((const uint32_t *)s->serial.ptr)[i];
    const heft_stored_checksum c = heft_ix_checksum_at(&s->f->x, id);
    const heft_digest *d = heft_host_digest(s->f->host, c.algorithm);
    heft_running_digest own = { .digest = NULL };
    uint8_t got[64];
    heft_error err;
    if (heft_progress_halted(s->meter))
        return;
    heft_status st = heft_running_digest_begin(&own, d, s->f->host->allocator, purpose, &err);
    for (int r = 0; r < HEFT_CHECKSUM_RANGES && !st; r++) {
        if (r)
            heft_stored_checksum_add_zeros(&c, d, heft_running_digest_state(&own));
        st = stream(s, c.range[r], feed_serial, &own, &err);
        heft_progress_add(s->meter, c.range[r].length);
    }
    if (st)
        heft_progress_fail(s->meter, st, &err);
    heft_running_digest_end(&own, got);
    heft_running_digest_close(&own);
    bool holds = !st && d->bytes <= HEFT_CHECKSUM_BYTES && !memcmp(got, c.expect, d->bytes);
    s->result[id] = holds ? HEFT_CHECKSUM_MATCHES : HEFT_CHECKSUM_MISMATCH;
}

/* ---- joining ---- */

static heft_status join_range(void *ctx, const heft_digest *d, heft_range r, void *state,
                              heft_error *err)
{
    sweep *s = ctx;
    const piece *pieces = s->pieces.ptr;
    uint32_t a = algorithm(s, d->name);
    heft_bisect b = { .end = s->pieces.len };
    (void)err;
    if (!pieces)
        return HEFT_OK;
    while (heft_bisect_next(&b))
        heft_bisect_narrow(&b, pieces[b.mid].off < r.offset);
    const piece *p = pieces + b.first, *end = pieces + s->pieces.len;
    for (; p < end && p->off < r.offset + r.length; p++) {
        uint32_t at = p->first_state;
        for (uint32_t k = 0; k < a; k++)
            at += p->algorithms >> k & 1;
        d->join(state, s->states[at], p->len);
    }
    return HEFT_OK;
}

static void join_claims(sweep *s)
{
    for (uint32_t i = 0; i < heft_ix_checksums(&s->f->x); i++) {
        if (is_skipped(s, i))
            continue;
        const heft_stored_checksum c = heft_ix_checksum_at(&s->f->x, i);
        uint32_t a = algorithm(s, c.algorithm);
        bool holds;
        if (a == ALGORITHMS || c.decoded || !joins(s->digests[a]))
            continue;
        heft_stored_checksum_join(&holds, &c, s->digests[a], join_range, s, NULL);
        s->result[i] = holds ? HEFT_CHECKSUM_MATCHES : HEFT_CHECKSUM_MISMATCH;
    }
}

uint64_t heft_checksum_sweep_bytes(const heft_file *f)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < heft_ix_checksums(&f->x); i++)
        if (!i || !heft_ix_checksum_is_alternative(&f->x, i - 1))
            sum += heft_ix_checksum_at(&f->x, i).range[0].length +
                   heft_ix_checksum_at(&f->x, i).range[1].length;
    return sum;
}

heft_status heft_checksum_sweep(heft_checksum_state *states, const heft_file *f,
                                const uint8_t *skip, heft_progress *meter, heft_error *err)
{
    sweep s = { .f = f, .meter = meter, .result = states, .skip = skip };
    s.mem = (heft_memory){ f->host->allocator, UINT64_MAX, 0 };
    bool room = sort_claims(&s) && cut_pieces(&s);
    size_t state_bytes = s.state_count * STATE_MAX + 1;
    if (room)
        s.states = heft_mem_alloc(&s.mem, state_bytes);
    heft_status st = s.states ? HEFT_OK : heft_error_no_memory(err, purpose);
    if (!st) {
        heft_file_enter(f);
        heft_host_run(f->host, s.pieces.len, run_piece, &s);
        heft_host_run(f->host, s.serial.len, run_serial, &s);
        st = heft_file_leave(f, err);
    }
    if (!st)
        st = heft_progress_end(meter, err);
    if (!st)
        join_claims(&s);
    heft_mem_free(&s.mem, s.states, state_bytes);
    heft_vec_free(&s.mem, &s.cuts, sizeof(uint64_t));
    heft_vec_free(&s.mem, &s.pieces, sizeof(piece));
    heft_vec_free(&s.mem, &s.serial, sizeof(uint32_t));
    return st;
}

bool heft_checksums_next(const heft_file *f, const heft_checksum_state *states, uint32_t *i,
                         uint32_t *pick)
{
    uint32_t first = *i, at = first;
    if (first >= heft_ix_checksums(&f->x))
        return false;
    *pick = first;
    for (; heft_ix_checksum_is_alternative(&f->x, at) && at + 1 < heft_ix_checksums(&f->x); at++)
        if (states[*pick] != HEFT_CHECKSUM_MATCHES)
            *pick = at + 1;
    if (states[*pick] != HEFT_CHECKSUM_MATCHES)
        *pick = first;
    *i = at + 1;
    return true;
}
