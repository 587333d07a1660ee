/* sweep.c - claims cut the file at their ends; what lies between two cuts is read once and fed to
 * every algorithm that some claim over it needs.  The parts of a claim are joined afterwards.
 * Digests that cannot be joined take their bytes in order, one claim per worker. */
#include "core/check/sweep.h"

#include "base/sort.h"
#include "core/read/chunks.h"

enum { PIECE = 8 << 20, ALGORITHMS = 8, STATE_MAX = 16 };

typedef struct piece {
    uint64_t off, len;
    uint32_t algorithms; /* a bit each */
    uint32_t first_state;
} piece;

typedef struct sweep {
    const heft_file *f;
    heft_memory mem;
    heft_meter *meter;
    const heft_digest *digests[ALGORITHMS];
    uint32_t digest_count;
    heft_vec cuts;   /* uint64_t, ascending, unique */
    heft_vec pieces; /* ascending, all below the last cut */
    heft_vec serial; /* claims that cannot be joined */
    uint8_t (*states)[STATE_MAX];
    size_t state_count;
    heft_claim_state *result;
    const uint8_t *skip;
} sweep;

static heft_claim claim_at(const heft_file *f, uint32_t i)
{
    return heft_ix_claim_at(&f->x, i);
}

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
    return d->join && d->state_bytes <= STATE_MAX;
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

static heft_status no_memory(heft_error *err)
{
    return heft_error_plain(err, HEFT_E_NOMEM, "no memory to check checksums");
}

/* Sorts the cuts and drops those that occur twice. */
static bool order_cuts(sweep *s)
{
    uint32_t n = s->cuts.len, kept = 0;
    uint64_t *cuts = s->cuts.ptr;
    size_t bytes = (size_t)n * (2 * sizeof(uint32_t) + sizeof(uint64_t));
    if (!n) /* nothing that could be joined */
        return true;
    uint64_t *sorted = heft_mem_resize(&s->mem, NULL, 0, bytes + 1);
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
    heft_mem_resize(&s->mem, sorted, bytes + 1, 0);
    return true;
}

static bool add_cut(sweep *s, uint64_t at)
{
    uint64_t *cut = heft_vec_push(&s->mem, &s->cuts, sizeof *cut);
    if (cut)
        *cut = at;
    return cut;
}

static bool is_longer(const void *ctx, uint32_t a, uint32_t b)
{
    const heft_claim p = claim_at(ctx, a), q = claim_at(ctx, b);
    return p.range[0].length + p.range[1].length > q.range[0].length + q.range[1].length;
}

/* The longest ones first: then no worker is left alone with one at the end. */
static bool order_serial(sweep *s)
{
    size_t bytes = ((size_t)s->serial.len + 1) * sizeof(uint32_t);
    uint32_t *room = heft_mem_resize(&s->mem, NULL, 0, bytes);
    if (!room)
        return false;
    heft_sort(s->serial.ptr, room, s->serial.len, is_longer, s->f);
    heft_mem_resize(&s->mem, room, bytes, 0);
    return true;
}

/* Sorts claims into those that are joined, those in order and those out of reach. */
static bool sort_claims(sweep *s)
{
    for (uint32_t i = 0; i < heft_ix_claims(&s->f->x); i++) {
        s->result[i] = HEFT_CLAIM_UNCHECKED;
        if (is_skipped(s, i))
            continue;
        const heft_claim c = claim_at(s->f, i);
        uint32_t a = algorithm(s, c.algorithm);
        if (a == ALGORITHMS || c.decoded) /* decoded bytes are not in the file */
            continue;
        if (!joins(s->digests[a])) {
            uint32_t *to = heft_vec_push(&s->mem, &s->serial, sizeof *to);
            if (!to)
                return false;
            *to = i;
            continue;
        }
        for (int r = 0; r < HEFT_CLAIM_RANGES; r++)
            if (c.range[r].length && !(add_cut(s, c.range[r].offset) &&
                                       add_cut(s, c.range[r].offset + c.range[r].length)))
                return false;
    }
    return order_cuts(s) && order_serial(s);
}

