/* part_read.c - reads bytes of parts, decoded and in tensor order. */
#include "core/read/input_window.h"
#include "core/read/stored_checksum.h"
#include "core/read/stream.h"
#include "core/read/strided.h"

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

const void *heft_part_view(const heft_file *f, uint32_t part)
{
    if (heft_unlikely(!heft_ix_has_part(&f->x, part)))
        return NULL;
    const heft_ix_part_row *p = heft_ix_part_row_at(&f->x, part);
    return heft_ix_is_plain(p) && p->stored ? heft_file_map(f, p->offset, p->stored) : NULL;
}

const uint8_t *heft_part_in_place(const heft_file *f, uint32_t part)
{
    const heft_ix_part_row *p = heft_ix_part_row_at(&f->x, part);
    return heft_ix_is_plain(p) && p->stored ? heft_file_in_place(f, p->offset, p->stored) : NULL;
}

/* Decode and discard the bytes before `from`: a compressed part has no random access.  checksum:
 * checkable after reading this range; or HEFT_NONE. */
static heft_status read_stream(void *buf, const heft_file *f, uint32_t part, uint64_t from,
                               size_t len, uint32_t checksum, heft_error *err)
{
    heft_stream s;
    HEFT_TRY(heft_stream_start(&s, f, part, err));
    heft_file_enter(f);
    heft_status st = heft_stream_check(&s, checksum, err);
    if (!st)
        st = heft_stream_skip(&s, from, err);
    if (!st)
        st = heft_stream_read(buf, &s, len, err);
    heft_stream_stop(&s);
    return heft_file_leave_after(f, st, err);
}

static heft_status check_range(const heft_file *f, uint32_t part, uint64_t from, size_t len,
                               heft_error *err)
{
    HEFT_TRY(heft_file_find_part(f, part, err));
    const heft_ix_part_row *p = heft_ix_part_row_at(&f->x, part);
    if (p->length != HEFT_UNKNOWN_LENGTH && !heft_range_in((heft_range){ from, len }, p->length))
        return heft_error_plain(err, HEFT_E_ARGUMENT,
                                "%U bytes at offset %U exceed the part, which has %U bytes",
                                (uint64_t)len, from, p->length);
    return HEFT_OK;
}

static heft_status read_part(void *buf, const heft_file *f, uint32_t part, uint64_t from,
                             size_t len, uint32_t checksum, heft_error *err)
{
    const heft_ix_part_row *p = heft_ix_part_row_at(&f->x, part);
    if (p->encoding != HEFT_RAW || checksum != HEFT_NONE)
        return read_stream(buf, f, part, from, len, checksum, err);
    heft_status st = heft_file_count_read(f, part, len, err);
    if (st || heft_ix_is_plain(p))
        return st ? st : heft_file_read_stored(f, p->offset + from, buf, len, err);
    heft_strided_reader e = heft_strided_reader_of(f, part, NULL);
    heft_file_enter(f); /* strided elements may be mapped */
    st = heft_strided_reader_read(&e, from, buf, len, err);
    return heft_file_leave_after(f, st, err);
}

heft_status heft_read_unchecked(void *buf, const heft_file *f, uint32_t part, uint64_t from,
                                size_t len, heft_error *err)
{
    HEFT_TRY(check_range(f, part, from, len, err));
    return read_part(buf, f, part, from, len, HEFT_NONE, err);
}

heft_status heft_read_checked(void *buf, const heft_file *f, uint32_t part, uint32_t checksum,
                              heft_error *err)
{
    uint64_t length = heft_ix_part_row_at(&f->x, part)->length;
    return read_part(buf, f, part, 0, (size_t)length, checksum, err);
}

heft_status heft_part_read(void *buf, const heft_file *f, uint32_t part, uint64_t from, size_t len,
                           heft_error *err)
{
    HEFT_TRY(check_range(f, part, from, len, err));
    bool is_whole = !from && len == heft_ix_part_row_at(&f->x, part)->length;
    bool checks = f->check_parts && f->ready && is_whole;
    uint32_t checksum = checks ? heft_part_checksum(f, part, false) : HEFT_NONE;
    if (checks)
        HEFT_TRY(heft_box_checksums_check_part(f, part, err));
    return read_part(buf, f, part, from, len, checksum, err);
}

void heft_part_prefetch(const heft_file *f, const uint32_t *parts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!heft_ix_has_part(&f->x, parts[i]))
            continue;
        const heft_ix_part_row *p = heft_ix_part_row_at(&f->x, parts[i]);
        heft_file_announce(f, p->offset, p->stored);
    }
}
