/* views.c - strided views: tensors whose part is not contiguous in row-major order. */
#include "base/bisect.h"
#include "base/checked_math.h"
#include "base/error.h"
#include "base/text.h"
#include "model/dtype.h"
#include "model/index.h"

typedef struct extent { /* bytes that the elements of a tensor span */
    uint64_t elements, bytes;
    uint64_t span;      /* bytes from the first to the last element, gaps included */
    bool is_contiguous; /* row-major without gaps */
} extent;

/* Compute the extent of the elements with the given strides (in elements; NULL: row-major). */
static heft_status compute_extent(extent *s, heft_index *x, uint32_t tensor, uint64_t at,
                                  const uint64_t *strides)
{
    const heft_ix_tensor_row *row = heft_ix_row(x, tensor);
    const uint64_t *dims = heft_ix_dims(x, tensor);
    uint32_t size = heft_dtype_size(row->dtype);
    uint64_t step = 1, distance;
    bool fits = heft_product(&s->elements, dims, row->rank) &&
                heft_dtype_bytes(&s->bytes, row->dtype, s->elements);
    s->span = s->elements ? 1 : 0;
    s->is_contiguous = true;
    for (uint32_t i = row->rank; fits && strides && s->elements && i--;) {
        s->is_contiguous = s->is_contiguous && (dims[i] == 1 || strides[i] == step);
        step *= dims[i]; /* at most the product, which fits */
        fits = heft_mul(&distance, dims[i] - 1, strides[i]) &&
               heft_add(&s->span, s->span, distance);
    }
    if (!strides)
        s->span = s->elements;
    if (!s->is_contiguous && !size)
        return heft_error_set(x->err, HEFT_E_UNSUPPORTED, at,
                              "tensor %q: elements of %s cannot be strided",
                              heft_ix_name(x, tensor), heft_dtype_name(row->dtype));
    if (!fits || !heft_mul(&s->span, s->span, size))
        return heft_error_set(x->err, HEFT_E_FORMAT, at,
                              "tensor %q: shape and strides overflow 64 bits",
                              heft_ix_name(x, tensor));
    s->span = size ? s->span : s->bytes;
    return HEFT_OK;
}

static heft_status add_view(heft_index *x, uint32_t tensor, heft_ix_view v, const uint64_t *strides)
{
    uint32_t rank = heft_ix_row(x, tensor)->rank;
    if (strides && !heft_vec_reserve(&x->mem, &x->strides, rank, sizeof *strides))
        return heft_error_no_memory(x->err, "for the index");
    heft_ix_view *to = heft_vec_push(&x->mem, &x->views, sizeof *to);
    if (!to)
        return heft_error_no_memory(x->err, "for the index");
    v.part = x->parts.len - 1;
    v.tensor = tensor;
    v.strides = strides ? x->strides.len : HEFT_NONE;
    *to = v;
    if (strides) {
        memcpy((uint64_t *)x->strides.ptr + x->strides.len, strides, rank * sizeof *strides);
        x->strides.len += rank;
    }
    heft_ix_part_row_at(x, v.part)->flags |= HEFT_P_VIEW;
    return HEFT_OK;
}

heft_status heft_ix_strided(heft_index *x, uint32_t tensor, uint64_t at, heft_range where,
                            heft_encoding e, uint64_t content, uint64_t first,
                            const uint64_t *strides)
{
    heft_dtype t = heft_ix_row(x, tensor)->dtype;
    extent s = { 0 };
    uint64_t end;
    HEFT_TRY(compute_extent(&s, x, tensor, at, strides));
    if (!heft_add(&end, first, s.span) || end > content)
        return heft_error_set(x->err, HEFT_E_FORMAT, at,
                              "tensor %q: its elements take bytes %U to %U of %U",
                              heft_ix_name(x, tensor), first, end, content);
    if (x->file_bytes && !heft_global_offset_file(x, where.offset) &&
        !heft_range_in(where, x->file_bytes))
        return heft_error_expect(
            x->err,
            heft_error_set(x->err, HEFT_E_FORMAT, at,
                           "tensor %q: %U bytes at offset %U pass the end of the file, %U",
                           heft_ix_name(x, tensor), where.length, where.offset, x->file_bytes),
            where.offset, where.length);
    if (e == HEFT_RAW) { /* limit the part to the bytes that the elements span */
        where = (heft_range){ where.offset + first, s.span };
        content = s.span;
        first = 0;
    }
    heft_status st = heft_ix_part(x, tensor, heft_lit("data"), t, where, s.bytes, e);
    if (st || (s.is_contiguous && !first && content == s.bytes))
        return st;
    heft_ix_view v = { .content = content, .first = first };
    return add_view(x, tensor, v, s.is_contiguous ? NULL : strides);
}

heft_status heft_ix_view_copy(heft_index *x, uint32_t tensor, const heft_index *from, uint32_t part)
{
    const heft_ix_view *v = heft_ix_view_of(from, part);
    return v ? add_view(x, tensor, *v, heft_ix_strides(from, v)) : HEFT_OK;
}

void heft_ix_big_endian(heft_index *x)
{
    heft_ix_part_row *p = heft_ix_part_row_at(x, x->parts.len - 1);
    if (heft_dtype_number_bytes(p->dtype) > 1)
        p->flags |= HEFT_P_BIG_ENDIAN;
}

void heft_ix_signs(heft_index *x, uint8_t signs)
{
    heft_ix_part_row *p = heft_ix_part_row_at(x, x->parts.len - 1);
    bool is_complex = p->dtype == HEFT_C64 || p->dtype == HEFT_C128;
    /* the conjugate of a real number is the number */
    p->flags |= is_complex ? signs : signs & HEFT_P_NEGATED;
}

const heft_ix_view *heft_ix_view_of(const heft_index *x, uint32_t part)
{
    const heft_ix_view *views = x->views.ptr;
    heft_bisect b = { .end = x->views.len };
    while (heft_bisect_next(&b))
        heft_bisect_narrow(&b, views[b.mid].part < part);
    return b.first < x->views.len && views[b.first].part == part ? &views[b.first] : NULL;
}
