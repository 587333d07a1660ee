/* array.c - reads whole dense tensors: in place, copied, or cast to another element type. */
#include "base/checked_math.h"
#include "core/read/sparse_read.h"
#include "core/read/stream.h"
#include "model/dtype.h"

enum {
    CHUNK = 1 << 16, /* elements cast at a time; a multiple of every block size */
    MEMORY_ALIGN = 64,
    MAX_ALIGN = 8 /* largest number that an element consists of, in bytes */
};

/* A name that is not found may lie in the missing bytes of a truncated file. */
static heft_status check_names(const heft_file *f, heft_error *err)
{
    heft_file_enter(f);
    return heft_file_leave(f, err);
}

heft_status heft_dense_find(heft_dense_tensor *d, const heft_file *f, heft_str name,
                            heft_error *err)
{
    uint64_t bytes;
    uint32_t id = heft_tensor_find(f, name);
    *d = (heft_dense_tensor){ .f = f, .t = heft_tensor_at(f, id), .id = id, .part = HEFT_NONE };
    if (id != HEFT_NONE)
        d->part = heft_part_find(f, id, HEFT_STR("data"));
    if (d->part == HEFT_NONE)
        HEFT_TRY(check_names(f, err));
    if (id == HEFT_NONE) {
        heft_error_plain(err, HEFT_E_NOTFOUND, "there is no tensor %q", name);
        return heft_error_rule(err, HEFT_E_NOTFOUND, "heft/no-tensor");
    }
    if (d->t.layout != HEFT_DENSE || d->t.dtype == HEFT_UNTYPED || d->part == HEFT_NONE)
        return heft_error_plain(err, HEFT_E_UNSUPPORTED,
                                "tensor %q is not dense (%q): read its parts instead", name,
                                heft_tensor_layout_name(f, id));
    heft_status st = heft_file_find_part(f, d->part, err);
    if (st || (heft_product(&d->count, d->t.dims, d->t.rank) &&
               heft_dtype_bytes(&bytes, d->t.dtype, d->count) &&
               bytes == heft_ix_part_row_at(&f->x, d->part)->length))
        return st;
    return heft_error_plain(err, HEFT_E_FORMAT,
                            "tensor %q: the size of its data does not match its shape", d->t.name);
}

/* ---- casting ---- */

typedef struct cast_job { /* mapped data; each call of cast_mapped_chunk() casts a chunk */
    const heft_dense_tensor *d;
    const uint8_t *src;
    uint8_t *dst;
    heft_dtype dtype;
} cast_job;

static void cast_chunk(uint8_t *dst, heft_dtype dtype, const void *src, const heft_dense_tensor *d,
                       uint64_t first)
{
    uint64_t at = 0, n = d->count - first < CHUNK ? d->count - first : CHUNK;
    if (!n)
        return;
    (void)heft_dtype_bytes(&at, dtype, first); /* cannot overflow: the output is in memory */
    (void)heft_dtype_cast(dst + at, dtype, src, d->t.dtype, (size_t)n);
}

static void cast_mapped_chunk(void *arg, size_t i)
{
    const cast_job *j = arg;
    uint64_t at = 0, first = (uint64_t)i * CHUNK;
    (void)heft_dtype_bytes(&at, j->d->t.dtype, first);
    heft_file_enter(j->d->f);
    cast_chunk(j->dst, j->dtype, j->src + at, j->d, first);
    heft_file_disarm(j->d->f); /* cast_into() asks for the mapping's state once */
}

static heft_status cast_stream(uint8_t *dst, const heft_dense_tensor *d, heft_dtype dtype,
                               heft_error *err)
{
    heft_stream *s;
    HEFT_TRY(heft_stream_open(&s, d->f, d->part, err));
    const heft_allocator *a = d->f->host->allocator;
    uint64_t chunk_bytes = 0, length = heft_ix_part_row_at(&d->f->x, d->part)->length;
    (void)heft_dtype_bytes(&chunk_bytes, d->t.dtype, CHUNK);
    size_t capacity = (size_t)(length < chunk_bytes ? length : chunk_bytes);
    void *buf = a->resize(a->ctx, NULL, 0, capacity + 1, MEMORY_ALIGN);
    heft_status st = HEFT_OK;
    if (!buf)
        st = heft_error_plain(err, HEFT_E_NOMEM, "no memory to cast tensor %q", d->t.name);
    for (uint64_t first = 0, left = length; !st && (left || !first); first += CHUNK) {
        size_t n = (size_t)(left < chunk_bytes ? left : chunk_bytes);
        st = heft_stream_read(buf, s, n, err);
        if (!st)
            cast_chunk(dst, dtype, buf, d, first);
        left -= n;
    }
    if (buf)
        a->resize(a->ctx, buf, capacity + 1, 0, MEMORY_ALIGN);
    heft_stream_close(s);
    return st;
}

