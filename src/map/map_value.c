/* map_value.c - computes where the elements of a value are in the inputs.
 *
 * A value is an array that consists of pieces.  A piece is a box of elements of one input: each of
 * its axes has a count, a step along a dimension of the value, and a stride in the input.  All
 * operations change only these numbers. */
#include "base/checked_math.h"
#include "base/error.h"
#include "map/map_rules.h"
#include "model/dtype.h"

enum {
    MOST_PIECES = 1 << 24,
    MOST_TENSORS = 1 << 14, /* made of one tensor: each looks at all pieces of it */
    MOST_ADDED = 1 << 24    /* exact in f32 */
};

static heft_status no_memory(const heft_map_work *w)
{
    return heft_error_no_memory(w->err, "to rearrange tensors");
}

static heft_status fail(const heft_map_work *w, heft_status st, const char *what)
{
    return heft_error_plain(w->err, st, "tensor %q (line %U of the map): %s", w->name,
                            (uint64_t)w->line, what);
}

static heft_map_piece *piece_at(const heft_map_work *w, uint32_t i)
{
    return (heft_map_piece *)w->pieces.ptr + i;
}

static heft_status add_piece(heft_map_work *w, const heft_map_piece *p)
{
    heft_map_piece copy = *p; /* perhaps of this column, which may move */
    if (w->pieces.len == MOST_PIECES)
        return fail(w, HEFT_E_LIMIT, "too many pieces");
    return heft_vec_add(w->mem, &w->pieces, &copy, sizeof copy) ? HEFT_OK : no_memory(w);
}

static heft_status add_value(heft_map_work *w, heft_vec *to, const heft_map_value *v)
{
    return heft_vec_add(w->mem, to, v, sizeof *v) ? HEFT_OK : no_memory(w);
}

static heft_status check_dim(const heft_map_work *w, const heft_map_value *v, uint64_t dim)
{
    return dim < v->rank ? HEFT_OK : fail(w, HEFT_E_FORMAT, "it has too few dimensions");
}

static bool has_blocks(const heft_map_value *v)
{
    return heft_dtype_get(v->dtype)->block_elems > 1;
}

/* Blocks along the last dimension stay as they are. */
static heft_status check_blocks(const heft_map_work *w, heft_map_kind kind, const heft_map_value *v,
                                const uint64_t *args)
{
    bool reaches = kind == HEFT_MAP_SWAP    ? args[0] + 1 == v->rank || args[1] + 1 == v->rank
                   : kind == HEFT_MAP_MERGE ? args[0] + 2 == v->rank
                                            : kind < HEFT_MAP_ADD && args[0] + 1 == v->rank;
    if (!has_blocks(v) || !reaches)
        return HEFT_OK;
    return fail(w, HEFT_E_UNSUPPORTED,
                "its blocks cannot be taken apart; --cast f32 in a conversion before decodes them");
}

/* ---- inputs ---- */

/* Set the axes of a tensor; blocks of the last dimension are counted in bytes. */
static heft_status set_axes(heft_map_work *w, heft_map_value *v, heft_map_piece *p,
                            const heft_dtype_info *type, const uint64_t *strides)
{
    uint64_t stride = 1;
    for (uint32_t d = v->rank; d--;) {
        bool is_block = type->block_elems > 1 && d + 1 == v->rank;
        uint64_t blocks = is_block ? heft_div(v->dims[d], type->block_elems) : v->dims[d];
        if (is_block && blocks * type->block_elems != v->dims[d])
            return fail(w, HEFT_E_UNSUPPORTED, "rows do not fill blocks");
        v->dims[d] = is_block ? blocks * type->block_bytes : v->dims[d];
        p->axis[p->axes++] = (heft_map_axis){ v->dims[d], 1, strides ? strides[d] : stride,
                                              (uint8_t)d };
        stride *= v->dims[d];
    }
    return HEFT_OK;
}

