/* array_slice.c - reads the elements that a slice selects from a dense tensor, in runs of
 * consecutive elements.  Small gaps between runs are read along. */
#include "base/checked_math.h"
#include "core/read/sparse_read.h"
#include "model/dtype.h"

enum {
    BATCH = 1024,       /* elements converted or gathered at a time; whole blocks of every type */
    MAX_DISTANCE = 256, /* elements from one run to the next that are still read together */
    BATCH_BYTES = BATCH * 16,
    ALIGN = 64
};

typedef struct slice_buffers { /* memory for conversions and gaps */
    uint8_t stored[BATCH_BYTES], converted[BATCH_BYTES], gathered[BATCH_BYTES];
} slice_buffers;

typedef struct slice_reader {
    const heft_dense_tensor *d;
    const heft_slice *axes; /* one for each dimension */
    heft_dtype as;
    uint32_t size;          /* bytes of an element of `as` */
    const uint8_t *content; /* all decoded bytes of a compressed part; otherwise NULL */
    slice_buffers *buffers;
    heft_error *err;
} slice_reader;

/* ---- axes ---- */

static uint64_t distance_of(int64_t step)
{
    return step < 0 ? 0 - (uint64_t)step : (uint64_t)step;
}

static bool is_inside(const heft_slice *a, uint64_t dim)
{
    if (!a->count)
        return true;
    if (a->start >= dim)
        return false;
    if (a->count == 1)
        return true;
    uint64_t room = a->step < 0 ? a->start : dim - 1 - a->start;
    return a->step && a->count - 1 <= heft_div(room, distance_of(a->step));
}

static bool is_whole(const heft_slice *a, uint64_t dim)
{
    return !a->start && a->count == dim && (a->step == 1 || dim == 1);
}

/* Compute the number of selected elements, at most those of the tensor. */
static heft_status count_elements(uint64_t *out, const heft_dense_tensor *d, const heft_slice *axes,
                                  heft_error *err)
{
    bool is_empty = false;
    *out = 1;
    for (uint32_t i = 0; i < d->t.rank; i++) {
        if (!is_inside(&axes[i], d->t.dims[i]))
            return heft_error_plain(err, HEFT_E_ARGUMENT,
                                    "tensor %q: the slice leaves dimension %U, whose size is %U",
                                    d->t.name, (uint64_t)i, d->t.dims[i]);
        is_empty = is_empty || !axes[i].count;
    }
    for (uint32_t i = 0; i < d->t.rank && !is_empty; i++)
        *out *= axes[i].count;
    *out = is_empty ? 0 : *out;
    return HEFT_OK;
}

/* ---- runs ---- */

static heft_status read_stored(const slice_reader *r, void *buf, uint64_t at, size_t len)
{
    if (!r->content)
        return heft_part_read(buf, r->d->f, r->d->part, at, len, r->err);
    memcpy(buf, r->content + at, len);
    return HEFT_OK;
}

/* Read consecutive elements of the tensor, of which the first has the number `first`. */
static heft_status read_run(const slice_reader *r, uint8_t *dst, uint64_t first, uint64_t n)
{
    const heft_dtype_info *stored = heft_dtype_get(r->d->t.dtype);
    if (r->as == r->d->t.dtype)
        return read_stored(r, dst, first * r->size, (size_t)(n * r->size));
    heft_status st = HEFT_OK;
    for (uint64_t taken = 0; n && !st; first += taken, n -= taken, dst += taken * r->size) {
        uint64_t block = heft_div(first, stored->block_elems);
        uint32_t skip = (uint32_t)(first - block * stored->block_elems);
        taken = n < BATCH - skip ? n : BATCH - skip;
        uint64_t blocks = heft_div_up(skip + taken, stored->block_elems);
        st = read_stored(r, r->buffers->stored, block * stored->block_bytes,
                         (size_t)(blocks * stored->block_bytes));
        if (st)
            break;
        (void)heft_dtype_cast(r->buffers->converted, r->as, r->buffers->stored, r->d->t.dtype,
                              (size_t)(blocks * stored->block_elems));
        memcpy(dst, r->buffers->converted + skip * r->size, (size_t)(taken * r->size));
    }
    return st;
}

/* Read runs of `inner` elements, one for each index of the axis, with the gaps between them. */
static heft_status gather(const slice_reader *r, uint8_t *dst, uint64_t base, const heft_slice *a,
                          uint64_t inner)
{
    uint64_t distance = distance_of(a->step) * inner, each = inner * r->size;
    uint64_t most = heft_div(BATCH - inner, distance) + 1;
    for (uint64_t at = 0, n; at < a->count; at += n) {
        n = a->count - at < most ? a->count - at : most;
        uint64_t lowest = a->step < 0 ? at + n - 1 : at;
        uint64_t first = base + (a->start + lowest * (uint64_t)a->step) * inner;
        HEFT_TRY(read_run(r, r->buffers->gathered, first, (n - 1) * distance + inner));
        for (uint64_t i = 0; i < n; i++, dst += each) {
            uint64_t from = a->step < 0 ? n - 1 - i : i;
            memcpy(dst, r->buffers->gathered + from * distance * r->size, (size_t)each);
        }
    }
    return HEFT_OK;
}

