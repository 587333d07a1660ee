/* onnx_nodes.c - weights of ONNX that a node decodes, as the reader of ONNX states them: integers
 * or floats of 8 bits or less, a scale and perhaps a zero point.
 *
 *   DequantizeLinear  (x - zero) * scale; one scale, one for each index of an axis, or one for each
 *                     block of an axis
 *   MatMulNBits       the same for a matrix [N, K], whose rows are blocks of packed codes; g_idx
 *                     may name another block for a column, whose scale and zero point count
 *
 * The matrices of a weight are chosen so that the axis is their rows, or their columns if the axis
 * is the last one. */
#include "base/checked_math.h"
#include "base/text.h"
#include "model/values.h"
#include "scheme/encoding.h"
#include "scheme/packed.h"

/* ---- shapes ---- */

static bool of_matmul(const heft_decoding *d)
{
    return heft_str_is(heft_lit(d->variant), "MatMulNBits");
}

static uint64_t product(const uint64_t *dims, uint32_t from, uint32_t end)
{
    uint64_t n = 1;
    for (uint32_t i = from; i < end; i++)
        n *= dims[i];
    return n;
}

/* Take the shape of the weight; packed types state it. */
static heft_status take_dims(heft_decoding *d, heft_error *err)
{
    const heft_decoding_part *w = &d->part[HEFT_ROLE_WEIGHT];
    heft_value v;
    uint64_t elements, bits;
    bool is_packed = d->bits && heft_ix_find_attribute(&v, &d->f->x, w->tensor, "onnx.shape");
    bool is_shape = is_packed && v.kind == HEFT_KIND_ARRAY && v.as.array.dtype == HEFT_U64 &&
                    v.as.array.count == w->rank;
    if (w->rank > HEFT_LOGICAL_RANK || (d->bits && !is_shape))
        return heft_decoding_refuse(d, HEFT_ROLE_WEIGHT, "has too many dimensions, or no shape",
                                    err);
    d->rank = w->rank;
    for (uint32_t i = 0; i < w->rank; i++)
        d->dims[i] = is_packed ? heft_value_element(&v, i).as.u : w->dims[i];
    bool fits = heft_product(&elements, d->dims, d->rank) && elements <= 8 * w->bytes;
    return fits && (!d->bits || (heft_mul(&bits, elements, d->bits) && bits <= 8 * w->bytes))
               ? HEFT_OK
               : heft_decoding_refuse(d, HEFT_ROLE_WEIGHT, "has fewer numbers than its shape", err);
}

/* Set matrices and grid by the axis. */
static heft_status set_axis(heft_decoding *d, heft_error *err)
{
    const heft_decoding_part *s = &d->part[HEFT_ROLE_SCALE];
    uint64_t block = d->block[1], scales;
    int64_t axis = heft_onnx_number(&d->f->x, d->part[HEFT_ROLE_WEIGHT].tensor, "onnx.axis");
    axis += axis < 0 ? d->rank : 0;
    bool is_single = s->elements == 1 && !block;
    if (is_single)
        axis = d->rank ? d->rank - 1 : 0;
    if (axis < 0 || (axis >= d->rank && d->rank))
        return heft_decoding_refuse(d, HEFT_ROLE_SCALE, "belongs to an axis that is not there",
                                    err);
    uint32_t at = (uint32_t)axis;
    bool is_last = at + 1 >= d->rank;
    uint64_t size = d->rank ? d->dims[at] : 1, before = product(d->dims, 0, at);
    uint64_t groups = is_single ? 1 : block ? heft_div_up(size, block) : size;
    uint64_t width = is_single ? size : block ? block : 1;
    heft_scale_grid *g = &d->grid;
    d->stack = is_last ? 1 : before;
    d->rows = is_last ? before : size;
    d->columns = is_last ? size : product(d->dims, at + 1, d->rank);
    *g = is_last ? (heft_scale_grid){ .down = block ? d->rows : 1,
                                      .across = groups,
                                      .height = block ? 1 : d->rows,
                                      .width = width }
                 : (heft_scale_grid){ .down = groups,
                                      .across = block ? d->columns : 1,
                                      .height = width,
                                      .width = block ? 1 : d->columns };
    g->height += !g->height;
    g->width += !g->width;
    g->matrix = block && !is_last ? g->down * g->across : 0;
    scales = g->down * g->across * (g->matrix ? d->stack : 1);
    return scales == s->elements || !product(d->dims, 0, d->rank)
               ? HEFT_OK
               : heft_decoding_refuse(d, HEFT_ROLE_SCALE,
                                      "does not have a number for each index or block of the axis",
                                      err);
}

