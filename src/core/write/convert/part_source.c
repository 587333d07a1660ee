/* part_source.c - produce the bytes of a part: raw bytes are read directly, everything else is
 * converted by elements. */
#include "core/write/convert/copy.h"

/* The usual half of the scratch memory; long rows that are encoded need more. */
enum { SCRATCH = 256 << 10 };

static const heft_ix_part_row *source_row(const heft_copy_context *c, uint32_t part)
{
    return heft_ix_part_row_at(&c->in->x, c->origins[part].part);
}

/* ---- digests ---- */

/* Return the digest to compute here, or NULL.  The appender computes digests of compressed
 * parts. */
static const heft_digest *digest_to_compute(const heft_copy_context *c, uint32_t part)
{
    const heft_digest *d = c->p->plan.appended ? NULL : heft_planner_digest_of(c->p, part);
    return d && !heft_digest_joins(d) ? d : NULL;
}

bool heft_part_is_whole(const heft_copy_context *c, uint32_t part)
{
    const heft_ix_part_row *from = source_row(c, part);
    bool any_order = heft_ix_is_plain(from) ||
                     (from->encoding == HEFT_RAW && from->flags & HEFT_P_VIEW);
    return c->origins[part].layout_target || !any_order || digest_to_compute(c, part) ||
           heft_ledger_in_order(c->ledger, c->origins[part].part) != HEFT_NONE;
}

/* ---- source bytes ---- */

/* Read bytes of the source part, decoded and in the tensor's own order. */
static heft_status read_source(heft_part_source *w, uint64_t from, void *dst, size_t len)
{
    const heft_origin *o = &w->c->origins[w->part];
    const heft_ix_part_row *row = source_row(w->c, w->part);
    if (w->converter)
        return heft_layout_converter_read(w->converter, dst, len, &w->err);
    bool plain = heft_ix_is_plain(row);
    HEFT_TRY(w->in_order ? heft_stream_read(dst, &w->stream, len, &w->err)
                         : heft_part_read(dst, w->c->in, o->part, from, len, &w->err));
    /* the stream shows its bytes itself */
    if (plain && !w->in_order)
        HEFT_TRY(heft_ledger_show(w->c->ledger, row->offset + from, dst, len, &w->err));
    return HEFT_OK;
}

static void gather(uint8_t *dst, const uint8_t *row, uint64_t count, uint64_t stride, uint32_t size)
{
    for (uint64_t i = 0; i < count; i++, dst += stride, row += size)
        memcpy(dst, row, size);
}

/* Let the compiler specialise the common element sizes. */
static void gather_sized(uint8_t *dst, const uint8_t *row, uint64_t n, uint64_t stride,
                         uint32_t size)
{
    if (size == 4)
        gather(dst, row, n, stride, 4);
    else if (size == 2)
        gather(dst, row, n, stride, 2);
    else
        gather(dst, row, n, stride, size);
}

/* Read elements [first, first + count) of the transposed matrix, row by row of the source: each
 * source row contributes the columns in this range.  A short range touches few rows. */
static heft_status read_transposed(heft_part_source *w, uint64_t first, uint64_t count,
                                   uint32_t size, uint8_t *dst)
{
    const heft_origin *o = &w->c->origins[w->part];
    const uint8_t *lent = w->transpose_spill.bytes ? w->transpose_spill.bytes
                                                   : heft_part_view(w->c->in, o->part);
    uint8_t *row = w->scratch + w->half;
    uint64_t last = first + count - 1, touched = count < o->rows ? count : o->rows;
    heft_status counted = lent ? heft_file_count_read(w->c->in, o->part, count * size, &w->err)
                               : HEFT_OK;
    if (counted)
        return counted;
    for (uint64_t i = 0; i < touched; i++) {
        /* the element of row r, column k is number k * rows + r of the target */
        uint64_t k0 = heft_div(first + i, o->rows), r = first + i - k0 * o->rows;
        uint64_t n = heft_div(last - r, o->rows) - k0 + 1, at = (r * o->columns + k0) * size;
        if (!lent)
            HEFT_TRY(heft_part_read(row, w->c->in, o->part, at, (size_t)(n * size), &w->err));
        gather_sized(dst + (k0 * o->rows + r - first) * size, lent ? lent + at : row, n,
                     o->rows * size, size);
    }
    return heft_spill_state(&w->transpose_spill, &w->err);
}

/* ---- elements, in units: as many as fill whole blocks of source and target, or a row that is
 * encoded ---- */

typedef struct unit {
    uint32_t elements;
    uint32_t source, target; /* bytes of a unit */
    heft_dtype from, to;
} unit;

static unit unit_of(const heft_origin *o, heft_dtype to)
{
    heft_dtype from = o->dtype;
    const heft_dtype_info *s = heft_dtype_get(from), *t = heft_dtype_get(to);
    /* block sizes are powers of two: the larger is a multiple of the smaller */
    uint32_t n = s->block_elems > t->block_elems ? s->block_elems : t->block_elems;
    uint64_t source, target;
    n = o->row ? (uint32_t)o->row : n;
    heft_dtype_bytes(&source, from, n);
    heft_dtype_bytes(&target, to, n);
    return (unit){ n, (uint32_t)source, (uint32_t)target, from, to };
}