heft_status heft_map_add_input(heft_map_work *w, const heft_file *f, uint32_t tensor)
{
    const heft_index *x = &f->x;
    const heft_ix_tensor_row *row = heft_ix_row(x, tensor);
    heft_map_value v = { .rank = row->rank, .first = w->pieces.len, .pieces = 1 };
    heft_map_piece p = { .part = row->first_part };
    const heft_dtype_info *type = heft_dtype_get(row->dtype);
    w->name = heft_ix_name(x, tensor);
    if (row->part_count != 1 || row->layout != HEFT_DENSE || !type)
        return fail(w, HEFT_E_UNSUPPORTED, "only dense tensors can be rearranged");
    if (row->rank > HEFT_MAP_RANK)
        return fail(w, HEFT_E_UNSUPPORTED, "it has more than 6 dimensions");
    const heft_ix_part_row *part = heft_ix_part_row_at(x, row->first_part);
    const heft_ix_view *view = heft_ix_view_of(x, row->first_part);
    const uint64_t *strides = view ? heft_ix_strides(x, view) : NULL;
    if (part->encoding != HEFT_RAW)
        return fail(w, HEFT_E_UNSUPPORTED,
                    "compressed tensors cannot be rearranged; convert the file to safetensors "
                    "first");
    if (type->block_elems > 1 && (strides || part->flags & HEFT_P_RESTORED))
        return fail(w, HEFT_E_UNSUPPORTED, "its blocks cannot be rearranged");
    v.dtype = v.as = row->dtype;
    if (row->rank)
        memcpy(v.dims, heft_ix_dims(x, tensor), row->rank * sizeof *v.dims);
    HEFT_TRY(set_axes(w, &v, &p, type, strides));
    HEFT_TRY(add_piece(w, &p));
    return add_value(w, &w->values, &v);
}

/* ---- one dimension becomes two ---- */

static void insert_dim(heft_map_piece *p, uint64_t dim)
{
    memmove(p->start + dim + 1, p->start + dim,
            (size_t)(HEFT_MAP_RANK - 1 - dim) * sizeof *p->start);
    p->start[dim] = 0;
    for (uint32_t i = 0; i < p->axes; i++)
        p->axis[i].dim = (uint8_t)(p->axis[i].dim + (p->axis[i].dim >= dim));
}

static heft_status insert_value_dim(const heft_map_work *w, heft_map_value *v, uint64_t dim,
                                    uint64_t size)
{
    if (v->rank == HEFT_MAP_RANK || dim > v->rank)
        return fail(w, HEFT_E_FORMAT, "a new dimension has no place");
    memmove(v->dims + dim + 1, v->dims + dim, (size_t)(v->rank - dim) * sizeof *v->dims);
    v->dims[dim] = size;
    v->rank++;
    return HEFT_OK;
}

/* Move the axes of dimension `dim + 1` whose steps are multiples of `inner` to dimension `dim`; an
 * axis that passes over the border becomes two. */
static bool fold_piece(heft_map_piece *p, uint64_t dim, uint64_t inner)
{
    uint64_t start = p->start[dim + 1], extent;
    p->start[dim] = heft_div(start, inner);
    extent = p->start[dim + 1] = start - p->start[dim] * inner;
    for (uint32_t i = 0, end = p->axes; i < end; i++) {
        heft_map_axis *a = &p->axis[i];
        if (a->dim != dim + 1)
            continue;
        uint64_t times = heft_div(a->step, inner), part;
        if (times && times * inner == a->step) {
            a->dim = (uint8_t)dim;
            a->step = times;
            continue;
        }
        if (a->count > 1 && a->count * a->step > inner) {
            part = heft_div(inner, a->step);
            if (part * a->step != inner || heft_div(a->count, part) * part != a->count ||
                p->axes == HEFT_MAP_AXES)
                return false;
            p->axis[p->axes++] = (heft_map_axis){ heft_div(a->count, part), 1, a->stride * part,
                                                  (uint8_t)dim };
            a->count = part;
        }
        extent += a->count ? (a->count - 1) * a->step : 0;
    }
    return extent < inner;
}

