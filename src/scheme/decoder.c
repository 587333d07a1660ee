/* decoder.c - decodes elements of a quantised tensor: rows in runs, from windows on the parts. */
#include "base/checked_math.h"
#include "base/error.h"
#include "scheme/decoding.h"

enum { WINDOW = 64 << 10, ALIGN = 64 };

void heft_decoder_begin(heft_decoder *r, const heft_decoding *d, heft_error *err)
{
    r->err = err;
    r->st = HEFT_OK;
    if (r->d == d)
        return;
    r->d = d;
    r->tile_count = r->group_count = 0;
    for (int k = 0; k < HEFT_ROLES; k++) {
        const heft_decoding_part *p = &d->part[k];
        heft_part_window *w = &r->window[k];
        bool is_there = p->tensor != HEFT_NONE;
        w->lent = !is_there          ? NULL
                  : d->is_transposed ? heft_part_view(d->f, p->part)
                                     : heft_part_in_place(d->f, p->part);
        w->len = 0;
    }
}

void heft_decoder_free(heft_decoder *r, const heft_allocator *al)
{
    for (int k = 0; k < HEFT_ROLES; k++)
        heft_free(al, r->window[k].buf, r->window[k].capacity, ALIGN);
    heft_free(al, r->tile, r->tile_capacity, ALIGN);
    *r = (heft_decoder){ .d = NULL };
}

/* ---- bytes of parts ---- */

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

/* ---- scales ---- */

size_t heft_decoder_scales(heft_decoder *r, heft_role role, uint64_t row, uint64_t column,
                           size_t count, float *scale)
{
    const heft_scale_grid *g = &r->d->grid;
    uint64_t matrix = r->matrix, in_matrix = row - matrix * r->d->rows;
    uint64_t first = heft_div(column, g->width), last = heft_div(column + count - 1, g->width);
    uint64_t line = heft_div(in_matrix, g->height);
    uint64_t at = matrix * g->matrix + line * g->across + first;
    size_t n = (size_t)(last - first + 1);
    return heft_decoder_floats(r, role, at, n, scale) ? n : 0;
}

/* The inner loop has a constant length, so that compilers use vectors. */
static void scale_run(float *x, size_t n, float s)
{
    enum { STEP = 16 };
    size_t i = 0;
    for (; i + STEP <= n; i += STEP)
        for (size_t k = 0; k < STEP; k++)
            x[i + k] *= s;
    for (; i < n; i++)
        x[i] *= s;
}

void heft_decoder_multiply(const heft_decoding *d, uint64_t column, size_t count,
                           const float *scale, float *x)
{
    uint64_t width = d->grid.width, into = column - heft_div(column, width) * width;
    while (count) {
        size_t n = width - into < count ? (size_t)(width - into) : count;
        scale_run(x, n, *scale++);
        x += n;
        count -= n;
        into = 0;
    }
}

/* ---- groups of rows ---- */

bool heft_decoder_has_group(heft_decoder *r, uint64_t group, uint64_t first, size_t count)
{
    bool is = r->group_count == count && r->group == group && r->group_first == first;
    r->group = group;
    r->group_first = first;
    r->group_count = count;
    return is;
}

heft_status heft_decoder_drop_group(heft_decoder *r)
{
    r->group_count = 0;
    return r->st;
}

void heft_decoder_apply_group(const heft_decoder *r, size_t count, float *x)
{
    enum { STEP = 16 };
    size_t i = 0;
    for (; i + STEP <= count; i += STEP)
        for (size_t k = 0; k < STEP; k++)
            x[i + k] = (x[i + k] - r->group_zero[i + k]) * r->group_scale[i + k];
    for (; i < count; i++)
        x[i] = (x[i] - r->group_zero[i]) * r->group_scale[i];
}

/* ---- elements ---- */

/* Decode the columns [column, column + count) of a stored row, and cast them to out. */
static void decode_run(heft_decoder *r, uint64_t row, uint64_t column, size_t count, heft_dtype as,
                       uint8_t *out)
{
    float run[HEFT_RUN];
    bool is_float = as == HEFT_F32 && !((uintptr_t)out % sizeof(float));
    float *to = is_float ? (float *)(void *)out : run;
    r->st = r->d->decoder->decode(r, row, column, count, to);
    if (!r->st && to == run)
        (void)heft_dtype_cast(out, as, run, HEFT_F32, count);
}

