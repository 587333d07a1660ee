/* part_window.c - reads the parts of a quantised tensor: bytes from windows, and numbers. */
#include "base/checked_math.h"
#include "base/error.h"
#include "model/float.h"
#include "scheme/decoding.h"

enum { ALIGN = 64 };

const uint8_t *heft_part_window_find(const heft_part_window *w, uint64_t at, size_t len)
{
    if (w->lent)
        return w->lent + at;
    return at >= w->at && at + len <= w->at + w->len ? w->buf + (at - w->at) : NULL;
}

heft_status heft_part_window_fill(heft_part_window *w, const heft_file *f, uint32_t part,
                                  heft_range read, heft_error *err)
{
    const heft_allocator *al = f->host->allocator;
    w->len = 0;
    if (read.length > w->capacity) {
        heft_free(al, w->buf, w->capacity, ALIGN);
        w->buf = read.length <= SIZE_MAX ? heft_alloc(al, (size_t)read.length, ALIGN) : NULL;
        w->capacity = w->buf ? (size_t)read.length : 0;
        if (!w->buf)
            return heft_error_no_memory(err, "for the bytes of a tensor");
    }
    HEFT_TRY(heft_part_read(w->buf, f, part, read.offset, (size_t)read.length, err));
    w->at = read.offset;
    w->len = (size_t)read.length;
    return HEFT_OK;
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
    if ((d->is_transposed || d->by_column) && heft_div(p->bytes, d->stack) * d->stack == p->bytes) {
        uint64_t matrix = heft_div(p->bytes, d->stack), from = r->matrix * matrix;
        if (at >= from && at + len <= from + matrix)
            return (heft_range){ from, matrix };
    }
    if (!heft_mul(&ahead, r->wanted, p->bytes))
        ahead = 0;
    ahead = heft_div(ahead, elements) + ALIGN;
    ahead = ahead < HEFT_WINDOW ? ahead : HEFT_WINDOW;
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
    const uint8_t *found = heft_part_window_find(w, at, len);
    if (found)
        return found;
    r->st = heft_part_window_fill(w, r->d->f, p->part, range_to_read(r, role, at, len), r->err);
    return r->st ? NULL : heft_part_window_find(w, at, len);
}

/* Most time is spent here: a table is several times as fast as a cast. */
static void look_up(heft_decoder *r, heft_dtype t, const uint8_t *p, size_t count, float *out)
{
    for (int i = 0; r->table_type != t && i < 256; i++) {
        uint8_t code = (uint8_t)i;
        (void)heft_floats_from(&r->table.number[i], t, &code, 1);
        uint32_t bits = heft_f32_bits(r->table.number[i]);
        r->table.third[i] = (uint8_t)(bits >> 16);
        r->table.top[i] = (uint8_t)(bits >> 24);
    }
    r->table_type = t;
    heft_packed_now()->bytes(out, p, count, &r->table);
}

/* E8M0 is the exponent of an f32; the least one is that of a subnormal number. */
static void read_powers(const uint8_t *p, size_t count, float *out)
{
    enum { EXPONENT = 23, NOT_A_NUMBER = 255 };
    const uint32_t least = UINT32_C(1) << (EXPONENT - 1), nan = 0x7FC00000;
    for (size_t i = 0; i < count; i++)
        out[i] = heft_f32_of(p[i] == NOT_A_NUMBER ? nan
                             : p[i]               ? (uint32_t)p[i] << EXPONENT
                                                  : least);
}

bool heft_decoding_floats(float *out, heft_dtype t, const uint8_t *p, size_t count)
{
    if (t != HEFT_F8_E8M0)
        return heft_floats_from(out, t, p, count);
    read_powers(p, count, out);
    return true;
}

bool heft_decoder_floats(heft_decoder *r, heft_role role, uint64_t first, size_t count, float *out)
{
    heft_dtype t = r->d->part[role].dtype;
    uint64_t size = heft_dtype_size(t);
    const uint8_t *p = heft_decoder_bytes(r, role, first * size, (size_t)(count * size));
    if (p && role == HEFT_ROLE_WEIGHT && heft_is_float8(t))
        look_up(r, t, p, count, out);
    else if (p && !heft_decoding_floats(out, t, p, count))
        r->st = heft_decoding_refuse(r->d, role, "has a type that is no number", r->err);
    return !r->st;
}