static uint32_t cut_number(const sweep *s, uint64_t at)
{
    const uint64_t *cuts = s->cuts.ptr;
    uint32_t lo = 0, hi = s->cuts.len;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (cuts[mid] < at)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* Per cut and algorithm, how many claims begin there less how many end: the running sum tells
 * what is needed in between. */
static int32_t *begin_ends(sweep *s)
{
    size_t bytes = (size_t)s->cuts.len * ALGORITHMS * sizeof(int32_t);
    int32_t *net = heft_mem_resize(&s->mem, NULL, 0, bytes + 1);
    if (!net)
        return NULL;
    memset(net, 0, bytes);
    for (uint32_t i = 0; i < heft_ix_claims(&s->f->x); i++) {
        if (is_skipped(s, i))
            continue;
        const heft_claim c = claim_at(s->f, i);
        uint32_t a = algorithm(s, c.algorithm);
        if (a == ALGORITHMS || c.decoded || !joins(s->digests[a]))
            continue;
        for (int r = 0; r < HEFT_CLAIM_RANGES; r++) {
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
        piece *p = heft_vec_push(&s->mem, &s->pieces, sizeof *p);
        if (!p)
            return false;
        *p = (piece){ at, to - at < PIECE ? to - at : PIECE, algorithms, (uint32_t)s->state_count };
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
    if (net)
        heft_mem_resize(&s->mem, net, (size_t)s->cuts.len * ALGORITHMS * sizeof *net + 1, 0);
    return done;
}

/* ---- workers ---- */

typedef void (*feed_fn)(void *ctx, const uint8_t *p, size_t len);

/* Hands the range to feed chunk by chunk, from the mapping or through a buffer. */
static heft_status stream(const sweep *s, heft_range r, feed_fn feed, void *ctx, heft_error *err)
{
    const heft_file *f = s->f;
    const uint8_t *lent = heft_file_lend(f, r.offset, r.length);
    heft_chunks c;
    heft_status st = heft_chunks_open(&c, f->host->allocator, lent, r.length, err);
    while (!st && !heft_meter_halted(s->meter) && heft_chunks_next(&c)) {
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
    if (heft_meter_halted(s->meter))
        return;
    for (uint32_t a = 0; a < s->digest_count; a++)
        if (p->algorithms >> a & 1)
            s->digests[a]->init(s->states[at++]);
    heft_status st = stream(s, (heft_range){ p->off, p->len }, feed_piece, &fd, &err);
    if (st)
        heft_meter_fail(s->meter, st, &err);
    heft_meter_add(s->meter, p->len);
}

typedef struct serial_feed {
    const heft_digest *digest;
    void *state;
} serial_feed;

static void feed_serial(void *ctx, const uint8_t *p, size_t len)
{
    const serial_feed *fd = ctx;
    fd->digest->update(fd->state, p, len);
}

static void judge(sweep *s, uint32_t i, const heft_digest *d, void *state)
{
    uint8_t got[64];
    d->final(got, state);
    bool holds = d->bytes <= HEFT_CLAIM_BYTES && !memcmp(got, claim_at(s->f, i).expect, d->bytes);
    s->result[i] = holds ? HEFT_CLAIM_HOLDS : HEFT_CLAIM_BROKEN;
}

static void run_serial(void *arg, size_t i)
{
    sweep *s = arg;
    uint32_t id = ((const uint32_t *)s->serial.ptr)[i];
    const heft_claim c = claim_at(s->f, id);
    const heft_digest *d = heft_host_digest(s->f->host, c.algorithm);
    const heft_allocator *al = s->f->host->allocator;
    heft_error err;
    if (heft_meter_halted(s->meter))
        return;
    serial_feed fd = { d, al->resize(al->ctx, NULL, 0, d->state_bytes, 64) };
    if (!fd.state || !d->init(fd.state)) {
        heft_meter_fail(s->meter, no_memory(&err), &err);
    } else {
        heft_status st = HEFT_OK;
        for (int r = 0; r < HEFT_CLAIM_RANGES && !st; r++) {
            static const uint8_t zeros[64] = { 0 };
            if (r && c.zeros)
                d->update(fd.state, zeros, c.zeros < sizeof zeros ? c.zeros : sizeof zeros);
            st = stream(s, c.range[r], feed_serial, &fd, &err);
            heft_meter_add(s->meter, c.range[r].length);
        }
        if (st)
            heft_meter_fail(s->meter, st, &err);
        judge(s, id, d, fd.state);
    }
    if (fd.state)
        al->resize(al->ctx, fd.state, d->state_bytes, 0, 64);
}

/* ---- joining ---- */

static void join_range(const sweep *s, uint32_t a, heft_range r, uint8_t *state)
{
    const piece *pieces = s->pieces.ptr;
    uint32_t lo = 0, hi = s->pieces.len;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (pieces[mid].off < r.offset)
            lo = mid + 1;
        else
            hi = mid;
    }
    for (; lo < s->pieces.len && pieces[lo].off < r.offset + r.length; lo++) {
        uint32_t at = pieces[lo].first_state;
        for (uint32_t k = 0; k < a; k++)
            at += pieces[lo].algorithms >> k & 1;
        s->digests[a]->join(state, s->states[at], pieces[lo].len);
    }
}

static void join_claims(sweep *s)
{
    static const uint8_t zeros[64] = { 0 };
    for (uint32_t i = 0; i < heft_ix_claims(&s->f->x); i++) {
        if (is_skipped(s, i))
            continue;
        const heft_claim c = claim_at(s->f, i);
        uint32_t a = algorithm(s, c.algorithm);
        _Alignas(16) uint8_t state[STATE_MAX];
        if (a == ALGORITHMS || c.decoded || !joins(s->digests[a]))
            continue;
        s->digests[a]->init(state);
        join_range(s, a, c.range[0], state);
        if (c.zeros)
            s->digests[a]->update(state, zeros, c.zeros < sizeof zeros ? c.zeros : sizeof zeros);
        join_range(s, a, c.range[1], state);
        judge(s, i, s->digests[a], state);
    }
}

uint64_t heft_sweep_bytes(const heft_file *f)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < heft_ix_claims(&f->x); i++)
        if (!i || !heft_ix_claim_or_next(&f->x, i - 1))
            sum += claim_at(f, i).range[0].length + claim_at(f, i).range[1].length;
    return sum;
}

heft_status heft_sweep(heft_claim_state *states, const heft_file *f, const uint8_t *skip,
                       heft_meter *meter, heft_error *err)
{
    sweep s = { .f = f, .meter = meter, .result = states, .skip = skip };
    s.mem = (heft_memory){ f->host->allocator, UINT64_MAX, 0 };
    bool room = sort_claims(&s) && cut_pieces(&s);
    size_t state_bytes = s.state_count * STATE_MAX + 1;
    if (room)
        s.states = heft_mem_resize(&s.mem, NULL, 0, state_bytes);
    heft_status st = s.states ? HEFT_OK : no_memory(err);
    if (!st) {
        heft_file_enter(f);
        heft_host_run(f->host, s.pieces.len, run_piece, &s);
        heft_host_run(f->host, s.serial.len, run_serial, &s);
        st = heft_file_leave(f, err);
    }
    if (!st)
        st = heft_meter_end(meter, err);
    if (!st)
        join_claims(&s);
    if (s.states)
        heft_mem_resize(&s.mem, s.states, state_bytes, 0);
    heft_vec_free(&s.mem, &s.cuts, sizeof(uint64_t));
    heft_vec_free(&s.mem, &s.pieces, sizeof(piece));
    heft_vec_free(&s.mem, &s.serial, sizeof(uint32_t));
    return st;
}

bool heft_claims_next(const heft_file *f, const heft_claim_state *states, uint32_t *i,
                      uint32_t *pick)
{
    uint32_t first = *i, at = first;
    if (first >= heft_ix_claims(&f->x))
        return false;
    *pick = first;
    for (; heft_ix_claim_or_next(&f->x, at) && at + 1 < heft_ix_claims(&f->x); at++)
        if (states[*pick] != HEFT_CLAIM_HOLDS)
            *pick = at + 1;
    if (states[*pick] != HEFT_CLAIM_HOLDS)
        *pick = first;
    *i = at + 1;
    return true;
}
