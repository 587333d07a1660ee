/* assembled.c - adds assembled tensors to an index. */
#include "base/bisect.h"
#include "base/checked_math.h"
#include "base/error.h"
#include "base/text.h"
#include "model/boxes.h"
#include "model/dtype.h"

static heft_ix_assembled *row_at(const heft_index *x, uint32_t i)
{
    return (heft_ix_assembled *)x->assembled.ptr + i;
}

static heft_ix_assembled *last_row(const heft_index *x)
{
    return row_at(x, x->assembled.len - 1);
}

/* Return the numbers of a box: offset and size of each dimension. */
static uint32_t numbers_per_box(const heft_index *x, const heft_ix_assembled *a)
{
    return 2 * (a->is_flat ? 1U : heft_ix_row(x, a->tensor)->rank);
}

/* ---- adding ---- */

/* Return the place of the numbers of the next box, for which there is memory. */
static uint64_t *next_numbers(const heft_index *x, uint32_t rank)
{
    return rank ? (uint64_t *)x->box_numbers.ptr + x->box_numbers.len : NULL;
}

heft_status heft_ix_assembled_begin(heft_index *x, uint32_t tensor, bool is_flat)
{
    const heft_ix_tensor_row *t = heft_ix_row(x, tensor);
    heft_ix_assembled row = { .tensor = tensor,
                              .first_box = x->boxes.len,
                              .numbers = x->box_numbers.len,
                              .is_flat = is_flat };
    uint64_t bytes;
    if (!heft_product(&row.elements, heft_ix_dims(x, tensor), t->rank) ||
        !heft_dtype_bytes(&bytes, t->dtype, row.elements))
        return heft_error_plain(x->err, HEFT_E_FORMAT, "tensor %q: the shape passes 64 bits",
                                heft_ix_name(x, tensor));
    if (!heft_dtype_size(t->dtype))
        return heft_error_plain(x->err, HEFT_E_UNSUPPORTED,
                                "tensor %q: elements of %s cannot be assembled from pieces",
                                heft_ix_name(x, tensor), heft_dtype_name(t->dtype));
    return heft_vec_add(&x->mem, &x->assembled, &row, sizeof row) ? HEFT_OK : heft_ix_no_memory(x);
}

static heft_status refuse_box(heft_index *x, uint64_t at, const heft_ix_assembled *a, uint32_t axis,
                              uint64_t offset, uint64_t size, uint64_t dim)
{
    return heft_error_set(x->err, HEFT_E_FORMAT, at,
                          "tensor %q: a piece has %U elements from %U on of dimension %U, whose "
                          "size is %U",
                          heft_ix_name(x, a->tensor), size, offset, (uint64_t)axis, dim);
}

static heft_status check_raw_box(heft_index *x, uint64_t at, const heft_ix_assembled *a,
                                 const heft_ix_box *box, const uint64_t *sizes, uint32_t rank)
{
    heft_dtype t = heft_ix_row(x, a->tensor)->dtype;
    uint64_t elements, bytes = 0;
    bool fits = heft_product(&elements, sizes, rank) && heft_dtype_bytes(&bytes, t, elements);
    if (heft_box_holds(box) != HEFT_BOX_BYTES)
        return HEFT_OK;
    if (!fits || bytes != box->length)
        return heft_error_set(x->err, HEFT_E_FORMAT, at,
                              "tensor %q: a piece has %U bytes, its shape as %s takes %U",
                              heft_ix_name(x, a->tensor), box->length, heft_dtype_name(t), bytes);
    if (heft_global_offset_file(x, box->offset) || !x->file_bytes ||
        heft_range_in((heft_range){ box->offset, box->length }, x->file_bytes))
        return HEFT_OK;
    return heft_error_expect(
        x->err,
        heft_error_set(x->err, HEFT_E_FORMAT, at,
                       "tensor %q: %U bytes at offset %U pass the end of the file, %U",
                       heft_ix_name(x, a->tensor), box->length, box->offset, x->file_bytes),
        box->offset, box->length);
}

