/* encoder.c - encodes the numbers of a tensor: rows in runs, scaled by the largest magnitude of the
 * cell that they lie in. */
#include "base/checked_math.h"
#include "base/error.h"
#include "model/float.h"
#include "scheme/encoding.h"

enum { PIECE = 256, ALIGN = 64, INFINITE = 0x7F800000 };

void heft_encoder_begin(heft_encoder *r, const heft_encoded *e, heft_error *err)
{
    r->err = err;
    r->st = HEFT_OK;
    if (e->decoding)
        heft_decoder_begin(&r->input, e->decoding, err);
    if (r->e == e)
        return;
    r->e = e;
    r->has_band = r->has_run = false;
    r->source.len = 0;
    r->source.lent = e->decoding        ? NULL
                     : e->is_transposed ? heft_part_view(e->f, e->part)
                                        : heft_part_in_place(e->f, e->part);
}

void heft_encoder_free(heft_encoder *r, const heft_allocator *al)
{
    heft_decoder_free(&r->input, al);
    heft_free(al, r->source.buf, r->source.capacity, ALIGN);
    heft_free(al, r->band, r->band_capacity * sizeof *r->band, ALIGN);
    *r = (heft_encoder){ .e = NULL };
}

/* ---- numbers ---- */

const uint8_t *heft_encoder_source(heft_encoder *r, uint64_t at, size_t len)
{
    const heft_encoded *e = r->e;
    uint64_t total = heft_ix_part_row_at(&e->f->x, e->part)->length, n = total - at;
    if (!heft_range_in((heft_range){ at, len }, total)) {
        r->st = heft_error_plain(r->err, HEFT_E_FORMAT, "tensor %q has too few bytes", e->name);
        return NULL;
    }
    const uint8_t *found = heft_part_window_find(&r->source, at, len);
    if (found)
        return found;
    n = n < HEFT_WINDOW ? n : HEFT_WINDOW;
    n = n > len ? n : len;
    heft_range read = e->is_compressed ? (heft_range){ 0, total } : (heft_range){ at, n };
    r->st = heft_part_window_fill(&r->source, e->f, e->part, read, r->err);
    return r->st ? NULL : heft_part_window_find(&r->source, at, len);
}

/* Read a row of a transposed matrix, whose elements are a column of the stored one. Without a view,
 * the window has the whole matrix. */
static void read_transposed(heft_encoder *r, uint64_t row, uint64_t column, size_t count)
{
    const heft_encoded *e = r->e;
    uint64_t size = heft_dtype_size(e->from), matrix = heft_div(row, e->rows);
    uint64_t bytes = e->rows * e->columns * size, in_matrix = row - matrix * e->rows;
    uint8_t piece[PIECE * sizeof(double)];
    const uint8_t *p = bytes <= SIZE_MAX ? heft_encoder_source(r, matrix * bytes, (size_t)bytes)
                                         : NULL;
    if (!p) {
        r->st = r->st ? r->st : heft_error_no_memory(r->err, "to transpose a tensor");
        return;
    }
    p += (column * e->rows + in_matrix) * size;
    for (size_t done = 0; done < count; done += PIECE) {
        size_t n = count - done < PIECE ? count - done : PIECE;
        for (size_t i = 0; i < n; i++)
            memcpy(piece + i * size, p + (done + i) * e->rows * size, (size_t)size);
        (void)heft_floats_from(r->x + done, e->from, piece, n);
    }
}

static void read_plain(heft_encoder *r, uint64_t first, size_t count)
{
    uint64_t at, len;
    /* The bytes of the tensor are in the file: no overflow. */
    (void)heft_dtype_bytes(&at, r->e->from, first);
    (void)heft_dtype_bytes(&len, r->e->from, count);
    const uint8_t *p = heft_encoder_source(r, at, (size_t)len);
    if (p)
        (void)heft_floats_from(r->x, r->e->from, p, count);
}