static heft_status fold(heft_map_work *w, heft_map_value *v, const uint64_t *args)
{
    uint64_t dim = args[0], outer = args[1], inner = args[2];
    HEFT_TRY(check_dim(w, v, dim));
    uint64_t size = v->dims[dim], known = outer == HEFT_NOWHERE ? inner : outer, product;
    if (!known || known == HEFT_NOWHERE)
        return fail(w, HEFT_E_FORMAT, "it cannot be divided by 0");
    uint64_t other = heft_div(size, known);
    if (other * known != size)
        return heft_error_plain(w->err, HEFT_E_FORMAT,
                                "tensor %q (line %U of the map): dimension %U is %U, which is not "
                                "a multiple of %U",
                                w->name, (uint64_t)w->line, dim, size, known);
    outer = outer == HEFT_NOWHERE ? other : outer;
    inner = inner == HEFT_NOWHERE ? other : inner;
    if (!heft_mul(&product, outer, inner) || product != size)
        return fail(w, HEFT_E_FORMAT, "the sizes of the map do not give its dimension");
    HEFT_TRY(insert_value_dim(w, v, dim, outer));
    v->dims[dim + 1] = inner;
    for (uint32_t i = 0; i < v->pieces; i++) {
        heft_map_piece *p = piece_at(w, v->first + i);
        insert_dim(p, dim);
        if (inner && !fold_piece(p, dim, inner))
            return fail(w, HEFT_E_UNSUPPORTED, "its pieces cannot be divided so");
    }
    return HEFT_OK;
}

static heft_status merge(heft_map_work *w, heft_map_value *v, const uint64_t *args)
{
    uint64_t dim = args[0];
    HEFT_TRY(check_dim(w, v, dim));
    HEFT_TRY(check_dim(w, v, dim + 1));
    uint64_t outer = v->dims[dim], inner = v->dims[dim + 1];
    if ((args[1] != HEFT_NOWHERE && args[1] != outer) ||
        (args[2] != HEFT_NOWHERE && args[2] != inner))
        return fail(w, HEFT_E_FORMAT, "the sizes of the map are not those of its dimensions");
    if (!heft_mul(&v->dims[dim], outer, inner))
        return fail(w, HEFT_E_LIMIT, "a dimension is too large");
    v->rank--;
    memmove(v->dims + dim + 1, v->dims + dim + 2, (size_t)(v->rank - dim - 1) * sizeof *v->dims);
    for (uint32_t i = 0; i < v->pieces; i++) {
        heft_map_piece *p = piece_at(w, v->first + i);
        p->start[dim] = p->start[dim] * inner + p->start[dim + 1];
        memmove(p->start + dim + 1, p->start + dim + 2,
                (size_t)(HEFT_MAP_RANK - dim - 2) * sizeof *p->start);
        for (uint32_t k = 0; k < p->axes; k++) {
            heft_map_axis *a = &p->axis[k];
            a->step *= a->dim == dim ? inner : 1;
            a->dim = (uint8_t)(a->dim - (a->dim > dim));
        }
    }
    return HEFT_OK;
}

static heft_status swap(heft_map_work *w, heft_map_value *v, const uint64_t *args)
{
    uint64_t a = args[0], b = args[1], size;
    HEFT_TRY(check_dim(w, v, a > b ? a : b));
    size = v->dims[a];
    v->dims[a] = v->dims[b];
    v->dims[b] = size;
    for (uint32_t i = 0; i < v->pieces; i++) {
        heft_map_piece *p = piece_at(w, v->first + i);
        uint64_t start = p->start[a];
        p->start[a] = p->start[b];
        p->start[b] = start;
        for (uint32_t k = 0; k < p->axes; k++) {
            uint8_t *d = &p->axis[k].dim;
            *d = (uint8_t)(*d == a ? b : *d == b ? a : *d);
        }
    }
    return HEFT_OK;
}

/* ---- ranges of a dimension ---- */

static uint64_t extent_of(const heft_map_piece *p, uint64_t dim)
{
    uint64_t extent = 0;
    for (uint32_t i = 0; i < p->axes; i++)
        if (p->axis[i].dim == dim && p->axis[i].count)
            extent += (p->axis[i].count - 1) * p->axis[i].step;
    return extent;
}

/* Return the axis of the dimension with the largest step that has several. */
static heft_map_axis *widest_axis(heft_map_piece *p, uint64_t dim)
{
    heft_map_axis *widest = NULL;
    for (uint32_t i = 0; i < p->axes; i++) {
        heft_map_axis *a = &p->axis[i];
        if (a->dim == dim && a->count > 1 && (!widest || a->step > widest->step))
            widest = a;
    }
    return widest;
}

