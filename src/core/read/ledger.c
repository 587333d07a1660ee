/* ledger.c - states of the checksums of a file. */
#include "core/read/ledger.h"

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

static const char purpose[] = "to check checksums";

heft_status heft_ledger_open(heft_ledger *l, const heft_file *f, bool is_disabled, heft_error *err)
{
    uint32_t all = is_disabled ? 0 : heft_ix_checksums(&f->x);
    *l = (heft_ledger){ .f = f, .mem = { f->host->allocator, UINT64_MAX, 0 }, .checksums = all };
    heft_partial_crcs_init(&l->crcs, f->host);
    if (!all)
        return HEFT_OK;
    l->states = heft_mem_alloc(&l->mem, all * sizeof *l->states);
    l->ways = heft_mem_alloc(&l->mem, all);
    if (!l->states || !l->ways)
        return heft_error_no_memory(err, purpose);
    memset(l->ways, HEFT_LEDGER_NOT, all);
    for (uint32_t i = 0; i < all; i++)
        l->states[i] = HEFT_CHECKSUM_UNCHECKED;
    return HEFT_OK;
}

void heft_ledger_free(heft_ledger *l)
{
    heft_mem_free(&l->mem, l->states, l->checksums * sizeof *l->states);
    heft_mem_free(&l->mem, l->ways, l->checksums);
    heft_partial_crcs_free(&l->crcs);
}

bool heft_ledger_join(heft_ledger *l, uint32_t checksum)
{
    const char *algorithm = heft_ix_checksum_algorithm(&l->f->x, checksum);
    bool joins = heft_partial_crcs_track(&l->crcs, l->f->host, algorithm);
    if (joins)
        l->ways[checksum] = HEFT_LEDGER_SHOWN;
    return joins;
}

uint32_t heft_ledger_in_order(const heft_ledger *l, uint32_t part)
{
    uint32_t row = l->checksums ? heft_ix_digest_find(&l->f->x, part) : HEFT_NONE;
    uint32_t checksum = row == HEFT_NONE ? HEFT_NONE : l->f->x.checksums.len + row;
    return checksum != HEFT_NONE && l->ways[checksum] == HEFT_LEDGER_IN_ORDER ? checksum
                                                                              : HEFT_NONE;
}

/* ---- bytes that were shown ---- */

heft_status heft_ledger_compact(heft_ledger *l, heft_error *err)
{
    heft_borders borders;
    bool has_memory = true;
    heft_borders_init(&borders, l->f->host);
    for (uint32_t i = 0; i < l->checksums && has_memory; i++) {
        if (l->ways[i] != HEFT_LEDGER_SHOWN)
            continue;
        heft_stored_checksum c = heft_ix_checksum_at(&l->f->x, i);
        has_memory = heft_borders_add(&borders, c.range[0]) &&
                     heft_borders_add(&borders, c.range[1]);
    }
    has_memory = has_memory && heft_borders_sort(&borders);
    if (has_memory)
        heft_partial_crcs_compact(&l->crcs, &borders);
    heft_borders_free(&borders);
    return has_memory ? HEFT_OK : heft_error_no_memory(err, purpose);
}

typedef struct crc_join {
    const heft_file *f;
    const heft_partial_crcs *crcs;
} crc_join;

/* Read bytes that are in no segment. */
static heft_status read_missing(void *ctx, const heft_digest *d, heft_range r, void *state,
                                heft_error *err)
{
    return heft_digest_stored(((const crc_join *)ctx)->f, d, state, r, err);
}

static heft_status join(void *ctx, const heft_digest *d, heft_range r, void *state, heft_error *err)
{
    const crc_join *j = ctx;
    return heft_partial_crcs_join(j->crcs, d->name, r, state, read_missing, ctx, err);
}

heft_status heft_stored_checksum_join(bool *holds, const heft_stored_checksum *c,
                                      const heft_file *f, const heft_partial_crcs *crcs,
                                      heft_error *err)
{
    crc_join j = { f, crcs };
    return heft_stored_checksum_compute(holds, c, heft_host_digest(f->host, c->algorithm),
                                        f->host->allocator, join, &j, err);
}

heft_status heft_ledger_settle(heft_ledger *l, heft_error *err)
{
    heft_partial_crcs_sort(&l->crcs);
    for (uint32_t i = 0; i < l->checksums; i++) {
        heft_stored_checksum c;
        bool holds = false;
        if (l->ways[i] != HEFT_LEDGER_SHOWN)
            continue;
        HEFT_TRY(heft_stored_checksum_get(&c, l->f, i, err));
        HEFT_TRY(heft_stored_checksum_join(&holds, &c, l->f, &l->crcs, err));
        l->states[i] = holds ? HEFT_CHECKSUM_MATCHES : HEFT_CHECKSUM_MISMATCH;
    }
    return HEFT_OK;
}

/* ---- results ---- */

bool heft_ledger_next(const heft_ledger *l, uint32_t *i, uint32_t *representative)
{
    const heft_index *x = &l->f->x;
    uint32_t first = *i, at = first;
    if (first >= l->checksums)
        return false;
    *representative = first;
    for (; heft_ix_checksum_is_alternative(x, at) && at + 1 < l->checksums; at++)
        if (l->states[*representative] != HEFT_CHECKSUM_MATCHES)
            *representative = at + 1;
    if (l->states[*representative] != HEFT_CHECKSUM_MATCHES)
        *representative = first;
    *i = at + 1;
    return true;
}

heft_status heft_ledger_require(const heft_ledger *l, bool advisory, heft_error *err)
{
    for (uint32_t i = 0, k; heft_ledger_next(l, &i, &k);) {
        if (l->states[k] != HEFT_CHECKSUM_MISMATCH)
            continue;
        heft_stored_checksum c = heft_ix_checksum_at(&l->f->x, k);
        if (advisory || !c.advisory)
            HEFT_TRY(heft_stored_checksum_mismatch(l->f, &c, err));
    }
    return HEFT_OK;
}
