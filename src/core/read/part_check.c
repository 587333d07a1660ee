/* part_check.c - feeds the stored bytes of a part to its digest in file order.  Bytes that the
 * checksum covers but the caller does not read, such as the header of a NumPy array, are read
 * here. */
#include "core/read/part_check.h"

enum { MAX_EXTRA = 64 << 10 }; /* maximum of bytes outside the part to read for a checksum */

/* ---- selecting the checksum ---- */

uint32_t heft_part_checksum(const heft_file *f, uint32_t part, bool all)
{
    uint32_t digest = heft_ix_digest_find(&f->x, part);
    if (digest != HEFT_NONE)
        return f->x.checksums.len + digest;
    uint32_t checksum = heft_ix_checksum_covering(&f->x, part);
    if (checksum == HEFT_NONE || all)
        return checksum;
    /* A tensor may use a small range of a storage; the storage's checksum is then left to
     * heft_file_verify(). */
    const heft_ix_part_row *p = heft_ix_part_row_at(&f->x, part);
    uint64_t used = p->length < p->stored ? p->length : p->stored;
    uint64_t covered = heft_ix_checksum_at(&f->x, checksum).range[0].length;
    bool is_read = covered - p->stored <= MAX_EXTRA && p->stored - used <= used + MAX_EXTRA;
    return is_read ? checksum : HEFT_NONE;
}

/* ---- computing the digest ---- */

heft_status heft_part_check_begin(heft_part_check *k, const heft_file *f, uint32_t part,
                                  uint32_t checksum, heft_error *err)
{
    *k = (heft_part_check){ .f = f, .part = part, .checksum = checksum };
    if (checksum == HEFT_NONE)
        return HEFT_OK;
    heft_stored_checksum c;
    heft_status st = heft_stored_checksum_get(&c, f, checksum, err);
    const heft_digest *d = st ? NULL : heft_host_digest(f->host, c.algorithm);
    if (!d)
        return st;
    k->decoded = c.decoded;
    k->next = c.range[0].offset;
    k->end = c.range[0].offset + c.range[0].length;
    return heft_running_digest_begin(&k->digest, d, f->host->allocator, "to check a digest", err);
}

void heft_part_check_release(heft_part_check *k)
{
    heft_running_digest_close(&k->digest);
}

/* ---- feeding in order ---- */

/* Digest stored bytes from the current offset to `end`. */
static heft_status digest_up_to(heft_part_check *k, uint64_t end, heft_error *err)
{
    if (k->next >= end)
        return HEFT_OK;
    heft_range r = { k->next, end - k->next };
    k->next = end;
    return heft_digest_stored(k->f, k->digest.digest, heft_running_digest_state(&k->digest), r,
                              err);
}

heft_status heft_part_check_stored(heft_part_check *k, uint64_t offset, const void *data,
                                   size_t len, heft_error *err)
{
    if (!heft_part_check_is_on(k) || k->decoded)
        return HEFT_OK;
    HEFT_TRY(digest_up_to(k, offset, err));
    heft_running_digest_update(&k->digest, data, len);
    k->next += len;
    return HEFT_OK;
}

void heft_part_check_decoded(heft_part_check *k, const void *data, size_t len)
{
    if (k->decoded)
        heft_running_digest_update(&k->digest, data, len);
}

heft_status heft_part_check_end(heft_part_check *k, heft_error *err)
{
    uint8_t got[64] = { 0 };
    if (!heft_part_check_is_on(k))
        return HEFT_OK;
    uint32_t bytes = k->digest.digest->bytes;
    heft_status st = k->decoded ? HEFT_OK : digest_up_to(k, k->end, err);
    heft_running_digest_end(&k->digest, got);
    heft_running_digest_close(&k->digest);
    if (st)
        return st;
    heft_stored_checksum c;
    st = heft_stored_checksum_get(&c, k->f, k->checksum, err);
    if (st)
        return st;
    bool holds = bytes <= HEFT_CHECKSUM_BYTES && !memcmp(got, c.expect, bytes);
    if (k->outcome)
        *k->outcome = holds ? HEFT_CHECKSUM_MATCHES : HEFT_CHECKSUM_MISMATCH;
    return holds || k->outcome ? HEFT_OK
                               : heft_checksum_mismatch_error(k->f, k->checksum, k->part, err);
}
