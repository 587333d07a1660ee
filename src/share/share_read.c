/* share_read.c - checksums over several parts, where no share of a result reads all parts.  A share
 * writes the CRCs of the bytes read as an array in JSON, [OFFSET,BYTES,CRC,...]; the join compares
 * the checksums with the CRCs of all shares. */
#include <heft/share.h>

#include "core/check/file_hash.h"
#include "share/share_crcs.h"

static const char purpose[] = "to check digests";

static heft_status check_parts(const heft_file *f, const uint32_t *parts, uint32_t count,
                               heft_error *err)
{
    heft_status st = HEFT_OK;
    for (uint32_t i = 0; parts && i < count && !st; i++)
        st = heft_file_find_part(f, parts[i], err);
    return st;
}

heft_status heft_share_read_open(heft_checked_read **out, const heft_file *f, const uint32_t *own,
                                 uint32_t own_count, const uint32_t *all, uint32_t all_count,
                                 heft_error *err)
{
    static const uint32_t none; /* NULL would be all parts */
    const heft_allocator *al = f->host->allocator;
    heft_error here;
    err = heft_error_begin(err, &here);
    *out = NULL;
    own = own_count ? own : &none;
    heft_status st = check_parts(f, own, own_count, err);
    if (!st)
        st = check_parts(f, all, all_count, err);
    heft_checked_read *r = st ? NULL : heft_alloc(al, sizeof *r, 16);
    if (!st && !r)
        st = heft_error_no_memory(err, purpose);
    if (!st) {
        st = heft_checked_read_begin_share(r, f, true, false, (heft_part_list){ own, own_count },
                                           (heft_part_list){ all, all_count }, err);
        *out = st ? NULL : r;
        if (st)
            heft_checked_read_close(r);
    }
    return heft_error_end(err, st);
}

/* Join the CRCs of adjacent bytes, up to the offsets where a shared checksum begins or ends. */
static heft_status compact(heft_checked_read *r, heft_error *err)
{
    const uint32_t *shared = r->shared.ptr;
    heft_borders borders;
    bool has_memory = true;
    heft_borders_init(&borders, r->f->host);
    for (uint32_t i = 0; i < r->shared.len && has_memory; i++) {
        heft_stored_checksum c = heft_ix_checksum_at(&r->f->x, shared[i]);
        for (int k = 0; k < HEFT_CHECKSUM_RANGES && has_memory; k++)
            has_memory = !c.range[k].length || heft_borders_add(&borders, c.range[k]);
    }
    has_memory = has_memory && heft_borders_sort(&borders);
    if (has_memory)
        heft_partial_crcs_compact(&r->crcs, &borders);
    heft_borders_free(&borders);
    return has_memory ? HEFT_OK : heft_error_no_memory(err, purpose);
}

static heft_status write_out(void *ctx, uint64_t at, const void *data, size_t len)
{
    heft_sink *sink = ctx;
    return sink->ops->write_at(sink, at, data, len, NULL);
}

heft_status heft_share_read_crcs(heft_blob *out, heft_checked_read *r, heft_error *err)
{
    uint8_t buf[1024];
    heft_sink *sink;
    heft_error own;
    err = heft_error_begin(err, &own);
    *out = (heft_blob){ NULL, 0, NULL };
    bool has_shared = r->shared.len;
    heft_status st = has_shared ? compact(r, err) : HEFT_OK;
    if (!st)
        st = heft_sink_open_memory(&sink, out, r->f->host, err);
    if (st)
        return heft_error_end(err, st);
    heft_out o = { .buf = buf, .cap = sizeof buf, .flush = write_out, .ctx = sink };
    if (has_shared)
        heft_share_crcs_put(&o, &r->crcs, r->shared_kinds);
    else
        heft_share_end_array(&o, false);
    if (heft_out_flush(&o)) {
        sink->ops->discard(sink);
        return heft_error_end(err, heft_error_no_memory(err, purpose));
    }
    return heft_error_end(err, sink->ops->finish(sink, err));
}

heft_status heft_share_read_join(heft_checked_read *r, heft_str crcs, heft_error *err)
{
    enum { DEPTH = 2 };
    heft_error own;
    err = heft_error_begin(err, &own);
    heft_json j = heft_json_open(crcs, 0, DEPTH, NULL, err);
    r->has_joined = true;
    heft_status st = heft_json_next(&j) == HEFT_JSON_ARRAY ? HEFT_OK : heft_share_damaged(&j);
    if (!st)
        st = heft_share_crcs_read(&j, &r->crcs, r->shared_kinds);
    if (!st && heft_json_next(&j) != HEFT_JSON_END)
        st = heft_share_damaged(&j);
    if (!st || st == HEFT_E_NOMEM)
        return heft_error_end(err, st);
    heft_error copy = *err;
    return heft_error_end(err, heft_error_plain(err, HEFT_E_ARGUMENT, "%s", copy.message));
}

heft_status heft_share_hash(heft_hash *hashes, heft_blob *crcs, const heft_file *f,
                            const uint32_t *tensors, uint32_t all_count, uint32_t first,
                            uint32_t count, heft_progress_fn progress, void *progress_ctx,
                            heft_error *err)
{
    heft_checked_read checks;
    heft_error own;
    err = heft_error_begin(err, &own);
    *crcs = (heft_blob){ NULL, 0, NULL };
    if (first > all_count || count > all_count - first)
        return heft_error_end(err, heft_error_plain(err, HEFT_E_ARGUMENT,
                                                    "%U tensors from number %U on are not among %U",
                                                    (uint64_t)count, (uint64_t)first,
                                                    (uint64_t)all_count));
    heft_status st = heft_tensor_hash_share(hashes, &checks, f, tensors, all_count, first, count,
                                            progress, progress_ctx, err);
    if (!st)
        st = heft_share_read_crcs(crcs, &checks, err);
    heft_checked_read_free(&checks);
    return heft_error_end(err, st);
}
