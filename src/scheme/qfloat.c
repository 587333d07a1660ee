/* qfloat.c - decodes Burn's quantised tensors: the numbers, then the scales, in one tensor with the
 * layout "burn.qfloat".
 *
 *   number = code * scale, or code * (scale * scale of the tensor), in f32
 *   codes are integers in two's complement, or floats of 8 or 4 bits; the first of a byte or word
 *       is in its lowest bits
 *   scales of blocks, then one of the tensor; the blocks at the edges may be partial
 *
 * A dimension along which codes are packed is exchanged with the last one, and so are the blocks:
 * what is stored is then a tensor whose lines are packed.
 *
 * Burn 0.22 fills up each line to whole words.  Earlier releases have several forms: lines that
 * follow each other without a gap, or do not; scales in f32 whatever the scheme says.  The number
 * of bytes tells them apart, or else the tensor is not decoded. */
#include "base/checked_math.h"
#include "base/error.h"
#include "scheme/decoding.h"
#include "scheme/packed.h"
#include "scheme/qfloat_scheme.h"

enum { BYTE = 8, WORD = 32 };

static heft_status refuse(const heft_decoding *d, const char *why, heft_error *err)
{
    heft_status st = heft_error_plain(err, HEFT_E_UNSUPPORTED,
                                      "tensor %q is a QFloat of Burn that is not decoded: %s",
                                      d->name, why);
    return heft_error_rule(err, st, "heft/quantised");
}

/* ---- the order in which a tensor is stored ---- */

static void exchange(uint64_t *a, uint64_t *b)
{
    uint64_t keep = *a;
    *a = *b;
    *b = keep;
}

/* Set dimensions and blocks in stored order, and the rows and columns that are decoded. */
static heft_status set_order(heft_decoding *d, const heft_qfloat_scheme *s, heft_error *err)
{
    heft_qfloat_layout *q = &d->qfloat;
    const heft_decoding_part *w = &d->part[HEFT_ROLE_WEIGHT];
    uint32_t rank = w->rank ? w->rank : 1, last = rank - 1;
    uint64_t elements = 1;
    if (rank > HEFT_LOGICAL_RANK || s->packed_dim >= rank || s->size_count > rank)
        return heft_decoding_refuse(d, HEFT_ROLE_WEIGHT,
                                    "has fewer dimensions than its scheme, or more than 8", err);
    d->rank = w->rank;
    q->rank = rank;
    for (uint32_t i = 0; i < rank; i++) {
        uint32_t from_last = rank - i;
        d->dims[i] = q->dims[i] = w->rank ? w->dims[i] : 1;
        q->sizes[i] = from_last <= s->size_count ? s->size[s->size_count - from_last] : 1;
        if (!q->sizes[i])
            return heft_decoding_refuse(d, HEFT_ROLE_WEIGHT, "has blocks without numbers", err);
        if (!heft_mul(&elements, elements, q->dims[i]) || elements >> 58)
            return heft_decoding_refuse(d, HEFT_ROLE_WEIGHT, "is too large", err);
    }
    uint32_t axis = last - (uint32_t)s->packed_dim;
    exchange(&q->dims[axis], &q->dims[last]);
    exchange(&q->sizes[axis], &q->sizes[last]);
    d->rows = 1;
    d->columns = q->dims[last];
    for (uint32_t i = 0; i < last; i++)
        d->rows *= q->dims[i];
    return HEFT_OK;
}

/* Lines along the last dimension but one are rows and columns exchanged. */
static void set_exchange(heft_decoding *d, const heft_qfloat_scheme *s)
{
    heft_qfloat_layout *q = &d->qfloat;
    uint32_t last = q->rank - 1, axis = last - (uint32_t)s->packed_dim;
    if (axis == last || !(d->rows && d->columns))
        return;
    if (axis + 1 == last) {
        d->is_transposed = true;
        d->stack = heft_div(d->rows, q->dims[axis]);
        d->rows = q->dims[axis];
        return;
    }
    q->along = d->columns;
    q->between = 1;
    for (uint32_t i = axis + 1; i < last; i++)
        q->between *= q->dims[i];
    d->columns = q->dims[axis];
    d->rows = heft_div(d->rows, d->columns) * q->along;
}

