/* checksum_sweep.c - verifies all checksums in a single pass.  The ends of all covered ranges
 * divide the file; each range between two boundaries is read once and fed to every algorithm that
 * some checksum needs there.  The states are joined to checksums afterwards.  Digests without
 * joinable states get their bytes in order, each checksum on a single worker. */
#include "core/check/checksum_sweep.h"

#include "base/bisect.h"
#include "base/sort.h"
#include "core/read/stored_checksum.h"

enum { CHUNK = 8 << 20, ALGORITHMS = 8, STATE_MAX = 16 };

typedef struct chunk {
    uint64_t offset, len;
    uint32_t algorithms; /* a bit per algorithm */
    uint32_t first_state;
} chunk;

typedef struct sweep {
    const heft_file *f;
    heft_memory mem;
    heft_progress *progress;
    const heft_digest *digests[ALGORITHMS];
    uint32_t digest_count;
    heft_vec boundaries; /* uint64_t, ascending, unique */
    heft_vec chunks;     /* ascending; none beyond the last boundary */
    heft_vec serial;     /* checksums that cannot be joined */
    uint8_t (*states)[STATE_MAX];
    size_t state_count;
    heft_checksum_state *result;
    const uint8_t *skip;
} sweep;

/* Return the position of the algorithm in digests, or ALGORITHMS if not available. */
static uint32_t algorithm_index(sweep *s, const char *name)
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

static bool is_joinable(const heft_digest *d)
{
    return heft_digest_joins(d) && d->state_bytes <= STATE_MAX;
}

/* Test this first: assembling a checksum is slow, and most are skipped in a shard of a model. */
static bool is_skipped(const sweep *s, uint32_t i)
{
    return s->skip && s->skip[i];
}

static bool boundary_less(const void *ctx, uint32_t a, uint32_t b)
{
    const uint64_t *boundaries = ctx;
    return boundaries[a] < boundaries[b];
}

static const char purpose[] = "to check checksums";

/* Sort the boundaries and drop duplicates. */
static bool sort_boundaries(sweep *s)
{
    uint32_t n = s->boundaries.len, unique = 0;
    uint64_t *boundaries = s->boundaries.ptr;
    size_t bytes = (size_t)n * (2 * sizeof(uint32_t) + sizeof(uint64_t));
    if (!n) /* no checksum can be joined */
        return true;
    uint64_t *sorted = heft_mem_alloc(&s->mem, bytes + 1);
    if (!sorted)
        return false;
    uint32_t *ids = (uint32_t *)(sorted + n);
    for (uint32_t i = 0; i < n; i++)
        ids[i] = i;
    heft_sort(ids, ids + n, n, boundary_less, boundaries);
    for (uint32_t i = 0; i < n; i++)
        if (!unique || sorted[unique - 1] != boundaries[ids[i]])
            sorted[unique++] = boundaries[ids[i]];
    if (unique)
        memcpy(boundaries, sorted, unique * sizeof *boundaries);
    s->boundaries.len = unique;
    heft_mem_free(&s->mem, sorted, bytes + 1);
    return true;
}

static bool is_longer(const void *ctx, uint32_t a, uint32_t b)
{
    const heft_stored_checksum p = heft_ix_checksum_at(ctx, a), q = heft_ix_checksum_at(ctx, b);
    return p.range[0].length + p.range[1].length > q.range[0].length + q.range[1].length;
}

/* Sort by descending length, so that no worker starts a long checksum last. */
static bool sort_serial(sweep *s)
{
    size_t bytes = ((size_t)s->serial.len + 1) * sizeof(uint32_t);
    uint32_t *scratch = heft_mem_alloc(&s->mem, bytes);
    if (!scratch)
        return false;
    heft_sort(s->serial.ptr, scratch, s->serial.len, is_longer, &s->f->x);
    heft_mem_free(&s->mem, scratch, bytes);
    return true;
}

/* Sort the checksums: joined, computed in order, or not checkable. */
static bool classify_checksums(sweep *s)
{
    for (uint32_t i = 0; i < heft_ix_checksums(&s->f->x); i++) {
        s->result[i] = HEFT_CHECKSUM_UNCHECKED;
        if (is_skipped(s, i))
            continue;
        const heft_stored_checksum c = heft_ix_checksum_at(&s->f->x, i);
        uint32_t a = algorithm_index(s, c.algorithm);
        if (a == ALGORITHMS || c.decoded) /* the file does not contain decoded bytes */
            continue;
        bool done = true, is_serial = !is_joinable(s->digests[a]);
        if (is_serial)
            done = heft_vec_add(&s->mem, &s->serial, &i, sizeof i);
        for (int r = 0; r < HEFT_CHECKSUM_RANGES && done && !is_serial; r++) {
            uint64_t from = c.range[r].offset, to = from + c.range[r].length;
            done = from == to || (heft_vec_add(&s->mem, &s->boundaries, &from, sizeof from) &&
                                  heft_vec_add(&s->mem, &s->boundaries, &to, sizeof to));
        }
        if (!done)
            return false;
    }
    return sort_boundaries(s) && sort_serial(s);
}