static void read_decoded(heft_encoder *r, uint64_t first, size_t count)
{
    r->st = heft_decoder_read(&r->input, first, count, HEFT_F32, (uint8_t *)r->x);
    if (heft_is_big_endian())
        heft_f32_from_little(r->x, count);
}

bool heft_encoder_run(heft_encoder *r, uint64_t row, uint64_t column, size_t count)
{
    const heft_encoded *e = r->e;
    uint64_t first = row * e->columns + column;
    if (r->has_run && r->run_row == row && r->run_column == column)
        return true;
    r->has_run = false;
    if (e->decoding)
        read_decoded(r, first, count);
    else if (e->is_transposed)
        read_transposed(r, row, column, count);
    else
        read_plain(r, first, count);
    r->has_run = !r->st;
    r->run_row = row;
    r->run_column = column;
    return r->has_run;
}

/* ---- magnitudes ---- */

static uint32_t finite_most(const float *x, size_t n)
{
    uint32_t most = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = heft_f32_bits(x[i]) & INT32_MAX;
        most = bits > most && bits < INFINITE ? bits : most;
    }
    return most;
}

static bool refuse_number(heft_encoder *r, uint64_t row, uint64_t column, uint32_t bits)
{
    const heft_encoded *e = r->e;
    heft_status st = heft_error_plain(
        r->err, HEFT_E_LOSSY, "tensor %q has %s (element %U): it cannot be quantised", e->name,
        bits > INFINITE ? "a NaN" : "an infinity", row * e->columns + column);
    r->st = heft_error_rule(r->err, st, "heft/not-finite");
    return false;
}

/* NaN and infinities do not count. The bits of magnitudes are in the order of the numbers. */
bool heft_encoder_magnitude(heft_encoder *r, size_t from, size_t n, float *largest)
{
    uint32_t most = 0;
    *largest = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = heft_f32_bits(r->x[from + i]) & INT32_MAX;
        most = bits > most ? bits : most;
    }
    for (size_t i = 0; most >= INFINITE && i < n; i++) {
        uint32_t bits = heft_f32_bits(r->x[from + i]) & INT32_MAX;
        if (bits >= INFINITE && !r->e->allow_nan)
            return refuse_number(r, r->run_row, r->run_column + from + i, bits);
    }
    if (most >= INFINITE)
        most = finite_most(r->x + from, n);
    *largest = heft_f32_of(most);
    return true;
}

heft_status heft_encoder_largest(heft_encoder *r, uint64_t row, uint64_t count, float *largest)
{
    *largest = 0;
    for (uint64_t end = row + count; row < end; row++)
        for (uint64_t c = 0, n; c < r->e->columns; c += n) {
            n = r->e->columns - c < HEFT_RUN ? r->e->columns - c : HEFT_RUN;
            if (!heft_encoder_run(r, row, c, (size_t)n))
                return r->st;
            float most;
            if (!heft_encoder_magnitude(r, 0, (size_t)n, &most))
                return r->st;
            *largest = most > *largest ? most : *largest;
        }
    return r->st;
}

/* ---- cells ---- */

/* Cells that lie within a run need no other numbers. */
static bool is_local(const heft_encoded *e)
{
    return e->grid.height == 1 && e->grid.width <= HEFT_GROUP_MOST &&
           !(e->grid.width & (e->grid.width - 1));
}

/* Add a run to the band. */
static bool add_to_band(heft_encoder *r, uint64_t column, size_t count)
{
    uint64_t width = r->e->grid.width, cell = heft_div(column, width);
    for (size_t i = 0, n; i < count; i += n, cell++) {
        uint64_t left = (cell + 1) * width - column - i;
        n = left < count - i ? (size_t)left : count - i;
        float most;
        if (!heft_encoder_magnitude(r, i, n, &most))
            return false;
        r->band[cell] = most > r->band[cell] ? most : r->band[cell];
    }
    return true;
}