/* Untyped bytes stay unchanged, whatever the new type. */
static bool is_cast(const heft_copy_context *c, uint32_t part)
{
    heft_dtype from = c->origins[part].dtype, to = heft_ix_part_row_at(&c->p->x, part)->dtype;
    return from != to && from && to;
}

uint32_t heft_part_unit_bytes(const heft_copy_context *c, uint32_t part)
{
    if (!c->origins[part].transposed && !is_cast(c, part))
        return 1;
    return unit_of(&c->origins[part], heft_ix_part_row_at(&c->p->x, part)->dtype).target;
}

static heft_status read_elements(heft_part_source *w, const unit *u, uint64_t first, uint64_t count,
                                 uint8_t *dst)
{
    const heft_origin *o = &w->c->origins[w->part];
    uint64_t from, bytes;
    if (o->transposed)
        return read_transposed(w, first, count, heft_dtype_size(u->from), dst);
    if (!heft_dtype_bytes(&from, u->from, first) || !heft_dtype_bytes(&bytes, u->from, count))
        return heft_error_plain(&w->err, HEFT_E_LIMIT, "a tensor exceeds 2^64 bytes");
    return read_source(w, from, dst, (size_t)bytes);
}

/* Produce units of the target in the element type of the file; the last unit may be incomplete. */
static heft_status produce_units(heft_part_source *w, const unit *u, uint64_t first, uint64_t count,
                                 bool counts, uint8_t *dst)
{
    uint64_t at = first * u->elements, left = w->c->origins[w->part].elements - at;
    uint64_t elements = count * u->elements < left ? count * u->elements : left;
    if (u->to == u->from)
        return read_elements(w, u, at, elements, dst);
    HEFT_TRY(read_elements(w, u, at, elements, w->scratch));
    if (w->c->origins[w->part].row)
        return heft_rows_encode(dst, w->c, w->part, w->scratch, first, count, w->values,
                                counts && w->c->quality ? &w->sums : NULL, &w->err);
    uint64_t *lost = counts && w->c->lost ? w->lost : NULL;
    if (!heft_cast_counted(dst, u->to, w->scratch, u->from, (size_t)elements, lost))
        return heft_error_plain(&w->err, HEFT_E_UNSUPPORTED, "%s cannot be cast to %s",
                                heft_dtype_name(u->from), heft_dtype_name(u->to));
    return HEFT_OK;
}

/* Produce a unit cut by a buffer boundary, and keep the unit for the next buffer.  If another
 * worker has the next buffer, both produce the unit, and the worker with the first byte counts
 * the lost values and measures the row. */
static heft_status produce_cut_unit(heft_part_source *w, const unit *u, uint64_t first, bool counts)
{
    if (w->unit_first == first)
        return HEFT_OK;
    w->unit_first = first;
    return produce_units(w, u, first, 1, counts, w->unit);
}

static heft_status produce_bytes(heft_part_source *w, heft_dtype to, uint64_t from, size_t len,
                                 uint8_t *dst)
{
    unit u = unit_of(&w->c->origins[w->part], to);
    uint32_t size = u.target;
    uint64_t max_units = w->half / (u.source > size ? u.source : size);
    heft_status st = HEFT_OK;
    while (len && !st) {
        uint64_t first = heft_div(from, size), skip = from - first * size, count = len / size;
        bool whole = !skip && count;
        count = !whole ? 1 : count < max_units ? count : max_units;
        st = whole ? produce_units(w, &u, first, count, true, dst)
                   : produce_cut_unit(w, &u, first, !skip);
        size_t n = (size_t)(whole ? count * size : size - skip);
        n = n < len ? n : len;
        if (!st && !whole)
            memcpy(dst, w->unit + skip, n);
        dst += n;
        from += n;
        len -= n;
    }
    return st;
}

/* ---- parts ---- */

static heft_status next_decoded(void *ctx, uint8_t *buf, size_t len, heft_error *err)
{
    heft_part_source *w = ctx;
    (void)err; /* w->err is used instead */
    return read_source(w, w->stream.delivered, buf, len);
}

static heft_status open_source(heft_part_source *w, const heft_origin *o)
{
    const heft_allocator *al = w->c->in->host->allocator;
    heft_status st;
    if (o->layout_target) {
        w->converter = heft_alloc(al, sizeof *w->converter, 64);
        if (!w->converter)
            return heft_error_plain(&w->err, HEFT_E_NOMEM, "no memory to change a layout");
        st = heft_layout_converter_open(w->converter, w->c->in, o->tensor, o->part,
                                        o->layout_target, o->nonzero, &w->err);
        if (st)
            heft_free(al, w->converter, sizeof *w->converter, 64);
        w->converter = st ? NULL : w->converter;
        return st;
    }
    st = heft_stream_start(&w->stream, w->c->in, o->part, &w->err);
    if (st)
        return st;
    w->stream.spill_sink = w->c->sink;
    st = heft_stream_show(&w->stream, w->c->ledger, &w->err);
    if (st)
        heft_stream_stop(&w->stream);
    return st;
}