static uint32_t boundary_index(const sweep *s, uint64_t at)
{
    const uint64_t *boundaries = s->boundaries.ptr;
    heft_bisect b = { .end = s->boundaries.len };
    while (heft_bisect_next(&b))
        heft_bisect_narrow(&b, boundaries[b.mid] < at);
    return b.first;
}

/* Per boundary and algorithm, return the number of ranges that begin minus the number that end.
 * The running sum is positive where the algorithm is needed. */
static int32_t *count_changes(sweep *s)
{
    size_t bytes = (size_t)s->boundaries.len * ALGORITHMS * sizeof(int32_t);
    int32_t *change = heft_mem_alloc(&s->mem, bytes + 1);
    if (!change)
        return NULL;
    memset(change, 0, bytes);
    for (uint32_t i = 0; i < heft_ix_checksums(&s->f->x); i++) {
        if (is_skipped(s, i))
            continue;
        const heft_stored_checksum c = heft_ix_checksum_at(&s->f->x, i);
        uint32_t a = algorithm_index(s, c.algorithm);
        if (a == ALGORITHMS || c.decoded || !is_joinable(s->digests[a]))
            continue;
        for (int r = 0; r < HEFT_CHECKSUM_RANGES; r++) {
            if (!c.range[r].length)
                continue;
            uint64_t end = c.range[r].offset + c.range[r].length;
            change[(size_t)boundary_index(s, c.range[r].offset) * ALGORITHMS + a]++;
            change[(size_t)boundary_index(s, end) * ALGORITHMS + a]--;
        }
    }
    return change;
}

static bool add_chunks(sweep *s, uint64_t from, uint64_t to, uint32_t algorithms)
{
    for (uint64_t at = from; at < to; at += CHUNK) {
        chunk p = { at, to - at < CHUNK ? to - at : CHUNK, algorithms, (uint32_t)s->state_count };
        if (!heft_vec_add(&s->mem, &s->chunks, &p, sizeof p))
            return false;
        for (uint32_t a = 0; a < s->digest_count; a++)
            s->state_count += algorithms >> a & 1;
    }
    return true;
}

static bool split_chunks(sweep *s)
{
    int32_t *change = count_changes(s), running[ALGORITHMS] = { 0 };
    const uint64_t *boundaries = s->boundaries.ptr;
    bool done = change;
    for (uint32_t i = 0; done && i + 1 < s->boundaries.len; i++) {
        uint32_t needed = 0;
        for (uint32_t a = 0; a < s->digest_count; a++) {
            running[a] += change[(size_t)i * ALGORITHMS + a];
            needed |= (uint32_t)(running[a] > 0) << a;
        }
        if (needed)
            done = add_chunks(s, boundaries[i], boundaries[i + 1], needed);
    }
    heft_mem_free(&s->mem, change, (size_t)s->boundaries.len * ALGORITHMS * sizeof *change + 1);
    return done;
}

/* ---- workers ---- */

typedef struct feed_target {
    const sweep *s;
    const chunk *p;
} feed_target;

static void feed_chunk(void *ctx, const uint8_t *p, size_t len)
{
    const feed_target *fd = ctx;
    uint32_t at = fd->p->first_state;
    for (uint32_t a = 0; a < fd->s->digest_count; a++)
        if (fd->p->algorithms >> a & 1)
            fd->s->digests[a]->update(fd->s->states[at++], p, len);
}

static void run_chunk(void *arg, size_t i)
{
    sweep *s = arg;
    const chunk *p = (const chunk *)s->chunks.ptr + i;
    feed_target fd = { s, p };
    heft_error err;
    uint32_t at = p->first_state;
    if (heft_progress_halted(s->progress))
        return;
    for (uint32_t a = 0; a < s->digest_count; a++)
        if (p->algorithms >> a & 1)
            s->digests[a]->init(s->states[at++]);
    heft_status st = heft_pass_stored(s->f, (heft_range){ p->offset, p->len }, s->progress,
                                      feed_chunk, &fd, &err);
    if (st)
        heft_progress_fail(s->progress, st, &err);
    heft_progress_add(s->progress, p->len);
}

typedef struct serial_pass { /* the bytes of a checksum, in order */
    const heft_digest *digest;
    void *state;
} serial_pass;