static bool reserve_band(heft_encoder *r)
{
    const heft_allocator *al = r->e->f->host->allocator;
    uint64_t cells = r->e->grid.across;
    if (cells > r->band_capacity) {
        heft_free(al, r->band, r->band_capacity * sizeof *r->band, ALIGN);
        r->band = cells <= SIZE_MAX / sizeof *r->band
                      ? heft_alloc(al, (size_t)cells * sizeof *r->band, ALIGN)
                      : NULL;
        r->band_capacity = r->band ? (size_t)cells : 0;
    }
    if (!r->band)
        r->st = heft_error_no_memory(r->err, "to quantise a tensor");
    return r->band;
}

/* Find the largest magnitudes of the cells in band `at`; r->x is overwritten. */
static bool fill_band(heft_encoder *r, uint64_t at)
{
    const heft_encoded *e = r->e;
    if (r->has_band && r->band_at == at)
        return true;
    r->has_band = false;
    if (!reserve_band(r))
        return false;
    memset(r->band, 0, (size_t)e->grid.across * sizeof *r->band);
    uint64_t matrix = heft_div(at, e->grid.down), line = at - matrix * e->grid.down;
    uint64_t first = line * e->grid.height, end = first + e->grid.height;
    end = end < e->rows ? end : e->rows;
    for (uint64_t row = matrix * e->rows + first; row < matrix * e->rows + end; row++)
        for (uint64_t c = 0, n; c < e->columns; c += n) {
            n = e->columns - c < HEFT_RUN ? e->columns - c : HEFT_RUN;
            if (!heft_encoder_run(r, row, c, (size_t)n) || !add_to_band(r, c, (size_t)n))
                return false;
        }
    r->band_at = at;
    r->has_band = !r->st;
    return r->has_band;
}

static uint64_t band_of(const heft_encoded *e, uint64_t row)
{
    uint64_t matrix = heft_div(row, e->rows);
    return matrix * e->grid.down + heft_div(row - matrix * e->rows, e->grid.height);
}

/* ---- the weight ---- */

/* A loop of its own, so that compilers use vectors. NaN has no place in integers; in a type that
 * has one it stays. */
static void divide(float *x, size_t n, float by)
{
    for (size_t i = 0; i < n; i++)
        x[i] /= by;
}

/* Compare a run with what its stored numbers and the scales of its elements decode to. */
static void measure_run(heft_encoder *r, const uint8_t *out, size_t count)
{
    float *decoded = r->measured.decoded;
    r->e->encoder->load(r->e, out, count, decoded);
    for (size_t i = 0; i < count; i++)
        decoded[i] *= r->measured.by[i];
    heft_pairs_add(r->sums, r->measured.from, decoded, count);
}

/* Encode the run that begins at a column, a multiple of HEFT_RUN. */
static bool encode_run(heft_encoder *r, uint64_t row, uint64_t column, size_t count, uint8_t *out)
{
    const heft_encoded *e = r->e;
    uint64_t width = e->grid.width, cell = heft_div(column, width);
    bool local = is_local(e);
    if ((!local && !fill_band(r, band_of(e, row))) || !heft_encoder_run(r, row, column, count))
        return false;
    if (r->measures)
        memcpy(r->measured.from, r->x, count * sizeof *r->x);
    for (size_t i = 0, n; i < count && !r->st; i += n, cell++) {
        uint64_t left = (cell + 1) * width - column - i;
        n = left < count - i ? (size_t)left : count - i;
        float most = local ? 0 : r->band[cell];
        if (local && !heft_encoder_magnitude(r, i, n, &most))
            return false;
        float by = e->encoder->scale(e, most).by;
        divide(r->x + i, n, by);
        for (size_t k = i; r->measures && k < i + n; k++)
            r->measured.by[k] = by;
    }
    r->has_run = false;
    if (!r->st)
        e->encoder->store(e, r->x, count, out);
    if (!r->st && r->measures)
        measure_run(r, out, count);
    return !r->st;
}