heft_status heft_ix_box_add(heft_index *x, uint64_t at, heft_ix_box box, const uint64_t *offsets,
                            const uint64_t *sizes)
{
    heft_ix_assembled *a = last_row(x);
    uint32_t rank = numbers_per_box(x, a) / 2;
    const uint64_t *dims = a->is_flat ? &a->elements : heft_ix_dims(x, a->tensor);
    for (uint32_t i = 0; i < rank; i++)
        if (offsets[i] > dims[i] || sizes[i] > dims[i] - offsets[i])
            return refuse_box(x, at, a, i, offsets[i], sizes[i], dims[i]);
    HEFT_TRY(check_raw_box(x, at, a, &box, sizes, rank));
    if (!heft_vec_reserve(&x->mem, &x->box_numbers, 2 * (uint64_t)rank, sizeof *offsets) ||
        !heft_vec_add(&x->mem, &x->boxes, &box, sizeof box))
        return heft_ix_no_memory(x);
    uint64_t *to = next_numbers(x, rank);
    for (uint32_t i = 0; i < rank; i++) {
        to[i] = offsets[i];
        to[rank + i] = sizes[i];
    }
    x->box_numbers.len += 2 * rank;
    a->box_count++;
    return HEFT_OK;
}

heft_boxes heft_ix_boxes(const heft_index *x, uint32_t i)
{
    const heft_ix_assembled *a = row_at(x, i);
    heft_boxes b = { .dims = a->is_flat ? &a->elements : heft_ix_dims(x, a->tensor),
                     .rank = numbers_per_box(x, a) / 2,
                     .count = a->box_count };
    b.rows = a->box_count ? (const heft_ix_box *)x->boxes.ptr + a->first_box : NULL;
    b.numbers = a->box_count && b.rank ? (const uint64_t *)x->box_numbers.ptr + a->numbers : NULL;
    return b;
}

uint32_t heft_ix_assembled_find(const heft_index *x, uint32_t tensor)
{
    if (HEFT_IS_LEAN)
        return HEFT_NONE;
    heft_bisect b = { .end = x->assembled.len };
    while (heft_bisect_next(&b))
        heft_bisect_narrow(&b, row_at(x, b.mid)->tensor < tensor);
    return b.first < x->assembled.len && row_at(x, b.first)->tensor == tensor ? b.first : HEFT_NONE;
}

heft_status heft_ix_piece_add(heft_index *x, uint32_t tensor, const uint64_t *offsets,
                              const uint64_t *whole, bool may_repeat)
{
    uint32_t rank = heft_ix_row(x, tensor)->rank;
    heft_ix_piece row = { tensor, x->box_numbers.len, may_repeat };
    if (!heft_vec_reserve(&x->mem, &x->box_numbers, 2 * (uint64_t)rank, sizeof *offsets) ||
        !heft_vec_add(&x->mem, &x->pieces, &row, sizeof row))
        return heft_ix_no_memory(x);
    uint64_t *to = next_numbers(x, rank);
    for (uint32_t i = 0; i < rank; i++) {
        to[i] = offsets ? offsets[i] : 0;
        to[rank + i] = whole ? whole[i] : HEFT_NOWHERE;
    }
    x->box_numbers.len += 2 * rank;
    x->has_pieces = true;
    return HEFT_OK;
}

heft_status heft_ix_pieces_fill(heft_index *x)
{
    heft_vec known = x->pieces;
    const heft_ix_piece *rows = known.ptr;
    heft_status st = HEFT_OK;
    x->pieces = (heft_vec){ NULL, 0, 0 };
    for (uint32_t i = 0, k = 0; i < heft_ix_tensors(x) && !st; i++) {
        bool is_known = k < known.len && rows[k].tensor == i;
        if (is_known)
            st = heft_vec_add(&x->mem, &x->pieces, &rows[k++], sizeof *rows) ? HEFT_OK
                                                                             : heft_ix_no_memory(x);
        else
            st = heft_ix_piece_add(x, i, NULL, heft_ix_dims(x, i), true);
    }
    heft_vec_free(&x->mem, &known, sizeof *rows);
    return st;
}

/* ---- completeness ---- */

