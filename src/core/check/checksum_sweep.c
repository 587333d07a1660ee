/* checksum_sweep.c - verifies all checksums in a single pass.  The ends of all covered ranges
 * divide the file; each range between two borders is read once, on any thread, and its CRCs are
 * joined to checksums afterwards.  Digests without joinable states get their bytes in order, each
 * checksum on a single worker. */
#include "core/check/verification.h"

#include "base/sort.h"

/* Larger chunks of a small file do not divide evenly among the threads. */
enum { CHUNK = 2 << 20 };

typedef struct sweep {
    const heft_file *f;
    heft_memory mem;
    heft_progress *progress;
    heft_partial_crcs crcs;
    heft_borders borders;
    heft_vec chunks; /* heft_range */
    heft_vec serial; /* checksums that cannot be joined */
    heft_ledger *ledger;
} sweep;

static const char purpose[] = "to check checksums";

/* ---- selecting ---- */

/* Set *c to checksum i; return false if the sweep does not compute that checksum. */
static bool get_wanted(const sweep *s, uint32_t i, heft_stored_checksum *c)
{
    /* First, because assembling a checksum is slow, and most are skipped in a shard of a model. */
    if (s->ledger->ways[i] != HEFT_LEDGER_SWEEP)
        return false;
    *c = heft_ix_checksum_at(&s->f->x, i);
    /* The file does not contain decoded bytes. */
    return !c->decoded && heft_host_digest(s->f->host, c->algorithm);
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

/* Return false without memory. */
static bool select_checksums(sweep *s)
{
    bool has_memory = true;
    for (uint32_t i = 0; i < s->ledger->checksums && has_memory; i++) {
        heft_stored_checksum c;
        if (!get_wanted(s, i, &c))
            continue;
        if (!heft_partial_crcs_track(&s->crcs, s->f->host, c.algorithm))
            has_memory = heft_vec_add(&s->mem, &s->serial, &i, sizeof i);
        else
            has_memory = heft_borders_add(&s->borders, c.range[0]) &&
                         heft_borders_add(&s->borders, c.range[1]);
    }
    return has_memory && heft_borders_sort(&s->borders) && sort_serial(s);
}

static bool add_chunks(sweep *s, uint64_t from, uint64_t to)
{
    bool has_memory = true;
    for (uint64_t at = from; at < to && has_memory; at += CHUNK) {
        heft_range chunk = { at, to - at < CHUNK ? to - at : CHUNK };
        has_memory = heft_vec_add(&s->mem, &s->chunks, &chunk, sizeof chunk);
    }
    return has_memory;
}

/* Cut what checksums cover into chunks, at every border. */
static bool cut_chunks(sweep *s)
{
    const heft_border *borders = s->borders.at.ptr;
    int64_t covering = 0; /* ranges that have begun and not ended */
    bool has_memory = true;
    for (uint32_t i = 0; i + 1 < s->borders.at.len && has_memory; i++) {
        covering += borders[i].change;
        has_memory = !covering || add_chunks(s, borders[i].at, borders[i + 1].at);
    }
    return has_memory;
}

/* ---- workers ---- */

typedef struct chunk_pass {
    const sweep *s;
    heft_crc_segment segment;
} chunk_pass;

static void feed_chunk(void *ctx, const uint8_t *p, size_t len)
{
    chunk_pass *to = ctx;
    heft_crc_segment_update(&to->segment, &to->s->crcs, p, len);
}

static heft_status run_chunk(sweep *s, heft_range r, heft_error *err)
{
    chunk_pass to = { .s = s, .segment = heft_crc_segment_begin(&s->crcs, r.offset) };
    heft_status st = heft_pass_stored(s->f, r, s->progress, feed_chunk, &to, err);
    heft_progress_add(s->progress, r.length);
    return st ? st : heft_partial_crcs_put(&s->crcs, &to.segment, err);
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

static heft_status run_serial(sweep *s, uint32_t checksum, heft_error *err)
{
    const heft_stored_checksum c = heft_ix_checksum_at(&s->f->x, checksum);
    const heft_host *h = s->f->host;
    bool holds;
    heft_status st = heft_stored_checksum_compute(&holds, &c, heft_host_digest(h, c.algorithm),
                                                  h->allocator, pass_range, s, err);
    s->ledger->states[checksum] = holds ? HEFT_CHECKSUM_MATCHES : HEFT_CHECKSUM_MISMATCH;
    return st;
}

static void run_job(void *arg, size_t i)
{
    sweep *s = arg;
    heft_error err;
    if (heft_progress_halted(s->progress))
        return;
    heft_status st = i < s->serial.len
                         ? run_serial(s, ((const uint32_t *)s->serial.ptr)[i], &err)
                         : run_chunk(s, ((const heft_range *)s->chunks.ptr)[i - s->serial.len],
                                     &err);
    if (st)
        heft_progress_fail(s->progress, st, &err);
}

/* ---- joining ---- */

static heft_status join_checksums(sweep *s, heft_error *err)
{
    heft_status st = HEFT_OK;
    heft_partial_crcs_sort(&s->crcs);
    for (uint32_t i = 0; i < s->ledger->checksums && !st; i++) {
        heft_stored_checksum c;
        bool holds;
        if (!get_wanted(s, i, &c) || !heft_partial_crcs_tracks(&s->crcs, c.algorithm))
            continue;
        st = heft_stored_checksum_join(&holds, &c, s->f, &s->crcs, err);
        s->ledger->states[i] = holds ? HEFT_CHECKSUM_MATCHES : HEFT_CHECKSUM_MISMATCH;
    }
    return st;
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

heft_status heft_checksum_sweep(heft_ledger *l, heft_progress *progress, heft_error *err)
{
    const heft_file *f = l->f;
    sweep s = { .f = f, .progress = progress, .ledger = l };
    if (!l->checksums)
        return HEFT_OK;
    s.mem = (heft_memory){ f->host->allocator, UINT64_MAX, 0 };
    heft_partial_crcs_init(&s.crcs, f->host);
    heft_borders_init(&s.borders, f->host);
    heft_status st = select_checksums(&s) && cut_chunks(&s) ? HEFT_OK
                                                            : heft_error_no_memory(err, purpose);
    if (!st) {
        heft_file_enter(f);
        heft_host_run(f->host, (size_t)s.serial.len + s.chunks.len, run_job, &s);
        st = heft_file_leave(f, err);
    }
    if (!st)
        st = heft_progress_end(progress, err);
    if (!st)
        st = join_checksums(&s, err);
    heft_partial_crcs_free(&s.crcs);
    heft_borders_free(&s.borders);
    heft_vec_free(&s.mem, &s.chunks, sizeof(heft_range));
    heft_vec_free(&s.mem, &s.serial, sizeof(uint32_t));
    return st;
}