/* Rows begin at whole bytes: an encoder leaves other shapes alone. */
heft_status heft_encoder_read_runs(heft_encoder *r, uint32_t run_bytes, heft_run_function *write,
                                   uint64_t from, uint8_t *buf, size_t len)
{
    const heft_encoded *e = r->e;
    uint64_t row_bytes = e->columns * run_bytes / HEFT_RUN;
    bool measures = r->measures;
    uint8_t cut[HEFT_RUN * sizeof(float)] = { 0 };
    while (len && !r->st) {
        uint64_t row = heft_div(from, row_bytes), in_row = from - row * row_bytes;
        uint64_t run = heft_div(in_row, run_bytes), column = run * HEFT_RUN;
        size_t skip = (size_t)(in_row - run * run_bytes);
        size_t count = e->columns - column < HEFT_RUN ? (size_t)(e->columns - column) : HEFT_RUN;
        size_t bytes = count * run_bytes / HEFT_RUN, n = bytes - skip < len ? bytes - skip : len;
        bool is_whole = n == bytes;
        r->measures = measures && !skip;
        if (write(r, row, column, count, is_whole ? buf : cut) && !is_whole)
            memcpy(buf, cut + skip, n);
        buf += n;
        from += n;
        len -= n;
    }
    return r->st;
}

/* ---- scales ---- */

/* Set *largest for the scale of a cell. */
static bool cell_largest(heft_encoder *r, uint64_t band, uint64_t cell, float *largest)
{
    const heft_encoded *e = r->e;
    if (!is_local(e)) {
        bool ok = fill_band(r, band);
        *largest = ok ? r->band[cell] : 0;
        return ok;
    }
    uint64_t column = cell * e->grid.width, start = column / HEFT_RUN * HEFT_RUN;
    uint64_t left = e->columns - start, at = column - start;
    size_t count = left < HEFT_RUN ? (size_t)left : HEFT_RUN;
    size_t width = count - at < e->grid.width ? (size_t)(count - at) : (size_t)e->grid.width;
    if (!heft_encoder_run(r, band, start, count))
        return false;
    return heft_encoder_magnitude(r, (size_t)at, width, largest);
}

static heft_status read_scales(heft_encoder *r, const heft_encoded_part *p, uint64_t from,
                               uint8_t *buf, size_t len)
{
    const heft_encoded *e = r->e;
    uint32_t size = heft_dtype_size(p->dtype);
    uint64_t i = heft_div(from, size), band = heft_div(i, e->grid.across);
    uint64_t cell = i - band * e->grid.across;
    size_t skip = (size_t)(from - i * size);
    for (float most; len; skip = 0) {
        if (!cell_largest(r, band, cell, &most))
            break;
        heft_encoded_scale s = e->encoder->scale(e, most);
        size_t n = size - skip < len ? size - skip : len;
        memcpy(buf, s.stored + skip, n);
        buf += n;
        len -= n;
        if (++cell == e->grid.across) {
            cell = 0;
            band++;
        }
    }
    return r->st;
}

heft_status heft_encoder_read(heft_encoder *r, uint32_t k, uint64_t from, uint8_t *buf, size_t len)
{
    const heft_encoded_part *p = &r->e->parts[k];
    if (!len)
        return HEFT_OK;
    r->measures = r->sums && p->role == HEFT_ROLE_WEIGHT;
    if (r->e->encoder->read)
        return r->e->encoder->read(r, k, from, buf, len);
    if (p->role == HEFT_ROLE_WEIGHT)
        return heft_encoder_read_runs(r, HEFT_RUN / 8 * r->e->bits, encode_run, from, buf, len);
    if (p->role == HEFT_ROLE_SCALE)
        return read_scales(r, p, from, buf, len);
    memcpy(buf, p->fixed + from, len);
    return HEFT_OK;
}