/* Divide a piece that passes over `at`: what is before, the step that contains it, and the rest are
 * pieces of their own, which are appended to w->pieces. */
static heft_status divide(heft_map_work *w, heft_map_piece p, uint64_t dim, uint64_t at)
{
    heft_map_axis *a = widest_axis(&p, dim);
    uint64_t all = a->count, first = p.first, start = p.start[dim], step = a->step;
    uint64_t inner = extent_of(&p, dim) - (all - 1) * step;
    if (inner >= step)
        return fail(w, HEFT_E_UNSUPPORTED, "its pieces cannot be divided so");
    uint64_t before = at > start + inner ? heft_div(at - start - inner - 1, step) + 1 : 0;
    uint64_t until = heft_div(at - start + step - 1, step); /* first step from `at` on */
    const uint64_t ends[] = { before, until < all ? until : all, all };
    for (uint64_t i = 0, from = 0; i < 3; from = ends[i++]) {
        a->count = ends[i] - from;
        p.first = first + from * a->stride;
        p.start[dim] = start + from * step;
        if (ends[i] > from)
            HEFT_TRY(add_piece(w, &p));
    }
    return HEFT_OK;
}

/* Set *out to the part of a value within [from, to) of a dimension. */
static heft_status cut(heft_map_work *w, const heft_map_value *v, uint64_t dim, uint64_t from,
                       uint64_t to, heft_map_value *out)
{
    heft_vec kept = { .ptr = NULL };
    uint32_t all = w->pieces.len;
    heft_status st = HEFT_OK;
    for (uint32_t i = v->first, left = v->pieces; !st && (left || w->pieces.len > all);) {
        heft_map_piece p = left ? *piece_at(w, i) : *piece_at(w, w->pieces.len - 1);
        if (left)
            i++, left--;
        else
            w->pieces.len--;
        uint64_t start = p.start[dim], last = start + extent_of(&p, dim);
        if (last < from || start >= to)
            continue;
        if (start < from || last >= to) {
            st = divide(w, p, dim, start < from ? from : to);
            continue;
        }
        p.start[dim] -= from;
        st = heft_vec_add(w->mem, &kept, &p, sizeof p) ? HEFT_OK : no_memory(w);
    }
    *out = *v;
    out->first = w->pieces.len;
    out->pieces = kept.len;
    out->dims[dim] = to - from;
    for (uint32_t i = 0; i < kept.len && !st; i++)
        st = add_piece(w, (const heft_map_piece *)kept.ptr + i);
    heft_vec_free(w->mem, &kept, sizeof(heft_map_piece));
    return st;
}

static heft_status resize(heft_map_work *w, heft_map_value *v, const uint64_t *args)
{
    uint64_t dim = args[0], size = v->rank > dim ? v->dims[dim] : 0;
    heft_map_value part;
    HEFT_TRY(check_dim(w, v, dim));
    if (args[1] != HEFT_NOWHERE && args[1] != size)
        return fail(w, HEFT_E_FORMAT, "its size is not the one in the map");
    if (args[2] == HEFT_NOWHERE)
        return fail(w, HEFT_E_FORMAT, "the map does not say its original size");
    if (args[2] < size) {
        HEFT_TRY(cut(w, v, dim, 0, args[2], &part));
        *v = part;
    }
    v->dims[dim] = args[2];
    return HEFT_OK;
}

/* ---- several values ---- */

static bool same_but(const heft_map_value *a, const heft_map_value *b, uint64_t dim)
{
    bool same = a->rank == b->rank && a->dtype == b->dtype && a->as == b->as &&
                a->added == b->added;
    for (uint32_t d = 0; same && d < a->rank; d++)
        same = d == dim || a->dims[d] == b->dims[d];
    return same;
}

/* Copy the pieces of a value to the end of all, `offset` further along the dimension. */
static heft_status append_pieces(heft_map_work *w, const heft_map_value *v, uint64_t dim,
                                 uint64_t offset)
{
    heft_status st = HEFT_OK;
    for (uint32_t i = 0; i < v->pieces && !st; i++) {
        st = add_piece(w, piece_at(w, v->first + i));
        if (!st)
            piece_at(w, w->pieces.len - 1)->start[dim] += offset;
    }
    return st;
}

