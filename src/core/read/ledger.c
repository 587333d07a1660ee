/* ledger.c - states of the checksums of a file. */
#include "core/read/ledger.h"

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
