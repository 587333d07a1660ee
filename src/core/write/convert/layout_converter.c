/* layout_converter.c - convert tensors between dense and sparse layouts.
 *
 * Dense data are produced block by block from the sparse entries: in a single pass if the
 * entries are sorted by block, otherwise in a pass per block.  Each sparse part takes one pass
 * over the dense data. */
#include "core/write/convert/layout_converter.h"

#include "model/float.h"

enum {
    BLOCK = 16 << 20, /* bytes of dense data per block */
    BUFFER = 64 << 10
};

static heft_status input_changed(heft_error *err)
{
    return heft_error_plain(err, HEFT_E_IO, "the data changed while being read");
}

static uint64_t remainder_of(uint64_t a, uint64_t b)
{
    return a - heft_div(a, b) * b;
}

/* ---- elements that are not zero ---- */

static heft_status scan_open(heft_nonzero_scan *s, const heft_file *f, uint32_t part,
                             heft_error *err)
{
    const heft_allocator *al = f->host->allocator;
    *s = (heft_nonzero_scan){ .size = heft_dtype_size(heft_ix_part_row_at(&f->x, part)->dtype) };
    HEFT_TRY(heft_stream_start(&s->s, f, part, err));
    s->left = s->s.row.length;
    s->buf = heft_alloc(al, BUFFER, 64);
    if (s->buf)
        return HEFT_OK;
    heft_stream_stop(&s->s);
    return heft_error_no_memory(err, "to change a tensor's layout");
}

static void scan_close(heft_nonzero_scan *s)
{
    if (!s->buf)
        return;
    const heft_allocator *al = s->s.f->host->allocator;
    heft_free(al, s->buf, BUFFER, 64);
    heft_stream_stop(&s->s);
    s->buf = NULL;
}

static bool is_zero(const uint8_t *p, uint32_t size)
{
    uint8_t any = 0;
    for (uint32_t i = 0; i < size; i++)
        any |= p[i];
    return !any;
}

/* Move to the first nonzero element from `at` on; *found: false if none is left. */
static heft_status scan_find(heft_nonzero_scan *s, bool *found, heft_error *err)
{
    heft_status st = HEFT_OK;
    for (*found = false; !st;) {
        while (s->at < s->have && is_zero(s->buf + s->at, s->size)) {
            s->at += s->size;
            s->position++;
        }
        *found = s->at < s->have;
        if (*found || !s->left)
            break;
        s->at = 0;
        s->have = s->left < BUFFER ? (uint32_t)s->left : BUFFER;
        s->left -= s->have;
        st = heft_stream_read(s->buf, &s->s, s->have, err);
    }
    return st;
}

static void scan_skip(heft_nonzero_scan *s)
{
    s->at += s->size;
    s->position++;
    s->found++;
}

heft_status heft_count_nonzero(uint64_t *out, const heft_file *f, uint32_t part, heft_error *err)
{
    heft_nonzero_scan s;
    bool found = true;
    *out = 0;
    HEFT_TRY(scan_open(&s, f, part, err));
    heft_file_enter(f);
    heft_status st = HEFT_OK;
    for (; !st && found; *out += found) {
        st = scan_find(&s, &found, err);
        if (found)
            scan_skip(&s);
    }
    heft_status left = heft_file_leave(f, err);
    scan_close(&s);
    return left ? left : st;
}

/* ---- addition of repeated entries ---- */

static void add_integers(uint8_t *to, const uint8_t *value, uint32_t size)
{
    uint32_t carry = 0;
    for (uint32_t i = 0; i < size; i++) {
        carry += (uint32_t)to[i] + value[i];
        to[i] = (uint8_t)carry;
        carry >>= 8;
    }
}

static void add_floats(uint8_t *to, const uint8_t *value, heft_dtype t)
{
    double a, b;
    if (!heft_dtype_to_f64(&a, t, to, 0, 1) || !heft_dtype_to_f64(&b, t, value, 0, 1))
        return;
    uint8_t sum[sizeof a];
    heft_put_le64(sum, heft_f64_bits(a + b));
    heft_dtype_cast(to, t, sum, HEFT_F64, 1);
}