/* ---- bytes ---- */

/* A way to store the numbers. */
typedef struct form {
    uint32_t value_bits;
    uint64_t line_bits, bytes;
} form;

enum { MOST_FORMS = 4 };

/* Codes of `bits` that fill each line up to `unit` bits, or only the tensor. */
static form form_of(const heft_qfloat_layout *q, uint64_t lines, uint32_t bits, uint32_t unit,
                    bool has_gaps)
{
    uint64_t line = q->dims[q->rank - 1] * bits;
    if (has_gaps)
        line = heft_div_up(line, unit) * unit;
    uint64_t units = heft_div_up(line * lines, unit);
    return (form){ bits, lines > 1 ? line : 0, units * unit / BYTE };
}

/* List the ways in which the releases that read the scheme store the numbers. */
static uint32_t list_forms(form out[MOST_FORMS], const heft_qfloat_layout *q, uint64_t lines,
                           const heft_qfloat_scheme *s)
{
    bool has_pairs = s->store == HEFT_QFLOAT_NATIVE && s->type == HEFT_F4_E2M1;
    bool is_old = !s->is_since_0_22;
    uint32_t count = 0;
    if (s->store == HEFT_QFLOAT_WORDS) {
        out[count++] = form_of(q, lines, s->bits, WORD, true);
        if (is_old)
            out[count++] = form_of(q, lines, s->bits, WORD, false);
        if (is_old && s->bits == BYTE)
            out[count++] = form_of(q, lines, BYTE, BYTE, false);
        return count;
    }
    if (has_pairs || (is_old && s->type == HEFT_F4_E2M1)) { /* Burn 0.19 calls pairs "Native" */
        out[count++] = form_of(q, lines, s->bits, BYTE, true);
        if (is_old)
            out[count++] = form_of(q, lines, s->bits, BYTE, false);
    }
    if (!has_pairs)
        out[count++] = form_of(q, lines, BYTE, BYTE, false);
    return count;
}

/* Return the number of blocks, at most one for each element. */
static uint64_t blocks_of(const heft_qfloat_layout *q)
{
    uint64_t count = 1;
    for (uint32_t i = 0; i < q->rank; i++)
        count *= heft_div_up(q->dims[i], q->sizes[i]);
    return count;
}

/* Return whether the blocks are runs of elements, of which the tensor has a whole number: those
 * all releases find alike. */
static bool are_runs(const heft_qfloat_layout *q)
{
    uint32_t i = q->rank;
    while (i && q->sizes[i - 1] == q->dims[i - 1])
        i--;
    bool is_whole = !i ||
                    heft_div(q->dims[i - 1], q->sizes[i - 1]) * q->sizes[i - 1] == q->dims[i - 1];
    for (; is_whole && i > 1; i--)
        is_whole = q->sizes[i - 2] == 1;
    return is_whole;
}

/* Choose the form and the type of scales with which the tensor has as many bytes as it has. */
static heft_status choose(heft_decoding *d, const heft_qfloat_scheme *s, heft_dtype *scale,
                          heft_error *err)
{
    heft_qfloat_layout *q = &d->qfloat;
    const heft_dtype types[] = { s->block_scale ? s->block_scale : s->tensor_scale, HEFT_F32 };
    bool may_be_f32 = !s->is_since_0_22 && types[0] != HEFT_F32, is_found = false;
    uint64_t blocks = q->has_blocks ? blocks_of(q) : 1;
    uint64_t global = s->block_scale && s->tensor_scale ? heft_dtype_size(s->tensor_scale) : 0;
    form forms[MOST_FORMS];
    uint32_t count = list_forms(forms, q, d->rows, s);
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < 1U + may_be_f32; k++) {
            const form *f = &forms[i];
            if (f->bytes + blocks * heft_dtype_size(types[k]) + global !=
                d->part[HEFT_ROLE_WEIGHT].bytes)
                continue;
            bool is_same = q->line_bits == f->line_bits && q->value_bits == f->value_bits &&
                           q->scales_at == f->bytes && *scale == types[k];
            if (is_found && !is_same)
                return refuse(d, "releases of Burn before 0.22 pad lines of words differently",
                              err);
            is_found = true;
            q->line_bits = f->line_bits;
            q->value_bits = f->value_bits;
            q->scales_at = f->bytes;
            *scale = types[k];
        }
    return is_found ? HEFT_OK
                    : heft_decoding_refuse(d, HEFT_ROLE_WEIGHT,
                                           "does not have the bytes that its shape and its scheme "
                                           "need",
                                           err);
}

