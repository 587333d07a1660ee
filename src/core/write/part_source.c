/* part_source.c - raw bytes are read to where they go; everything else passes through elements. */
#include "core/write/part_source.h"

enum { SCRATCH = 256 << 10 }; /* twice: elements before a cast, and a row of a matrix */

static const heft_ix_part_row *source_row(const heft_copying *c, uint32_t part)
{
    return heft_ix_part_row_at(&c->in->x, c->origins[part].part);
}

/* ---- digests that go along ---- */

/* Of what is made here; compressed parts have theirs from whoever appends them. */
static const heft_digest *target_digest(const heft_copying *c, uint32_t part)
{
    const heft_digest *d = c->p->plan.appended ? NULL : heft_planner_digest_of(c->p, part);
    return d && !heft_digest_joins(d) ? d : NULL;
}

bool heft_part_is_whole(const heft_copying *c, uint32_t part)
{
    const heft_ix_part_row *from = source_row(c, part);
    bool any_order = heft_ix_is_plain(from) ||
                     (from->encoding == HEFT_RAW && from->flags & HEFT_P_VIEW);
    return c->origins[part].making || !any_order || target_digest(c, part) ||
           heft_source_verifier_ordered_checksum(c->watch, c->origins[part].part) != HEFT_NONE;
}

static bool claims_decoded(const heft_part_source *w)
{
    return w->claim != HEFT_NONE && heft_ix_checksum_at(&w->c->in->x, w->claim).decoded;
}

/* What a compressed part decodes to. */
static void decoded_seen(void *ctx, const void *data, size_t len)
{
    heft_part_source *w = ctx;
    if (claims_decoded(w))
        heft_running_digest_update(&w->source, data, len);
}

/* Stored bytes of a part that is not plain. */
static void stored_seen(void *ctx, const void *data, size_t len)
{
    heft_part_source *w = ctx;
    uint64_t at = w->stream.row.offset + w->stream.fetched;
    if (!claims_decoded(w))
        heft_running_digest_update(&w->source, data, len);
    heft_status st = heft_source_verifier_add(w->c->watch, at, data, len, &w->err);
    if (st)
        heft_progress_fail(w->c->meter, st, &w->err);
}

/* ---- source bytes ---- */

/* Bytes of the source part as its tensor has them. */
static heft_status read_source(heft_part_source *w, uint64_t from, void *dst, size_t len)
{
    const heft_origin *o = &w->c->origins[w->part];
    const heft_ix_part_row *row = source_row(w->c, w->part);
    if (w->maker)
        return heft_layout_converter_read(w->maker, dst, len, &w->err);
    bool plain = heft_ix_is_plain(row);
    heft_status st = w->in_order ? heft_stream_read(dst, &w->stream, len, &w->err)
                                 : heft_part_read(dst, w->c->in, o->part, from, len, &w->err);
    if (!st && w->in_order && plain)
        heft_running_digest_update(&w->source, dst, len);
    if (!st && plain)
        st = heft_source_verifier_add(w->c->watch, row->offset + from, dst, len, &w->err);
    return st;
}

static void gather(uint8_t *dst, const uint8_t *row, uint64_t count, uint64_t stride, uint32_t size)
{
    for (uint64_t i = 0; i < count; i++, dst += stride, row += size)
        memcpy(dst, row, size);
}

/* The same with the size known to the compiler, where it matters. */
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

/* Elements [first, first + count) of the transposed matrix, row by row of the source: of each
 * source row, the columns that the wanted elements touch.  Few elements touch few rows. */
static heft_status read_turned(heft_part_source *w, uint64_t first, uint64_t count, uint32_t size,
                               uint8_t *dst)
{
    const heft_origin *o = &w->c->origins[w->part];
    const uint8_t *lent = w->turned.bytes ? w->turned.bytes : heft_part_view(w->c->in, o->part);
    uint8_t *line = w->scratch + SCRATCH;
    uint64_t last = first + count - 1, touched = count < o->rows ? count : o->rows;
    for (uint64_t i = 0; i < touched; i++) {
        /* the element of row r, column k stands at k * rows + r of the target */
        uint64_t k0 = heft_div(first + i, o->rows), r = first + i - k0 * o->rows;
        uint64_t n = heft_div(last - r, o->rows) - k0 + 1, at = (r * o->columns + k0) * size;
        heft_status st = lent ? HEFT_OK
                              : heft_part_read(line, w->c->in, o->part, at, (size_t)(n * size),
                                               &w->err);
        if (st)
            return st;
        gather_sized(dst + (k0 * o->rows + r - first) * size, lent ? lent + at : line, n,
                     o->rows * size, size);
    }
    return heft_spill_state(&w->turned, &w->err);
}

