/* checked_read.c - verifies checksums of parts that are read by several threads.  CRCs of the
 * chunks are joined and compared with the checksums in the file.  Bytes that are covered but belong
 * to no tensor, such as array headers, are read at the end. */
#include "core/read/checked_read.h"

#include "base/bisect.h"
#include "core/read/stored_checksum.h"
#include "core/read/stream.h"

static const char purpose[] = "to check digests";

/* ---- selecting checksums ---- */

/* The parts of the file by offset, with a running count of parts that are not read. */
typedef struct coverage {
    uint32_t *order, count;
    uint32_t *unread; /* unread[i]: unread parts among the first i; count + 1 numbers */
    uint8_t *is_read; /* by part */
    size_t unread_bytes;
} coverage;

static bool have_same_bytes(const heft_index *x, uint32_t a, uint32_t b)
{
    const heft_ix_part_row *p = heft_ix_part_row_at(x, a), *q = heft_ix_part_row_at(x, b);
    return p->offset == q->offset && p->stored == q->stored;
}

/* Parts with the same bytes, which follow each other, are read if one of them is. */
static void count_unread(coverage *cov, const heft_index *x)
{
    cov->unread[0] = 0;
    for (uint32_t first = 0, end; first < cov->count; first = end) {
        bool is_read = false;
        for (end = first; end < cov->count; end++) {
            if (!have_same_bytes(x, cov->order[first], cov->order[end]))
                break;
            is_read = is_read || cov->is_read[cov->order[end]];
        }
        for (uint32_t i = first; i < end; i++)
            cov->unread[i + 1] = cov->unread[i] + !is_read;
    }
}

static heft_status init_coverage(coverage *cov, heft_checked_read *r, const uint32_t *parts,
                                 uint32_t count, heft_error *err)
{
    const heft_index *x = &r->ledger.f->x;
    uint32_t all = heft_ix_all_parts(x);
    *cov = (coverage){ .order = NULL };
    cov->order = heft_ix_order_in(&r->ledger.mem, x, &cov->count);
    cov->unread_bytes = ((size_t)all + 1) * sizeof *cov->unread + all;
    cov->unread = heft_mem_alloc(&r->ledger.mem, cov->unread_bytes);
    if (!cov->order || !cov->unread)
        return heft_error_no_memory(err, purpose);
    cov->is_read = (uint8_t *)(cov->unread + all + 1);
    memset(cov->is_read, 0, all);
    if (!parts && x->parts.len)
        memset(cov->is_read, 1, x->parts.len);
    for (uint32_t i = 0; parts && i < count; i++)
        cov->is_read[parts[i]] = 1;
    count_unread(cov, x);
    return HEFT_OK;
}

/* Return the number of parts with bytes that begin before the offset. */
static uint32_t parts_starting_before(const coverage *cov, const heft_index *x, uint64_t offset)
{
    heft_bisect b = { .end = cov->count };
    while (heft_bisect_next(&b))
        heft_bisect_narrow(&b, heft_ix_part_row_at(x, cov->order[b.mid])->offset < offset);
    return b.first;
}

/* Return true if the checksum covers bytes of parts, and only of parts that are read. */
static bool covers_only_read_parts(const coverage *cov, const heft_index *x,
                                   const heft_stored_checksum *c)
{
    uint32_t parts = 0, unread = 0;
    for (int i = 0; i < HEFT_CHECKSUM_RANGES; i++) {
        heft_range r = c->range[i];
        uint32_t from = parts_starting_before(cov, x, r.offset),
                 to = parts_starting_before(cov, x, r.offset + r.length);
        parts += r.length ? to - from : 0;
        unread += r.length ? cov->unread[to] - cov->unread[from] : 0;
    }
    return parts && !unread;
}

/* Return true if reading parts compares a checksum.  Alternative and advisory checksums are left to
 * heft_file_verify(). */
static bool is_compared(const heft_index *x, uint32_t i)
{
    const heft_stored_checksum *checksums = x->checksums.ptr, *c = &checksums[i];
    return !c->is_alternative && !(i && checksums[i - 1].is_alternative) &&
           !c->covers_metadata_only && !c->advisory;
}

static void select_range_checksums(heft_checked_read *r, const coverage *cov)
{
    const heft_index *x = &r->ledger.f->x;
    const heft_stored_checksum *checksums = x->checksums.ptr;
    for (uint32_t i = 0; i < x->checksums.len; i++)
        if (is_compared(x, i) && covers_only_read_parts(cov, x, &checksums[i]))
            (void)heft_ledger_join(&r->ledger, i);
}

/* Return true if the digest of a part is joined from chunks. */
static bool is_joinable(const heft_checked_read *r, uint32_t part, uint32_t checksum)
{
    const heft_file *f = r->ledger.f;
    if (!r->is_chunked || !heft_ix_is_plain(heft_ix_part_row_at(&f->x, part)))
        return false;
    const heft_digest *d = heft_host_digest(f->host, heft_ix_checksum_algorithm(&f->x, checksum));
    return d && heft_partial_crcs_supports(d);
}

