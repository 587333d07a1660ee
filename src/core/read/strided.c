/* strided.c - gathers elements into row-major order, a block of rows at a time.  Within a block,
 * the inner loop runs over the dimension with the smaller stride in the source. */
#include "core/read/strided.h"

#include "core/read/input_window.h"
#include "model/blocks.h"

/* ---- random access to bytes that are produced in order ---- */

enum { MEMORY_LIMIT = 16 << 20 }; /* for the spills of all threads together */

/* Scratch space of the sink is beside the output, that of the host is elsewhere. */
static heft_status blame(const heft_spill *s, heft_status st, heft_error *err)
{
    return heft_error_about(err, st, s->uses_sink ? HEFT_ABOUT_TARGET : HEFT_ABOUT_NOTHING);
}

static heft_status fill_memory(heft_spill *s, heft_spill_read read, void *ctx, heft_error *err)
{
    const heft_allocator *al = s->host->allocator;
    if (s->len <= SIZE_MAX)
        s->memory = heft_alloc(al, (size_t)s->len, 64);
    if (!s->memory)
        return heft_error_plain(err, HEFT_E_NOMEM,
                                "no memory for %U bytes to reorder a compressed part", s->len);
    s->bytes = s->memory;
    return read(ctx, s->memory, (size_t)s->len, err);
}

static heft_status fill_scratch(heft_spill *s, heft_spill_read read, void *ctx, heft_error *err)
{
    const void *mapped = NULL;
    heft_chunks c;
    heft_status st = heft_chunks_open(&c, s->host->allocator, NULL, s->len, err);
    while (!st && heft_chunks_next(&c)) {
        st = read(ctx, c.buf, c.len, err);
        if (!st)
            st = blame(s, s->scratch->ops->write(s->scratch, c.data, c.len, err), err);
    }
    heft_chunks_close(&c);
    if (!st)
        st = blame(s, s->scratch->ops->map(s->scratch, &mapped, err), err);
    s->bytes = mapped;
    return st;
}

heft_status heft_spill_fill(heft_spill *out, const heft_host *h, heft_sink *sink, uint64_t len,
                            heft_spill_read read, void *ctx, heft_error *err)
{
    bool uses_sink = sink && HEFT_HAS(sink->ops, scratch);
    uint32_t threads = h->executor && h->executor->width ? h->executor->width : 1;
    *out = (heft_spill){ .host = h, .len = len, .uses_sink = uses_sink };
    if (len <= MEMORY_LIMIT / threads || !(uses_sink || HEFT_HAS(h, scratch)))
        return fill_memory(out, read, ctx, err);
    HEFT_TRY(blame(out,
                   uses_sink ? sink->ops->scratch(sink, &out->scratch, len, err)
                             : h->scratch(&out->scratch, len, err),
                   err));
    HEFT_TRY(heft_sized_check(out->scratch->ops->size, sizeof(heft_scratch_ops), "heft_scratch_ops",
                              err));
    return fill_scratch(out, read, ctx, err);
}

heft_status heft_spill_state(const heft_spill *s, heft_error *err)
{
    return s->scratch ? blame(s, s->scratch->ops->check(s->scratch, err), err) : HEFT_OK;
}

void heft_spill_close(heft_spill *s)
{
    if (s->scratch)
        s->scratch->ops->close(s->scratch);
    if (s->memory) /* a zeroed spill has no host */
        heft_free(s->host->allocator, s->memory, (size_t)s->len, 64);
    *s = (heft_spill){ .host = s->host };
}

enum { BUFFER = 4096 };

uint32_t heft_byteswap_unit(heft_dtype t)
{
    return heft_block_can_byteswap(t) ? heft_dtype_get(t)->block_bytes : heft_dtype_number_bytes(t);
}

void heft_byteswap(uint8_t *p, size_t len, heft_dtype t)
{
    uint32_t size = heft_byteswap_unit(t);
    bool is_block = heft_block_can_byteswap(t);
    for (size_t at = 0; at + size <= len; at += size) {
        if (is_block)
            heft_block_byteswap(p + at, t);
        for (uint32_t i = 0; i < size / 2 && !is_block; i++) {
            uint8_t swap = p[at + i];
            p[at + i] = p[at + size - 1 - i];
            p[at + size - 1 - i] = swap;
        }
    }
}