static void feed_serial(void *ctx, const uint8_t *p, size_t len)
{
    const serial_pass *to = ctx;
    to->digest->update(to->state, p, len);
}

static heft_status pass_range(void *ctx, const heft_digest *d, heft_range r, void *state,
                              heft_error *err)
{
    const sweep *s = ctx;
    serial_pass to = { d, state };
    heft_status st = heft_pass_stored(s->f, r, s->progress, feed_serial, &to, err);
    heft_progress_add(s->progress, r.length);
    return st;
}

static void run_serial(void *arg, size_t i)
{
    sweep *s = arg;
    uint32_t id = ((const uint32_t *)s->serial.ptr)[i];
    const heft_stored_checksum c = heft_ix_checksum_at(&s->f->x, id);
    bool holds;
    heft_error err;
    if (heft_progress_halted(s->progress))
        return;
    heft_status st = heft_stored_checksum_compute(&holds, &c,
                                                  heft_host_digest(s->f->host, c.algorithm),
                                                  s->f->host->allocator, pass_range, s, &err);
    if (st)
        heft_progress_fail(s->progress, st, &err);
    s->result[id] = holds ? HEFT_CHECKSUM_MATCHES : HEFT_CHECKSUM_MISMATCH;
}

/* ---- joining ---- */

static heft_status join_range(void *ctx, const heft_digest *d, heft_range r, void *state,
                              heft_error *err)
{
    sweep *s = ctx;
    const chunk *chunks = s->chunks.ptr;
    uint32_t a = algorithm_index(s, d->name);
    heft_bisect b = { .end = s->chunks.len };
    (void)err;
    if (!chunks)
        return HEFT_OK;
    while (heft_bisect_next(&b))
        heft_bisect_narrow(&b, chunks[b.mid].offset < r.offset);
    const chunk *p = chunks + b.first, *end = chunks + s->chunks.len;
    for (; p < end && p->offset < r.offset + r.length; p++) {
        uint32_t at = p->first_state;
        for (uint32_t k = 0; k < a; k++)
            at += p->algorithms >> k & 1;
        d->combine(state, s->states[at], p->len);
    }
    return HEFT_OK;
}

static void join_checksums(sweep *s)
{
    for (uint32_t i = 0; i < heft_ix_checksums(&s->f->x); i++) {
        if (is_skipped(s, i))
            continue;
        const heft_stored_checksum c = heft_ix_checksum_at(&s->f->x, i);
        uint32_t a = algorithm_index(s, c.algorithm);
        bool holds;
        if (a == ALGORITHMS || c.decoded || !is_joinable(s->digests[a]))
            continue;
        (void)heft_stored_checksum_compute(&holds, &c, s->digests[a], s->f->host->allocator,
                                           join_range, s, NULL);
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
                                const uint8_t *skip, heft_progress *progress, heft_error *err)
{
    sweep s = { .f = f, .progress = progress, .result = states, .skip = skip };
    s.mem = (heft_memory){ f->host->allocator, UINT64_MAX, 0 };
    bool fits = classify_checksums(&s) && split_chunks(&s);
    size_t state_bytes = s.state_count * STATE_MAX + 1;
    if (fits)
        s.states = heft_mem_alloc(&s.mem, state_bytes);
    heft_status st = s.states ? HEFT_OK : heft_error_no_memory(err, purpose);
    if (!st) {
        heft_file_enter(f);
        heft_host_run(f->host, s.chunks.len, run_chunk, &s);
        heft_host_run(f->host, s.serial.len, run_serial, &s);
        st = heft_file_leave(f, err);
    }
    if (!st)
        st = heft_progress_end(progress, err);
    if (!st)
        join_checksums(&s);
    heft_mem_free(&s.mem, s.states, state_bytes);
    heft_vec_free(&s.mem, &s.boundaries, sizeof(uint64_t));
    heft_vec_free(&s.mem, &s.chunks, sizeof(chunk));
    heft_vec_free(&s.mem, &s.serial, sizeof(uint32_t));
    return st;
}

bool heft_checksums_next(const heft_file *f, const heft_checksum_state *states, uint32_t *i,
                         uint32_t *representative)
{
    uint32_t first = *i, at = first;
    if (first >= heft_ix_checksums(&f->x))
        return false;
    *representative = first;
    for (; heft_ix_checksum_is_alternative(&f->x, at) && at + 1 < heft_ix_checksums(&f->x); at++)
        if (states[*representative] != HEFT_CHECKSUM_MATCHES)
            *representative = at + 1;
    if (states[*representative] != HEFT_CHECKSUM_MATCHES)
        *representative = first;
    *i = at + 1;
    return true;
}