/* Rows [N, blocks, bytes of a block]; the last block may have more codes than columns are left. */
static heft_status set_matmul(heft_decoding *d, heft_error *err)
{
    const heft_decoding_part *w = &d->part[HEFT_ROLE_WEIGHT], *s = &d->part[HEFT_ROLE_SCALE];
    int64_t columns = heft_onnx_number(&d->f->x, w->tensor, "onnx.columns");
    uint64_t block = d->block[1], blocks = heft_decoding_dim(w, 1);
    bool is_good = w->rank == 3 && w->dtype == HEFT_U8 && d->bits && d->bits <= 8 && block &&
                   columns > 0 && heft_div_up((uint64_t)columns, block) == blocks &&
                   block <= UINT32_MAX && block * d->bits % 8 == 0 &&
                   heft_decoding_dim(w, 0) == block * d->bits / 8;
    if (!is_good)
        return heft_decoding_refuse(d, HEFT_ROLE_WEIGHT, "has other blocks than its node states",
                                    err);
    d->rank = 2;
    d->dims[0] = d->rows = w->dims[0];
    d->dims[1] = d->columns = (uint64_t)columns;
    d->grid = (heft_scale_grid){ .down = d->rows, .across = blocks, .height = 1, .width = block };
    return s->elements == d->rows * blocks
               ? HEFT_OK
               : heft_decoding_refuse(d, HEFT_ROLE_SCALE, "does not have a number for each block",
                                      err);
}

/* Return the zero points of a row of the grid, in elements of the part: packed rows end with a
 * byte. */
static uint64_t zero_line(const heft_decoding *d, uint32_t bits)
{
    uint64_t across = d->grid.across;
    return of_matmul(d) && bits ? heft_div(heft_div(across * bits + 7, 8) * 8, bits) : across;
}

/* Bits of zero points that are packed; 0: they are numbers, or there are none. */
static uint32_t zero_bits(const heft_decoding *d)
{
    const heft_decoding_part *z = heft_decoding_part_of(d, HEFT_ROLE_ZERO_POINT);
    bool is_signed;
    if (!z)
        return 0;
    return of_matmul(d) ? (z->dtype == HEFT_U8 ? d->bits : 0)
                        : heft_onnx_packed_bits(&d->f->x, z->tensor, &is_signed);
}

static heft_status check_zero(const heft_decoding *d, heft_error *err)
{
    const heft_decoding_part *z = heft_decoding_part_of(d, HEFT_ROLE_ZERO_POINT);
    const heft_decoding_part *s = &d->part[HEFT_ROLE_SCALE];
    uint32_t bits = zero_bits(d);
    uint64_t lines = heft_div(s->elements, d->grid.across ? d->grid.across : 1);
    uint64_t bytes = bits ? heft_div(lines * zero_line(d, bits) * bits + 7, 8) : 0;
    return !z || (bits ? z->bytes == bytes : z->elements == s->elements)
               ? HEFT_OK
               : heft_decoding_refuse(d, HEFT_ROLE_ZERO_POINT,
                                      "does not have a number for each scale", err);
}

/* The blocks of the columns, or of all codes of the row. */
static heft_status check_index(const heft_decoding *d, heft_error *err)
{
    const heft_decoding_part *g = heft_decoding_part_of(d, HEFT_ROLE_GROUP_INDEX);
    bool is_good = !g || (g->dtype == HEFT_I32 && (g->elements == d->columns ||
                                                   g->elements == d->grid.across * d->grid.width));
    return is_good ? HEFT_OK
                   : heft_decoding_refuse(d, HEFT_ROLE_GROUP_INDEX,
                                          "does not have a number for each column", err);
}

