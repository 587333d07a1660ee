/* decoder.c - decodes elements of a quantised tensor: rows in runs. */
#include "base/checked_math.h"
#include "base/error.h"
#include "model/cast_batch.h"
#include "scheme/decoding.h"

enum { ALIGN = 64 };

void heft_decoder_begin(heft_decoder *r, const heft_decoding *d, heft_error *err)
{
    r->err = err;
    r->st = HEFT_OK;
    if (r->d == d)
        return;
    r->d = d;
    r->tile_count = r->strip_rows = 0;
    r->scaled_type = HEFT_UNTYPED;
    for (int k = 0; k < HEFT_ROLES; k++) {
        const heft_decoding_part *p = &d->part[k];
        heft_part_window *w = &r->window[k];
        bool is_there = p->tensor != HEFT_NONE;
        bool in_any_order = d->is_transposed || d->by_column;
        w->lent = !is_there      ? NULL
                  : in_any_order ? heft_part_view(d->f, p->part)
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

/* ---- elements ---- */

static bool look_up_run(heft_decoder *r, uint64_t row, uint64_t column, size_t count, heft_dtype as,
                        uint8_t *out)
{
    const heft_scheme_decoder *decoder = r->d->decoder;
    bool is_half = as == HEFT_BF16 || as == HEFT_F16;
    return decoder->look_up && is_half && !heft_is_big_endian() &&
           !heft_decoding_part_of(r->d, HEFT_ROLE_PRE_SCALE) &&
           decoder->look_up(r, row, column, count, as, out);
}

static void put_run(float *run, size_t count, heft_dtype as, uint8_t *out)
{
    if (as == HEFT_BF16 && !heft_is_big_endian())
        heft_packed_now()->bf16(out, run, count);
    else
        heft_floats_to(out, as, run, count);
}

/* Return whether finite numbers must not become infinities in a type of 16 bits: it is not the own
 * type of the tensor, or the caller asks for it. */
static bool is_checked(const heft_decoder *r, heft_dtype as)
{
    bool is_half = as == HEFT_F16 || as == HEFT_BF16;
    return is_half && (r->d->dtype != as || r->d->refuses_infinity);
}

/* A magnitude that is not that of an infinity, xor that, plus 0x7FFF has its highest bit set. */
static bool has_infinity(const uint8_t *halves, size_t count, heft_dtype as)
{
    enum { SIZE = 2, OF_F16 = 0x7C00, OF_BF16 = 0x7F80, TWICE = 0x10001, IN_LANE = 4 / SIZE };
    const uint32_t low = 0x7FFF, infinity = as == HEFT_F16 ? OF_F16 : OF_BF16;
    heft_u32_lanes all = ~(heft_u32_lanes){ 0 }, v;
    uint32_t each[HEFT_U32_LANES], rest = UINT32_MAX;
    size_t i = 0;
    for (; !heft_is_big_endian() && i + IN_LANE * HEFT_U32_LANES <= count;
         i += IN_LANE * HEFT_U32_LANES) {
        memcpy(&v, halves + i * SIZE, sizeof v);
        all &= ((v & low * TWICE) ^ infinity * TWICE) + low * TWICE;
    }
    for (; i < count; i++)
        rest &= ((heft_le16(halves + i * SIZE) & low) ^ infinity) + low;
    memcpy(each, &all, sizeof each);
    for (size_t k = 0; k < HEFT_U32_LANES; k++)
        rest &= each[k] & each[k] >> 16;
    return !(rest & (low + 1));
}

/* Refuse finite numbers that become infinities in the type. */
static void refuse_overflow(heft_decoder *r, const float *run, size_t count, heft_dtype as)
{
    const float least = as == HEFT_F16 ? 65520 : 0x1.FFp127F, most = 3.40282347e+38F;
    uint32_t found = 0;
    for (size_t i = 0; i < count; i++) {
        float size = run[i] < 0 ? -run[i] : run[i];
        found |= (uint32_t)(size >= least) & (uint32_t)(size <= most);
    }
    if (found)
        r->st = heft_error_plain(
            r->err, HEFT_E_UNSUPPORTED, "tensor %q has numbers that are too large for %s",
            r->d->name, as == HEFT_F16 ? "f16: bf16 and f32 have them" : "bf16: f32 has them");
}

/* Decode the columns [column, column + count) of a stored row, and cast them to out. */
static void decode_run(heft_decoder *r, uint64_t row, uint64_t column, size_t count, heft_dtype as,
                       uint8_t *out)
{
    float run[HEFT_RUN];
    bool is_float = as == HEFT_F32 && !((uintptr_t)out % sizeof(float));
    float *to = is_float ? (float *)(void *)out : run;
    bool is_done = look_up_run(r, row, column, count, as, out), checks = is_checked(r, as);
    if (r->st || (is_done && !(checks && has_infinity(out, count, as))))
        return;
    r->st = r->d->decoder->decode(r, row, column, count, to);
    if (!r->st && heft_decoding_part_of(r->d, HEFT_ROLE_PRE_SCALE))
        heft_decoder_scale_columns(r, column, count, to);
    if (!r->st && to == run)
        put_run(run, count, as, out);
    else if (!r->st && heft_is_big_endian())
        heft_f32_from_little(to, count); /* turns them round */
    if (!r->st && checks && has_infinity(out, count, as))
        refuse_overflow(r, run, count, as);
}

/* Runs that begin within a row end at a multiple of HEFT_RUN, where groups begin, too. */
static heft_status read_rows(heft_decoder *r, uint64_t from, size_t count, heft_dtype as,
                             uint8_t *out)
{
    const heft_decoding *d = r->d;
    uint32_t size = heft_dtype_size(as);
    uint64_t row = heft_div(from, d->columns), column = from - row * d->columns;
    r->matrix = heft_div(row, d->rows);
    for (size_t n; count && !r->st; count -= n, out += n * size) {
        uint64_t left = d->columns - column;
        n = HEFT_RUN - (size_t)(column % HEFT_RUN);
        n = count < n ? count : n;
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

/* Transpose four rows of four numbers of 16 bits. */
static void put_square(uint8_t *to, size_t to_stride, const uint8_t *from, size_t stride)
{
    enum { HALF = 32, QUARTER = 16 };
    const uint64_t even = 0x0000FFFF0000FFFF, low = UINT32_MAX;
    uint64_t a = heft_le64(from), b = heft_le64(from + stride);
    uint64_t c = heft_le64(from + 2 * stride), d = heft_le64(from + 3 * stride);
    uint64_t of_even[] = { (a & even) | (b & even) << QUARTER, (c & even) | (d & even) << QUARTER };
    uint64_t of_odd[] = { (a >> QUARTER & even) | (b & ~even),
                          (c >> QUARTER & even) | (d & ~even) };
    heft_put_le64(to, (of_even[0] & low) | of_even[1] << HALF);
    heft_put_le64(to + to_stride, (of_odd[0] & low) | of_odd[1] << HALF);
    heft_put_le64(to + 2 * to_stride, of_even[0] >> HALF | (of_even[1] & ~low));
    heft_put_le64(to + 3 * to_stride, of_odd[0] >> HALF | (of_odd[1] & ~low));
}

/* The same as put_band() for numbers of 16 bits, in squares of SIDE; return how many columns are
 * written. */
static size_t put_squares(uint8_t *tile, uint64_t rows, uint64_t i0, const uint8_t *band,
                          size_t stride, size_t height, size_t width)
{
    enum { SIDE = 4, SIZE = 2 };
    size_t c = 0, of_row = (size_t)rows * SIZE;
    for (; height % SIDE == 0 && c + SIDE <= width; c += SIDE)
        for (size_t i = 0; i < height; i += SIDE)
            put_square(tile + (c * rows + i0 + i) * SIZE, of_row, band + i * stride + c * SIZE,
                       stride);
    return c;
}

/* Write a band of decoded rows, `stride` bytes apart, to the columns of a tile: element (i, c) to
 * row c, column i. */
static void put_band(uint8_t *tile, uint64_t rows, uint64_t i0, const uint8_t *band, size_t stride,
                     size_t height, size_t width, uint32_t size)
{
    size_t done = size == 2 ? put_squares(tile, rows, i0, band, stride, height, width) : 0;
    for (size_t c = done; c < width; c++) {
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

heft_status heft_decoder_read_bytes(heft_decoder *r, heft_dtype as, uint64_t from, uint8_t *buf,
                                    size_t len)
{
    uint32_t size = heft_dtype_size(as);
    heft_status st = HEFT_OK;
    while (len && !st) {
        uint64_t element = heft_div(from, size);
        size_t skip = (size_t)(from - element * size), whole = skip ? 0 : len / size;
        size_t n = whole * size;
        uint8_t cut[8];
        st = heft_decoder_read(r, element, whole ? whole : 1, as, whole ? buf : cut);
        if (!whole) {
            n = size - skip < len ? size - skip : len;
            memcpy(buf, cut + skip, n);
        }
        buf += n;
        from += n;
        len -= n;
    }
    return st;
}
