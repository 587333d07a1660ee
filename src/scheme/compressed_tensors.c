/* compressed_tensors.c - integers packed into 32-bit words along a row, or integers of 8 bits, with
 * scales and perhaps zero points: (q - zero point) * scale. */
#include "base/checked_math.h"
#include "base/text.h"
#include "scheme/code_tables.h"
#include "scheme/encoding.h"
#include "scheme/packed.h"

/* ---- shapes ---- */

enum { WORD_BITS = 32, WORD = 4, MOST_BITS = 8 };

static uint64_t words_of(uint64_t elements, uint32_t bits, bool is_aligned)
{
    uint64_t per_word = WORD_BITS / bits;
    return is_aligned ? heft_div_up(elements, per_word) : heft_div_up(elements * bits, WORD_BITS);
}

/* The shape is stored as a tensor: rows and columns of each matrix. */
static heft_status read_columns(uint64_t *out, const heft_decoding *d, heft_error *err)
{
    const heft_decoding_part *s = heft_decoding_part_of(d, HEFT_ROLE_SHAPE);
    const heft_decoding_part *w = &d->part[HEFT_ROLE_WEIGHT];
    uint8_t raw[HEFT_LOGICAL_RANK * sizeof(uint64_t)];
    uint64_t shape[HEFT_LOGICAL_RANK] = { 0 }, rank = s ? s->elements : 0;
    bool is_list = rank == 2 || (rank == w->rank && rank <= HEFT_LOGICAL_RANK);
    if (!s || !is_list || s->bytes > sizeof raw)
        return heft_decoding_refuse(d, HEFT_ROLE_SHAPE, "does not have a number for each dimension",
                                    err);
    heft_status st = heft_part_read(raw, d->f, s->part, 0, (size_t)s->bytes, err);
    if (!st && !heft_dtype_cast(shape, HEFT_U64, raw, s->dtype, (size_t)rank))
        st = heft_decoding_refuse(d, HEFT_ROLE_SHAPE, "does not have integers", err);
    for (uint64_t i = 0; i < rank; i++)
        shape[i] = heft_le64((const uint8_t *)&shape[i]);
    *out = shape[rank - 1];
    bool is_same = shape[rank - 2] == heft_decoding_dim(w, 1);
    for (uint64_t i = 0; i + 2 < rank; i++)
        is_same = is_same && shape[i] == w->dims[i];
    if (!st && (!is_same || !*out || *out > UINT32_MAX))
        st = heft_decoding_refuse(d, HEFT_ROLE_SHAPE, "contradicts the weight", err);
    return st;
}

/* Numbers of 3, 5, 6 and 7 bits were once kept inside of words, and are a dense stream now: the
 * count of words tells. */
static heft_status set_packing(heft_decoding *d, heft_error *err)
{
    uint64_t words = heft_decoding_dim(&d->part[HEFT_ROLE_WEIGHT], 0);
    bool is_dense, is_aligned;
    if (!d->bits) /* numbers that fill whole words have one possible width */
        for (uint32_t b = 2; b <= MOST_BITS; b *= 2)
            d->bits = words_of(d->columns, b, true) == words ? b : d->bits;
    if (!d->bits || d->bits > MOST_BITS)
        return heft_decoding_refuse(d, HEFT_ROLE_WEIGHT,
                                    "has numbers of unknown width: config.json should state "
                                    "num_bits",
                                    err);
    is_dense = words_of(d->columns, d->bits, false) == words;
    is_aligned = words_of(d->columns, d->bits, true) == words;
    if (!is_dense && !is_aligned)
        return heft_decoding_refuse(d, HEFT_ROLE_SHAPE,
                                    "and the bits of the numbers give another count of words than "
                                    "the weight has",
                                    err);
    if (is_dense && is_aligned && WORD_BITS % d->bits)
        return heft_decoding_refuse(d, HEFT_ROLE_WEIGHT,
                                    "may have its bits packed in two ways, and nothing tells which",
                                    err);
    d->is_aligned = is_aligned;
    return HEFT_OK;
}

/* Each column names its group; so the groups need not be runs of columns. */
static heft_status check_group_index(const heft_decoding *d, heft_error *err)
{
    const heft_decoding_part *g = heft_decoding_part_of(d, HEFT_ROLE_GROUP_INDEX);
    bool is_good = g && g->dtype == HEFT_I32 && g->elements == d->columns && d->stack == 1;
    return !g || is_good ? HEFT_OK
                         : heft_decoding_refuse(d, HEFT_ROLE_GROUP_INDEX,
                                                "does not have a number for each column", err);
}

