/* doctor_truncated.c - opens a file with data that end early and a whole index: the
 * file is shown at the size that the index asks for, with zeros in place of the missing bytes. */
#include "base/error.h"
#include "core/check/diagnosis.h"
#include "core/check/verification.h"

/* ---- the expected size ---- */

/* An index has at least this many bytes per tensor, all present. */
enum { RECORD_BYTES = 8, EXTRA_INDEX = 1 << 20 };

static heft_status open_at(heft_doctor *d, uint64_t size, heft_error *err)
{
    heft_limits limits = HEFT_LIMITS_INIT;
    heft_open_options o = HEFT_OPEN_OPTIONS_INIT;
    uint64_t tensors = d->source->size / RECORD_BYTES;
    limits.index_bytes = d->source->size + EXTRA_INDEX;
    limits.tensors = tensors < UINT32_MAX / 512 ? (uint32_t)tensors + 1 : 0;
    o.host = d->host;
    o.limits = &limits;
    o.no_verify = true;
    return heft_doctor_open_at(d, size, &o, err);
}

/* Try sizes until the index is readable.  A parser names the first tensor past the end, so the size
 * doubles when the same happens again; formats without trailing bytes name the exact size then. */
static heft_status find_size(heft_doctor *d, uint64_t expected, heft_error *err)
{
    enum { TRIES = 64 };
    static const uint64_t most = UINT64_C(1) << 47;
    heft_status st = HEFT_E_FORMAT;
    uint64_t size = d->source->size, step = 0;
    for (int i = 0; i < TRIES && st == HEFT_E_FORMAT; i++) {
        if (expected <= d->source->size || expected > most || expected == size)
            return HEFT_OK;
        bool is_larger = expected > size;
        size = is_larger && step ? expected + step : expected;
        step = is_larger ? 2 * step + (expected - d->source->size) : 0;
        st = open_at(d, size, err);
        expected = st ? err->expected_bytes : size;
    }
    return st == HEFT_E_NOMEM || st == HEFT_E_IO ? st : HEFT_OK;
}

/* ---- missing bytes ---- */

static bool is_present(const heft_doctor *d, const heft_ix_part_row *p)
{
    return heft_range_in((heft_range){ p->offset, p->stored }, d->source->size);
}

/* The index precedes the data: if no byte of data is present, the index may be zeros, too. */
static bool has_data(const heft_doctor *d)
{
    const heft_index *x = &d->file->x;
    for (uint32_t i = 0; i < x->parts.len; i++) {
        const heft_ix_part_row *p = heft_ix_part_row_at(x, i);
        if (p->stored && p->offset < d->source->size)
            return true;
    }
    return false;
}

static heft_status mark_missing(heft_doctor *d, heft_error *err)
{
    const heft_index *x = &d->file->x;
    for (uint32_t t = 0; t < heft_ix_tensors(x); t++) {
        const heft_ix_tensor_row *row = heft_ix_row(x, t);
        bool is_whole = true;
        for (uint32_t i = 0; i < row->part_count; i++) {
            const heft_ix_part_row *p = heft_ix_part_row_at(x, row->first_part + i);
            uint64_t end = p->offset + p->stored;
            is_whole = is_whole && is_present(d, p);
            d->expected_bytes = end > d->expected_bytes ? end : d->expected_bytes;
        }
        if (!is_whole)
            HEFT_TRY(heft_doctor_lose(d, t, err));
    }
    return HEFT_OK;
}

/* ---- checksums over bytes that are present ---- */

static heft_status lose_mismatches(heft_doctor *d, const heft_ledger *l, heft_error *err)
{
    for (uint32_t i = 0, k; heft_ledger_next(l, &i, &k);) {
        heft_stored_checksum c = heft_ix_checksum_at(&d->file->x, k);
        if (c.advisory || l->states[k] != HEFT_CHECKSUM_MISMATCH)
            continue;
        heft_doctor_row row = { HEFT_FAULT, c.tensor, c.rule, NULL, NULL, c.range[0] };
        heft_doctor_add(d, row, "the checksum does not match the bytes it covers");
        if (c.tensor != HEFT_NONE)
            HEFT_TRY(heft_doctor_lose(d, c.tensor, err));
        else if (!heft_vec_add(&d->mem, &d->lost_ranges, &c.range[0], sizeof c.range[0]))
            return heft_error_no_memory(err, "for a diagnosis");
    }
    return HEFT_OK;
}

static heft_status check_present(heft_doctor *d, heft_progress *progress, heft_error *err)
{
    heft_ledger l;
    heft_status st = heft_ledger_open(&l, d->file, false, err);
    for (uint32_t i = 0; i < l.checksums && !st; i++) {
        heft_stored_checksum c = heft_ix_checksum_at(&d->file->x, i);
        if (heft_range_in(c.range[0], d->source->size) &&
            heft_range_in(c.range[1], d->source->size))
            l.ways[i] = HEFT_LEDGER_SWEEP;
    }
    if (!st)
        st = heft_checksum_sweep(&l, progress, err);
    if (!st)
        st = lose_mismatches(d, &l, err);
    heft_ledger_free(&l);
    return st;
}

heft_status heft_doctor_open_truncated(heft_doctor *d, const heft_error *why,
                                       heft_progress *progress, heft_error *err)
{
    d->expected_bytes = why->expected_bytes;
    heft_status st = find_size(d, why->expected_bytes, err);
    if (st || !d->file)
        return st;
    if (!has_data(d)) {
        heft_file_close(d->file);
        d->file = NULL;
        return HEFT_OK;
    }
    st = mark_missing(d, err);
    return st ? st : check_present(d, progress, err);
}