static heft_status concat(heft_map_work *w, uint64_t dim, uint32_t from, uint32_t count,
                          const uint64_t *sizes, uint32_t size_count, heft_map_value *out)
{
    const heft_map_value *all = (const heft_map_value *)w->values.ptr + from;
    heft_status st = check_dim(w, all, dim);
    *out = all[0];
    out->first = w->pieces.len;
    for (uint64_t at = 0, i = 0; i < count && !st; i++) {
        if (!same_but(&all[i], &all[0], dim))
            return fail(
                w, HEFT_E_FORMAT,
                "its type or shape is not that of the tensors it joins; a conversion before can "
                "cast them to one type");
        if (size_count && (i >= size_count || all[i].dims[dim] != sizes[i]))
            return fail(w, HEFT_E_FORMAT, "the sizes of the map are not those of the tensors");
        st = append_pieces(w, &all[i], dim, at);
        if (!heft_add(&at, at, all[i].dims[dim]))
            return fail(w, HEFT_E_LIMIT, "a dimension is too large");
        out->dims[dim] = at;
    }
    out->pieces = w->pieces.len - out->first;
    return st;
}

heft_status heft_map_stack(heft_map_work *w, uint64_t dim, uint32_t from, uint32_t count,
                           heft_map_value *out)
{
    heft_map_value *all = (heft_map_value *)w->values.ptr + from;
    for (uint32_t i = 0; i < count; i++) {
        HEFT_TRY(insert_value_dim(w, &all[i], dim, 1));
        for (uint32_t k = 0; k < all[i].pieces; k++)
            insert_dim(piece_at(w, all[i].first + k), dim);
    }
    return concat(w, dim, from, count, NULL, 0, out);
}

static void remove_dim(heft_map_work *w, heft_map_value *v, uint64_t dim)
{
    v->rank--;
    memmove(v->dims + dim, v->dims + dim + 1, (size_t)(v->rank - dim) * sizeof *v->dims);
    for (uint32_t i = 0; i < v->pieces; i++) {
        heft_map_piece *p = piece_at(w, v->first + i);
        uint32_t n = 0;
        memmove(p->start + dim, p->start + dim + 1,
                (size_t)(HEFT_MAP_RANK - 1 - dim) * sizeof *p->start);
        for (uint32_t k = 0; k < p->axes; k++)
            if (p->axis[k].dim != dim) {
                p->axis[n] = p->axis[k];
                p->axis[n].dim = (uint8_t)(p->axis[n].dim - (p->axis[n].dim > dim));
                n++;
            }
        p->axes = n;
    }
}

/* Divide a value into ranges of a dimension, which disappears if `is_taken`. */
static heft_status divide_value(heft_map_work *w, const heft_map_value *v, uint64_t dim,
                                const uint64_t *sizes, uint64_t count, bool is_taken)
{
    uint64_t equal = sizes ? 0 : heft_div(v->dims[dim], count), at = 0;
    if (!sizes && equal * count != v->dims[dim])
        return heft_error_plain(w->err, HEFT_E_FORMAT,
                                "tensor %q (line %U of the map): dimension %U is %U, which does "
                                "not divide into %U parts",
                                w->name, (uint64_t)w->line, dim, v->dims[dim], count);
    for (uint64_t i = 0; i < count; i++) {
        heft_map_value part;
        uint64_t size = sizes ? sizes[i] : equal;
        if (size > v->dims[dim] - at)
            return fail(w, HEFT_E_FORMAT, "the sizes of the map exceed its dimension");
        HEFT_TRY(cut(w, v, dim, at, at + size, &part));
        if (is_taken)
            remove_dim(w, &part, dim);
        part.index = is_taken ? (uint32_t)i : part.index;
        HEFT_TRY(add_value(w, &w->next, &part));
        at += size;
    }
    return at == v->dims[dim]
               ? HEFT_OK
               : fail(w, HEFT_E_FORMAT, "the sizes of the map are not its dimension");
}

/* Make the values of w->next those of w. */
static void use_next(heft_map_work *w)
{
    heft_vec done = w->values;
    w->values = w->next;
    w->next = done;
    w->next.len = 0;
}