/* Add up entries of the same element, as other programs do. */
static void add(uint8_t *to, const uint8_t *value, heft_dtype t)
{
    uint32_t size = heft_dtype_size(t), half = size / 2;
    if (is_zero(to, size))
        memcpy(to, value, size);
    else if (t == HEFT_BOOL)
        *to |= *value;
    else if (heft_dtype_is_complex(t)) {
        heft_dtype real = heft_dtype_real(t);
        add_floats(to, value, real);
        add_floats(to + half, value + half, real);
    } else if (heft_dtype_is_float(t))
        add_floats(to, value, t);
    else
        add_integers(to, value, size);
}

/* ---- dense data ---- */

static heft_dtype value_type(const heft_layout_converter *m)
{
    return heft_ix_part_row_at(&m->f->x, m->part)->dtype;
}

/* Set m->ascends if the entries are sorted by block. */
static heft_status check_order(heft_layout_converter *m, heft_error *err)
{
    uint64_t begin = 0;
    heft_status st = HEFT_OK;
    for (m->ascends = true; m->entries.consumed < m->entries.count && !st && m->ascends;) {
        st = heft_entries_next(&m->entries, err);
        m->ascends = m->entries.position >= begin;
        if (m->ascends && m->entries.position - begin >= m->block_elements)
            begin = m->entries.position - remainder_of(m->entries.position, m->block_elements);
    }
    return st;
}

static heft_status restart(heft_layout_converter *m, heft_error *err)
{
    heft_entries_close(&m->entries);
    m->pending = false;
    return heft_entries_open(&m->entries, m->f, m->tensor, err);
}

static heft_status open_dense(heft_layout_converter *m, heft_error *err)
{
    const heft_ix_tensor_row *row = heft_ix_row(&m->f->x, m->tensor);
    const heft_allocator *al = m->f->host->allocator;
    const uint64_t *dims = heft_ix_dims(&m->f->x, m->tensor);
    heft_product(&m->elements, dims, row->rank);
    m->block_elements = BLOCK / heft_dtype_size(value_type(m));
    uint64_t columns = row->rank ? dims[row->rank - 1] : 1;
    if (columns && columns < m->block_elements) /* whole rows: columns may come in any order */
        m->block_elements = heft_div(m->block_elements, columns) * columns;
    HEFT_TRY(heft_entries_open(&m->entries, m->f, m->tensor, err));
    HEFT_TRY(check_order(m, err));
    HEFT_TRY(restart(m, err));
    m->block = heft_alloc(al, BLOCK, 64);
    return m->block ? HEFT_OK : heft_error_no_memory(err, "to change a tensor's layout");
}

static heft_status fill_block(heft_layout_converter *m, heft_error *err)
{
    heft_dtype type = value_type(m);
    uint32_t size = heft_dtype_size(type);
    uint64_t left = m->elements - m->end;
    heft_status st = m->ascends || !m->end ? HEFT_OK : restart(m, err);
    m->begin = m->end;
    m->end += left < m->block_elements ? left : m->block_elements;
    m->at = 0;
    m->have = (m->end - m->begin) * size;
    memset(m->block, 0, (size_t)m->have);
    while (!st && (m->pending || m->entries.consumed < m->entries.count)) {
        if (!m->pending)
            st = heft_entries_next(&m->entries, err);
        if (!st && m->ascends && m->entries.position < m->begin)
            st = input_changed(err);
        m->pending = m->ascends && m->entries.position >= m->end;
        if (st || m->pending)
            break;
        if (m->entries.position >= m->begin && m->entries.position < m->end)
            add(m->block + (m->entries.position - m->begin) * size, m->entries.value, type);
    }
    return st;
}

/* ---- parts of sparse tensors ---- */

static void set_item(heft_layout_converter *m, uint64_t number)
{
    for (unsigned i = 0; i < sizeof number; i++)
        m->item[i] = (uint8_t)(number >> 8 * i);
    m->at = 0;
    m->have = sizeof number;
}

/* Pass a nonzero element.  No further element may follow the last counted element. */
static heft_status skip_entry(heft_layout_converter *m, heft_error *err)
{
    bool found = false;
    scan_skip(&m->scan);
    heft_status st = m->scan.found == m->count ? scan_find(&m->scan, &found, err) : HEFT_OK;
    return !st && found ? input_changed(err) : st;
}