uint32_t heft_restored_unit(const heft_ix_part_row *row)
{
    return row->flags & HEFT_P_SIGNS ? heft_dtype_size(row->dtype) : heft_byteswap_unit(row->dtype);
}

void heft_restore(uint8_t *p, size_t len, const heft_ix_part_row *row)
{
    uint32_t size = heft_dtype_number_bytes(row->dtype);
    bool is_negated = row->flags & HEFT_P_NEGATED, is_conjugated = row->flags & HEFT_P_CONJUGATED;
    if (row->flags & HEFT_P_BIG_ENDIAN)
        heft_byteswap(p, len, row->dtype);
    /* Floating-point numbers have the sign in the highest bit; imaginary parts follow real ones. */
    for (size_t at = 0, i = 0; row->flags & HEFT_P_SIGNS && at + size <= len; at += size, i++)
        if (is_negated != (is_conjugated && i % 2))
            p[at + size - 1] ^= 0x80;
}

heft_strided_reader heft_strided_reader_of(const heft_file *f, uint32_t part,
                                           const uint8_t *content)
{
    const heft_ix_view *v = heft_ix_view_of(&f->x, part);
    heft_strided_reader r = { .f = f,
                              .row = *heft_ix_part_row_at(&f->x, part),
                              .content = content };
    if (!v)
        return r;
    r.first = v->first;
    r.strides = heft_ix_strides(&f->x, v);
    r.dims = heft_ix_dims(&f->x, v->tensor);
    r.rank = heft_ix_row(&f->x, v->tensor)->rank;
    if (!content)
        r.content = heft_file_map(f, r.row.offset, r.row.stored);
    return r;
}

/* Read stored bytes of a part without content in memory. */
static heft_status fetch(const heft_strided_reader *r, uint64_t at, void *buf, size_t len,
                         heft_error *err)
{
    return heft_file_read_stored(r->f, r->row.offset + r->first + at, buf, len, err);
}

/* ---- copying lines ---- */

typedef struct strided_line { /* count elements; steps in bytes */
    uint64_t count, src_step, dst_step;
} strided_line;

static inline void copy_line(uint8_t *dst, const uint8_t *src, strided_line l, uint32_t size)
{
    for (uint64_t i = 0; i < l.count; i++, dst += l.dst_step, src += l.src_step)
        memcpy(dst, src, size);
}

/* Copy a line with a constant size in the common cases, so that memcpy is inlined. */
static void copy_sized(uint8_t *dst, const uint8_t *src, strided_line l, uint32_t size)
{
    if (l.src_step == size && l.dst_step == size)
        memcpy(dst, src, (size_t)(l.count * size));
    else if (size == 4)
        copy_line(dst, src, l, 4);
    else if (size == 2)
        copy_line(dst, src, l, 2);
    else if (size == 8)
        copy_line(dst, src, l, 8);
    else
        copy_line(dst, src, l, size);
}

/* Gather a line that must be read from the file.  Bytes between elements are read along if few. */
static heft_status read_line(const heft_strided_reader *r, uint64_t at, uint8_t *dst,
                             strided_line l, uint32_t size, heft_error *err)
{
    uint8_t buf[BUFFER];
    heft_status st = HEFT_OK;
    if (l.src_step == size && l.dst_step == size)
        return fetch(r, at, dst, (size_t)(l.count * size), err);
    uint64_t max_count = l.src_step ? heft_div(BUFFER - size, l.src_step) + 1 : l.count;
    for (strided_line buffered = l; l.count && !st; l.count -= buffered.count) {
        buffered.count = l.count < max_count ? l.count : max_count;
        st = fetch(r, at, buf, (size_t)((buffered.count - 1) * l.src_step + size), err);
        if (!st)
            copy_sized(dst, buf, buffered, size);
        at += buffered.count * l.src_step;
        dst += buffered.count * l.dst_step;
    }
    return st;
}