static heft_status check_zero_point(const heft_decoding *d, heft_error *err)
{
    const heft_decoding_part *z = heft_decoding_part_of(d, HEFT_ROLE_ZERO_POINT);
    const heft_decoding_part *s = &d->part[HEFT_ROLE_SCALE];
    bool is_packed = d->scheme == &heft_scheme_compressed_tensors && d->bits && z &&
                     z->dtype == HEFT_I32;
    uint64_t rows = words_of(d->grid.down, d->bits, d->is_aligned);
    bool is_good = z && (is_packed ? heft_decoding_dim(z, 0) == d->grid.across &&
                                         heft_decoding_dim(z, 1) == rows &&
                                         z->elements == d->stack * rows * d->grid.across &&
                                         d->grid.down == d->rows
                                   : z->dtype == HEFT_I8 && z->elements == s->elements);
    return !z || is_good ? HEFT_OK
                         : heft_decoding_refuse(d, HEFT_ROLE_ZERO_POINT,
                                                "does not have a number for each scale", err);
}

static bool is_packed_weight(const heft_decoding *d)
{
    return d->variant && heft_str_is(heft_lit(d->variant), "pack-quantized");
}

static heft_status prepare(heft_decoding *d, heft_error *err)
{
    heft_status st = HEFT_OK;
    if (is_packed_weight(d)) {
        st = read_columns(&d->columns, d, err);
        if (!st)
            st = heft_decoding_set_shape(d, heft_decoding_dim(&d->part[HEFT_ROLE_WEIGHT], 1),
                                         d->columns, err);
        if (!st)
            st = set_packing(d, err);
    } else {
        st = heft_decoding_take_shape(d, 1, err);
    }
    uint64_t groups = heft_decoding_dim(&d->part[HEFT_ROLE_SCALE], 0);
    d->block[1] = d->settings->has_group ? d->settings->group : 0;
    d->block[0] = d->settings->block[0];
    if (d->settings->block[1])
        d->block[1] = d->settings->block[1];
    if (!st && !d->block[1] && groups > 1) { /* groups of equal size */
        uint64_t size = heft_div(d->columns, groups);
        d->block[1] = size * groups == d->columns ? size : 0;
    }
    if (!st)
        st = heft_decoding_set_grid(d, HEFT_ROLE_SCALE, err);
    if (!st)
        st = check_group_index(d, err);
    if (!st)
        st = check_zero_point(d, err);
    if (!st && heft_decoding_part_of(d, HEFT_ROLE_GLOBAL_SCALE))
        st = heft_decoding_refuse(d, HEFT_ROLE_GLOBAL_SCALE, "is not expected here", err);
    heft_decoding_set_type(d, HEFT_ROLE_SCALE);
    return st;
}

/* ---- numbers ---- */

/* Set zero[i] for `n` groups of a row from group `first` on. */
static bool read_zero_points(heft_decoder *r, uint64_t row, uint64_t first, size_t n, float *zero)
{
    const heft_decoding *d = r->d;
    const heft_decoding_part *z = heft_decoding_part_of(d, HEFT_ROLE_ZERO_POINT);
    float middle = is_packed_weight(d) ? (float)(1 << (d->bits - 1)) : 0;
    uint64_t line = heft_div(row - r->matrix * d->rows, d->grid.height);
    if (!z || z->dtype == HEFT_I8) {
        uint64_t at = r->matrix * d->grid.matrix + line * d->grid.across + first;
        for (size_t i = 0; i < n; i++)
            zero[i] = 0;
        if (z && !heft_decoder_floats(r, HEFT_ROLE_ZERO_POINT, at, n, zero))
            return false;
        for (size_t i = 0; i < n; i++)
            zero[i] += middle;
        return true;
    }
    uint64_t bit = heft_bit_of(line, d->bits, d->is_aligned), word = bit / WORD_BITS;
    uint64_t matrix = r->matrix * heft_decoding_dim(z, 1);
    uint32_t words = bit % WORD_BITS + d->bits > WORD_BITS ? 2 : 1;
    for (size_t i = 0; i < n; i++) {
        uint8_t two[2 * WORD] = { 0 };
        for (uint32_t k = 0; k < words; k++) {
            uint64_t at = (matrix + word + k) * d->grid.across + first + i;
            const uint8_t *p = heft_decoder_bytes(r, HEFT_ROLE_ZERO_POINT, at * WORD, WORD);
            if (!p)
                return false;
            memcpy(two + k * WORD, p, WORD);
        }
        zero[i] = (float)heft_bits_at(two, bit % WORD_BITS, d->bits);
    }
    return true;
}

/* Unpack numbers of a row; plain bytes are numbers with a sign. */
static bool read_numbers(heft_decoder *r, uint64_t row, uint64_t column, size_t count, float *out)
{
    const heft_decoding *d = r->d;
    if (!is_packed_weight(d))
        return heft_decoder_floats(r, HEFT_ROLE_WEIGHT, row * d->columns + column, count, out);
    uint64_t line = heft_decoding_dim(&d->part[HEFT_ROLE_WEIGHT], 0) * WORD;
    uint64_t first = heft_bit_of(column, d->bits, d->is_aligned);
    uint64_t end = heft_bit_of(column + count - 1, d->bits, d->is_aligned) + d->bits;
    const uint8_t *p = heft_decoder_bytes(r, HEFT_ROLE_WEIGHT, row * line + first / 8,
                                          (size_t)((end + 7) / 8 - first / 8));
    bool is_dense = !d->is_aligned || WORD_BITS % d->bits == 0;
    if (p && is_dense)
        heft_bits_unpack(out, p, first % 8, d->bits, count);
    for (size_t i = 0; p && !is_dense && i < count; i++)
        out[i] = (float)heft_bits_at(
            p, heft_bit_of(column + i, d->bits, d->is_aligned) - first / 8 * 8, d->bits);
    return p;
}

