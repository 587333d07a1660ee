/* verify_part.c - the digest of a part that nobody reads for anything else. */
#include "core/read/stream.h"

enum { STEP = 256 << 10 };

static heft_status decode_all(heft_stream *s, heft_error *err)
{
    const heft_allocator *al = s->f->host->allocator;
    uint8_t *buf = heft_alloc(al, STEP, 64);
    uint64_t left = s->row.length;
    heft_status st = buf ? HEFT_OK : heft_error_no_memory(err, "to check a digest");
    do {
        size_t n = left < STEP ? (size_t)left : STEP;
        st = st ? st : heft_stream_read(buf, s, n, err);
        left -= n;
    } while (left && !st);
    heft_free(al, buf, STEP, 64);
    return st;
}

static heft_status check_decoded(const heft_file *f, uint32_t part, uint32_t claim, heft_error *err)
{
    heft_stream s;
    heft_status st = heft_stream_start(&s, f, part, err);
    if (st)
        return st;
    heft_file_enter(f);
    st = heft_stream_check(&s, claim, err);
    if (!st)
        st = decode_all(&s, err);
    heft_stream_stop(&s);
    heft_status there = heft_file_leave(f, err);
    return there ? there : st;
}

heft_status heft_part_verify(bool *checked, const heft_file *f, uint32_t part, heft_error *err)
{
    heft_part_check k;
    heft_error own;
    bool unused;
    err = heft_error_begin(err, &own);
    checked = checked ? checked : &unused;
    *checked = false;
    heft_status st = heft_file_find_part(f, part, err);
    if (st)
        return st;
    uint32_t claim = heft_part_checksum(f, part, true);
    st = heft_part_check_begin(&k, f, part, claim, err);
    if (!st) {
        bool decoded = k.decoded, is_on = heft_part_check_is_on(&k);
        if (decoded)
            heft_part_check_release(&k);
        st = decoded && is_on ? check_decoded(f, part, claim, err) : heft_part_check_end(&k, err);
        *checked = is_on && (!st || st == HEFT_E_CHECKSUM);
    }
    return heft_error_end(err, st);
}