static heft_str file_of(const heft_index *x, const heft_ix_box *box)
{
    uint32_t number = heft_global_offset_file(x, box->offset);
    return number ? heft_ix_shard_at(x, number)->label : heft_lit("this file");
}

static heft_status refuse(heft_index *x, uint64_t at, const heft_boxes *b,
                          const heft_box_fault *fault)
{
    char buf[HEFT_INDICES_TEXT];
    uint32_t tensor = last_row(x)->tensor;
    heft_str name = heft_ix_name(x, tensor);
    heft_element_indices(buf, heft_ix_dims(x, tensor), heft_ix_row(x, tensor)->rank,
                         fault->element);
    if (fault->kind == HEFT_BOXES_GAP)
        return heft_error_set(x->err, HEFT_E_FORMAT, at,
                              "tensor %q is incomplete: none of its %U pieces has element %s", name,
                              (uint64_t)b->count, buf);
    const heft_ix_box *one = b->rows + fault->first, *other = b->rows + fault->second;
    return heft_error_set(x->err, HEFT_E_FORMAT, at,
                          "tensor %q: two pieces have element %s, one in %q at offset %U and one "
                          "in %q at offset %U",
                          name, buf, file_of(x, one), heft_global_offset_local(x, one->offset),
                          file_of(x, other), heft_global_offset_local(x, other->offset));
}

static heft_status check_boxes(heft_index *x, uint64_t at)
{
    heft_boxes b = heft_ix_boxes(x, x->assembled.len - 1);
    heft_box_fault fault;
    heft_status st = heft_boxes_check(&fault, &b, &x->mem);
    if (st == HEFT_E_LIMIT)
        return heft_error_set(x->err, st, at,
                              "tensor %q: its %U pieces are cut along too many dimensions",
                              heft_ix_name(x, last_row(x)->tensor), (uint64_t)b.count);
    if (st)
        return heft_ix_no_memory(x);
    return fault.kind == HEFT_BOXES_TILE ? HEFT_OK : refuse(x, at, &b, &fault);
}

/* Add the part, whose bytes follow those of the preceding assembled tensors in a source that the
 * engine makes. */
static heft_status add_part(heft_index *x)
{
    heft_ix_assembled *a = last_row(x);
    heft_dtype t = heft_ix_row(x, a->tensor)->dtype;
    const heft_ix_assembled *before = x->assembled.len > 1 ? a - 1 : NULL;
    uint64_t end;
    (void)heft_dtype_bytes(&a->bytes, t, a->elements);
    a->start = before ? before->start + before->bytes : 0;
    if (!heft_add(&end, a->start, a->bytes) || end >> HEFT_GLOBAL_OFFSET_BITS)
        return heft_error_plain(x->err, HEFT_E_LIMIT, "the assembled tensors exceed 2^%U bytes",
                                (uint64_t)HEFT_GLOBAL_OFFSET_BITS);
    heft_range where = { a->start, a->bytes };
    return heft_ix_part(x, a->tensor, heft_ix_data, t, where, a->bytes, HEFT_RAW);
}

heft_status heft_ix_assembled_end(heft_index *x, uint64_t at)
{
    HEFT_TRY(check_boxes(x, at));
    return add_part(x);
}

heft_status heft_ix_assembled_copy(heft_index *x, const heft_index *from, uint32_t tensor,
                                   uint32_t base)
{
    uint32_t i = heft_ix_assembled_find(from, tensor);
    heft_boxes b = heft_ix_boxes(from, i);
    HEFT_TRY(heft_ix_assembled_begin(x, x->tensors.len - 1, row_at(from, i)->is_flat));
    for (uint32_t k = 0; k < b.count; k++) {
        heft_ix_box box = b.rows[k];
        uint32_t number = base + heft_global_offset_file(from, box.offset);
        box.offset = heft_global_offset(number, heft_global_offset_local(from, box.offset));
        HEFT_TRY(
            heft_ix_box_add(x, HEFT_NOWHERE, box, heft_box_offsets(&b, k), heft_box_sizes(&b, k)));
    }
    return add_part(x);
}
