/* open_checksums.c - compares checksums of the bytes that a parser has read, before the file is
 * open.  Joinable checksums are computed on all threads; pages of a mapped index are released on
 * the way.  No ledger is used, since no index is complete yet, and missing bytes are not read but
 * requested from whoever feeds the parser. */
#include "base/checked_math.h"
#include "base/error.h"
#include "core/read/stored_checksum.h"

enum { STEP = 4 << 20, MAX_CHUNKS = HEFT_IS_SMALL ? 1 : 16 };

/* ---- a range ---- */

/* Extend the state of a digest; return false if some bytes are not present. */
static bool feed(heft_file *f, const heft_digest *d, void *state, heft_range r)
{
    heft_window *in = &f->input.in;
    const heft_source *source = f->input.whole_file ? f->source : NULL;
    for (uint64_t done = 0, have; done < r.length; done += have) {
        uint64_t at = r.offset + done, left = r.length - done;
        const uint8_t *p = in->window(in, at, left < STEP ? left : STEP, &have);
        if (!have)
            return false;
        have = have < left ? have : left;
        have = have < STEP ? have : STEP;
        d->update(state, p, (size_t)have);
        if (have == STEP && source && HEFT_HAS(source->ops, dont_need))
            source->ops->dont_need(f->source, at, have);
    }
    return true;
}

typedef struct chunk_job {
    heft_file *f;
    heft_running_digest digests[MAX_CHUNKS];
    heft_range range;
    uint64_t chunk_bytes;
    bool is_incomplete[MAX_CHUNKS];
} chunk_job;

static heft_range chunk_range(const chunk_job *s, uint32_t i)
{
    uint64_t from = s->chunk_bytes * i, left = s->range.length - from;
    return (heft_range){ s->range.offset + from, left < s->chunk_bytes ? left : s->chunk_bytes };
}

static void feed_chunk(void *arg, size_t i)
{
    chunk_job *s = arg;
    s->is_incomplete[i] = !feed(s->f, s->digests[i].digest,
                                heft_running_digest_state(&s->digests[i]),
                                chunk_range(s, (uint32_t)i));
}

/* Split a range into chunks on all threads, and join their states. */
static heft_status feed_chunks(heft_file *f, const heft_digest *d, heft_range r, uint32_t chunks,
                               void *state, heft_error *err)
{
    chunk_job s = { .f = f, .range = r, .chunk_bytes = heft_div(r.length + chunks - 1, chunks) };
    heft_status st = HEFT_OK;
    bool is_incomplete = false;
    for (uint32_t i = 0; i < chunks && !st; i++)
        st = heft_running_digest_begin(&s.digests[i], d, f->host->allocator, "to check a checksum",
                                       err);
    if (!st)
        heft_host_run(f->host, chunks, feed_chunk, &s);
    for (uint32_t i = 0; i < chunks; i++) {
        if (!st)
            d->combine(state, heft_running_digest_state(&s.digests[i]), chunk_range(&s, i).length);
        is_incomplete = is_incomplete || s.is_incomplete[i];
        heft_running_digest_close(&s.digests[i]);
    }
    return !st && is_incomplete ? HEFT_AGAIN : st;
}

static heft_status add_range(void *ctx, const heft_digest *d, heft_range r, void *state,
                             heft_error *err)
{
    heft_file *f = ctx;
    uint32_t chunks = r.length / STEP < MAX_CHUNKS ? (uint32_t)(r.length / STEP) : MAX_CHUNKS;
    if (!HEFT_IS_SMALL && chunks > 1 && heft_digest_joins(d) && f->input.whole_file)
        return feed_chunks(f, d, r, chunks, state, err);
    return feed(f, d, state, r) ? HEFT_OK : HEFT_AGAIN;
}

/* ---- a checksum ---- */

/* Request the covered bytes that are not present; return HEFT_AGAIN. */
static heft_status request_missing(heft_file *f, const heft_stored_checksum *c)
{
    heft_window *in = &f->input.in;
    uint64_t have;
    for (int r = 0; r < HEFT_CHECKSUM_RANGES; r++)
        for (uint64_t done = 0; done < c->range[r].length; done += have) {
            in->window(in, c->range[r].offset + done, c->range[r].length - done, &have);
            if (!have) {
                in->need(in, c->range[r].offset + done, c->range[r].length - done);
                break;
            }
        }
    return HEFT_AGAIN;
}

/* ---- all checksums ---- */

/* Check a group of adjacent alternative checksums, from `first` on.  At least one must match,
 * unless this build lacks an algorithm: heft_file_verify() reports that.  A mismatch of an advisory
 * checksum becomes a warning. */
static heft_status check_alternatives(heft_file *f, const heft_stored_checksum *first,
                                      heft_error *err)
{
    for (const heft_stored_checksum *c = first;; c++) {
        const heft_digest *d = heft_host_digest(f->host, c->algorithm);
        bool holds = true;
        heft_status st = d ? heft_stored_checksum_compute(&holds, c, d, f->host->allocator,
                                                          add_range, f, err)
                           : HEFT_OK;
        if (st == HEFT_AGAIN)
            return request_missing(f, c);
        if (st || holds)
            return st;
        if (c->is_alternative)
            continue;
        if (!first->advisory)
            return heft_stored_checksum_mismatch(f, first, err);
        heft_ix_note_range(&f->x, HEFT_WARNING, first->rule, first->range[0], first->tensor,
                           "the checksum does not match the bytes it covers");
        return HEFT_OK;
    }
}

heft_status heft_check_open_checksums(heft_file *f, heft_error *err)
{
    const heft_stored_checksum *checksums = f->x.checksums.ptr;
    for (uint32_t i = 0; i < f->x.checksums.len; i++) {
        bool is_first = !i || !checksums[i - 1].is_alternative;
        if (is_first && checksums[i].at_open && (checksums[i].advisory || !f->no_verify))
            HEFT_TRY(check_alternatives(f, &checksums[i], err));
    }
    return HEFT_OK;
}