static heft_status cast_into(void *dst, const heft_dense_tensor *d, heft_dtype dtype,
                             heft_error *err)
{
    const void *mapped = d->f->check_parts ? NULL : heft_part_view(d->f, d->part);
    if (!mapped)
        return cast_stream(dst, d, dtype, err);
    cast_job j = { d, mapped, dst, dtype };
    HEFT_TRY(
        heft_file_count_read(d->f, d->part, heft_ix_part_row_at(&d->f->x, d->part)->length, err));
    heft_host_run(d->f->host, (size_t)(d->count / CHUNK) + (d->count % CHUNK != 0),
                  cast_mapped_chunk, &j);
    heft_file_enter(d->f);
    return heft_file_leave(d->f, err);
}

/* ---- public functions ---- */

static heft_array array_of(const heft_dense_tensor *d, heft_dtype dtype, uint64_t bytes)
{
    return (heft_array){
        .name = d->t.name, .bytes = bytes, .dims = d->t.dims, .rank = d->t.rank, .dtype = dtype
    };
}

/* Allocate the output, but first refuse a compressed part that cannot expand to the stated
 * length. */
static heft_status allocate_data(void **dst, heft_array *a, const heft_dense_tensor *d,
                                 heft_error *err)
{
    const heft_ix_part_row *row = heft_ix_part_row_at(&d->f->x, d->part);
    heft_status st = row->encoding ? heft_stream_check_ratio(d->f, d->part, row->length, false, err)
                                   : HEFT_OK;
    if (st || !a->bytes)
        return st;
    const heft_allocator *src = d->f->host->allocator;
    *dst = a->bytes > SIZE_MAX - MEMORY_ALIGN
               ? NULL
               : src->resize(src->ctx, NULL, 0, (size_t)a->bytes, MEMORY_ALIGN);
    if (!*dst)
        return heft_error_plain(err, HEFT_E_NOMEM, "tensor %q: no memory for %U bytes", a->name,
                                a->bytes);
    a->allocator = src;
    return HEFT_OK;
}

heft_status heft_dense_read(heft_array *out, const heft_dense_tensor *d, heft_dtype dtype,
                            void *memory, size_t capacity, heft_error *err)
{
    uint64_t bytes = 0;
    if (dtype != d->t.dtype && !heft_dtype_can_cast(dtype, d->t.dtype))
        return heft_error_plain(err, HEFT_E_UNSUPPORTED, "tensor %q: %s cannot be cast to %s",
                                d->t.name, heft_dtype_name(d->t.dtype), heft_dtype_name(dtype));
    if (!heft_dtype_bytes(&bytes, dtype, d->count))
        return heft_error_plain(err, HEFT_E_LIMIT,
                                "tensor %q: the size of %U elements of %s exceeds 64 bits",
                                d->t.name, d->count, heft_dtype_name(dtype));
    heft_array a = array_of(d, dtype, bytes);
    if (memory && bytes > capacity)
        return heft_error_plain(err, HEFT_E_ARGUMENT,
                                "tensor %q needs %U bytes as %s, but the buffer has %U", a.name,
                                bytes, heft_dtype_name(dtype), (uint64_t)capacity);
    heft_status st = memory ? HEFT_OK : allocate_data(&memory, &a, d, err);
    a.data = memory;
    if (!st)
        st = dtype != d->t.dtype ? cast_into(memory, d, dtype, err)
                                 : heft_part_read_many(&memory, d->f, &d->part, 1, NULL, NULL, err);
    if (st)
        heft_array_free(&a);
    else
        *out = a;
    return st;
}

/* Return true if p is aligned for the type: to the largest power of two that divides the block
 * size. */
static bool is_aligned(const void *p, heft_dtype t)
{
    uintptr_t size = heft_dtype_get(t)->block_bytes, align = size & (~size + 1);
    return ((uintptr_t)p & ((align < MAX_ALIGN ? align : MAX_ALIGN) - 1)) == 0;
}

heft_status heft_array_view(heft_array *out, const heft_file *f, heft_str name, heft_error *err)
{
    heft_dense_tensor d;
    heft_error own;
    *out = (heft_array){ .data = NULL };
    err = heft_error_begin(err, &own);
    heft_status st = heft_dense_find(&d, f, name, err);
    if (st)
        return heft_error_end(err, st);
    const void *mapped = heft_part_view(f, d.part);
    if (!mapped || !is_aligned(mapped, d.t.dtype))
        return heft_error_end(err, heft_dense_read(out, &d, d.t.dtype, NULL, 0, err));
    if (f->check_parts)
        st = heft_part_verify(NULL, f, d.part, err);
    if (!st) {
        *out = array_of(&d, d.t.dtype, heft_ix_part_row_at(&f->x, d.part)->length);
        out->data = mapped;
    }
    return heft_error_end(err, st);
}

void heft_array_free(heft_array *a)
{
    if (a->allocator && a->data)
        a->allocator->resize(a->allocator->ctx, (void *)(uintptr_t)a->data, (size_t)a->bytes, 0,
                             MEMORY_ALIGN);
    *a = (heft_array){ .data = NULL };
}