static heft_status read_factor(heft_decoding *d, uint64_t at, heft_dtype type, heft_error *err)
{
    uint8_t raw[4];
    HEFT_TRY(
        heft_part_read(raw, d->f, d->part[HEFT_ROLE_WEIGHT].part, at, heft_dtype_size(type), err));
    (void)heft_decoding_floats(&d->factor, type, raw, 1);
    return HEFT_OK;
}

/* ---- preparing ---- */

static const char *why_not(const heft_decoding *d, const heft_qfloat_scheme *s)
{
    if (s->is_lookup)
        return "its numbers are places in a table that Burnpacks do not have";
    if (!s->is_since_0_22 && d->qfloat.has_blocks && (s->packed_dim || !are_runs(&d->qfloat)))
        return "releases of Burn before 0.22 find blocks of this shape differently";
    return NULL;
}

/* Codes of a byte are numbers of a type.  The scales have a window of their own. */
static void set_types(heft_decoding *d, const heft_qfloat_scheme *s, heft_dtype scale)
{
    heft_decoding_part *w = &d->part[HEFT_ROLE_WEIGHT];
    bool is_whole = s->bits == BYTE || (s->store == HEFT_QFLOAT_BYTES && !s->type);
    if (is_whole)
        w->dtype = s->type ? s->type : HEFT_I8;
    d->qfloat.type = s->type;
    d->bits = is_whole ? BYTE : s->bits;
    d->grid.width = d->qfloat.sizes[d->qfloat.rank - 1];
    d->part[HEFT_ROLE_SCALE] = *w;
    d->part[HEFT_ROLE_SCALE].dtype = scale;
}

static heft_status prepare(heft_decoding *d, heft_error *err)
{
    heft_qfloat_scheme s;
    heft_dtype scale = HEFT_UNTYPED;
    uint32_t tensor = d->part[HEFT_ROLE_WEIGHT].tensor;
    d->dtype = HEFT_F32;
    if (!heft_qfloat_scheme_read(&s, heft_ix_stored_dtype(&d->f->x, tensor)))
        return refuse(d, "no known release of Burn writes its scheme", err);
    HEFT_TRY(set_order(d, &s, err));
    d->qfloat.has_blocks = s.block_scale;
    const char *why = why_not(d, &s);
    if (why)
        return refuse(d, why, err);
    HEFT_TRY(choose(d, &s, &scale, err));
    set_types(d, &s, scale);
    set_exchange(d, &s);
    if (!s.tensor_scale)
        return HEFT_OK;
    heft_dtype type = s.block_scale ? s.tensor_scale : scale;
    return read_factor(d, d->part[HEFT_ROLE_WEIGHT].bytes - heft_dtype_size(type), type, err);
}

/* ---- decoding ---- */

static void unpack_integers(float *out, const uint8_t *p, uint64_t at, uint32_t bits, size_t count)
{
    const float half = (float)(1U << (bits - 1));
    heft_bits_unpack(out, p, at, bits, count);
    for (size_t i = 0; i < count; i++)
        out[i] -= out[i] >= half ? 2 * half : 0;
}

