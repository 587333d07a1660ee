/* part_verify.c - verifies the checksum of a part on request. */
#include "core/read/box_checksums.h"
#include "core/read/chunks.h"
#include "core/read/stream.h"

#include <string.h>

static heft_status check_decoded(const heft_file *f, uint32_t part, uint32_t checksum,
                                 heft_error *err)
{
    heft_stream s;
    heft_chunks c = { .buf = NULL };
    HEFT_TRY(heft_stream_start(&s, f, part, err));
    heft_file_enter(f);
    heft_status st = heft_stream_check(&s, checksum, err);
    if (!st)
        st = heft_chunks_open(&c, f->host->allocator, NULL, s.row.length, err);
    if (!st && !s.row.length)
        st = heft_stream_read(c.buf, &s, 0, err); /* an empty part can have a digest */
    while (!st && heft_chunks_next(&c))
        st = heft_stream_read(c.buf, &s, c.len, err);
    heft_chunks_close(&c);
    heft_stream_stop(&s);
    return heft_file_leave_after(f, st, err);
}

heft_status heft_part_verify(bool *checked, const heft_file *f, uint32_t part, heft_error *err)
{
    heft_part_check k;
    heft_error own;
    bool unused;
    err = heft_error_begin(err, &own);
    checked = checked ? checked : &unused;
    *checked = false;
    HEFT_TRY(heft_file_find_part(f, part, err));
    uint32_t checksum = heft_part_checksum(f, part, true);
    heft_status st = heft_box_checksums_check_part(f, part, err);
    if (st)
        return heft_error_end(err, st);
    st = heft_part_check_begin(&k, f, part, checksum, err);
    if (!st) {
        bool decoded = k.decoded, is_on = heft_part_check_is_on(&k);
        if (decoded)
            heft_part_check_release(&k);
        st = decoded && is_on ? check_decoded(f, part, checksum, err)
                              : heft_part_check_end(&k, err);
        *checked = is_on && (!st || st == HEFT_E_CHECKSUM);
    }
    return heft_error_end(err, st);
}

bool heft_part_stated_digest(heft_part_digest *out, const heft_file *f, uint32_t part)
{
    heft_stored_checksum c;
    bool exists = !heft_file_find_part(f, part, NULL);
    uint32_t row = exists ? heft_ix_digest_find(&f->x, part) : HEFT_NONE;
    if (row == HEFT_NONE || heft_stored_checksum_get(&c, f, f->x.checksums.len + row, NULL))
        return false;
    const heft_digest *d = heft_host_digest(f->host, c.algorithm);
    bool is_of_decoded = c.decoded || heft_part_at(f, part).encoding == HEFT_RAW;
    if (!d || !is_of_decoded)
        return false;
    *out = (heft_part_digest){ .algorithm = c.algorithm, .len = d->bytes };
    memcpy(out->bytes, c.expect, d->bytes);
    return true;
}
