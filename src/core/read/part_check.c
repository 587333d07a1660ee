/* part_check.c - stored bytes reach the digest in their order in the file.  What the checksum covers but nobody reads,
 * such as the header in front of an array of NumPy, is read here. */
#include "core/read/part_check.h"

enum {
    STEP = 256 << 10,
    AROUND = 64 << 10 /* bytes beside those of a part that are read for its checksum */
};

static heft_status no_memory(heft_error *err)
{
    return heft_error_plain(err, HEFT_E_NOMEM, "no memory to check a digest");
}

/* ---- which checksum ---- */

/* A tensor may use a small piece of a storage: then the checksum of that storage is left to those that read it all. */
static bool is_read_with(const heft_index *x, const heft_claim *c, uint32_t part)
{
    const heft_ix_part_row *p = heft_ix_part_row_at(x, part);
    uint64_t used = p->length < p->stored ? p->length : p->stored;
    return c->range[0].length - p->stored <= AROUND && p->stored - used <= used + AROUND;
}

uint32_t heft_part_checksum(const heft_file *f, uint32_t part, bool all)
{
    uint32_t digest = heft_ix_digest_find(&f->x, part);
    if (digest != HEFT_NONE)
        return f->x.claims.len + digest;
    uint32_t claim = heft_ix_claim_around(&f->x, part);
    if (claim == HEFT_NONE || all)
        return claim;
    heft_claim c = heft_ix_claim_at(&f->x, claim);
    return is_read_with(&f->x, &c, part) ? claim : HEFT_NONE;
}

/* ---- computing it ---- */

heft_status heft_claim_get(heft_claim *out, const heft_file *f, uint32_t claim, heft_error *err)
{
    heft_file_enter(f);
    *out = heft_ix_claim_at(&f->x, claim);
    return heft_file_leave(f, err);
}

heft_status heft_part_check_begin(heft_part_check *k, const heft_file *f, uint32_t part,
                                  uint32_t claim, heft_error *err)
{
    const heft_allocator *al = f->host->allocator;
    *k = (heft_part_check){ .f = f, .part = part, .claim = claim };
    if (claim == HEFT_NONE)
        return HEFT_OK;
    heft_claim c;
    heft_status st = heft_claim_get(&c, f, claim, err);
    const heft_digest *d = st ? NULL : heft_host_digest(f->host, c.algorithm);
    if (!d)
        return st;
    k->decoded = c.decoded;
    k->at = c.range[0].offset;
    k->end = c.range[0].offset + c.range[0].length;
    k->allocated = d->state_bytes > sizeof k->small;
    k->state = k->allocated ? al->resize(al->ctx, NULL, 0, d->state_bytes, 64) : k->small;
    if (k->state && d->init(k->state)) {
        k->digest = d;
        return HEFT_OK;
    }
    if (k->state && k->allocated)
        al->resize(al->ctx, k->state, d->state_bytes, 0, 64);
    return no_memory(err);
}

static void end_state(heft_part_check *k, uint8_t *out)
{
    const heft_allocator *al = k->f->host->allocator;
    k->digest->final(out, k->state);
    if (k->allocated)
        al->resize(al->ctx, k->state, k->digest->state_bytes, 0, 64);
    k->digest = NULL;
}

void heft_part_check_release(heft_part_check *k)
{
    if (k->digest)
        end_state(k, NULL);
}

static heft_status read_stored(const heft_file *f, const heft_digest *d, void *state, heft_range r,
                               heft_error *err)
{
    const heft_allocator *al = f->host->allocator;
    uint8_t *buf = al->resize(al->ctx, NULL, 0, STEP, 64);
    heft_status st = buf ? HEFT_OK : no_memory(err);
    for (uint64_t done = 0; done < r.length && !st; done += STEP) {
        size_t n = r.length - done < STEP ? (size_t)(r.length - done) : STEP;
        st = heft_file_bytes(f, r.offset + done, buf, n, err);
        if (!st)
            d->update(state, buf, n);
    }
    if (buf)
        al->resize(al->ctx, buf, STEP, 0, 64);
    return st;
}