/* Codes of fewer bits than a byte each have one. */
static void unpack_bytes(const heft_decoding *d, float *out, const uint8_t *p, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (d->qfloat.type)
            out[i] = heft_e2m1[p[i] & 15];
        else
            unpack_integers(&out[i], p + i, 0, d->bits, 1);
    }
}

static bool read_codes(heft_decoder *r, uint64_t line, uint64_t at, size_t count, float *out)
{
    const heft_decoding *d = r->d;
    const heft_qfloat_layout *q = &d->qfloat;
    uint64_t bit = line * q->line_bits + at * q->value_bits;
    if (d->bits == BYTE)
        return heft_decoder_floats(r, HEFT_ROLE_WEIGHT, bit / BYTE, count, out);
    size_t bits = (size_t)(bit % BYTE) + count * q->value_bits;
    const uint8_t *p = heft_decoder_bytes(r, HEFT_ROLE_WEIGHT, bit / BYTE,
                                          (bits + BYTE - 1) / BYTE);
    if (!p)
        return false;
    if (q->value_bits == BYTE)
        unpack_bytes(d, out, p, count);
    else if (q->type)
        heft_e2m1_unpack(out, p, bit % BYTE, false, count);
    else
        unpack_integers(out, p, bit % BYTE, d->bits, count);
    return true;
}

/* Return the number of the block with the first element of a line. */
static uint64_t block_of_line(const heft_qfloat_layout *q, uint64_t line)
{
    uint32_t last = q->rank - 1;
    uint64_t step = heft_div_up(q->dims[last], q->sizes[last]), block = 0;
    for (uint32_t i = last; i--;) {
        uint64_t next = heft_div(line, q->dims[i]), at = line - next * q->dims[i];
        block += heft_div(at, q->sizes[i]) * step;
        step *= heft_div_up(q->dims[i], q->sizes[i]);
        line = next;
    }
    return block;
}

static bool read_scales(heft_decoder *r, uint64_t line, uint64_t at, size_t count, float *scale)
{
    const heft_decoding *d = r->d;
    heft_dtype type = d->part[HEFT_ROLE_SCALE].dtype;
    uint64_t size = heft_dtype_size(type), width = d->grid.width;
    uint64_t first = heft_div(at, width), last = heft_div(at + count - 1, width);
    size_t n = (size_t)(last - first + 1);
    uint64_t block = block_of_line(&d->qfloat, line) + first;
    const uint8_t *p = heft_decoder_bytes(r, HEFT_ROLE_SCALE, d->qfloat.scales_at + block * size,
                                          (size_t)(n * size));
    if (!p)
        return false;
    (void)heft_decoding_floats(scale, type, p, n);
    for (size_t i = 0; i < n; i++)
        scale[i] *= d->factor;
    return true;
}

/* Decode `count` codes of a stored line. */
static void decode_line(heft_decoder *r, uint64_t line, uint64_t at, size_t count, float *out)
{
    const heft_decoding *d = r->d;
    float scale[HEFT_RUN];
    if (!read_codes(r, line, at, count, out))
        return;
    if (!d->qfloat.has_blocks)
        heft_packed_now()->group(out, 0, d->factor, count);
    else if (read_scales(r, line, at, count, scale))
        heft_decoder_multiply(d, at, count, scale, out);
}

static heft_status decode(heft_decoder *r, uint64_t row, uint64_t column, size_t count, float *out)
{
    const heft_decoding *d = r->d;
    const heft_qfloat_layout *q = &d->qfloat;
    if (!q->along) {
        decode_line(r, row, column, count, out);
        return r->st;
    }
    /* A row has a number of each of several lines. */
    uint64_t upper = heft_div(row, q->between), in = row - upper * q->between;
    uint64_t of = heft_div(upper, q->along), at = upper - of * q->along;
    for (size_t i = 0; i < count && !r->st; i++)
        decode_line(r, (of * d->columns + column + i) * q->between + in, at, 1, out + i);
    return r->st;
}

const heft_scheme_decoder heft_decoder_of_qfloat = { prepare, decode, NULL };