static void close_source(heft_part_source *w)
{
    const heft_allocator *al = w->c->in->host->allocator;
    if (w->converter) {
        heft_layout_converter_close(w->converter);
        heft_free(al, w->converter, sizeof *w->converter, 64);
    } else {
        heft_stream_stop(&w->stream);
    }
    w->converter = NULL;
}

static void close_part(heft_part_source *w)
{
    for (int k = 0; k < HEFT_CAST_LOSSES; k++) {
        if (w->lost[k])
            heft_atomic_add(&w->c->lost[w->part][k],
                            w->lost[k] < SIZE_MAX ? (size_t)w->lost[k] : SIZE_MAX);
        w->lost[k] = 0;
    }
    if (w->part != HEFT_NONE && w->in_order) {
        close_source(w);
        heft_running_digest_close(&w->target_digest);
    }
    heft_spill_close(&w->transpose_spill);
    w->part = HEFT_NONE;
}

static void free_rows(heft_part_source *w, const heft_allocator *al)
{
    heft_free(al, w->values, 2 * w->columns * sizeof *w->values, 64);
    w->values = NULL;
    w->unit = w->block;
    w->columns = 0;
}

/* Have memory for a row of the part, if its rows are encoded: no block type takes more than the
 * four bytes of an f32 for an element, and no type of the source more than eight. */
static heft_status reserve_row(heft_part_source *w, const heft_origin *o)
{
    const heft_allocator *al = w->c->in->host->allocator;
    size_t columns = (size_t)o->row, half = 8 * columns;
    if (columns <= w->columns)
        return HEFT_OK;
    free_rows(w, al);
    w->values = heft_alloc(al, 2 * columns * sizeof *w->values, 64);
    if (!w->values)
        return heft_error_no_memory(&w->err, "for a row");
    w->columns = columns;
    w->unit = (uint8_t *)(w->values + columns);
    if (half <= w->half)
        return HEFT_OK;
    heft_free(al, w->scratch, 2 * w->half, 64);
    w->half = half;
    w->scratch = heft_alloc(al, 2 * half, 64);
    return w->scratch ? HEFT_OK : heft_error_no_memory(&w->err, "for a row");
}

static heft_status open_part(heft_part_source *w, uint32_t part)
{
    const heft_origin *o = &w->c->origins[part];
    const heft_host *host = w->c->in->host;
    close_part(w);
    HEFT_TRY(reserve_row(w, o));
    w->unit_first = HEFT_NOWHERE;
    w->in_order = heft_part_is_whole(w->c, part);
    if (!w->in_order) {
        w->part = part;
        return HEFT_OK;
    }
    HEFT_TRY(open_source(w, o));
    w->part = part;
    HEFT_TRY(heft_running_digest_begin(&w->target_digest, digest_to_compute(w->c, part),
                                       host->allocator, "for a digest", &w->err));
    /* a compressed matrix is decoded before transposing */
    if (o->transposed)
        HEFT_TRY(heft_spill_fill(&w->transpose_spill, host, w->c->sink, w->stream.row.length,
                                 next_decoded, w, &w->err));
    return HEFT_OK;
}

static void finish_part(heft_part_source *w)
{
    if (w->in_order && w->target_digest.digest)
        heft_running_digest_end(&w->target_digest, w->c->p->part_digests[w->part]);
    close_part(w);
}

bool heft_part_source_init(heft_part_source *w, const heft_copy_context *c)
{
    const heft_allocator *al = c->in->host->allocator;
    *w = (heft_part_source){ .c = c, .part = HEFT_NONE, .half = SCRATCH };
    w->unit = w->block;
    w->scratch = heft_alloc(al, 2 * w->half, 64);
    return w->scratch;
}

void heft_part_source_free(heft_part_source *w)
{
    const heft_allocator *al = w->c->in->host->allocator;
    close_part(w);
    free_rows(w, al);
    heft_free(al, w->scratch, 2 * w->half, 64);
}

heft_status heft_part_source_read(heft_part_source *w, uint32_t part, uint64_t from, size_t len,
                                  uint8_t *dst)
{
    const heft_ix_part_row *row = heft_ix_part_row_at(&w->c->p->x, part);
    const heft_origin *o = &w->c->origins[part];
    if (w->part != part)
        HEFT_TRY(open_part(w, part));
    if (o->transposed || is_cast(w->c, part))
        HEFT_TRY(produce_bytes(w, row->dtype, from, len, dst));
    else
        HEFT_TRY(read_source(w, from, dst, len));
    if (w->in_order)
        heft_running_digest_update(&w->target_digest, dst, len);
    if (!HEFT_IS_LEAN && w->c->quality)
        heft_quality_collect(w->c->quality, o->quality, &w->sums);
    if (from + len == row->length)
        finish_part(w);
    return HEFT_OK;
}
