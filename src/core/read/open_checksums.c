/* open_checksums.c - compares checksums of the bytes that a parser has read, before the file is
 * open.  Joinable checksums are computed on all threads; pages of a mapped index are released on
 * the way. */
#include "base/checked_math.h"
#include "base/error.h"
#include "core/read/running_digest.h"

enum { STEP = 4 << 20, MAX_CHUNKS = HEFT_IS_SMALL ? 1 : 16, MAX_DIGEST = 64 };

typedef struct checksum_job {
    heft_file *f;
    const heft_digest *digest;
    heft_running_digest digests[MAX_CHUNKS];
    uint32_t digest_count; /* digests in use */
    heft_range range;
    uint64_t chunk_bytes; /* bytes of a chunk */
    bool is_incomplete[MAX_CHUNKS];
} checksum_job;

/* ---- a range ---- */

/* Return false if some bytes are not present. */
static bool feed(checksum_job *s, size_t i, heft_range r)
{
    heft_window *in = &s->f->input.in;
    const heft_source *source = s->f->input.whole_file ? s->f->source : NULL;
    for (uint64_t done = 0, have; done < r.length; done += have) {
        uint64_t at = r.offset + done, left = r.length - done;
        const uint8_t *p = in->window(in, at, left < STEP ? left : STEP, &have);
        if (!have)
            return false;
        have = have < left ? have : left;
        have = have < STEP ? have : STEP;
        heft_running_digest_update(&s->digests[i], p, (size_t)have);
        if (have == STEP && source && HEFT_HAS(source->ops, dont_need))
            source->ops->dont_need(s->f->source, at, have);
    }
    return true;
}

static heft_range chunk_range(const checksum_job *s, uint32_t i)
{
    uint64_t from = s->chunk_bytes * i, left = s->range.length - from;
    return (heft_range){ s->range.offset + from, left < s->chunk_bytes ? left : s->chunk_bytes };
}

static void feed_chunk(void *arg, size_t i)
{
    checksum_job *s = arg;
    s->is_incomplete[i] = !feed(s, i, chunk_range(s, (uint32_t)i));
}

/* Extend the first state by the range.  A long range is split into chunks on all threads; their
 * states are joined to the first. */
static bool feed_range(checksum_job *s, heft_range r)
{
    uint32_t chunks = r.length / STEP < s->digest_count ? (uint32_t)(r.length / STEP)
                                                        : s->digest_count;
    bool is_incomplete = false;
    if (HEFT_IS_SMALL || chunks < 2)
        return feed(s, 0, r);
    s->range = r;
    s->chunk_bytes = heft_div(r.length + chunks - 1, chunks);
    heft_host_run(s->f->host, chunks, feed_chunk, s);
    for (uint32_t i = 0; i < chunks; i++) {
        if (i)
            s->digest->combine(heft_running_digest_state(&s->digests[0]),
                               heft_running_digest_state(&s->digests[i]), chunk_range(s, i).length);
        is_incomplete = is_incomplete || s->is_incomplete[i];
    }
    return !is_incomplete;
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

static heft_status compute_checksum(uint8_t out[MAX_DIGEST], heft_file *f,
                                    const heft_stored_checksum *c, const heft_digest *d,
                                    heft_error *err)
{
    checksum_job s = { .f = f, .digest = d };
    uint32_t max_digests = heft_digest_joins(d) && f->input.whole_file ? MAX_CHUNKS : 1;
    heft_status st = HEFT_OK;
    for (; s.digest_count < max_digests && !st; s.digest_count += !st)
        st = heft_running_digest_begin(&s.digests[s.digest_count], d, f->host->allocator,
                                       "to check a checksum", err);
    bool is_complete = !st && feed_range(&s, c->range[0]);
    if (is_complete)
        heft_stored_checksum_add_zeros(c, d, heft_running_digest_state(&s.digests[0]));
    is_complete = is_complete && (!c->range[1].length || feed_range(&s, c->range[1]));
    heft_running_digest_end(&s.digests[0], out);
    for (uint32_t i = 0; i < s.digest_count; i++)
        heft_running_digest_close(&s.digests[i]);
    if (st)
        return st;
    return is_complete ? HEFT_OK : request_missing(f, c);
}

/* ---- all checksums ---- */

/* Check a group of adjacent alternative checksums, from `first` on.  At least one must match,
 * unless this build lacks an algorithm: heft_file_verify() reports that.  A mismatch of an advisory
 * checksum becomes a warning. */
static heft_status check_alternatives(heft_file *f, const heft_stored_checksum *first,
                                      heft_error *err)
{
    uint8_t got[MAX_DIGEST];
    for (const heft_stored_checksum *c = first;; c++) {
        const heft_digest *d = heft_host_digest(f->host, c->algorithm);
        heft_status st = d ? compute_checksum(got, f, c, d, err) : HEFT_OK;
        if (st || !d || !memcmp(got, c->expect, d->bytes))
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
    heft_status st = HEFT_OK;
    for (uint32_t i = 0; i < f->x.checksums.len && !st; i++) {
        bool is_first = !i || !checksums[i - 1].is_alternative;
        if (is_first && checksums[i].at_open && (checksums[i].advisory || !f->no_verify))
            st = check_alternatives(f, &checksums[i], err);
    }
    return st;
}