static bool has_small_gaps(const heft_slice *a, uint64_t inner)
{
    return a->count > 1 && a->step != 1 && inner <= MAX_DISTANCE &&
           distance_of(a->step) <= heft_div(MAX_DISTANCE, inner);
}

/* Read the selected indices of one axis; each index stands for `inner` elements. */
static heft_status read_axis(const slice_reader *r, uint8_t *dst, uint64_t base,
                             const heft_slice *a, uint64_t inner)
{
    if (has_small_gaps(a, inner))
        return gather(r, dst, base, a, inner);
    uint64_t joined = a->count == 1 || a->step == 1 ? a->count : 1;
    for (uint64_t i = 0; i < a->count; i += joined, dst += joined * inner * r->size)
        HEFT_TRY(
            read_run(r, dst, base + (a->start + i * (uint64_t)a->step) * inner, joined * inner));
    return HEFT_OK;
}

/* Return the element at which the selected row with this number begins: `axis` is the innermost
 * axis that is not whole. */
static uint64_t row_base(const slice_reader *r, uint64_t row, uint32_t axis, uint64_t inner)
{
    uint64_t base = 0, stride = inner * r->d->t.dims[axis];
    for (uint32_t i = axis; i--; stride *= r->d->t.dims[i]) {
        uint64_t rest = heft_div(row, r->axes[i].count), index = row - rest * r->axes[i].count;
        base += (r->axes[i].start + index * (uint64_t)r->axes[i].step) * stride;
        row = rest;
    }
    return base;
}

static heft_status read_all(const slice_reader *r, uint8_t *dst, uint64_t count)
{
    uint32_t axis = r->d->t.rank;
    uint64_t inner = 1;
    for (; axis && is_whole(&r->axes[axis - 1], r->d->t.dims[axis - 1]); axis--)
        inner *= r->d->t.dims[axis - 1];
    if (!axis)
        return read_run(r, dst, 0, count);
    axis--;
    uint64_t each = r->axes[axis].count * inner, rows = heft_div(count, each);
    for (uint64_t row = 0; row < rows; row++, dst += each * r->size)
        HEFT_TRY(read_axis(r, dst, row_base(r, row, axis, inner), &r->axes[axis], inner));
    return HEFT_OK;
}

/* ---- checks, and all of it ---- */

static heft_status check_types(const heft_dense_tensor *d, heft_dtype as, heft_error *err)
{
    if (as != d->t.dtype && !heft_dtype_can_cast(as, d->t.dtype))
        return heft_error_plain(err, HEFT_E_UNSUPPORTED, "tensor %q: %s cannot be cast to %s",
                                d->t.name, heft_dtype_name(d->t.dtype), heft_dtype_name(as));
    if (!heft_dtype_size(as))
        return heft_error_plain(err, HEFT_E_UNSUPPORTED,
                                "tensor %q: elements of %s share bytes: read the slice as another "
                                "element type",
                                d->t.name, heft_dtype_name(as));
    return HEFT_OK;
}

static heft_status read_slice(slice_reader *r, void *buf, uint64_t count)
{
    const heft_file *f = r->d->f;
    const heft_allocator *a = f->host->allocator;
    heft_array decoded = { .data = NULL };
    if (heft_ix_part_row_at(&f->x, r->d->part)->encoding != HEFT_RAW)
        HEFT_TRY(heft_dense_read(&decoded, r->d, r->d->t.dtype, NULL, 0, r->err));
    r->content = decoded.data;
    r->buffers = a->resize(a->ctx, NULL, 0, sizeof *r->buffers, ALIGN);
    heft_status st = r->buffers ? read_all(r, buf, count)
                                : heft_error_plain(r->err, HEFT_E_NOMEM,
                                                   "no memory to read a slice of %q", r->d->t.name);
    if (r->buffers)
        a->resize(a->ctx, r->buffers, sizeof *r->buffers, 0, ALIGN);
    heft_array_free(&decoded);
    return st;
}

heft_status heft_dense_read_slice(void *buf, size_t capacity, const heft_dense_tensor *d,
                                  const heft_slice *axes, heft_dtype as, heft_error *err)
{
    uint64_t count;
    heft_status st = check_types(d, as, err);
    st = st ? st : count_elements(&count, d, axes, err);
    if (st || !count)
        return st;
    slice_reader r = { .d = d, .axes = axes, .as = as, .size = heft_dtype_size(as), .err = err };
    if (count > capacity / r.size)
        return heft_error_plain(err, HEFT_E_ARGUMENT,
                                "a slice of tensor %q has %U elements of %s, but the buffer has %U "
                                "bytes",
                                d->t.name, count, heft_dtype_name(as), (uint64_t)capacity);
    return read_slice(&r, buf, count);
}