static heft_status take_apart(heft_map_work *w, heft_map_kind kind, const uint64_t *args,
                              uint32_t arg_count, uint32_t count)
{
    heft_status st = HEFT_OK;
    for (uint32_t i = 0; i < w->values.len && !st; i++) {
        heft_map_value v = ((const heft_map_value *)w->values.ptr)[i];
        bool is_split = kind == HEFT_MAP_SPLIT;
        HEFT_TRY(check_dim(w, &v, args[0]));
        HEFT_TRY(check_blocks(w, kind, &v, args));
        if (v.dims[args[0]] > MOST_TENSORS && !is_split)
            return fail(w, HEFT_E_LIMIT, "too many tensors would be made of it");
        if (is_split && arg_count > 1)
            st = divide_value(w, &v, args[0], args + 1, arg_count - 1, false);
        else if (is_split)
            st = divide_value(w, &v, args[0], NULL, count ? count : 1, false);
        else
            st = v.dims[args[0]] ? divide_value(w, &v, args[0], NULL, v.dims[args[0]], true)
                                 : fail(w, HEFT_E_FORMAT, "a dimension is 0");
        if (!st && kind == HEFT_MAP_UNSTACK && arg_count > 1 && args[1] != v.dims[args[0]])
            st = fail(w, HEFT_E_FORMAT, "its dimension is not the number in the map");
    }
    use_next(w);
    return st;
}

/* ---- all operations ---- */

/* Add a constant, whose negative numbers are those of two's complement. */
static heft_status add(const heft_map_work *w, heft_map_value *v, uint64_t constant)
{
    uint64_t sum = (uint64_t)v->added + constant;
    if (constant + MOST_ADDED > 2 * MOST_ADDED || sum + MOST_ADDED > 2 * MOST_ADDED)
        return fail(w, HEFT_E_UNSUPPORTED, "the constant of the map is too large for f32");
    v->added = (int64_t)sum;
    return HEFT_OK;
}

static heft_status change(heft_map_work *w, heft_map_kind kind, heft_map_value *v,
                          const uint64_t *args)
{
    if (kind == HEFT_MAP_SWAP_NUMBERS)
        return has_blocks(v) ? HEFT_OK : swap(w, v, args);
    HEFT_TRY(check_blocks(w, kind, v, args));
    if (kind == HEFT_MAP_FOLD)
        return fold(w, v, args);
    if (kind == HEFT_MAP_MERGE)
        return merge(w, v, args);
    if (kind == HEFT_MAP_SWAP)
        return swap(w, v, args);
    if (kind == HEFT_MAP_RESIZE)
        return resize(w, v, args);
    bool is_float = v->dtype == HEFT_F32 || v->dtype == HEFT_F16 || v->dtype == HEFT_BF16;
    if (kind == HEFT_MAP_F32 && is_float)
        v->as = HEFT_F32;
    if (kind == HEFT_MAP_ADD && !is_float)
        return fail(w, HEFT_E_UNSUPPORTED, "a constant is added to f32, f16 and bf16 only");
    return kind == HEFT_MAP_ADD ? add(w, v, args[0]) : HEFT_OK;
}

heft_status heft_map_operate(heft_map_work *w, heft_map_kind kind, uint32_t only,
                             const uint64_t *args, uint32_t arg_count, uint32_t count)
{
    heft_map_value one;
    if (kind == HEFT_MAP_SPLIT || kind == HEFT_MAP_TAKE || kind == HEFT_MAP_UNSTACK)
        return take_apart(w, kind, args, arg_count, count);
    if (kind == HEFT_MAP_CONCAT || kind == HEFT_MAP_JOIN) {
        HEFT_TRY(kind == HEFT_MAP_JOIN
                     ? heft_map_stack(w, args[0], 0, w->values.len, &one)
                     : concat(w, args[0], 0, w->values.len, args + 1, arg_count - 1, &one));
        w->values.len = 0;
        return add_value(w, &w->values, &one);
    }
    heft_status st = HEFT_OK;
    for (uint32_t i = 0; i < w->values.len && !st; i++)
        if (only == HEFT_MAP_ALL || only == i)
            st = change(w, kind, (heft_map_value *)w->values.ptr + i, args);
    return st;
}