static heft_status prepare(heft_decoding *d, heft_error *err)
{
    bool is_signed;
    if (!of_matmul(d))
        d->bits = heft_onnx_packed_bits(&d->f->x, d->part[HEFT_ROLE_WEIGHT].tensor, &is_signed);
    heft_status st = of_matmul(d) ? set_matmul(d, err) : take_dims(d, err);
    if (!st && !of_matmul(d))
        st = set_axis(d, err);
    heft_dtype t = d->part[HEFT_ROLE_SCALE].dtype;
    d->dtype = t == HEFT_F16 || t == HEFT_BF16 ? t : HEFT_F32;
    if (!st)
        st = check_zero(d, err);
    return st ? st : check_index(d, err);
}

/* ---- numbers ---- */

/* Unpack codes from code number `first` on. */
static bool read_codes(heft_decoder *r, heft_role role, uint64_t first, uint32_t bits, size_t count,
                       float *out)
{
    const heft_decoding *d = r->d;
    uint64_t bit = first * bits, end = bit + (uint64_t)count * bits;
    bool is_signed = false;
    const uint8_t *p = heft_decoder_bytes(r, role, bit / 8, (size_t)((end + 7) / 8 - bit / 8));
    if (!p)
        return false;
    heft_bits_unpack(out, p, bit % 8, bits, count);
    if (!of_matmul(d))
        (void)heft_onnx_packed_bits(&d->f->x, d->part[role].tensor, &is_signed);
    float half = (float)(1U << (bits - 1));
    for (size_t i = 0; is_signed && i < count; i++)
        out[i] -= out[i] >= half ? 2 * half : 0;
    return true;
}

static bool read_numbers(heft_decoder *r, uint64_t row, uint64_t column, size_t count, float *out)
{
    const heft_decoding *d = r->d;
    uint64_t line = of_matmul(d) ? d->grid.across * d->grid.width : d->columns;
    uint64_t first = row * line + column;
    return d->bits ? read_codes(r, HEFT_ROLE_WEIGHT, first, d->bits, count, out)
                   : heft_decoder_floats(r, HEFT_ROLE_WEIGHT, first, count, out);
}

/* Set zero[i] for `n` groups of a row, from group `first` on. */
static bool read_zeros(heft_decoder *r, uint64_t row, uint64_t first, size_t n, float *zero)
{
    const heft_decoding *d = r->d;
    uint32_t bits = zero_bits(d);
    uint64_t line = heft_div(row - r->matrix * d->rows, d->grid.height);
    uint64_t lines = d->grid.matrix ? r->matrix * d->grid.down + line : line;
    if (bits)
        return read_codes(r, HEFT_ROLE_ZERO_POINT, lines * zero_line(d, bits) + first, bits, n,
                          zero);
    if (heft_decoding_part_of(d, HEFT_ROLE_ZERO_POINT))
        return heft_decoder_floats(r, HEFT_ROLE_ZERO_POINT, lines * d->grid.across + first, n,
                                   zero);
    for (size_t i = 0; i < n; i++)
        zero[i] = of_matmul(d) ? (float)(1U << (d->bits - 1)) : 0;
    return true;
}

/* Scale codes whose blocks are named one by one. */
static heft_status scale_by_index(heft_decoder *r, uint64_t row, uint64_t column, size_t count,
                                  float *out)
{
    enum { BYTES = 4 };
    const heft_decoding *d = r->d;
    float scale = 0, zero = 0;
    uint64_t block = UINT64_MAX, across = d->grid.across;
    const uint8_t *index = heft_decoder_bytes(r, HEFT_ROLE_GROUP_INDEX, column * BYTES,
                                              count * BYTES);
    for (size_t i = 0; index && i < count; i++) {
        uint32_t next = heft_le32(index + i * BYTES);
        if (next >= across)
            return r->st = heft_decoding_refuse(d, HEFT_ROLE_GROUP_INDEX,
                                                "names a block that is not there", r->err);
        bool is_known = next == block;
        if (!is_known &&
            (!heft_decoder_floats(r, HEFT_ROLE_SCALE, row * across + next, 1, &scale) ||
             !read_zeros(r, row, next, 1, &zero)))
            return r->st;
        block = next;
        out[i] = (out[i] - zero) * scale;
    }
    return index ? HEFT_OK : r->st;
}

