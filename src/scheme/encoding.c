/* encoding.c - describes a tensor to be encoded, and what encoders ask while they prepare it. */
#include "scheme/encoding.h"

#include "base/checked_math.h"
#include "base/error.h"
#include "base/text.h"
#include "model/float.h"

/* ---- the tensor ---- */

/* Take the shape: matrices of rows x columns. */
static bool take_shape(heft_encoded *e, const uint64_t *dims, uint32_t rank)
{
    if (rank < (e->encoder->layout ? 1 : 2) || rank > HEFT_LOGICAL_RANK)
        return false;
    e->rank = rank;
    e->rows = rank > 1 ? dims[rank - 2] : 1;
    e->columns = dims[rank - 1];
    e->stack = 1;
    for (uint32_t i = 0; i < rank; i++) {
        e->dims[i] = dims[i];
        if (i + 2 < rank)
            e->stack *= dims[i]; /* the bytes of the elements are in the file: no overflow */
    }
    return e->stack && e->rows && e->columns;
}

static void transpose(heft_encoded *e)
{
    uint64_t rows = e->columns;
    e->columns = e->dims[e->rank - 1] = e->rows;
    e->rows = e->dims[e->rank - 2] = rows;
}

static bool take_stored(heft_encoded *e)
{
    const heft_index *x = &e->f->x;
    const heft_ix_tensor_row *t = heft_ix_row(x, e->tensor);
    const heft_ix_part_row *row;
    e->name = heft_ix_name(x, e->tensor);
    e->from = t->dtype;
    e->part = heft_ix_part_find(x, e->tensor, heft_ix_data);
    if (e->part == HEFT_NONE || t->layout != HEFT_DENSE)
        return false;
    row = heft_ix_part_row_at(x, e->part);
    e->is_compressed = row->encoding != HEFT_RAW;
    return row->length != HEFT_UNKNOWN_LENGTH && take_shape(e, heft_ix_dims(x, e->tensor), t->rank);
}

/* Compute the bytes of the parts. */
static heft_status measure(heft_encoded *e, heft_error *err)
{
    uint64_t total = 0;
    for (uint32_t k = 0; k < e->part_count && !e->encoder->layout; k++) {
        heft_encoded_part *p = &e->parts[k];
        uint64_t elements;
        if (!heft_product(&elements, p->dims, p->rank) ||
            !heft_dtype_bytes(&p->bytes, p->dtype, elements) || !heft_add(&total, total, p->bytes))
            return heft_error_plain(err, HEFT_E_LIMIT, "tensor %q is too large to be quantised",
                                    e->name);
    }
    return HEFT_OK;
}

/* Take the numbers that a quantised tensor represents; those that are copied are in the order in
 * which they are stored. */
static bool take_decoded(heft_encoded *e)
{
    const heft_decoding *d = e->decoding;
    e->name = d->name;
    e->from = d->dtype;
    if (!take_shape(e, d->dims, d->rank))
        return false;
    if (e->is_copy && d->is_transposed)
        transpose(e);
    return true;
}

heft_status heft_encoded_open(heft_encoded *e, const char **why, heft_error *err)
{
    const heft_scheme_encoder *encoder = e->encoder;
    e->part_count = 0;
    e->is_copy = encoder->copies && encoder->copies(e);
    bool is_matrix = e->decoding ? take_decoded(e) : take_stored(e);
    e->is_transposed = is_matrix && !e->is_copy && encoder->transposes && encoder->transposes(e);
    if (e->is_transposed)
        transpose(e);
    if (!is_matrix)
        *why = encoder->layout ? "it is empty, or a single number" : "no matrix";
    else if (!e->decoding && !heft_dtype_fills_blocks(e->from, e->columns))
        *why = "its rows do not fill blocks";
    else if (e->is_transposed && (e->decoding || !heft_dtype_size(e->from)))
        *why = "its quantised numbers would be transposed";
    else
        *why = encoder->prepare(e);
    return *why ? HEFT_OK : measure(e, err);
}

static heft_status read_decoded(heft_encoder *r, uint32_t k, uint64_t from, uint8_t *buf,
                                size_t len)
{
    return r->st = heft_decoder_read_bytes(&r->input, r->e->parts[k].dtype, from, buf, len);
}

heft_status heft_encoded_open_decoded(heft_encoded *e, heft_error *err)
{
    static const heft_scheme_encoder as_it_is = { .read = read_decoded };
    const heft_decoding *d = e->decoding;
    heft_encoded_part *p = e->parts;
    e->encoder = &as_it_is;
    e->name = d->name;
    e->from = d->dtype;
    e->part_count = 1;
    *p = (heft_encoded_part){ .suffix = "", .dtype = d->dtype, .rank = d->rank };
    memcpy(p->dims, d->dims, sizeof p->dims);
    return measure(e, err);
}

heft_encoded_part *heft_encoded_add(heft_encoded *e, heft_role role, const char *suffix,
                                    heft_dtype t, uint64_t rows, uint64_t columns)
{
    heft_encoded_part *p = &e->parts[e->part_count++];
    *p = (heft_encoded_part){ .role = role, .suffix = suffix, .dtype = t };
    for (uint32_t i = 0; rows && i + 2 < e->rank; i++)
        p->dims[p->rank++] = e->dims[i];
    if (rows)
        p->dims[p->rank++] = rows;
    p->dims[p->rank++] = columns;
    return p;
}

bool heft_encoded_has_form(const heft_encoded *e, const char *form)
{
    return e->choice->form && heft_str_is(heft_lit(e->choice->form), form);
}

const char *heft_encoded_set_grid(heft_encoded *e)
{
    const uint64_t *block = e->choice->block;
    heft_scale_grid *g = &e->grid;
    g->height = block[0] && block[0] < e->rows ? block[0] : e->rows;
    g->width = block[1] && block[1] < e->columns ? block[1] : e->columns;
    g->down = heft_div(e->rows - 1, g->height) + 1;
    g->across = heft_div(e->columns - 1, g->width) + 1;
    g->matrix = g->down * g->across;
    bool is_group = block[0] == 1 && block[1];
    return is_group && heft_div(e->columns, block[1]) * block[1] != e->columns
               ? "its columns do not fill groups"
               : NULL;
}

void heft_load_e4m3(const heft_encoded *e, const uint8_t *in, size_t n, float *x)
{
    (void)e;
    (void)heft_floats_from(x, HEFT_F8_E4M3FN, in, n);
}

void heft_drop_nan(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = x[i] == x[i] ? x[i] : 0;
}

/* The exponent of a normal number, or 0, is in the bits of the number. */
uint8_t heft_power_scale(float *by, float largest, uint32_t most)
{
    uint32_t exponent = heft_f32_bits(largest) >> 23;
    uint32_t code = exponent > most ? exponent - most : 0;
    *by = heft_f32_of(code ? code << 23 : 1U << 22);
    return (uint8_t)code;
}

void heft_put_f32(uint8_t out[4], float x)
{
    uint32_t bits = heft_f32_bits(x);
    for (int i = 0; i < 4; i++)
        out[i] = (uint8_t)(bits >> 8 * i);
}
