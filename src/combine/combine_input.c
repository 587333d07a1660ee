/* combine_input.c - reads elements of tensors that take part in a computation. */
#include <heft/check.h>

#include "base/checked_math.h"
#include "base/error.h"
#include "combine/combine.h"
#include "model/cast_batch.h"
#include "model/float.h"

enum {
    ALIGN = 64,
    DIRECT = 64 << 10, /* a longer range is read, not converted from mapped pages */
    BUFFER = HEFT_COMBINE_STRIP * sizeof(float)
};

bool heft_combine_is_exact(heft_dtype t)
{
    return heft_cast_batch_fits_f32(t) || heft_dtype_kind_of(t) == HEFT_DTYPE_BLOCK;
}

static heft_status describe(heft_combine_input *out, const heft_file *f, uint32_t tensor,
                            bool verify, heft_error *err)
{
    heft_tensor t = heft_tensor_at(f, tensor);
    uint32_t part = heft_part_find(f, tensor, HEFT_STR("data"));
    uint64_t bytes;
    *out = (heft_combine_input){ .f = f,
                                 .name = t.name,
                                 .tensor = tensor,
                                 .part = part,
                                 .dtype = t.dtype,
                                 .rank = t.rank,
                                 .dims = t.dims };
    if (t.layout != HEFT_DENSE || part == HEFT_NONE || !heft_dtype_can_cast(HEFT_F32, t.dtype))
        return heft_error_plain(err, HEFT_E_UNSUPPORTED,
                                "tensor %q is not a dense tensor of numbers (%q, %s)", t.name,
                                heft_tensor_layout_name(f, tensor), heft_dtype_name(t.dtype));
    HEFT_TRY(heft_file_find_part(f, part, err));
    if (!heft_product(&out->count, t.dims, t.rank) ||
        !heft_dtype_bytes(&bytes, t.dtype, out->count) ||
        bytes != heft_ix_part_row_at(&f->x, part)->length)
        return heft_error_plain(err, HEFT_E_FORMAT,
                                "tensor %q: the size of its data does not match its shape", t.name);
    return verify ? heft_part_verify(NULL, f, part, err) : HEFT_OK;
}

heft_status heft_combine_input_open(heft_combine_input *out, const heft_file *f, uint32_t number,
                                    uint32_t tensor, bool verify, heft_error *err)
{
    heft_status st = describe(out, f, tensor, verify, err);
    out->number = number;
    return heft_error_input(err, st, number);
}

/* ---- bytes ---- */

static void stop(heft_combine_reader *r)
{
    heft_stream_close(r->stream);
    r->stream = NULL;
    r->next = 0;
}

static heft_status read_stream(heft_combine_reader *r, uint64_t from, void *buf, size_t len,
                               heft_error *err)
{
    if (r->stream && r->next > from)
        stop(r);
    if (!r->stream)
        HEFT_TRY(heft_stream_open(&r->stream, r->in->f, r->in->part, err));
    heft_status st = heft_stream_skip(r->stream, from - r->next, err);
    if (!st)
        st = heft_stream_read(buf, r->stream, len, err);
    r->next = from + len;
    if (st)
        stop(r);
    return st;
}

heft_status heft_combine_read_bytes(heft_combine_reader *r, const heft_combine_input *in,
                                    uint64_t from, void *buf, size_t len, heft_error *err)
{
    if (r->in != in)
        stop(r);
    r->in = in;
    bool is_raw = heft_ix_part_row_at(&in->f->x, in->part)->encoding == HEFT_RAW;
    heft_status st = is_raw ? heft_read_unchecked(buf, in->f, in->part, from, len, err)
                            : read_stream(r, from, buf, len, err);
    return heft_error_input(err, st, in->number);
}

/* ---- numbers ---- */

static void convert(float *out, heft_dtype from, const uint8_t *src, size_t count)
{
    (void)heft_dtype_cast(out, HEFT_F32, src, from, count);
    if (heft_is_big_endian())
        heft_f32_from_little(out, count);
}

/* Return the bytes in place, where that is faster than reading them. */
static const uint8_t *in_place(const heft_combine_input *in, uint64_t at, uint64_t len)
{
    const heft_ix_part_row *p = heft_ix_part_row_at(&in->f->x, in->part);
    return heft_ix_is_plain(p) && len < DIRECT ? heft_file_map(in->f, p->offset + at, len) : NULL;
}

static heft_status read_some(heft_combine_reader *r, const heft_combine_input *in, uint64_t from,
                             size_t count, float *out, heft_error *err)
{
    uint64_t at = 0, len = 0;
    (void)heft_dtype_bytes(&at, in->dtype, from);
    (void)heft_dtype_bytes(&len, in->dtype, count);
    const uint8_t *lent = in_place(in, at, len);
    if (lent) {
        HEFT_TRY(
            heft_error_input(err, heft_file_count_read(in->f, in->part, len, err), in->number));
        heft_file_enter(in->f);
        convert(out, in->dtype, lent, count);
        return heft_file_leave_input(in->f, in->number, HEFT_OK, err);
    }
    HEFT_TRY(heft_combine_read_bytes(r, in, at, r->buf, (size_t)len, err));
    convert(out, in->dtype, r->buf, count);
    return HEFT_OK;
}

/* Read elements within a block: the block is decoded, and a part of it copied. */
static heft_status read_cut(heft_combine_reader *r, const heft_combine_input *in, uint64_t from,
                            uint32_t block, uint32_t skip, size_t count, float *out,
                            heft_error *err)
{
    float whole[HEFT_KERNEL_BLOCK];
    HEFT_TRY(read_some(r, in, from - skip, block, whole, err));
    memcpy(out, whole + skip, count * sizeof *out);
    return HEFT_OK;
}

heft_status heft_combine_read(heft_combine_reader *r, const heft_combine_input *in, uint64_t from,
                              size_t count, float *out, heft_error *err)
{
    uint32_t block = heft_dtype_get(in->dtype)->block_elems, size = heft_dtype_size(in->dtype);
    r->al = in->f->host->allocator;
    if (!r->buf)
        r->buf = heft_alloc(r->al, BUFFER, ALIGN);
    if (!r->buf)
        return heft_error_no_memory(err, "to read a tensor");
    size_t most = BUFFER / (size > sizeof(float) ? size : (uint32_t)sizeof(float));
    for (size_t n; count; from += n, out += n, count -= n) {
        uint32_t skip = block > 1 ? (uint32_t)(from & (block - 1)) : 0;
        n = count < most ? count : most;
        if (block > 1 && !skip && n >= block)
            n -= n & (block - 1);
        if (block > 1 && (skip || n < block)) {
            n = n < block - skip ? n : block - skip;
            HEFT_TRY(read_cut(r, in, from, block, skip, n, out, err));
        } else {
            HEFT_TRY(read_some(r, in, from, n, out, err));
        }
    }
    return HEFT_OK;
}

void heft_combine_reader_free(heft_combine_reader *r)
{
    stop(r);
    if (r->buf)
        heft_free(r->al, r->buf, BUFFER, ALIGN);
    *r = (heft_combine_reader){ .in = NULL };
}