static heft_status read_rows(heft_decoder *r, uint64_t from, size_t count, heft_dtype as,
                             uint8_t *out)
{
    const heft_decoding *d = r->d;
    uint32_t size = heft_dtype_size(as);
    uint64_t row = heft_div(from, d->columns), column = from - row * d->columns;
    r->matrix = heft_div(row, d->rows);
    for (size_t n; count && !r->st; count -= n, out += n * size) {
        uint64_t left = d->columns - column;
        n = count < HEFT_RUN ? count : HEFT_RUN;
        n = left < n ? (size_t)left : n;
        decode_run(r, row, column, n, as, out);
        column += n;
        if (column == d->columns) {
            column = 0;
            row++;
            r->matrix += row == (r->matrix + 1) * d->rows;
        }
    }
    return r->st;
}

/* ---- stored rows that are columns of the result ---- */

/* Write a band of decoded rows, `stride` bytes apart, to the columns of a tile: element (i, c) to
 * row c, column i. */
static void put_band(uint8_t *tile, uint64_t rows, uint64_t i0, const uint8_t *band, size_t stride,
                     size_t height, size_t width, uint32_t size)
{
    for (size_t c = 0; c < width; c++) {
        uint8_t *to = tile + (c * rows + i0) * size;
        const uint8_t *from = band + c * size;
        for (size_t i = 0; i < height; i++, from += stride, to += size)
            memcpy(to, from, size);
    }
}

static bool reserve_tile(heft_decoder *r, uint64_t bytes)
{
    const heft_allocator *al = r->d->f->host->allocator;
    if (bytes <= r->tile_capacity)
        return true;
    heft_free(al, r->tile, r->tile_capacity, ALIGN);
    r->tile = bytes <= SIZE_MAX ? heft_alloc(al, (size_t)bytes, ALIGN) : NULL;
    r->tile_capacity = r->tile ? (size_t)bytes : 0;
    if (!r->tile)
        r->st = heft_error_no_memory(r->err, "to decode a quantised tensor");
    return r->tile;
}

/* Decode the result's rows [k, k + n) of the matrix, as many as a tile holds: short runs of each
 * stored row would take most of the time. */
static void fill_tile(heft_decoder *r, uint64_t k, heft_dtype as)
{
    enum { TILE = 4 << 20, BAND = 32 };
    const heft_decoding *d = r->d;
    uint32_t size = heft_dtype_size(as);
    uint64_t n = heft_div(TILE, d->rows * size), left = d->columns - k;
    n = n < HEFT_RUN ? n : HEFT_RUN;
    n = n < left ? n : left;
    n = n ? n : 1;
    size_t stride = (size_t)n * size;
    uint64_t bytes = n * d->rows * size;
    r->tile_count = 0;
    if (!reserve_tile(r, bytes + BAND * stride))
        return;
    uint8_t *band = r->tile + bytes;
    for (uint64_t i = 0; i < d->rows && !r->st; i += BAND) {
        size_t height = d->rows - i < BAND ? (size_t)(d->rows - i) : BAND;
        for (size_t b = 0; b < height && !r->st; b++)
            decode_run(r, r->matrix * d->rows + i + b, k, (size_t)n, as, band + b * stride);
        if (size == 2)
            put_band(r->tile, d->rows, i, band, stride, height, (size_t)n, 2);
        else
            put_band(r->tile, d->rows, i, band, stride, height, (size_t)n, size);
    }
    r->tile_first = (r->matrix * d->columns + k) * d->rows;
    r->tile_count = r->st ? 0 : n * d->rows;
    r->tile_type = as;
}

static heft_status read_transposed(heft_decoder *r, uint64_t from, size_t count, heft_dtype as,
                                   uint8_t *out)
{
    const heft_decoding *d = r->d;
    uint32_t size = heft_dtype_size(as);
    uint64_t in_matrix = d->rows * d->columns;
    for (size_t n; count && !r->st; count -= n, from += n, out += n * size) {
        bool is_there = r->tile_type == as && from >= r->tile_first &&
                        from - r->tile_first < r->tile_count;
        n = 0;
        if (!is_there) {
            r->matrix = heft_div(from, in_matrix);
            fill_tile(r, heft_div(from - r->matrix * in_matrix, d->rows), as);
            continue;
        }
        uint64_t skip = from - r->tile_first, left = r->tile_count - skip;
        n = left < count ? (size_t)left : count;
        memcpy(out, r->tile + skip * size, n * size);
    }
    return r->st;
}

heft_status heft_decoder_read(heft_decoder *r, uint64_t from, size_t count, heft_dtype as,
                              uint8_t *out)
{
    r->wanted = count;
    if (!count)
        return HEFT_OK;
    return r->d->is_transposed ? read_transposed(r, from, count, as, out)
                               : read_rows(r, from, count, as, out);
}