/* Produce a row pointer: the number of nonzero elements before the row. */
static heft_status produce_row_pointer(heft_layout_converter *m, heft_error *err)
{
    const uint64_t *dims = heft_ix_dims(&m->f->x, m->tensor);
    uint64_t first = m->row++ * dims[1];
    heft_status st = HEFT_OK;
    while (!st && !m->done) {
        bool found;
        st = scan_find(&m->scan, &found, err);
        m->done = !found;
        if (st || m->done || m->scan.position >= first)
            break;
        scan_skip(&m->scan);
    }
    set_item(m, m->scan.found);
    return !st && m->row > dims[0] && m->scan.found != m->count ? input_changed(err) : st;
}

/* Produce the value of the next nonzero element, or an index: the column, or for coords the
 * index in dimension after dimension. */
static heft_status produce_entry(heft_layout_converter *m, heft_error *err)
{
    const uint64_t *dims = heft_ix_dims(&m->f->x, m->tensor);
    bool found, is_coords = m->layout_target == HEFT_TARGET_COORDS;
    heft_status st = scan_find(&m->scan, &found, err);
    if (!st && !found && is_coords && m->scan.found != m->count)
        return input_changed(err);
    if (!st && !found && is_coords) { /* begin again for the next dimension */
        m->dim++;
        scan_close(&m->scan);
        st = scan_open(&m->scan, m->f, m->part, err);
        if (!st)
            st = scan_find(&m->scan, &found, err);
    }
    if (st || !found)
        return st;
    if (m->layout_target == HEFT_TARGET_VALUES) {
        memcpy(m->item, m->scan.buf + m->scan.at, m->scan.size);
        m->at = 0;
        m->have = m->scan.size;
        return skip_entry(m, err);
    }
    uint32_t last = heft_ix_row(&m->f->x, m->tensor)->rank - 1u, dim = is_coords ? m->dim : last;
    uint64_t position = m->scan.position;
    for (uint32_t d = last; d > dim; d--)
        position = heft_div(position, dims[d]);
    set_item(m, remainder_of(position, dims[dim]));
    return skip_entry(m, err);
}

/* ---- entry points ---- */

heft_status heft_layout_converter_open(heft_layout_converter *m, const heft_file *f,
                                       uint32_t tensor, uint32_t part,
                                       heft_layout_target layout_target, uint64_t nonzero,
                                       heft_error *err)
{
    *m = (heft_layout_converter){
        .f = f, .tensor = tensor, .part = part, .layout_target = layout_target, .count = nonzero
    };
    heft_status st = layout_target == HEFT_TARGET_DENSE ? open_dense(m, err)
                                                        : scan_open(&m->scan, f, part, err);
    if (st)
        heft_layout_converter_close(m);
    return st;
}

void heft_layout_converter_close(heft_layout_converter *m)
{
    scan_close(&m->scan);
    heft_entries_close(&m->entries);
    if (m->block) {
        const heft_allocator *al = m->f->host->allocator;
        heft_free(al, m->block, BLOCK, 64);
    }
    m->block = NULL;
}

static heft_status produce_more(heft_layout_converter *m, heft_error *err)
{
    switch (m->layout_target) {
    case HEFT_TARGET_DENSE:
        return fill_block(m, err);
    case HEFT_TARGET_ROWS:
        return produce_row_pointer(m, err);
    case HEFT_TARGET_VALUES:
    case HEFT_TARGET_COLUMNS:
    case HEFT_TARGET_COORDS:
        return produce_entry(m, err);
    case HEFT_TARGET_UNCHANGED:
        break;
    }
    return HEFT_OK;
}

heft_status heft_layout_converter_read(heft_layout_converter *m, void *buf, size_t len,
                                       heft_error *err)
{
    uint8_t *out = buf;
    while (len) {
        if (m->at >= m->have)
            HEFT_TRY(produce_more(m, err));
        if (m->at == m->have)
            HEFT_TRY(input_changed(err));
        size_t n = m->have - m->at < len ? (size_t)(m->have - m->at) : len;
        memcpy(out, (m->block ? m->block : m->item) + m->at, n);
        m->at += n;
        out += n;
        len -= n;
    }
    return HEFT_OK;
}