/* Copy a block; the elements of a row are `size` bytes apart in the target. */
static heft_status copy_block(const heft_strided_reader *r, uint64_t at, uint8_t *dst,
                              strided_line rows, strided_line columns, uint32_t size,
                              heft_error *err)
{
    bool by_column = rows.count > 1 && rows.src_step < columns.src_step;
    strided_line outer = by_column ? columns : rows, inner = by_column ? rows : columns;
    for (uint64_t i = 0; i < outer.count; i++) {
        uint64_t from = at + i * outer.src_step;
        uint8_t *to = dst + i * outer.dst_step;
        if (r->content)
            copy_sized(to, r->content + r->first + from, inner, size);
        else
            HEFT_TRY(read_line(r, from, to, inner, size, err));
    }
    return HEFT_OK;
}

/* ---- strided elements ---- */

/* Return the byte offset of an element.  *column: index in the last dimension; *row: in the
 * second-last. */
static uint64_t element_offset(const heft_strided_reader *r, uint64_t element, uint32_t size,
                               uint64_t *row, uint64_t *column)
{
    uint64_t at = 0;
    *row = *column = 0;
    for (uint32_t d = r->rank; d--;) {
        uint64_t whole = heft_div(element, r->dims[d]), index = element - whole * r->dims[d];
        at += index * r->strides[d];
        *column = d + 1 == r->rank ? index : *column;
        *row = d + 2 == r->rank ? index : *row;
        element = whole;
    }
    return at * size;
}

/* Gather elements [element, element + count): first the rest of a row, then as many whole rows of
 * the last two dimensions as possible, and so on. */
static heft_status gather(const heft_strided_reader *r, uint64_t element, uint64_t count,
                          uint8_t *dst, uint32_t size, heft_error *err)
{
    uint64_t columns = r->dims[r->rank - 1], row, column;
    heft_status st = HEFT_OK;
    for (uint64_t n; count && !st; element += n, count -= n) {
        uint64_t at = element_offset(r, element, size, &row, &column);
        strided_line line = { columns - column, r->strides[r->rank - 1] * size, size };
        strided_line rows = { 1, 0, columns * size };
        line.count = line.count < count ? line.count : count;
        if (!column && count >= columns && r->rank > 1) {
            uint64_t left = r->dims[r->rank - 2] - row, whole = heft_div(count, columns);
            rows.count = whole < left ? whole : left;
            rows.src_step = r->strides[r->rank - 2] * size;
        }
        n = rows.count * line.count;
        st = copy_block(r, at, dst, rows, line, size, err);
        dst += n * size;
    }
    return st;
}

/* Read whole units: elements, or numbers to be byte-swapped. */
static heft_status read_units(const heft_strided_reader *r, uint64_t from, uint8_t *dst, size_t len,
                              uint32_t unit, heft_error *err)
{
    HEFT_TRY(r->strides ? gather(r, heft_div(from, unit), len / unit, dst, unit, err)
                        : fetch(r, from, dst, len, err));
    if (r->row.flags & HEFT_P_RESTORED)
        heft_restore(dst, len, &r->row);
    return HEFT_OK;
}

/* Read whole units directly into the target; units that are cut at either end go through a
 * buffer. */
heft_status heft_strided_reader_read(const heft_strided_reader *r, uint64_t from, void *buf,
                                     size_t len, heft_error *err)
{
    uint32_t unit = r->strides                       ? heft_dtype_size(r->row.dtype)
                    : r->row.flags & HEFT_P_RESTORED ? heft_restored_unit(&r->row)
                                                     : 1;
    uint8_t *out = buf;
    heft_status st = HEFT_OK;
    for (size_t n = 0; len && !st; out += n, from += n, len -= n) {
        uint8_t unit_bytes[HEFT_BLOCK_BYTES];
        uint32_t skip = (uint32_t)(from - heft_div(from, unit) * unit);
        if (!skip && len >= unit) {
            n = len - len % unit;
            st = read_units(r, from, out, n, unit, err);
            continue;
        }
        n = unit - skip < len ? unit - skip : len;
        st = read_units(r, from - skip, unit_bytes, unit, unit, err);
        if (!st)
            memcpy(out, unit_bytes + skip, n);
    }
    return st;
}