/* Columns in any order: each says its group. */
static heft_status decode_by_index(heft_decoder *r, uint64_t row, uint64_t column, size_t count,
                                   float *out)
{
    const heft_decoding *d = r->d;
    float *scale = r->group_scale, *zero = r->group_zero;
    uint64_t groups = d->grid.across;
    const uint8_t *index = heft_decoder_bytes(r, HEFT_ROLE_GROUP_INDEX, column * WORD,
                                              count * WORD);
    if (groups > HEFT_RUN)
        r->st = heft_decoding_refuse(d, HEFT_ROLE_SCALE, "has too many groups", r->err);
    if (!index || r->st || !read_zero_points(r, row, 0, (size_t)groups, zero) ||
        !heft_decoder_floats(r, HEFT_ROLE_SCALE, heft_div(row, d->grid.height) * groups,
                             (size_t)groups, scale))
        return r->st;
    for (size_t i = 0; i < count; i++) {
        uint32_t g = heft_word_at(index + i * WORD);
        if (g >= groups)
            return r->st = heft_decoding_refuse(d, HEFT_ROLE_GROUP_INDEX,
                                                "names a group that does not exist", r->err);
        out[i] = (out[i] - zero[g]) * scale[g];
    }
    return HEFT_OK;
}

static heft_status decode(heft_decoder *r, uint64_t row, uint64_t column, size_t count, float *out)
{
    const heft_decoding *d = r->d;
    float *scale = r->group_scale, *zero = r->group_zero;
    if (!read_numbers(r, row, column, count, out))
        return r->st;
    if (heft_decoding_part_of(d, HEFT_ROLE_GROUP_INDEX))
        return decode_by_index(r, row, column, count, out);
    uint64_t first = heft_div(column, d->grid.width);
    size_t n = heft_decoder_scales(r, HEFT_ROLE_SCALE, row, column, count, scale);
    if (!n || !read_zero_points(r, row, first, n, zero))
        return r->st;
    for (size_t i = 0, g = 0, end; i < count; i = end, g++) {
        uint64_t left = (first + g + 1) * d->grid.width - column;
        end = left < count ? (size_t)left : count;
        heft_packed_now()->group(out + i, zero[g], scale[g], end - i);
    }
    return HEFT_OK;
}

/* Groups have 16 different numbers each. */
static bool look_up(heft_decoder *r, uint64_t row, uint64_t column, size_t count, heft_dtype as,
                    uint8_t *out)
{
    const heft_decoding *d = r->d;
    float *scale = r->group_scale, *zero = r->group_zero;
    heft_coded_run run = heft_coded_run_of(column, d->grid.width, count);
    if (!is_packed_weight(d) || d->bits != 4 || !heft_coded_run_fits(&run) ||
        heft_decoding_part_of(d, HEFT_ROLE_GROUP_INDEX))
        return false;
    uint64_t line = heft_decoding_dim(&d->part[HEFT_ROLE_WEIGHT], 0) * WORD;
    run.codes = heft_decoder_bytes(r, HEFT_ROLE_WEIGHT, row * line + column / 2, count / 2);
    size_t n = run.codes ? heft_decoder_scales(r, HEFT_ROLE_SCALE, row, column, count, scale) : 0;
    if (!n || !read_zero_points(r, row, heft_div(column, d->grid.width), n, zero))
        return false;
    heft_look_up_scaled(&run, zero, scale, as, out);
    return true;
}

const heft_scheme_decoder heft_decoder_of_compressed_tensors = { prepare, decode, look_up };

/* ---- integers ---- */

static const char *check(const heft_decoding *d, uint32_t *bits, uint64_t *run)
{
    *bits = is_packed_weight(d) ? d->bits : 8;
    *run = heft_integer_run(d);
    if (!is_packed_weight(d) && d->part[HEFT_ROLE_WEIGHT].dtype != HEFT_I8)
        return "its numbers are not integers";
    if (*bits != 4 && *bits != 8)
        return "its integers have neither 4 nor 8 bits";
    if (heft_decoding_part_of(d, HEFT_ROLE_ZERO_POINT))
        return "it has zero points, and Burn has none";
    if (heft_decoding_part_of(d, HEFT_ROLE_GROUP_INDEX))
        return "its columns are not in the order of their groups";
    return heft_decoding_part_of(d, HEFT_ROLE_PRE_SCALE) ? "its columns have scales, too" : NULL;
}

static bool integers(heft_decoder *r, uint64_t row, uint64_t column, size_t count, float *out)
{
    const heft_decoding *d = r->d;
    float middle = is_packed_weight(d) ? (float)(1 << (d->bits - 1)) : 0;
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

const heft_integer_form heft_integers_of_compressed_tensors = { check, integers, scale_of };