heft_status heft_digest_stored(const heft_file *f, const heft_digest *d, void *state, heft_range r,
                               heft_error *err)
{
    const uint8_t *lent = r.length && heft_file_has(f, r.offset)
                              ? heft_file_lend(f, r.offset, r.length)
                              : NULL;
    if (!lent || r.length > SIZE_MAX)
        return read_stored(f, d, state, r, err);
    heft_file_enter(f);
    d->update(state, lent, (size_t)r.length);
    return heft_file_leave(f, err);
}

/* Stored bytes from where the digest stands to `till`. */
static heft_status catch_up(heft_part_check *k, uint64_t till, heft_error *err)
{
    if (k->at >= till)
        return HEFT_OK;
    heft_range r = { k->at, till - k->at };
    k->at = till;
    return heft_digest_stored(k->f, k->digest, k->state, r, err);
}

heft_status heft_part_check_stored(heft_part_check *k, uint64_t place, const void *data, size_t len,
                                   heft_error *err)
{
    if (!k->digest || k->decoded)
        return HEFT_OK;
    heft_status st = catch_up(k, place, err);
    if (st)
        return st;
    k->digest->update(k->state, data, len);
    k->at += len;
    return HEFT_OK;
}

void heft_part_check_decoded(heft_part_check *k, const void *data, size_t len)
{
    if (k->digest && k->decoded)
        k->digest->update(k->state, data, len);
}

static heft_status tell_wrong(const heft_file *f, uint32_t claim, uint32_t part, heft_error *err)
{
    heft_claim c = heft_ix_claim_at(&f->x, claim);
    uint64_t at = heft_ix_place_offset(&f->x, c.range[0].offset);
    uint32_t owner = part == HEFT_NONE ? c.tensor : heft_ix_owner(&f->x, part);
    const char *of = c.decoded ? "decoded " : "";
    if (part == HEFT_NONE && owner == HEFT_NONE)
        return heft_error_rule(
            err,
            heft_error_set(err, HEFT_E_CHECKSUM, at,
                           "%s: the %s checksum does not match the %U bytes it covers", c.rule,
                           c.algorithm, c.range[0].length + c.range[1].length),
            c.rule);
    if (part == HEFT_NONE)
        part = heft_ix_row(&f->x, owner)->first_part;
    heft_str role = heft_ix_role(&f->x, heft_ix_part_row_at(&f->x, part)->role);
    if (owner == HEFT_NONE)
        return heft_error_rule(
            err,
            heft_error_set(err, HEFT_E_CHECKSUM, at,
                           "part %q of the file: %s: the %s digest does not match its %sbytes",
                           role, c.rule, c.algorithm, of),
            c.rule);
    return heft_error_rule(
        err,
        heft_error_set(err, HEFT_E_CHECKSUM, at,
                       "tensor %q, part %q: %s: the %s digest does not match its %sbytes",
                       heft_ix_name(&f->x, owner), role, c.rule, c.algorithm, of),
        c.rule);
}

/* Names are lent by the file. */
heft_status heft_checksum_is_wrong(const heft_file *f, uint32_t claim, uint32_t part,
                                   heft_error *err)
{
    heft_file_enter(f);
    heft_status st = tell_wrong(f, claim, part, err);
    heft_status there = heft_file_leave(f, err);
    return there ? there : st;
}

heft_status heft_part_check_end(heft_part_check *k, heft_error *err)
{
    uint8_t got[64] = { 0 };
    if (!k->digest)
        return HEFT_OK;
    uint32_t bytes = k->digest->bytes;
    heft_status st = k->decoded ? HEFT_OK : catch_up(k, k->end, err);
    end_state(k, got);
    if (st)
        return st;
    heft_claim c;
    st = heft_claim_get(&c, k->f, k->claim, err);
    if (st)
        return st;
    return bytes <= HEFT_CLAIM_BYTES && !memcmp(got, c.expect, bytes)
               ? HEFT_OK
               : heft_checksum_is_wrong(k->f, k->claim, k->part, err);
}