static heft_status decode(heft_decoder *r, uint64_t row, uint64_t column, size_t count, float *out)
{
    const heft_decoding *d = r->d;
    float *scale = r->group_scale, *zero = r->group_zero;
    if (!read_numbers(r, row, column, count, out))
        return r->st;
    if (heft_decoding_part_of(d, HEFT_ROLE_GROUP_INDEX))
        return scale_by_index(r, row, column, count, out);
    uint64_t first = heft_div(column, d->grid.width);
    size_t n = heft_decoder_scales(r, HEFT_ROLE_SCALE, row, column, count, scale);
    if (!n || !read_zeros(r, row, first, n, zero))
        return r->st;
    for (size_t i = 0, g = 0, end; i < count; i = end, g++) {
        uint64_t left = (first + g + 1) * d->grid.width - column;
        end = left < count ? (size_t)left : count;
        for (size_t k = i; k < end; k++)
            out[k] = (out[k] - zero[g]) * scale[g];
    }
    return HEFT_OK;
}

const heft_scheme_decoder heft_decoder_of_onnx = { prepare, decode, NULL };

/* ---- integers ---- */

/* Return the code that stands for 0 if there is no zero point, or if it is an ordinary one; -1:
 * numbers are no integers. */
static int32_t middle_of(const heft_decoding *d)
{
    enum { HALF_BYTE = 128 };
    heft_dtype t = d->part[HEFT_ROLE_WEIGHT].dtype;
    bool is_signed;
    if (of_matmul(d))
        return 1 << (d->bits - 1);
    if (!d->bits)
        return t == HEFT_I8 ? 0 : t == HEFT_U8 ? HALF_BYTE : -1;
    (void)heft_onnx_packed_bits(&d->f->x, d->part[HEFT_ROLE_WEIGHT].tensor, &is_signed);
    return is_signed ? 0 : 1 << (d->bits - 1);
}

/* Return whether zero points are in the middle of the codes, so that integers have a sign. */
static bool are_middle(const heft_decoding *d, uint32_t middle)
{
    const heft_decoding_part *z = heft_decoding_part_of(d, HEFT_ROLE_ZERO_POINT);
    uint32_t bits = zero_bits(d);
    if (!z) /* DequantizeLinear takes 0 */
        return of_matmul(d) || !middle;
    if (!bits) {
        heft_code_lines bytes = { 1, z->elements, z->elements, 8 };
        return heft_dtype_size(z->dtype) == 1 && heft_integer_zeros_are(d, bytes, middle);
    }
    uint64_t across = d->grid.across ? d->grid.across : 1;
    uint64_t lines = heft_div(d->part[HEFT_ROLE_SCALE].elements, across);
    heft_code_lines rows = { lines, heft_div(zero_line(d, bits) * bits + 7, 8), across, bits };
    heft_code_lines all = { 1, z->bytes, lines * across, bits };
    return heft_integer_zeros_are(d, of_matmul(d) ? rows : all, middle);
}

static const char *check(const heft_decoding *d, uint32_t *bits, uint64_t *run)
{
    int32_t middle = middle_of(d);
    *bits = d->bits ? d->bits : 8;
    *run = heft_integer_run(d);
    if (*bits != 4 && *bits != 8)
        return "its integers have neither 4 nor 8 bits";
    if (middle < 0)
        return "its numbers are not integers";
    if (heft_decoding_part_of(d, HEFT_ROLE_GROUP_INDEX))
        return "its columns are not in the order of their groups";
    return are_middle(d, (uint32_t)middle) ? NULL : "it has a zero point, and Burn has none";
}

static bool integers(heft_decoder *r, uint64_t row, uint64_t column, size_t count, float *out)
{
    float middle = (float)middle_of(r->d);
    if (!read_numbers(r, row, column, count, out))
        return false;
    for (size_t i = 0; i < count; i++)
        out[i] -= middle;
    return true;
}

static bool scale_of(heft_decoder *r, uint64_t row, uint64_t column, float *out)
{
    return heft_decoder_scales(r, HEFT_ROLE_SCALE, row, column, 1, out);
}

const heft_integer_form heft_integers_of_onnx = { check, integers, scale_of };