/* ---- elements, in units: as many as fill whole blocks of source and target ---- */

typedef struct unit {
    uint32_t elements;
    uint32_t source, target; /* bytes of it */
    heft_dtype from, to;
} unit;

static unit unit_of(const heft_part_source *w, heft_dtype to)
{
    heft_dtype from = w->c->origins[w->part].dtype;
    const heft_dtype_info *s = heft_dtype_get(from), *t = heft_dtype_get(to);
    /* powers of two: the larger is a multiple of the smaller */
    uint32_t n = s->block_elems > t->block_elems ? s->block_elems : t->block_elems;
    uint64_t source, target;
    heft_dtype_bytes(&source, from, n);
    heft_dtype_bytes(&target, to, n);
    return (unit){ n, (uint32_t)source, (uint32_t)target, from, to };
}

static heft_status read_elements(heft_part_source *w, const unit *u, uint64_t first, uint64_t count,
                                 uint8_t *dst)
{
    const heft_origin *o = &w->c->origins[w->part];
    uint64_t from, bytes;
    if (o->transposed)
        return read_turned(w, first, count, heft_dtype_size(u->from), dst);
    if (!heft_dtype_bytes(&from, u->from, first) || !heft_dtype_bytes(&bytes, u->from, count))
        return heft_error_plain(&w->err, HEFT_E_LIMIT, "a tensor passes 2^64 bytes");
    return read_source(w, from, dst, (size_t)bytes);
}

/* Units of the target, in its own element type; the last may have fewer elements than the others. */
static heft_status make_units(heft_part_source *w, const unit *u, uint64_t first, uint64_t count,
                              bool counts, uint8_t *dst)
{
    uint64_t at = first * u->elements, left = w->c->origins[w->part].elements - at;
    uint64_t elements = count * u->elements < left ? count * u->elements : left;
    if (u->to == u->from)
        return read_elements(w, u, at, elements, dst);
    heft_status st = read_elements(w, u, at, elements, w->scratch);
    uint64_t *lost = counts && w->c->lost ? w->lost : NULL;
    if (!st && !heft_cast_counted(dst, u->to, w->scratch, u->from, (size_t)elements, lost))
        st = heft_error_plain(&w->err, HEFT_E_UNSUPPORTED, "%s cannot be cast to %s",
                              heft_dtype_name(u->from), heft_dtype_name(u->to));
    return st;
}

/* A unit that the end of a buffer cuts is made once and kept for the next buffer.  When another worker has that, it is
 * made twice, and counted by the one who has the unit's first byte. */
static heft_status make_one(heft_part_source *w, const unit *u, uint64_t first, bool counts)
{
    if (w->one_first == first)
        return HEFT_OK;
    w->one_first = first;
    return make_units(w, u, first, 1, counts, w->one);
}