static heft_status select_part_digests(heft_checked_read *r, const coverage *cov, heft_error *err)
{
    const heft_index *x = &r->ledger.f->x;
    for (uint32_t i = x->checksums.len; i < r->ledger.checksums; i++) {
        uint32_t part = heft_ix_checksum_part(x, i);
        bool joins = is_joinable(r, part, i), is_empty = !heft_ix_part_row_at(x, part)->length;
        if (!joins) /* even of a part that is not in the list, if its stream is opened */
            r->ledger.ways[i] = HEFT_LEDGER_IN_ORDER;
        /* an empty part is never read */
        if (cov->is_read[part] && is_empty)
            HEFT_TRY(heft_part_verify(NULL, r->ledger.f, part, err));
        else if (cov->is_read[part] && joins)
            (void)heft_ledger_join(&r->ledger, i);
    }
    return HEFT_OK;
}

static bool is_marked(void *ctx, uint32_t part)
{
    return ((const uint8_t *)ctx)[part];
}

static heft_status check_boxes(const heft_file *f, const uint32_t *parts, uint32_t count,
                               heft_error *err)
{
    heft_memory mem = { f->host->allocator, UINT64_MAX, 0 };
    uint32_t all = heft_ix_all_parts(&f->x);
    if (HEFT_IS_LEAN || (!f->x.assembled.len && !f->joined_count))
        return HEFT_OK;
    if (!parts)
        return heft_box_checksums_check(f, NULL, NULL, err);
    uint8_t *is_read = heft_mem_alloc(&mem, all);
    if (!is_read)
        return heft_error_no_memory(err, purpose);
    memset(is_read, 0, all);
    for (uint32_t i = 0; i < count; i++)
        is_read[parts[i]] = 1;
    heft_status st = heft_box_checksums_check(f, is_marked, is_read, err);
    heft_mem_free(&mem, is_read, all);
    return st;
}

heft_status heft_checked_read_begin(heft_checked_read *r, const heft_file *f, bool is_enabled,
                                    bool is_chunked, const uint32_t *parts, uint32_t count,
                                    heft_error *err)
{
    coverage cov;
    r->is_chunked = is_chunked;
    heft_status st = heft_ledger_open(&r->ledger, f, !is_enabled, err);
    if (!st && is_enabled)
        st = count == 1 && parts ? heft_box_checksums_check_part(f, *parts, err)
                                 : check_boxes(f, parts, count, err);
    if (st || !r->ledger.checksums)
        return st;
    st = init_coverage(&cov, r, parts, count, err);
    if (!st) {
        select_range_checksums(r, &cov);
        st = select_part_digests(r, &cov, err);
    }
    heft_ix_order_free_in(&r->ledger.mem, &f->x, cov.order);
    heft_mem_free(&r->ledger.mem, cov.unread, cov.unread_bytes);
    return st;
}

/* ---- comparing ---- */

heft_status heft_checked_read_end(heft_checked_read *r, heft_error *err)
{
    const heft_file *f = r->ledger.f;
    heft_error own;
    err = heft_error_begin(err, &own);
    heft_status st = heft_ledger_settle(&r->ledger, err);
    for (uint32_t i = 0; i < r->ledger.checksums && !st; i++)
        if (r->ledger.states[i] == HEFT_CHECKSUM_MISMATCH)
            st = heft_checksum_mismatch_error(f, i, heft_ix_checksum_part(&f->x, i), err);
    return heft_error_end(err, st);
}

/* ---- public functions ---- */

heft_status heft_checked_read_open(heft_checked_read **out, const heft_file *f,
                                   const uint32_t *parts, uint32_t count, heft_error *err)
{
    const heft_allocator *al = f->host->allocator;
    heft_error own;
    heft_status st = HEFT_OK;
    err = heft_error_begin(err, &own);
    *out = NULL;
    for (uint32_t i = 0; i < count && parts && !st; i++)
        st = heft_file_find_part(f, parts[i], err);
    if (st)
        return heft_error_end(err, st);
    heft_checked_read *r = heft_alloc(al, sizeof *r, 16);
    if (!r)
        return heft_error_end(err, heft_error_no_memory(err, purpose));
    st = heft_checked_read_begin(r, f, true, false, parts, count, err);
    if (st)
        heft_checked_read_close(r);
    else
        *out = r;
    return heft_error_end(err, st);
}

heft_status heft_checked_read_stream(heft_stream **out, heft_checked_read *r, uint32_t part,
                                     heft_error *err)
{
    const heft_file *f = r->ledger.f;
    heft_status st = heft_file_find_part(f, part, err);
    uint32_t checksum = st ? HEFT_NONE : heft_ledger_in_order(&r->ledger, part);
    *out = NULL;
    return st ? st : heft_stream_open_with(out, f, part, checksum, &r->ledger.crcs, err);
}

void heft_checked_read_close(heft_checked_read *r)
{
    if (!r)
        return;
    const heft_allocator *al = r->ledger.f->host->allocator;
    heft_ledger_free(&r->ledger);
    heft_free(al, r, sizeof *r, 16);
}
