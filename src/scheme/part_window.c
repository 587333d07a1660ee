/* part_window.c - reads the parts of a quantised tensor: bytes from windows, and numbers. */
#include "base/checked_math.h"
#include "base/error.h"
#include "scheme/decoding.h"

enum { WINDOW = 64 << 10, ALIGN = 64 };

static bool reserve(heft_decoder *r, heft_part_window *w, uint64_t bytes)
{
    const heft_allocator *al = r->d->f->host->allocator;
    if (bytes <= w->capacity)
        return true;
    heft_free(al, w->buf, w->capacity, ALIGN);
    w->buf = bytes <= SIZE_MAX ? heft_alloc(al, (size_t)bytes, ALIGN) : NULL;
    w->capacity = w->buf ? (size_t)bytes : 0;
    w->len = 0;
    if (!w->buf)
        r->st = heft_error_no_memory(r->err, "to decode a quantised tensor");
    return w->buf;
}

/* Return the range to read for `len` bytes at `at`: the matrix, where rows become columns; else not
 * much more than the elements of this call need. */
static heft_range range_to_read(const heft_decoder *r, heft_role role, uint64_t at, size_t len)
{
    const heft_decoding *d = r->d;
    const heft_decoding_part *p = &d->part[role];
    uint64_t left = p->bytes - at, ahead, elements = d->stack * d->rows * d->columns;
    if (p->is_compressed)
        return (heft_range){ 0, p->bytes };
    if (d->is_transposed && heft_div(p->bytes, d->stack) * d->stack == p->bytes) {
        uint64_t matrix = heft_div(p->bytes, d->stack), from = r->matrix * matrix;
        if (at >= from && at + len <= from + matrix)
            return (heft_range){ from, matrix };
    }
    if (!heft_mul(&ahead, r->wanted, p->bytes))
        ahead = 0;
    ahead = heft_div(ahead, elements) + ALIGN;
    ahead = ahead < WINDOW ? ahead : WINDOW;
    ahead = ahead > len ? ahead : len;
    return (heft_range){ at, ahead < left ? ahead : left };
}

const uint8_t *heft_decoder_bytes(heft_decoder *r, heft_role role, uint64_t at, size_t len)
{
    const heft_decoding_part *p = &r->d->part[role];
    heft_part_window *w = &r->window[role];
    if (!heft_range_in((heft_range){ at, len }, p->bytes)) {
        r->st = heft_decoding_refuse(r->d, role, "has too few bytes", r->err);
        return NULL;
    }
    if (w->lent)
        return w->lent + at;
    if (at >= w->at && at + len <= w->at + w->len)
        return w->buf + (at - w->at);
    heft_range read = range_to_read(r, role, at, len);
    if (!reserve(r, w, read.length))
        return NULL;
    w->len = 0;
    r->st = heft_part_read(w->buf, r->d->f, p->part, read.offset, (size_t)read.length, r->err);
    if (r->st)
        return NULL;
    w->at = read.offset;
    w->len = (size_t)read.length;
    return w->buf + (at - w->at);
}

/* Most time is spent here: a table is several times as fast as a cast. */
static void look_up(heft_decoder *r, heft_dtype t, const uint8_t *p, size_t count, float *out)
{
    for (int i = 0; r->table_type != t && i < 256; i++) {
        uint8_t code = (uint8_t)i;
        (void)heft_dtype_cast(&r->table[i], HEFT_F32, &code, t, 1);
    }
    r->table_type = t;
    for (size_t i = 0; i < count; i++)
        out[i] = r->table[p[i]];
}

bool heft_decoder_floats(heft_decoder *r, heft_role role, uint64_t first, size_t count, float *out)
{
    heft_dtype t = r->d->part[role].dtype;
    uint64_t size = heft_dtype_size(t);
    const uint8_t *p = heft_decoder_bytes(r, role, first * size, (size_t)(count * size));
    if (p && role == HEFT_ROLE_WEIGHT && heft_is_float8(t))
        look_up(r, t, p, count, out);
    else if (p && !heft_dtype_cast(out, HEFT_F32, p, t, count))
        r->st = heft_decoding_refuse(r->d, role, "has a type that is no number", r->err);
    return !r->st;
}