static heft_status make_bytes(heft_part_source *w, heft_dtype to, uint64_t from, size_t len,
                              uint8_t *dst)
{
    unit u = unit_of(w, to);
    uint32_t size = u.target;
    uint64_t most = SCRATCH / (u.source > size ? u.source : size);
    heft_status st = HEFT_OK;
    while (len && !st) {
        uint64_t first = heft_div(from, size), skip = from - first * size, count = len / size;
        bool whole = !skip && count;
        count = !whole ? 1 : count < most ? count : most;
        st = whole ? make_units(w, &u, first, count, true, dst) : make_one(w, &u, first, !skip);
        size_t n = (size_t)(whole ? count * size : size - skip);
        n = n < len ? n : len;
        if (!st && !whole)
            memcpy(dst, w->one + skip, n);
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
    (void)err; /* is the producer's own */
    return read_source(w, w->stream.delivered, buf, len);
}

static heft_status open_source(heft_part_source *w, const heft_origin *o)
{
    const heft_allocator *al = w->c->in->host->allocator;
    heft_status st;
    if (o->making) {
        w->maker = heft_alloc(al, sizeof *w->maker, 64);
        if (!w->maker)
            return heft_error_plain(&w->err, HEFT_E_NOMEM, "no memory to change a layout");
        st = heft_layout_converter_open(w->maker, w->c->in, o->tensor, o->part, o->making,
                                        o->filled, &w->err);
        if (st)
            heft_free(al, w->maker, sizeof *w->maker, 64);
        w->maker = st ? NULL : w->maker;
        return st;
    }
    st = heft_stream_start(&w->stream, w->c->in, o->part, &w->err);
    if (st)
        return st;
    w->stream.on_stored = stored_seen;
    w->stream.on_decoded = decoded_seen;
    w->stream.callback_ctx = w;
    w->stream.spill_sink = w->c->sink;
    w->claim = heft_source_verifier_ordered_checksum(w->c->watch, o->part);
    return HEFT_OK;
}

static void close_source(heft_part_source *w)
{
    const heft_allocator *al = w->c->in->host->allocator;
    if (w->maker) {
        heft_layout_converter_close(w->maker);
        heft_free(al, w->maker, sizeof *w->maker, 64);
    } else {
        heft_stream_stop(&w->stream);
    }
    w->maker = NULL;
}

static void leave_part(heft_part_source *w)
{
    for (int k = 0; k < HEFT_CAST_LOSSES; k++) {
        if (w->lost[k])
            heft_shared_add(&w->c->lost[w->part][k],
                            w->lost[k] < SIZE_MAX ? (size_t)w->lost[k] : SIZE_MAX);
        w->lost[k] = 0;
    }
    if (w->part != HEFT_NONE && w->in_order) {
        close_source(w);
        heft_running_digest_close(&w->source);
        heft_running_digest_close(&w->target);
    }
    heft_spill_close(&w->turned);
    w->part = HEFT_NONE;
}

static heft_status enter_part(heft_part_source *w, uint32_t part)
{
    const heft_origin *o = &w->c->origins[part];
    const heft_host *host = w->c->in->host;
    leave_part(w);
    w->one_first = HEFT_NOWHERE;
    w->in_order = heft_part_is_whole(w->c, part);
    w->claim = HEFT_NONE;
    if (!w->in_order) {
        w->part = part;
        return HEFT_OK;
    }
    heft_status st = open_source(w, o);
    if (st)
        return st;
    w->part = part;
    if (w->claim != HEFT_NONE)
        st = heft_running_digest_begin(
            &w->source,
            heft_host_digest(host, heft_ix_checksum_at(&w->c->in->x, w->claim).algorithm),
            host->allocator, "for a digest", &w->err);
    if (!st)
        st = heft_running_digest_begin(&w->target, target_digest(w->c, part), host->allocator,
                                       "for a digest", &w->err);
    if (!st && o->transposed) /* a compressed matrix has to be there before it can be turned */
        st = heft_spill_fill(&w->turned, host, w->c->sink, w->stream.row.length, next_decoded, w,
                             &w->err);
    return st;
}

static void end_part(heft_part_source *w)
{
    uint8_t digest[64];
    if (w->in_order && w->source.digest) {
        uint32_t bytes = w->source.digest->bytes;
        heft_running_digest_end(&w->source, digest);
        heft_source_verifier_compare(w->c->watch, w->claim, digest, bytes);
    }
    if (w->in_order && w->target.digest)
        heft_running_digest_end(&w->target, w->c->p->part_digests[w->part]);
    leave_part(w);
}

bool heft_part_source_init(heft_part_source *w, const heft_copying *c)
{
    const heft_allocator *al = c->in->host->allocator;
    *w = (heft_part_source){ .c = c, .part = HEFT_NONE };
    w->scratch = heft_alloc(al, 2 * SCRATCH, 64);
    return w->scratch;
}

void heft_part_source_free(heft_part_source *w)
{
    const heft_allocator *al = w->c->in->host->allocator;
    leave_part(w);
    heft_free(al, w->scratch, 2 * SCRATCH, 64);
}

heft_status heft_part_source_read(heft_part_source *w, uint32_t part, uint64_t from, size_t len,
                                  uint8_t *dst)
{
    const heft_ix_part_row *row = heft_ix_part_row_at(&w->c->p->x, part);
    const heft_origin *o = &w->c->origins[part];
    heft_status st = w->part == part ? HEFT_OK : enter_part(w, part);
    if (st)
        return st;
    /* bytes of no type stay as they are, whatever they are said to be now */
    bool is_cast = row->dtype != o->dtype && row->dtype && o->dtype;
    if (o->transposed || is_cast)
        st = make_bytes(w, row->dtype, from, len, dst);
    else
        st = read_source(w, from, dst, len);
    if (!st && w->in_order)
        heft_running_digest_update(&w->target, dst, len);
    if (!st && from + len == row->length)
        end_part(w);
    return st;
}
